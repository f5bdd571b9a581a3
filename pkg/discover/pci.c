/*
 * The tables of PCI functions: which there are, which VFs their PFs name, the bridges that have no
 * entry, and what they are to each other.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/mem.h"
#include "base/str.h"
#include "discover/scan-internal.h"

/*
 * Which functions a PF names as its VFs: virtfn0, virtfn1, …, links in its directory. A link is a
 * system call, and there may be hundreds; the kernel computes where they lead from offset and
 * stride, and so can we.
 */

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

/* Adds the VFs of the PF whose record will be pci[index] to s->vf, sorted by address. */
/* Offset and stride are the same for all: where two links agree with them, the others need no look.
 */
static void scan_virtfns(struct scan *s, const struct dir *dir, struct bdf bdf, int index,
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

/* NULL: no PF named it */
static const struct vf_link *scan_vf_link(const struct scan *s, struct bdf vf)
{
	const struct vf_link key = { .vf = vf };

	return s->n_vf ? bsearch(&key, s->vf, s->n_vf, sizeof(key), by_vf) : NULL;
}

/*
 * Bridges that lie on the way to others and have no record: no entry of their own, or one that was
 * skipped. The way is known all the same, from the others' links, and distances must not depend on
 * such a gap.
 */

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

static int gaps_by_address(const void *a, const void *b)
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
		qsort(gaps.v, gaps.n, sizeof(*gaps.v), gaps_by_address);
		for (size_t i = 0; i < gaps.n; i++) {
			if (!n || bdf_cmp(gaps.v[n - 1].bdf, gaps.v[i].bdf))
				gaps.v[n++] = gaps.v[i];
		}
		gaps.n = n;
		merge(s, &gaps);
	}
	free(gaps.v);
}

/* The relations of functions: parents, VFs of PFs, effective NUMA nodes. Pure but for its notes. */

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

/*
 * PCI functions: one flat pass over sys/bus/pci/devices. The text of each entry's link is the whole
 * way from the root complex to the function, so the tree is built in memory afterwards.
 * Walking sys/devices instead would open every directory on the way, and on Hyper-V the ways start
 * below ACPI objects of any depth.
 */

#define DEVICES	     "sys/bus/pci/devices"
#define CLASS_BRIDGE 0x06

/* One function being read; committed to the tables when all of it made sense. */
struct function {
	struct scan *s;
	struct dir dir;
	struct hw_pci rec;
	struct place place;
	int index;    /* where the record will be */
	int pf;	      /* of a VF: its PF's record, if that came before; -1 */
	bool beside;  /* its directory is beside its PF's */
	bool has_ids; /* of its subsystem, by modalias */
	uint16_t subvendor, subdevice;
};

static bool is_bridge(const struct hw_pci *f)
{
	return f->class_code >> 16 == CLASS_BRIDGE;
}

/* 0x020000 and the like: without it there is no device. The sentence is complete, also for a
 * missing file. */
static int read_id(const struct function *fn, const char *name, uint64_t max, uint32_t *ret,
		   struct err *err)
{
	uint64_t v = 0;
	int r = attr_u64(&fn->dir, name, 16, max, &v, err);

	if (r == -ENOENT) {
		char addr[BDF_STRLEN];

		return err_set(err, ENOENT, "%s: %s is not there", bdf_format(fn->rec.bdf, addr),
			       name);
	}
	*ret = (uint32_t)v;
	return r;
}

#define MODALIAS(word, byte) "pci:v" word "d" word "sv" word "sd" word "bc" byte "sc" byte "i" byte

/*
 * One file for five of the same content; false: not there, or not just as the kernel writes it.
 * (uevent has the driver as well, but kernels of 2024 make its reader wait until a driver's probe
 * is done.)
 */
static bool read_modalias(struct function *fn)
{
	unsigned vendor, device, subvendor, subdevice, base, sub, interface;
	char text[64], again[64];

	if (dir_read(&fn->dir, "modalias", text, sizeof(text)) < 0 ||
	    sscanf(text, MODALIAS("%8x", "%2x"), &vendor, &device, &subvendor, &subdevice, &base,
		   &sub, &interface) != 7)
		return false;
	snprintf(again, sizeof(again), MODALIAS("%08X", "%02X"), vendor, device, subvendor,
		 subdevice, base, sub, interface);
	if (strcmp(text, again) != 0 || (vendor | device | subvendor | subdevice) > UINT16_MAX)
		return false;
	fn->rec.class_code = base << 16 | sub << 8 | interface;
	fn->rec.vendor = (uint16_t)vendor;
	fn->rec.device = (uint16_t)device;
	fn->subvendor = (uint16_t)subvendor;
	fn->subdevice = (uint16_t)subdevice;
	return true;
}

static int read_kind(struct function *fn, struct err *err)
{
	uint32_t device = 0;
	int r;

	fn->has_ids = read_modalias(fn);
	if (fn->has_ids)
		return 0;
	r = read_id(fn, "class", 0xffffff, &fn->rec.class_code, err);
	if (r >= 0)
		r = read_id(fn, "device", UINT16_MAX, &device, err);
	fn->rec.device = (uint16_t)device;
	return r;
}

static uint16_t read_sub_id(struct function *fn, const char *name)
{
	struct err err = { 0 };
	uint64_t v = 0;
	int r = attr_u64(&fn->dir, name, 16, UINT16_MAX, &v, &err);

	if (r < 0 && r != -ENOENT)
		scan_note(fn->s, "%s", err.msg);
	return r < 0 ? 0 : (uint16_t)v;
}

static void read_subsystem(struct function *fn)
{
	fn->rec.subvendor = fn->has_ids ? fn->subvendor : read_sub_id(fn, "subsystem_vendor");
	fn->rec.subdevice = fn->has_ids ? fn->subdevice : read_sub_id(fn, "subsystem_device");
}

/* A VF has its PF's place; its own file counts where the PF does not know. */
static void read_numa(struct function *fn)
{
	struct err err = { 0 };
	char addr[BDF_STRLEN];
	int node = -1, r;

	if (fn->pf >= 0 && fn->s->place[fn->pf].numa >= 0) {
		fn->place.numa = fn->s->place[fn->pf].numa;
		return;
	}
	r = attr_int(&fn->dir, "numa_node", &node, &err);
	if (r < 0 && r != -ENOENT)
		scan_note(fn->s, "%s", err.msg);
	if (r < 0 || node == -1)
		return;
	if (scan_numa_exists(fn->s, node))
		fn->place.numa = node;
	else
		scan_note(
			fn->s,
			"%s: numa_node says '%d', a node that this machine does not have; taken as unknown",
			bdf_format(fn->rec.bdf, addr), node);
}

static void read_physfn(struct function *fn)
{
	char text[BDF_STRLEN + 1], addr[BDF_STRLEN];
	int r;

	r = dir_link_name(&fn->dir, "physfn", text, sizeof(text));
	if (r == -ENOENT)
		return;
	fn->rec.is_vf = true;
	fn->place.pf = fn->rec.bdf;
	if (!r && !bdf_parse(text, &fn->place.pf))
		fn->pf = scan_find(fn->s, fn->place.pf);
	else
		scan_note(fn->s, "%s: physfn is not a link to a PCI address; its PF is unknown",
			  bdf_format(fn->rec.bdf, addr));
}

/*
 * The first netdev in name order. A PF in switchdev mode also shows the representors of its VFs
 * ("pf0vf3") in its directory: those are not it.
 */
static const char *pick_netdev(const struct function *fn, const struct names *names)
{
	char path[NAME_MAX + 32], port[64];

	for (size_t i = 0; i < names->n && names->n > 1 && !fn->rec.is_vf; i++) {
		snprintf(path, sizeof(path), "net/%s/phys_port_name", names->v[i]);
		if (dir_read(&fn->dir, path, port, sizeof(port)) < 0 ||
		    (!strstr(port, "vf") && !strstr(port, "sf")))
			return names->v[i];
	}
	return names->v[0];
}

static void read_netdev(struct function *fn)
{
	_cleanup_names_ struct names names = NAMES_EMPTY;
	char path[NAME_MAX + 32], text[8];
	int n;

	if (scan_class_names(fn->s, CLASS_NET, &fn->dir, fn->rec.bdf, &names) < 0 || !names.n)
		return;
	fn->rec.netdev = arena_strdup(fn->s->arena, pick_netdev(fn, &names));
	if (fn->rec.is_vf)
		return;
	/* "0" or "1"; the kernel answers EINVAL while the interface is switched off, and a capture
	 * of that is empty. */
	snprintf(path, sizeof(path), "net/%s/carrier", fn->rec.netdev);
	n = dir_read(&fn->dir, path, text, sizeof(text));
	if (n == -EINVAL || n == 0 || (n > 0 && str_eq(text, "0")))
		fn->rec.carrier = 0;
	else
		fn->rec.carrier = n > 0 && str_eq(text, "1") ? 1 : -1;
	snprintf(path, sizeof(path), "net/%s/type", fn->rec.netdev);
	fn->rec.net_type = scan_int(fn->s, &fn->dir, path, UINT16_MAX, 0);
}

/* "16.0 GT/s PCIe"; "Unknown" and "Unknown speed" are the kernel's own words for no link. */
static int read_speed(struct function *fn, const char *name)
{
	char text[64];
	int mts = 0, n = dir_read(&fn->dir, name, text, sizeof(text));

	if (n < 0 || str_starts(text, "Unknown"))
		return 0;
	if (parse_thousandths(text, "GT/s", &mts) < 0)
		scan_note_value(fn->s, &fn->dir, name, text);
	return mts;
}

/* Lanes. 63 and 255 are read from a link that does not answer. */
static int read_width(struct function *fn, const char *name)
{
	int width = scan_int(fn->s, &fn->dir, name, 255, 0);

	return width <= 32 ? width : 0;
}

/* Facts that a VF shares with its PF, or does not have: read for other functions only. */
static void read_physical(struct function *fn)
{
	size_t before = fn->s->n_vf;

	fn->rec.link_mts = read_speed(fn, "current_link_speed");
	fn->rec.link_width = read_width(fn, "current_link_width");
	fn->rec.link_mts_max = read_speed(fn, "max_link_speed");
	fn->rec.link_width_max = read_width(fn, "max_link_width");
	if (is_bridge(&fn->rec)) {
		read_subsystem(fn);
		fn->rec.acs_ctrl = acs_control(&fn->dir);
		return;
	}
	fn->rec.sriov_total = scan_int(fn->s, &fn->dir, "sriov_totalvfs", UINT16_MAX, 0);
	if (!fn->rec.sriov_total)
		return;
	fn->place.offset = scan_int(fn->s, &fn->dir, "sriov_offset", UINT16_MAX, -1);
	fn->place.stride = scan_int(fn->s, &fn->dir, "sriov_stride", UINT16_MAX, -1);
	scan_virtfns(fn->s, &fn->dir, fn->rec.bdf, fn->index, &fn->place);
	/* Without a readable count the virtfn links count. */
	fn->rec.sriov_num =
		scan_int(fn->s, &fn->dir, "sriov_numvfs", UINT16_MAX, (int)(fn->s->n_vf - before));
}

/*
 * Its kind is read last, or at least its vendor: a device that was pulled out while its other files
 * were read has none any more. A function that a PF names as its VF is not a bridge, so its kind
 * can wait.
 */
static int read_function(struct function *fn, struct err *err)
{
	char driver[NAME_MAX + 1], addr[BDF_STRLEN];
	bool named = fn->rec.is_vf;
	uint32_t vendor = 0;
	int r = named ? 0 : read_kind(fn, err);

	if (r < 0)
		return r;
	if (!named)
		read_physfn(fn);
	read_numa(fn);
	r = dir_link_name(&fn->dir, "driver", driver, sizeof(driver));
	if (!r && *driver)
		fn->rec.driver = arena_strdup(fn->s->arena, driver);
	else if (r != -ENOENT)
		scan_note(fn->s, "%s: driver is not a link to a name; taken as absent",
			  bdf_format(fn->rec.bdf, addr));
	if (!fn->rec.is_vf)
		read_physical(fn);
	if (!is_bridge(&fn->rec)) {
		read_netdev(fn);
		scan_function_rdma(fn->s, &fn->dir, &fn->rec, fn->index, fn->pf, fn->place.path);
	}
	r = named ? read_kind(fn, err) : 0;
	if (r < 0 || (named && fn->has_ids))
		return r;
	r = read_id(fn, "vendor", UINT16_MAX, &vendor, err);
	fn->rec.vendor = (uint16_t)vendor;
	return r;
}

/* The link's text; it must end in the name of its entry. A plain directory (a tree made by hand)
 * has none. */
static int read_path(struct function *fn, const struct dir *devices, const char *name,
		     struct err *err)
{
	const char *pf = fn->beside ? fn->s->place[fn->pf].path : NULL;
	const char *last = pf ? strrchr(pf, '/') : NULL;
	char text[PATH_MAX], addr[BDF_STRLEN];
	struct bdf end;
	int n;

	if (last) { /* beside the PF's, so that it need not be read */
		fn->place.path = arena_printf(fn->s->arena, "%.*s/%s", (int)(last - pf), pf,
					      bdf_format(fn->rec.bdf, addr));
		return 0;
	}
	n = dir_link(devices, name, text, sizeof(text));
	if (n == -EINVAL)
		return 0;
	if (n < 0)
		return err_set(err, -n, "%s: %s", name, n == -ENOENT ? "vanished" : strerror(-n));
	last = strrchr(text, '/');
	last = last ? last + 1 : text;
	if (bdf_parse(last, &end) < 0 || bdf_cmp(end, fn->rec.bdf))
		return err_set(err, EINVAL, "%s: its link leads to '%.40s'", name, last);
	fn->place.path = arena_strdup(fn->s->arena, text);
	return 0;
}

static int open_function(struct function *fn, const struct dir *devices, const char *name,
			 struct err *err)
{
	char path[PATH_MAX];
	int r = read_path(fn, devices, name, err);

	if (r < 0)
		return r;
	if (fn->beside && fn->place.path)
		snprintf(path, sizeof(path), DEVICES "/%s", fn->place.path);
	else
		snprintf(path, sizeof(path), DEVICES "/%s", name);
	r = dir_open_path(fn->s->root, path, &fn->dir);
	if (r == -ENOENT)
		return err_set(err, ENOENT, "%s: vanished while it was looked at", name);
	if (r < 0)
		return err_set(err, -r, "%s: cannot be opened: %s", name, strerror(-r));
	/* From here on sentences and links speak of it by its entry. */
	fn->dir.up = devices;
	fn->dir.name = name;
	return 0;
}

/* These come from the process, not from the machine: another scan may see more. */
static bool may_pass(int r)
{
	return r == -EMFILE || r == -ENFILE || r == -ENOMEM || r == -EIO;
}

static int scan_function(struct scan *s, const struct dir *devices, const char *name,
			 struct bdf bdf, struct err *ret_err)
{
	struct function fn = {
		.s = s,
		.dir = DIR_CLOSED,
		.rec = hw_pci_unknown(bdf),
		.place = { .pf = bdf, .numa = -1, .offset = -1, .stride = -1 },
		.index = (int)s->n_pci,
		.pf = -1,
	};
	/* The kernel makes both links at once: a function that its PF named needs no look at
	 * physfn. */
	const struct vf_link *link = scan_vf_link(s, bdf);
	size_t n_rdma = s->n_rdma, n_notes = s->n_notes, n_gpu = s->n_gpu, n_vf = 0;
	struct err err = { 0 };
	int r;

	if (link) {
		fn.rec.is_vf = true;
		fn.beside = link->beside;
		fn.pf = link->pf;
		fn.place.pf = s->pci[link->pf].bdf;
	}
	r = open_function(&fn, devices, name, &err);
	if (r >= 0)
		r = read_function(&fn, &err);
	if (r >= 0) {
		scan_function_gpu(s, &fn.dir, &fn.rec, fn.index);
		if (s->n_gpu > n_gpu)
			read_subsystem(&fn);
		s->pci = xgrow(s->pci, &s->cap_pci, s->n_pci + 1, sizeof(*s->pci));
		s->place = xgrow(s->place, &s->cap_place, s->n_pci + 1, sizeof(*s->place));
		s->place[s->n_pci] = fn.place;
		s->pci[s->n_pci++] = fn.rec;
	} else {
		/* Nothing of it remains but one sentence. */
		s->n_rdma = n_rdma;
		for (size_t i = 0; i < s->n_vf; i++) {
			if (s->vf[i].pf != fn.index)
				s->vf[n_vf++] = s->vf[i];
		}
		s->n_vf = n_vf;
		s->n_notes = n_notes;
		scan_note(s, "%s; device skipped", err.msg);
	}
	dir_close(&fn.dir);
	return may_pass(r) ? err_set(ret_err, -r, "%s", err.msg) : 0;
}

int scan_find(const struct scan *s, struct bdf bdf)
{
	struct hw_inventory view = { .pci = s->pci, .n_pci = s->n_pci };

	return hw_find_pci(&view, bdf);
}

struct entry {
	struct bdf bdf;
	const char *name;
};

static int by_address(const void *a, const void *b)
{
	const struct entry *ea = a, *eb = b;
	int c = bdf_cmp(ea->bdf, eb->bdf);

	return c ? c : strcmp(ea->name, eb->name);
}

int scan_pci(struct scan *s, struct err *err)
{
	_cleanup_names_ struct names names = NAMES_EMPTY;
	_cleanup_free_ struct entry *entries = NULL;
	_cleanup_dir_ struct dir devices = DIR_CLOSED;
	int r = dir_open_path(s->root, DEVICES, &devices);
	size_t n = 0;

	if (r >= 0)
		r = names_of(&devices, &names);
	if (may_pass(r))
		return err_set(err, -r, DEVICES " cannot be read: %s", strerror(-r));
	if (r < 0 && r != -ENOENT)
		scan_note(s, DEVICES " cannot be read: %s", strerror(-r));
	entries = xcalloc(names.n, sizeof(*entries));
	for (size_t i = 0; i < names.n; i++) {
		if (!bdf_parse(names.v[i], &entries[n].bdf))
			entries[n++].name = names.v[i];
		else
			scan_note(s, DEVICES ": '%.40s' is not a PCI address; skipped", names.v[i]);
	}
	qsort(entries, n, sizeof(*entries), by_address);
	r = 0;
	for (size_t i = 0; r == 0 && i < n; i++) {
		if (i && !bdf_cmp(entries[i - 1].bdf, entries[i].bdf))
			scan_note(s, "%s: the same address as %s; skipped", entries[i].name,
				  entries[i - 1].name);
		else
			r = scan_function(s, &devices, entries[i].name, entries[i].bdf, err);
	}
	return r;
}
