/*
 * The kubelet's offer of one resource, beside the list that we sent. A list can be lost: the tail
 * of a former stream's end may undo a registration that came before it, or another plugin registers
 * the same name, and no call shows it (docs/design/kubelet.md §5.2). So each offer is compared
 * with the list, and an offer that differs is mended: by the list again, then by a new
 * registration. A list that follows would hide the difference, so the offer is looked at first. And
 * before a registration the former stream has to be over for the kubelet, too.
 */
#include "endpoint/endpoint-internal.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/mem.h"
#include "kubeclient/offer.h"

#define SETTLE_MS     150  /* from a list to the first look */
#define AGAIN_MS      250  /* from one look to the next, while the offer differs */
#define FOLLOWS_MS    10   /* likewise, while a list waits */
#define MEND_FIRST_MS 1000 /* between two registrations, doubled each time */
#define MEND_MAX_MS   4000
#define LASTS_MS      2000  /* a difference this old is worth a word */
#define RIVAL_MS      60000 /* how long another plugin is named after it was seen */
/* The former stream: how long to wait for its end, and how often to look. */
#define END_MS	   500
#define END_MIN_MS 2
#define END_MAX_MS 50

struct listed {
	char *id;
	bool healthy;
};

struct offered {
	struct endpoint *endpoint;
	struct listed *list; /* that was sent last, by id */
	size_t n_list, n_healthy;
	int64_t listed_ms;  /* 0: none was sent */
	int64_t follows_ms; /* since when another list waits for a look; 0: none does */
	bool clear;	    /* it may go */

	/* a registration that waits for the end of the former stream; NULL: none */
	void (*ended)(struct endpoint *e);
	int64_t end_since_ms;
	unsigned end_step_ms;

	/* the difference; since_ms 0: none */
	int64_t since_ms, mended_ms, rival_ms;
	unsigned mends;
	bool told;
	char problem[160];
};

static int by_id(const void *a, const void *b)
{
	const struct listed *x = a, *y = b;

	return strcmp(x->id, y->id);
}

static void list_free(struct offered *o)
{
	for (size_t i = 0; i < o->n_list; i++)
		free(o->list[i].id);
	free(STEAL(o->list));
	o->n_list = o->n_healthy = 0;
}

void endpoint_offered_listed(struct offered *o, const struct device_list *list)
{
	if (!o)
		return;
	list_free(o);
	o->list = xcalloc(list->n, sizeof(*o->list));
	for (size_t i = 0; i < list->n; i++) {
		o->list[i] = (struct listed) { xstrdup(list->v[i].id), list->v[i].healthy };
		o->n_healthy += list->v[i].healthy;
	}
	o->n_list = list->n;
	qsort(o->list, o->n_list, sizeof(*o->list), by_id);
	o->listed_ms = clock_mono_ms();
	o->follows_ms = 0;
	kubeclient_offer_look(o->endpoint->env->offer, SETTLE_MS);
}

bool endpoint_offered_first(struct offered *o)
{
	if (!o || !o->listed_ms || o->clear || !endpoint_is_registered(o->endpoint))
		return false;
	if (!o->follows_ms) {
		o->follows_ms = clock_mono_ms();
		kubeclient_offer_look(o->endpoint->env->offer, 0);
	}
	return true;
}

/* --- the difference --- */

struct difference {
	size_t absent;	     /* healthy in the list, and not on offer */
	size_t sick;	     /* on offer, and not healthy in the list */
	size_t foreign;	     /* on offer, and not in the list */
	const char *example; /* of the foreign */
};

static struct difference compare(const struct offered *o, const struct ids *ids)
{
	struct difference d = { .absent = o->n_healthy };

	for (size_t i = 0; ids && i < ids->n; i++) {
		const struct listed key = { .id = (char *)ids->v[i] };
		const struct listed *l =
			o->n_list ? bsearch(&key, o->list, o->n_list, sizeof(key), by_id) : NULL;

		if (!l)
			d.example = ids->v[i];
		d.foreign += !l;
		d.sick += l && !l->healthy;
		d.absent -= l && l->healthy && d.absent;
	}
	return d;
}

static void describe(struct offered *o, const struct difference *d)
{
	if (d->foreign)
		snprintf(
			o->problem, sizeof(o->problem),
			"another device plugin has registered this name: the kubelet offers %zu devices of it, %.63s for one",
			d->foreign, d->example);
	else
		snprintf(o->problem, sizeof(o->problem),
			 "the kubelet offers %zu of %zu healthy devices%s",
			 o->n_healthy - d->absent, o->n_healthy,
			 d->sick ? ", and some that are not healthy" : "");
}

static void tell(struct offered *o, const struct difference *d)
{
	struct endpoint *e = o->endpoint;
	int64_t now = clock_mono_ms();

	if (d->foreign)
		o->rival_ms = now;
	if (!d->foreign && now - o->since_ms < LASTS_MS)
		return;
	if (!o->told && e->env->differs)
		e->env->differs(e->env->differs_ctx, e->plugin.resource, o->problem);
	o->told = true;
	endpoint_warn(e, WARN_OFFER, "the kubelet does not offer the listed devices error=%s",
		      o->problem);
}

static void is_mended(struct offered *o)
{
	struct endpoint *e = o->endpoint;

	if (o->told) {
		log_info("kubelet", "the kubelet offers the listed devices again resource=%s",
			 e->plugin.resource);
		if (e->env->differs)
			e->env->differs(e->env->differs_ctx, e->plugin.resource, NULL);
	}
	o->told = false;
	o->since_ms = 0;
	endpoint_warn_reset(e, WARN_OFFER);
}

/* A kubelet that offers none of them may have stopped the endpoint as well, and one that offers
 * devices of another plugin calls that: a list alone would then show VFs that no pod can get. */
static bool is_lost(const struct offered *o, const struct difference *d)
{
	return d->foreign || (o->n_healthy && d->absent == o->n_healthy);
}

static void mend(struct offered *o, const struct difference *d, bool first)
{
	struct endpoint *e = o->endpoint;
	int64_t now = clock_mono_ms(), pause = MEND_FIRST_MS;

	if (first && !is_lost(o, d)) {
		log_debug("kubelet", "the list is sent again resource=%s", e->plugin.resource);
		endpoint_list_again(e);
		return;
	}
	for (unsigned i = 1; i < o->mends && pause < MEND_MAX_MS; i++)
		pause *= 2;
	if (o->mends && now - o->mended_ms < pause)
		return;
	o->mends++;
	o->mended_ms = now;
	log_info("kubelet", "the registration was lost, registering again resource=%s error=%s",
		 e->plugin.resource, o->problem);
	endpoint_register_anew(e);
}

static void judge(struct offered *o, const struct ids *ids)
{
	struct difference d = compare(o, ids);
	int64_t now = clock_mono_ms();
	bool first = !o->since_ms;

	if (!d.absent && !d.sick && !d.foreign) {
		if (o->since_ms)
			is_mended(o);
		if (o->mends && now - o->mended_ms > 2 * MEND_MAX_MS)
			o->mends = 0;
		return;
	}
	if (first)
		o->since_ms = now;
	describe(o, &d);
	tell(o, &d);
	mend(o, &d, first);
	kubeclient_offer_look(o->endpoint->env->offer, AGAIN_MS);
}

/* A list waits. The list before it may still be on its way. */
static void look_first(struct offered *o, const struct pod_container *offered, int64_t asked_ms)
{
	const struct ids *ids =
		offered ? kubemsg_held(offered, o->endpoint->plugin.resource) : NULL;
	struct difference d = compare(o, ids);

	if (offered && is_lost(o, &d)) {
		if (asked_ms >= o->listed_ms + SETTLE_MS)
			judge(o, ids);
		else
			kubeclient_offer_look(o->endpoint->env->offer, FOLLOWS_MS);
		return;
	}
	o->clear = true;
	endpoint_relist(o->endpoint);
	o->clear = false;
	o->follows_ms = 0; /* also if it is the same again by now */
}

/* --- the end of the former stream --- */

static void end_came(struct offered *o)
{
	STEAL(o->ended)(o->endpoint);
}

static void look_for_end(struct offered *o, const struct pod_container *offered, int64_t asked_ms)
{
	const struct ids *ids =
		offered ? kubemsg_held(offered, o->endpoint->plugin.resource) : NULL;

	if (!offered || (asked_ms >= o->end_since_ms && (!ids || !ids->n))) {
		end_came(o);
	} else if (asked_ms > o->end_since_ms + END_MS) {
		log_debug("kubelet",
			  "the kubelet still offers devices of a former registration resource=%s",
			  o->endpoint->plugin.resource);
		end_came(o);
	} else {
		kubeclient_offer_look(o->endpoint->env->offer, o->end_step_ms);
		o->end_step_ms = 2 * o->end_step_ms < END_MAX_MS ? 2 * o->end_step_ms : END_MAX_MS;
	}
}

void endpoint_offered_await_end(struct offered *o, void (*ended)(struct endpoint *e))
{
	o->ended = ended;
	o->end_since_ms = clock_mono_ms();
	o->end_step_ms = END_MIN_MS;
	kubeclient_offer_look(o->endpoint->env->offer, 0);
}

void endpoint_offered_await_nothing(struct offered *o)
{
	if (o)
		o->ended = NULL;
}

/* --- for the plugin --- */

static void hear(void *ctx, const struct pod_container *offered, int64_t asked_ms)
{
	struct offered *o = ctx;

	if (o->ended)
		look_for_end(o, offered, asked_ms);
	else if (!o->listed_ms || !endpoint_is_registered(o->endpoint))
		return;
	else if (o->follows_ms && (!offered || asked_ms >= o->follows_ms))
		look_first(o, offered, asked_ms);
	else if (offered && asked_ms < o->listed_ms + SETTLE_MS)
		kubeclient_offer_look(o->endpoint->env->offer, SETTLE_MS);
	else if (offered)
		judge(o, kubemsg_held(offered, o->endpoint->plugin.resource));
}

const char *endpoint_offered_problem(const struct offered *o)
{
	bool rival = o && o->rival_ms && clock_mono_ms() - o->rival_ms < RIVAL_MS;

	return o && ((o->since_ms && o->told) || rival) ? o->problem : NULL;
}

struct offered *endpoint_offered_new(struct endpoint *e)
{
	struct offered *o;

	if (!e->env->offer)
		return NULL;
	o = xcalloc(1, sizeof(*o));
	o->endpoint = e;
	kubeclient_offer_subscribe(e->env->offer, hear, o);
	return o;
}

void endpoint_offered_free(struct offered *o)
{
	if (!o)
		return;
	kubeclient_offer_subscribe(o->endpoint->env->offer, NULL, o);
	list_free(o);
	free(o);
}
