/* The judgements of this room, as functions of what was read, for the tests. */
#ifndef RAILMATE_WATCH_WATCH_INTERNAL_H
#define RAILMATE_WATCH_WATCH_INTERNAL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct nlmsghdr;

/* One uevent as the kernel sends it, "ACTION@DEVPATH\0KEY=VALUE\0...": is it of a subsystem that we care for?
 */
bool uevent_matters(const char *buf, size_t len);
/* One datagram of rtnetlink, aligned as a header is: does a link come, go or change in it? */
bool link_message_matters(const char *buf, size_t len);
/* Is a file of this name in the plugin directory worth a look? */
bool dir_name_matters(const char *name);

/* The device that a message of RDMA netlink is about; false: about none. The name lives as long as the message. */
bool rdma_message_device(const struct nlmsghdr *message, const char **ret_name, uint32_t *ret_index);
/* The user contexts in a resource summary of this device; -ENODEV: it is about another one, -ENOTSUP: it does not count them. */
int rdma_message_users(const struct nlmsghdr *message, const char *rdma, unsigned *ret_users);

#endif
