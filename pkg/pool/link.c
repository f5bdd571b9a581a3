#include "pool/link.h"

#include "base/str.h"
#include "config/config.h"

/* --- how often did it go down? --- */

/* A counter that is smaller than before was reset: with the driver, or by hand. */
static int64_t counted(int64_t before, int64_t now)
{
	return before < 0 || now < before ? 0 : now - before;
}

/* Within the window that ends with the last sample. */
static unsigned flaps_of(const struct link_history *h, const struct pool_health *limits)
{
	unsigned n = 0;

	for (size_t i = 0; i < h->n_flaps; i++)
		n += h->last.at_ms - h->flap_ms[i] < (int64_t)limits->window_s * 1000;
	return n;
}

/* --- how fast does it count errors? --- */

static void begin_counting(struct link_history *h, const struct link_sample *s)
{
	h->errors_then = s->errors;
	h->then_ms = s->at_ms;
}

static void count(struct link_history *h, const struct link_sample *s)
{
	int64_t netdev = counted(h->last.netdev_downs, s->netdev_downs);
	int64_t port = counted(h->last.port_downs, s->port_downs);
	int64_t n = netdev > port ? netdev : port, ms = s->at_ms - h->then_ms;

	/* Both may count the same; an interface that is switched off counts nothing. */
	for (int64_t i = 0; i < n && i < LINK_FLAPS_KEPT; i++) {
		h->flap_ms[h->next_flap] = s->at_ms;
		h->next_flap = (h->next_flap + 1) % LINK_FLAPS_KEPT;
		if (h->n_flaps < LINK_FLAPS_KEPT)
			h->n_flaps++;
	}
	if (s->errors < 0 || h->errors_then < 0 || s->errors < h->errors_then) {
		h->errors_per_minute = 0;
		begin_counting(h, s);
	} else if (ms >= LINK_ERRORS_MS) {
		h->errors_per_minute = (double)(s->errors - h->errors_then) * 60000 / (double)ms;
		begin_counting(h, s);
	}
}

/* --- is it as fast as it was? --- */

static void keep_best(int *best, int now)
{
	if (now > *best)
		*best = now;
}

/* An unknown value (a port that is down has no rate) is no trouble. */
static bool is_below(int now, int best)
{
	return now && now < best;
}

static bool is_slow(struct link_history *h, const struct link_sample *s)
{
	bool slow;

	keep_best(&h->best_rate_mbps, s->rate_mbps);
	/* One that was narrow before we looked first is slow as well. */
	keep_best(&h->best_mts, s->most_mts);
	keep_best(&h->best_width, s->most_width);
	keep_best(&h->best_mts, s->link_mts);
	keep_best(&h->best_width, s->link_width);
	slow = is_below(s->rate_mbps, h->best_rate_mbps) || is_below(s->link_mts, h->best_mts) ||
	       is_below(s->link_width, h->best_width);
	if (slow) {
		h->fast_since_ms = 0;
		h->slow_since_ms = h->slow_since_ms ? h->slow_since_ms : s->at_ms;
		return s->at_ms - h->slow_since_ms >= LINK_SLOW_MS || h->trouble & LINK_SLOW;
	}
	h->slow_since_ms = 0;
	h->fast_since_ms = h->fast_since_ms ? h->fast_since_ms : s->at_ms;
	return h->trouble & LINK_SLOW && s->at_ms - h->fast_since_ms < LINK_CALM_MS;
}

unsigned link_judge(struct link_history *h, const struct link_sample *s,
		    const struct pool_health *limits)
{
	double limit = limits->errors_per_minute;
	unsigned trouble = 0, flaps;

	if (h->begun && s->at_ms - h->last.at_ms < LINK_SAMPLE_MS)
		return h->trouble;
	if (h->begun)
		count(h, s);
	else
		begin_counting(h, s);
	h->begun = true;
	h->last = *s;
	flaps = flaps_of(h, limits);
	if (flaps >= limits->flaps || (flaps && h->trouble & LINK_FLAPS))
		trouble |= LINK_FLAPS;
	if (h->errors_per_minute >= limit / 2)
		h->errors_since_ms = s->at_ms;
	if (h->errors_per_minute >= limit ||
	    (h->trouble & LINK_ERRORS &&
	     s->at_ms - h->errors_since_ms < (int64_t)limits->window_s * 1000))
		trouble |= LINK_ERRORS;
	trouble |= is_slow(h, s) ? LINK_SLOW : 0;
	h->trouble = trouble;
	return trouble;
}

static void put_clause(struct strbuf *out, const char *clause)
{
	strbuf_printf(out, "%s%s", out->len ? ", " : "", clause);
}

/* Numbers that change with each sample are left out: the sentence is the same while the trouble
 * lasts. */
void link_say(const struct link_history *h, const struct pool_health *limits, struct strbuf *out)
{
	const struct link_sample *s = &h->last;
	if (h->trouble & LINK_FLAPS) {
		put_clause(out, "goes down too often");
		strbuf_printf(out, ": at least %u times in %u s", limits->flaps, limits->window_s);
	}
	if (h->trouble & LINK_ERRORS) {
		put_clause(out, "counts too many errors");
		strbuf_printf(out, ": at least %u a minute", limits->errors_per_minute);
	}
	if (!(h->trouble & LINK_SLOW))
		return;
	put_clause(out, "is slower than it ");
	if (is_below(s->rate_mbps, h->best_rate_mbps))
		strbuf_printf(out, "was: %d of %d Gb/s", s->rate_mbps / 1000,
			      h->best_rate_mbps / 1000);
	else if (is_below(s->link_width, h->best_width))
		strbuf_printf(out, "could be: PCIe x%d of x%d", s->link_width, h->best_width);
	else if (is_below(s->link_mts, h->best_mts))
		strbuf_printf(out, "could be: PCIe %d of %d MT/s", s->link_mts, h->best_mts);
	else
		strbuf_puts(out, "was");
}
