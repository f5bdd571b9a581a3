/* The commands of railmatectl cluster, the railmate pods of the nodes, and questions to them; short
 * lists of node names. */
#include "cluster.h"

#include <ctype.h>
#include <errno.h>
#include <getopt.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "base/arena.h"
#include "base/err.h"
#include "base/mem.h"
#include "document/document.h"

#define LABEL	       "app.kubernetes.io/name=railmate"
#define CONTAINER      "railmated"
#define NAME_MAX_BYTES 253
#define DIGITS_MAX     9
#define PARTS_MAX      8 /* of a list of nodes */
/* Bytes of a node's answer: as a tree it takes 80 times as much at worst. doctor's is 210 KB on a
 * node of 1,016 VFs. */
#define ANSWER_MAX (1u << 20)

/* --- kubectl's list of pods --- */

bool cluster_is_name(const char *s)
{
	return isalnum((unsigned char)*s) && strlen(s) <= NAME_MAX_BYTES &&
	       !s[strspn(s, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-._")];
}

bool cluster_is_of_job(char **labels, const char *job)
{
	static const char *const all[] = { CLUSTER_JOB_LABELS };

	for (size_t i = 0; i < ARRAY_LEN(all); i++) {
		if (!strcmp(labels[i], job))
			return true;
	}
	return false;
}

/*
 * A line a pod, as the whole objects of 1,000 pods would be 10 MB. A text of another author can
 * hold tabs and line feeds, so every line begins with a word that is new each time.
 */
int cluster_list_pods(const struct kubectl *k, const char *ns, const char *selector,
		      const char *const *columns, void (*fn)(void *arg, char **cells), void *arg)
{
	_cleanup_strbuf_ struct strbuf path = STRBUF_INIT, mark = STRBUF_INIT;
	char *cells[CLUSTER_COLUMNS_MAX], *text, *line;
	_cleanup_(kubectl_call_done) struct kubectl_call call = { 0 };
	uint64_t random = 0;
	size_t n = 0, got;

	if (getrandom(&random, sizeof(random), 0) != sizeof(random))
		abort();
	strbuf_printf(&mark, "%016" PRIx64, random);
	strbuf_printf(&path, "jsonpath={range .items[*]}{\"%s\"}", mark.s);
	while (columns[n])
		strbuf_printf(&path, "{\"\\t\"}%s", columns[n++]);
	strbuf_puts(&path, "{\"\\n\"}{end}");
	call = (struct kubectl_call) { .args = { "get", "pods", ns ? "-n" : NULL, ns,
						 selector ? "-l" : NULL, selector, "-o", path.s } };
	kubectl_run(k, &call, 1);
	if (call.status != 0)
		return fail(EXIT_FAILED, "kubectl get pods: %s", call.why);
	for (text = call.out.s; (line = strsep(&text, "\n"));) {
		if (!str_eq(strsep(&line, "\t"), mark.s))
			continue;
		for (got = 0; got < n && (cells[got] = strsep(&line, "\t")); got++)
			;
		if (got == n && cluster_is_name(cells[0]))
			fn(arg, cells);
	}
	return EXIT_DONE;
}

/* --- the pods of the nodes --- */

#define CONTAINER_STATUS "{.status.containerStatuses[?(@.name==\"" CONTAINER "\")]"

enum column { POD, NODE, PHASE, DELETED, READY, WAITING, COLUMNS };

static const char *const columns[COLUMNS + 1] = {
	[POD] = "{.metadata.name}",	      [NODE] = "{.spec.nodeName}",
	[PHASE] = "{.status.phase}",	      [DELETED] = "{.metadata.deletionTimestamp}",
	[READY] = CONTAINER_STATUS ".ready}", [WAITING] = CONTAINER_STATUS ".state.waiting.reason}",
};

static int by_node(const void *a, const void *b)
{
	const struct cluster_pod *x = a, *y = b;
	int r = cluster_node_cmp(x->node, y->node);

	if (r == 0)
		r = x->rank - y->rank;
	return r ? r : strcmp(x->name, y->name);
}

static void add_pod(struct cluster *c, struct cluster_pod pod)
{
	c->pods = xgrow(c->pods, &c->cap, c->n + 1, sizeof(*c->pods));
	c->pods[c->n++] = pod;
}

static void read_pod(void *arg, char **cells)
{
	struct cluster *c = arg;
	const char *why = cells[WAITING], *trouble = NULL;

	if (strcmp(cells[PHASE], "Running") != 0)
		trouble = arena_printf(c->arena, "its pod %s is %s%s%s", cells[POD],
				       *cells[PHASE] ? cells[PHASE] : "of no phase",
				       *why ? ": " : "", why);
	else if (*why)
		trouble = arena_printf(c->arena, "its pod %s does not run: %s", cells[POD], why);
	if (cluster_is_name(cells[NODE]))
		add_pod(c, (struct cluster_pod) {
				   .node = arena_strdup(c->arena, cells[NODE]),
				   .name = arena_strdup(c->arena, cells[POD]),
				   .trouble = trouble,
				   /* Running, then staying, then ready pods. */
				   .rank = (trouble ? 4 : 0) + (*cells[DELETED] ? 2 : 0) +
					   (strcmp(cells[READY], "true") != 0 ? 1 : 0),
				   .stuck = *why && !*cells[DELETED] &&
					    strcmp(why, "ContainerCreating") != 0 &&
					    strcmp(why, "PodInitializing") != 0,
			   });
}

/* One pod a node; a name of --node without a pod gets an entry with that trouble. */
static int find_pods(struct cluster *c)
{
	int r = cluster_list_pods(&c->k, c->ns, LABEL, columns, read_pod, c);
	char *names = arena_printf(c->arena, ",%s,", c->nodes ? c->nodes : ""), *name, *save;
	size_t all = c->n, i;

	if (r == EXIT_DONE && !all)
		r = fail(EXIT_REFUSED,
			 "no railmate pod (label " LABEL
			 ") is in namespace %s; --railmate-namespace names another one",
			 c->ns);
	if (r != EXIT_DONE)
		return r;
	qsort(c->pods, all, sizeof(*c->pods), by_node);
	for (c->n = i = 0; i < all; i++) {
		struct cluster_pod *last = c->n ? &c->pods[c->n - 1] : NULL;
		_cleanup_free_ char *listed = xasprintf(",%s,", c->pods[i].node);

		if (c->nodes && !strstr(names, listed))
			continue;
		if (!last || strcmp(last->node, c->pods[i].node) != 0)
			c->pods[c->n++] = c->pods[i];
		else if (c->pods[i].stuck)
			last->beside = c->pods[i].trouble;
	}
	for (name = strtok_r(names, ",", &save); name; name = strtok_r(NULL, ",", &save)) {
		for (i = 0; i < c->n && strcmp(c->pods[i].node, name) != 0; i++)
			;
		if (i == c->n)
			add_pod(c, (struct cluster_pod) { .node = name,
							  .trouble = "no railmate pod is on it" });
	}
	return c->n ? EXIT_DONE : fail(EXIT_USAGE, "--node: no name is given");
}

/* --- questions --- */

int cluster_ask(struct cluster *c, const char *const args[CLUSTER_ARGS])
{
	int r = find_pods(c);

	if (r != EXIT_DONE)
		return r;
	c->calls = arena_array(c->arena, c->n, sizeof(*c->calls));
	for (size_t i = 0; i < c->n; i++) {
		struct kubectl_call *call = &c->calls[i];

		if (c->pods[i].trouble) {
			snprintf(call->why, sizeof(call->why), "%s", c->pods[i].trouble);
			continue;
		}
		*call = (struct kubectl_call) { .args = { "exec", "-n", c->ns, c->pods[i].name,
							  "-c", CONTAINER, "--", "railmatectl" },
						.most = c->merged ? ANSWER_MAX : 0 };
		memcpy(call->args + 8, args, CLUSTER_ARGS * sizeof(*args));
	}
	kubectl_run(&c->k, c->calls, c->n);
	return EXIT_DONE;
}

void cluster_done(struct cluster *c)
{
	for (size_t i = 0; c->calls && i < c->n; i++)
		kubectl_call_done(&c->calls[i]);
	arena_free(c->arena);
	free(c->pods);
}

/* --- answers --- */

const struct item *cluster_answer(const struct cluster *c, size_t i, struct arena *a,
				  struct err *err)
{
	const struct kubectl_call *call = &c->calls[i];
	const struct item *top = NULL;

	if (call->status < 0 || !call->out.len)
		err_set(err, EIO, "%s", call->why);
	else if (document_parse(call->out.s, call->out.len, "its answer", a, &top, err) < 0)
		top = NULL;
	str_printable(err->msg, strlen(err->msg), "");
	return top;
}

const char *cluster_own(const char *text, struct arena *a)
{
	char *copy = arena_strdup(a, text);

	if (copy)
		str_printable(copy, strlen(copy), "");
	return copy;
}

/* --- names of nodes --- */

int cluster_node_cmp(const char *a, const char *b)
{
	int r = strverscmp(a, b);

	return r ? r : strcmp(a, b);
}

/* The begin and end of a name's number, the last of its first label: 23 of
 * "ip-10-0-1-23.ec2.internal". More than DIGITS_MAX digits are none. */
static size_t find_number(const char *name, size_t *ret_end)
{
	size_t end = strcspn(name, "."), begin;

	while (end && !isdigit((unsigned char)name[end - 1]))
		end--;
	for (begin = end; begin && isdigit((unsigned char)name[begin - 1]); begin--)
		;
	*ret_end = end;
	return end - begin > DIGITS_MAX ? end : begin;
}

/* Is b the name a with the next number? 10 follows 09, as it does 9. */
static bool is_next(const char *a, const char *b)
{
	size_t end, begin = find_number(a, &end);
	_cleanup_free_ char *next = xasprintf("%.*s%0*lu%s", (int)begin, a, (int)(end - begin),
					      strtoul(a + begin, NULL, 10) + 1, a + end);

	return begin < end && !strcmp(next, b);
}

void cluster_put_nodes(const char *const *nodes, size_t n, struct strbuf *out)
{
	for (size_t i = 0, last, part = 0; i < n; i = last + 1, part++) {
		size_t end, begin = find_number(nodes[i], &end), last_end;

		if (part == PARTS_MAX) {
			strbuf_printf(out, " and %zu more", n - i);
			return;
		}
		for (last = i; last + 1 < n && is_next(nodes[last], nodes[last + 1]); last++)
			;
		strbuf_puts(out, part ? ", " : "");
		if (last == i) {
			strbuf_puts(out, nodes[i]);
			continue;
		}
		find_number(nodes[last], &last_end);
		strbuf_printf(out, "%.*s[%.*s-%.*s]%s", (int)begin, nodes[i], (int)(end - begin),
			      nodes[i] + begin, (int)(last_end - begin), nodes[last] + begin,
			      nodes[i] + end);
	}
}

/* --- options --- */

static int read_number(const char *text, const char *option, uint64_t most, unsigned *ret)
{
	uint64_t n;

	if (!text)
		return EXIT_DONE;
	if (str_to_u64(text, 10, most, &n) < 0 || n < 1)
		return fail(EXIT_USAGE, "--%s: '%s' is not a number from 1 to %llu", option, text,
			    (unsigned long long)most);
	*ret = (unsigned)n;
	return EXIT_DONE;
}

int cluster_read(struct cluster *c, int argc, char **argv, const struct word *words, size_t n,
		 int least, int most)
{
	const char *command = strrchr(argv[0], ' ') + 1;
	int r = read_options(argc, argv, words, n), args = argc - optind;

	if (r == EXIT_DONE)
		r = read_number(c->parallel, "parallel", KUBECTL_PARALLEL_MAX, &c->k.parallel);
	if (r == EXIT_DONE)
		r = read_number(c->timeout, "timeout", KUBECTL_TIMEOUT_MAX_S, &c->k.timeout_s);
	if (r != EXIT_DONE)
		return r;
	if (args > most)
		return fail(EXIT_USAGE, "cluster %s takes no argument '%s'", command,
			    argv[optind + most]);
	if (args < least)
		return fail(EXIT_USAGE, "cluster %s: name the %s", command,
			    !strcmp(command, "topo")	 ? "node"
			    : !strcmp(command, "verify") ? "job, or its pods by -l"
							 : "pod");
	return EXIT_DONE;
}

/* --- topo and explain: run on the node --- */

/* On c->nodes. Of several exit statuses the lowest: one node has the answer. */
static int ask_there(struct cluster *c, const char *const args[CLUSTER_ARGS])
{
	int least = -1, r = cluster_ask(c, args);

	for (size_t i = 0; r == EXIT_DONE && i < c->n; i++) {
		struct kubectl_call *call = &c->calls[i];
		bool ran = kubectl_has_run(call);
		int status = ran ? call->status : EXIT_FAILED;

		if (c->n > 1)
			fprintf(stderr, "--- node %s\n", c->pods[i].node);
		if (!ran)
			fail(EXIT_FAILED, "node %s: %s", c->pods[i].node, call->why);
		else
			kubectl_print_error(call);
		if (ran && print_out(&call->out) != EXIT_DONE)
			status = EXIT_FAILED;
		least = least < 0 || status < least ? status : least;
	}
	return r == EXIT_DONE ? least : r;
}

static int cluster_topo(int argc, char **argv)
{
	_cleanup_cluster_ struct cluster c = CLUSTER_INIT;
	bool svg = false, xml = false, rccl = false, wide = false;
	const struct word words[] = {
		CLUSTER_WORDS(&c),	   { "svg", .flag = &svg },   { "nccl-xml", .flag = &xml },
		{ "rccl", .flag = &rccl }, { "wide", .flag = &wide },
	};
	const char *args[CLUSTER_ARGS] = { "topo" };
	size_t n = 1;
	int r = cluster_read(&c, argc, argv, words, ARRAY_LEN(words), 1, 1);

	if (r != EXIT_DONE)
		return r;
	for (size_t i = 0; i < ARRAY_LEN(words); i++) {
		if (words[i].flag && *words[i].flag)
			args[n++] = arena_printf(c.arena, "--%s", words[i].name);
	}
	c.nodes = argv[optind];
	return ask_there(&c, args);
}

/* Sets the pod's node and namespace, for `explain` there. Of a gone pod, all nodes may know. */
static int find_pod(struct cluster *c, const char *pod, const char **ns)
{
	_cleanup_(kubectl_call_done) struct kubectl_call call = {
		.args = { "get", "pod", pod, *ns ? "-n" : NULL, *ns, "-o",
			  "jsonpath={.metadata.namespace}{\"\\t\"}{.spec.nodeName}{\"\\t\"}{.status.conditions[?(@.type==\"PodScheduled\")].message}" }
	};
	char *text;

	kubectl_run(&c->k, &call, 1);
	if (call.status == 1 && *ns && strstr(call.why, "NotFound"))
		return EXIT_DONE;
	if (call.status == 1 && strstr(call.why, "NotFound"))
		return fail(EXIT_REFUSED,
			    "kubectl get pod %s: %s; one that is gone: name it NAMESPACE/POD", pod,
			    call.why);
	if (call.status != 0)
		return fail(EXIT_FAILED, "kubectl get pod %s: %s", pod, call.why);
	text = arena_strdup(c->arena, strbuf_str(&call.out));
	*ns = strsep(&text, "\t");
	c->nodes = strsep(&text, "\t");
	if (!c->nodes || !cluster_is_name(*ns) || (*c->nodes && !cluster_is_name(c->nodes)))
		return fail(EXIT_FAILED, "kubectl get pod %s: its answer names no node", pod);
	if (!*c->nodes)
		return fail(EXIT_REFUSED, "pod %s/%s is on no node yet%s%s", *ns, pod,
			    text && *text ? ": " : "", text ? text : "");
	return EXIT_DONE;
}

static int explain_pod(struct cluster *c, const char *name, const char *ns)
{
	const char *pod = name, *slash = strchr(name, '/');
	int r;

	if (slash && !ns) {
		ns = arena_printf(c->arena, "%.*s", (int)(slash - pod), pod);
		pod = slash + 1;
	}
	if (!*pod || *pod == '-' || strchr(pod, '/') || (ns && !*ns))
		return fail(EXIT_USAGE, "cluster explain: '%s' is not POD or NAMESPACE/POD", name);
	r = find_pod(c, pod, &ns);
	if (r != EXIT_DONE)
		return r;
	return ask_there(c, (const char *[CLUSTER_ARGS]) { "explain", "pod",
							   arena_printf(c->arena, "%s/%s", ns, pod),
							   c->json ? "--json" : NULL });
}

/* The words of `explain`, or a pod's name alone. */
static int cluster_explain(int argc, char **argv)
{
	_cleanup_cluster_ struct cluster c = CLUSTER_INIT;
	const char *ns = NULL, *what, *name, *args[CLUSTER_ARGS] = { "explain" };
	const struct word words[] = { CLUSTER_WORDS(&c),
				      { "namespace", .value = &ns },
				      { "node", .value = &c.nodes } };
	int r = cluster_read(&c, argc, argv, words, ARRAY_LEN(words), 1, 2), n = 1;
	bool other;

	if (r != EXIT_DONE)
		return r;
	what = argv[optind];
	name = argc - optind > 1 ? argv[optind + 1] : NULL;
	other = !strcmp(what, "pool") || !strcmp(what, "last") || (!strcmp(what, "vf") && name);
	if (!other && c.nodes)
		return fail(EXIT_USAGE,
			    "cluster explain: a pod's node is found by the pod: no --node");
	if (!other && name && strcmp(what, "pod") != 0)
		return fail(EXIT_USAGE, "cluster explain takes no argument '%s'", name);
	if (!other)
		return explain_pod(&c, name ? name : what, ns);
	for (int i = optind; i < argc; i++)
		args[n++] = argv[i];
	args[n] = c.json ? "--json" : NULL;
	return ask_there(&c, args);
}

/* --- status and doctor: all answers as one --- */

static int cluster_merged(int argc, char **argv)
{
	_cleanup_cluster_ struct cluster c = CLUSTER_INIT;
	_cleanup_strbuf_ struct strbuf out = STRBUF_INIT;
	bool status = !strcmp(strrchr(argv[0], ' '), " status"), no_doctor = false;
	const char *only = NULL;
	const struct word words[] = {
		CLUSTER_WORDS(&c),
		{ "node", .value = &c.nodes },
		status ? (struct word) { "no-doctor", .flag = &no_doctor }
		       : (struct word) { "only", .value = &only },
	};
	int r = cluster_read(&c, argc, argv, words, ARRAY_LEN(words), 0, 0), code;

	c.merged = true;
	if (r == EXIT_DONE)
		r = cluster_ask(&c, (const char *[CLUSTER_ARGS]) { status ? "status" : "doctor",
								   "--json",
								   no_doctor ? "--no-doctor" : NULL,
								   only ? "--only" : NULL, only });
	if (r != EXIT_DONE)
		return r;
	code = (status ? cluster_merge_status : cluster_merge_doctor)(&c, &out);
	r = print_out(&out);
	return r == EXIT_DONE ? code : r;
}

/* --- the command --- */

static const struct {
	const char *name;
	int (*run)(int argc, char **argv);
} commands[] = {
	{ "status", cluster_merged }, { "topo", cluster_topo },	    { "explain", cluster_explain },
	{ "doctor", cluster_merged }, { "verify", cluster_verify }, { "probe", cluster_probe },
};

int cmd_cluster(int argc, char **argv)
{
	const char *name = argc > 1 ? argv[1] : "";
	_cleanup_free_ char *shown = xasprintf("railmatectl: cluster %s", name);

	for (size_t i = 0; i < ARRAY_LEN(commands); i++) {
		if (strcmp(name, commands[i].name) != 0)
			continue;
		argv[1] = shown;
		return commands[i].run(argc - 1, argv + 1);
	}
	return fail(EXIT_USAGE, "cluster: %s%s%s: status, topo, explain, doctor, verify or probe",
		    *name ? "unknown command '" : "name a command", name, *name ? "'" : "");
}
