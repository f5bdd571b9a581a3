#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/mem.h"
#include "endpoint/registration-internal.h"

struct row {
	enum reg_event event;
	enum reg_state next;
	unsigned actions;
	int timer_ms;
};

static void run(struct registration *r, const struct row *rows, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		int timer_ms = 12345;
		unsigned actions = endpoint_registration_step(r, rows[i].event, &timer_ms);

		if (r->state != rows[i].next || actions != rows[i].actions ||
		    timer_ms != rows[i].timer_ms)
			fail_msg("row %zu: state %s, actions %u, timer %d", i,
				 endpoint_registration_state_name(r->state), actions, timer_ms);
	}
}

#define RUN(r, ...)                                                                                \
	do {                                                                                       \
		const struct row rows_[] = { __VA_ARGS__ };                                        \
		run(r, rows_, ARRAY_LEN(rows_));                                                   \
	} while (0)

static void kubelet_dials_back_inside_register(void **state)
{
	struct registration r = { REG_DOWN, 0, 0 };

	(void)state;
	RUN(&r, { REG_EV_SERVING, REG_CALLING, REG_CALL, REG_TIMER_OFF },
	    { REG_EV_OPENED, REG_DIALLED, 0, REG_TIMER_KEEP },
	    { REG_EV_OK, REG_REGISTERED, 0, 5000 },
	    { REG_EV_TIMER, REG_REGISTERED, 0, REG_TIMER_OFF });
}

static void kubelet_answers_before_it_dials(void **state)
{
	struct registration r = { REG_CALLING, 0, 0 };

	(void)state;
	RUN(&r, { REG_EV_OK, REG_AWAIT, 0, 15000 }, { REG_EV_OPENED, REG_REGISTERED, 0, 5000 });
}

static void registers_again_when_no_stream_comes(void **state)
{
	struct registration r = { REG_AWAIT, 0, 0 };

	(void)state;
	RUN(&r, { REG_EV_TIMER, REG_CALLING, REG_CALL, REG_TIMER_OFF });
}

static void first_lost_stream_is_answered_at_once_then_with_back_off(void **state)
{
	struct registration r = { REG_REGISTERED, 0, 0 };

	(void)state;
	RUN(&r, { REG_EV_CLOSED, REG_WAITING, 0, 0 },
	    { REG_EV_TIMER, REG_CALLING, REG_CALL, REG_TIMER_OFF },
	    { REG_EV_OPENED, REG_DIALLED, 0, REG_TIMER_KEEP },
	    { REG_EV_OK, REG_REGISTERED, 0, 5000 }, { REG_EV_CLOSED, REG_WAITING, 0, 10 },
	    { REG_EV_TIMER, REG_CALLING, REG_CALL, REG_TIMER_OFF },
	    { REG_EV_OPENED, REG_DIALLED, 0, REG_TIMER_KEEP },
	    { REG_EV_OK, REG_REGISTERED, 0, 5000 }, { REG_EV_CLOSED, REG_WAITING, 0, 20 });
}

static void path_that_the_kubelet_knows_is_answered_at_once_by_another_one(void **state)
{
	struct registration r = { REG_CALLING, 0, 0 };

	(void)state;
	RUN(&r, { REG_EV_TAKEN, REG_WAITING, 0, 0 },
	    { REG_EV_TIMER, REG_CALLING, REG_CALL, REG_TIMER_OFF },
	    { REG_EV_TAKEN, REG_WAITING, 0, 10 });
}

static void registration_that_was_lost_ends_its_stream_first(void **state)
{
	struct registration r = { REG_REGISTERED, 0, 0 };

	(void)state;
	RUN(&r, { REG_EV_LOST, REG_DRAINING, REG_END, 1000 },
	    { REG_EV_CLOSED, REG_CALLING, REG_CALL, REG_TIMER_OFF },
	    { REG_EV_LOST, REG_CALLING, 0, REG_TIMER_KEEP });
}

static void stream_that_lasted_forgives(void **state)
{
	struct registration r = { REG_REGISTERED, 7, 0 };

	(void)state;
	RUN(&r, { REG_EV_TIMER, REG_REGISTERED, 0, REG_TIMER_OFF },
	    { REG_EV_CLOSED, REG_WAITING, 0, 0 });
}

static void back_off_doubles_up_to_five_seconds(void **state)
{
	static const int want[] = { 10, 20, 40, 80, 160, 320, 640, 1280, 2560, 5000, 5000, 5000 };
	struct registration r = { REG_CALLING, 0, 0 };

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(want); i++)
		RUN(&r, { REG_EV_FAILED, REG_WAITING, 0, want[i] },
		    { REG_EV_TIMER, REG_CALLING, REG_CALL, REG_TIMER_OFF });
	r.failures = 1000000; /* for ever */
	RUN(&r, { REG_EV_FAILED, REG_WAITING, 0, 5000 });
}

static void socket_that_does_not_listen_yet_is_tried_fast_for_two_seconds(void **state)
{
	struct registration r = { REG_CALLING, 0, 0 };

	(void)state;
	for (int i = 0; i < 1000; i++)
		RUN(&r, { REG_EV_REFUSED, REG_WAITING, 0, 2 },
		    { REG_EV_TIMER, REG_CALLING, REG_CALL, REG_TIMER_OFF });
	RUN(&r, { REG_EV_REFUSED, REG_WAITING, 0, 10 },
	    { REG_EV_TIMER, REG_CALLING, REG_CALL, REG_TIMER_OFF },
	    { REG_EV_REFUSED, REG_WAITING, 0, 20 },
	    /* a new socket file: a new kubelet, tried fast again */
	    { REG_EV_NEW, REG_CALLING, REG_CALL, REG_TIMER_OFF },
	    { REG_EV_REFUSED, REG_WAITING, 0, 2 });
}

static void waits_for_a_kubelet_that_is_not_there(void **state)
{
	struct registration r = { REG_CALLING, 3, 0 };

	(void)state;
	RUN(&r, { REG_EV_GONE, REG_ABSENT, REG_CANCEL, 1000 },
	    { REG_EV_GONE, REG_ABSENT, 0, REG_TIMER_KEEP },
	    { REG_EV_TIMER, REG_CALLING, REG_CALL, REG_TIMER_OFF },
	    { REG_EV_GONE, REG_ABSENT, REG_CANCEL, 1000 },
	    { REG_EV_NEW, REG_CALLING, REG_CALL, REG_TIMER_OFF });
	assert_int_equal(r.failures, 0);
}

static void kubelet_that_restarts_gets_the_old_stream_ended_first(void **state)
{
	struct registration r = { REG_REGISTERED, 0, 0 };

	(void)state;
	RUN(&r, { REG_EV_NEW, REG_DRAINING, REG_END, 1000 },
	    { REG_EV_NEW, REG_DRAINING, 0, REG_TIMER_KEEP },
	    { REG_EV_CLOSED, REG_CALLING, REG_CALL, REG_TIMER_OFF });
}

static void peer_that_does_not_see_the_end_is_not_waited_for_long(void **state)
{
	struct registration r = { REG_DRAINING, 0, 0 };

	(void)state;
	RUN(&r, { REG_EV_TIMER, REG_CALLING, REG_CALL, REG_TIMER_OFF });
}

static void kubelet_that_restarts_within_register_is_called_anew(void **state)
{
	struct registration r = { REG_CALLING, 0, 0 }, dialled = { REG_DIALLED, 0, 0 };

	(void)state;
	RUN(&r, { REG_EV_NEW, REG_CALLING, REG_CANCEL | REG_CALL, REG_TIMER_OFF });
	RUN(&dialled, { REG_EV_NEW, REG_DRAINING, REG_CANCEL | REG_END, 1000 },
	    { REG_EV_CLOSED, REG_CALLING, REG_CALL, REG_TIMER_OFF });
}

static void stream_lost_within_register_leaves_the_call_alone(void **state)
{
	struct registration r = { REG_DIALLED, 0, 0 };

	(void)state;
	RUN(&r, { REG_EV_CLOSED, REG_CALLING, 0, REG_TIMER_KEEP },
	    { REG_EV_FAILED, REG_WAITING, 0, 10 });
}

static void open_stream_counts_though_register_failed(void **state)
{
	struct registration r = { REG_DIALLED, 0, 0 };

	(void)state;
	RUN(&r, { REG_EV_FAILED, REG_REGISTERED, 0, 5000 });
}

static void stream_that_comes_late_ends_the_waiting(void **state)
{
	struct registration r = { REG_WAITING, 2, 0 };

	(void)state;
	RUN(&r, { REG_EV_OPENED, REG_REGISTERED, 0, 5000 });
}

/* From any state, with any event: a defined state, and never two of "give up" without reason. */
static void every_event_is_legal_in_every_state(void **state)
{
	(void)state;
	for (int s = 0; s < REG_STATE_MAX; s++) {
		for (int e = 0; e < REG_EV_MAX; e++) {
			struct registration r = { s, 1, 1 };
			int timer_ms;
			unsigned actions = endpoint_registration_step(&r, e, &timer_ms);

			assert_true(r.state < REG_STATE_MAX);
			assert_non_null(endpoint_registration_state_name(r.state));
			assert_true(timer_ms >= REG_TIMER_OFF);
			/* whoever calls is in the state of calling, whoever waits has a timer or a
			 * peer */
			assert_int_equal(!!(actions & REG_CALL),
					 r.state == REG_CALLING && (actions & REG_CALL));
			if (r.state == REG_WAITING && s != REG_WAITING)
				assert_true(timer_ms >= 0);
			if (r.state == REG_ABSENT && s != REG_ABSENT)
				assert_true(timer_ms > 0);
			if (r.state == REG_DRAINING && s != REG_DRAINING)
				assert_true((actions & REG_END) && timer_ms > 0);
		}
	}
}

static void streams_are_awaited_while_a_registration_is_under_way(void **state)
{
	struct registration r = { REG_DOWN, 0, 0 };

	(void)state;
	assert_false(endpoint_registration_awaits_stream(&r));
	RUN(&r, { REG_EV_SERVING, REG_CALLING, REG_CALL, REG_TIMER_OFF });
	assert_true(endpoint_registration_awaits_stream(&r));
	RUN(&r, { REG_EV_OPENED, REG_DIALLED, 0, REG_TIMER_KEEP });
	assert_true(endpoint_registration_awaits_stream(&r));
	RUN(&r, { REG_EV_OK, REG_REGISTERED, 0, 5000 });
	assert_false(endpoint_registration_awaits_stream(&r));
	RUN(&r, { REG_EV_CLOSED, REG_WAITING, 0, 0 });
	assert_true(endpoint_registration_awaits_stream(&r));
	RUN(&r, { REG_EV_GONE, REG_ABSENT, 0, 1000 });
	assert_false(endpoint_registration_awaits_stream(&r));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(streams_are_awaited_while_a_registration_is_under_way),
		cmocka_unit_test(kubelet_dials_back_inside_register),
		cmocka_unit_test(kubelet_answers_before_it_dials),
		cmocka_unit_test(registers_again_when_no_stream_comes),
		cmocka_unit_test(first_lost_stream_is_answered_at_once_then_with_back_off),
		cmocka_unit_test(path_that_the_kubelet_knows_is_answered_at_once_by_another_one),
		cmocka_unit_test(registration_that_was_lost_ends_its_stream_first),
		cmocka_unit_test(stream_that_lasted_forgives),
		cmocka_unit_test(back_off_doubles_up_to_five_seconds),
		cmocka_unit_test(socket_that_does_not_listen_yet_is_tried_fast_for_two_seconds),
		cmocka_unit_test(waits_for_a_kubelet_that_is_not_there),
		cmocka_unit_test(kubelet_that_restarts_gets_the_old_stream_ended_first),
		cmocka_unit_test(peer_that_does_not_see_the_end_is_not_waited_for_long),
		cmocka_unit_test(kubelet_that_restarts_within_register_is_called_anew),
		cmocka_unit_test(stream_lost_within_register_leaves_the_call_alone),
		cmocka_unit_test(open_stream_counts_though_register_failed),
		cmocka_unit_test(stream_that_comes_late_ends_the_waiting),
		cmocka_unit_test(every_event_is_legal_in_every_state),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
