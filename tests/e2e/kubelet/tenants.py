"""
What any tenant can write into a pod, through a real API server: pods that are as large as it takes
them, and counts as it keeps them. railmated stays small, leaves such a pod out by its name, and
chooses for the pods of others as before.
Beside what the other scenarios ask of a cluster: create(pod) through an API server, api_account().
Standard library only.
"""
import contextlib
import pathlib
import re

from late import is_newest
from scenarios import Unsupported, check, equal, one_pod, pod, scenario, until

PEAK_MIB = 32
ODD_COUNTS = ("+1", "1.", "5e-0", "1.500k", "-0")  # the API server keeps them as written
CLAIMS = [f"a{i}" for i in range(100)]


def plain(name, **resources):
    """A container that does nothing."""
    return {"name": name, "image": "railmate.test/probe:1", "imagePullPolicy": "Never",
            "command": ["/bin/busybox", "sleep", "1000"], "resources": resources}


def claiming_pod(name):
    """1,000 containers with 100 claims each: as large as a pod can be. None of these claims
    exists, so the kubelet admits the pod and does not start it."""
    made = pod(name, *(plain(f"c{i}", claims=[{"name": claim} for claim in CLAIMS])
                       for i in range(1000)))
    made["spec"]["resourceClaims"] = [{"name": claim, "resourceClaimName": "none"}
                                      for claim in CLAIMS]
    return made


def zeros_pod(name):
    return pod(name, plain("c", limits={f"x.example/{i}": "0" for i in range(8500)}))


def counted_pod(name, count):
    return pod(name, plain("c", limits={"x.example/y": count}))


def peak_mib():
    """Of every railmated there is."""
    peaks = []
    for process in pathlib.Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            if (process / "comm").read_text().strip() == "railmated":
                status = (process / "status").read_text()
                peaks += [int(kib) / 1024 for kib in re.findall(r"VmHWM:\s+(\d+) kB", status)]
    return max(peaks)


def left_out(log):
    return set(re.findall(r"the spec of a pod is not read: its containers are found by what they "
                          r"hold pod=default/(\S+)", log))


@scenario(where=is_newest, api=True)
def pods_as_a_hostile_tenant_writes_them(c):
    """Before railmated starts, then while pods of others come."""
    if not hasattr(c.backend, "api_account"):
        raise Unsupported("this node's API server cannot be asked from here")
    account = c.api_account()
    hostile = [claiming_pod("claims-0"), *(zeros_pod(f"zeros-{i}") for i in range(5)),
               *(counted_pod(f"count-{i}", count) for i, count in enumerate(ODD_COUNTS))]
    unread = {"claims-0"} | {f"zeros-{i}" for i in range(5)}
    equal(c.stop_railmate(c.newest_railmate()), 0, "railmated's exit status")
    try:
        for one in hostile:
            c.live.append(one["metadata"]["name"])
            c.create(one)
        until(lambda: {one["metadata"]["name"] for one in hostile} <=
              {one["metadata"]["name"] for one in c.raw_pods() or []}, "the kubelet to have them all")
        for _ in range(2):  # the first one was ended 0.3 s after each start
            name = c.start_railmate("--pod-specs=api-server", "--pod-resources-timeout=8000", *account)
            until(lambda n=name: left_out(c.railmate_log(n)) == unread,
                  f"{len(unread)} pods to be left out by name")
            c.wait_registered()
            c.end(*[one_pod(c, 2, 1, vfs_first=i % 2)[0] for i in range(4)])
            c.live.append(f"claims-{name}")
            c.create(claiming_pod(c.live[-1]))
            c.end(*[one_pod(c, 2, 1, vfs_first=i % 2)[0] for i in range(4)])
            log = c.railmate_log(name)
            # A busy server may be late; nothing that it wrote is unreadable.
            failed = [line for line in log.splitlines()
                      if "cannot read pod specs" in line and "took longer" not in line]
            check(not failed, f"pod specs could not be read: {failed[:1]}")
            known = len(re.findall(r"default/p\d+ container main asks for it and holds", log))
            check(known, "no pod was known by its spec")
            peak = peak_mib()
            check(peak <= PEAK_MIB, f"railmated took {peak:.1f} MiB")
            unread.add(c.live[-1])
            equal(c.stop_railmate(name), 0, "railmated's exit status")
    finally:
        c.end(*c.live)
        c.backend.railmate_env = []
        c.start_railmate()
        c.wait_registered()
    return f"{peak:.1f} MiB, {known} of 8 pods known by their specs"
