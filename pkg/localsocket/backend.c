#include "localsocket/localsocket.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/arena.h"
#include "base/err.h"
#include "base/json.h"
#include "config/config.h"
#include "hw/bdf.h"
#include "hw/inventory.h"
#include "ledger/ledger.h"
#include "plugin/plugin.h"
#include "pods/who.h"
#include "pool/node.h"
#include "status/status.h"
#include "sysroot/sysroot.h"
#include "topo/rails.h"
#include "tracker/tracker.h"

static void bind_slot(void *ctx, const struct control_request *r, unsigned timeout_ms,
		      latebind_done_fn done, void *arg)
{
	const struct plugin_env *env = ctx;
	const struct pod_ref pod = { r->ns, r->pod, r->uid };
	const char *slot = r->slot;
	struct err err = { 0 };

	if (!*r->ns || !*r->pod) {
		err_set(&err, EPERM,
			"the container runtime names no pod (K8S_POD_NAMESPACE and K8S_POD_NAME of CNI_ARGS): whether %s is its cannot be known",
			r->slot);
		done(arg, &err, NULL, 0);
		return;
	}
	if (!env->latebind) {
		err_set(&err, ENOSYS,
			"this railmated does not ask the kubelet for pod resources, so it cannot bind %s",
			r->slot);
		done(arg, &err, NULL, 0);
		return;
	}
	latebind_bind(env->latebind, &(struct ids) { &slot, 1 }, &pod, timeout_ms, done, arg);
}

static const char *rdma_of(void *ctx, const char *vf)
{
	const struct plugin_env *env = ctx;
	const struct ledger_hold *hold =
		env->tracker ? ledger_find(tracker_ledger(env->tracker), vf) : NULL;

	return hold ? hold->rdma : NULL;
}

/* As sysfs has it now: a VF that is in a pod's network namespace keeps this link. */
static const char *pf_of(void *ctx, const char *vf, struct arena *a)
{
	const struct plugin_env *env = ctx;
	char name[BDF_STRLEN];
	struct bdf pf;

	if (sysroot_link_name(env->root, name, sizeof(name), "sys/bus/pci/devices/%s/physfn", vf) <
		    0 ||
	    bdf_parse(name, &pf) < 0)
		return NULL;
	return arena_strdup(a, bdf_format(pf, name));
}

static struct topo_rail rail_of(void *ctx, const char *vf)
{
	const struct plugin_env *env = ctx;
	const struct node *node = env->tracker ? tracker_node(env->tracker) : NULL;
	struct bdf bdf;
	bool known = node && bdf_parse(vf, &bdf) == 0;

	return topo_rails_of(known ? node->rails : NULL, known ? hw_find_pci(node->inv, bdf) : -1);
}

static int write_ledger(void *ctx, struct strbuf *out, struct err *err)
{
	const struct plugin_env *env = ctx;

	if (!env->tracker)
		return err_set(err, ENOSYS, "this railmated keeps no ledger");
	ledger_write(tracker_ledger(env->tracker), out);
	return 0;
}

/* --- the state of every VF --- */

static const char *name_of(const struct node *node, int pci, char *buf)
{
	return bdf_format(node->inv->pci[pci].bdf, buf);
}

static void put_owner(struct json *j, const struct ledger_owner *o)
{
	json_kv_string(j, "namespace", o->ns);
	json_kv_string(j, "pod", o->pod);
	json_kv_string(j, "uid", o->uid);
	json_kv_string(j, "container", o->container);
}

static enum holds_state put_vf(struct json *j, struct tracker *k, const struct pool *pool,
			       const struct pool_dev *dev)
{
	_cleanup_arena_ struct arena *a = arena_new(512);
	const struct ledger_hold *hold = ledger_find(tracker_ledger(k), dev->id);
	struct holds_verdict v = tracker_judge(k, pool, dev, true, a);
	char buf[BDF_STRLEN];

	json_begin_object(j);
	json_kv_string(j, "vf", dev->id);
	json_kv_string(j, "pf",
		       dev->pci < 0 ? (dev->pf ? dev->pf->address : NULL)
				    : name_of(tracker_node(k),
					      topo_place(tracker_node(k)->topo, dev->pci), buf));
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
	return v.state;
}

static void put_counts(struct json *j, const size_t n[HOLDS_STATES])
{
	json_key(j, "counts");
	json_begin_object(j);
	for (int s = HOLDS_STATES; s-- > 0;)
		json_kv_int(j, holds_state_names[s], (int64_t)n[s]);
	json_end_object(j);
}

static void put_reasons(struct json *j, unsigned trouble)
{
	json_key(j, "reasons");
	json_begin_array(j);
	for (size_t i = 0; i < LINK_TROUBLES; i++) {
		if (trouble & 1u << i)
			json_put_string(j, config_link_troubles[i]);
	}
	json_end_array(j);
}

static void put_degraded(struct json *j, const struct node *node, const struct pool *pool)
{
	json_key(j, "degraded");
	json_begin_array(j);
	for (size_t i = 0; i < node->n_links; i++) {
		const struct node_link *l = &node->links[i];

		if (strcmp(l->resource, pool->cfg->resource))
			continue;
		json_begin_object(j);
		json_kv_string(j, "pf", l->pf);
		json_kv_int(j, "port", l->port);
		put_reasons(j, l->trouble);
		json_kv_string(j, "why", l->degraded);
		json_kv_bool(j, "unhealthy", l->unhealthy);
		json_kv_int_if(j, "since_ms", l->since_ms, l->since_ms > 0);
		json_end_object(j);
	}
	json_end_array(j);
}

static void put_pool(struct json *j, const struct plugin_env *env, const struct pool *pool)
{
	struct tracker *k = env->tracker;
	size_t n[HOLDS_STATES] = { 0 };

	json_begin_object(j);
	json_kv_string(j, "resource", pool->cfg->resource);
	json_kv_string(j, "binding", pool->cfg->binding == BINDING_LATE ? "late" : "early");
	json_kv_string(j, "binding_why", pool->cfg->binding_why);
	json_key(j, "vfs");
	json_begin_array(j);
	for (size_t i = 0; i < pool->n_devs; i++)
		n[put_vf(j, k, pool, &pool->devs[i])]++;
	json_end_array(j);
	put_counts(j, n);
	put_degraded(j, tracker_node(k), pool);
	json_end_object(j);
}

static void put_unknown(struct json *j, struct tracker *k)
{
	const struct ledger_owner *owner;
	const char *slot;

	json_key(j, "unknown_slots");
	json_begin_array(j);
	for (size_t i = 0; (slot = holds_unknown(tracker_holds(k), i, &owner)); i++) {
		json_begin_object(j);
		json_kv_string(j, "slot", slot);
		put_owner(j, owner);
		json_end_object(j);
	}
	json_end_array(j);
}

/* The ports of PFs that are not there: the client, which reads sysfs, cannot see them. */
static void put_missing(struct json *j, const struct node *node)
{
	json_key(j, "missing");
	json_begin_array(j);
	for (size_t i = 0; i < node->n_pfs; i++) {
		const struct node_pf *pf = &node->pfs[i];

		for (size_t k = 0; pf->missing && pf->wanted && k < pf->n_ports; k++) {
			int number = pf->ports[k].number;

			json_begin_object(j);
			json_kv_string(j, "pf", pf->address);
			json_kv_string(j, "netdev", pf->netdev);
			json_kv_string(j, "rdma", pf->rdma);
			json_kv_int_if(j, "port", number, number > 0);
			json_kv_string(j, "why", pf->missing);
			json_end_object(j);
		}
	}
	json_end_array(j);
}

/* As configured: railmatectl and railmate-cni do not read the daemon's configuration. */
static void put_rails(struct json *j, const struct node *node)
{
	char pf[BDF_STRLEN];

	json_key(j, "rails");
	json_begin_array(j);
	for (size_t i = 0; i < node->inv->n_pci; i++) {
		struct topo_rail at = topo_rails_of(node->rails, (int)i);

		if (at.rail < 0 || !hw_is_own_nic(node->inv, (int)i))
			continue;
		json_begin_object(j);
		json_kv_string(j, "pf", bdf_format(node->inv->pci[i].bdf, pf));
		json_kv_int(j, "rail", at.rail);
		json_kv_int_if(j, "plane", at.plane, at.plane >= 0);
		json_end_object(j);
	}
	json_end_array(j);
}

static void put_conditions(struct json *j, const struct plugin_env *env)
{
	_cleanup_arena_ struct arena *a = arena_new(4096);
	const struct status_condition *v = NULL;
	size_t n = env->conditions ? env->conditions(env->conditions_ctx, a, &v) : 0;

	json_key(j, "conditions");
	json_begin_array(j);
	for (size_t i = 0; i < n; i++) {
		json_begin_object(j);
		json_kv_string(j, "what", v[i].what);
		json_kv_string(j, "problem", v[i].problem);
		json_kv_bool(j, "serves", v[i].serves);
		json_end_object(j);
	}
	json_end_array(j);
}

static const char *node_name(char *buf, size_t size)
{
	const char *name = getenv("NODE_NAME");

	if (name && *name)
		return name;
	return gethostname(buf, size) == 0 ? buf : "";
}

static int write_pools(void *ctx, struct strbuf *out, struct err *err)
{
	const struct plugin_env *env = ctx;
	struct tracker *k = env->tracker;
	char host[256] = "";
	struct json j;

	if (!k || !tracker_node(k))
		return err_set(err, EAGAIN, "railmated has not scanned the node yet");
	json_init(&j, out, 0);
	json_begin_object(&j);
	json_kv_int(&j, "document", 1);
	json_kv_string(&j, "node", node_name(host, sizeof(host) - 1));
	json_kv_string(&j, "version", RAILMATE_VERSION);
	json_key(&j, "pools");
	json_begin_array(&j);
	for (size_t i = 0; i < tracker_node(k)->n_pools; i++)
		put_pool(&j, env, &tracker_node(k)->pools[i]);
	json_end_array(&j);
	put_conditions(&j, env);
	put_unknown(&j, k);
	put_missing(&j, tracker_node(k));
	put_rails(&j, tracker_node(k));
	json_end_object(&j);
	return 0;
}

static int release(void *ctx, const char *vf, struct err *err)
{
	const struct plugin_env *env = ctx;
	const struct ledger_hold *hold;

	if (!env->tracker)
		return err_set(err, EAGAIN, "railmated has not scanned the node yet");
	hold = ledger_find(tracker_ledger(env->tracker), vf);
	if (!hold)
		return err_set(err, ENOENT, "VF %s: no container holds it", vf);
	if (holds_is_shown(tracker_holds(env->tracker), vf))
		return err_set(
			err, EBUSY,
			"VF %s: not released, for the kubelet shows that pod %s/%s has it: delete the pod",
			vf, hold->owner.ns, hold->owner.pod);
	holds_event(tracker_holds(env->tracker),
		    &(struct holds_event) { .kind = HOLDS_RELEASED, .vf = vf }, tracker_now());
	tracker_save(env->tracker, NULL, NULL);
	return 0;
}

static int whose(void *ctx, const struct control_request *r, struct err *err)
{
	const struct plugin_env *env = ctx;
	const struct ledger_owner pod = { r->ns, r->pod, r->uid, NULL };
	const struct ledger_hold *hold;
	char vf[BDF_STRLEN];
	struct bdf bdf;

	if (!env->tracker)
		return err_set(err, EAGAIN, "railmated has not scanned the node yet");
	if (bdf_parse(r->vf, &bdf) < 0)
		return err_set(err, EINVAL, "'%s' is not a PCI address", r->vf);
	bdf_format(bdf, vf);
	hold = ledger_find(tracker_ledger(env->tracker), vf);
	switch (holds_whose(tracker_holds(env->tracker), vf, &pod)) {
	case HOLDS_OF_POD:
		return 0;
	case HOLDS_OF_NOBODY:
		return err_set(err, ENOENT, "VF %s: no container holds it", vf);
	case HOLDS_OF_UNKNOWN:
		return err_set(err, EPERM, "VF %s was given to a container of another pod", vf);
	case HOLDS_OF_ANOTHER:
		break;
	}
	return err_set(err, EPERM, "VF %s is held by pod %s/%s, not by pod %s/%s", vf,
		       hold->owner.ns, hold->owner.pod, r->ns, r->pod);
}

struct localsocket_backend localsocket_backend_of(const struct plugin_env *env)
{
	return (struct localsocket_backend) { (void *)env,  bind_slot,	 rdma_of, pf_of, rail_of,
					      write_ledger, write_pools, release, whose };
}
