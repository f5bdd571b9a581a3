#!/usr/bin/python3
"""railmated as a process: starts, deaths, two of them, and configurations it refuses."""

import os
import signal
import subprocess
import time

from harness import PATIENCE, VF, Case, Daemon, main, until, vfs_of


def sockets(node):
    return {n
            for n in os.listdir(node.kubelet_dir)
            if n.endswith(".sock")} - {"kubelet.sock", "fakegpu.sock"}


def run_it(node, *options):
    """Exit status and what it said, of one that ends by itself."""
    p = subprocess.run(node.daemon_argv(*options), stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                       stderr=subprocess.STDOUT, timeout=PATIENCE, encoding="utf-8",
                       errors="replace")
    return p.returncode, p.stdout


class Lifecycle(Case):
    def test_sigterm_ends_it_and_removes_its_socket(self):
        node = self.node()
        _, daemon = node.start()
        self.assertEqual(len(sockets(node)), 1)
        self.assertEqual(daemon.end(), 0, daemon.stderr())
        self.assertEqual(sockets(node), set())

    def test_sigint_ends_it_too(self):
        node = self.node()
        daemon = node.start_daemon()
        until(lambda: "waiting for the kubelet" in daemon.stderr(), "the daemon waits")
        self.assertEqual(daemon.end(signal.SIGINT), 0, daemon.stderr())

    def test_a_killed_one_is_replaced_with_its_stale_socket(self):
        node = self.node()
        kubelet, daemon = node.start()
        count = kubelet.resource(VF)["allocatable"]
        held = set(vfs_of(kubelet.admit("p", f"main:{VF}=2")))
        daemon.end(signal.SIGKILL)
        kubelet.wait(VF, "=0")
        self.assertEqual(len(sockets(node)), 1, "the socket of the dead one")
        refused = kubelet.admit("gap", f"main:{VF}=1")
        self.assertIn("no healthy devices present", refused["message"])
        node.start_daemon()
        kubelet.wait(VF, f"={count}")
        self.assertEqual(len(sockets(node)), 1)
        self.assertFalse(held & set(vfs_of(kubelet.admit("q", f"main:{VF}=4"))))

    def test_the_end_of_the_old_one_leaves_the_new_ones_socket(self):
        node = self.node()
        kubelet, old = node.start()
        count = kubelet.resource(VF)["allocatable"]
        new = node.start_daemon("--state-dir", "none")
        until(lambda: kubelet.count("list", resource=VF) >= 2, "the second one's list")
        since = kubelet.mark()
        self.assertEqual(old.end(), 0, old.stderr())
        kubelet.event("stream-end", since, resource=VF)
        kubelet.wait(VF, f"={count}")
        self.assertEqual(len(sockets(node)), 1)
        self.assertEqual(len(vfs_of(kubelet.admit("p", f"main:{VF}=2"))), 2)
        self.assertIsNone(new.child.poll())

    def test_a_machine_without_anything_is_a_valid_machine(self):
        node = self.node("odd-empty")
        kubelet = node.start_kubelet()
        ready = node.path("ready")
        daemon = node.start_daemon("--ready-file", ready)
        until(lambda: os.path.exists(ready), "the daemon is ready")
        with open(ready, encoding="ascii") as f:
            self.assertEqual(f.read(), "serving\n")
        time.sleep(0.5)
        self.assertIsNone(daemon.child.poll(), daemon.stderr())
        self.assertIsNone(kubelet.resource(VF))
        self.assertEqual(daemon.end(), 0)

    def test_a_node_that_no_pool_is_meant_for_is_not_looked_at_again(self):
        """This machine, whose events are heard: the safety net of --rescan is for nodes that have
        something to lose."""
        def reads(daemon):
            with open(f"/proc/{daemon.pid}/io", encoding="ascii") as f:
                return next(int(line.split()[1]) for line in f if line.startswith("syscr:"))

        node, alone = self.node(None), ["unshare", "--net"]  # links of others come and go
        if subprocess.run([*alone, "true"], capture_output=True, check=False).returncode != 0:
            alone = []
        daemon = Daemon([*alone, *node.daemon_argv("--root", "/", "--rescan", "1")],
                        node.path("railmated.log"), stdin=subprocess.DEVNULL)
        node.processes.append(daemon)
        until(lambda: "starts" in daemon.stderr(), "the start")
        time.sleep(1)
        said = daemon.stderr()
        if "nothing is offered until there is one" not in said or "changes are found by the scan" in said:
            self.skipTest("this machine has RDMA, or does not tell of changes")
        self.assertNotRegex(said, "warning pool")
        before = reads(daemon)
        time.sleep(3.5)
        idle, before = reads(daemon) - before, reads(daemon)
        daemon.child.send_signal(signal.SIGHUP)
        until(lambda: reads(daemon) - before > idle - 20, "one look that reads more than all before it")

    def test_a_root_that_is_not_there_is_an_error(self):
        node = self.node()
        status, said = run_it(node, "--root", node.path("nowhere"))
        self.assertEqual(status, 1, said)
        self.assertIn("nowhere", said)


class Refused(Case):
    """Every refusal exits non-zero with one sentence that names the thing."""

    CONFIGS = {
        "not JSON": ("{", "config.json:"),
        "empty": ("", "config.json"),
        "no list": ("{}", "resourceList"),
        "empty list": ('{"resourceList": []}', "resourceList"),
        "wrong type": ('{"resourceList": [{"resourceName": 7, "selectors": {}}]}', "resourceName"),
        "bad name": ('{"resourceList": [{"resourceName": "a b", "selectors": {}}]}', "a b"),
        "bad range": (
            '{"resourceList": [{"resourceName": "a", "selectors": {"pfNames": ["ens1#7-3"]}}]}',
            "7-3"),
        "10 MB": ('{"resourceList": [' + " " * 10_000_000 + "]}", "config.json"),
    }
    LEFT_OUT = {
        "twice": ('{"resourceList": [{"resourceName": "a", "selectors": {"isRdma": true}},'
                  ' {"resourceName": "a", "selectors": {"isRdma": true}}]}', "a"),
        "bad gid": (
            '{"resourceList": [{"resourceName": "a", "selectors": {}, "railmate": {"gid": "best"}}]}',
            "gid"),
    }

    def test_configurations(self):
        self.all_refused(self.CONFIGS)

    def test_strictly_what_is_left_out_is_refused(self):
        self.all_refused(self.LEFT_OUT, "--strict-config")

    def all_refused(self, configs, *options):
        node = self.node("odd-empty")
        path = node.path("config.json")
        for name, (text, must_say) in configs.items():
            with self.subTest(name):
                with open(path, "w", encoding="utf-8") as f:
                    f.write(text)
                status, said = run_it(node, "--config-file", path, *options)
                self.assertEqual(status, 3, said)
                self.assertIn(must_say, said)
                self.assertEqual(len(said.strip().splitlines()), 1, said)

    def test_command_lines(self):
        node = self.node("odd-empty")
        for option, value in (("--registration", "sometimes"), ("--pod-resources", "maybe"),
                              ("--rescan", "-1"), ("--log-level", "loud"), ("--no-such-option",
                                                                            "x")):
            with self.subTest(option):
                status, said = run_it(node, option, value)
                self.assertEqual(status, 2, said)
                self.assertIn(option.strip("-"), said)


if __name__ == "__main__":
    main()
