#!/usr/bin/python3
"""
hack/rdma-topo beside a stand-in for rdma-core's tool: what is equal passes, each difference is named.

    rdma_topo.py BUILD_DIR
"""
import pathlib
import subprocess
import sys
import tempfile

TOP = pathlib.Path(__file__).resolve().parents[2]
NUMA = "OK\tAll NUMA-based complexes have correct PCI topology\n"
DMA = "OK\tAll ConnectX DMA functions have correct PCI topology\n"
ACS = "FAIL\tACS for vera_rp 0000:00:00.0 has incorrect values 0000000 != xx101x1, (0x0 != 0x15)\n"
ATS = "FAIL\tNIC 0000:01:00.0 has ATS\n"
GONE = "Traceback (most recent call last):\n"
# What the stand-in says to "check", on which machine, exit status, and a part of the output.
CASES = (
    ("vera-like", NUMA, "", 0, "1 machines: 1 NUMA"),
    ("vera-like", NUMA + ACS + ATS, "", 1,
     "vera-like: ACS: nothing more; for rdma_topo 0000:00:00.0 xx101x1\n"
     "vera-like: ATS or groups: right; for rdma_topo wrong\n"),
    ("vera-like", DMA, "", 1, "vera-like: a board of type NUMA, for rdma_topo DMA"),
    ("vera-like", "", GONE, 0, "vera-like: rdma_topo has no answer"),
    ("gb300-like", DMA, "", 1, "gb300-like: pairs: 0008:06:00.0 0002:03:00.0 0008:03:00.0, "),
    ("odd-domain-32bit", NUMA, "", 0, "1 machines: 1 other"),
)


def main(build):
    wrong = 0
    with tempfile.TemporaryDirectory() as tmp:
        tool = pathlib.Path(tmp) / "rdma_topo"
        for machine, out, err, status, words in CASES:
            answers = {"check": out, "topology": "[]"}
            tool.write_text(f"import sys\nprint({answers!r}[sys.argv[1]], end='')\n"
                            f"print({err!r}, end='', file=sys.stderr)\n")
            done = subprocess.run([
                TOP / "hack/rdma-topo", tool, "--build", build,
                build / f"tests/fixtures/{machine}/host.tree"
            ], stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)
            if done.returncode != status or words not in done.stdout:
                wrong += 1
                print(f"{machine}: {done.returncode}, not {status} with '{words}':\n"
                      f"{done.stdout}{done.stderr}")
    return wrong > 0


if __name__ == "__main__":
    sys.exit(main(pathlib.Path(sys.argv[1])))
