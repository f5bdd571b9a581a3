#include <string.h>

#include "base/mem.h"
#include "sim/simulate.h"

/* Sums of the same numbers in another order. */
#define ROUNDING 1e-6

/* Those that draw GPUs at random have a reference of their own: other GPUs, other distances. */
static const struct sim_policy policies[] = {
	{ .name = "kubelet", .what = "the kubelet's own choice, no GetPreferredAllocation" },
	{ .name = "numa",
	  .what = "NUMA only: TopologyManager, best-effort",
	  .numa = NUMA_BEST_EFFORT },
	{ .name = "early",
	  .what = "early binding, in the order of the kubelet's map",
	  .binding = SIM_EARLY,
	  .reference = "kubelet" },
	{ .name = "early-gpu-first",
	  .what = "early binding, GPUs first",
	  .binding = SIM_EARLY,
	  .order = SIM_GPU_FIRST,
	  .reference = "kubelet",
	  .bar = 100 },
	{ .name = "early-vf-first",
	  .what = "early binding, VFs first, GPUs predicted",
	  .binding = SIM_EARLY,
	  .order = SIM_VF_FIRST,
	  .reference = "kubelet",
	  .bar = 95 },
	{ .name = "early-no-specs",
	  .what = "the same without pod specs: as many GPUs as VFs are predicted",
	  .binding = SIM_EARLY,
	  .order = SIM_VF_FIRST,
	  .no_specs = true,
	  .reference = "kubelet" },
	{ .name = "early-mute",
	  .what = "early binding, VFs first, the GPU plugin does not answer us",
	  .binding = SIM_EARLY,
	  .order = SIM_VF_FIRST,
	  .mute = true,
	  .reference = "kubelet",
	  .bar = 80 },
	{ .name = "late",
	  .what = "late binding, in the order of the kubelet's map",
	  .binding = SIM_LATE,
	  .reference = "kubelet",
	  .bar = 100 },
	{ .name = "late-vf-first",
	  .what = "late binding, slots first",
	  .binding = SIM_LATE,
	  .order = SIM_VF_FIRST,
	  .reference = "kubelet",
	  .bar = 100 },
	{ .name = "random-kubelet",
	  .what = "GPUs at random: the kubelet's own choice",
	  .gpus_at_random = true },
	{ .name = "random-early-vf-first",
	  .what = "GPUs at random: early binding, VFs first",
	  .binding = SIM_EARLY,
	  .order = SIM_VF_FIRST,
	  .gpus_at_random = true,
	  .reference = "random-kubelet",
	  .bar = 80 },
	{ .name = "random-late-vf-first",
	  .what = "GPUs at random: late binding, slots first",
	  .binding = SIM_LATE,
	  .order = SIM_VF_FIRST,
	  .gpus_at_random = true,
	  .reference = "random-kubelet",
	  .bar = 100 },
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

struct sim_bar sim_bar(const struct sim_result *r)
{
	struct sim_bar bar = { .percent = r->policy->bar };

	if (!bar.percent)
		return bar;
	bar.proven = r->bound > 0 && !r->unbounded && sim_percent(r->bound, r->pairs) < bar.percent;
	if (bar.proven)
		bar.percent = sim_percent(r->bound, r->pairs);
	bar.met = sim_percent((double)r->best, r->pairs) >= bar.percent ||
		  (bar.proven && r->expected >= r->bound - ROUNDING);
	return bar;
}

bool sim_unfragmented(const struct sim_result *r, const struct sim_result *reference)
{
	return sim_score_rank(&r->optimum) <= sim_score_rank(&reference->optimum);
}

const struct sim_result *sim_reference(const struct sim_result *r, const struct sim_result *all,
				       size_t n)
{
	for (size_t i = 0; r->policy->reference && i < n; i++) {
		if (!strcmp(all[i].policy->name, r->policy->reference))
			return &all[i];
	}
	return NULL;
}
