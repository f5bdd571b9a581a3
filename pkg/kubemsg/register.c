/* Registration: DevicePluginOptions, RegisterRequest, and the plugin watcher's two messages. */
#include "deviceplugin.pb-c.h"
#include "kubemsg/messages-internal.h"
#include "pluginregistration.pb-c.h"

static int options_from(const void *message, void *ret, struct arena *a, struct err *err)
{
	const V1beta1__DevicePluginOptions *m = message;

	(void)a;
	(void)err;
	*(struct plugin_options *)ret =
		(struct plugin_options) { m->pre_start_required,
					  m->get_preferred_allocation_available };
	return 0;
}

static void options_to(const void *from, void *message, struct arena *a)
{
	const struct plugin_options *o = from;
	V1beta1__DevicePluginOptions *m = message;

	(void)a;
	m->pre_start_required = o->pre_start_required;
	m->get_preferred_allocation_available = o->preferred_allocation;
}

const struct kubemsg_type kubemsg_options = { .desc = &v1beta1__device_plugin_options__descriptor,
					      .is_small = true,
					      .from = options_from,
					      .to = options_to };

static void register_to(const void *from, void *message, struct arena *a)
{
	const struct register_request *r = from;
	V1beta1__RegisterRequest *m = message;

	m->version = (char *)r->version;
	m->endpoint = (char *)r->endpoint;
	m->resource_name = (char *)r->resource;
	m->options = kubemsg_new(&v1beta1__device_plugin_options__descriptor, a);
	options_to(&r->options, m->options, a);
}

const struct kubemsg_type kubemsg_register = { .desc = &v1beta1__register_request__descriptor,
					       .to = register_to };

static void plugin_info_to(const void *from, void *message, struct arena *a)
{
	const struct plugin_info *i = from;
	Pluginregistration__PluginInfo *m = message;

	(void)a;
	m->type = (char *)i->type;
	m->name = (char *)i->name;
	m->endpoint = (char *)i->endpoint;
	m->supported_versions = (char **)i->versions.v;
	m->n_supported_versions = i->versions.n;
}

const struct kubemsg_type kubemsg_plugin_info = {
	.desc = &pluginregistration__plugin_info__descriptor, .to = plugin_info_to
};

static int status_from(const void *message, void *ret, struct arena *a, struct err *err)
{
	const Pluginregistration__RegistrationStatus *m = message;

	(void)a;
	(void)err;
	*(struct registration_status *)ret =
		(struct registration_status) { m->plugin_registered, m->error };
	return 0;
}

const struct kubemsg_type kubemsg_registration_status = {
	.desc = &pluginregistration__registration_status__descriptor,
	.is_small = true,
	.from = status_from
};
