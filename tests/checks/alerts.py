#!/usr/bin/python3
"""deploy/monitoring: alerts and the dashboard ask for metrics that there are; each alert has a test
and a place in the runbook.
With promtool (Debian: prometheus) the rules are checked, and tested, by it."""
import copy
import json
import pathlib
import re
import shutil
import subprocess
import tempfile
import unittest

import yaml

TOP = pathlib.Path(__file__).resolve().parents[2]
HERE = pathlib.Path(__file__).resolve().parent
RULES = yaml.safe_load((TOP / "deploy/monitoring/prometheusrule.yaml").read_text())
TESTS = yaml.safe_load((HERE / "alerts_test.yaml").read_text())
DASHBOARD = json.loads((TOP / "deploy/monitoring/dashboard.json").read_text())


def known():
    """As a scrape has them."""
    text = (TOP / "pkg/status/metrics.c").read_text()
    suffix = {
        "COUNTER": ("_total", ), "INFO": ("_info", ), "HISTOGRAM": ("", "_bucket", "_sum", "_count"),
        "GAUGE": ("", )
    }
    return {
        name + end
        for name, kind in re.findall(r'{ "(\w+)",\s+EXPOSITION_(\w+),', text)
        for end in suffix[kind]
    }


def named(expr):
    return set(re.findall(r"\b(?:railmate|process)_\w+", expr))


class Alerts(unittest.TestCase):
    def setUp(self):
        self.rules = {
            rule["alert"]: rule
            for group in RULES["spec"]["groups"]
            for rule in group["rules"]
        }

    def test_they_ask_for_metrics_that_there_are(self):
        self.assertTrue(self.rules)
        for name, rule in self.rules.items():
            self.assertTrue(named(rule["expr"]), name)
            self.assertLessEqual(named(rule["expr"]), known(), name)

    def test_the_chart_has_the_same(self):
        chart = TOP / "deploy/helm/railmate/files/alerts.yaml"
        self.assertEqual(yaml.safe_load(chart.read_text()), RULES["spec"])

    def test_each_has_a_section_of_the_runbook(self):
        page = (TOP / "docs/troubleshooting.md"
                ).read_text().partition("\n## Alerts\n")[2].partition("\n## ")[0]
        sections = dict(re.findall(r"^### (Railmate\w+)\n(.*?)(?=^#|\Z)", page, re.M | re.S))
        self.assertEqual(list(sections), list(self.rules))
        for name, text in sections.items():
            for label in ("Meaning:", "Look:", "Do:"):
                self.assertRegex(text, rf"(?m)^- {label} \S", name)
            self.assertEqual(self.rules[name]["annotations"]["runbook_url"],
                             f"docs/troubleshooting.md#{name.lower()}")
            self.assertTrue(self.rules[name]["annotations"]["description"])

    def test_each_is_tested_to_fire(self):
        fires = {
            t["alertname"]
            for test in TESTS["tests"]
            for t in test["alert_rule_test"]
            if t.get("exp_alerts")
        }
        self.assertEqual(fires, set(self.rules))

    def with_what_varies(self):
        """promtool wants every annotation in a test: constant ones say nothing there."""
        spec = copy.deepcopy(RULES["spec"])
        for rule in spec["groups"][0]["rules"]:
            rule["annotations"] = {
                name: text for name, text in rule["annotations"].items() if "{{" in text
            }
        return spec

    @unittest.skipUnless(shutil.which("promtool"), "no promtool")
    def test_promtool_tests_them(self):
        with tempfile.TemporaryDirectory() as folder:
            folder = pathlib.Path(folder)
            (folder / "rules.yaml").write_text(yaml.safe_dump(self.with_what_varies()))
            (folder / "alerts_test.yaml").write_text((HERE / "alerts_test.yaml").read_text())
            for words in (("check", "rules", "rules.yaml"), ("test", "rules", "alerts_test.yaml")):
                run = subprocess.run(["promtool", *words], cwd=folder, capture_output=True,
                                     text=True, timeout=120)
                self.assertEqual(run.returncode, 0, run.stdout + run.stderr)


SOURCE = {"type": "prometheus", "uid": "${datasource}"}
VARIABLES = {"__rate_interval", "__range", "__all", "__url_time_range"}
VARIABLES |= {variable["name"] for variable in DASHBOARD["templating"]["list"]}


class Scraping(unittest.TestCase):
    def test_the_charts_service_monitor_is_the_same(self):
        """hack/e2e charts asks Helm, too."""
        template = (TOP / "deploy/helm/railmate/templates/metrics.yaml").read_text()
        part, = [t for t in template.split("\n---\n") if "kind: ServiceMonitor" in t]
        part = re.sub(r"(?ms)^ *{{- with \.Values\.metrics\.interval }}.*?{{- end }}\n", "", part)  # unless it is set
        spec = part[part.index("\nspec:"):part.index("{{- end }}")]
        ours = yaml.safe_load((TOP / "deploy/monitoring/servicemonitor.yaml").read_text())
        self.assertEqual(yaml.safe_load(spec.replace("{{ .Values.name }}", "railmate"))["spec"],
                         ours["spec"])

    def test_it_finds_the_service(self):
        folder = TOP / "deploy/components/metrics"
        service = yaml.safe_load((folder / "service.yaml").read_text())
        labels = yaml.safe_load((folder / "kustomization.yaml").read_text())["labels"][0]["pairs"]
        ours = yaml.safe_load((TOP / "deploy/monitoring/servicemonitor.yaml").read_text())
        self.assertLessEqual(ours["spec"]["selector"]["matchLabels"].items(), labels.items())
        self.assertIn(ours["spec"]["endpoints"][0]["port"],
                      [port["name"] for port in service["spec"]["ports"]])
        self.assertEqual(ours["metadata"]["namespace"], service["metadata"]["namespace"])


class Documents(unittest.TestCase):
    def test_what_a_cluster_has_to_detect_is_detected(self):
        text = (TOP / "docs/metrics.md").read_text()
        rows = re.findall(r"^\| (?!to be|-)([^|]+) \| ([^|]+) \| ([^|]+) \|$",
                          text.partition("\n## What a cluster")[2].partition("\n## ")[0], re.M)
        alerts = {rule["alert"] for rule in RULES["spec"]["groups"][0]["rules"]}
        self.assertGreater(len(rows), 10)
        for what, metrics, alert in rows:
            self.assertLessEqual(named(metrics), known(), what)
            self.assertLessEqual(set(re.findall(r"Railmate\w+", alert)), alerts, what)
            self.assertEqual(bool(named(metrics)), "DCGM" not in metrics, what)

    @unittest.skipUnless(shutil.which("promtool"), "no promtool")
    def test_promtool_reads_the_scrape_configuration(self):
        text, = re.findall(r"```yaml\n(.*?)```", (TOP / "docs/metrics.md").read_text(), re.S)
        config = yaml.safe_load(text)
        del config["scrape_configs"][0]["kubernetes_sd_configs"]  # Debian's is built without
        with tempfile.NamedTemporaryFile("w", suffix=".yaml") as file:
            yaml.safe_dump(config, file)
            file.flush()
            run = subprocess.run(["promtool", "check", "config", "--syntax-only", file.name],
                                 capture_output=True, text=True, timeout=60)
        self.assertEqual(run.returncode, 0, run.stdout + run.stderr)


class Dashboard(unittest.TestCase):
    """By the rules of Grafana's schema; integration/dashboard asks its queries."""
    def setUp(self):
        self.panels = DASHBOARD["panels"]
        self.asking = [panel for panel in self.panels if panel["type"] != "row"]
        self.exprs = [target["expr"] for panel in self.asking for target in panel["targets"]]
        self.exprs += [note["expr"] for note in DASHBOARD["annotations"]["list"]]

    def test_it_asks_for_metrics_that_there_are(self):
        self.assertGreater(len(self.exprs), 40)
        for expr in self.exprs:
            self.assertTrue(named(expr) or expr.startswith("ALERTS{"), expr)
            self.assertLessEqual(named(expr), known(), expr)

    @unittest.skipUnless(shutil.which("promtool"), "no promtool")
    def test_promtool_reads_its_queries(self):
        rules = [{"record": f"x{n}",
                  "expr": re.sub(r"\$__\w+", "5m", expr)} for n, expr in enumerate(self.exprs)]
        with tempfile.NamedTemporaryFile("w", suffix=".yaml") as file:
            yaml.safe_dump({"groups": [{"name": "dashboard", "rules": rules}]}, file)
            file.flush()
            run = subprocess.run(["promtool", "check", "rules", file.name], capture_output=True,
                                 text=True, timeout=60)
        self.assertEqual(run.returncode, 0, run.stdout + run.stderr)

    def test_it_is_of_no_grafana_in_particular(self):
        self.assertNotIn("id", DASHBOARD)
        self.assertTrue(DASHBOARD["uid"])
        owners = self.asking + DASHBOARD["annotations"]["list"]
        owners += [v for v in DASHBOARD["templating"]["list"] if v["type"] == "query"]
        for owner in owners:
            self.assertEqual(owner["datasource"], SOURCE, owner)
        self.assertEqual(DASHBOARD["templating"]["list"][0]["name"], "datasource")

    def test_its_variables_are_there_and_used(self):
        text = json.dumps(DASHBOARD)
        self.assertEqual({a or b for a, b in re.findall(r"\$(?:(\w+)|\{(\w+)\})", text)}, VARIABLES)
        for expr in self.exprs:
            self.assertIn('instance=~"$instance"', expr)
            self.assertNotRegex(expr, r"rate\([^\[]*\[(?!\$__rate_interval\])")


if __name__ == "__main__":
    unittest.main(verbosity=2)
