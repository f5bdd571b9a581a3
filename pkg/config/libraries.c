/* The libraries of containers: profiles, and the operator's variables for them. */
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
	unsigned profiles = 0, known = 0;
	bool none = false;

	(void)key;
	if (r < 0)
		return r;
	for (size_t i = 0; i < value->n_kids; i++) {
		int choice = 0;

		if (want_choice(p, &value->kids[i], names, ARRAY_LEN(names), &choice) < 0) {
			leave_out(p, "the profile");
			continue;
		}
		none |= choice == ARRAY_LEN(names) - 1;
		known++;
		if (choice < (int)ARRAY_LEN(names) - 1)
			profiles |= 1u << choice;
	}
	if (none && value->n_kids > 1)
		return refuse(p, value, "'none' stands alone, or is left out");
	if (value->n_kids && !known)
		return 0; /* the default holds */
	pool->profiles = profiles;
	pool->profiles_named = true;
	return 0;
}

/* Any word. */
static const struct policy_var unknown_var = { .legal = { .kind = POLICY_TEXT,
							  .shape = "a word without blanks" } };

static int env_cmp(const void *a, const void *b)
{
	return strcmp(((const struct policy_env *)a)->name, ((const struct policy_env *)b)->name);
}

/* Could a shell export it, and is it none of those that railmate writes? */
static bool is_foreign_name(const char *name)
{
	return *name && !strchr("0123456789", *name) &&
	       strspn(name, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_") ==
		       strlen(name) &&
	       !str_starts(name, "RAILMATE_") && !str_starts(name, "PCIDEVICE_");
}

/* Libraries have new variables with every release: one that is not known here is taken as it is. */
static int check_unknown(struct parse *p, const struct item *at)
{
	const struct policy_var *near = policy_nearest(at->key);
	const char *name = document_shown(at->key, p->scratch);
	int r;

	if (!is_foreign_name(at->key))
		return refuse(p, at, "'%s' is not the name of a variable that a pool can set",
			      name);
	r = want(p, at, ITEM_STRING);
	if (r < 0)
		return r;
	if (!policy_accepts(&unknown_var, at->string))
		return refuse(p, at, "'%s' is not legal; legal values: %s", shown(p, at),
			      policy_legal_text(&unknown_var, p->scratch));
	if (near)
		config_warn(p, at, "'%s' is not known, and taken as it is; did you mean '%s'?",
			    name, near->name);
	else
		config_warn(
			p, at,
			"'%s' is not known, and taken as it is (docs/nccl-variables.md lists the known ones)",
			name);
	return 0;
}

static int refuse_ours(const struct parse *p, const struct item *at, const struct policy_var *var)
{
	if (var->key)
		return refuse(p, at, "railmate sets this; the key '%s' of the pool says how",
			      var->key);
	return refuse(p, at, "railmate sets this, for each container: %s", var->meaning);
}

static int check_repeated(const struct parse *p, const struct item *at)
{
	for (const struct item *other = at->parent->kids; other < at; other++) {
		if (!strcasecmp(other->key, at->key))
			return refuse(p, at,
				      "repeats the variable '%s' of line %d (case does not count)",
				      document_shown(other->key, p->scratch), other->line);
	}
	return 0;
}

/* A name that may be set and a value that it may have. */
static int check_variable(struct parse *p, const struct item *at, const struct policy_var *var)
{
	int r = check_repeated(p, at);
	const char *risk;

	if (r < 0)
		return r;
	if (!var)
		return check_unknown(p, at);
	if (var->class == POLICY_OURS)
		return refuse_ours(p, at, var);
	r = want(p, at, ITEM_STRING);
	if (r < 0)
		return r;
	if (!policy_accepts(var, at->string))
		return refuse(p, at, "'%s' is not legal; legal values: %s", shown(p, at),
			      policy_legal_text(var, p->scratch));
	if (var->class == POLICY_RISKY)
		config_warn(p, at, "is better left alone: %s", var->risk);
	if (var->class == POLICY_GONE)
		config_warn(p, at, "was removed in release %s and does nothing: %s", var->removed,
			    var->meaning);
	risk = policy_value_risk(var->name, at->string);
	if (risk)
		config_warn(p, at, "%s", risk);
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
	for (size_t i = 0; i < value->n_kids; i++) {
		const struct item *kid = &value->kids[i];

		if (kid->type == ITEM_NULL)
			continue;
		if (check_variable(p, kid, policy_find(kid->key)) < 0)
			leave_out(p, "the variable");
		else
			take_variable(p, kid, pool, env);
	}
	qsort(env, pool->n_env, sizeof(*env), env_cmp);
	pool->env = env;
	return r;
}
