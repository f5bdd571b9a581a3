/* Processes by name, and the GPUs of each; the VFs that containers were given. */
#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/err.h"
#include "base/mem.h"
#include "document/document.h"
#include "verify/verify-internal.h"

static uint64_t hash_host(const char *host, size_t len, uint64_t pid)
{
	uint64_t h = pid;

	for (size_t i = 0; i <= len; i++) {
		h = (h ^ (i < len ? (unsigned char)host[i] : len)) * 0x9e3779b97f4a7c15u;
		h ^= h >> 29;
	}
	return h;
}

static bool is_proc(const struct proc *p, const char *host, size_t len, uint64_t pid)
{
	return p->pid == pid && !strncmp(p->host, host, len) && !p->host[len];
}

struct proc *verify_proc(struct verify *v, const char *host, size_t host_len, uint64_t pid)
{
	size_t len =
		host_len < sizeof(v->last_proc->host) ? host_len : sizeof(v->last_proc->host) - 1;
	uint64_t slot;
	struct proc *p;

	if (v->last_proc && is_proc(v->last_proc, host, len, pid))
		return v->last_proc;
	for (slot = hash_host(host, len, pid) % TABLE_SLOTS; v->proc_slots[slot];
	     slot = (slot + 1) % TABLE_SLOTS) {
		p = v->procs[v->proc_slots[slot] - 1];
		if (is_proc(p, host, len, pid))
			return v->last_proc = p;
	}
	if (v->n_procs == VERIFY_MAX_GPUS) {
		verify_saw(v, SIGN_TOO_MANY, "");
		return NULL;
	}
	p = xcalloc(1, sizeof(*p));
	memcpy(p->host, host, len);
	p->pid = pid;
	v->procs[v->n_procs++] = p;
	v->proc_slots[slot] = (uint16_t)v->n_procs;
	return v->last_proc = p;
}

struct gpu *verify_gpu(struct verify *v, struct proc *proc, unsigned cuda)
{
	struct gpu *g = proc->gpus;

	while (g && g->cuda != cuda)
		g = g->next;
	if (g)
		return g;
	if (v->n_gpus == VERIFY_MAX_GPUS) {
		verify_saw(v, SIGN_TOO_MANY, "");
		return NULL;
	}
	g = xcalloc(1, sizeof(*g));
	*g = (struct gpu) { .proc = proc, .cuda = cuda, .rank = -1, .next = proc->gpus };
	return v->gpus[v->n_gpus++] = proc->gpus = g;
}

void verify_rank(struct verify *v, uint64_t rank, uint64_t n, uint64_t least)
{
	if (n > v->ranks) {
		v->ranks = n;
		memset(v->rank_seen, 0, sizeof(v->rank_seen));
	}
	if (least > v->least_ranks)
		v->least_ranks = least;
	if (n == v->ranks && rank < MAX_RANKS)
		v->rank_seen[rank / 64] |= UINT64_C(1) << rank % 64;
}

uint64_t verify_ranks_seen(const struct verify *v)
{
	uint64_t n = 0;

	for (size_t i = 0; i < MAX_RANKS / 64; i++)
		n += (uint64_t)__builtin_popcountll(v->rank_seen[i]);
	return n;
}

uint64_t verify_hosts_seen(const struct verify *v)
{
	uint64_t n = 0;

	for (size_t i = 0; i < v->n_procs; i++) {
		size_t k = 0;

		while (k < i &&
		       (!v->procs[k]->nccl || strcmp(v->procs[k]->host, v->procs[i]->host) != 0))
			k++;
		n += k == i && v->procs[i]->nccl;
	}
	return n;
}

/* "2026-05-16 08:01:02" or with a T; "[rank3]: …", "[Rank 3] …", "[1,3]<stdout>: …", near the
 * line's begin. */
static void read_head(const char *line, size_t len, struct proof *p)
{
	static const char *const ranks[] = { "[rank", "Rank ", "[1,", "[default", "rank=" };
	char head[160] = "";

	memcpy(head, line, len < sizeof(head) ? len : sizeof(head) - 1);
	for (const char *at = head; *at; at++) {
		int n = 0;

		(void)sscanf(at, "%*4u-%*2u-%*2u%*1[T ]%*2u:%*2u:%*2u%n", &n);
		if (n == 19 && !p->moment[0])
			memcpy(p->moment, at, (size_t)n);
		for (size_t i = 0; !p->proc && p->rank < 0 && i < ARRAY_LEN(ranks); i++) {
			size_t k = strlen(ranks[i]);

			if (!strncmp(at, ranks[i], k) && isdigit((unsigned char)at[k]))
				p->rank = strtol(at + k, NULL, 10);
		}
	}
}

static void prove(const struct verify *v, struct proof *p, const char *source, uint64_t line,
		  const char *text)
{
	size_t n = strnlen(text, sizeof(p->text) - 1);

	if (p->count++)
		return;
	*p = (struct proof) { .count = 1,
			      .source = source,
			      .line = line,
			      .seq = v->lines,
			      .proc = v->writer,
			      .cuda = v->writer ? v->writer_cuda : -1,
			      .rank = -1 };
	if (v->text) /* the judge finds those that no line of this moment has */
		read_head(v->text, v->text_len, p);
	memcpy(p->text, text, n);
	p->text[n] = '\0';
	str_utf8_trim(p->text);
}

int64_t verify_rank_of(const struct proof *p)
{
	for (const struct gpu *g = p->proc ? p->proc->gpus : NULL; g; g = g->next) {
		if (g->cuda == p->cuda)
			return g->rank;
	}
	return p->rank;
}

void verify_saw_at(struct verify *v, unsigned id, const char *source, uint64_t line,
		   const char *text)
{
	prove(v, &v->signs[id], source, line, text);
}

/* In the line that is being read; an empty text is about no line. */
void verify_saw(struct verify *v, unsigned id, const char *text)
{
	verify_saw_at(v, id, *text ? v->source : NULL, *text ? v->line : 0, text);
}

void verify_warned(struct verify *v, const char *text)
{
	verify_saw(v, SIGN_OTHER_WARN, text);
	for (size_t i = 0; i < v->n_warns; i++) {
		if (!strncmp(v->warns[i].text, text, MAX_PROOF - 1)) {
			v->warns[i].count++;
			return;
		}
	}
	if (v->n_warns < MAX_WARNS)
		prove(v, &v->warns[v->n_warns++], v->source, v->line, text);
}

void verify_ground(struct verify *v, enum ground ground, const char *text)
{
	prove(v, &v->grounds[ground], v->source, v->line, text);
}

/* --- map.json: unknown keys are for newer readers --- */

#define MAP_VERSION 1
#define MAX_ENTRIES 1024 /* every GPU with every HCA of the largest machine */

/* "0000:1b:00.0" as NCCL prints it: 0x1b000 */
static uint64_t bus_of(const char *address)
{
	uint64_t bus = 0;

	for (const char *p = address; p && *p; p++) {
		if (*p == ':' || *p == '.')
			continue;
		if (!isxdigit((unsigned char)*p))
			return 0;
		bus = bus << 4 |
		      (uint64_t)(isdigit((unsigned char)*p) ? *p - '0' : (*p | 0x20) - 'a' + 10);
	}
	return bus;
}

/* False: neither a string nor null. */
static bool read_text(const struct item *object, const char *key, const char **ret)
{
	const struct item *item = item_get(object, key);

	*ret = item_string(object, key);
	return *ret || !item || item->type == ITEM_NULL;
}

/* False: railmated does not write such a one. */
static bool read_entry(const struct item *object, struct map_entry *e)
{
	const struct item *gid = item_get(object, "gid");
	bool no_gid = !gid || gid->type == ITEM_NULL;
	const struct item *number = item_get(object, "port");
	int64_t port = item_number(object, "port", !number || number->type == ITEM_NULL ? 1 : 0);
	int64_t mbps = item_number(object, "mbps", 0);

	if (!item_get(object, "hca") || !read_text(object, "hca", &e->hca) ||
	    !read_text(object, "gpu", &e->gpu) || !read_text(object, "vf", &e->vf) ||
	    !read_text(object, "netdev", &e->netdev) || !read_text(object, "path", &e->path))
		return false;
	e->port = (uint64_t)port;
	e->gid_index = no_gid ? -1 : item_number(gid, "index", -1);
	e->mbps = mbps > 0 ? mbps : 0;
	e->gpu_bus = bus_of(e->gpu);
	return (!e->hca || *e->hca) && port >= 1 && port <= 255 &&
	       (no_gid || (e->gid_index >= 0 && e->gid_index <= UINT16_MAX)) &&
	       (!e->gpu || e->gpu_bus);
}

int verify_add_map(struct verify *v, const char *host, const char *text, size_t len,
		   const char *name, struct err *err)
{
	struct map *map = arena_alloc(v->arena, sizeof(*map));
	const struct item *top, *list;
	int r;

	r = document_parse(text, len, name, v->arena, &top, err);
	if (r < 0)
		return r;
	list = item_get(top, "gpus");
	if (top->type != ITEM_OBJECT || item_number(top, "version", 0) != MAP_VERSION)
		return err_set(err, EINVAL,
			       "%s: not a map of version %d (\"version\": %d is missing)", name,
			       MAP_VERSION, MAP_VERSION);
	if (!list || list->type != ITEM_LIST)
		return err_set(err, EINVAL, "%s: gpus has to be a list", name);
	if (list->n_kids > MAX_ENTRIES)
		return err_set(err, EINVAL, "%s: gpus has %zu elements, more than %d", name,
			       list->n_kids, MAX_ENTRIES);
	map->entries = arena_array(v->arena, list->n_kids, sizeof(*map->entries));
	for (size_t i = 0; i < list->n_kids; i++) {
		struct map_entry e = { 0 };

		if (!read_entry(&list->kids[i], &e))
			return err_set(err, EINVAL,
				       "%s:%d: an element of gpus is not as railmated writes it",
				       name, list->kids[i].line);
		if (e.hca) /* a VF of a network pool has none */
			map->entries[map->n_entries++] = e;
	}
	for (const struct map *m = v->maps; m; m = m->next) {
		if (str_eq(m->host, host))
			return err_set(err, EINVAL, "%s: there is a map for %s already", name,
				       host ? host : "every host");
	}
	map->host = arena_strdup(v->arena, host);
	map->next = v->maps;
	v->maps = map;
	return 0;
}

const struct map *verify_map_of(const struct verify *v, const char *host)
{
	const struct map *any = NULL;

	for (const struct map *m = v->maps; m; m = m->next) {
		if (str_eq(m->host, host))
			return m;
		if (!m->host)
			any = m;
	}
	return any;
}

/* port 0: any. */
const struct map_entry *map_entry_of(const struct map *map, const char *hca, size_t len,
				     uint64_t port)
{
	for (size_t i = 0; i < map->n_entries; i++) {
		const struct map_entry *e = &map->entries[i];

		if (strlen(e->hca) == len && !strncmp(e->hca, hca, len) &&
		    (!port || e->port == port))
			return e;
	}
	return NULL;
}

bool verify_mapped(const struct verify *v, const char *hca, uint64_t port, const char **gpu,
		   const char **vf)
{
	for (const struct map *m = v->maps; m; m = m->next) {
		const struct map_entry *e = map_entry_of(m, hca, strlen(hca), port);

		if (!e)
			continue;
		*gpu = e->gpu;
		*vf = e->vf;
		return true;
	}
	return false;
}
