/* The kubelet's PodResources, and a runtime's CRI. */
#include "kubepeer/kubepeer.h"

#include <errno.h>

#include "base/str.h"
#include "cri.pb-c.h"
#include "kubemsg/messages-internal.h"
#include "podresources.pb-c.h"

int peer_decode_pod_get_request(struct bytes in, struct arena *a, const char **ns,
				const char **name, struct err *err)
{
	V1__GetPodResourcesRequest *m =
		kubemsg_unpack(&v1__get_pod_resources_request__descriptor, in, a, err);

	if (!m)
		return -EBADMSG;
	*ns = m->pod_namespace;
	*name = m->pod_name;
	return 0;
}

static size_t count_entries(const struct pod_container *c, bool one_entry_per_id)
{
	size_t n = 0;

	for (size_t i = 0; i < c->n_held; i++)
		n += one_entry_per_id ? c->held[i].ids.n : 1;
	return n;
}

static V1__ContainerDevices **held_to(const struct pod_container *c, bool one_entry_per_id,
				      size_t *ret_n, struct arena *a)
{
	size_t total = count_entries(c, one_entry_per_id), n = 0;
	V1__ContainerDevices **v = kubemsg_array(&v1__container_devices__descriptor, total, a);

	for (size_t i = 0; i < c->n_held; i++) {
		const struct held *h = &c->held[i];
		size_t step = one_entry_per_id ? 1 : h->ids.n;

		for (size_t k = 0; k < (one_entry_per_id ? h->ids.n : 1); k++, n++) {
			v[n]->resource_name = (char *)h->resource;
			v[n]->device_ids = (char **)h->ids.v + k;
			v[n]->n_device_ids = step;
		}
	}
	*ret_n = total;
	return v;
}

static void dynamic_to(const struct dynamic *d, V1__ClaimResource *m, struct arena *a)
{
	m->driver_name = (char *)d->driver;
	m->pool_name = (char *)d->pool;
	m->device_name = (char *)d->device;
	m->cdi_devices = kubemsg_array(&v1__cdidevice__descriptor, d->cdi.n, a);
	m->n_cdi_devices = d->cdi.n;
	for (size_t i = 0; i < d->cdi.n; i++)
		m->cdi_devices[i]->name = (char *)d->cdi.v[i];
}

static bool same_claim(const struct dynamic *a, const struct dynamic *b)
{
	return str_eq(a->claim, b->claim);
}

/* Devices of one claim are adjacent. */
static void dynamics_to(const struct pod_container *c, const char *ns, V1__ContainerResources *m,
			struct arena *a)
{
	m->dynamic_resources = kubemsg_array(&v1__dynamic_resource__descriptor, c->n_dynamic, a);
	for (size_t i = 0, end; i < c->n_dynamic; i = end) {
		V1__DynamicResource *claim = m->dynamic_resources[m->n_dynamic_resources++];

		for (end = i + 1;
		     end < c->n_dynamic && same_claim(&c->dynamic[i], &c->dynamic[end]);)
			end++;
		claim->claim_name = (char *)(c->dynamic[i].claim ? c->dynamic[i].claim : "");
		claim->claim_namespace = (char *)ns;
		claim->claim_resources = kubemsg_array(&v1__claim_resource__descriptor, end - i, a);
		claim->n_claim_resources = end - i;
		for (size_t k = i; k < end; k++)
			dynamic_to(&c->dynamic[k], claim->claim_resources[k - i], a);
	}
}

static void pod_to(const struct pod *p, bool one_entry_per_id, V1__PodResources *m, struct arena *a)
{
	m->name = (char *)p->name;
	m->namespace_ = (char *)p->ns;
	m->containers = kubemsg_array(&v1__container_resources__descriptor, p->n_containers, a);
	m->n_containers = p->n_containers;
	for (size_t i = 0; i < p->n_containers; i++) {
		V1__ContainerResources *c = m->containers[i];

		c->name = (char *)p->containers[i].name;
		c->devices = held_to(&p->containers[i], one_entry_per_id, &c->n_devices, a);
		dynamics_to(&p->containers[i], p->ns, c, a);
	}
}

struct bytes peer_encode_pod_list(const struct pod_list *list, bool one_entry_per_id,
				  struct arena *a)
{
	V1__ListPodResourcesResponse m = V1__LIST_POD_RESOURCES_RESPONSE__INIT;

	m.pod_resources = kubemsg_array(&v1__pod_resources__descriptor, list->n, a);
	m.n_pod_resources = list->n;
	for (size_t i = 0; i < list->n; i++)
		pod_to(&list->v[i], one_entry_per_id, m.pod_resources[i], a);
	return kubemsg_pack(&m, a);
}

struct bytes peer_encode_pod_get_reply(const struct pod *p, bool one_entry_per_id, struct arena *a)
{
	V1__GetPodResourcesResponse m = V1__GET_POD_RESOURCES_RESPONSE__INIT;

	m.pod_resources = kubemsg_new(&v1__pod_resources__descriptor, a);
	pod_to(p, one_entry_per_id, m.pod_resources, a);
	return kubemsg_pack(&m, a);
}

struct bytes peer_encode_allocatable(const struct pod_container *c, bool one_entry_per_id,
				     struct arena *a)
{
	V1__AllocatableResourcesResponse m = V1__ALLOCATABLE_RESOURCES_RESPONSE__INIT;

	m.devices = held_to(c, one_entry_per_id, &m.n_devices, a);
	return kubemsg_pack(&m, a);
}

/* --- CRI --- */

#define CONFIG "config"
#define CNI    "cniconfig"

struct bytes peer_encode_runtime_version(const struct runtime_version *v, struct arena *a)
{
	Runtime__V1__VersionResponse m = RUNTIME__V1__VERSION_RESPONSE__INIT;

	m.runtime_name = (char *)v->name;
	m.runtime_version = (char *)v->version;
	return kubemsg_pack(&m, a);
}

static void add_info(Runtime__V1__StatusResponse *m, const char *key, const char *value)
{
	if (!value)
		return;
	m->info[m->n_info]->key = (char *)key;
	m->info[m->n_info++]->value = (char *)value;
}

struct bytes peer_encode_runtime_status(const struct runtime_status *s, struct arena *a)
{
	Runtime__V1__StatusResponse m = RUNTIME__V1__STATUS_RESPONSE__INIT;

	m.info = kubemsg_array(&runtime__v1__status_response__info_entry__descriptor, 2, a);
	add_info(&m, CONFIG, s->config);
	add_info(&m, CNI, s->cni);
	return kubemsg_pack(&m, a);
}
