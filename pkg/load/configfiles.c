#include "load/configfiles.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/mem.h"
#include "base/str.h"
#include "config/config.h"
#include "config/hints.h"
#include "config/shared.h"
#include "load/load.h"

static char *file_in(const char *dir, const char *name)
{
	char *path = xasprintf("%s/%s", dir, name);

	if (access(path, F_OK) == 0)
		return path;
	free(path);
	return NULL;
}

/* The files may come and go, so it is looked each time. Heap; NULL: there is none. */
static char *find_config(const struct config_files *files)
{
	char *path = NULL;

	if (files->config)
		return xstrdup(files->config);
	if (files->node)
		path = file_in(files->dir, files->node);
	return path ? path : file_in(files->dir, CONFIG_NAME_DEFAULT);
}

static int read_one(const char *path, size_t max, char **ret, size_t *ret_len, struct err *err)
{
	return path ? load_file(path, max, ret, ret_len, err) : 0;
}

int configfiles_read(const struct config_files *files, struct config_text *ret, struct err *err)
{
	struct config_text text = { .path = find_config(files) };
	int r;

	r = read_one(text.path, CONFIG_BYTES_MAX, &text.config, &text.config_len, err);
	if (r == 0)
		r = read_one(files->shared, CONFIG_BYTES_MAX, &text.shared, &text.shared_len, err);
	if (r == 0)
		r = read_one(files->hints, HINTS_BYTES_MAX, &text.hints, &text.hints_len, err);
	if (r < 0) {
		configfiles_done(&text);
		return r;
	}
	configfiles_done(ret);
	*ret = text;
	return 0;
}

static void put_lines(const char *const *lines, size_t n, struct strbuf *also)
{
	for (size_t i = 0; also && i < n; i++)
		strbuf_printf(also, "%s\n", lines[i]);
}

int configfiles_parse(const struct config_files *files, const struct config_text *text,
		      struct config **ret, struct strbuf *also, struct err *err)
{
	struct config *cfg = NULL;
	int r = 0;

	if (text->config)
		r = config_parse(text->config, text->config_len, text->path, files->prefix, &cfg,
				 also, err);
	else
		cfg = config_default();
	if (r == 0 && text->shared)
		r = config_parse_shared(text->shared, text->shared_len, files->shared, cfg, also,
					err);
	if (r == 0 && text->hints)
		r = config_parse_hints(text->hints, text->hints_len, files->hints, cfg, also, err);
	if (r == 0) {
		*ret = cfg;
		return 0;
	}
	if (cfg) {
		put_lines(cfg->errors, cfg->n_errors, also);
		put_lines(cfg->warnings, cfg->n_warnings, also);
	}
	config_free(cfg);
	return r;
}

static bool same_bytes(const char *a, size_t a_len, const char *b, size_t b_len)
{
	if (!a || !b)
		return a == b;
	return a_len == b_len && !memcmp(a, b, a_len);
}

bool configfiles_same(const struct config_text *a, const struct config_text *b)
{
	return str_eq(a->path, b->path) &&
	       same_bytes(a->config, a->config_len, b->config, b->config_len) &&
	       same_bytes(a->shared, a->shared_len, b->shared, b->shared_len) &&
	       same_bytes(a->hints, a->hints_len, b->hints, b->hints_len);
}

void configfiles_done(struct config_text *text)
{
	free(text->path);
	free(text->config);
	free(text->shared);
	free(text->hints);
	*text = (struct config_text) { 0 };
}
