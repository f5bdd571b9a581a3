/* The records beside the ledger: read at the start before anything is given or removed, and swept
 * when they are no longer needed. */
#include "support/machine.h"
#include "support/onrpc.h"

#include "base/arena.h"
#include "base/clock.h"
#include "grant/records.h"
#include "grant/grant-internal.h"
#include "kubemsg/messages.h"
#include "tracker/tracker-internal.h"

#define MACHINE	  "numa:1 switch:1 gpu:1 pf:1 vf:4"
#define RESOURCE  "rdma/vf"
#define ALLOCATED "{\"pod\": null, \"gpus\": [{\"vf\": \"%s\", \"resource\": \"rdma/vf\"}]}"
#define MAP(pod, more)                                                                                             \
	"{\"pod\": \"" pod                                                                                         \
	"\", \"uid\": \"u1\", \"container\": \"main\", \"gpus\": [{\"vf\": \"%s\", \"resource\": \"rdma/vf\"" more \
	"}]}"

static struct pool_config pool_cfg = {
	.resource = RESOURCE, .prefix = "rdma", .name = "vf", .is_rdma = true
};
static const struct config cfg = { .pools = &pool_cfg, .n_pools = 1 };
static struct machine m;
static struct arena *a;
static struct tracker *k;
static const char *rundir;
static struct records *s;

static const char *vf(size_t i)
{
	return m.pool->devs[i].id;
}

static bool there(size_t i)
{
	return access(arena_printf(a, "%s/run/vf-%s", m.dir, vf(i)), F_OK) == 0;
}

static void put_map(size_t i, const char *text)
{
	const struct rundir_file f = { .name = "map.json", .text = text };

	assert_int_equal(grant_rundir_write(rundir, vf(i), &f, 1, NULL), 0);
}

static void begin(void *arg)
{
	k = tracker_new(
		&(struct tracker_env) { .rpc = rpc,
					.holds = holds_new(arg, &holds_default_pace, tracker_now()),
					.root = m.root });
	tracker_update(k, m.node);
}

static void end(void *arg)
{
	(void)arg;
	grant_records_close(STEAL(s));
	tracker_free(STEAL(k));
}

static int set_up(void **state)
{
	(void)state;
	a = arena_new(0);
	m = fake_machine_open(MACHINE, &cfg);
	rundir = arena_printf(a, "%s/run", m.dir);
	on_rpc(begin, NULL);
	return 0;
}

static int tear_down(void **state)
{
	(void)state;
	on_rpc(end, NULL);
	fake_machine_close(&m);
	arena_free(a);
	return 0;
}

static void read_fn(void *arg)
{
	(void)arg;
	grant_records_close(STEAL(s));
	s = grant_records_open(&(struct records_env) {
		.rpc = rpc, .rundir = rundir, .tracker = k, .retry_ms = 5 });
}

static void sweep_fn(void *arg)
{
	(void)arg;
	grant_records_sweep(s);
}

/* A List that shows nothing. */
static void list_fn(void *arg)
{
	static const struct pod_list none;

	(void)arg;
	tracker_hear(
		k, &(struct pods_said) { .all = true, .pods = &none, .asked_ms = clock_mono_ms() });
}

static const struct ledger_hold *hold_of(size_t i)
{
	return ledger_find(ledger_now(tracker_ledger(k)), vf(i));
}

static void a_map_says_who_holds_a_vf_when_the_ledger_is_lost(void **state)
{
	(void)state;
	put_map(0, arena_printf(
			   a, MAP("default/web-0", ", \"slot\": \"rdma_vf-n0-1\", \"decision\": 7"),
			   vf(0)));
	on_rpc(read_fn, NULL);
	assert_string_equal(hold_of(0)->owner.ns, "default");
	assert_string_equal(hold_of(0)->owner.pod, "web-0");
	assert_string_equal(hold_of(0)->owner.uid, "u1");
	assert_string_equal(hold_of(0)->owner.container, "main");
	assert_string_equal(hold_of(0)->slot, "rdma_vf-n0-1");
	assert_int_equal(hold_of(0)->decision, 7);
	on_rpc(list_fn, NULL);
	on_rpc(sweep_fn, NULL);
	assert_true(there(0));
}

/* PodResources shows no ordinary init container: it is known by its pod's UID alone. */
static void a_map_without_a_name_says_whose_uid_it_is(void **state)
{
	(void)state;
	put_map(0, arena_printf(a, MAP("", ", \"decision\": 7"), vf(0)));
	on_rpc(read_fn, NULL);
	assert_non_null(hold_of(0));
	assert_string_equal(hold_of(0)->owner.uid, "u1");
	assert_string_equal(hold_of(0)->owner.pod, "");
	assert_int_equal(hold_of(0)->decision, 7);
}

static void a_map_that_is_not_understood_says_nothing(void **state)
{
	static const char *const texts[] = {
		"",
		"{",
		"[]",
		"{\"gpus\": 7}",
		"{\"pod\": 7, \"gpus\": []}",
		"{\"pod\": \"default/p\", \"gpus\": [7, null, {\"vf\": 3}]}"
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(texts); i++) {
		put_map(0, texts[i]);
		on_rpc(read_fn, NULL);
		assert_int_equal(ledger_holds(tracker_ledger(k)), 0);
	}
	/* one that no container started with; an address that is none */
	put_map(0, arena_printf(a, ALLOCATED, vf(0)));
	put_map(1, arena_printf(a, MAP("default/p", ""), "../../etc"));
	on_rpc(read_fn, NULL);
	assert_int_equal(ledger_holds(tracker_ledger(k)), 0);
}

static void nothing_goes_before_the_kubelet_has_shown_its_pods(void **state)
{
	(void)state;
	put_map(0, "{}");
	on_rpc(read_fn, NULL);
	on_rpc(sweep_fn, NULL);
	assert_true(there(0));
	on_rpc(list_fn, NULL);
	on_rpc(sweep_fn, NULL);
	assert_false(there(0));
}

static bool is_held(void)
{
	return hold_of(0) != NULL;
}

static bool is_settled(void)
{
	return holds_status(tracker_holds(k)).settled;
}

/* On the thread that reads: it never sees that there is none. */
static void bring_back_fn(void *away)
{
	assert_int_equal(unlink(rundir), 0);
	assert_int_equal(rename(away, rundir), 0);
}

static void a_directory_that_cannot_be_read_is_read_again(void **state)
{
	char *away = arena_printf(a, "%s/away", m.dir);

	(void)state;
	put_map(0, arena_printf(a, MAP("default/web-0", ""), vf(0)));
	assert_int_equal(rename(rundir, away), 0);
	assert_int_equal(symlink(rundir, rundir), 0); /* ELOOP */
	on_rpc(read_fn, NULL);
	on_rpc(list_fn, NULL);
	usleep(20000);
	assert_false(is_on_rpc(is_settled));
	on_rpc(bring_back_fn, away);
	wait_until(is_held);
	assert_string_equal(hold_of(0)->owner.pod, "web-0");
}

#define TEST(fn) cmocka_unit_test_setup_teardown(fn, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(a_map_says_who_holds_a_vf_when_the_ledger_is_lost),
		TEST(a_map_without_a_name_says_whose_uid_it_is),
		TEST(a_map_that_is_not_understood_says_nothing),
		TEST(nothing_goes_before_the_kubelet_has_shown_its_pods),
		TEST(a_directory_that_cannot_be_read_is_read_again),
	};

	return cmocka_run_group_tests(tests, start_rpc, stop_rpc);
}
