"""What scenarios of the cluster share. Standard library only."""
import contextlib

from faults import held_by, one_owner_each
from scenarios import GPU, VF, check_container, check_optimal, container, equal, until

KUSTOMIZE, HELM = ("kustomize",), ("helm",)
SCENARIOS = []


def scenario(how=KUSTOMIZE, served=True, always=True):
    """how: railmate is installed when it begins, and when it has passed; served: there are VFs
    then; always: also when no word chooses it."""
    def add(function):
        function.how, function.served, function.always = how, served, always
        SCENARIOS.append(function)
        SCENARIOS.sort(
            key=lambda f:
            (f.how[0] == "helm", f.how))  # what is installed alike comes one after the other
        return function
    return add


def pool(name):
    """Settings of the chart: the VFs of both machines, and no RDMA device beside them."""
    return f"pools[0].resourceName={name},pools[0].resourcePrefix=rdma,pools[0].selectors.devices={{101c,101e}},pools[0].selectors.isRdma=true"


def one_pod(c, gpus, vfs, **more):
    """A pod of one container, checked on the node that the scheduler chose; (its name, were GPUs
    first). These are optimal."""
    free = {name: view.free() for name, view in c.views.items()}
    name = c.run(container("main", gpus, vfs), **more)
    view = c.view_of(name)
    mine = check_container(view, name, "main", gpus, vfs)
    gpus_first = view.order(name) == [GPU, VF]
    if gpus_first:
        check_optimal(view, *mine, free[view.backend.name])
    return name, gpus_first


@contextlib.contextmanager
def owners_watched(c):
    """On no node a VF is in two live containers."""
    with contextlib.ExitStack() as stack:
        for view in c.views.values():
            stack.enter_context(one_owner_each(view))
        yield


def live_containers(c, names):
    """What check_unharmed compares: processes, VFs and files of their containers."""
    return {name: held_by(c.view_of(name), name) for name in names}


def check_unharmed(c, before):
    equal(live_containers(c, before), before, "process, VFs and files of containers that live on")


def check_nothing_is_stuck(c, *nodes):
    """A pod with all VFs of a node runs there when the others are gone."""
    c.end(*c.live)
    for name in nodes or c.views:
        view = c.views[name]
        until(lambda v=view: len(v.allocatable().get(VF, [])) == len(v.vf),
              f"all VFs of {name} to be free", failure=AssertionError)
        until(lambda n=name, v=view: c.offered(n) == len(v.vf),
              f"the scheduler to know that all VFs of {name} are free")
        c.end(one_pod(c, 0, len(view.vf), on=name)[0])


def refused(c, name):
    status = c.status(name) or {}
    return status.get("phase") == "Failed" and f"{status.get('reason')}: {status.get('message')}"


def unscheduled(c, name):
    """Why the scheduler has no node for it."""
    for condition in (c.status(name) or {}).get("conditions", []):
        if condition["type"] == "PodScheduled" and condition["status"] == "False":
            return condition.get("message")
    return None


def settles(c, name):
    """Runs, or was refused: then why."""
    found = c.found(name)
    return refused(c, name) or (found["spec"].get("nodeName")
                                and "main" in c.view_of(name).running(name))


def line_of(c, node, words):
    """railmated's newest instance on that node; the line."""
    def line():
        return next((line for line in c.railmate_log(node).splitlines() if words in line), None)
    return until(line, f"railmated on {node} to say '{words}'")
