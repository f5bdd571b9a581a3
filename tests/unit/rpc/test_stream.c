/* Server streams: the newest state wins, the end is told once, a slow reader costs nothing. */
#include "peer.h"

struct reader {
	struct peer *p;
	struct rpc_subscription *handle;
	sem_t message, done;
	size_t n;
	char last[16]; /* the rpc thread's, as n is: read_so_far() */
	enum rpc_status status;
	char text[128];
};

static void read_message(void *arg, struct bytes body)
{
	struct reader *r = arg;

	snprintf(r->last, sizeof(r->last), "%.*s", body.len < 15 ? (int)body.len : 15,
		 (const char *)body.data);
	r->n++;
	sem_post(&r->message);
}

static void read_end(void *arg, enum rpc_status status, const char *message, struct bytes body)
{
	struct reader *r = arg;

	assert_int_equal(body.len, 0);
	r->handle = NULL;
	r->status = status;
	snprintf(r->text, sizeof(r->text), "%s", message);
	sem_post(&r->done);
}

static void subscribe(void *arg)
{
	struct reader *r = arg;

	r->handle = rpc_call_stream(r->p->channel, "/t.T/Watch", text("first"), read_message,
				    read_end, r);
}

static void reader_begin(struct reader *r, struct peer *p)
{
	*r = (struct reader) { .p = p };
	sem_init(&r->message, 0, 0);
	sem_init(&r->done, 0, 0);
	assert_true(rpc_run(p->rpc, subscribe, r));
	wait_for(&p->event);
	wait_for(&r->message);
	assert_string_equal(r->last, "first");
}

static void reader_end(struct reader *r)
{
	wait_for(&r->done);
	sem_destroy(&r->message);
	sem_destroy(&r->done);
}

static void cancel(void *arg)
{
	struct reader *r = arg;

	rpc_subscription_cancel(r->handle);
}

static void pause_reader(void *arg)
{
	struct reader *r = arg;

	rpc_subscription_pause(r->handle, true);
}

struct so_far {
	const struct reader *reader;
	size_t n;
	char last[16];
};

static void copy_so_far(void *arg)
{
	struct so_far *s = arg;

	s->n = s->reader->n;
	memcpy(s->last, s->reader->last, sizeof(s->last));
}

static struct so_far read_so_far(const struct reader *r)
{
	struct so_far s = { .reader = r };

	rpc_run(r->p->rpc, copy_so_far, &s);
	return s;
}

static void resume_reader(void *arg)
{
	struct reader *r = arg;

	rpc_subscription_pause(r->handle, false);
}

struct sending {
	struct rpc_stream *stream;
	char body[64 << 10];
};

static void send_body(void *arg)
{
	struct sending *s = arg;

	rpc_stream_send(s->stream, (struct bytes) { (const uint8_t *)s->body, sizeof(s->body) });
}

static void send_two_and_end(void *arg)
{
	struct peer *p = arg;

	rpc_stream_send(p->streams[0], text("older"));
	rpc_stream_send(p->streams[0], text("newer"));
	rpc_stream_end(p->streams[0], RPC_UNAVAILABLE, "pool gone");
	rpc_stream_send(p->streams[0], text("after the end"));
	rpc_stream_end(p->streams[0], RPC_INTERNAL, "twice");
}

static void first_message_and_updates_arrive(void **state)
{
	struct peer *p = *state;
	struct sending s = { .body = "update" };
	struct reader r;

	reader_begin(&r, p);
	s.stream = p->streams[0];
	rpc_run(p->rpc, send_body, &s);
	wait_for(&r.message);
	assert_string_equal(r.last, "update");
	rpc_run(p->rpc, cancel, &r);
	reader_end(&r);
	assert_int_equal(r.status, RPC_CANCELLED);
	wait_for(&p->event);
	assert_int_equal(p->n_closed, 1);
}

static void end_comes_after_the_newest_message_and_only_once(void **state)
{
	struct peer *p = *state;
	struct reader r;

	reader_begin(&r, p);
	rpc_run(p->rpc, send_two_and_end, p);
	reader_end(&r);
	assert_string_equal(r.last, "newer");
	assert_int_equal(r.status, RPC_UNAVAILABLE);
	assert_string_equal(r.text, "pool gone");
	wait_for(&p->event);
	assert_int_equal(p->n_closed, 1);
}

/* 1000 states of 64 KiB: what the sockets hold arrives, the rest is skipped, the last one is not.
 */
static void paused_reader_skips_states_and_gets_the_last(void **state)
{
	struct peer *p = *state;
	struct sending s;
	struct reader r;

	reader_begin(&r, p);
	rpc_run(p->rpc, pause_reader, &r);
	memset(s.body, ' ', sizeof(s.body));
	s.stream = p->streams[0];
	for (int i = 0; i < 1000; i++) {
		int n = snprintf(s.body, sizeof(s.body), "%d", i);

		s.body[n] = '\0';
		rpc_run(p->rpc, send_body, &s);
	}
	assert_true(read_so_far(&r).n <= 2); /* the read that was under way when we paused */
	rpc_run(p->rpc, resume_reader, &r);
	do
		wait_for(&r.message);
	while (strcmp(read_so_far(&r).last, "999") != 0);
	assert_true(read_so_far(&r).n < 100);
	rpc_run(p->rpc, cancel, &r);
	reader_end(&r);
}

static void several_streams_are_told_apart(void **state)
{
	struct peer *p = *state;
	struct sending s = { .body = "only the second" };
	struct reader r[2];

	reader_begin(&r[0], p);
	reader_begin(&r[1], p);
	s.stream = p->streams[1];
	rpc_run(p->rpc, send_body, &s);
	wait_for(&r[1].message);
	assert_string_equal(r[1].last, "only the second");
	assert_string_equal(r[0].last, "first");
	rpc_run(p->rpc, cancel, &r[0]);
	reader_end(&r[0]);
	wait_for(&p->event);
	assert_null(p->streams[0]);
	assert_non_null(p->streams[1]);
	rpc_run(p->rpc, cancel, &r[1]);
	reader_end(&r[1]);
}

static void closing_the_server_ends_streams_and_tells_the_owner(void **state)
{
	struct peer *p = *state;
	struct reader r;

	reader_begin(&r, p);
	unserve(p);
	reader_end(&r);
	assert_int_equal(r.status, RPC_UNAVAILABLE);
	assert_string_equal(r.text, "the server is closing");
	assert_int_equal(p->n_closed, 1);
}

static void closing_the_server_does_not_wait_for_a_reader_that_never_reads(void **state)
{
	struct peer *p = *state;
	struct sending s = { .body = "x" };
	struct reader r;

	reader_begin(&r, p);
	rpc_run(p->rpc, pause_reader, &r);
	s.stream = p->streams[0];
	for (int i = 0; i < 20; i++)
		rpc_run(p->rpc, send_body, &s);
	unserve(p);
	assert_int_equal(p->n_closed, 1);
	rpc_run(p->rpc, resume_reader, &r);
	reader_end(&r);
	assert_int_not_equal(r.status, RPC_OK);
}

static void unknown_stream_is_unimplemented(void **state)
{
	struct peer *p = *state;
	struct answer a;

	assert_int_equal(call(&a, p, "/t.T/Watch2", text("x")), RPC_UNIMPLEMENTED);
	free(a.body);
	assert_int_equal(p->n_opened, 0);
}

static void stream_to_a_missing_socket_ends_unavailable(void **state)
{
	struct peer *p = *state;
	struct reader r = { .p = p };

	sem_init(&r.message, 0, 0);
	sem_init(&r.done, 0, 0);
	unserve(p);
	rpc_run(p->rpc, subscribe, &r);
	reader_end(&r);
	assert_int_equal(r.status, RPC_UNAVAILABLE);
	assert_int_equal(r.n, 0);
}

static void closing_the_channel_cancels_its_streams(void **state)
{
	struct peer *p = *state;
	struct reader r;

	reader_begin(&r, p);
	rpc_run(p->rpc, close_channel, p);
	reader_end(&r);
	assert_int_equal(r.status, RPC_CANCELLED);
	wait_for(&p->event);
	assert_int_equal(p->n_closed, 1);
}

#define SERVED(test) cmocka_unit_test_setup_teardown(test, peer_setup_serving, peer_teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		SERVED(first_message_and_updates_arrive),
		SERVED(end_comes_after_the_newest_message_and_only_once),
		SERVED(paused_reader_skips_states_and_gets_the_last),
		SERVED(several_streams_are_told_apart),
		SERVED(closing_the_server_ends_streams_and_tells_the_owner),
		SERVED(closing_the_server_does_not_wait_for_a_reader_that_never_reads),
		SERVED(unknown_stream_is_unimplemented),
		SERVED(stream_to_a_missing_socket_ends_unavailable),
		SERVED(closing_the_channel_cancels_its_streams),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
