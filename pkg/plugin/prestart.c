/*
 * PreStartContainer of a pool that binds early: the VFs were chosen at admission, now their
 * container is known. The choice is compared with the container's GPUs and counted, the holds get
 * their owner. The container is refused when another process still uses a VF, and when a VF's verbs
 * node is not the one that Allocate gave: the kubelet asks again. A container of which neither is
 * known starts.
 */
#include <errno.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/queue.h>

#include "align/choose.h"
#include "base/arena.h"
#include "base/err.h"
#include "base/list.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/pending.h"
#include "base/str.h"
#include "config/config.h"
#include "devstate/devstate.h"
#include "grant/grant.h"
#include "grant/vfprobe.h"
#include "hw/inventory.h"
#include "kubeclient/podres.h"
#include "kubemsg/messages.h"
#include "ledger/ledger.h"
#include "plugin/record-internal.h"
#include "pods/gpus.h"
#include "pods/identify.h"
#include "pool/node.h"
#include "status/stats.h"
#include "sysroot/sysroot.h"
#include "topo/topo.h"
#include "tracker/tracker.h"

#define START_TIMEOUT_MS 2000 /* of the kubelet's 30 s; several containers may be in a row */

/* One PreStartContainer under way. */
struct prestart_call {
	LIST_ENTRY(prestart_call) link;
	struct plugin *plugin;
	struct rpc_call *call;
	struct arena *arena; /* of the call */
	struct ids ids;	     /* sorted; one at least */
	struct node *node;   /* as of the decision; NULL before */
	struct starter *who; /* of that node */
	struct pending *pods_asked, *probing, *saving;
	struct err err; /* code 0: the container may start */
};

/* The container that starts. pod NULL: not known. */
struct starter {
	struct grant_container c; /* with its VFs of all pools */
	const char *dra_driver;	  /* gives GPUs to the pod; NULL: none does */
	bool has_dra;		  /* its own GPUs are by DRA */
};

static unsigned start_timeout_ms(const struct plugin *p)
{
	return p->env->start_timeout_ms ? p->env->start_timeout_ms : START_TIMEOUT_MS;
}

static void start_free(struct prestart_call *s)
{
	LIST_REMOVE(s, link);
	pending_cancel(&s->pods_asked);
	pending_cancel(&s->probing);
	pending_cancel(&s->saving);
	node_unref(s->node);
	free(s);
}

static bool same_ids(const struct ids *a, const struct ids *of, struct arena *arena)
{
	struct ids b = { NULL, 0 };

	if (a->n != of->n)
		return false;
	b = plugin_sorted(of, arena);
	for (size_t i = 0; i < b.n; i++) {
		if (strcmp(a->v[i], b.v[i]) != 0)
			return false;
	}
	return true;
}

static const struct ledger_decision *start_decision(const struct prestart_call *s,
						    const struct ledger *l)
{
	for (size_t i = ledger_decisions(l); i-- > 0;) {
		const struct ledger_decision *d;
		struct ids chosen;

		if (!ledger_decision_mentions(l, i, s->ids.v[0]))
			continue;
		d = ledger_decision_at(l, i);
		chosen = (struct ids) { (const char **)d->chosen, d->n_chosen };
		if (!d->late && str_eq(d->resource, s->plugin->resource) &&
		    same_ids(&s->ids, &chosen, s->arena))
			return d;
	}
	return NULL;
}

static const struct pool_dev *start_dev(const struct prestart_call *s, size_t i)
{
	const struct pool *pool = plugin_pool(s->plugin);

	return pool ? pool_find(pool, s->ids.v[i]) : NULL;
}

/* --- is the verbs node still that of Allocate? --- */

/* "uverbs5"; NULL: not known. */
static const char *given_node(const struct ledger_decision *d, const char *vf)
{
	for (size_t i = 0; d && i < d->n_chosen && i < d->n_nodes; i++) {
		if (str_eq(d->chosen[i], vf))
			return d->nodes[i];
	}
	return NULL;
}

/* The node that Allocate gave: by the container's hold, else by the newest decision for the VFs. */
static const char *node_of(const struct prestart_call *s, const struct pool_dev *dev,
			   const struct starter *me)
{
	const struct ledger *l = plugin_ledger(s->plugin);
	const struct ledger_hold *hold = ledger_find(l, dev->id);

	if (hold && hold->decision && holds_same_pod(&me->c.owner, &hold->owner) &&
	    ledger_decision(l, hold->decision))
		return given_node(ledger_decision(l, hold->decision), dev->id);
	return given_node(start_decision(s, l), dev->id);
}

/* The number of a verbs node is given anew when an RDMA device is made again or moves: the runtime
 * would make the node of another VF. Allocate's answer is final: only a new pod gets the right
 * node. */
static bool keeps_node(struct prestart_call *s, const struct pool_dev *dev,
		       const struct starter *me, const char **why)
{
	const struct plugin *p = s->plugin;
	const struct ledger_hold *hold = ledger_find(plugin_ledger(p), dev->id);
	const char *given = node_of(s, dev, me);
	struct function_now now = { .uverbs = "" };
	char owner[64]; /* the RDMA device of the node, the same in every network namespace */

	if (!given)
		return true;
	if (dev->pci >= 0)
		devstate_function(p->env->root, p->node->inv->pci[dev->pci].bdf, &now, NULL);
	if (sysroot_read(p->env->root, owner, sizeof(owner), "sys/class/infiniband_verbs/%s/ibdev",
			 given) < 0)
		*owner = '\0'; /* there is no such node */
	if (str_eq(now.uverbs, given) ||
	    (!now.rdma[0] && *owner && hold && str_eq(owner, hold->rdma)))
		return true;
	*why = arena_printf(
		s->arena,
		"%s has %s%s now, and the container was given /dev/infiniband/%s, which %s%s: delete the pod, a new one is given the right node",
		dev->id, now.uverbs[0] ? "/dev/infiniband/" : "no verbs node", now.uverbs, given,
		*owner ? "is that of " : "is gone", owner);
	return false;
}

static const char *node_refusal(struct prestart_call *s, const struct starter *me)
{
	const char *why = NULL;

	for (size_t i = 0; i < s->ids.n; i++) {
		const struct pool_dev *dev = start_dev(s, i);

		if (dev && !keeps_node(s, dev, me, &why))
			return why;
	}
	return NULL;
}

/* --- how near are the VFs to the GPUs? --- */

static size_t devs_of(const struct prestart_call *s, int **ret)
{
	const struct pool *pool = plugin_pool(s->plugin);
	size_t n = 0;

	*ret = arena_array(s->arena, s->ids.n, sizeof(**ret));
	for (size_t i = 0; i < s->ids.n; i++) {
		const struct pool_dev *dev = start_dev(s, i);

		if (dev)
			(*ret)[n++] = (int)(dev - pool->devs);
	}
	return n;
}

/* The element of room for the place of this dev; NULL: the decision does not list the place. */
static int *room_at(const struct plugin *p, const struct ledger_decision *d,
		    const struct pool_dev *dev, int *room)
{
	const struct hw_inventory *inv = p->node->inv;
	char text[BDF_STRLEN];

	if (dev->pci < 0)
		return NULL;
	bdf_format(inv->pci[topo_place(p->node->topo, dev->pci)].bdf, text);
	for (size_t i = 0; i < d->n_free; i++) {
		if (str_eq(d->free[i].pf, text))
			return &room[i];
	}
	return NULL;
}

/* The VFs of the decision, then others, as many of each place as were free: VFs of a place are
 * equally far. */
static size_t free_then(const struct prestart_call *s, const struct ledger_decision *d,
			const int *devs, size_t n, int **ret)
{
	const struct pool *pool = plugin_pool(s->plugin);
	int *room = arena_array(s->arena, d->n_free, sizeof(*room)), *at;
	size_t total = n;

	for (size_t i = 0; i < d->n_free; i++)
		room[i] = d->free[i].free;
	*ret = arena_array(s->arena, n + pool->n_devs, sizeof(**ret));
	for (size_t i = 0; i < n; i++) {
		(*ret)[i] = devs[i];
		at = room_at(s->plugin, d, &pool->devs[devs[i]], room);
		if (at)
			--*at;
	}
	for (size_t i = 0; i < pool->n_devs; i++) {
		at = list_has_int(devs, n, (int)i) ? NULL
						   : room_at(s->plugin, d, &pool->devs[i], room);
		if (!at || *at <= 0)
			continue;
		--*at;
		(*ret)[total++] = (int)i;
	}
	return total;
}

static void compare(struct prestart_call *s, const struct starter *me, struct ledger_decision *d,
		    struct stats_placement *placement)
{
	struct plugin *p = s->plugin;
	void (*say)(const char *, const char *, ...);
	int *devs, *available;
	size_t n = devs_of(s, &devs);
	struct choose_in in = {
		.node = p->node, .pool = plugin_pool(p), .want = n, .gpus = me->c.gpus
	};

	in.n_available = free_then(s, d, devs, n, &available);
	in.available = available;
	stats_place(placement, &in, devs, plugin_ledger(p), s->arena);
	stats_count_pairs(p->counts, &placement->got, &placement->best);
	d->real_cost = placement->cost;
	d->best_cost = placement->best_cost;
	d->real_gpus = hw_gpu_addresses(p->node->inv, me->c.gpus, s->arena);
	d->n_real_gpus = me->c.gpus.n;
	if (!placement->farther)
		return;
	say = plugin_pool(p)->cfg->strict ? log_warn : log_info;
	say("kubelet",
	    "VFs are farther from the GPUs of the container than possible resource=%s pod=%s/%s container=%s distance=%d possible=%d",
	    p->resource, me->c.owner.ns, me->c.owner.pod, me->c.owner.container, d->real_cost,
	    d->best_cost);
}

/* Corrects why the choice was made without GPUs. */
static void note_dra(const struct prestart_call *s, const struct starter *me,
		     struct ledger_decision *d)
{
	if (!me->has_dra || (d->known == LEDGER_GPUS_KNOWN && d->n_gpus))
		return;
	if (!d->n_gpus)
		d->known = LEDGER_GPUS_UNKNOWN;
	d->source = arena_printf(
		s->arena,
		"%s gives them by DRA, after an early pool has chosen; \"binding\": \"late\" sees them",
		me->dra_driver);
}

static void note_outcome(struct prestart_call *s, const struct starter *me, uint64_t number)
{
	const struct ledger *l = plugin_ledger(s->plugin);
	const struct ledger_decision *d = ledger_decision(l, number);
	const struct plugin_env *env = s->plugin->env;
	const struct pool *pool = plugin_pool(s->plugin);
	struct stats_placement placement = { .owner = &me->c.owner,
					     .resource = s->plugin->resource,
					     .n_vfs = s->ids.n,
					     .strict = pool && pool->cfg->strict };
	struct ledger_decision now;

	if (!d || d->checked)
		return;
	now = *d;
	now.owner = me->c.owner;
	now.checked = true;
	note_dra(s, me, &now);
	if (me->c.gpus.n)
		compare(s, me, &now, &placement);
	if (env->placed)
		env->placed(env->placed_ctx, &placement);
	holds_event(
		tracker_holds(s->plugin->env->tracker),
		&(struct holds_event) { .kind = HOLDS_AMENDED, .number = number, .decision = &now },
		tracker_now());
}

/* --- the answer --- */

static void refuse(struct prestart_call *s, const char *why)
{
	struct plugin *p = s->plugin;

	plugin_warn(p, WARN_START, "the container is not started yet reason=%s", why);
	rpc_reply(s->call, RPC_UNAVAILABLE, why, (struct bytes) { NULL, 0 });
	start_free(s);
}

/* Replies once the VFs are probed and the ledger is stored. */
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

static void probed(void *arg, const struct vf_state *states, size_t n, const char *why)
{
	struct prestart_call *s = pending_end(arg);
	struct err err = { 0 };
	struct contents_in in;

	if (!s)
		return;
	in = (struct contents_in) { .node = s->node,
				    .root = s->plugin->env->root,
				    .ledger = plugin_ledger(s->plugin),
				    .rundir = s->plugin->env->rundir,
				    .container = &s->who->c,
				    .states = states,
				    .n_states = states ? n : 0,
				    .why = why };
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

/* Probes the VFs: the container is identified, and its sandbox and network exist. */
static void probe(struct prestart_call *s, const struct starter *me)
{
	struct plugin *p = s->plugin;
	struct bdf *bdfs;
	size_t n;

	s->node = node_ref(p->node);
	s->who = arena_copy(s->arena, me, sizeof(*me));
	if (!me->c.n_pool_vfs) {
		s->who->c.pool_vfs = arena_alloc(s->arena, sizeof(*me->c.pool_vfs));
		s->who->c.pool_vfs[0] = (struct pool_vfs) { plugin_pool(p), s->ids };
		s->who->c.n_pool_vfs = 1;
	}
	n = grant_functions(s->node, &s->who->c, s->arena, &bdfs);
	if (!p->env->vfprobe || !n || !plugin_pool(p)->cfg->is_rdma)
		return;
	grant_probe_start(p->env->vfprobe, bdfs, n, probed, pending_new(s, &s->probing));
}

/* Makes the container the holder; a sentence if it may not start. */
static const char *take(struct prestart_call *s, const struct starter *me, uint64_t number)
{
	struct plugin *p = s->plugin;
	const struct pool_dev **devs = arena_array(s->arena, s->ids.n, sizeof(*devs));
	size_t n = 0; /* devices that the pool still has */
	const char *why = node_refusal(s, me);

	for (size_t i = 0; i < s->ids.n; i++) {
		devs[n] = start_dev(s, i);
		n += devs[n] != NULL;
	}
	if (why || !n)
		return why;
	if (holds_start(tracker_holds(p->env->tracker), plugin_record_facts(p, devs, n, s->arena),
			n, &me->c.owner, number, plugin_pool(p)->cfg->network == NETWORK_POD,
			tracker_now(), s->arena, &why))
		return NULL;
	return why;
}

/* The first VF stands for all. */
static const struct ledger_hold *first_hold(const struct prestart_call *s)
{
	return ledger_find(plugin_ledger(s->plugin), s->ids.v[0]);
}

/* Once: the pool's configuration stays. */
static void warn_of_dra(struct plugin *p, const struct starter *me)
{
	if (!me->dra_driver || p->warned_dra)
		return;
	p->warned_dra = true;
	log_warn(
		"kubelet",
		"the pod has GPUs by DRA, which are not known when a pool that binds early chooses VFs resource=%s pod=%s/%s driver=%s",
		p->resource, me->c.owner.ns, me->c.owner.pod, me->dra_driver);
}

static void settle(struct prestart_call *s, const struct starter *me)
{
	struct plugin *p = s->plugin;
	const struct ledger_decision *d = start_decision(s, plugin_ledger(p));
	uint64_t number = d ? d->number : 0;
	const char *why = take(s, me, number);

	if (why) {
		tracker_save(p->env->tracker, NULL, NULL);
		refuse(s, why);
		return;
	}
	if (me->c.owner.pod) {
		const struct ledger_hold *hold = first_hold(s);

		number = hold ? hold->decision : number;
		log_info(
			"kubelet",
			"the container starts resource=%s pod=%s/%s uid=%s container=%s devices=%zu decision=%llu",
			p->resource, me->c.owner.ns, me->c.owner.pod, me->c.owner.uid,
			me->c.owner.container, s->ids.n, (unsigned long long)number);
		note_outcome(s, me, number);
		warn_of_dra(s->plugin, me);
	}
	probe(s, me);
	tracker_save(p->env->tracker, saved, pending_new(s, &s->saving));
}

/* --- which container is it? --- */

/* The container without devices of claims that it shares with other containers. */
static struct pod_container with_own_devices(const struct prestart_call *s, const struct pod *pod,
					     const struct pod_container *c)
{
	struct pod_container own = *c;

	own.dynamic = arena_array(s->arena, c->n_dynamic, sizeof(*own.dynamic));
	own.n_dynamic = 0;
	for (size_t i = 0; i < c->n_dynamic; i++) {
		if (pods_claim_gpus(s->plugin->node, pod, c, c->dynamic[i].claim) !=
		    PODS_CLAIM_SHARED)
			own.dynamic[own.n_dynamic++] = c->dynamic[i];
	}
	return own;
}

static struct starter starter_of(const struct prestart_call *s, const struct pod *pod,
				 const struct pod_container *c)
{
	const struct node *node = s->plugin->node;
	const char *driver = pods_gpus(node, c, "", s->arena).driver;
	struct pod_container own = with_own_devices(s, pod, c);
	struct pods_gpus gpus = pods_gpus(node, &own, s->plugin->resource, s->arena);
	struct starter me = { .c.owner = { .ns = arena_strdup(s->arena, pod->ns),
					   .pod = arena_strdup(s->arena, pod->name),
					   .container = arena_strdup(s->arena, c->name) } };

	me.c.gpus.v = gpus.v;
	me.c.gpus.n = gpus.n;
	me.has_dra = driver != NULL;
	/* Or the driver of another container, which one without GPUs may serve. */
	for (size_t i = 0; !driver && !me.c.gpus.n && i < pod->n_containers; i++)
		driver = pods_gpus(node, &pod->containers[i], "", s->arena).driver;
	me.dra_driver = arena_strdup(s->arena, driver);
	me.c.n_pool_vfs =
		grant_held_vfs(node, plugin_ledger(s->plugin), c, s->arena, &me.c.pool_vfs);
	return me;
}

/* Of two containers with the same VFs (docs/design/kubelet.md §2.2), is me the one that starts? */
static bool is_likelier(const struct prestart_call *s, const struct starter *me,
			const struct starter *other)
{
	const struct ledger_owner *mine = &me->c.owner;
	const struct ledger_hold *hold = first_hold(s);
	const struct ledger_decision *d;
	bool is_mine;

	if (!other->c.owner.pod)
		return true;
	if (!hold)
		return false;
	is_mine = holds_same_pod(mine, &hold->owner) &&
		  (!holds_same_pod(mine, &other->c.owner) ||
		   str_eq(mine->container, hold->owner.container));
	/* After the start of the hold's owner, the other container asks. */
	d = ledger_decision(plugin_ledger(s->plugin), hold->decision);
	return is_mine != (d && d->checked);
}

/* The kubelet's checkpoint has every admitted container; the UID, where all ids have the same. */
static void add_uid(const struct prestart_call *s, struct starter *me)
{
	const struct holds_entry *v;
	size_t n = tracker_checkpoint(s->plugin->env->tracker, &v);
	const char *uid = holds_checkpoint_uid(v, n, s->plugin->resource, s->ids.v, s->ids.n);

	holds_event(tracker_holds(s->plugin->env->tracker),
		    &(struct holds_event) { .kind = HOLDS_CHECKPOINT, .entries = v, .n = n },
		    tracker_now());
	me->c.owner.uid = arena_strdup(s->arena, uid);
}

static struct starter find_starter(const struct prestart_call *s, const struct pod_list *pods)
{
	struct starter found = { .dra_driver = NULL };

	for (size_t i = 0; i < pods->n; i++) {
		const struct pod *pod = &pods->v[i];

		for (size_t k = 0; k < pod->n_containers; k++) {
			const struct pod_container *c = &pod->containers[k];
			const struct ids *held = kubemsg_held(c, s->plugin->resource);
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

/* --- questions --- */

static void unknown(struct prestart_call *s, const char *why)
{
	struct starter me = { .dra_driver = NULL };

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

	kubeclient_podres_ask(p->env->podres,
			      &(struct podres_question) { .kind = PODRES_ASK_LIST_QUIETLY,
							  .timeout_ms = start_timeout_ms(p) },
			      listed, pending_new(s, &s->pods_asked));
}

static void got_pod(void *arg, enum podres_result result, const struct pod_list *pods,
		    const char *why)
{
	struct prestart_call *s = pending_end(arg);
	struct starter me;

	if (!s)
		return;
	if (result != PODRES_OK) {
		ask_list(s);
		return;
	}
	me = find_starter(s, pods);
	if (me.c.owner.pod)
		settle(s, &me);
	else
		ask_list(s);
}

/* The pod that the decision and all holds name: the only one to look at; NULL: none. */
static const struct ledger_owner *expected(const struct prestart_call *s)
{
	const struct ledger *l = plugin_ledger(s->plugin);
	const struct ledger_decision *d = start_decision(s, l);

	if (!d || !d->owner.pod || !*d->owner.pod ||
	    kubeclient_podres_state(s->plugin->env->podres).support != PODRES_GET)
		return NULL;
	for (size_t i = 0; i < s->ids.n; i++) {
		const struct ledger_hold *hold = ledger_find(l, s->ids.v[i]);

		if (!hold || hold->decision != d->number ||
		    !holds_same_pod(&hold->owner, &d->owner))
			return NULL;
	}
	return &d->owner;
}

static void ask(struct prestart_call *s)
{
	struct plugin *p = s->plugin;
	const struct ledger_owner *owner;

	if (!p->env->podres || kubeclient_podres_state(p->env->podres).support == PODRES_NOTHING) {
		unknown(s, NULL);
		return;
	}
	owner = expected(s);
	if (!owner) {
		ask_list(s);
		return;
	}
	kubeclient_podres_ask(p->env->podres,
			      &(struct podres_question) { .kind = PODRES_ASK_GET,
							  .ns = owner->ns,
							  .name = owner->pod,
							  .timeout_ms = start_timeout_ms(p) },
			      got_pod, pending_new(s, &s->pods_asked));
}

static int known_ids(const struct plugin *p, struct bytes request, struct arena *a, struct ids *ret,
		     struct err *err)
{
	const struct pool *pool = plugin_pool(p);
	int r = kubemsg_decode(&kubemsg_pre_start, request, a, ret, err);

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
