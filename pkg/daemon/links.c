/*
 * The links of the PFs of all pools over time, the file that keeps what is known of them, and DCB
 * against what pools ask of it. scanner.c calls, on the main thread.
 */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/arena.h"
#include "base/err.h"
#include "base/file.h"
#include "base/json.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/str.h"
#include "config/config.h"
#include "daemon/links-internal.h"
#include "devstate/devstate.h"
#include "document/document.h"
#include "hw/bdf.h"
#include "hw/dcb.h"
#include "hw/inventory.h"
#include "load/load.h"
#include "pool/link.h"
#include "pool/node.h"
#include "sysroot/sysroot.h"

/* A port of a PF of a pool. Pools may have limits of their own, so each judges for itself. */
struct link_entry {
	char *resource;
	char pf[BDF_STRLEN];
	int port; /* from 1; 1 also while the PF has no RDMA device */
	struct link_history history;
	char *degraded;	  /* a clause; NULL: it is well */
	int64_t since_ms; /* Unix time */
	bool unhealthy;
	bool seen; /* by the check under way */
};

/* The links as JSON: facts that a restart of railmated would forget. */

static void links_free_entry(struct link_entry *e);

static void write_flaps(const struct link_history *h, struct json *j)
{
	json_kv_array(j, "flaps_ms");
	for (size_t i = 0; i < h->n_flaps; i++)
		json_put_int(j, h->flap_ms[i]);
	json_end_array(j);
}

static void write_entry(const struct link_entry *e, struct json *j)
{
	const struct link_history *h = &e->history;

	json_begin_object(j);
	json_kv_string(j, "resource", e->resource);
	json_kv_string(j, "pf", e->pf);
	json_kv_int(j, "port", e->port);
	json_kv_string(j, "degraded", e->degraded);
	json_kv_bool(j, "unhealthy", e->unhealthy);
	json_kv_int(j, "trouble", h->trouble);
	json_kv_int(j, "since_ms", e->since_ms);
	json_kv_int(j, "rate_mbps", h->best_rate_mbps);
	json_kv_int(j, "pcie_mts", h->best_mts);
	json_kv_int(j, "pcie_width", h->best_width);
	json_kv_int(j, "netdev_downs", h->last.netdev_downs);
	json_kv_int(j, "port_downs", h->last.port_downs);
	write_flaps(h, j);
	json_end_object(j);
}

/* boot: an id of this start of the machine, for times are monotonic and counters begin anew. */
static void links_write(const struct link_entry *const *v, size_t n, const char *boot,
			struct strbuf *out)
{
	struct json j;

	json_init(&j, out, 1);
	json_begin_object(&j);
	json_kv_string(&j, "boot", boot);
	json_kv_array(&j, "links");
	for (size_t i = 0; i < n; i++)
		write_entry(v[i], &j);
	json_end_array(&j);
	json_end_object(&j);
	strbuf_putc(out, '\n');
}

static bool read_count(const struct item *o, const char *key, int64_t min, int64_t max,
		       int64_t *ret)
{
	const struct item *i = item_get(o, key);

	if (!i || i->type != ITEM_NUMBER || !i->whole || i->number < min || i->number > max)
		return false;
	*ret = i->number;
	return true;
}

static bool read_flaps(const struct item *o, int64_t now_ms, struct link_history *h)
{
	const struct item *list = item_get(o, "flaps_ms");

	if (!list || list->type != ITEM_LIST || list->n_kids > LINK_FLAPS_KEPT)
		return false;
	for (size_t i = 0; i < list->n_kids; i++) {
		const struct item *at = &list->kids[i];

		if (at->type != ITEM_NUMBER || !at->whole || at->number < 0 || at->number > now_ms)
			return false;
		h->flap_ms[h->n_flaps++] = at->number;
	}
	h->next_flap = h->n_flaps % LINK_FLAPS_KEPT;
	return true;
}

static bool read_history(const struct item *o, int64_t now_ms, struct link_history *h)
{
	int64_t trouble, rate, mts, width, netdev, port;

	if (!read_count(o, "trouble", 0, (1 << LINK_TROUBLES) - 1, &trouble) ||
	    !read_count(o, "rate_mbps", 0, INT_MAX, &rate) ||
	    !read_count(o, "pcie_mts", 0, INT_MAX, &mts) ||
	    !read_count(o, "pcie_width", 0, INT_MAX, &width) ||
	    !read_count(o, "netdev_downs", -1, INT64_MAX, &netdev) ||
	    !read_count(o, "port_downs", -1, INT64_MAX, &port) || !read_flaps(o, now_ms, h))
		return false;
	h->begun = true;
	h->trouble = (unsigned)trouble;
	h->best_rate_mbps = (int)rate;
	h->best_mts = (int)mts;
	h->best_width = (int)width;
	/* How often it went down meanwhile is counted; how fast errors came cannot be known. */
	h->last = (struct link_sample) { .at_ms = now_ms - LINK_SAMPLE_MS,
					 .netdev_downs = netdev,
					 .port_downs = port,
					 .errors = -1 };
	h->errors_then = -1;
	h->errors_since_ms = now_ms;
	return true;
}

static struct link_entry *read_entry(const struct item *o, int64_t now_ms)
{
	const char *resource = item_string(o, "resource"), *pf = item_string(o, "pf"),
		   *degraded = item_string(o, "degraded");
	const struct item *unhealthy = item_get(o, "unhealthy");
	struct link_entry *e = xcalloc(1, sizeof(*e));
	int64_t port;
	struct bdf bdf;

	if (!resource || !pf || bdf_parse(pf, &bdf) < 0 || !unhealthy ||
	    unhealthy->type != ITEM_BOOL || !read_count(o, "port", 1, INT_MAX, &port) ||
	    !read_count(o, "since_ms", 0, INT64_MAX, &e->since_ms) ||
	    !read_history(o, now_ms, &e->history) || !degraded != !e->history.trouble) {
		free(e);
		return NULL;
	}
	e->resource = xstrdup(resource);
	bdf_format(bdf, e->pf);
	e->port = (int)port;
	e->degraded = degraded ? xstrdup(degraded) : NULL;
	e->unhealthy = unhealthy->boolean;
	return e;
}

/* The text of an earlier railmated; of another start of the machine: nothing. Errors for the rate
 * are counted from now_ms on. -errno: it is not such a text, *ret and *ret_n are untouched. */
static int links_read(const char *text, size_t len, const char *path, const char *boot,
		      int64_t now_ms, struct link_entry ***ret, size_t *ret_n, struct err *err)
{
	_cleanup_arena_ struct arena *a = arena_new(8192);
	const struct item *top, *list;
	struct link_entry **v;
	size_t n = 0;
	int r = document_parse(text, len, path, a, &top, err);

	if (r < 0)
		return r;
	list = item_get(top, "links");
	if (!item_string(top, "boot") || !list || list->type != ITEM_LIST)
		return err_set(err, EBADMSG, "%s has no links", path);
	if (strcmp(item_string(top, "boot"), boot) != 0)
		return 0;
	v = xcalloc(list->n_kids, sizeof(struct link_entry *));
	for (size_t i = 0; i < list->n_kids; i++) {
		v[n] = read_entry(&list->kids[i], now_ms);
		if (v[n++])
			continue;
		while (--n)
			links_free_entry(v[n - 1]);
		free(v);
		return err_set(err, EBADMSG, "%s:%d: this is not a link", path, list->kids[i].line);
	}
	*ret = v;
	*ret_n = n;
	return 0;
}

/* --- DCB --- */

struct qos {
	qos_ask *ask;
	char **said; /* to each pool of the node before; NULL: nothing */
	size_t n;
};

struct qos *qos_new(qos_ask *ask)
{
	struct qos *q = xcalloc(1, sizeof(*q));

	q->ask = ask;
	return q;
}

/* Traffic classes beside NCCL_IB_TC, which goes together with NCCL_IB_SL. */
static const char *const classes[] = { "NCCL_IB_FIFO_TC", "UCX_IB_TRAFFIC_CLASS",
				       "NVSHMEM_IB_TRAFFIC_CLASS" };

/* -1: the pool does not set it, or to a word (UCX's auto). */
static int policy_number(const struct pool_config *cfg, const char *name)
{
	int number;

	for (size_t i = 0; i < cfg->n_env; i++) {
		if (str_eq(cfg->env[i].name, name))
			return str_to_int(cfg->env[i].value, &number) == 0 ? number : -1;
	}
	return -1;
}

static bool has_policy(const struct pool_config *cfg)
{
	bool any = policy_number(cfg, "NCCL_IB_TC") >= 0 || policy_number(cfg, "NCCL_IB_SL") >= 0;

	for (size_t i = 0; i < ARRAY_LEN(classes); i++)
		any = any || policy_number(cfg, classes[i]) >= 0;
	return any;
}

/* The variables that contradict the port, with "; " between. */
static bool contradicts(const struct pool_config *cfg, const struct hw_dcb *dcb, struct strbuf *out)
{
	bool any = hw_dcb_contradicts(dcb, policy_number(cfg, "NCCL_IB_TC"),
				      policy_number(cfg, "NCCL_IB_SL"), out);

	for (size_t i = 0; i < ARRAY_LEN(classes); i++) {
		_cleanup_strbuf_ struct strbuf how = STRBUF_INIT;
		int tc = policy_number(cfg, classes[i]);

		if (tc < 0 || !hw_dcb_class_contradicts(dcb, classes[i], tc, &how))
			continue;
		strbuf_printf(out, "%s%s", any ? "; " : "", strbuf_str(&how));
		any = true;
	}
	return any;
}

void qos_judge(qos_ask *ask, const struct node *node, const struct pool *pool, struct strbuf *out)
{
	bool asked = has_policy(pool->cfg);
	size_t others = 0;
	int last = -1;

	for (size_t i = 0; asked && i < pool->n_devs; i++) {
		_cleanup_strbuf_ struct strbuf how = STRBUF_INIT;
		int pf = hw_pf_of(node->inv, pool->devs[i].pci);
		struct hw_dcb dcb;

		/* Devices are in the order of addresses, so those of a PF follow each other. */
		if (pf < 0 || pf == last || !node->inv->pci[pf].netdev)
			continue;
		last = pf;
		if (ask(node->inv->pci[pf].netdev, &dcb, NULL) < 0 ||
		    !contradicts(pool->cfg, &dcb, &how))
			continue;
		if (out->len)
			others++;
		else
			strbuf_printf(out, "%s: on %s, %s", pool->cfg->resource,
				      node->inv->pci[pf].netdev, strbuf_str(&how));
	}
	if (others)
		strbuf_printf(out, "; %zu more of its PFs contradict the pool's env, too", others);
}

void qos_check(struct qos *q, const struct node *node)
{
	char **said = xcalloc(node->n_pools, sizeof(*said));

	for (size_t i = 0; i < node->n_pools; i++) {
		struct strbuf text = STRBUF_INIT;

		qos_judge(q->ask, node, &node->pools[i], &text);
		if (text.len && (i >= q->n || !str_eq(q->said[i], text.s)))
			log_warn("pool", "env of the pool contradicts its PFs reason=%s", text.s);
		said[i] = text.len ? strbuf_steal(&text) : NULL;
	}
	for (size_t i = 0; i < q->n; i++)
		free(q->said[i]);
	free(q->said);
	q->said = said;
	q->n = node->n_pools;
}

void qos_free(struct qos *q)
{
	if (!q)
		return;
	for (size_t i = 0; i < q->n; i++)
		free(q->said[i]);
	free(q->said);
	free(q);
}

/* --- over time --- */

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

static void links_free_entry(struct link_entry *e)
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
