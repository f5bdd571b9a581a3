/*
 * The variables that an operator may set for a pool (config/policy.h), and how a word of theirs is
 * judged: known, near to a known one, of a legal value.
 */
#include "config/policy.h"

#include <regex.h>
#include <stdbool.h>
#include <stddef.h>
#include <string.h>
#include <strings.h>

#include "base/arena.h"
#include "base/mem.h"
#include "base/str.h"
#include "config/config-internal.h"
#include "config/config.h"
#include "document/document.h"

#define WORD_MAX 64

/* How far apart two words are: "did you mean …?" */

static size_t min2(size_t a, size_t b)
{
	return a < b ? a : b;
}

static bool same(char a, char b)
{
	return !strncasecmp(&a, &b, 1);
}

/* Optimal string alignment: letters changed, added, left out, and neighbours that changed places.
 */
size_t word_distance(const char *a, const char *b)
{
	size_t rows[3][WORD_MAX + 1], *before = rows[0], *last = rows[1], *row = rows[2], *spare;
	size_t n = strlen(b);

	if (strlen(a) > WORD_MAX || n > WORD_MAX)
		return WORD_MAX + 1;
	for (size_t k = 0; k <= n; k++)
		last[k] = k;
	for (size_t i = 1; a[i - 1]; i++) {
		row[0] = i;
		for (size_t k = 1; k <= n; k++) {
			row[k] = min2(last[k] + 1, row[k - 1] + 1);
			row[k] = min2(row[k], last[k - 1] + !same(a[i - 1], b[k - 1]));
			if (i > 1 && k > 1 && same(a[i - 1], b[k - 2]) && same(a[i - 2], b[k - 1]))
				row[k] = min2(row[k], before[k - 2] + 1);
		}
		spare = before;
		before = last;
		last = row;
		row = spare;
	}
	return last[n];
}

/* Names and values against the table of policy.c. */

const struct policy_var *policy_find(const char *name)
{
	for (size_t i = 0; i < n_policy_vars; i++) {
		if (str_eq(policy_vars[i].name, name))
			return &policy_vars[i];
	}
	return NULL;
}

/* Are the letters of `word` in `whole`, in this order? "NCCL_TC" in "NCCL_IB_TC". */
static bool is_contained(const char *word, const char *whole)
{
	for (; *word && *whole; whole++)
		word += !strncasecmp(word, whole, 1);
	return !*word;
}

/* NCCL_ is not UCX_, but people write RCCL_ for NCCL_. */
static bool same_library(const char *a, const char *b)
{
	char x[WORD_MAX + 1] = "", y[WORD_MAX + 1] = "";

	memcpy(x, a, strcspn(a, "_"));
	memcpy(y, b, strcspn(b, "_"));
	return word_distance(x, y) <= 1;
}

#define LETTERS_MAX 3

const struct policy_var *policy_nearest(const char *name)
{
	const struct policy_var *best = NULL;
	size_t best_distance = LETTERS_MAX + 1, tail = strlen(name) - strcspn(name, "_");

	if (strlen(name) > WORD_MAX)
		return NULL;
	for (size_t i = 0; i < n_policy_vars; i++) {
		const struct policy_var *v = &policy_vars[i];
		size_t d = word_distance(name, v->name);

		if (d < best_distance && same_library(name, v->name) &&
		    (2 * d < tail || is_contained(name, v->name))) {
			best = v;
			best_distance = d;
		}
	}
	return best;
}

static bool is_word(const char *words, const char *s, size_t len)
{
	for (; words && *words; words += strspn(words, " ")) {
		size_t n = strcspn(words, " ");

		if (n == len && !strncmp(words, s, n))
			return true;
		words += n;
	}
	return false;
}

static bool is_list(const char *words, const char *s)
{
	for (;;) {
		size_t n;

		s += *s == '^';
		n = strcspn(s, ",");
		if (!is_word(words, s, n))
			return false;
		if (!s[n])
			return true;
		s += n + 1;
	}
}

static bool matches(const char *pattern, const char *s)
{
	regex_t compiled;
	bool yes;

	if (regcomp(&compiled, pattern, REG_EXTENDED | REG_NOSUB) != 0)
		return false;
	yes = regexec(&compiled, s, 0, NULL, 0) == 0;
	regfree(&compiled);
	return yes;
}

/* It travels through environments and through lines of nccl.conf. */
static bool is_printable(const char *s)
{
	size_t len = strlen(s);

	for (size_t i = 0; i < len; i++) {
		if (s[i] <= ' ' || s[i] > '~')
			return false;
	}
	return len && len <= POLICY_BYTES_MAX;
}

bool policy_accepts(const struct policy_var *var, const char *value)
{
	const struct policy_legal *legal = &var->legal;
	int number;

	if (!is_printable(value))
		return false;
	switch (legal->kind) {
	case POLICY_NUMBER:
		return is_word(legal->words, value, strlen(value)) ||
		       (str_to_int(value, &number) == 0 && number >= legal->min &&
			number <= legal->max);
	case POLICY_WORD:
		return is_word(legal->words, value, strlen(value));
	case POLICY_LIST:
		return is_list(legal->words, value);
	case POLICY_TEXT:
		break;
	}
	return !legal->pattern || matches(legal->pattern, value);
}

/* "A", "B" or "C" of "A B C". */
static void put_words(struct strbuf *b, const char *words)
{
	while (words && *words) {
		size_t n = strcspn(words, " ");
		bool last = !words[n];

		if (b->len)
			strbuf_puts(b, last ? " or " : ", ");
		strbuf_add(b, words, n);
		words += n + !last;
	}
}

const char *policy_legal_text(const struct policy_var *var, struct arena *arena)
{
	_cleanup_strbuf_ struct strbuf b = STRBUF_INIT;
	const struct policy_legal *legal = &var->legal;

	if (legal->kind == POLICY_NUMBER)
		strbuf_printf(&b, "%lld to %lld", (long long)legal->min, (long long)legal->max);
	if (legal->kind == POLICY_TEXT)
		strbuf_puts(&b, legal->shape ? legal->shape : "any word");
	put_words(&b, legal->words);
	if (legal->kind == POLICY_LIST)
		strbuf_puts(&b, "; several with commas between them, '^' before one leaves it out");
	return arena_strdup(arena, strbuf_str(&b));
}

/*
 * The table. Where every row comes from: docs/design/nccl.md §4.1, §4.2, §4.3, §4.4 and §5 (its
 * class P is POLICY_FREE, N is POLICY_RISKY, D is POLICY_OURS), ranges and releases from NCCL's own
 * docs/userguide/source/env.rst, UCX's and NVSHMEM's tables of options.
 */

#define NCCL	(PROFILE_NCCL | PROFILE_RCCL)
#define RCCL	PROFILE_RCCL
#define UCX	PROFILE_UCX
#define NVSHMEM PROFILE_NVSHMEM
#define MSCCLPP PROFILE_MSCCLPP
#define OFI	(PROFILE_OFI | PROFILE_ONECCL)
#define ONECCL	PROFILE_ONECCL
#define ANY	(NCCL | UCX | NVSHMEM | MSCCLPP | OFI)
#define FREE	POLICY_FREE
#define RISKY	POLICY_RISKY
#define NUMBER(min, max)                                                                           \
	{                                                                                          \
		POLICY_NUMBER, min, max, NULL, NULL, NULL                                          \
	}
#define NUMBER_OR(min, max, words)                                                                 \
	{                                                                                          \
		POLICY_NUMBER, min, max, words, NULL, NULL                                         \
	}
#define FLAG NUMBER(0, 1)
#define WORD(words)                                                                                \
	{                                                                                          \
		POLICY_WORD, 0, 0, words, NULL, NULL                                               \
	}
#define LIST(words)                                                                                \
	{                                                                                          \
		POLICY_LIST, 0, 0, words, NULL, NULL                                               \
	}
#define TEXT(shape)                                                                                \
	{                                                                                          \
		POLICY_TEXT, 0, 0, NULL, NULL, shape                                               \
	}
#define PATTERN(pattern, shape)                                                                    \
	{                                                                                          \
		POLICY_TEXT, 0, 0, NULL, pattern, shape                                            \
	}
#define NOT_SET                                                                                    \
	{                                                                                          \
		POLICY_TEXT, 0, 0, NULL, NULL, NULL                                                \
	}
#define OURS(name, profiles, key, meaning)                                                         \
	{                                                                                          \
		name, profiles, POLICY_OURS, NOT_SET, NULL, NULL, NULL, key, meaning, NULL         \
	}
#define NAME "[A-Za-z0-9_.@-]+"
#define INTERFACES                                                                                 \
	PATTERN("^\\^?=?" NAME "(," NAME ")*$",                                                    \
		"interface names, or what they begin with: eth0; ^docker; =net1,net2")
#define ONE_NAME PATTERN("^" NAME "(," NAME ")*$", "names with commas between them: eth0")
#define HCA	 NAME "(:[0-9]+)?"
#define HCAS                                                                                       \
	PATTERN("^\\^?=?" HCA "(," HCA ")*$",                                                      \
		"names of RDMA devices or what they begin with: mlx5; =mlx5_1:1")
#define GROUPS                                                                                     \
	PATTERN("^" NAME "([,;]" NAME ")*$", "names of RDMA devices: mlx5_0,mlx5_1;mlx5_2,mlx5_3")

#define OWN    "NCCL's own constant"
#define SWITCH WORD("y n yes no on off 1 0") /* of UCX */
#define LEVELS "LOC NVL PIX PXB PHB SYS"
#define BYTES  NUMBER(1, INT32_MAX)

const struct policy_var policy_vars[] = {
	/* --- variables that railmate sets --- */
	OURS("NCCL_IB_HCA", NCCL, NULL, "the VFs of the container, exact, each with its port"),
	OURS("NCCL_IB_GID_INDEX", NCCL, "gid", "the place of the address in the table of every VF"),
	OURS("NCCL_IB_ADDR_FAMILY", NCCL, "gidFamily", "IPv4 or IPv6 addresses"),
	OURS("NCCL_IB_ADDR_RANGE", NCCL, "gidRange", "the fabric's prefix"),
	OURS("NCCL_IB_ROCE_VERSION_NUM", NCCL, "roceVersion", "RoCE v1 or v2"),
	OURS("NCCL_IB_PKEY", NCCL, "pkey", "the place of the P_Key in the port's table"),
	OURS("NCCL_IB_PKEY_VALUE", NCCL, "pkey",
	     "the P_Key itself, which NCCL finds in the table since 2.31"),
	OURS("NCCL_IB_MERGE_VFS", NCCL, NULL,
	     "0 where NCCL would look for a VF at the wrong place of the PCI tree"),
	OURS("NCCL_IB_MERGE_NICS", NCCL, NULL, "0 when two VFs of a container share a port"),
	OURS("NCCL_TOPO_FILE", NCCL, "topologyFile",
	     "the tree of the machine, where NCCL would see a wrong one"),
	OURS("NCCL_CONF_FILE", NCCL, NULL, "what is known when the container starts"),
	OURS("UCX_IB_PKEY", UCX, "pkey", "the P_Key, without its membership bit"),
	OURS("NVSHMEM_HCA_PREFIX", NVSHMEM, NULL,
	     "what the VFs' names begin with, when it is not mlx5"),
	OURS("NVSHMEM_IB_ADDR_FAMILY", NVSHMEM, "gidFamily", "IPv4 or IPv6 addresses"),
	OURS("NVSHMEM_IB_ADDR_RANGE", NVSHMEM, "gidRange", "the fabric's prefix"),
	OURS("NVSHMEM_IB_ROCE_VERSION_NUM", NVSHMEM, "roceVersion", "RoCE v1 or v2"),
	OURS("MSCCLPP_HCA_DEVICES", MSCCLPP, NULL, "the VF of each GPU, in the order of the GPUs"),
	OURS("MSCCLPP_IB_GID_INDEX", MSCCLPP, "gid",
	     "the place of the address in the table of every VF"),
	OURS("FI_VERBS_DEVICE_NAME", OFI, NULL, "the VF, or what the names of several begin with"),
	OURS("FI_VERBS_GID_IDX", OFI, "gid", "the place of the address in the table of every VF"),
	OURS("CCL_MNIC", ONECCL, NULL, "local: the NICs beside the process"),
	OURS("CCL_MNIC_NAME", ONECCL, NULL, "the VFs of the container"),

	/* --- NCCL: devices (docs/design/nccl.md §4.1) --- */
	{ "NCCL_NET", NCCL, FREE, TEXT("IB, Socket, or the name of a plugin"),
	  "the best that works", NULL, NULL, NULL,
	  "the network to use; IB turns a silent fall-back to TCP into an error",
	  "IB breaks images that bring a network plugin (AWS Libfabric, IBext)" },
	{ "NCCL_NET_PLUGIN", NCCL, FREE, TEXT("none, a suffix or a library"), "libnccl-net.so",
	  NULL, NULL, NULL, "the network plugin to load",
	  "belongs to the image that has the plugin" },
	{ "NCCL_NETDEVS_POLICY", NCCL, FREE,
	  PATTERN("^(AUTO|ALL|MAX:[1-9][0-9]{0,2})$", "AUTO, ALL or MAX:N"), "AUTO", "2.28.3", NULL,
	  NULL, "how many NICs a GPU uses", NULL },
	{ "NCCL_NET_MERGE_LEVEL", NCCL, FREE, WORD("LOC PORT PIX PXB P2C PXN PHB SYS"), "PORT",
	  "2.24.3", NULL, NULL,
	  "how far ports may be apart to be fused into one NIC; LOC: never; P2C since 2.27",
	  "the speeds of what is fused are added up" },
	{ "NCCL_NET_MERGE_POLICY", NCCL, FREE, WORD("ALL RAIL"), "ALL", "2.30.5", NULL, NULL,
	  "which ports are fused into one NIC", NULL },
	{ "NCCL_IB_RAIL_POLICY", NCCL, FREE, TEXT("a policy"), "by the cards", "2.32", NULL, NULL,
	  "how rails and planes of ConnectX-9 are numbered",
	  "the key ncclRails names them itself" },
	{ "NCCL_IGNORE_NET_MISMATCH", NCCL, FREE, FLAG, "by the release", "2.30", NULL, NULL,
	  "1: nodes may have different numbers of network devices; 0: then the job fails",
	  "1 hides a node whose RDMA does not work" },
	{ "NCCL_NET_FORCE_MERGE", NCCL, RISKY, GROUPS, "none", "2.24.3", NULL, NULL,
	  "NICs to fuse into one, by name", "names differ from container to container" },
	{ "NCCL_IB_DISABLE", NCCL, RISKY, FLAG, "0", NULL, NULL, NULL, "1: no RDMA",
	  "1 sends everything over TCP" },
	{ "NCCL_TOPO_DUMP_FILE", NCCL, RISKY, TEXT("a path"), "none", NULL, NULL, NULL,
	  "where to write the tree that NCCL sees",
	  "the file is written at every start, and the tree is not built from that pass" },
	{ "NCCL_TOPO_DUMP_FILE_RANK", NCCL, RISKY, NUMBER(0, INT32_MAX), "0", NULL, NULL, NULL,
	  "which rank writes it", "of use with NCCL_TOPO_DUMP_FILE only" },
	{ "NCCL_HOSTID", NCCL, RISKY, TEXT("a word that is different on every host"),
	  "host name and boot id", NULL, NULL, NULL, "which ranks are on one host",
	  "one value for every container of a pool makes all of them one host: jobs hang" },

	/* --- quality of service, reliability (§4.2) --- */
	{ "NCCL_IB_TC", NCCL, FREE, NUMBER(0, 255), "0", NULL, NULL, NULL,
	  "traffic class of RoCE: DSCP times 4, plus ECN; 106 is DSCP 26 with ECN",
	  "has to be what switches and PFs are configured for: else packets are lost in a lossy queue" },
	{ "NCCL_IB_FIFO_TC", NCCL, FREE, NUMBER(0, 255), "as NCCL_IB_TC", "2.22.3", NULL, NULL,
	  "traffic class of the small control messages", "as NCCL_IB_TC" },
	{ "NCCL_IB_SL", NCCL, FREE, NUMBER(0, 15), "0", NULL, NULL, NULL,
	  "service level of InfiniBand",
	  "on RoCE it counts only with a VLAN's address and ports that trust the VLAN tag" },
	{ "NCCL_IB_TIMEOUT", NCCL, FREE, NUMBER(0, 31), "20", NULL, NULL, NULL,
	  "how long one try waits: 4.096 us times 2 to the n (20: 4.3 s, 22: 17 s); the default was 18 in 2.14 to 2.22",
	  "larger hides faults longer, from 22 on for minutes: a warning; 0 waits for ever" },
	{ "NCCL_IB_RETRY_CNT", NCCL, FREE, NUMBER(0, 7), "7", NULL, NULL, NULL,
	  "tries before an error", NULL },
	{ "NCCL_IB_QPS_PER_CONNECTION", NCCL, FREE, NUMBER(1, 128), "1", NULL, NULL, NULL,
	  "queue pairs of a connection: more spread better over equal paths",
	  "VFs have few queue pairs" },
	{ "NCCL_IB_SPLIT_DATA_ON_QPS", NCCL, FREE, FLAG, "0", NULL, NULL, NULL,
	  "1: every message over all queue pairs (the default in 2.18 and 2.19)",
	  "latency, with many queue pairs" },
	{ "NCCL_IB_ADAPTIVE_ROUTING", NCCL, FREE, FLAG, "1 on InfiniBand, 0 on RoCE", NULL, NULL,
	  NULL, "large data in writes that may come out of order",
	  "costs, where the fabric does not route adaptively" },
	{ "NCCL_IB_AR_THRESHOLD", NCCL, FREE, NUMBER(0, INT32_MAX), "8192", NULL, NULL, NULL,
	  "from how many bytes on", NULL },
	{ "NCCL_IB_OOO_RQ", NCCL, FREE, FLAG, "0", "2.30", NULL, NULL,
	  "1: receives may be consumed out of order", NULL },
	{ "NCCL_IB_ECE_ENABLE", NCCL, FREE, FLAG, "1", "2.23.4", NULL, NULL,
	  "enhanced connection establishment",
	  "0 where cards of several vendors talk RoCE; 2.19 to 2.22 use it whatever is set" },
	{ "NCCL_IB_RESILIENCY_PORT_FAILOVER", NCCL, FREE, FLAG, "0", "2.29.7", NULL, NULL,
	  "1: when a port fails, the others of its fused NIC take over",
	  "only ports that NCCL fuses: two VFs of different ports for a GPU" },
	{ "NCCL_IB_RESILIENCY_PORT_RECOVERY", NCCL, FREE, FLAG, "0", "2.30", NULL, NULL,
	  "1: a port that is back is used again; with NCCL_IB_RESILIENCY_PORT_FAILOVER=1",
	  "needs UC queue pairs, which not every card has" },
	{ "NCCL_IB_SUBNET_AWARE_ROUTING", NCCL, FREE, FLAG, "0", "2.30", NULL, NULL,
	  "1: connections from the port that is in the peer's subnet", NULL },
	{ "NCCL_IB_SUBNET_PREFIX_LEN", NCCL, FREE, NUMBER(0, 128), "24", "2.30", NULL, NULL,
	  "how long the prefix of such a subnet is", NULL },
	{ "NCCL_IB_EVENT_BASED_LB", NCCL, FREE, TEXT("a number"), "by the release", "2.31", NULL,
	  NULL, "load balancing over queue pairs", NULL },
	{ "NCCL_IB_EVENT_BASED_LB_REMOTE", NCCL, FREE, TEXT("a number"), "by the release", "2.31",
	  NULL, NULL, "the same by what the peer sees", NULL },
	{ "NCCL_IB_MQP_RETRY_ALL", NCCL, FREE, FLAG, "0", "2.24.3", NULL, NULL,
	  "1: connecting a queue pair is tried again after any error, not after a time-out alone",
	  NULL },
	{ "NCCL_IB_MQP_RETRY_CNT", NCCL, FREE, NUMBER(0, INT32_MAX), "34", "2.24.3", NULL, NULL,
	  "how often", NULL },
	{ "NCCL_IB_MQP_RETRY_SLEEP_MSEC", NCCL, FREE, NUMBER(0, INT32_MAX), "100", "2.24.3", NULL,
	  NULL, "the pause between two tries", NULL },
	{ "NCCL_IB_WARN_RAIL_LOCAL", NCCL, FREE, FLAG, "0", "2.24.3", NULL, NULL,
	  "1: warn of a connection that has fewer ports than the fused NIC", NULL },
	{ "NCCL_IB_WQE_LATENCY_THRESHOLD_NS", NCCL, FREE, NUMBER(0, INT32_MAX), "0", "2.31", NULL,
	  NULL, "log requests that the card takes longer for; 0: none", NULL },
	{ "NCCL_IB_WQE_LATENCY_REPORT", NCCL, FREE, FLAG, "1", "2.31", NULL, NULL,
	  "and a summary when the connection ends", NULL },
	{ "NCCL_IB_DATA_DIRECT", NCCL, FREE, NUMBER(0, 2), "1", "2.27.3", NULL, NULL,
	  "Data Direct of ConnectX-8 and later: 0 leaves it alone, 2 has each NIC with it and without",
	  "with 0, transfers with GPUs cross the CPU" },
	{ "NCCL_GDRCOPY_ENABLE", NCCL, FREE, FLAG, "0", NULL, NULL, NULL,
	  "1: GDRCopy, where the image has its library",
	  "the container needs /dev/gdrdrv, which railmate does not give" },
	{ "NCCL_IB_RETURN_ASYNC_EVENTS", NCCL, FREE, FLAG, "1", "2.23.4", NULL, NULL,
	  "fatal events of the port end the job", NULL },
	{ "NCCL_CROSS_NIC", NCCL, FREE, NUMBER(0, 2), "2", NULL, NULL, NULL,
	  "may a ring change rails between nodes: 0 for rails without a spine, 1 for one fabric, 2 tries not to",
	  "0 on a fabric that is not a rail fabric, and 1 on one that is, are slow" },

	/* --- GPUDirect, PCIe, memory (§4.3) --- */
	{ "NCCL_PXN_DISABLE", NCCL, FREE, FLAG, "0", NULL, NULL, NULL,
	  "1: never through the GPU that is nearer to the NIC", NULL },
	{ "NCCL_P2P_PXN_LEVEL", NCCL, FREE, NUMBER(0, 2), "2", NULL, NULL, NULL,
	  "the same for send and receive", NULL },
	{ "NCCL_COLLNET_ENABLE", NCCL, FREE, FLAG, "0", NULL, NULL, NULL,
	  "1: collectives in the switches (SHARP) by a network plugin",
	  "of use on InfiniBand only, with the plugin in the image and an aggregation manager (sharp_am) on the fabric" },
	{ "NCCL_COLLNET_NODE_THRESHOLD", NCCL, FREE, NUMBER(0, INT32_MAX), "2", NULL, NULL, NULL,
	  "from how many nodes on", NULL },
	{ "SHARP_COLL_ENABLE_SAT", NCCL, FREE, FLAG, "by the release", NULL, NULL, NULL,
	  "1: SHARP's streaming trees for large messages",
	  "a switch has few of them: other jobs of the fabric get none meanwhile" },
	{ "SHARP_COLL_LOCK_ON_COMM_INIT", NCCL, FREE, FLAG, "0", NULL, NULL, NULL,
	  "1: the streaming tree is taken when a communicator is made",
	  "and is not given back before that ends" },
	{ "SHARP_COLL_NUM_COLL_GROUP_RESOURCE_ALLOC_THRESHOLD", NCCL, FREE, NUMBER(0, INT32_MAX),
	  "1", NULL, NULL, NULL,
	  "after how many collectives a group gets resources of the switches; 0: at once", NULL },
	{ "SHARP_COLL_LOG_LEVEL", NCCL, FREE, NUMBER(0, 5), "2", NULL, NULL, NULL,
	  "what SHARP logs", NULL },
	{ "NCCL_NVLS_ENABLE", NCCL, FREE, NUMBER(0, 2), "2", NULL, NULL, NULL, "NVLink SHARP",
	  NULL },
	{ "NCCL_MNNVL_ENABLE", NCCL, FREE, NUMBER(0, 2), "2", "2.21.5", NULL, NULL,
	  "NVLink between nodes", NULL },
	{ "NCCL_NET_GDR_LEVEL", NCCL, RISKY, NUMBER_OR(0, 5, "LOC NVL PIX PXB P2C PXN PHB SYS"),
	  "PXB, or P2C", NULL, NULL, NULL,
	  "how far a GPU and a NIC may be apart for GPUDirect RDMA",
	  "SYS sends through the link between sockets, mostly slower than without; LOC is never; 4 and 5 are SYS" },
	{ "NCCL_NET_GDR_READ", NCCL, RISKY, FLAG, "1 on GPUs since Ampere and with NVLink", NULL,
	  NULL, NULL, "may the NIC read a GPU's memory to send",
	  "the default is measured, a constant is right on one kind of machine" },
	{ "NCCL_NET_GDR_C2C", NCCL, RISKY, FLAG, "1", "2.26.2", NULL, NULL,
	  "the same over Grace's chip-to-chip link", "right as it is" },
	{ "NCCL_PXN_C2C", NCCL, RISKY, FLAG, "1 (2.27: 0)", "2.27.3", NULL, NULL,
	  "PXN over that link", "right as it is" },
	{ "NCCL_IB_PCI_RELAXED_ORDERING", NCCL, RISKY, NUMBER(0, 2), "2 (where it works)", NULL,
	  NULL, NULL, "PCIe's relaxed ordering",
	  "0 is slow in virtual machines, 1 fails where it is not there" },
	{ "NCCL_IB_RESILIENCY_PORT_FAILOVER_MAX_ATTEMPTS", NCCL, RISKY, NUMBER(0, INT32_MAX), "1",
	  "2.29.7", NULL, NULL, "times that one request may move to another port", OWN },
	{ "NCCL_IB_RESILIENCY_PORT_FAILOVER_PROBE_DELAY", NCCL, RISKY, NUMBER(0, INT32_MAX), "10",
	  "2.29.7", NULL, NULL, "milliseconds before the peer is asked what arrived", OWN },
	{ "NCCL_IB_RESILIENCY_PORT_RECOVERY_START_DELAY", NCCL, RISKY, NUMBER(0, INT32_MAX), "200",
	  "2.30", NULL, NULL, "milliseconds before a failed port is tried again", OWN },
	{ "NCCL_IB_RESILIENCY_PORT_RECOVERY_ATTEMPTS_MAX", NCCL, RISKY, NUMBER(0, INT32_MAX), "5",
	  "2.30", NULL, NULL, "how often", OWN },
	{ "NCCL_IB_RESILIENCY_PORT_RECOVERY_ACK_TIMEOUT", NCCL, RISKY, NUMBER(0, INT32_MAX), "5000",
	  "2.30", NULL, NULL, "milliseconds that the peer's answer may take", OWN },
	{ "NCCL_IB_RESILIENCY_PORT_RECOVERY_ALIVE_MSG_TIMEOUT", NCCL, RISKY, NUMBER(0, INT32_MAX),
	  "4000", "2.30", NULL, NULL, "the same of its signs of life", OWN },
	{ "NCCL_IB_RESILIENCY_PORT_RECOVERY_ALIVE_MSG_BATCH_INTERVAL", NCCL, RISKY,
	  NUMBER(0, INT32_MAX), "500", "2.30", NULL, NULL, "milliseconds between them", OWN },
	{ "NCCL_IB_RESILIENCY_PORT_RECOVERY_ALIVE_MSG_BATCH_SIZE", NCCL, RISKY,
	  NUMBER(1, INT32_MAX), "5", "2.30", NULL, NULL, "how many at a time", OWN },
	{ "NCCL_IB_RESILIENCY_PORT_RECOVERY_ALIVE_MSG_SEQUENCE_SIZE", NCCL, RISKY,
	  NUMBER(1, INT32_MAX), "5", "2.30", NULL, NULL, "how many in order prove the port", OWN },
	{ "NCCL_IB_DEVICE_PCI_ORDER", NCCL, RISKY, FLAG, "1", "2.29.7", NULL, NULL,
	  "devices by PCI address; 0: as libibverbs lists them", OWN },
	{ "NCCL_IB_PREPOST_RECEIVE_WORK_REQUESTS", NCCL, RISKY, NUMBER(-2, 1), "-2 (by the rest)",
	  "2.29.7", NULL, NULL, "receives are posted in advance", OWN },
	{ "NCCL_IB_RECEIVER_SIDE_MATCHING_SCHEME", NCCL, RISKY, NUMBER(-2, 1), "-2 (by the rest)",
	  "2.29.7", NULL, NULL, "how requests are matched", OWN },
	{ "NCCL_IB_QUERY_PORT_SPEED", NCCL, RISKY, FLAG, "1", "2.30", NULL, NULL,
	  "the port's speed by the verb for it", OWN },
	{ "NCCL_IB_ROUTABLE_FLID_GID_INDEX", NCCL, RISKY, NUMBER(0, 255), "1", "2.22.3", NULL, NULL,
	  "InfiniBand: place of the GID that routers know", OWN },
	{ "NCCL_IB_USE_INLINE", NCCL, RISKY, FLAG, "0", NULL, NULL, NULL,
	  "1: small control messages inside the request", OWN },
	{ "NCCL_DMABUF_ENABLE", NCCL, RISKY, FLAG, "1", NULL, NULL, NULL,
	  "dma-buf for GPUDirect RDMA", "0 leaves nvidia_peermem alone to do it" },
	{ "NCCL_P2P_LEVEL", NCCL, RISKY, NUMBER_OR(0, 5, LEVELS), "by the machine", NULL, NULL,
	  NULL, "how far two GPUs may be apart to talk directly",
	  "NVL turns PCIe peer-to-peer off" },
	{ "NCCL_P2P_DISABLE", NCCL, RISKY, FLAG, "0", NULL, NULL, NULL,
	  "1: GPUs never talk directly", "a work-around, and very slow" },
	{ "NCCL_SHM_DISABLE", NCCL, RISKY, FLAG, "0", NULL, NULL, NULL, "1: no shared memory",
	  "a work-around" },
	{ "NCCL_CUMEM_ENABLE", NCCL, RISKY, FLAG, "where it works", NULL, NULL, NULL,
	  "CUDA's cuMem functions", "a work-around" },
	{ "NCCL_CUMEM_HOST_ENABLE", NCCL, RISKY, FLAG, "where it works", "2.23.4", NULL, NULL,
	  "the same for host memory", "0 helps containers that may not use NUMA, nothing else" },
	{ "NCCL_IGNORE_CPU_AFFINITY", NCCL, RISKY, FLAG, "0", NULL, NULL, NULL,
	  "1: the GPU's CPUs, not the container's", "undoes what the CPU manager decided" },

	/* --- sockets, bootstrap, tuning, debugging (§4.4) --- */
	{ "NCCL_SOCKET_IFNAME", NCCL, FREE, INTERFACES, "ib*, then the first other one", NULL, NULL,
	  NULL, "the interface for the bootstrap, and for data over TCP",
	  "a pod without such an interface does not start NCCL" },
	{ "NCCL_SOCKET_FAMILY", NCCL, FREE, WORD("AF_INET AF_INET6"), "either", NULL, NULL, NULL,
	  "its addresses", NULL },
	{ "NCCL_SOCKET_NTHREADS", NCCL, FREE, NUMBER(1, 16), "1 (AWS 2, Google 4)", NULL, NULL,
	  NULL, "threads of a TCP connection; times NCCL_NSOCKS_PERTHREAD at most 64", NULL },
	{ "NCCL_NSOCKS_PERTHREAD", NCCL, FREE, NUMBER(1, 64), "1 (AWS 8)", NULL, NULL, NULL,
	  "sockets of such a thread", NULL },
	{ "NCCL_OOB_NET_ENABLE", NCCL, FREE, FLAG, "0", "2.23.4", NULL, NULL,
	  "1: the bootstrap over RDMA", NULL },
	{ "NCCL_OOB_NET_IFNAME", NCCL, FREE, HCAS, "any", "2.23.4", NULL, NULL, "its devices",
	  "names of VFs differ from container to container" },
	{ "NCCL_RAS_ENABLE", NCCL, FREE, FLAG, "1", "2.24.3", NULL, NULL,
	  "the service that reports the job's state", NULL },
	{ "NCCL_RAS_ADDR", NCCL, FREE, TEXT("address:port"), "localhost:28028", "2.24.3", NULL,
	  NULL, "where it listens", NULL },
	{ "NCCL_DEBUG", NCCL, FREE, WORD("VERSION WARN ATTN INFO ABORT TRACE"), "silent", NULL,
	  NULL, NULL, "what is logged; railmatectl verify reads INFO",
	  "INFO and TRACE are for finding out: a warning; ATTN is a level since 2.32 only" },
	{ "NCCL_DEBUG_SUBSYS", NCCL, FREE,
	  LIST("INIT COLL P2P SHM NET GRAPH TUNING ENV ALLOC ALLOC_HOST CALL PROXY NVLS BOOTSTRAP REG PROFILE RAS DESTROY ALL"),
	  "INIT,BOOTSTRAP,ENV", NULL, NULL, NULL,
	  "of which parts; railmatectl verify wants INIT,NET,ENV",
	  "ALL is for finding out: a warning" },
	{ "NCCL_DEBUG_FILE", NCCL, FREE, TEXT("a path, %h is the host, %p the process"),
	  "standard output", NULL, NULL, NULL, "where to",
	  "without %p processes overwrite each other" },
	{ "NCCL_COMM_ID", NCCL, RISKY, TEXT("address:port"), "made by the job", NULL, NULL, NULL,
	  "the job's meeting point", "one value for a pool makes all its jobs meet" },
	{ "NCCL_ALGO", NCCL, RISKY, TEXT("algorithms"), "the best", NULL, NULL, NULL, "algorithms",
	  "since 2.24 one that cannot be used fails the job" },
	{ "NCCL_PROTO", NCCL, RISKY, TEXT("protocols"), "the best", NULL, NULL, NULL, "protocols",
	  "LL128 corrupts data on machines that it is not made for" },
	{ "NCCL_BUFFSIZE", NCCL, RISKY, BYTES, "4194304", NULL, NULL, NULL,
	  "buffer of a channel, in bytes", "the job's own tuning" },
	{ "NCCL_MIN_CTAS", NCCL, RISKY, NUMBER(1, 64), "by the machine", NULL, NULL, NULL,
	  "fewest blocks on the GPU", "the job's own tuning" },
	{ "NCCL_MAX_CTAS", NCCL, RISKY, NUMBER(1, 64), "by the machine", NULL, NULL, NULL,
	  "most blocks on the GPU", "the job's own tuning" },
	{ "NCCL_MIN_NCHANNELS", NCCL, RISKY, NUMBER(1, 64), "by the machine", NULL, NULL, NULL,
	  "the old name of NCCL_MIN_CTAS", "the job's own tuning" },
	{ "NCCL_MAX_NCHANNELS", NCCL, RISKY, NUMBER(1, 64), "by the machine", NULL, NULL, NULL,
	  "the old name of NCCL_MAX_CTAS", "the job's own tuning" },
	{ "NCCL_IB_CUDA_SUPPORT", NCCL, POLICY_GONE, FLAG, NULL, NULL, "2.4.0", NULL,
	  "GPUDirect RDMA is used where it works", NULL },

	/* --- RCCL beside NCCL's own names --- */
	{ "RCCL_FORCE_ENABLE_GDRDMA", RCCL, RISKY, FLAG, "0", NULL, NULL, NULL,
	  "1: do not look for the peer-memory module", "without the module transfers fail" },
	{ "RCCL_FORCE_ENABLE_DMABUF", RCCL, RISKY, FLAG, "0", NULL, NULL, NULL,
	  "1: do not look at the kernel's configuration", "without kernel support transfers fail" },
	{ "RCCL_MSCCL_ENABLE", RCCL, FREE, FLAG, "by the release", NULL, NULL, NULL,
	  "0: without the algorithms of MSCCL", NULL },
	{ "HSA_NO_SCRATCH_RECLAIM", RCCL, FREE, FLAG, "0", NULL, NULL, NULL,
	  "1: the GPU keeps its scratch memory", NULL },
	{ "HSA_FORCE_FINE_GRAIN_PCIE", RCCL, RISKY, FLAG, "0", NULL, NULL, NULL,
	  "1: fine-grained GPU memory over PCIe too, which older ROCm needs for peer to peer",
	  "for all of the container's memory, not RCCL's alone" },

	/* --- UCX (§5) --- */
	{ "UCX_NET_DEVICES", UCX, FREE, ONE_NAME, "every device", NULL, NULL, NULL,
	  "interfaces for TCP beside the VFs, which railmate puts before them", NULL },
	{ "UCX_TLS", UCX, FREE, TEXT("transports: rc,cuda,sm"), "all", NULL, NULL, NULL,
	  "transports", "without cuda or rocm GPU memory is not understood" },
	{ "UCX_MAX_RNDV_RAILS", UCX, FREE, NUMBER(1, 16), "2", NULL, NULL, NULL,
	  "VFs that one large message uses", NULL },
	{ "UCX_MAX_RMA_RAILS", UCX, FREE, NUMBER(1, 16), "1", "1.14", NULL, NULL,
	  "VFs that one large put or get uses, as NIXL's", NULL },
	{ "UCX_SINGLE_NET_DEVICE", UCX, FREE, SWITCH, "n", "1.20", NULL, NULL,
	  "y: each GPU's traffic by one of its nearest VFs",
	  "before 1.22.1 that is the same one for GPUs of a switch" },
	{ "UCX_NODE_LOCAL_ID", UCX, FREE, NUMBER_OR(0, 1023, "auto"), "auto (the GPU's number)",
	  "1.20", NULL, NULL, "which one", "the same for all containers of the pool" },
	{ "UCX_IB_DIRECT_NIC", UCX, FREE, SWITCH, "y", "1.20", NULL, NULL,
	  "Data Direct of ConnectX-8 and later; n leaves it alone",
	  "with n, transfers with GPUs cross the CPU" },
	{ "UCX_IB_PCI_RELAXED_ORDERING", UCX, FREE, WORD("auto try yes no y n on off"),
	  "auto: by the CPU", NULL, NULL, NULL,
	  "PCIe's relaxed ordering; try in virtual machines, whose CPU is not told",
	  "yes fails where it is not there" },
	{ "UCX_IB_TRAFFIC_CLASS", UCX, FREE, NUMBER_OR(0, 255, "auto"),
	  "auto: the port's, else 106", NULL, NULL, NULL,
	  "traffic class; not NCCL's default, which is 0", "as NCCL_IB_TC" },
	{ "UCX_IB_SL", UCX, FREE, NUMBER_OR(0, 15, "auto"), "auto", NULL, NULL, NULL,
	  "service level", "as NCCL_IB_SL" },
	{ "UCX_IB_ROCE_REACHABILITY_MODE", UCX, FREE, WORD("route local_subnet all"), "route", NULL,
	  NULL, NULL, "which peers of a RoCE port count as reachable", NULL },
	{ "UCX_LOG_LEVEL", UCX, FREE, WORD("fatal error warn diag info debug trace"), "warn", NULL,
	  NULL, NULL, "what is logged", NULL },
	{ "UCX_PROTO_INFO", UCX, FREE,
	  PATTERN("^[]A-Za-z0-9_*?[-]+$",
		  "y, n, auto, used, or a pattern of operations: *tag*gpu*"),
	  "auto", NULL, NULL, NULL, "log the chosen protocols", NULL },
	{ "UCX_IB_GID_INDEX", UCX, RISKY, NUMBER_OR(0, 255, "auto"), "auto", NULL, NULL, NULL,
	  "place of the address in the table",
	  "auto tries each; a constant is wrong as soon as tables differ" },
	{ "UCX_IB_GPU_DIRECT_RDMA", UCX, RISKY, WORD("y n yes no on off try"), "try", NULL, NULL,
	  NULL, "GPUDirect RDMA", "yes fails where it does not work" },

	/* --- NVSHMEM --- */
	{ "NVSHMEM_IB_TRAFFIC_CLASS", NVSHMEM, FREE, NUMBER(0, 255), "0", NULL, NULL, NULL,
	  "traffic class", "as NCCL_IB_TC" },
	{ "NVSHMEM_IB_SL", NVSHMEM, FREE, NUMBER(0, 15), "0", NULL, NULL, NULL, "service level",
	  "as NCCL_IB_SL" },
	{ "NVSHMEM_BOOTSTRAP_UID_SOCK_IFNAME", NVSHMEM, FREE, INTERFACES, "the first one", NULL,
	  NULL, NULL, "the interface for the bootstrap", NULL },
	{ "NVSHMEM_IB_ENABLE_IBGDA", NVSHMEM, FREE, WORD("0 1 true false"), "0", NULL, NULL, NULL,
	  "the GPU rings the VF's doorbell",
	  "needs PeerMappingOverride of the driver, or a helper on the CPU" },
	{ "NVSHMEM_NETDEVS_POLICY", NVSHMEM, FREE,
	  WORD("AUTO EXTERNAL_SHARING_PCIE_SWITCH_NIC_EXCLUSIVE"), "AUTO", "3.7", NULL, NULL,
	  "which VF for which GPU: AUTO balances over the job's, the other one over all GPUs of the node",
	  NULL },
	{ "NVSHMEM_DISABLE_DATA_DIRECT", NVSHMEM, FREE, WORD("0 1 true false"), "0", "3.4.5", NULL,
	  NULL, "1: Data Direct is left alone", "with 1, transfers with GPUs cross the CPU" },
	{ "NVSHMEM_DEBUG", NVSHMEM, FREE, WORD("VERSION WARN INFO ABORT TRACE"), "silent", NULL,
	  NULL, NULL, "what is logged", NULL },
	{ "NVSHMEM_IB_GID_INDEX", NVSHMEM, RISKY, NUMBER(-1, 255), "-1", NULL, NULL, NULL,
	  "place of the address in the table",
	  "-1 finds it; a constant is wrong as soon as tables differ" },
	{ "NVSHMEM_IB_DISABLE_DMABUF", NVSHMEM, RISKY, WORD("0 1 true false"), "0", NULL, NULL,
	  NULL, "no dma-buf", "leaves nvidia_peermem alone to do it" },
	{ "NVSHMEM_ENABLE_NIC_PE_MAPPING", NVSHMEM, RISKY, WORD("0 1 true false"), "0", NULL, NULL,
	  NULL, "VFs by list, not by distance", "NVSHMEM's own choice is by distance already" },
	{ "NVSHMEM_HCA_LIST", NVSHMEM, RISKY, HCAS, "every device", NULL, NULL, NULL, "that list",
	  "names differ from container to container" },
	{ "NVSHMEM_HCA_PE_MAPPING", NVSHMEM, RISKY, TEXT("device:port:count"), "none", NULL, NULL,
	  NULL, "the same with numbers", "names differ from container to container" },

	/* --- GPUDirect Storage --- */
	{ "CUFILE_ENV_PATH_JSON", ANY, FREE, TEXT("a path"), "/etc/cufile.json", NULL, NULL, NULL,
	  "the file cuFile reads; with the key 'cufile' a container has /run/railmate/cufile.json",
	  "replaces the image's own" },

	/* --- MSCCL++ --- */
	{ "MSCCLPP_SOCKET_IFNAME", MSCCLPP, FREE, INTERFACES, "the first one", NULL, NULL, NULL,
	  "the interface for the bootstrap", NULL },
	{ "MSCCLPP_DEBUG", MSCCLPP, FREE, WORD("VERSION WARN INFO ABORT TRACE"), "silent", NULL,
	  NULL, NULL, "what is logged", NULL },

	/* --- libfabric, oneCCL --- */
	{ "FI_PROVIDER", OFI, FREE, TEXT("providers: verbs;ofi_rxm"), "the best", NULL, NULL, NULL,
	  "libfabric's providers", "belongs to the image" },
	{ "FI_VERBS_NIC_AFFINITY_POLICY", OFI, FREE, TEXT("a policy"), "none", NULL, NULL, NULL,
	  "order of the NICs by distance", NULL },
	{ "FI_VERBS_IFACE", OFI, FREE, ONE_NAME, "any", NULL, NULL, NULL,
	  "interfaces of the verbs devices, or what they begin with", "the CNI plugin names them" },
	{ "FI_TCP_IFACE", OFI, FREE, ONE_NAME, "any", NULL, NULL, NULL, "the interface for TCP",
	  NULL },
	{ "FI_VERBS_USE_DMABUF", OFI, RISKY, WORD("0 1 yes no true false on off"), "yes", NULL,
	  NULL, NULL, "dma-buf", "no is for tests" },
	{ "FI_LOG_LEVEL", OFI, FREE, WORD("warn trace info debug"), "silent", NULL, NULL, NULL,
	  "what is logged", NULL },
	{ "CCL_ATL_TRANSPORT", ONECCL, FREE, WORD("mpi ofi"), "mpi", NULL, NULL, NULL,
	  "oneCCL's transport", NULL },
	{ "CCL_MNIC_COUNT", ONECCL, FREE, NUMBER(1, 64), "as many as workers", NULL, NULL, NULL,
	  "most NICs to use", NULL },
	{ "CCL_WORKER_COUNT", ONECCL, FREE, NUMBER(1, 64), "1", NULL, NULL, NULL,
	  "threads of a process that communicate", "each takes a core" },
	{ "CCL_KVS_IFACE", ONECCL, FREE, ONE_NAME, "the first one", NULL, NULL, NULL,
	  "the interface for the bootstrap", NULL },
	{ "CCL_LOG_LEVEL", ONECCL, FREE, WORD("error warn info debug trace"), "warn", NULL, NULL,
	  NULL, "what is logged", NULL },
};

const size_t n_policy_vars = ARRAY_LEN(policy_vars);

/* Legal, and better not left in a pool. */
static const struct policy_var risky_values[] = {
	{ .name = "NCCL_DEBUG",
	  .legal = WORD("INFO TRACE"),
	  .risk = "is for finding out, not to stay: each process writes hundreds of lines, or one for each call" },
	{ .name = "NCCL_DEBUG_SUBSYS",
	  .legal = PATTERN("(^|,)ALL(,|$)", "ALL"),
	  .risk = "ALL is for finding out, not to stay: railmatectl verify wants INIT,NET,ENV" },
	{ .name = "NCCL_IB_TIMEOUT",
	  .legal = NUMBER(22, 31),
	  .risk = "waits 17 seconds or more for each of seven tries: a fault is hidden for minutes, and the default is 20" },
};

const char *policy_value_risk(const char *name, const char *value)
{
	for (size_t i = 0; i < ARRAY_LEN(risky_values); i++) {
		if (!strcmp(risky_values[i].name, name) && policy_accepts(&risky_values[i], value))
			return risky_values[i].risk;
	}
	return NULL;
}
