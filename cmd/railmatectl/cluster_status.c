/* railmatectl cluster status: a line a node, the worst first. Whatever a node says becomes a row;
 * one without an answer becomes a row that says why. */
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/err.h"
#include "base/json.h"
#include "base/mem.h"
#include "base/str.h"
#include "cluster.h"
#include "document/document.h"
#include "pools.h"
#include "topo/rails.h"

#define CABLES_MAX 64  /* of a node */
#define LEAF_MAX   255 /* of a TLV's text, IEEE 802.1AB */

enum level { PASS, WARN, FAIL, SILENT, LEVELS };

static const char *const level_names[LEVELS] = { "PASS", "WARN", "FAIL", "no answer" };

/* UNUSABLE: draining, in use by no container, unhealthy. */
enum count { VFS, FREE, HELD, UNUSABLE, LINKS, DOWN, CHECKED, BEST, COUNTS };

struct cable {
	int rail, plane;  /* plane -1: the only one */
	const char *leaf; /* the name of the switch */
};

struct row {
	const char *node;
	enum level level;
	const char *error; /* SILENT: why there is no answer, a sentence without a full stop */
	const char *text;  /* the answer, JSON */
	size_t len;
	const char *version, *doctor, *trouble; /* trouble: the first of them; NULL: not known */
	size_t n_trouble;
	int64_t count[COUNTS];
	struct cable *cables; /* by rail, plane and switch */
	size_t n_cables;
};

/* Cables of a rail that are elsewhere than on most nodes like these. */
struct stray {
	const struct cable *usual, *cable; /* of most, and of these nodes */
	size_t n_usual;			   /* nodes */
	const char **nodes;
	size_t n;
};

struct fleet {
	struct arena *arena;
	struct row *rows; /* the worst first */
	size_t n;
	struct stray *strays; /* any is a WARN */
	size_t n_strays;
	int64_t nodes[LEVELS], count[COUNTS]; /* of all */
};

/* --- answers → rows --- */

/* A number of things; what makes no sense is none. */
static int64_t count_of(const struct item *object, const char *key)
{
	int64_t n = item_number(object, key, 0);

	return n >= 0 && n < 1 << 24 ? n : 0;
}

/* As wide as a column may be; NULL stays NULL. */
static const char *word(const char *text, struct arena *a)
{
	char *s = text ? arena_printf(a, "%.20s", text) : NULL;

	if (s)
		str_printable(s, strlen(s), "");
	return s;
}

static void add_trouble(struct row *row, const char *sentence, struct arena *a)
{
	if (sentence && !row->n_trouble++)
		row->trouble = cluster_own(sentence, a);
}

static int by_place(const void *a, const void *b)
{
	const struct cable *x = a, *y = b;

	return x->rail != y->rail ? x->rail - y->rail : x->plane - y->plane;
}

static int by_cable(const void *a, const void *b)
{
	int r = by_place(a, b);

	return r ? r : strcmp(((const struct cable *)a)->leaf, ((const struct cable *)b)->leaf);
}

static void add_cable(struct row *row, const struct item *link, struct arena *a)
{
	int64_t rail = item_number(link, "rail", -1), plane = item_number(link, "plane", -1);
	const char *leaf = cluster_own(item_string(link, "switch"), a);

	if (leaf && *leaf && strlen(leaf) <= LEAF_MAX && row->n_cables < CABLES_MAX && rail >= 0 &&
	    rail <= TOPO_RAIL_MAX && plane <= TOPO_PLANE_MAX)
		row->cables[row->n_cables++] =
			(struct cable) { (int)rail, plane < 0 ? -1 : (int)plane, leaf };
}

static void read_counts(struct row *row, const struct item *top, struct arena *a)
{
	static const struct {
		const char *key;
		enum count in;
	} of_pool[] = {
		{ "vfs", VFS },		  { "free", FREE },	  { "held", HELD },
		{ "allocated", HELD },	  { "leaving", HELD },	  { "retired", HELD },
		{ "draining", UNUSABLE }, { "in_use", UNUSABLE }, { "unhealthy", UNUSABLE },
	};
	const struct item *pools = pools_list(top, "pools"), *links = pools_list(top, "links");
	int64_t *n = row->count;

	for (size_t i = 0; i < pools->n_kids; i++) {
		for (size_t k = 0; k < ARRAY_LEN(of_pool); k++)
			n[of_pool[k].in] += count_of(&pools->kids[i], of_pool[k].key);
	}
	row->cables = arena_array(a, CABLES_MAX, sizeof(*row->cables));
	for (size_t i = 0; i < links->n_kids; i++) {
		const struct item *down = item_get(&links->kids[i], "down");

		n[LINKS]++;
		n[DOWN] += down && down->type == ITEM_BOOL && down->boolean;
		add_cable(row, &links->kids[i], a);
	}
	qsort(row->cables, row->n_cables, sizeof(*row->cables), by_cable);
	n[CHECKED] = count_of(item_get(top, "placement"), "checked");
	n[BEST] = count_of(item_get(top, "placement"), "best");
	n[BEST] = n[BEST] < n[CHECKED] ? n[BEST] : n[CHECKED];
}

static void read_row(const struct cluster *c, size_t i, struct arena *a, struct row *row)
{
	_cleanup_arena_ struct arena *tree = arena_new(16384);
	struct err err = { 0 };
	const struct item *top = cluster_answer(c, i, tree, &err), *trouble;

	row->node = cluster_own(c->pods[i].node, a);
	while (top && row->level < SILENT &&
	       !str_eq(item_string(top, "verdict"), level_names[row->level]))
		row->level++;
	if (!top || row->level == SILENT) {
		row->level = SILENT;
		row->error = top ? "its answer is not that of railmatectl status"
				 : arena_strdup(a, err.msg);
		return;
	}
	row->text = top->text;
	row->len = top->text_len;
	row->version = word(item_string(top, "railmated"), a);
	row->doctor = word(item_string(item_get(top, "doctor"), "verdict"), a);
	read_counts(row, top, a);
	trouble = pools_list(top, "trouble");
	for (size_t k = 0; k < trouble->n_kids; k++)
		add_trouble(row, trouble->kids[k].string, a);
	add_trouble(row, c->pods[i].beside, a);
	if (c->pods[i].beside && row->level == PASS)
		row->level = WARN;
}

static int worst_first(const void *a, const void *b)
{
	const struct row *x = a, *y = b;
	int64_t r = (int64_t)y->level - (int64_t)x->level;

	r = r ? r : y->count[DOWN] - x->count[DOWN];
	r = r ? r : y->count[UNUSABLE] - x->count[UNUSABLE];
	return r ? (r > 0) - (r < 0) : cluster_node_cmp(x->node, y->node);
}

/*
 * --- cables ---
 *
 * NCCL connects rail n of all nodes, so those should lead to one switch. Units of a large fabric
 * have leaf switches of their own, so rail 3 may be at many. So the nodes of a unit vote, rail by
 * rail: those that have half of a node's switches, at whatever rails. A node that has several rails
 * at a switch, as in a rack, has no vote. Nodes whose cables are all alike are one kind.
 */

struct kind {
	struct row **rows;
	size_t n;
	bool votes;
};

struct vote {
	const struct cable *cable;
	size_t n; /* nodes */
};

static int cmp_cables(const struct row *x, const struct row *y)
{
	for (size_t i = 0; i < x->n_cables && i < y->n_cables; i++) {
		int r = by_cable(&x->cables[i], &y->cables[i]);

		if (r)
			return r;
	}
	return (int)x->n_cables - (int)y->n_cables;
}

static int by_cables(const void *a, const void *b)
{
	const struct row *x = *(struct row *const *)a, *y = *(struct row *const *)b;
	int r = cmp_cables(x, y);

	return r ? r : cluster_node_cmp(x->node, y->node);
}

static size_t n_at(const struct row *row, const char *leaf)
{
	size_t n = 0;

	for (size_t i = 0; i < row->n_cables; i++)
		n += !strcmp(row->cables[i].leaf, leaf);
	return n;
}

static bool may_vote(const struct row *row)
{
	for (size_t i = 0; i < row->n_cables; i++) {
		if (n_at(row, row->cables[i].leaf) > 1)
			return false;
	}
	return true;
}

static bool is_of_its_unit(const struct kind *voter, const struct row *row)
{
	size_t shared = 0;

	for (size_t i = 0; voter->votes && i < row->n_cables; i++)
		shared += n_at(voter->rows[0], row->cables[i].leaf) > 0;
	return shared && 2 * shared >= row->n_cables;
}

/* The cable of most voters at the place of c; of two with as many, that of the first voter. */
static struct vote elect(const struct cable *c, const struct kind **voters, size_t n_voters,
			 struct vote *votes)
{
	struct vote best = { c, 0 };
	size_t n = 0;

	for (size_t v = 0, i = 0; v < n_voters; v++, i = 0) {
		const struct row *row = voters[v]->rows[0];
		const struct cable *at =
			bsearch(c, row->cables, row->n_cables, sizeof(*c), by_cable);

		if (!at)
			at = bsearch(c, row->cables, row->n_cables, sizeof(*c), by_place);
		while (at && i < n && by_cable(votes[i].cable, at) != 0)
			i++;
		if (at && i == n)
			votes[n++] = (struct vote) { at, 0 };
		if (at)
			votes[i].n += voters[v]->n;
	}
	for (size_t i = 0; i < n; i++)
		best = votes[i].n > best.n ? votes[i] : best;
	return best;
}

static void add_stray(struct fleet *f, const struct kind *k, const struct cable *cable,
		      struct vote most)
{
	struct stray *s = &f->strays[f->n_strays++];

	*s = (struct stray) { most.cable, cable, most.n,
			      arena_array(f->arena, k->n, sizeof(*s->nodes)), k->n };
	for (size_t i = 0; i < k->n; i++)
		s->nodes[i] = k->rows[i]->node;
}

static void compare_cables(struct fleet *f)
{
	struct row **rows = arena_array(f->arena, f->n, sizeof(*rows));
	struct kind *kinds = arena_array(f->arena, f->n, sizeof(*kinds));
	const struct kind **voters = arena_array(f->arena, f->n, sizeof(*voters));
	struct vote *votes = arena_array(f->arena, f->n, sizeof(*votes));
	size_t n = 0;

	for (size_t i = 0; i < f->n; i++)
		rows[i] = &f->rows[i];
	qsort(rows, f->n, sizeof(*rows), by_cables);
	for (size_t i = 0; i < f->n; i++) {
		if (!i || cmp_cables(rows[i - 1], rows[i]) != 0)
			kinds[n++] = (struct kind) { &rows[i], 0, may_vote(rows[i]) };
		kinds[n - 1].n++;
	}
	f->strays = arena_array(f->arena, n * CABLES_MAX, sizeof(*f->strays));
	for (size_t i = 0; i < n; i++) {
		const struct row *row = kinds[i].rows[0];
		size_t n_voters = 0;

		for (size_t k = 0; k < n; k++) {
			if (k == i || is_of_its_unit(&kinds[k], row))
				voters[n_voters++] = &kinds[k];
		}
		for (size_t c = 0; c < row->n_cables; c++) {
			struct vote most = elect(&row->cables[c], voters, n_voters, votes);

			if (by_cable(most.cable, &row->cables[c]) != 0)
				add_stray(f, &kinds[i], &row->cables[c], most);
		}
	}
}

/* --- text --- */

#define COLUMNS 10

/* A NULL ends it. The last cell may be as long as it likes. */
struct line {
	const char *cell[COLUMNS + 1];
};

/* right: a bit for each column that has numbers. */
static void put_table(const struct line *v, size_t n, unsigned right, struct strbuf *out)
{
	int width[COLUMNS] = { 0 };

	for (size_t i = 0; i < n; i++) {
		for (int k = 0; v[i].cell[k] && v[i].cell[k + 1]; k++) {
			int len = (int)strlen(v[i].cell[k]);

			width[k] = len > width[k] ? len : width[k];
		}
	}
	for (size_t i = 0; i < n; i++) {
		for (int k = 0; v[i].cell[k]; k++) {
			int w = v[i].cell[k + 1] ? width[k] : 0;

			strbuf_printf(out, "%s%*s", k ? "  " : "", right >> k & 1 ? w : -w,
				      v[i].cell[k]);
		}
		strbuf_putc(out, '\n');
	}
}

static struct line line_of(const struct row *row, struct arena *a)
{
	const int64_t *n = row->count;
	struct line line = { { row->node } };

	if (row->level == SILENT) {
		line.cell[1] = arena_printf(a, "no answer: %s", row->error);
		return line;
	}
	line.cell[1] = level_names[row->level];
	line.cell[2] = row->version ? row->version : "-";
	for (int k = FREE; k <= UNUSABLE; k++)
		line.cell[2 + k] = arena_printf(a, "%lld", (long long)n[k]);
	line.cell[6] =
		arena_printf(a, "%lld/%lld", (long long)(n[LINKS] - n[DOWN]), (long long)n[LINKS]);
	line.cell[7] = n[CHECKED]
			       ? arena_printf(a, "%lld %%", (long long)(n[BEST] * 100 / n[CHECKED]))
			       : "-";
	line.cell[8] = row->doctor ? row->doctor : "-";
	line.cell[9] = row->n_trouble > 1 ? arena_printf(a, "%s (and %zu more)", row->trouble,
							 row->n_trouble - 1)
					  : row->trouble;
	return line;
}

static void put_strays(const struct fleet *f, struct strbuf *out)
{
	struct line *lines = arena_array(f->arena, f->n_strays + 1, sizeof(*lines));

	lines[0] = (struct line) { { "RAIL", "SWITCH", "OF", "BUT AT", "NODES" } };
	for (size_t i = 0; i < f->n_strays; i++) {
		const struct stray *s = &f->strays[i];
		_cleanup_strbuf_ struct strbuf nodes = STRBUF_INIT;

		cluster_put_nodes(s->nodes, s->n, &nodes);
		lines[i + 1] = (struct line) {
			{ arena_printf(f->arena, s->cable->plane < 0 ? "%d" : "%d, plane %d",
				       s->cable->rail, s->cable->plane),
			  s->usual->leaf, arena_printf(f->arena, "%zu", s->n_usual), s->cable->leaf,
			  arena_strdup(f->arena, strbuf_str(&nodes)) }
		};
	}
	strbuf_puts(out, "WARN: cables that do not lead where those of the other nodes do\n");
	put_table(lines, f->n_strays + 1, 1 << 2, out);
}

static void put_text(const struct fleet *f, struct strbuf *out)
{
	struct line *lines = arena_array(f->arena, f->n + 1, sizeof(*lines));
	const char *before = ": ";
	const int64_t *n = f->count;

	lines[0] = (struct line) { { "NODE", "VERDICT", "VERSION", "FREE", "HELD", "UNUSABLE",
				     "LINKS", "BEST", "DOCTOR" } };
	for (size_t i = 0; i < f->n; i++)
		lines[i + 1] = line_of(&f->rows[i], f->arena);
	put_table(lines, f->n + 1, 0xf8, out);
	if (f->n_strays)
		put_strays(f, out);
	strbuf_printf(out, "%zu nodes", f->n);
	for (int i = LEVELS - 1; i >= 0; i--) {
		if (!f->nodes[i])
			continue;
		strbuf_printf(out, "%s%lld %s", before, (long long)f->nodes[i], level_names[i]);
		before = ", ";
	}
	strbuf_printf(out, "; %lld VFs: %lld free, %lld held, %lld unusable; %lld of %lld links up",
		      (long long)n[VFS], (long long)n[FREE], (long long)n[HELD],
		      (long long)n[UNUSABLE], (long long)(n[LINKS] - n[DOWN]), (long long)n[LINKS]);
	if (n[CHECKED])
		strbuf_printf(out, "; %lld of %lld recorded choices were the best that was free",
			      (long long)n[BEST], (long long)n[CHECKED]);
	strbuf_putc(out, '\n');
}

/* --- JSON --- */

static void json_row(const struct row *row, struct json *j)
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

static void json_stray(const struct stray *s, struct json *j)
{
	json_begin_object(j);
	json_kv_int(j, "rail", s->cable->rail);
	json_kv_int_if(j, "plane", s->cable->plane, s->cable->plane >= 0);
	json_kv_string(j, "switch", s->usual->leaf);
	json_kv_int(j, "of", (int64_t)s->n_usual);
	json_kv_string(j, "but_at", s->cable->leaf);
	json_kv_strings(j, "nodes", s->nodes, s->n);
	json_end_object(j);
}

static void put_json(const struct fleet *f, struct strbuf *out)
{
	static const char *const levels[LEVELS] = { "pass", "warn", "fail", "no_answer" };
	static const char *const counts[COUNTS] = { "vfs",   "free", "held",	"unusable",
						    "links", "down", "checked", "best" };
	struct json j;

	json_init(&j, out, 2);
	json_begin_object(&j);
	json_kv_array(&j, "nodes");
	for (size_t i = 0; i < f->n; i++)
		json_row(&f->rows[i], &j);
	json_end_array(&j);
	json_kv_object(&j, "sum");
	json_kv_int(&j, "nodes", (int64_t)f->n);
	for (int i = 0; i < LEVELS; i++)
		json_kv_int(&j, levels[i], f->nodes[i]);
	for (int i = 0; i < COUNTS; i++)
		json_kv_int(&j, counts[i], f->count[i]);
	json_end_object(&j);
	json_kv_array(&j, "cables");
	for (size_t i = 0; i < f->n_strays; i++)
		json_stray(&f->strays[i], &j);
	json_end_array(&j);
	json_end_object(&j);
	strbuf_putc(out, '\n');
}

int cluster_merge_status(const struct cluster *c, struct strbuf *out)
{
	static const int codes[LEVELS] = { EXIT_DONE, 5, 6, 6 };
	_cleanup_arena_ struct arena *a = arena_new(64 * 1024);
	struct fleet f = { .arena = a, .n = c->n, .rows = arena_array(a, c->n, sizeof(*f.rows)) };
	enum level worst;

	for (size_t i = 0; i < f.n; i++) {
		read_row(c, i, a, &f.rows[i]);
		f.nodes[f.rows[i].level]++;
		for (int k = 0; k < COUNTS; k++)
			f.count[k] += f.rows[i].count[k];
	}
	qsort(f.rows, f.n, sizeof(*f.rows), worst_first);
	compare_cables(&f);
	(c->json ? put_json : put_text)(&f, out);
	worst = f.rows[0].level;
	return codes[worst == PASS && f.n_strays ? WARN : worst];
}
