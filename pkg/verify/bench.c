/*
 * Tables of benchmarks: nccl-tests, rccl-tests, PyTorch's param (COMMS-RES), the all-reduce of
 * deploy/examples and others alike. A line of headings names a column "busbw"; each line below with
 * as many columns is a row. Anything may stand before both, as long as it is the same number of
 * words.
 */
#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "base/list.h"
#include "base/mem.h"
#include "base/str.h"
#include "verify/verify-internal.h"

#define MAX_WORDS 24
#define MAX_ROW	  512 /* bytes of a line */

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

static bool read_headings(struct bench *b, const struct words *w)
{
	int size = -1, bus = -1;

	for (int i = 0; i < w->n; i++) {
		if (size < 0 &&
		    (!strcasecmp(w->word[i], "size") || !strcasecmp(w->word[i], "bytes") ||
		     !strcasecmp(w->word[i], "payload")))
			size = i;
		if (bus < 0 && !strncasecmp(w->word[i], "busbw", strlen("busbw")))
			bus = i;
	}
	if (size < 0 || bus <= size)
		return false;
	b->columns = w->n;
	b->size_column = size;
	b->bus_column = bus;
	b->bits = strstr(w->word[bus], "Gb") != NULL;
	return true;
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

/* "48.21", "48.21GBps" */
static bool read_bandwidth(const char *word, bool bits, double *ret)
{
	char *end;
	double value = strtod(word, &end);

	if (end == word || !isdigit((unsigned char)*word) ||
	    !memchr(word, '.', (size_t)(end - word)) || (*end && !is_rate_unit(end)))
		return false;
	*ret = bits || str_starts(end, "Gb") ? value / 8 : value;
	return value < 1e6;
}

static void read_row(struct verify *v, const struct words *w, const char *line, size_t len)
{
	struct bench *b = &v->bench;
	double size, bus;

	if (w->n != b->columns || !read_size(w->word[b->size_column], &size) ||
	    !read_bandwidth(w->word[b->bus_column], b->bits, &bus))
		return;
	b->rows++;
	b->largest = size > b->largest ? size : b->largest;
	if (b->rows > 1 && bus <= b->best)
		return;
	b->best = bus;
	b->best_size = size;
	b->source = v->source;
	b->line = v->line;
	len = len < sizeof(b->text) ? len : sizeof(b->text) - 1;
	for (size_t i = 0; i < len; i++)
		b->text[i] = (char)(isprint((unsigned char)line[i]) ? line[i] : ' ');
	b->text[len] = '\0';
}

void verify_bench_line(struct verify *v, const char *line, size_t len)
{
	struct bench *b = &v->bench;
	struct words w;

	if (memmem(line, len, "_perf", 5) || memmem(line, len, "COMMS-RES", 9)) {
		static const char *const each_to_each[] = { "alltoall",	   "all_to_all",
							    "sendrecv",	   "hypercube",
							    "gather_perf", "scatter_perf" };

		/* What each rank sends to each other one has no ring whose traffic leaves a node
		 * once. */
		for (size_t i = 0; i < ARRAY_LEN(each_to_each); i++) {
			const char *at =
				memmem(line, len, each_to_each[i], strlen(each_to_each[i]));

			/* "all_gather_perf", "reduce_scatter_perf" are rings */
			if (at && (at == line || at[-1] != '_'))
				b->each_to_each = true;
		}
	}
	if (memmem(line, len, "usbw", 4) || memmem(line, len, "usBW", 4)) {
		if (split(line, len, true, &w))
			read_headings(b, &w);
	} else if (b->columns && split(line, len, false, &w)) {
		read_row(v, &w, line, len);
	}
}

/* --- against what the VFs can send --- */

#define LEAST_SIZE 32e6 /* bytes; below, latency decides */
#define HALF	   0.5
#define NEARLY	   0.9

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

/* What was found otherwise and costs bandwidth, the costliest first. */
static const char *likely_cause(const struct verify *v)
{
	static const struct {
		enum sign_id id;
		const char *why;
	} causes[] = {
		{ SIGN_SOCKET, "traffic over TCP" },
		{ SIGN_TCP_PLUGIN, "traffic over TCP" },
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

static void saw_bandwidth(struct verify *v, enum sign_id id)
{
	const struct bench *b = &v->bench;
	_cleanup_strbuf_ struct strbuf text = STRBUF_INIT;

	strbuf_printf(&text, "%.2f GB/s bus bandwidth at best, %.0f %% of %.2f GB/s", b->best,
		      100 * b->best / b->line_rate, b->line_rate);
	if (id != SIGN_BANDWIDTH_GOOD)
		strbuf_printf(&text, "; likely: %s", likely_cause(v));
	strbuf_printf(&text, ": %s", b->text);
	verify_saw_at(v, id, b->source, b->line, strbuf_str(&text));
}

void verify_judge_bench(struct verify *v)
{
	struct bench *b = &v->bench;
	unsigned ranks = 1; /* that share the VFs of a node */
	double least = 0;

	if (!b->rows || (v->nodes < 2 && !v->net_channels))
		return;
	/* Gb/s of the node that has least, by the maps, else by what NCCL says of each HCA */
	for (const struct map *m = v->maps; m; m = m->next) {
		double rate = rate_of_map(m);

		least = rate > 0 && (least == 0 || rate < least) ? rate : least;
	}
	for (size_t i = 0; !v->maps && i < v->n_procs; i++) {
		double rate = 0;

		for (unsigned dev = 0; dev < VERIFY_MAX_DEVS; dev++)
			rate += (double)v->procs[i]->speed_mbps[dev] / 1000;
		least = rate > 0 && (least == 0 || rate < least) ? rate : least;
	}
	for (size_t i = 0; b->each_to_each && i < v->n_procs; i++)
		ranks = v->procs[i]->local_ranks > ranks ? v->procs[i]->local_ranks : ranks;
	b->line_rate = least / 8 / ranks;
	if (b->largest < LEAST_SIZE)
		verify_saw_at(v, SIGN_BANDWIDTH_SMALL, b->source, b->line, b->text);
	else if (b->line_rate <= 0)
		verify_saw_at(v, SIGN_BANDWIDTH_UNTOLD, b->source, b->line, b->text);
	else if (b->best < HALF * b->line_rate)
		saw_bandwidth(v, SIGN_BANDWIDTH_HALF);
	else
		saw_bandwidth(v, b->best < NEARLY * b->line_rate ? SIGN_BANDWIDTH_LOW
								 : SIGN_BANDWIDTH_GOOD);
}
