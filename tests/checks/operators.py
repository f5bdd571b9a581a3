#!/usr/bin/python3
"""deploy/operators against what the operators make, in tests/checks/operators: each node has one
device plugin, railmated takes the configuration that is written for it, and the operator leaves the
patch of its DaemonSet alone.

    operators.py RAILMATED
"""
import copy
import json
import pathlib
import re
import subprocess
import sys
import tempfile
import unittest

import yaml

TOP = pathlib.Path(__file__).resolve().parents[2]
OURS = TOP / "deploy/operators"
RAILMATED = None


def made_by(operator):
    """{kind: its objects}"""
    found = {}
    for doc in yaml.safe_load_all(
        (pathlib.Path(__file__).parent / f"operators/{operator}.yaml").read_text()):
        found.setdefault(doc["kind"], []).append(doc)
    return found


def values(operator):
    """Those of the chart, under those of the operator."""
    own = yaml.safe_load((OURS / f"{operator}.yaml").read_text())
    chart = yaml.safe_load((TOP / "deploy/helm/railmate/values.yaml").read_text())
    assert own.keys() <= chart.keys()
    return {**chart, **own, "nodeSelector": {**chart["nodeSelector"], **own["nodeSelector"]}}


def merged(base, patch):
    if not isinstance(base, dict) or not isinstance(patch, dict):
        return patch
    return {
        key: merged(base[key], patch[key]) if key in base and key in patch else patch.get(
            key, base.get(key))
        for key in base.keys() | patch.keys()
    }


def derivative(wanted, live):
    """Kubernetes' equality.Semantic.DeepDerivative: what is not set on the left side does not
    count."""
    if not wanted:
        return True
    if isinstance(wanted, dict):
        return isinstance(live, dict) and all(
            derivative(value, live.get(key)) for key, value in wanted.items())
    if isinstance(wanted, list):
        return isinstance(live, list) and len(wanted) <= len(live) and all(
            map(derivative, wanted, live))
    return wanted == live


def admits(pod, labels):
    """Would a DaemonSet with this pod run on a node with these labels?"""
    if any(labels.get(key) != value for key, value in pod.get("nodeSelector", {}).items()):
        return False
    required = pod.get("affinity", {}).get("nodeAffinity",
                                           {}).get("requiredDuringSchedulingIgnoredDuringExecution")
    if not required:
        return True
    holds = {
        "NotIn": lambda e: labels.get(e["key"]) not in e["values"],
        "In": lambda e: labels.get(e["key"]) in e["values"],
        "DoesNotExist": lambda e: e["key"] not in labels
    }
    return any(
        all(holds[e["operator"]](e)
            for e in term["matchExpressions"])
        for term in required["nodeSelectorTerms"])


def resources(config, *args):
    with tempfile.NamedTemporaryFile("w", suffix=".json") as file:
        file.write(config)
        file.flush()
        done = subprocess.run(
            [RAILMATED, "--check-config", "--strict-config", f"--config-file={file.name}", *args],
            capture_output=True, text=True, timeout=60)
    return done.returncode, set(re.findall(r"[a-z.]+/[\w-]+", done.stdout)), done.stderr


class SriovNetworkOperator(unittest.TestCase):
    def setUp(self):
        found = made_by("sriov-network-operator")
        (self.theirs, ), (
            self.config, ), self.nodes = found["DaemonSet"], found["ConfigMap"], found["Node"]
        self.patch = yaml.safe_load((OURS / "not-on-railmates-nodes.yaml").read_text())
        self.patched = merged(self.theirs, self.patch)
        self.ours = values("sriov-network-operator")

    def test_a_node_with_vfs_has_one_of_both_plugins(self):
        theirs = self.patched["spec"]["template"]["spec"]
        for node in self.nodes:
            for marked in ({}, {"railmate.io/device-plugin": "true"},
                           {"railmate.io/device-plugin": "false"}):
                labels = {**node["metadata"]["labels"], **marked}
                vfs = labels["sriovnetwork.openshift.io/device-plugin"] == "Enabled"
                railmate = admits({"nodeSelector": self.ours["nodeSelector"]}, labels)
                self.assertEqual(
                    admits(theirs, labels) + railmate, int(vfs), (node["metadata"]["name"], marked))
                self.assertEqual(railmate, vfs and "true" in marked.values())

    def test_the_operator_does_not_undo_the_patch(self):
        self.assertTrue(derivative(self.theirs["spec"], self.patched["spec"]))
        self.assertFalse(derivative(self.patched["spec"], self.theirs["spec"]))
        other = copy.deepcopy(self.theirs)
        other["spec"]["template"]["spec"]["containers"][0]["image"] = "registry.test/newer"
        self.assertFalse(derivative(other["spec"], self.patched["spec"]),
                         "an upgrade, after which it is applied again")

    def test_the_operator_restarts_railmate_when_it_changed_the_vfs(self):
        (label,) = self.theirs["spec"]["selector"]["matchLabels"].items()
        self.assertIn(label, self.ours["podLabels"].items())

    def test_railmated_takes_the_configuration_of_each_node(self):
        (container,) = self.theirs["spec"]["template"]["spec"]["containers"]
        self.assertEqual(self.ours["configMap"], self.config["metadata"]["name"])
        self.assertIn(f'--config-file={self.ours["configFile"]}', container["args"])
        self.assertIn(f'--resource-prefix={self.ours["resourcePrefix"]}', container["args"])
        for node, wanted in (("gpu-1", {"openshift.io/vf"}),
                             ("gpu-2", {"openshift.io/vf", "openshift.io/storage"})):
            code, offered, said = resources(self.config["data"][node],
                                            f'--resource-prefix={self.ours["resourcePrefix"]}')
            self.assertEqual((code, offered), (0, wanted), said)

    def test_the_documentation_names_the_objects(self):
        text = (TOP / "docs/operators.md").read_text()
        meta = self.theirs["metadata"]
        self.assertIn(f'-n {meta["namespace"]} patch daemonset {meta["name"]} ', text)
        self.assertIn("label node NODE railmate.io/device-plugin=true", text)


class NetworkOperator(unittest.TestCase):
    def test_railmate_runs_where_its_device_plugin_did_and_offers_the_same(self):
        found = made_by("network-operator")
        (theirs,), (config,) = found["DaemonSet"], found["ConfigMap"]
        ours = values("network-operator")
        selector = theirs["spec"]["template"]["spec"]["nodeSelector"]
        self.assertLessEqual(selector.items(), ours["nodeSelector"].items())
        before = resources(config["data"]["config.json"])
        after = resources(json.dumps({"resourceList": ours["pools"]}),
                          f'--resource-prefix={ours["resourcePrefix"]}')
        self.assertEqual((before[0], before[1]), (0, {"nvidia.com/hostdev"}), before[2])
        self.assertEqual(after[:2], before[:2], after[2])


if __name__ == "__main__":
    RAILMATED = sys.argv.pop(1)
    unittest.main()
