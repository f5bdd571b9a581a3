/* The kubelet as the caller of a device plugin, and who it registers. */
#include "kubepeer/kubepeer.h"

#include <errno.h>
#include <string.h>

#include "base/err.h"
#include "base/str.h"
#include "deviceplugin.pb-c.h"
#include "kubemsg/messages-internal.h"
#include "pluginregistration.pb-c.h"

#define HEALTHY "Healthy"

static struct device device_from(const V1beta1__Device *m, struct arena *a)
{
	struct device d = { .id = m->id, .healthy = str_eq(m->health, HEALTHY) };
	int64_t *nodes;

	if (!m->topology)
		return d;
	nodes = arena_array(a, m->topology->n_nodes, sizeof(*nodes));
	for (size_t i = 0; i < m->topology->n_nodes; i++)
		nodes[i] = m->topology->nodes[i]->id;
	d.nodes = nodes;
	d.n_nodes = m->topology->n_nodes;
	return d;
}

int peer_decode_device_list(struct bytes in, struct arena *a, struct device_list *ret,
			    struct err *err)
{
	V1beta1__ListAndWatchResponse *m =
		kubemsg_unpack(&v1beta1__list_and_watch_response__descriptor, in, a, err);
	struct device *v;

	if (!m)
		return -EBADMSG;
	if (m->n_devices > MESSAGE_IDS_MAX)
		return err_set(err, EBADMSG, "ListAndWatchResponse: more than %d devices",
			       MESSAGE_IDS_MAX);
	v = arena_array(a, m->n_devices, sizeof(*v));
	for (size_t i = 0; i < m->n_devices; i++)
		v[i] = device_from(m->devices[i], a);
	*ret = (struct device_list) { v, m->n_devices };
	return 0;
}

struct bytes peer_encode_allocate(const struct id_lists *l, struct arena *a)
{
	V1beta1__AllocateRequest m = V1BETA1__ALLOCATE_REQUEST__INIT;

	m.container_requests =
		kubemsg_array(&v1beta1__container_allocate_request__descriptor, l->n, a);
	m.n_container_requests = l->n;
	for (size_t i = 0; i < l->n; i++) {
		m.container_requests[i]->devices_ids = (char **)l->v[i].v;
		m.container_requests[i]->n_devices_ids = l->v[i].n;
	}
	return kubemsg_pack(&m, a);
}

/* A map on the wire may hold a key twice; the later entry counts (proto3, "Backwards compatibility"
 * of maps).
 */
static void set_env(struct edits *e, const char *key, const char *value)
{
	size_t lo = 0, hi = e->n_envs;

	while (lo < hi) {
		size_t mid = (lo + hi) / 2;

		if (strcmp(e->envs[mid].key, key) < 0)
			lo = mid + 1;
		else
			hi = mid;
	}
	if (lo == e->n_envs || strcmp(e->envs[lo].key, key) != 0) {
		memmove(&e->envs[lo + 1], &e->envs[lo], (e->n_envs - lo) * sizeof(*e->envs));
		e->n_envs++;
	}
	e->envs[lo] = (struct kv) { key, value };
}

static struct edits edits_from(const V1beta1__ContainerAllocateResponse *m, struct arena *a)
{
	struct edits e = { .envs = arena_array(a, m->n_envs, sizeof(*e.envs)),
			   .devs = arena_array(a, m->n_devices, sizeof(*e.devs)),
			   .n_devs = m->n_devices,
			   .mounts = arena_array(a, m->n_mounts, sizeof(*e.mounts)),
			   .n_mounts = m->n_mounts };

	for (size_t i = 0; i < m->n_envs; i++)
		set_env(&e, m->envs[i]->key, m->envs[i]->value);
	for (size_t i = 0; i < m->n_devices; i++)
		e.devs[i] =
			(struct devnode) { m->devices[i]->host_path, m->devices[i]->container_path,
					   m->devices[i]->permissions };
	for (size_t i = 0; i < m->n_mounts; i++)
		e.mounts[i] =
			(struct bindmount) { m->mounts[i]->host_path, m->mounts[i]->container_path,
					     m->mounts[i]->read_only };
	e.cdi = arena_array(a, m->n_cdi_devices, sizeof(*e.cdi));
	e.n_cdi = m->n_cdi_devices;
	for (size_t i = 0; i < e.n_cdi; i++)
		e.cdi[i] = m->cdi_devices[i]->name;
	return e;
}

int peer_decode_allocate_reply(struct bytes in, struct arena *a, struct edits **ret, size_t *ret_n,
			       struct err *err)
{
	V1beta1__AllocateResponse *m =
		kubemsg_unpack(&v1beta1__allocate_response__descriptor, in, a, err);
	struct edits *v;

	if (!m)
		return -EBADMSG;
	v = arena_array(a, m->n_container_responses, sizeof(*v));
	for (size_t i = 0; i < m->n_container_responses; i++)
		v[i] = edits_from(m->container_responses[i], a);
	*ret = v;
	*ret_n = m->n_container_responses;
	return 0;
}

struct bytes peer_encode_pre_start(const struct ids *ids, struct arena *a)
{
	V1beta1__PreStartContainerRequest m = V1BETA1__PRE_START_CONTAINER_REQUEST__INIT;

	m.devices_ids = (char **)ids->v;
	m.n_devices_ids = ids->n;
	return kubemsg_pack(&m, a);
}

static struct plugin_options options_from(const V1beta1__DevicePluginOptions *m)
{
	if (!m)
		return (struct plugin_options) { false, false };
	return (struct plugin_options) { m->pre_start_required,
					 m->get_preferred_allocation_available };
}

int peer_decode_register(struct bytes in, struct arena *a, struct register_request *ret,
			 struct err *err)
{
	V1beta1__RegisterRequest *m =
		kubemsg_unpack(&v1beta1__register_request__descriptor, in, a, err);

	if (!m)
		return -EBADMSG;
	*ret = (struct register_request) { m->version, m->endpoint, m->resource_name,
					   options_from(m->options) };
	return 0;
}

int peer_decode_plugin_info(struct bytes in, struct arena *a, struct plugin_info *ret,
			    struct err *err)
{
	Pluginregistration__PluginInfo *m =
		kubemsg_unpack(&pluginregistration__plugin_info__descriptor, in, a, err);

	if (!m)
		return -EBADMSG;
	*ret = (struct plugin_info) { m->type,
				      m->name,
				      m->endpoint,
				      { (const char **)m->supported_versions,
					m->n_supported_versions } };
	return 0;
}

struct bytes peer_encode_registration_status(const struct registration_status *s, struct arena *a)
{
	Pluginregistration__RegistrationStatus m = PLUGINREGISTRATION__REGISTRATION_STATUS__INIT;

	m.plugin_registered = s->registered;
	m.error = (char *)s->error;
	return kubemsg_pack(&m, a);
}
