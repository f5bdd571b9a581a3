/*
 * Bridges that lie on the way to others and have no record: no entry of their own, or one that was
 * skipped. The way is known all the same, from the others' links, and distances must not depend on
 * such a gap.
 */
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/mem.h"
#include "discover/scan-internal.h"

#define CLASS_PCI_BRIDGE 0x060400

struct gap {
	struct bdf bdf;
	const char *path;
};

struct gaps {
	struct gap *v;
	size_t n, cap;
};

/* Every address on a function's way, its own included, that has no record. */
static void find_gaps(struct scan *s, const char *path, struct gaps *gaps)
{
	size_t len;

	for (const char *c = path; *c; c += len + strspn(c + len, "/")) {
		char text[BDF_STRLEN + 1] = "";
		struct bdf bdf;

		len = strcspn(c, "/");
		if (len >= sizeof(text))
			continue;
		memcpy(text, c, len);
		if (bdf_parse(text, &bdf) < 0 || scan_find(s, bdf) >= 0)
			continue;
		gaps->v = xgrow(gaps->v, &gaps->cap, gaps->n + 1, sizeof(*gaps->v));
		gaps->v[gaps->n++] =
			(struct gap) { bdf, arena_printf(s->arena, "%.*s", (int)(c + len - path),
							 path) };
	}
}

static int by_address(const void *a, const void *b)
{
	return bdf_cmp(((const struct gap *)a)->bdf, ((const struct gap *)b)->bdf);
}

/* Both are in order of address. Indices follow their records. */
static void merge(struct scan *s, const struct gaps *gaps)
{
	_cleanup_free_ int *now = xcalloc(s->n_pci, sizeof(*now)); /* where record i goes */
	size_t n = s->n_pci + gaps->n, old = 0, gap = 0;
	struct hw_pci *pci = xcalloc(n, sizeof(*pci));
	struct place *place = xcalloc(n, sizeof(*place));

	for (size_t i = 0; i < n; i++) {
		if (gap == gaps->n ||
		    (old < s->n_pci && bdf_cmp(s->pci[old].bdf, gaps->v[gap].bdf) < 0)) {
			pci[i] = s->pci[old];
			place[i] = s->place[old];
			now[old++] = (int)i;
		} else {
			const struct gap *g = &gaps->v[gap++];

			pci[i] = hw_pci_unknown(g->bdf);
			pci[i].class_code = CLASS_PCI_BRIDGE;
			place[i] = (struct place) { .path = g->path,
						    .numa = -1,
						    .pf = g->bdf,
						    .offset = -1,
						    .stride = -1 };
		}
	}
	free(s->pci);
	free(s->place);
	s->pci = pci;
	s->place = place;
	s->n_pci = s->cap_pci = s->cap_place = n;
	for (size_t i = 0; i < s->n_rdma; i++) {
		if (s->rdma[i].pci >= 0)
			s->rdma[i].pci = now[s->rdma[i].pci];
	}
	for (size_t i = 0; i < s->n_gpu; i++)
		s->gpu[i].pci = now[s->gpu[i].pci];
	for (size_t i = 0; i < s->n_vf; i++)
		s->vf[i].pf = now[s->vf[i].pf];
}

void scan_missing_bridges(struct scan *s)
{
	struct gaps gaps = { NULL, 0, 0 };
	const char *last = NULL;
	size_t n = 0;

	for (size_t i = 0; i < s->n_pci; i++) {
		const char *path = s->place[i].path, *end = path ? strrchr(path, '/') : NULL;
		size_t len = end ? (size_t)(end - path) + 1 : 0;

		/* The functions of one slot are neighbours in the table, and a PF's VFs are many.
		 */
		if (!path || (last && !strncmp(last, path, len) && !strchr(last + len, '/')))
			continue;
		find_gaps(s, path, &gaps);
		last = path;
	}
	if (gaps.n) {
		qsort(gaps.v, gaps.n, sizeof(*gaps.v), by_address);
		for (size_t i = 0; i < gaps.n; i++) {
			if (!n || bdf_cmp(gaps.v[n - 1].bdf, gaps.v[i].bdf))
				gaps.v[n++] = gaps.v[i];
		}
		gaps.n = n;
		merge(s, &gaps);
	}
	free(gaps.v);
}
