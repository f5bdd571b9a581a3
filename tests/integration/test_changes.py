#!/usr/bin/python3
"""The hardware changes while everything runs."""

import itertools
import json
import os
import pathlib
import re
import signal
import subprocess
import time

from harness import PATIENCE, VF, Case, main, pairs, program, until, vfs_of


class Changes(Case):
    def rescan(self, daemon):
        daemon.child.send_signal(signal.SIGHUP)

    def some_vfs(self, node, n):
        return sorted(v["pci"] for v in node.topo().topo["vfs"] if v["rdma"])[:n]

    def test_a_vf_that_vanished_with_its_pf_stays_in_the_list_unhealthy(self):
        node = self.node()
        kubelet, daemon = node.start()
        capacity = kubelet.resource(VF)["capacity"]
        pf, put_back = node.remove_pf("ibp24s0")
        self.rescan(daemon)
        kubelet.wait(VF, f"={capacity - 8}")
        time.sleep(2)
        now = kubelet.resource(VF)
        self.assertEqual(now["capacity"], capacity)
        self.assertEqual(sum(not d["healthy"] for d in now["devices"]), 8)
        self.assertIn(pf[:-1], min(d["id"] for d in now["devices"] if not d["healthy"]))
        put_back()
        self.rescan(daemon)
        kubelet.wait(VF, f"={capacity}")

    def capacity(self, kubelet, expected):
        until(lambda: kubelet.resource(VF)["capacity"] == expected, f"a capacity of {expected}")

    def test_vfs_that_their_pf_has_no_more_leave_when_no_container_holds_them(self):
        """As after a smaller sriov_numvfs; of one that is held the kubelet goes on hearing."""
        node = self.node()
        kubelet, daemon = node.start()
        capacity = kubelet.resource(VF)["capacity"]
        held = vfs_of(kubelet.admit("p", f"main:{VF}=1"))[0]
        free = [vf for vf in self.some_vfs(node, 4) if vf != held][:3]
        removed = {vf: node.remove_device(vf) for vf in (*free, held)}
        self.rescan(daemon)
        self.capacity(kubelet, capacity - len(free))
        self.assertEqual([d["id"] for d in kubelet.resource(VF)["devices"] if not d["healthy"]], [held])
        for vf in free:
            node.restore_device(vf, removed[vf])
        self.rescan(daemon)
        self.capacity(kubelet, capacity)
        node.restore_device(held, removed[held])
        self.rescan(daemon)
        kubelet.wait(VF, f"={capacity}")

    def test_a_vf_with_another_driver_goes_to_the_pool_that_selects_it(self):
        """When no container holds it; and back."""
        node = self.node()
        config = node.path("pools.json")
        pools = [{"resourcePrefix": "rdma", "resourceName": name, "selectors": selectors}
                 for name, selectors in (("vf", {"isRdma": True, "devices": ["101e"]}),
                                         ("dpdk", {"drivers": ["vfio-pci"]}))]
        with open(config, "w", encoding="utf-8") as f:
            json.dump({"resourceList": pools}, f)
        kubelet, daemon = node.start(daemon=("--config-file", config))
        capacity = kubelet.resource(VF)["capacity"]
        held = vfs_of(kubelet.admit("p", f"main:{VF}=1"))[0]
        free = [vf for vf in self.some_vfs(node, 3) if vf != held][:2]
        for vf in (*free, held):
            node.unbind(vf, "vfio-pci")
        self.rescan(daemon)
        kubelet.wait("rdma/dpdk", f"={len(free)}")
        self.capacity(kubelet, capacity - len(free))

    def test_vfs_that_appear_are_offered(self):
        node = self.node()
        hidden = {vf: node.remove_device(vf) for vf in self.some_vfs(node, 3)}
        kubelet, daemon = node.start()
        before = kubelet.resource(VF)["capacity"]
        for vf, removed in hidden.items():
            node.restore_device(vf, removed)
        self.rescan(daemon)
        kubelet.wait(VF, f"={before + 3}")

    def test_the_first_vf_ever_opens_the_resource(self):
        node = self.node("odd-renamed")
        vfs = self.some_vfs(node, 1000)
        hidden = {vf: node.remove_device(vf) for vf in vfs}
        kubelet = node.start_kubelet()
        daemon = node.start_daemon()
        until(lambda: "devices=0 " in daemon.stderr() or kubelet.resource(VF), "the first scan")
        for vf, removed in hidden.items():
            node.restore_device(vf, removed)
        self.rescan(daemon)
        kubelet.wait(VF, len(vfs))

    def test_a_vf_without_driver_is_unhealthy_and_never_chosen(self):
        node = self.node()
        kubelet, daemon = node.start()
        capacity = kubelet.resource(VF)["capacity"]
        vf, = self.some_vfs(node, 1)
        node.unbind(vf)
        self.rescan(daemon)
        kubelet.wait(VF, f"={capacity - 1}")
        self.assertNotIn(vf, vfs_of(kubelet.admit("all", f"main:{VF}={capacity - 1}")))

    def test_the_link_of_a_pf_decides_over_its_vfs(self):
        node = self.node()
        kubelet, daemon = node.start()
        capacity = kubelet.resource(VF)["capacity"]
        machine = node.topo()
        place = machine.place[self.some_vfs(node, 1)[0]]
        mine = {v for v in machine.place if machine.place[v] == place}
        pf = next(f for f in machine.topo["pfs"] if f["pci"] == place)
        carrier, port = f"sys/class/net/{pf['netdev']}/carrier", f"sys/class/infiniband/{pf['rdma']}/ports/1/state"
        node.write(carrier, "0\n")
        self.rescan(daemon)
        kubelet.wait(VF, f"={capacity}")  # the port is ACTIVE: IPoIB is only switched off
        node.write(port, "1: DOWN\n")
        self.rescan(daemon)
        kubelet.wait(VF, f"={capacity - len(mine)}")
        self.assertEqual({d["id"]
                          for d in kubelet.resource(VF)["devices"]
                          if not d["healthy"]}, mine)
        node.write(carrier, "1\n")
        node.write(port, "4: ACTIVE\n")
        self.rescan(daemon)
        kubelet.wait(VF, f"={capacity}")

    def degrade(self, health):
        """A PF of the pool has gone down three times since the last look. Returns (kubelet, daemon,
        its VFs)."""
        node = self.node()
        config = node.path("config.json")
        with open(config, "w", encoding="utf-8") as f:
            json.dump(
                {
                    "resourceList": [{
                        "resourcePrefix": "rdma", "resourceName": "vf", "selectors": {
                            "isRdma": True, "pfNames": ["ibp24s0", "ibp64s0"]
                        }, "railmate": {"binding": "early", "health": health}
                    }]
                }, f)
        machine = node.topo()
        place = machine.place[self.some_vfs(node, 1)[0]]
        pf = next(f for f in machine.topo["pfs"] if f["pci"] == place)
        self.degraded = node, pf
        downs = f"sys/class/net/{pf['netdev']}/carrier_down_count"
        node.write(downs, "7\n")
        kubelet, daemon = node.start(daemon=("--config-file", config))
        count = itertools.count(10, 3)  # the first sample may be late, and closer ones do not count

        def told():
            node.write(downs, f"{next(count)}\n")
            self.rescan(daemon)
            time.sleep(0.3)
            return [
                pairs(l) for l in daemon.stderr().splitlines()
                if "the link of a PF is degraded" in l
            ]

        line = until(told, "the line")[0]
        self.assertEqual((line["resource"], line["pf"]), (VF, place))
        self.assertIn("goes down too often", line["reason"])
        return kubelet, daemon, {v for v in machine.place if machine.place[v] == place}

    def test_a_link_that_flaps_is_told_and_its_vfs_stay_healthy(self):
        kubelet, daemon, _ = self.degrade({})
        self.rescan(daemon)
        time.sleep(0.3)
        self.assertEqual([d["id"] for d in kubelet.resource(VF)["devices"] if not d["healthy"]], [])
        self.assertEqual(daemon.stderr().count("the link of a PF is degraded"), 1)

    def test_a_degraded_link_is_named_with_the_pods_that_hold_its_vfs(self):
        kubelet, _, _ = self.degrade({})
        node, pf = self.degraded
        kubelet.admit("p", f"main:{VF}={kubelet.resource(VF)['capacity']}")
        kubelet.ask("prestart p")

        def ctl(*argv):
            return subprocess.run([program("railmatectl"), *argv, "--control-socket", node.control_socket],
                                  stdin=subprocess.DEVNULL, capture_output=True, text=True,
                                  timeout=PATIENCE, check=False)

        pool, = json.loads(ctl("explain", "pool", "--json").stdout)["pools"]
        link, = pool["degraded"]
        self.assertLess(0, link.pop("since_ms"))
        why = "goes down too often: at least 3 times in 600 s"
        self.assertEqual(link, {"pf": pf["pci"], "port": 1, "reasons": ["flaps"], "why": why, "unhealthy": False,
                                "pods": ["default/p"]})
        line = rf"\n  degraded  the link of PF {pf['pci']} {why}; since 2.*; pods that hold its VFs: default/p\n"
        until(lambda: re.search(line, ctl("explain", "pool").stdout), "its pod is known")
        done = ctl("status", "--no-doctor", "--json", "--root", node.root, "--state-dir", node.state_dir)
        status = json.loads(done.stdout)
        self.assertEqual((done.returncode, status["verdict"]), (5, "WARN"), done.stdout)
        self.assertEqual(status["trouble"],
                         [f"link {pf['pci']} {pf['rdma']} ({pf['netdev']}) {why}; pods that hold its VFs: default/p"])
        self.assertEqual({link["pf"]: link["degraded"] for link in status["links"] if link["degraded"]},
                         {pf["pci"]: {"why": why, "reasons": ["flaps"], "pods": ["default/p"]}})

    def test_a_pf_that_is_gone_is_a_link_that_status_counts(self):
        node = self.node()
        kubelet, daemon = node.start()
        pf = next(f for f in node.topo().topo["pfs"] if f["netdev"] == "ibp24s0")
        kubelet.admit("p", f"main:{VF}={kubelet.resource(VF)['capacity']}")
        kubelet.ask("prestart p")

        def status():
            done = subprocess.run([program("railmatectl"), "status", "--no-doctor", "--json", "--root", node.root, "--state-dir",
                                   node.state_dir, "--control-socket", node.control_socket],
                                  stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=PATIENCE, check=False)
            return json.loads(done.stdout)

        before = status()
        self.assertEqual(before["trouble"], [])
        _, put_back = node.remove_pf("ibp24s0")
        self.rescan(daemon)
        name = f"link {pf['pci']} {pf['rdma']} (ibp24s0) is gone from the PCI bus; pods that hold its VFs: default/p"
        now = until(lambda: (s := status())["trouble"][:1] == [name] and s, "the link is named")
        self.assertEqual([l["pf"] for l in now["links"] if l["down"]], [pf["pci"]])
        self.assertEqual(len(now["links"]), len(before["links"]))
        put_back()
        self.rescan(daemon)
        until(lambda: status()["trouble"] == [], "it is back")

    def test_vfs_of_a_link_that_flaps_are_unhealthy_where_the_pool_wants_it(self):
        kubelet, _, mine = self.degrade({"unhealthy": ["flaps"]})
        kubelet.wait(VF, f"={kubelet.resource(VF)['capacity'] - len(mine)}")
        self.assertEqual({d["id"]
                          for d in kubelet.resource(VF)["devices"]
                          if not d["healthy"]}, mine)

    def test_a_restart_does_not_make_a_degraded_link_healthy(self):
        kubelet, daemon, mine = self.degrade({"unhealthy": ["flaps"]})
        node, _ = self.degraded
        whole = kubelet.resource(VF)["capacity"]
        kubelet.wait(VF, f"={whole - len(mine)}")
        kept = pathlib.Path(node.run_dir, "links.json")
        until(lambda: "too often" in kept.read_text(encoding="utf-8"), "the file")
        self.assertEqual(daemon.end(), 0, daemon.stderr())
        written, since = kept.stat().st_mtime_ns, kubelet.mark()
        again = node.start_daemon("--config-file", node.path("config.json"))
        kubelet.event("list", since, resource=VF)
        until(lambda: kept.stat().st_mtime_ns != written, "it has looked at the links")
        self.assertEqual({e["allocatable"] for e in kubelet.events[since:]
                          if e["event"] == "list" and e["resource"] == VF}, {whole - len(mine)})
        self.assertNotIn("the link of a PF is", again.stderr())

    def test_the_feature_file_has_the_pools_that_there_are_and_outlives_the_daemon(self):
        node = self.node()
        path = node.path("railmate")
        _, daemon = node.start(daemon=("--nfd-file", path))

        def facts():
            with open(path, encoding="ascii") as f:
                return dict(line.strip().split("=") for line in f)

        until(lambda: os.path.exists(path), "doctor has looked")

        self.assertEqual((facts()["railmate.rails"], facts()["railmate.pool.rdma_vf"]),
                         ("8", "true"))
        self.assertEqual(facts()["railmate.doctor"], node.doctor()["verdict"].lower())
        daemon.end()
        self.assertEqual(facts()["railmate.affinity"], "PIX")

    def test_nothing_new_sends_nothing(self):
        node = self.node()
        kubelet, daemon = node.start()
        since = kubelet.mark()
        for _ in range(3):
            self.rescan(daemon)
            time.sleep(0.3)
        self.assertEqual(kubelet.count("list", since, resource=VF), 0)

    def test_the_timer_finds_what_no_event_told(self):
        node = self.node()
        kubelet, _ = node.start(daemon=("--rescan", "1"))
        capacity = kubelet.resource(VF)["capacity"]
        node.remove_device(self.some_vfs(node, 1)[0])
        kubelet.wait(VF, f"={capacity - 1}")

    def test_a_slow_reader_gets_the_last_state(self):
        node = self.node()
        kubelet, daemon = node.start()
        capacity = kubelet.resource(VF)["capacity"]
        vfs = self.some_vfs(node, 6)
        kubelet.ask(f"slow {VF} on")
        for vf in vfs:
            node.remove_device(vf)
            self.rescan(daemon)
            time.sleep(0.1)
        time.sleep(0.3)
        kubelet.ask(f"slow {VF} off")
        kubelet.wait(VF, f"={capacity - len(vfs)}")


if __name__ == "__main__":
    main()
