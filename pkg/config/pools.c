/* The list of pools, which both kinds of configuration have: names, and which pools are left out.
 */
#include <ctype.h>
#include <errno.h>
#include <string.h>

#include "base/arena.h"
#include "base/err.h"
#include "base/str.h"
#include "config/config-internal.h"

int read_resource_name(struct parse *p, const struct item *value, const struct key *key, void *out)
{
	const char *fault;
	int r = want(p, value, ITEM_STRING);

	(void)key;
	if (r < 0)
		return r;
	fault = resource_name_fault(value->string);
	if (fault)
		return refuse(p, value, "resource name '%s' %s", shown(p, value), fault);
	((struct pool_entry *)out)->name = value;
	return 0;
}

/* "" is the peers' way to leave it out. */
int read_resource_prefix(struct parse *p, const struct item *value, const struct key *key,
			 void *out)
{
	struct pool_entry *e = out;
	const char *fault;
	int r = want(p, value, ITEM_STRING);

	(void)key;
	e->misnamed = r < 0;
	if (r < 0 || !value->string[0])
		return r;
	fault = resource_prefix_fault(value->string);
	e->misnamed = fault;
	if (fault)
		return refuse(p, value, "resource prefix '%s' %s", shown(p, value), fault);
	e->prefix = value;
	return 0;
}

static const char *resource_of(const struct parse *p, const struct pool_entry *e)
{
	return arena_printf(p->out, "%s/%s", e->prefix ? e->prefix->string : p->default_prefix,
			    e->name->string);
}

int name_pool(struct parse *p, struct pool_entry *e)
{
	const char *fault = e->prefix ? NULL : resource_prefix_fault(p->default_prefix);

	if (!e->name)
		return refuse(p, e->at, "has no resourceName");
	if (fault)
		return refuse(p, e->at, "the default resource prefix '%s' (of the command line) %s",
			      document_shown(p->default_prefix, p->scratch), fault);
	e->pool.name = arena_strdup(p->out, e->name->string);
	e->pool.prefix = arena_strdup(p->out, e->prefix ? e->prefix->string : p->default_prefix);
	e->pool.resource = resource_of(p, e);
	return 0;
}

/* As variables of a container, where case and signs are gone (render_env_name()). */
static bool same_variables(const char *a, const char *b)
{
	for (; *a && *b; a++, b++) {
		bool signs = strchr("-_./", *a) && strchr("-_./", *b);

		if (!signs && tolower((unsigned char)*a) != tolower((unsigned char)*b))
			return false;
	}
	return *a == *b;
}

/* line: of the other pool; 0: it is in another file. */
static int check_pair(const struct parse *p, const struct pool_entry *e, const char *other,
		      int line)
{
	const char *of = line ? arena_printf(p->scratch, "line %d already", line) : "another pool";

	if (str_eq(other, e->pool.resource))
		return refuse(p, e->name, "'%s' is the resource of %s: names must differ",
			      e->pool.resource, of);
	if (same_variables(other, e->pool.resource))
		return refuse(
			p, e->name,
			"'%s' and '%s' would have the same variables in a container: names must differ in more than case, '-', '_', '.' and '/'",
			e->pool.resource, other);
	return 0;
}

static int check_unique(const struct parse *p, const struct pool_list *list,
			const struct pool_entry *e)
{
	const struct config *other = list->other;
	int r = 0;

	for (size_t i = 0; r == 0 && i < list->n; i++)
		r = check_pair(p, e, list->v[i].pool.resource, list->v[i].name->line);
	for (size_t i = 0; r == 0 && other && i < other->n_pools; i++)
		r = check_pair(p, e, other->pools[i].resource, 0);
	return r;
}

/* The reason comes before the pool's other errors, which are from `at` on. */
static void leave_pool_out(struct parse *p, size_t at)
{
	const char **v = p->errors.v, *last;

	if (!p->n_refused++) {
		p->refusal = arena_strdup(p->scratch, p->err->msg);
		p->refused_at = at;
	}
	leave_out(p, "the pool");
	if (p->errors.n > WARNINGS_MAX)
		return;
	last = v[p->errors.n - 1];
	memmove(&v[at + 1], &v[at], (p->errors.n - 1 - at) * sizeof(*v));
	v[at] = last;
}

/* Behind so many errors an entry is not read to its end. */
static void note_fault(struct parse *p, struct pool_list *list, const struct pool_entry *e)
{
	bool known = e->name && !e->misnamed && p->errors.n < WARNINGS_MAX;

	list->faults[list->n_faults++] =
		(struct pool_error) { known ? resource_of(p, e) : NULL, list->n };
}

int read_pools(struct parse *p, const struct item *value, pool_fn one, size_t max,
	       struct pool_list *ret)
{
	int r = want(p, value, ITEM_LIST);

	if (r < 0)
		return r;
	if (value->n_kids > max)
		return refuse(p, value, "has %zu pools; at most %zu are served", value->n_kids,
			      max);
	ret->v = arena_array(p->scratch, value->n_kids, sizeof(*ret->v));
	ret->faults = arena_array(p->scratch, value->n_kids, sizeof(*ret->faults));
	for (size_t i = 0; i < value->n_kids; i++) {
		struct pool_entry entry = { .at = &value->kids[i] };
		size_t n_errors = p->errors.n;

		railmate_pool_defaults(&entry.pool);
		r = one(p, &value->kids[i], &entry);
		if (r == 0)
			r = check_unique(p, ret, &entry);
		if (r < 0 || p->errors.n > n_errors)
			note_fault(p, ret, &entry);
		if (r == 0)
			ret->v[ret->n++] = entry;
		else
			leave_pool_out(p, n_errors);
	}
	return 0;
}

int refuse_empty(const struct parse *p, const struct item *document, const char *list)
{
	if (p->n_refused == 1)
		return err_set(p->err, EINVAL, "%s", p->refusal);
	if (p->n_refused)
		return err_set(p->err, EINVAL,
			       "%s; none of the %zu other pools can be served either", p->refusal,
			       p->n_refused - 1);
	return refuse(p, document, "nothing to serve: '%s' must list at least one pool", list);
}

const struct pool_error *take_faults(struct parse *p, const struct pool_list *list)
{
	return arena_copy(p->out, list->faults, list->n_faults * sizeof(*list->faults));
}

const struct pool_config *take_pools(struct parse *p, const struct pool_list *list)
{
	struct pool_config *pools = arena_array(p->out, list->n, sizeof(*pools));

	for (size_t i = 0; i < list->n; i++)
		pools[i] = list->v[i].pool;
	return pools;
}
