/* GPU memory by libraries that are fakes (tests/fakegpu): a library that was loaded is found by its
 * SONAME. */
#include <dlfcn.h>
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "found.h"
#include "railmate-probe/gpu.h"
#include "railmate-probe/told.h"
#include "railmate-probe/wire.h"
#include "support/fixture.h"
#include "support/testarena.h"
#include "sysroot/sysroot.h"

#define NVIDIA "0000:19:00.0"
#define AMD    "0000:83:00.0"
#define VENDORS                                                                                    \
	"f sys/bus/pci/devices/" NVIDIA "/vendor = 0x10de\\n\n"                                    \
	"f sys/bus/pci/devices/" AMD "/vendor = 0x1002\\n\n"
#define PEERMEM "d sys/module/nvidia_peermem\nd sys/kernel/mm/memory_peers/amdkfd\n"
#define SIZE	100000

static struct told_vf vf;
static struct told_gpu gpus[] = { { NVIDIA }, { AMD } };
static struct told_pair pairs[] = { { 0, 0 } };
static struct told told;
static struct report report;
static struct sysroot *root;
static struct gpu *gpu;

static int set_up(void **state)
{
	arena_set_up(state);
	vf = (struct told_vf) { .bdf = "0000:3b:00.2", .hca = "mlx5_4", .port = 1 };
	told = (struct told) {
		.vfs = &vf, .n_vfs = 1, .gpus = gpus, .n_gpus = 2, .pairs = pairs, .n_pairs = 1
	};
	report = found_report(arena, &told);
	root = fixture_text(VENDORS PEERMEM);
	gpu = NULL;
	unsetenv("FAKE_GPU");
	return 0;
}

static int tear_down(void **state)
{
	gpu_close(gpu);
	fixture_close(root);
	return arena_tear_down(state);
}

static void open_gpu(const char *bdf)
{
	assert_int_equal(gpu_open(root, bdf, &report, &gpu), 0);
}

/* In a child, for the fakes come after it, and a library of this machine would stay. */
static int open_without_library(void)
{
	int status;
	pid_t pid = fork();

	assert_true(pid >= 0);
	if (pid == 0) {
		if (dlopen("libcuda.so.1", RTLD_NOW))
			_exit(77);
		_exit(gpu_open(root, NVIDIA, &report, &gpu) == -ENOSYS &&
				      strstr(report.findings[0].what, "libcuda.so.1: cannot open")
			      ? (int)report_exit(&report)
			      : 1);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	return WEXITSTATUS(status);
}

static void says_that_there_is_no_library(void **state)
{
	int status = open_without_library();

	(void)state;
	assert_non_null(dlopen(FAKE_CUDA, RTLD_NOW));
	assert_non_null(dlopen(FAKE_HIP, RTLD_NOW));
	if (status == 77)
		skip(); /* a machine with a GPU */
	assert_int_equal(status, PROBE_EXIT_NO_GPU_LIBRARY);
}

static void takes_the_ways_from_the_best_to_the_last(void **state)
{
	static const char *const ways[] = { "data direct", "dmabuf pcie", "dmabuf", "peer memory" };
	struct wire_memory m;

	(void)state;
	vf.data_direct = "0009:03:00.0";
	open_gpu(NVIDIA);
	for (unsigned i = 0; i < 4; i++) {
		assert_int_equal(gpu_memory(gpu, SIZE, i, &report, &m), 0);
		assert_string_equal(m.way, ways[i]);
		assert_string_equal(m.name, NVIDIA);
		assert_int_equal(m.data_direct, i == 0);
		assert_int_equal(m.dmabuf_fd >= 0, i < 3);
		assert_int_equal(m.size, SIZE);
	}
	assert_int_equal(gpu_memory(gpu, SIZE, 4, &report, &m), -ENOTSUP);
	found_assert_none(&report, NULL);
}

/* The bytes that a NIC would see through the dmabuf are those of the GPU. */
static void fills_and_verifies(const char *bdf)
{
	struct wire_memory m;
	unsigned char expected[SIZE], *dmabuf;

	open_gpu(bdf);
	assert_int_equal(gpu_memory(gpu, SIZE, 0, &report, &m), 0);
	assert_int_equal(m.fill(&m, 7), 0);
	assert_int_equal(m.verify(&m, 7), 0);
	assert_int_equal(m.verify(&m, 8), -EILSEQ);
	dmabuf = mmap(NULL, SIZE, PROT_READ | PROT_WRITE, MAP_SHARED, m.dmabuf_fd, 0);
	assert_true(dmabuf != MAP_FAILED);
	wire_pattern(expected, SIZE, 7);
	assert_memory_equal(dmabuf, expected, SIZE);
	dmabuf[SIZE - 1] ^= 1;
	assert_int_equal(m.verify(&m, 7), -EILSEQ);
	munmap(dmabuf, SIZE);
	setenv("FAKE_GPU", "copy=719", 1);
	assert_int_equal(m.fill(&m, 7), -EIO);
	assert_int_equal(m.verify(&m, 7), -EIO);
}

static void fills_and_verifies_memory_of_nvidia(void **state)
{
	(void)state;
	fills_and_verifies(NVIDIA);
}

static void fills_and_verifies_memory_of_amd(void **state)
{
	(void)state;
	fills_and_verifies(AMD);
	found_assert_none(&report, NULL);
}

static void leaves_out_what_the_driver_has_not_and_says_so(void **state)
{
	struct wire_memory m;

	(void)state;
	setenv("FAKE_GPU", "pcie=1", 1); /* a driver before 12.8 */
	open_gpu(NVIDIA);
	assert_int_equal(gpu_memory(gpu, SIZE, 0, &report, &m), 0);
	assert_string_equal(m.way, "dmabuf");
	assert_int_equal(gpu_memory(gpu, SIZE, 1, &report, &m), 0);
	assert_string_equal(m.way, "peer memory");
	assert_int_equal(m.dmabuf_fd, -1);
	found_assert(&report, OUTCOME_GOOD, "gpu-no-pcie", "an error of the fake");
	assert_int_equal(report.n_findings, 1); /* once */
	gpu_close(gpu);
	setenv("FAKE_GPU", "export=2", 1);
	open_gpu(NVIDIA);
	assert_int_equal(gpu_memory(gpu, SIZE, 0, &report, &m), 0);
	assert_string_equal(m.way, "peer memory");
	found_assert(&report, OUTCOME_GOOD, "gpu-bar1", "out of memory");
	gpu_close(gpu);
	setenv("FAKE_GPU", "dmabuf=0 peer=0", 1);
	open_gpu(NVIDIA);
	assert_int_equal(gpu_memory(gpu, SIZE, 0, &report, &m), -ENOTSUP);
	found_assert(&report, OUTCOME_GOOD, "gpu-no-dmabuf", "exports no dmabuf");
	found_assert(&report, OUTCOME_GOOD, "gpu-no-peer", "offers none for this GPU");
	found_assert(&report, OUTCOME_BROKEN, "gpu-no-way", "no dmabuf, no peer memory");
}

static void misses_the_module_of_peer_memory(void **state)
{
	struct wire_memory m;

	(void)state;
	fixture_close(root);
	root = fixture_text(VENDORS);
	setenv("FAKE_GPU", "export=4096", 1);
	open_gpu(AMD);
	assert_int_equal(gpu_memory(gpu, SIZE, 0, &report, &m), -ENOTSUP);
	found_assert(&report, OUTCOME_GOOD, "gpu-no-dmabuf", "HSA_STATUS_ERROR");
	found_assert(&report, OUTCOME_GOOD, "gpu-no-peer", "kernel module is not loaded");
	found_assert(&report, OUTCOME_BROKEN, "gpu-no-way", "no dmabuf");
}

static void says_why_a_gpu_cannot_be_opened(void **state)
{
	struct wire_memory m;

	(void)state;
	setenv("FAKE_GPU", "init=803", 1);
	assert_int_equal(gpu_open(root, NVIDIA, &report, &gpu), -ENODEV);
	found_assert(&report, OUTCOME_NOT_MEASURED, "gpu-driver", "error 803, an error of");
	setenv("FAKE_GPU", "find=101", 1);
	setenv("CUDA_VISIBLE_DEVICES", "1", 1);
	assert_int_equal(gpu_open(root, NVIDIA, &report, &gpu), -ENODEV);
	found_assert(
		&report, OUTCOME_NOT_MEASURED, "gpu-hidden",
		"does not see this GPU: error 101, an error of the fake; CUDA_VISIBLE_DEVICES is set");
	setenv("FAKE_GPU", "allocate=2", 1);
	open_gpu(NVIDIA);
	assert_int_equal(gpu_memory(gpu, SIZE, 0, &report, &m), -ENOMEM);
	found_assert(&report, OUTCOME_NOT_MEASURED, "gpu-memory", "out of memory");
	assert_int_equal(report_exit(&report), PROBE_EXIT_NOT_MEASURED);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
#define TEST(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)
		TEST(says_that_there_is_no_library),
		TEST(takes_the_ways_from_the_best_to_the_last),
		TEST(fills_and_verifies_memory_of_nvidia),
		TEST(fills_and_verifies_memory_of_amd),
		TEST(leaves_out_what_the_driver_has_not_and_says_so),
		TEST(misses_the_module_of_peer_memory),
		TEST(says_why_a_gpu_cannot_be_opened),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
