/*
 * What vf_look() shows in tests: every VF in a pod's network, with one GID. A look waits at a gate
 * while it is held. Include it after cmocka.h.
 */
#ifndef RAILMATE_TESTS_SUPPORT_VFSIGHT_H
#define RAILMATE_TESTS_SUPPORT_VFSIGHT_H

#include <errno.h>
#include <pthread.h>
#include <stdbool.h>

#include "base/arena.h"
#include "base/err.h"
#include "discover/vfstate.h"

static struct {
	pthread_mutex_t lock;
	pthread_cond_t changed;
	bool held, at_gate, fails;
	unsigned looks;
	int gid; /* at this index of every VF */
} sight = { .lock = PTHREAD_MUTEX_INITIALIZER, .changed = PTHREAD_COND_INITIALIZER };

static inline void wait_at_gate(void)
{
	pthread_mutex_lock(&sight.lock);
	sight.looks++;
	sight.at_gate = true;
	pthread_cond_broadcast(&sight.changed);
	while (sight.held)
		pthread_cond_wait(&sight.changed, &sight.lock);
	pthread_mutex_unlock(&sight.lock);
}

static inline void wait_for_look(void)
{
	pthread_mutex_lock(&sight.lock);
	while (!sight.at_gate)
		pthread_cond_wait(&sight.changed, &sight.lock);
	pthread_mutex_unlock(&sight.lock);
}

static inline void let_look(void)
{
	pthread_mutex_lock(&sight.lock);
	sight.held = false;
	pthread_cond_broadcast(&sight.changed);
	pthread_mutex_unlock(&sight.lock);
}

static inline int fake_look(const struct sysroot *root, const char *netns_dir,
			    const struct bdf *bdfs, size_t n, struct arena *arena,
			    struct vf_state *ret, struct err *err)
{
	const struct gid_entry gid = { .index = sight.gid,
				       .gid = { [10] = 0xff, [11] = 0xff, [12] = 10, [15] = 7 },
				       .type = "RoCE v2",
				       .ndev = "net1" };

	(void)root;
	(void)netns_dir;
	wait_at_gate();
	if (sight.fails)
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

#endif
