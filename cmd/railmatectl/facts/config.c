/*
 * The part of a function's configuration space about transfers between devices: PCIe control, ACS,
 * ATS. Read at the few offsets that matter: on real hardware each dword is a slow bus access, and
 * some devices take a read of everything badly. sysfs gives 64 bytes to every user, 256 to
 * CAP_SYS_ADMIN, and 4096 where the firmware describes the extended space; a register beyond the
 * end is unknown, not off.
 */
#include <endian.h>
#include <fcntl.h>
#include <linux/pci_regs.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/mem.h"
#include "facts/facts.h"
#include "facts/gather.h"
#include "hw/inventory.h"
#include "sysroot/sysroot.h"

#define CLASSIC	      256
#define OPEN_TO_ALL   64
#define FIRST_EXT_CAP 0x100
#define MAX_CAPS      48 /* that fit, and a ring is left */
#define MAX_EXT_CAPS  ((4096 - FIRST_EXT_CAP) / 8)

static uint16_t word_at(const uint8_t *bytes, unsigned at)
{
	uint16_t v;

	memcpy(&v, bytes + at, sizeof(v));
	return le16toh(v);
}

static uint32_t dword_at(const uint8_t *bytes, unsigned at)
{
	uint32_t v;

	memcpy(&v, bytes + at, sizeof(v));
	return le32toh(v);
}

static enum facts_config read_classic(struct facts_pci *p, int fd)
{
	uint8_t bytes[CLASSIC] = { 0 };
	ssize_t n = pread(fd, bytes, sizeof(bytes), 0);
	unsigned at, flags;

	if (n < OPEN_TO_ALL)
		return n <= 0 ? FACTS_CONFIG_NONE : FACTS_CONFIG_SHORT;
	/* A VF has no ids of its own there; a function that does not answer has ones everywhere. */
	if (dword_at(bytes, PCI_COMMAND) == UINT32_MAX || !dword_at(bytes, PCI_VENDOR_ID))
		return FACTS_CONFIG_BROKEN;
	if (!(word_at(bytes, PCI_STATUS) & PCI_STATUS_CAP_LIST))
		return FACTS_CONFIG_READ;
	at = bytes[PCI_CAPABILITY_LIST] & ~3u;
	for (int i = 0; at; i++, at = bytes[at + PCI_CAP_LIST_NEXT] & ~3u) {
		if (at + PCI_CAP_LIST_NEXT >= (size_t)n)
			return n == OPEN_TO_ALL ? FACTS_CONFIG_SHORT : FACTS_CONFIG_BROKEN;
		if (at < OPEN_TO_ALL || i == MAX_CAPS)
			return FACTS_CONFIG_BROKEN;
		if (bytes[at] != PCI_CAP_ID_EXP)
			continue;
		if (at + PCI_EXP_DEVSTA > (size_t)n)
			return FACTS_CONFIG_BROKEN; /* cut before its control word ends */
		flags = word_at(bytes, at + PCI_EXP_FLAGS);
		p->port_type = (flags & PCI_EXP_FLAGS_TYPE) >> 4;
		p->devctl = word_at(bytes, at + PCI_EXP_DEVCTL);
		if ((flags & PCI_EXP_FLAGS_VERS) >= 2 && at + PCI_EXP_DEVSTA2 <= (size_t)n) {
			p->devcap2 = word_at(bytes, at + PCI_EXP_DEVCAP2);
			p->devctl2 = word_at(bytes, at + PCI_EXP_DEVCTL2);
		}
	}
	return FACTS_CONFIG_READ;
}

/* Bytes that were there: 4, or the file ends. */
static ssize_t read_dword(int fd, int at, uint32_t *ret)
{
	uint32_t v = 0;
	ssize_t n = pread(fd, &v, sizeof(v), at);

	*ret = le32toh(v);
	return n;
}

static enum facts_config read_extended(struct facts_pci *p, int fd)
{
	int at = FIRST_EXT_CAP;

	for (int i = 0; i < MAX_EXT_CAPS && at >= FIRST_EXT_CAP; i++) {
		uint32_t head, v;
		ssize_t n = read_dword(fd, at, &head);
		unsigned id = PCI_EXT_CAP_ID(head);

		if (n <= 0 && at == FIRST_EXT_CAP)
			return FACTS_CONFIG_SHORT;
		if (n != sizeof(head) || head == UINT32_MAX)
			return FACTS_CONFIG_BROKEN;
		/* Capability and control word stand in one dword. */
		if ((id == PCI_EXT_CAP_ID_ACS || id == PCI_EXT_CAP_ID_ATS) &&
		    read_dword(fd, at + PCI_ACS_CAP, &v) != sizeof(v))
			return FACTS_CONFIG_BROKEN;
		if (id == PCI_EXT_CAP_ID_ACS) {
			p->has_acs = true;
			p->acs_ctrl = (uint16_t)(v >> 16);
		} else if (id == PCI_EXT_CAP_ID_ATS) {
			p->has_ats = true;
			p->ats_ctrl = (uint16_t)(v >> 16);
		}
		at = (int)PCI_EXT_CAP_NEXT(head);
		if (!at)
			return FACTS_CONFIG_READ;
	}
	return FACTS_CONFIG_BROKEN;
}

void facts_read_config(const struct sysroot *root, const struct facts *f, int pci)
{
	struct facts_pci *p = &f->pci[pci];
	_cleanup_close_ int fd = -1;
	char address[BDF_STRLEN];

	if (p->config != FACTS_CONFIG_UNREAD)
		return;
	fd = sysroot_openat(root, O_RDONLY | O_NONBLOCK, "sys/bus/pci/devices/%s/config",
			    bdf_format(f->inv->pci[pci].bdf, address));
	p->config = p->config_ext = fd < 0 ? FACTS_CONFIG_NONE : read_classic(p, fd);
	if (p->config == FACTS_CONFIG_READ)
		p->config_ext = read_extended(p, fd);
	/* A list that leads nowhere was not a list before that either. */
	if (p->config == FACTS_CONFIG_BROKEN)
		p->port_type = p->devctl = p->devcap2 = p->devctl2 = -1;
	if (p->config_ext == FACTS_CONFIG_BROKEN)
		p->has_acs = p->has_ats = false;
}

int facts_mps(int devctl)
{
	return 128 << (devctl >> 5 & 7);
}

int facts_mrrs(int devctl)
{
	return 128 << (devctl >> 12 & 7);
}

bool facts_ats_is_on(const struct facts_pci *p)
{
	return p->has_ats && p->ats_ctrl & PCI_ATS_CTRL_ENABLE;
}

const char *facts_why_unread(enum facts_config config)
{
	static const char *const words[] = {
		[FACTS_CONFIG_UNREAD] = "was not asked",
		[FACTS_CONFIG_NONE] = "cannot be read",
		[FACTS_CONFIG_SHORT] =
			"ends before it (without CAP_SYS_ADMIN the kernel shows 64 bytes)",
		[FACTS_CONFIG_BROKEN] = "makes no sense",
		[FACTS_CONFIG_READ] = "has none",
	};

	return words[config];
}
