/*
 * The thread of HTTPS: one request at a time over one connection, from the token's file to the
 * objects that were read, or to the confirmation of the object that was sent.
 */
#ifndef RAILMATE_KUBEAPI_TRANSFER_H
#define RAILMATE_KUBEAPI_TRANSFER_H

#include "base/err.h"
#include "kubeapi/draclaims-internal.h"
#include "kubeapi/kubeapi.h"
#include "kubeapi/pods-internal.h"

struct transfer;

enum transfer_kind { TRANSFER_PODS, TRANSFER_CLAIMS };

/* err.code 0: pods, or claims, hold the answer, or the object that was sent is there. */
struct answer {
	struct arena *arena;
	struct pods pods;
	struct draclaims claims;
	long status; /* of HTTP; 0: there was no answer */
	struct err err;
};
void kubeapi_answer_free(struct answer *a);

/* The answer is the receiver's. */
typedef void (*transfer_done_fn)(void *arg, struct answer *answer);

/* kind: of objects in answers. done runs on the thread of rpc; NULL: on the transfer's. */
int kubeapi_transfer_open(const struct kubeapi_options *opt, enum transfer_kind kind,
			  struct rpc *rpc, transfer_done_fn done, void *arg, struct transfer **ret,
			  struct err *err);
/* done once, later. Not while one is under way. url NULL: that of the options. */
void kubeapi_transfer_begin(struct transfer *t, const char *url);
/* The one under way, if any, ends soon, with an error. */
void kubeapi_transfer_cancel(struct transfer *t);
/* Cancels and joins: done has run, or never will. On the thread where done runs, or when that is
 * gone. */
void kubeapi_transfer_close(struct transfer *t);

#endif
