/* Configuration space as far as it matters for transfers between devices. */
#include <endian.h>
#include <fcntl.h>
#include <linux/pci_regs.h>
#include <string.h>
#include <unistd.h>

#include "base/mem.h"
#include "facts/pciconf.h"
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

static enum pci_conf_state read_classic(struct pci_conf *c, int fd)
{
	uint8_t bytes[CLASSIC] = { 0 };
	ssize_t n = pread(fd, bytes, sizeof(bytes), 0);
	unsigned at;

	if (n < OPEN_TO_ALL)
		return n <= 0 ? PCI_CONF_NONE : PCI_CONF_SHORT;
	/* A VF has no ids of its own there; a function that does not answer has ones everywhere. */
	if (dword_at(bytes, PCI_COMMAND) == UINT32_MAX || !dword_at(bytes, PCI_VENDOR_ID))
		return PCI_CONF_BROKEN;
	if (!(word_at(bytes, PCI_STATUS) & PCI_STATUS_CAP_LIST))
		return PCI_CONF_READ;
	at = bytes[PCI_CAPABILITY_LIST] & ~3u;
	for (int i = 0; at; i++, at = bytes[at + PCI_CAP_LIST_NEXT] & ~3u) {
		if (at + PCI_CAP_LIST_NEXT >= (size_t)n)
			return n == OPEN_TO_ALL ? PCI_CONF_SHORT : PCI_CONF_BROKEN;
		if (at < OPEN_TO_ALL || i == MAX_CAPS)
			return PCI_CONF_BROKEN;
		if (bytes[at] != PCI_CAP_ID_EXP)
			continue;
		if (at + PCI_EXP_DEVSTA > (size_t)n)
			return PCI_CONF_BROKEN; /* cut before its control word ends */
		c->flags = word_at(bytes, at + PCI_EXP_FLAGS);
		c->devcap = dword_at(bytes, at + PCI_EXP_DEVCAP);
		c->devctl = word_at(bytes, at + PCI_EXP_DEVCTL);
		if ((c->flags & PCI_EXP_FLAGS_VERS) >= 2 && at + PCI_EXP_DEVSTA2 <= (size_t)n) {
			c->devcap2 = word_at(bytes, at + PCI_EXP_DEVCAP2);
			c->devctl2 = word_at(bytes, at + PCI_EXP_DEVCTL2);
		}
	}
	return PCI_CONF_READ;
}

/* Bytes that were there: 4, or the file ends. */
static ssize_t read_dword(int fd, int at, uint32_t *ret)
{
	uint32_t v = 0;
	ssize_t n = pread(fd, &v, sizeof(v), at);

	*ret = le32toh(v);
	return n;
}

static enum pci_conf_state read_extended(struct pci_conf *c, int fd)
{
	int at = FIRST_EXT_CAP;

	for (int i = 0; i < MAX_EXT_CAPS && at >= FIRST_EXT_CAP; i++) {
		uint32_t head, v;
		ssize_t n = read_dword(fd, at, &head);
		unsigned id = PCI_EXT_CAP_ID(head);

		if (n <= 0 && at == FIRST_EXT_CAP)
			return PCI_CONF_SHORT;
		if (n != sizeof(head) || head == UINT32_MAX)
			return PCI_CONF_BROKEN;
		/* Capability and control word stand in one dword. */
		if ((id == PCI_EXT_CAP_ID_ACS || id == PCI_EXT_CAP_ID_ATS) &&
		    read_dword(fd, at + PCI_ACS_CAP, &v) != sizeof(v))
			return PCI_CONF_BROKEN;
		if (id == PCI_EXT_CAP_ID_ACS) {
			c->has_acs = true;
			c->acs_cap = (uint16_t)v;
			c->acs_ctrl = (uint16_t)(v >> 16);
		} else if (id == PCI_EXT_CAP_ID_ATS) {
			c->has_ats = true;
			c->ats_cap = (uint16_t)v;
			c->ats_ctrl = (uint16_t)(v >> 16);
		}
		at = (int)PCI_EXT_CAP_NEXT(head);
		if (!at)
			return PCI_CONF_READ;
	}
	return PCI_CONF_BROKEN;
}

struct pci_conf facts_pci_conf(const struct sysroot *root, const char *path)
{
	_cleanup_close_ int fd = sysroot_openat(root, O_RDONLY | O_NONBLOCK, "%s", path);
	struct pci_conf c = { .flags = -1, .devctl = -1, .devcap2 = -1, .devctl2 = -1 };

	if (fd < 0)
		return c;
	c.classic = c.extended = read_classic(&c, fd);
	if (c.classic == PCI_CONF_READ)
		c.extended = read_extended(&c, fd);
	/* A list that leads nowhere was not a list before that either. */
	if (c.classic == PCI_CONF_BROKEN)
		c.flags = c.devctl = c.devcap2 = c.devctl2 = -1;
	if (c.extended == PCI_CONF_BROKEN)
		c.has_acs = c.has_ats = false;
	return c;
}
