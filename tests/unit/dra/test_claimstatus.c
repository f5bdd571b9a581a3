/* What the status of a claim is made of. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/arena.h"
#include "base/str.h"
#include "config/config.h"
#include "dra/claimstatus.h"
#include "kubemsg/dra.h"
#include "ledger/ledger.h"
#include "pool/node.h"
#include "support/nodes.h"
#include "support/synth.h"

#define UID   "8e9a3a8c-0b3a-4a4c-9f0e-0c6d0e6f2a11"
#define SHARE "11111111-0b3a-4a4c-9f0e-0c6d0e6f2a11"
#define CDI   "railmate.io/vf="

static const struct dra_claim_ref claim = { "default", UID, "c" };

static struct ledger *ledger_of(const struct node *node, const char *owner)
{
	struct ledger *l = ledger_new();

	for (int i = 0; i < 3; i++) {
		static const char *const slots[] = { "rdma_vf-c1-0", "rdma_vf-c1-1",
						     "rdma_vf-c1-2" };

		ledger_put(l, &(struct ledger_hold) { .vf = node->pools[0].devs[i].id,
						      .resource = "rdma/vf",
						      .slot = slots[i],
						      .owner = { .claim = i < 2 ? UID : owner },
						      .since_ms = 1767323045999 - i * 60000 });
	}
	return l;
}

static void vfs_stand_behind_their_devices(void **state)
{
	const char *two[] = { CDI "rdma_vf-c1-0", CDI "rdma_vf-c1-1" },
		   *odd[] = { CDI "rdma_vf-c1-2", "other", CDI "none" };
	const struct dra_device devices[] = {
		{ .cdi = { two, 2 },
		  .pool = "worker",
		  .device = "rdma-vf-0000-04-00-0",
		  .share = SHARE },
		{ .cdi = { odd, 3 }, .pool = "worker", .device = "rdma-vf-slot-2" },
	};
	const struct dra_result result = { .uid = UID, .v = devices, .n = 2 };
	struct config *cfg = config_default();
	struct node *node = node_new(synth_inventory("gpu:1 pf:1 vf:4"), cfg, NULL);
	struct ledger *l = ledger_of(node, "another");
	struct strbuf text = STRBUF_INIT, again = STRBUF_INIT;
	const struct claimstatus status = { .node = node,
					    .ledger = l,
					    .driver = "vf.railmate.io",
					    .claim = &claim,
					    .result = &result };

	(void)state;
	claimstatus_write(&status, &text);
	claimstatus_write(&status, &again);
	assert_string_equal(text.s, again.s);
	assert_string_equal(
		text.s,
		"{\"apiVersion\":\"resource.k8s.io/v1\",\"kind\":\"ResourceClaim\",\"metadata\":{\"name\":"
		"\"c\",\"namespace\":\"default\",\"uid\":\"" UID
		"\"},\"status\":{\"devices\":[{\"driver\":\"vf.railmate.io\",\"pool\":\"worker\",\"device\":"
		"\"rdma-vf-0000-04-00-0\",\"shareID\":\"" SHARE "\",\"data\":{\"vfs\":[{\"pci\":"
		"\"0000:02:00.1\",\"rdma\":\"mlx5_1\",\"rail\":0},{\"pci\":\"0000:02:00.2\",\"rdma\":"
		"\"mlx5_2\",\"rail\":0}]},\"conditions\":[{\"type\":\"Ready\",\"status\":\"True\",\"reason\":"
		"\"VFsBound\",\"message\":\"\",\"lastTransitionTime\":\"2026-01-02T03:03:05Z\"}]},{\"driver\":"
		"\"vf.railmate.io\",\"pool\":\"worker\",\"device\":\"rdma-vf-slot-2\",\"data\":{\"vfs\":[]}}]}}");
	strbuf_done(&text);
	strbuf_done(&again);
	ledger_free(l);
	node_unref(node);
	config_free(cfg);
}

static void a_name_does_not_leave_its_place_in_the_path(void **state)
{
	static const struct dra_claim_ref bad[] = { { "default", UID, "c/../../x" },
						    { "default", UID, "c?x" },
						    { "", UID, "c" },
						    { "..", UID, "c" } };
	struct arena *a = arena_new(0);

	(void)state;
	assert_string_equal(
		claimstatus_path("vf.railmate.io", &claim, a),
		"/apis/resource.k8s.io/v1/namespaces/default/resourceclaims/c/status?fieldManager=vf.railmate.io&force=true");
	for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++)
		assert_null(claimstatus_path("vf.railmate.io", &bad[i], a));
	arena_free(a);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(vfs_stand_behind_their_devices),
		cmocka_unit_test(a_name_does_not_leave_its_place_in_the_path),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
