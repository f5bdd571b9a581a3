#!/usr/bin/python3
"""
A CNI plugin at the end of a node's own list that does for a pod's networks what Multus does: reads
the pod's annotation and the networks that it names from the API server, the pod's devices from
PodResources, and calls the plugin of each network for net1, net2, … with two things added:
deviceID, and, where the network asks for it, the name of its device-info file. Standard library
only.

    handover.py PODRES PODRES-SOCKET ADMIN-CERTIFICATE ADMIN-KEY CA API
"""
import json
import os
import pathlib
import ssl
import subprocess
import sys
import urllib.request

NETWORKS, RESOURCE = "k8s.v1.cni.cncf.io/networks", "k8s.v1.cni.cncf.io/resourceName"
REMEMBERED = pathlib.Path("/var/lib/cni/handover")
DEVICE_INFO = "/var/run/k8s.cni.cncf.io/devinfo/cni"


def get(path):
    certificate, key, ca, server = sys.argv[3:]
    trust = ssl.create_default_context(cafile=ca)
    trust.load_cert_chain(certificate, key)
    with urllib.request.urlopen(server + path, timeout=10, context=trust) as answer:
        return json.load(answer)


def devices_of(namespace, pod):
    """resource → ids, in the order of the kubelet."""
    said = subprocess.run([sys.argv[1], sys.argv[2], "get", namespace, pod], capture_output=True,
                          text=True, check=True, timeout=30)
    found = {}
    for container in json.loads(said.stdout)["containers"]:
        for resource, ids in container["devices"].items():
            found.setdefault(resource, []).extend(ids)
    return found


def networks_of(namespace, pod):
    """What the plugins of the pod's networks are called with, one after the other."""
    spec = get(f"/api/v1/namespaces/{namespace}/pods/{pod}")
    names = spec["metadata"].get("annotations", {}).get(NETWORKS, "")
    if not names:
        return
    left = devices_of(namespace, pod)
    for number, name in enumerate(names.split(","), 1):
        network = get(
            f"/apis/k8s.cni.cncf.io/v1/namespaces/{namespace}/network-attachment-definitions/{name.strip()}"
        )
        config = json.loads(network["spec"]["config"])
        resource = network["metadata"].get("annotations", {}).get(RESOURCE)
        if resource:
            config["deviceID"] = config["pciBusID"] = left[resource].pop(0)
        if config.get("capabilities", {}).get("CNIDeviceInfoFile"):
            config["runtimeConfig"] = {
                "CNIDeviceInfoFile": f"{DEVICE_INFO}/{config['name']}-{pod}-net{number}-device.json"
            }
        yield config


def call(config, number, check):
    plugin = next(p for p in (pathlib.Path(d, config["type"])
                              for d in os.environ["CNI_PATH"].split(":")) if p.exists())
    done = subprocess.run([plugin], input=json.dumps(config), capture_output=True, text=True,
                          timeout=60, env={**os.environ, "CNI_IFNAME": f"net{number}"})
    if check and done.returncode != 0:
        print(done.stdout)
        raise SystemExit(done.returncode)


def main():
    conf = json.load(sys.stdin)
    command = os.environ["CNI_COMMAND"]
    args = dict(
        word.split("=", 1) for word in os.environ.get("CNI_ARGS", "").split(";") if "=" in word)
    memory = REMEMBERED / os.environ.get("CNI_CONTAINERID", "none")
    if command == "ADD":
        configs = list(networks_of(args["K8S_POD_NAMESPACE"], args["K8S_POD_NAME"]))
        if configs:
            REMEMBERED.mkdir(parents=True, exist_ok=True)
            memory.write_text(json.dumps(configs))
        for number, config in enumerate(configs, 1):
            call(config, number, check=True)
        print(json.dumps(conf["prevResult"]))
    elif command == "DEL" and memory.exists():
        for number, config in reversed(list(enumerate(json.loads(memory.read_text()), 1))):
            call(config, number, check=False)
        memory.unlink()
    elif command == "VERSION":
        print(json.dumps({"cniVersion": "1.0.0", "supportedVersions": ["1.0.0"]}))
    return 0


if __name__ == "__main__":
    sys.exit(main())
