/* When the status of a claim is written, and what of its VFs' networks is in it. */
#include <arpa/inet.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/mem.h"
#include "config/config.h"
#include "dra/claimstatus.h"
#include "dra/tell.h"
#include "hw/bdf.h"
#include "hw/vfstate.h"
#include "kubemsg/dra.h"
#include "ledger/ledger.h"
#include "pool/node.h"
#include "support/nodes.h"
#include "support/synth.h"

#define UID "8e9a3a8c-0b3a-4a4c-9f0e-0c6d0e6f2a11"
#define CDI "railmate.io/vf="

static const struct dra_claim_ref claim = { "default", UID, "c" };
static const char *one[] = { CDI "s0" }, *two[] = { CDI "s1", CDI "s2" };
static const struct dra_device devices[] = {
	{ .cdi = { one, 1 }, .pool = "worker", .device = "rdma-vf-slot-0" },
	{ .cdi = { two, 2 }, .pool = "worker", .device = "rdma-vf-0000-02-00-0" },
};
static const struct dra_result result = { .uid = UID, .v = devices, .n = 2 };

static struct {
	struct node *node;
	struct ledger *ledger;
	struct tells *tells;
	int asked;
	char *body;
} t;

static void ask(void *ctx, const struct api_request *r, api_done_fn done, void *arg)
{
	t.asked++;
	free(t.body);
	t.body = xstrdup(r->body);
	assert_string_equal(r->method, "PATCH");
	assert_string_equal(r->type, CLAIMSTATUS_TYPE);
	assert_non_null(strstr(r->path, "/namespaces/default/resourceclaims/c/status?"));
	done(arg, 200, (struct bytes) { 0 }, NULL);
}

static int setup(void **state)
{
	static const char *const slots[] = { "s0", "s1", "s2" };
	struct config *cfg = config_default();

	(void)state;
	t.asked = 0;
	t.node = node_new(synth_inventory("gpu:1 pf:1 vf:4"), cfg, NULL);
	config_free(cfg);
	t.ledger = ledger_new();
	for (int i = 0; i < 3; i++)
		ledger_put(t.ledger, &(struct ledger_hold) { .vf = t.node->pools[0].devs[i].id,
							     .resource = "rdma/vf",
							     .slot = slots[i],
							     .owner = { .claim = UID },
							     .since_ms = 1767323045999 });
	t.tells = tell_open(&(struct tell_env) { .driver = "vf.railmate.io", .ask = ask });
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	tell_close(t.tells);
	ledger_free(t.ledger);
	node_unref(t.node);
	free(STEAL(t.body));
	return 0;
}

static struct ip_addr ip(const char *text, int prefix, const char *netdev)
{
	struct ip_addr a = { .prefix = prefix, .netdev = netdev };
	char v6[64];

	snprintf(v6, sizeof(v6), strchr(text, ':') ? "%s" : "::ffff:%s", text);
	assert_int_equal(inet_pton(AF_INET6, v6, a.addr), 1);
	return a;
}

static void see(int vf, enum vf_seen seen, const char *netdev, const struct ip_addr *v, size_t n)
{
	struct vf_state s = { .seen = seen, .netdev = netdev, .addrs = v, .n_addrs = n };

	assert_int_equal(bdf_parse(t.node->pools[0].devs[vf].id, &s.bdf), 0);
	tell_seen(t.tells, t.node, t.ledger, &s, 1);
}

static void prepare(void)
{
	tell_prepared(t.tells, t.node, t.ledger, &claim, &result);
}

static void says(const char *text, bool yes)
{
	if (!strstr(t.body, text) != !yes)
		fail_msg("%s is %s %s", text, yes ? "not in" : "in", t.body);
}

static void a_claim_that_is_prepared_is_told_of(void **state)
{
	(void)state;
	prepare();
	assert_int_equal(t.asked, 1);
	says("\"device\":\"rdma-vf-slot-0\"", true);
	says("\"rdma\":\"mlx5_3\"", true);
	says("networkData", false);
}

static void a_vf_that_was_moved_is_told_of_once(void **state)
{
	const struct ip_addr ips[] = { ip("10.1.0.2", 120, "net1"), ip("fd00::2", 64, "net1"),
				       ip("10.244.0.9", 120, "eth0") };

	(void)state;
	prepare();
	see(0, VF_SEEN_POD, "net1", ips, 3);
	assert_int_equal(t.asked, 2);
	says("\"networkData\":{\"interfaceName\":\"net1\",\"ips\":[\"10.1.0.2/24\",\"fd00::2/64\"]}",
	     true);
	see(0, VF_SEEN_POD, "net1", ips, 3); /* its container starts again */
	assert_int_equal(t.asked, 2);
	/* Of a device of two VFs the API has room for neither. */
	see(1, VF_SEEN_POD, "net2", ips, 1);
	assert_int_equal(t.asked, 3);
	says("\"netdev\":\"net2\"", true);
	says("\"interfaceName\":\"net2\"", false);
	says("\"interfaceName\":\"net1\"", true);
}

static void what_was_not_moved_is_no_news(void **state)
{
	(void)state;
	see(0, VF_SEEN_POD, "net1", NULL, 0);
	prepare();
	see(0, VF_SEEN_HOST, "eth5", NULL, 0);
	see(0, VF_SEEN_OUTSIDE, NULL, NULL, 0);
	see(0, VF_SEEN_POD, NULL, NULL, 0);
	see(3, VF_SEEN_POD, "net1", NULL, 0); /* nobody's */
	assert_int_equal(t.asked, 1);
	tell_unprepared(t.tells, UID);
	see(0, VF_SEEN_POD, "net1", NULL, 0);
	assert_int_equal(t.asked, 1);
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(a_claim_that_is_prepared_is_told_of),
		TEST(a_vf_that_was_moved_is_told_of_once),
		TEST(what_was_not_moved_is_no_news),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
