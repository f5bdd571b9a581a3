"""
Pods whose VFs' interfaces move into their namespace: railmate-cni asks railmated for the VF of a
slot, and Debian's host-device plugin moves a real one. Only VFs without soft RDMA: rxe would end
with the move.
"""

import json
import os
import signal
import subprocess

import harness
from harness import until
from bed import AMD, PCI, VF, LiveNode, check, equal, output, scenario, shell, vf_address, write
from events import mend
from optimum import assignment, best_total

PLUGINS = "/usr/lib/cni"
PLACES = [(bus, index) for bus in ("23", "63") for index in (4, 5, 6)]
POOL = {
    "resourceList": [{
        "resourcePrefix": "rdma", "resourceName": "vf", "railmate": {"binding": "late"},
        "selectors": {"rootDevices": ["0000:23:00.0#4-6", "0000:63:00.0#4-6"]}
    }]
}


class CniNode(LiveNode):
    POOL, SLOTS = POOL, len(PLACES)
    uids = {}  # of pods, as the kubelet has them

    def admit(self, pod, *demands, **more):
        admission = super().admit(pod, *demands, **more)
        self.uids[pod] = admission["uid"]
        return admission

    def start_late(self):
        write(self.path("config.json"), json.dumps(self.POOL))
        write(self.path("cni.json"), json.dumps({"controlSocket": self.control_socket,
                                                 "stateDir": self.path("cni")}))
        os.makedirs(self.path("cdi"), exist_ok=True)
        self.start_kubelet()
        self.start_gpu_plugin()
        self.daemon = self.start_daemon("--config-file", self.path("config.json"), "--cdi-dir",
                                        self.path("cdi"), "--cdi", "on")
        self.kubelet.wait(self.gpu, 4)
        self.kubelet.wait(VF, self.SLOTS)

    def cni(self, command, pod, slot, number):
        """As the runtime and Multus do it: a namespace that is gone is not named. The result, or
        the error object."""
        netns = f"/run/netns/{pod}"
        conf = {
            "cniVersion": "1.0.0", "name": "rail-net", "type": "railmate-cni", "deviceID": slot,
            "pciBusID": slot, "delegate": {"type": "host-device"}
        }
        env = {
            **os.environ, "CNI_COMMAND": command, "CNI_CONTAINERID": f"c-{pod}",
            "CNI_NETNS": netns if os.path.exists(netns) else "", "CNI_IFNAME": f"net{number}",
            "CNI_PATH": PLUGINS, "RAILMATE_CNI_CONFIG": self.path("cni.json"),
            "CNI_ARGS": f"IgnoreUnknown=1;K8S_POD_NAMESPACE=default;K8S_POD_NAME={pod};K8S_POD_UID={self.uids.get(pod, 'u-none')}"
        }
        run = subprocess.run([os.environ["RAILMATE_CNI"]], input=json.dumps(conf),
                             capture_output=True, text=True, env=env, timeout=60)
        return run.returncode, run.stdout

    def works(self, *argv):
        code, out = self.cni(*argv)
        check(code == 0, f"{argv}: {out}")
        return out


def links(netns=None):
    """Interface → PCI address. `ip netns exec` mounts the namespace's own /sys."""
    inside = ["ip", "netns", "exec", netns] if netns else []
    lines = output(
        *inside, "sh", "-c",
        "for i in /sys/class/net/*/device; do echo $i $(readlink -f $i); done").splitlines()
    found = {
        path.split("/")[4]: os.path.basename(real)
        for path, real in (line.split() for line in lines if " /" in line)
    }
    return {
        name: address
        for name, address in found.items()
        if os.path.exists(f"{PCI}/{address}/physfn")
    }


def injected(node, slots):
    """The container's VFs by its CDI spec, which is named after the first of its slots."""
    (name,) = [n for n in os.listdir(node.path("cdi")) if n.endswith(f"_{min(slots)}.json")]
    with open(node.path("cdi", name), encoding="utf-8") as f:
        spec = json.load(f)
    equal([d["name"] for d in spec["devices"]], sorted(slots), "the devices of the spec")
    return set(
        dict(e.split("=", 1)
             for e in spec["containerEdits"]["env"])["PCIDEVICE_RDMA_VF"].split(","))


@scenario
def cni_moves_real_vfs_into_a_pod():
    """railmate-cni and host-device move the VFs of two slots into a pod and back; network,
    container and GPUs agree"""
    mend()
    with CniNode() as node:
        node.start_late()
        machine, before = node.topo(), links()
        admission = node.admit("pod1", 2, 2, order="vf-first")
        slots = sorted(harness.vfs_of(admission))
        shell("ip netns add pod1")
        for number, slot in enumerate(slots):
            node.works("ADD", "pod1", slot, number)
        inside = links("pod1")
        equal(sorted(inside), ["net0", "net1"], "interfaces of the pod")
        equal({n: a
               for n, a in before.items()
               if a not in inside.values()}, links(), "interfaces that stay")
        gpus = harness.gpus_of(machine, admission, resource=AMD)
        total, pairs = assignment(machine, gpus, sorted(inside.values()))
        equal(total, best_total(machine, gpus, {vf_address(*p)
                                                for p in PLACES}, 2), f"{pairs}: total, best total")
        for call in node.kubelet.ask("prestart pod1")["calls"]:
            equal((call["status"], call["message"]), ("OK", ""),
                  "PreStartContainer after the network")
        equal(injected(node, slots), set(inside.values()),
              "VFs of the container, VFs of the network")
        node.daemon.end(signal.SIGKILL)
        for number, slot in enumerate(slots):
            node.works("DEL", "pod1", slot, number)
            node.works("DEL", "pod1", slot, number)
        equal((links("pod1"), links()), ({}, before), "interfaces after DEL without the daemon")
        return f"{', '.join(f'{g} {v} {c}' for g, v, c in pairs)}"


@scenario
def cni_del_after_the_namespace_is_gone():
    """a pod whose namespace is gone (a reboot): DEL is done; a slot of another pod, or none, is
    refused"""
    mend()
    with CniNode() as node:
        node.start_late()
        before = links()
        (slot,) = harness.vfs_of(node.admit("pod2", 1, 1))
        shell("ip netns add pod2; ip netns add pod3")
        node.works("ADD", "pod2", slot, 0)
        equal(len(links("pod2")), 1, "interfaces of the pod")
        for wrong, code in ((slot, 11), ("no-slot", 100)):
            status, out = node.cni("ADD", "pod3", wrong, 0)
            equal((status, json.loads(out)["code"]), (1, code), f"ADD of {wrong} by another pod")
        shell("ip netns delete pod2")
        until(lambda: len(links()) == len(before), "the kernel gives the interface back")
        node.works("DEL", "pod2", slot, 0)
        equal(os.listdir(node.path("cni")), [], "what is remembered")
