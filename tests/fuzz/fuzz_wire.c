/* room: pods kubeclient */
/*
 * Any bytes as what the kubelet, its checkpoint and the runtime say: who asks and with which GPUs
 * follows from it, or a reason why not; and whether the runtime does CDI. Four parts, each but the
 * last with two bytes of length before it: a PodResources list, a list of the Pods API, the
 * checkpoint, and what the runtime says of itself.
 */
#include <assert.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/arena.h"
#include "base/err.h"
#include "base/mem.h"
#include "base/str.h"
#include "hw/inventory.h"
#include "kubeclient/checkpoint.h"
#include "kubeclient/kubeclient-internal.h"
#include "kubemsg/messages.h"
#include "kubemsg/podspec.h"
#include "pods/pods-internal.h"

#define RESOURCE "rdma/vf"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Two GPUs of NVIDIA and one of AMD at 0000:10:00.0 and on. */
static struct hw_pci pci[] = {
	{ .bdf = { 0, 0x10, 0, 0 },
	  .class_code = 0x030200,
	  .vendor = 0x10de,
	  .parent = -1,
	  .physfn = -1 },
	{ .bdf = { 0, 0x11, 0, 0 },
	  .class_code = 0x030200,
	  .vendor = 0x10de,
	  .parent = -1,
	  .physfn = -1 },
	{ .bdf = { 0, 0x12, 0, 0 },
	  .class_code = 0x030200,
	  .vendor = 0x1002,
	  .parent = -1,
	  .physfn = -1 },
};
static struct hw_gpu gpus[] = {
	{ .pci = 0, .vendor = "NVIDIA", .uuid = "GPU-0", .minor = 0, .card = -1 },
	{ .pci = 1, .vendor = "NVIDIA", .uuid = "GPU-1", .minor = 1, .card = -1 },
	{ .pci = 2, .vendor = "AMD", .minor = -1, .card = 3 },
};
static const struct hw_inventory inv = {
	.pci = pci, .n_pci = ARRAY_LEN(pci), .gpu = gpus, .n_gpu = ARRAY_LEN(gpus)
};

static const struct pod *find_pod(const struct pod_list *pods, const char *ns, const char *name)
{
	for (size_t i = 0; i < pods->n; i++) {
		if (str_eq(pods->v[i].ns, ns) && str_eq(pods->v[i].name, name))
			return &pods->v[i];
	}
	return NULL;
}

static struct bytes take(struct bytes *in)
{
	struct bytes part = { NULL, 0 };

	if (in->len < 2)
		return part;
	part.len = (size_t)in->data[0] << 8 | in->data[1];
	part.data = in->data + 2;
	if (part.len > in->len - 2)
		part.len = in->len - 2;
	*in = (struct bytes) { part.data + part.len, in->len - 2 - part.len };
	return part;
}

static void check_gpus(const int *v, size_t n)
{
	for (size_t i = 0; i < n; i++)
		assert(v[i] >= 0 && (size_t)v[i] < inv.n_pci && (!i || v[i - 1] < v[i]));
}

static void check_identified(const struct identified *who, const struct pod_list *held)
{
	const struct pod *pod;

	assert(who->why && *who->why && str_utf8_valid(who->why, strlen(who->why)));
	check_gpus(who->gpus.v, who->gpus.n);
	check_gpus(who->busy_gpus.v, who->busy_gpus.n);
	if (!who->found)
		return;
	assert(!who->ambiguous && who->owner.ns && who->owner.pod && who->owner.container);
	pod = find_pod(held, who->owner.ns, who->owner.pod);
	assert(who->spec || (pod && pods_find_container(pod, who->owner.container)));
}

/* Twice: what was seen the first time bears on the second. */
static void check_elimination(const struct pod_list *pods, const struct ids *must, struct arena *a)
{
	struct seen_pods *seen = NULL;

	for (size_t want = 1; want <= 2; want++) {
		const struct pods_question q = {
			.resource = RESOURCE, .want = want, .must = *must, .doubted = want > 1
		};
		struct identified who = pods_identify(pods, &q, &inv, &seen, a);

		check_identified(&who, pods);
	}
	pods_identify(pods, &(struct pods_question) { .resource = RESOURCE }, &inv, &seen, a);
	pods_seen_free(seen);
}

static void check_specs(const struct spec_list *list, const struct pod_list *pods, struct arena *a)
{
	struct spec_list specs = kubemsg_podspec_copy(list, a);
	struct seen_pods *seen = NULL;

	for (int round = 0; round < 4; round++) {
		size_t want = 1 + (size_t)(round & 1);
		const char *set_aside = "one";
		struct pods_question q = { .resource = RESOURCE,
					   .want = want,
					   .must = { &set_aside, round == 3 },
					   .listed = round & 2 };
		struct spec_candidates c = pods_candidates(&specs, pods, &q, seen, a);
		struct identified who;

		for (size_t i = 0; i < c.n; i++)
			assert(pods_wants(c.v[i].container, RESOURCE) == (int64_t)want &&
			       !c.v[i].pod->unread && !c.v[i].pod->deleted);
		if (!c.n)
			continue;
		q.candidates = c;
		who = pods_identify(pods, &q, &inv, &seen, a);
		check_identified(&who, pods);
		assert(who.found && who.spec == c.v[0].container);
	}
	pods_seen_free(seen);
}

static void check_kubelet(struct bytes resources, struct bytes api, struct arena *a)
{
	struct pod_list pods = { NULL, 0 };
	struct spec_list specs = { NULL, 0 };
	struct ids none = { NULL, 0 };
	struct err err = { 0 };

	if (kubemsg_decode(&kubemsg_pod_list, resources, a, &pods, &err) < 0)
		assert(*err.msg && str_utf8_valid(err.msg, strlen(err.msg)));
	if (kubemsg_decode(&kubemsg_pod_specs, api, a, &specs, &err) < 0)
		assert(*err.msg && str_utf8_valid(err.msg, strlen(err.msg)));
	check_elimination(&pods, &none, a);
	if (pods.n && pods.v[0].n_containers && pods.v[0].containers[0].n_held)
		check_elimination(&pods, &pods.v[0].containers[0].held[0].ids, a);
	kubemsg_pods_sort(pods.v, pods.n);
	check_specs(&specs, &pods, a);
}

/* In memory, under a name: a new file for each input would be most of the work. */
static const char *as_file(struct bytes text)
{
	static char path[32];
	static int fd = -1;

	if (fd < 0) {
		fd = memfd_create("checkpoint", MFD_CLOEXEC);
		assert(fd >= 0);
		snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	}
	assert(!ftruncate(fd, 0) && pwrite(fd, text.data, text.len, 0) == (ssize_t)text.len);
	return path;
}

static void check_checkpoint(struct bytes text, struct arena *a)
{
	struct pod_list pods;

	if (!text.len)
		return;
	pods = kubeclient_checkpoint(as_file(text), a, NULL);
	for (size_t i = 0; i < pods.n; i++) {
		const struct pod *pod = &pods.v[i];

		assert(pod->name && !*pod->ns && find_pod(&pods, "", pod->name) == pod);
		for (size_t k = 0; k < pod->n_containers; k++) {
			struct gpu_set found;

			assert(pods_find_container(pod, pod->containers[k].name) ==
			       &pod->containers[k]);
			found = pods_gpus_but(&pod->containers[k], RESOURCE, &inv, a);
			check_gpus(found.v, found.n);
		}
	}
}

static void check_runtime(struct bytes in, struct arena *a)
{
	const struct bytes version = take(&in);
	struct runtime_version v = { "containerd", "2.1.0" };
	struct runtime_status s = { NULL, NULL };
	const char *sentence = NULL;
	struct err err = { 0 };

	if (kubemsg_decode(&kubemsg_runtime_version, version, a, &v, &err) < 0)
		assert(*err.msg);
	if (kubemsg_decode(&kubemsg_runtime_status, in, a, &s, &err) < 0)
		assert(*err.msg);
	if (kubeclient_runtime_judge(v.name, v.version, s.config, a, &sentence) == RUNTIME_CDI)
		assert(!sentence);
	else
		assert(*sentence && str_utf8_valid(sentence, strlen(sentence)));
	if (kubeclient_runtime_judge_cni(v.name, s.cni, a, &sentence) == RUNTIME_CNI_KEEPS_IDS)
		assert(!sentence);
	else
		assert(*sentence);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	_cleanup_arena_ struct arena *a = arena_new(16384);
	struct bytes rest = { data, size };
	struct bytes resources = take(&rest), api = take(&rest);

	check_kubelet(resources, api, a);
	check_checkpoint(take(&rest), a);
	check_runtime(rest, a);
	return 0;
}
