#include "cni.h"

#include <stdarg.h>
#include <stdio.h>

#include "base/err.h"
#include "base/str.h"

int cni_set(struct cni_error *e, enum cni_code code, const char *fmt, ...)
{
	va_list ap;

	e->code = code;
	va_start(ap, fmt);
	vsnprintf(e->msg, sizeof(e->msg), fmt, ap);
	va_end(ap);
	str_utf8_trim(e->msg);
	return -1;
}

int cni_from(struct cni_error *e, enum cni_code code, const struct err *err)
{
	return cni_set(e, code, "%s", err->msg);
}
