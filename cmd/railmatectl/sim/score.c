#include "sim/score-internal.h"

#include <string.h>

#include "align/choose.h"
#include "topo/topo.h"

static struct score_classes count_classes(const struct choose_out *out)
{
	struct score_classes c = { 0 };

	for (size_t i = 0; i < out->n_pairs; i++)
		c.n[topo_rank(out->pairs[i].path.class)]++;
	return c;
}

size_t sim_score_rank(const struct score_classes *c)
{
	size_t total = 0;

	for (size_t rank = 0; rank < ALIGN_RANKS; rank++)
		total += rank * c->n[rank];
	return total;
}

size_t sim_score_best(const struct score_classes *got, const struct score_classes *optimum)
{
	size_t a[TOPO_CLASS_MAX] = { 0 }, b[TOPO_CLASS_MAX] = { 0 };

	/* By class; there is one of each rank from PIX on. */
	memcpy(a + TOPO_PIX, got->n, sizeof(got->n));
	memcpy(b + TOPO_PIX, optimum->n, sizeof(optimum->n));
	return topo_pairs_at_best(a, b);
}

static struct choose_in question(const struct score_in *in, size_t vfs)
{
	return (struct choose_in) { .node = in->node,
				    .pool = in->pool,
				    .available = in->free_vfs,
				    .n_available = in->n_free,
				    .want = vfs,
				    .gpus = in->gpus };
}

struct score sim_score_container(const struct score_in *in, const int *vfs, size_t n_vfs,
				 struct arena *arena)
{
	struct choose_in q = question(in, n_vfs);
	struct choose_out got = align_pairs(&q, vfs, n_vfs, arena);
	struct choose_out optimum =
		align_choose(&q, false, arena); /* the best that so many VFs can be */
	struct score s = { .pairs = got.n_pairs };

	s.got = count_classes(&got);
	s.optimum = count_classes(&optimum);
	s.best = sim_score_best(&s.got, &s.optimum);
	return s;
}
