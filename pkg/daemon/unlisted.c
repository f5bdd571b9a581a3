#include "daemon/unlisted-internal.h"

#include <pthread.h>
#include <stdlib.h>
#include <sys/queue.h>
#include <uv.h>

#include "base/arena.h"
#include "base/mem.h"
#include "pool/node.h"

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

static void on_wake(uv_async_t *wake)
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
	uv_async_init(loop, &u->wake, on_wake);
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
