/* Reading messages, as functions of the message, for the tests. No message makes them read beyond
 * its end. */
#ifndef RAILMATE_NETLINK_NETLINK_INTERNAL_H
#define RAILMATE_NETLINK_NETLINK_INTERNAL_H

#include <linux/ethtool.h>
#include <sys/types.h>

#include "netlink/netlink.h"

struct nlmsghdr;

/*
 * One datagram, aligned as a header is: `each` for every message of the answer to question `seq` of
 * socket `port`; those of others are passed over. 1: that was all of the answer; 0: there is more
 * to come; -errno: the kernel's, or that of each.
 */
typedef int netlink_each(const struct nlmsghdr *message, void *arg);
int netlink_answer(const char *buf, size_t len, unsigned seq, unsigned port, netlink_each *each,
		   void *arg);

/* Sends the request, a header and its payload, on a socket of this bus and waits for all of its
 * answer; the argument what names the question. */
int netlink_ask(int bus, struct nlmsghdr *request, netlink_each *each, void *arg, const char *what,
		struct err *err);

/* The device that a message of RDMA netlink is about; false: about none. The name lives as long as
 * the message. */
bool rdma_message_device(const struct nlmsghdr *message, const char **ret_name,
			 uint32_t *ret_index);
/* The user contexts in a resource summary of this device; -ENODEV: it is about another one,
 * -ENOTSUP: it does not count them. */
int rdma_message_users(const struct nlmsghdr *message, const char *rdma, unsigned *ret_users);
/* The mode of network namespaces; -ENOTSUP: the message has none. */
int rdma_message_exclusive(const struct nlmsghdr *message, bool *ret);

/* The VFs in RTM_NEWLINK; returns their number. */
size_t link_message_vfs(const struct nlmsghdr *message, struct arena *arena,
			const struct hw_vf_admin **ret);
/* The counters of the VFs in RTM_NEWLINK; returns the number of VFs. */
size_t link_message_vf_traffic(const struct nlmsghdr *message, struct arena *arena,
			       const struct netlink_vf_traffic **ret);
/* An answer to DCB_CMD_IEEE_GET; -ENOTSUP: it has nothing of IEEE DCB. */
int dcb_message(const struct nlmsghdr *message, struct hw_dcb *ret);
/* Pause frames among the n statistics of a driver; false: there are none. */
bool netlink_read_pauses(const char (*names)[ETH_GSTRING_LEN], const uint64_t *values, size_t n,
			 struct hw_pauses *ret);

#endif
