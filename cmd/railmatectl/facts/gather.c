/* Reads facts that the inventory does not have: IOMMU groups, configuration space, modules, the
 * command line. */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/mem.h"
#include "base/str.h"
#include "facts/facts.h"
#include "facts/gather.h"
#include "hw/bdf.h"
#include "hw/inventory.h"
#include "sysroot/sysroot.h"

#define BIG_FILE 16384

/* --- host --- */

static const char *read_text(const struct sysroot *root, struct arena *arena, const char *path)
{
	char buf[BIG_FILE];

	if (sysroot_read(root, buf, sizeof(buf), "%s", path) < 0)
		return NULL;
	return arena_strdup(arena, str_trim(buf));
}

static int count_one(void *arg, const char *name)
{
	(void)name;
	(*(int *)arg)++;
	return 0;
}

/* Entries of a directory; -1: it is not there, or may not be read. */
static int count(const struct sysroot *root, const char *path)
{
	int n = 0;

	return sysroot_each(root, path, count_one, &n) < 0 ? -1 : n;
}

static int note_kind(void *arg, const char *name)
{
	static const char *const kinds[] = { "dmar", "ivhd", "smmu" };
	const char **kind = arg;

	for (size_t i = 0; i < ARRAY_LEN(kinds); i++) {
		if (str_starts(name, kinds[i]))
			*kind = kinds[i];
	}
	if (!*kind)
		*kind = "other";
	return 0;
}

static bool any_exists(const struct sysroot *root, const char *const *paths, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		if (sysroot_exists(root, "%s", paths[i]))
			return true;
	}
	return false;
}

/* An absent entry means something only where the directory of them is. */
static enum facts_answer any_of(const struct sysroot *root, const char *where,
				const char *const *paths, size_t n)
{
	if (any_exists(root, paths, n))
		return FACTS_YES;
	return sysroot_exists(root, "%s", where) ? FACTS_NO : FACTS_UNKNOWN;
}

/* Does a line of the file have this in it? */
static enum facts_answer has_line(const struct sysroot *root, const char *path, const char *text)
{
	_cleanup_close_ int fd = sysroot_openat(root, O_RDONLY | O_NONBLOCK, "%s", path);
	FILE *file = fd < 0 ? NULL : fdopen(fd, "r");
	char line[512];
	bool found = false;

	if (!file)
		return FACTS_UNKNOWN;
	fd = -1; /* the stream's */
	while (!found && fgets(line, sizeof(line), file))
		found = strstr(line, text) != NULL;
	fclose(file);
	return found ? FACTS_YES : FACTS_NO;
}

/*
 * Without the file, RCCL looks for the interface among the kernel's symbols, whose names are not
 * hidden; for dmabuf it looks at the kernel's build configuration.
 */
static void read_amd(const struct sysroot *root, struct facts_host *h)
{
	_cleanup_free_ char *config = xasprintf("boot/config-%s", h->kernel ? h->kernel : "");
	enum facts_answer notify = has_line(root, config, "CONFIG_DMABUF_MOVE_NOTIFY=y");

	if (h->amd_peer != FACTS_YES)
		h->amd_peer = has_line(root, "proc/kallsyms", " ib_register_peer_memory_client");
	h->amd_dmabuf =
		notify == FACTS_YES ? has_line(root, config, "CONFIG_PCI_P2PDMA=y") : notify;
}

/* "NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  550.90.07  Release Build": the first
 * word that is a version. */
static const char *driver_version(struct arena *arena, const char *text)
{
	static const char digits[] = "0123456789";

	for (const char *word = text; *word;
	     word += strcspn(word, " \t\n"), word += strspn(word, " \t\n")) {
		size_t len = strcspn(word, " \t\n"), major = strspn(word, digits);

		if (major && word[major] == '.' && strspn(word, "0123456789.") == len)
			return arena_printf(arena, "%.*s", (int)len, word);
	}
	return NULL;
}

/* Peer memory: the same files that NCCL (src/transport/net_ib/gdr.cc) and RCCL (net_ib.cc) look at.
 */
static void read_modules(const struct sysroot *root, struct arena *arena, struct facts_host *h)
{
	static const char *const nvidia[] = {
		"sys/module/nvidia_peermem/version",
		"sys/kernel/mm/memory_peers/nv_mem/version",
		"sys/kernel/mm/memory_peers/nv_mem_nc/version",
	};
	static const char *const amd[] = {
		"sys/kernel/mm/memory_peers/amdkfd/version",
		"sys/kernel/memory_peers/amdkfd/version",
		"sys/memory_peers/amdkfd/version",
	};
	static const char *const listed[] = { "sys/kernel/mm/memory_peers/nv_mem",
					      "sys/kernel/mm/memory_peers/nv_mem_nc" };
	static const char *const storage[] = { "proc/driver/nvidia-fs", "sys/module/nvidia_fs" };
	const char *version = read_text(root, arena, "proc/driver/nvidia/version");

	h->peermem = any_of(root, "sys/module", nvidia, ARRAY_LEN(nvidia));
	h->amd_peer = any_of(root, "sys/kernel", amd, ARRAY_LEN(amd));
	h->nvidia_open = !version				 ? FACTS_UNKNOWN
			 : strstr(version, "Open Kernel Module") ? FACTS_YES
								 : FACTS_NO;
	h->nvidia_version = version ? driver_version(arena, version) : NULL;
	h->nvidia_params = read_text(root, arena, "proc/driver/nvidia/params");
	h->peermem_version = read_text(root, arena, "sys/module/nvidia_peermem/version");
	h->old_peermem = sysroot_exists(root, "sys/module/nv_peer_mem");
	h->peermem_registered =
		any_of(root, "sys/kernel/mm/memory_peers", listed, ARRAY_LEN(listed));
	h->rdma_peers = FACTS_UNKNOWN;
	if (h->peermem == FACTS_NO)
		h->rdma_peers = has_line(root, "proc/kallsyms", " ib_register_peer_memory_client");
	h->nvidia_fs = any_of(root, "sys/module", storage, ARRAY_LEN(storage));
}

static void read_host(const struct sysroot *root, struct arena *arena, struct facts_host *h)
{
	uint64_t balancing;

	h->cmdline = read_text(root, arena, "proc/cmdline");
	h->kernel = read_text(root, arena, "proc/sys/kernel/osrelease");
	h->kernel_major = h->kernel_minor = -1;
	if (h->kernel && sscanf(h->kernel, "%4d.%4d", &h->kernel_major, &h->kernel_minor) != 2)
		h->kernel_major = h->kernel_minor = -1;
	h->iommu_units = count(root, "sys/class/iommu");
	h->iommu_groups = count(root, "sys/kernel/iommu_groups");
	sysroot_each(root, "sys/class/iommu", note_kind, &h->iommu_kind);
	read_modules(root, arena, h);
	h->numa_balancing = -1;
	if (!sysroot_read_u64(root, 10, &balancing, "proc/sys/kernel/numa_balancing") &&
	    balancing < 8)
		h->numa_balancing = (int)balancing;
}

/* A container's root is an overlay, as a rule; engines leave a file, or the kubelet an environment.
 */
static enum facts_answer in_container(const struct sysroot *root)
{
	static const char *const signs[] = { ".dockerenv", "run/.containerenv",
					     "var/run/secrets/kubernetes.io/serviceaccount" };
	char line[4096], *at;

	if (!sysroot_is_live(root))
		return FACTS_UNKNOWN;
	if (getenv("KUBERNETES_SERVICE_HOST") || any_exists(root, signs, ARRAY_LEN(signs)))
		return FACTS_YES;
	if (sysroot_read(root, line, sizeof(line), "proc/1/comm") >= 0 &&
	    !strcmp(str_trim(line), "systemd"))
		return FACTS_NO;
	at = sysroot_read(root, line, sizeof(line), "proc/self/mounts") < 0 ? NULL
									    : strstr(line, " / ");
	return !at ? FACTS_UNKNOWN : str_starts(at, " / overlay ") ? FACTS_YES : FACTS_NO;
}

/* railmated's container, or that of a pod which runs railmatectl for the node. */
static bool in_own_container(const struct sysroot *root)
{
	char first[32];

	return sysroot_read(root, first, sizeof(first), "proc/1/comm") > 0 &&
	       str_starts(first, "railmate");
}

/* --- functions --- */

static enum facts_iommu read_group(const struct sysroot *root, const struct facts *f, int pci)
{
	static const struct {
		const char *name;
		enum facts_iommu type;
	} types[] = {
		{ "identity", FACTS_IOMMU_IDENTITY }, { "DMA", FACTS_IOMMU_DMA },
		{ "DMA-FQ", FACTS_IOMMU_DMA_FQ },     { "blocked", FACTS_IOMMU_BLOCKED },
		{ "unmanaged", FACTS_IOMMU_OTHER },   { "auto", FACTS_IOMMU_OTHER },
	};
	char addr[BDF_STRLEN], group[32], text[32];
	int r = sysroot_link_name(root, group, sizeof(group), "sys/bus/pci/devices/%s/iommu_group",
				  bdf_format(f->inv->pci[pci].bdf, addr));
	bool none = r == -ENOENT && (f->host.iommu_groups >= 0 || f->host.iommu_units >= 0);
	uint64_t number;

	f->pci[pci].iommu_group = none ? FACTS_GROUP_NONE
				  : r >= 0 && str_to_u64(group, 10, INT_MAX, &number) >= 0
					  ? (int)number
					  : FACTS_GROUP_UNKNOWN;
	if (r == -ENOENT)
		return none ? FACTS_IOMMU_NONE : FACTS_IOMMU_UNKNOWN;
	if (r < 0 ||
	    sysroot_read(root, text, sizeof(text), "sys/kernel/iommu_groups/%s/type", group) < 0)
		return FACTS_IOMMU_UNKNOWN;
	for (size_t i = 0; i < ARRAY_LEN(types); i++) {
		if (!strcmp(str_trim(text), types[i].name))
			return types[i].type;
	}
	return FACTS_IOMMU_UNKNOWN;
}

static void read_path(const struct sysroot *root, const struct facts *f, int pci)
{
	for (int depth = 0; pci >= 0 && depth < FACTS_PATH_MAX;
	     depth++, pci = f->inv->pci[pci].parent)
		facts_read_config(root, f, pci);
}

/* One line for each: start, end, flags. 0 to 5 are the function's, 7 to 12 its VFs'. */
static struct facts_bars read_bars(const struct sysroot *root, const struct hw_pci *p)
{
	enum { OWN = 6, VF_FIRST = 7, VF_LAST = 12, MEMORY = 0x200, UNSET = 0x20000000 };
	struct facts_bars bars = { .known = FACTS_NO };
	char addr[BDF_STRLEN], text[4096];
	const char *line = text;
	bool any_vf = false;

	if (sysroot_read(root, text, sizeof(text), "sys/bus/pci/devices/%s/resource",
			 bdf_format(p->bdf, addr)) <= 0)
		return bars;
	for (int i = 0; line && i <= VF_LAST; i++, line = str_next_line(line)) {
		uint64_t start = 0, end = 0, flags = 0;

		if (sscanf(line, "%" SCNx64 " %" SCNx64 " %" SCNx64, &start, &end, &flags) != 3)
			break;
		bars.known = FACTS_YES;
		if (!(flags & MEMORY))
			continue;
		if (i < OWN && end - start + 1 > bars.largest)
			bars.largest = end - start + 1;
		bars.unset |= i < OWN && flags & UNSET;
		any_vf |= i >= VF_FIRST && !(flags & UNSET);
		bars.vf_unset |= i >= VF_FIRST && flags & UNSET;
	}
	bars.vf_unset |= p->sriov_total && !any_vf;
	return bars;
}

/* GPUs, NICs and the bridges above them. Whether a VF has ATS matters where its addresses are
 * translated. */
static void read_functions(const struct sysroot *root, const struct facts *f)
{
	const struct hw_inventory *inv = f->inv;

	for (size_t i = 0; i < inv->n_pci; i++)
		f->pci[i] = (struct facts_pci) { .iommu_group = FACTS_GROUP_UNKNOWN,
						 .port_type = -1,
						 .devcap2 = -1,
						 .devctl2 = -1,
						 .devctl = -1 };
	for (size_t i = 0; i < inv->n_gpu; i++)
		read_path(root, f, inv->gpu[i].pci);
	for (size_t i = 0; i < f->n_nic; i++)
		read_path(root, f, f->nic[i]);
	for (size_t i = 0; i < inv->n_pci; i++) {
		const struct hw_pci *p = &inv->pci[i];
		enum facts_iommu iommu;

		if (hw_find_gpu(inv, (int)i) < 0 && !hw_is_nic(p) && !hw_is_data_direct(p))
			continue;
		if (hw_is_data_direct(p) || facts_is_board_nic(p))
			read_path(root, f, (int)i);
		iommu = f->pci[i].iommu = read_group(root, f, (int)i);
		if (p->physfn < 0)
			f->pci[i].bars = read_bars(root, p);
		else if (iommu == FACTS_IOMMU_DMA || iommu == FACTS_IOMMU_DMA_FQ)
			facts_read_config(root, f, (int)i);
	}
}

/* --- NICs --- */

enum { NIC_WITH_VFS, NIC_COULD_HAVE_VFS, NIC_OF_ANY_KIND, NIC_NOT };

static int nic_kind(const struct hw_inventory *inv, int pci, const bool *has_vf,
		    const bool *has_rdma)
{
	const struct hw_pci *p = &inv->pci[pci];

	if (p->physfn >= 0 || !hw_is_nic(p))
		return NIC_NOT;
	if (hw_is_nic_vf(inv, pci))
		return NIC_WITH_VFS;
	if (!has_rdma[pci])
		return NIC_NOT;
	return has_vf[pci] ? NIC_WITH_VFS : hw_is_pf(p) ? NIC_COULD_HAVE_VFS : NIC_OF_ANY_KIND;
}

/* A VF that a driver of user space has is one of its PF's all the same. */
static void find_nics(struct facts *f)
{
	const struct hw_inventory *inv = f->inv;
	_cleanup_free_ bool *has_vf = xcalloc(inv->n_pci + 1, sizeof(*has_vf));
	_cleanup_free_ bool *has_rdma = xcalloc(inv->n_pci + 1, sizeof(*has_rdma));
	int *nic = arena_array(f->arena, inv->n_pci + 1, sizeof(*nic));

	for (size_t i = 0; i < inv->n_pci; i++) {
		if (inv->pci[i].physfn >= 0)
			has_vf[inv->pci[i].physfn] = true;
	}
	for (size_t i = 0; i < inv->n_rdma; i++) {
		int pci = inv->rdma[i].pci;

		if (pci < 0)
			continue;
		has_rdma[pci] = true;
		if (inv->pci[pci].physfn >= 0)
			has_rdma[inv->pci[pci].physfn] = true;
	}
	for (int kind = NIC_WITH_VFS; kind < NIC_NOT && !f->n_nic; kind++) {
		for (size_t i = 0; i < inv->n_pci; i++) {
			if (nic_kind(inv, (int)i, has_vf, has_rdma) == kind)
				nic[f->n_nic++] = (int)i;
		}
	}
	f->nic = nic;
}

struct facts *facts_gather(const struct sysroot *root, const struct hw_inventory *inv,
			   const struct topo *topo, enum facts_of of)
{
	bool here = of == FACTS_OF_HERE && !in_own_container(root);
	struct arena *arena = arena_new(16384);
	struct facts *f = arena_alloc(arena, sizeof(*f));

	f->arena = arena;
	f->inv = inv;
	f->topo = topo;
	f->live = sysroot_is_live(root);
	f->confined = in_container(root);
	f->container = here ? f->confined : FACTS_NO;
	f->pci = arena_array(arena, inv->n_pci + 1, sizeof(*f->pci));
	read_host(root, arena, &f->host);
	if (facts_has_vendor(f, "AMD"))
		read_amd(root, &f->host);
	find_nics(f);
	read_functions(root, f);
	f->net = facts_net_gather(root, inv, here, arena);
	return f;
}

void facts_free(struct facts *f)
{
	if (f)
		arena_free(f->arena);
}
