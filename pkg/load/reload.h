/*
 * The configuration while we run: its files are watched (a ConfigMap's `..data`, a file that is
 * replaced or written in place), read again, and valid ones are handed on. A pool with an error
 * stays as it was, and so does a file that cannot be read, is not JSON or has no pool left: it is
 * refused, with one line of log; strict (configfiles.h): everything, for any error. Everything on
 * the main thread.
 */
#ifndef RAILMATE_LOAD_RELOAD_H
#define RAILMATE_LOAD_RELOAD_H

#include <stdbool.h>
#include <stdint.h>

struct config;
struct config_files;
struct config_text;
struct reload;
struct uv_loop_s;

struct reload_state {
	uint64_t generation; /* of the configuration in use; the first is 1 */
	uint64_t refused;    /* how many were refused since the start */
	const char *error;   /* why a file is not in use; NULL: all are */
};

/*
 * text (taken), cfg: those in use. adopt: a valid configuration (taken) that differs from it and
 * from the one that was handed on before. files is borrowed. A directory that cannot be watched is
 * logged: SIGHUP and reload_check() find what changed there.
 */
struct reload *reload_new(struct uv_loop_s *loop, const struct config_files *files,
			  struct config_text *text, const struct config *cfg,
			  void (*adopt)(void *ctx, struct config *cfg), void *ctx);
/* Read the files now; cheap where they are as they were. */
void reload_check(struct reload *r);
/* changed: the state is another one. */
void reload_listen(struct reload *r, void (*changed)(void *ctx));
/* The configuration that was handed on last is in use. */
void reload_adopted(struct reload *r);
const struct reload_state *reload_state(const struct reload *r);
void reload_free(struct reload *r); /* when the loop is closed; NULL is fine */

#endif
