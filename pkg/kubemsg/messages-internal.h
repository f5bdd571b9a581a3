/* What the codecs share: bytes ↔ protobuf-c messages in an arena, with the checks that protobuf-c
 * leaves out. */
#ifndef RAILMATE_KUBEMSG_MESSAGES_INTERNAL_H
#define RAILMATE_KUBEMSG_MESSAGES_INTERNAL_H

#include <protobuf-c/protobuf-c.h>

#include "base/arena.h"
#include "kubemsg/messages.h"

/*
 * The message that `in` holds, in the arena; NULL with a sentence when it does not parse, when a
 * string of it is not UTF-8 or holds a NUL (protobuf-c would cut it there: "a\0b" must not pass for
 * "a"; err->code is EILSEQ for both), or when it would take too much memory.
 */
void *kubemsg_unpack(const ProtobufCMessageDescriptor *desc, struct bytes in, struct arena *a,
		     struct err *err);
/* The same, with less memory: for what any client of our socket can send. */
void *kubemsg_unpack_request(const ProtobufCMessageDescriptor *desc, struct bytes in,
			     struct arena *a, struct err *err);
/* A copy of `in` whose strings are text: what is no UTF-8, and NUL, became '?'. */
struct bytes kubemsg_as_text(const ProtobufCMessageDescriptor *desc, struct bytes in,
			     struct arena *a);
struct bytes kubemsg_pack(const void *message, struct arena *a);

/* n pointers to n fresh messages of this kind, as repeated fields want them. */
void *kubemsg_array(const ProtobufCMessageDescriptor *desc, size_t n, struct arena *a);
void *kubemsg_new(const ProtobufCMessageDescriptor *desc, struct arena *a);

#endif
