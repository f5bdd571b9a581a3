/*
 * Transfers from the memory of GPUs: each GPU through its VFs, alone, then every GPU at once, and
 * on request through a VF that is not the nearest. A GPU's memory is given to a device by the first
 * way that the driver and the device take.
 */
#include <errno.h>
#include <math.h>
#include <stdlib.h>

#include "base/mem.h"
#include "expect.h"
#include "gpu.h"
#include "report.h"
#include "told.h"
#include "traffic-internal.h"

/* The two ends of a transfer, in the memory of one GPU. */
struct ends {
	struct wire_memory from, to;
};

struct gpus {
	struct gpu **open; /* by told.gpus; NULL: not open */
	struct ends *ends; /* by cell */
	struct cell *cells;
	size_t n, size; /* bytes of an end: as many as there may be at once keep to p->memory */
};

static void add(struct plan *p, struct gpus *g, size_t gpu, size_t vf)
{
	const char *bdf = p->told->gpus[gpu].bdf;
	struct ends *ends = &g->ends[g->n];
	unsigned way;

	if (!g->open[gpu] || !p->devices[vf])
		return; /* a finding has the reason */
	if (gpu_direct(g->open[gpu], bdf, p->devices[vf], p->told->vfs[vf].hca, g->size, &way,
		       p->report, &ends->from) < 0 ||
	    gpu_memory(g->open[gpu], g->size, way, p->report, &ends->to) < 0)
		return;
	g->cells[g->n++] = (struct cell) { vf, vf, bdf, &ends->from, &ends->to, NAN, false };
}

static bool is_pair(const struct told *t, size_t gpu, size_t vf)
{
	for (size_t i = 0; i < t->n_pairs; i++) {
		if (t->pairs[i].gpu == gpu && t->pairs[i].vf == vf)
			return true;
	}
	return false;
}

/* Of the VFs of other GPUs, the one with the longest way: it is seen what alignment is worth. */
static void add_far(struct plan *p, struct gpus *g, size_t gpu)
{
	const struct told *t = p->told;
	size_t best = t->n_vfs, longest = 0;

	for (size_t vf = 0; vf < t->n_vfs; vf++) {
		size_t n =
			expect_path_of(p->root, &t->vfs[vf], t->gpus[gpu].bdf, p->report->arena).n;

		if (is_pair(t, gpu, vf) || !p->devices[vf] || n < longest)
			continue;
		best = vf;
		longest = n;
	}
	if (best < t->n_vfs)
		add(p, g, gpu, best);
}

static int none(struct plan *p, const struct cell *cells, size_t n)
{
	(void)p, (void)cells, (void)n;
	return 0;
}

static int all_at_once(struct plan *p, const struct cell *cells, size_t n)
{
	_cleanup_free_ struct cell *sound = xcalloc(n + 1, sizeof(*sound));
	size_t n_sound = 0;

	for (size_t i = 0; i < n; i++) {
		if (!cells[i].ended)
			sound[n_sound++] = cells[i];
	}
	return n_sound > 1 ? traffic_together(p, sound, n_sound) : 0;
}

int traffic_gpus(struct plan *p, bool far)
{
	const struct told *t = p->told;
	size_t most = t->n_pairs + t->n_gpus;
	struct gpus g = {
		.open = xcalloc(t->n_gpus + 1, sizeof(struct gpu *)),
		.ends = xcalloc(most + 1, sizeof(struct ends)),
		.cells = xcalloc(most + 1, sizeof(struct cell)),
		.size = p->memory / (2 * (most + 1)),
	};
	int first = 0, error;
	size_t n_near;

	g.size = g.size > p->size ? p->size : g.size < p->message ? p->message : g.size;
	g.size -= g.size % p->message;
	if (!t->n_pairs)
		report_finding(p->report, OUTCOME_NOT_MEASURED, "no-gpu", NULL,
			       "map.json has no GPU: there is no memory to measure from");
	for (size_t i = 0; i < t->n_gpus; i++) {
		error = gpu_open(p->root, t->gpus[i].bdf, p->report, &g.open[i]);
		first = first ? first : error;
	}
	for (size_t i = 0; i < t->n_pairs; i++)
		add(p, &g, t->pairs[i].gpu, t->pairs[i].vf);
	n_near = g.n;
	for (size_t i = 0; i < t->n_gpus && far; i++)
		add_far(p, &g, i);
	error = traffic_run(p, g.cells, n_near, all_at_once);
	first = first ? first : error;
	error = traffic_run(p, g.cells + n_near, g.n - n_near, none);
	for (size_t i = 0; i < t->n_gpus; i++)
		gpu_close(g.open[i]);
	free(g.open);
	free(g.ends);
	free(g.cells);
	return first ? first : error;
}

#define EXPORT ((size_t)2 << 20)

void traffic_gpu_exports(const struct sysroot *root, const struct told *told, struct report *r)
{
	if (!told->n_gpus)
		report_finding(r, OUTCOME_NOT_MEASURED, "no-gpu", NULL,
			       "map.json has no GPU: there is no memory to export");
	for (size_t i = 0; i < told->n_gpus; i++) {
		struct wire_memory m;
		struct gpu *g;

		if (gpu_open(root, told->gpus[i].bdf, r, &g) < 0)
			continue;
		for (unsigned way = 0; gpu_memory(g, EXPORT, way, r, &m) == 0; way++)
			report_finding(r, OUTCOME_GOOD, "gpu-export", told->gpus[i].bdf,
				       "memory can be given to a NIC by %s", m.way);
		gpu_close(g);
	}
}
