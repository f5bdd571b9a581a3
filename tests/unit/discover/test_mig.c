/* Which GPU a MIG device is of: by the driver's capabilities, by CDI specs, by its id. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

#include "base/mem.h"
#include "base/str.h"
#include "hw/inventory.h"
#include "support/fixture.h"
#include "sysroot/sysroot.h"

#define GPU(bdf, minor)                                                                            \
	"f sys/bus/pci/devices/" bdf "/vendor = 0x10de\\n\n"                                       \
	"f sys/bus/pci/devices/" bdf "/device = 0x20b0\\n\n"                                       \
	"f sys/bus/pci/devices/" bdf "/class = 0x030200\\n\n"                                      \
	"l sys/bus/pci/devices/" bdf "/driver -> ../../drivers/nvidia\n"                           \
	"f proc/driver/nvidia/gpus/" bdf "/information = GPU UUID: GPU-aa" minor                   \
	"\\nDevice Minor: " minor "\\n\n"
/* The minor numbers are not in the order of addresses. */
#define TWO_GPUS	   "d sys/bus/pci/drivers/nvidia\n" GPU("0000:0c:00.0", "1") GPU("0000:15:00.0", "0")
#define CAPABLE(minor)	   "d proc/driver/nvidia/capabilities/gpu" minor "/mig\n"
#define INSTANCE(minor, n) "d proc/driver/nvidia/capabilities/gpu" minor "/mig/gi" n "/ci0\n"
#define DEVICE(id, node)                                                                           \
	"{\"name\": \"" id "\", \"containerEdits\": {\"deviceNodes\": ["                           \
	"{\"path\": \"/dev/nvidia-caps/nvidia-cap12\"}, {\"path\": \"" node "\"}]}}"
#define SPEC(file, devices)                                                                        \
	"f " file " = {\"cdiVersion\": \"0.5.0\", \"kind\": \"x/mig\", \"devices\": [" devices     \
	"]}\\n\n"
#define PLUGIN "var/run/cdi/k8s.device-plugin.nvidia.com-gpu.json"

/* Of the GPUs, by their addresses; -1: not known. */
struct row {
	const char *id;
	int gpu;
};

static void expect(const char *text, const struct row *rows, size_t n, size_t notes)
{
	struct sysroot *root = fixture_text(text);
	struct hw_inventory *inv = fixture_discover(root);

	assert_int_equal(inv->n_notes, notes);
	for (size_t i = 0; i < n; i++) {
		int want = rows[i].gpu < 0 ? -1 : inv->gpu[rows[i].gpu].pci;

		if (hw_gpu_of_id(inv, "nvidia.com/mig-1g.5gb", rows[i].id) != want)
			fail_msg("%s is not of GPU %d", rows[i].id, rows[i].gpu);
	}
	hw_inventory_free(inv);
	fixture_close(root);
}

#define EXPECT(text, notes, ...)                                                                   \
	do {                                                                                       \
		static const struct row rows_[] = { __VA_ARGS__ };                                 \
		expect(text, rows_, ARRAY_LEN(rows_), notes);                                      \
	} while (0)

static void every_id_is_of_the_one_gpu_that_has_mig_devices(void **state)
{
	(void)state;
	EXPECT(TWO_GPUS CAPABLE("0") INSTANCE("1", "1") INSTANCE("1", "2"), 0, { "MIG-4711", 0 },
	       { "MIG-0815::3", 0 }, { "GPU-aa0", 1 });
	EXPECT(TWO_GPUS INSTANCE("0", "9"), 0, { "MIG-4711", 1 });
}

static void where_several_have_some_or_that_is_not_known_no_id_is(void **state)
{
	(void)state;
	EXPECT(TWO_GPUS INSTANCE("0", "1") INSTANCE("1", "1"), 0, { "MIG-4711", -1 });
	EXPECT(TWO_GPUS CAPABLE("0") CAPABLE("1"), 0, { "MIG-4711", -1 });
	EXPECT(TWO_GPUS, 0, { "MIG-4711", -1 });
	/* A third one, of which the driver does not say its number */
	EXPECT(TWO_GPUS INSTANCE("1", "1") GPU("0000:1e:00.0", "x"), 0, { "MIG-4711", -1 });
}

static void a_cdi_spec_names_the_gpu_by_its_device_node(void **state)
{
	(void)state;
	EXPECT(TWO_GPUS INSTANCE("0", "1") INSTANCE("1", "1") SPEC(
		       PLUGIN, DEVICE("MIG-a", "/dev/nvidia0") "," DEVICE(
				       "MIG-b", "/dev/nvidia1") "," DEVICE("0:0", "/dev/nvidia1")),
	       0, { "MIG-a", 1 }, { "MIG-b", 0 }, { "mig-b", -1 }, { "MIG-c", -1 }, { "0:0", -1 });
	EXPECT(TWO_GPUS SPEC("etc/cdi/nvidia.json", DEVICE("MIG-a", "/dev/nvidia0")), 0,
	       { "MIG-a", 1 });
}

static void a_spec_that_says_half_of_it_says_nothing(void **state)
{
	(void)state;
	EXPECT(TWO_GPUS INSTANCE("0", "1") SPEC(
		       PLUGIN,
		       DEVICE("MIG-away", "/dev/nvidia7") "," DEVICE(
			       "MIG-none",
			       "/dev/nvidiactl") ",{\"name\": \"MIG-bare\"},"
						 "{\"name\": 7},null,"
						 "{\"name\": \"MIG-both\", \"containerEdits\": {\"deviceNodes\": ["
						 "{\"path\": \"/dev/nvidia0\"}, {\"path\": \"/dev/nvidia1\"}]}}"),
	       0, { "MIG-away", -1 }, { "MIG-none", -1 }, { "MIG-bare", -1 }, { "MIG-both", -1 },
	       { "MIG-other", 1 });
	/* Two that differ */
	EXPECT(TWO_GPUS SPEC(PLUGIN, DEVICE("MIG-a", "/dev/nvidia0"))
		       SPEC("etc/cdi/nvidia.json", DEVICE("MIG-A", "/dev/nvidia1")),
	       0, { "MIG-a", -1 });
	/* A number that no GPU can have, and one that two have */
	EXPECT(TWO_GPUS SPEC(
		       PLUGIN,
		       "{\"name\": \"MIG-a\", \"containerEdits\": {\"deviceNodes\": ["
		       "{\"path\": \"/dev/nvidia0\"}, {\"path\": \"/dev/nvidia4294967296\"}]}}"),
	       0, { "MIG-a", -1 });
	EXPECT(TWO_GPUS GPU("0000:1e:00.0", "0") SPEC(PLUGIN, DEVICE("MIG-a", "/dev/nvidia0")), 0,
	       { "MIG-a", -1 });
}

static void a_spec_that_cannot_be_read_is_noted_and_others_count(void **state)
{
	(void)state;
	EXPECT(TWO_GPUS "f " PLUGIN " = {\"devices\": [\\n\n" SPEC("etc/cdi/nvidia.json",
								   DEVICE("MIG-a", "/dev/nvidia0")),
	       1, { "MIG-a", 1 });
	EXPECT(TWO_GPUS "f " PLUGIN " = []\\n\n", 0, { "MIG-a", -1 });
	/* A folder that is none may have had the spec that differs. */
	EXPECT(TWO_GPUS "f etc/cdi = x\\n\n" SPEC(PLUGIN, DEVICE("MIG-a", "/dev/nvidia0")), 1,
	       { "MIG-a", 1 });
	/* Those of others are not read. */
	EXPECT(TWO_GPUS "f var/run/cdi/rdma_vf.json = {\\n\n", 0, { "MIG-a", -1 });
}

static void the_ids_of_old_drivers_name_their_gpu(void **state)
{
	(void)state;
	EXPECT(TWO_GPUS, 0, { "MIG-GPU-aa0/1/0", 1 }, { "MIG-GPU-aa1/13/0", 0 },
	       { "MIG-GPU-aa/1/0", -1 }, { "MIG-GPU-", -1 }, { "MIG-", -1 });
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_id_is_of_the_one_gpu_that_has_mig_devices),
		cmocka_unit_test(where_several_have_some_or_that_is_not_known_no_id_is),
		cmocka_unit_test(a_cdi_spec_names_the_gpu_by_its_device_node),
		cmocka_unit_test(a_spec_that_says_half_of_it_says_nothing),
		cmocka_unit_test(a_spec_that_cannot_be_read_is_noted_and_others_count),
		cmocka_unit_test(the_ids_of_old_drivers_name_their_gpu),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
