#include <dirent.h>
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/err.h"
#include "base/mem.h"
#include "base/str.h"
#include "config/config.h"
#include "hw/inventory.h"
#include "pool/node.h"
#include "support/nodes.h"
#include "render/topofile.h"
#include "support/synth.h"
#include "support/testarena.h"
#include "topo/topo.h"
#include "topo/rails.h"

/* --- the text --- */

struct machine {
	struct hw_inventory *inv;
	struct topo *topo;
};

static struct machine machine_of(struct hw_inventory *inv, const struct topo_hints *hints)
{
	return (struct machine) { inv, topo_new(inv, hints) };
}

static void machine_done(struct machine *m)
{
	topo_free(m->topo);
	hw_inventory_free(m->inv);
}
#define _cleanup_machine_ __attribute__((cleanup(machine_done)))

static struct topofile_out render(const struct machine *m, int version)
{
	const struct topofile_in in = { .inv = m->inv, .topo = m->topo, .version = version };
	struct topofile_out out = { 0 };
	struct err err = { 0 };

	if (topofile_render(&in, arena, &out, &err) < 0)
		fail_msg("%s", err.msg);
	return out;
}

static size_t count(const char *text, const char *word)
{
	size_t n = 0;

	for (; (text = strstr(text, word)); text += strlen(word))
		n++;
	return n;
}

static void every_kind_of_machine_has_a_file(void **state)
{
	static const char *const lines[] = {
		"numa:2 root:2 switch:2 gpu:1 pf:1 vf:8",
		"numa:2 switch:1 sub:2 gpu:2 pf:1 upf:1 vf:2",
		"numa:1 switch:2 sub:2 gpu:1 pf:1 vf:4 bcm4",
		"numa:1 switch:2 sub:2 gpu:1 pf:1 vf:4 bcm5",
		"numa:1 switch:2 sub:2 gpu:1 pf:1 vf:4 bcm4 noids",
		"numa:0 gpu:2 pf:1 vf:2; numa:2 switch:1 gpu:1 pf:1 vf:1",
		"numa:2 root:4 gpu:1 pf:1 vf:1 flat nopf hyper",
		"gpu:4",
		"pf:2 vf:3",
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(lines); i++) {
		_cleanup_machine_ struct machine m = machine_of(synth_inventory(lines[i]), NULL);
		struct topofile_out one = render(&m, 1), two = render(&m, 2);

		assert_non_null(strstr(two.text, "<system version=\"2\">\n"));
		assert_string_equal(one.text, render(&m, 1).text);
		assert_int_equal(count(one.text, "class=\"0x030200\""), m.inv->n_gpu);
		assert_int_equal(one.n_notes, 0);
	}
}

static void groups_get_switches_of_invented_addresses(void **state)
{
	struct hw_inventory *inv = synth_inventory("numa:2 root:1 gpu:1 pf:1 vf:1 flat nopf hyper");
	const struct topo_group groups[] = {
		{ &inv->pci[synth_gpu(inv, 0)].bdf, 1, &inv->pci[synth_vf(inv, 0)].bdf, 1, -1 },
		{ &inv->pci[synth_gpu(inv, 1)].bdf, 1, &inv->pci[synth_vf(inv, 1)].bdf, 1, -1 },
	};
	const struct topo_hints hints = { "hints", groups, 2, 32000, 16 };
	_cleanup_machine_ struct machine m = machine_of(inv, &hints);
	const char *text = render(&m, 1).text;

	(void)state;
	assert_int_equal(
		count(text,
		      "busid=\"ffff:ff:01.0\" class=\"0x060400\" link_speed=\"32.0 GT/s PCIe\" link_width=\"16\""),
		1);
	assert_int_equal(count(text, "busid=\"ffff:ff:02.0\""), 1);
	assert_int_equal(count(text, "<cpu "), 2);
}

static void a_rate_limit_is_told_by_name(void **state)
{
	_cleanup_machine_ struct machine m =
		machine_of(synth_inventory("numa:1 switch:1 gpu:1 pf:1 vf:2"), NULL);
	const char *text;

	(void)state;
	m.inv->pci[synth_vf(m.inv, 1)].rate_mbps = 25000;
	text = render(&m, 1).text;
	assert_int_equal(count(text, "<net "), 1);
	assert_non_null(strstr(text, "<net name=\"mlx5_2\" speed=\"25000\"/>"));
	assert_non_null(strstr(
		text,
		"<cpu numaid=\"0\" affinity=\"00ff\" arch=\"x86_64\" vendor=\"GenuineIntel\" familyid=\"6\" modelid=\"143\">"));
}

/* NCCL's ids of EPYC (143, 175) are no families of the kernel; RCCL compares them. */
static void the_family_of_a_cpu_is_what_nccl_computes(void **state)
{
	static const struct {
		int kernel;
		const char *nccl;
	} families[] = { { 6, "6" },	{ 15, "15" },  { 16, "31" }, { 23, "143" },
			 { 25, "175" }, { 26, "191" }, { 7, "7" } };

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(families); i++) {
		_cleanup_machine_ struct machine m =
			machine_of(synth_inventory("numa:1 switch:1 gpu:1 pf:1 vf:1"), NULL);
		const char *text;

		m.inv->cpu.family = families[i].kernel;
		text = render(&m, 1).text;
		assert_int_equal(
			count(text, arena_printf(arena, " familyid=\"%s\" ", families[i].nccl)), 1);
	}
}

static struct hw_inventory *passed_through(bool away)
{
	struct hw_inventory *inv = synth_inventory("numa:1 gpu:1 nopf pf:2 vf:1 flat hyper");
	int vf = synth_vf(inv, 1);

	inv->pci[vf].rate_mbps = 25000;
	inv->pci[vf].driver = "mlx5_core";
	inv->pci[vf].netdev = NULL;
	if (away)
		inv->n_rdma--; /* it is the last one */
	return inv;
}

static void a_device_that_is_in_a_container_stays_in_the_file(void **state)
{
	struct config *cfg = config_default();
	struct node *before = node_new(passed_through(false), cfg, NULL),
		    *now = node_new(passed_through(true), cfg, before), *later;
	struct topofile_in in = topofile_in(before, 1);
	struct topofile_out here, away;

	(void)state;
	assert_int_equal(topofile_render(&in, arena, &here, NULL), 0);
	assert_int_equal(count(here.text, "<net name="), 1);
	in = topofile_in(now, 1);
	assert_int_equal(topofile_render(&in, arena, &away, NULL), 0);
	assert_string_equal(here.text, away.text);
	node_unref(before);
	later = node_new(passed_through(true), cfg, now);
	node_unref(now);
	in = topofile_in(later, 1);
	assert_int_equal(topofile_render(&in, arena, &away, NULL), 0);
	assert_string_equal(here.text, away.text);
	node_unref(later);
	config_free(cfg);
}

static void without_the_processor_there_is_no_file(void **state)
{
	static const struct {
		struct hw_cpu cpu;
		bool known;
	} rows[] = {
		{ { NULL, NULL, -1, -1 }, false },
		{ { "x86_64", "GenuineIntel", -1, -1 }, false },
		{ { "x86_64", "GenuineIntel", 6, -1 }, false },
		{ { "x86_64", NULL, 6, 143 }, false },
		{ { "x86_64", "AuthenticAMD", 25, 17 }, true },
		{ { "arm64", NULL, -1, -1 }, true },
	};
	_cleanup_machine_ struct machine m = machine_of(synth_inventory("gpu:1 pf:1 vf:1"), NULL);
	const struct topofile_in in = { .inv = m.inv, .topo = m.topo, .version = 1 };

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		struct topofile_out out;
		struct err err = { 0 };

		m.inv->cpu = rows[i].cpu;
		assert_int_equal(topofile_render(&in, arena, &out, &err),
				 rows[i].known ? 0 : -ENODATA);
		if (!rows[i].known)
			assert_non_null(
				strstr(err.msg, "/proc/cpuinfo does not name the processor"));
	}
}

/* The PFs' names and rails, two of them. */
static struct topofile_out file_with_rails(enum nccl_rails said, const struct topo_rail_name *names,
					   size_t n)
{
	_cleanup_machine_ struct machine m =
		machine_of(synth_inventory(n == 2 ? "numa:1 root:2 switch:1 gpu:1 pf:1 vf:1"
						  : "numa:1 root:16 switch:1 gpu:1 pf:1 vf:1"),
			   NULL);
	const struct pool_config cfg = { .resource = "rdma/vf", .nccl_rails = said };
	struct topo_rails *rails = topo_rails_new(m.topo, names, n);
	struct pool_dev devs[16];
	const struct pool pool = { &cfg, devs, n };
	const struct node node = {
		.inv = m.inv, .topo = m.topo, .rails = rails, .pools = &pool, .n_pools = 1
	};
	const struct topofile_in in = topofile_in(&node, 1);
	struct topofile_out out = { 0 };

	for (size_t i = 0; i < n; i++) {
		int pci = synth_vf(m.inv, i);

		devs[i] = (struct pool_dev) { .pci = pci, .rdma = hw_find_rdma(m.inv, pci) };
		m.inv->pci[pci].rate_mbps = 25000; /* so that the file names it */
	}
	assert_int_equal(topofile_render(&in, arena, &out, NULL), 0);
	topo_rails_free(rails);
	return out;
}

static const char *with_rails(enum nccl_rails said, const struct topo_rail_name *names)
{
	return file_with_rails(said, names, 2).text;
}

static void more_planes_than_nccl_takes_are_left_out(void **state)
{
	static const size_t counts[] = { 12, 13, 16 };

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(counts); i++) {
		struct topo_rail_name names[16];
		struct topofile_out out;

		for (size_t k = 0; k < counts[i]; k++)
			names[k] = (struct topo_rail_name) { arena_printf(arena, "mlx5_%zu", 2 * k),
							     3, true, (int)k };
		out = file_with_rails(NCCL_RAILS_AUTO, names, counts[i]);
		assert_int_equal(count(out.text, " rail=\"3\""), counts[i]);
		assert_int_equal(count(out.text, " plane="), counts[i] > 12 ? 0 : counts[i]);
		assert_int_equal(out.n_notes, counts[i] > 12);
		if (out.n_notes)
			assert_non_null(strstr(out.notes[0], "more than 12"));
	}
}

/* As in NCCL_IB_HCA: unit/render/nccl_rails. */
static void rails_are_told_where_the_pool_says_so(void **state)
{
	static const struct topo_rail_name rails[] = { { "mlx5_0", 5, false, 0 },
						       { "mlx5_2", 2, false, 0 } };
	static const struct topo_rail_name counted[] = { { "mlx5_0", 7, false, 0 },
							 { "mlx5_2", 7, false, 0 } };
	static const struct topo_rail_name named[] = { { "mlx5_0", 7, true, 1 },
						       { "mlx5_2", 7, true, 0 } };

	(void)state;
	assert_non_null(strstr(with_rails(NCCL_RAILS_AUTO, rails),
			       "<net name=\"mlx5_1\" speed=\"25000\" rail=\"5\"/>"));
	assert_non_null(strstr(with_rails(NCCL_RAILS_AUTO, counted),
			       "<net name=\"mlx5_3\" speed=\"25000\" rail=\"7\" plane=\"1\"/>"));
	assert_non_null(strstr(with_rails(NCCL_RAILS_AUTO, named),
			       "<net name=\"mlx5_3\" speed=\"25000\" rail=\"7\" plane=\"0\"/>"));
	assert_null(strstr(with_rails(NCCL_RAILS_NEVER, counted), "rail="));
}

/* "word,word,…" */
static const char *repeated(size_t n, const char *word)
{
	struct strbuf text = STRBUF_INIT;
	const char *ret;

	for (size_t i = 0; i < n; i++)
		strbuf_printf(&text, "%s%s", i ? "," : "", word);
	ret = arena_strdup(arena, strbuf_str(&text));
	strbuf_done(&text);
	return ret;
}

static void every_node_has_its_cpus(void **state)
{
	_cleanup_machine_ struct machine m =
		machine_of(synth_inventory("numa:1 gpu:1 pf:1 vf:1"), NULL);
	const char *zeros = repeated(20, "00000000"), *ones = repeated(20, "ffffffff");
	const struct {
		const char *cpumap, *affinity;
	} rows[] = {
		{ NULL, "" },
		{ "0000", "0000" },
		{ "0f,ffffffff", "0f,ffffffff" },
		{ zeros, zeros },
		{ arena_printf(arena, "%s,%s", zeros, ones),
		  arena_printf(arena, "%s,%s", repeated(8, "00000000"), ones) },
		{ arena_printf(arena, "%s,%s", ones, zeros),
		  "" }, /* NCCL would cut it, and be wrong */
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		_cleanup_free_ char *want =
			xasprintf("<cpu numaid=\"0\" affinity=\"%s\" ", rows[i].affinity);

		m.inv->numa[0].cpumap = rows[i].cpumap;
		assert_non_null(strstr(render(&m, 1).text, want));
	}
}

/* What a rank would add to its own switches only makes them others than in the other ranks' trees.
 */
static void a_switch_leaves_no_id_to_nccl(void **state)
{
	_cleanup_machine_ struct machine m =
		machine_of(synth_inventory("numa:1 switch:1 gpu:1 pf:1 vf:1"), NULL);
	const char *text;

	(void)state;
	for (size_t i = 0; i < m.inv->n_pci; i++) {
		m.inv->pci[i].vendor = 0x10b5;
		m.inv->pci[i].subvendor = m.inv->pci[i].subdevice = 0;
	}
	text = render(&m, 1).text;
	assert_int_equal(count(text, "class=\"0x060400\""), 1);
	assert_int_equal(count(text, "subsystem_vendor=\"0x0000\" subsystem_device=\"0x0000\""), 1);
}

static void names_with_odd_characters_are_told_or_said(void **state)
{
	_cleanup_machine_ struct machine m = machine_of(synth_inventory("gpu:1 pf:1 vf:1"), NULL);
	int vf = synth_vf(m.inv, 0);
	struct hw_rdma *rdma = &m.inv->rdma[hw_find_rdma(m.inv, vf)];

	(void)state;
	m.inv->pci[vf].rate_mbps = 1000;
	for (int c = 1; c < 256; c++) {
		const char name[] = { 'm', (char)c, 'x', '\0' };
		_cleanup_free_ char *net = xasprintf("<net name=\"%s\" ", name);
		struct topofile_out out;
		bool plain = c >= ' ' && c < 0x7f && !strchr("\"'<>&", c);

		rdma->name = name;
		out = render(&m, 1);
		assert_int_equal(strstr(out.text, net) != NULL, plain);
		assert_int_equal(out.n_notes, plain ? 0 : 1);
	}
}

static void a_name_that_is_too_long_is_left_out(void **state)
{
	_cleanup_machine_ struct machine m = machine_of(synth_inventory("gpu:1 pf:1 vf:1"), NULL);
	int vf = synth_vf(m.inv, 0);
	char name[255] = { 0 };

	(void)state;
	m.inv->pci[vf].rate_mbps = 1000;
	m.inv->rdma[hw_find_rdma(m.inv, vf)].name = name;
	memset(name, 'x', 253);
	assert_int_equal(render(&m, 1).n_notes, 0);
	name[253] = 'x';
	assert_int_equal(render(&m, 1).n_notes, 1);
	assert_null(strstr(render(&m, 1).text, "xxx"));
}

static void a_processor_with_an_odd_name_is_no_file(void **state)
{
	_cleanup_machine_ struct machine m = machine_of(synth_inventory("gpu:1 pf:1 vf:1"), NULL);
	const struct topofile_in in = { .inv = m.inv, .topo = m.topo, .version = 1 };
	static const char *const odd[] = { "", "a\"b", "a<b", "a\tb" };
	struct topofile_out out;

	(void)state;
	m.inv->cpu = (struct hw_cpu) { .arch = "x86_64", .vendor = "a b", .family = 6, .model = 1 };
	assert_int_equal(topofile_render(&in, arena, &out, NULL), 0);
	for (size_t i = 0; i < ARRAY_LEN(odd); i++) {
		m.inv->cpu.vendor = odd[i];
		assert_int_equal(topofile_render(&in, arena, &out, NULL), -ENODATA);
	}
}

static void a_machine_that_is_too_large_is_no_file(void **state)
{
	_cleanup_machine_ struct machine m =
		machine_of(synth_inventory("numa:2 root:4 switch:8 gpu:2 pf:2 vf:1"), NULL);
	const struct topofile_in in = { .inv = m.inv, .topo = m.topo, .version = 1 };
	struct topofile_out out;
	struct err err = { 0 };

	(void)state;
	assert_int_equal(topofile_render(&in, arena, &out, &err), -E2BIG);
	assert_non_null(strstr(err.msg, "199 elements"));
}

static void many_vfs_with_limits_are_too_large_too(void **state)
{
	_cleanup_machine_ struct machine m = machine_of(synth_inventory("gpu:1 pf:2 vf:120"), NULL);
	const struct topofile_in in = { .inv = m.inv, .topo = m.topo, .version = 1 };
	struct topofile_out out;
	struct err err = { 0 };

	(void)state;
	for (size_t i = 0; i < synth_count_vfs(m.inv); i++)
		m.inv->pci[synth_vf(m.inv, i)].rate_mbps = 1000;
	assert_int_equal(topofile_render(&in, arena, &out, &err), -E2BIG);
}

static void a_nic_has_no_more_nets_than_older_releases_take(void **state)
{
	_cleanup_machine_ struct machine m = machine_of(synth_inventory("gpu:1 pf:1 vf:129"), NULL);
	const struct topofile_in in = { .inv = m.inv, .topo = m.topo, .version = 1 };
	struct topofile_out out;
	struct err err = { 0 };

	(void)state;
	for (size_t i = 0; i < 128; i++)
		m.inv->pci[synth_vf(m.inv, i)].rate_mbps = 1000;
	assert_int_equal(topofile_render(&in, arena, &out, &err), 0);
	m.inv->pci[synth_vf(m.inv, 128)].rate_mbps = 1000;
	assert_int_equal(topofile_render(&in, arena, &out, &err), -E2BIG);
	assert_non_null(strstr(err.msg, "or 128 in one"));
}

static void a_machine_of_nothing_is_no_file(void **state)
{
	_cleanup_machine_ struct machine m = machine_of(synth_inventory("numa:1"), NULL);
	const struct topofile_in in = { .inv = m.inv, .topo = m.topo, .version = 1 };
	struct topofile_out out;
	struct err err = { 0 };

	(void)state;
	assert_int_equal(topofile_render(&in, arena, &out, &err), -ENODATA);
}

/* --- when --- */

static const char *why(const struct machine *m, bool needed)
{
	const struct topofile_in in = { .inv = m->inv, .topo = m->topo };
	struct strbuf text = STRBUF_INIT;
	const char *ret;

	assert_int_equal(topofile_needed(&in, &text), needed);
	ret = arena_strdup(arena, strbuf_str(&text));
	strbuf_done(&text);
	return ret;
}

static void a_plain_machine_needs_no_file(void **state)
{
	_cleanup_machine_ struct machine m =
		machine_of(synth_inventory("numa:2 switch:2 gpu:1 pf:1 vf:8"), NULL);

	(void)state;
	assert_string_equal(why(&m, false), "NCCL finds everything of this node by itself");
}

static void hidden_switches_need_a_file_if_they_are_told(void **state)
{
	struct hw_inventory *inv = synth_inventory("gpu:1 pf:1 vf:1 flat nopf hyper");
	const struct topo_group group = { &inv->pci[synth_gpu(inv, 0)].bdf, 1,
					  &inv->pci[synth_vf(inv, 0)].bdf, 1, -1 };
	const struct topo_hints hints = { .source = "hints", .groups = &group, .n_groups = 1 };
	struct topo *without = topo_new(inv, NULL);
	const struct machine plain = { inv, without };
	_cleanup_machine_ struct machine m = machine_of(inv, &hints);

	(void)state;
	for (size_t i = 0; i < inv->n_pci; i++)
		inv->pci[i].bdf.dev = 0; /* their own slots would be a reason, too */
	inv->pci[1].bdf.bus = 1;
	assert_non_null(strstr(why(&m, true), "hides its PCIe switches, and hints describes them"));
	assert_non_null(strstr(why(&plain, false), "no topology hints describe them"));
	topo_free(without);
}

static void each_reason_is_said(void **state)
{
	_cleanup_machine_ struct machine m =
		machine_of(synth_inventory("numa:2 switch:1 gpu:1 pf:1 vf:2"), NULL);
	int vf = synth_vf(m.inv, 0), gpu = synth_gpu(m.inv, 0), top = gpu;

	(void)state;
	m.inv->pci[vf].rate_mbps = 1000;
	assert_non_null(strstr(why(&m, true), "has a rate limit"));
	m.inv->pci[vf].rate_mbps = 0;
	m.inv->pci[gpu].has_root = false;
	assert_non_null(strstr(why(&m, true), "has no way to a root complex"));
	m.inv->pci[gpu].has_root = true;
	m.inv->pci[gpu].numa_above = true; /* NCCL asks the switch */
	why(&m, false);
	while (m.inv->pci[m.inv->pci[top].parent].parent >= 0)
		top = m.inv->pci[top].parent;
	m.inv->pci[top].numa_above = true;
	assert_non_null(strstr(why(&m, true), "and 1 more have no NUMA node by the firmware"));
}

static void vfs_a_bus_further_need_a_file(void **state)
{
	_cleanup_machine_ struct machine m =
		machine_of(synth_inventory("numa:1 switch:1 gpu:1 pf:1 vf:2"), NULL);

	(void)state;
	m.inv->pci[synth_vf(m.inv, 1)].bdf.bus++;
	assert_non_null(strstr(why(&m, true), "is a VF that NCCL does not look for at its PF"));
}

static void one_node_is_told_of_everybody_or_nobody(void **state)
{
	_cleanup_machine_ struct machine nobody =
		machine_of(synth_inventory("numa:0 gpu:1 pf:1 vf:1"), NULL);
	_cleanup_machine_ struct machine some =
		machine_of(synth_inventory("numa:0 gpu:1 pf:1 vf:1; numa:1 gpu:1 pf:1 vf:1"), NULL);

	(void)state;
	why(&nobody, false);
	assert_non_null(strstr(why(&some, true), "no NUMA node by the firmware"));
	assert_int_equal(count(render(&some, 1).text, "<cpu "), 1);
}

/* --- for whom --- */

static const char *name_for(const char *vendor, unsigned profiles, enum topology_file want,
			    int *ret_version)
{
	struct hw_inventory *inv = synth_inventory("numa:1 switch:1 gpu:1 pf:1 vf:1");
	const struct pool_config pool = { .profiles = profiles, .topology_file = want };
	struct topo *topo = topo_new(inv, NULL);
	const struct node node = { .inv = inv, .topo = topo };
	const char *name;

	inv->gpu[0].vendor = vendor;
	name = topofile_name(&node, &pool);
	*ret_version = topofile_wanted(&node, &pool);
	topo_free(topo);
	hw_inventory_free(inv);
	return name;
}

static void a_pool_gets_its_librarys_version(void **state)
{
	static const struct {
		const char *vendor;
		unsigned profiles;
		enum topology_file want;
		int version;
		const char *name;
	} rows[] = {
		{ "NVIDIA", PROFILE_NCCL, TOPOLOGY_FILE_ALWAYS, 1, "topology.xml" },
		{ "NVIDIA", PROFILE_NCCL | PROFILE_RCCL, TOPOLOGY_FILE_ALWAYS, 1, "topology.xml" },
		{ "NVIDIA", PROFILE_RCCL, TOPOLOGY_FILE_ALWAYS, 2, "topology-rccl.xml" },
		{ "AMD", PROFILE_NCCL, TOPOLOGY_FILE_ALWAYS, 2, "topology-rccl.xml" },
		{ "AMD", PROFILE_NCCL | PROFILE_RCCL, TOPOLOGY_FILE_ALWAYS, 2,
		  "topology-rccl.xml" },
		{ "NVIDIA", PROFILE_UCX, TOPOLOGY_FILE_ALWAYS, 0, NULL },
		{ "NVIDIA", 0, TOPOLOGY_FILE_ALWAYS, 0, NULL },
		{ "NVIDIA", PROFILE_NCCL, TOPOLOGY_FILE_NEVER, 0, NULL },
		{ "NVIDIA", PROFILE_NCCL, TOPOLOGY_FILE_AUTO, 0, NULL },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		int version;
		const char *name =
			name_for(rows[i].vendor, rows[i].profiles, rows[i].want, &version);

		assert_int_equal(version, rows[i].version);
		if (rows[i].name)
			assert_string_equal(name, rows[i].name);
		else
			assert_null(name);
	}
}

static void what_cannot_be_made_has_no_name(void **state)
{
	_cleanup_machine_ struct machine m =
		machine_of(synth_inventory("numa:2 root:4 switch:8 gpu:2 pf:2 vf:1"), NULL);
	const struct pool_config pool = { .profiles = PROFILE_NCCL,
					  .topology_file = TOPOLOGY_FILE_ALWAYS };
	const struct node node = { .inv = m.inv, .topo = m.topo };

	(void)state;
	assert_int_equal(topofile_wanted(&node, &pool), 1);
	assert_null(topofile_name(&node, &pool));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_kind_of_machine_has_a_file),
		cmocka_unit_test(groups_get_switches_of_invented_addresses),
		cmocka_unit_test(a_rate_limit_is_told_by_name),
		cmocka_unit_test(the_family_of_a_cpu_is_what_nccl_computes),
		cmocka_unit_test(a_device_that_is_in_a_container_stays_in_the_file),
		cmocka_unit_test(rails_are_told_where_the_pool_says_so),
		cmocka_unit_test(more_planes_than_nccl_takes_are_left_out),
		cmocka_unit_test(without_the_processor_there_is_no_file),
		cmocka_unit_test(every_node_has_its_cpus),
		cmocka_unit_test(a_switch_leaves_no_id_to_nccl),
		cmocka_unit_test(names_with_odd_characters_are_told_or_said),
		cmocka_unit_test(a_name_that_is_too_long_is_left_out),
		cmocka_unit_test(a_processor_with_an_odd_name_is_no_file),
		cmocka_unit_test(a_machine_that_is_too_large_is_no_file),
		cmocka_unit_test(many_vfs_with_limits_are_too_large_too),
		cmocka_unit_test(a_nic_has_no_more_nets_than_older_releases_take),
		cmocka_unit_test(a_machine_of_nothing_is_no_file),
		cmocka_unit_test(a_plain_machine_needs_no_file),
		cmocka_unit_test(hidden_switches_need_a_file_if_they_are_told),
		cmocka_unit_test(each_reason_is_said),
		cmocka_unit_test(vfs_a_bus_further_need_a_file),
		cmocka_unit_test(one_node_is_told_of_everybody_or_nobody),
		cmocka_unit_test(a_pool_gets_its_librarys_version),
		cmocka_unit_test(what_cannot_be_made_has_no_name),
	};

	return cmocka_run_group_tests(tests, arena_set_up, arena_tear_down);
}
