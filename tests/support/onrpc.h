/* A test's way to the rpc thread: run something there, or wait until something is true there. */
#ifndef RAILMATE_TESTS_SUPPORT_ONRPC_H
#define RAILMATE_TESTS_SUPPORT_ONRPC_H

#include <stdbool.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

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

#endif
