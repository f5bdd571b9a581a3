/* Which transfers are run between the VFs of a container, in what order, and what they share. */
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/mem.h"
#include "base/str.h"
#include "expect.h"
#include "report.h"
#include "sysroot/sysroot.h"
#include "told.h"
#include "traffic-internal.h"

#define SECONDS	     8
#define MESSAGE	     ((size_t)64 << 10)
#define SIDE_MIN     ((size_t)256 << 10) /* memory of one side of a VF */
#define SIDE_MAX     ((size_t)4 << 20)
#define SECONDS_MIN  0.005 /* of a run */
#define SECONDS_MAX  1.0
#define APART_MAX    2	 /* pairs of rails that are tried in vain: each takes its seconds */
#define SHARE_SLOWER 0.8 /* together against alone */

static const struct told_vf *vf_at(const struct plan *p, size_t i)
{
	return &p->told->vfs[i];
}

static const char *name_of(const struct told_vf *vf)
{
	return vf->hca ? vf->hca : vf->bdf;
}

/* --- one run --- */

static enum wire_op first_op(const struct plan *p)
{
	unsigned op = 0;

	while (!(p->ops & 1U << op))
		op++;
	return op;
}

/* What is left of the time, over the runs to come. */
static double seconds_of_run(const struct plan *p)
{
	double left = (double)(p->until_ns - clock_mono_ns()) / 1e9;
	double seconds = left / (double)(p->left ? p->left : 1) - p->overhead;

	return seconds < SECONDS_MIN ? SECONDS_MIN : seconds > SECONDS_MAX ? SECONDS_MAX : seconds;
}

static const char *pf_of(const struct plan *p, const struct told_vf *vf, char buf[64])
{
	return sysroot_link_name(p->root, buf, 64, "sys/bus/pci/devices/%s/physfn", vf->bdf) == 0
		       ? buf
		       : vf->bdf;
}

/* Functions of one card differ behind the point. */
static enum measure_path path_of(const struct plan *p, const struct cell *c)
{
	char from_buf[64], to_buf[64];
	const char *from, *to, *point;

	if (c->from == c->to)
		return PATH_LOOPBACK;
	from = pf_of(p, vf_at(p, c->from), from_buf);
	to = pf_of(p, vf_at(p, c->to), to_buf);
	point = strrchr(from, '.');
	return point && strncmp(from, to, (size_t)(point - from) + 1) == 0 ? PATH_SAME_CARD
									   : PATH_SAME_HOST;
}

static struct expectation expectation_of(const struct plan *p, const struct cell *c)
{
	return expect_of(p->root, vf_at(p, c->from), wire_port_gbps(p->devices[c->from]), c->gpu,
			 vf_at(p, c->to), wire_port_gbps(p->devices[c->to]), c->gpu,
			 p->report->arena);
}

static void measure(struct plan *p, const struct cell *c, enum wire_op op, bool together,
		    const struct wire_result *result, struct expectation e)
{
	struct measure m = {
		.path = path_of(p, c),
		.from = name_of(vf_at(p, c->from)),
		.to = name_of(vf_at(p, c->to)),
		.from_memory = c->gpu ? c->gpu : "host",
		.to_memory = c->gpu ? c->gpu : "host",
		.memory_way = c->from_memory ? c->from_memory->way : NULL,
		.op = wire_op_name(op),
		.together = together,
		.gbps = result->gbps,
		.usec = result->usec,
		.expect_gbps = e.gbps,
		.limit = e.limit,
		.verified = !result->status,
		.outcome = result->status ? OUTCOME_BROKEN : OUTCOME_GOOD,
	};

	if (result->status == -ECANCELED || !p->devices[c->from] || !p->devices[c->to])
		m.outcome = OUTCOME_NOT_MEASURED;
	report_measure(p->report, &m);
}

static int run_cells(struct plan *p, const struct cell *cells, size_t n, enum wire_op op,
		     struct wire_result *results)
{
	_cleanup_free_ struct wire_pairing *pairings = xcalloc(n, sizeof(*pairings));
	const struct wire_run run = {
		.op = op,
		.message = p->message,
		.seconds = seconds_of_run(p),
		.latency = n == 1,
	};
	int64_t began = clock_mono_ns();
	int error;

	for (size_t i = 0; i < n; i++)
		pairings[i] = (struct wire_pairing) {
			p->devices[cells[i].from],
			p->devices[cells[i].to],
			cells[i].from_memory,
			cells[i].to_memory,
		};
	error = wire_local(pairings, n, &run, p->report, results);
	p->left -= p->left > 0;
	if (!error) {
		double over = (double)(clock_mono_ns() - began) / 1e9 - run.seconds;

		p->overhead = (p->overhead + (over > 0 ? over : 0)) / 2;
	}
	return error;
}

/* Two rails, or two planes of one, may be two networks: that is said, and is nothing that has to be
 * mended. */
static bool rails_differ(const struct plan *p, const struct cell *c)
{
	const struct told_vf *from = vf_at(p, c->from), *to = vf_at(p, c->to);

	return told_apart(from->rail, from->plane, to->rail, to->plane);
}

static bool take_back(struct plan *p, const struct cell *c, size_t n_findings)
{
	static const char *const ids[] = { "no-route", "rtr", "retry-exceeded" };
	struct report *r = p->report;
	const struct finding *why;

	if (r->n_findings == n_findings)
		return false;
	why = &r->findings[r->n_findings - 1];
	for (size_t i = 0; i < ARRAY_LEN(ids); i++) {
		if (!str_eq(why->sentence->id, ids[i]))
			continue;
		r->n_findings--;
		report_finding(r, OUTCOME_GOOD, "rails-apart", name_of(vf_at(p, c->from)),
			       "rail %d does not reach rail %d, or its plane, at %s: %s",
			       vf_at(p, c->from)->rail, vf_at(p, c->to)->rail,
			       name_of(vf_at(p, c->to)), why->what);
		p->apart++;
		return true;
	}
	return false;
}

static int run_alone(struct plan *p, struct cell *c, enum wire_op op)
{
	bool rails = rails_differ(p, c);
	size_t n_findings = p->report->n_findings;
	struct wire_result result = { NAN, NAN, -ENODEV };

	if (!p->devices[c->from] || !p->devices[c->to]) {
		c->ended = true;
		measure(p, c, op, false, &result, (struct expectation) { NAN, NULL });
		return -ENODEV;
	}
	if (rails && isnan(c->alone) && p->apart >= APART_MAX) {
		c->ended = true;
		return 0;
	}
	if (clock_mono_ns() > p->until_ns) {
		p->skipped++;
		return 0;
	}
	report_progress(p->report, "%s to %s%s%s: %s", name_of(vf_at(p, c->from)),
			name_of(vf_at(p, c->to)), c->gpu ? ", memory of " : "",
			c->gpu ? c->gpu : "", wire_op_name(op));
	run_cells(p, c, 1, op, &result);
	c->ended = result.status != 0;
	if (c->ended && rails && isnan(c->alone) && take_back(p, c, n_findings))
		return 0;
	measure(p, c, op, false, &result, expectation_of(p, c));
	if (isnan(c->alone))
		c->alone = result.gbps;
	return result.status;
}

int traffic_run(struct plan *p, struct cell *cells, size_t n,
		int (*together)(struct plan *p, const struct cell *cells, size_t n))
{
	int first = 0, error;

	for (unsigned op = first_op(p); op < WIRE_OP_MAX; op++) {
		for (size_t i = 0; i < n && p->ops & 1U << op; i++) {
			error = cells[i].ended ? 0 : run_alone(p, &cells[i], op);
			first = first ? first : error;
		}
		if (op == first_op(p)) {
			error = together(p, cells, n);
			first = first ? first : error;
		}
	}
	return first;
}

/* --- all at once --- */

/* Of a cell beside all others: outward from its one memory, and inward to its other one, each
 * shared as it is crossed. */
static struct expectation expectation_beside(const struct plan *p, const struct cell *cells,
					     size_t n, size_t of)
{
	struct arena *a = p->report->arena;
	struct expect_end *outward = arena_array(a, n, sizeof(*outward));
	struct expect_end *inward = arena_array(a, n, sizeof(*inward));
	struct expectation out, in;

	for (size_t i = 0; i < n; i++) {
		size_t from = cells[i].from, to = cells[i].to;

		outward[i] = (struct expect_end) { vf_at(p, from), wire_port_gbps(p->devices[from]),
						   cells[i].gpu };
		inward[i] = (struct expect_end) { vf_at(p, to), wire_port_gbps(p->devices[to]),
						  cells[i].gpu };
	}
	out = expect_shared(p->root, outward, n, of, a);
	in = expect_shared(p->root, inward, n, of, a);
	return in.gbps < out.gbps || isnan(out.gbps) ? in : out;
}

/*
 * What is slower beside others than alone. Through a GPU's memory it is worth a warning though the
 * links explain it: other GPUs or VFs would not share them. From the host's memory only what they
 * do not explain is.
 */
static void judge_contention(const struct plan *p, const struct cell *c, double together,
			     struct expectation e)
{
	bool shared = e.limit && strstr(e.limit, ", shared by ");
	bool explained = shared && together >= p->report->slow * e.gbps;

	report_finding(
		p->report, c->gpu || !explained ? OUTCOME_SLOW : OUTCOME_GOOD, "contention",
		name_of(vf_at(p, c->from)), "to %s %.3g Gb/s alone and %.3g with all others: %s",
		name_of(vf_at(p, c->to)), c->alone, together,
		shared ? e.limit
		       : "no port or link whose rate is known is shared, so it is memory, processor or network");
}

int traffic_together(struct plan *p, const struct cell *cells, size_t n)
{
	_cleanup_free_ struct wire_result *results = xcalloc(n, sizeof(*results));
	enum wire_op op = first_op(p);
	int error;

	if (clock_mono_ns() > p->until_ns) {
		p->skipped++;
		return 0;
	}
	report_progress(p->report, "%zu transfers at once: %s", n, wire_op_name(op));
	error = run_cells(p, cells, n, op, results);
	for (size_t i = 0; i < n; i++) {
		struct expectation e = expectation_beside(p, cells, n, i);

		measure(p, &cells[i], op, true, &results[i], e);
		/* soft devices share the processor, which is no fault of a link */
		if (!isnan(e.gbps) && results[i].gbps < SHARE_SLOWER * cells[i].alone)
			judge_contention(p, &cells[i], results[i].gbps, e);
	}
	return error;
}

/* --- the host's memory --- */

static struct cell host_cell(const struct plan *p, size_t from, size_t to)
{
	return (struct cell) { from, to, NULL, &p->near[from], &p->far[to], NAN, false };
}

static double alone_of(const struct cell *cells, size_t n, size_t from, size_t to)
{
	for (size_t i = 0; i < n; i++) {
		if ((cells[i].from == from && cells[i].to == to) ||
		    (cells[i].from == to && cells[i].to == from))
			return cells[i].ended ? NAN : cells[i].alone;
	}
	return NAN;
}

/* The ring of the VFs that work: each sends to the next one and receives from the one before. Pairs
 * of which one does not reach the other are left out. */
static int host_ring(struct plan *p, const struct cell *alone, size_t n_alone)
{
	size_t n = p->told->n_vfs, members = 0, n_cells = 0;
	_cleanup_free_ struct cell *cells = xcalloc(n, sizeof(*cells));
	_cleanup_free_ size_t *ring = xcalloc(n, sizeof(*ring));

	for (size_t i = 0; i < n; i++) {
		if (p->devices[i])
			ring[members++] = i;
	}
	for (size_t i = 0; i < members && members > 1; i++) {
		struct cell *c = &cells[n_cells];

		*c = host_cell(p, ring[i], ring[(i + 1) % members]);
		c->alone = alone_of(alone, n_alone, c->from, c->to);
		n_cells += !isnan(c->alone);
	}
	return n_cells > 1 ? traffic_together(p, cells, n_cells) : 0;
}

/* Loopbacks, then neighbours, … */
static int host_traffic(struct plan *p)
{
	size_t n = p->told->n_vfs, n_cells = 0;
	_cleanup_free_ struct cell *cells = xcalloc(n * (n + 1) / 2, sizeof(*cells));

	for (size_t apart = 0; apart < n; apart++) {
		for (size_t i = 0; i + apart < n; i++)
			cells[n_cells++] = host_cell(p, i, i + apart);
	}
	return traffic_run(p, cells, n_cells, host_ring);
}

/* What a port carries in a millisecond: enough to be slow to fill, too little to be waited for. */
static void choose_sizes(struct plan *p, const struct traffic_options *o)
{
	size_t size = SIDE_MIN;

	p->memory = o->memory ? o->memory : WIRE_MEMORY_MAX;
	for (size_t i = 0; i < p->told->n_vfs; i++) {
		double gbps = p->devices[i] ? wire_port_gbps(p->devices[i]) : NAN;

		if (gbps * 1e6 / 8 > (double)size)
			size = (size_t)(gbps * 1e6 / 8);
	}
	size = size > SIDE_MAX ? SIDE_MAX : size;
	p->message = o->message ? o->message : MESSAGE;
	if (size < p->message)
		size = p->message;
	if (size > p->memory / (2 * p->told->n_vfs))
		size = p->memory / (2 * p->told->n_vfs);
	if (p->message > size)
		p->message = size;
	p->size = size - size % p->message;
}

static int make_memory(struct plan *p)
{
	int error = 0;

	for (size_t i = 0; i < p->told->n_vfs && !error; i++) {
		if (!p->devices[i])
			continue;
		error = wire_memory_host(p->size, &p->near[i]);
		if (!error)
			error = wire_memory_host(p->size, &p->far[i]);
	}
	if (error)
		report_finding(p->report, OUTCOME_NOT_MEASURED, "no-memory", NULL,
			       "%zu KiB of memory for each side: %s", p->size >> 10,
			       strerror(-error));
	return error;
}

static int open_all(struct plan *p)
{
	size_t opened = 0, rateless = 0;
	int first = 0;

	for (size_t i = 0; i < p->told->n_vfs; i++) {
		int error;

		report_progress(p->report, "%s: opens", name_of(vf_at(p, i)));
		error = wire_open(vf_at(p, i), p->report, &p->devices[i]);
		first = first ? first : error;
		opened += !error;
		rateless += !error && isnan(wire_port_gbps(p->devices[i]));
	}
	if (rateless)
		report_finding(p->report, OUTCOME_GOOD, "no-rate", NULL,
			       "%zu of %zu RDMA devices are soft ones, or have ports without a "
			       "rate: there is no expectation to compare with",
			       rateless, opened);
	return first;
}

static void close_all(struct plan *p)
{
	for (size_t i = 0; i < p->told->n_vfs; i++) {
		wire_close(p->devices[i]);
		wire_memory_free(&p->near[i]);
		wire_memory_free(&p->far[i]);
	}
	free(p->devices);
	free(p->near);
	free(p->far);
}

static unsigned n_ops(unsigned ops)
{
	return (unsigned)__builtin_popcount(ops);
}

int traffic_local(const struct told *told, const struct traffic_options *o, struct report *r)
{
	size_t n = told->n_vfs;
	struct plan p = {
		.told = told,
		.report = r,
		.devices = xcalloc(n + 1, sizeof(struct wire_device *)),
		.near = xcalloc(n + 1, sizeof(struct wire_memory)),
		.far = xcalloc(n + 1, sizeof(struct wire_memory)),
		.ops = o->ops ? o->ops : (1U << WIRE_OP_MAX) - 1,
		.overhead = 0.01,
	};
	struct sysroot *live = NULL;
	struct err err = { 0 };
	int error, first;

	if (!n)
		report_finding(r, OUTCOME_NOT_MEASURED, "no-map", NULL,
			       "map.json has no VF: there is nothing to measure");
	first = !n ? -ENODEV : o->root ? 0 : sysroot_open("/", &live, &err);
	p.root = o->root ? o->root : live;
	if (n && first)
		report_finding(r, OUTCOME_NOT_MEASURED, "verbs-refused", NULL, "%s", err.msg);
	if (!first) {
		p.until_ns =
			clock_mono_ns() + (int64_t)((o->seconds > 0 ? o->seconds : SECONDS) * 1e9);
		p.left = n_ops(p.ops) * (o->gpu ? told->n_pairs + told->n_gpus * o->far
						: n * (n + 1) / 2) +
			 (n > 1);
		first = open_all(&p);
		choose_sizes(&p, o);
		error = make_memory(&p);
		if (!error)
			error = o->gpu ? traffic_gpus(&p, o->far) : host_traffic(&p);
		first = first ? first : error;
	}
	if (p.skipped)
		report_finding(r, OUTCOME_NOT_MEASURED, "out-of-time", NULL,
			       "%zu runs had no time left", p.skipped);
	report_progress(r, "%s", "");
	close_all(&p);
	sysroot_close(live);
	return first;
}
