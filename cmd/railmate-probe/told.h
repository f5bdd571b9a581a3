/*
 * What railmate told this container: /run/railmate/map.json (railmatectl(1), version 1), the GID
 * index of nccl.conf, and the variables. Plain records; strings live in the arena of the reader.
 */
#ifndef RAILMATE_PROBE_TOLD_H
#define RAILMATE_PROBE_TOLD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct arena;
struct err;
struct sysroot;

#define TOLD_DIR "/run/railmate"

struct told_vf {
	const char *bdf;	 /* "0000:3b:00.2" */
	const char *hca;	 /* RDMA device; NULL: it has none */
	int port;		 /* from 1 */
	const char *netdev;	 /* NULL: not known */
	int rail, plane;	 /* -1: not known, or none */
	int64_t mbps;		 /* -1: not known */
	int gid_index;		 /* of map.json; -1: none was told */
	const char *gid;	 /* its address as text; NULL: none */
	const char *gid_type;	 /* "RoCE v2", "IB/RoCE v1"; NULL: none */
	const char *data_direct; /* function of the NIC; NULL: none */
};

struct told_gpu {
	const char *bdf;
};

/* A GPU and a VF that belong together. Indices into told.gpus and told.vfs. */
struct told_pair {
	size_t gpu, vf;
};

struct told {
	const char *pod, *container; /* NULL: not known */
	struct told_vf *vfs;	     /* by address; each once */
	size_t n_vfs;
	struct told_gpu *gpus; /* by address; each once */
	size_t n_gpus;
	struct told_pair *pairs;
	size_t n_pairs;
	int nccl_gid_index; /* NCCL_IB_GID_INDEX of environment or nccl.conf; -1: none */
};

/* Two rails, or two planes of one, may be networks of their own; -1, not known, differs from none.
 */
bool told_apart(int rail, int plane, int other_rail, int other_plane);

/*
 * dir: TOLD_DIR, or a directory with a map.json, below root. At most 1 MiB is read; what is
 * malformed is -EBADMSG with a sentence; -ENOENT: no container of railmate. A told.hca is a name
 * without a slash.
 */
int told_read(const struct sysroot *root, const char *dir, struct arena *a, struct told *ret,
	      struct err *err);

#endif
