/*
 * Boards on which NVIDIA joins GPU and NIC: which type one is of, by the kinds and the tree of its
 * ports. Types are those of rdma-core's kernel-boot/rdma_topo.
 */
#include "base/arena.h"
#include "base/mem.h"
#include "doctor/board-internal.h"
#include "hw/inventory.h"

enum doctor_port_kind doctor_port_kind(const struct hw_pci *p)
{
	static const struct {
		uint16_t vendor, device;
		enum doctor_port_kind kind;
	} ports[] = {
		{ 0x10de, 0x22b1, DOCTOR_PORT_GRACE },
		{ 0x10de, 0x22b2, DOCTOR_PORT_GRACE },
		{ 0x10de, 0x22b8, DOCTOR_PORT_GRACE },
		{ 0x10de, 0x2f95, DOCTOR_PORT_VERA },
		{ 0x10de, 0x2f96, DOCTOR_PORT_VERA },
		{ 0x15b3, 0x197b, DOCTOR_PORT_SWITCH }, /* BlueField-3 */
		{ 0x15b3, 0x197c, DOCTOR_PORT_SWITCH },
		{ 0x15b3, 0x1979, DOCTOR_PORT_SWITCH }, /* ConnectX */
	};

	for (size_t i = 0; i < ARRAY_LEN(ports); i++) {
		if (p->vendor == ports[i].vendor && p->device == ports[i].device)
			return ports[i].kind;
	}
	return DOCTOR_PORT_ORDINARY;
}

bool doctor_is_nvidia_gpu(const struct hw_inventory *inv, int pci)
{
	return inv->pci[pci].vendor == 0x10de && hw_find_gpu(inv, pci) >= 0;
}

/* A CPU that GPUs are joined to by NVLink-C2C; other GPUs may be in its slots. */
static bool is_c2c_port(const struct hw_pci *p)
{
	enum doctor_port_kind kind = doctor_port_kind(p);

	return kind == DOCTOR_PORT_GRACE || kind == DOCTOR_PORT_VERA;
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
		if (pci < 0 || doctor_port_kind(&inv->pci[pci]) != DOCTOR_PORT_SWITCH)
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
		bool gpu = doctor_is_nvidia_gpu(inv, (int)i);
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

enum facts_answer doctor_has_ats(const struct facts_pci *p)
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
		enum facts_answer ats;

		if (upstream < 0 || !find_complex(inv, upstream, false, c) ||
		    doctor_port_kind(&inv->pci[c->root]) != DOCTOR_PORT_ORDINARY)
			continue;
		b->type = DOCTOR_BOARD_INLINE;
		ats = f->pci ? doctor_has_ats(&f->pci[c->nic]) : FACTS_UNKNOWN;
		if (!b->n_complex++)
			b->ats = ats;
		else if (b->ats != ats)
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
		    doctor_port_kind(&inv->pci[c->root]) == DOCTOR_PORT_GRACE)
			b.n_complex++;
		else
			b.unclear[b.n_unclear++] = (int)i;
	}
	for (size_t i = 0; b.type == DOCTOR_BOARD_OTHER && i < inv->n_gpu; i++) {
		int up = inv->pci[inv->gpu[i].pci].parent;

		if (up >= 0 && doctor_is_nvidia_gpu(inv, inv->gpu[i].pci) &&
		    is_c2c_port(&inv->pci[up]))
			b.type = DOCTOR_BOARD_NUMA;
	}
	if (b.type == DOCTOR_BOARD_OTHER)
		find_inline(f, &b);
	return b;
}

const char *doctor_board_name(enum doctor_board_type type)
{
	static const char *const names[DOCTOR_BOARD_MAX] = {
		[DOCTOR_BOARD_OTHER] = "other",
		[DOCTOR_BOARD_DMA] = "DMA",
		[DOCTOR_BOARD_INLINE] = "inline",
		[DOCTOR_BOARD_NUMA] = "NUMA",
	};

	return names[type];
}

const char *doctor_board_of_gpus(const struct hw_inventory *inv)
{
	_cleanup_arena_ struct arena *arena = arena_new(4096);
	const struct facts f = { .arena = arena, .inv = inv };
	enum doctor_board_type type = doctor_board_of(&f).type;

	return type == DOCTOR_BOARD_OTHER ? NULL : doctor_board_name(type);
}

/* --- the right ATS and IOMMU groups of these boards --- */

/* --- iommu-groups --- */

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
		doctor_unknown(r, group_unknown, who,
			       "The IOMMU groups of GPU %s and %s %s are not visible.", who, kind,
			       other);
	else if (!right)
		diagnosis_add(r, DIAGNOSIS_WARN, dma ? &doctor_group_apart : &doctor_group_inline,
			      who, "GPU %s is in %s and its %s %s in %s.", who,
			      group_words(f, c->gpu), kind, other, group_words(f, c->nic));
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
		doctor_unknown(r, group_unknown, who, "The IOMMU group of %s is not visible.", who);
	else if (group == FACTS_GROUP_NONE)
		doctor_warn(r, group_numa, who, "%s is in no IOMMU group.", who);
	for (size_t i = 0; group >= 0 && i < pci; i++) {
		if (is_in_numa(f, i) && f->pci[i].iommu_group == group)
			doctor_warn(r, group_numa, who, "%s shares group %d with %s.", who, group,
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

/* Where all NICs are alike, their kind shows the purpose of the machine. */
static void judge_inline_ats(const struct facts *f, struct diagnosis *r,
			     const struct doctor_board *b)
{
	size_t n[FACTS_UNKNOWN + 1] = { 0 };

	for (size_t i = 0; i < b->n_complex; i++)
		n[doctor_has_ats(&f->pci[b->complex[i].nic])]++;
	if (n[FACTS_YES] && n[FACTS_NO])
		doctor_warn(
			r, ats_mixed, "host",
			"Of the NICs with a GPU behind their switch %zu have ATS and %zu have not.",
			n[FACTS_YES], n[FACTS_NO]);
	else if (n[FACTS_UNKNOWN])
		doctor_unknown(r, ats_unknown, "host",
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
			doctor_warn(r, ats_on, who, "NIC %s has ATS.", who);
		else if (doctor_has_ats(&f->pci[i]) == FACTS_UNKNOWN)
			doctor_unknown(r, ats_unknown, who, "NIC %s: its configuration space %s.",
				       who, facts_why_unread(f->pci[i].config_ext));
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
	{ "ats", "ATS of NICs on NVIDIA's boards", .run = run_ats },
	{ "iommu-groups", "IOMMU groups of GPUs and NICs on NVIDIA's boards", .run = run_groups },
};
const size_t doctor_board_checks_n = ARRAY_LEN(doctor_board_checks);
