/* A file that is read into the memory of a GPU by a cuFile that is a fake (tests/fakegpu). */
#include <dlfcn.h>
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "found.h"
#include "railmate-probe/gds.h"
#include "support/fixture.h"
#include "support/testarena.h"
#include "sysroot/sysroot.h"

#define GPU   "0000:19:00.0"
#define STATS "f proc/driver/nvidia-fs/stats = IO stats: Enabled\\nReads : n=7 ok=7 err=0\\n\n"

static struct report report;
static struct sysroot *root;

static int set_up(void **state)
{
	arena_set_up(state);
	report = found_report(arena, NULL);
	unsetenv("FAKE_GPU");
	unsetenv("FAKE_NVFS");
	return 0;
}

static int load_fakes(void **state)
{
	(void)state;
	return dlopen(FAKE_CUDA, RTLD_NOW) && dlopen(FAKE_CUFILE, RTLD_NOW) ? 0 : -1;
}

/* stats: do reads by cuFile go into those of nvidia-fs? */
static int check(const char *machine, bool stats)
{
	char path[512];
	FILE *f;
	int r;

	root = fixture_text(machine);
	snprintf(path, sizeof(path), "%s/file", sysroot_path(root));
	f = fopen(path, "w");
	for (int i = 0; f && i < 10000; i++)
		fputc(i * 7 % 251, f);
	assert_true(f && fclose(f) == 0);
	snprintf(path, sizeof(path), "%s/proc/driver/nvidia-fs/stats", sysroot_path(root));
	if (stats)
		setenv("FAKE_NVFS", path, 1);
	r = gds_check(root, GPU, "/file", &report);
	fixture_close(root);
	return r;
}

static void tells_direct_reads_by_the_statistics(void **state)
{
	(void)state;
	assert_int_equal(check(STATS, true), 0);
	found_assert(&report, OUTCOME_GOOD, "gds-direct", "directly into the GPU, in 1 reads");
}

static void tells_reads_through_the_host(void **state)
{
	(void)state;
	assert_int_equal(check(STATS, false), 0);
	found_assert(&report, OUTCOME_SLOW, "gds-compatible", "nvidia-fs did no read");
}

static void does_not_guess_without_statistics(void **state)
{
	(void)state;
	assert_int_equal(check("d proc\n", false), 0);
	found_assert(&report, OUTCOME_NOT_MEASURED, "gds-driver", "nvidia-fs is not loaded");
	assert_int_equal(check("f proc/driver/nvidia-fs/stats = IO stats: Disabled\\nReads : err=0 "
			       "io_state_err=0\\nWrites : n=1 ok=1\\n\n",
			       false),
			 0);
	found_assert(&report, OUTCOME_NOT_MEASURED, "gds-statistics", "are off");
}

static void names_what_fails(void **state)
{
	(void)state;
	setenv("FAKE_GPU", "cufile=5001", 1);
	assert_int_equal(check(STATS, true), -EIO);
	found_assert(&report, OUTCOME_NOT_MEASURED, "gds-cufile",
		     "cuFileDriverOpen fails: cuFile error 5001");
	setenv("FAKE_GPU", "read=5022", 1);
	assert_int_equal(check(STATS, true), -EIO);
	found_assert(&report, OUTCOME_NOT_MEASURED, "gds-cufile",
		     "cuFileRead fails: cuFile error 5022");
	setenv("FAKE_GPU", "copy=700", 1);
	assert_int_equal(check(STATS, true), -EIO);
	found_assert(&report, OUTCOME_NOT_MEASURED, "memory-copy", "cannot be compared");
	setenv("FAKE_GPU", "flip=1", 1);
	assert_int_equal(check(STATS, true), -EILSEQ);
	found_assert(&report, OUTCOME_BROKEN, "gds-bytes", "not those of the file");
}

static void names_a_file_that_cannot_be_read(void **state)
{
	(void)state;
	root = fixture_text("d folder\nf small = x\n");
	assert_int_equal(gds_check(root, GPU, "/none", &report), -ENOENT);
	found_assert(&report, OUTCOME_NOT_MEASURED, "gds-file", "No such file");
	assert_int_equal(gds_check(root, GPU, "/small", &report), -EINVAL);
	assert_int_equal(gds_check(root, GPU, "/folder", &report), -EINVAL);
	found_assert(&report, OUTCOME_NOT_MEASURED, "gds-file", "no regular file of 4 KiB or more");
	fixture_close(root);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
#define TEST(f) cmocka_unit_test_setup_teardown(f, set_up, arena_tear_down)
		TEST(tells_direct_reads_by_the_statistics), TEST(tells_reads_through_the_host),
		TEST(does_not_guess_without_statistics),    TEST(names_what_fails),
		TEST(names_a_file_that_cannot_be_read),
	};

	return cmocka_run_group_tests(tests, load_fakes, NULL);
}
