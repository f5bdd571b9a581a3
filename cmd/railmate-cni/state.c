#include "cni.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/arena.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/file.h"
#include "base/json.h"
#include "base/mem.h"
#include "base/str.h"
#include "document/document.h"

#define STATE_VERSION 1
#define STATE_MAX     (4 << 20)
/* Between the two parts of a file's name: no container id holds it. */
#define BETWEEN '@'
/* A temporary file this old was left behind by a kill. */
#define LEFT_BEHIND_S 3600

static char *path_of(const char *dir, const char *container, const char *ifname)
{
	return xasprintf("%s/%s%c%s", dir, container, BETWEEN, ifname);
}

static int sync_directory(const char *dir, struct err *err)
{
	_cleanup_close_ int fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	return fd < 0 ? err_sys(err, "open %s", dir) : file_sync_dir(fd, dir, err);
}

static void put_state(const struct state *s, struct strbuf *out)
{
	struct json j;

	json_init(&j, out, 0);
	json_begin_object(&j);
	json_kv_string(&j, "railmate", "cni");
	json_kv_int(&j, "version", STATE_VERSION);
	json_kv_string(&j, "network", s->network);
	json_kv_string(&j, "slot", s->slot);
	json_kv_string(&j, "vf", s->vf);
	json_kv_string(&j, "args", s->args);
	json_kv_string(&j, "type", s->type);
	json_key(&j, "conf");
	json_raw(&j, s->conf, s->conf_len);
	json_end_object(&j);
	strbuf_putc(out, '\n');
}

int state_create(const char *dir, const char *container, const char *ifname, const struct state *s,
		 struct err *err)
{
	_cleanup_free_ char *path = path_of(dir, container, ifname);
	_cleanup_free_ char *temporary =
		xasprintf("%s/.%s%c%s.%d", dir, container, BETWEEN, ifname, (int)getpid());
	const struct file_new f = {
		.dir = AT_FDCWD,
		.name = path,
		.temporary = temporary,
		.mode = 0600,
		.synced = true,
		.only_new = true,
	};
	_cleanup_strbuf_ struct strbuf text = STRBUF_INIT;
	int r;

	put_state(s, &text);
	r = trusted_make_dirs(dir, 0700, err);
	if (r < 0)
		return r;
	r = file_write(&f, text.s, text.len, err);
	return r < 0 ? r : sync_directory(dir, err);
}

static int read_file(const char *path, struct arena *a, const char **ret, size_t *ret_len, struct err *err)
{
	_cleanup_close_ int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	struct stat st;
	char *text;

	if (fd < 0)
		return err_sys(err, "open %s", path);
	if (fstat(fd, &st) < 0 || !S_ISREG(st.st_mode) || st.st_size > STATE_MAX)
		return err_set(err, EBADMSG, "%s is no file of railmate-cni", path);
	text = arena_alloc(a, (size_t)st.st_size + 1);
	if (read(fd, text, (size_t)st.st_size) != st.st_size)
		return err_sys(err, "read %s", path);
	*ret = text;
	*ret_len = (size_t)st.st_size;
	return 0;
}

static int parse_state(const struct item *top, const char *path, struct state *ret, struct err *err)
{
	const struct item *conf = item_get(top, "conf");
	struct state s = { item_string(top, "network"),
			   item_string(top, "slot"),
			   item_string(top, "vf"),
			   item_string(top, "args"),
			   item_string(top, "type"),
			   NULL,
			   0 };

	if (!str_eq(item_string(top, "railmate"), "cni") || item_number(top, "version", 0) != STATE_VERSION ||
	    !s.network || !s.slot || !s.vf || !s.type || !conf || conf->type != ITEM_OBJECT)
		return err_set(err, EBADMSG, "%s is not what this railmate-cni wrote; remove it by hand",
			       path);
	s.conf = conf->text;
	s.conf_len = conf->text_len;
	*ret = s;
	return 0;
}

int state_read(const char *dir, const char *container, const char *ifname, struct arena *a, struct state *ret,
	       struct err *err)
{
	_cleanup_free_ char *path = path_of(dir, container, ifname);
	const struct item *top;
	const char *text = NULL;
	size_t len = 0;
	int r;

	r = read_file(path, a, &text, &len, err);
	if (r < 0)
		return r;
	if (document_parse(text, len, path, a, &top, err) < 0)
		return err_set(err, EBADMSG, "%s is not what this railmate-cni wrote; remove it by hand",
			       path);
	return parse_state(top, path, ret, err);
}

int state_remove(const char *dir, const char *container, const char *ifname, struct err *err)
{
	_cleanup_free_ char *path = path_of(dir, container, ifname);

	if (unlink(path) < 0)
		return errno == ENOENT ? 0 : err_sys(err, "remove %s", path);
	return sync_directory(dir, err);
}

static void sweep(const char *dir, const char *name)
{
	_cleanup_free_ char *path = xasprintf("%s/%s", dir, name);
	struct stat st;

	if (strchr(name, BETWEEN) && lstat(path, &st) == 0 && S_ISREG(st.st_mode) &&
	    st.st_mtim.tv_sec + LEFT_BEHIND_S < clock_wall_ms() / 1000)
		unlink(path);
}

int state_each(const char *dir, int (*fn)(void *arg, const char *container, const char *ifname), void *arg,
	       struct err *err)
{
	DIR *d = opendir(dir);
	struct dirent *entry;
	int r = 0;

	if (!d)
		return errno == ENOENT ? 0 : err_sys(err, "open %s", dir);
	while (!r && (entry = readdir(d))) {
		_cleanup_free_ char *container = xstrdup(entry->d_name);
		char *between = strchr(container, BETWEEN);

		if (container[0] == '.') {
			sweep(dir, container);
		} else if (between) {
			*between = '\0';
			r = fn(arg, container, between + 1);
		}
	}
	closedir(d);
	return r;
}
