#include "kubelet/recent.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/mem.h"
#include "base/str.h"
#include "hw/inventory.h"
#include "pool/node.h"

#define RECENT_MAX    64
#define RECENT_AGE_MS 10000

struct answer {
	char *key; /* NULL: free */
	struct choice *choice;
	int64_t at_ms;
};

struct recent {
	struct answer answers[RECENT_MAX];
	size_t next;
};

/* --- choices --- */

static const char *copy_text(const char *s, struct arena *a)
{
	return s ? arena_strdup(a, s) : NULL;
}

static const int *copy_ints(const int *v, size_t n, struct arena *a)
{
	return n ? arena_copy(a, v, n * sizeof(*v)) : NULL;
}

struct choice *choice_copy(const struct choice *from)
{
	struct arena *a = arena_new(1024);
	struct choice *c = arena_copy(a, from, sizeof(*from));

	c->arena = a;
	c->node = node_ref(from->node);
	c->owner =
		(struct ledger_owner) { copy_text(from->owner.ns, a), copy_text(from->owner.pod, a),
					copy_text(from->owner.uid, a),
					copy_text(from->owner.container, a) };
	c->source = copy_text(from->source, a);
	c->gpus = copy_ints(from->gpus, from->n_gpus, a);
	c->busy_gpus = copy_ints(from->busy_gpus, from->n_busy_gpus, a);
	c->available = copy_ints(from->available, from->n_available, a);
	c->must = copy_ints(from->must, from->n_must, a);
	return c;
}

void choice_free(struct choice *c)
{
	if (!c)
		return;
	node_unref(c->node);
	arena_free(c->arena);
}

/* PCI indices belong to one inventory, addresses to the machine. */
size_t choice_known_gpus(const struct choice *c, const struct hw_inventory *inv, struct arena *a,
			 int **ret)
{
	size_t n = 0;

	*ret = NULL;
	if (!c || c->known != LEDGER_GPUS_KNOWN)
		return 0;
	*ret = arena_array(a, c->n_gpus, sizeof(**ret));
	for (size_t i = 0; i < c->n_gpus; i++) {
		int pci = hw_find_pci(inv, c->node->inv->pci[c->gpus[i]].bdf);

		if (pci >= 0)
			(*ret)[n++] = pci;
	}
	return n;
}

/* --- answers --- */

struct recent *recent_new(void)
{
	return xcalloc(1, sizeof(struct recent));
}

static void answer_clear(struct answer *answer)
{
	free(answer->key);
	choice_free(answer->choice);
	*answer = (struct answer) { .key = NULL };
}

void recent_free(struct recent *r)
{
	for (size_t i = 0; r && i < RECENT_MAX; i++)
		answer_clear(&r->answers[i]);
	free(r);
}

static int by_string(const void *x, const void *y)
{
	return strcmp(*(const char *const *)x, *(const char *const *)y);
}

/* The set of ids as one string; they come in any order. */
static char *key_of(const struct ids *ids)
{
	_cleanup_free_ const char **v = xcalloc(ids->n + 1, sizeof(*v));
	struct strbuf b = STRBUF_INIT;

	for (size_t i = 0; i < ids->n; i++)
		v[i] = ids->v[i];
	qsort(v, ids->n, sizeof(*v), by_string);
	for (size_t i = 0; i < ids->n; i++)
		strbuf_printf(&b, "%s\n", v[i]);
	return strbuf_steal(&b);
}

void recent_add(struct recent *r, int64_t now_ms, const struct ids *ids, const struct choice *c)
{
	struct answer *answer = &r->answers[r->next++ % RECENT_MAX];

	answer_clear(answer);
	*answer = (struct answer) { key_of(ids), choice_copy(c), now_ms };
}

static struct answer *find(struct recent *r, int64_t now_ms, const struct ids *ids)
{
	_cleanup_free_ char *key = NULL;
	struct answer *newest = NULL;

	for (size_t i = 0; i < RECENT_MAX; i++) {
		struct answer *answer = &r->answers[i];

		if (!answer->key)
			continue;
		if (now_ms - answer->at_ms > RECENT_AGE_MS) {
			answer_clear(answer);
			continue;
		}
		if (!key)
			key = key_of(ids);
		if (!strcmp(answer->key, key) && (!newest || answer->at_ms >= newest->at_ms))
			newest = answer;
	}
	return newest;
}

struct choice *recent_take(struct recent *r, int64_t now_ms, const struct ids *ids)
{
	struct answer *answer = find(r, now_ms, ids);
	struct choice *c = answer ? STEAL(answer->choice) : NULL;

	if (answer)
		answer_clear(answer);
	return c;
}
