/* Pods as JSON text, one by one → pod specs (podspec.h). */
#ifndef RAILMATE_KUBEAPI_PODS_INTERNAL_H
#define RAILMATE_KUBEAPI_PODS_INTERNAL_H

#include <stddef.h>

#include "kubeapi/sieve-internal.h"
#include "kubemsg/podspec.h"

struct arena;
struct item;

/* Of a pod's spec, without all that is not read: the tree of it takes fifty times as much. */
#define PODS_MEMBER_MAX 32768

struct pods {
	struct spec_pods list;
	struct sieve_reader reader; /* for reading a list */
	size_t n_read;
	/* Of the pod under way: its trees are in the scratch arena. */
	struct arena *scratch;
	const struct item *metadata, *spec, *status;
	const char *unread; /* as in struct spec_pod */
};

/*
 * p must not move. A pod whose spec or status is malformed or too large becomes one whose
 * containers are not known. A pod without a name is an error: "items[3]: …".
 */
void kubeapi_pods_init(struct pods *p, struct arena *arena);
void kubeapi_pods_done(struct pods *p);

#endif
