/*
 * What a line of the log says, in one string: a constant sentence, then what varies as key=value.
 * A format string looks like the line that it makes: a word with '=' behind a blank begins a pair,
 * and the pairs are the end of it:
 *
 *	"Allocate refused resource=%s error=%s"
 *	Allocate refused resource=rdma/vf error="no VF is free"
 *
 * A pair whose value is NULL or empty is left out. Keys are those of the table in
 * docs/operations.md (hack/check docs). What a terminal may not be shown (str_printable) becomes a
 * question mark, so what stands between two pairs cannot come from outside. A plain sentence is an
 * event without pairs.
 */
#ifndef RAILMATE_BASE_EVENT_H
#define RAILMATE_BASE_EVENT_H

#include <stdarg.h>
#include <stddef.h>

struct json;
struct strbuf;

#define EVENT_SIZE 1024 /* what does not fit is cut */
void event_compose(char *ret, size_t size, const char *fmt, va_list ap)
	__attribute__((format(printf, 3, 0)));
/* More pairs for it: " resource=%s". */
void event_extend(char *event, size_t size, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));
size_t event_sentence(const char *event);		/* its length, without the pairs */
void event_text(struct strbuf *out, const char *event); /* values quoted where needed */
void event_json(struct json *out, const char *event); /* "message", and its keys, into an object */

#endif
