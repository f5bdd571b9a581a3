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

	assert_int_equal(configfiles_read(files, &text, NULL), 0);
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
	struct config_text text = { 0 };
	struct err err = { 0 };

	(void)state;
	assert_true(configfiles_read(&files, &text, &err) < 0);
	assert_string_equal(err.msg, "open /no/such/file: No such file or directory");
	assert_null(text.path);
}

static void texts_are_compared_whole(void **state)
{
	_cleanup_free_ char *shared = xstrdup(path_of("shared.json"));
	struct config_files files = { .dir = dir, .shared = shared };
	struct config_text a = { 0 }, b = { 0 };

	(void)state;
	put("config.json", pool);
	put("shared.json", "{}");
	assert_int_equal(configfiles_read(&files, &a, NULL), 0);
	assert_int_equal(configfiles_read(&files, &b, NULL), 0);
	assert_true(configfiles_same(&a, &b));
	put("shared.json", "{ }");
	assert_int_equal(configfiles_read(&files, &b, NULL), 0);
	assert_false(configfiles_same(&a, &b));
	unlink(path_of("shared.json"));
	files.shared = NULL;
	assert_int_equal(configfiles_read(&files, &b, NULL), 0);
	assert_false(configfiles_same(&a, &b));
	configfiles_done(&a);
	configfiles_done(&b);
	unlink(path_of("config.json"));
}

static void what_is_wrong_with_one_file_comes_with_the_errors_of_the_other(void **state)
{
	struct config_files files = { .dir = dir, .shared = "shared.json" };
	struct config_text text = {
		.path = xstrdup("config.json"),
		.config = xstrdup(
			"{\"resourceList\": [{\"resourceName\": \"vf\", \"railmate\": {\"gid\": \"often\"}}]}"),
		.shared = xstrdup("[")
	};
	_cleanup_strbuf_ struct strbuf also = STRBUF_INIT;
	struct config *cfg = NULL;
	struct err err = { 0 };

	(void)state;
	text.config_len = strlen(text.config);
	text.shared_len = strlen(text.shared);
	assert_true(configfiles_parse(&files, &text, &cfg, &also, &err) < 0);
	assert_null(cfg);
	assert_non_null(strstr(err.msg, "shared.json"));
	assert_non_null(strstr(strbuf_str(&also), "gid"));
	configfiles_done(&text);
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
		cmocka_unit_test(what_is_wrong_with_one_file_comes_with_the_errors_of_the_other),
	};

	return cmocka_run_group_tests_name("configfiles", tests, setup, teardown);
}
