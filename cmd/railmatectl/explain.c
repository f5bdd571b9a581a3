/* railmatectl explain: why a container has the VFs that it has, from the daemon's ledger. */
#include <errno.h>
#include <getopt.h>
#include <stdlib.h>
#include <string.h>

#include "ask_ledger.h"
#include "base/arena.h"
#include "base/err.h"
#include "base/json.h"
#include "base/list.h"
#include "base/mem.h"
#include "base/str.h"
#include "control/control.h"
#include "document/document.h"
#include "explain.h"
#include "hw/bdf.h"
#include "ledger/ledger.h"
#include "pools.h"
#include "railmatectl.h"

struct request {
	struct ledger_source source;
	bool json;
	const char *what;     /* "pod", "vf", "last", "pool" */
	const char *ns, *pod; /* pod */
	const char *vf;	      /* vf */
	const char *resource; /* pool; NULL: every one */
};

struct question {
	const struct request *req;
	struct arena *arena;
	struct ledger *ledger;
	struct explanation explanation;
};

/* --- decisions and VFs --- */

static bool is_pod(const struct question *q, const struct ledger_owner *o)
{
	return str_eq(o->ns, q->req->ns) && str_eq(o->pod, q->req->pod);
}

static struct chapter *add_chapter(struct question *q, const struct ledger_decision *d)
{
	struct chapter *c = &q->explanation.chapters[q->explanation.n_chapters++];

	*c = (struct chapter) { .d = d };
	c->holds = arena_array(q->arena, ledger_holds(q->ledger), sizeof(struct ledger_hold *));
	return c;
}

/* A decision with its present holds. */
static void add_decision(struct question *q, const struct ledger_decision *d)
{
	struct chapter *c = add_chapter(q, d);

	for (size_t i = 0; i < ledger_holds(q->ledger); i++) {
		const struct ledger_hold *h = ledger_hold_at(q->ledger, i);

		if (h->decision == d->number)
			c->holds[c->n_holds++] = h;
	}
}

static void add_hold(struct question *q, const struct ledger_hold *h)
{
	struct chapter *c = add_chapter(q, NULL);

	c->holds[c->n_holds++] = h;
}

static int explain_vf(struct question *q)
{
	const struct ledger_hold *h = ledger_find(q->ledger, q->req->vf);
	const struct ledger_decision *d = h ? ledger_decision(q->ledger, h->decision) : NULL;

	for (size_t i = ledger_decisions(q->ledger); !h && !d && i-- > 0;) {
		const struct ledger_decision *made = ledger_decision_at(q->ledger, i);

		if (list_has(made->chosen, made->n_chosen, q->req->vf))
			d = made;
	}
	if (d)
		add_decision(q, d);
	else if (h)
		add_hold(q, h);
	else
		return fail(EXIT_REFUSED,
			    "%s: no container holds it, and none of the %zu newest choices took it",
			    q->req->vf, ledger_decisions(q->ledger));
	return EXIT_DONE;
}

/* A pod without a record here: it was refused, waits for VFs, or runs elsewhere. Which pods hold
 * the VFs? */
static int explain_pools(struct question *q, const char *resource, int code)
{
	_cleanup_strbuf_ struct strbuf out = STRBUF_INIT;
	const struct item *answer;
	struct err err = { 0 };
	const char *text;

	if (pools_ask(q->req->source.socket, q->arena, &answer, &text, &err) < 0)
		return code == EXIT_DONE ? fail(EXIT_FAILED, "%s", err.msg) : code;
	if (q->req->json)
		strbuf_printf(&out, "%s\n", text);
	else if (!pools_text(answer, resource, &out))
		return fail(EXIT_REFUSED, "node %s has no pool %s", pools_node(answer), resource);
	print_out(&out);
	return code;
}

/* Shares of HCAs are no holds: the kubelet alone knows their containers. A daemon that is away or
 * has no shares adds nothing. */
static void find_shares(struct question *q)
{
	const struct item *answer, *list;
	_cleanup_strbuf_ struct strbuf out = STRBUF_INIT, objects = STRBUF_INIT;
	struct err err = { 0 };
	const char *text;
	struct json j;

	if (str_eq(q->req->source.socket, "none") ||
	    pools_ask(q->req->source.socket, q->arena, &answer, &text, &err) < 0)
		return;
	json_init(&j, &objects, 0);
	json_begin_array(&j);
	list = pools_list(answer, "shared");
	for (size_t i = 0; i < list->n_kids; i++)
		pools_put_shares(&list->kids[i], q->req->ns, q->req->pod, &out);
	for (size_t i = 0; i < list->n_kids; i++)
		pools_json_shares(&list->kids[i], q->req->ns, q->req->pod, &j);
	json_end_array(&j);
	q->explanation.shares_json = arena_strdup(q->arena, strbuf_str(&objects));
	q->explanation.shares = out.len ? arena_strdup(q->arena, out.s) : NULL;
}

static int explain_pod(struct question *q)
{
	find_shares(q);
	for (size_t i = 0; i < ledger_decisions(q->ledger); i++) {
		const struct ledger_decision *d = ledger_decision_at(q->ledger, i);
		bool held = false;

		for (size_t k = 0; !held && k < ledger_holds(q->ledger); k++) {
			const struct ledger_hold *h = ledger_hold_at(q->ledger, k);

			held = h->decision == d->number &&
			       (is_pod(q, &h->owner) || is_pod(q, &d->owner));
		}
		if (held)
			add_decision(q, d);
	}
	for (size_t i = 0; i < ledger_holds(q->ledger); i++) {
		const struct ledger_hold *h = ledger_hold_at(q->ledger, i);

		if (is_pod(q, &h->owner) && !ledger_decision(q->ledger, h->decision))
			add_hold(q, h);
	}
	if (!q->explanation.n_chapters) {
		const struct ledger_decision *d, *newest = NULL;

		/* The pod holds nothing any more: the choices for the newest pod of that name. */
		for (size_t i = ledger_decisions(q->ledger); !newest && i-- > 0;) {
			d = ledger_decision_at(q->ledger, i);
			newest = is_pod(q, &d->owner) ? d : NULL;
		}
		for (size_t i = 0; newest && i < ledger_decisions(q->ledger); i++) {
			d = ledger_decision_at(q->ledger, i);
			if (is_pod(q, &d->owner) && str_eq(d->owner.uid, newest->owner.uid))
				add_decision(q, d);
		}
	}
	if (q->explanation.n_chapters || q->explanation.shares)
		return EXIT_DONE;
	fail(0,
	     "pod %s/%s holds no VF on this node, and none of the %zu newest choices was for it: it was refused here, or it runs on another node (`kubectl railmate explain` finds it)",
	     q->req->ns, q->req->pod, ledger_decisions(q->ledger));
	return explain_pools(q, NULL, EXIT_REFUSED);
}

static int explain(struct question *q)
{
	size_t n = ledger_decisions(q->ledger), most = n + ledger_holds(q->ledger);

	q->explanation.chapters = arena_array(q->arena, most, sizeof(struct chapter));
	if (str_eq(q->req->what, "pod"))
		return explain_pod(q);
	if (str_eq(q->req->what, "vf"))
		return explain_vf(q);
	if (!n)
		return fail(EXIT_REFUSED, "no VF was given to a container yet");
	add_decision(q, ledger_decision_at(q->ledger, n - 1));
	return EXIT_DONE;
}

static int run(const struct request *req)
{
	_cleanup_strbuf_ struct strbuf out = STRBUF_INIT;
	_cleanup_arena_ struct arena *arena = arena_new(16384);
	struct question q = { .req = req, .arena = arena };
	struct ledger_answer answer = { 0 };
	struct err err = { 0 };
	int r;

	if (str_eq(req->what, "pool"))
		return explain_pools(&q, req->resource, EXIT_DONE);
	if (ask_ledger(&req->source, arena, &answer, &err) < 0)
		return fail(EXIT_FAILED, "%s", err.msg);
	q.ledger = answer.ledger;
	q.explanation.from = answer.from;
	q.explanation.running = answer.running;
	r = explain(&q);
	if (r == EXIT_DONE) {
		(req->json ? explain_json : explain_text)(&q.explanation, &out);
		r = print_out(&out);
	}
	ledger_free(q.ledger);
	return r;
}

/* --- command line --- */

static int read_pod(struct request *req, const char *name, struct arena *a)
{
	const char *slash = strchr(name, '/');

	if (!slash || slash == name || !slash[1] || strchr(slash + 1, '/'))
		return fail(EXIT_USAGE, "explain pod: '%s' is not NAMESPACE/NAME", name);
	req->ns = arena_printf(a, "%.*s", (int)(slash - name), name);
	req->pod = slash + 1;
	return EXIT_DONE;
}

static int read_vf(struct request *req, const char *name, struct arena *a)
{
	char buf[BDF_STRLEN];
	struct bdf bdf;

	if (bdf_parse(name, &bdf) < 0)
		return fail(EXIT_USAGE, "explain vf: '%s' is not a PCI address (dddd:bb:dd.f)",
			    name);
	req->vf = arena_strdup(a, bdf_format(bdf, buf));
	return EXIT_DONE;
}

static int read_last(struct request *req, const char *name, struct arena *a)
{
	(void)req;
	(void)name;
	(void)a;
	return EXIT_DONE;
}

static int read_pool(struct request *req, const char *name, struct arena *a)
{
	(void)a;
	req->resource = name;
	return EXIT_DONE;
}

static const struct subject {
	const char *name;
	int args, optional;
	int (*read)(struct request *req, const char *name, struct arena *a);
} subjects[] = {
	{ "pod", 1, 0, read_pod },
	{ "vf", 1, 0, read_vf },
	{ "last", 0, 0, read_last },
	{ "pool", 0, 1, read_pool },
};

static int read_subject(struct request *req, char **args, int n, struct arena *a)
{
	for (size_t i = 0; n && i < ARRAY_LEN(subjects); i++) {
		if (strcmp(args[0], subjects[i].name))
			continue;
		if (n < 1 + subjects[i].args || n > 1 + subjects[i].args + subjects[i].optional)
			break;
		req->what = subjects[i].name;
		return subjects[i].read(req, n > 1 ? args[1] : NULL, a);
	}
	return fail(
		EXIT_USAGE,
		"explain: expected `pod NAMESPACE/NAME`, `vf ADDRESS`, `pool [RESOURCE]` or `last`");
}

int cmd_explain(int argc, char **argv)
{
	struct request req = { .source = { CONTROL_SOCKET, STATE_DIR } };
	_cleanup_arena_ struct arena *a = arena_new(256);
	const struct word words[] = {
		{ "json", NULL, &req.json },
		{ "control-socket", &req.source.socket, NULL },
		{ "state-dir", &req.source.state_dir, NULL },
	};
	int r = read_options(argc, argv, words, ARRAY_LEN(words));

	if (r == EXIT_DONE)
		r = read_subject(&req, argv + optind, argc - optind, a);
	return r == EXIT_DONE ? run(&req) : r;
}
