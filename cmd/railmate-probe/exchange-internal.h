/*
 * The messages of two railmate-probes: over TCP, each a line of JSON, each at most
 * EXCHANGE_MAX bytes, a time limit on every step, a shared token before anything else. A foreign,
 * malformed or late peer is one sentence. The first line of any version has "type", "version" and
 * "token", so that another version is told apart from a stranger.
 */
#ifndef RAILMATE_PROBE_EXCHANGE_INTERNAL_H
#define RAILMATE_PROBE_EXCHANGE_INTERNAL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "exchange.h"
#include "report.h"
#include "wire.h"

struct arena;
struct err;

#define EXCHANGE_VFS_MAX  64 /* of a container, and of a run */
#define EXCHANGE_SECONDS  60 /* of a run, at most */
#define EXCHANGE_STEP_MS  10000
#define EXCHANGE_WHOLE_MS 600000 /* of a connection */

enum exchange_type {
	EXCHANGE_HELLO,	  /* of both, first: who, with which VFs; the client's has the token */
	EXCHANGE_REFUSED, /* the server's last word, with a finding */
	EXCHANGE_RUN,	  /* the client's: a run, and its ends */
	EXCHANGE_READY,	  /* the server's: its ends, in the same order, connected */
	EXCHANGE_DONE,	  /* the client's: nothing more comes */
	EXCHANGE_RESULT,  /* the server's: of each end, did the right bytes come? */
	EXCHANGE_TROUBLE, /* the server's, in place of the last two: findings; the next run may do
			   */
	EXCHANGE_BYE,	  /* the client's last word */
	EXCHANGE_TYPE_MAX
};

/* A VF of the hello's sender. */
struct exchange_vf {
	const char *hca;
	int rail, plane; /* -1: not known */
	const char
		*subnet; /* of its address: "10.1.0.0/24", an InfiniBand prefix; NULL: not known */
};

/* An end of a connection. */
struct exchange_end {
	const char *from, *to; /* RDMA devices of client and server */
	struct wire_address address;
	const char *memory; /* "host", or a GPU's address */
	double gbps;	    /* what port and PCIe links carry, to that memory; NAN: not known */
	const char *limit;  /* the one that limits; NULL: not known */
	int status;	    /* of RESULT: 0, or a negative errno; -EILSEQ: other bytes came */
};

struct exchange_finding {
	enum outcome outcome;
	const char *id, *on, *what; /* on: NULL or not */
};

/* Members that a type does not have are 0. */
struct exchange_message {
	enum exchange_type type;
	/* HELLO. Of another version only version and token are read. */
	int64_t version;
	const char *token; /* NULL: the server's */
	const char *node;  /* as a person knows it */
	const char *host;  /* the same for all containers of one machine; NULL: not known */
	struct exchange_vf *vfs;
	size_t n_vfs;
	/* RUN */
	enum wire_op op;
	size_t size, message; /* of the memory of each end, and of a message in it */
	double seconds;
	bool gpu;	/* from GPUs' memory to that of GPUs */
	bool must_fail; /* it is to fail: no finding of the server's is of interest */
	uint64_t seed;	/* of the client's bytes; the server's are those of seed + 1 */
	/* RUN, READY, RESULT */
	struct exchange_end *ends;
	size_t n_ends;
	/* HELLO, of the server's devices; REFUSED, RESULT, TROUBLE */
	struct exchange_finding *findings;
	size_t n_findings;
};

struct strbuf;

/* A line, with its line feed. */
void exchange_encode(const struct exchange_message *m, struct strbuf *out);
/*
 * A line without its line feed, from a stranger: -EBADMSG with a sentence, or a message whose
 * numbers are within bounds, whose names may stand in a path, and whose texts may be shown on a
 * terminal. Strings are in the arena. Pure.
 */
int exchange_decode(const char *line, size_t len, struct arena *a, struct exchange_message *ret,
		    struct err *err);
/* Takes as long for a wrong token as for the right one. */
bool exchange_token_eq(const char *a, const char *b);
/* 0, or -EINVAL with a sentence: too short, too long, or not of printable ASCII. */
int exchange_token_check(const char *token, struct err *err);

/* A connection. */
struct exchange {
	int fd;
	int listener; /* of a server that is busy: other clients are refused there; -1 */
	int step_ms;
	int64_t end_ms; /* of the whole */
	char *line;	/* what came and was not taken yet */
	size_t len;
};

/* All addresses of the host, IPv4 and IPv6. The socket, or a negative errno. */
int exchange_listen(int port, struct err *err);
/* Waits for a client until deadline_ms (base/clock.h; 0: for ever). 0; -ETIMEDOUT: none came. */
int exchange_accept(int listener, int64_t deadline_ms, int step_ms, struct exchange *ret);
/* One try, of step_ms at most. -ECONNREFUSED, -ETIMEDOUT, -EHOSTUNREACH …; -EADDRNOTAVAIL: the
 * name is not known. */
int exchange_connect(const char *host, int port, int step_ms, struct exchange *ret,
		     struct err *err);
void exchange_begin(struct exchange *x, int fd, int step_ms); /* of a socket that is connected */
void exchange_end(struct exchange *x);
/* -EPIPE: the peer is gone; -ETIMEDOUT: it takes nothing. */
int exchange_send(struct exchange *x, const struct exchange_message *m, struct err *err);
/*
 * The next message, in step_ms + more_ms. -EPIPE: the peer is gone; -ETIMEDOUT: nothing, or half a
 * line, came; -EMSGSIZE: the line is too long; -EBADMSG: it is no message, or of none of the types
 * of the mask, 1 << EXCHANGE_…
 */
int exchange_receive(struct exchange *x, unsigned types, int more_ms, struct arena *a,
		     struct exchange_message *ret, struct err *err);
/* Is there something to receive, or is the peer gone? Does not wait. */
bool exchange_is_readable(const struct exchange *x);

#endif
