#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/arena.h"
#include "base/mem.h"
#include "base/str.h"
#include "render/cdi.h"

static struct arena *a;

static int setup(void **state)
{
	(void)state;
	a = arena_new(0);
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	arena_free(a);
	return 0;
}

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
	assert_string_equal(cdi_device("rdma_vf-n0-3", a), "railmate.io/vf=rdma_vf-n0-3");
	assert_string_equal(cdi_file_name("rdma_vf-n0-3", a), "railmate.io-vf_rdma_vf-n0-3.json");
	assert_string_equal(cdi_slot_of_file("railmate.io-vf_rdma_vf-n0-3.json", a), "rdma_vf-n0-3");
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
		assert_null(cdi_slot_of_file(others[i], a));
}

static void a_spec_holds_variables_nodes_and_mounts(void **state)
{
	struct kv envs[] = { { "A", "1" }, { "B", "\"quoted\"" } };
	struct devnode devs[] = { { "/dev/infiniband/uverbs4", "/dev/infiniband/uverbs4", "rw" },
				  { "/dev/x", "/dev/y", "r" } };
	struct bindmount mounts[] = { { "/run/a", "/run/railmate", true }, { "/b", "/c", false } };
	struct edits e = {
		.envs = envs, .n_envs = 2, .devs = devs, .n_devs = 2, .mounts = mounts, .n_mounts = 2
	};

	(void)state;
	assert_string_equal(
		render_cdi("rdma_vf-n0-3", &e, a),
		"{\n \"cdiVersion\": \"0.5.0\",\n \"kind\": \"railmate.io/vf\",\n \"devices\": [\n  {\n"
		"   \"name\": \"rdma_vf-n0-3\",\n   \"containerEdits\": {\n"
		"    \"env\": [\n     \"A=1\",\n     \"B=\\\"quoted\\\"\"\n    ],\n"
		"    \"deviceNodes\": [\n"
		"     {\n      \"path\": \"/dev/infiniband/uverbs4\",\n      \"permissions\": \"rw\"\n     "
		"},\n"
		"     {\n      \"path\": \"/dev/y\",\n      \"hostPath\": \"/dev/x\",\n"
		"      \"permissions\": \"r\"\n     }\n    ],\n"
		"    \"mounts\": [\n"
		"     {\n      \"hostPath\": \"/run/a\",\n      \"containerPath\": \"/run/railmate\",\n"
		"      \"options\": [\n       \"ro\",\n       \"nosuid\",\n       \"nodev\",\n       "
		"\"bind\"\n"
		"      ]\n     },\n"
		"     {\n      \"hostPath\": \"/b\",\n      \"containerPath\": \"/c\",\n"
		"      \"options\": [\n       \"rw\",\n       \"nosuid\",\n       \"nodev\",\n       "
		"\"bind\"\n"
		"      ]\n     }\n    ]\n   }\n  }\n ]\n}\n");
}

/* The schema wants no empty lists of nodes or mounts. */
static void a_spec_without_nodes_has_no_list_of_them(void **state)
{
	struct kv envs[] = { { "A", "1" } };
	struct edits e = { .envs = envs, .n_envs = 1 };

	(void)state;
	assert_null(strstr(render_cdi("x", &e, a), "deviceNodes"));
	assert_null(strstr(render_cdi("x", &e, a), "mounts"));
}

static void variables_of_one_pool_stay_as_they_are(void **state)
{
	struct kv envs[] = { { "NCCL_IB_GID_INDEX", "3" }, { "NCCL_IB_HCA", "=mlx5_1:1" }, { "Z", "" } };
	struct edits e = { .envs = envs, .n_envs = 3 }, out = cdi_join(&e, 1, a);

	(void)state;
	assert_int_equal(out.n_envs, 3);
	for (size_t i = 0; i < 3; i++) {
		assert_string_equal(out.envs[i].key, envs[i].key);
		assert_string_equal(out.envs[i].value, envs[i].value);
	}
}

static void nccl_is_told_the_vfs_of_all_pools(void **state)
{
	struct kv one[] = { { "NCCL_IB_HCA", "=mlx5_4:1,mlx5_5:1" }, { "PCIDEVICE_RDMA_B", "b" } };
	struct kv two[] = { { "NCCL_IB_HCA", "=mlx5_1:2" }, { "PCIDEVICE_RDMA_A", "a" } };
	struct kv none[] = { { "PCIDEVICE_NET_C", "c" } };
	struct edits v[] = { { .envs = one, .n_envs = 2 },
			     { .envs = two, .n_envs = 2 },
			     { .envs = none, .n_envs = 1 } };
	struct edits out = cdi_join(v, 3, a);

	(void)state;
	assert_string_equal(env(&out, "NCCL_IB_HCA"), "=mlx5_4:1,mlx5_5:1,mlx5_1:2");
	assert_int_equal(out.n_envs, 4);
	for (size_t i = 1; i < out.n_envs; i++)
		assert_true(strcmp(out.envs[i - 1].key, out.envs[i].key) < 0);
}

static void a_gid_index_stays_only_where_it_is_right_for_all(void **state)
{
	struct kv three[] = { { "NCCL_IB_GID_INDEX", "3" }, { "NCCL_IB_HCA", "=a:1" } };
	struct kv same[] = { { "NCCL_IB_GID_INDEX", "3" }, { "NCCL_IB_HCA", "=b:1" } };
	struct kv other[] = { { "NCCL_IB_GID_INDEX", "5" }, { "NCCL_IB_HCA", "=c:1" } };
	struct kv without[] = { { "NCCL_IB_HCA", "=d:1" } };
	struct kv no_rdma[] = { { "PCIDEVICE_NET_C", "c" } };
	struct edits v[] = { { .envs = three, .n_envs = 2 }, { .envs = same, .n_envs = 2 } }, out;

	(void)state;
	out = cdi_join(v, 2, a);
	assert_string_equal(env(&out, "NCCL_IB_GID_INDEX"), "3");
	v[1] = (struct edits) { .envs = other, .n_envs = 2 };
	out = cdi_join(v, 2, a);
	assert_null(env(&out, "NCCL_IB_GID_INDEX"));
	v[1] = (struct edits) { .envs = without, .n_envs = 1 };
	out = cdi_join(v, 2, a);
	assert_null(env(&out, "NCCL_IB_GID_INDEX"));
	v[1] = (struct edits) { .envs = no_rdma, .n_envs = 1 };
	out = cdi_join(v, 2, a);
	assert_string_equal(env(&out, "NCCL_IB_GID_INDEX"), "3");
}

static void nccl_takes_32_hcas_at_most(void **state)
{
	struct strbuf b = STRBUF_INIT;
	struct kv kv = { "NCCL_IB_HCA", NULL };
	struct edits v[] = { { .envs = &kv, .n_envs = 1 }, { .envs = &kv, .n_envs = 1 } }, out;
	size_t commas = 0;

	(void)state;
	for (int i = 0; i < 20; i++)
		strbuf_printf(&b, "%cmlx5_%d:1", i ? ',' : '=', i);
	kv.value = strbuf_str(&b);
	out = cdi_join(v, 2, a);
	for (const char *s = env(&out, "NCCL_IB_HCA"); *s; s++)
		commas += *s == ',';
	assert_int_equal(commas, 31);
	strbuf_done(&b);
}

int main(void)
{
#define T(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
	const struct CMUnitTest tests[] = {
		T(a_slot_names_its_device_and_file),
		T(files_of_others_name_no_slot),
		T(a_spec_holds_variables_nodes_and_mounts),
		T(a_spec_without_nodes_has_no_list_of_them),
		T(variables_of_one_pool_stay_as_they_are),
		T(nccl_is_told_the_vfs_of_all_pools),
		T(a_gid_index_stays_only_where_it_is_right_for_all),
		T(nccl_takes_32_hcas_at_most),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
