#include "support/onrpc.h"

#include <unistd.h>

struct rpc *rpc;

int start_rpc(void **state)
{
	(void)state;
	return rpc_start(&rpc, NULL);
}

int stop_rpc(void **state)
{
	(void)state;
	rpc_stop(rpc);
	return 0;
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
	for (int i = 0; i < 20000; i++) {
		if (is_on_rpc(is))
			return;
		usleep(500);
	}
	fail_msg("never: %s", what);
}
