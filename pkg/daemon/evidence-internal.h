/*
 * What binding_decide() wants to know of this node, asked once at the start: is there a directory
 * of CDI specs that can be written, what do the container runtime and the kubelet say? What is not
 * answered within some seconds is not known, and is in the way.
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
/* A pool is late by it: has a CNI plugin come since that hands device ids on? A warning says so,
 * once. Cheap. [main thread] */
void evidence_ask_again(struct evidence *e);
void evidence_close(struct evidence *e); /* [rpc thread] */
/* When the loop is closed and the rpc thread has ended; NULL is fine */
void evidence_free(struct evidence *e);

#endif
