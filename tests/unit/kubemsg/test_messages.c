#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/err.h"
#include "base/mem.h"
#include "kubemsg/messages.h"
#include "kubepeer/kubepeer.h"
#include "support/testarena.h"

#include <errno.h>

#define BYTES(literal) ((struct bytes) { (const uint8_t *)(literal), sizeof(literal) - 1 })
#define IDS(...)                                                                                   \
	((struct ids) { (const char *[]) { __VA_ARGS__ },                                          \
			sizeof((const char *[]) { __VA_ARGS__ }) / sizeof(const char *) })

static void assert_bytes(struct bytes got, struct bytes want)
{
	assert_int_equal(got.len, want.len);
	if (want.len)
		assert_memory_equal(got.data, want.data, want.len);
}

static void assert_ids(struct ids got, struct ids want)
{
	assert_int_equal(got.n, want.n);
	for (size_t i = 0; i < want.n; i++)
		assert_string_equal(got.v[i], want.v[i]);
}

/* --- the kubelet's bytes --- */

static void options_are_the_kubelets_bytes(void **state)
{
	struct plugin_options o = { false, true }, back = { true, false };

	(void)state;
	assert_bytes(kubemsg_encode(&kubemsg_options, &o, arena), BYTES("\x10\x01"));
	assert_int_equal(kubemsg_decode(&kubemsg_options, BYTES("\x10\x01"), arena, &back, NULL),
			 0);
	assert_true(back.preferred_allocation);
	assert_false(back.pre_start_required);
	assert_int_equal(
		kubemsg_decode(&kubemsg_options, (struct bytes) { NULL, 0 }, arena, &back, NULL),
		0);
	assert_false(back.preferred_allocation);
}

static void register_request_is_the_kubelets_bytes(void **state)
{
	static const char wire[] =
		"\x0a\x07v1beta1\x12\x06x.sock\x1a\x07rdma/vf\x22\x04\x08\x01\x10\x01";
	struct register_request r = { "v1beta1", "x.sock", "rdma/vf", { true, true } }, back;

	(void)state;
	assert_bytes(kubemsg_encode(&kubemsg_register, &r, arena), BYTES(wire));
	assert_int_equal(peer_decode_register(BYTES(wire), arena, &back, NULL), 0);
	assert_string_equal(back.version, "v1beta1");
	assert_string_equal(back.endpoint, "x.sock");
	assert_string_equal(back.resource, "rdma/vf");
	assert_true(back.options.pre_start_required && back.options.preferred_allocation);
	assert_int_equal(peer_decode_register(BYTES("\x1a\x07rdma/vf"), arena, &back, NULL), 0);
	assert_false(back.options.preferred_allocation);
	assert_string_equal(back.endpoint, "");
}

static void node_zero_is_sent_as_an_empty_node(void **state)
{
	static const int64_t zero = 0;
	struct device d = { "a", true, &zero, 1 };
	struct device_list list = { &d, 1 }, back;
	struct bytes wire = kubemsg_encode(&kubemsg_device_list, &list, arena);

	(void)state;
	assert_bytes(wire, BYTES("\x0a\x10\x0a\x01"
				 "a\x12\x07Healthy\x1a\x02\x0a\x00"));
	assert_int_equal(peer_decode_device_list(wire, arena, &back, NULL), 0);
	assert_int_equal(back.n, 1);
	assert_true(back.v[0].healthy);
	assert_int_equal(back.v[0].n_nodes, 1);
	assert_int_equal(back.v[0].nodes[0], 0);
}

static void device_without_node_has_no_topology(void **state)
{
	struct device d = { "a", false, NULL, 0 };
	struct device_list list = { &d, 1 }, back;
	struct bytes wire = kubemsg_encode(&kubemsg_device_list, &list, arena);

	(void)state;
	assert_bytes(wire, BYTES("\x0a\x0e\x0a\x01"
				 "a\x12\x09Unhealthy"));
	assert_int_equal(peer_decode_device_list(wire, arena, &back, NULL), 0);
	assert_false(back.v[0].healthy);
	assert_int_equal(back.v[0].n_nodes, 0);
}

static void empty_list_is_no_bytes(void **state)
{
	struct device_list list = { NULL, 0 }, back = { NULL, 7 };

	(void)state;
	assert_int_equal(kubemsg_encode(&kubemsg_device_list, &list, arena).len, 0);
	assert_int_equal(peer_decode_device_list((struct bytes) { NULL, 0 }, arena, &back, NULL),
			 0);
	assert_int_equal(back.n, 0);
}

static void preferred_request_round_trips(void **state)
{
	struct preferred_container c[] = { { IDS("b", "a"), IDS("a"), 2 },
					   { IDS("c"), { NULL, 0 }, -1 } };
	struct preferred_request r = { c, 2 }, back;
	struct bytes wire = kubemsg_encode(&kubemsg_preferred, &r, arena);

	(void)state;
	assert_bytes(wire, BYTES("\x0a\x0b\x0a\x01"
				 "b\x0a\x01"
				 "a\x12\x01"
				 "a\x18\x02"
				 "\x0a\x0e\x0a\x01"
				 "c\x18\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01"));
	assert_int_equal(kubemsg_decode(&kubemsg_preferred, wire, arena, &back, NULL), 0);
	assert_int_equal(back.n, 2);
	assert_ids(back.v[0].available, IDS("b", "a"));
	assert_ids(back.v[0].must, IDS("a"));
	assert_int_equal(back.v[0].size, 2);
	assert_int_equal(back.v[1].size, -1);
	assert_int_equal(back.v[1].must.n, 0);
}

static void id_lists_round_trip(void **state)
{
	struct ids lists[] = { IDS("0000:1a:00.2", "0000:1a:00.3"), { NULL, 0 } };
	struct id_lists l = { lists, 2 }, back;

	(void)state;
	assert_int_equal(kubemsg_decode(&kubemsg_preferred_reply,
					kubemsg_encode(&kubemsg_preferred_reply, &l, arena), arena,
					&back, NULL),
			 0);
	assert_int_equal(back.n, 2);
	assert_ids(back.v[0], lists[0]);
	assert_int_equal(back.v[1].n, 0);
	assert_int_equal(kubemsg_decode(&kubemsg_allocate, peer_encode_allocate(&l, arena), arena,
					&back, NULL),
			 0);
	assert_int_equal(back.n, 2);
	assert_ids(back.v[0], lists[0]);
}

static void pre_start_round_trips(void **state)
{
	struct ids ids = IDS("x", "y"), back;

	(void)state;
	assert_int_equal(kubemsg_decode(&kubemsg_pre_start, peer_encode_pre_start(&ids, arena),
					arena, &back, NULL),
			 0);
	assert_ids(back, ids);
}

static void allocate_reply_round_trips(void **state)
{
	struct kv envs[] = { { "A", "" }, { "B", "2" } };
	struct devnode devs[] = { { "/dev/infiniband/uverbs4", "/dev/infiniband/uverbs4", "rw" } };
	struct bindmount mounts[] = { { "/run/railmate", "/run/r", true } };
	const char *cdi[] = { "railmate.io/vf=rdma_vf-n0-0", "railmate.io/vf=rdma_vf-n1-7" };
	struct edits e[] = { { envs, 2, devs, 1, mounts, 1, cdi, 2, NULL }, { .n_envs = 0 } },
		     *back;
	size_t n;

	(void)state;
	assert_int_equal(
		peer_decode_allocate_reply(kubemsg_encode(&kubemsg_allocate_reply,
							  &(struct edits_list) { e, 2 }, arena),
					   arena, &back, &n, NULL),
		0);
	assert_int_equal(n, 2);
	assert_int_equal(back[0].n_envs, 2);
	assert_string_equal(back[0].envs[0].key, "A");
	assert_string_equal(back[0].envs[0].value, "");
	assert_string_equal(back[0].envs[1].value, "2");
	assert_string_equal(back[0].devs[0].host, "/dev/infiniband/uverbs4");
	assert_string_equal(back[0].devs[0].permissions, "rw");
	assert_string_equal(back[0].mounts[0].host, "/run/railmate");
	assert_string_equal(back[0].mounts[0].container, "/run/r");
	assert_true(back[0].mounts[0].read_only);
	assert_int_equal(back[0].n_cdi, 2);
	assert_string_equal(back[0].cdi[0], "railmate.io/vf=rdma_vf-n0-0");
	assert_string_equal(back[0].cdi[1], "railmate.io/vf=rdma_vf-n1-7");
	assert_int_equal(back[1].n_cdi, 0);
	assert_int_equal(back[1].n_envs, 0);
}

static void last_of_two_equal_map_keys_wins(void **state)
{
	/* B=1, A=2, B=3, and an entry without key or value */
	static const char wire[] = "\x0a\x1a"
				   "\x0a\x06\x0a\x01"
				   "B\x12\x01"
				   "1"
				   "\x0a\x06\x0a\x01"
				   "A\x12\x01"
				   "2"
				   "\x0a\x06\x0a\x01"
				   "B\x12\x01"
				   "3"
				   "\x0a\x00";
	struct edits *e;
	size_t n;

	(void)state;
	assert_int_equal(peer_decode_allocate_reply(BYTES(wire), arena, &e, &n, NULL), 0);
	assert_int_equal(e[0].n_envs, 3);
	assert_string_equal(e[0].envs[0].key, "");
	assert_string_equal(e[0].envs[1].key, "A");
	assert_string_equal(e[0].envs[2].key, "B");
	assert_string_equal(e[0].envs[2].value, "3");
}

/* --- pod resources --- */

static struct pod_list two_pods(void)
{
	static const char *gpus[] = { "GPU-1", "GPU-2" }, *vfs[] = { "0000:1a:00.2" };
	static struct held held[] = { { "nvidia.com/gpu", { gpus, 2 } },
				      { "rdma/vf", { vfs, 1 } } };
	static struct pod_container c[] = { { "main", held, 2, NULL, 0 }, { .name = "side" } };
	static struct pod pods[] = { { "default", "p0", c, 2 }, { "kube-system", "p1", NULL, 0 } };

	return (struct pod_list) { pods, 2 };
}

static void assert_two_pods(const struct pod_list *l)
{
	assert_int_equal(l->n, 2);
	assert_string_equal(l->v[0].ns, "default");
	assert_string_equal(l->v[0].name, "p0");
	assert_int_equal(l->v[0].n_containers, 2);
	assert_string_equal(l->v[0].containers[0].name, "main");
	assert_int_equal(l->v[0].containers[0].n_held, 2);
	assert_string_equal(l->v[0].containers[0].held[0].resource, "nvidia.com/gpu");
	assert_ids(l->v[0].containers[0].held[0].ids, IDS("GPU-1", "GPU-2"));
	assert_ids(l->v[0].containers[0].held[1].ids, IDS("0000:1a:00.2"));
	assert_int_equal(l->v[0].containers[1].n_held, 0);
	assert_int_equal(l->v[1].n_containers, 0);
}

static void pod_list_round_trips_in_both_encodings(void **state)
{
	struct pod_list l = two_pods(), back;
	struct bytes merged = peer_encode_pod_list(&l, false, arena),
		     single = peer_encode_pod_list(&l, true, arena);

	(void)state;
	assert_true(single.len > merged.len); /* the name of nvidia.com/gpu twice */
	assert_int_equal(kubemsg_decode(&kubemsg_pod_list, merged, arena, &back, NULL), 0);
	assert_two_pods(&back);
	assert_int_equal(kubemsg_decode(&kubemsg_pod_list, single, arena, &back, NULL), 0);
	assert_two_pods(&back);
}

static void entries_of_one_resource_are_merged_across_others(void **state)
{
	/* devices: x[1], y[2], x[3] with topology */
	static const char wire[] = "\x0a\x1d\x0a\x01p\x12\x01n\x1a\x15"
				   "\x12\x06\x0a\x01x\x12\x01"
				   "1"
				   "\x12\x06\x0a\x01y\x12\x01"
				   "2"
				   "\x12\x03\x12\x01"
				   "3";
	struct pod_list l;

	(void)state;
	assert_int_equal(kubemsg_decode(&kubemsg_pod_list, BYTES(wire), arena, &l, NULL), 0);
	assert_int_equal(l.v[0].containers[0].n_held, 3); /* "" sorts first */
	assert_string_equal(l.v[0].containers[0].held[0].resource, "");
	assert_string_equal(l.v[0].containers[0].held[1].resource, "x");
	assert_ids(l.v[0].containers[0].held[2].ids, IDS("2"));
}

static void devices_of_dra_drivers_round_trip(void **state)
{
	const char *names[] = { "k8s.gpu.nvidia.com/device=gpu-3" };
	struct dynamic gpus[] = {
		{ "gpu.nvidia.com", "node1", "gpu-3", { names, 1 }, "mine" },
		{ "gpu.intel.com", "node1", "0000-03-00-0-0x56c0", { NULL, 0 }, "ours" }
	};
	struct pod_container c = { .name = "main", .dynamic = gpus, .n_dynamic = 2 };
	struct pod pod = { "default", "p", &c, 1 };
	struct pod_list l = { &pod, 1 };

	(void)state;
	assert_int_equal(kubemsg_decode(&kubemsg_pod_list, peer_encode_pod_list(&l, true, arena),
					arena, &l, NULL),
			 0);
	assert_int_equal(l.v[0].containers[0].n_dynamic, 2);
	assert_string_equal(l.v[0].containers[0].dynamic[0].driver, "gpu.nvidia.com");
	assert_string_equal(l.v[0].containers[0].dynamic[0].pool, "node1");
	assert_string_equal(l.v[0].containers[0].dynamic[0].device, "gpu-3");
	assert_ids(l.v[0].containers[0].dynamic[0].cdi, IDS("k8s.gpu.nvidia.com/device=gpu-3"));
	assert_string_equal(l.v[0].containers[0].dynamic[1].device, "0000-03-00-0-0x56c0");
	assert_int_equal(l.v[0].containers[0].dynamic[1].cdi.n, 0);
	assert_string_equal(l.v[0].containers[0].dynamic[0].claim, "mine");
	assert_string_equal(l.v[0].containers[0].dynamic[1].claim, "ours");
}

/* The kubelet's list of a device begins with the names of those before it. */
static void a_dra_device_has_its_own_cdi_names_only(void **state)
{
	const char *all[] = { "x/c=a", "x/c=b", "x/c=c" }, *other[] = { "y/c=a" };
	struct dynamic v[] = { { "x", "n", "0", { all, 1 }, "claim" },
			       { "y", "n", "0", { other, 1 }, "claim" },
			       { "x", "n", "1", { all, 2 }, "claim" },
			       { "x", "n", "2", { all, 3 }, "claim" },
			       { "x", "n", "3", { all, 3 }, "claim" },
			       { "x", "n", "0", { all, 2 }, "another claim" } };
	struct pod_container c = { .name = "main", .dynamic = v, .n_dynamic = 6 };
	struct pod pod = { "default", "p", &c, 1 };
	struct pod_list l = { &pod, 1 };

	(void)state;
	assert_int_equal(kubemsg_decode(&kubemsg_pod_list, peer_encode_pod_list(&l, true, arena),
					arena, &l, NULL),
			 0);
	c = l.v[0].containers[0];
	assert_int_equal(c.n_dynamic, 6);
	assert_ids(c.dynamic[0].cdi, IDS("x/c=a"));
	assert_ids(c.dynamic[1].cdi, IDS("y/c=a"));
	assert_ids(c.dynamic[2].cdi, IDS("x/c=b"));
	assert_ids(c.dynamic[3].cdi, IDS("x/c=c"));
	assert_ids(c.dynamic[4].cdi,
		   IDS("x/c=a", "x/c=b", "x/c=c")); /* nothing is added: a newer kubelet's */
	assert_ids(c.dynamic[5].cdi, IDS("x/c=a", "x/c=b"));
}

static void pod_get_round_trips(void **state)
{
	struct pod_list l = two_pods();
	const char *ns, *name;
	struct pod p;

	(void)state;
	assert_bytes(
		kubemsg_encode(&kubemsg_pod_get_request, &(struct pod_name) { "n", "p" }, arena),
		BYTES("\x0a\x01p\x12\x01n"));
	assert_int_equal(
		peer_decode_pod_get_request(BYTES("\x0a\x01p\x12\x01n"), arena, &ns, &name, NULL),
		0);
	assert_string_equal(ns, "n");
	assert_string_equal(name, "p");
	assert_int_equal(kubemsg_decode(&kubemsg_pod_get_reply,
					peer_encode_pod_get_reply(&l.v[0], true, arena), arena, &p,
					NULL),
			 0);
	assert_string_equal(p.name, "p0");
	assert_ids(p.containers[0].held[0].ids, IDS("GPU-1", "GPU-2"));
}

static void pod_get_reply_without_a_pod_is_refused(void **state)
{
	struct err err = { 0 };
	struct pod p;

	(void)state;
	assert_int_equal(
		kubemsg_decode(&kubemsg_pod_get_reply, (struct bytes) { NULL, 0 }, arena, &p, &err),
		-EBADMSG);
	assert_string_equal(err.msg, "GetPodResourcesResponse: there is no pod in it");
}

static void allocatable_round_trips(void **state)
{
	struct held held[] = { { "nvidia.com/gpu", IDS("GPU-1", "GPU-2") } };
	struct pod_container c = { .name = "", .held = held, .n_held = 1 }, back;

	(void)state;
	assert_int_equal(kubemsg_decode(&kubemsg_allocatable,
					peer_encode_allocatable(&c, true, arena), arena, &back,
					NULL),
			 0);
	assert_string_equal(back.name, "");
	assert_int_equal(back.n_held, 1);
	assert_ids(back.held[0].ids, IDS("GPU-1", "GPU-2"));
}

/* --- plugin watcher --- */

static void plugin_info_round_trips(void **state)
{
	struct plugin_info i = { "DevicePlugin", "rdma/vf", "", IDS("v1beta1") }, back;

	(void)state;
	assert_bytes(kubemsg_encode(&kubemsg_plugin_info, &i, arena),
		     BYTES("\x0a\x0c"
			   "DevicePlugin\x12\x07rdma/vf\x22\x07v1beta1"));
	assert_int_equal(peer_decode_plugin_info(kubemsg_encode(&kubemsg_plugin_info, &i, arena),
						 arena, &back, NULL),
			 0);
	assert_string_equal(back.name, "rdma/vf");
	assert_string_equal(back.endpoint, "");
	assert_ids(back.versions, IDS("v1beta1"));
}

static void registration_status_round_trips(void **state)
{
	struct registration_status s = { false, "no" }, back;

	(void)state;
	assert_bytes(peer_encode_registration_status(&s, arena), BYTES("\x12\x02no"));
	assert_int_equal(
		kubemsg_decode(&kubemsg_registration_status, BYTES("\x08\x01"), arena, &back, NULL),
		0);
	assert_true(back.registered);
	assert_string_equal(back.error, "");
}

/* --- bad input --- */

static void bad_bytes_are_refused_with_a_sentence(void **state)
{
	static const struct {
		const char *wire;
		size_t len;
		const char *sentence;
	} table[] = {
#define ROW(literal, text) { literal, sizeof(literal) - 1, text }
		ROW("\xff",
		    "AllocateRequest: the bytes end in the middle of a field or are not protobuf"),
		ROW("\x0a",
		    "AllocateRequest: the bytes end in the middle of a field or are not protobuf"),
		ROW("\x0a\x05\x0a",
		    "AllocateRequest: the bytes end in the middle of a field or are not protobuf"),
		ROW("\x0a\xff\xff\xff\xff\xff\xff\x01",
		    "AllocateRequest: the bytes end in the middle of a field or are not protobuf"),
		ROW("\x0a\x03\x0a\x09"
		    "a",
		    "ContainerAllocateRequest: the bytes end in the middle of a field or are not protobuf"),
		ROW("\x0b\x0c",
		    "AllocateRequest: the bytes end in the middle of a field or are not protobuf"),
		ROW("\x08\x01", "AllocateRequest: a field has the wrong type"),
		ROW("\x0a\x02\x08\x01", "AllocateRequest: a field has the wrong type"),
		ROW("\x11\x01",
		    "AllocateRequest: the bytes end in the middle of a field or are not protobuf"),
		ROW("\x0a\x05\x0a\x03"
		    "a\0b",
		    "ContainerAllocateRequest: a value of devices_ids holds a NUL byte"),
		ROW("\x0a\x03\x0a\x01\x80",
		    "ContainerAllocateRequest: a value of devices_ids is not valid UTF-8"),
		ROW("\x0a\x04\x0a\x02\xc0\x80",
		    "ContainerAllocateRequest: a value of devices_ids is not valid UTF-8"),
		ROW("GET / HTTP/1.1\r\n\r\n",
		    "AllocateRequest: the bytes end in the middle of a field or are not protobuf"),
#undef ROW
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(table); i++) {
		struct bytes in = { (const uint8_t *)table[i].wire, table[i].len };
		struct id_lists l = { NULL, 77 };
		struct err err = { 0 };

		assert_int_equal(kubemsg_decode(&kubemsg_allocate, in, arena, &l, &err), -EBADMSG);
		assert_string_equal(err.msg, table[i].sentence);
		assert_int_equal(l.n, 77); /* untouched */
	}
}

static void preferred_takes_ids_that_are_no_text_for_ids_nobody_has(void **state)
{
	static const char wire[] = "\x0a\x13\x0a\x03"
				   "a\0b"
				   "\x0a\x02\xc3\xa4\x12\x02"
				   "c\xff\x0a\x02"
				   "ok\x18\x02",
			  cut[] = "\x0a\x05\x0a\x01\xff\x0a\x09";
	struct preferred_request back;
	struct err err = { 0 };

	(void)state;
	assert_int_equal(kubemsg_decode(&kubemsg_preferred, BYTES(wire), arena, &back, NULL), 0);
	assert_int_equal(back.n, 1);
	assert_ids(back.v[0].available, IDS("a?b", "\xc3\xa4", "ok"));
	assert_ids(back.v[0].must, IDS("c?"));
	assert_int_equal(back.v[0].size, 2);
	assert_int_equal(kubemsg_decode(&kubemsg_preferred, BYTES(cut), arena, &back, &err),
			 -EBADMSG);
	assert_non_null(strstr(err.msg, "are not protobuf"));
	assert_int_equal(err.code, EBADMSG);
}

static void unknown_fields_are_skipped(void **state)
{
	static const char wire[] =
		"\x0a\x03\x0a\x01"
		"a\x12\x02\x00\xff\x1d\x01\x02\x03\x04\x21\x01\x02\x03\x04\x05\x06\x07\x08\x28\x05";
	struct id_lists l;

	(void)state;
	assert_int_equal(kubemsg_decode(&kubemsg_allocate, BYTES(wire), arena, &l, NULL), 0);
	assert_int_equal(l.n, 1);
	assert_ids(l.v[0], IDS("a"));
}

static void every_decoder_refuses_garbage(void **state)
{
	struct bytes in = BYTES("\xff\xff\xff");
	union {
		struct plugin_options options;
		struct register_request reg;
		struct device_list devices;
		struct preferred_request preferred;
		struct id_lists lists;
		struct ids ids;
		struct pod_list pods;
		struct pod pod;
		struct pod_container container;
		struct plugin_info info;
		struct registration_status status;
	} out;
	struct err err;
	struct edits *e;
	const char *ns, *name;
	size_t n;

	(void)state;
	assert_int_equal(kubemsg_decode(&kubemsg_options, in, arena, &out.options, &err), -EBADMSG);
	assert_int_equal(peer_decode_register(in, arena, &out.reg, &err), -EBADMSG);
	assert_int_equal(peer_decode_device_list(in, arena, &out.devices, &err), -EBADMSG);
	assert_int_equal(kubemsg_decode(&kubemsg_preferred, in, arena, &out.preferred, &err),
			 -EBADMSG);
	assert_int_equal(kubemsg_decode(&kubemsg_preferred_reply, in, arena, &out.lists, &err),
			 -EBADMSG);
	assert_int_equal(kubemsg_decode(&kubemsg_allocate, in, arena, &out.lists, &err), -EBADMSG);
	assert_int_equal(peer_decode_allocate_reply(in, arena, &e, &n, &err), -EBADMSG);
	assert_int_equal(kubemsg_decode(&kubemsg_pre_start, in, arena, &out.ids, &err), -EBADMSG);
	assert_int_equal(kubemsg_decode(&kubemsg_pod_list, in, arena, &out.pods, &err), -EBADMSG);
	assert_int_equal(peer_decode_pod_get_request(in, arena, &ns, &name, &err), -EBADMSG);
	assert_int_equal(kubemsg_decode(&kubemsg_pod_get_reply, in, arena, &out.pod, &err),
			 -EBADMSG);
	assert_int_equal(kubemsg_decode(&kubemsg_allocatable, in, arena, &out.container, &err),
			 -EBADMSG);
	assert_int_equal(peer_decode_plugin_info(in, arena, &out.info, &err), -EBADMSG);
	assert_int_equal(kubemsg_decode(&kubemsg_registration_status, in, arena, &out.status, &err),
			 -EBADMSG);
}

static struct ids ids_of(size_t n)
{
	const char **v = arena_array(arena, n, sizeof(*v));

	for (size_t i = 0; i < n; i++)
		v[i] = "x";
	return (struct ids) { v, n };
}

static struct bytes many_ids(size_t n)
{
	struct ids ids = ids_of(n);

	return peer_encode_pre_start(&ids, arena);
}

/* Of one container: empty ones. */
static struct bytes many_allocatable(size_t n)
{
	const uint8_t head[] = { 0x0a, (uint8_t)(2 * n | 0x80), (uint8_t)(2 * n >> 7 | 0x80),
				 (uint8_t)(2 * n >> 14) };
	uint8_t *wire = arena_alloc(arena, sizeof(head) + 2 * n);

	memcpy(wire, head, sizeof(head));
	memset(&wire[sizeof(head)], 0, 2 * n);
	for (size_t i = 0; i < n; i++)
		wire[sizeof(head) + 2 * i] = 0x12;
	return (struct bytes) { wire, sizeof(head) + 2 * n };
}

static void number_of_ids_is_bounded(void **state)
{
	struct pod_container c;
	struct err err = { 0 };

	(void)state;
	assert_int_equal(kubemsg_decode(&kubemsg_allocatable, many_allocatable(MESSAGE_IDS_MAX),
					arena, &c, &err),
			 0);
	assert_int_equal(kubemsg_decode(&kubemsg_allocatable, many_allocatable(MESSAGE_IDS_MAX + 1),
					arena, &c, &err),
			 -EBADMSG);
	assert_string_equal(err.msg, "ContainerDevices: more than 65536 values of device_ids");
}

/* Four times the VFs that a node can have; and what no kubelet would ask. */
static void memory_of_one_request_is_bounded(void **state)
{
	static const uint8_t empty[] = { 0x0a, 0x00 };
	size_t n = 1024;
	uint8_t *wire = arena_alloc(arena, sizeof(empty) * (n + 1));
	struct id_lists lists;
	struct err err = { 0 };
	struct ids ids;

	(void)state;
	assert_int_equal(kubemsg_decode(&kubemsg_pre_start, many_ids(8128), arena, &ids, &err), 0);
	assert_int_equal(ids.n, 8128);
	assert_int_equal(
		kubemsg_decode(&kubemsg_pre_start, many_ids(MESSAGE_IDS_MAX), arena, &ids, &err),
		-EBADMSG);
	assert_non_null(strstr(err.msg, "that take more than 4 MiB to decode"));
	for (size_t i = 0; i <= n; i++)
		memcpy(&wire[sizeof(empty) * i], empty, sizeof(empty));
	assert_int_equal(kubemsg_decode(&kubemsg_allocate,
					(struct bytes) { wire, sizeof(empty) * n }, arena, &lists,
					&err),
			 0);
	assert_int_equal(lists.n, n);
	assert_int_equal(kubemsg_decode(&kubemsg_allocate,
					(struct bytes) { wire, sizeof(empty) * (n + 1) }, arena,
					&lists, &err),
			 -EBADMSG);
	assert_string_equal(err.msg, "AllocateRequest: too many values of container_requests");
	/* Whoever has the name of a GPU plugin's socket answers, too. */
	assert_int_equal(kubemsg_decode(&kubemsg_preferred_reply,
					(struct bytes) { wire, sizeof(empty) * (n + 1) }, arena,
					&lists, &err),
			 -EBADMSG);
	assert_string_equal(err.msg,
			    "PreferredAllocationResponse: too many values of container_responses");
}

static void memory_of_one_message_is_bounded(void **state)
{
	size_t n = 1u << 20;
	uint8_t *wire = arena_alloc(arena, 2 * n);
	struct pod_list l;
	struct err err = { 0 };

	(void)state;
	for (size_t i = 0; i < n; i++)
		wire[2 * i] = 0x0a; /* an empty pod */
	assert_int_equal(
		kubemsg_decode(&kubemsg_pod_list, (struct bytes) { wire, 2 * n }, arena, &l, &err),
		-EBADMSG);
	assert_string_equal(err.msg, "ListPodResourcesResponse: its pods take more than 16 MiB");
}

/* 110 pods of a tenant, each with a thousand containers: those that hold something stay, and some
 * of the others. */
static void containers_that_hold_nothing_cost_nothing(void **state)
{
	enum { N = 1000, IDLE = 128 };
	struct held held = { "r/x", { (const char *[]) { "id" }, 1 } };
	struct pod_container *c = arena_array(arena, N, sizeof(*c));
	struct pod one = { "ns", "p", c, N }, *v = arena_array(arena, 110, sizeof(*v));
	struct pod_list all = { v, 110 }, l;
	struct arena *a = arena_new(0);

	(void)state;
	for (size_t i = 0; i < N; i++)
		c[i].name = arena_printf(arena, "a-name-as-long-as-many-a-container-has-%zu", i);
	c[N - 1].held = &held;
	c[N - 1].n_held = 1;
	for (size_t i = 0; i < all.n; i++)
		v[i] = one;
	assert_int_equal(kubemsg_decode(&kubemsg_pod_list, peer_encode_pod_list(&all, true, arena),
					a, &l, NULL),
			 0);
	assert_int_equal(l.n, 110);
	assert_int_equal(l.v[0].n_containers, IDLE + 1);
	assert_string_equal(l.v[0].containers[0].name, c[0].name);
	assert_string_equal(l.v[109].containers[IDLE].name, c[N - 1].name);
	assert_string_equal(kubemsg_held(&l.v[109].containers[IDLE], "r/x")->v[0], "id");
	assert_true(arena_used(a) < 2u << 20);
	arena_free(a);
}

static void number_of_devices_is_bounded(void **state)
{
	size_t n = MESSAGE_IDS_MAX + 1;
	uint8_t *wire = arena_alloc(arena, 2 * n);
	struct device_list l;
	struct err err = { 0 };

	(void)state;
	for (size_t i = 0; i < n; i++)
		wire[2 * i] = 0x0a;
	assert_int_equal(peer_decode_device_list((struct bytes) { wire, 2 * n }, arena, &l, &err),
			 -EBADMSG);
	assert_string_equal(err.msg, "ListAndWatchResponse: more than 65536 devices");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
#define T(f) cmocka_unit_test_setup_teardown(f, arena_set_up, arena_tear_down)
		T(options_are_the_kubelets_bytes),
		T(register_request_is_the_kubelets_bytes),
		T(node_zero_is_sent_as_an_empty_node),
		T(device_without_node_has_no_topology),
		T(empty_list_is_no_bytes),
		T(preferred_request_round_trips),
		T(id_lists_round_trip),
		T(pre_start_round_trips),
		T(allocate_reply_round_trips),
		T(last_of_two_equal_map_keys_wins),
		T(pod_list_round_trips_in_both_encodings),
		T(entries_of_one_resource_are_merged_across_others),
		T(devices_of_dra_drivers_round_trip),
		T(a_dra_device_has_its_own_cdi_names_only),
		T(pod_get_round_trips),
		T(pod_get_reply_without_a_pod_is_refused),
		T(allocatable_round_trips),
		T(plugin_info_round_trips),
		T(registration_status_round_trips),
		T(bad_bytes_are_refused_with_a_sentence),
		T(preferred_takes_ids_that_are_no_text_for_ids_nobody_has),
		T(unknown_fields_are_skipped),
		T(every_decoder_refuses_garbage),
		T(number_of_ids_is_bounded),
		T(memory_of_one_request_is_bounded),
		T(memory_of_one_message_is_bounded),
		T(containers_that_hold_nothing_cost_nothing),
		T(number_of_devices_is_bounded),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
