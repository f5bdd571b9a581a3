/* Threads for work that may block. Signals are the main thread's: these take none. */
#ifndef RAILMATE_BASE_THREAD_H
#define RAILMATE_BASE_THREAD_H

#include <pthread.h>
#include <stddef.h>

/* name: of 15 characters at most, as ps -L shows it. 0 or -errno: where no more threads are
 * allowed. */
int thread_start(pthread_t *ret, const char *name, size_t stack_bytes, void *(*run)(void *arg),
		 void *arg);

#endif
