#include "ledger/file.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/err.h"
#include "base/file.h"
#include "base/mem.h"
#include "base/str.h"
#include "ledger/ledger.h"

#define NAME	     "ledger.json"
#define ASIDE_MAX    4 /* files set aside that are kept */
#define TEMPORARY    "ledger.json.tmp"
#define LOCK	     "lock"
#define LOCK_TICK_MS 50
#define HOST_LEN     64

struct ledger_file {
	char *dir;
	int dir_fd, lock_fd;
};

/* --- one daemon at a time --- */

static int refuse_busy(const struct ledger_file *f, struct err *err)
{
	char text[HOST_LEN + 32] = "", host[HOST_LEN] = "", own[HOST_LEN] = "";
	int pid = 0;

	if (pread(f->lock_fd, text, sizeof(text) - 1, 0) < 0 ||
	    sscanf(text, "%d %63s", &pid, host) < 1)
		return err_set(err, EBUSY, "%s is in use by another railmated", f->dir);
	gethostname(own, sizeof(own) - 1);
	if (!*host || str_eq(host, own))
		return err_set(err, EBUSY, "%s is in use by another railmated, pid %d", f->dir,
			       pid);
	return err_set(err, EBUSY, "%s is in use by another railmated, pid %d on %s", f->dir, pid,
		       host);
}

static int take_lock(const struct ledger_file *f, unsigned wait_ms, struct err *err)
{
	char host[HOST_LEN] = "", text[HOST_LEN + 32];
	struct timespec left;
	ssize_t n;

	for (unsigned waited = 0;; waited += LOCK_TICK_MS) {
		if (flock(f->lock_fd, LOCK_EX | LOCK_NB) == 0)
			break;
		if (errno != EWOULDBLOCK && errno != EINTR)
			return err_sys(err, "lock %s/" LOCK, f->dir);
		if (waited >= wait_ms)
			return refuse_busy(f, err);
		left = (struct timespec) { .tv_nsec = LOCK_TICK_MS * 1000000 };
		while (nanosleep(&left, &left) < 0 && errno == EINTR)
			;
	}
	/* "PID HOST": flock() itself does not name its holder, and a process id means little beyond
	 * its container. */
	gethostname(host, sizeof(host) - 1);
	n = snprintf(text, sizeof(text), "%d %s\n", (int)getpid(), host);
	if (ftruncate(f->lock_fd, 0) == 0)
		n = pwrite(f->lock_fd, text, (size_t)n, 0);
	(void)n; /* a full disk: the railmated that waits for us reads no name */
	return 0;
}

static int open_dir(struct ledger_file *f, struct err *err)
{
	if (mkdir(f->dir, 0700) < 0 && errno != EEXIST)
		return err_sys(err, "make %s", f->dir);
	f->dir_fd = open(f->dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (f->dir_fd < 0)
		return err_sys(err, "open %s", f->dir);
	f->lock_fd = openat(f->dir_fd, LOCK, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
	if (f->lock_fd < 0)
		return err_sys(err, "open %s/" LOCK, f->dir);
	return 0;
}

int ledger_file_open(const char *dir, unsigned wait_ms, struct ledger_file **ret, struct err *err)
{
	struct ledger_file *f = xcalloc(1, sizeof(*f));
	int r;

	*f = (struct ledger_file) { .dir = xstrdup(dir), .dir_fd = -1, .lock_fd = -1 };
	r = open_dir(f, err);
	if (r == 0)
		r = take_lock(f, wait_ms, err);
	if (r < 0) {
		ledger_file_close(f);
		return r;
	}
	*ret = f;
	return 0;
}

void ledger_file_close(struct ledger_file *f)
{
	if (!f)
		return;
	closep(&f->lock_fd); /* lets the lock go */
	closep(&f->dir_fd);
	free(f->dir);
	free(f);
}

/* --- reading --- */

/* -EBADMSG: it is there and cannot be a ledger. */
static int read_text(int dir_fd, const char *dir, struct strbuf *out, struct err *err)
{
	_cleanup_close_ int fd =
		openat(dir_fd, NAME, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOFOLLOW);
	char chunk[8192];
	struct stat st;
	ssize_t n;

	if (fd < 0 && (errno == ELOOP || errno == ENXIO))
		return err_set(err, EBADMSG, "%s/" NAME ": is not a regular file", dir);
	if (fd < 0 || fstat(fd, &st) < 0)
		return err_sys(err, "open %s/" NAME, dir);
	if (!S_ISREG(st.st_mode))
		return err_set(err, EBADMSG, "%s/" NAME ": is not a regular file", dir);
	if (st.st_size > LEDGER_BYTES_MAX)
		return err_set(err, EBADMSG, "%s/" NAME ": is larger than %u MiB", dir,
			       LEDGER_BYTES_MAX >> 20);
	while ((n = read(fd, chunk, sizeof(chunk))) != 0) {
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return err_sys(err, "read %s/" NAME, dir);
		strbuf_add(out, chunk, (size_t)n);
	}
	return 0;
}

static int read_ledger(int dir_fd, const char *dir, struct ledger **ret, struct err *err)
{
	_cleanup_strbuf_ struct strbuf text = STRBUF_INIT;
	_cleanup_free_ char *name = xasprintf("%s/" NAME, dir);
	int r = read_text(dir_fd, dir, &text, err);

	return r < 0 ? r : ledger_read(strbuf_str(&text), text.len, name, ret, err);
}

/* The time that is in its name. */
static long long aside_time(const char *name)
{
	return strtoll(strrchr(name, '.') + strcspn(strrchr(name, '.'), "-") + 1, NULL, 10);
}

static int newest_first(const void *x, const void *y)
{
	const char *a = *(const char *const *)x, *b = *(const char *const *)y;
	long long s = aside_time(a), t = aside_time(b);

	return s != t ? (s < t ? 1 : -1) : -strcmp(a, b);
}

/* A ledger that is torn at every start must not fill the disk. */
static void remove_old(const struct ledger_file *f)
{
	DIR *dir = fdopendir(openat(f->dir_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC));
	char **names = NULL;
	size_t n = 0, cap = 0;
	const struct dirent *e;

	if (!dir)
		return;
	while ((e = readdir(dir))) {
		if (!str_starts(e->d_name, NAME ".bad-") && !str_starts(e->d_name, NAME ".later-"))
			continue;
		names = xgrow(names, &cap, n + 1, sizeof(*names));
		names[n++] = xstrdup(e->d_name);
	}
	closedir(dir);
	if (n)
		qsort(names, n, sizeof(*names), newest_first);
	for (size_t i = 0; i < n; i++) {
		if (i >= ASIDE_MAX)
			unlinkat(f->dir_fd, names[i], 0);
		free(names[i]);
	}
	free(names);
}

/* As ledger.json.bad-1763736000, and with -1, -2, … behind it when several were bad within a
 * second. */
static int set_aside(const struct ledger_file *f, const struct err *why, char **ret_note,
		     struct err *err)
{
	char name[64];
	int n = snprintf(name, sizeof(name), NAME ".%s-%lld",
			 why->code == ENOTSUP ? "later" : "bad", (long long)time(NULL));

	for (int i = 1; faccessat(f->dir_fd, name, F_OK, AT_SYMLINK_NOFOLLOW) == 0; i++)
		snprintf(name + n, sizeof(name) - (size_t)n, "-%d", i);
	if (renameat(f->dir_fd, NAME, f->dir_fd, name) < 0)
		return err_sys(err, "%s; set it aside as %s", why->msg, name);
	*ret_note =
		xasprintf("%s; it was set aside as %s and the ledger begins anew", why->msg, name);
	remove_old(f);
	return 0;
}

int ledger_file_load(struct ledger_file *f, struct ledger **ret, char **ret_note, struct err *err)
{
	struct err why = { 0 };
	char *note = NULL;
	int r = read_ledger(f->dir_fd, f->dir, ret, &why);

	if (r == 0) {
		*ret_note = NULL;
		return 0;
	}
	if (r == -EBADMSG || r == -ENOTSUP)
		r = set_aside(f, &why, &note, err);
	else if (r == -ENOENT)
		r = 0;
	else
		return err_set(err, why.code, "%s", why.msg);
	if (r < 0)
		return r;
	*ret_note = note;
	*ret = NULL;
	return 0;
}

int ledger_file_peek(const char *dir, struct ledger **ret, struct err *err)
{
	_cleanup_close_ int fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	if (fd < 0)
		return err_sys(err, "open %s", dir);
	return read_ledger(fd, dir, ret, err);
}

/* --- writing --- */

int ledger_file_store(struct ledger_file *f, const char *text, size_t len, struct err *err)
{
	const struct file_new file = {
		.dir = f->dir_fd,
		.dir_name = f->dir,
		.name = NAME,
		.temporary = TEMPORARY,
		.mode = 0600,
		.synced = true,
	};
	int r = file_write(&file, text, len, err);

	if (r < 0) {
		unlinkat(f->dir_fd, NAME, 0);
		return r;
	}
	return file_sync_dir(f->dir_fd, f->dir, err);
}
