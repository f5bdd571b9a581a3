/* Logs written from the documented formats of NCCL 2.18 to 2.30 and RCCL, and what they prove. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/err.h"
#include "base/json.h"
#include "base/mem.h"
#include "base/str.h"
#include "verify/verify.h"

#define P   "p-0:1:20 [0] NCCL INFO "
#define W   "p-0:1:20 [0] net.cc:1 NCCL WARN "
#define NET P "Using network IB\n"
#define USE P "NET/IB : Using [0]mlx5_4:1/RoCE [1]mlx5_5:1/RoCE [RO]; OOB eth0:10.1.0.4<0>\n"
#define ONE P "comm 0x1 rank 0 nRanks 2 nNodes 2 localRanks 1 localRank 0 MNNVL 0"
#define TWO                                                                                        \
	ONE " q-0:1:20 [0] NCCL INFO Using network IB q-0:1:20 [0] NCCL INFO comm 0x1 rank 1 nRanks 2 nNodes 2 localRanks 1 localRank 0 MNNVL 0\n"
#define BUS	  P "comm 0x1 rank 0 nranks 2 cudaDev 0 nvmlDev 0 busId 1b000 commId 0x1 - Init START\n"
#define SEND	  P "Channel 00/0 : 0[0] -> 1[0] [send] via NET/IB/0/GDRDMA\n"
#define RECV	  P "Channel 00/0 : 1[0] -> 0[0] [receive] via NET/IB/0/GDRDMA\n"
#define MAP(list) "{\"version\": 1, \"new\": [], \"gpus\": [" list "]}"
#define OWN                                                                                        \
	"{\"gpu\": \"0000:1b:00.0\", \"vf\": \"0000:3b:00.2\", \"hca\": \"mlx5_4\", \"port\": 1, \"path\": \"PIX\", \"x\": 1}"
#define OWN5 "{\"gpu\": \"0000:1b:00.0\", \"hca\": \"mlx5_5\"}"

static void add_map(struct verify *v, const char *host, const char *map)
{
	struct err err = { 0 };

	if (verify_add_map(v, host, map, strlen(map), "map.json", &err) < 0)
		fail_msg("%s", err.msg);
}

static void feed(struct verify *v, const char *log, size_t len)
{
	verify_begin(v, "log");
	verify_feed(v, log, len);
	verify_end(v);
}

/* The text has to hold all of `words`, separated by '|'. */
static void assert_says(const struct verify *v, const char *words)
{
	_cleanup_strbuf_ struct strbuf out = STRBUF_INIT;
	_cleanup_free_ char *copy = xstrdup(words);
	char *save;

	verify_text(v, &out);
	for (char *word = strtok_r(copy, "|", &save); word; word = strtok_r(NULL, "|", &save)) {
		if (!strstr(strbuf_str(&out), word))
			fail_msg("'%s' is not in:\n%s", word, strbuf_str(&out));
	}
}

static void assert_verdict(const char *map, const char *log, enum verdict verdict,
			   const char *words)
{
	_cleanup_verify_ struct verify *v = verify_new();

	if (map)
		add_map(v, NULL, map);
	feed(v, log, strlen(log));
	assert_string_equal(verify_verdict_name(verify_judge(v)), verify_verdict_name(verdict));
	assert_says(v, words);
}

static void read_log(const char *name, struct strbuf *out)
{
	_cleanup_free_ char *path = xasprintf(TEST_DATA "/unit/verify/logs/%s.log", name);
	FILE *f = fopen(path, "re");
	char buf[4096];
	size_t n;

	assert_non_null(f);
	while ((n = fread(buf, 1, sizeof(buf), f)) > 0)
		strbuf_add(out, buf, n);
	fclose(f);
}

static const struct sample {
	const char *name;
	enum verdict verdict;
	const char *words;
} samples[] = {
	{ "nccl-2.18.1-busid", VERDICT_PASS,
	  "version 2.18.1+cuda12.1|n0 GPU 0 rank 0 0000:1b:00.0  mlx5_4:1  GDRDMA|4 ranks, 2 channels" },
	{ "nccl-2.18-pass", VERDICT_PASS,
	  "version 2.18.5+cuda12.2|node-a GPU 0 rank 0 0000:1b:00.0  mlx5_4:1  GDRDMA|4 with GDRDMA" },
	{ "nccl-2.19-pass", VERDICT_PASS,
	  "version 2.19.3+cuda12.3|ib-0 GPU 0 rank 0 0000:9d:00.0  mlx5_12:1" },
	{ "nccl-2.20-einval", VERDICT_FAIL,
	  "FAIL modify-qp-einval|Invalid argument errno 22|note gid-index-fixed" },
	{ "nccl-2.21-socket", VERDICT_FAIL,
	  "FAIL socket|FAIL no-device|log:5: Using network Socket" },
	{ "nccl-2.21-completion", VERDICT_FAIL, "FAIL completion-retry-exceeded" },
	{ "nccl-2.22-far", VERDICT_NOGDR,
	  "w-0 GPU 1 rank 1 0000:9d:00.0  mlx5_0:1  no GDR: too far: distance 8, limit 5|no GDR gdr-too-far|why      log:6: GPU Direct RDMA Disabled|w-0 GPU 0 rank 0  mlx5_0:1  GDRDMA" },
	{ "nccl-2.23-merged", VERDICT_WARN, "mlx5_0:1+mlx5_1:1  GDRDMA|WARN fused" },
	{ "nccl-2.24-etimedout", VERDICT_FAIL,
	  "FAIL modify-qp-etimedout\n|log:9: Call to ibv_modify_qp" },
	{ "nccl-2.25-gid-changed", VERDICT_WARN,
	  "WARN gid-table-changed|log:9: NET/IB : mlx5_4:1 GID table" },
	{ "nccl-2.26-nogdr", VERDICT_NOGDR,
	  "no GDR: no peermem, no dmabuf  (0 of 2 channels|no GDR gdr-unsupported" },
	{ "nccl-2.27-noplugin", VERDICT_FAIL, "FAIL no-net-plugin" },
	{ "nccl-2.27-onenode", VERDICT_INCONCLUSIVE, "INCONCLUSIVE one-node" },
	{ "nccl-2.28-fused", VERDICT_WARN, "mlx5_3+mlx5_5  GDRDMA  (2 of 2|WARN fused|ndevs=2" },
	{ "nccl-2.29-far", VERDICT_NOGDR,
	  "w-0 GPU 1 rank 3 0000:9d:00.0  mlx5_7:1  no GDR: too far: distance 9, limit 6  (0 of 2|why      log:8" },
	{ "nccl-2.30-etimedout", VERDICT_FAIL,
	  "FAIL modify-qp-etimedout\n|log:7: Call to ibv_modify_qp" },
	{ "nccl-2.30-completion", VERDICT_FAIL,
	  "FAIL completion-retry-exceeded|log:6: NET/IB: Got completion" },
	{ "nccl-2.30-ib-pass", VERDICT_PASS,
	  "ib-0 GPU 0 rank 0 0000:9d:00.0  mlx5_12:1,mlx5_20:1  GDRDMA" },
	{ "nccl-2.30-data-direct", VERDICT_PASS,
	  "gb-0 GPU 0 rank 0 0009:06:00.0  mlx5_4:1,mlx5_8:1  GDRDMA  (4 of 4" },
	{ "nccl-2.30-topology-xml", VERDICT_FAIL, "FAIL topology-xml|log:7: XML Parse error" },
	{ "nccl-2.30-notpci", VERDICT_WARN,
	  "WARN not-a-pci-device|WARN link-local-gid|no GDR gdr-misplaced" },
	{ "nccl-2.30-pass", VERDICT_PASS,
	  "p-0 GPU 1 rank 1 0000:2a:00.0  mlx5_5:1  GDRDMA|2 nodes, 4 ranks" },
	{ "rccl-2.21-pass", VERDICT_PASS,
	  "version 2.21.5-HEAD:0cbce2a|mi300-a GPU 3 rank 3  mlx5_1:1  GDRDMA  (2 of 2" },
	{ "rccl-2.18-pass", VERDICT_PASS,
	  "version 2.18.3+hip6.0|mi250-a GPU 0 rank 0  mlx5_0:1  GDRDMA  (2 of 2" },
	{ "rccl-2.22-merged", VERDICT_WARN,
	  "version 2.22.3-HEAD|bnxt_re0:1+bnxt_re1:1  GDRDMA|WARN fused" },
	{ "rccl-2.27-pass", VERDICT_PASS,
	  "version 2.27.7-HEAD|mi355-a GPU 0 rank 0  rdma0:1  GDRDMA  (2 of 2|note numa-balancing" },
	{ "rccl-2.21-nogdr", VERDICT_NOGDR, "no peermem, no dmabuf|memory_peers|note iommu" },
	{ "plugin-pass", VERDICT_PASS, "network AWS Libfabric|note plugin" },
	{ "plugin-ibext-nogdr", VERDICT_NOGDR,
	  "network IBext_v8|no GDR: no peermem, no dmabuf|why      log:5" },
};

static void every_log_of_the_corpus_has_its_verdict(void **state)
{
	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(samples); i++) {
		_cleanup_verify_ struct verify *v = verify_new();
		_cleanup_strbuf_ struct strbuf log = STRBUF_INIT;

		print_message("%s\n", samples[i].name);
		read_log(samples[i].name, &log);
		feed(v, strbuf_str(&log), log.len);
		assert_string_equal(verify_verdict_name(verify_judge(v)),
				    verify_verdict_name(samples[i].verdict));
		assert_says(v, samples[i].words);
	}
}

static void pieces_of_any_size_give_the_same_answer(void **state)
{
	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(samples); i++) {
		_cleanup_strbuf_ struct strbuf log = STRBUF_INIT, whole = STRBUF_INIT;

		read_log(samples[i].name, &log);
		for (size_t step = 1; step <= 4096; step = step < 8 ? step + 1 : step * 3) {
			_cleanup_verify_ struct verify *v = verify_new();
			_cleanup_strbuf_ struct strbuf out = STRBUF_INIT;

			verify_begin(v, "log");
			for (size_t at = 0; at < log.len; at += step)
				verify_feed(v, log.s + at,
					    log.len - at < step ? log.len - at : step);
			verify_end(v);
			verify_judge(v);
			verify_text(v, &out);
			if (!whole.len)
				strbuf_puts(&whole, strbuf_str(&out));
			assert_string_equal(strbuf_str(&out), strbuf_str(&whole));
		}
	}
}

/* A line that is cut must not be read as a channel without GDR, nor a cut word as its value. */
static void a_log_cut_anywhere_never_says_no_gdr(void **state)
{
	static const char log[] = NET USE TWO RECV SEND;

	(void)state;
	for (size_t len = 0; len < sizeof(log); len++) {
		_cleanup_verify_ struct verify *v = verify_new();
		enum verdict verdict;

		feed(v, log, len);
		verdict = verify_judge(v);
		assert_true(verdict == VERDICT_PASS || verdict == VERDICT_INCONCLUSIVE);
	}
}

static void every_prefix_leads_to_host_process_and_device(void **state)
{
	static const char *const prefixes[] = {
		"",
		"[1,0]<stdout>:",
		"[rank0]:",
		"[default3]:",
		"3: ",
		"2026-11-20T10:00:01.123Z ",
		"2026-11-20T10:00:01.123456789Z stdout F ",
		"[pod/train-0/main] ",
		"train-0 main ",
		"main  | ",
		"[2026-11-20 10:00:01] ",
		"\033[32m",
		"(RayWorker pid=8) ",
		"[1,0]<stderr>:[2026-11-20 10:00:01] ",
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(prefixes); i++) {
		const char *prefix = prefixes[i];
		_cleanup_free_ char *log =
			xasprintf("%s%s%s%s%s%s", prefix, NET, prefix, TWO, prefix, SEND);

		assert_verdict(NULL, log, VERDICT_PASS, "p-0 GPU 0 rank 0  #0  GDRDMA");
	}
}

static void every_form_of_the_version_is_understood(void **state)
{
	static const char *const forms[][2] = {
		{ "NCCL version 2.18.5+cuda12.2", "version 2.18.5+cuda12.2," },
		{ "NCCL version 2.30.7+cuda13.1 (git abc)", "version 2.30.7+cuda13.1," },
		{ "RCCL version 2.18.3+hip6.0 HEAD:2f6d59e+", "version 2.18.3+hip6.0," },
		{ "RCCL version : 2.21.5-HEAD:0cbce2a", "version 2.21.5-HEAD:0cbce2a," },
		{ P "RCCL version : 2.26.6-HEAD:f224e2c", "version 2.26.6-HEAD:f224e2c," },
		{ "RCCL version 2.30.4 compiled with ROCm \"10.0.0\"", "version 2.30.4," },
		{ "the NCCL version is unknown", "version unknown," },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(forms); i++) {
		_cleanup_free_ char *log = xasprintf("%s\n%s", forms[i][0], NET TWO SEND);

		assert_verdict(NULL, log, VERDICT_PASS, forms[i][1]);
	}
}

static void two_records_in_one_line_are_two(void **state)
{
	(void)state;
	assert_verdict(NULL, TWO P "Using network IB " SEND, VERDICT_PASS, "p-0 GPU 0 rank 0");
	assert_verdict(
		NULL,
		NET P
		"Channel 00/0 : 0[0] -> 1[0] [send] via NET/IB/0/GDRDMA q:1:1 [0] NCCL INFO Channel 01/0 : 1[0] -> 0[0] [send] via NET/IB/0\n",
		VERDICT_NOGDR, "p-0 GPU 0 rank 0  #0  GDRDMA|q GPU 0 rank 1  #0  no GDR");
}

/* Two processes write into one line; colours, CR LF, and the end of the file in the middle of a
 * channel. */
static void what_is_glued_or_cut_is_left_out(void **state)
{
	(void)state;
	assert_verdict(
		NULL,
		P "Using network IB\033[0m\r\n" SEND TWO P
		  "Channel 00/0 : 0[0] -> 1[0] [send] via NET/IB/0" P
		  "Channel 01/0 : 2[1] -> 1[1] [receive] via NET/IB/0/GDRDMA\n" P
		  "Channel 00/0 : 0[0] -> 1[0] [send] via NET/IB/0",
		VERDICT_PASS,
		"network IB,|2 channels between nodes, 2 with GDRDMA|(1 of 1 channels, log:2)|note damaged-lines");
}

static const struct failure {
	const char *line, *id;
} failures[] = {
	{ W "Call to ibv_modify_qp failed with 22 Invalid argument, on dev mlx5_4:1",
	  "FAIL modify-qp-einval" },
	{ W "Call to ibv_modify_qp failed with 19 No such device, on dev mlx5_4:1",
	  "FAIL modify-qp-enodev" },
	{ W "Call to ibv_modify_qp failed with 101 Network is unreachable, on dev mlx5_4:1",
	  "FAIL modify-qp-enetunreach" },
	{ W "Call to ibv_modify_qp failed with 110 Connection timed out, on dev mlx5_4:1",
	  "FAIL modify-qp-etimedout" },
	{ W "Call to ibv_modify_qp failed with error No such device errno 19",
	  "FAIL modify-qp-enodev" },
	{ W "Call to ibv_modify_qp failed with 5 Input/output error, on dev mlx5_4:1",
	  "FAIL modify-qp\n" },
	{ W
	  "NET/IB: Got completion from peer 10.0.0.2<1> with status=IBV_WC_RETRY_EXC_ERR(12) opcode=IBV_WC_SEND(0) vendor_err=129 hca mlx5_4",
	  "FAIL completion-retry-exceeded" },
	{ W
	  "NET/IB: Got completion from peer 10.0.0.2<1> with status=5 opcode=129 len=0 vendor err 244 (Send) hca mlx5_0",
	  "FAIL completion-flushed" },
	{ W "NET/IB: Got completion from peer 10.0.0.2<1> with status=13 opcode=0",
	  "FAIL completion-rnr" },
	{ W "NET/IB: Got completion from peer 10.0.0.2<1> with status=4 opcode=0",
	  "FAIL completion-protection" },
	{ W
	  "NET/IB : Got completion from peer 10.0.0.2<1> with error 12, opcode 0, len 0, vendor err 129 (Recv)",
	  "FAIL completion-retry-exceeded" },
	{ W
	  "NET/IB : Got completion from peer 10.0.0.2<1> with error 13, opcode 1, len 0, vendor err 135",
	  "FAIL completion-rnr" },
	{ W "NET/IB : Got completion with error 5, opcode 0, len 0, vendor err 249",
	  "FAIL completion-flushed" },
	{ W "NET/IB : Got completion with error", "FAIL completion-error" },
	{ W "NET/IB : Got completion from peer 10.0.0.2<1>", "FAIL completion-error" },
	{ W "NET/IB : mlx5_4:1 async fatal event: device fatal", "FAIL async-fatal" },
	{ W "NET/IB : mlx5_4:1 Got non-fatal async event: port error(10)", "FAIL port-down" },
	{ W "NET/IB : No IP interface found.", "FAIL no-ip-interface" },
	{ W "Bootstrap : no socket interface found", "FAIL no-socket-interface" },
	{ W "XML Parse error : expected <, got x", "FAIL topology-xml" },
	{ W "Call to ibv_reg_mr failed with error Cannot allocate memory", "FAIL register-memory" },
	{ W "Call to ibv_create_qp failed with error Cannot allocate memory", "FAIL create-qp" },
	{ W "NET/IB: read failed in ncclIbRoceGetVersionNum: Invalid argument",
	  "FAIL roce-version" },
	{ P "NET/IB : No device found.", "FAIL no-device" },
	{ P "Channel 00/0 : 0[0] -> 1[0] [send] via NET/Socket/0", "FAIL socket" },
};

static void every_failure_has_its_cause_and_fix(void **state)
{
	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(failures); i++) {
		_cleanup_free_ char *log = xasprintf("%s%s\n", NET USE TWO SEND, failures[i].line);
		_cleanup_free_ char *words =
			xasprintf("%s|proof: log:5: |cause: |fix: ", failures[i].id);

		assert_verdict(NULL, log, VERDICT_FAIL, words);
	}
}

static const struct failure warnings[] = {
	{ W "NET/IB : mlx5_4:1 GID table changed", "WARN gid-table-changed" },
	{ W "NET/IB : mlx5_4:1 Got non-fatal async event: client reregistration event(17)",
	  "WARN async-event" },
	{ W "Could not find real path of /sys/class/infiniband/mlx5_4/device", "WARN no-pci-path" },
	{ P
	  "Topology detection: network path /sys/devices/pci0000:15/0000:1c:00.0 is not a PCI device (0000:1c:00.0). Attaching to first CPU",
	  "WARN not-a-pci-device" },
	{ P "Could not open XML topology file /etc/t.xml : No such file or directory",
	  "WARN no-topology-file" },
};

#define PLAIN(net) P "Channel 00/0 : 0[0] -> 1[0] [send] via NET/" net "/0\n"
#define USING(net) P "Using network " net "\n"

static void a_plugin_proves_rdma_or_does_not(void **state)
{
	static const struct {
		const char *log;
		enum verdict verdict;
		const char *words;
	} rows[] = {
		{ USING("FastSocket") TWO PLAIN("FastSocket"), VERDICT_FAIL,
		  "FAIL tcp-plugin|network FastSocket" },
		{ P "Assigned NET plugin FastSocket to comm\n" TWO, VERDICT_FAIL,
		  "FAIL tcp-plugin" },
		{ TWO PLAIN("FastSocket"), VERDICT_FAIL, "FAIL tcp-plugin" },
		{ USING("GPUDirectTCPX_v7") TWO PLAIN("GPUDirectTCPX_v7"), VERDICT_FAIL,
		  "FAIL tcp-plugin" },
		{ P "NET/OFI Selected Provider is tcp;ofi_rxm\n" USING("AWS Libfabric")
			  TWO PLAIN("AWS Libfabric"),
		  VERDICT_FAIL, "FAIL tcp-plugin|log:1: NET/OFI Selected" },
		{ P "NET/OFI Selected provider is tcp, fabric is 10.0.0.0/24 (found 1 nics)\n" TWO,
		  VERDICT_FAIL, "FAIL tcp-plugin" },
		{ USING("AWS Libfabric") TWO PLAIN("AWS Libfabric"), VERDICT_WARN,
		  "WARN plugin-unproven|note plugin" },
		{ USING("Fancy") TWO PLAIN("Fancy"), VERDICT_WARN, "WARN plugin-unproven" },
		{ P "NET/OFI Selected Provider is efa (found 4 nics)\n" USING("AWS Libfabric")
			  TWO PLAIN("AWS Libfabric"),
		  VERDICT_NOGDR, "no GDR gdr-off" },
		{ USING("Fancy") TWO P
		  "Channel 00/0 : 0[0] -> 1[0] [send] via NET/Fancy/0/GDRDMA\n",
		  VERDICT_PASS, "note plugin" },
		{ USING("IBext_v8") TWO PLAIN("IBext_v8"), VERDICT_NOGDR, "no GDR gdr-off" },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(rows); i++)
		assert_verdict(NULL, rows[i].log, rows[i].verdict, rows[i].words);
}

static void what_may_break_is_a_warning(void **state)
{
	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(warnings); i++) {
		_cleanup_free_ char *log = xasprintf("%s%s\n", NET USE TWO SEND, warnings[i].line);

		assert_verdict(NULL, log, VERDICT_WARN, warnings[i].id);
	}
}

/* A line more in a good log: what is said of it, and whether the log is good still. */
static void what_else_a_log_tells_is_said(void **state)
{
	static const char map[] =
		MAP("{\"hca\": \"mlx5_4\", \"netdev\": \"net1\"}, {\"hca\": \"mlx5_5\"}");
	static const struct {
		const char *line, *words;
		enum verdict verdict;
	} rows[] = {
		{ P "GDRCOPY enabled library 2.3 driver 2.3", "GDRCopy  log:5: GDRCOPY enabled",
		  VERDICT_PASS },
		{ P "Channel 00/0 : 0[0] -> 2[2] via P2P/CUMEM", "inside   log:5: Channel 00/0",
		  VERDICT_PASS },
		{ P
		  " Pattern 4, crossNic 0, nChannels 16, bw 45.000000/45.000000, type NVL/PIX, sameChannels 1",
		  "inside   log:5:  Pattern 4", VERDICT_PASS },
		{ P "Channel 00 : 0[0] -> 2[2] via SHM/direct/direct",
		  "note shared-memory|log:5: Channel", VERDICT_PASS },
		{ P "Bootstrap : Using net1:10.56.0.4<0>",
		  "note bootstrap-on-a-rail|log:5: Bootstrap", VERDICT_PASS },
		{ P "Bootstrap: Using net1:10.56.0.4<0>", "note bootstrap-on-a-rail",
		  VERDICT_PASS },
		{ P "NET/IB : Using [0]mlx5_4:1/RoCE [1]mlx5_5:1/RoCE [RO]; OOB net1:10.56.0.4<0>",
		  "note bootstrap-on-a-rail", VERDICT_PASS },
		{ W "Cuda failure 700 'an illegal memory access was encountered'",
		  "FAIL cuda-failure|proof: log:5: Cuda failure 700", VERDICT_FAIL },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		_cleanup_free_ char *log = xasprintf("%s%s\n", NET USE TWO SEND, rows[i].line);
		_cleanup_verify_ struct verify *v = verify_new();

		add_map(v, NULL, map);
		feed(v, log, strlen(log));
		verify_judge(v);
		assert_says(v, rows[i].words);
		assert_verdict(NULL, log, rows[i].verdict, "verdict: ");
	}
}

static void an_interface_is_known_by_its_whole_name(void **state)
{
	static const char log[] = NET USE TWO SEND P "Bootstrap: Using net10:10.56.0.4<0>\n";
	_cleanup_verify_ struct verify *v = verify_new();
	_cleanup_strbuf_ struct strbuf out = STRBUF_INIT;

	(void)state;
	add_map(v, NULL, MAP("{\"hca\": \"mlx5_4\", \"netdev\": \"net1\"}"));
	feed(v, log, strlen(log));
	verify_judge(v);
	verify_text(v, &out);
	assert_null(strstr(strbuf_str(&out), "bootstrap"));
}

static void every_warning_of_nccl_has_a_line(void **state)
{
	_cleanup_strbuf_ struct strbuf log = STRBUF_INIT;

	(void)state;
	strbuf_puts(&log, NET USE TWO SEND);
	for (int i = 0; i < 40; i++)
		strbuf_printf(&log, W "something odd number %d\n", i % 20);
	assert_verdict(
		NULL, strbuf_str(&log), VERDICT_WARN,
		"nccl-warn: NCCL wrote warnings that are not in this catalogue (40 times)|log:5: something odd number 0|log:6: something odd number 1 (2 times)|number 7 (2 times)");
}

static void a_retry_that_succeeds_is_no_failure(void **state)
{
	(void)state;
	assert_verdict(
		NULL,
		NET TWO P
		"Call to ibv_modify_qp failed with 110 Connection timed out, on dev mlx5_4:1, retrying 1/34 after 100 msec of sleep\n" SEND,
		VERDICT_PASS, "verdict: PASS");
}

static void one_node_counts_only_when_it_has_to_loop(void **state)
{
	static const char one[] =
		NET P "comm 0x1 rank 0 nRanks 2 nNodes 1 localRanks 2 localRank 0 MNNVL 0\n" P
		      "comm 0x2 rank 1 nRanks 2 nNodes 1 localRanks 2 localRank 1 MNNVL 0\n" SEND;
	_cleanup_free_ char *loop = xasprintf("%s%s",
					      P "NCCL_P2P_DISABLE set by environment to 1.\n" P
						"NCCL_SHM_DISABLE set by environment to 1.\n",
					      one);

	(void)state;
	assert_verdict(NULL, one, VERDICT_INCONCLUSIVE, "INCONCLUSIVE one-node");
	assert_verdict(NULL, loop, VERDICT_PASS, "note one-node-loop");
}

/* Channels of one host in a log that lacks INIT: they may be of one node that has to loop. */
static void a_log_that_tells_no_number_of_nodes_has_to_show_two_hosts(void **state)
{
	static const char other[] =
		"p-1:1:20 [0] NCCL INFO Channel 00/0 : 0[0] -> 1[0] [receive] via NET/IB/0/GDRDMA\n";
	static const char *const silent[] = { "NCCL version 2.18.5+cuda12.2\n",
					      "NCCL version 2.20.5+cuda12.4\n" };
	static const char *const telling[] = { "NCCL version 2.21.5+cuda12.4\n",
					       "NCCL version 2.30.7+cuda13.1\n",
					       "NCCL version 3.0.0\n", "" };

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(telling); i++) {
		_cleanup_free_ char *one = xasprintf("%s%s", telling[i], NET USE SEND);
		_cleanup_free_ char *two = xasprintf("%s%s", one, other);

		assert_verdict(NULL, one, VERDICT_INCONCLUSIVE, "INCONCLUSIVE nodes-untold");
		assert_verdict(NULL, two, VERDICT_PASS, "2 channels between nodes");
	}
	for (size_t i = 0; i < ARRAY_LEN(silent); i++) {
		_cleanup_free_ char *one = xasprintf("%s%s", silent[i], NET USE SEND);

		assert_verdict(NULL, one, VERDICT_INCONCLUSIVE,
			       "ranks-unseen|1 channels between nodes");
	}
}

static void an_index_that_railmate_set_is_no_fixed_one(void **state)
{
	static const char log[] = P "NCCL_IB_GID_INDEX set by environment to 3.\n" NET USE TWO SEND;
	static const struct {
		const char *map;
		bool noted;
	} cases[] = {
		{ NULL, true },
		{ MAP("{\"hca\": \"mlx5_4\", \"gid\": {\"index\": 3}}"), false },
		{ MAP("{\"hca\": \"mlx5_4\", \"gid\": {\"index\": 5}}"), true },
		{ MAP("{\"hca\": \"mlx5_4\", \"gid\": {\"index\": 3}}, {\"hca\": \"mlx5_5\", \"gid\": null}"),
		  true },
		{ MAP(""), true },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		_cleanup_verify_ struct verify *v = verify_new();
		_cleanup_strbuf_ struct strbuf out = STRBUF_INIT;

		if (cases[i].map)
			add_map(v, NULL, cases[i].map);
		feed(v, log, strlen(log));
		verify_judge(v);
		verify_text(v, &out);
		assert_int_equal(!!strstr(strbuf_str(&out), "note gid-index-fixed"),
				 cases[i].noted);
	}
}

static void what_the_other_ranks_used_decides_too(void **state)
{
#define COMM(host, rank, n, nodes)                                                                 \
	host ":1:20 [0] NCCL INFO comm 0x1 rank " rank " nRanks " n " nNodes " nodes               \
	     " localRanks 1 localRank 0\n"
	static const struct {
		const char *log, *words;
		enum verdict verdict;
	} rows[] = {
		{ NET USE ONE "\n" SEND, "INCONCLUSIVE ranks-unseen|1 of 2 ranks, 1 of 2 nodes",
		  VERDICT_INCONCLUSIVE },
		{ NET USE TWO SEND, "2 nodes, 2 ranks,", VERDICT_PASS },
		/* Again the same rank is no other one, and a smaller communicator tells nothing. */
		{ NET USE ONE "\n" ONE "\n" COMM("q-0", "1", "1", "1") SEND, "1 of 2 ranks",
		  VERDICT_INCONCLUSIVE },
		{ NET USE COMM("q-0", "1", "2", "2") COMM("p-0", "0", "16", "2") SEND,
		  "1 of 16 ranks, 2 of 2 nodes", VERDICT_INCONCLUSIVE },
		/* Before 2.21, with the subsystem NET only: the channel names a rank that wrote
		   nothing. */
		{ "NCCL version 2.18.5+cuda12.2\n" NET USE SEND, "1 of 2 ranks",
		  VERDICT_INCONCLUSIVE },
		{ "NCCL version 2.18.5+cuda12.2\n" NET USE SEND
		  "q-0:1:2 [0] NCCL INFO Channel 00/0 : 0[0] -> 1[0] [receive] via NET/IB/0/GDRDMA\n",
		  "verdict: PASS", VERDICT_PASS },
		/* What is found wrong is wrong without the others. */
		{ NET USE ONE "\n" PLAIN("IB"), "verdict: PASS-noGDR|INCONCLUSIVE ranks-unseen",
		  VERDICT_NOGDR },
		{ NET USE ONE "\n" SEND W "Call to ibv_create_qp failed\n", "verdict: FAIL",
		  VERDICT_FAIL },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(rows); i++)
		assert_verdict(NULL, rows[i].log, rows[i].verdict, rows[i].words);
}

static void nothing_of_nccl_is_inconclusive(void **state)
{
	(void)state;
	assert_verdict(NULL, "", VERDICT_INCONCLUSIVE, "no-nccl-lines");
	assert_verdict(NULL, "loss 0.3\nNCCL\nNCCL INF", VERDICT_INCONCLUSIVE, "no-nccl-lines");
	assert_verdict(NULL, NET USE TWO, VERDICT_INCONCLUSIVE, "no-channels");
}

static void sends_without_gdr_are_told_apart(void **state)
{
	(void)state;
	assert_verdict(NULL,
		       NET USE TWO RECV P "NCCL_NET_GDR_READ set by environment to 0.\n" P
					  "Channel 00/0 : 0[0] -> 1[0] [send] via NET/IB/0\n",
		       VERDICT_NOGDR,
		       "GDRDMA in part: sends only: NCCL_NET_GDR_READ=0|gdr-sends-off");
	assert_verdict(NULL,
		       NET USE TWO P "NCCL_NET_GDR_LEVEL set by environment to LOC\n" P
				     "Channel 00/0 : 0[0] -> 1[0] [send] via NET/IB/0\n",
		       VERDICT_NOGDR, "no GDR: NCCL_NET_GDR_LEVEL=LOC|gdr-off-by-variable");
	assert_verdict(NULL, NET USE TWO P "Channel 00/0 : 0[0] -> 1[0] [send] via NET/IB/0\n",
		       VERDICT_NOGDR, "the log does not say why");
}

/* --- maps --- */

static void the_map_is_what_was_allocated(void **state)
{
	static const char log[] = NET USE BUS TWO SEND;

	(void)state;
	assert_verdict(MAP(OWN "," OWN5),
		       NET USE BUS TWO SEND P
		       "Channel 01/0 : 0[0] -> 1[0] [send] via NET/IB/1/GDRDMA\n",
		       VERDICT_PASS, "verdict: PASS");
	assert_verdict(MAP(OWN "," OWN5), log, VERDICT_WARN, "WARN hca-unused|process 1: mlx5_5:1");
	assert_verdict(MAP(OWN), log, VERDICT_WARN, "WARN hca-foreign|mlx5_5:1");
	assert_verdict(MAP(OWN ",{\"vf\": \"0000:3b:00.3\", \"hca\": null, \"port\": null}"), log,
		       VERDICT_WARN, "WARN hca-foreign|mlx5_5:1");
	assert_verdict(MAP(OWN "," OWN5 ",{\"hca\": \"mlx5_9\", \"port\": 1, \"gpu\": null}"), log,
		       VERDICT_WARN, "WARN hca-missing|mlx5_9:1");
}

static void ranks_that_are_not_in_the_log_may_use_the_rest(void **state)
{
	(void)state;
	assert_verdict(MAP(OWN "," OWN5),
		       NET USE BUS P
		       "comm 0x1 rank 0 nRanks 4 nNodes 2 localRanks 2 localRank 0 MNNVL 0\n" SEND,
		       VERDICT_INCONCLUSIVE, "ranks-unseen|1 of 4 ranks");
}

static void a_gpu_that_uses_another_ones_hca_is_a_warning(void **state)
{
	static const char map[] = MAP(
		"{\"gpu\": \"0000:1b:00.0\", \"hca\": \"mlx5_5\"},{\"gpu\": \"0000:9d:00.0\", \"hca\": \"mlx5_4\"}");

	(void)state;
	assert_verdict(map, NET USE BUS TWO SEND, VERDICT_WARN,
		       "WARN hca-of-another-gpu|p-0 GPU 0000:1b:00.0: mlx5_5:1 is its own");
	assert_verdict(map,
		       NET USE BUS P
		       "comm 0x1 rank 0 nRanks 4 nNodes 2 localRanks 2 localRank 0 MNNVL 0\n" P
		       "Channel 00/0 : 0[0] -> 1[0] [send] via NET/IB/0(1)/GDRDMA\n",
		       VERDICT_INCONCLUSIVE, "1 of 4 ranks");
}

#define GID(dev, index)                                                                            \
	P "NET/IB: NCCL Dev 0 IbDev " dev                                                          \
	  " Port 1 qpn 412 mtu 5 query_ece={supported=0} GID " index                               \
	  " (0/102000AFFFF0000) fifoRkey=0x1 fifoLkey=0x1\n"
#define WITH_GID(gid)                                                                              \
	MAP("{\"hca\": \"mlx5_4\", \"gid\": " gid "}, {\"hca\": \"mlx5_5\", \"gid\": null}")

static void another_gid_than_the_maps_is_a_warning(void **state)
{
	static const char map[] = WITH_GID("{\"index\": 3, \"address\": \"10.0.0.1\"}");
	static const char rest[] =
		P "comm 0x1 rank 0 nRanks 4 nNodes 2 localRanks 2 localRank 0 MNNVL 0\n" SEND;
	_cleanup_free_ char *same =
		xasprintf("%s%s", NET USE GID("0", "3") GID("1", "7") GID("9", "1"), rest);
	_cleanup_free_ char *other = xasprintf("%s%s", NET USE GID("0", "1"), rest);
	_cleanup_free_ char *fused = xasprintf(
		"%s%s",
		NET P
		"NET/IB : Using [0]={[0] mlx5_4:1/RoCE, [1] mlx5_5:1/RoCE} [RO]; OOB e:1<0>\n" GID(
			"0", "1"),
		rest);

	(void)state;
	assert_verdict(map, same, VERDICT_INCONCLUSIVE, "1 of 4 ranks");
	assert_verdict(map, other, VERDICT_WARN,
		       "WARN gid-not-of-map|log:3: NET/IB: NCCL Dev 0|cause: The pod");
	assert_verdict(map, fused, VERDICT_WARN, "WARN fused");
	assert_verdict(WITH_GID("null"), other, VERDICT_INCONCLUSIVE, "1 of 4 ranks");
}

static void a_data_direct_function_is_its_hca(void **state)
{
	(void)state;
	assert_verdict(
		MAP(OWN "," OWN5),
		NET P
		"NET/IB : Using [0]mlx5_4_dma:1/RoCE [1]mlx5_5_dma:1/RoCE [RO]; OOB eth0:10.1.0.4<0>\n" BUS
			TWO SEND P "Channel 01/0 : 0[0] -> 1[0] [send] via NET/IB/1/GDRDMA\n",
		VERDICT_PASS, "mlx5_4:1,mlx5_5:1  GDRDMA");
	assert_verdict(
		MAP(OWN "," OWN5),
		NET P
		"NET/IB : Using [0]mlx5_4_dma:1/IB [1]mlx5_5_dma:1/IB ; OOB eth0:10.1.0.4<0>\n" P
		"NET/IB : Made virtual device [2] name=mlx5_4_dma+mlx5_5_dma speed=800000 ndevs=2\n" BUS
			TWO P "Channel 00/0 : 0[0] -> 1[0] [send] via NET/IB/2/GDRDMA\n",
		VERDICT_WARN, "mlx5_4+mlx5_5  GDRDMA|WARN fused");
}

/* NCCL_IB_DATA_DIRECT=2: each HCA is there twice, and traffic over either is the HCA's. */
static void an_hca_beside_its_data_direct_function_is_one(void **state)
{
	static const struct {
		const char *channels, *words;
		enum verdict verdict;
	} rows[] = {
		{ SEND P "Channel 01/0 : 0[0] -> 1[0] [send] via NET/IB/2/GDRDMA\n",
		  "mlx5_4:1,mlx5_5:1  GDRDMA", VERDICT_PASS },
		{ P "Channel 00/0 : 0[0] -> 1[0] [send] via NET/IB/1/GDRDMA(PCI)\n" P
		    "Channel 01/0 : 0[0] -> 1[0] [send] via NET/IB/3/GDRDMA(PCI)\n",
		  "mlx5_4:1,mlx5_5:1  GDRDMA", VERDICT_PASS },
		{ SEND P "Channel 01/0 : 0[0] -> 1[0] [send] via NET/IB/1/GDRDMA\n",
		  "WARN hca-unused", VERDICT_WARN },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		_cleanup_free_ char *log = xasprintf(
			NET P
			"NET/IB : Using [0]mlx5_4:1/IB [1]mlx5_4_dma:1/IB [2]mlx5_5:1/IB [3]mlx5_5_dma:1/IB [RO]; OOB eth0:10.1.0.4<0>\n" BUS
				TWO "%s",
			rows[i].channels);

		assert_verdict(MAP(OWN "," OWN5), log, rows[i].verdict, rows[i].words);
	}
}

/* As tutorials print it: without host and process, direction and out-of-band interface. */
static void lines_of_a_tutorial_are_read(void **state)
{
	static const char rdma[] = "NCCL INFO NET/IB : Using [0]mlx5_0:1/IB [1]mlx5_1:1/IB\n"
				   "NCCL INFO NET/IB : GPU Direct RDMA Enabled for HCA 0 : mlx5_0\n"
				   "NCCL INFO Channel 00 : 0[0] -> 1[1] via NET/IB/0/GDRDMA\n"
				   "NCCL INFO Channel 01 : 0[0] -> 1[1] via NET/IB/1/GDRDMA\n";
	static const char tcp[] = "NCCL INFO NET/Socket : Using [0]eth0:10.0.0.5<0>\n"
				  "NCCL INFO Channel 00 : 0[0] -> 1[1] via NET/Socket/0\n";
	static const char plain[] =
		"NCCL INFO NET/IB : Using [0]mlx5_0:1/IB\n"
		"NCCL INFO NET/IB : GPU Direct RDMA Disabled for HCA 0 : mlx5_0\n"
		"NCCL INFO Channel 00 : 0[0] -> 1[1] via NET/IB/0\n";
	/* of another HCA */
	static const char unsaid[] =
		"NCCL INFO NET/IB : GPU Direct RDMA Disabled for HCA 1 : mlx5_1\n"
		"NCCL INFO Channel 00 : 0[0] -> 1[1] via NET/IB/0\n";
	static const char inside[] = "NCCL INFO Channel 00 : 0[0] -> 1[1] via P2P/IPC/read\n"
				     "NCCL INFO Channel 01 : 0[0] -> 1[1] via SHM\n";
	static const struct {
		const char *log, *words;
		enum verdict verdict;
	} rows[] = {
		{ rdma, "HCAs     log:1: NET/IB : Using|2 channels between nodes, 2 with GDRDMA",
		  VERDICT_INCONCLUSIVE },
		{ tcp, "FAIL socket|log:2: Channel 00", VERDICT_FAIL },
		{ plain,
		  "1 channels between nodes, 0 with GDRDMA|no GDR gdr-unsupported|why      log:2: NET/IB : GPU Direct RDMA Disabled",
		  VERDICT_INCONCLUSIVE },
		{ unsaid, "1 channels between nodes, 0 with GDRDMA|no GDR gdr-off",
		  VERDICT_INCONCLUSIVE },
		{ inside, "INCONCLUSIVE no-channels", VERDICT_INCONCLUSIVE },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		_cleanup_verify_ struct verify *v = verify_new();
		_cleanup_strbuf_ struct strbuf out = STRBUF_INIT;

		feed(v, rows[i].log, strlen(rows[i].log));
		assert_int_equal(verify_judge(v), rows[i].verdict);
		assert_says(v, rows[i].words);
		verify_text(v, &out);
		assert_null(strstr(strbuf_str(&out), "damaged"));
	}
}

static void the_maps_path_class_tells_why_not(void **state)
{
	(void)state;
	assert_verdict(
		MAP("{\"gpu\": \"0000:1b:00.0\", \"hca\": \"mlx5_4\", \"path\": \"SYS\"}," OWN5),
		NET USE BUS TWO P "Channel 00/0 : 0[0] -> 1[0] [send] via NET/IB/0\n", VERDICT_WARN,
		"no GDR gdr-off");
	assert_verdict(MAP("{\"gpu\": \"0000:1b:00.0\", \"hca\": \"mlx5_4\", \"path\": \"SYS\"}"),
		       NET P
		       "NET/IB : Using [0]mlx5_4:1/RoCE [RO]; OOB eth0:10.1.0.4<0>\n" BUS TWO P
		       "Channel 00/0 : 0[0] -> 1[0] [send] via NET/IB/0\n",
		       VERDICT_NOGDR, "too far by the map|gdr-path");
}

static void a_map_of_a_host_is_for_that_host_only(void **state)
{
	_cleanup_verify_ struct verify *v = verify_new();
	static const char log[] = NET USE TWO SEND;
	const char *gpu, *vf;

	(void)state;
	add_map(v, "q", MAP(OWN));
	feed(v, log, strlen(log));
	assert_int_equal(verify_judge(v), VERDICT_PASS);
	assert_true(verify_mapped(v, "mlx5_4", 1, &gpu, &vf));
	assert_string_equal(vf, "0000:3b:00.2");
	assert_false(verify_mapped(v, "mlx5_4", 2, &gpu, &vf));
}

static void an_exact_list_in_the_log_stands_for_the_map(void **state)
{
	(void)state;
	assert_verdict(NULL, P "NCCL_IB_HCA set to =mlx5_4:1,mlx5_7:1,mlx5_5\n" NET USE TWO SEND,
		       VERDICT_WARN, "WARN hca-missing|process 1: mlx5_7:1");
	assert_verdict(NULL, P "NCCL_IB_HCA set to =mlx5_4:1,mlx5_5\n" NET USE TWO SEND,
		       VERDICT_PASS, "verdict: PASS");
	assert_verdict(NULL, P "NCCL_IB_HCA set to mlx5\n" NET USE TWO SEND, VERDICT_PASS,
		       "note set-not-compared");
}

static void a_device_that_cannot_be_opened_matters_when_it_is_ours(void **state)
{
	static const char log[] = W "NET/IB : Unable to open device mlx5_9\n" NET USE TWO SEND;

	(void)state;
	assert_verdict(NULL, log, VERDICT_PASS, "note open-foreign-device");
	assert_verdict(MAP(OWN "," OWN5 ",{\"hca\": \"mlx5_9\"}"), log, VERDICT_WARN,
		       "WARN open-allocated-device");
	assert_verdict(MAP(OWN), W "NET/IB : Unable to open device \n" NET TWO SEND, VERDICT_PASS,
		       "note open-foreign-device");
}

static void a_wrong_map_is_refused_with_one_sentence(void **state)
{
	static const struct failure wrong[] = {
		{ "", "map.json" },
		{ "[]", "not a map of version 1" },
		{ "{\"version\": 2, \"gpus\": []}", "not a map of version 1" },
		{ "{\"version\": 1}", "gpus has to be a list" },
		{ MAP("7"), "an element of gpus" },
		{ MAP("{\"gpu\": \"0000:1b:00.0\"}"), "an element of gpus" },
		{ MAP("{\"hca\": 4}"), "an element of gpus" },
		{ MAP("{\"hca\": \"a\", \"port\": 0}"), "an element of gpus" },
		{ MAP("{\"hca\": \"a\", \"gpu\": \"one\"}"), "an element of gpus" },
		{ WITH_GID("3"), "an element of gpus" },
		{ WITH_GID("{}"), "an element of gpus" },
		{ WITH_GID("{\"index\": -1}"), "an element of gpus" },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(wrong); i++) {
		_cleanup_verify_ struct verify *v = verify_new();
		struct err err = { 0 };

		assert_true(verify_add_map(v, NULL, wrong[i].line, strlen(wrong[i].line),
					   "map.json", &err) < 0);
		assert_non_null(strstr(err.msg, wrong[i].id));
		assert_null(strchr(err.msg, '\n'));
	}
}

static void a_map_without_end_is_refused(void **state)
{
	_cleanup_verify_ struct verify *v = verify_new();
	_cleanup_strbuf_ struct strbuf map = STRBUF_INIT;
	struct err err = { 0 };

	(void)state;
	strbuf_puts(&map, "{\"version\": 1, \"gpus\": [" OWN);
	for (int i = 0; i < 1024; i++)
		strbuf_puts(&map, "," OWN);
	strbuf_puts(&map, "]}");
	assert_true(verify_add_map(v, NULL, map.s, map.len, "map.json", &err) < 0);
	assert_string_equal(err.msg, "map.json: gpus has 1025 elements, more than 1024");
}

static void two_maps_of_one_host_are_refused(void **state)
{
	_cleanup_verify_ struct verify *v = verify_new();
	struct err err = { 0 };

	(void)state;
	add_map(v, "q", MAP(OWN));
	assert_true(verify_add_map(v, "q", MAP(OWN), strlen(MAP(OWN)), "b.json", &err) < 0);
	assert_string_equal(err.msg, "b.json: there is a map for q already");
}

/* --- benchmarks --- */

/* Two VFs of 200 Gb/s: 50 GB/s. */
#define RATES                                                                                      \
	MAP("{\"gpu\": \"0000:1b:00.0\", \"hca\": \"mlx5_4\", \"mbps\": 200000},\n"                \
	    "{\"gpu\": \"0000:1b:00.0\", \"hca\": \"mlx5_5\", \"mbps\": 200000},\n"                \
	    "{\"gpu\": \"0000:2b:00.0\", \"hca\": \"mlx5_5\", \"mbps\": 200000}")
#define BOTH SEND P "Channel 01/0 : 0[0] -> 1[0] [send] via NET/IB/1/GDRDMA\n"
#define HEADINGS                                                                                                                 \
	"#       size         count      type   redop    root     time   algbw   busbw #wrong     time   algbw   busbw #wrong\n" \
	"#        (B)    (elements)                               (us)  (GB/s)  (GB/s)            (us)  (GB/s)  (GB/s)       \n"
#define ROW(bus)                                                                                                                 \
	"   536870912     134217728     float     sum      -1    23580   22.77   21.10      0    23611   22.74   21.01      0\n" \
	"  1073741824     268435456     float     sum      -1    44893   23.92   " bus                                           \
	"      0    45021   23.85   44.71    N/A\n"

static void a_benchmark_is_held_against_the_vfs(void **state)
{
	static const struct {
		const char *table, *words;
		enum verdict verdict;
	} rows[] = {
		{ HEADINGS ROW("46.10"),
		  "note bandwidth:|46.10 GB/s bus bandwidth at best, 92 % of 50.00 GB/s:",
		  VERDICT_PASS },
		{ HEADINGS ROW("44.84"),
		  "WARN bandwidth-low|90 % of 50.00 GB/s; likely: nothing that the log shows",
		  VERDICT_WARN },
		{ HEADINGS ROW("24.10"), "FAIL bandwidth-half|48 % of 50.00 GB/s", VERDICT_FAIL },
		{ HEADINGS ROW("1.90"),
		  "FAIL bandwidth-half|42 % of 50.00 GB/s|: log:", VERDICT_FAIL },
		/* Anything before it, as long as it is before both. */
		{ "[1,0]<stdout>:#  size count type redop root time algbw busbw #wrong\n"
		  "[1,0]<stdout>: 1073741824 268435456 float sum -1 44893 23.92 10.00 0\n",
		  "20 % of 50.00 GB/s; likely: nothing that the log shows, and about what TCP",
		  VERDICT_FAIL },
		/* The script of deploy/examples, other PyTorch tables. */
		{ "16 ranks\n       bytes         ms  busbw GB/s\n"
		  "        1024      0.030        0.06\n  1073741824     91.000       20.00\n",
		  "40 % of 50.00|about what RDMA with copies through the host gives",
		  VERDICT_FAIL },
		{ "| payload |    busbw   |    algbw   |\n| ------: | ---------: | ---------: |\n"
		  "|    32KB |   0.92GBps |   0.48GBps |\n|     4GB |  47.50GBps |  25.33GBps |\n",
		  "note bandwidth:|95 % of 50.00", VERDICT_PASS },
		{ "COMMS-RES-all_reduce-float32  size (B)  num-elements  Latency(us):p50  p75  p95  Min  Max  AlgBW(GB/s)  BusBW(GB/s)\n"
		  "COMMS-RES-all_reduce-float32  268435456  67108864  5000.1  5010.0  5020.0  4990.0  5050.0  20.1  40.20\n",
		  "WARN bandwidth-low|80 % of 50.00", VERDICT_WARN },
		/* Each rank to each: two ranks of a node share its VFs. */
		{ P "comm 0x1 rank 0 nRanks 2 nNodes 2 localRanks 2 localRank 0 MNNVL 0\n"
		    "# Collective test starting: alltoall_perf\n" HEADINGS ROW("23.00"),
		  "92 % of 25.00", VERDICT_PASS },
		/* Not to be judged, and not a table. */
		{ HEADINGS
		  "  65536  16384  float  sum  -1  30.0  2.00  3.83  0  30.0  2.00  3.83  0\n",
		  "note bandwidth-of-small-messages", VERDICT_PASS },
		{ "step 10 loss 2.31 busbw\n" ROW("1.90"), "verdict: PASS", VERDICT_PASS },
		{ ROW("1.90"), "verdict: PASS", VERDICT_PASS },
		{ HEADINGS "1073741824 268435456 float sum -1 nan nan nan 0 nan nan nan 0\n",
		  "FAIL no-rows", VERDICT_FAIL },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		_cleanup_free_ char *log = xasprintf("%s%s", NET USE TWO BOTH, rows[i].table);

		assert_verdict(RATES, log, rows[i].verdict, rows[i].words);
	}
}

static void a_low_bandwidth_has_its_likely_cause(void **state)
{
	static const char table[] = HEADINGS ROW("24.10");
	_cleanup_free_ char *unused = xasprintf("%s%s", NET USE TWO SEND, table);
	_cleanup_free_ char *plain = xasprintf(
		"%s%s", NET USE TWO SEND P "Channel 01/0 : 0[0] -> 1[0] [send] via NET/IB/1\n",
		table);

	(void)state;
	assert_verdict(RATES, unused, VERDICT_FAIL,
		       "likely: allocated VFs that no channel uses|WARN hca-unused");
	assert_verdict(RATES, plain, VERDICT_FAIL, "likely: channels without GPUDirect RDMA");
}

static void without_a_map_nccl_tells_the_rate(void **state)
{
	static const char speed[] = P
		"NET/IB: [0] mlx5_4:uverbs4:1/RoCE provider=Mlx5 speed=400000 context=0x7f0 pciPath=/sys/devices ar=0\n";
	_cleanup_free_ char *told =
		xasprintf("%s%s%s", speed, NET USE TWO SEND, HEADINGS ROW("24.10"));
	_cleanup_free_ char *untold = xasprintf("%s%s", NET USE TWO SEND, HEADINGS ROW("24.10"));
	_cleanup_free_ char *inside = xasprintf(
		"%s%s%s", speed, P "comm 0x1 rank 0 nRanks 1 nNodes 1 localRanks 1 localRank 0\n",
		HEADINGS ROW("24.10"));

	(void)state;
	assert_verdict(NULL, told, VERDICT_FAIL, "48 % of 50.00");
	assert_verdict(NULL, untold, VERDICT_INCONCLUSIVE, "bandwidth-not-judged");
	assert_verdict(NULL, inside, VERDICT_INCONCLUSIVE, "one-node");
}

/* --- streams --- */

static void junk_between_the_lines_changes_nothing(void **state)
{
	_cleanup_verify_ struct verify *v = verify_new();
	static const char log[] = NET USE TWO, rest[] = "\n" SEND;
	char junk[8192];

	(void)state;
	for (size_t i = 0; i < sizeof(junk); i++)
		junk[i] = (char)(i * 2654435761u >> 13);
	verify_begin(v, "log");
	verify_feed(v, log, strlen(log));
	verify_feed(v, junk, sizeof(junk));
	verify_feed(v, "\0\0\n\0NCCL INFO \0\n", 16);
	verify_feed(v, rest, strlen(rest));
	verify_end(v);
	assert_int_equal(verify_judge(v), VERDICT_PASS);
}

static void a_line_without_end_takes_no_memory(void **state)
{
	_cleanup_verify_ struct verify *v = verify_new();
	static const char log[] = NET USE TWO, rest[] = "\n" SEND;
	static char chunk[65536];

	(void)state;
	memset(chunk, 'x', sizeof(chunk));
	verify_begin(v, "log");
	verify_feed(v, log, strlen(log));
	for (int i = 0; i < 1600; i++)
		verify_feed(v, chunk, sizeof(chunk));
	verify_feed(v, rest, strlen(rest));
	verify_end(v);
	assert_int_equal(verify_judge(v), VERDICT_PASS);
}

static void more_gpus_than_fit_are_only_counted(void **state)
{
	static const char two[] =
		"h:1:1 [0] NCCL INFO comm 0x1 rank 0 nRanks 2 nNodes 2 localRanks 1 localRank 0\n"
		"i:1:1 [0] NCCL INFO Using network IB\n"
		"i:1:1 [0] NCCL INFO comm 0x1 rank 1 nRanks 2 nNodes 2 localRanks 1 localRank 0\n";
	_cleanup_verify_ struct verify *v = verify_new();
	char line[160];

	(void)state;
	verify_begin(v, "log");
	verify_feed(v, two, strlen(two));
	for (int i = 0; i < VERIFY_MAX_GPUS + 10; i++) {
		int n = snprintf(
			line, sizeof(line),
			"h:%d:1 [0] NCCL INFO Channel 00/0 : 0[0] -> 1[0] [send] via NET/IB/0/GDRDMA\n",
			i + 1);

		verify_feed(v, line, (size_t)n);
	}
	verify_end(v);
	assert_int_equal(verify_judge(v), VERDICT_PASS);
	assert_says(
		v,
		"4106 channels between nodes, 4106 with GDRDMA|and 4079 more|note too-many-gpus");
}

static void the_json_names_every_gpu_and_finding(void **state)
{
	_cleanup_verify_ struct verify *v = verify_new();
	_cleanup_strbuf_ struct strbuf out = STRBUF_INIT;
	static const char log[] =
		NET USE BUS TWO P "Channel 00/0 : 0[0] -> 1[0] [send] via NET/IB/0\n";
	struct json j;

	(void)state;
	feed(v, log, strlen(log));
	verify_judge(v);
	json_init(&j, &out, 0);
	json_begin_object(&j);
	verify_json(v, &j);
	json_end_object(&j);
	assert_non_null(strstr(strbuf_str(&out), "\"verdict\":\"PASS-noGDR\""));
	assert_non_null(strstr(strbuf_str(&out), "\"gpu\":\"0000:1b:00.0\",\"gdr\":\"none\""));
	assert_non_null(strstr(strbuf_str(&out), "\"id\":\"gdr-off\""));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_log_of_the_corpus_has_its_verdict),
		cmocka_unit_test(pieces_of_any_size_give_the_same_answer),
		cmocka_unit_test(a_log_cut_anywhere_never_says_no_gdr),
		cmocka_unit_test(every_prefix_leads_to_host_process_and_device),
		cmocka_unit_test(every_form_of_the_version_is_understood),
		cmocka_unit_test(two_records_in_one_line_are_two),
		cmocka_unit_test(what_is_glued_or_cut_is_left_out),
		cmocka_unit_test(every_failure_has_its_cause_and_fix),
		cmocka_unit_test(a_plugin_proves_rdma_or_does_not),
		cmocka_unit_test(what_may_break_is_a_warning),
		cmocka_unit_test(what_else_a_log_tells_is_said),
		cmocka_unit_test(an_interface_is_known_by_its_whole_name),
		cmocka_unit_test(every_warning_of_nccl_has_a_line),
		cmocka_unit_test(a_retry_that_succeeds_is_no_failure),
		cmocka_unit_test(one_node_counts_only_when_it_has_to_loop),
		cmocka_unit_test(a_log_that_tells_no_number_of_nodes_has_to_show_two_hosts),
		cmocka_unit_test(an_index_that_railmate_set_is_no_fixed_one),
		cmocka_unit_test(what_the_other_ranks_used_decides_too),
		cmocka_unit_test(nothing_of_nccl_is_inconclusive),
		cmocka_unit_test(sends_without_gdr_are_told_apart),
		cmocka_unit_test(the_map_is_what_was_allocated),
		cmocka_unit_test(ranks_that_are_not_in_the_log_may_use_the_rest),
		cmocka_unit_test(a_gpu_that_uses_another_ones_hca_is_a_warning),
		cmocka_unit_test(another_gid_than_the_maps_is_a_warning),
		cmocka_unit_test(a_data_direct_function_is_its_hca),
		cmocka_unit_test(an_hca_beside_its_data_direct_function_is_one),
		cmocka_unit_test(lines_of_a_tutorial_are_read),
		cmocka_unit_test(the_maps_path_class_tells_why_not),
		cmocka_unit_test(a_map_of_a_host_is_for_that_host_only),
		cmocka_unit_test(an_exact_list_in_the_log_stands_for_the_map),
		cmocka_unit_test(a_device_that_cannot_be_opened_matters_when_it_is_ours),
		cmocka_unit_test(a_wrong_map_is_refused_with_one_sentence),
		cmocka_unit_test(a_map_without_end_is_refused),
		cmocka_unit_test(two_maps_of_one_host_are_refused),
		cmocka_unit_test(a_benchmark_is_held_against_the_vfs),
		cmocka_unit_test(a_low_bandwidth_has_its_likely_cause),
		cmocka_unit_test(without_a_map_nccl_tells_the_rate),
		cmocka_unit_test(junk_between_the_lines_changes_nothing),
		cmocka_unit_test(a_line_without_end_takes_no_memory),
		cmocka_unit_test(more_gpus_than_fit_are_only_counted),
		cmocka_unit_test(the_json_names_every_gpu_and_finding),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
