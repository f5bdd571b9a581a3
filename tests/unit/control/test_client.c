/* The asking side, against daemons of the test's own that behave well, badly, or not at all. */
#include <errno.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/arena.h"
#include "base/err.h"
#include "base/str.h"
#include "control/control.h"

/* What the other side does with one connection. */
struct daemon {
	char dir[32], path[64];
	int fd;
	pthread_t thread;
	const char *says; /* NULL: nothing; it waits for the end of the connection */
	bool listens_first;
	char heard[CONTROL_REQUEST_MAX];
};

static void hear(struct daemon *d, int fd)
{
	size_t len = 0;
	ssize_t n;

	while (!memchr(d->heard, '\n', len) &&
	       (n = read(fd, d->heard + len, sizeof(d->heard) - 1 - len)) > 0)
		len += (size_t)n;
	d->heard[len] = '\0';
}

static void *serve_one(void *arg)
{
	struct daemon *d = arg;
	int fd = accept(d->fd, NULL, NULL);
	char rest;

	if (fd < 0)
		return NULL;
	if (d->listens_first)
		hear(d, fd);
	if (d->says)
		send(fd, d->says, strlen(d->says), MSG_NOSIGNAL);
	else
		while (read(fd, &rest, 1) > 0)
			;
	close(fd);
	return NULL;
}

static void start(struct daemon *d, const char *says, bool listens_first)
{
	struct sockaddr_un address = { .sun_family = AF_UNIX };

	*d = (struct daemon) { .dir = "/tmp/railmate-ctl-XXXXXX",
			       .says = says,
			       .listens_first = listens_first };
	assert_non_null(mkdtemp(d->dir));
	snprintf(d->path, sizeof(d->path), "%s/s", d->dir);
	strcpy(address.sun_path, d->path);
	d->fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	assert_int_equal(bind(d->fd, (struct sockaddr *)&address, sizeof(address)), 0);
	assert_int_equal(listen(d->fd, 1), 0);
	assert_int_equal(pthread_create(&d->thread, NULL, serve_one, d), 0);
}

static void stop(struct daemon *d)
{
	shutdown(d->fd, SHUT_RDWR);
	pthread_join(d->thread, NULL);
	close(d->fd);
	unlink(d->path);
	rmdir(d->dir);
}

static int ask(const char *socket, unsigned ms, struct arena *a, struct control_reply *ret,
	       struct err *err)
{
	const struct control_request request = { CONTROL_BIND, "slot-7", "ns", "pod", "uid", NULL };

	return control_ask(socket, &request, ms, a, ret, err);
}

static int ask_once(const char *says, bool listens_first, unsigned ms, struct err *err)
{
	_cleanup_arena_ struct arena *a = arena_new(0);
	struct control_reply reply;
	struct daemon d;
	int r;

	start(&d, says, listens_first);
	r = ask(d.path, ms, a, &reply, err);
	stop(&d);
	return r;
}

static void a_question_is_answered(void **state)
{
	_cleanup_arena_ struct arena *a = arena_new(0);
	struct control_reply reply;
	struct err err = { 0 };
	struct daemon d;

	(void)state;
	start(&d,
	      "{\"bound\":[{\"slot\":\"slot-7\",\"resource\":\"rdma/vf\",\"vf\":\"0000:18:00.1\"}]}\n",
	      true);
	assert_int_equal(ask(d.path, 10000, a, &reply, &err), 0);
	stop(&d);
	assert_non_null(strstr(d.heard, "\"slot-7\""));
	assert_int_equal(reply.n_bound, 1);
	assert_string_equal(reply.bound[0].vf, "0000:18:00.1");
}

static void a_refusal_is_the_daemons_own(void **state)
{
	struct err err = { 0 };

	(void)state;
	assert_int_equal(ask_once("{\"error\":{\"code\":\"EBUSY\",\"message\":\"no\"}}\n", true,
				  10000, &err),
			 -EBUSY);
	assert_string_equal(err.msg, "no");
}

static void one_that_turns_us_away_unheard_is_still_understood(void **state)
{
	struct err err = { 0 };

	(void)state;
	assert_int_equal(ask_once("{\"error\":{\"code\":\"EACCES\",\"message\":\"root\"}}\n", false,
				  10000, &err),
			 -EACCES);
	assert_string_equal(err.msg, "root");
}

static void nobody_there_is_said(void **state)
{
	_cleanup_arena_ struct arena *a = arena_new(0);
	struct control_reply reply;
	struct err err = { 0 };
	struct daemon d;

	(void)state;
	assert_int_equal(ask("/nowhere/at/all", 1000, a, &reply, &err), -ECONNREFUSED);
	assert_non_null(strstr(err.msg, "/nowhere/at/all"));
	start(&d, "", false);
	shutdown(d.fd, SHUT_RDWR); /* a socket that a killed one left behind */
	assert_int_equal(ask(d.path, 1000, a, &reply, &err), -ECONNREFUSED);
	stop(&d);
}

static void a_silent_one_is_given_up(void **state)
{
	struct err err = { 0 };

	(void)state;
	assert_int_equal(ask_once(NULL, false, 50, &err), -ETIMEDOUT);
	assert_non_null(strstr(err.msg, "within 50 ms"));
}

static void an_end_without_an_answer_is_no_answer(void **state)
{
	struct err err = { 0 };

	(void)state;
	assert_int_equal(ask_once("", true, 10000, &err), -ECONNRESET);
	assert_int_equal(ask_once("{\"bound\":[", true, 10000, &err), -ECONNRESET);
}

static void an_answer_that_is_none_is_refused(void **state)
{
	struct err err = { 0 };

	(void)state;
	assert_int_equal(ask_once("HTTP/1.1 400 Bad Request\n", true, 10000, &err), -EBADMSG);
}

static void an_endless_answer_is_cut(void **state)
{
	size_t len = CONTROL_REPLY_MAX + 65536;
	char *flood = malloc(len + 1);
	struct err err = { 0 };

	(void)state;
	assert_non_null(flood);
	memset(flood, 'x', len);
	flood[len] = '\0';
	assert_int_equal(ask_once(flood, true, 60000, &err), -EBADMSG);
	free(flood);
}

static void a_path_that_is_no_socket_path_is_named(void **state)
{
	_cleanup_arena_ struct arena *a = arena_new(0);
	struct control_reply reply;
	struct err err = { 0 };
	char path[200];

	(void)state;
	memset(path, 'p', sizeof(path) - 1);
	path[sizeof(path) - 1] = '\0';
	assert_int_equal(ask(path, 1000, a, &reply, &err), -ENAMETOOLONG);
	assert_int_equal(ask("", 1000, a, &reply, &err), -ENAMETOOLONG);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_question_is_answered),
		cmocka_unit_test(a_refusal_is_the_daemons_own),
		cmocka_unit_test(one_that_turns_us_away_unheard_is_still_understood),
		cmocka_unit_test(nobody_there_is_said),
		cmocka_unit_test(a_silent_one_is_given_up),
		cmocka_unit_test(an_end_without_an_answer_is_no_answer),
		cmocka_unit_test(an_answer_that_is_none_is_refused),
		cmocka_unit_test(an_endless_answer_is_cut),
		cmocka_unit_test(a_path_that_is_no_socket_path_is_named),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
