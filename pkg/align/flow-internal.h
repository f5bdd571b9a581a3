/*
 * Minimum-cost flow on a small graph with costs of zero or more: successive shortest paths with
 * potentials, all equally short paths at once. Dense by intent: a few dozen nodes.
 */
#ifndef RAILMATE_ALIGN_FLOW_INTERNAL_H
#define RAILMATE_ALIGN_FLOW_INTERNAL_H

#include <stdint.h>

struct arena;
struct flow;

struct flow *align_flow_new(struct arena *arena, int n_nodes, int max_arcs);
/* The arc's number, for align_flow_on(). */
int align_flow_arc(struct flow *f, int from, int to, int cap, int64_t cost);
/* Send up to `amount` from node 0 to node 1 at the lowest cost; returns the amount sent. */
int align_flow_send(struct flow *f, int amount);
int align_flow_on(const struct flow *f, int arc);

#endif
