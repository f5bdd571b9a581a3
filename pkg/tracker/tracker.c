/* The ledger on the rpc thread: the actions of holds are done, its decisions are stored, and
 * callers that wait for that are answered. */
#include "tracker/tracker-internal.h"
#include "tracker/tracker.h"

#include <stdarg.h>
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

/* A ledger is JSON, which is read level by level. */
#define STACK_BYTES (8u << 20)

/* An answer that waits until the ledger of that moment is stored. */
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

struct tracker *tracker_new(const struct tracker_env *env)
{
	static const struct tracker_pace pace = {
		.settle_ms = 50,
		.retry_ms = 5000,
		.late_ms = 3000,
		.drain_ms = 1000,
		.round_ms = 5000,
		.apart_ms = 2000,
		.list_ms = 30000,
		.uids_ms = 200,
		.uids_latest_ms = 2000,
		.host_ms = 200,
		.look_ms = 5000,
		.doubt_ms = 1000,
		.quiet_ms = 2000,
	};
	struct tracker *k = xcalloc(1, sizeof(*k));

	k->env = *env;
	k->holds = env->holds;
	k->file = env->file;
	k->pace = pace;
	k->last_waiter = &k->waiters;
	for (size_t i = 0; i < ledger_holds(tracker_ledger(k)); i++)
		k->cgroups_found |= ledger_hold_at(tracker_ledger(k), i)->seen_cgroup;
	if (k->file)
		k->writer = ledger_writer_start(k->file);
	if (env->away_dir)
		tracker_reopen_later(k);
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

void tracker_say(struct tracker *k, bool bad, const char *fmt, ...)
{
	char event[EVENT_SIZE];
	va_list ap;

	va_start(ap, fmt);
	event_compose(event, sizeof(event), fmt, ap);
	va_end(ap);
	if (k->env.note)
		k->env.note(k->env.ctx, bad, event);
}

/* --- the actions of holds --- */

static void tell_now(void *arg)
{
	struct tracker *k = arg;

	k->tell = NULL;
	k->env.changed(k->env.ctx);
}

void tracker_tell_changed(struct tracker *k)
{
	if (k->env.changed && !k->tell)
		k->tell = rpc_after(k->env.rpc, 0, tell_now, k);
}

void tracker_run_now(struct tracker *k)
{
	struct holds_action action;

	if (k->running)
		return;
	k->running = true;
	while (holds_next(k->holds, &action)) {
		if (action.kind == HOLDS_SAY && k->env.note) {
			k->env.note(k->env.ctx, action.bad, action.text);
		} else if (action.kind == HOLDS_PROBE) {
			_cleanup_arena_ struct arena *a = arena_new(512);
			struct holds_facts facts = tracker_facts(k, action.text, a);

			holds_event(k->holds,
				    &(struct holds_event) { .kind = HOLDS_PROBED,
							    .vf = action.text,
							    .facts = &facts },
				    tracker_now());
		} else if (action.kind == HOLDS_RELIST) {
			tracker_tell_changed(k);
		}
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
 * holds allows. */
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
		k->patience = rpc_after(k->env.rpc, k->pace.drain_ms, lose_patience, k);
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
	k->soon = rpc_after(k->env.rpc, k->hurried ? 0 : k->pace.settle_ms, store_later, k);
}

static void store_again(void *arg)
{
	struct tracker *k = arg;

	k->retry = NULL;
	store_now(k);
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
	holds_event(k->holds,
		    &(struct holds_event) {
			    .kind = HOLDS_STORED, .generation = s->generation, .ok = !s->err.code },
		    tracker_now());
	if (s->err.code && !k->failing)
		tracker_say(
			k, true,
			"the ledger is kept in memory, and stored when that works again error=%s",
			s->err.msg);
	k->failing = s->err.code != 0;
	if (k->failing && !k->retry)
		k->retry = rpc_after(k->env.rpc, k->pace.retry_ms, store_again, k);
	free(s);
	serve_waiters(k);
	if (k->waiters || (!k->failing && holds_status(k->holds).wants_store))
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

/* A ledger that is newer than a store under way follows it. */
static void store_now(struct tracker *k)
{
	struct strbuf text = STRBUF_INIT;
	uint64_t generation = ledger_generation(tracker_ledger(k));
	size_t len;

	if (k->store || !holds_status(k->holds).wants_store)
		return;
	if (!k->file) {
		holds_event(k->holds,
			    &(struct holds_event) {
				    .kind = HOLDS_STORED, .generation = generation, .ok = true },
			    tracker_now());
		return;
	}
	ledger_write(tracker_ledger(k), &text);
	len = text.len;
	k->store = xcalloc(1, sizeof(*k->store));
	k->store_since_ms = clock_mono_ms();
	*k->store = (struct store) { .k = k, .rpc = k->env.rpc, .generation = generation };
	ledger_writer_put(k->writer, strbuf_steal(&text), len, on_stored, k->store);
}

void tracker_note_change(struct tracker *k)
{
	tracker_run_now(k);
	store_soon(k);
	tracker_uids_later(k);
	tracker_drain_later(k);
	tracker_watch_wake(k);
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
	tracker_note_change(k);
}

/* --- a state directory that could not be opened --- */

struct reopen {
	struct tracker *k;
	char *dir;
	struct ledger_file *file;
	struct ledger *ledger; /* the one found; NULL: none */
	char *note;
	struct err err;
};

static void reopen_free(void *arg)
{
	struct reopen *r = arg;

	ledger_free(r->ledger);
	ledger_file_close(r->file);
	free(r->note);
	free(r->dir);
	free(r);
}

void tracker_reopen_later(struct tracker *k);

/* Its decisions were made before railmated started; those made since have higher numbers. */
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
			holds_event(
				k->holds,
				&(struct holds_event) { .kind = HOLDS_CLAIMED, .claim = &claim },
				tracker_now());
	}
}

static void reopened(void *arg)
{
	struct reopen *r = arg;
	struct tracker *k = r->k;

	if (r->err.code) {
		tracker_reopen_later(k);
		return;
	}
	k->env.away_dir = NULL;
	if (r->ledger)
		claim_all(k, r->ledger);
	k->file = STEAL(r->file);
	k->writer = ledger_writer_start(k->file);
	holds_event(k->holds, &(struct holds_event) { .kind = HOLDS_RESTORE }, tracker_now());
	tracker_say(
		k, false,
		"the state directory can be opened again, and the ledger is stored there path=%s",
		r->dir);
	tracker_note_change(k);
}

static void try_open(void *arg)
{
	struct reopen *r = arg;
	int e = ledger_file_open(r->dir, 0, &r->file, &r->err);

	if (e == 0)
		e = ledger_file_load(r->file, &r->ledger, &r->note, &r->err);
	if (e == 0)
		r->err.code = 0;
}

/* The disk may hang. */
static void reopen_now(void *arg)
{
	static const struct rpc_work_kind kind = { "ledger-open", STACK_BYTES, try_open, reopened,
						   reopen_free };
	struct tracker *k = arg;
	struct reopen *r = xcalloc(1, sizeof(*r));

	k->reopen_timer = NULL;
	*r = (struct reopen) { .k = k, .dir = xstrdup(k->env.away_dir) };
	if (rpc_work_start(k->env.rpc, &kind, r, &k->reopen) == 0)
		return;
	reopen_free(r);
	tracker_reopen_later(k);
}

void tracker_reopen_later(struct tracker *k)
{
	k->reopen_timer = rpc_after(k->env.rpc, k->pace.retry_ms, reopen_now, k);
}

struct tracker_disk tracker_disk(const struct tracker *k)
{
	bool late = k->store && clock_mono_ms() - k->store_since_ms >= k->pace.late_ms;

	return (struct tracker_disk) { .has_file = k->file != NULL,
				       .stored = k->file && holds_status(k->holds).stored,
				       .failing = k->failing || k->env.away_dir,
				       .late = late };
}

/* --- the end --- */

static void flush(struct tracker *k)
{
	_cleanup_strbuf_ struct strbuf text = STRBUF_INIT;
	struct err err = { 0 };
	struct waiter *w;
	struct store *s;

	ledger_writer_stop(STEAL(k->writer));
	s = STEAL(k->store);
	if (s) {
		holds_event(k->holds,
			    &(struct holds_event) { .kind = HOLDS_STORED,
						    .generation = s->generation,
						    .ok = !s->err.code },
			    tracker_now());
		s->k = NULL;
		if (!s->posted)
			free(s);
	}
	if (k->file && holds_status(k->holds).wants_store) {
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
	rpc_timer_cancel(STEAL(k->reopen_timer));
	rpc_work_cancel(&k->reopen);
	tracker_watch_done(k);
	flush(k);
	tracker_checkpoint_done(k);
	tracker_open_done(k);
	holds_free(k->holds);
	ledger_file_close(k->file);
	node_unref(k->node);
	for (size_t i = 0; i < k->n_reported; i++)
		free(k->reported_unlisted[i]);
	free(k->reported_unlisted);
	free(k);
}
