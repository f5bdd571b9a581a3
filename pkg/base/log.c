#include "base/log.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "base/str.h"

static enum log_level max_level = LOG_LEVEL_INFO;
static log_sink_fn sink;
static void *sink_arg;

static const char *const level_names[] = { "error", "warning", "info", "debug" };

void log_setup(enum log_level max, log_sink_fn fn, void *arg)
{
	max_level = max;
	sink = fn;
	sink_arg = arg;
}

/* One fprintf per line: stdio locks the stream, so lines of two threads never mix. */
static void to_stderr(enum log_level level, const char *line)
{
	struct timespec now;
	struct tm tm;
	char when[32];

	clock_gettime(CLOCK_REALTIME, &now);
	gmtime_r(&now.tv_sec, &tm);
	strftime(when, sizeof(when), "%Y-%m-%dT%H:%M:%S", &tm);
	fprintf(stderr, "%s.%03ldZ %s %s\n", when, now.tv_nsec / 1000000, level_names[level], line);
}

__attribute__((format(printf, 3, 0))) static void emit(enum log_level level, const char *subsystem,
						       const char *fmt, va_list ap)
{
	char line[1024];
	int n;

	if (level > max_level)
		return;
	n = snprintf(line, sizeof(line), "%s: ", subsystem);
	if (n >= 0 && (size_t)n < sizeof(line))
		vsnprintf(line + n, sizeof(line) - (size_t)n, fmt, ap);
	str_utf8_trim(line);
	str_printable(line, strlen(line), ""); /* names come from outside */
	if (sink)
		sink(sink_arg, level, line);
	else
		to_stderr(level, line);
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
