/* The tables of benchmarks against the bandwidth of a node's VFs. */
#include <string.h>

#include "base/mem.h"
#include "verify/verify-internal.h"

#define LEAST_SIZE 32e6 /* bytes; below, latency decides */
#define LEAST_LINK 65e3 /* of perftest, which keeps many in flight */
#define HALF	   0.5
#define NEARLY	   0.9
#define OVER	   1.05

/* Gb/s of all VFs of a container; 0: not known of one. */
static double rate_of_map(const struct map *map)
{
	double sum = 0;

	for (size_t i = 0; i < map->n_entries; i++) {
		const struct map_entry *e = &map->entries[i];

		if (map_entry_of(map, e->hca, strlen(e->hca), e->port) != e) /* again */
			continue;
		if (!e->mbps)
			return 0;
		sum += (double)e->mbps / 1000;
	}
	return sum;
}

/* Gb/s of the HCAs that channels of this process's host use, by NCCL's log of each; of all that
 * NCCL takes, where no channel is in the log. */
static double rate_of_host(const struct verify *v, const struct proc *p)
{
	uint64_t used = 0;
	double sum = 0;

	for (size_t i = 0; i < v->n_gpus; i++) {
		const struct gpu *g = v->gpus[i];

		if (strcmp(g->proc->host, p->host) != 0)
			continue;
		for (unsigned dev = 0; dev < VERIFY_MAX_DEVS; dev++)
			used |= (uint64_t)(g->by_dev[dev].n[0] || g->by_dev[dev].n[1]) << dev;
	}
	for (unsigned dev = 0; dev < VERIFY_MAX_DEVS; dev++) {
		if (!used || used >> dev & 1)
			sum += (double)p->speed_mbps[dev] / 1000;
	}
	return sum;
}

/* GB/s of the node that has least, by the maps, else by the log. */
static double node_rate(const struct verify *v)
{
	double least = 0;

	for (const struct map *m = v->maps; m; m = m->next) {
		double rate = rate_of_map(m);

		least = rate > 0 && (least <= 0 || rate < least) ? rate : least;
	}
	for (size_t i = 0; !v->maps && i < v->n_procs; i++) {
		double rate = i && !strcmp(v->procs[i]->host, v->procs[i - 1]->host) && least > 0
				      ? 0
				      : rate_of_host(v, v->procs[i]);

		least = rate > 0 && (least <= 0 || rate < least) ? rate : least;
	}
	return least / 8;
}

/* GB/s of an HCA by its name, from a map. */
static double link_rate(const struct verify *v, const char *hca)
{
	for (const struct map *m = v->maps; m; m = m->next) {
		const struct map_entry *e = map_entry_of(m, hca, strlen(hca), 0);

		if (e && e->mbps)
			return (double)e->mbps / 8000;
	}
	return 0;
}

/* Other findings that cost bandwidth, the costliest first. */
static const char *likely_cause(const struct verify *v)
{
	static const struct {
		enum sign_id id;
		const char *why;
	} causes[] = {
		{ SIGN_SOCKET, "traffic over TCP" },
		{ SIGN_TCP_PLUGIN, "traffic over TCP" },
		{ SIGN_PORT_DOWN, "a port that went down" },
		{ SIGN_HCA_MISSING, "allocated VFs that NCCL does not take" },
		{ SIGN_HCA_UNUSED, "allocated VFs that no channel uses" },
		{ SIGN_HCA_FAR, "GPUs that use another GPU's VF" },
		{ SIGN_NOT_PCI, "a VF whose place NCCL does not know" },
		{ SIGN_FUSED, "VFs that share a wire" },
		{ SIGN_GDR_FORCED, "GPUDirect RDMA forced over a long way" },
		{ SIGN_SHM, "shared memory between the GPUs of a node" },
	};

	for (size_t i = 0; i < ARRAY_LEN(causes); i++) {
		if (v->signs[causes[i].id].count)
			return causes[i].why;
	}
	if (v->net_gdr < v->net_channels)
		return "channels without GPUDirect RDMA";
	return "nothing that the log shows: see railmatectl doctor (PCIe links, ACS, IOMMU, PFC) and the switches";
}

static void saw_table(struct verify *v, const struct table *t, enum sign_id id)
{
	_cleanup_strbuf_ struct strbuf text = STRBUF_INIT;

	if (t->name[0])
		strbuf_printf(&text, "%s: ", t->name);
	if (t->ceiling > 0)
		strbuf_printf(&text, "%.2f GB/s bus bandwidth at best, %.0f %% of %.2f GB/s",
			      t->best, 100 * t->best / t->ceiling, t->ceiling);
	else
		strbuf_printf(&text, "%.2f GB/s bus bandwidth at best", t->best);
	if (id == SIGN_BANDWIDTH_HALF || id == SIGN_BANDWIDTH_LOW)
		strbuf_printf(&text, "; likely: %s", likely_cause(v));
	if (id == SIGN_COLLAPSE)
		strbuf_printf(&text, ", %.2f at a larger size", t->least_after);
	strbuf_printf(&text, ": %s", t->text);
	verify_saw_at(v, id, t->place.source, t->place.line, strbuf_str(&text));
}

/* The ceilings that come into question, the lowest first. */
static size_t ceilings(const struct verify *v, const struct table *t, double rate, double ret[3])
{
	double n = (double)(t->extent.ranks ? t->extent.ranks : v->ranks), local = 1, each, all[3];
	static const uint8_t by_yard[] = {
		/* bits: a share, each-to-each, the node */
		[YARD_RING] = 4, [YARD_EACH] = 2,	  [YARD_PAIR] = 1,
		[YARD_LINK] = 1, [YARD_RING_OR_EACH] = 6, [YARD_ANY] = 7,
	};
	size_t count = 0;

	for (size_t i = 0; !t->extent.local && i < v->n_procs; i++)
		local = v->procs[i]->local_ranks > local ? v->procs[i]->local_ranks : local;
	if (t->extent.local)
		local = (double)t->extent.local;
	else if (t->extent.ranks && t->extent.nodes)
		local = n / (double)t->extent.nodes;
	/* A GPU's own link to PCIe may be narrower than its NICs. */
	if (v->gpu_link > 0 && local * v->gpu_link < rate)
		rate = local * v->gpu_link;
	/* Of a rank's bytes to n - 1 others, those that stay within its node take no NIC. */
	each = rate / local * (n > local ? (n - 1) / (n - local) : 1);
	all[0] = rate / local;
	all[1] = each;
	all[2] = rate;
	for (size_t i = 0; i < ARRAY_LEN(all); i++) {
		if (by_yard[t->yard] >> i & 1 && (!count || local > 1))
			ret[count++] = all[i];
	}
	if (t->yard == YARD_LINK)
		ret[0] = link_rate(v, t->device);
	return count;
}

static enum sign_id judge_rate(struct table *t, const double *ceiling, size_t n)
{
	t->ceiling = ceiling[n - 1];
	for (size_t i = 0; i < n; i++) {
		if (t->best < NEARLY * ceiling[i] || (i + 1 < n && t->best > OVER * ceiling[i]))
			continue;
		t->ceiling = ceiling[i];
		return SIGN_BANDWIDTH_GOOD;
	}
	if (t->best < HALF * ceiling[0])
		return SIGN_BANDWIDTH_HALF;
	return n == 1 ? SIGN_BANDWIDTH_LOW : SIGN_WHICH_BENCHMARK;
}

static void judge_table(struct verify *v, struct table *t, double rate)
{
	uint64_t nodes = t->extent.nodes ? t->extent.nodes
			 : v->nodes	 ? v->nodes
					 : verify_hosts_seen(v);
	double ceiling[3];
	size_t n = ceilings(v, t, rate, ceiling);
	enum sign_id id;

	if (t->yard != YARD_LINK && v->records &&
	    (nodes == 1 || (v->mnnvl_channels && !v->net_channels)))
		id = SIGN_BANDWIDTH_INSIDE;
	else if (t->largest < (t->yard == YARD_LINK ? LEAST_LINK : LEAST_SIZE))
		id = SIGN_BANDWIDTH_SMALL;
	else if (ceiling[0] <= 0)
		id = SIGN_BANDWIDTH_UNTOLD;
	else
		id = judge_rate(t, ceiling, n);
	saw_table(v, t, id);
	if (id == SIGN_BANDWIDTH_SMALL || id == SIGN_BANDWIDTH_INSIDE)
		return;
	if (t->least_after > 0 && t->least_after < HALF * t->best)
		saw_table(v, t, SIGN_COLLAPSE);
	if (t->spread)
		saw_table(v, t, SIGN_SPREAD);
}

void verify_judge_bench(struct verify *v)
{
	struct bench *b = &v->bench;
	double rate = b->n_tables ? node_rate(v) : 0;

	for (size_t i = 0; i < b->n_tables; i++)
		judge_table(v, &b->tables[i], rate);
	if (b->pending)
		verify_saw_at(v, SIGN_NO_ROWS, b->heading.source, b->heading.line,
			      "a program or a table's heading, and no row");
}

const struct table *verify_worst_table(const struct verify *v)
{
	const struct table *worst = NULL;

	for (size_t i = 0; i < v->bench.n_tables; i++) {
		const struct table *t = &v->bench.tables[i];

		if (!worst ||
		    (t->ceiling > 0 &&
		     (worst->ceiling <= 0 || t->best / t->ceiling < worst->best / worst->ceiling)))
			worst = t;
	}
	return worst;
}
