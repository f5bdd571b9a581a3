#!/usr/bin/python3
"""The kubelet restarts 200 times: every time the list is back at once, and nothing leaks."""

import os

from harness import GPU, VF, Case, main, until, vfs_of

RESTARTS = 200
# The sanitizer keeps freed memory back; not so much that a leak could hide in it.
os.environ.setdefault("ASAN_OPTIONS", "quarantine_size_mb=1:thread_local_quarantine_size_kb=64")
SLOWEST_MS = 35000  # of a busy machine with sanitizers; tests/bench measures


class Restarts(Case):
    def test_200_restarts_leak_nothing(self):
        node = self.node()
        kubelet, daemon = node.start()
        held = set(vfs_of(kubelet.admit("stays", f"main:{GPU}=2,{VF}=2")))
        took, fds, rss = [], [], []
        for _ in range(RESTARTS):
            took.append(kubelet.ask("restart")["us"][VF] / 1000)
            fds.append(daemon.fds())
            rss.append(daemon.rss_kib())
        took.sort()
        print(
            f"list back after a restart: p50 {took[RESTARTS // 2]:.1f} ms, p99 {took[RESTARTS * 99 // 100 - 1]:.1f} "
            f"ms, max {took[-1]:.1f} ms; fds {fds[0]}..{max(fds)}; RSS {rss[0]}..{rss[-1]} KiB")
        self.assertGreaterEqual(took[0], 0, "a list did not come back")
        self.assertLess(took[-1], SLOWEST_MS)
        # Calls that a dead kubelet's socket refused take a moment to go.
        until(lambda: daemon.fds() <= fds[0] + 2, "descriptors to be as few as at the start")
        slack = 8 * 1024 if os.environ.get("SANITIZED") else 2 * 1024
        until(lambda: daemon.rss_kib() - rss[20] < slack, "no memory leaks")
        self.assertFalse(held & set(vfs_of(kubelet.admit("last", f"main:{VF}=8"))))


if __name__ == "__main__":
    main()
