/* Which Events are sent, and when. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "kubeapi/events-internal.h"

#define START 1000000 /* a clock */

struct fixture {
	struct events_queue q;
	int64_t now_ms;
};

static int setup(void **state)
{
	struct fixture *f = calloc(1, sizeof(*f));

	assert_non_null(f);
	f->now_ms = START;
	events_queue_init(&f->q, f->now_ms);
	*state = f;
	return 0;
}

static int teardown(void **state)
{
	struct fixture *f = *state;

	events_queue_drop(&f->q, false);
	events_queue_drop(&f->q, true);
	assert_int_equal(f->q.n, 0);
	free(f);
	return 0;
}

static bool put(struct fixture *f, const char *about, const char *note)
{
	return events_queue_put(
		&f->q, &(struct event) { .about = about, .reason = "R", .note = note }, f->now_ms);
}

/* Is it sent now? */
static void sends(struct fixture *f, const char *note)
{
	int64_t wait_ms;
	struct events_item *item = events_queue_take(&f->q, f->now_ms, &wait_ms);

	if (!note) {
		assert_null(item);
		return;
	}
	assert_non_null(item);
	assert_string_equal(item->event.note, note);
	events_item_free(item);
}

static void the_same_is_not_sent_again_for_ten_minutes(void **state)
{
	struct fixture *f = *state;

	assert_true(put(f, NULL, "a"));
	sends(f, "a");
	f->now_ms += EVENTS_SAME_MS - 1;
	assert_false(put(f, NULL, "a"));
	assert_true(put(f, NULL, "b"));
	f->now_ms += 1;
	assert_true(put(f, NULL, "a"));
	sends(f, "b");
	sends(f, "a");
	sends(f, NULL);
}

static void the_opposite_makes_it_new(void **state)
{
	struct fixture *f = *state;

	assert_true(put(f, "link", "down"));
	assert_false(put(f, "link", "down"));
	sends(f, "down");
	assert_true(put(f, "link", "up"));
	sends(f, "up");
	assert_true(put(f, "link", "down"));
	assert_true(put(f, "other link", "down"));
	sends(f, "down");
	sends(f, "down");
	assert_false(put(f, "link", "down"));
	sends(f, NULL);
}

static void the_same_thing_of_another_pod_is_another(void **state)
{
	struct event e = { .about = "link", .reason = "R", .note = "down", .ns = "n", .pod = "p" };
	struct fixture *f = *state;

	assert_true(events_queue_put(&f->q, &e, f->now_ms));
	e.pod = "q";
	assert_true(events_queue_put(&f->q, &e, f->now_ms));
	assert_int_equal(f->q.n, 2);
	e.pod = "p";
	e.note = "up";
	assert_true(events_queue_put(&f->q, &e, f->now_ms));
	assert_int_equal(f->q.n, 2);
	sends(f, "up");
	sends(f, "down");
}

static void what_is_over_may_be_said_again(void **state)
{
	struct fixture *f = *state;

	assert_true(put(f, "configuration", "refused"));
	sends(f, "refused");
	events_queue_forget(&f->q, &(struct event) { .about = "link" });
	assert_false(put(f, "configuration", "refused"));
	events_queue_forget(&f->q, &(struct event) { .about = "configuration" });
	assert_true(put(f, "configuration", "refused"));
	sends(f, "refused");
}

/* A link that flaps: the last Event is what it is in the end. */
static void of_a_thing_that_changes_fast_the_newest_is_sent(void **state)
{
	struct fixture *f = *state;
	int64_t wait_ms;

	for (int i = 0; i < EVENTS_BURST; i++) {
		assert_true(put(f, "link", i % 2 ? "up" : "down"));
		sends(f, i % 2 ? "up" : "down");
	}
	for (int i = 0; i < 1001; i++)
		assert_true(put(f, "link", i % 2 ? "down" : "up"));
	assert_int_equal(f->q.n, 1);
	assert_null(events_queue_take(&f->q, f->now_ms + 1, &wait_ms));
	assert_int_equal(wait_ms, EVENTS_REFILL_MS - 1);
	f->now_ms += EVENTS_REFILL_MS;
	sends(f, "up");
	sends(f, NULL);
}

static void after_a_burst_it_is_one_in_ten_seconds(void **state)
{
	struct fixture *f = *state;
	int64_t wait_ms;
	char note[16];

	for (int i = 0; i < EVENTS_BURST + 3; i++) {
		snprintf(note, sizeof(note), "%d", i);
		assert_true(put(f, NULL, note));
	}
	for (int i = 0; i < EVENTS_BURST; i++) {
		snprintf(note, sizeof(note), "%d", i);
		sends(f, note);
	}
	f->now_ms += EVENTS_REFILL_MS - 1;
	sends(f, NULL);
	f->now_ms += 2 * EVENTS_REFILL_MS;
	sends(f, "25");
	sends(f, "26");
	sends(f, NULL);
	f->now_ms += 100LL * EVENTS_BURST * EVENTS_REFILL_MS; /* no more than a burst is saved */
	sends(f, "27");
	assert_int_equal(f->q.tokens, EVENTS_BURST - 1);
	assert_null(events_queue_take(&f->q, f->now_ms, &wait_ms));
	assert_int_equal(wait_ms, 0);
}

static void the_queue_is_bounded(void **state)
{
	struct fixture *f = *state;
	char note[16];

	assert_true(put(f, "link", "down"));
	for (int i = 1; i < EVENTS_QUEUE_MAX + 1; i++) {
		snprintf(note, sizeof(note), "%d", i);
		assert_int_equal(put(f, NULL, note), i < EVENTS_QUEUE_MAX);
	}
	assert_true(put(f, "link", "up")); /* in the place of the other one */
	assert_int_equal(f->q.n, EVENTS_QUEUE_MAX);
	sends(f, "up");
	assert_true(put(f, NULL, note)); /* what was refused is not taken for sent */
}

static void a_right_that_is_missing_ends_those_of_its_kind(void **state)
{
	const struct event of_pod = { .reason = "R", .note = "p", .ns = "n", .pod = "p" };
	struct fixture *f = *state;

	assert_true(put(f, NULL, "a"));
	assert_true(events_queue_put(&f->q, &of_pod, f->now_ms));
	assert_true(put(f, NULL, "b"));
	events_queue_drop(&f->q, true);
	sends(f, "a");
	assert_int_equal(f->q.n, 1);
	events_queue_drop(&f->q, false);
	sends(f, NULL);
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(the_same_is_not_sent_again_for_ten_minutes),
		TEST(the_opposite_makes_it_new),
		TEST(the_same_thing_of_another_pod_is_another),
		TEST(what_is_over_may_be_said_again),
		TEST(of_a_thing_that_changes_fast_the_newest_is_sent),
		TEST(after_a_burst_it_is_one_in_ten_seconds),
		TEST(the_queue_is_bounded),
		TEST(a_right_that_is_missing_ends_those_of_its_kind),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
