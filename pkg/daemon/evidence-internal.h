/*
 * The facts of this node for binding_decide(), asked once at the start: the directory of CDI specs
 * (can it be written?), the container runtime, the kubelet. A question without an answer for some
 * seconds is an obstacle.
 */
#ifndef RAILMATE_DAEMON_EVIDENCE_INTERNAL_H
#define RAILMATE_DAEMON_EVIDENCE_INTERNAL_H

struct binding_facts;
struct daemon_options;
struct evidence;
struct podres;
struct rpc;
struct uv_loop_s;

/* All borrowed. open_podres: the client of PodResources, opened if it is not [rpc thread]; it is
 * closed after evidence_close(). done: once, on the main thread, after the return, unless
 * everything is known by then. The handle goes with the loop's others. [main thread] */
struct evidence *evidence_new(struct uv_loop_s *loop, struct rpc *rpc,
			      const struct daemon_options *opt,
			      struct podres *(*open_podres)(void *ctx), void (*done)(void *ctx),
			      void *ctx);
const struct binding_facts *
evidence_facts(const struct evidence *e); /* NULL: not all is known yet [main thread] */
/* A pool is late by this evidence: has a CNI plugin come since that hands device ids on? A warning,
 * once. Cheap. [main thread] */
void evidence_ask_again(struct evidence *e);
void evidence_close(struct evidence *e); /* [rpc thread] */
/* When the loop is closed and the rpc thread has ended; NULL is fine */
void evidence_free(struct evidence *e);

#endif
