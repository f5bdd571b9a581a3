/*
 * The kernel's counters of a port and of a VF: bytes, packets, errors. Names are those of its files
 * (Documentation/ABI/stable/sysfs-class-infiniband); the driver decides which ones exist.
 */
#ifndef RAILMATE_HW_PORTSTATS_H
#define RAILMATE_HW_PORTSTATS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct hw_counter {
	const char *name;
	uint64_t value;
};

/* Pause frames: of each priority (PFC, IEEE 802.1Qbb), and behind them those of the whole link
 * (IEEE 802.3x). */
#define HW_PAUSES 9
struct hw_pause {
	int64_t frames, us; /* us: how long they held up the sender; -1: not counted */
};
struct hw_pauses {
	struct hw_pause received[HW_PAUSES], sent[HW_PAUSES];
	/* Packets received without room: pause frames were too late, or are off; -1 */
	int64_t dropped[HW_PAUSES];
};

struct hw_port_stats {
	int pci;  /* its function, an index into the inventory's table */
	int rdma; /* index there; -1: the function has no RDMA device */
	int port; /* from 1; 1 also without one */
	struct hw_counter *standard;
	size_t n_standard; /* ports/N/counters, by name */
	struct hw_counter *driver;
	size_t n_driver;		/* ports/N/hw_counters, by name */
	int64_t carrier_changes;	/* of its network interface, up and down; -1 unknown */
	const struct hw_pauses *pauses; /* NULL: not reported */
};

struct hw_traffic {
	uint64_t bytes, packets, drops;
};

struct hw_vf_stats {
	int pci;
	bool has_traffic; /* the PF's driver counts it, wherever the VF is */
	struct hw_traffic received, sent;
	const struct hw_counter *driver;
	size_t n_driver; /* some of ports/1/hw_counters of its RDMA device, by name */
};

#endif
