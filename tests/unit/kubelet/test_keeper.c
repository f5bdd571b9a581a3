/* The bodies run on the rpc thread, as the keeper does. */
#include "unit/kubelet/onrpc.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>

#include "base/arena.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/mem.h"
#include "base/str.h"
#include "config/config.h"
#include "hw/inventory.h"
#include "kubelet/keeper-internal.h"
#include "kubelet/messages.h"
#include "kubelet/podres.h"
#include "ledger/file.h"
#include "pool/node.h"
#include "support/fixture.h"
#include "support/synth.h"

#define N_VFS 6

static struct config *cfg;
static struct node *node;
static struct keeper *k;
static struct arena *a;
static const char *vf[N_VFS];
static char *folder;
static const char *why;

/* What the keeper says and asks. */
static unsigned changes, notes, bad_notes;
static char last_note[640];
static const char *open_device; /* with so many users */
static unsigned open_users;
static unsigned host_users; /* of every device, besides */
static const char *running; /* UID of the pod whose containers run */

static void on_note(void *ctx, bool bad, const char *sentence)
{
	(void)ctx;
	notes++;
	bad_notes += bad;
	snprintf(last_note, sizeof(last_note), "%s", sentence);
}

static void on_change(void *ctx)
{
	(void)ctx;
	changes++;
}

static int users(void *ctx, const char *rdma, unsigned *ret_users)
{
	(void)ctx;
	if (!open_device)
		return -ENOTSUP;
	*ret_users = host_users + (str_eq(rdma, open_device) ? open_users : 0);
	return 0;
}

/* --- the machine: N_VFS VFs that have netdevs --- */

static struct hw_inventory *inventory(void)
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

static struct hw_pci *fn_of(struct hw_inventory *inv, size_t i)
{
	return &inv->pci[synth_vf(inv, i)];
}

/* What the node looks like from now on; inv is taken. */
static void set_node(struct hw_inventory *inv)
{
	struct node *before = node;

	node = node_new(inv, cfg, before);
	node_unref(before);
	keeper_update(k, node);
}

static const char *rdma_of(size_t i)
{
	const struct pool_dev *dev = pool_find(&node->pools[0], vf[i]);

	assert_true(dev && dev->rdma >= 0);
	return node->inv->rdma[dev->rdma].name;
}

static void take_rdma_away(struct hw_inventory *inv, size_t i)
{
	int at = hw_find_rdma(inv, synth_vf(inv, i));

	assert_true(at >= 0);
	inv->n_rdma--;
	memmove(&inv->rdma[at], &inv->rdma[at + 1], (inv->n_rdma - (size_t)at) * sizeof(*inv->rdma));
	fn_of(inv, i)->netdev = NULL;
}

static void make_keeper(struct ledger *ledger, struct ledger_file *file)
{
	k = keeper_new(rpc, ledger, file, users, NULL);
	k->pace.retry_ms = 20;
	k->pace.drain_ms = 5;
	k->pace.look_ms = 20;
	k->pace.list_ms = 30;
	k->pace.quiet_ms = 1;
	k->pace.uids_ms = 1;
	keeper_listen(k, on_note, on_change, NULL);
	set_node(inventory());
}

static void begin(void *arg)
{
	(void)arg;
	make_keeper(ledger_new(), NULL);
}

static void end(void *arg)
{
	(void)arg;
	keeper_free(k);
	k = NULL;
}

static int set_up(void **state)
{
	(void)state;
	a = arena_new(4096);
	cfg = config_default();
	folder = fixture_folder();
	changes = notes = bad_notes = open_users = host_users = 0;
	last_note[0] = '\0';
	open_device = running = NULL;
	on_rpc(begin, NULL);
	return 0;
}

static int tear_down(void **state)
{
	(void)state;
	on_rpc(end, NULL);
	node = node_unref(node);
	config_free(cfg);
	arena_free(a);
	fixture_remove_tree(folder);
	free(folder);
	return 0;
}

/* --- what the kubelet says --- */

/* Pods of one container "main" that hold one id each. */
struct says {
	const char *pod, *id;
};

static struct pod_list list_of(const struct says *says, size_t n)
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

#define SAYS(...)                                                                                            \
	list_of((const struct says[]) { __VA_ARGS__ },                                                       \
		sizeof((const struct says[]) { __VA_ARGS__ }) / sizeof(struct says))

/* So long after now that nothing is young, of what is held by now. */
static int64_t later(int64_t ms)
{
	keeper_sync(k);
	return clock_mono_ms() + k->pace.young_ms + ms;
}

static bool told(struct pod_list list)
{
	return keeper_reconcile(k, node, &list, later(1));
}

static bool told_at(struct pod_list list, int64_t ms)
{
	return keeper_reconcile(k, node, &list, ms);
}

static const struct ledger_hold *hold_of(size_t i)
{
	return ledger_find(keeper_ledger(k), vf[i]);
}

/* What the plugin does when it gives a VF. */
static void give(size_t i, const char *pod, const char *slot)
{
	ledger_put(keeper_ledger(k), &(struct ledger_hold) {
					     .vf = vf[i],
					     .resource = "rdma/vf",
					     .slot = slot,
					     .owner = { pod ? "default" : "", pod, "", pod ? "main" : "" },
					     .since_ms = 1700000000000,
				     });
	keeper_save(k, NULL, NULL);
}

static bool is_free(size_t i, const char *pod)
{
	const struct ledger_owner me = { "default", pod, "", "main" };

	why = "";
	return keeper_is_free(k, node, pool_find(&node->pools[0], vf[i]), pod ? &me : NULL, a, &why);
}

/* --- free or not --- */

static void own_and_others(void *arg)
{
	struct ledger_hold hold;

	(void)arg;
	assert_true(is_free(0, NULL));
	give(0, "p1", NULL);
	assert_false(is_free(0, NULL));
	assert_string_equal(why, arena_printf(a, "%s is held by container main of pod default/p1", vf[0]));
	assert_false(is_free(0, "p2"));
	assert_true(is_free(0, "p1"));
	assert_true(is_free(1, "p2"));
	hold = *hold_of(0);
	hold.owner.uid = "aaaa";
	ledger_put(keeper_ledger(k), &hold);
	assert_true(is_free(0, "p1")); /* who does not say his uid may be the same */
	assert_false(keeper_is_free(k, node, pool_find(&node->pools[0], vf[0]),
				    &(struct ledger_owner) { "default", "p1", "bbbb", "main" }, a, &why));
	give(2, NULL, NULL);
	assert_false(is_free(2, "p1"));
	assert_non_null(strstr(why, "a container whose pod is not known yet"));
}

static void a_vf_of_another_pod_is_not_free_and_ones_own_is(void **state)
{
	(void)state;
	on_rpc(own_and_others, NULL);
}

static void unrest(void *arg)
{
	struct hw_inventory *inv = inventory();

	(void)arg;
	take_rdma_away(inv, 0);
	set_node(inv);
	open_device = rdma_of(1);
	open_users = 2;
	assert_false(is_free(0, NULL));
	assert_non_null(strstr(why, "its RDMA device is in a container's network namespace"));
	assert_false(is_free(1, NULL));
	assert_non_null(strstr(why, "is open (2 contexts)"));
	assert_true(is_free(2, NULL));
}

static void a_vf_that_is_away_or_open_is_not_free_even_if_nobody_holds_it(void **state)
{
	(void)state;
	on_rpc(unrest, NULL);
}

static void hosts_users(void *arg)
{
	(void)arg;
	open_device = rdma_of(1);
	open_users = 1;
	host_users = 2;
	assert_true(is_free(0, NULL));
	assert_false(is_free(1, NULL));
	assert_non_null(strstr(why, "is open (1 context)"));
	/* the host's daemons end: at once nothing that is open is theirs */
	host_users = 0;
	open_users = 2;
	k->host_users_until_ms = 0;
	assert_false(is_free(1, NULL));
}

static void what_every_rdma_device_has_open_is_the_hosts(void **state)
{
	(void)state;
	on_rpc(hosts_users, NULL);
}

static void all_held(void *arg)
{
	(void)arg;
	open_device = "none";
	host_users = 1;
	assert_true(is_free(0, NULL));
	for (size_t i = 0; i < N_VFS; i++)
		give(i, "p1", NULL);
	k->host_users_until_ms = 0;
	open_device = rdma_of(0);
	open_users = 1;
	k->looked_ms -= k->pace.blind_ms + 1000;
	assert_false(is_free(0, NULL));
	assert_true(is_free(1, NULL));
}

static void with_every_vf_held_the_hosts_users_are_those_of_before(void **state)
{
	(void)state;
	on_rpc(all_held, NULL);
}

static void blind(void *arg)
{
	(void)arg;
	give(0, "p1", NULL);
	k->looked_ms -= k->pace.blind_ms + 1000;
	assert_true(is_free(0, NULL));
	open_device = rdma_of(0);
	open_users = 1;
	assert_false(is_free(0, NULL));
	open_device = NULL;
	told(SAYS({ "p1", vf[0] }));
	assert_false(is_free(0, NULL));
}

static void where_nobody_tells_which_pods_live_rest_alone_decides(void **state)
{
	(void)state;
	on_rpc(blind, NULL);
}

/* --- what the kubelet says --- */

static void rebuild(void *arg)
{
	(void)arg;
	assert_false(told(SAYS({ "p1", vf[0] }, { "p2", vf[3] }, { "p3", "0000:ff:00.0" })));
	assert_int_equal(ledger_holds(keeper_ledger(k)), 2);
	assert_string_equal(hold_of(3)->owner.pod, "p2");
	assert_string_equal(hold_of(3)->owner.container, "main");
	assert_string_equal(hold_of(3)->rdma, rdma_of(3));
	keeper_sync(k);
	assert_string_equal(hold_of(3)->netdev, "vf3");
	assert_false(is_free(0, "p2"));
}

static unsigned n_unlisted;
static const char *unlisted_vf, *unlisted_driver;

static void on_unlisted(void *ctx, const struct node_seed *seed)
{
	(void)ctx;
	n_unlisted++;
	assert_string_equal(seed->resource, "rdma/vf");
	unlisted_vf = arena_strdup(a, seed->vf);
	unlisted_driver = arena_strdup(a, seed->driver);
}

/* The first picture of the node: nobody remembers that these VFs had RDMA devices. */
static void start_with_away(size_t n)
{
	struct hw_inventory *inv = inventory();

	for (size_t i = 0; i < n; i++)
		take_rdma_away(inv, i);
	node = node_unref(node);
	set_node(inv);
	n_unlisted = 0;
	keeper_listen_unlisted(k, on_unlisted, NULL);
}

static void see_unlisted(const struct node_seed *seeds, size_t n)
{
	struct hw_inventory *inv = inventory();
	struct node *before = node;

	take_rdma_away(inv, 0);
	node = node_new_seeded(inv, cfg, before, seeds, n);
	node_unref(before);
	keeper_update(k, node);
}

static void held_out_of_sight(void *arg)
{
	const struct pool_dev *dev;

	(void)arg;
	start_with_away(1);
	assert_null(pool_find(&node->pools[0], vf[0]));
	told(SAYS({ "p1", vf[0] }, { "p2", vf[1] }));
	assert_int_equal(n_unlisted, 1);
	assert_string_equal(unlisted_vf, vf[0]);
	assert_string_equal(hold_of(0)->owner.pod, "p1");
	assert_string_equal(hold_of(0)->driver, unlisted_driver);
	told(SAYS({ "p1", vf[0] }, { "p2", vf[1] }));
	assert_int_equal(n_unlisted, 1); /* once is enough */

	see_unlisted(&(struct node_seed) { "rdma/vf", unlisted_vf, NULL, unlisted_driver }, 1);
	dev = pool_find(&node->pools[0], vf[0]);
	assert_true(dev && dev->rdma_away && dev->healthy);
	assert_true(is_free(0, "p1"));
	assert_false(is_free(0, "p3"));

	told(SAYS({ "p2", vf[1] }));
	assert_true(keeper_is_draining(k, vf[0]));
	set_node(inventory()); /* it is back */
	assert_null(hold_of(0));
	assert_true(is_free(0, "p3"));
}

static void a_vf_that_was_out_of_sight_when_the_ledger_was_lost_is_found(void **state)
{
	(void)state;
	on_rpc(held_out_of_sight, NULL);
}

static void no_vf_of_ours(void *arg)
{
	struct hw_inventory *inv = inventory();
	char pf[BDF_STRLEN];

	(void)arg;
	bdf_format(inv->pci[inv->pci[synth_vf(inv, 0)].physfn].bdf, pf);
	take_rdma_away(inv, 0);
	fn_of(inv, 0)->driver = NULL;
	node = node_unref(node);
	set_node(inv);
	n_unlisted = 0;
	told(SAYS({ "p1", vf[0] })); /* nobody listens */
	keeper_listen_unlisted(k, on_unlisted, NULL);
	told(SAYS({ "p1", vf[0] }, { "p2", "0000:77:00.1" }, { "p3", "mlx5_0" }, { "p4", pf }));
	assert_int_equal(n_unlisted, 0);
	assert_int_equal(ledger_holds(keeper_ledger(k)), 0);
}

static void what_is_no_vf_with_a_driver_is_not_looked_for(void **state)
{
	(void)state;
	on_rpc(no_vf_of_ours, NULL);
}

static void a_lost_ledger_is_rebuilt_from_what_containers_hold(void **state)
{
	(void)state;
	on_rpc(rebuild, NULL);
}

static void name(void *arg)
{
	const struct ledger_decision d = { .resource = "rdma/vf", .asked = 1 };
	uint64_t number = ledger_decide(keeper_ledger(k), &d);
	struct ledger_hold hold;

	(void)arg;
	give(0, NULL, NULL);
	hold = *hold_of(0);
	hold.decision = number;
	ledger_put(keeper_ledger(k), &hold);
	told(SAYS({ "p1", vf[0] }));
	assert_string_equal(hold_of(0)->owner.pod, "p1");
	assert_int_equal(hold_of(0)->decision, number);
	assert_string_equal(ledger_decision(keeper_ledger(k), number)->owner.pod, "p1");
}

static void a_hold_and_its_decision_get_the_name_of_their_pod(void **state)
{
	(void)state;
	on_rpc(name, NULL);
}

static void gone(void *arg)
{
	(void)arg;
	give(0, "p1", NULL);
	give(1, "p2", NULL);
	assert_false(told(SAYS({ "p2", vf[1] })));
	assert_null(hold_of(0));
	assert_non_null(hold_of(1));
	assert_true(is_free(0, NULL));
	assert_int_equal(notes, 0);
}

static void what_a_gone_pod_held_is_free_at_once_if_it_is_at_rest(void **state)
{
	(void)state;
	on_rpc(gone, NULL);
}

/* --- pods whose containers outlive them --- */

static bool runs(void *ctx, const char *cgroup_uid)
{
	(void)ctx;
	return str_eq(cgroup_uid, running);
}

/* The kubelet's checkpoint: these pods have VF 0. */
static void put_entry(FILE *f, const char *uid)
{
	fprintf(f,
		"{\"PodUID\": \"%s\", \"ContainerName\": \"main\", \"ResourceName\": \"rdma/vf\", "
		"\"DeviceIDs\": {\"0\": [\"%s\"]}}",
		uid, vf[0]);
}

static void follow(const char *first_uid, const char *second_uid)
{
	const char *path = arena_printf(a, "%s/checkpoint", folder);
	FILE *f = fopen(path, "we");

	assert_non_null(f);
	fputs("{\"Data\": {\"PodDeviceEntries\": [", f);
	put_entry(f, first_uid);
	if (second_uid) {
		fputc(',', f);
		put_entry(f, second_uid);
	}
	fputs("]}}", f);
	fclose(f);
	keeper_follow(k, path, runs, NULL);
}

static void hold_and_follow(void *arg)
{
	give(0, "p1", NULL);
	give(1, "p2", NULL);
	follow("uid-1", arg);
}

static bool is_uid_known(void)
{
	return hold_of(0) && hold_of(0)->cgroup_uid;
}

static void outlived(void *arg)
{
	int64_t first = later(1);

	(void)arg;
	assert_string_equal(hold_of(0)->cgroup_uid, "uid-1");
	assert_null(hold_of(1)->cgroup_uid);
	running = "uid-1";
	told_at(SAYS({ "p2", vf[1] }), first);
	assert_false(hold_of(0)->draining); /* it may be about to end */
	assert_false(is_free(0, NULL));
	told_at(SAYS({ "p2", vf[1] }), first + k->pace.apart_ms);
	assert_true(keeper_is_draining(k, vf[0]));
	assert_non_null(strstr(last_note, "default/p1 is gone, but containers of its pod still run"));
	assert_false(is_free(0, NULL));
	assert_non_null(strstr(why, "containers of its pod still run"));
	running = NULL;
	assert_true(is_free(0, NULL));
}

static void a_vf_of_a_pod_that_still_runs_is_given_to_nobody(void **state)
{
	(void)state;
	on_rpc(hold_and_follow, NULL);
	wait_until(is_uid_known);
	on_rpc(outlived, NULL);
}

static void passed_on_alive(void *arg)
{
	(void)arg;
	running = "uid-1";
	told(SAYS({ "p3", vf[0] }, { "p2", vf[1] }));
	assert_string_equal(hold_of(0)->owner.pod, "p1");
	assert_true(keeper_is_draining(k, vf[0]));
	running = NULL;
	told(SAYS({ "p3", vf[0] }, { "p2", vf[1] }));
	assert_string_equal(hold_of(0)->owner.pod, "p3");
	assert_null(hold_of(0)->cgroup_uid);
}

static void a_vf_does_not_pass_to_another_pod_while_the_first_one_runs(void **state)
{
	(void)state;
	on_rpc(hold_and_follow, NULL);
	wait_until(is_uid_known);
	on_rpc(passed_on_alive, NULL);
}

static void ends_in_a_moment(void *arg)
{
	int64_t first = later(1);

	(void)arg;
	running = "uid-1";
	told_at(SAYS({ "p2", vf[1] }), first);
	running = NULL;
	told_at(SAYS({ "p2", vf[1] }), first + 1);
	assert_null(hold_of(0));
	assert_int_equal(notes, 0);
}

static void a_pod_whose_last_process_ends_a_moment_later_does_not_drain(void **state)
{
	(void)state;
	on_rpc(hold_and_follow, NULL);
	wait_until(is_uid_known);
	on_rpc(ends_in_a_moment, NULL);
}

static void fill_with_two(void *arg)
{
	(void)arg;
	assert_null(hold_of(0)->cgroup_uid);
	follow("uid-1", NULL);
}

static void hold_and_go_on_holding(void *arg)
{
	(void)arg;
	k->pace.uids_ms = 5;
	k->pace.uids_latest_ms = 20;
	follow("uid-1", NULL);
	give(0, "p1", NULL);
	k->busy_ms = INT64_MAX; /* a pod comes at every moment */
}

static void pods_that_come_without_a_pause_do_not_hide_the_uid(void **state)
{
	(void)state;
	on_rpc(hold_and_go_on_holding, NULL);
	wait_until(is_uid_known);
}

static void a_device_of_two_pods_has_no_pods_uid(void **state)
{
	(void)state;
	on_rpc(hold_and_follow, (void *)"uid-2");
	usleep(20000);
	on_rpc(fill_with_two, NULL);
	wait_until(is_uid_known);
}

static void young(void *arg)
{
	int64_t now;

	(void)arg;
	give(0, "p1", NULL);
	keeper_sync(k);
	now = clock_mono_ms();
	told_at(SAYS({ "p2", vf[0] }), now - 1); /* what the kubelet said of it before it was ours */
	assert_string_equal(hold_of(0)->owner.pod, "p1");
	told_at(SAYS({ "p2", vf[1] }), now + k->pace.young_ms / 2);
	assert_non_null(hold_of(0));
	told_at(SAYS({ "p2", vf[1] }), now + k->pace.young_ms + 1);
	assert_null(hold_of(0));
}

static void a_hold_that_is_younger_than_the_answer_is_left_alone(void **state)
{
	(void)state;
	on_rpc(young, NULL);
}

static void twice(void *arg)
{
	int64_t first = later(1);

	(void)arg;
	give(0, "p1", "slot-0");
	give(1, "p1", NULL);
	told_at(SAYS({ "p2", vf[4] }), first);
	assert_non_null(hold_of(0));
	assert_null(hold_of(1)); /* no slot: the kubelet chooses, and it says so */
	told_at(SAYS({ "p2", vf[4] }), first + k->pace.apart_ms / 2);
	assert_non_null(hold_of(0));
	told_at(SAYS({ "p1", "slot-0" }, { "p2", vf[4] }), first + k->pace.apart_ms);
	told_at(SAYS({ "p2", vf[4] }), first + k->pace.apart_ms + 1);
	assert_non_null(hold_of(0)); /* it was seen in between */
	told_at(SAYS({ "p2", vf[4] }), first + 3 * k->pace.apart_ms);
	assert_null(hold_of(0));
}

static void a_slot_is_gone_when_it_is_missed_twice(void **state)
{
	(void)state;
	on_rpc(twice, NULL);
}

static void other_slot(void *arg)
{
	int64_t first = later(1);

	(void)arg;
	give(0, "p1", "slot-0");
	told_at(SAYS({ "p2", "slot-0" }), first);
	assert_string_equal(hold_of(0)->owner.pod, "p1");
	told_at(SAYS({ "p2", "slot-0" }), first + k->pace.apart_ms);
	assert_null(hold_of(0));
}

static void a_slot_that_another_pod_has_now_is_no_sign_of_life(void **state)
{
	(void)state;
	on_rpc(other_slot, NULL);
}

static void empty(void *arg)
{
	const struct pod_list none = { NULL, 0 };
	int64_t first = later(1);

	(void)arg;
	give(0, "p1", NULL);
	told_at(none, first);
	assert_non_null(hold_of(0));
	told_at(none, first + k->pace.apart_ms);
	assert_null(hold_of(0));
}

static void a_kubelet_that_knows_no_pods_yet_frees_nothing_at_once(void **state)
{
	(void)state;
	on_rpc(empty, NULL);
}

static void doubled(void *arg)
{
	(void)arg;
	give(0, "p1", NULL);
	told(SAYS({ "p1", vf[0] }));
	assert_false(is_free(0, "p2")); /* asked for by the kubelet all the same */
	told(SAYS({ "p1", vf[0] }, { "p2", vf[0] }));
	told(SAYS({ "p2", vf[0] }, { "p1", vf[0] }));
	assert_string_equal(hold_of(0)->owner.pod, "p1");
	assert_int_equal(bad_notes, 1);
	assert_non_null(strstr(last_note, "to pod default/p1 and to pod default/p2"));
	told(SAYS({ "p2", vf[0] }));
	assert_string_equal(hold_of(0)->owner.pod, "p2");
}

static void a_vf_that_the_kubelet_gives_twice_stays_with_the_first_pod(void **state)
{
	(void)state;
	on_rpc(doubled, NULL);
}

static void passed_on(void *arg)
{
	(void)arg;
	give(0, "p1", NULL);
	give(1, "p1", NULL);
	open_device = rdma_of(0);
	open_users = 1;
	told(SAYS({ "p2", vf[0] }, { "p3", vf[1] }));
	assert_string_equal(hold_of(0)->owner.pod, "p1"); /* its container runs on */
	assert_true(keeper_is_draining(k, vf[0]));
	assert_false(is_free(0, "p2"));
	assert_string_equal(hold_of(1)->owner.pod, "p3");
	open_users = 0;
	told(SAYS({ "p2", vf[0] }, { "p3", vf[1] }));
	assert_string_equal(hold_of(0)->owner.pod, "p2");
	assert_false(keeper_is_draining(k, vf[0]));
}

static void a_vf_that_another_pod_has_now_is_its_own_when_nobody_has_it_open(void **state)
{
	(void)state;
	on_rpc(passed_on, NULL);
}

static void one_pod(void *arg)
{
	struct pod_list p1 = SAYS({ "p1", vf[0] }), p2 = SAYS({ "p2", vf[1] });

	(void)arg;
	give(0, "p1", NULL);
	give(1, "p2", NULL);
	give(2, NULL, NULL);
	give(3, "p1", NULL);
	keeper_reconcile_pod(k, node, "default", "p1", &p1.v[0], later(1));
	assert_non_null(hold_of(0));
	assert_non_null(hold_of(1));
	assert_non_null(hold_of(2));
	assert_null(hold_of(3)); /* it has it no more */
	p2.v[0].containers[0].held[0].ids.v[0] = vf[0];
	keeper_reconcile_pod(k, node, "default", "p2", &p2.v[0], later(1));
	assert_string_equal(hold_of(0)->owner.pod, "p1"); /* p1 was not asked */
	keeper_reconcile_pod(k, node, "default", "p1", NULL, later(1));
	assert_non_null(hold_of(0)); /* a kubelet that has just started says so of every pod */
	keeper_reconcile_pod(k, node, "default", "p1", NULL, later(1 + k->pace.apart_ms));
	assert_null(hold_of(0));
}

static void an_answer_about_one_pod_says_nothing_of_others(void **state)
{
	(void)state;
	on_rpc(one_pod, NULL);
}

static void hidden(void *arg)
{
	struct ledger_hold hold;
	struct pod_list list = SAYS({ "p1", vf[1] });
	int64_t first = later(1);

	(void)arg;
	give(0, "p1", NULL);
	give(2, "p1", "slot-2");
	for (size_t i = 0; i <= 2; i += 2) {
		hold = *hold_of(i);
		hold.owner.container = "init";
		ledger_put(keeper_ledger(k), &hold);
	}
	told_at(list, first);
	told_at(list, first + 2 * k->pace.apart_ms);
	keeper_reconcile_pod(k, node, "default", "p1", &list.v[0], first + 4 * k->pace.apart_ms);
	assert_string_equal(hold_of(0)->owner.container, "init");
	assert_non_null(hold_of(2));
	list = SAYS({ "p1", vf[1] }, { "p2", "slot-2" }); /* but for a slot that somebody else has now */
	told_at(list, first + 5 * k->pace.apart_ms);
	told_at(list, first + 6 * k->pace.apart_ms);
	assert_null(hold_of(2));
	told_at(SAYS({ "p2", vf[1] }), first + 7 * k->pace.apart_ms);
	assert_null(hold_of(0));
}

static void what_an_init_container_holds_is_not_missed_while_its_pod_lives(void **state)
{
	(void)state;
	on_rpc(hidden, NULL);
}

static void foreign(void *arg)
{
	struct ledger_hold hold;
	struct pod_list list = SAYS({ "p1", vf[0] });

	(void)arg;
	give(0, "p1", NULL);
	hold = *hold_of(0);
	hold.resource = "rdma/renamed";
	ledger_put(keeper_ledger(k), &hold);
	list.v[0].containers[0].held[0].resource = "rdma/renamed";
	told(list);
	assert_non_null(hold_of(0));
	told(SAYS({ "p9", vf[1] }));
	assert_null(hold_of(0));
}

static void holds_of_a_resource_that_is_configured_no_more_live_as_long_as_their_pods(void **state)
{
	(void)state;
	on_rpc(foreign, NULL);
}

static void without_slot(void *arg)
{
	struct pool_config pool = cfg->pools[0];
	struct config late = *cfg, *early = cfg;

	(void)arg;
	give(0, "p1", NULL);
	assert_false(told(SAYS({ "p2", vf[1] }))); /* the kubelet itself knows what it has free */
	assert_null(hold_of(0));
	pool.binding = BINDING_LATE;
	late.pools = &pool;
	give(0, "p1", NULL);
	cfg = &late;
	set_node(inventory());
	assert_true(told(SAYS({ "p2", "slot-1" })));
	assert_null(hold_of(0));
	cfg = early;
	set_node(inventory());
}

static void a_pool_that_binds_late_hears_of_what_it_gave_when_it_bound_early(void **state)
{
	(void)state;
	on_rpc(without_slot, NULL);
}

/* --- draining --- */

static void netdev_away(void *arg)
{
	struct hw_inventory *inv = inventory();

	(void)arg;
	give(0, "p1", NULL);
	keeper_sync(k);
	fn_of(inv, 0)->netdev = NULL;
	set_node(inv);
	assert_true(told(SAYS({ "p2", vf[1] })));
	assert_true(keeper_is_draining(k, vf[0]));
	assert_non_null(strstr(last_note, "default/p1 is gone, but its network interface vf0 is in"));
	assert_false(is_free(0, "p3"));
	assert_non_null(strstr(why, "which is gone, and is not at rest"));
	assert_false(told(SAYS({ "p2", vf[1] })));
	assert_int_equal(notes, 1);
}

static void netdev_back(void *arg)
{
	(void)arg;
	set_node(inventory());
	assert_null(hold_of(0));
	assert_true(is_free(0, NULL));
	assert_non_null(strstr(last_note, "is at rest, and free again"));
}

static bool is_changed_twice(void)
{
	return changes == 2;
}

static void a_vf_whose_netdev_is_still_in_a_pod_drains_until_it_is_back(void **state)
{
	(void)state;
	on_rpc(netdev_away, NULL);
	on_rpc(netdev_back, NULL);
	wait_until(is_changed_twice);
}

static void opened(void *arg)
{
	(void)arg;
	give(0, "p1", NULL);
	open_device = rdma_of(0);
	open_users = 1;
	assert_true(told(SAYS({ "p2", vf[1] })));
	assert_true(keeper_is_draining(k, vf[0]));
}

static void closed(void *arg)
{
	(void)arg;
	open_users = 0;
}

static bool is_dropped(void)
{
	return !hold_of(0);
}

static void a_vf_that_a_process_has_open_drains_until_it_is_closed(void **state)
{
	(void)state;
	on_rpc(opened, NULL);
	usleep(20000);
	assert_false(is_dropped());
	on_rpc(closed, NULL);
	wait_until(is_dropped);
	wait_until(is_changed_twice);
}

static void asked_before_the_tick(void *arg)
{
	(void)arg;
	opened(NULL);
	open_users = 0;
	assert_true(is_free(0, "p3"));
	assert_null(hold_of(0));
}

static void a_draining_vf_is_free_as_soon_as_it_is_at_rest(void **state)
{
	(void)state;
	on_rpc(asked_before_the_tick, NULL);
}

static void back_again(void *arg)
{
	(void)arg;
	opened(NULL);
	assert_true(told(SAYS({ "p1", vf[0] })));
	assert_false(keeper_is_draining(k, vf[0]));
	assert_string_equal(hold_of(0)->owner.pod, "p1");
}

static void a_pod_that_is_listed_again_has_its_vf_again(void **state)
{
	(void)state;
	on_rpc(back_again, NULL);
}

static void other_driver(void *arg)
{
	struct hw_inventory *inv = inventory();

	(void)arg;
	give(0, "p1", NULL);
	give(1, "p1", NULL);
	give(2, "p1", NULL);
	keeper_sync(k);
	fn_of(inv, 0)->netdev = NULL;
	fn_of(inv, 0)->driver = "vfio-pci";
	fn_of(inv, 1)->netdev = NULL;
	fn_of(inv, 1)->driver = NULL;
	fn_of(inv, 2)->netdev = NULL;
	set_node(inv);
	told(SAYS({ "p2", vf[5] }));
	assert_null(hold_of(0));
	assert_null(hold_of(1));
	assert_true(keeper_is_draining(k, vf[2]));
}

static void a_netdev_that_went_with_its_driver_is_not_waited_for(void **state)
{
	(void)state;
	on_rpc(other_driver, NULL);
}

static void unplugged(void *arg)
{
	struct hw_inventory *inv = synth_inventory("switch:2 gpu:1");

	(void)arg;
	give(0, "p1", NULL);
	keeper_sync(k);
	set_node(inv);
	told(SAYS({ "p2", vf[5] }));
	assert_null(hold_of(0));
}

static void a_vf_that_left_the_bus_is_used_by_nobody(void **state)
{
	(void)state;
	on_rpc(unplugged, NULL);
}

/* --- never to two --- */

/*
 * A node where everything happens in any order: a kubelet that offers what it has given already (double
 * allocation), pods that end for the kubelet while their containers run on. What the keeper calls free must
 * be so.
 */
struct fate {
	bool runs, listed; /* really; for the kubelet */
	size_t vf;
};

static struct fate fates[40];
static uint32_t dice;

static unsigned roll(unsigned n)
{
	dice = dice * 1664525u + 1013904223u;
	return (dice >> 16) % n;
}

/* Containers have their device open as long as they run. */
static int users_by_fate(void *ctx, const char *rdma, unsigned *ret_users)
{
	(void)ctx;
	*ret_users = 0;
	for (size_t i = 0; i < ARRAY_LEN(fates); i++)
		*ret_users += fates[i].runs && str_eq(rdma, rdma_of(fates[i].vf));
	return 0;
}

static void say_list(void)
{
	struct says says[ARRAY_LEN(fates) + 1] = { { "other", "x" } };
	size_t n = 1;

	for (size_t i = 0; i < ARRAY_LEN(fates); i++) {
		if (fates[i].listed)
			says[n++] = (struct says) { arena_printf(a, "p%zu", i), vf[fates[i].vf] };
	}
	told(list_of(says, n));
}

static bool begin_pod(size_t i)
{
	const char *pod = arena_printf(a, "p%zu", i);
	size_t at = roll(N_VFS);

	if (!is_free(at, pod))
		return false;
	for (size_t o = 0; o < ARRAY_LEN(fates); o++)
		assert_false(fates[o].runs && fates[o].vf == at);
	give(at, pod, NULL);
	keeper_sync(k);
	fates[i] = (struct fate) { true, true, at };
	return true;
}

static void churn(void *arg)
{
	unsigned begun = 0, refused = 0;

	(void)arg;
	k->users = users_by_fate;
	dice = 7;
	for (unsigned step = 0; step < 4000; step++) {
		size_t i = roll(ARRAY_LEN(fates));
		struct fate *f = &fates[i];

		if (!f->runs && begin_pod(i))
			begun++;
		else if (!f->runs)
			refused++;
		else if (f->listed)
			f->listed = roll(4) != 0;
		else
			f->runs = roll(2) != 0;
		if (roll(4) == 0)
			say_list();
	}
	assert_true(begun > 100 && refused > 100);
}

static void no_vf_ever_goes_to_two_live_containers(void **state)
{
	(void)state;
	on_rpc(churn, NULL);
}

/* --- the disk --- */

static struct {
	unsigned times, failed;
	size_t on_disk; /* holds in the file when it was told */
} saved;

static void on_saved(void *arg, const struct err *err)
{
	struct ledger *l = NULL;

	(void)arg;
	saved.times++;
	saved.failed += err != NULL;
	if (ledger_file_peek(folder, &l, NULL) == 0)
		saved.on_disk = ledger_holds(l);
	ledger_free(l);
}

static void begin_on_disk(void *arg)
{
	struct ledger_file *file = NULL;
	struct ledger *ledger = NULL;
	char *note = NULL;

	(void)arg;
	end(NULL);
	memset(&saved, 0, sizeof(saved));
	assert_int_equal(ledger_file_open(folder, 0, &file, NULL), 0);
	assert_int_equal(ledger_file_load(file, &ledger, &note, NULL), 0);
	assert_null(note);
	make_keeper(ledger, file);
}

static void save_one(void *arg)
{
	(void)arg;
	give(0, "p1", NULL);
	keeper_save(k, on_saved, NULL);
	assert_int_equal(saved.times, 0); /* never before the return */
}

static bool is_saved(void)
{
	return saved.times == 1;
}

static void who_waits_is_told_when_it_is_on_disk(void **state)
{
	(void)state;
	on_rpc(begin_on_disk, NULL);
	on_rpc(save_one, NULL);
	wait_until(is_saved);
	assert_int_equal(saved.failed, 0);
	assert_int_equal(saved.on_disk, 1);
}

static void in_memory_who_waits_is_told_all_the_same(void **state)
{
	(void)state;
	memset(&saved, 0, sizeof(saved));
	on_rpc(save_one, NULL);
	wait_until(is_saved);
	assert_int_equal(saved.failed, 0);
}

static void save_many(void *arg)
{
	(void)arg;
	for (size_t i = 0; i < N_VFS; i++) {
		give(i, "p1", NULL);
		keeper_save(k, on_saved, NULL);
	}
	end(NULL);
	assert_int_equal(saved.times, N_VFS);
	assert_int_equal(saved.failed, 0);
	assert_int_equal(saved.on_disk, N_VFS);
}

static void the_end_stores_what_is_not_stored_yet_and_tells_everybody(void **state)
{
	(void)state;
	on_rpc(begin_on_disk, NULL);
	on_rpc(save_many, NULL);
}

static void limit_files(rlim_t bytes)
{
	struct rlimit limit;

	signal(SIGXFSZ, SIG_IGN);
	assert_int_equal(getrlimit(RLIMIT_FSIZE, &limit), 0);
	limit.rlim_cur = bytes;
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &limit), 0);
}

static bool is_stored_again(void)
{
	return !k->failing && k->stored == ledger_generation(keeper_ledger(k));
}

static void a_full_disk_is_told_once_and_tried_again(void **state)
{
	(void)state;
	on_rpc(begin_on_disk, NULL);
	limit_files(16);
	on_rpc(save_one, NULL);
	wait_until(is_saved);
	usleep(50000); /* more tries, no more notes */
	limit_files(RLIM_INFINITY);
	assert_int_equal(saved.failed, 1);
	assert_int_equal(bad_notes, 1);
	wait_until(is_stored_again);
	assert_int_equal(bad_notes, 1);
	assert_string_equal(last_note, "the ledger is on disk again");
	on_rpc(end, NULL);
	on_rpc(begin_on_disk, NULL);
	assert_non_null(hold_of(0));
}

static void a_restart_knows_what_was_held(void **state)
{
	(void)state;
	on_rpc(begin_on_disk, NULL);
	on_rpc(save_one, NULL);
	on_rpc(begin_on_disk, NULL);
	assert_string_equal(hold_of(0)->owner.pod, "p1");
	assert_string_equal(hold_of(0)->netdev, "vf0");
}

/* --- looking by itself --- */

enum kubelet { HAS_GET, GET_IS_OFF, OLD };

static struct {
	enum kubelet kubelet;
	struct rpc_server *server;
	struct podres *podres;
	const char *alive; /* the one pod, with vf[0] and vf[2] */
	bool hangs;	   /* Get is not answered before the end */
	struct rpc_call *hung;
	unsigned gets, lists;
} world;

static const char *const world_says_no = "pod x in namespace default not found";

static struct pod living_pod(void)
{
	struct pod_list list = SAYS({ world.alive, vf[0] });
	struct ids *ids = &list.v[0].containers[0].held[0].ids;

	ids->v = arena_array(a, 2, sizeof(*ids->v));
	ids->v[0] = vf[0];
	ids->v[1] = vf[2];
	ids->n = 2;
	return list.v[0];
}

static void on_get(void *ctx, struct rpc_call *call, struct bytes request)
{
	struct arena *mine = rpc_call_arena(call);
	struct pod pod = living_pod();
	const char *ns, *pod_name;

	(void)ctx;
	assert_int_equal(msg_decode_pod_get_request(request, mine, &ns, &pod_name, NULL), 0);
	world.gets += *pod_name != '\0';
	if (world.hangs)
		world.hung = call;
	else if (world.kubelet == OLD)
		rpc_reply(call, RPC_UNIMPLEMENTED, "unknown method Get", (struct bytes) { NULL, 0 });
	else if (world.kubelet == GET_IS_OFF)
		rpc_reply(call, RPC_UNKNOWN, "PodResources API Get method disabled",
			  (struct bytes) { NULL, 0 });
	else if (str_eq(pod_name, world.alive))
		rpc_reply(call, RPC_OK, NULL, msg_encode_pod_get_reply(&pod, true, mine));
	else
		rpc_reply(call, RPC_UNKNOWN, world_says_no, (struct bytes) { NULL, 0 });
}

static void on_list(void *ctx, struct rpc_call *call, struct bytes request)
{
	struct pod pod = living_pod();

	(void)ctx;
	(void)request;
	world.lists++;
	rpc_reply(call, RPC_OK, NULL,
		  msg_encode_pod_list(&(struct pod_list) { &pod, 1 }, true, rpc_call_arena(call)));
}

static void begin_world(void *arg)
{
	static const struct rpc_method methods[] = { { .path = PATH_POD_GET, .unary = on_get },
						     { .path = PATH_POD_LIST, .unary = on_list } };
	const enum kubelet *kubelet = arg;
	char *path = arena_printf(a, "%s/kubelet.sock", folder);

	memset(&world, 0, sizeof(world));
	world.kubelet = *kubelet;
	world.alive = "p1";
	assert_int_equal(rpc_server_open(rpc, path, methods, 2, NULL, &world.server, NULL), 0);
	world.podres = podres_open(rpc, path);
	k->pace.young_ms = 0;
	k->pace.apart_ms = 1;
	keeper_watch(k, world.podres);
}

static void end_world(void *arg)
{
	end(arg);
	if (world.hung)
		rpc_reply(world.hung, RPC_UNKNOWN, world_says_no, (struct bytes) { NULL, 0 });
	podres_close(world.podres);
	rpc_server_close(world.server, NULL, NULL);
}

static void hold_two(void *arg)
{
	(void)arg;
	give(0, "p1", NULL);
	give(1, "p2", NULL);
}

static bool is_p2_gone(void)
{
	return hold_of(0) && !hold_of(1);
}

static void pods_that_hold_something_are_asked_for_by_name(void **state)
{
	enum kubelet kubelet = HAS_GET;

	(void)state;
	on_rpc(begin_world, &kubelet);
	on_rpc(hold_two, NULL);
	wait_until(is_p2_gone);
	assert_int_equal(world.lists, 0);
	on_rpc(end_world, NULL);
}

static bool was_looked_at(void)
{
	return world.gets > 0;
}

static void hold_four_more(void *arg)
{
	(void)arg;
	give(1, "q1", NULL);
	give(3, "q2", NULL);
	give(4, "q3", NULL);
	give(5, "q4", NULL);
}

static bool are_four_gone(void)
{
	return !hold_of(1) && !hold_of(3) && !hold_of(4) && !hold_of(5);
}

static void set_slow_pace(void *arg)
{
	(void)arg;
	k->pace.look_ms = 1600;
	give(0, "p1", NULL);
}

/* The pace is for all of them, not for each: they came when one pod had been counted. */
static void pods_that_came_since_the_last_round_make_it_no_longer(void **state)
{
	enum kubelet kubelet = HAS_GET;
	int64_t began;

	(void)state;
	on_rpc(begin_world, &kubelet);
	on_rpc(set_slow_pace, NULL);
	wait_until(was_looked_at);
	on_rpc(hold_four_more, NULL);
	began = clock_mono_ms();
	wait_until(are_four_gone);
	assert_true(clock_mono_ms() - began < 5600);
	on_rpc(end_world, NULL);
}

static void hold_slowly(void *arg)
{
	(void)arg;
	k->pace.look_ms = 3000;
	k->pace.apart_ms = 60;
	give(1, "q1", NULL);
}

static bool is_nothing_held(void)
{
	return !ledger_holds(keeper_ledger(k));
}

static void a_pod_that_was_missed_once_is_asked_for_again_soon(void **state)
{
	enum kubelet kubelet = HAS_GET;
	int64_t began;

	(void)state;
	on_rpc(begin_world, &kubelet);
	began = clock_mono_ms();
	on_rpc(hold_slowly, NULL);
	wait_until(is_nothing_held);
	assert_in_range(world.gets, 2, 8);
	assert_true(clock_mono_ms() - began < 5700);
	on_rpc(end_world, NULL);
}

static bool is_get_known(void)
{
	return podres_support(world.podres) == PODRES_GET;
}

static void lose_record(void *arg)
{
	struct pod_list list = SAYS({ "p1", vf[4] }, { "p2", vf[0] });

	(void)arg;
	list.v[0].containers[0].n_held = 0;
	told(list);
	assert_string_equal(hold_of(0)->owner.pod, "p1");
	assert_false(is_free(0, "p2"));
	assert_int_equal(bad_notes, 1);
	list.v[0].containers[0].n_held = 1; /* another pod of that name */
	told(list);
	assert_string_equal(hold_of(0)->owner.pod, "p2");
}

static void an_active_pod_keeps_what_the_kubelet_has_no_record_of(void **state)
{
	enum kubelet kubelet = HAS_GET;

	(void)state;
	on_rpc(begin_world, &kubelet);
	on_rpc(hold_two, NULL);
	wait_until(is_get_known);
	on_rpc(lose_record, NULL);
	on_rpc(end_world, NULL);
}

static void hold_nameless(void *arg)
{
	(void)arg;
	give(0, "p1", NULL);
	give(2, NULL, NULL);
	give(3, NULL, NULL);
}

static bool is_named(void)
{
	return hold_of(2) && *hold_of(2)->owner.pod && !hold_of(3);
}

static void a_hold_without_a_name_takes_a_list(void **state)
{
	enum kubelet kubelet = HAS_GET;

	(void)state;
	on_rpc(begin_world, &kubelet);
	on_rpc(hold_nameless, NULL);
	wait_until(is_named);
	assert_string_equal(hold_of(2)->owner.pod, "p1");
	on_rpc(end_world, NULL);
}

static void a_kubelet_without_get_is_asked_for_a_list(void **state)
{
	enum kubelet kubelet = GET_IS_OFF;

	(void)state;
	on_rpc(begin_world, &kubelet);
	on_rpc(hold_two, NULL);
	wait_until(is_p2_gone);
	assert_true(world.lists > 0);
	on_rpc(end_world, NULL);
}

static bool is_old_known(void)
{
	return podres_support(world.podres) == PODRES_NOTHING;
}

static void an_old_kubelet_is_left_alone(void **state)
{
	enum kubelet kubelet = OLD;
	unsigned gets;

	(void)state;
	on_rpc(begin_world, &kubelet);
	on_rpc(hold_two, NULL);
	wait_until(is_old_known);
	gets = world.gets;
	usleep(100000);
	assert_int_equal(world.gets, gets);
	assert_int_equal(world.lists, 0);
	assert_non_null(hold_of(1));
	on_rpc(end_world, NULL);
}

static void begin_asking(void *arg)
{
	enum kubelet kubelet = HAS_GET;

	(void)arg;
	begin_world(&kubelet);
	world.hangs = true;
	hold_two(NULL);
}

static bool is_asking(void)
{
	return k->look && world.hung;
}

static void an_answer_that_comes_after_the_end_is_for_nobody(void **state)
{
	(void)state;
	on_rpc(begin_asking, NULL);
	wait_until(is_asking);
	on_rpc(end_world, NULL);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(a_vf_of_another_pod_is_not_free_and_ones_own_is),
		TEST(a_vf_that_is_away_or_open_is_not_free_even_if_nobody_holds_it),
		TEST(what_every_rdma_device_has_open_is_the_hosts),
		TEST(with_every_vf_held_the_hosts_users_are_those_of_before),
		TEST(where_nobody_tells_which_pods_live_rest_alone_decides),
		TEST(a_lost_ledger_is_rebuilt_from_what_containers_hold),
		TEST(a_vf_that_was_out_of_sight_when_the_ledger_was_lost_is_found),
		TEST(what_is_no_vf_with_a_driver_is_not_looked_for),
		TEST(a_hold_and_its_decision_get_the_name_of_their_pod),
		TEST(what_a_gone_pod_held_is_free_at_once_if_it_is_at_rest),
		TEST(a_hold_that_is_younger_than_the_answer_is_left_alone),
		TEST(a_slot_is_gone_when_it_is_missed_twice),
		TEST(a_vf_of_a_pod_that_still_runs_is_given_to_nobody),
		TEST(a_vf_does_not_pass_to_another_pod_while_the_first_one_runs),
		TEST(a_pod_whose_last_process_ends_a_moment_later_does_not_drain),
		TEST(pods_that_come_without_a_pause_do_not_hide_the_uid),
		TEST(a_device_of_two_pods_has_no_pods_uid),
		TEST(a_slot_that_another_pod_has_now_is_no_sign_of_life),
		TEST(a_kubelet_that_knows_no_pods_yet_frees_nothing_at_once),
		TEST(a_vf_that_the_kubelet_gives_twice_stays_with_the_first_pod),
		TEST(a_vf_that_another_pod_has_now_is_its_own_when_nobody_has_it_open),
		TEST(an_answer_about_one_pod_says_nothing_of_others),
		TEST(what_an_init_container_holds_is_not_missed_while_its_pod_lives),
		TEST(holds_of_a_resource_that_is_configured_no_more_live_as_long_as_their_pods),
		TEST(a_pool_that_binds_late_hears_of_what_it_gave_when_it_bound_early),
		TEST(a_vf_whose_netdev_is_still_in_a_pod_drains_until_it_is_back),
		TEST(a_vf_that_a_process_has_open_drains_until_it_is_closed),
		TEST(a_draining_vf_is_free_as_soon_as_it_is_at_rest),
		TEST(a_pod_that_is_listed_again_has_its_vf_again),
		TEST(a_netdev_that_went_with_its_driver_is_not_waited_for),
		TEST(a_vf_that_left_the_bus_is_used_by_nobody),
		TEST(no_vf_ever_goes_to_two_live_containers),
		TEST(who_waits_is_told_when_it_is_on_disk),
		TEST(in_memory_who_waits_is_told_all_the_same),
		TEST(the_end_stores_what_is_not_stored_yet_and_tells_everybody),
		TEST(a_full_disk_is_told_once_and_tried_again),
		TEST(a_restart_knows_what_was_held),
		TEST(pods_that_hold_something_are_asked_for_by_name),
		TEST(pods_that_came_since_the_last_round_make_it_no_longer),
		TEST(a_pod_that_was_missed_once_is_asked_for_again_soon),
		TEST(an_active_pod_keeps_what_the_kubelet_has_no_record_of),
		TEST(a_hold_without_a_name_takes_a_list),
		TEST(a_kubelet_without_get_is_asked_for_a_list),
		TEST(an_old_kubelet_is_left_alone),
		TEST(an_answer_that_comes_after_the_end_is_for_nobody),
	};

	return cmocka_run_group_tests(tests, start_rpc, stop_rpc);
}
