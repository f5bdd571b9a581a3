/*
 * The layout of configuration space and the names of devices, by libpci. Config space is read
 * through the sysfs file at the few offsets needed: on real hardware each dword is a slow bus
 * access, and libpci's own scan would open every function again.
 */
#include <endian.h>
#include <fcntl.h>
#include <pci/pci.h>
#include <setjmp.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/mem.h"
#include "discover/scan-internal.h"

#define CONFIG_SIZE   4096
#define FIRST_EXT_CAP 0x100
#define MAX_EXT_CAPS  ((CONFIG_SIZE - FIRST_EXT_CAP) / 8)

static bool read_dword(int fd, int offset, uint32_t *ret)
{
	uint32_t v;

	if (pread(fd, &v, sizeof(v), offset) != sizeof(v))
		return false;
	*ret = le32toh(v);
	return true;
}

/* A list that leads backwards may be a ring: so steps are bounded by the entries that fit. */
int acs_control(const struct dir *dev)
{
	_cleanup_close_ int fd = dir_openat(dev, "config", O_RDONLY | O_NONBLOCK);
	int at = FIRST_EXT_CAP;
	uint32_t head, acs;

	for (int i = 0; fd >= 0 && i < MAX_EXT_CAPS && at >= FIRST_EXT_CAP; i++) {
		if (!read_dword(fd, at, &head) || !head || head == UINT32_MAX)
			break;
		if ((head & 0xffff) == PCI_EXT_CAP_ID_ACS)
			return read_dword(fd, at + PCI_ACS_CAP, &acs) ? (int)(acs >> 16) : -1;
		at = (int)(head >> 20) & ~3;
	}
	return -1;
}

/* libpci's default hook ends the process; ours must not return either. */
static _Thread_local jmp_buf *on_error;

static __attribute__((noreturn)) void leave(char *msg, ...)
{
	(void)msg;
	longjmp(*on_error, 1);
}

static void be_silent(char *msg, ...)
{
	(void)msg;
}

static char *find_name(struct pci_access *access, uint16_t vendor, uint16_t device)
{
	char name[256];
	jmp_buf here;
	const char *r;

	if (setjmp(here))
		return NULL;
	on_error = &here;
	r = pci_lookup_name(access, name, sizeof(name),
			    PCI_LOOKUP_VENDOR | PCI_LOOKUP_DEVICE | PCI_LOOKUP_NO_NUMBERS |
				    PCI_LOOKUP_NO_HWDB,
			    vendor, device);
	return r ? xstrdup(r) : NULL;
}

char *discover_pci_name(const struct sysroot *root, uint16_t vendor, uint16_t device)
{
	_cleanup_close_ int fd = -1;
	struct pci_access *access;
	char path[64], *name;

	if (!sysroot_is_live(root)) {
		/* By descriptor: a link in that path must not lead libpci out of the root. */
		fd = sysroot_openat(root, O_RDONLY | O_NONBLOCK, "usr/share/misc/pci.ids");
		if (fd < 0)
			return NULL;
		snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	}
	access = pci_alloc();
	access->error = leave;
	access->warning = be_silent;
	access->debug = be_silent;
	if (fd >= 0)
		pci_set_name_list_path(access, path, 0);
	name = find_name(access, vendor, device);
	pci_cleanup(access);
	return name;
}
