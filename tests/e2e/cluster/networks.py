"""Late binding, with networks that are handed to railmate-cni as Multus does it; and the examples,
as the API server sees them."""
import json
import os
import re
import textwrap

import crds
import examples
from late import check_late
from node import KUBELET_ROOT, SOCKET
from scenarios import GPU, VF, check, check_optimal, container, equal, until
from shared import HELM, owners_watched, pool, scenario

LATE = ("helm", "--set",
        f"{pool('vf')},binding=late,cni.enabled=true,runtime.enabled=true,runtime.socket={SOCKET}")
NETWORK = {
    "apiVersion": "k8s.cni.cncf.io/v1", "kind": "NetworkAttachmentDefinition", "metadata": {
        "name": "rail-net", "namespace": "default",
        "annotations": {"k8s.v1.cni.cncf.io/resourceName": VF}
    }, "spec": {
        "config": json.dumps({
            "cniVersion": "1.0.0", "name": "rail-net", "type": "railmate-cni",
            "capabilities": {"CNIDeviceInfoFile": True}, "delegate": {
                "type": "bridge", "bridge": "br-rail",
                "ipam": {"type": "host-local", "subnet": "10.56.0.0/16"}
            }
        })
    }
}
NETWORKS = "/apis/k8s.cni.cncf.io/v1/namespaces/default/network-attachment-definitions"
NOT_FOR_KUBECTL = {"iommu-talos.yaml"}


def free_of(view):
    """The VFs that no container of the node has: the kubelet knows slots only."""
    return set(view.vf) - {vf for _, vfs in view.processes().values() for vf in vfs}


def late_pod(c, gpus, vfs, **more):
    """Of one container, checked, and always optimal; (its name, its VFs in the order of its
    slots)."""
    free = {name: free_of(view) for name, view in c.views.items()}
    name = c.run(container("main", gpus, vfs), **more)
    view = c.view_of(name)
    mine, got, slots = check_late(view, name, "main", gpus, vfs)
    if gpus:
        check_optimal(view, mine, got, free[view.backend.name])
    binding = dict(
        pair.split("=") for pair in view.report(name, "main").env["RAILMATE_BINDING"].split(","))
    return name, [binding[slot] for slot in slots]


@scenario(LATE)
def late_pods_come_to_both_nodes_and_all_are_optimal(c):
    with owners_watched(c):
        names = [
            late_pod(c, gpus, vfs)[0]
            for gpus, vfs in ((2, 2), (4, 4), (1, 1), (2, 4), (4, 2), (1, 2))
        ]
        equal({c.node_of(name) for name in names}, set(c.views), "nodes with pods")
        firsts = sum(c.view_of(name).order(name) == [GPU, VF] for name in names)
        c.end(*names)
        for view in c.views.values():
            until(lambda v=view: not v.cdi_slots(), "the CDI specs to go")
    return f"{firsts} of {len(names)} GPU-first, all {len(names)} optimal"


def hand_networks_over(c):
    """On every node, from now on."""
    for member in c.members:
        member.add_plugin("handover", "/usr/bin/python3", "-E",
                          os.path.join(os.path.dirname(os.path.abspath(__file__)), "handover.py"),
                          member.program("podres"), KUBELET_ROOT / "pod-resources/kubelet.sock",
                          c.work / "admin.certificate", c.work / "admin.key", c.PKI / "ca.crt",
                          f"https://{c.GATEWAY}")


def interfaces(view, name):
    """Of the pod's network namespace."""
    pid = next(pid for container_id, (pid, _) in view.processes().items()
               if container_id in view.running(name)["main"])
    said = view.backend.cluster.tool("nsenter", "-t", pid, "-n", "ip", "-j", "link")
    return {link["ifname"] for link in json.loads(said)}


@scenario(LATE)
def networks_are_handed_over_as_by_multus(c):
    """deviceID is a slot; the network comes first, so it binds, and the container gets the same
    VFs. Its device-info file names them."""
    c.define("NetworkAttachmentDefinition")
    c.api("POST", NETWORKS, NETWORK)
    hand_networks_over(c)
    try:
        name, vfs = late_pod(c, 2, 2,
                             annotations={"k8s.v1.cni.cncf.io/networks": "rail-net, rail-net"})
        view = c.view_of(name)
        check({"eth0", "net1", "net2"} <= interfaces(view, name),
              f"interfaces of the pod: {interfaces(view, name)}")
        folder = view.root("/run/k8s.cni.cncf.io/devinfo/cni")
        files = {file.name: json.loads(file.read_text()) for file in folder.glob("*.json")}
        equal(sorted(files), [f"rail-net-{name}-net{i}-device.json" for i in (1, 2)],
              "device-info files for Multus")
        equal({info["pci"]["pci-address"]
               for info in files.values()}, set(vfs), "VFs that they name")
        plain, _ = late_pod(c, 1, 1)
        c.end(name, plain)
        until(lambda: not list(folder.glob("*.json")), "the device-info files to go")
        check_nothing_is_stuck_late(c)
    finally:
        c.api("DELETE", f"{NETWORKS}/rail-net")


def check_nothing_is_stuck_late(c):
    for name, view in c.views.items():
        until(lambda v=view: len(v.allocatable().get(VF, [])) == len(v.vf),
              f"all slots of {name} to be free")
        until(lambda n=name, v=view: c.offered(n) == len(v.vf),
              f"the scheduler to know that all slots of {name} are free")
        c.end(late_pod(c, 0, len(view.vf), on=name)[0])


@scenario(HELM)
def the_api_server_takes_every_example(c):
    """kubectl apply --dry-run=server, with the kinds of operators defined; the pods that operators
    would make are asked for by themselves."""
    c.define()
    if not c.api("GET", "/api/v1/namespaces/sriov-network-operator"):
        c.kubectl("create", "namespace", "sriov-network-operator")
    files = [
        file for file in sorted(c.DEPLOY.glob("examples/*.yaml"))
        if file.name not in NOT_FOR_KUBECTL
    ]
    for file in files:
        c.kubectl("apply", "--dry-run=server", "--validate=strict", "-f", file)
    pods = 0
    for file in files:
        for doc in examples.load(file.name).docs:
            for number, (metadata, spec) in enumerate(examples.pods(doc)):
                c.api(
                    "POST", "/api/v1/namespaces/default/pods?dryRun=All&fieldValidation=Strict", {
                        "apiVersion": "v1", "kind": "Pod", "spec": spec,
                        "metadata": {**metadata, "name": f"{doc['metadata']['name']}-{number}"}
                    })
                pods += 1
    return f"{len(files)} files, {pods} kinds of pods"


def of_operators(c):
    """{name: text} of what is applied where operators are, and is no example."""
    files = {file.name: file.read_text() for file in sorted(c.DEPLOY.glob("monitoring/*.yaml"))}
    for name in ("openshift", "dra"):
        files[f"{name}.yaml"] = c.kubectl("kustomize", c.DEPLOY / name)
    files["chart.yaml"] = c.helm(
        "template", "other", c.CHART, "--kube-version", c.version, "--set", "name=other,"
        "serve=dra,openshift.enabled=true,metrics.enabled=true,metrics.serviceMonitor=true,"
        "metrics.prometheusRule=true")
    for path in sorted((c.DEPLOY.parent / "docs").glob("*.md")):
        blocks = re.findall(r"^ *```yaml\n(.*?)^ *```", path.read_text(), re.M | re.S)
        for number, block in enumerate(block for block in blocks if "\nkind: " in block):
            files[f"{path.stem}-{number}.yaml"] = textwrap.dedent(block)
    return files


@scenario()
def the_api_server_takes_what_is_for_operators(c):
    """Of the chart, of Kustomize, for monitoring and in docs/; every kind that is defined is in
    that, or in an example."""
    c.define()
    folder = c.work / "of-operators"
    folder.mkdir()
    files = of_operators(c)
    for name, text in files.items():
        (folder / name).write_text(text)
        c.kubectl("apply", "--dry-run=server", "--validate=strict", "-f", folder / name)
    said = "\n".join([*files.values(), *(examples.load(name).text for name in examples.NAMES)])
    met = set(re.findall(r"^kind: (\w+)", said, re.M))
    equal(crds.kinds() - met, set(), "kinds that are defined for nothing")
    for name, right, wrong in (("servicemonitor.yaml", "honorLabels: true", "honorLabel: true"),
                               ("prometheusrule.yaml", "for: 1m", "for: a minute"),
                               ("dra.yaml", "variables.slice.driver ==", "variables.slize.driver =="),
                               ("dra.yaml", "extendedResourceName: rdma/vf", "extendedResourceName: vf"),
                               ("openshift.yaml", "allowHostIPC: false", "allowHostIPC: maybe")):
        check(right in files[name], f"{name} has no {right}")
        (folder / "wrong.yaml").write_text(files[name].replace(right, wrong))
        took = c.tool(c.program("kubectl"), "--kubeconfig", "/etc/kubernetes/admin.conf", "apply",
                      "--dry-run=server", "--validate=strict", "-f", folder / "wrong.yaml", "-o",
                      "name", fails=True)
        check(took.count("\n") < files[name].count("\nkind: "), f"{wrong} is taken in {name}")
    return f"{len(files)} files"
