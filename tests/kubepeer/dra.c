/* The kubelet as the caller of a DRA driver. */
#include <errno.h>

#include "dra.pb-c.h"
#include "kubemsg/messages-internal.h"
#include "kubepeer/kubepeer.h"

struct bytes peer_encode_dra_claims(const struct dra_claim_refs *refs, struct arena *a)
{
	Dra__ClaimsRequest m = DRA__CLAIMS_REQUEST__INIT;

	m.claims = kubemsg_array(&dra__claim__descriptor, refs->n, a);
	m.n_claims = refs->n;
	for (size_t i = 0; i < refs->n; i++) {
		m.claims[i]->namespace_ = (char *)refs->v[i].ns;
		m.claims[i]->uid = (char *)refs->v[i].uid;
		m.claims[i]->name = (char *)refs->v[i].name;
	}
	return kubemsg_pack(&m, a);
}

static const char *or_none(const char *s)
{
	return *s ? s : NULL;
}

static struct dra_result result_from(const char *uid, const Dra__NodePrepareResourceResponse *m,
				     struct arena *a)
{
	size_t n = m ? m->n_devices : 0;
	struct dra_device *v = arena_array(a, n, sizeof(*v));

	for (size_t i = 0; i < n; i++) {
		const Dra__Device *d = m->devices[i];

		v[i] = (struct dra_device) {
			.requests = { (const char **)d->request_names, d->n_request_names },
			.cdi = { (const char **)d->cdi_device_ids, d->n_cdi_device_ids },
			.pool = d->pool_name,
			.device = d->device_name,
			.share = or_none(d->share_id)
		};
	}
	return (struct dra_result) { uid, m ? or_none(m->error) : NULL, v, n };
}

int peer_decode_dra_prepare_reply(struct bytes in, struct arena *a, struct dra_results *ret,
				  struct err *err)
{
	Dra__NodePrepareResourcesResponse *m =
		kubemsg_unpack(&dra__node_prepare_resources_response__descriptor, in, a, err);
	struct dra_result *v;

	if (!m)
		return -EBADMSG;
	v = arena_array(a, m->n_claims, sizeof(*v));
	for (size_t i = 0; i < m->n_claims; i++)
		v[i] = result_from(m->claims[i]->key, m->claims[i]->value, a);
	*ret = (struct dra_results) { v, m->n_claims };
	return 0;
}

int peer_decode_dra_unprepare_reply(struct bytes in, struct arena *a, struct dra_results *ret,
				    struct err *err)
{
	Dra__NodeUnprepareResourcesResponse *m =
		kubemsg_unpack(&dra__node_unprepare_resources_response__descriptor, in, a, err);
	struct dra_result *v;

	if (!m)
		return -EBADMSG;
	v = arena_array(a, m->n_claims, sizeof(*v));
	for (size_t i = 0; i < m->n_claims; i++)
		v[i] = (struct dra_result) { .uid = m->claims[i]->key,
					     .error = m->claims[i]->value
							      ? or_none(m->claims[i]->value->error)
							      : NULL };
	*ret = (struct dra_results) { v, m->n_claims };
	return 0;
}

int peer_decode_dra_health(struct bytes in, struct arena *a, struct dra_health_list *ret,
			   struct err *err)
{
	Dra__NodeWatchResourcesResponse *m =
		kubemsg_unpack(&dra__node_watch_resources_response__descriptor, in, a, err);
	struct dra_health *v;

	if (!m)
		return -EBADMSG;
	v = arena_array(a, m->n_devices, sizeof(*v));
	for (size_t i = 0; i < m->n_devices; i++) {
		const Dra__DeviceHealth *d = m->devices[i];

		v[i] = (struct dra_health) { .pool = d->device ? d->device->pool_name : "",
					     .device = d->device ? d->device->device_name : "",
					     .message = or_none(d->message),
					     .health = d->health,
					     .since_s = d->last_updated_time,
					     .timeout_s = d->health_check_timeout_seconds };
	}
	*ret = (struct dra_health_list) { v, m->n_devices };
	return 0;
}
