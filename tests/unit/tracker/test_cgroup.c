/* Cgroup trees as kubelets make them, in a temporary folder: ordinary files. */
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/mem.h"
#include "support/fixture.h"
#include "tracker/cgroup.h"

#define UID	    "0f1e2d3c-aaaa-bbbb-cccc-001122334455"
#define UID_SYSTEMD "0f1e2d3c_aaaa_bbbb_cccc_001122334455"

static char *top;

/* Of the kernel, below a root of our own, so that it is the first kubelet's of this machine as
 * well. */
static const char *const real_cgroups[] = { "", "/kubepods", "/kubepods/pod" UID,
					    "/kubepods/pod" UID "/cafe",
					    "/kubepods/pod" UID "/beef" };
static char *real_root; /* NULL: it was not made */
static pid_t real_processes[2];

static char *real_path(size_t i)
{
	return xasprintf("%s%s", real_root, real_cgroups[i]);
}

static int set_up(void **state)
{
	(void)state;
	top = fixture_folder();
	return 0;
}

static void end_process(pid_t *pid)
{
	if (*pid > 0) {
		kill(*pid, SIGKILL);
		waitpid(*pid, NULL, 0);
	}
	*pid = 0;
}

static int tear_down(void **state)
{
	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(real_processes); i++)
		end_process(&real_processes[i]);
	for (size_t i = ARRAY_LEN(real_cgroups); real_root && i-- > 0;) {
		_cleanup_free_ char *path = real_path(i);

		rmdir(path);
	}
	free(STEAL(real_root));
	fixture_remove_tree(top);
	free(top);
	return 0;
}

/* A file below top, with the directories it needs. */
static void put(const char *path, const char *text)
{
	_cleanup_free_ char *full = xasprintf("%s/%s", top, path);
	FILE *f;

	for (char *slash = strchr(full + strlen(top) + 1, '/'); slash;
	     slash = strchr(slash + 1, '/')) {
		*slash = '\0';
		mkdir(full, 0755);
		*slash = '/';
	}
	f = fopen(full, "we");
	assert_non_null(f);
	fputs(text, f);
	fclose(f);
}

/*
 * A process of one thread in this cgroup, which ends with us at the latest: a program of its own,
 * for what we are run by (an emulator, a sanitizer) has threads.
 */
static pid_t process_in(const char *cgroup)
{
	_cleanup_free_ char *procs = xasprintf("%s/cgroup.procs", cgroup);
	int is_started[2];
	pid_t pid;
	FILE *f;
	char byte;

	assert_int_equal(pipe2(is_started, O_CLOEXEC), 0);
	pid = fork();
	assert_true(pid >= 0);
	if (pid == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		execlp("sleep", "sleep", "600", NULL);
		_exit(1);
	}
	close(is_started[1]);
	assert_int_equal(read(is_started[0], &byte, 1), 0);
	close(is_started[0]);
	f = fopen(procs, "we");
	assert_non_null(f);
	fprintf(f, "%d\n", pid);
	assert_int_equal(fclose(f), 0);
	return pid;
}

static void a_pod_runs_while_its_cgroup_is_populated(void **state)
{
	(void)state;
	put("cgroup.controllers", "pids");
	put("kubepods/besteffort/pod" UID "/cgroup.events", "populated 1\nfrozen 0\n");
	assert_int_equal(tracker_pod_runs(top, UID), 1);
	put("kubepods/besteffort/pod" UID "/cgroup.events", "populated 0\nfrozen 1\n");
	assert_int_equal(tracker_pod_runs(top, UID), 0);
}

static void other_pods_do_not_count(void **state)
{
	(void)state;
	put("cgroup.controllers", "pids");
	put("kubepods/cgroup.events", "populated 1\n");
	put("kubepods/podffff/cgroup.events", "populated 1\n");
	put("kubepods/pod" UID "0/cgroup.events", "populated 1\n");
	put("system.slice/x.service/pod" UID "/cgroup.events", "populated 1\n");
	assert_int_equal(tracker_pod_runs(top, UID), 0);
	put("kubepods/pod" UID "/cgroup.events", "populated 0\n");
	assert_int_equal(tracker_pod_runs(top, UID), 0);
}

static void systemds_names_are_known_below_a_root_of_the_kubelets_own(void **state)
{
	(void)state;
	put("cgroup.controllers", "pids");
	put("k8s.slice/k8s-kubepods.slice/k8s-kubepods-burstable.slice/k8s-kubepods-burstable-pod" UID_SYSTEMD
	    ".slice/cgroup.events",
	    "populated 1\n");
	assert_int_equal(tracker_pod_runs(top, UID), 1);
	assert_int_equal(tracker_pod_runs(top, "0f1e2d3c-aaaa-bbbb-cccc-001122334456"), 0);
}

static void version_1_counts_processes_in_a_tree_of_its_own(void **state)
{
	(void)state;
	put("pids/kubepods/pod" UID "/pids.current", "12\n");
	assert_int_equal(tracker_pod_runs(top, UID), 1);
	put("pids/kubepods/pod" UID "/pids.current", "0\n");
	assert_int_equal(tracker_pod_runs(top, UID), 0);
}

static void a_pod_of_one_thread_runs_but_its_sandbox(void **state)
{
	(void)state;
	put("cgroup.controllers", "pids");
	put("kubepods/pod" UID "/cgroup.events", "populated 1\n");
	put("kubepods/pod" UID "/pids.current", "1\n");
	put("kubepods/pod" UID "/cafe/pids.current", "1\n");
	assert_int_equal(tracker_pod_runs(top, UID), TRACKER_POD_IS_SANDBOX);
	put("kubepods/pod" UID "/pids.current", "2\n");
	assert_int_equal(tracker_pod_runs(top, UID), 1);
}

static void the_one_thread_of_a_pod_of_crio_may_be_a_container(void **state)
{
	(void)state;
	put("cgroup.controllers", "pids");
	put("kubepods.slice/kubepods-pod" UID_SYSTEMD ".slice/pids.current", "1\n");
	put("kubepods.slice/kubepods-pod" UID_SYSTEMD ".slice/crio-cafe.scope/pids.current", "1\n");
	assert_int_equal(tracker_pod_runs(top, UID), 1);
}

/* Its sandbox's cgroup stays, without a process. */
static void a_pod_of_crio_without_a_process_is_there(void **state)
{
	(void)state;
	put("cgroup.controllers", "pids");
	put("kubepods/pod" UID "/cgroup.events", "populated 0\n");
	put("kubepods/pod" UID "/crio-cafe/cgroup.events", "populated 0\n");
	assert_int_equal(tracker_pod_runs(top, UID), TRACKER_POD_IS_EMPTY);
}

/* The order in which a directory is read decides nothing: one with a process counts. */
static void an_empty_cgroup_of_the_same_name_hides_no_process(void **state)
{
	static const char *const before[] = { "kubepods/a/pod" UID, "kubepods/podeee/ctr/pod" UID };

	(void)state;
	put("cgroup.controllers", "pids");
	for (size_t i = 0; i < ARRAY_LEN(before); i++) {
		_cleanup_free_ char *path = xasprintf("%s/crio-cafe/cgroup.events", before[i]);
		_cleanup_free_ char *own = xasprintf("%s/cgroup.events", before[i]);

		put(path, "populated 0\n");
		put(own, "populated 0\n");
	}
	assert_int_equal(tracker_pod_runs(top, UID), TRACKER_POD_IS_EMPTY);
	put("kubepods/zz/pod" UID "/cgroup.events", "populated 1\n");
	assert_int_equal(tracker_pod_runs(top, UID), 1);
}

/* Where cgroups can be made: the kernel's own files. */
static void a_real_cgroup_shows_a_sandbox_and_a_container(void **state)
{
	_cleanup_free_ char *link = xasprintf("%s/pids", top), *one = NULL, *two = NULL;

	(void)state;
	real_root = xasprintf("/sys/fs/cgroup/pids/railmate-test.%d", getpid());
	if (mkdir(real_root, 0755) < 0)
		skip();
	for (size_t i = 1; i < ARRAY_LEN(real_cgroups); i++) {
		_cleanup_free_ char *path = real_path(i);

		assert_int_equal(mkdir(path, 0755), 0);
	}
	one = real_path(3);
	two = real_path(4);
	assert_int_equal(symlink(real_root, link), 0);
	assert_int_equal(tracker_pod_runs(top, UID), 0);
	real_processes[0] = process_in(one);
	assert_int_equal(tracker_pod_runs(top, UID), TRACKER_POD_IS_SANDBOX);
	real_processes[1] = process_in(two);
	assert_int_equal(tracker_pod_runs(top, UID), 1);
	end_process(&real_processes[1]);
	assert_int_equal(tracker_pod_runs(top, UID), TRACKER_POD_IS_SANDBOX);
	end_process(&real_processes[0]);
	assert_int_equal(tracker_pod_runs(top, UID), 0);
}

static void a_tree_that_cannot_be_read_says_nothing(void **state)
{
	(void)state;
	assert_true(tracker_pod_runs(top, UID) < 0);
	assert_int_equal(tracker_pod_runs("/nonexistent", UID), -ENOENT);
	put("cgroup.controllers", "pids");
	assert_int_equal(tracker_pod_runs(top, UID), -ENODATA);
	put("kubepods.slice/cgroup.events", "populated 0\n");
	assert_int_equal(tracker_pod_runs(top, UID), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(a_pod_runs_while_its_cgroup_is_populated, set_up,
						tear_down),
		cmocka_unit_test_setup_teardown(other_pods_do_not_count, set_up, tear_down),
		cmocka_unit_test_setup_teardown(
			systemds_names_are_known_below_a_root_of_the_kubelets_own, set_up,
			tear_down),
		cmocka_unit_test_setup_teardown(version_1_counts_processes_in_a_tree_of_its_own,
						set_up, tear_down),
		cmocka_unit_test_setup_teardown(a_pod_of_one_thread_runs_but_its_sandbox, set_up,
						tear_down),
		cmocka_unit_test_setup_teardown(the_one_thread_of_a_pod_of_crio_may_be_a_container,
						set_up, tear_down),
		cmocka_unit_test_setup_teardown(a_pod_of_crio_without_a_process_is_there, set_up,
						tear_down),
		cmocka_unit_test_setup_teardown(an_empty_cgroup_of_the_same_name_hides_no_process,
						set_up, tear_down),
		cmocka_unit_test_setup_teardown(a_real_cgroup_shows_a_sandbox_and_a_container,
						set_up, tear_down),
		cmocka_unit_test_setup_teardown(a_tree_that_cannot_be_read_says_nothing, set_up,
						tear_down),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
