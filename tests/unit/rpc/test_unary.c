/* Unary calls between our own client and our own server, over a real socket. */
#include "peer.h"

#include "base/str.h"

static void answers_what_the_handler_replies(void **state)
{
	assert_echo(*state, "hello");
}

static void empty_request_and_empty_answer_are_messages(void **state)
{
	assert_echo(*state, "");
}

static void carries_bytes_that_are_not_text(void **state)
{
	static const uint8_t raw[] = { 0, 255, 10, 0, 128 };
	struct answer a;

	assert_int_equal(call(&a, *state, "/t.T/Echo", (struct bytes) { raw, sizeof(raw) }),
			 RPC_OK);
	assert_int_equal(a.len, sizeof(raw));
	assert_memory_equal(a.body, raw, sizeof(raw));
	free(a.body);
}

static void error_arrives_with_code_and_sentence_and_without_body(void **state)
{
	struct answer a;

	assert_int_equal(call(&a, *state, "/t.T/Refuse", text("VF \xc3\xa4")),
			 RPC_FAILED_PRECONDITION);
	assert_string_equal(a.message, "no VF \xc3\xa4");
	assert_int_equal(a.len, 0);
	free(a.body);
}

static void handler_sees_the_user_agent(void **state)
{
	struct answer a;

	assert_int_equal(call(&a, *state, "/t.T/Agent", text("")), RPC_OK);
	assert_non_null(strstr(a.body, "grpc-c"));
	free(a.body);
}

static void calls_say_who_calls(void **state)
{
	struct peer *p = *state;
	struct answer a;

	rpc_run(p->rpc, close_channel, p);
	rpc_set_user_agent(p->rpc, "railmated/1.2");
	rpc_run(p->rpc, open_channel, p);
	assert_int_equal(call(&a, p, "/t.T/Agent", text("")), RPC_OK);
	assert_true(str_starts(a.body, "railmated/1.2 grpc-c"));
	free(a.body);
}

static void unknown_path_is_unimplemented_and_named(void **state)
{
	struct answer a;

	assert_int_equal(call(&a, *state, "/v1beta1.DevicePlugin/Fly", text("x")),
			 RPC_UNIMPLEMENTED);
	assert_string_equal(a.message, "unknown method /v1beta1.DevicePlugin/Fly");
	free(a.body);
	assert_echo(*state, "still alive");
}

static void two_hundred_calls_in_a_row(void **state)
{
	char word[24];

	for (int i = 0; i < 200; i++) {
		snprintf(word, sizeof(word), "call %d", i);
		assert_echo(*state, word);
	}
}

static void thirty_two_calls_at_once(void **state)
{
	struct answer a[32];
	char words[32][24];

	for (int i = 0; i < 32; i++) {
		snprintf(words[i], sizeof(words[i]), "call %d", i);
		call_begin(&a[i], *state, "/t.T/Echo", text(words[i]));
	}
	for (int i = 0; i < 32; i++) {
		assert_int_equal(call_end(&a[i]), RPC_OK);
		assert_string_equal(a[i].body, words[i]);
		free(a[i].body);
	}
}

static void reply_held(void *arg)
{
	struct peer *p = arg;

	while (p->n_held)
		rpc_reply(p->held[--p->n_held], RPC_OK, NULL, text("later"));
}

static void handler_may_reply_later_and_others_go_on_meanwhile(void **state)
{
	struct peer *p = *state;
	struct answer a;

	call_begin(&a, p, "/t.T/Hold", text("x"));
	wait_for(&p->event);
	assert_echo(p, "meanwhile");
	assert_int_equal(a.times, 0);
	rpc_run(p->rpc, reply_held, p);
	assert_int_equal(call_end(&a), RPC_OK);
	assert_string_equal(a.body, "later");
	free(a.body);
}

static void call_ends_at_its_deadline_and_the_late_reply_is_dropped(void **state)
{
	struct peer *p = *state;
	struct answer a = { .p = p, .path = "/t.T/Hold", .request = text("x"), .timeout_ms = 5000 };

	assert_echo(p, "connected: the call arrives long before its deadline");
	sem_init(&a.done, 0, 0);
	rpc_run(p->rpc, begin_call, &a);
	wait_for(&p->event);
	assert_int_equal(call_end(&a), RPC_DEADLINE_EXCEEDED);
	free(a.body);
	assert_echo(p, "the server has seen the end by now");
	rpc_run(p->rpc, reply_held, p);
	assert_echo(p, "alive");
}

static void closing_the_channel_cancels_its_calls(void **state)
{
	struct peer *p = *state;
	struct answer a;

	call_begin(&a, p, "/t.T/Hold", text("x"));
	wait_for(&p->event);
	rpc_run(p->rpc, close_channel, p);
	assert_int_equal(call_end(&a), RPC_CANCELLED);
	free(a.body);
	rpc_run(p->rpc, reply_held, p);
}

static void closing_the_server_ends_calls_that_wait(void **state)
{
	struct peer *p = *state;
	struct answer a;

	call_begin(&a, p, "/t.T/Hold", text("x"));
	wait_for(&p->event);
	unserve(p);
	assert_int_equal(call_end(&a), RPC_UNAVAILABLE);
	assert_string_equal(a.message, "the server is closing");
	free(a.body);
	rpc_run(p->rpc, reply_held, p); /* to nobody */
}

static void missing_socket_is_unavailable_at_once(void **state)
{
	struct peer *p = *state;
	uint64_t begin = now_ms();
	struct answer a;

	unserve(p);
	for (int i = 0; i < 3; i++) {
		assert_int_equal(call(&a, p, "/t.T/Echo", text("x")), RPC_UNAVAILABLE);
		assert_non_null(strstr(a.message, p->path));
		free(a.body);
	}
	assert_true(now_ms() - begin < 10000); /* far below the 30 s of the deadline */
}

/* gRPC alone would refuse for a second, longer each time. */
static void socket_that_came_back_is_reached_at_once(void **state)
{
	struct peer *p = *state;
	struct answer a;

	for (int i = 0; i < 10; i++) {
		unserve(p);
		assert_int_equal(call(&a, p, "/t.T/Echo", text("x")), RPC_UNAVAILABLE);
		free(a.body);
		serve(p);
		assert_echo(p, "back");
	}
}

static void big_limited_answer(void *ctx, struct rpc_call *call, struct bytes request)
{
	(void)ctx;
	(void)request;
	rpc_reply(call, RPC_OK, NULL,
		  (struct bytes) { arena_alloc(rpc_call_arena(call), 5000), 5000 });
}

static const struct rpc_method big_methods[] = { { .path = "/t.T/Big",
						   .unary = big_limited_answer } };

static void open_big(void *arg)
{
	struct peer *p = arg;
	struct err err;

	snprintf(p->path, sizeof(p->path), "%s/big %%23#?.sock", p->dir);
	if (rpc_server_open(p->rpc, p->path, big_methods, ARRAY_LEN(big_methods), p, &p->server,
			    &err) < 0)
		fail_msg("%s", err.msg);
	p->channel = rpc_channel_open(p->rpc, p->path, 4999);
}

/* The socket's name needs escaping in a target. */
static void answer_above_the_clients_limit_is_refused(void **state)
{
	struct peer *p = *state;
	struct answer a;

	rpc_run(p->rpc, open_big, p);
	assert_int_equal(call(&a, p, "/t.T/Big", text("x")), RPC_RESOURCE_EXHAUSTED);
	free(a.body);
}

static void request_of_512_kibibytes_passes_and_one_byte_more_does_not(void **state)
{
	const size_t limit = 512 << 10;
	_cleanup_free_ uint8_t *big = xcalloc(limit + 1, 1);
	struct answer a;

	assert_int_equal(call(&a, *state, "/t.T/Echo", (struct bytes) { big, limit }), RPC_OK);
	assert_int_equal(a.len, limit);
	free(a.body);
	assert_int_equal(call(&a, *state, "/t.T/Echo", (struct bytes) { big, limit + 1 }),
			 RPC_RESOURCE_EXHAUSTED);
	free(a.body);
	assert_echo(*state, "alive");
}

static int listen_raw(const char *path)
{
	struct sockaddr_un address = unix_address(path);
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

	assert_true(fd >= 0);
	assert_int_equal(bind(fd, (struct sockaddr *)&address, sizeof(address)), 0);
	assert_int_equal(listen(fd, 256), 0);
	return fd;
}

/* Closed a little earlier or later, a channel is at one step or another of connecting. */
static void connections_given_up_half_way_are_closed(void **state)
{
	struct peer *p = *state;
	size_t before;

	assert_echo(p, "once");
	assert_true(rpc_run(p->rpc, close_channel, p));
	usleep(100000);
	before = count_fds();
	for (useconds_t i = 0; i < 400; i++) {
		struct answer a;

		assert_true(rpc_run(p->rpc, open_channel, p));
		call_begin(&a, p, "/t.T/Echo", text("x"));
		usleep(i * 5);
		assert_true(rpc_run(p->rpc, close_channel, p));
		assert_in_set(call_end(&a), ((const unsigned long[]) { RPC_CANCELLED, RPC_OK }), 2);
		free(a.body);
	}
	assert_fds_fall_to(before);
}

/* The stop does not wait for the outcome. */
static void stop_closes_connections_given_up_half_way(void **state)
{
	struct peer *p = *state;
	int listener = listen_raw(p->path), fd;
	uint64_t began;
	struct answer a;

	assert_true(rpc_run(p->rpc, open_channel, p));
	call_begin(&a, p, "/t.T/Echo", text("x"));
	while ((fd = accept(listener, NULL, NULL)) < 0)
		assert_int_equal(errno, EAGAIN);
	assert_true(rpc_run(p->rpc, close_channel, p));
	assert_int_equal(call_end(&a), RPC_CANCELLED);
	free(a.body);
	began = now_ms();
	rpc_stop(STEAL(p->rpc));
	assert_true(now_ms() - began < 15000);
	close(fd);
	close(listener);
}

/* --- counting --- */

static struct {
	unsigned n;
	enum rpc_status status;
	int64_t ns;
	void *ctx;
} counted;

static void slow(void *ctx, struct rpc_call *call, struct bytes request)
{
	(void)ctx;
	usleep(3000);
	rpc_reply(call, request.len ? RPC_OK : RPC_NOT_FOUND, NULL, request);
}

static void count(void *ctx, const struct rpc_method *method, enum rpc_status status, int64_t ns)
{
	assert_string_equal(method->path, "/t.T/Slow");
	counted.n++;
	counted.status = status;
	counted.ns = ns;
	counted.ctx = ctx;
}

static const struct rpc_method counted_methods[] = {
	{ .path = "/t.T/Slow", .unary = slow, .answered = count },
};

static void open_counted(void *arg)
{
	struct peer *p = arg;

	assert_int_equal(rpc_server_open(p->rpc, p->path, counted_methods, 1, p, &p->server, NULL),
			 0);
	p->channel = rpc_channel_open(p->rpc, p->path, 4096);
}

static void each_answer_is_counted_with_its_status_and_time(void **state)
{
	struct peer *p = *state;
	struct answer a;

	counted.n = 0;
	rpc_run(p->rpc, open_counted, p);
	assert_int_equal(call(&a, p, "/t.T/Slow", text("x")), RPC_OK);
	free(a.body);
	assert_int_equal(counted.n, 1);
	assert_int_equal(counted.status, RPC_OK);
	assert_in_range(counted.ns, 3000000, INT64_C(30000000000));
	assert_ptr_equal(counted.ctx, p);
	assert_int_equal(call(&a, p, "/t.T/Slow", text("")), RPC_NOT_FOUND);
	free(a.body);
	assert_int_equal(counted.n, 2);
	assert_int_equal(counted.status, RPC_NOT_FOUND);
}

static void errno_maps_to_status(void **state)
{
	static const struct {
		int code;
		enum rpc_status status;
	} table[] = {
		{ 0, RPC_OK },
		{ EBADMSG, RPC_INVALID_ARGUMENT },
		{ EINVAL, RPC_INVALID_ARGUMENT },
		{ ENOENT, RPC_NOT_FOUND },
		{ ENODEV, RPC_NOT_FOUND },
		{ EBUSY, RPC_FAILED_PRECONDITION },
		{ EIO, RPC_FAILED_PRECONDITION },
		{ EAGAIN, RPC_UNAVAILABLE },
		{ ENOSYS, RPC_UNIMPLEMENTED },
		{ EPERM, RPC_INTERNAL },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(table); i++)
		assert_int_equal(rpc_status_of(table[i].code), table[i].status);
}

#define SERVED(test) cmocka_unit_test_setup_teardown(test, peer_setup_serving, peer_teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		SERVED(answers_what_the_handler_replies),
		SERVED(empty_request_and_empty_answer_are_messages),
		SERVED(carries_bytes_that_are_not_text),
		SERVED(error_arrives_with_code_and_sentence_and_without_body),
		SERVED(handler_sees_the_user_agent),
		SERVED(calls_say_who_calls),
		SERVED(unknown_path_is_unimplemented_and_named),
		SERVED(two_hundred_calls_in_a_row),
		SERVED(thirty_two_calls_at_once),
		SERVED(handler_may_reply_later_and_others_go_on_meanwhile),
		SERVED(call_ends_at_its_deadline_and_the_late_reply_is_dropped),
		SERVED(closing_the_channel_cancels_its_calls),
		SERVED(closing_the_server_ends_calls_that_wait),
		SERVED(missing_socket_is_unavailable_at_once),
		SERVED(socket_that_came_back_is_reached_at_once),
		cmocka_unit_test_setup_teardown(answer_above_the_clients_limit_is_refused,
						peer_setup, peer_teardown),
		cmocka_unit_test_setup_teardown(each_answer_is_counted_with_its_status_and_time,
						peer_setup, peer_teardown),
		SERVED(connections_given_up_half_way_are_closed),
		cmocka_unit_test_setup_teardown(stop_closes_connections_given_up_half_way,
						peer_setup, peer_teardown),
		SERVED(request_of_512_kibibytes_passes_and_one_byte_more_does_not),
		cmocka_unit_test(errno_maps_to_status),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
