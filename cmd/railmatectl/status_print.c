/* railmatectl status: the verdict, and how it is printed. */
#include "base/arena.h"
#include "base/json.h"
#include "base/mem.h"
#include "base/str.h"
#include "diagnosis/diagnosis.h"
#include "document/document.h"
#include "holds/holds.h"
#include "hw/inventory.h"
#include "pool/node.h"
#include "pools.h"
#include "railmatectl.h"
#include "status.h"

#define BEST_PERCENT 95 /* fewer best choices are a trouble */

const char *const status_verdicts[] = { "PASS", "WARN", "FAIL" };

static bool is_true(const struct item *link, const char *key)
{
	const struct item *value = item_get(link, key);

	return value && value->type == ITEM_BOOL && value->boolean;
}

/* NULL: i is past the last one. */
static const struct item *link_at(const struct status *s, size_t i)
{
	return s->links && i < s->links->n_kids ? &s->links->kids[i] : NULL;
}

/* --- verdict --- */

static void trouble(struct status *s, enum status_verdict v, const char *sentence)
{
	s->trouble[s->n_trouble++] = sentence;
	if (v > s->verdict)
		s->verdict = v;
}

/* "0000:18:00.0 mlx5_0 port 1 (ens1f0)", without absent parts */
static const char *link_name(const struct status *s, const struct item *link)
{
	const char *pf = item_string(link, "pf"), *rdma = item_string(link, "rdma");
	const char *netdev = item_string(link, "netdev"), *port = "";

	for (size_t i = 0; rdma && link_at(s, i); i++) {
		if (link_at(s, i) != link && str_eq(item_string(link_at(s, i), "rdma"), rdma))
			port = arena_printf(s->arena, " port %lld",
					    (long long)item_number(link, "port", 1));
	}
	return arena_printf(s->arena, "%s%s%s%s%s%s%s", pf ? pf : "", rdma ? " " : "",
			    rdma ? rdma : "", port, netdev ? " (" : "", netdev ? netdev : "",
			    netdev ? ")" : "");
}

/* with: the object whose pods are named; NULL: none are */
static void link_trouble(struct status *s, const struct item *link, const char *what,
			 const struct item *with)
{
	_cleanup_strbuf_ struct strbuf text = STRBUF_INIT;

	if (!what)
		return;
	strbuf_printf(&text, "link %s %s", link_name(s, link), what);
	if (with) {
		strbuf_puts(&text, "; ");
		pools_put_pods(with, &text);
	}
	trouble(s, STATUS_WARN, arena_strdup(s->arena, text.s));
}

/* In the words of /readyz. */
static void add_condition(struct status *s, const struct item *condition)
{
	const char *what = item_string(condition, "what");
	const char *problem = item_string(condition, "problem");
	const struct item *serves = item_get(condition, "serves");

	if (what && problem)
		trouble(s, serves && serves->boolean ? STATUS_WARN : STATUS_FAIL,
			arena_printf(s->arena, "%s: %s", what, problem));
}

void status_judge(struct status *s)
{
	const struct status_placement *p = &s->placement;

	size_t n_conditions = s->conditions ? s->conditions->n_kids : 0;
	size_t n_links = s->links ? s->links->n_kids : 0;

	s->trouble = arena_array(s->arena, 2 * (s->n_all + n_links) + n_conditions + 8,
				 sizeof(*s->trouble));
	if (s->silent)
		trouble(s, STATUS_FAIL, s->silent);
	for (size_t i = 0; i < n_conditions; i++)
		add_condition(s, &s->conditions->kids[i]);
	for (size_t i = 0; i < n_links; i++) {
		const struct item *link = &s->links->kids[i], *ill = item_get(link, "degraded");

		link_trouble(s, link, item_string(link, "wrong"),
			     is_true(link, "missing") ? link : NULL);
		link_trouble(s, link, item_string(ill, "why"), ill);
	}
	for (size_t i = 0; i < s->n_all; i++) {
		const struct pool_status *pool = &s->pools[i];
		const char *unit = i < s->n_pools ? "VF" : "HCA";
		size_t n = pool->unhealthy;

		if (!pool->vfs)
			trouble(s, STATUS_WARN,
				arena_printf(s->arena, "pool %s has no %s", pool->resource, unit));
		if (n)
			trouble(s, n == pool->vfs ? STATUS_FAIL : STATUS_WARN,
				arena_printf(s->arena, "%zu of %zu %ss of %s are unhealthy: %s", n,
					     pool->vfs, unit, pool->resource,
					     pool->why ? pool->why : "no reason given"));
	}
	if (s->n_unknown_slots)
		trouble(s, STATUS_WARN,
			arena_printf(s->arena, "the VF of %zu slots is not known",
				     s->n_unknown_slots));
	if (p->best * 100 < p->checked * BEST_PERCENT)
		trouble(s, STATUS_WARN,
			arena_printf(s->arena,
				     "%zu of %zu choices of VFs were not the best that was free",
				     p->checked - p->best, p->checked));
	if (s->doctor) {
		static const enum status_verdict verdicts[DIAGNOSIS_VERDICT_MAX] = {
			[DIAGNOSIS_WARN] = STATUS_WARN,
			[DIAGNOSIS_FAIL] = STATUS_FAIL,
		};
		enum status_verdict v = verdicts[diagnosis_worst(s->doctor)];

		/* Doctor's own line names the checks. */
		s->verdict = v > s->verdict ? v : s->verdict;
	}
}

/* --- text --- */

/* "links: 8, 7 at 400 Gb/s, 1 down" */
static void put_links(const struct status *s, struct strbuf *out)
{
	size_t n = s->links ? s->links->n_kids : 0, at_rate = 0, down = 0;
	int most = 0;

	for (size_t i = 0; i < n; i++) {
		const struct item *link = &s->links->kids[i];
		int rate = is_true(link, "down") ? 0 : (int)item_number(link, "rate_mbps", 0);

		down += is_true(link, "down");
		at_rate = rate > most ? 0 : at_rate;
		most = rate > most ? rate : most;
		at_rate += rate && rate == most;
	}
	strbuf_printf(out, "links: %zu", n);
	if (at_rate) {
		strbuf_printf(out, ", %zu at ", at_rate);
		hw_put_rate(most, out);
	}
	if (down)
		strbuf_printf(out, ", %zu down", down);
	strbuf_putc(out, '\n');
}

static void put_doctor(const struct status *s, struct strbuf *out)
{
	static const enum diagnosis_verdict order[] = { DIAGNOSIS_FAIL, DIAGNOSIS_WARN,
							DIAGNOSIS_UNKNOWN };

	bool first = true;

	strbuf_puts(out, "doctor: ");
	for (size_t i = 0; i < ARRAY_LEN(order); i++) {
		const struct diagnosis_check *last = NULL;

		for (size_t k = 0; k < diagnosis_n(s->doctor); k++) {
			const struct diagnosis_finding *f = diagnosis_at(s->doctor, k);

			if (f->verdict != order[i] || f->check == last)
				continue;
			if (last)
				strbuf_printf(out, ", %s", f->check->id);
			else
				strbuf_printf(out, "%s%s: %s", first ? "" : "; ",
					      diagnosis_verdict_name(order[i]), f->check->id);
			last = f->check;
			first = false;
		}
	}
	strbuf_puts(out, first ? "PASS\n" : "\n");
}

void status_text(const struct status *s, struct strbuf *out)
{
	strbuf_printf(out, "%s: node %s, railmated %s\n", status_verdicts[s->verdict], s->node,
		      s->version ? s->version : "of an unknown version");
	for (size_t i = 0; i < s->n_trouble; i++)
		strbuf_printf(out, "  %s\n", s->trouble[i]);
	for (size_t i = 0; i < s->n_all; i++)
		pools_put_heading(s->pools[i].item, out);
	put_links(s, out);
	if (s->placement.known) {
		const struct status_placement *p = &s->placement;
		size_t pairs = 0;
		bool first = true;

		for (int i = 0; i < STATUS_RANKS; i++)
			pairs += p->pairs[i];
		strbuf_printf(out, "placement: %zu pairs of GPU and VF", pairs);
		for (int i = 0; i < STATUS_RANKS; i++) {
			if (!p->pairs[i])
				continue;
			strbuf_printf(out, "%s %zu %s", first ? ":" : ",", p->pairs[i],
				      status_ranks[i]);
			first = false;
		}
		if (p->unknown)
			strbuf_printf(out, "; %zu VFs for GPUs that are not known", p->unknown);
		if (p->checked)
			strbuf_printf(out,
				      "; %zu of %zu recorded choices were the best that was free",
				      p->best, p->checked);
		strbuf_putc(out, '\n');
	}
	if (s->doctor)
		put_doctor(s, out);
}

/* --- JSON --- */

/* A copy of an item of the status document. */
static void json_item(const struct item *item, struct json *j)
{
	if (item && item->text)
		json_put_raw(j, item->text, item->text_len);
	else
		json_put_null(j);
}

static void json_pools(const struct status *s, struct json *j)
{
	json_key(j, "pools");
	if (s->silent) {
		json_put_null(j);
		return;
	}
	json_begin_array(j);
	for (size_t i = 0; i < s->n_pools; i++) {
		const struct pool_status *p = &s->pools[i];
		const struct item *counts = item_get(p->item, "counts");

		json_begin_object(j);
		json_kv_string(j, "resource", p->resource);
		json_kv_string(j, "binding", p->binding);
		json_kv_int(j, "vfs", (int64_t)p->vfs);
		for (int k = HOLDS_STATES; k-- > 0;)
			json_kv_int(j, holds_state_names[k],
				    item_number(counts, holds_state_names[k], 0));
		json_end_object(j);
	}
	json_end_array(j);
}

static void json_placement(const struct status_placement *p, struct json *j)
{
	json_key(j, "placement");
	if (!p->known) {
		json_put_null(j);
		return;
	}
	json_begin_object(j);
	json_key(j, "pairs");
	json_begin_object(j);
	for (int i = 0; i < STATUS_RANKS; i++)
		json_kv_int(j, status_ranks[i], (int64_t)p->pairs[i]);
	json_end_object(j);
	json_kv_int(j, "unknown_vfs", (int64_t)p->unknown);
	json_kv_int(j, "checked", (int64_t)p->checked);
	json_kv_int(j, "best", (int64_t)p->best);
	json_end_object(j);
}

static void json_checks(const struct status *s, enum diagnosis_verdict v, const char *key,
			struct json *j)
{
	const struct diagnosis_check *last = NULL;

	json_key(j, key);
	json_begin_array(j);
	for (size_t i = 0; i < diagnosis_n(s->doctor); i++) {
		const struct diagnosis_finding *f = diagnosis_at(s->doctor, i);

		if (f->verdict == v && f->check != last)
			json_put_string(j, f->check->id);
		last = f->verdict == v ? f->check : last;
	}
	json_end_array(j);
}

void status_json(const struct status *s, struct strbuf *out)
{
	struct json j;

	json_init(&j, out, 2);
	json_begin_object(&j);
	json_kv_string(&j, "node", s->node);
	json_kv_string(&j, "verdict", status_verdicts[s->verdict]);
	json_key(&j, "trouble");
	json_begin_array(&j);
	for (size_t i = 0; i < s->n_trouble; i++)
		json_put_string(&j, s->trouble[i]);
	json_end_array(&j);
	json_kv_string(&j, "railmated", s->version);
	json_pools(s, &j);
	json_key(&j, "links");
	json_item(s->links, &j);
	json_key(&j, "shared");
	json_item(s->shared, &j);
	json_placement(&s->placement, &j);
	json_key(&j, "doctor");
	if (!s->doctor) {
		json_put_null(&j);
	} else {
		json_begin_object(&j);
		json_kv_string(&j, "verdict", diagnosis_verdict_name(diagnosis_worst(s->doctor)));
		json_checks(s, DIAGNOSIS_FAIL, "fail", &j);
		json_checks(s, DIAGNOSIS_WARN, "warn", &j);
		json_checks(s, DIAGNOSIS_UNKNOWN, "unknown", &j);
		json_end_object(&j);
	}
	json_end_object(&j);
	strbuf_putc(out, '\n');
}
