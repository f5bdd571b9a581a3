/*
 * Errors and the log: one sentence from the leaf that found it to the line that a person reads.
 */
#include "base/log.h"

#include <errno.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "base/clock.h"
#include "base/err.h"
#include "base/event.h"
#include "base/json.h"
#include "base/str.h"

/* It may end in a log, on a terminal or in a pod's status, and names in it come from outside. */
static void make_printable(struct err *err)
{
	str_utf8_trim(err->msg);
	str_printable(err->msg, strlen(err->msg), "");
}

int err_set(struct err *err, int code, const char *fmt, ...)
{
	va_list ap;

	if (!err)
		return -code;
	err->code = code;
	va_start(ap, fmt);
	vsnprintf(err->msg, sizeof(err->msg), fmt, ap);
	va_end(ap);
	make_printable(err);
	return -code;
}

int err_sys(struct err *err, const char *fmt, ...)
{
	int code = errno ? errno : EIO;
	va_list ap;
	int n;

	if (!err)
		return -code;
	err->code = code;
	va_start(ap, fmt);
	n = vsnprintf(err->msg, sizeof(err->msg), fmt, ap);
	va_end(ap);
	if (n >= 0 && (size_t)n < sizeof(err->msg))
		snprintf(err->msg + n, sizeof(err->msg) - (size_t)n, ": %s", strerror(code));
	make_printable(err);
	return -code;
}

int err_wrap(struct err *err, const char *fmt, ...)
{
	char inner[sizeof(err->msg)];
	va_list ap;
	int n;

	if (!err)
		return -EIO;
	if (!err->code)
		*err = (struct err) { .code = EIO, .msg = "no reason given" };
	memcpy(inner, err->msg, sizeof(inner));
	va_start(ap, fmt);
	n = vsnprintf(err->msg, sizeof(err->msg), fmt, ap);
	va_end(ap);
	if (n >= 0 && (size_t)n < sizeof(err->msg))
		snprintf(err->msg + n, sizeof(err->msg) - (size_t)n, ": %s", inner);
	make_printable(err);
	return -err->code;
}

/* --- the log --- */

static enum log_level max_level = LOG_LEVEL_INFO;

static enum log_format line_format = LOG_FORMAT_TEXT;

static log_sink_fn sink;

static void *sink_arg;

static unsigned limit;

/* Of messages, by their hash. Those that share a place share its lines, too. */
#define PLACES	  1024
#define MINUTE_MS 60000

static struct log_rate places[PLACES];

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static const char *const level_names[] = { "error", "warning", "info", "debug" };

void log_setup(enum log_level max, log_sink_fn fn, void *arg)
{
	max_level = max;
	sink = fn;
	sink_arg = arg;
}

void log_set_format(enum log_format format)
{
	line_format = format;
}

void log_limit(unsigned a_minute)
{
	limit = a_minute;
}

unsigned log_rate_count(struct log_rate *rate)
{
	int64_t now_ms = clock_mono_ms();

	if (!rate->lines || now_ms - rate->since_ms >= MINUTE_MS)
		*rate = (struct log_rate) { .since_ms = now_ms };
	return ++rate->lines;
}

/* *ret_last: as many as may be. */
static bool may_say(const char *event, size_t len, bool *ret_last)
{
	size_t at = str_checksum(event, len) % PLACES;
	unsigned n;

	pthread_mutex_lock(&lock);
	n = log_rate_count(&places[at]);
	pthread_mutex_unlock(&lock);
	*ret_last = n == limit;
	return n <= limit;
}

/* --- a line --- */

/* One fputs per line: stdio locks the stream, so lines of two threads never mix. */
static void to_stderr(enum log_level level, const char *subsystem, const char *event)
{
	_cleanup_strbuf_ struct strbuf line = { 0 };
	char second[32], when[48];
	struct timespec now;
	struct json j;
	struct tm tm;

	clock_gettime(CLOCK_REALTIME, &now);
	gmtime_r(&now.tv_sec, &tm);
	strftime(second, sizeof(second), "%Y-%m-%dT%H:%M:%S", &tm);
	snprintf(when, sizeof(when), "%s.%03ldZ", second, now.tv_nsec / 1000000);
	if (line_format == LOG_FORMAT_JSON) {
		json_init(&j, &line, 0);
		json_begin_object(&j);
		json_kv_string(&j, "time", when);
		json_kv_string(&j, "level", level_names[level]);
		json_kv_string(&j, "subsystem", subsystem);
		event_json(&j, event);
		json_end_object(&j);
	} else {
		strbuf_printf(&line, "%s %s %s: ", when, level_names[level], subsystem);
		event_text(&line, event);
	}
	strbuf_putc(&line, '\n');
	fputs(line.s, stderr);
}

static void put_line(enum log_level level, const char *subsystem, const char *event)
{
	_cleanup_strbuf_ struct strbuf line = { 0 };

	if (!sink) {
		to_stderr(level, subsystem, event);
		return;
	}
	strbuf_printf(&line, "%s: ", subsystem);
	event_text(&line, event);
	sink(sink_arg, level, line.s);
}

void log_event(enum log_level level, const char *subsystem, const char *event)
{
	size_t len = event_sentence(event);
	bool last = false;

	if (level > max_level || (limit && level != LOG_LEVEL_DEBUG && !may_say(event, len, &last)))
		return;
	put_line(level, subsystem, event);
	if (last)
		log_warn(
			"log",
			"lines of one message come too often; the next ones are left out for up to a minute text=%.*s",
			(int)len, event);
}

__attribute__((format(printf, 3, 0))) static void emit(enum log_level level, const char *subsystem,
						       const char *fmt, va_list ap)
{
	char event[EVENT_SIZE];

	if (level > max_level)
		return;
	event_compose(event, sizeof(event), fmt, ap);
	log_event(level, subsystem, event);
}

#define DEFINE_LOG(name, level)                                                                    \
	void name(const char *subsystem, const char *fmt, ...)                                     \
	{                                                                                          \
		va_list ap;                                                                        \
                                                                                                   \
		va_start(ap, fmt);                                                                 \
		emit(level, subsystem, fmt, ap);                                                   \
		va_end(ap);                                                                        \
	}

DEFINE_LOG(log_error, LOG_LEVEL_ERROR)
DEFINE_LOG(log_warn, LOG_LEVEL_WARN)
DEFINE_LOG(log_info, LOG_LEVEL_INFO)
DEFINE_LOG(log_debug, LOG_LEVEL_DEBUG)

void log_warn_rated(struct log_rate *rate, unsigned a_minute, const char *subsystem,
		    const char *resource, const char *fmt, va_list ap)
{
	char event[EVENT_SIZE];

	event_compose(event, sizeof(event), fmt, ap);
	event_extend(event, sizeof(event), " resource=%s", resource);
	log_event(log_rate_count(rate) <= a_minute ? LOG_LEVEL_WARN : LOG_LEVEL_DEBUG, subsystem,
		  event);
}
