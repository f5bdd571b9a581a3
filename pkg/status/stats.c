#include "status/stats.h"

#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/mem.h"

#define US INT64_C(1000)
#define MS INT64_C(1000000)

/* Allocate takes 0.3 ms, a preference that waits for the kubelet some, PreStartContainer up to 30
 * s. */
const int64_t stats_bounds_ns[STATS_BUCKETS] = { 100 * US,  250 * US,  500 * US,  1 * MS,
						 2500 * US, 5 * MS,    10 * MS,	  25 * MS,
						 50 * MS,   100 * MS,  250 * MS,  500 * MS,
						 1000 * MS, 2500 * MS, 10000 * MS };

struct stats {
	struct stats_pool **pools; /* by name */
	size_t n, cap;
};

struct stats *stats_new(void)
{
	return xcalloc(1, sizeof(struct stats));
}

void stats_free(struct stats *s)
{
	if (!s)
		return;
	for (size_t i = 0; i < s->n; i++) {
		free(s->pools[i]->resource);
		free(s->pools[i]);
	}
	free(s->pools);
	free(s);
}

struct stats_pool *stats_of(struct stats *s, const char *resource)
{
	size_t at = 0;

	if (!s)
		return NULL;
	while (at < s->n && strcmp(s->pools[at]->resource, resource) < 0)
		at++;
	if (at < s->n && !strcmp(s->pools[at]->resource, resource))
		return s->pools[at];
	s->pools = xgrow(s->pools, &s->cap, s->n + 1, sizeof(struct stats_pool *));
	memmove(&s->pools[at + 1], &s->pools[at], (s->n - at) * sizeof(struct stats_pool *));
	s->n++;
	s->pools[at] = xcalloc(1, sizeof(struct stats_pool));
	s->pools[at]->resource = xstrdup(resource);
	return s->pools[at];
}

const struct stats_pool *const *stats_copy(const struct stats *s, struct arena *a, size_t *ret_n)
{
	const struct stats_pool **v = arena_array(a, s->n, sizeof(*v));

	for (size_t i = 0; i < s->n; i++) {
		struct stats_pool *copy = arena_copy(a, s->pools[i], sizeof(*copy));

		copy->resource = arena_strdup(a, copy->resource);
		v[i] = copy;
	}
	*ret_n = s->n;
	return v;
}

static void observe(struct stats_histogram *h, int64_t ns)
{
	size_t i = 0;

	while (i < STATS_BUCKETS && ns > stats_bounds_ns[i])
		i++;
	h->n[i]++;
	h->sum_ns += ns > 0 ? ns : 0;
}

void stats_count_call(struct stats_pool *p, enum stats_call call, unsigned code, int64_t ns)
{
	if (!p)
		return;
	p->calls[call][code < STATS_CODES ? code : 2 /* UNKNOWN */]++;
	observe(&p->latency[call], ns);
}

void stats_count_choice(struct stats_pool *p, enum ledger_gpus known)
{
	if (p)
		p->choices[known]++;
}

void stats_count_pairs(struct stats_pool *p, const struct stats_classes *got,
		       const struct stats_classes *best)
{
	for (int i = 0; p && i < TOPO_CLASS_MAX; i++)
		p->pairs[i] += got->n[i];
	if (p)
		p->pairs_best += topo_pairs_at_best(got->n, best->n);
}

void stats_count_kubelet(struct stats_pool *p)
{
	if (p)
		p->kubelets++;
}
