/*
 * The local socket's messages, as both sides write and read them, and the asking side.
 */
#include "control/control.h"

#include <errno.h>
#include <limits.h>
#include <stdbool.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>

#include "base/arena.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/json.h"
#include "base/mem.h"
#include "base/str.h"
#include "document/document.h"

/* --- messages --- */

static const char *const op_names[CONTROL_OP_MAX] = {
	[CONTROL_STATUS] = "status", [CONTROL_LEDGER] = "ledger",   [CONTROL_BIND] = "bind",
	[CONTROL_POOLS] = "pools",   [CONTROL_RELEASE] = "release", [CONTROL_WHOSE] = "whose",
};

/* Numbers of errno differ between machines, names do not. Others travel as EIO. */
static const struct {
	const char *name;
	int code;
} codes[] = {
	{ "EIO", EIO },	      { "EACCES", EACCES },	{ "EAGAIN", EAGAIN },
	{ "EBUSY", EBUSY },   { "EINVAL", EINVAL },	{ "ENOENT", ENOENT },
	{ "ENOSPC", ENOSPC }, { "ENOSYS", ENOSYS },	{ "ENODEV", ENODEV },
	{ "EROFS", EROFS },   { "EMSGSIZE", EMSGSIZE }, { "ETIMEDOUT", ETIMEDOUT },
	{ "EPERM", EPERM },
};

void control_write_request(const struct control_request *r, struct strbuf *out)
{
	struct json j;

	json_init(&j, out, 0);
	json_begin_object(&j);
	json_kv_string(&j, "op", op_names[r->op]);
	if (r->op == CONTROL_BIND)
		json_kv_string(&j, "slot", r->slot);
	if (r->op == CONTROL_BIND || r->op == CONTROL_WHOSE) {
		json_kv_string(&j, "namespace", r->ns);
		json_kv_string(&j, "pod", r->pod);
		json_kv_string(&j, "uid", r->uid);
	}
	if (r->op == CONTROL_RELEASE || r->op == CONTROL_WHOSE)
		json_kv_string(&j, "vf", r->vf);
	json_end_object(&j);
	strbuf_putc(out, '\n');
}

static const char *string_or_empty(const struct item *object, const char *key)
{
	const char *s = item_string(object, key);

	return s ? s : "";
}

int control_read_request(const char *text, size_t len, struct arena *a, struct control_request *ret,
			 struct err *err)
{
	struct control_request r = { .op = CONTROL_OP_MAX };
	const struct item *top;
	const char *op;
	int rc;

	rc = document_parse(text, len, "request", a, &top, err);
	if (rc < 0)
		return rc;
	op = item_string(top, "op");
	if (!op)
		return err_set(err, EINVAL, "the request names no \"op\"");
	for (int i = 0; i < CONTROL_OP_MAX; i++) {
		if (str_eq(op, op_names[i]))
			r.op = (enum control_op)i;
	}
	if (r.op == CONTROL_OP_MAX)
		return err_set(err, ENOSYS,
			       "railmated " RAILMATE_VERSION " does not know the request \"%s\"",
			       document_shown(op, a));
	r.slot = string_or_empty(top, "slot");
	r.ns = string_or_empty(top, "namespace");
	r.pod = string_or_empty(top, "pod");
	r.uid = string_or_empty(top, "uid");
	r.vf = string_or_empty(top, "vf");
	if (r.op == CONTROL_BIND && !*r.slot)
		return err_set(err, EINVAL, "the request \"%s\" names no \"slot\"", op_names[r.op]);
	if ((r.op == CONTROL_RELEASE || r.op == CONTROL_WHOSE) && !*r.vf)
		return err_set(err, EINVAL, "the request \"%s\" names no \"vf\"", op_names[r.op]);
	*ret = r;
	return 0;
}

void control_write_reply(const struct control_reply *r, struct strbuf *out)
{
	struct json j;

	json_init(&j, out, 0);
	json_begin_object(&j);
	if (r->bound) {
		json_key(&j, "bound");
		json_begin_array(&j);
		for (size_t i = 0; i < r->n_bound; i++) {
			const struct control_bound *b = &r->bound[i];

			json_begin_object(&j);
			json_kv_string(&j, "slot", b->slot);
			json_kv_string(&j, "resource", b->resource);
			json_kv_string(&j, "vf", b->vf);
			json_kv_string(&j, "rdma", b->rdma);
			json_kv_string(&j, "pf", b->pf);
			if (b->rail >= 0)
				json_kv_int(&j, "rail", b->rail);
			if (b->plane >= 0)
				json_kv_int(&j, "plane", b->plane);
			json_end_object(&j);
		}
		json_end_array(&j);
	}
	if (r->ledger)
		json_kv_string(&j, "ledger", r->ledger);
	if (r->pools)
		json_kv_string(&j, "pools", r->pools);
	json_end_object(&j);
	strbuf_putc(out, '\n');
}

void control_write_error(const struct err *why, struct strbuf *out)
{
	const char *name = codes[0].name;
	struct json j;

	for (size_t i = 0; i < ARRAY_LEN(codes); i++) {
		if (codes[i].code == why->code)
			name = codes[i].name;
	}
	json_init(&j, out, 0);
	json_begin_object(&j);
	json_key(&j, "error");
	json_begin_object(&j);
	json_kv_string(&j, "code", name);
	json_kv_string(&j, "message", why->msg);
	json_end_object(&j);
	json_end_object(&j);
	strbuf_putc(out, '\n');
}

static int number_or_unknown(const struct item *object, const char *key)
{
	const struct item *n = item_get(object, key);
	bool known = n && n->type == ITEM_NUMBER && n->whole && n->number >= 0;

	return known && n->number <= INT_MAX ? (int)n->number : -1;
}

static int read_bound(const struct item *list, struct arena *a, struct control_reply *ret,
		      struct err *err)
{
	struct control_bound *bound;

	if (list->type != ITEM_LIST)
		return err_set(err, EBADMSG, "railmated's reply: \"bound\" is not a list");
	bound = arena_array(a, list->n_kids + 1,
			    sizeof(*bound)); /* never NULL: that is "not asked for" */
	for (size_t i = 0; i < list->n_kids; i++) {
		bound[i] = (struct control_bound) { item_string(&list->kids[i], "slot"),
						    item_string(&list->kids[i], "resource"),
						    item_string(&list->kids[i], "vf"),
						    item_string(&list->kids[i], "rdma"),
						    item_string(&list->kids[i], "pf"),
						    number_or_unknown(&list->kids[i], "rail"),
						    number_or_unknown(&list->kids[i], "plane") };
		if (!bound[i].slot || !bound[i].resource || !bound[i].vf)
			return err_set(err, EBADMSG,
				       "railmated's reply: bound[%zu] is not complete", i);
	}
	ret->bound = bound;
	ret->n_bound = list->n_kids;
	return 0;
}

int control_read_reply(const char *text, size_t len, struct arena *a, struct control_reply *ret,
		       struct err *err)
{
	struct control_reply reply = { 0 };
	const struct item *top, *error, *bound;
	int r;

	if (document_parse(text, len, "railmated's reply", a, &top, err) < 0) {
		err->code = EBADMSG;
		return -EBADMSG;
	}
	if (top->type != ITEM_OBJECT)
		return err_set(err, EBADMSG, "railmated's reply is not an object");
	error = item_get(top, "error");
	if (error) {
		const char *name = item_string(error, "code");
		const char *message = item_string(error, "message");
		int code = EIO;

		for (size_t i = 0; i < ARRAY_LEN(codes); i++) {
			if (str_eq(name, codes[i].name))
				code = codes[i].code;
		}
		return err_set(err, code, "%s",
			       message && *message ? message : "railmated gives no reason");
	}
	bound = item_get(top, "bound");
	if (bound) {
		r = read_bound(bound, a, &reply, err);
		if (r < 0)
			return r;
	}
	reply.ledger = item_string(top, "ledger");
	reply.pools = item_string(top, "pools");
	*ret = reply;
	return 0;
}

/* --- the asking side --- */

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
