"""
CustomResourceDefinitions of the kinds that are not Kubernetes' own: as operators publish them, where
they do so in a Go module (get-crds); the others are made of what tests/support/kinds.py knows of
their fields, and of what is written here. E2E_CRDS may name a folder with more that are published:
they come before what is written.
"""
import os
import re
import sys
from pathlib import Path

import yaml

TESTS = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../..")
sys.path[:0] = os.path.join(TESTS, "support"), os.path.join(TESTS, "checks")  # networks.py asks examples.py
from kinds import KINDS, QUANTITY, TEMPLATE  # noqa: E402 (the path comes first)

PLURALS = {
    "NetworkAttachmentDefinition": "network-attachment-definitions",
    "NicClusterPolicy": "nicclusterpolicies",
    "SecurityContextConstraints": "securitycontextconstraints",
    "SriovNetworkNodePolicy": "sriovnetworknodepolicies"
}
OF_CLUSTER = {
    "MachineConfig", "MachineConfigPool", "NicClusterPolicy", "SecurityContextConstraints"
}
PUBLISHED = {"PrometheusRule", "PyTorchJob", "ServiceMonitor"}
WORDS = object()  # a list of strings that may be empty
STRATEGY = {"type!": ("RunAsAny", "MustRunAs")}
# Kinds that no example has. By openshift/api of August 2026 and network-operator 26.7.
WRITTEN = {
    ("security.openshift.io/v1", "SecurityContextConstraints"): {
        **{
            f"{name}!": bool
            for name in ("allowHostDirVolumePlugin", "allowHostIPC", "allowHostNetwork",
                         "allowHostPID", "allowHostPorts", "allowPrivilegedContainer",
                         "readOnlyRootFilesystem")
        }, "allowPrivilegeEscalation": bool, "priority!": int, "runAsUser": STRATEGY,
        "seLinuxContext": STRATEGY, "fsGroup": STRATEGY, "supplementalGroups": STRATEGY,
        "allowedCapabilities!": WORDS, "defaultAddCapabilities!": WORDS,
        "requiredDropCapabilities!": WORDS, "seccompProfiles": WORDS, "volumes!": WORDS,
        "users": WORDS, "groups": WORDS
    },
    ("mellanox.com/v1alpha1", "NicClusterPolicy"): {
        "spec!": {
            "secondaryNetwork": {"multus": {"image!": str, "repository": str, "version": str}}
        }
    },
}
TYPES = {str: "string", int: "integer", bool: "boolean"}


def schema_of(shape):
    """As OpenAPI has it. Pods' templates are taken as they are: they are asked for by
    themselves."""
    if shape is TEMPLATE:
        return {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    if shape is QUANTITY:
        return {"x-kubernetes-int-or-string": True}
    if shape is WORDS:
        return {"type": "array", "items": {"type": "string"}}
    if isinstance(shape, dict):
        return schema_of_object(shape)
    if isinstance(shape, list):
        return {"type": "array", "minItems": 1, "items": schema_of(shape[0])}
    if isinstance(shape, tuple):
        return schema_of_choice(shape)
    if isinstance(shape, re.Pattern):
        return {"type": "string", "pattern": f"^({shape.pattern})$"}
    return {"type": "string", "enum": [shape]} if isinstance(shape, str) else {"type": TYPES[shape]}


def schema_of_object(shape):
    if str in shape:
        return {"type": "object", "additionalProperties": schema_of(shape[str])}
    required = [key.rstrip("!") for key in shape if key.endswith("!")]
    return {
        "type": "object",
        "properties": {key.rstrip("!"): schema_of(value)
                       for key, value in shape.items()},
        **({"required": required} if required else {})
    }


def schema_of_choice(shapes):
    if all(isinstance(one, str) for one in shapes):
        return {"type": "string", "enum": list(shapes)}
    if all(isinstance(one, dict) for one in shapes):  # a structural schema knows no alternatives
        return {
            "type": "object", "properties": {
                key: value
                for one in shapes
                for key, value in schema_of_object(one)["properties"].items()
            }
        }
    return {"type": "string"}


def definition(api, kind, fields):
    group, version = api.split("/")
    plural = PLURALS.get(kind, kind.lower() + "s")
    return {
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{plural}.{group}"}, "spec": {
            "group": group, "scope": "Cluster" if kind in OF_CLUSTER else "Namespaced",
            "names": {"kind": kind, "plural": plural, "singular": kind.lower()}, "versions": [{
                "name": version, "served": True, "storage": True, "schema": {
                    "openAPIV3Schema": {
                        **schema_of(fields), "type": "object"
                    }
                }
            }]
        }
    }


def written():
    """{kind: its definition}"""
    return {
        kind: definition(api, kind, fields)
        for (api, kind), fields in {**KINDS, **WRITTEN}.items()
        if "." in api.split("/")[0] and not api.startswith("resource.k8s.io/")
    }


def published(folder):
    """{kind: its definition} of all in the files of a folder; a cluster's are a List."""
    docs = [
        doc for file in sorted(Path(folder).glob("*.yaml"))
        for doc in yaml.safe_load_all(file.read_text()) if doc
    ]
    found = {}
    for one in [one for doc in docs for one in doc.get("items", [doc])]:
        metadata = {key: one["metadata"].get(key) for key in ("name", "annotations")}
        found[one["spec"]["names"]["kind"]] = {
            "apiVersion": one["apiVersion"], "kind": one["kind"], "metadata": metadata,
            "spec": one["spec"]
        }
    return found


def kinds():
    """All that the cluster bed defines."""
    return {*written(), *PUBLISHED}


def definitions(folder, *some):
    """Of these kinds, or of all."""
    found = {**written(), **published(folder), **published(os.environ.get("E2E_CRDS", "/nowhere"))}
    missing = {*some, *PUBLISHED} - set(found)
    if missing:
        raise LookupError(f"{', '.join(sorted(missing))}: no definition in {folder}")
    return [one for kind, one in found.items() if not some or kind in some]
