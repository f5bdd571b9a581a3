#!/usr/bin/python3
"""deploy/monitoring with a real Prometheus: every query of the dashboard, and every alert, finds
something in the history of two nodes on which much goes wrong.

    test_dashboard.py --serve PORT        that history, to be looked at with Grafana (until Ctrl-C)

The history is made of scrapes of two daemons in a few situations; between two of them counters grow
evenly. What PFs and switches count only on real hardware (traffic of VFs, pause frames) is added."""

import json
import os
import pathlib
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import unittest
import urllib.parse

import yaml
from exposition import Exposition
from harness import GPU, PATIENCE, VF, Node, Process, main, until, vfs_of
from test_metrics import HOST, free_port, get

TOP = pathlib.Path(__file__).resolve().parents[2]
DASHBOARD = json.loads((TOP / "deploy/monitoring/dashboard.json").read_text())
RULES = [
    rule for group in yaml.safe_load(
        (TOP / "deploy/monitoring/prometheusrule.yaml").read_text())["spec"]["groups"]
    for rule in group["rules"]
]

STEP, SITUATION = 60, 600  # seconds between two samples, and two situations
GB = 10**9

# Of alerts, those whose cause these nodes do not have; checks/alerts has promtool test each one.
QUIET = {"RailmateNotAnswering", "RailmateNotSettled", "RailmateLedgerNotDurable", "RailmateOfferDiffers",
         "RailmateGone"}


class Member:
    """One node of the fleet, with its daemon."""

    def __init__(self, name, fixture, *options):
        self.name, self.node, self.port = name, Node(fixture), free_port()
        self.topo = self.node.topo().topo
        self.pfs = [pf for pf in self.topo["pfs"] if pf["rdma"]]
        self.config = self.node.path("config.json")
        self.configure({"selectors": {"isRdma": True}})
        for pf in self.pfs:
            for counter in ("port_xmit_data", "port_rcv_data", "port_xmit_packets",
                            "port_rcv_packets", "symbol_error", "link_downed", "port_xmit_wait"):
                self.count(pf, 0, counter)
            for counter in ("out_of_sequence", "roce_adp_retrans", "np_cnp_sent"):
                self.count(pf, 0, counter, "hw_counters")
            self.net(pf, carrier_changes=2, carrier_down_count=1)
        self.options = ("--config-file", self.config, f"--metrics-address={HOST}:{self.port}",
                        *options)
        self.kubelet, self.daemon = self.node.start(daemon=self.options)
        self.await_ready()

    def configure(self, pool):
        """A pool of VFs, and one whose PF is not there."""
        pools = [{"resourcePrefix": "rdma", "resourceName": "vf", **pool}, {
            "resourcePrefix": "rdma", "resourceName": "other", "selectors": {"pfNames": ["eth77"]}
        }]
        self.write_config({"resourceList": pools})

    def write_config(self, document):
        pathlib.Path(self.config + ".new").write_text(json.dumps(document))
        os.rename(self.config + ".new", self.config)

    def counter(self, pf, name, folder="counters"):
        return pathlib.Path(self.node.root, "sys/class/infiniband", pf["rdma"], "ports/1", folder,
                            name)

    def count(self, pf, more, name, folder="counters"):
        path = self.counter(pf, name, folder)
        path.parent.mkdir(exist_ok=True)
        path.write_text(f"{(int(path.read_text()) if path.exists() else 0) + more}\n")

    def net(self, pf, **values):
        for name, value in values.items():
            self.node.write(f"sys/class/net/{pf['netdev']}/{name}", f"{value}\n")

    def traffic(self, share):
        """That share of what the ports can carry, of the later ones a little less."""
        for n, pf in enumerate(self.pfs):
            rate = pathlib.Path(self.node.root, "sys/class/infiniband", pf["rdma"], "ports/1/rate")
            gbits = float(rate.read_text().split()[0])
            sent = int(share * (1 - n / 50) * SITUATION * gbits * GB / 8)
            for way in ("xmit", "rcv"):
                self.count(pf, sent // 4, f"port_{way}_data")
                self.count(pf, sent // 4096, f"port_{way}_packets")

    def lose(self, pf):
        self.net(pf, carrier=0, carrier_changes=3, carrier_down_count=2)
        self.node.write(f"sys/class/infiniband/{pf['rdma']}/ports/1/state", "1: DOWN\n")
        self.count(pf, 1, "link_downed")
        self.rescan()
        self.until(lambda s: not s.value("railmate_port_up", rdma=pf["rdma"]), "it is down")

    def idle_pfs(self):
        """Those with VFs that are up, and of which no container holds one."""
        now, place = self.scrape(), self.node.topo().place
        held = {dict(labels)["pf"] for labels in now.all("railmate_vf_info")}
        return [pf for pf in self.pfs
                if pf["pci"] in set(place[v["pci"]] for v in self.topo["vfs"]) - held
                and now.value("railmate_port_up", rdma=pf["rdma"])]

    def pod(self, name, gpus, vfs, order="gpu-first"):
        admission = self.kubelet.admit(name, f"main:{GPU}={gpus},{VF}={vfs}", order=order)
        self.kubelet.ask(f"prestart {name}")
        return vfs_of(admission)

    def restart(self):
        self.daemon.end()
        self.daemon = self.node.start_daemon(*self.options)
        self.await_ready()

    def await_ready(self):
        until(lambda: (get(self.port, "/readyz") or [0])[0] == 200, "it is ready")

    def bad_call(self):
        """A request that nobody can decode."""
        answer = self.kubelet.ask(f"call {VF} /v1beta1.DevicePlugin/Allocate ff")
        assert answer["status"] == "InvalidArgument", answer

    def rescan(self):
        self.daemon.child.send_signal(signal.SIGHUP)

    def scrape(self):
        return Exposition(get(self.port, "/metrics")[1])

    def until(self, true, what):
        """The scrape of which it is true; what is shown may be a second old."""
        def look():
            now = self.scrape()
            return now if true(now) else time.sleep(0.2)

        return until(look, what)

    def settled(self):
        """A scrape with the counters as they are now."""
        want = {pf["rdma"]: 4 * int(self.counter(pf, "port_rcv_data").read_text())
                for pf in self.pfs}
        return self.until(lambda s: all(s.value("railmate_port_received_bytes_total", rdma=rdma) ==
                                        value for rdma, value in want.items()), "all is counted")

    def end(self):
        self.node.__exit__(None, None, None)


class History:
    """Situations: of each node a scrape."""

    def __init__(self):
        self.members, self.scrapes = [], []

    def situation(self):
        now = {}
        for m in self.members:
            for (name, labels), value in m.settled().samples.items():
                now[name, (("instance", m.name), *labels)] = value
        self.scrapes.append({**now, **self.beyond_fixtures(now)})

    def beyond_fixtures(self, now):
        """What only real PFs count."""
        k, more = len(self.scrapes), {}
        for (name, labels), value in now.items():
            label = dict(labels)
            if name == "railmate_vf_info":
                vf = (("instance", label["instance"]), ("vf", label["vf"]))
                rate = 15 + sum(label["vf"].encode()) % 9
                for way in ("received", "transmitted"):
                    more[f"railmate_vf_{way}_bytes_total", vf] = k * SITUATION * rate * GB
                    more[f"railmate_vf_{way}_packets_total", vf] = k * SITUATION * rate * GB // 4096
                    more[f"railmate_vf_{way}_drops_total", vf] = k * 500 * (label["pod"] == "train-1")
                more["railmate_vf_hw_counter_total", (*vf, ("counter", "out_of_sequence"))] = k * k * rate
                marked = k * SITUATION * rate * GB // 20000 * (label["pod"] == "train-1")
                more["railmate_vf_hw_counter_total", (*vf, ("counter", "np_ecn_marked_roce_packets"))] = marked
            if name == "railmate_port_up":
                sick = label["rdma"] == "mlx5_1" and label["instance"] == "node-b"
                pause = (*labels, ("priority", "3"))
                more["railmate_port_received_discards_total", pause] = k * k * sick
                for way in ("received", "transmitted"):
                    more[f"railmate_port_{way}_pause_frames_total", pause] = k * (k * 90000 * sick + 300)
                    more[f"railmate_port_{way}_pause_seconds_total", pause] = k * SITUATION * (0.7 if sick else 0.001)
        return more

    def write(self, path, end):
        """OpenMetrics with times, for promtool."""
        last = len(self.scrapes) - 1
        with open(path, "w", encoding="ascii") as f:
            for name, labels in sorted({key for s in self.scrapes for key in s}):
                text = ",".join(f'{k}="{v}"' for k, v in labels)
                for k, scrape in enumerate(self.scrapes):
                    if (name, labels) not in scrape:
                        continue
                    value = scrape[name, labels]
                    after = self.scrapes[min(k + 1, last)].get((name, labels), value)
                    grows = after - value if re.search("_(total|bucket|sum|count)$", name) else 0
                    for at in range(0, SITUATION if k < last else 1, STEP):
                        when = end - (last - k) * SITUATION + at
                        f.write(f"{name}{{{text}}} {value + max(grows, 0) * at / SITUATION} {when}\n")
            f.write("# EOF\n")


def record():
    """Most of an hour of two nodes; at first all is well."""
    history = History()
    a = Member("node-a", "hgx-h100")
    history.members.append(a)
    b = Member("node-b", "dgx-a100", "--gpu-plugin-socket=none", "--pod-resources-timeout=3000")
    history.members.append(b)
    history.situation()

    first = a.pod("train-0", 4, 4)
    a.pod("infer-7", 2, 2)
    b.kubelet.admit("other", f"main:{GPU}=4")  # the near ones
    b.pod("train-1", 2, 2, "vf-first")  # chosen before the GPUs are known
    for m in (a, b):
        m.until(lambda s: s.all("railmate_pool_pairs_best_total") and any(
            s.all("railmate_pool_pairs_total").values()), "pairs are counted")
        m.traffic(0.8)
    history.situation()
    # railmated and kubelets start again; calls fail.
    a.restart()
    a.kubelet.ask("restart")
    a.kubelet.wait(VF, 1)
    b.kubelet.ask("refuse on")
    b.kubelet.send("restart &")
    b.until(lambda s: s.value("railmate_pool_registration_failures_total", resource=VF), "refused")
    b.kubelet.ask("refuse off")
    b.kubelet.wait(VF, 1)
    b.bad_call()
    b.kubelet.ask("podlist-fail on")
    b.pod("batch-3", 1, 1)
    b.kubelet.ask("podlist-fail off")
    for m in (a, b):
        m.traffic(0.9)
    history.situation()

    # A link of node-a is lost, below a pod; one of node-b that nobody uses.
    a.lose(next(pf for pf in a.pfs if pf["pci"] == a.node.topo().place[first[0]]))
    b.lose(b.idle_pfs()[0])
    # One of node-b flaps and has errors.
    sick = b.pfs[1]
    b.net(sick, carrier_changes=24, carrier_down_count=12)
    b.count(sick, 11, "link_downed")
    b.count(sick, 900000, "symbol_error")
    b.count(sick, 70000, "out_of_sequence", "hw_counters")
    b.count(sick, 70000, "roce_adp_retrans", "hw_counters")
    b.count(sick, 90000, "np_cnp_sent", "hw_counters")
    b.rescan()
    b.until(lambda s: sum(s.all("railmate_pool_degraded_devices").values()), "it is degraded")
    for m in (a, b):
        m.traffic(0.3)
    history.situation()

    # A pod is gone whose VF is in use; a configuration is refused, another one is in use in part.
    drains = a.pod("late-0", 1, 1)
    a.until(lambda s: any(dict(l)["pod"] == "late-0" for l in s.all("railmate_vf_info")), "held")
    a.node.take_away(drains[0])
    scans = a.daemon.stderr().count("were counted")
    a.rescan()
    until(lambda: a.daemon.stderr().count("were counted") > scans, "it is seen to be away")
    a.kubelet.ask("remove late-0")
    a.until(lambda s: sum(v for l, v in s.all("railmate_pool_devices").items()
                          if dict(l)["state"] == "draining"), "it drains")
    b.count(sick, 900000, "symbol_error")
    b.bad_call()
    a.write_config({"resourceList": 7})
    a.until(lambda s: s.value("railmate_config_refused"), "it is refused")
    b.configure({"selectors": 7})
    b.until(lambda s: s.value("railmate_config_errors"), "it has an error")
    for m in (a, b):
        m.traffic(0.7)
    history.situation()

    # The kubelet of node-b is down, and a VF has no driver.
    place = b.node.topo().place
    b.node.unbind(next(vf for vf in sorted(place) if place[vf] == b.idle_pfs()[0]["pci"]))
    b.rescan()
    b.until(lambda s: any(v for l, v in s.all("railmate_pool_unhealthy_devices").items()
                          if dict(l)["reason"] == "no_driver"), "it has none")
    b.kubelet.ask("down")
    b.until(lambda s: s.value("railmate_pool_registered", resource=VF) == 0, "not registered")
    b.count(sick, 900000, "symbol_error")
    for m in (a, b):
        m.traffic(0.7)
    history.situation()
    for m in (a, b):
        m.end()
    return history


class Prometheus:
    """A real one, that has a history and evaluates the alerts, with nothing to wait for."""

    def __init__(self, folder, history, port=None):
        self.port, folder = port or free_port(), pathlib.Path(folder)
        self.end = int(time.time())
        history.write(folder / "history.om", self.end)
        subprocess.run([
            "promtool", "tsdb", "create-blocks-from", "openmetrics", folder / "history.om",
            folder / "tsdb"
        ], check=True, timeout=PATIENCE, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL)
        (folder / "rules.yaml").write_text(
            yaml.safe_dump({"groups": [{"name": "railmate",
                                        "rules": [{**rule, "for": "0s"} for rule in RULES]}]}))
        (folder / "prometheus.yaml").write_text(
            yaml.safe_dump({"global": {"evaluation_interval": "1s"},
                            "rule_files": ["rules.yaml"]}))
        self.process = Process([
            "prometheus", f"--config.file={folder}/prometheus.yaml",
            f"--web.listen-address={HOST}:{self.port}", f"--storage.tsdb.path={folder}/tsdb"
        ], str(folder / "log"), stdin=subprocess.DEVNULL)
        until(self.is_evaluated, "alerts are evaluated")

    def ask(self, path, **parameters):
        """None while it does not answer yet."""
        answer = get(self.port, f"/api/v1/{path}?" + urllib.parse.urlencode(parameters, True))
        if not answer or answer[0] == 503:
            return None
        body = json.loads(answer[1])
        if body["status"] != "success":
            raise AssertionError(f"{parameters}: {body['error']}")
        return body["data"]["result"] if "query" in path else body["data"]

    def is_evaluated(self):
        """Series of alerts come later than their states, one alert after the other."""
        groups = (self.ask("rules") or {}).get("groups")
        firing = {r["name"] for r in groups[0]["rules"] if r["state"] == "firing"} if groups else ()
        return firing and firing == self.firing()

    def firing(self):
        return {s["metric"]["alertname"] for s in self.ask("query", query="ALERTS")}

    def over_time(self, expr):
        """Series that an expression has anywhere in the history."""
        return self.ask("query_range", query=expr, start=self.end - 3600, end=self.end, step=STEP)

    def of_target(self, target):
        """As Grafana asks, for all nodes; the last hour, and what is scraped every minute."""
        expr = target["expr"]
        for name, value in (("__rate_interval", "4m"), ("__range", "1h"), ("instance", ".*"),
                            ("resource", ".*"), ("namespace", ".*")):
            expr = expr.replace(f"${name}", value)
        if target.get("instant"):
            return self.ask("query", query=expr)
        return self.over_time(expr)


class Dashboard(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        if not shutil.which("prometheus"):
            raise unittest.SkipTest("no prometheus: hack/install-deps test")
        folder = tempfile.TemporaryDirectory(prefix="railmate-")
        cls.addClassCleanup(folder.cleanup)
        cls.prometheus = Prometheus(folder.name, record())
        cls.addClassCleanup(cls.prometheus.process.end)
        cls.found = {(panel["title"], target["refId"]): cls.prometheus.of_target(target)
                     for panel in DASHBOARD["panels"] for target in panel.get("targets", ())}

    def test_every_query_finds_something(self):
        self.assertGreater(len(self.found), 40)
        self.assertEqual([key for key, series in self.found.items() if not series], [])

    def test_legends_are_of_labels_that_there_are(self):
        for panel in DASHBOARD["panels"]:
            for target in panel.get("targets", ()):
                series = self.found[panel["title"], target["refId"]]
                have = set().union(*(s["metric"] for s in series))
                self.assertLessEqual(set(re.findall(r"{{(\w+)}}", target["legendFormat"])), have,
                                     panel["title"])
                if len(series) > 1 and not target.get("format"):
                    self.assertIn("{{", target["legendFormat"], panel["title"])

    def test_columns_of_tables_are_there(self):
        for panel in DASHBOARD["panels"]:
            if panel["type"] != "table":
                continue
            refs = [target["refId"] for target in panel["targets"]]
            have = {f"Value #{ref}" for ref in refs} if len(refs) > 1 else {"Value"}
            for target in panel["targets"]:
                have |= set().union(
                    *(s["metric"] for s in self.found[panel["title"], target["refId"]]))
            organize = panel["transformations"][-1]["options"]
            self.assertEqual(have - set(organize["excludeByName"]), set(organize["renameByName"]),
                             panel["title"])
            self.assertEqual(set(organize["indexByName"]), set(organize["renameByName"]))

    def test_every_variable_has_values(self):
        for variable in DASHBOARD["templating"]["list"]:
            if variable["type"] == "query":
                metric, label = re.fullmatch(r"label_values\((.+), (\w+)\)",
                                             variable["definition"]).groups()
                match = metric.replace("$instance", ".*")
                self.assertTrue(
                    self.prometheus.ask(f"label/{label}/values", **{"match[]": match}), variable)

    def test_every_annotation_finds_something(self):
        for note in DASHBOARD["annotations"]["list"]:
            self.assertTrue(self.prometheus.of_target(note), note["name"])

    def test_alerts_fire_where_there_is_cause(self):
        """Of those that look at time, some have to be looked for in the past."""
        for rule in RULES:
            fired = self.prometheus.over_time(rule["expr"])
            self.assertEqual(bool(fired), rule["alert"] not in QUIET, rule["alert"])
        self.assertLessEqual({"RailmateLinkDown", "RailmateNotRegistered"}, self.prometheus.firing())


def serve(port):
    with tempfile.TemporaryDirectory(prefix="railmate-") as folder:
        prometheus = Prometheus(folder, record(), port)
        print(f"http://{HOST}:{port} until Ctrl-C")
        try:
            signal.pause()
        except KeyboardInterrupt:
            prometheus.process.end()


if __name__ == "__main__":
    if sys.argv[1:2] == ["--serve"]:
        serve(int(sys.argv[2]))
    else:
        main()
