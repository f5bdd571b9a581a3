#include "rpc/work.h"

#include <assert.h>
#include <stdbool.h>
#include <stdlib.h>

#include "base/mem.h"
#include "base/thread.h"
#include "rpc/rpc.h"

struct rpc_work {
	const struct rpc_work_kind *kind;
	void *arg;
	struct rpc_work **slot; /* NULL: cancelled */

	pthread_mutex_t lock;
	struct rpc *rpc; /* NULL: cancelled, the thread frees it */
	bool refused;	 /* ended() will not run: rpc stops */
};

static void work_free(struct rpc_work *w)
{
	w->kind->free(w->arg);
	pthread_mutex_destroy(&w->lock);
	free(w);
}

static void ended(void *arg)
{
	struct rpc_work *w = arg;

	/* The thread may not have let go of it yet. */
	pthread_mutex_lock(&w->lock);
	pthread_mutex_unlock(&w->lock);
	if (w->slot) {
		*w->slot = NULL;
		w->kind->done(w->arg);
	}
	work_free(w);
}

static void *run(void *arg)
{
	struct rpc_work *w = arg;
	bool mine;

	w->kind->run(w->arg);
	pthread_mutex_lock(&w->lock);
	mine = !w->rpc;
	w->refused = !mine && !rpc_post(w->rpc, ended, w);
	pthread_mutex_unlock(&w->lock);
	if (mine)
		work_free(w);
	return NULL;
}

int rpc_work_start(struct rpc *rpc, const struct rpc_work_kind *kind, void *arg,
		   struct rpc_work **slot)
{
	struct rpc_work *w = xcalloc(1, sizeof(*w));
	pthread_t thread;
	int r;

	assert(!*slot);
	*w = (struct rpc_work) { .kind = kind, .arg = arg, .slot = slot, .rpc = rpc };
	pthread_mutex_init(&w->lock, NULL);
	*slot = w;
	r = thread_start(&thread, kind->name, kind->stack_bytes, run, w);
	if (r == 0) {
		pthread_detach(thread);
		return 0;
	}
	*slot = NULL;
	pthread_mutex_destroy(&w->lock);
	free(w);
	return r;
}

void rpc_work_cancel(struct rpc_work **slot)
{
	struct rpc_work *w = STEAL(*slot);
	bool mine;

	if (!w)
		return;
	w->slot = NULL;
	pthread_mutex_lock(&w->lock);
	w->rpc = NULL;
	mine = w->refused;
	pthread_mutex_unlock(&w->lock);
	if (mine)
		work_free(w);
}
