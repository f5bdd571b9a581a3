/* Facts of the whole machine: NUMA nodes, virtual or not, the interface of the default route. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/arena.h"
#include "base/mem.h"
#include "base/str.h"
#include "discover/scan-internal.h"

#define NODES	 "sys/devices/system/node"
#define MAX_NODE 1023

bool scan_numa_exists(const struct scan *s, int node)
{
	for (size_t i = 0; i < s->n_numa; i++) {
		if (s->numa[i].id == node)
			return true;
	}
	return !s->n_numa && node >= 0 && node <= MAX_NODE;
}

static int add_node(void *arg, const char *name)
{
	struct scan *s = arg;
	int id;

	if (!str_starts(name, "node") || str_to_int(name + strlen("node"), &id) < 0 || id < 0 ||
	    id > MAX_NODE)
		return 0;
	if (s->n_numa && scan_numa_exists(s, id))
		return 0; /* "node01" beside "node1" */
	s->numa = xgrow(s->numa, &s->cap_numa, s->n_numa + 1, sizeof(*s->numa));
	s->numa[s->n_numa++] = (struct hw_numa) { .id = id };
	return 0;
}

static int by_id(const void *a, const void *b)
{
	const struct hw_numa *na = a, *nb = b;

	return na->id - nb->id;
}

/* "10 21": one number for each node of the machine, in order. */
static const int *read_distances(struct scan *s, int node)
{
	char text[8192], *save = NULL, *word;
	int *row = arena_array(s->arena, s->n_numa, sizeof(*row));
	int n = sysroot_read(s->root, text, sizeof(text), NODES "/node%d/distance", node);
	size_t i = 0;

	if (n == -ENOENT)
		return NULL;
	word = n < 0 ? NULL : strtok_r(text, " \t", &save);
	for (; word && i < s->n_numa && !str_to_int(word, &row[i]) && row[i] > 0; i++)
		word = strtok_r(NULL, " \t", &save);
	if (n >= 0 && !word && i == s->n_numa)
		return row;
	scan_note(s, "NUMA node %d: its distances are not %zu numbers; taken as unknown", node,
		  s->n_numa);
	return NULL;
}

#define CPUMAP_MAX 4096 /* of 8192 CPUs, which no kernel exceeds, it has 2303 characters */

/* Nine characters for 32 CPUs, and nothing else: it goes into other programs' files as it is. */
static const char *read_cpumap(struct scan *s, int node)
{
	char text[CPUMAP_MAX];
	int n = sysroot_read(s->root, text, sizeof(text), NODES "/node%d/cpumap", node);

	if (n == -ENOENT)
		return NULL;
	if (n > 0 && !text[strspn(text, "0123456789abcdef,")])
		return arena_strdup(s->arena, text);
	scan_note(s,
		  "NUMA node %d: its cpumap is not a list of hexadecimal numbers; taken as unknown",
		  node);
	return NULL;
}

void scan_numa(struct scan *s)
{
	int r = sysroot_each(s->root, NODES, add_node, s);

	if (r < 0 && r != -ENOENT)
		scan_note(s, NODES " cannot be read: %s", strerror(-r));
	if (s->n_numa > 1)
		qsort(s->numa, s->n_numa, sizeof(*s->numa), by_id);
	for (size_t i = 0; i < s->n_numa; i++) {
		s->numa[i].distance = read_distances(s, s->numa[i].id);
		s->numa[i].cpumap = read_cpumap(s, s->numa[i].id);
	}
}

/* DMI strings of virtual machines; NULL matches anything, `metal` marks vendors whose bare machines
 * have it in their name. */
static const struct {
	const char *vendor, *product;
	bool metal;
} virtual_machines[] = {
	{ "QEMU", NULL, false },	   { "KVM", NULL, false },
	{ "Bochs", NULL, false },	   { "Xen", NULL, false },
	{ "VMware", NULL, false },	   { "innotek GmbH", NULL, false },
	{ "Parallels", NULL, false },	   { "Microsoft Corporation", "Virtual Machine", false },
	{ "Amazon EC2", NULL, true },	   { "Google", "Google Compute Engine", false },
	{ "OpenStack", NULL, false },	   { "Red Hat", "KVM", false },
	{ "Red Hat", "OpenStack", false }, { "Nutanix", "AHV", false },
	{ "oVirt", NULL, false },	   { "Alibaba Cloud", "Alibaba Cloud ECS", false },
	{ "Tencent Cloud", "CVM", false }, { NULL, "VMware", false },
	{ NULL, "VirtualBox", false },	   { NULL, "KVM", false },
	{ NULL, "Bochs", false },	   { NULL, "HVM domU", false },
	{ NULL, "OpenStack", false },	   { NULL, "Standard PC (", false },
};

static bool dmi_says_hypervisor(const struct sysroot *root)
{
	char vendor[128] = "", product[128] = "";

	if (sysroot_read(root, vendor, sizeof(vendor), "sys/class/dmi/id/sys_vendor") < 0)
		vendor[0] = '\0';
	if (sysroot_read(root, product, sizeof(product), "sys/class/dmi/id/product_name") < 0)
		product[0] = '\0';
	for (size_t i = 0; i < ARRAY_LEN(virtual_machines); i++) {
		if ((!virtual_machines[i].vendor ||
		     str_starts(vendor, virtual_machines[i].vendor)) &&
		    (!virtual_machines[i].product ||
		     str_starts(product, virtual_machines[i].product)))
			return !virtual_machines[i].metal || !strstr(product, ".metal");
	}
	return false;
}

bool scan_hypervisor(const struct scan *s)
{
	char type[32];

	return s->is_virtual ||
	       sysroot_read(s->root, type, sizeof(type), "sys/hypervisor/type") > 0 ||
	       dmi_says_hypervisor(s->root);
}

#define ROUTES_MAX (1 << 20)

/* Piece by piece: few lines on most machines, many on a router. */
static int read_routes(const struct sysroot *root, struct strbuf *ret)
{
	_cleanup_close_ int fd = sysroot_openat(root, O_RDONLY | O_NONBLOCK, "proc/net/route");
	char piece[4096];
	ssize_t n;

	if (fd < 0)
		return fd;
	do {
		n = read(fd, piece, sizeof(piece));
		if (n > 0)
			strbuf_add(ret, piece, (size_t)n);
	} while ((n > 0 && ret->len < ROUTES_MAX) || (n < 0 && errno == EINTR));
	return n < 0 ? -errno : ret->len < ROUTES_MAX ? 0 : -EFBIG;
}

void scan_default_route(struct scan *s)
{
	_cleanup_strbuf_ struct strbuf text = STRBUF_INIT;
	char *save = NULL, name[64];
	int r = read_routes(s->root, &text);

	if (r < 0 && r != -ENOENT)
		scan_note(s, "proc/net/route cannot be read: %s; no default route is known",
			  strerror(-r));
	if (r < 0 || !text.len)
		return;
	for (char *line = strtok_r(text.s, "\n", &save); line; line = strtok_r(NULL, "\n", &save)) {
		unsigned destination, gateway, flags, mask;

		/* "Iface Destination Gateway Flags RefCnt Use Metric Mask …", hexadecimal. */
		if (sscanf(line, "%63s %8x %8x %4x %*s %*s %*s %8x", name, &destination, &gateway,
			   &flags, &mask) != 5 ||
		    destination || mask || !(flags & 1))
			continue;
		for (size_t i = 0; i < s->n_pci; i++) {
			if (str_eq(s->pci[i].netdev, name))
				s->pci[i].default_route = true;
		}
	}
}
