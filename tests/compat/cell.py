"""
One machine in namespaces of its own (mount, network, pid): the fixture's sys stands over /sys, an
interface of each name is a tap, and a private kubelet asks one plugin after the other. Runs as a
program: cases come as JSON on standard input, observations go out, one a line.
"""
import contextlib
import ctypes
import fcntl
import json
import os
import pathlib
import re
import shutil
import signal
import stat
import struct
import subprocess
import sys
import threading
import time

DEVICE_PLUGINS = pathlib.Path("/var/lib/kubelet/device-plugins")
REGISTRY = pathlib.Path("/var/lib/kubelet/plugins_registry")
DEVINFO = pathlib.Path("/var/run/k8s.cni.cncf.io/devinfo/dp")
CONFIG = pathlib.Path("/etc/pcidp/config.json")
LOGGED = ("-logtostderr", "-v", "10")  # as the incumbent's entry point starts it
PATIENCE = 30  # seconds
ALLOCATE = "/v1beta1.DevicePlugin/Allocate"
LIBC = ctypes.CDLL(None, use_errno=True)
MS_BIND, MS_REC, MS_PRIVATE = 4096, 16384, 1 << 18


def mount(source, target, kind=None, flags=0, data=None):
    encoded = [
        x.encode() if x is not None else None for x in (str(source), str(target), kind, data)
    ]
    if LIBC.mount(encoded[0], encoded[1], encoded[2], flags, encoded[3]) < 0:
        raise OSError(ctypes.get_errno(),
                      f"mount {source} on {target}: {os.strerror(ctypes.get_errno())}")


# --- the machine ---


def pci_functions(sys_dir):
    return sorted(
        (sys_dir / "bus/pci/devices").glob("*")) if (sys_dir / "bus/pci/devices").is_dir() else []


def text(path, otherwise=""):
    try:
        return path.read_text(errors="replace").strip()
    except OSError:
        return otherwise


def number(path):
    try:
        return int(text(path) or "0", 16)
    except ValueError:
        return 0  # damaged on purpose


def write_modalias(sys_dir):
    """What the incumbent's PCI library reads; captured trees do not have it."""
    for function in pci_functions(sys_dir):
        ids = {
            name: number(function / name)
            for name in ("vendor", "device", "subsystem_vendor", "subsystem_device", "class")
        }
        code = ids["class"]
        with contextlib.suppress(OSError):
            (function / "modalias").write_text(
                f"pci:v{ids['vendor']:08X}d{ids['device']:08X}sv{ids['subsystem_vendor']:08X}"
                f"sd{ids['subsystem_device']:08X}bc{code >> 16 & 255:02X}sc{code >> 8 & 255:02X}i{code & 255:02X}\n"
            )


def interfaces(sys_dir):
    """Name → ARPHRD of every interface of a PCI function."""
    found = {}
    for function in pci_functions(sys_dir):
        for net in sorted((function / "net").glob("*")) if (function / "net").is_dir() else []:
            found[net.name] = 32 if text(net / "type") == "32" else 1
    return found


def make_tap(name, kind):
    """TUNSETIFF, TUNSETLINK, TUNSETPERSIST. A name that no interface can have is left out: the
    other plugin cannot see it either."""
    fd = os.open("/dev/net/tun", os.O_RDWR)
    try:
        fcntl.ioctl(fd, 0x400454CA, struct.pack("16sH22x", name.encode()[:15], 0x1002))
        if kind != 1:
            fcntl.ioctl(fd, 0x400454CD, kind)
        fcntl.ioctl(fd, 0x400454CB, 1)
    finally:
        os.close(fd)


def default_route(tree, names):
    """That of the machine, on the tap of the same name."""
    for line in text(tree / "proc/net/route").splitlines()[1:]:
        words = line.split()
        if len(words) > 7 and words[1] == words[7] == "00000000" and words[0] in names:
            subprocess.run(["ip", "link", "set", words[0], "up"], check=True)
            subprocess.run(["ip", "route", "add", "default", "dev", words[0]], check=True)


def make_dev(sys_dir):
    """A /dev of the machine: plain files stand for its device nodes."""
    new = pathlib.Path("/run/compat-dev")
    new.mkdir()
    mount("tmpfs", new, "tmpfs")
    for name in ("null", "zero", "random", "urandom"):
        (new / name).touch()
        mount(f"/dev/{name}", new / name, None, MS_BIND)
    (new / "shm").mkdir()
    mount("/dev/shm", new / "shm", None, MS_BIND)  # the tree and the programs may be in it
    nodes = [
        f"infiniband/{path.name}" for path in (sys_dir / "class/infiniband_verbs").glob("uverbs*")
    ]
    if (sys_dir / "class/misc/rdma_cm").exists():
        nodes.append("infiniband/rdma_cm")
    for name in (*nodes, "vhost-net", "net/tun", "vfio/vfio"):
        (new / name).parent.mkdir(parents=True, exist_ok=True)
        (new / name).touch()
    mount(new, "/dev", None, MS_BIND | MS_REC)


def enter(tree):
    """Everything that the plugins see of a machine is this one's from here on."""
    tree = pathlib.Path(tree)
    mount("none", "/", None, MS_REC | MS_PRIVATE)
    write_modalias(tree / "sys")
    names = interfaces(tree / "sys")
    made = []
    for name, kind in names.items():
        try:
            make_tap(name, kind)
            made.append(name)
        except OSError as e:
            print(f"compat: no interface can be called {name!r}: {e}", file=sys.stderr)
    default_route(tree, made)
    mount("tmpfs", "/run", "tmpfs")
    make_dev(tree / "sys")
    mount(tree / "sys", "/sys", None, MS_BIND)
    for folder in ("/var/lib/kubelet", "/etc/pcidp", "/var/run/k8s.cni.cncf.io",
                   "/var/lib/railmate"):
        os.makedirs(folder, exist_ok=True)
        mount("tmpfs", folder, "tmpfs")
    pathlib.Path("/run/pci.ids").write_text("15b3  Mellanox Technologies\n\t101e  VF\n")


# --- protocol buffers, as far as Allocate needs them ---


def varint(data, at):
    value = shift = 0
    while True:
        byte = data[at]
        value |= (byte & 127) << shift
        at, shift = at + 1, shift + 7
        if byte < 128:
            return value, at


def fields(data):
    """(number, value) of a message; values are int or bytes."""
    at = 0
    while at < len(data):
        tag, at = varint(data, at)
        if tag & 7 == 0:
            value, at = varint(data, at)
        elif tag & 7 == 2:
            size, at = varint(data, at)
            value, at = data[at:at + size], at + size
        else:
            raise ValueError(f"wire type {tag & 7}")
        yield tag >> 3, value


def message(data, names):
    """Last value of each field by name; a field that is not named keeps its number."""
    return {
        names.get(number, str(number)): value.decode(
            errors="replace") if isinstance(value, bytes) else value
        for number, value in fields(data)
    }


def length_prefixed(number, data):
    size, head = len(data), bytearray([number << 3 | 2])
    while size > 127:
        head.append(size & 127 | 128)
        size >>= 7
    return bytes(head) + bytes([size]) + data


def allocate_request(ids):
    return length_prefixed(1, b"".join(length_prefixed(1, i.encode()) for i in ids))


def allocate_response(data):
    """{"env": {}, "nodes": {}, "mounts": {}, "annotations": {}, "cdi": []} of its one container."""
    got = {"env": {}, "nodes": {}, "mounts": {}, "annotations": {}, "cdi": []}
    (container,) = [value for number, value in fields(data) if number == 1]
    for number, value in fields(container):
        if number in (1, 4):
            pair = message(value, {1: "key", 2: "value"})
            got["env" if number == 1 else "annotations"][pair.get("key",
                                                                  "")] = pair.get("value", "")
        elif number == 2:
            m = message(value, {1: "container", 2: "host", 3: "read_only"})
            got["mounts"][m.get("container",
                                "")] = f"{m.get('host')} {'ro' if m.get('read_only') else 'rw'}"
        elif number == 3:
            node = message(value, {1: "container", 2: "host", 3: "permissions"})
            got["nodes"][node.get("host",
                                  "")] = f"{node.get('container')} {node.get('permissions')}"
        elif number == 5:
            got["cdi"].append(message(value, {1: "name"}).get("name", ""))
        else:
            got.setdefault("unknown", []).append(number)
    return got


# --- the kubelet ---


class Kubelet:
    def __init__(self, program):
        self.child = subprocess.Popen(
            [program, "--kubelet-dir",
             str(DEVICE_PLUGINS), "--kubelet-root", "/var/lib/kubelet"], stdin=subprocess.PIPE,
            stdout=subprocess.PIPE, text=True)
        self.line, self.events, self.changed = 0, [], threading.Condition()
        threading.Thread(target=self.read, daemon=True).start()
        self.wait(lambda e: e["event"] == "up")

    def read(self):
        for line in self.child.stdout:
            with self.changed:
                self.events.append(json.loads(line))
                self.changed.notify_all()

    def wait(self, wanted):
        with self.changed:
            if not self.changed.wait_for(lambda: any(map(wanted, self.events)), PATIENCE):
                raise TimeoutError("the private kubelet does not answer")
            return next(filter(wanted, self.events))

    def send(self, command):
        self.line += 1
        self.child.stdin.write(command + "\n")
        self.child.stdin.flush()
        return self.line

    def answer(self, line):
        return self.wait(lambda e: e.get("line") == line)

    def ask(self, command):
        return self.answer(self.send(command))

    def resources(self):
        return {
            r["name"]: r
            for r in self.ask("list")["resources"]
            if r["registered"] and r["devices"]
        }

    def allocate(self, resource, ids):
        return self.ask(f"call {resource} {ALLOCATE} {allocate_request(ids).hex()}")

    def close(self):
        self.child.stdin.close()
        self.child.wait(PATIENCE)


# --- a plugin ---


class Plugin:
    """The log shows when it is up: the incumbent's last line, or ours for each pool."""

    def __init__(self, program, arguments):
        self.log = pathlib.Path("/run/plugin.log")
        with open(self.log, "wb") as out:
            self.child = subprocess.Popen(["setpriv", "--pdeathsig", "KILL", program, *arguments],
                                          stdout=out, stderr=out, stdin=subprocess.DEVNULL,
                                          env={**os.environ, "PCIDB_PATH": "/run/pci.ids"})

    def expected(self):
        """Names, with or without prefix, of the resources that it will register; None: not known
        yet."""
        said = self.log.read_text(errors="replace")
        if "Listening for term signals" in said:
            return re.findall(r"New resource server is created for (\S+) ResourcePool", said)
        pools = re.findall(r" pool: the VFs of the pool were counted resource=(\S+) devices=(\d+)",
                           said)
        return [name for name, n in pools if int(n)] if pools else None

    def settle(self, kubelet):
        """Its resources once all are there; {} when it ended."""
        deadline = time.monotonic() + PATIENCE
        while time.monotonic() < deadline:
            if self.child.poll() is not None:
                return {}
            names = self.expected()
            if names is not None:
                resources = kubelet.resources()
                if len(resources) >= len(names):
                    return resources
            time.sleep(0.01)
        raise TimeoutError(
            f"it did not register everything:\n{self.log.read_text(errors='replace')[-2000:]}")

    def end(self):
        if self.child.poll() is None:
            self.child.send_signal(signal.SIGKILL)
        return self.child.wait(PATIENCE)


def devinfo(ids):
    """The device-info files; those of VFs that were not allocated are marked."""
    found = {}
    for path in sorted(DEVINFO.glob("*")) if DEVINFO.is_dir() else []:
        allocated = any(path.name.endswith(f"-{i}-device.json") for i in ids)
        found[path.name] = {
            "allocated": allocated, "mode": oct(stat.S_IMODE(path.stat().st_mode)),
            "json": json.loads(path.read_text())
        }
    return found


def observe_resource(kubelet, name, listed):
    ids = sorted(d["id"] for d in listed["devices"])[:2]
    seen = {
        "pre_start": listed["pre_start"], "preferred": listed["preferred_allocation"], "devices": {
            d["id"]: {"healthy": d["healthy"], "numa": d["numa"]}
            for d in listed["devices"]
        }
    }
    answer = kubelet.allocate(name, ids)
    seen["status"] = answer["status"]
    if answer["status"] == "OK":
        seen.update(allocate_response(bytes.fromhex(answer["body"])))
    seen["unknown id"] = "OK" if kubelet.allocate(name,
                                                  ["0000:ff:1f.7"])["status"] == "OK" else "error"
    return seen, ids


def wipe():
    for folder in (DEVICE_PLUGINS, REGISTRY, DEVINFO, pathlib.Path("/var/lib/railmate"),
                   pathlib.Path("/run/railmate")):
        shutil.rmtree(folder, ignore_errors=True) if not folder.is_mount() else [
            shutil.rmtree(p) if p.is_dir() else p.unlink() for p in folder.iterdir()]
    DEVICE_PLUGINS.mkdir(parents=True)


def observe(case, side):
    """What a kubelet sees of one plugin with one configuration."""
    wipe()
    CONFIG.unlink(missing_ok=True)
    if case["config"] is not None:
        CONFIG.write_text(case["config"])
    kubelet = Kubelet(case["kubelet"])
    plugin = Plugin(case[side], ["-config-file", str(CONFIG), *LOGGED, *case["arguments"]])
    try:
        resources = plugin.settle(kubelet)
        ended = plugin.child.poll()
        seen = {
            "exit": "runs" if ended is None else f"ends with {ended}", "resources": {},
            "sockets": sorted(p.name for folder in (DEVICE_PLUGINS, REGISTRY) if folder.is_dir()
                              for p in folder.iterdir()
                              if p.is_socket() and p.name != "kubelet.sock")
        }
        allocated = []
        for name, listed in sorted(resources.items()):
            seen["resources"][name], ids = observe_resource(kubelet, name, listed)
            allocated += ids
        seen["devinfo"] = devinfo(allocated)
    finally:
        plugin.end()
        kubelet.close()
    return seen


def main():
    request = json.load(sys.stdin)
    enter(request["tree"])
    for case in request["cases"]:
        result, start = {"name": case["name"]}, time.monotonic()
        for side in ("theirs", "ours"):
            try:
                result[side] = observe(case, side)
            except (OSError, ValueError, TimeoutError, subprocess.SubprocessError) as e:
                result["failure"] = f"{side}: {e}"
        result["seconds"] = round(time.monotonic() - start, 1)
        print(json.dumps(result), flush=True)


if __name__ == "__main__":
    main()
