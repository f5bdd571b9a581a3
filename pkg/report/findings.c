#include "report/findings.h"

#include <stdlib.h>
#include <uv.h>

#include "base/arena.h"
#include "base/err.h"
#include "base/mem.h"
#include "base/str.h"
#include "hw/inventory.h"
#include "pool/node.h"

/* The kubelet's first questions come first, and drivers bring up their devices one by one. */
#define SETTLE_MS 2000
#define LIMIT_MS  60000

struct findings {
	struct findings_env env;
	uv_timer_t settle;
	struct child *child;
	uint64_t hardware; /* of the newest node; 0: none yet */
};

static void report_failure(const struct findings *f, const char *why, const char *said)
{
	struct arena *a = arena_new(1024);
	struct findings_report *r = arena_alloc(a, sizeof(*r));

	*r = (struct findings_report) { .arena = a };
	r->doctor.verdict = STATUS_FOUND_UNKNOWN;
	r->doctor.failure =
		arena_printf(a, "railmatectl doctor %s%s%s", why, *said ? ": " : "", said);
	f->env.found(f->env.ctx, r);
}

static bool is_verdict(int status)
{
	return status == 0 || (status >= 5 && status <= 7); /* railmatectl(1), DOCTOR */
}

static void on_ended(void *ctx, const struct child_end *end)
{
	const struct findings *f = ctx;
	struct findings_report *report;
	struct err err = { 0 };
	char why[64];

	if (end->failure) {
		report_failure(f, end->failure, end->said);
	} else if (!is_verdict(end->status)) {
		snprintf(why, sizeof(why), "ended with status %d", end->status);
		report_failure(f, why, end->said);
	} else if (findings_read(end->out, end->len, &report, &err) < 0) {
		report_failure(f, "printed no report", err.msg);
	} else {
		f->env.found(f->env.ctx, report);
	}
}

static void settle(struct findings *f);

static void on_settled(uv_timer_t *timer)
{
	struct findings *f = timer->data;
	static const char *const words[] = { "doctor", "--json", "--node-only", NULL };

	if (!child_run(f->child, &f->env.machine, words))
		settle(f); /* of the hardware as it was */
}

static void settle(struct findings *f)
{
	uv_timer_start(&f->settle, on_settled, SETTLE_MS, 0);
}

static uint64_t hardware_of(const struct hw_inventory *inv)
{
	_cleanup_strbuf_ struct strbuf text = STRBUF_INIT;
	char bdf[BDF_STRLEN];

	for (size_t i = 0; i < inv->n_pci; i++) {
		const struct hw_pci *p = &inv->pci[i];
		bool has_rdma = p->physfn < 0 && hw_find_rdma(inv, (int)i) >= 0;

		strbuf_printf(&text, "%s %x:%x %s %d\n", bdf_format(p->bdf, bdf), p->vendor,
			      p->device, p->driver ? p->driver : "", has_rdma);
	}
	return str_hash(strbuf_str(&text));
}

struct findings *findings_new(const struct findings_env *env)
{
	_cleanup_free_ char *program = env->program ? xstrdup(env->program) : child_program();
	struct findings *f = xcalloc(1, sizeof(*f));

	f->env = *env;
	uv_timer_init(env->loop, &f->settle);
	f->settle.data = f;
	f->child = child_new(env->loop, program, LIMIT_MS, on_ended, f);
	return f;
}

void findings_update(struct findings *f, const struct node *node)
{
	uint64_t hardware;

	if (!f || pool_is_idle(node))
		return;
	hardware = hardware_of(node->inv);
	if (hardware == f->hardware)
		return;
	f->hardware = hardware;
	if (!uv_is_active((uv_handle_t *)&f->settle))
		settle(f);
}

void findings_close(struct findings *f)
{
	if (!f)
		return;
	child_close(f->child);
	uv_close((uv_handle_t *)&f->settle, NULL);
}

void findings_free(struct findings *f)
{
	if (!f)
		return;
	child_free(f->child);
	free(f);
}
