/* The main loop is the test's own; the rpc thread is a real one that may be kept busy. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <unistd.h>
#include <uv.h>

#include <cmocka.h>

#include "base/err.h"
#include "daemon/watchdog.h"
#include "rpc/rpc.h"

#define TICK_MS 5

static uv_loop_t loop;
static struct rpc *rpc;
static volatile unsigned hangs;

static void on_hang(void *ctx)
{
	(void)ctx;
	hangs++;
	uv_stop(&loop);
}

static void stop_loop(uv_timer_t *timer)
{
	(void)timer;
	uv_stop(&loop);
}

static void close_handle(uv_handle_t *handle, void *arg)
{
	(void)arg;
	if (!uv_is_closing(handle))
		uv_close(handle, NULL);
}

/* Runs the loop for so long, or until the rpc thread is found to hang. */
static void watch_for(unsigned ms)
{
	struct watchdog *w;
	uv_timer_t end;

	hangs = 0;
	uv_loop_init(&loop);
	w = watchdog_start(&loop, rpc, TICK_MS, on_hang, NULL);
	uv_timer_init(&loop, &end);
	uv_timer_start(&end, stop_loop, ms, 0);
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
	return rpc_start(&rpc, &err);
}

static void a_thread_that_answers_is_left_alone(void **state)
{
	(void)state;
	watch_for(40 * TICK_MS);
	assert_int_equal(hangs, 0);
}

static void hang(void *arg)
{
	(void)arg;
	for (int i = 0; i < 2000 && !hangs; i++)
		usleep(5000);
}

static void a_thread_that_hangs_is_found(void **state)
{
	(void)state;
	rpc_post(rpc, hang, NULL);
	watch_for(10000);
	assert_int_equal(hangs, 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(a_thread_that_answers_is_left_alone, set_up),
		cmocka_unit_test_setup(a_thread_that_hangs_is_found, set_up),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
