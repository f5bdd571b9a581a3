/*
 * From a root and the files of the configuration to a node. main, the daemon and railmatectl call;
 * reload.c reads the same files again.
 */
#include "load/load.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/err.h"
#include "base/mem.h"
#include "base/str.h"
#include "config/config.h"
#include "discover/discover.h"
#include "load/configfiles.h"
#include "pool/node.h"

static int read_all(int fd, const char *path, size_t max, struct strbuf *out, struct err *err)
{
	char chunk[16384];
	ssize_t n;

	while ((n = read(fd, chunk, sizeof(chunk))) != 0) {
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return err_sys(err, "read %s", path);
		if (out->len + (size_t)n > max)
			return err_set(err, EFBIG, "%s is larger than %zu bytes", path, max);
		strbuf_add(out, chunk, (size_t)n);
	}
	return 0;
}

static int load(const char *path, bool stream, size_t max, char **ret, size_t *ret_len,
		struct err *err)
{
	_cleanup_strbuf_ struct strbuf text = STRBUF_INIT;
	_cleanup_close_ int fd = -1;
	struct stat st;
	int r;

	fd = open(path, O_RDONLY | O_CLOEXEC | (stream ? 0 : O_NONBLOCK));
	if (fd < 0 || fstat(fd, &st) < 0)
		return err_sys(err, "open %s", path);
	if (!S_ISREG(st.st_mode) && !(stream && S_ISFIFO(st.st_mode)))
		return err_set(err, EINVAL, "%s is not a regular file", path);
	r = read_all(fd, path, max, &text, err);
	if (r < 0)
		return r;
	*ret_len = text.len;
	*ret = strbuf_steal(&text);
	return 0;
}

int load_file(const char *path, size_t max, char **ret, size_t *ret_len, struct err *err)
{
	return load(path, false, max, ret, ret_len, err);
}

/* load_file() of a file that may be a pipe: waits for its end. */
static int load_stream(const char *path, size_t max, char **ret, size_t *ret_len, struct err *err)
{
	return load(path, true, max, ret, ret_len, err);
}

int load_config(const char *path, const char *default_prefix, struct config **ret,
		struct strbuf *also, struct err *err)
{
	_cleanup_free_ char *text = NULL;
	size_t len;
	int r;

	if (!path) {
		*ret = config_default();
		return 0;
	}
	r = load_file(path, CONFIG_BYTES_MAX, &text, &len, err);
	if (r < 0)
		return r;
	return config_parse(text, len, path, default_prefix, ret, also, err);
}

int load_hints(const char *path, struct config *cfg, struct strbuf *also, struct err *err)
{
	_cleanup_free_ char *text = NULL;
	size_t len;
	int r = path ? load_file(path, HINTS_BYTES_MAX, &text, &len, err) : 0;

	if (r < 0 || !path)
		return r;
	return config_parse_hints(text, len, path, cfg, also, err);
}

int load_node(const struct sysroot *root, const struct config *cfg, const struct node *previous,
	      struct node **ret, struct err *err)
{
	return load_node_of(root, &(struct node_parts) { .cfg = cfg, .previous = previous }, ret,
			    err);
}

/* Facts that a scan reads only for configurations that need them. */
static void read_wanted(const struct sysroot *root, const struct config *cfg,
			struct hw_inventory *inv)
{
	bool pkeys = false, acpi = false;

	for (size_t i = 0; i < cfg->n_pools; i++) {
		for (size_t k = 0; k < cfg->pools[i].n_selectors; k++) {
			pkeys |= cfg->pools[i].selectors[k].n_pkeys > 0;
			acpi |= cfg->pools[i].selectors[k].n_acpi_indexes > 0;
		}
	}
	if (pkeys)
		discover_default_pkeys(root, inv);
	if (acpi)
		discover_acpi_indexes(root, inv);
}

int load_node_of(const struct sysroot *root, const struct node_parts *parts, struct node **ret,
		 struct err *err)
{
	const struct config *cfg = parts->cfg;
	struct hw_inventory *inv;
	int r;

	r = discover_host(root, cfg->gpus, cfg->n_gpus,
			  parts->previous ? parts->previous->inv : NULL, &inv, err);
	if (r < 0)
		return r;
	read_wanted(root, cfg, inv);
	*ret = node_make(inv, parts);
	return 0;
}

/* --- the files of the configuration --- */

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
	if (files->by_claims)
		config_by_claims(cfg);
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
