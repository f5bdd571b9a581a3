"""What a cluster goes through when something is broken: reboots, an API server that is away, pods
that are deleted by force."""
import os
import signal
import time

from failures import DEAF
from scenarios import LIMIT, VF, check, container, equal, probe_may_be_absent, until
from shared import HELM, check_nothing_is_stuck, check_unharmed, live_containers, one_pod, owners_watched, refused, scenario

UNIT_LABEL = "railmate.test/unit"


def reboot(c, name):
    member = c.views[name].backend
    member.power_off()
    member.boot()
    until(lambda: member.podres("allocatable") is not None,
          f"the kubelet of {name} after the reboot")


@scenario()
def a_reboot_ends_bare_pods_and_new_ones_run(c):
    """The kubelet admits what was there before any plugin that is a pod itself: no such plugin can
    save them."""
    names = [one_pod(c, 1, 4, on="node1")[0] for _ in range(2)]
    elsewhere = one_pod(c, 1, 1, on="node2")[0]
    before = live_containers(c, [elsewhere])
    with owners_watched(c):
        reboot(c, "node1")
        said = [until(lambda n=name: refused(c, n), f"{name} to be refused") for name in names]
        c.wait_served()
        check_unharmed(c, before)
        c.end(one_pod(c, 2, 2, on="node1")[0])
    check_nothing_is_stuck(c, "node1")
    return said[0]


@scenario(("helm", "--set", f"systemdLabel={UNIT_LABEL}"))
@probe_may_be_absent()
def a_reboot_with_the_systemd_unit_keeps_all_pods(c):
    """deploy/systemd on node1, from which the chart's DaemonSet stays away: railmated listens
    before the kubelet starts."""
    unit = c.views["node1"].backend.here / "unit"
    c.kubectl("label", "node", "node1", f"{UNIT_LABEL}=yes")
    try:
        until(lambda: {pod["spec"].get("nodeName")
                       for pod in c.railmates().values()} == {"node2"},
              "the DaemonSet to leave node1")
        unit.touch()
        reboot(c, "node1")
        c.wait_served()
        names = [one_pod(c, 1, vfs, on="node1")[0] for vfs in (2, 20)]
        devices = {name: c.view_of(name).held()[name] for name in names}
        with owners_watched(c):
            reboot(c, "node1")
            for name in names:
                until(
                    lambda n=name: refused(c, n) or c.views["node1"].processes() and "main" in c.
                    view_of(n).running(n), f"{name} to run again")
                check(not refused(c, name),
                      f"{name} was refused after the reboot: {refused(c, name)}")
        until(lambda: len(c.views["node1"].processes()) == len(names), "the processes of both pods")
        equal({name: c.view_of(name).held()[name]
               for name in names}, devices, "devices after the reboot")
        check_nothing_is_stuck(c, "node1")
    finally:
        unit.unlink(missing_ok=True)
        reboot(c, "node1")
        c.kubectl("label", "node", "node1", f"{UNIT_LABEL}-")
    c.rolled_out()
    c.wait_served()


@scenario(HELM)
def the_api_server_is_away_while_railmated_dies(c):
    """The kubelet starts it again by itself; what runs is not touched."""
    name, _ = one_pod(c, 2, 2, on="node1")
    before = live_containers(c, [name])
    member = c.views["node1"].backend
    with owners_watched(c):
        with c.api_away():
            os.kill(member.container_process("railmated"), signal.SIGKILL)
            until(lambda: not member.allocatable().get(VF),
                  "the kubelet to notice that railmated is gone")
            began = time.monotonic()
            until(lambda: member.allocatable().get(VF), "railmated to be back")
            took = time.monotonic() - began
            time.sleep(3)
        check_unharmed(c, before)
        c.wait_served()
        c.end(one_pod(c, 1, 1, on="node1")[0])
    check_nothing_is_stuck(c, "node1")
    return f"allocatable again after {took:.1f} s"


def stateful_set(name, node, vfs):
    pod = {
        "hostNetwork": True, "terminationGracePeriodSeconds": 8,
        "nodeSelector": {"kubernetes.io/hostname": node}, "automountServiceAccountToken": False,
        "volumes": [{"name": "keep",
                     "emptyDir": {}}], "containers": [container("main", 0, vfs, then=DEAF)]
    }
    return {
        "apiVersion": "apps/v1", "kind": "StatefulSet",
        "metadata": {"name": name, "namespace": "default"}, "spec": {
            "serviceName": name, "replicas": 1, "selector": {"matchLabels": {"app": name}},
            "template": {"metadata": {"labels": {"app": name}}, "spec": pod}
        }
    }


@scenario(HELM)
def a_stateful_sets_pod_is_deleted_by_force(c):
    """It wants most of the node's VFs and ignores SIGTERM; its successor has its name and waits
    until it is gone."""
    path = "/apis/apps/v1/namespaces/default/statefulsets"
    view = c.views["node1"]
    c.api("POST", path, stateful_set("web", "node1", len(view.vf) - 2))
    try:
        until(lambda: view.processes(), "the first web-0")
        (old,) = view.processes()
        first = c.found("web-0")["metadata"]["uid"]
        with owners_watched(c):
            c.delete_by_force("web-0")
            until(lambda: old not in view.processes(), "the old process to end")
            until(lambda: set(view.processes()) - {old}, "its successor to run", 3 * LIMIT)
        check(c.found("web-0")["metadata"]["uid"] != first, "it is the same pod")
    finally:
        c.api("DELETE", f"{path}/web")
        until(lambda: c.found("web-0") is None, "web-0 to go")
        until(lambda: not view.lingering(), "its process to end")
    check_nothing_is_stuck(c, "node1")
