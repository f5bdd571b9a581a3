/*
 * railmate-probe --serve: gives its ends to a client that has the token, and compares the bytes
 * that came. What it finds travels to the client.
 */
#include <errno.h>
#include <netdb.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>

#include "base/arena.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/mem.h"
#include "peer-internal.h"
#include "report.h"
#include "sysroot/sysroot.h"

/* With what was found, but for notes: a message has few findings. */
static int say(struct peer_side *s, struct exchange_message *m, struct err *err)
{
	const struct report *r = s->report;

	m->findings = arena_array(r->arena, r->n_findings + 1, sizeof(*m->findings));
	for (size_t i = 0; i < r->n_findings; i++) {
		const struct finding *f = &r->findings[i];

		if (f->outcome != OUTCOME_GOOD)
			m->findings[m->n_findings++] =
				(struct exchange_finding) { f->outcome, f->sentence->id, f->on,
							    f->what };
	}
	return exchange_send(&s->x, m, err);
}

/* The last word to a client that is not served; -EACCES with the sentence. */
static int refuse(struct peer_side *s, const char *id, struct err *err, const char *what)
{
	struct exchange_finding f = { OUTCOME_NOT_MEASURED, id, NULL, what };
	const struct exchange_message m = { .type = EXCHANGE_REFUSED,
					    .findings = &f,
					    .n_findings = 1 };

	exchange_send(&s->x, &m, NULL);
	return err_set(err, EACCES, "it was refused: %s", what);
}

static int welcome(struct peer_side *s, struct err *err)
{
	struct arena *a = s->report->arena;
	struct exchange_message m;
	int r = exchange_receive(&s->x, PEER_TYPE(HELLO), 0, a, &m, err);

	if (r == -EBADMSG || r == -EMSGSIZE) {
		const char *what = arena_printf(a, "%s", err->msg);

		return refuse(s, "peer-foreign", err, what);
	}
	if (r < 0)
		return r;
	if (!exchange_token_eq(m.token, s->options->token))
		return refuse(s, "peer-token", err, "its token is another one");
	if (m.version != EXCHANGE_VERSION)
		return refuse(s, "peer-version", err,
			      arena_printf(a, "it speaks version %lld of the exchange, not %d",
					   (long long)m.version, EXCHANGE_VERSION));
	peer_open_devices(s);
	m = peer_hello(s, NULL);
	return say(s, &m, err);
}

struct serving {
	struct peer_side *side;
	struct exchange_message *ready; /* not sent yet; NULL: it is */
	int64_t until_ns;		/* a client that went without a word is not waited for */
	int failed;
	struct err *err;
};

static int say_ready(struct serving *v)
{
	if (v->ready)
		v->failed = exchange_send(&v->side->x, v->ready, v->err);
	v->ready = NULL;
	return v->failed;
}

/* The sender may begin when this is called first. */
static bool is_over(void *arg)
{
	struct serving *v = arg;

	return say_ready(v) < 0 || exchange_is_readable(&v->side->x) ||
	       clock_mono_ns() > v->until_ns;
}

/* The ends that the client named, connected. Anything else is a finding. */
static int make_ends(struct peer_side *s, const struct exchange_message *run, struct peer_end *ends)
{
	int r = 0;

	if (run->n_ends * run->size > WIRE_MEMORY_MAX) {
		report_finding(s->report, OUTCOME_NOT_MEASURED, "peer-foreign", NULL,
			       "it asks for %zu connections of %zu bytes each, more than %zu",
			       run->n_ends, run->size, WIRE_MEMORY_MAX);
		return -E2BIG;
	}
	for (size_t i = 0; i < run->n_ends && r == 0; i++) {
		const struct exchange_end *e = &run->ends[i];
		ssize_t vf = peer_find_vf(s, e->to);

		if (vf < 0) {
			report_finding(s->report, OUTCOME_NOT_MEASURED, "peer-foreign", e->to,
				       "no VF of this container that can be used has that name");
			return -ENODEV;
		}
		r = peer_make_end(s, (size_t)vf, run->size, run->gpu, 0,
				  peer_server_seed(run->seed, i), &ends[i]);
		if (r == 0)
			r = wire_connect(ends[i].wire, &e->address, s->report);
	}
	return r;
}

static struct exchange_message answer_of(const struct peer_side *s,
					 const struct exchange_message *run,
					 const struct peer_end *ends, enum exchange_type type)
{
	struct arena *a = s->report->arena;
	struct exchange_message m = {
		.type = type,
		.ends = arena_array(a, run->n_ends, sizeof(*m.ends)),
		.n_ends = run->n_ends,
	};

	for (size_t i = 0; i < run->n_ends; i++) {
		m.ends[i] =
			(struct exchange_end) { .from = run->ends[i].from, .to = run->ends[i].to };
		if (type == EXCHANGE_READY)
			peer_put_end(s, ends, run->n_ends, i, &m.ends[i]);
	}
	return m;
}

/* The client's acknowledgements may have overtaken the bytes on their way into memory; the end of a
 * region does not. */
static void compare_bytes(struct peer_side *s, const struct exchange_message *run,
			  struct peer_end *ends, struct exchange_message *result)
{
	for (size_t i = 0; i < run->n_ends && run->op != WIRE_READ; i++) {
		struct wire_memory *m = &ends[i].memory;

		wire_destroy(ends[i].wire);
		ends[i].wire = NULL;
		result->ends[i].status = m->verify(m, peer_client_seed(run->seed, i));
	}
	if (run->must_fail)
		s->report->n_findings = 0;
}

static int serve_connected(struct peer_side *s, const struct exchange_message *run,
			   struct peer_end *ends, struct err *err)
{
	struct arena *a = s->report->arena;
	struct exchange_message ready = answer_of(s, run, ends, EXCHANGE_READY), m;
	struct exchange_message result = answer_of(s, run, ends, EXCHANGE_RESULT);
	int limit_ms = (int)(run->seconds * 2000) + PEER_SLACK_MS;
	struct serving v = {
		.side = s,
		.ready = &ready,
		.until_ns = clock_mono_ns() + limit_ms * INT64_C(1000000),
		.err = err,
	};
	struct wire **wires = arena_array(a, run->n_ends, sizeof(*wires));
	int r;

	for (size_t i = 0; i < run->n_ends; i++)
		wires[i] = ends[i].wire;
	if (run->op == WIRE_SEND)
		wire_serve_receives(wires, run->n_ends, run->message, is_over, &v, s->report);
	r = say_ready(&v);
	if (r == 0)
		r = exchange_receive(&s->x, PEER_TYPE(DONE), limit_ms, a, &m, err);
	if (r < 0)
		return r;
	compare_bytes(s, run, ends, &result);
	return say(s, &result, err);
}

static int serve_run(struct peer_side *s, const struct exchange_message *run, struct err *err)
{
	struct report *kept = s->report, own = peer_report_of_run(kept);
	struct peer_end *ends = arena_array(kept->arena, run->n_ends, sizeof(*ends));
	struct exchange_message trouble = { .type = EXCHANGE_TROUBLE };
	int r;

	s->report = &own;
	r = make_ends(s, run, ends);
	r = r < 0 ? say(s, &trouble, err) : serve_connected(s, run, ends, err);
	s->report = kept;
	if (!run->must_fail)
		peer_merge(kept, &own);
	peer_end_ends(ends, run->n_ends);
	return r;
}

/* 0: the client came to its end. */
static int serve_client(struct peer_side *s, bool *ret_known, struct err *err)
{
	struct exchange_message m;
	int r = welcome(s, err);

	*ret_known = r == 0;
	while (r == 0) {
		r = exchange_receive(&s->x, PEER_TYPE(RUN) | PEER_TYPE(BYE), PEER_SLACK_MS,
				     s->report->arena, &m, err);
		if (r == 0 && m.type == EXCHANGE_BYE)
			break;
		if (r == 0)
			r = serve_run(s, &m, err);
	}
	peer_close_devices(s);
	return r;
}

static const char *address_of(int fd, char *buf, size_t size)
{
	struct sockaddr_storage at;
	socklen_t len = sizeof(at);

	if (getpeername(fd, (struct sockaddr *)&at, &len) < 0 ||
	    getnameinfo((struct sockaddr *)&at, len, buf, (socklen_t)size, NULL, 0, NI_NUMERICHOST))
		return "a peer";
	return buf;
}

/* With a report of its own, so that a server that runs for long does not keep what it found. */
static bool serve_one(struct peer_side *s, struct report *kept)
{
	_cleanup_arena_ struct arena *a = arena_new(1 << 16);
	struct report own = { .arena = a, .told = kept->told, .quiet = kept->quiet };
	char buf[NI_MAXHOST];
	const char *who = address_of(s->x.fd, buf, sizeof(buf));
	struct err err = { 0 };
	bool known;
	int r;

	s->report = &own;
	r = serve_client(s, &known, &err);
	exchange_end(&s->x);
	s->report = kept;
	if (r < 0 && !(known && s->options->once))
		fprintf(stderr, "railmate-probe: %s: %s\n", who, err.msg);
	if (!known || !s->options->once)
		return known;
	peer_merge(kept, &own);
	if (r < 0)
		report_finding(kept, OUTCOME_NOT_MEASURED, peer_id_of_error(r), who, "%s", err.msg);
	return true;
}

static int serve(struct peer_side *s, int listener)
{
	const struct peer_options *o = s->options;
	int64_t deadline_ms;
	int r;

	do {
		deadline_ms = o->wait_s ? clock_mono_ms() + (int64_t)o->wait_s * 1000 : 0;
		do {
			report_progress(s->report, "waiting for a peer on TCP port %d", o->port);
			r = exchange_accept(listener, deadline_ms,
					    o->step_ms ? o->step_ms : EXCHANGE_STEP_MS, &s->x);
			s->x.listener = listener;
		} while (r == 0 && !serve_one(s, s->report));
	} while (r == 0 && !o->once);
	if (r < 0)
		report_finding(s->report, OUTCOME_NOT_MEASURED, "no-client", NULL,
			       "no peer with the token came to TCP port %d: %s", o->port,
			       r == -ETIMEDOUT
				       ? arena_printf(s->report->arena, "not in %d s", o->wait_s)
				       : strerror(-r));
	return r;
}

int peer_serve(const struct told *told, const struct peer_options *o, struct report *r)
{
	struct peer_side s = { .told = told, .options = o, .report = r, .x = { .fd = -1 } };
	_cleanup_close_ int listener = -1;
	struct err err = { 0 };
	int error = peer_open(&s);

	if (error == 0) {
		error = listener = exchange_listen(o->port, &err);
		if (listener < 0)
			report_finding(r, OUTCOME_NOT_MEASURED, "listen", NULL, "%s", err.msg);
		else
			error = serve(&s, listener);
	}
	sysroot_close(s.root);
	return error < 0 ? error : 0;
}
