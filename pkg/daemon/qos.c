#include "daemon/qos.h"

#include <stdlib.h>

#include "base/err.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/str.h"
#include "config/config.h"
#include "hw/dcb.h"
#include "hw/inventory.h"
#include "pool/node.h"

struct qos {
	qos_ask *ask;
	char **said; /* to each pool of the node before; NULL: nothing */
	size_t n;
};

struct qos *qos_new(qos_ask *ask)
{
	struct qos *q = xcalloc(1, sizeof(*q));

	q->ask = ask;
	return q;
}

/* The configuration has made sure that it is a number. -1: the pool does not set it. */
static int policy_number(const struct pool_config *cfg, const char *name)
{
	for (size_t i = 0; i < cfg->n_env; i++) {
		if (str_eq(cfg->env[i].name, name))
			return (int)strtol(cfg->env[i].value, NULL, 0);
	}
	return -1;
}

static int pf_of(const struct hw_inventory *inv, const struct pool_dev *dev)
{
	if (dev->pci < 0)
		return -1;
	return inv->pci[dev->pci].is_vf ? inv->pci[dev->pci].physfn : dev->pci;
}

void qos_judge(qos_ask *ask, const struct node *node, const struct pool *pool, struct strbuf *out)
{
	int tc = policy_number(pool->cfg, "NCCL_IB_TC"), sl = policy_number(pool->cfg, "NCCL_IB_SL"),
	    last = -1;
	size_t others = 0;

	for (size_t i = 0; i < pool->n_devs && (tc >= 0 || sl >= 0); i++) {
		_cleanup_strbuf_ struct strbuf how = STRBUF_INIT;
		int pf = pf_of(node->inv, &pool->devs[i]);
		struct hw_dcb dcb;

		/* Devices are in the order of addresses, so those of a PF follow each other. */
		if (pf < 0 || pf == last || !node->inv->pci[pf].netdev)
			continue;
		last = pf;
		if (ask(node->inv->pci[pf].netdev, &dcb, NULL) < 0 || !hw_dcb_contradicts(&dcb, tc, sl, &how))
			continue;
		if (out->len)
			others++;
		else
			strbuf_printf(out, "%s: on %s, %s", pool->cfg->resource, node->inv->pci[pf].netdev,
				      strbuf_str(&how));
	}
	if (others)
		strbuf_printf(out, "; %zu more of its PFs contradict the pool's env, too", others);
}

void qos_look(struct qos *q, const struct node *node)
{
	char **said = xcalloc(node->n_pools, sizeof(*said));

	for (size_t i = 0; i < node->n_pools; i++) {
		struct strbuf text = STRBUF_INIT;

		qos_judge(q->ask, node, &node->pools[i], &text);
		if (text.len && (i >= q->n || !str_eq(q->said[i], text.s)))
			log_warn("pool", "%s", text.s);
		said[i] = text.len ? strbuf_steal(&text) : NULL;
	}
	for (size_t i = 0; i < q->n; i++)
		free(q->said[i]);
	free(q->said);
	q->said = said;
	q->n = node->n_pools;
}

void qos_free(struct qos *q)
{
	if (!q)
		return;
	for (size_t i = 0; i < q->n; i++)
		free(q->said[i]);
	free(q->said);
	free(q);
}
