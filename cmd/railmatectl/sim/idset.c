#include "sim/idset.h"

#include <stdlib.h>
#include <string.h>

#include "base/list.h"
#include "base/mem.h"

bool sim_idset_has(const struct idset *s, const char *id)
{
	return list_has((const char *const *)s->v, s->n, id);
}

void sim_idset_add(struct idset *s, const char *id)
{
	if (sim_idset_has(s, id))
		return;
	s->v = xgrow(s->v, &s->cap, s->n + 1, sizeof(*s->v));
	s->v[s->n++] = xstrdup(id);
}

void sim_idset_remove(struct idset *s, const char *id)
{
	for (size_t i = 0; i < s->n; i++) {
		if (strcmp(s->v[i], id))
			continue;
		free(s->v[i]);
		memmove(&s->v[i], &s->v[i + 1], (s->n - i - 1) * sizeof(*s->v));
		s->n--;
		return;
	}
}

void sim_idset_done(struct idset *s)
{
	for (size_t i = 0; i < s->n; i++)
		free(s->v[i]);
	free(s->v);
	*s = (struct idset) { 0 };
}
