/* One endpoint, for the files of this room: endpoint.c owns it. Everything runs on the rpc thread.
 */
#ifndef RAILMATE_ENDPOINT_ENDPOINT_INTERNAL_H
#define RAILMATE_ENDPOINT_ENDPOINT_INTERNAL_H

#include <sys/queue.h>

#include "base/log.h"
#include "endpoint/endpoint.h"
#include "endpoint/registration-internal.h"
#include "rpc/rpc.h"
#include "rpc/listen.h"

struct attempt;
struct err;
struct listener;
struct offered;

enum endpoint_warning { WARN_SERVE, WARN_REGISTER, WARN_OFFER, WARNINGS };

struct endpoint {
	const struct endpoint_env *env;
	struct endpoint_plugin plugin;
	bool dying;
	unsigned random; /* of rand_r() */
	struct endpoint_stats stats;
	struct log_rate warned[WARNINGS];

	/* the socket and its streams: endpoint.c */
	struct rpc_method methods[ENDPOINT_CALLS_MAX + 3];
	struct rpc_server *server;
	unsigned servers; /* open, or closing */
	/* Each registration has a path of its own: a kubelet (1.37) keeps clients by their path,
	 * and confuses two of one path (docs/design/kubelet.md §5.2). The paths of all instances
	 * and registrations begin with the name. */
	char *dir, *name, *path;
	uint32_t instance, number;
	bool known; /* a kubelet has heard of the path */
	LIST_HEAD(, listener) listeners;
	size_t n_listed; /* devices of the last list */
	struct rpc_timer *serve_timer;

	/* register.c */
	struct registration reg;
	struct rpc_timer *reg_timer;
	struct attempt *attempt;
	struct socket_id kubelet;	  /* that of the last try */
	bool kubelet_is_new;		  /* it came while we ran, and Register was not called */
	struct socket_id registered_with; /* ino 0: none yet */
	struct rpc_peer kubelet_peer;	  /* who listens there; uid -1: not known */
	int64_t try_began_ns;

	struct offered *offered; /* offered.c; NULL: the kubelet cannot be asked */

	/* watcher.c */
	bool watched;	  /* the server is in the registry */
	bool asked;	  /* GetInfo was called */
	int64_t asked_ms; /* when, last */
	bool fell_back;	  /* REGISTER_AUTO gave the registry up */
	unsigned watch_failures;
	int64_t watch_opened_ms;
	struct rpc_timer *watch_timer, *fallback_timer;
};

unsigned endpoint_jitter(struct endpoint *e, unsigned ms); /* ± a quarter */
/* At most one warning of a kind each minute; the others are logged at debug level. */
void endpoint_warn(struct endpoint *e, enum endpoint_warning kind, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));
/* It works again: the next failure is logged at once. */
void endpoint_warn_reset(struct endpoint *e, enum endpoint_warning kind);

int endpoint_move(struct endpoint *e, struct err *err); /* to a path that no kubelet knows */
void endpoint_list_again(struct endpoint *e);		/* also if it is the same */
void endpoint_end_streams(struct endpoint *e);		/* of the kubelet */
void endpoint_stop(struct endpoint *e);			/* streams end by themselves */
bool endpoint_has_stream(const struct endpoint *e); /* of the kubelet, also one that is ending */

/* register.c */
void endpoint_register_event(struct endpoint *e, enum reg_event event);
void endpoint_register_anew(struct endpoint *e); /* the kubelet has lost us */
bool endpoint_register_is_kubelet(const struct endpoint *e,
				  const struct rpc_peer *peer); /* who opens a stream */
void endpoint_register_done(struct endpoint *e);

/* watcher.c */
void endpoint_watch_started(struct endpoint *e);
void endpoint_watch_opened(struct endpoint *e);
void endpoint_watch_closed(struct endpoint *e);
bool endpoint_watch_is_kubelet(const struct endpoint *e, const struct rpc_peer *peer);
void endpoint_watch_done(struct endpoint *e);
void endpoint_get_info(void *ctx, struct rpc_call *call, struct bytes request);
void endpoint_notify_status(void *ctx, struct rpc_call *call, struct bytes request);

/* offered.c. NULL: nothing can be asked */
struct offered *endpoint_offered_new(struct endpoint *e);
/* The list is on its way to the kubelet. NULL is fine, as in all but
 * endpoint_offered_await_end(). */
void endpoint_offered_listed(struct offered *o, const struct device_list *list);
/* May another list go to the kubelet at once? true: not yet, endpoint_relist() follows. */
bool endpoint_offered_first(struct offered *o);
/* Calls ended, never before the return, when the kubelet offers no device of the resource any
 * more, or cannot be asked, or does not let go of them. */
void endpoint_offered_await_end(struct offered *o, void (*ended)(struct endpoint *e));
void endpoint_offered_await_nothing(struct offered *o);
const char *
endpoint_offered_problem(const struct offered *o); /* a difference that lasts; NULL: none */
void endpoint_offered_free(struct offered *o);

#endif
