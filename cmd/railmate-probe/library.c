/* Copies of libibverbs in an image, read as files. The image is the tenant's: what is read of it is
 * bounded. */
#include <errno.h>
#include <fcntl.h>
#include <glob.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/arena.h"
#include "base/mem.h"
#include "base/str.h"
#include "library.h"
#include "sysroot/sysroot.h"

#define FILE_MAX   ((size_t)4 << 20) /* rdma-core's has 150 KiB, with debug information 1 MiB */
#define CONFIG_MAX 4096

/* One string of the file: "/usr/lib/libibverbs/lib%s-rdmav34.so", "/etc/libibverbs.d". */
static void take_string(struct library *l, const char *text, struct arena *a)
{
	static const char suffix[] = "lib%s-rdmav";
	const char *at = strstr(text, suffix);

	if (at)
		l->abi = atoi(at + sizeof(suffix) - 1);
	if (at && text[0] == '/')
		l->provider_dir = arena_printf(a, "%.*s", (int)(at - 1 - text), text);
	if (text[0] == '/' && strlen(text) < 1024 && strstr(text, "/libibverbs.d"))
		l->config_dir = arena_strdup(a, text);
}

static int read_strings(int fd, struct arena *a, struct library *l)
{
	_cleanup_free_ char *data = xcalloc(1, FILE_MAX + 1);
	size_t len = 0;
	ssize_t n;

	while (len < FILE_MAX && (n = read(fd, data + len, FILE_MAX - len)) != 0) {
		if (n < 0)
			return -errno;
		len += (size_t)n;
	}
	if (len < 4 || memcmp(data, "\177ELF", 4) != 0)
		return -EBADMSG;
	for (size_t at = 0; at < len; at += strlen(data + at) + 1)
		take_string(l, data + at, a);
	return l->abi < 0 ? -EBADMSG : 0;
}

int library_read(const struct sysroot *root, const char *path, struct arena *a, struct library *ret)
{
	_cleanup_close_ int fd = sysroot_openat(root, O_RDONLY | O_NONBLOCK, "%s", path);
	struct library l = { .path = arena_strdup(a, path), .abi = -1 };
	struct stat st;
	int r;

	if (fd < 0)
		return fd;
	if (fstat(fd, &st) < 0)
		return -errno;
	if (!S_ISREG(st.st_mode))
		return -EBADMSG;
	l.dev = st.st_dev;
	l.ino = st.st_ino;
	r = read_strings(fd, a, &l);
	if (r == 0)
		*ret = l;
	return r;
}

struct copies {
	const struct sysroot *root;
	struct arena *a;
	struct library *v;
	size_t n, max;
};

static void add_copy(struct copies *c, const char *path)
{
	struct library l;

	if (c->n == c->max || library_read(c->root, path, c->a, &l) < 0)
		return;
	for (size_t i = 0; i < c->n; i++) {
		if (c->v[i].dev == l.dev && c->v[i].ino == l.ino)
			return;
	}
	c->v[c->n++] = l;
}

static void add_matching(struct copies *c, const char *pattern)
{
	const char *top = sysroot_is_live(c->root) ? "" : sysroot_path(c->root);
	glob_t found = { .gl_pathc = 0 };

	if (glob(arena_printf(c->a, "%s%s", top, pattern), GLOB_BRACE, NULL, &found) == 0) {
		for (size_t i = 0; i < found.gl_pathc; i++)
			add_copy(c, found.gl_pathv[i] + strlen(top));
	}
	globfree(&found);
}

static void add_of_environment(struct copies *c)
{
	char *list = arena_strdup(c->a, getenv("LD_LIBRARY_PATH")), *rest = NULL;
	const char *conda = getenv("CONDA_PREFIX");

	for (char *d = list ? strtok_r(list, ":;", &rest) : NULL; d;
	     d = strtok_r(NULL, ":;", &rest))
		add_copy(c, arena_printf(c->a, "%s/libibverbs.so.1", d));
	if (conda)
		add_copy(c, arena_printf(c->a, "%s/lib/libibverbs.so.1", conda));
}

size_t library_find_all(const struct sysroot *root, const char *first, struct arena *a,
			struct library *ret, size_t max)
{
	/* Python's wheels bring libraries of their own under a name with a hash. */
	static const char *const usual[] = {
		"/{usr/lib,lib}/*-linux-*/libibverbs.so.1",
		"/{usr/lib64,lib64,usr/lib,lib,usr/local/lib,usr/local/lib64}/libibverbs.so.1",
		"/usr/local/*/lib{,64}/libibverbs.so.1",
		"/opt/{*,*/*,*/*/*}/lib{,64}/libibverbs.so.1",
		"/{root,home/*}/{*conda*,*conda*/envs/*,.venv}/lib/libibverbs.so.1",
		"/{usr,usr/local,opt/*,opt/*/envs/*}/lib/python3*/{site,dist}-packages/*.libs/libibverbs*.so*",
	};
	struct copies c = { root, a, ret, 0, max };

	if (first)
		add_copy(&c, first);
	if (sysroot_is_live(root))
		add_of_environment(&c);
	for (size_t i = 0; i < ARRAY_LEN(usual); i++)
		add_matching(&c, usual[i]);
	return c.n;
}

/* --- providers --- */

struct search {
	const struct sysroot *root;
	const char *dir, *name;
	struct arena *a;
	const char *found;
};

static int is_of_other_abi(void *arg, const char *file)
{
	struct search *s = arg;
	const char *begin = arena_printf(s->a, "lib%s-rdmav", s->name);
	const char *suffix = strrchr(file, '.');

	if (!str_starts(file, begin) || !str_eq(suffix, ".so"))
		return 0;
	s->found = arena_printf(s->a, "%s/%s", s->dir, file);
	return 1;
}

/* "driver mlx5", in one of the files of config_dir. A name may be a path. */
static int names_it(void *arg, const char *file)
{
	const struct search *s = arg;
	char text[CONFIG_MAX], *rest = NULL, *last;

	if (sysroot_read(s->root, text, sizeof(text), "%s/%s", s->dir, file) < 0)
		return 0;
	for (char *line = strtok_r(text, "\n", &rest); line; line = strtok_r(NULL, "\n", &rest)) {
		line = str_trim(line);
		last = strrchr(line, '/') ? strrchr(line, '/') + 1 : line + 7;
		if (str_starts(line, "driver") && strlen(line) > 7 &&
		    str_eq(str_trim(last), s->name))
			return 1;
	}
	return 0;
}

static const char *folder(const char *path, struct arena *a)
{
	return arena_printf(a, "%.*s", (int)(strrchr(path, '/') - path), path);
}

enum provider_state library_provider(const struct sysroot *root, const struct library *l,
				     const char *name, struct arena *a, const char **where)
{
	/* As load_driver() of rdma-core: its own folder, then the search path of libraries. */
	const char *dirs[] = { l->provider_dir, folder(l->path, a) };
	struct search s = { .root = root, .name = name, .a = a };
	const char *path, *wanted = NULL;

	for (size_t i = 0; i < ARRAY_LEN(dirs); i++) {
		s.dir = dirs[i];
		if (!s.dir)
			continue;
		path = arena_printf(a, "%s/lib%s-rdmav%d.so", s.dir, name, l->abi);
		if (sysroot_exists(root, "%s", path)) {
			s.dir = l->config_dir;
			*where = path;
			return s.dir && sysroot_each(root, s.dir, names_it, &s) != 1
				       ? PROVIDER_NOT_NAMED
				       : PROVIDER_THERE;
		}
		wanted = wanted ? wanted : path;
		if (!s.found)
			sysroot_each(root, s.dir, is_of_other_abi, &s);
	}
	*where = s.found ? s.found : wanted;
	return s.found ? PROVIDER_OTHER_ABI : PROVIDER_ABSENT;
}
