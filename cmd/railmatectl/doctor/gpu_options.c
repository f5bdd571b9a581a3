/*
 * Options of NVIDIA's GPU driver: /proc/driver/nvidia/params has every option that it knows, a line
 * each ("EnablePCIERelaxedOrderingMode: 0"); their meaning is in the open kernel modules' nv-reg.h.
 * A misspelt one is ignored with a line in the kernel's log, and guides misspell them.
 */
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/str.h"
#include "doctor/doctor-internal.h"

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

const struct diagnosis_check doctor_gpu_option_checks[] = {
	{ "gpu-options", "options of NVIDIA's GPU driver",
	  "Reads /proc/driver/nvidia/params and the kernel's command line. WARN: a nvidia.NVreg_ option of the command line that this driver does not know, or GrdmaPciTopoCheckOverride=1. PASS: neither, and whether relaxed ordering of GPUs is forced on. Without the file it does not apply.",
	  .run = run_gpu_options },
	{ "ibgda", "driver options of NVSHMEM's IBGDA",
	  "Reads /proc/driver/nvidia/params: with PeerMappingOverride=1 among RegistryDwords a GPU can ring a NIC's doorbell, which IBGDA wants. Without is a PASS, for NCCL does not need it. WARN: only half of it: EnableStreamMemOPs=1, or the word on the kernel's command line, while the driver does not have it. Without the file it does not apply.",
	  .run = run_ibgda },
};
const size_t doctor_gpu_option_checks_n = ARRAY_LEN(doctor_gpu_option_checks);
