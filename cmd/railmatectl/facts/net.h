/*
 * Facts of networks: ports, VFs as their PF's administrator set them, tables, QoS, limits of this
 * process. Gathered by net.c: files below the root, and, of the running kernel (live root only),
 * answers of netlink and system calls.
 */
#ifndef RAILMATE_FACTS_NET_H
#define RAILMATE_FACTS_NET_H

#include "facts/facts.h"
#include "hw/dcb.h"
#include "hw/vfadmin.h"
#include "hw/vfstate.h"

/* An RDMA device, as far as hw_rdma does not have it; the tables are those of its first ACTIVE
 * port, else its first. */
struct facts_rdma {
	int port;		       /* number of that port; 0: it has none */
	const char *node_guid;	       /* as the file says; NULL unknown */
	const char *fw_ver, *board_id; /* NULL unknown */
	enum facts_answer node;	       /* its uverbs node is in /dev */
	/* The host forces it on every packet (MLNX_OFED); -1: none, or unknown */
	int traffic_class;
	bool gids_known;
	const struct gid_entry *gids;
	size_t n_gids;	     /* of VFs, and of devices that have none */
	int pkey0;	     /* the key at index 0; -1 unknown */
	int n_pkeys, n_full; /* keys, and those of full members; -1 unknown */
};

/* The netdev of a switchdev PF that stands for one of its VFs. */
struct facts_representor {
	int vf;
	const char *netdev;
	enum facts_answer attached; /* to a bridge, a bond or Open vSwitch */
	enum facts_answer up;
};

/* The netdev of a NIC function. */
struct facts_netdev {
	int mtu;	      /* 0 unknown */
	enum facts_answer up; /* switched on by the administrator */
	const char *mac;      /* as the file says; NULL unknown */
	/* The first IPv4 subnet that is reached by it without a router, in network byte order; mask
	 * 0: none, or not known. The kernel's settings there; -1 unknown. */
	uint32_t subnet, subnet_mask;
	int arp_ignore, arp_announce, rp_filter;
	const struct facts_representor *reps;
	size_t n_reps;
	/* Of PFs with VFs, from the running kernel. NULL why_…: known. */
	const struct hw_vf_admin *vfs;
	size_t n_vfs;
	const char *why_no_vfs; /* the reason why they are unknown: a clause */
	struct hw_dcb dcb;
	const char *why_no_dcb;
	/* Bits of priorities; -1 unknown. Of RoCE's congestion control (DCQCN) the end that reports
	 * ECN marks, and the one that slows down. */
	int ecn_notify, ecn_react;
};

struct facts_net {
	const struct facts_rdma *rdma;	   /* one for each of inv->rdma, same index */
	const struct facts_netdev *netdev; /* one for each of inv->pci, same index */
	int exclusive;	 /* RDMA network namespace mode: 1 exclusive, 0 shared, -1 unknown */
	int64_t memlock; /* bytes that this process may lock; -1 no limit, -2 unknown */
	enum facts_answer ipc_lock; /* it has CAP_IPC_LOCK, which lifts that limit */
	int64_t shm;		    /* bytes of /dev/shm; -1 unknown */
};

#endif
