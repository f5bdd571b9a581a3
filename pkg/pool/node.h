/*
 * The node as one immutable value: inventory, topology and the pools of the configuration. The room
 * decides about the devices of a resource, their health and slots. A node is built whole, replaced
 * whole and shared by reference count (atomic): any thread may read.
 */
#ifndef RAILMATE_POOL_NODE_H
#define RAILMATE_POOL_NODE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "topo/rails.h"
#include "topo/topo.h"

struct bdf;
struct config;
struct hw_inventory;
struct node;
struct node_link;
struct pool;
struct pool_config;
struct strbuf;
struct topo;

enum pool_fault {
	POOL_FAULT_NONE,
	POOL_FAULT_GONE,
	POOL_FAULT_NO_DRIVER,
	POOL_FAULT_NO_RDMA,
	POOL_FAULT_LINK_DOWN,
	POOL_FAULT_LINK_DEGRADED,
	POOL_FAULT_NOT_SELECTED,
	POOL_FAULT_MAX
};

/* number: of the RDMA device of a PF; 0: it has none, and this is its interface. */
struct node_port {
	int number;
	int up;	     /* 1, 0; -1: not known, or not used */
	bool was_up; /* in this node, or in one of those before it */
};

/* A PF that devices of pools have; or had, and it is missing. */
struct node_pf {
	const char *address;
	const char *netdev, *rdma; /* NULL: none */
	int pci;		   /* index into the inventory; -1: gone from the bus */
	const char *missing;	   /* a clause: "is gone from the PCI bus"; NULL: it is here */
	bool wanted;		   /* by the configuration; always true of a device that is here */
	const struct node_port *ports;
	size_t n_ports;		   /* 1 at least */
	const char *const *shared; /* resources for which containers share it */
	size_t n_shared;
};

struct pool_dev {
	const char *id;		  /* PCI address; stable, unique on the node */
	int pci;		  /* index into the inventory; -1: it vanished, but may be in use */
	const struct node_pf *pf; /* NULL: not known */
	int rdma;		  /* index of its RDMA device; -1 */
	bool rdma_away;		  /* rdma is -1 as a container has it: its driver is still here */
	/* The selector that took it has no isRdma, though another of its pool has */
	bool plain;
	bool vhost_net; /* that selector has needVhostNet */
	bool had_rdma;	/* with the driver that it has now it was seen with one, or has one */
	/* Its RDMA device, also while that is out of sight; NULL: none, or not known */
	const char *rdma_name;
	uint16_t pkey; /* hw_rdma.pkey, also while it is out of sight; 0 unknown */
	/* The configuration does not put it into this pool any more, or its PF, which is there,
	 * does not have it: it stays while a container holds it */
	bool left_over;
	int numa; /* its node, also under excludeTopology; -1: none known, no TopologyInfo */
	/* The trouble of its PF's link, a clause (pool/link.h); NULL: none is known */
	const char *degraded;
	bool healthy;
	enum pool_fault fault; /* why not */
	const char *reason;    /* the same as a sentence; NULL when healthy */
};

struct pool {
	const struct pool_config *cfg;
	const struct pool_dev *devs; /* sorted by address */
	size_t n_devs;
};

struct node {
	uint64_t generation; /* grows with every change */
	const struct hw_inventory *inv;
	const struct topo *topo;
	const struct topo_rails *rails;
	const struct config *cfg; /* a reference */
	const struct pool *pools; /* as in the configuration; may be empty */
	size_t n_pools;
	/* Pools of HCAs that containers share: not held, and in no other list */
	const struct pool *shared;
	size_t n_shared;
	const struct node_link *links; /* degraded ones */
	size_t n_links;
	const struct node_pf *pfs; /* of pools and shared */
	size_t n_pfs;
	const struct bdf *with_vfs; /* PFs that have VFs, or had in a node before; ascending */
	size_t n_with_vfs;
	const char *const *notes; /* claimed by two pools, ranges without match, … */
	size_t n_notes;
};

/*
 * A VF that containers hold by the ledger, the kubelet or a CDI spec is listed as if the node
 * before had listed it, also while the VF's RDMA device is out of sight. For the first node after a
 * restart (previous NULL; then a VF that is not on the bus is listed, too), or when a hold comes to
 * light later. Resources that are not configured are left out, and devices that previous lists are
 * as they were. Strings are copied.
 */
struct node_seed {
	const char *resource, *vf;
	/* The RDMA device it had; NULL not known: it had one if its pool needs that */
	const char *rdma;
	const char *driver; /* that it was bound to; NULL not known */
};
/* A link that is degraded by link_judge(). Strings are copied. */
struct node_link {
	const char *resource, *pf; /* a pool, and the PCI address of a PF of its VFs */
	const char *degraded;	   /* a clause */
	bool unhealthy;		   /* the pool's configuration has its VFs reported unhealthy */
	int port;		   /* of its RDMA device, from 1; 1 also where it has none */
	unsigned trouble;	   /* enum link_trouble, config/config.h */
	int64_t since_ms;	   /* Unix time; 0 not known */
};
/* The parts of a node beside the inventory; one that is not needed is 0. */
struct node_parts {
	const struct config *cfg; /* the node has a reference */
	/*
	 * The node before. A device that it listed stays in the pool of that name for as long as
	 * nodes follow each other, even if another pool matches it now: a container may use it. It
	 * is unhealthy while it is gone, or not selected any more.
	 */
	const struct node *previous;
	const struct node_seed *seeds;
	size_t n_seeds;
	/*
	 * For another configuration than that of previous, or to look through the VFs left over of
	 * one: seeds are all that containers hold now, and only these stay where they are, in any
	 * pool. Everything else goes where cfg puts it; a device that serves no pool today because
	 * of its hardware (it is gone, or has no driver) stays, unhealthy, in a pool that is still
	 * configured.
	 */
	bool held_only;
	const struct node_link *links;
	size_t n_links;
};
/* inv is taken. */
struct node *node_make(struct hw_inventory *inv, const struct node_parts *parts);
/* Has it a retired pool, or a device that is left over? */
bool node_has_left_over(const struct node *n);
struct node *node_ref(struct node *n);
struct node *node_unref(struct node *n); /* returns NULL; NULL is fine */
const struct pool *node_pool(const struct node *n, const char *resource);   /* NULL unknown */
const struct pool *node_shared(const struct node *n, const char *resource); /* NULL unknown */
const struct node_pf *node_pf(const struct node *n, const char *address);   /* NULL unknown */
/* Was the port up in the node before? 1, 0; -1: not known. */
int node_port_was_up(const struct node_pf *before, const struct node_pf *now,
		     const struct node_port *port);
/* How many devices that were in order have no driver, or one without RDMA, since the node before;
 * the first of them. */
size_t pool_lost_drivers(const struct pool *before, const struct pool *now,
			 const struct pool_dev **ret_first);
const struct pool_dev *pool_find(const struct pool *p, const char *id); /* NULL unknown */
/* Does the container of a device get its RDMA nodes and variables? By the selector that took the
 * device, as the peer judges. */
bool pool_dev_is_rdma(const struct pool *p, const struct pool_dev *dev);
/* Is it a whole PF, and no VF? A function that is gone from the bus is taken for a VF. */
bool pool_dev_is_pf(const struct node *n, const struct pool_dev *dev);
/* The address of its PF; of a VF whose PF is not visible, its own. */
const char *pool_dev_place(const struct pool_dev *dev);
/* topo_between() as its containers find it: not all use Data Direct. */
struct topo_path pool_between(const struct pool *p, const struct topo *t, int a, int b);
/*
 * The rail of a VF of the pool that NCCL is given; rail -1: none (docs/design/nccl.md §1.1). Every
 * release reads it behind the port of NCCL_IB_HCA, or passes over it; since 2.30.7 NCCL connects no
 * two planes, so numbers that are only counted, and may be wrong for the fabric, are given where a
 * pool asks for them.
 */
struct topo_rail pool_nccl_rail(const struct pool *p, const struct topo_rails *rails, int pci);
/* Is there no more than NCCL takes of planes? Beyond, it ends when it starts (docs/design/nccl.md
 * §1.1). Rails whose plane is not known count as one more. */
#define POOL_NCCL_PLANES_MAX 12
bool pool_planes_fit(const struct topo_rail *v, size_t n);
/* Are the lists of both pools for the kubelet equal (ids, health, NUMA unless excludeTopology)? */
bool pool_same_list(const struct pool *a, const struct pool *b);

/* A pool without a device on this node: a mistake, or a node that the pool is not meant for? */

/* Are pools meant for such a node? It has VFs with RDMA devices; or GPUs, and cards with RDMA that
 * could have VFs. */
bool pool_is_meant_for(const struct hw_inventory *inv);
/* Is there nothing here for any pool? None has a device, and they are not meant for such a node. */
bool pool_is_idle(const struct node *node);
/* The explanation of a pool without devices, for the operator: the cards that it names and are not
 * here, and those that are. One paragraph. */
void pool_say_empty(const struct node *node, const struct pool *pool, struct strbuf *out);

#endif
