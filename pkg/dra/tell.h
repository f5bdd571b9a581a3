/*
 * The status of claims in the API server: each claim is told of when it is prepared, and again when
 * a CNI plugin has moved VFs of it. Nothing waits for that, and only people read it. On the rpc
 * thread.
 */
#ifndef RAILMATE_DRA_TELL_H
#define RAILMATE_DRA_TELL_H

#include <stddef.h>

#include "kubeapi/objects.h"

struct dra_claim_ref;
struct dra_result;
struct ledger;
struct node;
struct tells;
struct vf_state;

struct tell_env {
	const char *driver; /* outlives it */
	/* kubeapi_objects_do(), with ctx its objects */
	void (*ask)(void *ctx, const struct api_request *request, api_done_fn done, void *arg);
	void *ctx;
};

struct tells *tell_open(const struct tell_env *env);
/* result: a good one. Copied. */
void tell_prepared(struct tells *t, const struct node *node, const struct ledger *ledger,
		   const struct dra_claim_ref *claim, const struct dra_result *result);
/* VFs as they are now; others than those of claims do not matter. */
void tell_seen(struct tells *t, const struct node *node, const struct ledger *ledger,
	       const struct vf_state *v, size_t n);
void tell_unprepared(struct tells *t, const char *uid);
void tell_close(struct tells *t); /* NULL is fine */

#endif
