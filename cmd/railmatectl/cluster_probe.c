/*
 * railmatectl cluster probe: railmate-probe in the containers of a job. Of several pods the first
 * one serves, and the others are its peers, one by one; the token of each exchange goes by standard
 * input. The results are one table, the worst first.
 */
#include <getopt.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "base/arena.h"
#include "base/err.h"
#include "base/json.h"
#include "base/mem.h"
#include "cluster.h"
#include "document/document.h"
#include "pools.h"

#define PROBE	   "/run/railmate/probe/railmate-probe"
#define ANSWER_MAX (1u << 20)
#define TIMEOUT_S  120
#define PASSED_MAX 12
#define COLUMNS	   100

/* Outcomes of railmate-probe, the worst last, and its exit statuses. */
static const char *const outcomes[] = { "good", "no GPU library", "not measured", "slow",
					"broken" };
/* Of one report, which a pod may have made up. */
#define MEASURES_MAX 4096
#define FINDINGS_MAX 200

enum { GOOD, NO_GPU_LIBRARY, NOT_MEASURED, SLOW, BROKEN };
static const int statuses[] = { EXIT_DONE, 5, 4, 3, 1 };

struct member {
	const char *name, *phase, *ip;
};

struct answer {
	const char *pod;
	const struct item *report; /* NULL: there is none, and why */
	const char *why;
	size_t outcome;
};

/* Two ends, and what was measured between them: each operation alone, and all rails at once. */
enum { WRITE, READ, SEND, TOGETHER, COLUMNS_OF_ROW };
struct row {
	const struct answer *answer;
	const struct item *first, *by[COLUMNS_OF_ROW];
	size_t outcome;
};

struct probing {
	struct cluster cluster;
	const char *ns, *selector, *container;
	char **words, **passed; /* of the command line: pods or a job; options of railmate-probe */
	size_t n_words, n_passed;
	struct member *v; /* heap */
	size_t n, cap;
};

/* What they answered, as one. */
struct merging {
	struct arena *arena;
	struct answer *answers;
	struct row *rows; /* heap */
	size_t n_answers, n_rows, cap_rows;
};

/* --- pods --- */

enum { POD, PHASE, IP, LABELS };

static const char *const columns[] = {
	[POD] = "{.metadata.name}",
	[PHASE] = "{.status.phase}",
	[IP] = "{.status.podIP}",
	CLUSTER_JOB_LABELS,
	NULL,
};

/* Its place among the words of the command line; behind them: it is none of them. */
static size_t place_of(const struct probing *p, const char *name)
{
	size_t i = 0;

	while (i < p->n_words && strcmp(p->words[i], name) != 0)
		i++;
	return i;
}

static void take_pod(void *arg, char **cells)
{
	struct probing *p = arg;
	struct arena *a = p->cluster.arena;

	if (!p->selector && place_of(p, cells[POD]) == p->n_words &&
	    (p->n_words > 1 || !cluster_is_of_job(&cells[LABELS], p->words[0])))
		return;
	p->v = xgrow(p->v, &p->cap, p->n + 1, sizeof(*p->v));
	p->v[p->n++] = (struct member) { arena_strdup(a, cells[POD]), arena_strdup(a, cells[PHASE]),
					 arena_strdup(a, cells[IP]) };
}

static int by_place(const void *a, const void *b, void *arg)
{
	const struct member *x = a, *y = b;
	size_t i = place_of(arg, x->name), j = place_of(arg, y->name);

	return i != j ? (i > j) - (i < j) : cluster_node_cmp(x->name, y->name);
}

/* The pods that were named, in that order; or those of the job or the labels. */
static int find_members(struct probing *p)
{
	const char *in = p->ns ? p->ns : "kubectl's own";

	if (cluster_list_pods(&p->cluster.k, p->ns, p->selector, columns, take_pod, p) != EXIT_DONE)
		return statuses[NOT_MEASURED];
	if (p->n)
		qsort_r(p->v, p->n, sizeof(*p->v), by_place, p);
	if (p->n && p->n_words == 1 && place_of(p, p->v[0].name) == 0)
		p->n = 1; /* a pod, and not a job */
	for (size_t i = 0; i == 0 || i < p->n_words; i++) {
		if (i == p->n || (p->n_words > 1 && place_of(p, p->v[i].name) != i))
			return fail(statuses[NOT_MEASURED], "no pod of %s is in namespace %s",
				    p->selector ? p->selector : p->words[i], in);
	}
	for (size_t i = 0; i < p->n; i++) {
		if (strcmp(p->v[i].phase, "Running") != 0)
			return fail(statuses[NOT_MEASURED], "pod %s does not run: it is %s",
				    p->v[i].name, p->v[i].phase);
	}
	return EXIT_DONE;
}

/* --- calls --- */

/* mode: --serve, --peer, or NULL: alone. */
static struct kubectl_call call_of(const struct probing *p, const struct member *m,
				   const char *mode, const char *peer, const char *token)
{
	struct kubectl_call call = {
		.args = { "exec", token ? "-i" : NULL, p->ns ? "-n" : NULL, p->ns, m->name,
			  p->container ? "-c" : NULL, p->container, "--", PROBE, "--json",
			  "--quiet", mode, peer, token ? "--token" : NULL, token ? "-" : NULL,
			  mode && !peer ? "--once" : NULL },
		.input = token,
		.most = ANSWER_MAX,
	};
	size_t n = 16;
	bool port = false; /* all that concerns a server */

	for (size_t i = 0; i < p->n_passed; i++) {
		port = port || str_starts(p->passed[i], "--port");
		if (!mode || peer || port)
			call.args[n++] = p->passed[i];
		port = port && !strcmp(p->passed[i], "--port");
	}
	return call;
}

/* Of two with a token of 128 bits that is used once. server: NULL: the client alone. */
static void probe(struct probing *p, const struct member *client, const struct member *server)
{
	struct cluster *c = &p->cluster;
	uint64_t r[2];
	const char *token;

	if (getrandom(r, sizeof(r), 0) != sizeof(r))
		abort();
	token = arena_printf(c->arena, "%016" PRIx64 "%016" PRIx64 "\n", r[0], r[1]);
	c->pods[c->n].name = client->name;
	c->calls[c->n++] = call_of(p, client, server ? "--peer" : NULL, server ? server->ip : NULL,
				   server ? token : NULL);
	if (server) {
		c->pods[c->n].name = server->name;
		c->calls[c->n++] = call_of(p, server, "--serve", NULL, token);
	}
	kubectl_run(&c->k, &c->calls[c->n - (server ? 2 : 1)], server ? 2 : 1);
}

/* --- results --- */

/* A word of another release is not good. */
static size_t outcome_of(const struct item *object)
{
	size_t i = 0;

	while (i < ARRAY_LEN(outcomes) && !str_eq(item_string(object, "outcome"), outcomes[i]))
		i++;
	return i < ARRAY_LEN(outcomes) ? i : NOT_MEASURED;
}

/* The worse of what it says and of its exit status, which alone knows of GPU libraries. */
static struct answer read_answer(const struct cluster *c, size_t i)
{
	const struct kubectl_call *call = &c->calls[i];
	struct answer a = { c->pods[i].name, NULL, call->why, NOT_MEASURED };
	struct err err = { 0 };

	if (call->status == 126 || call->status == 127 ||
	    strstr(call->err.len ? call->err.s : "", "no such file or directory"))
		a.why = "its container has no " PROBE
			": railmate serves it no VF, or its pool has probe: false; -c names another one";
	if (call->status < 0 || !call->out.len)
		return a;
	if (document_parse(call->out.s, call->out.len, "its answer", c->arena, &a.report, &err) <
		    0 ||
	    item_number(a.report, "probe", -1) != 1) {
		a.report = NULL;
		a.why = "its answer is not that of railmate-probe";
		return a;
	}
	for (size_t k = 0; k < ARRAY_LEN(statuses); k++)
		a.outcome = statuses[k] == call->status ? k : a.outcome;
	if (outcome_of(a.report) > a.outcome &&
	    !(a.outcome == NO_GPU_LIBRARY && outcome_of(a.report) == NOT_MEASURED))
		a.outcome = outcome_of(a.report);
	return a;
}

static const char *text(const struct merging *p, const struct item *object, const char *key)
{
	const char *s = cluster_own(item_string(object, key), p->arena);

	return s ? s : "";
}

static bool same_ends(const struct item *a, const struct item *b)
{
	static const char *const keys[] = { "from", "to", "from_memory", "to_memory" };
	size_t i = 0;

	while (i < ARRAY_LEN(keys) && str_eq(item_string(a, keys[i]), item_string(b, keys[i])))
		i++;
	return i == ARRAY_LEN(keys);
}

/* first: the rows of this answer begin there. */
static void add_measure(struct merging *p, const struct answer *answer, size_t first,
			const struct item *m)
{
	static const char *const ops[] = { [WRITE] = "write", [READ] = "read", [SEND] = "send" };
	const struct item *together = item_get(m, "together");
	size_t at = TOGETHER, i = first;

	for (size_t k = 0; (!together || !together->boolean) && k < ARRAY_LEN(ops); k++)
		at = str_eq(item_string(m, "op"), ops[k]) ? k : at;
	while (i < p->n_rows && !same_ends(p->rows[i].first, m))
		i++;
	if (i == p->n_rows) {
		p->rows = xgrow(p->rows, &p->cap_rows, ++p->n_rows, sizeof(*p->rows));
		p->rows[i] = (struct row) { .answer = answer, .first = m };
	}
	p->rows[i].by[at] = m;
	if (outcome_of(m) > p->rows[i].outcome)
		p->rows[i].outcome = outcome_of(m);
}

static int worst_first(const void *a, const void *b)
{
	const struct row *x = a, *y = b;
	int r = (y->outcome > x->outcome) - (y->outcome < x->outcome);

	return r ? r : (x->first > y->first) - (x->first < y->first);
}

static void put_number(const struct item *object, const char *key, struct strbuf *out)
{
	const struct item *n = item_get(object, key);
	double value = n && n->type == ITEM_NUMBER ? strtod(n->text, NULL) : 0;

	if (n && n->type == ITEM_NUMBER)
		strbuf_printf(out, " %7.*f", value > 0 && value < 1 ? 3 : 1, value);
	else
		strbuf_printf(out, " %7s", "-");
}

/* Two devices. A peer's name stands before its device and is that of the first pod, with its
 * namespace. */
static const char *ends_of(const struct merging *p, const struct row *row)
{
	const char *to = text(p, row->first, "to"), *slash = strrchr(to, '/');

	return arena_printf(p->arena, "%s > %s", text(p, row->first, "from"),
			    slash ? slash + 1 : to);
}

static void put_rows(struct merging *p, struct strbuf *out)
{
	int width = (int)strlen("FROM > TO");

	for (size_t i = 0; i < p->n_answers; i++) {
		const struct item *list = pools_list(p->answers[i].report, "measures");
		size_t first = p->n_rows;

		for (size_t k = 0; k < list->n_kids && k < MEASURES_MAX; k++)
			add_measure(p, &p->answers[i], first, &list->kids[k]);
		if (list->n_kids > MEASURES_MAX)
			strbuf_printf(out, "(%s: only the first %d of %zu transfers)\n",
				      p->answers[i].pod, MEASURES_MAX, list->n_kids);
	}
	if (!p->n_rows)
		return;
	qsort(p->rows, p->n_rows, sizeof(*p->rows), worst_first);
	for (size_t i = 0; i < p->n_rows; i++) {
		int len = (int)strlen(ends_of(p, &p->rows[i]));

		width = len > width ? len : width;
	}
	strbuf_printf(
		out,
		"VERDICT      PATH         %-*s   WRITE    READ    SEND     ALL    USEC  POD\n",
		width, "FROM > TO");
	for (size_t i = 0; i < p->n_rows; i++) {
		const struct row *row = &p->rows[i];

		strbuf_printf(out, "%-12s %-12.12s %-*s", outcomes[row->outcome],
			      text(p, row->first, "path"), width, ends_of(p, row));
		for (size_t k = 0; k < COLUMNS_OF_ROW; k++)
			put_number(row->by[k], "gbps", out);
		put_number(row->by[WRITE], "usec", out);
		strbuf_printf(out, "  %s\n", row->answer->pod);
	}
	strbuf_puts(out, "(Gb/s; ALL: write, all rails at once");
	if (p->n_answers > 1) /* of each pair the second one serves */
		strbuf_printf(out, "; to %s", p->answers[1].pod);
	strbuf_puts(out, ")\n");
}

static void put_finding(struct merging *p, const struct answer *a, const struct item *f,
			struct strbuf *out)
{
	static const char *const more[] = { "likely", "fix" };
	const char *on = text(p, f, "on");

	strbuf_put_wrapped(out, arena_printf(p->arena, "%s: ", outcomes[outcome_of(f)]),
			   arena_printf(p->arena, "%s: %s%s%s", a->pod, on, *on ? ": " : "",
					text(p, f, "what")),
			   COLUMNS);
	for (size_t i = 0; i < ARRAY_LEN(more); i++) {
		if (*text(p, f, more[i]))
			strbuf_put_wrapped(out, i ? "  do: " : "  likely: ", text(p, f, more[i]),
					   COLUMNS);
	}
}

/*
 * Has an answer before this one the same finding? A client has heard what its server found in their
 * runs, and names the server before the device; and a pod may have served several.
 */
static bool is_told(const struct merging *p, size_t of, const struct item *f)
{
	for (size_t i = 0; i < of; i++) {
		const struct item *list = pools_list(p->answers[i].report, "findings");

		for (size_t k = 0; k < list->n_kids && k < FINDINGS_MAX; k++) {
			const struct item *other = &list->kids[k];

			if (str_eq(item_string(other, "id"), item_string(f, "id")) &&
			    str_eq(item_string(other, "what"), item_string(f, "what")) &&
			    str_ends(text(p, other, "on"), text(p, f, "on")))
				return true;
		}
	}
	return false;
}

static void put_findings(struct merging *p, size_t outcome, struct strbuf *out)
{
	for (size_t i = 0; i < p->n_answers; i++) {
		const struct item *list = pools_list(p->answers[i].report, "findings");

		if (!p->answers[i].report && !(i % 2 && p->answers[i - 1].report) &&
		    outcome == NOT_MEASURED)
			strbuf_put_wrapped(out, "not measured: ",
					   arena_printf(p->arena, "%s: %s", p->answers[i].pod,
							p->answers[i].why),
					   COLUMNS);
		for (size_t k = 0; k < list->n_kids && k < FINDINGS_MAX; k++) {
			if (outcome_of(&list->kids[k]) == outcome &&
			    !(i % 2 && is_told(p, i, &list->kids[k])))
				put_finding(p, &p->answers[i], &list->kids[k], out);
		}
	}
}

static void put_json(const struct merging *p, size_t worst, struct strbuf *out)
{
	struct json j;

	json_init(&j, out, 2);
	json_begin_object(&j);
	json_kv_string(&j, "outcome", outcomes[worst]);
	json_kv_array(&j, "reports");
	for (size_t i = 0; i < p->n_answers; i++) {
		const struct answer *a = &p->answers[i];

		json_begin_object(&j);
		json_kv_string(&j, "pod", a->pod);
		json_kv_bool(&j, "served", i % 2 == 1);
		json_kv_string(&j, "error", a->report ? NULL : a->why);
		json_key(&j, "report");
		if (a->report)
			json_put_raw(&j, a->report->text, a->report->text_len);
		else
			json_put_null(&j);
		json_end_object(&j);
	}
	json_end_array(&j);
	json_end_object(&j);
	strbuf_putc(out, '\n');
}

int cluster_merge_probe(const struct cluster *c, struct strbuf *out)
{
	struct merging p = { .arena = c->arena,
			     .answers = arena_array(c->arena, c->n, sizeof(*p.answers)) };
	size_t worst = GOOD;

	for (size_t i = 0; i < c->n; i++) {
		p.answers[p.n_answers++] = read_answer(c, i);
		worst = p.answers[i].outcome > worst ? p.answers[i].outcome : worst;
	}
	if (c->json)
		put_json(&p, worst, out);
	else
		put_rows(&p, out);
	for (size_t o = BROKEN; !c->json && o > GOOD; o--)
		put_findings(&p, o, out);
	free(p.rows);
	return statuses[worst];
}

static int run(struct probing *p)
{
	_cleanup_strbuf_ struct strbuf out = STRBUF_INIT;
	int r = find_members(p), printed;

	if (r != EXIT_DONE)
		return r;
	p->cluster.pods = xcalloc(2 * p->n, sizeof(*p->cluster.pods));
	p->cluster.calls = arena_array(p->cluster.arena, 2 * p->n, sizeof(*p->cluster.calls));
	if (p->n == 1)
		probe(p, &p->v[0], NULL);
	for (size_t i = 1; i < p->n; i++)
		probe(p, &p->v[i], &p->v[0]);
	r = cluster_merge_probe(&p->cluster, &out);
	printed = print_out(&out);
	return printed == EXIT_DONE ? r : printed;
}

int cluster_probe(int argc, char **argv)
{
	struct probing p = { .cluster = CLUSTER_INIT };
	const struct word words[] = {
		CLUSTER_WORDS(&p.cluster),
		{ "namespace", .value = &p.ns },
		{ "selector", .value = &p.selector },
		{ "container", .value = &p.container },
	};
	int own = 1, r;

	while (own < argc && strcmp(argv[own], "--") != 0)
		own++;
	p.passed = argv + own + (own < argc);
	p.n_passed = (size_t)(argc - own - (own < argc));
	r = cluster_read(&p.cluster, own, argv, words, ARRAY_LEN(words), 0, own);
	p.words = argv + optind;
	p.n_words = (size_t)(own - optind);
	if (!p.cluster.timeout)
		p.cluster.k.timeout_s = TIMEOUT_S;
	if (p.cluster.k.parallel < 2)
		p.cluster.k.parallel = 2; /* of a pair, each waits for the other */
	if (r == EXIT_DONE && !p.n_words == !p.selector)
		r = fail(EXIT_USAGE, "cluster probe: name the pods, or the job, or its pods by -l");
	if (r == EXIT_DONE && p.n_passed > PASSED_MAX)
		r = fail(EXIT_USAGE, "cluster probe: more than %d words after --", PASSED_MAX);
	for (size_t i = 0; r == EXIT_DONE && i < p.n_words; i++) {
		if (!cluster_is_name(p.words[i]))
			r = fail(EXIT_USAGE,
				 "cluster probe: '%s' is not the name of a pod or a job",
				 p.words[i]);
	}
	if (r == EXIT_DONE)
		r = run(&p);
	cluster_done(&p.cluster);
	free(p.v);
	return r;
}
