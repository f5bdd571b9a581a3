/*
 * How many contexts has an RDMA device? RDMA netlink counts the user contexts of a device,
 * whichever process or container they belong to, as far as this network namespace sees the device.
 * Linux 5.2 and later. One thread at a time.
 */
#ifndef RAILMATE_NETLINK_RDMA_USERS_H
#define RAILMATE_NETLINK_RDMA_USERS_H

struct err;
struct rdma_users;

/* -ENOTSUP: this kernel, or this sandbox, has no RDMA netlink. */
int rdma_users_open(struct rdma_users **ret, struct err *err);
typedef void (*rdma_users_fn)(void *arg, const char *rdma, unsigned users);
/* seen: called for the device, or, where rdma is NULL, for each device, before the return. -ENODEV:
 * no device of this name here; -ENOTSUP: the kernel does not count contexts; else the socket's
 * error. */
int rdma_users_count(struct rdma_users *u, const char *rdma, rdma_users_fn seen, void *arg);
void rdma_users_close(struct rdma_users *u); /* NULL is fine */

#endif
