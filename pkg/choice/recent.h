/*
 * The grounds of the last preferred allocations. Allocate follows within milliseconds and names
 * only ids: exactly the ids of an answer mean its container.
 */
#ifndef RAILMATE_CHOICE_RECENT_H
#define RAILMATE_CHOICE_RECENT_H

#include <stddef.h>
#include <stdint.h>

#include "kubemsg/messages.h"

struct choice;
struct recent_answers;

struct recent_answers *choice_recent_new(void);
void choice_recent_free(struct recent_answers *r); /* NULL is fine */
void choice_recent_add(struct recent_answers *r, int64_t now_ms, const struct ids *ids,
		       const struct choice *c); /* c is copied */
/*
 * NULL: these ids were not an answer. An answer counts once, and not after ten seconds: later the
 * same ids may go to another container of which we know nothing. To be freed.
 */
struct choice *choice_recent_take(struct recent_answers *r, int64_t now_ms, const struct ids *ids);

#endif
