#include "report/findings.h"

#include <malloc.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <uv.h>

#include "base/arena.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/str.h"
#include "base/thread.h"
#include "diagnosis/diagnosis.h"
#include "doctor/doctor.h"
#include "facts/facts.h"
#include "facts/gather.h"
#include "hw/inventory.h"
#include "pool/empty.h"
#include "pool/node.h"
#include "sysroot/sysroot.h"

/* The kubelet's first questions come first, and drivers bring up their devices one by one. */
#define SETTLE_MS   2000
#define STACK_BYTES (512 * 1024)

struct findings {
	const struct sysroot *root;
	void (*found)(void *ctx, struct findings_report *report);
	void *ctx;
	uv_timer_t settle;
	uv_async_t wake;
	struct node *next; /* to be looked at; NULL: none */
	uint64_t hardware; /* of the last one; 0: none yet */
	bool running;
	pthread_t thread;

	/* the thread's, as long as it runs */
	struct node *node;
	struct findings_report *report;
};

/* --- on a thread of its own --- */

static const struct status_fix *fixes_of(const struct diagnosis_advice *advice, struct arena *a,
					 size_t *ret_n)
{
	static const char *const where[DIAGNOSIS_PLATFORM_MAX] = {
		[DIAGNOSIS_GRUB] = "Ubuntu, RHEL",
		[DIAGNOSIS_OPENSHIFT] = "OpenShift",
		[DIAGNOSIS_TALOS] = "Talos",
	};
	struct status_fix *v = arena_array(a, DIAGNOSIS_PLATFORM_MAX, sizeof(*v));
	size_t n = 0;

	for (int p = 0; p < DIAGNOSIS_PLATFORM_MAX; p++) {
		if (advice->fix[p])
			v[n++] = (struct status_fix) { where[p], advice->fix[p] };
	}
	if (n == 1)
		v->where = NULL; /* the same everywhere */
	*ret_n = n;
	return v;
}

/* What doctor's checks say of themselves is static; what they found goes with the report. */
static struct findings_report *report_of(const struct facts *facts, const struct diagnosis *from)
{
	struct arena *a = arena_new(4096);
	struct findings_report *r = arena_alloc(a, sizeof(*r));
	const struct diagnosis_kind *kinds;
	size_t n = diagnosis_kinds(from, &kinds);
	struct status_finding *v = arena_array(a, n, sizeof(*v));

	_Static_assert((int)STATUS_FOUND_FAIL == (int)DIAGNOSIS_FAIL &&
			       (int)STATUS_FOUND_MAX == (int)DIAGNOSIS_VERDICT_MAX,
		       "the verdicts are doctor's");
	*r = (struct findings_report) { .arena = a };
	for (size_t i = 0; i < n; i++) {
		const struct diagnosis_finding *first = kinds[i].first;
		const char **shown = arena_array(a, kinds[i].n_shown, sizeof(*shown));

		for (size_t k = 0; k < kinds[i].n_shown; k++)
			shown[k] = arena_strdup(a, kinds[i].shown[k]);
		v[i] = (struct status_finding) { .verdict = (enum status_found)first->verdict,
						 .check = first->check->id,
						 .title = first->check->title,
						 .n = kinds[i].n,
						 .shown = shown,
						 .n_shown = kinds[i].n_shown,
						 .meaning = first->advice->meaning };
		v[i].fixes = fixes_of(first->advice, a, &v[i].n_fixes);
		r->doctor.n_by_verdict[v[i].verdict] += kinds[i].n;
	}
	r->doctor.verdict = (enum status_found)diagnosis_worst(from);
	r->doctor.confined = facts->confined == FACTS_YES;
	r->doctor.v = v;
	r->doctor.n = n;
	return r;
}

static void *run_doctor(void *arg)
{
	struct findings *f = arg;
	struct facts *facts = facts_gather(f->root, f->node->inv, f->node->topo, FACTS_OF_NODE);
	struct diagnosis *report = NULL;

	facts->rails = f->node->rails;
	if (doctor_run(facts, NULL, &report, NULL) == 0)
		f->report = report_of(facts, report);
	diagnosis_free(report);
	facts_free(facts);
	malloc_trim(0);
	uv_async_send(&f->wake);
	return NULL;
}

/* --- on the main thread --- */

static void settle(struct findings *f);

static void join_thread(struct findings *f)
{
	pthread_join(f->thread, NULL);
	f->running = false;
	node_unref(STEAL(f->node));
}

static void on_wake(uv_async_t *wake)
{
	struct findings *f = wake->data;

	join_thread(f);
	if (f->report)
		f->found(f->ctx, STEAL(f->report));
	if (f->next)
		settle(f);
}

static void on_settled(uv_timer_t *timer)
{
	struct findings *f = timer->data;
	int r;

	f->node = STEAL(f->next);
	r = thread_start(&f->thread, "doctor", STACK_BYTES, run_doctor, f);
	f->running = r == 0;
	if (f->running)
		return;
	node_unref(STEAL(f->node));
	f->hardware = 0;
	log_warn(
		"doctor",
		"a thread for doctor cannot be started; tried again when the hardware changes error=%s",
		strerror(-r));
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

struct findings *findings_new(struct uv_loop_s *loop, const struct sysroot *root,
			      void (*found)(void *ctx, struct findings_report *report), void *ctx)
{
	struct findings *f = xcalloc(1, sizeof(*f));

	*f = (struct findings) { .root = root, .found = found, .ctx = ctx };
	uv_timer_init(loop, &f->settle);
	f->settle.data = f;
	uv_async_init(loop, &f->wake, on_wake);
	f->wake.data = f;
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
	node_unref(f->next);
	f->next = node_ref((struct node *)node);
	if (!f->running && !uv_is_active((uv_handle_t *)&f->settle))
		settle(f);
}

void findings_close(struct findings *f)
{
	if (!f)
		return;
	if (f->running)
		join_thread(f);
	uv_close((uv_handle_t *)&f->settle, NULL);
	uv_close((uv_handle_t *)&f->wake, NULL);
}

void findings_free(struct findings *f)
{
	if (!f)
		return;
	if (f->report)
		arena_free(f->report->arena);
	node_unref(f->next);
	free(f);
}
