/*
 * VFs as they are when their container starts (devstate/devstate.h), asked for on the rpc thread.
 * Each probe has a thread of its own, because it changes the network namespace, and because the
 * kernel may keep it waiting: the caller has an answer in time nevertheless.
 */
#ifndef RAILMATE_GRANT_VFPROBE_H
#define RAILMATE_GRANT_VFPROBE_H

#include <stddef.h>

#include "devstate/devstate.h"

struct rpc;
struct vfprobe;

/* devstate_vfs(), but in tests. */
typedef int (*grant_probe_fn)(const struct sysroot *root, const char *netns_dir,
			      const struct bdf *bdfs, size_t n, struct arena *arena,
			      struct vf_state *ret, struct err *err);

struct vfprobe_env {
	struct rpc *rpc;
	const char *root;      /* the machine's; opened anew for each probe */
	const char *netns_dir; /* NULL: none */
	unsigned timeout_ms;   /* 0: 2000 */
	unsigned max_threads;  /* 0: 8; more probes wait for one of them, within their own time */
	grant_probe_fn probe;  /* NULL: devstate_vfs() */
};

/* One state for each function that was asked for, in that order; NULL: not known, and why, a
 * sentence. They live until the return. */
typedef void (*grant_probe_done_fn)(void *arg, const struct vf_state *states, size_t n,
				    const char *why);

/* Strings are borrowed, but by probes under way: they may outlive everything. */
struct vfprobe *grant_probe_new(const struct vfprobe_env *env);
/* done is called once, on the rpc thread, never before the return; with grant_probe_free() at the
 * latest. */
void grant_probe_start(struct vfprobe *t, const struct bdf *bdfs, size_t n,
		       grant_probe_done_fn done, void *arg);
void grant_probe_free(struct vfprobe *t); /* does not block; NULL is fine */

#endif
