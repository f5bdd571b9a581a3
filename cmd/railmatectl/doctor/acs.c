/* Do the ports between a GPU and its nearest NICs, or the other GPUs of its switches, redirect the
 * requests of the two to each other? */
#include <linux/pci_regs.h>
#include <string.h>

#include "base/arena.h"
#include "base/mem.h"
#include "doctor/board-internal.h"
#include "hw/inventory.h"

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
static const struct diagnosis_advice acs_on_despite = {
	"What the two send each other is redirected up to the CPU instead of through the switch: GPUDirect RDMA at half the bandwidth, or none at all.",
	{ "The command line names this bridge already: look into the kernel's log for 'disable_acs_redir', or switch ACS off in the BIOS; config_acs= is for kernels from 6.11, or a vendor's that has it." },
};
static const struct diagnosis_advice acs_on_guest = {
	"What the two send each other is redirected up to the CPU instead of through the switch, for without ATS or direct translated P2P nothing takes the short way.",
	{ "In a virtual machine that is the host's affair: the switch needs DT (direct translated P2P), GPUs and NICs need ATS, which the host's administrator sets (nccl-tests issue 380)." },
};
static const struct diagnosis_advice acs_unknown = {
	"If a bridge on the path redirects, GPUDirect RDMA is slow, and nothing in NCCL's log says so.",
	{ DOCTOR_NEED_PRIVILEGE },
};
static const struct diagnosis_advice acs_hidden = {
	"The switches are the host's: if they redirect, GPUDirect RDMA is slow, which cannot be seen from inside.",
	{ "Ask who runs the host: good is SV RR CR UF DT with ATS on GPU and NIC." },
};
static const struct diagnosis_advice acs_direct = {
	"Plain requests are redirected, but both ends have ATS, and what is translated goes straight through (DT).",
	{ NULL },
};
static const struct diagnosis_advice acs_far = {
	"The path goes over the host bridge anyway, where NCCL leaves GPUDirect RDMA off: it matters when its level is raised.",
	{ NULL },
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
		advice = &acs_far;
	else if (f->inv->hypervisor)
		advice = &acs_on_guest;
	else if (value && strstr(value, "disable_acs_redir=") && strstr(value, who))
		advice = &acs_on_despite;
	else
		ours = true;
	found = diagnosis_add(r, advice == &acs_far ? DIAGNOSIS_PASS : DIAGNOSIS_WARN, advice, who,
			      "%s redirects (ACS %s) between GPU %s and %s %s (%s).", who,
			      doctor_acs_words(f, f->pci[bridge].acs_ctrl),
			      facts_address(f, p->gpu), p->nic ? "NIC" : "GPU",
			      facts_address(f, p->peer), topo_class_name(p->class));
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
		diagnosis_add(r, DIAGNOSIS_UNKNOWN, &acs_unknown, who,
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
		diagnosis_add(
			r, DIAGNOSIS_UNKNOWN, &acs_hidden, "host",
			"This virtual machine does not show the switches between GPUs and NICs.");
		return;
	}
	right = doctor_judge_masks(f, r, &board, seen);
	/* The nearest pairs first: a bridge that is on two paths counts for the shorter one. */
	for (enum topo_class c = TOPO_PIX; c < TOPO_CLASS_MAX; c++) {
		judge_nics(f, r, &w, c);
		judge_gpus(f, r, &w, c);
	}
	if (right)
		diagnosis_fine(r, "Ports with the ACS mask of a board of type %s: %zu.",
			       doctor_board_name(board.type), right);
	if (w.direct)
		diagnosis_add(r, DIAGNOSIS_PASS, &acs_direct, "host",
			      "Bridges that redirect, with DT and ATS: %zu.", w.direct);
	if (w.judged && diagnosis_n(r) == diagnosis_n_before(r) && f->inv->hypervisor)
		diagnosis_add(
			r, DIAGNOSIS_UNKNOWN, &acs_hidden, "host",
			"The %zu bridges that this virtual machine sees redirect nothing; the host's are hidden.",
			w.judged);
	else if (w.judged && diagnosis_n(r) == diagnosis_n_before(r))
		diagnosis_fine(
			r,
			"Nothing is redirected by the ports between GPUs and NICs, and between GPUs (pairs: %zu, ports: %zu).",
			w.pairs, w.judged);
}

const struct diagnosis_check doctor_acs_checks[] = {
	{ "acs", "ACS of the ports between GPUs and NICs, and between GPUs",
	  "Decodes the ACS control word of every port that requests between a GPU and its nearest NICs, or another GPU of its switches, come in by: downstream ports of switches, and root ports where the path goes over the host bridge. WARN: RR (request redirect), CR (completion redirect) or EC (egress control). SV and UF alone are harmless. PASS in spite of RR and CR: DT is set and both ends have ATS on, as virtual machines should have it. On boards on which NVIDIA joins GPU and NIC (types DMA, inline and NUMA of rdma_topo) the ports are compared with the masks of the type instead, some of which redirect; WARN: a port differs. UNKNOWN: the word cannot be read, which takes CAP_SYS_ADMIN; a virtual machine hides the switches; or a data direct function stands where none is known to.",
	  .run = run_acs, .in_manifest = true },
};
const size_t doctor_acs_checks_n = ARRAY_LEN(doctor_acs_checks);
