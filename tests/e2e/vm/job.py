"""
kubectl railmate probe over the pods of a Job: an API server, etcd and the controller of Jobs run beside the real kubelet, and the
real kubectl executes railmate-probe, as the image has it, in the containers. Each pod has a VF on each of two rails, on the host's
network: soft RDMA does not reach from one network namespace into another one. The first scenario starts all this.
"""

import contextlib
import json
import os
import re
import subprocess

import node
import real
from bed import check, equal, rdma_links, read, scenario, shell
from control import ADDRESS, PODS, ControlledNode
from probe import BROKEN, GOOD, NOT_MEASURED, route_all
from real import PROGRAMS, WORK
from scenarios import until
from traffic import address_of, received

RAILS = {"rdma/vf": "pf23", "rdma/far": "pf63"}
POOLS = {
    "resourceList": [{
        "resourcePrefix": "rdma", "resourceName": resource.split("/")[1],
        "selectors": {"isRdma": True, "pfNames": [pf]}, "railmate": {"binding": "late", "network": "host"}
    } for resource, pf in RAILS.items()]
}
JOBS = "/apis/batch/v1/namespaces/default/jobs"
JOB = "train"
ENOUGH = ("--seconds", "100")  # for all runs, of which none takes more than one
MAIN = {
    "name": "main", "image": node.PROBE, "imagePullPolicy": "Never", "resources": {"limits": dict.fromkeys(RAILS, "1")},
    "command": ["/bin/busybox", "sh", "-c", "trap 'exit 0' TERM; while :; do sleep 1 & wait $!; done"],
    "securityContext": {"capabilities": {"add": ["IPC_LOCK"]}}, "volumeMounts": [{"name": "shm", "mountPath": "/dev/shm"}]
}
PLAIN = {**MAIN, "name": "plain", "resources": {}}


class JobNode(real.RealNode, ControlledNode):
    """The guest's node, whose kubelet has an API server."""

    def __init__(self):
        for name in ("etcd", "kube-apiserver", "kube-controller-manager", "kubectl"):
            os.symlink("kubelet", PROGRAMS / name)
        os.symlink("railmatectl", PROGRAMS / "kubectl-railmate")
        super().__init__()

    def start(self):
        with open("/etc/hosts", "a", encoding="utf-8") as hosts:  # the API server looks for the node by its name
            hosts.write(f"{ADDRESS} {node.NODE}\n")
        self.start_control_plane()
        super().start()
        until(self.api_is_up, "the API server", node.START_LIMIT)
        self.spawn("kube-controller-manager.log", self.control_program("kube-controller-manager"), "--kubeconfig", self.kubeconfig,
                   "--controllers=job-controller", "--leader-elect=false", f"--cert-dir={WORK}/keys")

    def start_kubelet(self):
        self.kubelet_options["address"] = "0.0.0.0"  # kubectl exec comes by the node's
        return super().start_kubelet()

    def wait_registered(self, resource=None):
        for name in [resource] if resource else RAILS:
            super().wait_registered(name)


class Job:
    """Its pods have started; what they say to kubectl railmate probe."""

    def __init__(self, c):
        self.c, self.env = c, {**os.environ, "PATH": f"{PROGRAMS}:{os.environ['PATH']}", "KUBECONFIG": str(c.kubeconfig)}
        self.pods = until(self.running, "the pods of the job to run")

    def running(self):
        with contextlib.suppress(AssertionError):  # 504 on a busy machine
            said = self.c.api("GET", PODS)["items"]
            names = sorted(p["metadata"]["name"] for p in said if p["status"].get("phase") == "Running")
            return len(names) == 2 and names
        return None

    def kubectl(self, *argv):
        done = subprocess.run(["kubectl", *argv], env=self.env, stdin=subprocess.DEVNULL, capture_output=True, text=True)
        return done.returncode, done.stdout, done.stderr

    def begin_probe(self, *argv):
        options = [] if "--" in argv else ["--", *ENOUGH]
        return subprocess.Popen(["kubectl", "railmate", "probe", "--timeout", "600", *argv, *options], env=self.env,
                                stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)

    def probe(self, status, *argv):
        """Its output, which is printed for whoever reads the log."""
        with self.begin_probe(*argv) as process:
            return self.ended(process, status)

    def ended(self, process, status):
        said, complained = process.communicate()
        print(*process.args[3:], f"ends with {process.returncode}", said, complained, sep="\n", flush=True)
        equal((process.returncode, complained), (status, ""), f"{' '.join(process.args[3:])}: {said[-800:]}")
        return said

    def hcas(self, pod):
        """RDMA device → its netdev, by rail; the devices as the container was told."""
        status, said, complained = self.kubectl("exec", pod, "-c", "main", "--", "cat", "/run/railmate/map.json")
        if status != 0:  # a handshake that takes long, on a busy machine
            print(complained, flush=True)
            return None
        return {e["hca"]: rdma_links()[e["hca"]] for e in sorted(json.loads(said)["gpus"], key=lambda e: e["rail"])}


@contextlib.contextmanager
def job():
    real.Started.kind = JobNode
    with real.cluster(config=POOLS) as c:
        template = {
            "metadata": {}, "spec": {
                "nodeName": node.NODE, "hostNetwork": True, "restartPolicy": "Never", "terminationGracePeriodSeconds": 2,
                "automountServiceAccountToken": False, "tolerations": [{"operator": "Exists"}], "containers": [MAIN, PLAIN],
                "volumes": [{"name": "shm", "emptyDir": {"medium": "Memory", "sizeLimit": "64Mi"}}]
            }
        }
        spec = {"completions": 2, "parallelism": 2, "completionMode": "Indexed", "backoffLimit": 9, "template": template}
        c.api("POST", JOBS, {"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": JOB}, "spec": spec})
        try:
            yield Job(c)
        finally:
            c.api("DELETE", f"{JOBS}/{JOB}?propagationPolicy=Background")
            for pod in c.api("GET", PODS)["items"]:  # no collector of garbage runs
                c.delete(pod["metadata"]["name"])
            until(lambda: not c.held(), "the pods of the job to go")


def rows(table):
    """(verdict, from, to, pod) → its five figures, of a table."""
    found = re.findall(r"^(\w[\w ]*?) +same host +(\S+) > (\S+)((?: +[\d.-]+){5})  (\S+)$", table, re.M)
    return {(*ends, pod): figures.split() for *ends, figures, pod in found}


def connect(j):
    """The interfaces of all their VFs over the wire."""
    j.ends = [until(lambda p=pod: j.hcas(p), f"map.json of {pod}") for pod in j.pods]
    route(j)


def route(j):
    netdevs = [netdev for end in j.ends for netdev in end.values()]
    addresses = [address_of(netdev) for netdev in netdevs]
    shell(f"selfroute {netdevs[0]} {addresses[0]} {netdevs[2]} {addresses[2]}")
    route_all(netdevs, addresses)


def check_table(j, table):
    """Each rail of the second pod to that of the first one, every figure of both."""
    found = rows(table)
    equal(set(found), {("good", a, b, j.pods[1]) for b, a in zip(*j.ends)}, f"rows of {table}")
    check(all(figure != "-" and float(figure) > 0 for figures in found.values() for figure in figures), f"a figure lacks: {table}")
    check(f"to {j.pods[0]})" in table and max(map(len, table.splitlines())) <= 100, f"the table: {table}")


@scenario
def the_pods_of_a_job_reach_each_other():
    """kubectl railmate probe JOB, POD POD and POD: two pods of a real kubelet, rail by rail, all rails at once, by railmate-probe of the image"""
    with job() as j:
        connect(j)
        check_table(j, j.probe(GOOD, JOB))
        before = [received(d) for d in j.ends[1]]
        found = json.loads(j.probe(GOOD, j.pods[1], j.pods[0], "--json"))
        equal((found["outcome"], [(r["pod"], r["served"], r["error"]) for r in found["reports"]]),
              ("good", [(j.pods[0], False, None), (j.pods[1], True, None)]), "the reports")
        measures = found["reports"][0]["report"]["measures"]
        equal(sorted((m["from"], m["to"].rpartition("/")[2], m["op"], m["together"]) for m in measures),
              sorted((a, b, op, together) for a, b in zip(*j.ends)
                     for op, together in (("write", False), ("read", False), ("send", False), ("write", True))), "measured")
        for m in measures:
            check(m["verified"] and m["outcome"] == "good" and m["gbps"] > 0, f"a measure: {m}")
        for d, was in zip(j.ends[1], before):
            check(received(d) - was > 100, f"{d} received {received(d) - was} packets")
        alone = j.probe(GOOD, j.pods[0])
        check(j.ends[0].keys() <= set(re.findall(r"rxe\d+_\d+", alone)), f"of one pod: {alone}")
        return f"{len(j.pods)} pods, {len(measures)} transfers"


def wait_for_traffic(devices):
    before = [received(d) for d in devices]
    until(lambda: all(received(d) > was + 50 for d, was in zip(devices, before)), "packets of every rail")


@scenario
def what_is_broken_between_the_pods_of_a_job():
    """the same with a PF's interface down, a GID gone, each pod ended in the middle, a container without VFs"""
    words = []

    def broken(status, *sentences, argv=(JOB, )):
        said = j.probe(status, *argv)
        for sentence in sentences:
            check(sentence in " ".join(said.split()), f"{sentence} is not in: {said}")
        words.extend(sentences[:1])
        return said

    with job() as j:
        connect(j)
        broken(NOT_MEASURED, "its container has no /run/railmate/probe/railmate-probe", argv=(j.pods[0], "-c", "plain"))
        for i, sentence in ((0, "its pod has gone"), (1, f"not measured: {j.pods[1]}: exit status 137")):
            with j.begin_probe(JOB) as process:
                wait_for_traffic(j.ends[1])
                gone = j.pods[i]
                j.c.delete_by_force(gone)
                said = j.ended(process, NOT_MEASURED)
                check(sentence in said, f"{sentence} is not in: {said}")
                words.append(sentence)
            j.pods = until(lambda: gone not in (j.running() or [gone]) and j.running(), "another pod in its place")
            connect(j)
        far = list(j.ends[1])[1]
        shell("ip link set pf63 down")
        until(lambda: "DOWN" in read(f"/sys/class/infiniband/{far}/ports/1/state"), f"{far} to be down")
        said = broken(BROKEN, f"broken: {j.pods[1]}: {far} port 1: the port is down")
        equal([row[1] for row in rows(said)], list(j.ends[1])[:1], "rails that are measured")
        shell("ip link set pf63 up")
        until(lambda: "ACTIVE" in read(f"/sys/class/infiniband/{far}/ports/1/state"), f"{far} to be up")

        netdev = j.ends[1][far]
        address = address_of(netdev)
        shell(f"ip addr del {address}/24 dev {netdev}")
        broken(BROKEN, f"broken: {j.pods[1]}: {far} port 1: There is no GID")
        shell(f"ip addr add {address}/24 dev {netdev}")
        route(j)
        check_table(j, j.probe(GOOD, JOB))
    return "; ".join(words)
