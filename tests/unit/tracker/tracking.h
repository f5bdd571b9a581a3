/* A tracker over a synthetic machine; the bodies of tests run on the rpc thread, as the tracker
 * does.
 */
#ifndef RAILMATE_TESTS_UNIT_TRACKER_TRACKING_H
#define RAILMATE_TESTS_UNIT_TRACKER_TRACKING_H

#include "support/onrpc.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/arena.h"
#include "base/clock.h"
#include "base/event.h"
#include "base/mem.h"
#include "base/str.h"
#include "config/config.h"
#include "discover/sysroot.h"
#include "holds/holds.h"
#include "hw/inventory.h"
#include "kubemsg/messages.h"
#include "ledger/file.h"
#include "pool/node.h"
#include "support/fixture.h"
#include "support/synth.h"
#include "tracker/tracker-internal.h"

#define N_VFS 6

static struct config *cfg;
static struct node *node;
static struct sysroot *root; /* an empty folder: what the node does not show is not there */
static struct tracker *k;
static struct arena *a;
static const char *vf[N_VFS];
static char *folder;

/* What the tracker says and asks. */
static unsigned changes, notes, bad_notes;
static char last_note[EVENT_SIZE];
static const char *open_device; /* with so many users */
static unsigned open_users;
static unsigned host_users; /* of every device, besides */
static const char *running; /* UID of the pod whose containers run */
static int runs_error;	    /* 0: none */

static inline void on_note(void *ctx, bool bad, const char *event)
{
	_cleanup_strbuf_ struct strbuf text = STRBUF_INIT;

	(void)ctx;
	event_text(&text, event);
	notes++;
	bad_notes += bad;
	snprintf(last_note, sizeof(last_note), "%s", text.s);
}

static inline void on_change(void *ctx)
{
	(void)ctx;
	changes++;
}

static inline int users(void *ctx, const char *rdma, unsigned *ret_users)
{
	(void)ctx;
	if (!open_device)
		return -ENOTSUP;
	*ret_users = host_users + (str_eq(rdma, open_device) ? open_users : 0);
	return 0;
}

static inline int runs(void *ctx, const char *uid)
{
	(void)ctx;
	return runs_error ? runs_error : str_eq(uid, running);
}

/* --- the machine: N_VFS VFs that have netdevs --- */

static inline struct hw_inventory *inventory(void)
{
	struct hw_inventory *inv = synth_inventory("switch:2 gpu:1 pf:1 vf:3");

	for (size_t i = 0; i < N_VFS; i++) {
		struct hw_pci *fn = &inv->pci[synth_vf(inv, i)];
		char text[BDF_STRLEN];

		fn->netdev = arena_printf(inv->arena, "vf%zu", i);
		vf[i] = arena_strdup(a, bdf_format(fn->bdf, text));
	}
	return inv;
}

static inline struct hw_pci *fn_of(struct hw_inventory *inv, size_t i)
{
	return &inv->pci[synth_vf(inv, i)];
}

static inline void set_node(struct hw_inventory *inv)
{
	struct node *before = node;

	node = node_new(inv, cfg, before);
	node_unref(before);
	tracker_update(k, node);
}

static inline const char *rdma_of(size_t i)
{
	const struct pool_dev *dev = pool_find(&node->pools[0], vf[i]);

	assert_true(dev && dev->rdma >= 0);
	return node->inv->rdma[dev->rdma].name;
}

static inline void take_rdma_away(struct hw_inventory *inv, size_t i)
{
	int at = hw_find_rdma(inv, synth_vf(inv, i));

	assert_true(at >= 0);
	inv->n_rdma--;
	memmove(&inv->rdma[at], &inv->rdma[at + 1],
		(inv->n_rdma - (size_t)at) * sizeof(*inv->rdma));
	fn_of(inv, i)->netdev = NULL;
}

static inline void make_tracker(struct ledger *ledger, struct ledger_file *file)
{
	static const struct holds_pace pace = { .apart_ms = 1,
						.mature_ms = 600000,
						.store_ms = 300 };

	k = tracker_new(rpc, holds_new(ledger, &pace, tracker_now()), file, root, users, NULL);
	k->pace.retry_ms = 20;
	k->pace.drain_ms = 5;
	k->pace.look_ms = 20;
	k->pace.apart_ms = 1;
	k->pace.list_ms = 30;
	k->pace.quiet_ms = 1;
	k->pace.uids_ms = 1;
	tracker_listen(k, on_note, on_change, NULL);
	holds_claims_read(k->holds, true, tracker_now());
	set_node(inventory());
}

static inline void begin(void *arg)
{
	(void)arg;
	make_tracker(ledger_new(), NULL);
}

static inline void end(void *arg)
{
	(void)arg;
	tracker_free(k);
	k = NULL;
}

static inline int set_up(void **state)
{
	(void)state;
	a = arena_new(4096);
	cfg = config_default();
	folder = fixture_folder();
	assert_int_equal(sysroot_open(folder, &root, NULL), 0);
	changes = notes = bad_notes = open_users = host_users = 0;
	last_note[0] = '\0';
	open_device = running = NULL;
	runs_error = 0;
	on_rpc(begin, NULL);
	return 0;
}

static inline int tear_down(void **state)
{
	(void)state;
	on_rpc(end, NULL);
	node = node_unref(node);
	sysroot_close(root);
	config_free(cfg);
	arena_free(a);
	fixture_remove_tree(folder);
	free(folder);
	return 0;
}

/* --- what the kubelet says and does --- */

/* Pods of one container "main" that hold one id each. */
struct says {
	const char *pod, *id;
};

static inline struct pod_list list_of(const struct says *says, size_t n)
{
	struct pod_list list = { arena_array(a, n, sizeof(*list.v)), n };

	for (size_t i = 0; i < n; i++) {
		struct held *held = arena_alloc(a, sizeof(*held));
		struct pod_container *c = arena_alloc(a, sizeof(*c));
		const char **ids = arena_array(a, 1, sizeof(*ids));

		ids[0] = says[i].id;
		*held = (struct held) { "rdma/vf", { ids, 1 } };
		*c = (struct pod_container) { .name = "main", .held = held, .n_held = 1 };
		list.v[i] = (struct pod) { "default", says[i].pod, c, 1 };
	}
	return list;
}

#define SAYS(...)                                                                                  \
	list_of((const struct says[]) { __VA_ARGS__ },                                             \
		sizeof((const struct says[]) { __VA_ARGS__ }) / sizeof(struct says))

/* A List that is asked for now, and everything before is older. */
static inline void told(struct pod_list list)
{
	usleep(2000);
	tracker_hear(
		k, &(struct pods_said) { .all = true, .pods = &list, .asked_ms = clock_mono_ms() });
	usleep(2000);
}

static inline const struct ledger_hold *hold_of(size_t i)
{
	return ledger_find(tracker_ledger(k), vf[i]);
}

static inline bool is_draining(size_t i)
{
	return hold_of(i) && hold_of(i)->draining;
}

static inline struct holds_facts facts_of(size_t i)
{
	return tracker_facts(k, vf[i], a);
}

/* What the plugin does when it gives a VF, and when the container starts. */
static inline void give(size_t i, const char *pod, const char *uid)
{
	const struct ledger_owner o = { pod ? "default" : "", pod ? pod : "", uid ? uid : "",
					pod ? "main" : "" };
	struct holds_facts facts = facts_of(i);
	const struct holds_vf v = { vf[i], "rdma/vf", NULL, &facts };
	const struct ledger_decision d = { .resource = "rdma/vf", .owner = o, .asked = 1 };
	uint64_t number = holds_decide(k->holds, &d);
	const char *why;

	holds_allocated(k->holds, &v, 1, &o, number, tracker_now());
	assert_true(holds_start(k->holds, &v, 1, &o, number, false, tracker_now(), a, &why));
	tracker_save(k, NULL, NULL);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

#endif
