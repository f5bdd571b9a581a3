/*
 * The requests that ports redirect on boards on which NVIDIA joins GPU and NIC: the ACS masks of
 * each type, those of rdma_topo. Kernel: Documentation/admin-guide/kernel-parameters.txt
 * (config_acs); drivers/pci/pci.c.
 */
#include <linux/pci_regs.h>
#include <string.h>

#include "base/arena.h"
#include "base/mem.h"
#include "base/str.h"
#include "doctor/board-internal.h"
#include "hw/inventory.h"

enum role { ROLE_NIC_PORT, ROLE_GPU_PORT, ROLE_ROOT, ROLE_MAX };

/* DT EC UF CR RR TB SV, as setpci and config_acs= write them. */
static const char *const dma_masks[ROLE_MAX] = { "xx110x1", "xx101x1", "xx111x0" };
static const char *const inline_masks[ROLE_MAX] = { "xx000x0", "xx000x0", "xx000x0" };
static const char *const inline_ats_masks[ROLE_MAX] = { "1x111x1", "xx111x1", "xx111x1" };

/* NULL: it has none, and the rule for other switches counts. */
static const char *mask_of(const struct facts *f, const struct doctor_board *b, int port)
{
	const char *const *masks = b->type == DOCTOR_BOARD_DMA ? dma_masks
				   : b->ats == FACTS_YES       ? inline_ats_masks
							       : inline_masks;
	enum doctor_port_kind kind = doctor_port_kind(&f->inv->pci[port]);

	for (size_t i = 0; i < b->n_complex; i++) {
		const struct doctor_complex *c = &b->complex[i];
		const int ports[ROLE_MAX] = { c->nic_port, c->gpu_port, c->root };

		for (int role = 0; role < ROLE_MAX; role++) {
			if (ports[role] == port)
				return masks[role];
		}
	}
	if (b->type == DOCTOR_BOARD_OTHER || kind == DOCTOR_PORT_ORDINARY)
		return NULL;
	if (b->type == DOCTOR_BOARD_INLINE && b->ats == FACTS_NO)
		return inline_masks[ROLE_NIC_PORT];
	/* The kernel's own settings; Vera's ports cannot redirect completions. */
	return kind == DOCTOR_PORT_VERA ? "xx101x1" : "xx111x1";
}

/* The control word as the mask would have it. */
static uint16_t with_mask(uint16_t ctrl, const char *mask)
{
	for (size_t i = 0, n = strlen(mask); i < n; i++) {
		uint16_t bit = (uint16_t)(1U << (n - 1 - i));

		if (mask[i] == '1')
			ctrl |= bit;
		else if (mask[i] == '0')
			ctrl &= (uint16_t)~bit;
	}
	return ctrl;
}

static const char mask_meaning[] =
	"On this board the path between GPU and NIC needs just these: else transfers take the long way over the CPU, or the GPU's driver refuses GPUDirect RDMA.";

static const struct diagnosis_advice mask_wrong = {
	mask_meaning,
	{ "Boot with pci=config_acs= of these ports (--fix-manifest grub); devices below them may then share an IOMMU group, as they should.",
	  "Apply a MachineConfig with kernelArguments pci=config_acs= of these ports (--fix-manifest openshift).",
	  "Add pci=config_acs= of these ports to machine.install.extraKernelArgs (--fix-manifest talos)." },
};
static const struct diagnosis_advice mask_wrong_old_kernel = {
	mask_meaning,
	{ "pci=config_acs= is for kernels from 6.11 on, or a vendor's kernel that has it: update the kernel; until then set the words by setpci at every boot (setpci -s PORT ECAP_ACS+6.w=WORD), and load the GPU's driver with NVreg_GrdmaPciTopoCheckOverride=1, for IOMMU groups do not follow setpci." },
};
static const struct diagnosis_advice mask_wrong_despite = {
	mask_meaning,
	{ "The command line has pci=config_acs= for this port already: look into the kernel's log for 'config_acs', and for what sets ACS after boot (setpci)." },
};
static const struct diagnosis_advice mask_missing = {
	mask_meaning,
	{ "Update the firmware of the NIC, whose switch this is, or of the board: nothing else gives a port the capability." },
};
static const struct diagnosis_advice mask_unknown = {
	"What this port should redirect depends on what cannot be seen.",
	{ DOCTOR_NEED_PRIVILEGE },
};
static const struct diagnosis_advice ats_differ_unknown = {
	"With ATS the ports between GPU and NIC need other ACS masks than without it.",
	{ "Run it as root with CAP_SYS_ADMIN; if only some NICs have ATS, give all of them the same (mlxconfig ATS_ENABLED)." },
};
static const struct diagnosis_advice shape_unknown = {
	"What the ports around it should redirect is not known for this shape of the tree.",
	{ "Compare with rdma_topo check (rdma-core), and send a railmatectl snapshot with a report." },
};

const char *doctor_acs_words(const struct facts *f, uint16_t ctrl)
{
	static const char *const bits[] = { "SV", "TB", "RR", "CR", "UF", "EC", "DT" };
	_cleanup_strbuf_ struct strbuf text = STRBUF_INIT;

	for (size_t i = 0; i < ARRAY_LEN(bits); i++) {
		if (ctrl & 1U << i)
			strbuf_printf(&text, "%s%s", text.len ? " " : "", bits[i]);
	}
	return text.len ? arena_strdup(f->arena, strbuf_str(&text)) : "none";
}

static void say_mask(const struct facts *f, struct diagnosis *r, const struct doctor_board *b,
		     int port, const char *mask)
{
	uint16_t now = f->pci[port].acs_ctrl, right = with_mask(now, mask);
	const char *who = facts_address(f, port), *value = facts_boot_value(f, "pci="),
		   *element = arena_printf(diagnosis_arena(r), "%s@%s", mask, who);
	const struct facts_host *h = &f->host;
	const struct diagnosis_advice *advice = &mask_wrong_old_kernel;
	struct diagnosis_finding *found;

	/* Another mask for this port is no mistake of the kernel's: the manifest replaces it. An
	 * unknown version is no reason to leave the argument out: it does no harm where it is not
	 * known. */
	if (value && strstr(value, "config_acs=") && strstr(value, element))
		advice = &mask_wrong_despite;
	else if (h->kernel_major < 0 || h->kernel_major > 6 ||
		 (h->kernel_major == 6 && h->kernel_minor >= 11))
		advice = &mask_wrong;
	found = diagnosis_add(
		r, DIAGNOSIS_WARN, advice, who,
		"%s has ACS %s (0x%04x), and on a board of type %s it needs %s (0x%04x, mask %s).",
		who, doctor_acs_words(f, now), now, doctor_board_name(b->type),
		doctor_acs_words(f, right), right, mask);
	if (advice == &mask_wrong)
		found->kernel_arg = arena_printf(diagnosis_arena(r), "pci=config_acs=%s", element);
}

/* True: it is as it should be. */
static bool judge_mask(const struct facts *f, struct diagnosis *r, const struct doctor_board *b,
		       int port, const char *mask)
{
	const struct facts_pci *p = &f->pci[port];
	const char *who = facts_address(f, port);

	if (p->has_acs && with_mask(p->acs_ctrl, mask) == p->acs_ctrl)
		return true;
	if (p->has_acs)
		say_mask(f, r, b, port, mask);
	else if (p->config_ext != FACTS_CONFIG_READ)
		diagnosis_add(r, DIAGNOSIS_UNKNOWN, &mask_unknown, who,
			      "%s: its configuration space %s.", who,
			      facts_why_unread(p->config_ext));
	else if (strchr(mask, '1'))
		diagnosis_add(r, DIAGNOSIS_WARN, &mask_missing, who,
			      "%s has no ACS, and on a board of type %s it needs mask %s.", who,
			      doctor_board_name(b->type), mask);
	return false;
}

/* Has this port to have ACS, whatever its kind? Upstream ports have none by design. */
static bool is_judged(const struct facts *f, const struct doctor_board *b, int port)
{
	if (f->pci[port].has_acs)
		return true;
	for (size_t i = 0; i < b->n_complex; i++) {
		if (port == b->complex[i].nic_port || port == b->complex[i].gpu_port ||
		    port == b->complex[i].root)
			return true;
	}
	return f->pci[port].config_ext == FACTS_CONFIG_SHORT ||
	       f->pci[port].config_ext == FACTS_CONFIG_BROKEN;
}

size_t doctor_judge_masks(const struct facts *f, struct diagnosis *r, const struct doctor_board *b,
			  bool *seen)
{
	size_t right = 0;

	for (size_t i = 0; i < b->n_unclear; i++) {
		const char *who = facts_address(f, b->unclear[i]);

		diagnosis_add(r, DIAGNOSIS_UNKNOWN, &shape_unknown, who,
			      "Data direct function %s is not on a switch with one GPU.", who);
	}
	if (b->type == DOCTOR_BOARD_INLINE && b->ats == FACTS_UNKNOWN)
		diagnosis_add(
			r, DIAGNOSIS_UNKNOWN, &ats_differ_unknown, "host",
			"Whether the NICs of this board have ATS is not visible, or they differ.");
	for (size_t i = 0; i < f->inv->n_pci; i++) {
		const char *mask = mask_of(f, b, (int)i);

		if (!mask)
			continue;
		seen[i] = true;
		if (is_judged(f, b, (int)i) &&
		    (b->type != DOCTOR_BOARD_INLINE || b->ats != FACTS_UNKNOWN))
			right += judge_mask(f, r, b, (int)i, mask);
	}
	return right;
}
