#include "pool/slots.h"

#include <limits.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/str.h"
#include "config/config.h"
#include "pool/pool-internal.h"

/* "-n" and a node, "-" and a number */
#define SUFFIX_MAX  13
#define NODE_MAX    9999
#define PART_MAX    (SLOT_ID_MAX - SUFFIX_MAX)
#define HASH_DIGITS 16

/* --- ids --- */

/*
 * A resource's prefix is a DNS name and has no '_': the first one is where the prefix ends. A name
 * that is too long ends with a hash of the whole instead.
 */
static void name_of(const char *resource, char name[PART_MAX + 1])
{
	const char *slash = strchr(resource, '/');

	if (strlen(resource) <= PART_MAX) {
		strcpy(name, resource);
		if (slash)
			name[slash - resource] = '_';
		return;
	}
	snprintf(name, PART_MAX + 1, "%.*s-%016llx", PART_MAX - HASH_DIGITS - 1, resource,
		 (unsigned long long)str_hash(resource));
	slash = strchr(name, '/');
	if (slash)
		name[slash - name] = '_';
}

const char *pool_slot_id(const char *resource, int numa, unsigned number, struct arena *a)
{
	char name[PART_MAX + 1];

	name_of(resource, name);
	if (numa < 0)
		return arena_printf(a, "%s-any-%u", name, number);
	return arena_printf(a, "%s-n%d-%u", name, numa, number);
}

/* As printf writes it: no sign, no leading zero. */
static bool plain_number(const char *s, uint64_t max, uint64_t *ret)
{
	if (s[0] == '0' && s[1])
		return false;
	return str_to_u64(s, 10, max, ret) == 0;
}

static bool parse_class(const char *s, size_t len, int *ret)
{
	char digits[12];
	uint64_t v;

	if (len == 3 && !strncmp(s, "any", 3)) {
		*ret = SLOT_ANY;
		return true;
	}
	if (len < 2 || len > sizeof(digits) || s[0] != 'n')
		return false;
	memcpy(digits, s + 1, len - 1);
	digits[len - 1] = '\0';
	if (!plain_number(digits, NODE_MAX, &v))
		return false;
	*ret = (int)v;
	return true;
}

/* --- ids of claims --- */

#define UID_LEN 36

static bool is_uid(const char *s, size_t len)
{
	for (size_t i = 0; i < len; i++) {
		bool dash = i == 8 || i == 13 || i == 18 || i == 23;

		if (dash ? s[i] != '-' : !strchr("0123456789abcdefABCDEF", s[i]) || !s[i])
			return false;
	}
	return len == UID_LEN;
}

const char *pool_claim_slot(const char *resource, const char *claim, unsigned number,
			    struct arena *a)
{
	char name[PART_MAX + 1];

	if (!is_uid(claim, strlen(claim)))
		return NULL;
	name_of(resource, name);
	return arena_printf(a, "%s-c%s-%u", name, claim, number);
}

/* "c" and a UID, at the end of the id but for its number; NULL: not so. */
static const char *claim_part(const char *id)
{
	const char *number = strrchr(id, '-'), *c;

	if (!number || number - id < UID_LEN + 2)
		return NULL;
	c = number - UID_LEN - 1;
	return *c == 'c' && c[-1] == '-' && is_uid(c + 1, UID_LEN) ? c : NULL;
}

const char *pool_slot_claim(const char *id, struct arena *a)
{
	const char *c = claim_part(id);

	return c ? arena_printf(a, "%.*s", UID_LEN, c + 1) : NULL;
}

bool pool_slot_parse(const char *resource, const char *id, int *ret_numa, unsigned *ret_number)
{
	char name[PART_MAX + 1];
	const char *class, *dash, *claim = claim_part(id);
	uint64_t number;
	int numa;

	name_of(resource, name);
	if (!str_starts(id, name) || id[strlen(name)] != '-')
		return false;
	class = id + strlen(name) + 1;
	dash = strchr(class, '-');
	if (claim == class && plain_number(class + 1 + UID_LEN + 1, SLOT_NUMBER_MAX, &number)) {
		*ret_numa = SLOT_ANY;
		*ret_number = (unsigned)number;
		return true;
	}
	if (!dash || !parse_class(class, (size_t)(dash - class), &numa) ||
	    !plain_number(dash + 1, SLOT_NUMBER_MAX, &number))
		return false;
	*ret_numa = numa;
	*ret_number = (unsigned)number;
	return true;
}

const struct pool *pool_of_slot(const struct node *node, const char *id)
{
	unsigned number;
	int numa;

	for (size_t i = 0; i < node->n_pools; i++) {
		const struct pool_config *cfg = node->pools[i].cfg;

		if ((cfg->binding == BINDING_LATE || claim_part(id)) &&
		    pool_slot_parse(cfg->resource, id, &numa, &number))
			return &node->pools[i];
	}
	return NULL;
}

int pool_slot_class(const struct pool *pool, const struct pool_dev *dev)
{
	return pool->cfg->exclude_topology || dev->numa < 0 ? SLOT_ANY : dev->numa;
}

/* --- the list --- */

struct use {
	const struct slot_use *use;
	int numa, dev; /* dev: of its VF, -1 */
	unsigned number;
};

struct listing {
	const struct slot_view *view;
	struct arena *arena;
	bool *fit;	  /* by pool index: bound to a slot, or could be */
	struct use *uses; /* sorted by class and number, each slot once */
	size_t n_uses;
	struct slot_list out;
};

/* The bound one first: it is the one that counts when a slot is named twice. */
static int use_cmp(const void *x, const void *y)
{
	const struct use *a = x, *b = y;

	if (a->numa != b->numa)
		return a->numa < b->numa ? -1 : 1;
	if (a->number != b->number)
		return a->number < b->number ? -1 : 1;
	return !a->use->vf - !b->use->vf;
}

static int dev_of(const struct pool *pool, const char *vf)
{
	const struct pool_dev *dev = vf ? pool_find(pool, vf) : NULL;

	return dev ? (int)(dev - pool->devs) : -1;
}

/* Uses from *at on that are of this class; a use whose VF is gone takes none away from the others.
 */
static void list_class(struct listing *l, int numa, size_t *at)
{
	const struct pool *pool = l->view->pool;
	size_t n_devs = 0, end = *at;
	long fit = 0;

	for (size_t i = 0; i < pool->n_devs; i++) {
		if (pool_slot_class(pool, &pool->devs[i]) != numa)
			continue;
		n_devs++;
		fit += l->fit[i];
	}
	for (; end < l->n_uses && l->uses[end].numa == numa; end++)
		fit -= !l->uses[end].use->vf || l->uses[end].dev >= 0;
	for (unsigned k = 0; k < n_devs || *at < end; k++) {
		const struct use *u = *at < end && (k >= n_devs || l->uses[*at].number == k)
					      ? &l->uses[(*at)++]
					      : NULL;
		struct slot *s = &l->out.v[l->out.n++];

		*s = (struct slot) { .numa = numa, .held = u, .dev = u ? u->dev : -1 };
		s->id = pool_slot_id(pool->cfg->resource, numa, u ? u->number : k, l->arena);
		if (u)
			s->healthy = !u->use->vf || (u->dev >= 0 && pool->devs[u->dev].healthy);
		else
			s->healthy = fit-- > 0;
	}
}

/* The smallest class above `above`; false: there is none. */
static bool next_class(const struct listing *l, int above, int *ret)
{
	const struct pool *pool = l->view->pool;
	int best = INT_MAX;

	for (size_t i = 0; i < pool->n_devs; i++) {
		int numa = pool_slot_class(pool, &pool->devs[i]);

		if (numa > above && numa < best)
			best = numa;
	}
	for (size_t i = 0; i < l->n_uses; i++) {
		if (l->uses[i].numa > above && l->uses[i].numa < best)
			best = l->uses[i].numa;
	}
	*ret = best;
	return best != INT_MAX;
}

struct slot_list pool_slots(const struct slot_view *view, struct arena *a)
{
	struct listing l = { .view = view, .arena = a };
	const struct pool *pool = view->pool;
	size_t at = 0, n = 0;

	l.uses = arena_array(a, view->n_uses, sizeof(*l.uses));
	for (size_t i = 0; i < view->n_uses; i++) {
		struct use *u = &l.uses[n];

		u->use = &view->uses[i];
		u->dev = dev_of(pool, u->use->vf);
		n += pool_slot_parse(pool->cfg->resource, u->use->slot, &u->numa, &u->number);
	}
	if (n)
		qsort(l.uses, n, sizeof(*l.uses), use_cmp);
	for (size_t i = 0; i < n; i++) {
		if (!l.n_uses || l.uses[l.n_uses - 1].numa != l.uses[i].numa ||
		    l.uses[l.n_uses - 1].number != l.uses[i].number)
			l.uses[l.n_uses++] = l.uses[i];
	}
	l.fit = arena_array(a, pool->n_devs, sizeof(*l.fit));
	for (size_t i = 0; i < pool->n_devs; i++)
		l.fit[i] = pool->devs[i].healthy;
	for (size_t i = 0; i < view->n_lost; i++) {
		int dev = dev_of(pool, view->lost[i]);

		if (dev >= 0)
			l.fit[dev] = false;
	}
	for (size_t i = 0; i < l.n_uses; i++) {
		if (l.uses[i].dev >= 0)
			l.fit[l.uses[i].dev] = true;
	}
	l.out.v = arena_array(a, pool->n_devs + l.n_uses, sizeof(*l.out.v));
	for (int numa = SLOT_ANY - 1; next_class(&l, numa, &numa);)
		list_class(&l, numa, &at);
	return l.out;
}
