/*
 * The source of pods' requests: builds the sources that the command line names and makes one of
 * them. With "auto" it asks the best one first and the next when that fails; one that failed is
 * left alone for a while, so that an admission does not wait for a source that is known to fail.
 */
#ifndef RAILMATE_KUBEAPI_SPECS_H
#define RAILMATE_KUBEAPI_SPECS_H

#include <stdbool.h>

#include "kubemsg/podspec.h"

struct draclaim_source;
struct err;
struct rpc;
struct specs;

enum specs_mode { SPECS_OFF, SPECS_PODS_API, SPECS_API_SERVER, SPECS_AUTO };

struct specs_options {
	enum specs_mode mode;
	const char *node_name;	     /* NULL: $NODE_NAME */
	const char *service_account; /* the folder with token and ca.crt */
};

/*
 * A source that is asked for by name and cannot be built is an error; auto takes those that there
 * are. NULL for SPECS_OFF. opt is borrowed until the return. Before rpc is busy, on any thread.
 */
int specs_open(struct rpc *rpc, const struct specs_options *opt, const char *kubelet_root,
	       struct specs **ret, struct err *err);
const struct podspec_source *specs_source(const struct specs *s); /* NULL gives NULL */
/* The source of the devices of ResourceClaims: the API server. NULL: there is none to ask; NULL
 * gives NULL. */
const struct draclaim_source *specs_claims(const struct specs *s);
/* Is there a source to ask? With auto and without a token not before a kubelet has the Pods API.
 * Cheap; NULL: no. */
bool specs_are_there(const struct specs *s);
/* Load the library of the first source to be asked: not on the rpc thread, which must not be using
 * the source yet. NULL is fine. */
void specs_load(struct specs *s);
/* Ask once in advance, so that connections are up and failures are logged at the start. On the rpc
 * thread; NULL is fine. */
void specs_warm_up(struct specs *s);
/* Fetches under way end as failed first. On the rpc thread; NULL is fine. */
void specs_close(struct specs *s);

#endif
