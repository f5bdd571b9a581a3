/*
 * A small machine by hand for the tests of the pool room.
 *
 *   0000:3b:00.0 PF ens1f0 (InfiniBand), VFs .1 .2 .3: index 0, 1, 2
 *   0000:5e:00.0 PF ens2f0 (Ethernet, acpi_index 101), VFs .1 .2
 *   0000:af:00.0 NIC eno1 without VFs, 0000:b0:00.0 NVMe
 *
 * Every network function has driver mlx5_core and an RDMA device.
 */
#ifndef RAILMATE_TESTS_UNIT_POOL_MACHINE_H
#define RAILMATE_TESTS_UNIT_POOL_MACHINE_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/arena.h"
#include "base/err.h"
#include "base/mem.h"
#include "base/str.h"
#include "config/config.h"
#include "hw/inventory.h"
#include "pool/node.h"
#include "support/nodes.h"

int machine_find(const struct hw_inventory *inv, const char *address);
/* To be changed by a test before the node takes the inventory. */
struct hw_pci *machine_fn(struct hw_inventory *inv, const char *address);
struct hw_rdma *machine_rdma(struct hw_inventory *inv, const char *address);
void machine_take_rdma(struct hw_inventory *inv, const char *address);
/* Pulls a function that has no VFs. Indices behind it move, as in a new scan. */
void machine_take_pci(struct hw_inventory *inv, const char *address);
struct hw_inventory *machine(void);
struct config *machine_config(const char *text);
/* "3b:00.1 3b:00.2!": the devices of a pool without domain; '!' marks unhealthy ones. */
void assert_pool(const struct node *node, const char *resource, const char *expected);
void assert_note(const struct node *node, const char *text);
void node_unrefp(struct node **node);
void config_freep(struct config **cfg);
#define _cleanup_node_	 _cleanup_(node_unrefp)
#define _cleanup_config_ _cleanup_(config_freep)

#endif
