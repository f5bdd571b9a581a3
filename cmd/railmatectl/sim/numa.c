#include "sim/numa.h"

#include "base/mem.h"

/* "don't care" is has_mask false and preferred; an impossible request has no hint at all. */
struct hint {
	bool has_mask, preferred;
	uint64_t mask;
};

struct hints {
	struct hint v[1 << NUMA_NODES_MAX];
	size_t n;
};

struct merge {
	const struct hints *per_ask;
	size_t n_asks;
	int widest_minimum; /* how narrow a merge that is not preferred can get */
	bool have_best;
	struct hint best;
};

static int width(uint64_t mask)
{
	return __builtin_popcountll(mask);
}

static size_t count_in(const uint64_t *masks, size_t n, uint64_t mask)
{
	size_t count = 0;

	for (size_t i = 0; i < n; i++)
		count += (masks[i] & mask) != 0;
	return count;
}

/* Every reusable device with a topology has to be inside. */
static bool covers_reusable(const struct numa_ask *ask, uint64_t mask)
{
	for (size_t i = 0; i < ask->n_reusable; i++) {
		if (ask->reusable[i] && !(ask->reusable[i] & mask))
			return false;
	}
	return true;
}

/* Every set of nodes with enough devices; the ones as narrow as the machine allows are preferred.
 */
static void hints_of(const struct numa_ask *ask, uint64_t machine, struct hints *ret)
{
	int narrowest = width(machine);

	ret->n = 0;
	if (!count_in(ask->all, ask->n_all, UINT64_MAX)) {
		ret->v[ret->n++] = (struct hint) { .preferred = true };
		return;
	}
	if (ask->n_available + ask->n_reusable < ask->count)
		return;
	for (uint64_t mask = machine; mask; mask = (mask - 1) & machine) {
		size_t usable = count_in(ask->reusable, ask->n_reusable, mask) +
				count_in(ask->available, ask->n_available, mask);

		if (count_in(ask->all, ask->n_all, mask) >= ask->count && width(mask) < narrowest)
			narrowest = width(mask);
		if (usable >= ask->count && covers_reusable(ask, mask))
			ret->v[ret->n++] = (struct hint) { .has_mask = true, .mask = mask };
	}
	for (size_t i = 0; i < ret->n; i++)
		ret->v[i].preferred = width(ret->v[i].mask) == narrowest;
}

static bool narrower(uint64_t a, uint64_t b)
{
	return width(a) != width(b) ? width(a) < width(b) : a < b;
}

/* Between two merges that are not preferred: as close to the widest minimum as possible, from
 * below. */
static bool better_unpreferred(int target, uint64_t now, uint64_t candidate)
{
	if (width(now) > target)
		return narrower(candidate, now);
	if (width(now) == target)
		return width(candidate) == target && narrower(candidate, now);
	if (width(candidate) > target)
		return false;
	if (width(candidate) != width(now))
		return width(candidate) > width(now);
	return narrower(candidate, now);
}

static void consider(struct merge *m, struct hint candidate)
{
	if (!candidate.mask)
		return;
	if (m->have_best && m->best.preferred != candidate.preferred) {
		if (candidate.preferred)
			m->best = candidate;
		return;
	}
	if (m->have_best && candidate.preferred && !narrower(candidate.mask, m->best.mask))
		return;
	if (m->have_best && !candidate.preferred &&
	    !better_unpreferred(m->widest_minimum, m->best.mask, candidate.mask))
		return;
	m->best = candidate;
	m->have_best = true;
}

/* Every combination of one hint per resource; first is the mask the others have to equal to be
 * preferred. */
static void merge_from(struct merge *m, size_t ask, struct hint so_far, uint64_t first)
{
	if (ask == m->n_asks) {
		consider(m, so_far);
		return;
	}
	for (size_t i = 0; i < m->per_ask[ask].n; i++) {
		const struct hint *h = &m->per_ask[ask].v[i];
		struct hint next = so_far;

		next.preferred = next.preferred && h->preferred;
		if (h->has_mask) {
			next.mask &= h->mask;
			next.preferred = next.preferred && (!first || first == h->mask);
		}
		merge_from(m, ask + 1, next, first ? first : h->has_mask ? h->mask : 0);
	}
}

static int widest_minimum(const struct hints *per_ask, size_t n)
{
	int widest = 0;

	for (size_t a = 0; a < n; a++) {
		int narrowest = 0;

		for (size_t i = 0; i < per_ask[a].n; i++) {
			const struct hint *h = &per_ask[a].v[i];

			if (h->has_mask && (!narrowest || width(h->mask) < narrowest))
				narrowest = width(h->mask);
		}
		if (narrowest > widest)
			widest = narrowest;
	}
	return widest;
}

struct numa_verdict sim_numa_judge(enum numa_policy policy, uint64_t machine,
				   const struct numa_ask *asks, size_t n)
{
	_cleanup_free_ struct hints *per_ask = NULL;
	struct merge m = { .n_asks = n };

	if (policy == NUMA_NONE || !machine || width(machine) > NUMA_NODES_MAX)
		return (struct numa_verdict) { .admit = true };
	per_ask = xcalloc(n ? n : 1, sizeof(*per_ask));
	for (size_t i = 0; i < n; i++) {
		struct hints *h = &per_ask[i];
		size_t kept = 0;

		hints_of(&asks[i], machine, h);
		for (size_t k = 0; k < h->n; k++) {
			if (policy != NUMA_SINGLE_NODE ||
			    (h->v[k].preferred && (!h->v[k].has_mask || width(h->v[k].mask) == 1)))
				h->v[kept++] = h->v[k];
		}
		h->n = kept;
	}
	m.per_ask = per_ask;
	m.widest_minimum = widest_minimum(per_ask, n);
	merge_from(&m, 0, (struct hint) { .has_mask = true, .preferred = true, .mask = machine },
		   0);
	if (!m.have_best)
		m.best = (struct hint) { .has_mask = true, .mask = machine };
	return (struct numa_verdict) {
		.admit = policy == NUMA_BEST_EFFORT || m.best.preferred,
		.has_affinity = policy != NUMA_SINGLE_NODE || m.best.mask != machine,
		.affinity = m.best.mask,
	};
}
