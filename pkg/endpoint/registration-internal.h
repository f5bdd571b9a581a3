/*
 * The registration protocol as a pure step: event in, state changed, actions out. The kubelet side
 * is described in docs/design/kubelet.md §5; in short: it dials back before Register returns,
 * registered means that a ListAndWatch stream is open, and up to 1.36 an old stream that ends after
 * a new registration takes the new one down with it.
 */
#ifndef RAILMATE_ENDPOINT_REGISTRATION_INTERNAL_H
#define RAILMATE_ENDPOINT_REGISTRATION_INTERNAL_H

#include <stdbool.h>

enum reg_state {
	REG_DOWN,	/* not serving yet */
	REG_ABSENT,	/* no kubelet socket: its arrival is an event */
	REG_CALLING,	/* Register is under way */
	REG_DIALLED,	/* Register is under way, and the stream is open already */
	REG_AWAIT,	/* Register succeeded, the stream has to come */
	REG_REGISTERED, /* the stream is open */
	REG_WAITING,	/* until the next try */
	REG_DRAINING,	/* the old stream is being ended; then Register */
	REG_STATE_MAX,
};

enum reg_event {
	REG_EV_SERVING, /* our socket is there */
	REG_EV_NEW,	/* the kubelet's socket is not the one of our last try */
	REG_EV_GONE,	/* there is no kubelet socket */
	REG_EV_REFUSED, /* it is there, but refuses connections (yet) */
	REG_EV_OK,	/* Register returned */
	REG_EV_FAILED,
	REG_EV_TAKEN,  /* Register failed: the kubelet knows the path of our socket already */
	REG_EV_LOST,   /* the kubelet offers other devices than those of our list */
	REG_EV_OPENED, /* the first stream opened */
	REG_EV_CLOSED, /* the last stream is gone */
	REG_EV_TIMER,
	REG_EV_MAX,
};

enum {
	REG_CALL = 1,	/* look for the kubelet and call Register */
	REG_CANCEL = 2, /* give the call under way up, without an event; before REG_CALL */
	REG_END = 4,	/* end the streams */
};

struct registration {
	enum reg_state state;
	unsigned failures; /* in a row */
	unsigned refusals; /* of this kubelet socket */
};

#define REG_TIMER_KEEP (-1)
#define REG_TIMER_OFF  (-2)

/* Returns the actions, REG_* flags. ret_timer_ms: when to send REG_EV_TIMER (one timer; a new value
 * replaces it), or REG_TIMER_KEEP/OFF. */
unsigned endpoint_registration_step(struct registration *r, enum reg_event event,
				    int *ret_timer_ms);
bool endpoint_registration_awaits_stream(
	const struct registration *r); /* could one that opens now be of our call? */
const char *endpoint_registration_state_name(enum reg_state state);

#endif
