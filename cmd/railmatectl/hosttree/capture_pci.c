/* PCI functions and what is below them: interfaces, RDMA devices with their ports, display nodes,
 * configuration space. */
#include <stdio.h>
#include <string.h>

#include "base/mem.h"
#include "base/str.h"
#include "discover/discover.h"
#include "discover/pciconf.h"
#include "hosttree/capture-internal.h"
#include "hw/driver.h"
#include "hw/vpd.h"

#define CONFIG_MAX 4096
#define EXT_CONFIG 256 /* where the extended configuration space begins */
#define SLOTS_MAX  16  /* of the GID and P_Key tables */

enum { CLASS_NETWORK = 0x02, CLASS_DISPLAY = 0x03, CLASS_BRIDGE = 0x06, CLASS_ACCELERATOR = 0x12 };

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

static const struct attribute verbs_files[] = { { "dev", 0 },
						{ "ibdev", 0 },
						{ "abi_version", 0 } };

static void take_net(struct capture *c, const char *dir)
{
	static const char *const ends[] = { "roce_np", "roce_rp" };
	_cleanup_free_ char *device = xasprintf("%s/device", dir);
	char target[PATH_MAX];

	line_dir(c->out, dir);
	capture_files(c, dir, net_files, ARRAY_LEN(net_files));
	/* MLNX_OFED's: which priorities have congestion control. */
	for (size_t i = 0; i < ARRAY_LEN(ends); i++) {
		for (int priority = 0; priority < 8; priority++) {
			_cleanup_free_ char *name =
				xasprintf("ecn/%s/enable/%d", ends[i], priority);
			const struct attribute file = { name, 0 };

			capture_files(c, dir, &file, 1);
		}
	}
	capture_link(c, device, target);
}

/* Of a file with several lines the one at `line`. */
static void put_line(struct capture *c, const char *path, const char *line)
{
	line_file(c->out, path, line, strcspn(line, "\n") + !!strchr(line, '\n'));
}

/* The type and the netdev of an empty GID cannot be read: such slots are left out. */
static const struct attribute slot_tables[] = {
	{ "gids", SCRUB_GID }, { "gid_attrs/types", 0 }, { "gid_attrs/ndevs", 0 }, { "pkeys", 0 }
};

void capture_rdma(struct capture *c, const char *dir)
{
	_cleanup_names_ struct names ports = NAMES_EMPTY;
	_cleanup_free_ char *ports_dir = xasprintf("%s/ports", dir),
			    *device = xasprintf("%s/device", dir);
	char target[PATH_MAX];

	line_dir(c->out, dir);
	capture_files(c, dir, rdma_files, ARRAY_LEN(rdma_files));
	capture_link(c, device, target);
	capture_names(c, ports_dir, &ports);
	for (size_t i = 0; i < ports.n; i++) {
		_cleanup_free_ char *port = xasprintf("%s/%s", ports_dir, ports.v[i]);
		_cleanup_free_ char *tc = xasprintf("%s/tc/%s/traffic_class", dir, ports.v[i]);
		_cleanup_strbuf_ struct strbuf value = STRBUF_INIT;

		capture_files(c, port, port_files, ARRAY_LEN(port_files));
		/* What MLNX_OFED marks packets with; the lines below it name hosts. */
		if (capture_bytes(c->root, tc, CAPTURE_FILE_MAX, &value) >= 0 &&
		    str_starts(strbuf_str(&value), "Global tclass="))
			put_line(c, tc, value.s);
		for (int slot = 0; slot < SLOTS_MAX; slot++) {
			for (size_t k = 0; k < ARRAY_LEN(slot_tables); k++) {
				const struct attribute *table = &slot_tables[k];
				_cleanup_free_ char *name = xasprintf("%s/%d", table->name, slot);
				const struct attribute file = { name, table->scrub };

				capture_files(c, port, &file, 1);
			}
		}
	}
}

void capture_verbs(struct capture *c, const char *dir)
{
	_cleanup_free_ char *device = xasprintf("%s/device", dir);
	char target[PATH_MAX];

	line_dir(c->out, dir);
	capture_files(c, dir, verbs_files, ARRAY_LEN(verbs_files));
	capture_link(c, device, target);
}

static void take_mad(struct capture *c, const char *dir)
{
	static const struct attribute ibdev = { "ibdev", 0 };

	line_dir(c->out, dir);
	capture_files(c, dir, &ibdev, 1);
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
	{ "infiniband", capture_rdma },
	{ "infiniband_verbs", capture_verbs },
	{ "infiniband_mad", take_mad },
	{ "uio", take_card },
	{ "drm", take_card },
};

static void take_children(struct capture *c, const char *dir)
{
	for (size_t i = 0; i < ARRAY_LEN(children); i++) {
		_cleanup_names_ struct names names = NAMES_EMPTY;
		_cleanup_free_ char *folder = xasprintf("%s/%s", dir, children[i].folder);

		capture_names(c, folder, &names);
		for (size_t k = 0; k < names.n; k++) {
			_cleanup_free_ char *child = xasprintf("%s/%s", folder, names.v[k]);

			children[i].take(c, child);
		}
	}
}

static void take_links(struct capture *c, const char *dir)
{
	static const char *const fixed[] = { "driver", "physfn", "iommu_group" };
	static const struct attribute group_files[] = { { "name", 0 }, { "type", 0 } };
	_cleanup_names_ struct names names = NAMES_EMPTY;
	char target[PATH_MAX];

	for (size_t i = 0; i < ARRAY_LEN(fixed); i++) {
		_cleanup_free_ char *path = xasprintf("%s/%s", dir, fixed[i]);

		if (capture_link(c, path, target) && !strcmp(fixed[i], "iommu_group")) {
			const char *slash = strrchr(target, '/');
			_cleanup_free_ char *group =
				xasprintf("sys/kernel/iommu_groups/%s", slash ? slash + 1 : target);

			capture_files(c, group, group_files, ARRAY_LEN(group_files));
		}
	}
	capture_names(c, dir, &names);
	for (size_t i = 0; i < names.n; i++) {
		_cleanup_free_ char *path = xasprintf("%s/%s", dir, names.v[i]);

		if (str_starts(names.v[i], "virtfn"))
			capture_link(c, path, target);
	}
}

/* What a PF says of its VFs, as far as it is their rate; the rest names them. */
static void take_rates(struct capture *c, const char *dir)
{
	_cleanup_names_ struct names names = NAMES_EMPTY;
	_cleanup_free_ char *sriov = xasprintf("%s/sriov", dir);

	capture_names(c, sriov, &names);
	for (size_t i = 0; i < names.n; i++) {
		_cleanup_free_ char *vf = xasprintf("%s/%s", sriov, names.v[i]);

		for (size_t k = 0; k < hw_rate_files_n; k++) {
			const struct hw_rate_file *file = &hw_rate_files[k];
			const struct attribute whole = { file->name, 0 };
			_cleanup_free_ char *path = xasprintf("%s/%s", vf, file->name);
			_cleanup_strbuf_ struct strbuf value = STRBUF_INIT;
			const char *line = NULL;

			if (!file->line)
				capture_files(c, vf, &whole, 1);
			else if (capture_bytes(c->root, path, CAPTURE_FILE_MAX, &value) >= 0)
				line = hw_rate_line(file, strbuf_str(&value));
			if (line)
				put_line(c, path, line);
		}
	}
}

/* Of bridges; without the zeros at its end, which is most of it. */
static void take_bridge_config(struct capture *c, const char *path)
{
	_cleanup_strbuf_ struct strbuf value = STRBUF_INIT;
	size_t least, end;

	if (capture_bytes(c->root, path, CONFIG_MAX, &value) < 0 || !value.len)
		return;
	if (c->scrubber)
		scrubber_apply(c->scrubber, SCRUB_CONFIG, &value);
	/* Whole dwords, for half of one is none; and that there was an extended space stays to be
	 * seen. */
	least = value.len > EXT_CONFIG ? EXT_CONFIG + 4 : 64;
	for (end = value.len; end > least && !value.s[end - 1];)
		end--;
	end = (end + 3) / 4 * 4;
	value.len = end < value.len ? end : value.len;
	line_bytes(c->out, path, value.s, value.len);
}

/* The configuration space of GPUs and NICs has serial numbers and windows to other spaces: only the
 * parts that doctor reads are taken. */
static void take_device_config(struct capture *c, const char *dir, const char *path)
{
	static const struct attribute windows = { "resource", 0 };
	_cleanup_strbuf_ struct strbuf value = STRBUF_INIT;
	struct pci_conf conf = discover_pci_conf(c->root, path);
	uint64_t vendor = 0, device = 0;

	sysroot_read_u64(c->root, 16, &vendor, "%s/vendor", dir);
	sysroot_read_u64(c->root, 16, &device, "%s/device", dir);
	capture_files(c, dir, &windows, 1);
	conf_excerpt(&conf, (uint16_t)vendor, (uint16_t)device, &value);
	if (value.len)
		line_bytes(c->out, path, value.s, value.len);
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

static void scrub_value(struct capture *c, char value[VPD_VALUE_MAX])
{
	_cleanup_strbuf_ struct strbuf text = STRBUF_INIT;

	if (!c->scrubber || !*value)
		return;
	strbuf_puts(&text, value);
	scrubber_apply(c->scrubber, SCRUB_GUID, &text);
	snprintf(value, VPD_VALUE_MAX, "%s", strbuf_str(&text));
}

/* The keywords by which a data direct function is matched with its NIC, as far as they can be read;
 * no serial numbers. */
static void take_vpd(struct capture *c, const char *dir)
{
	_cleanup_free_ char *path = xasprintf("%s/vpd", dir);
	_cleanup_strbuf_ struct strbuf value = STRBUF_INIT, excerpt = STRBUF_INIT;
	struct hw_pci f = { .is_vf = sysroot_exists(c->root, "%s/physfn", dir) };
	uint64_t vendor = 0, device = 0, class = 0;
	struct vpd vpd;

	sysroot_read_u64(c->root, 16, &vendor, "%s/vendor", dir);
	sysroot_read_u64(c->root, 16, &device, "%s/device", dir);
	sysroot_read_u64(c->root, 16, &class, "%s/class", dir);
	f.vendor = (uint16_t)vendor;
	f.device = (uint16_t)device;
	f.class_code = (uint32_t) class;
	if (!discover_reads_vpd(&f) || capture_bytes(c->root, path, VPD_MAX, &value) < 0)
		return;
	vpd_parse((const uint8_t *)strbuf_str(&value), value.len, &vpd, NULL);
	scrub_value(c, vpd.board);
	scrub_value(c, vpd.vuid);
	vpd_excerpt(&vpd, &excerpt);
	line_bytes(c->out, path, strbuf_str(&excerpt), excerpt.len);
}

void capture_functions(struct capture *c)
{
	_cleanup_names_ struct names names = NAMES_EMPTY;

	capture_names(c, "sys/bus/pci/devices", &names);
	for (size_t i = 0; i < names.n; i++) {
		_cleanup_free_ char *dir = capture_entry(c, "sys/bus/pci/devices", names.v[i]);

		if (!dir || c->out->len > CAPTURE_TEXT_MAX)
			continue;
		capture_files(c, dir, function_files, ARRAY_LEN(function_files));
		take_links(c, dir);
		take_rates(c, dir);
		take_children(c, dir);
		take_config(c, dir);
		take_vpd(c, dir);
	}
}
