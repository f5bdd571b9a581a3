/* Configuration space of the functions that matter, as facts. */
#include <linux/pci_regs.h>
#include <stdio.h>

#include "facts/pciconf.h"
#include "facts/facts-internal.h"
#include "hw/inventory.h"

static enum facts_config state_of(enum pci_conf_state state)
{
	static const enum facts_config states[] = {
		[PCI_CONF_NONE] = FACTS_CONFIG_NONE,
		[PCI_CONF_SHORT] = FACTS_CONFIG_SHORT,
		[PCI_CONF_BROKEN] = FACTS_CONFIG_BROKEN,
		[PCI_CONF_READ] = FACTS_CONFIG_READ,
	};

	return states[state];
}

void facts_read_config(const struct sysroot *root, const struct facts *f, int pci)
{
	struct facts_pci *p = &f->pci[pci];
	char path[96], address[BDF_STRLEN];
	struct pci_conf conf;

	if (p->config != FACTS_CONFIG_UNREAD)
		return;
	snprintf(path, sizeof(path), "sys/bus/pci/devices/%s/config",
		 bdf_format(f->inv->pci[pci].bdf, address));
	conf = facts_pci_conf(root, path);
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
