#include "localsocket/localsocket.h"

#include <errno.h>
#include <string.h>

#include "base/arena.h"
#include "base/err.h"
#include "hw/bdf.h"
#include "hw/inventory.h"
#include "ledger/ledger.h"
#include "plugin/plugin.h"
#include "pods/who.h"
#include "pool/node.h"
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

static int write_document(void *ctx, struct strbuf *out, struct err *err)
{
	const struct plugin_env *env = ctx;

	if (!env->tracker || !tracker_node(env->tracker))
		return err_set(err, EAGAIN, "railmated has not scanned the node yet");
	env->document(env->document_ctx, out);
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
	return (struct localsocket_backend) { (void *)env,  bind_slot,	    rdma_of, pf_of, rail_of,
					      write_ledger, write_document, release, whose };
}
