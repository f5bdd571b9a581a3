/* "health" of a pool: when is a link degraded, and when does that make its VFs unhealthy? */
#include "config/config-internal.h"

#include <errno.h>
#include <string.h>

#include "base/mem.h"

#define FLAPS_MAX  30 /* as many are remembered (pool/link.h) */
#define WINDOW_MIN 60
#define WINDOW_MAX 86400
#define ERRORS_MAX 1000000000

const char *const config_link_troubles[LINK_TROUBLES] = { "flaps", "errors", "slow" };
const struct pool_health health_defaults = { .flaps = 3,
					     .window_s = 600,
					     .errors_per_minute = 100 };

static int want_number(const struct parse *p, const struct item *value, int64_t min, int64_t max,
		       unsigned *ret)
{
	if (value->type != ITEM_NUMBER || !value->whole || value->number < min ||
	    value->number > max)
		return refuse(p, value, "must be a whole number from %lld to %lld", (long long)min,
			      (long long)max);
	*ret = (unsigned)value->number;
	return 0;
}

static int read_flaps(struct parse *p, const struct item *value, const struct key *key, void *out)
{
	struct pool_health *health = out;

	(void)key;
	return want_number(p, value, 1, FLAPS_MAX, &health->flaps);
}

static int read_window(struct parse *p, const struct item *value, const struct key *key, void *out)
{
	struct pool_health *health = out;

	(void)key;
	return want_number(p, value, WINDOW_MIN, WINDOW_MAX, &health->window_s);
}

static int read_errors(struct parse *p, const struct item *value, const struct key *key, void *out)
{
	struct pool_health *health = out;

	(void)key;
	return want_number(p, value, 1, ERRORS_MAX, &health->errors_per_minute);
}

static int read_unhealthy(struct parse *p, const struct item *value, const struct key *key,
			  void *out)
{
	struct pool_health *health = out;
	int choice, r = want(p, value, ITEM_LIST);

	(void)key;
	for (size_t i = 0; r == 0 && i < value->n_kids; i++) {
		r = want_choice(p, &value->kids[i], config_link_troubles, LINK_TROUBLES, &choice);
		if (r == 0)
			health->unhealthy |= 1u << choice;
	}
	return r;
}

/* Whole or not at all: a limit alone, without the others that go with it, would mislead. */
int read_health(struct parse *p, const struct item *value, const struct key *key, void *out)
{
	static const struct key keys[] = {
		{ .name = "unhealthy", .read = read_unhealthy },
		{ .name = "flaps", .read = read_flaps },
		{ .name = "window", .read = read_window },
		{ .name = "errorsPerMinute", .read = read_errors },
	};
	static const struct key_set set = { .keys = keys, .n = ARRAY_LEN(keys) };
	struct pool_health health = health_defaults;
	struct pool_config *pool = out;
	int r;

	(void)key;
	r = read_members(p, value, &set, &health);
	if (r == 0)
		pool->health = health;
	return r;
}
