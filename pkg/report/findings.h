/*
 * The doctor's findings on this node, for the page, the metrics and the feature file: `railmatectl
 * doctor` is run (report/child.h) some seconds after the node began to be served, and again when
 * its hardware is another one. Main thread.
 */
#ifndef RAILMATE_REPORT_FINDINGS_H
#define RAILMATE_REPORT_FINDINGS_H

#include "report/child.h"
#include "status/status.h"

struct arena;
struct err;
struct findings;
struct node;
struct uv_loop_s;

/* Free with arena_free(r->arena). */
struct findings_report {
	struct arena *arena; /* holds this struct, and all that doctor points to */
	struct status_doctor doctor;
};

struct findings_env {
	struct uv_loop_s *loop;
	struct child_machine machine;
	const char *program; /* railmatectl; NULL: child_program() */
	/* Gets each report, for keeps; of a run that came to nothing one with a failure. */
	void (*found)(void *ctx, struct findings_report *report);
	void *ctx;
};

/* All that env points to outlives it. */
struct findings *findings_new(const struct findings_env *env);
/* The newest node. Its hardware is its PCI functions, their drivers and the RDMA devices of PFs: a
 * link that goes down or a VF in a pod's network is nothing new. A node that pools are not meant
 * for is not looked at. NULL is fine, here and below. */
void findings_update(struct findings *f, const struct node *node);
/* Ends everything on the loop, which has to run once more. */
void findings_close(struct findings *f);
void findings_free(struct findings *f);

/* The report of `railmatectl doctor --json`. -EINVAL, with a sentence: it is none. */
int findings_read(const char *text, size_t len, struct findings_report **ret, struct err *err);

#endif
