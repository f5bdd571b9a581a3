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

#include "base/arena.h"
#include "base/err.h"
#include "base/mem.h"
#include "base/str.h"
#include "kubeclient/checkpoint.h"

static struct arena *a;
static struct err err;
static char path[] = "/tmp/rm-checkpoint.XXXXXX";

static int set_up(void **state)
{
	(void)state;
	a = arena_new(0);
	err = (struct err) { 0 };
	return 0;
}

static int tear_down(void **state)
{
	(void)state;
	arena_free(a);
	return 0;
}

static struct pod_list read_text(const char *text)
{
	FILE *f = fopen(path, "w");

	assert_non_null(f);
	assert_true(fputs(text, f) >= 0);
	assert_int_equal(fclose(f), 0);
	return kubeclient_checkpoint(path, a, &err);
}

#define ENTRY(pod, container, resource, ids)                                                       \
	"{\"PodUID\":\"" pod "\",\"ContainerName\":\"" container "\",\"ResourceName\":\"" resource \
	"\",\"DeviceIDs\":" ids ",\"AllocResp\":\"AAAA\"}"

/* In any order, and with what no kubelet writes between. */
static void entries_of_a_container_are_found_wherever_they_stand(void **state)
{
	struct pod_list pods = read_text(
		"{\"Data\":{\"PodDeviceEntries\":[" ENTRY("u2", "b", "r/x", "{\"0\":[\"1\",\"2\"]}") "," ENTRY(
			"u1", "a", "r/x",
			"[\"3\"]") ",7,{\"PodUID\":\"u1\"}," ENTRY("u2", "a", "r/x",
								   "null") "," ENTRY("u2", "b",
										     "r/y",
										     "{\"0\":[\"4\"],\"1\":[\"5\"]}") "]}}");
	const struct pod *u1 = kubemsg_pods_find(&pods, "", "u1"),
			 *u2 = kubemsg_pods_find(&pods, "", "u2");

	(void)state;
	assert_int_equal(err.code, 0);
	assert_int_equal(pods.n, 2);
	assert_int_equal(u1->n_containers, 1);
	assert_string_equal(kubemsg_held(&u1->containers[0], "r/x")->v[0], "3");
	assert_int_equal(u2->n_containers, 2);
	assert_string_equal(u2->containers[0].name, "a");
	assert_null(kubemsg_held(&u2->containers[0], "r/x"));
	assert_string_equal(u2->containers[1].name, "b");
	assert_int_equal(u2->containers[1].n_held, 2);
	assert_string_equal(kubemsg_held(&u2->containers[1], "r/x")->v[1], "2");
	assert_string_equal(kubemsg_held(&u2->containers[1], "r/y")->v[1], "5");
}

static void no_entries_are_no_pods(void **state)
{
	(void)state;
	assert_int_equal(read_text("{\"Data\":{\"PodDeviceEntries\":null}}").n, 0);
	assert_int_equal(err.code, 0);
	assert_int_equal(read_text("{\"Data\":{}}").n, 0);
	assert_int_equal(err.code, EBADMSG);
}

/* Any tenant's, with a device that is there a thousand times (fuse). */
static void a_pod_of_a_thousand_containers_costs_what_it_holds(void **state)
{
	enum { N = 2000 };
	_cleanup_strbuf_ struct strbuf text = STRBUF_INIT;
	struct pod_list pods;

	(void)state;
	strbuf_puts(&text, "{\"Data\":{\"PodDeviceEntries\":[7");
	for (int i = 0; i < N; i++) {
		strbuf_printf(&text, ",{\"PodUID\":\"u\",\"ContainerName\":\"c%d\"", i);
		strbuf_printf(&text, ",\"ResourceName\":\"x/fuse\",\"DeviceIDs\":[\"%d\"]}", i);
	}
	strbuf_puts(&text, "]}}");
	pods = read_text(text.s);
	assert_int_equal(pods.n, 1);
	assert_int_equal(pods.v[0].n_containers, N);
	assert_true(arena_used(a) < (size_t)N * 2048);
}

static void a_file_of_unreasonable_size_is_not_read(void **state)
{
	_cleanup_strbuf_ struct strbuf text = STRBUF_INIT;

	(void)state;
	for (int i = 0; i < 5 << 10; i++)
		strbuf_printf(&text, "%1024d", 0);
	assert_int_equal(read_text(text.s).n, 0);
	assert_non_null(strstr(err.msg, "is not a file of at most"));
	assert_int_equal(arena_used(a), 0);
}

static int make_file(void **state)
{
	int fd = mkstemp(path);

	(void)state;
	return fd < 0 ? -1 : close(fd);
}

static int remove_file(void **state)
{
	(void)state;
	return unlink(path);
}

/* As kubelets from 1.33 to 1.37 write it. */
static void claims_are_known_with_their_pods(void **state)
{
	static const char *const bad[] = { "",
					   "{}",
					   "{\"Data\":7}",
					   "{\"Data\":\"{}\"}",
					   "{\"Data\":\"{\\\"ClaimInfoStateList\\\":7}\"}",
					   "{\"Data\":\"{\\\"ClaimInfoStateList\\\":[{}]}\"}",
					   "{\"Data\":\"{\"}" };
	struct prepared_list all;

	(void)state;
	read_text(
		"{\"Data\":\"{\\\"kind\\\":\\\"DRACheckpoint\\\",\\\"apiVersion\\\":\\\"checkpoint.dra.kubelet.k8s.io/v1\\\",\\\"ClaimInfoStateList\\\":[{\\\"ClaimUID\\\":\\\"c0\\\",\\\"ClaimName\\\":\\\"x\\\",\\\"Namespace\\\":\\\"default\\\",\\\"PodUIDs\\\":{\\\"u0\\\":{},\\\"u1\\\":{}},\\\"DriverState\\\":{}},{\\\"ClaimUID\\\":\\\"c1\\\",\\\"PodUIDs\\\":{}}]}\",\"Checksum\":1}");
	assert_true(kubeclient_prepared(path, a, &all, &err));
	assert_int_equal(all.n, 2);
	assert_string_equal(all.v[0].claim, "c0");
	assert_int_equal(all.v[0].pods.n, 2);
	assert_string_equal(all.v[0].pods.v[1], "u1");
	assert_int_equal(all.v[1].pods.n, 0);
	read_text("{\"Data\":\"{\\\"ClaimInfoStateList\\\":null}\"}");
	assert_true(kubeclient_prepared(path, a, &all, &err));
	assert_int_equal(all.n, 0);
	for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
		read_text(bad[i]);
		assert_false(kubeclient_prepared(path, a, &all, &err));
		assert_true(err.msg[0]);
	}
}

int main(void)
{
#define T(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)
	const struct CMUnitTest tests[] = {
		T(entries_of_a_container_are_found_wherever_they_stand),
		T(no_entries_are_no_pods),
		T(a_pod_of_a_thousand_containers_costs_what_it_holds),
		T(a_file_of_unreasonable_size_is_not_read),
		T(claims_are_known_with_their_pods),
	};

	return cmocka_run_group_tests(tests, make_file, remove_file);
}
