/*
 * host.tree text → files. Everything is checked before the first file is made: every line parses,
 * no path is absolute or has "..", no path occurs twice or goes through a link or a file of the
 * same text. As dir is empty at first, and links are made last, nothing can be written outside it.
 */
#include "hosttree/hosttree.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/err.h"
#include "base/mem.h"
#include "base/str.h"

#define TEXT_MAX ((size_t)64 << 20)

struct node {
	char kind;  /* d f x l, as in the text */
	char *path; /* decoded */
	const char *value;
	size_t value_len; /* still encoded; a link's is decoded when it is made */
	int line;
};

struct tree {
	struct node *nodes;
	size_t n, cap;
};

static void tree_done(struct tree *t)
{
	for (size_t i = 0; i < t->n; i++)
		free(t->nodes[i].path);
	free(t->nodes);
}

static int hex_digit(char c)
{
	static const char digits[] = "0123456789abcdef";
	const char *p = c ? strchr(digits, c >= 'A' && c <= 'F' ? c - 'A' + 'a' : c) : NULL;

	return p ? (int)(p - digits) : -1;
}

/* Escapes: \n, \\ and \xNN. */
static int unescape(const char *s, size_t len, struct strbuf *out)
{
	for (const char *end = s + len; s < end;) {
		if (*s != '\\') {
			strbuf_putc(out, *s++);
		} else if (end - s >= 2 && (s[1] == 'n' || s[1] == '\\')) {
			strbuf_putc(out, s[1] == 'n' ? '\n' : '\\');
			s += 2;
		} else if (end - s >= 4 && s[1] == 'x' && hex_digit(s[2]) >= 0 &&
			   hex_digit(s[3]) >= 0) {
			strbuf_putc(out, (char)(hex_digit(s[2]) << 4 | hex_digit(s[3])));
			s += 4;
		} else {
			return -EINVAL;
		}
	}
	return 0;
}

static int decode(const struct node *node, struct strbuf *out)
{
	const char *s = node->value;
	size_t len = node->value_len;

	if (node->kind != 'x')
		return unescape(s, len, out);
	if (len % 2)
		return -EINVAL;
	for (size_t i = 0; i < len; i += 2) {
		if (hex_digit(s[i]) < 0 || hex_digit(s[i + 1]) < 0)
			return -EINVAL;
		strbuf_putc(out, (char)(hex_digit(s[i]) << 4 | hex_digit(s[i + 1])));
	}
	return 0;
}

/* Between path and value. An editor may have cut the blank behind the "=" of an empty value. */
static int split(struct node *node, const char *line, size_t len, size_t *ret_path_len,
		 struct err *err)
{
	const char *mark = node->kind == 'l' ? " -> " : " = ";
	const char *at = memmem(line, len, mark, strlen(mark));

	if (!at && len >= 2 && node->kind != 'l' && !memcmp(line + len - 2, " =", 2)) {
		*ret_path_len = len - 2;
		return 0;
	}
	if (!at)
		return err_set(err, EINVAL, "line %d: no '%s' in it", node->line, mark);
	*ret_path_len = (size_t)(at - line);
	node->value = at + strlen(mark);
	node->value_len = len - *ret_path_len - strlen(mark);
	return 0;
}

static int parse_line(const char *line, size_t len, struct node *node, struct err *err)
{
	_cleanup_strbuf_ struct strbuf path = STRBUF_INIT, value = STRBUF_INIT;
	size_t path_len, n;
	bool safe = true;
	int r;

	if (!str_utf8_valid(line, len) || memchr(line, '\0', len))
		return err_set(err, EINVAL, "line %d: not UTF-8 text", node->line);
	if (len < 3 || !strchr("dfxl", line[0]) || line[1] != ' ')
		return err_set(err, EINVAL, "line %d: does not start with 'd ', 'f ', 'x ' or 'l '",
			       node->line);
	node->kind = line[0];
	node->value = "";
	line += 2;
	path_len = len -= 2;
	if (node->kind != 'd') {
		r = split(node, line, len, &path_len, err);
		if (r < 0)
			return r;
	}
	if (unescape(line, path_len, &path) < 0 || path.len != strlen(strbuf_str(&path)))
		return err_set(err, EINVAL, "line %d: the path has a bad escape", node->line);
	/* Relative, no empty component, no "." and no "..". */
	for (const char *p = strbuf_str(&path); safe; p += n + 1) {
		n = strcspn(p, "/");
		safe = n && n <= NAME_MAX && !(n == 1 && p[0] == '.') &&
		       !(n == 2 && p[0] == '.' && p[1] == '.');
		if (!p[n])
			break;
	}
	if (!safe || path.len >= PATH_MAX)
		return err_set(err, EINVAL, "line %d: '%.80s' is not a plain path below the root",
			       node->line, strbuf_str(&path));
	node->path = strbuf_steal(&path);
	if (decode(node, &value) < 0)
		return err_set(err, EINVAL, "line %d: the value of '%.80s' has a bad %s",
			       node->line, node->path,
			       node->kind == 'x' ? "hexadecimal digit" : "escape");
	if (node->kind == 'l' &&
	    (!value.len || value.len != strlen(value.s) || value.len >= PATH_MAX))
		return err_set(err, EINVAL, "line %d: the target of '%.80s' is not a path",
			       node->line, node->path);
	return 0;
}

static int parse_text(const char *text, size_t len, struct tree *t, struct err *err)
{
	int line = 1, r;

	for (size_t at = 0; at < len; line++) {
		const char *end = memchr(text + at, '\n', len - at);
		size_t n = end ? (size_t)(end - text) - at : len - at;

		t->nodes = xgrow(t->nodes, &t->cap, t->n + 1, sizeof(*t->nodes));
		t->nodes[t->n++] = (struct node) { .line = line };
		r = parse_line(text + at, n, &t->nodes[t->n - 1], err);
		if (r < 0)
			return r;
		at += n + 1;
	}
	return 0;
}

static int by_path(const void *a, const void *b)
{
	return strcmp(((const struct node *)a)->path, ((const struct node *)b)->path);
}

/* Every directory on the way to a node must be one, not a link or a file of this text. */
static int check_parents(const struct tree *t, const struct node *node, struct err *err)
{
	_cleanup_free_ char *path = xstrdup(node->path);

	for (char *slash = strrchr(path, '/'); slash; slash = strrchr(path, '/')) {
		const struct node key = { .path = path }, *up;

		*slash = '\0';
		up = bsearch(&key, t->nodes, t->n, sizeof(*t->nodes), by_path);
		if (up && up->kind != 'd')
			return err_set(err, EINVAL,
				       "line %d: '%.80s' goes through the %s of line %d",
				       node->line, node->path, up->kind == 'l' ? "link" : "file",
				       up->line);
	}
	return 0;
}

static int check_tree(struct tree *t, struct err *err)
{
	int r;

	if (t->n)
		qsort(t->nodes, t->n, sizeof(*t->nodes), by_path);
	for (size_t i = 1; i < t->n; i++) {
		if (!by_path(&t->nodes[i - 1], &t->nodes[i]))
			return err_set(
				err, EINVAL, "line %d: '%.80s' is already in line %d",
				t->nodes[i].line > t->nodes[i - 1].line ? t->nodes[i].line
									: t->nodes[i - 1].line,
				t->nodes[i].path,
				t->nodes[i].line < t->nodes[i - 1].line ? t->nodes[i].line
									: t->nodes[i - 1].line);
	}
	for (size_t i = 0; i < t->n; i++) {
		r = check_parents(t, &t->nodes[i], err);
		if (r < 0)
			return r;
	}
	return 0;
}

static int make_node(int dir_fd, const struct node *node)
{
	_cleanup_strbuf_ struct strbuf value = STRBUF_INIT;
	_cleanup_close_ int fd = -1;

	if (node->kind == 'd')
		return mkdirat(dir_fd, node->path, 0755) < 0 && errno != EEXIST ? -errno : 0;
	decode(node, &value);
	if (node->kind == 'l')
		return symlinkat(strbuf_str(&value), dir_fd, node->path) < 0 ? -errno : 0;
	fd = openat(dir_fd, node->path, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0644);
	if (fd < 0)
		return -errno;
	for (size_t at = 0; at < value.len;) {
		ssize_t n = write(fd, value.s + at, value.len - at);

		if (n < 0)
			return -errno;
		at += (size_t)n;
	}
	return 0;
}

/* Sorted by path, neighbours mostly share their directory: it is made once. */
static int make_all(int dir_fd, const struct tree *t, bool links, struct err *err)
{
	const char *last = "";
	size_t last_len = 0;

	for (size_t i = 0; i < t->n; i++) {
		const struct node *node = &t->nodes[i];
		char *slash = strrchr(node->path, '/');
		size_t len = slash ? (size_t)(slash - node->path) : 0;
		bool same = len == last_len && !memcmp(node->path, last, len);
		int r = 0;

		if ((node->kind == 'l') != links)
			continue;
		slash = same ? NULL : strchr(node->path, '/');
		for (; slash && r >= 0; slash = strchr(slash + 1, '/')) {
			*slash = '\0';
			r = mkdirat(dir_fd, node->path, 0755) < 0 && errno != EEXIST ? -errno : 0;
			*slash = '/';
		}
		if (r >= 0)
			r = make_node(dir_fd, node);
		if (r < 0)
			return err_set(err, -r, "line %d: '%.80s' cannot be made: %s", node->line,
				       node->path, strerror(-r));
		last = node->path;
		last_len = len;
	}
	return 0;
}

int hosttree_unpack(const char *text, size_t len, const char *dir, struct err *err)
{
	__attribute__((cleanup(tree_done))) struct tree t = { 0 };
	_cleanup_close_ int dir_fd = -1;
	struct dirent **list;
	int n, r;

	if (len > TEXT_MAX)
		return err_set(err, EFBIG,
			       "a host.tree of %zu bytes is larger than the %zu allowed", len,
			       TEXT_MAX);
	r = parse_text(text, len, &t, err);
	if (r >= 0)
		r = check_tree(&t, err);
	if (r < 0)
		return r;
	n = scandir(dir, &list, NULL, NULL);
	if (n < 0)
		return err_sys(err, "directory '%s'", dir);
	for (int i = 0; i < n; i++)
		free(list[i]);
	free(list);
	if (n > 2)
		return err_set(err, ENOTEMPTY, "directory '%s' is not empty", dir);
	dir_fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (dir_fd < 0)
		return err_sys(err, "directory '%s'", dir);
	r = make_all(dir_fd, &t, false, err);
	return r < 0 ? r : make_all(dir_fd, &t, true, err);
}
