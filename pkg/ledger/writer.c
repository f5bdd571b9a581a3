#include "ledger/file.h"

#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "base/mem.h"
#include "base/thread.h"

#define STACK_BYTES (128u << 10)

/* A caller that waits until what the ledger held then is on disk. */
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

static void *run(void *arg)
{
	struct ledger_writer *w = arg;
	struct waiter *waiters, *next;
	char *text;
	size_t len;

	while (take(w, &text, &len, &waiters)) {
		struct err err = { 0 };
		int r = ledger_file_store(w->file, text, len, &err);

		free(text);
		for (; waiters; waiters = next) {
			next = waiters->next;
			if (waiters->done)
				waiters->done(waiters->arg, r < 0 ? &err : NULL);
			free(waiters);
		}
	}
	return NULL;
}

/* Little is ever on this stack. */
static int start(struct ledger_writer *w, struct err *err)
{
	int r;

	if (w->running)
		return 0;
	r = thread_start(&w->thread, "ledger", STACK_BYTES, run, w);
	if (r < 0)
		return err_set(
			err, -r,
			"start the thread that writes the ledger: %s (is the limit of pids reached?)",
			strerror(-r));
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

void ledger_writer_stop(struct ledger_writer *w)
{
	if (!w)
		return;
	if (w->running) {
		pthread_mutex_lock(&w->lock);
		w->stopping = true;
		pthread_cond_signal(&w->wake);
		pthread_mutex_unlock(&w->lock);
		pthread_join(w->thread, NULL);
	}
	pthread_mutex_destroy(&w->lock);
	pthread_cond_destroy(&w->wake);
	free(w);
}
