/* PodResources v1: List, Get and GetAllocatableResources, the pod in admission included. */
#include "kubelet.h"

#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/err.h"
#include "base/mem.h"
#include "kubepeer/kubepeer.h"

#define RATE_PER_SECOND 100.0
#define RATE_BURST	10.0

typedef void (*answer_fn)(struct kubelet *k, struct rpc_call *call, struct bytes request);

struct delayed_reply {
	struct delayed_reply *next;
	struct kubelet *k;
	struct rpc_timer *timer;
	struct rpc_call *call;
	struct bytes request;
	answer_fn answer;
};

static void reply_error(struct rpc_call *call, enum rpc_status status, const char *text)
{
	rpc_reply(call, status, text, (struct bytes) { 0 });
}

/* --- what it shows --- */

static struct held held_of(struct kubelet *k, const struct allocation *al, struct arena *a)
{
	struct held h = { .resource = al->resource,
			  .ids = { .v = arena_array(a, al->ids.n, sizeof(char *)) } };

	for (size_t i = 0; i < al->ids.n; i++)
		h.ids.v[h.ids.n++] = al->ids.v[i];
	sim_random_shuffle(&k->random, h.ids.v, h.ids.n, sizeof(char *));
	return h;
}

/* All that the driver gave for the claim to begin with, up to this device (docs/design/kubelet.md
 * §2.4 a).
 */
static struct ids cdi_names(const struct pod_entry *p, const struct fake_claim *claim,
			    size_t device, struct arena *a)
{
	struct ids ids = { arena_array(a, device + 1, sizeof(*ids.v)), 0 };
	const char *driver = claim->devices[device].driver;

	for (size_t i = 0; i <= device; i++) {
		if (!strcmp(claim->devices[i].driver, driver))
			ids.v[ids.n++] = arena_printf(a, "k8s.%s/claim=%s-%s", driver, p->uid,
						      claim->devices[i].name);
	}
	return ids;
}

static bool has_part(const struct fake_container *c, const struct fake_claim *claim)
{
	for (size_t i = 0; i < c->n_claims; i++) {
		if (!strcmp(c->claims[i].claim, claim->name))
			return true;
	}
	return false;
}

/* Whoever has a part of a claim is shown all of it (§2.4 b), when the drivers have prepared it. */
static void add_claims(const struct pod_entry *p, const struct fake_container *c,
		       struct pod_container *v, struct arena *a)
{
	size_t n = 0;

	for (size_t i = 0; i < p->n_claims; i++)
		n += p->claims[i].n_devices;
	v->dynamic = arena_array(a, n, sizeof(*v->dynamic));
	for (size_t i = 0; p->prepared && i < p->n_claims; i++) {
		const struct fake_claim *claim = &p->claims[i];

		for (size_t k = 0; has_part(c, claim) && k < claim->n_devices; k++)
			v->dynamic[v->n_dynamic++] =
				(struct dynamic) { claim->devices[k].driver, "node",
						   claim->devices[k].name,
						   cdi_names(p, claim, k, a), claim->name };
	}
}

static struct pod_container container_view(struct kubelet *k, const struct pod_entry *p,
					   const struct fake_container *c, struct arena *a)
{
	struct pod_container v = { .name = c->name,
				   .held = arena_array(a, c->n_held, sizeof(struct held)) };

	for (size_t i = 0; i < c->n_held; i++)
		v.held[v.n_held++] = held_of(k, &c->held[i], a);
	add_claims(p, c, &v, a);
	return v;
}

/* Ordinary init containers are never shown, restartable ones since 1.30. */
static bool is_shown(const struct kubelet *k, const struct fake_container *c)
{
	return c->kind == CONTAINER_APP || (c->kind == CONTAINER_SIDECAR && !k->opt.old);
}

static struct pod pod_view(struct kubelet *k, const struct pod_entry *p, struct arena *a)
{
	struct pod v = { .ns = p->ns,
			 .name = p->name,
			 .containers =
				 arena_array(a, p->n_containers, sizeof(struct pod_container)) };

	for (size_t i = 0; i < p->n_containers; i++) {
		if (is_shown(k, &p->containers[i]))
			v.containers[v.n_containers++] = container_view(k, p, &p->containers[i], a);
	}
	return v;
}

static void answer_list(struct kubelet *k, struct rpc_call *call, struct bytes request)
{
	struct arena *a = rpc_call_arena(call);
	struct pod_list list = { 0 };
	size_t n = 0;

	(void)request;
	collect_inactive(k, k->drop_reservations);
	for (struct pod_entry *p = k->pods; p; p = p->next)
		n++;
	list.v = arena_array(a, n, sizeof(*list.v));
	for (struct pod_entry *p = k->pods; p; p = p->next) {
		if (p->active)
			list.v[list.n++] = pod_view(k, p, a);
	}
	sim_random_shuffle(&k->random, list.v, list.n, sizeof(*list.v));
	rpc_reply(call, RPC_OK, NULL, peer_encode_pod_list(&list, !k->opt.old, a));
}

static void answer_get(struct kubelet *k, struct rpc_call *call, struct bytes request)
{
	struct arena *a = rpc_call_arena(call);
	const struct pod_entry *p;
	const char *ns, *name;
	struct err err = { 0 };
	struct pod view;

	if (peer_decode_pod_get_request(request, a, &ns, &name, &err) < 0) {
		reply_error(call, RPC_INTERNAL, err.msg);
		return;
	}
	p = pod_find(k, arena_printf(a, "%s/%s", ns, name));
	if (!p) {
		reply_error(call, RPC_NOT_FOUND,
			    arena_printf(a, "pod %s in namespace %s not found", name, ns));
		return;
	}
	view = pod_view(k, p, a);
	rpc_reply(call, RPC_OK, NULL, peer_encode_pod_get_reply(&view, !k->opt.old, a));
}

static void refuse_get(struct kubelet *k, struct rpc_call *call, struct bytes request)
{
	(void)k;
	(void)request;
	reply_error(call, RPC_UNKNOWN, "PodResources API Get method disabled");
}

static struct held healthy_of(struct kubelet *k, const struct resource *r, struct arena *a)
{
	struct held h = { .resource = r->name,
			  .ids = { .v = arena_array(a, r->devices.n, sizeof(char *)) } };

	for (size_t i = 0; i < r->devices.n; i++) {
		if (r->devices.v[i].healthy)
			h.ids.v[h.ids.n++] = r->devices.v[i].id;
	}
	sim_random_shuffle(&k->random, h.ids.v, h.ids.n, sizeof(char *));
	return h;
}

static void answer_allocatable(struct kubelet *k, struct rpc_call *call, struct bytes request)
{
	struct arena *a = rpc_call_arena(call);
	struct pod_container all = { .name = "" };
	size_t n = 0;

	(void)request;
	for (struct resource *r = k->resources; r; r = r->next)
		n++;
	all.held = arena_array(a, n, sizeof(*all.held));
	for (struct resource *r = k->resources; r; r = r->next)
		all.held[all.n_held++] = healthy_of(k, r, a);
	rpc_reply(call, RPC_OK, NULL, peer_encode_allocatable(&all, true, a));
}

/* --- how it answers --- */

static void unlink_delayed(struct delayed_reply *d)
{
	struct delayed_reply **at = &d->k->delayed;

	while (*at != d)
		at = &(*at)->next;
	*at = d->next;
}

static void on_delay_over(void *arg)
{
	struct delayed_reply *d = arg;

	unlink_delayed(d);
	d->answer(d->k, d->call, d->request);
	free(d);
}

void pod_resources_answer_all(struct kubelet *k)
{
	while (k->delayed) {
		rpc_timer_cancel(k->delayed->timer);
		on_delay_over(k->delayed);
	}
}

static void answer_later(struct kubelet *k, struct rpc_call *call, struct bytes request,
			 answer_fn answer)
{
	struct delayed_reply *d = xcalloc(1, sizeof(*d));

	*d = (struct delayed_reply) {
		.next = k->delayed, .k = k, .call = call, .request = request, .answer = answer
	};
	d->timer = rpc_after(k->rpc, k->pod_list_delay_ms, on_delay_over, d);
	k->delayed = d;
}

/* 100 a second, burst 10, shared by all clients. */
static bool take_token(struct kubelet *k)
{
	int64_t now = now_us();

	k->tokens += (double)(now - k->tokens_us) * RATE_PER_SECOND / 1e6;
	if (k->tokens > RATE_BURST)
		k->tokens = RATE_BURST;
	k->tokens_us = now;
	if (k->opt.rate_limit && k->tokens < 1)
		return false;
	k->tokens -= 1;
	return true;
}

static void report_query(const char *method, const char *user_agent)
{
	struct report r;
	struct json *j = report_begin(&r, "pod-resources");

	json_kv_string(j, "method", method);
	json_kv_string(j, "user_agent", user_agent);
	report_end(&r);
}

static void query(struct kubelet *k, struct rpc_call *call, struct bytes request,
		  const char *method, answer_fn answer, bool since_old)
{
	report_query(method, rpc_call_user_agent(call));
	if (!since_old && k->opt.old)
		reply_error(call, RPC_UNIMPLEMENTED,
			    "unknown method for service v1.PodResourcesLister");
	else if (k->pod_list_fail || !take_token(k))
		reply_error(call, RPC_RESOURCE_EXHAUSTED, "rejected by rate limit");
	else if (k->pod_list_garbage)
		rpc_reply(call, RPC_OK, NULL, (struct bytes) { (const uint8_t *)"\xff", 1 });
	else if (k->pod_list_delay_ms)
		answer_later(k, call, request, answer);
	else
		answer(k, call, request);
}

static void on_list(void *ctx, struct rpc_call *call, struct bytes request)
{
	query(ctx, call, request, "List", answer_list, true);
}

static void on_get(void *ctx, struct rpc_call *call, struct bytes request)
{
	const struct kubelet *k = ctx;

	query(ctx, call, request, "Get", k->opt.no_get ? refuse_get : answer_get, false);
}

static void on_allocatable(void *ctx, struct rpc_call *call, struct bytes request)
{
	query(ctx, call, request, "GetAllocatableResources", answer_allocatable, false);
}

int pod_resources_open(struct kubelet *k, struct err *err)
{
	static const struct rpc_method methods[] = {
		{ .path = PATH_POD_LIST, .unary = on_list },
		{ .path = PATH_POD_GET, .unary = on_get },
		{ .path = PATH_ALLOCATABLE, .unary = on_allocatable },
	};
	_cleanup_free_ char *path = xasprintf("%s/pod-resources/kubelet.sock", k->opt.root);

	return rpc_server_open(k->rpc, path, methods, ARRAY_LEN(methods), k, &k->pod_resources,
			       err);
}
