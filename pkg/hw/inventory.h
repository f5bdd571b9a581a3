/*
 * Plain records of hardware; here the devices that discovery found, as flat tables. Indices link
 * the tables, -1 means none. An inventory is immutable once discover_host() returned it: it prints
 * in a stable order, compares cheaply and may be read by any thread.
 *
 * Sources: Documentation/ABI/testing/sysfs-bus-pci, sysfs-class-infiniband, sysfs-class-net;
 * drivers/pci/{pci-sysfs,iov}.c.
 */
#ifndef RAILMATE_HW_INVENTORY_H
#define RAILMATE_HW_INVENTORY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "hw/bdf.h"

struct arena;
struct strbuf;

enum hw_link { HW_LINK_UNKNOWN, HW_LINK_IB, HW_LINK_ETHERNET };

/* A PCI function. `numa` is the effective node: the function's own, else that of its nearest
 * ancestor with a valid one, else -1. A numa_node that the machine does not have counts as -1. */
struct hw_pci {
	struct bdf bdf;
	uint32_t class_code; /* 24 bits: 0x020000 Ethernet, 0x020700 InfiniBand, 0x060400 bridge */
	uint16_t vendor, device;
	uint16_t subvendor, subdevice; /* bridges and GPUs only; 0 when unknown */
	/* Index of the next bridge up (vendor 0: only known from the way of others); -1: directly
	 * on the root bus */
	int parent;
	uint32_t root_domain; /* root complex: pciDDDD:BB of the device path */
	uint8_t root_bus;
	bool has_root; /* the path names a root complex */
	int numa;
	bool numa_above; /* numa is an ancestor's; its own numa_node names none that exists */
	int physfn;	 /* a VF's PF; -1: not a VF, or the PF is not visible */
	bool is_vf;	 /* has a physfn link, even if the PF was skipped */
	int vf_index;	 /* N of virtfnN on the PF; -1 when not a VF */
	int sriov_total, sriov_num; /* sriov_totalvfs, sriov_numvfs; 0 without SR-IOV */
	const char *driver;	    /* NULL: none bound */
	/* First of net/ in name order; NULL: none here (may be in another netns) */
	const char *netdev;
	int carrier;  /* of netdev: 1 up, 0 down, -1 unknown; not read for VFs */
	int net_type; /* ARPHRD of netdev: 1 Ethernet, 32 InfiniBand; 0 unknown; not read for VFs */
	bool default_route; /* netdev carries the IPv4 default route (proc/net/route) */
	/* Sysfs acpi_index, where a pool asks for it (discover_acpi_indexes()); -1 unknown */
	int acpi_index;
	int link_mts, link_width; /* current link: MT/s (16 GT/s = 16000) and lanes; 0 unknown */
	int link_mts_max, link_width_max; /* the most that the function can do */
	int acs_ctrl; /* ACS control word of a bridge; -1 unknown (no capability or not readable) */
	int rate_mbps; /* a VF's rate limit, set on its PF (max_tx_rate); 0: none, or not known */
};

/* A port of an RDMA device; `state` is the kernel's word ("ACTIVE"). A VF has the physical state,
 * link layer and rate of its PF's only port, and a state of its own. */
struct hw_port {
	int number;			/* from 1 */
	const char *state, *phys_state; /* NULL unknown */
	enum hw_link link;
	int rate_mbps; /* 0 unknown */
};

struct hw_rdma {
	const char *name; /* "mlx5_4" */
	int pci;	  /* index of its function; -1: none found */
	/* Its function's directory below sys, "devices/pci0000:00/…", without a link; NULL: not
	 * known */
	const char *dir;
	bool soft;	    /* rxe, siw: found through the parent netdev */
	const char *uverbs; /* "uverbs4"; NULL: no verbs device */
	const char *netdev; /* of port 1 when known */
	/* At index 0 of port 1, where a pool asks for it (discover_default_pkeys()); 0 unknown */
	uint16_t pkey;
	const struct hw_port *ports;
	size_t n_ports;
};

/*
 * The VPD of a NIC, or of a data direct function (hw_is_data_direct()); only of machines with Data
 * Direct. There a NIC's transfers with GPUs are done by a PCI function elsewhere in the tree.
 */
struct hw_card {
	int pci;
	const char *name, *serial; /* the product, SN; NULL: not there */
	const char *board, *vuid;  /* V3, VU; NULL: not there */
	const char *problem;	   /* the fault of its VPD; NULL: none */
	int direct;		   /* of a NIC: its data direct function; -1: none is known */
};

/* The far end of a NIC's cable, by LLDP. */
struct hw_neighbor {
	int pci;
	const char *name; /* the switch's; its chassis id where it has none */
	const char *port; /* there */
};

struct hw_gpu {
	int pci;
	const char *vendor; /* "NVIDIA", "AMD", "Intel", or the match table's */
	const char *model;  /* device name; NULL unknown */
	const char *uuid;   /* "GPU-…" (NVIDIA); NULL */
	int minor;	    /* NVIDIA device minor; -1 */
	int card;	    /* N of drm/cardN; -1 */
	bool only_mig;	    /* the driver shows MIG devices of this GPU, and of no other */
};

/* A partition of an AMD GPU, amdgpu_xcp_<number>: a device without a PCI function of its own. */
struct hw_gpu_part {
	int number;
	int pci; /* the GPU's function */
};

/* A MIG device of an NVIDIA GPU, by the CDI spec of the GPU plugin. */
struct hw_mig {
	const char *id; /* "MIG-<uuid>" */
	int pci;	/* the GPU's function; -1: specs differ, or do not say */
};

struct hw_numa {
	int id;
	/* SLIT row, n_numa entries in the order of the numa table; NULL unknown */
	const int *distance;
	/* Its CPUs as the kernel writes them ("00000000,0000ffff"); NULL unknown */
	const char *cpumap;
};

/* The facts that NCCL asks of a CPU; all of them are alike. */
struct hw_cpu {
	const char *arch;   /* "x86_64", "arm64"; NULL unknown */
	const char *vendor; /* of x86: "GenuineIntel"; NULL unknown */
	int family, model;  /* of x86, as the kernel counts; -1 unknown */
};

struct hw_inventory {
	struct arena *arena; /* owns every string and table below */
	struct hw_pci *pci;
	size_t n_pci; /* sorted by address */
	struct hw_rdma *rdma;
	size_t n_rdma; /* sorted by (pci, name): by address, then name */
	struct hw_gpu *gpu;
	size_t n_gpu; /* sorted by address */
	struct hw_gpu_part *part;
	size_t n_part; /* sorted by number */
	struct hw_mig *mig;
	size_t n_mig; /* sorted by id */
	struct hw_card *card;
	size_t n_card; /* sorted by address */
	struct hw_neighbor *neighbor;
	size_t n_neighbor; /* sorted by address */
	struct hw_numa *numa;
	size_t n_numa; /* sorted by id */
	struct hw_cpu cpu;
	bool hypervisor;    /* this machine is a virtual machine, as far as the tree shows */
	bool has_rdma_cm;   /* the rdma_cm misc device exists */
	bool has_vhost_net; /* /dev/vhost-net and /dev/net/tun exist */
	const char **notes;
	size_t n_notes; /* one sentence for each thing that was skipped */
};

/* A function of which only the address is known: every index is -1, every fact unknown. */
struct hw_pci hw_pci_unknown(struct bdf bdf);
/* GPUs by their index into inv->pci; n 0: none, or not known. n_unknown: there are so many more, or
 * parts of GPUs, that no function is known of. */
struct gpu_set {
	const int *v;
	size_t n, n_unknown;
};

/* Index into inv->pci, or -1. */
int hw_find_pci(const struct hw_inventory *inv, struct bdf bdf);
/* First RDMA device of a function, or -1. */
int hw_find_rdma(const struct hw_inventory *inv, int pci);
/* Addresses as text, in the arena. */
const char *hw_pci_address(const struct hw_inventory *inv, int pci, struct arena *a);
const char *const *hw_gpu_addresses(const struct hw_inventory *inv, struct gpu_set gpus,
				    struct arena *a);
/* Index into inv->gpu of a function, or -1. */
int hw_find_gpu(const struct hw_inventory *inv, int pci);
/* Of a NIC, for a VF that of its PF; NULL: not known. */
const struct hw_neighbor *hw_find_neighbor(const struct hw_inventory *inv, int pci);
/* NVIDIA's data direct function: no NIC itself, it does the transfers of one
 * (drivers/infiniband/hw/mlx5/data_direct.c). */
bool hw_is_data_direct(const struct hw_pci *f);
/* The PF of a VF, or the function itself; -1: unknown, as of pci -1. */
int hw_pf_of(const struct hw_inventory *inv, int pci);
/* The most that both ends of a function's PCIe link can do, the function and the port above it:
 * MT/s and lanes; 0 unknown. */
struct hw_pcie {
	int mts, width;
};
struct hw_pcie hw_pcie_best(const struct hw_inventory *inv, int pci);
const struct hw_card *hw_find_card(const struct hw_inventory *inv, int pci); /* NULL */
/* class 02xxxx. NVMe and others are not NICs, even with SR-IOV. */
bool hw_is_nic(const struct hw_pci *f);
/* A NIC that can have VFs (sriov_totalvfs > 0). */
bool hw_is_pf(const struct hw_pci *f);
/* A NIC VF; or a NIC function passed through to this VM: no physfn, no SR-IOV of its own, not an
 * emulated NIC (virtio, e1000, vmxnet3: a table), and its id is a VF's, the tree shows a
 * hypervisor, or it sits directly on a root bus. */
bool hw_is_nic_vf(const struct hw_inventory *inv, int pci);
/* A NIC that stands for itself: a PF, or a VF whose PF this machine does not see. */
bool hw_is_own_nic(const struct hw_inventory *inv, int pci);
void hw_put_rate(int mbps, struct strbuf *out); /* "400 Gb/s", "2.5 Gb/s" */
const char *hw_link_name(enum hw_link link);	/* "infiniband", "ethernet", NULL */
/* Same machine? Every table equal, notes ignored. */
bool hw_inventory_same(const struct hw_inventory *a, const struct hw_inventory *b);
/*
 * The PCI index of the GPU that a device id of a GPU plugin names, or -1. Understands, for any
 * resource: "GPU-<uuid>" and "GPU-<uuid>::<replica>" (NVIDIA), a PCI address (AMD, also upper
 * case; a VF is its PF), "amdgpu_xcp_N" and "ADDRESS-slice-N" (partitions), "nvidiaN" and
 * "nvidiaN/…" (GKE: N is the minor number), "cardN-M" (Intel), and, when `resource` is a GPU
 * resource, a plain index in address order of that vendor's GPUs (NVIDIA deviceIDStrategy=index).
 * A MIG id leads to its GPU where the id names that ("MIG-GPU-<uuid>/…"), a CDI spec does, or one
 * GPU alone has MIG devices; else -1.
 */
int hw_gpu_of_id(const struct hw_inventory *inv, const char *resource, const char *id);
/* The inventory itself lies in its arena. NULL is fine. */
void hw_inventory_free(struct hw_inventory *inv);

/* One row of the table by which GPUs are known; tables end by n. A class is the upper 16 bits
 * (0x0302). */
struct gpu_match {
	uint16_t vendor;
	uint16_t class_hi;
	const char *name; /* "NVIDIA" */
};

#endif
