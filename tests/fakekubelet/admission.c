/*
 * The admission of one pod at a time: containers in order, resources of a container one after the other, each
 * recorded before the next is asked for (reference kubelet.md §1.2). A chain of callbacks; proceed() goes on
 * where it stopped.
 */
#include "kubelet.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/err.h"
#include "base/mem.h"

#define CALL_TIMEOUT_MS 60000 /* the real one has none; a test wants an end */

struct reuse {
	struct reuse *next;
	const char *resource;
	struct idset ids;
};

struct admission {
	struct admission *next;
	struct kubelet *k;
	struct command *cmd;
	struct pod_entry *pod;
	size_t c, d; /* container and resource under way */
	bool container_begun, collected;
	int64_t container_us, call_us;
	struct reuse *reuse; /* what this pod's init containers leave */

	/* the resource under way; ids in scratch, those taken in the pod's arena */
	struct arena *scratch;
	struct resource *res;
	size_t needed;
	struct ids taken, available, aligned, unaligned, elsewhere;
	bool from_aligned; /* the plugin was asked to choose among the aligned ones only */
	struct allocation slot;
};

enum step { STEP_NEXT, STEP_WAIT };

static void proceed(struct admission *ad);

static struct container *container_of(const struct admission *ad)
{
	return &ad->pod->containers[ad->c];
}

/* --- how it ends --- */

static void finish(struct admission *ad)
{
	struct kubelet *k = ad->k;

	while (ad->reuse) {
		struct reuse *r = ad->reuse;

		ad->reuse = r->next;
		idset_done(&r->ids);
		free(r);
	}
	arena_free(ad->scratch);
	free(ad);
	k->admitting = NULL;
	admission_start_next(k);
}

static enum step reject(struct admission *ad, const char *reason, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));

static enum step reject(struct admission *ad, const char *reason, const char *fmt, ...)
{
	char message[1024];
	struct report r;
	struct json *j;
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(message, sizeof(message), fmt, ap);
	va_end(ap);
	j = report_answer(&r, ad->cmd, "rejected");
	json_kv_string(j, "pod", ad->pod->name);
	json_kv_string(j, "reason", reason);
	json_kv_string(j, "message", message);
	report_end(&r);
	ad->pod->active = ad->pod->admitting = false;
	command_done(ad->cmd);
	finish(ad);
	return STEP_WAIT;
}

#define UNEXPECTED(ad, fmt, ...)                                                                             \
	reject(ad, "UnexpectedAdmissionError", "Allocate failed due to " fmt ", which is unexpected",        \
	       __VA_ARGS__)

static void admitted(struct admission *ad)
{
	struct report r;
	struct json *j = report_answer(&r, ad->cmd, "admitted");

	json_kv_string(j, "pod", ad->pod->name);
	json_kv_string(j, "uid", ad->pod->uid);
	json_key(j, "containers");
	json_begin_array(j);
	for (size_t i = 0; i < ad->pod->n_containers; i++) {
		json_begin_object(j);
		report_allocations(j, &ad->pod->containers[i]);
		json_end_object(j);
	}
	json_end_array(j);
	report_end(&r);
	ad->pod->admitting = false;
	command_done(ad->cmd);
	finish(ad);
}

/* --- sets of ids --- */

static bool ids_has(const struct ids *s, const char *id)
{
	for (size_t i = 0; i < s->n; i++) {
		if (!strcmp(s->v[i], id))
			return true;
	}
	return false;
}

static struct ids ids_room(struct arena *a, size_t n)
{
	return (struct ids) { .v = arena_array(a, n, sizeof(char *)) };
}

static void take(struct admission *ad, const char *id)
{
	if (!ad->needed || ids_has(&ad->taken, id))
		return;
	idset_add(&ad->res->allocated, id);
	ad->taken.v[ad->taken.n++] = arena_strdup(ad->pod->arena, id);
	ad->needed--;
}

/* Random, as a Go map gives them; only: NULL, or what an id has to be in as well. */
static void take_from(struct admission *ad, const struct ids *from, const struct ids *only)
{
	shuffle(ad->k, from->v, from->n, sizeof(char *));
	for (size_t i = 0; i < from->n; i++) {
		if (!only || ids_has(only, from->v[i]))
			take(ad, from->v[i]);
	}
}

static struct idset *reusable(struct admission *ad, const char *resource)
{
	struct reuse *r = ad->reuse;

	while (r && strcmp(r->resource, resource))
		r = r->next;
	if (!r) {
		r = xcalloc(1, sizeof(*r));
		*r = (struct reuse) { .next = ad->reuse, .resource = resource };
		ad->reuse = r;
	}
	return &r->ids;
}

static bool is_available(const struct resource *r, const struct device *d)
{
	return d->healthy && !idset_has(&r->allocated, d->id);
}

/* --- NUMA --- */

static uint64_t node_mask(const struct device *d)
{
	uint64_t mask = 0;

	for (size_t i = 0; d && i < d->n_nodes; i++) {
		if (d->nodes[i] >= 0 && d->nodes[i] < 64)
			mask |= UINT64_C(1) << d->nodes[i];
	}
	return mask;
}

static uint64_t masks_of_all(const struct resource *r)
{
	uint64_t mask = 0;

	for (size_t i = 0; i < r->devices.n; i++)
		mask |= node_mask(&r->devices.v[i]);
	return mask;
}

/* >= 1.35 regards only the nodes that carry devices; the older ones' empty nodes would change nothing here.
 */
static uint64_t machine_nodes(const struct kubelet *k)
{
	uint64_t mask = 0;

	for (const struct resource *r = k->resources; r; r = r->next)
		mask |= masks_of_all(r);
	return mask;
}

static struct numa_ask numa_ask(struct admission *ad, const struct resource *r, size_t count, struct arena *a)
{
	uint64_t *all = arena_array(a, r->devices.n, sizeof(*all));
	uint64_t *available = arena_array(a, r->devices.n, sizeof(*available));
	const struct idset *reuse = reusable(ad, r->name);
	uint64_t *reused = arena_array(a, reuse->n, sizeof(*reused));
	struct numa_ask ask = { .all = all, .available = available, .reusable = reused, .count = count };

	for (size_t i = 0; i < r->devices.n; i++) {
		all[ask.n_all++] = node_mask(&r->devices.v[i]);
		if (is_available(r, &r->devices.v[i]))
			available[ask.n_available++] = node_mask(&r->devices.v[i]);
	}
	for (size_t i = 0; i < reuse->n; i++)
		reused[ask.n_reusable++] = node_mask(resource_device(r, reuse->v[i]));
	return ask;
}

static bool numa_admits(struct admission *ad)
{
	_cleanup_arena_ struct arena *a = arena_new(4096);
	struct container *c = container_of(ad);
	struct numa_ask *asks = arena_array(a, c->n_demands, sizeof(*asks));
	struct numa_verdict v;
	size_t n = 0;

	for (size_t i = 0; i < c->n_demands; i++) {
		const struct resource *r = resource_find(ad->k, c->demands[i].resource);

		if (r && resource_is_managed(r))
			asks[n++] = numa_ask(ad, r, (size_t)c->demands[i].count, a);
	}
	v = numa_judge(ad->k->opt.policy, machine_nodes(ad->k), asks, n);
	c->has_affinity = v.has_affinity;
	c->affinity = v.affinity;
	return v.admit;
}

/* filterByAffinity */
static void sort_by_affinity(struct admission *ad)
{
	const struct container *c = container_of(ad);
	bool aligns = c->has_affinity && masks_of_all(ad->res);

	for (size_t i = 0; i < ad->available.n; i++) {
		uint64_t mask = node_mask(resource_device(ad->res, ad->available.v[i]));
		struct ids *to = !aligns || !mask     ? &ad->elsewhere
				 : mask & c->affinity ? &ad->aligned
						      : &ad->unaligned;

		to->v[to->n++] = ad->available.v[i];
	}
}

/* --- Allocate --- */

static void record(struct admission *ad, const struct edits *edits, struct bytes response)
{
	struct container *c = container_of(ad);

	ad->slot.resource = c->demands[ad->d].resource;
	ad->slot.ids = ad->taken;
	ad->slot.edits = *edits;
	ad->slot.response = response;
	c->held[c->n_held++] = ad->slot;
}

static void on_allocated(void *arg, enum rpc_status status, const char *message, struct bytes body)
{
	struct admission *ad = arg;
	struct arena *a = ad->pod->arena;
	struct err err = { 0 };
	struct edits *edits;
	size_t n = 0;

	ad->slot.allocate_us = now_us() - ad->call_us;
	if (status != RPC_OK) {
		rebuild_allocated(ad->k);
		UNEXPECTED(ad, "rpc error: code = %s desc = %s", status_name(status), message);
		return;
	}
	body = (struct bytes) { .data = arena_copy(a, body.data, body.len), .len = body.len };
	if (msg_decode_allocate_reply(body, a, &edits, &n, &err) < 0) {
		rebuild_allocated(ad->k);
		UNEXPECTED(ad, "rpc error: code = Internal desc = grpc: failed to unmarshal: %s", err.msg);
		return;
	}
	if (!n) {
		UNEXPECTED(ad, "no containers return in allocation response of %s", ad->res->name);
		return;
	}
	record(ad, &edits[0], body);
	ad->d++;
	proceed(ad);
}

static enum step allocate(struct admission *ad)
{
	struct client *e = ad->res->endpoint;
	struct ids ids = { 0 };

	if (ad->needed)
		return UNEXPECTED(
			ad, "unexpectedly allocated less resources than required. Requested: %d, Got: %zu",
			container_of(ad)->demands[ad->d].count, ad->taken.n);
	if (!e || ad->res->stopped || !e->channel) {
		rebuild_allocated(ad->k);
		return UNEXPECTED(ad, "endpoint %s has been stopped", ad->res->name);
	}
	ids = ids_room(ad->scratch, ad->taken.n);
	memcpy(ids.v, ad->taken.v, ad->taken.n * sizeof(char *));
	ids.n = ad->taken.n;
	shuffle(ad->k, ids.v, ids.n, sizeof(char *));
	ad->call_us = now_us();
	rpc_call_unary(e->channel, PATH_ALLOCATE,
		       msg_encode_allocate(&(struct id_lists) { .v = &ids, .n = 1 }, ad->scratch),
		       CALL_TIMEOUT_MS, on_allocated, ad);
	return STEP_WAIT;
}

/* --- GetPreferredAllocation --- */

static enum step allocate_with(struct admission *ad, const struct ids *preferred)
{
	if (ad->from_aligned) {
		take_from(ad, preferred, &ad->aligned);
		take_from(ad, &ad->aligned, NULL);
		return allocate(ad);
	}
	take_from(ad, preferred, &ad->available);
	take_from(ad, &ad->unaligned, NULL);
	take_from(ad, &ad->elsewhere, NULL);
	return allocate(ad);
}

static void on_preferred(void *arg, enum rpc_status status, const char *message, struct bytes body)
{
	struct admission *ad = arg;
	struct id_lists lists = { 0 };
	struct err err = { 0 };

	ad->slot.preferred_us = now_us() - ad->call_us;
	if (status != RPC_OK) {
		UNEXPECTED(ad,
			   "device plugin GetPreferredAllocation rpc failed with err: rpc error: code = %s "
			   "desc = %s",
			   status_name(status), message);
		return;
	}
	if (msg_decode_preferred_reply(body, ad->pod->arena, &lists, &err) < 0) {
		UNEXPECTED(ad, "device plugin GetPreferredAllocation rpc failed with err: %s", err.msg);
		return;
	}
	if (lists.n)
		ad->slot.preferred = lists.v[0];
	allocate_with(ad, &(struct ids) { .v = arena_copy(ad->scratch, ad->slot.preferred.v,
							  ad->slot.preferred.n * sizeof(char *)),
					  .n = ad->slot.preferred.n });
}

static struct ids union_with_taken(struct admission *ad, const struct ids *from)
{
	struct ids all = ids_room(ad->scratch, from->n + ad->taken.n);

	for (size_t i = 0; i < ad->taken.n; i++)
		all.v[all.n++] = ad->taken.v[i];
	for (size_t i = 0; i < from->n; i++) {
		if (!ids_has(&ad->taken, from->v[i]))
			all.v[all.n++] = from->v[i];
	}
	shuffle(ad->k, all.v, all.n, sizeof(char *));
	return all;
}

static enum step ask_preferred(struct admission *ad, const struct ids *from)
{
	struct client *e = ad->res->endpoint;
	struct preferred_container pc;

	if (!e)
		return UNEXPECTED(ad, "endpoint not found in cache for a registered resource: %s",
				  ad->res->name);
	if (!e->options.preferred_allocation)
		return allocate_with(ad, &(struct ids) { 0 });
	if (ad->res->stopped || !e->channel)
		return UNEXPECTED(ad,
				  "device plugin GetPreferredAllocation rpc failed with err: endpoint %s has "
				  "been stopped",
				  ad->res->name);
	pc = (struct preferred_container) { .available = union_with_taken(ad, from),
					    .must = ad->taken,
					    .size = container_of(ad)->demands[ad->d].count };
	ad->slot.offered = pc.available.n;
	ad->call_us = now_us();
	rpc_call_unary(e->channel, PATH_PREFERRED,
		       msg_encode_preferred(&(struct preferred_request) { .v = &pc, .n = 1 }, ad->scratch),
		       CALL_TIMEOUT_MS, on_preferred, ad);
	return STEP_WAIT;
}

/* --- devicesToAllocate --- */

static void prepare(struct admission *ad, size_t count)
{
	size_t n = ad->res->devices.n;

	arena_free(ad->scratch);
	ad->scratch = arena_new(16 * 1024);
	ad->needed = count;
	ad->taken = ids_room(ad->pod->arena, count);
	ad->available = ids_room(ad->scratch, n);
	ad->aligned = ids_room(ad->scratch, n);
	ad->unaligned = ids_room(ad->scratch, n);
	ad->elsewhere = ids_room(ad->scratch, n);
	ad->slot = (struct allocation) { .preferred_us = -1 };
}

static void take_reusable(struct admission *ad)
{
	const struct idset *reuse = reusable(ad, ad->res->name);
	struct ids ids = ids_room(ad->scratch, reuse->n);

	for (size_t i = 0; i < reuse->n; i++)
		ids.v[ids.n++] = reuse->v[i];
	take_from(ad, &ids, NULL);
}

/* Copies: the list may be replaced while the plugin is being asked. */
static void find_available(struct admission *ad)
{
	for (size_t i = 0; i < ad->res->devices.n; i++) {
		const struct device *d = &ad->res->devices.v[i];

		if (is_available(ad->res, d))
			ad->available.v[ad->available.n++] = arena_strdup(ad->scratch, d->id);
	}
}

static enum step pick(struct admission *ad)
{
	take_reusable(ad);
	if (!ad->needed)
		return allocate(ad);
	find_available(ad);
	if (ad->available.n < ad->needed)
		return UNEXPECTED(
			ad, "requested number of devices unavailable for %s. Requested: %zu, Available: %zu",
			ad->res->name, ad->needed, ad->available.n);
	sort_by_affinity(ad);
	ad->from_aligned = ad->needed < ad->aligned.n;
	if (ad->from_aligned)
		return ask_preferred(ad, &ad->aligned);
	take_from(ad, &ad->aligned, NULL);
	if (!ad->needed)
		return allocate(ad);
	return ask_preferred(ad, &ad->available);
}

static enum step begin_demand(struct admission *ad)
{
	const struct demand *d = &container_of(ad)->demands[ad->d];

	ad->res = resource_find(ad->k, d->resource);
	if (!ad->res || !resource_is_managed(ad->res))
		return STEP_NEXT; /* silently: the pod runs without */
	if (!ad->collected)
		collect_inactive(ad->k, false);
	ad->collected = true;
	if (!ad->res->known)
		return UNEXPECTED(ad, "cannot allocate unregistered device %s", d->resource);
	if (!resource_allocatable(ad->res))
		return UNEXPECTED(ad, "no healthy devices present; cannot allocate unhealthy devices %s",
				  d->resource);
	if (!d->count)
		return STEP_NEXT;
	prepare(ad, (size_t)d->count);
	return pick(ad);
}

/* --- containers --- */

static enum step begin_container(struct admission *ad)
{
	ad->container_begun = true;
	ad->collected = false;
	ad->container_us = now_us();
	ad->d = 0;
	if (!numa_admits(ad))
		return reject(ad, "TopologyAffinityError",
			      "Resources cannot be allocated with Topology locality");
	return STEP_NEXT;
}

/* A regular init container leaves its devices to those that follow; the others keep what they took. */
static void end_container(struct admission *ad)
{
	struct container *c = container_of(ad);

	for (size_t h = 0; h < c->n_held; h++) {
		struct idset *reuse = reusable(ad, c->held[h].resource);

		for (size_t i = 0; i < c->held[h].ids.n; i++) {
			if (c->kind == CONTAINER_INIT)
				idset_add(reuse, c->held[h].ids.v[i]);
			else
				idset_remove(reuse, c->held[h].ids.v[i]);
		}
	}
	c->took_us = now_us() - ad->container_us;
	if (c->n_held)
		checkpoint_write(ad->k);
	ad->container_begun = false;
	ad->c++;
}

static void proceed(struct admission *ad)
{
	while (ad->c < ad->pod->n_containers) {
		if (!ad->container_begun && begin_container(ad) == STEP_WAIT)
			return;
		if (ad->d == container_of(ad)->n_demands) {
			end_container(ad);
			continue;
		}
		if (begin_demand(ad) == STEP_WAIT)
			return;
		ad->d++;
	}
	admitted(ad);
}

static void append_pod(struct kubelet *k, struct pod_entry *pod)
{
	struct pod_entry **at = &k->pods;

	while (*at)
		at = &(*at)->next;
	*at = pod;
}

void admission_start_next(struct kubelet *k)
{
	struct admission *ad = k->queue;

	if (k->admitting || !ad)
		return;
	k->queue = ad->next;
	k->admitting = ad;
	ad->pod->admitting = true;
	append_pod(k, ad->pod);
	proceed(ad);
}

void admit(struct command *cmd, struct pod_entry *pod)
{
	struct admission *ad = xcalloc(1, sizeof(*ad)), **at = &cmd->k->queue;

	*ad = (struct admission) { .k = cmd->k, .cmd = cmd, .pod = pod };
	while (*at)
		at = &(*at)->next;
	*at = ad;
	admission_start_next(cmd->k);
}
