#include <string.h>

#include "base/mem.h"
#include "sim/simulate.h"

static const struct sim_policy policies[] = {
	{ .name = "kubelet", .what = "the kubelet's own choice, no GetPreferredAllocation" },
	{ .name = "numa",
	  .what = "NUMA only: TopologyManager, best-effort",
	  .numa = NUMA_BEST_EFFORT },
	{ .name = "early",
	  .what = "early binding, in the order of the kubelet's map",
	  .binding = SIM_EARLY },
	{ .name = "early-gpu-first",
	  .what = "early binding, GPUs first",
	  .binding = SIM_EARLY,
	  .order = SIM_GPU_FIRST },
	{ .name = "early-vf-first",
	  .what = "early binding, VFs first, GPUs predicted",
	  .binding = SIM_EARLY,
	  .order = SIM_VF_FIRST },
	{ .name = "early-no-specs",
	  .what = "the same without pod specs: as many GPUs as VFs are predicted",
	  .binding = SIM_EARLY,
	  .order = SIM_VF_FIRST,
	  .no_specs = true },
	{ .name = "early-mute",
	  .what = "early binding, VFs first, the GPU plugin does not answer us",
	  .binding = SIM_EARLY,
	  .order = SIM_VF_FIRST,
	  .mute = true },
	{ .name = "late",
	  .what = "late binding, in the order of the kubelet's map",
	  .binding = SIM_LATE },
	{ .name = "late-vf-first",
	  .what = "late binding, slots first",
	  .binding = SIM_LATE,
	  .order = SIM_VF_FIRST },
	{ .name = "random-kubelet",
	  .what = "GPUs at random: the kubelet's own choice",
	  .gpus_at_random = true },
	{ .name = "random-early-vf-first",
	  .what = "GPUs at random: early binding, VFs first",
	  .binding = SIM_EARLY,
	  .order = SIM_VF_FIRST,
	  .gpus_at_random = true },
	{ .name = "random-late-vf-first",
	  .what = "GPUs at random: late binding, slots first",
	  .binding = SIM_LATE,
	  .order = SIM_VF_FIRST,
	  .gpus_at_random = true },
};

const struct sim_policy *sim_policies(size_t *ret_n)
{
	*ret_n = ARRAY_LEN(policies);
	return policies;
}

double sim_mean_rank(const struct score_classes *c)
{
	size_t pairs = 0;

	for (int i = 0; i < ALIGN_RANKS; i++)
		pairs += c->n[i];
	return pairs ? (double)sim_score_rank(c) / (double)pairs : 0;
}

double sim_percent(double part, size_t all)
{
	return all ? 100 * part / (double)all : 100;
}
