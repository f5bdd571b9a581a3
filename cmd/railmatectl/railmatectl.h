/* Shared by the subcommands of railmatectl, of which only release changes the state of a node. */
#ifndef RAILMATE_CMD_RAILMATECTL_H
#define RAILMATE_CMD_RAILMATECTL_H

#include <stdbool.h>
#include <stddef.h>

struct arena;
struct config;
struct err;
struct hw_gpu;
struct node;
struct pool;
struct strbuf;
struct sysroot;
struct verify;

/* Exit codes; the man page lists them. */
enum { EXIT_DONE = 0, EXIT_FAILED = 1, EXIT_USAGE = 2, EXIT_REFUSED = 3 };
extern const int doctor_codes[]; /* of doctor's verdict */

/* A machine as the command line names it: --root, --config and --topology-hints. */
struct machine {
	const char *root_path, *config_path, *hints_path;
	struct sysroot *root;
	struct config *cfg;
	struct node *node;
};

/* Fills root, cfg and node; prints notes on standard error, and the sentence on failure. Returns an
 * exit code. */
int machine_open(struct machine *m);
void machine_close(struct machine *m);
/* The pool of that name; resource NULL: the only one. -EINVAL with a sentence that names the pools.
 */
int machine_pool(const struct machine *m, const char *resource, const struct pool **ret,
		 struct err *err);

/* --NAME VALUE goes to *value; --NAME alone, where value is NULL, sets *flag. */
struct word {
	const char *name;
	const char **value;
	bool *flag;
};
int print_help(void); /* an exit code */
/* getopt (opterr 0) found '?' or ':': prints the fault and returns an exit code, or --help: prints
 * that and exits. */
int refuse_option(char **argv, int found);
/* An exit code; the first operand is then argv[optind] (getopt.h). */
int read_options(int argc, char **argv, const struct word *words, size_t n);
/* read_options() for a command without operands. */
int read_only_options(int argc, char **argv, const struct word *words, size_t n);

/* Feeds v with logs that are open, and prints what it says; an exit code. */
struct verify_log {
	int fd;
	const char *name;
};
int verify_logs(struct verify *v, const struct verify_log *logs, size_t n, bool json);

int cmd_topo(int argc, char **argv);
int cmd_plan(int argc, char **argv);
int cmd_explain(int argc, char **argv);
int cmd_release(int argc, char **argv);
int cmd_simulate(int argc, char **argv);
int cmd_snapshot(int argc, char **argv);
int cmd_verify(int argc, char **argv);
int cmd_probe(int argc, char **argv);
int cmd_doctor(int argc, char **argv);
int cmd_ready(int argc, char **argv);
int cmd_status(int argc, char **argv);
int cmd_cluster(int argc, char **argv);

/* "railmatectl: <sentence>" on standard error; returns code. */
int fail(int code, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
/* Everything to standard output, made printable in place, or EXIT_FAILED with a sentence (a full
 * disk, a closed pipe). */
int print_out(struct strbuf *text);

/* The tables, not wider than a terminal but with wide, and the JSON of a node. */
void topo_text(const struct machine *m, bool wide, struct strbuf *out);
/* The driver's own name of a GPU, else that of pci.ids, else the vendor's. */
const char *gpu_name(const struct machine *m, const struct hw_gpu *gpu, struct arena *a);

#endif
