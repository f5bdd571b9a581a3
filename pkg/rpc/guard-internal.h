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

/* The most that peers can make the process hold, all of them together: clients of ours, and servers
 * that we ask. The only table of limits of this room. */

/* The largest request: GetPreferredAllocation names every free device of a pool, and those that
 * must be in. 2,032 slots of 63 bytes, each named twice, are 258 KiB; 2,032 PCI addresses 55 KiB.
 */
#define RECEIVE_LIMIT (512 << 10)

/* Connections that have not sent HTTP/2's first bytes: a descriptor each. All servers. */
#define SILENT_MAX 64
#define SILENT_MS  5000
/* Connections beyond that, beside those that are kept. All servers; some 60 KiB each with gRPC's
 * own share. */
#define CONNECTIONS_MAX 24
/* Descriptors that connections leave to the rest of the process. */
#define DESCRIPTORS_KEPT 32
/* Accepted, and adopted, at a time: other work of the threads comes between. */
#define ACCEPT_BATCH 16
#define ADOPT_BATCH  8

/* Open calls of a connection: as many containers as a node has may wait in PreStartContainer at
 * once, and Allocate must not wait behind them. Peers that are not known to be the kubelet have
 * fewer. */
#define CALLS_MAX   64
#define CALLS_OTHER 16
/* A connection that has more open than was announced is closed. */
#define CALLS_ABUSE 80

/* The allowance of peers with a guard, in units: a frame is one, and one more for so many bytes;
 * one that opens a call is more work, and so is one that is answered. A byte of headers may be the
 * index of one. So 80 to 250 calls a second, 8 MiB a second, or 8,000 frames that do nothing. A
 * server's answers are asked for: 64 MiB a second. */
#define CREDIT_A_MS		 8
#define CREDIT_MAX		 640
#define COST_BYTES		 1024
#define COST_BYTES_ASKED	 16384
#define COST_BYTES_HEADERS	 4
#define COST_BYTES_HEADERS_ASKED 16
#define COST_STREAM		 17
#define COST_ANSWERED		 32
/* Headers of an answer, or of its end, as they are sent. It is gRPC's own limit, too, which holds
 * only once the peer has confirmed it. Those of a call are 300 bytes. */
#define HEADERS_MAX	 8192
#define HEADERS_MAX_CALL 2048
/* Headers of one block. */
#define HEADERS_N_MAX 64

/* gRPC's buffers for reading: shared out evenly, a share is at least and at most so much. */
#define BUFFERED_MAX	   (16 << 20)
#define BUFFERED_SHARE_MIN (320 << 10)
#define BUFFERED_SHARE_MAX (2 << 20)
/* Requests that handlers have, and answers that were not read. */
#define HELD_MAX (6 << 20)

#endif
