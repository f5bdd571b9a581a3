#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/mem.h"
#include "base/str.h"
#include "hw/inventory.h"
#include "pods/gpuquestion.h"
#include "pods/gpus.h"
#include "pool/node.h"
#include "support/testarena.h"

#define RES "nvidia.com/gpu"

static struct hw_pci pci[8];
static struct hw_gpu gpus[8];
static const char *const uuids[8] = { "GPU-0", "GPU-1", "GPU-2", "GPU-3",
				      "GPU-4", "GPU-5", "GPU-6", "GPU-7" };
static const struct hw_inventory inv = { .pci = pci, .n_pci = 8, .gpu = gpus, .n_gpu = 8 };

/* Four GPUs on each of two NUMA nodes. */
static void make_machine(void)
{
	for (int i = 0; i < 8; i++) {
		pci[i] = (struct hw_pci) { .bdf = { 0, (uint8_t)(0x10 + i), 0, 0 },
					   .vendor = 0x10de,
					   .numa = i / 4 };
		gpus[i] = (struct hw_gpu) { .pci = i, .vendor = "NVIDIA", .uuid = uuids[i] };
	}
}

static struct ids ids_of(const char *text)
{
	struct ids ids = { arena_array(arena, 16, sizeof(*ids.v)), 0 };
	char *save;

	for (char *id = strtok_r(arena_strdup(arena, text), " ", &save); id;
	     id = strtok_r(NULL, " ", &save))
		ids.v[ids.n++] = id;
	return ids;
}

struct question_case {
	const char *resource;  /* asked for; NULL unknown */
	const char *offers[2]; /* of nvidia.com/gpu, of example.com/other */
	const char *held;
	size_t want;
	int node; /* -1: all */
	const char *expected, *why;
};

static bool ask_question(const struct question_case *c, struct gpu_question *q, const char **why)
{
	struct held held = { RES, ids_of(c->held) };
	struct held offers[] = { { "rdma/vf", ids_of("0000:10:00.0") },
				 { "example.com/other", ids_of(c->offers[1]) },
				 { RES, ids_of(c->offers[0]) } };
	struct pod_container holder = { .name = "c", .held = &held, .n_held = 1 };
	struct pod_container all = { .name = "", .held = offers, .n_held = 3 };
	struct pod pod = { "default", "p", &holder, 1 };
	struct pod_list pods = { &pod, 1 };

	return pods_gpu_question(&all, &pods, c->resource, "rdma/vf", c->want, &c->node,
				 c->node >= 0, &inv, arena, q, why);
}

static void question_offers_what_nobody_holds(void **state)
{
	static const struct question_case cases[] = {
		{ RES, { "GPU-3 GPU-1 GPU-0", "" }, "GPU-1", 2, -1, "GPU-0 GPU-3", NULL },
		{ NULL, { "GPU-0 GPU-1", "x y z" }, "", 1, -1, "GPU-0 GPU-1", NULL },
		{ NULL, { "GPU-0 GPU-1 GPU-4", "" }, "", 1, 0, "GPU-0 GPU-1", NULL },
		/* a GPU of another machine is none of ours */
		{ RES, { "GPU-0 GPU-ff", "" }, "", 1, -1, "GPU-0", NULL },
		{ RES,
		  { "GPU-0 GPU-1", "" },
		  "GPU-0",
		  2,
		  -1,
		  NULL,
		  "1 of nvidia.com/gpu are free, 2 are wanted" },
		{ RES, { "GPU-0", "" }, "", 0, -1, NULL, "0 are wanted" },
		{ RES,
		  { "MIG-1 MIG-2", "" },
		  "",
		  1,
		  -1,
		  NULL,
		  "nvidia.com/gpu offers no whole GPUs" },
		{ RES,
		  { "MIG-GPU-0/1/0 MIG-GPU-1/1/0", "" }, /* of GPUs that are known */
		  "",
		  1,
		  -1,
		  NULL,
		  "nvidia.com/gpu offers no whole GPUs" },
		{ NULL, { "", "x" }, "", 1, -1, NULL, "no device plugin offers whole GPUs" },
		{ RES, { "GPU-0::0 GPU-0::1", "" }, "", 1, -1, NULL, "shares its GPUs" },
		{ "amd.com/gpu",
		  { "GPU-0", "" },
		  "",
		  1,
		  -1,
		  NULL,
		  "amd.com/gpu offers no whole GPUs" },
	};

	(void)state;
	make_machine();
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		struct gpu_question q;
		const char *why = NULL;
		struct ids expected;

		if (!cases[i].expected) {
			assert_false(ask_question(&cases[i], &q, &why));
			if (!strstr(why, cases[i].why))
				fail_msg("'%s' is not in '%s'", cases[i].why, why);
			continue;
		}
		expected = ids_of(cases[i].expected);
		assert_true(ask_question(&cases[i], &q, &why));
		assert_string_equal(q.resource, RES);
		assert_int_equal(q.free.n, expected.n);
		for (size_t k = 0; k < expected.n; k++)
			assert_string_equal(q.free.v[k], expected.v[k]);
	}
}

/* Of how many of the ids that a GPU plugin prefers are the GPUs known? */
static struct pods_gpus gpus_of(const char *ids)
{
	static const struct node node = { .inv = &inv };
	struct held held = { RES, ids_of(ids) };
	const struct pod_container c = { .held = &held, .n_held = 1 };

	return pods_gpus(&node, &c, "", arena);
}

static void answer_names_gpus_of_the_machine(void **state)
{
	struct pods_gpus good, foreign;

	(void)state;
	make_machine();
	good = gpus_of("GPU-5 GPU-2");
	assert_int_equal(good.n, 2);
	assert_int_equal(good.v[0], 2);
	assert_int_equal(good.v[1], 5);
	assert_null(good.unknown);
	foreign = gpus_of("GPU-5 GPU-x");
	assert_int_equal(foreign.n, 1);
	assert_string_equal(foreign.unknown, "GPU-x of " RES " does not name a GPU of this node");
	assert_int_equal(gpus_of("GPU-1 1").n, 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
#define T(f) cmocka_unit_test_setup_teardown(f, arena_set_up, arena_tear_down)
		T(question_offers_what_nobody_holds),
		T(answer_names_gpus_of_the_machine),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
