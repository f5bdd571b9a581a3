/* What the files of the plugin share. Everything runs on the rpc thread. */
#ifndef RAILMATE_PLUGIN_PLUGIN_INTERNAL_H
#define RAILMATE_PLUGIN_PLUGIN_INTERNAL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/queue.h>

#include "base/log.h"
#include "rpc/socketfile.h"
#include "kubemsg/messages.h"
#include "plugin/plugin.h"
#include "plugin/registration-internal.h"
#include "rpc/rpc.h"

struct attempt;
struct offered;
struct contents_in;
struct device_list;
struct devinfo;
struct edits;
struct err;
struct grant;
struct grants;
struct late;
struct preferred_request;
struct holders;
struct ids;
struct ledger;
struct preferred_call;
struct pool;
struct pool_dev;
struct recent_answers;
struct seen_pods;
struct stats_pool;
struct prestart_call;

/* Where a registration is served. Each has a path of its own: a kubelet (1.37) keeps clients by
 * their path, and confuses two of one path (docs/design/kubelet.md §5.2). */
struct endpoint {
	char *dir, *name; /* name: what the paths of all instances and registrations begin with */
	uint32_t instance, number;
	char *path;
	bool known; /* a kubelet has heard of it */
};

/* One open ListAndWatch. */
struct listener {
	LIST_ENTRY(listener) link;
	struct rpc_stream *stream;
	uint64_t sent; /* a hash of the list that it knows; 0: none */
	bool ending;   /* we have ended it; the kubelet has not seen that yet */
	/* Not of the kubelet that we are registered with: it says nothing about that */
	bool stranger;
};

enum warning {
	WARN_SERVE,
	WARN_REGISTER,
	WARN_DEVINFO,
	WARN_PODS,
	WARN_START,
	WARN_LATE,
	WARN_FILES,
	WARN_PROBE,
	WARN_REFUSED,
	WARN_OFFER,
	WARN_MAX
};

struct plugin {
	const struct plugin_env *env;
	char *resource;
	struct node *node; /* NULL before the first update */
	bool shared;	   /* a pool of node.shared */
	bool dying;
	unsigned random; /* of rand_r() */
	struct plugin_stats stats;
	struct stats_pool *counts; /* NULL: not counted */

	/* serving: plugin.c */
	struct rpc_server *server;
	struct endpoint endpoint; /* its path */
	unsigned servers;	  /* open, or closing */
	LIST_HEAD(, listener) listeners;
	struct rpc_timer *serve_timer;

	/* registration: register.c */
	struct registration reg;
	struct rpc_timer *reg_timer;
	struct attempt *attempt;
	struct socket_id kubelet;	  /* that of the last try */
	bool kubelet_is_new;		  /* it came while we ran, and Register was not called */
	struct socket_id registered_with; /* ino 0: none yet */
	struct rpc_peer kubelet_peer;	  /* who listens there; uid -1: not known */
	int64_t try_began_ns;

	struct offered *offered; /* offered.c; NULL: the kubelet cannot be asked */

	/* the plugin watcher: watcher.c */
	bool watched;	  /* the server is in the registry */
	bool asked;	  /* GetInfo was called */
	int64_t asked_ms; /* when, last */
	bool fell_back;	  /* REGISTER_AUTO gave the registry up */
	unsigned watch_failures;
	int64_t watch_opened_ms;
	struct rpc_timer *watch_timer, *fallback_timer;

	/* PodResources: pods.c */
	bool primed;
	int64_t primed_ms; /* when */
	bool warned_old;   /* that this kubelet is */
	bool warned_dra;   /* that GPUs come by DRA */
	struct pending *priming, *probing;
	/* Calls of GetPreferredAllocation; those that had come when the List was asked for */
	uint64_t preferred, preferred_before;

	/* GetPreferredAllocation: preferred.c, predict.c */
	LIST_HEAD(, preferred_call) looks;
	struct holders *allocatable; /* one pod with one container: the devices of all plugins */
	int64_t allocatable_ms;	     /* when it was asked for; 0 never */
	struct seen_pods *seen;
	int64_t specs_distrust_until_ms;
	struct recent_answers *recent;

	/* PreStartContainer: prestart.c */
	LIST_HEAD(, prestart_call) starts;
	int64_t admission_ms; /* when the kubelet last asked for a preference or an allocation */

	/* files.c */
	/* Which topology file of the node containers are shown, if it is there; NULL: none */
	const char *topology;
	TAILQ_HEAD(, grants) given; /* their files are not written yet */
	struct rpc_timer *given_timer;

	/* devinfo.c */
	struct devinfo *devinfo;

	/* late.c; NULL before it was needed */
	struct late *late;

	struct log_rate warned[WARN_MAX];
};

unsigned plugin_jitter(struct plugin *p, unsigned ms); /* ± a quarter */
struct plugin_options plugin_options(const struct plugin *p);
const struct pool *plugin_pool(const struct plugin *p); /* NULL: the node has no such pool */

/* At most one warning of a kind each minute, ten of WARN_REFUSED; the others are logged at debug
 * level. */
void plugin_warn(struct plugin *p, enum warning kind, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));
void plugin_warn_reset(struct plugin *p,
		       enum warning kind); /* it works again: log the next failure at once */

void plugin_refuse(struct rpc_call *call, const struct err *err);
/* endpoint.c: the socket of a registration. plugin_endpoint_next(): one that no kubelet knows. */
void plugin_endpoint_init(struct endpoint *e, const char *dir, const char *resource);
void plugin_endpoint_next(struct endpoint *e);
void plugin_endpoint_sweep(const struct endpoint *e); /* those that killed instances left */
void plugin_endpoint_done(struct endpoint *e);

void plugin_serve(struct plugin *p);		    /* open our socket, or check it */
int plugin_move(struct plugin *p, struct err *err); /* to a path that no kubelet knows */
void plugin_list_again(struct plugin *p);	    /* also if it is the same */
void plugin_end_streams(struct plugin *p);	    /* of the kubelet */
void plugin_stop_serving(struct plugin *p);	    /* streams end by themselves */
bool plugin_has_stream(const struct plugin *p);	    /* of the kubelet, also one that is ending */

void plugin_register_event(struct plugin *p, enum reg_event event);
void plugin_register_anew(struct plugin *p);  /* the kubelet has lost us */
void plugin_register_check(struct plugin *p); /* has the kubelet's socket changed? */
bool plugin_register_is_kubelet(const struct plugin *p,
				const struct rpc_peer *peer); /* who opens a stream */
void plugin_register_done(struct plugin *p);

void plugin_watch_started(struct plugin *p);
void plugin_watch_opened(struct plugin *p);
void plugin_watch_closed(struct plugin *p);
bool plugin_watch_is_kubelet(const struct plugin *p, const struct rpc_peer *peer);
void plugin_watch_done(struct plugin *p);
void plugin_get_info(void *ctx, struct rpc_call *call, struct bytes request);
void plugin_notify_status(void *ctx, struct rpc_call *call, struct bytes request);

/* offered.c. NULL: nothing can be asked */
struct offered *plugin_offered_new(struct plugin *p);
/* This list is on its way to the kubelet. NULL is fine, as in all but plugin_offered_await_end().
 */
void plugin_offered_listed(struct offered *o, const struct device_list *list);
/* May another list go to the kubelet at once? true: not yet, plugin_relist() follows. */
bool plugin_offered_first(struct offered *o);
/* Calls ended, never before the return, when the kubelet offers no device of the resource any
 * more, or cannot be asked, or does not let go of them. */
void plugin_offered_await_end(struct offered *o, void (*ended)(struct plugin *p));
void plugin_offered_await_nothing(struct offered *o);
const char *
plugin_offered_problem(const struct offered *o); /* a difference that lasts; NULL: none */
void plugin_offered_free(struct offered *o);

void plugin_preferred(void *ctx, struct rpc_call *call, struct bytes request);
void plugin_preferred_done(struct plugin *p);
void plugin_start(struct plugin *p, struct rpc_call *call, struct bytes request);
void plugin_start_done(struct plugin *p);
const struct ledger *plugin_ledger(const struct plugin *p); /* NULL: none */
/* By the index of the pool's device; NULL: that is not tracked. In the arena. */
const bool *plugin_free_vfs(const struct plugin *p, const struct pool *pool, struct arena *a);
void plugin_pods_reset(struct plugin *p); /* a new kubelet: it may be of another version */
void plugin_pods_prime(struct plugin *p);
void plugin_pods_done(struct plugin *p);
/* Of a container that wants ours, in a pool that binds early: until it is over no plugin asks for a
 * List */
void plugin_note_admission(struct plugin *p);
void plugin_pods_warn_old(struct plugin *p); /* once for each kubelet */

/* Pools that bind late. The first three may be asked of any plugin. */
bool plugin_is_late(const struct plugin *p);
/* Can this node bind late? If that is not known yet, plugin_kick() follows */
bool plugin_late_is_ready(struct plugin *p);
const char *plugin_late_problem(const struct plugin *p); /* a phrase; NULL: it can, or is early */
int plugin_late_check_kubelet(const struct plugin *p, const char *user_agent, struct err *err);
struct device_list plugin_late_list(const struct plugin *p, struct arena *a);
void plugin_late_preferred(struct plugin *p, struct rpc_call *call,
			   const struct preferred_request *request);
int plugin_late_allocate(struct plugin *p, const struct ids *ids, struct arena *a,
			 struct edits *ret, struct err *err);
void plugin_late_pre_start(struct plugin *p, struct rpc_call *call, struct bytes request);
void plugin_late_done(struct plugin *p);

/* The files of containers, for pools that bind early. plugin_files_update(): the node is another
 * one. Allocate: the answer, with the mount if the directory could be made; and, some time after
 * the reply, what is in it (grants is taken). */
void plugin_files_update(struct plugin *p);
int plugin_files_allocate(struct plugin *p, struct grant *grant, struct arena *a, struct edits *ret,
			  struct err *err);
void plugin_files_later(struct plugin *p, struct grants *grants);
void plugin_files_done(struct plugin *p); /* what is left is written now */
/* Of a container that starts. -EINVAL: it must not, with a sentence. */
int plugin_files_start(struct plugin *p, const struct contents_in *in, struct arena *a,
		       struct err *err);

struct devinfo *plugin_devinfo_new(struct plugin *p);
void plugin_devinfo_update(struct devinfo *d); /* write what changed, a little at a time */
/* These soon, unless they are there: devices of the pool. */
void plugin_devinfo_ensure(struct devinfo *d, const struct pool_dev *const *devs, size_t n);
void plugin_devinfo_remove(struct devinfo *d); /* of what no container holds; NULL is fine */
void plugin_devinfo_free(struct devinfo *d);

#endif
