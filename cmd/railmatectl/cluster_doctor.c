/* railmatectl cluster doctor: every node's findings in one report. */
#include "cluster_doctor.h"

#include "base/arena.h"
#include "base/mem.h"
#include "base/str.h"
#include "cluster.h"

#define HOW_TO_KNOW                                                                                \
	"ACS, relaxed ordering and payload sizes are in the PCI configuration space, which takes CAP_SYS_ADMIN. The DaemonSet does not have it. On one node: kubectl debug node/NODE -it --profile=sysadmin --image=REGISTRY/railmate -- railmatectl doctor"

static void take(void *arg, const char *node, const char *text, size_t len, const char *why)
{
	reports_add(arg, node, text, len, why);
}

static int run(const struct cluster *c, const char *only, struct reports *reports)
{
	const char *const args[] = { "doctor", "--json", only ? "--only" : NULL, only, NULL };
	struct cluster_pod *pods;
	bool unknown = false;
	size_t n;
	int r = cluster_find(c, reports->arena, &pods, &n);
	_cleanup_strbuf_ struct strbuf out = STRBUF_INIT;

	if (r != EXIT_DONE)
		return r;
	cluster_ask(c, pods, n, args, CLUSTER_ANSWER_MAX, take, reports);
	reports_sort(reports);
	for (size_t i = 0; i < reports->n; i++)
		unknown = unknown || reports->findings[i].verdict == DIAGNOSIS_UNKNOWN;
	if (c->json)
		reports_json(reports, &out);
	else
		reports_text(reports, unknown ? HOW_TO_KNOW : NULL, &out);
	r = print_out(&out);
	return r == EXIT_DONE ? doctor_codes[reports_verdict(reports)] : r;
}

int cluster_doctor(int argc, char **argv)
{
	struct cluster c = CLUSTER_INIT;
	const char *only = NULL;
	const struct word words[] = {
		CLUSTER_WORDS(&c),
		{ "node", .value = &c.nodes },
		{ "only", .value = &only },
	};
	_cleanup_arena_ struct arena *a = arena_new(64 * 1024);
	_cleanup_(reports_done) struct reports reports = { .arena = a };
	int r = cluster_read(&c, argc, argv, words, ARRAY_LEN(words), 0, 0);

	return r == EXIT_DONE ? run(&c, only, &reports) : r;
}
