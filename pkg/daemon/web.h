/*
 * What is seen from outside, over HTTP: /metrics, /healthz, /readyz. The text is made on the thread
 * of the server (web/web.h). The rpc thread only copies what it knows, when somebody asks and not
 * more often than once a second; one that does not answer within a quarter of a second holds up
 * nobody: the text then has what was known before, and its age.
 */
#ifndef RAILMATE_DAEMON_WEB_H
#define RAILMATE_DAEMON_WEB_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct daemon_facts;
struct daemon_web;
struct findings_report;
struct rpc;
struct sysroot;
struct uv_loop_s;
struct watchdog;

struct daemon_web_env {
	struct uv_loop_s *loop;
	struct rpc *rpc;
	const struct sysroot *root;
	const struct watchdog *watchdog; /* does everybody answer? */
	const char *address;		 /* of --metrics-address, a right one */
	/* On the rpc thread; known as for daemon_facts_new(). */
	struct daemon_facts *(*facts)(void *ctx, uint64_t known);
	void *ctx;
};

/* Where the address cannot be had, for instance because another railmated has not ended yet, that
 * is one warning, and it is tried again every two seconds. What env points to outlives it. Main
 * thread, as all below. */
struct daemon_web *daemon_web_open(const struct daemon_web_env *env);
/* NULL is fine for all of these. */
void daemon_web_note_scan(struct daemon_web *w, int64_t ns, bool ok);
/* What is in use, with so many errors; refused: why the files, as they are now, are not, one error
 * a line; NULL: they are. */
void daemon_web_note_config(struct daemon_web *w, uint64_t generation, size_t errors,
			    const char *refused);
/* report is taken. */
void daemon_web_note_doctor(struct daemon_web *w, struct findings_report *report);
/* Ends everything on the loop, which has to run once more; before rpc_stop(). */
void daemon_web_close(struct daemon_web *w);
void daemon_web_free(struct daemon_web *w); /* when the loop has run, after rpc_stop() */

#endif
