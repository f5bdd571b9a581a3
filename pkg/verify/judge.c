/* All that was read → the verdict, and for each GPU why it has no GDR. */
#include <stdlib.h>
#include <string.h>

#include "verify/verify-internal.h"

/* The best class that the map has for this GPU is one over which NCCL uses no GDR. */
static bool map_says_far(const struct verify *v, const struct gpu *g)
{
	const struct map *map = verify_map_of(v, g->proc->host);
	bool far = false;

	for (size_t i = 0; map && g->bus && i < map->n_entries; i++) {
		const struct map_entry *e = &map->entries[i];

		if (e->gpu_bus != g->bus)
			continue;
		far = str_eq(e->path, "PHB") || str_eq(e->path, "NODE") || str_eq(e->path, "SYS");
		if (!far)
			return false;
	}
	return far;
}

/* host_said: RCCL logs it once, not for each HCA. */
static enum sign_id why_plain(const struct verify *v, const struct gpu *g, bool host_said)
{
	bool receives_gdr = false, receives_plain = false;
	uint64_t devs = 0; /* over which some channel has no GDR */

	for (unsigned dev = 0; dev < VERIFY_MAX_DEVS; dev++) {
		const struct traffic *t = &g->by_dev[dev];

		if (t->send > t->send_gdr || t->receive > t->receive_gdr)
			devs |= UINT64_C(1) << dev;
		receives_gdr = receives_gdr || t->receive_gdr;
		receives_plain = receives_plain || t->receive > t->receive_gdr;
	}
	if (!devs)
		return SIGN_MAX;
	if (!strcmp(v->env[ENV_GDR_LEVEL], "LOC") || !strcmp(v->env[ENV_GDR_LEVEL], "0"))
		return SIGN_NOGDR_ENV;
	if (devs & g->proc->gdr_disabled || host_said)
		return SIGN_NOGDR_HOST;
	if (devs & g->far_devs)
		return SIGN_NOGDR_FAR;
	if (v->signs[SIGN_NOT_PCI].count || v->signs[SIGN_NO_REALPATH].count)
		return SIGN_NOGDR_PLACE;
	if (receives_gdr && !receives_plain)
		return SIGN_NOGDR_READ;
	return map_says_far(v, g) ? SIGN_NOGDR_MAP : SIGN_NOGDR_UNKNOWN;
}

static void judge_gdr(struct verify *v)
{
	const struct proof *plain = &v->grounds[GROUND_PLAIN];
	enum sign_id bare = v->bare_plain & v->bare_disabled ? SIGN_NOGDR_HOST : SIGN_NOGDR_UNKNOWN;
	bool host_said = v->signs[SIGN_NOGDR_HOST].count;

	for (size_t i = 0; i < v->n_gpus; i++) {
		struct gpu *g = v->gpus[i];

		g->why = why_plain(v, g, host_said);
		if (g->why != SIGN_MAX) {
			_cleanup_strbuf_ struct strbuf text = STRBUF_INIT;

			strbuf_printf(&text, "%s GPU %u: a channel without GDRDMA", g->proc->host,
				      g->cuda);
			verify_saw_at(v, g->why, g->source, g->line, strbuf_str(&text));
		}
	}
	/* Channels of GPUs that cannot be distinguished, or of lines without a process. */
	if (v->net_gdr < v->net_channels) {
		for (size_t i = SIGN_NOGDR_ENV; i <= SIGN_NOGDR_UNKNOWN; i++) {
			if (v->signs[i].count)
				return;
		}
		verify_saw_at(v, bare, plain->source, plain->line, plain->text);
	}
}

/* A failure needs no evidence that something worked. Before 2.21 no line has the number of nodes;
 * then that channels take the network has to do. With both ways within a node closed, even one
 * node talks through its HCAs. */
static void judge_evidence(struct verify *v)
{
	char *minor;
	bool logs_nodes = strtol(v->version, &minor, 10) != 2 || *minor != '.' ||
			  strtol(minor + 1, NULL, 10) >= 21;

	for (enum sign_id id = 0; id < SIGN_MAX; id++) {
		if (v->signs[id].count && verify_sign_of(id)->level == LEVEL_FAIL)
			return;
	}
	if (!v->records)
		verify_saw(v, SIGN_NO_LINES, "");
	else if (v->nodes == 1 && v->net_channels && !strcmp(v->env[ENV_P2P_DISABLE], "1") &&
		 !strcmp(v->env[ENV_SHM_DISABLE], "1"))
		verify_saw(v, SIGN_ONE_NODE_LOOP, "");
	else if (v->nodes == 1)
		verify_saw(v, SIGN_ONE_NODE, "");
	else if (!v->net_channels)
		verify_saw(v, SIGN_NO_CHANNELS, "");
	else if (!v->nodes && logs_nodes && verify_hosts_seen(v) < 2)
		verify_saw(v, SIGN_NODES_UNTOLD, "");
}

enum verdict verify_judge(struct verify *v)
{
	static const enum verdict by_level[] = {
		[LEVEL_NOTE] = VERDICT_PASS, [LEVEL_NOGDR] = VERDICT_NOGDR,
		[LEVEL_WARN] = VERDICT_WARN, [LEVEL_UNKNOWN] = VERDICT_INCONCLUSIVE,
		[LEVEL_FAIL] = VERDICT_FAIL,
	};
	uint64_t all = v->ranks ? v->ranks : v->least_ranks, seen = verify_ranks_seen(v);
	_cleanup_strbuf_ struct strbuf text = STRBUF_INIT;
	enum level worst = LEVEL_NOTE;

	verify_compare_hcas(v);
	judge_gdr(v);
	/* GPUDirect RDMA is RDMA; without it, only NCCL's own transport, what is made of it, and a
	 * provider that is named are known to be. */
	if (v->net_gdr < v->net_channels && strncmp(v->network, "IB", 2) != 0 && !v->rdma_provider)
		verify_saw(v, SIGN_PLUGIN_UNPROVEN, "");
	verify_judge_bench(v);
	judge_evidence(v);
	for (enum sign_id id = 0; id < SIGN_MAX; id++) {
		if (v->signs[id].count && verify_sign_of(id)->level > worst)
			worst = verify_sign_of(id)->level;
	}
	/* Where nothing worse was found: what the others used decides, too. */
	if (v->net_channels && all > seen && all <= MAX_RANKS) {
		strbuf_printf(&text, "%llu of %llu ranks", (unsigned long long)seen,
			      (unsigned long long)all);
		if (v->nodes)
			strbuf_printf(&text, ", %llu of %llu nodes",
				      (unsigned long long)verify_hosts_seen(v),
				      (unsigned long long)v->nodes);
		verify_saw_at(v, SIGN_RANKS_UNSEEN, NULL, 0, strbuf_str(&text));
		if (worst == LEVEL_NOTE)
			worst = LEVEL_UNKNOWN;
	}
	return v->verdict = by_level[worst];
}

void verify_idle_port(struct verify *v, const char *hca, uint64_t port)
{
	_cleanup_strbuf_ struct strbuf text = STRBUF_INIT;

	strbuf_printf(&text, "%s:%llu", hca, (unsigned long long)port);
	verify_saw_at(v, SIGN_IDLE_PORT, NULL, 0, strbuf_str(&text));
}

void verify_tcp_traffic(struct verify *v, const char *interface, uint64_t bytes)
{
	_cleanup_strbuf_ struct strbuf text = STRBUF_INIT;

	strbuf_printf(&text, "%s sent %llu bytes", interface, (unsigned long long)bytes);
	verify_saw_at(v, SIGN_TCP_TRAFFIC, NULL, 0, strbuf_str(&text));
}

const char *verify_verdict_name(enum verdict verdict)
{
	static const char *const names[] = {
		[VERDICT_PASS] = "PASS",
		[VERDICT_NOGDR] = "PASS-noGDR",
		[VERDICT_WARN] = "WARN",
		[VERDICT_FAIL] = "FAIL",
		[VERDICT_INCONCLUSIVE] = "INCONCLUSIVE",
	};

	return names[verdict];
}
