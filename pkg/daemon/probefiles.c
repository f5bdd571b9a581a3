#include "daemon/probefiles-internal.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/err.h"
#include "base/file.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/str.h"
#include "grant/rundir.h"
#include "ledger/file.h"

#define MODE 0755

/* A file of some megabytes, that the heap need not grow for. */
struct mapped {
	void *at;
	size_t len;
	mode_t mode;
};

static void unmap(struct mapped *m)
{
	if (m->at)
		munmap(m->at, m->len);
}

/* False: errno tells why. */
static bool map(int dir, const char *name, struct mapped *ret)
{
	_cleanup_close_ int fd = openat(dir, name, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	struct stat st;
	void *at;

	if (fd < 0 || fstat(fd, &st) < 0)
		return false;
	at = mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
	if (at == MAP_FAILED)
		return false;
	*ret = (struct mapped) { at, (size_t)st.st_size, st.st_mode };
	return true;
}

/* 1: it was written; 0: it is there. */
static int copy(int from, const char *name, int to, const char *folder, struct err *err)
{
	_cleanup_(unmap) struct mapped new = { 0 }, old = { 0 };
	_cleanup_free_ char *temporary = xasprintf(".%s.new", name);
	const struct file_new f = {
		.dir = to, .dir_name = folder, .name = name, .temporary = temporary, .mode = MODE
	};
	int r;

	if (!map(from, name, &new))
		return err_sys(err, "read %s of the image", name);
	if (map(to, name, &old) && old.len == new.len && old.mode == (S_IFREG | MODE) &&
	    !memcmp(old.at, new.at, new.len))
		return 0;
	r = file_write(&f, new.at, new.len, err);
	return r < 0 ? r : 1;
}

/* The program comes last: what it needs is there when it is. */
static int copy_all(DIR *from, int to, const char *folder, struct err *err)
{
	const struct dirent *e;
	int written = 0, r;

	while ((e = readdir(from))) {
		if (e->d_name[0] == '.' || !strcmp(e->d_name, PROBE_PROGRAM))
			continue;
		r = copy(dirfd(from), e->d_name, to, folder, err);
		if (r < 0)
			return r;
		written += r;
	}
	r = copy(dirfd(from), PROBE_PROGRAM, to, folder, err);
	return r < 0 ? r : written + r;
}

/* A part of them is of no use, and takes room of the ledger's. */
static void drop_all(DIR *from, int to)
{
	const struct dirent *e;

	rewinddir(from);
	while ((e = readdir(from)))
		unlinkat(to, e->d_name, 0);
}

static int put(DIR *from, const char *state_dir, const char *folder, struct err *err)
{
	_cleanup_close_ int to = -1;
	int r;

	mkdir(state_dir, 0700); /* as the ledger makes it; a failure shows at the next one */
	if ((mkdir(folder, MODE) < 0 && errno != EEXIST) || chmod(folder, MODE) < 0)
		return err_sys(err, "make %s", folder);
	to = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (to < 0)
		return err_sys(err, "open %s", folder);
	r = copy_all(from, to, folder, err);
	if (r < 0 && faccessat(to, PROBE_PROGRAM, F_OK, 0) < 0)
		drop_all(from, to);
	return r;
}

/* Mounts need a folder of the host, by its name there. Another path than the default one was chosen
 * by the operator. */
static const char *why_none(const char *state_dir)
{
	if (!state_dir || *state_dir != '/')
		return "it needs a run directory and a state directory, with absolute paths";
	if (str_eq(state_dir, STATE_DIR) && file_is_in_image("/", state_dir))
		return "the state directory is not a folder of the host";
	return NULL;
}

char *probefiles_keep(const char *from, const char *state_dir)
{
	const char *why = why_none(state_dir);
	DIR *dir = from && !why ? opendir(from) : NULL;
	char *folder;
	struct err err = { 0 };
	int r;

	if (!dir) {
		if (from)
			log_info("probe", "containers get no railmate-probe path=%s reason=%s",
				 from, why ? why : strerror(errno));
		return NULL;
	}
	folder = xasprintf("%s/" RUNDIR_PROBE, state_dir);
	r = put(dir, state_dir, folder, &err);
	closedir(dir);
	if (r < 0)
		log_warn("probe",
			 "railmate-probe cannot be put where containers get it from error=%s",
			 err.msg);
	else if (r)
		log_info("probe", "railmate-probe was put where containers get it from path=%s",
			 folder);
	return folder;
}
