"""
What the kubelet's own suite wants of a device plugin (kubernetes,
test/e2e_node/device_plugin_test.go), of this one: assignments stay what they are over restarts of
pods, kubelet and plugin in all combinations; pods that are deleted while the kubelet is down;
restartable init containers.
"""
import os
import signal

from scenarios import GPU, VF, check, check_container, container, equal, until
from shared import HELM, check_nothing_is_stuck, one_pod, owners_watched, scenario

NODE = "node1"


def restart_pod(c, name, instance):
    """Its only container ends, and is started again."""
    view = c.views[NODE]
    pid = next(pid for container_id, (pid, _) in view.processes().items()
               if container_id in view.running(name)["main"])
    os.kill(pid, signal.SIGKILL)
    return lambda: view.report(name, "main", instance)


def kubelet_restarted(c):
    view = c.views[NODE]
    with view.backend.without_kubelet(signal.SIGTERM):
        pass
    until(lambda: view.podres("list") is not None, "the kubelet to answer")
    view.wait_registered()


def assignments_stay(c, *, pod=False, kubelet=False, plugin=False):
    """Two pods; what they have before and after is the same, and never in common."""
    view = c.views[NODE]
    names = [one_pod(c, 1, 2, on=NODE)[0] for _ in range(2)]
    before = {name: view.held()[name] for name in names}
    containers = {name: view.running(name) for name in names}
    with owners_watched(c):
        if plugin:
            c.another_railmate(NODE)
        if kubelet:
            kubelet_restarted(c)
        if pod:
            for name in names:
                restart_pod(c, name, 1)()
        c.wait_served()
        until(lambda: set(names) <= set(view.held()) and all(view.running(name) for name in names),
              "the pods to run")
        equal({name: view.held()[name] for name in names}, before, "devices by PodResources")
        for name in names:
            check_container(view, name, "main", 1, 2, instance=int(pod))
            check(pod or view.running(name) == containers[name], f"{name} was restarted")
        one_pod(c, 1, 2, on=NODE)
    every = [
        device for held in view.held().values() for one in held.values() for ids in one.values()
        for device in ids
    ]
    equal(len(every), len(set(every)), "devices that are assigned, each counted once")


@scenario(HELM)
def assignments_stay_over_restarts_of_pods(c):
    assignments_stay(c, pod=True)


@scenario(HELM)
def assignments_stay_over_restarts_of_the_kubelet(c):
    assignments_stay(c, kubelet=True)


@scenario(HELM)
def assignments_stay_over_restarts_of_pods_and_the_kubelet(c):
    assignments_stay(c, pod=True, kubelet=True)


@scenario(HELM)
def assignments_stay_over_restarts_of_railmated(c):
    assignments_stay(c, plugin=True)


@scenario(HELM)
def assignments_stay_over_restarts_of_the_kubelet_and_railmated(c):
    assignments_stay(c, kubelet=True, plugin=True)


@scenario(HELM)
def pods_deleted_while_the_kubelet_is_down_are_cleaned_up(c):
    view = c.views[NODE]
    name, _ = one_pod(c, 2, 4, on=NODE)
    stays, _ = one_pod(c, 1, 1, on=NODE)
    before = view.running(stays)
    with owners_watched(c):
        with view.backend.without_kubelet():
            c.delete_by_force(name)
            until(lambda: c.found(name) is None, "the API server to forget the pod")
            c.live.remove(name)
        view.wait_registered()
        until(lambda: name not in view.held(),
              "the kubelet to give the devices of the deleted pod back")
        until(lambda: not view.lingering(), "its processes to end")
        equal(view.running(stays), before, "containers of the pod that stays")
        check_nothing_is_stuck(c, NODE)


@scenario(HELM)
def a_restartable_init_container_has_devices_of_its_own(c):
    name = c.run(container("main", 1, 1), init=[container("side", 1, 1, restartPolicy="Always")],
                 on=NODE)
    view = c.views[NODE]
    side, main = check_container(view, name, "side", 1,
                                 1), check_container(view, name, "main", 1, 1)
    check(not set(side[1]) & set(main[1]) and not set(side[0]) & set(main[0]),
          "the two containers share a device")
    equal({resource
           for one in view.held()[name].values()
           for resource in one}, {GPU, VF}, "resources of the pod")
