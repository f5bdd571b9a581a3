"""What a cluster goes through when nothing is broken: updates, and a DaemonSet that is deleted and
comes back."""
import json
import os
import time

from node import ENDED
from scenarios import SLOWNESS, VF, Unsupported, check, check_gaps, container, equal, probe_may_be_absent, until
from shared import check_nothing_is_stuck, check_unharmed, live_containers, one_pod, owners_watched, refused, scenario, settles, unscheduled

STREAM = 6  # pods at a time
PAUSE_S = 0.3


def is_rolling(c):
    found = c.api("GET", "/apis/apps/v1/namespaces/kube-system/daemonsets/railmate")
    status, wanted = found["status"], len(c.views)
    old = [pod for pod in c.railmates().values() if "deletionTimestamp" in pod["metadata"]]
    return (status["observedGeneration"] < found["metadata"]["generation"]
            or status.get("updatedNumberScheduled") != wanted
            or status.get("numberAvailable") != wanted or len(c.railmates()) != wanted or bool(old))


def stream_while(c, going):
    """Pods with a VF come and go until going() is over; (how many came, why some were refused)."""
    names, lost, count = [], [], 0
    while going() or count < STREAM:
        names.append(c.new(container("main", 0, 1), grace=1))
        count += 1
        time.sleep(PAUSE_S * SLOWNESS)
        if len(names) == STREAM:
            until(lambda: settles(c, names[0]), "a pod of the stream to run, or to be refused")
            lost += filter(None, [refused(c, names[0])])
            c.end(names.pop(0))
    for name in names:
        until(lambda n=name: settles(c, n), "a pod of the stream to run, or to be refused")
        lost += filter(None, [refused(c, name)])
    c.end(*names)
    return count, lost


def update(c):
    """A rolling update; (milliseconds without devices on each node, pods that came meanwhile, why
    some were refused)."""
    ends = {one.name: len(one.kubelet_lines(ENDED)) for one in c.members}
    c.kubectl("-n", "kube-system", "rollout", "restart", "ds/railmate")
    count, lost = stream_while(c, lambda: is_rolling(c))
    for one in c.members:
        seen = len(one.kubelet_lines(ENDED)) - ends[one.name]
        equal(seen, 1, f"ends of a list that the kubelet of {one.name} saw")
    return [
        until(one.gap_ms,
              f"the end of the old list and a new one, in the log of {one.name}'s kubelet")
        for one in c.members
    ], count, lost


@scenario()
def a_rolling_update_under_a_stream_of_pods(c):
    stays = [one_pod(c, 1, 2, on=name)[0] for name in c.views]
    before, took, came, lost = live_containers(c, stays), [], 0, []
    with owners_watched(c):
        for _ in range(2):
            gaps, count, why = update(c)
            took, came, lost = took + gaps, came + count, lost + why
    check_unharmed(c, before)
    words = check_gaps(took, lost)
    check_nothing_is_stuck(c)
    return f"{words}, of {came} that came meanwhile"


@scenario()
def the_daemon_set_is_deleted_and_comes_back(c):
    name, _ = one_pod(c, 2, 2)
    before = live_containers(c, [name])
    c.kubectl("-n", "kube-system", "delete", "ds", "railmate")
    for node in c.views:
        until(lambda n=node: c.offered(n) == 0, f"the scheduler to know that {node} offers nothing")
    waits = c.new(container("main", 1, 1))
    said = until(lambda: unscheduled(c, waits), "the scheduler to say why a pod waits")
    check(VF in said, f"the pod waits for something else: {said}")
    check_unharmed(c, before)
    began = time.monotonic()
    c.kubectl("apply", "-k", c.DEPLOY)
    c.wait_running(waits)
    took = time.monotonic() - began
    c.rolled_out()
    c.wait_served()
    check_unharmed(c, before)
    check_nothing_is_stuck(c)
    return f"{said!r}; the pod that waited runs {took:.1f} s after the DaemonSet is back"


def released(c):
    """A folder by which kubectl applies deploy/ of the last release."""
    if not c.args.released:
        raise Unsupported("the last release is not here: build-released says why")
    folder = c.work / "released"
    folder.mkdir()
    (folder / "kustomization.yaml").write_text(
        json.dumps({
            "resources": [os.path.relpath(c.args.released / "src/deploy", folder)],
            "images": [{"name": "railmate", "newTag": "released"}]
        }))
    return folder


@scenario()
@probe_may_be_absent()
def an_upgrade_from_the_last_release_and_back(c):
    """Twice each: pods of one version are held by the other one, which explains them."""
    old = released(c)
    c.apply(old)
    with owners_watched(c):
        stays = [one_pod(c, 1, 2, on=name)[0] for name in c.views]
        for folder in (c.DEPLOY, old, c.DEPLOY):
            before = live_containers(c, stays)
            c.apply(folder)
            until(
                lambda f=folder: {
                    pod["spec"]["containers"][0]["image"].endswith(":released")
                    for pod in c.railmates().values()
                } == {f == old}, "the instances of the other version to go")
            check_unharmed(c, before)
            stays.append(one_pod(c, 1, 2)[0])
            for name in stays:
                equal(len(c.view_of(name).explain(name)), 1,
                      f"choices that railmatectl explains for {name}")
    check_nothing_is_stuck(c)
