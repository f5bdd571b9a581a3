#include "ledger/file.h"

#include <assert.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "base/mem.h"
#include "base/thread.h"

#define STACK_BYTES (128u << 10)

struct ledger_writer {
	struct ledger_file *file;
	pthread_t thread;
	bool running;	      /* the thread is there; only the caller's thread looks */
	pthread_mutex_t lock; /* guards all below */
	pthread_cond_t wake;
	bool stopping;
	char *text; /* NULL: nothing to do */
	size_t len;
	void (*done)(void *arg, const struct err *err);
	void *arg;
};

/* The text to store; NULL: stopping, and all is stored. */
static char *take(struct ledger_writer *w, size_t *ret_len)
{
	char *text;

	pthread_mutex_lock(&w->lock);
	while (!w->text && !w->stopping)
		pthread_cond_wait(&w->wake, &w->lock);
	text = STEAL(w->text);
	*ret_len = w->len;
	pthread_mutex_unlock(&w->lock);
	return text;
}

static void *run(void *arg)
{
	struct ledger_writer *w = arg;
	char *text;
	size_t len;

	while ((text = take(w, &len))) {
		struct err err = { 0 };
		int r = ledger_file_store(w->file, text, len, &err);

		free(text);
		w->done(w->arg, r < 0 ? &err : NULL);
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
	pthread_mutex_init(&w->lock, NULL);
	pthread_cond_init(&w->wake, NULL);
	start(w, NULL); /* or with the next text */
	return w;
}

void ledger_writer_put(struct ledger_writer *w, char *text, size_t len,
		       void (*done)(void *arg, const struct err *err), void *arg)
{
	struct err err = { 0 };

	if (start(w, &err) < 0) {
		free(text);
		done(arg, &err);
		return;
	}
	pthread_mutex_lock(&w->lock);
	assert(!w->text);
	w->text = text;
	w->len = len;
	w->done = done;
	w->arg = arg;
	pthread_cond_signal(&w->wake);
	pthread_mutex_unlock(&w->lock);
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
