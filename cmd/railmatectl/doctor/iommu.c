/* Does the IOMMU translate the requests of GPUs, NICs and their VFs? */
#include <linux/pci_regs.h>

#include "base/arena.h"
#include "base/mem.h"
#include "base/str.h"
#include "doctor/board-internal.h"
#include "hw/inventory.h"

#define TRANSLATED                                                                                 \
	"Every transfer between NIC and GPU goes up to the IOMMU and back instead of straight through the switch: GPUDirect RDMA is slower, or does not work at all."
#define ADD(arg)                                                                                                                 \
	{                                                                                                                        \
		.kernel_arg = (arg), .advice = {                                                                                 \
			TRANSLATED,                                                                                              \
			{ "Add " arg                                                                                             \
			  " to GRUB_CMDLINE_LINUX, update-grub (RHEL: grubby --update-kernel=ALL --args=" arg                    \
			  "), reboot; containers' VFs stay with the host's driver and lose no isolation by it.",                 \
			  "Apply a MachineConfig with kernelArguments: [" arg                                                    \
			  "] (--fix-manifest openshift); the nodes reboot one by one.",                                          \
			  "Add " arg                                                                                             \
			  " to machine.install.extraKernelArgs (--fix-manifest talos) and upgrade the node to the same image." } \
		}                                                                                                                \
	}

/* Arm's kernels know the long name only; RCCL looks for the short one. */
static const struct passthrough {
	const char *kernel_arg;
	struct diagnosis_advice advice;
} passthrough = ADD("iommu=pt"), passthrough_arm = ADD("iommu.passthrough=1");

static const struct diagnosis_advice iommu_translated_despite = {
	TRANSLATED,
	{ "The command line asks for passthrough already: look for what overrules it (a type written to the group in sysfs, a device that the firmware calls untrusted, an IOMMU of the hypervisor)." },
};
static const struct diagnosis_advice iommu_blocked = {
	"The device may not reach memory at all until a driver of user space has it.",
	{ "Bind it to the kernel's driver (driverctl unset-override ADDRESS)." },
};
static const struct diagnosis_advice iommu_unknown = {
	"If the IOMMU translates, NIC and GPU do not talk straight through the switch.",
	{ "cat /sys/bus/pci/devices/ADDRESS/iommu_group/type on the host: identity is right; a container that masks parts of /sys does not have it." },
};
static const struct diagnosis_advice iommu_ats = {
	"Translated, but with ATS the devices ask once and then talk straight through the switch.",
	{ NULL },
};
static const struct diagnosis_advice iommu_numa = {
	"Translated; but GPU and NIC meet in the CPU on this board, so there is no switch that transfers would be kept from.",
	{ NULL },
};

static const char *iommu_name(enum facts_iommu type)
{
	static const char *const names[] = {
		[FACTS_IOMMU_UNKNOWN] = "unknown",
		[FACTS_IOMMU_NONE] = "none",
		[FACTS_IOMMU_IDENTITY] = "identity",
		[FACTS_IOMMU_DMA] = "DMA (translated, strict)",
		[FACTS_IOMMU_DMA_FQ] = "DMA-FQ (translated, lazy)",
		[FACTS_IOMMU_BLOCKED] = "blocked",
		[FACTS_IOMMU_OTHER] = "neither identity nor DMA",
	};

	return names[type];
}

static const char *ats_words(const struct facts_pci *p)
{
	if (p->has_ats)
		return ", without ATS";
	return p->config_ext == FACTS_CONFIG_READ ? ", and it has no ATS"
						  : "; whether with ATS is not visible";
}

static bool asks_for_passthrough(const struct facts_host *h)
{
	return facts_boot_word(h, "iommu=pt") == FACTS_YES ||
	       facts_boot_word(h, "iommu.passthrough=1") == FACTS_YES;
}

struct tally {
	bool on_numa_board;
	size_t fine, ats, numa; /* devices that need no line of their own */
};

static void judge_iommu(const struct facts *f, struct diagnosis *r, int pci, const char *name,
			struct tally *t)
{
	const struct facts_pci *p = &f->pci[pci];
	const char *who = facts_address(f, pci), *words = iommu_name(p->iommu);

	switch (p->iommu) {
	case FACTS_IOMMU_NONE:
	case FACTS_IOMMU_IDENTITY:
		t->fine++;
		break;
	case FACTS_IOMMU_DMA:
	case FACTS_IOMMU_DMA_FQ:
		if (facts_ats_is_on(p)) {
			t->ats++;
		} else if (t->on_numa_board) {
			t->numa++;
		} else if (asks_for_passthrough(&f->host)) {
			diagnosis_add(
				r, DIAGNOSIS_WARN, &iommu_translated_despite, who,
				"%s is in a group of type %s%s, although the command line asks for passthrough.",
				name, words, ats_words(p));
		} else {
			const struct passthrough *add = str_eq(f->host.iommu_kind, "smmu")
								? &passthrough_arm
								: &passthrough;

			diagnosis_add(r, DIAGNOSIS_WARN, &add->advice, who,
				      "%s is in a group of type %s%s.", name, words, ats_words(p))
				->kernel_arg = add->kernel_arg;
		}
		break;
	case FACTS_IOMMU_BLOCKED:
		diagnosis_add(r, DIAGNOSIS_FAIL, &iommu_blocked, who,
			      "%s is in a group of type blocked.", name);
		break;
	default:
		diagnosis_add(
			r, DIAGNOSIS_UNKNOWN, &iommu_unknown, who,
			"%s: the type of its IOMMU group is %s%s.", name, words,
			asks_for_passthrough(&f->host)
				? "; the command line asks for passthrough, which is a hint only"
				: "");
	}
}

/* VFs of a card in groups of one type, where that is not the card's own: one line. */
static void judge_iommu_vfs_of(const struct facts *f, struct diagnosis *r, int pf,
			       enum facts_iommu type, struct tally *t)
{
	const struct hw_inventory *inv = f->inv;
	size_t n = 0;
	int first = -1;

	for (size_t i = 0; i < inv->n_pci; i++) {
		if (inv->pci[i].physfn != pf || f->pci[i].iommu != type)
			continue;
		n++;
		if (first < 0 || !facts_ats_is_on(&f->pci[i]))
			first = (int)i;
	}
	if (!n)
		return;
	if (type == f->pci[pf].iommu &&
	    facts_ats_is_on(&f->pci[first]) == facts_ats_is_on(&f->pci[pf]))
		t->fine += type == FACTS_IOMMU_NONE || type == FACTS_IOMMU_IDENTITY ? n : 0;
	else
		judge_iommu(f, r, first,
			    arena_printf(f->arena, "VF %s, one of %zu of %s,",
					 facts_address(f, first), n, facts_nic_name(f, pf)),
			    t);
}

static void run_iommu(const struct facts *f, struct diagnosis *r)
{
	struct tally t = { .on_numa_board = doctor_board_of(f).type == DOCTOR_BOARD_NUMA };

	for (size_t i = 0; i < f->inv->n_gpu; i++)
		judge_iommu(f, r, f->inv->gpu[i].pci, facts_gpu_name(f, i), &t);
	for (size_t i = 0; i < f->n_nic; i++) {
		judge_iommu(f, r, f->nic[i], facts_nic_name(f, f->nic[i]), &t);
		for (int type = 0; type <= FACTS_IOMMU_OTHER; type++)
			judge_iommu_vfs_of(f, r, f->nic[i], (enum facts_iommu)type, &t);
	}
	if (t.ats)
		diagnosis_add(r, DIAGNOSIS_PASS, &iommu_ats, "host",
			      "GPUs and NICs that are translated, with ATS: %zu.", t.ats);
	if (t.numa)
		diagnosis_add(r, DIAGNOSIS_PASS, &iommu_numa, "host",
			      "GPUs and NICs that are translated, on a board of type NUMA: %zu.",
			      t.numa);
	if (t.fine)
		diagnosis_fine(r,
			       "%zu GPUs, NICs and VFs are in groups of type identity or in none.",
			       t.fine);
}

const struct diagnosis_check doctor_iommu_checks[] = {
	{ "iommu", "IOMMU translation for GPUs and NICs", .run = run_iommu, .in_manifest = true },
};
const size_t doctor_iommu_checks_n = ARRAY_LEN(doctor_iommu_checks);
