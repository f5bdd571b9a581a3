/*
 * A machine → host.tree text: the files that discovery and doctor may read, and no others. Tables
 * name the files, so a new fact of a scan is a word here; of configuration spaces and VPD an
 * excerpt is taken. A file that vanishes is left out; one whose reading fails with EINVAL (the
 * carrier of an interface that is switched off) is written empty.
 */
#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <fnmatch.h>
#include <limits.h>
#include <linux/pci_regs.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/arena.h"
#include "base/err.h"
#include "base/mem.h"
#include "base/str.h"
#include "discover/discover.h"
#include "discover/lldp.h"
#include "hosttree/hosttree.h"
#include "hw/driver.h"
#include "hw/vpd.h"
#include "sysroot/dir.h"
#include "sysroot/sysroot.h"

#define FILE_BYTES_MAX (1u << 20)
#define TEXT_BYTES_MAX ((size_t)64 << 20)

struct capture {
	const struct sysroot *root;
	char top[PATH_MAX]; /* path of root, as /proc has it */
	struct strbuf *out;
	struct arena *arena;
	bool scrub;
	char host_name[256]; /* "": not known */
	struct replaced *replaced;
	size_t n, cap;
};

/* --- lines --- */

static void put_escaped(struct strbuf *out, const char *s, size_t len, bool is_path)
{
	for (size_t i = 0, n; i < len; i += n ? n : 1) {
		unsigned char c = (unsigned char)s[i];
		bool blank_at_end = c == ' ' && (is_path || i + 1 == len);

		n = str_printable_sequence(s + i, len - i);
		if (n > 1)
			strbuf_add(out, s + i, n);
		else if (c == '\n')
			strbuf_puts(out, "\\n");
		else if (c == '\\')
			strbuf_puts(out, "\\\\");
		else if (!n || blank_at_end)
			strbuf_printf(out, "\\x%02x", c);
		else
			strbuf_putc(out, (char)c);
	}
}

static void put_line(struct strbuf *out, char kind, const char *path, const char *mark,
		     const char *value, size_t len)
{
	strbuf_printf(out, "%c ", kind);
	put_escaped(out, path, strlen(path), true);
	strbuf_puts(out, mark);
	for (size_t i = 0; i < len && kind == 'x'; i++)
		strbuf_printf(out, "%02x", (unsigned char)value[i]);
	if (kind != 'x')
		put_escaped(out, value, len, false);
	strbuf_putc(out, '\n');
}

/* Each line once. */
static void sort_lines(struct strbuf *b)
{
	_cleanup_free_ char *text = strbuf_steal(b);
	_cleanup_names_ struct names lines = NAMES_EMPTY;
	char *save = NULL;

	for (char *line = strtok_r(text, "\n", &save); line; line = strtok_r(NULL, "\n", &save))
		names_add(&lines, line);
	names_sort(&lines);
	for (size_t i = 0; i < lines.n; i++) {
		if (!i || strcmp(lines.v[i - 1], lines.v[i]) != 0)
			strbuf_printf(b, "%s\n", lines.v[i]);
	}
}

/*
 * --- made-up values for names of a machine or its owner ---
 *
 * The n-th different original of a kind becomes the n-th made-up value, so equal ones stay
 * equal, and the order of a capture makes the result repeatable.
 */

enum scrub { HOST_NAME, MAC, GUID, GID, INFORMATION, PARAMS, ROUTE, CMDLINE };

struct replaced {
	enum scrub kind;
	const char *original;
	unsigned number;
};

static unsigned number_of(struct capture *c, enum scrub kind, const char *text)
{
	unsigned number = 1;

	for (size_t i = 0; i < c->n; i++) {
		const struct replaced *r = &c->replaced[i];

		if (r->kind == kind && !strcmp(r->original, text))
			return r->number;
		number += r->kind == kind;
	}
	c->replaced = xgrow(c->replaced, &c->cap, c->n + 1, sizeof(*c->replaced));
	c->replaced[c->n++] = (struct replaced) { kind, arena_strdup(c->arena, text), number };
	return number;
}

/* Link-local and IPv4-mapped prefixes of GIDs stay: they show the kind. */
static void put_number(struct capture *c, enum scrub kind, const char *text, struct strbuf *out)
{
	static const struct {
		enum scrub kind;
		const char *before, *after;
	} prefixes[] = {
		{ MAC, "", "02:00:00:" },
		{ GUID, "", "0200:0000:" },
		{ GID, "fe80:0000:0000:0000:", "fe80:0000:0000:0000:0200:0000:" },
		{ GID, "0000:0000:0000:0000:0000:ffff:", "0000:0000:0000:0000:0000:ffff:" },
		{ GID, "", "fd00:0000:0000:0000:0000:0000:" },
	};
	unsigned n = number_of(c, kind, text);
	size_t i = 0;

	while (prefixes[i].kind != kind || !str_starts(text, prefixes[i].before))
		i++;
	if (kind == MAC)
		strbuf_printf(out, "%s%02x:%02x:%02x", prefixes[i].after, n >> 16 & 255,
			      n >> 8 & 255, n & 255);
	else
		strbuf_printf(out, "%s%04x:%04x", prefixes[i].after, n >> 16, n & 0xffff);
}

/* Words of other keys have addresses of disks, names of images and passwords. */
static void put_cmdline(char *line, struct strbuf *out)
{
	static const char kept[] =
		"pci= iommu= iommu. intel_iommu= amd_iommu= pcie_ numa_balancing= hugepage default_hugepagesz= transparent_hugepage=";
	const char *blank = "";

	for (char *save, *word = strtok_r(line, " ", &save); word;
	     word = strtok_r(NULL, " ", &save)) {
		const char *key = kept;

		while (key && strncmp(word, key, strcspn(key, " ")) != 0)
			key = strchr(key, ' ') ? strchr(key, ' ') + 1 : NULL;
		if (key)
			strbuf_printf(out, "%s%s", blank, word);
		blank = key ? " " : blank;
	}
}

/* False: the line is left out. */
static bool scrub_line(struct capture *c, enum scrub how, char *line, struct strbuf *out)
{
	char name[64], gateway[16], rest[256];
	const char *at = strstr(line, "GPU-"), *hit;

	switch (how) {
	case MAC:
	case GUID:
	case GID: /* a line of zeros and separators is an empty slot */
		if (line[strspn(line, "0:. \t")])
			put_number(c, how, line, out);
		else
			strbuf_puts(out, line);
		return true;
	case INFORMATION: /* "GPU UUID: GPU-8d1f…" */
		if (at && at[4] != '?' && str_starts(line, "GPU UUID"))
			strbuf_printf(out, "%.*sGPU-00000000-0000-0000-0000-%012x",
				      (int)(at - line), line, number_of(c, how, at));
		else
			strbuf_puts(out, line);
		return true;
	case PARAMS: /* "EnableMSI: 1"; the others hold text: paths, UUIDs of GPUs */
		at = strchr(line, ':');
		strbuf_puts(out, line);
		return at && at[1] && at[2] >= '0' && at[2] <= '9';
	case ROUTE: /* the head, and default routes without their gateway */
		if (sscanf(line, "%63s 00000000 %15s %255[^\n]", name, gateway, rest) != 3) {
			strbuf_puts(out, line);
			return str_starts(line, "Iface");
		}
		strbuf_printf(out, "%s\t00000000\t00000000\t%s", name, rest);
		return true;
	case CMDLINE:
		put_cmdline(line, out);
		return true;
	default:
		for (at = line; strlen(c->host_name) > 2 && (hit = strstr(at, c->host_name));
		     at = hit + strlen(c->host_name))
			strbuf_printf(out, "%.*shost", (int)(hit - at), at);
		strbuf_puts(out, at);
		return true;
	}
}

static void scrub(struct capture *c, enum scrub how, struct strbuf *value)
{
	_cleanup_free_ char *text = NULL;

	if (how == HOST_NAME && strlen(strbuf_str(value)) != value->len)
		return; /* not text */
	text = strbuf_steal(value);
	for (char *line = text, *next; *line; line = next) {
		size_t len = strcspn(line, "\n"), before = value->len;
		bool newline = line[len] == '\n';

		next = line + len + newline;
		line[len] = '\0';
		if (!scrub_line(c, how, line, value))
			value->s[value->len = before] = '\0';
		else if (newline)
			strbuf_putc(value, '\n');
	}
}

/* "enx…" of udev and "rocex…" of rdma-core are a MAC and a GUID without their colons. */
static void scrub_names(struct capture *c, char *text)
{
	for (char *at = text; (at = strchr(at, 'x'));) {
		_cleanup_strbuf_ struct strbuf original = STRBUF_INIT, made_up = STRBUF_INIT;
		size_t n = strspn(++at, "0123456789abcdef"), digits = n == 12 ? 2 : 4;

		if ((n != 12 && n != 16) || at - text < 2 || !islower((unsigned char)at[-2]))
			continue;
		for (size_t i = 0; i < n; i++)
			strbuf_printf(&original, "%s%c", i && i % digits == 0 ? ":" : "", at[i]);
		put_number(c, n == 12 ? MAC : GUID, strbuf_str(&original), &made_up);
		for (const char *s = strbuf_str(&made_up); *s; s++) {
			if (*s != ':')
				*at++ = *s;
		}
	}
}

/* --- files --- */

#define KEYS_MAX 5

/* paths: "file", "link@" or "directory/" below a directory; names may be patterns. keep: only lines
 * of the file that start with one of these are taken, as they are. */
struct row {
	const char *paths;
	enum scrub how;
	const char *keep[KEYS_MAX];
};

static const struct row function_rows[] = {
	{ .paths =
		  "vendor device class revision subsystem_vendor subsystem_device numa_node acpi_index "
		  "current_link_speed current_link_width max_link_speed max_link_width "
		  "sriov_totalvfs sriov_numvfs sriov_offset sriov_stride sriov_vf_device "
		  "driver@ physfn@ virtfn*@ iommu_group@ infiniband_mad/*/ infiniband_mad/*/ibdev uio/*/ drm/*/" },
	{ 0 },
};

/* ecn: MLNX_OFED's congestion control by priority */
static const struct row net_rows[] = {
	{ .paths =
		  "carrier dev_id dev_port flags mtu operstate phys_port_name speed type device@ ecn/roce_[nr]p/enable/[0-7]" },
	{ .paths = "address", .how = MAC },
	{ .paths = "phys_switch_id", .how = GUID },
	{ 0 },
};

/* The type and the netdev of an empty GID cannot be read: such slots are left out. */
static const struct row rdma_rows[] = {
	{ .paths = "board_id fw_ver hca_type node_type parent device@ "
		   "ports/*/state ports/*/phys_state ports/*/rate ports/*/link_layer "
		   "ports/*/lid ports/*/sm_lid ports/*/pkeys/[0-9] ports/*/pkeys/1[0-5] "
		   "ports/*/gid_attrs/types/[0-9] ports/*/gid_attrs/types/1[0-5] "
		   "ports/*/gid_attrs/ndevs/[0-9] ports/*/gid_attrs/ndevs/1[0-5]" },
	{ .paths = "ports/*/gids/[0-9] ports/*/gids/1[0-5]", .how = GID },
	{ .paths = "node_guid sys_image_guid", .how = GUID },
	{ .paths = "tc/*/traffic_class", .keep = { "Global tclass=" } },
	{ 0 },
};

/* Below proc/sys/net/ipv4/conf. */
static const struct row conf_rows[] = { { .paths = "arp_ignore arp_announce rp_filter" }, { 0 } };

static const struct row verbs_rows[] = { { .paths = "dev ibdev abi_version device@" }, { 0 } };

/* The presence of some directories matters, also when nothing in them is taken. */
static const struct row machine_rows[] = {
	{ .paths =
		  "proc/driver/nvidia-fs/ proc/driver/nvidia/version proc/sys/kernel/numa_balancing "
		  "proc/sys/kernel/osrelease sys/class/dmi/id/product_name sys/class/dmi/id/sys_vendor "
		  "sys/hypervisor/type sys/class/iommu/ sys/class/iommu/*/ sys/class/misc/ "
		  "sys/class/misc/rdma_cm/dev sys/devices/system/node/node[0-9]*/ "
		  "sys/devices/system/node/node[0-9]*/cpulist sys/devices/system/node/node[0-9]*/cpumap "
		  "sys/devices/system/node/node[0-9]*/distance "
		  "sys/kernel/iommu_groups/ sys/kernel/iommu_groups/*/name sys/kernel/iommu_groups/*/type "
		  "sys/kernel/mm/memory_peers/*/version sys/module/ "
		  "sys/module/nv_peer_mem/version sys/module/nvidia_fs/version "
		  "sys/module/nvidia_peermem/version sys/module/ib_core/parameters/netns_mode" },
	{ .paths = "proc/cmdline", .how = CMDLINE },
	{ .paths = "proc/driver/nvidia/gpus/*/information", .how = INFORMATION },
	{ .paths = "proc/driver/nvidia/params", .how = PARAMS },
	{ .paths = "proc/net/route", .how = ROUTE },
	{ .paths = "proc/cpuinfo",
	  .keep = { "vendor_id\t", "cpu family\t", "model\t", "flags\t", "CPU implementer\t" } },
	{ .paths = KFD_NODES "/*/properties", .keep = { "domain ", "location_id " } },
	{ .paths = KFD_NODES "/*/io_links/*/properties",
	  .keep = { "type ", "node_from ", "node_to ", "weight " } },
	{ 0 },
};

static int read_bytes(const struct sysroot *root, const char *path, size_t max, struct strbuf *ret)
{
	_cleanup_close_ int fd = sysroot_openat(root, O_RDONLY | O_NONBLOCK | O_NOCTTY, "%s", path);
	char buf[4096];
	ssize_t n = 1;

	while (fd >= 0 && ret->len < max &&
	       (n = read(fd, buf, max - ret->len < sizeof(buf) ? max - ret->len : sizeof(buf))) > 0)
		strbuf_add(ret, buf, (size_t)n);
	return fd < 0 ? fd : n < 0 && !ret->len ? -errno : 0;
}

/* The lines of the first paragraph that start with one of the keys. */
static void keep_lines(const char *const *keys, struct strbuf *value)
{
	_cleanup_free_ char *text = strbuf_steal(value);

	for (const char *line = text, *end; *line && *line != '\n'; line = end) {
		end = line + strcspn(line, "\n");
		end += *end == '\n';
		for (size_t i = 0; i < KEYS_MAX && keys[i]; i++) {
			if (str_starts(line, keys[i]))
				strbuf_add(value, line, (size_t)(end - line));
		}
	}
}

static void take_file(struct capture *c, const char *path, const struct row *row)
{
	_cleanup_strbuf_ struct strbuf value = STRBUF_INIT;
	int r = read_bytes(c->root, path, FILE_BYTES_MAX, &value);
	const char *text;

	if (r < 0 && r != -EINVAL)
		return;
	if (*row->keep)
		keep_lines(row->keep, &value);
	else if (c->scrub)
		scrub(c, row->how, &value);
	text = strbuf_str(&value);
	if (value.len || !*row->keep)
		put_line(c->out,
			 str_utf8_valid(text, value.len) && strlen(text) == value.len ? 'f' : 'x',
			 path, " = ", text, value.len);
}

static void take_link(struct capture *c, const char *path)
{
	_cleanup_close_ int fd = sysroot_openat(c->root, O_PATH | O_NOFOLLOW, "%s", path);
	char target[PATH_MAX];
	ssize_t n = fd < 0 ? -1 : readlinkat(fd, "", target, PATH_MAX);

	if (n > 0 && n < PATH_MAX)
		put_line(c->out, 'l', path, " -> ", target, (size_t)n);
}

static void list(const struct capture *c, const char *path, struct names *ret)
{
	_cleanup_dir_ struct dir d = DIR_CLOSED;

	if (!dir_open_path(c->root, path, &d))
		names_of(&d, ret);
}

static void take_path(struct capture *c, const char *dir, const char *path, const struct row *row)
{
	size_t len = strcspn(path, "/@");
	_cleanup_free_ char *pattern = xasprintf("%.*s", (int)len, path);
	const char *mark = path + len; /* '/', '@' or the end */
	_cleanup_names_ struct names names = NAMES_EMPTY;

	if (strpbrk(pattern, "*["))
		list(c, dir, &names);
	else
		names_add(&names, pattern);
	for (size_t i = 0; i < names.n; i++) {
		_cleanup_free_ char *entry = xasprintf("%s%s%s", dir, *dir ? "/" : "", names.v[i]);

		if (fnmatch(pattern, names.v[i], 0) != 0)
			continue;
		if (!*mark)
			take_file(c, entry, row);
		else if (*mark == '@')
			take_link(c, entry);
		else if (mark[1])
			take_path(c, entry, mark + 1, row);
		else if (sysroot_exists(c->root, "%s", entry))
			put_line(c->out, 'd', entry, "", "", 0);
	}
}

/* prefix: of every path. */
static void take_rows(struct capture *c, const char *dir, const char *prefix,
		      const struct row *rows)
{
	for (const struct row *row = rows; row->paths; row++) {
		_cleanup_free_ char *words = xstrdup(row->paths);

		for (char *save, *word = strtok_r(words, " ", &save); word;
		     word = strtok_r(NULL, " ", &save)) {
			_cleanup_free_ char *path = xasprintf("%s%s", prefix, word);

			take_path(c, dir, path, row);
		}
	}
}

/* --- excerpts of a PCI function's files --- */

/* A configuration space has serial numbers and windows to other spaces: only the heads of its
 * capabilities are taken, and all of those that doctor reads. */
static void take_config(struct capture *c, const char *dir, const struct hw_pci *f)
{
	static const struct row windows[] = { { .paths = "resource" }, { 0 } };
	_cleanup_free_ char *path = xasprintf("%s/config", dir);
	_cleanup_strbuf_ struct strbuf value = STRBUF_INIT;
	uint8_t in[4096 + 64] = { 0 }, out[sizeof(in)] = { 0 };
	unsigned class = f->class_code >> 16, at, i;
	size_t n;

	if (f->is_vf || !class || !strchr("\x02\x03\x06\x12", (int)class))
		return;
	if (class != 0x06) /* a bridge */
		take_rows(c, dir, "", windows);
	if (read_bytes(c->root, path, 4096, &value) < 0 || !value.len)
		return;
	memcpy(in, value.s, value.len);
	memcpy(out, in, 8);
	at = out[PCI_CAPABILITY_LIST] = in[PCI_CAPABILITY_LIST];
	for (i = 0; i < 48 && (at &= ~3u) && at < value.len; i++, at = in[at + 1])
		memcpy(out + at, in + at, in[at] == PCI_CAP_ID_EXP ? 0x34 : 2);
	for (i = 0, at = 0x100; i < 480 && at >= 0x100 && at < value.len; i++) {
		unsigned id = in[at] | (unsigned)in[at + 1] << 8;
		bool whole = id == PCI_EXT_CAP_ID_ACS || id == PCI_EXT_CAP_ID_ATS;

		memcpy(out + at, in + at, whole ? 8 : 4);
		at = (in[at + 2] | (unsigned)in[at + 3] << 8) >> 4 & ~3u;
	}
	/* Without the zeros at the end, but long enough to show an extended space. */
	n = value.len;
	while (n > (value.len > 0x100 ? 0x104 : 64) && !out[n - 1])
		n--;
	n = (n + 3) / 4 * 4 < value.len ? (n + 3) / 4 * 4 : value.len;
	put_line(c->out, 'x', path, " = ", (const char *)out, n);
}

/* The keywords by which a data direct function is matched with its NIC; no serial numbers. */
static void take_vpd(struct capture *c, const char *dir, const struct hw_pci *f)
{
	_cleanup_free_ char *path = xasprintf("%s/vpd", dir);
	_cleanup_strbuf_ struct strbuf value = STRBUF_INIT, excerpt = STRBUF_INIT;
	struct vpd vpd;

	if (!discover_reads_vpd(f) || read_bytes(c->root, path, VPD_MAX, &value) < 0)
		return;
	vpd_parse((const uint8_t *)strbuf_str(&value), value.len, &vpd, NULL);
	for (int i = 0; i < 2 && c->scrub; i++) {
		_cleanup_strbuf_ struct strbuf text = STRBUF_INIT;

		strbuf_puts(&text, i ? vpd.vuid : vpd.board);
		scrub(c, GUID, &text);
		snprintf(i ? vpd.vuid : vpd.board, VPD_VALUE_MAX, "%s", strbuf_str(&text));
	}
	vpd_excerpt(&vpd, &excerpt);
	put_line(c->out, 'x', path, " = ", strbuf_str(&excerpt), excerpt.len);
}

/* --- devices --- */

static const struct folder {
	const char *class, *prefix;
	const struct row *rows;
} folders[] = {
	{ "sys/class/net", "net/*/", net_rows },
	{ "sys/class/infiniband", "infiniband/*/", rdma_rows },
	{ "sys/class/infiniband_verbs", "infiniband_verbs/*/", verbs_rows },
};

static void take_function(struct capture *c, const char *dir)
{
	uint64_t vendor = 0, device = 0, class = 0;
	struct hw_pci f = { .is_vf = sysroot_exists(c->root, "%s/physfn", dir) };

	take_rows(c, dir, "", function_rows);
	for (size_t i = 0; i < ARRAY_LEN(folders); i++) {
		take_path(c, dir, folders[i].prefix, NULL);
		take_rows(c, dir, folders[i].prefix, folders[i].rows);
	}
	/* The lines of a PF's VF files with rates; the others name the VFs. */
	for (size_t i = 0; i < hw_rate_files_n; i++)
		take_rows(c, dir, "sriov/*/",
			  (const struct row[]) { { .paths = hw_rate_files[i].name,
						   .keep = { hw_rate_files[i].line } },
						 { 0 } });
	sysroot_read_u64(c->root, 16, &vendor, "%s/vendor", dir);
	sysroot_read_u64(c->root, 16, &device, "%s/device", dir);
	sysroot_read_u64(c->root, 16, &class, "%s/class", dir);
	f.vendor = (uint16_t)vendor;
	f.device = (uint16_t)device;
	f.class_code = (uint32_t) class;
	take_config(c, dir, &f);
	take_vpd(c, dir, &f);
}

/* Takes the link; its target as a path below the root; NULL: outside. */
static const char *follow(struct capture *c, const char *path)
{
	_cleanup_close_ int fd = sysroot_openat(c->root, O_PATH | O_DIRECTORY, "%s", path);
	_cleanup_free_ char *link = xasprintf("/proc/self/fd/%d", fd);
	size_t len = strlen(c->top);
	char target[PATH_MAX];
	ssize_t n = fd < 0 ? -1 : readlink(link, target, sizeof(target) - 1);

	take_link(c, path);
	if (n <= (ssize_t)len + 1 || strncmp(target, c->top, len) != 0)
		return NULL;
	target[n] = '\0';
	return arena_strdup(c->arena, target + len + 1);
}

static void take_conf(struct capture *c, const char *netdev)
{
	_cleanup_free_ char *dir = xasprintf("proc/sys/net/ipv4/conf/%s", netdev);

	take_rows(c, dir, "", conf_rows);
}

/* folder NULL: PCI functions. Else devices that are none of a function, but no netdevs: bridges,
 * veth and other virtual interfaces are not needed. */
static void take_class(struct capture *c, const char *class, const struct folder *folder)
{
	_cleanup_names_ struct names names = NAMES_EMPTY;
	bool net = folder && folder->rows == net_rows;

	list(c, class, &names);
	for (size_t i = 0; i < names.n && c->out->len <= TEXT_BYTES_MAX; i++) {
		_cleanup_free_ char *path = xasprintf("%s/%s", class, names.v[i]);
		const char *dir = NULL;

		if (!net || sysroot_exists(c->root, "%s/device/class", path))
			dir = follow(c, path);
		if (dir && !folder)
			take_function(c, dir);
		if (dir && net)
			take_conf(c, names.v[i]);
		if (!dir || !folder || net || strstr(dir, "/pci"))
			continue;
		put_line(c->out, 'd', dir, "", "", 0);
		take_rows(c, dir, "", folder->rows);
	}
}

int hosttree_capture(const struct sysroot *root, bool scrub, struct strbuf *out, struct err *err)
{
	static const struct row neighbors[] = { { .paths = LLDP_FILE }, { 0 } };
	_cleanup_strbuf_ struct strbuf text = STRBUF_INIT;
	_cleanup_arena_ struct arena *arena = arena_new(8 * 1024);
	struct capture c = { .root = root, .out = &text, .arena = arena, .scrub = scrub };
	_cleanup_close_ int fd = sysroot_openat(root, O_PATH | O_DIRECTORY, ".");
	_cleanup_free_ char *link = xasprintf("/proc/self/fd/%d", fd);
	ssize_t n = readlink(link, c.top, sizeof(c.top) - 1);

	c.top[n > 1 ? n : 0] = '\0';
	sysroot_read(root, c.host_name, sizeof(c.host_name) - 1, "proc/sys/kernel/hostname");
	take_class(&c, "sys/bus/pci/devices", NULL);
	for (size_t i = 0; i < ARRAY_LEN(folders); i++)
		take_class(&c, folders[i].class, &folders[i]);
	take_rows(&c, "", "", machine_rows);
	take_conf(&c, "all");
	if (!scrub) /* LLDP names switches and other hosts */
		take_rows(&c, "", "", neighbors);
	else if (text.len)
		scrub_names(&c, text.s);
	free(c.replaced);
	sort_lines(&text);
	if (text.len > TEXT_BYTES_MAX)
		return err_set(err, EFBIG, "this machine's host.tree is larger than 64 MiB");
	strbuf_add(out, strbuf_str(&text), text.len);
	return 0;
}
