#include "base/err.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

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
