"""Dynamic resource allocation: GPUs of a driver that stands for NVIDIA's (../kubelet/programs/gpudriver.go)."""
import contextlib
import re

from scenarios import GPU, check, check_report, container, equal, until
from shared import scenario

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
