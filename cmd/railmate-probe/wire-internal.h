/* The open device, for wire_device.c and wire.c. */
#ifndef RAILMATE_PROBE_WIRE_INTERNAL_H
#define RAILMATE_PROBE_WIRE_INTERNAL_H

#include <infiniband/verbs.h>

#include "wire.h"

struct arena;
struct told_vf;

struct wire_device {
	const struct told_vf *vf;
	struct ibv_context *context;
	struct ibv_pd *pd;
	struct ibv_device_attr limits;
	struct ibv_port_attr port;
	struct ibv_gid_entry *gids; /* those that are not empty */
	size_t n_gids;
	int gid_index;	   /* told, or NCCL's choice; -1: the table has none */
	double sysfs_gbps; /* the port's rate there; 0: not read */
	bool soft;	   /* no hardware: its rate means nothing */
	bool mtu_noted;	   /* the finding about a peer's MTU is made */
	char on[96];	   /* "mlx5_4 port 1" */
};

#define GID_TEXT 64
const struct ibv_gid_entry *wire_gid_at(const struct wire_device *d, int index);
const char *wire_gid_text(const uint8_t gid[16], char buf[GID_TEXT]);
int wire_mtu_bytes(unsigned mtu); /* of enum ibv_mtu */
/* ENOMEM of a verb that locks memory: the limit is the reason, or the machine has no more. `tried`
 * is bytes; 0: the library's own. */
void wire_report_memory(const struct wire_device *d, const char *verb, size_t tried, int error,
			struct report *r);
/* Of the host's memory: how many bytes differ, and where; of a GPU's, "". */
const char *wire_memory_difference(const struct wire_memory *m, uint64_t seed, struct arena *a);

#endif
