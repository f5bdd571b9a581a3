/* PodResources: who holds what. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "base/str.h"
#include "kubemsg/messages-internal.h"
#include "podresources.pb-c.h"

static int by_resource(const void *x, const void *y)
{
	const V1__ContainerDevices *const *a = x, *const *b = y;

	return strcmp((*a)->resource_name, (*b)->resource_name);
}

/* Entries first … end of one resource → one list of ids. */
static struct held merge(V1__ContainerDevices **v, size_t first, size_t end, struct arena *a)
{
	struct held h = { .resource = v[first]->resource_name };
	size_t total = 0;

	for (size_t i = first; i < end; i++)
		total += v[i]->n_device_ids;
	h.ids.v = arena_array(a, total, sizeof(*h.ids.v));
	for (size_t i = first; i < end; i++) {
		for (size_t k = 0; k < v[i]->n_device_ids; k++)
			h.ids.v[h.ids.n++] = v[i]->device_ids[k];
	}
	return h;
}

static void held_from(V1__ContainerDevices **v, size_t n, struct pod_container *c, struct arena *a)
{
	c->held = arena_array(a, n, sizeof(*c->held));
	if (n)
		qsort(v, n, sizeof(*v), by_resource);
	for (size_t i = 0, end; i < n; i = end) {
		for (end = i + 1; end < n && !strcmp(v[i]->resource_name, v[end]->resource_name);)
			end++;
		c->held[c->n_held++] = merge(v, i, end, a);
	}
}

static struct dynamic dynamic_of(const V1__ClaimResource *m, const char *claim, struct arena *a)
{
	struct dynamic d = { .driver = m->driver_name,
			     .pool = m->pool_name,
			     .device = m->device_name,
			     .claim = claim };

	d.cdi.v = arena_array(a, m->n_cdi_devices, sizeof(*d.cdi.v));
	for (size_t i = 0; i < m->n_cdi_devices; i++)
		d.cdi.v[d.cdi.n++] = m->cdi_devices[i]->name;
	return d;
}

static bool begins_with(const struct ids *ids, const struct ids *start)
{
	for (size_t i = 0; i < start->n; i++) {
		if (i >= ids->n || strcmp(ids->v[i], start->v[i]) != 0)
			return false;
	}
	return true;
}

/* Kubelets to 1.36 repeat with each device of a driver the CDI names of those before it. */
static void keep_own_names(struct dynamic *claim, size_t n)
{
	for (size_t i = n; i-- > 0;) {
		struct ids *own = &claim[i].cdi;
		size_t before = i;

		while (before && strcmp(claim[before - 1].driver, claim[i].driver) != 0)
			before--;
		if (!before || own->n <= claim[before - 1].cdi.n ||
		    !begins_with(own, &claim[before - 1].cdi))
			continue;
		own->v += claim[before - 1].cdi.n;
		own->n -= claim[before - 1].cdi.n;
	}
}

static void dynamic_from(V1__DynamicResource **v, size_t n, struct pod_container *c,
			 struct arena *a)
{
	size_t total = 0;

	for (size_t i = 0; i < n; i++)
		total += v[i]->n_claim_resources;
	c->dynamic = arena_array(a, total, sizeof(*c->dynamic));
	for (size_t i = 0; i < n; i++) {
		struct dynamic *claim = c->dynamic + c->n_dynamic;

		for (size_t k = 0; k < v[i]->n_claim_resources; k++)
			claim[k] = dynamic_of(v[i]->claim_resources[k], v[i]->claim_name, a);
		keep_own_names(claim, v[i]->n_claim_resources);
		c->n_dynamic += v[i]->n_claim_resources;
	}
}

static struct pod pod_from(const V1__PodResources *m, struct arena *a)
{
	struct pod p = { m->namespace_, m->name,
			 arena_array(a, m->n_containers, sizeof(*p.containers)), m->n_containers };

	for (size_t i = 0; i < m->n_containers; i++) {
		p.containers[i].name = m->containers[i]->name;
		held_from(m->containers[i]->devices, m->containers[i]->n_devices, &p.containers[i],
			  a);
		dynamic_from(m->containers[i]->dynamic_resources,
			     m->containers[i]->n_dynamic_resources, &p.containers[i], a);
	}
	return p;
}

int kubemsg_decode_pod_list(struct bytes in, struct arena *a, struct pod_list *ret, struct err *err)
{
	V1__ListPodResourcesResponse *m =
		kubemsg_unpack(&v1__list_pod_resources_response__descriptor, in, a, err);
	struct pod *v;

	if (!m)
		return -EBADMSG;
	v = arena_array(a, m->n_pod_resources, sizeof(*v));
	for (size_t i = 0; i < m->n_pod_resources; i++)
		v[i] = pod_from(m->pod_resources[i], a);
	*ret = (struct pod_list) { v, m->n_pod_resources };
	return 0;
}

int kubemsg_decode_pod_get_request(struct bytes in, struct arena *a, const char **ns,
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

int kubemsg_decode_pod_get_reply(struct bytes in, struct arena *a, struct pod *ret, struct err *err)
{
	V1__GetPodResourcesResponse *m =
		kubemsg_unpack(&v1__get_pod_resources_response__descriptor, in, a, err);

	if (!m)
		return -EBADMSG;
	if (!m->pod_resources)
		return err_set(err, EBADMSG, "GetPodResourcesResponse: there is no pod in it");
	*ret = pod_from(m->pod_resources, a);
	return 0;
}

int kubemsg_decode_allocatable(struct bytes in, struct arena *a, struct pod_container *ret,
			       struct err *err)
{
	V1__AllocatableResourcesResponse *m =
		kubemsg_unpack(&v1__allocatable_resources_response__descriptor, in, a, err);

	if (!m)
		return -EBADMSG;
	*ret = (struct pod_container) { .name = "" };
	held_from(m->devices, m->n_devices, ret, a);
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

struct bytes kubemsg_encode_pod_list(const struct pod_list *list, bool one_entry_per_id,
				     struct arena *a)
{
	V1__ListPodResourcesResponse m = V1__LIST_POD_RESOURCES_RESPONSE__INIT;

	m.pod_resources = kubemsg_array(&v1__pod_resources__descriptor, list->n, a);
	m.n_pod_resources = list->n;
	for (size_t i = 0; i < list->n; i++)
		pod_to(&list->v[i], one_entry_per_id, m.pod_resources[i], a);
	return kubemsg_pack(&m, a);
}

struct bytes kubemsg_encode_pod_get_request(const char *ns, const char *name, struct arena *a)
{
	V1__GetPodResourcesRequest m = V1__GET_POD_RESOURCES_REQUEST__INIT;

	m.pod_namespace = (char *)ns;
	m.pod_name = (char *)name;
	return kubemsg_pack(&m, a);
}

struct bytes kubemsg_encode_pod_get_reply(const struct pod *p, bool one_entry_per_id,
					  struct arena *a)
{
	V1__GetPodResourcesResponse m = V1__GET_POD_RESOURCES_RESPONSE__INIT;

	m.pod_resources = kubemsg_new(&v1__pod_resources__descriptor, a);
	pod_to(p, one_entry_per_id, m.pod_resources, a);
	return kubemsg_pack(&m, a);
}

struct bytes kubemsg_encode_allocatable(const struct pod_container *c, bool one_entry_per_id,
					struct arena *a)
{
	V1__AllocatableResourcesResponse m = V1__ALLOCATABLE_RESOURCES_RESPONSE__INIT;

	m.devices = held_to(c, one_entry_per_id, &m.n_devices, a);
	return kubemsg_pack(&m, a);
}
