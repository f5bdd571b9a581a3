/* Peers that break the rules: the server lives on, answers others, and gives back what they held.
 */
#include "peer.h"

#include <pthread.h>

static void assert_alive(struct peer *p)
{
	assert_echo(p, "alive");
}

static void write_all(int fd, const void *data, size_t len)
{
	/* The server may have hung up: what counts is that it lives. */
	while (len) {
		ssize_t n = send(fd, data, len, MSG_NOSIGNAL);

		if (n <= 0)
			return;
		data = (const char *)data + n;
		len -= (size_t)n;
	}
}

static const char preface[] = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

static void connections_that_say_nothing_and_leave(void **state)
{
	struct peer *p = *state;
	size_t before;

	assert_alive(p);
	before = count_fds();
	for (int i = 0; i < 100; i++)
		close(raw_connect(p->path));
	assert_fds_fall_to(before);
	assert_alive(p);
}

static void garbage_bytes(void **state)
{
	struct peer *p = *state;
	uint8_t garbage[3000];
	size_t before;

	assert_alive(p);
	before = count_fds();
	srand(1);
	for (int i = 0; i < 30; i++) {
		int fd = raw_connect(p->path);

		assert_true(fd >= 0);
		for (size_t k = 0; k < sizeof(garbage); k++)
			garbage[k] = (uint8_t)rand();
		if (i % 2) /* garbage where frames should be, too */
			write_all(fd, preface, sizeof(preface) - 1);
		write_all(fd, garbage, sizeof(garbage));
		close(fd);
	}
	assert_fds_fall_to(before);
	assert_alive(p);
}

static void http1_request(void **state)
{
	static const char request[] = "GET /metrics HTTP/1.1\r\nHost: localhost\r\n\r\n";
	struct peer *p = *state;
	int fd = raw_connect(p->path);

	write_all(fd, request, sizeof(request) - 1);
	assert_alive(p);
	close(fd);
	assert_alive(p);
}

/* An empty SETTINGS frame and the headers of POST /t.T/<4 letters>, uncompressed; the message never
 * comes. */
static void begin_encoded_call(int fd, const char *letters, const char *encoding)
{
	uint8_t headers[160];
	size_t n = 9;
	const struct {
		const char *name, *value;
	} table[] = {
		{ ":method", "POST" },
		{ ":scheme", "http" },
		{ ":path", NULL },
		{ ":authority", "x" },
		{ "te", "trailers" },
		{ "content-type", "application/grpc" },
		{ "grpc-encoding", encoding },
	};
	char path[16];

	snprintf(path, sizeof(path), "/t.T/%.5s", letters);
	for (size_t i = 0; i < ARRAY_LEN(table) - !encoding; i++) {
		const char *value = table[i].value ? table[i].value : path;

		headers[n++] = 0;
		headers[n++] = (uint8_t)strlen(table[i].name);
		memcpy(headers + n, table[i].name, strlen(table[i].name));
		n += strlen(table[i].name);
		headers[n++] = (uint8_t)strlen(value);
		memcpy(headers + n, value, strlen(value));
		n += strlen(value);
	}
	memcpy(headers, (uint8_t[]) { 0, 0, (uint8_t)(n - 9), 1, 4, 0, 0, 0, 1 }, 9);
	write_all(fd, preface, sizeof(preface) - 1);
	write_all(fd, (uint8_t[]) { 0, 0, 0, 4, 0, 0, 0, 0, 0 }, 9);
	write_all(fd, headers, n);
}

static void begin_raw_call(int fd, const char *letters)
{
	begin_encoded_call(fd, letters, NULL);
}

/* DATA of stream 1: a message whose bytes are the text, and the end of the client's side if wanted.
 */
static void write_raw_message(int fd, const char *body, bool end)
{
	uint8_t len = (uint8_t)strlen(body);

	write_all(fd, (uint8_t[]) { 0, 0, (uint8_t)(len + 5), 0, end, 0, 0, 0, 1, 0, 0, 0, 0, len },
		  14);
	write_all(fd, body, len);
}

static void client_that_dies_before_its_message(void **state)
{
	struct peer *p = *state;
	size_t before;

	assert_alive(p);
	before = count_fds();
	for (int i = 0; i < 30; i++) {
		int fd = raw_connect(p->path);

		begin_raw_call(fd, i % 2 ? "Echo" : "Watch");
		close(fd);
	}
	assert_fds_fall_to(before);
	assert_alive(p);
	assert_int_equal(p->n_opened, 0);
}

static void client_that_dies_while_the_handler_works(void **state)
{
	struct peer *p = *state;
	size_t before;

	assert_alive(p);
	before = count_fds();
	for (int i = 0; i < 30; i++) {
		int fd = raw_connect(p->path);

		begin_raw_call(fd, "Hold");
		write_raw_message(fd, "x", true);
		wait_for(&p->event);
		close(fd);
	}
	assert_fds_fall_to(before);
	assert_int_equal(p->n_held, 30);
}

static void call_without_a_message_is_refused(void **state)
{
	struct peer *p = *state;
	int fd = raw_connect(p->path);
	static const uint8_t end[] = { 0, 0, 0, 0, 1, 0, 0, 0, 1 };

	begin_raw_call(fd, "Hold");
	write_all(fd, end, sizeof(end));
	assert_alive(p);
	assert_int_equal(p->n_held, 0);
	close(fd);
}

/* The status of the only call: gRPC writes it as it is. */
static void assert_raw_status(int fd, const char *status)
{
	char buf[4096], wanted[32];
	size_t n = 0;
	ssize_t got;
	int len = snprintf(wanted, sizeof(wanted), "grpc-status%c%s", (int)strlen(status), status);

	do {
		got = recv(fd, &buf[n], sizeof(buf) - n, 0);
		assert_true(got > 0);
		n += (size_t)got;
	} while (!memmem(buf, n, "grpc-status", 11));
	assert_non_null(memmem(buf, n, wanted, (size_t)len));
}

/* One of 400 KiB may be 400 MiB. */
static void compressed_messages_are_not_inflated(void **state)
{
	static const struct {
		const char *encoding, *status;
		uint8_t bytes[32];
		uint8_t len;
	} table[] = {
		{ "gzip",
		  "12",
		  { 0x1f, 0x8b, 8,    0,   0,	 0,    0,    0,	   0, 3, 1, 1,
		    0,	  0xfe, 0xff, 'x', 0x83, 0x16, 0xdc, 0x8c, 1, 0, 0, 0 },
		  24 },
		{ "deflate", "12", { 0x78, 1, 1, 1, 0, 0xfe, 0xff, 'x', 0, 'y', 0, 'y' }, 12 },
		{ "gzip", "12", "no gzip", 7 },
	};
	struct peer *p = *state;

	for (size_t i = 0; i < ARRAY_LEN(table); i++) {
		const uint8_t len = table[i].len;
		const uint8_t head[] = { 0, 0, len + 5, 0, 1, 0, 0, 0, 1, 1, 0, 0, 0, len };
		int fd = raw_connect(p->path);

		begin_encoded_call(fd, "Echo", table[i].encoding);
		write_all(fd, head, sizeof(head));
		write_all(fd, table[i].bytes, len);
		assert_raw_status(fd, table[i].status);
		close(fd);
	}
	assert_alive(p);
}

static void dead_reader_of_a_stream_is_noticed(void **state)
{
	struct peer *p = *state;

	for (int i = 0; i < 8; i++) {
		int fd = raw_connect(p->path);

		begin_raw_call(fd, "Watch");
		write_raw_message(fd, "x", true);
		wait_for(&p->event);
		assert_int_equal(p->n_opened, i + 1);
		close(fd);
		wait_for(&p->event);
		assert_int_equal(p->n_closed, i + 1);
	}
}

static size_t resident_kib(void)
{
	FILE *f = fopen("/proc/self/statm", "re");
	unsigned long size, resident;

	assert_non_null(f);
	assert_int_equal(fscanf(f, "%lu %lu", &size, &resident), 2);
	fclose(f);
	return resident * (size_t)sysconf(_SC_PAGESIZE) / 1024;
}

struct flood {
	struct rpc_stream *stream;
	uint8_t *body;
	size_t len;
};

static void send_flood(void *arg)
{
	struct flood *f = arg;

	rpc_stream_send(f->stream, (struct bytes) { f->body, f->len });
}

/* 2000 messages of 1 MiB to a client that reads nothing: two are kept, not two thousand. */
static void reader_that_never_reads_costs_little_memory(void **state)
{
	struct peer *p = *state;
	struct flood f = { .len = 1 << 20 };
	_cleanup_free_ uint8_t *body = xcalloc(f.len, 1);
	int fd = raw_connect(p->path);
	size_t before;

	begin_raw_call(fd, "Watch");
	write_raw_message(fd, "x", true);
	wait_for(&p->event);
	f.stream = p->streams[0];
	f.body = body;
	before = resident_kib();
	for (int i = 0; i < 2000; i++)
		rpc_run(p->rpc, send_flood, &f);
	/* The sanitizer keeps freed memory for a while: 256 MiB by default. */
	assert_true(resident_kib() < before + (400 << 10));
	assert_alive(p);
	close(fd);
	wait_for(&p->event);
	assert_int_equal(p->n_closed, 1);
}

static void silent_and_unread_connections_do_not_delay_the_close(void **state)
{
	struct peer *p = *state;
	int silent = raw_connect(p->path), half = raw_connect(p->path),
	    unread = raw_connect(p->path);

	begin_raw_call(half, "Echo");
	begin_raw_call(unread, "Watch");
	write_raw_message(unread, "x", true);
	wait_for(&p->event);
	unserve(p);
	assert_int_equal(p->n_closed, 1);
	close(silent);
	close(half);
	close(unread);
}

static void *fill_with_calls(void *arg)
{
	struct peer *p = arg;

	for (int i = 0; i < 50; i++) {
		int fd = raw_connect(p->path);

		if (fd < 0)
			continue;
		begin_raw_call(fd, "Echo");
		write_raw_message(fd, "x", i % 3);
		close(fd);
	}
	return NULL;
}

static void many_bad_peers_beside_a_good_one(void **state)
{
	struct peer *p = *state;
	pthread_t threads[4];

	for (size_t i = 0; i < ARRAY_LEN(threads); i++)
		assert_int_equal(pthread_create(&threads[i], NULL, fill_with_calls, p), 0);
	for (int i = 0; i < 100; i++)
		assert_alive(p);
	for (size_t i = 0; i < ARRAY_LEN(threads); i++)
		pthread_join(threads[i], NULL);
	assert_alive(p);
}

#define SERVED(test) cmocka_unit_test_setup_teardown(test, peer_setup_serving, peer_teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		SERVED(connections_that_say_nothing_and_leave),
		SERVED(garbage_bytes),
		SERVED(http1_request),
		SERVED(client_that_dies_before_its_message),
		SERVED(client_that_dies_while_the_handler_works),
		SERVED(call_without_a_message_is_refused),
		SERVED(compressed_messages_are_not_inflated),
		SERVED(dead_reader_of_a_stream_is_noticed),
		SERVED(reader_that_never_reads_costs_little_memory),
		SERVED(silent_and_unread_connections_do_not_delay_the_close),
		SERVED(many_bad_peers_beside_a_good_one),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
