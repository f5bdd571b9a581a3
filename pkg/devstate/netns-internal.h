/* Network namespaces that are files of a directory, and sysfs as one of them sees it. The thread
 * that uses this is in another namespace afterwards. */
#ifndef RAILMATE_DEVSTATE_NETNS_INTERNAL_H
#define RAILMATE_DEVSTATE_NETNS_INTERNAL_H

#include <stdbool.h>
#include <stddef.h>

#include "hw/bdf.h"

struct err;
struct sysroot;

struct netns_walk {
	size_t n_files;	  /* of the directory */
	size_t n_entered; /* but our own */
	int refused;	  /* errno of the first one that could not be entered; 0 none */
};

/*
 * Enters each namespace of the directory but our own, the newest first, until fn (called inside,
 * with the file's name) returns true. A file that is not a namespace, or goes away meanwhile, is
 * left out. -errno: the directory cannot be read.
 */
int netns_each(const char *dir, bool (*fn)(void *arg, const char *name), void *arg,
	       struct netns_walk *ret);

/* The processes in a namespace decide how much there is to read; NCCL uses no more than this of
 * anything. */
#define NETNS_CROWD_MAX 4096
struct ifaddrs;
/* The interfaces and addresses of the namespace we are in, for freeifaddrs(). -E2BIG: there are
 * more than NETNS_CROWD_MAX. */
int netns_addresses(struct ifaddrs **ret);

/* The PCI function of a network interface of the namespace we are in; false: it has none. */
bool netns_function_of(const char *netdev, struct bdf *ret);
int netns_mtu_of(const char *netdev); /* 0 unknown */

/*
 * The live machine with the sysfs of the namespace we are in: a fresh one over /sys, in a mount
 * namespace of this thread's own. To be closed before the next namespace is entered.
 */
int netns_sysfs_open(struct sysroot **ret, struct err *err);
void netns_sysfs_close(struct sysroot *root);

#endif
