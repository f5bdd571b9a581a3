#include "grant/vfprobe.h"

#include <errno.h>
#include <pthread.h>
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

/*
 * One probe and its thread. The thread has copies of its own; rpc, by which it answers, is under
 * the lock and NULL once the probes are closed. The thread or the rpc thread frees it, whichever is
 * the last to use it.
 */
struct job {
	grant_probe_fn probe;
	char *root, *netns_dir;
	struct bdf *bdfs;
	size_t n;
	struct arena *arena;
	struct vf_state *states;
	struct err err;

	pthread_mutex_t lock;
	struct rpc *rpc; /* NULL: the probes are closed */
	bool posted;	 /* ended() will run */
	bool refused;	 /* it will not: the rpc thread stops */

	/* the rpc thread's */
	TAILQ_ENTRY(job) link;
	struct vfprobe *vfprobe; /* NULL: gone */
	struct asked *asked;	 /* NULL: answered already */
};

/* A caller that waits for a probe. */
struct asked {
	TAILQ_ENTRY(asked) link;
	struct vfprobe *vfprobe;
	struct job *job;
	bool runs;
	struct rpc_timer *timer;
	char why[sizeof(((struct err *)NULL)->msg)]; /* what the timer says */
	grant_probe_done_fn done;
	void *arg;
};

struct vfprobe {
	struct vfprobe_env env;
	TAILQ_HEAD(, asked) asked; /* oldest first */
	TAILQ_HEAD(, job) jobs;	   /* whose threads run */
	unsigned n_jobs;
};

static void job_free(struct job *j)
{
	pthread_mutex_destroy(&j->lock);
	arena_free(j->arena);
	free(j->netns_dir);
	free(j->root);
	free(j->bdfs);
	free(j);
}

static struct job *job_new(struct vfprobe *t, const struct bdf *bdfs, size_t n, struct asked *asked)
{
	struct job *j = xcalloc(1, sizeof(*j));

	*j = (struct job) {
		.probe = t->env.probe, .n = n, .rpc = t->env.rpc, .vfprobe = t, .asked = asked
	};
	pthread_mutex_init(&j->lock, NULL);
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

static void ended(void *arg);

static void probe(struct job *j)
{
	struct sysroot *root;

	if (sysroot_open(j->root, &root, &j->err) < 0)
		return;
	if (j->probe(root, j->netns_dir, j->bdfs, j->n, j->arena, j->states, &j->err) == 0)
		j->err.code = 0;
	sysroot_close(root);
}

static void *run(void *arg)
{
	struct job *j = arg;
	bool mine;

	pthread_setname_np(pthread_self(), "vf-probe");
	probe(j);
	pthread_mutex_lock(&j->lock);
	mine = !j->rpc;
	if (j->rpc) {
		j->posted = rpc_post(j->rpc, ended, j);
		j->refused = !j->posted;
	}
	pthread_mutex_unlock(&j->lock);
	if (mine)
		job_free(j);
	return NULL;
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

/* Signals are blocked already: the thread is the rpc thread's child. */
static void start(struct asked *a)
{
	struct vfprobe *t = a->vfprobe;
	pthread_attr_t attr;
	pthread_t thread;
	int code;

	pthread_attr_init(&attr);
	pthread_attr_setstacksize(&attr, STACK_BYTES);
	pthread_attr_setdetachstate(&attr, PTHREAD_CREATE_DETACHED);
	code = pthread_create(&thread, &attr, run, a->job);
	pthread_attr_destroy(&attr);
	if (code) {
		rpc_timer_cancel(a->timer);
		snprintf(a->why, sizeof(a->why), "no thread can be started: %s", strerror(code));
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

	/* The thread may not have let go of it yet. */
	pthread_mutex_lock(&j->lock);
	pthread_mutex_unlock(&j->lock);
	if (t) {
		const char *why = j->err.code ? j->err.msg : NULL;

		TAILQ_REMOVE(&t->jobs, j, link);
		t->n_jobs--;
		if (j->asked)
			answer(j->asked, why ? NULL : j->states, why);
		start_waiting(t);
	}
	job_free(j);
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
	bool mine;

	if (!t)
		return;
	while ((a = TAILQ_FIRST(&t->asked)))
		answer(a, NULL, "railmated is stopping");
	while ((j = TAILQ_FIRST(&t->jobs))) {
		TAILQ_REMOVE(&t->jobs, j, link);
		/* One whose thread still runs is the thread's from now on. */
		pthread_mutex_lock(&j->lock);
		j->rpc = NULL;
		j->vfprobe = NULL;
		mine = j->refused;
		pthread_mutex_unlock(&j->lock);
		if (mine)
			job_free(j);
	}
	free(t);
}
