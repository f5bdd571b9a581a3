/*
 * A machine from one line, for tests of the pure rooms.
 *
 *   machine  = segment { ";" segment }
 *   segment  = word { " " word }
 *   word     = key ":" number | flag
 *
 * Each segment adds its own NUMA nodes and root complexes to the machine. Keys, from the outside
 * in:
 *
 *   numa:N    NUMA nodes (1). 0: one part of the machine whose functions know no node (-1)
 *   root:N    root complexes in each node (1)
 *   switch:N  switches in each root complex, each below a root port of its own (0: no switch, every
 *             device sits below a root port of its own)
 *   sub:N     sub-switches below each switch (0); devices sit below the sub-switches
 *   gpu:N     GPUs below each of the innermost parts (0)
 *   pf:N      NIC PFs there (0)
 *   upf:N     NIC PFs on the upper switch, beside the sub-switches (0)
 *   vf:N      VFs of each PF (0)
 *
 * Flags: bcm4, bcm5 (the switches are Broadcom two-level ones), noids (without subsystem ids), flat
 * (no root ports: devices sit on the root bus), hyper (the machine is virtual), nopf
 * (passed-through VFs: vf:N of them in place of each PF).
 *
 * Every root complex is a PCI domain; addresses grow in the order of the line. Every PF and VF has
 * an RDMA device mlx5_N with an active InfiniBand port and uverbsN; PFs have netdevs ethN. GPUs are
 * NVIDIA's with UUIDs.
 */
#ifndef RAILMATE_TESTS_SUPPORT_SYNTH_H
#define RAILMATE_TESTS_SUPPORT_SYNTH_H

#include <stddef.h>

struct hw_inventory;

/* Free with hw_inventory_free(). A line that is not understood aborts the test with a sentence. */
struct hw_inventory *synth_inventory(const char *line);
/* PCI index of the nth GPU, PF, or VF of the machine in address order; aborts when there is none.
 */
int synth_gpu(const struct hw_inventory *inv, size_t nth);
int synth_pf(const struct hw_inventory *inv, size_t nth);
int synth_vf(const struct hw_inventory *inv, size_t nth);
/* How many VFs, passed-through ones included. */
size_t synth_count_vfs(const struct hw_inventory *inv);

#endif
