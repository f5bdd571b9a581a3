/*
 * Edges: "something changed", without its name: inotify on directories, kernel uevents and
 * rtnetlink link changes. Each gives a descriptor to poll for reading and a function that drains
 * it. Main thread.
 */
#ifndef RAILMATE_LOAD_WATCH_H
#define RAILMATE_LOAD_WATCH_H

#include <stdbool.h>

struct err;

/* A directory, and its nearest existing ancestor while it does not exist. */
struct watch_dir;
int watch_dir_open(const char *dir, struct watch_dir **ret, struct err *err);
/* watch_dir_open() of a directory with files to read: every name matters, and a file that was
 * written in place does, too, when its writer closes it. */
int watch_dir_open_files(const char *dir, struct watch_dir **ret, struct err *err);
int watch_dir_fd(const struct watch_dir *w);
/* Drain. true: a name other than the kubelet's checkpoint temporaries (".NNN",
 * kubelet_internal_checkpoint) came, went or moved, the directory itself came or went, or the queue
 * overran. */
bool watch_dir_drain(struct watch_dir *w);
void watch_dir_close(struct watch_dir *w); /* NULL is fine */

/* Uevents of the subsystems pci, net, infiniband, infiniband_verbs; and RTM_NEWLINK/DELLINK. An
 * overrun counts as a change. A source that cannot be opened (sandbox, no netlink) is not a
 * failure: 0 is returned, its descriptor is -1, and err, which the caller has zeroed, holds the
 * sentence. */
struct watch_hw;
int watch_hw_open(struct watch_hw **ret, struct err *err);
int watch_hw_fd(const struct watch_hw *w,
		int which); /* which: 0 uevents, 1 rtnetlink; -1 if that one could not be opened */
/* down (may be NULL): for each interface that is gone, switched off or without carrier by the link
 * changes. */
typedef void watch_down_fn(void *ctx, const char *netdev);
bool watch_hw_drain(struct watch_hw *w, int which, watch_down_fn *down, void *ctx);
void watch_hw_close(struct watch_hw *w); /* NULL is fine */

#endif
