/*
 * Messages between two railmate-probes, and the sockets that carry them. All that is known of a
 * peer, before its token came, is that it could connect: every length, number and name is checked
 * here, and no caller checks them again.
 */
#include "exchange-internal.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <math.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/arena.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/json.h"
#include "base/mem.h"
#include "base/str.h"
#include "document/document.h"

#define NAME_LEN_MAX 63	 /* of RDMA devices (the kernel's limit), nodes, sentences' ids */
#define TEXT_LEN_MAX 400 /* of a finding */
#define FINDINGS_MAX 32
#define MBPS_MAX     100000000
#define BACKLOG	     4

/* --- messages: out --- */

static const char *const types[EXCHANGE_TYPE_MAX] = {
	[EXCHANGE_HELLO] = "hello",	[EXCHANGE_REFUSED] = "refused",
	[EXCHANGE_RUN] = "run",		[EXCHANGE_READY] = "ready",
	[EXCHANGE_DONE] = "done",	[EXCHANGE_RESULT] = "result",
	[EXCHANGE_TROUBLE] = "trouble", [EXCHANGE_BYE] = "bye",
};

static void put_vfs(struct json *j, const struct exchange_message *m)
{
	json_kv_array(j, "vfs");
	for (size_t i = 0; i < m->n_vfs; i++) {
		const struct exchange_vf *vf = &m->vfs[i];

		json_begin_object(j);
		json_kv_string(j, "hca", vf->hca);
		json_kv_int(j, "rail", vf->rail);
		json_kv_int(j, "plane", vf->plane);
		json_kv_string(j, "subnet", vf->subnet);
		json_end_object(j);
	}
	json_end_array(j);
}

static int64_t mbps_of(double gbps)
{
	return isnan(gbps) ? -1 : (int64_t)(gbps * 1000 + 0.5);
}

static void put_ends(struct json *j, const struct exchange_message *m)
{
	json_kv_array(j, "ends");
	for (size_t i = 0; i < m->n_ends; i++) {
		const struct wire_address *w = &m->ends[i].address;
		char gid[2 * sizeof(w->gid) + 1];

		for (size_t k = 0; k < sizeof(w->gid); k++)
			snprintf(gid + 2 * k, 3, "%02x", w->gid[k]);
		json_begin_object(j);
		json_kv_string(j, "from", m->ends[i].from);
		json_kv_string(j, "to", m->ends[i].to);
		if (m->type == EXCHANGE_RESULT) {
			json_kv_int(j, "status", -(int64_t)m->ends[i].status);
		} else {
			json_kv_int(j, "qpn", w->qpn);
			json_kv_int(j, "psn", w->psn);
			json_kv_int(j, "rkey", w->rkey);
			json_kv_int(j, "address", (int64_t)w->address);
			json_kv_int(j, "size", (int64_t)w->size);
			json_kv_int(j, "lid", w->lid);
			json_kv_int(j, "link_layer", w->link_layer);
			json_kv_int(j, "mtu", w->mtu);
			json_kv_string(j, "gid", gid);
			json_kv_string(j, "memory", m->ends[i].memory);
			json_kv_int(j, "mbps", mbps_of(m->ends[i].gbps));
			json_kv_string(j, "limit", m->ends[i].limit);
		}
		json_end_object(j);
	}
	json_end_array(j);
}

static void put_findings(struct json *j, const struct exchange_message *m)
{
	size_t n = m->n_findings < FINDINGS_MAX ? m->n_findings : FINDINGS_MAX;

	json_kv_array(j, "findings");
	for (size_t i = 0; i < n; i++) {
		const struct exchange_finding *f = &m->findings[i];
		_cleanup_free_ char *what = xasprintf("%.*s", TEXT_LEN_MAX, f->what);

		str_utf8_trim(what);
		json_begin_object(j);
		json_kv_int(j, "outcome", f->outcome);
		json_kv_string(j, "id", f->id);
		json_kv_string(j, "on", f->on);
		json_kv_string(j, "what", what);
		json_end_object(j);
	}
	json_end_array(j);
}

static void put_run(struct json *j, const struct exchange_message *m)
{
	json_kv_int(j, "op", m->op);
	json_kv_int(j, "size", (int64_t)m->size);
	json_kv_int(j, "message", (int64_t)m->message);
	json_kv_int(j, "ms", (int64_t)(m->seconds * 1000 + 0.5));
	json_kv_int(j, "seed", (int64_t)m->seed);
	json_kv_bool(j, "gpu", m->gpu);
	json_kv_bool(j, "must_fail", m->must_fail);
}

void exchange_encode(const struct exchange_message *m, struct strbuf *out)
{
	struct json j;

	json_init(&j, out, 0);
	json_begin_object(&j);
	json_kv_string(&j, "type", types[m->type]);
	if (m->type == EXCHANGE_HELLO) {
		json_kv_int(&j, "version", EXCHANGE_VERSION);
		json_kv_string(&j, "token", m->token);
		json_kv_string(&j, "node", m->node);
		json_kv_string(&j, "host", m->host);
		put_vfs(&j, m);
	}
	if (m->type == EXCHANGE_RUN)
		put_run(&j, m);
	if (m->type == EXCHANGE_RUN || m->type == EXCHANGE_READY || m->type == EXCHANGE_RESULT)
		put_ends(&j, m);
	if (m->type == EXCHANGE_HELLO || m->type == EXCHANGE_REFUSED ||
	    m->type == EXCHANGE_RESULT || m->type == EXCHANGE_TROUBLE)
		put_findings(&j, m);
	json_end_object(&j);
	strbuf_putc(out, '\n');
}

/* --- messages: in --- */

/* A message that is being read. The first member that is wrong is the sentence, and what comes
 * after it counts for nothing. */
struct reader {
	struct arena *a;
	struct err *err;
	bool bad;
};

static void blame(struct reader *r, const char *key, const char *what)
{
	if (!r->bad)
		err_set(r->err, EBADMSG, "its member \"%s\" is not %s", key, what);
	r->bad = true;
}

static int64_t number(struct reader *r, const struct item *in, const char *key, int64_t min,
		      int64_t max)
{
	const struct item *n = item_get(in, key);

	if (n && n->type == ITEM_NUMBER && n->whole && n->number >= min && n->number <= max)
		return n->number;
	blame(r, key, arena_printf(r->a, "a whole number from %" PRId64 " to %" PRId64, min, max));
	return min;
}

/* A copy that a terminal may be shown, of 1 to most bytes. NULL: it is null. */
static const char *text_or_null(struct reader *r, const struct item *in, const char *key,
				size_t most)
{
	const struct item *t = item_get(in, key);
	char *copy;

	if (t && t->type == ITEM_NULL)
		return NULL;
	if (!t || t->type != ITEM_STRING || !*t->string || strlen(t->string) > most) {
		blame(r, key, arena_printf(r->a, "a text of at most %zu bytes", most));
		return "?";
	}
	copy = arena_strdup(r->a, t->string);
	str_printable(copy, strlen(copy), "");
	return copy;
}

static const char *text(struct reader *r, const struct item *in, const char *key, size_t most)
{
	const char *t = text_or_null(r, in, key, most);

	if (!t)
		blame(r, key, "a text");
	return t ? t : "?";
}

/* Of an RDMA device. */
static const char *name(struct reader *r, const struct item *in, const char *key)
{
	const char *t = text(r, in, key, NAME_LEN_MAX);

	if (*t == '.' || strpbrk(t, "/ "))
		blame(r, key, "the name of a device");
	return t;
}

/* A list of at most that many objects; an empty one where it is bad. */
static const struct item *list(struct reader *r, const struct item *in, const char *key, size_t min,
			       size_t most)
{
	static const struct item none = { .type = ITEM_LIST };
	const struct item *l = item_get(in, key);

	if (l && l->type == ITEM_LIST && l->n_kids >= min && l->n_kids <= most)
		return l;
	blame(r, key, arena_printf(r->a, "a list of %zu to %zu elements", min, most));
	return &none;
}

static void read_vfs(struct reader *r, const struct item *top, struct exchange_message *m)
{
	const struct item *l = list(r, top, "vfs", 0, EXCHANGE_VFS_MAX);

	m->n_vfs = l->n_kids;
	m->vfs = arena_array(r->a, l->n_kids + 1, sizeof(*m->vfs));
	for (size_t i = 0; i < l->n_kids && !r->bad; i++) {
		const struct item *vf = &l->kids[i];

		m->vfs[i] = (struct exchange_vf) {
			.hca = name(r, vf, "hca"),
			.rail = (int)number(r, vf, "rail", -1, 65535),
			.plane = (int)number(r, vf, "plane", -1, 65535),
			.subnet = text_or_null(r, vf, "subnet", NAME_LEN_MAX),
		};
	}
}

static void read_gid(struct reader *r, const struct item *end, uint8_t gid[16])
{
	const char *digits = text(r, end, "gid", 32);

	if (strlen(digits) != 32 || strspn(digits, "0123456789abcdef") != 32)
		blame(r, "gid", "of 32 hexadecimal digits");
	for (size_t i = 0; i < 16 && !r->bad; i++)
		sscanf(digits + 2 * i, "%2" SCNx8, &gid[i]);
}

static void read_address(struct reader *r, const struct item *end, struct wire_address *ret)
{
	*ret = (struct wire_address) {
		.qpn = (uint32_t)number(r, end, "qpn", 1, 0xffffff),
		.psn = (uint32_t)number(r, end, "psn", 0, 0xffffff),
		.rkey = (uint32_t)number(r, end, "rkey", 0, UINT32_MAX),
		.address = (uint64_t)number(r, end, "address", 0,
					    INT64_MAX - (int64_t)WIRE_MEMORY_MAX),
		.size = (uint64_t)number(r, end, "size", 1, (int64_t)WIRE_MEMORY_MAX),
		.lid = (uint16_t)number(r, end, "lid", 0, UINT16_MAX),
		.link_layer = (uint8_t)number(r, end, "link_layer", 1, 2),
		.mtu = (uint8_t)number(r, end, "mtu", 1, 5),
	};
	read_gid(r, end, ret->gid);
}

static void read_place(struct reader *r, const struct item *in, struct exchange_end *end)
{
	int64_t mbps = number(r, in, "mbps", -1, MBPS_MAX);

	read_address(r, in, &end->address);
	end->memory = text(r, in, "memory", NAME_LEN_MAX);
	end->gbps = mbps < 0 ? (double)NAN : (double)mbps / 1000;
	end->limit = text_or_null(r, in, "limit", TEXT_LEN_MAX);
}

static bool boolean(struct reader *r, const struct item *in, const char *key)
{
	const struct item *b = item_get(in, key);

	if (!b || b->type != ITEM_BOOL)
		blame(r, key, "true or false");
	return b && b->boolean;
}

static void read_ends(struct reader *r, const struct item *top, struct exchange_message *m)
{
	const struct item *l = list(r, top, "ends", 1, EXCHANGE_VFS_MAX);

	m->n_ends = l->n_kids;
	m->ends = arena_array(r->a, l->n_kids + 1, sizeof(*m->ends));
	for (size_t i = 0; i < l->n_kids && !r->bad; i++) {
		struct exchange_end *end = &m->ends[i];

		end->from = name(r, &l->kids[i], "from");
		end->to = name(r, &l->kids[i], "to");
		if (m->type == EXCHANGE_RESULT)
			end->status = -(int)number(r, &l->kids[i], "status", 0, 4095);
		else
			read_place(r, &l->kids[i], end);
		if (m->type == EXCHANGE_RUN && end->address.size < m->size)
			blame(r, "size", "at most that of each end");
	}
}

static void read_findings(struct reader *r, const struct item *top, struct exchange_message *m)
{
	const struct item *l = list(r, top, "findings", 0, FINDINGS_MAX);

	m->n_findings = l->n_kids;
	m->findings = arena_array(r->a, l->n_kids + 1, sizeof(*m->findings));
	for (size_t i = 0; i < l->n_kids && !r->bad; i++) {
		const struct item *f = &l->kids[i];

		m->findings[i] = (struct exchange_finding) {
			.outcome = (enum outcome)number(r, f, "outcome", 0, OUTCOME_MAX - 1),
			.id = text(r, f, "id", NAME_LEN_MAX),
			.on = text_or_null(r, f, "on", TEXT_LEN_MAX),
			.what = text(r, f, "what", TEXT_LEN_MAX),
		};
	}
}

static void read_hello(struct reader *r, const struct item *top, struct exchange_message *m)
{
	m->version = number(r, top, "version", 0, INT32_MAX);
	m->token = text_or_null(r, top, "token", EXCHANGE_TOKEN_MAX);
	if (r->bad || m->version != EXCHANGE_VERSION)
		return;
	m->node = text(r, top, "node", 4 * NAME_LEN_MAX);
	m->host = text_or_null(r, top, "host", NAME_LEN_MAX);
	read_vfs(r, top, m);
	read_findings(r, top, m);
}

static void read_run(struct reader *r, const struct item *top, struct exchange_message *m)
{
	m->op = (enum wire_op)number(r, top, "op", 0, WIRE_OP_MAX - 1);
	m->size = (size_t)number(r, top, "size", 8, (int64_t)WIRE_MEMORY_MAX);
	m->message = (size_t)number(r, top, "message", 8, (int64_t)m->size);
	m->seconds = (double)number(r, top, "ms", 0, EXCHANGE_SECONDS * 1000) / 1000;
	m->seed = (uint64_t)number(r, top, "seed", 0, INT64_MAX - 1);
	m->gpu = boolean(r, top, "gpu");
	m->must_fail = boolean(r, top, "must_fail");
}

int exchange_decode(const char *line, size_t len, struct arena *a, struct exchange_message *ret,
		    struct err *err)
{
	struct reader r = { .a = a, .err = err };
	struct exchange_message m = { .type = EXCHANGE_HELLO };
	const struct item *top;
	const char *type;

	if (len > EXCHANGE_MAX)
		return err_set(err, EBADMSG, "it is longer than %zu bytes", EXCHANGE_MAX);
	if (document_parse(line, len, "it", a, &top, err) < 0)
		return err_set(err, EBADMSG, "it is not JSON");
	type = item_string(top, "type");
	while (m.type < EXCHANGE_TYPE_MAX && !str_eq(types[m.type], type))
		m.type++;
	if (m.type == EXCHANGE_TYPE_MAX)
		return err_set(err, EBADMSG, "its member \"type\" is none that is known");
	if (m.type == EXCHANGE_HELLO)
		read_hello(&r, top, &m);
	if (m.type == EXCHANGE_RUN)
		read_run(&r, top, &m);
	if (m.type == EXCHANGE_RUN || m.type == EXCHANGE_READY || m.type == EXCHANGE_RESULT)
		read_ends(&r, top, &m);
	if (m.type == EXCHANGE_REFUSED || m.type == EXCHANGE_RESULT || m.type == EXCHANGE_TROUBLE)
		read_findings(&r, top, &m);
	if (r.bad)
		return -EBADMSG;
	*ret = m;
	return 0;
}

/* --- the token --- */

bool exchange_token_eq(const char *a, const char *b)
{
	char x[EXCHANGE_TOKEN_MAX + 1] = "", y[EXCHANGE_TOKEN_MAX + 1] = "";
	size_t la = a ? strlen(a) : 0, lb = b ? strlen(b) : 0;
	volatile unsigned char different = 0;

	if (!la || la > EXCHANGE_TOKEN_MAX || !lb || lb > EXCHANGE_TOKEN_MAX)
		return false;
	memcpy(x, a, la);
	memcpy(y, b, lb);
	for (size_t i = 0; i < sizeof(x); i++)
		different |= (unsigned char)(x[i] ^ y[i]);
	return !different;
}

int exchange_token_check(const char *token, struct err *err)
{
	size_t len = strlen(token);

	for (size_t i = 0; i < len; i++) {
		if (token[i] <= ' ' || token[i] > '~')
			return err_set(
				err, EINVAL,
				"the token has characters that are not letters, digits or signs of ASCII");
	}
	if (len < EXCHANGE_TOKEN_MIN || len > EXCHANGE_TOKEN_MAX)
		return err_set(err, EINVAL, "the token is of %zu characters, not of %d to %d", len,
			       EXCHANGE_TOKEN_MIN, EXCHANGE_TOKEN_MAX);
	return 0;
}

/* --- sockets --- */

/* 1: one of the events of p[0] has come; 0: the time is over; or a negative errno. */
static int wait_for(struct pollfd *p, nfds_t n, int64_t deadline_ms)
{
	int r;

	do {
		int64_t left = deadline_ms ? deadline_ms - clock_mono_ms() : -1;

		left = deadline_ms && left < 0 ? 0 : left > INT32_MAX ? INT32_MAX : left;
		r = poll(p, n, (int)left);
	} while (r < 0 && errno == EINTR);
	return r < 0 ? -errno : r;
}

/* Both families on one socket; a kernel without IPv6 has IPv4 alone. */
static int bind_to(int family, int port)
{
	const struct sockaddr_in6 six = { .sin6_family = AF_INET6,
					  .sin6_port = htons((uint16_t)port) };
	const struct sockaddr_in four = { .sin_family = AF_INET,
					  .sin_port = htons((uint16_t)port) };
	int fd = socket(family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0), r;

	if (fd < 0)
		return -errno;
	setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &(int) { 1 }, sizeof(int));
	setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &(int) { 0 }, sizeof(int));
	if (family == AF_INET6)
		r = bind(fd, (const struct sockaddr *)&six, sizeof(six));
	else
		r = bind(fd, (const struct sockaddr *)&four, sizeof(four));
	if (r == 0 && listen(fd, BACKLOG) == 0)
		return fd;
	r = -errno;
	close(fd);
	return r;
}

int exchange_listen(int port, struct err *err)
{
	int fd = bind_to(AF_INET6, port);

	if (fd == -EAFNOSUPPORT || fd == -EADDRNOTAVAIL)
		fd = bind_to(AF_INET, port);
	return fd < 0 ? err_set(err, -fd, "TCP port %d cannot be listened on: %s", port,
				strerror(-fd))
		      : fd;
}

void exchange_begin(struct exchange *x, int fd, int step_ms)
{
	fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) | O_NONBLOCK);
	setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &(int) { 1 }, sizeof(int));
	*x = (struct exchange) { .fd = fd,
				 .listener = -1,
				 .step_ms = step_ms,
				 .end_ms = clock_mono_ms() + EXCHANGE_WHOLE_MS };
	x->line = xcalloc(1, EXCHANGE_MAX + 1);
}

void exchange_end(struct exchange *x)
{
	closep(&x->fd);
	free(x->line);
	*x = (struct exchange) { .fd = -1, .listener = -1 };
}

int exchange_accept(int listener, int64_t deadline_ms, int step_ms, struct exchange *ret)
{
	int fd, r;

	do {
		struct pollfd p = { .fd = listener, .events = POLLIN };

		r = wait_for(&p, 1, deadline_ms);
		fd = r > 0 ? accept4(listener, NULL, NULL, SOCK_CLOEXEC) : -1;
		/* A client may be gone again. */
	} while (r > 0 && fd < 0 && (errno == EAGAIN || errno == ECONNABORTED || errno == EINTR));
	if (r <= 0 || fd < 0)
		return r < 0 ? r : r > 0 ? -errno : -ETIMEDOUT;
	exchange_begin(ret, fd, step_ms);
	return 0;
}

/* 0, or the negative errno of a connect that ends before the deadline. */
static int connect_to(const struct addrinfo *to, int64_t deadline_ms, int *ret)
{
	_cleanup_close_ int fd =
		socket(to->ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	struct pollfd p = { .fd = fd, .events = POLLOUT };
	int fault = 0, r;

	if (fd < 0)
		return -errno;
	if (connect(fd, to->ai_addr, to->ai_addrlen) < 0) {
		if (errno != EINPROGRESS)
			return -errno;
		r = wait_for(&p, 1, deadline_ms);
		if (r <= 0)
			return r < 0 ? r : -ETIMEDOUT;
		getsockopt(fd, SOL_SOCKET, SO_ERROR, &fault, &(socklen_t) { sizeof(fault) });
	}
	if (fault)
		return -fault;
	*ret = fd;
	fd = -1;
	return 0;
}

int exchange_connect(const char *host, int port, int step_ms, struct exchange *ret, struct err *err)
{
	const struct addrinfo hints = { .ai_socktype = SOCK_STREAM, .ai_flags = AI_ADDRCONFIG };
	int64_t deadline_ms = clock_mono_ms() + step_ms;
	struct addrinfo *found = NULL;
	char service[16];
	int fd = -1, r = -EADDRNOTAVAIL, why;

	snprintf(service, sizeof(service), "%d", port);
	why = getaddrinfo(host, service, &hints, &found);
	if (why)
		return err_set(err, EADDRNOTAVAIL, "%s: %s", host, gai_strerror(why));
	for (struct addrinfo *to = found; to && r < 0 && r != -ETIMEDOUT; to = to->ai_next)
		r = connect_to(to, deadline_ms, &fd);
	freeaddrinfo(found);
	if (r < 0)
		return err_set(err, -r, "%s port %d: %s", host, port, strerror(-r));
	exchange_begin(ret, fd, step_ms);
	return 0;
}

/* Of a step, within that of the whole. */
static int64_t deadline(const struct exchange *x, int more_ms)
{
	int64_t step = clock_mono_ms() + x->step_ms + more_ms;

	return step < x->end_ms ? step : x->end_ms;
}

static int gone(struct err *err)
{
	return err_set(err, EPIPE, "the connection was closed");
}

int exchange_send(struct exchange *x, const struct exchange_message *m, struct err *err)
{
	_cleanup_strbuf_ struct strbuf out = STRBUF_INIT;
	int64_t deadline_ms = deadline(x, 0);
	struct pollfd p = { .fd = x->fd, .events = POLLOUT };
	size_t sent = 0;

	exchange_encode(m, &out);
	while (sent < out.len) {
		ssize_t n = send(x->fd, out.s + sent, out.len - sent, MSG_NOSIGNAL);

		if (n > 0)
			sent += (size_t)n;
		else if (errno != EAGAIN && errno != EINTR)
			return gone(err);
		else if (wait_for(&p, 1, deadline_ms) <= 0)
			return err_set(err, ETIMEDOUT, "it takes no message within %d s",
				       x->step_ms / 1000);
	}
	return 0;
}

/* Other clients are refused with the finding peer-busy; a stranger, who does not know the token,
 * learns no more from it than from the open port. */
static void turn_away(const struct exchange *x)
{
	struct exchange_finding busy = { OUTCOME_NOT_MEASURED, "peer-busy", NULL,
					 "it serves another client" };
	const struct exchange_message m = { .type = EXCHANGE_REFUSED,
					    .findings = &busy,
					    .n_findings = 1 };
	_cleanup_strbuf_ struct strbuf out = STRBUF_INIT;
	_cleanup_close_ int fd = accept4(x->listener, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);

	char said[1024];

	exchange_encode(&m, &out);
	if (fd < 0)
		return;
	(void)!send(fd, out.s, out.len, MSG_NOSIGNAL);
	/* Unread bytes would make the kernel drop the answer that was sent. */
	(void)!recv(fd, said, sizeof(said), 0);
}

/* The line that has come whole, its length without the line feed; -1: none has. */
static ssize_t whole_line(const struct exchange *x)
{
	const char *end = memchr(x->line, '\n', x->len);

	return end ? end - x->line : -1;
}

/* More bytes of the line. */
static int fill(struct exchange *x, int64_t deadline_ms, struct err *err)
{
	struct pollfd p[] = { { .fd = x->fd, .events = POLLIN },
			      { .fd = x->listener, .events = POLLIN } };
	ssize_t n;

	if (x->len > EXCHANGE_MAX)
		return err_set(err, EMSGSIZE, "its message is longer than %zu bytes", EXCHANGE_MAX);
	if (wait_for(p, 2, deadline_ms) <= 0)
		return err_set(err, ETIMEDOUT, "%s came in time",
			       x->len ? "no more than half a message" : "no message");
	if (p[1].revents)
		turn_away(x);
	if (!p[0].revents)
		return 0;
	n = recv(x->fd, x->line + x->len, EXCHANGE_MAX + 1 - x->len, 0);
	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return 0;
	if (n <= 0)
		return gone(err);
	x->len += (size_t)n;
	return 0;
}

int exchange_receive(struct exchange *x, unsigned types_taken, int more_ms, struct arena *a,
		     struct exchange_message *ret, struct err *err)
{
	int64_t deadline_ms = deadline(x, more_ms);
	struct exchange_message m;
	ssize_t len;
	int r = 0;

	while ((len = whole_line(x)) < 0 && r == 0)
		r = fill(x, deadline_ms, err);
	if (r < 0)
		return r;
	r = exchange_decode(x->line, (size_t)len, a, &m, err);
	x->len -= (size_t)len + 1;
	memmove(x->line, x->line + len + 1, x->len);
	if (r < 0)
		return err_wrap(err, "its message is malformed");
	if (!(types_taken & 1u << m.type))
		return err_set(err, EBADMSG, "its message \"%s\" is out of turn", types[m.type]);
	*ret = m;
	return 0;
}

bool exchange_is_readable(const struct exchange *x)
{
	struct pollfd p = { .fd = x->fd, .events = POLLIN };

	return x->len || poll(&p, 1, 0) != 0;
}
