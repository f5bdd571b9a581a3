/* What a guard lets pass, frame by frame. */
#include "peer.h"

#include "rpc/guard-internal.h"

#define PREFACE	  "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
#define HEAD	  9
#define MUCH_TIME 1000000

enum { DATA, HEADERS, PRIORITY, RST, SETTINGS, PUSH, PING, GOAWAY, WINDOW, CONTINUATION };
#define ENDS	    1 /* the stream */
#define END_HEADERS 4

struct ends {
	int peer, grpc;
	struct guard *guard;
	int64_t now_ms;
	bool paused;
	uint8_t unsent[65536]; /* of the peer */
	size_t n_unsent;
};

static int setup_with(void **state, enum guard_of of)
{
	struct ends *e = xcalloc(1, sizeof(*e));
	int pair[2];

	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, pair),
			 0);
	e->peer = pair[0];
	e->guard = guard_new(pair[1], of, &e->grpc);
	assert_non_null(e->guard);
	assert_int_equal(send(of == GUARD_OF_CLIENT ? e->peer : e->grpc, PREFACE, 24, 0), 24);
	*state = e;
	return 0;
}

static int setup(void **state)
{
	return setup_with(state, GUARD_OF_CLIENT);
}

static int setup_server(void **state)
{
	return setup_with(state, GUARD_OF_SERVER);
}

static int teardown(void **state)
{
	struct ends *e = *state;

	if (e->guard)
		guard_free(e->guard);
	closep(&e->peer);
	closep(&e->grpc);
	free(e);
	return 0;
}

/* False: it is over. */
static bool pump(struct ends *e)
{
	enum guard_state state;

	do
		state = guard_pump(e->guard, e->now_ms);
	while (state == GUARD_HAS_MORE);
	e->paused = state == GUARD_PAUSES;
	return state != GUARD_ENDED;
}

static size_t put_frame(uint8_t *b, unsigned type, unsigned flags, unsigned stream, unsigned len)
{
	const uint8_t head[HEAD] = {
		0, (uint8_t)(len >> 8),	   (uint8_t)len,   (uint8_t)type, (uint8_t)flags, 0,
		0, (uint8_t)(stream >> 8), (uint8_t)stream
	};

	memcpy(b, head, HEAD);
	memset(&b[HEAD], 0, len);
	return HEAD + len;
}

static void flagged_from_peer(struct ends *e, unsigned type, unsigned flags, unsigned stream,
			      unsigned len)
{
	assert_true(e->n_unsent + HEAD + len <= sizeof(e->unsent));
	e->n_unsent += put_frame(&e->unsent[e->n_unsent], type, flags, stream, len);
}

/* Headers end with it. */
static void from_peer(struct ends *e, unsigned type, unsigned stream, unsigned len)
{
	flagged_from_peer(e, type, type == HEADERS ? END_HEADERS : 0, stream, len);
}

static void from_grpc(struct ends *e, unsigned type, unsigned flags, unsigned stream, unsigned len)
{
	uint8_t b[64];
	size_t n = put_frame(b, type, flags, stream, len);

	assert_int_equal(send(e->grpc, b, n, 0), n);
}

/* How many bytes came out; they are taken. */
static size_t drain(int fd)
{
	char buf[65536];
	ssize_t n;
	size_t sum = 0;

	while ((n = recv(fd, buf, sizeof(buf), MSG_DONTWAIT)) > 0)
		sum += (size_t)n;
	return sum;
}

static void send_more(struct ends *e)
{
	ssize_t n = e->n_unsent ? send(e->peer, e->unsent, e->n_unsent, MSG_DONTWAIT) : 0;

	if (n <= 0)
		return;
	e->n_unsent -= (size_t)n;
	memmove(e->unsent, &e->unsent[n], e->n_unsent);
}

/* How many bytes gRPC gets now. */
static size_t passed(struct ends *e)
{
	size_t sum = 0, n;

	do {
		send_more(e);
		assert_true(pump(e));
		n = drain(e->grpc);
		sum += n;
	} while (n);
	return sum;
}

static void streams_beyond_the_limit_wait_until_others_end(void **state)
{
	struct ends *e = *state;

	assert_int_equal(passed(e), 24);
	for (unsigned i = 0; i < CALLS_OTHER + 2; i++)
		from_peer(e, HEADERS, 2 * i + 1, 20);
	assert_int_equal(passed(e), CALLS_OTHER * (HEAD + 20));
	assert_false(e->paused); /* nothing to wait for but the other side */
	from_grpc(e, HEADERS, ENDS, 7, 5);
	assert_int_equal(passed(e), HEAD + 20);
	assert_int_equal(drain(e->peer), HEAD + 5);
	from_grpc(e, RST, 0, 9, 4);
	assert_int_equal(passed(e), HEAD + 20);
	assert_false(e->paused);
}

static void streams_of_the_kubelet_are_as_many_as_grpc_allows(void **state)
{
	struct ends *e = *state;

	guard_trust(e->guard);
	for (unsigned i = 0; i < CALLS_MAX + 1; i++)
		from_peer(e, HEADERS, 2 * i + 1, 0);
	assert_int_equal(passed(e), 24 + CALLS_MAX * HEAD);
}

static void reset_streams_are_let_in_slowly(void **state)
{
	struct ends *e = *state;
	const unsigned n = 500, bytes = HEAD + HEAD + 4;
	size_t first, second;

	for (unsigned i = 0; i < n; i++) {
		from_peer(e, HEADERS, 2 * i + 1, 0);
		from_peer(e, RST, 2 * i + 1, 4);
	}
	first = passed(e);
	assert_true(e->paused);
	assert_in_range(first, 24 + 20 * bytes, 24 + 40 * bytes);
	e->now_ms += 100; /* some 40 more */
	second = passed(e);
	assert_in_range(second, 30 * bytes, 50 * bytes);
	e->now_ms += MUCH_TIME; /* not more than in the beginning */
	assert_in_range(passed(e), 20 * bytes, 40 * bytes);
}

static void frames_of_the_kubelet_are_not_counted(void **state)
{
	struct ends *e = *state;
	const unsigned n = CREDIT_MAX * 2;

	guard_trust(e->guard);
	for (unsigned i = 0; i < n; i++)
		from_peer(e, PING, 0, 8);
	assert_int_equal(passed(e), 24 + n * (HEAD + 8));
}

/* --- what ends a connection --- */

static bool ends_it(struct ends *e)
{
	send_more(e);
	while (pump(e)) {
		if (!drain(e->grpc) && !e->n_unsent)
			return false;
		send_more(e);
	}
	e->n_unsent = 0;
	return true;
}

static void headers_go_on_up_to_a_limit(void **state)
{
	struct ends *e = *state;

	from_peer(e, HEADERS, 1, HEADERS_MAX_CALL);
	assert_int_equal(passed(e), 24 + HEAD + HEADERS_MAX_CALL);
	e->now_ms += MUCH_TIME;
	flagged_from_peer(e, HEADERS, 0, 3, HEADERS_MAX_CALL / 2);
	flagged_from_peer(e, CONTINUATION, END_HEADERS, 3, HEADERS_MAX_CALL / 2 - HEAD);
	assert_int_equal(passed(e), 2 * HEAD + HEADERS_MAX_CALL - HEAD);
	e->now_ms += MUCH_TIME;
	flagged_from_peer(e, HEADERS, 0, 5, HEADERS_MAX_CALL / 2);
	flagged_from_peer(e, CONTINUATION, 0, 5, HEADERS_MAX_CALL / 2 - HEAD + 1);
	assert_true(ends_it(e));
}

static void headers_longer_than_the_limit_end_it(void **state)
{
	struct ends *e = *state;

	from_peer(e, HEADERS, 1, HEADERS_MAX_CALL + 1);
	assert_true(ends_it(e));
}

static void headers_of_nothing_that_go_on_for_ever_end_it(void **state)
{
	struct ends *e = *state;

	flagged_from_peer(e, HEADERS, 0, 1, 0);
	for (unsigned i = 0; i < HEADERS_MAX_CALL / HEAD + 1; i++)
		flagged_from_peer(e, CONTINUATION, 0, 1, 0);
	e->now_ms = MUCH_TIME;
	for (int i = 0; i < 3; i++) {
		e->now_ms += MUCH_TIME;
		if (ends_it(e))
			return;
	}
	fail_msg("it goes on");
}

static void no_frame_comes_between_headers(void **state)
{
	struct ends *e = *state;

	flagged_from_peer(e, HEADERS, 0, 1, 10);
	from_peer(e, PING, 0, 8);
	assert_true(ends_it(e));
}

static void headers_do_not_go_on_with_another_stream(void **state)
{
	struct ends *e = *state;

	from_peer(e, HEADERS, 1, 10);
	flagged_from_peer(e, HEADERS, 0, 3, 10);
	flagged_from_peer(e, CONTINUATION, END_HEADERS, 1, 10);
	assert_true(ends_it(e));
}

static void headers_that_ended_do_not_go_on(void **state)
{
	struct ends *e = *state;

	from_peer(e, HEADERS, 1, 10);
	flagged_from_peer(e, CONTINUATION, END_HEADERS, 1, 10);
	assert_true(ends_it(e));
}

static void streams_that_nobody_opened_have_no_frames(void **state)
{
	static const unsigned types[] = { DATA, RST, WINDOW };
	struct ends *e = *state;

	for (size_t i = 0; i < ARRAY_LEN(types); i++) {
		teardown(state);
		setup(state);
		e = *state;
		from_peer(e, PRIORITY, 9, 5);
		from_peer(e, HEADERS, 3, 10);
		from_peer(e, types[i], 1, 4); /* it is over */
		assert_false(ends_it(e));
		from_peer(e, types[i], 5, 4);
		assert_true(ends_it(e));
	}
}

static void client_opens_no_stream_of_a_server(void **state)
{
	struct ends *e = *state;

	from_peer(e, HEADERS, 2, 10);
	assert_true(ends_it(e));
}

static void promises_end_it(void **state)
{
	struct ends *e = *state;

	from_peer(e, HEADERS, 1, 10);
	from_peer(e, PUSH, 1, 10);
	assert_true(ends_it(e));
}

/* --- frames that are answered --- */

static void frames_that_are_answered_are_let_in_slowly(void **state)
{
	static const unsigned types[] = { PING, SETTINGS, GOAWAY };
	struct ends *e = *state;

	for (size_t i = 0; i < ARRAY_LEN(types); i++) {
		teardown(state);
		setup(state);
		e = *state;
		for (unsigned k = 0; k < 200; k++)
			from_peer(e, types[i], 0, 8);
		assert_in_range(passed(e), 24 + 20 * (HEAD + 8), 60 * (HEAD + 8));
		assert_true(e->paused);
	}
}

/* However slowly it comes. */
static void nothing_comes_in_while_answers_are_not_read(void **state)
{
	struct ends *e = *state;
	size_t unread = 0, before = 0;

	assert_int_equal(passed(e), 24);
	for (unsigned i = 0; i < 100000 && before == unread; i++) {
		from_grpc(e, PING, ENDS, 0, 8);
		unread += HEAD + 8;
		from_peer(e, PING, 0, 8);
		e->now_ms += MUCH_TIME;
		before += passed(e);
	}
	assert_true(unread < 1 << 20); /* it waits now */
	from_peer(e, PING, 0, 8);
	assert_int_equal(passed(e), 0);
	assert_false(e->paused);
	assert_in_range(drain(e->peer), 1, unread);
	assert_int_equal(passed(e), 2 * (HEAD + 8));
}

/* --- servers that we ask --- */

static void server_answers_what_was_asked(void **state)
{
	struct ends *e = *state;

	from_grpc(e, HEADERS, END_HEADERS, 1, 20);
	assert_true(pump(e));
	assert_int_equal(drain(e->peer), 24 + HEAD + 20);
	from_peer(e, SETTINGS, 0, 0);
	from_peer(e, HEADERS, 1, 20);
	from_peer(e, DATA, 1, 16384);
	from_peer(e, HEADERS, 1, 20);
	assert_int_equal(passed(e), 4 * HEAD + 20 + 16384 + 20);
	from_peer(e, HEADERS, 3, 20);
	assert_true(ends_it(e));
}

static void server_has_the_limits_of_a_client(void **state)
{
	static const struct {
		unsigned type, stream, len;
	} lies[] = { { PUSH, 1, 8 },
		     { HEADERS, 2, 8 },
		     { DATA, 3, 8 },
		     { CONTINUATION, 1, 8 },
		     { HEADERS, 1, HEADERS_MAX + 1 } };
	struct ends *e = *state;

	for (size_t i = 0; i < ARRAY_LEN(lies); i++) {
		teardown(state);
		setup_server(state);
		e = *state;
		from_grpc(e, HEADERS, END_HEADERS, 1, 20);
		assert_true(pump(e));
		from_peer(e, lies[i].type, lies[i].stream, lies[i].len);
		assert_true(ends_it(e));
	}
	teardown(state);
	setup_server(state);
	e = *state;
	for (unsigned i = 0; i < 200; i++)
		from_peer(e, SETTINGS, 0, 6);
	assert_in_range(passed(e), 20 * (HEAD + 6), 60 * (HEAD + 6));
}

/* It may end as soon as it has answered. */
static void last_answer_of_a_server_comes_although_it_is_gone(void **state)
{
	struct ends *e = *state;
	uint8_t b[HEAD + 20];

	from_grpc(e, HEADERS, END_HEADERS, 1, 20);
	assert_true(pump(e));
	drain(e->peer);
	put_frame(b, HEADERS, END_HEADERS | ENDS, 1, 20);
	assert_int_equal(send(e->peer, b, sizeof(b), 0), sizeof(b));
	assert_int_equal(send(e->peer, b, 4, 0), 4); /* and a part of a frame */
	closep(&e->peer);
	e->peer = -1;
	from_grpc(e, PING, 0, 0, 8);
	assert_true(pump(e));
	assert_int_equal(drain(e->grpc), sizeof(b));
	assert_int_equal(recv(e->grpc, b, 1, MSG_DONTWAIT), 0);
}

/* --- bytes --- */

static void frames_are_cut_anywhere(void **state)
{
	struct ends *e = *state;
	const uint8_t ping[HEAD + 8] = { 0, 0, 8, PING };

	assert_int_equal(passed(e), 24);
	for (size_t i = 0; i < sizeof(ping); i++) {
		assert_int_equal(send(e->peer, &ping[i], 1, 0), 1);
		assert_int_equal(passed(e), i + 1 < HEAD ? 0 : i + 1 == HEAD ? HEAD : 1);
	}
}

static void frame_longer_than_announced_ends_it(void **state)
{
	struct ends *e = *state;
	const uint8_t head[HEAD] = { 0, 0x40, 1, 0, 0, 0, 0, 0, 1 };

	assert_int_equal(send(e->peer, head, sizeof(head), 0), sizeof(head));
	assert_false(pump(e));
}

static void end_of_either_side_is_the_end(void **state)
{
	struct ends *e = *state;

	assert_int_equal(passed(e), 24);
	shutdown(e->peer, SHUT_WR);
	assert_true(pump(e)); /* gRPC may have something to say */
	assert_int_equal(recv(e->grpc, &(char) { 0 }, 1, MSG_DONTWAIT), 0);
	closep(&e->grpc);
	e->grpc = -1;
	assert_false(pump(e));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
#define T(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
#define S(f) cmocka_unit_test_setup_teardown(f, setup_server, teardown)
		T(streams_beyond_the_limit_wait_until_others_end),
		T(streams_of_the_kubelet_are_as_many_as_grpc_allows),
		T(reset_streams_are_let_in_slowly),
		T(frames_of_the_kubelet_are_not_counted),
		T(headers_go_on_up_to_a_limit),
		T(headers_longer_than_the_limit_end_it),
		T(headers_of_nothing_that_go_on_for_ever_end_it),
		T(no_frame_comes_between_headers),
		T(headers_do_not_go_on_with_another_stream),
		T(headers_that_ended_do_not_go_on),
		T(streams_that_nobody_opened_have_no_frames),
		T(client_opens_no_stream_of_a_server),
		T(promises_end_it),
		T(frames_that_are_answered_are_let_in_slowly),
		T(nothing_comes_in_while_answers_are_not_read),
		S(server_answers_what_was_asked),
		S(server_has_the_limits_of_a_client),
		S(last_answer_of_a_server_comes_although_it_is_gone),
		T(frames_are_cut_anywhere),
		T(frame_longer_than_announced_ends_it),
		T(end_of_either_side_is_the_end),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
