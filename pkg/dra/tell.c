#include "dra/tell.h"

#include <arpa/inet.h>
#include <stdlib.h>
#include <string.h>
#include <sys/queue.h>

#include "base/arena.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/str.h"
#include "dra/claimstatus.h"
#include "hw/bdf.h"
#include "hw/vfstate.h"
#include "kubemsg/dra.h"
#include "ledger/ledger.h"

#define ANSWER_MS 10000

struct told {
	LIST_ENTRY(told) link;
	struct arena *arena;
	struct dra_claim_ref claim;
	struct dra_result result;
	struct claimstatus_net *nets; /* heap; its strings are the arena's */
	size_t n_nets, cap_nets;
	char *text; /* the last one that was sent */
};

struct tells {
	struct tell_env env;
	LIST_HEAD(, told) list;
};

static void forget(struct told *c)
{
	LIST_REMOVE(c, link);
	arena_free(c->arena);
	free(c->nets);
	free(c->text);
	free(c);
}

static struct told *find(struct tells *t, const char *uid)
{
	struct told *c;

	LIST_FOREACH (c, &t->list, link) {
		if (str_eq(c->claim.uid, uid))
			return c;
	}
	return NULL;
}

static void answered(void *arg, long status, struct bytes body, const char *why)
{
	static struct log_rate rate; /* this may come after tell_close() */

	(void)arg;
	(void)status;
	(void)body;
	if (why && log_rate_count(&rate) == 1)
		log_warn("dra", "the status of a claim cannot be written error=%s", why);
}

static void tell(struct tells *t, const struct node *node, const struct ledger *ledger,
		 struct told *c)
{
	_cleanup_arena_ struct arena *a = arena_new(0);
	_cleanup_strbuf_ struct strbuf text = STRBUF_INIT;

	claimstatus_write(&(struct claimstatus) { .node = node,
						  .ledger = ledger,
						  .driver = t->env.driver,
						  .claim = &c->claim,
						  .result = &c->result,
						  .nets = c->nets,
						  .n_nets = c->n_nets },
			  &text);
	if (str_eq(text.s, c->text))
		return;
	free(c->text);
	c->text = strbuf_steal(&text);
	t->env.ask(t->env.ctx,
		   &(struct api_request) { .method = "PATCH",
					   .path = claimstatus_path(t->env.driver, &c->claim, a),
					   .type = CLAIMSTATUS_TYPE,
					   .body = c->text,
					   .timeout_ms = ANSWER_MS },
		   answered, NULL);
}

static void keep_result(struct told *c, const struct dra_result *r)
{
	struct dra_device *v = arena_array(c->arena, r->n, sizeof(*v));

	for (size_t i = 0; i < r->n; i++) {
		const struct dra_device *d = &r->v[i];
		const char **cdi = arena_array(c->arena, d->cdi.n, sizeof(*cdi));

		for (size_t k = 0; k < d->cdi.n; k++)
			cdi[k] = arena_strdup(c->arena, d->cdi.v[k]);
		v[i] = (struct dra_device) { .cdi = { cdi, d->cdi.n },
					     .pool = arena_strdup(c->arena, d->pool),
					     .device = arena_strdup(c->arena, d->device),
					     .share = arena_strdup(c->arena, d->share) };
	}
	c->result = (struct dra_result) { .uid = c->claim.uid, .v = v, .n = r->n };
}

void tell_prepared(struct tells *t, const struct node *node, const struct ledger *ledger,
		   const struct dra_claim_ref *claim, const struct dra_result *result)
{
	struct told *c = xcalloc(1, sizeof(*c));

	tell_unprepared(t, claim->uid);
	c->arena = arena_new(0);
	c->claim = (struct dra_claim_ref) { arena_strdup(c->arena, claim->ns),
					    arena_strdup(c->arena, claim->uid),
					    arena_strdup(c->arena, claim->name) };
	keep_result(c, result);
	LIST_INSERT_HEAD(&t->list, c, link);
	tell(t, node, ledger, c);
}

static struct claimstatus_net *net_of(struct told *c, const char *vf)
{
	for (size_t i = 0; i < c->n_nets; i++) {
		if (!strcmp(c->nets[i].vf, vf))
			return &c->nets[i];
	}
	c->nets = xgrow(c->nets, &c->cap_nets, c->n_nets + 1, sizeof(*c->nets));
	c->nets[c->n_nets] = (struct claimstatus_net) { .vf = arena_strdup(c->arena, vf) };
	return &c->nets[c->n_nets++];
}

static const char *ip_text(const struct ip_addr *ip, struct arena *a)
{
	static const uint8_t v4[12] = { [10] = 0xff, [11] = 0xff };
	bool is_v4 = !memcmp(ip->addr, v4, sizeof(v4));
	char text[INET6_ADDRSTRLEN];

	inet_ntop(is_v4 ? AF_INET : AF_INET6, ip->addr + (is_v4 ? sizeof(v4) : 0), text,
		  sizeof(text));
	return arena_printf(a, "%s/%d", text, ip->prefix - (is_v4 ? 96 : 0));
}

static bool is_same(const struct claimstatus_net *a, const struct claimstatus_net *b)
{
	bool same = str_eq(a->netdev, b->netdev) && a->n_ips == b->n_ips;

	for (size_t i = 0; i < a->n_ips && same; i++)
		same = !strcmp(a->ips[i], b->ips[i]);
	return same;
}

static void keep_net(struct told *c, const char *vf, const struct vf_state *s)
{
	_cleanup_arena_ struct arena *a = arena_new(0);
	const char **ips = arena_array(a, s->n_addrs, sizeof(*ips));
	struct claimstatus_net now = { .vf = vf, .netdev = s->netdev, .ips = ips };
	struct claimstatus_net *net = net_of(c, vf);

	for (size_t i = 0; i < s->n_addrs; i++) {
		if (str_eq(s->addrs[i].netdev, s->netdev))
			ips[now.n_ips++] = ip_text(&s->addrs[i], a);
	}
	if (is_same(net, &now)) /* a container that starts again and again costs no memory */
		return;
	for (size_t i = 0; i < now.n_ips; i++)
		ips[i] = arena_strdup(c->arena, ips[i]);
	net->netdev = arena_strdup(c->arena, s->netdev);
	net->ips = arena_copy(c->arena, ips, now.n_ips * sizeof(*ips));
	net->n_ips = now.n_ips;
}

void tell_seen(struct tells *t, const struct node *node, const struct ledger *ledger,
	       const struct vf_state *v, size_t n)
{
	struct told *c;
	char vf[BDF_STRLEN];

	for (size_t i = 0; i < n; i++) {
		const struct ledger_hold *h = ledger_find(ledger, bdf_format(v[i].bdf, vf));

		c = h && v[i].seen == VF_SEEN_POD && v[i].netdev ? find(t, h->owner.claim) : NULL;
		if (c)
			keep_net(c, vf, &v[i]);
	}
	LIST_FOREACH (c, &t->list, link) {
		if (c->n_nets)
			tell(t, node, ledger, c);
	}
}

void tell_unprepared(struct tells *t, const char *uid)
{
	struct told *c = find(t, uid);

	if (c)
		forget(c);
}

struct tells *tell_open(const struct tell_env *env)
{
	struct tells *t = xcalloc(1, sizeof(*t));

	t->env = *env;
	LIST_INIT(&t->list);
	return t;
}

void tell_close(struct tells *t)
{
	while (t && !LIST_EMPTY(&t->list))
		forget(LIST_FIRST(&t->list));
	free(t);
}
