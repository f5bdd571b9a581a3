/* The relations of functions: parents, VFs of PFs, effective NUMA nodes. Pure but for its notes. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/str.h"
#include "discover/scan-internal.h"

/* "pciDDDD:BB": a root complex. */
static bool parse_root(const char *component, struct bdf *ret)
{
	char text[BDF_STRLEN + 16];
	int n;

	if (!str_starts(component, "pci"))
		return false;
	n = snprintf(text, sizeof(text), "%s:00.0", component + 3);
	return n > 0 && (size_t)n < sizeof(text) && !bdf_parse(text, ret);
}

#define MAX_ABOVE 64

/*
 * ../../../devices/pci0000:3a/0000:3a:00.0/0000:3b:00.2: every address but the last is a bridge
 * above. VMD puts a second root complex below a function ("…/0000:80:05.5/pci10000:00/…"); the
 * first one is where it hangs.
 */
static void read_paths(struct scan *s, int *chain)
{
	struct bdf above[MAX_ABOVE], bdf;
	char path[PATH_MAX];

	for (size_t i = 0; i < s->n_pci; i++) {
		struct hw_pci *f = &s->pci[i];
		char *save = NULL;
		int n = 0;

		if (!s->place[i].path)
			continue;
		snprintf(path, sizeof(path), "%s", s->place[i].path);
		for (char *c = strtok_r(path, "/", &save); c; c = strtok_r(NULL, "/", &save)) {
			if (parse_root(c, &bdf) && !f->has_root) {
				f->has_root = true;
				f->root_domain = bdf.domain;
				f->root_bus = bdf.bus;
			} else if (!bdf_parse(c, &bdf) && n < MAX_ABOVE) {
				above[n++] = bdf;
			}
			if (str_starts(c, "VMBUS") || str_starts(c, "MSFT1000"))
				s->is_virtual = true;
		}
		s->place[i].depth = n;
		/* The nearest that was not skipped; the last address is the function itself. */
		chain[i] = -1;
		for (int k = n - 2; k >= 0 && chain[i] < 0; k--)
			chain[i] = scan_find(s, above[k]);
	}
}

/* Ways that contradict each other could make a ring. A parent's way is shorter than its child's, so
 * no ring remains. */
static void set_parents(struct scan *s, const int *chain)
{
	char a[BDF_STRLEN], b[BDF_STRLEN];

	for (size_t i = 0; i < s->n_pci; i++) {
		int up = s->place[i].path ? chain[i] : -1;

		if (up >= 0 && s->place[up].depth >= s->place[i].depth) {
			scan_note(
				s,
				"%s: claims to be below %s, whose own path says otherwise; taken as on the root bus",
				bdf_format(s->pci[i].bdf, a), bdf_format(s->pci[up].bdf, b));
			up = -1;
		}
		s->pci[i].parent = up;
	}
}

/* The kernel keeps both links; a PF's virtfnN is as good a witness as the VF's physfn. */
static void set_by_virtfn(struct scan *s, const struct vf_link *link)
{
	int i = scan_find(s, link->vf);
	char a[BDF_STRLEN], b[BDF_STRLEN];
	struct hw_pci *f;

	if (i < 0 || i == link->pf || s->pci[link->pf].is_vf)
		return;
	f = &s->pci[i];
	if (f->physfn < 0 && f->sriov_total == 0) {
		f->is_vf = true;
		f->physfn = link->pf;
	}
	if (f->physfn != link->pf)
		scan_note(s, "%s: virtfn%d is %s, which says otherwise; ignored",
			  bdf_format(s->pci[link->pf].bdf, a), link->index, bdf_format(f->bdf, b));
	else
		f->vf_index = link->index;
}

static int routing_id(struct bdf b)
{
	return b.bus << 8 | b.dev << 3 | b.fn;
}

/* SR-IOV specification: VF n has routing id PF + offset + n * stride. */
static int index_by_address(const struct hw_pci *pf, const struct place *place, struct bdf vf)
{
	int distance = routing_id(vf) - routing_id(pf->bdf) - place->offset;

	if (place->offset < 0 || vf.domain != pf->bdf.domain || distance < 0)
		return -1;
	if (!distance)
		return 0;
	if (place->stride <= 0 || distance % place->stride ||
	    distance / place->stride >= pf->sriov_total)
		return -1;
	return distance / place->stride;
}

static void set_vfs(struct scan *s)
{
	char addr[BDF_STRLEN], pf_addr[BDF_STRLEN];

	for (size_t i = 0; i < s->n_pci; i++) {
		struct hw_pci *f = &s->pci[i];
		int pf;

		if (!f->is_vf || !bdf_cmp(s->place[i].pf, f->bdf))
			continue; /* where the link named nothing, that has its note */
		pf = scan_find(s, s->place[i].pf);
		bdf_format(f->bdf, addr);
		bdf_format(s->place[i].pf, pf_addr);
		if (pf < 0)
			scan_note(s, "%s: its PF %s is not there", addr, pf_addr);
		else if (s->pci[pf].is_vf)
			scan_note(s, "%s: its PF %s is a VF itself; its PF is taken as unknown",
				  addr, pf_addr);
		else
			f->physfn = pf;
	}
	for (size_t i = 0; i < s->n_vf; i++)
		set_by_virtfn(s, &s->vf[i]);
	for (size_t i = 0; i < s->n_pci; i++) {
		struct hw_pci *f = &s->pci[i];

		if (f->physfn < 0 || f->vf_index >= 0)
			continue;
		f->vf_index = index_by_address(&s->pci[f->physfn], &s->place[f->physfn], f->bdf);
		if (f->vf_index < 0)
			scan_note(s,
				  "%s: no virtfn link of its PF names it; its VF index is unknown",
				  bdf_format(f->bdf, addr));
	}
}

static int node_above(const struct scan *s, int i)
{
	while (i >= 0 && s->place[i].numa < 0)
		i = s->pci[i].parent;
	return i < 0 ? -1 : s->place[i].numa;
}

void scan_place(struct scan *s)
{
	_cleanup_free_ int *chain = xcalloc(s->n_pci, sizeof(*chain));

	read_paths(s, chain);
	set_parents(s, chain);
	set_vfs(s);
	for (size_t i = 0; i < s->n_pci; i++) {
		struct hw_pci *f = &s->pci[i];

		f->numa = s->place[i].numa;
		if (f->numa < 0 && f->physfn >= 0)
			f->numa = node_above(s, f->physfn);
		if (f->numa < 0)
			f->numa = node_above(s, (int)i);
		f->numa_above = f->numa >= 0 && s->place[i].numa < 0;
	}
}
