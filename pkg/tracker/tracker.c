/* The ledger on the rpc thread: what holds asks for is done, what it decides is stored, and who
 * waits for that is answered. */
#include "tracker/tracker-internal.h"
#include "tracker/tracker.h"

#include <pthread.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/event.h"
#include "base/mem.h"
#include "base/str.h"
#include "ledger/file.h"
#include "pool/node.h"
#include "rpc/rpc.h"

/* An answer that waits for what the ledger held then. */
struct waiter {
	struct waiter *next;
	uint64_t generation;
	int64_t since_ms;
	void (*done)(void *arg);
	void *arg;
};

/* One text on its way to the disk. Outlives the tracker if that goes first. */
struct store {
	struct tracker *k; /* NULL: gone */
	struct rpc *rpc;
	uint64_t generation;
	bool posted; /* the rpc thread will hear of it */
	struct err err;
};

struct holds_now tracker_now(void)
{
	return (struct holds_now) { .mono_ms = clock_mono_ms(), .wall_ms = clock_wall_ms() };
}

struct tracker *tracker_new(struct rpc *rpc, struct holds *holds, struct ledger_file *file,
			    const struct sysroot *root, tracker_users_fn users, void *users_ctx)
{
	static const struct tracker_pace pace = {
		.settle_ms = 50,
		.retry_ms = 5000,
		.drain_ms = 1000,
		.look_ms = 5000,
		.apart_ms = 2000,
		.list_ms = 30000,
		.uids_ms = 200,
		.uids_latest_ms = 2000,
		.host_ms = 200,
		.quiet_ms = 2000,
	};
	struct tracker *k = xcalloc(1, sizeof(*k));

	k->rpc = rpc;
	k->holds = holds;
	k->file = file;
	k->root = root;
	k->users = users;
	k->users_ctx = users_ctx;
	k->pace = pace;
	k->last_waiter = &k->waiters;
	for (size_t i = 0; i < ledger_holds(tracker_ledger(k)); i++)
		k->cgroups_found |= ledger_hold_at(tracker_ledger(k), i)->seen_cgroup;
	if (file)
		k->writer = ledger_writer_start(file);
	return k;
}

struct holds *tracker_holds(struct tracker *k)
{
	return k->holds;
}

const struct ledger *tracker_ledger(const struct tracker *k)
{
	return holds_ledger(k->holds);
}

const struct node *tracker_node(const struct tracker *k)
{
	return k->node;
}

void tracker_listen(struct tracker *k, void (*note)(void *ctx, bool bad, const char *event),
		    void (*changed)(void *ctx), void *ctx)
{
	k->note = note;
	k->changed = changed;
	k->listener = ctx;
}

void tracker_say(struct tracker *k, bool bad, const char *fmt, ...)
{
	char event[EVENT_SIZE];
	va_list ap;

	va_start(ap, fmt);
	event_compose(event, sizeof(event), fmt, ap);
	va_end(ap);
	if (k->note)
		k->note(k->listener, bad, event);
}

/* --- what holds asks for --- */

static void tell_now(void *arg)
{
	struct tracker *k = arg;

	k->tell = NULL;
	k->changed(k->listener);
}

static void tell_changed(struct tracker *k)
{
	if (k->changed && !k->tell)
		k->tell = rpc_after(k->rpc, 0, tell_now, k);
}

static void look_at(struct tracker *k, const char *vf)
{
	_cleanup_arena_ struct arena *a = arena_new(512);
	struct holds_facts facts = tracker_facts(k, vf, a);

	holds_looked(k->holds, vf, &facts, tracker_now());
}

void tracker_run_now(struct tracker *k)
{
	struct holds_action action;

	if (k->running)
		return;
	k->running = true;
	while (holds_next(k->holds, &action)) {
		if (action.kind == HOLDS_SAY && k->note)
			k->note(k->listener, action.bad, action.text);
		else if (action.kind == HOLDS_LOOK)
			look_at(k, action.text);
		else if (action.kind == HOLDS_RELIST)
			tell_changed(k);
	}
	k->running = false;
}

/* --- storing --- */

static void store_now(struct tracker *k);
static void store_soon(struct tracker *k);
static void serve_waiters(struct tracker *k);

static void lose_patience(void *arg)
{
	struct tracker *k = arg;

	k->patience = NULL;
	serve_waiters(k);
}

/* Those that may be answered, the oldest first; the rest waits for the disk, and no longer than
 * holds says.
 */
static void serve_waiters(struct tracker *k)
{
	struct waiter *w;

	while ((w = k->waiters) &&
	       holds_may_answer(k->holds, w->generation, w->since_ms, tracker_now())) {
		k->waiters = w->next;
		if (!k->waiters)
			k->last_waiter = &k->waiters;
		w->done(w->arg);
		free(w);
	}
	tracker_run_now(k);
	if (k->waiters && !k->patience)
		k->patience = rpc_after(k->rpc, k->pace.drain_ms, lose_patience, k);
}

static void store_later(void *arg)
{
	struct tracker *k = arg;

	k->soon = NULL;
	k->hurried = false;
	tracker_complete(k);
	store_now(k);
	serve_waiters(k);
}

/* Never at once: the answer of the call that we are in goes first. */
static void store_soon(struct tracker *k)
{
	if (k->soon && (k->hurried || !k->waiters))
		return;
	rpc_timer_cancel(k->soon);
	k->hurried = k->waiters != NULL;
	k->soon = rpc_after(k->rpc, k->hurried ? 0 : k->pace.settle_ms, store_later, k);
}

static void store_again(void *arg)
{
	struct tracker *k = arg;

	k->retry = NULL;
	store_now(k);
}

static void store_failed(struct tracker *k, const struct err *err)
{
	if (!k->failing)
		tracker_say(
			k, true,
			"the ledger is kept in memory, and stored when that works again error=%s",
			err->msg);
	k->failing = true;
	if (!k->retry)
		k->retry = rpc_after(k->rpc, k->pace.retry_ms, store_again, k);
}

static void stored_on_rpc(void *arg)
{
	struct store *s = arg;
	struct tracker *k = s->k;

	if (!k) {
		free(s);
		return;
	}
	k->store = NULL;
	holds_stored(k->holds, s->generation, !s->err.code, tracker_now());
	if (s->err.code)
		store_failed(k, &s->err);
	else
		k->failing = false;
	free(s);
	serve_waiters(k);
	if (k->waiters || (!k->failing && holds_wants_store(k->holds)))
		store_soon(k);
}

/* On the writer's thread. Once it is posted it belongs to the rpc thread. */
static void on_stored(void *arg, const struct err *err)
{
	struct store *s = arg;

	if (err)
		s->err = *err;
	s->posted = true;
	if (!rpc_post(s->rpc, stored_on_rpc, s))
		s->posted = false;
}

/* What is newer than a store under way follows it. */
static void store_now(struct tracker *k)
{
	struct strbuf text = STRBUF_INIT;
	uint64_t generation = ledger_generation(tracker_ledger(k));
	size_t len;

	if (k->store || !holds_wants_store(k->holds))
		return;
	if (!k->file) {
		holds_stored(k->holds, generation, true, tracker_now());
		return;
	}
	ledger_write(tracker_ledger(k), &text);
	len = text.len;
	k->store = xcalloc(1, sizeof(*k->store));
	*k->store = (struct store) { .k = k, .rpc = k->rpc, .generation = generation };
	holds_storing(k->holds, generation, tracker_now());
	ledger_writer_put(k->writer, strbuf_steal(&text), len, on_stored, k->store);
}

void tracker_save(struct tracker *k, void (*done)(void *arg), void *arg)
{
	struct waiter *w;

	tracker_run_now(k);
	k->busy_ms = clock_mono_ms();
	if (done) {
		w = xcalloc(1, sizeof(*w));
		*w = (struct waiter) { .generation = ledger_generation(tracker_ledger(k)),
				       .since_ms = k->busy_ms,
				       .done = done,
				       .arg = arg };
		*k->last_waiter = w;
		k->last_waiter = &w->next;
	}
	store_soon(k);
	tracker_uids_later(k);
	tracker_drain_later(k);
	tracker_watch_wake(k);
}

/* --- a state directory that could not be opened --- */

/* A thread's question to the disk, which may hang. Outlives the tracker if that goes first. */
struct reopen {
	struct tracker *k; /* NULL: gone */
	struct rpc *rpc;
	char *dir;
	struct ledger_file *file;
	struct ledger *ledger; /* what is there; NULL: nothing */
	char *note;
	struct err err;
};

static void reopen_free(struct reopen *r)
{
	ledger_free(r->ledger);
	ledger_file_close(r->file);
	free(r->note);
	free(r->dir);
	free(r);
}

static void reopen_later(struct tracker *k);

/* What it says was decided before we started; what was decided since has higher numbers. */
static void claim_all(struct tracker *k, const struct ledger *ledger)
{
	for (size_t i = 0; i < ledger_holds(ledger); i++) {
		const struct ledger_hold *hold = ledger_hold_at(ledger, i);
		const struct holds_claim claim = {
			.vf = hold->vf,
			.resource = hold->resource,
			.slot = hold->slot,
			.owner = hold->owner,
			.number = hold->decision,
			.source = "the ledger, which was not readable before"
		};

		if (!hold->pending)
			holds_claimed(k->holds, &claim, tracker_now());
	}
}

static void reopened_on_rpc(void *arg)
{
	struct reopen *r = arg;
	struct tracker *k = r->k;

	if (!k) {
		reopen_free(r);
		return;
	}
	k->reopen = NULL;
	if (r->err.code) {
		reopen_free(r);
		reopen_later(k);
		return;
	}
	k->reopen_dir = NULL;
	if (r->ledger)
		claim_all(k, r->ledger);
	k->file = STEAL(r->file);
	k->writer = ledger_writer_start(k->file);
	holds_restore(k->holds);
	tracker_say(
		k, false,
		"the state directory can be opened again, and the ledger is stored there path=%s",
		r->dir);
	reopen_free(r);
	tracker_save(k, NULL, NULL);
}

static void *try_open(void *arg)
{
	struct reopen *r = arg;
	int e = ledger_file_open(r->dir, 0, &r->file, &r->err);

	if (e == 0)
		e = ledger_file_load(r->file, &r->ledger, &r->note, &r->err);
	if (e == 0)
		r->err.code = 0;
	if (!rpc_post(r->rpc, reopened_on_rpc, r) && !r->k)
		reopen_free(r);
	return NULL;
}

static void reopen_now(void *arg)
{
	struct tracker *k = arg;
	sigset_t all, before;
	pthread_t thread;
	int e;

	k->reopen_timer = NULL;
	k->reopen = xcalloc(1, sizeof(*k->reopen));
	*k->reopen = (struct reopen) { .k = k, .rpc = k->rpc, .dir = xstrdup(k->reopen_dir) };
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	e = pthread_create(&thread, NULL, try_open, k->reopen);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	if (e == 0) {
		pthread_detach(thread);
		return;
	}
	reopen_free(STEAL(k->reopen));
	reopen_later(k);
}

static void reopen_later(struct tracker *k)
{
	k->reopen_timer = rpc_after(k->rpc, k->pace.retry_ms, reopen_now, k);
}

void tracker_reopen(struct tracker *k, const char *dir)
{
	k->reopen_dir = dir;
	reopen_later(k);
}

static void reopen_done(struct tracker *k)
{
	rpc_timer_cancel(STEAL(k->reopen_timer));
	if (k->reopen)
		k->reopen->k = NULL;
}

/* --- the end --- */

static void drop_store(struct tracker *k)
{
	struct store *s = STEAL(k->store);

	if (!s)
		return;
	holds_stored(k->holds, s->generation, !s->err.code, tracker_now());
	s->k = NULL;
	if (!s->posted)
		free(s);
}

static void flush(struct tracker *k)
{
	_cleanup_strbuf_ struct strbuf text = STRBUF_INIT;
	struct err err = { 0 };
	struct waiter *w;

	ledger_writer_stop(STEAL(k->writer));
	drop_store(k);
	if (k->file && holds_wants_store(k->holds)) {
		ledger_write(tracker_ledger(k), &text);
		if (ledger_file_store(k->file, text.s, text.len, &err) < 0 && !k->failing)
			tracker_say(k, true, "the last changes of the ledger are lost error=%s",
				    err.msg);
	}
	while ((w = k->waiters)) {
		k->waiters = w->next;
		w->done(w->arg);
		free(w);
	}
}

void tracker_free(struct tracker *k)
{
	if (!k)
		return;
	rpc_timer_cancel(STEAL(k->soon));
	rpc_timer_cancel(STEAL(k->retry));
	rpc_timer_cancel(STEAL(k->patience));
	rpc_timer_cancel(STEAL(k->drain));
	rpc_timer_cancel(STEAL(k->tell));
	rpc_timer_cancel(STEAL(k->uids));
	reopen_done(k);
	tracker_watch_done(k);
	flush(k);
	tracker_checkpoint_done(k);
	holds_free(k->holds);
	ledger_file_close(k->file);
	node_unref(k->node);
	for (size_t i = 0; i < k->n_told; i++)
		free(k->told_unlisted[i]);
	free(k->told_unlisted);
	free(k);
}
