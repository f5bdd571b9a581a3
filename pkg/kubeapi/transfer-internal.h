/* A request to the API server, and what is read of its answer. */
#ifndef RAILMATE_KUBEAPI_TRANSFER_INTERNAL_H
#define RAILMATE_KUBEAPI_TRANSFER_INTERNAL_H

#include <curl/curl.h>
#include <stdbool.h>
#include <stddef.h>

#include "base/err.h"
#include "base/str.h"
#include "kubeapi/kubeapi.h"
#include "kubemsg/podspec.h"

struct arena;
struct err;
struct item;
struct kubeapi;
struct rpc;
struct transfer;

/*
 * Reads the list "items" of a JSON object that arrives in pieces, and leaves out of each element
 * all members that are not asked for: annotations, environments and managed fields never get into
 * memory. The rest comes member by member, so that a member that is too large is left out, and the
 * element still has its name. Knows strings, escapes and brackets; whether a member is proper JSON
 * is found by the reader that takes it.
 */

/* Brackets in brackets that are kept: the reader of a member recurses. */
#define SIEVE_DEPTH_MAX 32
/* A key that is longer is none of those that are kept. */
#define SIEVE_KEY_MAX 32

/* The members of an object that stay, up to a NULL key; of a list: of each of its elements. A key
 * is compared as it is written: one with an escape is none of these. */
struct keep {
	const char *key;
	const struct keep *inside; /* NULL: the whole value */
};

/* An error of either ends the reading. */
struct sieve_reader {
	const struct keep *keep; /* of an element */
	size_t member_max;	 /* bytes of a member, without the parts left out */
	/* text lives until the return; NULL: the member is larger, or nested too deeply. */
	int (*member)(void *arg, const char *key, const char *text, size_t len, struct err *err);
	int (*end)(void *arg, struct err *err); /* of an element */
	void *arg;
};

enum sieve_where {
	SIEVE_BEFORE,
	SIEVE_FIRST_KEY,
	SIEVE_KEY,
	SIEVE_IN_KEY,
	SIEVE_COLON,
	SIEVE_FIRST_VALUE, /* of a list */
	SIEVE_VALUE,
	SIEVE_IN_WHOLE, /* a value of which all stays, or nothing */
	SIEVE_COMMA,
	SIEVE_AFTER,
};

struct sieve_level {
	const struct keep *keep;
	bool is_list, has_one;
};

struct sieve {
	const struct sieve_reader *reader;
	enum sieve_where where;
	struct sieve_level levels[SIEVE_DEPTH_MAX]; /* open brackets of which a part stays */
	size_t n_levels;
	char key[SIEVE_KEY_MAX];
	size_t key_len;
	/* Of the value that comes, or is under way: does it stay, and which parts (NULL: all)? */
	bool kept;
	const struct keep *inside;
	bool in_string, escaped;
	size_t depth;		/* of a value of which all stays, or nothing */
	struct strbuf text;	/* of the member under way */
	struct strbuf metadata; /* of the answer, when that was whole: not of its elements */
	const char *member;	/* NULL: none is under way */
	bool overflowed;	/* that one is left out */
	bool has_items;
};

/* reader is borrowed. */
void kubeapi_sieve_init(struct sieve *s, const struct sieve_reader *reader);
/* After an error nothing more may be pushed. */
int kubeapi_sieve_push(struct sieve *s, const char *data, size_t len, struct err *err);
/* Was it whole, and were there "items"? null counts as an empty list. */
int kubeapi_sieve_end(struct sieve *s, struct err *err);
void kubeapi_sieve_done(struct sieve *s);

/* Pods as JSON text, one by one → pod specs (kubemsg/podspec.h). */

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

/* ResourceClaims as JSON text, one by one → struct draclaim (kubemsg/podspec.h). */

#define DRACLAIMS_KEPT_MAX ((size_t)1 << 20)

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

/* --- the source of pod specs (specs.c) --- */

/* Options are copied. Loads libcurl; its absence is an error in one sentence. [any thread] */
int kubeapi_open(struct rpc *rpc, const struct kubeapi_options *opt, struct kubeapi **ret,
		 struct err *err);
const struct podspec_source *kubeapi_source(const struct kubeapi *k);
/* Fetches under way end as failed first. On the rpc thread, or when it is gone; not from a done.
 * NULL is fine. */
void kubeapi_close(struct kubeapi *k);

#endif
