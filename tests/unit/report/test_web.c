/* A server on a free port of the loopback, and clients that behave and that do not. */
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/err.h"
#include "base/mem.h"
#include "report/web.h"

#define PATIENCE_S 20

static struct web *web;
static struct sockaddr_in where;
static char host[16]; /* of this process alone: nobody else takes its ports */

static void answer(void *ctx, const struct web_request *q, struct web_reply *r)
{
	assert_ptr_equal(ctx, &where);
	if (!strcmp(q->path, "/host")) {
		r->status = 200;
		strbuf_puts(&r->body, q->host);
	} else if (!strcmp(q->path, "/big")) {
		r->status = 200;
		r->type = "text/html";
		r->policy = "default-src 'none'";
		for (int i = 0; i < 300000; i++)
			strbuf_putc(&r->body, 'x');
	} else if (!strcmp(q->path, "/empty")) {
		r->status = 200;
	}
}

static int set_up(void **state)
{
	unsigned pid = (unsigned)getpid();
	socklen_t len = sizeof(where);
	char address[32];
	int fd;

	(void)state;
	snprintf(host, sizeof(host), "127.%u.%u.%u", pid >> 16 & 255, pid >> 8 & 255, pid & 255);
	snprintf(address, sizeof(address), "%s:0", host);
	assert_int_equal(web_listen(address, &fd, NULL), 0);
	assert_int_equal(getsockname(fd, (struct sockaddr *)&where, &len), 0);
	return web_start(fd, answer, &where, &web, NULL);
}

static int tear_down(void **state)
{
	(void)state;
	web_stop(web);
	return 0;
}

static int dial(void)
{
	const struct timeval patience = { .tv_sec = PATIENCE_S };
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	assert_true(fd >= 0);
	setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience));
	assert_int_equal(connect(fd, (struct sockaddr *)&where, sizeof(where)), 0);
	return fd;
}

/* What comes back until the end of the connection; on the heap. */
static char *ask(const char *request)
{
	struct strbuf text = STRBUF_INIT;
	char chunk[4096];
	int fd = dial();
	ssize_t n;

	assert_int_equal(send(fd, request, strlen(request), MSG_NOSIGNAL), strlen(request));
	while ((n = recv(fd, chunk, sizeof(chunk), 0)) > 0)
		strbuf_add(&text, chunk, (size_t)n);
	close(fd);
	return text.s ? strbuf_steal(&text) : xstrdup("");
}

#define CLOSING "Host: x\r\nConnection: close\r\n\r\n"

static void assert_answer(const char *request, const char *status, const char *body)
{
	_cleanup_free_ char *got = ask(request);
	const char *end = strstr(got, "\r\n\r\n");

	assert_non_null(end);
	assert_memory_equal(got + strlen("HTTP/1.1 "), status, strlen(status));
	assert_string_equal(end + 4, body);
}

static void get_is_answered_with_what_was_asked_for(void **state)
{
	(void)state;
	assert_answer("GET /host HTTP/1.1\r\n" CLOSING, "200", "x");
	assert_answer("GET /host?x=1 HTTP/1.1\r\n" CLOSING, "200", "x");
	assert_answer("GET /empty HTTP/1.1\r\n" CLOSING, "200", "");
	assert_answer("GET /other HTTP/1.1\r\n" CLOSING, "404", "not found\n");
	assert_answer("GET /../empty HTTP/1.1\r\n" CLOSING, "404", "not found\n");
}

static void head_has_the_length_and_no_body(void **state)
{
	_cleanup_free_ char *got = NULL;

	(void)state;
	assert_answer("HEAD /big HTTP/1.1\r\n" CLOSING, "200", "");
	got = ask("HEAD /big HTTP/1.1\r\n" CLOSING);
	assert_non_null(strstr(got, "Content-Length: 300000\r\n"));
	assert_non_null(strstr(got, "Content-Security-Policy: default-src 'none'\r\n"));
	assert_non_null(strstr(got, "Cache-Control: no-store\r\n"));
}

static void nothing_else_is_done(void **state)
{
	(void)state;
	assert_answer("POST /empty HTTP/1.1\r\nContent-Length: 0\r\n" CLOSING, "405",
		      "only GET and HEAD\n");
	assert_answer("DELETE /empty HTTP/1.1\r\n" CLOSING, "405", "only GET and HEAD\n");
	assert_answer("GET /empty HTTP/1.1\r\nContent-Length: 5\r\n" CLOSING "12345", "400",
		      "a request has no body here\n");
	assert_answer("GET /empty HTTP/1.1\r\nTransfer-Encoding: chunked\r\n" CLOSING, "400",
		      "a request has no body here\n");
}

/* By us, or, of libmicrohttpd 1.0 and later, by the library, in its own words. */
static void assert_refused(const char *request, bool head)
{
	_cleanup_free_ char *got = ask(request);
	const char *end = strstr(got, "\r\n\r\n");

	assert_non_null(end);
	assert_true(str_starts(got, "HTTP/1.1 400 "));
	assert_true(head ? !end[4]
			 : str_eq(end + 4, "a request has no body here\n") ||
				    strstr(end, "Unsupported Transfer-Encoding"));
}

static void a_length_is_refused_however_often_it_comes(void **state)
{
	static const char *const bad[] = {
		"Content-Length: 0\r\n",
		"content-length: 0\r\nContent-Length: 0\r\n",
		"Content-Length: 0\r\nContent-Length: 40\r\n",
		"Content-Length: 0\r\nTransfer-Encoding: chunked\r\n",
		"Transfer-Encoding: identity\r\n",
		"Transfer-Encoding:\r\n",
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
		for (int head = 0; head < 2; head++) {
			_cleanup_free_ char *request = xasprintf("%s /empty HTTP/1.1\r\n%s" CLOSING,
								 head ? "HEAD" : "GET", bad[i]);

			assert_refused(request, head);
		}
	}
}

static void two_hosts_are_refused_and_one_is_handed_on(void **state)
{
	(void)state;
	assert_answer("GET /host HTTP/1.1\r\n" CLOSING, "200", "x");
	assert_answer("GET /host HTTP/1.0\r\n\r\n", "200", "");
	assert_answer("GET /host HTTP/1.1\r\nhost: localhost\r\n" CLOSING, "400",
		      "a request has one Host\n");
}

static void a_path_does_not_end_at_a_nul(void **state)
{
	static const char *const bad[] = { "/empty%00",	  "/empty%00/x", "/%65mpty",
					   "/empty%2500", "/empty%",	 "/empty%0" };

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
		_cleanup_free_ char *request = xasprintf("GET %s HTTP/1.1\r\n" CLOSING, bad[i]);

		assert_answer(request, "404", "not found\n");
	}
}

static void a_bare_nul_ends_no_path_either(void **state)
{
#define BARE(target)                                                                               \
	{                                                                                          \
		"GET " target " HTTP/1.1\r\n" CLOSING,                                             \
			sizeof("GET " target " HTTP/1.1\r\n" CLOSING) - 1                          \
	}
	static const struct {
		const char *text;
		size_t len;
	} bad[] = { BARE("/empty\0/x"), BARE("/empty\0"), BARE("/empty\0?a=b"),
		    BARE("/empty?a=b\0&c=d"), BARE("\0/empty") };

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
		char got[512];
		size_t have = 0;
		int fd = dial();
		ssize_t n;

		assert_int_equal(send(fd, bad[i].text, bad[i].len, MSG_NOSIGNAL), bad[i].len);
		while (have < sizeof(got) - 1 &&
		       (n = recv(fd, got + have, sizeof(got) - 1 - have, 0)) > 0)
			have += (size_t)n;
		got[have] = '\0';
		close(fd);
		assert_true(!have || strstr(got, " 400 ")); /* libmicrohttpd 1.0 hangs up */
	}
	assert_answer("GET /empty?a=b&c=d&e HTTP/1.1\r\n" CLOSING, "200", "");
	assert_answer("GET /empty HTTP/1.0\r\n\r\n", "200", "");
}

static void a_host_is_an_address_localhost_or_one_of_ours(void **state)
{
	static const struct {
		const char *host;
		bool ours;
	} hosts[] = {
		{ "127.0.0.1:9835", true },
		{ "10.1.2.3", true },
		{ "[::1]:9835", true },
		{ "[fe80::1]", true },
		{ "localhost", true },
		{ "LocalHost.:80", true },
		{ "gpu-1.example", true },
		{ "GPU-1.Example.:9835", true },
		{ "evil.example", false },
		{ "gpu-1.example.evil.example", false },
		{ "localhost.evil.example", false },
		{ "127.0.0.1.evil.example", false },
		{ "1.2.3", false },
		{ "0x7f000001", false },
		{ "2130706433", false },
		{ "[evil.example]", false },
		{ "[::1", false },
		{ "[::1].evil.example", false },
		{ "::1", false },
		{ "localhost:80.evil.example", false },
		{ "localhost:80@evil.example", false },
		{ "user@localhost", false },
		{ ":9835", false },
		{ ".", false },
		{ "", false },
	};
	static const char *const names[] = { NULL, "", "gpu-1.example" };
	_cleanup_free_ char *lengthy = NULL;

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(hosts); i++)
		assert_int_equal(web_is_host(hosts[i].host, names, ARRAY_LEN(names)),
				 hosts[i].ours);
	lengthy = xasprintf("localhost%0300d", 0);
	assert_false(web_is_host(lengthy, names, ARRAY_LEN(names)));
}

static void what_is_no_http_is_not_answered_with_a_page(void **state)
{
	static const char *const requests[] = { "\r\n\r\n\r\n", "GET\r\n\r\n",
						"\x16\x03\x01\r\n\r\n",
						"GET /empty HTTP/9.9\r\n\r\n" };

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(requests); i++) {
		int fd = dial();
		char byte;

		send(fd, requests[i], strlen(requests[i]), MSG_NOSIGNAL);
		shutdown(fd, SHUT_WR);
		while (recv(fd, &byte, 1, 0) > 0)
			assert_int_not_equal(byte, '<' + 128);
		close(fd);
	}
	assert_answer("GET /empty HTTP/1.1\r\n" CLOSING, "200", "");
}

static void headers_that_are_too_long_are_refused(void **state)
{
	_cleanup_strbuf_ struct strbuf request = STRBUF_INIT;
	int fd = dial();
	char text[16] = "";

	(void)state;
	strbuf_puts(&request, "GET /empty HTTP/1.1\r\nAccept: ");
	for (int i = 0; i < 100000; i++)
		strbuf_putc(&request, 'a');
	send(fd, request.s, request.len, MSG_NOSIGNAL);
	if (recv(fd, text, sizeof(text) - 1, 0) > 0) /* or it is closed at once */
		assert_int_equal(text[9], '4');
	close(fd);
	assert_answer("GET /empty HTTP/1.1\r\n" CLOSING, "200", "");
}

/* More of them than there are places: the oldest give way. */
static void silent_clients_keep_nobody_out(void **state)
{
	int fds[200];
	char byte;

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(fds); i++)
		fds[i] = dial();
	assert_answer("GET /empty HTTP/1.1\r\n" CLOSING, "200", "");
	assert_int_equal(recv(fds[0], &byte, 1, 0), 0);
	for (size_t i = 0; i < ARRAY_LEN(fds); i++)
		close(fds[i]);
}

static void a_connection_may_ask_again(void **state)
{
	static const char request[] = "GET /empty HTTP/1.1\r\nHost: x\r\n\r\n";
	int fd = dial();
	char text[1024];

	(void)state;
	for (int i = 0; i < 3; i++) {
		assert_int_equal(send(fd, request, strlen(request), MSG_NOSIGNAL), strlen(request));
		assert_true(recv(fd, text, sizeof(text), 0) > 9);
		assert_memory_equal(text, "HTTP/1.1 200", 12);
	}
	close(fd);
}

static void a_port_that_is_taken_is_said_and_free_again_when_its_server_stops(void **state)
{
	char address[32];
	struct err err;
	int fd;

	(void)state;
	snprintf(address, sizeof(address), "%s:%d", host, ntohs(where.sin_port));
	assert_int_equal(web_listen(address, &fd, &err), -EADDRINUSE);
	assert_non_null(strstr(err.msg, address));
	free(ask("GET /empty HTTP/1.1\r\n" CLOSING));
	web_stop(STEAL(web));
	assert_int_equal(web_listen(address, &fd, &err), 0);
	close(fd);
}

static void addresses_are_numbers_with_a_port(void **state)
{
	static const char *const good[] = { "127.0.0.1:9835", "0.0.0.0:1", "[::1]:9835", "::1:9835",
					    "fd00::12:65535" };
	static const char *const bad[] = {
		"",	     "9835",	     ":9835",		"localhost:9835",
		"127.0.0.1", "127.0.0.1:",   "127.0.0.1:65536", "1.2.3:4",
		"[::1]",     "127.0.0.1:-1", "127.0.0.1:1x"
	};
	struct err err;

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(good); i++)
		assert_int_equal(web_check_address(good[i], &err), 0);
	for (size_t i = 0; i < ARRAY_LEN(bad); i++)
		assert_int_equal(web_check_address(bad[i], &err), -EINVAL);
	assert_non_null(strstr(err.msg, "127.0.0.1:1x"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
#define SERVED(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)
		SERVED(get_is_answered_with_what_was_asked_for),
		SERVED(head_has_the_length_and_no_body),
		SERVED(nothing_else_is_done),
		SERVED(a_length_is_refused_however_often_it_comes),
		SERVED(two_hosts_are_refused_and_one_is_handed_on),
		SERVED(a_path_does_not_end_at_a_nul),
		SERVED(a_bare_nul_ends_no_path_either),
		SERVED(what_is_no_http_is_not_answered_with_a_page),
		SERVED(headers_that_are_too_long_are_refused),
		SERVED(silent_clients_keep_nobody_out),
		SERVED(a_connection_may_ask_again),
		SERVED(a_port_that_is_taken_is_said_and_free_again_when_its_server_stops),
		cmocka_unit_test(a_host_is_an_address_localhost_or_one_of_ours),
		cmocka_unit_test(addresses_are_numbers_with_a_port),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
