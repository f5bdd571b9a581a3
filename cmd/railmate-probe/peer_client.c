/*
 * railmate-probe --peer: plans, names both ends of each run, drives it and measures: rail by rail
 * alone, all rails at once, and on request what crosses rails and what must fail. Reports the
 * findings of both sides.
 */
#include <errno.h>
#include <math.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

#include "base/arena.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/mem.h"
#include "base/str.h"
#include "peer-internal.h"
#include "report.h"
#include "sysroot/sysroot.h"

#define SIZE	    ((size_t)1 << 20) /* of the memory of an end */
#define MESSAGE	    ((size_t)64 << 10)
#define SECONDS	    8	 /* of all runs, where nothing else was asked for */
#define SECONDS_MIN 0.05 /* of a run */
#define SECONDS_MAX 1.0
#define APART_MAX   2 /* pairs of rails that are tried in vain: each takes its seconds */
#define PAUSE_US    200000

/* --- the peer --- */

/* Two VFs, one of each side. */
struct pair {
	size_t own;		      /* of told.vfs */
	const struct exchange_vf *to; /* of the peer's hello */
};

struct client {
	struct peer_side side;
	struct exchange_message peer; /* its hello */
	bool same_host, by_order;     /* by_order: rails are not known */
	struct pair *pairs;
	size_t n;
	int64_t until_ns;
	size_t left, skipped; /* runs to come; that had no time */
	double overhead;      /* seconds of a run beyond its bandwidth part, as measured */
	double seconds;	      /* of the run */
	bool *ended;	      /* by pair: it failed, and other runs would say the same */
	unsigned apart;	      /* pairs of two rails that did not reach each other */
	uint64_t seed;
};

/* A peer may have words that this release has not. */
static const char *known_id(const char *id)
{
	for (size_t i = 0; i < n_sentences; i++) {
		if (str_eq(sentences[i].id, id))
			return sentences[i].id;
	}
	return "peer-trouble";
}

static void take_findings(struct client *c, const struct exchange_message *m)
{
	struct report *r = c->side.report;

	for (size_t i = 0; i < m->n_findings; i++) {
		const struct exchange_finding *f = &m->findings[i];

		if (f->outcome == OUTCOME_GOOD)
			continue;
		report_finding(r, f->outcome, known_id(f->id),
			       arena_printf(r->arena, "%s%s%s",
					    c->peer.node ? c->peer.node : c->side.options->host,
					    f->on ? " " : "", f->on ? f->on : ""),
			       "%s", f->what);
	}
}

static const struct {
	int error;
	const char *id;
} unreachable[] = {
	{ -ECONNREFUSED, "peer-refused" },     { -ETIMEDOUT, "peer-unreachable" },
	{ -EHOSTUNREACH, "peer-unreachable" }, { -ENETUNREACH, "peer-unreachable" },
	{ -EADDRNOTAVAIL, "peer-name" },
};

/* One try: connected, and greeted. *ret_id: of the sentence, where it failed. -EAGAIN: another try
 * may go better. */
static int greet(struct client *c, const char **ret_id, struct err *err)
{
	const struct peer_options *o = c->side.options;
	int step_ms = o->step_ms ? o->step_ms : EXCHANGE_STEP_MS;
	struct exchange_message m = peer_hello(&c->side, o->token);
	int r = exchange_connect(o->host, o->port, step_ms, &c->side.x, err);

	*ret_id = "peer-unreachable";
	for (size_t i = 0; i < ARRAY_LEN(unreachable); i++) {
		if (r == unreachable[i].error)
			*ret_id = unreachable[i].id;
	}
	if (r < 0)
		return -EAGAIN;
	r = exchange_send(&c->side.x, &m, err);
	if (r == 0)
		r = exchange_receive(&c->side.x, PEER_TYPE(HELLO) | PEER_TYPE(REFUSED),
				     PEER_SLACK_MS, c->side.report->arena, &m, err);
	*ret_id = peer_id_of_error(r);
	if (r == 0 && m.type == EXCHANGE_REFUSED) {
		*ret_id = known_id(m.n_findings ? m.findings->id : NULL);
		r = err_set(err, str_eq(*ret_id, "peer-busy") ? EAGAIN : EACCES,
			    "it refuses this client: %s",
			    m.n_findings ? m.findings->what : "it does not say why");
	} else if (r == 0 && m.type == EXCHANGE_HELLO && m.version != EXCHANGE_VERSION) {
		*ret_id = "peer-version";
		r = err_set(err, EPROTO, "it speaks version %lld of the exchange, not %d",
			    (long long)m.version, EXCHANGE_VERSION);
	}
	if (r < 0)
		exchange_end(&c->side.x);
	else
		c->peer = m;
	return r == -EPIPE ? -EAGAIN : r;
}

static int meet(struct client *c)
{
	const struct peer_options *o = c->side.options;
	int64_t began_ms = clock_mono_ms(), until_ms = began_ms + (int64_t)o->wait_s * 1000;
	struct report *r = c->side.report;
	struct err err = { 0 };
	const char *id;
	int error;

	report_progress(r, "connecting to %s, TCP port %d", o->host, o->port);
	while ((error = greet(c, &id, &err)) == -EAGAIN && clock_mono_ms() < until_ms)
		usleep(PAUSE_US);
	if (error == 0) {
		take_findings(c, &c->peer);
		return 0;
	}
	report_finding(r, OUTCOME_NOT_MEASURED, id, o->host, "%s%s", err.msg,
		       error == -EAGAIN ? arena_printf(r->arena, ", for %d s",
						       (int)((clock_mono_ms() - began_ms) / 1000))
					: "");
	return error;
}

/* --- pairs --- */

static bool rails_are_known(const struct client *c)
{
	for (size_t i = 0; i < c->side.told->n_vfs; i++) {
		if (c->side.devices[i] && c->side.told->vfs[i].rail < 0)
			return false;
	}
	for (size_t i = 0; i < c->peer.n_vfs; i++) {
		if (c->peer.vfs[i].rail < 0)
			return false;
	}
	return true;
}

static bool is_taken(const struct client *c, const struct exchange_vf *vf)
{
	for (size_t i = 0; i < c->n; i++) {
		if (c->pairs[i].to == vf)
			return true;
	}
	return false;
}

/* The peer's VF that fits best and is not taken: of the same rail and plane, of the same rail;
 * where rails are not known, the next one. */
static const struct exchange_vf *partner_of(const struct client *c, const struct told_vf *own)
{
	const struct exchange_vf *best = NULL;

	for (size_t i = c->peer.n_vfs; i-- > 0;) {
		const struct exchange_vf *vf = &c->peer.vfs[i];

		if (is_taken(c, vf) || (!c->by_order && vf->rail != own->rail))
			continue;
		if (!best || c->by_order || vf->plane == own->plane || best->plane != own->plane)
			best = vf;
	}
	return best;
}

static void make_pairs(struct client *c)
{
	const struct told *told = c->side.told;
	struct report *r = c->side.report;

	c->pairs = arena_array(r->arena, told->n_vfs + 1, sizeof(*c->pairs));
	c->by_order = !rails_are_known(c);
	c->same_host = c->peer.host && str_eq(c->peer.host, peer_hello(&c->side, NULL).host);
	for (size_t i = 0; i < told->n_vfs; i++) {
		const struct exchange_vf *to =
			c->side.devices[i] ? partner_of(c, &told->vfs[i]) : NULL;

		if (to)
			c->pairs[c->n++] = (struct pair) { i, to };
		else if (c->side.devices[i] && !c->by_order)
			report_finding(r, OUTCOME_NOT_MEASURED, "rail-absent", told->vfs[i].hca,
				       "%s has no VF left of rail %d", c->peer.node,
				       told->vfs[i].rail);
	}
	if (c->n && c->by_order)
		report_finding(
			r, OUTCOME_GOOD, "rails-unknown", NULL,
			"the rails are not known on both sides: VFs are paired in the order of their addresses");
	if (!c->n)
		report_finding(r, OUTCOME_NOT_MEASURED, "no-pair", NULL,
			       "no VF here has one of %s to speak with", c->peer.node);
}

static enum measure_path path_of(const struct client *c, const struct pair *p)
{
	const struct told_vf *own = &c->side.told->vfs[p->own];
	const char *subnet = peer_subnet_of(own, c->side.report->arena);
	bool far = subnet && p->to->subnet && !str_eq(subnet, p->to->subnet);

	if (c->same_host)
		return PATH_SAME_HOST;
	if (!c->by_order && own->rail == p->to->rail)
		return PATH_SAME_RAIL;
	if (far)
		return PATH_OTHER_SUBNET;
	return c->by_order ? PATH_SAME_RAIL : PATH_OTHER_RAIL;
}

/* --- a run --- */

struct run {
	const struct pair *pairs;
	size_t n;
	enum wire_op op;
	bool gpu, together, must_fail;
	int pkey_index;
	const struct wire_address *foreign; /* whose GID is named in place of our own; NULL */
	/* what came of it */
	struct peer_end *ends;
	struct wire_result *results;
	const struct exchange_end *peers; /* the other ends; NULL: there are none */
	bool *ended;			  /* set where it failed; NULL */
	bool set_up;			  /* both sides are connected */
	bool arrived;			  /* of the first pair: its bytes are at their place */
};

static int lost(const struct client *c, int error, const struct err *err)
{
	report_finding(c->side.report, OUTCOME_NOT_MEASURED, peer_id_of_error(error), c->peer.node,
		       "%s", err->msg);
	return error;
}

static struct exchange_message words_of(struct client *c, const struct run *run)
{
	struct arena *a = c->side.report->arena;
	struct exchange_message m = {
		.type = EXCHANGE_RUN,
		.op = run->op,
		.size = SIZE,
		.message = MESSAGE,
		.seconds = c->seconds,
		.seed = c->seed,
		.gpu = run->gpu,
		.must_fail = run->must_fail,
		.ends = arena_array(a, run->n, sizeof(*m.ends)),
		.n_ends = run->n,
	};

	for (size_t i = 0; i < run->n; i++) {
		struct exchange_end *e = &m.ends[i];

		e->from = c->side.told->vfs[run->pairs[i].own].hca;
		e->to = run->pairs[i].to->hca;
		peer_put_end(&c->side, run->ends, run->n, i, e);
		if (run->foreign)
			memcpy(e->address.gid, run->foreign->gid, sizeof(e->address.gid));
	}
	return m;
}

/* A negative errno only where the peer is lost. */
static int ask(struct client *c, const struct exchange_message *m, unsigned types,
	       struct exchange_message *ret)
{
	struct err err = { 0 };
	int r = exchange_send(&c->side.x, m, &err);

	if (r == 0)
		r = exchange_receive(&c->side.x, types, PEER_SLACK_MS, c->side.report->arena, ret,
				     &err);
	if (r < 0)
		return lost(c, r, &err);
	take_findings(c, ret);
	if (ret->type != EXCHANGE_TROUBLE && ret->n_ends != m->n_ends && m->n_ends) {
		err_set(&err, EBADMSG, "it answers for %zu connections of %zu", ret->n_ends,
			m->n_ends);
		return lost(c, -EBADMSG, &err);
	}
	return 0;
}

static void drive(struct client *c, struct run *run, const struct exchange_message *ready)
{
	struct report *r = c->side.report;
	struct wire **wires = arena_array(r->arena, run->n, sizeof(*wires));
	const struct wire_run w = { run->op, MESSAGE, c->seconds, !run->together };
	int error = 0;

	for (size_t i = 0; i < run->n && error == 0; i++) {
		wires[i] = run->ends[i].wire;
		error = wire_connect(wires[i], &ready->ends[i].address, r);
		run->results[i].status = error;
	}
	run->set_up = error == 0;
	for (size_t i = 0; i < run->n && error; i++) {
		if (run->results[i].status == 0)
			run->results[i].status = -ECANCELED;
	}
	if (run->set_up)
		wire_drive(wires, run->n, &w, r, run->results);
}

/* Of a read the bytes came here. */
static void compare_read(struct client *c, struct run *run, struct exchange_message *result)
{
	for (size_t i = 0; i < run->n && run->op == WIRE_READ; i++) {
		struct wire_memory *m = &run->ends[i].memory;

		result->ends[i].status = m->verify(m, peer_server_seed(c->seed, i));
	}
	run->arrived = result->ends[0].status == 0;
	for (size_t i = 0; i < run->n; i++) {
		const char *own = c->side.told->vfs[run->pairs[i].own].hca;

		if (run->results[i].status || !result->ends[i].status)
			continue;
		run->results[i].status = result->ends[i].status;
		if (result->ends[i].status == -EILSEQ)
			report_finding(
				c->side.report, OUTCOME_BROKEN, "bytes-differ", own,
				"%s to %s/%s: the bytes that came are not those that were sent",
				wire_op_name(run->op), c->peer.node, run->pairs[i].to->hca);
		else
			report_finding(c->side.report, OUTCOME_NOT_MEASURED, "memory-copy", own,
				       "%s to %s/%s: the bytes that came cannot be compared: %s",
				       wire_op_name(run->op), c->peer.node, run->pairs[i].to->hca,
				       strerror(-result->ends[i].status));
	}
}

static int make_run(struct client *c, struct run *run)
{
	const struct exchange_message done = { .type = EXCHANGE_DONE };
	struct exchange_message m, ready, result;
	struct err err = { 0 };
	int r;

	for (size_t i = 0; i < run->n; i++) {
		r = peer_make_end(&c->side, run->pairs[i].own, SIZE, run->gpu, run->pkey_index,
				  peer_client_seed(c->seed, i), &run->ends[i]);
		if (r < 0)
			return 0; /* a finding, and nothing of the peer's */
	}
	m = words_of(c, run);
	r = ask(c, &m, PEER_TYPE(READY) | PEER_TYPE(TROUBLE), &ready);
	if (r < 0 || ready.type == EXCHANGE_TROUBLE)
		return r;
	run->peers = ready.ends;
	drive(c, run, &ready);
	r = ask(c, &done, PEER_TYPE(RESULT), &result);
	if (r == 0 && result.n_ends != run->n) {
		err_set(&err, EBADMSG, "it answers for %zu connections of %zu", result.n_ends,
			run->n);
		return lost(c, -EBADMSG, &err);
	}
	if (r == 0 && run->set_up)
		compare_read(c, run, &result);
	return r;
}

static struct measure measure_of(const struct client *c, const struct run *run, size_t i,
				 enum outcome outcome)
{
	struct arena *a = c->side.report->arena;
	const struct pair *p = &run->pairs[i];
	const struct exchange_end *to = run->peers ? &run->peers[i] : NULL;
	const struct peer_end *from = &run->ends[i];
	struct expectation e = { NAN, NULL };

	if (from->wire)
		e = peer_own_rate(&c->side, run->ends, run->n, i);
	if (to && !isnan(to->gbps) && !(e.gbps <= to->gbps))
		e = (struct expectation) {
			to->gbps,
			to->limit ? arena_printf(a, "%s of %s", to->limit, c->peer.node) : NULL
		};
	return (struct measure) {
		.path = path_of(c, p),
		.from = c->side.told->vfs[p->own].hca,
		.to = arena_printf(a, "%s/%s", c->peer.node, p->to->hca),
		.from_memory = from->memory.name ? from->memory.name
			       : run->gpu	 ? "GPU"
						 : "host",
		.to_memory = to		? to->memory
			     : run->gpu ? "GPU"
					: "host",
		.memory_way = from->memory.way,
		.op = wire_op_name(run->op),
		.together = run->together,
		.gbps = run->results[i].gbps,
		.usec = run->results[i].usec,
		.expect_gbps = e.gbps,
		.limit = e.limit,
		.verified = run->results[i].status == 0,
		.outcome = run->results[i].status ? outcome : OUTCOME_GOOD,
	};
}

/* With a report of its own, by which it is judged. */
static int do_run(struct client *c, struct run *run, struct report *own)
{
	struct report *kept = c->side.report;
	struct arena *a = kept->arena;
	int64_t began_ns = clock_mono_ns();
	double left = (double)(c->until_ns - began_ns) / 1e9, over;
	int r;

	report_progress(kept, "%s from %s to %s%s", wire_op_name(run->op),
			c->side.told->vfs[run->pairs->own].hca, run->pairs->to->hca,
			run->together ? " and all others" : "");
	c->seconds = left / (double)(c->left ? c->left : 1) - c->overhead;
	c->seconds = c->seconds < SECONDS_MIN	? SECONDS_MIN
		     : c->seconds > SECONDS_MAX ? SECONDS_MAX
						: c->seconds;
	c->seed += 4096;
	run->ends = arena_array(a, run->n, sizeof(*run->ends));
	run->results = arena_array(a, run->n, sizeof(*run->results));
	for (size_t i = 0; i < run->n; i++)
		run->results[i] = (struct wire_result) { NAN, NAN, -ECANCELED };
	*own = peer_report_of_run(kept);
	c->side.report = own;
	r = make_run(c, run);
	c->side.report = kept;
	c->left -= c->left > 0;
	over = (double)(clock_mono_ns() - began_ns) / 1e9 - c->seconds;
	if (r < 0 && own->n_findings) { /* what failed since is a consequence */
		own->findings += own->n_findings - 1;
		own->n_findings = 1;
	}
	if (r == 0 && !run->results->status)
		c->overhead = (c->overhead + (over > 0 ? over : 0)) / 2;
	return r;
}

static const struct finding *worst_of(const struct report *r)
{
	const struct finding *worst = r->findings;

	for (size_t i = 1; i < r->n_findings; i++)
		worst = r->findings[i].outcome > worst->outcome ? &r->findings[i] : worst;
	return worst;
}

/* Two rails, or two planes of one, may be two networks: that is said, and is nothing that has to be
 * mended. */
static bool are_apart(struct client *c, const struct run *run, const struct report *own)
{
	static const char *const ids[] = { "no-route", "rtr", "retry-exceeded" };
	const struct finding *why = worst_of(own);
	const struct told_vf *from = &c->side.told->vfs[run->pairs->own];
	const struct exchange_vf *to = run->pairs->to;

	for (size_t i = 0; run->results->status && why && i < ARRAY_LEN(ids); i++) {
		if (c->by_order || !told_apart(from->rail, from->plane, to->rail, to->plane) ||
		    !str_eq(why->sentence->id, ids[i]))
			continue;
		report_finding(c->side.report, OUTCOME_GOOD, "rails-apart", from->hca,
			       "rail %d does not reach rail %d, or its plane, at %s/%s: %s",
			       from->rail, to->rail, c->peer.node, to->hca, why->what);
		c->apart++;
		return true;
	}
	return false;
}

/* A run that is to work. */
static int measure_run(struct client *c, struct run run)
{
	struct report own;
	enum outcome outcome = OUTCOME_NOT_MEASURED;
	int error;

	if (clock_mono_ns() > c->until_ns) {
		c->skipped++;
		return 0;
	}
	error = do_run(c, &run, &own);
	if (run.ended)
		*run.ended = run.results->status != 0;
	if (are_apart(c, &run, &own)) {
		peer_end_ends(run.ends, run.n);
		return error;
	}
	peer_merge(c->side.report, &own);
	if (own.n_findings && worst_of(&own)->outcome > outcome)
		outcome = worst_of(&own)->outcome;
	for (size_t i = 0; i < run.n; i++) {
		struct measure m = measure_of(c, &run, i, outcome);

		report_measure(c->side.report, &m);
	}
	peer_end_ends(run.ends, run.n);
	return error;
}

/* --- what must fail --- */

/* Findings of a run that is to fail count for nothing but its judgement. */
static int isolated_run(struct client *c, struct run run, const char *with)
{
	struct report *r = c->side.report, own;
	const char *from = c->side.told->vfs[run.pairs->own].hca;
	const char *to = arena_printf(r->arena, "%s/%s", c->peer.node, run.pairs->to->hca);
	int error = do_run(c, &run, &own);
	const struct finding *why = worst_of(&own);

	peer_end_ends(run.ends, run.n);
	if (error < 0) {
		peer_merge(r, &own);
		return error;
	}
	if (run.set_up && run.results->status == 0)
		report_finding(r, OUTCOME_BROKEN, "isolation", from,
			       "a transfer to %s with %s works, and has to fail", to, with);
	else if (run.set_up && run.arrived)
		report_finding(r, OUTCOME_NOT_MEASURED, "isolation", from,
			       "bytes to %s with %s arrive, although no acknowledgement goes back",
			       to, with);
	else if (run.set_up && why && str_eq(why->sentence->id, "retry-exceeded"))
		report_finding(r, OUTCOME_GOOD, "isolation", from,
			       "a transfer to %s with %s fails, as it has to", to, with);
	else
		report_finding(r, OUTCOME_NOT_MEASURED, "isolation-untried", from,
			       "a transfer with %s could not be tried: %s", with,
			       why ? why->what : "it could not be set up");
	return 0;
}

static void untried(const struct client *c, const char *with, const char *why)
{
	report_finding(c->side.report, OUTCOME_NOT_MEASURED, "isolation-untried",
		       c->side.told->vfs[c->pairs->own].hca,
		       "a transfer with %s could not be tried: %s", with, why);
}

static int try_pkey(struct client *c)
{
	int index = wire_other_pkey(c->side.devices[c->pairs->own]);

	if (index < 0) {
		untried(c, "another P_Key", "the port has that of one partition only");
		return 0;
	}
	return isolated_run(c,
			    (struct run) { .pairs = c->pairs,
					   .n = 1,
					   .op = WIRE_WRITE,
					   .must_fail = true,
					   .pkey_index = index },
			    "another P_Key");
}

/* The peer is told the GID of another VF of ours, which exists and is not the one that sends. */
static int try_gid(struct client *c)
{
	static const char with[] = "a foreign GID";
	struct wire_address own = { .qpn = 0 }, foreign = { .qpn = 0 };
	struct peer_end end = { .wire = NULL };
	size_t before = c->side.report->n_findings;

	for (size_t i = 0; i < c->side.told->n_vfs && !foreign.qpn; i++) {
		if (!c->side.devices[i] || (own.qpn && i == c->pairs->own))
			continue;
		if (peer_make_end(&c->side, i, MESSAGE, false, 0, 1, &end) == 0)
			wire_address_of(end.wire, i == c->pairs->own ? &own : &foreign);
		peer_end_end(&end);
	}
	c->side.report->n_findings = before;
	if (!foreign.qpn)
		untried(c, with, "this container has one VF only");
	else if (foreign.link_layer != 2)
		untried(c, with, "within a subnet of InfiniBand a packet has no GID");
	else
		return isolated_run(c,
				    (struct run) { .pairs = c->pairs,
						   .n = 1,
						   .op = WIRE_WRITE,
						   .must_fail = true,
						   .foreign = &foreign },
				    with);
	return 0;
}

/* --- the plan --- */

static int run_alone(struct client *c, enum wire_op op)
{
	int r = 0;

	for (size_t i = 0; i < c->n && r == 0; i++) {
		if (!c->ended[i])
			r = measure_run(c, (struct run) { .pairs = &c->pairs[i],
							  .n = 1,
							  .op = op,
							  .gpu = c->side.options->gpu,
							  .ended = &c->ended[i] });
	}
	return r;
}

/* Of the pairs that work alone. */
static int run_together(struct client *c)
{
	struct pair *sound = arena_array(c->side.report->arena, c->n + 1, sizeof(*sound));
	size_t n = 0;

	for (size_t i = 0; i < c->n; i++) {
		if (!c->ended[i])
			sound[n++] = c->pairs[i];
	}
	return n < 2 ? 0
		     : measure_run(c, (struct run) { .pairs = sound,
						     .n = n,
						     .op = WIRE_WRITE,
						     .gpu = c->side.options->gpu,
						     .together = true });
}

static int run_crossed(struct client *c)
{
	int r = 0;

	for (size_t i = 0; i < c->n && r == 0; i++) {
		for (size_t k = 0; k < c->peer.n_vfs && r == 0 && c->apart < APART_MAX; k++) {
			const struct pair p = { c->pairs[i].own, &c->peer.vfs[k] };

			if (p.to != c->pairs[i].to)
				r = measure_run(c, (struct run) { .pairs = &p,
								  .n = 1,
								  .op = WIRE_WRITE,
								  .gpu = c->side.options->gpu });
		}
	}
	return r;
}

static void begin_plan(struct client *c)
{
	const struct peer_options *o = c->side.options;
	double seconds = o->seconds > 0 ? o->seconds : SECONDS;

	c->until_ns = clock_mono_ns() + (int64_t)(seconds * 1e9);
	c->left = c->n * WIRE_OP_MAX + (c->n > 1) + (o->isolation ? 2 : 0) +
		  (o->crossed ? c->n * (c->peer.n_vfs - 1) : 0);
	c->ended = arena_array(c->side.report->arena, c->n + 1, sizeof(*c->ended));
}

/* Runs without time left are those that tell the least. */
static int run_plan(struct client *c)
{
	const struct peer_options *o = c->side.options;
	int r;

	make_pairs(c);
	begin_plan(c);
	r = run_alone(c, WIRE_WRITE);
	if (r == 0)
		r = run_together(c);
	if (r == 0 && o->isolation && c->n)
		r = try_pkey(c);
	if (r == 0 && o->isolation && c->n)
		r = try_gid(c);
	if (r == 0 && o->crossed)
		r = run_crossed(c);
	for (int op = WIRE_READ; op < WIRE_OP_MAX && r == 0; op++)
		r = run_alone(c, (enum wire_op)op);
	if (c->skipped)
		report_finding(c->side.report, OUTCOME_NOT_MEASURED, "out-of-time", NULL,
			       "%zu transfers were not tried: the time was over", c->skipped);
	else if (r == 0 && c->apart && !c->side.report->n_measures)
		report_finding(c->side.report, OUTCOME_NOT_MEASURED, "no-pair", NULL,
			       "no VF here reaches one of %s", c->peer.node);
	return r;
}

int peer_run(const struct told *told, const struct peer_options *o, struct report *r)
{
	const struct exchange_message bye = { .type = EXCHANGE_BYE };
	struct client c = { .side = {
				    .told = told, .options = o, .report = r, .x = { .fd = -1 } } };
	int error = peer_open(&c.side);

	if (getrandom(&c.seed, sizeof(c.seed), 0) != sizeof(c.seed))
		c.seed = (uint64_t)clock_mono_ns();
	c.seed >>= 16; /* room to count on */
	if (error == 0) {
		peer_open_devices(&c.side);
		error = meet(&c);
	}
	if (error == 0)
		error = run_plan(&c);
	if (error == 0)
		exchange_send(&c.side.x, &bye, NULL);
	report_progress(r, "%s", "");
	exchange_end(&c.side.x);
	peer_close_devices(&c.side);
	sysroot_close(c.side.root);
	return error;
}
