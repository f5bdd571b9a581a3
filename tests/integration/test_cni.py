#!/usr/bin/python3
"""
railmate-cni as the container runtime executes it: against a railmated of the test's own (its
socket's protocol), with the delegate cni/movedev, which moves real network interfaces between
network namespaces.
"""

import contextlib
import json
import os
import pathlib
import signal
import socket
import stat
import subprocess
import tempfile
import threading
import unittest

from harness import GPU, PATIENCE, Case, program, until, vfs_of
from harness import VF as RESOURCE

HERE = pathlib.Path(__file__).resolve().parent
SLOT, VF, OTHER = "rvf-vf-n0-3", "0000:18:00.1", "0000:40:00.1"
CONTAINER = "c0ffee"
RDMA, PF = "mlx5_20", "0000:18:00.0"
ARGS = "IgnoreUnknown=1;K8S_POD_NAMESPACE=team;K8S_POD_NAME=trainer;K8S_POD_INFRA_CONTAINER_ID=c0ffee;K8S_POD_UID=u-1"


class Railmated:
    """One request and one reply a connection, as control/control.h says."""

    def __init__(self, path):
        self.heard, self.error, self.unheard, self.more = [], None, False, {"pf": PF}
        self.whose = None
        self.slots = {SLOT: VF, "rvf-vf-n1-0": OTHER, VF: VF, VF.upper(): VF}
        self.server = socket.socket(socket.AF_UNIX)
        self.server.bind(str(path))
        self.server.listen(16)
        self.thread = threading.Thread(target=self.serve, daemon=True)
        self.thread.start()

    def answer(self, request):
        error = self.whose if request["op"] == "whose" else self.error
        if error:
            id = request.get("slot") or request.get("vf")
            return {"error": {"code": error, "message": f"{id}: {error} it is"}}
        if request["op"] != "bind":
            return {}
        if request["slot"] not in self.slots:
            return {"error": {"code": "ENOENT", "message": f"there is no slot {request['slot']}"}}
        return {"bound": [{"slot": s, "resource": "rdma/vf", "vf": vf, "rdma": RDMA, **self.more}
                          for s, vf in self.slots.items()]}

    def serve(self):
        with self.server, contextlib.suppress(OSError):
            while True:
                with self.server.accept()[0] as client:
                    line = client.makefile().readline()
                    self.heard.append(json.loads(line))
                    if not self.unheard:
                        client.sendall(json.dumps(self.answer(self.heard[-1])).encode() + b"\n")

    def stop(self):
        self.server.shutdown(socket.SHUT_RDWR)
        self.thread.join()


class Netns:
    """A network namespace, kept by a process."""

    def __init__(self):
        self.keeper = subprocess.Popen(["unshare", "--net", "sleep", "600"])
        self.path = f"/proc/{self.keeper.pid}/ns/net"
        until(lambda: os.readlink(self.path) != os.readlink("/proc/self/ns/net"),
              "a network namespace")

    def ip(self, *argv):
        return subprocess.run(["nsenter", f"--net={self.path}", "ip", *argv], check=True,
                              capture_output=True, text=True, timeout=PATIENCE).stdout

    def links(self):
        return {link["ifname"] for link in json.loads(self.ip("-j", "link"))} - {"lo"}

    def end(self):
        self.keeper.kill()
        self.keeper.wait()


def has_namespaces():
    return os.geteuid() == 0 and subprocess.run(
        ["unshare", "--net", "ip", "link", "add", "x0", "type", "veth", "peer", "name", "x1"],
        capture_output=True, check=False).returncode == 0


class Cni(unittest.TestCase):
    def setUp(self):
        top = tempfile.TemporaryDirectory(prefix="railmate-cni-")
        self.addCleanup(top.cleanup)
        self.top = pathlib.Path(top.name)
        self.state, self.log, self.socket = self.top / "state", self.top / "log", self.top / "s"
        self.devinfo, self.settings = self.top / "devinfo", self.top / "cni.json"
        self.daemon, self.host, self.netns = None, None, "/proc/self/ns/net"
        self.put_settings()

    def start_daemon(self):
        self.daemon = Railmated(self.socket)
        self.addCleanup(self.stop_daemon)
        return self.daemon

    def stop_daemon(self):
        if self.daemon:
            self.daemon.stop()
            self.socket.unlink()
            self.daemon = None

    def conf(self, fail=None, delegate=None, **more):
        conf = {
            "cniVersion": "1.1.0", "name": "rail-net", "type": "railmate-cni", "deviceID": SLOT,
            "pciBusID": SLOT, "delegate": {
                "type": "movedev", "log": str(self.log), "fail": fail or {}, **(delegate or {})
            }, **more
        }
        return {k: v for k, v in conf.items() if v is not None}

    def argv(self):
        inside = ["nsenter", f"--net={self.host.path}"] if self.host else []
        return [*inside, program("railmate_cni")]

    def env(self, command, **more):
        env = {
            "PATH": os.environ["PATH"], "CNI_COMMAND": command, "CNI_CONTAINERID": CONTAINER,
            "CNI_NETNS": self.netns, "CNI_IFNAME": "net1", "CNI_ARGS": ARGS,
            "CNI_PATH": f"{self.top}:{HERE / 'cni'}", "RAILMATE_CNI_CONFIG": str(self.settings),
            **more
        }
        return {k: v for k, v in env.items() if v is not None}

    def put_settings(self):
        """What the administrator of the node says."""
        self.settings.write_text(json.dumps({"controlSocket": str(self.socket),
                                             "stateDir": str(self.state),
                                             "deviceInfoDir": str(self.devinfo)}))

    def cni(self, command, conf=None, **env):
        text = conf if isinstance(conf, str) else json.dumps(self.conf() if conf is None else conf)
        return subprocess.run(self.argv(), input=text, capture_output=True, text=True,
                              timeout=PATIENCE, env=self.env(command, **env), check=False)

    def works(self, done):
        self.assertEqual((done.returncode, done.stderr), (0, ""), done.stdout)
        return done.stdout

    def fails(self, done, code, *words, status=1):
        self.assertEqual(done.returncode, status, done)
        error = json.loads(done.stdout)
        self.assertEqual(error["code"], code, error)
        self.assertIn(error["cniVersion"], ("1.0.0", "1.1.0"))
        for word in words:
            self.assertIn(word, error["msg"])
        return error

    def calls(self):
        return [json.loads(line)
                for line in self.log.read_text().splitlines()] if self.log.exists() else []

    def commands(self):
        return [call["env"]["CNI_COMMAND"] for call in self.calls()]

    def states(self):
        return sorted(p.name for p in self.state.iterdir()) if self.state.exists() else []


class Add(Cni):
    def test_the_daemon_is_told_slot_and_pod(self):
        daemon = self.start_daemon()
        self.works(self.cni("ADD"))
        self.assertEqual(
            daemon.heard,
            [{"op": "bind", "slot": SLOT, "namespace": "team", "pod": "trainer", "uid": "u-1"}])

    def test_the_daemon_is_told_when_a_vf_of_a_claim_has_moved(self):
        daemon = self.start_daemon()
        daemon.more["claim"] = "0b1a6e2c-55d0-4f0b-9d7e-6b1d1f0c9a55"
        self.works(self.cni("ADD"))
        self.assertEqual(daemon.heard[1:], [{"op": "refresh", "vf": VF}])

    def test_a_runtime_that_names_no_pod_is_no_secret(self):
        daemon = self.start_daemon()
        self.works(self.cni("ADD", CNI_ARGS=None))
        self.assertEqual((daemon.heard[0]["pod"], daemon.heard[0]["uid"]), ("", ""))

    def test_the_delegates_result_is_passed_on_byte_for_byte(self):
        self.start_daemon()
        out = self.works(self.cni("ADD"))
        self.assertEqual(
            out,
            json.dumps(
                {
                    "cniVersion": "1.1.0", "interfaces": [{"name": "net1", "sandbox": self.netns}],
                    "ips": []
                }, indent=3) + "\n")

    def test_the_delegate_gets_its_object_with_the_vf_in_place_of_the_slot(self):
        self.start_daemon()
        conf = self.conf(
            delegate={"vlan": 7, "ipam": {"type": "x"}, "deviceID": "mine", "args": {"old": 1}},
            runtimeConfig={"mac": "02:00:00:00:00:01", "deviceID": SLOT},
            args={"cni": {"ips": ["10.0.0.1"]}}, prevResult={"ips": []}, capabilities={"mac": True})
        self.works(self.cni("ADD", conf))
        self.assertEqual(
            self.calls()[0]["conf"], {
                "cniVersion": "1.1.0", "name": "rail-net", "type": "movedev", "log": str(
                    self.log), "fail": {}, "vlan": 7, "ipam": {"type": "x"},
                "args": {"cni": {"ips": ["10.0.0.1"]}}, "prevResult": {"ips": []},
                "runtimeConfig": {"mac": "02:00:00:00:00:01", "deviceID": VF
                                  }, "deviceID": VF, "pciBusID": VF
            })
        self.assertEqual(self.calls()[0]["env"],
                         {k: v
                          for k, v in self.env("ADD").items()
                          if k.startswith("CNI_")})

    def test_no_network_gives_the_delegate_another_vf(self):
        self.start_daemon()
        (self.top / "host-device").symlink_to(HERE / "cni" / "movedev")

        def as_go_reads(conf, name):
            """The last key that is its name but for case; casefold() knows Kelvin signs."""
            return [value for key, value in conf.items() if key.casefold() == name.casefold()][-1:]

        mine = {"deviceID": OTHER, "DeviceId": OTHER, "CNIDeviceInfoFile": "/etc/passwd",
                "cnideviceinfofile": "/etc/passwd"}
        runtimes = [{}, {"runtimeConfig": {"mac": "02:00:00:00:00:01"}},
                    {"runtimeConfig": {"deviceID": SLOT, "DEVICEID": OTHER}},
                    {"RuntimeConfig": {"deviceID": OTHER}}]
        delegates = [{"runtimeConfig": mine}, {"RUNTIMECONFIG": mine},
                     {"runtimeconfig": mine, "runtimeConfig": mine},
                     {"DeviceID": OTHER, "PCIBUSID": OTHER, "pciBu\u017fID": OTHER},
                     {"type": "host-device", "device": "eth0", "HWaddr": "02:00:00:00:00:02",
                      "Kernelpath": "/sys/x", "\u212aernelpath": "/sys/x"}]
        for n, runtime in enumerate(runtimes):
            for k, own in enumerate(delegates):
                with self.subTest(runtime=n, own=k):
                    where = {"CNI_CONTAINERID": f"c{n}{k}"}
                    self.works(self.cni("ADD", self.conf(delegate=own, **runtime), **where))
                    self.works(self.cni("DEL", self.conf(delegate=own, **runtime), **where))
                    for call in self.calls()[-2:]:
                        conf = call["conf"]
                        for name in ("deviceID", "pciBusID"):
                            self.assertEqual(as_go_reads(conf, name), [VF])
                        for name in ("device", "hwaddr", "kernelpath"):
                            self.assertEqual(as_go_reads(conf, name), [])
                        for key, value in conf.items():
                            if key.casefold() == "runtimeconfig":
                                self.assertIn(as_go_reads(value, "deviceID"), ([], [VF]))
                                self.assertEqual(as_go_reads(value, "CNIDeviceInfoFile"), [])

    def test_another_delegate_keeps_keys_that_only_host_device_reads(self):
        self.start_daemon()
        self.works(self.cni("ADD", self.conf(delegate={"device": "eth0", "bridge": "br0"})))
        conf = self.calls()[0]["conf"]
        self.assertEqual((conf["device"], conf["bridge"]), ("eth0", "br0"))

    def test_numbers_and_escapes_of_the_delegate_stay_as_they_were_written(self):
        self.start_daemon()
        keep = '"odd": [1.50, 1e3, 12345678901234567, "\\u00e9\\/"]'
        text = json.dumps(self.conf()).replace('"fail": {}', '"fail": {}, ' + keep)
        (self.top / "echo").write_text("#!/bin/sh\ncat\n")
        (self.top / "echo").chmod(0o755)
        self.assertIn(keep.replace('"odd": ', '"odd":'),
                      self.works(self.cni("ADD", text.replace("movedev", "echo"))))

    def test_the_daemon_is_asked_about_a_pci_address_as_about_a_slot(self):
        daemon = self.start_daemon()
        for key in ("deviceID", "runtimeConfig"):
            conf = self.conf(deviceID=VF if key == "deviceID" else None,
                             runtimeConfig={"deviceID": VF})
            self.works(self.cni("ADD", conf))
            self.assertEqual(daemon.heard[-1], {"op": "bind", "slot": VF, "namespace": "team",
                                                "pod": "trainer", "uid": "u-1"})
            self.assertEqual(self.calls()[-1]["conf"]["deviceID"], VF)
            self.works(self.cni("CHECK", conf))
            self.works(self.cni("DEL", conf))
        self.assertEqual(self.commands(), ["ADD", "CHECK", "DEL"] * 2)
        self.assertEqual(self.states(), [])

    def test_the_delegate_gets_the_address_as_the_daemon_writes_it(self):
        self.start_daemon()
        self.works(self.cni("ADD", self.conf(deviceID=VF.upper())))
        self.assertEqual(self.calls()[-1]["conf"]["deviceID"], VF)

    def test_an_address_that_is_not_this_pods_reaches_no_delegate(self):
        self.fails(self.cni("ADD", self.conf(deviceID=VF)), 11, "railmated does not run")
        daemon = self.start_daemon()
        for daemon.error, code in (("EPERM", 103), ("EAGAIN", 11), ("ENOENT", 100)):
            self.fails(self.cni("ADD", self.conf(deviceID=VF)), code, f"{VF}: {daemon.error} it is")
        self.assertEqual((self.calls(), self.states()), ([], []))

    def test_without_the_daemon_one_shall_try_again_later(self):
        self.fails(self.cni("ADD"), 11, "railmated does not run", str(self.socket))
        self.assertEqual((self.calls(), self.states()), ([], []))

    def test_what_the_daemon_says_decides_about_trying_again(self):
        daemon = self.start_daemon()
        for daemon.error, code in (("EAGAIN", 11), ("EBUSY", 11), ("ETIMEDOUT", 11),
                                   ("ENOENT", 100), ("EIO", 5)):
            self.fails(self.cni("ADD"), code, f"{SLOT}: {daemon.error} it is")
        daemon.unheard = True
        self.fails(self.cni("ADD"), 11, "without an answer")
        self.assertEqual((self.calls(), self.states()), ([], []))

    def test_a_wrong_slot_is_named(self):
        self.start_daemon()
        self.fails(self.cni("ADD", self.conf(deviceID="rvf-none")), 100,
                   "there is no slot rvf-none")

    def test_a_daemon_that_forgets_the_slot_in_its_answer_is_not_believed(self):
        daemon = self.start_daemon()
        daemon.slots = {SLOT: "eth0"}
        self.fails(self.cni("ADD"), 5, SLOT)
        self.assertEqual((self.calls(), self.states()), ([], []))

    def test_a_second_add_is_refused_and_the_first_stays(self):
        self.start_daemon()
        self.works(self.cni("ADD"))
        self.fails(self.cni("ADD"), 102, CONTAINER, "net1")
        self.assertEqual(self.commands(), ["ADD"])
        self.works(self.cni("CHECK"))

    def test_of_two_adds_at_once_one_wins(self):
        self.start_daemon()
        text = json.dumps(self.conf())
        both = [
            subprocess.Popen(self.argv(), stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
                             env=self.env("ADD")) for _ in range(2)
        ]
        outs = [p.communicate(text, PATIENCE)[0] for p in both]
        self.assertEqual(sorted(p.returncode for p in both), [0, 1])
        self.assertEqual([json.loads(o).get("code") for p, o in zip(both, outs) if p.returncode],
                         [102])
        self.assertEqual(self.commands(), ["ADD"])

    def test_two_interfaces_of_one_pod_are_two_attachments(self):
        self.start_daemon()
        self.works(self.cni("ADD"))
        self.works(self.cni("ADD", self.conf(deviceID="rvf-vf-n1-0"), CNI_IFNAME="net2"))
        self.assertEqual([c["conf"]["deviceID"] for c in self.calls()], [VF, OTHER])
        self.works(self.cni("DEL", CNI_IFNAME="net2"))
        self.assertEqual(self.calls()[-1]["conf"]["deviceID"], OTHER)
        self.assertEqual(self.states(), [f"{CONTAINER}@net1"])

    def test_a_delegate_that_refuses_is_undone_and_its_words_are_ours(self):
        self.start_daemon()
        error = self.fails(self.cni("ADD", self.conf(fail={"ADD": "error"})), 121, "told to fail",
                           status=7)
        self.assertEqual(error["details"], "x")
        self.assertEqual(self.commands(), ["ADD", "DEL"])
        self.assertEqual([c["conf"]["deviceID"] for c in self.calls()], [VF, VF])
        self.assertEqual(self.states(), [])
        self.works(self.cni("ADD"))

    def test_a_delegate_that_breaks_is_undone(self):
        self.start_daemon()
        for how, words in (("killed", "Killed"), ("silent", "no result"), ("nonsense",
                                                                           "something is wrong")):
            self.fails(self.cni("ADD", self.conf(fail={"ADD": how})), 101, "movedev", words)
            self.assertEqual(self.commands()[-2:], ["ADD", "DEL"])
            self.assertEqual(self.states(), [])

    def test_what_cannot_be_undone_is_left_for_the_runtimes_del(self):
        self.start_daemon()
        done = self.cni("ADD", self.conf(fail={"ADD": "half", "DEL": "error"}))
        self.fails(done, 121, status=7)
        self.assertIn("movedev was not undone", done.stderr)
        self.assertEqual(self.states(), [f"{CONTAINER}@net1"])
        self.stop_daemon()
        self.works(self.cni("DEL"))
        self.assertEqual((self.calls()[-1]["conf"]["deviceID"], self.states()), (VF, []))

    def test_a_delegate_that_is_not_there_costs_nothing(self):
        daemon = self.start_daemon()
        for kind in ("no-such-plugin", "not-a-program"):
            (self.top / "not-a-program").touch()
            self.fails(self.cni("ADD", self.conf(delegate={"type": kind})), 101, kind,
                       str(self.top))
        self.assertEqual((daemon.heard, self.states()), ([], []))

    def test_a_state_that_cannot_be_kept_stops_it_before_the_delegate(self):
        self.start_daemon()
        self.state.touch()
        self.fails(self.cni("ADD"), 5, str(self.state))
        self.assertEqual(self.calls(), [])

    def test_one_that_is_killed_half_way_leaves_what_del_needs(self):
        self.start_daemon()
        with subprocess.Popen(self.argv(), stdin=subprocess.PIPE, env=self.env("ADD"),
                              start_new_session=True) as p:
            p.stdin.write(json.dumps(self.conf(fail={"ADD": "slow"})).encode())
            p.stdin.close()
            until(lambda: self.commands() == ["ADD"], "the delegate runs")
            os.killpg(p.pid, signal.SIGKILL)
        self.assertEqual(self.states(), [f"{CONTAINER}@net1"])
        self.works(self.cni("DEL"))
        self.assertEqual((self.commands(), self.states()), (["ADD", "DEL"], []))


class DeviceInfo(Cni):
    """Multus names the file of an attachment; so can a network."""

    def setUp(self):
        super().setUp()
        self.path = self.devinfo / f"team-rail-net-{CONTAINER}_net1"
        self.victim = self.top / "victim"
        self.victim.write_text("precious")

    def with_file(self, path=None, **conf):
        return self.conf(runtimeConfig={"CNIDeviceInfoFile": str(path or self.path)}, **conf)

    def files(self):
        return sorted(p.name for p in self.devinfo.iterdir()) if self.devinfo.exists() else []

    def test_multus_gets_the_device_info_of_the_vf(self):
        self.start_daemon().more = {"pf": PF, "rail": 3, "plane": 1}
        self.works(self.cni("ADD", self.with_file()))
        self.assertEqual(json.loads(self.path.read_text()), {
            "type": "pci", "version": "1.1.0",
            "pci": {"pci-address": VF, "pf-pci-address": PF, "rdma-device": RDMA},
            "railmate": {"rail": 3, "plane": 1}})
        self.assertEqual(stat.S_IMODE(self.path.stat().st_mode), 0o444)
        self.assertEqual(self.calls()[0]["conf"]["runtimeConfig"],
                         {"CNIDeviceInfoFile": str(self.path)})
        self.works(self.cni("DEL", self.with_file()))
        self.assertEqual(self.files(), [])
        self.fails(self.cni("ADD", self.with_file(fail={"ADD": "error"})), 121, status=7)
        self.assertEqual(self.files(), [])

    def test_a_pf_that_is_not_known_is_not_named(self):
        for more in ({}, {"pf": None}, {"pf": "eth0"}):
            self.start_daemon().more = more
            self.works(self.cni("ADD", self.with_file()))
            self.assertEqual(json.loads(self.path.read_text())["pci"],
                             {"pci-address": VF, "rdma-device": RDMA})
            self.works(self.cni("DEL", self.with_file()))
            self.stop_daemon()

    def test_del_and_gc_need_no_name_to_remove_what_add_made(self):
        self.start_daemon()
        self.works(self.cni("ADD", self.with_file()))
        self.works(self.cni("DEL"))
        self.assertEqual(self.files(), [])
        self.works(self.cni("ADD", self.with_file()))
        self.works(self.cni("GC", self.conf(**{"cni.dev/valid-attachments": []})))
        self.assertEqual((self.files(), self.states()), ([], []))

    def test_a_file_elsewhere_is_neither_made_nor_replaced(self):
        self.start_daemon()
        self.devinfo.mkdir()
        (self.devinfo / "sub").mkdir()
        (self.devinfo / "link").symlink_to(self.top)
        before = self.victim.stat().st_ino, self.victim.read_text()
        d = str(self.devinfo)
        for path in (str(self.victim), "/proc/nowhere/x", f"{d}/../victim", f"{d}/link/victim",
                     f"{d}/sub/new", f"{d}/./new", f"{d}//new", f"{d}-evil/new", f"{d}/", d,
                     f"{d}/.new", f"{d}/..", "new", "", f"{d}/a\nb", f"{d}/{'x' * 256}"):
            with self.subTest(path):
                done = self.cni("ADD", self.conf(runtimeConfig={"CNIDeviceInfoFile": path}))
                self.assertEqual(done.returncode, 0, done)
                self.assertEqual("no device-info file is written" in done.stderr, bool(path))
                self.assertEqual(done.stderr.count("\n"), bool(path))
                self.assertEqual(self.calls()[-1]["conf"]["runtimeConfig"], {})
                self.assertEqual(self.cni("DEL", self.with_file(path)).returncode, 0)
        self.assertEqual((self.victim.stat().st_ino, self.victim.read_text()), before)
        self.assertEqual(self.files(), ["link", "sub"])
        self.assertEqual(list((self.devinfo / "sub").iterdir()), [])
        self.assertFalse((self.top / "devinfo-evil").exists())

    def test_nothing_is_removed_that_add_did_not_make(self):
        for path in (self.victim, self.devinfo / "of-another-pod"):
            path.parent.mkdir(exist_ok=True)
            path.write_text("precious")
            self.works(self.cni("DEL", self.with_file(path, deviceID="0000:00:00.0")))
            self.works(self.cni("DEL", self.with_file(path)))
            self.assertEqual(path.read_text(), "precious")
        self.start_daemon()
        done = self.cni("ADD", self.with_file(path))
        self.assertEqual(done.returncode, 0, done)
        self.assertIn("File exists", done.stderr)
        self.works(self.cni("DEL", self.with_file(path)))
        self.assertEqual((path.read_text(), self.files()), ("precious", ["of-another-pod"]))

    def test_a_link_in_the_files_place_is_not_followed(self):
        self.start_daemon()
        self.devinfo.mkdir()
        for target in (self.victim, self.top / "new"):
            self.path.symlink_to(target)
            self.assertEqual(self.cni("ADD", self.with_file()).returncode, 0)
            self.works(self.cni("DEL", self.with_file()))
            self.assertTrue(self.path.is_symlink())
            self.path.unlink()
        self.assertEqual(self.victim.read_text(), "precious")
        self.assertFalse((self.top / "new").exists())

    def test_a_second_add_leaves_the_file_of_the_first(self):
        self.start_daemon()
        self.works(self.cni("ADD", self.with_file()))
        self.fails(self.cni("ADD", self.with_file()), 102)
        self.assertEqual(self.files(), [self.path.name])
        self.fails(self.cni("ADD", self.with_file(self.devinfo / "other")), 102)
        self.assertEqual(self.files(), [self.path.name])

    def test_a_state_does_not_name_a_file_elsewhere(self):
        self.start_daemon()
        state = self.state / f"{CONTAINER}@net1"
        for command in ("DEL", "GC"):
            self.works(self.cni("ADD", self.with_file()))
            changed = {**json.loads(state.read_text()), "devinfo": f"{self.devinfo}/../victim"}
            state.write_text(json.dumps(changed))
            self.works(self.cni(command, self.conf(**{"cni.dev/valid-attachments": []})))
            self.path.unlink()
        self.assertEqual(self.victim.read_text(), "precious")

    def test_one_that_cannot_be_written_does_not_stop_the_pod(self):
        self.start_daemon()
        self.devinfo.touch()
        done = self.cni("ADD", self.with_file())
        self.assertEqual(done.returncode, 0)
        self.assertIn(str(self.devinfo), done.stderr)
        self.works(self.cni("DEL", self.with_file()))
        self.devinfo.unlink()
        self.devinfo.mkdir()
        self.devinfo.chmod(0o777)
        done = self.cni("ADD", self.with_file())
        self.assertEqual((done.returncode, self.files()), (0, []))
        self.assertIn("not trusted", done.stderr)

    @unittest.skipUnless(os.geteuid() == 0, "needs root")
    def test_the_directory_as_multus_makes_it_is_used(self):
        self.start_daemon()
        self.devinfo.mkdir()
        self.devinfo.chmod(0)  # os.MkdirAll(dir, os.ModeDir)
        self.works(self.cni("ADD", self.with_file()))
        self.works(self.cni("DEL", self.with_file()))

    @unittest.skipUnless(os.geteuid() == 0 and os.path.realpath("/var/run") == "/run",
                         "needs root, and /var/run as everywhere")
    def test_run_and_var_run_are_the_same(self):
        self.start_daemon()
        with tempfile.TemporaryDirectory(prefix="railmate-cni-", dir="/run") as folder:
            for configured in ("", "/var"):
                self.devinfo = pathlib.Path(f"{configured}{folder}/cni/")
                self.put_settings()
                for named in ("", "/var"):
                    path = pathlib.Path(f"{named}{folder}/cni/x")
                    self.works(self.cni("ADD", self.with_file(path)))
                    self.assertTrue(path.exists())
                    self.works(self.cni("DEL"))
                    self.assertFalse(path.exists())


@unittest.skipUnless(has_namespaces(), "needs root, ip(8) and network namespaces")
class Moving(Cni):
    """A pair of interfaces stands for a VF and the wire behind it."""

    def setUp(self):
        super().setUp()
        self.host, self.pod = Netns(), Netns()
        self.addCleanup(self.host.end)
        self.addCleanup(self.pod.end)
        self.netns = self.pod.path
        self.host.ip("link", "add", "vf0", "type", "veth", "peer", "name", "wire")
        self.start_daemon()

    def conf(self, fail=None, delegate=None, **more):
        return super().conf(fail, {"devices": {VF: "vf0"}, **(delegate or {})}, **more)

    def test_the_vfs_interface_moves_into_the_pod_and_back(self):
        self.works(self.cni("ADD"))
        self.assertEqual((self.host.links(), self.pod.links()), ({"wire"}, {"net1"}))
        self.works(self.cni("CHECK"))
        self.stop_daemon()
        self.works(self.cni("DEL"))
        self.assertEqual((self.host.links(), self.pod.links()), ({"wire", "vf0"}, set()))

    def test_a_delegate_that_fails_half_way_is_undone(self):
        for how, code, status in (("half", 121, 7), ("killed", 101, 1)):
            self.fails(self.cni("ADD", self.conf(fail={"ADD": how})), code, status=status)
            self.assertEqual((self.host.links(), self.pod.links()), ({"wire", "vf0"}, set()))
            self.assertEqual(self.states(), [])

    def test_a_pod_that_is_gone_already_is_no_obstacle(self):
        self.works(self.cni("ADD"))
        self.pod.end()
        self.works(self.cni("DEL"))
        self.assertEqual(self.states(), [])


class Del(Cni):
    def test_it_works_without_the_daemon_and_without_the_namespace(self):
        self.start_daemon()
        self.works(self.cni("ADD"))
        self.stop_daemon()
        self.assertEqual(self.works(self.cni("DEL", CNI_NETNS=None)), "")
        self.assertEqual(self.calls()[-1]["conf"]["deviceID"], VF)
        self.assertNotIn("CNI_NETNS", self.calls()[-1]["env"])
        self.assertEqual(self.states(), [])

    def test_del_without_add_is_done_at_once(self):
        self.assertEqual(self.works(self.cni("DEL")), "")
        self.assertEqual(self.works(self.cni("DEL", self.conf(deviceID=None))), "")
        self.assertEqual(self.calls(), [])

    def test_del_twice_is_done_once(self):
        self.start_daemon()
        self.works(self.cni("ADD"))
        self.works(self.cni("DEL"))
        self.works(self.cni("DEL"))
        self.assertEqual(self.commands(), ["ADD", "DEL"])

    def test_a_delegate_that_refuses_is_asked_again(self):
        self.start_daemon()
        self.works(self.cni("ADD"))
        self.fails(self.cni("DEL", self.conf(fail={"DEL": "error"})), 121, status=7)
        self.works(self.cni("DEL"))
        self.assertEqual(self.commands(), ["ADD", "DEL", "DEL"])

    def test_the_slot_need_not_be_named_again(self):
        self.start_daemon()
        self.works(self.cni("ADD"))
        self.works(self.cni("DEL", self.conf(deviceID=None, pciBusID=None)))
        self.assertEqual(self.calls()[-1]["conf"]["deviceID"], VF)

    def test_a_state_that_is_not_ours_is_named(self):
        self.state.mkdir(0o700)
        path = self.state / f"{CONTAINER}@net1"
        for text in ("", "{", '{"railmate": "cni", "version": 2}',
                     '{"railmate": "cni", "version": 1, "vf": "x"}'):
            path.write_text(text)
            self.fails(self.cni("DEL"), 5, str(path))
        self.assertEqual(self.calls(), [])

    def test_a_state_that_another_can_have_written_is_not_trusted(self):
        self.start_daemon()
        self.works(self.cni("ADD"))
        path = self.state / f"{CONTAINER}@net1"
        for mode in (0o620, 0o602):
            path.chmod(mode)
            self.fails(self.cni("DEL"), 5, str(path), "not trusted")
        path.chmod(0o600)
        path.rename(self.top / "real")
        path.symlink_to(self.top / "real")
        self.fails(self.cni("DEL"), 5, str(path), "symbolic link")
        path.unlink()
        os.mkfifo(path)
        self.fails(self.cni("DEL"), 5, str(path), "not a regular file")
        self.assertEqual(self.commands(), ["ADD"])

    @unittest.skipUnless(os.geteuid() == 0, "needs root")
    def test_a_state_of_another_user_is_not_trusted(self):
        self.start_daemon()
        self.works(self.cni("ADD"))
        path = self.state / f"{CONTAINER}@net1"
        for owned in (path, self.state):
            os.chown(owned, 65534, 65534)
            self.fails(self.cni("DEL"), 5, str(owned), "65534")
            os.chown(owned, 0, 0)
        self.works(self.cni("DEL"))

    def test_a_state_directory_that_others_may_write_is_not_trusted(self):
        self.start_daemon()
        self.state.mkdir()
        self.state.chmod(0o777)
        self.fails(self.cni("ADD"), 5, str(self.state), "not trusted", "chmod go-w")
        self.fails(self.cni("DEL"), 5, str(self.state), "not trusted")
        self.assertEqual((self.calls(), self.states()), ([], []))
        self.state.chmod(0o755)
        self.works(self.cni("ADD"))

    def test_a_state_cut_anywhere_is_never_taken_for_whole(self):
        self.start_daemon()
        self.works(self.cni("ADD"))
        path = self.state / f"{CONTAINER}@net1"
        whole = path.read_bytes()
        for size in range(0, len(whole) - 1, 41):
            path.write_bytes(whole[:size])
            self.fails(self.cni("DEL"), 5, str(path))
        self.assertEqual(self.commands(), ["ADD"])

    def test_a_vf_that_another_pod_holds_by_now_is_left_alone(self):
        daemon = self.start_daemon()
        self.works(self.cni("ADD"))
        daemon.whose = "EPERM"
        done = self.cni("DEL")
        self.assertEqual((done.returncode, done.stdout), (0, ""))
        self.assertIn(f"{VF}: EPERM it is", done.stderr)
        self.assertEqual((self.commands(), self.states()), (["ADD"], []))
        self.assertEqual(daemon.heard[-1], {"op": "whose", "vf": VF, "namespace": "team",
                                            "pod": "trainer", "uid": "u-1"})

    def test_any_other_answer_does_not_hold_it_up(self):
        daemon = self.start_daemon()
        for daemon.whose in ("ENOENT", "EAGAIN", "ENOSYS", "EIO"):
            self.works(self.cni("ADD"))
            self.works(self.cni("DEL"))
        self.assertEqual(self.commands(), ["ADD", "DEL"] * 4)


class Check(Cni):
    def test_an_attachment_is_checked_by_the_delegate(self):
        self.start_daemon()
        self.works(self.cni("ADD"))
        self.stop_daemon()
        self.assertEqual(self.works(self.cni("CHECK")), "")
        self.assertEqual(self.calls()[-1]["conf"]["deviceID"], VF)
        self.fails(self.cni("CHECK", self.conf(fail={"CHECK": "error"})), 121, status=7)

    def test_one_that_is_not_there_is_said_to_be_unknown(self):
        self.fails(self.cni("CHECK"), 3, CONTAINER, "net1")
        self.assertEqual(self.calls(), [])



class Gc(Cni):
    def add(self, container, ifname="net1", **conf):
        self.works(self.cni("ADD", self.conf(**conf), CNI_CONTAINERID=container, CNI_IFNAME=ifname))

    def gc(self, *valid, path=f"{HERE / 'cni'}", **conf):
        valid = [{"containerID": c, "ifname": i} for c, i in valid]
        return self.cni(
            "GC",
            self.conf(deviceID=None, pciBusID=None, **{"cni.dev/valid-attachments": valid, **conf}),
            CNI_PATH=path, CNI_CONTAINERID=None, CNI_NETNS=None, CNI_IFNAME=None, CNI_ARGS=None)

    def setUp(self):
        super().setUp()
        self.start_daemon()
        self.add("live")
        self.add("live", "net2")
        self.add("dead", delegate={"vlan": 9})
        self.add("other", name="another-net")
        self.stop_daemon()
        self.log.unlink()

    def test_dead_attachments_are_taken_down_as_del_would(self):
        self.assertEqual(self.works(self.gc(("live", "net1"), ("live", "net2"))), "")
        self.assertEqual(self.states(), ["live@net1", "live@net2", "other@net1"])
        down, gc = self.calls()
        self.assertEqual((down["env"]["CNI_COMMAND"], down["env"]["CNI_CONTAINERID"],
                          down["env"]["CNI_IFNAME"], down["env"]["CNI_ARGS"]),
                         ("DEL", "dead", "net1", ARGS))
        self.assertEqual((down["conf"]["deviceID"], down["conf"]["vlan"]), (VF, 9))
        self.assertEqual((gc["env"]["CNI_COMMAND"], len(gc["conf"]["cni.dev/valid-attachments"])),
                         ("GC", 2))
        self.assertNotIn("deviceID", gc["conf"])

    def test_the_name_of_the_interface_counts(self):
        self.works(self.gc(("live", "net2"), ("dead", "net1")))
        self.assertEqual(self.states(), ["dead@net1", "live@net2", "other@net1"])

    def test_without_the_list_nothing_is_taken_down(self):
        for value in (None, {}, "all"):
            self.fails(self.gc(**{"cni.dev/valid-attachments": value}), 7,
                       "cni.dev/valid-attachments")
        self.assertEqual((len(self.states()), self.calls()), (4, []))

    def test_a_vf_that_another_pod_holds_by_now_is_left_alone(self):
        self.start_daemon().whose = "EPERM"
        done = self.gc(("live", "net1"), ("live", "net2"))
        self.assertEqual((done.returncode, self.commands()), (0, ["GC"]), done)
        self.assertEqual(self.states(), ["live@net1", "live@net2", "other@net1"])

    def test_one_that_cannot_be_taken_down_stays_and_the_others_go(self):
        path = self.state / "dead@net1"
        path.write_text(path.read_text().replace('"fail":{}', '"fail":{"DEL":"error"}').replace(
            '"fail": {}', '"fail":{"DEL":"error"}'))
        self.fails(self.gc(), 101, "dead", "told to fail")
        self.assertEqual(self.states(), ["dead@net1", "other@net1"])

    def test_a_foreign_file_is_named_and_the_others_go(self):
        (self.state / "junk@net1").write_text("junk")
        (self.state / "README").write_text("not ours at all")
        self.fails(self.gc(), 5, "junk@net1")
        self.assertEqual(self.states(), ["README", "junk@net1", "other@net1"])

    def test_temporary_files_of_killed_ones_go_when_they_are_old(self):
        young, old = self.state / ".x@net1.7", self.state / ".x@net1.8"
        young.touch()
        old.touch()
        os.utime(old, (1, 1))
        self.works(self.gc(("live", "net1"), ("live", "net2"), ("dead", "net1")))
        self.assertEqual((young.exists(), old.exists()), (True, False))

    def test_what_the_delegate_says_about_gc_is_passed_on(self):
        self.fails(self.gc(("live", "net1"), ("live", "net2"), ("dead", "net1"),
                           delegate={"fail": {"GC": "error"}}), 121, status=7)

    def test_a_state_does_not_name_a_program_by_a_path(self):
        evil, mark = self.top / "evil", self.top / "mark"
        evil.write_text(f"#!/bin/sh\ntouch {mark}\n")
        evil.chmod(0o755)
        (self.top / "bin").mkdir()
        (self.top / ".hidden").symlink_to(evil)
        dead = self.state / "dead@net1"
        whole = json.loads(dead.read_text())
        path = f"{self.top / 'bin'}:{self.top}:{HERE / 'cni'}"
        for change in ({"type": "../evil"}, {"type": str(evil)}, {"type": ".hidden"}, {"type": ""},
                       {"vf": "eth0"}):
            dead.write_text(json.dumps({**whole, **change}))
            self.fails(self.gc(path=path), 5, str(dead), "remove it by hand")
            self.assertFalse(mark.exists())
        self.assertEqual(self.states(), ["dead@net1", "other@net1"])

    def test_a_state_that_another_can_have_written_is_named_and_the_others_go(self):
        (self.state / "dead@net1").rename(self.top / "real")
        (self.state / "dead@net1").symlink_to(self.top / "real")
        self.fails(self.gc(), 5, "dead@net1", "symbolic link")
        self.assertEqual(self.states(), ["dead@net1", "other@net1"])
        self.state.chmod(0o777)
        self.fails(self.gc(), 5, str(self.state), "not trusted")

    def test_nothing_was_ever_attached(self):
        self.state = self.top / "never"
        self.put_settings()
        self.works(self.gc())


class Status(Cni):
    def status(self, **conf):
        return self.cni("STATUS", self.conf(deviceID=None, pciBusID=None, **conf),
                        CNI_CONTAINERID=None, CNI_NETNS=None, CNI_IFNAME=None, CNI_ARGS=None)

    def answered(self, **conf):
        """It waits two seconds for the daemon: a machine that is so busy is asked again."""
        done = self.status(**conf)
        return self.status(**conf) if '"code":50' in done.stdout.replace(" ", "") else done

    def test_ready_when_daemon_and_delegate_are(self):
        daemon = self.start_daemon()
        self.assertEqual(self.works(self.answered()), "")
        self.assertEqual((daemon.heard[-1], self.commands()), ({"op": "status"}, ["STATUS"]))

    def test_not_available_without_the_daemon(self):
        self.fails(self.status(), 50, "railmated does not run")

    def test_what_the_delegate_says_is_passed_on(self):
        self.start_daemon()
        self.fails(self.answered(fail={"STATUS": "error"}), 121, status=7)


class Node(Case):
    """With railmated itself, the fake kubelet and a pool."""
    binding, kubelet_options = "late", ()

    def setUp(self):
        self.n, self.uids = self.node(), {}
        self.cdi, self.log = pathlib.Path(self.n.path("cdi")), pathlib.Path(self.n.path("log"))
        self.cdi.mkdir()
        pathlib.Path(self.n.path("config.json")).write_text(json.dumps({
            "resourceList": [{
                "resourcePrefix": "rdma", "resourceName": "vf", "selectors": {"isRdma": True},
                "railmate": {"binding": self.binding}}]}))
        pathlib.Path(self.n.path("cni.json")).write_text(json.dumps({
            "controlSocket": self.n.control_socket, "stateDir": self.n.path("cni"),
            "deviceInfoDir": self.n.path("devinfo-cni")}))
        self.options = ("--config-file", self.n.path("config.json"), "--cdi-dir", str(self.cdi),
                        "--cdi", "on")
        self.kubelet, self.daemon = self.n.start(*self.kubelet_options, daemon=self.options)

    def admit(self, pod, n, container="main"):
        admission = self.kubelet.admit(pod, f"{container}:{GPU}={n},{RESOURCE}={n}")
        self.uids[pod] = admission["uid"]
        return sorted(vfs_of(admission))

    def args(self, pod, uid=True, ns="default"):
        more = f";K8S_POD_UID={self.uids.get(pod, 'u-none') if uid is True else uid}" if uid else ""
        return f"IgnoreUnknown=1;K8S_POD_NAMESPACE={ns};K8S_POD_NAME={pod}{more}"

    def start_cni(self, command, pod, slot, number=0, fail=None, args=None, **more):
        conf = {"cniVersion": "1.0.0", "name": "rail-net", "type": "railmate-cni", "deviceID": slot,
                "delegate": {"type": "movedev", "log": str(self.log), "fail": fail or {}}, **more}
        env = {
            "PATH": os.environ["PATH"], "CNI_COMMAND": command, "CNI_CONTAINERID": f"c-{pod}",
            "CNI_NETNS": "/proc/self/ns/net", "CNI_IFNAME": f"net{number}",
            "CNI_PATH": str(HERE / "cni"), "RAILMATE_CNI_CONFIG": self.n.path("cni.json"),
            "CNI_ARGS": self.args(pod) if args is None else args
        }
        child = subprocess.Popen([program("railmate_cni")], stdin=subprocess.PIPE,
                                 stdout=subprocess.PIPE, text=True, env=env)
        child.stdin.write(json.dumps(conf))
        child.stdin.close()
        return child

    def end_cni(self, child):
        with child:
            out = child.stdout.read()
        return child.returncode, json.loads(out) if out else None

    def cni(self, *argv, **kw):
        return self.end_cni(self.start_cni(*argv, **kw))

    def add_all(self, pod, slots):
        for number, slot in enumerate(slots):
            self.assertEqual(self.cni("ADD", pod, slot, number)[0], 0)

    def attached(self, pod):
        """Interface → VF, by what the delegate was given."""
        calls = [json.loads(line) for line in self.log.read_text().splitlines()]
        return {c["env"]["CNI_IFNAME"]: c["conf"]["deviceID"] for c in calls
                if c["env"]["CNI_CONTAINERID"] == f"c-{pod}" and c["env"]["CNI_COMMAND"] == "ADD"}

    def injected(self, slots):
        """VFs of the container by its CDI specs."""
        (path,) = [p for p in self.cdi.iterdir() if p.name.endswith(f"_{min(slots)}.json")]
        spec = json.loads(path.read_text())
        self.assertEqual([d["name"] for d in spec["devices"]], sorted(slots))
        return set(
            dict(e.split("=", 1)
                 for e in spec["containerEdits"]["env"])["PCIDEVICE_RDMA_VF"].split(","))

    def prestart(self, pod):
        for call in self.kubelet.ask(f"prestart {pod}")["calls"]:
            self.assertEqual((call["status"], call["message"]), ("OK", ""))



class Together(Node):
    """Pods whose network comes by slots."""

    def test_the_network_comes_first_and_the_container_gets_the_same_vfs(self):
        slots = self.admit("p", 2)
        self.add_all("p", slots)
        self.prestart("p")
        self.assertEqual(set(self.attached("p").values()), self.injected(slots))

    def test_the_device_info_is_what_early_binding_writes(self):
        path = pathlib.Path(self.n.path("devinfo-cni"), "x")
        (slot,) = self.admit("p", 1)
        runtime = {"CNIDeviceInfoFile": str(path)}
        self.assertEqual(self.cni("ADD", "p", slot, runtimeConfig=runtime)[0], 0)
        early = self.node()
        early.start()
        other = pathlib.Path(early.devinfo, f"rdma-vf-{self.attached('p')['net0']}-device.json")
        until(other.exists, "the file of the same VF, bound early")
        self.assertEqual(path.read_text(), other.read_text())
        bound = json.loads(path.read_text())
        self.assertEqual((set(bound["railmate"]), "pf-pci-address" in bound["pci"]),
                         ({"rail"}, True))

    def test_the_container_starts_first_and_the_network_gets_the_same_vfs(self):
        slots = self.admit("p", 2)
        self.prestart("p")
        injected = self.injected(slots)
        self.add_all("p", slots)
        self.assertEqual((set(self.attached("p").values()), self.injected(slots)),
                         (injected, injected))

    def test_both_at_once_agree(self):
        slots = self.admit("p", 2)
        line = self.kubelet.send("prestart p")
        children = [self.start_cni("ADD", "p", slot, i) for i, slot in enumerate(slots)]
        self.assertEqual([self.end_cni(c)[0] for c in children], [0, 0])
        self.assertEqual([c["status"] for c in self.kubelet.answer(line)["calls"]], ["OK"])
        self.assertEqual(set(self.attached("p").values()), self.injected(slots))

    def test_a_daemon_that_was_killed_in_between_knows_what_the_network_has(self):
        slots = self.admit("p", 2)
        self.add_all("p", slots)
        self.daemon.end(signal.SIGKILL)
        self.assertEqual(self.cni("ADD", "p", slots[0], 7)[1]["code"], 11)
        self.kubelet.wait(RESOURCE, "=0")
        self.n.start_daemon(*self.options)
        self.kubelet.wait(RESOURCE, 1)
        self.prestart("p")
        self.assertEqual(set(self.attached("p").values()), self.injected(slots))

    def test_many_pods_at_once_get_a_vf_each(self):
        slots = {f"p{i}": self.admit(f"p{i}", 1) for i in range(8)}
        children = [self.start_cni("ADD", pod, slot) for pod, (slot,) in slots.items()]
        self.assertEqual({self.end_cni(c)[0] for c in children}, {0})
        self.assertEqual(len({self.attached(pod)["net0"] for pod in slots}), 8)

    def test_a_network_that_failed_gets_the_same_vf_when_it_is_tried_again(self):
        (slot,) = self.admit("p", 1)
        self.assertEqual(self.cni("ADD", "p", slot, fail={"ADD": "error"})[0], 7)
        first = self.attached("p")
        self.assertEqual(self.cni("ADD", "p", slot)[0], 0)
        self.assertEqual(self.attached("p"), first)

    def test_a_pod_cannot_have_the_slot_of_another_one(self):
        (slot,) = self.admit("p", 1)
        self.admit("thief", 1)
        code, error = self.cni("ADD", "thief", slot)
        self.assertEqual((code, error["code"]), (1, 11))
        self.assertIn(slot, error["msg"])
        self.assertFalse(self.log.exists())

    def test_a_slot_without_a_pod_or_of_another_uid_is_nobodys(self):
        (slot,) = self.admit("p", 1)
        self.admit("thief", 1)
        for args, code in (("", 103), ("K8S_POD_UID=" + self.uids["p"], 103),
                           (self.args("p", None, "other"), 11), (self.args("thief", None), 11),
                           (self.args("p", self.uids["thief"]), 11)):
            got, error = self.cni("ADD", "thief", slot, args=args)
            self.assertEqual((got, error.get("code")), (1, code), args)
            self.assertIn(slot, error["msg"])
        self.assertFalse(self.log.exists())
        self.assertEqual(self.cni("ADD", "p", slot, args=self.args("p", None))[0], 0)

    def test_the_slot_of_an_init_container_is_its_pods_by_uid_only(self):
        (slot,) = self.admit("p", 1, "init:main")
        self.admit("thief", 1)
        for args in (self.args("thief"), self.args("thief", None), self.args("p", None)):
            self.assertEqual(self.cni("ADD", "thief", slot, args=args)[1]["code"], 11, args)
        self.assertFalse(self.log.exists())
        self.assertEqual(self.cni("ADD", "p", slot)[0], 0)

    def test_slots_that_are_none_are_named(self):
        for slot in ("other_pool-n0-1", "mlx5_core.sf.4", "x" * 300):
            code, error = self.cni("ADD", "p", slot)
            self.assertEqual((code, error["code"]), (1, 100), slot)
            self.assertIn(slot[:60], error["msg"])

    def test_explain_tells_what_the_network_made_the_daemon_choose(self):
        slots = self.admit("p", 2)
        self.add_all("p", slots)
        told = subprocess.run([
            program("railmatectl"), "explain", "pod", "default/p", "--control-socket",
            self.n.control_socket
        ], capture_output=True, text=True, timeout=PATIENCE, check=True).stdout
        for text in (*slots, *self.attached("p").values(), "late binding",
                     "Each GPU has a VF behind its own PCIe switch."):
            self.assertIn(text, told)


class Named(Node):
    """Pods of a pool that binds early, whose networks name a PCI address."""
    binding = "early"

    def refused(self, pod, vf, code, *words, **kw):
        got, error = self.cni("ADD", pod, vf, **kw)
        self.assertEqual((got, error["code"]), (1, code), error)
        for word in words:
            self.assertIn(word, error["msg"])
        self.assertFalse(self.log.exists())

    def test_a_pod_gets_its_own_vfs_however_they_are_written(self):
        vfs = self.admit("p", 2)
        self.assertEqual(self.cni("ADD", "p", vfs[0].upper(), 0)[0], 0)
        self.assertEqual(self.cni("ADD", "p", vfs[1], 1, args=self.args("p", None))[0], 0)
        self.assertEqual(self.attached("p"), {"net0": vfs[0], "net1": vfs[1]})
        self.prestart("p")
        self.assertEqual(self.cni("CHECK", "p", vfs[0], 0)[0], 0)
        self.assertEqual(self.cni("DEL", "p", vfs[0], 0)[0], 0)
        self.assertEqual(self.cni("ADD", "p", vfs[0], 0)[0], 0)

    def test_another_pods_vf_is_refused(self):
        (vf,) = self.admit("p", 1)
        self.admit("thief", 1)
        for start in (False, True):
            for spelled in (vf, vf.upper()):
                self.refused("thief", spelled, 103, vf, "thief")
            self.refused("thief", vf, 103, vf, args=self.args("thief", None))
            self.refused("thief", vf, 103, vf, args=self.args("p", None, "other"))
            self.refused("thief", vf, 103, vf, args=self.args("p", self.uids["thief"]))
            self.refused("thief", vf, 103, "names no pod", args="")
            if not start:
                self.prestart("p")

    def test_an_address_in_runtime_config_is_refused_as_well(self):
        (vf,) = self.admit("p", 1)
        self.admit("thief", 1)
        self.refused("thief", None, 103, vf, runtimeConfig={"deviceID": vf})

    def test_what_no_pod_was_given_is_refused(self):
        (vf,) = self.admit("p", 1)
        free = next(d["id"] for d in self.kubelet.resource(RESOURCE)["devices"]
                    if d["id"] != vf and not d["id"].endswith(".0"))
        self.refused("p", free, 103, free, "is given to no container")
        self.refused("p", "ffff:00:00.0", 103, "ffff:00:00.0", "in no pool of railmate")

    def test_a_pf_is_refused(self):
        (vf,) = self.admit("p", 1)
        self.refused("p", vf[:-1] + "0", 103, vf[:-1] + "0", "PF")

    def test_an_init_container_gets_its_vf_by_the_uid_of_its_pod(self):
        (vf,) = self.admit("p", 1, "init:main")
        self.admit("thief", 1)
        self.refused("thief", vf, 103, vf)
        self.refused("p", vf, 103, vf, args=self.args("p", None))
        self.assertEqual(self.cni("ADD", "p", vf)[0], 0)

    def test_a_pod_of_the_same_name_is_another_one(self):
        (vf,) = self.admit("p", 1)
        self.prestart("p")
        self.refused("p", vf, 103, vf, args=self.args("p", "5ff2-of-the-pod-before"))

    def test_without_the_daemon_one_shall_try_again_and_del_works(self):
        first, second = self.admit("p", 2)
        self.assertEqual(self.cni("ADD", "p", first)[0], 0)
        self.daemon.end(signal.SIGTERM)
        self.assertEqual(self.cni("ADD", "p", second, 1)[1]["code"], 11)
        self.assertEqual(self.cni("DEL", "p", first)[0], 0)
        self.assertEqual(self.cni("DEL", "p", second, 1)[0], 0)
        calls = [json.loads(line)["conf"]["deviceID"] for line in self.log.read_text().splitlines()]
        self.assertEqual(calls, [first, first])

    def test_a_daemon_that_restarted_knows_whose_it_is(self):
        (vf,) = self.admit("p", 1)
        self.admit("thief", 1)
        self.prestart("p")
        self.daemon.end(signal.SIGKILL)
        self.kubelet.wait(RESOURCE, "=0")
        self.n.start_daemon(*self.options)
        self.kubelet.wait(RESOURCE, 1)
        self.refused("thief", vf, 103, vf)
        self.assertEqual(self.cni("ADD", "p", vf)[0], 0)


class Paths(Cni):
    """The author of a NetworkAttachmentDefinition may be a tenant; the plugin runs as root."""

    def untouched(self):
        """Everything below the test's directory, but for the log."""
        return {str(p): p.read_bytes() if p.is_file() else None for p in self.top.rglob("*")
                if p not in (self.log, self.socket)}

    def test_a_network_cannot_name_the_socket_and_the_state(self):
        self.start_daemon()
        other = Railmated(self.top / "evil.sock")
        self.addCleanup(other.stop)
        before = self.untouched()
        for key, name in (("controlSocket", "evil.sock"), ("stateDir", "deep/er")):
            done = self.cni("ADD", self.conf(**{key: str(self.top / name)}))
            self.fails(done, 7, "rail-net", key, str(self.settings))
        self.assertEqual(self.untouched(), before)
        self.assertEqual((other.heard, self.daemon.heard, self.calls()), ([], [], []))

    def test_what_a_network_named_is_warned_of_and_does_not_hold_up_the_end_of_a_pod(self):
        self.start_daemon()
        self.works(self.cni("ADD"))
        conf = self.conf(stateDir=str(self.top / "deep"))
        for command in ("CHECK", "DEL"):
            done = self.cni(command, conf)
            self.assertEqual(done.returncode, 0, done)
            self.assertIn("stateDir", done.stderr)
        self.assertEqual((self.commands(), self.states()), (["ADD", "CHECK", "DEL"], []))
        self.assertFalse((self.top / "deep").exists())

    def test_a_network_that_names_what_the_node_has_works(self):
        self.start_daemon()
        conf = self.conf(stateDir=str(self.state), controlSocket=str(self.socket))
        self.works(self.cni("ADD", conf))

    def test_gc_looks_at_the_nodes_state_and_not_at_the_networks(self):
        evil, mark = self.top / "evil", self.top / "mark"
        evil.write_text(f"#!/bin/sh\ntouch {mark}\necho '{{}}'\n")
        evil.chmod(0o755)
        (self.top / "bin").mkdir()
        (self.top / "st2").mkdir()
        state = self.top / "st2" / "abc@net1"
        state.write_text(
            json.dumps({
                "railmate": "cni", "version": 1, "network": "rail-net", "slot": "s", "vf": VF,
                "args": "", "type": "../evil", "conf": {}
            }))
        conf = self.conf(stateDir=str(state.parent), **{"cni.dev/valid-attachments": []})
        done = self.cni("GC", conf, CNI_PATH=f"{self.top / 'bin'}:{HERE / 'cni'}")
        self.assertEqual(done.returncode, 0, done)
        self.assertFalse(mark.exists())
        self.assertTrue(state.exists())

    def test_bad_settings_stop_everything_with_a_sentence(self):
        self.start_daemon()
        cases = [("", "empty"), ("[]", "not an object"), ("{", "not JSON"),
                 ('{"stateDir": "x"}', "absolute"), ('{"stateDir": "/"}', "absolute"),
                 ('{"stateDir": 7}', "stateDir"), ('{"stateDir": ""}', "stateDir"),
                 ('{"statedir": "/x"}', "statedir"), ('{\n"deviceInfoDir": []}', ":2:")]
        for text, word in cases:
            self.settings.write_text(text)
            for command in ("ADD", "CHECK", "DEL"):
                self.fails(self.cni(command), 5, str(self.settings), word)
        self.assertEqual((self.calls(), self.states(), self.daemon.heard), ([], [], []))

    def test_settings_that_another_can_have_written_are_not_trusted(self):
        self.start_daemon()
        for mode in (0o666, 0o620, 0o602):
            self.settings.chmod(mode)
            self.fails(self.cni("ADD"), 5, str(self.settings), "not trusted")
        self.settings.chmod(0o644)
        real = self.settings.rename(self.top / "real.json")
        self.settings.symlink_to(real)
        self.fails(self.cni("ADD"), 5, str(self.settings), "symbolic link")
        self.settings.unlink()
        self.fails(self.cni("ADD"), 5, str(self.settings), "No such file")
        os.mkfifo(self.settings)
        self.fails(self.cni("ADD"), 5, str(self.settings), "not a regular file")
        self.assertEqual(self.calls(), [])

    @unittest.skipUnless(os.geteuid() == 0, "needs root")
    def test_settings_of_another_user_are_not_trusted(self):
        self.start_daemon()
        os.chown(self.settings, 65534, 65534)
        self.fails(self.cni("ADD"), 5, str(self.settings), "65534")


class Input(Cni):
    def test_version_tells_the_versions(self):
        for text, version in (('{"cniVersion": "0.4.0"}', "0.4.0"), ("", "1.1.0")):
            told = json.loads(
                self.works(
                    subprocess.run(self.argv(), input=text, capture_output=True, text=True,
                                   env={"CNI_COMMAND": "VERSION"}, timeout=PATIENCE, check=False)))
            self.assertEqual(
                told, {
                    "cniVersion": version,
                    "supportedVersions": ["0.3.0", "0.3.1", "0.4.0", "1.0.0", "1.1.0"]
                })

    def test_old_configurations_are_served(self):
        self.start_daemon()
        for n, version in enumerate(("0.3.1", "0.4.0", "1.0.0")):
            out = self.works(self.cni("ADD", self.conf(cniVersion=version),
                                      CNI_CONTAINERID=f"c{n}"))
            self.assertEqual(json.loads(out)["cniVersion"], version)

    def test_bad_configurations_are_refused_with_a_sentence(self):
        cases = [
            ("", 6, "empty"),
            ("{", 6, "not JSON"),
            ("[]", 6, "not an object"),
            ("x" * (5 << 20), 6, "larger than"),
            ({"cniVersion": "9.0.0"}, 1, "9.0.0"),
            ({"cniVersion": "0.2.0"}, 1, "0.2.0"),
            ({"cniVersion": None}, 1, "missing"),
            ({"cniVersion": 1}, 7, "cniVersion"),
            ({"name": None}, 7, "name"),
            ({"name": "a b"}, 7, "name"),
            ({"name": "../x"}, 7, "name"),
            ({"delegate": None}, 7, "delegate"),
            ({"delegate": "sriov"}, 7, "delegate"),
            ({"delegate": {}}, 7, "type"),
            ({"delegate": {"type": "../evil"}}, 7, "type"),
            ({"delegate": {"type": ".."}}, 7, "type"),
            ({"delegate": {"type": ".x"}}, 7, "type"),
            ({"delegate": {"type": "a\nb"}}, 7, "type"),
            ({"delegate": {"type": "a" * 300}}, 7, "type"),
            ({"delegate": {"type": 7}}, 7, "type"),
            ({"delegate": {"type": "railmate-cni"}}, 7, "own delegate"),
            ({"ipam": {}}, 7, "ipam"),
            ({"deviceID": 7}, 7, "deviceID"),
            ({"runtimeConfig": {"deviceID": "other"}}, 7, "differ"),
            ({"deviceID": None}, 7, "no \"deviceID\""),
            ({"stateDir": []}, 7, "stateDir"),
            ({"controlSocket": 7}, 7, "controlSocket"),
            ({"stateDir": "/x"}, 7, "stateDir"),
            ({"controlSocket": "/x"}, 7, "controlSocket"),
        ]
        for change, code, word in cases:
            with self.subTest(change if len(str(change)) < 80 else "long"):
                conf = change if isinstance(change, str) else {
                    k: v
                    for k, v in {**self.conf(), **change}.items()
                    if v is not None
                }
                self.fails(self.cni("ADD", conf), code, word)
        self.assertEqual((self.calls(), self.states()), ([], []))

    def test_a_bad_environment_is_refused_with_a_sentence(self):
        cases = [
            ("ADD", {"CNI_CONTAINERID": None}),
            ("ADD", {"CNI_NETNS": None}),
            ("ADD", {"CNI_IFNAME": ""}),
            ("ADD", {"CNI_PATH": None}),
            ("DEL", {"CNI_CONTAINERID": None}),
            ("DEL", {"CNI_IFNAME": None}),
            ("CHECK", {"CNI_NETNS": None}),
            ("GC", {"CNI_PATH": None}),
            ("ADD", {"CNI_CONTAINERID": "../x"}),
            ("ADD", {"CNI_CONTAINERID": "a@b"}),
            ("ADD", {"CNI_CONTAINERID": "a" * 300}),
            ("ADD", {"CNI_IFNAME": "a/b"}),
            ("DEL", {"CNI_IFNAME": ".."}),
            ("ADD", {"CNI_IFNAME": "0123456789abcdef"}),
            ("DANCE", {}),
            ("", {}),
        ]
        for command, env in cases:
            with self.subTest(command=command, **env):
                self.fails(self.cni(command, **env), 4, "CNI_" if env else "CNI_COMMAND")
        self.assertEqual((self.calls(), self.states()), ([], []))

    def test_a_full_standard_output_is_a_failure(self):
        self.start_daemon()
        with open("/dev/full", "w", encoding="utf-8") as full:
            done = subprocess.run(self.argv(), input=json.dumps(self.conf()), stdout=full,
                                  stderr=subprocess.PIPE, text=True, env=self.env("ADD"),
                                  timeout=PATIENCE, check=False)
        self.assertEqual(done.returncode, 1)


class Program(Cni):
    def run_it(self, *argv, before=(), **env):
        return subprocess.run([*before, program("railmate_cni"), *argv], capture_output=True,
                              text=True, timeout=PATIENCE, check=False, env=env,
                              stdin=subprocess.DEVNULL)

    def test_it_needs_no_library_of_the_host_and_can_be_loaded_anywhere(self):
        if os.environ.get("SANITIZED"):
            self.skipTest("a sanitized program is not static")
        with open(program("railmate_cni"), "rb") as f:
            data = f.read()
        kind, table, size, count = (int.from_bytes(data[a:b], "little")
                                    for a, b in ((16, 18), (32, 40), (54, 56), (56, 58)))
        starts = [table + i * size for i in range(count)]
        segments = {int.from_bytes(data[at:at + 4], "little") for at in starts}
        self.assertEqual(kind, 3, "the type in the ELF header is not DYN")
        self.assertNotIn(3, segments, "PT_INTERP")
        self.assertIn(2, segments, "PT_DYNAMIC")

    def test_it_installs_itself_also_over_one_that_runs(self):
        self.start_daemon()
        self.assertIn(str(self.top), self.works(self.run_it("--install", str(self.top))))
        installed = self.top / "railmate-cni"
        self.assertEqual(stat.S_IMODE(installed.stat().st_mode), 0o755)
        with subprocess.Popen([installed], stdin=subprocess.PIPE, env=self.env("DEL"),
                              stdout=subprocess.DEVNULL) as running:
            self.works(self.run_it("--install", str(self.top)))
            running.communicate(json.dumps(self.conf()).encode(), PATIENCE)
            self.assertEqual(running.returncode, 0)
        self.assertEqual([p.name for p in self.top.iterdir() if "railmate-cni" in p.name],
                         ["railmate-cni"])
        self.assertIn(
            "railmate-cni",
            subprocess.run([installed, "--version"], capture_output=True, text=True,
                           timeout=PATIENCE, check=True).stdout)

    @unittest.skipUnless(os.geteuid() == 0, "needs root")
    def test_what_a_killed_one_left_behind_is_no_obstacle(self):
        (self.top / ".railmate-cni.1").write_text("half")  # in a container every one is process 1
        alone = ("/usr/bin/unshare", "--pid", "--fork")
        self.works(self.run_it("--install", str(self.top), before=alone))
        self.assertFalse((self.top / ".railmate-cni.1").exists())
        self.assertTrue((self.top / "railmate-cni").exists())

    def test_it_installs_the_settings_of_the_node(self):
        target = self.top / "etc" / "railmate" / "cni.json"
        source, link = self.top / "source", self.top / "link"
        link.symlink_to(source)  # as a ConfigMap has it
        for path in ("/first", "/second"):
            source.write_text(json.dumps({"stateDir": path}))
            self.works(self.run_it("--install", str(self.top), "--config", str(link),
                                   RAILMATE_CNI_CONFIG=str(target)))
            self.assertEqual(target.read_text(), source.read_text())
            self.assertEqual(stat.S_IMODE(target.stat().st_mode), 0o644)
        self.settings = target
        self.fails(self.cni("ADD", self.conf(stateDir="/first")), 7, "/second")

    def test_settings_that_are_none_are_refused_and_the_old_ones_stay(self):
        target, source = self.top / "cni.json", self.top / "source"
        before = target.read_text()
        for text, word in (("{", "not JSON"), ('{"stateDir": "x"}', "absolute"),
                           ('{"sateDir": "/x"}', "sateDir"), (None, "No such file")):
            source.write_text(text) if text else source.unlink()
            done = self.run_it("--install", str(self.top), "--config", str(source),
                               RAILMATE_CNI_CONFIG=str(target))
            self.assertEqual((done.returncode, done.stdout, target.read_text()), (1, "", before))
            self.assertIn(word, done.stderr)
            self.assertIn(str(source), done.stderr)
        self.assertFalse((self.top / "railmate-cni").exists())

    def test_a_place_that_cannot_be_had_is_named(self):
        done = self.run_it("--install", str(self.top / "nowhere"))
        self.assertEqual((done.returncode, done.stdout), (1, ""))
        self.assertIn(str(self.top / "nowhere"), done.stderr)

    def test_a_wrong_command_line_is_answered_with_the_usage(self):
        for argv in ([], ["--install"], ["--dance"], ["x"],
                     ["--install", "/tmp", "--config"], ["--install", "/tmp", "--dance", "x"]):
            done = self.run_it(*argv)
            self.assertEqual((done.returncode, done.stdout), (2, ""))
            self.assertIn("usage: railmate-cni", done.stderr)
        self.assertIn("usage: railmate-cni", self.works(self.run_it("--help")))


if __name__ == "__main__":
    unittest.main(verbosity=2)
