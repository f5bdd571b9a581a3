#include "daemon/holdings-internal.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <uv.h>

#include "base/mem.h"
#include "base/str.h"
#include "config/config.h"
#include "ledger/ledger.h"
#include "pool/node.h"
#include "rpc/rpc.h"
#include "tracker/tracker.h"

/* VFs that are left over are checked so often. */
#define CHECK_MS 1000

struct holdings {
	struct rpc *rpc;
	void (*came)(void *ctx, const struct ledger *held);
	void *ctx;
	uv_async_t wake;
	pthread_mutex_t lock;
	struct ledger *copy; /* under the lock: the newest; NULL: it was fetched */
	/* rpc thread */
	struct tracker *tracker;
	struct rpc_timer *timer;
};

/* --- on the rpc thread --- */

static void push(struct holdings *h)
{
	struct ledger *copy = ledger_copy(tracker_ledger(h->tracker));

	pthread_mutex_lock(&h->lock);
	ledger_free(h->copy);
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

bool holdings_permits(struct holdings *h, const struct node *node)
{
	const struct node *before = tracker_node(h->tracker);
	const struct ledger *l = tracker_ledger(h->tracker);

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

static bool is_for_slots(const struct node *node)
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
	if (node_has_left_over(node) || is_for_slots(node))
		h->timer = rpc_after(h->rpc, CHECK_MS, check_left_over, h);
}

/* --- on the main thread --- */

static void on_wake(uv_async_t *wake)
{
	struct holdings *h = wake->data;
	struct ledger *held;

	pthread_mutex_lock(&h->lock);
	held = STEAL(h->copy);
	pthread_mutex_unlock(&h->lock);
	if (held)
		h->came(h->ctx, held);
	ledger_free(held);
}

struct holdings *holdings_new(struct uv_loop_s *loop, struct rpc *rpc,
			      void (*came)(void *ctx, const struct ledger *held), void *ctx)
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
	ledger_free(h->copy);
	free(h);
}
