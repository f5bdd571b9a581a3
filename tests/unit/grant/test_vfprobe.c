/* Looks at VFs on threads of their own: what comes back, what comes too late, and who goes first.
 */
#include "support/onrpc.h"

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include "base/arena.h"
#include "base/err.h"
#include "base/mem.h"
#include "grant/vfprobe.h"

static struct vfprobe *t;
static struct vfprobe_env env;

/* --- the fake look: it waits at a gate --- */

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
static unsigned waiting, most_waiting, probed,
	passes; /* how many may go through the gate; guarded by lock */
static bool on_rpc_thread;
static pthread_t rpc_thread;

static void gate(void)
{
	pthread_mutex_lock(&lock);
	waiting++;
	if (waiting > most_waiting)
		most_waiting = waiting;
	pthread_cond_broadcast(&changed);
	while (!passes)
		pthread_cond_wait(&changed, &lock);
	passes--;
	waiting--;
	probed++;
	on_rpc_thread |= pthread_equal(pthread_self(), rpc_thread) != 0;
	pthread_cond_broadcast(&changed);
	pthread_mutex_unlock(&lock);
}

static void let_pass(unsigned n)
{
	pthread_mutex_lock(&lock);
	passes += n;
	pthread_cond_broadcast(&changed);
	pthread_mutex_unlock(&lock);
}

static void wait_for(const unsigned *value, unsigned at_least)
{
	pthread_mutex_lock(&lock);
	while (*value < at_least)
		pthread_cond_wait(&changed, &lock);
	pthread_mutex_unlock(&lock);
}

static int fake_look(const struct sysroot *root, const char *netns_dir, const struct bdf *bdfs,
		     size_t n, struct arena *arena, struct vf_state *ret, struct err *err)
{
	gate();
	if (!root || strcmp(netns_dir, "/run/netns") != 0)
		return err_set(err, EINVAL, "not what was asked for");
	for (size_t i = 0; i < n; i++) {
		if (bdfs[i].bus == 0xff)
			return err_set(err, ENOENT, "PCI function 0000:ff:00.0 is gone");
		ret[i] = (struct vf_state) { .bdf = bdfs[i],
					     .netdev = arena_printf(arena, "net%d", bdfs[i].bus) };
	}
	return 0;
}

/* --- who asks --- */

static struct answer {
	unsigned times;
	size_t n;
	bool known;
	char netdev[2][8], why[128];
} answers[8];

static void on_states(void *arg, const struct vf_state *states, size_t n, const char *why)
{
	struct answer *a = arg;

	a->times++;
	a->n = n;
	a->known = states != NULL;
	snprintf(a->why, sizeof(a->why), "%s", why ? why : "");
	for (size_t i = 0; states && i < n && i < 2; i++)
		snprintf(a->netdev[i], sizeof(a->netdev[i]), "%s", states[i].netdev);
}

static void begin(void *arg)
{
	(void)arg;
	rpc_thread = pthread_self();
	t = grant_probe_new(&env);
}

static void end(void *arg)
{
	(void)arg;
	grant_probe_free(STEAL(t));
}

struct asking {
	struct answer *answer;
	uint8_t bus[2];
	size_t n;
	bool before_return;
};

static void ask(void *arg)
{
	struct asking *q = arg;
	struct bdf bdfs[2] = { { .bus = q->bus[0] }, { .bus = q->bus[1] } };

	grant_probe_start(t, bdfs, q->n, on_states, q->answer);
	q->before_return = q->answer->times > 0;
}

static void ask_for(struct answer *answer, uint8_t first, uint8_t second)
{
	struct asking q = { answer, { first, second }, second ? 2 : 1, false };

	on_rpc(ask, &q);
	assert_false(q.before_return);
}

static bool first_is_told(void)
{
	return answers[0].times > 0;
}

static bool all_are_told(void)
{
	for (size_t i = 0; i < ARRAY_LEN(answers); i++) {
		if (!answers[i].times)
			return false;
	}
	return true;
}

static int set_up(void **state)
{
	(void)state;
	assert_int_equal(rpc_start(&rpc, NULL), 0);
	env = (struct vfprobe_env) { .rpc = rpc,
				     .root = "/",
				     .netns_dir = "/run/netns",
				     .timeout_ms = 60000,
				     .probe = fake_look };
	waiting = most_waiting = probed = passes = 0;
	on_rpc_thread = false;
	memset(answers, 0, sizeof(answers));
	return 0;
}

static int tear_down(void **state)
{
	(void)state;
	if (t)
		on_rpc(end, NULL);
	rpc_stop(rpc);
	return 0;
}

static void the_states_come_to_the_rpc_thread_in_the_order_asked(void **state)
{
	(void)state;
	on_rpc(begin, NULL);
	ask_for(&answers[0], 7, 5);
	let_pass(1);
	wait_until(first_is_told);
	assert_int_equal(answers[0].times, 1);
	assert_true(answers[0].known);
	assert_int_equal(answers[0].n, 2);
	assert_string_equal(answers[0].netdev[0], "net7");
	assert_string_equal(answers[0].netdev[1], "net5");
	assert_string_equal(answers[0].why, "");
	assert_false(on_rpc_thread);
}

static void a_look_that_fails_says_why(void **state)
{
	(void)state;
	on_rpc(begin, NULL);
	ask_for(&answers[0], 0xff, 0);
	let_pass(1);
	wait_until(first_is_told);
	assert_false(answers[0].known);
	assert_string_equal(answers[0].why, "PCI function 0000:ff:00.0 is gone");
}

static void a_root_that_is_gone_is_told(void **state)
{
	(void)state;
	env.root = "/nowhere-at-all";
	on_rpc(begin, NULL);
	ask_for(&answers[0], 1, 0);
	wait_until(first_is_told);
	assert_false(answers[0].known);
	assert_non_null(strstr(answers[0].why, "/nowhere-at-all"));
}

static void a_look_that_takes_too_long_is_answered_all_the_same(void **state)
{
	(void)state;
	env.timeout_ms = 20;
	on_rpc(begin, NULL);
	ask_for(&answers[0], 1, 0);
	wait_until(first_is_told); /* nobody passes the gate */
	assert_false(answers[0].known);
	assert_string_equal(answers[0].why, "the kernel did not answer within 20 ms");
	let_pass(1);
	wait_for(&probed, 1);
	on_rpc(end, NULL);
	assert_int_equal(answers[0].times, 1);
}

static void no_more_threads_than_allowed_look_at_once(void **state)
{
	(void)state;
	env.max_threads = 2;
	on_rpc(begin, NULL);
	for (size_t i = 0; i < ARRAY_LEN(answers); i++)
		ask_for(&answers[i], (uint8_t)(i + 1), 0);
	wait_for(&waiting, 2);
	let_pass(ARRAY_LEN(answers));
	wait_until(all_are_told);
	for (size_t i = 0; i < ARRAY_LEN(answers); i++)
		assert_true(answers[i].known);
	assert_int_equal(most_waiting, 2);
}

static void those_that_wait_for_a_thread_wait_no_longer_than_others(void **state)
{
	(void)state;
	env.max_threads = 1;
	env.timeout_ms = 20;
	on_rpc(begin, NULL);
	for (size_t i = 0; i < ARRAY_LEN(answers); i++)
		ask_for(&answers[i], 1, 0);
	wait_until(all_are_told);
	for (size_t i = 0; i < ARRAY_LEN(answers); i++)
		assert_false(answers[i].known);
	let_pass(1);
	wait_for(&probed, 1);
	assert_int_equal(most_waiting, 1);
}

static void who_asks_is_answered_when_all_ends_and_the_thread_goes_on_alone(void **state)
{
	(void)state;
	env.max_threads = 1;
	on_rpc(begin, NULL);
	ask_for(&answers[0], 1, 0);
	ask_for(&answers[1], 1, 0);
	wait_for(&waiting, 1);
	on_rpc(end, NULL);
	assert_int_equal(answers[0].times, 1);
	assert_int_equal(answers[1].times, 1);
	assert_false(answers[0].known);
	assert_string_equal(answers[1].why, "railmated is stopping");
	let_pass(1);
	wait_for(&probed, 1);
}

static void post_then_end(void *arg)
{
	(void)arg;
	/* The thread's letter may be in the box already, or come while we are here. */
	let_pass(1);
	wait_for(&probed, 1);
	grant_probe_free(STEAL(t));
}

static void an_answer_on_its_way_does_not_outlive_the_end(void **state)
{
	(void)state;
	on_rpc(begin, NULL);
	ask_for(&answers[0], 1, 0);
	wait_for(&waiting, 1);
	on_rpc(post_then_end, NULL);
	assert_int_equal(answers[0].times, 1);
	assert_false(answers[0].known);
}

static void ask_and_ask_again(void *arg, const struct vf_state *states, size_t n, const char *why)
{
	struct bdf bdf = { .bus = 9 };

	on_states(arg, states, n, why);
	grant_probe_start(t, &bdf, 1, on_states, &answers[1]);
}

static void ask_twice(void *arg)
{
	struct bdf bdf = { .bus = 8 };

	(void)arg;
	grant_probe_start(t, &bdf, 1, ask_and_ask_again, &answers[0]);
}

static bool second_is_told(void)
{
	return answers[1].times > 0;
}

static void who_is_told_may_ask_again(void **state)
{
	(void)state;
	env.max_threads = 1;
	on_rpc(begin, NULL);
	on_rpc(ask_twice, NULL);
	let_pass(2);
	wait_until(second_is_told);
	assert_string_equal(answers[0].netdev[0], "net8");
	assert_string_equal(answers[1].netdev[0], "net9");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(
			the_states_come_to_the_rpc_thread_in_the_order_asked, set_up, tear_down),
		cmocka_unit_test_setup_teardown(a_look_that_fails_says_why, set_up, tear_down),
		cmocka_unit_test_setup_teardown(a_root_that_is_gone_is_told, set_up, tear_down),
		cmocka_unit_test_setup_teardown(a_look_that_takes_too_long_is_answered_all_the_same,
						set_up, tear_down),
		cmocka_unit_test_setup_teardown(no_more_threads_than_allowed_look_at_once, set_up,
						tear_down),
		cmocka_unit_test_setup_teardown(
			those_that_wait_for_a_thread_wait_no_longer_than_others, set_up, tear_down),
		cmocka_unit_test_setup_teardown(
			who_asks_is_answered_when_all_ends_and_the_thread_goes_on_alone, set_up,
			tear_down),
		cmocka_unit_test_setup_teardown(an_answer_on_its_way_does_not_outlive_the_end,
						set_up, tear_down),
		cmocka_unit_test_setup_teardown(who_is_told_may_ask_again, set_up, tear_down),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
