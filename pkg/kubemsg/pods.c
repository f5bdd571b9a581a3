/* PodResources: containers and their devices. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
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
	struct held h = { .resource = arena_strdup(a, v[first]->resource_name) };
	size_t total = 0;

	for (size_t i = first; i < end; i++)
		total += v[i]->n_device_ids;
	h.ids.v = arena_array(a, total, sizeof(*h.ids.v));
	for (size_t i = first; i < end; i++) {
		for (size_t k = 0; k < v[i]->n_device_ids; k++)
			h.ids.v[h.ids.n++] = arena_strdup(a, v[i]->device_ids[k]);
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
	struct dynamic d = { .driver = arena_strdup(a, m->driver_name),
			     .pool = arena_strdup(a, m->pool_name),
			     .device = arena_strdup(a, m->device_name),
			     .claim = claim };

	d.cdi.v = arena_array(a, m->n_cdi_devices, sizeof(*d.cdi.v));
	for (size_t i = 0; i < m->n_cdi_devices; i++)
		d.cdi.v[d.cdi.n++] = arena_strdup(a, m->cdi_devices[i]->name);
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
		const char *name = arena_strdup(a, v[i]->claim_name);

		for (size_t k = 0; k < v[i]->n_claim_resources; k++)
			claim[k] = dynamic_of(v[i]->claim_resources[k], name, a);
		keep_own_names(claim, v[i]->n_claim_resources);
		c->n_dynamic += v[i]->n_claim_resources;
	}
}

/* Of a pod's containers that hold nothing so many stay: a thousand are any tenant's to create. */
#define IDLE_MAX 128

static bool is_idle(const V1__ContainerResources *m)
{
	return !m->n_devices && !m->n_dynamic_resources;
}

static size_t count_kept(const V1__PodResources *m)
{
	size_t n_idle = 0;

	for (size_t i = 0; i < m->n_containers; i++)
		n_idle += is_idle(m->containers[i]);
	return m->n_containers - (n_idle > IDLE_MAX ? n_idle - IDLE_MAX : 0);
}

static struct pod pod_from(const V1__PodResources *m, struct arena *a)
{
	struct pod p = { arena_strdup(a, m->namespace_), arena_strdup(a, m->name),
			 arena_array(a, count_kept(m), sizeof(*p.containers)), 0 };
	size_t n_idle = 0;

	for (size_t i = 0; i < m->n_containers; i++) {
		const V1__ContainerResources *from = m->containers[i];
		struct pod_container *c = &p.containers[p.n_containers];

		if (is_idle(from) && n_idle++ >= IDLE_MAX)
			continue;
		c->name = arena_strdup(a, from->name);
		held_from(from->devices, from->n_devices, c, a);
		dynamic_from(from->dynamic_resources, from->n_dynamic_resources, c, a);
		p.n_containers++;
	}
	return p;
}

static int read_pod(struct bytes in, struct pod *ret, struct arena *a, struct err *err)
{
	_cleanup_arena_ struct arena *scratch = arena_new(4096);
	const V1__PodResources *m =
		kubemsg_unpack(&v1__pod_resources__descriptor, in, scratch, err);

	if (!m)
		return -EBADMSG;
	*ret = pod_from(m, a);
	return 0;
}

#define LIST_BYTES_MAX ((size_t)16 << 20)

static int too_large(struct err *err)
{
	return err_set(err, EBADMSG, "ListPodResourcesResponse: its pods take more than %zu MiB",
		       LIST_BYTES_MAX >> 20);
}

/* Field 1 is a pod: one after the other, for unpacked they take twenty times as much. */
static int pod_list_read(struct bytes in, void *ret, struct arena *a, struct err *err)
{
	struct pod_list list = { NULL, 0 };
	struct bytes rest = in, pod;
	size_t room = 0, before = arena_used(a);
	int r = 0;

	while (kubemsg_next(&rest, 1, &pod))
		room++;
	if (rest.len)
		return err_set(
			err, EBADMSG,
			"ListPodResourcesResponse: the bytes end in the middle of a field or are not protobuf");
	if (room > LIST_BYTES_MAX / sizeof(*list.v))
		return too_large(err);
	list.v = arena_array(a, room, sizeof(*list.v));
	while (r == 0 && kubemsg_next(&in, 1, &pod)) {
		r = read_pod(pod, &list.v[list.n++], a, err);
		if (r == 0 && arena_used(a) - before > LIST_BYTES_MAX)
			r = too_large(err);
	}
	if (r == 0)
		*(struct pod_list *)ret = list;
	return r;
}

const struct kubemsg_type kubemsg_pod_list = { .desc = &v1__list_pod_resources_response__descriptor,
					       .read = pod_list_read };

static int pod_get_reply_from(const void *message, void *ret, struct arena *a, struct err *err)
{
	const V1__GetPodResourcesResponse *m = message;

	if (!m->pod_resources)
		return err_set(err, EBADMSG, "GetPodResourcesResponse: there is no pod in it");
	*(struct pod *)ret = pod_from(m->pod_resources, a);
	return 0;
}

const struct kubemsg_type kubemsg_pod_get_reply = {
	.desc = &v1__get_pod_resources_response__descriptor,
	.is_copied = true,
	.from = pod_get_reply_from
};

static int allocatable_from(const void *message, void *ret, struct arena *a, struct err *err)
{
	const V1__AllocatableResourcesResponse *m = message;
	struct pod_container *c = ret;

	(void)err;
	*c = (struct pod_container) { .name = "" };
	held_from(m->devices, m->n_devices, c, a);
	return 0;
}

const struct kubemsg_type kubemsg_allocatable = {
	.desc = &v1__allocatable_resources_response__descriptor,
	.is_copied = true,
	.from = allocatable_from
};

static void pod_get_request_to(const void *from, void *message, struct arena *a)
{
	const struct pod_name *pod = from;
	V1__GetPodResourcesRequest *m = message;

	(void)a;
	m->pod_namespace = (char *)pod->ns;
	m->pod_name = (char *)pod->name;
}

const struct kubemsg_type kubemsg_pod_get_request = {
	.desc = &v1__get_pod_resources_request__descriptor, .to = pod_get_request_to
};
