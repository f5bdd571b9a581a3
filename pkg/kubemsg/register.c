/* Registration: DevicePluginOptions, RegisterRequest, and the plugin watcher's two messages. */
#include <errno.h>

#include "deviceplugin.pb-c.h"
#include "kubemsg/messages-internal.h"
#include "pluginregistration.pb-c.h"

static struct plugin_options options_from(const V1beta1__DevicePluginOptions *m)
{
	if (!m)
		return (struct plugin_options) { false, false };
	return (struct plugin_options) { m->pre_start_required,
					 m->get_preferred_allocation_available };
}

static V1beta1__DevicePluginOptions *options_to(const struct plugin_options *o, struct arena *a)
{
	V1beta1__DevicePluginOptions *m =
		kubemsg_new(&v1beta1__device_plugin_options__descriptor, a);

	m->pre_start_required = o->pre_start_required;
	m->get_preferred_allocation_available = o->preferred_allocation;
	return m;
}

int kubemsg_decode_options(struct bytes in, struct arena *a, struct plugin_options *ret,
			   struct err *err)
{
	V1beta1__DevicePluginOptions *m =
		kubemsg_unpack(&v1beta1__device_plugin_options__descriptor, in, a, err);

	if (!m)
		return -EBADMSG;
	*ret = options_from(m);
	return 0;
}

struct bytes kubemsg_encode_options(const struct plugin_options *o, struct arena *a)
{
	return kubemsg_pack(options_to(o, a), a);
}

struct bytes kubemsg_encode_register(const struct register_request *r, struct arena *a)
{
	V1beta1__RegisterRequest m = V1BETA1__REGISTER_REQUEST__INIT;

	m.version = (char *)r->version;
	m.endpoint = (char *)r->endpoint;
	m.resource_name = (char *)r->resource;
	m.options = options_to(&r->options, a);
	return kubemsg_pack(&m, a);
}

struct bytes kubemsg_encode_plugin_info(const struct plugin_info *i, struct arena *a)
{
	Pluginregistration__PluginInfo m = PLUGINREGISTRATION__PLUGIN_INFO__INIT;

	m.type = (char *)i->type;
	m.name = (char *)i->name;
	m.endpoint = (char *)i->endpoint;
	m.supported_versions = (char **)i->versions.v;
	m.n_supported_versions = i->versions.n;
	return kubemsg_pack(&m, a);
}

int kubemsg_decode_registration_status(struct bytes in, struct arena *a,
				       struct registration_status *ret, struct err *err)
{
	Pluginregistration__RegistrationStatus *m = kubemsg_unpack_request(
		&pluginregistration__registration_status__descriptor, in, a, err);

	if (!m)
		return -EBADMSG;
	*ret = (struct registration_status) { m->plugin_registered, m->error };
	return 0;
}
