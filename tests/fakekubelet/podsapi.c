/* The Pods API (KEP-4188), with --pods-api: what the pods ask for, the one in admission included.
 */
#include "kubelet.h"

#include "base/arena.h"
#include "base/mem.h"
#include "kubemsg/messages.h"
#include "kubepeer/kubepeer.h"

#define FIRST_POD_CREATED 1767225600 /* one pod a second, in the order in which they came */

static struct spec_container spec_of(const struct fake_container *c, struct arena *a)
{
	static const enum spec_kind kinds[] = {
		[CONTAINER_INIT] = SPEC_INIT,
		[CONTAINER_SIDECAR] = SPEC_SIDECAR,
		[CONTAINER_APP] = SPEC_APP,
	};
	struct spec_limit *limits = arena_array(a, c->n_demands, sizeof(*limits));

	for (size_t i = 0; i < c->n_demands; i++)
		limits[i] = (struct spec_limit) { c->demands[i].resource, c->demands[i].count };
	return (struct spec_container) { c->name,      kinds[c->kind], limits,
					 c->n_demands, c->claims,      c->n_claims };
}

static struct spec_pod pod_of(const struct pod_entry *p, int64_t created, struct arena *a)
{
	struct spec_container *v = arena_array(a, p->n_containers, sizeof(*v));

	for (size_t i = 0; i < p->n_containers; i++)
		v[i] = spec_of(&p->containers[i], a);
	return (struct spec_pod) { .ns = p->ns,
				   .name = p->name,
				   .uid = p->uid,
				   .created = created,
				   .containers = v,
				   .n_containers = p->n_containers };
}

static void on_list(void *ctx, struct rpc_call *call, struct bytes request)
{
	struct arena *a = rpc_call_arena(call);
	struct kubelet *k = ctx;
	struct spec_list list = { 0 };
	struct spec_pod *v;
	int64_t created = FIRST_POD_CREATED;
	size_t n = 0;

	(void)request;
	for (struct pod_entry *p = k->pods; p; p = p->next)
		n++;
	list.v = v = arena_array(a, n, sizeof(*v));
	for (struct pod_entry *p = k->pods; p; p = p->next, created++) {
		if (p->active)
			v[list.n++] = pod_of(p, created, a);
	}
	sim_random_shuffle(&k->random, v, list.n, sizeof(*v));
	rpc_reply(call, RPC_OK, NULL, peer_encode_pod_specs(&list, a));
}

int pods_api_open(struct kubelet *k, struct err *err)
{
	static const struct rpc_method methods[] = { { .path = PATH_PODS_LIST, .unary = on_list } };
	_cleanup_free_ char *path = xasprintf("%s/pods-api/pods-api.sock", k->opt.root);

	if (!k->opt.pods_api)
		return 0;
	return rpc_server_open(k->rpc, path, methods, ARRAY_LEN(methods), k, &k->pods_api, err);
}
