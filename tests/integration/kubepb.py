"""Kubernetes' protobuf, as its API server writes it: lists of pods and of ResourceClaims, and a refusal, made of what their
JSON would be. Field numbers are those of k8s.io/api/{core,resource}/v1/generated.proto and of apimachinery."""

import calendar
import json
import time

TYPE = "application/vnd.kubernetes.protobuf"


def varint(n):
    out = bytearray()
    while n > 0x7F:
        out.append(n & 0x7F | 0x80)
        n >>= 7
    out.append(n)
    return bytes(out)


def field(number, body):
    return varint(number << 3 | 2) + varint(len(body)) + body


def text(value):
    return value if isinstance(value, bytes) else value.encode()


def moment(value):
    seconds = calendar.timegm(time.strptime(value, "%Y-%m-%dT%H:%M:%SZ"))
    return varint(1 << 3) + varint(seconds)


def fields_v1(value):
    return field(1, json.dumps(value).encode())


def quantity(value):
    return field(1, text(str(value)))


def integer(value):
    return value


def pairs(encode):
    return lambda value: [field(1, text(k)) + field(2, encode(v)) for k, v in value.items()]


def message(schema):
    """schema: key → (number, encoder of a value, which gives a list where the field is a map)."""
    def encode(value):
        out = []
        for key, (number, one) in sorted(schema.items(), key=lambda row: row[1][0]):
            v = value.get(key)
            if v is None:
                continue
            if one is integer:
                out.append(varint(number << 3) + varint(v))
                continue
            for part in v if isinstance(v, list) else [v]:
                encoded = one(part)
                out += [field(number, e) for e in (encoded if isinstance(encoded, list) else [encoded])]
        return b"".join(out)
    return encode


CLAIM_OF_CONTAINER = message({"name": (1, text), "request": (2, text)})
RESOURCES = message({"limits": (1, pairs(quantity)), "requests": (2, pairs(quantity)),
                     "claims": (3, CLAIM_OF_CONTAINER)})
NAMED = message({"name": (1, text), "value": (2, text)})
CONTAINER = message({"name": (1, text), "image": (2, text), "args": (4, text), "env": (7, NAMED),
                     "resources": (8, RESOURCES), "restartPolicy": (24, text)})
METADATA = message({"name": (1, text), "namespace": (3, text), "uid": (5, text), "resourceVersion": (6, text), "generation": (7, integer), "creationTimestamp": (8, moment),
                    "deletionTimestamp": (9, moment), "labels": (11, pairs(text)),
                    "annotations": (12, pairs(text)), "managedFields": (17, message({"fieldsV1": (7, fields_v1)}))})
SPEC = message({"volumes": (1, NAMED), "containers": (2, CONTAINER), "initContainers": (20, CONTAINER),
                "ephemeralContainers": (34, message({"name": (1, text)})),
                "resourceClaims": (39, message({"name": (1, text), "resourceClaimName": (3, text),
                                                "resourceClaimTemplateName": (4, text)}))})
STATUS = message({
    "phase": (1, text),
    "resourceClaimStatuses": (15, message({"name": (1, text), "resourceClaimName": (2, text)})),
    "extendedResourceClaimStatus": (18, message({
        "requestMappings": (1, message({"containerName": (1, text), "resourceName": (2, text),
                                        "requestName": (3, text)})),
        "resourceClaimName": (2, text)}))})
POD = message({"metadata": (1, METADATA), "spec": (2, SPEC), "status": (3, STATUS)})
RESULT = message({"request": (1, text), "driver": (2, text), "pool": (3, text), "device": (4, text), "shareID": (9, text),
                  "consumedCapacity": (10, pairs(quantity))})
CONSUMER = message({"apiGroup": (1, text), "resource": (3, text), "name": (4, text), "uid": (5, text)})
CLAIM = message({"metadata": (1, METADATA), "status": (3, message({
    "allocation": (1, message({
        "devices": (1, message({"results": (1, RESULT), "config": (2, message({"requests": (1, text)}))})),
        "nodeSelector": (3, message({}))})),
    "reservedFor": (2, CONSUMER)}))})


def unknown(kind, raw):
    """runtime.Unknown: the type, the object, and two strings that are always written."""
    return b"k8s\0" + field(1, field(1, b"v1") + field(2, kind)) + field(2, raw) + field(3, b"") + field(4, b"")


def listing(items, more="", kind=b"PodList"):
    """items: encoded ones."""
    return unknown(kind, field(1, field(2, b"7") + field(3, text(more))) + b"".join(field(2, i) for i in items))


def pods(items, more=""):
    return listing(map(POD, items), more)


def claims(items):
    return listing(map(CLAIM, items), kind=b"ResourceClaimList")


def metadata(item):
    return unknown(b"PartialObjectMetadata", field(1, METADATA(item["metadata"])))


def metadata_list(items):
    return listing((field(1, METADATA(i["metadata"])) for i in items), kind=b"PartialObjectMetadataList")


def status(sentence):
    return unknown(b"Status", field(1, b"") + field(2, b"Failure") + field(3, text(sentence)))
