#include "daemon/qos-internal.h"

#include <stdlib.h>

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

/* Traffic classes beside NCCL_IB_TC, which goes together with NCCL_IB_SL. */
static const char *const classes[] = { "NCCL_IB_FIFO_TC", "UCX_IB_TRAFFIC_CLASS",
				       "NVSHMEM_IB_TRAFFIC_CLASS" };

/* -1: the pool does not set it, or to a word (UCX's auto). */
static int policy_number(const struct pool_config *cfg, const char *name)
{
	int number;

	for (size_t i = 0; i < cfg->n_env; i++) {
		if (str_eq(cfg->env[i].name, name))
			return str_to_int(cfg->env[i].value, &number) == 0 ? number : -1;
	}
	return -1;
}

static bool has_policy(const struct pool_config *cfg)
{
	bool any = policy_number(cfg, "NCCL_IB_TC") >= 0 || policy_number(cfg, "NCCL_IB_SL") >= 0;

	for (size_t i = 0; i < ARRAY_LEN(classes); i++)
		any = any || policy_number(cfg, classes[i]) >= 0;
	return any;
}

/* The variables that contradict the port, with "; " between. */
static bool contradicts(const struct pool_config *cfg, const struct hw_dcb *dcb, struct strbuf *out)
{
	bool any = hw_dcb_contradicts(dcb, policy_number(cfg, "NCCL_IB_TC"),
				      policy_number(cfg, "NCCL_IB_SL"), out);

	for (size_t i = 0; i < ARRAY_LEN(classes); i++) {
		_cleanup_strbuf_ struct strbuf how = STRBUF_INIT;
		int tc = policy_number(cfg, classes[i]);

		if (tc < 0 || !hw_dcb_class_contradicts(dcb, classes[i], tc, &how))
			continue;
		strbuf_printf(out, "%s%s", any ? "; " : "", strbuf_str(&how));
		any = true;
	}
	return any;
}

void qos_judge(qos_ask *ask, const struct node *node, const struct pool *pool, struct strbuf *out)
{
	bool asked = has_policy(pool->cfg);
	size_t others = 0;
	int last = -1;

	for (size_t i = 0; asked && i < pool->n_devs; i++) {
		_cleanup_strbuf_ struct strbuf how = STRBUF_INIT;
		int pf = hw_pf_of(node->inv, pool->devs[i].pci);
		struct hw_dcb dcb;

		/* Devices are in the order of addresses, so those of a PF follow each other. */
		if (pf < 0 || pf == last || !node->inv->pci[pf].netdev)
			continue;
		last = pf;
		if (ask(node->inv->pci[pf].netdev, &dcb, NULL) < 0 ||
		    !contradicts(pool->cfg, &dcb, &how))
			continue;
		if (out->len)
			others++;
		else
			strbuf_printf(out, "%s: on %s, %s", pool->cfg->resource,
				      node->inv->pci[pf].netdev, strbuf_str(&how));
	}
	if (others)
		strbuf_printf(out, "; %zu more of its PFs contradict the pool's env, too", others);
}

void qos_check(struct qos *q, const struct node *node)
{
	char **said = xcalloc(node->n_pools, sizeof(*said));

	for (size_t i = 0; i < node->n_pools; i++) {
		struct strbuf text = STRBUF_INIT;

		qos_judge(q->ask, node, &node->pools[i], &text);
		if (text.len && (i >= q->n || !str_eq(q->said[i], text.s)))
			log_warn("pool", "env of the pool contradicts its PFs reason=%s", text.s);
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
