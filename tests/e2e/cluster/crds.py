"""CustomResourceDefinitions of the kinds that are not Kubernetes' own, made of what
tests/checks/examples.py knows of their fields."""
import os
import re
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../checks"))
from examples import KINDS, QUANTITY, TEMPLATE  # noqa: E402 (the path comes first)

PLURALS = {
    "NetworkAttachmentDefinition": "network-attachment-definitions",
    "SriovNetworkNodePolicy": "sriovnetworknodepolicies"
}
OF_CLUSTER = {"MachineConfig", "MachineConfigPool"}
TYPES = {str: "string", int: "integer", bool: "boolean"}


def schema_of(shape):
    """As OpenAPI has it. Pods' templates are taken as they are: they are asked for by
    themselves."""
    if shape is TEMPLATE:
        return {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    if shape is QUANTITY:
        return {"x-kubernetes-int-or-string": True}
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
                        "type": "object", "properties": {"spec": schema_of(fields["spec!"])}
                    }
                }
            }]
        }
    }


def definitions(*kinds):
    """Of these, or of all."""
    return [definition(api, kind, fields) for (api, kind), fields in KINDS.items()
            if "." in api.split("/")[0] and (not kinds or kind in kinds)]
