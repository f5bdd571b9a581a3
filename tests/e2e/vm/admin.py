"""What only netlink tells: VFs as their PF's administrator set them, and the mode of RDMA devices;
against `ip` and `rdma`."""

import json
import os
import subprocess

from bed import check, equal, output, scenario

RAILMATECTL = os.environ["RAILMATECTL"]
PF = "pf23"


def doctor(only):
    """The sentences of a check with their verdicts; a verdict that is not PASS has an exit status
    of its own."""
    run = subprocess.run([RAILMATECTL, "doctor", "--json", "--only", only], capture_output=True,
                         text=True, timeout=60)
    check(run.returncode in (0, 5, 6, 7), f"doctor ends with {run.returncode}: {run.stderr}")
    return [(finding["verdict"], finding["finding"])
            for c in json.loads(run.stdout)["checks"]
            for finding in c["findings"]]


def about_pf(findings):
    return [f for f in findings if "0000:23:00.0" in f[1]]


@scenario
def vfs_are_as_their_administrator_set_them():
    """doctor knows rate limits, trust and spoof checking of VFs as `ip link` does"""
    output("ip", "link", "set", PF, "vf", "1", "spoofchk", "off")
    output("ip", "link", "set", PF, "vf", "2", "trust", "on")
    output("ip", "link", "set", PF, "vf", "3", "max_tx_rate", "500")
    try:
        vfs = json.loads(output("ip", "-j", "-d", "link", "show", PF))[0]["vfinfo_list"]
        trusted, checked = sum(v["trust"] for v in vfs), sum(v["spoofchk"] for v in vfs)
        equal((len(vfs), trusted, checked), (7, 1, 6), "what ip says")
        equal(about_pf(doctor("vf-admin")), [(
            "PASS",
            "No link of the 7 VFs of 0000:23:00.0 (pf23) is disabled (0 always up, the others follow the port); "
            "1 are trusted, 6 have spoof checking."
        ), ("PASS", "1 of the 7 VFs of 0000:23:00.0 (pf23) may send 500 Mb/s at most.")], "doctor")
    finally:
        output("ip", "link", "set", PF, "vf", "1", "spoofchk", "on")
        output("ip", "link", "set", PF, "vf", "2", "trust", "off")
        output("ip", "link", "set", PF, "vf", "3", "max_tx_rate", "0")
    equal(len(about_pf(doctor("vf-admin"))), 1, "findings when the limit is lifted")


@scenario
def the_mode_of_rdma_devices_is_known():
    """doctor knows whether RDMA devices are shared by network namespaces as `rdma system` does"""
    mode = output("rdma", "system", "show").split()[1]
    word = {
        "shared": "shared by all network namespaces", "exclusive": "in one network namespace each"
    }[mode]
    findings = doctor("rdma-netns")
    check(len(findings) == 1 and word in findings[0][1], f"{findings} although rdma says {mode}")
