/*
 * Tables of benchmarks: nccl-tests, rccl-tests, PyTorch's param (COMMS-RES), the all-reduce of
 * deploy/examples and others alike, and perftest. A line of headings names a column "busbw"; each
 * line below with as many columns is a row. Anything may stand before both, as long as it is the
 * same number of words. Each table stands alone, with the extent of the job that wrote it.
 */
#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "base/list.h"
#include "base/mem.h"
#include "base/str.h"
#include "verify/verify-internal.h"

#define MAX_WORDS  24
#define MAX_ROW	   512	/* bytes of a line */
#define LARGE_SIZE 32e6 /* bytes; below, latency decides */

struct words {
	char text[MAX_ROW];
	char *word[MAX_WORDS];
	int n;
};

static bool is_rate_unit(const char *word)
{
	static const char *const units[] = { "GB/s", "Gb/s", "GBps", "Gbps" };

	return list_has(units, ARRAY_LEN(units), word);
}

/* Beside a heading or a number a unit is not a column. A column may be called "ms". False: too
 * long, or too many. */
static bool split(const char *line, size_t len, bool heading, struct words *w)
{
	static const char *const units[] = { "B",   "KB",  "MB", "GB", "KiB",
					     "MiB", "GiB", "us", "ms", "s" };
	char *save = NULL;

	w->n = 0;
	if (len >= sizeof(w->text))
		return false;
	memcpy(w->text, line, len);
	w->text[len] = '\0';
	for (char *p = strtok_r(w->text, " \t\r|", &save); p; p = strtok_r(NULL, " \t\r|", &save)) {
		if (p[0] == '(' || !strcmp(p, "#") || is_rate_unit(p) ||
		    (!heading && list_has(units, ARRAY_LEN(units), p)))
			continue;
		if (w->n == MAX_WORDS)
			return false;
		w->word[w->n++] = p + (p[0] == '#');
	}
	return true;
}

/* The first column from `from` on whose heading begins so; -1: none. */
static int column(const struct words *w, int from, const char *name)
{
	for (int i = from; i < w->n; i++) {
		if (!strncasecmp(w->word[i], name, strlen(name)))
			return i;
	}
	return -1;
}

/* A program, or a table, began. Headings below each other are one, which several ranks print. */
static void began(struct verify *v, bool heading)
{
	struct bench *b = &v->bench;
	bool again = b->heading.source == v->source && v->line - b->heading.line < 2;

	if (heading)
		verify_close_table(v);
	if (!b->started && !(b->pending && again))
		b->unread = ++b->pending;
	b->started = !heading;
	b->heading = (struct place) { v->source, v->line };
}

static void read_headings(struct verify *v, const struct words *w)
{
	static const char *const sizes[] = { "size", "bytes", "payload" };
	struct bench *b = &v->bench;
	int size = -1, bus = column(w, 0, "busbw");

	for (size_t i = 0; size < 0 && i < ARRAY_LEN(sizes); i++) {
		size = column(w, 0, sizes[i]);
		if (size >= 0 && strlen(w->word[size]) != strlen(sizes[i]))
			size = -1;
	}
	if (size < 0 || bus <= size)
		return;
	began(v, true);
	b->columns = w->n;
	b->size_column = size;
	b->bus_column = bus;
	b->alg_column = column(w, 0, "algbw");
	b->redop_column = column(w, 0, "redop");
	b->root_column = column(w, 0, "root");
	b->wrong_columns[0] = column(w, 0, "wrong");
	b->wrong_columns[1] = column(w, b->wrong_columns[0] + 1, "wrong");
	b->min_column = column(w, 0, "Min");
	b->max_column = column(w, 0, "Max");
	b->bits = strstr(w->word[bus], "Gb") != NULL;
	b->scale = 0;
}

/* "67108864", "64MB", "64MiB" */
static bool read_size(const char *word, double *ret)
{
	static const char letters[] = "KMGT";
	char *end;
	double value = strtod(word, &end);
	const char *letter = *end ? strchr(letters, *end) : NULL;

	if (end == word || !isdigit((unsigned char)*word) ||
	    (*end && !letter && strcmp(end, "B") != 0))
		return false;
	for (long i = letter ? letter - letters : -1; i >= 0; i--)
		value *= 1024;
	*ret = value;
	return value >= 1 && value < 1e15;
}

/* "48.21", "48.21GBps"; "375" only in a wide row, which nothing else looks like. */
static bool read_bandwidth(const struct bench *b, const char *word, double *ret)
{
	char *end;
	double value = strtod(word, &end);

	if (end == word || !isdigit((unsigned char)*word) || (*end && !is_rate_unit(end)) ||
	    (b->columns < 6 && !memchr(word, '.', (size_t)(end - word))))
		return false;
	*ret = b->bits || str_starts(end, "Gb") ? value / 8 : value;
	return value < 1e6;
}

static void copy_line(char *out, size_t room, const char *line, size_t len)
{
	len = len < room ? len : room - 1;
	for (size_t i = 0; i < len; i++)
		out[i] = (char)(isprint((unsigned char)line[i]) ? line[i] : ' ');
	out[len] = '\0';
}

/* By which a collective is known where it has no name. */
static void read_kind(struct bench *b, const struct words *w, double bus)
{
	struct table *t = &b->open;
	const char *redop = b->redop_column < 0 ? NULL : w->word[b->redop_column];
	double alg;

	if (redop)
		t->redop = strcmp(redop, "none") ? 's' : 'n';
	t->rooted = b->root_column >= 0 && isdigit((unsigned char)*w->word[b->root_column]);
	if (b->alg_column >= 0 && read_bandwidth(b, w->word[b->alg_column], &alg) && alg > 1)
		t->ratio = bus / alg;
}

static void read_row(struct verify *v, const struct words *w, const char *line, size_t len)
{
	struct bench *b = &v->bench;
	struct table *t = &b->open;
	double size, bus, least, most;

	if (w->n != b->columns || !read_size(w->word[b->size_column], &size) ||
	    !read_bandwidth(b, w->word[b->bus_column], &bus))
		return;
	if (b->scale > 0)
		bus *= b->scale;
	/* Of two tables that run into each other each has a row of the smallest size. */
	if (b->pending && (b->unread == b->pending || size <= b->last_size)) {
		b->pending--;
		b->unread = SIZE_MAX;
	}
	b->last_size = size;
	for (size_t i = 0; i < ARRAY_LEN(b->wrong_columns); i++) {
		const char *wrong = b->wrong_columns[i] < 0 ? "0" : w->word[b->wrong_columns[i]];

		if (isdigit((unsigned char)*wrong) && strtod(wrong, NULL) > 0) {
			char text[120];

			copy_line(text, sizeof(text), line, len);
			verify_saw(v, SIGN_WRONG, text);
		}
	}
	if (b->min_column >= 0 && b->max_column >= 0 && size >= LARGE_SIZE &&
	    (least = strtod(w->word[b->min_column], NULL)) > 0 &&
	    (most = strtod(w->word[b->max_column], NULL)) > 2 * least)
		t->spread = true;
	t->rows++;
	if (size >= t->largest) {
		t->largest = size;
		t->last = bus;
	}
	if (t->rows > 1 && bus <= t->best) {
		if (size > t->best_size && (t->least_after == 0 || bus < t->least_after))
			t->least_after = bus;
		return;
	}
	read_kind(b, w, bus);
	t->best = bus;
	t->best_size = size;
	t->least_after = 0;
	t->place = (struct place) { v->source, v->line };
	copy_line(t->text, sizeof(t->text), line, len);
}

static const struct collective {
	const char *name;
	enum yard yard;
} collectives[] = {
	/* "all_gather_perf", "reduce_scatter_perf" before "gather_perf" and "scatter_perf" */
	{ "all_reduce", YARD_RING }, { "all_gather", YARD_RING }, { "reduce_scatter", YARD_RING },
	{ "alltoall", YARD_EACH },   { "all_to_all", YARD_EACH }, { "hypercube", YARD_EACH },
	{ "sendrecv", YARD_PAIR },   { "broadcast", YARD_RING },  { "gather", YARD_EACH },
	{ "scatter", YARD_EACH },    { "reduce", YARD_RING },
};

static void read_name(struct bench *b, const char *line, size_t len)
{
	b->both_ways = memmem(line, len, "Bidirectional BW", 16);
	for (size_t i = 0; i < ARRAY_LEN(collectives); i++) {
		const char *name = collectives[i].name;

		if (memmem(line, len, name, strlen(name)) && !memmem(line, len, "concluded", 9)) {
			memset(b->name, 0, sizeof(b->name));
			memcpy(b->name, name, strlen(name));
			return;
		}
	}
}

/* By its name, else by its reduction, its root, and the factor between its bandwidths: 2(n-1)/n of
 * an all-reduce, (n-1)/n of an operation that leaves a part at each rank, 1 of the others. */
static enum yard yard_of(const struct table *t, uint64_t ranks)
{
	for (size_t i = 0; i < ARRAY_LEN(collectives); i++) {
		if (str_eq(t->name, collectives[i].name))
			return collectives[i].yard;
	}
	if (t->ratio > 1.02 || (t->redop && t->ratio <= 0 && t->redop == 's'))
		return YARD_RING;
	if (!t->redop || t->ratio <= 0)
		return YARD_ANY;
	if (t->redop == 'n')
		return !t->rooted ? YARD_RING_OR_EACH : t->ratio < 0.98 ? YARD_EACH : YARD_RING;
	return t->rooted || t->ratio < 0.98 || ranks == 2 ? YARD_RING : YARD_ANY;
}

/* The word behind this one, and the text between them. */
static bool word_after(const char *line, size_t len, const char *key, char word[64])
{
	const char *p = memmem(line, len, key, strlen(key)), *end = line + len;
	size_t n = 0;

	if (!p)
		return false;
	for (p += strlen(key); p < end && (*p == ' ' || *p == '\t' || *p == ':'); p++)
		;
	for (; p < end && n < 63 && !isspace((unsigned char)*p); p++)
		word[n++] = *p;
	word[n] = '\0';
	return true;
}

/* perftest's lines before its table: "Device         : mlx5_0", and its heading. */
static void read_link(struct verify *v, const char *line, size_t len)
{
	struct bench *b = &v->bench;

	if (!memmem(line, len, "BW average[", 11)) {
		word_after(line, len, "Device", b->device);
		return;
	}
	began(v, true);
	b->columns = 5;
	b->bus_column = 3;
	b->size_column = 0;
	b->alg_column = b->redop_column = b->root_column = b->min_column = b->max_column = -1;
	b->wrong_columns[0] = b->wrong_columns[1] = -1;
	b->bits = memmem(line, len, "[Gb/sec]", 8);
	b->scale = (b->bits ? 1 : 1048576 / 1e9) / (b->both_ways ? 2 : 1);
}

/* "# nThread 1 …": a program starts. "#  Rank  0 Group  0 Pid   1000 on      gpu-a device  0" */
static void read_start(struct verify *v, const char *line, size_t len)
{
	struct bench *b = &v->bench;
	char host[64] = "";

	if (!word_after(line, len, " on ", host)) {
		b->head = (struct extent) { 0 };
		began(v, false);
		return;
	}
	b->head.nodes += !b->head.ranks || strcmp(b->host, host) != 0;
	b->head.ranks++;
	memcpy(b->host, host, sizeof(host));
}

void verify_close_table(struct verify *v)
{
	struct bench *b = &v->bench;
	struct table *t = &b->open;

	if (!t->rows) {
		*t = (struct table) { 0 };
		return;
	}
	t->extent = b->run.nodes || b->run.ranks ? b->run : b->last_run;
	if (!t->extent.nodes)
		t->extent.nodes = b->head.nodes;
	if (!t->extent.ranks)
		t->extent.ranks = b->head.ranks;
	memcpy(t->name, b->name, sizeof(t->name));
	memcpy(t->device, b->device, sizeof(t->device));
	t->yard = b->scale > 0 ? YARD_LINK : yard_of(t, t->extent.ranks);
	/* Beyond the last one the worst of its kind stays. */
	for (size_t i = 0; i < b->n_tables && b->n_tables == MAX_TABLES; i++) {
		if (b->tables[i].yard == t->yard && b->tables[i].extent.nodes == t->extent.nodes &&
		    b->tables[i].best > t->best && t->largest >= LARGE_SIZE) {
			b->tables[i] = *t;
			break;
		}
	}
	if (b->n_tables < MAX_TABLES)
		b->tables[b->n_tables++] = *t;
	b->last_run = t->extent;
	b->run = (struct extent) { 0 };
	b->name[0] = '\0';
	*t = (struct table) { 0 };
}

void verify_bench_line(struct verify *v, const char *line, size_t len, unsigned hints)
{
	struct bench *b = &v->bench;
	struct words w;

	if (hints & HINT_NAME)
		read_name(b, line, len);
	if (hints & HINT_START)
		read_start(v, line, len);
	if (hints & HINT_LINK)
		read_link(v, line, len);
	if (hints & HINT_HEADING) {
		if (split(line, len, true, &w))
			read_headings(v, &w);
	} else if (hints & HINT_END) {
		verify_close_table(v);
	} else if (b->columns && split(line, len, false, &w)) {
		read_row(v, &w, line, len);
	}
}

/* --- the tables against the bandwidth of a node's VFs --- */

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

/* Other findings that cost bandwidth, the costliest first; else what such a share of a NIC's rate
 * is by a public table of transports. */
static const char *likely_cause(const struct verify *v, double share)
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
	if (share < 0.48)
		return share < 0.25
			       ? "nothing that the log shows, and about what TCP gives"
			       : "nothing that the log shows, and about what RDMA with copies through the host gives";
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
		strbuf_printf(&text, "; likely: %s", likely_cause(v, t->best / t->ceiling));
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
