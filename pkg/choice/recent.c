#include "choice/choice.h"

#include <stdlib.h>
#include <string.h>

#include "base/list.h"
#include "base/mem.h"
#include "base/str.h"

#define RECENT_MAX    64
#define RECENT_AGE_MS 10000

struct answer {
	char *key; /* NULL: free */
	struct choice *choice;
	int64_t at_ms;
};

struct recent_answers {
	struct answer answers[RECENT_MAX];
	size_t next;
};

struct recent_answers *choice_recent_new(void)
{
	return xcalloc(1, sizeof(struct recent_answers));
}

static void answer_clear(struct answer *answer)
{
	free(answer->key);
	choice_free(answer->choice);
	*answer = (struct answer) { .key = NULL };
}

void choice_recent_free(struct recent_answers *r)
{
	for (size_t i = 0; r && i < RECENT_MAX; i++)
		answer_clear(&r->answers[i]);
	free(r);
}

/* The set of ids as one string; they come in any order. */
static char *key_of(const struct ids *ids)
{
	_cleanup_free_ const char **v = xcalloc(ids->n + 1, sizeof(*v));
	struct strbuf b = STRBUF_INIT;

	for (size_t i = 0; i < ids->n; i++)
		v[i] = ids->v[i];
	qsort(v, ids->n, sizeof(*v), list_by_string);
	for (size_t i = 0; i < ids->n; i++)
		strbuf_printf(&b, "%s\n", v[i]);
	return strbuf_steal(&b);
}

void choice_recent_add(struct recent_answers *r, int64_t now_ms, const struct ids *ids,
		       const struct choice *c)
{
	struct answer *answer = &r->answers[r->next++ % RECENT_MAX];

	answer_clear(answer);
	*answer = (struct answer) { key_of(ids), choice_copy(c), now_ms };
}

struct choice *choice_recent_take(struct recent_answers *r, int64_t now_ms, const struct ids *ids)
{
	_cleanup_free_ char *key = NULL;
	struct answer *newest = NULL;
	struct choice *c;

	for (size_t i = 0; i < RECENT_MAX; i++) {
		struct answer *answer = &r->answers[i];

		if (!answer->key)
			continue;
		if (now_ms - answer->at_ms > RECENT_AGE_MS) {
			answer_clear(answer);
			continue;
		}
		if (!key)
			key = key_of(ids);
		if (!strcmp(answer->key, key) && (!newest || answer->at_ms >= newest->at_ms))
			newest = answer;
	}
	if (!newest)
		return NULL;
	c = STEAL(newest->choice);
	answer_clear(newest);
	return c;
}
