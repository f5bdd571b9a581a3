/* What the files of the room share: the tables of checks, and what is known of boards. */
#ifndef RAILMATE_DOCTOR_DOCTOR_INTERNAL_H
#define RAILMATE_DOCTOR_DOCTOR_INTERNAL_H

#include "doctor/doctor.h"
#include "facts/facts.h"
#include "diagnosis/diagnosis.h"

#define TABLE(name)                                                                                \
	extern const struct diagnosis_check name[];                                                \
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
TABLE(doctor_vf_checks);
TABLE(doctor_port_checks);
TABLE(doctor_roce_checks);
TABLE(doctor_ecn_checks);
TABLE(doctor_firmware_checks);
TABLE(doctor_switchdev_checks);
TABLE(doctor_table_checks);
TABLE(doctor_limit_checks);

/* The fix for what only root sees. */
#define DOCTOR_NEED_PRIVILEGE                                                                      \
	"Run it as root with CAP_SYS_ADMIN on the node itself, or in a privileged pod."

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
	enum facts_answer ats; /* of the inline type: have its NICs the capability? all or none */
};
struct doctor_board doctor_board_of(const struct facts *f);
/* Is the root port above it one of a CPU that GPUs are joined to by NVLink-C2C? */
bool doctor_is_below_c2c_cpu(const struct hw_inventory *inv, int pci);
/* "SV RR CR UF": an arena string. */
const char *doctor_acs_words(const struct facts *f, uint16_t ctrl);
/* Judges the ports that have a mask, and marks them in seen; returns how many are right. */
size_t doctor_judge_masks(const struct facts *f, struct diagnosis *r, const struct doctor_board *b,
			  bool *seen);

#endif
