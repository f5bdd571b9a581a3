/* The records that are there when the daemon starts: of two of one VF or one slot the higher number
 * counts.
 */
#include "unit/holds/world.h"

static void without_a_ledger_the_other_records_say_what_is_held(void **state)
{
	(void)state;
	restart(NULL);
	claim("web-0#u1", S0, V0, 7);
	claim("web-1#u2", NULL, V1, 8);
	assert_null(hold_of(V0)); /* not before all were read */
	records_read();
	assert_true(is_held_by(V0, "web-0#u1"));
	assert_string_equal(hold_of(V0)->slot, S0);
	assert_false(hold_of(V0)->pending);
	assert_true(is_held_by(V1, "web-1#u2"));
	assert_null(hold_of(V1)->slot);
	assert_true(ledger_next(holds_ledger(w.h)) >=
		    (uint64_t)w.now.wall_ms); /* beyond any of a ledger that comes back */
}

static void of_two_records_of_one_vf_the_higher_number_counts(void **state)
{
	(void)state;
	restart(NULL);
	claim("web-1#u2", NULL, V0, 8);
	claim("web-0#u1", NULL, V0, 7);
	claim("web-2#u3", NULL, V1, 3);
	claim("web-3#u4", NULL, V1, 4);
	records_read();
	assert_true(is_held_by(V0, "web-1#u2"));
	assert_true(is_held_by(V1, "web-3#u4"));
}

static void of_two_records_of_one_slot_the_higher_number_has_it(void **state)
{
	(void)state;
	restart(NULL);
	claim("web-0#u1", S0, V0, 7);
	claim("web-1#u2", S0, V1, 8);
	records_read();
	assert_string_equal(hold_of(V1)->slot, S0);
	assert_null(hold_of(V0)->slot);
	assert_true(is_held_by(V0, "web-0#u1")); /* it may run all the same */
}

static void an_older_record_of_a_slot_whose_container_started_again_is_of_its_end(void **state)
{
	(void)state;
	restart(NULL);
	claim("web-0#u1", S0, V0, 7);
	claim("web-0#u1", S0, V1, 8);
	claim("web-0#u1/side", S1, V2, 3);
	claim("web-0#u1", S1, V3, 9);
	run_pod("web-0#u1");
	records_read();
	assert_string_equal(hold_of(V1)->slot, S0);
	assert_true(is_held_by(V0, "web-0#u1")); /* until the kubelet shows who has the slots */
	kubelet_lists({ "web-0", S0 }, { "web-0", S1 }, { "web-0/side", S1 });
	assert_null(hold_of(V0));
	assert_true(is_held_by(V2, "web-0#u1/side")); /* the kubelet has given S1 to both */
	claim("web-0#u1", S0, V0, 7);		      /* a ledger that comes back */
	kubelet_lists({ "web-0", S0 }, { "web-0", S1 }, { "web-0/side", S1 });
	assert_null(hold_of(V0));
}

static void a_record_without_a_number_counts_where_nothing_else_is_known(void **state)
{
	(void)state;
	restart(NULL);
	claim("web-0#u1", S0, V0, 0);
	claim("web-9#u9", S1, V1, 0);
	claim("web-1#u2", S1, V1, 5);
	records_read();
	assert_true(is_held_by(V0, "web-0#u1"));
	assert_int_equal(hold_of(V0)->decision, 0);
	assert_true(is_held_by(V1, "web-1#u2"));
}

static void a_spec_and_a_map_of_one_decision_are_one_hold_with_its_slot(void **state)
{
	(void)state;
	restart(NULL);
	claim("web-0#u1", NULL, V0, 7);
	claim("web-0#u1", S0, V0, 7);
	records_read();
	assert_int_equal(ledger_holds(holds_ledger(w.h)), 1);
	assert_string_equal(hold_of(V0)->slot, S0);
}

/* --- beside a ledger --- */

static struct ledger *ledger_of_a_late_pod(void)
{
	begin_late("web-0#u1", S0, V0);
	return copy_of_ledger();
}

static void a_ledger_that_knows_more_ends_what_a_record_says(void **state)
{
	uint64_t number;

	(void)state;
	number = begin_late("web-0#u1", S0, V0);
	kubelet_lists({ "web-0", S0 });
	end_pod("web-0#u1");
	kubelet_lists({ "web-1", NULL });
	assert_null(hold_of(V0));
	restart(copy_of_ledger());
	claim("web-0#u1", S0, V0, number);
	records_read();
	assert_null(hold_of(V0)); /* it has ended since */
	assert_false(holds_needs_record(w.h, NULL, S0));
	assert_false(holds_needs_record(w.h, V0, NULL));
}

/* The checkpoint could be read after that ledger was stored: the record was written anew, the
 * ledger is an old copy. */
static void a_record_of_one_decision_with_the_ledgers_knows_the_uid(void **state)
{
	uint64_t number;

	(void)state;
	number = begin_late("web-0", S0, V0);
	run_pod("web-0#u1");
	restart(copy_of_ledger());
	claim("web-0#u1", S0, V0, number);
	records_read();
	assert_true(is_held_by(V0, "web-0#u1"));
	assert_string_equal(hold_of(V0)->owner.uid, "u1");
	kubelet_lists({ "web-0", S0 });
	kubelet_lists_nothing();
	pass(700000);
	kubelet_lists_nothing();
	assert_true(is_held_by(V0, "web-0#u1")); /* its cgroup shows that it runs */
}

/* The ledger is an old copy, from before that. */
static void a_newer_record_of_a_slot_whose_container_started_again_ends_what_it_had(void **state)
{
	(void)state;
	begin_late("web-0#u1", S0, V0);
	begin_late("web-0#u1", S1, V2);
	run_pod("web-0#u1");
	restart(copy_of_ledger());
	claim("web-0#u1", S0, V1, 99);
	claim("web-1#u2", S1, V3, 98); /* another container's: web-0 may have it still */
	records_read();
	assert_true(is_held_by(V1, "web-0#u1"));
	w.open = V0;
	kubelet_lists({ "web-0", S0 }, { "web-1", S1 });
	assert_true(is_draining(V0));
	assert_false(is_draining(V2));
	w.open = NULL;
	tick();
	assert_null(hold_of(V0));
	assert_true(is_held_by(V2, "web-0#u1"));
}

static void a_record_that_is_newer_than_the_ledger_makes_it_an_old_one(void **state)
{
	struct ledger *old;

	(void)state;
	old = ledger_of_a_late_pod();
	restart(old);
	claim("web-1#u2", S1, V1, 99);
	records_read();
	assert_true(is_held_by(V1, "web-1#u2"));
	assert_true(is_held_by(V0, "web-0#u1"));
	assert_int_equal(w.bad, 1);
	assert_false(holds_status(w.h)
			     .settled); /* what else it does not know only the kubelet can say */
	assert_false(may_give(V2));
	kubelet_lists({ "web-1", S1 });
	assert_true(holds_status(w.h).settled);
	assert_true(may_give(V2));
}

static void a_newer_record_of_a_vf_ends_the_ledgers_hold_of_it(void **state)
{
	struct ledger *old;

	(void)state;
	old = ledger_of_a_late_pod();
	restart(old);
	claim("web-1#u2", S1, V0, 99);
	records_read();
	assert_true(is_held_by(V0, "web-1#u2"));
	assert_string_equal(hold_of(V0)->slot, S1);
	assert_int_equal(ledger_holds(holds_ledger(w.h)), 1);
}

static void a_record_of_the_ledgers_own_decision_changes_nothing(void **state)
{
	uint64_t number, before;

	(void)state;
	number = begin_late("web-0#u1", S0, V0);
	restart(copy_of_ledger());
	before = ledger_generation(holds_ledger(w.h));
	claim("web-0#u1", S0, V0, number);
	records_read();
	assert_int_equal(ledger_generation(holds_ledger(w.h)), before);
	assert_int_equal(w.bad, 0);
	assert_true(holds_status(w.h).settled);
}

/* The ledger was stored when Allocate had answered, and the daemon ended before it was stored
 * again. */
static void a_record_of_a_container_makes_its_pending_hold_a_started_one(void **state)
{
	uint64_t number;

	(void)state;
	number = allocate("web-0", V0);
	restart(copy_of_ledger());
	claim("web-0#u1", NULL, V0, number);
	run_pod("web-0#u1");
	records_read();
	assert_false(hold_of(V0)->pending);
	assert_true(is_held_by(V0, "web-0#u1"));
	kubelet_lists({ "web-1", V0 });
	assert_true(is_held_by(V0, "web-0#u1"));
}

/* --- readings --- */

static void an_incomplete_reading_decides_nothing(void **state)
{
	(void)state;
	restart(NULL);
	claim("web-0#u1", S0, V0, 7);
	holds_event(w.h, &(struct holds_event) { .kind = HOLDS_CLAIMS_READ, .complete = false },
		    w.now);
	settle();
	kubelet_lists({ "web-1", NULL });
	assert_false(holds_status(w.h).settled);
	assert_false(may_give(V1));
	assert_non_null(strstr(w.why, "were not read yet"));
	assert_true(holds_needs_record(w.h, NULL, S0));
	assert_true(holds_needs_record(w.h, V0, NULL));
	assert_false(holds_status(w.h).wants_store);
	claim("web-0#u1", S0, V0, 7); /* all of it is read again */
	claim("web-1#u2", NULL, V1, 8);
	records_read();
	assert_true(is_held_by(V0, "web-0#u1"));
	assert_true(is_held_by(V1, "web-1#u2"));
}

static void what_was_unknown_is_known_when_its_record_is_read_later(void **state)
{
	(void)state;
	restart(NULL);
	holds_event(w.h, &(struct holds_event) { .kind = HOLDS_CLAIMS_READ, .complete = false },
		    w.now);
	kubelet_lists({ "web-0", S0 });
	run_pod("web-0#u1");
	claim("web-0#u1", S0, V0, 7);
	records_read();
	kubelet_lists({ "web-0", S0 });
	assert_null(holds_unknown(w.h, 0, NULL));
	assert_true(is_held_by(V0, "web-0#u1"));
	assert_true(may_give(V1));
}

/* The state directory could not be opened, and can be now. */
static void a_ledger_that_comes_back_is_weighed_like_any_record(void **state)
{
	uint64_t mine;

	(void)state;
	restart(NULL);
	records_read();
	kubelet_lists({ "web-1", NULL });
	mine = begin_late("web-1#u2", S1, V1);
	assert_true(mine > 1000000);
	claim("web-0#u1", S0, V0, 40);
	claim("web-9#u9", S1, V1, 41); /* ended while it was away */
	settle();
	assert_true(is_held_by(V1, "web-1#u2"));
	assert_int_equal(hold_of(V1)->decision, mine);
}

static void start_without_a_ledger(void)
{
	restart(NULL);
	records_read();
	run_pod("web-0#u1");
	kubelet_lists({ "web-0", NULL });
}

/* The node has started anew, the pod's init container has a VF of the slot by now, and that of the
 * container before was another one. */
static void a_ledger_that_comes_back_holds_no_vf_for_a_pod_that_has_started_again(void **state)
{
	(void)state;
	start_without_a_ledger();
	begin_late("web-0#u1/init", S0, V1);
	claim("web-0#u1", S0, V0, 40);
	settle();
	assert_true(is_held_by(V0, "web-0#u1"));
	w.open = V0;
	kubelet_lists({ "web-0", S0 });
	assert_true(is_draining(V0));
	w.open = NULL;
	tick();
	assert_null(hold_of(V0)); /* that the pod runs says nothing about it */
	assert_true(is_held_by(V1, "web-0#u1"));
}

/* The kubelet has given the slot to two containers of the pod: each has a VF. */
static void a_ledger_that_comes_back_holds_the_vf_of_the_other_container_of_the_pod(void **state)
{
	(void)state;
	start_without_a_ledger();
	begin_late("web-0#u1", S0, V1);
	claim("web-0#u1/side", S0, V0, 40);
	settle();
	kubelet_lists({ "web-0", S0 }, { "web-0/side", S0 });
	assert_false(is_draining(V0));
	assert_true(is_held_by(V0, "web-0#u1"));
}

/* The checkpoint could not be read when it started. That of Allocate names nobody, and is no claim.
 */
static void a_record_without_a_uid_is_of_a_container_that_started(void **state)
{
	(void)state;
	restart(NULL);
	claim("web-0", NULL, V0, 7);
	records_read();
	assert_false(hold_of(V0)->pending);
	kubelet_lists({ "web-1", V0 });
	run_pod("web-1#u2");
	assert_false(starts_by("web-1#u2", V0, 8, false));
	assert_true(is_held_by(V0, "web-0"));
}

static void a_record_without_a_uid_makes_its_pending_hold_a_started_one(void **state)
{
	uint64_t number;

	(void)state;
	number = allocate("web-0", V0);
	restart(copy_of_ledger());
	claim("web-0", NULL, V0, number);
	records_read();
	assert_false(hold_of(V0)->pending);
	kubelet_lists({ "web-1", V0 });
	assert_true(is_held_by(V0, "web-0"));
}

/* Numbers began anew, and a record of before says one that has been given since. */
static void a_record_of_a_container_counts_more_than_what_was_given_before_it_was_read(void **state)
{
	(void)state;
	restart(NULL);
	holds_event(w.h, &(struct holds_event) { .kind = HOLDS_CLAIMS_READ, .complete = false },
		    w.now);
	allocate("web-0#u2", V0);
	run_pod("web-0#u1");
	claim("web-0#u1", NULL, V0, 1);
	records_read();
	assert_true(is_held_by(V0, "web-0#u1"));
	kubelet_lists({ "web-0", V0 });
	assert_false(starts("web-0#u2", V0));
}

/* An old copy of the ledger may come back, and its numbers must not be beyond those of today. */
static void without_a_ledger_numbers_are_beyond_any_that_one_can_have(void **state)
{
	(void)state;
	begin_pod("web-0#u1", V0);
	restart(NULL);
	records_read();
	assert_true(allocate("web-1#u2", V1) > 1000000);
}

static void what_is_needed_is_what_is_held(void **state)
{
	uint64_t number = begin_late("web-0#u1", S0, V0);

	(void)state;
	assert_true(holds_needs_record(w.h, NULL, S0));
	assert_true(holds_needs_record(w.h, V0, NULL));
	assert_false(holds_needs_record(w.h, NULL, S1));
	assert_false(holds_needs_record(w.h, V1, NULL));
	assert_true(holds_is_of(w.h, V0, number));
	assert_false(holds_is_of(w.h, V0, number + 1));
	assert_false(holds_is_of(w.h, V0, 0));
	assert_false(holds_is_of(w.h, V1, number));
}

static void what_drains_keeps_its_records(void **state)
{
	(void)state;
	begin_late("web-0#u1", S0, V0);
	kubelet_lists({ "web-0", S0 });
	kubelet_lists({ "web-1", NULL });
	kubelet_lists({ "web-1", NULL });
	assert_true(is_draining(V0));
	assert_true(holds_needs_record(w.h, NULL, S0));
	assert_true(holds_needs_record(w.h, V0, NULL));
}

static void an_adopted_pod_whose_cgroup_is_empty_is_gone(void **state)
{
	(void)state;
	restart(NULL);
	claim("web-0#u1", NULL, V0, 7);
	claim("web-1#u2", NULL, V1, 8);
	run_pod("web-1#u2"); /* this node shows cgroups */
	records_read();
	kubelet_lists({ "web-1", V1 });
	tick();
	kubelet_lists({ "web-1", V1 });
	tick();
	assert_null(hold_of(V0));
	assert_true(is_held_by(V1, "web-1#u2"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(without_a_ledger_the_other_records_say_what_is_held),
		TEST(of_two_records_of_one_vf_the_higher_number_counts),
		TEST(of_two_records_of_one_slot_the_higher_number_has_it),
		TEST(an_older_record_of_a_slot_whose_container_started_again_is_of_its_end),
		TEST(a_record_without_a_number_counts_where_nothing_else_is_known),
		TEST(a_spec_and_a_map_of_one_decision_are_one_hold_with_its_slot),
		TEST(a_ledger_that_knows_more_ends_what_a_record_says),
		TEST(a_record_of_one_decision_with_the_ledgers_knows_the_uid),
		TEST(a_newer_record_of_a_slot_whose_container_started_again_ends_what_it_had),
		TEST(a_record_that_is_newer_than_the_ledger_makes_it_an_old_one),
		TEST(a_newer_record_of_a_vf_ends_the_ledgers_hold_of_it),
		TEST(a_record_of_the_ledgers_own_decision_changes_nothing),
		TEST(a_record_of_a_container_makes_its_pending_hold_a_started_one),
		TEST(an_incomplete_reading_decides_nothing),
		TEST(what_was_unknown_is_known_when_its_record_is_read_later),
		TEST(a_ledger_that_comes_back_is_weighed_like_any_record),
		TEST(a_ledger_that_comes_back_holds_no_vf_for_a_pod_that_has_started_again),
		TEST(a_ledger_that_comes_back_holds_the_vf_of_the_other_container_of_the_pod),
		TEST(a_record_without_a_uid_is_of_a_container_that_started),
		TEST(a_record_without_a_uid_makes_its_pending_hold_a_started_one),
		TEST(a_record_of_a_container_counts_more_than_what_was_given_before_it_was_read),
		TEST(without_a_ledger_numbers_are_beyond_any_that_one_can_have),
		TEST(what_is_needed_is_what_is_held),
		TEST(what_drains_keeps_its_records),
		TEST(an_adopted_pod_whose_cgroup_is_empty_is_gone),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
