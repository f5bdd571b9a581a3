/*
 * The endpoint of a device plugin: one resource between the kubelet and us. It opens the socket,
 * registers the resource (by calling the kubelet, or by the kubelet's plugin watcher), serves
 * ListAndWatch, and compares the kubelet's offer with the list that was sent. A registration or a
 * list that gets lost is made again. Which devices there are, and every other call, are the
 * plugin's. On the rpc thread.
 */
#ifndef RAILMATE_ENDPOINT_ENDPOINT_H
#define RAILMATE_ENDPOINT_ENDPOINT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "kubemsg/messages.h"

struct arena;
struct endpoint;
struct offer;
struct rpc;
struct rpc_method;
struct stats_pool;

enum endpoint_registration { REGISTER_CLASSIC, REGISTER_WATCHER, REGISTER_AUTO };

/* Shared by all endpoints, borrowed, and outlives them. */
struct endpoint_env {
	struct rpc *rpc;
	const char *plugin_dir;	  /* <kubelet-dir>: device-plugins/ with kubelet.sock */
	const char *registry_dir; /* <kubelet-root>/plugins_registry */
	enum endpoint_registration registration;
	/* REGISTER_AUTO: how long to wait for the plugin watcher; 0: 10 s */
	unsigned registry_patience_ms;
	struct offer *offer; /* the kubelet's offer of our lists; NULL: it cannot be asked */
	/* The kubelet offers other devices of the resource than its list has; problem NULL: not any
	 * more. May be NULL */
	void (*differs)(void *ctx, const char *resource, const char *problem);
	void *differs_ctx;
};

/* The plugin behind an endpoint. Each function gets ctx. */
struct endpoint_plugin {
	void *ctx;
	const char *resource; /* borrowed */
	struct plugin_options options;
	struct stats_pool *counts;	  /* NULL: not counted */
	const struct rpc_method *methods; /* its calls; endpoint_ctx() of their ctx is the plugin */
	size_t n_methods;		  /* ENDPOINT_CALLS_MAX at most */
	/* May the resource be served now? If not, endpoint_serve() follows when it may. */
	bool (*is_ready)(void *ctx);
	struct device_list (*list)(void *ctx, struct arena *a);
	void (*kubelet_came)(void *ctx); /* another one than before, perhaps of another version */
	void (*registered)(void *ctx);
	void (*closed)(void *ctx); /* after endpoint_close(): no call of the endpoint is left */
};
#define ENDPOINT_CALLS_MAX 4

struct endpoint *endpoint_new(const struct endpoint_env *env, const struct endpoint_plugin *plugin);
/* Ends the streams and closes the socket; closed() follows, or has come by the return. */
void endpoint_close(struct endpoint *e);
void *endpoint_ctx(void *endpoint); /* the plugin's */

void endpoint_serve(struct endpoint *e);  /* open the socket, or check it */
void endpoint_check(struct endpoint *e);  /* has the kubelet's socket changed? Cheap */
void endpoint_relist(struct endpoint *e); /* send the list if it changed */
bool endpoint_is_open(const struct endpoint *e);
/* The list was sent on a live stream of the kubelet. */
bool endpoint_is_registered(const struct endpoint *e);
/* A difference between offer and list that lasts, a phrase; NULL: none. Until the next event. */
const char *endpoint_problem(const struct endpoint *e);

/* Counted since start, for metrics. */
struct endpoint_stats {
	uint64_t registrations, register_failures;
};
struct endpoint_stats endpoint_stats(const struct endpoint *e);

#endif
