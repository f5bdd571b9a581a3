/* Does rail n of each node lead to the switch to which rail n of the other nodes leads? By what the
 * nodes know of their cables; a node that knows nothing of them does not count. */
#ifndef RAILMATE_CMD_CLUSTER_SWITCHES_H
#define RAILMATE_CMD_CLUSTER_SWITCHES_H

#include <stdbool.h>
#include <stddef.h>

struct arena;

struct cable {
	const char *node, *leaf; /* the name of the switch */
	int rail, plane;
	size_t of;	/* the node, by the order of their names */
	size_t place;	/* the rail and its plane, in their order */
	size_t meeting; /* the same at one switch */
	size_t wanted;	/* the meeting that its node's other cables ask for; meeting: this one */
	bool is_stray;	/* the switch has another rail of most nodes */
};

struct fabric {
	struct cable *v; /* heap */
	size_t n, cap;
	size_t of_last; /* cables of the node that was added last */
};

/* A sentence without a full stop, and the nodes whose cables it says are not as the others. */
struct fabric_finding {
	const char *sentence;
	const char **nodes;
	size_t n;
};

/* Strings are the caller's. A rail below 0 is not known, a plane below 0 is the only one, leaf NULL
 * is not known. Nodes are added one after the other. */
void fabric_add(struct fabric *f, const char *node, int rail, int plane, const char *leaf);
/* In the arena, those of most nodes first. Sorts the cables. */
size_t fabric_judge(struct fabric *f, struct arena *a, struct fabric_finding **ret);

#endif
