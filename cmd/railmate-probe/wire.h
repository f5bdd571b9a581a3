/*
 * Traffic over verbs: a device that is open, memory that is registered, a reliable connection (RC)
 * to an address, and runs of writes, reads and sends over one connection or several at once. Knows
 * nothing of how the address of the other side came here: loopback hands it over, exchange.h by
 * TCP.
 *
 * Each failure is a finding in the report (memlock, no node, port down, GID gone, retry exceeded,
 * …), and the function returns a negative errno. Memory registered by all devices of a run together
 * is at most WIRE_MEMORY_MAX unless asked for more. One thread.
 */
#ifndef RAILMATE_PROBE_WIRE_H
#define RAILMATE_PROBE_WIRE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct report;
struct told_vf;
struct wire_device; /* an open device: context, protection domain, completion queues */
struct wire;	    /* one connection: queue pair, memory region */

#define WIRE_MEMORY_MAX ((size_t)64 << 20)

/* Memory of one side. Host memory where dmabuf_fd is -1 and address is of malloc or mmap. */
struct wire_memory {
	void *address; /* of the process; NULL for a dmabuf that cannot be mapped */
	size_t size;
	int dmabuf_fd; /* -1: none; stays the caller's */
	uint64_t dmabuf_offset;
	bool data_direct; /* register with IBV_ACCESS/mlx5's data direct flag */
	const char *name; /* "host", or a GPU's address */
	const char *way;  /* struct measure.memory_way */
	/* Fill with a pattern of `seed`, and compare: through the GPU's library where the memory is
	 * a GPU's. Both return 0 or a negative errno; wire_verify gives -EILSEQ where bytes differ.
	 */
	int (*fill)(struct wire_memory *m, uint64_t seed);
	int (*verify)(struct wire_memory *m, uint64_t seed);
	void *owner; /* of fill and verify */
};
/* Page-aligned host memory, on the NUMA node where the caller runs. */
int wire_memory_host(size_t size, struct wire_memory *ret);
/* The bytes of a pattern: what fill writes and verify expects, whosever memory it is. */
void wire_pattern(void *bytes, size_t size, uint64_t seed);
void wire_memory_free(struct wire_memory *m); /* host memory only */

/*
 * Everything of the other side that a connection needs: what the exchange carries, all of it
 * checked by who takes it from a stranger.
 */
struct wire_address {
	uint32_t qpn, psn, rkey;
	uint64_t address;
	uint64_t size;
	uint16_t lid; /* InfiniBand; 0: RoCE */
	uint8_t gid[16];
	uint8_t link_layer; /* IBV_LINK_LAYER_* */
	uint8_t mtu;	    /* enum ibv_mtu */
};

/* Opens exactly the device of `vf` and asks it: port, state, MTU, speed, GID table and the told
 * index, P_Key, limits, against what was told. Findings for what differs. */
int wire_open(const struct told_vf *vf, struct report *r, struct wire_device **ret);
void wire_close(struct wire_device *d); /* NULL is fine; its wires are closed before */
/* Payload rate of the port by verbs; NAN: not known, or a soft device, whose rate means nothing. */
double wire_port_gbps(const struct wire_device *d);
/* The index of a P_Key of another partition than that of index 0; -ENOENT: the port has none. */
int wire_other_pkey(const struct wire_device *d);

/* Whether the device registers the memory: once, and back. */
int wire_memory_check(struct wire_device *d, struct wire_memory *m, struct report *r);

struct wire_options {
	int gid_index; /* -1: the one that was told, or the one NCCL would take */
	int pkey_index;
};
int wire_create(struct wire_device *d, struct wire_memory *m, const struct wire_options *o,
		struct report *r, struct wire **ret);
void wire_destroy(struct wire *w);
void wire_address_of(const struct wire *w, struct wire_address *ret);
/* INIT → RTR → RTS. */
int wire_connect(struct wire *w, const struct wire_address *peer, struct report *r);

enum wire_op { WIRE_WRITE, WIRE_READ, WIRE_SEND, WIRE_OP_MAX };
const char *wire_op_name(enum wire_op op);

struct wire_result {
	double gbps; /* NAN: failed */
	double usec; /* median of half round trips (write, send) or of a read, 8 bytes; NAN: not
			asked */
	int status;  /* 0, or a negative errno; the finding is in the report */
};
struct wire_run {
	enum wire_op op;
	size_t message; /* bytes of one message; at most the smaller memory */
	double seconds; /* of the bandwidth part */
	bool latency;
};
/* Drives the sending side of n connections at once, each from its own queue pair; results[i]
 * belongs to wires[i]. Message k goes to slot k of the memory, in turn, and each slot is written at
 * least once: memory of a multiple of the message's size can be verified. A send needs
 * wire_serve_receives on the other side. The first error, or 0. */
int wire_drive(struct wire *const *wires, size_t n, const struct wire_run *run, struct report *r,
	       struct wire_result *results);
/* The receiving side of WIRE_SEND: posts receives of `message` bytes, and keeps them posted until
 * `stop` returns true or an error comes. The sender may begin when `stop` is called first. A wire
 * serves one such run. */
int wire_serve_receives(struct wire *const *wires, size_t n, size_t message, bool (*stop)(void *),
			void *arg, struct report *r);

/* Loopback of one VF and between two VFs of this container, over wire_create and wire_connect: both
 * ends here. */
struct wire_pairing {
	struct wire_device *from, *to; /* the same: loopback */
	struct wire_memory *from_memory, *to_memory;
};
/* n pairings at once (1: alone): connects, runs, verifies the bytes at the far end, tears down. */
int wire_local(const struct wire_pairing *pairings, size_t n, const struct wire_run *run,
	       struct report *r, struct wire_result *results);

#endif
