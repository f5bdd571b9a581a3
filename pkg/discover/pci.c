/*
 * PCI functions: one flat pass over sys/bus/pci/devices. The text of each entry's link is the whole
 * way from the root complex to the function, so the tree is built in memory afterwards (place.c).
 * Walking sys/devices instead would open every directory on the way, and on Hyper-V the ways start
 * below ACPI objects of any depth.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/mem.h"
#include "base/str.h"
#include "discover/scan-internal.h"

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
