"""kubectl railmate: the real kubectl with its plugin, asking both nodes through the API server and
their kubelets."""
import contextlib
import json
import os
import re
import subprocess

from node import OURS, call
from scenarios import SETUP, VF, check, container, equal, until
from shared import one_pod, scenario

ADMIN = "/etc/kubernetes/admin.conf"
WARN, FAIL, UNKNOWN = 5, 6, 7  # exit statuses
JOBS = "/apis/batch/v1/namespaces/default/jobs"
OF_JOB = "labelSelector=batch.kubernetes.io%2Fjob-name%3D"

# What NCCL 2.28 prints of a process that sends to the other one. HCA: the one that it uses; by
# itself that is the one it was given.
NCCL = """
P="$(hostname):1:20 [0] NCCL INFO "
GPU=$(sed -n 's/.*"gpu": *"0000:\\(..\\):\\(..\\)\\.\\(.\\)".*/\\1\\2\\3/p' /run/railmate/map.json | sed '1!d; s/^0*//')
echo "${P}NET/IB : Using [0]${HCA:-${NCCL_IB_HCA#=}}/RoCE [RO]; OOB eth0:10.1.0.4<0>"
echo "${P}Using network IB"
echo "${P}comm 0x1 rank $JOB_COMPLETION_INDEX nranks 2 cudaDev 0 nvmlDev 0 busId $GPU commId 0x1 - Init START"
echo "${P}comm 0x1 rank $JOB_COMPLETION_INDEX nRanks 2 nNodes 2 localRanks 1 localRank 0 MNNVL 0"
echo "${P}Channel 00/0 : $JOB_COMPLETION_INDEX[0] -> $((1 - JOB_COMPLETION_INDEX))[0] [send] via NET/IB/0/GDRDMA"
trap 'exit 0' TERM; while :; do sleep 1 & wait $!; done
"""


def ctl(c):
    return c.args.build / OURS["railmatectl"] / "railmatectl"


def environment(c):
    """Of a user who has kubectl, its plugin and a kubeconfig."""
    plugins = c.work / "plugins"
    if not plugins.exists():
        plugins.mkdir()
        (plugins / "kubectl-railmate").symlink_to(ctl(c))
        (plugins / "kubectl").symlink_to(c.program("kubectl"))
    return {**os.environ, "PATH": f"{plugins}:{os.environ['PATH']}", "KUBECONFIG": ADMIN,
            "HOME": str(c.work)}


def run(c, *argv):
    """(exit status, standard output, standard error)."""
    done = call(*argv, check=False, env=environment(c), text=True, stdout=subprocess.PIPE,
                stderr=subprocess.PIPE)
    return done.returncode, done.stdout, done.stderr


def ask(c, *argv):
    return run(c, "kubectl", "railmate", *argv)


def answer(c, code, *argv):
    """Its standard output; the exit status has to be this, and nothing else is said."""
    found, text, said = ask(c, *argv)
    equal((found, said), (code, ""), f"exit status and errors of {' '.join(argv)}, that prints {text}")
    return text


def refused(c, code, sentence, *argv):
    found, text, said = ask(c, *argv)
    equal((found, text), (code, ""), f"exit status and output of {' '.join(argv)}, that says {said}")
    check(said.startswith(f"railmatectl: {sentence}"), f"{' '.join(argv)} says: {said}")


def on_machine(c, view, *argv):
    """railmatectl on the machine that railmate's containers see on that node."""
    return json.loads(
        c.tool(ctl(c), *argv, "--json", "--root", view.backend.machine.resolve(), fails=True))


def rows(text):
    """The lines of `status` between its head and its sum: cells by column."""
    head, *lines, _ = text.splitlines()
    return [dict(zip(head.split(), re.split(" {2,}", line))) for line in lines]


@scenario()
def kubectl_railmate_shows_both_nodes(c):
    """status, topo; and what is said of a node whose kubelet is away."""
    c.wait_unheld()
    name, _ = one_pod(c, 2, 2, on="node1")
    first, second = len(c.views["node1"].vf), len(c.views["node2"].vf)
    text = answer(c, WARN, "status", "--context", "kubernetes-admin@kubernetes")
    columns = "NODE", "VERDICT", "FREE", "HELD", "UNUSABLE", "LINKS", "DOCTOR"
    equal([[row[column] for column in columns] for row in rows(text)],
          [["node2", "WARN", str(second), "0", "0", "8/8", "WARN"],
           ["node1", "PASS", str(first - 2), "2", "0", "8/8", "UNKNOWN"]], "the nodes, worst first")
    check(f"2 nodes: 1 WARN, 1 PASS; {first + second} VFs: {first + second - 2} free, 2 held" in text,
          f"the sum of the nodes: {text}")
    for node, view in c.views.items():
        equal(json.loads(answer(c, 0, "topo", node, "--json")), on_machine(c, view, "topo"),
              f"the machine of {node}")
    with c.views["node2"].backend.without_kubelet():
        text = answer(c, FAIL, "status", "--no-doctor")
        equal([(row["NODE"], row["VERDICT"][:10]) for row in rows(text)],
              [("node2", "no answer:"), ("node1", "PASS")], "the nodes, worst first")
        check("error dialing backend" in text, f"why node2 does not answer: {text}")
        text = answer(c, UNKNOWN, "doctor", "--node", "node2,node9")
        check("UNKNOWN nodes" in text and "no railmate pod is on it (node9)" in text,
              f"doctor of nodes that do not answer: {text}")
        refused(c, 1, "node node2: error: unable to upgrade connection", "topo", "node2")
    c.wait_served()
    c.end(name)


@scenario()
def kubectl_railmate_explains_pods(c):
    """One that runs, one that waits, one that is gone, and one that never was."""
    name, _ = one_pod(c, 1, 2)
    view = c.view_of(name)
    told = json.loads(answer(c, 0, "explain", name, "-n", "default", "--json"))
    equal(told["choices"], view.explain(name), f"choices for {name}")
    text = answer(c, 0, "explain", f"default/{name}")
    for vf in view.held()[name]["main"][VF]:
        check(f"VF {vf}" in text, f"explain does not name {vf}: {text}")
    waits = c.new(container("main", 8, 8), on=view.backend.name)
    refused(c, 3, f"pod default/{waits} is on no node yet", "explain", waits)
    refused(c, 3, "kubectl get pod nobody: Error from server (NotFound)", "explain", "nobody")
    pools = [json.loads(line) for line in
             answer(c, 0, "explain", "pool", "--json", "--node", view.backend.name).splitlines()]
    equal([len(pool["vfs"]) for one in pools for pool in one["pools"]], [len(view.vf)], "VFs of the pool")
    c.end(name, waits)
    code, again, _ = ask(c, "explain", f"default/{name}")
    equal(code, 0, f"exit status of explain for {name}, that is gone")
    equal(again.split("chosen")[1].split("cost")[0], text.split("chosen")[1].split("cost")[0],
          f"choice for {name}, that is gone")


@scenario()
def kubectl_railmate_is_the_doctor_of_both_nodes(c):
    """The same findings as on each machine."""
    own = {(one["id"], finding["finding"], node)
           for node, view in c.views.items()
           for one in on_machine(c, view, "doctor")["checks"]
           for finding in one.get("findings", []) if finding["verdict"] != "PASS"}
    checks = json.loads(answer(c, WARN, "doctor", "--json"))["checks"]
    equal({(one["id"], finding["finding"], node)
           for one in checks for finding in one["findings"] if finding["verdict"] != "PASS"
           for node in finding["subject"].split(",")}, own, "findings of doctor")
    text = answer(c, WARN, "doctor")
    check(text.startswith("verdict: WARN\n") and "node1" in text, f"doctor in words: {text}")
    return f"{len(own)} findings"


@contextlib.contextmanager
def nccl_job(c, name, hca=""):
    """A Job of two pods, one a node, with a GPU and a VF each, that print what NCCL would."""
    main = container("main", 1, 1)
    main["command"] = ["/bin/busybox", "sh", "-c", SETUP + NCCL]
    main["env"] = [{"name": "HCA", "value": hca}, {"name": "PATH", "value": "/tmp"}]
    labels = {"nccl": name}
    c.api("POST", JOBS, {
        "apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": name}, "spec": {
            "completionMode": "Indexed", "completions": 2, "parallelism": 2, "template": {
                "metadata": {"labels": labels}, "spec": {
                    "restartPolicy": "Never", "terminationGracePeriodSeconds": 1,
                    "automountServiceAccountToken": False, "hostNetwork": True,
                    "containers": [main], "volumes": [{"name": "keep", "emptyDir": {}}],
                    "affinity": {"podAntiAffinity": {
                        "requiredDuringSchedulingIgnoredDuringExecution": [{
                            "labelSelector": {"matchLabels": labels},
                            "topologyKey": "kubernetes.io/hostname"
                        }]
                    }}
                }
            }
        }
    })
    path = f"/api/v1/namespaces/default/pods?{OF_JOB}{name}"
    try:
        for i in range(2):
            until(lambda i=i: "Channel" in c.tool(
                c.program("kubectl"), "--kubeconfig", ADMIN, "logs", f"job/{name}", "--all-pods",
                fails=True), f"the log of pod {i} of {name}")
        yield
    finally:
        c.api("DELETE", f"{JOBS}/{name}",
              {"kind": "DeleteOptions", "apiVersion": "batch/v1", "propagationPolicy": "Background"})
        until(lambda: not c.api("GET", path)["items"], f"the pods of {name} to go")


@scenario()
def kubectl_railmate_verifies_a_job(c):
    """One whose pods use the VFs that they were given, and one whose pods do not."""
    with nccl_job(c, "well"), nccl_job(c, "astray", "mlx5_99:1"):
        value = json.loads(answer(c, 0, "verify", "well", "--json"))
        equal((value["verdict"], value["findings"]), ("PASS", []), "what is said of the first job")
        equal({gpu["host"] for gpu in value["gpus"]}, set(c.views), "nodes of its pods")
        value = json.loads(answer(c, WARN, "verify", "-l", "nccl=astray", "-n", "default", "--json"))
        equal([(finding["id"], finding["count"]) for finding in value["findings"]],
              [("hca-missing", 2), ("hca-foreign", 2), ("hca-of-another-gpu", 2)],
              "what is said of the second job, of two pods")
    refused(c, 3, "no pod of a job well is there", "verify", "well")
