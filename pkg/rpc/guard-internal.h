/*
 * A guard stands between gRPC and a peer that is not known to be the kubelet: a client of ours, or
 * a server that we ask. It forwards whole HTTP/2 frames, no faster than they can be worked off, and
 * adds limits that gRPC has no argument for: gRPC itself reads a connection until it is empty
 * before it turns to another, holds peers to the limits of its settings only once they have
 * confirmed them, keeps a block of headers without an end, and answers to a peer that does not
 * read.
 */
#ifndef RAILMATE_RPC_GUARD_INTERNAL_H
#define RAILMATE_RPC_GUARD_INTERNAL_H

#include <stdbool.h>
#include <stdint.h>

struct err;
struct guard;
struct guards;

enum guard_of { GUARD_OF_CLIENT, GUARD_OF_SERVER };

/* --- all of them, forwarded by one thread --- */

int guards_new(struct guards **ret, struct err *err);
void guards_free(struct guards *s);    /* ends all; when no other thread uses it. NULL is fine */
int guards_fd(const struct guards *s); /* readable: guards_run() has something to do */
/* Forwards all that can be; returns ms after which it is to be called again without an event; -1:
 * none. Always the same thread. */
int guards_run(struct guards *s);
/* The descriptor for gRPC, which does not block; -1: none is left. *ret_id is never used twice. Any
 * thread. */
int guards_add(struct guards *s, int peer /* taken */, enum guard_of of, uint64_t *ret_id);
/* The peer of this guard is the kubelet: as many streams as gRPC allows, at any rate. A guard that
 * is gone is ignored. Any thread. */
void guards_trust(struct guards *s, uint64_t id);

/* --- one, for those above and for tests --- */

struct guard *guard_new(int peer /* taken */, enum guard_of of, int *ret_inner);
enum guard_state { GUARD_WAITS, GUARD_PAUSES, GUARD_HAS_MORE, GUARD_ENDED };
/* GUARD_ENDED: free it. GUARD_PAUSES: again in GUARD_PAUSE_MS, for no event will come. */
enum guard_state guard_pump(struct guard *g, int64_t now_ms);
void guard_trust(struct guard *g); /* any thread */
void guard_free(struct guard *g);

#define GUARD_PAUSE_MS 5

#endif
