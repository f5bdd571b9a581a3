# Sourced in the guest: VFs with names, addresses and MACs that are the same in every run, soft RDMA devices
# on them, and a view of /sys in which those look like hardware.

vm_modules() {
	local m
	ip link set lo up
	for m in igb igbvf rdma_rxe rdma_ucm; do modprobe $m; done
}

pf_up() { # bus of the PF
	local d=/sys/bus/pci/devices/0000:$1:00.0
	local pf
	pf=$(ls $d/net)
	ip link set $pf down; ip link set $pf name pf$1; ip link set pf$1 up
}

vfs_up() { # bus of the PF, number of VFs
	local d=/sys/bus/pci/devices/0000:$1:00.0 v
	echo 0 > $d/sriov_drivers_autoprobe # igbvf shall see the MAC below when it first looks
	echo $2 > $d/sriov_numvfs
	for ((v = 0; v < $2; v++)); do echo "link set pf$1 vf $v mac 02:00:00:$1:00:0$v"; done | ip -batch -
	echo 1 > $d/sriov_drivers_autoprobe
	vf_bind $1 $(seq 0 $(($2 - 1)))
}

vf_bind() { # bus of the PF, VF indexes
	local d=/sys/bus/pci/devices/0000:$1:00.0 v vf net
	for v in ${@:2}; do
		vf=$(readlink $d/virtfn$v)
		echo ${vf##*/} > /sys/bus/pci/drivers_probe
		net=($d/virtfn$v/net/*)
		echo "link set ${net##*/} name vf$1_$v"
	done | ip -batch -
}

rxe_up() { # bus of the PF, VF indexes
	local v
	for v in ${@:2}; do
		echo "link set vf$1_$v addrgenmode none up"
		echo "addr replace 10.0.$((10#$1)).$((10 + v))/24 dev vf$1_$v"
	done | ip -batch -
	for v in ${@:2}; do echo "link add rxe$1_$v type rxe netdev vf$1_$v"; done | rdma -b -
}

# A view of /sys as with hardware RDMA: each soft device below its VF, as <function>/infiniband/<device>. What
# differs is in <mount point>.up. The view is of now: later devices are not in it.
hardware_view() { # mount point
	local up=$1.up r p u f at
	mkdir -p $1 $up
	for r in $(ls /sys/class/infiniband); do
		p=$(readlink -f /sys/class/net/$(cat /sys/class/infiniband/$r/parent)/device)
		at=$up/${p#/sys/}
		mkdir -p $at/infiniband/$r/ports $up/class/infiniband $up/class/infiniband_verbs
		ln -s ../../../${p##*/} $at/infiniband/$r/device
		for f in node_type node_guid sys_image_guid node_desc; do
			cat /sys/class/infiniband/$r/$f > $at/infiniband/$r/$f
		done
		ln -s ../../${p#/sys/}/infiniband/$r $up/class/infiniband/$r
		for u in /sys/class/infiniband_verbs/uverbs*; do
			[ "$(cat $u/ibdev)" = $r ] || continue
			u=${u##*/}
			mkdir -p $at/infiniband_verbs/$u
			ln -s ../../../${p##*/} $at/infiniband_verbs/$u/device
			for f in dev ibdev; do
				cat /sys/class/infiniband_verbs/$u/$f > $at/infiniband_verbs/$u/$f
			done
			ln -s ../../${p#/sys/}/infiniband_verbs/$u $up/class/infiniband_verbs/$u
		done
	done
	mount -t overlay view -o lowerdir=$up:/sys $1
	for r in $(ls /sys/class/infiniband); do
		mount --bind /sys/class/infiniband/$r/ports $(readlink -f $1/class/infiniband/$r)/ports
	done
}

# Before hardware_view: a display card poses as an NVIDIA H100 in the view.
pose_as_h100() { # mount point of the view, address
	local at=$1.up/$(readlink -f /sys/bus/pci/devices/$2 | sed 's,^/sys/,,')
	mkdir -p $at
	echo 0x10de > $at/vendor; echo 0x2330 > $at/device; echo 0x030200 > $at/class
}

# Two netdevs of this namespace talk over the wire, and no others do.
selfroute() { # device, its address, device, its address
	local d
	for d in 10 20; do while ip rule del pref $d 2> /dev/null; do :; done; done
	for d in 101 102; do ip route flush table $d 2> /dev/null || true; done
	sysctl -qw net.ipv4.conf.all.rp_filter=0 net.ipv4.conf.all.accept_local=1 \
		net.ipv4.conf.all.arp_ignore=1 net.ipv4.conf.all.arp_announce=2
	for d in $1 $3; do sysctl -qw net.ipv4.conf.$d.rp_filter=0 net.ipv4.conf.$d.accept_local=1; done
	if ip rule show pref 0 | grep -q .; then ip rule add pref 32000 lookup local; ip rule del pref 0; fi
	ip rule add pref 10 iif $1 lookup local; ip rule add pref 10 iif $3 lookup local
	ip rule add pref 20 from $2 to $4 lookup 101; ip rule add pref 20 from $4 to $2 lookup 102
	ip route add $4/32 dev $1 src $2 table 101; ip route add $2/32 dev $3 src $4 table 102
}
