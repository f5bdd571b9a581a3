/*
 * The thread that talks: one request at a time over one connection, from the token's file to the
 * objects; or to the server's word that it took what was sent.
 */
#ifndef RAILMATE_KUBEAPI_TRANSFER_H
#define RAILMATE_KUBEAPI_TRANSFER_H

#include "base/err.h"
#include "kubeapi/draclaims.h"
#include "kubeapi/kubeapi.h"
#include "kubeapi/pods.h"

struct transfer;

enum transfer_kind { TRANSFER_PODS, TRANSFER_CLAIMS };

/* err.code 0: pods, or claims, hold the answer, or what was sent is there. */
struct answer {
	struct arena *arena;
	struct pods pods;
	struct draclaims claims;
	long status; /* of HTTP; 0: there was no answer */
	struct err err;
};
void answer_free(struct answer *a);

/* On the transfer's thread; the answer is the receiver's. */
typedef void (*transfer_done_fn)(void *arg, struct answer *answer);

/* What the answers list: objects of this kind. */
int transfer_open(const struct kubeapi_options *opt, enum transfer_kind kind, transfer_done_fn done,
		  void *arg, struct transfer **ret, struct err *err);
/* done once, later. Not while one is under way. url NULL: that of the options. */
void transfer_begin(struct transfer *t, const char *url);
/* The one under way, if any, ends soon, with an error. */
void transfer_cancel(struct transfer *t);
void transfer_close(struct transfer *t); /* cancels and joins: done has run, or never will */

#endif
