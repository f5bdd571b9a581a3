/* Metrics of resources. */
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include "align/choose.h"
#include "base/arena.h"
#include "config/config.h"
#include "hw/inventory.h"
#include "ledger/ledger.h"
#include "pool/node.h"
#include "status/stats.h"
#include "status/status-internal.h"
#include "topo/topo.h"

#define SECOND_NS 1e9

static const char *const call_names[STATS_CALL_MAX] = {
	[STATS_OPTIONS] = "GetDevicePluginOptions",
	[STATS_PREFERRED] = "GetPreferredAllocation",
	[STATS_ALLOCATE] = "Allocate",
	[STATS_PRE_START] = "PreStartContainer",
};

/* https://grpc.io/docs/guides/status-codes/ */
static const char *const code_names[STATS_CODES] = { "OK",
						     "CANCELLED",
						     "UNKNOWN",
						     "INVALID_ARGUMENT",
						     "DEADLINE_EXCEEDED",
						     "NOT_FOUND",
						     "ALREADY_EXISTS",
						     "PERMISSION_DENIED",
						     "RESOURCE_EXHAUSTED",
						     "FAILED_PRECONDITION",
						     "ABORTED",
						     "OUT_OF_RANGE",
						     "UNIMPLEMENTED",
						     "INTERNAL",
						     "UNAVAILABLE",
						     "DATA_LOSS",
						     "UNAUTHENTICATED" };

static const char *const known_names[LEDGER_GPUS_MAX] = {
	[LEDGER_GPUS_UNKNOWN] = "unknown",
	[LEDGER_GPUS_PREDICTED] = "predicted",
	[LEDGER_GPUS_KNOWN] = "known",
};

/* --- the node's pools --- */

static void begin(struct writer *w, const char *resource, const char *part)
{
	status_sample(&w->e, part);
	status_label(&w->e, "resource", resource);
}

/* Pools of VFs, then those of shared HCAs. */
static const struct pool *pool_at(const struct writer *w, size_t i)
{
	const struct node *node = w->f->node;

	if (!node || i >= node->n_pools + node->n_shared)
		return NULL;
	return i < node->n_pools ? &node->pools[i] : &node->shared[i - node->n_pools];
}

void status_put_pool_info(struct writer *w, const struct metric *m)
{
	const struct pool *pool;

	for (size_t i = 0; (pool = pool_at(w, i)); i++) {
		begin(w, pool->cfg->resource, "");
		status_label(&w->e, "binding", status_binding(pool));
		status_count(&w->e, 1);
	}
}

void status_put_devices(struct writer *w, const struct metric *m)
{
	const struct pool *pool;

	for (size_t i = 0; (pool = pool_at(w, i)); i++) {
		uint64_t n[HOLDS_STATES] = { 0 };

		status_count_states(w->f, pool, n);
		for (int s = 0; w->f->service && s < HOLDS_STATES; s++) {
			begin(w, pool->cfg->resource, "");
			status_label(&w->e, "state", holds_state_names[s]);
			status_count(&w->e, n[s]);
		}
	}
}

void status_put_shares(struct writer *w, const struct metric *m)
{
	for (size_t i = 0; w->f->node && i < w->f->node->n_shared; i++) {
		begin(w, w->f->node->shared[i].cfg->resource, "");
		status_count(&w->e, w->f->node->shared[i].cfg->shares);
	}
}

void status_put_shares_held(struct writer *w, const struct metric *m)
{
	const struct status_service *s = w->f->service;

	for (size_t i = 0; s && i < s->n_shares; i++) {
		begin(w, s->shares[i].resource, "");
		status_label(&w->e, "namespace", s->shares[i].ns);
		status_label(&w->e, "pod", s->shares[i].pod);
		status_label(&w->e, "container", s->shares[i].container);
		status_count(&w->e, s->shares[i].n);
	}
}

void status_put_unhealthy(struct writer *w, const struct metric *m)
{
	const struct pool *pool;

	for (size_t i = 0; (pool = pool_at(w, i)); i++) {
		uint64_t n[POOL_FAULT_MAX] = { 0 };

		for (size_t k = 0; k < pool->n_devs; k++)
			n[pool->devs[k].fault]++;
		for (int s = POOL_FAULT_NONE + 1; s < POOL_FAULT_MAX; s++) {
			begin(w, pool->cfg->resource, "");
			status_label(&w->e, "reason", status_fault_names[s]);
			status_count(&w->e, n[s]);
		}
	}
}

void status_put_degraded(struct writer *w, const struct metric *m)
{
	const struct pool *pool;

	for (size_t i = 0; (pool = pool_at(w, i)); i++) {
		uint64_t n = 0;

		for (size_t k = 0; k < pool->n_devs; k++)
			n += pool->devs[k].degraded != NULL;
		begin(w, pool->cfg->resource, "");
		status_count(&w->e, n);
	}
}

/* --- counters of the service --- */

static bool is_registered(const struct status_pool *p)
{
	return p->registered;
}

static bool has_problem(const struct status_pool *p)
{
	return p->registered && p->problem;
}

static void put_of_served(struct writer *w, bool (*is)(const struct status_pool *p))
{
	const struct status_service *s = w->f->service;

	for (size_t i = 0; s && i < s->n_pools; i++) {
		if (!s->pools[i].served)
			continue;
		begin(w, s->pools[i].resource, "");
		status_count(&w->e, is(&s->pools[i]));
	}
}

void status_put_registered(struct writer *w, const struct metric *m)
{
	put_of_served(w, is_registered);
}

void status_put_offer_differs(struct writer *w, const struct metric *m)
{
	put_of_served(w, has_problem);
}

void status_put_pool_count(struct writer *w, const struct metric *m)
{
	const struct status_service *s = w->f->service;

	for (size_t i = 0; s && i < s->n_pools; i++) {
		begin(w, s->pools[i].resource, "");
		status_count(&w->e, *(const uint64_t *)((const char *)&s->pools[i] + m->field));
	}
}

static const struct stats_pool *stats_at(const struct writer *w, size_t i)
{
	const struct status_service *s = w->f->service;

	return s && i < s->n_stats ? s->stats[i] : NULL;
}

void status_put_stats_count(struct writer *w, const struct metric *m)
{
	const struct stats_pool *p;

	for (size_t i = 0; (p = stats_at(w, i)); i++) {
		begin(w, p->resource, "");
		status_count(&w->e, *(const uint64_t *)((const char *)p + m->field));
	}
}

/* OK, INVALID_ARGUMENT, NOT_FOUND, RESOURCE_EXHAUSTED, FAILED_PRECONDITION, UNIMPLEMENTED,
 * INTERNAL, UNAVAILABLE: the codes of railmated's answers (rpc_status_of() and a full queue).
 * increase() does not see a series that begins with 1, so their series begin with 0. */
#define CODES_OURS                                                                                 \
	(1u << 0 | 1u << 3 | 1u << 5 | 1u << 8 | 1u << 9 | 1u << 12 | 1u << 13 | 1u << 14)

void status_put_calls(struct writer *w, const struct metric *m)
{
	const struct stats_pool *p;

	for (size_t i = 0; (p = stats_at(w, i)); i++) {
		for (int c = 0; c < STATS_CALL_MAX; c++) {
			for (int code = 0; code < STATS_CODES; code++) {
				if (!(CODES_OURS >> code & 1) && !p->calls[c][code])
					continue;
				begin(w, p->resource, "");
				status_label(&w->e, "method", call_names[c]);
				status_label(&w->e, "code", code_names[code]);
				status_count(&w->e, p->calls[c][code]);
			}
		}
	}
}

static void put_histogram(struct writer *w, const struct stats_pool *p, const char *call,
			  const struct stats_histogram *h)
{
	uint64_t sum = 0;

	for (size_t i = 0; i <= STATS_BUCKETS; i++) {
		char le[32] = "+Inf";

		/* "0.0001", "1.0" */
		if (i < STATS_BUCKETS)
			snprintf(le, sizeof(le), "%.6f", (double)stats_bounds_ns[i] / SECOND_NS);
		for (size_t n = strlen(le); le[n - 1] == '0' && le[n - 2] != '.'; n--)
			le[n - 1] = '\0';
		sum += h->n[i];
		begin(w, p->resource, "_bucket");
		status_label(&w->e, "method", call);
		status_label(&w->e, "le", le);
		status_count(&w->e, sum);
	}
	begin(w, p->resource, "_sum");
	status_label(&w->e, "method", call);
	status_seconds(&w->e, h->sum_ns);
	begin(w, p->resource, "_count");
	status_label(&w->e, "method", call);
	status_count(&w->e, sum);
}

void status_put_durations(struct writer *w, const struct metric *m)
{
	const struct stats_pool *p;

	for (size_t i = 0; (p = stats_at(w, i)); i++) {
		for (int c = 0; c < STATS_CALL_MAX; c++)
			put_histogram(w, p, call_names[c], &p->latency[c]);
	}
}

void status_put_choices(struct writer *w, const struct metric *m)
{
	const struct stats_pool *p;

	for (size_t i = 0; (p = stats_at(w, i)); i++) {
		for (int k = 0; k < LEDGER_GPUS_MAX; k++) {
			begin(w, p->resource, "");
			status_label(&w->e, "gpus", known_names[k]);
			status_count(&w->e, p->choices[k]);
		}
	}
}

void status_put_pairs(struct writer *w, const struct metric *m)
{
	const struct stats_pool *p;

	for (size_t i = 0; (p = stats_at(w, i)); i++) {
		for (int c = TOPO_PIX; c < TOPO_CLASS_MAX; c++) {
			begin(w, p->resource, "");
			status_label(&w->e, "class", topo_class_name((enum topo_class)c));
			status_count(&w->e, p->pairs[c]);
		}
	}
}

/* --- free pairs --- */

/* The pairs of a container that took all free GPUs and VFs. */
static void count_free_pairs(struct writer *w, const struct pool *pool, uint64_t n[TOPO_CLASS_MAX])
{
	const struct hw_inventory *inv = w->f->node->inv;
	int *gpus = arena_array(w->a, inv->n_gpu, sizeof(*gpus));
	int *free_vfs = arena_array(w->a, pool->n_devs, sizeof(*free_vfs));
	struct choose_in in = {
		.node = w->f->node, .pool = pool, .available = free_vfs, .gpus.v = gpus
	};
	struct choose_out out;

	for (size_t i = 0; i < inv->n_gpu; i++) {
		bool busy = false;

		for (size_t k = 0; k < w->f->service->n_busy_gpus; k++)
			busy |= w->f->service->busy_gpus[k] == inv->gpu[i].pci;
		if (!busy)
			gpus[in.gpus.n++] = inv->gpu[i].pci;
	}
	for (size_t i = 0; i < pool->n_devs; i++) {
		if (status_verdict(w->f, pool, &pool->devs[i]).state == HOLDS_IS_FREE)
			free_vfs[in.n_available++] = (int)i;
	}
	in.want = in.gpus.n < in.n_available ? in.gpus.n : in.n_available;
	if (!in.want)
		return;
	out = align_choose(&in, false, w->a);
	for (size_t i = 0; i < out.n_pairs && i < in.want; i++)
		n[out.pairs[i].path.class]++;
}

void status_put_free_pairs(struct writer *w, const struct metric *m)
{
	if (!w->f->node || !w->f->service || !w->f->service->gpus_known)
		return;
	for (size_t i = 0; i < w->f->node->n_pools; i++) {
		const struct pool *pool = &w->f->node->pools[i];
		uint64_t n[TOPO_CLASS_MAX] = { 0 };

		count_free_pairs(w, pool, n);
		for (int c = TOPO_PIX; c < TOPO_CLASS_MAX; c++) {
			begin(w, pool->cfg->resource, "");
			status_label(&w->e, "class", topo_class_name((enum topo_class)c));
			status_count(&w->e, n[c]);
		}
	}
}
