/* Messages of the DRAPlugin and DRAResourceHealth services. The room dra calls. */
#include "kubemsg/dra.h"

#include <errno.h>

#include "base/err.h"
#include "dra.pb-c.h"
#include "kubemsg/messages-internal.h"

static int claims_from(const void *message, void *ret, struct arena *a, struct err *err)
{
	const Dra__ClaimsRequest *m = message;
	struct dra_claim_refs refs = { arena_array(a, m->n_claims, sizeof(*refs.v)), m->n_claims };

	for (size_t i = 0; i < refs.n; i++) {
		const Dra__Claim *c = m->claims[i];

		if (!*c->namespace_ || !*c->uid || !*c->name)
			return err_set(err, EBADMSG, "a claim lacks its namespace, uid or name");
		refs.v[i] = (struct dra_claim_ref) { c->namespace_, c->uid, c->name };
	}
	*(struct dra_claim_refs *)ret = refs;
	return 0;
}

const struct kubemsg_type kubemsg_dra_claims = { .desc = &dra__claims_request__descriptor,
						 .is_small = true,
						 .from = claims_from };

static void device_to(const struct dra_device *d, Dra__Device *m)
{
	m->request_names = (char **)d->requests.v;
	m->n_request_names = d->requests.n;
	m->pool_name = (char *)d->pool;
	m->device_name = (char *)d->device;
	m->cdi_device_ids = (char **)d->cdi.v;
	m->n_cdi_device_ids = d->cdi.n;
	if (d->share)
		m->share_id = (char *)d->share;
}

static void prepare_reply_to(const void *from, void *message, struct arena *a)
{
	const struct dra_results *list = from;
	Dra__NodePrepareResourcesResponse *m = message;

	m->n_claims = list->n;
	m->claims = kubemsg_array(&dra__node_prepare_resources_response__claims_entry__descriptor,
				  list->n, a);
	for (size_t i = 0; i < list->n; i++) {
		const struct dra_result *r = &list->v[i];
		Dra__NodePrepareResourceResponse *one =
			kubemsg_new(&dra__node_prepare_resource_response__descriptor, a);

		m->claims[i]->key = (char *)r->uid;
		m->claims[i]->value = one;
		if (r->error) {
			one->error = (char *)r->error;
			continue;
		}
		one->devices = kubemsg_array(&dra__device__descriptor, r->n, a);
		one->n_devices = r->n;
		for (size_t k = 0; k < r->n; k++)
			device_to(&r->v[k], one->devices[k]);
	}
}

const struct kubemsg_type kubemsg_dra_prepare_reply = {
	.desc = &dra__node_prepare_resources_response__descriptor, .to = prepare_reply_to
};

static void unprepare_reply_to(const void *from, void *message, struct arena *a)
{
	const struct dra_results *list = from;
	Dra__NodeUnprepareResourcesResponse *m = message;

	m->n_claims = list->n;
	m->claims = kubemsg_array(&dra__node_unprepare_resources_response__claims_entry__descriptor,
				  list->n, a);
	for (size_t i = 0; i < list->n; i++) {
		m->claims[i]->key = (char *)list->v[i].uid;
		m->claims[i]->value =
			kubemsg_new(&dra__node_unprepare_resource_response__descriptor, a);
		if (list->v[i].error)
			m->claims[i]->value->error = (char *)list->v[i].error;
	}
}

const struct kubemsg_type kubemsg_dra_unprepare_reply = {
	.desc = &dra__node_unprepare_resources_response__descriptor, .to = unprepare_reply_to
};

static void health_to(const void *from, void *message, struct arena *a)
{
	const struct dra_health_list *list = from;
	Dra__NodeWatchResourcesResponse *m = message;

	m->devices = kubemsg_array(&dra__device_health__descriptor, list->n, a);
	m->n_devices = list->n;
	for (size_t i = 0; i < list->n; i++) {
		const struct dra_health *h = &list->v[i];
		Dra__DeviceHealth *d = m->devices[i];

		d->device = kubemsg_new(&dra__device_identifier__descriptor, a);
		d->device->pool_name = (char *)h->pool;
		d->device->device_name = (char *)h->device;
		d->health = h->health;
		d->last_updated_time = h->since_s;
		d->health_check_timeout_seconds = h->timeout_s;
		if (h->message)
			d->message = (char *)h->message;
	}
}

const struct kubemsg_type kubemsg_dra_health = {
	.desc = &dra__node_watch_resources_response__descriptor, .to = health_to
};
