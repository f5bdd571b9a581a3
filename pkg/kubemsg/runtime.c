/* CRI: who the runtime is, and containerd's configuration, CNI's with it. */
#include <errno.h>
#include <string.h>

#include "base/err.h"
#include "cri.pb-c.h"
#include "kubemsg/messages-internal.h"

#define CONFIG "config"
#define CNI    "cniconfig"

struct bytes kubemsg_encode_runtime_version(const struct runtime_version *v, struct arena *a)
{
	Runtime__V1__VersionResponse m = RUNTIME__V1__VERSION_RESPONSE__INIT;

	m.runtime_name = (char *)v->name;
	m.runtime_version = (char *)v->version;
	return kubemsg_pack(&m, a);
}

int kubemsg_decode_runtime_version(struct bytes in, struct arena *a, struct runtime_version *ret,
				   struct err *err)
{
	Runtime__V1__VersionResponse *m =
		kubemsg_unpack(&runtime__v1__version_response__descriptor, in, a, err);

	if (!m)
		return -EBADMSG;
	*ret = (struct runtime_version) { m->runtime_name, m->runtime_version };
	return 0;
}

struct bytes kubemsg_encode_runtime_status_request(struct arena *a)
{
	Runtime__V1__StatusRequest m = RUNTIME__V1__STATUS_REQUEST__INIT;

	m.verbose = true;
	return kubemsg_pack(&m, a);
}

static void add_info(Runtime__V1__StatusResponse *m, const char *key, const char *value)
{
	if (!value)
		return;
	m->info[m->n_info]->key = (char *)key;
	m->info[m->n_info++]->value = (char *)value;
}

struct bytes kubemsg_encode_runtime_status(const struct runtime_status *s, struct arena *a)
{
	Runtime__V1__StatusResponse m = RUNTIME__V1__STATUS_RESPONSE__INIT;

	m.info = kubemsg_array(&runtime__v1__status_response__info_entry__descriptor, 2, a);
	add_info(&m, CONFIG, s->config);
	add_info(&m, CNI, s->cni);
	return kubemsg_pack(&m, a);
}

int kubemsg_decode_runtime_status(struct bytes in, struct arena *a, struct runtime_status *ret,
				  struct err *err)
{
	Runtime__V1__StatusResponse *m =
		kubemsg_unpack(&runtime__v1__status_response__descriptor, in, a, err);
	struct runtime_status s = { NULL, NULL };

	if (!m)
		return -EBADMSG;
	for (size_t i = 0; i < m->n_info; i++) {
		if (!strcmp(m->info[i]->key, CONFIG))
			s.config = m->info[i]->value;
		else if (!strcmp(m->info[i]->key, CNI))
			s.cni = m->info[i]->value;
	}
	*ret = s;
	return 0;
}
