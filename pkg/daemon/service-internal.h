/*
 * The service for the kubelet, on the rpc thread: the plugins of all pools and their common parts,
 * opened with the first node that is published. The main thread publishes nodes; nothing here waits
 * for it.
 */
#ifndef RAILMATE_DAEMON_SERVICE_INTERNAL_H
#define RAILMATE_DAEMON_SERVICE_INTERNAL_H

#include <stdint.h>

struct daemon_options;
struct events;
struct holdings;
struct kubeapi_objects;
struct node;
struct plugin_env;
struct podres;
struct report_facts;
struct rpc;
struct service;
struct specs;
struct state;
struct sysroot;
struct unlisted;

/* All borrowed, but for specs. */
struct service_env {
	const struct daemon_options *opt;
	struct rpc *rpc;
	const struct sysroot *root;
	struct state *state; /* its ledger is taken with the first node */
	struct specs *specs; /* taken; NULL: there is no source */
	/* Taken: DRA serves the pools; NULL: device plugins do */
	struct kubeapi_objects *objects, *questions;
	struct holdings *holdings; /* the holds, for the main thread */
	struct unlisted *unlisted; /* VFs that no pool lists, for the main thread */
	struct events *events;	   /* NULL: not wanted */
	const char *probe;	   /* for plugin_env */
};

/* --- on the main thread --- */

/* The time limit of questions when a container starts, and of those that decide binding auto: that
 * of questions before a choice, but 2 s at least; and 9 s at most, for three may come one after the
 * other while the kubelet waits 30 s for PreStartContainer. */
unsigned service_patience_ms(unsigned pod_resources_timeout_ms);

struct service *service_new(const struct service_env *env);
/* A reference is taken. It is not served if it was made of an old copy of the ledger
 * (holdings_permits()). */
void service_publish(struct service *s, struct node *node);
void service_wait(struct service *s); /* until the node published before is served */
/* Why the configuration, as its files are now, is refused, one error a line; NULL: it is not. */
void service_note_refused(struct service *s, const char *error);
/* Something happened in the kubelet's directory. */
void service_kick(struct service *s);
/* Once, when there is something to allocate: until then libcurl takes no memory. */
void service_load_specs(struct service *s);
/* The kubelet's checkpoint, a path. */
const char *service_checkpoint(const struct service *s);
/* For localsocket_backend_of(), whose functions look into it on the rpc thread. */
const struct plugin_env *service_shared(const struct service *s);
void service_free(struct service *s); /* when the rpc thread has ended; NULL is fine */

/* --- on the rpc thread --- */

/* The client of PodResources, opened with the first question: the kubelet is asked for its
 * abilities before there is a node. NULL: it is not to be asked. */
struct podres *service_podres(struct service *s);
/* known: the generation of the ledger that the reader has; UINT64_MAX: none. Free with
 * report_facts_free(). */
struct report_facts *service_facts(struct service *s, uint64_t known);
void service_close(struct service *s); /* the last thing; NULL is fine */

#endif
