/*
 * A list as the API server sends it in Kubernetes' protobuf: its objects, read one by one while the
 * bytes arrive, so that only the one under way is in memory. And the sentence of a refusal.
 */
#ifndef RAILMATE_KUBEMSG_APILIST_H
#define RAILMATE_KUBEMSG_APILIST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/bytes.h"
#include "base/str.h"
#include "kubemsg/podspec.h"

struct arena;
struct err;

/* The media type (k8s.io/apimachinery/pkg/runtime/serializer/protobuf/doc.go). */
#define API_LIST_TYPE "application/vnd.kubernetes.protobuf"
/* Of one object. The API server takes 3 MiB in a request, and etcd 1.5 MiB by default. */
#define API_LIST_OBJECT_MAX ((size_t)8 << 20)

/* An error ends the reading. */
typedef int (*api_list_fn)(void *arg, struct bytes object, struct err *err);

enum api_list_where { API_LIST_BEFORE, API_LIST_ENVELOPE, API_LIST_INSIDE };

struct api_list {
	api_list_fn object;
	void *arg;
	enum api_list_where where;
	struct strbuf pending; /* of the field under way */
	size_t left;	       /* bytes of the list that have to come */
	size_t n;	       /* objects that were read */
	bool has_list;
	char *more; /* heap: the token that asks for the rest of it; NULL: it is complete */
};

void kubemsg_list_begin(struct api_list *l, api_list_fn object, void *arg);
/* After an error nothing more may be pushed. -EBADMSG, -EFBIG, or an error of object. */
int kubemsg_list_push(struct api_list *l, const char *data, size_t len, struct err *err);
/* Was it whole? */
int kubemsg_list_end(const struct api_list *l, struct err *err);
void kubemsg_list_done(struct api_list *l);

/* Of a Pod: its spec is added to arg, a struct spec_pods. One whose spec or status is malformed or
 * too large becomes one whose containers are not known; a pod without a name is an error. */
int kubemsg_list_pod(void *arg, struct bytes object, struct err *err);

/* Of one Pod in its envelope, as it is answered to GET: likewise. */
int kubemsg_pod(struct bytes body, struct spec_pods *pods, struct err *err);

/* What was read of a ResourceClaim; it is in the arena. */
struct api_claim {
	struct arena *arena;
	struct draclaim claim;
	bool found;
};
/* Of the ResourceClaim that was asked for, into arg, a struct api_claim. */
int kubemsg_list_claim(void *arg, struct bytes object, struct err *err);

/* The message of a metav1.Status, in which the API server refuses a question; NULL: body is none.
 * In the arena. */
const char *kubemsg_refusal(struct bytes body, struct arena *a);

#endif
