/* The thread "rpc-accept": waits on the listening sockets and posts what it accepts to the rpc thread. */
#include "rpc/rpc-internal.h"

#include <assert.h>
#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/err.h"
#include "base/mem.h"

/* How long to leave the sockets alone when the process or the machine is out of descriptors. */
#define BREATH_MS 100

struct listener {
	uint64_t server;
	int fd;
};

struct acceptor {
	struct rpc *rpc;
	pthread_t thread;
	int event; /* the list changed, or stop */
	pthread_mutex_t lock;
	struct listener *listeners;
	size_t n, cap;
	uint64_t generation; /* of the list */
	bool stop;
};

struct accepted {
	struct rpc *rpc;
	uint64_t server;
	int fd;
};

static void hand_over(void *arg)
{
	struct accepted *a = arg;

	server_adopt(a->rpc, a->server, a->fd);
	free(a);
}

/* 0: nothing more to accept now; otherwise the errno that stopped us. */
static int accept_all(struct acceptor *a, const struct listener *l)
{
	struct accepted *accepted;
	int fd;

	for (;;) {
		fd = accept4(l->fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
		if (fd < 0 && (errno == EINTR || errno == ECONNABORTED))
			continue;
		if (fd < 0)
			return errno == EAGAIN ? 0 : errno;
		accepted = xcalloc(1, sizeof(*accepted));
		*accepted = (struct accepted) { .rpc = a->rpc, .server = l->server, .fd = fd };
		if (!rpc_post(a->rpc, hand_over, accepted)) {
			close(fd);
			free(accepted);
		}
	}
}

/* What to poll: the event first, then the listeners unless we pause. Returns false at the end. */
static bool prepare(struct acceptor *a, struct pollfd **fds, size_t *cap, size_t *ret_n,
		    uint64_t *ret_generation)
{
	bool go_on;

	pthread_mutex_lock(&a->lock);
	*fds = xgrow(*fds, cap, a->n + 1, sizeof(**fds));
	(*fds)[0] = (struct pollfd) { .fd = a->event, .events = POLLIN };
	for (size_t i = 0; i < a->n; i++)
		(*fds)[i + 1] = (struct pollfd) { .fd = a->listeners[i].fd, .events = POLLIN };
	*ret_n = a->n + 1;
	*ret_generation = a->generation;
	go_on = !a->stop;
	pthread_mutex_unlock(&a->lock);
	return go_on;
}

/* Under the lock, and only while the list is the one that was polled: a descriptor in it is then still open
 * and ours. */
static bool take(struct acceptor *a, const struct pollfd *fds, uint64_t generation)
{
	bool exhausted = false;

	pthread_mutex_lock(&a->lock);
	for (size_t i = 0; a->generation == generation && i < a->n; i++)
		if (fds[i + 1].revents && accept_all(a, &a->listeners[i]) != 0)
			exhausted = true;
	pthread_mutex_unlock(&a->lock);
	return exhausted;
}

static void *accept_thread(void *arg)
{
	struct acceptor *a = arg;
	struct pollfd *fds = NULL;
	size_t cap = 0, n;
	bool exhausted = false;
	uint64_t generation, ignored;

	pthread_setname_np(pthread_self(), "rpc-accept");
	while (prepare(a, &fds, &cap, &n, &generation)) {
		if (poll(fds, exhausted ? 1 : n, exhausted ? BREATH_MS : -1) < 0)
			continue;
		if (fds[0].revents && read(a->event, &ignored, sizeof(ignored)) < 0)
			continue;
		if (!exhausted)
			exhausted = take(a, fds, generation);
		else
			exhausted = false;
	}
	free(fds);
	return NULL;
}

static void notify(struct acceptor *a)
{
	uint64_t one = 1;
	ssize_t n = write(a->event, &one, sizeof(one));

	assert(n == sizeof(one));
	(void)n;
}

int acceptor_start(struct rpc *rpc, struct acceptor **ret, struct err *err)
{
	struct acceptor *a;
	int event = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK), r;

	if (event < 0)
		return err_sys(err, "open an event descriptor");
	a = xcalloc(1, sizeof(*a));
	*a = (struct acceptor) { .rpc = rpc, .event = event, .lock = PTHREAD_MUTEX_INITIALIZER };
	r = pthread_create(&a->thread, NULL, accept_thread, a);
	if (r) {
		close(event);
		free(a);
		return err_set(err, r, "start the thread rpc-accept: error %d", r);
	}
	*ret = a;
	return 0;
}

void acceptor_stop(struct acceptor *a)
{
	if (!a)
		return;
	pthread_mutex_lock(&a->lock);
	a->stop = true;
	pthread_mutex_unlock(&a->lock);
	notify(a);
	pthread_join(a->thread, NULL);
	close(a->event);
	pthread_mutex_destroy(&a->lock);
	free(a->listeners);
	free(a);
}

static size_t find(const struct acceptor *a, uint64_t server)
{
	size_t i = 0;

	while (i < a->n && a->listeners[i].server != server)
		i++;
	return i;
}

void acceptor_set(struct acceptor *a, uint64_t server, int fd)
{
	size_t i;

	pthread_mutex_lock(&a->lock);
	i = find(a, server);
	if (i < a->n)
		a->listeners[i] = a->listeners[--a->n];
	if (fd >= 0) {
		a->listeners = xgrow(a->listeners, &a->cap, a->n + 1, sizeof(*a->listeners));
		a->listeners[a->n++] = (struct listener) { .server = server, .fd = fd };
	}
	a->generation++;
	pthread_mutex_unlock(&a->lock);
	notify(a);
}
