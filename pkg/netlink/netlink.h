/*
 * Small questions to the running kernel, about facts that no file of sysfs has. Each opens a socket
 * of its own, asks one thing of one device and waits NETLINK_PATIENCE_MS at most. -ENOTSUP: this
 * kernel, driver or sandbox does not report it; -ENODEV: there is no such device in our network
 * namespace; -ETIMEDOUT; each with a sentence. Any thread. Subscriptions: feed.h.
 */
#ifndef RAILMATE_NETLINK_NETLINK_H
#define RAILMATE_NETLINK_NETLINK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "hw/portstats.h"

struct arena;
struct err;
struct hw_dcb;
struct hw_vf_admin;
struct netlink_feed;
struct rdma_users;

#define NETLINK_PATIENCE_MS 1000

/* RDMA devices and network namespaces: exclusive (a device is in one) or shared (seen in all).
 * Linux 5.2 and later. */
int netlink_rdma_exclusive(bool *ret, struct err *err);

/* The VFs of a PF's netdev in the order of the kernel (by index), in the arena. None: it has none,
 * or not reported by the driver. */
int netlink_vfs(const char *netdev, struct arena *arena, const struct hw_vf_admin **ret,
		size_t *ret_n, struct err *err);

/*
 * The counters of a PF's driver for its VFs, in the order of the kernel. None: it does not count,
 * or none of them has had any traffic, which looks the same. Some drivers ask the firmware for each
 * VF. -E2BIG: more VFs than an answer holds.
 */
struct netlink_vf_traffic {
	int index;
	struct hw_traffic received, sent;
};
int netlink_vf_traffic(const char *netdev, size_t n_vfs, struct arena *arena,
		       const struct netlink_vf_traffic **ret, size_t *ret_n, struct err *err);

/* Are there more addresses, or more interfaces, than max in the network namespace of this thread?
 * Reads no further than that. */
int netlink_is_crowded(size_t max, bool *ret, struct err *err);

/* DCB of a PF's netdev. Values that the driver leaves out are unknown in *ret. */
int netlink_dcb(const char *netdev, struct hw_dcb *ret, struct err *err);

/* Pause frames of the port of a PF's netdev, as its driver counts them: some drivers ask the
 * firmware. -ENOTSUP: it does not count them. */
int netlink_pauses(const char *netdev, struct hw_pauses *ret, struct err *err);

/* Multicast groups of a netlink bus: the kernel's messages to subscribers. One thread at a time. */

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

/*
 * How many contexts has an RDMA device? RDMA netlink counts the user contexts of a device,
 * whichever process or container they belong to, as far as this network namespace sees the device.
 * Linux 5.2 and later. One thread at a time.
 */

/* -ENOTSUP: this kernel, or this sandbox, has no RDMA netlink. */
int rdma_users_open(struct rdma_users **ret, struct err *err);
typedef void (*rdma_users_fn)(void *arg, const char *rdma, unsigned users);
/* seen: called for the device, or, where rdma is NULL, for each device, before the return. -ENODEV:
 * no device of this name here; -ENOTSUP: the kernel does not count contexts; else the socket's
 * error. */
int rdma_users_count(struct rdma_users *u, const char *rdma, rdma_users_fn seen, void *arg);
void rdma_users_close(struct rdma_users *u); /* NULL is fine */

#endif
