/* Pods as JSON text, one by one → what podspec.h wants of them. */
#ifndef RAILMATE_KUBEAPI_PODS_INTERNAL_H
#define RAILMATE_KUBEAPI_PODS_INTERNAL_H

#include <stddef.h>

#include "kubemsg/podspec.h"

struct arena;
struct err;

/* A node runs some hundred pods; this is what all of them together may leave behind, in bytes. */
#define PODS_KEPT_MAX ((size_t)3 << 20)

struct pods {
	struct arena *arena;
	struct spec_pod *v;
	size_t n, cap;
};

/* Everything kept lives in the arena but v, which kubeapi_pods_done() frees. */
void kubeapi_pods_init(struct pods *p, struct arena *arena);
/* One pod. What is read of it and is not as it has to be is an error that names it: "items[3]: …";
 * then none was added. */
int kubeapi_pods_add(struct pods *p, const char *text, size_t len, struct err *err);
void kubeapi_pods_done(struct pods *p);

#endif
