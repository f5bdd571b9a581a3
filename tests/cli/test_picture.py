"""railmatectl topo --svg from its users' side."""
import sys
import unittest

from program import CTL, FIXTURES, ProgramTest, machine, run

sys.path.insert(0, str(FIXTURES))
import picture

HGX = "hgx-h100"
HELD = ("--control-socket=none", "--state-dir", FIXTURES / HGX)

def svg(name, *args):
    done = run(CTL, "topo", "--svg", "--root", machine(name), *args)
    assert done.returncode == 0, done.stderr
    return done.stdout


class Picture(ProgramTest):
    def topo(self, name):
        return self.one_object(run(CTL, "topo", "--json", "--root", machine(name)))

    def test_a_wrong_command_line_is_refused(self):
        for other in ("--json", "--nccl-xml"):
            self.refused(run(CTL, "topo", "--svg", other, "--root", machine(HGX)), 2, "one at a time")
        for other in ("--control-socket=none", "--state-dir=/nowhere"):
            self.refused(run(CTL, "topo", other, "--root", machine(HGX)), 2, "for --svg")

    def test_shows_the_pods_that_hold_vfs(self):
        top = picture.check(svg(HGX, *HELD), self.topo(HGX))
        told = picture.cells(top)
        self.assertEqual(told["0000:40:00.1"], "0000:40:00.1 mlx5_20: ml/train-0")
        self.assertEqual(told["0000:40:00.2"], "0000:40:00.2 mlx5_21")
        for pod, vfs in (("ml/train-0", "4 VFs; GPU 0, 1, 2, 3"), ("inference/chat-6d9f8-x2kpl", "1 VF; GPU 6")):
            self.assertIn(pod, picture.texts(top))
            self.assertIn(vfs, picture.texts(top))
        self.assertIn("A", picture.texts(picture.tile(top, "0000:43:00.0")))
        self.assertIn("8 VFs, 2 held", picture.texts(picture.tile(top, "0000:dc:00.0")))

    def test_the_ledger_is_named_when_the_daemon_is_not_asked(self):
        done = run(CTL, "topo", "--svg", "--root", machine(HGX), *HELD)
        self.assertIn("railmated was not asked; this is what its ledger in", done.stderr)

    def test_another_machine_is_not_asked_for_this_ones_pods(self):
        done = run(CTL, "topo", "--svg", "--root", machine(HGX))
        self.assertEqual(done.stderr, "")
        self.assertNotIn("held", done.stdout)

    def test_without_daemon_and_ledger_there_is_a_picture(self):
        done = run(CTL, "topo", "--svg", "--root", machine(HGX), "--control-socket=/nowhere/socket", "--state-dir=/nowhere")
        self.assertEqual(done.returncode, 0)
        self.assertIn("the picture does not show who holds VFs: railmated is not there", done.stderr)
        self.assertEqual(done.stdout, svg(HGX))

    def test_of_a_broken_ledger_there_is_a_picture(self):
        folder = self.write("{", "ledger.json").parent
        done = run(CTL, "topo", "--svg", "--root", machine(HGX), "--control-socket=none", "--state-dir", folder)
        self.assertEqual((done.returncode, done.stdout), (0, svg(HGX)))
        self.assertIn("ledger.json", done.stderr)


if __name__ == "__main__":
    unittest.main()
