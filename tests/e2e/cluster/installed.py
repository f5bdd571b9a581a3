"""railmate as it is installed: by Kustomize and by Helm, on nodes of two kinds, with its rights and
without."""
import json
import re
import shutil
import time

from node import TOP
from scenarios import SLOWNESS, VF, check, container, equal, until
from tries import Late
from shared import HELM, KUSTOMIZE, check_nothing_is_stuck, check_unharmed, line_of, live_containers, one_pod, owners_watched, pool, scenario, unscheduled

SERVED_S = 30  # from the command to devices that the scheduler knows, on both nodes
OF_SERVER, OF_SOCKET = 'source="API server"', "source=\"kubelet's Pods API\""


@scenario()
def it_is_installed_by_helm_and_by_kustomize(c):
    took = {}
    for how in (HELM, KUSTOMIZE):
        c.uninstall()
        began = time.monotonic()
        c.install(how)
        took[how[0]] = time.monotonic() - began
        equal({name: c.offered(name)
               for name in c.views}, {name: len(view.vf)
                                      for name, view in c.views.items()},
              f"VFs that the scheduler knows, installed by {how[0]}")
        c.end(one_pod(c, 1, 1)[0])
    check(
        max(took.values()) < SERVED_S * SLOWNESS,
        f"{SERVED_S} s until VFs are on offer are allowed, it took {took}")
    return "VFs on offer after " + ", ".join(f"{seconds:.1f} s ({how})"
                                             for how, seconds in took.items())


@scenario()
def pods_come_to_both_nodes_by_the_scheduler(c):
    """More than one node has GPUs for."""
    pods = [one_pod(c, gpus, vfs) for gpus, vfs in ((4, 4), (4, 4), (2, 1), (2, 2), (1, 1), (1, 2))]
    places = {c.node_of(name) for name, _ in pods}
    equal(places, set(c.views), "nodes with pods")
    waits = c.new(container("main", 8, 8))
    said = until(lambda: unscheduled(c, waits), "the scheduler to say why a pod waits")
    check("nvidia.com/gpu" in said, f"the pod waits for something else: {said}")
    c.end(*(name for name, _ in pods))
    c.wait_running(waits)
    return f"{sum(first for _, first in pods)} of {len(pods)} GPU-first, all of those optimal"


@scenario()
def it_is_removed_and_comes_back_under_running_pods(c):
    """By Helm and by Kustomize: the pods live on, and what they hold is theirs afterwards."""
    names = [one_pod(c, 2, 2, on=node)[0] for node in c.views]
    before = live_containers(c, names)
    with owners_watched(c):
        for how in (HELM, KUSTOMIZE):
            c.remove()
            check_unharmed(c, before)
            c.install(how)
            for node in c.views:
                c.end(one_pod(c, 1, 2, on=node)[0])
            check_unharmed(c, before)
    check_nothing_is_stuck(c)


@scenario()
def a_config_map_is_followed_without_a_restart(c):
    """That of users of Kustomize. VFs of a pod stay in the pool that they came from."""
    instances, (name, _) = set(c.railmates()), one_pod(c, 2, 2)
    before = live_containers(c, [name])
    kept = {node: 2 * (node == c.node_of(name)) for node in c.views}

    def serve(method, path, resource):
        config = {"resourceList": [{"resourcePrefix": "rdma", "resourceName": resource,
                                    "selectors": {"devices": ["101c", "101e"], "isRdma": True}}]}
        c.api(method, path, {"apiVersion": "v1", "kind": "ConfigMap",
                             "metadata": {"name": "railmate-config", "namespace": "kube-system"},
                             "data": {"config.json": json.dumps(config)}})

    def served(resource, count):
        for node in c.views:
            until(lambda n=node: c.offered(n, resource) == count(n), f"{resource} on {node}")

    maps = "/api/v1/namespaces/kube-system/configmaps"
    serve("POST", maps, "fast")
    try:
        served("rdma/fast", lambda node: len(c.views[node].vf) - kept[node])
        served(VF, kept.get)
        check_unharmed(c, before)
        serve("PUT", f"{maps}/railmate-config", "vf")
        served(VF, lambda node: len(c.views[node].vf))
        served("rdma/fast", lambda _: 0)
    finally:
        c.api("DELETE", f"{maps}/railmate-config")
    check_unharmed(c, before)
    equal(set(c.railmates()), instances, "pods of the DaemonSet")
    check_nothing_is_stuck(c)


def without_rdma(c, view):
    """A copy of the node's machine whose VFs have no RDMA device."""
    machine = c.work / "machines/without-rdma"
    shutil.copytree(view.backend.machine.resolve(), machine, symlinks=True)
    for vf in view.vf:
        for part in ("infiniband", "infiniband_verbs"):
            shutil.rmtree((machine / "sys/bus/pci/devices" / vf).resolve() / part,
                          ignore_errors=True)
    return machine


@scenario()
def a_node_without_vfs(c):
    """node2 becomes one, with all its GPUs: railmated runs there and offers nothing, and pods go
    where VFs are."""
    view = c.views["node2"]
    had = view.backend.machine.resolve()
    c.wait_unheld()
    try:
        view.backend.set_machine(without_rdma(c, view))
        c.another_railmate("node2")
        until(lambda: c.offered("node2") == 0, "the scheduler to know that node2 has no VFs")
        line = line_of(c, "node2", "the VFs of the pool were counted")
        check("devices=0" in line, f"railmated found VFs on a node without: {line}")
        for _ in range(3):
            equal(c.node_of(one_pod(c, 1, 1)[0]), "node1", "the node of a pod with a VF")
    finally:
        view.backend.set_machine(had)
        c.another_railmate("node2")
    c.wait_served()
    c.end(one_pod(c, 1, 1, on="node2")[0])


@scenario()
def rights_are_taken_narrowed_and_given_back(c):
    """To list pods at the API server; VFs are given in any case."""
    def now(words, node="node1"):
        c.another_railmate(node)
        c.wait_served()
        name, _ = one_pod(c, 1, 1, on=node)
        line = line_of(c, node, words)
        c.end(name)
        return line

    now(f"pod specs are read {OF_SOCKET}", "node2")
    now(f"pod specs are read {OF_SERVER}")
    c.kubectl("delete", "clusterrolebinding", "railmate")
    line = now(f"cannot read pod specs {OF_SERVER}")
    check("403" in line, f"the warning does not say that it is a matter of rights: {line}")
    c.kubectl("apply", "-k", c.DEPLOY)
    now(f"pod specs are read {OF_SERVER}")


@scenario(HELM)
def the_chart_gives_the_rights_that_are_used(c):
    account = "system:serviceaccount:kube-system:railmate"
    for podspecs, node, source, may_list in (("pods-api", "node2", OF_SOCKET, "no"), ("auto", "node1", OF_SERVER, "yes")):
        c.helm("upgrade", "railmate", c.CHART, "--set", f"podSpecs={podspecs}")
        c.rolled_out()
        c.wait_served()
        c.end(one_pod(c, 1, 1, on=node)[0])
        line_of(c, node, f"pod specs are read {source}")
        for what, allowed in (("list pods", may_list), ("get nodes/pods", "no"), ("create events.events.k8s.io", "yes")):
            said = c.tool(c.program("kubectl"), "--kubeconfig",
                          "/etc/kubernetes/admin.conf", "-n", "kube-system", "auth", "can-i",
                          *what.split(), "--as", account, fails=True).strip()
            equal(said, allowed, f"may railmate {what} with podSpecs={podspecs}")
    c.helm("upgrade", "railmate", c.CHART, "--reset-values")
    c.rolled_out()
    c.wait_served()
    check_nothing_is_stuck(c)


@scenario(HELM)
def a_change_of_pools_rolls_the_daemon_set(c):
    """A pod of the old pool runs on, and none of the new one gets its VFs."""
    name, _ = one_pod(c, 2, 4)
    node = c.node_of(name)
    view = c.views[node]
    before, held = live_containers(c, [name]), set(view.held()[name]["main"][VF])
    c.helm("upgrade", "railmate", c.CHART, "--set", pool("fast"))
    for other in c.views:
        until(lambda n=other: c.offered(n, "rdma/fast"), f"rdma/fast on {other}")
        until(lambda n=other: not c.offered(n), f"rdma/vf to be gone on {other}")
    c.rolled_out()
    rest = container("main")
    rest["resources"] = {"limits": {"rdma/fast": str(len(view.vf) - len(held))}}
    other = c.run(rest, on=node)
    got = set(view.report(other, "main").env["PCIDEVICE_RDMA_FAST"].split(","))
    equal(got, set(view.vf) - held, "VFs of a pod that wants all that the other one has not")
    check_unharmed(c, before)
    c.end(other)
    c.helm("upgrade", "railmate", c.CHART, "--reset-values")
    c.rolled_out()
    c.wait_served()
    check_unharmed(c, before)
    check_nothing_is_stuck(c)


@scenario(HELM)
def a_label_of_a_node_chooses_its_pools(c):
    """Live: a pod of the old pool runs on, and the other node is not touched."""
    name, _ = one_pod(c, 2, 4, on="node1")
    before = live_containers(c, [name])
    c.helm("upgrade", "railmate", c.CHART, "--set", pool("fast").replace("pools[0]", "poolsByLabel.fast[0]"))
    c.rolled_out()
    c.wait_served()
    instance = c.railmate_on("node2")
    took = []
    for label, there, gone in (("railmate.io/config=fast", "rdma/fast", VF), ("railmate.io/config-", VF, "rdma/fast")):
        began = time.monotonic()
        c.kubectl("label", "node", "node1", label)
        until(lambda r=there: c.offered("node1", r), f"{there} on node1 with the label {label}")
        took.append(time.monotonic() - began)
        until(lambda r=gone: not c.offered("node1", r), f"{gone} to be gone on node1")
        until(lambda: len(c.railmates()) == len(c.views), "the instance of the other kind to go")
        check_unharmed(c, before)
    equal(c.railmate_on("node2"), instance, "instance of the node whose label did not change")
    c.helm("upgrade", "railmate", c.CHART, "--reset-values")
    c.rolled_out()
    c.wait_served()
    check_unharmed(c, before)
    return "other pools after " + " and ".join(f"{seconds:.1f} s" for seconds in took)


OPERATOR = ("helm", "-f", str(TOP / "deploy/operators/sriov-network-operator.yaml"))
OF_OPERATOR = {"sriovnetwork.openshift.io/device-plugin": "Enabled",
               "railmate.io/device-plugin": "true"}


def of_policy(resource, *pfs):
    """A policy's part of what sriov-network-operator writes for a node."""
    return {"resourceName": resource, "SelectorObj": None, "selectors": {
        "vendors": ["15b3"], "rootDevices": pfs, "IsRdma": True, "NeedVhostNet": False}}


def is_ready(pod):
    return all(one["ready"] for one in pod["status"].get("containerStatuses") or [{"ready": False}])


@scenario(OPERATOR, served=False)
def nodes_have_what_an_operator_writes_for_each(c):
    """docs/operators.md: one ConfigMap with a file for each node; a new one is followed without a
    restart, and by the operator's restart of what has the label of its plugin."""
    path = "/api/v1/namespaces/kube-system/configmaps"
    first, second = sorted({vf["pf"] for vf in c.views["node1"].vf.values()})[:2]
    of_node2 = [of_policy("vf", *sorted({vf["pf"] for vf in c.views["node2"].vf.values()}))]

    def write(method, where, *of_node1):
        c.api(method, where, {
            "apiVersion": "v1", "kind": "ConfigMap",
            "metadata": {"name": "device-plugin-config", "namespace": "kube-system"},
            "data": {node: json.dumps({"resourceList": policies})
                     for node, policies in (("node1", of_node1), ("node2", of_node2))}})

    def offered(**vfs):
        for resource, count in vfs.items():
            until(lambda r=resource, n=count: c.offered("node1", f"openshift.io/{r}") == n,
                  f"{count} VFs of openshift.io/{resource} on node1")

    def of_pf(pf):
        return {pci for pci, vf in c.views["node1"].vf.items() if vf["pf"] == pf}

    equal(c.railmates(), {}, "pods of railmate on nodes without the labels")
    write("POST", path, of_policy("vf", first, second))
    for key, value in OF_OPERATOR.items():
        c.kubectl("label", "node", *c.views, f"{key}={value}")
    try:
        offered(vf=len(of_pf(first) | of_pf(second)))
        until(lambda: c.offered("node2", "openshift.io/vf") == len(c.views["node2"].vf),
              "all VFs of node2")
        limits = container("main")
        limits["resources"] = {"limits": {"openshift.io/vf": "2"}}
        names = [c.run(limits, on=node) for node in c.views]
        before, instances = live_containers(c, names), set(c.railmates())
        held = {name: set(c.view_of(name).held()[name]["main"]["openshift.io/vf"]) for name in names}
        for name, vfs in held.items():
            told = c.view_of(name).report(name, "main").env["PCIDEVICE_OPENSHIFT_IO_VF"]
            equal(set(told.split(",")), vfs, "VFs that the container was told")
        check(held[names[0]] <= of_pf(first) | of_pf(second), "a VF of a PF that no policy is for")
        write("PUT", f"{path}/device-plugin-config", of_policy("vf", first),
              of_policy("storage", second))
        offered(storage=len(of_pf(second) - held[names[0]]), vf=len(of_pf(first)))
        equal(set(c.railmates()), instances, "pods of the DaemonSet")
        c.kubectl("-n", "kube-system", "delete", "pod", "-l", "app=sriov-device-plugin",
                  "--field-selector", "spec.nodeName=node1")
        equal(len(instances & set(c.railmates())), 1, "instances that the operator left")
        until(lambda: sum(is_ready(pod) for pod in c.railmates().values()) == len(c.views),
              "another instance")
        line_of(c, "node1", "the VFs of the pool were counted")
        offered(storage=len(of_pf(second) - held[names[0]]), vf=len(of_pf(first)))
        check_unharmed(c, before)
        c.end(*names)
        c.wait_unheld()
    finally:
        c.kubectl("label", "node", *c.views, *(f"{key}-" for key in OF_OPERATOR))
        c.api("DELETE", f"{path}/device-plugin-config")


@scenario(
    ("helm", "--set",
     f"{pool('vf')},pools[0].selectors.pfNames={{absent0}},extraArgs={{--empty-pool-event=1}}"),
    served=False)
def an_empty_pool_is_an_event_on_its_node(c):
    """By the right to create Events, and no other."""
    def noted():
        events = c.api("GET", "/apis/events.k8s.io/v1/namespaces/kube-system/events")["items"]
        return {
            event["regarding"]["name"]: event["note"]
            for event in events
            if event["reason"] == "PoolEmpty"
        }
    until(lambda: set(noted()) == set(c.views), "an Event on each node")
    return noted()["node1"]


DEMO_S = 60  # from the command to the end of the Job


@scenario()
def the_demo_needs_no_privilege(c):
    """The commands of deploy/overlays/demo, in a namespace where pods have to be restricted."""
    name = "demo"
    c.api("POST", "/api/v1/namespaces", {"apiVersion": "v1", "kind": "Namespace", "metadata": {
        "name": name, "labels": {"pod-security.kubernetes.io/enforce": "restricted"}}})
    began = time.monotonic()
    folder = c.DEPLOY / "overlays/demo"
    line = re.search(r"^#   (kubectl apply .*)$", (folder / "kustomization.yaml").read_text(), re.M)[1]
    kubectl = f"{c.program('kubectl')} --kubeconfig /etc/kubernetes/admin.conf -n {name}"
    said = c.tool("bash", "-c", line.replace("kubectl ", kubectl + " "), cwd=c.DEPLOY.parent)
    took = time.monotonic() - began
    pairs = re.search(r"(\d+) GPU-first pods, (\d+) pairs: every one the best that was free", said)
    check(pairs, f"the log does not say that every pair is the best: {said[-300:]}")
    c.kubectl("delete", "-n", name, "-k", c.DEPLOY / "overlays/demo")
    c.kubectl("delete", "namespace", name, "--wait=false")
    check(took < DEMO_S * SLOWNESS, f"{DEMO_S} s are allowed, it took {took:.1f}", Late)
    return f"{pairs[0]}, after {took:.1f} s"
