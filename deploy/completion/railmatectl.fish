# Made by hack/completion from what railmatectl --help says.
complete -c railmatectl -n __fish_use_subcommand -f -a topo -d 'GPUs, NICs, VFs and the PCIe path class of every pair'
complete -c railmatectl -n __fish_use_subcommand -f -a plan -d 'the VFs, variables and files that a container would get'
complete -c railmatectl -n __fish_use_subcommand -f -a explain -d 'why a container has its VFs'
complete -c railmatectl -n '__fish_seen_subcommand_from explain' -f -a pod
complete -c railmatectl -n '__fish_seen_subcommand_from explain' -f -a claim
complete -c railmatectl -n '__fish_seen_subcommand_from explain' -f -a vf
complete -c railmatectl -n '__fish_seen_subcommand_from explain' -f -a last
complete -c railmatectl -n '__fish_seen_subcommand_from explain' -f -a pool
complete -c railmatectl -n __fish_use_subcommand -f -a release -d 'free a VF by hand'
complete -c railmatectl -n __fish_use_subcommand -f -a status -d 'the state of this node in ten lines'
complete -c railmatectl -n __fish_use_subcommand -f -a simulate -d 'a day of pods on this machine'
complete -c railmatectl -n __fish_use_subcommand -f -a doctor -d 'what keeps NCCL from being fast or right here'
complete -c railmatectl -n __fish_use_subcommand -f -a verify -d 'which HCAs did NCCL or RCCL use, with GPUDirect RDMA, and if not, why'
complete -c railmatectl -n __fish_use_subcommand -f -a probe -d 'railmate-probe here'
complete -c railmatectl -n __fish_use_subcommand -f -a cluster -d 'status of every node'
complete -c railmatectl -n '__fish_seen_subcommand_from cluster' -f -a status
complete -c railmatectl -n '__fish_seen_subcommand_from cluster' -f -a topo
complete -c railmatectl -n '__fish_seen_subcommand_from cluster' -f -a explain
complete -c railmatectl -n '__fish_seen_subcommand_from cluster' -f -a doctor
complete -c railmatectl -n '__fish_seen_subcommand_from cluster' -f -a verify
complete -c railmatectl -n '__fish_seen_subcommand_from cluster' -f -a probe
complete -c railmatectl -n __fish_use_subcommand -f -a ready -d 'is the railmated ready that writes FILE? The probe of deploy/base'
complete -c railmatectl -n __fish_use_subcommand -f -a snapshot -d 'capture this machine as host.tree text'
complete -c railmatectl -n '__fish_seen_subcommand_from snapshot' -f -a unpack
complete -c railmatectl -l help
complete -c railmatectl -l version
complete -c railmatectl -n '__fish_seen_subcommand_from topo' -l root -x -a '(__fish_complete_directories)' -d 'the machine below DIR instead of / (nothing outside DIR is read)'
complete -c railmatectl -n '__fish_seen_subcommand_from topo' -l config -r -F -d 'the daemon’s config.json; default: one pool, rdma/vf'
complete -c railmatectl -n '__fish_seen_subcommand_from topo' -l topology-hints -r -F -d 'which GPUs and NICs share a switch, where a virtual machine hides it'
complete -c railmatectl -n '__fish_seen_subcommand_from topo' -l json -d 'one JSON object on standard output'
complete -c railmatectl -n '__fish_seen_subcommand_from topo' -l wide -d 'tables as wide as the machine, with slots and the VFs’ RDMA devices'
complete -c railmatectl -n '__fish_seen_subcommand_from topo' -l svg -d 'a picture: NUMA nodes, switches, GPUs, NICs, VFs, and the pods that hold them'
complete -c railmatectl -n '__fish_seen_subcommand_from topo' -l control-socket -r -F
complete -c railmatectl -n '__fish_seen_subcommand_from topo' -l state-dir -x -a '(__fish_complete_directories)'
complete -c railmatectl -n '__fish_seen_subcommand_from topo' -l nccl-xml -d 'the topology file that NCCL would be given (NCCL_TOPO_FILE)'
complete -c railmatectl -n '__fish_seen_subcommand_from topo' -l rccl -d 'that of RCCL'
complete -c railmatectl -n '__fish_seen_subcommand_from plan' -l root -x -a '(__fish_complete_directories)' -d 'the machine below DIR instead of / (nothing outside DIR is read)'
complete -c railmatectl -n '__fish_seen_subcommand_from plan' -l config -r -F -d 'the daemon’s config.json; default: one pool, rdma/vf'
complete -c railmatectl -n '__fish_seen_subcommand_from plan' -l topology-hints -r -F -d 'which GPUs and NICs share a switch, where a virtual machine hides it'
complete -c railmatectl -n '__fish_seen_subcommand_from plan' -l json -d 'one JSON object on standard output'
complete -c railmatectl -n '__fish_seen_subcommand_from plan' -l gpus -x -d 'the container’s GPUs: PCI address, UUID, or number as in topo'
complete -c railmatectl -n '__fish_seen_subcommand_from plan' -l vfs -x -d 'how many VFs it asks for'
complete -c railmatectl -n '__fish_seen_subcommand_from plan' -l pool -x -d 'the pool, when the configuration has several'
complete -c railmatectl -n '__fish_seen_subcommand_from plan' -l free -x -d 'the VFs that are free; default: all of the pool'
complete -c railmatectl -n '__fish_seen_subcommand_from plan' -l must -x -d 'VFs that have to be among the chosen'
complete -c railmatectl -n '__fish_seen_subcommand_from simulate' -l root -x -a '(__fish_complete_directories)' -d 'the machine below DIR instead of / (nothing outside DIR is read)'
complete -c railmatectl -n '__fish_seen_subcommand_from simulate' -l config -r -F -d 'the daemon’s config.json; default: one pool, rdma/vf'
complete -c railmatectl -n '__fish_seen_subcommand_from simulate' -l topology-hints -r -F -d 'which GPUs and NICs share a switch, where a virtual machine hides it'
complete -c railmatectl -n '__fish_seen_subcommand_from simulate' -l json -d 'one JSON object on standard output'
complete -c railmatectl -n '__fish_seen_subcommand_from simulate' -l pods -x -d 'how many pods come (1000)'
complete -c railmatectl -n '__fish_seen_subcommand_from simulate' -l seed -x -d 'random seed (1)'
complete -c railmatectl -n '__fish_seen_subcommand_from simulate' -l load -x -d 'per cent of the GPUs that are in use when a pod arrives (60-95)'
complete -c railmatectl -n '__fish_seen_subcommand_from simulate' -l pool -x -d 'the pool, when the configuration has several'
complete -c railmatectl -n '__fish_seen_subcommand_from doctor' -l root -x -a '(__fish_complete_directories)' -d 'the machine below DIR instead of / (nothing outside DIR is read)'
complete -c railmatectl -n '__fish_seen_subcommand_from doctor' -l config -r -F -d 'the daemon’s config.json; default: one pool, rdma/vf'
complete -c railmatectl -n '__fish_seen_subcommand_from doctor' -l topology-hints -r -F -d 'which GPUs and NICs share a switch, where a virtual machine hides it'
complete -c railmatectl -n '__fish_seen_subcommand_from doctor' -l json -d 'one JSON object on standard output'
complete -c railmatectl -n '__fish_seen_subcommand_from doctor' -l only -x -d 'these checks only'
complete -c railmatectl -n '__fish_seen_subcommand_from doctor' -l node-only -d 'without what is only this process’s: devices, limits, mounts'
complete -c railmatectl -n '__fish_seen_subcommand_from doctor' -l list -d 'list the checks'
complete -c railmatectl -n '__fish_seen_subcommand_from doctor' -l fix-manifest -x
complete -c railmatectl -n '__fish_seen_subcommand_from doctor' -l role -x -d 'of --fix-manifest openshift: the pool of nodes; default: worker'
complete -c railmatectl -n '__fish_seen_subcommand_from explain' -l control-socket -r -F -d 'railmated’s; none: read the ledger (/run/railmate/railmate.sock)'
complete -c railmatectl -n '__fish_seen_subcommand_from explain' -l state-dir -x -a '(__fish_complete_directories)' -d 'where its ledger is (/var/lib/railmate)'
complete -c railmatectl -n '__fish_seen_subcommand_from explain' -l json -d 'one JSON object on standard output'
complete -c railmatectl -n '__fish_seen_subcommand_from status' -l root -x -a '(__fish_complete_directories)' -d 'the links and doctor’s checks of the machine below DIR'
complete -c railmatectl -n '__fish_seen_subcommand_from status' -l topology-hints -r -F -d 'as of topo'
complete -c railmatectl -n '__fish_seen_subcommand_from status' -l control-socket -r -F -d 'railmated’s (/run/railmate/railmate.sock); none: it is not asked'
complete -c railmatectl -n '__fish_seen_subcommand_from status' -l state-dir -x -a '(__fish_complete_directories)' -d 'where its ledger is (/var/lib/railmate), read when it is down'
complete -c railmatectl -n '__fish_seen_subcommand_from status' -l no-doctor -d 'without doctor’s checks'
complete -c railmatectl -n '__fish_seen_subcommand_from status' -l json -d 'one JSON object on standard output'
complete -c railmatectl -n '__fish_seen_subcommand_from release' -l control-socket -r -F -d 'railmated’s (/run/railmate/railmate.sock)'
complete -c railmatectl -n '__fish_seen_subcommand_from release' -l yes -d 'confirm: a process that still uses the VF will share it with another container'
complete -c railmatectl -n '__fish_seen_subcommand_from cluster' -l context -x
complete -c railmatectl -n '__fish_seen_subcommand_from cluster' -l kubeconfig -r -F
complete -c railmatectl -n '__fish_seen_subcommand_from cluster' -l railmate-namespace -x
complete -c railmatectl -n '__fish_seen_subcommand_from cluster' -l namespace -s n -x -d 'explain, verify, probe: where the pod or the job is; default: kubectl’s'
complete -c railmatectl -n '__fish_seen_subcommand_from cluster' -l selector -s l -x -d 'verify, probe: of the pods with these labels, in place of a job'
complete -c railmatectl -n '__fish_seen_subcommand_from cluster' -l container -s c -x -d 'verify: this container’s; default: the logs of all, map.json of the first.'
complete -c railmatectl -n '__fish_seen_subcommand_from cluster' -l node -x -d 'status, doctor, explain pool, vf, last: these nodes only'
complete -c railmatectl -n '__fish_seen_subcommand_from cluster' -l parallel -x -d 'how many nodes at once (16)'
complete -c railmatectl -n '__fish_seen_subcommand_from cluster' -l timeout -x -d 'time limit for each node (30), or of probe for each pair of pods (120)'
complete -c railmatectl -n '__fish_seen_subcommand_from cluster' -l no-doctor -d 'status: without doctor’s checks'
complete -c railmatectl -n '__fish_seen_subcommand_from cluster' -l only -x -d 'doctor: these checks only'
complete -c railmatectl -n '__fish_seen_subcommand_from cluster' -l svg
complete -c railmatectl -n '__fish_seen_subcommand_from cluster' -l nccl-xml
complete -c railmatectl -n '__fish_seen_subcommand_from cluster' -l rccl
complete -c railmatectl -n '__fish_seen_subcommand_from cluster' -l wide
complete -c railmatectl -n '__fish_seen_subcommand_from cluster' -l json -d 'one JSON object on standard output'
complete -c railmatectl -n '__fish_seen_subcommand_from verify' -l map -r -F -d 'what containers were given (map.json); HOST: of that host’s ranks only'
complete -c railmatectl -n '__fish_seen_subcommand_from verify' -l counters -d 'keep the byte counters of all RDMA ports in FILE'
complete -c railmatectl -n '__fish_seen_subcommand_from verify' -l root -x -a '(__fish_complete_directories)' -d 'the ports below DIR'
complete -c railmatectl -n '__fish_seen_subcommand_from verify' -l json -d 'one JSON object on standard output'
complete -c railmatectl -n '__fish_seen_subcommand_from snapshot' -l root -x -a '(__fish_complete_directories)' -d 'capture what lies below DIR'
complete -c railmatectl -n '__fish_seen_subcommand_from snapshot' -l scrub -d 'replace GUIDs, MACs, serial numbers, UUIDs and host names'
complete -c railmatectl -n '__fish_seen_subcommand_from snapshot' -l output -s o -r -F -d 'write there instead of standard output'
