/* What a guard lets pass, frame by frame. */
#include "peer.h"

#include "rpc/guard-internal.h"
#include "rpc/limits-internal.h"

#define PREFACE	  "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
#define HEAD	  9
#define HEADERS	  1
#define RST	  3
#define PING	  6
#define ENDS	  1
#define MUCH_TIME 1000000

struct ends {
	int peer, grpc;
	struct guard *guard;
	int64_t now_ms;
	bool paused;
	uint8_t unsent[65536]; /* of the peer */
	size_t n_unsent;
};

static int setup(void **state)
{
	struct ends *e = xcalloc(1, sizeof(*e));
	int pair[2];

	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, pair),
			 0);
	e->peer = pair[0];
	e->guard = guard_new(pair[1], &e->grpc);
	assert_non_null(e->guard);
	assert_int_equal(send(e->peer, PREFACE, 24, 0), 24);
	*state = e;
	return 0;
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

static bool pump(struct ends *e)
{
	return guard_pump(e->guard, e->now_ms, &e->paused);
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

static void from_peer(struct ends *e, unsigned type, unsigned stream, unsigned len)
{
	assert_true(e->n_unsent + HEAD + len <= sizeof(e->unsent));
	e->n_unsent += put_frame(&e->unsent[e->n_unsent], type, 0, stream, len);
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
		T(streams_beyond_the_limit_wait_until_others_end),
		T(streams_of_the_kubelet_are_as_many_as_grpc_allows),
		T(reset_streams_are_let_in_slowly),
		T(frames_of_the_kubelet_are_not_counted),
		T(frames_are_cut_anywhere),
		T(frame_longer_than_announced_ends_it),
		T(end_of_either_side_is_the_end),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
