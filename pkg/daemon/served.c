#include "daemon/served-internal.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "config/config.h"
#include "plugin/plugin.h"
#include "pool/node.h"

struct entry {
	char *resource;
	bool shared;
	enum pool_binding binding;
	struct plugin *plugin;
};

struct served {
	const struct plugin_env *env;
	struct entry *v;
	size_t n, cap;
};

struct served *served_new(const struct plugin_env *env)
{
	struct served *s = xcalloc(1, sizeof(*s));

	s->env = env;
	return s;
}

static bool is_wanted(const struct entry *e, const struct node *node)
{
	const struct pool *pool =
		e->shared ? node_shared(node, e->resource) : node_pool(node, e->resource);

	return pool && pool->cfg->binding == e->binding;
}

static void end_unwanted(struct served *s, const struct node *node)
{
	size_t kept = 0;

	for (size_t i = 0; i < s->n; i++) {
		if (is_wanted(&s->v[i], node)) {
			s->v[kept++] = s->v[i];
			continue;
		}
		plugin_end(s->v[i].plugin);
		free(s->v[i].resource);
	}
	s->n = kept;
}

static bool has(const struct served *s, const char *resource, bool shared)
{
	for (size_t i = 0; i < s->n; i++) {
		if (s->v[i].shared == shared && !strcmp(s->v[i].resource, resource))
			return true;
	}
	return false;
}

static void add(struct served *s, const struct pool_config *pool, bool shared)
{
	if (has(s, pool->resource, shared))
		return;
	s->v = xgrow(s->v, &s->cap, s->n + 1, sizeof(*s->v));
	s->v[s->n++] = (struct entry) { .resource = xstrdup(pool->resource),
					.shared = shared,
					.binding = pool->binding,
					.plugin = shared ? plugin_new_shared(s->env, pool->resource)
							 : plugin_new(s->env, pool->resource) };
}

void served_update(struct served *s, struct node *node)
{
	end_unwanted(s, node);
	for (size_t i = 0; i < node->n_pools; i++)
		add(s, node->pools[i].cfg, false);
	for (size_t i = 0; i < node->n_shared; i++)
		add(s, node->shared[i].cfg, true);
	for (size_t i = 0; i < s->n; i++)
		plugin_update(s->v[i].plugin, node);
}

void served_kick(struct served *s)
{
	for (size_t i = 0; s && i < s->n; i++)
		plugin_kick(s->v[i].plugin);
}

void served_relist(struct served *s)
{
	for (size_t i = 0; s && i < s->n; i++)
		plugin_relist(s->v[i].plugin);
}

const struct plugin *served_at(const struct served *s, size_t i, const char **ret_resource)
{
	if (i >= s->n)
		return NULL;
	*ret_resource = s->v[i].resource;
	return s->v[i].plugin;
}

void served_free(struct served *s)
{
	if (!s)
		return;
	for (size_t i = 0; i < s->n; i++) {
		plugin_free(s->v[i].plugin);
		free(s->v[i].resource);
	}
	free(s->v);
	free(s);
}
