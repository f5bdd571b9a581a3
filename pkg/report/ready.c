#include "report/ready.h"

#include <errno.h>
#include <fcntl.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/err.h"
#include "base/file.h"
#include "base/log.h"
#include "base/mem.h"

#define SYSTEMD_VARIABLE "NOTIFY_SOCKET"

static void remove_file(const char *file)
{
	if (file && unlink(file) < 0 && errno != ENOENT)
		log_warn("daemon", "cannot remove the file of --ready-file path=%s error=%m", file);
}

/* A name that begins with @ is in the abstract namespace, where a zero stands in its place. */
static int send_ready(const char *name)
{
	static const char text[] = "READY=1";
	struct sockaddr_un address = { .sun_family = AF_UNIX };
	size_t len = strlen(name);
	int fd, r = 0;

	if ((*name != '/' && *name != '@') || len >= sizeof(address.sun_path))
		return -EINVAL;
	memcpy(address.sun_path, name, len);
	if (*name == '@')
		address.sun_path[0] = '\0';
	fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	if (fd < 0)
		return -errno;
	if (sendto(fd, text, strlen(text), MSG_NOSIGNAL, (const struct sockaddr *)&address,
		   (socklen_t)(offsetof(struct sockaddr_un, sun_path) + len)) < 0)
		r = -errno;
	close(fd);
	return r;
}

static void say_to_systemd(struct ready *r)
{
	int code = r->systemd ? send_ready(r->systemd) : 0;

	if (code < 0)
		log_warn("daemon", "cannot send READY=1 to systemd socket=%s error=%s", r->systemd,
			 strerror(-code));
	free(STEAL(r->systemd));
}

static void write_word(const char *file, const char *how)
{
	_cleanup_free_ char *temporary = xasprintf("%s.tmp", file), *text = xasprintf("%s\n", how);
	const struct file_new f = {
		.dir = AT_FDCWD, .name = file, .temporary = temporary, .mode = 0644
	};
	struct err err = { 0 };

	if (file_write(&f, text, strlen(text), &err) < 0)
		log_warn(
			"daemon",
			"the file of --ready-file cannot be written: railmatectl ready reports not ready error=%s",
			err.msg);
}

void ready_begin(struct ready *ret, const char *file)
{
	const char *systemd = getenv(SYSTEMD_VARIABLE);

	*ret = (struct ready) { .file = file, .systemd = systemd ? xstrdup(systemd) : NULL };
	unsetenv(SYSTEMD_VARIABLE);
	remove_file(file);
}

void ready_say(struct ready *r, const char *how)
{
	say_to_systemd(r);
	if (r->file)
		write_word(r->file, how);
}

void ready_end(struct ready *r)
{
	free(STEAL(r->systemd));
	remove_file(r->file);
}
