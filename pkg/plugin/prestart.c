/*
 * PreStartContainer of a pool that binds early: the VFs were chosen at admission, now it is known
 * for whom. What came of the choice is compared and counted, the holds get their owner. A VF that
 * somebody else still uses is refused, and so is one whose verbs node is not the one that Allocate
 * gave: the kubelet asks again. Not knowing is no reason to refuse.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/log.h"
#include "base/list.h"
#include "base/mem.h"
#include "base/pending.h"
#include "base/str.h"
#include "config/config.h"
#include "grant/contents.h"
#include "kubeclient/podres.h"
#include "kubemsg/messages.h"
#include "plugin/prestart_call.h"
#include "plugin/record.h"
#include "pods/gpus.h"
#include "pods/identify.h"
#include "pool/node.h"
#include "tracker/tracker.h"

#define START_TIMEOUT_MS 2000 /* of the kubelet's 30 s; several containers may be in a row */

static void start_free(struct prestart_call *s)
{
	LIST_REMOVE(s, link);
	pending_cancel(&s->pods_asked);
	pending_cancel(&s->probing);
	pending_cancel(&s->saving);
	node_unref(s->node);
	free(s);
}

static bool same_strings(const char *const *a, const char *const *b, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		if (strcmp(a[i], b[i]) != 0)
			return false;
	}
	return true;
}

static bool same_ids(const struct ids *a, const struct ids *of, struct arena *arena)
{
	struct ids b = { NULL, 0 };

	if (a->n != of->n)
		return false;
	b = plugin_sorted(of, arena);
	return same_strings(a->v, b.v, b.n);
}

const struct ledger_decision *plugin_start_decision(const struct prestart_call *s,
						    const struct ledger *l)
{
	for (size_t i = ledger_decisions(l); i-- > 0;) {
		const struct ledger_decision *d;
		struct ids chosen;

		if (!s->ids.n || !ledger_decision_mentions(l, i, s->ids.v[0]))
			continue;
		d = ledger_decision_at(l, i);
		chosen = (struct ids) { (const char **)d->chosen, d->n_chosen };
		if (!d->late && str_eq(d->resource, s->plugin->resource) &&
		    same_ids(&s->ids, &chosen, s->arena))
			return d;
	}
	return NULL;
}

const struct pool_dev *plugin_start_dev(const struct prestart_call *s, size_t i)
{
	const struct pool *pool = plugin_pool(s->plugin);

	return pool ? pool_find(pool, s->ids.v[i]) : NULL;
}

/* --- the answer --- */

static void refuse(struct prestart_call *s, const char *why)
{
	struct plugin *p = s->plugin;

	p->stats.starts_refused++;
	plugin_warn(p, WARN_START, "container not started yet reason=%s", why);
	rpc_reply(s->call, RPC_UNAVAILABLE, why, (struct bytes) { NULL, 0 });
	start_free(s);
}

/* When its VFs have been looked at, and the ledger is stored. */
static void let_start(struct prestart_call *s)
{
	if (s->probing || s->saving)
		return;
	if (s->err.code) {
		refuse(s, s->err.msg);
		return;
	}
	rpc_reply(s->call, RPC_OK, NULL, (struct bytes) { NULL, 0 });
	start_free(s);
}

static struct contents_in contents_of(const struct prestart_call *s, const struct vf_state *states,
				      size_t n, const char *why)
{
	const struct starter *me = s->who;
	const struct plugin_env *env = s->plugin->env;

	return (struct contents_in) { .node = s->node,
				      .root = env->root,
				      .ledger = plugin_ledger(s->plugin),
				      .rundir = env->rundir,
				      .owner = me->owner,
				      .gpus = me->gpus,
				      .n_gpus = me->n_gpus,
				      .shares = me->shares,
				      .n_shares = me->n_shares,
				      .states = states,
				      .n_states = states ? n : 0,
				      .why = why };
}

static void looked(void *arg, const struct vf_state *states, size_t n, const char *why)
{
	struct prestart_call *s = pending_end(arg);
	struct err err = { 0 };
	struct contents_in in;

	if (!s)
		return;
	in = contents_of(s, states, n, why);
	if (plugin_files_start(s->plugin, &in, s->arena, &err) < 0)
		s->err = err;
	let_start(s);
}

static void saved(void *arg)
{
	struct prestart_call *s = pending_end(arg);

	if (s)
		let_start(s);
}

/* Who starts is decided; now its sandbox and its network are done: what are its VFs there? */
static void look(struct prestart_call *s, const struct starter *me)
{
	struct plugin *p = s->plugin;
	struct bdf *bdfs;
	size_t n;

	s->node = node_ref(p->node);
	s->who = arena_copy(s->arena, me, sizeof(*me));
	if (!me->n_shares) {
		s->who->shares = arena_alloc(s->arena, sizeof(*me->shares));
		s->who->shares[0] = (struct share) { plugin_pool(p), s->ids };
		s->who->n_shares = 1;
	}
	n = contents_functions(s->node, s->who->shares, s->who->n_shares, s->arena, &bdfs);
	if (!p->env->vfprobe || !n || !plugin_pool(p)->cfg->is_rdma)
		return;
	vfprobe_look(p->env->vfprobe, bdfs, n, looked, pending_new(s, &s->probing));
}

/* Those that the pool has. */
static size_t devs_of(const struct prestart_call *s, const struct pool_dev ***ret)
{
	size_t n = 0;

	*ret = arena_array(s->arena, s->ids.n, sizeof(**ret));
	for (size_t i = 0; i < s->ids.n; i++) {
		(*ret)[n] = plugin_start_dev(s, i);
		n += (*ret)[n] != NULL;
	}
	return n;
}

/* It may start and holds its VFs; a sentence if not. */
static const char *take(struct prestart_call *s, const struct starter *me, uint64_t number)
{
	struct plugin *p = s->plugin;
	const struct pool_dev **devs;
	size_t n = devs_of(s, &devs);
	const char *why = plugin_start_node_refusal(s, me);

	if (why || !n)
		return why;
	if (holds_start(tracker_holds(p->env->tracker), plugin_record_facts(p, devs, n, s->arena),
			n, &me->owner, number, plugin_pool(p)->cfg->network == NETWORK_POD,
			tracker_now(), s->arena, &why))
		return NULL;
	return why;
}

/* By which its VFs are held now. */
static uint64_t number_now(const struct prestart_call *s, uint64_t before)
{
	const struct ledger_hold *hold =
		s->ids.n ? ledger_find(plugin_ledger(s->plugin), s->ids.v[0]) : NULL;

	return hold ? hold->decision : before;
}

/* Once: the pool stays as it is configured. */
static void tell_dra(struct plugin *p, const struct starter *me)
{
	if (!me->dra_driver || p->told_dra)
		return;
	p->told_dra = true;
	log_warn("kubelet",
		 "the pod has GPUs by DRA, and a pool that binds early cannot see them: they are "
		 "given after its VFs; \"binding\": \"late\" sees them"
		 " resource=%s pod=%s/%s driver=%s",
		 p->resource, me->owner.ns, me->owner.pod, me->dra_driver);
}

static void settle(struct prestart_call *s, const struct starter *me)
{
	struct plugin *p = s->plugin;
	const struct ledger_decision *d = plugin_start_decision(s, plugin_ledger(p));
	uint64_t number = d ? d->number : 0;
	const char *why = take(s, me, number);

	if (why) {
		tracker_save(p->env->tracker, NULL, NULL);
		refuse(s, why);
		return;
	}
	if (me->owner.pod) {
		number = number_now(s, number);
		log_info("kubelet",
			 "the container starts"
			 " resource=%s pod=%s/%s uid=%s container=%s devices=%zu decision=%llu",
			 p->resource, me->owner.ns, me->owner.pod, me->owner.uid,
			 me->owner.container, s->ids.n, (unsigned long long)number);
		plugin_start_compare(s, me, number);
		tell_dra(s->plugin, me);
	}
	look(s, me);
	tracker_save(p->env->tracker, saved, pending_new(s, &s->saving));
}

/* --- who is it? --- */

/* Without those of claims that other containers have, too: nobody asks here whose they are. */
static struct pod_container with_own_devices(const struct prestart_call *s, const struct pod *pod,
					     const struct pod_container *c)
{
	struct pod_container own = *c;

	own.dynamic = arena_array(s->arena, c->n_dynamic, sizeof(*own.dynamic));
	own.n_dynamic = 0;
	for (size_t i = 0; i < c->n_dynamic; i++) {
		if (!gpus_are_shared(s->plugin->node, pod, c, c->dynamic[i].claim))
			own.dynamic[own.n_dynamic++] = c->dynamic[i];
	}
	return own;
}

/* Its own driver, or that of another container: without GPUs of its own it may serve theirs. */
static void find_driver(const struct prestart_call *s, const struct pod *pod,
			const struct pod_container *c, struct starter *me)
{
	const struct node *node = s->plugin->node;
	const char *driver = gpus_driver(node, c);

	me->has_dra = driver != NULL;
	for (size_t i = 0; !driver && !me->n_gpus && i < pod->n_containers; i++)
		driver = gpus_driver(node, &pod->containers[i]);
	me->dra_driver = arena_strdup(s->arena, driver);
}

static struct starter starter_of(const struct prestart_call *s, const struct pod *pod,
				 const struct pod_container *c)
{
	struct pod_container own = with_own_devices(s, pod, c);
	struct starter me = { .owner = { .ns = arena_strdup(s->arena, pod->ns),
					 .pod = arena_strdup(s->arena, pod->name),
					 .container = arena_strdup(s->arena, c->name) } };

	me.n_gpus = gpus_held(s->plugin->node, &own, s->plugin->resource, s->arena, &me.gpus);
	find_driver(s, pod, c, &me);
	me.n_shares =
		contents_shares(s->plugin->node, plugin_ledger(s->plugin), c, s->arena, &me.shares);
	return me;
}

/* The hold's owner has started already: then it is the other one that asks. */
static bool has_started(const struct prestart_call *s, const struct ledger_hold *hold)
{
	const struct ledger_decision *d = ledger_decision(plugin_ledger(s->plugin), hold->decision);

	return d && d->checked;
}

/* Two containers have exactly these: the kubelet has given them away twice (docs/design/kubelet.md
 * §2.2). */
static bool is_likelier(const struct prestart_call *s, const struct starter *me,
			const struct starter *other)
{
	const struct ledger_hold *hold =
		s->ids.n ? ledger_find(plugin_ledger(s->plugin), s->ids.v[0]) : NULL;

	if (!other->owner.pod)
		return true;
	if (!hold)
		return false;
	return plugin_record_same_pod(&me->owner, &hold->owner) != has_started(s, hold);
}

/* The kubelet's checkpoint has every container that was admitted; the same UID for all its ids. */
static void add_uid(const struct prestart_call *s, struct starter *me)
{
	const struct holds_entry *v;
	size_t n = tracker_checkpoint(s->plugin->env->tracker, &v);
	const char *uid = holds_checkpoint_uid_of(v, n, s->plugin->resource, s->ids.v, s->ids.n);

	holds_checkpoint(tracker_holds(s->plugin->env->tracker), v, n, tracker_now());
	for (size_t i = 0; !*uid && i < s->ids.n; i++)
		uid = holds_checkpoint_uid(v, n, s->plugin->resource, s->ids.v[i]);
	me->owner.uid = arena_strdup(s->arena, uid);
}

static struct starter find_starter(const struct prestart_call *s, const struct pod_list *pods)
{
	struct starter found = { .gpus = NULL };

	for (size_t i = 0; i < pods->n; i++) {
		const struct pod *pod = &pods->v[i];

		for (size_t k = 0; k < pod->n_containers; k++) {
			const struct pod_container *c = &pod->containers[k];
			const struct ids *held = identify_held(c, s->plugin->resource);
			struct starter me;

			if (!held || !same_ids(&s->ids, held, s->arena))
				continue;
			me = starter_of(s, pod, c);
			if (is_likelier(s, &me, &found))
				found = me;
		}
	}
	add_uid(s, &found);
	return found;
}

/* --- asking --- */

static void unknown(struct prestart_call *s, const char *why)
{
	struct starter me = { .gpus = NULL };

	if (why)
		plugin_warn(s->plugin, WARN_PODS,
			    "cannot identify the starting container reason=%s", why);
	add_uid(s, &me);
	settle(s, &me);
}

static void listed(void *arg, enum podres_result result, const struct pod_list *pods,
		   const char *why)
{
	struct prestart_call *s = pending_end(arg);
	struct starter me;

	if (!s)
		return;
	if (result != PODRES_OK) {
		unknown(s, why);
		return;
	}
	plugin_warn_reset(s->plugin, WARN_PODS);
	me = find_starter(s, pods);
	settle(s, &me);
}

static void ask_list(struct prestart_call *s)
{
	struct plugin *p = s->plugin;

	p->stats.pod_lists++;
	podres_list_quietly(p->env->podres, START_TIMEOUT_MS, listed,
			    pending_new(s, &s->pods_asked));
}

static void got_pod(void *arg, enum podres_result result, const struct pod_list *pods,
		    const char *why)
{
	struct prestart_call *s = pending_end(arg);
	struct starter me;

	(void)why;
	if (!s)
		return;
	if (result != PODRES_OK) {
		ask_list(s);
		return;
	}
	me = find_starter(s, pods);
	if (me.owner.pod)
		settle(s, &me);
	else
		ask_list(s);
}

/* Everything says that these are one pod's: then that pod alone has to be looked at. */
static const struct ledger_owner *expected(const struct prestart_call *s)
{
	const struct ledger *l = plugin_ledger(s->plugin);
	const struct ledger_decision *d = plugin_start_decision(s, l);

	if (!d || !d->owner.pod || !*d->owner.pod ||
	    podres_support(s->plugin->env->podres) != PODRES_GET)
		return NULL;
	for (size_t i = 0; i < s->ids.n; i++) {
		const struct ledger_hold *hold = ledger_find(l, s->ids.v[i]);

		if (!hold || hold->decision != d->number ||
		    !plugin_record_same_pod(&hold->owner, &d->owner))
			return NULL;
	}
	return &d->owner;
}

static void ask(struct prestart_call *s)
{
	struct plugin *p = s->plugin;
	const struct ledger_owner *owner;

	if (!p->env->podres || podres_support(p->env->podres) == PODRES_NOTHING) {
		unknown(s, NULL);
		return;
	}
	owner = expected(s);
	if (!owner) {
		ask_list(s);
		return;
	}
	podres_get(p->env->podres, owner->ns, owner->pod, START_TIMEOUT_MS, got_pod,
		   pending_new(s, &s->pods_asked));
}

static int known_ids(const struct plugin *p, struct bytes request, struct arena *a, struct ids *ret,
		     struct err *err)
{
	const struct pool *pool = plugin_pool(p);
	int r = kubemsg_decode_pre_start(request, a, ret, err);

	for (size_t i = 0; r == 0 && i < ret->n; i++) {
		if (!pool || !pool_find(pool, ret->v[i]))
			r = err_set(err, ENOENT, "%s has no device '%.64s' on this node",
				    p->resource, ret->v[i]);
	}
	return r;
}

void plugin_start(struct plugin *p, struct rpc_call *call, struct bytes request)
{
	struct arena *a = rpc_call_arena(call);
	struct err err = { 0 };
	struct ids ids;
	struct prestart_call *s;

	p->stats.starts++;
	if (known_ids(p, request, a, &ids, &err) < 0) {
		plugin_refuse(call, &err);
		return;
	}
	if (!p->env->tracker || p->dying || !ids.n) {
		rpc_reply(call, RPC_OK, NULL, (struct bytes) { NULL, 0 });
		return;
	}
	s = xcalloc(1, sizeof(*s));
	*s = (struct prestart_call) {
		.plugin = p, .call = call, .arena = a, .ids = plugin_sorted(&ids, a)
	};
	LIST_INSERT_HEAD(&p->starts, s, link);
	ask(s);
}

void plugin_start_done(struct plugin *p)
{
	struct prestart_call *s;

	while ((s = LIST_FIRST(&p->starts))) {
		rpc_reply(s->call, RPC_UNAVAILABLE, "the device plugin is stopping",
			  (struct bytes) { NULL, 0 });
		start_free(s);
	}
}
