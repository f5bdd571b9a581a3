/* Which file is the configuration, and when has it changed? */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/err.h"
#include "base/mem.h"
#include "base/str.h"
#include "config/config.h"
#include "load/configfiles.h"

static char dir[] = "/tmp/railmate-config-XXXXXX";

static const char *path_of(const char *name)
{
	static char path[64];

	snprintf(path, sizeof(path), "%s/%s", dir, name);
	return path;
}

static void put(const char *name, const char *text)
{
	FILE *f = fopen(path_of(name), "w");

	assert_non_null(f);
	fputs(text, f);
	assert_int_equal(fclose(f), 0);
}

static const char pool[] = "{\"resourceList\": [{\"resourceName\": \"vf\"}]}";

static const char *name_read(const struct config_files *files)
{
	static char name[32];
	struct config_text text = { 0 };
	const char *slash;

	configfiles_read(files, &text);
	assert_null(text.config.fault);
	slash = text.path ? strrchr(text.path, '/') : NULL;
	snprintf(name, sizeof(name), "%s", slash ? slash + 1 : "none");
	configfiles_done(&text);
	return name;
}

static void the_nodes_own_file_comes_first(void **state)
{
	struct config_files files = { .dir = dir, .node = "node-7" };

	(void)state;
	assert_string_equal(name_read(&files), "none");
	put("config.json", pool);
	assert_string_equal(name_read(&files), "config.json");
	put("node-7", pool);
	assert_string_equal(name_read(&files), "node-7");
	files.node = "node-8";
	assert_string_equal(name_read(&files), "config.json");
	unlink(path_of("node-7"));
	unlink(path_of("config.json"));
}

static void a_file_that_is_named_must_be_there(void **state)
{
	struct config_files files = { .dir = dir, .config = "/no/such/file" };
	_cleanup_strbuf_ struct strbuf also = STRBUF_INIT;
	struct config_text text = { 0 };
	struct config *cfg = NULL;
	struct err err = { 0 };

	(void)state;
	configfiles_read(&files, &text);
	assert_true(configfiles_parse(&files, &text, &cfg, &also, &err) < 0);
	assert_string_equal(err.msg, "open /no/such/file: No such file or directory");
	assert_string_equal(strbuf_str(&also), "");
	assert_null(cfg);
	configfiles_done(&text);
}

static void texts_are_compared_whole(void **state)
{
	_cleanup_free_ char *shared = xstrdup(path_of("shared.json"));
	struct config_files files = { .dir = dir, .shared = shared };
	struct config_text a = { 0 }, b = { 0 };

	(void)state;
	put("config.json", pool);
	put("shared.json", "{}");
	configfiles_read(&files, &a);
	configfiles_read(&files, &b);
	assert_true(configfiles_same(&a, &b));
	put("shared.json", "{ }");
	configfiles_read(&files, &b);
	assert_false(configfiles_same(&a, &b));
	unlink(path_of("shared.json"));
	files.shared = NULL;
	configfiles_read(&files, &b);
	assert_false(configfiles_same(&a, &b));
	configfiles_done(&a);
	configfiles_done(&b);
	unlink(path_of("config.json"));
}

static const char shared[] = "{\"configList\": [{\"resourceName\": \"hca\", \"rdmaHcaMax\": 5,"
			     " \"selectors\": {\"vendors\": [\"15b3\"]}}]}";
static const char hints[] = "{\"groups\": [{\"gpus\": [\"0001:00:00.0\"],"
			    " \"nics\": [\"0101:00:00.0\"]}]}";
static const char wrong_key[] =
	"{\"resourceList\": [{\"resourceName\": \"vf\", \"railmate\": {\"gid\": \"often\"}}]}";
static const char wrong_pool[] = "{\"configList\": [{\"resourceName\": \"hca\"}]}";

struct parsed {
	struct config *cfg;
	struct err err;
	struct strbuf also;
	struct config_text text;
};

static struct config_file file_of(const char *text)
{
	struct config_file file = { 0 };

	if (!text)
		file.fault = xstrdup("it cannot be read");
	else if (*text)
		file = (struct config_file) { .text = xstrdup(text), .len = strlen(text) };
	return file;
}

/* "": there is no such file; NULL: it cannot be read. */
static int parse(struct parsed *p, const char *config, const char *of_shared, const char *of_hints)
{
	static const struct config_files files = { .shared = "shared.json", .hints = "hints.json" };

	*p = (struct parsed) { .also = STRBUF_INIT,
			       .text = { .path = config && !*config ? NULL : xstrdup("config.json"),
					 .config = file_of(config),
					 .shared = file_of(of_shared),
					 .hints = file_of(of_hints) } };
	return configfiles_parse(&files, &p->text, &p->cfg, &p->also, &p->err);
}

static void parsed_done(struct parsed *p)
{
	config_free(p->cfg);
	strbuf_done(&p->also);
	configfiles_done(&p->text);
}

static bool has_error(const struct config *cfg, const char *words)
{
	for (size_t i = 0; i < cfg->n_errors; i++) {
		if (strstr(cfg->errors[i], words))
			return true;
	}
	return false;
}

static void a_file_that_is_refused_leaves_the_pools_of_the_others(void **state)
{
	static const struct {
		const char *config, *shared, *hints;
		size_t n_pools, n_shared;
		const char *error;
	} cases[] = {
		{ pool, "[", "", 1, 0, "shared.json:1" },
		{ pool, wrong_pool, "", 1, 0, "the HCAs; the file is left out" },
		{ pool, NULL, "", 1, 0, "it cannot be read; the file is left out" },
		{ "", "[", "", 1, 0, "shared.json:1" }, /* the built-in pool */
		{ "[", shared, "", 0, 1, "config.json:1" },
		{ "{\"resourceList\": []}", shared, "", 0, 1, "nothing to serve" },
		{ NULL, shared, "", 0, 1, "it cannot be read; the file is left out" },
		{ pool, shared, "{}", 1, 1, "hints.json:1" },
		{ pool, shared, NULL, 1, 1, "it cannot be read" },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		struct parsed p;

		assert_int_equal(parse(&p, cases[i].config, cases[i].shared, cases[i].hints), 0);
		assert_int_equal(p.cfg->n_pools, cases[i].n_pools);
		assert_int_equal(p.cfg->n_shared, cases[i].n_shared);
		assert_true(has_error(p.cfg, cases[i].error));
		assert_null(p.cfg->hints);
		parsed_done(&p);
	}
}

static void what_is_refused_has_a_fault_and_the_rest_has_none(void **state)
{
	struct parsed p;

	(void)state;
	assert_int_equal(parse(&p, "[", shared, hints), 0);
	assert_non_null(p.text.config.fault);
	assert_null(p.text.shared.fault);
	assert_null(p.text.hints.fault);
	assert_non_null(p.cfg->hints);
	parsed_done(&p);
}

static void with_no_pool_left_everything_that_is_wrong_is_said(void **state)
{
	struct parsed p;

	(void)state;
	assert_true(parse(&p, "{\"resourceList\": [{}]}", wrong_pool, NULL) < 0);
	assert_null(p.cfg);
	assert_non_null(strstr(p.err.msg, "config.json:1: resourceList[0]: has no resourceName"));
	assert_non_null(strstr(strbuf_str(&p.also), "has no rdmaHcaMax"));
	assert_non_null(strstr(strbuf_str(&p.also), "it cannot be read"));
	assert_null(strstr(strbuf_str(&p.also), "left out"));
	parsed_done(&p);
}

static void errors_inside_a_file_stand_beside_those_of_a_file_that_is_refused(void **state)
{
	struct parsed p;

	(void)state;
	assert_int_equal(parse(&p, wrong_key, "[", ""), 0);
	assert_int_equal(p.cfg->n_errors, 2);
	assert_true(has_error(p.cfg, "gid") && has_error(p.cfg, "shared.json"));
	parsed_done(&p);
}

static int setup(void **state)
{
	(void)state;
	return mkdtemp(dir) ? 0 : -1;
}

static int teardown(void **state)
{
	(void)state;
	return rmdir(dir);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_nodes_own_file_comes_first),
		cmocka_unit_test(a_file_that_is_named_must_be_there),
		cmocka_unit_test(texts_are_compared_whole),
		cmocka_unit_test(a_file_that_is_refused_leaves_the_pools_of_the_others),
		cmocka_unit_test(what_is_refused_has_a_fault_and_the_rest_has_none),
		cmocka_unit_test(with_no_pool_left_everything_that_is_wrong_is_said),
		cmocka_unit_test(errors_inside_a_file_stand_beside_those_of_a_file_that_is_refused),
	};

	return cmocka_run_group_tests_name("configfiles", tests, setup, teardown);
}
