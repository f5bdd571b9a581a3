/* CRI: who the runtime is, and containerd's configuration. */
#include <errno.h>
#include <string.h>

#include "base/err.h"
#include "cri.pb-c.h"
#include "kubelet/messages-internal.h"
#include "kubelet/runtime.h"

#define CONFIG "config"

struct bytes msg_encode_runtime_version(const struct runtime_version *v, struct arena *a)
{
	Runtime__V1__VersionResponse m = RUNTIME__V1__VERSION_RESPONSE__INIT;

	m.runtime_name = (char *)v->name;
	m.runtime_version = (char *)v->version;
	return message_pack(&m, a);
}

int msg_decode_runtime_version(struct bytes in, struct arena *a, struct runtime_version *ret, struct err *err)
{
	Runtime__V1__VersionResponse *m =
		message_unpack(&runtime__v1__version_response__descriptor, in, a, err);

	if (!m)
		return -EBADMSG;
	*ret = (struct runtime_version) { m->runtime_name, m->runtime_version };
	return 0;
}

struct bytes msg_encode_runtime_status_request(struct arena *a)
{
	Runtime__V1__StatusRequest m = RUNTIME__V1__STATUS_REQUEST__INIT;

	m.verbose = true;
	return message_pack(&m, a);
}

struct bytes msg_encode_runtime_status(const char *config, struct arena *a)
{
	Runtime__V1__StatusResponse m = RUNTIME__V1__STATUS_RESPONSE__INIT;

	if (config) {
		m.info = message_array(&runtime__v1__status_response__info_entry__descriptor, 1, a);
		m.n_info = 1;
		m.info[0]->key = (char *)CONFIG;
		m.info[0]->value = (char *)config;
	}
	return message_pack(&m, a);
}

int msg_decode_runtime_status(struct bytes in, struct arena *a, const char **ret_config, struct err *err)
{
	Runtime__V1__StatusResponse *m =
		message_unpack(&runtime__v1__status_response__descriptor, in, a, err);
	const char *config = NULL;

	if (!m)
		return -EBADMSG;
	for (size_t i = 0; i < m->n_info; i++) {
		if (!strcmp(m->info[i]->key, CONFIG))
			config = m->info[i]->value;
	}
	*ret_config = config;
	return 0;
}
