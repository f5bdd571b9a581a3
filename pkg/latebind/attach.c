/* A network names a VF by its PCI address: may the pod have it? Who holds it is the answer of
 * holds, to whom the kubelet gave it is that of its checkpoint and of PodResources. */
#include "latebind/latebind-internal.h"

#include <errno.h>

#include "base/arena.h"
#include "base/list.h"
#include "base/str.h"
#include "config/config.h"
#include "pool/node.h"
#include "tracker/tracker.h"

bool latebind_names_vf(const struct request *r)
{
	struct bdf bdf;

	return r->pod.name && r->slots.n == 1 && bdf_parse(r->slots.v[0], &bdf) == 0;
}

static bool shows(const struct pod_list *pods, const struct pod_ref *pod, const char *resource,
		  const char *id)
{
	for (size_t i = 0; i < pods->n; i++) {
		const struct pod *p = &pods->v[i];

		for (size_t c = 0;
		     str_eq(p->ns, pod->ns) && str_eq(p->name, pod->name) && c < p->n_containers;
		     c++) {
			for (size_t k = 0; k < p->containers[c].n_held; k++) {
				const struct held *held = &p->containers[c].held[k];

				if (str_eq(held->resource, resource) &&
				    list_has(held->ids.v, held->ids.n, id))
					return true;
			}
		}
	}
	return false;
}

/* Has the kubelet given it to this pod? PodResources, which knows no UIDs, shows no init container.
 */
static bool is_given(const struct request *r, const struct pod_list *pods, const char *resource,
		     const char *id)
{
	const struct holds_entry *v;
	size_t n = tracker_checkpoint(r->b->env.tracker, &v);
	const char *uid = holds_checkpoint_uid(v, n, resource, &id, 1);

	if (*uid && *r->pod.uid)
		return str_eq(uid, r->pod.uid);
	return shows(pods, &r->pod, resource, id);
}

/* NULL: of none. */
static const struct pool *pool_with(const struct node *node, const char *vf)
{
	for (size_t i = 0; i < node->n_pools; i++) {
		if (pool_find(&node->pools[i], vf))
			return &node->pools[i];
	}
	return NULL;
}

int latebind_decide_vf(struct request *r, const struct pod_list *pods, struct err *err)
{
	const struct ledger_owner asks = { r->pod.ns, r->pod.name, r->pod.uid, NULL };
	const struct node *node = r->b->node;
	char vf[BDF_STRLEN];
	const struct ledger_hold *hold;
	const struct pool *pool;
	const char *resource;
	struct bdf bdf;
	bool given;
	int pci;

	bdf_parse(r->slots.v[0], &bdf);
	bdf_format(bdf, vf);
	hold = ledger_find(tracker_ledger(r->b->env.tracker), vf);
	pool = pool_with(node, vf);
	resource = hold ? hold->resource : pool ? pool->cfg->resource : NULL;
	pci = hw_find_pci(node->inv, bdf);
	if (pci >= 0 && hw_is_pf(&node->inv->pci[pci]))
		return err_set(
			err, EPERM,
			"%s is a PF, which serves the whole node: railmate-cni attaches VFs only",
			vf);
	if (!resource)
		return err_set(
			err, EPERM,
			"%s is in no pool of railmate, which gave it to no pod: its network has to name the plugin itself, without railmate-cni",
			vf);
	given = is_given(r, pods, resource, hold && hold->slot ? hold->slot : vf);
	switch (holds_whose(latebind_holds(r->b), vf, &asks)) {
	case HOLDS_OF_UNKNOWN:
	case HOLDS_OF_POD:
		if (!given)
			return err_set(err, EPERM, "the kubelet has not given VF %s to pod %s/%s",
				       vf, asks.ns, asks.pod);
		break;
	case HOLDS_OF_ANOTHER:
		return err_set(err, given ? EAGAIN : EPERM,
			       "VF %s is held by pod %s/%s, not by pod %s/%s", vf, hold->owner.ns,
			       hold->owner.pod, asks.ns, asks.pod);
	case HOLDS_OF_NOBODY:
		return err_set(err, given ? EAGAIN : EPERM,
			       "VF %s of %s is given to no container, also none of pod %s/%s", vf,
			       resource, asks.ns, asks.pod);
	}
	r->n_bound = 1;
	r->bound = arena_array(r->arena, 1, sizeof(*r->bound));
	*r->bound = (struct bound) { r->slots.v[0], arena_strdup(r->arena, resource),
				     arena_strdup(r->arena, vf) };
	return 0;
}
