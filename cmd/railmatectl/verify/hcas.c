/* The allocated VFs (map.json, else an exact NCCL_IB_HCA) against those that NCCL takes and those
 * that its channels use. */
#include <stdlib.h>
#include <string.h>

#include "verify/verify-internal.h"

static bool takes(const struct proc *p, const char *name, size_t len, uint64_t port)
{
	for (size_t i = 0; i < p->n_hcas; i++) {
		const struct hca *h = &p->hcas[i];

		if (!h->fused && strlen(h->name) == len && !strncmp(h->name, name, len) &&
		    (!port || h->port == port))
			return true;
	}
	return false;
}

static void saw_hca(struct verify *v, enum sign_id id, const struct proc *p, const char *name,
		    size_t len, uint64_t port)
{
	_cleanup_strbuf_ struct strbuf text = STRBUF_INIT;

	strbuf_printf(&text, "%s process %llu: %.*s", p->host, (unsigned long long)p->pid, (int)len,
		      name);
	if (port)
		strbuf_printf(&text, ":%llu", (unsigned long long)port);
	verify_saw_at(v, id, p->using_source, p->using_line, strbuf_str(&text));
}

/* A number stands for one HCA, or for several that are fused: "a+b", or two of one number. */
static bool dev_has(const struct proc *p, unsigned dev, const char *name, size_t len)
{
	for (size_t i = 0; i < p->n_hcas; i++) {
		const char *part = p->hcas[i].name;

		for (; p->hcas[i].dev == dev && *part;
		     part += strcspn(part, "+"), part += *part == '+') {
			if (strcspn(part, "+") == len && !strncmp(part, name, len))
				return true;
		}
	}
	return false;
}

static bool gpu_uses(const struct gpu *g, const struct map_entry *e, uint64_t devs)
{
	for (unsigned dev = 0; dev < VERIFY_MAX_DEVS; dev++) {
		if (devs >> dev & 1 && (g->by_dev[dev].n[0] || g->by_dev[dev].n[1]) &&
		    dev_has(g->proc, dev, e->hca, strlen(e->hca)))
			return true;
	}
	return false;
}

/* Every rank of the host is in the log: as many as NCCL counts, or the map has GPUs. */
static bool host_is_complete(const struct verify *v, const struct proc *first,
			     const struct map *map)
{
	size_t seen = 0, expected = first->local_ranks;

	for (size_t i = 0; !first->local_ranks && i < map->n_entries; i++) {
		bool again = !map->entries[i].gpu_bus;

		for (size_t k = 0; k < i; k++)
			again = again || map->entries[k].gpu_bus == map->entries[i].gpu_bus;
		expected += !again;
	}
	for (size_t i = 0; i < v->n_gpus; i++)
		seen += !strcmp(v->gpus[i]->proc->host, first->host);
	return seen >= expected;
}

/* The HCAs that the process takes against the map; then those that channels use, once a host, and
 * only when it is complete: ranks that are not in the log may use the rest. */
static void compare_with_map(struct verify *v, size_t index, const struct map *map)
{
	const struct proc *p = v->procs[index];

	for (size_t i = 0; i < map->n_entries; i++) {
		const struct map_entry *e = &map->entries[i];

		if (!takes(p, e->hca, strlen(e->hca), e->port))
			saw_hca(v, SIGN_HCA_MISSING, p, e->hca, strlen(e->hca), e->port);
	}
	for (size_t i = 0; i < p->n_hcas; i++) {
		const struct hca *h = &p->hcas[i];

		if (!h->fused && !map_entry_of(map, h->name, strlen(h->name), h->port))
			saw_hca(v, SIGN_HCA_FOREIGN, p, h->name, strlen(h->name), h->port);
	}
	for (size_t i = 0; i < index; i++) {
		if (!strcmp(v->procs[i]->host, p->host))
			return;
	}
	if (!v->net_channels || !host_is_complete(v, p, map))
		return;
	for (size_t i = 0; i < map->n_entries; i++) {
		const struct map_entry *e = &map->entries[i];
		bool used = !takes(p, e->hca, strlen(e->hca), e->port); /* reported above */

		for (size_t k = 0; !used && k < v->n_gpus; k++)
			used = !strcmp(v->gpus[k]->proc->host, p->host) &&
			       gpu_uses(v->gpus[k], e, UINT64_MAX);
		if (!used)
			saw_hca(v, SIGN_HCA_UNUSED, p, e->hca, strlen(e->hca), e->port);
	}
}

static void compare_gpu(struct verify *v, const struct gpu *g, const struct map *map)
{
	_cleanup_strbuf_ struct strbuf text = STRBUF_INIT;
	const struct map_entry *own = NULL;

	if (!g->own_devs || !g->bus || !g->proc->n_hcas)
		return;
	for (size_t i = 0; i < map->n_entries; i++) {
		if (map->entries[i].gpu_bus != g->bus)
			continue;
		own = &map->entries[i];
		if (gpu_uses(g, own, g->own_devs))
			return;
	}
	if (!own)
		return;
	strbuf_printf(&text, "%s GPU %s: %s:%llu is its own, and carries none of its channels",
		      g->proc->host, own->gpu, own->hca, (unsigned long long)own->port);
	verify_saw_at(v, SIGN_HCA_FAR, g->source, g->line, strbuf_str(&text));
}

void verify_compare_hcas(struct verify *v)
{
	for (size_t i = 0; i < v->n_procs; i++) {
		const struct proc *p = v->procs[i];
		const struct map *map = verify_map_of(v, p->host);

		if (!p->using_source)
			continue;
		if (map) {
			compare_with_map(v, i, map);
			continue;
		}
		if (!p->wanted || p->wanted[0] != '=' || !p->wanted[1]) {
			verify_saw(v, SIGN_NO_SET, "");
			continue;
		}
		/* "=mlx5_4:1,mlx5_5:1": an HCA that is named and not taken has a port that is not
		 * ACTIVE, or does not exist. */
		for (const char *entry = p->wanted + 1; *entry; entry += *entry == ',') {
			size_t len = strcspn(entry, ":,");
			uint64_t port = entry[len] == ':' ? strtoull(entry + len + 1, NULL, 10) : 0;

			if (len && !takes(p, entry, len, port))
				saw_hca(v, SIGN_HCA_MISSING, p, entry, len, port);
			entry += strcspn(entry, ",");
		}
	}
	for (size_t i = 0; v->maps && i < v->n_gpus; i++) {
		const struct map *map = verify_map_of(v, v->gpus[i]->proc->host);

		if (map)
			compare_gpu(v, v->gpus[i], map);
	}
}

void proc_hca_name(const struct proc *p, unsigned dev, struct strbuf *out)
{
	bool named = false;

	for (size_t i = 0; i < p->n_hcas; i++) {
		if (p->hcas[i].dev != dev)
			continue;
		strbuf_printf(out, "%s%s", named ? "+" : "", p->hcas[i].name);
		if (p->hcas[i].port)
			strbuf_printf(out, ":%u", p->hcas[i].port);
		named = true;
	}
	if (!named)
		strbuf_printf(out, "#%u", dev);
}
