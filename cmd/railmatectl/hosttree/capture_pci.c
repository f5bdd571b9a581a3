/* What of a PCI function is taken in part: rates of VFs, configuration space, VPD. */
#include <stdio.h>
#include <string.h>

#include "base/mem.h"
#include "base/str.h"
#include "discover/discover.h"
#include "facts/pciconf.h"
#include "hosttree/capture-internal.h"
#include "hw/driver.h"
#include "hw/vpd.h"

#define CONFIG_MAX 4096
#define EXT_CONFIG 256 /* where the extended configuration space begins */

enum { CLASS_NETWORK = 0x02, CLASS_DISPLAY = 0x03, CLASS_BRIDGE = 0x06, CLASS_ACCELERATOR = 0x12 };

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
			_cleanup_free_ char *path = xasprintf("%s/%s", vf, file->name);
			_cleanup_strbuf_ struct strbuf value = STRBUF_INIT;
			const char *line = NULL;

			if (!file->line)
				capture_file(c, path, SCRUB_NOTHING);
			else if (capture_bytes(c->root, path, CAPTURE_FILE_MAX, &value) >= 0)
				line = hw_rate_line(file, strbuf_str(&value));
			if (line)
				line_file(c->out, path, line,
					  strcspn(line, "\n") + !!strchr(line, '\n'));
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
	_cleanup_free_ char *windows = xasprintf("%s/resource", dir);
	_cleanup_strbuf_ struct strbuf value = STRBUF_INIT;
	struct pci_conf conf = facts_pci_conf(c->root, path);
	uint64_t vendor = 0, device = 0;

	sysroot_read_u64(c->root, 16, &vendor, "%s/vendor", dir);
	sysroot_read_u64(c->root, 16, &device, "%s/device", dir);
	capture_file(c, windows, SCRUB_NOTHING);
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

void capture_function(struct capture *c, const char *dir)
{
	take_rates(c, dir);
	take_config(c, dir);
	take_vpd(c, dir);
}
