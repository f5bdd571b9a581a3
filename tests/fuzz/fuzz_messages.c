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
#include "kubemsg/dra.h"
#include "kubemsg/messages.h"
#include "kubepeer/kubepeer.h"
#include "pods/identify.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define DECODE(type) kubemsg_decode(&kubemsg_##type, in, a, &m, err)
#define FUZZ(name, type, decode, encode)                                                           \
	static int name(struct bytes in, struct arena *a, struct bytes *ret, struct err *err)      \
	{                                                                                          \
		type m;                                                                            \
		int r = decode;                                                                    \
                                                                                                   \
		if (r == 0)                                                                        \
			*ret = encode;                                                             \
		return r;                                                                          \
	}

FUZZ(fuoptions, struct plugin_options, DECODE(options), kubemsg_encode(&kubemsg_options, &m, a))
FUZZ(furegister, struct register_request, peer_decode_register(in, a, &m, err),
     kubemsg_encode(&kubemsg_register, &m, a))
FUZZ(fudevice_list, struct device_list, peer_decode_device_list(in, a, &m, err),
     kubemsg_encode(&kubemsg_device_list, &m, a))
FUZZ(fupreferred, struct preferred_request, DECODE(preferred),
     kubemsg_encode(&kubemsg_preferred, &m, a))
FUZZ(fupreferred_reply, struct id_lists, DECODE(preferred_reply),
     kubemsg_encode(&kubemsg_preferred_reply, &m, a))
FUZZ(fuallocate, struct id_lists, DECODE(allocate), peer_encode_allocate(&m, a))
FUZZ(fupre_start, struct ids, DECODE(pre_start), peer_encode_pre_start(&m, a))
FUZZ(fupod_list, struct pod_list, DECODE(pod_list), peer_encode_pod_list(&m, false, a))
FUZZ(fupod_get_reply, struct pod, DECODE(pod_get_reply), peer_encode_pod_get_reply(&m, false, a))
FUZZ(fuallocatable, struct pod_container, DECODE(allocatable),
     peer_encode_allocatable(&m, false, a))
FUZZ(fuplugin_info, struct plugin_info, peer_decode_plugin_info(in, a, &m, err),
     kubemsg_encode(&kubemsg_plugin_info, &m, a))
FUZZ(fustatus, struct registration_status, DECODE(registration_status),
     peer_encode_registration_status(&m, a))
FUZZ(fudra_claims, struct dra_claim_refs, DECODE(dra_claims), peer_encode_dra_claims(&m, a))
FUZZ(fudra_prepare_reply, struct dra_results, peer_decode_dra_prepare_reply(in, a, &m, err),
     kubemsg_encode(&kubemsg_dra_prepare_reply, &m, a))
FUZZ(fudra_unprepare_reply, struct dra_results, peer_decode_dra_unprepare_reply(in, a, &m, err),
     kubemsg_encode(&kubemsg_dra_unprepare_reply, &m, a))
FUZZ(fudra_health, struct dra_health_list, peer_decode_dra_health(in, a, &m, err),
     kubemsg_encode(&kubemsg_dra_health, &m, a))

static int fuallocate_reply(struct bytes in, struct arena *a, struct bytes *ret, struct err *err)
{
	struct edits *v;
	size_t n;
	int r = peer_decode_allocate_reply(in, a, &v, &n, err);

	if (r == 0)
		*ret = kubemsg_encode(&kubemsg_allocate_reply, &(struct edits_list) { v, n }, a);
	return r;
}

static int fupod_get_request(struct bytes in, struct arena *a, struct bytes *ret, struct err *err)
{
	const char *ns, *name;
	int r = peer_decode_pod_get_request(in, a, &ns, &name, err);

	if (r == 0)
		*ret = kubemsg_encode(&kubemsg_pod_get_request, &(struct pod_name) { ns, name }, a);
	return r;
}

static int (*const all[])(struct bytes, struct arena *, struct bytes *, struct err *) = {
	fuoptions,
	furegister,
	fudevice_list,
	fupreferred,
	fupreferred_reply,
	fuallocate,
	fuallocate_reply,
	fupre_start,
	fupod_list,
	fupod_get_reply,
	fuallocatable,
	fuplugin_info,
	fustatus,
	fupod_get_request,
	fudra_claims,
	fudra_prepare_reply,
	fudra_unprepare_reply,
	fudra_health,
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
	const struct pods_question q = { .resource = "rdma/vf", .want = 1 };
	struct seen_pods *seen = NULL;
	struct pod_list pods;

	for (int i = 0; i < 2 && kubemsg_decode(&kubemsg_pod_list, in, a, &pods, NULL) == 0; i++) {
		struct identified who = pods_identify(&pods, &q, &none, &seen, a);

		assert(!who.found && who.why[0]);
	}
	pods_seen_free(seen);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const struct bytes in = { data, size };

	for (size_t i = 0; i < sizeof(all) / sizeof(*all); i++)
		check_one(all[i], in);
	check_identify(in);
	return 0;
}
