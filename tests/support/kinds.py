"""Fields of the kinds in deploy/examples, for tests/checks/examples.py and the cluster bed.

A dictionary is an object: these keys and no others, those with "!" have to be there; {str: x} is
a map of any keys;
[x] a list of at least one; a tuple alternatives; a pattern or a string is what the value has to
look like or be.
"""
import re

NAME = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?")
STRINGS = {str: str}
QUANTITY = (int, re.compile(r"[0-9]+(\.[0-9]+)?([KMGTP]i?|m)?"))
NUMBER_TEXT = re.compile("[1-9][0-9]*")
META = {"name!": NAME, "namespace": NAME, "labels": STRINGS, "annotations": STRINGS}
SELECTOR = {"matchLabels!": STRINGS}
IGNITION = {"ignition!": {"version!": str}}
EXPRESSION = {"key!": str, "operator!": ("In", "NotIn"), "values!": [str]}
CONTAINER = {
    "name!": NAME,
    "image!": str,
    "command": [str],
    "args": [str],
    "env": [{"name!": str, "value!": str}],
    "resources": {"limits": {str: QUANTITY}, "requests": {str: QUANTITY}, "claims": [{"name!": NAME, "request": NAME}]},
    "securityContext": {"capabilities!": {"add!": [re.compile("[A-Z_]+")]}},
    "volumeMounts": [{"name!": NAME, "mountPath!": re.compile("/.*"), "readOnly": bool}],
}
POD = {
    "containers!": [CONTAINER],
    "restartPolicy": ("Always", "OnFailure", "Never"),
    "hostNetwork": bool,
    "resourceClaims": [{"name!": NAME, "resourceClaimTemplateName!": NAME}],
    "dnsPolicy": ("ClusterFirst", "ClusterFirstWithHostNet"),
    "subdomain": NAME,
    "affinity": {
        "podAntiAffinity!": {
            "requiredDuringSchedulingIgnoredDuringExecution!": [{
                "topologyKey!": str, "labelSelector!": SELECTOR
            }]
        }
    },
    "volumes": [({"name!": NAME, "emptyDir!": {"medium!": "Memory", "sizeLimit": QUANTITY}},
                 {"name!": NAME, "configMap!": {"name!": NAME}},
                 {"name!": NAME, "hostPath!": {"path!": re.compile("/.+"), "type!": "Directory"}})],
}
TEMPLATE = {"metadata": {"labels": STRINGS, "annotations": STRINGS}, "spec!": POD}
JOB = {
    "completions": int, "parallelism": int, "completionMode": ("Indexed", "NonIndexed"),
    "backoffLimit": int, "template!": TEMPLATE
}
RUN_POLICY = {
    "cleanPodPolicy": ("None", "Running", "All"), "backoffLimit": int, "activeDeadlineSeconds": int
}
REPLICAS = {
    "replicas": int, "restartPolicy": ("Always", "OnFailure", "Never", "ExitCode"),
    "template!": TEMPLATE
}
PCI_ID = re.compile("[0-9a-f]{4}")
NAME_OF_MODULE = re.compile(r"\w+")

KINDS = {
    ("v1", "ConfigMap"): {"data!": STRINGS},
    ("v1", "Pod"): {"spec!": POD},
    ("v1", "Service"): {
        "spec!": {"clusterIP": "None", "publishNotReadyAddresses": bool, "selector!": STRINGS}
    },
    ("apps/v1", "Deployment"): {
        "spec!": {
            "replicas": int, "strategy": {"type!": ("Recreate", "RollingUpdate")},
            "selector!": SELECTOR, "template!": TEMPLATE
        }
    },
    ("batch/v1", "Job"): {"spec!": JOB},
    ("batch/v1", "CronJob"): {
        "spec!": {
            "schedule!": str, "concurrencyPolicy": ("Allow", "Forbid", "Replace"),
            "jobTemplate!": {"spec!": JOB}
        }
    },
    ("resource.k8s.io/v1", "ResourceClaimTemplate"): {
        "spec!": {
            "spec!": {
                "devices!": {
                    "requests!": [{"name!": NAME, "exactly!": {
                        "deviceClassName!": str, "count": int, "selectors": [{"cel!": {"expression!": str}}],
                        "capacity": {"requests!": {"vfs!": NUMBER_TEXT}}}}],
                    "constraints": [{"requests!": [NAME], "matchAttribute!": str}]
                }
            }
        }
    },
    ("k8s.cni.cncf.io/v1", "NetworkAttachmentDefinition"): {"spec!": {"config!": str}},
    ("kubeflow.org/v2beta1", "MPIJob"): {
        "spec!": {
            "slotsPerWorker": int, "runPolicy": RUN_POLICY, "sshAuthMountPath": str,
            "mpiImplementation": ("OpenMPI", "Intel", "MPICH"),
            "mpiReplicaSpecs!": {"Launcher!": REPLICAS, "Worker": REPLICAS}
        }
    },
    ("kubeflow.org/v1", "PyTorchJob"): {
        "spec!": {
            "nprocPerNode": (NUMBER_TEXT, "auto", "gpu", "cpu"), "runPolicy": RUN_POLICY,
            "pytorchReplicaSpecs!": {"Master": REPLICAS, "Worker": REPLICAS}
        }
    },
    ("leaderworkerset.x-k8s.io/v1", "LeaderWorkerSet"): {
        "spec!": {
            "replicas": int, "startupPolicy": ("LeaderCreated", "LeaderReady"),
            "leaderWorkerTemplate!": {
                "size": int, "restartPolicy": ("None", "Default", "RecreateGroupOnPodRestart",
                                               "RecreateGroupAfterStart"),
                "leaderTemplate": TEMPLATE, "workerTemplate!": TEMPLATE
            }
        }
    },
    ("sriovnetwork.openshift.io/v1", "SriovNetworkNodePolicy"): {
        "spec!": {
            "resourceName!": re.compile(r"\w+"), "nodeSelector!": STRINGS, "numVfs!": int,
            "mtu": int, "isRdma": bool, "priority": int, "deviceType": ("netdevice", "vfio-pci"),
            "linkType": ("eth", "ETH", "ib", "IB"), "nicSelector!": {
                "vendor": PCI_ID, "deviceID": PCI_ID, "pfNames": [str], "rootDevices": [str]
            }
        }
    },
    ("sriovnetwork.openshift.io/v1", "SriovNetwork"): {
        "spec!": {
            "resourceName!": str, "networkNamespace": NAME, "ipam": str, "vlan": int,
            "linkState": ("auto", "enable", "disable"), "spoofChk": ("on", "off"),
            "trust": ("on", "off"), "metaPlugins": str, "capabilities": str
        }
    },
    ("machineconfiguration.openshift.io/v1", "MachineConfig"): {
        "spec!": ({"kernelArguments!": [str], "config": IGNITION}, {
            "config!": {
                **IGNITION, "systemd!": {
                    "units!": [{
                        "name!": re.compile(r"[\w-]+\.service"), "enabled!": bool, "contents!": str
                    }]
                }
            }
        })
    },
    ("machineconfiguration.openshift.io/v1", "MachineConfigPool"): {
        "spec!": {
            "machineConfigSelector!": {"matchExpressions!": [EXPRESSION]}, "nodeSelector!": SELECTOR
        }
    },
}
TALOS = {"machine!": {"install!": {"extraKernelArgs!": [str], "grubUseUKICmdline": bool},
                      "kernel": {"modules!": [{"name!": NAME_OF_MODULE}]}}}

IPAM = {"type!": str, "range!": re.compile(r"[0-9.]+/[0-9]+")}
CNI_PLUGINS = {
    "sriov": {
        "ipam": IPAM, "vlan": int, "vlanQoS": int, "spoofchk": ("on", "off"),
        "trust": ("on", "off"), "link_state": ("auto", "enable", "disable")
    },
    "macvlan": {"ipam": IPAM, "master": str, "mode": ("bridge", "private", "vepa", "passthru")},
    "ib-sriov": {
        "ipam": IPAM, "pkey": re.compile("0x[0-9a-f]{4}"),
        "link_state": ("auto", "enable", "disable"), "rdmaIsolation": bool
    },
}


def shape(value, schema, where):
    """What of the value is not as the schema wants it."""
    if isinstance(schema, tuple):
        tries = [list(shape(value, option, where)) for option in schema]
        yield from min(tries, key=len)
    elif isinstance(schema, dict):
        yield from shape_of_object(value, schema, where)
    elif isinstance(schema, list):
        if not isinstance(value, list) or not value:
            yield f"{where}: has to be a list of at least one"
            return
        for i, element in enumerate(value):
            yield from shape(element, schema[0], f"{where}[{i}]")
    elif isinstance(schema, re.Pattern):
        if not isinstance(value, str) or not schema.fullmatch(value):
            yield f"{where}: {value!r} does not look like {schema.pattern}"
    elif isinstance(schema, str):
        if value != schema:
            yield f"{where}: {value!r} is not {schema!r}"
    elif type(value) is not schema:
        yield f"{where}: {value!r} has to be {schema.__name__}"


def shape_of_object(value, schema, where):
    if not isinstance(value, dict):
        yield f"{where}: has to be an object"
        return
    if str in schema:
        for key, element in value.items():
            yield from shape(element, schema[str], f"{where}.{key}")
        return
    known = {key.rstrip("!"): key for key in schema}
    for key in known:
        if known[key].endswith("!") and key not in value:
            yield f"{where}: {key} is missing"
    for key, element in value.items():
        if key in known:
            yield from shape(element, schema[known[key]], f"{where}.{key}")
        else:
            yield f"{where}: no field {key}"
