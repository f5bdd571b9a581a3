/* What is read of a machine below a root: configuration space of any shape, groups, modules, the
 * command line. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "base/arena.h"
#include "base/mem.h"
#include "base/str.h"
#include "facts/gather.h"
#include "facts/net.h"
#include "hw/inventory.h"
#include "support/slow.h"
#include "support/fixture.h"
#include "sysroot/sysroot.h"
#include "topo/topo.h"

#define ROOT "sys/devices/pci0000:10/"
#define GPU  "0000:11:00.0"

struct machine {
	struct sysroot *root;
	struct hw_inventory *inv;
	struct topo *topo;
	struct facts *f;
};

static void machine_of(struct machine *m, const char *text)
{
	m->root = fixture_text(text);
	m->inv = fixture_discover(m->root);
	m->topo = topo_new(m->inv, NULL);
	m->f = facts_gather(m->root, m->inv, m->topo, FACTS_OF_HERE);
}

static void machine_done(struct machine *m)
{
	facts_free(m->f);
	topo_free(m->topo);
	hw_inventory_free(m->inv);
	fixture_close(m->root);
}
#define _cleanup_machine_ __attribute__((cleanup(machine_done)))

/* A GPU below a root port; more lines after it. */
static const char lone_gpu[] =
	"l sys/bus/pci/devices/0000:10:01.0 -> ../../../devices/pci0000:10/0000:10:01.0\n"
	"l sys/bus/pci/devices/" GPU " -> ../../../devices/pci0000:10/0000:10:01.0/" GPU "\n"
	"f " ROOT "0000:10:01.0/class = 0x060400\\n\n"
	"f " ROOT "0000:10:01.0/vendor = 0x8086\\n\n"
	"f " ROOT "0000:10:01.0/device = 0x352a\\n\n"
	"f " ROOT "0000:10:01.0/" GPU "/class = 0x030200\\n\n"
	"f " ROOT "0000:10:01.0/" GPU "/vendor = 0x10de\\n\n"
	"f " ROOT "0000:10:01.0/" GPU "/device = 0x2330\\n\n";

static void machine_with(struct machine *m, const char *more)
{
	_cleanup_free_ char *text = xasprintf("%s%s", lone_gpu, more);

	machine_of(m, text);
}

static const struct facts_pci *gpu(const struct machine *m)
{
	assert_int_equal(m->inv->n_gpu, 1);
	return &m->f->pci[m->inv->gpu[0].pci];
}

/* --- configuration space --- */

struct space {
	uint8_t bytes[4096];
	size_t len;
};

static void put(struct space *s, unsigned at, uint32_t value, unsigned size)
{
	for (unsigned i = 0; i < size; i++)
		s->bytes[at + i] = (uint8_t)(value >> 8 * i);
}

/* MSI at 40, PCIe at 60; AER at 100, ATS at 140, ACS at 1b0. */
static void usual(struct space *s)
{
	*s = (struct space) { .len = 4096 };
	put(s, 0x00, 0x233010de, 4);
	put(s, 0x06, 0x0010, 2);
	put(s, 0x34, 0x40, 1);
	put(s, 0x40, 0x6005, 2);
	put(s, 0x60, 0x0010, 2);
	put(s, 0x62, 0x0062, 2);
	put(s, 0x64, 0x8002, 2);
	put(s, 0x68, 0x583f, 2);
	put(s, 0x100, 0x14020001, 4);
	put(s, 0x140, 0x1b01000f, 4);
	put(s, 0x144, 0x80000020, 4);
	put(s, 0x1b0, 0x0001000d, 4);
	put(s, 0x1b4, 0x001d005f, 4);
}

static void machine_of_space(struct machine *m, const struct space *s)
{
	_cleanup_strbuf_ struct strbuf line = STRBUF_INIT;

	strbuf_puts(&line, "x " ROOT "0000:10:01.0/" GPU "/config = ");
	for (size_t i = 0; i < s->len; i++)
		strbuf_printf(&line, "%02x", s->bytes[i]);
	strbuf_putc(&line, '\n');
	machine_with(m, strbuf_str(&line));
}

static void reads_the_capabilities(void **state)
{
	_cleanup_machine_ struct machine m;
	struct space s;

	(void)state;
	usual(&s);
	machine_of_space(&m, &s);
	assert_int_equal(gpu(&m)->config, FACTS_CONFIG_READ);
	assert_int_equal(gpu(&m)->config_ext, FACTS_CONFIG_READ);
	assert_int_equal(gpu(&m)->port_type, FACTS_PORT_DOWNSTREAM);
	assert_int_equal(gpu(&m)->devctl, 0x583f);
	assert_true(gpu(&m)->has_acs && gpu(&m)->has_ats);
	assert_int_equal(gpu(&m)->acs_ctrl, 0x001d);
	assert_int_equal(gpu(&m)->ats_ctrl, 0x8000);
	assert_int_equal(facts_mps(0x583f), 256);
	assert_int_equal(facts_mrrs(0x583f), 4096);
}

/* What an unprivileged reader, a machine without ECAM, and a damaged file give. */
static void what_is_cut_is_unknown_and_never_off(void **state)
{
	static const struct {
		size_t len;
		enum facts_config classic, extended;
		bool acs;
	} cases[] = {
		{ 0, FACTS_CONFIG_NONE, FACTS_CONFIG_NONE, false },
		{ 3, FACTS_CONFIG_SHORT, FACTS_CONFIG_SHORT, false },
		{ 64, FACTS_CONFIG_SHORT, FACTS_CONFIG_SHORT, false },
		{ 65, FACTS_CONFIG_BROKEN, FACTS_CONFIG_BROKEN, false },
		{ 0x69, FACTS_CONFIG_BROKEN, FACTS_CONFIG_BROKEN, false },
		{ 0x6a, FACTS_CONFIG_READ, FACTS_CONFIG_SHORT, false },
		{ 256, FACTS_CONFIG_READ, FACTS_CONFIG_SHORT, false },
		{ 0x102, FACTS_CONFIG_READ, FACTS_CONFIG_BROKEN, false },
		{ 0x104, FACTS_CONFIG_READ, FACTS_CONFIG_BROKEN, false },
		{ 0x144, FACTS_CONFIG_READ, FACTS_CONFIG_BROKEN, false },
		{ 0x1b0, FACTS_CONFIG_READ, FACTS_CONFIG_BROKEN, false },
		{ 0x1b4, FACTS_CONFIG_READ, FACTS_CONFIG_BROKEN, false },
		{ 0x1b7, FACTS_CONFIG_READ, FACTS_CONFIG_BROKEN, false },
		{ 0x1b8, FACTS_CONFIG_READ, FACTS_CONFIG_READ, true },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		_cleanup_machine_ struct machine m;
		struct space s;

		usual(&s);
		s.len = cases[i].len;
		machine_of_space(&m, &s);
		assert_int_equal(gpu(&m)->config, cases[i].classic);
		assert_int_equal(gpu(&m)->config_ext, cases[i].extended);
		assert_int_equal(gpu(&m)->has_acs, cases[i].acs);
	}
}

struct damage {
	unsigned at, size;
	uint32_t value;
	enum facts_config classic, extended;
};

static void lists_that_lead_nowhere_end(void **state)
{
	static const struct damage cases[] = {
		{ 0x00, 4, 0xffffffff, FACTS_CONFIG_READ, FACTS_CONFIG_READ }, /* a VF */
		{ 0x00, 4, 0x00000000, FACTS_CONFIG_BROKEN, FACTS_CONFIG_BROKEN },
		{ 0x04, 4, 0xffffffff, FACTS_CONFIG_BROKEN,
		  FACTS_CONFIG_BROKEN }, /* it does not answer */
		{ 0x41, 1, 0x40, FACTS_CONFIG_BROKEN, FACTS_CONFIG_BROKEN }, /* a ring of one */
		{ 0x61, 1, 0x40, FACTS_CONFIG_BROKEN, FACTS_CONFIG_BROKEN }, /* a ring of two */
		{ 0x34, 1, 0x10, FACTS_CONFIG_BROKEN, FACTS_CONFIG_BROKEN }, /* into the header */
		{ 0x100, 4, 0xffffffff, FACTS_CONFIG_READ, FACTS_CONFIG_BROKEN },
		{ 0x100, 4, 0x10020001, FACTS_CONFIG_READ,
		  FACTS_CONFIG_BROKEN }, /* a ring of one */
		{ 0x1b0, 4, 0x1401000d, FACTS_CONFIG_READ,
		  FACTS_CONFIG_BROKEN }, /* a ring of two */
		{ 0x140, 4, 0x0401000f, FACTS_CONFIG_READ,
		  FACTS_CONFIG_BROKEN }, /* into the classic part */
		{ 0x140, 4, 0xffc1000f, FACTS_CONFIG_READ,
		  FACTS_CONFIG_READ }, /* a last one, empty */
		{ 0x100, 4, 0x00000000, FACTS_CONFIG_READ, FACTS_CONFIG_READ }, /* no list */
		{ 0x06, 2, 0x0000, FACTS_CONFIG_READ, FACTS_CONFIG_READ },	/* no list */
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		_cleanup_machine_ struct machine m;
		struct space s;

		usual(&s);
		put(&s, cases[i].at, cases[i].value, cases[i].size);
		machine_of_space(&m, &s);
		assert_int_equal(gpu(&m)->config, cases[i].classic);
		assert_int_equal(gpu(&m)->config_ext, cases[i].extended);
	}
}

static void a_function_without_pcie_has_no_control_word(void **state)
{
	_cleanup_machine_ struct machine m;
	struct space s;

	(void)state;
	usual(&s);
	put(&s, 0x06, 0, 2);
	machine_of_space(&m, &s);
	assert_int_equal(gpu(&m)->devctl, -1);
	assert_int_equal(gpu(&m)->port_type, -1);
}

/* --- groups --- */

static enum facts_iommu group_of(const char *lines)
{
	_cleanup_machine_ struct machine m;

	machine_with(&m, lines);
	return gpu(&m)->iommu;
}

#define GROUP_LINK                                                                                 \
	"l " ROOT "0000:10:01.0/" GPU "/iommu_group -> ../../../../kernel/iommu_groups/7\n"
#define TYPE(t)                                                                                    \
	GROUP_LINK                                                                                 \
	"f sys/kernel/iommu_groups/7/type = " t "\\n\n"

static void reads_the_type_of_the_group(void **state)
{
	(void)state;
	assert_int_equal(group_of(TYPE("identity")), FACTS_IOMMU_IDENTITY);
	assert_int_equal(group_of(TYPE("DMA")), FACTS_IOMMU_DMA);
	assert_int_equal(group_of(TYPE("DMA-FQ")), FACTS_IOMMU_DMA_FQ);
	assert_int_equal(group_of(TYPE("blocked")), FACTS_IOMMU_BLOCKED);
	assert_int_equal(group_of(TYPE("auto")), FACTS_IOMMU_OTHER);
	assert_int_equal(group_of(TYPE("nonsense")), FACTS_IOMMU_UNKNOWN);
	assert_int_equal(group_of(TYPE("")), FACTS_IOMMU_UNKNOWN);
	assert_int_equal(
		group_of(TYPE("a type of an absurd length that no kernel would ever print here")),
		FACTS_IOMMU_UNKNOWN);
	assert_int_equal(group_of(GROUP_LINK), FACTS_IOMMU_UNKNOWN);
}

static void reads_the_number_of_the_group(void **state)
{
	_cleanup_machine_ struct machine in, none, hidden;

	(void)state;
	machine_with(&in, TYPE("DMA"));
	machine_with(&none, "d sys/kernel/iommu_groups\n");
	machine_with(&hidden, "");
	assert_int_equal(gpu(&in)->iommu_group, 7);
	assert_int_equal(gpu(&none)->iommu_group, FACTS_GROUP_NONE);
	assert_int_equal(gpu(&hidden)->iommu_group, FACTS_GROUP_UNKNOWN);
}

static void no_group_is_no_iommu_only_where_groups_would_be_seen(void **state)
{
	(void)state;
	assert_int_equal(group_of("d sys/kernel/iommu_groups\n"), FACTS_IOMMU_NONE);
	assert_int_equal(group_of("d sys/class/iommu\n"), FACTS_IOMMU_NONE);
	assert_int_equal(group_of("d sys/kernel\n"), FACTS_IOMMU_UNKNOWN);
}

/* --- host --- */

static void an_empty_root_is_all_unknown(void **state)
{
	_cleanup_machine_ struct machine m;
	const struct facts_host *h;

	(void)state;
	machine_of(&m, "");
	h = &m.f->host;
	assert_null(h->cmdline);
	assert_null(h->kernel);
	assert_null(h->iommu_kind);
	assert_int_equal(h->kernel_major, -1);
	assert_int_equal(h->iommu_units, -1);
	assert_int_equal(h->iommu_groups, -1);
	assert_int_equal(h->peermem, FACTS_UNKNOWN);
	assert_int_equal(h->nvidia_open, FACTS_UNKNOWN);
	assert_int_equal(h->nvidia_fs, FACTS_UNKNOWN);
	assert_int_equal(h->amd_peer, FACTS_UNKNOWN);
	assert_int_equal(h->numa_balancing, -1);
	assert_int_equal(m.f->container, FACTS_UNKNOWN);
	assert_false(m.f->live);
	assert_int_equal(m.f->n_nic, 0);
}

/* Its VFs are no program's, its limits no job's: what is judged there is the node. */
static void the_container_of_railmate_itself_is_not_judged(void **state)
{
	static const struct {
		const char *first;
		enum facts_of of;
		enum facts_answer container;
	} rows[] = {
		{ "python3", FACTS_OF_HERE, FACTS_UNKNOWN },
		{ "railmated", FACTS_OF_HERE, FACTS_NO },
		{ "railmatectl", FACTS_OF_HERE, FACTS_NO },
		{ "python3", FACTS_OF_NODE, FACTS_NO },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		_cleanup_free_ char *text = xasprintf("f proc/1/comm = %s\\n\n", rows[i].first);
		_cleanup_machine_ struct machine m;

		machine_of(&m, text);
		facts_free(m.f);
		m.f = facts_gather(m.root, m.inv, m.topo, rows[i].of);
		assert_int_equal(m.f->container, rows[i].container);
		assert_int_equal(m.f->confined, FACTS_UNKNOWN);
	}
}

static void an_absent_module_means_something_where_modules_are_seen(void **state)
{
	_cleanup_machine_ struct machine m;

	(void)state;
	machine_with(&m, "f sys/module/nvidia/version = 550.1\\n\n");
	assert_int_equal(m.f->host.peermem, FACTS_NO);
	assert_int_equal(m.f->host.nvidia_fs, FACTS_NO);
}

/* --- windows in memory --- */

#define BAR(start, end, flags) "0x00000" start " 0x00000" end " 0x00000000" flags "\\n"
#define NO_BAR		       BAR("00000000000", "00000000000", "00000000")

static struct facts_bars bars_of(const char *lines)
{
	_cleanup_free_ char *text =
		xasprintf("f " ROOT "0000:10:01.0/" GPU "/resource = %s\n", lines);
	_cleanup_machine_ struct machine m;

	machine_with(&m, text);
	return gpu(&m)->bars;
}

static void reads_windows_in_memory(void **state)
{
	static const char one[] = BAR("40000000000", "5ffffffffff", "0014220c"),
			  small[] = BAR("000fa000000", "000faffffff", "00040200"),
			  lost[] = BAR("00000000000", "01fffffffff", "2014220c");
	_cleanup_free_ char *three = xasprintf("%s" NO_BAR "%s", small, one),
			    *unset = xasprintf("%s%s", small, lost),
			    *vf = xasprintf("%s" NO_BAR NO_BAR NO_BAR NO_BAR NO_BAR NO_BAR "%s",
					    small, lost);
	struct facts_bars b = bars_of(three);

	(void)state;
	assert_int_equal(b.known, FACTS_YES);
	assert_int_equal(b.largest, 0x20000000000);
	assert_false(b.unset || b.vf_unset);
	assert_true(bars_of(unset).unset);
	assert_false(bars_of(vf).unset);
	assert_true(bars_of(vf).vf_unset);
	assert_int_equal(bars_of("nonsense").known, FACTS_NO);
	assert_int_equal(bars_of("").known, FACTS_NO);
}

static void reads_versions_of_the_driver_and_of_peer_memory(void **state)
{
	_cleanup_machine_ struct machine m, bare;

	(void)state;
	machine_with(
		&m,
		"f proc/driver/nvidia/version = NVRM version: NVIDIA UNIX x86_64 Kernel Module  535.129.03  Thu Oct 19\\n\n"
		"f proc/driver/nvidia/params = EnableMSI: 1\\nNvLinkDisable: 0\\n\n"
		"f sys/module/nvidia_peermem/version = 535.54.03\\n\n"
		"d sys/module/nv_peer_mem\n"
		"d sys/kernel/mm/memory_peers\n");
	assert_string_equal(m.f->host.nvidia_version, "535.129.03");
	assert_string_equal(m.f->host.nvidia_params, "EnableMSI: 1\nNvLinkDisable: 0");
	assert_string_equal(m.f->host.peermem_version, "535.54.03");
	assert_true(m.f->host.old_peermem);
	assert_int_equal(m.f->host.peermem_registered, FACTS_NO);
	machine_with(&bare, "f sys/module/nvidia/version = 1\\n\n"
			    "f proc/kallsyms = 0 T ib_register_client\\n\n");
	assert_null(bare.f->host.nvidia_version);
	assert_int_equal(bare.f->host.rdma_peers, FACTS_NO);
	assert_int_equal(bare.f->host.peermem_registered, FACTS_UNKNOWN);
}

static void reads_what_the_host_tells(void **state)
{
	_cleanup_machine_ struct machine m;
	const struct facts_host *h;

	(void)state;
	machine_with(
		&m,
		"f proc/cmdline = ro iommu=pt\\n\n"
		"f proc/sys/kernel/osrelease = 6.8.0-31-generic\\n\n"
		"f proc/sys/kernel/numa_balancing = 1\\n\n"
		"d sys/class/iommu/dmar0\n"
		"d sys/class/iommu/dmar1\n"
		"f sys/kernel/mm/memory_peers/nv_mem/version = 1\\n\n"
		"d proc/driver/nvidia-fs\n"
		"f proc/driver/nvidia/version = NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  550.1\\n\n");
	h = &m.f->host;
	assert_string_equal(h->cmdline, "ro iommu=pt");
	assert_int_equal(h->kernel_major, 6);
	assert_int_equal(h->kernel_minor, 8);
	assert_int_equal(h->numa_balancing, 1);
	assert_int_equal(h->iommu_units, 2);
	assert_string_equal(h->iommu_kind, "dmar");
	assert_int_equal(h->peermem, FACTS_YES);
	assert_int_equal(h->nvidia_fs, FACTS_YES);
	assert_int_equal(h->nvidia_open, FACTS_YES);
}

static void nonsense_is_unknown(void **state)
{
	_cleanup_machine_ struct machine m;
	const struct facts_host *h;

	(void)state;
	machine_with(
		&m,
		"f proc/sys/kernel/osrelease = six point eight\\n\n"
		"f proc/sys/kernel/numa_balancing = -1\\n\n"
		"d sys/class/iommu/odd0\n"
		"f proc/driver/nvidia/version = NVRM version: NVIDIA UNIX x86_64 Kernel Module\\n\n");
	h = &m.f->host;
	assert_int_equal(h->kernel_major, -1);
	assert_int_equal(h->kernel_minor, -1);
	assert_int_equal(h->numa_balancing, -1);
	assert_string_equal(h->iommu_kind, "other");
	assert_int_equal(h->nvidia_open, FACTS_NO);
}

/* A GPU that is AMD's. */
#define AMD                                                                                             \
	"f " ROOT "0000:10:01.0/0000:12:00.0/class = 0x120000\\n\n"                                     \
	"f " ROOT "0000:10:01.0/0000:12:00.0/vendor = 0x1002\\n\n"                                      \
	"f " ROOT "0000:10:01.0/0000:12:00.0/device = 0x74a1\\n\n"                                      \
	"l sys/bus/pci/devices/0000:12:00.0 -> ../../../devices/pci0000:10/0000:10:01.0/0000:12:00.0\n" \
	"f proc/sys/kernel/osrelease = 6.8.0\\n\n"

static void expect_amd(const char *lines, enum facts_answer peer, enum facts_answer dmabuf)
{
	_cleanup_machine_ struct machine m;

	machine_with(&m, lines);
	assert_int_equal(m.f->host.amd_peer, peer);
	assert_int_equal(m.f->host.amd_dmabuf, dmabuf);
}

static void looks_for_amd_where_rccl_looks(void **state)
{
	(void)state;
	expect_amd(AMD, FACTS_UNKNOWN, FACTS_UNKNOWN);
	expect_amd(AMD "f sys/kernel/mm/memory_peers/amdkfd/version = 1\\n\n", FACTS_YES,
		   FACTS_UNKNOWN);
	expect_amd(
		AMD
		"f proc/kallsyms = 0000000000000000 T ib_register_peer_memory_client\\x09[ib_core]\\n\n",
		FACTS_YES, FACTS_UNKNOWN);
	expect_amd(AMD "f proc/kallsyms = 0000000000000000 T ib_register_client\\x09[ib_core]\\n\n",
		   FACTS_NO, FACTS_UNKNOWN);
	expect_amd(AMD
		   "f boot/config-6.8.0 = CONFIG_DMABUF_MOVE_NOTIFY=y\\nCONFIG_PCI_P2PDMA=y\\n\n",
		   FACTS_UNKNOWN, FACTS_YES);
	expect_amd(
		AMD
		"f boot/config-6.8.0 = CONFIG_DMABUF_MOVE_NOTIFY=y\\n# CONFIG_PCI_P2PDMA is not set\\n\n",
		FACTS_UNKNOWN, FACTS_NO);
	expect_amd(AMD "f boot/config-6.8.0 = CONFIG_PCI_P2PDMA=y\\n\n", FACTS_UNKNOWN, FACTS_NO);
}

/* --- the command line --- */

static const char *value_of(const struct machine *m, const char *cmdline, const char *key)
{
	m->f->host.cmdline = cmdline;
	return facts_boot_value(m->f, key);
}

static void words_of_the_command_line_are_words(void **state)
{
	_cleanup_machine_ struct machine m;

	(void)state;
	machine_of(&m, "");
	assert_null(value_of(&m, NULL, "pci="));
	assert_null(value_of(&m, "", "pci="));
	assert_null(value_of(&m, "  xpci=a ", "pci="));
	assert_null(value_of(&m, "a=\"b pci=c\"", "pci="));
	assert_null(value_of(&m, "pci", "pci="));
	assert_string_equal(value_of(&m, "pci=", "pci="), "");
	assert_string_equal(value_of(&m, "a pci=b,c pci=d", "pci="), "b,c,d");
	assert_string_equal(value_of(&m, "pci=\"b;c\" d", "pci="), "b;c");
	assert_string_equal(value_of(&m, "\"pci=b c\" d", "pci="), "b c");
	assert_string_equal(value_of(&m, "pci=\"never closed", "pci="), "never closed");
	m.f->host.cmdline = "a iommu=pt";
	assert_int_equal(facts_boot_word(&m.f->host, "iommu=pt"), FACTS_YES);
	assert_int_equal(facts_boot_word(&m.f->host, "iommu="), FACTS_NO);
	m.f->host.cmdline = NULL;
	assert_int_equal(facts_boot_word(&m.f->host, "iommu=pt"), FACTS_UNKNOWN);
}

/* --- the running machine --- */

static void this_machine_can_be_looked_at(void **state)
{
	struct arena *arena = arena_new(4096);
	const struct facts_net *net;
	struct hw_inventory *inv;
	struct sysroot *root;

	(void)state;
	if (is_emulated())
		skip();
	assert_int_equal(sysroot_open("/", &root, NULL), 0);
	inv = fixture_discover(root);
	net = facts_net_gather(root, inv, true, arena);
	assert_true(net->memlock >= -1);
	assert_int_not_equal(net->ipc_lock, FACTS_UNKNOWN);
	for (size_t i = 0; i < inv->n_pci; i++) {
		if (hw_is_nic(&inv->pci[i]) && inv->pci[i].netdev)
			assert_true(net->netdev[i].mtu > 0 && net->netdev[i].up != FACTS_UNKNOWN);
	}
	hw_inventory_free(inv);
	sysroot_close(root);
	arena_free(arena);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(reads_the_capabilities),
		cmocka_unit_test(what_is_cut_is_unknown_and_never_off),
		cmocka_unit_test(lists_that_lead_nowhere_end),
		cmocka_unit_test(a_function_without_pcie_has_no_control_word),
		cmocka_unit_test(reads_the_type_of_the_group),
		cmocka_unit_test(reads_the_number_of_the_group),
		cmocka_unit_test(no_group_is_no_iommu_only_where_groups_would_be_seen),
		cmocka_unit_test(an_empty_root_is_all_unknown),
		cmocka_unit_test(the_container_of_railmate_itself_is_not_judged),
		cmocka_unit_test(an_absent_module_means_something_where_modules_are_seen),
		cmocka_unit_test(reads_windows_in_memory),
		cmocka_unit_test(reads_versions_of_the_driver_and_of_peer_memory),
		cmocka_unit_test(reads_what_the_host_tells),
		cmocka_unit_test(nonsense_is_unknown),
		cmocka_unit_test(looks_for_amd_where_rccl_looks),
		cmocka_unit_test(words_of_the_command_line_are_words),
		cmocka_unit_test(this_machine_can_be_looked_at),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
