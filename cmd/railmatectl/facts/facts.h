/*
 * The settings of a machine that matter to GPUs and RDMA: IOMMU, configuration space, modules, the
 * kernel's command line, ports, limits. Plain records; facts/gather.h reads them. Absent and
 * unreadable are different values.
 *
 * To add facts of one subject: a struct of their own behind a pointer in struct facts, NULL as long
 * as they are not gathered.
 *
 * Strings live in the facts' arena, or are static. One thread.
 */
#ifndef RAILMATE_FACTS_FACTS_H
#define RAILMATE_FACTS_FACTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "topo/topo.h"

struct arena;
struct hw_inventory;
struct hw_pci;
struct topo_rails;

enum facts_answer { FACTS_NO, FACTS_YES, FACTS_UNKNOWN };

enum facts_iommu {
	FACTS_IOMMU_UNKNOWN,  /* in a group, whose type cannot be read */
	FACTS_IOMMU_NONE,     /* in no group, on a machine that shows its groups or has none */
	FACTS_IOMMU_IDENTITY, /* passthrough */
	FACTS_IOMMU_DMA,      /* translated, strict */
	FACTS_IOMMU_DMA_FQ,   /* translated, lazy */
	FACTS_IOMMU_BLOCKED,  /* a driver of user space has it, or may have */
	FACTS_IOMMU_OTHER,
};

/* The readable part of a function's configuration space. Without CAP_SYS_ADMIN: 64 bytes. */
enum facts_config {
	FACTS_CONFIG_UNREAD, /* not read: not on a path between a GPU and a NIC */
	FACTS_CONFIG_NONE,   /* there is no such file, or it cannot be opened */
	FACTS_CONFIG_SHORT,  /* ends before the wanted offset: no privilege, or no ECAM */
	/* All ones, or a list that leads nowhere: the function does not answer */
	FACTS_CONFIG_BROKEN,
	FACTS_CONFIG_READ,
};

#define FACTS_GROUP_NONE    (-1) /* in no group, on a machine that shows its groups or has none */
#define FACTS_GROUP_UNKNOWN (-2)

/* The windows in memory that the firmware or the kernel gave a function (its file resource). */
struct facts_bars {
	enum facts_answer known; /* NO: the file cannot be read */
	uint64_t largest;	 /* bytes */
	bool unset;		 /* one is wanted and has no place */
	bool vf_unset;		 /* a window of its VFs has no place, or they have none at all */
};

struct facts_pci { /* one for each of inv->pci, same index */
	enum facts_iommu iommu;
	int iommu_group;	      /* its number, or one of the above */
	enum facts_config config;     /* of the classic part, which has the PCIe capability */
	enum facts_config config_ext; /* of the extended part, which has ACS and ATS */
	int port_type;		      /* PCIe device/port type; -1 unknown or no PCIe capability */
	int devctl;		      /* PCIe Device Control; -1 */
	int devcap2, devctl2;	      /* -1 */
	bool has_acs, has_ats;	      /* false means something only when config_ext is READ */
	uint16_t acs_ctrl, ats_ctrl;
	struct facts_bars bars; /* of GPUs and PFs */
};

struct facts_host { /* NULL and UNKNOWN: could not be read */
	const char *cmdline;
	const char *kernel;		/* "6.8.0-31-generic" */
	int kernel_major, kernel_minor; /* -1 */
	int iommu_units;		/* entries of sys/class/iommu; -1: no such directory */
	const char *iommu_kind;		/* "dmar", "ivhd", "smmu", "other"; NULL: none */
	int iommu_groups;		/* -1: no such directory */
	enum facts_answer peermem;	/* nvidia_peermem, or a module that NCCL takes for it */
	enum facts_answer nvidia_open;	/* the open kernel modules */
	enum facts_answer amd_peer; /* peer memory of amdkfd, or a kernel that has its interface */
	enum facts_answer amd_dmabuf; /* the kernel has the options of RCCL's dmabuf */
	enum facts_answer nvidia_fs;  /* GPUDirect Storage */
	const char *nvidia_version, *peermem_version; /* "550.90.07"; NULL unknown */
	const char *nvidia_params; /* options of NVIDIA's driver, a line each; NULL unknown */
	bool old_peermem;	   /* nv_peer_mem is loaded */
	enum facts_answer peermem_registered; /* the RDMA core lists NVIDIA's peer memory */
	enum facts_answer rdma_peers;	      /* the RDMA core has an interface for peer memory */
	int numa_balancing;		      /* -1, 0, 1, 2 */
};

struct facts_net; /* facts/net.h */

struct facts {
	struct arena *arena;
	const struct hw_inventory *inv;
	const struct topo *topo;
	const struct topo_rails *rails; /* with the names of a configuration; NULL: without */
	bool live; /* the running machine: netlink and our own limits make sense */
	enum facts_answer
		confined; /* we run in a container: facts that it does not show are unknown */
	enum facts_answer
		container; /* a container that is judged, too: its VFs, limits and mounts */
	struct facts_pci *pci;
	/* Where containers' VFs are: PFs with VFs, VFs without a visible PF; when there are none,
	 * functions that could be such a PF. Indices of inv->pci, by address. */
	const int *nic;
	size_t n_nic;
	struct facts_host host;
	const struct facts_net *net;
};

/* --- functions and paths between them --- */

/* Address translation services: an address asked for once needs no way up to the IOMMU. */
bool facts_ats_is_on(const struct facts_pci *p);
/* "cannot be read": behind "its configuration space". */
const char *facts_why_unread(enum facts_config config);
enum { /* PCI Express base specification; linux/pci_regs.h */
       FACTS_PORT_ENDPOINT = 0,
       FACTS_PORT_ROOT = 4,
       FACTS_PORT_UPSTREAM = 5,
       FACTS_PORT_DOWNSTREAM = 6,
       FACTS_PORT_INTEGRATED = 9,
};
int facts_mps(int devctl);  /* bytes of the largest payload */
int facts_mrrs(int devctl); /* bytes of the largest read request */

/*
 * The bridges between two functions, from a's side to b's: all up to the bridge that both are
 * below, that one included; without one, all up to the root buses. *ret_common: the common one's
 * index in ret, or -1.
 */
#define FACTS_PATH_MAX 64 /* more than any real tree has */
size_t facts_path(const struct hw_inventory *inv, int a, int b, int ret[FACTS_PATH_MAX],
		  int *ret_common);
/* Of f->nic the nearest to a function, all of the same class; returns their number, at most max. */
size_t facts_nearest(const struct facts *f, int pci, int *ret, size_t max,
		     enum topo_class *ret_class);
/* A NIC of the boards on which NVIDIA joins GPU and NIC: ConnectX-7 and later; no VF. */
bool facts_is_board_nic(const struct hw_pci *p);

/* --- names, and the command line --- */

/* "GPU 0000:1b:00.0 [H100]": an arena string. */
const char *facts_gpu_name(const struct facts *f, size_t gpu);
/* "0000:18:00.0 (mlx5_0)" */
const char *facts_nic_name(const struct facts *f, int pci);
const char *facts_address(const struct facts *f, int pci);
/* NUMA nodes without a CPU: memory of GPUs, or of CXL. */
size_t facts_n_memory_nodes(const struct hw_inventory *inv);
bool facts_has_vendor(const struct facts *f, const char *vendor);
/* Is this one of the words of the kernel's command line? Neither when that is unknown. */
enum facts_answer facts_boot_word(const struct facts_host *h, const char *word);
/* The values of all words that start with key ("pci="), joined by commas: an arena string; NULL:
 * none. */
const char *facts_boot_value(const struct facts *f, const char *key);
/* Is one of those values this one, alone or with a value of its own? */
bool facts_boot_list_has(const struct facts *f, const char *key, const char *element);

#endif
