"""docs/quickstart.md: its commands, word for word, as a reader runs them one after the other, for a
node of each kind; then those of docs/ai-conformance.md."""
import json
import re
import shutil

from node import PROBE, TOP, call
from scenarios import check, equal, until
from fleet import environment
from shared import KUSTOMIZE, scenario

# What is not run: there is no PF that makes VFs, and the image is on the nodes already.
ELSEWHERE = ("echo 8 > /sys/class/net/", "hack/image ", "skopeo copy ")
IMAGE = "registry.example.com/pytorch"  # "yours"
JUDGES = re.compile("railmatectl doctor|railmate status")
FOUND = {0, 5, 6, 7}  # exit statuses of those, which find something


def commands():
    """Those of all code blocks before the examples."""
    text = (TOP / "docs/quickstart.md").read_text().partition("\n## What to ask for")[0]
    text += (TOP / "docs/ai-conformance.md").read_text()
    lines = [line for block in re.findall(r"^```\n(.*?)^```", text, re.M | re.S)
             for line in block.splitlines()]
    for words in ELSEWHERE:
        equal(sum(line.startswith(words) for line in lines), 1, f"lines that begin with {words}")
    return [line for line in lines if not line.startswith(ELSEWHERE)]


def copy_of_deploy(c):
    """With what a reader writes into it."""
    folder = c.work / "quickstart"
    shutil.rmtree(folder, ignore_errors=True)
    shutil.copytree(c.DEPLOY, folder / "deploy")
    pod = folder / "deploy/examples/single-pod.yaml"
    check(IMAGE in pod.read_text(), f"single-pod.yaml has no image {IMAGE}")
    pod.write_text(pod.read_text().replace(IMAGE, PROBE))
    return folder


def walk(c, lines, node, folder):
    """{command: what it printed}, by one shell; each but those that judge has to succeed."""
    lines = [re.sub(r"^NODE=gpu-1\b", f"NODE={node}", line) for line in lines]
    check(f"NODE={node} " in "".join(lines), "no line says which node the reader has")
    script = "".join(f"{line}\necho \"@@ $?\"\n" for line in lines)
    done = call("bash", "-c", script + "exit 0", check=False, cwd=folder, env=environment(c),
                text=True, capture_output=True, limit=300)
    parts = re.split(r"^@@ (\d+)\n", done.stdout, flags=re.M)
    for line, status in zip(lines, map(int, parts[1::2])):
        check(status == 0 or JUDGES.search(line) and status in FOUND,
              f"for {node}, `{line}` exits with {status}: {done.stderr}")
    return dict(zip(lines, parts[::2]))


def said(answers, words):
    (text,) = {text for line, text in answers.items() if words in line}
    return text


def check_answers(c, node, answers):
    view = c.views[node]
    equal(c.offered(node), len(view.vf), f"VFs on {node} with the pools of the quick start")
    plan = said(answers, "plan --gpus 0,1 --vfs 2")
    check(len(set(re.findall(r"^  GPU \S+ +VF (\S+) ", plan, re.M)) & set(view.vf)) == 2,
          f"plan names no two VFs of {node}: {plan}")
    check(re.search(rf"rdma/vf:\s+{len(view.vf)}\n", said(answers, "describe node")),
          f"the description of {node} has no rdma/vf")
    vfs = [one["vf"] for one in json.loads(said(answers, "logs single"))["gpus"]]
    check(len(vfs) == 4 and set(vfs) <= set(view.vf), f"the map of the pod on {node} has {vfs}")
    why = said(answers, "explain pod")
    check(all(vf in why for vf in vfs), f"explain does not name the VFs of the pod: {why}")
    check_attested(view, answers, vfs)


def check_attested(view, answers, vfs):
    """What docs/ai-conformance.md wants to be seen in the answers."""
    node = view.backend.name
    check(re.search(rf"^{node} +\d+ +{len(view.vf)}$", said(answers, "custom-columns"), re.M),
          f"no column has the VFs of {node}")
    equal({vf["pci"] for vf in json.loads(said(answers, "topo --json"))["vfs"]} & set(view.vf),
          set(view.vf), f"VFs of {node} in its topology")
    equal(len(json.loads(said(answers, "--vfs 4 --json"))["chosen"]), 4, "VFs of the plan")
    equal([one["vf"] for one in json.loads(said(answers, "'cat /run/railmate/map.json'"))["gpus"]],
          vfs, "VFs in the map of the pod")
    check("NCCL_IB_HCA=" in said(answers, "sh -c env"), "no variable of NCCL in the pod")
    equal(len(re.findall(r"uverbs\d+", said(answers, "ls /dev/infiniband"))), 4, "RDMA devices")


@scenario()
def the_quick_start_is_walked_on_both_nodes(c):
    lines, folder = commands(), copy_of_deploy(c)
    for node in c.views:
        others = set(c.views) - {node}
        c.uninstall()
        c.kubectl("cordon", *others)
        try:
            answers = walk(c, lines, node, folder)
            c.how = KUSTOMIZE
            until(lambda n=node: c.offered(n) == len(c.views[n].vf), f"all VFs of {node}")
            check_answers(c, node, answers)
        finally:
            c.kubectl("uncordon", *others)
            c.kubectl("delete", "pod", "single", "--ignore-not-found", "--grace-period=1")
            c.kubectl("-n", "kube-system", "delete", "configmap", "railmate-config",
                      "--ignore-not-found")
        c.wait_unheld()
    return f"{len(lines)} commands"
