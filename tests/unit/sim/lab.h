/* A machine for the simulator's tests, and brute force over small choices that knows nothing of
 * align. */
#ifndef RAILMATE_TESTS_SIM_LAB_H
#define RAILMATE_TESTS_SIM_LAB_H

#include <stdint.h>
#include <string.h>

#include "align/align.h"
#include "base/arena.h"
#include "config/config.h"
#include "hw/inventory.h"
#include "pool/node.h"
#include "sim/score-internal.h"
#include "support/nodes.h"
#include "support/synth.h"
#include "topo/topo.h"

#define HGX	 "numa:2 root:4 switch:1 gpu:1 pf:1 vf:8"
#define DGX_A100 "numa:4 root:1 switch:1 gpu:2 pf:2 vf:4"
#define MI300X	 "numa:2 root:4 switch:1 sub:1 gpu:1 upf:1 vf:2"
#define P4D	 "numa:2 root:2 switch:1 gpu:2 pf:1 vf:4"
#define TIGHT	 "numa:2 root:2 switch:1 gpu:1 pf:1 vf:1"

struct lab {
	struct config *cfg;
	struct node *node;
	const struct pool *pool;
	struct arena *arena;
};

struct lab lab_new(const char *line);
void lab_done(struct lab *lab);
#define _cleanup_lab_ __attribute__((cleanup(lab_done)))

/* --- brute force --- */

#define BRUTE_MAX  8  /* VFs and GPUs of a container */
#define BRUTE_SETS 64 /* different class counts of one least rank */

/* What one choice of VFs can be: the least total rank, and every count of classes that gives it. */
struct brute {
	int rank[BRUTE_MAX][BRUTE_MAX]; /* GPU × VF */
	int gpus, vfs;
	int load[BRUTE_MAX], counts[ALIGN_RANKS];
	int best;
	uint64_t codes[BRUTE_SETS];
	int n_codes;
};

struct brute brute_assign(const struct lab *lab, const int *gpus, int n_gpus, const int *vfs,
			  int n_vfs);
/* Over every choice of `want` of the free VFs. */
struct brute brute_choose(const struct lab *lab, const int *gpus, int n_gpus, const int *free_vfs,
			  int n_free, int want);
bool brute_has(const struct brute *b, const struct score_classes *c);
/* As score.h defines it. */
int brute_at_best(const struct brute *got, uint64_t got_code, const struct brute *optimum,
		  uint64_t optimum_code);

#endif
