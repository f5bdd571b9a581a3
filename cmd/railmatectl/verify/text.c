/* The verdict for people, and as JSON. */
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "base/mem.h"
#include "verify/verify-internal.h"

#define MAX_ROWS 64 /* of GPUs with trouble, for people; --json has all */
#define FEW_ROWS 16 /* of GPUs without */

typedef unsigned long long ull; /* printf's %llu */

static const char *const ground_names[] = {
	[GROUND_NETWORK] = "network", [GROUND_USING] = "HCAs",	    [GROUND_NODES] = "nodes",
	[GROUND_GDR] = "GDRDMA",      [GROUND_PLAIN] = "no GDR",    [GROUND_WHY] = "why",
	[GROUND_INSIDE] = "inside",   [GROUND_GDRCOPY] = "GDRCopy", [GROUND_UCX] = "UCX",
	[GROUND_END] = "end",
};

/* The worst first; within a level as in the catalogue. */
static const enum level order[] = { LEVEL_FAIL, LEVEL_UNKNOWN, LEVEL_WARN, LEVEL_NOGDR,
				    LEVEL_NOTE };

static uint64_t gpu_channels(const struct gpu *g, uint64_t *ret_gdr)
{
	uint64_t n = 0, gdr = 0;

	for (unsigned dev = 0; dev < VERIFY_MAX_DEVS; dev++) {
		n += g->by_dev[dev].n[0] + (uint64_t)g->by_dev[dev].n[1];
		gdr += g->by_dev[dev].gdr[0] + (uint64_t)g->by_dev[dev].gdr[1];
	}
	*ret_gdr = gdr;
	return n;
}

static void put_bus(const struct gpu *g, struct strbuf *out)
{
	if (g->bus)
		strbuf_printf(out, "%04llx:%02llx:%02llx.%llx", (ull)(g->bus >> 20),
			      (ull)(g->bus >> 12 & 0xff), (ull)(g->bus >> 4 & 0xff),
			      (ull)(g->bus & 0xf));
}

/* Why not, in a few words; the findings explain it. */
static void put_why(const struct verify *v, const struct gpu *g, struct strbuf *out)
{
	static const char *const words[SIGN_MAX + 1] = {
		[SIGN_NOGDR_ENV] = "NCCL_NET_GDR_LEVEL=",
		[SIGN_NOGDR_HOST] = "no peermem, no dmabuf",
		[SIGN_NOGDR_FAR] = "too far: distance ",
		[SIGN_NOGDR_PLACE] = "its place is not known",
		[SIGN_NOGDR_READ] = "sends only",
		[SIGN_NOGDR_MAP] = "too far by the map",
		[SIGN_NOGDR_UNKNOWN] = "the log does not say why",
	};

	strbuf_puts(out, words[g->why] ? words[g->why] : "");
	if (g->why == SIGN_NOGDR_ENV)
		strbuf_puts(out, v->env[ENV_GDR_LEVEL]);
	if (g->why == SIGN_NOGDR_FAR)
		strbuf_printf(out, "%u, limit %u", g->far_distance, g->far_limit);
	if (g->why == SIGN_NOGDR_READ && !strcmp(v->env[ENV_GDR_READ], "0"))
		strbuf_puts(out, ": NCCL_NET_GDR_READ=0");
}

static void put_gpu(const struct verify *v, const struct gpu *g, struct strbuf *out)
{
	_cleanup_strbuf_ struct strbuf bus = STRBUF_INIT, hcas = STRBUF_INIT, why = STRBUF_INIT;
	uint64_t gdr, n = gpu_channels(g, &gdr);
	bool first = true;

	put_bus(g, &bus);
	for (unsigned dev = 0; dev < VERIFY_MAX_DEVS; dev++) {
		if (!g->by_dev[dev].n[0] && !g->by_dev[dev].n[1])
			continue;
		if (!first)
			strbuf_putc(&hcas, ',');
		proc_hca_name(g->proc, dev, &hcas);
		first = false;
	}
	put_why(v, g, &why);
	strbuf_printf(out, "  %s GPU %u", g->proc->host, g->cuda);
	if (g->rank >= 0)
		strbuf_printf(out, " rank %lld", (long long)g->rank);
	if (bus.len)
		strbuf_printf(out, " %s", strbuf_str(&bus));
	strbuf_printf(out, "  %s  ", strbuf_str(&hcas));
	if (g->why == SIGN_MAX)
		strbuf_puts(out, "GDRDMA");
	else
		strbuf_printf(out, "%s: %s", gdr ? "GDRDMA in part" : "no GDR", strbuf_str(&why));
	strbuf_printf(out, "  (%llu of %llu channels, %s:%llu)\n", (ull)gdr, (ull)n, g->source,
		      (ull)g->line);
}

/* Trouble first. */
static void put_gpus(const struct verify *v, struct strbuf *out)
{
	size_t shown = 0, total = 0;
	uint64_t gdr;

	for (int plain = 1; plain >= 0; plain--) {
		size_t rows = plain ? MAX_ROWS : FEW_ROWS;

		for (size_t i = 0; i < v->n_gpus; i++) {
			const struct gpu *g = v->gpus[i];

			if (!gpu_channels(g, &gdr) || (g->why != SIGN_MAX) != plain)
				continue;
			if (!total++)
				strbuf_puts(out, "\n");
			if (!rows)
				continue;
			put_gpu(v, g, out);
			rows--;
			shown++;
		}
	}
	if (shown < total)
		strbuf_printf(out, "  and %zu more (--json has all)\n", total - shown);
}

static void put_proof(const struct proof *p, struct strbuf *out)
{
	if (p->line)
		strbuf_printf(out, "%s:%llu: ", p->source, (ull)p->line);
	strbuf_puts(out, p->text);
}

/* Who wrote it, and when, as far as the line has it. */
static void put_writer(const struct proof *p, struct strbuf *out)
{
	int64_t rank = verify_rank_of(p);

	if (p->proc && p->proc->host[0])
		strbuf_printf(out, "%s process %llu", p->proc->host, (ull)p->proc->pid);
	if (rank >= 0)
		strbuf_printf(out, "%srank %lld", out->len ? ", " : "", (long long)rank);
	if (p->moment[0])
		strbuf_printf(out, "%s%s", out->len ? ", " : "", p->moment);
}

/* A consequence is listed below its cause, and needs no advice of its own. */
static bool only_follows(const struct verify *v, unsigned id)
{
	return v->levels[id] == LEVEL_FAIL && verify_sign_of(id)->follows && id != v->first &&
	       !verify_sign_of(v->first)->follows;
}

static void put_finding(const struct verify *v, unsigned id, struct strbuf *out)
{
	_cleanup_strbuf_ struct strbuf writer = STRBUF_INIT;
	const struct sign *s = verify_sign_of(id);
	const struct proof *p = &v->signs[id];

	strbuf_printf(out, "\n%s %s", verify_level_name(v->levels[id]), s->id);
	if (s->what)
		strbuf_printf(out, ": %s", s->what);
	if (p->count > 1)
		strbuf_printf(out, " (%llu times)", (ull)p->count);
	if (only_follows(v, id))
		strbuf_printf(out, ", follows from %s", verify_sign_of(v->first)->id);
	strbuf_putc(out, '\n');
	if (p->line || p->text[0]) {
		strbuf_puts(out, "  proof: ");
		put_proof(p, out);
		strbuf_putc(out, '\n');
	}
	if (id == SIGN_OTHER_WARN) {
		/* Of NCCL's own warnings each text has a line. */
		for (size_t i = 1; i < v->n_warns; i++) {
			strbuf_puts(out, "         ");
			put_proof(&v->warns[i], out);
			if (v->warns[i].count > 1)
				strbuf_printf(out, " (%llu times)", (ull)v->warns[i].count);
			strbuf_putc(out, '\n');
		}
	}
	put_writer(p, &writer);
	if (v->levels[id] == LEVEL_FAIL && writer.len)
		strbuf_printf(out, "  from:  %s\n", strbuf_str(&writer));
	if (!only_follows(v, id))
		strbuf_printf(out, "  cause: %s\n  fix:   %s\n", s->cause, s->fix);
}

/* The findings in their order: the worst level first, failures by their time
 * with the first cause before all, the others as in the catalogue. */
static unsigned sort_findings(const struct verify *v, unsigned ids[SIGN_MAX])
{
	unsigned n = 0;

	for (size_t k = 0; k < ARRAY_LEN(order); k++) {
		unsigned begin = n;

		for (unsigned id = 0; id < SIGN_MAX; id++) {
			unsigned at = n;

			if (!v->signs[id].count || v->levels[id] != order[k])
				continue;
			for (; order[k] == LEVEL_FAIL && at > begin && ids[at - 1] != v->first &&
			       (id == v->first || v->signs[ids[at - 1]].seq > v->signs[id].seq);
			     at--)
				ids[at] = ids[at - 1];
			ids[at] = id;
			n++;
		}
	}
	return n;
}

static const char *name_end(const struct verify *v)
{
	return v->ended_badly ? "badly" : v->grounds[GROUND_END].count ? "well" : "not seen";
}

void verify_text(const struct verify *v, struct strbuf *out)
{
	unsigned ids[SIGN_MAX], n;

	strbuf_printf(out, "verdict: %s\n", verify_verdict_name(v->verdict));
	if (v->first < SIGN_MAX) {
		strbuf_printf(out, "  first cause: %s: ", verify_sign_of(v->first)->id);
		put_proof(&v->signs[v->first], out);
		strbuf_putc(out, '\n');
	}
	strbuf_printf(out, "  version %s, network %s,", v->version[0] ? v->version : "unknown",
		      v->network[0] ? v->network : "unknown");
	if (v->nodes)
		strbuf_printf(out, " %llu node%s,", (ull)v->nodes, v->nodes == 1 ? "" : "s");
	if (v->ranks && verify_ranks_seen(v) < v->ranks)
		strbuf_printf(out, " %llu of", (ull)verify_ranks_seen(v));
	if (v->ranks)
		strbuf_printf(out, " %llu rank%s,", (ull)v->ranks, v->ranks == 1 ? "" : "s");
	strbuf_printf(out, " %llu channels between nodes, %llu with GDRDMA\n", (ull)v->net_channels,
		      (ull)v->net_gdr);
	for (size_t i = 0; i < GROUND_MAX; i++) {
		if (!v->grounds[i].count || (i == GROUND_END && v->ended_badly))
			continue;
		strbuf_printf(out, "  %-8s ", ground_names[i]);
		put_proof(&v->grounds[i], out);
		strbuf_putc(out, '\n');
	}
	if (v->ended_badly || !v->grounds[GROUND_END].count)
		strbuf_printf(out, "  %-8s %s\n", "end", name_end(v));
	put_gpus(v, out);
	n = sort_findings(v, ids);
	for (unsigned i = 0; i < n; i++)
		put_finding(v, ids[i], out);
}

/* --- JSON --- */

static void json_proof(struct json *j, const struct proof *p)
{
	json_kv_string(j, "source", p->line ? p->source : NULL);
	json_kv_int(j, "line", (int64_t)p->line);
	json_kv_string(j, "text", p->text);
	json_kv_int(j, "count", (int64_t)p->count);
}

static void json_proofs(struct json *j, const char *key, const char *const *names,
			const struct proof *proofs, size_t n)
{
	json_kv_array(j, key);
	for (size_t i = 0; i < n; i++) {
		if (!proofs[i].count)
			continue;
		json_begin_object(j);
		if (names)
			json_kv_string(j, "of", names[i]);
		json_proof(j, &proofs[i]);
		json_end_object(j);
	}
	json_end_array(j);
}

static void json_kv_text(struct json *j, const char *key, const struct strbuf *text)
{
	json_kv_string(j, key, text->len ? strbuf_str(text) : NULL);
}

static void json_gpu(const struct verify *v, const struct gpu *g, struct json *j)
{
	_cleanup_strbuf_ struct strbuf bus = STRBUF_INIT, why = STRBUF_INIT;
	uint64_t gdr, n = gpu_channels(g, &gdr);

	put_bus(g, &bus);
	put_why(v, g, &why);
	json_begin_object(j);
	json_kv_string(j, "host", g->proc->host);
	json_kv_int(j, "pid", (int64_t)g->proc->pid);
	json_kv_int(j, "cuda_device", g->cuda);
	json_kv_int(j, "rank", g->rank);
	json_kv_text(j, "gpu", &bus);
	json_kv_string(j, "gdr", !n ? "unused" : gdr == n ? "all" : gdr ? "part" : "none");
	json_kv_text(j, "why", &why);
	json_kv_array(j, "hcas");
	for (unsigned dev = 0; dev < VERIFY_MAX_DEVS; dev++) {
		_cleanup_strbuf_ struct strbuf name = STRBUF_INIT;
		const struct traffic *t = &g->by_dev[dev];

		if (!t->n[0] && !t->n[1])
			continue;
		proc_hca_name(g->proc, dev, &name);
		json_begin_object(j);
		json_kv_string(j, "hca", strbuf_str(&name));
		json_kv_int(j, "send", t->n[0]);
		json_kv_int(j, "send_gdr", t->gdr[0]);
		json_kv_int(j, "receive", t->n[1]);
		json_kv_int(j, "receive_gdr", t->gdr[1]);
		json_end_object(j);
	}
	json_end_array(j);
	json_kv_string(j, "source", g->source);
	json_kv_int(j, "line", (int64_t)g->line);
	json_end_object(j);
}

static void json_bandwidth(const struct verify *v, struct json *j)
{
	const struct table *t = verify_worst_table(v);

	json_key(j, "bandwidth");
	if (!t) {
		json_put_null(j);
		return;
	}
	json_begin_object(j);
	json_kv_int(j, "bus_mbytes_s", (int64_t)(t->best * 1000));
	json_kv_int(j, "line_mbytes_s", (int64_t)(t->ceiling * 1000));
	json_kv_int(j, "bytes", (int64_t)t->best_size);
	json_kv_string(j, "source", t->place.source);
	json_kv_int(j, "line", (int64_t)t->place.line);
	json_end_object(j);
}

void verify_json(const struct verify *v, struct json *j)
{
	unsigned ids[SIGN_MAX], n;

	json_kv_string(j, "verdict", verify_verdict_name(v->verdict));
	json_kv_string(j, "end", name_end(v));
	json_kv_string(j, "first_cause", v->first < SIGN_MAX ? verify_sign_of(v->first)->id : NULL);
	json_kv_string(j, "nccl_version", v->version[0] ? v->version : NULL);
	json_kv_string(j, "network", v->network[0] ? v->network : NULL);
	json_kv_int(j, "nodes", (int64_t)v->nodes);
	json_kv_int(j, "ranks", (int64_t)v->ranks);
	json_kv_int(j, "ranks_seen", (int64_t)verify_ranks_seen(v));
	json_kv_int(j, "hosts_seen", (int64_t)verify_hosts_seen(v));
	json_kv_int(j, "channels", (int64_t)v->net_channels);
	json_kv_int(j, "channels_gdr", (int64_t)v->net_gdr);
	json_kv_int(j, "bytes", (int64_t)v->bytes);
	json_kv_int(j, "lines", (int64_t)v->lines);
	json_proofs(j, "proof", ground_names, v->grounds, GROUND_MAX);
	json_proofs(j, "warnings", NULL, v->warns, v->n_warns);
	json_bandwidth(v, j);
	json_kv_array(j, "gpus");
	for (size_t i = 0; i < v->n_gpus; i++)
		json_gpu(v, v->gpus[i], j);
	json_end_array(j);
	json_kv_array(j, "findings");
	n = sort_findings(v, ids);
	for (unsigned i = 0; i < n; i++) {
		const struct sign *s = verify_sign_of(ids[i]);
		_cleanup_strbuf_ struct strbuf writer = STRBUF_INIT;

		put_writer(&v->signs[ids[i]], &writer);
		json_begin_object(j);
		json_kv_string(j, "id", s->id);
		json_kv_string(j, "level", verify_level_name(v->levels[ids[i]]));
		json_kv_string(j, "what", s->what);
		json_kv_string(j, "cause", s->cause);
		json_kv_string(j, "fix", s->fix);
		json_kv_text(j, "from", &writer);
		json_kv_string(j, "follows",
			       only_follows(v, ids[i]) ? verify_sign_of(v->first)->id : NULL);
		json_proof(j, &v->signs[ids[i]]);
		json_end_object(j);
	}
	json_end_array(j);
}
