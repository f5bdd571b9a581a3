/*
 * The host's kernel: modules for GPUDirect, the command line, NUMA balancing; modules of RDMA that
 * are missing, peer memory that does not fit its driver. Options of NVIDIA's GPU driver:
 * /proc/driver/nvidia/params has every option that it knows, a line each
 * ("EnablePCIERelaxedOrderingMode: 0"); their meaning is in the open kernel modules' nv-reg.h. A
 * misspelt one is ignored with a line in the kernel's log, and guides misspell them.
 */
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/str.h"
#include "doctor/doctor-internal.h"
#include "hw/driver.h"
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

/* --- modules --- */

static const struct diagnosis_advice module_rdma = {
	"The card is there as an Ethernet card only: NCCL cannot use it, and goes over TCP or farther NICs.",
	{ "modprobe it now, and name it in /etc/modules-load.d/ (--fix-manifest grub has the command).",
	  "Apply a MachineConfig with a file in /etc/modules-load.d (--fix-manifest openshift).",
	  "Add it to machine.kernel.modules (--fix-manifest talos)." },
};
static const struct diagnosis_advice module_cm = {
	"Nothing for NCCL; UCX, NVSHMEM, libfabric and storage over RDMA connect by /dev/infiniband/rdma_cm.",
	{ "modprobe rdma_ucm, and name it in /etc/modules-load.d/ (--fix-manifest grub has the command).",
	  "Apply a MachineConfig with a file in /etc/modules-load.d (--fix-manifest openshift).",
	  "Add rdma_ucm to machine.kernel.modules (--fix-manifest talos)." },
};

/* Is there an RDMA device of any function of this driver? Then its module is loaded. */
static bool is_served(const struct hw_inventory *inv, const char *driver)
{
	for (size_t i = 0; i < inv->n_rdma; i++) {
		if (inv->rdma[i].pci >= 0 && str_eq(inv->pci[inv->rdma[i].pci].driver, driver))
			return true;
	}
	return false;
}

static bool was_said(const struct diagnosis *r, const char *module)
{
	for (size_t i = diagnosis_n_before(r); i < diagnosis_n(r); i++) {
		if (str_eq(diagnosis_at(r, i)->module, module))
			return true;
	}
	return false;
}

static void run_modules(const struct facts *f, struct diagnosis *r)
{
	const struct hw_inventory *inv = f->inv;

	for (size_t i = 0; i < inv->n_pci; i++) {
		const struct hw_driver *driver =
			hw_is_pf(&inv->pci[i]) ? hw_driver_find(inv->pci[i].driver) : NULL;
		const char *module = driver ? driver->rdma_module : NULL;

		if (!module || is_served(inv, inv->pci[i].driver) || was_said(r, module))
			continue;
		diagnosis_add(
			r, DIAGNOSIS_WARN, &module_rdma, facts_address(f, (int)i),
			"%s has the driver %s, and no card of it has an RDMA device: %s is not loaded.",
			facts_nic_name(f, (int)i), inv->pci[i].driver, module)
			->module = module;
	}
	if (inv->n_rdma && !inv->has_rdma_cm)
		diagnosis_add(r, DIAGNOSIS_WARN, &module_cm, "host",
			      "There are RDMA devices and no rdma_cm: rdma_ucm is not loaded.")
			->module = "rdma_ucm";
	if (inv->n_rdma)
		diagnosis_fine(r, "No RDMA module is missing.");
}

/* --- peermem --- */

static const struct diagnosis_advice peer_other_version = {
	"A module of another version than the driver's does not load after the next boot, or fails with it: GPUDirect RDMA is gone then.",
	{ "Rebuild the driver's modules together (dkms autoinstall), unload the old one, and load nvidia-peermem again.",
	  "Let the GPU operator build both: driver.rdma.enabled: true.",
	  "Use driver and peer memory of one system extension." },
};
static const struct diagnosis_advice peer_two = {
	"Both want to serve NVIDIA's memory: the older one (nv_peer_mem) is for drivers before R470.",
	{ "Remove the package nvidia-peer-memory (nv_peer_mem), and load nvidia-peermem again." },
};
static const struct diagnosis_advice peer_silent = {
	"Loaded, and the RDMA core does not know it: registering GPU memory fails.",
	{ "Load it after the network driver: systemctl restart openibd, then rmmod and modprobe nvidia-peermem; look into the kernel's log for 'nvidia_peermem'.",
	  "Restart the GPU operator's driver pod of this node after the network operator's.",
	  "Order the modules in machine.kernel.modules: mlx5_ib before nvidia_peermem." },
};
static const struct diagnosis_advice peer_impossible = {
	"nvidia-peermem does not load here ('Invalid argument'): the kernel's own RDMA core has no peer memory, which comes with MLNX_OFED or DOCA.",
	{ "Use dmabuf: the open kernel modules and Linux 5.12 or later; or install DOCA-OFED and rebuild the driver's modules.",
	  "Use dmabuf: driver.kernelModuleType: open in the ClusterPolicy; or the network operator's driver.",
	  "Use the system extension nvidia-open-gpu-kernel-modules (dmabuf)." },
};

static void run_peermem(const struct facts *f, struct diagnosis *r)
{
	const struct facts_host *h = &f->host;

	if (!facts_has_vendor(f, "NVIDIA"))
		return;
	if (h->peermem_version && h->nvidia_version &&
	    strcmp(h->peermem_version, h->nvidia_version) != 0)
		diagnosis_add(r, DIAGNOSIS_WARN, &peer_other_version, "host",
			      "nvidia_peermem is of version %s, the driver of version %s.",
			      h->peermem_version, h->nvidia_version);
	if (h->peermem_version && h->old_peermem)
		diagnosis_add(r, DIAGNOSIS_WARN, &peer_two, "host",
			      "Both nvidia_peermem and nv_peer_mem are loaded.");
	if (h->peermem_version && h->peermem_registered == FACTS_NO)
		diagnosis_add(r, DIAGNOSIS_WARN, &peer_silent, "host",
			      "nvidia_peermem is loaded, and the RDMA core does not list it.");
	if (h->peermem == FACTS_NO && h->rdma_peers == FACTS_NO && h->nvidia_open == FACTS_NO)
		diagnosis_add(
			r, DIAGNOSIS_WARN, &peer_impossible, "host",
			"The RDMA core of this kernel has no interface for peer memory, and the driver is not the open kernel modules.");
	if (h->peermem_version)
		diagnosis_fine(r, "nvidia_peermem %s is loaded once, beside its driver.",
			       h->peermem_version);
}

/* --- gpu-options --- */

#define PREFIX "nvidia.NVreg_"

static const struct diagnosis_advice unknown_option = {
	"The driver ignores it, so whatever it was meant to change is as it was.",
	{ "Compare its letters with /proc/driver/nvidia/params, and write it as it is there, with NVreg_ before it; or take it out of GRUB_CMDLINE_LINUX.",
	  "Write it in the MachineConfig's kernelArguments as /proc/driver/nvidia/params has it, or take it out.",
	  "Write it in machine.install.extraKernelArgs as /proc/driver/nvidia/params has it, or take it out." },
};
static const struct diagnosis_advice topology_override = {
	"The driver no longer looks whether GPU and NIC can reach each other before it gives peer memory: where ACS or IOMMU groups do not fit, transfers fail or are slow without a message.",
	{ "Set the ACS masks (see the checks acs and iommu-groups), then take NVreg_GrdmaPciTopoCheckOverride out of /etc/modprobe.d and GRUB_CMDLINE_LINUX.",
	  "Set the ACS masks (see the checks acs and iommu-groups), then take it out of the MachineConfig.",
	  "Set the ACS masks (see the checks acs and iommu-groups), then take it out of machine.kernel.modules." },
};
static const struct diagnosis_advice options_fine = {
	"Relaxed ordering of GPUs (EnablePCIERelaxedOrderingMode) is 0 by default; 1 is for GPUs of the A100's time on some CPUs, and has to be measured.",
	{ NULL },
};

/* The text behind "KEY: "; NULL: the driver has no such option. */
static const char *param(const char *params, const char *key, size_t len)
{
	for (const char *line = params; line; line = str_next_line(line)) {
		if (!strncmp(line, key, len) && line[len] == ':')
			return line + len + 1 + strspn(line + len + 1, " ");
	}
	return NULL;
}

static bool is_set(const char *params, const char *key)
{
	const char *value = param(params, key, strlen(key));

	return value && strtol(value, NULL, 0) != 0;
}

static void judge_words(const struct facts *f, struct diagnosis *r)
{
	const char *word = f->host.cmdline ? f->host.cmdline : "";

	for (size_t len; *word; word += len, word += strspn(word, " ")) {
		size_t name;

		len = strcspn(word, " ");
		name = strcspn(word, " =");
		if (name <= strlen(PREFIX) || !str_starts(word, PREFIX) ||
		    param(f->host.nvidia_params, word + strlen(PREFIX), name - strlen(PREFIX)))
			continue;
		diagnosis_add(
			r, DIAGNOSIS_WARN, &unknown_option, "host",
			"The kernel was booted with %.*s, which is not an option of this GPU driver.",
			(int)name, word);
	}
}

static void run_gpu_options(const struct facts *f, struct diagnosis *r)
{
	const char *params = f->host.nvidia_params;

	if (!facts_has_vendor(f, "NVIDIA") || !params)
		return;
	judge_words(f, r);
	if (is_set(params, "GrdmaPciTopoCheckOverride"))
		diagnosis_add(r, DIAGNOSIS_WARN, &topology_override, "host",
			      "The GPU driver has NVreg_GrdmaPciTopoCheckOverride=1.");
	if (diagnosis_worst_so_far(r) == DIAGNOSIS_PASS)
		diagnosis_add(r, DIAGNOSIS_PASS, &options_fine, "host",
			      "The GPU driver knows its options; relaxed ordering of GPUs is %s.",
			      is_set(params, "EnablePCIERelaxedOrderingMode") ? "forced on"
									      : "as they have it");
}

/* --- ibgda --- */

static const struct diagnosis_advice ibgda_half = {
	"GPUs cannot map the doorbell of a NIC: NVSHMEM's IBGDA, as DeepEP uses it, goes by a helper on the CPU, or fails before NVSHMEM 3.4.5.",
	{ "options nvidia NVreg_EnableStreamMemOPs=1 NVreg_RegistryDwords=\"PeerMappingOverride=1;\" in /etc/modprobe.d/nvidia.conf, update-initramfs -u (dracut -f), reboot. On GRUB's command line the semicolon has to be quoted.",
	  "Name a ConfigMap with a file nvidia.conf that has NVreg_EnableStreamMemOPs=1 and NVreg_RegistryDwords=\"PeerMappingOverride=1;\" as driver.kernelModuleConfig of the ClusterPolicy.",
	  "Give machine.kernel.modules the parameters NVreg_EnableStreamMemOPs=1 and NVreg_RegistryDwords=PeerMappingOverride=1; of nvidia." },
};
static const struct diagnosis_advice ibgda_off = {
	"Nothing for NCCL. NVSHMEM's IBGDA (NVSHMEM_IB_ENABLE_IBGDA=1; DeepEP) goes by a helper on the CPU, or fails before NVSHMEM 3.4.5, unless the driver has NVreg_EnableStreamMemOPs=1 and NVreg_RegistryDwords=\"PeerMappingOverride=1;\".",
	{ NULL },
};
static const struct diagnosis_advice ibgda_on = {
	"NVSHMEM's IBGDA (NVSHMEM_IB_ENABLE_IBGDA=1; DeepEP) sends without the CPU.", { NULL }
};

/* The options of NVSHMEM's and DeepEP's guides; a capture that was scrubbed has no RegistryDwords.
 */
static void run_ibgda(const struct facts *f, struct diagnosis *r)
{
	static const char dwords[] = "RegistryDwords", word[] = "PeerMappingOverride=1";
	const char *value = param(f->host.nvidia_params, dwords, strlen(dwords)), *at;
	bool boot = f->host.cmdline && strstr(f->host.cmdline, "PeerMappingOverride"),
	     ops = is_set(f->host.nvidia_params, "EnableStreamMemOPs");

	if (!facts_has_vendor(f, "NVIDIA") || !value)
		return;
	at = strstr(value, word);
	if (at && at < value + strcspn(value, "\n") && strchr(";\"", at[strlen(word)]))
		diagnosis_add(r, DIAGNOSIS_PASS, &ibgda_on, "host",
			      "GPUs can map the doorbells of NICs (PeerMappingOverride=1).");
	else if (boot || ops)
		diagnosis_add(r, DIAGNOSIS_WARN, &ibgda_half, "host",
			      "%s, and the driver's RegistryDwords have no PeerMappingOverride=1.",
			      boot ? "The kernel was booted with PeerMappingOverride"
				   : "EnableStreamMemOPs=1 is set");
	else
		diagnosis_add(r, DIAGNOSIS_PASS, &ibgda_off, "host",
			      "GPUs cannot map the doorbells of NICs (no PeerMappingOverride).");
}

const struct diagnosis_check doctor_host_checks[] = {
	{ "gpudirect", "GPUDirect RDMA with NVIDIA GPUs", .run = run_gpudirect,
	  .in_manifest = true },
	{ "gpudirect-amd", "GPUDirect RDMA with AMD GPUs", .run = run_gpudirect_amd },
	{ "rccl-host", "host settings that RCCL reads", .run = run_rccl_host, .in_manifest = true },
	{ "storage", "GPUDirect Storage", .run = run_storage },
	{ "boot-args", "kernel arguments that work against NCCL", .run = run_boot_args },
	{ "modules", "RDMA modules of the kernel", .run = run_modules, .in_manifest = true },
	{ "peermem", "nvidia_peermem beside its driver", .run = run_peermem },
	{ "gpu-options", "options of NVIDIA's GPU driver", .run = run_gpu_options },
	{ "ibgda", "driver options of NVSHMEM's IBGDA", .run = run_ibgda },
};
const size_t doctor_host_checks_n = ARRAY_LEN(doctor_host_checks);
