#include "base/thread.h"

#include <signal.h>

int thread_start(pthread_t *ret, const char *name, size_t stack_bytes, void *(*run)(void *arg),
		 void *arg)
{
	sigset_t all, before;
	pthread_attr_t attr;
	int r;

	sigfillset(&all);
	pthread_attr_init(&attr);
	pthread_attr_setstacksize(&attr, stack_bytes);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	r = pthread_create(ret, &attr, run, arg);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	pthread_attr_destroy(&attr);
	if (r == 0)
		pthread_setname_np(*ret, name);
	return -r;
}
