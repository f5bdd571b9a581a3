/*
 * The plan of a local run: what is sent between the VFs of this container, for how long, and what
 * becomes of it in the report.
 */
#ifndef RAILMATE_PROBE_TRAFFIC_H
#define RAILMATE_PROBE_TRAFFIC_H

#include <stdbool.h>
#include <stddef.h>

struct report;
struct sysroot;
struct told;

/* Zeroes: the defaults. */
struct traffic_options {
	double seconds;		    /* all runs together, about; 8 */
	size_t memory;		    /* registered by all VFs together, bytes; WIRE_MEMORY_MAX */
	size_t message;		    /* bytes; 64 KiB */
	unsigned ops;		    /* 1 << WIRE_WRITE | …; all */
	bool gpu;		    /* from the GPUs' memory, not from the host's */
	bool far;		    /* gpu: each also through a VF that is not its nearest */
	const struct sysroot *root; /* for /sys; NULL: "/" */
};

/*
 * Opens every VF of map.json and asks it (wire_open); then RC loopback in each, and between each
 * pair, alone; then all of them at once, in a ring. Slower together than alone: a finding with the
 * link that they share. 0, or the first negative errno; all of it is in the report.
 */
int traffic_local(const struct told *told, const struct traffic_options *o, struct report *r);
/* No traffic: is memory of each GPU exported, by which ways? A finding for each. */
void traffic_gpu_exports(const struct sysroot *root, const struct told *told, struct report *r);

#endif
