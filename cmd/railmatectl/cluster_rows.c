/* The table of `railmatectl cluster status`. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/err.h"
#include "base/json.h"
#include "base/mem.h"
#include "base/str.h"
#include "cluster.h"
#include "cluster_status.h"
#include "document/document.h"
#include "topo/rails.h"

static const char *const level_names[FLEET_LEVELS] = { "PASS", "WARN", "FAIL", "no answer" };

/* --- from JSON --- */

/* One line, whatever it holds; NULL stays NULL. */
static const char *own(struct fleet *f, const char *text)
{
	char *copy = arena_strdup(f->arena, text);

	if (copy)
		str_printable(copy, strlen(copy), "");
	return copy;
}

static const struct item *list_of(const struct item *object, const char *key)
{
	const struct item *list = item_get(object, key);

	return list && list->type == ITEM_LIST ? list : NULL;
}

/* A number of things; what makes no sense is none. */
static int64_t count_of(const struct item *object, const char *key)
{
	int64_t n = object ? item_number(object, key, 0) : 0;

	return n >= 0 && n < 1 << 24 ? n : 0;
}

static struct fleet_row *add_row(struct fleet *f, const char *node)
{
	f->rows = xgrow(f->rows, &f->cap, f->n + 1, sizeof(*f->rows));
	f->rows[f->n] = (struct fleet_row) { .node = own(f, node) };
	return &f->rows[f->n++];
}

void fleet_add_error(struct fleet *f, const char *node, const char *why)
{
	struct fleet_row *row = add_row(f, node);

	row->level = FLEET_SILENT;
	row->error = own(f, why);
}

void fleet_add_trouble(struct fleet *f, const char *node, const char *sentence)
{
	for (size_t i = 0; i < f->n; i++) {
		struct fleet_row *row = &f->rows[i];

		if (strcmp(row->node, node) != 0)
			continue;
		if (row->level < FLEET_WARN)
			row->level = FLEET_WARN;
		if (!row->n_trouble++)
			row->trouble = own(f, sentence);
	}
}

static void add_link(struct fleet *f, struct fleet_row *row, const struct item *link)
{
	const struct item *down = item_get(link, "down");
	int64_t rail = item_number(link, "rail", -1), plane = item_number(link, "plane", -1);

	row->links++;
	row->down += down && down->type == ITEM_BOOL && down->boolean;
	if (rail >= 0 && rail <= TOPO_RAIL_MAX && plane <= TOPO_PLANE_MAX)
		fabric_add(&f->fabric, row->node, (int)rail, plane < 0 ? -1 : (int)plane,
			   own(f, item_string(link, "switch")));
}

static void add_status(struct fleet *f, const char *node, const struct item *top)
{
	const struct item *placement = item_get(top, "placement");
	struct fleet_row *row;
	const struct item *pools = list_of(top, "pools"), *links = list_of(top, "links");
	const struct item *trouble = list_of(top, "trouble");
	enum fleet_level level = 0;

	while (level < FLEET_SILENT && !str_eq(item_string(top, "verdict"), level_names[level]))
		level++;
	if (level == FLEET_SILENT) {
		fleet_add_error(f, node, "its answer is not that of railmatectl status");
		return;
	}
	row = add_row(f, node);
	row->level = level;
	row->text = arena_copy(f->arena, top->text, top->text_len);
	row->len = top->text_len;
	row->version = own(f, item_string(top, "railmated"));
	row->doctor = item_get(top, "doctor")
			      ? own(f, item_string(item_get(top, "doctor"), "verdict"))
			      : NULL;
	row->checked = count_of(placement, "checked");
	row->best = count_of(placement, "best");
	if (row->best > row->checked)
		row->best = row->checked;
	for (size_t i = 0; pools && i < pools->n_kids; i++) {
		const struct item *p = &pools->kids[i];

		row->vfs += count_of(p, "vfs");
		row->free += count_of(p, "free");
		row->held += count_of(p, "held") + count_of(p, "allocated") +
			     count_of(p, "leaving") + count_of(p, "retired");
		row->unusable +=
			count_of(p, "draining") + count_of(p, "in_use") + count_of(p, "unhealthy");
	}
	for (size_t i = 0; links && i < links->n_kids; i++)
		add_link(f, row, &links->kids[i]);
	for (size_t i = 0; trouble && i < trouble->n_kids; i++) {
		const char *sentence = trouble->kids[i].string;

		if (trouble->kids[i].type != ITEM_STRING)
			continue;
		if (!row->n_trouble++)
			row->trouble = own(f, sentence);
	}
}

void fleet_add(struct fleet *f, const char *node, const char *text, size_t len)
{
	_cleanup_arena_ struct arena *a = arena_new(16384);
	const struct item *top, *status;
	struct err err = { 0 };
	const char *name;

	if (document_parse(text, len, "its answer", a, &top, &err) < 0) {
		fleet_add_error(f, node, err.msg);
		return;
	}
	status = item_get(top, "status");
	if (!status) {
		add_status(f, node, top);
		return;
	}
	name = item_string(top, "node");
	name = name && *name ? name : node;
	if (item_string(top, "error"))
		fleet_add_error(f, name, item_string(top, "error"));
	else
		add_status(f, name, status);
}

/* --- order --- */

static int worst_first(const void *a, const void *b)
{
	const struct fleet_row *x = a, *y = b;

	if (x->level != y->level)
		return x->level > y->level ? -1 : 1;
	if (x->down != y->down)
		return x->down > y->down ? -1 : 1;
	if (x->unusable != y->unusable)
		return x->unusable > y->unusable ? -1 : 1;
	return cluster_node_cmp(x->node, y->node);
}

void fleet_judge(struct fleet *f)
{
	f->n_findings = fabric_judge(&f->fabric, f->arena, &f->findings);
	qsort(f->rows, f->n, sizeof(*f->rows), worst_first);
}

enum fleet_level fleet_level(const struct fleet *f)
{
	enum fleet_level level = f->rows[0].level;

	return f->n_findings && level < FLEET_WARN ? FLEET_WARN : level;
}

/* --- text --- */

#define FINDINGS 8 /* about cables, in the text */

enum column { NODE, VERDICT, VERSION, FREE, HELD, UNUSABLE, LINKS, BEST, DOCTOR, COLUMNS };

static const struct {
	const char *head;
	bool right;
} columns[COLUMNS] = {
	[NODE] = { "NODE", false },	  [VERDICT] = { "VERDICT", false },
	[VERSION] = { "VERSION", false }, [FREE] = { "FREE", true },
	[HELD] = { "HELD", true },	  [UNUSABLE] = { "UNUSABLE", true },
	[LINKS] = { "LINKS", true },	  [BEST] = { "BEST", true },
	[DOCTOR] = { "DOCTOR", false },
};

struct cells {
	char v[COLUMNS][32]; /* but for NODE */
};

static void fill(const struct fleet_row *row, struct cells *c)
{
	snprintf(c->v[VERDICT], 32, "%s", level_names[row->level]);
	snprintf(c->v[VERSION], 32, "%.20s", row->version ? row->version : "-");
	str_utf8_trim(c->v[VERSION]);
	snprintf(c->v[FREE], 32, "%lld", (long long)row->free);
	snprintf(c->v[HELD], 32, "%lld", (long long)row->held);
	snprintf(c->v[UNUSABLE], 32, "%lld", (long long)row->unusable);
	snprintf(c->v[LINKS], 32, "%lld/%lld", (long long)(row->links - row->down),
		 (long long)row->links);
	if (row->checked)
		snprintf(c->v[BEST], 32, "%lld %%", (long long)(row->best * 100 / row->checked));
	else
		snprintf(c->v[BEST], 32, "-");
	snprintf(c->v[DOCTOR], 32, "%.10s", row->doctor ? row->doctor : "-");
	str_utf8_trim(c->v[DOCTOR]);
}

struct widths {
	int v[COLUMNS];
};

static void widen(struct widths *w, int column, const char *cell)
{
	int len = (int)strlen(cell);

	if (len > w->v[column])
		w->v[column] = len;
}

static struct widths measure(const struct fleet *f)
{
	struct widths w = { 0 };
	struct cells c;

	for (int k = 0; k < COLUMNS; k++)
		widen(&w, k, columns[k].head);
	for (size_t i = 0; i < f->n; i++) {
		widen(&w, NODE, f->rows[i].node);
		if (f->rows[i].level == FLEET_SILENT)
			continue;
		fill(&f->rows[i], &c);
		for (int k = NODE + 1; k < COLUMNS; k++)
			widen(&w, k, c.v[k]);
	}
	return w;
}

static void put_cell(const struct widths *w, int column, const char *cell, struct strbuf *out)
{
	strbuf_printf(out, "%s%*s", column ? "  " : "",
		      columns[column].right ? w->v[column] : -w->v[column], cell);
}

static void end_line(struct strbuf *out)
{
	while (out->s[out->len - 1] == ' ')
		out->s[--out->len] = '\0';
	strbuf_putc(out, '\n');
}

struct sum {
	size_t nodes[FLEET_LEVELS];
	struct fleet_row of; /* the numbers of all */
};

static struct sum add_up(const struct fleet *f)
{
	struct sum s = { 0 };

	for (size_t i = 0; i < f->n; i++) {
		const struct fleet_row *row = &f->rows[i];

		s.nodes[row->level]++;
		s.of.vfs += row->vfs;
		s.of.free += row->free;
		s.of.held += row->held;
		s.of.unusable += row->unusable;
		s.of.links += row->links;
		s.of.down += row->down;
		s.of.checked += row->checked;
		s.of.best += row->best;
	}
	return s;
}

static void put_findings(const struct fleet *f, struct strbuf *out)
{
	for (size_t i = 0; i < f->n_findings && i < FINDINGS; i++)
		strbuf_printf(out, "WARN: %s\n", f->findings[i].sentence);
	if (f->n_findings > FINDINGS)
		strbuf_printf(out, "and %zu more of that kind (--json has all)\n",
			      f->n_findings - FINDINGS);
}

void fleet_text(const struct fleet *f, struct strbuf *out)
{
	struct widths w = measure(f);
	struct sum s;
	bool first = true;

	for (int k = 0; k < COLUMNS; k++)
		put_cell(&w, k, columns[k].head, out);
	end_line(out);
	for (size_t i = 0; i < f->n; i++) {
		const struct fleet_row *row = &f->rows[i];
		struct cells c;

		put_cell(&w, NODE, row->node, out);
		if (row->level == FLEET_SILENT) {
			strbuf_printf(out, "  no answer: %s\n", row->error);
		} else {
			fill(row, &c);
			for (int k = NODE + 1; k < COLUMNS; k++)
				put_cell(&w, k, c.v[k], out);
			if (row->trouble)
				strbuf_printf(out, "  %s", row->trouble);
			if (row->n_trouble > 1)
				strbuf_printf(out, " (and %zu more)", row->n_trouble - 1);
			end_line(out);
		}
	}
	put_findings(f, out);
	s = add_up(f);
	strbuf_printf(out, "%zu nodes", f->n);
	for (int i = FLEET_LEVELS - 1; i >= 0; i--) {
		if (!s.nodes[i])
			continue;
		strbuf_printf(out, "%s %zu %s", first ? ":" : ",", s.nodes[i], level_names[i]);
		first = false;
	}
	strbuf_printf(out, "; %lld VFs: %lld free, %lld held, %lld unusable; %lld of %lld links up",
		      (long long)s.of.vfs, (long long)s.of.free, (long long)s.of.held,
		      (long long)s.of.unusable, (long long)(s.of.links - s.of.down),
		      (long long)s.of.links);
	if (s.of.checked)
		strbuf_printf(out, "; %lld of %lld recorded choices were the best that was free",
			      (long long)s.of.best, (long long)s.of.checked);
	strbuf_putc(out, '\n');
}

/* --- JSON --- */

static void put_row_json(const struct fleet_row *row, struct json *j)
{
	json_begin_object(j);
	json_kv_string(j, "node", row->node);
	json_kv_string(j, "error", row->error);
	json_key(j, "status");
	if (row->text)
		json_put_raw(j, row->text, row->len);
	else
		json_put_null(j);
	json_end_object(j);
}

void fleet_row_json(const struct fleet_row *row, struct strbuf *out)
{
	struct json j;

	json_init(&j, out, 2);
	put_row_json(row, &j);
	strbuf_putc(out, '\n');
}

static void json_findings(const struct fleet *f, struct json *j)
{
	json_key(j, "findings");
	json_begin_array(j);
	for (size_t i = 0; i < f->n_findings; i++) {
		json_begin_object(j);
		json_kv_string(j, "finding", f->findings[i].sentence);
		json_key(j, "nodes");
		json_begin_array(j);
		for (size_t k = 0; k < f->findings[i].n; k++)
			json_put_string(j, f->findings[i].nodes[k]);
		json_end_array(j);
		json_end_object(j);
	}
	json_end_array(j);
}

void fleet_json(const struct fleet *f, struct strbuf *out)
{
	struct json j;
	static const char *const keys[FLEET_LEVELS] = { "pass", "warn", "fail", "no_answer" };
	struct sum s;

	json_init(&j, out, 2);
	json_begin_object(&j);
	json_key(&j, "nodes");
	json_begin_array(&j);
	for (size_t i = 0; i < f->n; i++)
		put_row_json(&f->rows[i], &j);
	json_end_array(&j);
	json_key(&j, "sum");
	s = add_up(f);
	json_begin_object(&j);
	json_kv_int(&j, "nodes", (int64_t)f->n);
	for (int i = 0; i < FLEET_LEVELS; i++)
		json_kv_int(&j, keys[i], (int64_t)s.nodes[i]);
	json_kv_int(&j, "vfs", s.of.vfs);
	json_kv_int(&j, "free", s.of.free);
	json_kv_int(&j, "held", s.of.held);
	json_kv_int(&j, "unusable", s.of.unusable);
	json_kv_int(&j, "links", s.of.links);
	json_kv_int(&j, "down", s.of.down);
	json_kv_int(&j, "checked", s.of.checked);
	json_kv_int(&j, "best", s.of.best);
	json_end_object(&j);
	json_findings(f, &j);
	json_end_object(&j);
	strbuf_putc(out, '\n');
}
