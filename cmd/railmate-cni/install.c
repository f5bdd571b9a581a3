#include "cni.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "base/arena.h"
#include "base/err.h"
#include "base/file.h"
#include "base/mem.h"
#include "base/str.h"

#define FILE_MAX (64u << 20)

static int read_whole(const char *path, struct strbuf *out, struct err *err)
{
	_cleanup_close_ int fd = open(path, O_RDONLY | O_CLOEXEC);
	char chunk[65536];
	ssize_t n;

	if (fd < 0)
		return err_sys(err, "open %s", path);
	while ((n = read(fd, chunk, sizeof(chunk))) > 0) {
		if (out->len + (size_t)n > FILE_MAX)
			return err_set(err, EFBIG, "%s is larger than %u bytes", path, FILE_MAX);
		strbuf_add(out, chunk, (size_t)n);
	}
	return n < 0 ? err_sys(err, "read %s", path) : 0;
}

static int write_whole(const char *dir, const char *name, mode_t mode, const struct strbuf *text,
		       struct err *err)
{
	_cleanup_free_ char *path = xasprintf("%s/%s", dir, name);
	_cleanup_free_ char *temporary = xasprintf("%s/.%s.%d", dir, name, (int)getpid());
	const struct file_new f = {
		.dir = AT_FDCWD, .name = path, .temporary = temporary, .mode = mode, .synced = true
	};

	return file_write(&f, strbuf_str(text), text->len, err);
}

int install_into(const char *dir, struct err *err)
{
	_cleanup_strbuf_ struct strbuf program = STRBUF_INIT;
	int r;

	r = read_whole("/proc/self/exe", &program, err);
	return r < 0 ? r : write_whole(dir, "railmate-cni", 0755, &program, err);
}

int install_settings(const char *file, struct err *err)
{
	_cleanup_free_ char *dir = xstrdup(settings_path());
	_cleanup_arena_ struct arena *arena = arena_new(4096);
	_cleanup_strbuf_ struct strbuf text = STRBUF_INIT;
	char *slash = strrchr(dir, '/');
	struct settings s;
	int r;

	r = read_whole(file, &text, err);
	if (r == 0)
		r = settings_parse(strbuf_str(&text), text.len, file, arena, &s, err);
	if (r < 0)
		return r;
	if (!slash || slash == dir)
		return err_set(err, EINVAL, "%s is not an absolute path of a file in a directory",
			       dir);
	*slash = '\0';
	r = file_make_dirs(dir, 0755, err);
	return r < 0 ? r : write_whole(dir, slash + 1, 0644, &text, err);
}
