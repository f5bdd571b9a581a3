#!/usr/bin/python3
"""What is seen from outside: /metrics, /healthz and /readyz of a daemon that serves."""

import concurrent.futures
import http.client
import json
import os
import pathlib
import re
import shutil
import signal
import socket
import subprocess
import time
import unittest
import urllib.parse

from exposition import Exposition
from harness import GPU, PATIENCE, VF, Case, container, main, replace, until, vfs_of

TOP = pathlib.Path(__file__).resolve().parents[2]
DASHBOARD = json.loads((TOP / "deploy/monitoring/dashboard.json").read_text(encoding="utf-8"))


# Of this process alone: nobody else takes a port there between its choice and its use.
HOST = "127." + ".".join(map(str, os.getpid().to_bytes(3, "big")))


def free_port():
    with socket.socket() as s:
        s.bind((HOST, 0))
        return s.getsockname()[1]


def get(port, path, method="GET", **headers):
    """(status, text); None while nobody listens."""
    connection = http.client.HTTPConnection(HOST, port, timeout=PATIENCE)
    try:
        connection.request(method, path, headers=headers)
        answer = connection.getresponse()
        return answer.status, answer.read().decode()
    except ConnectionRefusedError:
        return None
    finally:
        connection.close()


class Served(Case):
    def serve(self, *kubelet_options, daemon=(), resource=VF, fixture="hgx-h100"):
        """(node, kubelet, daemon, port), registered and with its first list."""
        node, port = self.node(fixture), free_port()
        kubelet, d = node.start(*kubelet_options,
                                daemon=(f"--metrics-address={HOST}:{port}", *daemon),
                                resource=resource)
        until(lambda: get(port, "/healthz"), "it listens")
        return node, kubelet, d, port

    def scrape(self, port):
        status, text = get(port, "/metrics")
        self.assertEqual(status, 200)
        return Exposition(text)

    def fresh(self, port, true, what):
        """A scrape of which something is true; what is shown is up to a second old."""
        return until(lambda: next((m for m in [self.scrape(port)] if true(m)), None), what)


class Metrics(Served):
    def test_an_admission_is_counted_and_shown(self):
        node, kubelet, _, port = self.serve()
        machine = node.topo()
        before = self.fresh(
            port, lambda m: m.value("railmate_pool_registered", resource=VF) == 1, "registered")
        total = before.value("railmate_pool_devices", resource=VF, state="free")
        self.assertEqual(before.value("railmate_pool_registrations_total", resource=VF), 1)
        self.assertEqual(before.value("railmate_config_generation"), 1)
        admission = kubelet.admit("pod", f"main:{GPU}=2,{VF}=2", order="gpu-first")
        kubelet.ask("prestart pod")
        m = self.fresh(port, lambda m: m.value("railmate_pool_pairs_best_total", resource=VF) == 2,
                       "the pairs are counted")
        self.assertEqual(m.value("railmate_pool_devices", resource=VF, state="held"), 2)
        self.assertEqual(m.value("railmate_pool_devices", resource=VF, state="free"), total - 2)
        self.assertEqual(
            m.value("railmate_pool_calls_total", resource=VF, method="Allocate", code="OK"), 1)
        self.assertEqual(
            m.value("railmate_pool_calls_total", resource=VF, method="PreStartContainer",
                    code="OK"), 1)
        self.assertEqual(
            m.value("railmate_pool_call_duration_seconds_count", resource=VF, method="Allocate"), 1)
        self.assertEqual(m.value("railmate_pool_choices_total", resource=VF, gpus="known"), 1)
        self.assertEqual(m.value("railmate_pool_pairs_total", resource=VF, **{"class": "PIX"}), 2)
        shown = [dict(labels) for labels in m.all("railmate_vf_info")]
        self.assertEqual({v["vf"] for v in shown}, set(vfs_of(admission)))
        rdma = {v["pci"]: v["rdma"] for v in machine.topo["vfs"]}
        gpus = {machine.gpu(i) for i in container(admission)["devices"][GPU]}
        self.assertEqual({v["gpu"] for v in shown}, gpus)
        for v in shown:
            self.assertEqual((v["pod"], v["container"], v["class"], v["rdma"]),
                             ("pod", "main", "PIX", rdma[v["vf"]]))
        self.assertEqual(
            m.value("railmate_pool_free_pairs", resource=VF, **{"class": "PIX"}),
            before.value("railmate_pool_free_pairs", resource=VF, **{"class": "PIX"}) - 2)

    def test_a_choice_without_gpus_is_counted_as_unknown(self):
        _, kubelet, _, port = self.serve(daemon=("--gpu-plugin-socket=none",))
        kubelet.admit("pod", f"main:{VF}=2")
        m = self.fresh(port,
                       lambda m: m.value("railmate_pool_devices", resource=VF,
                                         state="allocated") == 2,
                       "allocated")
        self.assertEqual(m.value("railmate_pool_choices_total", resource=VF, gpus="unknown"), 1)

    def test_a_vf_that_was_taken_before_the_gpus_is_not_of_a_choice_with_known_ones(self):
        _, kubelet, _, port = self.serve("--pods-api")
        choices = lambda m: {gpus: m.value("railmate_pool_choices_total", resource=VF, gpus=gpus)
                             for gpus in ("known", "predicted", "unknown")}
        kubelet.admit("plain", f"main:{GPU}=1,{VF}=2", order="gpu-first")
        self.fresh(port, lambda m: choices(m) == {"known": 1, "predicted": 0, "unknown": 0}, "plain")
        # main gets the VF of setup, and one more beside its GPU.
        kubelet.admit("reuses", f"init:setup:{VF}=1", f"main:{GPU}=1,{VF}=2", order="gpu-first")
        self.fresh(port, lambda m: choices(m) == {"known": 1, "predicted": 0, "unknown": 2}, "reuses")

    def test_a_late_binding_is_counted_when_the_container_starts(self):
        node = self.node()
        config, port = node.path("late.json"), free_port()
        with open(config, "w", encoding="utf-8") as f:
            f.write(
                '{"resourceList": [{"resourcePrefix": "rdma", "resourceName": "vf", "selectors": {"isRdma": true},'
                ' "railmate": {"binding": "late"}}]}')
        kubelet, _ = node.start(daemon=(f"--metrics-address={HOST}:{port}", "--config-file",
                                        config, "--cdi=on"))
        kubelet.admit("pod", f"main:{GPU}=2,{VF}=2", order="gpu-first")
        until(lambda: get(port, "/healthz"), "it listens")
        m = self.fresh(port, lambda m: m.all("railmate_pool_info"), "the pool")
        self.assertEqual(m.value("railmate_pool_info", resource=VF), 1)
        self.assertEqual(sum(m.all("railmate_pool_pairs_total").values()), 0)
        kubelet.ask("prestart pod")
        m = self.fresh(port, lambda m: sum(m.all("railmate_pool_pairs_total").values()) == 2,
                       "bound")
        self.assertEqual(m.value("railmate_pool_pairs_best_total", resource=VF), 2)
        self.assertEqual({dict(labels)["class"] for labels in m.all("railmate_vf_info")}, {"PIX"})

    def test_any_accept_header_gets_text_0_0_4(self):
        _, _, _, port = self.serve()
        for accept in ("text/plain", "*/*", "application/openmetrics-text; version=1.0.0",
                       "application/vnd.google.protobuf; proto=io.prometheus.client.MetricFamily; encoding=delimited"):
            connection = http.client.HTTPConnection(HOST, port, timeout=PATIENCE)
            connection.request("GET", "/metrics", headers={"Accept": accept})
            answer = connection.getresponse()
            self.assertEqual(answer.getheader("Content-Type"), "text/plain; version=0.0.4; charset=utf-8", accept)
            Exposition(answer.read().decode())
            connection.close()

    @unittest.skipUnless(shutil.which("promtool"), "no promtool")
    def test_promtool_finds_nothing(self):
        _, kubelet, _, port = self.serve()
        kubelet.admit("pod", f"main:{GPU}=8,{VF}=8", order="gpu-first")
        kubelet.ask("prestart pod")
        run = subprocess.run(["promtool", "check", "metrics"], input=get(port, "/metrics")[1],
                             text=True, timeout=PATIENCE, capture_output=True)
        self.assertEqual((run.returncode, run.stdout, run.stderr), (0, "", ""))

    @unittest.skipUnless(shutil.which("prometheus"), "no prometheus")
    def test_prometheus_reads_what_the_text_has(self):
        node, kubelet, _, port = self.serve()
        kubelet.admit("pod", f"main:{GPU}=8,{VF}=8", order="gpu-first")
        kubelet.ask("prestart pod")
        self.fresh(port, lambda m: m.value("railmate_pool_pairs_best_total", resource=VF) == 8,
                   "all is counted")
        config, web = node.path("prometheus.yml"), free_port()
        with open(config, "w", encoding="utf-8") as f:
            f.write(
                "scrape_configs:\n- job_name: railmate\n  scrape_interval: 5s\n  static_configs:\n"
                f"  - targets: ['{HOST}:{port}']\n")
        with open(node.path("prometheus.log"), "wb") as log:
            server = subprocess.Popen([
                "prometheus", f"--config.file={config}", f"--web.listen-address={HOST}:{web}",
                f"--storage.tsdb.path={node.path('tsdb')}"
            ], stdin=subprocess.DEVNULL, stdout=log, stderr=log)
        self.addCleanup(server.wait)
        self.addCleanup(server.terminate)

        def query(text):
            answer = get(web, "/api/v1/query?" + urllib.parse.urlencode({"query": text}))
            return json.loads(answer[1])["data"]["result"] if answer and answer[0] == 200 else []

        sample = 'railmate_pool_call_duration_seconds_%s{method="Allocate"}'
        until(lambda: query(sample % "count"), "it has scraped")
        m = self.scrape(port)
        for part in ("count", "sum"):
            self.assertEqual(
                float(query(sample % part)[0]["value"][1]),
                m.value(f"railmate_pool_call_duration_seconds_{part}", resource=VF, method="Allocate"))
        self.assertEqual(len(query("railmate_vf_info")), 8)
        self.assertEqual(
            {s["metric"]["state"]: float(s["value"][1])
             for s in query("railmate_pool_devices")}, {
                 dict(labels)["state"]: value
                 for labels, value in m.all("railmate_pool_devices").items()
             })
        kubelet.admit("another", f"main:{VF}=1")
        panel, = (p for p in DASHBOARD["panels"] if p["title"].startswith("Duration of the"))
        expr = re.sub(r"\$__\w+", "1m", panel["targets"][0]["expr"])
        expr = re.sub(r"\$\w+", ".*", expr)
        until(
            lambda: [s for s in query(expr) if s["metric"]["method"] == "Allocate" and s["value"][1] != "NaN"],
            "the dashboard's query finds it")

    def test_counters_of_ports_are_those_of_sysfs(self):
        node = self.node()
        pf = next(v for v in node.topo().topo["pfs"] if v["rdma"])
        base = f"sys/class/infiniband/{pf['rdma']}/ports/1"
        for name, value in (("counters/port_xmit_data", 11), ("counters/symbol_error", 7),
                            ("counters/link_downed", 3), ("hw_counters/out_of_sequence",
                                                          5), ("hw_counters/lifespan", 10)):
            os.makedirs(os.path.join(node.root, base, os.path.dirname(name)), exist_ok=True)
            node.write(f"{base}/{name}", f"{value}\n")
        node.write(f"{base}/counters/not_a_number", "N/A (no PMA)\n")
        port = free_port()
        node.start(daemon=(f"--metrics-address={HOST}:{port}",))
        until(lambda: get(port, "/healthz"), "it listens")
        m = self.fresh(port, lambda m: m.all("railmate_port_up"), "the ports")
        self.assertEqual(m.value("railmate_port_transmitted_bytes_total", rdma=pf["rdma"]), 44)
        self.assertEqual(
            m.value("railmate_port_errors_total", rdma=pf["rdma"], counter="symbol_error"), 7)
        self.assertEqual(m.value("railmate_port_link_down_total", rdma=pf["rdma"]), 3)
        self.assertEqual(
            {
                dict(labels)["counter"]: value
                for labels, value in m.all("railmate_port_hw_counter_total").items()
                if dict(labels)["rdma"] == pf["rdma"]
            }, {"out_of_sequence": 5})
        self.assertEqual(m.value("railmate_port_up", rdma=pf["rdma"]), 1)

    def test_a_pf_that_fell_off_the_bus_is_a_port_that_is_down(self):
        node, kubelet, daemon, port = self.serve()
        first = next(f for f in node.topo().topo["pfs"] if f["netdev"] == "ibp24s0")
        vfs = {v["pci"] for v in node.topo().topo["vfs"] if node.topo().place[v["pci"]] == first["pci"]}
        held = vfs_of(kubelet.admit("pod", f"main:{VF}=64"))
        self.assertLess(vfs, set(held))
        kubelet.ask("prestart pod")
        labels = {"pf": first["pci"], "rdma": first["rdma"], "port": "1"}
        before = self.fresh(port, lambda m: any(dict(l)["pod"] == "pod" for l in m.all("railmate_vf_info")), "the pod is known")
        self.assertEqual(before.value("railmate_port_up", **labels), 1)

        def is_up(m):  # None: it is gone, and the daemon has not looked yet
            return next((up for shown, up in m.all("railmate_port_up").items()
                         if dict(shown).items() >= labels.items()), None)

        _, put_back = node.remove_pf("ibp24s0")
        daemon.child.send_signal(signal.SIGHUP)
        lost = self.fresh(port, lambda m: is_up(m) == 0, "it is down")
        hurt = {dict(l)["vf"] for l in lost.all("railmate_vf_info") if dict(l)["pf"] == first["pci"]}
        self.assertEqual(hurt, vfs)
        _, page = get(port, "/")
        page = page[page.find("Missing PFs"):]
        self.assertRegex(page[:page.find("</section>")], rf"{first['pci']}.*ibp24s0.*is gone from the PCI bus.*default/pod")
        put_back()
        daemon.child.send_signal(signal.SIGHUP)
        self.fresh(port, lambda m: is_up(m) == 1, "it is up again")
        self.assertNotIn("Missing PFs", get(port, "/")[1])

    def test_errors_of_held_vfs_are_those_of_their_own_devices(self):
        node, port = self.node(), free_port()
        for vf in node.topo().topo["vfs"]:
            base = f"sys/class/infiniband/{vf['rdma']}/ports/1/hw_counters"
            os.makedirs(os.path.join(node.root, base), exist_ok=True)
            node.write(f"{base}/out_of_sequence", "5\n")
            node.write(f"{base}/rx_write_requests",
                       "77\n")  # not one that says whom a bad link hurts
            node.write(f"{base}/packet_seq_err", "N/A\n")
        kubelet, _ = node.start(daemon=(f"--metrics-address={HOST}:{port}",))
        until(lambda: get(port, "/healthz"), "it listens")
        self.assertEqual(self.scrape(port).all("railmate_vf_hw_counter_total"), {})
        held = vfs_of(kubelet.admit("pod", f"main:{GPU}=2,{VF}=2", order="gpu-first"))
        m = self.fresh(port, lambda m: m.all("railmate_vf_hw_counter_total"), "they are counted")
        self.assertEqual(
            {
                tuple(dict(labels).values()): value
                for labels, value in m.all("railmate_vf_hw_counter_total").items()
            }, {("out_of_sequence", vf): 5
                for vf in held})
        self.assertEqual(m.all("railmate_vf_received_bytes_total"),
                         {})  # no machine that could be asked

    def test_a_kubelet_that_restarts_is_counted(self):
        _, kubelet, _, port = self.serve()
        kubelet.ask("restart")
        kubelet.wait(VF, 1)
        m = self.fresh(port,
                       lambda m: m.value("railmate_pool_kubelet_restarts_total", resource=VF) > 0,
                       "it is counted")
        self.assertEqual(m.value("railmate_pool_kubelet_restarts_total", resource=VF), 1)
        self.assertEqual(m.value("railmate_pool_registrations_total", resource=VF), 2)

    def test_a_daemon_that_is_stopped_is_neither_a_crash_nor_a_leftover(self):
        _, _, d, port = self.serve()
        with concurrent.futures.ThreadPoolExecutor(8) as pool:
            futures = [pool.submit(get, port, "/metrics") for _ in range(50)]
            self.assertEqual(d.end(), 0, d.stderr())
            for future in futures:
                try:
                    answer = future.result()
                except (OSError, http.client.HTTPException):
                    continue
                self.assertTrue(answer is None or answer[0] == 200)


class Probes(Served):
    def not_ready(self, port, why):
        until(lambda: (a := get(port, "/readyz")) and a[0] == 503 and why in a[1], why)

    def test_ready_is_one_that_is_registered(self):
        node, port = self.node(), free_port()
        node.start_daemon(f"--metrics-address={HOST}:{port}")
        until(lambda: get(port, "/healthz"), "it listens")
        self.assertEqual(get(port, "/healthz"), (200, "ok\n"))
        until(
            lambda: get(port, "/readyz")[1].startswith(
                "[+]config ok\n[-]registered rdma/vf failed: "), "it serves")
        self.assertEqual(get(port, "/readyz")[0], 503)
        kubelet = node.start_kubelet()
        kubelet.wait(VF, 1)
        status, text = until(lambda: next((a for a in [get(port, "/readyz")] if a[0] == 200), None),
                             "it is ready")
        self.assertEqual(
            text.splitlines(),
            ["[+]config ok", f"[+]registered {VF} ok", "[+]records ok", "[+]ledger ok",
             "[+]pods ok", "[+]gpus ok", "[+]admissions ok"])

    def test_a_ledger_that_cannot_be_written_is_named(self):
        node = self.node()
        with open(node.state_dir, "w", encoding="utf-8"):
            pass  # no directory
        port = free_port()
        node.start(daemon=(f"--metrics-address={HOST}:{port}",))
        self.not_ready(port, "[-]ledger failed: it cannot be written to disk")
        m = self.scrape(port)
        self.assertEqual(
            (m.value("railmate_ledger_failing"), m.value("railmate_ledger_persistent")), (1, 0))

    def test_a_configuration_that_is_refused_is_named_until_it_is_mended(self):
        node, port = self.node(), free_port()
        config = node.path("config.json")
        good = '{"resourceList": [{"resourcePrefix": "rdma", "resourceName": "vf", "selectors": {"isRdma": true}}]}'
        replace(config, good)
        node.start(daemon=(f"--metrics-address={HOST}:{port}", "--config-file", config))
        until(lambda: (get(port, "/readyz") or [0])[0] == 200, "it is ready")
        replace(config, '{"resourceList": 7}')
        until(lambda: get(port, "/readyz")[0] == 503, "it is refused")
        self.assertRegex(
            get(port, "/readyz")[1], r"\A\[-\]config failed: .*resourceList.*\n\[\+\]registered")
        m = self.scrape(port)
        self.assertEqual(
            (m.value("railmate_config_refused"), m.value("railmate_config_generation")), (1, 1))
        self.assertGreaterEqual(m.value("railmate_config_errors"), 1)
        replace(config, good.replace('"vf"', '"other"'))
        until(lambda: get(port, "/readyz")[0] == 200, "it is mended")
        m = self.fresh(
            port, lambda m: m.value("railmate_config_generation") == 2 and 1 in [
                value for labels, value in m.all("railmate_pool_registered").items()
                if dict(labels)["resource"] == "rdma/other"
            ], "the next one is in use")
        self.assertEqual((m.value("railmate_config_refused"), m.value("railmate_config_errors")),
                         (0, 0))

    def test_what_is_left_out_of_the_configuration_of_the_start_is_named_until_it_is_mended(self):
        node, port = self.node(), free_port()
        config = node.path("config.json")
        good = {"resourcePrefix": "rdma", "resourceName": "vf", "selectors": {"isRdma": True}}
        bad = {"resourcePrefix": "rdma", "resourceName": "other", "selectors": {"vendors": 7}}
        replace(config, json.dumps({"resourceList": [good, bad]}))
        node.start(daemon=(f"--metrics-address={HOST}:{port}", "--config-file", config))
        self.not_ready(port, "\n[+]registered rdma/vf ok\n")  # it is served, though
        self.assertRegex(get(port, "/readyz")[1], r"\A\[-\]config failed: .*config.json:1: .*vendors.*\n")
        m = self.scrape(port)
        self.assertEqual(
            (m.value("railmate_config_errors"), m.value("railmate_config_refused")), (1, 0))
        replace(config, json.dumps({"resourceList": [good]}))
        until(lambda: get(port, "/readyz")[0] == 200, "it is mended")
        self.assertEqual(self.scrape(port).value("railmate_config_errors"), 0)

    def test_a_daemon_that_waits_for_another_one_says_so_when_it_has_the_port(self):
        node, first, second = self.node(), free_port(), free_port()
        kubelet = node.start_kubelet()
        old = node.start_daemon(f"--metrics-address={HOST}:{first}")
        kubelet.wait(VF, 1)
        node.start_daemon(f"--metrics-address={HOST}:{second}")
        self.not_ready(second, "another railmated has not ended")
        self.assertEqual(get(second, "/healthz")[0], 200)
        old.end()
        until(lambda: get(second, "/readyz")[0] == 200, "it took over")


class Address(Served):
    def test_two_instances_do_not_fight_for_the_port(self):
        node, port = self.node(), free_port()
        kubelet = node.start_kubelet()
        old = node.start_daemon(f"--metrics-address={HOST}:{port}")
        until(lambda: get(port, "/healthz"), "the old one listens")
        kubelet.wait(VF, 1)
        new = node.start_daemon(f"--metrics-address={HOST}:{port}")
        time.sleep(2.5)  # it tries again
        old.end()
        kubelet.wait(VF, 1)
        until(lambda: get(port, "/healthz"), "the new one listens")
        until(lambda: "metrics are served" in new.stderr(), "it says so")
        self.assertNotIn(" warning ", new.stderr())

    def test_an_address_that_another_program_has_is_one_warning(self):
        with socket.socket() as other:
            other.bind((HOST, 0))
            other.listen()
            port = other.getsockname()[1]
            _, daemon = self.node().start(daemon=(f"--metrics-address={HOST}:{port}",))
            until(lambda: "metrics cannot be served" in daemon.stderr(), "the warning")
            time.sleep(2.5)  # it tries again
            self.assertEqual(len(re.findall(" warning web: ", daemon.stderr())), 1, daemon.stderr())
        until(lambda: get(port, "/healthz"), "it listens")

    def test_none_is_no_port(self):
        node = self.node()
        _, d = node.start(daemon=("--metrics-address=none",))
        with open(f"/proc/{d.pid}/net/tcp", encoding="ascii") as f:
            inodes = {line.split()[9] for line in f.read().splitlines()[1:]}
        links = [os.readlink(f"/proc/{d.pid}/fd/{fd}") for fd in os.listdir(f"/proc/{d.pid}/fd")]
        self.assertFalse(inodes & {link[8:-1] for link in links if link.startswith("socket:")})


class Hostile(Served):
    def test_silent_clients_and_floods_leave_admissions_alone(self):
        _, kubelet, d, port = self.serve()
        silent = []
        for _ in range(100):
            s = socket.create_connection((HOST, port), PATIENCE)
            s.sendall(b"GET /metrics HTTP/1.1\r\nX: ")
            silent.append(s)
        self.addCleanup(lambda: [s.close() for s in silent])
        fds = d.fds()
        with concurrent.futures.ThreadPoolExecutor(16) as pool:
            answers = list(pool.map(lambda _: get(port, "/metrics"), range(200)))
            admission = kubelet.admit("pod", f"main:{GPU}=1,{VF}=1", order="gpu-first")
        self.assertEqual(admission["event"], "admitted")
        self.assertEqual({a[0] for a in answers}, {200})
        self.assertLess(fds, 120)

    def test_other_methods_and_paths_are_refused(self):
        _, _, _, port = self.serve()
        self.assertEqual(get(port, "/metrics", "POST")[0], 405)
        self.assertEqual(get(port, "/etc/passwd")[0], 404)
        self.assertEqual(get(port, "/metrics/")[0], 404)
        for path in ("/metrics%00", "/metrics%00/x", "/%00", "/%6detrics"):
            self.assertEqual(get(port, path)[0], 404, path)
        for header in ({"Content-Length": "0"}, {"Transfer-Encoding": "chunked"}):
            self.assertEqual(get(port, "/metrics", **header)[0], 400, header)
        self.assertEqual(get(port, "/metrics", "HEAD"), (200, ""))


if __name__ == "__main__":
    main()
