"""Dynamic resource allocation: GPUs of a driver that stands for NVIDIA's (../kubelet/programs/gpudriver.go)."""
import contextlib
import json
import re

import yaml

from late import check_late
from networks import LATE, check_nothing_is_stuck_late, free_of
from scenarios import GPU, check, check_optimal, check_report, container, equal, until
from shared import owners_watched, scenario

API = "/apis/resource.k8s.io/v1"
CLAIMS = f"{API}/namespaces/default/resourceclaims"


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
    with gpus_by_dra(c, "node1"), owners_watched(c), made(c, f"{API}/namespaces/default/resourceclaimtemplates", "ResourceClaimTemplate", "gpus", left_and_right):
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
