/*
 * The expectation is computed, not typed: the least of the port's rate, the PCIe payload rate of
 * the narrowest link of either end (width, speed, maximum payload size, relaxed ordering), the VF's
 * rate limit, and the share of a switch that others use at the same time.
 */
#ifndef RAILMATE_PROBE_EXPECT_H
#define RAILMATE_PROBE_EXPECT_H

#include <stddef.h>

struct arena;
struct report;
struct sysroot;
struct told;
struct told_vf;

struct expectation {
	double gbps;	   /* payload, 10^9 bit/s; NAN: no link has a known rate */
	const char *limit; /* the link or port that limits, as text; NULL with NAN */
};

/* Payload rate of a PCIe link. gts: 2.5 … 64; lanes: 1 … 32; mps: bytes, 128 … 4096. NAN outside.
 * Pure. */
double expect_pcie_gbps(double gts, int lanes, int mps);
/*
 * Of a transfer between two VFs (or one with itself: the link carries both directions), or from a
 * GPU's memory. root: the container's "/", or a folder of a test. port_gbps: by verbs, NAN: not
 * known. gpu: PCI address, NULL: host memory. A soft RDMA device has no link: NAN.
 */
struct expectation expect_of(const struct sysroot *root, const struct told_vf *from,
			     double from_port_gbps, const char *from_gpu, const struct told_vf *to,
			     double to_port_gbps, const char *to_gpu, struct arena *a);

/* An expectation is of links as they are; a finding for each of the VFs' cards and of the switches
 * above them that is narrower or slower than both of its ends. */
void expect_check_links(const struct sysroot *root, const struct told *told, struct report *r);

/* One end of a transfer; members as above. */
struct expect_end {
	const struct told_vf *vf;
	double port_gbps;
	const char *gpu;
};
/*
 * Of ends[of] while bytes move in one direction at all n ends at once: each link and port is
 * divided among the ends that cross it, a VF's own limit is not.
 */
struct expectation expect_shared(const struct sysroot *root, const struct expect_end *ends,
				 size_t n, size_t of, struct arena *a);

/* The links that a VF's bytes cross to memory (gpu: as above), each named by the function at its
 * lower or upper end, from the root down; n = 0: not seen from here. */
struct expect_path {
	const char **functions; /* of PCI, as text */
	size_t n;
};
struct expect_path expect_path_of(const struct sysroot *root, const struct told_vf *vf,
				  const char *gpu, struct arena *a);

#endif
