/* The number of links in a network namespace, counted before all of them are read. */
#include <errno.h>
#include <libmnl/libmnl.h>
#include <linux/rtnetlink.h>

#include "netlink/netlink-internal.h"

struct crowd {
	size_t n, max;
};

static int count(const struct nlmsghdr *message, void *arg)
{
	struct crowd *crowd = arg;

	(void)message;
	return ++crowd->n > crowd->max ? -E2BIG : 0;
}

static int ask(uint16_t type, const char *what, size_t max, bool *ret, struct err *err)
{
	_Alignas(struct nlmsghdr) char buf[64];
	struct nlmsghdr *request = mnl_nlmsg_put_header(buf);
	struct crowd crowd = { 0, max };
	int r;

	request->nlmsg_type = type;
	request->nlmsg_flags = NLM_F_DUMP;
	mnl_nlmsg_put_extra_header(
		request, sizeof(struct ifinfomsg)); /* all families; larger than an ifaddrmsg */
	r = netlink_ask(NETLINK_ROUTE, request, count, &crowd, what, err);
	if (r < 0 && crowd.n <= max)
		return r;
	*ret = crowd.n > max;
	return 0;
}

int netlink_is_crowded(size_t max, bool *ret, struct err *err)
{
	int r = ask(RTM_GETADDR, "addresses of the network namespace", max, ret, err);

	return r < 0 || *ret
		       ? r
		       : ask(RTM_GETLINK, "interfaces of the network namespace", max, ret, err);
}
