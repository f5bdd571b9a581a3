#include "support/fakevfs.h"

#include <errno.h>

#include "base/arena.h"
#include "base/err.h"

struct fake_vfs fake_vfs = { .lock = PTHREAD_MUTEX_INITIALIZER,
			     .changed = PTHREAD_COND_INITIALIZER };

static void wait_at_gate(void)
{
	fake_vfs.probes++;
	fake_vfs.at_gate = true;
	pthread_cond_broadcast(&fake_vfs.changed);
	while (fake_vfs.held)
		pthread_cond_wait(&fake_vfs.changed, &fake_vfs.lock);
}

void fake_vfs_reset(void)
{
	fake_vfs_let();
	pthread_mutex_lock(&fake_vfs.lock);
	while (fake_vfs.under_way > 0)
		pthread_cond_wait(&fake_vfs.changed, &fake_vfs.lock);
	fake_vfs.at_gate = fake_vfs.fails = false;
	fake_vfs.probes = 0;
	fake_vfs.gid = 3;
	pthread_mutex_unlock(&fake_vfs.lock);
}

void fake_vfs_wait(void)
{
	pthread_mutex_lock(&fake_vfs.lock);
	while (!fake_vfs.at_gate)
		pthread_cond_wait(&fake_vfs.changed, &fake_vfs.lock);
	pthread_mutex_unlock(&fake_vfs.lock);
}

void fake_vfs_let(void)
{
	pthread_mutex_lock(&fake_vfs.lock);
	fake_vfs.held = false;
	pthread_cond_broadcast(&fake_vfs.changed);
	pthread_mutex_unlock(&fake_vfs.lock);
}

static int answer(const struct bdf *bdfs, size_t n, struct arena *arena, struct vf_state *ret,
		  struct err *err)
{
	const struct gid_entry gid = { .index = fake_vfs.gid,
				       .gid = { [10] = 0xff, [11] = 0xff, [12] = 10, [15] = 7 },
				       .type = "RoCE v2",
				       .ndev = "net1" };

	if (fake_vfs.fails)
		return err_set(err, EIO, "the kernel is silent");
	for (size_t i = 0; i < n; i++)
		ret[i] = (struct vf_state) {
			.bdf = bdfs[i],
			.seen = VF_SEEN_POD,
			.netns = "cni-1",
			.netdev = "net1",
			.rdma = arena_printf(arena, "moved_%d_%d", bdfs[i].bus, bdfs[i].fn),
			.uverbs = arena_printf(arena, "uverbs9%d%d", bdfs[i].bus, bdfs[i].fn),
			.port = 1,
			.port_state = "ACTIVE",
			.link = HW_LINK_ETHERNET,
			.gids = arena_copy(arena, &gid, sizeof(gid)),
			.n_gids = 1,
			.gid_table_len = 16
		};
	return 0;
}

int fake_vfs_probe(const struct sysroot *root, const char *netns_dir, const struct bdf *bdfs,
		   size_t n, struct arena *arena, struct vf_state *ret, struct err *err)
{
	int r;

	(void)root;
	(void)netns_dir;
	pthread_mutex_lock(&fake_vfs.lock);
	fake_vfs.under_way++;
	wait_at_gate();
	r = answer(bdfs, n, arena, ret, err);
	fake_vfs.under_way--;
	pthread_cond_broadcast(&fake_vfs.changed);
	pthread_mutex_unlock(&fake_vfs.lock);
	return r;
}
