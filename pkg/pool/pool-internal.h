/* Shared by the files of the room. */
#ifndef RAILMATE_POOL_POOL_INTERNAL_H
#define RAILMATE_POOL_POOL_INTERNAL_H

#include <stdbool.h>
#include <stddef.h>

#include "hw/bdf.h"

struct arena;
struct config;
struct hw_inventory;
struct hw_pci;
struct node;
struct node_link;
struct node_pf;
struct pf_selector;
struct pool;
struct pool_config;
struct pool_dev;

/* A network function, with the facts that selectors and the health rule ask of it. Computed once,
 * not per pool. */
struct nic {
	int pci;
	const struct hw_pci *fn;
	const struct hw_pci
		*pf; /* a VF's PF, NULL when that is not visible; of any other function itself */
	char pf_address[BDF_STRLEN]; /* "" without pf */
	bool is_vf;		     /* also one that was passed through to this machine */
	bool usable;		     /* a candidate with a driver */
	bool had_vfs;		     /* a PF that has VFs, or had in a node before */
	int rdma;
	bool had_rdma;	/* it was seen with an RDMA device, and has still the same driver */
	bool rdma_away; /* had an RDMA device, has still the same driver: it is in a container */
	const char *away_name;		/* of that device; NULL: not known */
	uint16_t pkey;			/* of rdma, or the last one seen; 0 unknown */
	const char *link;		/* "ether", "infiniband"; NULL unknown */
	int carrier;			/* of the PF: 1, 0, -1 unknown or not looked at */
	const char *port_state;		/* of the PF's first RDMA port; NULL */
	const struct node_link *unwell; /* of its PF, in its pool; NULL */
	const struct pool_dev *before;	/* its entry in the node before; NULL */
	int owner;			/* pool; -1 */
	bool plain, vhost_net;		/* as in pool_dev */
	bool selected;			/* by its owner's selectors, today */
	bool named;			/* one by one, by these */
	bool left_over;			/* as in pool_dev, unless it is selected */
};

/* Fill in everything but `before`, `owner`, `selected` and the facts of the node before. */
void nic_init(struct nic *nic, const struct hw_inventory *inv, int pci);
bool nic_has_rdma(const struct nic *nic);
/* The name that pfNames and rootDevices compare. NULL: not a VF, or its PF is not visible. */
const char *nic_pf_name(const struct nic *nic);
const char *nic_pf_address(const struct nic *nic);

struct selector;
/* Does the configuration of a pool select it? The first item that does goes to *ret; NULL: the pool
 * has none. */
bool match_pool(const struct pool_config *cfg, const struct nic *nic, const struct selector **ret);
/* Of a pool with one selector and no device: the first key of it that leaves no function, the
 * number of functions before it, and their values. False: nothing can be added. */
struct strbuf;
bool match_explain(const struct pool_config *cfg, const struct nic *nics, size_t n, struct arena *a,
		   struct strbuf *out);
/* Does the selector name functions one by one? NULL: no. */
bool match_names(const struct selector *s);
/* The first entry that names the PF: it alone decides. NULL: none does. */
const struct pf_selector *match_deciding(const struct pf_selector *list, size_t n,
					 const char *name);
bool match_index(const struct pf_selector *entry, int vf_index);

/* Everything that the health rule looks at. */
struct health_view {
	const char *id, *resource;
	bool gone;
	const char *driver; /* NULL: none */
	bool needs_rdma, has_rdma;
	const char *pf_address, *pf_netdev; /* NULL unknown */
	int carrier;			    /* of the PF */
	const char *port_state;		    /* of the PF; NULL unknown */
	bool selected;
	const char *degraded; /* a clause: its PF's link, where the pool calls it unhealthy; NULL */
};
/* Sets healthy, fault and reason. */
void health_judge(const struct health_view *v, struct arena *arena, struct pool_dev *dev);

/* node.pfs while it is built. */
struct pfs {
	struct arena *arena;
	const struct hw_inventory *inv;
	const struct node *previous; /* NULL: none */
	struct node_pf *v, **of;     /* of: by PCI index */
	size_t n;
};
void pfs_begin(struct pfs *t, struct arena *scratch); /* the members above are filled in */
struct node_pf *pfs_of(struct pfs *t, int pci);	      /* of a device; NULL: not known */
struct node_pf *pfs_still(struct pfs *t, const struct node_pf *before); /* NULL of NULL */
void pfs_share(struct pfs *t, struct node_pf *pf, const char *resource);
/* Called when all devices of pools have their PF. */
void pfs_end(struct pfs *t, const struct config *cfg, const struct pool *pools);

/* Do its containers use Data Direct? NCCL's, UCX's and NVSHMEM's newest do, unless "env" says no;
 * not where "profiles" has libraries alone that cannot (MSCCL++, libfabric, oneCCL). A node where
 * no pool does has a topology without (topo_forget_direct()). */
bool pool_uses_direct(const struct pool *p);

/* "rdma/vf", node 0, 3 → "rdma_vf-n0-3"; SLOT_ANY → "rdma_vf-any-3". At most SLOT_ID_MAX bytes; no
 * two resources have one in common. */

/* Canonical PCI addresses in address order: a longer domain is a greater one. */
int pool_id_cmp(const char *a, const char *b);

/*
 * Is this PCI function a device of netDevice pools at all: a NIC VF, or a NIC without VFs (peer
 * rule)? -1 is not. The built-in pool takes only VFs; a function that carries the default route
 * goes to no pool.
 */
bool pool_candidate(const struct hw_inventory *inv, int pci);

#endif
