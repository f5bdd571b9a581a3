/* Kernel uevents and rtnetlink: two feeds of "hardware changed". */
#include "load/watch.h"
#include "load/watch-internal.h"

#include <assert.h>
#include <errno.h>
#include <linux/netlink.h>
#include <linux/rtnetlink.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/str.h"
#include "netlink/netlink.h"

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

static bool matters(const char *buf, size_t len, watch_down_fn *down, void *ctx)
{
	(void)down;
	(void)ctx;
	return uevent_matters(buf, len);
}

static const struct source {
	const char *name;
	int bus;
	unsigned groups;
	bool (*matters)(const char *buf, size_t len, watch_down_fn *down, void *ctx);
} sources[] = {
	{ "kernel uevents", NETLINK_KOBJECT_UEVENT, UEVENT_GROUP_KERNEL, matters },
	{ "link changes", NETLINK_ROUTE, RTMGRP_LINK, netlink_reports_link },
};

struct watch_hw {
	struct netlink_feed *feeds[ARRAY_LEN(sources)]; /* NULL: could not be opened */
};

int watch_hw_open(struct watch_hw **ret, struct err *err)
{
	struct watch_hw *w = xcalloc(1, sizeof(*w));

	for (size_t i = 0; i < ARRAY_LEN(sources); i++)
		netlink_feed_open(sources[i].bus, sources[i].groups, sources[i].name, &w->feeds[i],
				  err);
	*ret = w;
	return 0;
}

int watch_hw_fd(const struct watch_hw *w, int which)
{
	assert(which == 0 || which == 1);
	return w->feeds[which] ? netlink_feed_fd(w->feeds[which]) : -1;
}

/* A message that was lost (ENOBUFS) or did not fit (ENOSPC: a PF with many VFs) was a change. */
bool watch_hw_drain(struct watch_hw *w, int which, watch_down_fn *down, void *ctx)
{
	_Alignas(struct nlmsghdr) char buf[8192];
	bool changed = false;
	ssize_t n;

	assert(which == 0 || which == 1);
	while (w->feeds[which]) {
		n = netlink_feed_read(w->feeds[which], buf, sizeof(buf));
		if (n == -EAGAIN)
			break;
		if (n < 0 && n != -ENOBUFS && n != -ENOSPC)
			return true;
		changed |= n < 0 || sources[which].matters(buf, (size_t)n, down, ctx);
	}
	return changed;
}

void watch_hw_close(struct watch_hw *w)
{
	if (!w)
		return;
	for (size_t i = 0; i < ARRAY_LEN(w->feeds); i++)
		netlink_feed_close(w->feeds[i]);
	free(w);
}
