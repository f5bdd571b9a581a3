/* What the containers run: profiles, and the operator's variables for them. */
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/arena.h"
#include "base/mem.h"
#include "base/str.h"
#include "config/config-internal.h"

int read_profiles(struct parse *p, const struct item *value, const struct key *key, void *out)
{
	static const char *const names[] = { "nccl",	"rccl", "ucx",	  "nvshmem",
					     "mscclpp", "ofi",	"oneccl", "none" };
	struct pool_config *pool = out;
	int r = want(p, value, ITEM_LIST);
	bool none = false;

	(void)key;
	pool->profiles = 0;
	for (size_t i = 0; r == 0 && i < value->n_kids; i++) {
		int choice = 0;

		r = want_choice(p, &value->kids[i], names, ARRAY_LEN(names), &choice);
		none |= choice == ARRAY_LEN(names) - 1;
		if (r == 0 && choice < (int)ARRAY_LEN(names) - 1)
			pool->profiles |= 1u << choice;
	}
	if (r == 0 && none && value->n_kids > 1)
		return refuse(p, value, "'none' stands alone, or is left out");
	pool->profiles_named = true;
	return r;
}

static int env_cmp(const void *a, const void *b)
{
	return strcmp(((const struct policy_env *)a)->name, ((const struct policy_env *)b)->name);
}

int read_env(struct parse *p, const struct item *value, const struct key *key, void *out)
{
	struct pool_config *pool = out;
	struct policy_env *env;
	int r = want(p, value, ITEM_OBJECT);

	(void)key;
	if (r < 0)
		return r;
	env = arena_array(p->out, value->n_kids, sizeof(*env));
	for (size_t i = 0; r == 0 && i < value->n_kids; i++) {
		const struct item *kid = &value->kids[i];

		if (kid->type == ITEM_NULL)
			continue;
		r = want(p, kid, ITEM_STRING);
		if (r == 0)
			env[pool->n_env++] = (struct policy_env) { arena_strdup(p->out, kid->key),
								   arena_strdup(p->out, kid->string) };
	}
	qsort(env, pool->n_env, sizeof(*env), env_cmp);
	pool->env = env;
	return r;
}
