/*
 * A machine → host.tree text: what discovery may read, and nothing else. Tables say which files, so
 * a new fact of a scan is one line here. A file that vanishes is left out; one whose reading fails
 * with EINVAL (the carrier of an interface that is switched off, the type of an empty GID slot) is
 * written empty.
 */
#include <errno.h>
#include <fcntl.h>
#include <fnmatch.h>
#include <limits.h>
#include <string.h>
#include <unistd.h>

#include "base/err.h"
#include "base/mem.h"
#include "base/str.h"
#include "discover/discover.h"
#include "hosttree/capture-internal.h"
#include "hosttree/hosttree.h"

struct row {
	enum scrub_kind scrub;
	const char *paths; /* of "file", "link@" or "directory/" below one; names may be patterns */
};

static const struct row function_rows[] = {
	{ 0, "vendor device class revision subsystem_vendor subsystem_device numa_node" },
	{ 0, "acpi_index current_link_speed current_link_width max_link_speed max_link_width" },
	{ 0, "sriov_totalvfs sriov_numvfs sriov_offset sriov_stride sriov_vf_device" },
	{ 0, "driver@ physfn@ virtfn*@ iommu_group@" },
	{ 0, "infiniband_mad/*/ infiniband_mad/*/ibdev uio/*/ drm/*/" },
};

static const struct row net_rows[] = {
	{ 0, "carrier dev_id dev_port flags mtu operstate phys_port_name speed type device@" },
	{ 0, "ecn/roce_[nr]p/enable/[0-7]" /* MLNX_OFED's: congestion control by priority */ },
	{ SCRUB_MAC, "address" },
	{ SCRUB_GUID, "phys_switch_id" },
};

/* The type and the netdev of an empty GID cannot be read: such slots are left out. */
static const struct row rdma_rows[] = {
	{ 0, "board_id fw_ver hca_type node_type parent device@" },
	{ 0, "ports/*/state ports/*/phys_state ports/*/rate ports/*/link_layer" },
	{ 0, "ports/*/lid ports/*/sm_lid ports/*/pkeys/[0-9] ports/*/pkeys/1[0-5]" },
	{ 0, "ports/*/gid_attrs/types/[0-9] ports/*/gid_attrs/types/1[0-5]" },
	{ 0, "ports/*/gid_attrs/ndevs/[0-9] ports/*/gid_attrs/ndevs/1[0-5]" },
	{ SCRUB_GID, "ports/*/gids/[0-9] ports/*/gids/1[0-5]" },
	{ SCRUB_GUID, "node_guid sys_image_guid" },
	{ SCRUB_TEXT, "node_desc" },
	{ KEEP_TCLASS, "tc/*/traffic_class" },
};

static const struct row verbs_rows[] = {
	{ 0, "dev ibdev abi_version device@" },
};

/* Some directories say something by being there, also when nothing in them is taken. */
static const struct row machine_rows[] = {
	{ 0, "proc/driver/nvidia-fs/ proc/driver/nvidia/version" },
	{ 0, "proc/sys/kernel/numa_balancing proc/sys/kernel/osrelease" },
	{ 0, "sys/class/dmi/id/product_name sys/class/dmi/id/sys_vendor sys/hypervisor/type" },
	{ 0, "sys/class/iommu/ sys/class/iommu/*/" /* the kind is in the name */ },
	{ 0, "sys/class/misc/ sys/class/misc/rdma_cm/dev" },
	{ 0, "sys/devices/system/node/node[0-9]*/ sys/devices/system/node/node[0-9]*/cpulist" },
	{ 0,
	  "sys/devices/system/node/node[0-9]*/cpumap sys/devices/system/node/node[0-9]*/distance" },
	{ 0,
	  "sys/kernel/iommu_groups/ sys/kernel/iommu_groups/*/name sys/kernel/iommu_groups/*/type" },
	{ 0,
	  "sys/kernel/mm/memory_peers/amdkfd/version sys/kernel/mm/memory_peers/nv_mem/version" },
	{ 0,
	  "sys/kernel/mm/memory_peers/nv_mem_nc/version sys/module/ib_core/parameters/netns_mode" },
	{ 0, "sys/module/ sys/module/gdrdrv/version sys/module/nv_peer_mem/version" },
	{ 0, "sys/module/nvidia_fs/version sys/module/nvidia_peermem/version" },
	{ SCRUB_CMDLINE, "proc/cmdline" },
	{ SCRUB_NVIDIA, "proc/driver/nvidia/gpus/*/information" },
	{ SCRUB_PARAMS, "proc/driver/nvidia/params" },
	{ SCRUB_ROUTE, "proc/net/route" },
	{ KEEP_CPU, "proc/cpuinfo" },
	{ KEEP_KFD, KFD_NODES "/*/properties " KFD_NODES "/*/io_links/*/properties" },
};

/* --- one entry --- */

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

/* The lines that start with one of the keys. */
static void keep_lines(enum scrub_kind kind, struct strbuf *value)
{
	static const struct {
		const char *keys[6];
		bool first; /* of the first paragraph */
	} kept[] = {
		[KEEP_KFD - KEEP_KFD] = { { "domain ", "location_id ", "type ", "node_from ",
					    "node_to ", "weight " },
					  false },
		[KEEP_CPU - KEEP_KFD] = { { "vendor_id\t", "cpu family\t", "model\t", "flags\t",
					    "CPU implementer\t" },
					  true },
		[KEEP_TCLASS - KEEP_KFD] = { { "Global tclass=" }, false },
	};
	_cleanup_free_ char *text = strbuf_steal(value);
	const char *end;

	for (const char *line = text;
	     (end = strchr(line, '\n')) && (end > line || !kept[kind - KEEP_KFD].first);
	     line = end + 1) {
		for (size_t i = 0; i < ARRAY_LEN(kept->keys); i++) {
			const char *key = kept[kind - KEEP_KFD].keys[i];

			if (key && str_starts(line, key))
				strbuf_add(value, line, (size_t)(end + 1 - line));
		}
	}
}

void capture_file(struct capture *c, const char *path, enum scrub_kind scrub)
{
	_cleanup_strbuf_ struct strbuf value = STRBUF_INIT;
	int r = capture_bytes(c->root, path, CAPTURE_FILE_MAX, &value);

	if (r < 0 && r != -EINVAL)
		return;
	if (scrub >= KEEP_KFD) {
		keep_lines(scrub, &value);
		if (!value.len)
			return;
	} else if (c->scrubber) {
		scrubber_apply(c->scrubber, scrub, &value);
	}
	line_file(c->out, path, strbuf_str(&value), value.len);
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

void capture_names(const struct capture *c, const char *path, struct names *ret)
{
	_cleanup_dir_ struct dir d = DIR_CLOSED;

	if (!dir_open_path(c->root, path, &d))
		names_of(&d, ret);
}

/* --- the rows --- */

static void take_path(struct capture *c, const char *dir, const char *path, enum scrub_kind scrub);

/* mark: what follows the name in the row. */
static void take_entry(struct capture *c, const char *path, const char *mark, enum scrub_kind scrub)
{
	char target[PATH_MAX];
	bool last = !*mark || !mark[1] || mark[1] == ' ';

	if (!*mark || *mark == ' ')
		capture_file(c, path, scrub);
	else if (*mark == '@')
		take_link(c, path, target);
	else if (!last)
		take_path(c, path, mark + 1, scrub);
	else if (sysroot_exists(c->root, "%s", path))
		line_dir(c->out, path);
}

/* Up to a blank. */
static void take_path(struct capture *c, const char *dir, const char *path, enum scrub_kind scrub)
{
	size_t len = strcspn(path, "/@ ");
	_cleanup_free_ char *pattern = xasprintf("%.*s", (int)len, path);
	_cleanup_names_ struct names names = NAMES_EMPTY;
	bool several = strpbrk(pattern, "*[") != NULL;

	if (several)
		capture_names(c, dir, &names);
	for (size_t i = 0; i < (several ? names.n : 1); i++) {
		const char *name = several ? names.v[i] : pattern;
		_cleanup_free_ char *entry = xasprintf("%s%s%s", dir, *dir ? "/" : "", name);

		if (!several || !fnmatch(pattern, name, 0))
			take_entry(c, entry, path + len, scrub);
	}
}

static void take_rows(struct capture *c, const char *dir, const struct row *rows, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		for (const char *path = rows[i].paths; path; path = strchr(path, ' ')) {
			path += *path == ' ';
			take_path(c, dir, path, rows[i].scrub);
		}
	}
}

/* --- devices --- */

static void take_net(struct capture *c, const char *dir)
{
	line_dir(c->out, dir);
	take_rows(c, dir, net_rows, ARRAY_LEN(net_rows));
}

static void take_rdma(struct capture *c, const char *dir)
{
	line_dir(c->out, dir);
	take_rows(c, dir, rdma_rows, ARRAY_LEN(rdma_rows));
}

static void take_verbs(struct capture *c, const char *dir)
{
	line_dir(c->out, dir);
	take_rows(c, dir, verbs_rows, ARRAY_LEN(verbs_rows));
}

static void take_children(struct capture *c, const char *dir, const char *folder,
			  void (*take)(struct capture *c, const char *dir))
{
	_cleanup_names_ struct names names = NAMES_EMPTY;
	_cleanup_free_ char *path = xasprintf("%s/%s", dir, folder);

	capture_names(c, path, &names);
	for (size_t i = 0; i < names.n; i++) {
		_cleanup_free_ char *child = xasprintf("%s/%s", path, names.v[i]);

		take(c, child);
	}
}

/*
 * The link or directory entry; its real path as a heap string, or NULL: it leads out. A link's text
 * is resolved by hand, so that the files are written below the path that the link names. An entry
 * that is not a link is where it is.
 */
static char *take_device(struct capture *c, const char *dir, const char *name)
{
	_cleanup_free_ char *entry = xasprintf("%s/%s", dir, name), *all = NULL;
	struct strbuf path = STRBUF_INIT;
	char target[PATH_MAX], *save = NULL;

	if (!take_link(c, entry, target))
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

static void take_functions(struct capture *c)
{
	_cleanup_names_ struct names names = NAMES_EMPTY;

	capture_names(c, "sys/bus/pci/devices", &names);
	for (size_t i = 0; i < names.n; i++) {
		_cleanup_free_ char *dir = take_device(c, "sys/bus/pci/devices", names.v[i]);

		if (!dir || c->out->len > CAPTURE_TEXT_MAX)
			continue;
		take_rows(c, dir, function_rows, ARRAY_LEN(function_rows));
		take_children(c, dir, "net", take_net);
		take_children(c, dir, "infiniband", take_rdma);
		take_children(c, dir, "infiniband_verbs", take_verbs);
		capture_function(c, dir);
	}
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
		dir = take_device(c, class, names.v[i]);
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
			take_link(c, path, target);
	}
}

int hosttree_capture(const struct sysroot *root, bool scrub, struct strbuf *out, struct err *err)
{
	_cleanup_strbuf_ struct strbuf text = STRBUF_INIT;
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
	take_rows(&c, "", machine_rows, ARRAY_LEN(machine_rows));
	capture_neighbors(&c);
	scrubber_free(c.scrubber);
	lines_sort(&text);
	if (text.len > CAPTURE_TEXT_MAX)
		return err_set(err, EFBIG,
			       "this machine's host.tree would be larger than %zu bytes",
			       CAPTURE_TEXT_MAX);
	strbuf_add(out, strbuf_str(&text), text.len);
	return 0;
}
