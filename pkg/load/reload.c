#include "load/reload.h"

#include <libgen.h>
#include <stdlib.h>
#include <string.h>
#include <uv.h>

#include "base/clock.h"
#include "base/err.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/str.h"
#include "config/config.h"
#include "load/configfiles.h"
#include "load/watch.h"

/* The events of one change come together; files that change all the time are read this often. */
#define SETTLE_MS      100
#define SETTLE_MOST_MS 400
#define DIRS_MAX       3

struct dir {
	struct reload *reload;
	char *path;
	struct watch_dir *watch;
	uv_poll_t poll;
};

struct reload {
	const struct config_files *files;
	/* Handed on last: of a file that was refused since, as it was before; read last */
	struct config_text good, seen;
	struct config *last; /* the configuration of good */
	void (*adopt)(void *ctx, struct config *cfg);
	void (*changed)(void *ctx); /* may be NULL */
	void *ctx;
	struct reload_state state;
	char *error; /* of the state */
	struct dir dirs[DIRS_MAX];
	size_t n_dirs;
	uv_timer_t settle;
	int64_t changed_ms; /* the first event of those that are settling */
};

/* --- the files' text --- */

static void say_changed(struct reload *r)
{
	if (r->changed)
		r->changed(r->ctx);
}

static void forget_error(struct reload *r)
{
	if (!r->error)
		return;
	free(STEAL(r->error));
	r->state.error = NULL;
	say_changed(r);
}

/* all: the faults, one a line; the first is the reason. Once for each text, however often it is
 * read. */
static void refuse(struct reload *r, const char *all)
{
	_cleanup_free_ char *lines = xstrdup(all);
	char *rest = lines, *first = strsep(&rest, "\n"), *line;

	if (str_eq(r->error, all))
		return;
	forget_error(r);
	r->state.error = r->error = xstrdup(all);
	r->state.refused++;
	say_changed(r);
	log_error(
		"config",
		"the new configuration is refused, and the one before stays in use config=%s reason=%s",
		r->seen.path ? r->seen.path : r->good.path, first);
	while ((line = strsep(&rest, "\n")))
		log_error("config", "%s", line);
}

/* Faults of pools are logged; the pools stay as they were. */
static void hand_on(struct reload *r, struct config *cfg, struct config_text *text)
{
	struct config *whole = config_keep(cfg, r->last);

	for (size_t i = 0; i < cfg->n_warnings; i++)
		log_warn("config", "%s", cfg->warnings[i]);
	for (size_t i = 0; i < cfg->n_errors; i++)
		log_error("config", "%s", cfg->errors[i]);
	for (size_t i = 0; i < whole->n_pools; i++) {
		if (whole->pools[i].kept)
			log_info("config", "a pool with an error stays as it was resource=%s",
				 whole->pools[i].resource);
	}
	for (size_t i = 0; i < whole->n_shared; i++) {
		if (whole->shared[i].kept)
			log_info("config", "a pool with an error stays as it was resource=%s",
				 whole->shared[i].resource);
	}
	config_free(cfg);
	config_free(r->last);
	r->last = config_ref(whole);
	configfiles_done(&r->good);
	r->good = *text;
	*text = (struct config_text) { 0 };
	r->adopt(r->ctx, whole);
}

static void put_errors(const struct config *cfg, struct strbuf *out)
{
	for (size_t i = 0; i < cfg->n_errors; i++)
		strbuf_printf(out, "%s\n", cfg->errors[i]);
}

/* Files that are refused are replaced by their former text, and the others are taken. */
static void judge(struct reload *r)
{
	_cleanup_strbuf_ struct strbuf also = STRBUF_INIT, faults = STRBUF_INIT;
	struct config_text text = configfiles_copy(&r->seen);
	struct config *cfg = NULL;
	struct err err = { 0 };
	int code = configfiles_parse(r->files, &text, &cfg, &also, &err);

	if (code == 0 && r->files->strict && cfg->n_errors) {
		put_errors(cfg, &faults);
		config_free(STEAL(cfg));
	} else {
		configfiles_stand_in(&text, &r->good, &faults);
		if (faults.len) {
			config_free(STEAL(cfg));
			strbuf_done(&also);
			code = configfiles_same(&text, &r->good)
				       ? 0
				       : configfiles_parse(r->files, &text, &cfg, &also, &err);
		}
		if (code < 0)
			strbuf_printf(&faults, "%s\n%s", err.msg, strbuf_str(&also));
	}
	if (faults.len)
		refuse(r, str_trim(faults.s));
	else
		forget_error(r);
	if (cfg)
		hand_on(r, cfg, &text);
	configfiles_done(&text);
}

void reload_check(struct reload *r)
{
	struct config_text now = { 0 };

	configfiles_read(r->files, &now);
	/* A file that was there is not any more: that is not a wish for the built-in pool, which
	 * takes every VF. */
	if (!now.path && r->good.path)
		now.config.fault = xstrdup("there is no file of the configuration any more");
	if (configfiles_same(&now, &r->seen)) {
		configfiles_done(&now);
		return;
	}
	configfiles_done(&r->seen);
	r->seen = now;
	if (!configfiles_same(&now, &r->good)) {
		judge(r);
		return;
	}
	if (r->error)
		log_info("config", "the configuration is again the one that is in use config=%s",
			 now.path ? now.path : "none");
	forget_error(r);
}

void reload_adopted(struct reload *r)
{
	r->state.generation++;
	say_changed(r);
}

void reload_listen(struct reload *r, void (*changed)(void *ctx))
{
	r->changed = changed;
}

const struct reload_state *reload_state(const struct reload *r)
{
	return &r->state;
}

/* --- when --- */

static void on_settled(uv_timer_t *timer)
{
	struct reload *r = timer->data;

	r->changed_ms = 0;
	reload_check(r);
}

static void check_soon(struct reload *r)
{
	int64_t now = clock_mono_ms();

	if (!r->changed_ms)
		r->changed_ms = now;
	if (now - r->changed_ms < SETTLE_MOST_MS - SETTLE_MS)
		uv_timer_start(&r->settle, on_settled, SETTLE_MS, 0);
}

static void on_dir(uv_poll_t *poll, int status, int events)
{
	struct dir *dir = poll->data;

	if (watch_dir_drain(dir->watch))
		check_soon(dir->reload);
}

static bool is_watched(const struct reload *r, const char *path)
{
	for (size_t i = 0; i < r->n_dirs; i++) {
		if (!strcmp(r->dirs[i].path, path))
			return true;
	}
	return false;
}

static void watch_path(struct reload *r, uv_loop_t *loop, const char *path)
{
	struct dir *dir = &r->dirs[r->n_dirs];
	struct err err = { 0 };

	if (is_watched(r, path))
		return;
	if (watch_dir_open_files(path, &dir->watch, &err) < 0) {
		log_warn("config", "changes of the configuration are found at SIGHUP error=%s",
			 err.msg);
		return;
	}
	r->n_dirs++;
	dir->reload = r;
	dir->path = xstrdup(path);
	uv_poll_init(loop, &dir->poll, watch_dir_fd(dir->watch));
	dir->poll.data = dir;
	uv_poll_start(&dir->poll, UV_READABLE, on_dir);
}

static void watch_file(struct reload *r, uv_loop_t *loop, const char *file)
{
	_cleanup_free_ char *path = file ? xstrdup(file) : NULL;

	if (path)
		watch_path(r, loop, dirname(path));
}

struct reload *reload_new(struct uv_loop_s *loop, const struct config_files *files,
			  struct config_text *text, const struct config *cfg,
			  void (*adopt)(void *ctx, struct config *cfg), void *ctx)
{
	struct reload *r = xcalloc(1, sizeof(*r));

	r->files = files;
	r->good = *text;
	*text = (struct config_text) { 0 };
	r->seen = configfiles_copy(&r->good);
	r->last = config_ref(cfg);
	r->adopt = adopt;
	r->ctx = ctx;
	r->state.generation = 1;
	uv_timer_init(loop, &r->settle);
	r->settle.data = r;
	if (files->config)
		watch_file(r, loop, files->config);
	else
		watch_path(r, loop, files->dir);
	watch_file(r, loop, files->shared);
	watch_file(r, loop, files->hints);
	return r;
}

void reload_free(struct reload *r)
{
	if (!r)
		return;
	for (size_t i = 0; i < r->n_dirs; i++) {
		watch_dir_close(r->dirs[i].watch);
		free(r->dirs[i].path);
	}
	configfiles_done(&r->good);
	configfiles_done(&r->seen);
	config_free(r->last);
	free(r->error);
	free(r);
}
