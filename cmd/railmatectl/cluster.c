/* The commands of railmatectl cluster, and those that print a node's answer unchanged. */
#include "cluster.h"

#include <getopt.h>
#include <stdio.h>
#include <string.h>

#include "base/arena.h"
#include "base/mem.h"

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
	{ "doctor", cluster_merged }, { "verify", cluster_verify },
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
	return fail(EXIT_USAGE, "cluster: %s%s%s: status, topo, explain, doctor or verify",
		    *name ? "unknown command '" : "name a command", name, *name ? "'" : "");
}
