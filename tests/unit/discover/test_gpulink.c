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
		cmocka_unit_test(what_makes_no_sense_is_unknown),
		cmocka_unit_test(nvswitches_join_gpus_of_one_kind),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
