/*
 * Which functions a PF names as its VFs: virtfn0, virtfn1, …, links in its directory. A link is a
 * system call, and there may be hundreds; the kernel computes where they lead from offset and
 * stride, and so can we.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/str.h"
#include "discover/scan-internal.h"

#define PREFIX "virtfn"

struct pf {
	const struct dir *dir;
	struct bdf bdf;
	int index; /* of its record */
	const struct place *place;
};

static bool parse_name(const char *name, int *ret)
{
	return str_starts(name, PREFIX) && !str_to_int(name + strlen(PREFIX), ret) && *ret >= 0;
}

static int add_if_virtfn(void *arg, const char *name)
{
	int index;

	if (parse_name(name, &index))
		names_add(arg, name);
	return 0;
}

/* SR-IOV specification: VF n has routing id PF + offset + n * stride. */
static bool predict(const struct pf *pf, const char *name, struct vf_link *ret)
{
	int64_t id = pf->bdf.bus << 8 | pf->bdf.dev << 3 | pf->bdf.fn;

	*ret = (struct vf_link) { .vf = pf->bdf, .pf = pf->index, .beside = true };
	if (!parse_name(name, &ret->index) || pf->place->offset < 0 || pf->place->stride < 0)
		return false;
	id += pf->place->offset + (int64_t)ret->index * pf->place->stride;
	ret->vf.bus = (uint8_t)(id >> 8);
	ret->vf.dev = (uint8_t)(id >> 3 & 31);
	ret->vf.fn = (uint8_t)(id & 7);
	return id <= UINT16_MAX;
}

static bool read_link(const struct pf *pf, const char *name, struct vf_link *ret)
{
	char target[PATH_MAX], addr[BDF_STRLEN];
	const char *last;

	*ret = (struct vf_link) { .pf = pf->index };
	if (!parse_name(name, &ret->index) || dir_link(pf->dir, name, target, sizeof(target)) < 0)
		return false;
	last = strrchr(target, '/');
	last = last ? last + 1 : target;
	if (bdf_parse(last, &ret->vf) < 0)
		return false;
	ret->beside = last == target + 3 && str_starts(target, "../") &&
		      !strcmp(last, bdf_format(ret->vf, addr));
	return true;
}

static bool is_as_predicted(const struct pf *pf, const char *name)
{
	struct vf_link want, have;

	return predict(pf, name, &want) && read_link(pf, name, &have) && have.beside &&
	       !bdf_cmp(want.vf, have.vf);
}

static int by_vf(const void *a, const void *b)
{
	return bdf_cmp(((const struct vf_link *)a)->vf, ((const struct vf_link *)b)->vf);
}

/* Offset and stride are the same for all: where two links agree with them, the others need no look.
 */
void scan_virtfns(struct scan *s, const struct dir *dir, struct bdf bdf, int index,
		  const struct place *place)
{
	const struct pf pf = { dir, bdf, index, place };
	_cleanup_names_ struct names names = NAMES_EMPTY;
	bool in_a_row;

	dir_each(dir, add_if_virtfn, &names);
	names_sort(&names);
	in_a_row = names.n > 2 && is_as_predicted(&pf, names.v[0]) &&
		   is_as_predicted(&pf, names.v[names.n - 1]);
	for (size_t i = 0; i < names.n; i++) {
		struct vf_link link;
		char addr[BDF_STRLEN];

		if (!(in_a_row ? predict : read_link)(&pf, names.v[i], &link)) {
			scan_note(s, "%s: %s is not a link to a PCI address; ignored",
				  bdf_format(bdf, addr), names.v[i]);
			continue;
		}
		s->vf = xgrow(s->vf, &s->cap_vf, s->n_vf + 1, sizeof(*s->vf));
		s->vf[s->n_vf++] = link;
	}
	if (s->n_vf > 1)
		qsort(s->vf, s->n_vf, sizeof(*s->vf), by_vf);
}

const struct vf_link *scan_vf_link(const struct scan *s, struct bdf vf)
{
	const struct vf_link key = { .vf = vf };

	return s->n_vf ? bsearch(&key, s->vf, s->n_vf, sizeof(key), by_vf) : NULL;
}
