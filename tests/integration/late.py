"""What the tests of late binding share: pools with binding: late, pods that start, and what their
containers get."""

import json
import os

from harness import GPU, PATIENCE, VF, Case, container, gpus_of
from optimum import assignment, best_total


def pool(name="vf", **selectors):
    return {
        "resourcePrefix": "rdma", "resourceName": name, "selectors": {"isRdma": True, **selectors},
        "railmate": {"binding": "late"}
    }


class LateCase(Case):
    def config(self, node, *pools):
        path = node.path("config.json")
        with open(path, "w", encoding="utf-8") as f:
            json.dump({"resourceList": pools or [pool()]}, f)
        return path

    def late(self, fixture="hgx-h100", *kubelet_options, pools=(), daemon=(), resource=VF):
        """Everything up, slots allocatable. Returns the node."""
        node = self.node(fixture)
        node.start(*kubelet_options, daemon=("--config-file", self.config(node, *pools), *daemon),
                   resource=resource)
        return node

    def start(self, node, pod, which="*", timeout_ms=PATIENCE * 1000):
        """The containers of a pod that was admitted start. Returns {name: what it got}."""
        answer = node.kubelet.ask(f"start {pod} {which} {timeout_ms}", timeout_ms / 1000 + PATIENCE)
        return {c["name"]: c for c in answer["containers"]}

    def run_pod(self, node, pod, *containers, order="random"):
        """Admitted and started. Returns (admission, the container main)."""
        admission = node.kubelet.admit(pod, *containers, order=order)
        container(admission)  # it was admitted
        started = self.start(node, pod)
        for c in started.values():
            self.assertTrue(c["started"], c["message"])
        return admission, started.get("main")

    def ledger(self, node):
        with open(os.path.join(node.state_dir, "ledger.json"), encoding="utf-8") as f:
            return json.load(f)


def vfs_in(started, resource=VF):
    """The VFs that a container got."""
    value = started["env"].get("PCIDEVICE_" + resource.upper().replace(".", "_").replace("/", "_"),
                               "")
    return value.split(",") if value else []


class Yard:
    """Pods on one node, with the VFs that are free before each."""

    def __init__(self, case, node, gpu=GPU):
        self.case, self.node, self.gpu = case, node, gpu
        self.machine = node.topo()
        self.free = {v["pci"] for v in self.machine.topo["vfs"]}
        self.pods = {}

    def judge(self, pod, admission, started, vfs):
        """Demands the optimum."""
        mine, chosen = gpus_of(self.machine, admission, resource=self.gpu), vfs_in(started)
        self.case.assertEqual(len(chosen), vfs)
        self.case.assertLessEqual(set(chosen), self.free, "a VF that was not free")
        if mine:
            total, pairs = assignment(self.machine, mine, chosen)
            best = best_total(self.machine, mine, self.free, vfs)
            self.case.assertEqual(total, best, f"{pod}: {pairs}, but {best} was possible")
        self.pods[pod] = chosen
        self.free -= set(chosen)

    def run(self, pod, gpus, vfs, order="random"):
        asks = ([f"{self.gpu}={gpus}"] if gpus else []) + [f"{VF}={vfs}"]
        admission, started = self.case.run_pod(self.node, pod, "main:" + ",".join(asks),
                                               order=order)
        self.judge(pod, admission, started, vfs)

    def remove(self, pod):
        self.node.kubelet.ask(f"remove {pod}")
        self.free |= set(self.pods.pop(pod))
