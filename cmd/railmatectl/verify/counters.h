/*
 * Port counters of RDMA devices and bytes of network interfaces, before and after: as records, as a
 * file between the two, and the bytes that really left. Pure; the program reads them.
 */
#ifndef RAILMATE_VERIFY_COUNTERS_H
#define RAILMATE_VERIFY_COUNTERS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct arena;
struct err;
struct strbuf;

/* Bytes first, then errors on the wire. The kernel's names, and the worth of a unit. */
enum counter {
	COUNTER_XMIT_DATA,
	COUNTER_RCV_DATA,
	COUNTER_TX_BYTES,
	COUNTER_RX_BYTES,
	COUNTER_XMIT_DISCARDS,
	COUNTER_OUT_OF_SEQUENCE,
	COUNTER_SEQ_ERR,
	COUNTER_ACK_TIMEOUT,
	COUNTER_RNR,
	COUNTER_CNP_SENT,
	COUNTER_CNP_HANDLED,
	COUNTER_MAX
};

struct counter_name {
	const char *file; /* below ports/N/ */
	const char *key;
};
extern const struct counter_name counter_names[COUNTER_MAX];

struct port_counters {
	const char *hca;
	uint64_t port;
	const char *pci; /* NULL: unknown */
	bool has[COUNTER_MAX];
	uint64_t value[COUNTER_MAX];
};

/* An interface's bytes by TCP/IP: RDMA goes past it. */
struct link_counters {
	const char *name;
	bool rdma; /* of a function with an RDMA device, whose driver may count RDMA as well */
	uint64_t sent, received;
};

struct counters {
	struct port_counters *ports; /* sorted by hca, port */
	size_t n_ports;
	struct link_counters *links; /* sorted by name */
	size_t n_links;
};

void counters_write(const struct counters *c, struct strbuf *out);
/* Reads the text of counters_write(); the arena keeps it. */
int counters_read(const char *text, size_t len, const char *name, struct arena *arena,
		  struct counters *ret, struct err *err);

enum port_change { PORT_COUNTED, PORT_GONE, PORT_NEW, PORT_RESET, PORT_UNCOUNTED };

struct port_diff {
	const char *hca, *pci;
	uint64_t port;
	enum port_change change;
	uint64_t sent, received;       /* bytes */
	uint64_t trouble[COUNTER_MAX]; /* by how much the others grew */
};

struct counters_diff {
	struct port_diff *ports;
	size_t n_ports;
	struct link_counters *links; /* those of both samples that sent or received: the bytes */
	size_t n_links;
};

/* The interface by which too much went for a job that uses RDMA: no RDMA function's, at least 64
 * MiB, and 5 % of the bytes that the RDMA ports sent. NULL: none. */
const struct link_counters *counters_tcp(const struct counters_diff *diff);

void counters_compare(const struct counters *before, const struct counters *after,
		      struct arena *arena, struct counters_diff *ret);
const char *counters_change_name(enum port_change change);

#endif
