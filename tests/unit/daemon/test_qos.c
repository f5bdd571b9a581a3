/* A pool's policy against its PFs, which this test speaks for. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/err.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/str.h"
#include "config/config.h"
#include "daemon/links-internal.h"
#include "hw/dcb.h"
#include "hw/inventory.h"
#include "pool/node.h"
#include "support/nodes.h"
#include "support/synth.h"

static int pfc[2]; /* of the two PFs; -1: cannot be asked */
static size_t n_asked;

static int ask(const char *netdev, struct hw_dcb *ret, struct err *err)
{
	int which = !str_eq(netdev, "eth0");

	(void)err;
	n_asked++;
	if (pfc[which] < 0)
		return -ENOTSUP;
	*ret = hw_dcb_unknown();
	ret->pfc = pfc[which];
	ret->trust = HW_DCB_TRUST_DSCP;
	ret->priority_of_dscp[26] = 3;
	return 0;
}

/* Two PFs with two VFs each, in one pool with this "env". */
static struct node *node_with(const char *env, struct config **ret_cfg)
{
	_cleanup_free_ char *text = xasprintf(
		"{\"resourceList\": [{\"resourceName\": \"vf\", \"selectors\": {\"isRdma\": true}, \"railmate\": {\"env\": {%s}}}]}",
		env);
	struct err err = { 0 };

	if (config_parse(text, strlen(text), "test", "rdma", ret_cfg, NULL, &err) < 0)
		fail_msg("%s", err.msg);
	return node_new(synth_inventory("switch:2 gpu:1 pf:1 vf:2"), *ret_cfg, NULL);
}

static void judged(const char *env, const char *want)
{
	_cleanup_strbuf_ struct strbuf out = STRBUF_INIT;
	struct config *cfg;
	struct node *node = node_with(env, &cfg);

	assert_int_equal(node->pools[0].n_devs, 4);
	n_asked = 0;
	qos_judge(ask, node, &node->pools[0], &out);
	assert_string_equal(strbuf_str(&out), want);
	node_unref(node);
	config_free(cfg);
}

#define ONE                                                                                        \
	"rdma/vf: on eth0, NCCL_IB_TC 106 is DSCP 26, which it puts on priority 3, but PFC is enabled on priority 4 only"

static void a_policy_that_ends_where_packets_are_dropped_is_said(void **state)
{
	(void)state;
	pfc[0] = 16;
	pfc[1] = 8;
	judged("\"NCCL_IB_TC\": \"106\"", ONE);
	assert_int_equal(n_asked, 2); /* once for each PF, not for each VF */
	pfc[1] = 16;
	judged("\"NCCL_IB_TC\": \"106\"", ONE "; 1 more of its PFs contradict the pool's env, too");
	pfc[0] = pfc[1] = 8;
	judged("\"NCCL_IB_TC\": \"106\"", "");
	judged("\"NCCL_IB_SL\": \"3\"",
	       "rdma/vf: on eth0, NCCL_IB_SL 3 is a VLAN priority, which it does not look at: it trusts DSCP, which NCCL_IB_TC sets; 1 more of its PFs contradict the pool's env, too");
	pfc[0] = pfc[1] = -1;
	judged("\"NCCL_IB_TC\": \"106\"", "");
}

static void every_traffic_class_counts(void **state)
{
	(void)state;
	pfc[0] = 16;
	pfc[1] = 8;
	judged("\"NCCL_IB_FIFO_TC\": \"106\"",
	       "rdma/vf: on eth0, NCCL_IB_FIFO_TC 106 is DSCP 26, which it puts on priority 3, but PFC is enabled on priority 4 only");
	judged("\"NCCL_IB_TC\": \"106\", \"NVSHMEM_IB_TRAFFIC_CLASS\": \"106\"", ONE
	       "; NVSHMEM_IB_TRAFFIC_CLASS 106 is DSCP 26, which it puts on priority 3, but PFC is enabled on priority 4 only");
	judged("\"UCX_IB_TRAFFIC_CLASS\": \"104\"",
	       "rdma/vf: on eth0, UCX_IB_TRAFFIC_CLASS 104 is DSCP 26, which it puts on priority 3, but PFC is enabled on priority 4 only");
	judged("\"UCX_IB_TRAFFIC_CLASS\": \"auto\"", "");
	assert_int_equal(n_asked, 0);
}

static void a_pool_without_such_a_policy_asks_nobody(void **state)
{
	(void)state;
	pfc[0] = pfc[1] = 16;
	judged("\"NCCL_IB_TIMEOUT\": \"22\"", "");
	assert_int_equal(n_asked, 0);
}

static void count(void *arg, enum log_level level, const char *line)
{
	assert_int_equal(level, LOG_LEVEL_WARN);
	assert_non_null(strstr(line, "NCCL_IB_TC 106"));
	++*(size_t *)arg;
}

static void a_warning_is_said_once_until_it_changes(void **state)
{
	static const int turns[] = { 16, 16, 8, 16, 32 };
	struct config *cfg;
	struct node *node = node_with("\"NCCL_IB_TC\": \"106\"", &cfg);
	struct qos *q = qos_new(ask);
	size_t said = 0;

	(void)state;
	log_setup(LOG_LEVEL_INFO, count, &said);
	for (size_t i = 0; i < ARRAY_LEN(turns); i++) {
		pfc[0] = pfc[1] = turns[i];
		qos_check(q, node);
	}
	assert_int_equal(said, 3);
	qos_free(q);
	qos_free(NULL);
	node_unref(node);
	config_free(cfg);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_policy_that_ends_where_packets_are_dropped_is_said),
		cmocka_unit_test(every_traffic_class_counts),
		cmocka_unit_test(a_pool_without_such_a_policy_asks_nobody),
		cmocka_unit_test(a_warning_is_said_once_until_it_changes),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
