#include "unit/ledger/sample.h"

const struct ledger_decision sample_decision = {
	.at_ms = 1700000000123,
	.resource = "rdma/vf",
	.late = true,
	.owner = { "default", "train-0", "6f1e", "main", "0b1a6e2c-55d0-4f0b-9d7e-6b1d1f0c9a55" },
	.claims = "nics,more",
	.asked = 2,
	.known = LEDGER_GPUS_PREDICTED,
	.source = "nvidia.com/gpu's GetPreferredAllocation",
	.gpus = (const char *const[]) { "0000:0f:00.0", "0000:2d:00.0" },
	.n_gpus = 2,
	.free = (const struct ledger_place[]) { { "0000:18:00.0", 8 }, { "0000:29:00.0", 7 } },
	.n_free = 2,
	.chosen = (const char *const[]) { "0000:18:00.2", "0000:29:00.2" },
	.n_chosen = 2,
	.nodes = (const char *const[]) { "uverbs7", "uverbs12" },
	.n_nodes = 2,
	.pairs = (const struct ledger_pair[]) { { "0000:0f:00.0", "0000:18:00.2", "PIX" },
						{ "0000:2d:00.0", "0000:29:00.2", "PXB" } },
	.n_pairs = 2,
	.cost = 1,
	.alternative = (const char *const[]) { "0000:18:00.2", "0000:18:00.3" },
	.n_alternative = 2,
	.alternative_cost = 3,
	.checked = true,
	.real_gpus = (const char *const[]) { "0000:0f:00.0", "0000:44:00.0" },
	.n_real_gpus = 2,
	.real_cost = 4,
	.best_cost = 1,
};

struct ledger_hold sample_hold(const char *vf)
{
	return (struct ledger_hold) { .vf = vf,
				      .resource = "rdma/vf",
				      .owner = { "default", "train-0", "", "main", NULL },
				      .rdma = "mlx5_7",
				      .since_ms = 1700000000123 };
}

struct ledger *sample_ledger(void)
{
	struct ledger *l = ledger_new();
	struct ledger_hold slot = sample_hold("0000:18:00.2"), away = sample_hold("10000:01:00.1");

	slot.slot = "rvf-vf-n0-1";
	slot.decision = ledger_decide(l, &sample_decision);
	slot.netdev = "ens1f0v0";
	slot.driver = "mlx5_core";
	slot.pending = true;
	away.draining = true;
	away.owner = (struct ledger_owner) { 0 };
	ledger_decide(l, &(struct ledger_decision) { .resource = "rdma/vf" });
	ledger_put(l, &slot);
	ledger_put(l, &away);
	return l;
}
