/* The node's status document: the state of every VF of its pools, conditions, links. All that shows
 * a node to people is made of it or of the same facts. */
#include <string.h>

#include "base/arena.h"
#include "base/json.h"
#include "base/str.h"
#include "config/config.h"
#include "hw/bdf.h"
#include "hw/inventory.h"
#include "ledger/ledger.h"
#include "pool/node.h"
#include "status/status-internal.h"
#include "topo/rails.h"

#define DOCUMENT_VERSION 1

static void put_owner(struct json *j, const struct ledger_owner *o)
{
	json_kv_string(j, "namespace", o->ns);
	json_kv_string(j, "pod", o->pod);
	json_kv_string(j, "uid", o->uid);
	json_kv_string(j, "container", o->container);
}

static void put_vf(struct json *j, const struct status_facts *f, const struct pool *pool,
		   const struct pool_dev *dev)
{
	const struct holds_verdict v = status_verdict(f, pool, dev);
	const struct ledger_hold *hold = ledger_find(f->ledger, dev->id);
	char pf[BDF_STRLEN];

	json_begin_object(j);
	json_kv_string(j, "vf", dev->id);
	json_kv_string(j, "pf",
		       dev->pci >= 0
			       ? status_device_address(f, topo_place(f->node->topo, dev->pci), pf)
		       : dev->pf ? dev->pf->address
				 : NULL);
	json_kv_string(j, "state", holds_state_names[v.state]);
	json_kv_bool(j, "offered", v.offered);
	json_kv_string(j, "why", v.why);
	if (hold) {
		put_owner(j, &hold->owner);
		json_kv_string(j, "slot", hold->slot);
		json_kv_int(j, "since_ms", hold->since_ms);
		json_kv_int(j, "decision", (int64_t)hold->decision);
		json_kv_bool(j, "replaced", hold->replaced);
	}
	json_end_object(j);
}

static void put_counts(struct json *j, const struct status_facts *f, const struct pool *pool)
{
	uint64_t n[HOLDS_STATES] = { 0 };

	status_count_states(f, pool, n);
	json_kv_object(j, "counts");
	for (int s = HOLDS_STATES; s-- > 0;)
		json_kv_int(j, holds_state_names[s], (int64_t)n[s]);
	json_end_object(j);
}

static void put_pods(struct json *j, const struct status_facts *f, const char *pf)
{
	_cleanup_arena_ struct arena *a = arena_new(1024);
	const char *const *pods;
	size_t n = status_pods_of(f, pf, a, &pods);

	json_kv_strings(j, "pods", pods, n);
}

/* The members of an object that is begun. */
static void put_trouble(struct json *j, const struct status_facts *f, const struct node_link *l)
{
	json_kv_string(j, "why", l->degraded);
	json_kv_array(j, "reasons");
	for (size_t i = 0; i < LINK_TROUBLES; i++) {
		if (l->trouble & 1u << i)
			json_put_string(j, config_link_troubles[i]);
	}
	json_end_array(j);
	put_pods(j, f, l->pf);
}

static void put_degraded(struct json *j, const struct status_facts *f, const struct pool *pool)
{
	json_kv_array(j, "degraded");
	for (size_t i = 0; i < f->node->n_links; i++) {
		const struct node_link *l = &f->node->links[i];

		if (strcmp(l->resource, pool->cfg->resource))
			continue;
		json_begin_object(j);
		json_kv_string(j, "pf", l->pf);
		json_kv_int(j, "port", l->port);
		put_trouble(j, f, l);
		json_kv_bool(j, "unhealthy", l->unhealthy);
		json_kv_int_if(j, "since_ms", l->since_ms, l->since_ms > 0);
		json_end_object(j);
	}
	json_end_array(j);
}

static void put_shares(struct json *j, const struct status_service *s, const struct pool *pool)
{
	json_kv_int(j, "shares", pool->cfg->shares);
	json_key(j, "containers");
	if (!s->shares) {
		json_put_null(j);
		return;
	}
	json_begin_array(j);
	for (size_t i = 0; i < s->n_shares; i++) {
		const struct status_share *share = &s->shares[i];

		if (strcmp(share->resource, pool->cfg->resource))
			continue;
		json_begin_object(j);
		json_kv_string(j, "namespace", share->ns);
		json_kv_string(j, "pod", share->pod);
		json_kv_string(j, "container", share->container);
		json_kv_int(j, "shares", (int64_t)share->n);
		json_end_object(j);
	}
	json_end_array(j);
}

static void put_pool(struct json *j, const struct status_facts *f, const struct pool *pool)
{
	json_begin_object(j);
	json_kv_string(j, "resource", pool->cfg->resource);
	json_kv_string(j, "binding", status_binding(pool));
	json_kv_string(j, "binding_why", pool->cfg->binding_why);
	json_kv_array(j, "vfs");
	for (size_t i = 0; i < pool->n_devs; i++)
		put_vf(j, f, pool, &pool->devs[i]);
	json_end_array(j);
	put_counts(j, f, pool);
	put_degraded(j, f, pool);
	if (pool->cfg->shares)
		put_shares(j, f->service, pool);
	json_end_object(j);
}

static void put_pools(struct json *j, const char *key, const struct status_facts *f,
		      const struct pool *v, size_t n)
{
	json_kv_array(j, key);
	for (size_t i = 0; f->service && i < n; i++)
		put_pool(j, f, &v[i]);
	json_end_array(j);
}

static void put_unknown(struct json *j, const struct status_service *s)
{
	json_kv_array(j, "unknown_slots");
	for (size_t i = 0; s && i < s->n_unknown; i++) {
		json_begin_object(j);
		json_kv_string(j, "slot", s->unknown[i].slot);
		put_owner(j, &s->unknown[i].owner);
		json_end_object(j);
	}
	json_end_array(j);
}

static void put_link(struct json *j, const struct status_facts *f, const struct status_link *l)
{
	const struct hw_neighbor *leaf = hw_find_neighbor(f->node->inv, l->pf->pci);
	struct topo_rail at = topo_rails_of(f->node->rails, l->pf->pci);

	json_begin_object(j);
	json_kv_string(j, "pf", l->pf->address);
	json_kv_string(j, "rdma", l->pf->rdma);
	json_kv_int_if(j, "port", l->number, l->number > 0);
	json_kv_string(j, "netdev", l->pf->netdev);
	json_kv_string(j, "state", l->port ? l->port->state : NULL);
	json_kv_int_if(j, "rate_mbps", l->port ? l->port->rate_mbps : 0,
		       l->port && l->port->rate_mbps);
	json_kv_bool(j, "down", l->down);
	json_kv_bool(j, "missing", l->pf->missing != NULL);
	json_kv_string(j, "wrong", l->wrong);
	json_key(j, "degraded");
	if (l->degraded) {
		json_begin_object(j);
		put_trouble(j, f, l->degraded);
		json_end_object(j);
	} else {
		json_put_null(j);
	}
	put_pods(j, f, l->pf->address);
	json_kv_int_if(j, "rail", at.rail, at.rail >= 0);
	json_kv_int_if(j, "plane", at.plane, at.plane >= 0);
	json_kv_string(j, "switch", leaf ? leaf->name : NULL);
	json_kv_string(j, "switch_port", leaf ? leaf->port : NULL);
	json_end_object(j);
}

static void put_links(struct json *j, const struct status_facts *f)
{
	_cleanup_arena_ struct arena *a = arena_new(4096);
	struct status_link *v;
	size_t n = status_links(f->node, a, &v);

	json_kv_array(j, "links");
	for (size_t i = 0; i < n; i++)
		put_link(j, f, &v[i]);
	json_end_array(j);
}

static void put_conditions(struct json *j, const struct status_facts *f)
{
	_cleanup_arena_ struct arena *a = arena_new(4096);
	const struct status_condition *v;
	size_t n = status_conditions(f, a, &v);

	json_kv_array(j, "conditions");
	for (size_t i = 0; i < n; i++) {
		json_begin_object(j);
		json_kv_string(j, "what", v[i].what);
		json_kv_string(j, "problem", v[i].problem);
		json_kv_bool(j, "serves", v[i].serves);
		json_end_object(j);
	}
	json_end_array(j);
}

void status_write_document(const struct status_facts *f, struct strbuf *out)
{
	struct json j;

	json_init(&j, out, 0);
	json_begin_object(&j);
	json_kv_int(&j, "document", DOCUMENT_VERSION);
	json_kv_string(&j, "node", f->node_name);
	json_kv_string(&j, "version", RAILMATE_VERSION);
	put_pools(&j, "pools", f, f->node->pools, f->node->n_pools);
	put_pools(&j, "shared", f, f->node->shared, f->node->n_shared);
	put_conditions(&j, f);
	put_unknown(&j, f->service);
	put_links(&j, f);
	json_end_object(&j);
}
