/* ResourceClaims as JSON text, one by one → what draclaim.h wants of them. */
#ifndef RAILMATE_KUBEAPI_DRACLAIMS_INTERNAL_H
#define RAILMATE_KUBEAPI_DRACLAIMS_INTERNAL_H

#include <stddef.h>

#include "kubemsg/draclaim.h"

struct arena;
struct err;

/* A claim has 32 results at most; one is asked for at a time. */
#define DRACLAIMS_KEPT_MAX ((size_t)1 << 20)

struct draclaims {
	struct arena *arena;
	struct draclaim_device *v; /* of all that were added */
	size_t n, cap;
	size_t n_claims;
};

/* Everything kept lives in the arena but v, which kubeapi_draclaims_done() frees. */
void kubeapi_draclaims_init(struct draclaims *c, struct arena *arena);
/* One claim; one without an allocation has no devices. */
int kubeapi_draclaims_add(struct draclaims *c, const char *text, size_t len, struct err *err);
void kubeapi_draclaims_done(struct draclaims *c);

#endif
