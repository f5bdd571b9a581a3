#!/usr/bin/python3
"""deploy/examples: every file parses, has the fields that its kind has, asks for what its pools
offer, and types no variable of a communication library by hand; and the programs themselves take
the configurations in them.

    examples.py RAILMATED RAILMATECTL FIXTURES

FIXTURES is a build's folder of machines.
"""
import ast
import json
import pathlib
import re
import subprocess
import sys
import tempfile
import unittest

import yaml

TOP = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(TOP / "tests/support"))
from kinds import CNI_PLUGINS, KINDS, META, shape, TALOS  # noqa: E402 (the path comes first)

EXAMPLES = TOP / "deploy/examples"
RAILMATED = RAILMATECTL = FIXTURES = None

GPU = re.compile(r"(nvidia|amd)\.com/gpu")
BY_HAND = re.compile(r"\b(NCCL|RCCL|UCX|NVSHMEM|MSCCLPP|FI|CCL|PSM3)_[A-Z]\w*")
CLASSES = {"gpu.nvidia.com": "nvidia.com/gpu", "rdma-vf.railmate.io": "rdma/vf"}
NETWORKS = "k8s.v1.cni.cncf.io/networks"
OPERATOR_PREFIX = "openshift.io"  # sriov-network-operator's RESOURCE_PREFIX, unless somebody changes it

# A machine on which the pools of a file have VFs.
MACHINES = {
    "pools-roce.yaml": "gb200-like", "pools-roce-late.yaml": "gb200-like",
    "pools-host.yaml": "gb200-like", "pools-inference.yaml": "gb200-like",
    "pools-infiniband.yaml": "hgx-h100", "pools-infiniband-late.yaml": "hgx-h100", "pools-exact.yaml": "hgx-h100", "pools-amd.yaml": "mi300x-baremetal",
    "pools-storage.yaml": "odd-dual-port"
}
WITH_PFS = "dgx-a100", "hgx-h100", "mi300x-baremetal"  # of InfiniBand and Ethernet, without VFs
SHARED = "pools-shared.yaml", "pools-macvlan.yaml"  # of HCAs that containers share, not of VFs

# --- what an example is ---

class Example:
    def __init__(self, name, text):
        self.name, self.text = name, text
        self.docs = [doc for doc in yaml.safe_load_all(text)
                     if doc] if name.endswith(".yaml") else []
        self.head = re.match(r"(#.*\n)*", text).group(0)
        self.needs = re.search(r"# Needs:(.*?)(?=^# Expect:|\Z)", self.head, re.M | re.S)

    def of_kind(self, kind):
        return [doc for doc in self.docs if doc.get("kind") == kind]

    def needed(self):
        """The files that have to be applied before, by what the head says."""
        return re.findall(r"[\w-]+\.yaml", self.needs.group(1)) if self.needs else []


def load(name):
    return Example(name, (EXAMPLES / name).read_text())


def pods(doc):
    """(metadata, spec) of every kind of pod that a document makes."""
    spec = doc.get("spec", {})
    if doc.get("kind") == "Pod":
        yield doc["metadata"], spec
    templates = [spec.get("template")]
    for key in ("mpiReplicaSpecs", "pytorchReplicaSpecs"):
        templates += [replicas.get("template") for replicas in spec.get(key, {}).values()]
    templates += [
        spec.get("leaderWorkerTemplate", {}).get(key)
        for key in ("leaderTemplate", "workerTemplate")
    ]
    for template in filter(None, templates):
        yield template.get("metadata", {}), template["spec"]


def pools(docs):
    """{resource: its pool} of the ConfigMaps and the operator's policies among documents."""
    found = {}
    for doc in docs:
        for pool in json.loads(doc.get("data", {}).get("config.json",
                                                       "{}")).get("resourceList", []):
            found[pool["resourcePrefix"] + "/" + pool["resourceName"]] = pool
        for pool in json.loads(doc.get("data", {}).get("shared.json", "{}")).get("configList", []):
            found[pool["resourcePrefix"] + "/" + pool["resourceName"]] = pool
        if doc.get("kind") == "SriovNetworkNodePolicy":
            found[OPERATOR_PREFIX + "/" + doc["spec"]["resourceName"]] = {}
    return found


def networks(docs):
    """{name: resource} of the networks among documents."""
    found = {}
    for doc in docs:
        if doc.get("kind") == "NetworkAttachmentDefinition":
            found[doc["metadata"]["name"]] = doc["metadata"].get(
                "annotations", {}).get("k8s.v1.cni.cncf.io/resourceName")
        if doc.get("kind") == "SriovNetwork":
            found[doc["metadata"]["name"]] = OPERATOR_PREFIX + "/" + doc["spec"]["resourceName"]
    return found


# --- what must hold ---

def check_head(example):
    lines = example.head.splitlines()
    if not 3 <= len(lines) <= 6:
        yield f"begins with {len(lines)} lines of comment, not 3 to 6"
    if not example.needs or "# Expect:" not in example.head:
        yield "its comment does not say what it needs and what to expect"
    for name in example.needed():
        if not (EXAMPLES / name).exists():
            yield f"needs {name}, which is not there"


def check_kind(doc):
    if "kind" not in doc:
        yield from shape(doc, TALOS, "")
        return
    key = doc.get("apiVersion"), doc["kind"]
    if key not in KINDS:
        yield f"{key[1]} of {key[0]}: not in the table of kinds"
        return
    schema = {"apiVersion!": str, "kind!": str, "metadata!": META, **KINDS[key]}
    yield from shape(doc, schema, doc["kind"])


def counts(container, spec, docs):
    """{resource: how many} by limits and by claims, whose classes are those of deploy/components/dra and of a GPU driver."""
    resources = container.get("resources", {})
    found = dict(resources.get("limits", {}))
    templates = {doc["metadata"]["name"]: doc["spec"]["spec"]["devices"]["requests"]
                 for doc in docs if doc.get("kind") == "ResourceClaimTemplate"}
    of_pod = {claim["name"]: templates[claim["resourceClaimTemplateName"]] for claim in spec.get("resourceClaims", [])}
    for claim in resources.get("claims", []):
        for request in of_pod[claim["name"]]:
            if claim.get("request", request["name"]) == request["name"]:
                resource = CLASSES[request["exactly"]["deviceClassName"]]
                each = int(request["exactly"].get("capacity", {"requests": {"vfs": 1}})["requests"]["vfs"])
                found[resource] = found.get(resource, 0) + request["exactly"].get("count", 1) * each
    return found


def check_container(container, spec, offered, docs):
    where = f"container {container['name']}"
    limits = counts(container, spec, docs)
    gpus = sum(count for name, count in limits.items() if GPU.fullmatch(name))
    vfs = {name: count for name, count in limits.items() if "/" in name and not GPU.fullmatch(name)}
    for name, count in vfs.items():
        if name not in offered:
            yield f"{where}: {name} is not a pool of what it needs: {', '.join(offered) or 'none'}"
        if "rdmaHcaMax" in offered.get(name, {}):
            if count != 1:
                yield f"{where}: {count} shares, and one gives all HCAs"
        elif not gpus or (gpus != count and gpus != 2 * count):
            yield f"{where}: {count} VFs and {gpus} GPUs: as many VFs as GPUs, or half as many"
    if not (gpus or vfs):
        return
    if not vfs:
        yield f"{where}: GPUs without VFs"
    if "IPC_LOCK" not in container.get("securityContext", {}).get("capabilities",
                                                                  {}).get("add", []):
        yield f"{where}: no IPC_LOCK"
    shm = [
        mount["name"]
        for mount in container.get("volumeMounts", [])
        if mount["mountPath"] == "/dev/shm"
    ]
    memory = [
        volume["name"]
        for volume in spec.get("volumes", [])
        if volume.get("emptyDir", {}).get("medium") == "Memory"
    ]
    if not shm or shm[0] not in memory:
        yield f"{where}: /dev/shm is not a volume in memory"


def check_pod(meta, spec, env):
    volumes = {volume["name"]: volume for volume in spec.get("volumes", [])}
    offered = pools(env)
    attached = [
        name.strip()
        for name in meta.get("annotations", {}).get(NETWORKS, "").split(",")
        if name.strip()
    ]
    maps = {doc["metadata"]["name"] for doc in env if doc.get("kind") == "ConfigMap"}
    wanted = {}
    for container in spec["containers"]:
        yield from check_container(container, spec, offered, env)
        for name, count in counts(container, spec, env).items():
            wanted[name] = wanted.get(name, 0) + count
        for mount in container.get("volumeMounts", []):
            if mount["name"] not in volumes:
                yield f"volume {mount['name']} is not there"
    for volume in volumes.values():
        if "configMap" in volume and volume["configMap"]["name"] not in maps:
            yield f"ConfigMap {volume['configMap']['name']} is not in what it needs"
    if attached:
        yield from check_networks(attached, networks(env), wanted)
    host = [
        name for name in wanted
        if offered.get(name, {}).get("railmate", {}).get("network") == "host"
    ]
    if bool(host) != spec.get("hostNetwork", False):
        yield "hostNetwork and the pool's network: host go together"


def check_networks(attached, known, wanted):
    for name in sorted(set(attached)):
        if name not in known:
            yield f"network {name} is not in what it needs"
        elif known[name] is None:  # of no device
            if attached.count(name) != 1:
                yield f"network {name} {attached.count(name)} times"
        elif attached.count(name) != wanted.get(known[name], 0):
            yield f"network {name} {attached.count(name)} times for {wanted.get(known[name], 0)} VFs"


def check_network(doc, offered):
    resource = doc["metadata"].get("annotations", {}).get("k8s.v1.cni.cncf.io/resourceName")
    config = json.loads(doc["spec"]["config"])
    if resource not in offered and (resource or config["type"] != "macvlan"):
        yield f"network of resource {resource}, which is not a pool of what it needs"
        return
    if config.get("name") != doc["metadata"]["name"]:
        yield f"the network is called {config.get('name')} in its configuration"
    late = offered.get(resource, {}).get("railmate", {}).get("binding") == "late"
    if late and config["type"] != "railmate-cni":
        yield f"{config['type']} cannot read the slots of a pool that binds late"
    common = {"cniVersion!": "1.0.0", "name!": str, "type!": str}
    plugin = config
    if config["type"] == "railmate-cni":
        yield from shape(config, {**common, "capabilities!": {"CNIDeviceInfoFile!": bool},
                                  "delegate!": {str: (str, int, bool, {str: str})}}, "config")
        plugin, common = config["delegate"], {"type!": str}
    if plugin["type"] not in CNI_PLUGINS:
        yield f"CNI plugin {plugin['type']} is not in the table"
        return
    yield from shape(plugin, {**common, **CNI_PLUGINS[plugin["type"]]}, "config")


def complaints(example):
    found = list(check_head(example))
    found += [f"types {name.group(0)} by hand" for name in BY_HAND.finditer(example.text)]
    found += [words for doc in example.docs for words in check_kind(doc)]
    yield from found
    if found:
        return
    env = example.docs + [doc for name in example.needed() for doc in load(name).docs]
    for doc in example.docs:
        for meta, spec in pods(doc):
            yield from check_pod(meta, spec, env)
        if doc.get("kind") == "NetworkAttachmentDefinition":
            yield from check_network(doc, pools(env))


NAMES = sorted(path.name for path in EXAMPLES.iterdir())


def grub_arguments(text):
    """What a file of /etc/default/grub.d adds to the kernel's command line."""
    script = text + 'echo "$GRUB_CMDLINE_LINUX"'
    done = subprocess.run(["bash", "-c", script], env={"GRUB_CMDLINE_LINUX": "quiet"},
                          capture_output=True, text=True, check=True, timeout=60)
    return done.stdout.split()[1:]


class Files(unittest.TestCase):
    def test_nothing_is_wrong_with_any_of_them(self):
        for name in NAMES:
            with self.subTest(name):
                self.assertEqual(list(complaints(load(name))), [])

    def test_pools_that_bind_late_need_what_they_bind_late_with(self):
        """In their own words, and where the quick start names them: without it no VF is offered."""
        table = (TOP / "docs/quickstart.md").read_text().partition("| network |")[2].partition("\n\n")[0]
        for name in (name for name in NAMES if name.startswith("pools-")):
            late = any(pool.get("railmate", {}).get("binding") == "late"
                       for pool in pools(load(name).docs).values())
            with self.subTest(name):
                self.assertEqual(bool(re.search("deploy/(late|cni)", load(name).needs.group(1))), late)
                for beside in re.findall(f"`{name}`( with `kubectl apply -k deploy/(?:late|cni)`)?", table):
                    self.assertEqual(bool(beside), late)

    def test_the_class_of_their_claims_is_that_of_the_component(self):
        (doc,) = yaml.safe_load_all((TOP / "deploy/components/dra/deviceclass.yaml").read_text())
        self.assertEqual(CLASSES[doc["metadata"]["name"]], doc["spec"]["extendedResourceName"])

    def test_the_quick_start_lists_all_of_them(self):
        text = (TOP / "docs/quickstart.md").read_text()
        listed = set(
            re.findall(r"`([\w-]+\.(?:yaml|cfg))`",
                       text.partition("## Examples")[2].partition("\n## ")[0]))
        self.assertEqual(listed, set(NAMES))

    def test_the_all_reduce_of_the_jobs_is_python(self):
        (doc,) = load("allreduce-script.yaml").docs
        ((name, text),) = doc["data"].items()
        ast.parse(text, name)
        for example in map(load, NAMES):
            for path in re.findall(r"/scripts/([\w.]+)", example.text):
                self.assertEqual(path, name, example.name)

    def test_services_find_the_pods_of_their_jobs(self):
        for example in map(load, NAMES):
            if example.of_kind("Deployment"):
                continue
            for service in example.of_kind("Service"):
                (job,) = example.of_kind("Job")
                name = job["metadata"]["name"]
                spec = job["spec"]["template"]["spec"]
                self.assertEqual(service["spec"]["selector"], {"job-name": name})
                self.assertEqual(service["metadata"]["name"], spec["subdomain"])
                self.assertRegex(" ".join(spec["containers"][0]["command"]),
                                 rf"--(master-addr=|peer ){name}-0\.{spec['subdomain']}\s")
                self.assertEqual(job["spec"]["completions"], job["spec"]["parallelism"])

    def test_services_find_the_pods_of_their_deployments_and_these_one_another(self):
        seen = 0
        for example in map(load, NAMES):
            services = {doc["metadata"]["name"]: doc["spec"]["selector"] for doc in example.of_kind("Service")}
            for deployment in example.of_kind("Deployment"):
                spec = deployment["spec"]
                labels = spec["template"]["metadata"]["labels"]
                self.assertEqual(spec["selector"]["matchLabels"], labels)
                self.assertEqual(services[deployment["metadata"]["name"]], labels)
                command = spec["template"]["spec"]["containers"][0]["command"]
                self.assertLessEqual(set(re.findall("http://([a-z]+):8000", " ".join(command))), set(services))
                self.assertRegex(" ".join(command), "--port 8000")
                seen += 1
        self.assertEqual(seen, 3)

    def test_every_way_to_change_the_kernels_arguments_gives_the_same_ones(self):
        (config,) = load("iommu-machineconfig.yaml").docs
        (talos,) = load("iommu-talos.yaml").docs
        arguments = config["spec"]["kernelArguments"]
        self.assertEqual(grub_arguments(load("iommu-grub.cfg").text), arguments)
        self.assertEqual(talos["machine"]["install"]["extraKernelArgs"], arguments)
        self.assertIn("iommu=pt", arguments)
        self.assertIn(" ".join(arguments), load("iommu-grub.cfg").head)

    def test_a_machine_config_of_a_role_has_its_pool(self):
        example = load("openshift-machineconfig.yaml")
        (pool,), (config,) = example.of_kind("MachineConfigPool"), example.of_kind("MachineConfig")
        (roles,) = pool["spec"]["machineConfigSelector"]["matchExpressions"]
        role = pool["metadata"]["name"]
        self.assertEqual(roles["values"],
                         ["worker", role])  # a pool of its own has what the workers have
        self.assertEqual(config["metadata"]["labels"], {roles["key"]: role})
        self.assertEqual(list(pool["spec"]["nodeSelector"]["matchLabels"]),
                         [f"node-role.kubernetes.io/{role}"])
        (unit,) = config["spec"]["config"]["systemd"]["units"]
        daemon_set = (TOP / "deploy/base/daemonset.yaml").read_text()
        for path in set(re.findall(r"\s(/run/\S+)", unit["contents"])):
            self.assertIn(f"hostPath: {{path: {path}, ", daemon_set)


class Programs(unittest.TestCase):
    """The ConfigMaps and networks, given to the programs that will read them."""

    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="railmate-examples-")
        self.addCleanup(folder.cleanup)
        self.top = pathlib.Path(folder.name)

    def config_of(self, name):
        (doc,) = load(name).docs
        self.assertEqual((doc["metadata"]["name"], doc["metadata"]["namespace"]),
                         ("railmate-config", "kube-system"))
        path = self.top / "config.json"
        path.write_text(doc["data"]["config.json"])
        return path, pools([doc])

    def machine(self, name):
        """The fixture, unpacked."""
        root = self.top / name
        if not root.exists():
            subprocess.run([RAILMATECTL, "snapshot", "unpack", FIXTURES / name / "host.tree", root],
                           check=True, capture_output=True, timeout=60)
        return root

    def ctl(self, *args):
        done = subprocess.run([RAILMATECTL, *args, "--json"], capture_output=True, text=True,
                              timeout=60)
        self.assertEqual(done.returncode, 0, done.stderr)
        return json.loads(done.stdout)

    def test_railmated_takes_every_configuration_without_a_warning(self):
        for name in MACHINES:
            with self.subTest(name):
                path, offered = self.config_of(name)
                done = subprocess.run(
                    [RAILMATED, "--check-config", "--log-level=warning", "--config-file", path],
                    capture_output=True, text=True, timeout=60)
                self.assertEqual((done.returncode, done.stderr), (0, ""))
                for resource in offered:
                    self.assertIn(resource, done.stdout)

    def test_railmated_takes_the_shared_hcas_which_a_machine_has(self):
        pfs = self.ctl("topo", "--root", self.machine("gb200-like"))["pfs"]
        for name in SHARED:
            with self.subTest(name):
                (doc,) = load(name).docs
                path = self.top / "shared.json"
                path.write_text(doc["data"]["shared.json"])
                done = subprocess.run([RAILMATED, "--check-config", "--log-level=warning",
                                       "--shared-config", path],
                                      capture_output=True, text=True, timeout=60)
                self.assertEqual((done.returncode, done.stderr), (0, ""))
                ((resource, pool),) = pools([doc]).items()
                self.assertIn(resource, done.stdout)
                self.assertTrue({pf["netdev"] for pf in pfs} & set(pool["selectors"]["ifNames"]), pfs)

    def test_every_pool_has_vfs_and_gives_them_to_a_gpu(self):
        self.assertEqual(set(MACHINES) | set(SHARED),
                         {name for name in NAMES if name.startswith("pools-")})
        for name, fixture in MACHINES.items():
            with self.subTest(name):
                path, offered = self.config_of(name)
                root = self.machine(fixture)
                gpu = self.ctl("topo", "--config", path, "--root", root)["gpus"][0]["pci"]
                # The whole card of a pod that asked for a VF: on no machine.
                for machine in (fixture, *WITH_PFS):
                    done = subprocess.run([RAILMATECTL, "topo", "--config", path, "--root",
                                           self.machine(machine)], capture_output=True, text=True,
                                          timeout=60)
                    self.assertIn("\npool rdma/vf: ", done.stdout)
                    self.assertNotIn("whole PF", done.stdout + done.stderr)
                for resource in offered:
                    plan = self.ctl("plan", "--config", path, "--root", root, "--pool", resource,
                                    "--gpus", gpu, "--vfs", "1")
                    self.assertRegex({**plan["nccl_conf"], **plan["env"]}["NCCL_IB_HCA"],
                                     r"^=mlx[45]_\d+:1$")

    def test_manifests_of_the_doctor_have_the_shape_of_the_examples(self):
        said = {}
        for platform in ("openshift", "talos", "grub"):
            done = subprocess.run([
                RAILMATECTL, "doctor", "--root",
                self.machine("odd-unwell"), "--fix-manifest", platform
            ], capture_output=True, text=True, timeout=60)
            self.assertEqual(done.returncode, 0, done.stderr)
            said[platform] = done.stdout
        config, talos = (yaml.safe_load(said[platform]) for platform in ("openshift", "talos"))
        self.assertEqual([*check_kind(config), *check_kind(talos)], [])
        arguments = config["spec"]["kernelArguments"]
        self.assertIn("iommu=pt", arguments)
        self.assertEqual(talos["machine"]["install"]["extraKernelArgs"], arguments)
        self.assertEqual(grub_arguments(said["grub"]), arguments)

    def test_railmate_cni_understands_its_networks(self):
        program = pathlib.Path(RAILMATED).parent / "railmate-cni"
        seen = 0
        for example in map(load, NAMES):
            for doc in example.of_kind("NetworkAttachmentDefinition"):
                config = json.loads(doc["spec"]["config"])
                if config["type"] != "railmate-cni":
                    continue
                delegate = self.top / config["delegate"]["type"]
                delegate.write_text("#!/bin/sh\n")
                delegate.chmod(0o755)
                config.update(deviceID="rdma_vf-n0-0")
                settings = self.top / "cni.json"
                settings.write_text(json.dumps({"controlSocket": str(self.top / "none.sock"),
                                                "stateDir": str(self.top / "state")}))
                env = {
                    "CNI_COMMAND": "ADD", "CNI_CONTAINERID": "c", "CNI_NETNS": "/proc/self/ns/net",
                    "CNI_IFNAME": "net1", "CNI_PATH": str(self.top),
                    "RAILMATE_CNI_CONFIG": str(settings),
                    "CNI_ARGS": "K8S_POD_NAMESPACE=default;K8S_POD_NAME=p"
                }
                done = subprocess.run([program], input=json.dumps(config), env=env,
                                      capture_output=True, text=True, timeout=60)
                # Understood, and then there is no daemon: "try again later".
                self.assertEqual(json.loads(done.stdout)["code"], 11, done.stdout)
                seen += 1
        self.assertEqual(seen, 2)


if __name__ == "__main__":
    FIXTURES = pathlib.Path(sys.argv.pop(3))
    RAILMATECTL = sys.argv.pop(2)
    RAILMATED = sys.argv.pop(1)
    unittest.main()
