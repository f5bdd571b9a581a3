#include "kubemsg/messages-internal.h"

#include <assert.h>
#include <errno.h>
#include <string.h>

#include "base/err.h"
#include "base/str.h"

struct limits {
	size_t bytes;	 /* decoded */
	size_t messages; /* in repeated fields */
};
static const struct limits answer_limits = { (size_t)64 << 20, SIZE_MAX };
/* A request, or a preference, names ids of one pool, of one container in every kubelet there was.
 */
static const struct limits small_limits = { (size_t)4 << 20, 1024 };

/* Parts that a message may still hold. */
struct allowance {
	size_t ids, messages;
};

enum { WIRE_VARINT = 0, WIRE_64BIT = 1, WIRE_LENGTH = 2, WIRE_32BIT = 5 };

/* Tags and lengths have 32 bits: at most 5 bytes. Values may have 10. */
static bool take_varint(struct bytes *in, size_t max_bytes, uint64_t *ret)
{
	uint64_t v = 0;

	for (size_t i = 0; i < max_bytes && i < in->len; i++) {
		v |= (uint64_t)(in->data[i] & 0x7f) << (7 * i);
		if (in->data[i] & 0x80)
			continue;
		in->data += i + 1;
		in->len -= i + 1;
		*ret = v;
		return true;
	}
	return false;
}

static bool take_bytes(struct bytes *in, uint64_t n, struct bytes *ret)
{
	if (n > in->len)
		return false;
	*ret = (struct bytes) { in->data, (size_t)n };
	in->data += n;
	in->len -= (size_t)n;
	return true;
}

/* The next field: its tag, and its bytes when it is length-prefixed (else NULL data). */
static bool take_field(struct bytes *in, uint32_t *tag, struct bytes *body)
{
	struct bytes fixed;
	uint64_t v;

	*body = (struct bytes) { NULL, 0 };
	if (!take_varint(in, 5, &v))
		return false;
	*tag = (uint32_t)(v >> 3);
	switch (v & 7) {
	case WIRE_VARINT:
		return take_varint(in, 10, &v);
	case WIRE_64BIT:
		return take_bytes(in, 8, &fixed);
	case WIRE_LENGTH:
		return take_varint(in, 5, &v) && take_bytes(in, v, body);
	case WIRE_32BIT:
		return take_bytes(in, 4, &fixed);
	default:
		return false;
	}
}

static int refuse_end(const ProtobufCMessageDescriptor *desc, struct err *err)
{
	return err_set(err, EBADMSG,
		       "%s: the bytes end in the middle of a field or are not protobuf",
		       desc->short_name);
}

static int check_string(const ProtobufCMessageDescriptor *desc,
			const ProtobufCFieldDescriptor *field, struct bytes s, struct err *err)
{
	if (s.len && memchr(s.data, 0, s.len))
		return err_set(err, EILSEQ, "%s: a value of %s holds a NUL byte", desc->short_name,
			       field->name);
	if (!str_utf8_valid((const char *)s.data, s.len))
		return err_set(err, EILSEQ, "%s: a value of %s is not valid UTF-8",
			       desc->short_name, field->name);
	return 0;
}

/* Walk the wire format by the schema: the only place where a string's real length is still known.
 * Our schemas do not recur, so neither does this beyond their depth. */
static int check_message(const ProtobufCMessageDescriptor *desc, struct bytes in,
			 struct allowance *left, struct err *err)
{
	const ProtobufCFieldDescriptor *field;
	struct bytes body;
	uint32_t tag;
	int r = 0;

	while (in.len && r == 0) {
		if (!take_field(&in, &tag, &body))
			return refuse_end(desc, err);
		field = protobuf_c_message_descriptor_get_field(desc, tag);
		if (!field || !body.data)
			continue;
		if (field->type == PROTOBUF_C_TYPE_MESSAGE)
			r = check_message(field->descriptor, body, left, err);
		else if (field->type == PROTOBUF_C_TYPE_STRING)
			r = check_string(desc, field, body, err);
		if (r < 0 || field->label != PROTOBUF_C_LABEL_REPEATED)
			continue;
		if (field->type == PROTOBUF_C_TYPE_MESSAGE && left->messages-- == 0)
			return err_set(err, EBADMSG, "%s: too many values of %s", desc->short_name,
				       field->name);
		if (field->type == PROTOBUF_C_TYPE_STRING && left->ids-- == 0)
			return err_set(err, EBADMSG, "%s: more than %d values of %s",
				       desc->short_name, MESSAGE_IDS_MAX, field->name);
	}
	return r;
}

struct budget {
	struct arena *arena;
	size_t left;
	bool exhausted;
};

static void *budget_alloc(void *data, size_t size)
{
	struct budget *b = data;

	if (size > b->left) {
		b->exhausted = true;
		return NULL;
	}
	b->left -= size;
	return arena_alloc(b->arena, size);
}

/* The arena frees it all. */
static void budget_free(void *data, void *p)
{
	(void)data;
	(void)p;
}

static void *unpack(const ProtobufCMessageDescriptor *desc, struct bytes in,
		    const struct limits *limits, struct arena *a, struct err *err)
{
	struct budget budget = { a, limits->bytes, false };
	ProtobufCAllocator allocator = { budget_alloc, budget_free, &budget };
	struct allowance left = { MESSAGE_IDS_MAX, limits->messages };
	void *m;

	if (check_message(desc, in, &left, err) < 0)
		return NULL;
	m = protobuf_c_message_unpack(desc, &allocator, in.len, in.data);
	if (m)
		return m;
	if (budget.exhausted)
		err_set(err, EBADMSG, "%s: %zu bytes that take more than %zu MiB to decode",
			desc->short_name, in.len, limits->bytes >> 20);
	else
		err_set(err, EBADMSG, "%s: a field has the wrong type", desc->short_name);
	return NULL;
}

void *kubemsg_unpack(const ProtobufCMessageDescriptor *desc, struct bytes in, struct arena *a,
		     struct err *err)
{
	return unpack(desc, in, &answer_limits, a, err);
}

/* --- the schema's knowledge --- */

#define LENGTH_BYTES 5

/* With as many bytes as the largest length has, so that it can be written before it is known. */
static void put_length(char *at, size_t len)
{
	for (int i = 0; i < LENGTH_BYTES; i++, len >>= 7)
		at[i] = (char)((len & 0x7f) | (i + 1 < LENGTH_BYTES ? 0x80 : 0));
}

static size_t tag_bytes(const uint8_t *at)
{
	size_t n = 1;

	while (*at++ & 0x80)
		n++;
	return n;
}

static int add_known(struct strbuf *out, const uint8_t *data, size_t len, size_t max,
		     const ProtobufCMessageDescriptor *desc, struct err *err)
{
	if (out->len + len > max)
		return err_set(err, EFBIG, "%s takes more than %zu bytes", desc->short_name, max);
	strbuf_add(out, (const char *)data, len);
	return 0;
}

/* As deep as the schema, like check_message(). */
static int copy_known(const ProtobufCMessageDescriptor *desc, struct bytes in, size_t max,
		      struct strbuf *out, struct err *err)
{
	static const uint8_t no_length[LENGTH_BYTES];
	int r = 0;

	while (in.len && r == 0) {
		const uint8_t *begin = in.data;
		const ProtobufCFieldDescriptor *field;
		struct bytes body;
		uint32_t tag;
		size_t at;

		if (!take_field(&in, &tag, &body))
			return refuse_end(desc, err);
		field = protobuf_c_message_descriptor_get_field(desc, tag);
		if (!field)
			continue;
		if (!body.data || field->type != PROTOBUF_C_TYPE_MESSAGE) {
			r = add_known(out, begin, (size_t)(in.data - begin), max, desc, err);
			continue;
		}
		r = add_known(out, begin, tag_bytes(begin), max, desc, err);
		r = r < 0 ? r : add_known(out, no_length, sizeof(no_length), max, desc, err);
		at = out->len;
		r = r < 0 ? r : copy_known(field->descriptor, body, max, out, err);
		if (r == 0)
			put_length(out->s + at - LENGTH_BYTES, out->len - at);
	}
	return r;
}

void *kubemsg_unpack_known(const ProtobufCMessageDescriptor *desc, struct bytes in, size_t max,
			   struct arena *a, struct err *err)
{
	_cleanup_strbuf_ struct strbuf known = STRBUF_INIT;

	if (copy_known(desc, in, max, &known, err) < 0)
		return NULL;
	return unpack(desc, (struct bytes) { (const uint8_t *)strbuf_str(&known), known.len },
		      &answer_limits, a, err);
}

bool kubemsg_next(struct bytes *in, uint32_t tag, struct bytes *ret)
{
	struct bytes rest = *in, body;
	uint32_t found;

	while (rest.len && take_field(&rest, &found, &body)) {
		*in = rest;
		if (found == tag && body.data) {
			*ret = body;
			return true;
		}
	}
	return false;
}

/* --- messages --- */

static void string_as_text(uint8_t *s, size_t len)
{
	bool utf8 = str_utf8_valid((const char *)s, len);

	for (size_t i = 0; i < len; i++) {
		if (!s[i] || (!utf8 && s[i] >= 0x80))
			s[i] = '?';
	}
}

/* `out` is a copy of `in`. */
static void strings_as_text(const ProtobufCMessageDescriptor *desc, struct bytes in, uint8_t *out)
{
	const ProtobufCFieldDescriptor *field;
	const uint8_t *begin = in.data;
	struct bytes body;
	uint32_t tag;

	while (in.len && take_field(&in, &tag, &body)) {
		field = protobuf_c_message_descriptor_get_field(desc, tag);
		if (!field || !body.data)
			continue;
		if (field->type == PROTOBUF_C_TYPE_MESSAGE)
			strings_as_text(field->descriptor, body, out + (body.data - begin));
		else if (field->type == PROTOBUF_C_TYPE_STRING)
			string_as_text(out + (body.data - begin), body.len);
	}
}

static struct bytes as_text(const ProtobufCMessageDescriptor *desc, struct bytes in,
			    struct arena *a)
{
	uint8_t *out = arena_copy(a, in.data, in.len);

	strings_as_text(desc, in, out);
	return (struct bytes) { out, in.len };
}

static int decode(const struct kubemsg_type *type, struct bytes in, struct arena *message_arena,
		  struct arena *a, void *ret, struct err *err)
{
	const struct limits *limits = type->is_small ? &small_limits : &answer_limits;
	struct err why = { 0 };
	void *m;

	if (type->read)
		return type->read(in, ret, a, err);
	m = unpack(type->desc, in, limits, message_arena, &why);
	if (!m && type->as_text && why.code == EILSEQ)
		m = unpack(type->desc, as_text(type->desc, in, message_arena), limits,
			   message_arena, &why);
	if (m)
		return type->from(m, ret, a, err);
	if (err)
		*err = why;
	return -EBADMSG;
}

int kubemsg_decode(const struct kubemsg_type *type, struct bytes in, struct arena *a, void *ret,
		   struct err *err)
{
	_cleanup_arena_ struct arena *scratch = type->is_copied ? arena_new(16384) : NULL;

	return decode(type, in, scratch ? scratch : a, a, ret, err);
}

struct bytes kubemsg_pack(const void *message, struct arena *a)
{
	const ProtobufCMessage *m = message;
	struct allowance unlimited = { SIZE_MAX, SIZE_MAX };
	size_t len = protobuf_c_message_get_packed_size(m);
	uint8_t *out = arena_alloc(a, len);
	struct bytes b = { out, protobuf_c_message_pack(m, out) };

	/* One bad byte would make the kubelet drop the whole stream (docs/design/grpc.md §3). */
	assert(check_message(m->descriptor, b, &unlimited, NULL) == 0);
	(void)unlimited;
	return b;
}

void *kubemsg_new(const ProtobufCMessageDescriptor *desc, struct arena *a)
{
	void *m = arena_alloc(a, desc->sizeof_message);

	protobuf_c_message_init(desc, m);
	return m;
}

void *kubemsg_array(const ProtobufCMessageDescriptor *desc, size_t n, struct arena *a)
{
	void **v = arena_array(a, n, sizeof(*v));

	for (size_t i = 0; i < n; i++)
		v[i] = kubemsg_new(desc, a);
	return v;
}

struct bytes kubemsg_encode(const struct kubemsg_type *type, const void *message, struct arena *a)
{
	void *m = kubemsg_new(type->desc, a);

	type->to(message, m, a);
	return kubemsg_pack(m, a);
}
