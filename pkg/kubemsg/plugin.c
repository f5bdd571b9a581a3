/* The DevicePlugin service: device lists, preferred allocation, Allocate, PreStartContainer. */
#include "deviceplugin.pb-c.h"
#include "kubemsg/messages-internal.h"

#define HEALTHY	  "Healthy"
#define UNHEALTHY "Unhealthy"

static void device_to(const struct device *d, V1beta1__Device *m, struct arena *a)
{
	m->id = (char *)d->id;
	m->health = d->healthy ? (char *)HEALTHY : (char *)UNHEALTHY;
	if (!d->n_nodes)
		return;
	m->topology = kubemsg_new(&v1beta1__topology_info__descriptor, a);
	m->topology->nodes = kubemsg_array(&v1beta1__numanode__descriptor, d->n_nodes, a);
	m->topology->n_nodes = d->n_nodes;
	for (size_t i = 0; i < d->n_nodes; i++)
		m->topology->nodes[i]->id = d->nodes[i];
}

static void device_list_to(const void *from, void *message, struct arena *a)
{
	const struct device_list *list = from;
	V1beta1__ListAndWatchResponse *m = message;

	m->devices = kubemsg_array(&v1beta1__device__descriptor, list->n, a);
	m->n_devices = list->n;
	for (size_t i = 0; i < list->n; i++)
		device_to(&list->v[i], m->devices[i], a);
}

const struct kubemsg_type kubemsg_device_list = {
	.desc = &v1beta1__list_and_watch_response__descriptor, .to = device_list_to
};

static int preferred_from(const void *message, void *ret, struct arena *a, struct err *err)
{
	const V1beta1__PreferredAllocationRequest *m = message;
	struct preferred_container *v = arena_array(a, m->n_container_requests, sizeof(*v));

	(void)err;
	for (size_t i = 0; i < m->n_container_requests; i++) {
		const V1beta1__ContainerPreferredAllocationRequest *c = m->container_requests[i];

		v[i].available = (struct ids) { (const char **)c->available_deviceids,
						c->n_available_deviceids };
		v[i].must = (struct ids) { (const char **)c->must_include_deviceids,
					   c->n_must_include_deviceids };
		v[i].size = c->allocation_size;
	}
	*(struct preferred_request *)ret =
		(struct preferred_request) { v, m->n_container_requests };
	return 0;
}

static void preferred_to(const void *from, void *message, struct arena *a)
{
	const struct preferred_request *r = from;
	V1beta1__PreferredAllocationRequest *m = message;

	m->container_requests = kubemsg_array(
		&v1beta1__container_preferred_allocation_request__descriptor, r->n, a);
	m->n_container_requests = r->n;
	for (size_t i = 0; i < r->n; i++) {
		V1beta1__ContainerPreferredAllocationRequest *c = m->container_requests[i];

		c->available_deviceids = (char **)r->v[i].available.v;
		c->n_available_deviceids = r->v[i].available.n;
		c->must_include_deviceids = (char **)r->v[i].must.v;
		c->n_must_include_deviceids = r->v[i].must.n;
		c->allocation_size = r->v[i].size;
	}
}

/* An error would be the end of the pod: an id that is not text becomes an unknown one. */
const struct kubemsg_type kubemsg_preferred = {
	.desc = &v1beta1__preferred_allocation_request__descriptor,
	.is_small = true,
	.as_text = true,
	.from = preferred_from,
	.to = preferred_to
};

static int preferred_reply_from(const void *message, void *ret, struct arena *a, struct err *err)
{
	const V1beta1__PreferredAllocationResponse *m = message;
	struct ids *v = arena_array(a, m->n_container_responses, sizeof(*v));

	(void)err;
	for (size_t i = 0; i < m->n_container_responses; i++)
		v[i] = (struct ids) { (const char **)m->container_responses[i]->deviceids,
				      m->container_responses[i]->n_deviceids };
	*(struct id_lists *)ret = (struct id_lists) { v, m->n_container_responses };
	return 0;
}

static void preferred_reply_to(const void *from, void *message, struct arena *a)
{
	const struct id_lists *l = from;
	V1beta1__PreferredAllocationResponse *m = message;

	m->container_responses = kubemsg_array(
		&v1beta1__container_preferred_allocation_response__descriptor, l->n, a);
	m->n_container_responses = l->n;
	for (size_t i = 0; i < l->n; i++) {
		m->container_responses[i]->deviceids = (char **)l->v[i].v;
		m->container_responses[i]->n_deviceids = l->v[i].n;
	}
}

const struct kubemsg_type kubemsg_preferred_reply = {
	.desc = &v1beta1__preferred_allocation_response__descriptor,
	.is_small = true,
	.from = preferred_reply_from,
	.to = preferred_reply_to
};

static int allocate_from(const void *message, void *ret, struct arena *a, struct err *err)
{
	const V1beta1__AllocateRequest *m = message;
	struct ids *v = arena_array(a, m->n_container_requests, sizeof(*v));

	(void)err;
	for (size_t i = 0; i < m->n_container_requests; i++)
		v[i] = (struct ids) { (const char **)m->container_requests[i]->devices_ids,
				      m->container_requests[i]->n_devices_ids };
	*(struct id_lists *)ret = (struct id_lists) { v, m->n_container_requests };
	return 0;
}

const struct kubemsg_type kubemsg_allocate = { .desc = &v1beta1__allocate_request__descriptor,
					       .is_small = true,
					       .from = allocate_from };

static void edits_to(const struct edits *e, V1beta1__ContainerAllocateResponse *m, struct arena *a)
{
	m->envs = kubemsg_array(&v1beta1__container_allocate_response__envs_entry__descriptor,
				e->n_envs, a);
	m->n_envs = e->n_envs;
	for (size_t i = 0; i < e->n_envs; i++) {
		m->envs[i]->key = (char *)e->envs[i].key;
		m->envs[i]->value = (char *)e->envs[i].value;
	}
	m->devices = kubemsg_array(&v1beta1__device_spec__descriptor, e->n_devs, a);
	m->n_devices = e->n_devs;
	for (size_t i = 0; i < e->n_devs; i++) {
		m->devices[i]->host_path = (char *)e->devs[i].host;
		m->devices[i]->container_path = (char *)e->devs[i].container;
		m->devices[i]->permissions = (char *)e->devs[i].permissions;
	}
	m->mounts = kubemsg_array(&v1beta1__mount__descriptor, e->n_mounts, a);
	m->n_mounts = e->n_mounts;
	for (size_t i = 0; i < e->n_mounts; i++) {
		m->mounts[i]->host_path = (char *)e->mounts[i].host;
		m->mounts[i]->container_path = (char *)e->mounts[i].container;
		m->mounts[i]->read_only = e->mounts[i].read_only;
	}
	m->cdi_devices = kubemsg_array(&v1beta1__cdidevice__descriptor, e->n_cdi, a);
	m->n_cdi_devices = e->n_cdi;
	for (size_t i = 0; i < e->n_cdi; i++)
		m->cdi_devices[i]->name = (char *)e->cdi[i];
}

static void allocate_reply_to(const void *from, void *message, struct arena *a)
{
	const struct edits_list *list = from;
	V1beta1__AllocateResponse *m = message;

	m->container_responses =
		kubemsg_array(&v1beta1__container_allocate_response__descriptor, list->n, a);
	m->n_container_responses = list->n;
	for (size_t i = 0; i < list->n; i++)
		edits_to(&list->v[i], m->container_responses[i], a);
}

const struct kubemsg_type kubemsg_allocate_reply = {
	.desc = &v1beta1__allocate_response__descriptor, .to = allocate_reply_to
};

static int pre_start_from(const void *message, void *ret, struct arena *a, struct err *err)
{
	const V1beta1__PreStartContainerRequest *m = message;

	(void)a;
	(void)err;
	*(struct ids *)ret = (struct ids) { (const char **)m->devices_ids, m->n_devices_ids };
	return 0;
}

const struct kubemsg_type kubemsg_pre_start = {
	.desc = &v1beta1__pre_start_container_request__descriptor,
	.is_small = true,
	.from = pre_start_from
};
