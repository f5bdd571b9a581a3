/*
 * A machine → host.tree text: what discovery may read, and nothing else. Tables say which files, so
 * a new fact of a scan is one line here. A file that vanishes is left out; one whose reading fails
 * with EINVAL (the carrier of an interface that is switched off, the type of an empty GID slot) is
 * written empty.
 */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "base/err.h"
#include "base/mem.h"
#include "base/str.h"
#include "discover/discover.h"
#include "hosttree/capture-internal.h"
#include "hosttree/hosttree.h"

int capture_bytes(const struct sysroot *root, const char *path, size_t max, struct strbuf *ret)
{
	_cleanup_close_ int fd = sysroot_openat(root, O_RDONLY | O_NONBLOCK | O_NOCTTY, "%s", path);
	_cleanup_free_ char *buf = xcalloc(max, 1);
	size_t len = 0;
	ssize_t n = 0;

	if (fd < 0)
		return fd;
	while (len < max && (n = read(fd, buf + len, max - len)) > 0)
		len += (size_t)n;
	if (n < 0 && !len)
		return -errno;
	strbuf_add(ret, buf, len);
	return 0;
}

void capture_files(struct capture *c, const char *dir, const struct attribute *files, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		_cleanup_strbuf_ struct strbuf value = STRBUF_INIT;
		_cleanup_free_ char *path = xasprintf("%s/%s", dir, files[i].name);
		int r = capture_bytes(c->root, path, CAPTURE_FILE_MAX, &value);

		if (r < 0 && r != -EINVAL)
			continue;
		if (c->scrubber)
			scrubber_apply(c->scrubber, files[i].scrub, &value);
		line_file(c->out, path, strbuf_str(&value), value.len);
	}
}

bool capture_link(struct capture *c, const char *path, char target[PATH_MAX])
{
	_cleanup_close_ int fd = sysroot_openat(c->root, O_PATH | O_NOFOLLOW, "%s", path);
	ssize_t n = fd < 0 ? -1 : readlinkat(fd, "", target, PATH_MAX);

	if (n <= 0 || n >= PATH_MAX)
		return false;
	target[n] = '\0';
	line_link(c->out, path, target);
	return true;
}

void capture_names(const struct capture *c, const char *path, struct names *ret)
{
	_cleanup_dir_ struct dir d = DIR_CLOSED;

	if (!dir_open_path(c->root, path, &d))
		names_of(&d, ret);
}

/*
 * A link's text is resolved by hand, so that the files are written below the path that the link
 * names. An entry that is not a link is where it is.
 */
char *capture_entry(struct capture *c, const char *dir, const char *name)
{
	_cleanup_free_ char *entry = xasprintf("%s/%s", dir, name), *all = NULL;
	struct strbuf path = STRBUF_INIT;
	char target[PATH_MAX], *save = NULL;

	if (!capture_link(c, entry, target))
		return STEAL(entry);
	all = target[0] == '/' ? xstrdup(target) : xasprintf("%s/%s", dir, target);
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

/* Devices of a class: their links, and for those that are not a PCI function's what is behind the
 * link. */
static void take_class(struct capture *c, const char *class,
		       void (*take)(struct capture *c, const char *dir))
{
	_cleanup_names_ struct names names = NAMES_EMPTY;

	capture_names(c, class, &names);
	for (size_t i = 0; i < names.n; i++) {
		_cleanup_free_ char *dir = NULL;

		if (!sysroot_exists(c->root, "%s/%s/.", class, names.v[i]))
			continue;
		dir = capture_entry(c, class, names.v[i]);
		if (dir && !strstr(dir, "/pci"))
			take(c, dir);
	}
}

/* Only those of PCI functions (which have a class): bridges, veth and other virtual interfaces are
 * not needed. */
static void take_netdevs(struct capture *c)
{
	_cleanup_names_ struct names names = NAMES_EMPTY;
	char target[PATH_MAX];

	capture_names(c, "sys/class/net", &names);
	for (size_t i = 0; i < names.n; i++) {
		_cleanup_free_ char *path = xasprintf("sys/class/net/%s", names.v[i]);

		if (sysroot_exists(c->root, "%s/device/class", path))
			capture_link(c, path, target);
	}
}

static void take_nodes(struct capture *c)
{
	static const struct attribute files[] = { { "cpulist", 0 },
						  { "cpumap", 0 },
						  { "distance", 0 } };
	_cleanup_names_ struct names names = NAMES_EMPTY;

	capture_names(c, "sys/devices/system/node", &names);
	for (size_t i = 0; i < names.n; i++) {
		_cleanup_free_ char *dir = xasprintf("sys/devices/system/node/%s", names.v[i]);
		int id;

		if (!str_starts(names.v[i], "node") || str_to_int(names.v[i] + 4, &id) < 0)
			continue;
		line_dir(c->out, dir);
		capture_files(c, dir, files, ARRAY_LEN(files));
	}
}

static void take_nvidia(struct capture *c)
{
	static const struct attribute files[] = { { "information", SCRUB_NVIDIA } };
	_cleanup_names_ struct names names = NAMES_EMPTY;

	capture_names(c, "proc/driver/nvidia/gpus", &names);
	for (size_t i = 0; i < names.n; i++) {
		_cleanup_free_ char *dir = xasprintf("proc/driver/nvidia/gpus/%s", names.v[i]);

		capture_files(c, dir, files, ARRAY_LEN(files));
	}
}

/* Of a file the lines that start with one of the keys; `first`: of its first paragraph. */
static void take_lines(struct capture *c, const char *path, const char *const *keys, size_t n_keys,
		       bool first)
{
	_cleanup_strbuf_ struct strbuf value = STRBUF_INIT, lines = STRBUF_INIT;
	const char *end;

	if (capture_bytes(c->root, path, 8192, &value) < 0)
		return;
	for (const char *line = strbuf_str(&value);
	     (end = strchr(line, '\n')) && (!first || end > line); line = end + 1) {
		for (size_t i = 0; i < n_keys; i++) {
			if (str_starts(line, keys[i]))
				strbuf_add(&lines, line, (size_t)(end + 1 - line));
		}
	}
	if (lines.len)
		line_file(c->out, path, strbuf_str(&lines), lines.len);
}

/* How AMD's GPUs reach each other; other lines name the GPU. */
static void take_kfd(struct capture *c)
{
	static const char *const keys[] = { "domain ",	  "location_id ", "type ",
					    "node_from ", "node_to ",	  "weight " };
	_cleanup_names_ struct names nodes = NAMES_EMPTY;

	capture_names(c, KFD_NODES, &nodes);
	for (size_t i = 0; i < nodes.n; i++) {
		_cleanup_names_ struct names links = NAMES_EMPTY;
		_cleanup_free_ char *own = xasprintf(KFD_NODES "/%s/properties", nodes.v[i]);
		_cleanup_free_ char *dir = xasprintf(KFD_NODES "/%s/io_links", nodes.v[i]);

		take_lines(c, own, keys, ARRAY_LEN(keys), false);
		capture_names(c, dir, &links);
		for (size_t k = 0; k < links.n; k++) {
			_cleanup_free_ char *path = xasprintf("%s/%s/properties", dir, links.v[k]);

			take_lines(c, path, keys, ARRAY_LEN(keys), false);
		}
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
		{ "proc/driver/nvidia", { "params", SCRUB_PARAMS } },
		{ "proc/sys/kernel", { "numa_balancing", 0 } },
		{ "proc/sys/kernel", { "osrelease", 0 } },
		{ "sys/class/dmi/id", { "sys_vendor", 0 } },
		{ "sys/class/dmi/id", { "product_name", 0 } },
		{ "sys/class/misc/rdma_cm", { "dev", 0 } },
		{ "sys/hypervisor", { "type", 0 } },
		{ "sys/kernel/mm/memory_peers/amdkfd", { "version", 0 } },
		{ "sys/kernel/mm/memory_peers/nv_mem", { "version", 0 } },
		{ "sys/module/ib_core/parameters", { "netns_mode", 0 } },
		{ "sys/kernel/mm/memory_peers/nv_mem_nc", { "version", 0 } },
		{ "sys/module/gdrdrv", { "version", 0 } },
		{ "sys/module/nv_peer_mem", { "version", 0 } },
		{ "sys/module/nvidia_fs", { "version", 0 } },
		{ "sys/module/nvidia_peermem", { "version", 0 } },
	};

	/* Directories that say something by being there, also when nothing in them is taken. */
	static const char *const dirs[] = { "sys/class/misc", "sys/class/iommu",
					    "sys/kernel/iommu_groups", "sys/module",
					    "proc/driver/nvidia-fs" };
	/* What the processor is, and whether there is a hypervisor. */
	static const char *const cpu_keys[] = { "vendor_id\t", "cpu family\t", "model\t", "flags\t",
						"CPU implementer\t" };
	_cleanup_names_ struct names iommus = NAMES_EMPTY;

	for (size_t i = 0; i < ARRAY_LEN(files); i++)
		capture_files(c, files[i].dir, &files[i].file, 1);
	for (size_t i = 0; i < ARRAY_LEN(dirs); i++) {
		if (sysroot_exists(c->root, "%s", dirs[i]))
			line_dir(c->out, dirs[i]);
	}
	/* The kind of an IOMMU is in its name. */
	capture_names(c, "sys/class/iommu", &iommus);
	for (size_t i = 0; i < iommus.n; i++) {
		_cleanup_free_ char *path = xasprintf("sys/class/iommu/%s", iommus.v[i]);

		line_dir(c->out, path);
	}
	take_lines(c, "proc/cpuinfo", cpu_keys, ARRAY_LEN(cpu_keys), true);
	take_kfd(c);
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
	capture_functions(&c);
	take_netdevs(&c);
	take_class(&c, "sys/class/infiniband", capture_rdma);
	take_class(&c, "sys/class/infiniband_verbs", capture_verbs);
	take_nodes(&c);
	take_nvidia(&c);
	take_machine(&c);
	capture_neighbors(&c);
	scrubber_free(c.scrubber);
	lines_sort(&text);
	if (text.len > CAPTURE_TEXT_MAX) {
		strbuf_done(&text);
		return err_set(err, EFBIG,
			       "this machine's host.tree would be larger than %zu bytes",
			       CAPTURE_TEXT_MAX);
	}
	strbuf_add(out, strbuf_str(&text), text.len);
	strbuf_done(&text);
	return 0;
}
