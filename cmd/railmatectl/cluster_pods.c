/* The pods of railmate in a cluster, one a node. */
#include <ctype.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "base/arena.h"
#include "base/mem.h"
#include "cluster.h"
#include "railmatectl.h"

#define NAME_MAX_BYTES 253

/*
 * A line a pod, as the whole objects of 1,000 pods would be 10 MB. What an object does not have is
 * empty (kubectl's jsonpath).
 */
#define CONTAINER_STATUS "{.status.containerStatuses[?(@.name==\"" CLUSTER_CONTAINER "\")]"

enum column { POD, NODE, PHASE, DELETED, READY, WAITING, COLUMNS };

static const char *const columns[COLUMNS] = {
	[POD] = "{.metadata.name}",	      [NODE] = "{.spec.nodeName}",
	[PHASE] = "{.status.phase}",	      [DELETED] = "{.metadata.deletionTimestamp}",
	[READY] = CONTAINER_STATUS ".ready}", [WAITING] = CONTAINER_STATUS ".state.waiting.reason}",
};

struct cluster_lines cluster_lines(const char *const *paths, int n, struct arena *a)
{
	_cleanup_strbuf_ struct strbuf args = STRBUF_INIT;
	struct cluster_lines lines = { .n = n };
	uint64_t random = 0;

	if (getrandom(&random, sizeof(random), 0) != sizeof(random))
		abort();
	lines.mark = arena_printf(a, "%016" PRIx64, random);
	strbuf_printf(&args, "jsonpath={range .items[*]}{\"%s\"}", lines.mark);
	for (int i = 0; i < n; i++)
		strbuf_printf(&args, "{\"\\t\"}%s", paths[i]);
	strbuf_puts(&args, "{\"\\n\"}{end}");
	lines.args = arena_strdup(a, strbuf_str(&args));
	return lines;
}

bool cluster_split(const struct cluster_lines *lines, char *line, char **cells)
{
	if (!str_eq(strsep(&line, "\t"), lines->mark))
		return false;
	for (int i = 0; i < lines->n; i++) {
		cells[i] = strsep(&line, "\t");
		if (!cells[i])
			return false;
	}
	return true;
}

bool cluster_is_name(const char *s)
{
	return isalnum((unsigned char)*s) && strlen(s) <= NAME_MAX_BYTES &&
	       !s[strspn(s, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-._")];
}

struct ranked {
	struct cluster_pod pod;
	int rank;
	bool stuck; /* it is to run, and its container does not come up */
};

static bool is_stuck(char *const *cells)
{
	const char *why = cells[WAITING];

	return *why && !*cells[DELETED] && strcmp(why, "ContainerCreating") != 0 &&
	       strcmp(why, "PodInitializing") != 0;
}

static int by_node(const void *a, const void *b)
{
	const struct ranked *x = a, *y = b;
	int r = cluster_node_cmp(x->pod.node, y->pod.node);

	if (r == 0)
		r = x->rank - y->rank;
	return r ? r : strcmp(x->pod.name, y->pod.name);
}

/* Those that are none of ours are left out; room is for one a line. */
static size_t read_lines(const struct cluster_lines *lines, char *text, struct arena *a,
			 struct ranked **ret)
{
	char *cells[COLUMNS], *line;
	const char *trouble;
	struct ranked *pods;
	size_t n = 1;

	for (const char *p = text; *p; p++)
		n += *p == '\n';
	*ret = pods = xcalloc(n, sizeof(*pods));
	n = 0;
	while ((line = strsep(&text, "\n"))) {
		if (!cluster_split(lines, line, cells) || !cluster_is_name(cells[POD]) ||
		    !cluster_is_name(cells[NODE]))
			continue;
		trouble = NULL;
		if (strcmp(cells[PHASE], "Running") != 0)
			trouble = arena_printf(a, "its pod %s is %s%s%s", cells[POD],
					       *cells[PHASE] ? cells[PHASE] : "of no phase",
					       *cells[WAITING] ? ": " : "", cells[WAITING]);
		else if (*cells[WAITING])
			trouble = arena_printf(a, "its pod %s does not run: %s", cells[POD],
					       cells[WAITING]);
		pods[n].pod = (struct cluster_pod) { arena_strdup(a, cells[NODE]),
						     arena_strdup(a, cells[POD]), trouble, NULL };
		pods[n].stuck = is_stuck(cells);
		/* Which pod of a node is asked: one that runs, that stays, that is ready. */
		pods[n].rank = (trouble ? 4 : 0) + (*cells[DELETED] ? 2 : 0) +
			       (strcmp(cells[READY], "true") != 0 ? 1 : 0);
		n++;
	}
	return n;
}

int cluster_pods(const struct kubectl *k, const char *ns, struct arena *a, struct cluster_pod **ret,
		 size_t *ret_n)
{
	const struct cluster_lines lines = cluster_lines(columns, COLUMNS, a);
	const char *const args[] = { "get",	    "pods", "-n",	ns,  "-l",
				     CLUSTER_LABEL, "-o",   lines.args, NULL };
	struct ranked *pods = NULL;
	size_t n, kept = 0;
	_cleanup_(kubectl_call_done) struct kubectl_call call = { .args = args };
	_cleanup_strbuf_ struct strbuf why = STRBUF_INIT;

	kubectl_run_one(k, &call);
	if (call.status != 0) {
		kubectl_put_why(&call, &why);
		return fail(EXIT_FAILED, "kubectl get pods: %s", strbuf_str(&why));
	}
	n = call.out.len ? read_lines(&lines, call.out.s, a, &pods) : 0;
	if (n)
		qsort(pods, n, sizeof(*pods), by_node);
	*ret = arena_array(a, n, sizeof(**ret));
	for (size_t i = 0; i < n; i++) {
		if (i == 0 || strcmp(pods[i].pod.node, pods[i - 1].pod.node) != 0)
			(*ret)[kept++] = pods[i].pod;
		else if (pods[i].stuck)
			(*ret)[kept - 1].beside = pods[i].pod.trouble;
	}
	*ret_n = kept;
	free(pods);
	return EXIT_DONE;
}

const char *const *cluster_exec(const struct cluster_pod *pod, const char *ns,
				const char *const *args, struct arena *a)
{
	const char *const first[] = { "exec", "-n",	    ns, pod->name, "-c", CLUSTER_CONTAINER,
				      "--",   "railmatectl" };
	const char **all;
	size_t n = 0;

	while (args[n])
		n++;
	all = arena_array(a, ARRAY_LEN(first) + n + 1, sizeof(*all));
	memcpy(all, first, sizeof(first));
	memcpy(all + ARRAY_LEN(first), args, n * sizeof(*args));
	return all;
}
