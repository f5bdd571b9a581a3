/*
 * Conditions of a reliable daemon, and limits of one that serves. /readyz prints them in the form
 * of the API server's /readyz?verbose; `railmatectl status`, the page and the metric
 * railmate_limited have the same ones.
 */
#include <stddef.h>

#include "base/arena.h"
#include "base/str.h"
#include "status/status-internal.h"

struct list {
	struct status_condition *v;
	size_t n;
};

static void add(struct list *l, const char *what, const char *problem, bool serves)
{
	l->v[l->n++] = (struct status_condition) { what, problem, serves };
}

/* The first resource of which pods are refused though they could be served. */
static const char *refusal_of(const struct status_facts *f, struct arena *a)
{
	for (size_t i = 0; f->node && i < f->service->n_pools; i++) {
		const struct status_pool *p = &f->service->pools[i];
		const struct pool *pool = node_pool(f->node, p->resource);
		uint64_t n[HOLDS_STATES] = { 0 };

		if (!p->refused || !pool)
			continue;
		status_count_states(f, pool, n);
		if (n[HOLDS_IS_FREE])
			return arena_printf(
				a,
				"a pod was refused %s within the last 10 minutes, and %llu VFs of it are free: the log has the reason (Allocate refused)",
				p->resource, (unsigned long long)n[HOLDS_IS_FREE]);
	}
	return NULL;
}

size_t status_conditions(const struct status_facts *f, struct arena *a,
			 const struct status_condition **ret)
{
	const struct status_service *s = f->service;
	const struct status_machine *m = &f->machine;
	struct list l = { arena_array(a, 7 + (s ? s->n_pools : 0), sizeof(*l.v)), 0 };

	*ret = l.v;
	add(&l, "config", m->config_error ? m->config_error : m->config_left_out, false);
	if (!s) {
		add(&l, "service",
		    "nothing is served yet: the hardware is being scanned, or another railmated has not ended",
		    false);
		return l.n;
	}
	for (size_t i = 0; i < s->n_pools; i++) {
		const struct status_pool *p = &s->pools[i];

		if (p->served)
			add(&l, arena_printf(a, "registered %s", p->resource), p->problem, false);
	}
	add(&l, "records", s->settled ? NULL : "not all records of earlier starts were read yet",
	    false);
	add(&l, "ledger",
	    s->ledger_failing ? "it cannot be written to disk"
	    : s->ledger_late  ? "the disk does not store it in time"
			      : NULL,
	    false);
	add(&l, "pods", s->pods_unseen, true);
	add(&l, "gpus", s->gpus_unknown, true);
	add(&l, "admissions", refusal_of(f, a), true);
	return l.n;
}

bool status_write_ready(const struct status_facts *f, struct strbuf *out)
{
	_cleanup_arena_ struct arena *a = arena_new(1024);
	const struct status_condition *v;
	size_t n = status_conditions(f, a, &v);
	bool ok = true;

	for (size_t i = 0; i < n; i++) {
		ok &= !v[i].problem || v[i].serves;
		if (!v[i].problem)
			strbuf_printf(out, "[+]%s ok\n", v[i].what);
		else
			strbuf_printf(out, "[%c]%s %s: %s\n", v[i].serves ? '!' : '-', v[i].what,
				      v[i].serves ? "limited" : "failed", v[i].problem);
	}
	return ok;
}
