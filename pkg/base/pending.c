#include "base/pending.h"

#include <assert.h>
#include <stdlib.h>

#include "base/mem.h"

struct pending {
	void *owner;
	struct pending **slot; /* NULL: cancelled */
};

struct pending *pending_new(void *owner, struct pending **slot)
{
	struct pending *p = xcalloc(1, sizeof(*p));

	assert(!*slot);
	*p = (struct pending) { owner, slot };
	*slot = p;
	return p;
}

void *pending_end(void *pending)
{
	struct pending *p = pending;
	void *owner = p->slot ? p->owner : NULL;

	if (p->slot)
		*p->slot = NULL;
	free(p);
	return owner;
}

void pending_cancel(struct pending **slot)
{
	if (*slot)
		(*slot)->slot = NULL;
	*slot = NULL;
}
