/* What the room accepts, and what comes out of it. Refusals are in test_refused.c. */
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
#include "topo/rails.h"

static void config_freep(struct config **cfg)
{
	config_free(*cfg);
}
#define _cleanup_config_ _cleanup_(config_freep)

static struct config *parse(const char *text)
{
	struct config *cfg = NULL;
	struct err err = { 0 };
	int r = config_parse(text, strlen(text), "config.json", "nvidia.com", &cfg, NULL, &err);

	if (r < 0)
		fail_msg("%s", err.msg);
	return cfg;
}

/* A config whose only pool has these members besides its name. */
static struct config *parse_pool(const char *members)
{
	_cleanup_free_ char *text =
		xasprintf("{\"resourceList\": [{\"resourceName\": \"vf\"%s%s}]}",
			  *members ? ", " : "", members);

	return parse(text);
}

static void reads_a_pool_with_every_selector(void **state)
{
	_cleanup_config_ struct config *cfg =
		parse_pool("\"selectors\": {\n"
			   "\"vendors\": [\"15b3\", \"8086\"],\n"
			   "\"devices\": [\"101E\"],\n"
			   "\"drivers\": [\"mlx5_core\"],\n"
			   "\"pciAddresses\": [\"0000:3B:00.2\"],\n"
			   "\"acpiIndexes\": [\"101\"],\n"
			   "\"pfNames\": [\"ens1f0#0,2-7\", \"ens2\"],\n"
			   "\"rootDevices\": [\"0000:AF:00.0#1\"],\n"
			   "\"linkTypes\": [\"infiniband\", \"ether\"],\n"
			   "\"pKeys\": [\"0x8001\", \"0XFFFF\"],\n"
			   "\"needVhostNet\": true,\n"
			   "\"isRdma\": true}");
	const struct pool_config *pool = &cfg->pools[0];
	const struct selector *s = &pool->selectors[0];

	(void)state;
	assert_int_equal(cfg->n_warnings, 0);
	assert_int_equal(cfg->n_pools, 1);
	assert_string_equal(pool->resource, "nvidia.com/vf");
	assert_true(pool->is_rdma);
	assert_int_equal(pool->pfs, PFS_NOTED);
	assert_int_equal(pool->n_selectors, 1);
	assert_int_equal(s->n_vendors, 2);
	assert_int_equal(s->vendors[1], 0x8086);
	assert_int_equal(s->devices[0], 0x101e);
	assert_string_equal(s->drivers[0], "mlx5_core");
	assert_int_equal(s->n_addresses, 1);
	assert_int_equal(s->addresses[0].bus, 0x3b);
	assert_int_equal(s->addresses[0].fn, 2);
	assert_int_equal(s->acpi_indexes[0], 101);
	assert_int_equal(s->n_pf_names, 2);
	assert_string_equal(s->pf_names[0].name, "ens1f0");
	assert_int_equal(s->pf_names[0].n_ranges, 2);
	assert_int_equal(s->pf_names[0].ranges[0].first, 0);
	assert_int_equal(s->pf_names[0].ranges[0].last, 0);
	assert_int_equal(s->pf_names[0].ranges[1].first, 2);
	assert_int_equal(s->pf_names[0].ranges[1].last, 7);
	assert_int_equal(s->pf_names[1].n_ranges, 0);
	assert_string_equal(s->root_devices[0].name, "0000:af:00.0");
	assert_int_equal(s->root_devices[0].n_ranges, 1);
	assert_int_equal(s->n_link_types, 2);
	assert_string_equal(s->link_types[0], "infiniband");
	assert_int_equal(s->n_pkeys, 2);
	assert_int_equal(s->pkeys[0], 0x8001);
	assert_int_equal(s->pkeys[1], 0xffff);
	assert_true(s->need_vhost_net);
	assert_true(s->is_rdma);
}

static void the_default_of_a_pool_is_everything(void **state)
{
	_cleanup_config_ struct config *cfg = parse_pool("");
	const struct pool_config *pool = &cfg->pools[0];

	(void)state;
	assert_int_equal(pool->n_selectors, 0);
	assert_false(pool->is_rdma);
	assert_false(pool->exclude_topology);
	assert_int_equal(pool->gid, GID_AUTO);
	assert_int_equal(pool->network, NETWORK_POD);
	assert_null(cfg->gpus);
	assert_int_equal(cfg->n_gpus, 0);
}

static void without_a_default_prefix_it_is_the_peers(void **state)
{
	static const char text[] = "{\"resourceList\": [{\"resourceName\": \"vf\"}]}";
	_cleanup_config_ struct config *cfg = NULL;
	struct err err = { 0 };

	(void)state;
	assert_int_equal(config_parse(text, strlen(text), "c", NULL, &cfg, NULL, &err), 0);
	assert_string_equal(cfg->pools[0].resource, "intel.com/vf");
}

static void keys_match_in_any_case(void **state)
{
	_cleanup_config_ struct config *cfg =
		parse("{\"RESOURCELIST\": [{\"ResourceName\": \"a\",\n"
		      "\"resourceprefix\": \"x.io\", \"ExcludeTopology\": true,\n"
		      "\"Selectors\": {\"IsRdma\": true}, \"Railmate\": {\"GID\": \"off\"}}]}");

	(void)state;
	assert_int_equal(cfg->n_warnings, 0);
	assert_string_equal(cfg->pools[0].resource, "x.io/a");
	assert_true(cfg->pools[0].exclude_topology);
	assert_true(cfg->pools[0].is_rdma);
	assert_int_equal(cfg->pools[0].gid, GID_OFF);
}

static void null_is_absent_everywhere(void **state)
{
	_cleanup_config_ struct config *cfg = parse(
		"{\"railmate\": null, \"resourceList\": [{\"resourceName\": \"a\",\n"
		"\"resourcePrefix\": null,\"deviceType\": null, \"excludeTopology\": null,\n"
		"\"selectors\": {\"vendors\": null,\"isRdma\": null, \"vdpaType\": null},\n"
		"\"additionalInfo\": {\"*\": null},\"SelectorObjs\": null,\n"
		"\"railmate\": {\"gid\": null}},{\"resourceName\": \"b\", \"selectors\": null,\n"
		"\"additionalInfo\": {\"*\": {\"k\": null}}}]}");

	(void)state;
	assert_int_equal(cfg->n_warnings, 0);
	assert_string_equal(cfg->pools[0].resource, "nvidia.com/a");
	assert_int_equal(cfg->pools[0].selectors[0].n_vendors, 0);
	assert_int_equal(cfg->pools[1].n_selectors, 0);
	assert_int_equal(cfg->pools[1].n_extra, 0);
}

static void empty_prefix_and_type_are_absent_as_in_the_peer(void **state)
{
	_cleanup_config_ struct config *cfg =
		parse_pool("\"resourcePrefix\": \"\", \"deviceType\": \"\"");

	(void)state;
	assert_string_equal(cfg->pools[0].resource, "nvidia.com/vf");
}

static void takes_what_the_operator_writes_into_its_config_map(void **state)
{
	_cleanup_config_ struct config *cfg = parse(
		"{\"resourceList\":[{\"resourceName\":\"mlnxnics\",\"selectors\":{\"vendors\":[\"15b3\"],\n"
		"\"devices\":[\"101e\"],\"pfNames\":[\"ens1f0np0#0-7\"],\"rootDevices\":[\"0000:3b:00.0\"],\n"
		"\"IsRdma\":true,\"NeedVhostNet\":false},\"SelectorObjs\":null,\"excludeTopology\":false}]}");

	(void)state;
	assert_int_equal(cfg->n_warnings, 0);
	assert_true(cfg->pools[0].is_rdma);
}

static void selectors_may_be_a_list_and_one_rdma_makes_the_pool_so(void **state)
{
	_cleanup_config_ struct config *cfg =
		parse_pool("\"selectors\": [{\"vendors\": [\"15b3\"]}, {\"isRdma\": true}]");

	(void)state;
	assert_int_equal(cfg->pools[0].n_selectors, 2);
	assert_false(cfg->pools[0].selectors[0].is_rdma);
	assert_true(cfg->pools[0].selectors[1].is_rdma);
	assert_true(cfg->pools[0].is_rdma);
}

static void idle_foreign_selectors_are_accepted(void **state)
{
	_cleanup_config_ struct config *cfg = parse_pool(
		"\"selectors\": {\"vdpaType\": \"\", \"ddpProfiles\": [], \"pKeys\": [],\"needVhostNet\": false, \"auxTypes\": []}");

	(void)state;
	assert_int_equal(cfg->n_warnings, 0);
}

static void additional_info_is_sorted_by_device_and_key(void **state)
{
	_cleanup_config_ struct config *cfg = parse_pool(
		"\"additionalInfo\": {\"0000:3b:00.3\": {\"b\": \"1\", \"A\": \"2\"}, \"*\": {\"token\": \"x\", \"TOKEN\": \"y\"}}");
	const struct pool_config *pool = &cfg->pools[0];

	(void)state;
	assert_int_equal(cfg->n_warnings, 0);
	assert_int_equal(pool->n_extra, 4);
	assert_string_equal(pool->extra[0].device, "*");
	assert_string_equal(pool->extra[0].key, "TOKEN");
	assert_string_equal(pool->extra[0].value, "y");
	assert_string_equal(pool->extra[1].key, "token");
	assert_string_equal(pool->extra[2].device, "0000:3b:00.3");
	assert_string_equal(pool->extra[2].key, "A");
	assert_string_equal(pool->extra[3].key, "b");
}

static void reads_our_keys(void **state)
{
	static const struct {
		const char *members;
		enum gid_mode gid;
		int index;
		enum pool_network network;
		enum pool_binding binding;
	} rows[] = {
		{ "\"railmate\": {}", GID_AUTO, 0, NETWORK_POD, BINDING_EARLY },
		{ "\"railmate\": {\"gid\": \"auto\", \"network\": \"host\"}", GID_AUTO, 0,
		  NETWORK_HOST, BINDING_EARLY },
		{ "\"railmate\": {\"gid\": \"fixed:0\"}", GID_FIXED, 0, NETWORK_POD,
		  BINDING_EARLY },
		{ "\"railmate\": {\"gid\": \"fixed:255\", \"network\": \"pod\"}", GID_FIXED, 255,
		  NETWORK_POD, BINDING_EARLY },
		{ "\"railmate\": {\"gid\": \"off\", \"binding\": \"early\"}", GID_OFF, 0,
		  NETWORK_POD, BINDING_EARLY },
		{ "\"railmate\": {\"binding\": \"late\"}", GID_AUTO, 0, NETWORK_POD, BINDING_LATE },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		_cleanup_config_ struct config *cfg = parse_pool(rows[i].members);

		assert_int_equal(cfg->pools[0].gid, rows[i].gid);
		assert_int_equal(cfg->pools[0].gid_index, rows[i].index);
		assert_int_equal(cfg->pools[0].network, rows[i].network);
		assert_int_equal(cfg->pools[0].binding, rows[i].binding);
	}
}

static void who_writes_for_railmate_leaves_the_binding_open(void **state)
{
	static const struct {
		const char *members;
		enum pool_binding binding;
		bool open;
	} rows[] = {
		{ "\"excludeTopology\": false", BINDING_EARLY, false },
		{ "\"railmate\": null", BINDING_EARLY, false },
		{ "\"railmate\": {}", BINDING_EARLY, true },
		{ "\"railmate\": {\"umad\": true}", BINDING_EARLY, true },
		{ "\"railmate\": {\"binding\": null}", BINDING_EARLY, true },
		{ "\"railmate\": {\"binding\": \"auto\"}", BINDING_EARLY, true },
		{ "\"railmate\": {\"binding\": \"early\"}", BINDING_EARLY, false },
		{ "\"railmate\": {\"binding\": \"late\"}", BINDING_LATE, false },
	};
	_cleanup_config_ struct config *built_in = config_default();

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		_cleanup_config_ struct config *cfg = parse_pool(rows[i].members);

		assert_int_equal(cfg->pools[0].binding, rows[i].binding);
		assert_int_equal(cfg->pools[0].binding_auto, rows[i].open);
		assert_null(cfg->pools[0].binding_why);
	}
	assert_true(built_in->pools[0].binding_auto);
	config_bind(built_in, 0, BINDING_LATE, "it works here", false);
	assert_int_equal(built_in->pools[0].binding, BINDING_LATE);
	assert_string_equal(built_in->pools[0].binding_why, "it works here");
}

static void health_has_limits_and_makes_nothing_unhealthy_by_itself(void **state)
{
	_cleanup_config_ struct config *plain = parse_pool("");
	_cleanup_config_ struct config *some = parse_pool(
		"\"railmate\": {\"health\": {\"unhealthy\": [\"flaps\", \"slow\"], \"window\": 120}}");
	_cleanup_config_ struct config *wrong = parse_pool(
		"\"railmate\": {\"health\": {\"unhealthy\": [\"flaps\"], \"flaps\": 0}}");

	(void)state;
	assert_int_equal(plain->pools[0].health.unhealthy, 0);
	assert_int_equal(plain->pools[0].health.flaps, 3);
	assert_int_equal(plain->pools[0].health.errors_per_minute, 100);
	assert_int_equal(some->pools[0].health.unhealthy, LINK_FLAPS | LINK_SLOW);
	assert_int_equal(some->pools[0].health.window_s, 120);
	assert_int_equal(some->pools[0].health.flaps, 3);
	/* Whole or not at all. */
	assert_int_equal(wrong->n_errors, 1);
	assert_int_equal(wrong->pools[0].health.unhealthy, 0);
}

static void who_writes_for_railmate_means_vfs(void **state)
{
	static const struct {
		const char *members;
		enum pool_pfs pfs;
	} rows[] = {
		{ "", PFS_NOTED },
		{ "\"railmate\": null", PFS_NOTED },
		{ "\"railmate\": {}", PFS_NAMED },
		{ "\"railmate\": {\"gid\": \"off\"}", PFS_NAMED },
		{ "\"railmate\": {\"vfsOnly\": null}", PFS_NAMED },
		{ "\"railmate\": {\"vfsOnly\": false}", PFS_TAKEN },
		{ "\"railmate\": {\"VFsOnly\": true}", PFS_NEVER },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		_cleanup_config_ struct config *cfg = parse_pool(rows[i].members);

		assert_int_equal(cfg->pools[0].pfs, rows[i].pfs);
	}
}

static void strict_is_false_unless_it_is_said(void **state)
{
	_cleanup_config_ struct config *plain = parse_pool("\"railmate\": {}");
	_cleanup_config_ struct config *strict = parse_pool("\"railmate\": {\"strict\": true}");

	(void)state;
	assert_false(plain->pools[0].strict);
	assert_true(strict->pools[0].strict);
}

static void gpus_become_rows_of_the_match_table(void **state)
{
	_cleanup_config_ struct config *cfg = parse(
		"{\"railmate\": {\"gpus\": [\n"
		"{\"vendor\": \"10de\", \"classes\": [\"0300\", \"0302\"], \"name\": \"NVIDIA\"},\n"
		"{\"vendor\": \"1FF2\", \"classes\": [\"1200\"], \"name\": \"Acme\"}]},\n"
		"\"resourceList\": [{\"resourceName\": \"a\"}]}");

	(void)state;
	assert_int_equal(cfg->n_gpus, 3);
	assert_int_equal(cfg->gpus[1].vendor, 0x10de);
	assert_int_equal(cfg->gpus[1].class_hi, 0x0302);
	assert_string_equal(cfg->gpus[1].name, "NVIDIA");
	assert_int_equal(cfg->gpus[2].vendor, 0x1ff2);
	assert_string_equal(cfg->gpus[2].name, "Acme");
}

static void rails_are_numbers_of_pfs(void **state)
{
	_cleanup_config_ struct config *cfg =
		parse("{\"railmate\": {\"rails\": {\"ens1f0\": 0, \"0000:3b:00.0\": 1023,\n"
		      "\"ens2f0\": {\"rail\": 3, \"plane\": 1}, \"ens3f0\": {\"rail\": 4}}},\n"
		      "\"resourceList\": [{\"resourceName\": \"a\"}]}");

	(void)state;
	assert_int_equal(cfg->n_rails, 4);
	assert_string_equal(cfg->rails[0].nic, "ens1f0");
	assert_int_equal(cfg->rails[0].rail, 0);
	assert_string_equal(cfg->rails[1].nic, "0000:3b:00.0");
	assert_int_equal(cfg->rails[1].rail, 1023);
	assert_false(cfg->rails[1].has_plane);
	assert_string_equal(cfg->rails[2].nic, "ens2f0");
	assert_int_equal(cfg->rails[2].rail, 3);
	assert_true(cfg->rails[2].has_plane);
	assert_int_equal(cfg->rails[2].plane, 1);
	assert_int_equal(cfg->rails[3].rail, 4);
	assert_false(cfg->rails[3].has_plane);
	assert_int_equal(cfg->n_gpus, 0);
}

static void names_at_the_limit_are_legal(void **state)
{
	static const char *const names[] = {
		"a",
		"A-b_c9",
		"123456789012345678901234567890123456789012345678901234567890123",
	};
	static const char *const prefixes[] = { "x", "nvidia.com", "a-b.c-d", "0.io",
						"kubernetes.io.example" };

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(names); i++) {
		_cleanup_free_ char *text =
			xasprintf("{\"resourceList\": [{\"resourceName\": \"%s\"}]}", names[i]);
		_cleanup_config_ struct config *cfg = parse(text);

		assert_string_equal(cfg->pools[0].name, names[i]);
	}
	for (size_t i = 0; i < ARRAY_LEN(prefixes); i++) {
		_cleanup_free_ char *members = xasprintf("\"resourcePrefix\": \"%s\"", prefixes[i]);
		_cleanup_config_ struct config *cfg = parse_pool(members);

		assert_string_equal(cfg->pools[0].prefix, prefixes[i]);
	}
}

static void warns_with_line_and_nearest_key(void **state)
{
	static const struct {
		const char *text, *warning;
	} rows[] = {
		{ "{\"resourceList\": [{\"resourceName\": \"a\",\n\"selectors\": {\"isRdma\": true,\n\n\"pfName\": [\"x\"]}}]}",
		  "config.json:4: resourceList[0].selectors: unknown key 'pfName' is ignored; did you mean 'pfNames'?" },
		{ "{\"resourceList\": [{\"resourceName\": \"a\"}],\n\"colour\": \"blue\"}",
		  "config.json:2: unknown key 'colour' is ignored; known keys: resourceList, railmate" },
		{ "{\"resourceList\": [{\"resourceName\": \"b\"},\n{\"resourceName\": \"a\",\n\"isRdma\": true}]}",
		  "config.json:3: resourceList[1].isRdma: has NO EFFECT here, the pool is not narrowed by it: move it into 'selectors'" },
		{ "{\"resourceList\": [{\"resourceName\": \"a\", \"sriovMode\": true}]}",
		  "config.json:1: resourceList[0].sriovMode: is of an old format and has NO EFFECT: delete it, and check 'selectors'" },
		{ "{\"resourceList\": [{\"resourceName\": \"a\", \"rootDevices\": [\"02:00.0\"]}]}",
		  "config.json:1: resourceList[0].rootDevices: has NO EFFECT here, the pool is not narrowed by it: move it into 'selectors'" },
		{ "{\"resourceList\": [{\"resourceName\": \"a\", \"SelectorObjs\": []}]}",
		  "config.json:1: resourceList[0].SelectorObjs: 'SelectorObjs' has no effect" },
		{ "{\"resourceList\": [{\"resourceName\": \"a\", \"additionalInfo\": {\"3b:00.2\": {}}}]}",
		  "config.json:1: resourceList[0].additionalInfo.3b:00.2: names no device; keys are \"*\" or a PCI address such as 0000:3b:00.2" },
		{ "{\"resourceList\": [{\"resourceName\": \"a\", \"railmate\": {\"gidd\": \"auto\"}}]}",
		  "config.json:1: resourceList[0].railmate: unknown key 'gidd' is ignored; did you mean 'gid'?" },
		{ "{\"resourceList\": [{\"resourceName\": \"a\"}],\n\"railmate\": {\"colour\": []}}",
		  "config.json:2: railmate: unknown key 'colour' is ignored; known keys: gpus, rails" },
		{ "{\"resourceList\": [{\"resourceName\": \"a\"}], \"bad\\u0007key\": 1}",
		  "config.json:1: unknown key 'bad?key' is ignored; known keys: resourceList, railmate" },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		_cleanup_config_ struct config *cfg = parse(rows[i].text);

		assert_int_equal(cfg->n_warnings, 1);
		assert_string_equal(cfg->warnings[0], rows[i].warning);
	}
}

static void many_warnings_are_counted_not_kept(void **state)
{
	_cleanup_strbuf_ struct strbuf text = STRBUF_INIT;
	_cleanup_config_ struct config *cfg = NULL;

	(void)state;
	strbuf_puts(&text, "{\"resourceList\": [{\"resourceName\": \"a\"}]");
	for (int i = 0; i < 1000; i++)
		strbuf_printf(&text, ",\n\"unknown-%d\": {\"a\": [1, 2.5, \"}\\\"\", null]}", i);
	strbuf_puts(&text, "}");
	cfg = parse(strbuf_str(&text));
	assert_int_equal(cfg->n_warnings, 65);
	assert_true(str_starts(cfg->warnings[63], "config.json:65: "));
	assert_string_equal(cfg->warnings[64], "config.json: 936 more warnings like these");
}

static void without_a_file_every_rdma_vf_is_served(void **state)
{
	_cleanup_config_ struct config *cfg = config_default();

	(void)state;
	assert_int_equal(cfg->n_pools, 1);
	assert_string_equal(cfg->pools[0].resource, "rdma/vf");
	assert_string_equal(cfg->pools[0].prefix, "rdma");
	assert_string_equal(cfg->pools[0].name, "vf");
	assert_int_equal(cfg->pools[0].n_selectors, 0);
	assert_true(cfg->pools[0].is_rdma);
	assert_int_equal(cfg->pools[0].pfs, PFS_NEVER);
	assert_int_equal(cfg->n_warnings, 0);
}

static void free_takes_null(void **state)
{
	(void)state;
	config_free(NULL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(reads_a_pool_with_every_selector),
		cmocka_unit_test(the_default_of_a_pool_is_everything),
		cmocka_unit_test(without_a_default_prefix_it_is_the_peers),
		cmocka_unit_test(keys_match_in_any_case),
		cmocka_unit_test(null_is_absent_everywhere),
		cmocka_unit_test(empty_prefix_and_type_are_absent_as_in_the_peer),
		cmocka_unit_test(takes_what_the_operator_writes_into_its_config_map),
		cmocka_unit_test(selectors_may_be_a_list_and_one_rdma_makes_the_pool_so),
		cmocka_unit_test(idle_foreign_selectors_are_accepted),
		cmocka_unit_test(additional_info_is_sorted_by_device_and_key),
		cmocka_unit_test(reads_our_keys),
		cmocka_unit_test(who_writes_for_railmate_leaves_the_binding_open),
		cmocka_unit_test(health_has_limits_and_makes_nothing_unhealthy_by_itself),
		cmocka_unit_test(who_writes_for_railmate_means_vfs),
		cmocka_unit_test(strict_is_false_unless_it_is_said),
		cmocka_unit_test(gpus_become_rows_of_the_match_table),
		cmocka_unit_test(rails_are_numbers_of_pfs),
		cmocka_unit_test(names_at_the_limit_are_legal),
		cmocka_unit_test(warns_with_line_and_nearest_key),
		cmocka_unit_test(many_warnings_are_counted_not_kept),
		cmocka_unit_test(without_a_file_every_rdma_vf_is_served),
		cmocka_unit_test(free_takes_null),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
