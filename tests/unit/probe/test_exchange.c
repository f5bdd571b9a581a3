/* The words of two railmate-probes: messages, and a connection with one who is foreign, late or
 * gone. */
#include <errno.h>
#include <math.h>
#include <netinet/in.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/arena.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/mem.h"
#include "base/str.h"
#include "railmate-probe/exchange-internal.h"

#define STEP_MS 200
#define ANY	(~0u)
#define HOST	"127.0.0.1"
#define GOOD_END                                                                                   \
	"{\"from\":\"mlx5_0\",\"to\":\"mlx5_4\",\"qpn\":7,\"psn\":8,\"rkey\":9,\"address\":4096,"  \
	"\"size\":1024,\"lid\":0,\"link_layer\":2,\"mtu\":5,"                                      \
	"\"gid\":\"00000000000000000000ffff0a010004\",\"memory\":\"host\",\"mbps\":392500,\"limit\":null}"
#define RUN(op, size, ms, ends)                                                                    \
	"{\"type\":\"run\",\"op\":" op ",\"size\":" size ",\"message\":64,\"ms\":" ms              \
	",\"seed\":1,\"gpu\":true,\"must_fail\":false,\"ends\":[" ends "]}"

static struct exchange_message decoded(const char *line, struct arena *a)
{
	struct exchange_message m;
	struct err err = { 0 };

	if (exchange_decode(line, strlen(line), a, &m, &err) < 0)
		fail_msg("%s: %s", line, err.msg);
	return m;
}

static void refused(const char *line, const char *why)
{
	_cleanup_arena_ struct arena *a = arena_new(1024);
	struct exchange_message m = { .size = 77 };
	struct err err = { 0 };

	assert_int_equal(exchange_decode(line, strlen(line), a, &m, &err), -EBADMSG);
	assert_int_equal(m.size, 77);
	if (!strstr(err.msg, why))
		fail_msg("%s: \"%s\" has no \"%s\"", line, err.msg, why);
}

/* --- messages --- */

static void a_message_comes_as_it_was_sent(void **state)
{
	_cleanup_arena_ struct arena *a = arena_new(1024);
	_cleanup_strbuf_ struct strbuf out = STRBUF_INIT;
	struct exchange_vf vf = { "mlx5_0", 3, -1, "10.3.0.0/24" };
	struct exchange_message m = { .type = EXCHANGE_HELLO,
				      .token = "a \"token\"",
				      .node = "gpu-1",
				      .vfs = &vf,
				      .n_vfs = 1 };

	(void)state;
	exchange_encode(&m, &out);
	assert_int_equal(out.s[out.len - 1], '\n');
	out.s[out.len - 1] = '\0';
	m = decoded(out.s, a);
	assert_int_equal(m.version, EXCHANGE_VERSION);
	assert_string_equal(m.token, "a \"token\"");
	assert_string_equal(m.node, "gpu-1");
	assert_null(m.host);
	assert_int_equal(m.n_vfs, 1);
	assert_string_equal(m.vfs->hca, "mlx5_0");
	assert_int_equal(m.vfs->rail, 3);
	assert_int_equal(m.vfs->plane, -1);
	assert_string_equal(m.vfs->subnet, "10.3.0.0/24");
}

static void a_run_has_the_ends_of_the_client(void **state)
{
	_cleanup_arena_ struct arena *a = arena_new(1024);
	struct exchange_message m = decoded(RUN("1", "1024", "250", GOOD_END), a);
	const struct wire_address *w = &m.ends->address;

	(void)state;
	assert_int_equal(m.op, WIRE_READ);
	assert_int_equal(m.size, 1024);
	assert_true(m.seconds > 0.24 && m.seconds < 0.26);
	assert_int_equal(m.n_ends, 1);
	assert_string_equal(m.ends->from, "mlx5_0");
	assert_string_equal(m.ends->to, "mlx5_4");
	assert_int_equal(w->qpn, 7);
	assert_int_equal(w->rkey, 9);
	assert_int_equal(w->address, 4096);
	assert_int_equal(w->mtu, 5);
	assert_true(m.gpu && m.ends->gbps > 392.4 && m.ends->gbps < 392.6);
	assert_int_equal(w->gid[11], 0xff);
	assert_int_equal(w->gid[15], 4);
}

static void a_status_is_an_errno(void **state)
{
	_cleanup_arena_ struct arena *a = arena_new(1024);
	_cleanup_strbuf_ struct strbuf out = STRBUF_INIT;
	struct exchange_end end = { .from = "a", .to = "b", .status = -EILSEQ };
	struct exchange_message m = { .type = EXCHANGE_RESULT, .ends = &end, .n_ends = 1 };

	(void)state;
	exchange_encode(&m, &out);
	m = decoded(strtok(out.s, "\n"), a);
	assert_int_equal(m.ends->status, -EILSEQ);
}

static void a_long_finding_is_cut(void **state)
{
	_cleanup_arena_ struct arena *a = arena_new(1024);
	_cleanup_strbuf_ struct strbuf out = STRBUF_INIT;
	char what[1000];
	struct exchange_finding many[40];
	struct exchange_message m = { .type = EXCHANGE_TROUBLE,
				      .findings = many,
				      .n_findings = ARRAY_LEN(many) };

	(void)state;
	memset(what, 'x', sizeof(what) - 1);
	what[sizeof(what) - 1] = '\0';
	for (size_t i = 0; i < ARRAY_LEN(many); i++)
		many[i] = (struct exchange_finding) { OUTCOME_BROKEN, "port-down", NULL, what };
	exchange_encode(&m, &out);
	m = decoded(strtok(out.s, "\n"), a);
	assert_int_equal(m.n_findings, 32);
	assert_int_equal(strlen(m.findings[31].what), 400);
	assert_null(m.findings[31].on);
}

static void of_another_version_only_the_version_and_the_token_are_read(void **state)
{
	_cleanup_arena_ struct arena *a = arena_new(1024);
	struct exchange_message m =
		decoded("{\"type\":\"hello\",\"version\":2,\"token\":\"abc\",\"vfs\":\"?\"}", a);

	(void)state;
	assert_int_equal(m.version, 2);
	assert_string_equal(m.token, "abc");
	assert_null(m.node);
}

static void what_is_no_message_is_refused(void **state)
{
	_cleanup_free_ char *deep = xcalloc(1, 100001), *large = xcalloc(1, EXCHANGE_MAX + 2);

	(void)state;
	memset(deep, '[', EXCHANGE_MAX);
	memset(large, ' ', EXCHANGE_MAX + 1);
	refused("", "not JSON");
	refused("GET / HTTP/1.1\r", "not JSON");
	refused(deep, "not JSON");
	refused(large, "longer than 65536 bytes");
	refused("[]", "\"type\"");
	refused("{\"type\":\"exec\"}", "\"type\"");
	refused("{\"type\":\"hello\"}", "\"version\"");
}

static void a_run_out_of_bounds_is_refused(void **state)
{
	(void)state;
	refused(RUN("3", "1024", "1", GOOD_END), "\"op\"");
	refused(RUN("0", "99999999999", "1", GOOD_END), "\"size\"");
	refused(RUN("0", "1025", "1", GOOD_END), "\"size\"");
	refused(RUN("0", "1024", "60001", GOOD_END), "\"ms\"");
	refused(RUN("0", "1024", "0.5", GOOD_END), "\"ms\"");
	refused(RUN("0", "1024", "-1", GOOD_END), "\"ms\"");
	refused(RUN("0", "1024", "1", ""), "\"ends\"");
	refused(RUN("0", "1024", "1", "7"), "\"from\"");
}

static void a_name_stays_in_its_folder(void **state)
{
	static const char *const names[] = { "..", "../x", "a/b", ".a", "a b", "" };

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(names); i++) {
		_cleanup_free_ char *line = xasprintf(
			"{\"type\":\"result\",\"findings\":[],\"ends\":[{\"from\":\"%s\",\"to\":\"b\",\"status\":0}]}",
			names[i]);

		refused(line, "\"from\"");
	}
}

static void a_text_is_harmless_on_a_terminal(void **state)
{
	_cleanup_arena_ struct arena *a = arena_new(1024);
	struct exchange_message m = decoded(
		"{\"type\":\"trouble\",\"findings\":[{\"outcome\":3,\"id\":\"x\",\"on\":null,"
		"\"what\":\"\\u001b]0;EVIL\\u0007\\u202e\\n.\"}]}",
		a);

	(void)state;
	assert_string_equal(m.findings->what, "?]0;EVIL?????.");
}

/* --- the token --- */

static void only_the_whole_token_is_right(void **state)
{
	char longest[EXCHANGE_TOKEN_MAX + 2];

	(void)state;
	memset(longest, 'x', sizeof(longest));
	longest[EXCHANGE_TOKEN_MAX + 1] = '\0';
	assert_true(exchange_token_eq("s3cret-s3cret", "s3cret-s3cret"));
	assert_false(exchange_token_eq("s3cret-s3cret", "s3cret-s3creu"));
	assert_false(exchange_token_eq("s3cret-s3cret", "s3cret-s3cre"));
	assert_false(exchange_token_eq("s3cret-s3cret", ""));
	assert_false(exchange_token_eq("s3cret-s3cret", NULL));
	assert_false(exchange_token_eq("", ""));
	assert_false(exchange_token_eq(longest, longest));
	assert_true(exchange_token_eq(longest + 1, longest + 1));
}

static void a_token_is_neither_short_nor_odd(void **state)
{
	struct err err = { 0 };

	(void)state;
	assert_int_equal(exchange_token_check("s3cret-s3cret", &err), 0);
	assert_int_equal(exchange_token_check("", &err), -EINVAL);
	assert_non_null(strstr(err.msg, "0 characters, not of 8 to 128"));
	assert_int_equal(exchange_token_check("7654321", &err), -EINVAL);
	assert_int_equal(exchange_token_check("s3cret s3cret", &err), -EINVAL);
	assert_int_equal(exchange_token_check("s3cret\ns3cret", &err), -EINVAL);
}

/* --- a connection --- */

struct both {
	struct exchange x;
	int peer;
	struct arena *a;
};

static int open_both(void **state)
{
	struct both *b = xcalloc(1, sizeof(*b));
	int fds[2];

	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds), 0);
	exchange_begin(&b->x, fds[0], STEP_MS);
	b->peer = fds[1];
	b->a = arena_new(1024);
	*state = b;
	return 0;
}

static int close_both(void **state)
{
	struct both *b = *state;

	exchange_end(&b->x);
	closep(&b->peer);
	arena_free(b->a);
	free(b);
	return 0;
}

static void write_peer(const struct both *b, const char *text)
{
	assert_int_equal(write(b->peer, text, strlen(text)), (ssize_t)strlen(text));
}

static void fails(struct both *b, unsigned types, int code, const char *why)
{
	struct exchange_message m;
	struct err err = { 0 };

	assert_int_equal(exchange_receive(&b->x, types, 0, b->a, &m, &err), -code);
	if (!strstr(err.msg, why))
		fail_msg("\"%s\" has no \"%s\"", err.msg, why);
}

static void messages_come_one_by_one(void **state)
{
	struct both *b = *state;
	struct exchange_message m;

	write_peer(b, "{\"type\":\"done\"}\n{\"type\":\"bye\"}\n{\"ty");
	assert_true(exchange_is_readable(&b->x));
	assert_int_equal(exchange_receive(&b->x, ANY, 0, b->a, &m, NULL), 0);
	assert_int_equal(m.type, EXCHANGE_DONE);
	assert_int_equal(exchange_receive(&b->x, ANY, 0, b->a, &m, NULL), 0);
	assert_int_equal(m.type, EXCHANGE_BYE);
	write_peer(b, "pe\":\"bye\"}\n");
	assert_int_equal(exchange_receive(&b->x, ANY, 0, b->a, &m, NULL), 0);
	assert_int_equal(m.type, EXCHANGE_BYE);
	assert_false(exchange_is_readable(&b->x));
}

static void half_a_line_and_silence_is_late(void **state)
{
	struct both *b = *state;
	int64_t began_ms = clock_mono_ms();

	fails(b, ANY, ETIMEDOUT, "no message came in time");
	write_peer(b, "{\"type\":");
	fails(b, ANY, ETIMEDOUT, "no more than half a message came in time");
	assert_in_range(clock_mono_ms() - began_ms, 2 * STEP_MS, 100 * STEP_MS);
}

static void a_line_without_an_end_is_too_long(void **state)
{
	struct both *b = *state;
	_cleanup_free_ char *text = xcalloc(1, EXCHANGE_MAX + 2);

	memset(text, 'x', EXCHANGE_MAX + 1);
	write_peer(b, text);
	fails(b, ANY, EMSGSIZE, "longer than 65536 bytes");
}

static void a_stranger_is_told_apart(void **state)
{
	struct both *b = *state;

	write_peer(b, "GET / HTTP/1.1\r\n");
	fails(b, ANY, EBADMSG, "its message is malformed: it is not JSON");
	write_peer(b, "{\"type\":\"bye\"}\n");
	fails(b, 1u << EXCHANGE_HELLO, EBADMSG, "its message \"bye\" is out of turn");
}

static void a_peer_that_closes_is_gone(void **state)
{
	struct both *b = *state;
	const struct exchange_message bye = { .type = EXCHANGE_BYE };
	struct err err = { 0 };

	write_peer(b, "{\"type\":\"do");
	closep(&b->peer);
	b->peer = -1;
	fails(b, ANY, EPIPE, "the connection was closed");
	assert_int_equal(exchange_send(&b->x, &bye, &err), -EPIPE);
}

static void one_who_reads_nothing_is_late(void **state)
{
	struct both *b = *state;
	static struct exchange_vf vfs[EXCHANGE_VFS_MAX];
	struct exchange_message m = {
		.type = EXCHANGE_HELLO, .node = "a", .vfs = vfs, .n_vfs = ARRAY_LEN(vfs)
	};
	struct err err = { 0 };
	int r = 0;

	for (size_t i = 0; i < ARRAY_LEN(vfs); i++)
		vfs[i] = (struct exchange_vf) { "mlx5_0", 1, 1, "10.0.0.0/8" };
	for (size_t i = 0; i < 10000 && r == 0; i++)
		r = exchange_send(&b->x, &m, &err);
	assert_int_equal(r, -ETIMEDOUT);
}

static int port_of(int listener)
{
	struct sockaddr_storage at;

	assert_int_equal(getsockname(listener, (struct sockaddr *)&at, &(socklen_t) { sizeof(at) }),
			 0);
	return ntohs(at.ss_family == AF_INET6 ? ((struct sockaddr_in6 *)&at)->sin6_port
					      : ((struct sockaddr_in *)&at)->sin_port);
}

static void a_client_and_a_server_find_each_other(void **state)
{
	_cleanup_arena_ struct arena *a = arena_new(1024);
	_cleanup_close_ int listener = exchange_listen(0, NULL);
	struct exchange client, server, other;
	struct exchange_message m = { .type = EXCHANGE_DONE };

	(void)state;
	assert_true(listener >= 0);
	assert_int_equal(exchange_accept(listener, clock_mono_ms() + 1, STEP_MS, &server),
			 -ETIMEDOUT);
	assert_int_equal(exchange_connect(HOST, port_of(listener), STEP_MS, &client, NULL), 0);
	assert_int_equal(exchange_accept(listener, 0, STEP_MS, &server), 0);
	server.listener = listener;
	assert_int_equal(exchange_connect(HOST, port_of(listener), STEP_MS, &other, NULL), 0);
	assert_int_equal(exchange_send(&client, &m, NULL), 0);
	assert_int_equal(exchange_receive(&server, ANY, 0, a, &m, NULL), 0);
	assert_int_equal(exchange_receive(&server, ANY, 0, a, &m, NULL), -ETIMEDOUT);
	assert_int_equal(exchange_receive(&other, ANY, 0, a, &m, NULL), 0);
	assert_int_equal(m.type, EXCHANGE_REFUSED);
	assert_string_equal(m.findings->id, "peer-busy");
	exchange_end(&other);
	exchange_end(&client);
	exchange_end(&server);
}

static void where_nobody_listens_the_connection_is_refused(void **state)
{
	int listener = exchange_listen(0, NULL), port = port_of(listener);
	struct exchange x;
	struct err err = { 0 };

	(void)state;
	close(listener);
	assert_int_equal(exchange_connect(HOST, port, STEP_MS, &x, &err), -ECONNREFUSED);
	assert_non_null(strstr(err.msg, "Connection refused"));
	assert_int_equal(exchange_connect("", port, STEP_MS, &x, &err), -EADDRNOTAVAIL);
}

static void a_port_is_listened_on_once(void **state)
{
	_cleanup_close_ int listener = exchange_listen(0, NULL);
	struct err err = { 0 };

	(void)state;
	assert_int_equal(exchange_listen(port_of(listener), &err), -EADDRINUSE);
	assert_non_null(strstr(err.msg, "cannot be listened on: Address already in use"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_message_comes_as_it_was_sent),
		cmocka_unit_test(a_run_has_the_ends_of_the_client),
		cmocka_unit_test(a_status_is_an_errno),
		cmocka_unit_test(a_long_finding_is_cut),
		cmocka_unit_test(of_another_version_only_the_version_and_the_token_are_read),
		cmocka_unit_test(what_is_no_message_is_refused),
		cmocka_unit_test(a_run_out_of_bounds_is_refused),
		cmocka_unit_test(a_name_stays_in_its_folder),
		cmocka_unit_test(a_text_is_harmless_on_a_terminal),
		cmocka_unit_test(only_the_whole_token_is_right),
		cmocka_unit_test(a_token_is_neither_short_nor_odd),
		cmocka_unit_test_setup_teardown(messages_come_one_by_one, open_both, close_both),
		cmocka_unit_test_setup_teardown(half_a_line_and_silence_is_late, open_both,
						close_both),
		cmocka_unit_test_setup_teardown(a_line_without_an_end_is_too_long, open_both,
						close_both),
		cmocka_unit_test_setup_teardown(a_stranger_is_told_apart, open_both, close_both),
		cmocka_unit_test_setup_teardown(a_peer_that_closes_is_gone, open_both, close_both),
		cmocka_unit_test_setup_teardown(one_who_reads_nothing_is_late, open_both,
						close_both),
		cmocka_unit_test(a_client_and_a_server_find_each_other),
		cmocka_unit_test(where_nobody_listens_the_connection_is_refused),
		cmocka_unit_test(a_port_is_listened_on_once),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
