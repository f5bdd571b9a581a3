#include "load/load.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/err.h"
#include "base/mem.h"
#include "base/str.h"
#include "config/config.h"
#include "discover/discover.h"
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

int load_stream(const char *path, size_t max, char **ret, size_t *ret_len, struct err *err)
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

struct node *load_node_links(const struct sysroot *root, const struct node_parts *parts,
			     const int *pfs, size_t n)
{
	struct hw_inventory *inv = discover_links_again(root, parts->previous->inv, pfs, n);

	return inv ? node_make(inv, parts) : NULL;
}
