/*
 * The links of the PFs of all pools, over time: samples of the machine go to link_judge(), and
 * degraded links into the next node. Read with each scan, and every half minute; nothing is read
 * where no pool has devices. Main thread.
 */
#ifndef RAILMATE_DAEMON_LINKS_INTERNAL_H
#define RAILMATE_DAEMON_LINKS_INTERNAL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct links;
struct node;
struct node_link;
struct sysroot;

#define LINKS_EVERY_MS 30000

/*
 * root is borrowed. dir: where an earlier railmated may have left its knowledge (links.json), of
 * this start of the machine: which links are degraded since when, how often they went down, and how
 * fast they were; NULL: nowhere. now_ms is monotonic.
 */
struct links *links_new(const struct sysroot *root, const char *dir, int64_t now_ms);
/* From now on links.json is written when it changes: no other railmated writes it any more. */
void links_keep(struct links *l);
/* Looks at the PFs of this node, the newest; now_ms is monotonic, wall_ms Unix time. True: which
 * links are degraded has changed (it is logged), and the node has to be made anew. */
bool links_check(struct links *l, const struct node *node, int64_t now_ms, int64_t wall_ms);
/* The degraded links, until the next links_check(). */
const struct node_link *links_degraded(const struct links *l, size_t *ret_n);
void links_free(struct links *l); /* NULL is fine */

#endif
