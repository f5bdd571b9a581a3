/* The tracker's edge: what the machine shows → facts, what the kubelet says → answers, its
 * checkpoint → UIDs.
 */
#include "unit/tracker/tracking.h"

#include <sys/stat.h>

/* --- facts --- */

static void of_the_machine(void *arg)
{
	struct hw_inventory *inv = inventory();

	(void)arg;
	assert_null(facts_of(0).unreadable);
	assert_null(facts_of(0).away);
	assert_null(facts_of(0).open);
	take_rdma_away(inv, 0);
	set_node(inv);
	open_device = rdma_of(1);
	open_users = 2;
	assert_string_equal(facts_of(0).away,
			    "its RDMA device is in a container's network namespace");
	assert_non_null(strstr(facts_of(1).open, "is open (2 contexts)"));
	assert_null(facts_of(2).away);
	assert_null(facts_of(2).open);
}

static void a_vf_that_is_away_or_open_is_in_use(void **state)
{
	(void)state;
	on_rpc(of_the_machine, NULL);
}

static void hosts_users(void *arg)
{
	(void)arg;
	open_device = rdma_of(1);
	open_users = 1;
	host_users = 2;
	assert_null(facts_of(0).open);
	assert_non_null(strstr(facts_of(1).open, "is open (1 context)"));
	/* the host's daemons end: at once nothing that is open is theirs */
	host_users = 0;
	open_users = 2;
	tracker->looked_ms = 0;
	assert_non_null(facts_of(1).open);
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
	assert_null(facts_of(0).open);
	for (size_t i = 0; i < N_VFS; i++)
		give(i, "p1", NULL);
	tracker->looked_ms = 0;
	open_device = rdma_of(0);
	open_users = 1;
	assert_non_null(facts_of(0).open);
	assert_null(facts_of(1).open);
}

static void with_every_vf_held_the_hosts_users_are_those_of_before(void **state)
{
	(void)state;
	on_rpc(all_held, NULL);
}

static void netdev_away(void *arg)
{
	struct hw_inventory *inv = inventory();

	(void)arg;
	give(0, "p1", NULL);
	tracker_complete(tracker);
	assert_string_equal(hold_of(0)->netdev, "vf0");
	assert_string_equal(hold_of(0)->rdma, rdma_of(0));
	fn_of(inv, 0)->netdev = NULL;
	set_node(inv);
	assert_string_equal(facts_of(0).away,
			    "its network interface vf0 is in a container's network namespace");
	assert_null(facts_of(1).away);
	set_node(inventory());
	assert_null(facts_of(0).away);
}

static void a_vf_whose_netdev_is_in_a_pod_is_away_until_it_is_back(void **state)
{
	(void)state;
	on_rpc(netdev_away, NULL);
}

static void other_driver(void *arg)
{
	struct hw_inventory *inv = inventory();

	(void)arg;
	for (size_t i = 0; i < 3; i++)
		give(i, "p1", NULL);
	tracker_complete(tracker);
	fn_of(inv, 0)->netdev = NULL;
	fn_of(inv, 0)->driver = "vfio-pci";
	fn_of(inv, 1)->netdev = NULL;
	fn_of(inv, 1)->driver = NULL;
	fn_of(inv, 2)->netdev = NULL;
	set_node(inv);
	assert_null(facts_of(0).away);
	assert_null(facts_of(1).away);
	assert_non_null(facts_of(2).away);
}

static void a_netdev_that_went_with_its_driver_is_not_waited_for(void **state)
{
	(void)state;
	on_rpc(other_driver, NULL);
}

static void unplugged(void *arg)
{
	(void)arg;
	give(0, "p1", NULL);
	set_node(synth_inventory("switch:2 gpu:1"));
	assert_null(facts_of(0).unreadable);
	assert_null(facts_of(0).away);
	told(SAYS({ "p2", vf[5] }));
	assert_null(hold_of(0));
}

static void make_bus(void)
{
	for (const char *below = "sys\0sys/bus\0sys/bus/pci\0sys/bus/pci/devices\0"; *below;
	     below += strlen(below) + 1)
		assert_int_equal(mkdir(arena_printf(arena, "%s/%s", folder, below), 0755), 0);
}

static void a_vf_that_left_the_bus_is_used_by_nobody(void **state)
{
	(void)state;
	make_bus();
	on_rpc(unplugged, NULL);
}

static void out_of_sight(void *arg)
{
	(void)arg;
	give(0, "p1", NULL);
	set_node(synth_inventory("switch:2 gpu:1"));
	assert_string_equal(facts_of(0).unreadable, "the PCI bus could not be read");
	told(SAYS({ "p2", vf[5] }));
	assert_non_null(hold_of(0));
}

/* A scan that failed shows no VFs, too. */
static void a_vf_that_a_scan_missed_is_not_gone(void **state)
{
	(void)state;
	on_rpc(out_of_sight, NULL);
}

static unsigned walks; /* through the cgroup tree, within rounds of looks */

static int walk_once(void *ctx, const char *uid)
{
	(void)ctx;
	for (size_t i = 0; i < tracker->n_round; i++)
		assert_string_not_equal(tracker->round[i].uid, uid);
	walks += tracker->round != NULL;
	return str_eq(uid, running);
}

static void hold_three_of_two_pods(void *arg)
{
	(void)arg;
	walks = 0;
	running = "uid-2";
	tracker_follow(tracker, NULL, NULL, walk_once, NULL);
	give(0, "p1", "uid-1");
	give(1, "p2", "uid-2");
	give(2, "p1", "uid-1");
}

static bool was_walked_often(void)
{
	return walks > 6 && hold_of(1)->seen_cgroup && !hold_of(0)->seen_cgroup;
}

static void one_walk_through_the_cgroups_does_for_all_vfs_of_a_pod(void **state)
{
	(void)state;
	on_rpc(hold_three_of_two_pods, NULL);
	wait_until(was_walked_often);
	assert_null(tracker->round);
}

static void of_cgroups(void *arg)
{
	(void)arg;
	assert_int_equal(facts_of(0).cgroup, HOLDS_CGROUP_OFF);
	give(0, "p1", "u1");
	tracker_follow(tracker, NULL, NULL, runs, NULL);
	running = "u1";
	assert_int_equal(facts_of(0).cgroup, HOLDS_CGROUP_RUNS);
	assert_string_equal(facts_of(0).uid, "u1");
	running = NULL;
	assert_int_equal(facts_of(0).cgroup, HOLDS_CGROUP_EMPTY);
	runs_error = -EIO;
	assert_int_equal(facts_of(0).cgroup, HOLDS_CGROUP_UNKNOWN);
	assert_int_equal(facts_of(1).cgroup, HOLDS_CGROUP_UNKNOWN); /* whose? */
	assert_string_equal(facts_of(1).uid, "");
}

/* As CRI-O's is when PreStartContainer is called. */
static void of_empty_cgroups(void *arg)
{
	(void)arg;
	give(0, "p1", "u1");
	tracker_follow(tracker, NULL, NULL, runs, NULL);
	assert_int_equal(facts_of(0).cgroup, HOLDS_CGROUP_OFF);
	assert_false(facts_of(0).cgroup_is_there);
	runs_error = TRACKER_POD_IS_EMPTY;
	assert_int_equal(facts_of(0).cgroup, HOLDS_CGROUP_EMPTY);
	assert_true(facts_of(0).cgroup_is_there);
	runs_error = 0;
	assert_int_equal(facts_of(0).cgroup, HOLDS_CGROUP_EMPTY);
	assert_false(facts_of(0).cgroup_is_there);
}

static void a_cgroup_without_a_process_is_one_that_was_found(void **state)
{
	(void)state;
	on_rpc(of_empty_cgroups, NULL);
}

static void the_cgroup_is_that_of_the_holders_uid(void **state)
{
	(void)state;
	on_rpc(of_cgroups, NULL);
}

static void before_a_scan(void *arg)
{
	(void)arg;
	end_tracker(NULL);
	tracker = tracker_new(&(struct tracker_env) {
		.rpc = rpc,
		.holds = holds_new(ledger_new(), &holds_default_pace, tracker_now()),
		.root = root,
		.users = users });
	assert_string_equal(facts_of(0).unreadable, "the node has not been scanned yet");
	assert_null(facts_of(0).open);
	told(SAYS({ "p1", vf[0] }));
	assert_int_equal(ledger_holds(tracker_ledger(tracker)), 0);
}

static void before_the_first_scan_nothing_is_known(void **state)
{
	(void)state;
	on_rpc(before_a_scan, NULL);
}

static void opened(void *arg)
{
	(void)arg;
	give(0, "p1", NULL);
	open_device = rdma_of(0);
	open_users = 1;
	told(SAYS({ "p2", vf[1] }));
	told(SAYS({ "p2", vf[1] }));
	assert_true(is_draining(0));
	changes = 0;
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

static bool is_change_told(void)
{
	return changes > 0;
}

static void a_vf_that_drains_is_looked_at_until_it_is_closed(void **state)
{
	(void)state;
	on_rpc(opened, NULL);
	usleep(20000);
	assert_false(is_dropped());
	on_rpc(closed, NULL);
	wait_until(is_dropped);
	wait_until(is_change_told);
}

/* --- devices that no container has --- */

static struct holds_verdict verdict_of(size_t i)
{
	const struct pool *pool = &node->pools[0];

	return tracker_judge(tracker, pool, pool_find(pool, vf[i]), false, arena);
}

static bool is_in_use(void)
{
	return verdict_of(1).state == HOLDS_IS_IN_USE;
}

static bool is_free_again(void)
{
	return verdict_of(1).state == HOLDS_IS_FREE;
}

/* A program that lists devices has each open for a moment: one look decides nothing. */
static void opened_by_a_stranger(void *arg)
{
	(void)arg;
	tracker->pace.look_ms = 5;
	tracker->pace.doubt_ms = 40;
	give(0, "p1", NULL);
	open_device = rdma_of(1);
	open_users = 1;
	host_users = 2;
	set_node(inventory()); /* it is looked for with each new node */
	assert_int_equal(verdict_of(1).state, HOLDS_IS_FREE);
	changes = 0;
}

static void seen_by_all(void *arg)
{
	(void)arg;
	assert_non_null(strstr(verdict_of(1).why, "is open (1 context)"));
	assert_false(verdict_of(1).offered);
	assert_int_equal(verdict_of(0).state, HOLDS_IS_HELD);
	assert_int_equal(verdict_of(2).state, HOLDS_IS_FREE);
	assert_true(changes > 0);
	changes = 0;
	open_users = 0;
}

static void a_vf_that_a_stranger_has_open_is_not_offered_until_it_lets_go(void **state)
{
	(void)state;
	on_rpc(opened_by_a_stranger, NULL);
	wait_until(is_in_use);
	on_rpc(seen_by_all, NULL);
	wait_until(is_free_again);
	wait_until(is_change_told);
}

/* --- answers --- */

static void rebuild(void *arg)
{
	(void)arg;
	told(SAYS({ "p1", vf[0] }, { "p2", vf[3] }, { "p3", "mlx5_0" }));
	assert_int_equal(ledger_holds(tracker_ledger(tracker)), 2);
	assert_string_equal(hold_of(3)->owner.pod, "p2");
	assert_string_equal(hold_of(3)->owner.container, "main");
	tracker_complete(tracker);
	assert_string_equal(hold_of(3)->rdma, rdma_of(3));
	assert_string_equal(hold_of(3)->netdev, "vf3");
}

static void a_lost_ledger_is_rebuilt_from_what_containers_hold(void **state)
{
	(void)state;
	on_rpc(rebuild, NULL);
}

static void slots_and_others(void *arg)
{
	struct pod_list list = SAYS({ "p1", "rdma_vf-n0-3" }, { "p2", "GPU-1" });
	struct holds_slots slots;

	(void)arg;
	list.v[1].containers[0].held[0].resource = "nvidia.com/gpu";
	told(list);
	slots = holds_slots(tracker->holds, arena);
	assert_int_equal(slots.n_uses, 1);
	assert_string_equal(slots.uses[0].slot, "rdma_vf-n0-3");
	assert_int_equal(ledger_holds(tracker_ledger(tracker)), 0);
}

static void two_unknown(void *arg)
{
	(void)arg;
	end_tracker(NULL);
	make_tracker(NULL, NULL); /* the ledger is lost */
	told(SAYS({ "p1", "rdma_vf-n0-3" }, { "p2", "rdma_vf-n0-4" }));
	told(SAYS({ "p3", vf[0] }));
	assert_non_null(holds_unknown(tracker->holds, 1, NULL));
	tracker_probe_slots(tracker);
	assert_null(holds_unknown(tracker->holds, 0, NULL));
}

static void one_look_is_enough_for_the_slots_of_all_pods_that_are_gone(void **state)
{
	(void)state;
	on_rpc(two_unknown, NULL);
}

static void ids_are_vfs_or_slots_and_other_resources_are_not_ours(void **state)
{
	(void)state;
	on_rpc(slots_and_others, NULL);
}

static void foreign(void *arg)
{
	struct pod_list list = SAYS({ "p1", vf[0] });
	const struct ledger_owner o = { "default", "p1", "", "main", NULL };
	struct holds_facts facts = facts_of(0);
	const struct holds_vf v = { vf[0], "rdma/renamed", NULL, &facts };
	const char *why;

	(void)arg;
	assert_true(holds_start(tracker->holds, &v, 1, &o, 0, false, tracker_now(), arena, &why));
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

/* A Get. */
static void told_of(const char *pod, struct pod_list list)
{
	tracker_hear(tracker, &(struct pods_said) { .ns = "default",
						    .name = pod,
						    .pods = &list,
						    .asked_ms = clock_mono_ms() });
}

static void one_pod(void *arg)
{
	struct pod_list p1 = SAYS({ "p1", vf[0] });

	(void)arg;
	give(0, "p1", NULL);
	give(1, "p2", NULL);
	usleep(2000);
	told_of("p1", p1);
	assert_non_null(hold_of(0));
	usleep(2000);
	told_of("p1", (struct pod_list) { NULL, 0 });
	assert_null(hold_of(0));
	assert_non_null(hold_of(1));
}

static void a_get_is_about_one_pod(void **state)
{
	(void)state;
	on_rpc(one_pod, NULL);
}

static unsigned n_unlisted;
static const char *unlisted_vf, *unlisted_driver;

static void on_unlisted(void *ctx, const struct node_seed *seed)
{
	(void)ctx;
	n_unlisted++;
	assert_string_equal(seed->resource, "rdma/vf");
	unlisted_vf = arena_strdup(arena, seed->vf);
	unlisted_driver = arena_strdup(arena, seed->driver);
}

static void start_with_away(size_t n)
{
	struct hw_inventory *inv = inventory();

	for (size_t i = 0; i < n; i++)
		take_rdma_away(inv, i);
	node = node_unref(node);
	set_node(inv);
	n_unlisted = 0;
	tracker->env.unlisted = on_unlisted;
}

static void see_unlisted(const struct node_seed *seeds, size_t n)
{
	struct hw_inventory *inv = inventory();
	struct node *before = node;

	take_rdma_away(inv, 0);
	node = node_new_seeded(inv, cfg, before, seeds, n);
	node_unref(before);
	tracker_update(tracker, node);
}

static void held_out_of_sight(void *arg)
{
	const struct pool_dev *dev;

	(void)arg;
	start_with_away(1);
	assert_null(pool_find(&node->pools[0], vf[0]));
	told(SAYS({ "p1", vf[0] }, { "p2", vf[1] }));
	tracker_complete(tracker);
	assert_int_equal(n_unlisted, 1);
	assert_string_equal(unlisted_vf, vf[0]);
	assert_string_equal(hold_of(0)->owner.pod, "p1");
	told(SAYS({ "p1", vf[0] }, { "p2", vf[1] }));
	tracker_complete(tracker);
	assert_int_equal(n_unlisted, 1); /* once is enough */

	see_unlisted(&(struct node_seed) { "rdma/vf", unlisted_vf, NULL, unlisted_driver }, 1);
	dev = pool_find(&node->pools[0], vf[0]);
	assert_true(dev && dev->rdma_away && dev->healthy);
	assert_non_null(facts_of(0).away);
	told(SAYS({ "p2", vf[1] }));
	told(SAYS({ "p2", vf[1] }));
	assert_true(is_draining(0));
	set_node(inventory()); /* it is back */
	assert_null(hold_of(0));
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
	tracker->env.unlisted = on_unlisted;
	told(SAYS({ "p1", vf[0] }, { "p2", "0000:77:00.1" }, { "p3", "mlx5_0" }, { "p4", pf }));
	tracker_complete(tracker);
	assert_int_equal(n_unlisted, 0);
}

static void what_is_no_vf_with_a_driver_is_not_looked_for(void **state)
{
	(void)state;
	on_rpc(no_vf_of_ours, NULL);
}

/* --- the checkpoint --- */

/* These pods have VF 0. */
static void put_entry(FILE *f, const char *uid)
{
	fprintf(f,
		"{\"PodUID\": \"%s\", \"ContainerName\": \"main\", \"ResourceName\": \"rdma/vf\", \"DeviceIDs\": {\"0\": [\"%s\"]}}",
		uid, vf[0]);
}

static void follow(const char *first_uid, const char *second_uid)
{
	const char *path = arena_printf(arena, "%s/checkpoint", folder);
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
	tracker_follow(tracker, NULL, path, runs, NULL);
}

static void hold_and_follow(void *arg)
{
	give(0, "p1", NULL);
	give(1, "p2", NULL);
	follow("uid-1", arg);
}

static bool is_uid_known(void)
{
	return hold_of(0) && *hold_of(0)->owner.uid;
}

static void a_hold_gets_the_uid_of_its_pod(void **state)
{
	(void)state;
	running = "uid-1";
	on_rpc(hold_and_follow, NULL);
	wait_until(is_uid_known);
	assert_string_equal(hold_of(0)->owner.uid, "uid-1");
	assert_string_equal(hold_of(1)->owner.uid, "");
}

static void fill_with_one(void *arg)
{
	(void)arg;
	assert_string_equal(hold_of(0)->owner.uid, "");
	follow("uid-1", NULL);
	give(2, "p3", NULL); /* it is read again after the next change */
}

static void a_device_of_two_pods_has_no_pods_uid(void **state)
{
	(void)state;
	running = "uid-1";
	on_rpc(hold_and_follow, (void *)"uid-2");
	usleep(20000);
	on_rpc(fill_with_one, NULL);
	wait_until(is_uid_known);
}

static void hold_and_go_on_holding(void *arg)
{
	(void)arg;
	tracker->pace.uids_ms = 5;
	tracker->pace.uids_latest_ms = 20;
	follow("uid-1", NULL);
	give(0, "p1", NULL);
	tracker->busy_ms = INT64_MAX; /* a pod comes at every moment */
}

static void pods_that_come_without_a_pause_do_not_hide_the_uid(void **state)
{
	(void)state;
	running = "uid-1";
	on_rpc(hold_and_go_on_holding, NULL);
	wait_until(is_uid_known);
}

static void read_checkpoint(void *arg)
{
	const struct holds_entry *v;

	(void)arg;
	assert_int_equal(tracker_checkpoint(tracker, &v), 0);
	follow("uid-1", NULL);
	assert_int_equal(tracker_checkpoint(tracker, &v), 1);
	assert_string_equal(v[0].uid, "uid-1");
	assert_string_equal(v[0].id, vf[0]);
	follow("uid-1", "uid-2"); /* written again */
	assert_int_equal(tracker_checkpoint(tracker, &v), 2);
}

static void the_checkpoint_is_read_as_it_is_now(void **state)
{
	(void)state;
	on_rpc(read_checkpoint, NULL);
}

static void start_without_checkpoint(void *arg)
{
	const char *path = arena_printf(arena, "%s/checkpoint", folder);
	const struct holds_entry *v;
	FILE *f = arg ? fopen(path, "we") : NULL;

	if (f) {
		fputs(arg, f);
		fclose(f);
	}
	tracker_follow(tracker, NULL, path, runs, NULL);
	assert_int_equal(tracker_checkpoint(tracker, &v), 0);
	assert_int_equal(bad_notes, 0); /* no container has started */
	give(0, "p1", NULL);
	for (int i = 0; i < 3; i++)
		assert_int_equal(tracker_checkpoint(tracker, &v), 0);
	assert_int_equal(bad_notes, 1);
	assert_non_null(strstr(last_note, "the checkpoint of the kubelet cannot be read"));
	follow("uid-9", NULL);
	assert_int_equal(tracker_checkpoint(tracker, &v), 1);
	assert_int_equal(bad_notes, 1);
}

static void a_checkpoint_that_cannot_be_read_is_told_once_when_a_uid_is_missing(void **state)
{
	(void)state;
	on_rpc(start_without_checkpoint, NULL);
}

static void so_is_one_that_is_of_another_form(void **state)
{
	(void)state;
	on_rpc(start_without_checkpoint, (void *)"{\"Data\": {}}");
}

/* VF 1, which a stranger has open, after the checkpoint reads so; NULL: there is none. */
static bool is_offered_with(const char *checkpoint)
{
	const char *path = arena_printf(arena, "%s/checkpoint", folder);
	FILE *f;

	remove(path);
	if (checkpoint) {
		f = fopen(path, "we");
		assert_non_null(f);
		fputs(checkpoint, f);
		fclose(f);
	}
	tracker_follow(tracker, NULL, path, runs, NULL);
	assert_int_equal(verdict_of(1).state, HOLDS_IS_IN_USE);
	return verdict_of(1).offered;
}

static void ask_the_checkpoint(void *arg)
{
	static const char entries[] =
		"{\"Data\": {\"PodDeviceEntries\": [{\"PodUID\": \"u\", \"ContainerName\": \"c\", \"ResourceName\": \"rdma/vf\", \"DeviceIDs\": {\"0\": [\"%s\"]}}]}}";

	(void)arg;
	assert_false(is_offered_with(NULL)); /* no pod has come yet */
	assert_false(is_offered_with(arena_printf(arena, entries, vf[0])));
	assert_true(is_offered_with(arena_printf(arena, entries, vf[1])));
	assert_true(is_offered_with("{\"Data\": {}}")); /* of another form: it may be given */
	assert_true(is_offered_with("{\"Data\": {\"PodDeviceEntries\": ["));
	assert_false(is_offered_with("{\"Data\": {\"PodDeviceEntries\": []}}"));
}

/* The kubelet rejects a container that starts again if its VF is not healthy then. */
static void a_checkpoint_that_cannot_be_read_takes_no_vf_from_a_pod(void **state)
{
	(void)state;
	on_rpc(opened_by_a_stranger, NULL);
	wait_until(is_in_use);
	on_rpc(ask_the_checkpoint, NULL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(a_vf_that_is_away_or_open_is_in_use),
		TEST(what_every_rdma_device_has_open_is_the_hosts),
		TEST(with_every_vf_held_the_hosts_users_are_those_of_before),
		TEST(a_vf_that_a_stranger_has_open_is_not_offered_until_it_lets_go),
		TEST(a_vf_whose_netdev_is_in_a_pod_is_away_until_it_is_back),
		TEST(a_netdev_that_went_with_its_driver_is_not_waited_for),
		TEST(a_vf_that_left_the_bus_is_used_by_nobody),
		TEST(a_vf_that_a_scan_missed_is_not_gone),
		TEST(a_cgroup_without_a_process_is_one_that_was_found),
		TEST(the_cgroup_is_that_of_the_holders_uid),
		TEST(one_walk_through_the_cgroups_does_for_all_vfs_of_a_pod),
		TEST(before_the_first_scan_nothing_is_known),
		TEST(a_vf_that_drains_is_looked_at_until_it_is_closed),
		TEST(a_lost_ledger_is_rebuilt_from_what_containers_hold),
		TEST(one_look_is_enough_for_the_slots_of_all_pods_that_are_gone),
		TEST(ids_are_vfs_or_slots_and_other_resources_are_not_ours),
		TEST(holds_of_a_resource_that_is_configured_no_more_live_as_long_as_their_pods),
		TEST(a_get_is_about_one_pod),
		TEST(a_vf_that_was_out_of_sight_when_the_ledger_was_lost_is_found),
		TEST(what_is_no_vf_with_a_driver_is_not_looked_for),
		TEST(a_hold_gets_the_uid_of_its_pod),
		TEST(a_device_of_two_pods_has_no_pods_uid),
		TEST(pods_that_come_without_a_pause_do_not_hide_the_uid),
		TEST(the_checkpoint_is_read_as_it_is_now),
		TEST(a_checkpoint_that_cannot_be_read_takes_no_vf_from_a_pod),
		TEST(a_checkpoint_that_cannot_be_read_is_told_once_when_a_uid_is_missing),
		TEST(so_is_one_that_is_of_another_form),
	};

	return cmocka_run_group_tests(tests, start_rpc, stop_rpc);
}
