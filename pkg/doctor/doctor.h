/*
 * What of this machine keeps NCCL from being fast or right: facts in, findings out.
 *
 *   facts.c (and net_*.c) read the machine into struct doctor_facts; absent and unreadable are
 *   different values.
 *
 *   Every check is a row { id, title, about, run }: a pure function of the facts that says
 *   doctor_find().
 *
 *   text.c, json.c and manifest.c print what was found.
 *
 * A check says as many findings as there are things to say: one for each device in trouble, or a
 * single PASS for all; none at all when there is nothing here that it is about (AMD's on a machine
 * without AMD GPUs). What cannot be read is DOCTOR_UNKNOWN, never "off" and never a PASS.
 *
 * To add checks: a file with a table of rows, `extern` below, and its line in check.c (tables[]);
 * facts of your own are a struct of your own behind a pointer in doctor_facts, NULL as long as
 * nobody gathered them.
 *
 * Strings live in the report's or the facts' arena, or are static. One thread.
 */
#ifndef RAILMATE_DOCTOR_DOCTOR_H
#define RAILMATE_DOCTOR_DOCTOR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct arena;
struct err;
struct hw_inventory;
struct json;
struct strbuf;
struct sysroot;
struct topo;
struct topo_rails;

/* From good to bad; a check's verdict is that of its worst finding, the doctor's that of its worst
 * check. */
enum doctor_verdict { DOCTOR_PASS, DOCTOR_UNKNOWN, DOCTOR_WARN, DOCTOR_FAIL, DOCTOR_VERDICT_MAX };
const char *doctor_verdict_name(enum doctor_verdict v); /* "PASS" */

/* --- facts --- */

enum doctor_answer { DOCTOR_NO, DOCTOR_YES, DOCTOR_DONT_KNOW };

enum doctor_iommu {
	DOCTOR_IOMMU_UNKNOWN,  /* in a group, whose type cannot be read */
	DOCTOR_IOMMU_NONE,     /* in no group, on a machine that shows its groups or has none */
	DOCTOR_IOMMU_IDENTITY, /* passthrough */
	DOCTOR_IOMMU_DMA,      /* translated, strict */
	DOCTOR_IOMMU_DMA_FQ,   /* translated, lazy */
	DOCTOR_IOMMU_BLOCKED,  /* a driver of user space has it, or may have */
	DOCTOR_IOMMU_OTHER,
};

/* What the configuration space says of a function. Without CAP_SYS_ADMIN there are 64 bytes of it.
 */
enum doctor_config {
	DOCTOR_CONFIG_UNREAD, /* not read: not on a path between a GPU and a NIC */
	DOCTOR_CONFIG_NONE,   /* there is no such file, or it cannot be opened */
	DOCTOR_CONFIG_SHORT,  /* ends before what was wanted: no privilege, or no ECAM */
	DOCTOR_CONFIG_BROKEN, /* all ones, or a list that leads nowhere: the function does not
				 answer */
	DOCTOR_CONFIG_READ,
};

#define DOCTOR_GROUP_NONE    (-1) /* in no group, on a machine that shows its groups or has none */
#define DOCTOR_GROUP_UNKNOWN (-2)

/* The windows in memory that the firmware or the kernel gave a function (its file resource). */
struct doctor_bars {
	enum doctor_answer known; /* NO: the file cannot be read */
	uint64_t largest;	  /* bytes */
	bool unset;		  /* one is wanted and has no place */
	bool vf_unset;		  /* likewise of its VFs, or they have none at all */
};

struct doctor_pci { /* one for each of inv->pci, same index */
	enum doctor_iommu iommu;
	int iommu_group;	       /* its number, or one of the above */
	enum doctor_config config;     /* of the classic part, which has the PCIe capability */
	enum doctor_config config_ext; /* of the extended part, which has ACS and ATS */
	int port_type;		       /* PCIe device/port type; -1 unknown or no PCIe capability */
	int devctl;		       /* PCIe Device Control; -1 */
	int devcap2, devctl2;	       /* -1 */
	int mps_supported;	       /* bytes; -1 */
	bool has_acs, has_ats;	       /* false means something only when config_ext is READ */
	uint16_t acs_ctrl, ats_ctrl;
	struct doctor_bars bars; /* of GPUs and PFs */
};

struct doctor_host { /* NULL and DONT_KNOW: could not be read */
	const char *cmdline;
	const char *kernel;		/* "6.8.0-31-generic" */
	int kernel_major, kernel_minor; /* -1 */
	int iommu_units;		/* entries of sys/class/iommu; -1: no such directory */
	const char *iommu_kind;		/* "dmar", "ivhd", "smmu", "other"; NULL: none */
	int iommu_groups;		/* -1: no such directory */
	enum doctor_answer peermem;	/* nvidia_peermem, or what NCCL takes for it */
	enum doctor_answer nvidia_open; /* the open kernel modules */
	enum doctor_answer amd_peer; /* peer memory of amdkfd, or a kernel that has its interface */
	enum doctor_answer amd_dmabuf; /* the kernel is built with what RCCL wants for dmabuf */
	enum doctor_answer nvidia_fs;  /* GPUDirect Storage */
	enum doctor_answer gdrdrv;     /* GDRCopy */
	const char *nvidia_version, *peermem_version; /* "550.90.07"; NULL unknown */
	const char *nvidia_params; /* options of NVIDIA's driver, a line each; NULL unknown */
	bool old_peermem;	   /* nv_peer_mem is loaded */
	enum doctor_answer peermem_registered; /* the RDMA core lists NVIDIA's peer memory */
	enum doctor_answer rdma_peers;	       /* the RDMA core has an interface for peer memory */
	int numa_balancing;		       /* -1, 0, 1, 2 */
};

struct doctor_net;    /* doctor/net.h */
struct doctor_direct; /* doctor/direct.h */

struct doctor_facts {
	struct arena *arena;
	const struct hw_inventory *inv;
	const struct topo *topo;
	const struct topo_rails *rails; /* with the names of a configuration; NULL: without */
	bool live; /* the running machine: netlink and our own limits make sense */
	enum doctor_answer confined;  /* we run in a container: what it does not show is unknown */
	enum doctor_answer container; /* likewise, and it is judged: its VFs, limits and mounts */
	struct doctor_pci *pci;
	const int *nic; /* where containers' VFs are: PFs with VFs, VFs without a visible PF; when
			   there */
	size_t n_nic;	/* are none, what could be such a PF. Indices of inv->pci, by address */
	struct doctor_host host;
	const struct doctor_net *net;
	const struct doctor_direct *direct; /* what libmlx5 says; NULL: it was not asked */
};

/*
 * HERE: also the container that we run in, if any, as that of a program with VFs; the one of
 * railmate itself never is, by the name of its first process. NODE: without what is only this
 * process's (devices, limits, mounts, libraries), for who runs for the whole node.
 */
enum doctor_of { DOCTOR_OF_HERE, DOCTOR_OF_NODE };
/* What cannot be read is unknown: this cannot fail. inv and topo are borrowed by the facts. */
struct doctor_facts *doctor_gather(const struct sysroot *root, const struct hw_inventory *inv,
				   const struct topo *topo, enum doctor_of of);
void doctor_facts_free(struct doctor_facts *f); /* NULL is fine */

/* --- findings --- */

enum doctor_platform { DOCTOR_GRUB, DOCTOR_OPENSHIFT, DOCTOR_TALOS, DOCTOR_PLATFORM_MAX };
const char *doctor_platform_name(enum doctor_platform p); /* "grub", as in --fix-manifest */

/*
 * Static and shared by findings of one kind: those are printed together. One sentence each.
 * fix[DOCTOR_GRUB] is Ubuntu's and RHEL's; NULL there: nothing to do (PASS only). NULL for another
 * platform: the same as GRUB's.
 */
struct doctor_advice {
	const char *meaning; /* for NCCL */
	const char *fix[DOCTOR_PLATFORM_MAX];
};

struct doctor_report;
struct doctor_check {
	const char *id;	   /* "acs": lower case, digits, '-' */
	const char *title; /* "ACS redirect between GPUs and NICs" */
	const char *about; /* --explain: what is looked at, what each verdict means, what it needs;
			      some sentences */
	void (*run)(const struct doctor_facts *f, struct doctor_report *r);
};

struct doctor_finding {
	const struct doctor_check *check;
	enum doctor_verdict verdict;
	const char *subject;  /* "0000:17:00.0", "mlx5_4 port 1", "host" */
	const char *sentence; /* what was found; names the subject, ends with a full stop */
	const struct doctor_advice *advice;
	const char *kernel_arg; /* what the fix adds to the kernel's command line, for the manifest;
				   NULL */
	const char *module;	/* what the fix loads at boot, likewise; NULL */
};

/* For run(): says a finding. The result is good until the next call; its kernel_arg may be set. */
struct doctor_finding *doctor_find(struct doctor_report *r, enum doctor_verdict v,
				   const struct doctor_advice *a, const char *subject,
				   const char *fmt, ...) __attribute__((format(printf, 5, 6)));
struct arena *doctor_report_arena(const struct doctor_report *r);
/* The worst that the running check has said so far; DOCTOR_PASS when nothing. */
enum doctor_verdict doctor_worst_so_far(const struct doctor_report *r);

/* Every check, in the order of printing. */
size_t doctor_n_checks(void);
const struct doctor_check *doctor_check_at(size_t i);
const struct doctor_check *doctor_check_by_id(const char *id); /* NULL */

/* Runs the checks of only ("acs,iommu"; NULL: all). -EINVAL: a sentence that names the id nobody
 * has. */
int doctor_run(const struct doctor_facts *f, const char *only, struct doctor_report **ret,
	       struct err *err);
void doctor_report_free(struct doctor_report *r);
void doctor_report_freep(struct doctor_report **r);
#define _cleanup_doctor_report_ __attribute__((cleanup(doctor_report_freep)))

enum doctor_verdict doctor_report_verdict(const struct doctor_report *r);
size_t doctor_report_n(const struct doctor_report *r);
/* In the order of the checks. */
const struct doctor_finding *doctor_report_at(const struct doctor_report *r, size_t i);

/*
 * Findings of one check with the same verdict and advice, which are shown together, the worst
 * first. shown: their first sentences, few of those that are UNKNOWN.
 */
struct doctor_kind {
	const struct doctor_finding *first;
	size_t n;
	const char *const *shown;
	size_t n_shown;
};
/* In the report's arena. */
size_t doctor_report_kinds(const struct doctor_report *r, const struct doctor_kind **ret);

void doctor_put_paragraph(struct strbuf *out, const char *text); /* wrapped as doctor_text() does */
void doctor_text(const struct doctor_facts *f, const struct doctor_report *r, struct strbuf *out);
void doctor_json(const struct doctor_facts *f, const struct doctor_report *r,
		 struct json *j); /* a whole object */
/* Can what this check finds be in a manifest? Of the others nothing is missing there when they are
 * unknown. */
bool doctor_is_for_manifest(const struct doctor_check *check);
/* The host change that the findings ask for, ready to apply; false: they ask for none, and nothing
 * was written. role: the pool of nodes that OpenShift's is for; NULL: worker. */
bool doctor_manifest(const struct doctor_facts *f, const struct doctor_report *r,
		     enum doctor_platform p, const char *role, struct strbuf *out);

#endif
