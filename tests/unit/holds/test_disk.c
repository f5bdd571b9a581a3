/* When the ledger is stored, and how long an answer waits for it. */
#include "unit/holds/world.h"

static uint64_t generation(void)
{
	return ledger_generation(holds_ledger(w.h));
}

static void store(bool ok)
{
	uint64_t g = generation();

	holds_event(w.h, &(struct holds_event) { .kind = HOLDS_STORED, .generation = g, .ok = ok },
		    w.now);
	settle();
}

static bool may_answer(int64_t since_ms)
{
	bool yes = holds_may_answer(w.h, generation(), since_ms, w.now);

	settle();
	return yes;
}

static void a_change_is_stored_once(void **state)
{
	(void)state;
	assert_false(holds_status(w.h).wants_store);
	begin_pod("web-0#u1", V0);
	assert_true(holds_status(w.h).wants_store);
	assert_false(holds_status(w.h).stored);
	store(true);
	assert_false(holds_status(w.h).wants_store);
	assert_true(holds_status(w.h).stored);
}

static void a_change_during_a_store_is_stored_after_it(void **state)
{
	uint64_t g;

	(void)state;
	begin_pod("web-0#u1", V0);
	g = generation();
	begin_pod("web-1#u2", V1);
	holds_event(w.h,
		    &(struct holds_event) { .kind = HOLDS_STORED, .generation = g, .ok = true },
		    w.now);
	assert_true(holds_status(w.h).wants_store);
	assert_true(holds_may_answer(w.h, g, w.now.mono_ms, w.now));
	assert_false(may_answer(w.now.mono_ms));
}

static void an_answer_waits_for_the_disk_and_no_longer_than_three_seconds(void **state)
{
	int64_t since;

	(void)state;
	begin_pod("web-0#u1", V0);
	since = w.now.mono_ms;
	pass(2999);
	assert_false(may_answer(since));
	assert_int_equal(w.bad, 0);
	pass(1);
	assert_true(may_answer(since));
	assert_int_equal(w.bad, 1);
	assert_true(says("the disk has not stored the ledger in time"));
	assert_true(may_answer(since));
	assert_int_equal(w.bad, 1); /* once */
	holds_event(w.h,
		    &(struct holds_event) {
			    .kind = HOLDS_STORED, .generation = generation(), .ok = true },
		    w.now);
	settle();
	assert_true(says("the ledger is on disk again"));
}

static void a_disk_that_fails_keeps_no_answer_waiting(void **state)
{
	(void)state;
	begin_pod("web-0#u1", V0);
	store(false);
	assert_true(may_answer(w.now.mono_ms));
	assert_true(holds_status(w.h).wants_store); /* again and again */
	assert_false(holds_status(w.h).stored);
	store(true);
	assert_true(holds_status(w.h).stored);
	assert_true(says("the ledger is on disk again"));
}

static void an_empty_ledger_is_stored_where_there_is_none(void **state)
{
	(void)state;
	restart(NULL);
	records_read();
	assert_false(holds_status(w.h).wants_store); /* nothing is known yet */
	assert_true(may_answer(w.now.mono_ms));
	kubelet_lists_nothing();
	assert_true(holds_status(w.h).wants_store);
	store(true);
	assert_false(holds_status(w.h).wants_store);
}

static void a_ledger_that_was_lost_is_not_stored_before_the_kubelet_has_shown_its_pods(void **state)
{
	(void)state;
	restart(NULL);
	claim("web-0#u1", NULL, V0, 7);
	records_read();
	assert_false(holds_status(w.h).wants_store);
	kubelet_lists({ "web-0", V0 });
	assert_true(holds_status(w.h).wants_store);
}

static void where_no_kubelet_answers_it_is_stored_at_once(void **state)
{
	(void)state;
	restart(NULL);
	holds_event(w.h, &(struct holds_event) { .kind = HOLDS_BLIND, .blind = true }, w.now);
	records_read();
	assert_true(holds_status(w.h).settled);
	assert_true(holds_status(w.h).wants_store);
}

static void a_file_that_came_later_gets_everything(void **state)
{
	(void)state;
	begin_pod("web-0#u1", V0);
	store(true);
	holds_event(w.h, &(struct holds_event) { .kind = HOLDS_RESTORE }, w.now);
	assert_true(holds_status(w.h).wants_store);
	assert_false(holds_status(w.h).stored);
	store(true);
	assert_true(holds_status(w.h).stored);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(a_change_is_stored_once),
		TEST(a_change_during_a_store_is_stored_after_it),
		TEST(an_answer_waits_for_the_disk_and_no_longer_than_three_seconds),
		TEST(a_disk_that_fails_keeps_no_answer_waiting),
		TEST(an_empty_ledger_is_stored_where_there_is_none),
		TEST(a_ledger_that_was_lost_is_not_stored_before_the_kubelet_has_shown_its_pods),
		TEST(where_no_kubelet_answers_it_is_stored_at_once),
		TEST(a_file_that_came_later_gets_everything),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
