/* The state of a VF when it was probed: its network, its GIDs, its nodes. */
#ifndef RAILMATE_HW_VFSTATE_H
#define RAILMATE_HW_VFSTATE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "hw/bdf.h"
#include "hw/inventory.h"

/* How user space reaches a function that a user-space driver is bound to. */
struct user_io {
	bool vfio; /* needs /dev/vfio/vfio, too; else a uio driver */
	/* "/dev/vfio/12", "/dev/uio3", as the container sees it; "": the kernel shows none */
	char node[32];
	char host[32]; /* the same on the host: "/dev/vfio/noiommu-12" without an IOMMU */
};

/* An entry of the GID table of a port. A type that cannot be read is "". */
struct gid_entry {
	int index;
	uint8_t gid[16];
	char type[16]; /* "IB/RoCE v1", "RoCE v2" */
	char ndev[64];
};
#define GID_TABLE_MAX 256

struct ip_addr {
	uint8_t addr[16]; /* IPv4 mapped into ::ffff:0:0/96, as in a GID */
	int prefix;	  /* of 128 */
	const char *netdev;
};

enum vf_seen {
	VF_SEEN_HOST, /* its netdev is in our own namespace */
	VF_SEEN_POD,  /* in another one, which was looked into */
	/* Away, and its namespace was not looked into (why): the tables are those that the host
	 * shows */
	VF_SEEN_OUTSIDE,
	VF_SEEN_NOTHING, /* away, and nothing is known of it */
};

/* Strings and tables are in the arena of the caller that probed. */
struct vf_state {
	struct bdf bdf;
	enum vf_seen seen;
	const char *netns;  /* name of the namespace's file; NULL unless VF_SEEN_POD */
	const char *why;    /* a sentence for VF_SEEN_OUTSIDE and VF_SEEN_NOTHING; NULL else */
	const char *netdev; /* its name where it is now; NULL: none, or not known */
	int mtu;	    /* 0 unknown */
	const struct ip_addr *addrs;
	size_t n_addrs; /* of all netdevs of that namespace: upper devices (VLAN) have GIDs too */
	bool addrs_known;
	const char *rdma, *uverbs; /* NULL: none */
	int port;		   /* the first ACTIVE one, else 1 */
	const char *port_state;	   /* "ACTIVE"; NULL unknown */
	enum hw_link link;
	const struct gid_entry *gids;
	size_t n_gids;	   /* the whole table of that port, without empty slots */
	int gid_table_len; /* how many slots the table has; 0 unknown */
	const uint16_t *pkeys;
	size_t n_pkeys; /* the whole table, index by index, 0 where a slot is empty */
	int exclusive;	/* RDMA network namespace mode: 1 exclusive, 0 shared, -1 unknown */
};

#endif
