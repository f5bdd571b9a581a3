/* How GPUs reach each other, from amdgpu's topology and from NVSwitches. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include "base/arena.h"
#include "base/mem.h"
#include "discover/discover.h"
#include "hw/inventory.h"
#include "support/fixture.h"
#include "sysroot/sysroot.h"

#define NODE(n, text)	 "f " KFD_NODES "/" n "/properties = " text "\n"
#define LINK(n, k, text) "f " KFD_NODES "/" n "/io_links/" k "/properties = " text "\n"
#define FUNCTION(bdf, vendor, device, class)                                                       \
	"f sys/bus/pci/devices/" bdf "/vendor = " vendor "\\n\n"                                   \
	"f sys/bus/pci/devices/" bdf "/device = " device "\\n\n"                                   \
	"f sys/bus/pci/devices/" bdf "/class = " class "\\n\n"
#define AMD(bdf)    FUNCTION(bdf, "0x1002", "0x74a1", "0x120000")
#define NVIDIA(bdf) FUNCTION(bdf, "0x10de", "0x2330", "0x030200")
#define THREE_AMD   AMD("0000:0c:00.0") AMD("0000:15:00.0") AMD("0001:1e:00.0")
#define NVSWITCH                                                                                   \
	FUNCTION("0000:08:00.0", "0x10de", "0x22a3", "0x068000")                                   \
	"d sys/bus/pci/drivers/nvidia-nvswitch\n"                                                  \
	"l sys/bus/pci/devices/0000:08:00.0/driver -> ../../drivers/nvidia-nvswitch\n"

static void expect(const char *text, const enum gpu_link *want, size_t n)
{
	struct sysroot *root = fixture_text(text);
	struct hw_inventory *inv = fixture_discover(root);
	_cleanup_arena_ struct arena *a = arena_new(1024);
	struct gpu_links l = discover_gpu_links(root, inv, a);

	assert_int_equal(l.n, n);
	for (size_t i = 0; i < n * n; i++)
		assert_int_equal(l.link[i], want[i]);
	hw_inventory_free(inv);
	fixture_close(root);
}

#define U GPU_LINK_UNKNOWN
#define P GPU_LINK_PCIE
#define X GPU_LINK_XGMI
#define N GPU_LINK_NVLINK

static void xgmi_is_read_from_the_topology(void **state)
{
	static const enum gpu_link want[] = { U, X, P, X, U, P, P, P, U };

	(void)state;
	expect(THREE_AMD NODE("0", "cpu_cores_count 56\\nlocation_id 0\\ndomain 0\\n") NODE(
		       "1", "simd_count 1216\\nlocation_id 3072\\ndomain 0\\n")
		       NODE("2", "location_id 5376\\ndomain 0\\n") NODE(
			       "3", "location_id 7680\\ndomain 1\\n")
			       LINK("1", "0", "type 2\\nnode_from 1\\nnode_to 0\\n") LINK(
				       "1", "1", "type 11\\nnode_from 1\\nnode_to 2\\nweight 15\\n")
				       LINK("3", "0", "type 2\\nnode_from 3\\nnode_to 2\\n"),
	       want, 3);
}

#define PART(n, render) "d sys/devices/platform/amdgpu_xcp_" n "/drm/renderD" render "\n"

/* In CPX mode: the node of a partition has the GPU's bus, and its own number as the function. */
static void partitions_are_their_gpus(void **state)
{
	struct sysroot *root = fixture_text(
		THREE_AMD NODE("1", "drm_render_minor 128\\nlocation_id 3072\\ndomain 0\\n") NODE(
			"2", "location_id 3073\\ndomain 0\\ndrm_render_minor 129\\n")
			NODE("3", "location_id 5382\\ndomain 0\\ndrm_render_minor 136\\n") NODE(
				"4", "location_id 7681\\ndomain 1\\ndrm_render_minor 144\\n")
				NODE("5", "location_id 9999\\ndomain 1\\ndrm_render_minor 150\\n")
					PART("0", "129") PART("12", "136") PART("3", "144")
						PART("4", "150") PART("5", "151") PART("x", "129"));
	struct hw_inventory *inv = fixture_discover(root);
	static const struct {
		const char *id;
		int gpu;
	} rows[] = {
		{ "amdgpu_xcp_0", 0 },	{ "amdgpu_xcp_12", 1 }, { "amdgpu_xcp_3", 2 },
		{ "amdgpu_xcp_4", -1 }, { "amdgpu_xcp_5", -1 }, { "amdgpu_xcp_9", -1 },
		{ "amdgpu_xcp_", -1 },	{ "amdgpu_xcp_x", -1 },
	};

	(void)state;
	assert_int_equal(inv->n_part, 3);
	for (size_t i = 0; i < ARRAY_LEN(rows); i++)
		assert_int_equal(hw_gpu_of_id(inv, "amd.com/gpu", rows[i].id),
				 rows[i].gpu < 0 ? -1 : inv->gpu[rows[i].gpu].pci);
	hw_inventory_free(inv);
	fixture_close(root);
}

/* Parts of a GPU that the host itself drives. */
static void vfs_of_a_gpu_are_no_gpus_and_lead_to_it(void **state)
{
	struct sysroot *root = fixture_text(AMD("0000:0c:00.0") AMD("0000:0c:02.0") AMD(
		"0000:15:00.0") "l sys/bus/pci/devices/0000:0c:02.0/physfn -> ../0000:0c:00.0\n"
				"l sys/bus/pci/devices/0000:0c:00.0/virtfn0 -> ../0000:0c:02.0\n");
	struct hw_inventory *inv = fixture_discover(root);

	(void)state;
	assert_int_equal(inv->n_gpu, 2);
	assert_int_equal(hw_gpu_of_id(inv, "amd.com/gpu", "0000:0c:02.0"), inv->gpu[0].pci);
	assert_int_equal(hw_gpu_of_id(inv, "amd.com/gpu", "0000:0c:02.0-slice-1"), inv->gpu[0].pci);
	hw_inventory_free(inv);
	fixture_close(root);
}

static void what_makes_no_sense_is_unknown(void **state)
{
	static const enum gpu_link none[9] = { U };

	(void)state;
	expect(THREE_AMD, none, 3);
	expect(THREE_AMD NODE("1", "location_id\\ndomain 0\\n") NODE("900", "location_id 3072\\n")
		       NODE("x", "location_id 5376\\n") NODE("2", "location_id 5376\\n")
			       LINK("2", "0", "type 11\\nnode_to 4000\\n")
				       LINK("2", "1", "type 11\\nnode_to 2\\n")
					       LINK("2", "2", "type eleven\\nnode_to 1\\n"),
	       none, 3);
	expect("", NULL, 0);
}

static void nvswitches_join_gpus_of_one_kind(void **state)
{
	static const enum gpu_link joined[] = { U, N, N, U }, apart[] = { U, U, U, U },
				   beside[] = { U, N, U, N, U, U, U, U, U };

	(void)state;
	expect(NVSWITCH NVIDIA("0000:1b:00.0") NVIDIA("0000:43:00.0"), joined, 2);
	expect(NVIDIA("0000:1b:00.0") NVIDIA("0000:43:00.0"), apart, 2);
	expect(NVSWITCH NVIDIA("0000:1b:00.0")
		       FUNCTION("0000:43:00.0", "0x10de", "0x26b9", "0x030200"),
	       apart, 2);
	expect(NVSWITCH NVIDIA("0000:1b:00.0") NVIDIA("0000:43:00.0") AMD("0000:50:00.0"), beside,
	       3);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(xgmi_is_read_from_the_topology),
		cmocka_unit_test(partitions_are_their_gpus),
		cmocka_unit_test(vfs_of_a_gpu_are_no_gpus_and_lead_to_it),
		cmocka_unit_test(what_makes_no_sense_is_unknown),
		cmocka_unit_test(nvswitches_join_gpus_of_one_kind),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
