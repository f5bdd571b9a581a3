#!/usr/bin/python3
"""railmated where the machine grants less than usual: threads that cannot start, signals that come
too early."""

import os
import pathlib
import signal
import subprocess
import unittest

from harness import PATIENCE, VF, Case, Daemon, main, program, until, vfs_of
from test_metrics import HOST, free_port, get


@unittest.skipIf("SANITIZED" in os.environ,
                 "a sanitizer calls for every library, and has a mallopt() of its own")
class Limits(Case):
    def preloaded(self, node, *options, **environment):
        daemon = Daemon(node.daemon_argv(*options), node.path(f"railmated{len(node.processes)}.log"),
                        stdin=subprocess.DEVNULL,
                        env={**os.environ, "LD_PRELOAD": program("preload"), **environment})
        node.processes.append(daemon)
        return daemon

    def threads(self, node, first, last):
        return self.preloaded(node, FAIL_THREAD_FROM=str(first), FAIL_THREAD_TO=str(last))

    def test_a_thread_of_grpcs_service_that_cannot_start_is_a_sentence(self):
        for number, name in ((1, "rpc-accept"), (2, "rpc")):
            node = self.node(None)
            daemon = self.threads(node, number, number)
            self.assertEqual(daemon.child.wait(PATIENCE), 1, daemon.stderr())
            node.processes.remove(daemon)
            (line,) = [line for line in daemon.stderr().splitlines() if " error " in line]
            self.assertIn(f'error daemon: railmated cannot run error="start the thread {name}:',
                          line)

    def test_the_ledgers_writer_is_started_as_soon_as_it_can_be(self):
        node = self.node()
        kubelet = node.start_kubelet()
        node.start_gpu_plugin()
        daemon = self.threads(node, 3, 4)
        kubelet.wait(VF, 1)
        held = set(vfs_of(kubelet.admit("p", f"main:{VF}=2")))
        self.assertEqual(len(held), 2)
        until(lambda: "start the thread that writes the ledger" in daemon.stderr(), "the sentence")
        ledger = pathlib.Path(node.state_dir, "ledger.json")
        until(lambda: ledger.exists() and all(vf in ledger.read_text() for vf in held),
              "the ledger is stored later")
        self.assertEqual(daemon.end(), 0, daemon.stderr())

    def test_a_disk_that_hangs_is_told_until_it_does_not(self):
        node, port = self.node(), free_port()
        hangs = pathlib.Path(node.path("hangs"))
        self.addCleanup(hangs.unlink, missing_ok=True)  # or it cannot end
        kubelet = node.start_kubelet()
        self.preloaded(node, f"--metrics-address={HOST}:{port}", HANG_FSYNC=str(hangs))
        shows = lambda path, line: until(
            lambda: (answer := get(port, path)) and line in answer[1].splitlines(), line)
        kubelet.wait(VF, 1)
        shows("/readyz", "[+]ledger ok")
        shows("/metrics", "railmate_ledger_failing 0")
        hangs.touch()
        kubelet.admit("p", f"main:{VF}=2")
        shows("/readyz", "[-]ledger failed: the disk does not store it in time")
        shows("/metrics", "railmate_ledger_failing 1")
        hangs.unlink()
        shows("/readyz", "[+]ledger ok")
        shows("/metrics", "railmate_ledger_failing 0")

    def test_whoever_sees_vfs_can_ask_at_the_local_socket(self):
        node = self.node()
        kubelet = node.start_kubelet()
        self.preloaded(node, SLOW_LISTEN=node.control_socket)
        kubelet.wait(VF, 1)
        done = subprocess.run([program("railmatectl"), "explain", "pool", VF, "--control-socket",
                               node.control_socket], stdin=subprocess.DEVNULL, capture_output=True,
                              text=True, timeout=PATIENCE, check=False)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn(f"{VF} (binding", done.stdout)

    def test_a_hangup_that_comes_too_early_ends_nothing(self):
        node = self.node()
        kubelet = node.start_kubelet()
        self.preloaded(node, RAISE_AT_START=str(int(signal.SIGHUP)))
        kubelet.wait(VF, 1)

    def test_an_end_that_comes_too_early_is_an_end_like_any_other(self):
        for number, word in ((signal.SIGTERM, "Terminated"), (signal.SIGINT, "Interrupt")):
            node = self.node()
            daemon = self.preloaded(node, RAISE_AT_START=str(int(number)))
            self.assertEqual(daemon.child.wait(PATIENCE), 0, daemon.stderr())
            self.assertIn(f"daemon: stopping signal={word}", daemon.stderr())


if __name__ == "__main__":
    main()
