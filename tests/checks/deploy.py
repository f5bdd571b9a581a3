#!/usr/bin/python3
"""The manifests: what they must ask for, what they must not, and that railmated takes their arguments.

    deploy.py RAILMATED
"""
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

import yaml

DEPLOY = pathlib.Path(__file__).resolve().parents[2] / "deploy"
RAILMATED = None


def documents(name):
    return list(yaml.safe_load_all((DEPLOY / "base" / name).read_text()))


def document(name):
    return documents(name)[0]


class Security(unittest.TestCase):
    """docs/security.md tells the whole truth about rights and parts."""

    RULE = re.compile(r"apiGroups: \[([^\]]*)\],?\s*resources: \[([^\]]*)\],?\s*"
                      r"(?:resourceNames: \[[^\]]*\],?\s*)?verbs: \[([^\]]*)\]")
    RULE_OF_A_TEMPLATE = re.compile(r'"apiGroups" \(list ([^)]*)\) "resources" \(list ([^)]*)\) '
                                    r'(?:"resourceNames" \(list [^)]*\) )?"verbs" \(list ([^)]*)\)')

    def setUp(self):
        self.text = (DEPLOY.parent / "docs/security.md").read_text()

    def rows(self, head):
        (table,) = re.findall(rf"^\| {re.escape(head)} \|.*\n\|[-|]+\|\n((?:\|.*\n)+)", self.text, re.M)
        return [[cell.strip() for cell in re.split(r"(?<!\\)\|", line)[1:-1]] for line in table.splitlines()]

    @staticmethod
    def words(text):
        return [word.strip("\"' ") for word in re.split(r"[ ,]+", text) if word.strip()]

    def rights(self, text):
        """{(verb, resource, group)} of all rules, also of those that are commented out."""
        plain = re.sub(r"^\s*#\s?", "", text, flags=re.M)
        plain = re.sub(r"^.*apiVersions: .*$", "", plain, flags=re.M)  # what a policy is asked about
        found = self.RULE.findall(plain) + self.RULE_OF_A_TEMPLATE.findall(plain)
        self.assertEqual(len(found), len(re.findall(r"\bapiGroups\b", plain)), "a rule is written otherwise")
        return {(verb, resource, group) for groups, resources, verbs in found for group in self.words(groups)
                for resource in self.words(resources) for verb in self.words(verbs)}

    def test_every_right_of_the_token_is_listed_and_no_other(self):
        given = set()
        for path in DEPLOY.rglob("*.yaml"):
            given |= self.rights(path.read_text())
        told = set()
        for cell, *_ in self.rows("right"):
            verb, resource, group = re.fullmatch(r"([\w:-]+) `([\w/]+)`(?: of `([\w.]+)`)?", cell).groups()
            told.add((verb, resource, group or ""))
        self.assertEqual(told, given)
        self.assertIn(("list", "pods", ""), given)

    def test_every_component_is_listed_and_equals_root_where_it_has_to(self):
        told = {re.match(r"`?(\w+)`?", part)[1]: root for part, root, _ in self.rows("part")}
        self.assertEqual(set(told), {path.name for path in (DEPLOY / "components").iterdir()} | {"base"})
        self.assertEqual(set(told.values()), {"yes", "no"})
        for path in (DEPLOY / "components").iterdir():
            text = "".join(file.read_text() for file in path.glob("*.yaml"))
            strong = re.search(r"^[^#]*(hostPath: \{|add: \[|spc_t|privileged: true|allowHost\w+: true)", text, re.M)
            if path.name != "features":  # writes labels below one prefix
                self.assertEqual(told[path.name], "yes" if strong else "no", path.name)

    def test_the_switches_of_the_chart_are_named(self):
        values = yaml.safe_load((DEPLOY / "helm/railmate/values.yaml").read_text())
        switches = {f"{name}.enabled" for name, value in values.items() if isinstance(value, dict) and "enabled" in value}
        named = {word for part, *_ in self.rows("part") for word in re.findall(r"`([\w.]+)`", part)}
        self.assertLessEqual(switches - {"events.enabled", "demo.enabled"}, named)


class Unit(unittest.TestCase):
    """deploy/systemd/railmated.service: what the DaemonSet may, and before the kubelet."""

    def setUp(self):
        self.text = (DEPLOY / "systemd/railmated.service").read_text()

    def words(self, key):
        return " ".join(re.findall(rf"^{key}=(.*)$", self.text, re.M)).split()

    def test_railmated_takes_its_arguments(self):
        program, *arguments = self.words("ExecStart")
        self.assertEqual(program, "/usr/bin/railmated")
        run = subprocess.run([RAILMATED, *arguments, "--check-config"], capture_output=True, timeout=60)
        self.assertEqual(run.returncode, 0)

    def test_it_is_there_before_the_kubelet(self):
        self.assertLessEqual({"kubelet.service", "k3s-agent.service", "rke2-agent.service", "k0sworker.service", "k0scontroller.service",
                              "snap.microk8s.daemon-kubelite.service"}, set(self.words("Before")))
        self.assertEqual(self.words("Type"), ["notify"])

    def test_railmated_takes_the_arguments_of_the_comment(self):
        (arguments,) = re.findall(r"^#   ExecStart=/usr/bin/railmated (.*)$", self.text, re.M)
        self.assertIn("--kubelet-root=/var/lib/k0s/kubelet", arguments)
        self.assertTrue(arguments.startswith(" ".join(self.words("ExecStart")[1:])))
        run = subprocess.run([RAILMATED, *arguments.split(), "--check-config"], capture_output=True, timeout=60)
        self.assertEqual(run.returncode, 0)

    def test_it_may_write_what_the_daemon_set_may(self):
        pod = document("daemonset.yaml")["spec"]["template"]["spec"]
        paths = {v["name"]: v["hostPath"]["path"] for v in pod["volumes"] if "hostPath" in v}
        wanted = {paths[m["name"]] for m in pod["containers"][0]["volumeMounts"] if m["name"] in paths and not m.get("readOnly")}
        has = {path.lstrip("-") for path in self.words("ReadWritePaths")}
        has |= {"/var/lib/" + name for name in self.words("StateDirectory")}
        has |= {"/run/" + name for name in self.words("RuntimeDirectory")}
        of_components = {"/var/lib/kubelet/plugins_registry", "/var/run/cdi"}  # watcher, late
        self.assertEqual(wanted, has - of_components)
        self.assertLessEqual(of_components, has)
        self.assertEqual(self.words("RuntimeDirectoryPreserve"), ["yes"])  # containers have mounts of it

    @unittest.skipUnless(shutil.which("systemd-analyze"), "no systemd-analyze")
    def test_systemd_understands_it(self):
        with tempfile.TemporaryDirectory() as folder:
            file = pathlib.Path(folder) / "railmated.service"
            file.write_text(self.text.replace("/usr/bin/railmated", str(pathlib.Path(RAILMATED).resolve())))
            done = subprocess.run(["systemd-analyze", "verify", "--man=no", file], capture_output=True, text=True, timeout=60)
        self.assertEqual((done.returncode, done.stderr), (0, ""))


class Deploy(unittest.TestCase):
    def setUp(self):
        self.pod = document("daemonset.yaml")["spec"]["template"]["spec"]
        (self.container,) = self.pod["containers"]

    def test_nothing_here_writes_the_users_config_map(self):
        """Neither apply nor delete; examples.py looks at the ConfigMaps that users apply."""
        folders = [path.parent for path in DEPLOY.rglob("kustomization.yaml")]
        for folder in folders:
            kustomization = yaml.safe_load((folder / "kustomization.yaml").read_text())
            self.assertFalse({"configMapGenerator", "secretGenerator"} & kustomization.keys(), folder)
            for name in kustomization.get("resources", []):
                if (folder / name).is_file():
                    for doc in yaml.safe_load_all((folder / name).read_text()):
                        self.assertNotEqual(doc["kind"], "ConfigMap", folder / name)
        (config,) = [v["configMap"] for v in self.pod["volumes"] if "configMap" in v]
        self.assertEqual(config, {"name": "railmate-config", "optional": True})

    def test_without_a_config_map_there_is_a_pool(self):
        """The mount is an empty directory then; /etc/pcidp has no file on this machine either."""
        run = subprocess.run([RAILMATED, *self.container["args"], "--check-config"], capture_output=True, text=True, timeout=60)
        self.assertEqual((run.returncode, run.stderr), (0, ""))
        self.assertIn("rdma/vf", run.stdout)

    def test_railmated_takes_the_arguments_of_the_daemon_set(self):
        run = subprocess.run([RAILMATED, *self.container["args"], "--check-config"], capture_output=True, timeout=60)
        self.assertEqual(run.returncode, 0)

    def test_runs_without_any_privilege(self):
        context = self.container["securityContext"]
        self.assertEqual(context["capabilities"], {"drop": ["ALL"]})
        self.assertIs(context["privileged"], False)
        self.assertIs(context["allowPrivilegeEscalation"], False)
        self.assertIs(context["readOnlyRootFilesystem"], True)
        self.assertEqual(context["seccompProfile"], {"type": "RuntimeDefault"})
        self.assertNotIn("hostPID", self.pod)
        self.assertNotIn("hostIPC", self.pod)

    def test_every_mount_has_its_volume_and_every_volume_a_mount(self):
        mounts = {mount["name"] for mount in self.container["volumeMounts"]}
        self.assertEqual(mounts, {volume["name"] for volume in self.pod["volumes"]})

    def test_an_update_ends_the_old_instance_when_the_new_one_is_ready(self):
        update = document("daemonset.yaml")["spec"]["updateStrategy"]["rollingUpdate"]
        self.assertEqual((update["maxUnavailable"], update["maxSurge"]), (0, 1))
        command = self.container["startupProbe"]["exec"]["command"]
        self.assertEqual(command[:2], ["/usr/bin/railmatectl", "ready"])
        self.assertIn(f"--ready-file={command[2]}", self.container["args"])
        (mount,) = [m for m in self.container["volumeMounts"] if command[2].startswith(m["mountPath"] + "/")]
        (volume,) = [v for v in self.pod["volumes"] if v["name"] == mount["name"]]
        self.assertIn("emptyDir", volume)  # of each instance its own

    def test_the_daemons_socket_is_where_the_programs_of_the_host_look_for_it(self):
        (mount,) = [m for m in self.container["volumeMounts"] if m["name"] == "run"]
        (volume,) = [v for v in self.pod["volumes"] if v["name"] == "run"]
        self.assertEqual(mount["mountPath"], volume["hostPath"]["path"])
        usage = subprocess.run([RAILMATED, "--help"], capture_output=True, text=True, timeout=60).stdout
        self.assertIn(f'({mount["mountPath"]}/railmate.sock)', usage)

    def test_every_component_can_be_had_alone_or_with_others(self):
        components = {path.parent.name for path in (DEPLOY / "components").glob("*/kustomization.yaml")}
        self.assertEqual(components, {"cni", "condition", "dra", "events", "features", "late", "metrics", "netns", "nfd", "openshift", "runtime", "shared", "watcher"})
        text = (DEPLOY / "kustomization.yaml").read_text()
        all_of_them = yaml.safe_load(re.sub(r"^# (components:|- )", r"\1", text, flags=re.M))
        self.assertEqual(all_of_them["components"], [f"components/{name}" for name in sorted(components)])
        for name in components:
            alone = yaml.safe_load((DEPLOY / name / "kustomization.yaml").read_text())
            needed = {name} | ({"late"} if name in ("cni", "dra") else set())
            self.assertEqual((alone["resources"], alone["components"]),
                             (["../base"], [f"../components/{n}" for n in sorted(needed)]))
            component = yaml.safe_load((DEPLOY / "components" / name / "kustomization.yaml").read_text())
            self.assertEqual(component["kind"], "Component")
            for file in component.get("resources", []):  # not another folder: a resource twice is an error
                self.assertTrue((DEPLOY / "components" / name / file).is_file(), file)

    def test_queries_for_logs_name_our_container(self):
        named = re.findall(r'\{namespace="kube-system", container="([^"]+)"', (DEPLOY.parent / "docs/operations.md").read_text())
        self.assertEqual(set(named), {self.container["name"]})

    def test_what_kustomize_makes_of_all_components_has_one_image(self):
        if not shutil.which("kubectl"):
            self.skipTest("no kubectl here")
        with tempfile.TemporaryDirectory() as top:
            here = pathlib.Path(top, "deploy")
            shutil.copytree(DEPLOY, here)
            for name, change in (("kustomization.yaml", (r"^# (components:|- )", r"\1")),
                                 ("base/kustomization.yaml", ("newName: railmate", "newName: registry.test/railmate"))):
                file = here / name
                file.write_text(re.sub(*change, file.read_text(), flags=re.M))
            made = subprocess.run(["kubectl", "kustomize", here], capture_output=True, text=True, timeout=60, check=True).stdout
        (daemon_set,) = [d for d in yaml.safe_load_all(made) if d["kind"] == "DaemonSet"]
        pod = daemon_set["spec"]["template"]["spec"]
        images = {c["image"] for c in pod["containers"] + pod["initContainers"]}
        self.assertEqual(images, {"registry.test/" + self.container["image"]})
        mounts = {m["name"] for c in pod["containers"] + pod["initContainers"] for m in c["volumeMounts"]}
        self.assertEqual(mounts, {v["name"] for v in pod["volumes"]})
        self.assertIn("--registration=watcher", pod["containers"][0]["args"])
        self.assertIn("nodeAffinity", pod["affinity"])

    def test_the_file_of_shared_hcas_is_that_of_the_example(self):
        (patch,) = yaml.safe_load((DEPLOY / "components/shared/kustomization.yaml").read_text())["patches"]
        (operation,) = yaml.safe_load(patch["patch"])
        flag, _, path = operation["value"].partition("=")
        (mount,) = [m for m in self.container["volumeMounts"] if m["name"] == "config"]
        self.assertEqual((flag, pathlib.PurePath(path).parent), ("--shared-config", pathlib.PurePath(mount["mountPath"])))
        example = yaml.safe_load((DEPLOY / "examples/pools-shared.yaml").read_text())
        self.assertEqual(list(example["data"]), [pathlib.PurePath(path).name])

    def test_one_label_of_nfd_is_enough(self):
        (patch,) = yaml.safe_load((DEPLOY / "components/nfd/kustomization.yaml").read_text())["patches"]
        (operation,) = yaml.safe_load(patch["patch"])
        self.assertNotIn("affinity", self.pod)  # `add` would replace it
        terms = operation["value"]["nodeAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"]["nodeSelectorTerms"]
        labels = ("network-sriov.capable", "rdma.capable", "rdma.available")
        self.assertEqual(terms, [{"matchExpressions": [{"key": f"feature.node.kubernetes.io/{label}", "operator": "In",
                                                        "values": ["true"]}]} for label in labels])

    def test_openshift_lets_railmate_do_what_its_pod_asks_for(self):
        folder = DEPLOY / "components/openshift"
        (patch,) = yaml.safe_load((folder / "kustomization.yaml").read_text())["patches"]
        (operation,) = yaml.safe_load(patch["patch"])
        self.assertNotIn("securityContext", self.pod)  # `add` would replace it
        self.assertEqual(operation["value"], {"seLinuxOptions": {"type": "spc_t"}})
        docs = {(doc["kind"], doc["metadata"]["name"]): doc for doc in yaml.safe_load_all((folder / "scc.yaml").read_text())}
        scc = docs["SecurityContextConstraints", "railmate"]
        self.assertEqual(scc["allowHostNetwork"], self.pod["hostNetwork"])
        self.assertEqual(scc["readOnlyRootFilesystem"], self.container["securityContext"]["readOnlyRootFilesystem"])
        self.assertEqual(scc["requiredDropCapabilities"], self.container["securityContext"]["capabilities"]["drop"])
        self.assertIs(scc["allowPrivilegedContainer"], False)
        kinds = {key for volume in self.pod["volumes"] for key in volume if key != "name"}
        self.assertEqual(set(scc["volumes"]), kinds | {"projected"})  # the token
        # Of pods with VFs.
        users = docs["SecurityContextConstraints", "railmate-rdma"]
        self.assertEqual(users["allowedCapabilities"], ["IPC_LOCK"])
        self.assertFalse(any(users[key] for key in users if key.startswith("allow") and key != "allowedCapabilities"))
        for role, of in (("railmate-scc", "railmate"), ("railmate-rdma", "railmate-rdma")):
            (rule,) = docs["ClusterRole", role]["rules"]
            self.assertEqual((rule["resourceNames"], rule["verbs"]), ([of], ["use"]))
        (subject,) = docs["RoleBinding", "railmate-scc"]["subjects"]
        self.assertEqual(subject["name"], document("rbac.yaml")["metadata"]["name"])
        self.assertNotIn("railmate-rdma", [doc.get("roleRef", {}).get("name") for doc in docs.values()])

    def test_only_who_binds_late_can_write_cdi_specs(self):
        paths = {v["hostPath"]["path"] for v in self.pod["volumes"] if "hostPath" in v}
        self.assertFalse({path for path in paths if "cdi" in path}, "whoever writes there is root on the node")
        (patch,) = yaml.safe_load((DEPLOY / "components/late/kustomization.yaml").read_text())["patches"]
        mount, volume = (o["value"] for o in yaml.safe_load(patch["patch"]))
        self.assertEqual((mount["name"], mount["mountPath"]), (volume["name"], volume["hostPath"]["path"]))
        usage = subprocess.run([RAILMATED, "--help"], capture_output=True, text=True, timeout=60).stdout
        self.assertIn(f'({mount["mountPath"]})', usage)

    def test_nothing_is_writable_but_what_is_written(self):
        writable = {m["mountPath"] for m in self.container["volumeMounts"] if not m.get("readOnly")}
        self.assertEqual(writable, {"/var/lib/kubelet/device-plugins", "/var/run/k8s.cni.cncf.io/devinfo/dp",
                                    "/var/lib/railmate", "/run/railmate", "/run/railmated"})

    def test_the_init_container_installs_the_cni_plugin(self):
        (patch,) = yaml.safe_load((DEPLOY / "components/cni/kustomization.yaml").read_text())["patches"]
        init, volume = yaml.safe_load(patch["patch"])
        (container,) = init["value"]
        (mount,) = container["volumeMounts"]
        self.assertEqual(mount["name"], volume["value"]["name"])
        self.assertEqual(container["image"], self.container["image"])
        self.assertEqual(container["securityContext"], self.container["securityContext"])
        program, *args = container["command"]
        with tempfile.TemporaryDirectory() as folder:
            args = [folder if arg == mount["mountPath"] else arg for arg in args]
            subprocess.run([pathlib.Path(RAILMATED).parent / pathlib.Path(program).name, *args], check=True, timeout=60,
                           capture_output=True)
            self.assertEqual([path.name for path in pathlib.Path(folder).iterdir()], ["railmate-cni"])

    def test_the_look_into_namespaces_asks_for_one_capability_and_their_directory(self):
        (patch,) = yaml.safe_load((DEPLOY / "components/netns/kustomization.yaml").read_text())["patches"]
        operations = {o["path"].rpartition("/containers/0/")[2]: o for o in yaml.safe_load(patch["patch"])}
        capabilities = operations["securityContext/capabilities"]["value"]
        # "CAP_SYS_ADMIN" would be refused beside allowPrivilegeEscalation: false.
        self.assertEqual(capabilities, {"drop": ["ALL"], "add": ["SYS_ADMIN"]})
        mount, volume = operations["volumeMounts/-"]["value"], operations["/spec/template/spec/volumes/-"]["value"]
        self.assertEqual((mount["name"], mount["mountPath"]), (volume["name"], volume["hostPath"]["path"]))
        self.assertEqual((mount["mountPropagation"], mount["readOnly"]), ("HostToContainer", True))
        usage = subprocess.run([RAILMATED, "--help"], capture_output=True, text=True, timeout=60).stdout
        self.assertIn(f'({mount["mountPath"]})', usage)

    def test_the_files_of_containers_have_the_same_path_on_the_host(self):
        (mount,) = [m for m in self.container["volumeMounts"] if m["name"] == "run"]
        (volume,) = [v for v in self.pod["volumes"] if v["name"] == "run"]
        self.assertEqual(mount["mountPath"], volume["hostPath"]["path"])
        self.assertNotIn("readOnly", mount)
        usage = subprocess.run([RAILMATED, "--help"], capture_output=True, text=True, timeout=60).stdout
        self.assertIn(f'no files ({mount["mountPath"]})', usage)

    def test_the_sockets_of_runtimes_are_mounted_where_they_are_looked_for(self):
        (patch,) = yaml.safe_load((DEPLOY / "components/runtime/kustomization.yaml").read_text())["patches"]
        values = [o["value"] for o in yaml.safe_load(patch["patch"])]
        mounts = {v["name"]: v for v in values if "mountPath" in v}
        paths = {v["name"]: v["hostPath"]["path"] for v in values if "hostPath" in v}
        self.assertEqual({name: m["mountPath"] for name, m in mounts.items()}, paths)
        for m in mounts.values():
            self.assertEqual((m["readOnly"], m["mountPropagation"]), (True, "HostToContainer"))
        manual = (DEPLOY / "man/railmated.8").read_text()
        for path in paths.values():
            self.assertIn(f".Pa {path}/", manual)

    def test_names_of_the_files_agree(self):
        kustomization = document("kustomization.yaml")
        for name in kustomization["resources"]:
            self.assertTrue((DEPLOY / "base" / name).exists(), name)
        self.assertEqual(self.pod["serviceAccountName"], document("rbac.yaml")["metadata"]["name"])
        (image,) = kustomization["images"]
        self.assertEqual(self.container["image"], f'{image["name"]}:{image["newTag"]}')

    def test_has_no_right_but_to_list_pods_and_to_create_events(self):
        account, role, binding, local_role, local_binding = documents("rbac.yaml")
        self.assertEqual((account["kind"], account["automountServiceAccountToken"]), ("ServiceAccount", False))
        self.assertEqual(role["rules"], [{"apiGroups": [""], "resources": ["pods"], "verbs": ["list"]}])
        self.assertEqual(local_role["rules"], [{"apiGroups": ["events.k8s.io"], "resources": ["events"], "verbs": ["create"]}])
        self.assertEqual([role["kind"], local_role["kind"]], ["ClusterRole", "Role"])
        namespace = document("kustomization.yaml")["namespace"]
        for bound, to in ((binding, role), (local_binding, local_role)):
            self.assertEqual((bound["kind"], bound["roleRef"]["kind"]), (to["kind"] + "Binding", to["kind"]))
            self.assertEqual(bound["roleRef"]["name"], to["metadata"]["name"])
            self.assertEqual(bound["subjects"], [{"kind": "ServiceAccount", "name": account["metadata"]["name"],
                                                  "namespace": namespace}])

    def test_events_go_where_their_right_is(self):
        source = (DEPLOY.parent / "pkg/kubeapi/events-internal.h").read_text()
        (path,) = re.findall(r'#define EVENT_PATH "(.*)"', source)
        *_, role, _ = documents("rbac.yaml")
        ((rule,), namespace) = role["rules"], role["metadata"]["namespace"]
        self.assertEqual(path, f'/apis/{rule["apiGroups"][0]}/v1/namespaces/{namespace}/{rule["resources"][0]}')

    def test_the_image_has_the_version_of_the_program(self):
        run = subprocess.run([RAILMATED, "--version"], capture_output=True, text=True, timeout=60)
        self.assertEqual(run.stdout.split()[-1], self.container["image"].partition(":")[2])


if __name__ == "__main__":
    RAILMATED = sys.argv.pop(1)
    unittest.main()
