/*
 * A machine → host.tree text: what discovery may read, and nothing else. Tables say which files, so a new
 * fact of a scan is one line here. A file that vanishes is left out; one whose reading fails with EINVAL (the
 * carrier of an interface that is switched off, the type of an empty GID slot) is written empty.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/mem.h"
#include "base/str.h"
#include "discover/hosttree-internal.h"
#include "discover/hosttree.h"
#include "discover/pciconf.h"
#include "discover/scan-internal.h"

#define FILE_MAX   65536
#define CONFIG_MAX 4096
#define EXT_CONFIG 256 /* where the extended configuration space begins */
#define TEXT_MAX   ((size_t)64 << 20)
#define SLOTS_MAX  16 /* of the GID and P_Key tables */

enum { CLASS_NETWORK = 0x02, CLASS_DISPLAY = 0x03, CLASS_BRIDGE = 0x06, CLASS_ACCELERATOR = 0x12 };

struct capture {
	const struct sysroot *root;
	struct scrubber *scrubber; /* NULL: as it is */
	struct strbuf *out;
};

struct attribute {
	const char *name;
	enum scrub_kind scrub;
};

static void put_escaped(struct strbuf *out, const char *s, size_t len, bool is_path)
{
	for (size_t i = 0; i < len; i++) {
		unsigned char c = (unsigned char)s[i];
		bool blank_at_end = c == ' ' && (is_path || i + 1 == len);

		if (c == '\n')
			strbuf_puts(out, "\\n");
		else if (c == '\\')
			strbuf_puts(out, "\\\\");
		else if (c < 0x20 || c == 0x7f || blank_at_end)
			strbuf_printf(out, "\\x%02x", c);
		else
			strbuf_putc(out, (char)c);
	}
}

static void put_path(struct strbuf *out, char kind, const char *path)
{
	strbuf_printf(out, "%c ", kind);
	put_escaped(out, path, strlen(path), true);
}

void line_file(struct strbuf *out, const char *path, const char *value, size_t len)
{
	bool text = str_utf8_valid(value, len) && !memchr(value, '\0', len);

	put_path(out, text ? 'f' : 'x', path);
	strbuf_puts(out, " = ");
	if (text)
		put_escaped(out, value, len, false);
	for (size_t i = 0; i < len && !text; i++)
		strbuf_printf(out, "%02x", (unsigned char)value[i]);
	strbuf_putc(out, '\n');
}

void line_link(struct strbuf *out, const char *path, const char *target)
{
	put_path(out, 'l', path);
	strbuf_puts(out, " -> ");
	put_escaped(out, target, strlen(target), false);
	strbuf_putc(out, '\n');
}

void line_dir(struct strbuf *out, const char *path)
{
	put_path(out, 'd', path);
	strbuf_putc(out, '\n');
}

/* The first max bytes. */
static int read_bytes(const struct sysroot *root, const char *path, size_t max, struct strbuf *ret)
{
	_cleanup_close_ int fd = sysroot_openat(root, O_RDONLY | O_NONBLOCK | O_NOCTTY, "%s", path);
	_cleanup_free_ char *buf = xcalloc(max, 1);
	size_t len = 0;
	ssize_t n = 0;

	if (fd < 0)
		return fd;
	while (len < max && (n = read(fd, buf + len, max - len)) > 0)
		len += (size_t)n;
	if (n < 0)
		return -errno;
	strbuf_add(ret, buf, len);
	return 0;
}

static void put_value(struct capture *c, const char *path, enum scrub_kind scrub, struct strbuf *value)
{
	if (c->scrubber)
		scrubber_apply(c->scrubber, scrub, value);
	line_file(c->out, path, strbuf_str(value), value->len);
}

/* Files in the directory `dir`; those that are not there are left out. */
static void take_files(struct capture *c, const char *dir, const struct attribute *files, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		_cleanup_strbuf_ struct strbuf value = STRBUF_INIT;
		_cleanup_free_ char *path = xasprintf("%s/%s", dir, files[i].name);
		int r = read_bytes(c->root, path, FILE_MAX, &value);

		if (r >= 0 || r == -EINVAL)
			put_value(c, path, files[i].scrub, &value);
	}
}

static bool take_link(struct capture *c, const char *path, char target[PATH_MAX])
{
	_cleanup_close_ int fd = sysroot_openat(c->root, O_PATH | O_NOFOLLOW, "%s", path);
	ssize_t n = fd < 0 ? -1 : readlinkat(fd, "", target, PATH_MAX);

	if (n <= 0 || n >= PATH_MAX)
		return false;
	target[n] = '\0';
	line_link(c->out, path, target);
	return true;
}

static void list(const struct capture *c, const char *path, struct names *ret)
{
	_cleanup_dir_ struct dir d = DIR_CLOSED;

	if (!dir_open_path(c->root, path, &d))
		names_of(&d, ret);
}

/*
 * Where the entry "<dir>/<name>" really is: the link's text, resolved by hand so that the files
 * are written below the path that the link names. An entry that is no link is where it is. NULL: leads out.
 */
static char *real_path(const char *dir, const char *name, const char *target)
{
	_cleanup_free_ char *all = target[0] == '/' ? xstrdup(target) : xasprintf("%s/%s", dir, target);
	struct strbuf path = STRBUF_INIT;
	char *save = NULL;

	if (!*target)
		return xasprintf("%s/%s", dir, name);
	for (char *part = strtok_r(all, "/", &save); part; part = strtok_r(NULL, "/", &save)) {
		const char *slash = path.s ? strrchr(path.s, '/') : NULL;

		if (!strcmp(part, "."))
			continue;
		if (strcmp(part, "..") != 0) {
			strbuf_printf(&path, "%s%s", path.len ? "/" : "", part);
			continue;
		}
		path.len = slash ? (size_t)(slash - path.s) : 0;
		if (path.s)
			path.s[path.len] = '\0';
	}
	if (path.len)
		return strbuf_steal(&path);
	strbuf_done(&path);
	return NULL;
}

/* The link or directory entry; its real path as a heap string, or NULL. */
static char *take_entry(struct capture *c, const char *dir, const char *name)
{
	_cleanup_free_ char *path = xasprintf("%s/%s", dir, name);
	char target[PATH_MAX] = "";

	if (!take_link(c, path, target))
		target[0] = '\0';
	return real_path(dir, name, target);
}

static const struct attribute function_files[] = {
	{ "vendor", 0 },
	{ "device", 0 },
	{ "class", 0 },
	{ "revision", 0 },
	{ "subsystem_vendor", 0 },
	{ "subsystem_device", 0 },
	{ "numa_node", 0 },
	{ "acpi_index", 0 },
	{ "current_link_speed", 0 },
	{ "current_link_width", 0 },
	{ "max_link_speed", 0 },
	{ "max_link_width", 0 },
	{ "sriov_totalvfs", 0 },
	{ "sriov_numvfs", 0 },
	{ "sriov_offset", 0 },
	{ "sriov_stride", 0 },
	{ "sriov_vf_device", 0 },
};

static const struct attribute net_files[] = {
	{ "address", SCRUB_MAC }, { "carrier", 0 },	   { "dev_id", 0 },
	{ "dev_port", 0 },	  { "flags", 0 },	   { "mtu", 0 },
	{ "operstate", 0 },	  { "phys_port_name", 0 }, { "phys_switch_id", SCRUB_GUID },
	{ "speed", 0 },		  { "type", 0 },
};

static const struct attribute rdma_files[] = {
	{ "board_id", 0 },  { "fw_ver", 0 },
	{ "hca_type", 0 },  { "node_desc", SCRUB_TEXT },
	{ "node_type", 0 }, { "node_guid", SCRUB_GUID },
	{ "parent", 0 },    { "sys_image_guid", SCRUB_GUID },
};

static const struct attribute port_files[] = {
	{ "state", 0 },	     { "phys_state", 0 }, { "rate", 0 },
	{ "link_layer", 0 }, { "lid", 0 },	  { "sm_lid", 0 },
};

static const struct attribute verbs_files[] = { { "dev", 0 }, { "ibdev", 0 }, { "abi_version", 0 } };

static void take_net(struct capture *c, const char *dir)
{
	_cleanup_free_ char *device = xasprintf("%s/device", dir);
	char target[PATH_MAX];

	line_dir(c->out, dir);
	take_files(c, dir, net_files, ARRAY_LEN(net_files));
	take_link(c, device, target);
}

/* Empty GIDs have types and netdevs that cannot be read: those slots have nothing to say. */
static void take_slot(struct capture *c, const char *dir, int slot)
{
	static const struct {
		const char *folder;
		enum scrub_kind scrub;
	} tables[] = {
		{ "gids", SCRUB_GID }, { "gid_attrs/types", 0 }, { "gid_attrs/ndevs", 0 }, { "pkeys", 0 }
	};

	for (size_t i = 0; i < ARRAY_LEN(tables); i++) {
		_cleanup_free_ char *name = xasprintf("%s/%d", tables[i].folder, slot);
		const struct attribute file = { name, tables[i].scrub };

		take_files(c, dir, &file, 1);
	}
}

/* Of a file with several lines the one at `line`. */
static void put_line(struct capture *c, const char *path, const char *line)
{
	line_file(c->out, path, line, strcspn(line, "\n") + !!strchr(line, '\n'));
}

/* What MLNX_OFED marks packets with; the lines below it name hosts. */
static void take_traffic_class(struct capture *c, const char *dir, const char *port)
{
	_cleanup_free_ char *path = xasprintf("%s/tc/%s/traffic_class", dir, port);
	_cleanup_strbuf_ struct strbuf value = STRBUF_INIT;

	if (read_bytes(c->root, path, FILE_MAX, &value) >= 0 &&
	    str_starts(strbuf_str(&value), "Global tclass="))
		put_line(c, path, value.s);
}

static void take_rdma(struct capture *c, const char *dir)
{
	_cleanup_names_ struct names ports = NAMES_EMPTY;
	_cleanup_free_ char *ports_dir = xasprintf("%s/ports", dir), *device = xasprintf("%s/device", dir);
	char target[PATH_MAX];

	line_dir(c->out, dir);
	take_files(c, dir, rdma_files, ARRAY_LEN(rdma_files));
	take_link(c, device, target);
	list(c, ports_dir, &ports);
	for (size_t i = 0; i < ports.n; i++) {
		_cleanup_free_ char *port = xasprintf("%s/%s", ports_dir, ports.v[i]);

		take_files(c, port, port_files, ARRAY_LEN(port_files));
		take_traffic_class(c, dir, ports.v[i]);
		for (int slot = 0; slot < SLOTS_MAX; slot++)
			take_slot(c, port, slot);
	}
}

static void take_verbs(struct capture *c, const char *dir)
{
	_cleanup_free_ char *device = xasprintf("%s/device", dir);
	char target[PATH_MAX];

	line_dir(c->out, dir);
	take_files(c, dir, verbs_files, ARRAY_LEN(verbs_files));
	take_link(c, device, target);
}

static void take_card(struct capture *c, const char *dir)
{
	line_dir(c->out, dir);
}

static const struct {
	const char *folder;
	void (*take)(struct capture *c, const char *dir);
} children[] = {
	{ "net", take_net },
	{ "infiniband", take_rdma },
	{ "infiniband_verbs", take_verbs },
	{ "drm", take_card },
};

static void take_children(struct capture *c, const char *dir)
{
	for (size_t i = 0; i < ARRAY_LEN(children); i++) {
		_cleanup_names_ struct names names = NAMES_EMPTY;
		_cleanup_free_ char *folder = xasprintf("%s/%s", dir, children[i].folder);

		list(c, folder, &names);
		for (size_t k = 0; k < names.n; k++) {
			_cleanup_free_ char *child = xasprintf("%s/%s", folder, names.v[k]);

			children[i].take(c, child);
		}
	}
}

static void take_group(struct capture *c, const char *target)
{
	static const struct attribute type = { "type", 0 };
	const char *slash = strrchr(target, '/');
	_cleanup_free_ char *group = xasprintf("sys/kernel/iommu_groups/%s", slash ? slash + 1 : target);

	take_files(c, group, &type, 1);
}

static void take_links(struct capture *c, const char *dir)
{
	static const char *const fixed[] = { "driver", "physfn", "iommu_group" };
	_cleanup_names_ struct names names = NAMES_EMPTY;
	char target[PATH_MAX];

	for (size_t i = 0; i < ARRAY_LEN(fixed); i++) {
		_cleanup_free_ char *path = xasprintf("%s/%s", dir, fixed[i]);

		if (take_link(c, path, target) && !strcmp(fixed[i], "iommu_group"))
			take_group(c, target);
	}
	list(c, dir, &names);
	for (size_t i = 0; i < names.n; i++) {
		_cleanup_free_ char *path = xasprintf("%s/%s", dir, names.v[i]);

		if (str_starts(names.v[i], "virtfn"))
			take_link(c, path, target);
	}
}

/* What a PF says of its VFs, as far as it is their rate; the rest names them. */
static void take_rates(struct capture *c, const char *dir)
{
	static const struct attribute rate = { "max_tx_rate", 0 };
	_cleanup_names_ struct names names = NAMES_EMPTY;
	_cleanup_free_ char *sriov = xasprintf("%s/sriov", dir);

	list(c, sriov, &names);
	for (size_t i = 0; i < names.n; i++) {
		_cleanup_free_ char *vf = xasprintf("%s/%s", sriov, names.v[i]);
		_cleanup_free_ char *config = xasprintf("%s/config", vf);
		_cleanup_strbuf_ struct strbuf value = STRBUF_INIT;
		const char *line = NULL;

		if (read_bytes(c->root, config, FILE_MAX, &value) >= 0)
			line = rate_line(strbuf_str(&value));
		if (line)
			put_line(c, config, line);
		take_files(c, vf, &rate, 1);
	}
}

static void put_binary(struct capture *c, const char *path, const struct strbuf *value)
{
	put_path(c->out, 'x', path);
	strbuf_puts(c->out, " = ");
	for (size_t i = 0; i < value->len; i++)
		strbuf_printf(c->out, "%02x", (unsigned char)value->s[i]);
	strbuf_putc(c->out, '\n');
}

static bool ends_in_zeros(const struct strbuf *value, size_t n)
{
	for (size_t i = value->len - n; i < value->len; i++) {
		if (value->s[i])
			return false;
	}
	return true;
}

/* Whole dwords, for half of one is none; and that there was an extended space stays to be seen. */
static void cut_zeros(struct strbuf *value)
{
	size_t least = value->len > EXT_CONFIG ? EXT_CONFIG + 4 : 64;

	while (value->len > least) {
		size_t last = value->len % 4 ? value->len % 4 : 4;

		if (!ends_in_zeros(value, last))
			break;
		value->len -= last;
	}
}

/* Of bridges; without the zeros at its end, which is most of it. */
static void take_bridge_config(struct capture *c, const char *path)
{
	_cleanup_strbuf_ struct strbuf value = STRBUF_INIT;

	if (read_bytes(c->root, path, CONFIG_MAX, &value) < 0 || !value.len)
		return;
	if (c->scrubber)
		scrubber_apply(c->scrubber, SCRUB_CONFIG, &value);
	cut_zeros(&value);
	put_binary(c, path, &value);
}

/* Of GPUs and NICs, whose spaces hold serial numbers and windows to other things, only what somebody will
 * read. */
static void take_device_config(struct capture *c, const char *dir, const char *path)
{
	_cleanup_strbuf_ struct strbuf value = STRBUF_INIT;
	struct pci_conf conf = discover_pci_conf(c->root, path);
	uint64_t vendor = 0, device = 0;

	sysroot_read_u64(c->root, 16, &vendor, "%s/vendor", dir);
	sysroot_read_u64(c->root, 16, &device, "%s/device", dir);
	pci_conf_excerpt(&conf, (uint16_t)vendor, (uint16_t)device, &value);
	if (value.len)
		put_binary(c, path, &value);
}

static void take_config(struct capture *c, const char *dir)
{
	_cleanup_free_ char *path = xasprintf("%s/config", dir);
	uint64_t class = 0;

	if (sysroot_read_u64(c->root, 16, &class, "%s/class", dir) < 0 ||
	    sysroot_exists(c->root, "%s/physfn", dir))
		return;
	switch (class >> 16) {
	case CLASS_BRIDGE:
		take_bridge_config(c, path);
		break;
	case CLASS_NETWORK:
	case CLASS_DISPLAY:
	case CLASS_ACCELERATOR:
		take_device_config(c, dir, path);
		break;
	}
}

static void take_functions(struct capture *c)
{
	_cleanup_names_ struct names names = NAMES_EMPTY;

	list(c, "sys/bus/pci/devices", &names);
	for (size_t i = 0; i < names.n; i++) {
		_cleanup_free_ char *dir = take_entry(c, "sys/bus/pci/devices", names.v[i]);

		if (!dir || c->out->len > TEXT_MAX)
			continue;
		take_files(c, dir, function_files, ARRAY_LEN(function_files));
		take_links(c, dir);
		take_rates(c, dir);
		take_children(c, dir);
		take_config(c, dir);
	}
}

/* Devices of a class: their links, and for those that are no PCI function's what is behind the link. */
static void take_class(struct capture *c, const char *class, void (*take)(struct capture *c, const char *dir))
{
	_cleanup_names_ struct names names = NAMES_EMPTY;

	list(c, class, &names);
	for (size_t i = 0; i < names.n; i++) {
		_cleanup_free_ char *dir = NULL;

		if (!sysroot_exists(c->root, "%s/%s/.", class, names.v[i]))
			continue;
		dir = take_entry(c, class, names.v[i]);
		if (dir && !strstr(dir, "/pci"))
			take(c, dir);
	}
}

/* Only those of PCI functions (which have a class): bridges, ends of containers and virtio are nobody's
 * business. */
static void take_netdevs(struct capture *c)
{
	_cleanup_names_ struct names names = NAMES_EMPTY;
	char target[PATH_MAX];

	list(c, "sys/class/net", &names);
	for (size_t i = 0; i < names.n; i++) {
		_cleanup_free_ char *path = xasprintf("sys/class/net/%s", names.v[i]);

		if (sysroot_exists(c->root, "%s/device/class", path))
			take_link(c, path, target);
	}
}

static void take_nodes(struct capture *c)
{
	static const struct attribute files[] = { { "cpulist", 0 }, { "distance", 0 } };
	_cleanup_names_ struct names names = NAMES_EMPTY;

	list(c, "sys/devices/system/node", &names);
	for (size_t i = 0; i < names.n; i++) {
		_cleanup_free_ char *dir = xasprintf("sys/devices/system/node/%s", names.v[i]);
		int id;

		if (!str_starts(names.v[i], "node") || str_to_int(names.v[i] + 4, &id) < 0)
			continue;
		line_dir(c->out, dir);
		take_files(c, dir, files, ARRAY_LEN(files));
	}
}

static void take_nvidia(struct capture *c)
{
	static const struct attribute files[] = { { "information", SCRUB_NVIDIA } };
	_cleanup_names_ struct names names = NAMES_EMPTY;

	list(c, "proc/driver/nvidia/gpus", &names);
	for (size_t i = 0; i < names.n; i++) {
		_cleanup_free_ char *dir = xasprintf("proc/driver/nvidia/gpus/%s", names.v[i]);

		take_files(c, dir, files, ARRAY_LEN(files));
	}
}

/* Some lines of the first processor: what it is, and whether there is a hypervisor. */
static void take_cpu(struct capture *c)
{
	static const char *const keys[] = { "vendor_id\t", "cpu family\t", "model\t", "flags\t",
					    "CPU implementer\t" };
	_cleanup_strbuf_ struct strbuf value = STRBUF_INIT, lines = STRBUF_INIT;
	const char *end;

	if (read_bytes(c->root, "proc/cpuinfo", 8192, &value) < 0)
		return;
	for (const char *line = strbuf_str(&value); (end = strchr(line, '\n')) && end > line;
	     line = end + 1) {
		for (size_t i = 0; i < ARRAY_LEN(keys); i++) {
			if (str_starts(line, keys[i]))
				strbuf_add(&lines, line, (size_t)(end + 1 - line));
		}
	}
	if (lines.len)
		line_file(c->out, "proc/cpuinfo", strbuf_str(&lines), lines.len);
}

/* Directories that say something by being there, also when nothing in them is taken. */
static void take_directories(struct capture *c)
{
	static const char *const dirs[] = { "sys/class/misc", "sys/class/iommu", "sys/kernel/iommu_groups",
					    "sys/module", "proc/driver/nvidia-fs" };

	for (size_t i = 0; i < ARRAY_LEN(dirs); i++) {
		if (sysroot_exists(c->root, "%s", dirs[i]))
			line_dir(c->out, dirs[i]);
	}
}

/* Their names tell the kind. */
static void take_iommus(struct capture *c)
{
	_cleanup_names_ struct names names = NAMES_EMPTY;

	list(c, "sys/class/iommu", &names);
	for (size_t i = 0; i < names.n; i++) {
		_cleanup_free_ char *path = xasprintf("sys/class/iommu/%s", names.v[i]);

		line_dir(c->out, path);
	}
}

static void take_machine(struct capture *c)
{
	static const struct {
		const char *dir;
		struct attribute file;
	} files[] = {
		{ "proc", { "cmdline", SCRUB_CMDLINE } },
		{ "proc/net", { "route", SCRUB_ROUTE } },
		{ "proc/driver/nvidia", { "version", 0 } },
		{ "proc/sys/kernel", { "numa_balancing", 0 } },
		{ "proc/sys/kernel", { "osrelease", 0 } },
		{ "sys/class/dmi/id", { "sys_vendor", 0 } },
		{ "sys/class/dmi/id", { "product_name", 0 } },
		{ "sys/class/misc/rdma_cm", { "dev", 0 } },
		{ "sys/hypervisor", { "type", 0 } },
		{ "sys/kernel/mm/memory_peers/amdkfd", { "version", 0 } },
		{ "sys/kernel/mm/memory_peers/nv_mem", { "version", 0 } },
		{ "sys/module/ib_core/parameters", { "netns_mode", 0 } },
		{ "sys/module/nvidia_fs", { "version", 0 } },
		{ "sys/module/nvidia_peermem", { "version", 0 } },
	};

	for (size_t i = 0; i < ARRAY_LEN(files); i++)
		take_files(c, files[i].dir, &files[i].file, 1);
	take_directories(c);
	take_iommus(c);
	take_cpu(c);
}

static int by_text(const void *a, const void *b)
{
	return strcmp(*(char *const *)a, *(char *const *)b);
}

/* Does a sorted line start with "<kind> <path>/"? */
static bool has_line_below(char *const *lines, size_t n, char kind, const char *path)
{
	_cleanup_free_ char *start = xasprintf("%c %s/", kind, path);
	size_t lo = 0, hi = n;

	while (lo < hi) {
		size_t mid = lo + (hi - lo) / 2;

		if (strcmp(lines[mid], start) < 0)
			lo = mid + 1;
		else
			hi = mid;
	}
	return lo < n && str_starts(lines[lo], start);
}

/* A directory with something in it needs no line: the paths below make it. */
static bool is_needless(char *const *lines, size_t n, const char *line)
{
	const char *path = line + 2;

	return line[0] == 'd' &&
	       (has_line_below(lines, n, 'd', path) || has_line_below(lines, n, 'f', path) ||
		has_line_below(lines, n, 'l', path) || has_line_below(lines, n, 'x', path));
}

/* The lines of b, sorted, once each. */
static void sort_lines(struct strbuf *b)
{
	_cleanup_free_ char *text = strbuf_steal(b);
	_cleanup_free_ char **lines = NULL;
	size_t n = 0, cap = 0;
	char *save = NULL;

	for (char *line = strtok_r(text, "\n", &save); line; line = strtok_r(NULL, "\n", &save)) {
		lines = xgrow(lines, &cap, n + 1, sizeof(*lines));
		lines[n++] = line;
	}
	if (n > 1)
		qsort(lines, n, sizeof(*lines), by_text);
	for (size_t i = 0; i < n; i++) {
		if ((i && !strcmp(lines[i - 1], lines[i])) || is_needless(lines, n, lines[i]))
			continue;
		strbuf_puts(b, lines[i]);
		strbuf_putc(b, '\n');
	}
}

int hosttree_capture(const struct sysroot *root, bool scrub, struct strbuf *out, struct err *err)
{
	struct strbuf text = STRBUF_INIT;
	char host[256] = "";
	struct capture c = { .root = root, .out = &text };

	if (scrub) {
		if (sysroot_read(root, host, sizeof(host), "proc/sys/kernel/hostname") < 0)
			host[0] = '\0';
		c.scrubber = scrubber_new(host);
	}
	take_functions(&c);
	take_netdevs(&c);
	take_class(&c, "sys/class/infiniband", take_rdma);
	take_class(&c, "sys/class/infiniband_verbs", take_verbs);
	take_nodes(&c);
	take_nvidia(&c);
	take_machine(&c);
	scrubber_free(c.scrubber);
	sort_lines(&text);
	if (text.len > TEXT_MAX) {
		strbuf_done(&text);
		return err_set(err, EFBIG, "this machine's host.tree would be larger than %zu bytes",
			       TEXT_MAX);
	}
	strbuf_add(out, strbuf_str(&text), text.len);
	strbuf_done(&text);
	return 0;
}
