/*
 * What a probe of VFs shows in tests: every VF in a pod's network, with one GID. It waits at a gate
 * while that is closed.
 */
#ifndef RAILMATE_TESTS_SUPPORT_FAKEVFS_H
#define RAILMATE_TESTS_SUPPORT_FAKEVFS_H

#include <pthread.h>
#include <stdbool.h>

#include "devstate/devstate.h"

extern struct fake_vfs {
	pthread_mutex_t lock;
	pthread_cond_t changed;
	bool held, at_gate, fails;
	unsigned probes, under_way;
	int gid; /* at this index of every VF */
} fake_vfs;

/* At the start of a test: nothing held, nothing failing, GID 3. Waits for probes of the test
 * before, which nobody else does. */
void fake_vfs_reset(void);
void fake_vfs_wait(void); /* until a probe is at the gate */
void fake_vfs_let(void);  /* the gate opens */
int fake_vfs_probe(const struct sysroot *root, const char *netns_dir, const struct bdf *bdfs,
		   size_t n, struct arena *arena, struct vf_state *ret, struct err *err);

#endif
