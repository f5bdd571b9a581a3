/* What doctor found on many nodes: findings of one kind together, the worst first. */
#ifndef RAILMATE_CMD_CLUSTER_DOCTOR_H
#define RAILMATE_CMD_CLUSTER_DOCTOR_H

#include <stddef.h>

#include "diagnosis/diagnosis.h"

struct arena;
struct strbuf;

/* Of one node. Strings are of the reports, equal ones are one. */
struct report_finding {
	enum diagnosis_verdict verdict;
	const char *check, *title, *sentence, *meaning, *fix[DIAGNOSIS_PLATFORM_MAX];
	const char *node;
	size_t order; /* of the check, as doctor prints them; unknown ones last */
};

struct report_silent {
	const char *node, *why;
};

struct reports {
	struct arena *arena;
	struct report_finding *findings; /* but for PASS */
	size_t n, cap;
	const char **nodes; /* that answered */
	size_t n_nodes, cap_nodes;
	struct report_silent *silent;
	size_t n_silent, cap_silent;
	void *strings; /* tsearch(3): each of them once */
};

/* text: what `doctor --json` printed on that node; NULL: why there is none. */
void reports_add(struct reports *reports, const char *node, const char *text, size_t len,
		 const char *why);
void reports_done(struct reports *reports);
void reports_sort(struct reports *reports);
enum diagnosis_verdict
reports_verdict(const struct reports *reports); /* a silent node is UNKNOWN */
/* Sorted. advice: what to do where something is unknown; NULL. */
void reports_text(const struct reports *reports, const char *advice, struct strbuf *out);
void reports_json(const struct reports *reports, struct strbuf *out);

#endif
