/*
 * The state directory, and what containers hold, for the main thread: at the start, while it runs,
 * and of VFs that no pool lists.
 */
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/queue.h>
#include <uv.h>

#include "base/arena.h"
#include "base/err.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/str.h"
#include "config/config.h"
#include "daemon/binding-internal.h"
#include "daemon/state-internal.h"
#include "holds/holds.h"
#include "ledger/file.h"
#include "ledger/ledger.h"
#include "netlink/netlink.h"
#include "pool/node.h"
#include "rpc/rpc.h"
#include "sysroot/sysroot.h"
#include "tracker/tracker.h"

static void drop_ledger(struct state *s)
{
	ledger_free(STEAL(s->ledger));
	free(STEAL(s->seeds));
	s->n_seeds = 0;
}

static int load(struct state *s, struct err *err)
{
	_cleanup_free_ char *note = NULL;
	int r = ledger_file_load(s->file, &s->ledger, &note, err);

	if (r < 0) {
		ledger_file_close(STEAL(s->file));
		return r;
	}
	if (note)
		log_warn(
			"ledger",
			"the ledger cannot be read: allocations are rebuilt from CDI specs, map.json and the kubelet reason=%s",
			note);
	return 0;
}

/* The disk is no reason not to serve: without it, the kubelet is asked for the holds after a
 * restart. */
static int open_ledger(struct state *s, const char *dir, struct err *err)
{
	int r = dir ? ledger_file_open(dir, 0, &s->file, err) : 0;

	if (r == -EBUSY)
		return r;
	drop_ledger(s); /* the one of state_peek() */
	if (r == 0 && dir)
		r = load(s, err);
	if (r < 0)
		log_warn("ledger",
			 "the ledger is kept in memory, and the directory is tried again error=%s",
			 err->msg);
	s->away = r < 0 ? dir : NULL;
	return 0;
}

static void note_seeds(struct state *s)
{
	if (s->ledger)
		s->seeds = holdings_seeds(s->ledger, &s->n_seeds);
}

/* The devices of this kernel are not those of a machine below another root. */
static void open_users(struct state *s, const struct sysroot *root)
{
	struct err err = { 0 };

	if (sysroot_is_live(root) && rdma_users_open(&s->users, &err) < 0)
		log_info("ledger", "open RDMA devices cannot be read error=%s", err.msg);
}

int state_open(struct state *ret, const char *dir, const struct sysroot *root, struct err *err)
{
	struct err trouble = { 0 };
	int r = open_ledger(ret, dir, &trouble);

	if (r < 0)
		return err_set(err, trouble.code, "%s", trouble.msg);
	note_seeds(ret);
	open_users(ret, root);
	return 0;
}

void state_peek(struct state *ret, const char *dir)
{
	struct err ignored = { 0 };

	drop_ledger(ret);
	if (ledger_file_peek(dir, &ret->ledger, &ignored) == 0)
		note_seeds(ret);
}

bool state_is_in(const struct state *s, const struct node *node)
{
	for (size_t i = 0; i < s->n_seeds; i++) {
		const struct node_seed *seed = &s->seeds[i];
		const struct pool *pool = node_pool(node, seed->resource);

		if (pool && !pool_find(pool, seed->vf))
			return false;
	}
	return true;
}

static int count_users(void *ctx, const char *rdma, tracker_user_fn seen, void *arg)
{
	struct rdma_users *users = ctx;

	return users ? rdma_users_count(users, rdma, seen, arg) : -ENOTSUP;
}

static void log_note(void *ctx, bool bad, const char *event)
{
	log_event(bad ? LOG_LEVEL_WARN : LOG_LEVEL_INFO, "ledger", event);
}

struct tracker *state_make_tracker(struct state *s, const struct tracker_env *env)
{
	struct tracker_env full = *env;

	full.holds = holds_new(STEAL(s->ledger), &holds_default_pace, tracker_now());
	full.file = STEAL(s->file);
	full.away_dir = s->away;
	full.users = count_users;
	full.users_ctx = s->users;
	full.note = log_note;
	return tracker_new(&full);
}

void state_close(struct state *s)
{
	drop_ledger(s);
	ledger_file_close(STEAL(s->file));
	rdma_users_close(STEAL(s->users));
}

/* --- held VFs that the node does not list --- */

struct arrival {
	STAILQ_ENTRY(arrival) next;
	struct node_seed seed;
};

struct unlisted {
	void (*came)(void *ctx);
	void *ctx;
	uv_async_t wake;
	pthread_mutex_t lock;
	struct arena *arena;	       /* of the strings and arrivals; under the lock */
	STAILQ_HEAD(, arrival) coming; /* under the lock */
	struct node_seed *seeds;       /* main thread */
	size_t n, cap;
};

static void on_arrivals(uv_async_t *wake)
{
	struct unlisted *u = wake->data;

	u->came(u->ctx);
}

struct unlisted *unlisted_new(uv_loop_t *loop, void (*came)(void *ctx), void *ctx)
{
	struct unlisted *u = xcalloc(1, sizeof(*u));

	u->came = came;
	u->ctx = ctx;
	u->arena = arena_new(1024);
	pthread_mutex_init(&u->lock, NULL);
	STAILQ_INIT(&u->coming);
	uv_async_init(loop, &u->wake, on_arrivals);
	u->wake.data = u;
	return u;
}

void unlisted_add(struct unlisted *u, const struct node_seed *seed)
{
	struct arrival *arrival;

	pthread_mutex_lock(&u->lock);
	arrival = arena_alloc(u->arena, sizeof(*arrival));
	arrival->seed = (struct node_seed) { arena_strdup(u->arena, seed->resource),
					     arena_strdup(u->arena, seed->vf),
					     arena_strdup(u->arena, seed->rdma),
					     arena_strdup(u->arena, seed->driver) };
	STAILQ_INSERT_TAIL(&u->coming, arrival, next);
	pthread_mutex_unlock(&u->lock);
	uv_async_send(&u->wake);
}

const struct node_seed *unlisted_seeds(struct unlisted *u, size_t *ret_n)
{
	struct arrival *arrival;

	pthread_mutex_lock(&u->lock);
	while ((arrival = STAILQ_FIRST(&u->coming))) {
		STAILQ_REMOVE_HEAD(&u->coming, next);
		u->seeds = xgrow(u->seeds, &u->cap, u->n + 1, sizeof(*u->seeds));
		u->seeds[u->n++] = arrival->seed;
	}
	pthread_mutex_unlock(&u->lock);
	*ret_n = u->n;
	return u->seeds;
}

void unlisted_free(struct unlisted *u)
{
	if (!u)
		return;
	pthread_mutex_destroy(&u->lock);
	arena_free(u->arena);
	free(u->seeds);
	free(u);
}

/* --- what containers hold, for the main thread --- */

/* VFs that are left over are checked so often. */
#define CHECK_MS 1000

struct copy {
	struct ledger *ledger;
	struct arena *arena;
	struct ids promised; /* in the arena */
};

struct holdings {
	struct rpc *rpc;
	void (*came)(void *ctx, const struct ledger *held, const struct ids *promised);
	void *ctx;
	uv_async_t wake;
	pthread_mutex_t lock;
	struct copy *copy; /* under the lock: the newest; NULL: it was fetched */
	/* rpc thread */
	struct tracker *tracker;
	struct rpc_timer *timer;
};

/* --- on the rpc thread --- */

static void copy_free(struct copy *copy)
{
	if (!copy)
		return;
	ledger_free(copy->ledger);
	arena_free(copy->arena);
	free(copy);
}

static struct ids promised_of(const struct holdings *h, struct arena *a)
{
	struct holds_slots slots = holds_slots(tracker_holds(h->tracker), a);
	struct ids promised = { arena_array(a, slots.n_uses, sizeof(*promised.v)), 0 };

	for (size_t i = 0; i < slots.n_uses; i++) {
		if (!slots.uses[i].vf)
			promised.v[promised.n++] = arena_strdup(a, slots.uses[i].slot);
	}
	return promised;
}

static void push(struct holdings *h)
{
	struct copy *copy = xcalloc(1, sizeof(*copy));

	copy->ledger = ledger_copy(tracker_ledger(h->tracker));
	copy->arena = arena_new(1024);
	copy->promised = promised_of(h, copy->arena);
	pthread_mutex_lock(&h->lock);
	copy_free(h->copy);
	h->copy = copy;
	pthread_mutex_unlock(&h->lock);
	uv_async_send(&h->wake);
}

static void push_asked(void *arg)
{
	struct holdings *h = arg;

	if (h->tracker)
		push(h);
}

void holdings_follow(struct holdings *h, struct tracker *tracker)
{
	h->tracker = tracker;
	if (!tracker)
		rpc_timer_cancel(STEAL(h->timer));
}

static bool lists(const struct node *node, const struct ledger_hold *hold)
{
	const struct pool *pool = node_pool(node, hold->resource);

	return pool && pool_find(pool, hold->vf);
}

/* A pool that is bound otherwise than before, though a container got something of it meanwhile. */
static bool breaks(const struct holdings *h, const struct node *before, const struct node *node)
{
	_cleanup_arena_ struct arena *a = arena_new(1024);
	const struct binding_view view = { .ledger = tracker_ledger(h->tracker),
					   .promised = promised_of(h, a) };

	for (size_t i = 0; before && i < node->n_pools; i++) {
		const struct pool_config *cfg = node->pools[i].cfg;
		const struct pool *was = node_pool(before, cfg->resource);

		if (cfg->binding_auto && was && was->cfg->binding != cfg->binding &&
		    binding_breaks(binding_held(&view, cfg->resource), cfg->binding))
			return true;
	}
	return false;
}

bool holdings_permits(struct holdings *h, const struct node *node)
{
	const struct node *before = tracker_node(h->tracker);
	const struct ledger *l = tracker_ledger(h->tracker);

	if (breaks(h, before, node)) {
		push(h);
		return false;
	}
	for (size_t i = 0; before && i < ledger_holds(l); i++) {
		const struct ledger_hold *hold = ledger_hold_at(l, i);

		if (lists(before, hold) && !lists(node, hold)) {
			push(h);
			return false;
		}
	}
	return true;
}

static bool holds_of(const struct ledger *l, const char *resource)
{
	for (size_t i = 0; i < ledger_holds(l); i++) {
		if (!strcmp(ledger_hold_at(l, i)->resource, resource))
			return true;
	}
	return false;
}

static bool is_over(const struct holdings *h, const struct pool *pool)
{
	const struct ledger *l = tracker_ledger(h->tracker);

	if ((pool->cfg->retired || pool->cfg->binding_held) && !holds_of(l, pool->cfg->resource))
		return true;
	for (size_t i = 0; i < pool->n_devs; i++) {
		if (pool->devs[i].left_over && !ledger_find(l, pool->devs[i].id))
			return true;
	}
	return false;
}

static void check_left_over(void *arg)
{
	struct holdings *h = arg;
	const struct node *node = tracker_node(h->tracker);
	bool over = false;

	h->timer = NULL;
	for (size_t i = 0; i < node->n_pools && !over; i++)
		over = is_over(h, &node->pools[i]);
	if (over)
		push(h);
	h->timer = rpc_after(h->rpc, CHECK_MS, check_left_over, h);
}

static bool is_for_held(const struct node *node)
{
	for (size_t i = 0; i < node->n_pools; i++) {
		if (node->pools[i].cfg->binding_held)
			return true;
	}
	return false;
}

void holdings_published(struct holdings *h, struct node *node)
{
	rpc_timer_cancel(STEAL(h->timer));
	if (node_has_left_over(node) || is_for_held(node))
		h->timer = rpc_after(h->rpc, CHECK_MS, check_left_over, h);
}

/* --- on the main thread --- */

static void on_wake(uv_async_t *wake)
{
	struct holdings *h = wake->data;
	struct copy *copy;

	pthread_mutex_lock(&h->lock);
	copy = STEAL(h->copy);
	pthread_mutex_unlock(&h->lock);
	if (copy)
		h->came(h->ctx, copy->ledger, &copy->promised);
	copy_free(copy);
}

struct holdings *holdings_new(struct uv_loop_s *loop, struct rpc *rpc,
			      void (*came)(void *ctx, const struct ledger *held,
					   const struct ids *promised),
			      void *ctx)
{
	struct holdings *h = xcalloc(1, sizeof(*h));

	h->rpc = rpc;
	h->came = came;
	h->ctx = ctx;
	pthread_mutex_init(&h->lock, NULL);
	uv_async_init(loop, &h->wake, on_wake);
	h->wake.data = h;
	return h;
}

void holdings_ask(struct holdings *h)
{
	rpc_post(h->rpc, push_asked, h);
}

struct node_seed *holdings_seeds(const struct ledger *held, size_t *ret_n)
{
	size_t n = ledger_holds(held);
	struct node_seed *seeds = xcalloc(n, sizeof(*seeds));

	for (size_t i = 0; i < n; i++) {
		const struct ledger_hold *hold = ledger_hold_at(held, i);

		seeds[i] = (struct node_seed) { .resource = hold->resource,
						.vf = hold->vf,
						.rdma = hold->rdma,
						.driver = hold->driver };
	}
	*ret_n = n;
	return seeds;
}

/* Also if it is one of shared HCAs now: a resource has one plugin. */
static bool has_pool(const struct config *cfg, const char *resource)
{
	for (size_t i = 0; i < cfg->n_shared; i++) {
		if (str_eq(cfg->shared[i].resource, resource))
			return true;
	}
	for (size_t i = 0; i < cfg->n_pools; i++) {
		if (!cfg->pools[i].retired && str_eq(cfg->pools[i].resource, resource))
			return true;
	}
	return false;
}

bool *holdings_retired(const struct ledger *held, const struct config *before,
		       const struct config *next)
{
	bool *marked = xcalloc(before->n_pools, sizeof(*marked));

	for (size_t i = 0; i < before->n_pools; i++) {
		const char *resource = before->pools[i].resource;

		marked[i] = !has_pool(next, resource) && holds_of(held, resource);
	}
	return marked;
}

void holdings_free(struct holdings *h)
{
	if (!h)
		return;
	pthread_mutex_destroy(&h->lock);
	copy_free(h->copy);
	free(h);
}
