/* railmatectl plan: the choice that would be made, its reasons, and the container's grant. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "align/choose.h"
#include "base/arena.h"
#include "base/err.h"
#include "base/json.h"
#include "base/mem.h"
#include "base/str.h"
#include "config/config.h"
#include "config/policy.h"
#include "grant/grant.h"
#include "grant/rundir.h"
#include "ledger/file.h"
#include "hw/inventory.h"
#include "pool/node.h"
#include "railmatectl.h"
#include "topo/topo.h"
#include "render/topofile.h"

struct request {
	const char *gpus, *pool, *free, *must, *vfs;
	bool json;
};

struct plan {
	const struct machine *m;
	const struct pool *pool;
	struct arena *arena;
	struct choose_in in;
	struct choose_out out;
	struct edits edits;
	struct kv *conf; /* of nccl.conf */
	size_t n_conf;
	const char **notes; /* sentences: omissions, and the releases that read the operator's
			       variables */
	size_t n_notes;
};

/* Calls fn for each item of a comma list; stops at the first failure. */
static int each_item(const char *list,
		     int (*fn)(struct plan *p, const char *item, int **v, size_t *n,
			       struct err *err),
		     struct plan *p, int **v, size_t *n, struct err *err)
{
	_cleanup_free_ char *copy = xstrdup(list);
	char *rest = copy, *item;
	int r;

	*v = arena_array(p->arena, strlen(list) + 1, sizeof(int));
	while ((item = strsep(&rest, ","))) {
		item = str_trim(item);
		if (!*item)
			return err_set(err, EINVAL, "'%s' has an empty item", list);
		r = fn(p, item, v, n, err);
		if (r < 0)
			return r;
	}
	return 0;
}

static int add_once(int value, const char *item, int **v, size_t *n, struct err *err)
{
	for (size_t i = 0; i < *n; i++) {
		if ((*v)[i] == value)
			return err_set(err, EINVAL, "%s is named twice", item);
	}
	(*v)[(*n)++] = value;
	return 0;
}

static int add_gpu(struct plan *p, const char *item, int **v, size_t *n, struct err *err)
{
	const struct hw_inventory *inv = p->m->node->inv;
	uint64_t index;
	struct bdf bdf;
	int pci;

	if (!str_to_u64(item, 10, UINT32_MAX, &index))
		pci = index < inv->n_gpu ? inv->gpu[index].pci : -1;
	else if (!bdf_parse(item, &bdf) || str_starts(item, "GPU-"))
		pci = hw_gpu_of_id(inv, NULL, item);
	else
		return err_set(
			err, EINVAL,
			"--gpus: '%s' is not a PCI address (dddd:bb:dd.f), UUID (GPU-…) or number",
			item);
	if (pci < 0)
		return err_set(err, EINVAL, "--gpus: there is no GPU %s", item);
	return add_once(pci, item, v, n, err);
}

static int add_device(struct plan *p, const char *item, int **v, size_t *n, struct err *err)
{
	const struct pool_dev *dev;
	char buf[BDF_STRLEN];
	struct bdf bdf;

	if (bdf_parse(item, &bdf) == 0)
		item = bdf_format(bdf, buf); /* upper case, too many zeros */
	dev = pool_find(p->pool, item);
	if (!dev)
		return err_set(err, EINVAL, "%s is not a device of the pool %s", item,
			       p->pool->cfg->resource);
	return add_once((int)(dev - p->pool->devs), item, v, n, err);
}

static int read_request(struct plan *p, const struct request *req, struct err *err)
{
	int *free_devs = NULL, *must = NULL, *gpus = NULL;
	size_t n_free = 0, n_must = 0, n_gpus = 0;
	uint64_t want;
	int r;

	r = machine_pool(p->m, req->pool, &p->pool, err);
	if (r == 0 && req->gpus)
		r = each_item(req->gpus, add_gpu, p, &gpus, &n_gpus, err);
	if (r == 0 && req->free)
		r = each_item(req->free, add_device, p, &free_devs, &n_free, err);
	if (r == 0 && !req->free) {
		free_devs = arena_array(p->arena, p->pool->n_devs, sizeof(int));
		while (n_free < p->pool->n_devs) {
			free_devs[n_free] = (int)n_free;
			n_free++;
		}
	}
	if (r == 0 && req->must)
		r = each_item(req->must, add_device, p, &must, &n_must, err);
	if (r < 0)
		return r;
	if (str_to_u64(req->vfs, 10, 65536, &want) < 0 || !want)
		return err_set(err, EINVAL, "--vfs: '%s' is not a count of VFs (1 or more)",
			       req->vfs);
	p->in = (struct choose_in) { .node = p->m->node,
				     .pool = p->pool,
				     .available = free_devs,
				     .n_available = n_free,
				     .must = must,
				     .n_must = n_must,
				     .want = want,
				     .gpus.v = gpus,
				     .gpus.n = n_gpus };
	for (size_t i = 0; i < p->in.n_must; i++) {
		bool found = false;

		for (size_t k = 0; k < p->in.n_available; k++)
			found |= p->in.available[k] == p->in.must[i];
		if (!found)
			return err_set(err, EINVAL, "--must: %s is not free",
				       p->pool->devs[p->in.must[i]].id);
	}
	if (p->in.want > p->in.n_available)
		return err_set(err, EINVAL, "%zu VFs asked for, %zu of the pool %s are free",
			       p->in.want, p->in.n_available, p->pool->cfg->resource);
	if (p->in.n_must > p->in.want)
		return err_set(err, EINVAL, "--must names %zu VFs, --vfs asks for %zu",
			       p->in.n_must, p->in.want);
	return 0;
}

/* --- the container's grant --- */

static int read_container(struct plan *p, const struct grant *grant, struct err *err)
{
	const struct container c = { .grants = grant, .n = 1 };
	const char *const *notes;
	size_t n_notes;
	struct edits env;
	int r = render_container(&c, p->arena, &env, &notes, &n_notes, err);
	const struct pool_config *cfg;

	if (r < 0)
		return r;
	if (grant->files) {
		char *rest = arena_strdup(p->arena, render_nccl_conf(&env, p->arena)), *line;

		/* The lines of nccl.conf, by the same hand that writes the file: a line that is no
		 * variable there is none here. */
		p->conf = arena_array(p->arena, env.n_envs, sizeof(*p->conf));
		while ((line = strsep(&rest, "\n"))) {
			char *value = strchr(line, '=');

			if (*line == '#' || !value)
				continue;
			*value = '\0';
			p->conf[p->n_conf++] = (struct kv) { line, value + 1 };
		}
	}
	p->notes = arena_array(p->arena, n_notes + p->pool->cfg->n_env, sizeof(*p->notes));
	for (size_t i = 0; i < n_notes; i++)
		p->notes[p->n_notes++] = notes[i];
	/* A release that does not know a variable is silent. */
	cfg = p->pool->cfg;
	for (size_t i = 0; i < cfg->n_env; i++) {
		const struct policy_var *var = policy_find(cfg->env[i].name);

		if (var && var->since)
			p->notes[p->n_notes++] = arena_printf(
				p->arena, "%s is read from release %s on; earlier ones ignore it",
				var->name, var->since);
	}
	return 0;
}

static int solve(struct plan *p, struct err *err)
{
	struct pool_vfs vfs = { p->pool, { arena_array(p->arena, p->in.want, sizeof(char *)), 0 } };
	const struct grant_container c = { .pool_vfs = &vfs, .n_pool_vfs = 1 };
	struct bindmount *mounts = arena_array(p->arena, GRANT_MOUNTS, sizeof(*mounts));
	struct grant grant;
	int r, n_mounts;

	p->out = align_choose(&p->in, true, p->arena);
	for (size_t i = 0; i < p->out.n_chosen; i++)
		vfs.vfs.v[vfs.vfs.n++] = p->pool->devs[p->out.chosen[i]].id;
	r = grant_of_ids(p->m->node, p->pool, &vfs.vfs, p->m->root, p->in.gpus, p->arena, &grant,
			 err);
	if (r < 0)
		return r;
	n_mounts =
		grant_make_directory(NULL, STATE_DIR "/" RUNDIR_PROBE, &c, p->arena, mounts, NULL);
	if (n_mounts) {
		const char *topology = topofile_name(p->m->node, p->pool->cfg);

		/* Has the daemon a run directory and the probe, they will be there: the variables
		 * that depend on files are Allocate's. */
		grant.files = true;
		grant.conf_only = render_needs_conf_only(p->m->node);
		if (topology)
			grant.topo_file = arena_printf(p->arena, RENDER_DIR "/%s", topology);
	}
	r = render_grant(&grant, p->arena, &p->edits, err);
	if (r < 0)
		return r;
	p->edits.mounts = mounts;
	p->edits.n_mounts = (size_t)n_mounts;
	return read_container(p, &grant, err);
}

/* --- output --- */

static const char *pci_name(const struct plan *p, int pci, char buf[BDF_STRLEN])
{
	return bdf_format(p->m->node->inv->pci[pci].bdf, buf);
}

static const char *kind_of(const struct plan *p, int dev)
{
	return pool_dev_is_pf(p->m->node, &p->pool->devs[dev]) ? "PF" : "VF";
}

/* The data direct function that makes the VF so near; -1: none does. */
static int pair_direct(const struct plan *p, const struct choose_pair *pair)
{
	return pair->path.direct ? topo_direct(p->m->node->topo, p->pool->devs[pair->dev].pci) : -1;
}

static void json_ids(struct json *j, const char *key, const struct plan *p, const int *devs,
		     size_t n)
{
	json_kv_array(j, key);
	for (size_t i = 0; i < n; i++)
		json_put_string(j, p->pool->devs[devs[i]].id);
	json_end_array(j);
}

static void json_variables(struct json *j, const char *key, const struct kv *v, size_t n)
{
	json_kv_object(j, key);
	for (size_t i = 0; i < n; i++)
		json_kv_string(j, v[i].key, v[i].value);
	json_end_object(j);
}

static void print_json(const struct plan *p, struct strbuf *out)
{
	struct json j;
	char buf[BDF_STRLEN];

	json_init(&j, out, 1);
	json_begin_object(&j);
	json_kv_string(&j, "resource", p->pool->cfg->resource);
	json_ids(&j, "chosen", p, p->out.chosen, p->out.n_chosen);
	json_kv_array(&j, "pairs");
	for (size_t i = 0; i < p->out.n_pairs; i++) {
		const struct choose_pair *pair = &p->out.pairs[i];

		json_begin_object(&j);
		json_kv_string(&j, "gpu", pci_name(p, pair->gpu, buf));
		json_kv_string(&j, "vf", p->pool->devs[pair->dev].id);
		json_kv_string(&j, "class", topo_class_name(pair->path.class));
		if (pair_direct(p, pair) >= 0)
			json_kv_string(&j, "data_direct", pci_name(p, pair_direct(p, pair), buf));
		json_end_object(&j);
	}
	json_end_array(&j);
	json_kv_int(&j, "cost", p->out.cost);
	json_key(&j, "runner_up");
	if (p->out.n_runner_up) {
		json_begin_object(&j);
		json_ids(&j, "chosen", p, p->out.runner_up, p->out.n_runner_up);
		json_kv_int(&j, "cost", p->out.runner_up_cost);
		json_end_object(&j);
	} else {
		json_put_null(&j);
	}
	json_variables(&j, "env", p->edits.envs, p->edits.n_envs);
	json_variables(&j, "nccl_conf", p->conf, p->n_conf);
	json_kv_array(&j, "devices");
	render_json_devices(&p->edits, &j);
	json_end_array(&j);
	json_kv_array(&j, "mounts");
	render_json_mounts(&p->edits, &j);
	json_end_array(&j);
	json_kv_strings(&j, "notes", p->notes, p->n_notes);
	json_end_object(&j);
	strbuf_putc(out, '\n');
}

static void print_variables(struct strbuf *out, const char *head, const struct kv *v, size_t n)
{
	if (n)
		strbuf_printf(out, "%s\n", head);
	for (size_t i = 0; i < n; i++)
		strbuf_printf(out, "  %s=%s\n", v[i].key, v[i].value);
}

static void print_text(const struct plan *p, struct strbuf *out)
{
	char buf[BDF_STRLEN];

	strbuf_printf(out, "pool %s\n", p->pool->cfg->resource);
	for (size_t i = 0; i < p->out.n_pairs; i++) {
		const struct choose_pair *pair = &p->out.pairs[i];

		strbuf_printf(out, "  GPU %-14s %s %-14s %s", pci_name(p, pair->gpu, buf),
			      kind_of(p, pair->dev), p->pool->devs[pair->dev].id,
			      topo_class_name(pair->path.class));
		if (pair_direct(p, pair) >= 0)
			strbuf_printf(out, " via data direct %s",
				      pci_name(p, pair_direct(p, pair), buf));
		strbuf_putc(out, '\n');
	}
	for (size_t i = 0; !p->out.n_pairs && i < p->out.n_chosen; i++)
		strbuf_printf(out, "  %s %s\n", kind_of(p, p->out.chosen[i]),
			      p->pool->devs[p->out.chosen[i]].id);
	if (p->out.n_pairs)
		strbuf_printf(out, "cost %d (PIX 0, PXB 1, PHB 2, NODE 3, SYS 4 a pair)\n",
			      p->out.cost);
	if (p->out.n_runner_up) {
		strbuf_puts(out, "runner-up");
		for (size_t i = 0; i < p->out.n_runner_up; i++)
			strbuf_printf(out, " %s", p->pool->devs[p->out.runner_up[i]].id);
		strbuf_printf(out, ", cost %d\n", p->out.runner_up_cost);
	}
	print_variables(out, "environment", p->edits.envs, p->edits.n_envs);
	print_variables(out,
			RENDER_DIR "/" RENDER_CONF_NAME ", before the container's network is known",
			p->conf, p->n_conf);
	strbuf_puts(out, "device nodes\n");
	for (size_t i = 0; i < p->edits.n_devs; i++)
		strbuf_printf(out, "  %s %s\n", p->edits.devs[i].host,
			      p->edits.devs[i].permissions);
	if (p->edits.n_mounts)
		strbuf_puts(out, "mounts\n");
	for (size_t i = 0; i < p->edits.n_mounts; i++)
		strbuf_printf(out, "  %s at %s%s\n", p->edits.mounts[i].host,
			      p->edits.mounts[i].container,
			      p->edits.mounts[i].read_only ? ", read-only" : "");
	for (size_t i = 0; i < p->n_notes; i++)
		strbuf_printf(out, "note: %s\n", p->notes[i]);
}

int cmd_plan(int argc, char **argv)
{
	_cleanup_(machine_close) struct machine m = { .root_path = "/" };
	_cleanup_arena_ struct arena *arena = arena_new(16384);
	_cleanup_strbuf_ struct strbuf out = STRBUF_INIT;
	struct plan p = { .m = &m, .arena = arena };
	struct request req = { 0 };
	struct err err = { 0 };
	const struct word words[] = {
		{ "root", &m.root_path, NULL },
		{ "config", &m.config_path, NULL },
		{ "json", NULL, &req.json },
		{ "gpus", &req.gpus, NULL },
		{ "vfs", &req.vfs, NULL },
		{ "pool", &req.pool, NULL },
		{ "free", &req.free, NULL },
		{ "must", &req.must, NULL },
		{ "topology-hints", &m.hints_path, NULL },
	};
	int r = read_only_options(argc, argv, words, ARRAY_LEN(words));

	if (r != EXIT_DONE)
		return r;
	if (!req.vfs)
		return fail(EXIT_USAGE,
			    "plan needs --vfs N (and --gpus GPU,… when they are known)");
	r = machine_open(&m);
	if (r != EXIT_DONE)
		return r;
	if (read_request(&p, &req, &err) < 0 || solve(&p, &err) < 0)
		return fail(EXIT_REFUSED, "%s", err.msg);
	(req.json ? print_json : print_text)(&p, &out);
	return print_out(&out);
}
