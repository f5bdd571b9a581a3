/* CRI: the runtime's name and version, and containerd's configuration with that of CNI. */
#include <string.h>

#include "cri.pb-c.h"
#include "kubemsg/messages-internal.h"

#define CONFIG "config"
#define CNI    "cniconfig"

static int version_from(const void *message, void *ret, struct arena *a, struct err *err)
{
	const Runtime__V1__VersionResponse *m = message;

	(void)a;
	(void)err;
	*(struct runtime_version *)ret =
		(struct runtime_version) { m->runtime_name, m->runtime_version };
	return 0;
}

const struct kubemsg_type kubemsg_runtime_version = {
	.desc = &runtime__v1__version_response__descriptor, .from = version_from
};

static void status_request_to(const void *from, void *message, struct arena *a)
{
	Runtime__V1__StatusRequest *m = message;

	(void)from;
	(void)a;
	m->verbose = true;
}

const struct kubemsg_type kubemsg_runtime_status_request = {
	.desc = &runtime__v1__status_request__descriptor, .to = status_request_to
};

static int status_from(const void *message, void *ret, struct arena *a, struct err *err)
{
	const Runtime__V1__StatusResponse *m = message;
	struct runtime_status s = { NULL, NULL };

	(void)a;
	(void)err;
	for (size_t i = 0; i < m->n_info; i++) {
		if (!strcmp(m->info[i]->key, CONFIG))
			s.config = m->info[i]->value;
		else if (!strcmp(m->info[i]->key, CNI))
			s.cni = m->info[i]->value;
	}
	*(struct runtime_status *)ret = s;
	return 0;
}

const struct kubemsg_type kubemsg_runtime_status = {
	.desc = &runtime__v1__status_response__descriptor, .from = status_from
};
