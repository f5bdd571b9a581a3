#include "dra/claimstatus.h"

#include <stdio.h>
#include <string.h>
#include <time.h>

#include "base/arena.h"
#include "base/json.h"
#include "base/str.h"
#include "kubeapi/objects.h"
#include "kubemsg/dra.h"
#include "ledger/ledger.h"
#include "pool/node.h"
#include "render/cdi.h"
#include "topo/rails.h"

#define IPS_MAX 16

const char *claimstatus_path(const char *driver, const struct dra_claim_ref *c, struct arena *a)
{
	if (!kubeapi_objects_is_name(c->ns) || !kubeapi_objects_is_name(c->name))
		return NULL;
	return arena_printf(
		a,
		"/apis/resource.k8s.io/v1/namespaces/%s/resourceclaims/%s/status?fieldManager=%s&force=true",
		c->ns, c->name, driver);
}

/* The hold of a claim's slot, by its CDI name; NULL: none. */
static const struct ledger_hold *hold_of(const struct ledger *l, const char *claim, const char *cdi)
{
	const struct ledger_hold *h = str_starts(cdi, CDI_KIND "=")
					      ? ledger_find_slot(l, cdi + strlen(CDI_KIND "="))
					      : NULL;

	return h && str_eq(h->owner.claim, claim) ? h : NULL;
}

static const struct claimstatus_net *net_of(const struct claimstatus *c, const char *vf)
{
	for (size_t i = 0; i < c->n_nets; i++) {
		if (!strcmp(c->nets[i].vf, vf))
			return &c->nets[i];
	}
	return NULL;
}

static void put_vf(struct json *j, const struct claimstatus *c, const struct ledger_hold *h)
{
	const struct claimstatus_net *net = net_of(c, h->vf);
	const struct pool *pool = node_pool(c->node, h->resource);
	const struct pool_dev *dev = pool ? pool_find(pool, h->vf) : NULL;
	struct topo_rail rail = topo_rails_of(c->node->rails, dev ? dev->pci : -1);

	json_begin_object(j);
	json_kv_string(j, "pci", h->vf);
	json_kv_string(j, "rdma", dev && dev->rdma_name ? dev->rdma_name : h->rdma);
	json_kv_int_if(j, "rail", rail.rail, rail.rail >= 0);
	if (net)
		json_kv_string(j, "netdev", net->netdev);
	json_end_object(j);
}

/* Of a device that is one VF: the API has room for one interface, with 16 addresses. */
static void put_net(struct json *j, const struct claimstatus_net *net)
{
	json_kv_object(j, "networkData");
	json_kv_string(j, "interfaceName", net->netdev);
	json_kv_strings(j, "ips", net->ips, net->n_ips < IPS_MAX ? net->n_ips : IPS_MAX);
	json_end_object(j);
}

/* Since the first of its VFs was given. metav1.Time: seconds. */
static void put_ready(struct json *j, int64_t since_ms)
{
	time_t seconds = (time_t)(since_ms / 1000);
	char text[32];
	struct tm tm;

	gmtime_r(&seconds, &tm);
	strftime(text, sizeof(text), "%Y-%m-%dT%H:%M:%SZ", &tm);
	json_kv_array(j, "conditions");
	json_begin_object(j);
	json_kv_string(j, "type", "Ready");
	json_kv_string(j, "status", "True");
	json_kv_string(j, "reason", "VFsBound");
	json_kv_string(j, "message", "");
	json_kv_string(j, "lastTransitionTime", text);
	json_end_object(j);
	json_end_array(j);
}

static void put_device(struct json *j, const struct claimstatus *c, const struct dra_device *d)
{
	const struct claimstatus_net *net = NULL;
	int64_t since_ms = 0;

	json_begin_object(j);
	json_kv_string(j, "driver", c->driver);
	json_kv_string(j, "pool", d->pool);
	json_kv_string(j, "device", d->device);
	if (d->share)
		json_kv_string(j, "shareID", d->share);
	json_kv_object(j, "data");
	json_kv_array(j, "vfs");
	for (size_t i = 0; i < d->cdi.n; i++) {
		const struct ledger_hold *h = hold_of(c->ledger, c->claim->uid, d->cdi.v[i]);

		if (!h)
			continue;
		put_vf(j, c, h);
		net = d->cdi.n == 1 ? net_of(c, h->vf) : NULL;
		since_ms = since_ms && since_ms < h->since_ms ? since_ms : h->since_ms;
	}
	json_end_array(j);
	json_end_object(j);
	if (net)
		put_net(j, net);
	if (since_ms) /* a VF is there */
		put_ready(j, since_ms);
	json_end_object(j);
}

void claimstatus_write(const struct claimstatus *c, struct strbuf *out)
{
	struct json j;

	json_init(&j, out, 0);
	json_begin_object(&j);
	json_kv_string(&j, "apiVersion", "resource.k8s.io/v1");
	json_kv_string(&j, "kind", "ResourceClaim");
	json_kv_object(&j, "metadata");
	json_kv_string(&j, "name", c->claim->name);
	json_kv_string(&j, "namespace", c->claim->ns);
	json_kv_string(&j, "uid", c->claim->uid);
	json_end_object(&j);
	json_kv_object(&j, "status");
	json_kv_array(&j, "devices");
	for (size_t i = 0; i < c->result->n; i++)
		put_device(&j, c, &c->result->v[i]);
	json_end_array(&j);
	json_end_object(&j);
	json_end_object(&j);
}
