/* The plan while it runs, for traffic.c and those that add transfers to it. */
#ifndef RAILMATE_PROBE_TRAFFIC_INTERNAL_H
#define RAILMATE_PROBE_TRAFFIC_INTERNAL_H

#include <stdbool.h>
#include <stdint.h>

#include "traffic.h"
#include "wire.h"

struct sysroot;

/* One transfer. */
struct cell {
	size_t from, to; /* VFs */
	const char *gpu; /* whose memory it is on both sides; NULL: the host's */
	struct wire_memory *from_memory, *to_memory;
	double alone; /* 10^9 bit/s of the first operation; NAN */
	bool ended;   /* it failed: other operations would say the same */
};

struct plan {
	const struct told *told;
	struct report *report;
	const struct sysroot *root;
	struct wire_device **devices; /* NULL: not opened */
	struct wire_memory *near, *far;
	size_t memory, size, message; /* of all VFs; of one side of a VF; of a message */
	unsigned ops;
	int64_t until_ns;
	size_t left, skipped; /* runs to come; that had no time */
	double overhead;      /* seconds of a run beyond its bandwidth part, as measured */
	unsigned apart;	      /* pairs of two rails that did not reach each other */
};

/* The first operation on each cell alone; then `together`, of those which then work; then the other
 * operations on each alone. Runs without time left are those that tell the least. The first
 * negative errno, or 0. */
int traffic_run(struct plan *p, struct cell *cells, size_t n,
		int (*together)(struct plan *p, const struct cell *cells, size_t n));
/* The first operation on all cells at once, with what they share. */
int traffic_together(struct plan *p, const struct cell *cells, size_t n);

/* Transfers from the memory of each GPU through its VFs; far: and through another one. As
 * traffic_run(). */
int traffic_gpus(struct plan *p, bool far);

#endif
