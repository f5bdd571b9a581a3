/*
 * One line per event: "<level> <subsystem>: <sentence>". Only the daemon, the plugin glue and
 * the programs log above debug; everything below returns errors. Thread-safe. What a
 * terminal may not be shown (str_printable) becomes '?', so a name from outside cannot write a line
 * of its own.
 */
#ifndef RAILMATE_BASE_LOG_H
#define RAILMATE_BASE_LOG_H

enum log_level { LOG_LEVEL_ERROR, LOG_LEVEL_WARN, LOG_LEVEL_INFO, LOG_LEVEL_DEBUG };

typedef void (*log_sink_fn)(void *arg, enum log_level level, const char *line);

/* Before any other thread runs. A NULL sink writes to standard error with a UTC time stamp. */
void log_setup(enum log_level max, log_sink_fn sink, void *arg);
void log_error(const char *subsystem, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
void log_warn(const char *subsystem, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
void log_info(const char *subsystem, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
void log_debug(const char *subsystem, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

#endif
