/* A configuration space that says as much as was read of one, and nothing else. */
#include <linux/pci_regs.h>

#include "base/str.h"
#include "facts/pciconf.h"
#include "hosttree/hosttree-internal.h"

#define FIRST_EXT_CAP 0x100
#define PCIE_AT	      0x40

static void put(uint8_t *bytes, unsigned at, uint32_t value, unsigned size)
{
	for (unsigned i = 0; i < size; i++)
		bytes[at + i] = (uint8_t)(value >> 8 * i);
}

/* Returns where the next capability would be. */
static unsigned put_extended(uint8_t *bytes, unsigned at, unsigned id, uint16_t cap, uint16_t ctrl,
			     bool last)
{
	put(bytes, at, id | 1U << 16 | (last ? 0 : (at + 8) << 20), 4);
	put(bytes, at + PCI_ACS_CAP, cap | (uint32_t)ctrl << 16, 4);
	return at + 8;
}

void conf_excerpt(const struct pci_conf *c, uint16_t vendor, uint16_t device, struct strbuf *out)
{
	uint8_t bytes[FIRST_EXT_CAP + 16] = { 0 };
	unsigned end = FIRST_EXT_CAP;

	if (c->classic != PCI_CONF_READ)
		return;
	put(bytes, PCI_VENDOR_ID, vendor | (uint32_t)device << 16, 4);
	if (c->devctl >= 0) {
		put(bytes, PCI_STATUS, PCI_STATUS_CAP_LIST, 2);
		put(bytes, PCI_CAPABILITY_LIST, PCIE_AT, 1);
		put(bytes, PCIE_AT, PCI_CAP_ID_EXP, 1);
		put(bytes, PCIE_AT + PCI_EXP_FLAGS, (uint32_t)c->flags, 2);
		put(bytes, PCIE_AT + PCI_EXP_DEVCAP, c->devcap, 4);
		put(bytes, PCIE_AT + PCI_EXP_DEVCTL, (uint32_t)c->devctl, 2);
		if (c->devctl2 >= 0) {
			put(bytes, PCIE_AT + PCI_EXP_DEVCAP2, (uint32_t)c->devcap2, 2);
			put(bytes, PCIE_AT + PCI_EXP_DEVCTL2, (uint32_t)c->devctl2, 2);
		}
	}
	if (c->has_acs)
		end = put_extended(bytes, end, PCI_EXT_CAP_ID_ACS, c->acs_cap, c->acs_ctrl,
				   !c->has_ats);
	if (c->has_ats)
		end = put_extended(bytes, end, PCI_EXT_CAP_ID_ATS, c->ats_cap, c->ats_ctrl, true);
	if (c->extended == PCI_CONF_READ && end == FIRST_EXT_CAP)
		end += 4; /* it was there, and empty */
	strbuf_add(out, (const char *)bytes, end);
}
