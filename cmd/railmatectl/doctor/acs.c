/*
 * Who stands between GPU and NIC? An IOMMU that translates their requests, and those of VFs; ports
 * that redirect the requests between a GPU and its nearest NICs, or the other GPUs of its switches.
 * On boards on which NVIDIA joins GPU and NIC ports redirect by the ACS masks of each type, those
 * of rdma_topo. Kernel: Documentation/admin-guide/kernel-parameters.txt (config_acs);
 * drivers/pci/pci.c.
 */
#include <linux/pci_regs.h>
#include <string.h>

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
		doctor_fail(r, iommu_blocked, who, "%s is in a group of type blocked.", name);
		break;
	default:
		doctor_unknown(
			r, iommu_unknown, who, "%s: the type of its IOMMU group is %s%s.", name,
			words,
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
		doctor_pass(r, iommu_ats, "host",
			    "GPUs and NICs that are translated, with ATS: %zu.", t.ats);
	if (t.numa)
		doctor_pass(r, iommu_numa, "host",
			    "GPUs and NICs that are translated, on a board of type NUMA: %zu.",
			    t.numa);
	if (t.fine)
		diagnosis_fine(r,
			       "%zu GPUs, NICs and VFs are in groups of type identity or in none.",
			       t.fine);
}

/* --- acs: masks of boards --- */

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

static const char *acs_words(const struct facts *f, uint16_t ctrl)
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
		who, acs_words(f, now), now, doctor_board_name(b->type), acs_words(f, right), right,
		mask);
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
		doctor_unknown(r, mask_unknown, who, "%s: its configuration space %s.", who,
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

static size_t judge_masks(const struct facts *f, struct diagnosis *r, const struct doctor_board *b,
			  bool *seen)
{
	size_t right = 0;

	for (size_t i = 0; i < b->n_unclear; i++) {
		const char *who = facts_address(f, b->unclear[i]);

		doctor_unknown(r, shape_unknown, who,
			       "Data direct function %s is not on a switch with one GPU.", who);
	}
	if (b->type == DOCTOR_BOARD_INLINE && b->ats == FACTS_UNKNOWN)
		doctor_unknown(
			r, ats_differ_unknown, "host",
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

/* --- pairs of devices --- */

#define MAX_NEAREST 64
#define ACS_BAD	    (PCI_ACS_RR | PCI_ACS_CR | PCI_ACS_EC)

#define ACS_FIXES                                                                                                                                                                                                   \
	{                                                                                                                                                                                                           \
		"Boot with pci=disable_acs_redir= of these bridges (--fix-manifest grub), or switch ACS off in the BIOS; devices below them then share IOMMU groups. pcie_acs_override does not clear these bits.", \
			"Apply a MachineConfig with kernelArguments pci=disable_acs_redir= of these bridges (--fix-manifest openshift).",                                                                           \
			"Add pci=disable_acs_redir= of these bridges to machine.install.extraKernelArgs (--fix-manifest talos).",                                                                                   \
	}
static const struct diagnosis_advice acs_on = {
	"What the GPU and the NIC send each other is redirected up to the CPU instead of through the switch: GPUDirect RDMA at half the bandwidth, or none at all.",
	ACS_FIXES,
};
static const struct diagnosis_advice acs_on_gpus = {
	"What the two GPUs send each other on PCIe is redirected up to the CPU instead of through the switch: slow, or wrong data where the IOMMU translates. NVLink does not pass here.",
	ACS_FIXES,
};

/* A GPU and its peer. */
struct acs_pair {
	int gpu, peer;
	bool nic; /* the peer */
	enum topo_class class;
};

static void say_redirects(const struct facts *f, struct diagnosis *r, int bridge,
			  const struct acs_pair *p)
{
	const char *who = facts_address(f, bridge), *value = facts_boot_value(f, "pci=");
	const struct diagnosis_advice *advice = p->nic ? &acs_on : &acs_on_gpus;
	struct diagnosis_finding *found;
	bool ours = false;

	if (p->class > TOPO_PHB)
		advice = &doctor_acs_far;
	else if (f->inv->hypervisor)
		advice = &doctor_acs_on_guest;
	else if (value && strstr(value, "disable_acs_redir=") && strstr(value, who))
		advice = &doctor_acs_on_despite;
	else
		ours = true;
	found = diagnosis_add(r, advice == &doctor_acs_far ? DIAGNOSIS_PASS : DIAGNOSIS_WARN,
			      advice, who, "%s redirects (ACS %s) between GPU %s and %s %s (%s).",
			      who, acs_words(f, f->pci[bridge].acs_ctrl), facts_address(f, p->gpu),
			      p->nic ? "NIC" : "GPU", facts_address(f, p->peer),
			      topo_class_name(p->class));
	if (ours)
		found->kernel_arg =
			arena_printf(diagnosis_arena(r), "pci=disable_acs_redir=%s", who);
}

/* Each bridge is judged for the first pair that it is between. */
struct acs_walk {
	bool *seen;
	size_t judged, direct, pairs;
};

static void judge_acs_bridge(const struct facts *f, struct diagnosis *r, struct acs_walk *w,
			     int bridge, const struct acs_pair *pair)
{
	const struct facts_pci *p = &f->pci[bridge];
	const char *who = facts_address(f, bridge);
	bool known = p->has_acs || p->config_ext == FACTS_CONFIG_READ;
	/* This port redirects only requests that the two do not send. */
	bool direct = p->acs_ctrl & PCI_ACS_DT && !(p->acs_ctrl & (PCI_ACS_TB | PCI_ACS_EC)) &&
		      facts_ats_is_on(&f->pci[pair->gpu]) && facts_ats_is_on(&f->pci[pair->peer]);

	if (!known && pair->class > TOPO_PHB)
		return; /* the pair is further apart than a host bridge: its ACS matters little */
	w->judged++;
	if (!known)
		doctor_unknown(r, acs_unknown, who,
			       "%s, between GPU %s and %s %s: its configuration space %s.", who,
			       facts_address(f, pair->gpu), pair->nic ? "NIC" : "GPU",
			       facts_address(f, pair->peer), facts_why_unread(p->config_ext));
	else if (!p->has_acs || !(p->acs_ctrl & ACS_BAD))
		return;
	else if (direct)
		w->direct++;
	else
		say_redirects(f, r, bridge, pair);
}

/* Ports redirect where requests come in from below: those of switches, and root ports where the
 * path goes over the root complex. An unknown type counts. */
static void judge_acs_pair(const struct facts *f, struct diagnosis *r, struct acs_walk *w,
			   struct acs_pair pair)
{
	int path[FACTS_PATH_MAX], common;
	size_t n = facts_path(f->inv, pair.gpu, pair.peer, path, &common);

	w->pairs++;
	for (size_t i = 0; i < n; i++) {
		int type = f->pci[path[i]].port_type;

		if (w->seen[path[i]] || (int)i == common ||
		    (type >= 0 && type != FACTS_PORT_DOWNSTREAM && type != FACTS_PORT_ROOT))
			continue;
		w->seen[path[i]] = true;
		judge_acs_bridge(f, r, w, path[i], &pair);
	}
}

static void judge_nics(const struct facts *f, struct diagnosis *r, struct acs_walk *w,
		       enum topo_class class)
{
	int nearest[MAX_NEAREST];

	for (size_t i = 0; i < f->inv->n_gpu; i++) {
		struct acs_pair p = { .gpu = f->inv->gpu[i].pci, .nic = true };
		size_t n = facts_nearest(f, p.gpu, nearest, MAX_NEAREST, &p.class);

		for (size_t k = 0; k < n && p.class == class; k++) {
			p.peer = nearest[k];
			judge_acs_pair(f, r, w, p);
		}
	}
}

/* GPUs that have switches in common. */
static void judge_gpus(const struct facts *f, struct diagnosis *r, struct acs_walk *w,
		       enum topo_class class)
{
	for (size_t i = 0; i < f->inv->n_gpu && class < TOPO_PHB; i++) {
		for (size_t k = i + 1; k < f->inv->n_gpu; k++) {
			struct acs_pair p = { .gpu = f->inv->gpu[i].pci,
					      .peer = f->inv->gpu[k].pci,
					      .class = class };

			if (topo_between(f->topo, p.gpu, p.peer).class == class)
				judge_acs_pair(f, r, w, p);
		}
	}
}

static void run_acs(const struct facts *f, struct diagnosis *r)
{
	_cleanup_free_ bool *seen = xcalloc(f->inv->n_pci + 1, sizeof(*seen));
	struct acs_walk w = { .seen = seen };
	struct doctor_board board = doctor_board_of(f);
	size_t right;

	if (topo_flattened_vm(f->topo)) {
		doctor_unknown(
			r, acs_hidden, "host",
			"This virtual machine does not show the switches between GPUs and NICs.");
		return;
	}
	right = judge_masks(f, r, &board, seen);
	/* The nearest pairs first: a bridge that is on two paths counts for the shorter one. */
	for (enum topo_class c = TOPO_PIX; c < TOPO_CLASS_MAX; c++) {
		judge_nics(f, r, &w, c);
		judge_gpus(f, r, &w, c);
	}
	if (right)
		diagnosis_fine(r, "Ports with the ACS mask of a board of type %s: %zu.",
			       doctor_board_name(board.type), right);
	if (w.direct)
		doctor_pass(r, acs_direct, "host", "Bridges that redirect, with DT and ATS: %zu.",
			    w.direct);
	if (w.judged && diagnosis_n(r) == diagnosis_n_before(r) && f->inv->hypervisor)
		doctor_unknown(
			r, acs_hidden, "host",
			"The %zu bridges that this virtual machine sees redirect nothing; the host's are hidden.",
			w.judged);
	else if (w.judged && diagnosis_n(r) == diagnosis_n_before(r))
		diagnosis_fine(
			r,
			"Nothing is redirected by the ports between GPUs and NICs, and between GPUs (pairs: %zu, ports: %zu).",
			w.pairs, w.judged);
}

const struct diagnosis_check doctor_acs_checks[] = {
	{ "iommu", "IOMMU translation for GPUs and NICs", .run = run_iommu, .in_manifest = true },
	{ "acs", "ACS of the ports between GPUs and NICs, and between GPUs", .run = run_acs,
	  .in_manifest = true },
};
const size_t doctor_acs_checks_n = ARRAY_LEN(doctor_acs_checks);
