#include "netlink/feed.h"

#include <errno.h>
#include <libmnl/libmnl.h>
#include <linux/netlink.h>
#include <linux/rtnetlink.h>
#include <stdlib.h>

#include "base/err.h"
#include "base/mem.h"
#include "netlink/netlink-internal.h"

struct netlink_feed {
	struct mnl_socket *socket;
};

int netlink_feed_open(int bus, unsigned groups, const char *what, struct netlink_feed **ret,
		      struct err *err)
{
	struct mnl_socket *s = mnl_socket_open2(bus, SOCK_CLOEXEC | SOCK_NONBLOCK);
	int r;

	if (!s || mnl_socket_bind(s, groups, MNL_SOCKET_AUTOPID) < 0) {
		r = err_sys(err, "listen to %s", what);
		if (s)
			mnl_socket_close(s);
		return r;
	}
	*ret = xcalloc(1, sizeof(**ret));
	(*ret)->socket = s;
	return 0;
}

int netlink_feed_fd(const struct netlink_feed *feed)
{
	return mnl_socket_get_fd(feed->socket);
}

ssize_t netlink_feed_read(struct netlink_feed *feed, char *buf, size_t size)
{
	ssize_t n;

	do {
		n = mnl_socket_recvfrom(feed->socket, buf, size);
	} while (n < 0 && errno == EINTR);
	return n < 0 ? -errno : n;
}

void netlink_feed_close(struct netlink_feed *feed)
{
	if (!feed)
		return;
	mnl_socket_close(feed->socket);
	free(feed);
}

bool netlink_tells_link(const char *buf, size_t len)
{
	const struct nlmsghdr *message;
	size_t at = 0;

	while ((message = netlink_message(buf, len, &at))) {
		if (message->nlmsg_type == RTM_NEWLINK || message->nlmsg_type == RTM_DELLINK)
			return true;
	}
	return false;
}
