/* railmatectl status: the state of this node: who holds VFs, links, placement, doctor's verdict, in
 * ten lines. */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "align/align.h"
#include "ask_ledger.h"
#include "base/arena.h"
#include "base/err.h"
#include "base/json.h"
#include "base/mem.h"
#include "base/str.h"
#include "control/control.h"
#include "diagnosis/diagnosis.h"
#include "doctor/doctor.h"
#include "document/document.h"
#include "facts/facts.h"
#include "facts/gather.h"
#include "holds/holds.h"
#include "hw/inventory.h"
#include "ledger/ledger.h"
#include "pool/node.h"
#include "pools.h"
#include "railmatectl.h"
#include "status/status.h"
#include "topo/topo.h"

struct pool_status {
	const struct item *item; /* of railmated's answer */
	const char *resource, *binding;
	size_t vfs, unhealthy;
	const char *why; /* of the first VF that is unhealthy; NULL */
};

#define STATUS_RANKS 5
struct status_placement {
	bool known;		    /* there is a ledger */
	size_t pairs[STATUS_RANKS]; /* GPU and VF of containers that hold VFs now: PIX … SYS */
	size_t unknown;		    /* VFs that are held, for GPUs that are not known */
	size_t checked, best; /* recorded choices whose GPUs are known; those that were the best */
};

enum status_verdict { STATUS_PASS, STATUS_WARN, STATUS_FAIL, STATUS_VERDICTS };

struct status {
	struct arena *arena;
	const struct machine *machine;
	const char *node;
	const char *version;	   /* of railmated; NULL: not known */
	const char *silent;	   /* why railmated did not answer; NULL: it did */
	struct pool_status *pools; /* pools of VFs, then those whose HCAs are shared */
	size_t n_pools, n_all, n_unknown_slots;
	const struct item *shared;     /* of railmated's document: a list; NULL: no answer */
	const struct item *conditions; /* of railmated; a list */
	const struct item *links;      /* of railmated's document, or of own_document(): a list */
	struct status_placement placement;
	const struct diagnosis *doctor; /* NULL: doctor was not asked for */
	enum status_verdict verdict;
	const char **trouble; /* reasons of the verdict, sentences without a full stop */
	size_t n_trouble;
};

static const char *const status_ranks[STATUS_RANKS] = { "PIX", "PXB", "PHB", "NODE", "SYS" };

static int find(const struct hw_inventory *inv, const char *address)
{
	struct bdf bdf;

	return bdf_parse(address, &bdf) < 0 ? -1 : hw_find_pci(inv, bdf);
}

/* --- pools --- */

static void read_pools(struct status *s, const struct item *answer)
{
	const struct item *pools = pools_list(answer, "pools");

	s->shared = pools_list(answer, "shared");
	s->n_pools = pools->n_kids;
	s->n_all = pools->n_kids + s->shared->n_kids;
	s->pools = arena_array(s->arena, s->n_all, sizeof(*s->pools));
	s->conditions = pools_list(answer, "conditions");
	s->n_unknown_slots = pools_list(answer, "unknown_slots")->n_kids;
	for (size_t i = 0; i < s->n_all; i++) {
		const struct item *item =
			i < s->n_pools ? &pools->kids[i] : &s->shared->kids[i - s->n_pools];
		const struct item *vfs = pools_list(item, "vfs");
		struct pool_status *pool = &s->pools[i];

		pool->item = item;
		pool->resource = item_string(item, "resource");
		pool->binding = item_string(item, "binding");
		pool->vfs = vfs->n_kids;
		for (size_t k = 0; k < vfs->n_kids; k++) {
			const char *state = item_string(&vfs->kids[k], "state");

			if (!str_eq(state, holds_state_names[HOLDS_IS_UNHEALTHY]))
				continue;
			if (!pool->unhealthy++)
				pool->why = item_string(&vfs->kids[k], "why");
		}
	}
}

/* --- placement --- */

struct gpus {
	const char *const *v;
	size_t n;
};

/* The pairs as railmated counts them (align/align.h): each GPU and each VF has one at least. */
static void count_pairs(struct status *s, struct gpus gpus, const char *const *vfs, size_t n)
{
	const struct node *node = s->machine->node;
	struct align_vf *v = arena_array(s->arena, n, sizeof(*v));
	uint8_t *ranks = arena_array(s->arena, gpus.n * n, sizeof(*ranks));
	int *all = arena_array(s->arena, n, sizeof(*all));
	struct align_in in = {
		.vfs = v, .n_vfs = n, .n_places = n, .n_gpus = gpus.n, .gpu_rank = ranks, .want = n
	};
	struct align_out out;

	for (size_t i = 0; i < n; i++) {
		v[i] = (struct align_vf) { .place = (int)i, .index = -1 };
		all[i] = (int)i;
		for (size_t g = 0; g < gpus.n; g++) {
			int gpu = find(node->inv, gpus.v[g]), vf = find(node->inv, vfs[i]);

			ranks[g * n + i] = STATUS_RANKS - 1;
			if (gpu >= 0 && vf >= 0)
				ranks[g * n + i] =
					(uint8_t)topo_rank(topo_between(node->topo, gpu, vf).class);
		}
	}
	out = align_assign(&in, all, n, s->arena);
	for (size_t i = 0; i < out.n_pairs; i++)
		s->placement.pairs[out.pairs[i].rank]++;
}

static void read_placement(struct status *s, const struct ledger *ledger)
{
	size_t paired = 0;

	s->placement.known = true;
	for (size_t i = 0; i < ledger_decisions(ledger); i++) {
		const struct ledger_decision *d = ledger_decision_at(ledger, i);
		const char **held = arena_array(s->arena, d->n_chosen, sizeof(*held));
		struct gpus gpus = { NULL, 0 };
		size_t n = 0;

		/* The GPUs that the container has. Late binding chooses when they are known. */
		if (d->checked)
			gpus = (struct gpus) { d->real_gpus, d->n_real_gpus };
		else if (d->late && d->known == LEDGER_GPUS_KNOWN)
			gpus = (struct gpus) { d->gpus, d->n_gpus };
		if (!gpus.n)
			continue;
		s->placement.checked++;
		s->placement.best += !d->checked || d->real_cost <= d->best_cost;
		for (size_t k = 0; k < d->n_chosen; k++) {
			const struct ledger_hold *h = ledger_find(ledger, d->chosen[k]);

			if (h && h->decision == d->number && !h->draining)
				held[n++] = d->chosen[k];
		}
		if (n)
			count_pairs(s, gpus, held, n);
		paired += n;
	}
	for (size_t i = 0; i < ledger_holds(ledger); i++)
		s->placement.unknown += !ledger_hold_at(ledger, i)->draining;
	s->placement.unknown -= paired < s->placement.unknown ? paired : s->placement.unknown;
}

#define BEST_PERCENT 95 /* fewer best choices are a trouble */

static const char *const status_verdicts[] = { "PASS", "WARN", "FAIL" };

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

static void judge(struct status *s)
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

static void put_text(const struct status *s, struct strbuf *out)
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
	json_kv_object(j, "pairs");
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

	json_kv_array(j, key);
	for (size_t i = 0; i < diagnosis_n(s->doctor); i++) {
		const struct diagnosis_finding *f = diagnosis_at(s->doctor, i);

		if (f->verdict == v && f->check != last)
			json_put_string(j, f->check->id);
		last = f->verdict == v ? f->check : last;
	}
	json_end_array(j);
}

static void put_json(const struct status *s, struct strbuf *out)
{
	struct json j;

	json_init(&j, out, 2);
	json_begin_object(&j);
	json_kv_string(&j, "node", s->node);
	json_kv_string(&j, "verdict", status_verdicts[s->verdict]);
	json_kv_strings(&j, "trouble", s->trouble, s->n_trouble);
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

struct request {
	struct machine machine;
	struct ledger_source source;
	bool json, no_doctor;
};

/* In place of the document of a daemon that is away: this machine without a configuration. */
static const struct item *own_document(struct status *s)
{
	const struct status_facts facts = { .node_name = s->node, .node = s->machine->node };
	const struct item *document = NULL;
	_cleanup_strbuf_ struct strbuf text = STRBUF_INIT;
	struct err err = { 0 };
	const char *kept;

	status_write_document(&facts, &text);
	kept = arena_strdup(s->arena, strbuf_str(&text));
	document_parse(kept, strlen(kept), "the status document", s->arena, &document, &err);
	return document;
}

static void ask_daemon(struct status *s, const struct request *req)
{
	const struct item *answer = NULL;
	struct err err = { 0 };
	char host[256] = "";
	const char *text;

	s->node = getenv("NODE_NAME"); /* set by the DaemonSet */
	if (!s->node || !*s->node) {
		gethostname(host, sizeof(host) - 1);
		s->node = arena_strdup(s->arena, host);
	}
	if (str_eq(req->source.socket, "none"))
		s->silent = "railmated was not asked";
	else if (pools_ask(req->source.socket, s->arena, &answer, &text, &err) < 0)
		s->silent = arena_strdup(s->arena, err.msg);
	if (answer) {
		s->node = *pools_node(answer) ? pools_node(answer) : s->node;
		s->version = item_string(answer, "version");
		read_pools(s, answer);
	}
	s->links = item_get(answer ? answer : own_document(s), "links");
}

static int examine(const struct request *req, struct status *s)
{
	const struct node *node = req->machine.node;
	_cleanup_diagnosis_ struct diagnosis *report_of_doctor = NULL;
	struct facts *facts = NULL;
	struct err err = { 0 };
	int r;
	static const int codes[STATUS_VERDICTS] = { EXIT_DONE, 5, 6 };
	_cleanup_strbuf_ struct strbuf out = STRBUF_INIT;
	struct ledger_answer answer = { 0 };

	ask_daemon(s, req);
	/* The ledger of a daemon that is away counts, too; without a ledger the rest counts. */
	if (ask_ledger(&req->source, s->arena, &answer, &err) >= 0) {
		read_placement(s, answer.ledger);
		ledger_free(answer.ledger);
	}
	if (!req->no_doctor) {
		facts = facts_gather(req->machine.root, node->inv, node->topo, FACTS_OF_NODE);
		facts->rails = node->rails;
		if (doctor_run(facts, NULL, &report_of_doctor, &err) == 0)
			s->doctor = report_of_doctor;
	}
	judge(s);
	(req->json ? put_json : put_text)(s, &out);
	r = print_out(&out) == EXIT_DONE ? codes[s->verdict] : EXIT_FAILED;
	facts_free(facts);
	return r;
}

int cmd_status(int argc, char **argv)
{
	struct request req = { .machine.root_path = "/", .source = { CONTROL_SOCKET, STATE_DIR } };
	const struct word words[] = {
		{ "root", .value = &req.machine.root_path },
		{ "topology-hints", .value = &req.machine.hints_path },
		{ "control-socket", .value = &req.source.socket },
		{ "state-dir", .value = &req.source.state_dir },
		{ "no-doctor", .flag = &req.no_doctor },
		{ "json", .flag = &req.json },
	};
	_cleanup_arena_ struct arena *a = arena_new(16384);
	struct status s = { .arena = a, .machine = &req.machine };
	int r = read_only_options(argc, argv, words, ARRAY_LEN(words));

	if (r == EXIT_DONE)
		r = machine_open(&req.machine);
	if (r == EXIT_DONE)
		r = examine(&req, &s);
	machine_close(&req.machine);
	return r;
}
