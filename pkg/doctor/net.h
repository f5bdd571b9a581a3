/*
 * What the doctor knows of networks: ports, VFs as their PF's administrator set them, tables, QoS,
 * limits of this process. Gathered by net_facts.c: files below the root, and of the running kernel
 * (live root only) what netlink and system calls say.
 */
#ifndef RAILMATE_DOCTOR_NET_H
#define RAILMATE_DOCTOR_NET_H

#include "discover/discover.h"
#include "doctor/doctor.h"
#include "hw/dcb.h"
#include "hw/vfadmin.h"

/* An RDMA device, as far as hw_rdma does not have it; the tables are those of its first ACTIVE
 * port, else its first. */
struct doctor_rdma {
	int port;		       /* number of that port; 0: it has none */
	const char *node_guid;	       /* as the file says; NULL unknown */
	const char *fw_ver, *board_id; /* NULL unknown */
	enum doctor_answer node;       /* its uverbs node is in /dev */
	int traffic_class; /* what the host forces on every packet (MLNX_OFED); -1: nothing, or
			      unknown */
	bool gids_known;
	const struct gid_entry *gids;
	size_t n_gids;	     /* of VFs, and of devices that have none */
	int pkey0;	     /* the key at index 0; -1 unknown */
	int n_pkeys, n_full; /* keys, and those of full members; -1 unknown */
};

/* The netdev of a switchdev PF that stands for one of its VFs. */
struct doctor_representor {
	int vf;
	const char *netdev;
	enum doctor_answer attached; /* to a bridge, a bond or Open vSwitch */
	enum doctor_answer up;
};

/* The netdev of a NIC function. */
struct doctor_netdev {
	int mtu;	       /* 0 unknown */
	enum doctor_answer up; /* switched on by the administrator */
	const char *mac;       /* as the file says; NULL unknown */
	const struct doctor_representor *reps;
	size_t n_reps;
	/* Of PFs with VFs, from the running kernel. NULL why_…: known. */
	const struct hw_vf_admin *vfs;
	size_t n_vfs;
	const char *why_no_vfs; /* what kept us from knowing: a clause */
	struct hw_dcb dcb;
	const char *why_no_dcb;
	/* Bits of priorities; -1 unknown. Of RoCE's congestion control (DCQCN) the end that reports
	 * ECN marks, and the one that slows down. */
	int ecn_notify, ecn_react;
};

struct doctor_net {
	const struct doctor_rdma *rdma;	    /* one for each of inv->rdma, same index */
	const struct doctor_netdev *netdev; /* one for each of inv->pci, same index */
	int exclusive;	 /* RDMA network namespace mode: 1 exclusive, 0 shared, -1 unknown */
	int64_t memlock; /* bytes that this process may lock; -1 no limit, -2 unknown */
	enum doctor_answer ipc_lock; /* it has CAP_IPC_LOCK, which lifts that limit */
	int64_t shm;		     /* bytes of /dev/shm; -1 unknown */
};

/* In the arena. inv must outlive it. own_dev: /dev is that of who uses the VFs. */
const struct doctor_net *doctor_net_gather(const struct sysroot *root,
					   const struct hw_inventory *inv, bool own_dev,
					   struct arena *arena);

/* Tables of checks, for check.c. */
extern const struct doctor_check doctor_vf_checks[];
extern const size_t doctor_vf_checks_n; /* net_vf.c */
extern const struct doctor_check doctor_port_checks[];
extern const size_t doctor_port_checks_n; /* net_port.c */
extern const struct doctor_check doctor_roce_checks[];
extern const size_t doctor_roce_checks_n; /* net_roce.c */
extern const struct doctor_check doctor_ecn_checks[];
extern const size_t doctor_ecn_checks_n; /* net_ecn.c */
extern const struct doctor_check doctor_firmware_checks[];
extern const size_t doctor_firmware_checks_n; /* net_firmware.c */
extern const struct doctor_check doctor_switchdev_checks[];
extern const size_t doctor_switchdev_checks_n; /* net_switchdev.c */
extern const struct doctor_check doctor_table_checks[];
extern const size_t doctor_table_checks_n; /* net_table.c */
extern const struct doctor_check doctor_limit_checks[];
extern const size_t doctor_limit_checks_n; /* net_limit.c */

#endif
