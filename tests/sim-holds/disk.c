/* The ledger's file, CDI specs and map.json, and what befalls them. */
#include "sim.h"

#include <stdlib.h>
#include <string.h>

/* Takes the text. What was there stays for a while: as somebody's backup. */
void disk_write_ledger(struct world *w, struct text text)
{
	if (w->s.ledger.s) {
		free(w->s.older.s);
		w->s.older = w->s.ledger;
	}
	w->s.ledger = text;
}

bool disk_remove_ledger(struct world *w)
{
	if (w->s.disk == DISK_READONLY)
		return false;
	free(w->s.ledger.s);
	w->s.ledger = (struct text) { NULL, 0 };
	return true;
}

void disk_tear_ledger(struct world *w)
{
	w->s.ledger.len /= 2;
}

void disk_remove_specs(struct world *w)
{
	memset(w->s.spec, 0, sizeof(w->s.spec));
}

void disk_remove_maps(struct world *w)
{
	memset(w->s.map, 0, sizeof(w->s.map));
}

bool is_recorded(const struct world *w, unsigned vf, int pod)
{
	const struct record *map = &w->s.map[vf];

	return map->there &&
	       (map->slot >= VFS_MAX ? w->pods[pod].claims >> claim_of((unsigned)map->slot) & 1
		: map->who.uid >= 0  ? map->who.uid == pod
				     : map->who.name == w->pods[pod].name);
}

/* One that was written at Allocate names nobody: no container has started with it. */
bool record_names(const struct record *r)
{
	return r->there && (r->who.name >= 0 || r->who.uid >= 0);
}

/* The number of its decision, and whose it is. */
static bool write_as(struct world *w, struct record *to, const struct ledger_hold *hold,
		     struct who who)
{
	cut(w);
	if (w->s.run_full)
		return false;
	say(w, "record of %s: %s (%s) number %llu", hold->vf, hold->owner.pod, hold->owner.uid,
	    (unsigned long long)hold->decision);
	*to = (struct record) { .there = true,
				.vf = (uint8_t)vf_number(hold->vf),
				.pool = !strcmp(hold->resource, resource_name(1)),
				.slot = (int8_t)slot_number(hold->slot),
				.who = who,
				.number = hold->decision };
	cut(w);
	return true;
}

bool record_write(struct world *w, struct record *to, const struct ledger_hold *hold)
{
	return write_as(w, to, hold, who_of(&hold->owner));
}

void record_write_allocated(struct world *w, struct record *to, const struct ledger_hold *hold)
{
	write_as(w, to, hold, (struct who) { -1, -1, 0 });
}
