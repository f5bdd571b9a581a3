/* What a container is given: CDI specs and files, at its start and at ours; and what the kubelet is
 * told of slots. */
#include "unit/latebind/binding.h"

#include <dirent.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>

static void put(const char *path, const char *text)
{
	FILE *f;

	mkdir(cdi_dir, 0755);
	f = fopen(path, "we");
	assert_non_null(f);
	fputs(text, f);
	fclose(f);
}

/* --- the spec --- */

static void a_spec_gives_what_early_binding_gives(void **state)
{
	const struct pool_dev *first, *second;
	const struct hw_rdma *r;
	const char *text, *second_device;

	(void)state;
	pod("p", HOLDS(GPU "=%s rdma/vf=%s", gpus(0, 1), slots(0, 0, 1)));
	bind_slots(slots(0, 0, 1));
	first = dev_of(got.vf[0]);
	second = dev_of(got.vf[1]);
	r = machine.node->inv->rdma;
	text = spec(got.slot[0]);
	assert_string_equal(text, spec(got.slot[1]));
	assert_non_null(strstr(text, "\"kind\": \"railmate.io/vf\""));
	assert_non_null(strstr(text, HOLDS("\"NCCL_IB_HCA==%s:1,%s:1\"", r[first->rdma].name,
					   r[second->rdma].name)));
	assert_non_null(strstr(text, HOLDS("\"PCIDEVICE_RDMA_VF=%s,%s\"", got.vf[0], got.vf[1])));
	assert_non_null(strstr(text, "\"RAILMATE_RDMA_VF_MAP="));
	assert_non_null(strstr(text, HOLDS("\"RAILMATE_BINDING=%s=%s,%s=%s\"", got.slot[0],
					   got.vf[0], got.slot[1], got.vf[1])));
	assert_non_null(strstr(text, "\"RAILMATE_CONTAINER=default/p/main\""));
	/* each device has its own node */
	second_device = strstr(text, HOLDS("\"name\": \"%s\"", got.slot[1]));
	assert_true(strstr(text, HOLDS("/dev/infiniband/%s\"", r[first->rdma].uverbs)) <
		    second_device);
	assert_true(strstr(text, HOLDS("/dev/infiniband/%s\"", r[second->rdma].uverbs)) >
		    second_device);
	assert_null(strstr(second_device, HOLDS("/dev/infiniband/%s\"", r[first->rdma].uverbs)));
}

static size_t count_files(void)
{
	DIR *dir = opendir(cdi_dir);
	size_t n = 0;

	assert_non_null(dir);
	for (struct dirent *e = readdir(dir); e; e = readdir(dir))
		n += strcmp(e->d_name, ".") && strcmp(e->d_name, "..");
	closedir(dir);
	return n;
}

static void a_container_has_one_spec_and_nothing_else_is_left_in_the_directory(void **state)
{
	struct stat st;

	(void)state;
	pod("p", HOLDS("rdma/vf=%s", slots(0, 0, 3)));
	bind_slots(slots(0, 0, 3));
	assert_int_equal(count_files(), 1); /* all devices of a container appear by one rename */
	assert_int_equal(stat(spec_path_of("rdma_vf-n0-0"), &st), 0);
	assert_int_equal(st.st_mode & 07777, 0644);
}

/* The verbs node got another number when the RDMA device moved into the pod's namespace, where it
 * cannot be seen from. */
static void the_node_is_that_of_now_also_in_another_namespace(void **state)
{
	const char *rdma;

	(void)state;
	pod("p", HOLDS(GPU "=%s rdma/vf=%s", gpus(0, 0), slots(0, 0, 0)));
	bind_slots(slots(0, 0, 0));
	rdma = machine.node->inv->rdma[dev_of(got.vf[0])->rdma].name;
	machine_remove(&machine, DEV "/infiniband", got.vf[0]);
	machine_remove(&machine, DEV "/infiniband_verbs", got.vf[0]);
	machine_file(&machine, HOLDS("%s\n", rdma), "sys/class/infiniband_verbs/uverbs77/ibdev");
	bind_slots(slots(0, 0, 0));
	assert_non_null(strstr(spec("rdma_vf-n0-0"), "/dev/infiniband/uverbs77\""));
	assert_non_null(strstr(spec("rdma_vf-n0-0"), HOLDS("NCCL_IB_HCA==%s:1", rdma)));
}

static void a_vf_that_lost_its_rdma_device_is_a_reason_to_wait(void **state)
{
	(void)state;
	pod("p", HOLDS(GPU "=%s rdma/vf=%s", gpus(0, 0), slots(0, 0, 0)));
	machine_remove(&machine, DEV "/infiniband", machine.pool->devs[0].id);
	machine_remove(&machine, DEV "/infiniband_verbs", machine.pool->devs[0].id);
	bind_fails(slots(0, 0, 0), EAGAIN, "has no RDMA device");
	assert_null(spec("rdma_vf-n0-0"));
	assert_int_equal(n_holds(), 0);
	assert_int_equal(ledger_decisions(ledger_now(tracker_ledger(tracker))), 0);
}

/* --- the CDI directory --- */

static void a_directory_that_cannot_be_written_is_a_reason_to_wait(void **state)
{
	(void)state;
	put(HOLDS("%s/file", machine.dir), "");
	rmdir(cdi_dir);
	assert_int_equal(symlink(HOLDS("%s/file", machine.dir), cdi_dir), 0);
	pod("p", HOLDS("rdma/vf=%s", slots(0, 0, 0)));
	bind_fails(slots(0, 0, 0), EAGAIN, cdi_dir);
	assert_int_equal(n_holds(), 0);
	unlink(cdi_dir);
	bind_slots(slots(0, 0, 0));
}

static void a_full_disk_is_a_reason_to_wait(void **state)
{
	struct rlimit before, full = { 0 };

	(void)state;
	pod("p", HOLDS("rdma/vf=%s", slots(0, 0, 0)));
	assert_int_equal(getrlimit(RLIMIT_FSIZE, &before), 0);
	full.rlim_max = before.rlim_max;
	signal(SIGXFSZ, SIG_IGN);
	setrlimit(RLIMIT_FSIZE, &full);
	bind_pod(slots(0, 0, 0), NULL);
	setrlimit(RLIMIT_FSIZE, &before);
	assert_int_equal(got.code, EAGAIN);
	assert_non_null(strstr(got.why, "write CDI spec"));
	assert_int_equal(count_files(), 0);
	assert_int_equal(n_holds(), 0);
	bind_slots(slots(0, 0, 0));
}

static void specs_of_others_are_left_alone(void **state)
{
	const char *nvidia = HOLDS("%s/nvidia.json", cdi_dir), *mine = spec_path_of("rdma_vf-n0-0");

	(void)state;
	put(nvidia, "{\"kind\": \"nvidia.com/gpu\"}");
	put(mine, "{\"kind\": \"example.com/nic\"}");
	pod("p", HOLDS("rdma/vf=%s", slots(0, 0, 0)));
	bind_fails(slots(0, 0, 0), EAGAIN, "exists and was not written by railmated");
	allocated(slots(0, 0, 0));
	assert_string_equal(text_of_file(mine), "{\"kind\": \"example.com/nic\"}");
	unlink(mine);
	bind_slots(slots(0, 0, 0));
	assert_int_equal(access(nvidia, F_OK), 0);
}

static void a_folder_in_the_place_of_a_spec_is_named(void **state)
{
	(void)state;
	mkdir(cdi_dir, 0755);
	mkdir(spec_path_of("rdma_vf-n0-0"), 0755);
	pod("p", HOLDS("rdma/vf=%s", slots(0, 0, 0)));
	bind_fails(slots(0, 0, 0), EAGAIN, "exists and is not a regular file");
	rmdir(spec_path_of("rdma_vf-n0-0"));
}

static void a_spec_edited_by_hand_is_told_and_written_anew(void **state)
{
	const char *text;

	(void)state;
	pod("p", HOLDS("rdma/vf=%s", slots(0, 0, 0)));
	bind_slots(slots(0, 0, 0));
	text = arena_strdup(arena, spec("rdma_vf-n0-0"));
	put(spec_path_of("rdma_vf-n0-0"), "{\"kind\": \"railmate.io/vf\", \"devices\": []}");
	bind_slots(slots(0, 0, 0));
	assert_int_equal(notes, 1);
	assert_non_null(
		strstr(last_note, "was changed by another program; it is written again path="));
	assert_string_equal(spec("rdma_vf-n0-0"), text);
}

static struct ledger *copy_of_ledger(void)
{
	struct strbuf text = STRBUF_INIT;
	struct ledger *copy;

	ledger_write(ledger_now(tracker_ledger(tracker)), &text);
	assert_int_equal(ledger_read(text.s, text.len, "ledger", &copy, NULL), 0);
	strbuf_done(&text);
	return copy;
}

static void restart_with(struct ledger *ledger)
{
	end_latebind();
	tracker_free(tracker);
	make_tracker(ledger);
	make_latebind();
}

static void restart_without_ledger(void *arg)
{
	(void)arg;
	restart_with(NULL);
}

static void restart_with_ledger(void *arg)
{
	(void)arg;
	restart_with(copy_of_ledger());
}

static bool is_there_again(void)
{
	return spec("rdma_vf-n0-0");
}

static void a_spec_that_is_deleted_is_written_again_while_its_container_lives(void **state)
{
	const char *text;

	(void)state;
	pod("p", HOLDS("rdma/vf=%s", slots(0, 0, 1)));
	bind_slots(slots(0, 0, 1));
	text = spec("rdma_vf-n0-0");
	restore_ms = 20;
	on_rpc(restart_with_ledger, NULL);
	unlink(spec_path_of("rdma_vf-n0-0"));
	wait_until(is_there_again);
	assert_string_equal(spec("rdma_vf-n0-0"), text);
	assert_int_equal(notes, 1);
	assert_non_null(strstr(last_note, "was removed; it is written again path="));
}

static void a_spec_goes_with_its_container(void **state)
{
	(void)state;
	restore_ms = 20;
	on_rpc(restart_with_ledger, NULL);
	pod("p", HOLDS("rdma/vf=%s", slots(0, 0, 1)));
	bind_slots(slots(0, 0, 1));
	list_pods();
	remove_pod("p");
	list_pods();
	assert_int_equal(n_holds(), 0);
	on_rpc(sweep_fn, NULL);
	assert_int_equal(count_files(), 0);
	usleep(50000); /* and does not come back */
	assert_int_equal(count_files(), 0);
}

/* --- at the start --- */

static void a_lost_ledger_is_rebuilt_from_the_specs(void **state)
{
	const char *vf;

	(void)state;
	pod("p", HOLDS(GPU "=%s rdma/vf=%s", gpus(0, 0), slots(0, 0, 1)));
	bind_pod(slots(0, 0, 1), &(struct pod_ref) { "default", "p", "1234" });
	vf = got.vf[1];
	on_rpc(restart_without_ledger, NULL);
	assert_int_equal(n_holds(), 2);
	assert_string_equal(hold_of(vf)->slot, "rdma_vf-n0-1");
	assert_string_equal(hold_of(vf)->owner.container, "main");
	assert_string_equal(hold_of(vf)->owner.pod, "p");
	assert_string_equal(hold_of(vf)->owner.uid, "1234");
	assert_int_equal(hold_of(vf)->decision, 1);
	bind_slots(slots(0, 0, 1));
	assert_string_equal(got.vf[1], vf);
}

static void release(void *arg)
{
	holds_event(tracker_holds(tracker),
		    &(struct holds_event) { .kind = HOLDS_RELEASED, .vf = arg }, tracker_now());
	tracker_save(tracker, NULL, NULL);
}

static void specs_of_the_past_go(void **state)
{
	const char *text;

	(void)state;
	pod("p", HOLDS(GPU "=%s rdma/vf=%s", gpus(0, 0), slots(0, 0, 0)));
	bind_slots(slots(0, 0, 0));
	text = spec("rdma_vf-n0-0");
	on_rpc(release, (void *)got.vf[0]);
	remove_pod("p");
	pod("q", HOLDS(GPU "=%s rdma/vf=%s", gpus(0, 0), slots(0, 1, 1)));
	bind_slots(slots(0, 1, 1));
	put(spec_path_of("rdma_vf-n0-0"), text);
	on_rpc(restart_with_ledger, NULL);
	on_rpc(sweep_fn, NULL);
	assert_null(spec("rdma_vf-n0-0"));
	assert_non_null(spec("rdma_vf-n0-1"));
	assert_int_equal(n_holds(), 1);
}

static void what_is_no_spec_of_ours_is_left_alone_at_the_start(void **state)
{
	(void)state;
	pod("p", HOLDS(GPU "=%s rdma/vf=%s", gpus(0, 0), slots(0, 0, 0)));
	bind_slots(slots(0, 0, 0));
	put(HOLDS("%s/.railmate.io-vf_rdma_vf-n0-6.json.tmp", cdi_dir), "{");
	put(spec_path_of("rdma_vf-n0-7"), "{");
	mkdir(HOLDS("%s/folder", cdi_dir), 0755);
	mkdir(spec_path_of("rdma_vf-n1-0"), 0755);
	on_rpc(restart_with_ledger, NULL);
	on_rpc(sweep_fn, NULL);
	assert_non_null(spec("rdma_vf-n0-0"));
	assert_int_equal(notes, 1);
	assert_int_equal(count_files(), 4);
	assert_int_equal(access(HOLDS("%s/.railmate.io-vf_rdma_vf-n0-6.json.tmp", cdi_dir), F_OK),
			 -1);
}

/* On the rpc thread: a scan in between would find no directory, and no directory has no spec. */
static void let_directory(void *arg)
{
	(void)arg;
	unlink(cdi_dir);
	rename(HOLDS("%s.away", cdi_dir), cdi_dir);
}

static bool is_something_held(void)
{
	return n_holds() > 0;
}

static void
while_the_directory_cannot_be_read_no_container_starts_and_nothing_is_removed(void **state)
{
	const char *vf;

	(void)state;
	pod("p", HOLDS(GPU "=%s rdma/vf=%s", gpus(0, 0), slots(0, 0, 0)));
	pod("q", HOLDS(GPU "=%s rdma/vf=%s", gpus(0, 0), slots(0, 1, 1)));
	bind_slots(slots(0, 0, 0));
	vf = got.vf[0];
	assert_int_equal(rename(cdi_dir, HOLDS("%s.away", cdi_dir)), 0);
	assert_int_equal(symlink(cdi_dir, cdi_dir), 0); /* ELOOP */
	on_rpc(restart_without_ledger, NULL);
	bind_fails(slots(0, 1, 1), EAGAIN, "were not read yet");
	assert_int_equal(n_holds(), 0);
	on_rpc(let_directory, NULL);
	wait_until(is_something_held);
	assert_string_equal(hold_of(vf)->owner.pod, "p");
	bind_slots(slots(0, 1, 1));
	assert_string_not_equal(got.vf[0], vf);
}

/* --- what the kubelet is told --- */

static struct {
	size_t n, healthy, held;
	bool slot_0, slot_7;
} view;

static void view_fn(void *arg)
{
	struct arena *scratch = arena_new(0);
	struct slot_list l = latebind_slots(latebind, &machine.node->pools[0], scratch);

	(void)arg;
	memset(&view, 0, sizeof(view));
	view.n = l.n;
	for (size_t i = 0; i < l.n; i++) {
		view.healthy += l.v[i].healthy;
		view.held += l.v[i].held;
		if (str_eq(l.v[i].id, "rdma_vf-n0-0"))
			view.slot_0 = l.v[i].healthy;
		if (str_eq(l.v[i].id, "rdma_vf-n0-7"))
			view.slot_7 = l.v[i].healthy;
	}
	arena_free(scratch);
}

static bool was_change_told(void)
{
	bool told = changes > 0;

	changes = 0;
	return told;
}

static void slots_follow_what_is_bound_and_promised(void **state)
{
	(void)state;
	on_rpc(view_fn, NULL);
	assert_int_equal(view.n, 16);
	assert_int_equal(view.healthy, 16);
	assert_int_equal(view.held, 0);
	allocated(slots(0, 0, 1));
	wait_until(was_change_told);
	on_rpc(view_fn, NULL);
	assert_int_equal(view.held, 2);
	pod("p", HOLDS(GPU "=%s rdma/vf=%s", gpus(0, 0), slots(0, 0, 1)));
	bind_slots(slots(0, 0, 1));
	wait_until(was_change_told);
	on_rpc(unbind_driver, (void *)got.vf[0]);
	on_rpc(view_fn, NULL);
	assert_int_equal(view.n, 16);
	assert_int_equal(view.held, 2);
	assert_int_equal(view.healthy, 15);
	assert_false(view.slot_0);
	assert_true(view.slot_7);
}

/* --- the truth at the start --- */

#define FIXED_GID                                                                                  \
	"{\"resourceList\": [{\"resourcePrefix\": \"rdma\", \"resourceName\": \"vf\", \"selectors\": {\"isRdma\": true}, \"railmate\": {\"binding\": \"late\", \"gid\": \"fixed:3\"}}]}"

static void look_first(void *arg)
{
	const struct vfprobe_env env = { .rpc = rpc, .root = machine.dir, .probe = fake_vfs_probe };

	(void)arg;
	vfprobe = grant_probe_new(&env);
	rundir = HOLDS("%s/run", machine.dir);
	probe = HOLDS("%s/probe", machine.dir);
	end_latebind();
	make_latebind();
}

static int set_up_truth_with(const char *text)
{
	fake_vfs_reset();
	set_up_with(text);
	on_rpc(look_first, NULL);
	return 0;
}

static int set_up_truth(void **state)
{
	(void)state;
	return set_up_truth_with(ONE_POOL);
}

static int set_up_fixed_gid(void **state)
{
	(void)state;
	return set_up_truth_with(FIXED_GID);
}

static const char *file_of(const char *vf, const char *name)
{
	char *text = arena_alloc(arena, 8192);
	FILE *f = fopen(HOLDS("%s/run/vf-%s/%s", machine.dir, vf, name), "re");

	if (!f)
		return NULL;
	text[fread(text, 1, 8191, f)] = '\0';
	fclose(f);
	return text;
}

static void a_spec_tells_what_the_vf_is_when_its_container_starts(void **state)
{
	const char *text;

	(void)state;
	pod("p", HOLDS(GPU "=%s rdma/vf=%s", gpus(0, 0), slots(0, 0, 0)));
	bind_slots(slots(0, 0, 0));
	text = spec("rdma_vf-n0-0");
	assert_non_null(strstr(text, "\"NCCL_IB_HCA==moved_"));
	assert_non_null(strstr(text, "/dev/infiniband/uverbs9"));
	assert_non_null(strstr(text, "NCCL_IB_GID_INDEX=3"));
	assert_non_null(
		strstr(text, HOLDS("\"hostPath\": \"%s/run/vf-%s\"", machine.dir, got.vf[0])));
	assert_non_null(strstr(text, "\"containerPath\": \"/run/railmate\""));
	assert_non_null(strstr(file_of(got.vf[0], "nccl.conf"), "NCCL_IB_GID_INDEX=3"));
	assert_non_null(strstr(file_of(got.vf[0], "map.json"), "\"pod\": \"default/p\""));
	assert_int_equal(fake_vfs.probes, 1);
	assert_int_equal(notes, 0);
}

static void all_slots_of_a_container_see_one_directory(void **state)
{
	const char *mount;

	(void)state;
	pod("p", HOLDS("rdma/vf=%s,%s", slots(0, 0, 1), slots(1, 0, 0)));
	bind_slots(slots(0, 0, 0));
	assert_int_equal(got.n, 3);
	for (size_t i = 1; i < got.n; i++) {
		if (ledger_vf_cmp(got.vf[i], got.vf[0]) < 0)
			got.vf[0] = got.vf[i];
	}
	mount = HOLDS("%s/run/vf-%s\"", machine.dir, got.vf[0]);
	assert_non_null(strstr(spec("rdma_vf-n0-0"), mount));
	assert_non_null(strstr(spec("rdma_vf-n0-1"), mount));
	assert_non_null(strstr(spec("rdma_vf-n1-0"), mount));
}

static void a_spec_mounts_the_probe_over_its_place(void **state)
{
	(void)state;
	pod("p", HOLDS("rdma/vf=%s", slots(0, 0, 0)));
	bind_slots(slots(0, 0, 0));
	assert_null(strstr(spec("rdma_vf-n0-0"), "/run/railmate/probe")); /* it is not there yet */
	assert_int_equal(mkdir(probe, 0755), 0);
	put(HOLDS("%s/" PROBE_PROGRAM, probe), "");
	bind_slots(slots(0, 0, 0));
	assert_non_null(strstr(spec("rdma_vf-n0-0"), HOLDS("\"hostPath\": \"%s\"", probe)));
	assert_non_null(strstr(spec("rdma_vf-n0-0"), "\"containerPath\": \"/run/railmate/probe\""));
	assert_int_equal(access(HOLDS("%s/run/vf-%s/probe", machine.dir, got.vf[0]), F_OK), 0);
}

static void a_cni_plugin_asks_before_there_is_anything_to_see(void **state)
{
	const struct pod_ref who = { "default", "p", "uid" };

	(void)state;
	pod("p", HOLDS("rdma/vf=%s", slots(0, 0, 0)));
	bind_pod(slots(0, 0, 0), &who);
	assert_int_equal(got.code, 0);
	assert_int_equal(fake_vfs.probes, 0);
	assert_null(strstr(spec("rdma_vf-n0-0"), "moved_"));
	bind_slots(slots(0, 0, 0)); /* the kubelet: the truth at the start wins */
	assert_int_equal(fake_vfs.probes, 1);
	assert_non_null(strstr(spec("rdma_vf-n0-0"), "moved_"));
}

static void what_cannot_be_known_stops_nobody_and_is_told_once(void **state)
{
	(void)state;
	fake_vfs.fails = true;
	pod("p", HOLDS("rdma/vf=%s", slots(0, 0, 0)));
	pod("q", HOLDS("rdma/vf=%s", slots(0, 1, 1)));
	bind_slots(slots(0, 0, 0));
	bind_slots(slots(0, 1, 1));
	assert_int_equal(notes, 1);
	assert_non_null(strstr(last_note, "the kernel is silent"));
	assert_non_null(strstr(
		spec("rdma_vf-n0-1"),
		HOLDS("NCCL_IB_HCA==%s:1", machine.node->inv->rdma[dev_of(got.vf[0])->rdma].name)));
	assert_non_null(strstr(file_of(got.vf[0], "map.json"), "the kernel is silent"));
}

static void a_fixed_gid_that_is_not_there_is_a_reason_to_wait(void **state)
{
	(void)state;
	fake_vfs.gid = 5;
	pod("p", HOLDS("rdma/vf=%s", slots(0, 0, 0)));
	bind_fails(slots(0, 0, 0), EAGAIN, "3");
	assert_null(spec("rdma_vf-n0-0"));
	assert_int_equal(n_holds(), 0);
	fake_vfs.gid = 3;
	bind_slots(slots(0, 0, 0));
	assert_non_null(strstr(spec("rdma_vf-n0-0"), "NCCL_IB_GID_INDEX=3"));
}

static void hold_the_look(const char *list)
{
	static struct wish w;

	fake_vfs.held = true;
	w = (struct wish) { ids_of(list), NULL, &got };
	got = (struct outcome) { 0 };
	on_rpc(bind_fn, &w);
	fake_vfs_wait();
}

static void a_pod_that_goes_while_its_vf_is_looked_at_is_not_bound(void **state)
{
	(void)state;
	pod("p", HOLDS("rdma/vf=%s", slots(0, 0, 0)));
	hold_the_look(slots(0, 0, 0));
	assert_int_equal(n_holds(), 1); /* nobody else gets it meanwhile */
	list_pods();
	remove_pod("p");
	pod("q", HOLDS("rdma/vf=%s", slots(0, 1, 1)));
	list_pods();
	assert_int_equal(n_holds(), 0);
	fake_vfs_let();
	wait_until(is_done);
	assert_int_equal(got.code, EAGAIN);
	assert_non_null(strstr(
		got.why,
		"slot rdma_vf-n0-0 was given to another container while container main of pod default/p started"));
	assert_null(spec("rdma_vf-n0-0"));
}

static void what_another_asker_was_told_is_not_undone(void **state)
{
	const struct pod_ref who = { "default", "p", "" };
	struct wish w = { ids_of(slots(0, 0, 0)), &who, &other };

	(void)state;
	fake_vfs.gid = 5;
	pod("p", HOLDS("rdma/vf=%s", slots(0, 0, 0)));
	hold_the_look(slots(0, 0, 0));
	other = (struct outcome) { 0 };
	on_rpc(bind_fn, &w);
	wait_until(other_is_done);
	assert_int_equal(other.code, 0);
	fake_vfs_let();
	wait_until(is_done);
	assert_int_equal(got.code, EAGAIN);
	assert_string_equal(
		ledger_find_slot(ledger_now(tracker_ledger(tracker)), "rdma_vf-n0-0")->vf,
		other.vf[0]);
}

static void a_binder_that_ends_while_it_looks_has_answered(void **state)
{
	(void)state;
	pod("p", HOLDS("rdma/vf=%s", slots(0, 0, 0)));
	hold_the_look(slots(0, 0, 0));
	on_rpc(free_latebind, NULL);
	assert_true(got.done);
	assert_int_equal(got.code, EAGAIN);
	fake_vfs_let();
	on_rpc(end_all, NULL);
	assert_int_equal(got.times, 1);
	on_rpc(begin_all, NULL); /* for the end of the test */
}

static void a_run_directory_that_cannot_be_had_stops_nobody(void **state)
{
	(void)state;
	put(HOLDS("%s/run", machine.dir), "");
	pod("p", HOLDS("rdma/vf=%s", slots(0, 0, 0)));
	bind_slots(slots(0, 0, 0));
	assert_int_equal(notes, 1);
	assert_non_null(strstr(last_note, "starts without /run/railmate"));
	assert_null(strstr(spec("rdma_vf-n0-0"), "/run/railmate"));
	assert_non_null(strstr(spec("rdma_vf-n0-0"), "NCCL_IB_GID_INDEX=3"));
}

int main(void)
{
#define TRUTH(f) cmocka_unit_test_setup_teardown(f, set_up_truth, tear_down)
	const struct CMUnitTest tests[] = {
		T(a_spec_gives_what_early_binding_gives),
		T(a_container_has_one_spec_and_nothing_else_is_left_in_the_directory),
		T(the_node_is_that_of_now_also_in_another_namespace),
		T(a_vf_that_lost_its_rdma_device_is_a_reason_to_wait),
		T(a_directory_that_cannot_be_written_is_a_reason_to_wait),
		T(a_full_disk_is_a_reason_to_wait),
		T(specs_of_others_are_left_alone),
		T(a_folder_in_the_place_of_a_spec_is_named),
		T(a_spec_edited_by_hand_is_told_and_written_anew),
		T(a_spec_that_is_deleted_is_written_again_while_its_container_lives),
		T(a_spec_goes_with_its_container),
		T(a_lost_ledger_is_rebuilt_from_the_specs),
		T(specs_of_the_past_go),
		T(what_is_no_spec_of_ours_is_left_alone_at_the_start),
		T(while_the_directory_cannot_be_read_no_container_starts_and_nothing_is_removed),
		T(slots_follow_what_is_bound_and_promised),
		TRUTH(a_spec_tells_what_the_vf_is_when_its_container_starts),
		TRUTH(a_spec_mounts_the_probe_over_its_place),
		TRUTH(all_slots_of_a_container_see_one_directory),
		TRUTH(a_cni_plugin_asks_before_there_is_anything_to_see),
		TRUTH(what_cannot_be_known_stops_nobody_and_is_told_once),
		cmocka_unit_test_setup_teardown(a_fixed_gid_that_is_not_there_is_a_reason_to_wait,
						set_up_fixed_gid, tear_down),
		TRUTH(a_pod_that_goes_while_its_vf_is_looked_at_is_not_bound),
		cmocka_unit_test_setup_teardown(what_another_asker_was_told_is_not_undone,
						set_up_fixed_gid, tear_down),
		TRUTH(a_binder_that_ends_while_it_looks_has_answered),
		TRUTH(a_run_directory_that_cannot_be_had_stops_nobody),
	};

	return cmocka_run_group_tests(tests, start_rpc, stop_rpc);
}
