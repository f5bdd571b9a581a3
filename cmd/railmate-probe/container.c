/*
 * The container itself, without traffic: what it may lock in memory, its /dev/shm, its nodes, the
 * GIDs and the PCIe links of its VFs. All from files and the opening of its own nodes.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "base/arena.h"
#include "base/mem.h"
#include "base/str.h"
#include "checks.h"
#include "expect.h"
#include "hw/driver.h"
#include "nodes.h"
#include "report.h"
#include "sysroot/dir.h"
#include "sysroot/sysroot.h"
#include "told.h"
#include "wire.h"

#define MIB	    ((uint64_t)1 << 20)
#define FOREIGN_MAX 8 /* that are listed */
/* Of one pair of ranks that talk by shared memory: "Error while creating shared memory segment
 * /dev/shm/nccl-… (size 9637888)", at NCCL's own buffer size. */
#define SHM_OF_PAIR ((uint64_t)9637888)

/* --- memlock --- */

/* CAP_IPC_LOCK counts in the initial user namespace alone (drivers/infiniband/core/umem.c). */
static bool may_lock_any(const struct sysroot *root, struct arena *a)
{
	static const char key[] = "CapEff:";
	char *text = arena_alloc(a, 1 << 16), map[256];
	const char *at = text;
	unsigned long first = 1, outside = 1, count = 0;

	if (sysroot_read(root, map, sizeof(map), "proc/self/uid_map") > 0 &&
	    sscanf(map, "%lu %lu %lu", &first, &outside, &count) == 3 &&
	    (first || outside || count != UINT32_MAX))
		return false;
	if (sysroot_read(root, text, 1 << 16, "proc/self/status") < 0)
		return false;
	while (at && !str_starts(at, key))
		at = str_next_line(at);
	return at && (strtoull(at + sizeof(key) - 1, NULL, 16) >> 14 & 1);
}

static void check_memlock(const struct sysroot *root, struct report *r)
{
	static const char key[] = "Max locked memory";
	char *text = arena_alloc(r->arena, 1 << 14);
	int n = sysroot_read(root, text, 1 << 14, "proc/self/limits");
	const char *at = n < 0 ? NULL : text;
	unsigned long long limit;

	while (at && !str_starts(at, key))
		at = str_next_line(at);
	if (!at) {
		report_finding(
			r, OUTCOME_NOT_MEASURED, "memlock", NULL,
			"How much memory may be locked cannot be read: /proc/self/limits: %s",
			n < 0 ? strerror(-n) : "no such line");
		return;
	}
	if (sscanf(at + sizeof(key) - 1, "%llu", &limit) != 1 || may_lock_any(root, r->arena))
		return; /* "unlimited" */
	report_finding(r, limit < WIRE_MEMORY_MAX ? OUTCOME_BROKEN : OUTCOME_SLOW, "memlock", NULL,
		       "This container may lock %llu KiB of memory and has no IPC_LOCK",
		       limit / 1024);
}

/* --- /dev/shm --- */

static void check_shm(const struct sysroot *root, const struct told *told, struct report *r)
{
	_cleanup_close_ int fd = sysroot_openat(root, O_RDONLY | O_DIRECTORY, "dev/shm");
	uint64_t pairs = (uint64_t)told->n_gpus * (told->n_gpus - !!told->n_gpus);
	uint64_t need = pairs * SHM_OF_PAIR, size, left;
	struct statvfs fs;

	if (fd < 0 || fstatvfs(fd, &fs) < 0) {
		report_finding(r, pairs ? OUTCOME_BROKEN : OUTCOME_SLOW, "shm", "/dev/shm",
			       "There is no shared memory: %s", strerror(fd < 0 ? -fd : errno));
		return;
	}
	size = fs.f_blocks * fs.f_frsize;
	left = fs.f_bavail * fs.f_frsize;
	if (left < need)
		report_finding(
			r, OUTCOME_SLOW, "shm", "/dev/shm",
			"%llu of %llu MiB are free, and NCCL takes up to %llu MiB for %zu GPUs",
			(unsigned long long)(left / MIB), (unsigned long long)(size / MIB),
			(unsigned long long)(need / MIB), told->n_gpus);
}

/* --- nodes --- */

/* The RDMA device is not where the kernel shows it: which of the reasons is it? */
static void explain_no_hca(const struct sysroot *root, const struct told_vf *vf, struct report *r)
{
	const struct hw_driver *driver = hw_driver_of_rdma(vf->hca);
	struct node node;

	if (node_of_vf(root, vf, &node) == 0 ||
	    sysroot_exists(root, "sys/bus/pci/devices/%s/infiniband/%s", vf->bdf, vf->hca))
		report_finding(r, OUTCOME_BROKEN, "rdma-exclusive", vf->hca,
			       "The RDMA device is in another network namespace");
	else if (!sysroot_exists(root, "sys/class/infiniband"))
		report_finding(r, OUTCOME_BROKEN, "ib-modules", vf->hca,
			       "/sys/class/infiniband is not there: no module ib_core, or no /sys");
	else if (driver && driver->rdma_module &&
		 !sysroot_exists(root, "sys/module/%s", driver->rdma_module))
		report_finding(r, OUTCOME_BROKEN, "ib-modules", vf->hca,
			       "The kernel has no RDMA device: the module %s is not loaded",
			       driver->rdma_module);
	else
		report_finding(r, OUTCOME_BROKEN, "hca-gone", vf->hca,
			       "The RDMA device of %s is gone since the container started",
			       vf->bdf);
}

static void explain_refusal(const char *path, const char *hca, int error, struct report *r)
{
	switch (error) {
	case EPERM:
		report_finding(r, OUTCOME_BROKEN, "uverbs-cgroup", hca,
			       "The container's cgroup denies %s: %s", path, strerror(error));
		break;
	case EACCES:
		report_finding(r, OUTCOME_BROKEN, "uverbs-mode", hca, "User %u may not open %s: %s",
			       (unsigned)geteuid(), path, strerror(error));
		break;
	default:
		report_finding(r, OUTCOME_BROKEN, "uverbs-open", hca, "%s cannot be opened: %s",
			       path, strerror(error));
	}
}

/* A node at this path with this number, that can be opened? absent: where there is none. */
static void check_node(const struct sysroot *root, const char *path, dev_t number, const char *on,
		       enum outcome absent, struct report *r)
{
	_cleanup_close_ int seen = sysroot_openat(root, O_PATH, "%s", path + 1), fd = -1;
	struct stat st;

	if (seen < 0 || fstat(seen, &st) < 0) {
		report_finding(r, absent, "uverbs-absent", on, "%s: %s", path,
			       strerror(seen < 0 ? -seen : errno));
		return;
	}
	if (!S_ISCHR(st.st_mode) || st.st_rdev != number) {
		report_finding(r, OUTCOME_BROKEN, "uverbs-number", on,
			       "%s is %u:%u, and the kernel's device is %u:%u", path,
			       major(st.st_rdev), minor(st.st_rdev), major(number), minor(number));
		return;
	}
	fd = sysroot_openat(root, O_RDWR, "%s", path + 1);
	if (fd < 0)
		explain_refusal(path, on, -fd, r);
}

/* 0 where there is a node to look at. */
static int find_node(const struct sysroot *root, const struct told_vf *vf, struct report *r,
		     struct node *ret)
{
	if (!vf->hca)
		return -ENOENT; /* finding no-hca is made by who reads map.json */
	if (!sysroot_exists(root, "sys/class/infiniband/%s", vf->hca)) {
		explain_no_hca(root, vf, r);
		return -ENOENT;
	}
	if (node_of_vf(root, vf, ret) == 0)
		return 0;
	report_finding(r, OUTCOME_BROKEN, "ib-modules", vf->hca,
		       "The kernel has no verbs device for it%s",
		       sysroot_exists(root, "sys/module/ib_uverbs")
			       ? ""
			       : ": the module ib_uverbs is not loaded");
	return -ENOENT;
}

/* Is it a node of a device that is not the container's, and that it may open all the same? */
static bool is_foreign(const struct sysroot *root, const struct told *told, const char *name,
		       struct node *ret)
{
	_cleanup_close_ int fd = -1;

	if (!str_starts(name, "uverbs") || node_read(root, name, ret) < 0)
		return false;
	for (size_t i = 0; i < told->n_vfs; i++) {
		if (str_eq(told->vfs[i].hca, ret->ibdev))
			return false;
	}
	fd = sysroot_openat(root, O_RDWR, "dev/infiniband/%s", name);
	return fd >= 0;
}

static void check_foreign(const struct sysroot *root, const struct told *told, struct report *r)
{
	_cleanup_dir_ struct dir d = DIR_CLOSED;
	_cleanup_names_ struct names names = NAMES_EMPTY;
	const char *list = "";
	struct node node;
	size_t n = 0;

	if (dir_open_path(root, "dev/infiniband", &d) < 0 || names_of(&d, &names) < 0)
		return; /* each of the container's own is missed on its own */
	for (size_t i = 0; i < names.n; i++) {
		if (is_foreign(root, told, names.v[i], &node) && n++ < FOREIGN_MAX)
			list = arena_printf(r->arena, "%s%s%s (%s)", list, *list ? ", " : "",
					    names.v[i], node.ibdev);
	}
	if (n)
		report_finding(r, OUTCOME_SLOW, "uverbs-foreign", "/dev/infiniband",
			       "The container can open nodes that are not its own, %zu: %s%s", n,
			       list, n > FOREIGN_MAX ? ", …" : "");
}

static void check_nodes(const struct sysroot *root, const struct told *told, struct report *r)
{
	struct node node;
	unsigned major, minor;
	char text[32];

	for (size_t i = 0; i < told->n_vfs; i++) {
		if (find_node(root, &told->vfs[i], r, &node) == 0)
			check_node(root, arena_printf(r->arena, "/dev/infiniband/%s", node.name),
				   node.number, told->vfs[i].hca, OUTCOME_BROKEN, r);
	}
	check_foreign(root, told, r);
	/* pools whose libraries do without have none */
	if (told->n_vfs && sysroot_exists(root, "dev/infiniband/rdma_cm") &&
	    sysroot_read(root, text, sizeof(text), "sys/class/misc/rdma_cm/dev") > 0 &&
	    sscanf(text, "%u:%u", &major, &minor) == 2)
		check_node(root, "/dev/infiniband/rdma_cm", makedev(major, minor), "rdma_cm",
			   OUTCOME_SLOW, r);
}

/* --- GIDs --- */

static bool gid_of(const char *text, struct in6_addr *ret)
{
	struct in_addr v4;

	if (inet_pton(AF_INET, text, &v4) == 1) {
		*ret = (struct in6_addr) { .s6_addr = { [10] = 0xff, [11] = 0xff } };
		memcpy(&ret->s6_addr[12], &v4, sizeof(v4));
		return true;
	}
	return inet_pton(AF_INET6, text, ret) == 1;
}

static bool is_roce(const struct sysroot *root, const struct told_vf *vf)
{
	char layer[32];

	return sysroot_read(root, layer, sizeof(layer),
			    "sys/class/infiniband/%s/ports/%d/link_layer", vf->hca, vf->port) > 0 &&
	       str_eq(layer, "Ethernet");
}

/* Of an entry that is there: its type and its address. */
static void check_gid_entry(const struct sysroot *root, const struct told_vf *vf, int index,
			    const char *text, const struct in6_addr *gid, const char *on,
			    struct report *r)
{
	struct in6_addr was;
	char type[32];

	if (vf->gid && index == vf->gid_index && gid_of(vf->gid, &was) &&
	    memcmp(&was, gid, sizeof(was)) != 0)
		report_finding(r, OUTCOME_BROKEN, "gid-changed", on,
			       "GID %d was %s when the container started, and is %s", index,
			       vf->gid, text);
	if (!is_roce(root, vf))
		return; /* InfiniBand's are link-local by default, and have one type */
	if (IN6_IS_ADDR_LINKLOCAL(gid))
		report_finding(r, OUTCOME_SLOW, "gid-link-local", on, "GID %d is link-local: %s",
			       index, text);
	if (sysroot_read(root, type, sizeof(type),
			 "sys/class/infiniband/%s/ports/%d/gid_attrs/types/%d", vf->hca, vf->port,
			 index) >= 0 &&
	    !str_eq(type, "RoCE v2") && !str_eq(type, vf->gid_type))
		report_finding(r, OUTCOME_BROKEN, "gid-type", on, "GID %d is of type %s", index,
			       type);
}

static void check_gid(const struct sysroot *root, const struct told *told, const struct told_vf *vf,
		      struct report *r)
{
	int index = told->nccl_gid_index >= 0 ? told->nccl_gid_index : vf->gid_index;
	const char *on = arena_printf(r->arena, "%s port %d", vf->hca, vf->port);
	struct in6_addr gid;
	char text[64];
	int n;

	if (!is_roce(root, vf))
		index = vf->gid_index; /* NCCL's index is for RoCE: InfiniBand goes by LIDs */
	if (index < 0)		       /* no index was told: NCCL chooses */
		return;
	n = sysroot_read(root, text, sizeof(text), "sys/class/infiniband/%s/ports/%d/gids/%d",
			 vf->hca, vf->port, index);
	if (n >= 0 && gid_of(text, &gid) && !IN6_IS_ADDR_UNSPECIFIED(&gid))
		check_gid_entry(root, vf, index, text, &gid, on, r);
	else
		report_finding(r, OUTCOME_BROKEN, index == vf->gid_index ? "gid-gone" : "gid-index",
			       on, "There is no GID %d: %s", index,
			       n < 0 ? strerror(-n) : "the entry is empty");
}

void check_container(const struct sysroot *root, const struct told *told, struct report *r)
{
	check_memlock(root, r);
	check_shm(root, told, r);
	check_nodes(root, told, r);
	expect_check_links(root, told, r);
	for (size_t i = 0; i < told->n_vfs; i++) {
		const struct told_vf *vf = &told->vfs[i];

		if (vf->hca && sysroot_exists(root, "sys/class/infiniband/%s", vf->hca))
			check_gid(root, told, vf, r);
	}
}
