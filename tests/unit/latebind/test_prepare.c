/* VFs of ResourceClaims (DRA): whose GPUs count, and what the part of a claim keeps. */
#include <fcntl.h>
#include <unistd.h>

#include "kubepeer/kubepeer.h"
#include "unit/latebind/binding.h"

#define ANYWHERE                                                                                   \
	"{\"resourceList\": [{\"resourcePrefix\": \"rdma\", \"resourceName\": \"vf\", \"excludeTopology\": true, \"selectors\": {\"isRdma\": true}, \"railmate\": {\"binding\": \"late\"}}]}"
#define C0 "rdma_vf-c0b1a6e2c-55d0-4f0b-9d7e-6b1d1f0c9a55-"
#define C1 "rdma_vf-c11111111-55d0-4f0b-9d7e-6b1d1f0c9a55-"
#define C2 "rdma_vf-c22222222-55d0-4f0b-9d7e-6b1d1f0c9a55-"
#define U0 "0b1a6e2c-55d0-4f0b-9d7e-6b1d1f0c9a55"

static int set_up_anywhere(void **state)
{
	(void)state;
	return set_up_with(ANYWHERE);
}

static struct latebind_claim part(const char *list, const char *containers)
{
	return (struct latebind_claim) { .owner = { .ns = "default",
						    .pod = "p",
						    .uid = "u1",
						    .container = ids_of(containers).v[0] },
					 .slots = ids_of(list),
					 .containers = ids_of(containers) };
}

static void prepare_with(const struct latebind_claim *c)
{
	got = (struct outcome) { 0 };
	on_rpc(prepare_fn, (void *)c);
	wait_until(is_done);
}

static void prepare(const char *list, const char *containers)
{
	const struct latebind_claim c = part(list, containers);

	prepare_with(&c);
	if (got.code)
		fail_msg("not prepared: %s", got.why);
}

static void unprepare_fn(void *arg)
{
	(void)arg;
	holds_event(tracker_holds(tracker),
		    &(struct holds_event) { .kind = HOLDS_UNPREPARED, .claim_uid = U0 },
		    tracker_now());
	tracker_run_now(tracker);
	tracker_save(tracker, NULL, NULL);
}

static unsigned refreshed;

static void on_refreshed(void *arg, const struct err *err, const struct bound *v, size_t n)
{
	(void)arg;
	(void)v;
	(void)n;
	assert_null(err);
	refreshed++;
}

static bool is_refreshed(void)
{
	return refreshed;
}

/* --- */

static void the_vfs_are_nearest_to_the_gpus_of_the_containers(void **state)
{
	(void)state;
	pod_with("p", HOLDS(GPU "=%s", gpus(0, 1)), HOLDS(GPU "=%s", gpus(6, 7)));
	prepare(C0 "0," C0 "1", "side");
	assert_int_equal(count_of_pf(3), 2);
	assert_string_equal(hold_of(got.vf[0])->owner.claim, U0);
	assert_string_equal(hold_of(got.vf[0])->owner.uid, "u1");
	assert_string_equal(hold_of(got.vf[0])->owner.container, "side");
	prepare(C0 "2", "main");
	assert_int_equal(count_of_pf(0), 1);
	prepare(C0 "3," C0 "4", "main,side");
	assert_int_equal(count_of_pf(0), 1);
	assert_int_equal(count_of_pf(3), 1);
}

/* PodResources shows each container all devices of the pod's claims: those do not count. */
static void gpus_by_claim_are_those_that_the_claim_says(void **state)
{
	struct dynamic gpu = { "gpu.nvidia.com", "node", NULL, { NULL, 0 }, "gpus" };
	struct latebind_claim c = part(C0 "0", "main");

	(void)state;
	pod("p", "");
	pods[0].containers[0].dynamic = arena_array(arena, 1, sizeof(gpu));
	pods[0].containers[0].dynamic[0] = gpu;
	pods[0].containers[0].dynamic[0].device = "gpu-6";
	pods[0].containers[0].n_dynamic = 1;
	gpu.device = arena_printf(arena, "gpu-%s", machine.node->inv->gpu[2].uuid + strlen("GPU-"));
	c.dynamic = &gpu;
	c.n_dynamic = 1;
	prepare_with(&c);
	assert_string_equal(got.why, "");
	assert_int_equal(count_of_pf(1), 1);
}

static void a_part_of_two_claims_is_one_choice_and_one_spec(void **state)
{
	const char *text;

	(void)state;
	pod("p", HOLDS(GPU "=%s", gpus(4, 5)));
	prepare(C0 "0," C1 "0", "main");
	assert_int_equal(count_of_pf(2), 2);
	assert_string_equal(hold_of(got.vf[0])->owner.claim, U0);
	assert_string_not_equal(hold_of(got.vf[1])->owner.claim, U0);
	text = spec(C0 "0");
	assert_non_null(text);
	assert_non_null(strstr(text, got.vf[0]));
	assert_non_null(strstr(text, got.vf[1]));
	on_rpc(unprepare_fn, NULL);
	assert_null(hold_of(got.vf[0]));
	assert_non_null(hold_of(got.vf[1]));
	on_rpc(sweep_fn, NULL);
	assert_non_null(spec(C0 "0")); /* the other one is in it */
}

/* C0 is shared by two pods, each of which has another claim beside it in one container: the second
 * pod's call must leave the first one's device resolvable, for its containers restart. */
static void every_live_slot_stays_in_a_spec(void **state)
{
	(void)state;
	pod("p", "");
	prepare(C0 "0," C1 "0", "main");
	prepare(C0 "0," C2 "0", "main");
	on_rpc(sweep_fn, NULL);
	assert_int_equal(n_holds(), 3);
	assert_non_null(spec(C0 "0"));
	assert_non_null(spec(C2 "0"));
	assert_non_null(spec(C1 "0"));
}

static void a_vf_of_one_pf_is_asked_for(void **state)
{
	const char *far = NULL;
	const char *places[] = { NULL, NULL };
	struct latebind_claim c = part(C0 "0," C0 "1", "main");

	(void)state;
	pod("p", HOLDS(GPU "=%s", gpus(0, 1)));
	for (size_t i = 0; i < machine.node->pools[0].n_devs; i++)
		far = pool_dev_place(&machine.node->pools[0].devs[i]); /* the last PF */
	places[1] = far;
	c.places = places;
	prepare_with(&c);
	assert_string_equal(got.why, "");
	assert_int_equal(pf_of(got.vf[0]), 0);
	assert_int_equal(pf_of(got.vf[1]), 3);
	c = part(C1 "0," C1 "1," C1 "2," C1 "3", "main");
	c.places = (const char *[]) { far, far, far, far };
	prepare_with(&c); /* three are left there */
	assert_int_equal(got.code, EAGAIN);
	assert_int_equal(n_holds(), 2);
}

static void it_keeps_its_vfs_when_it_is_prepared_again(void **state)
{
	const char *first;

	(void)state;
	pod("p", HOLDS(GPU "=%s", gpus(4, 5)));
	prepare(C0 "0", "main");
	first = got.vf[0];
	remove_pod("p");
	pod("p", HOLDS(GPU "=%s", gpus(0, 1)));
	prepare(C0 "0", "main");
	assert_string_equal(got.vf[0], first);
	assert_int_equal(n_holds(), 1);
}

static void it_outlives_us(void **state)
{
	const char *first;

	(void)state;
	pod("p", HOLDS(GPU "=%s", gpus(4, 5)));
	prepare(C0 "0", "main");
	first = got.vf[0];
	on_rpc(end_all, NULL);
	on_rpc(begin_all, NULL); /* without its ledger: the spec names the VF */
	assert_string_equal(hold_of(first)->owner.claim, U0);
	assert_string_equal(hold_of(first)->slot, C0 "0");
	prepare(C0 "0", "main");
	assert_string_equal(got.vf[0], first);
	on_rpc(unprepare_fn, NULL);
	assert_null(hold_of(first));
	on_rpc(sweep_fn, NULL);
	assert_null(spec(C0 "0"));
}

static void a_pod_that_is_not_shown_waits(void **state)
{
	const struct latebind_claim c = part(C0 "0", "main"),
				    foreign = part("other_vf-n0-0", "main");

	(void)state;
	prepare_with(&c);
	assert_int_equal(got.code, EAGAIN);
	assert_non_null(strstr(got.why, "does not show pod default/p"));
	assert_int_equal(n_holds(), 0);
	pod("p", "");
	prepare_with(&foreign);
	assert_int_equal(got.code, ENOENT);
}

/* As Multus hands on the slices' attribute k8s.cni.cncf.io/deviceID. */
static void a_cni_plugin_finds_the_vfs_of_a_claim(void **state)
{
	const struct pod_ref mine = { "default", "p", "u1" }, other_pod = { "default", "q", "u2" };
	const char *vf, *second, *pf;

	(void)state;
	pod("p", HOLDS(GPU "=%s", gpus(0, 7)));
	prepare(C0 "0," C0 "7", "main");
	vf = got.vf[0];
	second = got.vf[1];
	bind_pod("rdma_vf-any-7", &mine);
	assert_int_equal(got.code, 0);
	assert_string_equal(got.vf[0], second);
	bind_pod("rdma_vf-any-0", &mine);
	assert_string_equal(got.vf[0], vf);
	pf = arena_strdup(arena, pool_dev_place(dev_of(vf)));
	bind_pod(pf, &mine);
	assert_string_equal(got.vf[0], vf);
	bind_pod("rdma_vf-any-0", &other_pod);
	assert_int_equal(got.code, EAGAIN);
	bind_pod("rdma_vf-any-1", &mine);
	assert_int_equal(got.code, EAGAIN);
	on_rpc(unprepare_fn, NULL);
	bind_pod(pf, &mine);
	assert_int_equal(got.code, EPERM);
}

static void refresh_fn(void *vf)
{
	latebind_refresh(latebind, vf, on_refreshed, NULL);
}

/* A CNI plugin gives the VF addresses after the claim was prepared. */
static void files_follow_a_vf_that_was_moved(void **state)
{
	char *vf;
	const char *text;

	(void)state;
	pod("p", HOLDS(GPU "=%s", gpus(4, 5)));
	prepare(C0 "0," C0 "1", "main");
	vf = arena_strdup(arena, got.vf[0]);
	text = spec(C0 "0");
	unlink(spec_path_of(C0 "0"));
	refreshed = 0;
	on_rpc(refresh_fn, vf);
	wait_until(is_refreshed);
	assert_string_equal(spec(C0 "0"), text); /* whole, with the GPUs of the choice */
	assert_int_equal(ledger_decisions(ledger_now(tracker_ledger(tracker))), 1);
	on_rpc(unprepare_fn, NULL);
	refreshed = 0;
	on_rpc(refresh_fn, vf); /* of nobody */
	wait_until(is_refreshed);
	assert_int_equal(n_holds(), 0);
}

static void with_files(void *arg)
{
	(void)arg;
	rundir = HOLDS("%s/run", machine.dir);
	probe = HOLDS("%s/probe", machine.dir);
	end_latebind();
	make_latebind();
}

/* PreStartContainer comes after CNI, a claim is prepared before. */
static void the_runtime_asks_for_files_anew(void **state)
{
	const char *program, *text;

	(void)state;
	machine_dir(&machine, "probe");
	on_rpc(with_files, NULL);
	program = HOLDS("%s/railmate-cni", probe);
	pod("p", HOLDS(GPU "=%s", gpus(4, 5)));
	prepare(C0 "0", "main");
	assert_null(strstr(spec(C0 "0"), "hook")); /* a runtime fails a container without it */
	assert_int_equal(close(open(program, O_CREAT | O_WRONLY, 0755)), 0);
	prepare(C0 "0", "main");
	text = spec(C0 "0");
	assert_non_null(strstr(text, "\"hookName\": \"createRuntime\""));
	assert_non_null(strstr(text, arena_printf(arena, "\"path\": \"%s\"", program)));
	assert_non_null(strstr(text, "\"--hook\""));
	assert_non_null(strstr(text, got.vf[0]));
}

static void too_few_vfs_wait(void **state)
{
	(void)state;
	pod("p", "");
	for (int i = 0; i < 4; i++)
		prepare(arena_printf(arena, C0 "%d," C0 "%d," C0 "%d," C0 "%d", 4 * i, 4 * i + 1,
				     4 * i + 2, 4 * i + 3),
			"main");
	assert_int_equal(n_holds(), 16);
	{
		const struct latebind_claim c = part(C1 "0", "main");

		prepare_with(&c);
	}
	assert_int_equal(got.code, EAGAIN);
	assert_int_equal(n_holds(), 16);
	on_rpc(unprepare_fn, NULL);
	prepare(C1 "0", "main");
}

#define A(f) cmocka_unit_test_setup_teardown(f, set_up_anywhere, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		A(the_vfs_are_nearest_to_the_gpus_of_the_containers),
		A(gpus_by_claim_are_those_that_the_claim_says),
		A(a_part_of_two_claims_is_one_choice_and_one_spec),
		A(every_live_slot_stays_in_a_spec),
		A(a_vf_of_one_pf_is_asked_for),
		A(it_keeps_its_vfs_when_it_is_prepared_again),
		A(it_outlives_us),
		A(a_pod_that_is_not_shown_waits),
		A(a_cni_plugin_finds_the_vfs_of_a_claim),
		A(files_follow_a_vf_that_was_moved),
		A(the_runtime_asks_for_files_anew),
		A(too_few_vfs_wait),
	};

	return cmocka_run_group_tests(tests, start_rpc, stop_rpc);
}
