/* The rate that ports and PCIe links allow, from /sys. */
#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/arena.h"
#include "base/mem.h"
#include "base/str.h"
#include "expect.h"
#include "hw/bdf.h"
#include "report.h"
#include "sysroot/dir.h"
#include "sysroot/sysroot.h"
#include "told.h"

#define PCI	   "sys/bus/pci/devices"
#define DEPTH_MAX  32  /* functions above one another */
#define USUAL_MPS  256 /* where /sys does not let it be read */
#define UNREADABLE (-1)

/*
 * Line coding; the share of flow control and acknowledgements, which is 57.88 of 62.96 Gb/s with
 * PCIe 3.0 x8 (Neugebauer et al., Understanding PCIe performance, SIGCOMM 2018, §3); and of each
 * packet header, framing, sequence number and checksum, 24 bytes. From 64 GT/s on, flits: 236 of
 * 256 bytes are packets, and the rest is accounted for.
 */
double expect_pcie_gbps(double gts, int lanes, int mps)
{
	double coding = gts > 5 ? 128.0 / 130 : 0.8, link = 57.88 / 62.96;
	int header = 24;

	if (!(gts >= 2.5 && gts <= 128) || lanes < 1 || lanes > 32 || mps < 128 || mps > 4096)
		return NAN;
	if (gts >= 64) {
		coding = 236.0 / 256;
		link = 1;
		header = 16;
	}
	return gts * lanes * coding * link * mps / (mps + header);
}

/* --- functions --- */

static double speed_of(const struct sysroot *root, const char *function, const char *file)
{
	char text[64], *end;
	double gts;

	if (sysroot_read(root, text, sizeof(text), PCI "/%s/%s_link_speed", function, file) < 0)
		return NAN;
	gts = strtod(text, &end);
	return end != text && str_starts(end, " GT/s") ? gts : NAN;
}

/* 63 and 255 are read from a link that does not answer. */
static int width_of(const struct sysroot *root, const char *function, const char *file)
{
	uint64_t width;

	return sysroot_read_u64(root, 10, &width, PCI "/%s/%s_link_width", function, file) == 0 &&
			       width <= 32
		       ? (int)width
		       : 0;
}

static bool is_gpu(const struct sysroot *root, const char *function)
{
	uint64_t class;

	return sysroot_read_u64(root, 16, &class, PCI "/%s/class", function) == 0 &&
	       (class >> 16 == 0x03 || class >> 16 == 0x12);
}

/* Device Control in the PCI Express capability; UNREADABLE: only root sees so far. */
static int device_control(const struct sysroot *root, const char *function)
{
	_cleanup_close_ int fd = sysroot_openat(root, O_RDONLY, PCI "/%s/config", function);
	unsigned char config[256];
	ssize_t n = fd < 0 ? 0 : pread(fd, config, sizeof(config), 0);
	unsigned at = n > 0x34 ? config[0x34] & 0xfc : 0;

	for (int i = 0; at >= 0x40 && (ssize_t)at + 10 <= n && i < 48; i++) {
		if (config[at] == 0x10)
			return config[at + 8] | config[at + 9] << 8;
		at = config[at + 1] & 0xfc;
	}
	return UNREADABLE;
}

/* --- paths --- */

/* From the root port down to the function; a VF has no link but its PF's. */
static struct expect_path chain_of(const struct sysroot *root, const char *function,
				   struct arena *a)
{
	struct expect_path path = { arena_array(a, DEPTH_MAX, sizeof(char *)), 0 };
	_cleanup_dir_ struct dir dir = DIR_CLOSED;
	char text[1024], pf[BDF_STRLEN + 1], *part, *rest = NULL;
	struct bdf bdf;

	if (sysroot_link_name(root, pf, sizeof(pf), PCI "/%s/physfn", function) == 0 &&
	    bdf_parse(pf, &bdf) == 0)
		function = pf;
	if (dir_open_path(root, PCI, &dir) < 0 || dir_link(&dir, function, text, sizeof(text)) < 0)
		return path;
	for (part = strtok_r(text, "/", &rest); part; part = strtok_r(NULL, "/", &rest)) {
		if (bdf_parse(part, &bdf) == 0 && path.n < DEPTH_MAX)
			path.functions[path.n++] = arena_strdup(a, part);
	}
	return path;
}

struct expect_path expect_path_of(const struct sysroot *root, const struct told_vf *vf,
				  const char *gpu, struct arena *a)
{
	const char *own = gpu && vf->data_direct ? vf->data_direct : vf->bdf;
	struct expect_path path = chain_of(root, own, a), other, ret;
	size_t common = 0;

	if (!gpu || !path.n)
		return path;
	other = chain_of(root, gpu, a);
	while (common < path.n && common < other.n &&
	       str_eq(path.functions[common], other.functions[common]))
		common++;
	ret = (struct expect_path) { arena_array(a, path.n + other.n + 1, sizeof(char *)), 0 };
	for (size_t i = common; i < path.n; i++)
		ret.functions[ret.n++] = path.functions[i];
	for (size_t i = common; i < other.n; i++)
		ret.functions[ret.n++] = other.functions[i];
	return ret;
}

/* Maximum payload of the path, bytes: the least that can be read; 256, the usual one, where none
 * can. */
static int mps_of(const struct sysroot *root, const struct expect_path *path)
{
	int least = 0;

	for (size_t i = 0; i < path->n; i++) {
		int control = device_control(root, path->functions[i]);
		int mps = control == UNREADABLE ? 0 : 128 << (control >> 5 & 7);

		if (mps && mps <= 4096 && (!least || mps < least))
			least = mps;
	}
	return least ? least : USUAL_MPS;
}

/* --- rates --- */

/* Of one link of a path; limit is its text. */
static struct expectation link_of(const struct sysroot *root, const char *function, int mps,
				  struct arena *a)
{
	bool gpu = is_gpu(root, function);
	/* an idle GPU lets its link run slower */
	double gts = speed_of(root, function, gpu ? "max" : "current");
	double can = speed_of(root, function, "max");
	int lanes = width_of(root, function, "current"),
	    lanes_max = width_of(root, function, "max");
	int control = device_control(root, function);
	double gbps = expect_pcie_gbps(gts, lanes, mps);

	if (isnan(gbps))
		return (struct expectation) { NAN, NULL };
	return (struct expectation) {
		gbps,
		arena_printf(
			a, "PCIe x%d %.3g GT/s of %s, payload %d%s%s", lanes, gts, function, mps,
			can > gts || lanes_max > lanes
				? arena_printf(a, ", which can x%d %.3g GT/s", lanes_max, can)
				: "",
			control != UNREADABLE && !(control & 0x10) ? ", relaxed ordering off" : ""),
	};
}

/* Of a link: the function at its upper end and the one at its lower. */
static void check_link(const struct sysroot *root, const char *upper, const char *lower,
		       struct report *r)
{
	double now = speed_of(root, lower, "current"), can = speed_of(root, lower, "max"),
	       above = speed_of(root, upper, "max");
	int lanes = width_of(root, lower, "current"), most = width_of(root, lower, "max"),
	    lanes_above = width_of(root, upper, "max");

	can = isnan(can) || isnan(above) ? NAN : fmin(can, above);
	most = lanes_above < most ? lanes_above : most;
	if (lanes && (now < can || lanes < most))
		report_finding(
			r, OUTCOME_SLOW, "pcie-link", lower,
			"its PCIe link runs at x%d %.3g GT/s, and both ends can x%d %.3g GT/s",
			lanes, now, most, can);
}

void expect_check_links(const struct sysroot *root, const struct told *told, struct report *r)
{
	for (size_t i = 0; i < told->n_vfs; i++) {
		struct expect_path path = chain_of(root, told->vfs[i].bdf, r->arena);

		/* from the card up; between the ports of one switch there is none */
		for (size_t at = path.n; at >= 2; at -= 2)
			check_link(root, path.functions[at - 2], path.functions[at - 1], r);
	}
}

static void take_least(struct expectation *least, double gbps, const char *limit)
{
	if (gbps > 0 && !(least->gbps <= gbps))
		*least = (struct expectation) { gbps, limit };
}

static bool is_soft(const struct sysroot *root, const struct told_vf *vf)
{
	return vf->hca && sysroot_exists(root, "sys/class/infiniband/%s", vf->hca) &&
	       !sysroot_exists(root, "sys/class/infiniband/%s/device", vf->hca);
}

/* An end's links, and the function that has its port: the PF. */
struct crossed {
	struct expect_path path;
	const char *pf; /* NULL: not seen from here */
};

static struct crossed crossed_by(const struct sysroot *root, const struct expect_end *end,
				 struct arena *a)
{
	struct expect_path card = chain_of(root, end->vf->bdf, a);

	return (struct crossed) { expect_path_of(root, end->vf, end->gpu, a),
				  card.n ? card.functions[card.n - 1] : NULL };
}

static size_t users_of_link(const struct crossed *all, size_t n, const char *function)
{
	size_t users = 0;

	for (size_t i = 0; i < n; i++) {
		for (size_t at = 0; at < all[i].path.n; at++)
			users += str_eq(all[i].path.functions[at], function);
	}
	return users;
}

static size_t users_of_port(const struct crossed *all, size_t n, size_t of)
{
	size_t users = 0;

	for (size_t i = 0; i < n; i++)
		users += i == of || (all[i].pf && str_eq(all[i].pf, all[of].pf));
	return users;
}

static void take_part(struct expectation *least, double gbps, const char *limit, size_t users,
		      struct arena *a)
{
	take_least(least, gbps / (double)users,
		   users > 1 ? arena_printf(a, "%s, shared by %zu", limit, users) : limit);
}

static void take_end(struct expectation *least, const struct sysroot *root,
		     const struct expect_end *end, const struct crossed *all, size_t n, size_t of,
		     struct arena *a)
{
	const struct expect_path *path = &all[of].path;
	const struct told_vf *vf = end->vf;
	int mps = mps_of(root, path);

	take_part(least, end->port_gbps,
		  arena_printf(a, "port %d of %s", vf->port, vf->hca ? vf->hca : vf->bdf),
		  users_of_port(all, n, of), a);
	if (vf->mbps > 0)
		take_least(least, (double)vf->mbps / 1000,
			   arena_printf(a, "rate of %s that was told, %.4g Gb/s", vf->bdf,
					(double)vf->mbps / 1000));
	for (size_t i = 0; i < path->n; i++) {
		struct expectation link = link_of(root, path->functions[i], mps, a);
		bool above_gpu = i + 1 < path->n && is_gpu(root, path->functions[i + 1]);

		if (!above_gpu && link.limit) /* the same link, seen from its other end */
			take_part(least, link.gbps, link.limit,
				  users_of_link(all, n, path->functions[i]), a);
	}
}

struct expectation expect_of(const struct sysroot *root, const struct told_vf *from,
			     double from_port_gbps, const char *from_gpu, const struct told_vf *to,
			     double to_port_gbps, const char *to_gpu, struct arena *a)
{
	const struct expect_end ends[] = { { from, from_port_gbps, from_gpu },
					   { to, to_port_gbps, to_gpu } };
	struct expectation least = { NAN, NULL };

	if (is_soft(root, from) || is_soft(root, to))
		return least;
	for (size_t i = 0; i < ARRAY_LEN(ends); i++) {
		const struct crossed own = crossed_by(root, &ends[i], a);

		take_end(&least, root, &ends[i], &own, 1, 0, a);
	}
	return least;
}

struct expectation expect_shared(const struct sysroot *root, const struct expect_end *ends,
				 size_t n, size_t of, struct arena *a)
{
	struct crossed *all = arena_array(a, n, sizeof(*all));
	struct expectation least = { NAN, NULL };

	if (is_soft(root, ends[of].vf))
		return least;
	for (size_t i = 0; i < n; i++)
		all[i] = crossed_by(root, &ends[i], a);
	take_end(&least, root, &ends[of], all, n, of, a);
	return least;
}
