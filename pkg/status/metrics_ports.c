/* Metrics of the ports of PFs (and of VFs whose PF this machine does not see). */
#include "base/mem.h"
#include "base/str.h"
#include "config/config.h"
#include "hw/inventory.h"
#include "hw/portstats.h"
#include "pool/node.h"
#include "status/status-internal.h"
#include "topo/rails.h"

/* In the order of the metrics. A unit of the data counters is four bytes, on Ethernet too. */
static const struct {
	const char *name;
	uint64_t unit;
} own_metric[] = {
	{ "port_rcv_data", 4 },	    { "port_xmit_data", 4 }, { "port_rcv_packets", 1 },
	{ "port_xmit_packets", 1 }, { "link_downed", 1 },    { "port_xmit_wait", 1 },
};
/* Bytes and packets once more, by kind: no errors. */
static const char *const no_errors[] = { "unicast_rcv_packets", "unicast_xmit_packets",
					 "multicast_rcv_packets", "multicast_xmit_packets" };

/* NULL: no RDMA device. */
static const struct hw_rdma *rdma_of(const struct writer *w, const struct hw_port_stats *s)
{
	return s->rdma < 0 ? NULL : &w->f->node->inv->rdma[s->rdma];
}

static const struct hw_port *port_of(const struct writer *w, const struct hw_port_stats *s)
{
	const struct hw_rdma *rdma = rdma_of(w, s);

	for (size_t i = 0; rdma && i < rdma->n_ports; i++) {
		if (rdma->ports[i].number == s->port)
			return &rdma->ports[i];
	}
	return NULL;
}

static void begin(struct writer *w, const struct hw_port_stats *s)
{
	const struct hw_rdma *rdma = rdma_of(w, s);
	char bdf[BDF_STRLEN];

	status_sample(&w->e, "");
	status_label(&w->e, "pf", status_device_address(w->f, s->pci, bdf));
	status_label(&w->e, "rdma", rdma ? rdma->name : NULL);
	status_label_int(&w->e, "port", s->port);
}

static void put_number(struct writer *w, const char *key, int number)
{
	if (number >= 0)
		status_label_int(&w->e, key, number);
	else
		status_label(&w->e, key, "");
}

void status_put_port_info(struct writer *w, const struct metric *m)
{
	for (size_t i = 0; i < w->f->n_ports; i++) {
		const struct hw_port_stats *s = &w->f->ports[i];
		const struct hw_rdma *rdma = rdma_of(w, s);
		const struct hw_port *port = port_of(w, s);
		const struct hw_pci *fn = &w->f->node->inv->pci[s->pci];
		struct topo_rail rail = topo_rails_of(w->f->node->rails, s->pci);

		begin(w, s);
		status_label(&w->e, "netdev", rdma ? rdma->netdev : fn->netdev);
		status_label(&w->e, "driver", fn->driver);
		status_label(&w->e, "link_layer", port ? hw_link_name(port->link) : NULL);
		put_number(w, "rail", rail.rail);
		put_number(w, "plane", rail.plane);
		status_count(&w->e, 1);
	}
}

/* Ports of missing PFs: the series goes to 0, it does not end. */
static void put_missing(struct writer *w)
{
	for (size_t i = 0; i < w->f->node->n_pfs; i++) {
		const struct node_pf *pf = &w->f->node->pfs[i];

		for (size_t k = 0; pf->missing && pf->wanted && k < pf->n_ports; k++) {
			int number = pf->ports[k].number;

			status_sample(&w->e, "");
			status_label(&w->e, "pf", pf->address);
			status_label(&w->e, "rdma", pf->rdma);
			status_label_int(&w->e, "port", number ? number : 1);
			status_count(&w->e, 0);
		}
	}
}

static bool is_missing(const struct writer *w, const struct hw_port_stats *s)
{
	char bdf[BDF_STRLEN];
	const struct node_pf *pf = node_pf(w->f->node, status_device_address(w->f, s->pci, bdf));

	return pf && pf->missing;
}

void status_put_port_up(struct writer *w, const struct metric *m)
{
	if (w->f->node)
		put_missing(w);
	for (size_t i = 0; i < w->f->n_ports; i++) {
		const struct hw_port_stats *s = &w->f->ports[i];
		const struct hw_port *port = port_of(w, s);
		int carrier = w->f->node->inv->pci[s->pci].carrier;

		if (is_missing(w, s) || (port ? !port->state : s->rdma >= 0 || carrier < 0))
			continue;
		begin(w, s);
		status_count(&w->e, port ? str_eq(port->state, "ACTIVE") : carrier == 1);
	}
}

void status_put_port_state(struct writer *w, const struct metric *m)
{
	for (size_t i = 0; i < w->f->n_ports; i++) {
		const struct hw_port *port = port_of(w, &w->f->ports[i]);

		if (!port || !port->state)
			continue;
		begin(w, &w->f->ports[i]);
		status_label(&w->e, "state", port->state);
		status_count(&w->e, 1);
	}
}

/* By all pools: each has limits of its own. */
static unsigned trouble_of(const struct node *node, const char *pf, int port)
{
	unsigned trouble = 0;

	for (size_t i = 0; i < node->n_links; i++) {
		if (node->links[i].port == port && str_eq(node->links[i].pf, pf))
			trouble |= node->links[i].trouble;
	}
	return trouble;
}

static bool is_of_a_pool(const struct node *node, int pf)
{
	for (size_t i = 0; i < node->n_pools; i++) {
		for (size_t k = 0; k < node->pools[i].n_devs; k++) {
			if (hw_pf_of(node->inv, node->pools[i].devs[k].pci) == pf)
				return true;
		}
	}
	return false;
}

void status_put_port_degraded(struct writer *w, const struct metric *m)
{
	for (size_t i = 0; i < w->f->n_ports; i++) {
		const struct hw_port_stats *s = &w->f->ports[i];
		int pf = s->pci;
		char bdf[BDF_STRLEN];
		unsigned trouble;

		if (!is_of_a_pool(w->f->node, pf))
			continue;
		trouble = trouble_of(w->f->node, status_device_address(w->f, pf, bdf), s->port);
		for (size_t k = 0; k < LINK_TROUBLES; k++) {
			begin(w, s);
			status_label(&w->e, "reason", config_link_troubles[k]);
			status_count(&w->e, (trouble & 1u << k) != 0);
		}
	}
}

void status_put_port_rate(struct writer *w, const struct metric *m)
{
	for (size_t i = 0; i < w->f->n_ports; i++) {
		const struct hw_port *port = port_of(w, &w->f->ports[i]);

		if (!port || port->rate_mbps <= 0)
			continue;
		begin(w, &w->f->ports[i]);
		status_count(&w->e, (uint64_t)port->rate_mbps * 1000000 / 8);
	}
}

void status_put_port_carrier(struct writer *w, const struct metric *m)
{
	for (size_t i = 0; i < w->f->n_ports; i++) {
		if (w->f->ports[i].carrier_changes < 0)
			continue;
		begin(w, &w->f->ports[i]);
		status_count(&w->e, (uint64_t)w->f->ports[i].carrier_changes);
	}
}

void status_put_port_counter(struct writer *w, const struct metric *m)
{
	for (size_t i = 0; i < w->f->n_ports; i++) {
		const struct hw_port_stats *s = &w->f->ports[i];

		for (size_t k = 0; k < s->n_standard; k++) {
			if (!str_eq(s->standard[k].name, own_metric[m->field].name))
				continue;
			begin(w, s);
			status_count(&w->e, s->standard[k].value * own_metric[m->field].unit);
		}
	}
}

static bool is_error(const char *name)
{
	for (size_t i = 0; i < ARRAY_LEN(own_metric); i++) {
		if (str_eq(own_metric[i].name, name))
			return false;
	}
	for (size_t i = 0; i < ARRAY_LEN(no_errors); i++) {
		if (str_eq(no_errors[i], name))
			return false;
	}
	return true;
}

static void put_named(struct writer *w, const struct hw_port_stats *s, const struct hw_counter *c)
{
	begin(w, s);
	status_label(&w->e, "counter", c->name);
	status_count(&w->e, c->value);
}

void status_put_port_errors(struct writer *w, const struct metric *m)
{
	for (size_t i = 0; i < w->f->n_ports; i++) {
		const struct hw_port_stats *s = &w->f->ports[i];

		for (size_t k = 0; k < s->n_standard; k++) {
			if (is_error(s->standard[k].name))
				put_named(w, s, &s->standard[k]);
		}
	}
}

void status_put_port_driver(struct writer *w, const struct metric *m)
{
	for (size_t i = 0; i < w->f->n_ports; i++) {
		const struct hw_port_stats *s = &w->f->ports[i];

		for (size_t k = 0; k < s->n_driver; k++)
			put_named(w, s, &s->driver[k]);
	}
}

void status_put_port_pauses(struct writer *w, const struct metric *m)
{
	bool sent = m->field & PAUSES_SENT, time = m->field & PAUSES_TIME;
	bool dropped = m->field & PAUSES_DROPPED;

	for (size_t i = 0; i < w->f->n_ports; i++) {
		const struct hw_port_stats *s = &w->f->ports[i];

		for (int p = 0; s->pauses && p < HW_PAUSES; p++) {
			const struct hw_pause *v =
				sent ? &s->pauses->sent[p] : &s->pauses->received[p];
			int64_t count = dropped ? s->pauses->dropped[p] : time ? v->us : v->frames;

			if (count < 0)
				continue;
			begin(w, s);
			if (p < HW_PAUSES - 1)
				status_label_int(&w->e, "priority", p);
			else
				status_label(&w->e, "priority", "link");
			if (time)
				status_seconds(&w->e, count * 1000);
			else
				status_count(&w->e, (uint64_t)count);
		}
	}
}
