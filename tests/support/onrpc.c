#include "support/onrpc.h"

#include <pthread.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/mem.h"
#include "ledger/ledger.h"

#define PATIENCE_MS 60000 /* nothing here takes a second, unless the machine is very busy */

struct rpc *rpc;

static pthread_t rpc_thread;
static struct ledger **copies;
static size_t n_copies, cap_copies;

static void note_thread_fn(void *arg)
{
	(void)arg;
	rpc_thread = pthread_self();
}

int start_rpc(void **state)
{
	int r = rpc_start(&rpc, NULL);

	(void)state;
	if (!r)
		on_rpc(note_thread_fn, NULL);
	return r;
}

int stop_rpc(void **state)
{
	(void)state;
	rpc_stop(rpc);
	while (n_copies > 0)
		ledger_free(copies[--n_copies]);
	free(STEAL(copies));
	cap_copies = 0;
	return 0;
}

struct copying {
	const struct ledger *from;
	struct ledger *copy;
};

static void copy_ledger_fn(void *arg)
{
	struct copying *c = arg;

	c->copy = ledger_copy(c->from);
}

const struct ledger *ledger_now(const struct ledger *l)
{
	struct copying c = { l, NULL };

	if (pthread_equal(pthread_self(), rpc_thread))
		return l;
	on_rpc(copy_ledger_fn, &c);
	copies = xgrow(copies, &cap_copies, n_copies + 1, sizeof(*copies));
	return copies[n_copies++] = c.copy;
}

void on_rpc(void (*fn)(void *arg), void *arg)
{
	assert_true(rpc_run(rpc, fn, arg));
}

struct rpc_question {
	bool (*is)(void);
	bool yes;
};

static void ask_on_rpc(void *arg)
{
	struct rpc_question *q = arg;

	q->yes = q->is();
}

bool is_on_rpc(bool (*is)(void))
{
	struct rpc_question q = { is, false };

	on_rpc(ask_on_rpc, &q);
	return q.yes;
}

void wait_until_named(bool (*is)(void), const char *what)
{
	int64_t until_ms = clock_mono_ms() + PATIENCE_MS;

	while (!is_on_rpc(is)) {
		if (clock_mono_ms() > until_ms)
			fail_msg("not within %d s: %s", PATIENCE_MS / 1000, what);
		usleep(500);
	}
}

static void replied(void *arg, enum rpc_status status, const char *message, struct bytes body)
{
	struct client_call *c = arg;

	c->reply.status = status;
	c->reply.message = arena_strdup(c->arena, message ? message : "");
	c->reply.body = (struct bytes) { arena_copy(c->arena, body.data, body.len), body.len };
	rpc_channel_close(c->channel);
	sem_post(&c->done);
}

static void call_fn(void *arg)
{
	struct client_call *c = arg;

	c->channel = rpc_channel_open(rpc, c->socket, 4 << 20);
	rpc_call_unary(c->channel, c->path, c->request, 30000, replied, c);
}

void call_begin(struct client_call *c)
{
	sem_init(&c->done, 0, 0);
	on_rpc(call_fn, c);
}

struct reply call_end(struct client_call *c)
{
	while (sem_wait(&c->done) < 0)
		;
	sem_destroy(&c->done);
	return c->reply;
}

struct reply call_whole(struct client_call c)
{
	call_begin(&c);
	return call_end(&c);
}
