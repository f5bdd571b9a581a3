#include "netlink/feed.h"

#include <errno.h>
#include <libmnl/libmnl.h>
#include <linux/if.h>
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

static int take_name(const struct nlattr *attr, void *ret)
{
	const char **name = ret;

	if (mnl_attr_get_type(attr) == IFLA_IFNAME &&
	    mnl_attr_validate(attr, MNL_TYPE_NUL_STRING) >= 0)
		*name = mnl_attr_get_str(attr);
	return MNL_CB_OK;
}

/* The kernel sets IFF_LOWER_UP of an interface that is up and has a carrier (dev_get_flags()). */
static const char *name_of_down(const struct nlmsghdr *message)
{
	const struct ifinfomsg *info;
	const char *name = NULL;

	if (mnl_nlmsg_get_payload_len(message) < sizeof(*info))
		return NULL;
	info = mnl_nlmsg_get_payload(message);
	if (message->nlmsg_type == RTM_NEWLINK && info->ifi_flags & IFF_LOWER_UP)
		return NULL;
	mnl_attr_parse(message, sizeof(*info), take_name, &name);
	return name;
}

bool netlink_reports_link(const char *buf, size_t len, netlink_down_fn *down, void *ctx)
{
	const struct nlmsghdr *message;
	bool any = false;
	size_t at = 0;

	while ((message = netlink_message(buf, len, &at))) {
		const char *name;

		if (message->nlmsg_type != RTM_NEWLINK && message->nlmsg_type != RTM_DELLINK)
			continue;
		any = true;
		name = down ? name_of_down(message) : NULL;
		if (name)
			down(ctx, name);
	}
	return any;
}
