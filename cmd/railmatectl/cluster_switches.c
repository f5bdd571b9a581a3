/*
 * The switches of the rails, over nodes.
 *
 * Units of a large fabric have leaf switches of their own, so rail 3 may be at many switches. What
 * a cable is compared with are the nodes that are at the same switches on more than half of the
 * other rails: most of them say where this rail belongs. A node that numbers its rails otherwise
 * has no such nodes, or only those that do so too: its switches have other rails of most nodes. Of
 * a switch that has both rails of one node nothing follows; one of a rack has all of them.
 */
#include "cluster_switches.h"

#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/mem.h"
#include "base/str.h"
#include "cluster.h"
#include "topo/rails.h"

#define CABLES_MAX 64  /* of a node */
#define LEAF_MAX   255 /* of a TLV's text, IEEE 802.1AB */
#define PARTS	   8   /* of a list of nodes */

void fabric_add(struct fabric *f, const char *node, int rail, int plane, const char *leaf)
{
	bool same = f->n && str_eq(f->v[f->n - 1].node, node);

	if (rail < 0 || rail > TOPO_RAIL_MAX || plane > TOPO_PLANE_MAX || !leaf || !*leaf ||
	    strlen(leaf) > LEAF_MAX || (same && f->of_last == CABLES_MAX))
		return;
	f->of_last = same ? f->of_last + 1 : 1;
	f->v = xgrow(f->v, &f->cap, f->n + 1, sizeof(*f->v));
	f->v[f->n++] = (struct cable) {
		.node = node, .leaf = leaf, .rail = rail, .plane = plane < 0 ? 0 : plane
	};
}

/* --- numbers for names --- */

static int cmp_place(const struct cable *x, const struct cable *y)
{
	return x->rail != y->rail ? x->rail - y->rail : x->plane - y->plane;
}

static int by_meeting(const void *a, const void *b)
{
	const struct cable *x = a, *y = b;
	int r = cmp_place(x, y);

	r = r ? r : cluster_node_cmp(x->leaf, y->leaf);
	return r ? r : cluster_node_cmp(x->node, y->node);
}

static int by_node(const void *a, const void *b)
{
	const struct cable *x = a, *y = b;
	int r = cluster_node_cmp(x->node, y->node);

	return r ? r : by_meeting(x, y);
}

/* Cables by their nodes, each once, and by their meetings. */
struct maps {
	struct cable *v;
	size_t n, n_nodes, n_meetings;
	size_t *node;		/* of each node its first cable in v, and n */
	struct cable **meeting; /* all, in the order of the meetings */
	size_t *first;		/* of each meeting its first in `meeting`, and n */
	unsigned *shared;	/* of each node: how often it meets the one that is looked at */
	unsigned *votes;	/* of each meeting */
};

static void number_meetings(struct fabric *f)
{
	size_t kept = 0;

	qsort(f->v, f->n, sizeof(*f->v), by_meeting);
	for (size_t i = 0; i < f->n; i++) {
		struct cable *c = &f->v[i], *last = kept ? &f->v[kept - 1] : NULL;

		if (last && by_meeting(last, c) == 0)
			continue;
		c->place = last ? last->place + (cmp_place(last, c) != 0) : 0;
		c->meeting = last ? last->meeting + (c->place != last->place ||
						     strcmp(last->leaf, c->leaf) != 0)
				  : 0;
		c->wanted = c->meeting;
		c->is_stray = false;
		f->v[kept++] = *c;
	}
	f->n = kept;
}

static int by_number_of_meeting(const void *a, const void *b)
{
	const struct cable *const *x = a, *const *y = b;

	if ((*x)->meeting != (*y)->meeting)
		return (*x)->meeting < (*y)->meeting ? -1 : 1;
	return ((*x)->of > (*y)->of) - ((*x)->of < (*y)->of);
}

static struct maps make_maps(struct fabric *f, struct arena *a)
{
	struct maps m = { 0 };

	number_meetings(f);
	m.n_meetings = f->v[f->n - 1].meeting + 1;
	qsort(f->v, f->n, sizeof(*f->v), by_node);
	m.v = f->v;
	m.n = f->n;
	m.node = arena_array(a, f->n + 1, sizeof(*m.node));
	m.meeting = arena_array(a, f->n, sizeof(*m.meeting));
	m.first = arena_array(a, m.n_meetings + 1, sizeof(*m.first));
	m.votes = arena_array(a, m.n_meetings, sizeof(*m.votes));
	for (size_t i = 0; i < f->n; i++) {
		if (i == 0 || strcmp(f->v[i].node, f->v[i - 1].node) != 0)
			m.node[m.n_nodes++] = i;
		f->v[i].of = m.n_nodes - 1;
		m.meeting[i] = &f->v[i];
	}
	m.node[m.n_nodes] = f->n;
	m.shared = arena_array(a, m.n_nodes, sizeof(*m.shared));
	qsort(m.meeting, f->n, sizeof(*m.meeting), by_number_of_meeting);
	for (size_t i = 0; i < f->n; i++)
		m.first[m.meeting[i]->meeting + 1] = i + 1;
	return m;
}

static size_t nodes_at(const struct maps *m, size_t meeting)
{
	return m->first[meeting + 1] - m->first[meeting];
}

/* --- a cable that is not where the node's others are --- */

static void count_shared(const struct maps *m, size_t node)
{
	memset(m->shared, 0, m->n_nodes * sizeof(*m->shared));
	for (size_t i = m->node[node]; i < m->node[node + 1]; i++) {
		size_t meeting = m->v[i].meeting;

		for (size_t k = m->first[meeting]; k < m->first[meeting + 1]; k++)
			m->shared[m->meeting[k]->of]++;
	}
}

/* Where the cables of that place are, of a node that is nearly everywhere where c's node is. */
static bool vote(const struct maps *m, const struct cable *c, size_t other, size_t n_others)
{
	size_t shared = m->shared[other], n = 0;

	if (2 * shared <= n_others)
		return false;
	for (size_t i = m->node[other]; i < m->node[other + 1]; i++)
		shared -= m->v[i].meeting == c->meeting;
	if (2 * shared <= n_others)
		return false;
	for (size_t i = m->node[other]; i < m->node[other + 1]; i++) {
		if (m->v[i].place != c->place)
			continue;
		m->votes[m->v[i].meeting]++;
		n++;
	}
	return n > 0;
}

static void find_wanted(const struct maps *m, struct cable *c)
{
	size_t n_others = m->node[c->of + 1] - m->node[c->of] - 1, voters = 0, best = c->meeting;
	size_t begin = c->meeting, end = c->meeting + 1;

	/* Meetings of one place follow each other. */
	while (begin > 0 && m->meeting[m->first[begin - 1]]->place == c->place)
		begin--;
	while (end < m->n_meetings && m->meeting[m->first[end]]->place == c->place)
		end++;
	if (end - begin == 1)
		return;
	memset(m->votes + begin, 0, (end - begin) * sizeof(*m->votes));
	for (size_t other = 0; other < m->n_nodes; other++) {
		if (other != c->of)
			voters += vote(m, c, other, n_others);
	}
	for (size_t i = begin; i < end; i++) {
		if (m->votes[i] > m->votes[best])
			best = i;
	}
	if (2 * m->votes[best] > voters && 2 * m->votes[c->meeting] < voters)
		c->wanted = best;
}

/* Two nodes with each other's switch are one swap: reported once. */
static void drop_one_of_two(const struct maps *m)
{
	for (size_t i = 0; i < m->n; i++) {
		struct cable *c = &m->v[i];

		if (c->wanted <= c->meeting)
			continue;
		for (size_t k = m->first[c->wanted]; k < m->first[c->wanted + 1]; k++) {
			if (m->meeting[k]->wanted == c->meeting) {
				c->wanted = c->meeting;
				break;
			}
		}
	}
}

/* --- a switch that has other rails --- */

static int by_leaf(const void *a, const void *b)
{
	const struct cable *const *x = a, *const *y = b;
	int r = strcmp((*x)->leaf, (*y)->leaf);

	return r ? r : by_number_of_meeting(a, b);
}

static bool is_any_of_both(struct cable *const *x, size_t n, struct cable *const *y, size_t k)
{
	for (size_t i = 0, at = 0; i < n; i++) {
		while (at < k && y[at]->of < x[i]->of)
			at++;
		if (at < k && y[at]->of == x[i]->of)
			return true;
	}
	return false;
}

/* Strays, as their switch sees it: *ret is the meeting of most nodes at each cable's switch. */
static void find_strays(const struct maps *m, size_t *most, struct arena *a)
{
	struct cable **v = arena_array(a, m->n, sizeof(*v));

	for (size_t i = 0; i < m->n; i++)
		v[i] = &m->v[i];
	qsort(v, m->n, sizeof(*v), by_leaf);
	for (size_t i = 0, end; i < m->n; i = end) {
		size_t best = i;

		for (end = i; end < m->n && !strcmp(v[end]->leaf, v[i]->leaf);
		     end += nodes_at(m, v[end]->meeting)) {
			if (nodes_at(m, v[end]->meeting) > nodes_at(m, v[best]->meeting))
				best = end;
		}
		for (size_t k = i, n; k < end; k += n) {
			bool stray;

			n = nodes_at(m, v[k]->meeting);
			stray = k != best &&
				!is_any_of_both(&v[k], n, &v[best], nodes_at(m, v[best]->meeting));
			most[v[k]->meeting] = v[best]->meeting;
			for (size_t at = k; at < k + n; at++)
				v[at]->is_stray = stray;
		}
	}
}

/* Of a node with few of them the others are right, and say more of it. */
static void keep_strays_of_whole_nodes(const struct maps *m)
{
	for (size_t node = 0; node < m->n_nodes; node++) {
		size_t n = 0, all = m->node[node + 1] - m->node[node];

		for (size_t i = m->node[node]; i < m->node[node + 1]; i++)
			n += m->v[i].is_stray;
		for (size_t i = m->node[node]; i < m->node[node + 1]; i++)
			m->v[i].is_stray &= 2 * n >= all && m->v[i].wanted == m->v[i].meeting;
	}
}

/* --- sentences --- */

struct said {
	struct fabric_finding *v;
	size_t n, cap;
	bool planes; /* there are some */
};

static void put_rail(const struct said *s, const struct cable *c, struct strbuf *out)
{
	strbuf_printf(out, "rail %d", c->rail);
	if (s->planes)
		strbuf_printf(out, ", plane %d,", c->plane);
}

/* "30 nodes", or the one. */
static void put_others(const struct maps *m, size_t meeting, struct strbuf *out)
{
	size_t n = nodes_at(m, meeting);

	if (n > 1)
		strbuf_printf(out, "%zu nodes", n);
	else
		strbuf_puts(out, m->meeting[m->first[meeting]]->node);
}

static int by_wanted(const void *a, const void *b)
{
	const struct cable *const *x = a, *const *y = b;

	if ((*x)->wanted != (*y)->wanted)
		return (*x)->wanted < (*y)->wanted ? -1 : 1;
	return by_number_of_meeting(a, b);
}

static int by_name(const void *a, const void *b)
{
	return cluster_node_cmp(*(const char *const *)a, *(const char *const *)b);
}

static const char **names_of(struct cable *const *v, size_t n, struct arena *a)
{
	const char **names = arena_array(a, n, sizeof(*names));

	for (size_t i = 0; i < n; i++)
		names[i] = v[i]->node;
	qsort(names, n, sizeof(*names), by_name);
	return names;
}

static void say(struct said *s, const struct strbuf *text, struct cable *const *v, size_t n,
		struct arena *a)
{
	s->v = xgrow(s->v, &s->cap, s->n + 1, sizeof(*s->v));
	s->v[s->n++] =
		(struct fabric_finding) { arena_strdup(a, strbuf_str(text)), names_of(v, n, a), n };
}

/* "rail 3 is at leaf-4 on 30 nodes, at leaf-5 on gpu-17" */
static void say_wanted(const struct maps *m, struct said *s, struct cable **odd, size_t n,
		       struct arena *a)
{
	qsort(odd, n, sizeof(*odd), by_wanted);
	for (size_t i = 0, end; i < n; i = end) {
		const struct cable *right = m->meeting[m->first[odd[i]->wanted]];
		_cleanup_strbuf_ struct strbuf text = STRBUF_INIT;

		put_rail(s, right, &text);
		strbuf_printf(&text, " is at %s on ", right->leaf);
		put_others(m, right->meeting, &text);
		for (end = i; end < n && odd[end]->wanted == odd[i]->wanted;) {
			size_t at = end;

			while (end < n && odd[end]->wanted == odd[i]->wanted &&
			       odd[end]->meeting == odd[at]->meeting)
				end++;
			strbuf_printf(&text, ", at %s on ", odd[at]->leaf);
			cluster_put_nodes(names_of(odd + at, end - at, a), end - at, PARTS, &text);
		}
		say(s, &text, odd + i, end - i, a);
	}
}

/* "leaf-5 has rail 4 of 30 nodes, rail 3 of gpu-17" */
static void say_strays(const struct maps *m, struct said *s, struct cable **odd, size_t n,
		       const size_t *most, struct arena *a)
{
	qsort(odd, n, sizeof(*odd), by_number_of_meeting);
	for (size_t i = 0, end; i < n; i = end) {
		const struct cable *right = m->meeting[m->first[most[odd[i]->meeting]]];
		_cleanup_strbuf_ struct strbuf text = STRBUF_INIT;

		for (end = i; end < n && odd[end]->meeting == odd[i]->meeting; end++)
			;
		strbuf_printf(&text, "%s has ", right->leaf);
		put_rail(s, right, &text);
		strbuf_puts(&text, " of ");
		put_others(m, right->meeting, &text);
		strbuf_puts(&text, ", ");
		put_rail(s, odd[i], &text);
		strbuf_puts(&text, " of ");
		cluster_put_nodes(names_of(odd + i, end - i, a), end - i, PARTS, &text);
		say(s, &text, odd + i, end - i, a);
	}
}

static int most_nodes_first(const void *a, const void *b)
{
	const struct fabric_finding *x = a, *y = b;

	if (x->n != y->n)
		return x->n > y->n ? -1 : 1;
	return cluster_node_cmp(x->sentence, y->sentence);
}

static size_t say_all(const struct maps *m, const size_t *most, struct arena *a,
		      struct fabric_finding **ret)
{
	struct cable **wanted = arena_array(a, m->n, sizeof(*wanted));
	struct cable **strays = arena_array(a, m->n, sizeof(*strays));
	size_t n_wanted = 0, n_strays = 0;
	struct said s = { 0 };

	for (size_t i = 0; i < m->n; i++) {
		s.planes |= m->v[i].plane > 0;
		if (m->v[i].wanted != m->v[i].meeting)
			wanted[n_wanted++] = &m->v[i];
		if (m->v[i].is_stray)
			strays[n_strays++] = &m->v[i];
	}
	say_wanted(m, &s, wanted, n_wanted, a);
	say_strays(m, &s, strays, n_strays, most, a);
	if (s.n)
		qsort(s.v, s.n, sizeof(*s.v), most_nodes_first);
	*ret = arena_copy(a, s.v, s.n * sizeof(*s.v));
	free(s.v);
	return s.n;
}

size_t fabric_judge(struct fabric *f, struct arena *a, struct fabric_finding **ret)
{
	struct maps m;
	size_t *most;

	*ret = NULL;
	if (!f->n)
		return 0;
	m = make_maps(f, a);
	most = arena_array(a, m.n_meetings, sizeof(*most));
	for (size_t node = 0; node < m.n_nodes; node++) {
		count_shared(&m, node);
		for (size_t i = m.node[node]; i < m.node[node + 1]; i++)
			find_wanted(&m, &m.v[i]);
	}
	drop_one_of_two(&m);
	find_strays(&m, most, a);
	keep_strays_of_whole_nodes(&m);
	return say_all(&m, most, a, ret);
}
