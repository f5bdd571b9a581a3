/* What the files of `railmatectl cluster` share: which pods of railmate there are, and asking them.
 */
#ifndef RAILMATE_CMD_CLUSTER_H
#define RAILMATE_CMD_CLUSTER_H

#include <stdbool.h>
#include <stddef.h>

#include "kubectl.h"
#include "railmatectl.h"

struct arena;

#define CLUSTER_LABEL	  "app.kubernetes.io/name=railmate"
#define CLUSTER_NAMESPACE "kube-system"
#define CLUSTER_CONTAINER "railmated"
/* Bytes of a node's answer: as a tree it takes 80 times as much at worst. doctor's is 210 KB on a
 * node of 1,016 VFs. */
#define CLUSTER_ANSWER_MAX (1u << 20)

/* A node's pod of railmate: the one that can be asked, where an update has two of them there. */
struct cluster_pod {
	const char *node, *name;
	const char *trouble; /* why it cannot be asked, a sentence without a full stop; NULL */
	const char *beside;  /* likewise: a newer pod of the node does not come up; NULL */
};

/* Every node's, by the names of the nodes, in the arena. An exit code; a sentence was printed. */
int cluster_pods(const struct kubectl *k, const char *ns, struct arena *a, struct cluster_pod **ret,
		 size_t *ret_n);
/* "exec … -- railmatectl" with args (NULL at the end), for kubectl_call.args; in the arena. */
const char *const *cluster_exec(const struct cluster_pod *pod, const char *ns,
				const char *const *args, struct arena *a);
/*
 * What kubectl prints of each pod: a line of cells. A text that others wrote can hold tabs and line
 * feeds, so such columns come last, and every line begins with a word that is new each time.
 */
struct cluster_lines {
	const char *args; /* jsonpath, for kubectl's -o */
	const char *mark;
	int n;
};
/* columns: paths, in jsonpath's own syntax; in the arena. */
struct cluster_lines cluster_lines(const char *const *columns, int n, struct arena *a);
/* A line into its cells, in place; false: it is none. */
bool cluster_split(const struct cluster_lines *lines, char *line, char **cells);
/* A name of Kubernetes, which begins with a letter or digit: what kubectl takes for an option is
 * none.
 */
bool cluster_is_name(const char *s);
/* gpu-9 comes before gpu-10. */
int cluster_node_cmp(const char *a, const char *b);

/* --- what every subcommand reads --- */

struct cluster {
	struct kubectl k;
	const char *ns;	   /* of railmate's pods */
	const char *nodes; /* --node: of those names only, with commas; NULL: every one */
	bool json;
	const char *parallel, *timeout; /* as they were written */
};
#define CLUSTER_INIT                                                                               \
	{                                                                                          \
		.k = { .parallel = KUBECTL_PARALLEL, .timeout_s = KUBECTL_TIMEOUT_S },             \
		.ns = CLUSTER_NAMESPACE                                                            \
	}
#define CLUSTER_WORDS(c)                                                                           \
	{ "context", .value = &(c)->k.context }, { "kubeconfig", .value = &(c)->k.kubeconfig },    \
		{ "railmate-namespace", .value = &(c)->ns },                                       \
		{ "parallel", .value = &(c)->parallel }, { "timeout", .value = &(c)->timeout },    \
	{                                                                                          \
		"json", .flag = &(c)->json                                                         \
	}
/* read_options(), and numbers that make sense. n_args: how many words that are not options there
 * may be, at least and at most. An exit code. */
int cluster_read(struct cluster *c, int argc, char **argv, const struct word *words, size_t n,
		 int least, int most);

/* One answer of a node: what the command printed on standard output; or text NULL, and why there is
 * none. */
typedef void (*cluster_answer_fn)(void *arg, const char *node, const char *text, size_t len,
				  const char *why);
/* The pods of c->ns, of the nodes c->nodes only; for one that is named and has none, trouble says
 * so. EXIT_REFUSED: there is none at all. */
int cluster_find(const struct cluster *c, struct arena *a, struct cluster_pod **ret, size_t *ret_n);
/* railmatectl with these args in each of them; most: bytes of an answer. An answer of any exit
 * status counts if it says something on standard output. */
void cluster_ask(const struct cluster *c, const struct cluster_pod *pods, size_t n,
		 const char *const *args, size_t most, cluster_answer_fn fn, void *arg);

/* "gpu-[001-016,020], login" of n names in the order of cluster_node_cmp(); at most so many parts,
 * then "and N more". */
void cluster_put_nodes(const char *const *nodes, size_t n, size_t parts, struct strbuf *out);

int cluster_status(int argc, char **argv);
int cluster_topo(int argc, char **argv);
int cluster_explain(int argc, char **argv);
int cluster_doctor(int argc, char **argv);
int cluster_verify(int argc, char **argv);

#endif
