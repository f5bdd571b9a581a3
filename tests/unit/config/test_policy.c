/* The table of variables: is it whole, and does it tell right values from wrong ones? */
#include <regex.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/arena.h"
#include "base/mem.h"
#include "base/str.h"
#include "config/config.h"
#include "config/config-internal.h"
#include "config/policy.h"

static void names_are_there_once(void **state)
{
	(void)state;
	assert_true(n_policy_vars > 50);
	for (size_t i = 0; i < n_policy_vars; i++)
		assert_ptr_equal(policy_find(policy_vars[i].name), &policy_vars[i]);
	assert_null(policy_find("nccl_ib_tc"));
	assert_null(policy_find(""));
}

static void every_row_says_what_its_class_needs(void **state)
{
	(void)state;
	for (size_t i = 0; i < n_policy_vars; i++) {
		const struct policy_var *v = &policy_vars[i];

		if (!v->meaning || !v->meaning[0] || !v->profiles)
			fail_msg("%s has no meaning or no library", v->name);
		if (v->class == POLICY_RISKY && !v->risk)
			fail_msg("%s is risky and does not say why", v->name);
		if ((v->class == POLICY_GONE) != (v->removed != NULL))
			fail_msg("%s is gone without a release, or has one", v->name);
		if (v->key && v->class != POLICY_OURS)
			fail_msg("%s is not ours and has a key", v->name);
		if ((v->class == POLICY_FREE || v->class == POLICY_RISKY) && !v->otherwise)
			fail_msg("%s has no default", v->name);
	}
}

static void every_legal_value_can_be_told(void **state)
{
	_cleanup_arena_ struct arena *arena = arena_new(4096);

	(void)state;
	for (size_t i = 0; i < n_policy_vars; i++) {
		const struct policy_var *v = &policy_vars[i];
		const struct policy_legal *l = &v->legal;
		regex_t compiled;

		if (v->class == POLICY_OURS)
			continue;
		assert_true(policy_legal_text(v, arena)[0]);
		if (l->kind == POLICY_NUMBER)
			assert_true(l->min < l->max);
		if (l->kind == POLICY_WORD || l->kind == POLICY_LIST)
			assert_non_null(l->words);
		if (l->pattern) {
			assert_non_null(l->shape);
			assert_int_equal(regcomp(&compiled, l->pattern, REG_EXTENDED | REG_NOSUB),
					 0);
			regfree(&compiled);
		}
	}
}

static void values_in_range_are_taken(void **state)
{
	static const struct {
		const char *name, *value;
	} rows[] = {
		{ "NCCL_NET_MERGE_LEVEL", "P2C" },
		{ "NCCL_NET_MERGE_LEVEL", "PXN" },
		{ "UCX_PROTO_INFO", "auto" },
		{ "UCX_PROTO_INFO", "*tag*gpu*" },
		{ "NCCL_IB_TC", "0" },
		{ "NCCL_IB_TC", "255" },
		{ "NCCL_IB_SL", "15" },
		{ "NCCL_IB_TIMEOUT", "31" },
		{ "NCCL_IB_QPS_PER_CONNECTION", "128" },
		{ "NCCL_CROSS_NIC", "2" },
		{ "NCCL_NET_GDR_LEVEL", "PHB" },
		{ "NCCL_NET_GDR_LEVEL", "3" },
		{ "NCCL_NETDEVS_POLICY", "MAX:2" },
		{ "NCCL_NETDEVS_POLICY", "AUTO" },
		{ "NCCL_SOCKET_IFNAME", "eth0" },
		{ "NCCL_SOCKET_IFNAME", "^docker,lo" },
		{ "NCCL_SOCKET_IFNAME", "=eth0,net1" },
		{ "NCCL_SOCKET_IFNAME", "^=eth0.100" },
		{ "NCCL_SOCKET_FAMILY", "AF_INET6" },
		{ "NCCL_OOB_NET_IFNAME", "=mlx5_1:1,mlx5_2" },
		{ "NCCL_NET_FORCE_MERGE", "mlx5_0,mlx5_1;mlx5_2,mlx5_3" },
		{ "NCCL_NET", "AWS" },
		{ "NCCL_DEBUG_SUBSYS", "INIT,NET,^COLL" },
		{ "NCCL_DEBUG_SUBSYS", "ALL" },
		{ "NCCL_DEBUG_FILE", "/tmp/nccl.%h.%p" },
		{ "UCX_IB_TRAFFIC_CLASS", "auto" },
		{ "UCX_IB_TRAFFIC_CLASS", "106" },
		{ "UCX_TLS", "rc,cuda,sm" },
		{ "NVSHMEM_IB_GID_INDEX", "-1" },
		{ "FI_PROVIDER", "verbs;ofi_rxm" },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		const struct policy_var *v = policy_find(rows[i].name);

		assert_non_null(v);
		if (!policy_accepts(v, rows[i].value))
			fail_msg("%s=%s is refused", rows[i].name, rows[i].value);
	}
}

static void other_values_are_not(void **state)
{
	static const struct {
		const char *name, *value;
	} rows[] = {
		{ "NCCL_IB_TC", "256" },
		{ "NCCL_IB_TC", "-1" },
		{ "NCCL_IB_TC", "" },
		{ "NCCL_IB_TC", "106 " },
		{ "NCCL_IB_TC", "0x6a" },
		{ "NCCL_IB_TC", "99999999999999999999" },
		{ "NCCL_IB_SL", "16" },
		{ "NCCL_IB_TIMEOUT", "32" },
		{ "NCCL_IB_RETRY_CNT", "8" },
		{ "NCCL_IB_QPS_PER_CONNECTION", "0" },
		{ "NCCL_IB_QPS_PER_CONNECTION", "129" },
		{ "NCCL_CROSS_NIC", "3" },
		{ "NCCL_NET_GDR_LEVEL", "NODE" },
		{ "NCCL_NET_GDR_LEVEL", "PHB SYS" },
		{ "NCCL_NETDEVS_POLICY", "MAX:" },
		{ "NCCL_NETDEVS_POLICY", "MAX:0" },
		{ "NCCL_SOCKET_IFNAME", "=" },
		{ "NCCL_SOCKET_IFNAME", "=^eth0" },
		{ "NCCL_SOCKET_IFNAME", "eth0,,eth1" },
		{ "NCCL_SOCKET_IFNAME", "eth0\nNCCL_IB_DISABLE=1" },
		{ "NCCL_SOCKET_FAMILY", "ipv4" },
		{ "NCCL_NET_FORCE_MERGE", ";mlx5_0" },
		{ "NCCL_NET", "AWS Libfabric\x7f" },
		{ "NCCL_DEBUG", "info" },
		{ "NCCL_DEBUG_SUBSYS", "INIT,NETS" },
		{ "NCCL_DEBUG_SUBSYS", "INIT," },
		{ "NCCL_DEBUG_SUBSYS", "^" },
		{ "NCCL_NET_MERGE_LEVEL", "NVL" },
		{ "UCX_PROTO_INFO", "*tag* *put*" },
		{ "UCX_PROTO_INFO", "" },
		{ "UCX_IB_TRAFFIC_CLASS", "aut" },
		{ "UCX_NET_DEVICES", "mlx5_0:1" },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		const struct policy_var *v = policy_find(rows[i].name);

		assert_non_null(v);
		if (policy_accepts(v, rows[i].value))
			fail_msg("%s=%s is taken", rows[i].name, rows[i].value);
	}
}

static void a_value_has_a_length_at_most(void **state)
{
	const struct policy_var *v = policy_find("NCCL_ALGO");
	char text[POLICY_BYTES_MAX + 2];

	(void)state;
	memset(text, 'a', sizeof(text));
	text[sizeof(text) - 1] = '\0';
	assert_false(policy_accepts(v, text));
	text[sizeof(text) - 2] = '\0';
	assert_true(policy_accepts(v, text));
}

static void the_name_that_was_meant_is_found(void **state)
{
	static const struct {
		const char *written, *meant;
	} rows[] = {
		{ "NCCL_IB_TCC", "NCCL_IB_TC" },
		{ "nccl_ib_tc", "NCCL_IB_TC" },
		{ "NCCL_TC", "NCCL_IB_TC" },
		{ "NCCL_IB_TIMOUT", "NCCL_IB_TIMEOUT" },
		{ "NCCL_IB_TIEMOUT", "NCCL_IB_TIMEOUT" },
		{ "NCCL_TIMEOUT", "NCCL_IB_TIMEOUT" },
		{ "NCCL_GID_INDEX", "NCCL_IB_GID_INDEX" },
		{ "RCCL_IB_HCA", "NCCL_IB_HCA" },
		{ "NCCL_SOCKET_IFNAMES", "NCCL_SOCKET_IFNAME" },
		{ "UCX_TSL", "UCX_TLS" },
		{ "NCCL_FOO", NULL },
		{ "NCCL_IB_TRAFFIC_CLASS", NULL },
		{ "PATH", NULL },
		{ "", NULL },
		{ "_", NULL },
		{ "NCCL_THIS_NAME_IS_LONGER_THAN_ANY_OTHER_AND_NOTHING_IS_NEAR_TO_IT_AT_ALL",
		  NULL },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		const struct policy_var *near = policy_nearest(rows[i].written);

		if (!str_eq(near ? near->name : NULL, rows[i].meant))
			fail_msg("%s: %s", rows[i].written, near ? near->name : "nothing");
	}
}

static void legal_values_read_well(void **state)
{
	static const struct {
		const char *name, *text;
	} rows[] = {
		{ "NCCL_IB_TC", "0 to 255" },
		{ "UCX_IB_SL", "0 to 15 or auto" },
		{ "NCCL_SOCKET_FAMILY", "AF_INET or AF_INET6" },
		{ "NCCL_P2P_LEVEL", "0 to 5, LOC, NVL, PIX, PXB, PHB or SYS" },
		{ "NCCL_NETDEVS_POLICY", "AUTO, ALL or MAX:N" },
	};
	_cleanup_arena_ struct arena *arena = arena_new(4096);

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(rows); i++)
		assert_string_equal(policy_legal_text(policy_find(rows[i].name), arena),
				    rows[i].text);
	assert_non_null(strstr(policy_legal_text(policy_find("NCCL_DEBUG_SUBSYS"), arena),
			       "RAS, DESTROY or ALL; several with commas"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(names_are_there_once),
		cmocka_unit_test(every_row_says_what_its_class_needs),
		cmocka_unit_test(every_legal_value_can_be_told),
		cmocka_unit_test(values_in_range_are_taken),
		cmocka_unit_test(other_values_are_not),
		cmocka_unit_test(a_value_has_a_length_at_most),
		cmocka_unit_test(the_name_that_was_meant_is_found),
		cmocka_unit_test(legal_values_read_well),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
