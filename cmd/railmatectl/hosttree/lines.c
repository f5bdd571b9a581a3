/* The lines of host.tree text: escapes, and the order that makes equal machines equal text. */
#include <stdlib.h>
#include <string.h>

#include "base/list.h"
#include "base/mem.h"
#include "base/str.h"
#include "hosttree/hosttree-internal.h"

static void put_escaped(struct strbuf *out, const char *s, size_t len, bool is_path)
{
	for (size_t i = 0, n; i < len; i += n ? n : 1) {
		unsigned char c = (unsigned char)s[i];
		bool blank_at_end = c == ' ' && (is_path || i + 1 == len);

		n = str_printable_sequence(s + i, len - i);
		if (n > 1)
			strbuf_add(out, s + i, n);
		else if (c == '\n')
			strbuf_puts(out, "\\n");
		else if (c == '\\')
			strbuf_puts(out, "\\\\");
		else if (!n || blank_at_end)
			strbuf_printf(out, "\\x%02x", c);
		else
			strbuf_putc(out, (char)c);
	}
}

static void put_path(struct strbuf *out, char kind, const char *path)
{
	strbuf_printf(out, "%c ", kind);
	put_escaped(out, path, strlen(path), true);
}

void line_bytes(struct strbuf *out, const char *path, const char *bytes, size_t len)
{
	put_path(out, 'x', path);
	strbuf_puts(out, " = ");
	for (size_t i = 0; i < len; i++)
		strbuf_printf(out, "%02x", (unsigned char)bytes[i]);
	strbuf_putc(out, '\n');
}

void line_file(struct strbuf *out, const char *path, const char *value, size_t len)
{
	if (!str_utf8_valid(value, len) || memchr(value, '\0', len)) {
		line_bytes(out, path, value, len);
		return;
	}
	put_path(out, 'f', path);
	strbuf_puts(out, " = ");
	put_escaped(out, value, len, false);
	strbuf_putc(out, '\n');
}

void line_link(struct strbuf *out, const char *path, const char *target)
{
	put_path(out, 'l', path);
	strbuf_puts(out, " -> ");
	put_escaped(out, target, strlen(target), false);
	strbuf_putc(out, '\n');
}

void line_dir(struct strbuf *out, const char *path)
{
	put_path(out, 'd', path);
	strbuf_putc(out, '\n');
}

/* Does a sorted line start with "<kind> <path>/"? */
static bool has_line_below(char *const *lines, size_t n, char kind, const char *path)
{
	_cleanup_free_ char *start = xasprintf("%c %s/", kind, path);
	size_t lo = 0, hi = n;

	while (lo < hi) {
		size_t mid = lo + (hi - lo) / 2;

		if (strcmp(lines[mid], start) < 0)
			lo = mid + 1;
		else
			hi = mid;
	}
	return lo < n && str_starts(lines[lo], start);
}

void lines_sort(struct strbuf *b)
{
	_cleanup_free_ char *text = strbuf_steal(b);
	_cleanup_free_ char **lines = NULL;
	size_t n = 0, cap = 0;
	char *save = NULL;

	for (char *line = strtok_r(text, "\n", &save); line; line = strtok_r(NULL, "\n", &save)) {
		lines = xgrow(lines, &cap, n + 1, sizeof(*lines));
		lines[n++] = line;
	}
	if (n > 1)
		qsort(lines, n, sizeof(*lines), list_by_string);
	for (size_t i = 0; i < n; i++) {
		const char *path = lines[i] + 2;

		if (i && !strcmp(lines[i - 1], lines[i]))
			continue;
		/* A directory with something in it needs no line: the paths below make it. */
		if (lines[i][0] == 'd' &&
		    (has_line_below(lines, n, 'd', path) || has_line_below(lines, n, 'f', path) ||
		     has_line_below(lines, n, 'l', path) || has_line_below(lines, n, 'x', path)))
			continue;
		strbuf_puts(b, lines[i]);
		strbuf_putc(b, '\n');
	}
}
