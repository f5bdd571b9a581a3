/*
 * HTTP for whoever looks at the daemon: GET and HEAD, bounded, by libmicrohttpd, which is loaded
 * when an address is served. http.c has the pages.
 */
#include "report/web.h"

#include <arpa/inet.h>
#include <dlfcn.h>
#include <errno.h>
#include <microhttpd.h>
#include <netinet/in.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/queue.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/err.h"
#include "base/mem.h"
#include "base/str.h"

struct libmicrohttpd {
	__typeof__(&MHD_start_daemon) start_daemon;
	__typeof__(&MHD_stop_daemon) stop_daemon;
	__typeof__(&MHD_create_response_from_buffer) create_response_from_buffer;
	__typeof__(&MHD_add_response_header) add_response_header;
	__typeof__(&MHD_queue_response) queue_response;
	__typeof__(&MHD_destroy_response) destroy_response;
	__typeof__(&MHD_lookup_connection_value) lookup_connection_value;
	__typeof__(&MHD_get_connection_values) get_connection_values;
	__typeof__(&MHD_get_connection_info) get_connection_info;
};

#define SONAME "libmicrohttpd.so.12"
#define SYMBOL(field)                                                                              \
	{                                                                                          \
		"MHD_" #field, offsetof(struct libmicrohttpd, field)                               \
	}

static const struct {
	const char *name;
	size_t at;
} symbols[] = {
	SYMBOL(start_daemon),
	SYMBOL(stop_daemon),
	SYMBOL(create_response_from_buffer),
	SYMBOL(add_response_header),
	SYMBOL(queue_response),
	SYMBOL(destroy_response),
	SYMBOL(lookup_connection_value),
	SYMBOL(get_connection_values),
	SYMBOL(get_connection_info),
};

/* Of the first library that is there; it stays. -ELIBACC with a sentence. */
static int load_libmicrohttpd(struct libmicrohttpd *ret, struct err *err)
{
	void *library = dlopen(SONAME, RTLD_NOW | RTLD_LOCAL);
	struct libmicrohttpd m;

	if (!library)
		return err_set(err, ELIBACC, "libmicrohttpd cannot be loaded: %s", dlerror());
	for (size_t i = 0; i < ARRAY_LEN(symbols); i++) {
		void *p = dlsym(library, symbols[i].name);

		if (!p)
			return err_set(err, ELIBACC, SONAME ": there is no %s in it",
				       symbols[i].name);
		memcpy((char *)&m + symbols[i].at, &p, sizeof(p));
	}
	*ret = m;
	return 0;
}

/* An address of the command line → a listening socket. */

#define BACKLOG	       64
#define HOST_SIZE      64
#define HOST_NAME_SIZE 256

union address {
	struct sockaddr any;
	struct sockaddr_in ip4;
	struct sockaddr_in6 ip6;
};

static int refuse_host(const char *text, struct err *err)
{
	return err_set(err, EINVAL,
		       "'%s' is not an IP address and a port, as in 127.0.0.1:9835 or [::1]:9835",
		       text);
}

/* The last colon begins the port, so that an IPv6 address need not have brackets: $(NODE_IP):9835.
 */
static int parse(const char *text, union address *ret, socklen_t *ret_len, struct err *err)
{
	const char *colon = strrchr(text, ':');
	size_t len = colon ? (size_t)(colon - text) : 0;
	char host[HOST_SIZE];
	uint64_t port;

	if (!len || len >= sizeof(host) || str_to_u64(colon + 1, 10, 65535, &port) < 0)
		return refuse_host(text, err);
	if (*text == '[' && text[len - 1] == ']') {
		text++;
		len -= 2;
	}
	memcpy(host, text, len);
	host[len] = '\0';
	memset(ret, 0, sizeof(*ret));
	if (inet_pton(AF_INET, host, &ret->ip4.sin_addr) == 1) {
		ret->ip4.sin_family = AF_INET;
		ret->ip4.sin_port = htons((uint16_t)port);
		*ret_len = sizeof(ret->ip4);
		return 0;
	}
	if (inet_pton(AF_INET6, host, &ret->ip6.sin6_addr) != 1)
		return refuse_host(text, err);
	ret->ip6.sin6_family = AF_INET6;
	ret->ip6.sin6_port = htons((uint16_t)port);
	*ret_len = sizeof(ret->ip6);
	return 0;
}

/* The port ends it, and a dot where it is a name that is whole. */
static bool cut_host(const char *host, char *ret)
{
	size_t len = *host == '[' ? strcspn(host, "]") : strcspn(host, ":");
	bool brackets = *host == '[' && host[len] == ']';
	const char *port = host + len + brackets;

	if (*host == '[' && !brackets)
		return false;
	if (*port && (*port != ':' || port[1 + strspn(port + 1, "0123456789")]))
		return false;
	host += brackets;
	len -= brackets;
	len -= !brackets && len > 1 && host[len - 1] == '.';
	if (!len || len >= HOST_NAME_SIZE)
		return false;
	memcpy(ret, host, len);
	ret[len] = '\0';
	return true;
}

bool web_is_host(const char *host, const char *const *names, size_t n)
{
	char name[HOST_NAME_SIZE];
	struct in6_addr any;

	if (!cut_host(host, name))
		return false;
	if (*host == '[')
		return inet_pton(AF_INET6, name, &any) == 1;
	for (size_t i = 0; i < n; i++) {
		if (names[i] && *names[i] && !strcasecmp(name, names[i]))
			return true;
	}
	return !strcasecmp(name, "localhost") || inet_pton(AF_INET, name, &any) == 1;
}

int web_check_address(const char *address, struct err *err)
{
	union address a;
	socklen_t len;

	return parse(address, &a, &len, err);
}

int web_listen(const char *address, int *ret_fd, struct err *err)
{
	_cleanup_close_ int fd = -1;
	const int on = 1;
	union address a;
	socklen_t len;
	int r;

	r = parse(address, &a, &len, err);
	if (r < 0)
		return r;
	fd = socket(a.any.sa_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (fd < 0)
		return err_sys(err, "socket for %s", address);
	/* Connections of a server that has ended do not keep the port. */
	setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
	if (bind(fd, &a.any, len) < 0)
		return err_sys(err, "bind %s", address);
	if (listen(fd, BACKLOG) < 0)
		return err_sys(err, "listen at %s", address);
	*ret_fd = fd;
	fd = -1;
	return 0;
}

#define CONNECTIONS	 32
#define CONNECTIONS_MAX	 64 /* the library's own: one that gave way needs a moment to go */
#define CONNECTION_BYTES (16u * 1024)
#define SILENCE_S	 10
#define TEXT		 "text/plain; charset=utf-8"

/* One connection; on the server's thread. */
struct client {
	TAILQ_ENTRY(client) link;
	int fd;
};

struct web {
	struct libmicrohttpd lib;
	struct MHD_Daemon *daemon;
	web_answer_fn answer;
	void *ctx;
	TAILQ_HEAD(clients, client) clients; /* the oldest first */
	unsigned n_clients;
};

static const char *header(const struct web *w, struct MHD_Connection *c, const char *name)
{
	const char *value = w->lib.lookup_connection_value(c, MHD_HEADER_KIND, name);

	return value ? value : "";
}

static struct MHD_Response *response_of(const struct web *w, struct web_reply *reply)
{
	size_t len = reply->body.len;
	/* An empty body has no memory to steal. */
	char *body = len ? strbuf_steal(&reply->body) : NULL;
	struct MHD_Response *r = w->lib.create_response_from_buffer(
		len, body, body ? MHD_RESPMEM_MUST_FREE : MHD_RESPMEM_PERSISTENT);

	strbuf_done(&reply->body);
	if (!r)
		free(body);
	return r;
}

static enum MHD_Result send_reply(const struct web *w, struct MHD_Connection *c,
				  struct web_reply *reply)
{
	struct MHD_Response *r = response_of(w, reply);
	enum MHD_Result sent;

	if (!r)
		return MHD_NO;
	w->lib.add_response_header(r, "Content-Type", reply->type);
	w->lib.add_response_header(r, "Cache-Control", "no-store");
	w->lib.add_response_header(r, "X-Content-Type-Options", "nosniff");
	if (reply->policy)
		w->lib.add_response_header(r, "Content-Security-Policy", reply->policy);
	if (reply->status == MHD_HTTP_METHOD_NOT_ALLOWED)
		w->lib.add_response_header(r, "Allow", "GET, HEAD");
	sent = w->lib.queue_response(c, reply->status, r);
	w->lib.destroy_response(r);
	return sent;
}

static enum MHD_Result refuse(const struct web *w, struct MHD_Connection *c, unsigned status,
			      const char *why)
{
	struct web_reply reply = { .status = status, .type = TEXT };

	strbuf_puts(&reply.body, why);
	return send_reply(w, c, &reply);
}

struct framing {
	unsigned hosts;
	bool body;
};

static enum MHD_Result look_at(void *arg, enum MHD_ValueKind kind, const char *name,
			       const char *value)
{
	struct framing *f = arg;

	f->hosts += !strcasecmp(name, "Host");
	f->body |= !strcasecmp(name, "Content-Length") || !strcasecmp(name, "Transfer-Encoding");
	return MHD_YES;
}

/*
 * Of headers that come twice the library takes the first, and a proxy before it perhaps the last:
 * where a request ends, and for whom it is, has to be clear. GET and HEAD need no length at all.
 */
static const char *why_bad(const struct web *w, struct MHD_Connection *c)
{
	struct framing f = { 0 };

	w->lib.get_connection_values(c, MHD_HEADER_KIND, look_at, &f);
	return f.body	     ? "a request has no body here\n"
	       : f.hosts > 1 ? "a request has one Host\n"
			     : NULL;
}

/* A path is compared as it was sent: its escapes would only be other spellings, and a NUL among
 * them would end it. */
static size_t keep_escapes(void *ctx, struct MHD_Connection *c, char *text)
{
	return strlen(text);
}

/* Before the path is split: the end of it as a string. */
static void *note_end(void *ctx, const char *target, struct MHD_Connection *c)
{
	return (void *)(target + strlen(target) + 1);
}

/* A NUL in the path, as it is: the library keeps the version behind the path, in the one buffer of
 * the connection. */
static bool hides_something(const void *end, const char *version)
{
	uintptr_t hidden = (uintptr_t)version - (uintptr_t)end;

	return hidden && hidden < CONNECTION_BYTES;
}

/* Called twice for each request: with its head, and when it is complete. */
static enum MHD_Result on_request(void *ctx, struct MHD_Connection *c, const char *url,
				  const char *method, const char *version, const char *data,
				  size_t *len, void **seen)
{
	struct web_reply reply = { .status = MHD_HTTP_NOT_FOUND, .type = TEXT };
	struct web *w = ctx;
	const char *bad;

	if (strcmp(method, MHD_HTTP_METHOD_GET) && strcmp(method, MHD_HTTP_METHOD_HEAD))
		return refuse(w, c, MHD_HTTP_METHOD_NOT_ALLOWED, "only GET and HEAD\n");
	bad = why_bad(w, c);
	if (bad || *len)
		return refuse(w, c, MHD_HTTP_BAD_REQUEST,
			      bad ? bad : "a request has no body here\n");
	if (*seen != w) {
		if (hides_something(*seen, version))
			return refuse(w, c, MHD_HTTP_BAD_REQUEST, "a path has no NUL\n");
		*seen = w;
		return MHD_YES;
	}
	w->answer(w->ctx, &(struct web_request) { .path = url, .host = header(w, c, "Host") },
		  &reply);
	if (reply.status == MHD_HTTP_NOT_FOUND && !reply.body.len)
		strbuf_puts(&reply.body, "not found\n");
	return send_reply(w, c, &reply);
}

/* The oldest one gives way; the library closes it when it reads its end. */
static void on_connection(void *ctx, struct MHD_Connection *c, void **mine,
			  enum MHD_ConnectionNotificationCode code)
{
	struct web *w = ctx;
	struct client *client = *mine;

	if (code == MHD_CONNECTION_NOTIFY_CLOSED && client) {
		TAILQ_REMOVE(&w->clients, client, link);
		w->n_clients--;
		free(client);
		*mine = NULL;
	} else if (code == MHD_CONNECTION_NOTIFY_STARTED) {
		client = xcalloc(1, sizeof(*client));
		client->fd = w->lib.get_connection_info(c, MHD_CONNECTION_INFO_CONNECTION_FD)
				     ->connect_fd;
		*mine = client;
		TAILQ_INSERT_TAIL(&w->clients, client, link);
		if (++w->n_clients > CONNECTIONS)
			shutdown(TAILQ_FIRST(&w->clients)->fd, SHUT_RDWR);
	}
}

static struct MHD_Daemon *start(struct web *w, int fd)
{
	const unsigned flags = MHD_USE_EPOLL | MHD_USE_INTERNAL_POLLING_THREAD;

	return w->lib.start_daemon(
		flags, 0, NULL, NULL, on_request, w, MHD_OPTION_LISTEN_SOCKET, fd,
		MHD_OPTION_CONNECTION_LIMIT, CONNECTIONS_MAX, MHD_OPTION_CONNECTION_MEMORY_LIMIT,
		(size_t)CONNECTION_BYTES, MHD_OPTION_CONNECTION_TIMEOUT, SILENCE_S,
		MHD_OPTION_NOTIFY_CONNECTION, on_connection, w, MHD_OPTION_UNESCAPE_CALLBACK,
		keep_escapes, NULL, MHD_OPTION_URI_LOG_CALLBACK, note_end, NULL, MHD_OPTION_END);
}

int web_start(int fd, web_answer_fn answer, void *ctx, struct web **ret, struct err *err)
{
	struct web *w = xcalloc(1, sizeof(*w));
	sigset_t all, before;
	int r = load_libmicrohttpd(&w->lib, err);

	if (r < 0) {
		close(fd);
		free(w);
		return r;
	}
	w->answer = answer;
	w->ctx = ctx;
	TAILQ_INIT(&w->clients);
	/* Signals are for the main thread. */
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	w->daemon = start(w, fd);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	if (!w->daemon) {
		r = err_sys(err, "the HTTP server cannot be started");
		close(fd);
		free(w);
		return r;
	}
	*ret = w;
	return 0;
}

void web_stop(struct web *w)
{
	if (!w)
		return;
	w->lib.stop_daemon(w->daemon);
	free(w);
}
