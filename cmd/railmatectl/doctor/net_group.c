#include <string.h>

#include "base/arena.h"
#include "base/mem.h"
#include "base/str.h"
#include "doctor/net-internal.h"

bool net_is_our_vf(const struct facts *f, size_t rdma)
{
	int pci = f->inv->rdma[rdma].pci;

	if (pci < 0 || !hw_is_nic_vf(f->inv, pci))
		return false;
	return f->container != FACTS_YES || f->net->rdma[rdma].node != FACTS_NO;
}

const struct hw_port *net_port(const struct facts *f, size_t rdma)
{
	const struct hw_rdma *device = &f->inv->rdma[rdma];

	for (size_t i = 0; i < device->n_ports; i++) {
		if (device->ports[i].number == f->net->rdma[rdma].port)
			return &device->ports[i];
	}
	return NULL;
}

enum hw_link net_link(const struct facts *f, size_t rdma)
{
	const struct hw_port *port = net_port(f, rdma);

	return port ? port->link : HW_LINK_UNKNOWN;
}

int net_pf_rdma(const struct facts *f, int pci)
{
	return hw_is_nic_vf(f->inv, pci) ? -1 : hw_find_rdma(f->inv, pci);
}

const char *net_name(const struct facts *f, int pci)
{
	const struct hw_pci *p = &f->inv->pci[pci];
	int rdma = hw_find_rdma(f->inv, pci);
	const char *name = rdma < 0 ? NULL : f->inv->rdma[rdma].name;
	char addr[BDF_STRLEN];

	bdf_format(p->bdf, addr);
	if (name && p->netdev)
		return arena_printf(f->arena, "%s (%s, %s)", addr, name, p->netdev);
	if (name || p->netdev)
		return arena_printf(f->arena, "%s (%s)", addr, name ? name : p->netdev);
	return arena_strdup(f->arena, addr);
}

bool net_is_zero(const char *guid_or_mac)
{
	return guid_or_mac && *guid_or_mac && !guid_or_mac[strspn(guid_or_mac, "0:")];
}

void net_add(struct strbuf *list, const char *element)
{
	if (list->len)
		strbuf_puts(list, ", ");
	strbuf_puts(list, element);
}

/* --- groups --- */

/* Those of one kind and PF, with their first member. */
static void say_group(const struct facts *f, struct diagnosis *r, const int *kind_of, size_t at,
		      const struct net_kind *kind)
{
	_cleanup_strbuf_ struct strbuf named = STRBUF_INIT;
	const struct hw_inventory *inv = f->inv;
	int only = inv->rdma[at].pci, pf = inv->pci[only].physfn;
	size_t of = 0, n = 0;

	for (size_t i = 0; i < inv->n_rdma; i++) {
		/* A device that a check is about has a function. */
		if (kind_of[i] == NET_NOT_ABOUT || inv->pci[inv->rdma[i].pci].physfn != pf)
			continue;
		of++;
		if (kind_of[i] != kind_of[at])
			continue;
		if (i < at)
			return;
		if (n++ < NET_SHOWN)
			net_add(&named, facts_address(f, inv->rdma[i].pci));
	}
	if (n > NET_SHOWN)
		strbuf_printf(&named, " and %zu more", n - NET_SHOWN);
	if (n == 1)
		diagnosis_add(r, kind->verdict, kind->advice, facts_address(f, only), "VF %s %s.",
			      net_name(f, only), kind->one);
	else if (pf < 0)
		diagnosis_add(r, kind->verdict, kind->advice, "host", "%zu of %zu VFs %s: %s.", n,
			      of, kind->many, strbuf_str(&named));
	else
		diagnosis_add(r, kind->verdict, kind->advice, facts_address(f, pf),
			      "%zu of the %zu VFs of %s %s: %s.", n, of, net_name(f, pf),
			      kind->many, strbuf_str(&named));
}

void net_judge_vfs(const struct facts *f, struct diagnosis *r, net_judge *judge,
		   const struct net_kind *kinds)
{
	_cleanup_free_ int *kind_of = xcalloc(f->inv->n_rdma, sizeof(*kind_of));
	size_t fine = 0;

	for (size_t i = 0; i < f->inv->n_rdma; i++) {
		kind_of[i] = net_is_our_vf(f, i) ? judge(f, i) : NET_NOT_ABOUT;
		fine += kind_of[i] == 0;
	}
	for (size_t i = 0; i < f->inv->n_rdma; i++) {
		if (kind_of[i] > 0)
			say_group(f, r, kind_of, i, &kinds[kind_of[i]]);
	}
	if (fine)
		diagnosis_add(r, kinds->verdict, kinds->advice, "host", "%zu VF%s %s.", fine,
			      fine == 1 ? "" : "s", fine == 1 ? kinds->one : kinds->many);
}

bool net_same_model(const struct hw_pci *a, const struct hw_pci *b)
{
	return a->vendor == b->vendor && a->device == b->device;
}
