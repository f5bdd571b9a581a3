/* What a machine looks like, and what a broken one does. Once with openat2, once without. */
#include <errno.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/err.h"
#include "base/mem.h"
#include "base/str.h"
#include "discover/discover.h"
#include "support/fixture.h"
#include "sysroot/sysroot-internal.h"

static bool fallback;

struct machine {
	struct sysroot *root;
	struct hw_inventory *inv;
};

static struct machine look_at(const char *text)
{
	struct machine m = { .root = fixture_text(text) };

	if (fallback)
		m.root->has_openat2 = false;
	m.inv = fixture_discover(m.root);
	return m;
}

static void leave(struct machine *m)
{
	hw_inventory_free(m->inv);
	fixture_close(m->root);
}

static const struct hw_pci *function(const struct machine *m, const char *addr)
{
	struct bdf bdf;
	int i;

	assert_int_equal(bdf_parse(addr, &bdf), 0);
	i = hw_find_pci(m->inv, bdf);
	return i < 0 ? NULL : &m->inv->pci[i];
}

static const struct hw_pci *at(const struct machine *m, const char *addr)
{
	const struct hw_pci *f = function(m, addr);

	assert_non_null(f);
	return f;
}

/* The one note there is has all these words in it. */
static void assert_note(const struct machine *m, const char *a, const char *b)
{
	assert_int_equal(m->inv->n_notes, 1);
	assert_non_null(strstr(m->inv->notes[0], a));
	assert_non_null(strstr(m->inv->notes[0], b));
}

#define ROOT		  "sys/devices/pci0000:3a"
#define PORT		  ROOT "/0000:3a:00.0"
#define LINK(addr, below) "l sys/bus/pci/devices/" addr " -> ../../../devices/" below addr "\n"
#define IDS(path, vendor, device, class)                                                           \
	"f " path "/vendor = " vendor "\\n\n"                                                      \
	"f " path "/device = " device "\\n\n"                                                      \
	"f " path "/class = " class "\\n\n"

/* A root port; below it a PF with two VFs, and a GPU. */
#define BRIDGE                                                                                     \
	LINK("0000:3a:00.0", "pci0000:3a/")                                                        \
	IDS(PORT, "0x8086", "0x352a", "0x060400")                                                  \
	"f " PORT "/numa_node = 1\\n\n"
#define PF    PORT "/0000:3b:00.0"
#define VF0   PORT "/0000:3b:00.1"
#define VF1   PORT "/0000:3b:00.2"
#define BELOW "pci0000:3a/0000:3a:00.0/"
#define PF_ONLY                                                                                    \
	LINK("0000:3b:00.0", BELOW)                                                                \
	IDS(PF, "0x15b3", "0x1021", "0x020000")                                                    \
	"f " PF "/sriov_totalvfs = 8\\n\n"                                                         \
	"f " PF "/sriov_numvfs = 2\\n\n"                                                           \
	"f " PF "/numa_node = -1\\n\n"
#define VF_ONLY(path, addr)                                                                        \
	LINK(addr, BELOW) IDS(path, "0x15b3", "0x101e", "0x020000") "f " path "/numa_node = -1\\n\n"
#define PHYSFN(path)	"l " path "/physfn -> ../0000:3b:00.0\n"
#define VIRTFN(n, addr) "l " PF "/virtfn" n " -> ../" addr "\n"
#define VFS                                                                                        \
	VF_ONLY(VF0, "0000:3b:00.1")                                                               \
	PHYSFN(VF0)                                                                                \
	VIRTFN("0", "0000:3b:00.1")                                                                \
	VF_ONLY(VF1, "0000:3b:00.2") PHYSFN(VF1) VIRTFN("1", "0000:3b:00.2")
#define GPU   PORT "/0000:3c:00.0"
#define A_GPU LINK("0000:3c:00.0", BELOW) IDS(GPU, "0x10de", "0x2330", "0x030200")
#define NODES                                                                                      \
	"f sys/devices/system/node/node0/distance = 10 21\\n\n"                                    \
	"f sys/devices/system/node/node1/distance = 21 10\\n\n"

static void finds_an_empty_root_to_be_a_machine_without_anything(void **state)
{
	struct machine m = look_at("");

	(void)state;
	assert_int_equal(
		m.inv->n_pci + m.inv->n_rdma + m.inv->n_gpu + m.inv->n_numa + m.inv->n_notes, 0);
	assert_false(m.inv->hypervisor || m.inv->has_rdma_cm);
	leave(&m);
}

/* A GPU and a NIC behind one switch, whose three ports nobody describes; a NIC beside them that is
 * whole. */
static void finds_the_way_through_bridges_without_a_record(void **state)
{
	struct machine m = look_at(
		LINK("0000:05:00.0", "pci0000:00/0000:00:01.0/0000:01:00.0/0000:02:00.0/") LINK(
			"0000:06:00.0", "pci0000:00/0000:00:01.0/0000:01:00.0/0000:02:01.0/")
			IDS("sys/devices/pci0000:00/0000:00:01.0/0000:01:00.0/0000:02:00.0/0000:05:00.0",
			    "0x10de", "0x2330", "0x030200")
				IDS("sys/devices/pci0000:00/0000:00:01.0/0000:01:00.0/0000:02:01.0/0000:06:00.0",
				    "0x15b3", "0x1021",
				    "0x020000") "d sys/devices/pci0000:00/0000:00:01.0/0000:01:00.0/0000:02:01.0/0000:06:00.0/infiniband/mlx5_0\n" BRIDGE
					PF_ONLY VFS);
	const struct hw_pci *gpu = at(&m, "0000:05:00.0"), *nic = at(&m, "0000:06:00.0");

	(void)state;
	assert_int_equal(m.inv->n_notes, 0);
	assert_int_equal(m.inv->n_pci, 10);
	assert_ptr_equal(&m.inv->pci[gpu->parent], at(&m, "0000:02:00.0"));
	assert_ptr_equal(&m.inv->pci[nic->parent], at(&m, "0000:02:01.0"));
	assert_int_equal(at(&m, "0000:02:00.0")->parent, at(&m, "0000:02:01.0")->parent);
	assert_int_equal(at(&m, "0000:00:01.0")->parent, -1);
	assert_true(at(&m, "0000:00:01.0")->has_root);
	assert_int_equal(at(&m, "0000:01:00.0")->class_code, 0x060400);
	assert_ptr_equal(&m.inv->pci[m.inv->gpu[0].pci], gpu);
	assert_ptr_equal(&m.inv->pci[m.inv->rdma[0].pci], nic);
	assert_ptr_equal(&m.inv->pci[at(&m, "0000:3b:00.2")->physfn], at(&m, "0000:3b:00.0"));
	assert_int_equal(at(&m, "0000:3b:00.2")->vf_index, 1);
	leave(&m);
}

static void reads_a_function_and_its_place(void **state)
{
	struct machine m = look_at(
		NODES BRIDGE PF_ONLY VFS
		"l " PF "/driver -> ../../../../bus/pci/drivers/mlx5_core\n"
		"f " PF "/acpi_index = 3\\n\n"
		"f " PF "/net/ens1/carrier = 1\\n\n"
		"f " PF "/net/ens1/type = 1\\n\n"
		"f " PF "/current_link_speed = 32.0 GT/s PCIe\\n\n"
		"f " PF "/current_link_width = 16\\n\n"
		"f " PF "/max_link_speed = 2.5 GT/s\\n\n"
		"f " PF "/max_link_width = 32\\n\n"
		"f proc/net/route = Iface\\x09Destination\\nens1\\x0900000000\\x090100000A\\x090003\\x090\\x090\\x09100\\x0900000000\\n\n");
	const struct hw_pci *pf = at(&m, "0000:3b:00.0"), *vf = at(&m, "0000:3b:00.2");

	(void)state;
	assert_int_equal(m.inv->n_notes, 0);
	assert_int_equal(pf->vendor, 0x15b3);
	assert_int_equal(pf->device, 0x1021);
	assert_int_equal(pf->class_code, 0x020000);
	assert_ptr_equal(&m.inv->pci[pf->parent], at(&m, "0000:3a:00.0"));
	assert_int_equal(at(&m, "0000:3a:00.0")->parent, -1);
	assert_true(pf->has_root && pf->root_domain == 0 && pf->root_bus == 0x3a);
	assert_string_equal(pf->driver, "mlx5_core");
	assert_string_equal(pf->netdev, "ens1");
	assert_int_equal(pf->carrier, 1);
	assert_int_equal(pf->net_type, 1);
	assert_true(pf->default_route);
	assert_int_equal(pf->acpi_index, -1);
	discover_acpi_indexes(m.root, m.inv);
	assert_int_equal(pf->acpi_index, 3);
	assert_int_equal(vf->acpi_index, -1);
	assert_int_equal(pf->link_mts, 32000);
	assert_int_equal(pf->link_mts_max, 2500);
	assert_int_equal(pf->link_width, 16);
	assert_int_equal(pf->link_width_max, 32);
	assert_int_equal(pf->sriov_total, 8);
	assert_int_equal(pf->sriov_num, 2);
	assert_true(vf->is_vf && vf->vf_index == 1);
	assert_ptr_equal(&m.inv->pci[vf->physfn], pf);
	assert_int_equal(vf->parent, pf->parent);
	assert_int_equal(pf->numa, 1);
	assert_int_equal(vf->numa, 1);
	assert_null(vf->driver);
	assert_int_equal(m.inv->n_numa, 2);
	assert_int_equal(m.inv->numa[1].distance[0], 21);
	leave(&m);
}

static void reads_32_bit_domains(void **state)
{
	struct machine m = look_at(
		"l sys/bus/pci/devices/9f2a1:00:02.0 -> ../../../devices/LNXSYSTM:00/LNXSYBUS:00/ACPI0004:00/VMBUS:00/47505500-9f2a/pci9f2a1:00/9f2a1:00:02.0\n" IDS(
			"sys/devices/LNXSYSTM:00/LNXSYBUS:00/ACPI0004:00/VMBUS:00/47505500-9f2a/pci9f2a1:00/9f2a1:00:02.0",
			"0x15b3", "0x101a", "0x020000"));
	const struct hw_pci *f = at(&m, "9f2a1:00:02.0");

	(void)state;
	assert_true(f->has_root);
	assert_int_equal(f->root_domain, 0x9f2a1);
	assert_int_equal(f->parent, -1);
	assert_true(m.inv->hypervisor);
	assert_true(hw_is_nic_vf(m.inv, 0));
	leave(&m);
}

/* VMD: a root complex that hangs below a function of another. */
static void hangs_a_nested_root_complex_below_its_function(void **state)
{
	struct machine m = look_at(
		LINK("0000:3a:05.5", "pci0000:3a/")
			IDS(ROOT "/0000:3a:05.5", "0x8086", "0x28c0", "0x010400")
				LINK("10000:00:02.0", "pci0000:3a/0000:3a:05.5/pci10000:00/")
					IDS(ROOT "/0000:3a:05.5/pci10000:00/10000:00:02.0",
					    "0x8086", "0x352a", "0x060400"));
	const struct hw_pci *f = at(&m, "10000:00:02.0");

	(void)state;
	assert_int_equal(f->root_domain, 0);
	assert_int_equal(f->root_bus, 0x3a);
	assert_ptr_equal(&m.inv->pci[f->parent], at(&m, "0000:3a:05.5"));
	leave(&m);
}

static void accepts_plain_directories_in_place_of_links(void **state)
{
	struct machine m =
		look_at(IDS("sys/bus/pci/devices/0000:3b:00.0", "0x15b3", "0x1021", "0x020000"));

	(void)state;
	assert_int_equal(m.inv->n_notes, 0);
	assert_false(at(&m, "0000:3b:00.0")->has_root);
	assert_int_equal(at(&m, "0000:3b:00.0")->parent, -1);
	leave(&m);
}

static void skips_a_device_whose_identity_makes_no_sense(void **state)
{
	static const char *const values[] = { "",	 "0x",	   "vendor",
					      "0x15b3f", "-1",	   "0x15b3 0x15b3",
					      "\\x00",	 "1\\x002" };

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(values); i++) {
		_cleanup_free_ char *text = xasprintf(
			BRIDGE LINK("0000:3b:00.0", BELOW) "f " PF "/device = 0x1021\\n\n"
							   "f " PF "/class = 0x020000\\n\n"
							   "f " PF "/vendor = %s\n",
			values[i]);
		struct machine m = look_at(text);

		assert_null(function(&m, "0000:3b:00.0"));
		assert_non_null(function(&m, "0000:3a:00.0"));
		assert_note(&m, "0000:3b:00.0: vendor", "device skipped");
		leave(&m);
	}
}

#define MODALIAS(path, text) "f " path "/modalias = " text "\\n\n"

/* Where all are there, and say other things, it can be seen which were read. */
static void believes_modalias_before_the_files_that_say_the_same(void **state)
{
	struct machine m = look_at(
		BRIDGE PF_ONLY VFS A_GPU MODALIAS(
			PORT, "pci:v00008086d0000A0A0sv00001111sd00002222bc06sc04i00")
			MODALIAS(VF0, "pci:v000015B3d0000B0B0sv00000000sd00000000bc02sc07i00")
				MODALIAS(GPU,
					 "pci:v000010DEd00002331sv000010DEsd000016C1bc03sc02i00"));

	(void)state;
	assert_int_equal(m.inv->n_notes, 0);
	assert_int_equal(at(&m, "0000:3a:00.0")->device, 0xa0a0);
	assert_int_equal(at(&m, "0000:3a:00.0")->subdevice, 0x2222);
	assert_int_equal(at(&m, "0000:3b:00.1")->device, 0xb0b0);
	assert_int_equal(at(&m, "0000:3b:00.1")->class_code, 0x020700);
	assert_int_equal(at(&m, "0000:3b:00.1")->vendor, 0x15b3);
	assert_int_equal(at(&m, "0000:3b:00.2")->device, 0x101e);
	assert_int_equal(at(&m, "0000:3c:00.0")->subvendor, 0x10de);
	assert_int_equal(m.inv->n_gpu, 1);
	leave(&m);
}

static void reads_the_single_files_where_a_modalias_is_not_the_kernels(void **state)
{
	static const char *const values[] = {
		"",
		"usb:v1D6Bp0002",
		"pci:v000015b3d0000B0B0sv00000000sd00000000bc02sc07i00",
		"pci:v000015B3d0000B0B0sv00000000sd00000000bc02sc07i0",
		"pci:v000015B3d0000B0B0sv00000000sd00000000bc02sc07i00 ",
		"pci:v000115B3d0000B0B0sv00000000sd00000000bc02sc07i00",
		"pci:v000015B3d0000B0B0sv00000000sd00000000bc02sc07i00000000000000000000",
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(values); i++) {
		_cleanup_free_ char *text =
			xasprintf(BRIDGE PF_ONLY VFS MODALIAS(VF0, "%s"), values[i]);
		struct machine m = look_at(text);

		assert_int_equal(at(&m, "0000:3b:00.1")->device, 0x101e);
		assert_int_equal(at(&m, "0000:3b:00.1")->class_code, 0x020000);
		leave(&m);
	}
}

static void write_modalias(const struct sysroot *root, const struct hw_pci *f)
{
	char addr[BDF_STRLEN];
	_cleanup_free_ char *path = xasprintf("%s/sys/bus/pci/devices/%s/modalias",
					      sysroot_path(root), bdf_format(f->bdf, addr));
	FILE *out = fopen(path, "wxe");

	if (!out)
		return; /* known from the way of others only */
	fprintf(out, "pci:v%08Xd%08Xsv%08Xsd%08Xbc%02Xsc%02Xi%02X\n", f->vendor, f->device,
		f->subvendor, f->subdevice, f->class_code >> 16, f->class_code >> 8 & 0xff,
		f->class_code & 0xff);
	fclose(out);
}

static void a_modalias_says_what_the_single_files_say(void **state)
{
	static const char *const machines[] = { "odd-vanishing", "odd-gpu-vendors", "odd-dual-port",
						"vm-igb-rxe" };

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(machines); i++) {
		_cleanup_free_ char *tree = xasprintf(FIXTURES "/%s/host.tree", machines[i]);
		struct sysroot *root = fixture_open(tree);
		struct hw_inventory *files = fixture_discover(root), *both;

		for (size_t k = 0; k < files->n_pci; k++)
			write_modalias(root, &files->pci[k]);
		both = fixture_discover(root);
		assert_true(hw_inventory_same(files, both));
		assert_int_equal(files->n_notes, both->n_notes);
		hw_inventory_free(files);
		hw_inventory_free(both);
		fixture_close(root);
	}
}

static void skips_a_device_without_a_class(void **state)
{
	struct machine m = look_at(LINK("0000:3b:00.0", BELOW) "f " PF "/vendor = 0x15b3\\n\n"
							       "f " PF "/device = 0x1021\\n\n");

	(void)state;
	assert_int_equal(m.inv->n_pci, 0);
	assert_note(&m, "0000:3b:00.0: class", "skipped");
	leave(&m);
}

static void takes_a_fact_that_makes_no_sense_as_unknown(void **state)
{
	static const struct {
		const char *file, *value;
	} cases[] = {
		{ "numa_node", "99" },
		{ "numa_node", "-7" },
		{ "numa_node", "" },
		{ "numa_node", "one" },
		{ "sriov_totalvfs", "99999999" },
		{ "current_link_speed", "8 GB/s" },
		{ "current_link_width", "x16" },
		{ "current_link_speed", "" },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		_cleanup_free_ char *text = xasprintf(
			NODES BRIDGE LINK("0000:3b:00.0", BELOW)
				IDS(PF, "0x15b3", "0x1021", "0x020000") "f " PF "/%s = %s\\n\n",
			cases[i].file, cases[i].value);
		struct machine m = look_at(text);
		const struct hw_pci *pf = at(&m, "0000:3b:00.0");

		assert_note(&m, "0000:3b:00.0", cases[i].file);
		assert_non_null(strstr(m.inv->notes[0], cases[i].value));
		assert_int_equal(pf->numa, 1);
		assert_int_equal(pf->sriov_total + pf->link_mts + pf->link_width, 0);
		leave(&m);
	}
}

static void takes_the_kernels_word_for_unknown_links(void **state)
{
	struct machine m = look_at(BRIDGE PF_ONLY "f " PF "/current_link_speed = Unknown\\n\n"
						  "f " PF "/current_link_width = 63\\n\n"
						  "f " PF "/max_link_speed = Unknown speed\\n\n"
						  "f " PF "/max_link_width = 255\\n\n");
	const struct hw_pci *pf = at(&m, "0000:3b:00.0");

	(void)state;
	assert_int_equal(m.inv->n_notes, 0);
	assert_int_equal(pf->link_mts + pf->link_mts_max + pf->link_width + pf->link_width_max, 0);
	leave(&m);
}

static void takes_any_node_where_the_machine_does_not_list_them(void **state)
{
	struct machine m = look_at(LINK("0000:3a:00.0", "pci0000:3a/") IDS(
		PORT, "0x8086", "0x352a", "0x060400") "f " PORT "/numa_node = 99\\n\n");

	(void)state;
	assert_int_equal(m.inv->n_notes, 0);
	assert_int_equal(at(&m, "0000:3a:00.0")->numa, 99);
	leave(&m);
}

static void survives_a_megabyte_where_a_number_should_be(void **state)
{
	struct machine m = { .root = fixture_text(BRIDGE PF_ONLY) };
	_cleanup_free_ char *path = xasprintf("%s/" PF "/sriov_totalvfs", sysroot_path(m.root));
	FILE *f = fopen(path, "we");

	(void)state;
	assert_non_null(f);
	for (int i = 0; i < 1 << 20; i++)
		fputc('1', f);
	fclose(f);
	m.inv = fixture_discover(m.root);
	assert_note(&m, "0000:3b:00.0: sriov_totalvfs", "too long");
	assert_int_equal(at(&m, "0000:3b:00.0")->sriov_total, 0);
	leave(&m);
}

static void does_not_wait_for_a_fifo_nor_read_a_directory(void **state)
{
	struct machine m = { .root = fixture_text(BRIDGE LINK(
				     "0000:3b:00.0", BELOW) "f " PF "/device = 0x1021\\n\n"
							    "f " PF "/class = 0x020000\\n\n"
							    "f " PF "/vendor = 0x15b3\\n\n"
							    "d " PF "/numa_node\n") };
	_cleanup_free_ char *path = xasprintf("%s/" PF "/sriov_totalvfs", sysroot_path(m.root));

	(void)state;
	assert_int_equal(mkfifo(path, 0600), 0);
	m.inv = fixture_discover(m.root);
	assert_int_equal(at(&m, "0000:3b:00.0")->sriov_total, 0);
	assert_int_equal(m.inv->n_notes, 2);
	assert_non_null(strstr(m.inv->notes[0], "numa_node cannot be read"));
	assert_non_null(strstr(m.inv->notes[1], "sriov_totalvfs is empty"));
	leave(&m);
}

static void ends_rings_of_links(void **state)
{
	struct machine m = look_at("l sys/bus/pci/devices/0000:3b:00.0 -> 0000:3b:00.0\n");

	(void)state;
	assert_int_equal(m.inv->n_pci, 0);
	assert_note(&m, "0000:3b:00.0: cannot be opened", "symbolic links");
	leave(&m);
	m = look_at("l sys/bus/pci/devices -> other\nl sys/bus/pci/other -> devices\n");
	assert_note(&m, "sys/bus/pci/devices", "symbolic links");
	leave(&m);
	m = look_at("l sys/class/infiniband/mlx5_0 -> mlx5_0\n");
	assert_note(&m, "mlx5_0", "symbolic links");
	leave(&m);
}

static void says_so_when_a_device_is_listed_but_gone(void **state)
{
	struct machine m = look_at(LINK("0000:3b:00.0", BELOW));

	(void)state;
	assert_int_equal(m.inv->n_pci, 0);
	assert_note(&m, "0000:3b:00.0: vanished", "skipped");
	leave(&m);
}

static void does_not_follow_a_link_out_of_the_root(void **state)
{
	struct machine m =
		look_at("l sys/bus/pci/devices/0000:3b:00.0 -> /../../../tmp/0000:3b:00.0\n");

	(void)state;
	assert_note(&m, "0000:3b:00.0", "vanished");
	leave(&m);
}

static void skips_names_that_are_no_addresses_and_links_that_lie(void **state)
{
	struct machine m = look_at("d sys/bus/pci/devices/foo\n");

	(void)state;
	assert_note(&m, "'foo'", "not a PCI address");
	leave(&m);
	m = look_at("l sys/bus/pci/devices/0000:3b:00.1 -> ../../../devices/" BELOW
		    "0000:3b:00.0\n" BRIDGE PF_ONLY);
	assert_null(function(&m, "0000:3b:00.1"));
	assert_note(&m, "0000:3b:00.1: its link leads to '0000:3b:00.0'", "skipped");
	leave(&m);
	m = look_at(
		BRIDGE
		"l sys/bus/pci/devices/0000:3A:00.0 -> ../../../devices/pci0000:3a/0000:3a:00.0\n");
	assert_int_equal(m.inv->n_pci, 1);
	assert_note(&m, "0000:3a:00.0: the same address", "skipped");
	leave(&m);
}

static void breaks_rings_of_parents(void **state)
{
#define A "sys/devices/pci0000:00/0000:00:02.0/0000:00:01.0"
#define B "sys/devices/pci0000:00/0000:00:01.0/0000:00:02.0"
	struct machine m = look_at(LINK("0000:00:01.0", "pci0000:00/0000:00:02.0/")
					   IDS(A, "0x8086", "0x1", "0x060400")
						   LINK("0000:00:02.0", "pci0000:00/0000:00:01.0/")
							   IDS(B, "0x8086", "0x1", "0x060400"));

	(void)state;
	assert_int_equal(m.inv->n_pci, 2);
	assert_int_equal(at(&m, "0000:00:01.0")->parent, -1);
	assert_int_equal(at(&m, "0000:00:02.0")->parent, -1);
	assert_int_equal(m.inv->n_notes, 2);
	leave(&m);
}

static void keeps_the_place_of_a_bridge_that_was_skipped(void **state)
{
	struct machine m =
		look_at(BRIDGE LINK("0000:3b:00.0", BELOW) "f " PF "/class = broken\\n\n" LINK(
			"0000:3c:00.0", BELOW "0000:3b:00.0/")
				IDS(PF "/0000:3c:00.0", "0x10de", "0x2330", "0x030200"));

	(void)state;
	assert_int_equal(m.inv->n_notes, 1);
	assert_ptr_equal(&m.inv->pci[at(&m, "0000:3c:00.0")->parent], at(&m, "0000:3b:00.0"));
	assert_ptr_equal(&m.inv->pci[at(&m, "0000:3b:00.0")->parent], at(&m, "0000:3a:00.0"));
	assert_int_equal(at(&m, "0000:3b:00.0")->vendor, 0);
	assert_int_equal(at(&m, "0000:3c:00.0")->numa, 1);
	leave(&m);
}

static void keeps_a_vf_whose_pf_is_not_there(void **state)
{
	struct machine m = look_at(BRIDGE VF_ONLY(VF0, "0000:3b:00.1") PHYSFN(VF0));
	const struct hw_pci *vf = at(&m, "0000:3b:00.1");

	(void)state;
	assert_true(vf->is_vf);
	assert_int_equal(vf->physfn, -1);
	assert_int_equal(vf->vf_index, -1);
	assert_int_equal(vf->numa, 1);
	assert_note(&m, "0000:3b:00.1", "0000:3b:00.0 is not there");
	leave(&m);
}

static void keeps_a_vf_whose_pf_is_no_pf(void **state)
{
	struct machine m = look_at(
		BRIDGE VF_ONLY(VF0, "0000:3b:00.1") "l " VF0 "/physfn -> ../0000:3b:00.2\n" VF_ONLY(
			VF1, "0000:3b:00.2") "l " VF1 "/physfn -> ../../nonsense\n");

	(void)state;
	assert_int_equal(m.inv->n_notes, 2);
	assert_true(at(&m, "0000:3b:00.1")->is_vf && at(&m, "0000:3b:00.1")->physfn == -1);
	assert_true(at(&m, "0000:3b:00.2")->is_vf && at(&m, "0000:3b:00.2")->physfn == -1);
	leave(&m);
}

static void counts_vfs_by_address_where_the_pf_has_no_virtfn_links(void **state)
{
	struct machine m = look_at(BRIDGE PF_ONLY
				   "f " PF "/sriov_offset = 1\\n\n"
				   "f " PF "/sriov_stride = 1\\n\n" VF_ONLY(VF0, "0000:3b:00.1")
					   PHYSFN(VF0) VF_ONLY(VF1, "0000:3b:00.2") PHYSFN(VF1));

	(void)state;
	assert_int_equal(m.inv->n_notes, 0);
	assert_int_equal(at(&m, "0000:3b:00.1")->vf_index, 0);
	assert_int_equal(at(&m, "0000:3b:00.2")->vf_index, 1);
	leave(&m);
	m = look_at(BRIDGE PF_ONLY VF_ONLY(VF1, "0000:3b:00.2") PHYSFN(VF1));
	assert_int_equal(at(&m, "0000:3b:00.2")->vf_index, -1);
	assert_true(at(&m, "0000:3b:00.2")->physfn >= 0);
	assert_note(&m, "0000:3b:00.2", "index is unknown");
	leave(&m);
}

#define THIRD_VF VF_ONLY(PORT "/0000:3b:00.3", "0000:3b:00.3") VIRTFN("2", "0000:3b:00.3")

/* Three VFs in a row: the way of each is known from its PF's, whatever their own entries say. */
static void finds_vfs_where_offset_and_stride_put_them(void **state)
{
	struct machine m = look_at(BRIDGE PF_ONLY VFS THIRD_VF "f " PF "/sriov_offset = 1\\n\n"
							       "f " PF "/sriov_stride = 1\\n\n");

	(void)state;
	assert_int_equal(m.inv->n_notes, 0);
	for (int i = 0; i < 3; i++) {
		const struct hw_pci *vf = at(&m, ((const char *[]) { "0000:3b:00.1", "0000:3b:00.2",
								     "0000:3b:00.3" })[i]);

		assert_int_equal(vf->vf_index, i);
		assert_ptr_equal(&m.inv->pci[vf->physfn], at(&m, "0000:3b:00.0"));
		assert_ptr_equal(&m.inv->pci[vf->parent], at(&m, "0000:3a:00.0"));
		assert_true(vf->has_root && vf->root_bus == 0x3a);
	}
	leave(&m);
}

static void believes_virtfn_where_offset_or_stride_say_otherwise(void **state)
{
	static const char *const values[][2] = {
		{ "2", "1" }, { "1", "2" }, { "0", "0" }, { "65535", "65535" }
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(values); i++) {
		_cleanup_free_ char *text =
			xasprintf(BRIDGE PF_ONLY VFS THIRD_VF "f " PF "/sriov_offset = %s\\n\n"
							      "f " PF "/sriov_stride = %s\\n\n",
				  values[i][0], values[i][1]);
		struct machine m = look_at(text);

		assert_int_equal(m.inv->n_notes, 0);
		assert_int_equal(at(&m, "0000:3b:00.1")->vf_index, 0);
		assert_int_equal(at(&m, "0000:3b:00.2")->vf_index, 1);
		assert_int_equal(at(&m, "0000:3b:00.3")->vf_index, 2);
		leave(&m);
	}
}

static void believes_virtfn_where_physfn_is_missing(void **state)
{
	struct machine m =
		look_at(BRIDGE PF_ONLY VF_ONLY(VF0, "0000:3b:00.1") VIRTFN("5", "0000:3b:00.1"));

	(void)state;
	assert_true(at(&m, "0000:3b:00.1")->is_vf);
	assert_int_equal(at(&m, "0000:3b:00.1")->vf_index, 5);
	leave(&m);
}

/* As mlx5 of MLNX_OFED says it, as Intel's out-of-tree drivers do, and as neither does. */
static void reads_the_rate_limits_of_vfs(void **state)
{
#define OFED(n, rate)                                                                              \
	"f " PF "/sriov/" n "/config = VF         : " n                                            \
	"\\nMAC        : 02:00:00:00:00:01\\nMinTxRate  : 7\\nMaxTxRate  : " rate                  \
	"\\nVGT+       : OFF\\n\n"                                                                 \
	"f " PF "/sriov/" n "/max_tx_rate = usage: write <Rate (Mbit/s)> to set VF max rate\\n\n"
	struct machine m = look_at(BRIDGE PF_ONLY VFS OFED("0", "25000") OFED("1", "0"));

	(void)state;
	assert_int_equal(m.inv->n_notes, 0);
	assert_int_equal(at(&m, "0000:3b:00.0")->rate_mbps, 0);
	assert_int_equal(at(&m, "0000:3b:00.1")->rate_mbps, 25000);
	assert_int_equal(at(&m, "0000:3b:00.2")->rate_mbps, 0);
	leave(&m);
	m = look_at(BRIDGE PF_ONLY VFS "f " PF "/sriov/1/max_tx_rate = 10000\\n\n");
	assert_int_equal(m.inv->n_notes, 0);
	assert_int_equal(at(&m, "0000:3b:00.1")->rate_mbps, 0);
	assert_int_equal(at(&m, "0000:3b:00.2")->rate_mbps, 10000);
	leave(&m);
	m = look_at(BRIDGE PF_ONLY VFS OFED("0", "-5") "f " PF "/sriov/1/config = MaxTxRate\\n\n");
	assert_note(&m, "0000:3b:00.0/sriov: 0/config", "'-5'");
	assert_int_equal(at(&m, "0000:3b:00.1")->rate_mbps, 0);
	assert_int_equal(at(&m, "0000:3b:00.2")->rate_mbps, 0);
	leave(&m);
}

/* A PF that turns out unreadable takes its VFs' indices with it, not those of its neighbour. */
static void forgets_what_a_skipped_pf_said_about_vfs(void **state)
{
#define LOST PORT "/0000:3d:00.0"
	struct machine m = look_at(BRIDGE PF_ONLY VFS LINK(
		"0000:3d:00.0", BELOW) "f " LOST "/class = 0x020000\\n\n"
				       "f " LOST "/device = 0x1021\\n\n"
				       "f " LOST "/vendor = ?\\n\n"
				       "f " LOST "/sriov_totalvfs = 4\\n\n"
				       "l " LOST "/virtfn0 -> ../0000:3a:00.0\nl " LOST
				       "/virtfn1 -> ../0000:3e:00.1\n" LINK("0000:3e:00.1", BELOW)
					       IDS(PORT "/0000:3e:00.1", "0x15b3", "0x101e",
						   "0x020000"));

	(void)state;
	assert_note(&m, "0000:3d:00.0: vendor", "skipped");
	assert_int_equal(at(&m, "0000:3b:00.1")->vf_index, 0);
	assert_int_equal(at(&m, "0000:3b:00.2")->vf_index, 1);
	assert_false(at(&m, "0000:3e:00.1")->is_vf);
	leave(&m);
}

static void keeps_two_pfs_that_claim_one_netdev(void **state)
{
	struct machine m =
		look_at(BRIDGE PF_ONLY LINK("0000:3d:00.0", BELOW)
				IDS(PORT "/0000:3d:00.0", "0x15b3", "0x1021",
				    "0x020000") "f " PF "/net/eth0/type = 1\\n\n"
						"f " PORT "/0000:3d:00.0/net/eth0/type = 32\\n\n"
						"l sys/class/net/eth0 -> ../../devices/" BELOW
						"0000:3b:00.0/net/eth0\n");

	(void)state;
	assert_string_equal(at(&m, "0000:3b:00.0")->netdev, "eth0");
	assert_string_equal(at(&m, "0000:3d:00.0")->netdev, "eth0");
	assert_int_equal(at(&m, "0000:3b:00.0")->net_type, 1);
	assert_int_equal(at(&m, "0000:3d:00.0")->net_type, 32);
	leave(&m);
}

static void picks_the_uplink_among_the_netdevs_of_a_switchdev_pf(void **state)
{
	struct machine m = look_at(BRIDGE PF_ONLY "f " PF "/net/ens1_0/phys_port_name = pf0vf0\\n\n"
						  "f " PF "/net/ens1_0/type = 1\\n\n"
						  "f " PF "/net/ens1np0/phys_port_name = p0\\n\n"
						  "f " PF "/net/ens1np0/type = 1\\n\n");

	(void)state;
	assert_string_equal(at(&m, "0000:3b:00.0")->netdev, "ens1np0");
	leave(&m);
}

static void takes_a_carrier_that_cannot_be_read_as_down(void **state)
{
	struct machine m = look_at(BRIDGE PF_ONLY "f " PF "/net/eth0/type = 1\\n\n"
						  "f " PF "/net/eth0/carrier = \n");

	(void)state;
	assert_int_equal(at(&m, "0000:3b:00.0")->carrier, 0);
	leave(&m);
	m = look_at(BRIDGE PF_ONLY "f " PF "/net/eth0/type = 1\\n\n");
	assert_int_equal(at(&m, "0000:3b:00.0")->carrier, -1);
	leave(&m);
}

#define RDMA(path, name) path "/infiniband/" name
#define A_PORT(path, n, state, rate, layer)                                                        \
	"f " path "/ports/" n "/state = " state "\\n\n"                                            \
	"f " path "/ports/" n "/phys_state = 5: LinkUp\\n\n"                                       \
	"f " path "/ports/" n "/rate = " rate "\\n\n"                                              \
	"f " path "/ports/" n "/link_layer = " layer "\\n\n"

static void reads_rdma_devices_and_their_ports(void **state)
{
	struct machine m = look_at(
		BRIDGE PF_ONLY A_PORT(RDMA(PF, "mlx4_0"), "1", "4: ACTIVE", "56 Gb/sec (4X FDR)",
				      "InfiniBand")
			A_PORT(RDMA(PF, "mlx4_0"), "2", "1: DOWN", "2.5 Gb/sec (1X SDR)",
			       "Ethernet") "f " PF "/infiniband_verbs/uverbs3/dev = 231:195\\n\n"
					   "f " PF "/infiniband_verbs/uverbs3/ibdev = mlx4_0\\n\n"
					   "d sys/class/misc/rdma_cm\n");
	const struct hw_rdma *r = &m.inv->rdma[0];

	(void)state;
	assert_int_equal(m.inv->n_notes, 0);
	assert_int_equal(m.inv->n_rdma, 1);
	assert_true(m.inv->has_rdma_cm);
	assert_string_equal(r->name, "mlx4_0");
	assert_ptr_equal(&m.inv->pci[r->pci], at(&m, "0000:3b:00.0"));
	assert_string_equal(r->dir, &PF[strlen("sys/")]);
	assert_false(r->soft);
	assert_string_equal(r->uverbs, "uverbs3");
	assert_int_equal(r->n_ports, 2);
	assert_string_equal(r->ports[0].state, "ACTIVE");
	assert_string_equal(r->ports[0].phys_state, "LinkUp");
	assert_int_equal(r->ports[0].rate_mbps, 56000);
	assert_int_equal(r->ports[0].link, HW_LINK_IB);
	assert_string_equal(r->ports[1].state, "DOWN");
	assert_int_equal(r->ports[1].rate_mbps, 2500);
	assert_int_equal(r->ports[1].link, HW_LINK_ETHERNET);
	leave(&m);
}

static void takes_rdma_cm_to_be_there_in_a_tree_that_shows_no_misc_devices(void **state)
{
#define A_DEVICE "d " RDMA(PF, "mlx5_0") "\n"
	static const struct {
		const char *text;
		bool there;
	} rows[] = {
		{ BRIDGE PF_ONLY A_DEVICE, true },
		{ BRIDGE PF_ONLY A_DEVICE "d sys/class/misc/rdma_cm\n", true },
		{ BRIDGE PF_ONLY A_DEVICE "d sys/devices/virtual/misc/rdma_cm\n", true },
		{ BRIDGE PF_ONLY A_DEVICE "d sys/class/misc/kvm\n", false },
		{ BRIDGE PF_ONLY A_DEVICE "d sys/devices/virtual/misc/kvm\n", false },
		{ BRIDGE PF_ONLY, false },
	};
#undef A_DEVICE

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		struct machine m = look_at(rows[i].text);

		assert_int_equal(m.inv->has_rdma_cm, rows[i].there);
		leave(&m);
	}
}

static void counts_the_links_to_vfs_where_the_kernels_count_is_missing(void **state)
{
	struct machine m = look_at(BRIDGE LINK("0000:3b:00.0", BELOW) IDS(
		PF, "0x15b3", "0x1021", "0x020000") "f " PF "/sriov_totalvfs = 8\\n\n" VFS);

	(void)state;
	assert_int_equal(at(&m, "0000:3b:00.0")->sriov_num, 2);
	leave(&m);
}

static void gives_a_vf_what_it_shares_with_its_pfs_only_port(void **state)
{
	struct machine m = look_at(BRIDGE PF_ONLY VFS A_PORT(
		RDMA(PF, "mlx5_0"), "1", "4: ACTIVE", "400 Gb/sec (4X NDR)",
		"InfiniBand") "f " RDMA(VF0,
					"mlx5_1") "/ports/1/state = 1: DOWN\\n\n"
						  "f " RDMA(
							  VF0,
							  "mlx5_1") "/ports/2/state = 4: ACTIVE\\n\n");
	const struct hw_rdma *vf = &m.inv->rdma[1];

	(void)state;
	assert_int_equal(vf->n_ports, 1);
	assert_string_equal(vf->ports[0].state, "DOWN");
	assert_string_equal(vf->ports[0].phys_state, "LinkUp");
	assert_int_equal(vf->ports[0].link, HW_LINK_IB);
	assert_int_equal(vf->ports[0].rate_mbps, 400000);
	leave(&m);
}

static void finds_rdma_devices_through_the_class_directories_too(void **state)
{
#define IB(addr, name)                                                                             \
	"l sys/class/infiniband/" name " -> ../../devices/" BELOW addr "/infiniband/" name "\n"
#define UV(addr, name)                                                                             \
	"l sys/class/infiniband_verbs/" name " -> ../../devices/" BELOW addr                       \
	"/infiniband_verbs/" name "\n"
	struct machine m = look_at(
		BRIDGE PF_ONLY VFS IB("0000:3b:00.1", "mlx5_1") UV("0000:3b:00.1", "uverbs7") A_PORT(
			RDMA(VF0, "mlx5_1"), "1", "4: ACTIVE", "400 Gb/sec (4X NDR)",
			"Ethernet") "f " VF0 "/infiniband_verbs/uverbs7/dev = 231:199\\n\n"
				    /* and one that only the class directory knows */
				    "l sys/class/infiniband/mlx5_2/device -> ../../../devices/" BELOW
				    "0000:3b:00.2\n"
				    "f sys/class/infiniband_verbs/uverbs8/ibdev = mlx5_2\\n\n"
				    "f sys/class/infiniband_verbs/uverbs8/dev = 231:200\\n\n");

	(void)state;
	assert_int_equal(m.inv->n_notes, 0);
	assert_int_equal(m.inv->n_rdma, 2);
	assert_string_equal(m.inv->rdma[0].uverbs, "uverbs7");
	assert_ptr_equal(&m.inv->pci[m.inv->rdma[0].pci], at(&m, "0000:3b:00.1"));
	assert_string_equal(m.inv->rdma[1].uverbs, "uverbs8");
	assert_ptr_equal(&m.inv->pci[m.inv->rdma[1].pci], at(&m, "0000:3b:00.2"));
	assert_false(m.inv->rdma[1].soft);
	leave(&m);
}

/* Two RDMA devices of one function: ibdev tells whose the uverbs nodes are, not their order. */
static void matches_uverbs_by_ibdev_when_there_are_several(void **state)
{
	struct machine m = look_at(BRIDGE PF_ONLY "f " RDMA(
		PF, "a") "/node_type = 1: CA\\n\n"
			 "f " RDMA(PF, "b") "/node_type = 1: CA\\n\n"
					    "f " PF "/infiniband_verbs/uverbs0/ibdev = b\\n\n"
					    "f " PF "/infiniband_verbs/uverbs0/dev = 231:192\\n\n"
					    "f " PF "/infiniband_verbs/uverbs1/ibdev = a\\n\n"
					    "f " PF "/infiniband_verbs/uverbs1/dev = 231:193\\n\n");

	(void)state;
	assert_int_equal(m.inv->n_rdma, 2);
	assert_string_equal(m.inv->rdma[0].name, "a");
	assert_string_equal(m.inv->rdma[0].uverbs, "uverbs1");
	assert_string_equal(m.inv->rdma[1].uverbs, "uverbs0");
	assert_int_equal(m.inv->rdma[1].n_ports, 0);
	leave(&m);
}

#define SOFT(name) "sys/devices/virtual/infiniband/" name
#define SOFT_LINK(name)                                                                            \
	"l sys/class/infiniband/" name " -> ../../devices/virtual/infiniband/" name "\n"
#define NETDEV(path, addr, name)                                                                   \
	"f " path "/net/" name "/type = 1\\n\n"                                                    \
	"l " path "/net/" name "/device -> ../../../" addr "\n"                                    \
	"l sys/class/net/" name " -> ../../devices/" BELOW addr "/net/" name "\n"

static void places_soft_rdma_on_the_function_of_its_netdev(void **state)
{
	struct machine m = look_at(
		BRIDGE PF_ONLY VFS NETDEV(VF0, "0000:3b:00.1", "v0") NETDEV(VF1, "0000:3b:00.2", "v1") SOFT_LINK(
			"rxe0") "f " SOFT("rxe0") "/parent = v0\\n\n" A_PORT(SOFT("rxe0"), "1",
									     "4: ACTIVE",
									     "2.5 Gb/sec (1X SDR)",
									     "Ethernet")
			SOFT_LINK("siw0") "f " SOFT("siw0") "/ports/1/gid_attrs/ndevs/0 = v1\\n\n" SOFT_LINK(
				"rxe9") "f " SOFT("rxe9") "/parent = of_another_namespace\\n\n"
							  "l sys/class/infiniband_verbs/uverbs0 -> ../../devices/virtual/infiniband_verbs/uverbs0\n"
							  "f sys/devices/virtual/infiniband_verbs/uverbs0/ibdev = rxe0\\n\n"
							  "f sys/devices/virtual/infiniband_verbs/uverbs0/dev = 231:192\\n\n");

	(void)state;
	assert_int_equal(m.inv->n_notes, 0);
	assert_int_equal(m.inv->n_rdma, 3);
	assert_string_equal(m.inv->rdma[0].name, "rxe9");
	assert_int_equal(m.inv->rdma[0].pci, -1);
	assert_null(m.inv->rdma[0].netdev);
	assert_string_equal(m.inv->rdma[1].name, "rxe0");
	assert_true(m.inv->rdma[1].soft);
	assert_string_equal(m.inv->rdma[1].netdev, "v0");
	assert_string_equal(m.inv->rdma[1].uverbs, "uverbs0");
	assert_ptr_equal(&m.inv->pci[m.inv->rdma[1].pci], at(&m, "0000:3b:00.1"));
	assert_string_equal(m.inv->rdma[2].name, "siw0");
	assert_ptr_equal(&m.inv->pci[m.inv->rdma[2].pci], at(&m, "0000:3b:00.2"));
	leave(&m);
}

static void notes_port_values_that_make_no_sense(void **state)
{
	struct machine m = look_at(
		BRIDGE PF_ONLY A_PORT(RDMA(PF, "mlx5_0"), "1", "ACTIVE", "fast", "Token ring"));

	(void)state;
	assert_int_equal(m.inv->n_notes, 3);
	assert_non_null(strstr(m.inv->notes[0], "infiniband/mlx5_0/ports/1/state says 'ACTIVE'"));
	assert_null(m.inv->rdma[0].ports[0].state);
	assert_string_equal(m.inv->rdma[0].ports[0].phys_state, "LinkUp");
	assert_int_equal(m.inv->rdma[0].ports[0].link, HW_LINK_UNKNOWN);
	assert_int_equal(m.inv->rdma[0].ports[0].rate_mbps, 0);
	leave(&m);
}

static void knows_gpus_by_vendor_and_class(void **state)
{
	static const struct gpu_match own[] = { { 0x15b3, 0x0200, "odd" } };
	struct hw_inventory *inv = NULL;
	struct machine m = look_at(
		BRIDGE PF_ONLY A_GPU LINK("0000:3d:00.0", BELOW) IDS(
			PORT "/0000:3d:00.0", "0x1002", "0x74a1",
			"0x120000") LINK("0000:3e:00.0",
					 BELOW) IDS(PORT "/0000:3e:00.0", "0x8086", "0x0bd5",
						    "0x038000") LINK("0000:3f:00.0", BELOW)
			IDS(PORT "/0000:3f:00.0", "0x1a03", "0x2000",
			    "0x030000") "f " GPU "/subsystem_vendor = 0x10de\\n\n"
					"f " GPU "/subsystem_device = 0x16c1\\n\n"
					"d " GPU "/drm/card3\nd " GPU "/drm/renderD131\n"
					"f proc/driver/nvidia/gpus/0000:3c:00.0/information = Model: \\x09\\x09 NVIDIA H100 80GB HBM3\\nIRQ:   \\x09\\x09 5\\n"
					"GPU UUID: \\x09 GPU-8d1f5d0e-1111-2222-3333-444455556666\\nBus Location: \\x09 0000:3c:00.0\\nDevice Minor: \\x09 2\\n\n");

	(void)state;
	assert_int_equal(m.inv->n_gpu, 3);
	assert_string_equal(m.inv->gpu[0].vendor, "NVIDIA");
	assert_string_equal(m.inv->gpu[0].model, "NVIDIA H100 80GB HBM3");
	assert_string_equal(m.inv->gpu[0].uuid, "GPU-8d1f5d0e-1111-2222-3333-444455556666");
	assert_int_equal(m.inv->gpu[0].minor, 2);
	assert_int_equal(m.inv->gpu[0].card, 3);
	assert_int_equal(at(&m, "0000:3c:00.0")->subdevice, 0x16c1);
	assert_string_equal(m.inv->gpu[1].vendor, "AMD");
	assert_int_equal(m.inv->gpu[1].card, -1);
	assert_string_equal(m.inv->gpu[2].vendor, "Intel");
	assert_int_equal(discover_host(m.root, own, 1, NULL, &inv, NULL), 0);
	assert_int_equal(inv->n_gpu, 1);
	assert_string_equal(inv->gpu[0].vendor, "odd");
	hw_inventory_free(inv);
	leave(&m);
}

static void ignores_a_uuid_the_driver_does_not_know_yet(void **state)
{
	struct machine m = look_at(
		BRIDGE A_GPU
		"f proc/driver/nvidia/gpus/0000:3c:00.0/information = Model: \\x09 \\nGPU UUID: \\x09 GPU-\?\?\?\?\?\?\?\?-\?\?\?\?\\nDevice Minor: x\\n\n");

	(void)state;
	assert_null(m.inv->gpu[0].uuid);
	assert_null(m.inv->gpu[0].model);
	assert_int_equal(m.inv->gpu[0].minor, -1);
	leave(&m);
}

#define ROUTE(name, destination)                                                                   \
	name "\\x09" destination "\\x090100000A\\x090003\\x090\\x090\\x090\\x09"

static void finds_the_default_route_behind_many_others(void **state)
{
	_cleanup_strbuf_ struct strbuf text = STRBUF_INIT;
	struct machine m;

	(void)state;
	strbuf_puts(&text, BRIDGE PF_ONLY "f " PF "/net/ens1/carrier = 1\\n\n");
	strbuf_puts(&text, "f proc/net/route = ");
	for (int i = 0; i < 1000; i++)
		strbuf_puts(&text, ROUTE("eth0", "0000000A") "000000FF\\n");
	strbuf_puts(&text, ROUTE("ens1", "00000000") "00000000\\n\n");
	m = look_at(strbuf_str(&text));
	assert_true(at(&m, "0000:3b:00.0")->default_route);
	leave(&m);
}

static void says_that_a_table_of_routes_is_too_long(void **state)
{
	_cleanup_strbuf_ struct strbuf text = STRBUF_INIT;
	struct machine m;

	(void)state;
	strbuf_puts(&text, BRIDGE PF_ONLY "f " PF "/net/ens1/carrier = 1\\n\n");
	strbuf_puts(&text, "f proc/net/route = ");
	strbuf_puts(&text, ROUTE("ens1", "00000000") "00000000\\n");
	while (text.len < 2 << 20)
		strbuf_puts(&text, ROUTE("eth0", "0000000A") "000000FF\\n");
	strbuf_puts(&text, "\n");
	m = look_at(strbuf_str(&text));
	assert_false(at(&m, "0000:3b:00.0")->default_route);
	assert_int_equal(m.inv->n_notes, 1);
	assert_string_equal(
		m.inv->notes[0],
		"proc/net/route cannot be read: File too large; no default route is known");
	leave(&m);
}

static void tells_virtual_machines(void **state)
{
	static const struct {
		const char *text;
		bool virtual;
	} cases[] = {
		{ "f proc/cpuinfo = processor\\x09: 0\\nflags\\x09\\x09: fpu hypervisor sse\\n\\nprocessor\\x09: 1\\n\n",
		  true },
		{ "f proc/cpuinfo = processor\\x09: 0\\nflags\\x09\\x09: fpu hypervisors\\n\\nbugs: hypervisor\\n\n",
		  false },
		{ "f sys/hypervisor/type = xen\\n\n", true },
		{ "f sys/class/dmi/id/sys_vendor = QEMU\\n\n", true },
		{ "f sys/class/dmi/id/sys_vendor = Amazon EC2\\n\n"
		  "f sys/class/dmi/id/product_name = p5.48xlarge\\n\n",
		  true },
		{ "f sys/class/dmi/id/sys_vendor = Amazon EC2\\n\n"
		  "f sys/class/dmi/id/product_name = p4de.metal\\n\n",
		  false },
		{ "f sys/class/dmi/id/sys_vendor = Microsoft Corporation\\n\n"
		  "f sys/class/dmi/id/product_name = Virtual Machine\\n\n",
		  true },
		{ "f sys/class/dmi/id/sys_vendor = Microsoft Corporation\\n\n"
		  "f sys/class/dmi/id/product_name = Surface\\n\n",
		  false },
		{ "f sys/class/dmi/id/sys_vendor = Dell Inc.\\n\n"
		  "f sys/class/dmi/id/product_name = PowerEdge XE9680\\n\n",
		  false },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		struct machine m = look_at(cases[i].text);

		assert_int_equal(m.inv->hypervisor, cases[i].virtual);
		leave(&m);
	}
}

static void reads_the_acs_word_of_a_bridge(void **state)
{
	struct strbuf text = STRBUF_INIT;
	struct machine m;

	(void)state;
	strbuf_puts(&text, BRIDGE "x " PORT "/config = ");
	for (int i = 0; i < 0x100; i++)
		strbuf_puts(&text, "00");
	/* 0x100: AER → 0x108; 0x108: ACS, capabilities 0x005f, control 0x001d */
	strbuf_puts(&text, "01008110000000000d0001005f001d00\n");
	m = look_at(strbuf_str(&text));
	assert_int_equal(at(&m, "0000:3a:00.0")->acs_ctrl, 0x1d);
	leave(&m);
	text.len -= strlen("0d0001005f001d00\n");
	strbuf_puts(&text, "0100811000000000\n"); /* a ring instead */
	m = look_at(strbuf_str(&text));
	assert_int_equal(at(&m, "0000:3a:00.0")->acs_ctrl, -1);
	leave(&m);
	strbuf_done(&text);
	m = look_at(BRIDGE);
	assert_int_equal(at(&m, "0000:3a:00.0")->acs_ctrl, -1);
	leave(&m);
}

static void drops_distances_that_do_not_fit_the_nodes(void **state)
{
	struct machine m = look_at("f sys/devices/system/node/node0/distance = 10 21 21\\n\n"
				   "d sys/devices/system/node/node2\n"
				   "d sys/devices/system/node/power\n");

	(void)state;
	assert_int_equal(m.inv->n_numa, 2);
	assert_int_equal(m.inv->numa[1].id, 2);
	assert_null(m.inv->numa[0].distance);
	assert_null(m.inv->numa[1].distance);
	assert_note(&m, "NUMA node 0", "2 numbers");
	leave(&m);
}

/* As the kernel writes it, for it goes into files as it is. */
static void keeps_the_cpus_of_a_node_word_for_word(void **state)
{
	struct machine m =
		look_at("f sys/devices/system/node/node0/cpumap = 00ff,00000000,ffff0000\\n\n"
			"f sys/devices/system/node/node1/cpumap = 0\"><ff\\n\n"
			"d sys/devices/system/node/node2\n");

	(void)state;
	assert_int_equal(m.inv->n_numa, 3);
	assert_string_equal(m.inv->numa[0].cpumap, "00ff,00000000,ffff0000");
	assert_null(m.inv->numa[1].cpumap);
	assert_null(m.inv->numa[2].cpumap);
	assert_note(&m, "NUMA node 1", "cpumap");
	leave(&m);
}

struct pulling {
	const char *path, *away;
	atomic_bool stop;
};

static void *pull_and_plug(void *arg)
{
	struct pulling *p = arg;

	while (!atomic_load(&p->stop)) {
		rename(p->path, p->away);
		rename(p->away, p->path);
	}
	return NULL;
}

/* A device is there as a whole or is not there, whenever it is pulled out. */
static void survives_devices_that_come_and_go(void **state)
{
	struct sysroot *root = fixture_text(BRIDGE PF_ONLY VFS A_PORT(
		RDMA(VF0, "mlx5_1"), "1", "4: ACTIVE", "400 Gb/sec", "Ethernet"));
	_cleanup_free_ char *path = xasprintf("%s/" VF0, sysroot_path(root));
	_cleanup_free_ char *away = xasprintf("%s/away", sysroot_path(root));
	struct pulling p = { path, away, false };
	pthread_t thread;

	(void)state;
	if (fallback)
		root->has_openat2 = false;
	assert_int_equal(pthread_create(&thread, NULL, pull_and_plug, &p), 0);
	for (int i = 0; i < 200; i++) {
		struct machine m = { root, fixture_discover(root) };
		const struct hw_pci *vf = function(&m, "0000:3b:00.1");

		assert_non_null(function(&m, "0000:3b:00.2"));
		if (vf) {
			assert_int_equal(vf->vendor, 0x15b3);
			assert_int_equal(vf->vf_index, 0);
		} else {
			assert_note(&m, "0000:3b:00.1", "skipped");
			assert_int_equal(m.inv->n_rdma, 0);
		}
		hw_inventory_free(m.inv);
	}
	atomic_store(&p.stop, true);
	pthread_join(thread, NULL);
	fixture_close(root);
}

static void finds_the_same_machine_twice(void **state)
{
	struct machine a = look_at(NODES BRIDGE PF_ONLY VFS A_GPU),
		       b = look_at(NODES BRIDGE PF_ONLY VFS A_GPU),
		       c = look_at(NODES BRIDGE PF_ONLY VFS);

	(void)state;
	assert_true(hw_inventory_same(a.inv, b.inv));
	assert_false(hw_inventory_same(a.inv, c.inv));
	leave(&a);
	leave(&b);
	leave(&c);
}

/* Whatever this machine is: it can be looked at, without a crash and in some time. */
static void looks_at_the_live_machine(void **state)
{
	_cleanup_strbuf_ struct strbuf words = STRBUF_INIT;
	struct sysroot *live = NULL;
	struct hw_inventory *inv;

	(void)state;
	assert_int_equal(sysroot_open("/", &live, NULL), 0);
	inv = fixture_discover(live);
	discover_check_numa(live, inv, &words);
	hw_inventory_free(inv);
	sysroot_close(live);
}

static void names_devices_from_the_roots_own_list_only(void **state)
{
	struct sysroot *root = fixture_text(
		"f usr/share/misc/pci.ids = 10de  NVIDIA Corporation\\n\\x092330  GH100 [H100 SXM5 80GB]\\n\n");
	struct sysroot *none = fixture_text(""),
		       *broken = fixture_text(
			       "f usr/share/misc/pci.ids = garbage\\nmore\\x09of it\\n\n"),
		       *out = fixture_text(
			       "l usr/share/misc/pci.ids -> /../../../../usr/share/misc/pci.ids\n");
	_cleanup_free_ char *name = discover_pci_name(root, 0x10de, 0x2330);

	(void)state;
	assert_string_equal(name, "NVIDIA Corporation GH100 [H100 SXM5 80GB]");
	assert_null(discover_pci_name(root, 0x1234, 0x5678));
	assert_null(discover_pci_name(none, 0x10de, 0x2330));
	assert_null(discover_pci_name(broken, 0x10de, 0x2330));
	assert_null(discover_pci_name(out, 0x10de, 0x2330));
	fixture_close(root);
	fixture_close(none);
	fixture_close(broken);
	fixture_close(out);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(finds_an_empty_root_to_be_a_machine_without_anything),
		cmocka_unit_test(finds_the_way_through_bridges_without_a_record),
		cmocka_unit_test(reads_a_function_and_its_place),
		cmocka_unit_test(reads_32_bit_domains),
		cmocka_unit_test(hangs_a_nested_root_complex_below_its_function),
		cmocka_unit_test(accepts_plain_directories_in_place_of_links),
		cmocka_unit_test(skips_a_device_whose_identity_makes_no_sense),
		cmocka_unit_test(believes_modalias_before_the_files_that_say_the_same),
		cmocka_unit_test(reads_the_single_files_where_a_modalias_is_not_the_kernels),
		cmocka_unit_test(a_modalias_says_what_the_single_files_say),
		cmocka_unit_test(skips_a_device_without_a_class),
		cmocka_unit_test(takes_a_fact_that_makes_no_sense_as_unknown),
		cmocka_unit_test(takes_the_kernels_word_for_unknown_links),
		cmocka_unit_test(takes_any_node_where_the_machine_does_not_list_them),
		cmocka_unit_test(survives_a_megabyte_where_a_number_should_be),
		cmocka_unit_test(does_not_wait_for_a_fifo_nor_read_a_directory),
		cmocka_unit_test(ends_rings_of_links),
		cmocka_unit_test(says_so_when_a_device_is_listed_but_gone),
		cmocka_unit_test(does_not_follow_a_link_out_of_the_root),
		cmocka_unit_test(skips_names_that_are_no_addresses_and_links_that_lie),
		cmocka_unit_test(breaks_rings_of_parents),
		cmocka_unit_test(keeps_the_place_of_a_bridge_that_was_skipped),
		cmocka_unit_test(keeps_a_vf_whose_pf_is_not_there),
		cmocka_unit_test(keeps_a_vf_whose_pf_is_no_pf),
		cmocka_unit_test(counts_vfs_by_address_where_the_pf_has_no_virtfn_links),
		cmocka_unit_test(finds_vfs_where_offset_and_stride_put_them),
		cmocka_unit_test(believes_virtfn_where_offset_or_stride_say_otherwise),
		cmocka_unit_test(believes_virtfn_where_physfn_is_missing),
		cmocka_unit_test(reads_the_rate_limits_of_vfs),
		cmocka_unit_test(forgets_what_a_skipped_pf_said_about_vfs),
		cmocka_unit_test(keeps_two_pfs_that_claim_one_netdev),
		cmocka_unit_test(picks_the_uplink_among_the_netdevs_of_a_switchdev_pf),
		cmocka_unit_test(takes_a_carrier_that_cannot_be_read_as_down),
		cmocka_unit_test(reads_rdma_devices_and_their_ports),
		cmocka_unit_test(takes_rdma_cm_to_be_there_in_a_tree_that_shows_no_misc_devices),
		cmocka_unit_test(counts_the_links_to_vfs_where_the_kernels_count_is_missing),
		cmocka_unit_test(gives_a_vf_what_it_shares_with_its_pfs_only_port),
		cmocka_unit_test(finds_rdma_devices_through_the_class_directories_too),
		cmocka_unit_test(matches_uverbs_by_ibdev_when_there_are_several),
		cmocka_unit_test(places_soft_rdma_on_the_function_of_its_netdev),
		cmocka_unit_test(notes_port_values_that_make_no_sense),
		cmocka_unit_test(knows_gpus_by_vendor_and_class),
		cmocka_unit_test(ignores_a_uuid_the_driver_does_not_know_yet),
		cmocka_unit_test(finds_the_default_route_behind_many_others),
		cmocka_unit_test(says_that_a_table_of_routes_is_too_long),
		cmocka_unit_test(tells_virtual_machines),
		cmocka_unit_test(reads_the_acs_word_of_a_bridge),
		cmocka_unit_test(drops_distances_that_do_not_fit_the_nodes),
		cmocka_unit_test(keeps_the_cpus_of_a_node_word_for_word),
		cmocka_unit_test(survives_devices_that_come_and_go),
		cmocka_unit_test(finds_the_same_machine_twice),
		cmocka_unit_test(looks_at_the_live_machine),
		cmocka_unit_test(names_devices_from_the_roots_own_list_only),
	};
	int failed = cmocka_run_group_tests_name("with openat2", tests, NULL, NULL);

	fallback = true;
	return failed + cmocka_run_group_tests_name("without openat2", tests, NULL, NULL);
}
