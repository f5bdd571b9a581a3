#include "ledger/file.h"

#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "base/mem.h"

#define STACK_BYTES (128u << 10)

/* Somebody who waits until what the ledger held then is on disk. */
struct waiter {
	struct waiter *next;
	void (*done)(void *arg, const struct err *err);
	void *arg;
};

struct ledger_writer {
	struct ledger_file *file;
	pthread_t thread;
	bool running;	      /* the thread is there; only the caller's thread looks */
	pthread_mutex_t lock; /* guards all below */
	pthread_cond_t wake;
	bool stopping;
	char *text; /* the newest one that is not being stored yet; NULL: nothing to do */
	size_t len;
	struct waiter *first, **last; /* for that text, in the order they came */
};

/* The text and its waiters leave the queue together. False: stopping, and all is stored. */
static bool take(struct ledger_writer *w, char **text, size_t *len, struct waiter **waiters)
{
	bool some;

	pthread_mutex_lock(&w->lock);
	while (!w->text && !w->stopping)
		pthread_cond_wait(&w->wake, &w->lock);
	some = w->text != NULL;
	*text = STEAL(w->text);
	*len = w->len;
	*waiters = STEAL(w->first);
	w->last = &w->first;
	pthread_mutex_unlock(&w->lock);
	return some;
}

static void tell(struct waiter *waiters, const struct err *err)
{
	struct waiter *next;

	for (struct waiter *one = waiters; one; one = next) {
		next = one->next;
		if (one->done)
			one->done(one->arg, err);
		free(one);
	}
}

static void *run(void *arg)
{
	struct ledger_writer *w = arg;
	struct waiter *waiters;
	char *text;
	size_t len;

	while (take(w, &text, &len, &waiters)) {
		struct err err = { 0 };
		int r = ledger_file_store(w->file, text, len, &err);

		free(text);
		tell(waiters, r < 0 ? &err : NULL);
	}
	return NULL;
}

/* Signals belong to the main thread, and little is ever on this stack. */
static int start(struct ledger_writer *w, struct err *err)
{
	sigset_t all, before;
	pthread_attr_t attr;
	int r;

	if (w->running)
		return 0;
	pthread_attr_init(&attr);
	pthread_attr_setstacksize(&attr, STACK_BYTES);
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	r = pthread_create(&w->thread, &attr, run, w);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	pthread_attr_destroy(&attr);
	if (r != 0)
		return err_set(
			err, r,
			"start the thread that writes the ledger: %s (is the limit of pids reached?)",
			strerror(r));
	w->running = true;
	return 0;
}

struct ledger_writer *ledger_writer_start(struct ledger_file *f)
{
	struct ledger_writer *w = xcalloc(1, sizeof(*w));

	w->file = f;
	w->last = &w->first;
	pthread_mutex_init(&w->lock, NULL);
	pthread_cond_init(&w->wake, NULL);
	start(w, NULL); /* or with the next text */
	return w;
}

void ledger_writer_put(struct ledger_writer *w, char *text, size_t len,
		       void (*done)(void *arg, const struct err *err), void *arg)
{
	struct waiter *one;
	struct err err = { 0 };
	char *old;

	if (start(w, &err) < 0) {
		free(text);
		if (done)
			done(arg, &err);
		return;
	}
	one = xcalloc(1, sizeof(*one));
	one->done = done;
	one->arg = arg;
	pthread_mutex_lock(&w->lock);
	old = w->text;
	w->text = text;
	w->len = len;
	*w->last = one;
	w->last = &one->next;
	pthread_cond_signal(&w->wake);
	pthread_mutex_unlock(&w->lock);
	free(old);
}

static void finish(struct ledger_writer *w)
{
	pthread_mutex_lock(&w->lock);
	w->stopping = true;
	pthread_cond_signal(&w->wake);
	pthread_mutex_unlock(&w->lock);
	pthread_join(w->thread, NULL);
}

void ledger_writer_stop(struct ledger_writer *w)
{
	if (!w)
		return;
	if (w->running)
		finish(w);
	pthread_mutex_destroy(&w->lock);
	pthread_cond_destroy(&w->wake);
	free(w);
}
