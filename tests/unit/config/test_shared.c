/* The configuration of shared HCAs: what is read, and what is left out. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/err.h"
#include "base/mem.h"
#include "base/str.h"
#include "config/config.h"

static void config_freep(struct config **cfg)
{
	config_free(*cfg);
}
#define _cleanup_config_ _cleanup_(config_freep)

#define HCA(more)                                                                                     \
	"{\"resourceName\": \"hca\", \"rdmaHcaMax\": 9, \"selectors\": {\"ifNames\": [\"ib0\"]}" more \
	"}"
#define LIST(entries) "{\"configList\": [\n" entries "]}"

static struct config *read_text(const char *text)
{
	struct config *cfg = config_default();
	struct err err = { 0 };

	if (config_parse_shared(text, strlen(text), "s.json", cfg, NULL, &err) < 0)
		fail_msg("%s", err.msg);
	return cfg;
}

static void reads_what_that_plugin_reads(void **state)
{
	_cleanup_config_ struct config *cfg = read_text(
		"{\"periodicUpdateInterval\": 300, \"configList\": [{\"resourceName\": \"a\",\n"
		"\"resourcePrefix\": \"x.org\",\"rdmaHcaMax\": 1000,\n"
		"\"selectors\": {\"vendors\": [\"15b3\"], \"deviceIDs\": [\"1017\"],\n"
		"\"drivers\": [\"mlx5_core\"], \"ifNames\": [\"ib0\", \"ib1\"],\n"
		"\"linkTypes\": [\"infiniband\"]},\"railmate\": {\"umad\": true}},\n"
		"{\"resourceName\": \"b\", \"rdmaHcaMax\": 1, \"devices\": [\"ib2\"]}]}");
	const struct selector *s = cfg->shared[0].selectors;

	(void)state;
	assert_int_equal(cfg->n_errors + cfg->n_warnings, 0);
	assert_int_equal(cfg->n_pools, 1);
	assert_int_equal(cfg->n_shared, 2);
	assert_string_equal(cfg->shared[0].resource, "x.org/a");
	assert_int_equal(cfg->shared[0].shares, 1000);
	assert_true(cfg->shared[0].is_rdma && cfg->shared[0].umad && s->is_rdma);
	assert_int_equal(s->vendors[0], 0x15b3);
	assert_int_equal(s->devices[0], 0x1017);
	assert_string_equal(s->drivers[0], "mlx5_core");
	assert_int_equal(s->n_if_names, 2);
	assert_string_equal(s->if_names[1], "ib1");
	assert_string_equal(s->link_types[0], "infiniband");
	assert_string_equal(cfg->shared[1].resource, "rdma/b");
	assert_string_equal(cfg->shared[1].selectors->if_names[0], "ib2");
}

static void a_bad_entry_leaves_the_others(void **state)
{
	static const struct {
		const char *entry, *sentence;
	} rows[] = {
		{ "7", "must be an object, not a number" },
		{ "{\"rdmaHcaMax\": 1, \"devices\": [\"a\"]}", "has no resourceName" },
		{ "{\"resourceName\": \"b\", \"devices\": [\"a\"]}",
		  "has no rdmaHcaMax: how many containers may share the HCAs" },
		{ "{\"resourceName\": \"b\", \"rdmaHcaMax\": 1}",
		  "selects no HCA: 'selectors' or 'devices' must name some" },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		_cleanup_free_ char *text = xasprintf(LIST("%s,\n" HCA("")), rows[i].entry);
		_cleanup_free_ char *sentence = xasprintf(
			"s.json:2: configList[0]: %s; the pool is left out", rows[i].sentence);
		_cleanup_config_ struct config *cfg = read_text(text);

		assert_int_equal(cfg->n_shared, 1);
		assert_int_equal(cfg->n_errors, 1);
		assert_string_equal(cfg->errors[0], sentence);
	}
}

static void names_differ_from_those_of_vfs_too(void **state)
{
	_cleanup_config_ struct config *cfg = read_text(
		LIST("{\"resourceName\": \"vf\", \"rdmaHcaMax\": 9, \"devices\": [\"a\"]}," HCA(
			"") "," HCA("")));

	(void)state;
	assert_int_equal(cfg->n_shared, 1);
	assert_int_equal(cfg->n_errors, 2);
	assert_string_equal(
		cfg->errors[0],
		"s.json:2: configList[0].resourceName: 'rdma/vf' is the resource of another pool: names must differ; the pool is left out");
}

static void late_binding_is_for_vfs(void **state)
{
	_cleanup_config_ struct config *cfg =
		read_text(LIST(HCA(", \"railmate\": {\"binding\": \"late\"}")));

	(void)state;
	assert_int_equal(cfg->n_errors, 1);
	assert_int_equal(cfg->shared[0].binding, BINDING_EARLY);
	assert_false(cfg->shared[0].binding_auto);
}

static void shared_pools_decide_nothing_about_binding(void **state)
{
	_cleanup_config_ struct config *cfg =
		read_text(LIST(HCA(", \"railmate\": {\"umad\": true}")));

	(void)state;
	assert_int_equal(cfg->n_errors, 0);
	assert_false(cfg->shared[0].binding_auto);
}

static void a_file_without_entries_is_refused(void **state)
{
	static const char *const rows[][2] = {
		{ "{", "s.json:1: is not JSON (string or '}' expected near end of file)" },
		{ "{}", "s.json:1: nothing to serve: 'configList' must list at least one pool" },
		{ "{\"configList\": {}}", "s.json:1: configList: must be a list, not an object" },
		{ "{\"configList\": [{\"resourceName\": \"a\", \"rdmaHcaMax\": 0}]}",
		  "s.json:1: configList[0].rdmaHcaMax: must be a whole number from 1 to 10000" },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		_cleanup_config_ struct config *cfg = config_default();
		struct err err = { 0 };

		assert_int_equal(config_parse_shared(rows[i][0], strlen(rows[i][0]), "s.json", cfg,
						     NULL, &err),
				 -EINVAL);
		assert_string_equal(err.msg, rows[i][1]);
		assert_int_equal(cfg->n_shared, 0);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(reads_what_that_plugin_reads),
		cmocka_unit_test(a_bad_entry_leaves_the_others),
		cmocka_unit_test(names_differ_from_those_of_vfs_too),
		cmocka_unit_test(late_binding_is_for_vfs),
		cmocka_unit_test(shared_pools_decide_nothing_about_binding),
		cmocka_unit_test(a_file_without_entries_is_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
