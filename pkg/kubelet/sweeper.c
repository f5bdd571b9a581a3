#include "kubelet/sweeper.h"

#include <stdbool.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/mem.h"
#include "kubelet/keeper.h"
#include "kubelet/podres.h"
#include "kubelet/rundir.h"
#include "pool/node.h"
#include "rpc/rpc.h"

#define PATIENCE_MS 10000
#define TIMEOUT_MS  2000

/* Outlives its owner while a question is under way. */
struct sweeper {
	struct sweeper_env env;
	struct node *node;
	struct rpc_timer *timer;
	bool asking, gone;
	bool told; /* the kubelet has: the ledger knows every container that runs */
	int64_t asked_ms;
};

static void wait_for_kubelet(struct sweeper *s);

static void sweep(struct sweeper *s)
{
	bool left = rundir_sweep(s->env.rundir, keeper_ledger(s->env.keeper), !s->told);

	if (left && !s->told)
		wait_for_kubelet(s);
}

static void destroy(struct sweeper *s)
{
	node_unref(s->node);
	free(s);
}

static void listed(void *arg, enum podres_result result, const struct pod_list *pods, const char *why)
{
	struct sweeper *s = arg;

	(void)why;
	s->asking = false;
	if (s->gone) {
		destroy(s);
		return;
	}
	s->told = result == PODRES_OK;
	if (s->told)
		keeper_reconcile(s->env.keeper, s->node, pods, s->asked_ms);
	sweep(s);
}

static void ask(void *arg)
{
	struct sweeper *s = arg;

	s->timer = NULL;
	s->asking = true;
	s->asked_ms = clock_mono_ms();
	podres_list_quietly(s->env.podres, TIMEOUT_MS, listed, s);
}

static void wait_for_kubelet(struct sweeper *s)
{
	if (s->env.podres && s->node && !s->timer && !s->asking)
		s->timer = rpc_after(s->env.rpc, s->env.patience_ms, ask, s);
}

struct sweeper *sweeper_new(const struct sweeper_env *env)
{
	struct sweeper *s = xcalloc(1, sizeof(*s));

	s->env = *env;
	if (!s->env.patience_ms)
		s->env.patience_ms = PATIENCE_MS;
	return s;
}

void sweeper_update(struct sweeper *s, struct node *node)
{
	struct node *before = s->node;

	s->node = node_ref(node);
	node_unref(before);
	sweep(s);
}

void sweeper_sweep(struct sweeper *s)
{
	sweep(s);
}

void sweeper_free(struct sweeper *s)
{
	if (!s)
		return;
	rpc_timer_cancel(STEAL(s->timer));
	s->gone = true;
	if (!s->asking)
		destroy(s);
}
