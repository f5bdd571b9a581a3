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
