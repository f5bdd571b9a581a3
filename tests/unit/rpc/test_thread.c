/* The rpc thread itself: posts, timers, signals, and how it stops. */
#include "base/clock.h"
#include "peer.h"

#include <pthread.h>
#include <signal.h>

struct order {
	struct peer *p;
	char seen[32];
	size_t n;
	sem_t done;
	struct rpc_timer *timer;
	int64_t set_ms; /* how long it took to set all */
};

struct step {
	struct order *order;
	char name;
};

static void note(void *arg)
{
	struct step *step = arg;

	step->order->seen[step->order->n++] = step->name;
	if (step->name == 'Z')
		sem_post(&step->order->done);
}

static void set_timers(void *arg)
{
	struct order *o = arg;
	static struct step steps[6];
	static const struct {
		char name;
		unsigned ms;
	} table[] = { { 'C', 30 }, { 'A', 5 }, { 'Z', 40 }, { 'x', 10 }, { 'B', 20 }, { 'b', 20 } };
	struct rpc_timer *timer[6];
	int64_t began_ms = clock_mono_ms();

	for (size_t i = 0; i < ARRAY_LEN(table); i++) {
		steps[i] = (struct step) { o, table[i].name };
		timer[i] = rpc_after(o->p->rpc, table[i].ms, note, &steps[i]);
	}
	rpc_timer_cancel(timer[3]);
	rpc_timer_cancel(NULL);
	o->set_ms = clock_mono_ms() - began_ms;
}

static void timers_run_in_the_order_of_their_time(void **state)
{
	struct order o;
	uint64_t begin;

	do { /* their times are those of this table only when the thread was not held up */
		o = (struct order) { .p = *state };
		begin = now_ms();
		sem_init(&o.done, 0, 0);
		rpc_run(o.p->rpc, set_timers, &o);
		wait_for(&o.done);
		assert_true(now_ms() - begin >= 39);
	} while (o.set_ms > 3);
	assert_string_equal(o.seen, "ABbCZ");
}

#define MANY 500
static struct many {
	struct peer *p;
	struct rpc_timer *timers[MANY];
	/* Of the monotonic clock: to set one takes time, and its due time is in between. */
	int64_t first_ms[MANY], last_ms[MANY], ran_ms;
	unsigned ran;
	sem_t done;
} many;

static void ran_one(void *arg)
{
	size_t i = (size_t)(uintptr_t)arg;

	assert_true(many.last_ms[i] >= many.ran_ms);
	if (many.ran_ms < many.first_ms[i])
		many.ran_ms = many.first_ms[i];
	many.timers[i] = NULL;
	many.ran++;
}

static void ran_all(void *arg)
{
	(void)arg;
	sem_post(&many.done);
}

static void set_many(void *arg)
{
	(void)arg;
	srand(7);
	for (size_t i = 0; i < MANY; i++) {
		unsigned ms = 20 + (unsigned)rand() % 40 * 2;

		many.first_ms[i] = clock_mono_ms() + ms;
		many.timers[i] = rpc_after(many.p->rpc, ms, ran_one, (void *)(uintptr_t)i);
		many.last_ms[i] = clock_mono_ms() + ms + 1; /* and it is rounded up */
	}
	rpc_after(many.p->rpc, 120, ran_all, NULL);
	for (size_t i = 0; i < MANY; i += 2)
		rpc_timer_cancel(STEAL(many.timers[i]));
}

static void many_timers_keep_their_order_when_half_are_cancelled(void **state)
{
	many = (struct many) { .p = *state };
	sem_init(&many.done, 0, 0);
	rpc_run(many.p->rpc, set_many, NULL);
	wait_for(&many.done);
	assert_int_equal(many.ran, MANY / 2);
}

static void set_zero_again(void *arg)
{
	struct order *o = arg;

	if (++o->n < 100)
		rpc_after(o->p->rpc, 0, set_zero_again, o);
	else
		sem_post(&o->done);
}

static void timer_of_zero_may_set_itself_again(void **state)
{
	struct order o = { .p = *state };

	sem_init(&o.done, 0, 0);
	rpc_run(o.p->rpc, set_zero_again, &o);
	wait_for(&o.done);
	assert_int_equal(o.n, 100);
}

static void never(void *arg)
{
	(void)arg;
	fail_msg("a timer ran after the stop");
}

static void set_far_timer(void *arg)
{
	struct peer *p = arg;

	rpc_after(p->rpc, 3600000, never, NULL);
}

static void stop_drops_timers(void **state)
{
	struct peer *p = *state;

	rpc_run(p->rpc, set_far_timer, p);
}

static _Atomic unsigned posted;

static void count_post(void *arg)
{
	(void)arg;
	posted++;
}

static void *post_thousand(void *arg)
{
	struct peer *p = arg;

	for (int i = 0; i < 1000; i++)
		assert_true(rpc_post(p->rpc, count_post, NULL));
	return NULL;
}

static void posts_from_several_threads_all_run(void **state)
{
	struct peer *p = *state;
	pthread_t threads[4];

	posted = 0;
	for (size_t i = 0; i < ARRAY_LEN(threads); i++)
		assert_int_equal(pthread_create(&threads[i], NULL, post_thousand, p), 0);
	for (size_t i = 0; i < ARRAY_LEN(threads); i++)
		pthread_join(threads[i], NULL);
	rpc_run(p->rpc, count_post, NULL);
	assert_int_equal(posted, 4001);
}

static void post_again(void *arg)
{
	struct order *o = arg;

	if (++o->n < 50)
		assert_true(rpc_post(o->p->rpc, post_again, o));
	else
		sem_post(&o->done);
}

static void post_from_the_thread_itself_runs_later(void **state)
{
	struct order o = { .p = *state };

	sem_init(&o.done, 0, 0);
	rpc_run(o.p->rpc, post_again, &o);
	wait_for(&o.done);
	assert_int_equal(o.n, 50);
}

struct poster {
	struct rpc *rpc;
	unsigned taken;
};

static void *post_until_refused(void *arg)
{
	struct poster *poster = arg;

	while (rpc_post(poster->rpc, count_post, NULL))
		poster->taken++;
	return NULL;
}

static void *stop_rpc(void *arg)
{
	rpc_stop(arg);
	return NULL;
}

/* Keep the thread busy until the poster has left letters in the box. */
static void await_letters(void *arg)
{
	wait_for(arg);
}

/* The box is closed under the poster's hands: it is told, and what was taken is not lost. */
static void what_was_taken_before_the_stop_runs(void **state)
{
	struct poster poster = { 0 };
	pthread_t post, stop;
	struct err err;
	sem_t go_on;

	(void)state;
	posted = 0;
	sem_init(&go_on, 0, 0);
	assert_int_equal(rpc_start(&poster.rpc, &err), 0);
	rpc_post(poster.rpc, await_letters, &go_on);
	pthread_create(&post, NULL, post_until_refused, &poster);
	pthread_create(&stop, NULL, stop_rpc, poster.rpc);
	pthread_join(post, NULL);
	sem_post(&go_on);
	pthread_join(stop, NULL);
	assert_int_equal(posted, poster.taken);
	sem_destroy(&go_on);
}

static void look_at_mask(void *arg)
{
	pthread_sigmask(SIG_SETMASK, NULL, arg);
}

static void signals_stay_with_the_caller(void **state)
{
	struct peer *p = *state;
	sigset_t theirs, ours;

	rpc_run(p->rpc, look_at_mask, &theirs);
	pthread_sigmask(SIG_SETMASK, NULL, &ours);
	assert_int_equal(sigismember(&theirs, SIGTERM), 1);
	assert_int_equal(sigismember(&ours, SIGTERM), 0);
}

static void hostile_environment_is_cleaned(void **state)
{
	struct peer *p = *state;

	/* Set by main() before the first rpc_start(): gRPC aborts on such a strategy. */
	assert_null(getenv("GRPC_POLL_STRATEGY"));
	assert_null(getenv("GRPC_TRACE"));
	assert_non_null(getenv("PATH"));
	serve(p);
}

/* --- stop --- */

static void stream_message(void *arg, struct bytes body)
{
	(void)body;
	sem_post(arg);
}

static void stream_over(void *arg, enum rpc_status status, const char *message, struct bytes body)
{
	(void)message;
	(void)body;
	assert_int_not_equal(status, RPC_OK);
	sem_post(arg);
}

static struct rpc_subscription *paused;

static void open_paused_stream(void *arg)
{
	struct peer *p = arg;

	paused = rpc_call_stream(p->channel, "/t.T/Watch", text("x"), stream_message, stream_over,
				 &p->event);
	rpc_subscription_pause(paused, true);
}

static void flood_stream(void *arg)
{
	struct peer *p = arg;
	static const uint8_t big[64 << 10];

	rpc_stream_send(p->streams[0], (struct bytes) { big, sizeof(big) });
}

/* Nothing is closed by hand: a held call, a stream that nobody reads, a silent client, a far timer.
 */
static void stop_ends_everything_that_is_open(void **state)
{
	struct peer *p = *state;
	struct answer a;
	int fd = raw_connect(p->path);
	uint64_t begin;

	call_begin(&a, p, "/t.T/Hold", text("x"));
	wait_for(&p->event);
	rpc_run(p->rpc, open_paused_stream, p);
	wait_for(&p->event);
	for (int i = 0; i < 20; i++)
		rpc_run(p->rpc, flood_stream, p);
	rpc_run(p->rpc, set_far_timer, p);
	begin = now_ms();
	rpc_stop(STEAL(p->rpc));
	assert_true(now_ms() - begin < 5000);
	assert_int_not_equal(call_end(&a), RPC_OK);
	free(a.body);
	assert_int_equal(p->n_closed, 1);
	assert_int_equal(access(p->path, F_OK), -1);
	close(fd);
}

/* An owner that tidies up, and tries again at once, from inside what the stop calls. */
struct owner {
	struct peer *p;
	struct rpc *rpc;
	unsigned tries, closed;
};

static void owner_server_gone(void *arg)
{
	struct owner *o = arg;

	o->closed++;
}

static void owner_called_back(void *arg, enum rpc_status status, const char *message,
			      struct bytes body)
{
	struct owner *o = arg;
	struct rpc_server *refused = NULL;
	struct err err;

	(void)message;
	(void)body;
	assert_int_not_equal(status, RPC_OK);
	if (o->tries++ < 3) {
		rpc_call_unary(o->p->channel, "/t.T/Hold", text("again"), 30000, owner_called_back,
			       o);
		return;
	}
	assert_int_equal(rpc_server_open(o->rpc, "/nowhere/x", peer_methods, 1, o, &refused, &err),
			 -ESHUTDOWN);
	rpc_channel_close(STEAL(o->p->channel));
	rpc_server_close(STEAL(o->p->server), owner_server_gone, o);
}

static void owner_calls(void *arg)
{
	struct owner *o = arg;

	rpc_call_unary(o->p->channel, "/t.T/Hold", text("x"), 30000, owner_called_back, o);
}

static void owners_may_tidy_up_while_it_stops(void **state)
{
	struct peer *p = *state;
	struct owner o = { .p = p, .rpc = p->rpc };

	rpc_run(p->rpc, owner_calls, &o);
	wait_for(&p->event);
	rpc_stop(STEAL(p->rpc));
	assert_int_equal(o.tries, 4);
	assert_int_equal(o.closed, 1);
}

static void stop_of_nothing_is_fine(void **state)
{
	(void)state;
	rpc_stop(NULL);
}

static void three_hundred_servers_leave_no_descriptor(void **state)
{
	struct peer *p = *state;
	size_t before = 0;

	for (int i = 0; i < 300; i++) {
		serve(p);
		rpc_run(p->rpc, open_channel, p);
		assert_echo(p, "x");
		rpc_run(p->rpc, close_channel, p);
		unserve(p);
		if (i == 9)
			before = count_fds();
	}
	assert_fds_fall_to(before);
}

static void thirty_starts_and_stops_leave_no_descriptor(void **state)
{
	size_t before = 0;
	void *inner;

	(void)state;
	for (int i = 0; i < 30; i++) {
		peer_setup_serving(&inner);
		assert_echo(inner, "x");
		peer_teardown(&inner);
		if (i == 4)
			before = count_fds();
	}
	assert_fds_fall_to(before);
}

#define ALONE(test)  cmocka_unit_test_setup_teardown(test, peer_setup, peer_teardown)
#define SERVED(test) cmocka_unit_test_setup_teardown(test, peer_setup_serving, peer_teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		ALONE(hostile_environment_is_cleaned),
		ALONE(timers_run_in_the_order_of_their_time),
		ALONE(many_timers_keep_their_order_when_half_are_cancelled),
		ALONE(timer_of_zero_may_set_itself_again),
		ALONE(stop_drops_timers),
		ALONE(posts_from_several_threads_all_run),
		ALONE(post_from_the_thread_itself_runs_later),
		cmocka_unit_test(what_was_taken_before_the_stop_runs),
		ALONE(signals_stay_with_the_caller),
		SERVED(stop_ends_everything_that_is_open),
		SERVED(owners_may_tidy_up_while_it_stops),
		cmocka_unit_test(stop_of_nothing_is_fine),
		ALONE(three_hundred_servers_leave_no_descriptor),
		cmocka_unit_test(thirty_starts_and_stops_leave_no_descriptor),
	};

	setenv("GRPC_POLL_STRATEGY", "no such strategy", 1);
	setenv("GRPC_TRACE", "all", 1);
	setenv("GRPC_VERBOSITY", "DEBUG", 1);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
