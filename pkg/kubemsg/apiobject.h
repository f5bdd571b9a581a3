/*
 * The metadata of objects, as the API server sends it where it is asked for nothing else:
 * PartialObjectMetadata, and lists of it, in Kubernetes' protobuf.
 */
#ifndef RAILMATE_KUBEMSG_APIOBJECT_H
#define RAILMATE_KUBEMSG_APIOBJECT_H

#include <stddef.h>
#include <stdint.h>

#include "base/bytes.h"

struct arena;
struct err;

/* For the header Accept. */
#define API_OBJECT_TYPE                                                                            \
	"application/vnd.kubernetes.protobuf;as=PartialObjectMetadata;g=meta.k8s.io;v=v1,"         \
	"application/vnd.kubernetes.protobuf"
#define API_OBJECTS_TYPE                                                                           \
	"application/vnd.kubernetes.protobuf;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1,"     \
	"application/vnd.kubernetes.protobuf"

struct api_object {
	const char *name, *uid;
	const char *version; /* resourceVersion */
	int64_t generation;  /* of the object: grows with each change of its spec; 0: none */
	const char *mark;    /* the annotation that was asked for; NULL: it has none */
};
struct api_objects {
	struct api_object *v;
	size_t n;
};

/* In the arena. annotation may be NULL. -EBADMSG, -EFBIG with a sentence. */
int kubemsg_object(struct bytes body, const char *annotation, struct arena *a,
		   struct api_object *ret, struct err *err);
int kubemsg_objects(struct bytes body, const char *annotation, struct arena *a,
		    struct api_objects *ret, struct err *err);

#endif
