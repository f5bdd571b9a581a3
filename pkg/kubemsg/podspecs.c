/* The Pods API: pods as protobuf. */
#include <errno.h>
#include <string.h>

#include "base/err.h"
#include "corepod.pb-c.h"
#include "kubemsg/messages-internal.h"
#include "podsapi.pb-c.h"

/* Of a pod, without all that is not read. */
#define POD_BYTES_MAX 32768

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

static int too_many(const char *what, struct err *err)
{
	return err_set(err, EFBIG, "it has more %s than are read of one pod", what);
}

static int limits_from(const Corepod__Pod *from, const Corepod__ResourceRequirements *m,
		       struct spec_container *c, size_t *parts, struct arena *a, struct err *err)
{
	struct spec_limit *v = arena_array(a, m->n_limits, sizeof(*v));
	size_t n = 0;

	for (size_t i = 0; i < m->n_limits; i++) {
		const Corepod__ResourceRequirements__LimitsEntry *e = m->limits[i];
		int64_t count;

		if (!kubemsg_podspec_is_extended(e->key))
			continue;
		if (kubemsg_podspec_count(e->value ? e->value->string : "", &count) < 0)
			return err_set(err, EBADMSG,
				       "container %s: the limit of %s is not a whole number",
				       c->name, e->key);
		if (!count)
			continue;
		if (++*parts > SPEC_PARTS_MAX)
			return too_many("limits and claims", err);
		if (!is_by_dra(from, c->name, e->key))
			v[n++] = (struct spec_limit) { e->key, count };
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

static struct spec_claim spec_claim_of(const char *claim, const char *request)
{
	return (struct spec_claim) { claim, *request ? request : NULL };
}

static int claims_from(const Corepod__Pod *pod, const Corepod__Container *m,
		       struct spec_container *c, size_t *parts, struct arena *a, struct err *err)
{
	const Corepod__PodExtendedResourceClaimStatus *extended =
		pod->status ? pod->status->extended_resource_claim_status : NULL;
	size_t n_claims = m->resources ? m->resources->n_claims : 0;
	struct spec_claim *v;

	if (n_claims > SPEC_PARTS_MAX || (*parts += n_claims) > SPEC_PARTS_MAX)
		return too_many("limits and claims", err);
	v = arena_array(a, n_claims + (extended ? extended->n_request_mappings : 0), sizeof(*v));
	c->claims = v;
	for (size_t i = 0; i < n_claims; i++) {
		const Corepod__ResourceClaim *part = m->resources->claims[i];
		const char *claim = claim_of(pod, part->name);

		if (claim)
			v[c->n_claims++] = spec_claim_of(claim, part->request);
	}
	for (size_t i = 0; extended && i < extended->n_request_mappings; i++) {
		const Corepod__ContainerExtendedResourceRequest *r = extended->request_mappings[i];

		if (!strcmp(r->container_name, m->name))
			v[c->n_claims++] =
				spec_claim_of(extended->resource_claim_name, r->request_name);
	}
	return 0;
}

static int container_from(const Corepod__Pod *pod, const Corepod__Container *m, bool init,
			  struct spec_container *c, size_t *parts, struct arena *a, struct err *err)
{
	int r;

	if (!*m->name)
		return err_set(err, EBADMSG, "a container has no name");
	c->name = m->name;
	c->kind = kubemsg_podspec_kind(init, m->restart_policy);
	r = claims_from(pod, m, c, parts, a, err);
	return r < 0 || !m->resources ? r : limits_from(pod, m->resources, c, parts, a, err);
}

/* Names are searched one by one. */
static int check_claims(const Corepod__Pod *pod, struct err *err)
{
	const Corepod__PodStatus *status = pod->status;

	if (pod->spec->n_resource_claims > SPEC_CLAIMS_MAX ||
	    (status &&
	     (status->n_resource_claim_statuses > SPEC_CLAIMS_MAX ||
	      (status->extended_resource_claim_status &&
	       status->extended_resource_claim_status->n_request_mappings > SPEC_CLAIMS_MAX))))
		return too_many("ResourceClaims", err);
	return 0;
}

static int containers_from(struct bytes in, struct spec_pod *p, struct arena *a, struct err *err)
{
	const Corepod__Pod *pod =
		kubemsg_unpack_known(&corepod__pod__descriptor, in, POD_BYTES_MAX, a, err);
	const Corepod__PodSpec *m = pod ? pod->spec : NULL;
	size_t n_init = m ? m->n_init_containers : 0, n = m ? n_init + m->n_containers : 0;
	struct spec_container *v;
	size_t parts = 0;
	int r = 0;

	if (!m)
		return pod ? err_set(err, EBADMSG, "it has no spec") : -EBADMSG;
	if (n > SPEC_PARTS_MAX)
		return too_many("containers", err);
	v = arena_array(a, n, sizeof(*v));
	r = check_claims(pod, err);
	for (size_t i = 0; i < n && r == 0; i++)
		r = container_from(pod,
				   i < n_init ? m->init_containers[i] : m->containers[i - n_init],
				   i < n_init, &v[i], &parts, a, err);
	if (r < 0)
		return r;
	p->containers = v;
	p->n_containers = n;
	return 0;
}

static int add_pod(struct spec_pods *pods, struct bytes in, struct err *err)
{
	_cleanup_arena_ struct arena *scratch = arena_new(16384);
	const Corepod__NamedPod *m = kubemsg_unpack_known(&corepod__named_pod__descriptor, in,
							  POD_BYTES_MAX, scratch, err);
	struct spec_pod p = { 0 };
	struct err why = { 0 };

	if (!m)
		return -EBADMSG;
	if (!m->metadata || !*m->metadata->name || !*m->metadata->namespace_)
		return err_set(err, EBADMSG, "a pod has no name");
	if (m->status && kubemsg_podspec_is_over(m->status->phase))
		return 0;
	p.ns = m->metadata->namespace_;
	p.name = m->metadata->name;
	p.uid = m->metadata->uid;
	p.deleted = m->metadata->deletion_timestamp != NULL;
	p.created = m->metadata->creation_timestamp ? m->metadata->creation_timestamp->seconds : 0;
	if (containers_from(in, &p, scratch, &why) < 0)
		p.unread = why.msg;
	return kubemsg_podspec_add(pods, &p, err);
}

/* ListPodsResponse: field 1 is a pod. The answer is all pods of the node, so it is not copied. */
static int pod_specs_read(struct bytes in, void *ret, struct arena *a, struct err *err)
{
	struct spec_pods pods = { .arena = a };
	struct bytes pod;
	int r = 0;

	while (r == 0 && kubemsg_next(&in, 1, &pod))
		r = add_pod(&pods, pod, err);
	if (r == 0 && in.len)
		r = err_set(err, EBADMSG,
			    "the list of pods ends in the middle of one or is not protobuf");
	if (r == 0)
		*(struct spec_list *)ret =
			(struct spec_list) { arena_copy(a, pods.v, pods.n * sizeof(*pods.v)),
					     pods.n };
	kubemsg_podspec_done(&pods);
	return r;
}

const struct kubemsg_type kubemsg_pod_specs = { .desc = &v1alpha1__list_pods_response__descriptor,
						.read = pod_specs_read };
