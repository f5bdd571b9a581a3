/* The format: https://kubernetes-sigs.github.io/node-feature-discovery, customization guide, "Local
 * feature source"; files whose names begin with a dot are not read. */
#include "report/nfdfile.h"

#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/err.h"
#include "base/file.h"
#include "base/list.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/str.h"
#include "config/config.h"
#include "hw/inventory.h"
#include "load/load.h"
#include "pool/node.h"
#include "topo/rails.h"
#include "topo/topo.h"

#define PREFIX	  "railmate."
#define LABEL_MAX 63 /* bytes of the name of a label, and of its value */
#define FILE_MAX  65536

/* The PFs of all pools, by index into the inventory; VFs whose PF is not visible stand for
 * themselves. */
struct pfs {
	int *v;
	size_t n, cap;
};

static void add_pf(struct pfs *pfs, int pci)
{
	if (pci < 0 || list_has_int(pfs->v, pfs->n, pci))
		return;
	pfs->v = xgrow(pfs->v, &pfs->cap, pfs->n + 1, sizeof(*pfs->v));
	pfs->v[pfs->n++] = pci;
}

static struct pfs pfs_of(const struct node *node)
{
	struct pfs pfs = { 0 };

	for (size_t i = 0; i < node->n_pools; i++) {
		for (size_t k = 0; k < node->pools[i].n_devs; k++) {
			int pci = node->pools[i].devs[k].pci;

			add_pf(&pfs, pci < 0 ? -1 : topo_place(node->topo, pci));
		}
	}
	return pfs;
}

static void put(struct strbuf *out, const char *name, const char *value)
{
	if (value && *value && strlen(value) <= LABEL_MAX)
		strbuf_printf(out, PREFIX "%s=%s\n", name, value);
}

static void put_number(struct strbuf *out, const char *name, size_t value)
{
	if (value)
		strbuf_printf(out, PREFIX "%s=%zu\n", name, value);
}

static size_t count_rails(const struct node *node, const struct pfs *pfs)
{
	struct pfs rails = { 0 };
	size_t n;

	for (size_t i = 0; i < pfs->n; i++)
		add_pf(&rails, topo_rails_of(node->rails, pfs->v[i]).rail);
	n = rails.n;
	free(rails.v);
	return n;
}

static const struct hw_port *port_of(const struct node *node, int pf)
{
	int rdma = hw_find_rdma(node->inv, pf);

	return rdma >= 0 && node->inv->rdma[rdma].n_ports ? &node->inv->rdma[rdma].ports[0] : NULL;
}

/* The slowest of those that are up: a port that is down has no rate of its own. */
static size_t gbps_of(const struct node *node, const struct pfs *pfs)
{
	int least = 0;

	for (size_t i = 0; i < pfs->n; i++) {
		const struct hw_port *port = port_of(node, pfs->v[i]);

		if (port && str_eq(port->state, "ACTIVE") && port->rate_mbps &&
		    (!least || port->rate_mbps < least))
			least = port->rate_mbps;
	}
	return (size_t)least / 1000;
}

/* The one word that is right for all; "mixed". NULL: none is known. */
static const char *common(const char *so_far, const char *word)
{
	if (!word || str_eq(so_far, word))
		return so_far;
	return so_far ? "mixed" : word;
}

static const char *fabric_of(const struct node *node, const struct pfs *pfs)
{
	const char *fabric = NULL;

	for (size_t i = 0; i < pfs->n; i++) {
		const struct hw_port *port = port_of(node, pfs->v[i]);

		fabric = common(fabric, port ? hw_link_name(port->link) : NULL);
	}
	return fabric;
}

static const char *driver_of(const struct node *node, const struct pfs *pfs)
{
	const char *driver = NULL;

	for (size_t i = 0; i < pfs->n; i++)
		driver = common(driver, node->inv->pci[pfs->v[i]].driver);
	return driver;
}

/* How near is the nearest PF of the GPU that has it worst? */
static const char *affinity_of(const struct node *node, const struct pfs *pfs)
{
	enum topo_class worst = TOPO_SELF;

	for (size_t g = 0; g < node->inv->n_gpu; g++) {
		enum topo_class best = TOPO_SYS;

		for (size_t i = 0; i < pfs->n; i++) {
			enum topo_class class =
				topo_between(node->topo, node->inv->gpu[g].pci, pfs->v[i]).class;

			best = class < best ? class : best;
		}
		worst = best > worst ? best : worst;
	}
	return worst == TOPO_SELF ? NULL : topo_class_name(worst);
}

/* "rdma/vf" → "pool.rdma_vf": '/' would begin the name of a label behind its namespace. */
static void put_pools(const struct node *node, struct strbuf *out)
{
	for (size_t i = 0; i < node->n_pools; i++) {
		const struct pool *pool = &node->pools[i];
		_cleanup_free_ char *name = xasprintf("pool.%s", pool->cfg->resource);

		*strchr(name, '/') = '_';
		if (pool->n_devs && !pool->cfg->retired &&
		    strlen(PREFIX) + strlen(name) <= LABEL_MAX)
			put(out, name, "true");
	}
}

static void write_lines(const struct node *node, enum status_found verdict, struct strbuf *out)
{
	struct pfs pfs = pfs_of(node);

	if (pfs.n) {
		put_number(out, "nics", pfs.n);
		put_number(out, "rails", count_rails(node, &pfs));
		put_number(out, "gbps", gbps_of(node, &pfs));
		put(out, "fabric", fabric_of(node, &pfs));
		put(out, "affinity", affinity_of(node, &pfs));
		put(out, "driver", driver_of(node, &pfs));
		put(out, "doctor", status_found_names[verdict]);
		put_pools(node, out);
	}
	free(pfs.v);
}

/* --- the file --- */

static bool is_there(const char *path, const struct strbuf *text)
{
	_cleanup_free_ char *old = NULL;
	size_t len;

	return load_file(path, FILE_MAX, &old, &len, NULL) == 0 && len == text->len &&
	       !memcmp(old, strbuf_str(text), len);
}

static void replace(const char *path, const struct strbuf *text)
{
	_cleanup_free_ char *for_dir = xstrdup(path), *for_name = xstrdup(path);
	_cleanup_free_ char *temporary =
		xasprintf("%s/.%s.tmp", dirname(for_dir), basename(for_name));
	const struct file_new f = {
		.dir = AT_FDCWD, .name = path, .temporary = temporary, .mode = 0644
	};
	struct err err = { 0 };

	if (file_write(&f, text->s, text->len, &err) < 0)
		log_warn("nfd", "the feature file is not written error=%s", err.msg);
	else
		log_info("nfd", "the feature file was written path=%s", path);
}

void nfdfile_keep(const char *path, const struct node *node, enum status_found verdict)
{
	_cleanup_strbuf_ struct strbuf text = STRBUF_INIT;

	if (!path)
		return;
	write_lines(node, verdict, &text);
	if (!text.len) {
		if (unlink(path) < 0 && errno != ENOENT)
			log_warn("nfd", "cannot remove the feature file path=%s error=%m", path);
		return;
	}
	if (!is_there(path, &text))
		replace(path, &text);
}
