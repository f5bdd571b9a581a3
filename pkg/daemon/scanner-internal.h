/*
 * The newest node: made of the machine and the configuration, at the start and whenever something
 * changed. The kernel's events, links that degrade and the safety net begin a scan; a scan that
 * fails leaves the node as it is. Main thread.
 */
#ifndef RAILMATE_DAEMON_SCANNER_INTERNAL_H
#define RAILMATE_DAEMON_SCANNER_INTERNAL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct config;
struct err;
struct node;
struct node_seed;
struct scanner;
struct state;
struct sysroot;
struct unlisted;
struct uv_loop_s;

/* All borrowed. */
struct scanner_env {
	struct uv_loop_s *loop;
	const struct sysroot *root;
	const char *run_dir;				 /* of links_new(); NULL: none */
	const struct state *state;			 /* its seeds are in the first node */
	struct unlisted *unlisted;			 /* its devices are in all further nodes */
	void (*scanned)(void *ctx, int64_t ns, bool ok); /* after each scan: how long it took */
	void (*came)(void *ctx);			 /* scanner_node() is another one */
	void (*looked)(void *ctx);			 /* after each scanner_again() */
	void *ctx;
};

/* A reference to cfg is taken. */
struct scanner *scanner_new(const struct scanner_env *env, struct config *cfg);
/* Watches for changes from now on. Events of this machine do not concern a tree below another root:
 * there, only scanner_again() and the timer find them. rescan_seconds is for the log. */
void scanner_watch(struct scanner *s, unsigned rescan_seconds);
/* No other railmated serves any more: links_keep(). */
void scanner_keep_links(struct scanner *s);
int scanner_scan(struct scanner *s, struct err *err);
/* Something may have changed. A failure is logged. */
void scanner_again(struct scanner *s);
/* The safety net is for nodes with something to lose: the first VF of another one comes with an
 * event. */
void scanner_tick(struct scanner *s);
/* A node of another configuration, which is in use from then on; held: all that containers hold.
 * cfg is taken, also where that fails. */
int scanner_adopt(struct scanner *s, struct config *cfg, const struct node_seed *held, size_t n,
		  struct err *err);
/* Another configuration (taken) while nothing is offered yet; the node is forgotten. */
void scanner_replace(struct scanner *s, struct config *cfg);
void scanner_forget(struct scanner *s);
struct node *scanner_node(const struct scanner *s); /* NULL: none yet */
struct config *scanner_config(const struct scanner *s);
void scanner_free(struct scanner *s); /* when the loop is closed; NULL is fine */

#endif
