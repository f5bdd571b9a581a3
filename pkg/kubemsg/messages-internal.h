/* Shared by the codecs: bytes ↔ protobuf-c messages in an arena, with the checks that protobuf-c
 * leaves out. */
#ifndef RAILMATE_KUBEMSG_MESSAGES_INTERNAL_H
#define RAILMATE_KUBEMSG_MESSAGES_INTERNAL_H

#include <protobuf-c/protobuf-c.h>

#include "base/arena.h"
#include "kubemsg/messages.h"

struct kubemsg_type {
	const ProtobufCMessageDescriptor *desc;
	bool is_small;	/* others than the kubelet can send it: it gets less memory */
	bool as_text;	/* a string that is not text is taken for text, with '?' */
	bool is_copied; /* from copies all that it keeps: the message need not stay */
	/* Instead of from: it is not unpacked as a whole. */
	int (*read)(struct bytes in, void *ret, struct arena *a, struct err *err);
	/* NULL: it is only written. -EBADMSG with a sentence. */
	int (*from)(const void *message, void *ret, struct arena *a, struct err *err);
	/* NULL: it is only read. message is a fresh one. */
	void (*to)(const void *from, void *message, struct arena *a);
};

/*
 * The message that `in` holds, in the arena; NULL with a sentence when it does not parse, when a
 * string of it is not UTF-8 or holds a NUL (protobuf-c would cut it there: "a\0b" must not pass for
 * "a"; err->code is EILSEQ for both), or when it would take too much memory.
 */
void *kubemsg_unpack(const ProtobufCMessageDescriptor *desc, struct bytes in, struct arena *a,
		     struct err *err);
/*
 * kubemsg_unpack() without the fields that the schema does not know, which protobuf-c would keep.
 * Any tenant may have written the message: max bytes of it may be left.
 */
void *kubemsg_unpack_known(const ProtobufCMessageDescriptor *desc, struct bytes in, size_t max,
			   struct arena *a, struct err *err);
enum {
	KUBEMSG_WIRE_VARINT = 0,
	KUBEMSG_WIRE_64BIT = 1,
	KUBEMSG_WIRE_LENGTH = 2,
	KUBEMSG_WIRE_32BIT = 5
};
/* Tags and lengths have 32 bits: at most 5 bytes. Values may have 10. False: it is not whole, and
 * *in is as before. */
bool kubemsg_varint(struct bytes *in, size_t max_bytes, uint64_t *ret);
/* The next field of a message that has this tag and a length; false: there is none, or *in is no
 * protobuf, and then it is not empty. */
bool kubemsg_next(struct bytes *in, uint32_t tag, struct bytes *ret);
/* The object inside of the API server's envelope; false: there is none. */
bool kubemsg_enveloped(struct bytes body, struct bytes *ret);
struct bytes kubemsg_pack(const void *message, struct arena *a);

/* n pointers to n fresh messages of this kind, as repeated fields want them. */
void *kubemsg_array(const ProtobufCMessageDescriptor *desc, size_t n, struct arena *a);
void *kubemsg_new(const ProtobufCMessageDescriptor *desc, struct arena *a);

/* A resource that device plugins or drivers serve, which Kubernetes distinguishes from its own
 * ("cpu", "hugepages-2Mi", "example.kubernetes.io/…"). */
bool kubemsg_podspec_is_extended(const char *resource);
/* A Quantity that is a whole number ("8", "+1.5k", "20e-1"). -EINVAL: no Quantity, negative, no
 * whole number, or none that fits. */
int kubemsg_podspec_count(const char *quantity, int64_t *ret);

#endif
