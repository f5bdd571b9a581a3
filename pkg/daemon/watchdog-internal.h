/*
 * Does the rpc thread still answer? The kubelet has no time limit on Allocate and
 * GetPreferredAllocation, so a thread that hangs stops every admission of the node. Asked every
 * 5 s on the main loop; a question without an answer after 10 s (looked at every second from the
 * fifth on) aborts the process, and the DaemonSet starts another one: running pods keep their VFs.
 * Time in which the whole process was stopped does not count.
 */
#ifndef RAILMATE_DAEMON_WATCHDOG_INTERNAL_H
#define RAILMATE_DAEMON_WATCHDOG_INTERNAL_H

struct rpc;
struct uv_loop_s;
struct watchdog;

/* hung: for tests; NULL: a line of log, then abort(). Main thread. */
struct watchdog *watchdog_start(struct uv_loop_s *loop, struct rpc *rpc, unsigned tick_ms,
				void (*hung)(void *ctx), void *ctx);
/* Which of the two threads, "main" or "rpc", has been silent for so long? NULL: neither. Any
 * thread. */
const char *watchdog_silent(const struct watchdog *w, unsigned ms);
/* When the loop has run for the last time, and rpc has ended; NULL is fine */
void watchdog_free(struct watchdog *w);

#endif
