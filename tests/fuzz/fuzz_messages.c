/* room: pods kubepeer */
/*
 * Any bytes as any message: a message or one sentence. What was understood must survive being
 * written and read again, byte for byte from the second time on.
 */
#include <assert.h>
#include <errno.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "base/arena.h"
#include "base/err.h"
#include "base/str.h"
#include "hw/inventory.h"
#include "kubemsg/messages.h"
#include "kubepeer/kubepeer.h"
#include "pods/identify.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define FUZZ(name, type, decode, encode)                                                           \
	static int name(struct bytes in, struct arena *a, struct bytes *ret, struct err *err)      \
	{                                                                                          \
		type m;                                                                            \
		int r = decode(in, a, &m, err);                                                    \
                                                                                                   \
		if (r == 0)                                                                        \
			*ret = encode;                                                             \
		return r;                                                                          \
	}

FUZZ(fuzz_options, struct plugin_options, kubemsg_decode_options, kubemsg_encode_options(&m, a))
FUZZ(fuzz_register, struct register_request, peer_decode_register, kubemsg_encode_register(&m, a))
FUZZ(fuzz_device_list, struct device_list, peer_decode_device_list,
     kubemsg_encode_device_list(&m, a))
FUZZ(fuzz_preferred, struct preferred_request, kubemsg_decode_preferred,
     kubemsg_encode_preferred(&m, a))
FUZZ(fuzz_preferred_reply, struct id_lists, kubemsg_decode_preferred_reply,
     kubemsg_encode_preferred_reply(&m, a))
FUZZ(fuzz_allocate, struct id_lists, kubemsg_decode_allocate, peer_encode_allocate(&m, a))
FUZZ(fuzz_pre_start, struct ids, kubemsg_decode_pre_start, peer_encode_pre_start(&m, a))
FUZZ(fuzz_pod_list, struct pod_list, kubemsg_decode_pod_list, peer_encode_pod_list(&m, false, a))
FUZZ(fuzz_pod_get_reply, struct pod, kubemsg_decode_pod_get_reply,
     peer_encode_pod_get_reply(&m, false, a))
FUZZ(fuzz_allocatable, struct pod_container, kubemsg_decode_allocatable,
     peer_encode_allocatable(&m, false, a))
FUZZ(fuzz_plugin_info, struct plugin_info, peer_decode_plugin_info,
     kubemsg_encode_plugin_info(&m, a))
FUZZ(fuzz_status, struct registration_status, kubemsg_decode_registration_status,
     peer_encode_registration_status(&m, a))

static int fuzz_allocate_reply(struct bytes in, struct arena *a, struct bytes *ret, struct err *err)
{
	struct edits *v;
	size_t n;
	int r = peer_decode_allocate_reply(in, a, &v, &n, err);

	if (r == 0)
		*ret = kubemsg_encode_allocate_reply(v, n, a);
	return r;
}

static int fuzz_pod_get_request(struct bytes in, struct arena *a, struct bytes *ret,
				struct err *err)
{
	const char *ns, *name;
	int r = peer_decode_pod_get_request(in, a, &ns, &name, err);

	if (r == 0)
		*ret = kubemsg_encode_pod_get_request(ns, name, a);
	return r;
}

static int (*const all[])(struct bytes, struct arena *, struct bytes *, struct err *) = {
	fuzz_options,	      fuzz_register,	    fuzz_device_list,	 fuzz_preferred,
	fuzz_preferred_reply, fuzz_allocate,	    fuzz_allocate_reply, fuzz_pre_start,
	fuzz_pod_list,	      fuzz_pod_get_reply,   fuzz_allocatable,	 fuzz_plugin_info,
	fuzz_status,	      fuzz_pod_get_request,
};

static void check_one(int (*fuzz)(struct bytes, struct arena *, struct bytes *, struct err *),
		      struct bytes in)
{
	_cleanup_arena_ struct arena *a = arena_new(0);
	struct bytes once, twice;
	struct err err = { 0 };
	int r = fuzz(in, a, &once, &err);

	if (r < 0) {
		assert(r == -EBADMSG && (err.code == EBADMSG || err.code == EILSEQ) && err.msg[0]);
		assert(str_utf8_valid(err.msg, strlen(err.msg)) && !strchr(err.msg, '\n'));
		return;
	}
	r = fuzz(once, a, &twice, &err);
	assert(r == 0);
	assert(once.len == twice.len && (!once.len || !memcmp(once.data, twice.data, once.len)));
}

/* Whatever the kubelet lists, there is an answer and a sentence. */
static void check_identify(struct bytes in)
{
	static const struct hw_inventory none;
	_cleanup_arena_ struct arena *a = arena_new(0);
	struct seen_pods *seen = seen_pods_new();
	const struct ids must = { NULL, 0 };
	struct pod_list pods;

	for (int i = 0; i < 2 && kubemsg_decode_pod_list(in, a, &pods, NULL) == 0; i++) {
		struct identified who =
			identify_container(&pods, "rdma/vf", 1, &must, &none, seen, a);

		assert(!who.found && who.why[0]);
	}
	seen_pods_free(seen);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const struct bytes in = { data, size };

	for (size_t i = 0; i < sizeof(all) / sizeof(*all); i++)
		check_one(all[i], in);
	check_identify(in);
	return 0;
}
