#include "report/picture.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <uv.h>

#include "base/arena.h"
#include "base/clock.h"
#include "base/mem.h"
#include "base/str.h"

#define LIMIT_MS    10000
#define APART_MS    1000
#define PATIENCE_MS 250

struct picture {
	struct picture_env env;
	/* main thread */
	uv_async_t wake;
	uv_timer_t later;
	struct child *child;
	int64_t began_ms;
	uint64_t making; /* the state that the child sees, or a newer one */

	pthread_mutex_t lock; /* for all that follows */
	pthread_cond_t came;
	uint64_t wanted;
	uint64_t runs; /* that have ended; the members below are the last one's */
	uint64_t made; /* its state */
	char *text;    /* NULL: it failed, or there was none */
	char *failure; /* NULL likewise */
};

/* --- on the main thread --- */

static void begin(struct picture *p)
{
	const struct picture_env *e = &p->env;
	const char *const words[] = { "topo",
				      "--svg",
				      "--control-socket",
				      e->control_socket ? e->control_socket : "none",
				      "--state-dir",
				      e->state_dir ? e->state_dir : "none",
				      NULL };
	uint64_t wanted;
	bool is_there; /* made while the timer ran */

	pthread_mutex_lock(&p->lock);
	wanted = p->wanted;
	is_there = p->text && p->made == wanted;
	pthread_mutex_unlock(&p->lock);
	if (is_there || !child_run(p->child, &e->machine, words))
		return; /* who looks asks again */
	p->making = wanted;
	p->began_ms = clock_mono_ms();
}

static void on_later(uv_timer_t *timer)
{
	begin(timer->data);
}

static void on_wake(uv_async_t *wake)
{
	struct picture *p = wake->data;
	int64_t passed_ms = clock_mono_ms() - p->began_ms;

	if (uv_is_active((uv_handle_t *)&p->later))
		return;
	if (p->began_ms && passed_ms < APART_MS)
		uv_timer_start(&p->later, on_later, (uint64_t)(APART_MS - passed_ms), 0);
	else
		begin(p);
}

static char *failure_of(const struct child_end *end)
{
	if (end->failure)
		return xasprintf("railmatectl topo %s", end->failure);
	if (end->status)
		return xasprintf("railmatectl topo ended with status %d: %s", end->status,
				 end->said);
	return str_starts(end->out, "<svg ") ? NULL
					     : xstrdup("railmatectl topo printed no picture");
}

static void on_ended(void *ctx, const struct child_end *end)
{
	struct picture *p = ctx;

	pthread_mutex_lock(&p->lock);
	free(p->failure);
	p->failure = failure_of(end);
	free(p->text);
	p->text = p->failure ? NULL : xstrdup(end->out);
	p->made = p->making;
	p->runs++;
	pthread_cond_signal(&p->came);
	pthread_mutex_unlock(&p->lock);
	p->env.made(p->env.ctx);
}

struct picture *picture_new(const struct picture_env *env)
{
	_cleanup_free_ char *program = env->program ? xstrdup(env->program) : child_program();
	struct picture *p = xcalloc(1, sizeof(*p));
	pthread_condattr_t monotonic;

	p->env = *env;
	pthread_mutex_init(&p->lock, NULL);
	pthread_condattr_init(&monotonic);
	pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
	pthread_cond_init(&p->came, &monotonic);
	pthread_condattr_destroy(&monotonic);
	uv_async_init(env->loop, &p->wake, on_wake);
	p->wake.data = p;
	uv_timer_init(env->loop, &p->later);
	p->later.data = p;
	p->child = child_new(env->loop, program, LIMIT_MS, on_ended, p);
	return p;
}

void picture_close(struct picture *p)
{
	if (!p)
		return;
	child_close(p->child);
	uv_close((uv_handle_t *)&p->wake, NULL);
	uv_close((uv_handle_t *)&p->later, NULL);
}

void picture_free(struct picture *p)
{
	if (!p)
		return;
	child_free(p->child);
	pthread_cond_destroy(&p->came);
	pthread_mutex_destroy(&p->lock);
	free(p->text);
	free(p->failure);
	free(p);
}

/* --- on the thread of the page --- */

static struct timespec patience_ends(void)
{
	int64_t ns = clock_mono_ns() + PATIENCE_MS * INT64_C(1000000);

	return (struct timespec) { ns / 1000000000, (long)(ns % 1000000000) };
}

const char *picture_show(struct picture *p, uint64_t state, struct arena *a,
			 const char **ret_failure)
{
	struct timespec end = patience_ends();
	const char *text;
	uint64_t runs;
	int r = 0;

	pthread_mutex_lock(&p->lock);
	runs = p->runs;
	p->wanted = state;
	if (!p->text || p->made != state)
		uv_async_send(&p->wake);
	while (r == 0 && (!p->text || p->made != state) && p->runs == runs)
		r = pthread_cond_timedwait(&p->came, &p->lock, &end);
	text = arena_strdup(a, p->text);
	*ret_failure = arena_strdup(a, p->failure);
	pthread_mutex_unlock(&p->lock);
	return text;
}
