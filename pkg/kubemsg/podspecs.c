/* The Pods API: pods as protobuf. */
#include <errno.h>
#include <string.h>

#include "base/err.h"
#include "corepod.pb-c.h"
#include "kubemsg/messages-internal.h"
#include "podsapi.pb-c.h"

/* The scheduler has made a claim of the container's limit: no device plugin is asked for it. */
static bool is_by_dra(const Corepod__Pod *pod, const char *container, const char *resource)
{
	const Corepod__PodExtendedResourceClaimStatus *extended =
		pod->status ? pod->status->extended_resource_claim_status : NULL;

	for (size_t i = 0; extended && i < extended->n_request_mappings; i++) {
		const Corepod__ContainerExtendedResourceRequest *r = extended->request_mappings[i];

		if (!strcmp(r->container_name, container) && !strcmp(r->resource_name, resource))
			return true;
	}
	return false;
}

static int limits_from(const Corepod__Pod *from, const Corepod__ResourceRequirements *m,
		       struct spec_container *c, const char *pod, struct arena *a, struct err *err)
{
	struct spec_limit *v = arena_array(a, m->n_limits, sizeof(*v));
	size_t n = 0;

	for (size_t i = 0; i < m->n_limits; i++) {
		const Corepod__ResourceRequirements__LimitsEntry *e = m->limits[i];
		const char *quantity = e->value ? e->value->string : "";

		if (!kubemsg_podspec_is_extended(e->key) || is_by_dra(from, c->name, e->key))
			continue;
		if (kubemsg_podspec_count(quantity, &v[n].count) < 0)
			return err_set(
				err, EBADMSG,
				"%s, container %s: the limit of %s is '%s', not a whole number",
				pod, c->name, e->key, quantity);
		v[n].resource = arena_strdup(a, e->key);
		n += v[n].count > 0;
	}
	c->limits = v;
	c->n_limits = n;
	return 0;
}

/* The ResourceClaim behind a name of the pod's own: made of a template, the status names it. NULL:
 * none. */
static const char *claim_of(const Corepod__Pod *pod, const char *name)
{
	for (size_t i = 0; i < pod->spec->n_resource_claims; i++) {
		const Corepod__PodResourceClaim *c = pod->spec->resource_claims[i];

		if (!strcmp(c->name, name) && *c->resource_claim_name)
			return c->resource_claim_name;
	}
	for (size_t i = 0; pod->status && i < pod->status->n_resource_claim_statuses; i++) {
		const Corepod__PodResourceClaimStatus *c = pod->status->resource_claim_statuses[i];

		if (!strcmp(c->name, name) && *c->resource_claim_name)
			return c->resource_claim_name;
	}
	return NULL;
}

static struct spec_claim spec_claim_of(const char *claim, const char *request, struct arena *a)
{
	return (struct spec_claim) { arena_strdup(a, claim),
				     *request ? arena_strdup(a, request) : NULL };
}

static void claims_from(const Corepod__Pod *pod, const Corepod__Container *m,
			struct spec_container *c, struct arena *a)
{
	const Corepod__PodExtendedResourceClaimStatus *extended =
		pod->status ? pod->status->extended_resource_claim_status : NULL;
	size_t n_claims = m->resources ? m->resources->n_claims : 0;
	struct spec_claim *v = arena_array(
		a, n_claims + (extended ? extended->n_request_mappings : 0), sizeof(*v));

	c->claims = v;
	for (size_t i = 0; i < n_claims; i++) {
		const Corepod__ResourceClaim *part = m->resources->claims[i];
		const char *claim = claim_of(pod, part->name);

		if (claim)
			v[c->n_claims++] = spec_claim_of(claim, part->request, a);
	}
	for (size_t i = 0; extended && i < extended->n_request_mappings; i++) {
		const Corepod__ContainerExtendedResourceRequest *r = extended->request_mappings[i];

		if (!strcmp(r->container_name, m->name))
			v[c->n_claims++] =
				spec_claim_of(extended->resource_claim_name, r->request_name, a);
	}
}

static int container_from(const Corepod__Pod *pod, const Corepod__Container *m, bool init,
			  struct spec_container *c, const char *name, struct arena *a,
			  struct err *err)
{
	if (!*m->name)
		return err_set(err, EBADMSG, "%s: a container has no name", name);
	c->name = arena_strdup(a, m->name);
	c->kind = kubemsg_podspec_kind(init, m->restart_policy);
	claims_from(pod, m, c, a);
	return m->resources ? limits_from(pod, m->resources, c, name, a, err) : 0;
}

static int containers_from(const Corepod__Pod *pod, struct spec_pod *p, const char *name,
			   struct arena *a, struct err *err)
{
	const Corepod__PodSpec *m = pod->spec;
	size_t n_init = m->n_init_containers, n = n_init + m->n_containers;
	struct spec_container *v = arena_array(a, n, sizeof(*v));

	for (size_t i = 0; i < n; i++) {
		bool init = i < n_init;
		const Corepod__Container *c =
			init ? m->init_containers[i] : m->containers[i - n_init];
		int r = container_from(pod, c, init, &v[i], name, a, err);

		if (r < 0)
			return r;
	}
	p->containers = v;
	p->n_containers = n;
	return 0;
}

static int pod_from(struct bytes in, struct spec_pod *p, struct arena *a, struct err *err)
{
	_cleanup_arena_ struct arena *scratch = arena_new(16384);
	Corepod__Pod *m = kubemsg_unpack(&corepod__pod__descriptor, in, scratch, err);
	const char *name;

	if (!m)
		return -EBADMSG;
	if (!m->metadata || !*m->metadata->name || !*m->metadata->namespace_ || !m->spec)
		return err_set(err, EBADMSG, "a pod has no name or no spec");
	p->ns = arena_strdup(a, m->metadata->namespace_);
	p->name = arena_strdup(a, m->metadata->name);
	p->uid = arena_strdup(a, m->metadata->uid);
	p->over = m->status && kubemsg_podspec_is_over(m->status->phase);
	p->deleted = m->metadata->deletion_timestamp != NULL;
	p->created = m->metadata->creation_timestamp ? m->metadata->creation_timestamp->seconds : 0;
	name = arena_printf(scratch, "pod %s/%s", p->ns, p->name);
	return containers_from(m, p, name, a, err);
}

static int pod_specs_from(const void *message, void *ret, struct arena *a, struct err *err)
{
	const V1alpha1__ListPodsResponse *m = message;
	struct spec_pod *v = arena_array(a, m->n_pods, sizeof(*v));

	for (size_t i = 0; i < m->n_pods; i++) {
		int r = pod_from((struct bytes) { m->pods[i].data, m->pods[i].len }, &v[i], a, err);

		if (r < 0)
			return r;
	}
	*(struct spec_list *)ret = (struct spec_list) { v, m->n_pods };
	return 0;
}

const struct kubemsg_type kubemsg_pod_specs = { .desc = &v1alpha1__list_pods_response__descriptor,
						.is_copied = true,
						.from = pod_specs_from };
