/*
 * Where NVIDIA joins GPU and NIC on one board, ACS, ATS and IOMMU groups follow the board's type,
 * not the rule for other switches. Types and masks are those of rdma-core's kernel-boot/rdma_topo;
 * another type is one that it does not know.
 */
#ifndef RAILMATE_DOCTOR_BOARD_INTERNAL_H
#define RAILMATE_DOCTOR_BOARD_INTERNAL_H

#include "doctor/doctor-internal.h"

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
const char *doctor_board_name(enum doctor_board_type type); /* "DMA" */

enum doctor_port_kind {
	DOCTOR_PORT_ORDINARY,
	DOCTOR_PORT_SWITCH, /* of the switch in a NIC */
	DOCTOR_PORT_GRACE,
	DOCTOR_PORT_VERA
};
enum doctor_port_kind doctor_port_kind(const struct hw_pci *p);
bool doctor_is_nvidia_gpu(const struct hw_inventory *inv, int pci);
enum facts_answer doctor_has_ats(const struct facts_pci *p); /* the capability, on or not */

#endif
