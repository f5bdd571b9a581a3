/*
 * The thread "rpc-accept": accepts connections, and posts to the rpc thread those that begin as
 * HTTP/2 does. A silent one costs a descriptor, for SILENT_MS at most. It also runs the guards.
 */
#include "rpc/rpc-internal.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <semaphore.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/err.h"
#include "base/mem.h"
#include "rpc/guard-internal.h"

/* How long to leave the sockets alone when the process or the machine is out of descriptors. */
#define BREATH_MS 100
/* The first bytes of a client: RFC 9113 §3.4. */
#define PREFACE "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"

/* The subject of an event, in the upper bits of its data; its number is below. */
enum about { ABOUT_LIST, ABOUT_LISTENER, ABOUT_SILENT, ABOUT_GUARDS, ABOUT_CONNECTION };
#define ABOUT_SHIFT 60

struct listener {
	uint64_t server;
	int fd;
	bool guarded;
	struct rpc_peer trusted; /* but for this one; uid -1: no one */
};

/* Accepted, and its first bytes are not there yet. */
struct silent {
	uint64_t id, server;
	int fd;
	int64_t since_ms;
	bool ready; /* they are there: the rpc thread has not had time yet */
	struct rpc_peer peer;
};

struct acceptor {
	struct rpc *rpc;
	pthread_t thread;
	int epoll;
	int event;	     /* the list changed, or stop */
	sem_t adopting;	     /* how many more the rpc thread may be given */
	atomic_bool starved; /* more are ready */
	pthread_mutex_t lock;
	struct listener *listeners;
	size_t n, cap;
	bool stop;
	/* the thread's */
	struct silent silent[SILENT_MAX]; /* the oldest first */
	size_t n_silent;
	uint64_t last_silent;
	bool exhausted;
};

struct accepted {
	struct acceptor *acceptor;
	struct silent is;
	uint64_t guard; /* 0: none */
};

static int listen_to(struct acceptor *a, int fd, uint32_t events, enum about about, uint64_t number)
{
	struct epoll_event e = { .events = events,
				 .data.u64 = (uint64_t)about << ABOUT_SHIFT | number };

	return epoll_ctl(a->epoll, EPOLL_CTL_ADD, fd, &e);
}

static void notify(struct acceptor *a)
{
	uint64_t one = 1;
	ssize_t n = write(a->event, &one, sizeof(one));

	assert(n == sizeof(one));
	(void)n;
}

static size_t find(const struct acceptor *a, uint64_t server)
{
	size_t i = 0;

	while (i < a->n && a->listeners[i].server != server)
		i++;
	return i;
}

static bool needs_guard(struct acceptor *a, const struct silent *s)
{
	bool needs = false;
	size_t i;

	pthread_mutex_lock(&a->lock);
	i = find(a, s->server);
	if (i < a->n && a->listeners[i].guarded)
		needs = rpc_peer_compare(&a->listeners[i].trusted, &s->peer) != RPC_PEER_SAME;
	pthread_mutex_unlock(&a->lock);
	return needs;
}

/* --- handing over --- */

static void hand_over(void *arg)
{
	struct accepted *accepted = arg;
	const struct silent *s = &accepted->is;
	struct acceptor *a = accepted->acceptor;

	sem_post(&a->adopting);
	if (atomic_exchange(&a->starved, false))
		notify(a);
	server_adopt(a->rpc, s->server, s->fd, &s->peer, accepted->guard);
	free(accepted);
}

static void take_out(struct acceptor *a, size_t i)
{
	a->n_silent--;
	memmove(&a->silent[i], &a->silent[i + 1], (a->n_silent - i) * sizeof(*a->silent));
}

static void drop(struct acceptor *a, size_t i)
{
	close(a->silent[i].fd);
	take_out(a, i);
}

static void give(struct acceptor *a, size_t i)
{
	struct accepted *accepted = xcalloc(1, sizeof(*accepted));
	struct silent taken = a->silent[i];

	take_out(a, i);
	epoll_ctl(a->epoll, EPOLL_CTL_DEL, taken.fd, NULL);
	*accepted = (struct accepted) { .acceptor = a };
	if (needs_guard(a, &taken))
		taken.fd = guards_add(a->rpc->guards, taken.fd, GUARD_OF_CLIENT, &accepted->guard);
	accepted->is = taken;
	if (taken.fd >= 0 && rpc_post(a->rpc, hand_over, accepted))
		return;
	sem_post(&a->adopting);
	closep(&taken.fd);
	free(accepted);
}

static bool is_gone(int fd)
{
	struct pollfd p = { .fd = fd };

	return poll(&p, 1, 0) > 0 && p.revents;
}

/* The newest first: under a flood the oldest have the least to lose, and most of them are gone
 * again. */
static void give_ready(struct acceptor *a)
{
	for (size_t i = a->n_silent; i-- > 0;) {
		if (!a->silent[i].ready)
			continue;
		if (is_gone(a->silent[i].fd)) {
			drop(a, i);
			continue;
		}
		if (sem_trywait(&a->adopting) < 0) {
			atomic_store(&a->starved, true);
			if (sem_trywait(&a->adopting) < 0)
				return;
		}
		give(a, i);
	}
}

/* --- the silent --- */

/* Have the first bytes come? */
static void spoke(struct acceptor *a, uint64_t id)
{
	char bytes[sizeof(PREFACE) - 1];
	size_t i = 0;
	ssize_t n;

	while (i < a->n_silent && a->silent[i].id != id)
		i++;
	if (i == a->n_silent || a->silent[i].ready)
		return;
	n = recv(a->silent[i].fd, bytes, sizeof(bytes), MSG_PEEK | MSG_DONTWAIT);
	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return;
	if (n <= 0 || memcmp(bytes, PREFACE, (size_t)n) != 0)
		drop(a, i);
	else if (n == sizeof(bytes))
		a->silent[i].ready = true;
}

/* Of a server that has ended. */
static void drop_strays(struct acceptor *a)
{
	for (size_t i = a->n_silent; i-- > 0;) {
		bool known = false;

		pthread_mutex_lock(&a->lock);
		for (size_t k = 0; k < a->n; k++)
			known |= a->listeners[k].server == a->silent[i].server;
		pthread_mutex_unlock(&a->lock);
		if (!known)
			drop(a, i);
	}
}

static void begin(struct acceptor *a, uint64_t server, int fd, const struct rpc_peer *peer)
{
	struct silent *s;

	if (a->n_silent == SILENT_MAX)
		drop(a, 0);
	s = &a->silent[a->n_silent];
	*s = (struct silent) { .id = ++a->last_silent,
			       .server = server,
			       .fd = fd,
			       .since_ms = clock_mono_ms(),
			       .peer = *peer };
	/* The edge only: bytes that are there and are not enough must not wake us again. */
	if (listen_to(a, fd, EPOLLIN | EPOLLRDHUP | EPOLLET, ABOUT_SILENT, s->id) < 0)
		close(fd);
	else
		a->n_silent++;
}

/* --- accepting --- */

/* Connections taken here, at most ACCEPT_BATCH, are in order. */
static void accept_some(struct acceptor *a, uint64_t server)
{
	rlim_t end = RLIM_INFINITY;
	int fds[ACCEPT_BATCH];
	struct rlimit limit;
	struct rpc_peer peer;
	size_t i, n = 0;

	pthread_mutex_lock(&a->lock);
	i = find(a, server);
	while (i < a->n && n < ACCEPT_BATCH) {
		int fd = accept4(a->listeners[i].fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);

		if (fd < 0 && (errno == EINTR || errno == ECONNABORTED))
			continue;
		if (fd < 0) {
			a->exhausted |= errno != EAGAIN;
			break;
		}
		fds[n++] = fd;
	}
	pthread_mutex_unlock(&a->lock);
	/* The descriptors that are left are for the rest of the process. */
	if (getrlimit(RLIMIT_NOFILE, &limit) == 0 && limit.rlim_cur > DESCRIPTORS_KEPT)
		end = limit.rlim_cur - DESCRIPTORS_KEPT;
	for (i = 0; i < n; i++) {
		if ((rlim_t)fds[i] >= end || !rpc_peer_of(fds[i], &peer) ||
		    (peer.uid != 0 && peer.uid != geteuid()))
			close(fds[i]);
		else
			begin(a, server, fds[i], &peer);
	}
	/* A connection waits, and there is no descriptor for it: the oldest silent one has to go.
	 */
	if (a->exhausted && a->n_silent) {
		drop(a, 0);
		a->exhausted = false;
	}
}

/* --- those that the rpc thread has --- */

struct ended {
	struct rpc *rpc;
	uint64_t connection;
};

static void closed(void *arg)
{
	struct ended *e = arg;

	connection_ended(e->rpc, e->connection);
	free(e);
}

static void happened(struct acceptor *a, uint64_t what)
{
	uint64_t number = what & ((UINT64_C(1) << ABOUT_SHIFT) - 1), ignored;
	enum about about = (enum about)(what >> ABOUT_SHIFT);
	struct ended *e;

	switch (about) {
	case ABOUT_LIST:
		if (read(a->event, &ignored, sizeof(ignored)) > 0)
			drop_strays(a);
		break;
	case ABOUT_LISTENER:
		accept_some(a, number);
		break;
	case ABOUT_SILENT:
		spoke(a, number);
		break;
	case ABOUT_GUARDS: /* they run after all events */
		break;
	case ABOUT_CONNECTION:
		e = xcalloc(1, sizeof(*e));
		*e = (struct ended) { a->rpc, number };
		if (!rpc_post(a->rpc, closed, e))
			free(e);
		break;
	}
}

static int patience_ms(const struct acceptor *a, int guards_ms)
{
	int64_t left;

	if (guards_ms >= 0 || !a->n_silent)
		return guards_ms;
	left = a->silent[0].since_ms + SILENT_MS - clock_mono_ms();
	return left < 0 ? 0 : (int)left;
}

static void *accept_thread(void *arg)
{
	struct acceptor *a = arg;
	struct epoll_event events[ACCEPT_BATCH];
	int guards_ms = -1;
	int64_t limit_ms;
	bool stop;

	pthread_setname_np(pthread_self(), "rpc-accept");
	for (;;) {
		int n;

		pthread_mutex_lock(&a->lock);
		stop = a->stop;
		pthread_mutex_unlock(&a->lock);
		if (stop)
			break;
		n = epoll_wait(a->epoll, events, ARRAY_LEN(events), patience_ms(a, guards_ms));
		for (int i = 0; i < n; i++)
			happened(a, events[i].data.u64);
		limit_ms = clock_mono_ms() - SILENT_MS;
		while (a->n_silent && a->silent[0].since_ms <= limit_ms)
			drop(a, 0);
		give_ready(a);
		guards_ms = guards_run(a->rpc->guards);
		if (a->exhausted)
			poll(&(struct pollfd) { .fd = a->event, .events = POLLIN }, 1, BREATH_MS);
		a->exhausted = false;
	}
	while (a->n_silent)
		drop(a, 0);
	return NULL;
}

/* --- for the rpc thread --- */

static void destroy(struct acceptor *a)
{
	closep(&a->event);
	closep(&a->epoll);
	sem_destroy(&a->adopting);
	pthread_mutex_destroy(&a->lock);
	free(a->listeners);
	free(a);
}

int acceptor_start(struct rpc *rpc, struct acceptor **ret, struct err *err)
{
	struct acceptor *a = xcalloc(1, sizeof(*a));
	int r;

	a->rpc = rpc;
	pthread_mutex_init(&a->lock, NULL);
	sem_init(&a->adopting, 0, ADOPT_BATCH);
	a->epoll = epoll_create1(EPOLL_CLOEXEC);
	a->event = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (a->epoll < 0 || a->event < 0 || listen_to(a, a->event, EPOLLIN, ABOUT_LIST, 0) < 0 ||
	    listen_to(a, guards_fd(rpc->guards), EPOLLIN, ABOUT_GUARDS, 0) < 0) {
		r = err_sys(err, "open an event descriptor");
		destroy(a);
		return r;
	}
	r = pthread_create(&a->thread, NULL, accept_thread, a);
	if (r) {
		destroy(a);
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
	destroy(a);
}

void acceptor_set(struct acceptor *a, uint64_t server, int fd, bool guarded)
{
	struct listener l = {
		.server = server, .fd = fd, .guarded = guarded, .trusted = { .uid = (uid_t)-1 }
	};
	size_t i;

	pthread_mutex_lock(&a->lock);
	i = find(a, server);
	if (i < a->n) {
		l.trusted = a->listeners[i].trusted;
		epoll_ctl(a->epoll, EPOLL_CTL_DEL, a->listeners[i].fd, NULL);
		a->listeners[i] = a->listeners[--a->n];
	}
	if (fd >= 0) {
		a->listeners = xgrow(a->listeners, &a->cap, a->n + 1, sizeof(*a->listeners));
		a->listeners[a->n++] = l;
		if (listen_to(a, fd, EPOLLIN, ABOUT_LISTENER, server) < 0)
			abort(); /* out of memory */
	}
	pthread_mutex_unlock(&a->lock);
	notify(a);
}

void acceptor_trust(struct acceptor *a, uint64_t server, const struct rpc_peer *peer)
{
	size_t i;

	pthread_mutex_lock(&a->lock);
	i = find(a, server);
	if (i < a->n)
		a->listeners[i].trusted = *peer;
	pthread_mutex_unlock(&a->lock);
}

void acceptor_watch(struct acceptor *a, uint64_t connection, int fd)
{
	if (listen_to(a, fd, EPOLLET, ABOUT_CONNECTION, connection) < 0)
		abort(); /* out of memory */
}

void acceptor_unwatch(struct acceptor *a, int fd)
{
	epoll_ctl(a->epoll, EPOLL_CTL_DEL, fd, NULL);
}
