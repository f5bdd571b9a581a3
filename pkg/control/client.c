#include "control/control.h"

#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>

#include "base/clock.h"
#include "base/err.h"
#include "base/mem.h"
#include "base/str.h"

struct question {
	const char *socket;
	unsigned timeout_ms;
	int64_t deadline_ms;
	int fd;
};

static int too_late(const struct question *q, struct err *err)
{
	return err_set(err, ETIMEDOUT, "railmated did not answer at %s within %u ms", q->socket,
		       q->timeout_ms);
}

/* The next blocking call ends in time, with EAGAIN. */
static int limit(const struct question *q, struct err *err)
{
	int64_t left = q->deadline_ms - clock_mono_ms();
	struct timeval tv = { .tv_sec = left / 1000, .tv_usec = left % 1000 * 1000 };

	if (left <= 0)
		return too_late(q, err);
	if (setsockopt(q->fd, SOL_SOCKET, SO_RCVTIMEO, &tv, sizeof(tv)) < 0 ||
	    setsockopt(q->fd, SOL_SOCKET, SO_SNDTIMEO, &tv, sizeof(tv)) < 0)
		return err_sys(err, "limit the time of %s", q->socket);
	return 0;
}

static int failed(const struct question *q, struct err *err)
{
	if (errno == EAGAIN || errno == EINPROGRESS)
		return too_late(q, err);
	if (errno == ENOENT || errno == ENOTDIR || errno == ECONNREFUSED)
		return err_set(err, ECONNREFUSED,
			       "railmated does not run: no program listens on %s", q->socket);
	if (errno == EACCES || errno == EPERM)
		return err_set(err, EACCES, "only root may ask railmated at %s", q->socket);
	return err_set(err, ECONNRESET, "railmated broke the connection at %s: %s", q->socket,
		       strerror(errno));
}

static int connect_to(struct question *q, struct err *err)
{
	struct sockaddr_un address = { .sun_family = AF_UNIX };
	int r;

	if (!*q->socket || strlen(q->socket) >= sizeof(address.sun_path))
		return err_set(err, ENAMETOOLONG, "socket path '%s' has %zu bytes, not 1 to %zu",
			       q->socket, strlen(q->socket), sizeof(address.sun_path) - 1);
	strcpy(address.sun_path, q->socket);
	q->fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (q->fd < 0)
		return err_sys(err, "open a unix socket");
	r = limit(q, err);
	if (r < 0)
		return r;
	while (connect(q->fd, (const struct sockaddr *)&address, sizeof(address)) < 0) {
		if (errno != EINTR)
			return failed(q, err);
	}
	return 0;
}

/* One line, without its line feed. */
static int receive_line(const struct question *q, struct strbuf *out, struct err *err)
{
	char chunk[16384];
	ssize_t n;
	char *end;
	int r;

	for (;;) {
		r = limit(q, err);
		if (r < 0)
			return r;
		n = recv(q->fd, chunk, sizeof(chunk), 0);
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return failed(q, err);
		if (n == 0)
			return err_set(err, ECONNRESET,
				       "railmated at %s ended the connection without an answer",
				       q->socket);
		end = memchr(chunk, '\n', (size_t)n);
		strbuf_add(out, chunk, end ? (size_t)(end - chunk) : (size_t)n);
		if (end)
			return 0;
		if (out->len > CONTROL_REPLY_MAX)
			return err_set(err, EBADMSG, "the answer at %s is longer than %u bytes",
				       q->socket, CONTROL_REPLY_MAX);
	}
}

int control_ask(const char *socket, const struct control_request *r, unsigned timeout_ms,
		struct arena *a, struct control_reply *ret, struct err *err)
{
	struct question q = { socket, timeout_ms, clock_mono_ms() + timeout_ms, -1 };
	_cleanup_strbuf_ struct strbuf request = STRBUF_INIT, line = STRBUF_INIT;
	int rc;

	control_write_request(r, &request);
	rc = connect_to(&q, err);
	for (size_t sent = 0; rc == 0 && sent < request.len;) {
		ssize_t n = send(q.fd, request.s + sent, request.len - sent, MSG_NOSIGNAL);

		if (n < 0 && errno != EINTR)
			rc = failed(&q, err);
		sent += n > 0 ? (size_t)n : 0;
	}
	/* A refused request has its reason in the answer, although not all of it could be sent. */
	if (rc == 0 || rc == -ECONNRESET)
		rc = receive_line(&q, &line, err);
	closep(&q.fd);
	if (rc < 0)
		return rc;
	return control_read_reply(strbuf_str(&line), line.len, a, ret, err);
}
