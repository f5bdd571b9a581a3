/*
 * A callback that will come exactly once, and its owner, who may not wait for it so long. The owner
 * hands pending_new() over as the callback's argument; the callback's first line is pending_end().
 * An owner that ends, or does not need the result, calls pending_cancel(): the callback then
 * returns at once. All of it on one thread.
 */
#ifndef RAILMATE_BASE_PENDING_H
#define RAILMATE_BASE_PENDING_H

struct pending;

/* slot: the owner's, NULL while nothing is under way; it must not be in use. */
struct pending *pending_new(void *owner, struct pending **slot);
/* The callback came: its owner, whose slot is free again; NULL: it was cancelled. */
void *pending_end(void *pending);
void pending_cancel(struct pending **slot); /* nothing under way is fine */

#endif
