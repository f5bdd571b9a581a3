/* The right ATS and IOMMU groups of boards on which NVIDIA joins GPU and NIC. */
#include "base/arena.h"
#include "base/mem.h"
#include "doctor/board-internal.h"
#include "hw/inventory.h"

/* --- iommu-groups --- */

static const struct diagnosis_advice group_apart = {
	"The GPU's driver gives GPU memory to the NIC only within one IOMMU group: without it NCCL has no GPUDirect RDMA.",
	{ "Groups follow from ACS: set the masks that the check acs names, and reboot; the driver's way around it is NVreg_GrdmaPciTopoCheckOverride=1." },
};
static const struct diagnosis_advice group_inline = {
	"Groups that do not fit the board's type mean that ACS does not either: GPUDirect RDMA takes the long way.",
	{ "Groups follow from ACS: set the masks that the check acs names, and reboot." },
};
static const struct diagnosis_advice group_numa = {
	"On this board every GPU and NIC is to have an IOMMU group of its own; a shared or missing group means that ACS or the IOMMU is off, and GPUDirect RDMA over C2C may fail.",
	{ "Switch the SMMU on in the firmware. Groups follow from ACS: take pci=disable_acs_redir= out of the kernel's command line, set the masks that the check acs names, and reboot." },
};
static const struct diagnosis_advice group_unknown = {
	"On this board the IOMMU groups of GPU and NIC decide whether GPUDirect RDMA works.",
	{ "ls -l /sys/bus/pci/devices/*/iommu_group on the host; a container that masks parts of /sys does not have it." },
};

static const char *group_words(const struct facts *f, int pci)
{
	int group = f->pci[pci].iommu_group;

	return group == FACTS_GROUP_NONE ? "no group" : arena_printf(f->arena, "group %d", group);
}

static void judge_pair_groups(const struct facts *f, struct diagnosis *r,
			      const struct doctor_board *b, const struct doctor_complex *c)
{
	int nic = f->pci[c->nic].iommu_group, gpu = f->pci[c->gpu].iommu_group;
	bool dma = b->type == DOCTOR_BOARD_DMA, right = nic == gpu;
	const char *who = facts_address(f, c->gpu), *other = facts_address(f, c->nic),
		   *kind = dma ? "data direct function" : "NIC";

	/* One group, one or none, or two. */
	if (dma)
		right = nic == gpu && nic >= 0;
	else if (b->ats == FACTS_YES)
		right = nic >= 0 && gpu >= 0 && nic != gpu;
	if (nic == FACTS_GROUP_UNKNOWN || gpu == FACTS_GROUP_UNKNOWN)
		diagnosis_add(r, DIAGNOSIS_UNKNOWN, &group_unknown, who,
			      "The IOMMU groups of GPU %s and %s %s are not visible.", who, kind,
			      other);
	else if (!right)
		diagnosis_add(r, DIAGNOSIS_WARN, dma ? &group_apart : &group_inline, who,
			      "GPU %s is in %s and its %s %s in %s.", who, group_words(f, c->gpu),
			      kind, other, group_words(f, c->nic));
}

static bool is_in_numa(const struct facts *f, size_t pci)
{
	return doctor_is_nvidia_gpu(f->inv, (int)pci) || facts_is_board_nic(&f->inv->pci[pci]);
}

static void judge_own_group(const struct facts *f, struct diagnosis *r, size_t pci)
{
	int group = f->pci[pci].iommu_group;
	const char *who = facts_address(f, (int)pci);

	if (group == FACTS_GROUP_UNKNOWN)
		diagnosis_add(r, DIAGNOSIS_UNKNOWN, &group_unknown, who,
			      "The IOMMU group of %s is not visible.", who);
	else if (group == FACTS_GROUP_NONE)
		diagnosis_add(r, DIAGNOSIS_WARN, &group_numa, who, "%s is in no IOMMU group.", who);
	for (size_t i = 0; group >= 0 && i < pci; i++) {
		if (is_in_numa(f, i) && f->pci[i].iommu_group == group)
			diagnosis_add(r, DIAGNOSIS_WARN, &group_numa, who,
				      "%s shares group %d with %s.", who, group,
				      facts_address(f, (int)i));
	}
}

static void run_groups(const struct facts *f, struct diagnosis *r)
{
	struct doctor_board b = doctor_board_of(f);
	bool known = b.type != DOCTOR_BOARD_INLINE || b.ats != FACTS_UNKNOWN;
	size_t n = 0;

	for (size_t i = 0; known && i < b.n_complex; i++, n++)
		judge_pair_groups(f, r, &b, &b.complex[i]);
	for (size_t i = 0; b.type == DOCTOR_BOARD_NUMA && i < f->inv->n_pci; i++) {
		if (!is_in_numa(f, i))
			continue;
		judge_own_group(f, r, i);
		n++;
	}
	if (n)
		diagnosis_fine(r,
			       b.type == DOCTOR_BOARD_NUMA
				       ? "GPUs and NICs with an IOMMU group of their own: %zu."
				       : "Pairs of GPU and NIC in the right IOMMU groups: %zu.",
			       n);
}

/* --- ats --- */

static const struct diagnosis_advice ats_mixed = {
	"With ATS the ports between GPU and NIC need other ACS masks than without it: one half of the NICs is wrong in any case.",
	{ "mlxconfig -d ADDRESS set ATS_ENABLED=0 (bare metal) or 1 (GPUs for virtual machines), the same on all of them, and reboot." },
};
static const struct diagnosis_advice ats_on = {
	"A NIC that asks the SMMU for translations bypasses what this board expects of it.",
	{ "mlxconfig -d ADDRESS set ATS_ENABLED=0, and reboot." },
};
static const struct diagnosis_advice ats_unknown = {
	"On this board NICs have to have ATS, or not to have it.",
	{ DOCTOR_NEED_PRIVILEGE },
};

/* Where all NICs are alike, their kind shows the purpose of the machine. */
static void judge_inline_ats(const struct facts *f, struct diagnosis *r,
			     const struct doctor_board *b)
{
	size_t n[FACTS_UNKNOWN + 1] = { 0 };

	for (size_t i = 0; i < b->n_complex; i++)
		n[doctor_has_ats(&f->pci[b->complex[i].nic])]++;
	if (n[FACTS_YES] && n[FACTS_NO])
		diagnosis_add(
			r, DIAGNOSIS_WARN, &ats_mixed, "host",
			"Of the NICs with a GPU behind their switch %zu have ATS and %zu have not.",
			n[FACTS_YES], n[FACTS_NO]);
	else if (n[FACTS_UNKNOWN])
		diagnosis_add(r, DIAGNOSIS_UNKNOWN, &ats_unknown, "host",
			      "Whether NICs have ATS is not visible of %zu.", n[FACTS_UNKNOWN]);
	else
		diagnosis_fine(
			r,
			n[FACTS_YES]
				? "All %zu NICs have ATS: judged as a host of virtual machines."
				: "None of the %zu NICs has ATS: judged as bare metal.",
			b->n_complex);
}

static void judge_numa_ats(const struct facts *f, struct diagnosis *r)
{
	size_t n = 0;

	for (size_t i = 0; i < f->inv->n_pci; i++) {
		const char *who = facts_address(f, (int)i);

		if (!facts_is_board_nic(&f->inv->pci[i]))
			continue;
		n++;
		if (doctor_has_ats(&f->pci[i]) == FACTS_YES)
			diagnosis_add(r, DIAGNOSIS_WARN, &ats_on, who, "NIC %s has ATS.", who);
		else if (doctor_has_ats(&f->pci[i]) == FACTS_UNKNOWN)
			diagnosis_add(r, DIAGNOSIS_UNKNOWN, &ats_unknown, who,
				      "NIC %s: its configuration space %s.", who,
				      facts_why_unread(f->pci[i].config_ext));
	}
	if (n)
		diagnosis_fine(r, "None of the %zu NICs has ATS.", n);
}

static void run_ats(const struct facts *f, struct diagnosis *r)
{
	struct doctor_board b = doctor_board_of(f);

	if (b.type == DOCTOR_BOARD_INLINE)
		judge_inline_ats(f, r, &b);
	else if (b.type == DOCTOR_BOARD_NUMA)
		judge_numa_ats(f, r);
}

const struct diagnosis_check doctor_board_checks[] = {
	{ "ats", "ATS of NICs on NVIDIA's boards",
	  "For the board types inline (the NIC's own switch is above the GPU: HGX B300) and NUMA (GPUs directly below root ports of Grace or Vera). PASS: on the first all NICs have the capability, or none; on the second none. WARN: else. UNKNOWN: it takes CAP_SYS_ADMIN to see. Other machines: not applicable.",
	  .run = run_ats },
	{ "iommu-groups", "IOMMU groups of GPUs and NICs on NVIDIA's boards",
	  "Only for boards on which NVIDIA joins GPU and NIC. Type DMA (Data Direct, GB300): WARN unless each data direct function and its GPU are in one group. Type inline: WARN unless NIC and GPU are in one group or in none; with ATS, in two. Type NUMA: WARN unless every GPU and NIC has a group of its own. UNKNOWN: not visible.",
	  .run = run_groups },
};
const size_t doctor_board_checks_n = ARRAY_LEN(doctor_board_checks);
