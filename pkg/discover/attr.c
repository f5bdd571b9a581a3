/* Values of single files, and the sentences about those that make no sense. */
#include <ctype.h>
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/mem.h"
#include "base/str.h"
#include "discover/scan-internal.h"

#define DEVICES "sys/bus/pci/devices/"

void scan_note(struct scan *s, const char *fmt, ...)
{
	va_list ap;

	s->notes = xgrow(s->notes, &s->cap_notes, s->n_notes + 1, sizeof(*s->notes));
	va_start(ap, fmt);
	s->notes[s->n_notes++] = arena_vprintf(s->arena, fmt, ap);
	va_end(ap);
}

/* "0000:3b:00.2/net/eth0": the device leads, and the path to all devices is left out. */
static void subject(const struct dir *d, char *buf, size_t size)
{
	size_t skip = strlen(DEVICES);

	dir_path(d, buf, size);
	if (str_starts(buf, DEVICES))
		memmove(buf, buf + skip, strlen(buf + skip) + 1);
}

/* At most 40 characters of the value are shown, printable. */
static int bad_value(const struct dir *d, const char *name, const char *value, const char *what,
		     struct err *err)
{
	char who[128], shown[44];
	size_t n;

	subject(d, who, sizeof(who));
	if (!*value)
		return err_set(err, EINVAL, "%s: %s is empty", who, name);
	n = strnlen(value, 40);
	for (size_t i = 0; i < n; i++)
		shown[i] = isprint((unsigned char)value[i]) ? value[i] : '?';
	snprintf(shown + n, sizeof(shown) - n, "%s", value[n] ? "..." : "");
	return err_set(err, EINVAL, "%s: %s says '%s', not %s", who, name, shown, what);
}

static int unreadable(const struct dir *d, const char *name, int code, struct err *err)
{
	char who[128];

	subject(d, who, sizeof(who));
	return err_set(err, code, "%s: %s cannot be read: %s", who, name,
		       code == EFBIG ? "it is too long for what it should hold" : strerror(code));
}

/* Text of a small file without blanks around it; *ret points into buf. */
static int read_text(const struct dir *d, const char *name, char *buf, size_t size, char **ret,
		     struct err *err)
{
	int n = dir_read(d, name, buf, size);

	if (n == -ENOENT)
		return n;
	if (n < 0)
		return unreadable(d, name, -n, err);
	if ((size_t)n != strlen(buf))
		return unreadable(d, name, EILSEQ, err);
	*ret = str_trim(buf);
	return 0;
}

int attr_u64(const struct dir *d, const char *name, int base, uint64_t max, uint64_t *ret,
	     struct err *err)
{
	char buf[64], *text;
	int r = read_text(d, name, buf, sizeof(buf), &text, err);

	if (r < 0)
		return r;
	if (str_to_u64(text, base, max, ret) < 0)
		return bad_value(d, name, text, "a number that fits", err);
	return 0;
}

int attr_int(const struct dir *d, const char *name, int *ret, struct err *err)
{
	char buf[64], *text;
	int r = read_text(d, name, buf, sizeof(buf), &text, err);

	if (r < 0)
		return r;
	return str_to_int(text, ret) < 0 ? bad_value(d, name, text, "a number", err) : 0;
}

int scan_int(struct scan *s, const struct dir *d, const char *name, int max, int fallback)
{
	struct err err = { 0 };
	uint64_t v;
	int r = attr_u64(d, name, 10, (uint64_t)max, &v, &err);

	if (r < 0 && r != -ENOENT)
		scan_note(s, "%s", err.msg);
	return r < 0 ? fallback : (int)v;
}

int scan_word(struct scan *s, const struct dir *d, const char *name, const char **ret)
{
	struct err err = { 0 };
	char buf[64], *text;
	const char *colon;
	int r = read_text(d, name, buf, sizeof(buf), &text, &err);

	*ret = NULL;
	if (r < 0) {
		if (r != -ENOENT)
			scan_note(s, "%s", err.msg);
		return r;
	}
	colon = strstr(text, ": ");
	if (colon && colon[2])
		*ret = arena_strdup(s->arena, colon + 2);
	else
		scan_note_value(s, d, name, text);
	return 0;
}

void scan_note_value(struct scan *s, const struct dir *d, const char *name, const char *value)
{
	struct err err;

	bad_value(d, name, value, "something known; taken as unknown", &err);
	scan_note(s, "%s", err.msg);
}

int parse_thousandths(const char *text, const char *unit, int *ret)
{
	long whole, part = 0;
	char *end;

	if (!isdigit((unsigned char)*text))
		return -EINVAL;
	whole = strtol(text, &end, 10);
	if (*end == '.') {
		int scale = 100;

		for (end++; isdigit((unsigned char)*end) && scale; end++, scale /= 10)
			part += (*end - '0') * scale;
	}
	if (*end != ' ' || !str_starts(end + 1, unit) || whole > 100000)
		return -EINVAL;
	*ret = (int)(whole * 1000 + part);
	return 0;
}
