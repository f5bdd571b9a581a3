/*
 * railmatectl as a child process: code that looks at the machine for people is not in this process,
 * nor are its faults. One run at a time, with a limit of time and of output. Main thread.
 */
#ifndef RAILMATE_REPORT_CHILD_H
#define RAILMATE_REPORT_CHILD_H

#include <stdbool.h>
#include <stddef.h>

struct child;
struct config_files;
struct uv_loop_s;

#define CHILD_OUTPUT_MAX ((size_t)8 << 20)

/* How a run ended. */
struct child_end {
	const char *failure; /* why it has no exit status; NULL: it has one */
	int status;
	const char *out; /* its standard output; good during the call */
	size_t len;
	const char *said; /* the first line of its standard error; "" */
};

/* The machine that it looks at: ours. */
struct child_machine {
	const char *root;
	const struct config_files *files;
};

/* The railmatectl beside this program, else that of PATH; a heap string. */
char *child_program(void);
/* program is copied. ended is called once for each run, but for one that child_close() ends. */
struct child *child_new(struct uv_loop_s *loop, const char *program, unsigned limit_ms,
			void (*ended)(void *ctx, const struct child_end *end), void *ctx);
/* words: the command and its options, NULL at the end; those of the machine are added. False: the
 * last one still runs, or does not end although it was killed. */
bool child_run(struct child *c, const struct child_machine *machine, const char *const *words);
/* Kills a run, waits for nothing; the loop has to run once more. NULL is fine, here and below. */
void child_close(struct child *c);
void child_free(struct child *c);

#endif
