/* One function again, its GID and P_Key tables, and device names: nothing cached, nothing outside
 * the root.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/err.h"
#include "base/mem.h"
#include "devstate/devstate.h"
#include "support/fixture.h"
#include "sysroot/sysroot.h"

#define VF "sys/bus/pci/devices/0000:3b:00.1"
static const struct bdf vf = { 0, 0x3b, 0, 1 };

static struct function_now look_at(const char *text)
{
	struct sysroot *root = fixture_text(text);
	struct function_now now;
	struct err err = { 0 };

	assert_int_equal(devstate_function(root, vf, &now, &err), 0);
	fixture_close(root);
	return now;
}

static void reads_driver_rdma_and_uverbs_of_a_function(void **state)
{
	struct function_now now = look_at("l " VF "/driver -> ../../drivers/mlx5_core\nl " VF
					  "/physfn -> ../0000:3b:00.0\n"
					  "d " VF "/infiniband/mlx5_4\n"
					  "f " VF "/infiniband_verbs/uverbs4/ibdev = mlx5_4\\n\n"
					  "f " VF "/infiniband_verbs/uverbs4/dev = 231:196\\n\n");

	(void)state;
	assert_string_equal(now.driver, "mlx5_core");
	assert_string_equal(now.rdma, "mlx5_4");
	assert_string_equal(now.uverbs, "uverbs4");
	assert_int_equal(now.physfn, 1);
}

static void leaves_empty_what_a_function_does_not_have(void **state)
{
	struct function_now now = look_at("l " VF "/driver -> ../../drivers/vfio-pci\n");

	(void)state;
	assert_string_equal(now.driver, "vfio-pci");
	assert_string_equal(now.rdma, "");
	assert_string_equal(now.uverbs, "");
	assert_int_equal(now.physfn, 0);
}

static void does_not_take_another_devices_uverbs(void **state)
{
	struct function_now now = look_at("d " VF "/infiniband/mlx5_4\n"
					  "f " VF "/infiniband_verbs/uverbs4/ibdev = mlx5_5\\n\n"
					  "f " VF "/infiniband_verbs/uverbs4/dev = 231:196\\n\n");

	(void)state;
	assert_string_equal(now.rdma, "mlx5_4");
	assert_string_equal(now.uverbs, "");
	now = look_at("d " VF "/infiniband/mlx5_4\n"
		      "f " VF "/infiniband_verbs/uverbs9/dev = 231:201\\n\n");
	assert_string_equal(now.uverbs, "uverbs9"); /* the only one, and it names nobody */
	now = look_at("d " VF "/infiniband/mlx5_4\n"
		      "f sys/class/infiniband_verbs/uverbs2/ibdev = mlx5_4\\n\n"
		      "f sys/class/infiniband_verbs/uverbs2/dev = bad\\n\n");
	assert_string_equal(now.uverbs, "uverbs2");
}

static void finds_soft_rdma_through_the_netdev(void **state)
{
	struct function_now now =
		look_at("d " VF "/net/eth7\n"
			"f sys/class/infiniband/rxe3/parent = eth7\\n\n"
			"f sys/class/infiniband/rxe2/parent = eth6\\n\n"
			"f sys/class/infiniband_verbs/uverbs1/ibdev = rxe3\\n\n"
			"f sys/class/infiniband_verbs/uverbs1/dev = 231:193\\n\n");

	(void)state;
	assert_string_equal(now.rdma, "rxe3");
	assert_string_equal(now.uverbs, "uverbs1");
}

static void says_that_a_function_is_gone(void **state)
{
	struct sysroot *root = fixture_text("d sys/bus/pci/devices\n");
	struct function_now now;
	struct err err = { 0 };

	(void)state;
	assert_int_equal(devstate_function(root, vf, &now, &err), -ENOENT);
	assert_string_equal(err.msg, "PCI function 0000:3b:00.1 is gone");
	fixture_close(root);
}

#define PORT "sys/class/infiniband/mlx5_0/ports/1"
static void reads_the_gids_that_are_set(void **state)
{
	struct sysroot *root = fixture_text(
		"f " PORT "/gids/0 = fe80:0000:0000:0000:bace:f6ff:fe12:3456\\n\n"
		"f " PORT "/gid_attrs/types/0 = IB/RoCE v1\\n\n"
		"f " PORT "/gid_attrs/ndevs/0 = eth0\\n\n"
		"f " PORT "/gids/1 = 0000:0000:0000:0000:0000:0000:0000:0000\\n\n"
		"f " PORT "/gids/10 = 0000:0000:0000:0000:0000:FFFF:0a00:0001\\n\n"
		"f " PORT "/gids/2 = nonsense\\n\n"
		"f " PORT "/gids/3 = \n"
		"f " PORT "/gids/4 = fe80:0000:0000:0000:bace:f6ff:fe12:34567\\n\n"
		"f " PORT "/gid_attrs/types/10 = a type that is longer than any we know\\n\n");
	static struct gid_entry gids[GID_TABLE_MAX];
	size_t n = 0;

	(void)state;
	assert_int_equal(devstate_gids(root, "mlx5_0", 1, gids, &n, NULL), 0);
	assert_int_equal(n, 2);
	assert_int_equal(gids[0].index, 0);
	assert_int_equal(gids[0].gid[0], 0xfe);
	assert_int_equal(gids[0].gid[15], 0x56);
	assert_string_equal(gids[0].type, "IB/RoCE v1");
	assert_string_equal(gids[0].ndev, "eth0");
	assert_int_equal(gids[1].index, 10);
	assert_int_equal(gids[1].gid[10], 0xff);
	assert_string_equal(gids[1].type, "");
	assert_string_equal(gids[1].ndev, "");
	fixture_close(root);
}

static void refuses_ports_and_devices_that_are_not_there(void **state)
{
	static const char *const names[] = { "mlx5_1", "", "..", "../net", "mlx5_0/ports/1" };
	struct sysroot *root = fixture_text("d " PORT "/gids\n");
	static struct gid_entry gids[GID_TABLE_MAX];
	struct err err = { 0 };
	uint16_t key;
	size_t n = 7;

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(names); i++) {
		assert_true(devstate_gids(root, names[i], 1, gids, &n, &err) < 0);
		assert_non_null(strstr(err.msg, names[i]));
		assert_int_equal(devstate_pkeys(root, names[i], 1, &key, 1), 0);
	}
	assert_int_equal(n, 7);
	assert_int_equal(devstate_gids(root, "mlx5_0", 2, gids, &n, &err), -ENOENT);
	assert_int_equal(devstate_gids(root, "mlx5_0", 1, gids, &n, &err), 0);
	assert_int_equal(n, 0);
	fixture_close(root);
}

static void reads_the_pkeys_that_are_set(void **state)
{
	struct sysroot *root = fixture_text("f " PORT "/pkeys/0 = 0xffff\\n\n"
					    "f " PORT "/pkeys/1 = 0x0000\\n\n"
					    "f " PORT "/pkeys/2 = 0x8001\\n\n"
					    "f " PORT "/pkeys/3 = 0x12345\\n\n"
					    "f " PORT "/pkeys/11 = 0x8002\\n\n");
	uint16_t keys[3] = { 0, 0, 77 };

	(void)state;
	assert_int_equal(devstate_pkeys(root, "mlx5_0", 1, keys, 2), 2);
	assert_int_equal(keys[0], 0xffff);
	assert_int_equal(keys[1], 0x8001);
	assert_int_equal(keys[2], 77);
	assert_int_equal(devstate_pkeys(root, "mlx5_0", 1, keys, 3), 3);
	assert_int_equal(keys[2], 0x8002);
	fixture_close(root);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(reads_driver_rdma_and_uverbs_of_a_function),
		cmocka_unit_test(leaves_empty_what_a_function_does_not_have),
		cmocka_unit_test(does_not_take_another_devices_uverbs),
		cmocka_unit_test(finds_soft_rdma_through_the_netdev),
		cmocka_unit_test(says_that_a_function_is_gone),
		cmocka_unit_test(reads_the_gids_that_are_set),
		cmocka_unit_test(refuses_ports_and_devices_that_are_not_there),
		cmocka_unit_test(reads_the_pkeys_that_are_set),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
