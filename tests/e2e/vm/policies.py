"""
What the kubelet's Topology Manager makes of this machine: two GPUs on each of two NUMA nodes, four
VFs with an RDMA device on node 0, six on node 1. One story a policy, told to the fake kubelet and
to the real one.
"""

import typing


class Step(typing.NamedTuple):
    gpus: int
    vfs: int
    nodes: int  # on so many it has to be; 0: it is refused
    stays: bool
    shows: str


STORIES = {
    "restricted": [
        Step(3, 0, 2, False, "no fewer than two nodes have three GPUs"),
        Step(3, 3, 0, False, "one node has three VFs, and two have three GPUs: not the same"),
        Step(3, 7, 2, False, "seven VFs are on two nodes, as three GPUs are"),
        Step(1, 5, 1, True, "on the node that has five VFs"),
        Step(1, 1, 1, True, "on the other one, or the same"),
        Step(2, 2, 0, False, "two GPUs are free, but not on one node"),
        Step(1, 3, 1, True, "where three VFs are free"),
    ],
    "single-numa-node": [
        Step(3, 0, 0, False, "three GPUs are on two nodes"),
        Step(1, 7, 0, False, "seven VFs are on two nodes"),
        Step(2, 2, 1, False, "on one node"),
        Step(1, 5, 1, True, "on the node that has five VFs"),
        Step(1, 1, 1, True, "on the other one, or the same"),
        Step(2, 2, 0, False, "two GPUs are free, but not on one node"),
        Step(1, 4, 0, False, "four VFs are free, but not on one node"),
        Step(1, 3, 1, True, "where three VFs are free"),
    ],
}
REASON = "TopologyAffinityError"
MESSAGE = "Pod was rejected: Resources cannot be allocated with Topology locality"  # 1.33 and 1.36
