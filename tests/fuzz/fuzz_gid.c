/* room: render */
/*
 * Any bytes as the GID tables of up to three VFs, and as what the operator wants: what NCCL is told
 * makes its scan end at a usable GID on every VF, or there is a reason; a fixed index is taken, or
 * refused with one sentence.
 */
#include <assert.h>
#include <errno.h>
#include <stdint.h>
#include <string.h>

#include "base/arena.h"
#include "base/err.h"
#include "base/mem.h"
#include "base/str.h"
#include "render/render-internal.h"

#define VFS_MAX 3

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

struct input {
	const uint8_t *data;
	size_t size;
};

static uint8_t take(struct input *in)
{
	if (!in->size)
		return 0;
	in->size--;
	return *in->data++;
}

/* Any address, or the beginning of one that means something. */
static void take_address(struct input *in, uint8_t ret[16])
{
	static const uint8_t heads[][12] = { { [10] = 0xff, [11] = 0xff },
					     { 0xfe, 0x80 },
					     { 0xfd },
					     { 0xff, 0x0e, [10] = 0xff, [11] = 0xff } };
	size_t head = take(in);

	for (size_t i = 0; i < 16; i++)
		ret[i] = i < 12 && head < ARRAY_LEN(heads) ? heads[head][i] : take(in);
}

static void take_table(struct input *in, struct arena *a, struct gid_vf *vf)
{
	static const char *const types[] = { "RoCE v2", "IB/RoCE v1", "", "RoCE v3", "RoCE v1" };
	size_t n = take(in) % 24;
	struct gid_entry *gids = arena_array(a, n, sizeof(*gids));
	bool *here = arena_array(a, n, sizeof(*here));
	int index = -1;

	for (size_t i = 0; i < n; i++) {
		index += 1 + take(in) % 3;
		gids[i].index = index;
		take_address(in, gids[i].gid);
		strcpy(gids[i].type, types[take(in) % ARRAY_LEN(types)]);
		here[i] = take(in) & 1;
	}
	vf->gids = gids;
	vf->n_gids = n;
	vf->table_len = take(in);
	vf->here = take(in) & 1 ? here : NULL;
}

static void take_want(struct input *in, struct arena *a, struct gid_want *want)
{
	uint8_t *range = arena_alloc(a, 16);

	want->family = (enum gid_family)(take(in) % 3);
	want->roce_version = 1 + take(in) % 2;
	if (take(in) & 1)
		return;
	take_address(in, range);
	want->range = range;
	want->range_bits = take(in) % 129;
}

static void check_auto(const struct gid_vf *vfs, size_t n, struct arena *a)
{
	struct gid_env env;
	const char *why = NULL;

	if (!gid_auto(vfs, n, a, &env, &why)) {
		assert(why && str_utf8_valid(why, strlen(why)) && !strchr(why, '\n'));
		return;
	}
	for (size_t i = 0; i < n; i++) {
		const struct gid_entry *g = gid_at(&vfs[i], gid_nccl_picks(&vfs[i], &env));

		assert(g && gid_is_candidate(&vfs[i], g));
	}
	assert(*gid_format_range(env.range, env.range_bits, a));
}

static void check_fixed(const struct gid_vf *vfs, size_t n, int index)
{
	struct err err = { 0 };
	int r = gid_check_fixed(vfs, n, index, "rdma/vf", &err);

	assert(r == 0 || (r == -EINVAL && *err.msg && !strchr(err.msg, '\n')));
	for (size_t i = 0; r == 0 && i < n; i++)
		assert(gid_is_candidate(&vfs[i], gid_at(&vfs[i], index)));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	_cleanup_arena_ struct arena *a = arena_new(0);
	struct input in = { data, size };
	struct gid_vf vfs[VFS_MAX] = { 0 };
	struct gid_want want = { 0 };
	size_t n = 1 + take(&in) % VFS_MAX;

	take_want(&in, a, &want);
	for (size_t i = 0; i < n; i++) {
		vfs[i] = (struct gid_vf) { .id = "0000:3b:00.2", .rdma = "mlx5_4", .want = want };
		take_table(&in, a, &vfs[i]);
	}
	check_auto(vfs, n, a);
	check_fixed(vfs, n, take(&in) % 32);
	return 0;
}
