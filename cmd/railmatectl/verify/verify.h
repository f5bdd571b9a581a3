/*
 * The proof, by NCCL's or RCCL's own log, of the network that a job used. Bytes of any log go in,
 * in pieces of any size, from any number of sources one after the other; one verdict comes out. The
 * memory is bounded by the limits below, for any input. Pure: reads no file. One thread.
 */
#ifndef RAILMATE_VERIFY_VERIFY_H
#define RAILMATE_VERIFY_VERIFY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct err;
struct strbuf;
struct verify;

#define VERIFY_MAX_LINE 16384 /* the rest of a longer line is skipped */
/* Of all processes together, and as many processes; more are counted only. */
#define VERIFY_MAX_GPUS 4096
#define VERIFY_MAX_DEVS 64 /* of a process */

enum verdict {
	VERDICT_PASS,
	VERDICT_NOGDR,
	VERDICT_WARN,
	VERDICT_FAIL,
	VERDICT_INCONCLUSIVE,
	VERDICT_MAX
};

struct verify *verify_new(void);
void verify_freep(struct verify **v); /* of NULL is fine */
#define _cleanup_verify_ __attribute__((cleanup(verify_freep)))

/* A container's map.json. host NULL: of every host that has no map of its own. Before the first
 * byte. */
int verify_add_map(struct verify *v, const char *host, const char *text, size_t len,
		   const char *name, struct err *err);
/* A log of that name begins; verify_end() takes a last line that has no end. */
void verify_begin(struct verify *v, const char *name);
void verify_feed(struct verify *v, const char *data, size_t len);
void verify_end(struct verify *v);
/* By counters, before verify_judge(): an HCA of a map whose port n sent nothing while others sent;
 * tcp: an interface that is not RDMA, by which n bytes went, too many. */
void verify_counted(struct verify *v, bool tcp, const char *name, uint64_t n);
/* Is this port in one of the maps? The GPU and the VF of the first that has it; either may be NULL.
 */
bool verify_mapped(const struct verify *v, const char *hca, uint64_t port, const char **gpu,
		   const char **vf);

/* Once, after the last verify_end(). */
enum verdict verify_judge(struct verify *v);
const char *verify_verdict_name(enum verdict verdict); /* "PASS-noGDR" */
/* After verify_judge(). */
void verify_text(const struct verify *v, struct strbuf *out);
/* Members of an object that the caller has begun. */
struct json;
void verify_json(const struct verify *v, struct json *j);

#endif
