#!/usr/bin/python3
"""
What any tenant can write into a pod of the node, as the API server and the Pods API show it: the daemon's memory stays bounded, that pod is left out by its name, and the pods
of others are known as before. How long admissions take meanwhile is printed.
"""

import contextlib
import json
import os
import re
import subprocess
import sys
import time
import unittest

import https
import kubepb
from harness import GPU, VF, Case, Daemon, main, until, vfs_of
from https import reply

SANITIZED = os.environ.get("SANITIZED") == "1"
RSS_MAX_MIB = 32
MEMORY_LIMIT = 64 << 20  # of the DaemonSet
CGROUPS = "/sys/fs/cgroup"


def pod(name, *containers, namespace="default", created="2026-01-02T03:04:05Z", status=None,
        metadata=None, **spec):
    return {
        "metadata": {
            "name": name, "namespace": namespace, "uid": f"uid-{name}",
            "creationTimestamp": created, **(metadata or {})
        }, "spec": {"containers": list(containers), **spec},
        "status": status or {"phase": "Pending"}
    }


def container(name="main", **resources):
    return {"name": name, "resources": resources}


def limits(**counts):
    return {"limits": {{"gpu": GPU, "vf": VF}[name]: count for name, count in counts.items()}}


def nested(depth):
    return json.loads('{"f:a":' * depth + "{}" + "}" * depth)


CLAIMS = [{"name": "a1"}] * 100
ZEROS = {f"x.example/{i}": "0" for i in range(8500)}
# Pods of a tenant whose containers cannot be known; all of them pass the API server's rules.
UNREADABLE = {
    "claims": pod("claims", *[container(f"c{i}", claims=CLAIMS) for i in range(1000)]),
    "init-claims": pod("init-claims", container(),
                       initContainers=[container(f"c{i}", claims=CLAIMS) for i in range(1000)]),
    "own-claims": pod("own-claims", container(), resourceClaims=[{
        "name": f"a{i}", "resourceClaimName": "x"
    } for i in range(20000)]),
    "made-claims": pod("made-claims", container(), status={
        "phase": "Pending", "resourceClaimStatuses": [{
            "name": f"a{i}", "resourceClaimName": "x"
        } for i in range(20000)]
    }),
    "containers": pod("containers", *[container(f"c{i}") for i in range(20000)]),
    "odd": pod("odd", container(limits={"x.example/y": "1500m"})),
    **{f"zeros-{i}": pod(f"zeros-{i}", container(limits=ZEROS)) for i in range(5)},
}
# Large where nothing is read, or with counts that are written oddly: known.
READABLE = [
    pod("annotations", container(), metadata={"annotations": {f"a{i}": "" for i in range(30000)}}),
    pod("labels", container(), metadata={"labels": {f"a{i}": "" for i in range(100000)}}),
    pod("managed", container(), metadata={"managedFields": [{"fieldsV1": nested(500)}]}),
    pod("arguments", {**container(), "args": ["\\u003c" * 1_000_000]}),
    pod("environment", {**container(), "env": [{"name": f"E{i}"} for i in range(80000)]}),
    pod("volumes", container(), volumes=[{
        "name": f"v{i}", "emptyDir": {}
    } for i in range(40000)]),
    pod("ephemeral", container(), ephemeralContainers=[{"name": f"e{i}"} for i in range(20000)]),
    *(pod(f"quantity-{i}", container(limits={"x.example/y": text}))
      for i, text in enumerate(("+1", "1.", "5e-0", "1.500k", "0.5Ki", "2000m", "-0"))),
]


def victim(name, gpus, vfs, second):
    """Newer than all others, as what is being admitted is."""
    return pod(name, container(**limits(gpu=str(gpus), vf=f"+{vfs}.")),
               created=f"2026-02-01T00:00:{second:02}Z")


class Tenants(https.Case, Case):
    def setUp(self):
        self.here = self.node()
        self.account(self.here.path("account"))
        self.server_of_pods = self.server()
        self.longest = 0

    def start(self, pods, *options, limit=None):
        """The list is what the server answers from now on."""
        self.serve(pods)
        self.kubelet = self.here.start_kubelet()
        self.here.start_gpu_plugin()
        self.env = {**os.environ, "NODE_NAME": "worker-1", "KUBERNETES_SERVICE_HOST": "127.0.0.1",
                    "KUBERNETES_SERVICE_PORT": str(self.server_of_pods.port)}
        argv = self.here.daemon_argv("--service-account", self.here.path("account"),
                                     "--pod-specs=api-server", "--events=off", "--log-level=debug",
                                     *options)
        self.daemon = Daemon(argv, self.here.path("railmated.log"), stdin=subprocess.DEVNULL,
                             env=self.env, preexec_fn=limit)
        self.here.processes.append(self.daemon)
        self.kubelet.wait(GPU, 1)
        self.kubelet.wait(VF, 1)

    def serve(self, pods):
        self.server_of_pods.answer = reply(200, kubepb.pods(pods))

    def admit(self, name, gpus, vfs):
        began = time.monotonic()
        answer = self.kubelet.admit(name, f"main:{GPU}={gpus},{VF}={vfs}", order="vf-first")
        self.longest = max(self.longest, time.monotonic() - began)
        self.assertEqual(len(vfs_of(answer)), vfs, answer)

    def said(self, text):
        until(lambda: text in self.daemon.stderr(), f"the daemon says '{text}'")

    def left_out(self):
        """Names of pods, in the order of the warnings."""
        return re.findall(
            r" warning specs: the spec of a pod is not read: its containers are found by what they"
            r" hold pod=default/(\S+) uid=uid-\S+ reason=", self.daemon.stderr())

    def assert_known(self, name, gpus, vfs):
        """By its spec, though it has no GPU yet."""
        self.admit(name, gpus, vfs)
        self.said(f"reason=\"default/{name} container main asks for it and holds 0 GPUs\"")

    def assert_small(self, what):
        with open(f"/proc/{self.daemon.pid}/status", encoding="ascii") as f:
            peak = next(int(line.split()[1]) for line in f if line.startswith("VmHWM:")) / 1024
        print(f"{what}: peak {peak:.1f} MiB, longest admission {self.longest * 1000:.0f} ms",
              file=sys.stderr)
        self.assertIsNone(self.daemon.child.poll(), self.daemon.stderr())
        if not SANITIZED:
            self.assertLessEqual(peak, RSS_MAX_MIB, "MiB at most")

    def test_pods_of_others_are_known_beside_every_hostile_one(self):
        """One of them holds a GPU, and is new to the daemon: it casts doubt on one admission."""
        others = [victim("v0", 1, 2, 0), victim("v1", 1, 2, 1), victim("v2", 2, 1, 2)]
        hostile = [*UNREADABLE.values(), *READABLE]
        self.start([], "--pod-resources-timeout=10000")
        self.kubelet.admit("claims", f"main:{GPU}=1", order="gpu-first")
        self.serve(hostile + others[:1])
        self.admit("v0", 1, 2)
        self.serve(hostile + others[:2])
        self.assert_known("v1", 1, 2)
        self.serve(others + hostile)
        self.assert_known("v2", 2, 1)
        self.assertEqual(sorted(self.left_out()), sorted(UNREADABLE))
        self.assertNotIn("cannot read pod specs", self.daemon.stderr())
        self.assert_small("one of each kind")

    def test_a_node_full_of_hostile_pods_costs_no_memory_and_stops_no_pod(self):
        """With the time that an admission has by default, in which the answer does not come."""
        hostile = []
        for i in range(100):
            name = f"claims-{i}"
            hostile.append({**UNREADABLE["claims"],
                            "metadata": {**UNREADABLE["claims"]["metadata"], "name": name,
                                         "uid": f"uid-{name}"}})
        others = [victim(f"v{i}", 1, 2, i) for i in range(5)]
        self.start(hostile + others, "--pod-resources-timeout=200")
        until(lambda: "pod specs are read" in self.daemon.stderr() or "cannot read pod specs" in
              self.daemon.stderr(), "the first answer, or none")
        for i in range(5):
            self.admit(f"v{i}", 1, 2)
        self.assert_small("100 pods of 1,000 containers with 100 claims each")

    def cgroup(self):
        """A folder whose processes have the limit, and the name of the file that has it."""
        for parent, name in ((CGROUPS, "memory.max"),
                             (os.path.join(CGROUPS, "memory"), "memory.limit_in_bytes")):
            group = os.path.join(parent, f"railmate-tenants-{os.getpid()}")
            limit = os.path.join(group, name)
            with contextlib.suppress(OSError):
                os.mkdir(group)
                if os.path.exists(limit):
                    self.addCleanup(self.remove_cgroup, group)
                    with open(limit, "w", encoding="ascii") as f:
                        f.write(str(MEMORY_LIMIT))
                    return group
                os.rmdir(group)
        self.skipTest("no cgroup with a limit of memory can be made here")

    def remove_cgroup(self, group):
        def gone():
            with contextlib.suppress(OSError):
                os.rmdir(group)
            return not os.path.isdir(group)
        self.here.stop_all()
        until(gone, "the cgroup goes")

    @unittest.skipIf(SANITIZED, "sanitizers need more memory")
    def test_the_limit_of_the_daemonset_is_enough(self):
        """Five starts, with a pod that ended railmated 0.3 s after each."""
        group = self.cgroup()

        def limit():
            with open(os.path.join(group, "cgroup.procs"), "w", encoding="ascii") as f:
                f.write(str(os.getpid()))
        self.start([UNREADABLE["claims"], *READABLE], limit=limit)
        for i in range(5):
            until(lambda: self.left_out() == ["claims"], "the warning")
            self.assertEqual(self.daemon.end(), 0, self.daemon.stderr())
            self.here.processes.remove(self.daemon)
            self.daemon = Daemon(self.daemon.argv, self.here.path(f"railmated-{i}.log"),
                                 stdin=subprocess.DEVNULL, env=self.env, preexec_fn=limit)
            self.here.processes.append(self.daemon)
        until(lambda: self.left_out() == ["claims"], "the warning")
        self.assert_small("five starts")


if __name__ == "__main__":
    main()
