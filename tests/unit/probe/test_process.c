/* Jobs that are folders below proc/, whose counters move while they are looked at; and real
 * processes of this program. */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/mem.h"
#include "found.h"
#include "railmate-probe/checks.h"
#include "railmate-probe/told.h"
#include "support/fixture.h"
#include "support/slow.h"
#include "support/testarena.h"
#include "sysroot/sysroot.h"

#define COUNTERS "sys/class/infiniband/mlx5_4/ports/1/counters/"
#define NET(eth0, net1)                                                                             \
	"Inter-|   Receive\\n face |bytes\\n    lo: 9 0 0 0 0 0 0 0 9 0 0 0 0 0 0 0\\n  eth0:" eth0 \
	" 1 0 0 0 0 0 0 0 1 0 0 0 0 0 0\\n  net1: " net1 " 1 0 0 0 0 0 0 0 1 0 0 0 0 0 0\\n"
#define JOB                                                                                        \
	"f proc/41/comm = python3\\n\n"                                                            \
	"f proc/41/cmdline = /usr/bin/python3.11\\x00train.py\\x00\n"                              \
	"f proc/41/net/dev = " NET(                                                                \
		"0", "0") "\n"                                                                     \
			  "f " COUNTERS "port_xmit_data = 0\\n\nf " COUNTERS                       \
			  "port_rcv_data = 0\\n\n"                                                 \
			  "l sys/class/infiniband/mlx5_4/device/driver -> ../../../../mlx5_core\n" \
			  "f sys/class/infiniband_verbs/uverbs4/ibdev = mlx5_4\\n\n"               \
			  "f sys/class/infiniband_verbs/uverbs4/dev = 231:196\\n\n"                \
			  "f sys/class/infiniband_verbs/uverbs0/ibdev = mlx5_0\\n\n"               \
			  "f sys/class/infiniband_verbs/uverbs0/dev = 231:192\\n\n"
#define MAP(path)    "7f0000000000-7f0000001000 r-xp 00000000 08:01 42     " path "\\n"
#define FD(n, where) "l proc/41/fd/" n " -> " where "\n"
#define OWN_FD	     FD("0", "/dev/null") FD("7", "/dev/infiniband/uverbs4")
#define LIBRARY(path, abi)                                                                         \
	"f " path " = \\x7fELF\\x00IBVERBS_1.14\\x00lib%s-rdmav" abi                               \
	".so\\x00/etc/libibverbs.d\\x00\n"
#define MAPS                                                                                       \
	"f proc/41/maps = " MAP("/usr/bin/python3.11") MAP(                                        \
		"/usr/lib/libibverbs.so.1.14.44.0") MAP("/usr/lib/libibverbs/libmlx5-rdmav34.so")  \
		MAP("/opt/nccl/libnccl.so.2") "7ffd000-7ffe000 rw-p 00000000 00:00 0 [stack]\\n\n"
#define GOOD JOB OWN_FD MAPS LIBRARY("usr/lib/libibverbs.so.1.14.44.0", "34")

static struct told_vf vf;
static struct told told;
static struct report report;

static int set_up(void **state)
{
	arena_set_up(state);
	vf = (struct told_vf) {
		.bdf = "0000:3b:00.2", .hca = "mlx5_4", .port = 1, .netdev = "net1"
	};
	told = (struct told) { .vfs = &vf, .n_vfs = 1 };
	report = found_report(arena, &told);
	return 0;
}

/* What moves while check_process() waits. */
struct move {
	const struct sysroot *root;
	const char *file, *text;
};

static void *move(void *arg)
{
	const struct move *m = arg;
	char path[512];
	FILE *f;

	usleep(300000);
	snprintf(path, sizeof(path), "%s/%s", sysroot_path(m->root), m->file);
	f = fopen(path, "w");
	if (!f || fputs(m->text, f) < 0 || fclose(f) != 0)
		abort();
	return NULL;
}

static void check(const char *machine, const char *file, const char *text)
{
	struct sysroot *root = fixture_text(machine);
	struct move m = { root, file, text };
	pthread_t mover;

	if (file)
		assert_int_equal(pthread_create(&mover, NULL, move, &m), 0);
	check_process(root, 41, file ? 1 : 0.01, &told, &report);
	if (file)
		pthread_join(mover, NULL);
	fixture_close(root);
}

static void tells_a_job_over_rdma(void **state)
{
	(void)state;
	check(GOOD, COUNTERS "port_xmit_data", "250000000\n"); /* words of 4 bytes */
	found_assert(&report, OUTCOME_GOOD, "job-rdma",
		     "uses RDMA: 1.000 GB/s over its VFs, 0.000");
	found_assert(&report, OUTCOME_GOOD, "job-libraries",
		     "libibverbs: /usr/lib/libibverbs.so.1.14.44.0; NCCL: /opt/nccl/libnccl.so.2; "
		     "1 of its VFs' devices open");
	assert_int_equal(report.n_findings, 2);
}

static const char moved_eth0[] = "  eth0:500000000 1 0 0 0 0 0 0 500000000 1 0 0 0 0 0 0\n";
static const char moved_net1[] = "  net1: 500000000 1 0 0 0 0 0 0 500000000 1 0 0 0 0 0 0\n";

static void tells_a_job_over_tcp_and_why(void **state)
{
	(void)state;
	check(GOOD, "proc/41/net/dev", moved_eth0);
	/* data may be loaded between two collectives */
	found_assert(&report, OUTCOME_SLOW, "job-tcp", "Nothing went by RDMA in");
	check(JOB MAPS "d proc/41/fd\n", "proc/41/net/dev", moved_net1);
	found_assert(&report, OUTCOME_BROKEN, "job-tcp",
		     "over its VFs' interfaces, no RDMA: it has no device of its VFs open");
	check(JOB OWN_FD "f proc/41/maps = " MAP("/bin/x") "\n", "proc/41/net/dev", moved_eth0);
	found_assert(&report, OUTCOME_BROKEN, "job-tcp", "no RDMA: it has no libibverbs");
	found_assert_none(&report, "job-provider");
}

static void tells_soft_rdma_by_its_packets(void **state)
{
	static const char sent[] = "sys/class/infiniband/mlx5_4/ports/1/hw_counters/sent_pkts";

	(void)state;
	check(GOOD "f sys/class/infiniband/mlx5_4/ports/1/hw_counters/sent_pkts = 0\\n\n", sent,
	      "90000\n");
	found_assert(&report, OUTCOME_GOOD, "job-rdma", "uses RDMA: 90000 packets a second");
}

static void judges_nothing_by_an_idle_job(void **state)
{
	(void)state;
	check(GOOD, NULL, NULL);
	found_assert(&report, OUTCOME_NOT_MEASURED, "job-idle", "Nothing moved in 0.01 s");
}

static void names_a_libibverbs_without_the_provider(void **state)
{
	(void)state;
	check(JOB OWN_FD LIBRARY("opt/conda/lib/libibverbs.so.1", "55")
		      LIBRARY("usr/lib/libibverbs.so.1", "34") "f proc/41/maps = " MAP(
			      "/usr/lib/libibverbs.so.1") MAP("/opt/conda/lib/libibverbs.so.1")
			      MAP("/usr/lib/libibverbs/libmlx5-rdmav34.so") "\n",
	      NULL, NULL);
	found_assert(&report, OUTCOME_BROKEN, "job-provider",
		     "a second libibverbs, /opt/conda/lib/libibverbs.so.1, of ABI 55, and its mlx5 "
		     "provider is of ABI 34");
	check(JOB OWN_FD LIBRARY("x/libibverbs.so.1", "34") "f proc/41/maps = " MAP(
		      "/x/libibverbs.so.1") MAP("/x/librxe-rdmav34.so") "\n",
	      NULL, NULL);
	found_assert(&report, OUTCOME_BROKEN, "job-provider",
		     "libibverbs /x/libibverbs.so.1, which has no mlx5 provider");
}

static void names_foreign_devices_and_deleted_libraries(void **state)
{
	(void)state;
	check(JOB FD("3", "/dev/infiniband/uverbs0") "f proc/41/maps = " MAP(
		      "/a/libnccl.so.2.30 (deleted)") "\n",
	      NULL, NULL);
	found_assert(&report, OUTCOME_SLOW, "job-foreign", "uverbs0 (mlx5_0)");
	found_assert(&report, OUTCOME_SLOW, "job-deleted", "runs with /a/libnccl.so.2.30, and");
}

static void tells_a_process_that_is_gone(void **state)
{
	(void)state;
	check("d proc\n", NULL, NULL);
	found_assert(&report, OUTCOME_NOT_MEASURED, "process-none", "No such file");
}

static void finds_a_process_by_its_name(void **state)
{
	struct sysroot *root = fixture_text(
		JOB "f proc/42/comm = rank\\n\nf proc/43/comm = rank\\n\nd proc/self\n");

	(void)state;
	assert_int_equal(check_process_find(root, "python3", &report), 41);
	assert_int_equal(check_process_find(root, "python3.11", &report), 41);
	found_assert_none(&report, NULL);
	assert_int_equal(check_process_find(root, "rank", &report), -ESRCH);
	found_assert(&report, OUTCOME_NOT_MEASURED, "process-several", "2 processes");
	assert_int_equal(check_process_find(root, "sleep", &report), -ESRCH);
	found_assert(&report, OUTCOME_NOT_MEASURED, "process-none", "No process");
	fixture_close(root);
}

static char job_name[16];

/* A child that has mapped a file with the name of a libibverbs. */
static pid_t start_job(const char *library, int *ready)
{
	int pipes[2];
	pid_t pid;

	/* another run of this test has another one */
	snprintf(job_name, sizeof(job_name), "probe-%d", (int)getpid());
	assert_int_equal(pipe(pipes), 0);
	pid = fork();
	assert_true(pid >= 0);
	if (pid == 0) {
		int fd = open(library, O_RDWR | O_CREAT, 0600);

		prctl(PR_SET_PDEATHSIG, SIGKILL); /* also where a check of this test fails */
		if (ftruncate(fd, 4096) < 0 ||
		    mmap(NULL, 4096, PROT_READ, MAP_PRIVATE, fd, 0) == MAP_FAILED ||
		    prctl(PR_SET_NAME, job_name) < 0 || unlink(library) < 0 ||
		    write(pipes[1], "x", 1) != 1)
			_exit(1);
		pause();
		_exit(0);
	}
	close(pipes[1]);
	*ready = pipes[0];
	return pid;
}

static void looks_into_a_real_process(void **state)
{
	_cleanup_free_ char *folder = fixture_folder();
	char path[512], byte;
	struct sysroot *root;
	int ready;
	pid_t pid;

	(void)state;
	if (is_emulated()) {
		fixture_remove_tree(folder);
		skip(); /* /proc has the emulator's name and maps */
	}
	snprintf(path, sizeof(path), "%s/libibverbs.so.1.14.44.0", folder);
	pid = start_job(path, &ready);
	assert_int_equal(read(ready, &byte, 1), 1);
	close(ready);
	assert_int_equal(sysroot_open("/", &root, NULL), 0);
	assert_int_equal(check_process_find(root, job_name, &report), pid);
	check_process(root, pid, 0.05, &told, &report);
	kill(pid, SIGKILL);
	assert_int_equal(waitpid(pid, NULL, 0), pid);
	sysroot_close(root);
	fixture_remove_tree(folder);
	found_assert(&report, OUTCOME_GOOD, "job-libraries", path);
	found_assert(&report, OUTCOME_SLOW, "job-deleted", path);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
#define TEST(f) cmocka_unit_test_setup_teardown(f, set_up, arena_tear_down)
		TEST(tells_a_job_over_rdma),
		TEST(tells_a_job_over_tcp_and_why),
		TEST(tells_soft_rdma_by_its_packets),
		TEST(judges_nothing_by_an_idle_job),
		TEST(names_a_libibverbs_without_the_provider),
		TEST(names_foreign_devices_and_deleted_libraries),
		TEST(tells_a_process_that_is_gone),
		TEST(finds_a_process_by_its_name),
		TEST(looks_into_a_real_process),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
