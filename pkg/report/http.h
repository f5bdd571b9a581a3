/*
 * Views of the daemon over HTTP: /metrics, /healthz, /readyz, the page. No view delays the service
 * of the kubelet. The text is made on the thread of the server (report/web.h). The rpc thread only
 * copies its facts, on a request, once a second at most; where it does not answer within a quarter
 * of a second, the text has the facts of before, and their age.
 */
#ifndef RAILMATE_REPORT_HTTP_H
#define RAILMATE_REPORT_HTTP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct config;
struct config_files;
struct report_facts;
struct report_http;
struct findings_report;
struct rpc;
struct sysroot;
struct uv_loop_s;

struct report_http_env {
	struct uv_loop_s *loop;
	struct rpc *rpc;
	const struct sysroot *root;
	const char *address; /* of --metrics-address, a right one */
	/* Where railmatectl finds the facts for its picture of the machine; of picture.h. */
	const char *root_path, *control_socket, *state_dir;
	const struct config_files *files;
	/* The thread that has not answered for so long; NULL: all do. [any thread] */
	const char *(*silent)(void *ctx, unsigned ms);
	/* To be freed by report_facts_free(). known: the generation of the ledger that we have;
	 * UINT64_MAX: none. [rpc thread] */
	struct report_facts *(*facts)(void *ctx, uint64_t known);
	bool (*waits)(void *ctx); /* for the end of another railmated, which has the address */
	void *ctx;
};

/* Where the address cannot be had, it is tried again every two seconds, after one warning, unless
 * another railmated has to end before. All that env points to outlives it. Main thread, as all
 * below. */
struct report_http *report_http_open(const struct report_http_env *env);
/* NULL is fine for all of these. */
void report_http_note_scan(struct report_http *w, int64_t ns, bool ok);
/* cfg: the one in use; refused: why the files, as they are now, are not, one error a line; NULL:
 * they are. */
void report_http_note_config(struct report_http *w, uint64_t generation, const struct config *cfg,
			     const char *refused);
/* report is taken. */
void report_http_note_doctor(struct report_http *w, struct findings_report *report);
/* Ends everything on the loop, which has to run once more; before rpc_stop(). */
void report_http_close(struct report_http *w);
void report_http_free(struct report_http *w); /* when the loop has run, after rpc_stop() */

#endif
