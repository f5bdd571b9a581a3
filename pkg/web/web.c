#include "web/web.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/queue.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/err.h"
#include "base/mem.h"
#include "web/libmicrohttpd-internal.h"

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

	(void)kind;
	(void)value;
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
	(void)ctx;
	(void)c;
	return strlen(text);
}

/* Before the path is split: the end of it as a string. */
static void *note_end(void *ctx, const char *target, struct MHD_Connection *c)
{
	(void)ctx;
	(void)c;
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

	(void)data;
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
	int r = web_load_libmicrohttpd(&w->lib, err);

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
