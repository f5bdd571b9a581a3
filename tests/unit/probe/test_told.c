/* What a container was told, as its tenant may have changed it. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "base/err.h"
#include "base/mem.h"
#include "railmate-probe/told.h"
#include "support/fixture.h"
#include "support/testarena.h"
#include "sysroot/sysroot.h"

static int told_of(const char *map, struct told *ret, struct err *err)
{
	_cleanup_free_ char *tree = xasprintf("f run/railmate/map.json = %s\n"
					      "f run/railmate/nccl.conf = NCCL_IB_GID_INDEX=3\n",
					      map);
	struct sysroot *root = fixture_text(tree);
	int r = told_read(root, TOLD_DIR, arena, ret, err);

	fixture_close(root);
	return r;
}

static void pairs_become_gpus_and_vfs_each_once(void **state)
{
	struct told t;
	struct err err = { 0 };

	(void)state;
	assert_int_equal(
		told_of("{\"version\": 1, \"pod\": \"ml/train-0\", \"container\": \"c\", \"gpus\": ["
			"{\"gpu\": \"0000:1B:00.0\", \"vf\": \"0000:3b:00.2\", \"hca\": \"mlx5_4\", "
			"\"port\": 1, \"netdev\": \"net1\", \"path\": \"PIX\", \"gid\": {\"index\": 3, "
			"\"address\": \"10.0.0.7\", \"type\": \"RoCE v2\"}, \"numa\": 0, \"rail\": 0, "
			"\"plane\": null, \"mbps\": 400000, \"resource\": \"rdma/vf\"}, "
			"{\"gpu\": \"0000:1c:00.0\", \"vf\": \"0000:3b:00.2\", \"hca\": \"mlx5_4\", "
			"\"port\": 1, \"path\": \"PXB\"}, {\"gpu\": \"0000:1b:00.0\", "
			"\"vf\": \"0000:3b:00.2\", \"hca\": \"mlx5_4\", \"port\": 2}, "
			"{\"vf\": \"0000:5b:00.2\", \"hca\": null}]}",
			&t, &err),
		0);
	assert_int_equal(t.n_vfs, 2);
	assert_int_equal(t.n_gpus, 2);
	assert_int_equal(t.n_pairs, 2);
	assert_string_equal(t.gpus[0].bdf, "0000:1b:00.0");
	assert_string_equal(t.vfs[0].hca, "mlx5_4");
	assert_int_equal(t.vfs[0].gid_index, 3);
	assert_string_equal(t.vfs[0].gid, "10.0.0.7");
	assert_int_equal(t.vfs[0].mbps, 400000);
	assert_int_equal(t.vfs[0].plane, -1);
	assert_null(t.vfs[1].hca);
	assert_int_equal(t.pairs[1].gpu, 1);
	assert_int_equal(t.pairs[1].vf, 0);
	assert_string_equal(t.pod, "ml/train-0");
	assert_int_equal(t.nccl_gid_index, 3);
}

static void map_that_is_wrong_is_one_sentence(void **state)
{
	static const struct {
		const char *map, *sentence;
	} cases[] = {
		{ "{\"version\": 2, \"gpus\": []}", "not of version 1" },
		{ "{\"version\": 1}", "\"gpus\" is not a list" },
		{ "{\"version\": 1, \"gpus\": [{\"vf\": \"../../x\"}]}",
		  "no PCI address in \"vf\"" },
		{ "{\"version\": 1, \"gpus\": [{\"hca\": \"mlx5_0\"}]}",
		  "no PCI address in \"vf\"" },
		{ "{\"version\": 1, \"gpus\": [1]}", "no PCI address in \"vf\"" },
		{ "{\"version\": 1, ", "map.json:1" },
		{ "[]", "not of version 1" },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		struct told t = { .n_vfs = 77 };
		struct err err = { 0 };

		assert_true(told_of(cases[i].map, &t, &err) < 0);
		if (!strstr(err.msg, cases[i].sentence))
			fail_msg("'%s' of %s", err.msg, cases[i].map);
		assert_int_equal(t.n_vfs, 77);
	}
}

static void names_that_would_leave_their_directory_are_none(void **state)
{
	struct told t;
	struct err err = { 0 };

	(void)state;
	assert_int_equal(
		told_of("{\"version\": 1, \"gpus\": [{\"vf\": \"0000:3b:00.2\", \"hca\": \"../mem\", "
			"\"port\": 4000, \"netdev\": \"..\", \"gid\": {\"type\": \"a\\\\u001b[2J\"}}]}",
			&t, &err),
		0);
	assert_null(t.vfs[0].hca);
	assert_null(t.vfs[0].netdev);
	assert_int_equal(t.vfs[0].port, 1);
	assert_string_equal(t.vfs[0].gid_type, "a?[2J");
}

static void container_of_nobody_is_told_so(void **state)
{
	struct sysroot *root = fixture_text("f etc/hosts = x\n");
	struct told t;
	struct err err = { 0 };

	(void)state;
	assert_int_equal(told_read(root, TOLD_DIR, arena, &t, &err), -ENOENT);
	fixture_close(root);
}

static void rails_and_planes_that_are_not_known_are_not_apart(void **state)
{
	(void)state;
	assert_true(told_apart(0, -1, 1, -1));
	assert_true(told_apart(0, 0, 0, 1));
	assert_false(told_apart(0, 0, 0, 0));
	assert_false(told_apart(0, 0, 0, -1));
	assert_false(told_apart(-1, -1, 1, 1));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(pairs_become_gpus_and_vfs_each_once),
		cmocka_unit_test(map_that_is_wrong_is_one_sentence),
		cmocka_unit_test(names_that_would_leave_their_directory_are_none),
		cmocka_unit_test(container_of_nobody_is_told_so),
		cmocka_unit_test(rails_and_planes_that_are_not_known_are_not_apart),
	};

	return cmocka_run_group_tests(tests, arena_set_up, arena_tear_down);
}
