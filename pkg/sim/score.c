#include "sim/score.h"

#include "align/choose.h"
#include "topo/topo.h"

static struct score_classes count_classes(const struct choose_out *out)
{
	struct score_classes c = { 0 };

	for (size_t i = 0; i < out->n_pairs; i++)
		c.n[topo_rank(out->pairs[i].path.class)]++;
	return c;
}

size_t score_rank(const struct score_classes *c)
{
	size_t total = 0;

	for (size_t rank = 0; rank < ALIGN_RANKS; rank++)
		total += rank * c->n[rank];
	return total;
}

size_t score_best(const struct score_classes *got, const struct score_classes *optimum)
{
	size_t all = 0, same = 0;

	for (int i = 0; i < ALIGN_RANKS; i++) {
		all += got->n[i];
		same += got->n[i] < optimum->n[i] ? got->n[i] : optimum->n[i];
	}
	return score_rank(got) == score_rank(optimum) ? all : same;
}

static struct choose_in question(const struct score_in *in, size_t vfs)
{
	return (struct choose_in) { .node = in->node,
				    .pool = in->pool,
				    .available = in->free_vfs,
				    .n_available = in->n_free,
				    .want = vfs,
				    .gpus = in->gpus,
				    .n_gpus = in->n_gpus };
}

/* The best that `vfs` VFs can be for these GPUs. */
static struct score_classes optimum_of(const struct score_in *in, size_t vfs, struct arena *arena)
{
	struct choose_in q = question(in, vfs);
	struct choose_out out = choose_vfs(&q, false, arena);

	return count_classes(&out);
}

struct score score_container(const struct score_in *in, const int *vfs, size_t n_vfs,
			     struct arena *arena)
{
	struct choose_in q = question(in, n_vfs);
	struct choose_out got = choose_pairs(&q, vfs, n_vfs, arena);
	struct score s = { .pairs = got.n_pairs };

	s.got = count_classes(&got);
	s.optimum = optimum_of(in, n_vfs, arena);
	s.best = score_best(&s.got, &s.optimum);
	return s;
}
