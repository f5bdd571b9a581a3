#include "grant/vfprobe.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/queue.h>

#include "base/arena.h"
#include "base/err.h"
#include "base/mem.h"
#include "rpc/rpc.h"
#include "sysroot/sysroot.h"

#define TIMEOUT_MS  2000
#define MAX_THREADS 8
#define STACK_BYTES (256u << 10)

struct asked;

/* One probe. Its thread has copies of its own, and goes on when the caller has given up. */
struct job {
	grant_probe_fn probe;
	char *root, *netns_dir;
	struct bdf *bdfs;
	size_t n;
	struct arena *arena;
	struct vf_state *states;
	struct err err;

	/* the rpc thread's */
	TAILQ_ENTRY(job) link;
	struct vfprobe *vfprobe;
	struct rpc_work *work;
	struct asked *asked; /* NULL: answered already */
};

/* A caller that waits for a probe. */
struct asked {
	TAILQ_ENTRY(asked) link;
	struct vfprobe *vfprobe;
	struct job *job;
	bool runs; /* the job is its work's */
	struct rpc_timer *timer;
	char why[sizeof(((struct err *)NULL)->msg)]; /* the timer's sentence */
	grant_probe_done_fn done;
	void *arg;
};

struct vfprobe {
	struct vfprobe_env env;
	TAILQ_HEAD(, asked) asked; /* oldest first */
	TAILQ_HEAD(, job) jobs;	   /* whose threads run */
	unsigned n_jobs;
};

static void job_free(void *arg)
{
	struct job *j = arg;

	arena_free(j->arena);
	free(j->netns_dir);
	free(j->root);
	free(j->bdfs);
	free(j);
}

static struct job *job_new(struct vfprobe *t, const struct bdf *bdfs, size_t n, struct asked *asked)
{
	struct job *j = xcalloc(1, sizeof(*j));

	*j = (struct job) { .probe = t->env.probe, .n = n, .vfprobe = t, .asked = asked };
	j->root = xstrdup(t->env.root);
	j->netns_dir = t->env.netns_dir ? xstrdup(t->env.netns_dir) : NULL;
	j->bdfs = xcalloc(n, sizeof(*bdfs));
	for (size_t i = 0; i < n; i++)
		j->bdfs[i] = bdfs[i];
	j->arena = arena_new(16 * 1024);
	j->states = arena_array(j->arena, n, sizeof(*j->states));
	return j;
}

/* --- the thread --- */

static void probe(void *arg)
{
	struct job *j = arg;
	struct sysroot *root;

	if (sysroot_open(j->root, &root, &j->err) < 0)
		return;
	if (j->probe(root, j->netns_dir, j->bdfs, j->n, j->arena, j->states, &j->err) == 0)
		j->err.code = 0;
	sysroot_close(root);
}

/* --- the rpc thread --- */

/* The job, if its thread runs, goes on alone. */
static void answer(struct asked *a, const struct vf_state *states, const char *why)
{
	size_t n = a->job->n;

	TAILQ_REMOVE(&a->vfprobe->asked, a, link);
	rpc_timer_cancel(a->timer);
	a->job->asked = NULL;
	a->done(a->arg, states, n, why);
	if (!a->runs)
		job_free(a->job);
	free(a);
}

static void give_up(void *arg)
{
	struct asked *a = arg;

	a->timer = NULL;
	answer(a, NULL, a->why);
}

static void ended(void *arg);

static void start(struct asked *a)
{
	static const struct rpc_work_kind kind = { "vf-probe", STACK_BYTES, probe, ended,
						   job_free };
	struct vfprobe *t = a->vfprobe;
	int r = rpc_work_start(t->env.rpc, &kind, a->job, &a->job->work);

	if (r < 0) {
		rpc_timer_cancel(a->timer);
		snprintf(a->why, sizeof(a->why), "no thread can be started: %s", strerror(-r));
		a->timer = rpc_after(t->env.rpc, 0, give_up, a);
		return;
	}
	a->runs = true;
	TAILQ_INSERT_TAIL(&t->jobs, a->job, link);
	t->n_jobs++;
}

static void start_waiting(struct vfprobe *t)
{
	struct asked *a;

	for (a = TAILQ_FIRST(&t->asked); a && t->n_jobs < t->env.max_threads;
	     a = TAILQ_NEXT(a, link)) {
		if (!a->runs)
			start(a);
	}
}

static void ended(void *arg)
{
	struct job *j = arg;
	struct vfprobe *t = j->vfprobe;
	const char *why = j->err.code ? j->err.msg : NULL;

	TAILQ_REMOVE(&t->jobs, j, link);
	t->n_jobs--;
	if (j->asked)
		answer(j->asked, why ? NULL : j->states, why);
	start_waiting(t);
}

struct vfprobe *grant_probe_new(const struct vfprobe_env *env)
{
	struct vfprobe *t = xcalloc(1, sizeof(*t));

	t->env = *env;
	if (!t->env.timeout_ms)
		t->env.timeout_ms = TIMEOUT_MS;
	if (!t->env.max_threads)
		t->env.max_threads = MAX_THREADS;
	if (!t->env.probe)
		t->env.probe = devstate_vfs;
	TAILQ_INIT(&t->asked);
	TAILQ_INIT(&t->jobs);
	return t;
}

void grant_probe_start(struct vfprobe *t, const struct bdf *bdfs, size_t n,
		       grant_probe_done_fn done, void *arg)
{
	struct asked *a = xcalloc(1, sizeof(*a));

	*a = (struct asked) { .vfprobe = t, .done = done, .arg = arg };
	snprintf(a->why, sizeof(a->why), "the kernel did not answer within %u ms",
		 t->env.timeout_ms);
	a->job = job_new(t, bdfs, n, a);
	a->timer = rpc_after(t->env.rpc, t->env.timeout_ms, give_up, a);
	TAILQ_INSERT_TAIL(&t->asked, a, link);
	start_waiting(t);
}

void grant_probe_free(struct vfprobe *t)
{
	struct asked *a;
	struct job *j;

	if (!t)
		return;
	while ((a = TAILQ_FIRST(&t->asked)))
		answer(a, NULL, "railmated is stopping");
	while ((j = TAILQ_FIRST(&t->jobs))) {
		TAILQ_REMOVE(&t->jobs, j, link);
		rpc_work_cancel(&j->work);
	}
	free(t);
}
