#include <errno.h>
#include <libmnl/libmnl.h>
#include <linux/netlink.h>
#include <rdma/rdma_netlink.h>

#include "netlink/netlink-internal.h"

int rdma_message_exclusive(const struct nlmsghdr *message, bool *ret)
{
	const struct nlattr *attr;

	mnl_attr_for_each(attr, message, 0)
	{
		if (mnl_attr_get_type(attr) != RDMA_NLDEV_SYS_ATTR_NETNS_MODE ||
		    mnl_attr_validate(attr, MNL_TYPE_U8) < 0)
			continue;
		*ret = mnl_attr_get_u8(attr) == 0;
		return 0;
	}
	return -ENOTSUP;
}

static int note_mode(const struct nlmsghdr *message, void *arg)
{
	return rdma_message_exclusive(message, arg);
}

int netlink_rdma_exclusive(bool *ret, struct err *err)
{
	_Alignas(struct nlmsghdr) char buf[64];
	struct nlmsghdr *request = mnl_nlmsg_put_header(buf);

	request->nlmsg_type = (uint16_t)RDMA_NL_GET_TYPE(RDMA_NL_NLDEV, RDMA_NLDEV_CMD_SYS_GET);
	return netlink_ask(NETLINK_RDMA, request, note_mode, ret, "RDMA network namespace mode",
			   err);
}
