/*
 * The admission of one pod at a time: containers in order, resources of a container one after the
 * other, each recorded before the next is asked for (docs/design/kubelet.md §1.2). A chain of
 * callbacks; proceed() goes on where it stopped.
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
#include "kubepeer/kubepeer.h"

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

	/* the resource under way; ids in scratch */
	struct arena *scratch;
	struct resource *res;
	struct devman_pick pick;
	struct allocation slot;
};

enum step { STEP_NEXT, STEP_WAIT };

static void proceed(struct admission *ad);

static struct fake_container *container_of(const struct admission *ad)
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
		sim_idset_done(&r->ids);
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
	char message[1024] = "Pod was rejected: "; /* as in the pod's status */
	size_t prefix = strlen(message);
	struct report r;
	struct json *j;
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(message + prefix, sizeof(message) - prefix, fmt, ap);
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

#define UNEXPECTED(ad, fmt, ...)                                                                   \
	reject(ad, "UnexpectedAdmissionError",                                                     \
	       "Allocate failed due to " fmt ", which is unexpected", __VA_ARGS__)

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

/* --- what is there --- */

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

static struct devman_stock stock_of(struct admission *ad, const struct resource *r)
{
	return (struct devman_stock) { .devices = &r->devices,
				       .taken = &r->allocated,
				       .reusable = reusable(ad, r->name) };
}

/* --- NUMA --- */

/* >= 1.35 regards only the nodes that carry devices; the older ones' empty nodes would change
 * nothing here.
 */
static uint64_t machine_nodes(const struct kubelet *k)
{
	uint64_t mask = 0;

	for (const struct resource *r = k->resources; r; r = r->next)
		mask |= sim_devman_nodes(&r->devices);
	return mask;
}

static bool numa_admits(struct admission *ad)
{
	_cleanup_arena_ struct arena *a = arena_new(4096);
	struct fake_container *c = container_of(ad);
	struct numa_ask *asks = arena_array(a, c->n_demands, sizeof(*asks));
	struct numa_verdict v;
	size_t n = 0;

	if (ad->k->opt.policy != NUMA_NONE)
		collect_inactive(ad->k, false); /* GetTopologyHints begins with it */
	for (size_t i = 0; i < c->n_demands; i++) {
		const struct resource *r = resource_find(ad->k, c->demands[i].resource);

		if (r && resource_is_managed(r)) {
			struct devman_stock stock = stock_of(ad, r);

			asks[n++] = sim_devman_hint(&stock, (size_t)c->demands[i].count, a);
		}
	}
	v = sim_numa_judge(ad->k->opt.policy, machine_nodes(ad->k), asks, n);
	c->has_affinity = v.has_affinity;
	c->affinity = v.affinity;
	return v.admit;
}

/* --- Allocate --- */

static struct ids ids_copy(const struct ids *from, struct arena *a)
{
	struct ids copy = { arena_array(a, from->n, sizeof(char *)), from->n };

	for (size_t i = 0; i < from->n; i++)
		copy.v[i] = arena_strdup(a, from->v[i]);
	return copy;
}

static void record(struct admission *ad, const struct edits *edits, struct bytes response)
{
	struct fake_container *c = container_of(ad);

	ad->slot.resource = c->demands[ad->d].resource;
	ad->slot.ids = ids_copy(&ad->pick.picked, ad->pod->arena);
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
	if (peer_decode_allocate_reply(body, a, &edits, &n, &err) < 0) {
		rebuild_allocated(ad->k);
		UNEXPECTED(ad, "rpc error: code = Internal desc = grpc: failed to unmarshal: %s",
			   err.msg);
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
	struct ids ids;

	if (ad->pick.needed)
		return UNEXPECTED(
			ad,
			"unexpectedly allocated less resources than required. Requested: %d, Got: %zu",
			container_of(ad)->demands[ad->d].count, ad->pick.picked.n);
	if (!e || ad->res->stopped || !e->channel) {
		rebuild_allocated(ad->k);
		return UNEXPECTED(ad, "endpoint %s has been stopped", ad->res->name);
	}
	ids = ids_copy(&ad->pick.picked, ad->scratch);
	sim_random_shuffle(&ad->k->random, ids.v, ids.n, sizeof(char *));
	ad->call_us = now_us();
	rpc_call_unary(e->channel, PATH_ALLOCATE,
		       peer_encode_allocate(&(struct id_lists) { .v = &ids, .n = 1 }, ad->scratch),
		       CALL_TIMEOUT_MS, on_allocated, ad);
	return STEP_WAIT;
}

/* --- GetPreferredAllocation --- */

static enum step allocate_with(struct admission *ad, const struct ids *preferred)
{
	sim_devman_finish(&ad->pick, preferred);
	return allocate(ad);
}

static void on_preferred(void *arg, enum rpc_status status, const char *message, struct bytes body)
{
	struct admission *ad = arg;
	struct id_lists lists = { 0 };
	struct err err = { 0 };

	ad->slot.preferred_us = now_us() - ad->call_us;
	if (status != RPC_OK) {
		UNEXPECTED(
			ad,
			"device plugin GetPreferredAllocation rpc failed with err: rpc error: code = %s desc = %s",
			status_name(status), message);
		return;
	}
	if (kubemsg_decode(&kubemsg_preferred_reply, body, ad->pod->arena, &lists, &err) < 0) {
		UNEXPECTED(ad, "device plugin GetPreferredAllocation rpc failed with err: %s",
			   err.msg);
		return;
	}
	if (lists.n)
		ad->slot.preferred = lists.v[0];
	allocate_with(ad, &ad->slot.preferred);
}

static enum step ask_preferred(struct admission *ad)
{
	struct client *e = ad->res->endpoint;

	if (!e)
		return UNEXPECTED(ad, "endpoint not found in cache for a registered resource: %s",
				  ad->res->name);
	if (!e->options.preferred_allocation)
		return allocate_with(ad, NULL);
	if (ad->res->stopped || !e->channel)
		return UNEXPECTED(
			ad,
			"device plugin GetPreferredAllocation rpc failed with err: endpoint %s has been stopped",
			ad->res->name);
	ad->slot.offered = ad->pick.ask.available.n;
	ad->call_us = now_us();
	rpc_call_unary(e->channel, PATH_PREFERRED,
		       kubemsg_encode(&kubemsg_preferred,
				      &(struct preferred_request) { .v = &ad->pick.ask, .n = 1 },
				      ad->scratch),
		       CALL_TIMEOUT_MS, on_preferred, ad);
	return STEP_WAIT;
}

/* --- one resource --- */

static enum step pick(struct admission *ad, size_t count)
{
	const struct fake_container *c = container_of(ad);
	struct devman_stock stock = stock_of(ad, ad->res);
	enum devman_step step;

	arena_free(ad->scratch);
	ad->scratch = arena_new(16 * 1024);
	ad->slot = (struct allocation) { .preferred_us = -1 };
	step = sim_devman_begin(&ad->pick, &stock, &ad->res->allocated, count,
				c->has_affinity ? &c->affinity : NULL, &ad->k->random, ad->scratch);
	if (step == DEVMAN_SHORT)
		return UNEXPECTED(
			ad,
			"requested number of devices unavailable for %s. Requested: %zu, Available: %zu",
			ad->res->name, ad->pick.needed, ad->pick.available);
	return step == DEVMAN_ASK ? ask_preferred(ad) : allocate(ad);
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
		return UNEXPECTED(
			ad, "no healthy devices present; cannot allocate unhealthy devices %s",
			d->resource);
	if (!d->count)
		return STEP_NEXT;
	return pick(ad, (size_t)d->count);
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

/* A regular init container leaves its devices to those that follow; the others keep what they took.
 */
static void end_container(struct admission *ad)
{
	struct fake_container *c = container_of(ad);

	for (size_t h = 0; h < c->n_held; h++) {
		struct idset *reuse = reusable(ad, c->held[h].resource);

		for (size_t i = 0; i < c->held[h].ids.n; i++) {
			if (c->kind == CONTAINER_INIT)
				sim_idset_add(reuse, c->held[h].ids.v[i]);
			else
				sim_idset_remove(reuse, c->held[h].ids.v[i]);
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
