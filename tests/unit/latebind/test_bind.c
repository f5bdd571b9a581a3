/* Which container starts, what it keeps when it starts again, and several at once. */
#include "kubepeer/kubepeer.h"
#include "unit/latebind/binding.h"

static bool is_draining(const char *vf)
{
	return hold_of(vf) && hold_of(vf)->draining;
}

/* --- again --- */

static void a_restarted_container_keeps_its_vfs(void **state)
{
	const char *first;

	(void)state;
	pod("p", HOLDS(GPU "=%s rdma/vf=%s", gpus(0, 0), slots(0, 0, 0)));
	bind_slots(slots(0, 0, 0));
	first = got.vf[0];
	open_device = machine.node->inv->rdma[dev_of(first)->rdma]
			      .name;	      /* the old process is going still */
	unlink(spec_path_of("rdma_vf-n0-0")); /* a reboot */
	bind_slots(slots(0, 0, 0));
	assert_string_equal(got.vf[0], first);
	assert_non_null(spec("rdma_vf-n0-0"));
	assert_int_equal(ledger_decisions(ledger_now(tracker_ledger(tracker))), 1);
}

static void a_restart_is_known_by_the_ledger_and_needs_no_list(void **state)
{
	unsigned before;

	(void)state;
	pod("p", HOLDS(GPU "=%s rdma/vf=%s", gpus(0, 1), slots(0, 0, 1)));
	bind_slots(slots(0, 0, 1));
	before = lists;
	bind_slots(slots(0, 0, 1));
	assert_int_equal(lists, before);
	assert_int_equal(gets, 2); /* with the question what this kubelet can */
	/* the slots are another pod's now, and nobody told us */
	remove_pod("p");
	pod("q", HOLDS(GPU "=%s rdma/vf=%s", gpus(6, 7), slots(0, 0, 1)));
	bind_slots(slots(0, 0, 1));
	assert_int_equal(lists, before + 1);
	assert_int_equal(count_of_pf(3), 2);
}

static void a_dead_vf_is_replaced_when_the_container_restarts(void **state)
{
	const char *dead, *kept;

	(void)state;
	pod("p", HOLDS(GPU "=%s rdma/vf=%s", gpus(0, 1), slots(0, 0, 1)));
	bind_slots(slots(0, 0, 1));
	dead = got.vf[0];
	kept = got.vf[1];
	on_rpc(unbind_driver, (void *)dead);
	bind_slots(slots(0, 0, 1));
	assert_string_not_equal(got.vf[0], dead);
	assert_string_equal(got.vf[1], kept);
	assert_int_equal(count_of_pf(0), 2);
	assert_null(strstr(spec("rdma_vf-n0-1"), dead));
}

/* As a scan saw it while a CNI plugin moved it. */
static void see_half_moved(void *arg)
{
	struct hw_inventory *inv = synth_inventory(MACHINE);
	struct bdf bdf;
	int pci, at;

	assert_int_equal(bdf_parse(arg, &bdf), 0);
	pci = hw_find_pci(inv, bdf);
	at = hw_find_rdma(inv, pci);
	inv->pci[pci].netdev = "net1";
	inv->n_rdma--;
	memmove(&inv->rdma[at], &inv->rdma[at + 1],
		(inv->n_rdma - (size_t)at) * sizeof(*inv->rdma));
	move_to(inv);
}

static void a_vf_that_was_seen_half_moved_is_not_dead(void **state)
{
	const char *vf;

	(void)state;
	pod("p", HOLDS(GPU "=%s rdma/vf=%s", gpus(0, 0), slots(0, 0, 0)));
	bind_slots(slots(0, 0, 0));
	vf = got.vf[0];
	on_rpc(see_half_moved, (void *)vf);
	assert_false(dev_of(vf)->healthy);
	bind_slots(slots(0, 0, 0)); /* what there is now: it has its RDMA device */
	assert_string_equal(got.vf[0], vf);
	machine_remove(&machine, DEV "/infiniband", vf);
	machine_remove(&machine, DEV "/infiniband_verbs", vf);
	machine_dir(&machine, DEV "/net/net1", vf);
	bind_slots(slots(0, 0, 0)); /* it has a netdev, and no RDMA device: it is */
	assert_string_not_equal(got.vf[0], vf);
}

static void two_askers_are_told_the_same(void **state)
{
	struct wish w = { ids_of(slots(0, 0, 1)), NULL, &got },
		    v = { ids_of(slots(0, 1, 1)), NULL, &other };

	(void)state;
	pod("p", HOLDS(GPU "=%s rdma/vf=%s", gpus(0, 1), slots(0, 0, 1)));
	got = other = (struct outcome) { 0 };
	on_rpc(bind_fn, &w);
	on_rpc(bind_fn, &v);
	wait_until(is_done);
	wait_until(other_is_done);
	assert_int_equal(got.code | other.code, 0);
	assert_int_equal(got.n, 2);
	assert_int_equal(other.n, 2);
	for (int i = 0; i < 2; i++)
		assert_string_equal(got.vf[i], other.vf[i]);
}

static void the_cni_plugin_and_the_kubelet_agree(void **state)
{
	const struct pod_ref who = { "default", "p", "1234" };
	const char *vf;

	(void)state;
	pod("p", HOLDS(GPU "=%s rdma/vf=%s", gpus(4, 4), slots(0, 0, 0)));
	pod("q", HOLDS(GPU "=%s rdma/vf=%s", gpus(6, 6), slots(0, 1, 1)));
	bind_pod(slots(0, 0, 0), &who);
	assert_int_equal(got.code, 0);
	vf = got.vf[0];
	assert_int_equal(pf_of(vf), 2);
	assert_string_equal(hold_of(vf)->owner.uid, "1234");
	bind_slots(slots(0, 0, 0));
	assert_string_equal(got.vf[0], vf);
	assert_string_equal(hold_of(vf)->owner.uid, "1234");
	bind_pod(slots(0, 1, 1), &who);
	assert_int_equal(got.code, EAGAIN);
	assert_non_null(strstr(got.why, "no container of pod p"));
}

/* In exclusive mode the RDMA device goes along. */
static void the_cni_plugin_gets_its_second_vf_when_the_first_is_away(void **state)
{
	const struct pod_ref who = { "default", "p", "1234" };
	const char *first, *second;

	(void)state;
	pod("p", HOLDS(GPU "=%s rdma/vf=%s", gpus(4, 5), slots(0, 0, 1)));
	bind_pod(slots(0, 0, 0), &who);
	assert_int_equal(got.code, 0);
	assert_int_equal(got.n, 2);
	first = got.vf[0];
	second = got.vf[1];
	machine_remove(&machine, DEV "/infiniband", first);
	machine_remove(&machine, DEV "/infiniband_verbs", first);
	bind_pod(slots(0, 1, 1), &who);
	assert_string_equal(got.why, "");
	assert_int_equal(got.code, 0);
	assert_string_equal(got.vf[0], first);
	assert_string_equal(got.vf[1], second);
	unlink(spec_path_of("rdma_vf-n0-0"));
	bind_pod(slots(0, 1, 1), &who); /* it has to be written, and cannot be */
	assert_int_equal(got.code, EAGAIN);
}

static void a_pod_that_is_known_is_asked_for_alone(void **state)
{
	const struct pod_ref who = { "default", "p", "1234" };
	unsigned before;

	(void)state;
	pod("p", HOLDS(GPU "=%s rdma/vf=%s", gpus(4, 4), slots(0, 0, 0)));
	bind_slots(slots(0, 0, 0)); /* what this kubelet can, is known now */
	before = lists;
	bind_pod(slots(0, 0, 0), &who);
	assert_int_equal(got.code, 0);
	assert_int_equal(lists, before);
}

/* --- the kubelet gives slots to others --- */

static void a_pod_that_came_back_under_its_name_is_chosen_for_anew(void **state)
{
	(void)state;
	pod("p", HOLDS(GPU "=%s rdma/vf=%s", gpus(0, 0), slots(0, 0, 0)));
	bind_slots(slots(0, 0, 0));
	assert_int_equal(count_of_pf(0), 1);
	list_pods();
	remove_pod("p");
	list_pods();
	on_rpc(sweep_fn, NULL);
	assert_null(spec("rdma_vf-n0-0"));
	allocated(slots(0, 0, 0));
	pod("p", HOLDS(GPU "=%s rdma/vf=%s", gpus(6, 6), slots(0, 0, 0)));
	bind_slots(slots(0, 0, 0));
	assert_int_equal(count_of_pf(3), 1);
	assert_int_equal(n_holds(), 1);
}

/* Force-deleted and created again, and the kubelet was not asked in between. */
static void unless_the_first_one_may_still_run(void **state)
{
	const char *vf;

	(void)state;
	pod("p", HOLDS(GPU "=%s rdma/vf=%s", gpus(0, 0), slots(0, 0, 0)));
	bind_pod(slots(0, 0, 0), &(struct pod_ref) { "default", "p", "u-1" });
	vf = got.vf[0];
	on_rpc(show_cgroups, NULL);
	running = "u-1";
	allocated(slots(0, 0, 0));
	bind_pod(slots(0, 0, 0), &(struct pod_ref) { "default", "p", "u-2" });
	assert_int_equal(got.code, 0);
	assert_string_not_equal(got.vf[0], vf);
	assert_string_equal(hold_of(vf)->owner.uid, "u-1");
	assert_string_equal(hold_of(got.vf[0])->owner.uid, "u-2");
	assert_non_null(strstr(spec("rdma_vf-n0-0"), "RAILMATE_POD_UID=u-2"));
}

static void vfs_of_a_pod_that_is_gone_are_free_at_once(void **state)
{
	(void)state;
	pod("p", HOLDS(GPU "=%s rdma/vf=%s", gpus(0, 0), slots(0, 0, 3)));
	bind_slots(slots(0, 0, 3));
	list_pods();
	remove_pod("p");
	pod("q", HOLDS(GPU "=%s rdma/vf=%s", gpus(0, 0), slots(0, 4, 7)));
	bind_slots(slots(0, 4, 7));
	assert_int_equal(count_of_pf(0), 4);
	assert_null(spec("rdma_vf-n0-0"));
	assert_null(ledger_find_slot(ledger_now(tracker_ledger(tracker)), "rdma_vf-n0-0"));
}

static bool is_closed;

static void on_closed(void *arg)
{
	(void)arg;
	is_closed = true;
}

static void end_kubelet(void *arg)
{
	(void)arg;
	is_closed = false;
	rpc_server_close(STEAL(server), on_closed, NULL);
}

static bool is_kubelet_gone(void)
{
	return is_closed;
}

static void start_kubelet(void *arg)
{
	(void)arg;
	open_server();
	kubeclient_podres_reset(podres);
}

/* A kubelet that has just started does not show all its pods yet. */
static void unless_it_is_another_kubelet_that_does_not_show_it(void **state)
{
	const char *vf;

	(void)state;
	pod("p", HOLDS(GPU "=%s rdma/vf=%s", gpus(0, 0), slots(0, 0, 0)));
	bind_slots(slots(0, 0, 0));
	vf = got.vf[0];
	remove_pod("p");
	on_rpc(end_kubelet, NULL);
	wait_until(is_kubelet_gone);
	on_rpc(start_kubelet, NULL);
	pod("q", HOLDS(GPU "=%s rdma/vf=%s", gpus(0, 0), slots(0, 1, 1)));
	bind_slots(slots(0, 1, 1));
	assert_string_not_equal(got.vf[0], vf);
	assert_string_equal(hold_of(vf)->owner.pod, "p");
	assert_false(is_draining(vf));
	assert_non_null(spec("rdma_vf-n0-0"));
	pod("p", HOLDS(GPU "=%s rdma/vf=%s", gpus(0, 0), slots(0, 0, 0)));
	bind_slots(slots(0, 0, 0));
	assert_string_equal(got.vf[0], vf);
}

static void but_not_while_somebody_still_has_one_open(void **state)
{
	const char *vf;

	(void)state;
	pod("p", HOLDS(GPU "=%s rdma/vf=%s", gpus(0, 0), slots(0, 0, 0)));
	bind_slots(slots(0, 0, 0));
	vf = got.vf[0];
	open_device = machine.node->inv->rdma[dev_of(vf)->rdma].name;
	list_pods();
	remove_pod("p");
	list_pods();
	list_pods();
	assert_true(is_draining(vf));
	allocated(slots(0, 0, 0));
	pod("q", HOLDS(GPU "=%s rdma/vf=%s", gpus(0, 0), slots(0, 0, 0)));
	bind_slots(slots(0, 0, 0));
	assert_string_not_equal(got.vf[0], vf);
	assert_true(is_draining(vf));
}

static void a_slot_given_away_twice_gets_two_vfs(void **state)
{
	const char *first, *second;

	(void)state;
	pod("p", HOLDS(GPU "=%s rdma/vf=%s", gpus(0, 0), slots(0, 0, 0)));
	bind_slots(slots(0, 0, 0));
	first = got.vf[0];
	allocated(slots(0, 0, 0));
	pod("q", HOLDS(GPU "=%s rdma/vf=%s", gpus(1, 1), slots(0, 0, 0)));
	bind_slots(slots(0, 0, 0));
	second = got.vf[0];
	assert_string_not_equal(first, second);
	assert_string_equal(hold_of(first)->owner.pod, "p");
	assert_string_equal(hold_of(second)->owner.pod, "q");
	assert_non_null(strstr(spec("rdma_vf-n0-0"), "RAILMATE_CONTAINER=default/q/main"));
	/* also after the next look at what pods have */
	list_pods();
	assert_string_equal(hold_of(first)->owner.pod, "p");
	assert_false(is_draining(first));
}

#define CHECKPOINT(entries) "{\"Data\": {\"PodDeviceEntries\": [" entries "]}}"
#define ENTRY(uid, container, resource, ids)                                                       \
	"{\"PodUID\": \"" uid "\", \"ContainerName\": \"" container                                \
	"\", \"ResourceName\": \"" resource "\", \"DeviceIDs\": " ids "}"

static void write_checkpoint(const char *text)
{
	machine_file(&machine, text, "checkpoint");
}

static void which_of_two_restarts_is_told_by_who_is_at_work(void **state)
{
	const char *first, *second;

	(void)state;
	write_checkpoint(CHECKPOINT(ENTRY("u-p", "main", "rdma/vf", "[\"rdma_vf-n0-0\"]")));
	pod("p", HOLDS(GPU "=%s rdma/vf=%s", gpus(0, 0), slots(0, 0, 0)));
	bind_slots(slots(0, 0, 0));
	first = got.vf[0];
	allocated(slots(0, 0, 0));
	pod("q", HOLDS(GPU "=%s rdma/vf=%s", gpus(1, 1), slots(0, 0, 0)));
	write_checkpoint(
		CHECKPOINT(ENTRY("u-p", "main", "rdma/vf", "[\"rdma_vf-n0-0\"]") ", " ENTRY(
			"u-q", "main", "rdma/vf", "[\"rdma_vf-n0-0\"]")));
	bind_slots(slots(0, 0, 0));
	second = got.vf[0];
	bind_fails(slots(0, 0, 0), EAGAIN, "delete one of them");
	open_device = machine.node->inv->rdma[dev_of(first)->rdma].name;
	bind_slots(slots(0, 0, 0));
	assert_string_equal(got.vf[0], second);
	open_device = machine.node->inv->rdma[dev_of(second)->rdma].name;
	bind_slots(slots(0, 0, 0));
	assert_string_equal(got.vf[0], first);
	assert_string_equal(hold_of(first)->owner.pod, "p");
	assert_string_equal(hold_of(second)->owner.pod, "q");
	assert_non_null(strstr(spec("rdma_vf-n0-0"), "RAILMATE_CONTAINER=default/p/main"));
	assert_int_equal(n_holds(), 2);
}

/* A source of pod specs that answers a little later. */
static struct {
	struct spec_list list;
	unsigned fetches;
	podspec_done_fn done;
	void *arg;
} source;

static void tell_specs(void *arg)
{
	(void)arg;
	source.done(source.arg, source.list.n ? &source.list : NULL, "nobody knows");
}

static void fetch_specs(void *ctx, unsigned timeout_ms, podspec_done_fn done, void *arg)
{
	(void)ctx;
	assert_true(timeout_ms > 0);
	source.fetches++;
	source.done = done;
	source.arg = arg;
	rpc_after(rpc, 1, tell_specs, NULL);
}

static void of_two_new_pods_the_newest_is_taken(void **state)
{
	static const struct podspec_source specs = { "test", fetch_specs, NULL };
	struct spec_pod v[] = { { .ns = "default", .name = "p", .created = 200 },
				{ .ns = "default", .name = "q", .created = 100 } };

	(void)state;
	source.list = (struct spec_list) { v, 2 };
	source.fetches = 0;
	latebind->env.specs = &specs;
	pod("q", HOLDS(GPU "=%s rdma/vf=%s", gpus(6, 6), slots(0, 0, 0)));
	pod("p", HOLDS(GPU "=%s rdma/vf=%s", gpus(0, 0), slots(0, 0, 0)));
	bind_slots(slots(0, 0, 0));
	assert_int_equal(source.fetches, 1);
	assert_int_equal(count_of_pf(0), 1);
	assert_string_equal(hold_of(got.vf[0])->owner.pod, "p");
	bind_slots(slots(0, 0, 0));
	assert_int_equal(source.fetches, 1);
	assert_int_equal(count_of_pf(3), 1);
	assert_string_equal(hold_of(got.vf[0])->owner.pod, "q");
}

static void and_one_of_them_where_nobody_knows(void **state)
{
	static const struct podspec_source specs = { "test", fetch_specs, NULL };

	(void)state;
	source.list = (struct spec_list) { NULL, 0 };
	latebind->env.specs = &specs;
	pod("q", HOLDS(GPU "=%s rdma/vf=%s", gpus(6, 6), slots(0, 0, 0)));
	pod("p", HOLDS(GPU "=%s rdma/vf=%s", gpus(0, 0), slots(0, 0, 0)));
	bind_slots(slots(0, 0, 0));
	assert_int_equal(got.n, 1);
}

static void an_init_container_leaves_its_vf_to_the_next(void **state)
{
	const char *vf;

	(void)state;
	/* the list shows the app container only; the init container had one slot more */
	pod("p", HOLDS(GPU "=%s rdma/vf=%s", gpus(0, 1), slots(0, 0, 0)));
	bind_slots(slots(0, 0, 1));
	assert_int_equal(got.n, 2);
	vf = got.vf[0];
	bind_slots(slots(0, 0, 0));
	assert_int_equal(got.n, 1);
	assert_string_equal(got.vf[0], vf);
	assert_string_equal(hold_of(vf)->owner.container, "main");
}

/* --- init containers that no list shows --- */

static void an_init_container_is_found_in_the_checkpoint(void **state)
{
	const struct ledger_hold *hold;
	const char *vf;

	(void)state;
	write_checkpoint(
		HOLDS(CHECKPOINT("%s, %s, %s"),
		      ENTRY("u-1", "other", "rdma/vf", "{\"0\": [\"rdma_vf-n0-5\"]}"),
		      ENTRY("u-2", "setup", "rdma/vf",
			    "{\"0\": [\"rdma_vf-n0-0\"], \"1\": [\"rdma_vf-n1-0\"]}"),
		      HOLDS(ENTRY("u-2", "setup", GPU, "{\"-1\": [\"%s\"]}"), gpus(2, 2))));
	pod("p", "");
	bind_slots(slots(0, 0, 0));
	assert_int_equal(got.n, 2);
	assert_int_equal(count_of_pf(1), 2);
	vf = got.vf[0];
	hold = hold_of(vf);
	assert_string_equal(hold->owner.uid, "u-2");
	assert_string_equal(hold->owner.container, "setup");
	/* it stays its own while its pod runs, and no longer */
	on_rpc(show_cgroups, NULL);
	running = "u-2";
	list_pods();
	bind_slots(slots(0, 0, 0));
	assert_string_equal(got.vf[0], vf);
	running = NULL;
	list_pods();
	assert_int_equal(n_holds(), 0);
	on_rpc(sweep_fn, NULL);
	assert_null(spec("rdma_vf-n0-0"));
}

static void a_checkpoint_that_is_not_understood_tells_nothing(void **state)
{
	static const char *const texts[] = {
		"",
		"{",
		"[]",
		"{\"Data\": null}",
		"{\"Data\": {\"PodDeviceEntries\": {}}}",
		CHECKPOINT("null, 7, {}, {\"PodUID\": 1}"),
		CHECKPOINT(ENTRY("u", "c", "rdma/vf", "null")),
		CHECKPOINT(ENTRY("u", "c", "rdma/vf", "{\"0\": null, \"1\": [null, 3]}")),
		CHECKPOINT(ENTRY("u", "c", "rdma/vf", "\"rdma_vf-n0-0\"")),
		CHECKPOINT(ENTRY("u", "c", "rdma/other", "[\"rdma_vf-n0-0\"]")),
		/* two of them: which one starts? */
		CHECKPOINT(ENTRY("u", "c", "rdma/vf", "[\"rdma_vf-n0-0\"]") ", " ENTRY(
			"v", "c", "rdma/vf", "[\"rdma_vf-n0-0\"]")),
	};

	(void)state;
	pod("p", "");
	for (size_t i = 0; i < ARRAY_LEN(texts); i++) {
		write_checkpoint(texts[i]);
		bind_fails(slots(0, 0, 0), EAGAIN, "no container that holds slot rdma_vf-n0-0");
	}
	write_checkpoint(CHECKPOINT(ENTRY("u", "c", "rdma/vf", "[\"rdma_vf-n0-0\"]"))); /* of old */
	bind_slots(slots(0, 0, 0));
}

/* --- what cannot be done --- */

static void what_is_no_slot_is_refused_for_good(void **state)
{
	(void)state;
	pod("p", "rdma/vf=0000:05:00.1");
	bind_fails("0000:05:00.1", ENOENT,
		   "slot '0000:05:00.1' is of no pool of this node that binds late");
}

static void a_slot_that_nobody_has_is_asked_for_again(void **state)
{
	(void)state;
	pod("p", HOLDS("rdma/vf=%s", slots(0, 1, 1)));
	bind_fails(slots(0, 0, 0), EAGAIN, "no container that holds slot rdma_vf-n0-0");
}

static void without_podresources_containers_wait(void **state)
{
	(void)state;
	silent = true;
	bind_fails(slots(0, 0, 0), EAGAIN, "cannot identify the starting container");
}

static void too_few_vfs_are_named(void **state)
{
	(void)state;
	pod("p", HOLDS("rdma/vf=%s", slots(0, 0, 7)));
	pod("q", HOLDS("rdma/vf=%s", slots(1, 0, 7)));
	pod("r", HOLDS("rdma/vf=%s", slots(1, 8, 8)));
	bind_slots(slots(0, 0, 7));
	bind_slots(slots(1, 0, 7));
	bind_fails(slots(1, 8, 8), EAGAIN, "rdma/vf: 1 more VFs are needed and 0 are free");
}

static bool is_asked(void)
{
	return hung;
}

static void answer_hung(void *arg)
{
	(void)arg;
	rpc_reply(STEAL(hung), RPC_OK, NULL, peer_encode_pod_list(&all_pods, true, arena));
}

/* The answer shows the pods of the moment when it was asked for, and comes when another container
 * has been bound. */
static void a_list_that_is_older_than_a_binding_does_not_free_its_vf(void **state)
{
	struct wish w = { ids_of(slots(0, 1, 1)), NULL, &other };
	const char *vf;

	(void)state;
	pod("p", HOLDS(GPU "=%s rdma/vf=%s", gpus(0, 0), slots(0, 0, 0)));
	hangs = true;
	other = (struct outcome) { 0 };
	on_rpc(bind_fn, &w);
	wait_until(is_asked);
	hangs = false;
	bind_slots(slots(0, 0, 0));
	vf = got.vf[0];
	remove_pod("p");
	pod("q", HOLDS(GPU "=%s rdma/vf=%s", gpus(0, 0), slots(0, 1, 1)));
	on_rpc(answer_hung, NULL);
	wait_until(other_is_done);
	assert_int_equal(other.code, 0);
	assert_string_not_equal(other.vf[0], vf);
	assert_string_equal(hold_of(vf)->owner.pod, "p");
	assert_false(is_draining(vf));
	assert_non_null(spec("rdma_vf-n0-0"));
}

static void who_waits_when_the_binder_goes_is_told(void **state)
{
	struct wish w = { ids_of(slots(0, 0, 0)), NULL, &got };

	(void)state;
	pod("p", HOLDS("rdma/vf=%s", slots(0, 0, 0)));
	hangs = true;
	got = (struct outcome) { 0 };
	on_rpc(bind_fn, &w);
	wait_until(is_asked);
	on_rpc(free_latebind, NULL);
	assert_true(got.done);
	assert_int_equal(got.code, EAGAIN);
	on_rpc(answer_hung, NULL); /* to nobody */
	usleep(20000);
	assert_int_equal(got.times, 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		T(a_restarted_container_keeps_its_vfs),
		T(a_restart_is_known_by_the_ledger_and_needs_no_list),
		T(a_dead_vf_is_replaced_when_the_container_restarts),
		T(a_vf_that_was_seen_half_moved_is_not_dead),
		T(two_askers_are_told_the_same),
		T(the_cni_plugin_and_the_kubelet_agree),
		T(the_cni_plugin_gets_its_second_vf_when_the_first_is_away),
		T(a_pod_that_is_known_is_asked_for_alone),
		T(a_pod_that_came_back_under_its_name_is_chosen_for_anew),
		T(unless_the_first_one_may_still_run),
		T(vfs_of_a_pod_that_is_gone_are_free_at_once),
		T(unless_it_is_another_kubelet_that_does_not_show_it),
		T(but_not_while_somebody_still_has_one_open),
		T(a_slot_given_away_twice_gets_two_vfs),
		T(which_of_two_restarts_is_told_by_who_is_at_work),
		T(of_two_new_pods_the_newest_is_taken),
		T(and_one_of_them_where_nobody_knows),
		T(an_init_container_leaves_its_vf_to_the_next),
		T(an_init_container_is_found_in_the_checkpoint),
		T(a_checkpoint_that_is_not_understood_tells_nothing),
		T(what_is_no_slot_is_refused_for_good),
		T(a_slot_that_nobody_has_is_asked_for_again),
		T(without_podresources_containers_wait),
		T(too_few_vfs_are_named),
		T(a_list_that_is_older_than_a_binding_does_not_free_its_vf),
		T(who_waits_when_the_binder_goes_is_told),
	};

	return cmocka_run_group_tests(tests, start_rpc, stop_rpc);
}
