/* Counters that are compared, and the file between two samples. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/err.h"
#include "base/json.h"
#include "base/str.h"
#include "document/document.h"
#include "verify/counters.h"

#define FILE_KIND    "railmate-counters"
#define FILE_VERSION 1
#define WORD	     4 /* port_xmit_data and port_rcv_data count words of 4 bytes, whatever the lanes */

const struct counter_name counter_names[COUNTER_MAX] = {
	[COUNTER_XMIT_DATA] = { "counters/port_xmit_data", "port_xmit_data" },
	[COUNTER_RCV_DATA] = { "counters/port_rcv_data", "port_rcv_data" },
	[COUNTER_TX_BYTES] = { "hw_counters/tx_bytes", "tx_bytes" },
	[COUNTER_RX_BYTES] = { "hw_counters/rx_bytes", "rx_bytes" },
	[COUNTER_XMIT_DISCARDS] = { "counters/port_xmit_discards", "port_xmit_discards" },
	[COUNTER_OUT_OF_SEQUENCE] = { "hw_counters/out_of_sequence", "out_of_sequence" },
	[COUNTER_SEQ_ERR] = { "hw_counters/packet_seq_err", "packet_seq_err" },
	[COUNTER_ACK_TIMEOUT] = { "hw_counters/local_ack_timeout_err", "local_ack_timeout_err" },
	[COUNTER_RNR] = { "hw_counters/rnr_nak_retry_err", "rnr_nak_retry_err" },
	[COUNTER_CNP_SENT] = { "hw_counters/np_cnp_sent", "np_cnp_sent" },
	[COUNTER_CNP_HANDLED] = { "hw_counters/rp_cnp_handled", "rp_cnp_handled" },
};

void counters_write(const struct counters *c, struct strbuf *out)
{
	struct json j;

	json_init(&j, out, 1);
	json_begin_object(&j);
	json_kv_string(&j, "kind", FILE_KIND);
	json_kv_int(&j, "version", FILE_VERSION);
	json_kv_array(&j, "ports");
	for (size_t i = 0; i < c->n_ports; i++) {
		const struct port_counters *p = &c->ports[i];

		json_begin_object(&j);
		json_kv_string(&j, "hca", p->hca);
		json_kv_int(&j, "port", (int64_t)p->port);
		json_kv_string(&j, "pci", p->pci);
		for (int k = 0; k < COUNTER_MAX; k++) {
			if (p->has[k])
				json_kv_int(&j, counter_names[k].key, (int64_t)p->value[k]);
		}
		json_end_object(&j);
	}
	json_end_array(&j);
	json_kv_array(&j, "interfaces");
	for (size_t i = 0; i < c->n_links; i++) {
		json_begin_object(&j);
		json_kv_string(&j, "name", c->links[i].name);
		json_kv_bool(&j, "rdma", c->links[i].rdma);
		json_kv_int(&j, "tx_bytes", (int64_t)c->links[i].sent);
		json_kv_int(&j, "rx_bytes", (int64_t)c->links[i].received);
		json_end_object(&j);
	}
	json_end_array(&j);
	json_end_object(&j);
	strbuf_putc(out, '\n');
}

/* Older files have none. */
static int read_links(const struct item *top, const char *name, struct arena *arena,
		      struct counters *ret, struct err *err)
{
	const struct item *list = item_get(top, "interfaces");

	if (!list || list->type != ITEM_LIST)
		return 0;
	ret->links = arena_array(arena, list->n_kids, sizeof(*ret->links));
	for (size_t i = 0; i < list->n_kids; i++) {
		const struct item *item = &list->kids[i];
		const struct item *rdma = item_get(item, "rdma");
		int64_t sent = item_number(item, "tx_bytes", -1),
			received = item_number(item, "rx_bytes", -1);

		if (!item_string(item, "name") || sent < 0 || received < 0)
			return err_set(
				err, EINVAL,
				"%s:%d: an element of interfaces needs name, tx_bytes and rx_bytes",
				name, item->line);
		ret->links[ret->n_links++] =
			(struct link_counters) { item_string(item, "name"),
						 rdma && rdma->type == ITEM_BOOL && rdma->boolean,
						 (uint64_t)sent, (uint64_t)received };
	}
	return 0;
}

int counters_read(const char *text, size_t len, const char *name, struct arena *arena,
		  struct counters *ret, struct err *err)
{
	struct counters c = { 0 };
	const struct item *top, *list;
	int r;

	r = document_parse(text, len, name, arena, &top, err);
	if (r < 0)
		return r;
	list = item_get(top, "ports");
	if (!str_eq(item_string(top, "kind"), FILE_KIND) ||
	    item_number(top, "version", 0) != FILE_VERSION || !list || list->type != ITEM_LIST)
		return err_set(err, EINVAL, "%s: not a file of verify --counters begin", name);
	c.ports = arena_array(arena, list->n_kids, sizeof(*c.ports));
	for (size_t i = 0; i < list->n_kids; i++) {
		const struct item *item = &list->kids[i];
		struct port_counters *p = &c.ports[c.n_ports++];
		int64_t port = item_number(item, "port", 0);

		p->hca = item_string(item, "hca");
		p->pci = item_string(item, "pci");
		if (!p->hca || port < 1 || port > 255)
			return err_set(err, EINVAL, "%s:%d: an element of ports needs hca and port",
				       name, item->line);
		p->port = (uint64_t)port;
		for (int k = 0; k < COUNTER_MAX; k++) {
			int64_t value = item_number(item, counter_names[k].key, -1);

			p->has[k] = value >= 0;
			p->value[k] = value >= 0 ? (uint64_t)value : 0;
		}
	}
	r = read_links(top, name, arena, &c, err);
	if (r == 0)
		*ret = c;
	return r;
}

/* --- the difference --- */

static const struct port_counters *find(const struct counters *c, const struct port_counters *like)
{
	for (size_t i = 0; i < c->n_ports; i++) {
		if (c->ports[i].port == like->port && str_eq(c->ports[i].hca, like->hca))
			return &c->ports[i];
	}
	return NULL;
}

static bool both_have(const struct port_counters *a, const struct port_counters *b, enum counter k)
{
	return a->has[k] && b->has[k];
}

/* The port's own counter, else the driver's. */
static uint64_t bytes(const struct port_counters *a, const struct port_counters *b,
		      enum counter words, enum counter plain)
{
	if (both_have(a, b, words) && b->value[words] != a->value[words])
		return (b->value[words] - a->value[words]) * WORD;
	return both_have(a, b, plain) ? b->value[plain] - a->value[plain] : 0;
}

static void compare(const struct port_counters *a, const struct port_counters *b,
		    struct port_diff *d)
{
	/* The name may have gone to another function in between. */
	bool reset = a->pci && b->pci && !str_eq(a->pci, b->pci);

	if (!both_have(a, b, COUNTER_XMIT_DATA) && !both_have(a, b, COUNTER_TX_BYTES)) {
		d->change = PORT_UNCOUNTED;
		return;
	}
	for (enum counter k = 0; k < COUNTER_MAX; k++)
		reset = reset || (both_have(a, b, k) && b->value[k] < a->value[k]);
	if (reset) {
		d->change = PORT_RESET;
		return;
	}
	d->change = PORT_COUNTED;
	d->sent = bytes(a, b, COUNTER_XMIT_DATA, COUNTER_TX_BYTES);
	d->received = bytes(a, b, COUNTER_RCV_DATA, COUNTER_RX_BYTES);
	for (enum counter k = COUNTER_XMIT_DISCARDS; k < COUNTER_MAX; k++) {
		if (both_have(a, b, k))
			d->trouble[k] = b->value[k] - a->value[k];
	}
}

static int by_name(const void *a, const void *b)
{
	const struct port_diff *x = a, *y = b;
	int r = strverscmp(x->hca, y->hca);

	return r ? r : (x->port > y->port) - (x->port < y->port);
}

void counters_compare(const struct counters *before, const struct counters *after,
		      struct arena *arena, struct counters_diff *ret)
{
	*ret = (struct counters_diff) {
		.ports = arena_array(arena, before->n_ports + after->n_ports, sizeof(*ret->ports))
	};
	for (size_t i = 0; i < before->n_ports; i++) {
		const struct port_counters *a = &before->ports[i], *b = find(after, a);
		struct port_diff *d = &ret->ports[ret->n_ports++];

		*d = (struct port_diff) {
			.hca = a->hca, .port = a->port, .pci = a->pci, .change = PORT_GONE
		};
		if (b)
			compare(a, b, d);
	}
	for (size_t i = 0; i < after->n_ports; i++) {
		const struct port_counters *b = &after->ports[i];

		if (!find(before, b))
			ret->ports[ret->n_ports++] = (struct port_diff) {
				.hca = b->hca, .port = b->port, .pci = b->pci, .change = PORT_NEW
			};
	}
	ret->links = arena_array(arena, after->n_links, sizeof(*ret->links));
	for (size_t i = 0; i < after->n_links; i++) {
		const struct link_counters *b = &after->links[i], *a = NULL;

		for (size_t k = 0; !a && k < before->n_links; k++) {
			if (!strcmp(before->links[k].name, b->name))
				a = &before->links[k];
		}
		if (!a || b->sent < a->sent || b->received < a->received ||
		    (b->sent == a->sent && b->received == a->received))
			continue;
		ret->links[ret->n_links++] =
			(struct link_counters) { b->name, b->rdma, b->sent - a->sent,
						 b->received - a->received };
	}
	if (ret->n_ports)
		qsort(ret->ports, ret->n_ports, sizeof(*ret->ports), by_name);
}

#define TCP_LEAST (UINT64_C(64) << 20)
#define TCP_PART  20 /* of the bytes that went by RDMA */

const struct link_counters *counters_tcp(const struct counters_diff *diff)
{
	const struct link_counters *most = NULL;
	uint64_t rdma = 0;

	for (size_t i = 0; i < diff->n_ports; i++)
		rdma += diff->ports[i].sent;
	for (size_t i = 0; i < diff->n_links; i++) {
		const struct link_counters *l = &diff->links[i];

		if (!l->rdma && l->sent >= TCP_LEAST && l->sent >= rdma / TCP_PART &&
		    (!most || l->sent > most->sent))
			most = l;
	}
	return most;
}

const char *counters_change_name(enum port_change change)
{
	static const char *const names[] = {
		[PORT_COUNTED] = "counted", [PORT_GONE] = "gone",	    [PORT_NEW] = "new",
		[PORT_RESET] = "reset",	    [PORT_UNCOUNTED] = "uncounted",
	};

	return names[change];
}
