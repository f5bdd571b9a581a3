/*
 * Boards on which NVIDIA joins GPU and NIC: what their type is, and what ACS, ATS and IOMMU groups
 * have to be there. Kernel: Documentation/admin-guide/kernel-parameters.txt (config_acs);
 * drivers/pci/pci.c.
 */
#include <linux/pci_regs.h>
#include <string.h>

#include "base/arena.h"
#include "base/mem.h"
#include "base/str.h"
#include "doctor/doctor-internal.h"
#include "hw/inventory.h"

/* --- the type --- */

enum port_kind { PORT_ORDINARY, PORT_SWITCH, PORT_GRACE, PORT_VERA };

static enum port_kind kind_of(const struct hw_pci *p)
{
	static const struct {
		uint16_t vendor, device;
		enum port_kind kind;
	} ports[] = {
		{ 0x10de, 0x22b1, PORT_GRACE },	 { 0x10de, 0x22b2, PORT_GRACE },
		{ 0x10de, 0x22b8, PORT_GRACE },	 { 0x10de, 0x2f95, PORT_VERA },
		{ 0x10de, 0x2f96, PORT_VERA },	 { 0x15b3, 0x197b, PORT_SWITCH }, /* BlueField-3 */
		{ 0x15b3, 0x197c, PORT_SWITCH }, { 0x15b3, 0x1979, PORT_SWITCH }, /* ConnectX */
	};

	for (size_t i = 0; i < ARRAY_LEN(ports); i++) {
		if (p->vendor == ports[i].vendor && p->device == ports[i].device)
			return ports[i].kind;
	}
	return PORT_ORDINARY;
}

static bool is_nvidia_gpu(const struct hw_inventory *inv, int pci)
{
	return inv->pci[pci].vendor == 0x10de && hw_find_gpu(inv, pci) >= 0;
}

/* A CPU that GPUs are joined to by NVLink-C2C; other GPUs may be in its slots. */
static bool is_c2c_port(const struct hw_pci *p)
{
	enum port_kind kind = kind_of(p);

	return kind == PORT_GRACE || kind == PORT_VERA;
}

static int root_of(const struct hw_inventory *inv, int pci)
{
	while (inv->pci[pci].parent >= 0)
		pci = inv->pci[pci].parent;
	return pci;
}

bool doctor_is_below_c2c_cpu(const struct hw_inventory *inv, int pci)
{
	return is_c2c_port(&inv->pci[root_of(inv, pci)]);
}

/* The nth bridge up, all of them ports of a NIC's switch; -1: there are not so many. */
static int switch_above(const struct hw_inventory *inv, int pci, int n)
{
	for (; n > 0; n--) {
		pci = inv->pci[pci].parent;
		if (pci < 0 || kind_of(&inv->pci[pci]) != PORT_SWITCH)
			return -1;
	}
	return pci;
}

/*
 * Both types are one shape: below the upstream port of a switch one port towards the NIC's side and
 * one, with a second switch behind it, towards the GPU. True when there is one of each.
 */
static bool find_complex(const struct hw_inventory *inv, int upstream, bool direct,
			 struct doctor_complex *ret)
{
	struct doctor_complex c = { .gpu = -1, .nic = -1, .root = root_of(inv, upstream) };

	for (size_t i = 0; i < inv->n_pci; i++) {
		bool gpu = is_nvidia_gpu(inv, (int)i);
		int port = (int)i;

		while (port >= 0 && inv->pci[port].parent != upstream)
			port = inv->pci[port].parent;
		if (port < 0 || (!gpu && !(direct ? hw_is_data_direct(&inv->pci[i])
						  : facts_is_board_nic(&inv->pci[i]))))
			continue;
		if (gpu && (c.gpu >= 0 || switch_above(inv, (int)i, 4) != upstream))
			return false;
		if (!gpu && c.nic >= 0 && c.nic_port != port)
			return false;
		if (gpu) {
			c.gpu = (int)i;
			c.gpu_port = port;
		} else if (c.nic < 0) {
			c.nic = (int)i;
			c.nic_port = port;
		}
	}
	*ret = c;
	return c.gpu >= 0 && c.nic >= 0 && c.gpu_port != c.nic_port;
}

static enum facts_answer has_ats(const struct facts_pci *p)
{
	if (p->has_ats)
		return FACTS_YES;
	return p->config_ext == FACTS_CONFIG_READ ? FACTS_NO : FACTS_UNKNOWN;
}

static void find_inline(const struct facts *f, struct doctor_board *b)
{
	const struct hw_inventory *inv = f->inv;

	for (size_t i = 0; i < inv->n_gpu; i++) {
		int upstream = switch_above(inv, inv->gpu[i].pci, 4);
		struct doctor_complex *c = &b->complex[b->n_complex];

		if (upstream < 0 || !find_complex(inv, upstream, false, c) ||
		    kind_of(&inv->pci[c->root]) != PORT_ORDINARY)
			continue;
		b->type = DOCTOR_BOARD_INLINE;
		if (!b->n_complex++)
			b->ats = has_ats(&f->pci[c->nic]);
		else if (b->ats != has_ats(&f->pci[c->nic]))
			b->ats = FACTS_UNKNOWN;
	}
}

/* A virtual machine shows the switches that its host has made for it. */
struct doctor_board doctor_board_of(const struct facts *f)
{
	const struct hw_inventory *inv = f->inv;
	struct doctor_board b = { .ats = FACTS_UNKNOWN };

	if (inv->hypervisor)
		return b;
	b.complex = arena_array(f->arena, inv->n_pci + 1, sizeof(*b.complex));
	b.unclear = arena_array(f->arena, inv->n_pci + 1, sizeof(*b.unclear));
	for (size_t i = 0; i < inv->n_pci; i++) {
		int upstream = switch_above(inv, (int)i, 2);
		struct doctor_complex *c = &b.complex[b.n_complex];

		if (!hw_is_data_direct(&inv->pci[i]))
			continue;
		b.type = DOCTOR_BOARD_DMA;
		if (upstream >= 0 && find_complex(inv, upstream, true, c) &&
		    kind_of(&inv->pci[c->root]) == PORT_GRACE)
			b.n_complex++;
		else
			b.unclear[b.n_unclear++] = (int)i;
	}
	for (size_t i = 0; b.type == DOCTOR_BOARD_OTHER && i < inv->n_gpu; i++) {
		int up = inv->pci[inv->gpu[i].pci].parent;

		if (up >= 0 && is_nvidia_gpu(inv, inv->gpu[i].pci) && is_c2c_port(&inv->pci[up]))
			b.type = DOCTOR_BOARD_NUMA;
	}
	if (b.type == DOCTOR_BOARD_OTHER)
		find_inline(f, &b);
	return b;
}

static const char *type_name(enum doctor_board_type type)
{
	static const char *const names[DOCTOR_BOARD_MAX] = {
		[DOCTOR_BOARD_OTHER] = "other",
		[DOCTOR_BOARD_DMA] = "DMA",
		[DOCTOR_BOARD_INLINE] = "inline",
		[DOCTOR_BOARD_NUMA] = "NUMA",
	};

	return names[type];
}

/* --- masks --- */

enum role { ROLE_NIC_PORT, ROLE_GPU_PORT, ROLE_ROOT, ROLE_MAX };

/* DT EC UF CR RR TB SV, as setpci and config_acs= write them. */
static const char *const dma_masks[ROLE_MAX] = { "xx110x1", "xx101x1", "xx111x0" };
static const char *const inline_masks[ROLE_MAX] = { "xx000x0", "xx000x0", "xx000x0" };
static const char *const inline_ats_masks[ROLE_MAX] = { "1x111x1", "xx111x1", "xx111x1" };

/* NULL: it has none, and the rule for everybody's switches counts. */
static const char *mask_of(const struct facts *f, const struct doctor_board *b, int port)
{
	const char *const *masks = b->type == DOCTOR_BOARD_DMA ? dma_masks
				   : b->ats == FACTS_YES       ? inline_ats_masks
							       : inline_masks;
	enum port_kind kind = kind_of(&f->inv->pci[port]);

	for (size_t i = 0; i < b->n_complex; i++) {
		const struct doctor_complex *c = &b->complex[i];
		const int ports[ROLE_MAX] = { c->nic_port, c->gpu_port, c->root };

		for (int role = 0; role < ROLE_MAX; role++) {
			if (ports[role] == port)
				return masks[role];
		}
	}
	if (b->type == DOCTOR_BOARD_OTHER || kind == PORT_ORDINARY)
		return NULL;
	if (b->type == DOCTOR_BOARD_INLINE && b->ats == FACTS_NO)
		return inline_masks[ROLE_NIC_PORT];
	/* What the kernel sets by itself; Vera's ports cannot redirect completions. */
	return kind == PORT_VERA ? "xx101x1" : "xx111x1";
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
	{ "pci=config_acs= is for kernels from 6.11 on: update the kernel; until then set the words by setpci at every boot (setpci -s PORT ECAP_ACS+6.w=WORD), and load the GPU's driver with NVreg_GrdmaPciTopoCheckOverride=1, for IOMMU groups do not follow setpci.",
	  NULL, NULL },
};
static const struct diagnosis_advice mask_wrong_despite = {
	mask_meaning,
	{ "The command line has pci=config_acs= for this port already: look into the kernel's log for 'config_acs', and for what sets ACS after boot (setpci).",
	  NULL, NULL },
};
static const struct diagnosis_advice mask_missing = {
	mask_meaning,
	{ "Update the firmware of the NIC, whose switch this is, or of the board: nothing else gives a port the capability.",
	  NULL, NULL },
};
static const struct diagnosis_advice mask_unknown = {
	"What this port should redirect depends on what cannot be seen.",
	{ DOCTOR_NEED_PRIVILEGE, NULL, NULL },
};
static const struct diagnosis_advice ats_differ_unknown = {
	"With ATS the ports between GPU and NIC need other ACS masks than without it.",
	{ "Run it as root with CAP_SYS_ADMIN; if only some NICs have ATS, give all of them the same (mlxconfig ATS_ENABLED).",
	  NULL, NULL },
};
static const struct diagnosis_advice shape_unknown = {
	"What the ports around it should redirect is not known for this shape of the tree.",
	{ "Compare with rdma_topo check (rdma-core), and send a railmatectl snapshot with a report.",
	  NULL, NULL },
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
		who, doctor_acs_words(f, now), now, type_name(b->type), doctor_acs_words(f, right),
		right, mask);
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
			      type_name(b->type), mask);
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

/* --- iommu-groups --- */

static const struct diagnosis_advice group_apart = {
	"The GPU's driver gives GPU memory to the NIC only within one IOMMU group: without it NCCL has no GPUDirect RDMA.",
	{ "Groups follow from ACS: set the masks that the check acs names, and reboot; the driver's way around it is NVreg_GrdmaPciTopoCheckOverride=1.",
	  NULL, NULL },
};
static const struct diagnosis_advice group_inline = {
	"Groups that do not fit the board's type mean that ACS does not either: GPUDirect RDMA takes the long way.",
	{ "Groups follow from ACS: set the masks that the check acs names, and reboot.", NULL,
	  NULL },
};
static const struct diagnosis_advice group_numa = {
	"On this board every GPU and NIC is to be translated by itself; a shared or missing group means that ACS or the IOMMU is off, and GPUDirect RDMA over C2C may fail.",
	{ "Switch the SMMU on in the firmware, and take iommu.passthrough=, arm-smmu-v3.disable_bypass= and pci=disable_acs_redir= out of the kernel's command line where they are the cause.",
	  NULL, NULL },
};
static const struct diagnosis_advice group_unknown = {
	"On this board the IOMMU groups of GPU and NIC decide whether GPUDirect RDMA works.",
	{ "ls -l /sys/bus/pci/devices/*/iommu_group on the host; a container that masks parts of /sys does not have it.",
	  NULL, NULL },
};
static const struct diagnosis_advice group_fine = {
	"GPUs and NICs are in the IOMMU groups that this board needs.",
	{ NULL },
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
	return is_nvidia_gpu(f->inv, (int)pci) || facts_is_board_nic(&f->inv->pci[pci]);
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
	if (n && diagnosis_worst_so_far(r) == DIAGNOSIS_PASS)
		diagnosis_add(r, DIAGNOSIS_PASS, &group_fine, "host",
			      b.type == DOCTOR_BOARD_NUMA
				      ? "GPUs and NICs with an IOMMU group of their own: %zu."
				      : "Pairs of GPU and NIC in the right IOMMU groups: %zu.",
			      n);
}

/* --- ats --- */

static const struct diagnosis_advice ats_mixed = {
	"With ATS the ports between GPU and NIC need other ACS masks than without it: one half of the NICs is wrong in any case.",
	{ "mlxconfig -d ADDRESS set ATS_ENABLED=0 (bare metal) or 1 (GPUs for virtual machines), the same on all of them, and reboot.",
	  NULL, NULL },
};
static const struct diagnosis_advice ats_on = {
	"A NIC that asks the SMMU for translations bypasses what this board expects of it.",
	{ "mlxconfig -d ADDRESS set ATS_ENABLED=0, and reboot.", NULL, NULL },
};
static const struct diagnosis_advice ats_unknown = {
	"On this board NICs have to have ATS, or not to have it.",
	{ DOCTOR_NEED_PRIVILEGE, NULL, NULL },
};
static const struct diagnosis_advice ats_fine = {
	"NICs have ATS where this board needs it, and nowhere else.",
	{ NULL },
};

/* Where all NICs are alike, what they are says what the machine is for. */
static void judge_inline_ats(const struct facts *f, struct diagnosis *r,
			     const struct doctor_board *b)
{
	size_t n[FACTS_UNKNOWN + 1] = { 0 };

	for (size_t i = 0; i < b->n_complex; i++)
		n[has_ats(&f->pci[b->complex[i].nic])]++;
	if (n[FACTS_YES] && n[FACTS_NO])
		diagnosis_add(
			r, DIAGNOSIS_WARN, &ats_mixed, "host",
			"Of the NICs with a GPU behind their switch %zu have ATS and %zu have not.",
			n[FACTS_YES], n[FACTS_NO]);
	else if (n[FACTS_UNKNOWN])
		diagnosis_add(r, DIAGNOSIS_UNKNOWN, &ats_unknown, "host",
			      "Whether NICs have ATS is not visible of %zu.", n[FACTS_UNKNOWN]);
	else
		diagnosis_add(
			r, DIAGNOSIS_PASS, &ats_fine, "host",
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
		if (has_ats(&f->pci[i]) == FACTS_YES)
			diagnosis_add(r, DIAGNOSIS_WARN, &ats_on, who, "NIC %s has ATS.", who);
		else if (has_ats(&f->pci[i]) == FACTS_UNKNOWN)
			diagnosis_add(r, DIAGNOSIS_UNKNOWN, &ats_unknown, who,
				      "NIC %s: its configuration space %s.", who,
				      facts_why_unread(f->pci[i].config_ext));
	}
	if (n && diagnosis_worst_so_far(r) == DIAGNOSIS_PASS)
		diagnosis_add(r, DIAGNOSIS_PASS, &ats_fine, "host", "None of the %zu NICs has ATS.",
			      n);
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
