/*
 * The offer of this node to schedulers: its pools as ResourceSlices (resource.k8s.io/v1). Pure:
 * equal input gives equal bytes.
 *
 * A pool is offered in one of two ways. Abstract: slots, each of which stands for any VF of the
 * pool; which one, is decided when a claim is prepared. Exact: one device for each PF (for a VF
 * whose PF is not visible itself), which claims share and take VFs of, with its place in the
 * machine as attributes.
 *
 * Names of devices follow from the pool's resource and the PF's address alone: a claim has them for
 * as long as it lives.
 */
#ifndef RAILMATE_DRA_SLICES_H
#define RAILMATE_DRA_SLICES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct arena;
struct draclaim_device;
struct item;
struct node;
struct pool;
struct strbuf;

/* The API server's limits (k8s.io/api/resource/v1 types.go, 1.37). */
#define SLICE_DEVICES_MAX	 128
#define SLICE_DEVICES_TAINTS_MAX 64 /* where a device of the slice may have a taint */
#define SLICE_ATTRIBUTE_MAX	 64 /* bytes of a string; a longer one is left out */
#define SLICE_DEVICE_NAME_MAX	 63

struct slices_pool {
	const struct pool *pool;
	bool exact;
	/* abstract: the numbers of slots, ascending: those that claims have, and as many of the
	 * others as there are VFs for claims to come */
	const unsigned *slots;
	size_t n_slots;
	/* exact: VFs that no claim has or may have; sorted by list_by_string() */
	const char *const *lost;
	size_t n_lost;
};

struct slices_in {
	const struct node *node;
	const struct slices_pool *v;
	size_t n;
	/* A PF whose link is down or degraded has a taint; false: its VFs are not counted */
	bool taints;
};

/* The devices of one ResourceSlice, as a JSON list. */
struct slice {
	const char *devices;
	size_t n;
	uint64_t sum; /* of the text */
};
struct slices {
	const struct slice *v;
	size_t n; /* 0: nothing is offered */
};

/* In the arena. */
struct slices slices_plan(const struct slices_in *in, struct arena *a);

/* A ResourceSlice, as it is sent. */
struct slice_object {
	const struct slice *slice;
	const char *driver, *node_name, *node_uid;
	uint64_t generation; /* of all slices of this node */
	size_t index, count; /* which of them */
	/* The object that is replaced, and its resourceVersion; NULL: a new one, the API server
	 * chooses its name */
	const char *name, *version;
	const char *mark; /* ours, for the annotation SLICES_MARK */
};
#define SLICES_MARK "railmate.io/slice"

void slices_write(const struct slice_object *o, struct strbuf *out);

/* The PCI address of a device of another driver (resource.kubernetes.io/pciBusID): list is a list
 * of ResourceSlices, as the API server has it in JSON. NULL: it has none. */
const char *slices_address(const struct item *list, const struct draclaim_device *d);

/* --- devices of claims --- */

struct slices_device {
	const struct pool *pool;
	const char *place; /* exact: pool_dev_place() of its VFs; NULL: a slot */
	unsigned number;   /* the slot's */
};

/* Whose device is it? Of a pool that the node has, whether or not the device is offered now. */
bool slices_find(const struct node *node, const char *device, struct slices_device *ret);
const char *slices_name(const struct slices_device *device, struct arena *a);

#endif
