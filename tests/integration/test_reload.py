#!/usr/bin/python3
"""The configuration changes while everything runs: what is new is served, what is held stays, what
is wrong is refused."""

import json
import os
import re
import signal
import subprocess
import time

from harness import PATIENCE, Case, container, main, pairs, program, until, vfs_of
from late import LateCase, vfs_in
from test_metrics import HOST, free_port, get

A, B, C = "rdma/a", "rdma/b", "rdma/c"
PF_A, PF_B = "ibp24s0", "ibp64s0"  # 8 VFs each
SETTLE = 0.1  # seconds without a change before the files are read
IN_USE, REFUSED = "the new configuration is in use", "the new configuration is refused"


def pool(name, *pfs, **railmate):
    return {
        "resourcePrefix": "rdma", "resourceName": name,
        "selectors": {"isRdma": True,
                      "pfNames": list(pfs)}, "railmate": {"binding": "early", **railmate}
    }


def text(*pools):
    return json.dumps({"resourceList": pools})


class ConfigMap:
    """A mounted ConfigMap, as the kubelet's atomic writer makes and changes it."""

    def __init__(self, directory, **files):
        self.directory, self.version = directory, 0
        os.mkdir(directory)
        self.put(**files)

    def path(self, name="config.json"):
        return os.path.join(self.directory, name)

    def put(self, **files):
        """config_json="…": the file config.json."""
        old = os.path.realpath(self.path("..data"))
        self.version += 1
        data = f"..2026_{self.version}"
        os.mkdir(self.path(data))
        for name, content in files.items():
            with open(os.path.join(self.path(data), name.replace("_json", ".json")), "w",
                      encoding="utf-8") as f:
                f.write(content)
        os.symlink(data, self.path("..data_tmp"))
        os.rename(self.path("..data_tmp"), self.path("..data"))
        for name in files:
            name = name.replace("_json", ".json")
            if not os.path.lexists(self.path(name)):
                os.symlink(os.path.join("..data", name), self.path(name))
        if self.version > 1:
            for name in os.listdir(old):
                os.unlink(os.path.join(old, name))
            os.rmdir(old)


class ReloadCase(LateCase):
    def up(self, *pools, daemon=()):
        node = self.node()
        self.map = ConfigMap(node.path("pcidp"), config_json=text(*pools))
        kubelet = node.start_kubelet()
        d = node.start_daemon("--config-file", self.map.path(), *daemon)
        for p in pools:
            kubelet.wait(f"rdma/{p['resourceName']}", "=8")
        return node, kubelet, d

    def up_with_shared(self):
        """Pool a and five of one shared HCA; the latter's file goes with them, to be changed."""
        node = self.node()
        kubelet = node.start_kubelet()
        shared = {
            "configList": [{
                "resourceName": "s", "rdmaHcaMax": 5, "selectors": {"ifNames": ["ibp41s0f0"]}
            }]
        }
        self.map = ConfigMap(node.path("pcidp"), config_json=text(pool("a", PF_A)),
                             shared_json=json.dumps(shared))
        d = node.start_daemon("--config-file", self.map.path(), "--shared-config",
                              self.map.path("shared.json"))
        kubelet.wait("rdma/s", "=5")
        return kubelet, d, shared

    def put(self, *pools):
        self.map.put(config_json=text(*pools))

    def lines(self, d, words):
        return [pairs(line) for line in d.stderr().splitlines() if words in line]

    def await_lines(self, d, words, n=1):
        return until(lambda: len(found := self.lines(d, words)) >= n and found,
                     f"{n} lines: {words}")

    def ids(self, kubelet, resource, healthy=True):
        return {d["id"] for d in kubelet.resource(resource)["devices"] if d["healthy"] == healthy}

    def start_pod(self, kubelet, pod, wish):
        admission = kubelet.admit(pod, f"main:{wish}")
        container(admission)
        self.prestart(kubelet, pod)
        return admission

    def prestart(self, kubelet, pod):
        """Its containers start, once more perhaps."""
        calls = kubelet.ask(f"prestart {pod}")["calls"]
        self.assertEqual([c["status"] for c in calls], ["OK"], calls)

    def holders(self, node):
        try:
            return {h["vf"]: h.get("pod") for h in self.ledger(node).get("holds", ())}
        except (FileNotFoundError, ValueError):
            return {}


class Change(ReloadCase):
    def test_signals_that_come_faster_than_scans_are_one(self):
        port = free_port()
        node, _, d = self.up(pool("a", PF_A), daemon=(f"--metrics-address={HOST}:{port}",))

        def scans():
            text = until(lambda: get(port, "/metrics"), "the metrics")[1]
            return int(re.search(r"^railmate_scans_total (\d+)$", text, re.M)[1])

        def asked():
            """The main loop answers, so it has read the signals that were sent before."""
            argv = [program("railmatectl"), "explain", "pool", A, "--control-socket",
                    node.control_socket]
            return subprocess.run(argv, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                                  timeout=PATIENCE, check=False).returncode == 0

        def is_pending():
            """The kernel keeps one of a number only: none is sent before the last one came."""
            with open(f"/proc/{d.pid}/status", encoding="ascii") as f:
                pending = re.search(r"^ShdPnd:\t(\w+)$", f.read(), re.M)[1]
            return int(pending, 16) & 1 << signal.SIGHUP - 1

        sent, before = 200, scans()
        for _ in range(sent):
            d.child.send_signal(signal.SIGHUP)
            while is_pending():
                pass
        until(asked, "an answer")
        until(asked, "an answer")
        self.assertLess(scans() - before, sent)

    def test_a_pool_is_added_and_the_other_keeps_its_stream(self):
        _, kubelet, d = self.up(pool("a", PF_A))
        since = kubelet.mark()
        self.put(pool("a", PF_A), pool("b", PF_B))
        kubelet.wait(B, "=8")
        line, = self.await_lines(d, IN_USE)
        self.assertEqual((line["generation"], line["added"], line["removed"]), ("2", B, "none"))
        self.assertEqual(kubelet.count("stream-end", since, resource=A), 0)
        self.assertEqual(kubelet.count("list", since, resource=A), 0)
        self.assertEqual(len(vfs_of(kubelet.admit("p", f"main:{B}=2"), resource=B)), 2)

    def test_a_pool_that_nobody_uses_is_removed(self):
        _, kubelet, d = self.up(pool("a", PF_A), pool("b", PF_B))
        since = kubelet.mark()
        self.put(pool("a", PF_A))
        kubelet.event("stream-end", since, resource=B)
        line, = self.await_lines(d, IN_USE)
        self.assertEqual((line["added"], line["removed"]), ("none", B))
        self.assertFalse(kubelet.resource(B)["registered"])
        self.assertTrue(kubelet.resource(A)["registered"])
        self.assertEqual(kubelet.count("stream-end", since, resource=A), 0)

    def test_vfs_move_to_the_pool_that_selects_them_now(self):
        _, kubelet, _ = self.up(pool("a", PF_A), pool("b", PF_B))
        of_a, of_b = self.ids(kubelet, A), self.ids(kubelet, B)
        self.put(pool("a", PF_B), pool("b", PF_A))
        until(lambda: self.ids(kubelet, A) == of_b and self.ids(kubelet, B) == of_a, "both lists")

    def test_what_containers_hold_stays_in_its_pool_until_they_end(self):
        node, kubelet, d = self.up(pool("a", PF_A))
        of_a = self.ids(kubelet, A)
        mine = set(vfs_of(self.start_pod(kubelet, "p", f"{A}=2"), resource=A))
        until(lambda: set(self.holders(node).values()) == {"p"}, "p on disk")
        since = kubelet.mark()
        self.put(pool("a", PF_B))
        until(lambda: len(self.ids(kubelet, A)) >= 8 and not of_a - mine & self.ids(kubelet, A),
              "the VFs of the other PF")
        listed = self.ids(kubelet, A) | self.ids(kubelet, A, healthy=False)
        self.assertEqual(listed & of_a, mine)
        self.assertEqual(kubelet.count("stream-end", since, resource=A), 0)
        self.prestart(kubelet, "p")
        kubelet.ask("remove p")
        kubelet.admit("q", f"main:{A}=1")  # collects p
        until(lambda: not (self.ids(kubelet, A) | self.ids(kubelet, A, healthy=False)) & mine,
              "p's VFs are off the list")
        until(lambda: "p" not in self.holders(node).values(), "nor in the ledger")

    def test_a_removed_pool_lasts_as_long_as_its_pods(self):
        node, kubelet, d = self.up(pool("a", PF_A), pool("b", PF_B))
        mine = set(vfs_of(self.start_pod(kubelet, "p", f"{A}=2"), resource=A))
        until(lambda: set(self.holders(node).values()) == {"p"}, "p on disk")
        since = kubelet.mark()
        self.put(pool("b", PF_B), pool("c", PF_A))
        kubelet.wait(C, "=6")  # the other VFs of the PF
        kubelet.wait(A, "=2")
        self.assertEqual(self.ids(kubelet, A), mine)
        self.assertFalse(self.ids(kubelet, C) & mine)
        self.assertTrue(kubelet.resource(A)["registered"])
        # Its container starts again, and nobody else gets its VFs.
        self.prestart(kubelet, "p")
        self.assertEqual(len(vfs_of(kubelet.admit("q", f"main:{C}=6"), resource=C)), 6)
        self.assertEqual(self.holders(node).keys() & mine, mine)
        kubelet.ask("remove p")
        kubelet.ask("remove q")
        kubelet.admit("r", f"main:{B}=1")
        kubelet.event("stream-end", since, resource=A)
        kubelet.wait(C, "=8")
        self.assertEqual(kubelet.count("stream-end", since, resource=B), 0)

    def test_device_info_files_go_with_their_pool(self):
        """Of a pool that is removed, one whose VFs another has, and not those that a pod may need."""
        node, kubelet, _ = self.up(pool("a", PF_A), pool("b", PF_B))

        def names(resource):
            return {name for name in os.listdir(node.devinfo) if name.startswith(f"rdma-{resource}-")}

        until(lambda: len(names("a")) == len(names("b")) == 8, "the files")
        mine = vfs_of(self.start_pod(kubelet, "p", f"{A}=2"), resource=A)
        self.put(pool("c", PF_A))
        until(lambda: not names("b"), "those of b to go")
        until(lambda: names("a") == {f"rdma-a-{vf}-device.json" for vf in mine}, "those of a to go")
        until(lambda: len(names("c")) == 6, "those of c that no pod may need elsewhere")
        kubelet.ask("remove p")
        kubelet.admit("r", f"main:{C}=1")
        until(lambda: not names("a"), "the others of a to go")
        until(lambda: len(names("c")) == 8, "those of c to come")

    def test_a_pool_that_comes_back_has_its_holds(self):
        node, kubelet, d = self.up(pool("a", PF_A))
        mine = set(vfs_of(self.start_pod(kubelet, "p", f"{A}=2"), resource=A))
        until(lambda: set(self.holders(node).values()) == {"p"}, "p on disk")
        since = kubelet.mark()
        self.put(pool("b", PF_A))
        kubelet.wait(A, "=2")
        self.put(pool("a", PF_A))
        kubelet.wait(A, "=8")
        self.assertEqual(kubelet.count("stream-end", since, resource=A), 0)
        self.assertEqual(set(vfs_of(kubelet.admit("q", f"main:{A}=6"), resource=A)) & mine, set())

    def test_the_environment_of_the_next_container_follows(self):
        _, kubelet, _ = self.up(pool("a", PF_A, env={"NCCL_IB_TC": "96"}))
        since = kubelet.mark()
        got = container(self.start_pod(kubelet, "p", f"{A}=1"))
        self.assertEqual(got["env"]["NCCL_IB_TC"], "96")
        self.put(pool("a", PF_A, env={"NCCL_IB_TC": "106"}))

        def next_one():
            env = container(kubelet.admit("q", f"main:{A}=1"))["env"]
            kubelet.ask("remove q")
            return env["NCCL_IB_TC"] == "106"

        until(next_one, "the new value")
        self.assertEqual(kubelet.count("stream-end", since, resource=A), 0)

    def test_another_binding_registers_anew(self):
        _, kubelet, _ = self.up(pool("a", PF_A))
        since = kubelet.mark()
        self.put(pool("a", PF_A, binding="late"))
        kubelet.event("stream-end", since, resource=A)
        until(
            lambda: all(re.match("rdma_a-n0-", i) for i in self.ids(kubelet, A)) and kubelet.
            resource(A)["registered"] and self.ids(kubelet, A), "slots")
        self.put(pool("a", PF_A))
        until(
            lambda: all(i.startswith("0000:")
                        for i in self.ids(kubelet, A)) and self.ids(kubelet, A), "VFs")
        self.assertEqual(len(self.ids(kubelet, A)), 8)


class Late(ReloadCase):
    def test_a_removed_late_pool_lets_its_containers_start_again(self):
        node, kubelet, _ = self.up(pool("a", PF_A, binding="late"), pool("b", PF_B))
        _, started = self.run_pod(node, "p", f"main:{A}=2")
        mine = set(vfs_in(started, A))
        self.assertEqual(len(mine), 2)
        since = kubelet.mark()
        self.put(pool("b", PF_B), pool("c", PF_A))
        kubelet.wait(C, "=6")
        self.assertTrue(kubelet.resource(A)["registered"])
        again = self.start(node, "p")["main"]
        self.assertTrue(again["started"], again["message"])
        self.assertEqual(set(vfs_in(again, A)), mine)
        self.assertFalse(self.ids(kubelet, C) & mine)
        kubelet.ask("remove p")
        kubelet.admit("r", f"main:{B}=1")
        kubelet.event("stream-end", since, resource=A)
        kubelet.wait(C, "=8")

    def test_auto_is_decided_for_pools_that_come_later_and_kept_for_those_that_were_there(self):
        _, kubelet, d = self.up(pool("a", PF_A, binding="auto"))
        since = kubelet.mark()
        self.put(pool("a", PF_A, binding="auto", env={"NCCL_IB_TC": "96"}),
                 pool("b", PF_B, binding="auto"))
        kubelet.wait(B, "=8")
        told = [line["resource"] for line in self.lines(d, "binding auto was decided")]
        self.assertEqual(told, [A, B])
        self.assertEqual(kubelet.count("stream-end", since, resource=A), 0)


class Files(ReloadCase):
    def test_a_plain_file_replaced_or_written_in_place(self):
        node = self.node()
        path = node.path("config.json")
        with open(path, "w", encoding="utf-8") as f:
            f.write(text(pool("a", PF_A)))
        kubelet = node.start_kubelet()
        node.start_daemon("--config-file", path)
        kubelet.wait(A, "=8")
        with open(path + ".new", "w", encoding="utf-8") as f:
            f.write(text(pool("a", PF_A), pool("b", PF_B)))
        os.rename(path + ".new", path)
        kubelet.wait(B, "=8")
        with open(path, "w", encoding="utf-8") as f:
            f.write(text(pool("a", PF_A), pool("b", PF_B), pool("c", "ibp79s0")))
        kubelet.wait(C, "=8")

    def test_sighup_reads_what_no_event_told(self):
        node = self.node()
        path, link = node.path("elsewhere.json"), node.path("link")
        os.mkdir(link)
        with open(path, "w", encoding="utf-8") as f:
            f.write(text(pool("a", PF_A)))
        os.symlink(path, os.path.join(link, "config.json"))
        kubelet = node.start_kubelet()
        d = node.start_daemon("--config-file", os.path.join(link, "config.json"))
        kubelet.wait(A, "=8")
        with open(path, "w", encoding="utf-8") as f:
            f.write(text(pool("a", PF_A), pool("b", PF_B)))
        time.sleep(0.7)
        self.assertEqual(self.lines(d, IN_USE), [])
        d.child.send_signal(signal.SIGHUP)
        kubelet.wait(B, "=8")

    def test_the_file_of_shared_hcas_is_followed_too(self):
        kubelet, d, shared = self.up_with_shared()
        shared["configList"][0]["rdmaHcaMax"] = 7
        self.map.put(config_json=text(pool("a", PF_A)), shared_json=json.dumps(shared))
        kubelet.wait("rdma/s", "=7")
        self.assertEqual(len(self.await_lines(d, IN_USE)), 1)

    def test_a_storm_of_changes_ends_with_the_last_one(self):
        _, kubelet, d = self.up(pool("a", PF_A))
        since, began = kubelet.mark(), time.monotonic()
        for i in range(60):
            self.put(pool("a", PF_A), pool(f"x{i}", PF_B))
            time.sleep(0.01)
        self.put(pool("a", PF_A), pool("b", PF_B))
        kubelet.wait(B, "=8")
        took = time.monotonic() - began
        self.assertLess(len(self.lines(d, IN_USE)), took / SETTLE + 2)
        self.assertEqual(kubelet.count("stream-end", since, resource=A), 0)

    def test_the_same_again_changes_nothing(self):
        _, kubelet, d = self.up(pool("a", PF_A))
        since = kubelet.mark()
        self.put(pool("a", PF_A))
        d.child.send_signal(signal.SIGHUP)
        time.sleep(0.6)
        self.assertEqual(self.lines(d, IN_USE), [])
        self.assertEqual(kubelet.count("list", since, resource=A), 0)


class Refused(ReloadCase):
    def check_kept(self, kubelet, d, words):
        line = self.await_lines(d, REFUSED)[-1]
        self.assertIn(words, line["reason"])
        time.sleep(0.2)
        self.assertTrue(kubelet.resource(A)["registered"])
        self.assertEqual(kubelet.resource(A)["allocatable"], 8)
        self.assertEqual(self.lines(d, IN_USE), [])

    def test_no_json(self):
        _, kubelet, d = self.up(pool("a", PF_A))
        self.map.put(config_json='{"resourceList": [')
        self.check_kept(kubelet, d, "config.json:1")

    def test_strict_any_error_refuses_everything_and_all_errors_are_told(self):
        _, kubelet, d = self.up(pool("a", PF_A), daemon=["--strict-config"])
        self.put(pool("a", PF_A), pool("b", PF_B, gid="often"), pool("not legal", PF_B))
        self.check_kept(kubelet, d, "gid")
        self.assertIn("not legal", d.stderr())
        self.assertIsNone(kubelet.resource(B))

    def test_a_file_that_went_away(self):
        _, kubelet, d = self.up(pool("a", PF_A))
        os.unlink(self.map.path())
        self.check_kept(kubelet, d, "No such file")

    def test_once_for_each_text_and_a_good_one_is_taken_afterwards(self):
        _, kubelet, d = self.up(pool("a", PF_A))
        self.map.put(config_json="[]")
        self.check_kept(kubelet, d, "object")
        for _ in range(3):
            d.child.send_signal(signal.SIGHUP)
            time.sleep(0.2)
        self.assertEqual(len(self.lines(d, REFUSED)), 1)
        self.put(pool("a", PF_A))
        self.await_lines(d, "the configuration is again the one that is in use")
        self.put(pool("a", PF_A), pool("b", PF_B))
        kubelet.wait(B, "=8")


class Partial(ReloadCase):
    """A pool with an error takes nothing away, and stops no other."""

    ACCELERATOR = {"resourcePrefix": "rdma", "resourceName": "x", "deviceType": "accelerator"}

    def test_a_node_with_a_pool_that_is_not_served_follows_its_file(self):
        node = self.node()
        self.map = ConfigMap(node.path("pcidp"),
                             config_json=text(pool("a", PF_A), self.ACCELERATOR))
        kubelet = node.start_kubelet()
        d = node.start_daemon("--config-file", self.map.path())
        kubelet.wait(A, "=8")
        self.put(pool("a", PF_A), self.ACCELERATOR, pool("b", PF_B))
        kubelet.wait(B, "=8")
        self.assertEqual(len(self.await_lines(d, IN_USE)), 1)
        self.assertEqual(self.lines(d, REFUSED), [])

    def test_a_pool_that_was_served_stays_as_it_was_through_a_typo(self):
        node, kubelet, d = self.up(pool("a", PF_A, env={"NCCL_IB_TC": "96"}, binding="late"))
        slots = self.ids(kubelet, A)
        since = kubelet.mark()
        # Neither the key nor the binding, which it would have without its object, changes.
        wrong = pool("a", PF_A, env={"NCCL_IB_TC": "106"}, binding="sometimes")
        self.put(wrong, pool("b", PF_B))
        kubelet.wait(B, "=8")
        kept, = self.await_lines(d, "a pool with an error stays as it was")
        self.assertEqual(kept["resource"], A)
        self.put({**wrong, "deviceType": "accelerator"}, pool("c", PF_B))
        kubelet.wait(C, "=8")
        self.assertEqual(self.ids(kubelet, A), slots)
        self.assertEqual(kubelet.count("stream-end", since, resource=A), 0)
        _, started = self.run_pod(node, "p", f"main:{A}=1")
        self.assertEqual(started["env"]["NCCL_IB_TC"], "96")
        self.put(pool("a", PF_A, binding="late", env={"NCCL_IB_TC": "106"}))
        self.await_lines(d, IN_USE, 3)
        _, started = self.run_pod(node, "q", f"main:{A}=1")
        self.assertEqual(started["env"]["NCCL_IB_TC"], "106")

    def test_a_file_that_is_refused_stays_as_it_was_and_the_other_is_taken(self):
        kubelet, d, shared = self.up_with_shared()
        shared["configList"][0]["rdmaHcaMax"] = 7
        self.map.put(config_json="[", shared_json=json.dumps(shared))
        kubelet.wait("rdma/s", "=7")
        self.assertIn("config.json:1", self.await_lines(d, REFUSED)[0]["reason"])
        self.assertEqual(len(self.ids(kubelet, A)), 8)
        self.map.put(config_json=text(pool("a", PF_A), pool("b", PF_B)), shared_json="[")
        kubelet.wait(B, "=8")
        kubelet.wait("rdma/s", "=7")
        self.assertIn("shared.json:1", self.await_lines(d, REFUSED, 2)[1]["reason"])


if __name__ == "__main__":
    main()
