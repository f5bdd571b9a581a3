/*
 * A kubelet's device manager, its PodResources server and its plugin watcher, as far as a device
 * plugin can see them (docs/design/kubelet.md §1, §2, §5). Driven by a script on standard input,
 * tells what happened as one JSON object a line on standard output. Everything below lives on the
 * rpc thread; main.c only reads lines and posts them.
 */
#ifndef FAKEKUBELET_KUBELET_H
#define FAKEKUBELET_KUBELET_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/bytes.h"
#include "base/json.h"
#include "base/str.h"
#include "kubemsg/messages.h"
#include "kubemsg/podspec.h"
#include "rpc/rpc.h"
#include "sim/devman-internal.h"
#include "sim/devman.h"
#include "sim/numa.h"

struct admission;
struct arena;
struct err;

struct kubelet_options {
	const char *dir;     /* device-plugins */
	const char *root;    /* pod-resources/, plugins_registry/ */
	const char *cdi_dir; /* the runtime's; NULL: it has none */
	enum numa_policy policy;
	const char *user_agent; /* what its calls say of it, before the library's own */
	bool old;		/* behaves as 1.20, else as 1.36 */
	bool by_path;		/* keeps clients by name and path, as 1.37 does */
	bool no_get;		/* the gate of PodResources' Get is off */
	bool rate_limit;
	bool pods_api;
	uint64_t seed;
};

/* Where the end of a stream waits: before its connection is looked up, or before that is closed. */
enum hold_ends { HOLD_NOTHING, HOLD_BEFORE, HOLD_BETWEEN };

/* One connection to a plugin: from its Register to the end of its ListAndWatch stream. */
struct client {
	struct kubelet *k;
	struct resource *res;
	struct client *next;
	char *socket;
	struct rpc_channel *channel; /* NULL once closed */
	struct rpc_subscription *stream;
	struct plugin_options options;
	unsigned in_flight;   /* calls and streams that still owe us a callback */
	bool forgotten;	      /* of a kubelet that died: its end means nothing any more */
	bool listed;	      /* the plugin server knows it */
	bool stored;	      /* the device manager's endpointStore has its path, since 1.37 */
	enum hold_ends held;  /* how far its end has come */
	struct client *found; /* what its end closes */
	/* who waits for the connection to be made; NULL when answered */
	void (*connected)(void *arg, const char *error);
	void *connected_arg;
	struct command *disconnecting; /* answered when the stream has ended */
};

/* What the device manager knows of a resource. */
struct resource {
	struct resource *next;
	char *name;
	struct arena *arena; /* owns devices */
	struct device_list devices;
	bool known;		 /* a list came once (or the checkpoint says so) */
	struct client *endpoint; /* the device manager's idea of who serves it */
	bool stopped;		 /* the endpoint's stream has ended */
	struct idset allocated;	 /* devices that the manager regards as taken */
	bool awaited;		 /* a `restart` waits for its list */
	int64_t back_us;	 /* when it came, -1 not yet */
};

enum container_kind { CONTAINER_INIT, CONTAINER_SIDECAR, CONTAINER_APP };

struct demand {
	const char *resource;
	int count;
};

/* What one container holds of one resource. */
struct allocation {
	const char *resource;
	struct ids ids;
	struct edits edits;
	struct bytes response;		   /* as it came, for the checkpoint */
	int64_t preferred_us, allocate_us; /* preferred -1: not asked */
	size_t offered;			   /* ids in the GetPreferredAllocation request */
	struct ids preferred;
};

/* A ResourceClaim of a pod: what DRA drivers were told to give for it. */
struct fake_device {
	const char *driver, *request, *name;
};
struct fake_claim {
	const char *name;
	struct fake_device *devices;
	size_t n_devices;
};

struct fake_container {
	const char *name;
	enum container_kind kind;
	struct demand *demands;
	size_t n_demands;	   /* in the order of the calls */
	struct spec_claim *claims; /* its parts of them */
	size_t n_claims;
	struct allocation *held; /* room for n_demands */
	size_t n_held;
	bool has_affinity;
	uint64_t affinity;
	int64_t took_us;
};

/* A pod the kubelet knows; everything in its arena. */
struct pod_entry {
	struct pod_entry *next;
	struct arena *arena;
	const char *ns, *name, *uid;
	struct fake_container
		*containers; /* init containers and sidecars first, as the kubelet walks them */
	size_t n_containers;
	struct fake_claim *claims;
	size_t n_claims;
	bool prepared;	/* the drivers have: after the admission, before the sandbox
			   (docs/design/kubelet.md §2.4) */
	bool active;	/* false: removed or failed, its records wait for the next collection */
	bool admitting; /* not to be collected yet */
};

/* One line of the script, from main's stdin to its answer. */
struct command {
	struct kubelet *k;
	struct command *next; /* among those whose turn has not come */
	char *line;
	char **argv;
	size_t argc;
	uint64_t number; /* line number, from 1 */
	bool background; /* ended in "&": main does not wait for it */
};

struct delayed_reply;
struct waiter;
struct watched;

struct kubelet {
	struct kubelet_options opt;
	struct rpc *rpc;
	uint64_t random;
	struct resource *resources;
	struct client *clients;
	struct pod_entry *pods; /* in order of arrival */
	struct admission *admitting, *queue;
	struct waiter *waiters;
	struct watched *watched;
	struct rpc_timer *scan_timer;

	struct rpc_server *registration, *pod_resources,
		*pods_api;	    /* the last one only on request */
	struct rpc_server *runtime; /* on request, too */
	char *runtime_says[4]; /* name, version, configuration, CNI's; the last two may be NULL */
	unsigned closing;      /* servers that have not gone yet */
	struct rpc_stream *turn_stream; /* to ourselves, from before the first command */
	struct command *turns;		/* that wait for it, the oldest first */
	uint64_t turn_last;		/* the newest whose turn comes next */
	unsigned turn_trips;		/* until then; 0: nobody waits */
	void (*turns_ready)(void);
	bool down, leaving;
	int64_t since_us;	    /* when kubelet.sock began to accept */
	struct command *going_down; /* answered when everything is closed */
	struct command *restarting; /* answered when every awaited list is back */
	struct rpc_timer *restart_timer;
	unsigned restart_gap_ms;

	/* misbehaviour on request */
	bool refuse, hang, die_in_register, pod_list_fail, pod_list_garbage, drop_reservations;
	unsigned pod_list_delay_ms, lose_lists;
	enum hold_ends hold_ends;
	struct rpc_call **held_calls; /* Register calls that never get an answer */
	size_t n_held_calls, cap_held_calls;
	struct delayed_reply *delayed; /* PodResources answers on their way */

	double tokens; /* of the PodResources rate limit */
	int64_t tokens_us;
};

/* main.c */
void command_done(struct command *cmd); /* the answer is out; frees it */
void kubelet_gone(void);		/* `quit` is complete: main may end */

/* turns.c */
int turns_open(struct kubelet *k, void (*ready)(void), struct err *err);
void turns_take(void *cmd); /* runs it, after what has reached our sockets by now */

/* commands.c */
void command_run(struct command *cmd);

/* report.c: one line each; begin opens the object and writes "event" and "t" (monotonic µs), end
 * closes and flushes it */
struct report {
	struct strbuf text;
	struct json json;
};
int64_t now_us(void);
struct json *report_begin(struct report *r, const char *event);
struct json *report_answer(struct report *r, const struct command *cmd,
			   const char *event); /* with "line" */
void report_end(struct report *r);
void report_ids(struct json *j, const char *key, const struct ids *ids);
void report_allocations(struct json *j, const struct fake_container *c);
void answer_simple(struct command *cmd, const char *event, const char *key, const char *value);
void answer_error(struct command *cmd, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
const char *status_name(enum rpc_status status); /* as grpc-go prints it: "NotFound" */

/* state.c */
struct resource *resource_find(struct kubelet *k, const char *name);
struct resource *resource_get(struct kubelet *k, const char *name);
const struct device *resource_device(const struct resource *r, const char *id);
size_t resource_allocatable(const struct resource *r);
void resource_mark_unhealthy(struct resource *r);
bool resource_is_managed(const struct resource *r);
struct pod_entry *pod_find(struct kubelet *k,
			   const char *name); /* "name" or "namespace/name"; active ones only */
void collect_inactive(struct kubelet *k, bool always); /* the real one's UpdateAllocatedDevices */
void forget_allocated(struct kubelet *k,
		      const struct pod_entry *pod); /* until the next collection */
void rebuild_allocated(struct kubelet *k);	    /* from what the pods hold */
void state_free(struct kubelet *k);

/* plugins.c */
int registration_open(struct kubelet *k, struct err *err);
void registration_release_calls(struct kubelet *k);
/* Dial, ask for options, start ListAndWatch; connected(NULL or why not) once. options NULL: ask the
 * plugin. */
void plugin_connect(struct kubelet *k, const char *resource, const char *socket,
		    const struct plugin_options *options,
		    void (*connected)(void *arg, const char *error), void *arg);
void plugin_disconnect(struct kubelet *k, struct resource *r, const char *path);
void plugin_release_ends(struct kubelet *k); /* those that are held, and none from now on */
void plugin_forget_all(struct kubelet *k);   /* the kubelet process dies */
void plugin_sweep(struct kubelet *k);

/* registry.c: the plugin watcher */
void registry_start(struct kubelet *k);
void registry_stop(struct kubelet *k);
const char *registry_driver(struct kubelet *k, const char *name); /* its socket; NULL: none */

/* dra.c */
void dra_call(struct command *cmd);

/* podresources.c */
int pod_resources_open(struct kubelet *k, struct err *err);
void pod_resources_answer_all(struct kubelet *k); /* those that are delayed, now */

/* podsapi.c */
int pods_api_open(struct kubelet *k, struct err *err);

/* runtime.c: from now on the container runtime says this of itself. config, cni NULL: nothing */
int runtime_serve(struct kubelet *k, const char *socket, const char *name, const char *version,
		  const char *config, const char *cni, struct err *err);

/* lifecycle.c */
int kubelet_up(struct kubelet *k, struct err *err);
void kubelet_down(struct kubelet *k, struct command *cmd); /* cmd is answered when all is closed */
void kubelet_restart(struct kubelet *k, struct command *cmd, unsigned gap_ms);
void kubelet_list_came(struct kubelet *k, struct resource *r);
void kubelet_quit(struct kubelet *k);

/* wait.c */
void wait_for(struct command *cmd, const char *resource, size_t count, bool exactly,
	      unsigned timeout_ms);
void wait_check(struct kubelet *k);
void wait_cancel_all(struct kubelet *k);

/* admission.c */
void admit(struct command *cmd, struct pod_entry *pod);
void admission_start_next(struct kubelet *k);
void bench(struct command *cmd, const char *socket);	   /* bench.c */
void prestart(struct command *cmd, struct pod_entry *pod); /* prestart.c */
/* start.c; container NULL: all, one after the other */
void start(struct command *cmd, struct pod_entry *pod, const char *container, unsigned timeout_ms);

/* podspec.c: `admit` arguments → a pod, or an error sentence */
int pod_parse(struct kubelet *k, char **argv, size_t argc, struct pod_entry **ret, struct err *err);

/* checkpoint.c */
void checkpoint_write(struct kubelet *k);

#endif
