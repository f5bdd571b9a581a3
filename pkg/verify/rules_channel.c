/* Channels between nodes: the lines that prove which HCA carries what, with GPU Direct RDMA or
 * without. */
#include <ctype.h>
#include <string.h>

#include "verify/rules-internal.h"

struct channel {
	uint64_t to_rank, from_rank, dev;
	char network[64];
	bool send, gdr, proxied;
};

/* "3[5d000]"; before 2.5 "3" */
static bool skip_rank(const char **p, uint64_t *rank)
{
	uint64_t device;

	return skip_number(p, 10, rank) &&
	       (!skip(p, "[") || (skip_number(p, 16, &device) && skip(p, "]")));
}

static bool read_channel(const char *p, struct channel *c)
{
	uint64_t number;
	size_t n;

	if (!(skip(&p, "Channel ") || skip(&p, "Ring ")) || !skip_number(&p, 10, &number))
		return false;
	if (skip(&p, "/") && !skip_number(&p, 10, &number))
		return false;
	if (!skip(&p, " : ") || !skip_rank(&p, &c->from_rank) || !skip(&p, " -> ") ||
	    !skip_rank(&p, &c->to_rank))
		return false;
	c->send = !skip(&p, " [receive]"); /* manuals leave "[send]" away */
	if (c->send)
		skip(&p, " [send]");
	if (!skip(&p, " via NET/"))
		return false;
	n = strcspn(p, "/");
	if (n == 0 || n >= sizeof(c->network) || p[n] != '/')
		return false;
	memcpy(c->network, p, n);
	c->network[n] = '\0';
	p += n + 1;
	if (!skip_number(&p, 10, &c->dev))
		return false;
	/* "[(proxy rank)][/GDRDMA][(PCI)][/Shared]", then nothing, RCCL's " comm 0x…", or what a
	 * log's collector adds */
	if (p[0] == '(' && p[1] >= '0' && p[1] <= '9') {
		p++;
		c->proxied = skip_number(&p, 10, &number) && skip(&p, ")");
		if (!c->proxied)
			return false;
	}
	c->gdr = skip(&p, "/GDRDMA");
	skip(&p, "(PCI)");
	skip(&p, "/Shared");
	return *p == '\0' || !(isalnum((unsigned char)*p) || strchr("/([-_", *p));
}

void rule_channel(struct verify *v, const struct record *r)
{
	struct channel c = { 0 };
	struct gpu *g;
	uint64_t n = 0;

	/* "Channel 00/02 :    0   1   2   3", "Ring 00 : 3 -> 0 -> 1": the order of ranks */
	if (r->whole && !strstr(r->text, " via") &&
	    (r->text[0] == 'R' || !strpbrk(r->text + strlen("Channel "), "[>abcdefghijk")))
		return;
	if (!strstr(r->text, " via ") || !r->whole ||
	    (strstr(r->text, " via NET/") && !read_channel(r->text, &c))) {
		verify_saw(v, SIGN_DAMAGED, r->text);
		return;
	}
	if (!c.network[0]) {
		if (strstr(r->text, " via SHM"))
			verify_saw(v, SIGN_SHM, r->text);
		else if (strstr(r->text, " via P2P/MNNVL"))
			v->mnnvl_channels++, verify_ground(v, GROUND_INSIDE, r->text);
		else if (strstr(r->text, " via P2P/"))
			verify_ground(v, GROUND_INSIDE, r->text);
		return;
	}
	if (verify_is_tcp(c.network)) {
		verify_saw(v, str_eq(c.network, "Socket") ? SIGN_SOCKET : SIGN_TCP_PLUGIN, r->text);
		v->tcp_channels++;
		return;
	}
	/* RCCL ends the line with the communicator's size. */
	number_after(r->text, " nRanks ", 10, &n);
	verify_rank(v, c.send ? c.from_rank : c.to_rank, n,
		    1 + (c.from_rank > c.to_rank ? c.from_rank : c.to_rank));
	*(r->proc ? &r->proc->names_rdma : &v->bare_rdma) = true;
	v->net_channels++;
	v->net_gdr += c.gdr;
	verify_ground(v, c.gdr ? GROUND_GDR : GROUND_PLAIN, r->text);
	if (!v->network[0])
		memcpy(v->network, c.network, sizeof(v->network));
	if (!r->proc && !c.gdr && c.dev < VERIFY_MAX_DEVS)
		v->bare_plain |= UINT64_C(1) << c.dev;
	g = record_gpu(v, r);
	if (g && c.dev < VERIFY_MAX_DEVS) {
		struct traffic *t = &g->by_dev[c.dev];

		if (!c.proxied)
			g->own_devs |= UINT64_C(1) << c.dev;
		if (g->rank < 0)
			g->rank = (int64_t)(c.send ? c.from_rank : c.to_rank);
		if (c.send) {
			t->send++;
			t->send_gdr += c.gdr;
		} else {
			t->receive++;
			t->receive_gdr += c.gdr;
		}
		if (!g->line || (!c.gdr && !g->proof_is_plain)) {
			g->source = v->source;
			g->line = v->line;
			g->proof_is_plain = !c.gdr;
		}
	}
}
