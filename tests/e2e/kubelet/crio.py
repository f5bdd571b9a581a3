"""
The same node whose kubelet has CRI-O as its runtime. containerd stays beside it for one container,
railmated's own; there is no registry, images come from files. Standard library only.
"""
import contextlib
import json
import pathlib
import re
import signal
import subprocess
import time

import node
import scenarios
from failures import railmated_with
from faults import (check_nothing_is_stuck, check_unharmed, either, held_by, is_in_backoff,
                    one_owner_each)
from late import check_cdi, check_late, late
from scenarios import check, container, equal, scenario, until

SOCKET = "/run/crio/crio.sock"
ROOT, STATE = "/var/lib/containers/storage", "/run/crun"
STORAGE = f"""
[storage]
driver = "overlay"
graphroot = "{ROOT}"
runroot = "/run/containers/storage"
"""


def crio_config(programs, crun, work):
    """TOML, of what differs from CRI-O's own idea of a node: no systemd, no AppArmor, other
    places."""
    tables = {
        "crio.api": {"listen": SOCKET},
        "crio.runtime": {"cgroup_manager": "cgroupfs", "conmon_cgroup": "pod",
                         "apparmor_profile": "unconfined", "default_runtime": "crun",
                         "pinns_path": str(programs / "pinns"), "log_level": "debug"},
        "crio.runtime.runtimes.crun": {"runtime_path": str(crun / "crun"), "runtime_root": STATE,
                                       "monitor_path": str(crun / "conmon")},
        "crio.image": {"pause_image": node.PAUSE, "pause_command": "",
                       "signature_policy": str(work / "policy.json")},
        "crio.network": {"network_dir": str(work / "cni/net.d"),
                         "plugin_dirs": [str(work / "cni/bin")]},
    }
    return "\n".join(f"[{table}]\n" + "".join(f"{name} = {json.dumps(value)}\n"
                                              for name, value in values.items())
                     for table, values in tables.items())


class Crio:
    """Before Node, or what is made of it."""
    socket, runtime_name, runtime_mounts = SOCKET, "CRI-O", (f"{ROOT}/",)
    # Its oom_score_adj is negative, which a container may not set; containerd can be told to leave it.
    patches = "    - {op: remove, path: /spec/template/spec/priorityClassName}\n"

    def __init__(self, args):
        super().__init__(args)
        self.crio = None
        (self.work / "storage.conf").write_text(STORAGE)
        self.env["CONTAINERS_STORAGE_CONF"] = str(self.work / "storage.conf")
        (self.work / "policy.json").write_text(
            json.dumps({"default": [{"type": "insecureAcceptAnything"}]}))
        for folder in ("cni/bin", "cni/net.d"):
            (self.work / folder).mkdir(parents=True, exist_ok=True)

        self.settle_cgroups()

    def settle_cgroups(self):
        """Version 1 only, for crun takes no mixture. And not hugetlb where that is mounted nowhere: CRI-O
        sets its limits all the same, which no OCI runtime can."""
        if (node.CGROUP / "cgroup.controllers").exists():
            return
        node.call("umount", "-l", node.CGROUP / "unified", check=False, stderr=subprocess.DEVNULL)
        if (node.CGROUP / "hugetlb").exists():
            return
        without = self.work / "controllers"
        without.write_text(re.sub(r"^(hugetlb.*)1$", r"\g<1>0", pathlib.Path("/proc/cgroups").read_text(),
                                  flags=re.M))
        node.call("mount", "--bind", without, "/proc/cgroups")

    def start_runtime(self):
        self.start_containerd()
        self.start_crio()

    def start_crio(self):
        version = node.call(self.args.crio / "crio", "--version", stdout=subprocess.PIPE,
                            stderr=subprocess.DEVNULL, text=True).stdout
        self.runtime = version.split("version")[1].split()[0]
        config = self.work / "crio.conf"
        config.write_text(crio_config(self.args.crio, self.args.crun, self.work))
        self.crio = self.spawn("crio.log", self.args.crio / "crio", "--config", config,
                               "--config-dir", "")
        until(self.crio_answers, "CRI-O", node.START_LIMIT)

    def crio_answers(self):
        return node.call(self.args.crio / "crio", "status", "--socket", SOCKET, "info", check=False,
                         stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL).returncode == 0

    @contextlib.contextmanager
    def runtime_away(self, sig):
        """CRI-O ends by this signal, and is started again afterwards; what watches its containers
        stays."""
        self.crio.send_signal(sig)
        self.crio.wait(node.START_LIMIT)
        try:
            yield
        finally:
            self.start_crio()

    def settle(self):
        """What watched a container is in the pod's cgroup, and ends when the kubelet removes that, after it
        has forgotten the pod: railmated, which saw it, looks again after a second."""
        deadline = time.monotonic() + 2 * scenarios.SLOWNESS
        log = self.railmate_log(self.newest_railmate()) if self.railmates else ""
        waits = set(re.findall(r"withheld until it is idle .* uid=(\S+)", log))
        while waits - set(re.findall(r"VFs are free: .* uid=(\S+)", log)) and time.monotonic() < deadline:
            time.sleep(0.1)
            log = self.railmate_log(self.newest_railmate())

    def import_image(self, archive, name):
        node.call(self.args.crio / "copyimg", "--signature-policy",
                  self.work / "policy.json", "--image-name", name, "--import-from", archive,
                  env=self.env)

    def load_pod_image(self, file, tag):
        self.import_image(f"docker-archive:{file}", tag)

    def load_railmate_for_pods(self):
        self.import_image(f"oci-archive:{self.image}", node.RAILMATE)

    def runs(self, container_id):
        listed = node.call(self.args.crun / "crun", "--root", STATE, "list", "--format", "json",
                           stdout=subprocess.PIPE, text=True).stdout
        return any(one["id"] == container_id.split("//")[1] and one["status"] == "running"
                   for one in json.loads(listed) or [])


# --- scenarios ---

@either
def the_runtime_ends_and_comes_back(c):
    """Containers and their VFs stay; what comes meanwhile gets others, as soon as it is back."""
    for sig in (signal.SIGTERM, signal.SIGKILL):
        with one_owner_each(c):
            old = [c.run(container("main", gpus, 2)) for gpus in (0, 2)]
            before = held_by(c, *old)
            with c.runtime_away(sig):
                new = [c.new(container("main", gpus, 2)) for gpus in (0, 2)]
                until(lambda n=new: set(n) <= set(c.held()), "the pods to be admitted")
                equal(held_by(c, *old), before, "processes, VFs and files while it is away")
            for name in new:
                c.wait_running(name, ["main"])
            check_unharmed(c, before)
            c.end(*new, *old)
    check_nothing_is_stuck(c)


@late
def the_runtime_dies_while_a_container_is_bound(c):
    """The kubelet asks PreStartContainer again, and the container has what it was given first."""
    relay, *options = c.relay_pod_resources()
    try:
        with railmated_with(c, *options):
            until(lambda: not c.cdi_slots(), "the CDI specs of others to go")
            relay.answers.close()
            name = c.new(container("main", 2, 2))
            until(lambda: any(f'pod="default/{c.name_of(name)}"' in line
                              for line in c.kubelet_lines('"Creating container in pod"')),
                  "the container's turn")
            time.sleep(0.5 * scenarios.SLOWNESS)  # PreStartContainer waits for the answer
            with c.runtime_away(signal.SIGKILL):
                relay.answers.open.set()
                until(lambda: len(c.cdi_slots()) == 2, "the binding")
                bound = c.explain(name)[0]["decision"]["chosen"]
            c.wait_running(name, ["main"])
            _, vfs, _ = check_late(c, name, "main", 2, 2)
            equal(vfs, sorted(bound), "the VFs that it was bound to")
            check_cdi(c)
            c.end(name)
    finally:
        relay.close()


@scenario(binding="late", api=True)
def a_pod_without_a_process_keeps_its_vfs_while_the_kubelet_restarts(c):
    """Its container is in its back-off, and its sandbox has no process."""
    crashes = c.new(container("main", 0, 2, then="exit 3\n"))
    until(lambda: is_in_backoff(c, crashes), "the container's back-off")
    check(crashes in c.held(), "the kubelet does not show the pod")
    with c.api_away():
        c.kubelet_restart()
        time.sleep(15)
    freed = [line for line in c.railmate_log(c.newest_railmate()).splitlines()
             if "VFs are free" in line and f"/{crashes} " in line + " "]
    check(not freed, f"railmated gave them up: {freed}")
