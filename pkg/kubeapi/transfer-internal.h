/* A request to the API server, and what is read of its answer. */
#ifndef RAILMATE_KUBEAPI_TRANSFER_INTERNAL_H
#define RAILMATE_KUBEAPI_TRANSFER_INTERNAL_H

#include <curl/curl.h>
#include <stdbool.h>
#include <stddef.h>

#include "base/err.h"
#include "kubeapi/kubeapi.h"
#include "kubemsg/apilist.h"
#include "kubemsg/podspec.h"

struct arena;
struct kubeapi;
struct rpc;
struct transfer;

/*
 * libcurl, loaded when a source is opened: it and its TLS library cost 8 MB of memory, which a
 * daemon without a source shall not pay. The types come from its headers, the functions from the
 * library that is there.
 */

struct libcurl {
	__typeof__(curl_global_init) *global_init;
	__typeof__(curl_easy_init) *easy_init;
	__typeof__(curl_easy_setopt) *easy_setopt;
	__typeof__(curl_easy_getinfo) *easy_getinfo;
	__typeof__(curl_easy_strerror) *easy_strerror;
	__typeof__(curl_easy_cleanup) *easy_cleanup;
	__typeof__(curl_slist_append) *slist_append;
	__typeof__(curl_slist_free_all) *slist_free_all;
	__typeof__(curl_multi_init) *multi_init;
	__typeof__(curl_multi_add_handle) *multi_add_handle;
	__typeof__(curl_multi_remove_handle) *multi_remove_handle;
	__typeof__(curl_multi_perform) *multi_perform;
	__typeof__(curl_multi_poll) *multi_poll;
	__typeof__(curl_multi_wakeup) *multi_wakeup;
	__typeof__(curl_multi_info_read) *multi_info_read;
	__typeof__(curl_multi_cleanup) *multi_cleanup;
};

/* The first of these files that is there and whole; it stays loaded. */
int kubeapi_libcurl_load(const char *const *sonames, size_t n, struct libcurl *ret,
			 struct err *err);
/* The one of this process, loaded by the first call; it stays for good. Any thread. */
int kubeapi_libcurl_get(const struct libcurl **ret, struct err *err);

/*
 * The thread of HTTPS: one request at a time over one connection, from the token's file to the
 * objects that were read, or to the confirmation of the object that was sent.
 */

enum transfer_kind { TRANSFER_PODS, TRANSFER_OBJECTS };

/* Strings are copied. */
struct transfer_request {
	const char *method, *url;
	const char *accept;	 /* NULL: API_LIST_TYPE */
	const char *type, *body; /* NULL: none */
};

/* err.code 0: pods, of TRANSFER_OBJECTS body, are the answer. */
struct answer {
	struct arena *arena;
	struct spec_pods pods;
	struct strbuf body; /* TRANSFER_BODY_MAX at most */
	long status;	    /* of HTTP; 0: there was no answer */
	struct err err;
};
#define TRANSFER_BODY_MAX API_LIST_OBJECT_MAX
void kubeapi_answer_free(struct answer *a);

/* The answer is the receiver's. */
typedef void (*transfer_done_fn)(void *arg, struct answer *answer);

/* kind: of answers. done runs on the thread of rpc; NULL: on the transfer's. */
int kubeapi_transfer_open(const struct kubeapi_options *opt, enum transfer_kind kind,
			  struct rpc *rpc, transfer_done_fn done, void *arg, struct transfer **ret,
			  struct err *err);
/* done once, later. Not while one is under way. */
void kubeapi_transfer_begin(struct transfer *t, const struct transfer_request *request);
/* The one under way, if any, ends soon, with an error. */
void kubeapi_transfer_cancel(struct transfer *t);
/* Cancels and joins: done has run, or never will. On the thread where done runs, or when that is
 * gone. */
void kubeapi_transfer_close(struct transfer *t);

/* --- the source of pod specs (specs.c) --- */

/* Options are copied. Loads libcurl; its absence is an error in one sentence. [any thread] */
int kubeapi_open(struct rpc *rpc, const struct kubeapi_options *opt, struct kubeapi **ret,
		 struct err *err);
const struct podspec_source *kubeapi_source(const struct kubeapi *k);
/* Fetches under way end as failed first. On the rpc thread, or when it is gone; not from a done.
 * NULL is fine. */
void kubeapi_close(struct kubeapi *k);

#endif
