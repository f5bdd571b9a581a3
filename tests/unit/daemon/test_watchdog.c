/* The main loop is the test's own; the rpc thread is a real one that may be kept busy. */
#include <setjmp.h>
#include <stdatomic.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <unistd.h>
#include <uv.h>

#include <cmocka.h>

#include "base/err.h"
#include "base/str.h"
#include "daemon/watchdog-internal.h"
#include "rpc/rpc.h"

#define TICK_MS 5

static uv_loop_t loop;
static struct rpc *rpc;
static volatile unsigned hangs;
static atomic_bool over;   /* the watch is */
static const char *silent; /* at the end of the loop */
static struct watchdog *watched;
static unsigned silence_ms;

static void on_hang(void *ctx)
{
	(void)ctx;
	hangs++;
	silent = watchdog_silent(watched, silence_ms);
	if (str_eq(silent, "main")) /* we were held up, just now: the next find tells */
		return;
	over = true;
	uv_stop(&loop);
}

static void stop_loop(uv_timer_t *timer)
{
	(void)timer;
	silent = watchdog_silent(watched, silence_ms);
	over = true;
	uv_stop(&loop);
}

static void nothing(void *arg)
{
	(void)arg;
}

/* Before the loop waits: what was asked is answered, however busy the machine is. */
static void let_rpc_answer(uv_prepare_t *prepare)
{
	(void)prepare;
	rpc_run(rpc, nothing, NULL);
}

static void close_handle(uv_handle_t *handle, void *arg)
{
	(void)arg;
	if (!uv_is_closing(handle))
		uv_close(handle, NULL);
}

/* Runs the loop for so long, or until the rpc thread is found to hang. */
static void watch_for(unsigned ms, uv_prepare_cb prepare_fn)
{
	struct watchdog *w;
	uv_prepare_t prepare;
	uv_timer_t end;

	hangs = 0;
	uv_loop_init(&loop);
	silent = NULL;
	watched = w = watchdog_start(&loop, rpc, TICK_MS, on_hang, NULL);
	uv_timer_init(&loop, &end);
	uv_timer_start(&end, stop_loop, ms, 0);
	uv_prepare_init(&loop, &prepare);
	if (prepare_fn)
		uv_prepare_start(&prepare, prepare_fn);
	uv_run(&loop, UV_RUN_DEFAULT);
	rpc_stop(rpc);
	uv_walk(&loop, close_handle, NULL);
	uv_run(&loop, UV_RUN_DEFAULT);
	uv_loop_close(&loop);
	watchdog_free(w);
}

static int set_up(void **state)
{
	struct err err = { 0 };

	(void)state;
	over = false; /* before the thread looks at it */
	return rpc_start(&rpc, &err);
}

static void a_thread_that_answers_is_left_alone(void **state)
{
	(void)state;
	silence_ms = 20000; /* the machine may be busy */
	watch_for(40 * TICK_MS, let_rpc_answer);
	assert_int_equal(hangs, 0);
	assert_null(silent);
}

static void hang(void *arg)
{
	(void)arg;
	while (!over)
		usleep(5000);
}

static void a_thread_that_hangs_is_found(void **state)
{
	(void)state;
	silence_ms = 2 * TICK_MS; /* not before */
	rpc_post(rpc, hang, NULL);
	watch_for(20000, NULL);
	assert_true(hangs > 0);
	assert_string_equal(silent, "rpc");
}

static void say_who_is_silent(uv_timer_t *timer)
{
	usleep(20 * TICK_MS * 1000);
	stop_loop(timer);
}

/* The rpc thread may be held up for a tick or two: no matter here. */
static void go_on(void *ctx)
{
	(void)ctx;
}

/* Asked by the thread of a server; here the one that hangs asks itself. */
static void a_main_loop_that_hangs_is_told_apart(void **state)
{
	uv_timer_t hanging;

	(void)state;
	silence_ms = 8 * TICK_MS;
	uv_loop_init(&loop);
	watched = watchdog_start(&loop, rpc, TICK_MS, go_on, NULL);
	uv_timer_init(&loop, &hanging);
	uv_timer_start(&hanging, say_who_is_silent, 4 * TICK_MS, 0);
	uv_run(&loop, UV_RUN_DEFAULT);
	assert_string_equal(silent, "main");
	rpc_stop(rpc);
	uv_walk(&loop, close_handle, NULL);
	uv_run(&loop, UV_RUN_DEFAULT);
	uv_loop_close(&loop);
	watchdog_free(watched);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(a_thread_that_answers_is_left_alone, set_up),
		cmocka_unit_test_setup(a_thread_that_hangs_is_found, set_up),
		cmocka_unit_test_setup(a_main_loop_that_hangs_is_told_apart, set_up),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
