/* What messages say, as functions of the message, for the tests. */
#ifndef RAILMATE_NETLINK_NETLINK_INTERNAL_H
#define RAILMATE_NETLINK_NETLINK_INTERNAL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct nlmsghdr;

/* The device that a message of RDMA netlink is about; false: about none. The name lives as long as the message. */
bool rdma_message_device(const struct nlmsghdr *message, const char **ret_name, uint32_t *ret_index);
/* The user contexts in a resource summary of this device; -ENODEV: it is about another one, -ENOTSUP: it does not count them. */
int rdma_message_users(const struct nlmsghdr *message, const char *rdma, unsigned *ret_users);

#endif
