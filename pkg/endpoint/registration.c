#include "endpoint/registration-internal.h"

#include <assert.h>

#define BACKOFF_FIRST_MS 10
#define BACKOFF_MAX_MS	 5000
#define AWAIT_MS	 15000 /* kubelet 1.20 answers first and dials, with retries, afterwards */
#define SETTLE_MS	 5000  /* a stream this old forgives earlier failures */
#define DRAIN_MS	 1000
#define ABSENT_MS	 1000 /* a look at the directory, should the event be missed */
/* The kubelet's socket file is there some milliseconds before it listens (docs/design/kubelet.md
 * §5.3). */
#define REFUSED_MS  2
#define REFUSED_MAX 1000

enum timer { KEEP, OFF, FIRST_AT_ONCE, BACKOFF, REFUSED, AWAIT, SETTLE, ABSENT, DRAIN };

struct transition {
	bool set; /* else the event changes nothing */
	enum reg_state next;
	unsigned actions;
	enum timer timer;
	bool forgive; /* forget the failures so far */
};

#define GO(next, ...)                                                                              \
	{                                                                                          \
		true, next, __VA_ARGS__                                                            \
	}

static const struct transition table[REG_STATE_MAX][REG_EV_MAX] = {
	[REG_DOWN] = {
		[REG_EV_SERVING] = GO(REG_CALLING, REG_CALL, OFF, true),
	},
	[REG_ABSENT] = {
		[REG_EV_NEW] = GO(REG_CALLING, REG_CALL, OFF, true),
		[REG_EV_OPENED] = GO(REG_REGISTERED, 0, SETTLE, false),
		[REG_EV_TIMER] = GO(REG_CALLING, REG_CALL, OFF, false),
	},
	[REG_CALLING] = {
		[REG_EV_NEW] = GO(REG_CALLING, REG_CANCEL | REG_CALL, OFF, true),
		[REG_EV_GONE] = GO(REG_ABSENT, REG_CANCEL, ABSENT, false),
		[REG_EV_REFUSED] = GO(REG_WAITING, 0, REFUSED, false),
		[REG_EV_OK] = GO(REG_AWAIT, 0, AWAIT, false),
		[REG_EV_FAILED] = GO(REG_WAITING, 0, BACKOFF, false),
		[REG_EV_TAKEN] = GO(REG_WAITING, 0, FIRST_AT_ONCE, false),
		[REG_EV_OPENED] = GO(REG_DIALLED, 0, KEEP, false),
	},
	[REG_DIALLED] = {
		[REG_EV_NEW] = GO(REG_DRAINING, REG_CANCEL | REG_END, DRAIN, true),
		[REG_EV_OK] = GO(REG_REGISTERED, 0, SETTLE, false),
		/* The stream counts: kubelets up to 1.34 keep it though our call ran out of time. */
		[REG_EV_FAILED] = GO(REG_REGISTERED, 0, SETTLE, false),
		[REG_EV_CLOSED] = GO(REG_CALLING, 0, KEEP, false),
	},
	[REG_AWAIT] = {
		[REG_EV_NEW] = GO(REG_CALLING, REG_CALL, OFF, true),
		[REG_EV_GONE] = GO(REG_ABSENT, 0, ABSENT, false),
		[REG_EV_OPENED] = GO(REG_REGISTERED, 0, SETTLE, false),
		[REG_EV_TIMER] = GO(REG_CALLING, REG_CALL, OFF, false),
	},
	[REG_REGISTERED] = {
		[REG_EV_NEW] = GO(REG_DRAINING, REG_END, DRAIN, true),
		[REG_EV_LOST] = GO(REG_DRAINING, REG_END, DRAIN, false),
		[REG_EV_CLOSED] = GO(REG_WAITING, 0, FIRST_AT_ONCE, false),
		[REG_EV_TIMER] = GO(REG_REGISTERED, 0, OFF, true),
	},
	[REG_WAITING] = {
		[REG_EV_NEW] = GO(REG_CALLING, REG_CALL, OFF, true),
		[REG_EV_GONE] = GO(REG_ABSENT, 0, ABSENT, false),
		[REG_EV_OPENED] = GO(REG_REGISTERED, 0, SETTLE, false),
		[REG_EV_TIMER] = GO(REG_CALLING, REG_CALL, OFF, false),
	},
	[REG_DRAINING] = {
		[REG_EV_CLOSED] = GO(REG_CALLING, REG_CALL, OFF, false),
		[REG_EV_TIMER] = GO(REG_CALLING, REG_CALL, OFF, false),
	},
};

static int backoff_ms(unsigned failures)
{
	int ms = BACKOFF_FIRST_MS;

	if (!failures)
		return 0;
	while (--failures && ms < BACKOFF_MAX_MS)
		ms *= 2;
	return ms < BACKOFF_MAX_MS ? ms : BACKOFF_MAX_MS;
}

static int timer_ms(struct registration *r, enum timer timer)
{
	switch (timer) {
	case KEEP:
		return REG_TIMER_KEEP;
	case OFF:
		return REG_TIMER_OFF;
	case FIRST_AT_ONCE:
		return backoff_ms(r->failures++);
	case REFUSED:
		if (r->refusals++ < REFUSED_MAX)
			return REFUSED_MS;
		return backoff_ms(++r->failures);
	case BACKOFF:
		return backoff_ms(++r->failures);
	case AWAIT:
		return AWAIT_MS;
	case SETTLE:
		return SETTLE_MS;
	case ABSENT:
		return ABSENT_MS;
	case DRAIN:
		return DRAIN_MS;
	}
	return REG_TIMER_KEEP;
}

unsigned endpoint_registration_step(struct registration *r, enum reg_event event, int *ret_timer_ms)
{
	const struct transition *t;

	assert(r->state < REG_STATE_MAX && event < REG_EV_MAX);
	t = &table[r->state][event];
	*ret_timer_ms = REG_TIMER_KEEP;
	if (!t->set)
		return 0;
	r->state = t->next;
	if (t->forgive)
		r->failures = r->refusals = 0;
	*ret_timer_ms = timer_ms(r, t->timer);
	return t->actions;
}

bool endpoint_registration_awaits_stream(const struct registration *r)
{
	return r->state == REG_CALLING || r->state == REG_DIALLED || r->state == REG_AWAIT ||
	       r->state == REG_WAITING;
}

const char *endpoint_registration_state_name(enum reg_state state)
{
	static const char *const names[REG_STATE_MAX] = {
		[REG_DOWN] = "down",
		[REG_ABSENT] = "no kubelet",
		[REG_CALLING] = "registering",
		[REG_DIALLED] = "dialled",
		[REG_AWAIT] = "awaiting stream",
		[REG_REGISTERED] = "registered",
		[REG_WAITING] = "waiting",
		[REG_DRAINING] = "draining",
	};

	return names[state];
}
