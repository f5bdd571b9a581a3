/*
 * Which RDMA devices are open. Of those that no container has this looks every few seconds, as the
 * kernel tells of no change: one that something else has open is not offered (holds_judge()), and
 * the lists are made anew when that changes.
 *
 * Daemons of the host (ibacm, a monitor) open every RDMA device there is, for good. So the contexts
 * that all devices without a hold have, PFs' too, are not a container's. With every device held,
 * the number of before counts.
 */
#include "tracker/tracker-internal.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/clock.h"
#include "base/mem.h"
#include "hw/bdf.h"
#include "hw/inventory.h"
#include "pool/node.h"
#include "rpc/rpc.h"

/* One look at all devices. */
struct glance {
	struct arena *arena;
	struct opened *v; /* in the order of the names */
	size_t n, cap;
};

static void note(void *arg, const char *rdma, unsigned users)
{
	struct glance *g = arg;

	g->v = xgrow(g->v, &g->cap, g->n + 1, sizeof(*g->v));
	g->v[g->n++] = (struct opened) { .rdma = arena_strdup(g->arena, rdma), .users = users };
}

static int by_name(const void *x, const void *y)
{
	const struct opened *a = x, *b = y;

	return strcmp(a->rdma, b->rdma);
}

static struct opened *find(const struct opened *sorted, size_t n, const char *rdma)
{
	const struct opened key = { .rdma = (char *)rdma };

	return n ? bsearch(&key, sorted, n, sizeof(*sorted), by_name) : NULL;
}

static bool is_held(const struct tracker *k, const struct hw_rdma *rdma)
{
	char bdf[BDF_STRLEN];

	return rdma->pci < 0 ||
	       ledger_find(tracker_ledger(k), bdf_format(k->node->inv->pci[rdma->pci].bdf, bdf));
}

/* Those that no container has; the contexts of the host's daemons are taken off. */
static void leave_free(struct tracker *k, struct glance *g)
{
	const struct hw_inventory *inv = k->node->inv;
	unsigned least = UINT_MAX;
	size_t n = 0;

	for (size_t i = 0; i < inv->n_rdma; i++) {
		struct opened *o = find(g->v, g->n, inv->rdma[i].name);

		if (!o || is_held(k, &inv->rdma[i]))
			continue;
		o->is_free = true;
		least = o->users < least ? o->users : least;
	}
	if (least != UINT_MAX)
		k->host_users = least;
	for (size_t i = 0; i < g->n; i++) {
		if (!g->v[i].is_free || g->v[i].users <= least)
			continue;
		g->v[n] = g->v[i];
		g->v[n++].users -= least;
	}
	g->n = n;
}

static size_t count_long(const struct opened *v, size_t n)
{
	size_t count = 0;

	for (size_t i = 0; i < n; i++)
		count += v[i].is_long;
	return count;
}

/* -errno: it cannot be known here. */
static int look(struct tracker *k)
{
	struct glance g = { .arena = arena_new(4096) };
	size_t n_same = 0;
	int r = k->env.users(k->env.users_ctx, NULL, note, &g);

	if (r < 0) {
		arena_free(g.arena);
		free(g.v);
		return r;
	}
	k->looked_ms = clock_mono_ms();
	if (g.n)
		qsort(g.v, g.n, sizeof(*g.v), by_name);
	leave_free(k, &g);
	for (size_t i = 0; i < g.n; i++) {
		const struct opened *was = find(k->opened, k->n_opened, g.v[i].rdma);

		g.v[i].since_ms = was ? was->since_ms : k->looked_ms;
		g.v[i].is_long = k->looked_ms - g.v[i].since_ms >= (int64_t)k->pace.doubt_ms;
		n_same += g.v[i].is_long && was && was->is_long;
	}
	if (n_same != count_long(k->opened, k->n_opened) || n_same != count_long(g.v, g.n))
		tracker_tell_changed(k);
	arena_free(k->opened_arena);
	free(k->opened);
	k->opened_arena = g.arena;
	k->opened = g.v;
	k->n_opened = g.n;
	return 0;
}

static void look_again(void *arg)
{
	struct tracker *k = arg;
	bool doubts;

	k->look = NULL;
	if (look(k) < 0)
		return;
	doubts = count_long(k->opened, k->n_opened) < k->n_opened;
	k->look = rpc_after(k->env.rpc, doubts ? k->pace.doubt_ms : k->pace.look_ms, look_again, k);
}

void tracker_open_begin(struct tracker *k)
{
	rpc_timer_cancel(STEAL(k->look));
	if (k->env.users && k->node->inv->n_rdma)
		look_again(k);
}

void tracker_open_done(struct tracker *k)
{
	rpc_timer_cancel(STEAL(k->look));
	arena_free(k->opened_arena);
	free(k->opened);
}

static const char *sentence(const char *rdma, unsigned users, struct arena *a)
{
	return arena_printf(a, "its RDMA device %s is open (%u %s)", rdma, users,
			    users == 1 ? "context" : "contexts");
}

const char *tracker_open_long(struct tracker *k, const char *rdma, struct arena *a)
{
	const struct opened *o = find(k->opened, k->n_opened, rdma);

	return o && o->is_long ? sentence(rdma, o->users, a) : NULL;
}

static void take(void *arg, const char *rdma, unsigned users)
{
	*(unsigned *)arg = users;
}

const char *tracker_open_now(struct tracker *k, const char *rdma, struct arena *a)
{
	unsigned users = 0;

	if (!k->env.users || k->env.users(k->env.users_ctx, rdma, take, &users) < 0 || !users)
		return NULL;
	if (!k->looked_ms || clock_mono_ms() - k->looked_ms >= (int64_t)k->pace.host_ms)
		look(k);
	return users > k->host_users ? sentence(rdma, users - k->host_users, a) : NULL;
}
