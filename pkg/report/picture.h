/*
 * The machine as a picture, for the page: `railmatectl topo --svg`, which is run (report/child.h)
 * when somebody looks and the picture is older than the known facts, and at most once a second.
 */
#ifndef RAILMATE_REPORT_PICTURE_H
#define RAILMATE_REPORT_PICTURE_H

#include <stdint.h>

#include "report/child.h"

struct arena;
struct picture;

struct picture_env {
	struct uv_loop_s *loop;
	struct child_machine machine;
	const char *control_socket, *state_dir; /* where the pods are known; NULL: not there */
	const char *program;			/* railmatectl; NULL: child_program() */
	/* There is another picture, or another failure. [main thread] */
	void (*made)(void *ctx);
	void *ctx;
};

/* All that env points to outlives it. Main thread, as all but picture_show(). */
struct picture *picture_new(const struct picture_env *env);
/*
 * The newest picture; NULL: there is none, and then *ret_failure is why, or NULL: it is being made.
 * Strings of the arena. state: any number that is another one when the facts have changed; for a
 * new one another picture is begun, and waited for a quarter of a second. [one thread]
 */
const char *picture_show(struct picture *p, uint64_t state, struct arena *a,
			 const char **ret_failure);
/* When picture_show() is called no more. Ends everything on the loop, which has to run once more.
 * NULL is fine, here and below. */
void picture_close(struct picture *p);
void picture_free(struct picture *p);

#endif
