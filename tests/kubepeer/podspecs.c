/* The kubelet's Pods API. */
#include "kubepeer/kubepeer.h"

#include <inttypes.h>

#include "corepod.pb-c.h"
#include "kubemsg/messages-internal.h"
#include "podsapi.pb-c.h"

static Corepod__Container *container_to(const struct spec_container *c, struct arena *a)
{
	Corepod__Container *m = kubemsg_new(&corepod__container__descriptor, a);
	Corepod__ResourceRequirements *r =
		kubemsg_new(&corepod__resource_requirements__descriptor, a);

	m->name = (char *)c->name;
	m->restart_policy = (char *)(c->kind == SPEC_SIDECAR ? "Always" : "");
	m->resources = r;
	r->n_limits = c->n_limits;
	r->limits = kubemsg_array(&corepod__resource_requirements__limits_entry__descriptor,
				  c->n_limits, a);
	for (size_t i = 0; i < c->n_limits; i++) {
		r->limits[i]->key = (char *)c->limits[i].resource;
		r->limits[i]->value = kubemsg_new(&corepod__quantity__descriptor, a);
		r->limits[i]->value->string = arena_printf(a, "%" PRId64, c->limits[i].count);
	}
	r->n_claims = c->n_claims;
	r->claims = kubemsg_array(&corepod__resource_claim__descriptor, c->n_claims, a);
	for (size_t i = 0; i < c->n_claims; i++) {
		r->claims[i]->name = (char *)c->claims[i].claim;
		r->claims[i]->request = (char *)(c->claims[i].request ? c->claims[i].request : "");
	}
	return m;
}

/* As if each claim had its own name in the pod, too. */
static void pod_claims_to(const struct spec_container *c, Corepod__PodSpec *m, struct arena *a)
{
	for (size_t i = 0; i < c->n_claims; i++) {
		Corepod__PodResourceClaim *claim =
			kubemsg_new(&corepod__pod_resource_claim__descriptor, a);

		claim->name = claim->resource_claim_name = (char *)c->claims[i].claim;
		m->resource_claims[m->n_resource_claims++] = claim;
	}
}

static Corepod__PodSpec *spec_to(const struct spec_pod *p, struct arena *a)
{
	Corepod__PodSpec *m = kubemsg_new(&corepod__pod_spec__descriptor, a);
	size_t n_claims = 0;

	m->init_containers = arena_array(a, p->n_containers, sizeof(*m->init_containers));
	m->containers = arena_array(a, p->n_containers, sizeof(*m->containers));
	for (size_t i = 0; i < p->n_containers; i++)
		n_claims += p->containers[i].n_claims;
	m->resource_claims = arena_array(a, n_claims, sizeof(*m->resource_claims));
	for (size_t i = 0; i < p->n_containers; i++) {
		Corepod__Container *c = container_to(&p->containers[i], a);

		pod_claims_to(&p->containers[i], m, a);

		if (p->containers[i].kind == SPEC_APP)
			m->containers[m->n_containers++] = c;
		else
			m->init_containers[m->n_init_containers++] = c;
	}
	return m;
}

static Corepod__Time *time_to(int64_t seconds, struct arena *a)
{
	Corepod__Time *m = kubemsg_new(&corepod__time__descriptor, a);

	m->seconds = seconds;
	return m;
}

static struct bytes pod_to(const struct spec_pod *p, struct arena *a)
{
	Corepod__Pod m = COREPOD__POD__INIT;

	m.metadata = kubemsg_new(&corepod__object_meta__descriptor, a);
	m.metadata->name = (char *)p->name;
	m.metadata->namespace_ = (char *)p->ns;
	m.metadata->uid = (char *)p->uid;
	m.metadata->creation_timestamp = time_to(p->created, a);
	m.metadata->deletion_timestamp = p->deleted ? time_to(p->created, a) : NULL;
	m.spec = spec_to(p, a);
	m.status = kubemsg_new(&corepod__pod_status__descriptor, a);
	m.status->phase = (char *)"Pending";
	return kubemsg_pack(&m, a);
}

struct bytes peer_encode_pod_specs(const struct spec_list *list, struct arena *a)
{
	V1alpha1__ListPodsResponse m = V1ALPHA1__LIST_PODS_RESPONSE__INIT;

	m.n_pods = list->n;
	m.pods = arena_array(a, list->n, sizeof(*m.pods));
	for (size_t i = 0; i < list->n; i++) {
		struct bytes pod = pod_to(&list->v[i], a);

		m.pods[i] = (ProtobufCBinaryData) { pod.len, (uint8_t *)pod.data };
	}
	return kubemsg_pack(&m, a);
}
