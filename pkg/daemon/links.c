#include "daemon/links-internal.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/err.h"
#include "base/file.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/str.h"
#include "config/config.h"
#include "daemon/linksfile-internal.h"
#include "devstate/devstate.h"
#include "hw/inventory.h"
#include "load/load.h"
#include "pool/link.h"
#include "pool/node.h"
#include "sysroot/sysroot.h"

#define BYTES_MAX (1u << 20) /* of the file */

struct links {
	const struct sysroot *root;
	char *dir;     /* NULL: no file is kept */
	char *path;    /* of the file */
	char boot[64]; /* "": not known */
	char *kept;    /* the file's text; NULL: not known */
	bool keeps, complained;
	struct link_entry **v;
	size_t n, cap;
	struct node_link *degraded;
	size_t n_degraded;
};

static struct link_entry *entry_of(struct links *l, const char *resource, const char *pf, int port)
{
	struct link_entry *e;

	for (size_t i = 0; i < l->n; i++) {
		if (l->v[i]->port == port && !strcmp(l->v[i]->pf, pf) &&
		    !strcmp(l->v[i]->resource, resource))
			return l->v[i];
	}
	e = xcalloc(1, sizeof(*e));
	e->resource = xstrdup(resource);
	strcpy(e->pf, pf);
	e->port = port;
	l->v = xgrow(l->v, &l->cap, l->n + 1, sizeof(*l->v));
	l->v[l->n++] = e;
	return e;
}

/* port NULL: the PF has no RDMA device. */
static struct link_sample sample_of(const struct links *l, const struct hw_inventory *inv, int pf,
				    const struct hw_port *port, int64_t now_ms)
{
	size_t at = port ? (size_t)(port - inv->rdma[hw_find_rdma(inv, pf)].ports) : 0;
	struct link_counts counts = devstate_link_counts(l->root, inv, pf, at);
	bool up = port && str_eq(port->state, "ACTIVE");
	struct hw_pcie most = hw_pcie_best(inv, pf);

	return (struct link_sample) { .at_ms = now_ms,
				      .netdev_downs = counts.netdev_downs,
				      .port_downs = counts.port_downs,
				      .errors = counts.errors,
				      .rate_mbps = up ? port->rate_mbps : 0,
				      .link_mts = inv->pci[pf].link_mts,
				      .link_width = inv->pci[pf].link_width,
				      .most_mts = most.mts,
				      .most_width = most.width };
}

/* n_ports: of the PF; a clause names the port where there are several. */
static bool judge(struct link_entry *e, const struct link_sample *sample,
		  const struct pool_health *limits, size_t n_ports, int64_t wall_ms)
{
	_cleanup_strbuf_ struct strbuf what = STRBUF_INIT, how = STRBUF_INIT;
	unsigned trouble = link_judge(&e->history, sample, limits);
	bool unhealthy = trouble & limits->unhealthy;

	if (trouble && n_ports > 1)
		strbuf_printf(&how, "at port %d ", e->port);
	link_say(&e->history, limits, &what);
	strbuf_puts(&how, strbuf_str(&what));
	if (str_eq(trouble ? how.s : NULL, e->degraded) && unhealthy == e->unhealthy)
		return false;
	if (trouble)
		log_warn("link", "the link of a PF is degraded resource=%s pf=%s reason=%s",
			 e->resource, e->pf, strbuf_str(&how));
	else
		log_info("link", "the link of a PF is not degraded any more resource=%s pf=%s",
			 e->resource, e->pf);
	if (!e->degraded)
		e->since_ms = wall_ms;
	free(e->degraded);
	e->degraded = trouble ? strbuf_steal(&how) : NULL;
	e->unhealthy = unhealthy;
	return true;
}

/* Every port of it, for the VFs of any of them may be the pool's. */
static bool check_pf(struct links *l, const struct node *node, const struct pool *pool, int pf,
		     int64_t now_ms, int64_t wall_ms)
{
	int rdma = hw_find_rdma(node->inv, pf);
	size_t n = rdma < 0 ? 0 : node->inv->rdma[rdma].n_ports;
	char address[BDF_STRLEN];
	bool changed = false;

	bdf_format(node->inv->pci[pf].bdf, address);
	for (size_t i = 0; i < (n ? n : 1); i++) {
		const struct hw_port *port = n ? &node->inv->rdma[rdma].ports[i] : NULL;
		struct link_sample sample = sample_of(l, node->inv, pf, port, now_ms);
		struct link_entry *e =
			entry_of(l, pool->cfg->resource, address, port ? port->number : 1);

		e->seen = true;
		changed |= judge(e, &sample, &pool->cfg->health, n, wall_ms);
	}
	return changed;
}

static bool check_pool(struct links *l, const struct node *node, const struct pool *pool,
		       int64_t now_ms, int64_t wall_ms)
{
	bool changed = false;
	int last = -1;

	for (size_t i = 0; i < pool->n_devs; i++) {
		int pf = hw_pf_of(node->inv, pool->devs[i].pci);

		/* Devices are in the order of addresses, so those of a PF mostly follow each other;
		 * a second sample of the same moment has nothing new. */
		if (pf < 0 || pf == last)
			continue;
		last = pf;
		changed |= check_pf(l, node, pool, pf, now_ms, wall_ms);
	}
	return changed;
}

void links_free_entry(struct link_entry *e)
{
	free(e->resource);
	free(e->degraded);
	free(e);
}

/* A link that no pool has any more is forgotten. */
static bool forget_unseen(struct links *l)
{
	bool changed = false;
	size_t kept = 0;

	for (size_t i = 0; i < l->n; i++) {
		if (l->v[i]->seen) {
			l->v[i]->seen = false;
			l->v[kept++] = l->v[i];
		} else {
			changed |= l->v[i]->degraded != NULL;
			links_free_entry(l->v[i]);
		}
	}
	l->n = kept;
	return changed;
}

static void list_degraded(struct links *l)
{
	free(l->degraded);
	l->degraded = xcalloc(l->n, sizeof(*l->degraded));
	l->n_degraded = 0;
	for (size_t i = 0; i < l->n; i++) {
		const struct link_entry *e = l->v[i];

		if (e->degraded)
			l->degraded[l->n_degraded++] = (struct node_link) {
				.resource = e->resource,
				.pf = e->pf,
				.degraded = e->degraded,
				.unhealthy = e->unhealthy,
				.port = e->port,
				.trouble = e->history.trouble,
				.since_ms = e->since_ms,
			};
	}
}

/* --- the file for the next start --- */

static void load(struct links *l, int64_t now_ms)
{
	_cleanup_free_ char *text = NULL;
	struct err err = { 0 };
	size_t len;
	int r = load_file(l->path, BYTES_MAX, &text, &len, &err);

	if (r == 0)
		r = links_read(text, len, l->path, l->boot, now_ms, &l->v, &l->n, &err);
	if (r < 0 && r != -ENOENT)
		log_warn(
			"link",
			"the state of links cannot be read; links are judged anew path=%s error=%s",
			l->path, err.msg);
	l->cap = l->n;
	list_degraded(l);
}

static void store(struct links *l)
{
	_cleanup_free_ char *temporary = xasprintf("%s.tmp", l->path);
	const struct file_new f = {
		.dir = AT_FDCWD, .name = l->path, .temporary = temporary, .mode = 0600
	};
	_cleanup_strbuf_ struct strbuf text = STRBUF_INIT;
	struct err err = { 0 };
	int r;

	if (!l->n && !l->kept)
		return;
	links_write((const struct link_entry *const *)l->v, l->n, l->boot, &text);
	if (str_eq(l->kept, text.s))
		return;
	r = file_write(&f, text.s, text.len, &err);
	if (r == -ENOENT && mkdir(l->dir, 0755) == 0) /* the first file in it */
		r = file_write(&f, text.s, text.len, &err);
	if (r == 0) {
		free(l->kept);
		l->kept = strbuf_steal(&text);
		l->complained = false;
		return;
	}
	if (!l->complained)
		log_warn(
			"link",
			"the state of links cannot be stored; a restart of railmated loses it error=%s",
			err.msg);
	l->complained = true;
}

struct links *links_new(const struct sysroot *root, const char *dir, int64_t now_ms)
{
	struct links *l = xcalloc(1, sizeof(*l));

	l->root = root;
	if (sysroot_read(root, l->boot, sizeof(l->boot), "proc/sys/kernel/random/boot_id") < 0)
		l->boot[0] = '\0';
	if (dir) {
		l->dir = xstrdup(dir);
		l->path = xasprintf("%s/links.json", dir);
		load(l, now_ms);
	}
	return l;
}

void links_keep(struct links *l)
{
	l->keeps = l->dir != NULL;
}

/* --- */

bool links_check(struct links *l, const struct node *node, int64_t now_ms, int64_t wall_ms)
{
	bool changed = false;

	for (size_t i = 0; i < node->n_pools; i++)
		changed |= check_pool(l, node, &node->pools[i], now_ms, wall_ms);
	changed |= forget_unseen(l);
	list_degraded(l);
	if (l->keeps)
		store(l);
	return changed;
}

const struct node_link *links_degraded(const struct links *l, size_t *ret_n)
{
	*ret_n = l->n_degraded;
	return l->degraded;
}

void links_free(struct links *l)
{
	if (!l)
		return;
	for (size_t i = 0; i < l->n; i++)
		links_free_entry(l->v[i]);
	free(l->v);
	free(l->degraded);
	free(l->dir);
	free(l->path);
	free(l->kept);
	free(l);
}
