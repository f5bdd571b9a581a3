/*
 * Configuration space at the few offsets that matter: on real hardware each dword is a slow bus access, and
 * some devices take a read of everything badly. sysfs gives 64 bytes to anybody, 256 to CAP_SYS_ADMIN, and
 * 4096 where the firmware has told of the extended space; what ends earlier is unknown.
 */
#include <endian.h>
#include <fcntl.h>
#include <linux/pci_regs.h>
#include <string.h>
#include <unistd.h>

#include "base/mem.h"
#include "discover/sysroot.h"
#include "doctor/doctor-internal.h"
#include "hw/inventory.h"

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

/* false: the capability is cut before its control word ends. */
static bool take_pcie(struct doctor_pci *p, const uint8_t *bytes, size_t n, unsigned at)
{
	if (at + PCI_EXP_DEVSTA > n)
		return false;
	p->port_type = word_at(bytes, at + PCI_EXP_FLAGS) >> 4 & 0xf;
	p->mps_supported = 128 << (dword_at(bytes, at + PCI_EXP_DEVCAP) & PCI_EXP_DEVCAP_PAYLOAD);
	p->devctl = word_at(bytes, at + PCI_EXP_DEVCTL);
	return true;
}

static enum doctor_config read_classic(struct doctor_pci *p, int fd)
{
	uint8_t bytes[CLASSIC] = { 0 };
	ssize_t n = pread(fd, bytes, sizeof(bytes), 0);
	unsigned at;

	if (n < OPEN_TO_ALL)
		return n <= 0 ? DOCTOR_CONFIG_NONE : DOCTOR_CONFIG_SHORT;
	/* A VF has no ids of its own there; a function that does not answer has ones everywhere. */
	if (dword_at(bytes, PCI_COMMAND) == UINT32_MAX || !dword_at(bytes, PCI_VENDOR_ID))
		return DOCTOR_CONFIG_BROKEN;
	if (!(word_at(bytes, PCI_STATUS) & PCI_STATUS_CAP_LIST))
		return DOCTOR_CONFIG_READ;
	at = bytes[PCI_CAPABILITY_LIST] & ~3u;
	for (int i = 0; at; i++, at = bytes[at + PCI_CAP_LIST_NEXT] & ~3u) {
		if (at + PCI_CAP_LIST_NEXT >= (size_t)n)
			return n == OPEN_TO_ALL ? DOCTOR_CONFIG_SHORT : DOCTOR_CONFIG_BROKEN;
		if (at < OPEN_TO_ALL || i == MAX_CAPS)
			return DOCTOR_CONFIG_BROKEN;
		if (bytes[at] == PCI_CAP_ID_EXP && !take_pcie(p, bytes, (size_t)n, at))
			return DOCTOR_CONFIG_BROKEN;
	}
	return DOCTOR_CONFIG_READ;
}

/* Bytes that were there: 4, or the file ends. */
static ssize_t read_dword(int fd, int at, uint32_t *ret)
{
	uint32_t v = 0;
	ssize_t n = pread(fd, &v, sizeof(v), at);

	*ret = le32toh(v);
	return n;
}

/* Capability and control word stand in one dword. */
static bool take_extended(struct doctor_pci *p, int fd, int at, unsigned id)
{
	uint32_t v;

	if (id != PCI_EXT_CAP_ID_ACS && id != PCI_EXT_CAP_ID_ATS)
		return true;
	if (read_dword(fd, at + PCI_ACS_CAP, &v) != sizeof(v))
		return false;
	if (id == PCI_EXT_CAP_ID_ACS) {
		p->has_acs = true;
		p->acs_ctrl = (uint16_t)(v >> 16);
	} else {
		p->has_ats = true;
		p->ats_ctrl = (uint16_t)(v >> 16);
	}
	return true;
}

static enum doctor_config read_extended(struct doctor_pci *p, int fd)
{
	int at = FIRST_EXT_CAP;

	for (int i = 0; i < MAX_EXT_CAPS && at >= FIRST_EXT_CAP; i++) {
		uint32_t head;
		ssize_t n = read_dword(fd, at, &head);

		if (n <= 0 && at == FIRST_EXT_CAP)
			return DOCTOR_CONFIG_SHORT;
		if (n != sizeof(head) || head == UINT32_MAX ||
		    !take_extended(p, fd, at, PCI_EXT_CAP_ID(head)))
			return DOCTOR_CONFIG_BROKEN;
		at = (int)PCI_EXT_CAP_NEXT(head);
		if (!at)
			return DOCTOR_CONFIG_READ;
	}
	return DOCTOR_CONFIG_BROKEN;
}

void doctor_read_config(const struct sysroot *root, const struct doctor_facts *f, int pci)
{
	struct doctor_pci *p = &f->pci[pci];
	_cleanup_close_ int fd = -1;

	if (p->config != DOCTOR_CONFIG_UNREAD)
		return;
	fd = sysroot_openat(root, O_RDONLY | O_NONBLOCK, "sys/bus/pci/devices/%s/config",
			    doctor_address(f, pci));
	if (fd < 0) {
		p->config = p->config_ext = DOCTOR_CONFIG_NONE;
		return;
	}
	p->config = p->config_ext = read_classic(p, fd);
	if (p->config == DOCTOR_CONFIG_READ)
		p->config_ext = read_extended(p, fd);
	if (p->config_ext == DOCTOR_CONFIG_BROKEN)
		p->has_acs = p->has_ats = false; /* a list that leads nowhere was no list before that either */
}

int doctor_mps(int devctl)
{
	return 128 << (devctl >> 5 & 7);
}

int doctor_mrrs(int devctl)
{
	return 128 << (devctl >> 12 & 7);
}
