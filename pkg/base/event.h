/*
 * A line of the log in one string: a constant sentence, then its facts as key=value. A format
 * string looks like the line that it makes: a word with '=' behind a blank begins a pair, and the
 * pairs are the end of it:
 *
 *	"Allocate refused resource=%s error=%s"
 *	Allocate refused resource=rdma/vf error="no VF is free"
 *
 * A pair whose value is NULL or empty is left out. Keys are those of the table in
 * docs/operations.md (hack/check docs). Characters that a terminal may not be shown (str_printable)
 * become question marks, so text between two pairs cannot come from outside. A plain sentence is an
 * event without pairs.
 */
#ifndef RAILMATE_BASE_EVENT_H
#define RAILMATE_BASE_EVENT_H

#include <stdarg.h>
#include <stddef.h>

struct json;
struct strbuf;

#define EVENT_SIZE 1024 /* a longer one is cut */
void event_compose(char *ret, size_t size, const char *fmt, va_list ap)
	__attribute__((format(printf, 3, 0)));
/* Appends pairs to an event: " resource=%s". */
void event_extend(char *event, size_t size, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));
size_t event_sentence(const char *event); /* length of the sentence, without the pairs */
void event_text(struct strbuf *out, const char *event); /* values quoted where needed */
void event_json(struct json *out, const char *event); /* "message", and its keys, into an object */

#endif
