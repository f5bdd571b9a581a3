/*
 * A guard stands between gRPC and a peer that is not known to be the one a socket is for. It
 * forwards whole HTTP/2 frames, no faster than they can be worked off, and opens no more streams
 * than are allowed: gRPC itself reads a connection until it is empty before it turns to another,
 * holds peers to the limits of its settings only once they have confirmed them, and keeps some 20
 * KiB for each stream. Thread: one at a time.
 */
#ifndef RAILMATE_RPC_GUARD_INTERNAL_H
#define RAILMATE_RPC_GUARD_INTERNAL_H

#include <stdbool.h>
#include <stdint.h>

struct guard;

/* NULL: no descriptor is left. peer is the guard's from here on, inner is for gRPC. Neither blocks.
 */
struct guard *guard_new(int peer /* taken */, int *ret_inner);
int guard_peer(
	const struct guard *g); /* the two descriptors to wait on: edges, of input and output */
int guard_inner(const struct guard *g);
/* Forwards what can be. False: it is over, free it. *ret_paused: there is more, and no event will
 * come of it: try again in GUARD_PAUSE_MS. */
bool guard_pump(struct guard *g, int64_t now_ms, bool *ret_paused);
/* It is the kubelet: as many streams as gRPC allows, and no other limit */
void guard_trust(struct guard *g);
void guard_free(struct guard *g);

#define GUARD_PAUSE_MS 5

#endif
