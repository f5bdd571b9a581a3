#include "daemon/control.h"

#include <errno.h>

#include "base/arena.h"
#include "base/err.h"
#include "discover/sysroot.h"
#include "hw/bdf.h"
#include "kubelet/keeper.h"
#include "kubelet/plugin.h"
#include "ledger/ledger.h"

static void bind_slot(void *ctx, const struct control_request *r, unsigned timeout_ms, binder_done_fn done,
		      void *arg)
{
	const struct plugin_env *env = ctx;
	const struct binder_pod pod = { r->ns, r->pod, r->uid };
	const char *slot = r->slot;
	struct err err = { 0 };

	if (!env->binder) {
		err_set(&err, ENOSYS,
			"this railmated does not ask the kubelet for pod resources, so it cannot bind %s",
			r->slot);
		done(arg, &err, NULL, 0);
		return;
	}
	binder_bind(env->binder, &(struct ids) { &slot, 1 }, *r->ns && *r->pod ? &pod : NULL, timeout_ms,
		    done, arg);
}

static const char *rdma_of(void *ctx, const char *vf)
{
	const struct plugin_env *env = ctx;
	const struct ledger_hold *hold = env->keeper ? ledger_find(keeper_ledger(env->keeper), vf) : NULL;

	return hold ? hold->rdma : NULL;
}

/* As sysfs has it now: a VF that is in a pod's network namespace keeps this link. */
static const char *pf_of(void *ctx, const char *vf, struct arena *a)
{
	const struct plugin_env *env = ctx;
	char name[BDF_STRLEN];
	struct bdf pf;

	if (sysroot_link_name(env->root, name, sizeof(name), "sys/bus/pci/devices/%s/physfn", vf) < 0 ||
	    bdf_parse(name, &pf) < 0)
		return NULL;
	return arena_strdup(a, bdf_format(pf, name));
}

static int tell_ledger(void *ctx, struct strbuf *out, struct err *err)
{
	const struct plugin_env *env = ctx;

	if (!env->keeper)
		return err_set(err, ENOSYS, "this railmated keeps no ledger");
	ledger_write(keeper_ledger(env->keeper), out);
	return 0;
}

struct control_backend control_backend_of(const struct plugin_env *env)
{
	return (struct control_backend) { (void *)env, bind_slot, rdma_of, pf_of, tell_ledger };
}
