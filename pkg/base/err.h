/*
 * An error: a code and one sentence. Lives on the caller's stack, allocates nothing. A sentence
 * that is too long is cut between UTF-8 characters: it may travel in a gRPC status into a pod's
 * status. Characters that a terminal may not be shown (str_printable) are '?' in it.
 *
 * Convention of every fallible function in railmate: return 0 or a negative errno, take
 * `struct err *err` last, and leave outputs untouched on failure. The leaf names the object
 * (path, PCI address, resource), callers add context with err_wrap() on the way up, and the
 * program logs or prints the sentence once, at the top.
 */
#ifndef RAILMATE_BASE_ERR_H
#define RAILMATE_BASE_ERR_H

struct err {
	int code; /* positive errno; 0 while unset */
	char msg[480];
};

/* Set code and sentence; returns -code. A NULL err is allowed everywhere. */
int err_set(struct err *err, int code, const char *fmt, ...) __attribute__((format(printf, 3, 4)));
/* err_set() from errno; appends ": <strerror>". */
int err_sys(struct err *err, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
/* Prefix "<context>: " to the sentence; returns -err->code. An unset err becomes EIO, never
 * success. */
int err_wrap(struct err *err, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

#endif
