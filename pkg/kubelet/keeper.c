/* The ledger on the rpc thread: when it is stored, and who waits for that. */
#include "kubelet/keeper.h"
#include "kubelet/keeper-internal.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/mem.h"
#include "base/str.h"
#include "ledger/file.h"
#include "pool/node.h"
#include "rpc/rpc.h"

struct waiter {
	struct waiter *next;
	uint64_t generation; /* has to be on disk */
	void (*done)(void *arg, const struct err *err);
	void *arg;
};

/* One text on its way to the disk. Outlives the keeper if that goes first. */
struct store {
	struct keeper *k; /* NULL: gone */
	struct rpc *rpc;
	uint64_t generation;
	bool posted; /* the rpc thread will hear of it */
	struct err err;
};

struct keeper *keeper_new(struct rpc *rpc, struct ledger *ledger, struct ledger_file *file,
			  keeper_users_fn users, void *users_ctx)
{
	static const struct keeper_pace pace = {
		.settle_ms = 50,
		.retry_ms = 5000,
		.drain_ms = 1000,
		.young_ms = 1000,
		.apart_ms = 2000,
		.blind_ms = 60000,
		.look_ms = 5000,
		.list_ms = 30000,
		.uids_ms = 200,
		.uids_latest_ms = 2000,
		.host_ms = 200,
		.quiet_ms = 2000,
	};
	struct keeper *k = xcalloc(1, sizeof(*k));

	*k = (struct keeper) {
		.rpc = rpc, .ledger = ledger, .file = file, .users = users, .users_ctx = users_ctx
	};
	k->pace = pace;
	k->last_waiter = &k->waiters;
	k->stored = ledger_generation(ledger);
	k->looked_ms = clock_mono_ms();
	if (file)
		k->writer = ledger_writer_start(file);
	keeper_sync(k);
	for (size_t i = 0; i < k->n_sights; i++)
		k->sights[i].noted_ms -= pace.young_ms; /* these the kubelet has noted long ago */
	return k;
}

struct ledger *keeper_ledger(struct keeper *k)
{
	return k->ledger;
}

void keeper_listen(struct keeper *k, void (*note)(void *ctx, bool bad, const char *sentence),
		   void (*changed)(void *ctx), void *ctx)
{
	k->note = note;
	k->changed = changed;
	k->listener = ctx;
}

void keeper_say(struct keeper *k, bool bad, const char *fmt, ...)
{
	char line[640];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(line, sizeof(line), fmt, ap);
	va_end(ap);
	if (k->note)
		k->note(k->listener, bad, line);
}

/* --- storing --- */

/* Those who waited for no more than this generation. */
static void tell_waiters(struct keeper *k, uint64_t generation, const struct err *err)
{
	struct waiter *w;

	while ((w = k->waiters) && w->generation <= generation) {
		k->waiters = w->next;
		if (!k->waiters)
			k->last_waiter = &k->waiters;
		w->done(w->arg, err);
		free(w);
	}
}

static void store_now(struct keeper *k);

static void store_later(void *arg)
{
	struct keeper *k = arg;

	k->soon = NULL;
	keeper_sync(k);
	store_now(k);
}

/* Never at once: the answer of the call that we are in goes first. */
static void store_soon(struct keeper *k)
{
	if (k->store || (k->soon && (k->hurried || !k->waiters)))
		return;
	rpc_timer_cancel(k->soon);
	k->hurried = k->waiters != NULL;
	k->soon = rpc_after(k->rpc, k->hurried ? 0 : k->pace.settle_ms, store_later, k);
}

static void store_again(void *arg)
{
	struct keeper *k = arg;

	k->retry = NULL;
	store_now(k);
}

static void store_failed(struct keeper *k, const struct err *err)
{
	if (!k->failing)
		keeper_say(k, true, "%s; the ledger is kept in memory, and stored when that works again",
			   err->msg);
	k->failing = true;
	if (!k->retry)
		k->retry = rpc_after(k->rpc, k->pace.retry_ms, store_again, k);
}

static void store_worked(struct keeper *k, uint64_t generation)
{
	if (k->failing)
		keeper_say(k, false, "the ledger is on disk again");
	k->failing = false;
	k->stored = generation;
}

static void stored_on_rpc(void *arg)
{
	struct store *s = arg;
	struct keeper *k = s->k;

	if (!k) {
		free(s);
		return;
	}
	k->store = NULL;
	if (s->err.code)
		store_failed(k, &s->err);
	else
		store_worked(k, s->generation);
	tell_waiters(k, s->generation, s->err.code ? &s->err : NULL);
	free(s);
	if (k->waiters || (!k->failing && ledger_generation(k->ledger) > k->stored))
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

static void store_now(struct keeper *k)
{
	struct strbuf text = STRBUF_INIT;
	uint64_t generation = ledger_generation(k->ledger);
	size_t len;

	if (k->store)
		return; /* what is newer follows it */
	if (!k->file || generation == k->stored) {
		k->stored = generation;
		tell_waiters(k, generation, NULL);
		return;
	}
	ledger_write(k->ledger, &text);
	len = text.len;
	k->store = xcalloc(1, sizeof(*k->store));
	*k->store = (struct store) { .k = k, .rpc = k->rpc, .generation = generation };
	ledger_writer_put(k->writer, strbuf_steal(&text), len, on_stored, k->store);
}

static void add_waiter(struct keeper *k, void (*done)(void *arg, const struct err *err), void *arg)
{
	struct waiter *w = xcalloc(1, sizeof(*w));

	*w = (struct waiter) { .generation = ledger_generation(k->ledger), .done = done, .arg = arg };
	*k->last_waiter = w;
	k->last_waiter = &w->next;
}

void keeper_save(struct keeper *k, void (*done)(void *arg, const struct err *err), void *arg)
{
	k->busy_ms = clock_mono_ms();
	if (done)
		add_waiter(k, done, arg);
	store_soon(k);
	keeper_drain_later(k);
	keeper_watch_wake(k);
}

/* --- the end --- */

static void drop_store(struct keeper *k)
{
	struct store *s = STEAL(k->store);

	if (!s)
		return;
	if (!s->err.code)
		k->stored = s->generation;
	s->k = NULL;
	if (!s->posted)
		free(s);
}

static void flush(struct keeper *k)
{
	_cleanup_strbuf_ struct strbuf text = STRBUF_INIT;
	uint64_t generation = ledger_generation(k->ledger);
	struct err err = { 0 };

	ledger_writer_stop(STEAL(k->writer));
	drop_store(k);
	if (k->file && generation > k->stored) {
		ledger_write(k->ledger, &text);
		if (ledger_file_store(k->file, text.s, text.len, &err) < 0 && !k->failing)
			keeper_say(k, true, "%s; what changed last in the ledger is lost", err.msg);
	}
	tell_waiters(k, generation, err.code ? &err : NULL);
}

void keeper_free(struct keeper *k)
{
	if (!k)
		return;
	rpc_timer_cancel(STEAL(k->soon));
	rpc_timer_cancel(STEAL(k->retry));
	rpc_timer_cancel(STEAL(k->drain));
	rpc_timer_cancel(STEAL(k->tell));
	rpc_timer_cancel(STEAL(k->uids));
	keeper_watch_done(k);
	flush(k);
	for (size_t i = 0; i < k->n_sights; i++)
		free(k->sights[i].vf);
	free(k->sights);
	ledger_free(k->ledger);
	ledger_file_close(k->file);
	node_unref(k->node);
	free(k);
}
