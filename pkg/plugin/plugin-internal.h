/* Shared by the files of the plugin. Everything runs on the rpc thread. */
#ifndef RAILMATE_PLUGIN_PLUGIN_INTERNAL_H
#define RAILMATE_PLUGIN_PLUGIN_INTERNAL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/queue.h>

#include "base/log.h"
#include "kubemsg/messages.h"
#include "plugin/plugin.h"
#include "rpc/rpc.h"

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

enum warning {
	WARN_DEVINFO,
	WARN_PODS,
	WARN_START,
	WARN_LATE,
	WARN_FILES,
	WARN_PROBE,
	WARN_REFUSED,
	WARN_MAX
};

struct plugin {
	const struct plugin_env *env;
	char *resource;
	struct node *node; /* NULL before the first update */
	bool shared;	   /* a pool of node.shared */
	bool dying;
	struct endpoint *endpoint;
	uint64_t pod_list_failures;
	int64_t refused_ms;	   /* as in struct plugin_stats */
	struct stats_pool *counts; /* NULL: not counted */

	/* PodResources: pods.c */
	bool primed;
	int64_t primed_ms; /* when */
	bool warned_old;   /* about an old kubelet */
	bool warned_dra;   /* about GPUs by DRA */
	struct pending *priming, *probing;
	/* Calls of GetPreferredAllocation: all, and those before the priming List */
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
	/* Name of the topology file that containers are shown, if it exists; NULL: none */
	const char *topology;
	TAILQ_HEAD(, grants) given; /* their files are not written yet */
	struct rpc_timer *given_timer;

	/* devinfo.c */
	struct devinfo *devinfo;

	/* late.c; NULL before the first question */
	struct late *late;

	struct log_rate warned[WARN_MAX];
};

const struct pool *plugin_pool(const struct plugin *p); /* NULL: the node has no such pool */

/* At most one warning of a kind each minute, ten of WARN_REFUSED; the others are logged at debug
 * level. */
void plugin_warn(struct plugin *p, enum warning kind, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));
void plugin_warn_reset(struct plugin *p,
		       enum warning kind); /* after a success: logs the next failure at once */

void plugin_refuse(struct rpc_call *call, const struct err *err);
void plugin_preferred(void *ctx, struct rpc_call *call, struct bytes request);
void plugin_preferred_done(struct plugin *p);
void plugin_start(struct plugin *p, struct rpc_call *call, struct bytes request);
void plugin_start_done(struct plugin *p);
const struct ledger *plugin_ledger(const struct plugin *p); /* NULL: none */
/* Is each device of the pool free? In the arena; NULL: holds are not tracked. */
const bool *plugin_free_vfs(const struct plugin *p, const struct pool *pool, struct arena *a);
void plugin_pods_reset(struct plugin *p); /* for a new kubelet, maybe of another version */
void plugin_pods_prime(struct plugin *p);
void plugin_pods_done(struct plugin *p);
/* A container of a pool that binds early is admitted: until the end no plugin asks for a List */
void plugin_note_admission(struct plugin *p);
void plugin_pods_warn_old(struct plugin *p); /* once for each kubelet */

/* Pools that bind late. The first three may be asked of any plugin. */
bool plugin_is_late(const struct plugin *p);
/* Can this node bind late? plugin_kick() follows an answer that comes later */
bool plugin_late_is_ready(struct plugin *p);
const char *plugin_late_problem(const struct plugin *p); /* a phrase; NULL: none, or not late */
int plugin_late_check_kubelet(const struct plugin *p, const char *user_agent, struct err *err);
struct device_list plugin_late_list(const struct plugin *p, struct arena *a);
void plugin_late_preferred(struct plugin *p, struct rpc_call *call,
			   const struct preferred_request *request);
int plugin_late_allocate(struct plugin *p, const struct ids *ids, struct arena *a,
			 struct edits *ret, struct err *err);
void plugin_late_pre_start(struct plugin *p, struct rpc_call *call, struct bytes request);
void plugin_late_done(struct plugin *p);

/* The files of containers, for pools that bind early. plugin_files_update(): for another node.
 * plugin_files_allocate(): the answer, with the mount if the directory could be made.
 * plugin_files_later(): the files, after the reply (takes grants). */
void plugin_files_update(struct plugin *p);
int plugin_files_allocate(struct plugin *p, struct grant *grant, struct arena *a, struct edits *ret,
			  struct err *err);
void plugin_files_later(struct plugin *p, struct grants *grants);
void plugin_files_done(struct plugin *p); /* writes the remaining files now */
/* For a container that starts. -EINVAL: it must not, with a sentence. */
int plugin_files_start(struct plugin *p, const struct contents_in *in, struct arena *a,
		       struct err *err);

struct devinfo *plugin_devinfo_new(struct plugin *p);
void plugin_devinfo_update(struct devinfo *d); /* writes changed files, in slices */
/* Writes missing files of these devices of the pool, soon. */
void plugin_devinfo_ensure(struct devinfo *d, const struct pool_dev *const *devs, size_t n);
void plugin_devinfo_remove(struct devinfo *d); /* of VFs that no container holds; NULL is fine */
void plugin_devinfo_free(struct devinfo *d);

#endif
