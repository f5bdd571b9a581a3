"""Dynamic resource allocation: GPUs of a driver that stands for NVIDIA's (../kubelet/programs/gpudriver.go)."""
import contextlib
import json
import os
import re
import signal
import time

import yaml

from faults import held_by
from late import check_late
from node import TOP
from networks import LATE, check_nothing_is_stuck_late, free_of
from scenarios import CRASH_ONCE, GPU, STAY, VF, check, check_optimal, check_report, container, equal, until
from shared import owners_watched, pool, scenario

NODE, DRIVER, CLASS = "node1", "vf.railmate.io", "rdma-vf.railmate.io"
SERVED = ("kustomize", TOP / "deploy/dra")
API = "/apis/resource.k8s.io/v1"
CLAIMS, TEMPLATES = (f"{API}/namespaces/default/resourceclaim{what}" for what in ("s", "templates"))


@contextlib.contextmanager
def made(c, path, kind, name, spec):
    """An object of the API while the body runs."""
    c.api("POST", path, {"apiVersion": "resource.k8s.io/v1", "kind": kind, "metadata": {"name": name}, "spec": spec})
    try:
        yield name
    finally:
        c.api("DELETE", f"{path}/{name}")
        until(lambda: c.api("GET", f"{path}/{name}") is None, f"{kind} {name} to go")


def of_driver(driver):
    return [{"cel": {"expression": f"device.driver == '{driver}'"}}]


@contextlib.contextmanager
def gpus_by_dra(c, *nodes):
    """The driver's on these nodes, under the name of the plugin's."""
    with contextlib.ExitStack() as stack:
        for node in nodes:
            stack.enter_context(c.views[node].gpus_by_dra())
        stack.enter_context(made(c, f"{API}/deviceclasses", "DeviceClass", "gpu.nvidia.com",
                                 {"selectors": of_driver("gpu.nvidia.com"), "extendedResourceName": GPU}))
        yield


def requests(**counts):
    """Of a claim: request → (class, count)."""
    return {"devices": {"requests": [{"name": name, "exactly": {"deviceClassName": of, "count": count}}
                                     for name, (of, count) in counts.items()]}}


def with_claims(one, *names):
    """A container of these claims of its pod; "claim/request" is a part of one."""
    one["resources"]["claims"] = [dict(zip(("name", "request"), name.split("/"))) for name in names]
    return one


def gpus_of(report):
    """Addresses of the GPUs that the driver gave to a container."""
    return sorted(value for key, value in report.env.items() if re.fullmatch(r"DRA_GPU_\d+", key))


@scenario(always=False)
def dra_gpus_come_by_a_claim_and_by_their_resource(c):
    """No VFs: the bed's own driver."""
    view = c.views["node1"]
    with gpus_by_dra(c, "node1"), made(c, CLAIMS, "ResourceClaim", "two", requests(gpus=("gpu.nvidia.com", 2))):
        names = [c.run(with_claims(container("main"), "mine"), on="node1", claims={"mine": "two"}),
                 c.run(container("left", 2), container("right", 1), on="node1")]
        got = [gpus_of(view.report(name, one)) for name, one in zip((names[0], names[1], names[1]), ("main", "left", "right"))]
        equal([len(gpus) for gpus in got], [2, 2, 1], "GPUs of the containers")
        every = [gpu for gpus in got for gpu in gpus]
        check(set(every) <= set(view.machine.gpus) and len(set(every)) == len(every), f"GPUs of the containers: {got}")
        check_report(view, view.report(names[0], "main"), [], [])
        c.end(*names)
        until(lambda: not list(view.root("/run/cdi").glob("k8s.gpu.nvidia.com-*")), "claims to be unprepared")


def each_optimal(view, found, free):
    """[(GPUs, VFs)] of containers that started one after the other, in some order."""
    taken = {vf for _, vfs in found for vf in vfs}
    equal(len(taken), sum(len(vfs) for _, vfs in found), "VFs of several containers, each counted once")
    for gpus, vfs in found:
        check_optimal(view, gpus, vfs, free - taken)


@scenario((*LATE, "--set", "resourceClaims=true"), always=False)
def dra_gpus_and_vfs_of_the_device_plugin(c):
    """By limits and by a claim that two containers share; the pool binds late. Each container has the VFs nearest to its own GPUs."""
    view = c.views["node1"]
    left_and_right = {"spec": requests(left=("gpu.nvidia.com", 2), right=("gpu.nvidia.com", 1))}
    with gpus_by_dra(c, "node1"), owners_watched(c), made(c, TEMPLATES, "ResourceClaimTemplate", "gpus", left_and_right):
        for limits, claims in ((2, {}), (0, {"gpus": "gpus"})):
            free = free_of(view)
            pair = container("left", limits, 2), container("right", limits // 2, 1)
            name = c.run(*(with_claims(one, *(f"gpus/{one['name']}" for _ in claims)) for one in pair), on="node1", templates=claims)
            found = []
            for one, gpus, vfs in (("left", 2, 2), ("right", 1, 1)):
                got = gpus_of(view.report(name, one))
                equal(len(got), gpus, f"GPUs of {name}/{one}")
                found.append((got, check_late(view, name, one, 0, vfs)[1]))
            each_optimal(view, found, free)
        c.end(*c.live)
    check_nothing_is_stuck_late(c)


# --- VFs by DRA ---

def slices(c, node):
    return [one for one in c.api("GET", f"{API}/resourceslices")["items"] if one["spec"]["driver"] == DRIVER and one["spec"].get("nodeName") == node]


def devices(c, node):
    return [device for one in slices(c, node) for device in one["spec"]["devices"]]


def wait_offered(c, *nodes):
    for node in nodes or c.views:
        until(lambda n=node: not c.offered(n), f"the scheduler to know that {node} has no device plugin")
        until(lambda n=node: len(devices(c, n)) == len(c.views[n].vf), f"the VFs of {node} in ResourceSlices")


def kubelet_restarted(c, node):
    with c.views[node].backend.without_kubelet(signal.SIGTERM):
        pass
    until(lambda: c.has_its_pods(node), f"the kubelet of {node} to know its pods")


def forget_plugin(c):
    """For five minutes a kubelet asks a device plugin that is gone before a container starts, unless it starts anew."""
    if getattr(c, "without_plugin", None) is not c.how:
        for node in c.views:
            until(lambda n=node: not c.offered(n), f"the scheduler to know that {node} has no device plugin")
            kubelet_restarted(c, node)
        c.without_plugin = c.how


def served(how=SERVED):
    """railmated serves DRA on both nodes when it begins."""
    def add(function):
        def run(c):
            forget_plugin(c)
            wait_offered(c)
            return function(c)
        run.__name__ = function.__name__
        return scenario(how, served=False, always=False)(run)
    return add


def check_dra(c, name, one="main", gpus=0, vfs=0, instance=0):
    """What a container saw is true; returns (its GPUs, its VFs)."""
    view = c.view_of(name)
    report, plugin = view.report(name, one, instance), view.held().get(name, {}).get(one, {}).get(GPU, [])
    mine = [vf for vf in report.env.get("PCIDEVICE_RDMA_VF", "").split(",") if vf]
    got = [view.machine.gpu(gpu) for gpu in plugin] or gpus_of(report)
    equal((len(got), len(mine)), (gpus, vfs), f"GPUs and VFs of {name}/{one}")
    check_report(view, report, plugin, mine)
    return got, mine


def dra_pod(c, gpus, vfs, one=None, **more):
    """Of one container, checked, and always optimal; by limits, or as `one` asks for them."""
    free = {node: free_of(view) for node, view in c.views.items()}
    name = c.run(one or container("main", gpus, vfs), **more)
    got, mine = check_dra(c, name, "main", gpus, vfs)
    if gpus:
        check_optimal(c.view_of(name), got, mine, free[c.node_of(name)])
    return name, mine


def claimed(*names, gpus=0):
    return with_claims(container("main", gpus), *names)


def cdi_of_railmate(view):
    return [file.name for file in view.root("/run/cdi").glob("*.json") if not file.name.startswith("k8s.gpu")]


def pods_with(c, vfs, node):
    """All that many VFs of a node in use: a claim has 32 devices at most."""
    return [dra_pod(c, 0, min(32, vfs - first), on=node)[0] for first in range(0, vfs, 32)]


def check_nothing_is_stuck_dra(c, *nodes):
    """No claim, no hold, no file; and pods have all VFs of a node."""
    c.end(*c.live)
    until(lambda: not c.api("GET", CLAIMS)["items"], "claims of pods to go", failure=AssertionError)
    c.wait_unheld()
    for node in nodes or c.views:
        until(lambda n=node: not cdi_of_railmate(c.views[n]), f"CDI specs of {node} to go", failure=AssertionError)
        wait_offered(c, node)
        c.end(*pods_with(c, len(c.views[node].vf), node))


@served()
def dra_slices_are_those_of_the_machines(c):
    """The API server has taken them; a railmated that starts anew writes nothing."""
    for node, view in c.views.items():
        (uid,) = (item["metadata"]["uid"] for name, item in c.nodes().items() if name == node)
        some = slices(c, node)
        for one in some:
            owner, where = one["metadata"]["ownerReferences"], one["spec"]["pool"]
            equal([(o["kind"], o["name"], o["uid"]) for o in owner], [("Node", node, uid)], "owner of a slice")
            equal((where["name"], where["resourceSliceCount"]), (node, len(some)), "pool of a slice")
        equal(len({one["spec"]["pool"]["generation"] for one in some}), 1, "generations of the slices of a node")
        equal({device["attributes"]["railmate.io/pool"]["string"] for device in devices(c, node)}, {VF}, "pools of the devices")
        equal(len({device["name"] for device in devices(c, node)}), len(view.vf), "names of devices")
    before = {node: [(one["metadata"]["name"], one["metadata"]["resourceVersion"]) for one in slices(c, node)] for node in c.views}
    c.another_railmate(NODE)
    time.sleep(3)
    equal({node: [(one["metadata"]["name"], one["metadata"]["resourceVersion"]) for one in slices(c, node)] for node in c.views}, before, "slices after a restart")


@served()
def dra_vfs_by_limits_and_gpus_of_the_device_plugin(c):
    with owners_watched(c):
        for gpus, vfs in ((2, 2), (1, 1), (4, 4), (1, 2), (2, 1)):
            name, _ = dra_pod(c, gpus, vfs)
            claim = c.found(name)["status"]["extendedResourceClaimStatus"]["resourceClaimName"]
            check(c.api("GET", f"{CLAIMS}/{claim}"), f"claim of {name}")
        c.end(dra_pod(c, 0, 3)[0])
    check_nothing_is_stuck_dra(c)


@served()
def dra_vfs_by_a_claim_and_by_a_template(c):
    with owners_watched(c), made(c, CLAIMS, "ResourceClaim", "mine", requests(vfs=(CLASS, 2))), \
            made(c, TEMPLATES, "ResourceClaimTemplate", "each", {"spec": requests(vfs=(CLASS, 2))}):
        name, vfs = dra_pod(c, 2, 2, claimed("vfs", gpus=2), claims={"vfs": "mine"})
        for _ in range(2):
            dra_pod(c, 2, 2, claimed("vfs", gpus=2), templates={"vfs": "each"})
        c.end(name)
        until(lambda: not set(vfs) & {hold["vf"] for one in c.members for hold in one.holds()}, "the VFs of the claim to be free")
        c.end(*c.live)
    check_nothing_is_stuck_dra(c)


@served()
def dra_gpus_and_vfs_of_two_drivers(c):
    """One claim of both, by limits and by a template; the kubelet calls the drivers in any order."""
    both = requests(gpus=("gpu.nvidia.com", 2), vfs=(CLASS, 2))
    with gpus_by_dra(c, NODE), owners_watched(c), made(c, TEMPLATES, "ResourceClaimTemplate", "both", {"spec": both}):
        for _ in range(2):
            dra_pod(c, 1, 1, on=NODE)
            dra_pod(c, 2, 2, claimed("both"), templates={"both": "both"}, on=NODE)
        c.end(*c.live)
    check_nothing_is_stuck_dra(c, NODE)


def two_containers(c):
    view = c.views[NODE]
    free = free_of(view)
    name = c.run(container("left", 2, 2), container("right", 1, 1), container("plain"), on=NODE)
    each_optimal(view, [check_dra(c, name, "left", 2, 2), check_dra(c, name, "right", 1, 1)], free)
    check_report(view, view.report(name, "plain"), [], [])


@served()
def dra_two_containers_have_the_vfs_of_their_own_gpus(c):
    """GPUs of the plugin, and of the driver: then one claim has all, and the kubelet shows it to both."""
    with owners_watched(c):
        two_containers(c)
        c.end(*c.live)
        with gpus_by_dra(c, NODE):
            two_containers(c)
            c.end(*c.live)
    check_nothing_is_stuck_dra(c, NODE)


@served()
def dra_a_claim_of_two_pods(c):
    """Both have its VFs, until the last one has ended."""
    view = c.views[NODE]
    with made(c, CLAIMS, "ResourceClaim", "ours", requests(vfs=(CLASS, 2))):
        names = [c.run(claimed("vfs"), claims={"vfs": "ours"}, on=NODE) for _ in range(2)]
        got = [check_dra(c, name, vfs=2)[1] for name in names]
        equal(got[0], got[1], "VFs of two pods with one claim")
        c.end(names[0])
        time.sleep(3)
        check({hold["vf"] for hold in view.backend.holds()} >= set(got[0]), "the VFs of a claim that a pod uses are free")
        other, vfs = dra_pod(c, 0, 2, on=NODE)
        check(not set(vfs) & set(got[0]), "the VFs of a claim that a pod uses were given away")
        third = c.run(claimed("vfs"), claims={"vfs": "ours"}, on=NODE)
        equal(check_dra(c, third, vfs=2)[1], got[0], "VFs of a third pod with the claim")
        c.end(names[1], third, other)
    check_nothing_is_stuck_dra(c, NODE)


@served()
def dra_containers_restart_with_their_vfs(c):
    """Also while the API server is away, and after restarts of railmated and the kubelet."""
    name = c.new(container("main", 1, 2, then=CRASH_ONCE + STAY), on=NODE)
    c.wait_running(name)
    first, second = (check_dra(c, name, gpus=1, vfs=2, instance=i)[1] for i in (0, 1))
    equal(second, first, "VFs after the restart")
    c.another_railmate(NODE)
    kubelet_restarted(c, NODE)
    pids = [pid for pid, _ in c.views[NODE].processes().values()]
    with c.api_away():
        for pid in pids:
            os.kill(pid, signal.SIGKILL)
        equal(set(c.views[NODE].report(name, "main", 2).env["PCIDEVICE_RDMA_VF"].split(",")), set(first), "VFs after the restart without an API server")
    check_nothing_is_stuck_dra(c, NODE)


@served()
def dra_pods_wait_for_vfs_and_for_railmated(c):
    """Nobody is refused."""
    view = c.views[NODE]
    most = pods_with(c, len(view.vf) - 1, NODE)
    waits = c.new(container("main", 0, 2), on=NODE)
    time.sleep(2)
    equal(c.phase(waits), "Pending", "phase of a pod for which there are too few VFs")
    c.end(*most)
    c.wait_running(waits)
    c.kubectl("-n", "kube-system", "delete", "ds", "railmate")
    until(lambda: not c.railmates(), "the DaemonSet's pods to go")
    comes = c.new(container("main", 1, 1), on=NODE)
    time.sleep(5)
    equal(c.phase(comes), "Pending", "phase of a pod that comes while railmated is away")
    c.kubectl("apply", "-k", SERVED[1])
    c.wait_running(comes)
    c.rolled_out()
    check_nothing_is_stuck_dra(c, NODE)


def killed_in_prepare(c, hang, kubelet):
    """railmated is killed while its disk hangs as this file says, and the kubelet with it."""
    view = c.views[NODE]
    member, free, before = view.backend, free_of(view), len(view.backend.holds())
    with member.disk_that_hangs(hang):
        name = c.new(container("main", 2, 2), on=NODE)
        if hang == "hangs.folder":  # it is written, and nobody was told
            until(lambda: len(member.holds()) == before + 2, "the ledger to have the claim")
        else:
            until(lambda: member.kubelet_lines(f'"Calling NodePrepareResources" pod="default/{name}"') or c.node_of(name), f"{name} to be prepared")
            time.sleep(2)
        with member.without_kubelet() if kubelet else contextlib.nullcontext():
            os.kill(member.container_process("railmated"), signal.SIGKILL)
    c.wait_running(name)
    got, mine = check_dra(c, name, gpus=2, vfs=2)
    check_optimal(view, got, mine, free)
    return name


@served()
def dra_railmated_is_killed_while_it_prepares(c):
    """Before the ledger is on the disk, and after; alone, and together with the kubelet."""
    member = c.views[NODE].backend
    with member.hanging_disk_preloaded():
        c.another_railmate(NODE)
        with owners_watched(c):
            for hang in ("hangs", "hangs.folder"):
                for kubelet in (False, True):
                    stays = killed_in_prepare(c, hang, kubelet)
                    unharmed = held_by(c.views[NODE], stays)
                    c.another_railmate(NODE)  # the kubelet waits ever longer before it starts a container again that was killed
                    wait_offered(c, NODE)
                    equal(held_by(c.views[NODE], stays), unharmed, "process, VFs and files of a pod that lives on")
                    c.end(stays)
    c.another_railmate(NODE)
    check_nothing_is_stuck_dra(c, NODE)


EXACT = ("helm", "--set", f"{pool('vf')},serve=dra,pools[0].railmate.dra=exact")


def pair(gpus, vfs):
    """A claim of GPUs, and of VFs of one PF below the same root."""
    return {"devices": {
        "requests": [{"name": "gpu", "exactly": {"deviceClassName": "gpu.nvidia.com", "count": gpus}},
                     {"name": "vfs", "exactly": {"deviceClassName": CLASS, "capacity": {"requests": {"vfs": str(vfs)}}}}],
        "constraints": [{"requests": ["gpu", "vfs"], "matchAttribute": "resource.kubernetes.io/pcieRoot"}]}}


@scenario(EXACT, served=False, always=False)
def dra_exact_devices_are_matched_by_their_root(c):
    """One for each PF, of which claims take as many VFs as they want, until none is left."""
    view = c.views[NODE]
    of_pf = {}
    for vf in view.vf.values():
        of_pf[vf["pf"]] = of_pf.get(vf["pf"], 0) + 1
    forget_plugin(c)
    found = until(lambda: {device["attributes"]["resource.kubernetes.io/pciBusID"]["string"]: int(device["capacity"]["vfs"]["value"]) for device in devices(c, NODE)},
                  "exact devices in ResourceSlices")
    equal(found, of_pf, "VFs of each PF")
    with gpus_by_dra(c, NODE), owners_watched(c), made(c, TEMPLATES, "ResourceClaimTemplate", "pair", {"spec": pair(1, 2)}), \
            made(c, TEMPLATES, "ResourceClaimTemplate", "all", {"spec": requests(vfs=(CLASS, len(of_pf)))}):
        for _ in range(3):
            dra_pod(c, 1, 2, claimed("pair"), templates={"pair": "pair"}, on=NODE)
        name = c.run(claimed("all"), templates={"all": "all"}, on=NODE)
        vfs = check_dra(c, name, vfs=len(of_pf))[1]
        equal({view.vf[vf]["pf"] for vf in vfs}, set(of_pf), "PFs of a claim of as many devices as there are")
        c.end(*c.live)
    c.wait_unheld()
    equal(sum(int(device["capacity"]["vfs"]["value"]) for device in devices(c, NODE)), len(view.vf), "VFs on offer in the end")
    return f"{len(of_pf)} devices"


BY_LABEL = ("helm", "--set", f"{pool('vf')},dra.byLabel=true,binding=late")


@scenario(BY_LABEL, always=False)
def dra_on_one_node_and_the_device_plugin_on_the_other(c):
    """Under one name: node2 is switched, and back, as docs/dra.md has it. Pods do not see a difference."""
    def both_kinds(dra):
        for node in c.views:
            if node == dra:
                c.end(dra_pod(c, 2, 2, on=node)[0])
            else:
                free = free_of(c.views[node])
                name = c.run(container("main", 2, 2), on=node)
                got, mine, _ = check_late(c.views[node], name, "main", 2, 2)
                check_optimal(c.views[node], got, mine, free)
                c.end(name)

    view, stays = c.views["node2"], c.run(container("main", 1, 2), on="node2")
    unharmed = held_by(view, stays)
    c.kubectl("label", "node", "node2", "railmate.io/serve=dra")
    until(lambda: len(devices(c, "node2")) == len(view.vf) - 2, "the VFs of node2 in ResourceSlices, but those of a pod of the plugin")
    equal(held_by(view, stays), unharmed, "process, VFs and files of a pod that lives on")
    c.end(stays)
    wait_offered(c, "node2")
    kubelet_restarted(c, "node2")  # or five minutes: forget_plugin()
    both_kinds("node2")
    names = [c.run(container("main", 1, 2)) for _ in range(4)]
    equal({c.node_of(name) for name in names}, set(c.views), "nodes of pods of one kind")
    c.end(*names)
    c.kubectl("label", "node", "node2", "railmate.io/serve-")
    until(lambda: c.offered("node2"), "node2 to be served by the device plugin")
    until(lambda: not slices(c, "node2"), "the kubelet to remove the ResourceSlices of node2")
    both_kinds(None)


# --- rights ---

@contextlib.contextmanager
def rights_of_dra(c):
    """Those of deploy/dra, and no DaemonSet of it."""
    docs = [doc for doc in yaml.safe_load_all(c.kubectl("kustomize", c.DEPLOY / "dra")) if doc["kind"] != "DaemonSet"]
    file = c.work / "rights.json"
    file.write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": docs}))
    c.kubectl("apply", "-f", file)
    try:
        yield
    finally:
        c.kubectl("delete", "-f", file)
        c.kubectl("apply", "-k", c.DEPLOY)


def as_instance(c, node):
    """A kubectl with the token of railmated's pod on this node; it says why something is refused."""
    name = c.railmate_on(node)
    uid = c.railmates()[name]["metadata"]["uid"]
    bound = {"apiVersion": "v1", "kind": "Pod", "name": name, "uid": uid}
    token = c.api("POST", "/api/v1/namespaces/kube-system/serviceaccounts/railmate/token", {
        "apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {"boundObjectRef": bound}})["status"]["token"]

    def kubectl(*argv, fails=False, **options):
        return c.tool(c.program("kubectl"), "--server", f"https://{c.GATEWAY}", "--certificate-authority", c.PKI / "ca.crt",
                      "--token", token, "--kubeconfig", "/dev/null", *argv, fails=fails, **options)
    return kubectl


def slice_of(node, driver="vf.railmate.io"):
    return {"apiVersion": "resource.k8s.io/v1", "kind": "ResourceSlice", "metadata": {"name": f"{driver}-{node}"}, "spec": {
        "driver": driver, "nodeName": node, "pool": {"name": node, "generation": 1, "resourceSliceCount": 1}, "devices": [{"name": "x"}]}}


@scenario(always=False)
def dra_an_instance_writes_slices_of_its_own_node_only(c):
    """By the policy of deploy/dra."""
    file = c.work / "slice.json"

    def write(kubectl, verb, *what, options=()):
        file.write_text(json.dumps(slice_of(*what)))
        return kubectl(verb, "-f", file, "-o", "name", *options, fails=True)

    with rights_of_dra(c):
        node1, node2 = (as_instance(c, node) for node in ("node1", "node2"))
        until(lambda: not write(node1, "create", "node2", options=("--dry-run=server",)), "the policy to be in force")
        for what in (("node1",), ("node1", "other.test"), ("node2",)):
            mine = what == ("node1",)
            for verb in ("create", "replace"):
                check(bool(write(node1, verb, *what)) == mine, f"{verb} of a slice of {what} by node1's instance: {'refused' if mine else 'taken'}")
        check(write(node2, "create", "node2"), "an instance may not write a slice of its own node")
        for kubectl, mine in ((node1, False), (node2, True)):
            kubectl("delete", "resourceslice", "vf.railmate.io-node2", fails=True)
            equal(c.api("GET", f"{API}/resourceslices/vf.railmate.io-node2") is None, mine, "slice of node2 deleted")
        node1("delete", "resourceslice", "vf.railmate.io-node1")


def config_of(**selectors):
    return json.dumps({"resourceList": [{"resourcePrefix": "rdma", "resourceName": "vf", "selectors": {**selectors, "isRdma": True, "devices": ["101c", "101e"]}}]})


@served()
def dra_the_rights_given_are_those_that_are_used(c):
    """By the API server's audit log, of an installation, of pods, and of VFs that come and go."""
    began = time.time()
    c.uninstall()
    for node in c.views:
        c.kubectl("delete", "resourceslices", "--field-selector", f"spec.driver={DRIVER},spec.nodeName={node}")
    c.install(SERVED, served=False)
    wait_offered(c)
    for node in c.views:
        c.end(dra_pod(c, 1, 1, on=node)[0])
    c.wait_unheld()
    maps, some = "/api/v1/namespaces/kube-system/configmaps", c.views[NODE].vf
    pfs = [sorted({vf["pf"] for vf in some.values()})[0]]
    for method, text, count in (("POST", config_of(rootDevices=pfs), sum(vf["pf"] in pfs for vf in some.values())), ("PUT", "{", None), ("PUT", config_of(rootDevices=["0000:ff:1f.7"]), 0)):
        c.api(method, maps if method == "POST" else f"{maps}/railmate-config", {
            "apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "railmate-config", "namespace": "kube-system"}, "data": {"config.json": text}})
        if count is None:
            until(lambda: [e for e in c.api("GET", "/apis/events.k8s.io/v1/namespaces/kube-system/events")["items"] if e["reason"] == "ConfigRefused"], "an Event of a wrong configuration")
        else:
            until(lambda n=count: len(devices(c, NODE)) == n, f"{count} devices of {NODE}")
    c.api("DELETE", f"{maps}/railmate-config")
    used = {}
    for line in (c.logs / "audit.log").read_text().splitlines():
        event = json.loads(line)
        what = event.get("objectRef", {})
        if event["stage"] == "ResponseComplete" and event["user"]["username"] == "system:serviceaccount:kube-system:railmate" and \
                time.mktime(time.strptime(event["requestReceivedTimestamp"][:19], "%Y-%m-%dT%H:%M:%S")) - time.timezone >= began - 1:
            resource = "/".join(filter(None, (what.get("resource"), what.get("subresource"))))
            used.setdefault((event["verb"], resource, what.get("apiGroup", "")), set()).add(event["responseStatus"]["code"])
    given = {(verb, resource, group) for doc in yaml.safe_load_all(c.kubectl("kustomize", SERVED[1])) if doc["kind"] in ("Role", "ClusterRole")
             for rule in doc["rules"] for group in rule["apiGroups"] for resource in rule["resources"] for verb in rule["verbs"]}
    check(not [what for what, codes in used.items() if codes & {401, 403}], f"what railmated asked for and may not: {used}")
    given = {what for what in given if ":" not in what[0]}  # asked for behind another one
    equal(given - set(used), set(), "rights that are not used")
    return ", ".join(f"{verb} {resource}" for verb, resource, _ in sorted(used))
