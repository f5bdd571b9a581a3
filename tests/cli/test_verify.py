"""railmatectl verify from its users' side: logs from files and pipes, maps, exit codes, port
counters, bounded memory."""
import fcntl
import json
import os
import pathlib
import resource
import signal
import struct
import subprocess
import tempfile
import termios
import time
import unittest

from program import CTL, ProgramTest, run

IS_SLOW = "RAILMATE_SLOW" in os.environ  # emulated, or with sanitizers
LOGS = pathlib.Path(__file__).resolve().parent.parent / "unit/verify/logs"
P = "p-0:1:20 [0] NCCL INFO "
HEAD = (P + "NET/IB : Using [0]mlx5_4:1/RoCE [RO]; OOB eth0:10.1.0.4<0>\n" + P +
        "Using network IB\n" + P +
        "comm 0x1 rank 0 nranks 2 cudaDev 0 nvmlDev 0 busId 1b000 commId 0x1 - Init START\n" + P +
        "comm 0x1 rank 0 nRanks 2 nNodes 2 localRanks 1 localRank 0 MNNVL 0 " +
        P.replace("p-0", "q-0") + "Using network IB " + P.replace("p-0", "q-0") +
        "comm 0x1 rank 1 nRanks 2 nNodes 2 localRanks 1 localRank 0 MNNVL 0\n")
CHANNEL = P + "Channel 00/0 : 0[0] -> 1[0] [send] via NET/IB/0/GDRDMA\n"
MAP = {
    "version": 1, "gpus": [{
        "gpu": "0000:1b:00.0", "vf": "0000:3b:00.2", "hca": "mlx5_4", "port": 1, "netdev": "net1",
        "path": "PIX", "later": {}
    }]
}
CODES = {"PASS": 0, "PASS-noGDR": 4, "WARN": 5, "FAIL": 6, "INCONCLUSIVE": 7}


def little_memory():
    """Address space, but for sanitizers, which reserve it all."""
    resource.setrlimit(resource.RLIMIT_AS, (96 << 20, 96 << 20))


def unread(pipe):
    """Bytes in it that nobody has read."""
    return struct.unpack("i", fcntl.ioctl(pipe, termios.FIONREAD, bytes(4)))[0]


class Logs(ProgramTest):
    def verdict(self, done):
        value = json.loads(done.stdout)
        self.assertEqual(done.returncode, CODES[value["verdict"]], done.stderr)
        return value

    def test_every_verdict_has_its_exit_code(self):
        for name, verdict in (("nccl-2.30-pass", "PASS"), ("nccl-2.26-nogdr", "PASS-noGDR"),
                              ("nccl-2.28-fused", "WARN"), ("nccl-2.21-socket", "FAIL"),
                              ("nccl-2.27-onenode", "INCONCLUSIVE")):
            done = run(CTL, "verify", LOGS / f"{name}.log")
            self.assertEqual(done.returncode, CODES[verdict], done.stdout)
            self.assertTrue(done.stdout.startswith(f"verdict: {verdict}\n"), done.stdout)
            self.assertEqual(
                self.verdict(run(CTL, "verify", "--json", LOGS / f"{name}.log"))["verdict"],
                verdict)

    def test_standard_input_is_read_when_no_file_is_named(self):
        for argv in ((), ("-",)):
            with open(LOGS / "nccl-2.18-pass.log", "rb") as log:
                value = self.verdict(run(CTL, "verify", "--json", *argv, stdin=log))
            self.assertEqual([g["host"] for g in value["gpus"]], ["node-a", "node-b"])
            self.assertEqual(value["gpus"][0]["hcas"][0]["hca"], "mlx5_4:1")

    def test_several_files_are_one_job(self):
        value = self.verdict(
            run(CTL, "verify", "--json", LOGS / "nccl-2.18-pass.log", LOGS / "nccl-2.26-nogdr.log"))
        self.assertEqual((value["verdict"], value["channels"], value["channels_gdr"]),
                         ("PASS-noGDR", 6, 4))
        self.assertIn("nccl-2.26-nogdr.log", value["findings"][0]["source"])

    def test_ctrl_c_ends_the_log_and_gives_the_verdict(self):
        for sig in (signal.SIGINT, signal.SIGTERM):
            with subprocess.Popen([CTL, "verify"], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                  text=True) as proc:
                proc.stdin.write(HEAD + CHANNEL)
                proc.stdin.flush()
                while unread(proc.stdin):  # who reads has its handlers
                    time.sleep(0.01)
                time.sleep(0.1)
                proc.send_signal(sig)
                self.assertEqual(proc.wait(60), 0)
                self.assertIn("verdict: PASS", proc.stdout.read())

    def test_a_map_of_the_pod_is_compared(self):
        log = self.write(HEAD + CHANNEL, "log")
        good = self.write(json.dumps(MAP), "map.json")
        other = self.write(json.dumps({"version": 1, "gpus": [{"hca": "mlx5_9", "port": 1}]}),
                           "map.json")
        self.assertEqual(
            self.verdict(run(CTL, "verify", "--json", "--map", good, log))["findings"], [])
        value = self.verdict(run(CTL, "verify", "--json", "--map", other, log))
        self.assertEqual([f["id"] for f in value["findings"]], ["hca-missing", "hca-foreign"])
        value = self.verdict(run(CTL, "verify", "--json", "--map", f"p-0={good},{other}", log))
        self.assertEqual(value["verdict"], "PASS")

    def test_what_cannot_be_read_is_named(self):
        self.refused(run(CTL, "verify", "/no/such.log"), 1, "/no/such.log")
        self.refused(run(CTL, "verify", "/tmp"), 1, "/tmp")
        self.refused(run(CTL, "verify", "--map", "/no/map.json"), 1, "/no/map.json")
        self.refused(run(CTL, "verify", "--map", self.write("{}", "map.json")), 3, "map.json",
                     "version 1")
        self.refused(run(CTL, "verify", "--map", self.write(" " * (5 << 20), "map.json")), 1,
                     "4 MiB")
        self.assertEqual(run(CTL, "verify", "--no-such-option").returncode, 2)


class Streams(ProgramTest):
    """Whatever comes in: the same verdict, in the same memory."""

    def stream(self, pieces):
        limit = {} if IS_SLOW else {"preexec_fn": little_memory}
        with subprocess.Popen([CTL, "verify", "--json"], stdin=subprocess.PIPE,
                              stdout=subprocess.PIPE, **limit) as proc:
            for piece in pieces:
                proc.stdin.write(piece)
            proc.stdin.close()
            value = json.loads(proc.stdout.read())
            self.assertEqual(proc.wait(60), CODES[value["verdict"]])
        return value

    def test_a_long_stream_takes_no_more_memory(self):
        size = (10 if IS_SLOW else 300) << 20
        lines = (CHANNEL * 2000 + "loss 0.25\n" * 2000).encode()
        count = size // len(lines)
        value = self.stream([HEAD.encode(), *[lines] * count])
        self.assertEqual((value["verdict"], value["channels"]), ("PASS", 2000 * count))

    def test_a_line_of_100_megabytes(self):
        value = self.stream([HEAD.encode(), *[b"x" * (1 << 20)] * 100, b"\n", CHANNEL.encode()])
        self.assertEqual((value["verdict"], value["lines"]), ("PASS", 6))

    def test_binary_junk_and_nuls(self):
        junk = os.urandom(1 << 20)
        value = self.stream(
            [HEAD.encode(), junk, b"\n", b"\0" * (1 << 20), b"\n\0" + CHANNEL.encode()])
        self.assertEqual((value["verdict"], value["channels"]), ("PASS", 1))

    def test_a_line_that_is_cut_proves_nothing(self):
        for cut in range(1, len(CHANNEL) - 1, 7):
            value = self.stream([HEAD.encode(), CHANNEL[:-cut - 1].encode()])
            self.assertEqual(value["verdict"], "INCONCLUSIVE")


class Counters(ProgramTest):
    def setUp(self):
        top = tempfile.TemporaryDirectory(prefix="railmate-cli-")
        self.addCleanup(top.cleanup)
        self.root = pathlib.Path(top.name)
        self.file = self.root / "before.json"

    def port(self, hca, words, pci="0000:3b:00.2", **hw):
        port = self.root / "sys/class/infiniband" / hca / "ports/1"
        (port / "counters").mkdir(parents=True, exist_ok=True)
        (port / "hw_counters").mkdir(exist_ok=True)
        if words is not None:
            (port / "counters/port_xmit_data").write_text(f"{words}\n")
            (port / "counters/port_rcv_data").write_text(f"{words // 2}\n")
        for name, value in hw.items():
            (port / "hw_counters" / name).write_text(f"{value}\n")
        function = self.root / "sys/devices/pci0000:3a" / pci
        function.mkdir(parents=True, exist_ok=True)
        device = port.parent.parent / "device"
        if not device.is_symlink():
            device.symlink_to(os.path.relpath(function, device.parent))

    def begin(self):
        done = run(CTL, "verify", "--root", self.root, "--counters", "begin", self.file)
        self.assertEqual((done.returncode, done.stderr), (0, ""))

    def end(self, *argv, code=0):
        done = run(CTL, "verify", "--root", self.root, "--json", "--counters", "end", self.file,
                   *argv)
        self.assertEqual(done.returncode, code, done.stderr)
        return json.loads(done.stdout)

    def test_what_left_by_each_vf_is_in_bytes(self):
        self.port("mlx5_4", 1000, out_of_sequence=2)
        self.port("mlx5_10", 5, "0000:3b:00.3")
        self.begin()
        self.port("mlx5_4", 1_000_001_000, out_of_sequence=9)
        ports = self.end()["counters"]
        self.assertEqual([p["hca"] for p in ports], ["mlx5_4", "mlx5_10"])
        self.assertEqual((ports[0]["pci"], ports[0]["sent_bytes"], ports[0]["received_bytes"]),
                         ("0000:3b:00.2", 4_000_000_000, 2_000_000_000))
        self.assertEqual((ports[0]["out_of_sequence"], ports[1]["sent_bytes"]), (7, 0))
        text = run(CTL, "verify", "--root", self.root, "--counters", "end", self.file).stdout
        self.assertIn("mlx5_4:1 0000:3b:00.2  sent 4000000000 bytes (4.000 GB)", text)
        self.assertIn("out_of_sequence +7", text)

    def test_a_driver_with_a_counter_of_its_own(self):
        self.port("rocep1s0v1", None, tx_bytes=10, rx_bytes=20)
        self.begin()
        self.port("rocep1s0v1", None, tx_bytes=110, rx_bytes=220)
        (port,) = self.end()["counters"]
        self.assertEqual((port["sent_bytes"], port["received_bytes"]), (100, 200))

    def test_what_cannot_be_compared_is_said(self):
        for hca in ("gone", "reset", "moved", "silent"):
            self.port(hca, None if hca == "silent" else 50)
        self.begin()
        (self.root / "sys/class/infiniband/gone").rename(self.root / "sys/class/infiniband/new")
        self.port("reset", 10)
        link = self.root / "sys/class/infiniband/moved/device"
        link.unlink()
        self.port("moved", 60, "0000:3b:00.7")
        self.assertEqual({p["hca"]: p["change"]
                          for p in self.end()["counters"]}, {
                              "gone": "gone", "new": "new", "reset": "reset", "moved": "reset",
                              "silent": "uncounted"
                          })

    def test_an_allocated_vf_that_sent_nothing_is_a_warning(self):
        both = self.write(
            json.dumps(
                {"version": 1, "gpus": MAP["gpus"] + [{"gpu": "0000:1c:00.0", "hca": "mlx5_5"}]}),
            "map.json")
        log = self.write(HEAD.replace("[RO]", "[1]mlx5_5:1/RoCE [RO]") + CHANNEL
                         + CHANNEL.replace("IB/0", "IB/1"), "log")
        self.port("mlx5_4", 10)
        self.port("mlx5_5", 10, "0000:3b:00.3")
        self.begin()
        value = self.end("--map", both)
        self.assertEqual([p["sent_bytes"] for p in value["counters"]], [0, 0])
        self.port("mlx5_4", 20)
        self.end("--map", both, code=5)
        value = self.end("--map", both, log, code=5)
        self.assertEqual([f["id"] for f in value["findings"]], ["port-idle"])
        self.assertEqual([p["gpu"] for p in value["counters"]], ["0000:1b:00.0", "0000:1c:00.0"])
        self.port("mlx5_5", 11, "0000:3b:00.3")
        self.assertEqual(self.end("--map", both, log)["verdict"], "PASS")

    def link(self, name, sent, received=0, hca=None):
        at = self.root / "sys/class/net" / name
        (at / "statistics").mkdir(parents=True, exist_ok=True)
        (at / "statistics/tx_bytes").write_text(f"{sent}\n")
        (at / "statistics/rx_bytes").write_text(f"{received}\n")
        if hca:
            (at / "device/infiniband" / hca).mkdir(parents=True, exist_ok=True)

    def test_bytes_that_went_by_tcp_are_seen(self):
        gig = 1 << 30
        for rdma, eth0, net1, code in ((40 * gig, gig, 0, 0), (40 * gig, 3 * gig, 0, 5),
                                       (0, gig, 0, 5), (0, gig // 32, 0, 0), (40 * gig, 0, 30 * gig,
                                                                              0)):
            with self.subTest(rdma=rdma, eth0=eth0, net1=net1):
                self.port("mlx5_4", 1000)
                self.link("eth0", 500, 100)
                self.link("net1", 7, 0, "mlx5_4")
                self.link("lo", 5)
                self.begin()
                self.port("mlx5_4", 1000 + rdma // 4)
                self.link("eth0", 500 + eth0, 100 + eth0)
                self.link("net1", 7 + net1, 0)
                self.link("lo", 99 * gig)
                links = {
                    i["name"]: (i["rdma"], i["sent_bytes"], i["received_bytes"])
                    for i in self.end(code=code)["interfaces"]
                }
                want = {"eth0": (False, eth0, eth0)} if eth0 else {}
                self.assertEqual(links, want | ({"net1": (True, net1, 0)} if net1 else {}))
                text = run(CTL, "verify", "--root", self.root, "--counters", "end",
                           self.file).stdout
                self.assertEqual("much for a job over RDMA" in text, code == 5)
        log = self.write(HEAD + CHANNEL, "log")
        self.link("eth0", 500 + 70 * gig, 100)
        self.assertEqual([f["id"] for f in self.end(log, code=5)["findings"]],
                         ["set-not-compared", "tcp-traffic"][::-1])

    def test_a_file_of_an_older_release_has_no_interfaces(self):
        self.port("mlx5_4", 10)
        self.link("eth0", 1 << 40)
        self.begin()
        told = json.loads(self.file.read_text())
        del told["interfaces"]
        self.file.write_text(json.dumps(told))
        self.assertEqual(self.end()["interfaces"], [])

    def test_no_byte_anywhere_is_said(self):
        self.port("mlx5_4", 10)
        self.begin()
        done = run(CTL, "verify", "--root", self.root, "--counters", "end", self.file)
        self.assertIn("no port counted a byte", done.stdout)

    def test_what_is_wrong_is_named(self):
        self.refused(run(CTL, "verify", "--root", self.root, "--counters", "begin", self.file), 1,
                     "no port of an RDMA device")
        self.port("mlx5_4", 10)
        verify = (CTL, "verify", "--root", self.root, "--counters")
        self.refused(run(*verify, "begin", "/no/such/file"), 1, "/no/such/file")
        self.refused(run(*verify, "end", "/no/such/file"), 1, "/no/such/file")
        self.refused(run(*verify, "middle", self.file), 2, "middle")
        self.refused(run(*verify, "begin"), 2, "needs a file")
        self.refused(run(*verify, "begin", self.file, "log"), 2, "nothing else")
        for text in (
                "{}", "", '{"kind": "railmate-counters", "version": 2, "ports": []}',
                '{"kind": "railmate-counters", "version": 1, "ports": [{}]}',
                '{"kind": "railmate-counters", "version": 1, "ports": [], "interfaces": [{"name": "eth0"}]}'
        ):
            self.refused(run(*verify, "end", self.write(text, "c.json")), 3, "c.json")


if __name__ == "__main__":
    unittest.main()
