/*
 * One scan in progress: the tables grow here and move into the inventory's arena at the end. Each
 * phase is in a file: discover.c (the machine as a whole), pci.c (functions, and what they are to
 * each other), card.c (VPD), lldp.c, rdma.c (RDMA devices, rates of VFs), gpu.c.
 */
#ifndef RAILMATE_DISCOVER_SCAN_INTERNAL_H
#define RAILMATE_DISCOVER_SCAN_INTERNAL_H

#include <limits.h>

#include "base/err.h"
#include "discover/discover.h"
#include "hw/vpd.h"
#include "sysroot/dir.h"
#include "sysroot/sysroot.h"

/* Needed beside a function's record to place it; same index as the record. */
struct place {
	const char *path;   /* text of its link in sys/bus/pci/devices; NULL: a plain directory */
	int depth;	    /* PCI addresses in path */
	int numa;	    /* its own node, -1 */
	struct bdf pf;	    /* the target of physfn, when is_vf */
	int offset, stride; /* sriov_offset, sriov_stride of a PF; -1 unknown */
};

/* "<name> of this class belongs to function bdf", from the text of the class directory's link. */
struct class_link {
	struct bdf bdf;
	const char *name;
	bool taken; /* its function was asked for it */
};

/* Every device of one class that has a PCI function, sorted by function, then name; and the names
 * of the others. */
struct class_map {
	struct class_link *links;
	size_t n, cap;
	struct names others;
};
enum class_kind { CLASS_NET, CLASS_RDMA, CLASS_VERBS, CLASS_MAX };

/* virtfn<index> of pci[pf] is vf. */
struct vf_link {
	struct bdf vf;
	int pf, index;
	bool beside; /* the link's text is "../<vf>": its directory is beside its PF's */
};

struct scan {
	const struct sysroot *root;
	struct arena *arena;
	const struct gpu_match *gpus;
	size_t n_gpus;
	bool is_virtual; /* by a VMBus or the processor */
	struct class_map classes[CLASS_MAX];

	struct hw_pci *pci;
	size_t n_pci, cap_pci;
	struct place *place;
	size_t cap_place;
	struct hw_rdma *rdma;
	size_t n_rdma, cap_rdma;
	struct hw_gpu *gpu;
	size_t n_gpu, cap_gpu;
	struct hw_mig *mig;
	size_t n_mig, cap_mig;
	struct hw_card *card;
	size_t n_card, cap_card;
	bool any_direct; /* data direct functions */
	struct scan_vpd *vpd;
	struct hw_neighbor *neighbor;
	size_t n_neighbor, cap_neighbor;
	struct hw_numa *numa;
	size_t n_numa, cap_numa;
	struct vf_link *vf;
	size_t n_vf, cap_vf;
	const char **notes;
	size_t n_notes, cap_notes;
};

void scan_note(struct scan *s, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

/*
 * A number in a file. -ENOENT: no such file, without a sentence; any other failure has one that
 * names the device, the file and the value.
 */
int attr_u64(const struct dir *d, const char *name, int base, uint64_t max, uint64_t *ret,
	     struct err *err);
int attr_int(const struct dir *d, const char *name, int *ret, struct err *err);
/* A number in a file, with the sentence in the notes; `fallback` when there is no number. */
int scan_int(struct scan *s, const struct dir *d, const char *name, int max, int fallback);
/* "a: b" → b, a string in the arena, NULL when there is none; -ENOENT: no such file. */
int scan_word(struct scan *s, const struct dir *d, const char *name, const char **ret);
/* A sentence about a value that is not understood. */
void scan_note_value(struct scan *s, const struct dir *d, const char *name, const char *value);
/* "<number> <unit>…" in thousandths: "2.5 GT/s PCIe" → 2500. 0 and -EINVAL. */
int parse_thousandths(const char *text, const char *unit, int *ret);

bool scan_numa_exists(const struct scan *s, int node);

/*
 * Names of a function's devices of one class. Reading a link of the class directory costs a third
 * of opening and listing a directory of the function, so that is asked first; the function's own
 * directory decides where the class directory has nothing (a tree without it, or two functions that
 * claim one name).
 */
void scan_classes(struct scan *s);
void classes_done(struct scan *s);
int scan_class_names(struct scan *s, enum class_kind kind, const struct dir *dev, struct bdf bdf,
		     struct names *ret);

int scan_pci(struct scan *s,
	     struct err *err); /* negative: the bus could not be read, which may pass */
int scan_find(const struct scan *s, struct bdf bdf); /* among the functions committed so far; -1 */

/* Gives every bridge that others' ways name a record: before scan_place(). Moves the functions'
 * indices. */
void scan_missing_bridges(struct scan *s);
void scan_place(struct scan *s);
/* VPD, and which data direct function is whose. VPD that `before` has of the same functions is not
 * read. Begin after scan_pci(); scan_cards() waits for the end: last. */
void scan_cards_begin(struct scan *s, const struct hw_inventory *before);
void scan_cards(struct scan *s, const struct hw_inventory *before);
/* After scan_missing_bridges(). A NIC without a link keeps its neighbour of `before`, and all do
 * while the file cannot be used. */
void scan_neighbors(struct scan *s, const struct hw_inventory *before);
/* Rate limits of VFs: after scan_place(). */
void scan_rates(struct scan *s);

/*
 * RDMA devices of the function f whose directory is open, as pci[pci]. pf is its PF's index or -1:
 * a VF sits on its PF's port, whose link layer and rate are then known already.
 */
/* `way` is the text of the function's link; NULL: none. */
void scan_function_rdma(struct scan *s, const struct dir *dev, const struct hw_pci *f, int pci,
			int pf, const char *way);
/* RDMA devices that no function owns: soft ones, and others that only the class directory shows. */
void scan_class_rdma(struct scan *s);

void scan_function_gpu(struct scan *s, const struct dir *dev, const struct hw_pci *f, int pci);
void scan_migs(struct scan *s);		/* after scan_missing_bridges() */
int acs_control(const struct dir *dev); /* of a bridge; -1 unknown */

/* Fills in inv->part, by amdgpu's devices of partitions and its topology. */
void scan_gpu_parts(const struct sysroot *root, struct hw_inventory *inv);

#endif
