"""railmated's command line and configuration, before it serves anything."""
import json
import os
import tempfile
import unittest

from program import DAEMON, ProgramTest, run

GOOD = {
    "resourceList": [{
        "resourceName": "rail0", "resourcePrefix": "my.org", "selectors": {"isRdma": True}
    }, {"resourceName": "rail1", "selectors": [{"vendors": ["15b3"]}]}]
}


class CommandLine(ProgramTest):
    def check(self, *argv, config=GOOD):
        text = config if isinstance(config, (str, bytes)) else json.dumps(config, indent=1)
        return run(DAEMON, "--check-config", "--config-file", self.write(text), *argv)

    def test_check_config_prints_the_resources(self):
        done = self.check("--resource-prefix", "acme.org")
        self.assertEqual((done.returncode, done.stdout), (0, "my.org/rail0\nacme.org/rail1\n"),
                         done.stderr)

    def test_check_config_reads_a_pipe_which_the_daemon_does_not(self):
        for data, code in ((json.dumps(GOOD), 0), ("[", 3), ("", 3), (" " * (9 << 20), 3)):
            with self.subTest(data[:9]):
                done = run(DAEMON, "--check-config", "--config-file", "/dev/stdin", stdin=None, input=data)
                self.assertEqual(done.returncode, code, done.stderr)
                self.assertEqual(done.stdout.count("\n"), 2 * (code == 0))
                self.assertIn("/dev/stdin" if code else "", done.stderr)
        done = run(DAEMON, "--config-file", "/dev/stdin", stdin=None, input=json.dumps(GOOD))
        self.refused(done, 3, "/dev/stdin is not a regular file")

    def test_default_prefix_is_the_peers(self):
        self.assertIn("intel.com/rail1", self.check().stdout)

    def test_takes_the_peers_spellings(self):
        path = self.write(json.dumps(GOOD))
        for argv in ([f"-config-file={path}"], ["-config-file", path], [f"--config-file={path}"], [
                f"--config-file={path}", "--log-level=10", "--resource-prefix=x.org"
        ], [f"--config-file={path}", "--log-dir=sriovdp", "-v=10", "-logtostderr"
            ], [f"--config-file={path}", "-v", "10", "-alsologtostderr=true", "--use-cdi=false"]):
            with self.subTest(argv=argv):
                done = run(DAEMON, "--check-config", *argv)
                self.assertEqual(done.returncode, 0, done.stderr)

    def test_an_empty_value_counts_as_not_given(self):
        done = self.check("--resource-prefix=", "--log-level=", "--registration=", "--state-dir",
                          "", "-v=", "--use-cdi=")
        self.assertEqual((done.returncode, done.stdout), (0, "my.org/rail0\nintel.com/rail1\n"),
                         done.stderr)

    def test_use_cdi_is_accepted_and_said_once(self):
        for argv in (["--use-cdi"], ["-use-cdi=true"], ["--use-cdi", "--use-cdi"]):
            done = self.check(*argv)
            self.assertEqual((done.returncode, done.stderr.count("--use-cdi")), (0, 1), done.stderr)
            self.assertIn("same device nodes", done.stderr)
        self.assertNotIn("--use-cdi", self.check("--use-cdi=false").stderr)

    def test_log_format_json_is_an_object_per_line(self):
        for line in self.check("--use-cdi", "--log-format=json").stderr.splitlines():
            said = json.loads(line)
            self.assertEqual(list(said)[:4], ["time", "level", "subsystem", "message"])
        self.assertEqual((said["level"], said["subsystem"]), ("info", "daemon"))
        self.assertRegex(said["time"], r"^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$")

    def test_wrong_command_lines_exit_2(self):
        for argv in (["--nonsense"], ["extra"], ["--registration", "maybe"], [
                "--pod-resources", "maybe"
        ], ["--rescan", "soon"], ["--rescan", "-1"], ["--pod-resources-timeout", "0"], [
                "--pod-resources-timeout", "a while"
        ], ["--log-level", "loud"], ["--log-format", "xml"], ["--use-cdi=perhaps"], ["--root"]):
            with self.subTest(argv=argv):
                self.refused(run(DAEMON, *argv), 2)

    def test_refused_configurations_exit_3_with_one_sentence(self):
        cases = {
            "{": "",
            "[]": "must be an object",
            '{"resourceList": []}': "resourceList",
            '{"resourceList": [{"resourceName": "a b"}]}': "a b",
            '{"resourceList": [{"resourceName": 7}]}': "resourceName",
            '{"resourceList": [{"resourceName": "a"}, {"resourceName": "a"}]}': "intel.com/a",
            '{"resourceList": [{"resourceName": "a", "selectors": {"pfNames": ["x#5-2"]}}]}': "x#5-2",
            '{"resourceList": [{"resourceName": "a", "railmate": {"gid": "fixed"}}]}': "gid",
            "x" * (10 << 20): "larger than",
        }
        for text, word in cases.items():
            with self.subTest(text=text[:60]):
                self.refused(self.check(config=text), 3, word, "config.json")

    def test_what_is_left_out_fails_a_check_and_a_strict_start(self):
        half = {
            "resourceList": [{"resourceName": "fpga", "deviceType": "accelerator"},
                             {"resourceName": "a"}]
        }
        self.refused(self.check(config=half), 3, "accelerator", "the pool is left out")
        path = self.write(json.dumps(half))
        self.refused(run(DAEMON, "--config-file", path, "--strict-config"), 3, "accelerator")
        bad = {"resourceList": [{"resourceName": "a", "railmate": {"env": {"NCCL_IB_TC": "256"}}}]}
        self.refused(self.check(config=bad), 3, "NCCL_IB_TC", "the variable is left out")

    def test_a_refused_file_is_told_all_that_is_wrong(self):
        done = self.check(config={
            "resourceList": [{"resourceNme": "a", "selectors": {"isRdma": 1}}], "railmte": {}
        })
        self.assertEqual((done.returncode, done.stdout), (3, ""))
        lines = done.stderr.splitlines()
        self.assertEqual(len(lines), 3)
        for line, word in zip(lines,
                              ("isRdma", "did you mean 'resourceName'", "did you mean 'railmate'")):
            self.assertIn(word, line)

    def test_an_unknown_variable_is_taken_with_a_warning(self):
        done = self.check(
            "--strict-config", config={
                "resourceList": [{
                    "resourceName": "a", "selectors": {"isRdma": True},
                    "railmate": {"env": {"NCCL_OF_NEXT_YEAR": "1"}}
                }]
            })
        self.assertEqual((done.returncode, done.stdout), (0, "intel.com/a\n"))
        self.assertIn("NCCL_OF_NEXT_YEAR", done.stderr)

    def test_a_pool_that_leaves_its_binding_open_is_told(self):
        for railmate, told in (({}, True), ({"binding": "auto"}, True), ({"binding": "early"},
                                                                         False), (None, False)):
            done = self.check(
                config={"resourceList": [{"resourceName": "a", "railmate": railmate}]})
            self.assertEqual((done.returncode, done.stdout), (0, "intel.com/a\n"))
            self.assertEqual(
                "binding auto is decided when railmated starts on a node resource=intel.com/a"
                in done.stderr, told)

    def test_an_unknown_key_warns_and_goes_on(self):
        done = self.check(config={"resourceList": [{"resourceName": "a", "sriovMode": True}]})
        self.assertEqual((done.returncode, done.stdout), (0, "intel.com/a\n"))
        self.assertIn("sriovMode", done.stderr)

    def test_misspelt_selectors_and_names_that_hide_each_other_are_errors(self):
        good = {"resourceName": "a", "selectors": {"isRdma": True}}
        for bad, word in (({"resourceName": "b", "selector": {"isRdma": True}}, "every device"),
                          ({"resourceName": "A", "selectors": {"isRdma": True}}, "same variables")):
            done = self.check(config={"resourceList": [good, bad]})
            self.assertEqual(done.returncode, 3)
            error = done.stderr.splitlines()[-1]
            self.assertIn(word, error)
            self.assertIn("the pool is left out", error)

    def test_a_configuration_may_begin_with_a_byte_order_mark(self):
        text = json.dumps({"resourceList": [{"resourceName": "a", "selectors": {}}]})
        done = run(DAEMON, "--check-config", "--config-file", self.write("\ufeff" + text))
        self.assertEqual((done.returncode, done.stdout), (0, "intel.com/a\n"))

    def test_a_missing_config_file_is_named(self):
        self.refused(run(DAEMON, "--config-file", "/no/such/config.json"), 3,
                     "/no/such/config.json")

    @unittest.skipUnless(os.geteuid() == 0, "makes a mount")
    def test_specs_that_no_runtime_would_see_are_not_written(self):
        """In an image without the host's CDI directory. The image is this machine's root under an
        overlay."""
        script = """
            mount --make-rprivate / && mount -t tmpfs none "$1" && cd "$1" && mkdir up work image &&
            mount -t overlay none -o lowerdir=/,upperdir=up,workdir=work image && cp "$2" image/daemon && cp "$3" image/config.json &&
            rm -rf image/var/run image/run && mkdir -p image/run && ln -s ../run image/var/run || exit 99
            $4
            exec chroot image /daemon --config-file /config.json --run-dir none --root /no/such/root
        """
        late = {"resourceList": [{**GOOD["resourceList"][0], "railmate": {"binding": "late"}}]}
        with_mount = "mkdir image/run/cdi && mount -t tmpfs none image/run/cdi"
        for config, extra, told in ((late, "", True), (late, with_mount, False), (GOOD, "", False)):
            with self.subTest(config=config, extra=extra), tempfile.TemporaryDirectory() as top:
                done = run("unshare", "-m", "bash", "-c", script.replace("$4", extra), "-", top,
                           DAEMON, self.write(json.dumps(config)))
                if done.returncode == 99:
                    self.skipTest("no overlay over / here: " + done.stderr)
                self.assertEqual(done.returncode, 1, done.stderr)
                self.assertEqual(
                    "the CDI directory is not a folder of the host: pools that bind late are not served"
                    in done.stderr, told, done.stderr)

    def test_a_root_that_is_not_there_ends_it(self):
        self.assertEqual(run(DAEMON, "--root", "/no/such/root").returncode, 1)

    def test_help_and_version(self):
        self.assertIn("usage: railmated", run(DAEMON, "--help").stdout)
        self.assertRegex(run(DAEMON, "-version").stdout, r"^railmated \d+\.\d+\.\d+\n$")


if __name__ == "__main__":
    unittest.main()
