/* A container that is a folder: its limits, its nodes, the GIDs of its VFs. /dev/null stands in for
 * a verbs device, for which the machine needs no driver. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include <cmocka.h>

#include "railmate-probe/checks.h"
#include "found.h"
#include "support/fixture.h"
#include "support/testarena.h"
#include "sysroot/sysroot.h"
#include "railmate-probe/told.h"

#define IB   "sys/class/infiniband/mlx5_4/"
#define PORT IB "ports/1/"
#define LIMITS(n)                                                                                  \
	"f proc/self/limits = Max cpu time unlimited\\nMax locked memory         " n "    " n      \
	"    bytes\\n\n"                                                                           \
	"f proc/self/status = Name: x\\nCapEff:\\x0900000000a80425fb\\n\n"
#define HOST                                                                                       \
	"d dev/shm\n"                                                                              \
	"f " PORT "link_layer = Ethernet\\n\n"                                                     \
	"f sys/class/infiniband_verbs/uverbs4/ibdev = mlx5_4\\n\n"                                 \
	"f sys/class/infiniband_verbs/uverbs4/dev = 1:3\\n\n"
#define GID(i, gid, type)                                                                          \
	"f " PORT "gids/" #i " = " gid "\\n\nf " PORT "gid_attrs/types/" #i " = " type "\\n\n"
#define V4_GID "0000:0000:0000:0000:0000:ffff:0a00:0001"

static struct told_vf vf;
static struct told told;
static struct report report;

static int set_up(void **state)
{
	arena_set_up(state);
	vf = (struct told_vf) {
		.bdf = "0000:3b:00.2", .hca = "mlx5_4", .port = 1, .gid_index = -1
	};
	told = (struct told) { .vfs = &vf, .n_vfs = 1, .nccl_gid_index = -1 };
	report = found_report(arena, &told);
	return 0;
}

static struct sysroot *check(struct sysroot *root)
{
	check_container(root, &told, &report);
	return root;
}

static void put_node(const struct sysroot *root, const char *name, mode_t mode, dev_t number)
{
	char path[512];

	snprintf(path, sizeof(path), "%s/dev/infiniband", sysroot_path(root));
	if (mkdir(path, 0755) < 0)
		assert_int_equal(errno, EEXIST);
	snprintf(path, sizeof(path), "%s/dev/infiniband/%s", sysroot_path(root), name);
	if (mknod(path, S_IFCHR | mode, number) < 0) {
		assert_int_equal(errno, EPERM);
		skip(); /* not root */
	}
	assert_int_equal(chmod(path, mode), 0);
}

static void finds_nothing_wrong_in_a_good_container(void **state)
{
	struct sysroot *root = fixture_text(LIMITS("unlimited") HOST GID(3, V4_GID, "RoCE v2"));

	(void)state;
	vf.gid_index = 3;
	vf.gid = "10.0.0.1";
	put_node(root, "uverbs4", 0666, makedev(1, 3));
	fixture_close(check(root));
	found_assert_none(&report, NULL);
}

static void names_a_limit_of_locked_memory(void **state)
{
	(void)state;
	fixture_close(check(fixture_text(LIMITS("8388608") HOST)));
	found_assert(&report, OUTCOME_BROKEN, "memlock", "8192 KiB");
	fixture_close(check(fixture_text(LIMITS("1073741824") HOST)));
	found_assert(&report, OUTCOME_SLOW, "memlock", "1048576 KiB");
	fixture_close(check(fixture_text(HOST)));
	found_assert(&report, OUTCOME_NOT_MEASURED, "memlock", "No such file");
}

#define LOCKS	 "f proc/self/limits = Max locked memory 65536 65536 bytes\\n\n"
#define IPC_LOCK "f proc/self/status = CapEff:\\x0900000000a80465fb\\n\n"

static void counts_ipc_lock_in_the_initial_user_namespace_alone(void **state)
{
	(void)state;
	fixture_close(check(
		fixture_text(LOCKS IPC_LOCK "f proc/self/uid_map = 0 0 4294967295\\n\n" HOST)));
	found_assert_none(&report, "memlock");
	fixture_close(
		check(fixture_text(LOCKS IPC_LOCK "f proc/self/uid_map = 0 1000 65536\\n\n" HOST)));
	found_assert(&report, OUTCOME_BROKEN, "memlock", "64 KiB");
}

static void measures_shared_memory_against_the_ranks(void **state)
{
	(void)state;
	told.n_gpus = 65535; /* no disk has room for so many */
	fixture_close(check(fixture_text(LIMITS("unlimited") HOST)));
	found_assert(&report, OUTCOME_SLOW, "shm", "for 65535 GPUs");
	told.n_gpus = 2;
	fixture_close(check(fixture_text(LIMITS("unlimited"))));
	found_assert(&report, OUTCOME_BROKEN, "shm", "No such file");
}

static void names_a_node_that_is_absent_or_of_another_device(void **state)
{
	struct sysroot *root = fixture_text(LIMITS("unlimited") HOST);

	(void)state;
	check(root);
	found_assert(&report, OUTCOME_BROKEN, "uverbs-absent", "/dev/infiniband/uverbs4: No such");
	put_node(root, "uverbs4", 0666, makedev(1, 5));
	check(root);
	found_assert(&report, OUTCOME_BROKEN, "uverbs-number",
		     "is 1:5, and the kernel's device is 1:3");
	fixture_close(root);
}

static void names_a_node_that_its_user_may_not_open(void **state)
{
	struct sysroot *root = fixture_text(LIMITS("unlimited") HOST);

	(void)state;
	put_node(root, "uverbs4", 0600, makedev(1, 3));
	chmod(sysroot_path(root), 0755);
	assert_int_equal(seteuid(65534), 0);
	check(root);
	assert_int_equal(seteuid(0), 0);
	found_assert(&report, OUTCOME_BROKEN, "uverbs-mode", "User 65534 may not open");
	fixture_close(root);
}

static void names_nodes_of_other_pods_that_can_be_opened(void **state)
{
	struct sysroot *root = fixture_text(
		LIMITS("unlimited") HOST "f sys/class/infiniband_verbs/uverbs0/ibdev = mlx5_0\\n\n"
					 "f sys/class/infiniband_verbs/uverbs0/dev = 1:3\\n\n");

	(void)state;
	put_node(root, "uverbs4", 0666, makedev(1, 3));
	check(root);
	found_assert_none(&report, NULL);
	put_node(root, "uverbs0", 0666, makedev(1, 3));
	check(root);
	found_assert(&report, OUTCOME_SLOW, "uverbs-foreign",
		     "nodes that are not its own, 1: uverbs0 (mlx5_0)");
	fixture_close(root);
}

static void tells_why_an_rdma_device_is_not_there(void **state)
{
	(void)state;
	fixture_close(check(fixture_text(
		"d sys/class/infiniband\nf sys/class/infiniband_verbs/uverbs4/ibdev = mlx5_4\\n\n"
		"f sys/class/infiniband_verbs/uverbs4/dev = 231:196\\n\n")));
	found_assert(&report, OUTCOME_BROKEN, "rdma-exclusive", "another network namespace");
	fixture_close(check(fixture_text("d sys/class/infiniband\nd sys/module/mlx5_ib\n")));
	found_assert(&report, OUTCOME_BROKEN, "hca-gone", "0000:3b:00.2");
	found_assert_none(&report, "ib-modules");
	fixture_close(check(fixture_text("d sys/class/infiniband\n")));
	found_assert(&report, OUTCOME_BROKEN, "ib-modules", "module mlx5_ib");
	fixture_close(check(fixture_text("d sys/class\n")));
	found_assert(&report, OUTCOME_BROKEN, "ib-modules", "/sys/class/infiniband is not there");
	fixture_close(check(fixture_text("d sys/class/infiniband/mlx5_4\n")));
	found_assert(&report, OUTCOME_BROKEN, "ib-modules", "module ib_uverbs");
}

static void judges_the_gid_that_was_told(void **state)
{
	(void)state;
	vf.gid_index = 3;
	fixture_close(
		check(fixture_text(HOST GID(3, "0000:0000:0000:0000:0000:0000:0000:0000", ""))));
	found_assert(&report, OUTCOME_BROKEN, "gid-gone", "GID 3: the entry is empty");
	fixture_close(check(fixture_text(HOST GID(3, "fe80::1", "RoCE v2"))));
	found_assert(&report, OUTCOME_SLOW, "gid-link-local", "GID 3");
	found_assert_none(&report, "gid-type");
	fixture_close(check(fixture_text(HOST GID(3, V4_GID, "IB/RoCE v1"))));
	found_assert(&report, OUTCOME_BROKEN, "gid-type", "IB/RoCE v1");
	vf.gid = "10.0.0.2";
	fixture_close(check(fixture_text(HOST GID(3, V4_GID, "RoCE v2"))));
	found_assert(&report, OUTCOME_BROKEN, "gid-changed", "was 10.0.0.2");
	told.nccl_gid_index = 7; /* the variable wins */
	fixture_close(check(fixture_text(HOST GID(3, V4_GID, "RoCE v2"))));
	found_assert(&report, OUTCOME_BROKEN, "gid-index", "GID 7: No such file");
}

/* InfiniBand goes by LIDs: NCCL's index is for RoCE, and an image may set it for all fabrics. */
static void ignores_an_index_of_nccl_on_infiniband(void **state)
{
	(void)state;
	told.nccl_gid_index = 3;
	fixture_close(check(fixture_text(LIMITS(
		"unlimited") "d dev/shm\nf " PORT "link_layer = InfiniBand\\n\n"
			     "f " PORT "gids/0 = fe80:0000:0000:0000:0000:0000:0000:0001\\n\n")));
	found_assert_none(&report, "gid-index");
	found_assert_none(&report, "gid-link-local");
	fixture_close(check(fixture_text(LIMITS("unlimited") HOST)));
	found_assert(&report, OUTCOME_BROKEN, "gid-index", "There is no GID 3");
}

/* Pools whose libraries do without have no node of rdma_cm. */
static void misses_no_rdma_cm(void **state)
{
	(void)state;
	fixture_close(check(fixture_text(LIMITS("unlimited") HOST
					 "f sys/class/misc/rdma_cm/dev = 10:60\\n\n")));
	for (size_t i = 0; i < report.n_findings; i++)
		assert_null(strstr(report.findings[i].on ? report.findings[i].on : "", "rdma_cm"));
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
#define TEST(f) cmocka_unit_test_setup_teardown(f, set_up, arena_tear_down)
		TEST(finds_nothing_wrong_in_a_good_container),
		TEST(ignores_an_index_of_nccl_on_infiniband),
		TEST(misses_no_rdma_cm),
		TEST(names_a_limit_of_locked_memory),
		TEST(counts_ipc_lock_in_the_initial_user_namespace_alone),
		TEST(measures_shared_memory_against_the_ranks),
		TEST(names_a_node_that_is_absent_or_of_another_device),
		TEST(names_a_node_that_its_user_may_not_open),
		TEST(names_nodes_of_other_pods_that_can_be_opened),
		TEST(tells_why_an_rdma_device_is_not_there),
		TEST(judges_the_gid_that_was_told),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
