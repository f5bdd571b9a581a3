/*
 * The part of a function's configuration space about transfers between devices: PCIe control, ACS,
 * ATS. Read at the few offsets that matter: on real hardware each dword is a slow bus access, and
 * some devices take a read of everything badly. sysfs gives 64 bytes to every user, 256 to
 * CAP_SYS_ADMIN, and 4096 where the firmware describes the extended space; a register beyond the
 * end is unknown, not off.
 */
#ifndef RAILMATE_FACTS_PCICONF_H
#define RAILMATE_FACTS_PCICONF_H

#include <stdbool.h>
#include <stdint.h>

struct sysroot;

enum pci_conf_state {
	PCI_CONF_NONE,	 /* there is no such file, or it cannot be read */
	PCI_CONF_SHORT,	 /* ends before the wanted offset: no privilege, or no ECAM */
	PCI_CONF_BROKEN, /* the function does not answer, or a list leads nowhere */
	PCI_CONF_READ,
};

struct pci_conf {
	enum pci_conf_state classic, extended;
	int flags, devctl; /* of the PCIe capability; -1 unknown, or there is none */
	uint32_t devcap;
	bool has_acs, has_ats; /* false means something only when extended is READ */
	uint16_t acs_cap, acs_ctrl, ats_cap, ats_ctrl;
	int devcap2, devctl2; /* -1 unknown, or a capability of version 1 */
};

/* path: of the file, below the root. Any thread. */
struct pci_conf facts_pci_conf(const struct sysroot *root, const char *path);

#endif
