/* Work on a thread of its own: heard of once, or given up by its owner. */
#include <pthread.h>
#include <semaphore.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <unistd.h>

#include <cmocka.h>

#include "rpc/rpc.h"

static struct rpc *rpc;
static struct rpc_work *slot;
static sem_t may_end, freed;
static pthread_t rpc_thread, ran_on, done_on;
static int n_done, started;

static void run(void *arg)
{
	assert_ptr_equal(arg, &n_done);
	ran_on = pthread_self();
	sem_wait(&may_end);
}

static void done(void *arg)
{
	(void)arg;
	assert_null(slot); /* it may begin anew */
	done_on = pthread_self();
	n_done++;
}

static void release(void *arg)
{
	(void)arg;
	sem_post(&freed);
}

static void start_fn(void *arg)
{
	static const struct rpc_work_kind kind = { "work", 64 * 1024, run, done, release };

	(void)arg;
	rpc_thread = pthread_self();
	started = rpc_work_start(rpc, &kind, &n_done, &slot);
}

static void cancel_fn(void *arg)
{
	(void)arg;
	rpc_work_cancel(&slot);
}

static int set_up(void **state)
{
	(void)state;
	n_done = 0;
	sem_init(&may_end, 0, 0);
	sem_init(&freed, 0, 0);
	if (rpc_start(&rpc, NULL) < 0)
		return -1;
	rpc_run(rpc, start_fn, NULL);
	return started;
}

static int tear_down(void **state)
{
	(void)state;
	rpc_stop(rpc);
	sem_destroy(&may_end);
	sem_destroy(&freed);
	return 0;
}

static void its_end_is_heard_on_the_rpc_thread_once(void **state)
{
	(void)state;
	assert_non_null(slot);
	sem_post(&may_end);
	sem_wait(&freed);
	assert_int_equal(n_done, 1);
	assert_true(pthread_equal(done_on, rpc_thread));
	assert_false(pthread_equal(ran_on, rpc_thread));
	rpc_run(rpc, cancel_fn, NULL); /* nothing is under way */
	assert_int_equal(sem_trywait(&freed), -1);
}

static void who_cancels_hears_nothing_and_it_is_freed_when_it_ends(void **state)
{
	(void)state;
	rpc_run(rpc, cancel_fn, NULL);
	assert_null(slot);
	assert_int_equal(sem_trywait(&freed), -1);
	sem_post(&may_end);
	sem_wait(&freed);
	assert_int_equal(n_done, 0);
}

static void nothing(void *arg)
{
	(void)arg;
}

static void cancel_at_the_end_fn(void *arg)
{
	while (rpc_post(rpc, nothing, NULL)) /* until it stops */
		usleep(1000);
	sem_post(&may_end);
	usleep(20000); /* its end is refused meanwhile */
	cancel_fn(arg);
}

static void what_ends_while_rpc_stops_is_the_owners_to_cancel(void **state)
{
	(void)state;
	rpc_post(rpc, cancel_at_the_end_fn, NULL);
	rpc_stop(rpc);
	rpc = NULL;
	sem_wait(&freed);
	assert_int_equal(n_done, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
#define T(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)
		T(its_end_is_heard_on_the_rpc_thread_once),
		T(who_cancels_hears_nothing_and_it_is_freed_when_it_ends),
		T(what_ends_while_rpc_stops_is_the_owners_to_cancel),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
