/*
 * Logs in the forms of public threads, each with where the form is from (hosts and addresses are
 * made up), and what holds of every log: whatever ends badly is never PASS, the order of ranks
 * changes no verdict, and a table improves none.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/mem.h"
#include "base/str.h"
#include "verify/signs-internal.h"
#include "verify/verify.h"

#define A "a:1:20 [0] NCCL INFO "
#define B "b:1:20 [0] NCCL INFO "
#define W "a:1:20 [0] net.cc:1 NCCL WARN "
#define RANK(who, n)                                                                               \
	who "NET/IB: [0] mlx5_0:uverbs0:1/RoCE provider=Mlx5 speed=400000 context=0x1 ar=0\n" who  \
	    "NET/IB : Using [0]mlx5_0:1/RoCE [RO]; OOB eth0:192.0.2.1<0>\n" who                    \
	    "Using network IB\n" who "ncclCommInitRank comm 0x1 rank " n                           \
	    " nranks 2 cudaDev 0 nvmlDev 0 busId 1b000 commId 0x7 - Init START\n" who              \
	    "comm 0x1 rank " n " nRanks 2 nNodes 2 localRanks 1 localRank 0 MNNVL 0\n" who         \
	    "Channel 00/0 : 0[0] -> 1[0] [send] via NET/IB/0/GDRDMA\n" who                         \
	    "ncclCommInitRank comm 0x1 rank " n                                                    \
	    " nranks 2 cudaDev 0 nvmlDev 0 busId 1b000 commId 0x7 - Init COMPLETE\n"
#define GOOD "NCCL version 2.27.5+cuda12.8\n" RANK(A, "0") RANK(B, "1")
#define HEADINGS                                                                                                                 \
	"#       size         count      type   redop    root     time   algbw   busbw #wrong     time   algbw   busbw #wrong\n" \
	"#        (B)    (elements)                               (us)  (GB/s)  (GB/s)            (us)  (GB/s)  (GB/s)\n"
#define ROW(size, redop, root, alg, bus)                                                           \
	"  " size "  1000  float  " redop "  " root "  44893  " alg "  " bus "  0  45021  " alg    \
	"  " bus "  0\n"
#define TABLE(name, bus)                                                                           \
	"# Collective test starting: " name "\n" HEADINGS ROW("67108864", "sum", "-1", bus, bus)   \
		ROW("1073741824", "sum", "-1", bus,                                                \
		    bus) "# Out of bounds values : 0 OK\n# Avg bus bandwidth    : " bus "\n"
#define UCX  "[1750940544.312285] [a:2816:0]      ucp_worker.c:1855 UCX  INFO    0x309e "
#define UCXP "[1767930429.284906] [a:13245:0]   "

static enum verdict judge(const char *log, struct strbuf *out)
{
	_cleanup_verify_ struct verify *v = verify_new();
	enum verdict verdict;

	verify_begin(v, "log");
	verify_feed(v, log, strlen(log));
	verify_end(v);
	verdict = verify_judge(v);
	verify_text(v, out);
	return verdict;
}

static const struct form {
	const char *source, *log;
	enum verdict verdict;
	const char *words, *never; /* in the text, and not in it; separated by '|' */
} forms[] = {
	/* --- how it ended --- */
	{ "NVIDIA/nccl-tests#252",
	  GOOD "a: Test NCCL failure common.cu:958 'unhandled system error'\n", VERDICT_FAIL,
	  "first cause: nccl-failure|end      badly", NULL },
	{ "NVIDIA/nccl#1612",
	  GOOD W "socketProgress: Connection closed by remote peer 192.0.2.2<36138>\n" A
		 "misc/socket.cc:80 -> 6\n" A "group.cc:75 -> 6 [Async thread]\n",
	  VERDICT_FAIL, "first cause: peer-lost|FAIL return-code", NULL },
	{ "NVIDIA/Fuser#3055: what NCCL traces when a communicator is aborted at the program's end",
	  GOOD A "misc/socket.cc:47 -> 3\n" A "misc/socket.cc:781 -> 3\n" A
		 "comm 0x1 rank 0 nranks 2 cudaDev 0 busId 6000 - Abort COMPLETE\n",
	  VERDICT_PASS, "verdict: PASS", "return-code" },
	{ "the same without its end", GOOD A "misc/socket.cc:832 -> 3\n", VERDICT_FAIL,
	  "FAIL return-code", NULL },
	{ "NVIDIA/nccl#1050: SHARP is not there, and NCCL goes on",
	  GOOD W "NET/IB : SHARP coll init error: Cannot create SHARP job(-11)\n" A
		 "transport.cc:291 -> 2\n" A "init.cc:670 -> 2\n" W
		 "Cannot initialize CollNet, using point-to-point network instead\n",
	  VERDICT_WARN, "WARN sharp-fallback", "return-code" },
	{ "NVIDIA/nccl#1219: the same, and a group fails",
	  GOOD W "NET/IB : SHARP coll init error: Cannot create SHARP job(-11)\n" A
		 "init.cc:670 -> 2\n" A "group.cc:65 -> 2 [Async thread]\n",
	  VERDICT_FAIL, "FAIL return-code", NULL },
	{ "pytorch/pytorch#126544",
	  GOOD
	  "[rank1]:[E517 08:24:03.8 ProcessGroupNCCL.cpp:563] [Rank 1] Watchdog caught collective operation timeout: WorkNCCL(SeqNum=3) ran for 600029 milliseconds before timing out.\n",
	  VERDICT_FAIL, "FAIL watchdog|from:  rank 1", NULL },
	{ "NVIDIA/nccl#1504: torchrun",
	  GOOD
	  "E1106 04:43:02.651000 26021 site-packages/torch/distributed/elastic/multiprocessing/api.py:869] failed (exitcode: -6) local_rank: 3 (pid: 26026) of binary: /usr/bin/python\n",
	  VERDICT_FAIL, "FAIL exit-code", NULL },
	{ "aws/aws-ofi-nccl#715: a log service's columns, a rank that the launcher ends",
	  GOOD
	  "  | 2024-11-28T07:42:15.533Z | W1128 07:42:14.609000 17676 site-packages/torch/distributed/elastic/multiprocessing/api.py:897] Sending process 17776 closing signal SIGTERM\n",
	  VERDICT_FAIL, "FAIL signal|2024-11-28T07:42:15", NULL },
	{ "open-mpi/ompi (mpirun's notice)",
	  GOOD
	  "mpirun noticed that process rank 3 with PID 0 on node a exited on signal 9 (Killed).\n",
	  VERDICT_FAIL, "FAIL signal", NULL },
	{ "open-mpi/ompi (non-zero end)",
	  GOOD
	  "mpirun detected that one or more processes exited with non-zero status, thus causing\n",
	  VERDICT_FAIL, "FAIL launcher", NULL },
	{ "SchedMD Slurm", GOOD "srun: error: node1: task 3: Exited with exit code 1\n",
	  VERDICT_FAIL, "FAIL launcher", NULL },
	{ "SchedMD Slurm (time limit)",
	  GOOD
	  "slurmstepd: error: *** STEP 77.0 ON node1 CANCELLED AT 2026-05-04T10:00:00 DUE TO TIME LIMIT ***\n",
	  VERDICT_FAIL, "FAIL launcher|2026-05-04T10:00:00", NULL },
	{ "ray-project/ray",
	  GOOD
	  "ray.exceptions.ActorDiedError: The actor died unexpectedly before finishing this task.\n",
	  VERDICT_FAIL, "FAIL launcher", NULL },
	{ "kubectl describe pod",
	  GOOD
	  "    Last State:     Terminated\n      Reason:       OOMKilled\n      Exit Code:    137\n",
	  VERDICT_FAIL, "first cause: oom-killed|FAIL exit-code, follows from oom-killed", NULL },
	{ "kubectl describe pod that ended well",
	  GOOD "      Reason:       Completed\n      Exit Code:    0\n", VERDICT_PASS,
	  "end      log:", "exit-code" },
	{ "kubectl exec", GOOD "command terminated with exit code 139\n", VERDICT_FAIL,
	  "FAIL exit-code", NULL },
	{ "bash", GOOD "run.sh: line 3:    77 Killed                  python train.py\n",
	  VERDICT_FAIL, "FAIL signal", NULL },
	{ "a shell's last word", GOOD "Killed\n", VERDICT_FAIL, "FAIL signal", NULL },
	{ "NVIDIA/nccl-tests#311: the communicators were destroyed",
	  GOOD A "comm 0x1 rank 0 nranks 2 cudaDev 0 busId 1b000 - Destroy COMPLETE\n",
	  VERDICT_PASS, "end      log:", "badly" },
	{ "any log that is cut", GOOD, VERDICT_PASS, "end      not seen", NULL },
	{ "pytorch/pytorch, ProcessGroupNCCL.cpp: the monitor ends a process",
	  GOOD
	  "[rank5]:[F1107 02:42:19 ProcessGroupNCCL.cpp:1557] [PG ID 0 Rank 5] Terminating the process after attempting to dump debug info, due to ProcessGroupNCCL watchdog hang.\n",
	  VERDICT_FAIL, "FAIL watchdog|rank 5", NULL },
	{ "bminor/glibc, malloc.c", GOOD "free(): invalid pointer\n", VERDICT_FAIL, "FAIL signal",
	  NULL },
	{ "bminor/glibc, malloc.c: a list that is damaged", GOOD "corrupted size vs. prev_size\n",
	  VERDICT_FAIL, "FAIL signal", NULL },
	{ "openucx/ucx, debug.c: a backtrace whose first line is lost",
	  GOOD "==== backtrace (tid:    123) ====\n", VERDICT_FAIL, "FAIL signal", NULL },
	{ "SchedMD Slurm: the cgroup's killer",
	  GOOD
	  "slurmstepd: error: Detected 1 oom_kill event in StepId=123.0. Some of the step tasks have been OOM Killed.\n",
	  VERDICT_FAIL, "first cause: oom-killed", NULL },
	{ "SchedMD Slurm: a step that ends early",
	  GOOD "srun: Job step aborted: Waiting up to 32 seconds for job step to finish.\n",
	  VERDICT_FAIL, "FAIL launcher", NULL },
	{ "open-mpi/ompi: a peer is gone",
	  GOOD "An MPI communication peer process has unexpectedly disconnected.\n", VERDICT_FAIL,
	  "FAIL launcher", NULL },
	{ "open-mpi/ompi: MPI_Init fails",
	  GOOD "[n1:1] *** MPI_ERRORS_ARE_FATAL (processes in this communicator will now abort,\n",
	  VERDICT_FAIL, "FAIL launcher", NULL },
	{ "pmodels/mpich", GOOD "Abort(1) on node 0 (rank 0 in comm 0): Fatal error in PMPI_Init\n",
	  VERDICT_FAIL, "FAIL launcher", NULL },
	{ "kubectl describe pod: its events",
	  GOOD
	  "  Warning  BackOff    10s (x6 over 1m)  kubelet  Back-off restarting failed container nccl in pod nccl-worker-0\n",
	  VERDICT_FAIL, "FAIL launcher", NULL },
	{ "kubectl describe pod: its phase", GOOD "Status:           Failed\n", VERDICT_FAIL,
	  "FAIL launcher", NULL },
	{ "kubectl get pods", GOOD "nccl-0   0/1     Error     0     3m\n", VERDICT_FAIL,
	  "FAIL exit-code", NULL },
	{ "kubectl wait", GOOD "error: timed out waiting for the condition on jobs/nccl\n",
	  VERDICT_FAIL, "FAIL launcher", NULL },
	{ "opencontainers/runc",
	  GOOD "Error: failed to create shim task: OCI runtime create failed: runc create failed\n",
	  VERDICT_FAIL, "FAIL launcher", NULL },
	{ "an image without the benchmark",
	  GOOD "bash: line 1: all_reduce_perf: command not found\n", VERDICT_FAIL, "FAIL launcher",
	  NULL },
	{ "NVIDIA/nccl-tests: another NCCL than it was built with",
	  GOOD
	  "all_reduce_perf: symbol lookup error: all_reduce_perf: undefined symbol: ncclCommWindowRegister\n",
	  VERDICT_FAIL, "FAIL launcher", NULL },
	{ "ray-project/ray: compiled graphs",
	  GOOD
	  "ray.exceptions.RayChannelTimeoutError: System error: Timed out waiting for object available to read.\n",
	  VERDICT_FAIL, "FAIL launcher", NULL },
	{ "vllm-project/vllm, multiproc_executor.py",
	  GOOD
	  "ERROR 11-07 [multiproc_executor.py:140] Worker proc VllmWorker-1 died unexpectedly, shutting down executor.\n",
	  VERDICT_FAIL, "FAIL launcher", NULL },
	{ "vllm-project/vllm, core.py",
	  GOOD "(EngineCore_0 pid=123) ERROR 11-07 EngineCore encountered a fatal error.\n",
	  VERDICT_FAIL, "FAIL exception", NULL },
	{ "sgl-project/sglang, scheduler", GOOD "Watchdog timeout (self.watchdog_timeout=300)\n",
	  VERDICT_FAIL, "FAIL watchdog", NULL },
	{ "vllm-project/vllm, _custom_ops.py: an optional part that is not there",
	  GOOD
	  "WARNING 12-05 02:10:46 [_custom_ops.py:20] Failed to import from vllm._C with ModuleNotFoundError(\"No module named 'vllm._C'\")\n",
	  VERDICT_PASS, "verdict: PASS", "exception" },
	{ "podman info, and what a program prints of its settings",
	  GOOD "OCI runtime spec 1.1\nWatchdog timeout: 600 s\nerrors: MPI_ERRORS_ARE_FATAL\n",
	  VERDICT_PASS, "verdict: PASS", NULL },
	{ "a router in Rust", GOOD "thread 'main' panicked at src/main.rs:7:5:\n", VERDICT_FAIL,
	  "FAIL exception", NULL },
	{ "torvalds/linux, aer.c",
	  GOOD "pcieport 0000:16:01.0: AER: Uncorrected (Fatal) error received: 0000:1b:00.0\n",
	  VERDICT_FAIL, "FAIL hca-error", NULL },
	{ "torvalds/linux, mlx5/core/health.c",
	  GOOD "mlx5_core 0000:3b:00.0: poll_health:1017:(pid 0): Fatal error 3 detected\n",
	  VERDICT_FAIL, "FAIL hca-error", NULL },
	{ "torvalds/linux, mlx5/core/health.c, a start",
	  GOOD "mlx5_core 0000:3b:00.0: fatal reporter registered\n", VERDICT_PASS, "verdict: PASS",
	  NULL },
	{ "torvalds/linux, arm-smmu-v3",
	  GOOD "arm-smmu-v3 arm-smmu-v3.9.auto: event: F_TRANSLATION client: 0002:03:00.0\n",
	  VERDICT_FAIL, "FAIL iommu-fault", NULL },
	{ "NVIDIA/nvshmem, transport.cpp",
	  GOOD "transport.cpp:nvshmemi_transport_init:275: init failed for transport: IBGDA\n",
	  VERDICT_WARN, "WARN nvshmem-transport", "FAIL" },
	{ "vllm-project/vllm: none is left",
	  GOOD
	  "transport.cpp:nvshmemi_transport_init:287: Unable to initialize any transports. returning error.\n",
	  VERDICT_FAIL, "FAIL nvshmem", NULL },
	{ "sgl-project/sglang, mooncake/conn.py",
	  GOOD
	  "Losing connection with prefill instance (bootstrap_addr: 192.0.2.1:8998), 3 requests affected\n",
	  VERDICT_FAIL, "FAIL kv-transfer", NULL },
	{ "sgl-project/sglang, mooncake/conn.py: a request",
	  GOOD "Request 7f timed out after 300s in KVPoll.Bootstrapping\n", VERDICT_FAIL,
	  "FAIL kv-transfer", NULL },
	{ "kvcache-ai/Mooncake, rdma_context.cpp",
	  GOOD
	  "E1107 rdma_context.cpp:150] Failed to register memory 0x7f00: Cannot allocate memory [12]\n",
	  VERDICT_FAIL, "FAIL register-memory", NULL },
	{ "linux-rdma/perftest, perftest_resources.c", GOOD " scnt=128, ccnt=0\n", VERDICT_FAIL,
	  "FAIL perftest", NULL },
	{ "railmate-probe, text",
	  "FAIL: ml/train-0 main, 2 VFs, 2 GPUs, 4 transfers\n\n"
	  "     path         from > to               memory         op        Gb/s\n"
	  "FAIL loopback     mlx5_4                  host           write     60.0\n",
	  VERDICT_FAIL, "FAIL probe-broken", NULL },
	{ "railmate-probe, JSON beside a good log",
	  GOOD "{\n \"probe\": 1,\n \"outcome\": \"slow\",\n \"measures\": []\n}\n", VERDICT_WARN,
	  "WARN probe-slow", NULL },
	{ "railmate-probe, JSON in one line",
	  GOOD "{\"probe\":1,\"outcome\":\"broken\",\"measures\":[{\"outcome\":\"slow\"}]}\n",
	  VERDICT_FAIL, "FAIL probe-broken", NULL },
	{ "railmate-probe of a container that is good",
	  GOOD "GOOD: ml/train-0 main, 2 VFs, 2 GPUs, 4 transfers\n", VERDICT_PASS, NULL, "probe" },
	{ "railmate-probe without RDMA devices in the image's view",
	  "????: ml/train-0 main, 2 VFs, 2 GPUs, 0 transfers\n", VERDICT_INCONCLUSIVE,
	  "probe-not-measured", NULL },
	{ "linux-rdma/rdma-core, libibverbs/init.c: another kernel's provider",
	  GOOD
	  "libibverbs: Warning: Driver bnxt_re does not support the kernel ABI of 8 (supports 1 to 1) for device /sys/class/infiniband/rdma0\n",
	  VERDICT_WARN, "WARN kernel-abi", NULL },
	{ "linux-rdma/rdma-core, mlx5 cq.c", GOOD "mlx5: a: got completion with error:\n",
	  VERDICT_FAIL, "FAIL completion-error", NULL },
	{ "python's clean-up at the end",
	  GOOD "Exception ignored in: <function _releaseLock at 0x7f>\n", VERDICT_PASS,
	  "verdict: PASS", NULL },
	{ "pytorch/pytorch: a warning at a good end",
	  GOOD
	  "[rank0]:[W1107 02:42:19 ProcessGroupNCCL.cpp:1524] Warning: WARNING: destroy_process_group() was not called before program exit\n",
	  VERDICT_PASS, "verdict: PASS", NULL },
	{ "NVIDIA/nccl, p2p_resiliency.cc",
	  GOOD W
	  "NET/IB: Maximum number of probing attempts (1) reached for request 0x7f (id=12). Cannot post another probe.\n",
	  VERDICT_FAIL, "FAIL completion-retry-exceeded", NULL },
	{ "NVIDIA/nccl, bootstrap.cc: two sizes of one job",
	  GOOD W "Bootstrap Root : mismatch in rank count from procs 16 : 8\n", VERDICT_FAIL,
	  "FAIL collective-mismatch", NULL },
	/* --- the first cause, and what follows --- */
	{ "Lightning-AI/lit-llama#380: retries after a port went down",
	  GOOD W
	  "NET/IB : Got completion from peer b<1> with error 12, opcode 2, len 1, vendor err 129\n" W
	  "NET/IB : Got async event : port error\n",
	  VERDICT_FAIL,
	  "first cause: port-down|FAIL completion-retry-exceeded, follows from port-down", NULL },
	{ "NVIDIA/nccl#905: a port that came back",
	  GOOD W "NET/IB : Got async event : port error\n" W
		 "NET/IB : Got async event : port active\n",
	  VERDICT_WARN, "WARN port-down|note port-up", NULL },
	{ "NVIDIA/nccl#1434: the second error is the origin",
	  GOOD W
	  "NET/IB : Got completion from peer b<1> with status=12 opcode=0 len=0\n"
	  "[2025-05-16 08:01:03] b:1:20 [0] net_ib.cc:1 NCCL WARN NET/IB: Got completion from peer a<1> with status=IBV_WC_LOC_PROT_ERR(4) opcode=0\n",
	  VERDICT_FAIL,
	  "first cause: completion-protection|from:  b process 1, rank 1, 2025-05-16 08:01:03",
	  NULL },
	{ "an unknown warning before a bad end",
	  GOOD W "something that no catalogue has\n" A "group.cc:65 -> 3\n", VERDICT_FAIL,
	  "first cause: nccl-warn|FAIL return-code|, follows from nccl-warn", NULL },
	{ "an unknown warning alone", GOOD W "something that no catalogue has\n", VERDICT_WARN,
	  "WARN nccl-warn", NULL },
	{ "NVIDIA/nccl#230, since 2.4",
	  GOOD W "NET/IB : Got async event : local catastrophic error\n", VERDICT_FAIL,
	  "FAIL async-fatal", NULL },
	{ "rank in a pod with 64 MiB of shared memory (NVIDIA/nccl#290)",
	  GOOD W "Error: failed to extend /dev/shm/nccl-Y2Vqtn to 9637892 bytes\n", VERDICT_FAIL,
	  "FAIL shm-size|medium: Memory", NULL },
	{ "NVIDIA/nccl#428 (memlock)",
	  GOOD W "Call to ibv_create_cq failed with error Cannot allocate memory\n", VERDICT_FAIL,
	  "FAIL create-cq|memlock", NULL },
	{ "vllm-project/vllm: a device that the container lacks",
	  GOOD W "Cuda failure 101 'invalid device ordinal'\n", VERDICT_FAIL, "FAIL cuda-device",
	  NULL },
	{ "NVIDIA/nccl-tests#166",
	  GOOD W
	  "socketStartConnect: Connect to 192.0.2.2<45763> failed : Software caused connection abort\n",
	  VERDICT_FAIL, "FAIL connection-refused|NetworkPolicy", NULL },
	{ "dmesg beside the job", GOOD "[ 77.1] AMD-Vi: Event logged [IO_PAGE_FAULT domain=0x1]\n",
	  VERDICT_FAIL, "FAIL iommu-fault", NULL },
	/* --- transports --- */
	{ "a rank on TCP whose log was cut", GOOD B "NET/Socket : Using [0]eth0:192.0.2.2<0>\n",
	  VERDICT_PASS, "verdict: PASS", NULL }, /* it names IB as well */
	{ "NVIDIA/nccl: the same of a rank that names nothing else",
	  RANK(A, "0") B "NET/Socket : Using [0]eth0:192.0.2.2<0>\n" B
			 "comm 0x1 rank 1 nRanks 2 nNodes 2 localRanks 1 localRank 0 MNNVL 0\n",
	  VERDICT_FAIL, "FAIL socket|log:8", NULL },
	{ "a rank by its comm line alone",
	  RANK(A, "0") B "comm 0x1 rank 1 nRanks 2 nNodes 2 localRanks 1 localRank 0 MNNVL 0\n",
	  VERDICT_INCONCLUSIVE, "ranks-unseen|1 of 2 ranks", NULL },
	{ "vllm-project/vllm#6370: one healthy host before 2.21",
	  "NCCL version 2.20.5+cuda12.2\n" A "Using network Socket\n" A
	  "comm 0x1 rank 0 nranks 1 cudaDev 0 nvmlDev 0 busId 1b000 commId 0x7 - Init COMPLETE\n",
	  VERDICT_INCONCLUSIVE, "INCONCLUSIVE one-node", "FAIL socket" },
	{ "NVIDIA/nccl#2186",
	  A "Using network IB\n" A
	    "comm 0x1 rank 0 nRanks 1 nNodes 2 localRanks 1 localRank 0 MNNVL 1\n" A
	    "Channel 00/0 : 0[0] -> 1[1] via P2P/MNNVL\n",
	  VERDICT_INCONCLUSIVE, "nvlink-between-nodes", "no-channels" },
	{ "tensorflow/tensorflow#34375",
	  ":5202:5683 [0] NCCL INFO NET/IB : Using [0]mlx5_0:1/RoCE ; OOB eth0:192.0.2.1<0>\n:5202:5683 [0] NCCL INFO Ring 00 : 1 -> 0 [receive] via NET/IB/0\n",
	  VERDICT_INCONCLUSIVE, "1 channels between nodes|mlx5_0:1", NULL },
	{ "NVIDIA/nccl#1219: SHARP in the list of HCAs",
	  GOOD A
	  "NET/IB : Using [0]mlx5_0:1/IB/SHARP [1]mlx5_1:1/IB/SHARP [RO]; OOB ib0:192.0.2.1<0>\n" A
	  "NCCL_IB_HCA set to =mlx5_0:1,mlx5_1:1\n",
	  VERDICT_PASS, "verdict: PASS", "hca-missing" },
	/* --- forms --- */
	{ "docker's json-file",
	  "{\"log\":\"a:1:20 [0] NCCL INFO Using network IB\\n\",\"stream\":\"stdout\",\"time\":\"2026-05-06T07:08:09Z\"}\n{\"log\":\"a:1:20 [0] NCCL INFO Channel 00/0 : 0[0] -\\u003e 1[0] [send] via NET/IB/0/GDRDMA\\n\",\"stream\":\"stdout\"}\n",
	  VERDICT_INCONCLUSIVE, "1 channels between nodes, 1 with GDRDMA", "damaged" },
	{ "rich's frames",
	  "│ a:1:20 [0] NCCL INFO Channel 00/0 : 0[0] -> 1[0] [send] via NET/IB/0/GDRDMA    │\n",
	  VERDICT_INCONCLUSIVE, "1 with GDRDMA", "damaged" },
	{ "ray-project/ray: lines that are the same",
	  "(RayWorkerWrapper pid=194) a:1:20 [0] NCCL INFO Channel 00/0 : 0[0] -> 1[0] [send] via NET/IB/0/GDRDMA [repeated 7x across cluster]\n",
	  VERDICT_INCONCLUSIVE, "1 with GDRDMA", "damaged" },
	{ "tqdm's progress bar",
	  "10%|#   | 1/10\r20%|##  | 2/10\ra:1:20 [0] NCCL INFO Channel 00/0 : 0[0] -> 1[0] [send] via NET/IB/0/GDRDMA\r\n",
	  VERDICT_INCONCLUSIVE, "1 with GDRDMA", "damaged" },
	{ "NVIDIA/nccl: the order of ranks is no channel", GOOD A "Channel 00/02 :    0   1\n",
	  VERDICT_PASS, "verdict: PASS", "damaged" },
	/* --- tables --- */
	{ "a one-node table before a slow one of two nodes",
	  A "comm 0x1 rank 0 nRanks 2 nNodes 1 localRanks 2 localRank 0 MNNVL 0\n" TABLE(
		  "all_reduce_perf", "474.0") GOOD TABLE("all_reduce_perf", "20.0"),
	  VERDICT_FAIL, "note bandwidth-inside|FAIL bandwidth-half|40 % of 50.00", NULL },
	{ "NVIDIA/nccl-tests: a slow all-reduce, then a good all-to-all",
	  GOOD TABLE("all_reduce_perf", "9.00") TABLE("alltoall_perf", "49.0"), VERDICT_FAIL,
	  "all_reduce: 9.00 GB/s", NULL },
	{ "a collapse at a large size",
	  GOOD HEADINGS ROW("67108864", "sum", "-1", "47.9", "47.9")
		  ROW("1073741824", "sum", "-1", "0.4", "0.4"),
	  VERDICT_WARN, "WARN bandwidth-collapse|0.40 at a larger size", NULL },
	{ "NVIDIA/nccl-tests#7: #wrong",
	  GOOD HEADINGS
	  "  1073741824  1  float  sum  -1  1.0  48.0  48.0  24  1.0  48.0  48.0  0\n",
	  VERDICT_FAIL, "first cause: wrong-data", NULL },
	{ "NVIDIA/nccl-tests#8", GOOD "# Out of bounds values : 24 FAILED\n", VERDICT_FAIL,
	  "first cause: wrong-data", NULL },
	{ "NVIDIA/nccl-tests#244: it hangs", GOOD "# nThread 1 nGpus 1\n" HEADINGS, VERDICT_FAIL,
	  "FAIL no-rows", NULL },
	{ "NVIDIA/nccl#1277: it hangs before its heading", GOOD "# nThread 1 nGpus 1 minBytes 8\n",
	  VERDICT_FAIL, "FAIL no-rows|end      badly", NULL },
	{ "a script whose ranks all print the heading",
	  GOOD "bytes  ms  busbw GB/s\nbytes  ms  busbw GB/s\n1073741824  91.0  48.00\n",
	  VERDICT_PASS, "96 % of 50.00", NULL },
	{ "NVIDIA/nccl#1531: a table without a name, 8 GPUs a node",
	  GOOD A
	  "comm 0x2 rank 0 nRanks 16 nNodes 2 localRanks 8 localRank 0 MNNVL 0\n" HEADINGS ROW(
		  "1073741824", "none", "-1", "32.0", "30.0"),
	  VERDICT_INCONCLUSIVE, "which benchmark was this?", NULL },
	{ "NVIDIA/nccl: the PCIe link of the only GPU is the ceiling",
	  GOOD A "              + PCI[24.0] - GPU/0-1b000 (0)\n" TABLE("all_reduce_perf", "23.0"),
	  VERDICT_PASS, "96 % of 24.00", NULL },
	{ "facebookresearch/param: ranks that differ",
	  GOOD
	  "COMMS-RES-all_reduce-float32  size (B)  num-elements  Latency(us):p50  p75  p95  Min  Max  AlgBW(GB/s)  BusBW(GB/s)\nCOMMS-RES-all_reduce-float32  268435456  67108864  5000.1  5010.0  5020.0  1990.0  9050.0  25.1  48.20\n",
	  VERDICT_WARN, "WARN bandwidth-spread", NULL },
	{ "linux-rdma/perftest#241",
	  " Device         : mlx5_0\n #bytes     #iterations    BW peak[MB/sec]    BW average[MB/sec]   MsgRate[Mpps]\n 33554432   5000             11016.20            11015.31\t\t   0.000344\n",
	  VERDICT_INCONCLUSIVE, "bandwidth-not-judged|11.55 GB/s", "no-nccl-lines" },
	/* --- inference --- */
	{ "openucx/ucx, UCX_LOG_LEVEL=info", UCX "inter-node cfg#6 tag(rc_mlx5/mlx5_0:1)\n",
	  VERDICT_PASS, "UCX      log:1", NULL },
	{ "openucx/ucx#9839", UCX "inter-node cfg#0 am(tcp/enp7s0 tcp/enp8s0)\n", VERDICT_FAIL,
	  "FAIL ucx-tcp", NULL },
	{ "openucx/ucx#9560",
	  UCX "ep_cfg[2]: tag(sysv/memory cma/memory tcp/ib1)\n" UCX
	      "ep_cfg[3]: tag(tcp/ib1 tcp/ib0)\n",
	  VERDICT_FAIL, "FAIL ucx-tcp|log:2", NULL },
	{ "parthenon#1260: within a node only",
	  UCX "intra-node cfg#5 tag(sysv/memory rc_mlx5/mlx5_0:1 cuda_ipc/cuda)\n",
	  VERDICT_INCONCLUSIVE, "ucx-inside", NULL },
	{ "ai-dynamo/nixl#1195, UCX_PROTO_INFO=y",
	  UCXP
	  "| ucp_context_0 inter-node cfg#1 | remote memory write by ucp_put*(multi) from cuda/GPU0 to cuda/dev[0] |\n" UCXP
	  "|   0..2K | short | rc_mlx5/mlx5_0:1/path0 |\n" UCXP
	  "|   2049..inf | zero-copy | rc_mlx5/mlx5_0:1 50% on path0 and 50% on path1 |\n",
	  VERDICT_PASS, "UCX      log:3", NULL },
	{ "openucx/ucx#10950: software emulation",
	  UCXP
	  "| ucp_context_0 inter-node cfg#1 | remote memory write by ucp_put* from cuda/GPU0 to cuda/dev[0] |\n" UCXP
	  "|   0..inf | software emulation | rc_mlx5/mlx5_0:1 |\n",
	  VERDICT_NOGDR, "ucx-staged", NULL },
	{ "ai-dynamo/nixl#1983",
	  UCX
	  "inter-node cfg#6 rma(rc_mlx5/mlx5_0:1)\nnixl_cu12._bindings.nixlRemoteDisconnectError: NIXL_ERR_REMOTE_DISCONNECT\n",
	  VERDICT_FAIL, "FAIL kv-transfer", NULL },
	{ "kvcache-ai/Mooncake", "I0801 transfer_engine.cpp:91] installTransport, type=tcp\n",
	  VERDICT_FAIL, "FAIL kv-tcp", NULL },
	{ "vllm-project/vllm#27196",
	  "/tmp/ibgda.cpp:1951: non-zero status: 12 ibgda_alloc_and_map_qp_uar failed\n",
	  VERDICT_FAIL, "FAIL nvshmem", NULL },
	{ "smg-project/smg: a device that is not there",
	  "[1746690477.9] [a:611  :0]     ucp_context.c:1268 UCX  WARN  network device 'mlx5_9:1' is not available, please use one or more of: 'eth0'(tcp)\n",
	  VERDICT_FAIL, "FAIL ucx-no-device", NULL },
	{ "openucx/ucx: one kind of operation goes by TCP",
	  UCX "inter-node cfg#2 rma(tcp/eth0) am(rc_mlx5/mlx5_0:1)\n", VERDICT_FAIL, "FAIL ucx-tcp",
	  NULL },
	{ "openucx/ucx: each kind by RDMA, TCP beside it",
	  UCX "inter-node cfg#2 rma(rc_mlx5/mlx5_0:1) am(tcp/eth0 rc_mlx5/mlx5_0:1)\n",
	  VERDICT_PASS, "UCX      log:1", "ucx-tcp" },
	{ "kvcache-ai/Mooncake: RDMA",
	  "I0801 transfer_engine.cpp:91] installTransport, type=rdma\n", VERDICT_PASS,
	  "UCX      log:1", NULL },
	{ "lines of UCX are of no further host",
	  "NCCL version 2.27.5+cuda12.8\n" A "Using network IB\n" A
	  "Channel 00/0 : 0[0] -> 1[0] [send] via NET/IB/0/GDRDMA\n"
	  "[1750940544.3] [other:28:0] UCX  INFO  intra-node cfg#5 tag(sysv/memory)\n",
	  VERDICT_INCONCLUSIVE, "nodes-untold", NULL },
	{ "an engine that takes NVLink inside, and UCX between nodes",
	  A "comm 0x1 rank 0 nRanks 1 nNodes 1 localRanks 1 localRank 0 MNNVL 0\n" UCX
	    "inter-node cfg#6 rma(rc_mlx5/mlx5_0:1)\n",
	  VERDICT_PASS, "UCX      log:2", NULL },
};

static void assert_words(const char *text, const char *words, bool there)
{
	_cleanup_free_ char *copy = xstrdup(words ? words : "");
	char *save;

	for (char *word = strtok_r(copy, "|", &save); word; word = strtok_r(NULL, "|", &save)) {
		if ((strstr(text, word) != NULL) != there)
			fail_msg("'%s' %s in:\n%s", word, there ? "is not" : "is", text);
	}
}

static void every_form_has_its_verdict(void **state)
{
	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(forms); i++) {
		_cleanup_strbuf_ struct strbuf out = STRBUF_INIT;
		enum verdict verdict = judge(forms[i].log, &out);

		if (verdict != forms[i].verdict)
			fail_msg("%s: %s, should be %s:\n%s", forms[i].source,
				 verify_verdict_name(verdict),
				 verify_verdict_name(forms[i].verdict), strbuf_str(&out));
		assert_words(strbuf_str(&out), forms[i].words, true);
		assert_words(strbuf_str(&out), forms[i].never, false);
	}
}

/* PowerShell's > writes UTF-16, in either order of bytes, in pieces of any size. */
static void wide_characters_are_read(void **state)
{
	static const char log[] = GOOD;

	(void)state;
	for (int big = 0; big < 2; big++) {
		char wide[2 * sizeof(log)];

		memcpy(wide, big ? "\xfe\xff" : "\xff\xfe", 2);
		for (size_t i = 0; i < sizeof(log) - 1; i++) {
			wide[2 + 2 * i + (big != 0)] = log[i];
			wide[2 + 2 * i + (big == 0)] = '\0';
		}
		for (size_t step = 1; step < 2000; step = step * 2 + 1) {
			_cleanup_verify_ struct verify *v = verify_new();

			verify_begin(v, "log");
			for (size_t at = 0; at < sizeof(wide); at += step)
				verify_feed(v, wide + at,
					    sizeof(wide) - at < step ? sizeof(wide) - at : step);
			verify_end(v);
			assert_int_equal(verify_judge(v), VERDICT_PASS);
		}
	}
}

/* --- what holds of every log --- */

/* The log with `extra` before its line number n. */
static void insert(struct strbuf *out, const char *log, const char *extra, size_t n)
{
	const char *at = log;

	for (; n && *at; n--)
		at += strcspn(at, "\n") + 1;
	strbuf_add(out, log, (size_t)(at - log));
	strbuf_puts(out, extra);
	strbuf_puts(out, at);
}

static size_t lines_of(const char *log)
{
	size_t n = 0;

	for (; *log; log++)
		n += *log == '\n';
	return n;
}

/* "a&b#" as a line: "a b 7 x". */
static void put_alternative(struct strbuf *out, const char *words, enum voice voice)
{
	if (*words == '!' || voice == VOICE_WARN)
		strbuf_puts(out, W);
	else if (voice == VOICE_NCCL)
		strbuf_puts(out, A);
	for (words += *words == '!'; *words && *words != '|'; words++) {
		if (*words == '#')
			strbuf_puts(out, " 7");
		else
			strbuf_putc(out, *words == '&' ? ' ' : *words);
	}
	strbuf_puts(out, " x\n");
}

/* Of the catalogue, the first alternative of each sign of failure, between any two lines. */
static void a_sign_of_failure_is_never_pass_wherever_it_stands(void **state)
{
	static const char good[] = GOOD TABLE("all_reduce_perf", "49.0");

	(void)state;
	for (unsigned id = 0; id < SIGN_MAX; id++) {
		const struct sign *s = verify_sign_of(id);

		for (size_t n = 0; s->words && s->level == LEVEL_FAIL && n <= lines_of(good); n++) {
			_cleanup_strbuf_ struct strbuf log = STRBUF_INIT, out = STRBUF_INIT,
						       line = STRBUF_INIT;

			put_alternative(&line, s->words, s->voice);
			insert(&log, good, strbuf_str(&line), n);
			if (judge(strbuf_str(&log), &out) == VERDICT_PASS)
				fail_msg("%s: PASS before line %zu", s->id, n);
		}
	}
}

static void a_witness_of_a_bad_end_is_never_pass_wherever_it_stands(void **state)
{
	static const char *const witnesses[] = {
		"# Out of bounds values : 24 FAILED\n",
		"a: Test NCCL failure common.cu:958 'unhandled system error'\n",
		A "group.cc:65 -> 2 [Async thread]\n",
		A "init.cc:1358 -> 3\n",
		"[a:1:0:1] Caught signal 11 (Segmentation fault: address not mapped)\n",
		"RuntimeError: NCCL communicator was aborted\n",
		"Traceback (most recent call last):\n",
		"ncclRemoteError: A call failed possibly due to a network error.\n",
		"[rank0]:[E ProcessGroupNCCL.cpp:607] [Rank 0] Watchdog caught collective operation timeout\n",
		"slurmstepd: error: *** JOB 7 CANCELLED AT 2026-01-01T00:00:00 ***\n",
		"command terminated with exit code 137\n",
		"  Reason:  OOMKilled\n",
		W "Duplicate GPU detected : rank 1 and rank 0 both on CUDA device 1b000\n",
		W "NET/IB : mlx5_0:1 async fatal event: device fatal\n",
		W "Call to ibv_create_qp failed\n",
		W "a text that nobody knows\n",
		"Segmentation fault (core dumped)\n",
		"torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2 GiB\n",
	};
	static const char good[] = GOOD TABLE("all_reduce_perf", "49.0");

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(witnesses); i++) {
		for (size_t n = 0; n <= lines_of(good); n++) {
			_cleanup_strbuf_ struct strbuf log = STRBUF_INIT, out = STRBUF_INIT;

			insert(&log, good, witnesses[i], n);
			if (judge(strbuf_str(&log), &out) == VERDICT_PASS)
				fail_msg("PASS with %s before line %zu", witnesses[i], n);
		}
	}
}

static void each_word_of_the_catalogue_counts(void **state)
{
	(void)state;
	for (unsigned id = 0; id < SIGN_MAX; id++) {
		const struct sign *s = verify_sign_of(id);

		for (const char *at = s->words; at; at = strchr(at, '|')) {
			_cleanup_strbuf_ struct strbuf log = STRBUF_INIT, out = STRBUF_INIT;
			enum verdict verdict;

			at += *at == '|';
			strbuf_puts(&log, GOOD);
			put_alternative(&log, at, s->voice);
			verdict = judge(strbuf_str(&log), &out);
			if (s->level == LEVEL_FAIL && verdict != VERDICT_FAIL)
				fail_msg("%s: %s is %s", s->id, at, verify_verdict_name(verdict));
			if (!strstr(strbuf_str(&out), "\n  end"))
				fail_msg("%s: no end", s->id);
		}
	}
}

static void every_finding_is_in_troubleshooting(void **state)
{
	_cleanup_strbuf_ struct strbuf text = STRBUF_INIT;
	FILE *f = fopen(TEST_DATA "/../docs/troubleshooting.md", "re");
	char buf[4096];
	size_t n;

	(void)state;
	assert_non_null(f);
	while ((n = fread(buf, 1, sizeof(buf), f)) > 0)
		strbuf_add(&text, buf, n);
	fclose(f);
	for (unsigned id = 0; id < SIGN_MAX; id++) {
		_cleanup_free_ char *row = xasprintf("| `%s` |", verify_sign_of(id)->id);

		if (verify_sign_of(id)->level != LEVEL_NOTE && !strstr(strbuf_str(&text), row))
			fail_msg("docs/troubleshooting.md has no row %s", row);
	}
}

static unsigned next(unsigned *seed)
{
	*seed = *seed * 1103515245u + 12345u;
	return *seed >> 16;
}

static void the_order_of_ranks_changes_no_verdict(void **state)
{
	static const char *const bad[] = {
		"",
		W "NET/IB : Got async event : port error\n",
		A "group.cc:65 -> 2\n",
		A "misc/socket.cc:80 -> 3\n" A
		  "comm 0x1 rank 0 nranks 2 cudaDev 0 busId 6000 - Abort COMPLETE\n",
		A "init.cc:670 -> 2\n" W
		  "Cannot initialize CollNet, using point-to-point network instead\n",
		A "NET/Socket : Using [0]eth0:192.0.2.1<0>\n",
		W "Got completion from peer b<1> with status=12 opcode=0 len=0\n",
		W "a text that nobody knows\n" A "group.cc:65 -> 3 [Async thread]\n",
		"[rank0]:[E ProcessGroupNCCL.cpp:607] [Rank 0] Watchdog caught collective operation timeout\n",
		UCX "inter-node cfg#0 am(tcp/enp7s0 tcp/enp8s0)\n",
		UCX "inter-node cfg#6 tag(rc_mlx5/mlx5_0:1)\n",
		HEADINGS ROW("1073741824", "sum", "-1", "9.0", "9.0"),
	};
	unsigned seed = 1;

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
		_cleanup_free_ char *first = xasprintf("%s%s", RANK(A, "0"), bad[i]);
		static const char second[] = RANK(B, "1");
		_cleanup_free_ char *straight = xasprintf("%s%s", first, second);
		_cleanup_strbuf_ struct strbuf out = STRBUF_INIT;
		enum verdict verdict = judge(straight, &out);

		for (int round = 0; round < 200; round++) {
			_cleanup_strbuf_ struct strbuf log = STRBUF_INIT, mixed = STRBUF_INIT;
			const char *from[2] = { first, second };

			while (*from[0] || *from[1]) {
				unsigned which = !*from[0] || (*from[1] && next(&seed) % 2);
				size_t n = strcspn(from[which], "\n") + 1;

				strbuf_add(&log, from[which], n);
				from[which] += n;
			}
			assert_int_equal(judge(strbuf_str(&log), &mixed), verdict);
		}
	}
}

static void a_table_improves_no_verdict(void **state)
{
	static const int weight[VERDICT_MAX] = { [VERDICT_PASS] = 0,
						 [VERDICT_NOGDR] = 1,
						 [VERDICT_WARN] = 2,
						 [VERDICT_INCONCLUSIVE] = 3,
						 [VERDICT_FAIL] = 4 };
	static const char *const logs[] = {
		GOOD,
		GOOD TABLE("all_reduce_perf", "49.0"),
		GOOD TABLE("all_reduce_perf", "40.0"),
		GOOD TABLE("all_reduce_perf", "9.0"),
		GOOD HEADINGS,
		GOOD HEADINGS ROW("67108864", "sum", "-1", "47.9", "47.9")
			ROW("1073741824", "sum", "-1", "0.4", "0.4"),
	};
	static const char *const tables[] = { TABLE("all_reduce_perf", "50.0"),
					      TABLE("alltoall_perf", "49.0"),
					      TABLE("all_gather_perf", "900.0"),
					      HEADINGS ROW("64", "sum", "-1", "0.1", "0.1") };

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(logs); i++) {
		_cleanup_strbuf_ struct strbuf alone = STRBUF_INIT;
		enum verdict before = judge(logs[i], &alone);

		for (size_t k = 0; k < ARRAY_LEN(tables); k++) {
			for (int front = 0; front < 2; front++) {
				_cleanup_strbuf_ struct strbuf out = STRBUF_INIT;
				_cleanup_free_ char *log =
					xasprintf("%s%s", front ? tables[k] : logs[i],
						  front ? logs[i] : tables[k]);

				if (weight[judge(log, &out)] < weight[before])
					fail_msg("%zu with table %zu, %d:\n%s", i, k, front,
						 strbuf_str(&out));
			}
		}
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_form_has_its_verdict),
		cmocka_unit_test(wide_characters_are_read),
		cmocka_unit_test(a_witness_of_a_bad_end_is_never_pass_wherever_it_stands),
		cmocka_unit_test(a_sign_of_failure_is_never_pass_wherever_it_stands),
		cmocka_unit_test(each_word_of_the_catalogue_counts),
		cmocka_unit_test(every_finding_is_in_troubleshooting),
		cmocka_unit_test(the_order_of_ranks_changes_no_verdict),
		cmocka_unit_test(a_table_improves_no_verdict),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
