/*
 * host.tree text → files (hosttree.h). Everything is checked before the first file is made: every
 * line parses, no path is absolute or has "..", none occurs twice or goes through a link or a file
 * of the same text. As dir is empty at first, and links are made last, nothing can be written
 * outside.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/arena.h"
#include "base/err.h"
#include "base/mem.h"
#include "base/str.h"
#include "hosttree/hosttree.h"

struct entry {
	char kind; /* d f x l, as in the text */
	int line;  /* of the text, from 1 */
	char *path, *value;
	size_t len;
};

struct tree {
	struct arena *arena;
	struct entry *v; /* heap */
	size_t n, cap;
};

static int hex_byte(const char *s, const char *end)
{
	char digits[] = { s[0], end - s > 1 ? s[1] : 'x', 0 };
	uint64_t v;

	return digits[1] == 'x' || str_to_u64(digits, 16, 255, &v) < 0 ? -1 : (int)v;
}

/* All of an 'x' value is hexadecimal; other text has the escapes \xNN, \n and \\. */
static bool decode(char kind, const char *s, const char *end, struct arena *a, char **ret,
		   size_t *ret_len)
{
	_cleanup_strbuf_ struct strbuf out = STRBUF_INIT;

	strbuf_puts(&out, "");
	while (s < end) {
		bool escape = kind != 'x' && *s == '\\' && end - s > 1;
		bool hex = kind == 'x' || (escape && s[1] == 'x' && end - s > 2);
		int c = hex	       ? hex_byte(s + (escape ? 2 : 0), end)
			: !escape      ? (*s == '\\' ? -1 : (unsigned char)*s)
			: s[1] == 'n'  ? '\n'
			: s[1] == '\\' ? '\\'
				       : -1;

		if (c < 0)
			return false;
		strbuf_putc(&out, (char)c);
		s += (escape ? 2 : hex ? 0 : 1) + (hex ? 2 : 0);
	}
	*ret_len = out.len;
	*ret = arena_copy(a, out.s, out.len + 1);
	return true;
}

/* Relative, no empty component, no "." and no "..". */
static bool is_plain(const char *path)
{
	for (const char *p = path;; p++) {
		size_t n = strcspn(p, "/");

		if (!n || n > NAME_MAX || (n <= 2 && !strncmp(p, "..", n)))
			return false;
		p += n;
		if (!*p)
			return p - path < PATH_MAX;
	}
}

/* NULL, or the fault of the line. */
static const char *parse_line(const char *line, size_t len, struct entry *e, struct arena *a)
{
	const char *mark = line[0] == 'l' ? " -> " : " = ", *at, *end = line + len;
	size_t path_len;

	if (!str_utf8_valid(line, len) || memchr(line, '\0', len))
		return "not UTF-8 text";
	if (len < 3 || !strchr("dfxl", line[0]) || line[1] != ' ')
		return "does not start with 'd ', 'f ', 'x ' or 'l '";
	e->kind = line[0];
	line += 2;
	at = e->kind == 'd' ? end : memmem(line, (size_t)(end - line), mark, strlen(mark));
	/* An editor may have cut the blank behind the "=" of an empty value. */
	if (!at && e->kind != 'l' && end - line >= 2 && !memcmp(end - 2, " =", 2))
		at = end - 2;
	if (!at)
		return e->kind == 'l' ? "no ' -> ' in it" : "no ' = ' in it";
	if (!decode('d', line, at, a, &e->path, &path_len) || path_len != strlen(e->path))
		return "the path has a bad escape";
	if (!is_plain(e->path))
		return "not a plain path below the root";
	at = end - at < (ptrdiff_t)strlen(mark) ? end : at + strlen(mark);
	if (!decode(e->kind, at, end, a, &e->value, &e->len))
		return e->kind == 'x' ? "a bad hexadecimal digit" : "a bad escape";
	if (e->kind == 'l' && (!e->len || e->len != strlen(e->value) || e->len >= PATH_MAX))
		return "its target is not a path";
	return NULL;
}

static int place_of(char c)
{
	return c == '/' ? 1 : c ? (unsigned char)c + 1 : 0;
}

/* Paths below a directory follow it. */
static int by_path(const void *a, const void *b)
{
	const struct entry *e = a, *f = b;
	const char *x = e->path, *y = f->path;

	for (; *x && *x == *y; x++, y++)
		;
	return *x == *y ? e->line - f->line : place_of(*x) - place_of(*y);
}

static int parse(const char *text, size_t len, struct tree *t, struct err *err)
{
	int line = 1;

	for (size_t at = 0, n; at < len; at += n + 1, line++) {
		const char *end = memchr(text + at, '\n', len - at), *why, *path;

		n = end ? (size_t)(end - text) - at : len - at;
		t->v = xgrow(t->v, &t->cap, t->n + 1, sizeof(*t->v));
		t->v[t->n++] = (struct entry) { .line = line };
		why = parse_line(text + at, n, &t->v[t->n - 1], t->arena);
		path = t->v[t->n - 1].path;
		if (why)
			return err_set(err, EINVAL, path ? "line %d: %s: '%.80s'" : "line %d: %s",
				       line, why, path);
	}
	if (t->n)
		qsort(t->v, t->n, sizeof(*t->v), by_path);
	for (size_t i = 1; i < t->n; i++) {
		const struct entry *e = &t->v[i], *up = e - 1;
		size_t n = strlen(up->path);

		if (!strncmp(up->path, e->path, n) &&
		    (!e->path[n] || (up->kind != 'd' && e->path[n] == '/')))
			return err_set(err, EINVAL, "line %d: '%.80s' is that of line %d, or below",
				       e->line, e->path, up->line);
	}
	return 0;
}

/* --- making files --- */

static int make_entry(int dir, const struct entry *e)
{
	_cleanup_close_ int fd = -1;

	if (e->kind == 'd')
		return mkdirat(dir, e->path, 0755) < 0 && errno != EEXIST ? -errno : 0;
	if (e->kind == 'l')
		return symlinkat(e->value, dir, e->path) < 0 ? -errno : 0;
	fd = openat(dir, e->path, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0644);
	if (fd < 0)
		return -errno;
	for (size_t at = 0; at < e->len;) {
		ssize_t n = write(fd, e->value + at, e->len - at);

		if (n < 0)
			return -errno;
		at += (size_t)n;
	}
	return 0;
}

static int make_all(int dir, const struct tree *t, bool links, struct err *err)
{
	for (size_t i = 0; i < t->n; i++) {
		const struct entry *e = &t->v[i];
		int r = (e->kind == 'l') == links ? make_entry(dir, e) : 0;

		if (r == -ENOENT) {
			for (char *s = strchr(e->path, '/'); s; s = strchr(s + 1, '/')) {
				*s = '\0';
				mkdirat(dir, e->path, 0755);
				*s = '/';
			}
			r = make_entry(dir, e);
		}
		if (r < 0)
			return err_set(err, -r, "line %d: '%.80s' cannot be made: %s", e->line,
				       e->path, strerror(-r));
	}
	return 0;
}

int hosttree_unpack(const char *text, size_t len, const char *dir, struct err *err)
{
	_cleanup_arena_ struct arena *arena = arena_new(64 * 1024);
	struct tree t = { .arena = arena };
	_cleanup_close_ int fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	struct dirent **list = NULL;
	int n = scandir(dir, &list, NULL, NULL), r = parse(text, len, &t, err);

	for (int i = 0; i < n; i++)
		free(list[i]);
	free(list);
	if (r == 0 && n > 2)
		r = err_set(err, ENOTEMPTY, "directory '%s' is not empty", dir);
	else if (r == 0 && (n < 0 || fd < 0))
		r = err_set(err, ENOENT, "directory '%s': it is not there, or cannot be read", dir);
	for (int links = 0; links < 2 && r == 0; links++)
		r = make_all(fd, &t, links, err);
	free(t.v);
	return r;
}
