/*
 * A scan from its begin to its inventory: values of single files and the sentences about them,
 * what is true of the machine as a whole, and what is asked for beside a scan. The other files
 * read its tables of devices (scan-internal.h).
 */
#include "discover/discover.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <numa.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/arena.h"
#include "base/mem.h"
#include "base/str.h"
#include "discover/scan-internal.h"
#include "hw/inventory.h"
#include "sysroot/sysroot.h"

/* Values of single files, and the sentences about those that make no sense. */

#define DEVICES "sys/bus/pci/devices"

void scan_note(struct scan *s, const char *fmt, ...)
{
	va_list ap;

	s->notes = xgrow(s->notes, &s->cap_notes, s->n_notes + 1, sizeof(*s->notes));
	va_start(ap, fmt);
	s->notes[s->n_notes++] = arena_vprintf(s->arena, fmt, ap);
	va_end(ap);
}

/* "0000:3b:00.2/net/eth0": the device leads, and the path to all devices is left out. */
static void subject(const struct dir *d, char *buf, size_t size)
{
	size_t skip = strlen(DEVICES "/");

	dir_path(d, buf, size);
	if (str_starts(buf, DEVICES "/"))
		memmove(buf, buf + skip, strlen(buf + skip) + 1);
}

/* At most 40 characters of the value are shown, printable. */
static int bad_value(const struct dir *d, const char *name, const char *value, const char *what,
		     struct err *err)
{
	char who[128], shown[44];
	size_t n;

	subject(d, who, sizeof(who));
	if (!*value)
		return err_set(err, EINVAL, "%s: %s is empty", who, name);
	n = strnlen(value, 40);
	for (size_t i = 0; i < n; i++)
		shown[i] = isprint((unsigned char)value[i]) ? value[i] : '?';
	snprintf(shown + n, sizeof(shown) - n, "%s", value[n] ? "..." : "");
	return err_set(err, EINVAL, "%s: %s says '%s', not %s", who, name, shown, what);
}

static int unreadable(const struct dir *d, const char *name, int code, struct err *err)
{
	char who[128];

	subject(d, who, sizeof(who));
	return err_set(err, code, "%s: %s cannot be read: %s", who, name,
		       code == EFBIG ? "it is too long for what it should hold" : strerror(code));
}

/* Text of a small file without blanks around it; *ret points into buf. */
static int read_text(const struct dir *d, const char *name, char *buf, size_t size, char **ret,
		     struct err *err)
{
	int n = dir_read(d, name, buf, size);

	if (n == -ENOENT)
		return n;
	if (n < 0)
		return unreadable(d, name, -n, err);
	if ((size_t)n != strlen(buf))
		return unreadable(d, name, EILSEQ, err);
	*ret = str_trim(buf);
	return 0;
}

int attr_u64(const struct dir *d, const char *name, int base, uint64_t max, uint64_t *ret,
	     struct err *err)
{
	char buf[64], *text;
	int r = read_text(d, name, buf, sizeof(buf), &text, err);

	if (r < 0)
		return r;
	if (str_to_u64(text, base, max, ret) < 0)
		return bad_value(d, name, text, "a number that fits", err);
	return 0;
}

int attr_int(const struct dir *d, const char *name, int *ret, struct err *err)
{
	char buf[64], *text;
	int r = read_text(d, name, buf, sizeof(buf), &text, err);

	if (r < 0)
		return r;
	return str_to_int(text, ret) < 0 ? bad_value(d, name, text, "a number", err) : 0;
}

int scan_int(struct scan *s, const struct dir *d, const char *name, int max, int fallback)
{
	struct err err = { 0 };
	uint64_t v;
	int r = attr_u64(d, name, 10, (uint64_t)max, &v, &err);

	if (r < 0 && r != -ENOENT)
		scan_note(s, "%s", err.msg);
	return r < 0 ? fallback : (int)v;
}

int scan_word(struct scan *s, const struct dir *d, const char *name, const char **ret)
{
	struct err err = { 0 };
	char buf[64], *text;
	const char *colon;
	int r = read_text(d, name, buf, sizeof(buf), &text, &err);

	*ret = NULL;
	if (r < 0) {
		if (r != -ENOENT)
			scan_note(s, "%s", err.msg);
		return r;
	}
	colon = strstr(text, ": ");
	if (colon && colon[2])
		*ret = arena_strdup(s->arena, colon + 2);
	else
		scan_note_value(s, d, name, text);
	return 0;
}

void scan_note_value(struct scan *s, const struct dir *d, const char *name, const char *value)
{
	struct err err;

	bad_value(d, name, value, "something known; taken as unknown", &err);
	scan_note(s, "%s", err.msg);
}

int parse_thousandths(const char *text, const char *unit, int *ret)
{
	long whole, part = 0;
	char *end;

	if (!isdigit((unsigned char)*text))
		return -EINVAL;
	whole = strtol(text, &end, 10);
	if (*end == '.') {
		int scale = 100;

		for (end++; isdigit((unsigned char)*end) && scale; end++, scale /= 10)
			part += (*end - '0') * scale;
	}
	if (*end != ' ' || !str_starts(end + 1, unit) || whole > 100000)
		return -EINVAL;
	*ret = (int)(whole * 1000 + part);
	return 0;
}

/* Facts of the whole machine: NUMA nodes, virtual or not, the interface of the default route. */

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

static void scan_numa(struct scan *s)
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

/* after scan_cpu() and scan_place() */
static bool scan_hypervisor(const struct scan *s)
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

static void scan_default_route(struct scan *s)
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

/* The model of the first processor of /proc/cpuinfo. The whole file is long and slow to make on a
 * large machine. */

/* The line's value if it is "key <tabs>: value", else NULL. */
static const char *value_of(const char *line, const char *key)
{
	if (!str_starts(line, key))
		return NULL;
	line += strlen(key);
	line += strspn(line, " \t");
	return *line == ':' ? line + 1 + (line[1] == ' ') : NULL; /* "  Shanghai  " is a vendor */
}

static bool has_word(const char *list, const char *word)
{
	size_t len;

	for (; *list; list += len) {
		list += strspn(list, " \t");
		len = strcspn(list, " \t");
		if (len == strlen(word) && !strncmp(list, word, len))
			return true;
	}
	return false;
}

static struct hw_cpu scan_cpu(struct scan *s)
{
	_cleanup_close_ int fd = sysroot_openat(s->root, O_RDONLY | O_NONBLOCK, "proc/cpuinfo");
	struct hw_cpu cpu = { .family = -1, .model = -1 };
	char text[8192], *save = NULL;
	ssize_t n = fd < 0 ? -1 : read(fd, text, sizeof(text) - 1);

	if (n <= 0)
		return cpu;
	text[n] = '\0';
	if (strstr(text, "\n\n"))
		strstr(text, "\n\n")[0] = '\0';
	for (char *line = strtok_r(text, "\n", &save); line; line = strtok_r(NULL, "\n", &save)) {
		const char *value = value_of(line, "vendor_id");

		if (value && *value) {
			cpu.arch = "x86_64";
			cpu.vendor = arena_strdup(s->arena, value);
		}
		if (value_of(line, "CPU implementer"))
			cpu.arch = "arm64";
		value = value_of(line, "cpu family");
		if (value && str_to_int(value, &cpu.family) < 0)
			cpu.family = -1;
		value = value_of(line, "model");
		if (value && str_to_int(value, &cpu.model) < 0)
			cpu.model = -1;
		value = value_of(line, "flags");
		if (value && has_word(value, "hypervisor"))
			s->is_virtual = true;
	}
	return cpu;
}

/* libnuma reads the running kernel only and takes no root: good for a second opinion on the live
 * machine. */

void discover_check_numa(const struct sysroot *root, const struct hw_inventory *inv,
			 struct strbuf *out)
{
	bool differs = false;
	int nodes;

	if (!sysroot_is_live(root) || !inv->n_numa)
		return;
	if (numa_available() < 0) {
		if (inv->n_numa > 1)
			strbuf_printf(out, "libnuma finds no NUMA support, sysfs shows %zu nodes",
				      inv->n_numa);
		return;
	}
	nodes = numa_num_configured_nodes();
	if (nodes != (int)inv->n_numa) {
		strbuf_printf(out, "libnuma counts %d NUMA nodes, sysfs shows %zu", nodes,
			      inv->n_numa);
		return;
	}
	for (size_t i = 0; i < inv->n_numa && !differs; i++) {
		const struct hw_numa *a = &inv->numa[i];

		for (size_t k = 0; a->distance && k < inv->n_numa && !differs; k++) {
			int theirs = numa_distance(a->id, inv->numa[k].id);

			differs = theirs != a->distance[k];
			if (differs)
				strbuf_printf(
					out,
					"libnuma says %d for the distance of NUMA nodes %d and %d, sysfs says %d",
					theirs, a->id, inv->numa[k].id, a->distance[k]);
		}
	}
}

/* Facts that a scan leaves out, as they cost a question to the firmware or a system call a device,
 * and hardly a pool selects by them. */

#define RDMA_DIR "sys/class/infiniband"

void discover_default_pkeys(const struct sysroot *root, struct hw_inventory *inv)
{
	for (size_t i = 0; i < inv->n_rdma; i++) {
		struct hw_rdma *rdma = &inv->rdma[i];
		char text[16];
		uint64_t key;

		if (!rdma->n_ports || rdma->ports[0].link != HW_LINK_IB)
			continue;
		if (sysroot_read(root, text, sizeof(text), RDMA_DIR "/%s/ports/%d/pkeys/0",
				 rdma->name, rdma->ports[0].number) > 0 &&
		    !str_to_u64(text, 16, UINT16_MAX, &key))
			rdma->pkey = (uint16_t)key;
	}
}

void discover_acpi_indexes(const struct sysroot *root, struct hw_inventory *inv)
{
	char text[16], addr[BDF_STRLEN];
	int index;

	for (size_t i = 0; i < inv->n_pci; i++) {
		if (sysroot_read(root, text, sizeof(text), DEVICES "/%s/acpi_index",
				 bdf_format(inv->pci[i].bdf, addr)) > 0 &&
		    !str_to_int(str_trim(text), &index) && index >= 0)
			inv->pci[i].acpi_index = index;
	}
}

/* --- a scan --- */

#define MISC	     "sys/class/misc"
#define VIRTUAL_MISC "sys/devices/virtual/misc"

static void *into_arena(struct arena *arena, void *table, size_t n, size_t size)
{
	void *copy = arena_copy(arena, table, n * size);

	free(table);
	return copy;
}

static bool has_misc(const struct scan *s, const char *node, const char *class)
{
	return sysroot_exists(s->root, "dev/%s", node) ||
	       sysroot_exists(s->root, MISC "/%s", class);
}

static struct hw_inventory *finish(struct scan *s)
{
	struct hw_inventory *inv = arena_alloc(s->arena, sizeof(*inv));

	inv->arena = s->arena;
	inv->cpu = scan_cpu(s);
	inv->hypervisor = scan_hypervisor(s);
	/*
	 * A misc device. A tree without any (a running kernel always has some) was captured without
	 * them; then it is taken to be there, as the module is wherever RDMA is used.
	 */
	inv->has_rdma_cm = sysroot_exists(s->root, MISC "/rdma_cm") ||
			   sysroot_exists(s->root, VIRTUAL_MISC "/rdma_cm") ||
			   (s->n_rdma && !sysroot_exists(s->root, MISC) &&
			    !sysroot_exists(s->root, VIRTUAL_MISC));
	/* A captured machine shows no devices: then they are taken to be there. */
	inv->has_vhost_net =
		(!sysroot_is_live(s->root) && !sysroot_exists(s->root, "dev")) ||
		(has_misc(s, "vhost-net", "vhost-net") && has_misc(s, "net/tun", "tun"));
	inv->n_pci = s->n_pci;
	inv->n_rdma = s->n_rdma;
	inv->n_gpu = s->n_gpu;
	inv->n_card = s->n_card;
	inv->n_neighbor = s->n_neighbor;
	inv->n_mig = s->n_mig;
	inv->n_numa = s->n_numa;
	inv->n_notes = s->n_notes;
	inv->pci = into_arena(s->arena, s->pci, s->n_pci, sizeof(*s->pci));
	inv->rdma = into_arena(s->arena, s->rdma, s->n_rdma, sizeof(*s->rdma));
	inv->gpu = into_arena(s->arena, s->gpu, s->n_gpu, sizeof(*s->gpu));
	inv->card = into_arena(s->arena, s->card, s->n_card, sizeof(*s->card));
	inv->mig = into_arena(s->arena, s->mig, s->n_mig, sizeof(*s->mig));
	inv->neighbor = into_arena(s->arena, s->neighbor, s->n_neighbor, sizeof(*s->neighbor));
	inv->numa = into_arena(s->arena, s->numa, s->n_numa, sizeof(*s->numa));
	inv->notes = into_arena(s->arena, s->notes, s->n_notes, sizeof(*s->notes));
	classes_done(s);
	free(s->place);
	free(s->vf);
	return inv;
}

int discover_host(const struct sysroot *root, const struct gpu_match *gpus, size_t n_gpus,
		  const struct hw_inventory *before, struct hw_inventory **ret, struct err *err)
{
	_cleanup_close_ int top = sysroot_openat(root, O_RDONLY | O_DIRECTORY, ".");
	struct scan s = {
		.root = root,
		.gpus = gpus ? gpus : gpu_match_default,
		.n_gpus = gpus ? n_gpus : gpu_match_default_n,
	};
	struct hw_inventory *inv;
	int r;

	if (top < 0)
		return err_set(err, -top, "root directory '%s': %s", sysroot_path(root),
			       strerror(-top));
	s.arena = arena_new(8 * 1024);
	scan_numa(&s);
	scan_classes(&s);
	r = scan_pci(&s, err);
	scan_cards_begin(&s, before);
	scan_class_rdma(&s);
	scan_missing_bridges(&s);
	scan_place(&s);
	scan_migs(&s);
	scan_neighbors(&s, before);
	scan_rates(&s);
	scan_default_route(&s);
	scan_cards(&s, before);
	inv = finish(&s);
	scan_gpu_parts(root, inv);
	if (r < 0)
		hw_inventory_free(inv);
	else
		*ret = inv;
	return r;
}
