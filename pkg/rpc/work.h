/*
 * Work that may block, on a detached thread of its own. Its owner has a slot for it, as for
 * base/pending.h: done() comes once, unless the owner cancels before. Work that hangs in the kernel
 * outlives its owner, and rpc: so arg has copies of all that run() uses, and goes with the last
 * that uses it. Called on the rpc thread, before the end of rpc_stop().
 */
#ifndef RAILMATE_RPC_WORK_H
#define RAILMATE_RPC_WORK_H

#include <stddef.h>

struct rpc;
struct rpc_work;

struct rpc_work_kind {
	const char *name; /* of the thread: 15 characters at most */
	size_t stack_bytes;
	void (*run)(void *arg);
	void (*done)(void *arg);
	void (*free)(void *arg); /* any thread */
};

/* slot: NULL while nothing is under way. 0: arg is the work's. -errno: no thread can be started. */
int rpc_work_start(struct rpc *rpc, const struct rpc_work_kind *kind, void *arg,
		   struct rpc_work **slot);
void rpc_work_cancel(struct rpc_work **slot); /* nothing under way is fine */

#endif
