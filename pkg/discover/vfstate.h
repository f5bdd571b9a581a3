/*
 * A VF as it is the moment a container starts: in whatever network namespace its netdev and its
 * RDMA device are by then (the sandbox and the CNI plugins are done when PreStartContainer comes;
 * docs/design/nccl.md §1.6).
 *
 * Namespaces are files below a directory (/run/netns: containerd and CRI-O bind them there). To
 * look into one takes CAP_SYS_ADMIN; without it, and where the directory is not there, what the
 * host's own namespace shows is told: with RDMA devices in shared mode that is the GID table too.
 */
#ifndef RAILMATE_DISCOVER_VFSTATE_H
#define RAILMATE_DISCOVER_VFSTATE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "discover/discover.h"

struct arena;
struct err;
struct sysroot;

struct ip_addr {
	uint8_t addr[16]; /* IPv4 mapped into ::ffff:0:0/96, as in a GID */
	int prefix;	  /* of 128 */
	const char *netdev;
};

enum vf_seen {
	VF_SEEN_HOST,	 /* its netdev is in our own namespace */
	VF_SEEN_POD,	 /* in another one, which was looked into */
	VF_SEEN_OUTSIDE, /* away, and its namespace was not looked into (why): the tables are those
			    that the host shows */
	VF_SEEN_NOTHING, /* away, and nothing is known of it */
};

/* Strings and tables are in the arena that vf_look() was given. */
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

/*
 * Looks at each function, in the host's namespace and, for those that are not there, in the
 * namespaces below netns_dir (newest first; NULL: none). Changes namespaces: the calling thread
 * must be one that ends afterwards (grant/vfprobe.h). A namespace that goes away meanwhile is as if
 * it had never been. -ENOENT: a function is gone from the bus. Never waits for anybody.
 */
int vf_look(const struct sysroot *root, const char *netns_dir, const struct bdf *bdfs, size_t n,
	    struct arena *arena, struct vf_state *ret, struct err *err);

#endif
