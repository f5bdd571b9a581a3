#include "dra/dra.h"

#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/list.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/str.h"
#include "config/config.h"
#include "dra/health.h"
#include "dra/prepare.h"
#include "dra/publish.h"
#include "dra/server.h"
#include "dra/slices.h"
#include "dra/tell.h"
#include "holds/holds.h"
#include "kubeapi/objects.h"
#include "latebind/latebind.h"
#include "pool/node.h"
#include "pool/slots.h"
#include "rpc/rpc.h"
#include "tracker/tracker.h"

#define WAITS_A_MINUTE 10

struct dra {
	struct dra_env env;
	struct node *node; /* NULL: none yet */
	struct draserver *server;
	struct publish *publish;
	struct prepares *prepares;
	char *state; /* the path of the kubelet's checkpoint of claims */
	struct tells *tells;
	struct strbuf said; /* of dra_problem() */
	char *refused;	    /* why the kubelet did not register the driver; NULL: it did, or has not
			       answered */
	struct log_rate waits;
	bool told_old;
};

/* --- the offer --- */

/* How many slots beside those of claims there are VFs for. One of a NUMA node is of a pod that the
 * device plugin served before this driver did; its VF counts as fit. */
static size_t count_free(const struct slot_list *slots)
{
	size_t free = 0, foreign = 0;

	for (size_t i = 0; i < slots->n; i++) {
		const struct slot *s = &slots->v[i];

		free += s->numa == SLOT_ANY && !s->held && s->healthy;
		foreign += s->numa != SLOT_ANY && s->held;
	}
	return free > foreign ? free - foreign : 0;
}

/* Slots that claims have, and as many others as there are VFs for them. */
static void offer_slots(const struct dra *d, struct slices_pool *p, struct arena *a)
{
	struct slot_list slots = latebind_slots(d->env.latebind, p->pool, a);
	unsigned *numbers = arena_array(a, slots.n, sizeof(*numbers));
	size_t free = count_free(&slots);
	int numa;

	for (size_t i = 0; i < slots.n; i++) {
		const struct slot *s = &slots.v[i];

		if (s->numa != SLOT_ANY || (!s->held && (!s->healthy || !free)) ||
		    !pool_slot_parse(p->pool->cfg->resource, s->id, &numa, &numbers[p->n_slots]))
			continue;
		free -= !s->held;
		p->n_slots++;
	}
	p->slots = numbers;
}

/* VFs that no claim has or may have. A sick link is for slices_plan() to tell. */
static void find_lost(const struct dra *d, struct slices_pool *p, struct arena *a)
{
	const struct ledger *l = tracker_ledger(d->env.tracker);
	const char **lost = arena_array(a, p->pool->n_devs, sizeof(*lost));

	for (size_t i = 0; i < p->pool->n_devs; i++) {
		const struct pool_dev *dev = &p->pool->devs[i];
		struct holds_verdict v = tracker_judge(d->env.tracker, p->pool, dev, false, a);
		const struct ledger_hold *hold = ledger_find(l, dev->id);
		bool claims = hold && !hold->draining && *hold->owner.claim;

		if (!claims && v.state != HOLDS_IS_FREE && v.state != HOLDS_IS_UNHEALTHY)
			lost[p->n_lost++] = dev->id;
	}
	if (p->n_lost)
		qsort(lost, p->n_lost, sizeof(*lost), list_by_string);
	p->lost = lost;
}

static void offer(struct dra *d)
{
	_cleanup_arena_ struct arena *a = arena_new(16 * 1024);
	struct slices_pool *v = arena_array(a, d->node->n_pools, sizeof(*v));
	struct slices_in in = { .node = d->node, .v = v, .taints = publish_has_taints(d->publish) };
	struct dra_health_list health;

	for (size_t i = 0; i < d->node->n_pools; i++) {
		const struct pool *pool = &d->node->pools[i];
		struct slices_pool *p = &v[in.n];

		if (pool->cfg->retired)
			continue;
		*p = (struct slices_pool) { .pool = pool,
					    .exact = pool->cfg->dra == POOL_DRA_EXACT };
		if (p->exact)
			find_lost(d, p, a);
		else
			offer_slots(d, p, a);
		in.n++;
	}
	publish_set(d->publish, &in);
	health = dra_health_of(d->node, tracker_ledger(d->env.tracker), d->env.node_name, a);
	draserver_health(d->server, &health);
}

/* --- the kubelet's calls --- */

static void answer(void *arg, const struct dra_results *results)
{
	draserver_reply(arg, results);
}

/* In the arena of nothing: the call, who asked, and for what. */
struct preparing {
	struct dra *d;
	struct draserver_call *call;
	const struct dra_claim_refs *refs; /* until the reply */
};

static void prepared(void *arg, const struct dra_results *results)
{
	struct preparing *p = arg;

	for (size_t i = 0; i < results->n; i++) {
		const struct dra_result *r = &results->v[i];

		if (!r->error)
			log_debug("kubelet", "a claim is prepared uid=%s devices=%zu", r->uid,
				  r->n);
		else if (log_rate_count(&p->d->waits) <= WAITS_A_MINUTE)
			log_warn("kubelet", "a claim is not prepared uid=%s reason=%s", r->uid,
				 r->error);
		else
			log_debug("kubelet", "a claim is not prepared uid=%s reason=%s", r->uid,
				  r->error);
		if (!r->error)
			tell_prepared(p->d->tells, p->d->node, tracker_ledger(p->d->env.tracker),
				      &p->refs->v[i], r);
	}
	draserver_reply(p->call, results);
	free(p);
}

static void on_prepare(void *ctx, struct draserver_call *call, const struct dra_claim_refs *refs)
{
	struct dra *d = ctx;
	struct preparing *p = xcalloc(1, sizeof(*p));

	*p = (struct preparing) { d, call, refs };
	prepare_claims(d->prepares, refs, prepared, p);
}

static void on_unprepare(void *ctx, struct draserver_call *call, const struct dra_claim_refs *refs)
{
	struct dra *d = ctx;

	for (size_t i = 0; i < refs->n; i++)
		tell_unprepared(d->tells, refs->v[i].uid);
	unprepare_claims(d->prepares, refs, answer, call);
}

static void on_registered(void *ctx, bool yes, const char *error)
{
	struct dra *d = ctx;

	free(STEAL(d->refused));
	publish_look(d->publish);
	if (yes) {
		log_info("kubelet", "registered as a DRA driver driver=%s", d->env.driver);
		return;
	}
	d->refused = error ? xstrdup(error) : NULL;
	log_warn("kubelet", "the kubelet did not register the DRA driver driver=%s error=%s",
		 d->env.driver, error ? error : "");
}

static void on_old(void *ctx)
{
	struct dra *d = ctx;

	if (!d->told_old)
		log_warn(
			"kubelet",
			"the kubelet is older than 1.37 and can unprepare a claim that another pod uses");
	d->told_old = true;
}

/* --- */

static void ask(void *objects, const struct api_request *request, api_done_fn done, void *arg)
{
	kubeapi_objects_do(objects, request, done, arg);
}

const char *dra_problem(struct dra *d)
{
	if (!d->server)
		return "the node is not known yet";
	if (d->refused)
		return d->refused;
	if (!draserver_is_registered(d->server))
		return "the kubelet has not registered the DRA driver";
	if (publish_is_done(d->publish))
		return NULL;
	d->said.len = 0;
	publish_say(d->publish, &d->said);
	return strbuf_str(&d->said);
}

static void start(struct dra *d)
{
	const struct draserver_env server = { .rpc = d->env.rpc,
					      .kubelet_root = d->env.kubelet_root,
					      .plugin_dir = d->env.plugin_dir,
					      .driver = d->env.driver,
					      .prepare = on_prepare,
					      .unprepare = on_unprepare,
					      .registered = on_registered,
					      .old = on_old,
					      .ctx = d };

	d->server = draserver_open(&server);
}

void dra_update(struct dra *d, struct node *node)
{
	struct node *before = d->node;

	d->node = node_ref(node);
	node_unref(before);
	prepare_update(d->prepares, node);
	if (!d->server)
		start(d);
	offer(d);
}

void dra_relist(struct dra *d)
{
	if (d->node)
		offer(d);
}

void dra_seen(struct dra *d, const struct vf_state *v, size_t n)
{
	if (d->node)
		tell_seen(d->tells, d->node, tracker_ledger(d->env.tracker), v, n);
}

void dra_check(struct dra *d)
{
	if (d->server)
		draserver_check(d->server);
}

static void on_changed(void *arg)
{
	dra_relist(arg);
}

struct dra *dra_open(const struct dra_env *env)
{
	struct dra *d = xcalloc(1, sizeof(*d));
	const struct publish_env publish = { .rpc = env->rpc,
					     .driver = env->driver,
					     .node_name = env->node_name,
					     .ask = ask,
					     .ctx = env->objects,
					     .changed = on_changed,
					     .arg = d };
	struct prepare_env prepare = { .rpc = env->rpc,
				       .driver = env->driver,
				       .node_name = env->node_name,
				       .ask = ask,
				       .ctx = env->questions,
				       .latebind = env->latebind,
				       .tracker = env->tracker,
				       .claims = env->claims };

	d->env = *env;
	d->publish = publish_open(&publish);
	d->state = xasprintf("%s/dra_manager_state", env->kubelet_root);
	prepare.state = d->state;
	d->tells = tell_open(
		&(struct tell_env) { .driver = env->driver, .ask = ask, .ctx = env->objects });
	d->prepares = prepare_open(&prepare);
	return d;
}

void dra_close(struct dra *d)
{
	if (!d)
		return;
	prepare_close(STEAL(d->prepares));
	tell_close(STEAL(d->tells));
	draserver_close(STEAL(d->server));
	publish_close(STEAL(d->publish));
	node_unref(d->node);
	free(d->refused);
	free(d->state);
	strbuf_done(&d->said);
	free(d);
}
