/* railmatectl cluster, which is also `kubectl railmate`: the nodes of a cluster, by kubectl. */
#include "cluster.h"

#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/mem.h"

static const struct {
	const char *name;
	int (*run)(int argc, char **argv);
} commands[] = {
	{ "status", cluster_status }, { "topo", cluster_topo },	    { "explain", cluster_explain },
	{ "doctor", cluster_doctor }, { "verify", cluster_verify },

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
	if (*name)
		return fail(
			EXIT_USAGE,
			"cluster: unknown command '%s': status, topo, explain, doctor or verify",
			name);
	return fail(EXIT_USAGE, "cluster: name a command: status, topo, explain, doctor or verify");
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

/* --- topo and explain: as if it had been asked there --- */

static int print_answer(const struct cluster_pod *pod, struct kubectl_call *call)
{
	_cleanup_strbuf_ struct strbuf why = STRBUF_INIT;

	if (!kubectl_has_run(call)) {
		kubectl_put_why(call, &why);
		return fail(EXIT_FAILED, "node %s: %s", pod->node, strbuf_str(&why));
	}
	kubectl_print_error(call);
	return print_out(&call->out) == EXIT_DONE ? call->status : EXIT_FAILED;
}

/* On c->nodes. The lowest exit status of several: it is there somewhere. */
static int ask_there(struct cluster *c, const char *const *args, struct arena *a)
{
	struct kubectl_call *calls, *ended;
	struct cluster_pod *pods;
	size_t n, asked = 0;
	int least = -1, r = cluster_find(c, a, &pods, &n);

	if (r != EXIT_DONE)
		return r;
	calls = arena_array(a, n, sizeof(*calls));
	ended = arena_array(a, n, sizeof(*ended));
	for (size_t i = 0; i < n; i++) {
		if (!pods[i].trouble)
			calls[asked++].args = cluster_exec(&pods[i], c->ns, args, a);
	}
	kubectl_run(&c->k, calls, asked, kubectl_keep, ended);
	asked = 0;
	for (size_t i = 0; i < n; i++) {
		if (n > 1)
			fprintf(stderr, "--- node %s\n", pods[i].node);
		r = pods[i].trouble
			    ? fail(EXIT_FAILED, "node %s: %s", pods[i].node, pods[i].trouble)
			    : print_answer(&pods[i], &ended[asked]);
		if (!pods[i].trouble)
			kubectl_call_done(&ended[asked++]);
		least = least < 0 || r < least ? r : least;
	}
	return least;
}

int cluster_topo(int argc, char **argv)
{
	struct cluster c = CLUSTER_INIT;
	bool svg = false, xml = false, rccl = false, wide = false;
	const struct word words[] = {
		CLUSTER_WORDS(&c),	   { "svg", .flag = &svg },   { "nccl-xml", .flag = &xml },
		{ "rccl", .flag = &rccl }, { "wide", .flag = &wide },
	};
	_cleanup_arena_ struct arena *a = arena_new(16384);
	const char *args[8] = { "topo" };
	size_t n = 1;
	int r = cluster_read(&c, argc, argv, words, ARRAY_LEN(words), 1, 1);

	if (r != EXIT_DONE)
		return r;
	for (size_t i = 0; i < ARRAY_LEN(words); i++) {
		if (words[i].flag && *words[i].flag)
			args[n++] = arena_printf(a, "--%s", words[i].name);
	}
	c.nodes = argv[optind];
	return ask_there(&c, args, a);
}

/* Where the pod is: what `explain` there needs. Of one that is gone, all nodes may know. */
static int find_pod(struct cluster *c, const char *pod, const char **ns, struct arena *a)
{
	const char *const args[] = {
		"get",
		"pod",
		pod,
		"-o",
		"jsonpath={.metadata.namespace}{\"\\t\"}{.spec.nodeName}{\"\\t\"}{.status.conditions[?(@.type==\"PodScheduled\")].message}",
		*ns ? "-n" : NULL,
		*ns,
		NULL
	};
	_cleanup_(kubectl_call_done) struct kubectl_call call = { .args = args };
	_cleanup_strbuf_ struct strbuf why = STRBUF_INIT;
	char *text;

	kubectl_run_one(&c->k, &call);
	if (call.status != 0) {
		kubectl_put_why(&call, &why);
		if (call.status != 1 || !strstr(strbuf_str(&why), "NotFound"))
			return fail(EXIT_FAILED, "kubectl get pod %s: %s", pod, strbuf_str(&why));
		if (*ns)
			return EXIT_DONE;
		return fail(EXIT_REFUSED,
			    "kubectl get pod %s: %s; one that is gone: name it NAMESPACE/POD", pod,
			    strbuf_str(&why));
	}
	text = arena_strdup(a, strbuf_str(&call.out));
	*ns = strsep(&text, "\t");
	c->nodes = strsep(&text, "\t");
	if (!c->nodes || !cluster_is_name(*ns) || (*c->nodes && !cluster_is_name(c->nodes)))
		return fail(EXIT_FAILED, "kubectl get pod %s: its answer names no node", pod);
	if (!*c->nodes)
		return fail(EXIT_REFUSED, "pod %s/%s is on no node yet%s%s", *ns, pod,
			    text && *text ? ": " : "", text ? text : "");
	return EXIT_DONE;
}

static int explain_pod(struct cluster *c, const char *name, const char *ns, struct arena *a)
{
	const char *pod = name, *slash = strchr(name, '/');
	int r;

	if (slash && !ns) {
		ns = arena_printf(a, "%.*s", (int)(slash - pod), pod);
		pod = slash + 1;
	}
	if (!*pod || *pod == '-' || strchr(pod, '/') || (ns && !*ns))
		return fail(EXIT_USAGE, "cluster explain: '%s' is not POD or NAMESPACE/POD", name);
	r = find_pod(c, pod, &ns, a);
	if (r != EXIT_DONE)
		return r;
	return ask_there(c,
			 (const char *[]) { "explain", "pod", arena_printf(a, "%s/%s", ns, pod),
					    c->json ? "--json" : NULL, NULL },
			 a);
}

/* The words of `explain`, and a pod's name alone. */
int cluster_explain(int argc, char **argv)
{
	struct cluster c = CLUSTER_INIT;
	const char *ns = NULL, *what, *name, *args[5] = { "explain" };
	const struct word words[] = { CLUSTER_WORDS(&c),
				      { "namespace", .value = &ns },
				      { "node", .value = &c.nodes } };
	_cleanup_arena_ struct arena *a = arena_new(16384);
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
		return explain_pod(&c, name ? name : what, ns, a);
	for (int i = optind; i < argc; i++)
		args[n++] = argv[i];
	args[n] = c.json ? "--json" : NULL;
	return ask_there(&c, args, a);
}

/* --- many nodes --- */

int cluster_find(const struct cluster *c, struct arena *a, struct cluster_pod **ret, size_t *ret_n)
{
	struct cluster_pod *pods, *kept;
	size_t n, n_kept = 0;
	int r = cluster_pods(&c->k, c->ns, a, &pods, &n);

	if (r != EXIT_DONE)
		return r;
	if (!n)
		return fail(EXIT_REFUSED,
			    "no railmate pod (label " CLUSTER_LABEL
			    ") is in namespace %s; --railmate-namespace names another one",
			    c->ns);
	if (c->nodes) {
		kept = arena_array(a, n + strlen(c->nodes) + 1, sizeof(*kept));
		for (size_t i = 0; i < n; i++) {
			size_t len = strlen(pods[i].node);
			const char *at = c->nodes;

			while (at &&
			       (strncmp(at, pods[i].node, len) || (at[len] && at[len] != ',')))
				at = strchr(at, ',') ? strchr(at, ',') + 1 : NULL;
			if (at)
				kept[n_kept++] = pods[i];
		}
		/* A name that no pod is on gets a row of its own, that says so. */
		n = n_kept;
		for (char *save, *name = strtok_r(arena_strdup(a, c->nodes), ",", &save); name;
		     name = strtok_r(NULL, ",", &save)) {
			bool there = false;

			for (size_t i = 0; i < n; i++)
				there |= !strcmp(kept[i].node, name);
			if (!there)
				kept[n++] = (struct cluster_pod) {
					.node = name,
					.trouble = arena_printf(a, "no railmate pod is on it"),
				};
		}
		pods = kept;
	}
	if (!n)
		return fail(EXIT_USAGE, "--node: no name is given");
	*ret = pods;
	*ret_n = n;
	return EXIT_DONE;
}

struct asking {
	const struct cluster_pod **pods; /* of each call */
	cluster_answer_fn fn;
	void *arg;
};

static void take_answer(void *arg, struct kubectl_call *call, size_t i)
{
	const struct asking *asking = arg;
	_cleanup_strbuf_ struct strbuf why = STRBUF_INIT;

	if (call->status >= 0 && call->out.len) {
		asking->fn(asking->arg, asking->pods[i]->node, call->out.s, call->out.len, NULL);
		return;
	}
	kubectl_put_why(call, &why);
	asking->fn(asking->arg, asking->pods[i]->node, NULL, 0, strbuf_str(&why));
}

void cluster_ask(const struct cluster *c, const struct cluster_pod *pods, size_t n,
		 const char *const *args, size_t most, cluster_answer_fn fn, void *arg)
{
	_cleanup_arena_ struct arena *a = arena_new(64 * 1024);
	struct kubectl_call *calls = arena_array(a, n, sizeof(*calls));
	struct asking asking = { arena_array(a, n, sizeof(*asking.pods)), fn, arg };
	size_t n_calls = 0;

	for (size_t i = 0; i < n; i++) {
		if (pods[i].trouble) {
			fn(arg, pods[i].node, NULL, 0, pods[i].trouble);
			continue;
		}
		asking.pods[n_calls] = &pods[i];
		calls[n_calls].args = cluster_exec(&pods[i], c->ns, args, a);
		calls[n_calls++].most = most;
	}
	kubectl_run(&c->k, calls, n_calls, take_answer, &asking);
}
