/*
 * Calls, bindings and placements since the start, counted per resource, for metrics. Pure: a value
 * in memory. Owned by one thread (rpc); copies may go anywhere.
 */
#ifndef RAILMATE_STATUS_STATS_H
#define RAILMATE_STATUS_STATS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "ledger/ledger.h"
#include "topo/topo.h"

struct arena;
struct choose_in;
struct stats;

/* The calls of the kubelet that have one answer each. */
enum stats_call { STATS_OPTIONS, STATS_PREFERRED, STATS_ALLOCATE, STATS_PRE_START, STATS_CALL_MAX };
#define STATS_CODES   17 /* of gRPC: 0 OK … 16 UNAUTHENTICATED */
#define STATS_BUCKETS 15

/* n[i]: calls up to stats_bounds_ns[i], not cumulated; the last one: the rest. */
struct stats_histogram {
	uint64_t n[STATS_BUCKETS + 1];
	int64_t sum_ns;
};
extern const int64_t stats_bounds_ns[STATS_BUCKETS];

/* GPU-VF pairs of containers that started, by path class. */
struct stats_classes {
	size_t n[TOPO_CLASS_MAX];
};

/* A container that starts with its VFs, for an Event. */
struct stats_placement {
	const struct ledger_owner *owner;
	const char *resource;
	size_t n_vfs;
	/* GPU-VF pairs; none: the container has no GPU, or its GPUs are not known */
	struct stats_classes got, best;
	int cost, best_cost;	    /* of these choices, as the ledger has it */
	bool farther;		    /* than the best that was free */
	const char *nearer_holders; /* pods that hold nearer VFs, "ns/a, ns/b"; NULL: none */
	bool strict;		    /* of the pool */
};

/* Compares the VFs devs, in->want of them, with the best of in->available for the container: got,
 * best, costs, farther; and the holders of nearer VFs, three pods at most. */
void stats_place(struct stats_placement *p, const struct choose_in *in, const int *devs,
		 const struct ledger *l, struct arena *a);

struct stats_pool {
	char *resource;
	uint64_t calls[STATS_CALL_MAX][STATS_CODES];
	struct stats_histogram latency[STATS_CALL_MAX];
	uint64_t choices[LEDGER_GPUS_MAX]; /* of VFs, by how the GPUs were known */
	uint64_t pairs[TOPO_CLASS_MAX];	   /* of containers that started */
	uint64_t pairs_best;		   /* of those: at the best class that was free */
	uint64_t kubelets;		   /* that replaced another kubelet */
};

struct stats *stats_new(void);
void stats_free(struct stats *s); /* NULL is fine */
/* The counters of this resource, made at the first call; the pointer stays good. NULL of NULL: code
 * that counts works without counters, too. */
struct stats_pool *stats_of(struct stats *s, const char *resource);
/* All counters by name, copied into the arena. */
const struct stats_pool *const *stats_copy(const struct stats *s, struct arena *a, size_t *ret_n);

/* p NULL: nothing is counted. code: of gRPC. */
void stats_count_call(struct stats_pool *p, enum stats_call call, unsigned code, int64_t ns);
void stats_count_choice(struct stats_pool *p, enum ledger_gpus known);
/*
 * A container started with the pairs got; best: the pairs of the best choice that was free when its
 * VFs were chosen, for topo_pairs_at_best().
 */
void stats_count_pairs(struct stats_pool *p, const struct stats_classes *got,
		       const struct stats_classes *best);
void stats_count_kubelet(struct stats_pool *p);

#endif
