#include "facts.h"

static void assert_ready(struct world *w, bool ready, const char *text)
{
	_cleanup_strbuf_ struct strbuf out = STRBUF_INIT;

	assert_int_equal(status_write_ready(&w->facts, &out), ready);
	assert_string_equal(out.s, text);
}

static void all_that_has_to_be_is_named(void **state)
{
	assert_ready(
		*state, true,
		"[+]config ok\n[+]registered rdma/vf ok\n[+]records ok\n[+]ledger ok\n[+]pods ok\n[+]gpus ok\n[+]admissions ok\n");
}

static void what_is_not_so_is_named_with_its_reason(void **state)
{
	struct world *w = *state;

	w->pools[0].registered = false;
	w->pools[0].problem = "the kubelet does not watch its devices";
	w->service.settled = false;
	w->service.ledger_failing = true;
	w->facts.machine.config_error = "config.json:3: no";
	assert_ready(
		w, false,
		"[-]config failed: config.json:3: no\n"
		"[-]registered rdma/vf failed: the kubelet does not watch its devices\n"
		"[-]records failed: not all records of earlier starts were read yet\n"
		"[-]ledger failed: it cannot be written to disk\n[+]pods ok\n[+]gpus ok\n[+]admissions ok\n");
}

static void a_disk_that_hangs_is_named(void **state)
{
	struct world *w = *state;

	w->service.ledger_late = true;
	assert_ready(
		w, false,
		"[+]config ok\n[+]registered rdma/vf ok\n[+]records ok\n"
		"[-]ledger failed: the disk does not store it in time\n[+]pods ok\n[+]gpus ok\n[+]admissions ok\n");
}

/* It serves, but not all that is asked for; the changed file that is refused is the newer news. */
static void a_configuration_of_which_something_is_left_out_is_named(void **state)
{
	struct world *w = *state;

	w->facts.machine.config_left_out = "config.json:7: pool rdma/b is left out";
	assert_ready(
		w, false,
		"[-]config failed: config.json:7: pool rdma/b is left out\n"
		"[+]registered rdma/vf ok\n[+]records ok\n[+]ledger ok\n[+]pods ok\n[+]gpus ok\n[+]admissions ok\n");
	w->facts.machine.config_error = "config.json:3: no";
	assert_ready(
		w, false,
		"[-]config failed: config.json:3: no\n"
		"[+]registered rdma/vf ok\n[+]records ok\n[+]ledger ok\n[+]pods ok\n[+]gpus ok\n[+]admissions ok\n");
}

/* It serves, and does not see all that it rests on. */
static void what_is_not_seen_limits_and_makes_nobody_wait(void **state)
{
	struct world *w = *state;
	_cleanup_free_ char *metrics = NULL;

	w->service.pods_unseen = "no cgroup of a pod was found";
	w->service.gpus_unknown = "'MIG-1' is a MIG device";
	assert_ready(w, true,
		     "[+]config ok\n[+]registered rdma/vf ok\n[+]records ok\n[+]ledger ok\n"
		     "[!]pods limited: no cgroup of a pod was found\n"
		     "[!]gpus limited: 'MIG-1' is a MIG device\n[+]admissions ok\n");
	metrics = world_metrics(w);
	assert_non_null(strstr(metrics, "railmate_limited{what=\"pods\"} 1\n"));
}

static void a_pod_that_was_refused_though_vfs_are_free_is_said(void **state)
{
	struct world *w = *state;
	_cleanup_free_ char *metrics = NULL;

	w->pools[0].refused = true;
	assert_ready(
		w, true,
		"[+]config ok\n[+]registered rdma/vf ok\n[+]records ok\n[+]ledger ok\n[+]pods ok\n[+]gpus ok\n"
		"[!]admissions limited: a pod was refused rdma/vf within the last 10 minutes, and 8 VFs of it are free: the log has the reason (Allocate refused)\n");
	metrics = world_metrics(w);
	assert_non_null(strstr(metrics, "railmate_limited{what=\"admissions\"} 1\n"));
	for (size_t i = 0; i < w->pool->n_devs; i++)
		world_hold(w, i, "train");
	assert_ready(
		w, true,
		"[+]config ok\n[+]registered rdma/vf ok\n[+]records ok\n[+]ledger ok\n[+]pods ok\n[+]gpus ok\n"
		"[+]admissions ok\n"); /* none was free */
}

/* One that never had a device is not offered; without a state directory none is wanted. */
static void what_is_as_configured_is_no_failure(void **state)
{
	struct world *w = *state;

	w->pools[0].served = w->pools[0].registered = false;
	w->service.ledger_has_file = w->service.ledger_stored = false;
	assert_ready(
		w, true,
		"[+]config ok\n[+]records ok\n[+]ledger ok\n[+]pods ok\n[+]gpus ok\n[+]admissions ok\n");
}

static void while_nothing_is_served_it_is_not_ready(void **state)
{
	struct world *w = *state;

	w->facts.service = NULL;
	assert_ready(
		w, false,
		"[+]config ok\n[-]service failed: nothing is served yet: the hardware is being scanned, or another railmated has not ended\n");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
#define WORLD(f) cmocka_unit_test_setup_teardown(f, world_set_up, world_tear_down)
		WORLD(all_that_has_to_be_is_named),
		WORLD(what_is_not_so_is_named_with_its_reason),
		WORLD(a_configuration_of_which_something_is_left_out_is_named),
		WORLD(a_disk_that_hangs_is_named),
		WORLD(what_is_as_configured_is_no_failure),
		WORLD(a_pod_that_was_refused_though_vfs_are_free_is_said),
		WORLD(what_is_not_seen_limits_and_makes_nobody_wait),
		WORLD(while_nothing_is_served_it_is_not_ready),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
