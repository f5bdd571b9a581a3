/*
 * The device plugin of one resource: its socket, the five RPCs, its registration with the kubelet.
 * Lives on the rpc thread: every function here is called there.
 */
#ifndef RAILMATE_PLUGIN_PLUGIN_H
#define RAILMATE_PLUGIN_PLUGIN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "endpoint/endpoint.h"

struct latebind;
struct gpuplugin;
struct holders;
struct tracker;
struct node;
struct plugin;
struct podres;
struct podspec_source;
struct runtime;
struct stats;
struct stats_placement;
struct strbuf;
struct sysroot;

/* Do kubelet and runtime support CDI? AUTO: by the kubelet's version, the runtime's answer. */
enum plugin_cdi { CDI_AUTO, CDI_ON, CDI_OFF };

struct plugin_env {
	struct endpoint_env endpoint;
	const struct sysroot *root; /* where Allocate reads the functions again */
	const char *devinfo_dir;    /* NULL: write no device-info files */
	enum plugin_cdi cdi;	    /* late pools need CDI */
	/* The CDI directory is not a folder of the host: the runtime would not see specs */
	bool cdi_dir_missing;
	unsigned pod_resources_timeout_ms; /* the kubelet's sync loop waits for us */
	unsigned start_timeout_ms;	   /* to find a starting container; 0: 2000 */
	/* How much later than our first List's answer an earlier call may arrive; 0: 200 */
	unsigned overtaking_ms;
	/* Shared by all resources, NULL: absent. Read in every call: they may appear while plugins
	 * run. */
	struct podres *podres;	 /* PodResources; without it no container's GPUs are known */
	struct holders *holders; /* of the newest answers; with podres */
	struct tracker *tracker; /* the ledger */
	/* A container of an early pool starts; may be NULL */
	void (*placed)(void *ctx, const struct stats_placement *placement);
	void *placed_ctx;
	const struct podspec_source *specs;
	/* The node's status document (status_write_document()), when there is a node */
	void (*document)(void *ctx, struct strbuf *out);
	void *document_ctx;
	struct latebind *latebind; /* late pools */
	const char *rundir;	   /* files that are mounted into containers */
	const char *probe;	   /* the folder with the probe, mounted below them; NULL: none */
	struct vfprobe *vfprobe;   /* reads VFs when containers start */
	struct runtime *runtime;   /* asked whether it supports CDI; NULL: not asked */
	struct stats *stats;	   /* counts for metrics */
	struct gpuplugin *gpus;	   /* predicts GPUs when VFs are chosen first; needs podres */
};

/* env is borrowed and outlives the plugin. Opens nothing yet. */
struct plugin *plugin_new(const struct plugin_env *env, const char *resource);
/* A plugin of a pool of node.shared: lists shares, gives all HCAs to each container, and records no
 * holds. */
struct plugin *plugin_new_shared(const struct plugin_env *env, const char *resource);
/* A new node (a reference is taken). The first one opens the socket and registers;
 * later ones send the list if it changed. A pool that has never had a device is not served at all
 * (as the peer); one that had keeps its socket and lists 0. */
void plugin_update(struct plugin *p, struct node *node);
/* After events in the plugin directory and of the kubelet's socket: checks our socket, registers if
 * need be. Cheap. */
void plugin_kick(struct plugin *p);
/* After a change of the draining VFs (tracker): sends the list if it changed. */
void plugin_relist(struct plugin *p);
/* Has the plugin a socket, or should it? Its pool has devices, or had. */
bool plugin_is_served(const struct plugin *p);
/* Registered and the list was sent on a live stream? */
bool plugin_is_registered(const struct plugin *p);
/* Why the plugin is not registered, or why the kubelet, for some time, does not have the list all
 * the same: a phrase. NULL: none is known. Until the next event. */
const char *plugin_problem(const struct plugin *p);
void plugin_free(struct plugin *p); /* ends the stream, closes the socket; before rpc_stop() */
void plugin_end(struct plugin *p);  /* plugin_free() of a removed resource: deletes its files */

/* Counted since start, for metrics. */
struct plugin_stats {
	struct endpoint_stats endpoint;
	uint64_t pod_list_failures;
	int64_t refused_ms; /* when Allocate was refused last, monotonic; 0: never */
};
struct plugin_stats plugin_stats(const struct plugin *p);

#endif
