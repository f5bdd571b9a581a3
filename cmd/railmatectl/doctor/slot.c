/* The firmware's settings of the slots of GPUs and NICs: windows in memory, and room for VFs. */
#include <linux/pci_regs.h>

#include "base/mem.h"
#include "doctor/doctor-internal.h"
#include "hw/inventory.h"

/* --- bar --- */

#define SMALL_BAR (256 << 20)

static const struct diagnosis_advice bar_unset = {
	"The function has no window in memory for a part of itself: its driver fails, or GPUDirect RDMA does.",
	{ "Switch on Above 4G Decoding (and Resizable BAR, SR-IOV) in the BIOS; if that does not help, boot with pci=realloc (--fix-manifest grub).",
	  "Switch on Above 4G Decoding in the BIOS; else a MachineConfig with kernelArguments: [pci=realloc] (--fix-manifest openshift).",
	  "Switch on Above 4G Decoding in the BIOS; else add pci=realloc to machine.install.extraKernelArgs (--fix-manifest talos)." },
};
static const struct diagnosis_advice bar_unset_despite = {
	"The function has no window in memory for a part of itself: its driver fails, or GPUDirect RDMA does.",
	{ "pci=realloc is on the command line already: switch on Above 4G Decoding in the BIOS, give MMIO more room there (MMIO High Size), and update the firmware." },
};
static const struct diagnosis_advice bar_small = {
	"A NIC reaches GPU memory through this window: registering more than it holds fails, and NCCL goes on without GPUDirect RDMA or not at all.",
	{ "Switch on Above 4G Decoding and Resizable BAR in the BIOS; consumer GPUs stay as they are." },
};
static const struct diagnosis_advice bar_unknown = {
	"A GPU whose window in memory is small has no GPUDirect RDMA.",
	{ "Look on the host: lspci -vv -s ADDRESS shows Region 1 and its size." },
};

static void say_unset(const struct facts *f, struct diagnosis *r, int pci, const char *name,
		      const char *what)
{
	bool despite = facts_boot_list_has(f, "pci=", "realloc");
	struct diagnosis_finding *found = diagnosis_add(
		r, DIAGNOSIS_WARN, despite ? &bar_unset_despite : &bar_unset, facts_address(f, pci),
		"%s: the kernel found no place in memory for %s.", name, what);

	if (!despite)
		found->kernel_arg = "pci=realloc";
}

static void judge_bars(const struct facts *f, struct diagnosis *r, int pci, const char *name,
		       size_t *unseen)
{
	const struct facts_bars *b = &f->pci[pci].bars;

	if (b->known != FACTS_YES)
		*unseen += 1;
	else if (b->unset)
		say_unset(f, r, pci, name, "one of its BARs");
	else if (b->vf_unset)
		say_unset(f, r, pci, name, "the BARs of its VFs");
	else if (hw_find_gpu(f->inv, pci) >= 0 && b->largest <= SMALL_BAR)
		diagnosis_add(r, DIAGNOSIS_WARN, &bar_small, facts_address(f, pci),
			      "%s shows %llu MiB of its memory at most.", name,
			      (unsigned long long)b->largest >> 20);
}

/* In a virtual machine the windows are the hypervisor's. */
static void run_bar(const struct facts *f, struct diagnosis *r)
{
	size_t unseen = 0, n = f->inv->n_gpu + f->n_nic;

	if (f->inv->hypervisor || !n)
		return;
	for (size_t i = 0; i < f->inv->n_gpu; i++)
		judge_bars(f, r, f->inv->gpu[i].pci, facts_gpu_name(f, i), &unseen);
	for (size_t i = 0; i < f->n_nic; i++)
		judge_bars(f, r, f->nic[i], facts_nic_name(f, f->nic[i]), &unseen);
	if (unseen)
		diagnosis_add(r, DIAGNOSIS_UNKNOWN, &bar_unknown, "host",
			      "%zu of %zu GPUs and NICs do not show their BARs.", unseen, n);
	else
		diagnosis_fine(r, "GPUs and NICs with all their BARs: %zu.", n);
}

/* --- ari --- */

static const struct diagnosis_advice ari_off = {
	"Without ARI a function has room for 7 VFs on its bus; more of them need bus numbers that the firmware may not have left, and NCCL does not find VFs of a further bus at their PF's place.",
	{ "Switch on ARI (often below SR-IOV) in the BIOS, and update the firmware; a port that cannot do it leaves the card at 7 VFs." },
};
static const struct diagnosis_advice ari_unknown = {
	"Without ARI a function has room for 7 VFs on its bus.",
	{ DOCTOR_NEED_PRIVILEGE },
};

#define PLAIN_VFS 7

static void judge_ari(const struct facts *f, struct diagnosis *r, int pf, size_t *on)
{
	const struct hw_pci *p = &f->inv->pci[pf];
	const struct facts_pci *port = p->parent < 0 ? NULL : &f->pci[p->parent];

	bool proven = false;

	if (p->sriov_total <= PLAIN_VFS || !port)
		return;
	/* A VF beyond function 7 of its PF's bus is proof. */
	for (size_t i = 0; i < f->inv->n_pci; i++) {
		const struct hw_pci *vf = &f->inv->pci[i];

		proven |= vf->physfn == pf && vf->bdf.domain == p->bdf.domain &&
			  vf->bdf.bus == p->bdf.bus && vf->bdf.dev;
	}
	if (proven || (port->devctl2 >= 0 && port->devctl2 & PCI_EXP_DEVCTL2_ARI))
		*on += 1;
	else if (port->devctl2 < 0)
		diagnosis_add(r, DIAGNOSIS_UNKNOWN, &ari_unknown, facts_address(f, pf),
			      "%s: the configuration space of the port above it %s.",
			      facts_nic_name(f, pf),
			      port->config == FACTS_CONFIG_READ ? "does not show ARI"
								: facts_why_unread(port->config));
	else
		diagnosis_add(r, DIAGNOSIS_WARN, &ari_off, facts_address(f, pf),
			      "%s can have %d VFs, and the port above it, %s, %s.",
			      facts_nic_name(f, pf), p->sriov_total, facts_address(f, p->parent),
			      port->devcap2 & PCI_EXP_DEVCAP2_ARI ? "has ARI forwarding off"
								  : "cannot forward ARI");
}

static void run_ari(const struct facts *f, struct diagnosis *r)
{
	size_t on = 0;

	for (size_t i = 0; !f->inv->hypervisor && i < f->n_nic; i++)
		judge_ari(f, r, f->nic[i], &on);
	if (on)
		diagnosis_fine(r, "Cards with ARI: %zu.", on);
}

const struct diagnosis_check doctor_slot_checks[] = {
	{ "bar", "BARs of GPUs and NICs (Above 4G Decoding)",
	  "Reads the windows in memory of GPUs and NICs. WARN: the kernel found no place for a BAR of theirs or of their VFs, or the largest one of a GPU is 256 MiB or less. UNKNOWN: the file resource cannot be read. Virtual machines: not applicable.",
	  .run = run_bar, .in_manifest = true },
	{ "ari", "ARI of the ports above cards with VFs",
	  "For cards that can have more than 7 VFs: PASS: a VF has a number beyond function 7, or the port above forwards ARI. WARN: it does not. UNKNOWN: its configuration space cannot be read. Virtual machines: not applicable.",
	  .run = run_ari },
};
const size_t doctor_slot_checks_n = ARRAY_LEN(doctor_slot_checks);
