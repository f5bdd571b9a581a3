/* What the files of the room share: the tables of checks, the report, paths through PCIe. */
#ifndef RAILMATE_DOCTOR_DOCTOR_INTERNAL_H
#define RAILMATE_DOCTOR_DOCTOR_INTERNAL_H

#include "doctor/doctor.h"
#include "topo/topo.h"

struct hw_pci;

#define TABLE(name)                                                                                \
	extern const struct doctor_check name[];                                                   \
	extern const size_t name##_n
TABLE(doctor_place_checks);
TABLE(doctor_iommu_checks);
TABLE(doctor_acs_checks);
TABLE(doctor_board_checks);
TABLE(doctor_direct_checks);
TABLE(doctor_pcie_checks);
TABLE(doctor_host_checks);
TABLE(doctor_node_checks);
TABLE(doctor_rail_checks);
TABLE(doctor_slot_checks);
TABLE(doctor_module_checks);
TABLE(doctor_gpu_option_checks);

struct doctor_report {
	struct arena *arena;
	const struct doctor_check *running;
	const struct doctor_check **ran;
	size_t n_ran;
	struct doctor_finding *findings;
	size_t n, cap;
	size_t first; /* finding of the running check */
};
/* The worst verdict of a check that ran; -1: it does not apply. */
int doctor_verdict_of(const struct doctor_report *r, const struct doctor_check *c);
/* The sentence for a platform. */
const char *doctor_fix_on(const struct doctor_advice *a, enum doctor_platform p);

/* config.c: fills the configuration part of one function. */
void doctor_read_config(const struct sysroot *root, const struct doctor_facts *f, int pci);
/* Address translation services: what the IOMMU has answered once needs no way up to it. */
bool doctor_ats_is_on(const struct doctor_pci *p);
/* "cannot be read": behind "its configuration space". */
const char *doctor_why_unread(enum doctor_config config);
/* The fix for what only root sees. */
#define DOCTOR_NEED_PRIVILEGE                                                                      \
	"Run it as root with CAP_SYS_ADMIN on the node itself, or in a privileged pod."

enum { /* PCI Express base specification; linux/pci_regs.h */
       PORT_ENDPOINT = 0,
       PORT_ROOT = 4,
       PORT_UPSTREAM = 5,
       PORT_DOWNSTREAM = 6,
       PORT_INTEGRATED = 9,
};
int doctor_mps(int devctl);  /* bytes of the largest payload */
int doctor_mrrs(int devctl); /* bytes of the largest read request */

/*
 * The bridges between two functions, from a's side to b's: all up to the bridge that both are
 * below, that one included; without one, all up to the root buses. *ret_common: the common one's
 * index in ret, or -1.
 */
#define PATH_FUNCTIONS_MAX 64 /* more than any real tree has */
size_t doctor_path(const struct hw_inventory *inv, int a, int b, int ret[PATH_FUNCTIONS_MAX],
		   int *ret_common);
/* Of f->nic the nearest to a function, all of the same class; returns their number, at most max. */
size_t doctor_nearest(const struct doctor_facts *f, int pci, int *ret, size_t max,
		      enum topo_class *ret_class);

/*
 * board.c: where NVIDIA joins GPU and NIC on one board, ACS, ATS and IOMMU groups follow the
 * board's type, not the rule for everybody's switches. Types and masks are those of rdma-core's
 * kernel-boot/rdma_topo; another type is one that it does not know.
 */
enum doctor_board_type {
	DOCTOR_BOARD_OTHER,
	DOCTOR_BOARD_DMA,    /* a data direct function beside each GPU */
	DOCTOR_BOARD_INLINE, /* the NIC's own switch is above the GPU */
	DOCTOR_BOARD_NUMA,   /* GPUs directly below root ports of Grace or Vera */
	DOCTOR_BOARD_MAX
};

struct doctor_complex {
	int gpu, nic; /* nic: the data direct function of the DMA type */
	int gpu_port, nic_port,
		root; /* where requests of the two come in, and the root port above */
};

struct doctor_board {
	enum doctor_board_type type;
	struct doctor_complex *complex;
	size_t n_complex;
	int *unclear; /* data direct functions whose surroundings are of no known shape */
	size_t n_unclear;
	enum doctor_answer ats; /* of the inline type: have its NICs the capability? all or none */
};
struct doctor_board doctor_board_of(const struct doctor_facts *f);
/* A NIC that such boards have: ConnectX-7 and later, BlueField-3; no VF. */
bool doctor_is_board_nic(const struct hw_pci *p);
/* Is the root port above it one of a CPU that GPUs are joined to by NVLink-C2C? */
bool doctor_is_below_c2c_cpu(const struct hw_inventory *inv, int pci);
/* "SV RR CR UF": an arena string. */
const char *doctor_acs_words(const struct doctor_facts *f, uint16_t ctrl);
/* Judges the ports that have a mask, and marks them in seen; returns how many are right. */
size_t doctor_judge_masks(const struct doctor_facts *f, struct doctor_report *r,
			  const struct doctor_board *b, bool *seen);

/* "GPU 0000:1b:00.0 [H100]": an arena string. */
const char *doctor_gpu_name(const struct doctor_facts *f, size_t gpu);
/* "0000:18:00.0 (mlx5_0)" */
const char *doctor_nic_name(const struct doctor_facts *f, int pci);
const char *doctor_address(const struct doctor_facts *f, int pci);
/* NUMA nodes without a CPU: memory of GPUs, or of CXL. */
size_t doctor_n_memory_nodes(const struct hw_inventory *inv);
bool doctor_has_vendor(const struct doctor_facts *f, const char *vendor);
/* Is this one of the words of the kernel's command line? Neither when that is unknown. */
enum doctor_answer doctor_boot_word(const struct doctor_host *h, const char *word);
/* The values of all words that start with key ("pci="), joined by commas: an arena string; NULL:
 * none. */
const char *doctor_boot_value(const struct doctor_facts *f, const char *key);
/* Is one of those values this one, alone or with a value of its own? */
bool doctor_boot_list_has(const struct doctor_facts *f, const char *key, const char *element);

#endif
