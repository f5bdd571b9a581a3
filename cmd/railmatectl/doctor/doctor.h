/*
 * The faults of a machine that keep NCCL from being fast or right: facts in, findings out.
 *
 * To add checks: rows of a table, and what their findings mean in advice.def; for a new file also
 * TABLE() in doctor-internal.h, and its line in check.c (tables[]).
 */
#ifndef RAILMATE_DOCTOR_DOCTOR_H
#define RAILMATE_DOCTOR_DOCTOR_H

#include <stddef.h>

struct err;
struct hw_inventory;
struct facts;
struct diagnosis;
struct diagnosis_check;

/* Every check, in the order of printing. */
size_t doctor_n_checks(void);
const struct diagnosis_check *doctor_check_at(size_t i);

/* How NVIDIA joins GPUs and NICs here, in the words of rdma-core's rdma_topo: "DMA", "inline" or
 * "NUMA"; NULL: not as it knows. */
const char *doctor_board_of_gpus(const struct hw_inventory *inv);

/* Runs the checks of only ("acs,iommu"; NULL: all). -EINVAL: a sentence that names the unknown
 * id. */
int doctor_run(const struct facts *f, const char *only, struct diagnosis **ret, struct err *err);

#endif
