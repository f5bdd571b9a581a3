/* What the containers run: profiles, and the operator's variables for them. */
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/arena.h"
#include "base/mem.h"
#include "base/str.h"
#include "config/config-internal.h"
#include "config/policy.h"

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

static int refuse_unknown(const struct parse *p, const struct item *at)
{
	const struct policy_var *near = policy_nearest(at->key);
	const char *name = document_shown(at->key, p->scratch);

	if (near)
		return refuse(p, at, "there is no variable '%s'; did you mean '%s'?", name, near->name);
	return refuse(p, at,
		      "'%s' is no variable that railmate knows (docs/nccl.md lists them): set it in the pods",
		      name);
}

static int refuse_ours(const struct parse *p, const struct item *at, const struct policy_var *var)
{
	if (var->key)
		return refuse(p, at, "railmate sets this; the key '%s' of the pool says how", var->key);
	return refuse(p, at, "railmate sets this, for each container: %s", var->meaning);
}

static int check_repeated(const struct parse *p, const struct item *at)
{
	for (const struct item *other = at->parent->kids; other < at; other++) {
		if (!strcasecmp(other->key, at->key))
			return refuse(p, at, "repeats the variable '%s' of line %d (case does not count)",
				      document_shown(other->key, p->scratch), other->line);
	}
	return 0;
}

/* A name that may be set and a value that it may have. */
static int check_variable(struct parse *p, const struct item *at, const struct policy_var *var)
{
	int r = check_repeated(p, at);

	if (r < 0)
		return r;
	if (!var)
		return refuse_unknown(p, at);
	if (var->class == POLICY_OURS)
		return refuse_ours(p, at, var);
	r = want(p, at, ITEM_STRING);
	if (r < 0)
		return r;
	if (!policy_accepts(var, at->string))
		return refuse(p, at, "'%s' is not legal; legal values: %s", shown(p, at),
			      policy_legal_text(var, p->scratch));
	if (var->class == POLICY_RISKY)
		warn(p, at, "is better left alone: %s", var->risk);
	if (var->class == POLICY_GONE)
		warn(p, at, "was removed in release %s and does nothing: %s", var->removed, var->meaning);
	return 0;
}

static void take_variable(struct parse *p, const struct item *at, struct pool_config *pool,
			  struct policy_env *env)
{
	const char *value = arena_strdup(p->out, at->string);

	if (str_eq(at->key, "UCX_NET_DEVICES"))
		pool->ucx_devices = value;
	else
		env[pool->n_env++] = (struct policy_env) { arena_strdup(p->out, at->key), value };
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
		r = check_variable(p, kid, policy_find(kid->key));
		if (r == 0)
			take_variable(p, kid, pool, env);
	}
	qsort(env, pool->n_env, sizeof(*env), env_cmp);
	pool->env = env;
	return r;
}
