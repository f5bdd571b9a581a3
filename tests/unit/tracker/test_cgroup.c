/* Cgroup trees as kubelets make them, in a temporary folder: ordinary files. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include <cmocka.h>

#include "base/mem.h"
#include "support/fixture.h"
#include "tracker/cgroup.h"

#define UID	    "0f1e2d3c-aaaa-bbbb-cccc-001122334455"
#define UID_SYSTEMD "0f1e2d3c_aaaa_bbbb_cccc_001122334455"

static char *top;

static int set_up(void **state)
{
	(void)state;
	top = fixture_folder();
	return 0;
}

static int tear_down(void **state)
{
	(void)state;
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
		cmocka_unit_test_setup_teardown(a_tree_that_cannot_be_read_says_nothing, set_up,
						tear_down),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
