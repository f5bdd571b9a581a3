/*
 * What doctor finds on this node, for the page, the metrics and the feature file. It takes some 20
 * to 150 ms of a processor, so it is done on a thread that ends afterwards ("doctor"), some seconds
 * after the node began to be served, and again when its hardware is another one. Main thread.
 */
#ifndef RAILMATE_REPORT_FINDINGS_H
#define RAILMATE_REPORT_FINDINGS_H

#include "status/status.h"

struct arena;
struct findings;
struct node;
struct sysroot;
struct uv_loop_s;

/* Free with arena_free(r->arena). */
struct findings_report {
	struct arena *arena; /* this is in it, and what doctor points to */
	struct status_doctor doctor;
};

/* root is borrowed. found gets each report, for keeps. */
struct findings *findings_new(struct uv_loop_s *loop, const struct sysroot *root,
			      void (*found)(void *ctx, struct findings_report *report), void *ctx);
/* The newest node. Its hardware is its PCI functions, their drivers and the RDMA devices of PFs: a
 * link that goes down or a VF in a pod's network is nothing new. A node that pools are not meant
 * for is not looked at. NULL is fine, here and below. */
void findings_update(struct findings *f, const struct node *node);
/* Waits for the thread; ends everything on the loop, which has to run once more. */
void findings_close(struct findings *f);
void findings_free(struct findings *f);

#endif
