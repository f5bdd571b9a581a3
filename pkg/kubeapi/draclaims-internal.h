/* ResourceClaims as JSON text, one by one → struct draclaim (draclaim.h). */
#ifndef RAILMATE_KUBEAPI_DRACLAIMS_INTERNAL_H
#define RAILMATE_KUBEAPI_DRACLAIMS_INTERNAL_H

#include <stddef.h>

#include "kubeapi/sieve-internal.h"
#include "kubemsg/draclaim.h"

struct arena;

/* A claim has 32 results at most; one is asked for at a time. */
#define DRACLAIMS_MEMBER_MAX 65536
#define DRACLAIMS_KEPT_MAX   ((size_t)1 << 20)

struct draclaims {
	struct arena *arena;
	struct draclaim_device *v; /* of all that were read */
	size_t n, cap;
	size_t n_claims;
	struct sieve_reader reader; /* for reading a list */
};

/* c must not move. Everything kept lives in the arena but v, which kubeapi_draclaims_done() frees.
 * A claim without an allocation has no devices. */
void kubeapi_draclaims_init(struct draclaims *c, struct arena *arena);
void kubeapi_draclaims_done(struct draclaims *c);

#endif
