/*
 * The ResourceSlices of this node in the API server, kept as they are wanted. Every round begins
 * with a list of what is there, a mark on each slice shows whether it is what was written, and
 * nothing is written where nothing differs. Without events a round comes every ten minutes, and
 * only reads.
 *
 * The API server away, or a refusal: the next round comes after a pause that doubles up to 30 s.
 * What is wanted meanwhile is written then. Slices stay when the process ends: a restart is not
 * noticed. On the rpc thread.
 */
#ifndef RAILMATE_DRA_PUBLISH_H
#define RAILMATE_DRA_PUBLISH_H

#include <stdbool.h>
#include <stddef.h>

#include "kubeapi/objects.h"

struct publish;
struct rpc;
struct slices_in;
struct strbuf;

struct publish_env {
	struct rpc *rpc;
	const char *driver, *node_name; /* copied */
	/* kubeapi_objects_do(), with ctx its objects, which outlive this */
	void (*ask)(void *ctx, const struct api_request *request, api_done_fn done, void *arg);
	void *ctx;
	/* publish_has_taints() is true from now on: set again. Before the first list. May be NULL
	 */
	void (*changed)(void *arg);
	void *arg;
	unsigned pause_ms; /* the first one after a failure; 0: a second */
};

struct publish *publish_open(const struct publish_env *env);
/* What is offered from now on; nothing is written before the first call. Cheap where nothing
 * changed. in is borrowed; NULL: nothing is offered, and all slices of ours are removed. */
void publish_set(struct publish *p, const struct slices_in *in);
/* The kubelet removes all slices of the node when it starts, and ours 30 s after we are gone
 * (kubernetes pkg/kubelet/cm/dra/plugin/dra_plugin_manager.go): for each registration. Looks now,
 * and twice within the next minute. */
void publish_look(struct publish *p);
/* Does the API server keep taints of devices? (slices_in.taints) False until it was asked. */
bool publish_has_taints(const struct publish *p);
/* Is all written that is wanted? */
bool publish_is_done(const struct publish *p);
/* A sentence without its end: "8 ResourceSlices, generation 3". */
void publish_say(const struct publish *p, struct strbuf *out);
void publish_close(struct publish *p); /* NULL is fine */

#endif
