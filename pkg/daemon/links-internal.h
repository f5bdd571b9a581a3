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

struct err;
struct hw_dcb;
struct links;
struct node;
struct node_link;
struct pool;
struct qos;
struct strbuf;
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

/*
 * A pool's NCCL_IB_TC or NCCL_IB_SL against DCB of the PFs that its VFs are on: packets that end on
 * a priority where they are dropped are slow without an error that shows it. Main thread.
 */

/* netlink_dcb() */
typedef int qos_ask(const char *netdev, struct hw_dcb *ret, struct err *err);

struct qos *qos_new(qos_ask *ask);
/* One warning for each pool whose policy contradicts a PF, when it is new. Asks about no pool that
 * sets neither variable. */
void qos_check(struct qos *q, const struct node *node);
void qos_free(struct qos *q); /* NULL is fine */

/* Appends the warning of qos_check(); nothing where policy and PFs agree, or nothing is known. */
void qos_judge(qos_ask *ask, const struct node *node, const struct pool *pool, struct strbuf *out);

#endif
