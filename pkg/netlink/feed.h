/* Multicast groups of a netlink bus: the kernel's messages to subscribers. One thread at a time. */
#ifndef RAILMATE_NETLINK_FEED_H
#define RAILMATE_NETLINK_FEED_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

struct err;
struct netlink_feed;

/* bus: NETLINK_ROUTE, …; groups: bits. Never blocks. err names the groups. */
int netlink_feed_open(int bus, unsigned groups, const char *what, struct netlink_feed **ret,
		      struct err *err);
int netlink_feed_fd(const struct netlink_feed *feed);
/* One datagram into buf, which is aligned as a struct nlmsghdr is. -EAGAIN: no more; -ENOBUFS: some
 * were lost; -ENOSPC: this one did not fit and is gone. */
ssize_t netlink_feed_read(struct netlink_feed *feed, char *buf, size_t size);
void netlink_feed_close(struct netlink_feed *feed); /* NULL is fine */

/* One datagram of rtnetlink, aligned as a header is: does a link come, go or change in it? down
 * (may be NULL): for each interface in it that is gone, switched off or without carrier. */
typedef void netlink_down_fn(void *ctx, const char *netdev);
bool netlink_reports_link(const char *buf, size_t len, netlink_down_fn *down, void *ctx);

#endif
