/*
 * A small HTTP server (libmicrohttpd): GET and HEAD, nothing else; no TLS, no state. One thread of
 * its own, which sleeps while there is no request and is the only one to call `answer`. The memory
 * that clients can make it hold is bounded: 32 connections, of which the oldest gives way to a new
 * one, 16 KiB each beside the answer, 10 s of silence; a request that has a length, or two Hosts,
 * is refused.
 */
#ifndef RAILMATE_REPORT_WEB_H
#define RAILMATE_REPORT_WEB_H

#include <stdbool.h>
#include <stddef.h>

#include "base/str.h"

struct err;
struct web;

struct web_request {
	const char *path; /* "/metrics", without its query; escapes are as they were sent */
	const char *host; /* the header, with its port; "" if there is none */
};

struct web_reply {
	unsigned status;    /* 200 */
	const char *type;   /* of the body: "text/plain; charset=utf-8" */
	const char *policy; /* Content-Security-Policy; NULL: none */
	struct strbuf body;
};

/* Fills *reply, which comes as 404 without a body. */
typedef void (*web_answer_fn)(void *ctx, const struct web_request *request,
			      struct web_reply *reply);

/* Is this Host an IP address or localhost, or one of these (NULL: none), with or without a port? */
bool web_is_host(const char *host, const char *const *names, size_t n);
/* Is it an address: "127.0.0.1:9835", "[::1]:9835", also without the brackets? -EINVAL with a
 * sentence. */
int web_check_address(const char *address, struct err *err);
/* Listens there; a socket that does not block. -EADDRINUSE and others with a sentence: it may work
 * later. */
int web_listen(const char *address, int *ret_fd, struct err *err);
/* fd is taken. -ELIBACC: libmicrohttpd is not there. */
int web_start(int fd, web_answer_fn answer, void *ctx, struct web **ret, struct err *err);
/* Waits for an answer under way. NULL is fine. */
void web_stop(struct web *w);

#endif
