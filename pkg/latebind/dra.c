/*
 * Whose are the GPUs of a claim that containers share? The kubelet shows each of them all: the
 * pod's spec says which requests a container has, the claim which devices these were given. Pure
 * but for its result in the request.
 */
#include "latebind/latebind-internal.h"

#include <errno.h>
#include <string.h>

#include "base/arena.h"
#include "base/str.h"
#include "hw/inventory.h"
#include "kubemsg/podspec.h"
#include "pods/gpus.h"
#include "pods/identify.h"
#include "pool/node.h"
#include "tracker/tracker.h"

/* Was it given for a request of the container? "gpus/large" is of the request "gpus". */
static bool is_given(const struct known_claim *known, const struct spec_container *c,
		     const struct dynamic *d)
{
	for (size_t i = 0; i < known->devices.n; i++) {
		const struct draclaim_device *given = &known->devices.v[i];

		if (!str_eq(given->driver, d->driver) || !str_eq(given->pool, d->pool) ||
		    !str_eq(given->device, d->device))
			continue;
		for (size_t k = 0; k < c->n_claims; k++) {
			const char *request = c->claims[k].request;
			size_t n = request ? strcspn(request, "/") : 0;

			if (str_eq(c->claims[k].claim, d->claim) &&
			    (!request || (strcspn(given->request, "/") == n &&
					  !strncmp(request, given->request, n))))
				return true;
		}
	}
	return false;
}

/* A container that starts again: for which GPUs its VFs were chosen; NULL: not known. */
static const struct ledger_decision *decided_before(const struct request *r,
						    const struct candidate *who)
{
	const struct ledger_hold *hold = latebind_live_hold(r->b, r->slots.v[0]);
	const struct ledger_decision *d =
		hold ? ledger_decision(tracker_ledger(r->b->env.tracker), hold->decision) : NULL;

	if (holds_slot(latebind_holds(r->b), r->slots.v[0]).promised || !d ||
	    d->known != LEDGER_GPUS_KNOWN || !str_eq(d->owner.ns, who->pod->ns) ||
	    !str_eq(d->owner.pod, who->pod->name) ||
	    !str_eq(d->owner.container, who->container->name))
		return NULL;
	return d;
}

static bool was_its_own(const struct request *r, const struct ledger_decision *d,
			const struct dynamic *dev)
{
	struct dynamic one = *dev;
	const struct pod_container alone = { .dynamic = &one, .n_dynamic = 1 };
	char bdf[BDF_STRLEN];
	struct pods_gpus gpu = pods_gpus(r->b->node, &alone, "", r->arena);

	if (!gpu.n)
		return false;
	bdf_format(r->b->node->inv->pci[gpu.v[0]].bdf, bdf);
	for (size_t i = 0; i < d->n_gpus; i++) {
		if (str_eq(d->gpus[i], bdf))
			return true;
	}
	return false;
}

/* How the container's own devices of a claim are found. */
struct sieve {
	const struct ledger_decision *before; /* NULL: not decided before */
	const struct known_claim *known;
	const struct spec_container *spec;
};

static void sift(const struct request *r, const struct sieve *s, const char *claim,
		 struct pod_container *c)
{
	size_t n = 0;

	for (size_t i = 0; i < c->n_dynamic; i++) {
		const struct dynamic *d = &c->dynamic[i];

		if (!str_eq(d->claim, claim) ||
		    (s->before ? was_its_own(r, s->before, d) : is_given(s->known, s->spec, d)))
			c->dynamic[n++] = *d;
	}
	c->n_dynamic = n;
}

static const char *unknown_part(struct request *r, const char *claim, const char *why)
{
	return arena_printf(r->arena, "which GPUs of its claim %.253s it has is not known: %s",
			    claim, why);
}

/* 0: done, or it cannot be decided and ret_doubt has the reason; -EINPROGRESS: r has the question
 * to be asked first. */
static int narrow(struct request *r, const struct candidate *who, const char *claim,
		  struct pod_container *c, const char **ret_doubt)
{
	bool shared =
		pods_claim_gpus(r->b->node, who->pod, who->container, claim) == PODS_CLAIM_SHARED;
	struct sieve s = { .before = decided_before(r, who) };
	bool has_all = false, others_have_part = false;
	const struct spec_pod *pod;

	if (s.before) {
		sift(r, &s, claim, c);
		return 0;
	}
	if (r->b->env.specs && !r->knows_specs)
		return -EINPROGRESS;
	pod = kubemsg_podspec_find(&r->specs, who->pod->ns, who->pod->name);
	for (size_t i = 0; pod && i < pod->n_containers; i++) {
		const struct spec_container *one = &pod->containers[i];
		bool me = str_eq(one->name, who->container->name);

		s.spec = me ? one : s.spec;
		/* Of init containers, too: no list of the kubelet's shows the devices of these. */
		for (size_t k = 0; k < one->n_claims; k++) {
			bool part = str_eq(one->claims[k].claim, claim);

			has_all |= me && part && !one->claims[k].request;
			others_have_part |= !me && part;
		}
	}
	if (!s.spec && shared)
		*ret_doubt = unknown_part(r, claim,
					  r->specs_why ? r->specs_why : "the pod specs do not say");
	if (!s.spec || has_all || (!shared && !others_have_part))
		return 0;
	for (size_t i = 0; i < r->n_claims; i++) {
		if (str_eq(r->claims[i].name, claim))
			s.known = &r->claims[i];
	}
	if (!s.known && r->b->env.claims) {
		r->wanted_ns = arena_strdup(r->arena, who->pod->ns);
		r->wanted_claim = arena_strdup(r->arena, claim);
		return -EINPROGRESS;
	}
	if (!s.known || s.known->why)
		*ret_doubt = unknown_part(r, claim,
					  s.known ? s.known->why : "there is no API server to ask");
	else
		sift(r, &s, claim, c);
	return 0;
}

int latebind_narrow(struct request *r, const struct candidate *who, struct pod_container *ret,
		    const char **ret_doubt)
{
	const struct pod_container *all = who->container;

	*ret = *all;
	*ret_doubt = NULL;
	ret->dynamic = arena_copy(r->arena, all->dynamic, all->n_dynamic * sizeof(*all->dynamic));
	for (size_t i = 0; i < all->n_dynamic; i++) {
		const char *claim = all->dynamic[i].claim;

		if ((i && str_eq(all->dynamic[i - 1].claim, claim)) ||
		    pods_claim_gpus(r->b->node, who->pod, all, claim) == PODS_CLAIM_ONE)
			continue;
		if (narrow(r, who, claim, ret, ret_doubt) < 0)
			return -EINPROGRESS;
	}
	return 0;
}

void latebind_know_claim(struct request *r, const struct draclaim *claim, const char *why)
{
	struct known_claim *all = arena_array(r->arena, r->n_claims + 1, sizeof(*all)),
			   *now = &all[r->n_claims];
	size_t n = claim ? claim->n : 0;
	struct draclaim_device *v = arena_array(r->arena, n, sizeof(*v));

	if (r->n_claims)
		memcpy(all, r->claims, r->n_claims * sizeof(*all));
	for (size_t i = 0; i < n; i++)
		v[i] = (struct draclaim_device) { arena_strdup(r->arena, claim->v[i].request),
						  arena_strdup(r->arena, claim->v[i].driver),
						  arena_strdup(r->arena, claim->v[i].pool),
						  arena_strdup(r->arena, claim->v[i].device) };
	*now = (struct known_claim) { r->wanted_claim,
				      { v, n },
				      claim ? NULL : arena_strdup(r->arena, why) };
	r->claims = all;
	r->n_claims++;
	r->wanted_claim = NULL;
}
