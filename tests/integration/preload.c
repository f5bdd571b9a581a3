/*
 * Preloaded into railmated. Its own threads (not those of libraries) from the one with the number
 * $FAIL_THREAD_FROM, 1 is the first, to $FAIL_THREAD_TO cannot be started, as where a cgroup's
 * limit of pids is reached. Signal number $RAISE_AT_START arrives when main() has hardly begun: at
 * its call of mallopt(). The disk hangs, fsync() does not return, while there is a file
 * $HANG_FSYNC. listen() on the unix socket $SLOW_LISTEN takes half a second longer.
 */
#include <dlfcn.h>
#include <errno.h>
#include <malloc.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

static long number_of(const char *variable)
{
	const char *value = getenv(variable);

	return value ? strtol(value, NULL, 10) : 0;
}

static int is_own(void *caller)
{
	Dl_info info;

	return dladdr(caller, &info) && !strstr(info.dli_fname, ".so");
}

int pthread_create(pthread_t *thread, const pthread_attr_t *attr, void *(*start)(void *), void *arg)
{
	static atomic_int started;
	int (*real)(pthread_t *, const pthread_attr_t *, void *(*)(void *), void *);
	long number;

	if (is_own(__builtin_return_address(0))) {
		number = atomic_fetch_add(&started, 1) + 1;
		if (number >= number_of("FAIL_THREAD_FROM") &&
		    number <= number_of("FAIL_THREAD_TO"))
			return EAGAIN;
	}
	*(void **)&real = dlsym(RTLD_NEXT, "pthread_create");
	return real(thread, attr, start, arg);
}

int fsync(int fd)
{
	const char *hangs = getenv("HANG_FSYNC");
	int (*real)(int);

	while (hangs && access(hangs, F_OK) == 0)
		usleep(10000);
	*(void **)&real = dlsym(RTLD_NEXT, "fsync");
	return real(fd);
}

int listen(int fd, int backlog)
{
	const char *slow = getenv("SLOW_LISTEN");
	struct sockaddr_un address = { .sun_family = AF_UNIX };
	socklen_t len = sizeof(address) - 1;
	int (*real)(int, int);

	if (slow && getsockname(fd, (struct sockaddr *)&address, &len) == 0 &&
	    address.sun_family == AF_UNIX && strcmp(address.sun_path, slow) == 0)
		usleep(500000);
	*(void **)&real = dlsym(RTLD_NEXT, "listen");
	return real(fd, backlog);
}

int mallopt(int parameter, int value)
{
	int (*real)(int, int);
	long signo = number_of("RAISE_AT_START");

	if (signo)
		raise((int)signo);
	*(void **)&real = dlsym(RTLD_NEXT, "mallopt");
	return real(parameter, value);
}
