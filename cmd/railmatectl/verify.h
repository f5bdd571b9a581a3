/* Shared by the files of railmatectl verify. */
#ifndef RAILMATE_CMD_VERIFY_H
#define RAILMATE_CMD_VERIFY_H

#include <stdbool.h>
#include <stddef.h>

struct arena;
struct counters_diff;
struct err;
struct json;
struct strbuf;
struct verify;

/* A small file, whole. */
int verify_read_file(const char *path, struct strbuf *out, struct err *err);
/* Feeds v with logs that are open, and prints what it says; an exit code. */
struct verify_log {
	int fd;
	const char *name;
};
int verify_logs(struct verify *v, const struct verify_log *logs, size_t n, bool json);
/* Samples the ports below root into the file: an exit code. */
int verify_counters_begin(const char *root, const char *path, bool json);
/* Samples again and compares with the file; reports to v which allocated VFs were idle. An exit
 * code. */
int verify_counters_end(const char *root, const char *path, struct verify *v, struct arena *arena,
			struct counters_diff *ret, bool *ret_warn);
void verify_counters_text(const struct counters_diff *diff, const struct verify *v,
			  struct strbuf *out);
void verify_counters_json(const struct counters_diff *diff, const struct verify *v, struct json *j);

#endif
