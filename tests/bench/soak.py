#!/usr/bin/python3
"""
A node that never rests: pods come and go, the kubelet restarts, instances of railmated follow one
another, configurations change, VFs leave the bus, their devices go into a namespace that nobody
knows, another plugin registers our name. After each event the kubelet offers exactly the VFs that
are healthy and that nothing else has, those are what `explain pool` says is on offer, a pod gets
its VFs, no VF is in two pods, and nothing grows.

    tests/bench/soak.py --build DIR [--minutes 20] [--seed N] [--version 1.36|1.37] [--one-instance]

The last lines are the sum: events by kind, the longest wait for the offer, memory, descriptors and
threads of the first minute beside those of the last one. Exit 1 where something did not hold.
"""
import argparse
import collections
import json
import os
import pathlib
import random
import signal
import subprocess
import sys
import time

TOP = pathlib.Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, str(TOP / "tests/integration"))


def arguments():
    parser = argparse.ArgumentParser(description="A node that never rests.")
    parser.add_argument("--build", type=pathlib.Path, required=True)
    parser.add_argument("--minutes", type=float, default=20)
    parser.add_argument("--seed", type=int, default=int(time.time()))
    parser.add_argument("--version", default="1.37", help="of the fake kubelet")
    parser.add_argument("--one-instance", action="store_true", help="no hand-overs and kills: what one process gathers")
    return parser.parse_args()


ARGS = arguments()
BUILD = ARGS.build.resolve()
os.environ.update(RAILMATED=str(BUILD / "cmd/railmated"), RAILMATECTL=str(BUILD / "cmd/railmatectl"),
                  FAKEKUBELET=str(BUILD / "tests/fakekubelet/fakekubelet"),
                  FAKEGPU=str(BUILD / "tests/fakekubelet/fakegpu"), FIXTURES=str(BUILD / "tests/fixtures"))

from harness import VF, Node, Process, program, until, vfs_of  # noqa: E402 (it reads the environment)
from test_reload import ConfigMap, text  # noqa: E402

POOL = {"resourcePrefix": "rdma", "resourceName": "vf", "selectors": {"isRdma": True, "devices": ["101e"]}}


class Soak:
    def __init__(self, node, chance):
        self.node, self.chance = node, chance
        self.config = ConfigMap(node.path("config"), config_json=text(POOL))
        self.options = ("--config-file", self.config.path())
        self.kubelet = node.start_kubelet("--version", ARGS.version)
        node.start_gpu_plugin()
        self.daemon = node.start_daemon(*self.options)
        self.kubelet.wait(VF, 1)
        self.all = self.kubelet.resource(VF)["allocatable"]
        self.pods, self.n, self.longest = {}, 0, 0.0
        self.removed, self.strange, self.done = {}, {}, collections.Counter()

    # --- events ---

    def pod_comes(self):
        name, want = f"p{self.n}", self.chance.choice((1, 2, 4))
        self.n += 1
        held = {vf for vfs in self.pods.values() for vf in vfs}
        if len(held) + want > self.all // 2:
            return self.pod_goes()
        answer = self.kubelet.admit(name, f"main:nvidia.com/gpu=1,{VF}={want}"
                                    if len(self.pods) < 4 else f"main:{VF}={want}")
        vfs = vfs_of(answer)
        assert len(vfs) == want, answer
        assert not held & set(vfs), f"{held & set(vfs)} is in two pods"
        self.pods[name] = vfs
        return None

    def pod_goes(self):
        if self.pods:
            name = self.chance.choice(sorted(self.pods))
            del self.pods[name]
            self.kubelet.ask(f"remove {name}")

    def kubelet_restarts(self):
        self.kubelet.ask("restart")

    def hand_over(self, sig=signal.SIGTERM):
        first, self.daemon = self.daemon, self.node.start_daemon(*self.options)
        words = f"in use by another railmated, pid {first.pid}"
        until(lambda: words in self.daemon.stderr(), "that the second one waits")
        if self.chance.random() < 0.5:
            self.kubelet.ask(f"hold-ends {self.chance.choice(('before', 'between'))}")
        first.child.send_signal(sig)
        first.child.wait(30)
        time.sleep(self.chance.choice((0, 0.02, 0.2)))
        self.kubelet.ask("hold-ends off")
        self.node.processes.remove(first)

    def killed(self):
        self.hand_over(signal.SIGKILL)

    def configuration_changes(self):
        self.config.put(config_json=text({**POOL, "railmate": {"env": {"NCCL_IB_QPS_PER_CONNECTION": str(self.chance.choice((1, 2, 4)))}}}))

    def stream_is_lost(self):
        self.kubelet.ask(f"disconnect {VF}")

    def list_is_lost(self):
        self.kubelet.ask("lose-lists 1")
        self.vf_leaves_or_comes()

    def vf_leaves_or_comes(self):
        if self.removed:
            vf, what = self.removed.popitem()
            self.node.restore_device(vf, what)
        else:
            vf = self.free_vf()
            self.removed[vf] = self.node.remove_device(vf)
        self.daemon.child.send_signal(signal.SIGHUP)

    def free_vf(self):
        taken = {vf for vfs in self.pods.values() for vf in vfs} | set(self.strange)
        taken |= {vf["vf"] for vf in self.explained() if vf["state"] != "free"}
        return self.chance.choice(sorted({vf["vf"] for vf in self.explained()} - taken))

    def stranger_takes_or_leaves(self):
        """A program that no kubelet started has the devices of a VF in its network namespace."""
        if self.strange:
            vf, devices = self.strange.popitem()
            self.node.bring_back(vf, devices)
        else:
            vf = self.free_vf()
            self.strange[vf] = self.node.take_away(vf)
        self.daemon.child.send_signal(signal.SIGHUP)

    def rival_comes_and_goes(self):
        since = self.kubelet.mark()
        rival = Process([program("fakegpu"), "--root", self.node.root, "--kubelet-dir", self.node.kubelet_dir,
                         "--resource", VF, "--endpoint", "other.sock"], self.node.path("rival.log"))
        self.kubelet.event("registered", since, resource=VF)
        rival.end()
        # Its end stops whatever endpoint has the name (docs/design/kubelet.md §5.2): ours again within 5 s.
        deadline = time.monotonic() + 5
        while True:
            try:
                return self.check()
            except AssertionError:
                if time.monotonic() > deadline:
                    raise

    # --- what has to be true ---

    def explained(self):
        done = subprocess.run([program("railmatectl"), "explain", "pool", "--json", "--control-socket",
                               self.node.control_socket], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                              stderr=subprocess.DEVNULL, text=True)
        pools = json.loads(done.stdout)["pools"] if done.returncode == 0 else []
        return next((pool["vfs"] for pool in pools if pool["resource"] == VF), [])

    def is_one_truth(self):
        """What is free is what is offered beside what containers have, and as many as the kubelet offers."""
        vfs = self.explained()
        strange = [vf for vf in vfs if (vf["state"] == "free") != (vf["offered"] and "since_ms" not in vf)]
        taken = [vf for vf in vfs if vf["vf"] in self.strange and vf["state"] != "in_use"]
        return not strange and not taken and (sum(vf["offered"] for vf in vfs)
                                              == self.kubelet.resource(VF)["allocatable"])

    def check(self):
        began = time.monotonic()
        self.kubelet.wait(VF, f"={self.all - len(self.removed) - len(self.strange)}")
        self.longest = max(self.longest, time.monotonic() - began)
        until(self.is_one_truth, "that explain pool says what the kubelet offers", 5)
        name = f"check{self.n}"
        self.n += 1
        answer = self.kubelet.admit(name, f"main:{VF}=1")
        assert len(vfs_of(answer)) == 1, answer
        self.kubelet.ask(f"remove {name}")

    def size(self):
        d = self.daemon
        return d.rss_kib(), d.fds(), len(os.listdir(f"/proc/{d.pid}/task")), len(os.listdir(self.node.kubelet_dir))


EVENTS = {"pod_comes": 10, "pod_goes": 6, "kubelet_restarts": 1, "hand_over": 2, "killed": 1, "configuration_changes": 1,
          "stream_is_lost": 1, "list_is_lost": 1, "vf_leaves_or_comes": 3, "stranger_takes_or_leaves": 3, "rival_comes_and_goes": 1}


def main():
    chance, began, sizes = random.Random(ARGS.seed), time.monotonic(), []
    if ARGS.one_instance:
        del EVENTS["hand_over"], EVENTS["killed"]
    with Node() as node:
        soak = Soak(node, chance)
        while time.monotonic() - began < 60 * ARGS.minutes:
            event = chance.choices(list(EVENTS), list(EVENTS.values()))[0]
            try:
                getattr(soak, event)()
                soak.check()
            except AssertionError as e:
                print(f"seed {ARGS.seed}: {sum(soak.done.values())} events, then {event}: {e}")
                print(soak.daemon.stderr()[-3000:])
                return 1
            soak.done[event] += 1
            sizes.append((time.monotonic() - began, *soak.size()))
    for name, n in sorted(soak.done.items()):
        print(f"{n:6} {name.replace('_', ' ')}")
    print(f"longest wait until the offer was right: {soak.longest:.2f} s")
    last = sizes[-1][0]
    for words, some in (("first", [s for s in sizes if s[0] <= 60]), ("last", [s for s in sizes if s[0] >= last - 60])):
        print(f"{words} minute, at most: {max(s[1] for s in some)} KiB, {max(s[2] for s in some)} descriptors, "
              f"{max(s[3] for s in some)} threads, {max(s[4] for s in some)} sockets and files of plugins")
    print(f"seed {ARGS.seed}, fake kubelet {ARGS.version}: {sum(soak.done.values())} events, nothing stuck")
    return 0


if __name__ == "__main__":
    sys.exit(main())
