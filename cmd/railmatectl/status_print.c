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

#define BEST_PERCENT 95 /* fewer of the choices: a line tells */

const char *const status_verdicts[] = { "PASS", "WARN", "FAIL" };

static const struct hw_inventory *inventory(const struct status *s)
{
	return s->machine->node->inv;
}

/* --- verdict --- */

static void trouble(struct status *s, enum status_verdict v, const char *sentence)
{
	s->trouble[s->n_trouble++] = sentence;
	if (v > s->verdict)
		s->verdict = v;
}

static const char *own_string(const struct status_link *l, const char *key)
{
	return l->missing ? item_string(l->missing, key) : NULL;
}

static const char *pf_of(const struct status *s, const struct status_link *l)
{
	return l->pci < 0 ? own_string(l, "pf") : hw_pci_address(inventory(s), l->pci, s->arena);
}

static const char *netdev_of(const struct status *s, const struct status_link *l)
{
	const char *netdev = l->pci < 0 ? NULL : inventory(s)->pci[l->pci].netdev;

	return netdev ? netdev : own_string(l, "netdev");
}

/* "0000:18:00.0 mlx5_0 port 1 (ens1f0)", without missing parts */
static const char *link_name(const struct status *s, const struct status_link *l)
{
	const struct hw_inventory *inv = inventory(s);
	const struct hw_rdma *rdma = l->rdma < 0 ? NULL : &inv->rdma[l->rdma];
	const char *name = rdma ? rdma->name : own_string(l, "rdma");
	const char *netdev = netdev_of(s, l);
	const char *port = rdma && rdma->n_ports > 1 && l->port >= 0
				   ? arena_printf(s->arena, " port %d", rdma->ports[l->port].number)
				   : "";

	return arena_printf(s->arena, "%s%s%s%s%s%s%s", pf_of(s, l), name ? " " : "",
			    name ? name : "", port, netdev ? " (" : "", netdev ? netdev : "",
			    netdev ? ")" : "");
}

static const char *say_with_pods(const struct status *s, const struct status_link *l,
				 const char *what)
{
	_cleanup_strbuf_ struct strbuf text = STRBUF_INIT;

	strbuf_printf(&text, "link %s %s; ", link_name(s, l), what);
	pools_put_pods(l->pods, l->n_pods, &text);
	return arena_strdup(s->arena, text.s);
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

	s->trouble = arena_array(s->arena, 3 * (s->n_pools + s->n_links) + n_conditions + 8,
				 sizeof(*s->trouble));
	if (s->silent)
		trouble(s, STATUS_FAIL, s->silent);
	for (size_t i = 0; i < n_conditions; i++)
		add_condition(s, &s->conditions->kids[i]);
	for (size_t i = 0; i < s->n_links; i++) {
		if (s->links[i].missing)
			trouble(s, STATUS_WARN, say_with_pods(s, &s->links[i], s->links[i].wrong));
		else if (s->links[i].wrong)
			trouble(s, STATUS_WARN,
				arena_printf(s->arena, "link %s %s", link_name(s, &s->links[i]),
					     s->links[i].wrong));
		if (s->links[i].degraded)
			trouble(s, STATUS_WARN,
				say_with_pods(s, &s->links[i], s->links[i].degraded));
	}
	for (size_t i = 0; i < s->n_pools; i++) {
		const struct pool_status *pool = &s->pools[i];
		size_t n = pool->unhealthy;

		if (!pool->vfs)
			trouble(s, STATUS_WARN,
				arena_printf(s->arena, "pool %s has no VF", pool->resource));
		if (n)
			trouble(s, n == pool->vfs ? STATUS_FAIL : STATUS_WARN,
				arena_printf(s->arena, "%zu of %zu VFs of %s are unhealthy: %s", n,
					     pool->vfs, pool->resource,
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

		/* Its own line names the checks. */
		s->verdict = v > s->verdict ? v : s->verdict;
	}
}

/* --- text --- */

/* "links: 8, 7 at 400 Gb/s, 1 down" */
static void put_links(const struct status *s, struct strbuf *out)
{
	const struct hw_inventory *inv = inventory(s);
	size_t at_rate = 0;
	int most = 0;

	for (int pass = 0; pass < 2; pass++) {
		for (size_t i = 0; i < s->n_links; i++) {
			const struct status_link *l = &s->links[i];
			int rate = l->port < 0 || l->down
					   ? 0
					   : inv->rdma[l->rdma].ports[l->port].rate_mbps;

			if (pass)
				at_rate += rate && rate == most;
			else if (rate > most)
				most = rate;
		}
	}
	strbuf_printf(out, "links: %zu", s->n_links);
	if (at_rate) {
		strbuf_printf(out, ", %zu at ", at_rate);
		hw_put_rate(most, out);
	}
	if (s->n_down)
		strbuf_printf(out, ", %zu down", s->n_down);
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
	for (size_t i = 0; i < s->n_pools; i++)
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

static void json_degraded(const struct status_link *l, struct json *j)
{
	json_key(j, "degraded");
	if (!l->degraded) {
		json_put_null(j);
		return;
	}
	json_begin_object(j);
	json_kv_string(j, "why", l->degraded);
	json_key(j, "reasons");
	json_begin_array(j);
	for (size_t i = 0; i < l->reasons->n_kids; i++)
		json_put_string(j, l->reasons->kids[i].string);
	json_end_array(j);
	json_key(j, "pods");
	json_begin_array(j);
	for (size_t i = 0; i < l->n_pods; i++)
		json_put_string(j, l->pods[i]);
	json_end_array(j);
	json_end_object(j);
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
	json_begin_array(&j);
	for (size_t i = 0; i < s->n_links; i++) {
		const struct status_link *l = &s->links[i];
		const struct hw_inventory *inv = inventory(s);
		const struct hw_rdma *rdma = l->rdma < 0 ? NULL : &inv->rdma[l->rdma];
		const struct hw_port *port = l->port < 0 ? NULL : &rdma->ports[l->port];
		const struct hw_neighbor *leaf = hw_find_neighbor(inv, l->pci);

		json_begin_object(&j);
		json_kv_string(&j, "pf", pf_of(s, l));
		json_kv_string(&j, "rdma", rdma ? rdma->name : own_string(l, "rdma"));
		json_kv_int_if(&j, "port", port ? port->number : 0, port);
		json_kv_string(&j, "netdev", netdev_of(s, l));
		json_kv_string(&j, "state", port ? port->state : NULL);
		json_kv_int_if(&j, "rate_mbps", port ? port->rate_mbps : 0,
			       port && port->rate_mbps);
		json_kv_bool(&j, "down", l->down);
		json_kv_string(&j, "wrong", l->wrong);
		json_degraded(l, &j);
		json_kv_int_if(&j, "rail", l->rail, l->rail >= 0);
		json_kv_int_if(&j, "plane", l->plane, l->plane >= 0);
		json_kv_string(&j, "switch", leaf ? leaf->name : NULL);
		json_kv_string(&j, "switch_port", leaf ? leaf->port : NULL);
		json_end_object(&j);
	}
	json_end_array(&j);
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
