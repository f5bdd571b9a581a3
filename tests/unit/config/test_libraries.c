/* railmate of a pool: GIDs, partitions, profiles and variables; what comes of them, what is
 * refused, what warns. */
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

/* The only pool; line 2 holds the members of its railmate. */
static int parse(const char *members, const char *link_types, struct config **ret, struct err *err)
{
	_cleanup_free_ char *text = xasprintf(
		"{\"resourceList\": [{\"resourceName\": \"vf\", \"selectors\": {\"linkTypes\": [%s], \"isRdma\": true}, \"railmate\": {\n%s}}]}",
		link_types, members);

	return config_parse(text, strlen(text), "config.json", "rdma", ret, NULL, err);
}

static struct config *accepted(const char *members, const char *link_types)
{
	struct config *cfg = NULL;
	struct err err = { 0 };

	if (parse(members, link_types, &cfg, &err) < 0)
		fail_msg("%s", err.msg);
	return cfg;
}

struct row {
	const char *members, *sentence;
};

/* The pool is served without it. */
static void all_left_out(const struct row *rows, size_t n, const char *what)
{
	for (size_t i = 0; i < n; i++) {
		_cleanup_free_ char *sentence =
			xasprintf("config.json:2: resourceList[0].railmate.%s; %s is left out",
				  rows[i].sentence, what);
		_cleanup_config_ struct config *cfg = accepted(rows[i].members, "");

		assert_int_equal(cfg->n_errors, 1);
		assert_string_equal(cfg->errors[0], sentence);
	}
}

static void defaults(const struct pool_config *pool)
{
	assert_int_equal(pool->gid_family, GID_FAMILY_ANY);
	assert_null(pool->gid_range);
	assert_int_equal(pool->roce_version, 2);
	assert_int_equal(pool->profiles, PROFILE_NCCL);
	assert_false(pool->profiles_named);
	assert_int_equal(pool->topology_file, TOPOLOGY_FILE_AUTO);
	assert_int_equal(pool->nccl_rails, NCCL_RAILS_AUTO);
	assert_int_equal(pool->pkey, -1);
	assert_false(pool->cufile);
	assert_true(pool->probe);
	assert_int_equal(pool->n_env, 0);
	assert_null(pool->ucx_devices);
}

static void without_a_word_a_pool_is_nccls(void **state)
{
	static const char *const texts[] = {
		"{\"resourceList\": [{\"resourceName\": \"vf\"}]}",
		"{\"resourceList\": [{\"resourceName\": \"vf\", \"railmate\": null}]}",
		"{\"resourceList\": [{\"resourceName\": \"vf\",\n"
		"\"railmate\": {\"gidFamily\": null, \"gidRange\": null, \"roceVersion\": null,\n"
		"\"pkey\": null, \"profiles\": null, \"topologyFile\": null, \"ncclRails\": null,\n"
		"\"cufile\": null, \"probe\": null, \"env\": null}}]}",
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(texts); i++) {
		_cleanup_config_ struct config *cfg = NULL;

		assert_int_equal(
			config_parse(texts[i], strlen(texts[i]), "x", "rdma", &cfg, NULL, NULL), 0);
		defaults(&cfg->pools[0]);
	}
}

static void without_a_file_too(void **state)
{
	_cleanup_config_ struct config *cfg = config_default();

	(void)state;
	defaults(&cfg->pools[0]);
}

static void reads_every_key(void **state)
{
	static const uint8_t range[16] = { [0] = 0xfd, [7] = 0x40 };
	_cleanup_config_ struct config *cfg = accepted(
		"\"gidFamily\": \"ipv6\", \"gidRange\": \"fd00:0:0:40::/60\", \"roceVersion\": 1,\n"
		"\"pkey\": \"0x8001\", \"profiles\": [\"oneccl\", \"nccl\", \"ucx\", \"ucx\"],\n"
		"\"topologyFile\": \"never\", \"ncclRails\": \"always\", \"cufile\": true,\n"
		"\"probe\": false,\n"
		"\"env\": {\"UCX_TLS\": \"rc\", \"NCCL_IB_TC\": \"106\", \"NCCL_IB_SL\": null,\n"
		"\"UCX_NET_DEVICES\": \"eth0,net9\"}",
		"");
	const struct pool_config *pool = &cfg->pools[0];

	(void)state;
	assert_int_equal(cfg->n_warnings, 0);
	assert_int_equal(pool->gid_family, GID_FAMILY_IPV6);
	assert_string_equal(pool->gid_range, "fd00:0:0:40::/60");
	assert_memory_equal(pool->gid_range_addr, range, sizeof(range));
	assert_int_equal(pool->gid_range_bits, 60);
	assert_int_equal(pool->roce_version, 1);
	assert_int_equal(pool->pkey, 0x8001);
	assert_int_equal(pool->profiles, PROFILE_NCCL | PROFILE_UCX | PROFILE_ONECCL);
	assert_true(pool->profiles_named);
	assert_int_equal(pool->topology_file, TOPOLOGY_FILE_NEVER);
	assert_int_equal(pool->nccl_rails, NCCL_RAILS_ALWAYS);
	assert_true(pool->cufile);
	assert_false(pool->probe);
	assert_int_equal(pool->n_cufile_base + pool->n_cufile_properties, 0);
	assert_int_equal(pool->n_env, 2);
	assert_string_equal(pool->env[0].name, "NCCL_IB_TC");
	assert_string_equal(pool->env[0].value, "106");
	assert_string_equal(pool->env[1].name, "UCX_TLS");
	assert_string_equal(pool->ucx_devices, "eth0,net9");
}

static void a_range_of_ipv4_is_mapped_and_says_the_family(void **state)
{
	static const uint8_t range[16] = { [10] = 0xff, [11] = 0xff, [12] = 10, [13] = 32 };
	_cleanup_config_ struct config *four = accepted("\"gidRange\": \"10.32.0.0/11\"", "");
	_cleanup_config_ struct config *all = accepted("\"gidRange\": \"0.0.0.0/0\"", "");
	_cleanup_config_ struct config *six =
		accepted("\"gidRange\": \"fd00::/8\", \"gidFamily\": \"any\"", "");

	(void)state;
	assert_memory_equal(four->pools[0].gid_range_addr, range, sizeof(range));
	assert_int_equal(four->pools[0].gid_range_bits, 96 + 11);
	assert_int_equal(four->pools[0].gid_family, GID_FAMILY_IPV4);
	assert_int_equal(all->pools[0].gid_range_bits, 96);
	assert_int_equal(six->pools[0].gid_range_bits, 8);
	assert_int_equal(six->pools[0].gid_family, GID_FAMILY_IPV6);
}

static void no_profile_is_none(void **state)
{
	static const char *const texts[] = { "\"profiles\": []", "\"profiles\": [\"none\"]" };

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(texts); i++) {
		_cleanup_config_ struct config *cfg = accepted(texts[i], "");

		assert_int_equal(cfg->pools[0].profiles, 0);
		assert_true(cfg->pools[0].profiles_named);
	}
}

static void partitions_at_the_limits(void **state)
{
	static const struct {
		const char *text;
		int pkey;
	} rows[] = { { "\"pkey\": \"0x1\"", 1 },
		     { "\"pkey\": \"0x7fff\"", 0x7fff },
		     { "\"pkey\": \"0xFFFF\"", 0xffff } };

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		_cleanup_config_ struct config *cfg = accepted(rows[i].text, "");

		assert_int_equal(cfg->pools[0].pkey, rows[i].pkey);
	}
}

static void addresses_that_are_no_range(void **state)
{
	static const struct row rows[] = {
		{ "\"gidRange\": \"10.0.0.0\"",
		  "gidRange: '10.0.0.0' is not a range of addresses; it looks like 10.0.0.0/8 or fd00::/8" },
		{ "\"gidRange\": \"10.0.0/8\"",
		  "gidRange: '10.0.0/8' is not a range of addresses; it looks like 10.0.0.0/8 or fd00::/8" },
		{ "\"gidRange\": \"10.0.0.0/33\"",
		  "gidRange: '10.0.0.0/33' is not a range of addresses; it looks like 10.0.0.0/8 or fd00::/8" },
		{ "\"gidRange\": \"fd00::/129\"",
		  "gidRange: 'fd00::/129' is not a range of addresses; it looks like 10.0.0.0/8 or fd00::/8" },
		{ "\"gidRange\": \"fd00::/\"",
		  "gidRange: 'fd00::/' is not a range of addresses; it looks like 10.0.0.0/8 or fd00::/8" },
		{ "\"gidRange\": \"/8\"",
		  "gidRange: '/8' is not a range of addresses; it looks like 10.0.0.0/8 or fd00::/8" },
		{ "\"gidRange\": \"\"",
		  "gidRange: '' is not a range of addresses; it looks like 10.0.0.0/8 or fd00::/8" },
		{ "\"gidRange\": \"1:1:1:1:1:1:1:1:1:1:1:1:1:1:1:1:1:1:1:1:1:1:1:1/8\"",
		  "gidRange: '1:1:1:1:1:1:1:1:1:1:1:1:1:1:1:1:1:1:1:1:1:1:1:1/8' is not a range of addresses; it looks like 10.0.0.0/8 or fd00::/8" },
		{ "\"gidRange\": \"10.0.0.7/8\"",
		  "gidRange: '10.0.0.7/8' is the address of a host: all bits behind the prefix must be 0" },
		{ "\"gidRange\": \"fd00::1/64\"",
		  "gidRange: 'fd00::1/64' is the address of a host: all bits behind the prefix must be 0" },
		{ "\"gidRange\": \"::ffff:10.0.0.0/104\"",
		  "gidRange: '::ffff:10.0.0.0/104' is a range of IPv4: write it as one, such as 10.0.0.0/8" },
		{ "\"gidRange\": 8", "gidRange: must be a string, not a number" },
		{ "\"gidFamily\": \"IPv4\"",
		  "gidFamily: 'IPv4' is not legal; legal values: any, ipv4, ipv6" },
	};

	(void)state;
	all_left_out(rows, ARRAY_LEN(rows), "the key");
}

/* Of the object: the two keys may stand in either order. */
static void a_range_of_the_other_family(void **state)
{
	static const char *const texts[] = {
		"\"gidRange\": \"10.0.0.0/8\", \"gidFamily\": \"ipv6\"",
		"\"gidFamily\": \"ipv4\", \"gidRange\": \"fd00::/8\""
	};
	static const char *const sentences[] = {
		"config.json:1: resourceList[0].railmate: gidRange '10.0.0.0/8' has no IPv6 address, and gidFamily asks for one; gidFamily is left out",
		"config.json:1: resourceList[0].railmate: gidRange 'fd00::/8' has no IPv4 address, and gidFamily asks for one; gidFamily is left out",
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(texts); i++) {
		_cleanup_config_ struct config *cfg = accepted(texts[i], "");

		assert_int_equal(cfg->n_errors, 1);
		assert_string_equal(cfg->errors[0], sentences[i]);
		assert_int_equal(cfg->pools[0].gid_family, i ? GID_FAMILY_IPV6 : GID_FAMILY_IPV4);
	}
}

static void values_that_are_not_legal(void **state)
{
	static const struct row rows[] = {
		{ "\"roceVersion\": 3", "roceVersion: must be a whole number from 1 to 2" },
		{ "\"roceVersion\": 1.5", "roceVersion: must be a whole number from 1 to 2" },
		{ "\"roceVersion\": \"2\"", "roceVersion: must be a whole number from 1 to 2" },
		{ "\"pkey\": \"0x0000\"",
		  "pkey: '0x0000' is not a P_Key; legal values: \"0x0001\" to \"0x7fff\", and with full membership \"0x8001\" to \"0xffff\"" },
		{ "\"pkey\": \"0x8000\"",
		  "pkey: '0x8000' is not a P_Key; legal values: \"0x0001\" to \"0x7fff\", and with full membership \"0x8001\" to \"0xffff\"" },
		{ "\"pkey\": \"0x10000\"",
		  "pkey: '0x10000' is not a P_Key; legal values: \"0x0001\" to \"0x7fff\", and with full membership \"0x8001\" to \"0xffff\"" },
		{ "\"pkey\": \"8001\"",
		  "pkey: '8001' is not a P_Key; legal values: \"0x0001\" to \"0x7fff\", and with full membership \"0x8001\" to \"0xffff\"" },
		{ "\"pkey\": 32769", "pkey: must be a string, not a number" },
		{ "\"profiles\": \"nccl\"", "profiles: must be a list, not a string" },
		{ "\"profiles\": [\"nccl\", \"none\"]",
		  "profiles: 'none' stands alone, or is left out" },
		{ "\"profiles\": [\"none\", \"none\"]",
		  "profiles: 'none' stands alone, or is left out" },
		{ "\"topologyFile\": \"on\"",
		  "topologyFile: 'on' is not legal; legal values: auto, always, never" },
		{ "\"ncclRails\": true", "ncclRails: must be a string, not true or false" },
		{ "\"ncclRails\": \"on\"",
		  "ncclRails: 'on' is not legal; legal values: auto, always, never" },
		{ "\"cufile\": \"yes\"",
		  "cufile: must be true, false or the members of a cufile.json, not a string" },
		{ "\"cufile\": {\"properties\": 1}",
		  "cufile.properties: must be an object, not a number" },
	};

	(void)state;
	all_left_out(rows, ARRAY_LEN(rows), "the key");
}

static void variables_that_are_left_out(void **state)
{
	static const struct row rows[] = {
		{ "\"env\": {\"A B\": \"x\"}",
		  "env.A B: 'A B' is not the name of a variable that a pool can set" },
		{ "\"env\": {\"RAILMATE_X\": \"x\"}",
		  "env.RAILMATE_X: 'RAILMATE_X' is not the name of a variable that a pool can set" },
		{ "\"env\": {\"NCCL_NEW\": 1}", "env.NCCL_NEW: must be a string, not a number" },
		{ "\"env\": {\"NCCL_NEW\": \"a b\"}",
		  "env.NCCL_NEW: 'a b' is not legal; legal values: a word without blanks" },
		{ "\"env\": {\"NCCL_IB_TC\": \"1\", \"nccl_ib_TC\": \"2\"}",
		  "env.nccl_ib_TC: repeats the variable 'NCCL_IB_TC' of line 2 (case does not count)" },
		{ "\"env\": {\"NCCL_IB_TC\": 106}",
		  "env.NCCL_IB_TC: must be a string, not a number" },
		{ "\"env\": {\"NCCL_IB_TC\": \"256\"}",
		  "env.NCCL_IB_TC: '256' is not legal; legal values: 0 to 255" },
		{ "\"env\": {\"NCCL_SOCKET_FAMILY\": \"AF_INET4\"}",
		  "env.NCCL_SOCKET_FAMILY: 'AF_INET4' is not legal; legal values: AF_INET or AF_INET6" },
		{ "\"env\": {\"NCCL_IB_HCA\": \"mlx5\"}",
		  "env.NCCL_IB_HCA: railmate sets this, for each container: the VFs of the container, exact, each with its port" },
		{ "\"env\": {\"NCCL_IB_GID_INDEX\": \"3\"}",
		  "env.NCCL_IB_GID_INDEX: railmate sets this; the key 'gid' of the pool says how" },
		{ "\"env\": {\"NCCL_TOPO_FILE\": \"/x\"}",
		  "env.NCCL_TOPO_FILE: railmate sets this; the key 'topologyFile' of the pool says how" },
		{ "\"env\": {\"NCCL_IB_ADDR_RANGE\": \"10.0.0.0/8\"}",
		  "env.NCCL_IB_ADDR_RANGE: railmate sets this; the key 'gidRange' of the pool says how" },
	};

	(void)state;
	all_left_out(rows, ARRAY_LEN(rows), "the variable");
}

static void unknown_variables_are_taken_with_a_warning(void **state)
{
	static const struct row rows[] = {
		{ "NCCL_IB_TCC", "; did you mean 'NCCL_IB_TC'?" },
		{ "nccl_ib_tc", "; did you mean 'NCCL_IB_TC'?" },
		{ "NCCL_OF_NEXT_YEAR", " (docs/nccl-variables.md lists the known ones)" },
		{ "HSA_OF_NEXT_YEAR", " (docs/nccl-variables.md lists the known ones)" },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		_cleanup_free_ char *members =
			xasprintf("\"env\": {\"%s\": \"1\"}", rows[i].members);
		_cleanup_free_ char *sentence = xasprintf(
			"config.json:2: resourceList[0].railmate.env.%s: '%s' is not known, and taken as it is%s",
			rows[i].members, rows[i].members, rows[i].sentence);
		_cleanup_config_ struct config *cfg = accepted(members, "");

		assert_int_equal(cfg->n_errors, 0);
		assert_int_equal(cfg->n_warnings, 1);
		assert_string_equal(cfg->warnings[0], sentence);
		assert_int_equal(cfg->pools[0].n_env, 1);
		assert_string_equal(cfg->pools[0].env[0].name, rows[i].members);
		assert_string_equal(cfg->pools[0].env[0].value, "1");
	}
}

static void one_bad_variable_leaves_the_others(void **state)
{
	_cleanup_config_ struct config *cfg = accepted(
		"\"env\": {\"NCCL_IB_TC\": \"256\", \"NCCL_IB_SL\": \"3\"}, \"gid\": \"three\", \"network\": \"host\"",
		"");

	(void)state;
	assert_int_equal(cfg->n_errors, 2);
	assert_int_equal(cfg->pools[0].n_env, 1);
	assert_string_equal(cfg->pools[0].env[0].name, "NCCL_IB_SL");
	assert_int_equal(cfg->pools[0].gid, GID_AUTO);
	assert_int_equal(cfg->pools[0].network, NETWORK_HOST);
}

static void an_unknown_profile_leaves_the_others(void **state)
{
	static const char sentence[] =
		"config.json:2: resourceList[0].railmate.profiles[%d]: 'mpi' is not legal; legal "
		"values: nccl, rccl, ucx, nvshmem, mscclpp, ofi, oneccl, nixl, none; the profile is left out";
	_cleanup_config_ struct config *two = accepted("\"profiles\": [\"ucx\", \"mpi\"]", "");
	_cleanup_config_ struct config *one = accepted("\"profiles\": [\"mpi\"]", "");
	_cleanup_free_ char *of_two = xasprintf(sentence, 1), *of_one = xasprintf(sentence, 0);

	(void)state;
	assert_string_equal(two->errors[0], of_two);
	assert_int_equal(two->pools[0].profiles, PROFILE_UCX);
	assert_string_equal(one->errors[0], of_one);
	assert_int_equal(one->pools[0].profiles, PROFILE_NCCL);
}

static void threads_and_sockets_are_limited_together(void **state)
{
	_cleanup_config_ struct config *legal = accepted(
		"\"env\": {\"NCCL_SOCKET_NTHREADS\": \"8\", \"NCCL_NSOCKS_PERTHREAD\": \"8\"}", "");
	_cleanup_config_ struct config *not = accepted(
		"\"env\": {\"NCCL_SOCKET_NTHREADS\": \"16\", \"NCCL_NSOCKS_PERTHREAD\": \"5\"}",
		"");

	(void)state;
	assert_int_equal(legal->n_warnings, 0);
	assert_int_equal(not ->n_errors, 1);
	assert_string_equal(
		not ->errors[0],
		"config.json:1: resourceList[0]: NCCL_SOCKET_NTHREADS times NCCL_NSOCKS_PERTHREAD is 80; at most 64 is legal; the second is left out");
	assert_int_equal(not ->pools[0].n_env, 1);
	assert_string_equal(not ->pools[0].env[0].name, "NCCL_SOCKET_NTHREADS");
}

static void what_is_legal_and_no_good_is_warned_of(void **state)
{
	static const struct {
		const char *members, *link_types, *warning;
	} rows[] = {
		{ "\"env\": {\"NCCL_NET_GDR_LEVEL\": \"SYS\"}", "",
		  "config.json:2: resourceList[0].railmate.env.NCCL_NET_GDR_LEVEL: is better left alone: SYS sends through the link between sockets, mostly slower than without; LOC is never; 4 and 5 are SYS" },
		{ "\"cufile\": {\"fs\": {}, \"properties\": {\"rdma_dev_addr_list\": []}}", "",
		  "config.json:2: resourceList[0].railmate.cufile.properties: rdma_dev_addr_list is what railmate writes, for each container" },
		{ "\"env\": {\"NCCL_IB_CUDA_SUPPORT\": \"1\"}", "",
		  "config.json:2: resourceList[0].railmate.env.NCCL_IB_CUDA_SUPPORT: was removed in release 2.4.0 and does nothing: GPUDirect RDMA is used where it works" },
		{ "\"env\": {\"NCCL_DEBUG\": \"INFO\"}", "",
		  "config.json:2: resourceList[0].railmate.env.NCCL_DEBUG: is for finding out, not to stay: each process writes hundreds of lines, or one for each call" },
		{ "\"env\": {\"NCCL_DEBUG\": \"WARN\", \"NCCL_DEBUG_SUBSYS\": \"NET,ALL\"}", "",
		  "config.json:2: resourceList[0].railmate.env.NCCL_DEBUG_SUBSYS: ALL is for finding out, not to stay: railmatectl verify wants INIT,NET,ENV" },
		{ "\"env\": {\"NCCL_IB_TIMEOUT\": \"22\", \"NCCL_DEBUG_SUBSYS\": \"ALLOC\"}", "",
		  "config.json:2: resourceList[0].railmate.env.NCCL_IB_TIMEOUT: waits 17 seconds or more for each of seven tries: a fault is hidden for minutes, and the default is 20" },
		{ "\"env\": {\"NCCL_IB_TIMEOUT\": \"21\", \"NCCL_COLLNET_ENABLE\": \"1\", \"SHARP_COLL_ENABLE_SAT\": \"1\", \"UCX_TLS\": \"rc\"}",
		  "",
		  "config.json:1: resourceList[0]: UCX_TLS is set, and profiles names no library that reads it" },
		{ "\"env\": {\"UCX_TLS\": \"rc\"}", "",
		  "config.json:1: resourceList[0]: UCX_TLS is set, and profiles names no library that reads it" },
		{ "\"env\": {\"UCX_NET_DEVICES\": \"eth0\"}", "",
		  "config.json:1: resourceList[0]: UCX_NET_DEVICES is set, and profiles does not name ucx: it does nothing" },
		{ "\"gid\": \"fixed:3\"", "\"infiniband\"",
		  "config.json:1: resourceList[0]: gid is fixed:3 and linkTypes is infiniband: InfiniBand has no index, no container will start" },
		{ "\"gidRange\": \"10.0.0.0/8\"", "\"infiniband\"",
		  "config.json:1: resourceList[0]: gidFamily, gidRange and roceVersion are for RoCE, and linkTypes is infiniband: they do nothing" },
		{ "\"roceVersion\": 1", "\"infiniband\"",
		  "config.json:1: resourceList[0]: gidFamily, gidRange and roceVersion are for RoCE, and linkTypes is infiniband: they do nothing" },
		{ "\"profiles\": [\"nixl\"], \"env\": {\"UCX_NET_DEVICES\": \"eth0\"}", "",
		  "config.json:1: resourceList[0]: UCX_NET_DEVICES is set, and profiles has nixl, which takes VFs alone: it does nothing" },
		{ "\"profiles\": [\"nixl\"], \"strictTransport\": true, \"env\": {\"UCX_TLS\": \"rc\"}",
		  "",
		  "config.json:1: resourceList[0]: strictTransport is true, and env has UCX_TLS, which counts" },
		{ "\"strictTransport\": true", "",
		  "config.json:1: resourceList[0]: strictTransport is true, and profiles names neither ucx nor nixl: it does nothing" },
		{ "\"env\": {\"NCCL_IB_TC\": \"106\"}", "\"infiniband\"",
		  "config.json:1: resourceList[0]: NCCL_IB_TC is for RoCE, and linkTypes is infiniband: it does nothing" },
		{ "\"pkey\": \"0x8001\"", "\"ether\"",
		  "config.json:1: resourceList[0]: pkey is for InfiniBand, and linkTypes is ether: it does nothing" },
		{ "\"gid\": \"off\", \"profiles\": [\"mscclpp\"]", "",
		  "config.json:1: resourceList[0]: gid is off and mscclpp is a profile: on RoCE it works with MSCCLPP_IB_GID_INDEX only, which is not set then" },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		_cleanup_config_ struct config *cfg = accepted(rows[i].members, rows[i].link_types);

		assert_int_equal(cfg->n_warnings, 1);
		assert_string_equal(cfg->warnings[0], rows[i].warning);
	}
}

static void nixl_is_ucx_without_tcp(void **state)
{
	_cleanup_config_ struct config *cfg = accepted(
		"\"profiles\": [\"nixl\"], \"strictTransport\": true, \"env\": {\"UCX_LOG_LEVEL\": \"info\"}",
		"");
	_cleanup_config_ struct config *loose = accepted("\"profiles\": [\"nixl\"]", "");
	_cleanup_config_ struct config *bare =
		accepted("\"profiles\": [\"ucx\"], \"strictTransport\": true", "");

	(void)state;
	assert_int_equal(cfg->n_warnings, 0);
	assert_int_equal(cfg->pools[0].profiles, PROFILE_UCX | PROFILE_NIXL);
	assert_int_equal(cfg->pools[0].n_env, 2);
	assert_string_equal(cfg->pools[0].env[0].name, "UCX_LOG_LEVEL");
	assert_string_equal(cfg->pools[0].env[1].name, "UCX_TLS");
	assert_string_equal(cfg->pools[0].env[1].value, "^tcp");
	assert_int_equal(loose->pools[0].n_env, 0);
	assert_int_equal(bare->pools[0].n_env, 1);
}

static void what_goes_together_is_not(void **state)
{
	static const struct {
		const char *members, *link_types;
	} rows[] = {
		{ "\"gid\": \"fixed:3\"", "\"ether\", \"infiniband\"" },
		{ "\"gid\": \"fixed:3\", \"env\": {\"NCCL_IB_TC\": \"106\"}", "\"ether\"" },
		{ "\"gid\": \"fixed:3\", \"env\": {\"NCCL_IB_TC\": \"106\"}", "" },
		{ "\"pkey\": \"0x8001\"", "\"infiniband\"" },
		{ "\"pkey\": \"0x8001\"", "" },
		{ "\"gid\": \"off\", \"profiles\": [\"mscclpp\"]", "\"infiniband\"" },
		{ "\"gid\": \"auto\", \"profiles\": [\"mscclpp\"]", "" },
		{ "\"profiles\": [\"ucx\"], \"env\": {\"UCX_NET_DEVICES\": \"eth0\", \"UCX_TLS\": \"rc\"}",
		  "" },
		{ "\"profiles\": [\"rccl\"], \"env\": {\"NCCL_IB_TC\": \"106\"}", "" },
		{ "\"env\": {\"NCCL_IB_RESILIENCY_PORT_FAILOVER\": \"1\", \"NCCL_IB_RESILIENCY_PORT_RECOVERY\": \"1\","
		  "\"NCCL_IB_SUBNET_AWARE_ROUTING\": \"1\", \"NCCL_IB_RAIL_POLICY\": \"NONE\"}",
		  "" },
		{ "\"profiles\": [\"ucx\"], \"env\": {\"UCX_SINGLE_NET_DEVICE\": \"y\", \"UCX_MAX_RMA_RAILS\": \"2\","
		  "\"UCX_IB_PCI_RELAXED_ORDERING\": \"try\", \"UCX_IB_DIRECT_NIC\": \"n\","
		  "\"UCX_IB_ROCE_REACHABILITY_MODE\": \"all\"}",
		  "" },
		{ "\"profiles\": [\"nvshmem\"], \"env\": {\"NVSHMEM_NETDEVS_POLICY\": \"AUTO\"}",
		  "" },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		_cleanup_config_ struct config *cfg = accepted(rows[i].members, rows[i].link_types);

		assert_int_equal(cfg->n_warnings, 0);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(without_a_word_a_pool_is_nccls),
		cmocka_unit_test(without_a_file_too),
		cmocka_unit_test(reads_every_key),
		cmocka_unit_test(a_range_of_ipv4_is_mapped_and_says_the_family),
		cmocka_unit_test(no_profile_is_none),
		cmocka_unit_test(partitions_at_the_limits),
		cmocka_unit_test(addresses_that_are_no_range),
		cmocka_unit_test(a_range_of_the_other_family),
		cmocka_unit_test(values_that_are_not_legal),
		cmocka_unit_test(variables_that_are_left_out),
		cmocka_unit_test(unknown_variables_are_taken_with_a_warning),
		cmocka_unit_test(one_bad_variable_leaves_the_others),
		cmocka_unit_test(nixl_is_ucx_without_tcp),
		cmocka_unit_test(an_unknown_profile_leaves_the_others),
		cmocka_unit_test(threads_and_sockets_are_limited_together),
		cmocka_unit_test(what_is_legal_and_no_good_is_warned_of),
		cmocka_unit_test(what_goes_together_is_not),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
