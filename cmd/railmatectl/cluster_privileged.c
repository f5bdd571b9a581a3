/*
 * railmatectl cluster doctor --privileged: doctor in a short-lived pod on each node, with
 * CAP_SYS_ADMIN. All pods are made by one kubectl, watched by one a second, their logs are the
 * answers, and one more deletes them by their label: also after an interrupt. Should that fail,
 * they end by themselves (activeDeadlineSeconds), and a sentence says how to remove them.
 */
#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/arena.h"
#include "base/clock.h"
#include "base/json.h"
#include "base/mem.h"
#include "cluster.h"
#include "cluster_doctor.h"

#define NAME	  "railmate-doctor"
#define RUN_LABEL "railmate.io/run"
#define SPARE_S	  60 /* of a pod's life, beyond the time that we wait for it */

enum state { NOT_MADE, WAITS, ENDED };

struct doctor_pod {
	const struct cluster_pod *pod;
	const char *name; /* of our pod; NULL: none is made there */
	enum state state;
	const char *why; /* what its status says; NULL */
};

struct doctor_pods {
	const struct cluster *c;
	struct arena *arena;
	struct reports *reports;
	struct doctor_pod *v;
	size_t n;
	const char *run, *selector;
	bool interrupted;
};

/* --- signals --- */

static volatile sig_atomic_t interrupted;

static void on_signal(int sig)
{
	(void)sig;
	interrupted = 1;
}

static const int caught[] = { SIGINT, SIGTERM, SIGHUP, SIGPIPE };

/* As long as pods of ours may be there, nothing ends us. */
static void catch_signals(struct sigaction before[])
{
	interrupted = 0;
	for (size_t i = 0; i < ARRAY_LEN(caught); i++) {
		struct sigaction action = { .sa_handler =
						    caught[i] == SIGPIPE ? SIG_IGN : on_signal };

		sigaction(caught[i], &action, &before[i]);
	}
}

static void give_back_signals(const struct sigaction before[])
{
	for (size_t i = 0; i < ARRAY_LEN(caught); i++)
		sigaction(caught[i], &before[i], NULL);
}

static bool is_over(struct doctor_pods *b)
{
	b->interrupted |= interrupted;
	return b->interrupted;
}

/* --- the pods --- */

static void put_list(struct json *j, const char *key, const char *const *v)
{
	json_key(j, key);
	json_begin_array(j);
	for (; *v; v++)
		json_put_string(j, *v);
	json_end_array(j);
}

static void put_spec(const struct doctor_pods *b, const struct doctor_pod *doctor_pod,
		     const char *const *args, struct json *j)
{
	json_key(j, "spec");
	json_begin_object(j);
	json_kv_string(j, "nodeName", doctor_pod->pod->node);
	json_kv_string(j, "restartPolicy", "Never");
	json_kv_bool(j, "hostNetwork", true);
	json_kv_bool(j, "automountServiceAccountToken", false);
	json_kv_bool(j, "enableServiceLinks", false);
	json_kv_int(j, "activeDeadlineSeconds", (int64_t)b->c->k.timeout_s + SPARE_S);
	json_kv_int(j, "terminationGracePeriodSeconds", 0);
	json_key(j, "tolerations");
	json_begin_array(j);
	json_begin_object(j);
	json_kv_string(j, "operator", "Exists");
	json_end_object(j);
	json_end_array(j);
	json_key(j, "containers");
	json_begin_array(j);
	/* As the DaemonSet's container, but for one capability more. Without requests: a node that
	 * is full takes it, too. */
	json_begin_object(j);
	json_kv_string(j, "name", CLUSTER_CONTAINER);
	json_kv_string(j, "image", doctor_pod->pod->image);
	json_kv_string(j, "imagePullPolicy", "IfNotPresent");
	put_list(j, "command", (const char *[]) { "/usr/bin/railmatectl", NULL });
	put_list(j, "args", args);
	json_key(j, "securityContext");
	json_begin_object(j);
	json_kv_int(j, "runAsUser", 0);
	json_kv_int(j, "runAsGroup", 0);
	json_kv_bool(j, "readOnlyRootFilesystem", true);
	json_key(j, "capabilities");
	json_begin_object(j);
	put_list(j, "drop", (const char *[]) { "ALL", NULL });
	put_list(j, "add", (const char *[]) { "SYS_ADMIN", NULL });
	json_end_object(j);
	json_end_object(j);
	json_end_object(j);
	json_end_array(j);
	json_end_object(j);
}

static void put_manifest(const struct doctor_pods *b, const char *const *args, struct strbuf *out)
{
	struct json j;

	json_init(&j, out, 0);
	json_begin_object(&j);
	json_kv_string(&j, "apiVersion", "v1");
	json_kv_string(&j, "kind", "List");
	json_key(&j, "items");
	json_begin_array(&j);
	for (size_t i = 0; i < b->n; i++) {
		if (!b->v[i].name)
			continue;
		json_begin_object(&j);
		json_kv_string(&j, "apiVersion", "v1");
		json_kv_string(&j, "kind", "Pod");
		json_key(&j, "metadata");
		json_begin_object(&j);
		json_kv_string(&j, "name", b->v[i].name);
		json_key(&j, "labels");
		json_begin_object(&j);
		json_kv_string(&j, "app.kubernetes.io/name", NAME);
		json_kv_string(&j, RUN_LABEL, b->run);
		json_end_object(&j);
		json_end_object(&j);
		put_spec(b, &b->v[i], args, &j);
		json_end_object(&j);
	}
	json_end_array(&j);
	json_end_object(&j);
}

/* --- making them --- */

/* The line of kubectl's complaints that names the pod. */
static const char *complaint_about(const struct doctor_pods *b, const char *complaints,
				   const char *name)
{
	const char *quoted = arena_printf(b->arena, "\"%s\"", name);

	for (const char *line = complaints; line; line = str_next_line(line)) {
		const char *found = strstr(line, quoted);
		size_t len = strcspn(line, "\n");

		if (found && found < line + len)
			return arena_printf(b->arena, "no pod could be made: %.*s", (int)len, line);
	}
	return NULL;
}

/* kubectl makes the others when one is refused. Those that it does not complain of are looked for.
 */
static int make(struct doctor_pods *b, const char *const *args)
{
	const char *const create[] = { "create", "-n", b->c->ns, "-f", "-", NULL };
	_cleanup_strbuf_ struct strbuf manifest = STRBUF_INIT, why = STRBUF_INIT;
	_cleanup_(kubectl_call_done) struct kubectl_call call = { .args = create };
	struct kubectl k = b->c->k;

	put_manifest(b, args, &manifest);
	call.input = strbuf_str(&manifest);
	k.timeout_s += (unsigned)b->n / 10;
	b->interrupted |= !kubectl_run_one(&k, &call);
	for (size_t i = 0; i < b->n && call.status != 0; i++) {
		if (b->v[i].name)
			b->v[i].why = complaint_about(b, strbuf_str(&call.err), b->v[i].name);
	}
	if (call.status == 0 || call.out.len || b->interrupted)
		return EXIT_DONE;
	for (size_t i = 0; i < b->n; i++) {
		if (b->v[i].why)
			return EXIT_DONE;
	}
	kubectl_put_why(&call, &why);
	return fail(EXIT_FAILED, "kubectl create: %s", strbuf_str(&why));
}

/* --- waiting for them --- */

enum column { POD, PHASE, WAITING, REASON, MESSAGE, COLUMNS };

static const char *const columns[COLUMNS] = {
	[POD] = "{.metadata.name}",
	[PHASE] = "{.status.phase}",
	[WAITING] = "{.status.containerStatuses[?(@.name==\"" CLUSTER_CONTAINER
		    "\")].state.waiting.reason}",
	[REASON] = "{.status.reason}",
	[MESSAGE] = "{.status.message}",
};

static void take_line(struct doctor_pods *b, const struct cluster_lines *lines, char *line)
{
	char *cells[COLUMNS], *dash;
	struct doctor_pod *doctor_pod;
	uint64_t i;

	if (!cluster_split(lines, line, cells))
		return;
	dash = strrchr(cells[POD], '-');
	if (!dash || str_to_u64(dash + 1, 10, b->n - 1, &i) < 0 ||
	    !str_eq(b->v[i].name, cells[POD]))
		return;
	doctor_pod = &b->v[i];
	doctor_pod->state = !strcmp(cells[PHASE], "Succeeded") || !strcmp(cells[PHASE], "Failed")
				    ? ENDED
				    : WAITS;
	doctor_pod->why = arena_printf(b->arena, "its pod %s is %s%s%s%s%s%s%s", doctor_pod->name,
				       *cells[PHASE] ? cells[PHASE] : "of no phase",
				       *cells[WAITING] ? ": " : "", cells[WAITING],
				       *cells[REASON] ? ": " : "", cells[REASON],
				       *cells[MESSAGE] ? ": " : "", cells[MESSAGE]);
}

/* True: each one that is there has ended. */
static bool look(struct doctor_pods *b)
{
	const struct cluster_lines lines = cluster_lines(columns, COLUMNS, b->arena);
	const char *const get[] = { "get",	 "pods", "-n",	     b->c->ns, "-l",
				    b->selector, "-o",	 lines.args, NULL };
	_cleanup_(kubectl_call_done) struct kubectl_call call = { .args = get };
	char *text, *line;

	b->interrupted |= !kubectl_run_one(&b->c->k, &call);
	if (call.status != 0)
		return false; /* the next one may */
	text = call.out.len ? call.out.s : NULL;
	while ((line = strsep(&text, "\n")))
		take_line(b, &lines, line);
	for (size_t i = 0; i < b->n; i++) {
		if (b->v[i].state == WAITS)
			return false;
	}
	return true;
}

/* --- what they said --- */

struct reading {
	struct doctor_pods *doctor_pods;
	struct doctor_pod **of; /* each call */
};

static void take_log(void *arg, struct kubectl_call *call, size_t i)
{
	const struct reading *r = arg;
	const struct doctor_pod *doctor_pod = r->of[i];
	const char *report = NULL, *end = NULL;
	size_t len;

	/* A log has both outputs. The report is one object whose first and last lines are its
	 * brackets, and notes are lines of their own. */
	for (const char *line = strbuf_str(&call->out); line; line = str_next_line(line)) {
		if (*line == '{' && !report)
			report = line;
		if (*line == '}')
			end = line + 1;
	}
	len = report && end > report ? (size_t)(end - report) : 0;
	if (call->status == 0 && len)
		reports_add(r->doctor_pods->reports, doctor_pod->pod->node, report, len, NULL);
	else
		reports_add(r->doctor_pods->reports, doctor_pod->pod->node, NULL, 0,
			    call->status < 0 ? call->why : doctor_pod->why);
}

static void read_answers(struct doctor_pods *b)
{
	struct kubectl_call *calls = arena_array(b->arena, b->n, sizeof(*calls));
	struct reading reading = { b, arena_array(b->arena, b->n, sizeof(*reading.of)) };
	size_t n = 0;

	for (size_t i = 0; i < b->n; i++) {
		const struct doctor_pod *doctor_pod = &b->v[i];
		const char *why = doctor_pod->why, **args;

		if (!doctor_pod->name)
			why = doctor_pod->pod->trouble ? doctor_pod->pod->trouble
						       : "the image of its pod is not known";
		else if (!why)
			why = b->interrupted ? "interrupted" : "its pod was not made";
		if (doctor_pod->state != ENDED) {
			reports_add(b->reports, doctor_pod->pod->node, NULL, 0, why);
			continue;
		}
		args = arena_array(b->arena, 5, sizeof(*args));
		args[0] = "logs";
		args[1] = "-n";
		args[2] = b->c->ns;
		args[3] = b->v[i].name;
		reading.of[n] = &b->v[i];
		calls[n].most = CLUSTER_ANSWER_MAX;
		calls[n++].args = args;
	}
	kubectl_run(&b->c->k, calls, n, take_log, &reading);
}

/* Of our own run only, by its label. */
static void clean_up(const struct doctor_pods *b)
{
	const char *const del[] = {
		"delete",	"pods", "-n", b->c->ns, "-l", b->selector, "--ignore-not-found",
		"--wait=false", NULL
	};
	_cleanup_(kubectl_call_done) struct kubectl_call call = { .args = del };
	_cleanup_strbuf_ struct strbuf why = STRBUF_INIT;
	struct kubectl k = b->c->k;

	k.must_finish = true;
	k.timeout_s += SPARE_S + (unsigned)b->n / 10;
	kubectl_run_one(&k, &call);
	if (call.status == 0)
		return;
	kubectl_put_why(&call, &why);
	fail(0,
	     "the pods that doctor ran in could not be deleted: %s; do it by: kubectl delete pods -n %s -l %s",
	     strbuf_str(&why), b->c->ns, b->selector);
}

int reports_of_privileged(const struct cluster *c, const struct cluster_pod *pods, size_t n,
			  const char *const *args, struct reports *reports)
{
	_cleanup_arena_ struct arena *a = arena_new(64 * 1024);
	struct doctor_pods b = { .c = c, .arena = a, .reports = reports };
	struct sigaction before[ARRAY_LEN(caught)];
	int r;

	/* A number of this run that no other one has, now. */
	b.run = arena_printf(b.arena, "%" PRIx64 "-%x", (uint64_t)clock_wall_ms(),
			     (unsigned)getpid());
	b.selector = arena_printf(b.arena, RUN_LABEL "=%s", b.run);
	b.v = arena_array(b.arena, n, sizeof(*b.v));
	b.n = n;
	for (size_t i = 0; i < n; i++) {
		b.v[i].pod = &pods[i];
		if (pods[i].image && *pods[i].image)
			b.v[i].name = arena_printf(b.arena, NAME "-%s-%zu", b.run, i);
	}
	catch_signals(before);
	r = make(&b, args);
	if (r == EXIT_DONE) {
		int64_t end_ms = clock_mono_ms() + (int64_t)b.c->k.timeout_s * 1000;

		while (!is_over(&b) && !look(&b) && !is_over(&b) && clock_mono_ms() < end_ms)
			poll(NULL, 0, 1000);
		read_answers(&b);
	}
	clean_up(&b);
	give_back_signals(before);
	return r;
}
