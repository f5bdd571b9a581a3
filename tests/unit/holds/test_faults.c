/* Faults that were seen on real nodes, each as short as it can be told. All of them ended with one
 * VF in two live containers, but B3. */
#include "unit/holds/world.h"

/* Force-deleted, created again with the same name, and the process of before lives on: it is not
 * the same pod. */
static void b1a_the_same_name_again_is_another_pod(void **state)
{
	uint64_t number;

	(void)state;
	begin_pod("web-0#u1", V0);
	kubelet_lists({ "web-0", V0 });
	number =
		allocate("web-0", V0); /* specs name the pod, and no UID: the API server was slow */
	kubelet_lists({ "web-0", V0 });
	run_pod("web-0#u2");
	checkpoint("u2", V0);
	assert_false(starts_by("web-0#u2", V0, number, false));
	assert_true(is_held_by(V0, "web-0#u1"));
	end_pod("web-0#u1");
	assert_true(starts_by("web-0#u2", V0, number, false));
	assert_true(is_held_by(V0, "web-0#u2"));
}

/* The hold of the second twin must not follow the cgroup of the first one. */
static void b1b_a_hold_follows_the_cgroup_of_its_own_pod(void **state)
{
	(void)state;
	begin_pod("web-0#u1", V0);
	kubelet_lists({ "web-0", V0 });
	end_pod("web-0#u1");
	kubelet_lists({ "other", NULL });
	begin_pod("web-0#u2", V0);
	kubelet_lists({ "web-0", V0 });
	assert_string_equal(hold_of(V0)->owner.uid, "u2");
	allocate("web-1#u3", V0);
	kubelet_lists({ "web-1", V0 });
	assert_false(starts("web-1#u3", V0));
	assert_true(is_held_by(V0, "web-0#u2"));
	end_pod("web-0#u2");
	assert_true(starts("web-1#u3", V0));
}

/* Deleted a quarter of a second after its admission, and its process lives on: its UID is known by
 * then. */
static void b1c_a_pod_that_is_deleted_at_once_and_lives_on_keeps_its_vf(void **state)
{
	const char *offered[] = { V0 };
	uint64_t number = allocate("", V0);

	(void)state;
	run_pod("web-0#u1");
	assert_true(starts_by("web-0#u1", V0, number, false));
	pass(260);
	answer(NULL, w.now.mono_ms, w.epoch, NULL, 0);
	holds_event(w.h, &(struct holds_event) { .kind = HOLDS_OFFERED, .vfs = offered, .n = 1 },
		    w.now);
	settle();
	number = allocate("web-1#u2", V0);
	assert_false(starts_by("web-1#u2", V0, number, false));
	assert_true(is_held_by(V0, "web-0#u1"));
	end_pod("web-0#u1");
	tick();
	assert_true(starts_by("web-1#u2", V0, number, false));
}

/* The disk was full while pods came and went; the ledger on it is old, and the specs are newer. */
static void b2_an_old_ledger_does_not_beat_a_newer_spec(void **state)
{
	struct ledger *old;
	uint64_t number;

	(void)state;
	begin_late("web-0#u1", S0, V0);
	old = copy_of_ledger();
	kubelet_lists({ "web-0", S0 });
	end_pod("web-0#u1");
	kubelet_lists({ "other", NULL });
	number = begin_late("web-1#u2", S1, V0);
	restart(old);
	claim("web-1#u2", S1, V0, number);
	records_read();
	assert_true(is_held_by(V0, "web-1#u2"));
	assert_string_equal(holds_slot(w.h, S1).vf, V0);
	assert_true(holds_needs_record(w.h, NULL, S1));
	assert_true(holds_needs_record(w.h, V0, NULL));
	kubelet_lists({ "web-1", S1 });
	assert_false(may_give(V0));
}

/* A kubelet that has just started, without its API server, knows no pods: for minutes. */
static void b3_a_kubelet_that_has_just_started_ends_nothing(void **state)
{
	(void)state;
	begin_pod("web-0#u1", V0);
	begin_late("web-1#u2", S0, V1);
	kubelet_lists({ "web-0", V0 }, { "web-1", S0 });
	w.relists = w.said = 0;
	new_kubelet();
	for (int i = 0; i < 60; i++) {
		kubelet_gets_nothing("web-0");
		kubelet_lists_nothing();
		tick();
	}
	assert_false(is_draining(V0));
	assert_false(is_draining(V1));
	assert_true(is_held_by(V0, "web-0#u1"));
	assert_true(is_held_by(V1, "web-1#u2"));
	assert_true(holds_needs_record(w.h, NULL, S0));
	assert_string_equal(holds_slot(w.h, S0).vf, V1);
	assert_int_equal(w.relists, 0); /* nothing is told Unhealthy */
	assert_int_equal(w.said, 0);
}

/* The specs were deleted, then the ledger was lost: map.json is the third record. */
static void b4_with_ledger_and_specs_lost_map_json_says_who_holds_a_vf(void **state)
{
	uint64_t number;

	(void)state;
	number = begin_late("web-0#u1", S0, V0);
	restart(NULL);
	claim("web-0#u1", NULL, V0, number);
	records_read();
	assert_true(holds_needs_record(w.h, V0, NULL));
	kubelet_lists({ "web-0", S0 });
	assert_true(is_held_by(V0, "web-0#u1"));
	assert_false(may_give(V0));
}

/* And that one, too: what nobody can name is given to nobody. */
static void b4_with_all_records_lost_nothing_that_could_be_it_is_given(void **state)
{
	(void)state;
	begin_late("web-0#u1", S0, V0);
	restart(NULL);
	records_read();
	kubelet_lists({ "web-0", S0 });
	for (int i = 0; i < 100; i++)
		kubelet_lists({ "web-0", S0 });
	assert_false(may_give(V0));
	assert_false(may_give(V1));
}

/* One failed open of the state directory; a rolling update later it can be opened. */
static void h3_a_ledger_from_before_a_failed_open_does_not_beat_the_specs_since(void **state)
{
	struct ledger *on_disk;
	uint64_t number;

	(void)state;
	begin_late("web-0#u1", S0, V0);
	on_disk = copy_of_ledger();
	restart(NULL); /* cannot be opened */
	claim("web-0#u1", S0, V0, 1);
	records_read();
	kubelet_lists({ "web-0", S0 });
	assert_true(is_held_by(V0, "web-0#u1"));
	end_pod("web-0#u1");
	kubelet_lists({ "other", NULL });
	number = begin_late("web-1#u2", S0, V0);
	restart(on_disk);
	claim("web-1#u2", S0, V0, number);
	records_read();
	assert_true(is_held_by(V0, "web-1#u2"));
	kubelet_lists({ "web-1", S0 });
	assert_false(may_give(V0));
}

/* Neither the ledger nor all of the records could be read: the daemon knows that it knows too
 * little. */
static void m1_an_incomplete_picture_gives_nothing_away(void **state)
{
	(void)state;
	begin_late("web-0#u1", S0, V0);
	restart(NULL);
	holds_event(w.h, &(struct holds_event) { .kind = HOLDS_CLAIMS_READ, .complete = false },
		    w.now);
	w.unreadable = V0; /* sysfs */
	kubelet_lists({ "web-0", S0 });
	assert_false(may_give(V0));
	assert_false(may_give(V1));
	assert_true(holds_needs_record(w.h, NULL, S0));
	assert_true(holds_needs_record(w.h, V0, NULL));
	claim("web-0#u1", S0, V0, 1);
	records_read();
	w.unreadable = NULL;
	kubelet_lists({ "web-0", S0 });
	assert_true(is_held_by(V0, "web-0#u1"));
	assert_false(may_give(V0));
	assert_true(may_give(V1));
}

/* The ledger is torn while a pod that the kubelet has forgotten still runs: map.json names its UID.
 */
static void a_torn_ledger_does_not_forget_a_deleted_pod_that_still_runs(void **state)
{
	uint64_t number;

	(void)state;
	begin_pod("web-0#u1", V0);
	number = hold_of(V0)->decision;
	kubelet_lists({ "web-0", V0 });
	restart(NULL);
	claim("web-0#u1", NULL, V0, number);
	records_read();
	kubelet_lists({ "web-9", V1 });
	allocate("web-1#u2", V0);
	kubelet_lists({ "web-1", V0 });
	assert_false(starts("web-1#u2", V0));
	assert_true(is_held_by(V0, "web-0#u1"));
	end_pod("web-0#u1");
	assert_true(starts("web-1#u2", V0));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(b1a_the_same_name_again_is_another_pod),
		TEST(b1b_a_hold_follows_the_cgroup_of_its_own_pod),
		TEST(b1c_a_pod_that_is_deleted_at_once_and_lives_on_keeps_its_vf),
		TEST(b2_an_old_ledger_does_not_beat_a_newer_spec),
		TEST(b3_a_kubelet_that_has_just_started_ends_nothing),
		TEST(b4_with_ledger_and_specs_lost_map_json_says_who_holds_a_vf),
		TEST(b4_with_all_records_lost_nothing_that_could_be_it_is_given),
		TEST(h3_a_ledger_from_before_a_failed_open_does_not_beat_the_specs_since),
		TEST(m1_an_incomplete_picture_gives_nothing_away),
		TEST(a_torn_ledger_does_not_forget_a_deleted_pod_that_still_runs),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
