"""
Faults of every kind in the middle of pods that come and go, in random order, and what each did: VFs
in two live containers, containers harmed, pods refused, the time until a pod runs again. Three in
every run of the bed; `run --storm N` makes N for each binding and prints the table of
tests/bench/RESULTS.md. Beside what faults.py asks of a cluster: ledger(), lose_sockets().
Standard library only.
"""
import dataclasses
import os
import random
import signal
import statistics
import time

from failures import DEAF, refused
from faults import check_nothing_is_stuck, check_specs, either, held_by, live_of, one_owner_each
from scenarios import check, container, pod, until

LENGTH = int(os.environ.get("E2E_STORM", "3"))
SEED = int(os.environ.get("E2E_STORM_SEED", "1"))
SIZES = (1, 1, 1, 2, 2, 4, 8)  # VFs of a pod
RESIDENTS = 4
MATURE = 3  # seconds in which what is taken for gone is given up


@dataclasses.dataclass
class Row:
    """What the faults of one kind did."""
    tries: int = 0
    harmed: int = 0
    refused_while: int = 0
    refused_after: int = 0
    seconds: list = dataclasses.field(default_factory=list)

    def text(self, name):
        return (f"{name:28} {self.tries:5} {self.harmed:6} {self.refused_while:7} {self.refused_after:7}"
                f"   {statistics.median(self.seconds):4.1f}, {max(self.seconds):4.1f}")


HEAD = f"{'fault':28} tries harmed refused: while, after   pod runs after s: median, most"


class Storm:
    """On one node, until it is over."""

    def __init__(self, c, fill):
        self.c, self.fill, self.draw = c, fill, random.Random(SEED)
        self.rows, self.residents = {}, []

    def some_vfs(self):
        return container("main", 0, self.draw.choice(SIZES))

    def churn(self):
        """Some go, others come; all that are there run."""
        going = self.draw.sample(self.residents, min(2, len(self.residents)))
        self.c.end(*going)
        self.residents = [name for name in self.residents if name not in going]
        while len(self.residents) < RESIDENTS:
            self.residents.append(self.c.run(self.some_vfs()))

    def kill_railmated(self):
        self.c.stop_railmate(self.c.newest_railmate(), "SIGKILL")

    # --- the faults ---

    def railmated_killed(self):
        self.kill_railmated()
        self.c.start_railmate()

    def kubelet_killed(self):
        self.c.kubelet_dies()
        self.c.start_kubelet()

    def both_killed(self):
        self.c.kubelet_dies()
        self.kill_railmated()
        for start in self.draw.sample([self.c.start_kubelet, self.c.start_railmate], 2):
            start()

    def railmated_stopped(self):
        """Longer than its watchdog waits, too."""
        name = self.c.newest_railmate()
        self.c.signal_railmate(name, "SIGSTOP")
        time.sleep(self.draw.choice([1, 5, 12]))
        self.c.signal_railmate(name, "SIGCONT")

    def sockets_removed(self):
        self.c.lose_sockets()

    def ledger_spoilt(self):
        """Cut, zeros, empty, noise, or an old one, when railmated starts."""
        old = until(self.c.ledger().exists, "a ledger") and self.c.ledger().read_bytes()
        self.churn()
        self.kill_railmated()
        new = self.c.ledger().read_bytes()
        self.c.ledger().write_bytes(
            self.draw.choice([
                new[:len(new) // 2],
                bytes(len(new)), b"",
                self.draw.randbytes(len(new)), old
            ]))
        self.c.start_railmate()

    def ledger_lost(self):
        self.kill_railmated()
        self.c.lose_ledger()
        self.c.start_railmate()

    def disk_full(self):
        """Pods come and go meanwhile, and railmated is killed before there is space again."""
        self.fill()
        self.churn()
        self.kill_railmated()
        (self.c.ledger().parent / "filling").unlink()
        self.c.start_railmate()

    def specs_deleted(self):
        self.c.lose_specs()

    def specs_and_ledger_lost(self):
        """At once. railmated has the VFs from map.json; it writes a spec when its container starts
        again."""
        self.c.lose_specs()
        self.ledger_lost()
        self.c.wait_registered()
        there = held_by(self.c, *self.residents)
        for pid, _, _ in there.values():
            os.kill(pid, signal.SIGKILL)

        def again():
            now = held_by(self.c, *self.residents)
            return all(key in now and now[key][0] != there[key][0] for key in there)
        until(again, "containers that were killed to run again")

    def deaf_pod(self, vfs):
        """Runs on for four seconds when it is to end."""
        name = self.c.new(container("main", 0, vfs, then=DEAF), grace=4)
        self.c.wait_running(name, ["main"])
        return name

    def forget(self, name):
        """The kubelet does, whatever the pod's processes do."""
        (self.c.delete_by_force if self.c.has_api else self.c.backend.delete)(name)
        self.c.live.remove(name)

    def orphan_of_a_dead_kubelet(self):
        name = self.deaf_pod(4)
        self.c.kubelet_dies()
        self.forget(name)
        self.c.start_kubelet()

    def deleted_young(self):
        """As soon as its process runs."""
        there = live_of(self.c)
        name = self.c.new(container("main", 0, 8, then=DEAF), grace=4)
        until(lambda: live_of(self.c, *there) or refused(self.c, name), "a young pod's process")
        self.forget(name)

    def same_name_by_force(self):
        """As a StatefulSet does, with more VFs than are idle while the first one's process lives."""
        many = len(self.c.free()) - 10
        name = self.deaf_pod(many)

        def with_many():
            return {i for i, (_, vfs) in self.c.processes().items() if len(vfs) == many}
        old = with_many()

        def again():
            self.c.delete_by_force(name)
            self.c.backend.create(pod(name, container("main", 0, many)))

        def runs():
            if (self.c.api_status(name) or {}).get("phase") == "Failed":
                again()
            return with_many() - old
        again()
        until(runs, "the pod that came again to run")
        self.c.end(name)

    def api_server_away(self):
        """While the kubelet starts, which knows none of its pods then."""
        with self.c.api_away():
            self.c.kubelet_restart()
            time.sleep(10)

    EITHER = (railmated_killed, kubelet_killed, both_killed, railmated_stopped, sockets_removed,
              ledger_spoilt, ledger_lost, disk_full, orphan_of_a_dead_kubelet, deleted_young)
    LATE = specs_deleted, specs_and_ledger_lost
    API = same_name_by_force, api_server_away

    # --- what they did ---

    def runs_again(self, row, since):
        """A pod that comes after the fault: how soon it runs, and whether it was refused first."""
        self.c.wait_registered()
        while True:
            name = self.c.new(self.some_vfs())
            until(lambda n=name: refused(self.c, n) or "main" in self.c.running(n),
                  f"{name} to run")
            if not refused(self.c, name):
                row.seconds.append(time.monotonic() - since)
                return name
            row.refused_after += 1
            self.c.end(name)

    def one(self, fault):
        row = self.rows.setdefault(fault.__name__.replace("_", " "), Row())
        self.churn()
        before = held_by(self.c, *self.residents)
        with one_owner_each(self.c):
            since = time.monotonic()
            comes = self.c.new(self.some_vfs())
            fault(self)
            after = self.runs_again(row, since)
            until(lambda: refused(self.c, comes) or "main" in self.c.running(comes),
                  f"{comes} to run, or to be refused")
            time.sleep(MATURE)
        row.tries += 1
        row.refused_while += bool(refused(self.c, comes))
        now = held_by(self.c, *self.residents)
        same = slice(1 if fault == Storm.specs_and_ledger_lost else 0, None)
        row.harmed += sum(now.get(key, ())[same] != found[same] for key, found in before.items()
                          if key[0] in self.residents)
        self.c.end(comes, after)
        check_specs(self.c)

    def kinds(self):
        return (self.EITHER + (self.LATE if self.c.backend.binding == "late" else ()) +
                (self.API if self.c.has_api else ()))

    def faults(self):
        """All kinds equally often, but for the last ones."""
        kinds = self.kinds()
        return [kind for _ in range(-(-LENGTH // len(kinds)))
                for kind in self.draw.sample(kinds, len(kinds))][:LENGTH]

    def table(self):
        return "\n".join([HEAD] + [row.text(name) for name, row in sorted(self.rows.items())])


def faults_in_the_middle_of_churn(c):
    with c.small_disk() as fill:
        storm = Storm(c, fill)
        for fault in storm.faults():
            storm.one(fault)
        check_nothing_is_stuck(c)
    check(not any(row.harmed or row.refused_after for row in storm.rows.values()),
          "\n" + storm.table())
    return f"{LENGTH} faults" + (f"\n{storm.table()}" if "E2E_STORM" in os.environ else "")


either(faults_in_the_middle_of_churn, api=True)
if "E2E_STORM" in os.environ:  # the other node has scenarios enough
    either(faults_in_the_middle_of_churn)
