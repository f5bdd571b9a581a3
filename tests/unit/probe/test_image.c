/* Images that are folders with copies of libibverbs in them; and this machine itself, whose
 * libibverbs a child of this program is asked for. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/mem.h"
#include "found.h"
#include "railmate-probe/checks.h"
#include "railmate-probe/library.h"
#include "railmate-probe/told.h"
#include "support/fixture.h"
#include "support/slow.h"
#include "support/testarena.h"
#include "sysroot/sysroot.h"

/* The strings of a libibverbs that matter, and no more. */
#define LIBRARY(path, dir, abi)                                                                    \
	"f " path " = \\x7fELF\\x00IBVERBS_1.14\\x00lib%s-rdmav" abi                               \
	".so\\x00/etc/libibverbs.d\\x00" dir "/lib%s-rdmav" abi ".so\\x00\n"
#define USUAL	    "usr/lib/x86_64-linux-gnu/libibverbs.so.1"
#define USUAL_DIR   "/usr/lib/x86_64-linux-gnu/libibverbs"
#define GLIBC	    "f lib64/ld-linux-x86-64.so.2 = x\nf lib/ld-linux-aarch64.so.1 = x\n"
#define VF	    "l sys/class/infiniband/mlx5_4/device/driver -> ../../../../../mlx5_core\n"
#define CONFIG	    "f etc/libibverbs.d/mlx5.driver = # comment\\ndriver mlx5\\n\n"
#define PROVIDER(n) "f usr/lib/x86_64-linux-gnu/libibverbs/libmlx5-rdmav" n ".so = x\n"

static struct told_vf vf;
static struct told told;
static struct report report;

static int set_up(void **state)
{
	arena_set_up(state);
	vf = (struct told_vf) { .bdf = "0000:3b:00.2", .hca = "mlx5_4", .port = 1 };
	told = (struct told) { .vfs = &vf, .n_vfs = 1 };
	report = found_report(arena, &told);
	return 0;
}

static void check(const char *image)
{
	struct sysroot *root = fixture_text(image);

	check_image(root, &told, &report);
	fixture_close(root);
}

static void reads_what_a_library_would_load(void **state)
{
	struct sysroot *root = fixture_text(LIBRARY(USUAL, USUAL_DIR, "34") "f x = text\n");
	struct library l;

	(void)state;
	assert_int_equal(library_read(root, "/" USUAL, arena, &l), 0);
	assert_int_equal(l.abi, 34);
	assert_string_equal(l.provider_dir, USUAL_DIR);
	assert_string_equal(l.config_dir, "/etc/libibverbs.d");
	assert_true(library_read(root, "/x", arena, &l) < 0);
	assert_true(library_read(root, "/usr", arena, &l) < 0);
	fixture_close(root);
}

static void finds_nothing_wrong_in_a_good_image(void **state)
{
	(void)state;
	check(LIBRARY(USUAL, USUAL_DIR, "34") VF CONFIG PROVIDER("34"));
	found_assert(&report, OUTCOME_GOOD, "image-not-asked", "read as a file");
	assert_int_equal(report.n_findings, 1);
}

static void names_a_provider_that_is_missing(void **state)
{
	(void)state;
	check(LIBRARY(USUAL, USUAL_DIR, "34") VF CONFIG /* -dev packages have archives */
	      "f usr/lib/x86_64-linux-gnu/libmlx5-rdmav34.a = x\n");
	found_assert(
		&report, OUTCOME_BROKEN, "image-provider",
		"which has no mlx5 provider: no /usr/lib/x86_64-linux-gnu/libibverbs/libmlx5-rdmav34.so");
	check(LIBRARY(USUAL, USUAL_DIR, "60") VF CONFIG PROVIDER("34"));
	found_assert(&report, OUTCOME_BROKEN, "image-provider",
		     "of provider ABI 60, and its mlx5 provider is " USUAL_DIR
		     "/libmlx5-rdmav34.so");
	check(LIBRARY(USUAL, USUAL_DIR, "34")
		      VF PROVIDER("34") "f etc/libibverbs.d/rxe.driver = driver rxe\\n\n");
	found_assert(&report, OUTCOME_BROKEN, "image-provider",
		     "no file in /etc/libibverbs.d names its mlx5 provider");
}

static void names_a_second_libibverbs_without_the_provider(void **state)
{
	(void)state;
	check(LIBRARY(USUAL, USUAL_DIR, "34") VF CONFIG PROVIDER("34") LIBRARY(
		"opt/conda/lib/libibverbs.so.1", "/opt/conda/lib/libibverbs", "55")
		      LIBRARY("usr/lib/python3.11/dist-packages/nixl.libs/libibverbs-ab12.so.1.14.44.0",
			      USUAL_DIR, "34"));
	found_assert_none(&report, "image-provider");
	found_assert(&report, OUTCOME_SLOW, "image-second-libibverbs",
		     "a second libibverbs, which has no mlx5 provider");
	assert_string_equal(report.findings[1].on, "/opt/conda/lib/libibverbs.so.1");
	assert_int_equal(report.n_findings, 2); /* the wheel's copy finds the image's providers */
}

static void knows_the_provider_of_soft_rdma(void **state)
{
	(void)state;
	vf.hca = "rxe0";
	check(LIBRARY(USUAL, USUAL_DIR, "34") "f sys/class/infiniband/rxe0/parent = eth0\\n\n");
	found_assert(&report, OUTCOME_BROKEN, "image-provider", "no rxe provider");
}

static void tells_an_image_without_libibverbs_from_a_static_one(void **state)
{
	(void)state;
	check("d etc\n" VF);
	found_assert(&report, OUTCOME_GOOD, "image-static", "no loader");
	check(GLIBC VF);
	found_assert(&report, OUTCOME_BROKEN, "image-no-libibverbs", "no libibverbs.so.1");
	check("f lib/ld-musl-x86_64.so.1 = x\nf lib/ld-musl-aarch64.so.1 = x\n");
	found_assert(&report, OUTCOME_BROKEN, "image-no-libibverbs", "no libibverbs.so.1");
}

/* The build needs libibverbs-dev, so that this machine has a libibverbs. Its RDMA device is none of
 * this machine's. */
static void asks_the_libibverbs_of_a_live_image(void **state)
{
	struct sysroot *root;

	(void)state;
	if (is_emulated())
		skip(); /* its loader is not that of the image */
	vf.hca = "mlx5_4000";
	assert_int_equal(sysroot_open("/", &root, NULL), 0);
	check_image(root, &told, &report);
	sysroot_close(root);
	found_assert_none(&report, "image-not-asked");
	found_assert_none(&report, "image-no-libibverbs");
	found_assert_none(&report, "image-differs"); /* neither sees it */
}

/* Two VFs of one driver: its provider is named once, whatever ours makes of the kernel. */
static void names_a_provider_of_another_kernel(void **state)
{
	struct told_vf two[] = { vf, vf };
	struct sysroot *root;

	(void)state;
	if (is_emulated())
		skip();
	two[0].hca = "mlx5_4000";
	two[1].hca = "mlx5_4001";
	told = (struct told) { .vfs = two, .n_vfs = 2 };
	setenv("LD_LIBRARY_PATH", FAKE_VERBS, 1);
	assert_int_equal(sysroot_open("/", &root, NULL), 0);
	check_image(root, &told, &report);
	sysroot_close(root);
	unsetenv("LD_LIBRARY_PATH");
	found_assert(&report, OUTCOME_BROKEN, "image-abi",
		     "The image's libibverbs (" FAKE_VERBS "/libibverbs.so.1) leaves it out: "
		     "Driver mlx5 does not support the kernel ABI of 8 (supports 1 to 1)");
	assert_string_equal(report.findings[0].on, "mlx5_4000");
	found_assert_none(&report, "image-provider");
	found_assert_none(&report, "image-differs");
	assert_int_equal(report.n_findings, 1);
}

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define IS_SANITIZED true
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define IS_SANITIZED true
#endif
#endif
#ifndef IS_SANITIZED
#define IS_SANITIZED false
#endif

/* In a folder with a loader of its own, as in a package. */
static void runs_under_the_loader_of_the_image(void **state)
{
	char folder[] = "/tmp/railmate-image-XXXXXX";
	int packaged, alone;

	(void)state;
	if (is_emulated() ||
	    IS_SANITIZED) /* a sanitizer's library is found by our DT_RPATH alone */
		skip();
	assert_non_null(mkdtemp(folder));
	setenv("FOLDER", folder, 1);
	alone = system("cp /proc/$PPID/exe $FOLDER/program && $FOLDER/program --become x");
	packaged = system("touch $FOLDER/ld.so && $FOLDER/program --become x");
	assert_int_equal(system("rm -r $FOLDER"), 0);
	unsetenv("FOLDER");
	assert_int_equal(WEXITSTATUS(alone), 1);
	assert_int_equal(WEXITSTATUS(packaged), 42);
}

static int become(int argc, char **argv)
{
	char exe[256] = "";

	image_become(argv);
	return argc == 3 && strcmp(argv[2], "x") == 0 &&
			       readlink("/proc/self/exe", exe, sizeof(exe) - 1) > 0 &&
			       strstr(exe, "/ld-linux")
		       ? 42
		       : 1;
}

int main(int argc, char **argv)
{
	static const struct CMUnitTest tests[] = {
#define TEST(f) cmocka_unit_test_setup_teardown(f, set_up, arena_tear_down)
		TEST(reads_what_a_library_would_load),
		TEST(finds_nothing_wrong_in_a_good_image),
		TEST(names_a_provider_that_is_missing),
		TEST(names_a_second_libibverbs_without_the_provider),
		TEST(knows_the_provider_of_soft_rdma),
		TEST(tells_an_image_without_libibverbs_from_a_static_one),
		TEST(asks_the_libibverbs_of_a_live_image),
		TEST(names_a_provider_of_another_kernel),
		TEST(runs_under_the_loader_of_the_image),
	};

	if (argc == 2 && strcmp(argv[1], "--image-verbs") == 0)
		return image_verbs_main();
	if (argc > 1 && strcmp(argv[1], "--become") == 0)
		return become(argc, argv);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
