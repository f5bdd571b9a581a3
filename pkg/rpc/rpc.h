/*
 * Bytes over gRPC (C core) on unix sockets. One thread, "rpc", owns every gRPC object; a second
 * one, "rpc-accept", accepts connections and hands over those that begin as HTTP/2 does (gRPC's own
 * unix listener steals and unlinks live sockets of others: docs/design/grpc.md §1). Knows nothing
 * of the kubelet.
 *
 * Memory and descriptors that peers can make the process hold are bounded, whatever they send and
 * do not send: guard-internal.h has the figures. Compressed messages are refused. Only root and our
 * own user are served. A connection that is silent, or makes no call, for 5 s is closed; when there
 * are too many, the oldest one without a call is closed first, then the one that holds most, never
 * one that rpc_stream_keep() named.
 *
 * Threads: functions marked [any] may be called from anywhere, the rest only on the rpc thread,
 * i.e. from a callback or from a function handed to rpc_post().
 */
#ifndef RAILMATE_RPC_RPC_H
#define RAILMATE_RPC_RPC_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/bytes.h"

struct arena;
struct err;
struct rpc;
struct rpc_server;
struct rpc_subscription;
struct rpc_timer;
struct rpc_work;

struct rpc_call;   /* one incoming unary call that awaits its reply */
struct rpc_stream; /* one open server stream */

/* gRPC status codes that we use; numbers as on the wire. */
enum rpc_status {
	RPC_OK = 0,
	RPC_CANCELLED = 1,
	RPC_UNKNOWN = 2,
	RPC_INVALID_ARGUMENT = 3,
	RPC_DEADLINE_EXCEEDED = 4,
	RPC_NOT_FOUND = 5,
	RPC_RESOURCE_EXHAUSTED = 8,
	RPC_FAILED_PRECONDITION = 9,
	RPC_UNIMPLEMENTED = 12,
	RPC_INTERNAL = 13,
	RPC_UNAVAILABLE = 14,
};
/* One table for all edges: EBADMSG/EINVAL → INVALID_ARGUMENT, ENOENT/ENODEV → NOT_FOUND, EBUSY/EIO
 * → FAILED_PRECONDITION, EAGAIN → UNAVAILABLE, ENOSYS → UNIMPLEMENTED, else INTERNAL. Takes a
 * positive errno. */
enum rpc_status rpc_status_of(int code);

/* Blocks all signals in the threads it starts; unsets the GRPC_* variables of the environment,
 * which could abort the process, and silences gRPC's own log. Call before any other thread runs.
 * gRPC itself, with its threads, stays up for the life of the process. [any] */
int rpc_start(struct rpc **ret, struct err *err);
/* Ends calls and streams with UNAVAILABLE, cancels our own calls, closes servers (unlinking their
 * sockets if they are still ours), joins; within about 100 ms, whatever the peers do. Functions
 * posted before run first. closed() and done() are called as ever, so the data that they touch must
 * live until the return; in them handles may still be closed, new calls end as CANCELLED, and no
 * server opens. Handles that are not closed by then are freed; timers that have not run never will.
 * NULL is fine. Not from the rpc thread. [any] */
void rpc_stop(struct rpc *rpc);
/* Our user-agent in calls, before gRPC's own words; borrowed. Before the first channel is opened.
 * [any] */
void rpc_set_user_agent(struct rpc *rpc, const char *name);
/* Run fn(arg) on the rpc thread; false once stopping (fn will not run). [any] */
bool rpc_post(struct rpc *rpc, void (*fn)(void *arg), void *arg);
/* rpc_post(), and wait until fn ran. Not from the rpc thread. [any] */
bool rpc_run(struct rpc *rpc, void (*fn)(void *arg), void *arg);

/* --- peers --- */

/* The process that connected, or that listens. pid is 0 for one outside of our pid namespace (a
 * container sees the node's kubelet so); number then distinguishes processes, on Linux 6.9 and
 * later; 0: unknown. */
struct rpc_peer {
	uid_t uid;
	pid_t pid;
	uint64_t number;
};
enum rpc_kin { RPC_PEER_OTHER, RPC_PEER_SAME, RPC_PEER_UNKNOWN };
bool rpc_peer_of(int fd, struct rpc_peer *ret); /* false: fd is not a connected socket. [any] */
enum rpc_kin rpc_peer_compare(const struct rpc_peer *a, const struct rpc_peer *b); /* [any] */

/* --- serving --- */

struct rpc_method {
	const char *path; /* "/v1beta1.DevicePlugin/Allocate" */
	/* unary: must rpc_reply() exactly once, now or later; request lives until then, as does
	 * rpc_call_arena() */
	void (*unary)(void *ctx, struct rpc_call *call, struct bytes request);
	/* server stream: opened(…) once; the owner then sends with rpc_stream_send(). closed(…)
	 * once when it ended, after which the stream is gone. */
	void (*opened)(void *ctx, struct rpc_stream *stream, struct bytes request);
	void (*closed)(void *ctx, struct rpc_stream *stream);
	/* For counters, with each answer to a unary call: how long after its request. NULL: not
	 * counted. */
	void (*answered)(void *ctx, const struct rpc_method *method, enum rpc_status status,
			 int64_t ns);
};

/* Listens on a unix socket (mode 0660: the kubelet is root; path ≤ 107 bytes; a stale *socket* in
 * the way that refuses connections is replaced, a live one or another kind of file is an error
 * naming it). methods and ctx must outlive the server. A path not in methods answers UNIMPLEMENTED.
 * Requests over 512 KiB answer RESOURCE_EXHAUSTED, as do calls beyond those that one connection may
 * have open. */
int rpc_server_open(struct rpc *rpc, const char *socket, const struct rpc_method *methods, size_t n,
		    void *ctx, struct rpc_server **ret, struct err *err);
/* rpc_server_open() with a guard before each peer that is not the trusted one: the peer sends no
 * faster than it can be served, and has no more than 16 calls open. For a socket that others than
 * its own client can reach. */
int rpc_server_open_guarded(struct rpc *rpc, const char *socket, const struct rpc_method *methods,
			    size_t n, void *ctx, struct rpc_server **ret, struct err *err);
void rpc_server_trust(struct rpc_server *s,
		      const struct rpc_peer *peer); /* of connections from now on */
/* Listen again at the same path, after a wipe; calls and streams go on. Does nothing while the
 * socket is intact; on failure all stays as it was. */
int rpc_server_relisten(struct rpc_server *s, struct err *err);
/* Listen at path from now on, and unlink the former socket if it is ours; calls and streams go on.
 * On failure all stays as it was. path: not the one it has. */
int rpc_server_move(struct rpc_server *s, const char *path, struct err *err);
/* Streams end, calls get UNAVAILABLE, the socket is unlinked if it is ours; done(arg) when all is
 * gone (may be NULL), some 50 ms later at most. A handler that still owes a reply may give it at
 * any time, also after done(): it is dropped. */
void rpc_server_close(struct rpc_server *s, void (*done)(void *arg), void *arg);

struct arena *rpc_call_arena(struct rpc_call *call);		   /* freed after the reply */
const char *rpc_call_user_agent(struct rpc_call *call);		   /* "" unknown */
const struct rpc_peer *rpc_call_peer(const struct rpc_call *call); /* until its handler returns */
/* body is copied. message (UTF-8) goes with a non-OK status. */
void rpc_reply(struct rpc_call *call, enum rpc_status status, const char *message,
	       struct bytes body);

/* Queue a message. Only the newest unsent message is kept: a slow reader skips states, memory stays
 * bounded. body is copied. */
void rpc_stream_send(struct rpc_stream *stream, struct bytes body);
/* After the message that waits, if any. closed() follows, later. Sends and ends after the first end
 * are ignored. */
void rpc_stream_end(struct rpc_stream *stream, enum rpc_status status, const char *message);
void rpc_stream_set_data(struct rpc_stream *stream, void *data);
void *rpc_stream_data(const struct rpc_stream *stream);
const struct rpc_peer *rpc_stream_peer(const struct rpc_stream *stream);
/* The stream is the trusted peer's: no guard any more; and as long as the stream is open, its
 * connection is not closed in favour of others. */
void rpc_stream_keep(struct rpc_stream *stream);

/* --- calling --- */

typedef void (*rpc_done_fn)(void *arg, enum rpc_status status, const char *message,
			    struct bytes body);
struct rpc_channel; /* a connection to one unix socket, reused over calls */
/* max_receive: bytes of the largest answer to take. Authority "localhost". No keepalive. A guard
 * stands before the program that listens there. Fails at call time. */
struct rpc_channel *rpc_channel_open(struct rpc *rpc, const char *socket, size_t max_receive);
void rpc_channel_close(
	struct rpc_channel *ch); /* calls under way finish as CANCELLED first; NULL is fine */
/* Unary call, no wait-for-ready: a missing socket is UNAVAILABLE at once, and one that came back is
 * reached at once: no back-off between calls. request is copied. done exactly once, never before
 * the return; body lives until it returns. */
void rpc_call_unary(struct rpc_channel *ch, const char *path, struct bytes request,
		    unsigned timeout_ms, rpc_done_fn done, void *arg);
/* Server-streaming call: message(arg, body) for each, done(arg, …) once at the end. Returns a
 * handle to cancel with; invalid after done. */
struct rpc_subscription *rpc_call_stream(struct rpc_channel *ch, const char *path,
					 struct bytes request,
					 void (*message)(void *arg, struct bytes body),
					 rpc_done_fn done, void *arg);
void rpc_subscription_cancel(struct rpc_subscription *s);
/* Stop (true) or go on (false) reading messages: the slow reader of tests. One read may be under
 * way: its message still comes. */
void rpc_subscription_pause(struct rpc_subscription *s, bool paused);

/* --- timers --- */
struct rpc_timer *rpc_after(struct rpc *rpc, unsigned ms, void (*fn)(void *arg),
			    void *arg);	    /* one shot; gone after fn ran */
void rpc_timer_cancel(struct rpc_timer *t); /* NULL is fine; not after it ran */

/*
 * Work that may block, on a detached thread of its own. Its owner has a slot for it, as for
 * base/pending.h: done() comes once, unless the owner cancels before. Work that hangs in the kernel
 * outlives its owner, and rpc: so arg has copies of all that run() uses, and goes with the last
 * that uses it. Called on the rpc thread, before the end of rpc_stop().
 */

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
