"""The configurations: selectors and ranges, the incumbent's own shapes, what its two operators
write and start, odd ones; and every machine."""
import json
import pathlib

FIXTURES = pathlib.Path(__file__).resolve().parent.parent / "fixtures"
MIXED, PORTS, BIG = "odd-no-rdma", "odd-dual-port", "hgx-h100"  # drivers of every kind; InfiniBand and Ethernet; eight rails


def case(name, config, *arguments):
    text = config if isinstance(config, str) or config is None else json.dumps(config)
    return {"name": name, "config": text, "arguments": list(arguments)}


def pools(*entries):
    return {"resourceList": list(entries)}


def pool(name="a", selectors=None, **more):
    entry = {"resourceName": name, **more}
    if selectors is not None:
        entry["selectors"] = selectors
    return entry


def one(name, selectors, **more):
    return case(name, pools(pool("a", selectors, **more)))


# --- one selector, two, ranges ---

MIXED_SELECTORS = [
    {},
    {"vendors": []},
    {"vendors": ["15b3"]},
    {"vendors": ["8086"]},
    {"vendors": ["10de"]},
    {"vendors": ["15b3", "8086"]},
    {"devices": ["101e"]},
    {"devices": ["1889"]},
    {"devices": ["101e", "1889"]},
    {"devices": ["ffff"]},
    {"drivers": ["mlx5_core"]},
    {"drivers": ["vfio-pci"]},
    {"drivers": ["iavf"]},
    {"drivers": ["iavf", "ixgbevf"]},
    {"drivers": ["none"]},
    {"pciAddresses": ["0000:13:00.2"]},
    {"pciAddresses": ["0000:13:00.2", "0000:13:00.3"]},
    {"pciAddresses": ["0000:13:00.0"]},
    {"pciAddresses": ["0000:99:00.0"]},
    {"acpiIndexes": ["1"]},
    {"acpiIndexes": []},
    {"pfNames": ["ens1f0np0"]},
    {"pfNames": ["ens2f0"]},
    {"pfNames": ["eno1"]},
    {"pfNames": ["ENS1F0NP0"]},
    {"pfNames": ["ens1"]},
    {"pfNames": ["ens1f0np0", "ens2f0"]},
    {"pfNames": ["none", "ens2f0"]},
    {"rootDevices": ["0000:13:00.0"]},
    {"rootDevices": ["0000:15:00.0", "0000:16:00.0"]},
    {"rootDevices": ["0000:17:00.0"]},
    {"rootDevices": ["0000:13:00.2"]},
    {"linkTypes": ["ether"]},
    {"linkTypes": ["infiniband"]},
    {"linkTypes": ["ether", "infiniband"]},
    {"isRdma": True},
    {"isRdma": False},
    {"needVhostNet": True},
    {"needVhostNet": False},
    {"pKeys": ["0xffff"]},
    {"vendors": ["15b3"], "isRdma": True},
    {"vendors": ["8086"], "isRdma": True},
    {"drivers": ["vfio-pci"], "isRdma": True},
    {"drivers": ["vfio-pci"], "needVhostNet": True},
    {"vendors": ["15b3"], "drivers": ["vfio-pci"]},
    {
        "vendors": ["15b3"], "devices": ["101e"], "drivers": ["mlx5_core"], "linkTypes": ["ether"],
        "isRdma": True
    },
    {"pfNames": ["ens1f0np0"], "isRdma": True},
    {"pfNames": ["ens1f0np0"], "drivers": ["vfio-pci"]},
    {"auxTypes": ["sf"]},
    {"ddpProfiles": []},
    {"vdpaType": ""},
]
RANGES = [
    "0", "1", "0-1", "1-3", "0,2", "0,2-4", "3-9", "9", "0-0", "4-2", "a", "", ",", "1,", "-1",
    "1-", "1-2-3", " 1", "0x1", "+1", "0#1"
]
PORT_SELECTORS = [
    {"linkTypes": ["infiniband"]},
    {"linkTypes": ["ether"]},
    {"linkTypes": ["infiniband"], "isRdma": True},
    {"linkTypes": ["ether"], "isRdma": True},
    {"pfNames": ["ib0"], "isRdma": True},
    {"pfNames": ["ibp35s0f0"]},
    {"pKeys": ["0xffff"]},
    {"pKeys": ["0x7fff"]},
    {"pKeys": ["0x8001"]},
    {"vendors": ["15b3"]},
    {"drivers": ["mlx4_core"]},
    {"rootDevices": ["0000:23:00.0#0"]},
    {"rootDevices": ["0000:23:00.1#1", "0000:31:00.0#0-1"]},
    {"isRdma": True, "needVhostNet": True},
]
LISTS = [
    [{"isRdma": True}],
    [{"vendors": ["15b3"]}, {"vendors": ["8086"]}],
    [{"isRdma": True}, {"drivers": ["vfio-pci"]}],
    [{"drivers": ["vfio-pci"]}, {"isRdma": True}],
    [{"vendors": ["15b3"]}, {"isRdma": True}],
    [{"pfNames": ["ens1f0np0#0"]}, {"pfNames": ["ens1f0np0"], "isRdma": True}],
    [{"pfNames": ["ens2f0"], "needVhostNet": True}, {}],
    [{}],
    [{"vendors": ["ffff"]}],
    [{"vendors": ["ffff"]}, {"isRdma": True}],
]


def selector_cases():
    yield from ((MIXED, one(f"selector {json.dumps(s)}", s)) for s in MIXED_SELECTORS)
    yield from ((PORTS, one(f"ports {json.dumps(s)}", s)) for s in PORT_SELECTORS)
    yield from ((MIXED, one(f"range pfNames #{r}", {"pfNames": [f"ens1f0np0#{r}"]}))
                for r in RANGES)
    yield from ((MIXED, one(f"range rootDevices #{r}", {"rootDevices": [f"0000:13:00.0#{r}"]}))
                for r in RANGES[:8])
    yield (MIXED, one("range first entry decides", {"pfNames": ["ens1f0np0#0", "ens1f0np0#1"]}))
    yield from ((MIXED, one(f"list {json.dumps(items)}", items)) for items in LISTS)


# --- pools beside each other, and their other keys ---


def pool_cases():
    rdma, vfio = {"isRdma": True}, {"drivers": ["vfio-pci"]}
    more = {
        "two pools": [pool("a", rdma), pool("b", vfio)],
        "the first pool owns": [pool("a", {"vendors": ["15b3"]}),
                                pool("b", rdma)],
        "the same name under two prefixes": [
            pool("a", rdma, resourcePrefix="x.org"),
            pool("a", vfio, resourcePrefix="y.org")
        ],
        "a pool of nothing": [pool("a", {"vendors": ["ffff"]}),
                              pool("b", rdma)],
        "no topology": [pool("a", rdma, excludeTopology=True)],
        "topology": [pool("a", rdma, excludeTopology=False)],
        "netDevice": [pool("a", rdma, deviceType="netDevice")],
        "empty device type": [pool("a", rdma, deviceType="")],
        "empty prefix": [pool("a", rdma, resourcePrefix="")],
        "names with - and _": [pool("a-b_C9", rdma, resourcePrefix="my-org.io")],
        "extra for all": [pool("a", rdma, additionalInfo={"*": {"token": "x", "Key": "y"}})],
        "extra for one": [
            pool("a", rdma, additionalInfo={"*": {"t": "x"}, "0000:13:00.2": {"t": "z", "u": "1"}})
        ],
        "extra for a stranger": [pool("a", rdma, additionalInfo={"0000:99:00.0": {"t": "z"}})],
        "extra with odd characters": [
            pool("a", rdma, additionalInfo={"*": {"q": 'a"b\\c', "html": "<&>", "utf": "é€"}})
        ],
        "extra of nothing": [pool("a", rdma, additionalInfo={})],
        "three pools": [
            pool(n, {"pfNames": [pf]})
            for n, pf in (("a", "ens1f0np0"), ("b", "ens2f0"), ("c", "eno1"))
        ],
        "our own keys": [pool("a", rdma, railmate={"gid": "off"})],
    }
    yield from ((MIXED, case(f"pools: {name}", pools(*entries))) for name, entries in more.items())


# --- as the operators write and start them ---


def operator_cases():
    sno = {
        "resourceName": "mlx", "selectors": {
            "vendors": ["15b3"], "pfNames": ["ens1f0np0#0-1"], "IsRdma": True, "NeedVhostNet": False
        }, "SelectorObjs": None
    }
    vfio = {
        "resourceName": "dpdk",
        "selectors": {"pfNames": ["ens1f0np0"], "IsRdma": False,
                      "NeedVhostNet": True}, "SelectorObjs": None
    }
    lists = {
        "resourceName": "all", "selectors": {
            "vendors": None, "devices": None, "drivers": None, "pfNames": None,
            "linkTypes": ["ether"]
        }
    }
    starts = {
        "of sriov-network-operator": ["-resource-prefix=openshift.io"],
        "of sriov-network-operator with log": [
            "-v", "10", "-logtostderr", "-resource-prefix", "openshift.io"
        ],
        "of network-operator": ["--resource-prefix=nvidia.com", "-alsologtostderr"],
        "two dashes": ["--resource-prefix=a.b", "--v=10", "--logtostderr=true"],
    }
    for name, arguments in starts.items():
        yield MIXED, case(f"started: {name}", pools(sno, vfio), *arguments)
    yield MIXED, case("operator: SelectorObjs, IsRdma", pools(sno))
    yield MIXED, case("operator: vfio without drivers key, vhost", pools(vfio))
    yield MIXED, case("operator: null lists", pools(lists))
    yield MIXED, case("operator: all policies in a file", pools(sno, vfio, lists))
    yield MIXED, case("operator: keys in other case", {
        "ResourceList": [{"RESOURCENAME": "a", "Selectors": {"Vendors": ["15b3"], "ISRDMA": True}}]
    })
    yield MIXED, case(
        "operator: unknown keys", {
            "x": 1,
            "resourceList": [{"resourceName": "a", "y": {}, "selectors": {"z": [], "isRdma": True}}]
        })
    for rail, pf in enumerate(("ibp24s0", "ibp64s0")):
        yield BIG, one(f"operator: rail {rail}", {
            "vendors": ["15b3"], "pfNames": [f"{pf}#0-7"], "isRdma": True,
            "linkTypes": ["infiniband"]
        })
    yield BIG, case(
        "operator: eight rails",
        pools(*(pool(f"rail{i}", {"pfNames": [pf], "isRdma": True})
                for i, pf in enumerate(("ibp24s0", "ibp64s0", "ibp79s0", "ibp94s0", "ibp154s0",
                                        "ibp192s0", "ibp206s0", "ibp220s0")))))


# --- what should not be in a file ---

ODD = {
    "no file": None,
    "empty file": "",
    "not JSON": "{",
    "a list": "[]",
    "no pools": '{"resourceList": []}',
    "null pools": '{"resourceList": null}',
    "nothing": "{}",
    "no selectors": '{"resourceList": [{"resourceName": "a"}]}',
    "null selectors": '{"resourceList": [{"resourceName": "a", "selectors": null}]}',
    "no selector in the list": '{"resourceList": [{"resourceName": "a", "selectors": []}]}',
    "no name": '{"resourceList": [{"selectors": {"isRdma": true}}]}',
    "name with a blank": '{"resourceList": [{"resourceName": "a b", "selectors": {"isRdma": true}}]}',
    "a number for a name": '{"resourceList": [{"resourceName": 7, "selectors": {"isRdma": true}}]}',
    "one name twice": '{"resourceList": [{"resourceName": "a", "selectors": {"isRdma": true}}, {"resourceName": "a", "selectors": {}}]}',
    "upper-case prefix": '{"resourceList": [{"resourceName": "a", "resourcePrefix": "A.B", "selectors": {"isRdma": true}}]}',
    "old keys": '{"resourceList": [{"resourceName": "a", "rootDevices": ["13:00.0"], "sriovMode": true, "deviceType": "vfio"}]}',
    "unknown device type": '{"resourceList": [{"resourceName": "a", "deviceType": "gpu", "selectors": {}}]}',
    "vendor with 0x": '{"resourceList": [{"resourceName": "a", "selectors": {"vendors": ["0x15b3"]}}, {"resourceName": "b", "selectors": {"isRdma": true}}]}',
    "empty vendor": '{"resourceList": [{"resourceName": "a", "selectors": {"vendors": [""]}}, {"resourceName": "b", "selectors": {"isRdma": true}}]}',
    "unknown key alone": '{"resourceList": [{"resourceName": "a", "selectors": {"isRdmaa": true}}]}',
    "vendor in upper case": '{"resourceList": [{"resourceName": "a", "selectors": {"vendors": ["15B3"]}}]}',
    "link type in upper case": '{"resourceList": [{"resourceName": "a", "selectors": {"linkTypes": ["ETHER"]}}, {"resourceName": "b", "selectors": {"isRdma": true}}]}',
    "short address": '{"resourceList": [{"resourceName": "a", "selectors": {"pciAddresses": ["13:00.2"]}}, {"resourceName": "b", "selectors": {"isRdma": true}}]}',
    "address in upper case": '{"resourceList": [{"resourceName": "a", "selectors": {"pciAddresses": ["0000:13:00.2"]}}]}',
    "text for a flag": '{"resourceList": [{"resourceName": "a", "selectors": {"isRdma": "true"}}]}',
    "text for a list": '{"resourceList": [{"resourceName": "a", "selectors": {"vendors": "15b3"}}]}',
    "a key twice": '{"resourceList": [{"resourceName": "a", "selectors": {"vendors": ["8086"], "vendors": ["15b3"]}}]}',
    "isRdma with vdpaType": '{"resourceList": [{"resourceName": "a", "selectors": {"isRdma": true, "vdpaType": "vhost"}}]}',
    "vDPA": '{"resourceList": [{"resourceName": "a", "selectors": {"vdpaType": "vhost"}}, {"resourceName": "b", "selectors": {"isRdma": true}}]}',
    "DDP": '{"resourceList": [{"resourceName": "a", "selectors": {"ddpProfiles": ["GTP"]}}, {"resourceName": "b", "selectors": {"isRdma": true}}]}',
    "accelerator beside RDMA": '{"resourceList": [{"resourceName": "a", "deviceType": "accelerator", "selectors": {}}, {"resourceName": "b", "selectors": {"isRdma": true}}]}',
    "auxNetDevice beside RDMA": '{"resourceList": [{"resourceName": "a", "deviceType": "auxNetDevice", "selectors": {"auxTypes": ["sf"]}}, {"resourceName": "b", "selectors": {"isRdma": true}}]}',
    "text behind the object": '{"resourceList": [{"resourceName": "a", "selectors": {"isRdma": true}}]} x',
    "a comment": '{"resourceList": [{"resourceName": "a", "selectors": {"isRdma": true}}]} // x',
    "null pool": '{"resourceList": [null, {"resourceName": "b", "selectors": {"isRdma": true}}]}',
    "extra that is no text": '{"resourceList": [{"resourceName": "a", "additionalInfo": {"*": {"a": 1}}, "selectors": {"isRdma": true}}]}',
}


def odd_cases():
    yield from ((MIXED, case(f"odd: {name}", text)) for name, text in ODD.items())
    yield MIXED, case("odd: unknown flag", pools(pool("a", {"isRdma": True})), "--no-such-flag")


def machine_cases():
    """One general configuration on each machine."""
    general = pools(
        pool("rdma", {"isRdma": True}),
        pool("vf", [{"drivers": ["vfio-pci", "iavf", "ixgbevf"]}, {"pfNames": ["none"]}]),
        pool("rest", {}))
    for path in sorted(FIXTURES.glob("*/about.md")):
        yield path.parent.name, case("machine: general", general)


def by_machine():
    found = {}
    for part in (selector_cases, pool_cases, operator_cases, odd_cases, machine_cases):
        for machine, one_case in part():
            found.setdefault(machine, []).append(one_case)
    return found


if __name__ == "__main__":
    print(sum(map(len, by_machine().values())), "configurations and machines")
