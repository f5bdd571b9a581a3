/* All that was read → the verdict, and for each GPU why it has no GDR. */
#include <stdlib.h>
#include <string.h>

#include "verify/verify-internal.h"

/* --- the allocated VFs (map.json, else an exact NCCL_IB_HCA) against those that NCCL takes and
 * those that its channels use --- */

static bool takes(const struct proc *p, const char *name, size_t len, uint64_t port)
{
	for (size_t i = 0; i < p->n_hcas; i++) {
		const struct hca *h = &p->hcas[i];

		if (!h->fused && strlen(h->name) == len && !strncmp(h->name, name, len) &&
		    (!port || h->port == port))
			return true;
	}
	return false;
}

static void saw_hca(struct verify *v, enum sign_id id, const struct proc *p, const char *name,
		    size_t len, uint64_t port)
{
	_cleanup_strbuf_ struct strbuf text = STRBUF_INIT;

	strbuf_printf(&text, "%s process %llu: %.*s", p->host, (unsigned long long)p->pid, (int)len,
		      name);
	if (port)
		strbuf_printf(&text, ":%llu", (unsigned long long)port);
	verify_saw_at(v, id, p->using_source, p->using_line, strbuf_str(&text));
}

/* A number stands for one HCA, or for several that are fused: "a+b", or two of one number. */
static bool dev_has(const struct proc *p, unsigned dev, const char *name, size_t len)
{
	for (size_t i = 0; i < p->n_hcas; i++) {
		const char *part = p->hcas[i].name;

		for (; p->hcas[i].dev == dev && *part;
		     part += strcspn(part, "+"), part += *part == '+') {
			if (strcspn(part, "+") == len && !strncmp(part, name, len))
				return true;
		}
	}
	return false;
}

static bool gpu_uses(const struct gpu *g, const struct map_entry *e, uint64_t devs)
{
	for (unsigned dev = 0; dev < VERIFY_MAX_DEVS; dev++) {
		if (devs >> dev & 1 && (g->by_dev[dev].n[0] || g->by_dev[dev].n[1]) &&
		    dev_has(g->proc, dev, e->hca, strlen(e->hca)))
			return true;
	}
	return false;
}

/* Every rank of the host is in the log: as many as NCCL counts, or the map has GPUs. */
static bool host_is_complete(const struct verify *v, const struct proc *first,
			     const struct map *map)
{
	size_t seen = 0, expected = first->local_ranks;

	for (size_t i = 0; !first->local_ranks && i < map->n_entries; i++) {
		bool again = !map->entries[i].gpu_bus;

		for (size_t k = 0; k < i; k++)
			again = again || map->entries[k].gpu_bus == map->entries[i].gpu_bus;
		expected += !again;
	}
	for (size_t i = 0; i < v->n_gpus; i++)
		seen += !strcmp(v->gpus[i]->proc->host, first->host);
	return seen >= expected;
}

/* The HCAs that the process takes against the map; then those that channels use, once a host, and
 * only when it is complete: ranks that are not in the log may use the rest. */
static void compare_with_map(struct verify *v, size_t index, const struct map *map)
{
	const struct proc *p = v->procs[index];

	for (size_t i = 0; i < map->n_entries; i++) {
		const struct map_entry *e = &map->entries[i];

		if (!takes(p, e->hca, strlen(e->hca), e->port))
			saw_hca(v, SIGN_HCA_MISSING, p, e->hca, strlen(e->hca), e->port);
	}
	for (size_t i = 0; i < p->n_hcas; i++) {
		const struct hca *h = &p->hcas[i];

		if (!h->fused && !map_entry_of(map, h->name, strlen(h->name), h->port))
			saw_hca(v, SIGN_HCA_FOREIGN, p, h->name, strlen(h->name), h->port);
	}
	for (size_t i = 0; i < index; i++) {
		if (!strcmp(v->procs[i]->host, p->host))
			return;
	}
	if (!v->net_channels || !host_is_complete(v, p, map))
		return;
	for (size_t i = 0; i < map->n_entries; i++) {
		const struct map_entry *e = &map->entries[i];
		bool used = !takes(p, e->hca, strlen(e->hca), e->port); /* reported above */

		for (size_t k = 0; !used && k < v->n_gpus; k++)
			used = !strcmp(v->gpus[k]->proc->host, p->host) &&
			       gpu_uses(v->gpus[k], e, UINT64_MAX);
		if (!used)
			saw_hca(v, SIGN_HCA_UNUSED, p, e->hca, strlen(e->hca), e->port);
	}
}

static void compare_gpu(struct verify *v, const struct gpu *g, const struct map *map)
{
	_cleanup_strbuf_ struct strbuf text = STRBUF_INIT;
	const struct map_entry *own = NULL;

	if (!g->own_devs || !g->bus || !g->proc->n_hcas)
		return;
	for (size_t i = 0; i < map->n_entries; i++) {
		if (map->entries[i].gpu_bus != g->bus)
			continue;
		own = &map->entries[i];
		if (gpu_uses(g, own, g->own_devs))
			return;
	}
	if (!own)
		return;
	strbuf_printf(&text, "%s GPU %s: %s:%llu is its own, and carries none of its channels",
		      g->proc->host, own->gpu, own->hca, (unsigned long long)own->port);
	verify_saw_at(v, SIGN_HCA_FAR, g->source, g->line, strbuf_str(&text));
}

static void compare_hcas(struct verify *v)
{
	for (size_t i = 0; i < v->n_procs; i++) {
		const struct proc *p = v->procs[i];
		const struct map *map = verify_map_of(v, p->host);

		if (!p->using_source)
			continue;
		if (map) {
			compare_with_map(v, i, map);
			continue;
		}
		if (!p->wanted || p->wanted[0] != '=' || !p->wanted[1]) {
			verify_saw(v, SIGN_NO_SET, "");
			continue;
		}
		/* "=mlx5_4:1,mlx5_5:1": an HCA that is named and not taken has a port that is not
		 * ACTIVE, or does not exist. */
		for (const char *entry = p->wanted + 1; *entry; entry += *entry == ',') {
			size_t len = strcspn(entry, ":,");
			uint64_t port = entry[len] == ':' ? strtoull(entry + len + 1, NULL, 10) : 0;

			if (len && !takes(p, entry, len, port))
				saw_hca(v, SIGN_HCA_MISSING, p, entry, len, port);
			entry += strcspn(entry, ",");
		}
	}
	for (size_t i = 0; v->maps && i < v->n_gpus; i++) {
		const struct map *map = verify_map_of(v, v->gpus[i]->proc->host);

		if (map)
			compare_gpu(v, v->gpus[i], map);
	}
}

void proc_hca_name(const struct proc *p, unsigned dev, struct strbuf *out)
{
	bool named = false;

	for (size_t i = 0; i < p->n_hcas; i++) {
		if (p->hcas[i].dev != dev)
			continue;
		strbuf_printf(out, "%s%s", named ? "+" : "", p->hcas[i].name);
		if (p->hcas[i].port)
			strbuf_printf(out, ":%u", p->hcas[i].port);
		named = true;
	}
	if (!named)
		strbuf_printf(out, "#%u", dev);
}

/* --- GPUDirect RDMA --- */

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

		if (t->n[0] > t->gdr[0] || t->n[1] > t->gdr[1])
			devs |= UINT64_C(1) << dev;
		receives_gdr = receives_gdr || t->gdr[1];
		receives_plain = receives_plain || t->n[1] > t->gdr[1];
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

/* --- the processes' records --- */

/* All ranks of the job are on one host: NCCL logs it, or they are all there. */
static bool one_node(const struct verify *v)
{
	uint64_t here = 0;

	for (size_t i = 0; i < v->n_gpus; i++)
		here += v->gpus[i]->comm == v->ranks;
	return v->nodes == 1 ||
	       (!v->nodes && v->ranks && here >= v->ranks && v->procs[0]->host[0] &&
		verify_hosts_seen(v) == 1 && !v->net_channels && !v->tcp_channels);
}

/* A rank is seen where its process names its HCAs, its network or a channel: its place among the
 * ranks alone does not prove its network. */
static void judge_ranks(struct verify *v)
{
	for (int proven = 0; proven < 2; proven++) {
		for (size_t i = 0; i < v->n_gpus; i++) {
			const struct gpu *g = v->gpus[i];
			uint64_t rank = (uint64_t)g->rank, bit = UINT64_C(1) << rank % 64;

			if (rank >= MAX_RANKS || g->comm != v->ranks ||
			    proven != (g->proc->names_rdma || g->proc->using_source))
				continue;
			if (proven)
				v->rank_seen[rank / 64] |= bit;
			else
				v->rank_seen[rank / 64] &= ~bit;
		}
	}
	if (v->bare_comm && !v->bare_rdma)
		memset(v->rank_seen, 0, sizeof(v->rank_seen));
}

static void judge_processes(struct verify *v)
{
	static const char socket[] = "NET/Socket : Using, and no other network of this process";

	for (size_t i = 0; i < v->n_procs; i++) {
		const struct proc *p = v->procs[i];
		const struct place *end = &p->traces[TRACE_END], *sharp = &p->traces[TRACE_SHARP];

		v->writer = p;
		v->writer_cuda = -1;
		if (p->socket.source && !p->names_rdma)
			verify_saw_at(v, SIGN_SOCKET, p->socket.source, p->socket.line, socket);
		if (end->source && !p->ended)
			verify_saw_at(v, SIGN_TRACE, end->source, end->line,
				      "a trace of socket.cc or proxy.cc");
		if (sharp->source && !(v->signs[SIGN_SHARP].count && p->completed && !p->failed))
			verify_saw_at(v, SIGN_TRACE, sharp->source, sharp->line,
				      "a trace of init.cc, transport.cc or coll_net.cc");
	}
	v->writer = NULL;
	if (v->bare_socket.source && !v->bare_rdma)
		verify_saw_at(v, SIGN_SOCKET, v->bare_socket.source, v->bare_socket.line, socket);
}

/* The same rank of a job of one node on two hosts. */
static bool two_jobs(const struct verify *v)
{
	const struct gpu *first = NULL;

	for (size_t i = 0; v->nodes <= 1 && v->ranks && i < v->n_gpus; i++) {
		const struct gpu *g = v->gpus[i];

		if (g->comm != v->ranks || g->rank != 0)
			continue;
		if (first && strcmp(first->proc->host, g->proc->host) != 0)
			return true;
		first = g;
	}
	return false;
}

static enum level worst_of(const struct verify *v)
{
	enum level worst = LEVEL_NOTE;

	for (unsigned id = 0; id < SIGN_MAX; id++) {
		if (v->signs[id].count && v->levels[id] > worst)
			worst = v->levels[id];
	}
	return worst;
}

/* A failure needs no evidence that something worked. Before 2.21 no line has the number of nodes;
 * then that channels take the network has to do. With both ways within a node closed, even one
 * node talks through its HCAs. */
static void judge_evidence(struct verify *v)
{
	char *minor;
	bool logs_nodes = strtol(v->version, &minor, 10) != 2 || *minor != '.' ||
			  strtol(minor + 1, NULL, 10) >= 21;
	const struct table *table = verify_worst_table(v);

	if (worst_of(v) == LEVEL_FAIL || (v->ucx_between && (one_node(v) || !v->records)))
		return;
	if (!v->records && table && table->yard == YARD_LINK)
		return; /* perftest proves its own */
	if (!v->records)
		verify_saw(v, v->ucx_lines ? SIGN_UCX_INSIDE : SIGN_NO_LINES, "");
	else if (two_jobs(v))
		verify_saw(v, SIGN_TWO_JOBS, "");
	else if (v->nodes == 1 && v->net_channels && !strcmp(v->env[ENV_P2P_DISABLE], "1") &&
		 !strcmp(v->env[ENV_SHM_DISABLE], "1"))
		verify_saw(v, SIGN_ONE_NODE_LOOP, "");
	else if (one_node(v))
		verify_saw(v, SIGN_ONE_NODE, "");
	else if (!v->net_channels && v->mnnvl_channels)
		verify_saw(v, SIGN_MNNVL, "");
	else if (!v->net_channels)
		verify_saw(v, SIGN_NO_CHANNELS, "");
	else if (!v->nodes && logs_nodes && verify_hosts_seen(v) < 2)
		verify_saw(v, SIGN_NODES_UNTOLD, "");
}

/* --- findings against each other --- */

/* The earliest cause; where all are consequences, the earliest of them. Wrong data come first. */
static unsigned first_cause(const struct verify *v)
{
	unsigned first = SIGN_MAX;

	if (v->signs[SIGN_WRONG].count)
		return SIGN_WRONG;
	for (int follows = 0; follows < 2 && first == SIGN_MAX; follows++) {
		for (unsigned id = 0; id < SIGN_MAX; id++) {
			const struct proof *p = &v->signs[id];

			if (p->count && v->levels[id] == LEVEL_FAIL &&
			    verify_sign_of(id)->follows == (follows != 0) &&
			    (first == SIGN_MAX || p->seq < v->signs[first].seq))
				first = id;
		}
	}
	return first;
}

/* Findings that weigh more, or less, beside the others. */
static void weigh(struct verify *v)
{
	bool ended_badly = false;

	/* A socket that NCCL opened on one node carries nothing between nodes. */
	if (one_node(v) && !v->tcp_channels) {
		v->signs[SIGN_SOCKET].count = v->signs[SIGN_TCP_PLUGIN].count = 0;
		v->signs[SIGN_NO_DEVICE].count = 0;
	}
	if (v->signs[SIGN_PORT_UP].count >= v->signs[SIGN_PORT_DOWN].count)
		v->levels[SIGN_PORT_DOWN] = LEVEL_WARN;
	for (unsigned id = 0; id < SIGN_MAX; id++)
		ended_badly =
			ended_badly ||
			(v->signs[id].count && v->levels[id] == LEVEL_FAIL &&
			 (verify_sign_of(id)->words || id == SIGN_TRACE || id == SIGN_NO_ROWS));
	/* A warning of NCCL's before a bad end is its cause, known or not. */
	if (ended_badly && v->signs[SIGN_OTHER_WARN].count)
		v->levels[SIGN_OTHER_WARN] = LEVEL_FAIL;
	if (ended_badly && v->signs[SIGN_TWO_VERSIONS].count)
		v->levels[SIGN_TWO_VERSIONS] = LEVEL_FAIL;
	v->ended_badly = ended_badly;
	v->first = first_cause(v);
}

enum verdict verify_judge(struct verify *v)
{
	static const enum verdict by_level[] = {
		[LEVEL_NOTE] = VERDICT_PASS, [LEVEL_NOGDR] = VERDICT_NOGDR,
		[LEVEL_WARN] = VERDICT_WARN, [LEVEL_UNKNOWN] = VERDICT_INCONCLUSIVE,
		[LEVEL_FAIL] = VERDICT_FAIL,
	};
	uint64_t all, seen;
	_cleanup_strbuf_ struct strbuf text = STRBUF_INIT;
	enum level worst;

	verify_close_table(v);
	judge_ranks(v);
	all = v->ranks ? v->ranks : v->least_ranks;
	seen = verify_ranks_seen(v);
	judge_processes(v);
	compare_hcas(v);
	judge_gdr(v);
	/* GPUDirect RDMA is RDMA; without it, only NCCL's own transport, those made of it, and a
	 * provider that is named are known to be. */
	if (v->net_gdr < v->net_channels && strncmp(v->network, "IB", 2) != 0 && !v->rdma_provider)
		verify_saw(v, SIGN_PLUGIN_UNPROVEN, "");
	verify_judge_bench(v);
	weigh(v);
	judge_evidence(v);
	worst = worst_of(v);
	/* Where nothing worse was found: the network of the others decides, too. */
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

void verify_counted(struct verify *v, bool tcp, const char *name, uint64_t n)
{
	_cleanup_strbuf_ struct strbuf text = STRBUF_INIT;

	strbuf_printf(&text, tcp ? "%s sent %llu bytes" : "%s:%llu", name, (unsigned long long)n);
	verify_saw_at(v, tcp ? SIGN_TCP_TRAFFIC : SIGN_IDLE_PORT, NULL, 0, strbuf_str(&text));
}

const char *verify_verdict_name(enum verdict verdict)
{
	static const char *const names[] = { [VERDICT_PASS] = "PASS",
					     [VERDICT_NOGDR] = "PASS-noGDR",
					     [VERDICT_WARN] = "WARN",
					     [VERDICT_FAIL] = "FAIL",
					     [VERDICT_INCONCLUSIVE] = "INCONCLUSIVE" };

	return names[verdict];
}
