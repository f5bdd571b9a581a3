/* Configuration space of the functions that matter, as facts. */
#include <linux/pci_regs.h>
#include <stdio.h>

#include "discover/pciconf.h"
#include "doctor/doctor-internal.h"
#include "hw/inventory.h"

static enum doctor_config state_of(enum pci_conf_state state)
{
	static const enum doctor_config states[] = {
		[PCI_CONF_NONE] = DOCTOR_CONFIG_NONE,
		[PCI_CONF_SHORT] = DOCTOR_CONFIG_SHORT,
		[PCI_CONF_BROKEN] = DOCTOR_CONFIG_BROKEN,
		[PCI_CONF_READ] = DOCTOR_CONFIG_READ,
	};

	return states[state];
}

void doctor_read_config(const struct sysroot *root, const struct doctor_facts *f, int pci)
{
	struct doctor_pci *p = &f->pci[pci];
	char path[96], address[BDF_STRLEN];
	struct pci_conf conf;

	if (p->config != DOCTOR_CONFIG_UNREAD)
		return;
	snprintf(path, sizeof(path), "sys/bus/pci/devices/%s/config",
		 bdf_format(f->inv->pci[pci].bdf, address));
	conf = discover_pci_conf(root, path);
	p->config = state_of(conf.classic);
	p->config_ext = state_of(conf.extended);
	p->devctl = conf.devctl;
	p->devcap2 = conf.devcap2;
	p->devctl2 = conf.devctl2;
	if (conf.flags >= 0) {
		p->port_type = (conf.flags & PCI_EXP_FLAGS_TYPE) >> 4;
		p->mps_supported = 128 << (conf.devcap & PCI_EXP_DEVCAP_PAYLOAD);
	}
	p->has_acs = conf.has_acs;
	p->acs_ctrl = conf.acs_ctrl;
	p->has_ats = conf.has_ats;
	p->ats_ctrl = conf.ats_ctrl;
}

int doctor_mps(int devctl)
{
	return 128 << (devctl >> 5 & 7);
}

int doctor_mrrs(int devctl)
{
	return 128 << (devctl >> 12 & 7);
}

bool doctor_ats_is_on(const struct doctor_pci *p)
{
	return p->has_ats && p->ats_ctrl & PCI_ATS_CTRL_ENABLE;
}

const char *doctor_why_unread(enum doctor_config config)
{
	static const char *const words[] = {
		[DOCTOR_CONFIG_UNREAD] = "was not asked",
		[DOCTOR_CONFIG_NONE] = "cannot be read",
		[DOCTOR_CONFIG_SHORT] =
			"ends before it (without CAP_SYS_ADMIN the kernel shows 64 bytes)",
		[DOCTOR_CONFIG_BROKEN] = "makes no sense",
		[DOCTOR_CONFIG_READ] = "has none",
	};

	return words[config];
}
