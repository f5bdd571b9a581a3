/*
 * Messages of the DevicePlugin service, of registration and of CRI, and what all codecs share:
 * bytes to protobuf-c messages in an arena and back, with the checks that protobuf-c leaves out.
 * Whoever speaks gRPC calls.
 */
#include <assert.h>
#include <errno.h>
#include <string.h>

#include "base/err.h"
#include "base/str.h"
#include "cri.pb-c.h"
#include "deviceplugin.pb-c.h"
#include "kubemsg/messages-internal.h"
#include "pluginregistration.pb-c.h"

/* --- what the codecs share --- */

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

bool kubemsg_varint(struct bytes *in, size_t max_bytes, uint64_t *ret)
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
	if (!kubemsg_varint(in, 5, &v))
		return false;
	*tag = (uint32_t)(v >> 3);
	switch (v & 7) {
	case KUBEMSG_WIRE_VARINT:
		return kubemsg_varint(in, 10, &v);
	case KUBEMSG_WIRE_64BIT:
		return take_bytes(in, 8, &fixed);
	case KUBEMSG_WIRE_LENGTH:
		return kubemsg_varint(in, 5, &v) && take_bytes(in, v, body);
	case KUBEMSG_WIRE_32BIT:
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

/* The DevicePlugin service: device lists, preferred allocation, Allocate, PreStartContainer. */

#define HEALTHY	  "Healthy"
#define UNHEALTHY "Unhealthy"

static void device_to(const struct device *d, V1beta1__Device *m, struct arena *a)
{
	m->id = (char *)d->id;
	m->health = d->healthy ? (char *)HEALTHY : (char *)UNHEALTHY;
	if (!d->n_nodes)
		return;
	m->topology = kubemsg_new(&v1beta1__topology_info__descriptor, a);
	m->topology->nodes = kubemsg_array(&v1beta1__numanode__descriptor, d->n_nodes, a);
	m->topology->n_nodes = d->n_nodes;
	for (size_t i = 0; i < d->n_nodes; i++)
		m->topology->nodes[i]->id = d->nodes[i];
}

static void device_list_to(const void *from, void *message, struct arena *a)
{
	const struct device_list *list = from;
	V1beta1__ListAndWatchResponse *m = message;

	m->devices = kubemsg_array(&v1beta1__device__descriptor, list->n, a);
	m->n_devices = list->n;
	for (size_t i = 0; i < list->n; i++)
		device_to(&list->v[i], m->devices[i], a);
}

const struct kubemsg_type kubemsg_device_list = {
	.desc = &v1beta1__list_and_watch_response__descriptor, .to = device_list_to
};

static int preferred_from(const void *message, void *ret, struct arena *a, struct err *err)
{
	const V1beta1__PreferredAllocationRequest *m = message;
	struct preferred_container *v = arena_array(a, m->n_container_requests, sizeof(*v));

	for (size_t i = 0; i < m->n_container_requests; i++) {
		const V1beta1__ContainerPreferredAllocationRequest *c = m->container_requests[i];

		v[i].available = (struct ids) { (const char **)c->available_deviceids,
						c->n_available_deviceids };
		v[i].must = (struct ids) { (const char **)c->must_include_deviceids,
					   c->n_must_include_deviceids };
		v[i].size = c->allocation_size;
	}
	*(struct preferred_request *)ret =
		(struct preferred_request) { v, m->n_container_requests };
	return 0;
}

static void preferred_to(const void *from, void *message, struct arena *a)
{
	const struct preferred_request *r = from;
	V1beta1__PreferredAllocationRequest *m = message;

	m->container_requests = kubemsg_array(
		&v1beta1__container_preferred_allocation_request__descriptor, r->n, a);
	m->n_container_requests = r->n;
	for (size_t i = 0; i < r->n; i++) {
		V1beta1__ContainerPreferredAllocationRequest *c = m->container_requests[i];

		c->available_deviceids = (char **)r->v[i].available.v;
		c->n_available_deviceids = r->v[i].available.n;
		c->must_include_deviceids = (char **)r->v[i].must.v;
		c->n_must_include_deviceids = r->v[i].must.n;
		c->allocation_size = r->v[i].size;
	}
}

/* An error would be the end of the pod: an id that is not text becomes an unknown one. */
const struct kubemsg_type kubemsg_preferred = {
	.desc = &v1beta1__preferred_allocation_request__descriptor,
	.is_small = true,
	.as_text = true,
	.from = preferred_from,
	.to = preferred_to
};

static int preferred_reply_from(const void *message, void *ret, struct arena *a, struct err *err)
{
	const V1beta1__PreferredAllocationResponse *m = message;
	struct ids *v = arena_array(a, m->n_container_responses, sizeof(*v));

	for (size_t i = 0; i < m->n_container_responses; i++)
		v[i] = (struct ids) { (const char **)m->container_responses[i]->deviceids,
				      m->container_responses[i]->n_deviceids };
	*(struct id_lists *)ret = (struct id_lists) { v, m->n_container_responses };
	return 0;
}

static void preferred_reply_to(const void *from, void *message, struct arena *a)
{
	const struct id_lists *l = from;
	V1beta1__PreferredAllocationResponse *m = message;

	m->container_responses = kubemsg_array(
		&v1beta1__container_preferred_allocation_response__descriptor, l->n, a);
	m->n_container_responses = l->n;
	for (size_t i = 0; i < l->n; i++) {
		m->container_responses[i]->deviceids = (char **)l->v[i].v;
		m->container_responses[i]->n_deviceids = l->v[i].n;
	}
}

const struct kubemsg_type kubemsg_preferred_reply = {
	.desc = &v1beta1__preferred_allocation_response__descriptor,
	.is_small = true,
	.from = preferred_reply_from,
	.to = preferred_reply_to
};

static int allocate_from(const void *message, void *ret, struct arena *a, struct err *err)
{
	const V1beta1__AllocateRequest *m = message;
	struct ids *v = arena_array(a, m->n_container_requests, sizeof(*v));

	for (size_t i = 0; i < m->n_container_requests; i++)
		v[i] = (struct ids) { (const char **)m->container_requests[i]->devices_ids,
				      m->container_requests[i]->n_devices_ids };
	*(struct id_lists *)ret = (struct id_lists) { v, m->n_container_requests };
	return 0;
}

const struct kubemsg_type kubemsg_allocate = { .desc = &v1beta1__allocate_request__descriptor,
					       .is_small = true,
					       .from = allocate_from };

static void edits_to(const struct edits *e, V1beta1__ContainerAllocateResponse *m, struct arena *a)
{
	m->envs = kubemsg_array(&v1beta1__container_allocate_response__envs_entry__descriptor,
				e->n_envs, a);
	m->n_envs = e->n_envs;
	for (size_t i = 0; i < e->n_envs; i++) {
		m->envs[i]->key = (char *)e->envs[i].key;
		m->envs[i]->value = (char *)e->envs[i].value;
	}
	m->devices = kubemsg_array(&v1beta1__device_spec__descriptor, e->n_devs, a);
	m->n_devices = e->n_devs;
	for (size_t i = 0; i < e->n_devs; i++) {
		m->devices[i]->host_path = (char *)e->devs[i].host;
		m->devices[i]->container_path = (char *)e->devs[i].container;
		m->devices[i]->permissions = (char *)e->devs[i].permissions;
	}
	m->mounts = kubemsg_array(&v1beta1__mount__descriptor, e->n_mounts, a);
	m->n_mounts = e->n_mounts;
	for (size_t i = 0; i < e->n_mounts; i++) {
		m->mounts[i]->host_path = (char *)e->mounts[i].host;
		m->mounts[i]->container_path = (char *)e->mounts[i].container;
		m->mounts[i]->read_only = e->mounts[i].read_only;
	}
	m->cdi_devices = kubemsg_array(&v1beta1__cdidevice__descriptor, e->n_cdi, a);
	m->n_cdi_devices = e->n_cdi;
	for (size_t i = 0; i < e->n_cdi; i++)
		m->cdi_devices[i]->name = (char *)e->cdi[i];
}

static void allocate_reply_to(const void *from, void *message, struct arena *a)
{
	const struct edits_list *list = from;
	V1beta1__AllocateResponse *m = message;

	m->container_responses =
		kubemsg_array(&v1beta1__container_allocate_response__descriptor, list->n, a);
	m->n_container_responses = list->n;
	for (size_t i = 0; i < list->n; i++)
		edits_to(&list->v[i], m->container_responses[i], a);
}

const struct kubemsg_type kubemsg_allocate_reply = {
	.desc = &v1beta1__allocate_response__descriptor, .to = allocate_reply_to
};

static int pre_start_from(const void *message, void *ret, struct arena *a, struct err *err)
{
	const V1beta1__PreStartContainerRequest *m = message;

	*(struct ids *)ret = (struct ids) { (const char **)m->devices_ids, m->n_devices_ids };
	return 0;
}

const struct kubemsg_type kubemsg_pre_start = {
	.desc = &v1beta1__pre_start_container_request__descriptor,
	.is_small = true,
	.from = pre_start_from
};

/* Registration: DevicePluginOptions, RegisterRequest, and the plugin watcher's two messages. */

static int options_from(const void *message, void *ret, struct arena *a, struct err *err)
{
	const V1beta1__DevicePluginOptions *m = message;

	*(struct plugin_options *)ret =
		(struct plugin_options) { m->pre_start_required,
					  m->get_preferred_allocation_available };
	return 0;
}

static void options_to(const void *from, void *message, struct arena *a)
{
	const struct plugin_options *o = from;
	V1beta1__DevicePluginOptions *m = message;

	m->pre_start_required = o->pre_start_required;
	m->get_preferred_allocation_available = o->preferred_allocation;
}

const struct kubemsg_type kubemsg_options = { .desc = &v1beta1__device_plugin_options__descriptor,
					      .is_small = true,
					      .from = options_from,
					      .to = options_to };

static void register_to(const void *from, void *message, struct arena *a)
{
	const struct register_request *r = from;
	V1beta1__RegisterRequest *m = message;

	m->version = (char *)r->version;
	m->endpoint = (char *)r->endpoint;
	m->resource_name = (char *)r->resource;
	m->options = kubemsg_new(&v1beta1__device_plugin_options__descriptor, a);
	options_to(&r->options, m->options, a);
}

const struct kubemsg_type kubemsg_register = { .desc = &v1beta1__register_request__descriptor,
					       .to = register_to };

static void plugin_info_to(const void *from, void *message, struct arena *a)
{
	const struct plugin_info *i = from;
	Pluginregistration__PluginInfo *m = message;

	m->type = (char *)i->type;
	m->name = (char *)i->name;
	m->endpoint = (char *)i->endpoint;
	m->supported_versions = (char **)i->versions.v;
	m->n_supported_versions = i->versions.n;
}

const struct kubemsg_type kubemsg_plugin_info = {
	.desc = &pluginregistration__plugin_info__descriptor, .to = plugin_info_to
};

static int status_from(const void *message, void *ret, struct arena *a, struct err *err)
{
	const Pluginregistration__RegistrationStatus *m = message;

	*(struct registration_status *)ret =
		(struct registration_status) { m->plugin_registered, m->error };
	return 0;
}

const struct kubemsg_type kubemsg_registration_status = {
	.desc = &pluginregistration__registration_status__descriptor,
	.is_small = true,
	.from = status_from
};

/* CRI: the runtime's name and version, and containerd's configuration with that of CNI. */

#define CONFIG "config"
#define CNI    "cniconfig"

static int version_from(const void *message, void *ret, struct arena *a, struct err *err)
{
	const Runtime__V1__VersionResponse *m = message;

	*(struct runtime_version *)ret =
		(struct runtime_version) { m->runtime_name, m->runtime_version };
	return 0;
}

const struct kubemsg_type kubemsg_runtime_version = {
	.desc = &runtime__v1__version_response__descriptor, .from = version_from
};

static void status_request_to(const void *from, void *message, struct arena *a)
{
	Runtime__V1__StatusRequest *m = message;

	m->verbose = true;
}

const struct kubemsg_type kubemsg_runtime_status_request = {
	.desc = &runtime__v1__status_request__descriptor, .to = status_request_to
};

static int runtime_status_from(const void *message, void *ret, struct arena *a, struct err *err)
{
	const Runtime__V1__StatusResponse *m = message;
	struct runtime_status s = { NULL, NULL };

	for (size_t i = 0; i < m->n_info; i++) {
		if (!strcmp(m->info[i]->key, CONFIG))
			s.config = m->info[i]->value;
		else if (!strcmp(m->info[i]->key, CNI))
			s.cni = m->info[i]->value;
	}
	*(struct runtime_status *)ret = s;
	return 0;
}

const struct kubemsg_type kubemsg_runtime_status = {
	.desc = &runtime__v1__status_response__descriptor, .from = runtime_status_from
};
