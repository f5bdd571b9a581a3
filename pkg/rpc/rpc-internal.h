/*
 * Shared by the files of this room. Everything here lives on the rpc thread but the mailbox, the
 * acceptor and the guards, which have a lock each; the acceptor's is taken before the mailbox's,
 * never the other way round, and no other under that of the guards.
 */
#ifndef RAILMATE_RPC_RPC_INTERNAL_H
#define RAILMATE_RPC_RPC_INTERNAL_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/queue.h>
#include <sys/types.h>

#include <grpc/byte_buffer.h>
#include <grpc/grpc.h>

#include "rpc/guard-internal.h"
#include "rpc/listen.h"
#include "rpc/rpc.h"

/* Handed back by the completion queue: a pointer to one of these, embedded in the object that
 * waits. */
struct tag {
	void (*fn)(void *owner, bool ok);
	void *owner;
};

struct mail {
	void (*fn)(void *arg);
	void *arg;
};

struct mailbox {
	pthread_mutex_t lock;
	struct mail *items;
	size_t n, cap;
	bool kicked; /* a wake-up is in the queue and not yet taken out */
	bool closed; /* stopping: nothing more comes in */
};

struct timers {
	struct rpc_timer **heap; /* earliest first; equal times in the order they were set */
	size_t n, cap;
	uint64_t sequence;
};

struct acceptor;
struct incoming;
LIST_HEAD(incoming_list, incoming);
LIST_HEAD(connection_list, connection);
LIST_HEAD(server_list, rpc_server);
LIST_HEAD(channel_list, rpc_channel);
LIST_HEAD(client_call_list, rpc_subscription);

struct rpc {
	grpc_completion_queue *queue;
	grpc_channel *lame; /* its one call only ever carries empty batches: the wake-up */
	grpc_call *wake_call;
	struct tag kick;
	struct mailbox mail;
	pthread_t thread;
	struct acceptor *acceptor;
	struct guards *guards;
	struct timers timers;
	struct server_list servers;
	struct channel_list channels;
	/* Calls whose handler still owes an answer that no client waits for */
	struct incoming_list orphans;
	uint64_t last_server, last_connection;
	size_t held; /* bytes, by the connections that are not closing, and by orphans */
	struct rpc_timer *sweep;
	bool stopping;
	const char *user_agent; /* NULL: only gRPC's */
};

bool rpc_on_thread(const struct rpc *rpc);

/* Of gRPC, for connections of both kinds. */
#define ARGUMENTS_MAX 10
grpc_arg argument(const char *key, int value);
size_t arguments(grpc_arg *ret, int max_receive, grpc_resource_quota *quota); /* how many */

/* --- accept.c --- */
int acceptor_start(struct rpc *rpc, struct acceptor **ret, struct err *err);
void acceptor_stop(struct acceptor *a); /* joins; frees; not from the rpc thread */
/* Listen for this server on fd, instead of its former one; -1: stop. Nothing is accepted on the old
 * descriptor after the return, so that it may be closed. */
void acceptor_set(struct acceptor *a, uint64_t server, int fd, bool guarded);
void acceptor_trust(struct acceptor *a, uint64_t server, const struct rpc_peer *peer);
/* connection_ended() follows when the socket is closed. fd stays the caller's: it ends the watch
 * before it closes fd. */
void acceptor_watch(struct acceptor *a, uint64_t connection, int fd);
void acceptor_unwatch(struct acceptor *a, int fd);

/* --- server.c --- */
struct rpc_server {
	LIST_ENTRY(rpc_server) link;
	struct rpc *rpc;
	/* Never used twice: a connection accepted for a server that went is closed */
	uint64_t id;
	char *path;
	struct listen_socket listening;
	const struct rpc_method *methods;
	size_t n_methods;
	void *ctx;
	struct connection_list connections;
	struct rpc_timer *grace;
	bool guarded, closing, ending, gone;
	bool released; /* by its owner; while false, the handle stays valid */
	void (*done)(void *arg);
	void *done_arg;
};

void server_adopt(struct rpc *rpc, uint64_t server, int fd /* taken */, const struct rpc_peer *peer,
		  uint64_t guard);
void server_shut(struct rpc_server *s);	       /* begin the end; once */
bool server_alive(const struct rpc_server *s); /* something of it is still to come */

void server_release(struct rpc_server *s); /* done(), then free */

struct connection {
	LIST_ENTRY(connection) link;
	struct rpc_server *owner;
	uint64_t id; /* never used twice */
	int watch;   /* a copy of its descriptor */
	struct rpc_peer peer;
	uint64_t guard; /* 0: none */
	grpc_server *server;
	grpc_resource_quota *quota;
	size_t share; /* the size of it */
	struct {
		struct tag tag;
		grpc_call *call;
		grpc_call_details details;
		grpc_metadata_array metadata;
		bool armed;
	} intake;
	struct incoming_list calls;
	size_t n_calls, held;
	unsigned kept; /* open streams that it is kept for */
	bool called;   /* a call came, ever */
	int64_t active_ms;
	struct tag shut;
	bool closing, drained;
};

void connection_ended(struct rpc *rpc, uint64_t id); /* there may be none */

void connection_cut(struct connection *c);    /* at once */
void connection_settle(struct connection *c); /* after an end: destroys unneeded parts */
/* Bytes that are kept for it. Closes the connection that holds most when it is too much; false:
 * these are not to be kept. */
bool connection_charge(struct connection *c, size_t bytes);
void connection_discharge(struct connection *c, size_t bytes);
void connection_expect(
	struct connection *c); /* a message that has not come yet: calls incoming_sweep() */

/* --- call.c --- */

/* One call that came in, as gRPC sees it. Lives until no batch is under way and its owner is done
 * with it. */
struct incoming {
	LIST_ENTRY(incoming) link;
	struct rpc *rpc;
	struct connection *conn; /* NULL for an orphan */
	grpc_call *call;
	const struct rpc_method *method; /* NULL: no such path */
	struct tag received, closed, sent;
	/* Completions owed to us; the one of `closed` comes last or the call is over */
	unsigned batches;
	grpc_byte_buffer *request, *sending;
	size_t sending_len, charged; /* bytes */
	int64_t began_ms;
	int cancelled;
	bool awaited; /* its request has not come */
	bool kept;    /* its connection is kept for this stream */
	bool headers_sent;
	bool answered; /* the status is on its way */
	bool over;     /* the other end is closed */
};

void incoming_begin(struct connection *c, grpc_call *call /* taken */,
		    const grpc_call_details *details, const grpc_metadata_array *metadata);
void incoming_stop(struct incoming *in); /* the server closes */

/* Ends the calls that began before and whose request is not there; true: others are still awaited.
 */
bool incoming_sweep(const struct incoming_list *calls, int64_t limit_ms);
void orphans_free(struct rpc *rpc);

/* --- client.c --- */
void channel_cancel_calls(struct rpc_channel *ch);
bool channel_busy(const struct rpc_channel *ch);
void channel_free(struct rpc_channel *ch); /* no call is under way */
struct rpc_channel *channel_next(struct rpc_channel *ch);

grpc_byte_buffer *buffer_new(struct bytes body); /* a copy */
void buffer_free(grpc_byte_buffer **buffer);	 /* NULL is fine; sets NULL */
/* The bytes of a received buffer, valid until the slice is unreferenced. False when they are
 * compressed. */
bool buffer_read(grpc_byte_buffer *buffer, grpc_slice *ret_slice, struct bytes *ret);

#endif
