#!/usr/bin/python3
"""The whole circle: what railmated gives a container, what NCCL would log with it, and what verify
says of the two."""

import json
import os
import subprocess

from harness import GPU, VF, main
from test_files import FilesCase, conf, early, files, late_pool, place

CODES = {"PASS": 0, "WARN": 5}


def hcas_of(started):
    """What NCCL takes: its variable, or where that is not set, its configuration file."""
    value = started["env"].get("NCCL_IB_HCA") or conf(files(
        place(started))["nccl.conf"])["NCCL_IB_HCA"]
    return value.removeprefix("=").split(",")


def log_of(hcas, told, uses=lambda n, i: i):
    """The log of one rank a GPU, of which the i-th uses the HCA `uses` says, by default the one of
    the map."""
    gpus = sorted({g["gpu"] for g in told["gpus"]})
    own = {g["gpu"]: hcas.index(f'{g["hca"]}:{g["port"]}') for g in told["gpus"]}
    using = " ".join(f"[{i}]{hca}/RoCE" for i, hca in enumerate(hcas))
    lines = []
    for rank, gpu in enumerate(gpus):
        domain, bus, rest = gpu.split(":")
        bus_id = f'{int(domain, 16):x}{bus}{rest.replace(".", "")}'.lstrip("0")
        dev = uses(len(gpus), own[gpu])
        head, peer = f"p-0:{rank + 1}:{rank + 100} [{rank}] NCCL INFO ", rank + len(gpus)
        lines += [
            f"{head}NET/IB : Using {using} [RO]; OOB eth0:10.1.0.4<0>", f"{head}Using network IB",
            f"{head}ncclCommInitRankConfig comm 0x1 rank {rank} nranks {2 * len(gpus)} cudaDev {rank} nvmlDev {rank} "
            f"busId {bus_id} commId 0x1 - Init START",
            f"{head}comm 0x1 rank {rank} nRanks {2 * len(gpus)} nNodes 2 localRanks {len(gpus)} localRank {rank} MNNVL 0",
            f"{head.replace('p-0', 'q-0')}Using network IB",
            f"{head.replace('p-0', 'q-0')}comm 0x1 rank {peer} nRanks {2 * len(gpus)} nNodes 2",
            f"{head}Channel 00/0 : {peer}[{rank}] -> {rank}[{rank}] [receive] via NET/IB/{dev}/GDRDMA",
            f"{head}Channel 00/0 : {rank}[{rank}] -> {peer}[{rank}] [send] via NET/IB/{dev}/GDRDMA"
        ]
    return "\n".join(lines) + "\n"


class Proof(FilesCase):
    def verdict(self, started, log):
        done = subprocess.run([
            os.environ["RAILMATECTL"], "verify", "--json", "--map",
            os.path.join(place(started), "map.json"), "-"
        ], input=log, capture_output=True, text=True, timeout=60, check=False)
        told = json.loads(done.stdout)
        self.assertEqual(done.returncode, CODES[told["verdict"]], done.stderr)
        return told["verdict"], {f["id"] for f in told["findings"]}

    def check(self, *pools, resource=VF):
        node = self.up(*pools, fixture="gb200-like", resource=resource)
        _, started = self.run_pod(node, "pod", f"main:{GPU}=2,{resource}=2")
        told = json.loads(files(place(started))["map.json"])
        self.assertEqual(len({g["gpu"] for g in told["gpus"]}), 2, told)
        hcas = hcas_of(started)
        self.assertEqual(self.verdict(started, log_of(hcas, told)), ("PASS", set()))
        swapped = self.verdict(started, log_of(hcas, told, uses=lambda n, i: n - 1 - i))
        self.assertEqual(swapped, ("WARN", {"hca-of-another-gpu"}))
        foreign = self.verdict(started, log_of([*hcas, "mlx5_0:1"], told))
        self.assertEqual(foreign, ("WARN", {"hca-foreign"}))

    def test_a_job_that_takes_what_it_was_given_early_passes_and_others_do_not(self):
        self.check(early())

    def test_a_job_that_takes_what_it_was_given_late_passes_and_others_do_not(self):
        self.check(late_pool())


if __name__ == "__main__":
    main()
