#include "cni.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/err.h"
#include "base/file.h"
#include "base/json.h"
#include "base/mem.h"
#include "base/str.h"
#include "document/document.h"

#define STATE_VERSION 1
/* Between the two parts of a file's name: no container id holds it. */
#define BETWEEN '@'
/* A temporary file this old was left behind by a kill. */
#define LEFT_BEHIND_S 3600

static char *name_of(const char *container, const char *ifname)
{
	return xasprintf("%s%c%s", container, BETWEEN, ifname);
}

void state_write(const struct state *s, struct strbuf *out)
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
	if (s->devinfo)
		json_kv_string(&j, "devinfo", s->devinfo);
	json_key(&j, "conf");
	json_put_raw(&j, s->conf, s->conf_len);
	json_end_object(&j);
	strbuf_putc(out, '\n');
}

int state_create(const char *dir, const char *container, const char *ifname, const struct state *s,
		 struct err *err)
{
	_cleanup_free_ char *name = name_of(container, ifname);
	_cleanup_free_ char *temporary = xasprintf(".%s.%d", name, (int)getpid());
	_cleanup_strbuf_ struct strbuf text = STRBUF_INIT;
	_cleanup_close_ int fd = -1;
	struct file_new f = {
		.dir_name = dir,
		.name = name,
		.temporary = temporary,
		.mode = 0600,
		.synced = true,
		.only_new = true,
	};
	int r;

	state_write(s, &text);
	r = file_make_dirs(dir, 0700, err);
	if (r < 0)
		return r;
	f.dir = fd = trusted_open_dir(dir, err);
	if (fd < 0)
		return fd;
	r = file_write(&f, text.s, text.len, err);
	return r < 0 ? r : file_sync_dir(fd, dir, err);
}

int state_parse(const char *text, size_t len, const char *path, struct arena *a, struct state *ret,
		struct err *err)
{
	const struct item *top, *conf;
	struct state s;

	if (document_parse(text, len, path, a, &top, err) < 0)
		return err_set(err, EBADMSG,
			       "%s is not what this railmate-cni wrote; remove it by hand", path);
	conf = item_get(top, "conf");
	s = (struct state) { item_string(top, "network"),
			     item_string(top, "slot"),
			     item_string(top, "vf"),
			     item_string(top, "args"),
			     item_string(top, "type"),
			     item_string(top, "devinfo"),
			     NULL,
			     0 };
	if (!str_eq(item_string(top, "railmate"), "cni") ||
	    item_number(top, "version", 0) != STATE_VERSION || !s.network || !s.slot || !s.vf ||
	    !conf_is_pci_address(s.vf) || !s.type || !plugin_is_name(s.type) || !conf ||
	    conf->type != ITEM_OBJECT)
		return err_set(err, EBADMSG,
			       "%s is not what this railmate-cni wrote; remove it by hand", path);
	s.conf = conf->text;
	s.conf_len = conf->text_len;
	*ret = s;
	return 0;
}

int state_read(const char *dir, const char *container, const char *ifname, struct arena *a,
	       struct state *ret, struct err *err)
{
	_cleanup_free_ char *name = name_of(container, ifname);
	_cleanup_free_ char *path = xasprintf("%s/%s", dir, name);
	_cleanup_close_ int fd = trusted_open_dir(dir, err);
	const char *text;
	size_t len;
	int r;

	if (fd < 0)
		return fd;
	r = trusted_read(fd, name, path, a, &text, &len, err);
	return r < 0 ? r : state_parse(text, len, path, a, ret, err);
}

int state_remove(const char *dir, const char *container, const char *ifname, struct err *err)
{
	_cleanup_free_ char *name = name_of(container, ifname);
	_cleanup_close_ int fd = trusted_open_dir(dir, err);

	if (fd < 0)
		return fd == -ENOENT ? 0 : fd;
	if (unlinkat(fd, name, 0) < 0)
		return errno == ENOENT ? 0 : err_sys(err, "remove %s/%s", dir, name);
	return file_sync_dir(fd, dir, err);
}

int state_each(const char *dir, int (*fn)(void *arg, const char *container, const char *ifname),
	       void *arg, struct err *err)
{
	int fd = trusted_open_dir(dir, err), r = 0;
	struct dirent *entry;
	DIR *d;

	if (fd < 0)
		return fd == -ENOENT ? 0 : fd;
	d = fdopendir(fd);
	if (!d) {
		close(fd);
		return err_sys(err, "open %s", dir);
	}
	while (!r && (entry = readdir(d))) {
		_cleanup_free_ char *container = xstrdup(entry->d_name);
		char *between = strchr(container, BETWEEN);
		struct stat st;

		if (container[0] == '.') { /* a temporary file, perhaps of one that was killed */
			if (between && fstatat(fd, container, &st, AT_SYMLINK_NOFOLLOW) == 0 &&
			    S_ISREG(st.st_mode) &&
			    st.st_mtim.tv_sec + LEFT_BEHIND_S < clock_wall_ms() / 1000)
				unlinkat(fd, container, 0);
		} else if (between) {
			*between = '\0';
			r = fn(arg, container, between + 1);
		}
	}
	closedir(d);
	return r;
}
