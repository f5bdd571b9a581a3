/* A test's way to the rpc thread: run something there, or wait until something is true there; and
 * calls of what listens on a socket. */
#ifndef RAILMATE_TESTS_SUPPORT_ONRPC_H
#define RAILMATE_TESTS_SUPPORT_ONRPC_H

#include <semaphore.h>
#include <stdbool.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/arena.h"
#include "rpc/rpc.h"

struct ledger;

extern struct rpc *rpc;

/* Of a group of tests: rpc. */
int start_rpc(void **state);
int stop_rpc(void **state);

void on_rpc(void (*fn)(void *arg), void *arg);
/* A ledger that the rpc thread may change at any time: there itself, elsewhere a copy as it is now,
 * which lives until stop_rpc(). */
const struct ledger *ledger_now(const struct ledger *l);

bool is_on_rpc(bool (*is)(void));
/* A minute at most; then the test fails and names what. */
void wait_until_named(bool (*is)(void), const char *what);
#define wait_until(is) wait_until_named(is, #is)

/* --- a call of a socket --- */

struct reply {
	enum rpc_status status;
	const char *message;
	struct bytes body;
};

struct client_call {
	const char *socket, *path;
	struct bytes request;
	struct arena *arena; /* of the reply */

	/* its own */
	struct rpc_channel *channel;
	struct reply reply;
	sem_t done;
};

void call_begin(struct client_call *c);
struct reply call_end(struct client_call *c);
/* Both. */
struct reply call_whole(struct client_call c);

#endif
