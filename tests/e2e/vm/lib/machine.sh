# The virtual machine, from the host's side: tools, kernel, initrd, QEMU. Sourced by tests/e2e/vm/run and
# hack/vm-capture, which define say(). Everything is emulated (TCG); Debian 12, root.
#
# What it makes is kept in $cache, outside of the repository; kernel and initrd are made once.
vm_lib=$(dirname "${BASH_SOURCE[0]}")
cache=${XDG_CACHE_HOME:-$HOME/.cache}/railmate/vm
# crc32_generic: rxe needs it and does not say so
modules="igb igbvf 8021q rdma_rxe crc32_generic ib_uverbs rdma_ucm 9p 9pnet_virtio virtio_pci overlay nvme"

# What is missing for a run, as one sentence; silent when nothing is.
vm_obstacle() {
	local VERSION_CODENAME=
	[ "$(uname -m)" = x86_64 ] || { echo "an x86-64 machine is missing"; return; }
	[ "$(id -u)" = 0 ] || { echo "root is missing (apt, and / by 9p)"; return; }
	vm_has_tools && return
	command -v apt-get > /dev/null || { echo "apt-get is missing, and the tools are not installed"; return; }
	. /etc/os-release
	[ "$VERSION_CODENAME" = bookworm ] || echo "Debian 12 is missing, and the tools are not installed"
}

vm_has_tools() {
	local t
	for t in busybox cpio zstd xz depmod rdma lspci numactl ibv_devices ib_write_bw; do
		command -v $t > /dev/null || return 1
	done
	[ -x /usr/lib/cni/host-device ] || return 1
	qemu-system-x86_64 -device help 2> /dev/null | grep -q '"igb"'
}

# bookworm's own QEMU (7.2) has no igb. Nothing that is installed is upgraded by this.
vm_add_backports() {
	local list=/etc/apt/sources.list.d/bookworm-backports.sources
	[ -e $list ] || awk 'BEGIN { RS = "" } NR == 1' /etc/apt/sources.list.d/debian.sources | grep -v '^#' |
		sed 's/^Suites:.*/Suites: bookworm-backports/' > $list
	apt-get update -qq
}

vm_install_tools() {
	local p backports=()
	for p in qemu-system-x86 qemu-system-common qemu-system-data seabios; do
		backports+=($p/bookworm-backports)
	done
	DEBIAN_FRONTEND=noninteractive apt-get -o DPkg::Lock::Timeout=300 install -y -qq --no-install-recommends \
		"${backports[@]}" busybox-static cpio zstd xz-utils kmod iproute2 pciutils numactl rdma-core ibverbs-utils perftest \
		containernetworking-plugins
}

# Packages that are used and not installed: their files come below $cache/<directory>.
vm_unpack() { # directory, packages
	local at=$cache/$1.part p
	rm -rf "$at"
	mkdir -p "$at"
	(cd "$at" && for p in "${@:2}"; do apt-get download -qq "$p" && dpkg-deb -x "$p"_*.deb . && rm "$p"_*.deb || exit 1; done) &&
		mv "$at" "$cache/$1"
}

# What images of containers may be: of a glibc before 2.34, of musl with one program. bin/sh of neither is there.
vm_make_images() {
	[ ! "$cache/images" -nt "$vm_lib/machine.sh" ] || return 0
	local at=$cache/images.part musl=$cache/musl mirrors=${RAILMATE_MIRRORS:-http://deb.debian.org/debian} d
	[ -d "$musl" ] || vm_unpack musl musl musl-dev musl-tools || return
	rm -rf "$at"
	mkdir -p "$at"/musl/{bin,lib}
	unshare --mount mmdebstrap --quiet --variant=extract --include=libibverbs1,ibverbs-providers bullseye "$at/bullseye" \
		"deb ${mirrors%% *} bullseye main" < /dev/null || return
	rm -rf "$at"/bullseye/{var,usr/share,usr/lib/locale}
	sed "s,/usr/,$musl/usr/,g" "$musl/usr/lib/x86_64-linux-musl/musl-gcc.specs" > "$at/specs"
	printf '#include <stdio.h>\nint main(void) { return puts("musl") < 0; }\n' |
		gcc -x c -o "$at/musl/bin/program" - -specs "$at/specs" -L "$musl/lib/x86_64-linux-musl" || return
	cp -L "$musl/lib/ld-musl-x86_64.so.1" "$at/musl/lib/"
	for d in "$at"/{musl,bullseye}; do mkdir -p "$d"/{dev,proc,sys,tmp,run/railmate}; done
	rm -rf "$cache/images"
	mv "$at" "$cache/images"
}

# Debian's kernel with its modules; the cloud kernel has neither igb nor rxe.
vm_unpack_kernel() {
	local name
	name=$(apt-cache depends linux-image-amd64/bookworm-backports | awk '/Depends:/ { print $2; exit }')
	vm_unpack kernel "$name"
}

vm_version() { # directory of the kernel
	basename "$1"/boot/vmlinuz-* | sed 's/^vmlinuz-//'
}

# Modules only: the guest's root is this machine's.
vm_make_initrd() {
	local root=$cache/initrd.d version dir f rel
	version=$(vm_version "$cache/kernel")
	depmod -b "$cache/kernel" "$version" # the package has no modules.dep
	dir=$root/lib/modules/$version
	rm -rf "$root"
	mkdir -p "$root"/{bin,proc,sys,dev,new,low,rw} "$dir"
	cp /bin/busybox "$root/bin/"
	for f in sh mount mkdir modprobe cp switch_root; do ln -s busybox "$root/bin/$f"; done
	for f in $modules; do
		modprobe -S "$version" -d "$cache/kernel" --show-depends $f
	done | awk '$1 == "insmod" { print $2 }' | sort -u | while read -r f; do
		rel=${f#*"/lib/modules/$version/"}
		mkdir -p "$dir/$(dirname "$rel")"
		case $f in *.xz) xz -dc "$f" > "$dir/${rel%.xz}" ;; *) cp "$f" "$dir/$rel" ;; esac
	done
	cp "$cache"/kernel/lib/modules/"$version"/modules.{builtin,order,builtin.modinfo} "$dir/"
	depmod -b "$root" "$version"
	install -m 755 "$vm_lib/init" "$root/init"
	(cd "$root" && find . -print0 | cpio --null -o -H newc --quiet) | zstd -q -3 > "$cache/initrd.part"
	mv "$cache/initrd.part" "$cache/initrd"
}

# One preparation at a time; a failed one fails at its first failure. What it says goes to standard error.
vm_prepare() {
	mkdir -p "$cache"
	(
		flock 9
		if ! vm_has_tools || [ ! -d "$cache/kernel" ]; then vm_add_backports || exit 1; fi
		vm_has_tools || vm_install_tools || exit 1
		[ -d "$cache/kernel" ] || vm_unpack_kernel || exit 1
		[ -d "$cache/runc" ] || vm_unpack runc runc || exit 1
		[ "$cache/initrd" -nt "$vm_lib/init" ] && [ "$cache/initrd" -nt "$vm_lib/machine.sh" ] || vm_make_initrd
	) 9> "$cache/lock" >&2
}

# Two root complexes on two NUMA nodes. Behind each a root port, a switch, and on that an igb and two display
# cards; an NVMe with VFs, which is no NIC, on the first switch. With "third" another igb, on a root port of
# the second root complex, behind no switch.
vm_topology() { # [third]
	local n d nvme half=1024M
	topology=(-machine q35 -smp 2,sockets=2,cores=1 -m 2048M
		-object memory-backend-ram,id=m0,size=$half -object memory-backend-ram,id=m1,size=$half
		-numa node,nodeid=0,cpus=0,memdev=m0 -numa node,nodeid=1,cpus=1,memdev=m1
		-numa dist,src=0,dst=1,val=21
		-device intel-iommu,intremap=on,device-iotlb=on
		-device pxb-pcie,id=pxb0,bus=pcie.0,bus_nr=32,numa_node=0
		-device pxb-pcie,id=pxb1,bus=pcie.0,bus_nr=96,numa_node=1)
	for n in 0 1; do
		topology+=(-device pcie-root-port,id=rp$n,bus=pxb$n,chassis=$((10 * n + 1)),slot=0
			-device x3130-upstream,id=up$n,bus=rp$n)
		for d in 0 1 2 3; do
			topology+=(-device xio3130-downstream,id=ds$n$d,bus=up$n,chassis=$((10 * n + 2 + d)),slot=$d,addr=$d)
		done
		topology+=(-netdev hubport,id=h$n,hubid=0 -device igb,id=igb$n,netdev=h$n,bus=ds${n}0,mac=52:54:00:00:0$n:01
			-device ati-vga,bus=ds${n}1 -device ati-vga,bus=ds${n}2)
	done
	if [ "${1:-}" = third ]; then
		topology+=(-device pcie-root-port,id=rp2,bus=pxb1,chassis=30,slot=1
			-netdev hubport,id=h2,hubid=0 -device igb,id=igb2,netdev=h2,bus=rp2,mac=52:54:00:00:02:01)
	fi
	nvme=serial=dead,subsys=nvs0,bus=ds03,sriov_max_vfs=2,max_ioqpairs=6,msix_qsize=8
	nvme+=,sriov_vq_flexible=4,sriov_vi_flexible=4
	topology+=(-drive if=none,id=nv0,driver=null-co,size=1M,read-zeroes=on -device nvme-subsys,id=nvs0
		-device nvme,$nvme)
}

# Runs SHARE/guest in the guest, whose root is this machine's, read-only below a tmpfs; SHARE is its /share, SHARE/bed
# its /bed, if there is one, read-only and cached. The guest ends by itself; results are files in SHARE (guest.log,
# status), never the serial log, which loses lines.
# One virtual CPU a node and one thread: more of either hangs now and then. Replaces the shell that calls it: to be
# called in the background or in parentheses; a signal to that process ends QEMU.
vm_boot() { # SHARE, seconds, serial log, [monitor]; uses $topology
	local bed=()
	[ ! -d "$1/bed" ] || bed=(-fsdev "local,id=bed,path=$1/bed,security_model=none,readonly=on"
		-device virtio-9p-pci,fsdev=bed,mount_tag=bed,bus=pcie.0)
	exec timeout -k 5 "$2" qemu-system-x86_64 -accel tcg,thread=single -cpu max "${topology[@]}" \
		-nodefaults -vga none -display none -monitor "${4:-none}" -no-reboot -serial "file:$3" \
		-fsdev "local,id=share,path=$1,security_model=none" \
		-device virtio-9p-pci,fsdev=share,mount_tag=share,bus=pcie.0 \
		-fsdev local,id=root,path=/,security_model=none,readonly=on,multidevs=remap \
		-device virtio-9p-pci,fsdev=root,mount_tag=hostroot,bus=pcie.0 "${bed[@]}" \
		-kernel "$(echo "$cache"/kernel/boot/vmlinuz-*)" -initrd "$cache/initrd" \
		-append "console=ttyS0 panic=-1 quiet intel_iommu=on iommu=pt tsc=reliable" < /dev/null
}
