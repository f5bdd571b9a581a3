/* The host's kernel: modules for GPUDirect, the command line, NUMA balancing. */
#include <string.h>

#include "base/mem.h"
#include "doctor/doctor-internal.h"
#include "hw/inventory.h"

/* --- gpudirect: NVIDIA --- */

static const struct diagnosis_advice gdr_none = {
	"Neither nvidia_peermem nor dmabuf: NCCL copies everything through the host's memory.",
	{ "Install the open kernel modules (then dmabuf needs nothing else, from kernel 5.12 on), or modprobe nvidia-peermem and name it in /etc/modules-load.d/ (--fix-manifest grub has the command).",
	  "In the GPU operator's ClusterPolicy: driver.kernelModuleType: open, or driver.rdma.enabled: true.",
	  "Use the system extension nvidia-open-gpu-kernel-modules, or add nvidia_peermem to machine.kernel.modules (--fix-manifest talos)." },
};
static const struct diagnosis_advice gdr_unknown = {
	"Without nvidia_peermem or dmabuf NCCL copies everything through the host's memory.",
	{ "Look on the host at /proc/driver/nvidia/version ('Open Kernel Module') and for /sys/module/nvidia_peermem." },
};

/* dmabuf came to the verbs with 5.12. */
static enum facts_answer has_dmabuf(const struct facts_host *h)
{
	bool old = h->kernel_major < 5 || (h->kernel_major == 5 && h->kernel_minor < 12);

	if (h->nvidia_open == FACTS_NO || (h->kernel_major >= 0 && old))
		return FACTS_NO;
	return h->nvidia_open == FACTS_YES && !old ? FACTS_YES : FACTS_UNKNOWN;
}

static void run_gpudirect(const struct facts *f, struct diagnosis *r)
{
	const struct facts_host *h = &f->host;
	enum facts_answer dmabuf = has_dmabuf(h);

	if (!facts_has_vendor(f, "NVIDIA"))
		return;
	if (h->peermem == FACTS_YES)
		diagnosis_fine(r, "Peer memory (nvidia_peermem) is loaded%s.",
			       dmabuf == FACTS_YES ? ", and dmabuf is possible" : "");
	else if (dmabuf == FACTS_YES)
		diagnosis_fine(
			r,
			"The open kernel modules on kernel %s have dmabuf; nvidia_peermem is not needed.",
			h->kernel);
	else if (h->peermem == FACTS_NO && dmabuf == FACTS_NO)
		diagnosis_add(r, DIAGNOSIS_WARN, &gdr_none, "host",
			      "nvidia_peermem is not loaded, and %s.",
			      h->nvidia_open == FACTS_NO
				      ? "the driver is not the open kernel modules"
				      : "the kernel is older than 5.12")
			->module = h->rdma_peers == FACTS_NO ? NULL : "nvidia_peermem";
	else
		diagnosis_add(
			r, DIAGNOSIS_UNKNOWN, &gdr_unknown, "host", "%s, and %s.",
			h->peermem == FACTS_NO ? "nvidia_peermem is not loaded"
					       : "Whether nvidia_peermem is loaded is not visible",
			h->nvidia_open == FACTS_UNKNOWN ? "the driver's flavour is not visible"
			: dmabuf == FACTS_NO		? "dmabuf is not possible"
							: "the kernel's version is not visible");
}

/* --- gpudirect-amd --- */

static const struct diagnosis_advice amd_none = {
	"RCCL finds no way for NICs into GPU memory and copies through the host's memory.",
	{ "Install ROCm's amdgpu-dkms with the network driver's peer memory (ib_register_peer_memory_client), or a kernel with CONFIG_DMABUF_MOVE_NOTIFY and CONFIG_PCI_P2PDMA.",
	  "Use the AMD GPU operator's driver image that is built against the network driver.",
	  "Use the system extension amdgpu on a kernel with CONFIG_DMABUF_MOVE_NOTIFY and CONFIG_PCI_P2PDMA." },
};
static const struct diagnosis_advice amd_unknown = {
	"Without amdkfd's peer memory or dmabuf RCCL copies through the host's memory.",
	{ "Look on the host at /sys/kernel/mm/memory_peers/amdkfd/version and /boot/config-$(uname -r); a container needs that file mounted for dmabuf." },
};

static void run_gpudirect_amd(const struct facts *f, struct diagnosis *r)
{
	const struct facts_host *h = &f->host;

	if (!facts_has_vendor(f, "AMD"))
		return;
	if (h->amd_peer == FACTS_YES)
		diagnosis_fine(r, "Peer memory of amdkfd is there.");
	else if (h->amd_dmabuf == FACTS_YES)
		diagnosis_fine(
			r,
			"The kernel is built for dmabuf; older RCCL (2024) needs NCCL_DMABUF_ENABLE=1 for it.");
	else if (h->amd_peer == FACTS_NO && h->amd_dmabuf == FACTS_NO)
		diagnosis_add(r, DIAGNOSIS_WARN, &amd_none, "host",
			      "Neither amdkfd's peer memory nor a kernel built for dmabuf.");
	else
		diagnosis_add(r, DIAGNOSIS_UNKNOWN, &amd_unknown, "host",
			      "Whether NICs reach GPU memory is not visible: %s.",
			      h->amd_peer == FACTS_NO
				      ? "no peer memory, and the kernel's build is unknown"
				      : "the kernel's symbols cannot be read");
}

/* --- rccl-host --- */

static const struct diagnosis_advice rccl_iommu = {
	"RCCL warns at every start, and hangs of peer-to-peer copies between GPUs have been seen without it.",
	{ "Add iommu=pt to GRUB_CMDLINE_LINUX, update-grub (RHEL: grubby --update-kernel=ALL --args=iommu=pt), reboot.",
	  "Apply a MachineConfig with kernelArguments: [iommu=pt] (--fix-manifest openshift).",
	  "Add iommu=pt to machine.install.extraKernelArgs (--fix-manifest talos) and upgrade the node to the same image." },
};
static const struct diagnosis_advice rccl_balancing = {
	"The kernel moves pages away under RCCL's buffers and unmaps them to learn who uses them: RCCL warns, and latency jumps.",
	{ "sysctl -w kernel.numa_balancing=0, and the same line in /etc/sysctl.d/; numa_balancing=disable on the kernel's command line does it too.",
	  "A Tuned profile with [sysctl] kernel.numa_balancing=0, or the kernel argument (--fix-manifest openshift).",
	  "machine.sysctls: kernel.numa_balancing: \"0\", or the kernel argument (--fix-manifest talos)." },
};
static const struct diagnosis_advice rccl_unknown = {
	"RCCL looks at both when it starts, and warns.",
	{ "Look on the host at /proc/cmdline and /proc/sys/kernel/numa_balancing." },
};

static void run_rccl_host(const struct facts *f, struct diagnosis *r)
{
	const struct facts_host *h = &f->host;
	bool no_iommu = h->iommu_groups == 0 || (h->iommu_groups < 0 && h->iommu_units == 0);

	if (!facts_has_vendor(f, "AMD") || f->inv->hypervisor)
		return;
	if (facts_boot_word(h, "iommu=pt") == FACTS_UNKNOWN)
		diagnosis_add(r, DIAGNOSIS_UNKNOWN, &rccl_unknown, "host",
			      "The kernel's command line is not visible.");
	else if (facts_boot_word(h, "iommu=pt") == FACTS_NO && !no_iommu)
		diagnosis_add(r, DIAGNOSIS_WARN, &rccl_iommu, "host",
			      "The kernel's command line has no iommu=pt.")
			->kernel_arg = "iommu=pt";
	if (h->numa_balancing > 0)
		diagnosis_add(r, DIAGNOSIS_WARN, &rccl_balancing, "host",
			      "NUMA balancing is on (kernel.numa_balancing=%d).", h->numa_balancing)
			->kernel_arg = "numa_balancing=disable";
	else if (h->numa_balancing < 0 && f->inv->n_numa > 1)
		diagnosis_add(r, DIAGNOSIS_UNKNOWN, &rccl_unknown, "host",
			      "Whether NUMA balancing is on is not visible.");
	diagnosis_fine(r, "%s, and NUMA balancing is off or has one node.",
		       no_iommu ? "There is no IOMMU" : "iommu=pt is on the command line");
}

/* --- storage --- */

static const struct diagnosis_advice storage_none = {
	"Nothing for NCCL; programs with cuFile (GPUDirect Storage) read by way of the host's memory.",
	{ NULL },
};
static const struct diagnosis_advice storage_fine = {
	"Nothing for NCCL; programs with cuFile (GPUDirect Storage) read straight into GPU memory.",
	{ NULL },
};
static const struct diagnosis_advice storage_unknown = {
	"Nothing for NCCL; without nvidia_fs programs with cuFile (GPUDirect Storage) read by way of the host's memory.",
	{ "Look on the host for /proc/driver/nvidia-fs." },
};

static void run_storage(const struct facts *f, struct diagnosis *r)
{
	static const struct {
		enum diagnosis_verdict verdict;
		const struct diagnosis_advice *advice;
		const char *sentence;
	} answers[] = {
		[FACTS_NO] = { DIAGNOSIS_PASS, &storage_none, "nvidia_fs is not loaded." },
		[FACTS_YES] = { DIAGNOSIS_PASS, &storage_fine, "nvidia_fs is loaded." },
		[FACTS_UNKNOWN] = { DIAGNOSIS_UNKNOWN, &storage_unknown,
				    "Whether nvidia_fs is loaded is not visible." },
	};
	enum facts_answer a = f->host.nvidia_fs;

	if (facts_has_vendor(f, "NVIDIA"))
		diagnosis_add(r, answers[a].verdict, answers[a].advice, "host", "%s",
			      answers[a].sentence);
}

/* --- boot-args --- */

static const struct diagnosis_advice boot_override = {
	"It makes the kernel pretend that ACS is there to split IOMMU groups; the redirect bits that cost NCCL its bandwidth stay.",
	{ "Take it out of GRUB_CMDLINE_LINUX; what clears the bits is the BIOS or pci=disable_acs_redir= (see the check acs).",
	  "Take it out of the MachineConfig's kernelArguments.",
	  "Take it out of machine.install.extraKernelArgs." },
};
static const struct diagnosis_advice boot_no_such_value = {
	"The kernel does not know this value and goes on without it; the IOMMU may translate all the same (see the check iommu).",
	{ "Write iommu=pt in GRUB_CMDLINE_LINUX in its place.",
	  "Write iommu=pt in the MachineConfig's kernelArguments in its place.",
	  "Write iommu=pt in machine.install.extraKernelArgs in its place." },
};
static const struct diagnosis_advice boot_buses = {
	"Buses get new numbers against the firmware's will: addresses in topology files and udev rules change, and devices may be lost.",
	{ "Take pci=assign-busses out of GRUB_CMDLINE_LINUX unless the firmware's numbers are broken; SR-IOV needs it on no sound machine.",
	  "Take it out of the MachineConfig's kernelArguments.",
	  "Take it out of machine.install.extraKernelArgs." },
};
static const struct diagnosis_advice boot_no_ats = {
	"Without ATS everything that the IOMMU translates or that ACS redirects takes the long way.",
	{ "Take pci=noats out of GRUB_CMDLINE_LINUX.",
	  "Take it out of the MachineConfig's kernelArguments.",
	  "Take it out of machine.install.extraKernelArgs." },
};
static const struct diagnosis_advice boot_no_acs = {
	"The kernel does not know this value, tells so in one line of its log and goes on: ACS is as it was.",
	{ "Take pci=noacs out of GRUB_CMDLINE_LINUX; what clears the bits that redirect is pci=disable_acs_redir= or the BIOS (see the check acs).",
	  "Take it out of the MachineConfig's kernelArguments.",
	  "Take it out of machine.install.extraKernelArgs." },
};
static const struct diagnosis_advice boot_unknown = {
	"Some arguments of the kernel make PCIe slow or move devices.",
	{ "cat /proc/cmdline on the host." },
};

/* `key`: of arguments with a list behind it, one element of which is meant. */
static const struct {
	const char *key, *element;
	const struct diagnosis_advice *advice;
} mistakes[] = {
	{ "pcie_acs_override=", NULL, &boot_override },
	{ "amd_iommu=", "pt", &boot_no_such_value },
	{ "intel_iommu=", "pt", &boot_no_such_value },
	{ "pci=", "assign-busses", &boot_buses },
	{ "pci=", "noats", &boot_no_ats },
	{ "pci=", "noacs", &boot_no_acs },
	{ "pci=", "pcie_acs_override", &boot_override },
};

static void run_boot_args(const struct facts *f, struct diagnosis *r)
{
	if (!f->host.cmdline) {
		diagnosis_add(r, DIAGNOSIS_UNKNOWN, &boot_unknown, "host",
			      "The kernel's command line is not visible.");
		return;
	}
	for (size_t i = 0; i < ARRAY_LEN(mistakes); i++) {
		const char *list = facts_boot_value(f, mistakes[i].key),
			   *element = mistakes[i].element;

		if (list && (!element || facts_boot_list_has(f, mistakes[i].key, element)))
			diagnosis_add(r, DIAGNOSIS_WARN, mistakes[i].advice, "host",
				      "The kernel was booted with %s%s.", mistakes[i].key,
				      element ? element : list);
	}
	diagnosis_fine(r, "The kernel's command line has none of them.");
}

const struct diagnosis_check doctor_host_checks[] = {
	{ "gpudirect", "GPUDirect RDMA with NVIDIA GPUs",
	  "PASS: nvidia_peermem (or nv_mem) is loaded, or the driver is the open kernel modules on kernel 5.12 or later (dmabuf): one of the two is enough. WARN: neither. UNKNOWN: not visible, as in a container without the driver's files. Other machines: not applicable. --fix-manifest has nvidia_peermem to load at boot, where the RDMA core has peer memory; not for OpenShift, where the ClusterPolicy of the GPU operator loads it.",
	  .run = run_gpudirect, .in_manifest = true },
	{ "gpudirect-amd", "GPUDirect RDMA with AMD GPUs",
	  "PASS: amdkfd's peer memory is there, or the kernel is built with CONFIG_DMABUF_MOVE_NOTIFY and CONFIG_PCI_P2PDMA. WARN: neither. UNKNOWN: not visible. Machines without AMD GPUs: not applicable.",
	  .run = run_gpudirect_amd },
	{ "rccl-host", "host settings that RCCL reads",
	  "For machines with AMD GPUs that are not virtual machines. WARN: no iommu=pt on the command line where there is an IOMMU, or NUMA balancing is on. UNKNOWN: not visible.",
	  .run = run_rccl_host, .in_manifest = true },
	{ "storage", "GPUDirect Storage",
	  "Whether nvidia_fs is loaded, for programs that read by cuFile. NCCL does not need it, so its absence is a PASS.",
	  .run = run_storage },
	{ "boot-args", "kernel arguments that work against NCCL",
	  "WARN: pcie_acs_override (it clears no redirect bit), amd_iommu=pt or intel_iommu=pt (no such value: iommu=pt is meant), pci=noacs (no such value: pci=disable_acs_redir= is meant), pci=assign-busses, pci=noats. UNKNOWN: /proc/cmdline is not readable.",
	  .run = run_boot_args },
};
const size_t doctor_host_checks_n = ARRAY_LEN(doctor_host_checks);
