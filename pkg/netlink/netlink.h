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

#include "hw/portstats.h"

struct arena;
struct err;
struct hw_dcb;
struct hw_vf_admin;

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

#endif
