/* A test's way to the rpc thread: run something there, or wait until something is true there. */
#ifndef RAILMATE_TESTS_SUPPORT_ONRPC_H
#define RAILMATE_TESTS_SUPPORT_ONRPC_H

#include <stdbool.h>
#include <stdlib.h>
#include <unistd.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "rpc/rpc.h"

static struct rpc *rpc;

static inline void on_rpc(void (*fn)(void *arg), void *arg)
{
	assert_true(rpc_run(rpc, fn, arg));
}

struct rpc_question {
	bool (*is)(void);
	bool yes;
};

static inline void ask_on_rpc(void *arg)
{
	struct rpc_question *q = arg;

	q->yes = q->is();
}

static inline void wait_until_named(bool (*is)(void), const char *what)
{
	struct rpc_question q = { is, false };

	for (int i = 0; i < 20000; i++) {
		on_rpc(ask_on_rpc, &q);
		if (q.yes)
			return;
		usleep(500);
	}
	fail_msg("never: %s", what);
}
#define wait_until(is) wait_until_named(is, #is)

static inline int start_rpc(void **state)
{
	(void)state;
	return rpc_start(&rpc, NULL);
}

static inline int stop_rpc(void **state)
{
	(void)state;
	rpc_stop(rpc);
	return 0;
}

#endif
