/* Shared by the files of this room. */
#ifndef RAILMATE_VERIFY_INTERNAL_H
#define RAILMATE_VERIFY_INTERNAL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/str.h"
#include "verify/signs-internal.h"
#include "verify/verify.h"

#define MAX_TEXT    4096 /* of a record: 32 HCAs in one "Using" line fit */
#define MAX_PROOF   240
#define MAX_NAME    128 /* of an HCA; fused ones are longer than the kernel's 64 */
#define MAX_WARNS   8
#define MAX_RANKS   65536 /* distinguished */
#define TABLE_SLOTS (2 * VERIFY_MAX_GPUS)

/* A line that proves something. */
struct proof {
	uint64_t count; /* how many lines did; the rest is about the first */
	const char *source;
	uint64_t line, seq; /* seq: among the lines of all sources */
	const struct proc *proc;
	int64_t cuda, rank; /* -1: unknown */
	char moment[24];    /* "2026-05-16 08:01:02" */
	char text[MAX_PROOF];
};

struct place {
	const char *source; /* NULL: nowhere */
	uint64_t line;
};

struct hca {
	char name[MAX_NAME]; /* "mlx5_0+mlx5_1": fused */
	unsigned dev;	     /* NCCL's number */
	unsigned port;	     /* 0: fused, not known */
	bool fused;
};

/* One process: the common facts of its ranks. */
struct proc {
	char host[64];
	uint64_t pid;
	struct gpu *gpus;
	struct hca *hcas;
	size_t n_hcas, cap_hcas;
	char *wanted;			      /* the value of NCCL_IB_HCA */
	uint64_t gdr_disabled;		      /* bit n: "GPU Direct RDMA Disabled for HCA n" */
	unsigned local_ranks;		      /* 0: unknown */
	uint32_t speed_mbps[VERIFY_MAX_DEVS]; /* by NCCL's number; 0: unknown */
	const char *using_source;	      /* of the newest "Using" line; NULL: none */
	uint64_t using_line;
	bool nccl;		   /* it wrote records; else UCX alone */
	bool names_rdma;	   /* its network, or that of a channel, is not TCP */
	bool completed, ended;	   /* Init COMPLETE; Abort or Destroy COMPLETE */
	bool failed;		   /* a trace that is no fall-back */
	struct place socket;	   /* of "NET/Socket : Using" */
	struct place traces[2];	   /* enum trace */
	bool ucx_between, ucx_gpu; /* the table of UCX that is being read */
};

/* Traces of return codes that a good job may have: at its end, or before SHARP's fall-back. */
enum trace { TRACE_END, TRACE_SHARP };

/* Channels between nodes over one HCA. */
struct traffic {
	uint32_t n[2], gdr[2]; /* sent, received */
};

struct gpu {
	struct proc *proc;
	struct gpu *next; /* of the process */
	unsigned cuda;	  /* device number in its process */
	int64_t rank;	  /* -1: unknown; of the largest communicator, of `comm` ranks */
	uint64_t comm;
	uint64_t bus;	   /* as NCCL prints it; 0: unknown */
	uint64_t far_devs; /* bit n: HCA n is too far for GDR, by NCCL */
	uint64_t own_devs; /* bit n: HCA n was used without a proxy (PXN) */
	unsigned far_distance, far_limit;
	struct traffic by_dev[VERIFY_MAX_DEVS];
	const char
		*source; /* of the line that proves it: a channel without GDR, else the first one */
	uint64_t line;
	bool proof_is_plain;
	enum sign_id why; /* after verify_judge(): why not GDR; SIGN_MAX: all of it is */
};

/* Variables that decide about the verdict: the last value seen. */
enum env { ENV_GDR_LEVEL, ENV_GDR_READ, ENV_P2P_DISABLE, ENV_SHM_DISABLE, ENV_GID_INDEX, ENV_MAX };

/* The ground of a verdict, besides its findings. */
enum ground {
	GROUND_NETWORK,
	GROUND_USING,
	GROUND_NODES,
	GROUND_GDR,
	GROUND_PLAIN,
	GROUND_WHY,
	GROUND_INSIDE,
	GROUND_GDRCOPY,
	GROUND_UCX,
	GROUND_END,
	GROUND_MAX
};

struct map_entry {
	const char *gpu, *vf, *hca, *netdev, *path; /* all but hca may be NULL */
	uint64_t gpu_bus, port;
	int64_t gid_index; /* -1: not known, or none */
	int64_t mbps;	   /* 0: not known */
};

struct map {
	const char *host; /* NULL: any */
	struct map_entry *entries;
	size_t n_entries;
	struct map *next;
};

/* How much a collective can reach. */
enum yard {
	YARD_RING, /* all NICs of a node together */
	YARD_EACH, /* each rank sends to each: a GPU's share of the NICs, less inner traffic */
	YARD_PAIR, /* a GPU's share */
	YARD_LINK, /* one NIC: perftest */
	YARD_RING_OR_EACH,
	YARD_ANY
};

/* How large the job is. 0: unknown */
struct extent {
	uint64_t nodes, ranks, local;
};

/* The table of a benchmark, its best row, and the yardstick for it. */
struct table {
	uint64_t rows;
	double best, best_size, largest, last, least_after; /* GB/s; bytes */
	double ratio; /* of bus bandwidth to algorithm bandwidth; 0: unknown */
	char redop;   /* 's': reduces, 'n': does not, 0: unknown */
	bool rooted, spread;
	enum yard yard;
	char name[24], device[64];
	struct extent extent;
	double ceiling; /* GB/s, after verify_judge_bench(); 0: not known */
	struct place place;
	char text[120];
};

#define MAX_TABLES 64

struct bench {
	int columns, size_column, bus_column; /* of the newest headings; columns 0: none */
	int alg_column, redop_column, root_column, wrong_columns[2], min_column, max_column;
	bool bits;		  /* Gb/s */
	double scale;		  /* of perftest's numbers to GB/s; 0: not perftest's */
	uint64_t pending, unread; /* headings without a row; the same, when the newest came */
	double last_size;
	struct place heading;
	char name[24], device[64], host[64];
	bool both_ways, started;	   /* started: a program whose heading did not come yet */
	struct extent head, run, last_run; /* "# Rank" lines; communicators since the last table */
	struct table open, tables[MAX_TABLES];
	size_t n_tables;
};

struct verify {
	struct bench bench;
	struct arena *arena; /* names of sources, maps */
	struct map *maps;

	/* the source that is being read */
	const char *source;
	uint64_t line;
	char *partial;
	size_t partial_len;

	struct proc *procs[VERIFY_MAX_GPUS];
	struct gpu *gpus[VERIFY_MAX_GPUS];
	size_t n_procs, n_gpus;
	uint16_t proc_slots[TABLE_SLOTS]; /* index + 1; 0: empty */
	struct proc *last_proc;

	uint64_t bytes, lines, records;
	char version[64], network[64];
	uint64_t nodes, ranks; /* the largest of any communicator; 0: unknown */
	uint64_t least_ranks;  /* that a channel names, where no communicator is named */
	uint64_t rank_seen[MAX_RANKS /
			   64]; /* bits: ranks of the largest communicator that wrote themselves */
	uint64_t net_channels, net_gdr;
	/* Of lines without a process, bits by HCA: it has no GDR; a channel does without. */
	uint64_t bare_disabled, bare_plain;
	bool rdma_provider; /* a plugin named a libfabric provider that is RDMA */
	uint64_t tcp_channels, mnnvl_channels, ucx_lines, ucx_between;
	double gpu_link;	  /* GB/s, the narrowest PCIe link of a GPU; 0: not known */
	struct place bare_socket; /* of lines without a process */
	bool bare_comm, bare_rdma, two_versions;
	char env[ENV_MAX][32];
	struct proof grounds[GROUND_MAX];
	struct phrases phrases;
	struct proof signs[SIGN_MAX];
	uint8_t levels[SIGN_MAX]; /* of enum level: the catalogue's, changed by verify_judge() */
	unsigned first;		  /* the first cause, after verify_judge(); SIGN_MAX: none */
	struct proof warns[MAX_WARNS]; /* NCCL's own, of no sign: the first of each text */
	size_t n_warns;
	enum verdict verdict;
	bool ended_badly; /* after verify_judge() */

	/* the line that is being read, and who wrote it */
	const char *text;
	size_t text_len;
	char record[MAX_TEXT],
		value[VERIFY_MAX_LINE]; /* its clean text; the one inside JSON or UTF-16 */
	const struct proc *writer;
	int64_t writer_cuda;
};

/* One record of NCCL. */
struct record {
	struct proc *proc;
	int64_t cuda;	  /* -1: unknown */
	bool warn, whole; /* not whole: the source ends before the line does */
	const char *text;
};

/* rules.c: notes the record's meaning. */
void verify_record(struct verify *v, const struct record *r);
void verify_version(struct verify *v, const char *version, size_t len);

/* table.c: NULL when there are too many. */
struct proc *verify_proc(struct verify *v, const char *host, size_t host_len, uint64_t pid);
struct gpu *verify_gpu(struct verify *v, struct proc *proc, unsigned cuda);
void verify_saw(struct verify *v, unsigned id, const char *text);
void verify_saw_at(struct verify *v, unsigned id, const char *source, uint64_t line,
		   const char *text);
/* The rank of a GPU's process, or the one that the line itself named; -1: unknown. */
int64_t verify_rank_of(const struct proof *p);
/* A rank of a communicator of n wrote this itself. n 0: not known, at least `least`. */
void verify_rank(struct verify *v, uint64_t rank, uint64_t n, uint64_t least);
uint64_t verify_ranks_seen(const struct verify *v);
uint64_t verify_hosts_seen(const struct verify *v);
void verify_warned(struct verify *v, const char *text);
void verify_ground(struct verify *v, enum ground ground, const char *text);

const struct map *verify_map_of(const struct verify *v, const char *host);
const struct map_entry *map_entry_of(const struct map *map, const char *hca, size_t len,
				     uint64_t port);

/* bench.c: a line that is not a record, with its hints; the end of a table. */
void verify_bench_line(struct verify *v, const char *line, size_t len, unsigned hints);
void verify_close_table(struct verify *v);
/* Judges the tables. */
void verify_judge_bench(struct verify *v);
/* NULL: no table. */
const struct table *verify_worst_table(const struct verify *v);

/* "mlx5_0:1", "mlx5_0:1+mlx5_1:1", "#3" when the log names no HCA of that number. */
void proc_hca_name(const struct proc *p, unsigned dev, struct strbuf *out);

#endif
