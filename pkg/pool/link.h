/*
 * Is the link of a PF degraded? A judgement over time: samples go in, one after the other, and the
 * troubles of the link come out. A trouble begins at a limit and ends only when the link has been
 * well for a while, so that it does not flicker with the samples. Pure.
 */
#ifndef RAILMATE_POOL_LINK_H
#define RAILMATE_POOL_LINK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct pool_health;
struct strbuf;

#define LINK_FLAPS_KEPT 32
#define LINK_SLOW_MS	10000 /* slow for so long: a link that comes up trains first */
#define LINK_CALM_MS	60000 /* as fast as before for so long: not slow any more */
#define LINK_ERRORS_MS	20000 /* errors are counted over no less */
#define LINK_SAMPLE_MS	1000  /* samples that are closer together have nothing new */

struct link_sample {
	int64_t at_ms;			  /* monotonic */
	int64_t netdev_downs, port_downs; /* how often each went down since boot; -1 unknown */
	int64_t errors;			  /* counted since boot, of all kinds; -1 unknown */
	int rate_mbps;			  /* of the port; 0 unknown */
	int link_mts, link_width;	  /* PCIe: MT/s per lane, and lanes; 0 unknown */
	int most_mts, most_width;	  /* the most that both its ends can do; 0 unknown */
};

/* Zero-initialised. */
struct link_history {
	bool begun;
	struct link_sample last;
	int best_rate_mbps, best_mts, best_width;
	int64_t flap_ms[LINK_FLAPS_KEPT]; /* a ring */
	size_t n_flaps, next_flap;
	int64_t errors_then, then_ms; /* where counting begins */
	double errors_per_minute;     /* of the last interval */
	int64_t errors_since_ms;      /* the last one above half of the limit */
	int64_t slow_since_ms;	      /* 0: it is not */
	int64_t fast_since_ms;	      /* 0: it is slow */
	unsigned trouble;	      /* enum link_trouble, config/config.h */
};

/* Returns the trouble after this sample. */
unsigned link_judge(struct link_history *h, const struct link_sample *s,
		    const struct pool_health *limits);
/* Appends its troubles, as clauses with ", " between; none: it is well. The text is the same while
 * a trouble lasts. */
void link_say(const struct link_history *h, const struct pool_health *limits, struct strbuf *out);

#endif
