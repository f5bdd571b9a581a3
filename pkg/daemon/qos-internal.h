/*
 * A pool's NCCL_IB_TC or NCCL_IB_SL against DCB of the PFs that its VFs are on: packets that end on
 * a priority where they are dropped are slow without an error that shows it. Main thread.
 */
#ifndef RAILMATE_DAEMON_QOS_INTERNAL_H
#define RAILMATE_DAEMON_QOS_INTERNAL_H

#include <stddef.h>

struct err;
struct hw_dcb;
struct node;
struct pool;
struct qos;
struct strbuf;

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
