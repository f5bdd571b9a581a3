/*
 * One line per event, for people and for machines:
 *
 *	log_warn("kubelet", "Allocate refused error=%s", err.msg);
 *	2026-11-22T10:00:00.000Z warning kubelet: Allocate refused error="no VF is free"
 *
 * base/event.h has the form of the format strings. Only the daemon, the plugin glue and the
 * programs log above debug; everything below returns errors, or events for log_event().
 * Thread-safe. A name from outside can write neither a line nor a pair of its own.
 */
#ifndef RAILMATE_BASE_LOG_H
#define RAILMATE_BASE_LOG_H

#include <stdarg.h>
#include <stdint.h>

enum log_level { LOG_LEVEL_ERROR, LOG_LEVEL_WARN, LOG_LEVEL_INFO, LOG_LEVEL_DEBUG };
enum log_format { LOG_FORMAT_TEXT, LOG_FORMAT_JSON };

typedef void (*log_sink_fn)(void *arg, enum log_level level, const char *line);

/* Both before any other thread runs. A NULL sink writes to standard error with a UTC time stamp; a
 * sink gets "<subsystem>: <event as text>". JSON is an object per line. */
void log_setup(enum log_level max, log_sink_fn sink, void *arg);
void log_set_format(enum log_format format);
/* Before any other thread runs. At most so many lines of one message a minute, debug aside: clients
 * of the plugin sockets decide how often some come. 0, as at the start: any number. */
void log_limit(unsigned a_minute);

void log_error(const char *subsystem, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
void log_warn(const char *subsystem, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
void log_info(const char *subsystem, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
void log_debug(const char *subsystem, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
void log_event(enum log_level level, const char *subsystem, const char *event);

/* Lines of one kind, counted by whoever writes them. Zero-initialised; its owner's lock is enough.
 */
struct log_rate {
	int64_t since_ms; /* its minute, which begins with a line */
	unsigned lines;
};
/* One line more; returns which one it is of its minute, from 1. */
unsigned log_rate_count(struct log_rate *rate);
/* A warning about a resource, which becomes its last pair; beyond so many of its minute at debug
 * level. */
void log_warn_rated(struct log_rate *rate, unsigned a_minute, const char *subsystem,
		    const char *resource, const char *fmt, va_list ap)
	__attribute__((format(printf, 5, 0)));

#endif
