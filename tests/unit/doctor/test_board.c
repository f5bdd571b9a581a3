/* Boards on which NVIDIA joins GPU and NIC: their types, and what ACS, ATS and IOMMU groups have to
 * be.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "base/arena.h"
#include "base/err.h"
#include "base/mem.h"
#include "base/str.h"
#include "doctor/board-internal.h"
#include "hw/inventory.h"
#include "topo/topo.h"

/* One function: its parent in the list, ids, and what its configuration space says. */
struct part {
	int parent;
	uint32_t ids; /* vendor, device */
	int acs;      /* -1: no capability */
	bool ats;
	int group;
};

#define GRACE  0x10de22b1
#define VERA   0x10de2f95
#define XEON   0x80860db0
#define SWITCH 0x15b3197c
#define DIRECT 0x15b32100
#define NIC    0x15b31023
#define NIC9   0x15b31025
#define GPU    0x10de31c2
#define NVME   0x144da824

/* 0 root, 1 up, 2 port, 3 data direct, 4 port, 5 up, 6 port, 7 GPU; 8 root, 9 NIC */
static const struct part dma[] = {
	{ -1, GRACE, 0x1c, false, -1 }, { 0, SWITCH, -1, false, -1 },
	{ 1, SWITCH, 0x19, false, -1 }, { 2, DIRECT, -1, false, 7 },
	{ 1, SWITCH, 0x15, false, -1 }, { 4, SWITCH, -1, false, -1 },
	{ 5, SWITCH, 0x1d, false, -1 }, { 6, GPU, -1, false, 7 },
	{ -1, GRACE, 0x1d, false, -1 }, { 8, NIC, -1, false, 8 },
};
/* 0 root, 1 up, 2 port, 3 NIC, 4 port, 5 up, 6 port, 7 GPU */
static const struct part bare[] = {
	{ -1, XEON, 0x00, false, -1 },	{ 0, SWITCH, -1, false, -1 },
	{ 1, SWITCH, 0x00, false, -1 }, { 2, NIC, -1, false, 3 },
	{ 1, SWITCH, 0x00, false, -1 }, { 4, SWITCH, -1, false, -1 },
	{ 5, SWITCH, 0x00, false, -1 }, { 6, GPU, -1, false, 3 },
};
static const struct part virt[] = {
	{ -1, XEON, 0x1d, false, -1 },	{ 0, SWITCH, -1, false, -1 },
	{ 1, SWITCH, 0x5d, false, -1 }, { 2, NIC, -1, true, 3 },
	{ 1, SWITCH, 0x1d, false, -1 }, { 4, SWITCH, -1, false, -1 },
	{ 5, SWITCH, 0x1d, false, -1 }, { 6, GPU, -1, true, 4 },
};
/* 0 root, 1 GPU; 2 root, 3 NIC; 4 root, 5 GPU */
static const struct part numa[] = {
	{ -1, VERA, 0x15, false, -1 }, { 0, GPU, -1, false, 1 },      { -1, VERA, 0x15, false, -1 },
	{ 2, NIC9, -1, false, 2 },     { -1, VERA, 0x15, false, -1 }, { 4, GPU, -1, false, 3 },
};

struct machine {
	struct hw_inventory inv;
	struct topo *topo;
	struct facts f;
};

static void add_function(struct machine *m, const struct part *p, int i)
{
	struct hw_pci *pci = &m->inv.pci[i];
	bool bridge = p->ids == GRACE || p->ids == VERA || p->ids == XEON || p->ids == SWITCH;
	bool nic = p->ids == NIC || p->ids == NIC9;

	*pci = hw_pci_unknown((struct bdf) { .bus = (uint8_t)i });
	pci->vendor = (uint16_t)(p->ids >> 16);
	pci->device = (uint16_t)p->ids;
	pci->parent = p->parent;
	pci->class_code = bridge ? 0x060400 : nic ? 0x020700 : p->ids == GPU ? 0x030200 : 0x088000;
	if (p->ids == GPU)
		m->inv.gpu[m->inv.n_gpu++] = (struct hw_gpu) { .pci = i, .vendor = "NVIDIA" };
	m->f.pci[i] = (struct facts_pci) { .config = FACTS_CONFIG_READ,
					   .config_ext = FACTS_CONFIG_READ,
					   .iommu_group = p->group,
					   .port_type = bridge ? FACTS_PORT_DOWNSTREAM
							       : FACTS_PORT_ENDPOINT,
					   .has_acs = p->acs >= 0,
					   .acs_ctrl = (uint16_t)(p->acs < 0 ? 0 : p->acs),
					   .has_ats = p->ats };
}

static void machine_of(struct machine *m, const struct part *parts, size_t n)
{
	struct arena *arena = arena_new(4096);
	int *nic = arena_array(arena, n, sizeof(*nic));

	*m = (struct machine) { .inv = { .arena = arena } };
	m->f = (struct facts) { .arena = arena, .inv = &m->inv, .nic = nic };
	m->f.host =
		(struct facts_host) { .cmdline = "quiet", .kernel_major = 6, .kernel_minor = 11 };
	m->inv.pci = arena_array(arena, n, sizeof(*m->inv.pci));
	m->inv.gpu = arena_array(arena, n, sizeof(*m->inv.gpu));
	m->f.pci = arena_array(arena, n, sizeof(*m->f.pci));
	m->inv.n_pci = n;
	for (int i = 0; i < (int)n; i++) {
		add_function(m, &parts[i], i);
		if (hw_is_nic(&m->inv.pci[i]))
			nic[m->f.n_nic++] = i;
	}
	m->f.topo = m->topo = topo_new(&m->inv, NULL);
}

static void machine_done(struct machine *m)
{
	topo_free(m->topo);
	arena_free(m->f.arena);
}
#define _cleanup_machine_ __attribute__((cleanup(machine_done)))

static void types_are_told_apart_by_the_tree(void **state)
{
	static const struct {
		const struct part *parts;
		size_t n;
		enum doctor_board_type type;
		size_t complexes;
	} boards[] = {
		{ dma, ARRAY_LEN(dma), DOCTOR_BOARD_DMA, 1 },
		{ bare, ARRAY_LEN(bare), DOCTOR_BOARD_INLINE, 1 },
		{ virt, ARRAY_LEN(virt), DOCTOR_BOARD_INLINE, 1 },
		{ numa, ARRAY_LEN(numa), DOCTOR_BOARD_NUMA, 0 },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(boards); i++) {
		_cleanup_machine_ struct machine m;
		struct doctor_board b;

		machine_of(&m, boards[i].parts, boards[i].n);
		b = doctor_board_of(&m.f);
		assert_int_equal(b.type, boards[i].type);
		assert_int_equal(b.n_complex, boards[i].complexes);
		assert_string_equal(doctor_board_of_gpus(&m.inv), doctor_board_name(b.type));
		m.inv.hypervisor = true;
		assert_int_equal(doctor_board_of(&m.f).type, DOCTOR_BOARD_OTHER);
		assert_null(doctor_board_of_gpus(&m.inv));
	}
}

/* --- verdicts --- */

#define CHANGE(name, ...)                                                                          \
	static void name(struct machine *m)                                                        \
	{                                                                                          \
		__VA_ARGS__                                                                        \
	}

CHANGE(nothing, (void)m;)
CHANGE(direct_port_redirects, m->f.pci[2].acs_ctrl = 0x1d;)
CHANGE(gpu_port_redirects_completions, m->f.pci[4].acs_ctrl = 0x1d;)
CHANGE(root_validates, m->f.pci[0].acs_ctrl = 0x1d;)
CHANGE(nic_root_off, m->f.pci[8].acs_ctrl = 0;)
CHANGE(old_kernel, direct_port_redirects(m); m->f.host.kernel_minor = 10;)
CHANGE(despite, direct_port_redirects(m);
       m->f.host.cmdline = "pci=config_acs=xx110x1@0000:02:00.0";)
CHANGE(port_hidden, m->f.pci[2].has_acs = false; m->f.pci[2].config_ext = FACTS_CONFIG_SHORT;)
CHANGE(port_without, m->f.pci[2].has_acs = false;)
CHANGE(groups_apart, m->f.pci[7].iommu_group = 9;)
CHANGE(groups_none, m->f.pci[3].iommu_group = m->f.pci[7].iommu_group = FACTS_GROUP_NONE;)
CHANGE(groups_one, m->f.pci[3].iommu_group = m->f.pci[7].iommu_group = 5;)
CHANGE(group_hidden, m->f.pci[7].iommu_group = FACTS_GROUP_UNKNOWN;)
CHANGE(second_gpu, m->inv.pci[9].parent = 6; m->inv.pci[9].vendor = 0x10de;
       m->inv.pci[9].class_code = 0x030200;
       m->inv.gpu[m->inv.n_gpu++] = (struct hw_gpu) { .pci = 9, .vendor = "NVIDIA" };)
CHANGE(switch_of_another_maker, m->inv.pci[5].vendor = 0x1000;)
CHANGE(bare_redirects, m->f.pci[4].acs_ctrl = 0x1d;)
CHANGE(bare_root_validates, m->f.pci[0].acs_ctrl = 1;)
CHANGE(nic_hidden, m->f.pci[3].config_ext = FACTS_CONFIG_SHORT;)
CHANGE(virt_without_dt, m->f.pci[2].acs_ctrl = 0x1d;)
CHANGE(vera_isolated_wrong, m->f.pci[0].acs_ctrl = 0;)
CHANGE(nic_ats, m->f.pci[3].has_ats = true;)
CHANGE(bluefield, m->inv.pci[3].device = 0xa2dc; nic_ats(m);
       m->f.pci[3].iommu_group = m->f.pci[1].iommu_group;)
CHANGE(numa_shared, m->f.pci[3].iommu_group = 1;)
CHANGE(numa_none, m->f.pci[1].iommu_group = FACTS_GROUP_NONE;)
CHANGE(translated,
       for (size_t i = 0; i < m->inv.n_pci; i++) m->f.pci[i].iommu = FACTS_IOMMU_DMA_FQ;)
CHANGE(passthrough,
       for (size_t i = 0; i < m->inv.n_pci; i++) m->f.pci[i].iommu = FACTS_IOMMU_IDENTITY;)
CHANGE(numa_hidden, m->f.pci[1].iommu_group = FACTS_GROUP_UNKNOWN;)

#define SILENT	  (-1)
#define OF(parts) parts, ARRAY_LEN(parts)
static const struct {
	const char *check;
	const struct part *parts;
	size_t n;
	void (*change)(struct machine *m);
	int verdict;
	const char *words, *arg; /* arg: kernel_arg of the finding; NULL: none */
} cases[] = {
	{ "acs", OF(dma), nothing, DIAGNOSIS_PASS, "of a board of type DMA: 5", NULL },
	{ "acs", OF(dma), direct_port_redirects, DIAGNOSIS_WARN,
	  "has ACS SV RR CR UF (0x001d), and on a board of type DMA it needs SV CR UF (0x0019, mask xx110x1)",
	  "pci=config_acs=xx110x1@0000:02:00.0" },
	{ "acs", OF(dma), gpu_port_redirects_completions, DIAGNOSIS_WARN, "needs SV RR UF",
	  "pci=config_acs=xx101x1@0000:04:00.0" },
	{ "acs", OF(dma), root_validates, DIAGNOSIS_WARN, "needs RR CR UF",
	  "pci=config_acs=xx111x0@0000:00:00.0" },
	{ "acs", OF(dma), nic_root_off, DIAGNOSIS_WARN, "has ACS none",
	  "pci=config_acs=xx111x1@0000:08:00.0" },
	{ "acs", OF(dma), old_kernel, DIAGNOSIS_WARN, "needs SV CR UF", NULL },
	{ "acs", OF(dma), despite, DIAGNOSIS_WARN, "needs SV CR UF", NULL },
	{ "acs", OF(dma), port_hidden, DIAGNOSIS_UNKNOWN, "CAP_SYS_ADMIN", NULL },
	{ "acs", OF(dma), port_without, DIAGNOSIS_WARN, "has no ACS", NULL },
	{ "acs", OF(dma), second_gpu, DIAGNOSIS_WARN, "type DMA it needs SV RR CR UF",
	  "pci=config_acs=xx111x1@0000:00:00.0" },
	{ "acs", OF(dma), switch_of_another_maker, DIAGNOSIS_WARN, NULL,
	  "pci=config_acs=xx111x1@0000:00:00.0" },
	{ "iommu-groups", OF(dma), nothing, DIAGNOSIS_PASS, "right IOMMU groups: 1", NULL },
	{ "iommu-groups", OF(dma), groups_apart, DIAGNOSIS_WARN,
	  "is in group 9 and its data direct function 0000:03:00.0 in group 7", NULL },
	{ "iommu-groups", OF(dma), groups_none, DIAGNOSIS_WARN, "in no group", NULL },
	{ "iommu-groups", OF(dma), group_hidden, DIAGNOSIS_UNKNOWN, "not visible", NULL },
	{ "ats", OF(dma), nothing, SILENT, NULL, NULL },
	{ "acs", OF(bare), nothing, DIAGNOSIS_PASS, "of a board of type inline: 4", NULL },
	{ "acs", OF(bare), bare_redirects, DIAGNOSIS_WARN, "type inline it needs none",
	  "pci=config_acs=xx000x0@0000:04:00.0" },
	{ "acs", OF(bare), bare_root_validates, DIAGNOSIS_WARN, "has ACS SV",
	  "pci=config_acs=xx000x0@0000:00:00.0" },
	{ "acs", OF(bare), nic_hidden, DIAGNOSIS_UNKNOWN, "have ATS is not visible", NULL },
	{ "acs", OF(bare), port_without, DIAGNOSIS_PASS, "type inline: 3", NULL },
	{ "iommu-groups", OF(bare), nothing, DIAGNOSIS_PASS, "groups: 1", NULL },
	{ "iommu-groups", OF(bare), groups_none, DIAGNOSIS_PASS, "groups: 1", NULL },
	{ "iommu-groups", OF(bare), groups_apart, DIAGNOSIS_WARN, "its NIC 0000:03:00.0", NULL },
	{ "iommu-groups", OF(bare), nic_hidden, SILENT, NULL, NULL },
	{ "ats", OF(bare), nothing, DIAGNOSIS_PASS, "bare metal", NULL },
	{ "ats", OF(bare), nic_hidden, DIAGNOSIS_UNKNOWN, "not visible of 1", NULL },
	{ "acs", OF(virt), nothing, DIAGNOSIS_PASS, "of a board of type inline: 4", NULL },
	{ "acs", OF(virt), virt_without_dt, DIAGNOSIS_WARN, "mask 1x111x1",
	  "pci=config_acs=1x111x1@0000:02:00.0" },
	{ "iommu-groups", OF(virt), nothing, DIAGNOSIS_PASS, "groups: 1", NULL },
	{ "iommu-groups", OF(virt), groups_one, DIAGNOSIS_WARN, "is in group 5", NULL },
	{ "iommu-groups", OF(virt), groups_none, DIAGNOSIS_WARN, "no group", NULL },
	{ "ats", OF(virt), nothing, DIAGNOSIS_PASS, "virtual machines", NULL },
	{ "acs", OF(numa), nothing, DIAGNOSIS_PASS, "of a board of type NUMA: 3", NULL },
	{ "acs", OF(numa), vera_isolated_wrong, DIAGNOSIS_WARN, "mask xx101x1",
	  "pci=config_acs=xx101x1@0000:00:00.0" },
	{ "iommu-groups", OF(numa), nothing, DIAGNOSIS_PASS, "of their own: 3", NULL },
	{ "iommu-groups", OF(numa), numa_shared, DIAGNOSIS_WARN, "0000:03:00.0 shares group 1",
	  NULL },
	{ "iommu-groups", OF(numa), numa_none, DIAGNOSIS_WARN, "no IOMMU group", NULL },
	{ "iommu-groups", OF(numa), numa_hidden, DIAGNOSIS_UNKNOWN, "not visible", NULL },
	{ "iommu", OF(numa), translated, DIAGNOSIS_PASS, "type NUMA: 3", NULL },
	{ "iommu", OF(numa), passthrough, DIAGNOSIS_PASS, "identity", NULL },
	{ "iommu", OF(bare), translated, DIAGNOSIS_WARN, "DMA-FQ", "iommu=pt" },
	{ "ats", OF(numa), nothing, DIAGNOSIS_PASS, "None of the 1", NULL },
	{ "ats", OF(numa), nic_ats, DIAGNOSIS_WARN, "has ATS", NULL },
	{ "ats", OF(numa), bluefield, SILENT, NULL, NULL },
	{ "iommu-groups", OF(numa), bluefield, DIAGNOSIS_PASS, "of their own: 2", NULL },
	{ "ats", OF(numa), nic_hidden, DIAGNOSIS_UNKNOWN, "CAP_SYS_ADMIN", NULL },
};

static const struct diagnosis_finding *find(const struct diagnosis *r, int verdict,
					    const char *words)
{
	for (size_t i = 0; i < diagnosis_n(r); i++) {
		const struct diagnosis_finding *f = diagnosis_at(r, i);

		if ((int)f->verdict == verdict && (!words || strstr(f->sentence, words)))
			return f;
	}
	return NULL;
}

static const struct diagnosis_check *check_of(const char *id)
{
	for (size_t i = 0; i < doctor_n_checks(); i++) {
		if (!strcmp(doctor_check_at(i)->id, id))
			return doctor_check_at(i);
	}
	fail_msg("there is no check %s", id);
	return NULL;
}

static void every_type_has_its_own_rules(void **state)
{
	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		_cleanup_machine_ struct machine m;
		_cleanup_diagnosis_ struct diagnosis *r = NULL;
		const struct diagnosis_finding *found;
		struct err err = { 0 };
		int verdict;

		machine_of(&m, cases[i].parts, cases[i].n);
		cases[i].change(&m);
		assert_int_equal(doctor_run(&m.f, cases[i].check, &r, &err), 0);
		verdict = diagnosis_verdict_of(r, check_of(cases[i].check));
		found = find(r, cases[i].verdict, cases[i].words);
		if (verdict == cases[i].verdict && (verdict < 0 || found) &&
		    (!found || str_eq(found->kernel_arg, cases[i].arg)))
			continue;
		for (size_t k = 0; k < diagnosis_n(r); k++)
			print_error("  %s %s %s\n",
				    diagnosis_verdict_name(diagnosis_at(r, k)->verdict),
				    diagnosis_at(r, k)->sentence, diagnosis_at(r, k)->kernel_arg);
		fail_msg("case %zu: %s is not '%s'", i, cases[i].check,
			 cases[i].words ? cases[i].words : "");
	}
}

/* --- the manifest --- */

static void expect_manifest(const struct machine *m, const char *words)
{
	_cleanup_diagnosis_ struct diagnosis *r = NULL;
	_cleanup_strbuf_ struct strbuf out = STRBUF_INIT;
	struct err err = { 0 };

	assert_int_equal(doctor_run(&m->f, "acs,iommu-groups,ats", &r, &err), 0);
	assert_int_equal(diagnosis_manifest(&m->f, r, DIAGNOSIS_TALOS, NULL, &out), words != NULL);
	if (words && !strstr(strbuf_str(&out), words))
		fail_msg("no '%s' in:\n%s", words, strbuf_str(&out));
}

static void the_manifest_has_all_masks_in_one_argument(void **state)
{
	_cleanup_machine_ struct machine m;

	(void)state;
	machine_of(&m, dma, ARRAY_LEN(dma));
	expect_manifest(&m, NULL);
	direct_port_redirects(&m);
	expect_manifest(&m, "- 'pci=config_acs=xx110x1@0000:02:00.0'\n");
	gpu_port_redirects_completions(&m);
	expect_manifest(&m, "- 'pci=\"config_acs=xx110x1@0000:02:00.0;xx101x1@0000:04:00.0\"'\n");
	m.f.host.cmdline = "pci=realloc,config_acs=xx111x0@0000:00:00.0;0x@pci:1000:c030";
	expect_manifest(
		&m,
		"'pci=\"config_acs=xx111x0@0000:00:00.0;0x@pci:1000:c030;xx110x1@0000:02:00.0;xx101x1@0000:04:00.0\"'\n");
	m.f.host.cmdline = "pci=config_acs=xx000x0@0000:02:00.0";
	expect_manifest(&m, "- 'pci=\"config_acs=xx110x1@0000:02:00.0;xx101x1@0000:04:00.0\"'\n");
	m.f.host.cmdline = "pci=config_acs=$(reboot)";
	expect_manifest(&m, "- 'pci=\"config_acs=xx110x1@0000:02:00.0;xx101x1@0000:04:00.0\"'\n");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(types_are_told_apart_by_the_tree),
		cmocka_unit_test(every_type_has_its_own_rules),
		cmocka_unit_test(the_manifest_has_all_masks_in_one_argument),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
