#include "load/configfiles.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/err.h"
#include "base/mem.h"
#include "base/str.h"
#include "config/config.h"
#include "load/load.h"

static char *file_in(const char *dir, const char *name)
{
	char *path = xasprintf("%s/%s", dir, name);

	if (access(path, F_OK) == 0)
		return path;
	free(path);
	return NULL;
}

char *configfiles_path(const struct config_files *files)
{
	char *path = NULL;

	if (files->config)
		return xstrdup(files->config);
	if (files->node)
		path = file_in(files->dir, files->node);
	return path ? path : file_in(files->dir, CONFIG_NAME_DEFAULT);
}

static void read_one(const char *path, bool once, size_t max, struct config_file *ret)
{
	struct err err = { 0 };

	if (path && (once ? load_stream : load_file)(path, max, &ret->text, &ret->len, &err) < 0)
		ret->fault = xstrdup(err.msg);
}

void configfiles_read(const struct config_files *files, struct config_text *ret)
{
	configfiles_done(ret);
	ret->path = configfiles_path(files);
	read_one(ret->path, files->once, CONFIG_BYTES_MAX, &ret->config);
	read_one(files->shared, files->once, CONFIG_BYTES_MAX, &ret->shared);
	read_one(files->hints, files->once, HINTS_BYTES_MAX, &ret->hints);
}

/* also: taken. */
static void set_fault(struct config_file *file, const struct err *err, struct strbuf *also)
{
	free(file->fault);
	file->fault = xasprintf("%s\n%s", err->msg, strbuf_str(also));
	str_trim(file->fault);
	strbuf_done(also);
}

static struct config *parse_config(const struct config_files *files, struct config_text *text)
{
	struct config_file *file = &text->config;
	struct strbuf also = STRBUF_INIT;
	struct config *cfg = NULL;
	struct err err = { 0 };

	if (!text->path && !file->fault)
		return config_default();
	if (file->text &&
	    config_parse(file->text, file->len, text->path, files->prefix, &cfg, &also, &err) < 0)
		set_fault(file, &err, &also);
	return cfg ? cfg : config_none();
}

typedef int (*parse_fn)(const char *text, size_t len, const char *name, struct config *cfg,
			struct strbuf *also, struct err *err);

static void parse_more(parse_fn parse, struct config_file *file, const char *name,
		       struct config *cfg)
{
	struct strbuf also = STRBUF_INIT;
	struct err err = { 0 };

	if (file->text && parse(file->text, file->len, name, cfg, &also, &err) < 0)
		set_fault(file, &err, &also);
}

/* The reason of the first file, and all other faults. */
static int refuse_all(const char *const *faults, size_t n, struct strbuf *also, struct err *err)
{
	size_t first = 0, len;

	while (!faults[first])
		first++;
	len = strcspn(faults[first], "\n");
	if (faults[first][len])
		strbuf_printf(also, "%s\n", faults[first] + len + 1);
	for (size_t i = first + 1; i < n; i++) {
		if (faults[i])
			strbuf_printf(also, "%s\n", faults[i]);
	}
	return err_set(err, EINVAL, "%.*s", (int)len, faults[first]);
}

static void leave_out(struct config *cfg, const char *fault)
{
	int len = (int)strcspn(fault, "\n");
	_cleanup_free_ char *lines =
		xasprintf("%.*s; the file is left out%s", len, fault, fault + len);

	config_add_errors(cfg, lines);
}

int configfiles_parse(const struct config_files *files, struct config_text *text,
		      struct config **ret, struct strbuf *also, struct err *err)
{
	struct config *cfg = parse_config(files, text);
	const char *faults[3];

	parse_more(config_parse_shared, &text->shared, files->shared, cfg);
	parse_more(config_parse_hints, &text->hints, files->hints, cfg);
	faults[0] = text->config.fault;
	faults[1] = text->shared.fault;
	faults[2] = text->hints.fault;
	if (!cfg->n_pools && !cfg->n_shared) {
		config_free(cfg);
		return refuse_all(faults, ARRAY_LEN(faults), also, err);
	}
	for (size_t i = 0; i < ARRAY_LEN(faults); i++) {
		if (faults[i])
			leave_out(cfg, faults[i]);
	}
	*ret = cfg;
	return 0;
}

static void file_done(struct config_file *file)
{
	free(file->text);
	free(file->fault);
}

static char *copy_string(const char *s)
{
	return s ? xstrdup(s) : NULL;
}

static struct config_file copy_file(const struct config_file *file)
{
	struct config_file ret = { .len = file->len, .fault = copy_string(file->fault) };

	if (file->text) {
		ret.text = xcalloc(1, file->len + 1);
		memcpy(ret.text, file->text, file->len);
	}
	return ret;
}

struct config_text configfiles_copy(const struct config_text *text)
{
	return (struct config_text) { .path = copy_string(text->path),
				      .config = copy_file(&text->config),
				      .shared = copy_file(&text->shared),
				      .hints = copy_file(&text->hints) };
}

static bool stand_in(struct config_file *file, const struct config_file *good,
		     struct strbuf *faults)
{
	if (!file->fault || good->fault)
		return false;
	strbuf_printf(faults, "%s\n", file->fault);
	file_done(file);
	*file = copy_file(good);
	return true;
}

void configfiles_stand_in(struct config_text *text, const struct config_text *good,
			  struct strbuf *faults)
{
	if (stand_in(&text->config, &good->config, faults)) {
		free(text->path);
		text->path = copy_string(good->path);
	}
	stand_in(&text->shared, &good->shared, faults);
	stand_in(&text->hints, &good->hints, faults);
}

static bool is_same(const struct config_file *a, const struct config_file *b)
{
	if (!a->text || !b->text)
		return a->text == b->text && str_eq(a->fault, b->fault);
	return a->len == b->len && !memcmp(a->text, b->text, a->len);
}

bool configfiles_same(const struct config_text *a, const struct config_text *b)
{
	return str_eq(a->path, b->path) && is_same(&a->config, &b->config) &&
	       is_same(&a->shared, &b->shared) && is_same(&a->hints, &b->hints);
}

void configfiles_done(struct config_text *text)
{
	free(text->path);
	file_done(&text->config);
	file_done(&text->shared);
	file_done(&text->hints);
	*text = (struct config_text) { 0 };
}
