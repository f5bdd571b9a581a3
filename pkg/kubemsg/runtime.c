/* CRI: who the runtime is, and containerd's configuration, CNI's with it. */
#include <errno.h>
#include <string.h>

#include "base/err.h"
#include "cri.pb-c.h"
#include "kubemsg/messages-internal.h"

#define CONFIG "config"
#define CNI    "cniconfig"

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
