#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/mem.h"
#include "render/cdi.h"
#include "support/testarena.h"

static const char *env(const struct edits *e, const char *key)
{
	for (size_t i = 0; i < e->n_envs; i++) {
		if (!strcmp(e->envs[i].key, key))
			return e->envs[i].value;
	}
	return NULL;
}

static void a_slot_names_its_device_and_file(void **state)
{
	(void)state;
	assert_string_equal(cdi_device("rdma_vf-n0-3", arena), "railmate.io/vf=rdma_vf-n0-3");
	assert_string_equal(cdi_file_name("rdma_vf-n0-3", arena),
			    "railmate.io-vf_rdma_vf-n0-3.json");
	assert_string_equal(cdi_slot_of_file("railmate.io-vf_rdma_vf-n0-3.json", arena),
			    "rdma_vf-n0-3");
}

static void files_of_others_name_no_slot(void **state)
{
	static const char *const others[] = { "nvidia.yaml",
					      "railmate.io-vf_.json",
					      "railmate.io-vf_x.yaml",
					      ".railmate.io-vf_x.json",
					      ".railmate.io-vf_x.tmp",
					      "railmate.io-vf_x.json.tmp",
					      "",
					      "railmate.io-vf" };

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(others); i++)
		assert_null(cdi_slot_of_file(others[i], arena));
}

static void a_spec_holds_variables_and_mounts_once_and_a_device_a_slot(void **state)
{
	struct kv envs[] = { { "A", "1" }, { "B", "\"quoted\"" } };
	struct devnode one[] = { { "/dev/infiniband/uverbs4", "/dev/infiniband/uverbs4", "rw" } };
	struct devnode two[] = { { "/dev/x", "/dev/y", "r" } };
	struct bindmount mounts[] = { { "/run/a", "/run/railmate", true } };
	const struct edits common = { .envs = envs, .n_envs = 2, .mounts = mounts, .n_mounts = 1 };
	const struct cdi_entry v[] = { { "rdma_vf-n0-3", { .devs = one, .n_devs = 1 } },
				       { "rdma_vf-n0-4", { .devs = two, .n_devs = 1 } } };

	(void)state;
	assert_string_equal(
		render_cdi(&common, v, 2, arena),
		"{\n \"cdiVersion\": \"0.5.0\",\n \"kind\": \"railmate.io/vf\",\n"
		" \"containerEdits\": {\n"
		"  \"env\": [\n   \"A=1\",\n   \"B=\\\"quoted\\\"\"\n  ],\n"
		"  \"mounts\": [\n   {\n    \"hostPath\": \"/run/a\",\n    \"containerPath\": \"/run/railmate\",\n"
		"    \"options\": [\n     \"ro\",\n     \"nosuid\",\n     \"nodev\",\n     \"bind\"\n    ]\n   }\n  ]\n },\n"
		" \"devices\": [\n"
		"  {\n   \"name\": \"rdma_vf-n0-3\",\n   \"containerEdits\": {\n    \"deviceNodes\": [\n"
		"     {\n      \"path\": \"/dev/infiniband/uverbs4\",\n      \"permissions\": \"rw\"\n     }\n    ]\n   }\n  },\n"
		"  {\n   \"name\": \"rdma_vf-n0-4\",\n   \"containerEdits\": {\n    \"deviceNodes\": [\n"
		"     {\n      \"path\": \"/dev/y\",\n      \"hostPath\": \"/dev/x\",\n"
		"      \"permissions\": \"r\"\n     }\n    ]\n   }\n  }\n ]\n}\n");
}

/* The schema wants no empty lists of nodes or mounts, and no device without edits. */
static void a_device_without_nodes_repeats_the_variables(void **state)
{
	struct kv envs[] = { { "A", "1" } };
	const struct edits common = { .envs = envs, .n_envs = 1 };
	const char *text = render_cdi(&common, &(struct cdi_entry) { .slot = "x" }, 1, arena);

	(void)state;
	assert_null(strstr(text, "deviceNodes"));
	assert_null(strstr(text, "mounts"));
	assert_non_null(strstr(strstr(text, "\"devices\""), "\"A=1\""));
}

static void variables_are_joined_in_order_and_the_first_value_stays(void **state)
{
	struct kv one[] = { { "NCCL_IB_HCA", "=mlx5_1:1" }, { "Z", "" } };
	struct kv two[] = { { "A", "a" }, { "NCCL_IB_HCA", "=mlx5_2:1" } };
	struct edits v[] = { { .envs = one, .n_envs = 2 }, { .envs = two, .n_envs = 2 }, { 0 } };
	struct edits out = cdi_join(v, 3, arena);

	(void)state;
	assert_int_equal(out.n_envs, 3);
	assert_string_equal(out.envs[0].key, "A");
	assert_string_equal(env(&out, "NCCL_IB_HCA"), "=mlx5_1:1");
	assert_string_equal(out.envs[2].key, "Z");
}

int main(void)
{
#define T(f) cmocka_unit_test_setup_teardown(f, arena_set_up, arena_tear_down)
	const struct CMUnitTest tests[] = {
		T(a_slot_names_its_device_and_file),
		T(files_of_others_name_no_slot),
		T(a_spec_holds_variables_and_mounts_once_and_a_device_a_slot),
		T(a_device_without_nodes_repeats_the_variables),
		T(variables_are_joined_in_order_and_the_first_value_stays),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
