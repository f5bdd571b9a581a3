/*
 * `railmatectl cluster`, which is also `kubectl railmate`: each command runs the node's own
 * `railmatectl … --json` in the railmate pods of the nodes, many at once, and merges the answers.
 * cluster.c finds and asks the pods, and has the commands that print one node's answer unchanged;
 * the other files have the commands of their names.
 */
#ifndef RAILMATE_CMD_CLUSTER_H
#define RAILMATE_CMD_CLUSTER_H

#include <stdbool.h>
#include <stddef.h>

#include "kubectl.h"
#include "railmatectl.h"

struct arena;
struct err;
struct item;

/* A node's pod of railmate: of the two during an update, the one that can be asked. */
struct cluster_pod {
	const char *node, *name;
	const char *trouble; /* why it cannot be asked, a sentence without a full stop; NULL */
	const char *beside;  /* likewise: a newer pod of the node does not come up; NULL */
	int rank;	     /* of the pods of a node, the lowest is asked */
	bool stuck;	     /* it is to run, and its container does not come up */
};

struct cluster {
	struct kubectl k;
	const char *ns;	   /* of railmate's pods */
	const char *nodes; /* --node: names with commas; NULL: every node */
	bool json;
	const char *parallel, *timeout; /* as they were written */
	bool merged;			/* the answers are small and many */
	struct arena *arena;
	/* cluster_ask(): a pod a node, by name, and the call to each */
	struct cluster_pod *pods; /* heap */
	struct kubectl_call *calls;
	size_t n, cap;
};
#define CLUSTER_INIT                                                                               \
	{                                                                                          \
		.k = { .parallel = KUBECTL_PARALLEL, .timeout_s = KUBECTL_TIMEOUT_S },             \
		.ns = "kube-system", .arena = arena_new(64 * 1024)                                 \
	}
#define _cleanup_cluster_ __attribute__((cleanup(cluster_done)))
#define CLUSTER_WORDS(c)                                                                           \
	{ "context", .value = &(c)->k.context }, { "kubeconfig", .value = &(c)->k.kubeconfig },    \
		{ "railmate-namespace", .value = &(c)->ns },                                       \
		{ "parallel", .value = &(c)->parallel }, { "timeout", .value = &(c)->timeout },    \
	{                                                                                          \
		"json", .flag = &(c)->json                                                         \
	}
/* read_options(), and checks of the numbers. least, most: of words that are not options. An exit
 * code. */
int cluster_read(struct cluster *c, int argc, char **argv, const struct word *words, size_t n,
		 int least, int most);

/*
 * Runs railmatectl with these args, NULL or not, in the pods of c->ns on c->nodes only; a node that
 * cannot be asked has a call with no status, and why. An exit code: EXIT_REFUSED, there is no pod
 * at all; a sentence was printed.
 */
#define CLUSTER_ARGS 8
int cluster_ask(struct cluster *c, const char *const args[CLUSTER_ARGS]);
void cluster_done(struct cluster *c);
/* The node's answer, as JSON; NULL: there is none, and err is one line. */
const struct item *cluster_answer(const struct cluster *c, size_t i, struct arena *a,
				  struct err *err);
/* A copy in one printable line; NULL of NULL. */
const char *cluster_own(const char *text, struct arena *a);
/* All answers as one, text or JSON; the exit code is that of the worst. */
int cluster_merge_status(const struct cluster *c, struct strbuf *out);
int cluster_merge_doctor(const struct cluster *c, struct strbuf *out);
/* Of railmate-probe in pods by name: one alone, or each client and behind it its server. */
int cluster_merge_probe(const struct cluster *c, struct strbuf *out);

/* fn gets of each pod the columns (paths in jsonpath's own syntax, NULL at the end, the pod's name
 * first, texts of other authors last); a missing value is "". ns and selector may be NULL. An exit
 * code; a sentence was printed. */
#define CLUSTER_COLUMNS_MAX 16
int cluster_list_pods(const struct kubectl *k, const char *ns, const char *selector,
		      const char *const *columns, void (*fn)(void *arg, char **cells), void *arg);
/* The labels that a job's controller puts on its pods, as columns: Job and JobSet (Kubernetes 1.27
 * and later, before), JobSet, MPIJob, PyTorchJob …, LeaderWorkerSet. */
#define CLUSTER_JOB_LABEL(name) "{.metadata.labels." name "}"
#define CLUSTER_JOB_LABELS                                                                         \
	CLUSTER_JOB_LABEL("batch\\.kubernetes\\.io/job-name"), CLUSTER_JOB_LABEL("job-name"),      \
		CLUSTER_JOB_LABEL("jobset\\.sigs\\.k8s\\.io/jobset-name"),                         \
		CLUSTER_JOB_LABEL("training\\.kubeflow\\.org/job-name"),                           \
		CLUSTER_JOB_LABEL("leaderworkerset\\.sigs\\.k8s\\.io/name")
/* Does one of the cells of these columns name the job? */
bool cluster_is_of_job(char **labels, const char *job);
/* A name of Kubernetes, which begins with a letter or digit: no option of kubectl does. */
bool cluster_is_name(const char *s);
/* gpu-9 comes before gpu-10. */
int cluster_node_cmp(const char *a, const char *b);
/* "gpu-[001-016], login" of n names in that order; some of them, then "and N more". */
void cluster_put_nodes(const char *const *nodes, size_t n, struct strbuf *out);

int cluster_probe(int argc, char **argv);
int cluster_verify(int argc, char **argv);

#endif
