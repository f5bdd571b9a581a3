/* Kernel uevents and rtnetlink: two sockets that say "hardware changed". */
#include "watch/watch.h"
#include "watch/watch-internal.h"

#include <assert.h>
#include <errno.h>
#include <libmnl/libmnl.h>
#include <linux/netlink.h>
#include <linux/rtnetlink.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "base/mem.h"
#include "base/str.h"

/* The kernel multicasts its uevents to group 1; udev's go to 2. */
#define UEVENT_GROUP_KERNEL 1

bool uevent_matters(const char *buf, size_t len)
{
	static const char *const subsystems[] = { "pci", "net", "infiniband", "infiniband_verbs" };
	static const char key[] = "SUBSYSTEM=";
	const char *end = buf + len, *stop, *value;

	if (!memchr(buf, '@', strnlen(buf, len)))
		return false;
	for (const char *p = buf; p < end; p = stop + 1) {
		stop = memchr(p, '\0', (size_t)(end - p));
		if (!stop)
			return false;
		if (!str_starts(p, key))
			continue;
		value = p + sizeof(key) - 1;
		for (size_t i = 0; i < ARRAY_LEN(subsystems); i++)
			if (str_eq(value, subsystems[i]))
				return true;
		return false;
	}
	return false;
}

bool link_message_matters(const char *buf, size_t len)
{
	const struct nlmsghdr *message = (const void *)buf;
	int left = (int)len;

	for (; mnl_nlmsg_ok(message, left); message = mnl_nlmsg_next(message, &left))
		if (message->nlmsg_type == RTM_NEWLINK || message->nlmsg_type == RTM_DELLINK)
			return true;
	return false;
}

static const struct source {
	const char *name;
	int bus;
	unsigned groups;
	bool (*matters)(const char *buf, size_t len);
} sources[] = {
	{ "kernel uevents", NETLINK_KOBJECT_UEVENT, UEVENT_GROUP_KERNEL, uevent_matters },
	{ "link changes", NETLINK_ROUTE, RTMGRP_LINK, link_message_matters },
};

struct watch_hw {
	struct mnl_socket *sockets[ARRAY_LEN(sources)]; /* NULL: could not be opened */
};

static struct mnl_socket *open_source(const struct source *source)
{
	struct mnl_socket *s = mnl_socket_open2(source->bus, SOCK_CLOEXEC | SOCK_NONBLOCK);
	int saved;

	if (s && mnl_socket_bind(s, source->groups, MNL_SOCKET_AUTOPID) == 0)
		return s;
	saved = errno;
	if (s)
		mnl_socket_close(s);
	errno = saved;
	return NULL;
}

int watch_hw_open(struct watch_hw **ret, struct err *err)
{
	struct watch_hw *w = xcalloc(1, sizeof(*w));

	for (size_t i = 0; i < ARRAY_LEN(sources); i++) {
		w->sockets[i] = open_source(&sources[i]);
		if (!w->sockets[i])
			err_sys(err, "listen to %s", sources[i].name);
	}
	*ret = w;
	return 0;
}

int watch_hw_fd(const struct watch_hw *w, int which)
{
	assert(which == 0 || which == 1);
	return w->sockets[which] ? mnl_socket_get_fd(w->sockets[which]) : -1;
}

/* What was lost (ENOBUFS) or did not fit (ENOSPC: a PF with many VFs) was a change. */
bool watch_hw_drain(struct watch_hw *w, int which)
{
	_Alignas(struct nlmsghdr) char buf[8192];
	bool matters = false;
	ssize_t n;

	assert(which == 0 || which == 1);
	while (w->sockets[which]) {
		n = mnl_socket_recvfrom(w->sockets[which], buf, sizeof(buf));
		if (n < 0 && errno == EAGAIN)
			break;
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0 && errno != ENOBUFS && errno != ENOSPC)
			return true;
		matters |= n < 0 || sources[which].matters(buf, (size_t)n);
	}
	return matters;
}

void watch_hw_close(struct watch_hw *w)
{
	if (!w)
		return;
	for (size_t i = 0; i < ARRAY_LEN(w->sockets); i++)
		if (w->sockets[i])
			mnl_socket_close(w->sockets[i]);
	free(w);
}
