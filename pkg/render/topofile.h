/*
 * The topology file of a node: the PCI tree as NCCL would see it, or as it should have seen it, in
 * NCCL's own dialect of XML (docs/design/nccl.md §2; the parser is NCCL's src/graph/xml.cc and
 * takes much less than XML, so the writer is strict: tests/fixtures/nccl_topology.py). One content
 * per node, the same for all containers: NCCL leaves out devices that a process does not use, and
 * all ranks of a host must see the same. RCCL wants version 2. Pure.
 */
#ifndef RAILMATE_RENDER_TOPOFILE_H
#define RAILMATE_RENDER_TOPOFILE_H

#include <stdbool.h>
#include <stddef.h>

struct arena;
struct err;
struct hw_inventory;
struct node;
struct pool;
struct pool_config;
struct strbuf;
struct topo;
struct topo_rails;

struct topofile_in {
	const struct hw_inventory *inv;
	const struct topo *topo; /* with its hints */
	int version;		 /* 1: NCCL, 2: RCCL */
	/* Whose VFs are listed also while their RDMA devices are away in containers: a file does
	 * not depend on the containers that run. */
	const struct pool *pools;
	size_t n_pools;
	const struct topo_rails *rails; /* NULL: none are known */
};
struct topofile_in topofile_in(const struct node *node, int version);

/* A fact that it cannot express is left out with a note, a sentence each, in the arena. */
struct topofile_out {
	const char *text;
	const char **notes;
	size_t n_notes;
};

/* Equal input gives equal bytes. -E2BIG, -ENODATA: such a file cannot be written. */
int topofile_render(const struct topofile_in *in, struct arena *arena, struct topofile_out *ret,
		    struct err *err);

/*
 * Does NCCL get this node wrong without a file? True: VMs that hide their switches (and hints show
 * them), VFs that are not found at their PF's place, rate-limited VFs, NUMA nodes that the firmware
 * does not report, ways that sysfs does not show. why: sentences, as many as there are reasons;
 * else one with the reason why not.
 */
bool topofile_needed(const struct topofile_in *in, struct strbuf *why);

/* The version of the file that a container with a VF of this pool should be shown; 0: none. AMD's
 * GPUs are RCCL's, in a pool of any profile. */
int topofile_wanted(const struct node *node, const struct pool_config *pool);
/*
 * The name of the file of that version, below the run directory of the host and in containers at
 * /run/railmate, for NCCL_TOPO_FILE. NULL: none is wanted, or none can be made. The daemon keeps
 * every file that some pool of the node wants.
 */
#define TOPOFILE_NCCL "topology.xml"
#define TOPOFILE_RCCL "topology-rccl.xml"
const char *topofile_name(const struct node *node, const struct pool_config *pool);

#endif
