#include "localsocket/localsocket.h"

#include <errno.h>
#include <string.h>

#include "base/arena.h"
#include "base/err.h"
#include "base/str.h"
#include "hw/bdf.h"
#include "hw/inventory.h"
#include "latebind/latebind.h"
#include "ledger/ledger.h"
#include "plugin/plugin.h"
#include "pods/who.h"
#include "pool/node.h"
#include "holds/holds.h"
#include "sysroot/sysroot.h"
#include "topo/rails.h"
#include "tracker/tracker.h"

/* A bind under way; in the arena of its request. */
struct binding {
	const struct plugin_env *env;
	struct arena *arena;
	localsocket_done_fn done;
	void *arg;
};

/* As sysfs has it now: a VF that is in a pod's network namespace keeps this link. */
static const char *pf_of(const struct plugin_env *env, const char *vf, struct arena *a)
{
	char name[BDF_STRLEN];
	struct bdf pf;

	if (sysroot_link_name(env->root, name, sizeof(name), "sys/bus/pci/devices/%s/physfn", vf) <
		    0 ||
	    bdf_parse(name, &pf) < 0)
		return NULL;
	return arena_strdup(a, bdf_format(pf, name));
}

static struct topo_rail rail_of(const struct plugin_env *env, const char *vf)
{
	const struct node *node = tracker_node(env->tracker);
	struct bdf bdf;
	bool known = node && bdf_parse(vf, &bdf) == 0;

	return topo_rails_of(known ? node->rails : NULL, known ? hw_find_pci(node->inv, bdf) : -1);
}

static void on_bound(void *arg, const struct err *err, const struct bound *v, size_t n)
{
	struct binding *b = arg;
	struct control_bound *out = arena_array(b->arena, n + 1, sizeof(*out));

	for (size_t i = 0; !err && i < n; i++) {
		const struct ledger_hold *hold =
			ledger_find(tracker_ledger(b->env->tracker), v[i].vf);
		struct topo_rail at = rail_of(b->env, v[i].vf);

		out[i] = (struct control_bound) { v[i].slot,
						  v[i].resource,
						  v[i].vf,
						  hold ? hold->rdma : NULL,
						  pf_of(b->env, v[i].vf, b->arena),
						  at.rail,
						  at.plane,
						  hold && *hold->owner.claim ? hold->owner.claim
									     : NULL };
	}
	b->done(b->arg, &(struct control_reply) { .bound = out, .n_bound = n }, err);
}

static void on_refreshed(void *arg, const struct err *err, const struct bound *v, size_t n)
{
	struct binding *b = arg;

	b->done(b->arg, &(struct control_reply) { 0 }, err);
}

/* 0: on_bound() follows. */
static int bind_slot(const struct plugin_env *env, const struct control_request *r,
		     struct binding *b, struct err *err)
{
	const struct pod_ref pod = { r->ns, r->pod, r->uid };
	const char *slot = r->slot;

	if (!*r->ns || !*r->pod)
		return err_set(
			err, EPERM,
			"the container runtime names no pod (K8S_POD_NAMESPACE and K8S_POD_NAME of CNI_ARGS): whether %s is its cannot be known",
			slot);
	if (!env->latebind)
		return err_set(
			err, ENOSYS,
			"this railmated does not ask the kubelet for pod resources, so it cannot bind %s",
			slot);
	latebind_bind(env->latebind, &(struct ids) { &slot, 1 }, &pod, LOCALSOCKET_BIND_MS,
		      on_bound, b);
	return 0;
}

static int not_yet(struct err *err)
{
	return err_set(err, EAGAIN, "railmated has not scanned the node yet");
}

static int release(const struct plugin_env *env, const char *vf, struct err *err)
{
	const struct ledger_hold *hold;

	if (!env->tracker)
		return not_yet(err);
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

static int whose(const struct plugin_env *env, const struct control_request *r, struct err *err)
{
	const struct ledger_owner pod = { .ns = r->ns, .pod = r->pod, .uid = r->uid };
	const struct ledger_hold *hold;
	char vf[BDF_STRLEN];
	struct bdf bdf;

	if (!env->tracker)
		return not_yet(err);
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

static int write_text(const struct plugin_env *env, enum control_op op, struct strbuf *out,
		      struct err *err)
{
	if (op == CONTROL_LEDGER && !env->tracker)
		return err_set(err, ENOSYS, "this railmated keeps no ledger");
	if (!env->tracker || (op == CONTROL_POOLS && !tracker_node(env->tracker)))
		return not_yet(err);
	if (op == CONTROL_LEDGER)
		ledger_write(tracker_ledger(env->tracker), out);
	else
		env->document(env->document_ctx, out);
	return 0;
}

static void answer(void *ctx, const struct control_request *r, struct arena *a,
		   localsocket_done_fn done, void *arg)
{
	const struct plugin_env *env = ctx;
	_cleanup_strbuf_ struct strbuf text = STRBUF_INIT;
	struct control_reply reply = { 0 };
	struct err err = { 0 };
	struct binding *b;
	int rc = 0;

	switch (r->op) {
	case CONTROL_BIND:
		b = arena_copy(a, &(struct binding) { env, a, done, arg }, sizeof(*b));
		rc = bind_slot(env, r, b, &err);
		if (rc == 0)
			return;
		break;
	case CONTROL_LEDGER:
		rc = write_text(env, r->op, &text, &err);
		reply.ledger = strbuf_str(&text);
		break;
	case CONTROL_POOLS:
		rc = write_text(env, r->op, &text, &err);
		reply.pools = strbuf_str(&text);
		break;
	case CONTROL_RELEASE:
		rc = release(env, r->vf, &err);
		break;
	case CONTROL_REFRESH:
		if (!env->latebind)
			break;
		b = arena_copy(a, &(struct binding) { env, a, done, arg }, sizeof(*b));
		latebind_refresh(env->latebind, r->vf, on_refreshed, b);
		return;
	case CONTROL_WHOSE:
		rc = whose(env, r, &err);
		break;
	case CONTROL_STATUS:
	case CONTROL_OP_MAX:
		break;
	}
	done(arg, &reply, rc < 0 ? &err : NULL);
}

struct localsocket_backend localsocket_backend_of(const struct plugin_env *env)
{
	return (struct localsocket_backend) { (void *)env, answer };
}
