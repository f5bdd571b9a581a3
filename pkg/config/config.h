/*
 * The operator's configuration: sriov-network-device-plugin's config.json plus one object
 * `railmate` per pool and one beside resourceList. Text in, validated structs out; reading the file
 * is the caller's. Keys match without regard to case, null is absent, an unknown key warns (as that
 * plugin: encoding/json), also inside an object named `railmate`: a file for a later version of
 * ours still loads after a roll-back.
 *
 *   { "resourceList": [ { "resourceName": "vf", …,
 *                         "railmate": { "gid": "fixed:3", "network": "host" } } ],
 *     "railmate": { "gpus": [ { "vendor": "10de", "classes": ["0300", "0302"],
 *                               "name": "NVIDIA" } ] } }
 *
 * `gpus` replaces the built-in table of GPUs, `rails` ({ "ens1f0": 0 }) the order of the GPUs as
 * the number of a PF's rail.
 */
#ifndef RAILMATE_CONFIG_CONFIG_H
#define RAILMATE_CONFIG_CONFIG_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "hw/bdf.h"
#include "hw/inventory.h"

struct arena;
struct err;
struct strbuf;
struct topo_hints;
struct topo_rail_name;

struct index_range {
	int first, last;
};

/* "name#0,2-7": pfNames and rootDevices. No ranges: every index. */
struct pf_selector {
	const char *name;
	const struct index_range *ranges;
	size_t n_ranges;
};

/* AND between members, OR inside one; an empty member matches everything. */
struct selector {
	const uint16_t *vendors;
	size_t n_vendors;
	const uint16_t *devices;
	size_t n_devices;
	const char *const *drivers;
	size_t n_drivers;
	const struct bdf *addresses;
	size_t n_addresses;
	const struct pf_selector *pf_names;
	size_t n_pf_names;
	const struct pf_selector *root_devices;
	size_t n_root_devices; /* name is a formatted PCI address */
	const char *const *link_types;
	size_t n_link_types; /* "ether", "infiniband" */
	const char *const *if_names;
	size_t n_if_names; /* the function's own interface; of shared HCAs only */
	const int *acpi_indexes;
	size_t n_acpi_indexes;
	const uint16_t *pkeys;
	size_t n_pkeys; /* the P_Key at index 0 of an InfiniBand VF */
	bool is_rdma;
	bool need_vhost_net; /* also /dev/vhost-net and /dev/net/tun; no condition */
};

enum gid_mode { GID_AUTO, GID_FIXED, GID_OFF };
enum gid_family { GID_FAMILY_ANY, GID_FAMILY_IPV4, GID_FAMILY_IPV6 };
enum topology_file { TOPOLOGY_FILE_AUTO, TOPOLOGY_FILE_ALWAYS, TOPOLOGY_FILE_NEVER };
enum nccl_rails { NCCL_RAILS_AUTO, NCCL_RAILS_ALWAYS, NCCL_RAILS_NEVER };
enum pool_dra { POOL_DRA_ABSTRACT, POOL_DRA_EXACT };
/* The libraries of the containers: bits of pool_config.profiles. "none" is 0. */
enum profile {
	PROFILE_NCCL = 1 << 0,
	PROFILE_RCCL = 1 << 1,
	PROFILE_UCX = 1 << 2,
	PROFILE_NVSHMEM = 1 << 3,
	PROFILE_MSCCLPP = 1 << 4,
	PROFILE_OFI = 1 << 5,
	PROFILE_ONECCL = 1 << 6,
	PROFILE_NIXL = 1 << 7, /* with PROFILE_UCX, which it is, by VFs alone */
};
/*
 * Which PFs without VFs are devices of the pool ("vfsOnly"): all that its selectors match, with a
 * note (pools without a railmate object, as that plugin); those that pciAddresses or acpiIndexes
 * name (pools with one); all (false); none (true, and the built-in pool).
 */
enum pool_pfs { PFS_NOTED, PFS_NAMED, PFS_TAKEN, PFS_NEVER };
enum pool_network { NETWORK_POD, NETWORK_HOST };
enum pool_binding { BINDING_EARLY, BINDING_LATE };

/* For additionalInfo: device "*" or an id; values in key order. */
struct extra_info {
	const char *device, *key, *value;
};

/* A variable of the operator's policy ("env"), passed on as it is: name known, value in its range.
 * In name order. */
struct policy_env {
	const char *name, *value;
};

/* Troubles of a link over time: bits. */
enum link_trouble {
	LINK_FLAPS = 1 << 0,  /* the link went down so often */
	LINK_ERRORS = 1 << 1, /* the link counts errors so fast */
	LINK_SLOW = 1 << 2,   /* rate, PCIe speed or width are lower than before */
};

/* As "unhealthy" of a pool, metrics and JSON call them; [i] is of bit i. */
#define LINK_TROUBLES 3
extern const char *const config_link_troubles[LINK_TROUBLES];

struct pool_health {
	unsigned unhealthy; /* which of them make VFs unhealthy; the others are only logged */
	unsigned flaps;	    /* so often, within … */
	unsigned window_s;
	unsigned errors_per_minute;
};

struct pool_config {
	const char *resource; /* "prefix/name" */
	const char *prefix, *name;
	bool exclude_topology;
	/* 0: VFs, each of one container. Else of config.shared: how many containers share all that
	 * is selected */
	unsigned shares;
	enum pool_pfs pfs;
	/* Not configured any more: has the VFs that containers still hold (config_retire()) */
	bool retired;
	bool kept; /* its entry has an error: as it was before (config_keep()) */
	/* A selector has isRdma: device nodes and NCCL variables are injected, for the VFs of that
	 * selector */
	bool is_rdma;
	/* Union; none: everything of the device type (with an RDMA device if is_rdma: the built-in
	 * pool). */
	const struct selector *selectors;
	size_t n_selectors;
	const struct extra_info *extra;
	size_t n_extra;
	/* railmate: {…} */
	enum gid_mode gid;	   /* "gid": "auto" (default) | "fixed:N" | "off" */
	int gid_index;		   /* of fixed:N */
	enum pool_network network; /* "network": "pod" (default) | "host" */
	/* "gidFamily": "any" (default) | "ipv4" | "ipv6"; with a gidRange: its family */
	enum gid_family gid_family;
	/* "gidRange": "10.0.0.0/8", an IPv4 or IPv6 prefix as written; NULL: any */
	const char *gid_range;
	uint8_t gid_range_addr[16]; /* the same, IPv4 mapped into ::ffff:0:0/96 */
	int gid_range_bits;	    /* 0 … 128, of gid_range_addr */
	int roce_version;	    /* "roceVersion": 2 (default) | 1 */
	unsigned profiles;	    /* "profiles": ["nccl"] (default); [] and ["none"] are 0 */
	/* The key is there; without it rdma_cm is given too, as that plugin gives it */
	bool profiles_named;
	/* "topologyFile": "auto" (default) | "always" | "never" */
	enum topology_file topology_file;
	/* "ncclRails": "auto" (default: where the file's "rails" names them) | "always" |
	 * "never" */
	enum nccl_rails nccl_rails;
	/* "pkey": "0x8001", a P_Key value of InfiniBand partitions; -1 (default): NCCL's own
	 * choice */
	int pkey;
	/* "strictTransport": true: UCX without TCP, by a variable in env */
	bool strict_transport;
	bool umad; /* "umad": true: the MAD nodes of RDMA devices, too */
	/* "cufile": true, or an object: a cufile.json for GPUDirect Storage, with these members as
	 * they are written; the second are those of its "properties" */
	bool cufile;
	const struct policy_env *cufile_base, *cufile_properties;
	size_t n_cufile_base, n_cufile_properties;
	/* "dra": "abstract" (default; devices are slots) | "exact" (a device for each PF): with DRA
	 * only */
	enum pool_dra dra;
	bool probe; /* "probe": true (default) | false: without railmate-probe in containers */
	const struct policy_env *env;
	size_t n_env; /* "env": {"NCCL_IB_TC": "106", …}; the known ones: config/policy.h */
	/* "env": {"UCX_NET_DEVICES": "eth0"}: not in env, follows the VFs there; NULL: none */
	const char *ucx_devices;
	/* "health": {"unhealthy": ["flaps", "errors", "slow"] (none), "flaps": 3, "window": 600
	 * (seconds), "errorsPerMinute": 100} */
	struct pool_health health;
	/* "strict": false (default) | true; early: a container that misses the nearest VFs is
	 * warned of */
	bool strict;
	enum pool_binding binding; /* "binding": "early" (ids are PCI addresses) | "late" (slots) */
	/* | "auto" (default of the built-in pool and of pools with a railmate object; else early):
	 * early until config_bind() */
	bool binding_auto;
	/* Of auto, and with DRA: a clause; NULL: not decided yet, or not asked for */
	const char *binding_why;
	bool binding_held; /* only because containers hold VFs by this binding */
};

/* An entry of a list of pools that has an error: the pool is left out, or a part of it. */
struct pool_error {
	const char *resource; /* NULL: not known, for the error is in its name */
	size_t at;	      /* how many pools of the list stand before it */
};

struct config {
	struct arena *arena; /* owns everything below */
	const struct pool_config *pools;
	size_t n_pools;
	const struct pool_config *shared;
	size_t n_shared; /* HCAs that containers share (config/config.h); not held */
	const struct gpu_match *gpus;
	size_t n_gpus; /* railmate.gpus; none: the built-in table */
	const struct topo_rail_name *rails;
	size_t n_rails; /* railmate.rails; none: the order of the GPUs (topo/rails.h) */
	const char *const *warnings;
	size_t n_warnings; /* sentences for the operator */
	const char *const *errors;
	size_t n_errors; /* pools, keys of ours and variables that are left out, with the reasons */
	const struct topo_hints *hints; /* config/config.h; NULL: none */
	const struct pool_error *faults, *shared_faults;
	size_t n_faults, n_shared_faults;
	bool top_fault; /* something of `railmate` beside resourceList is left out */
};

/* Larger files are refused unread; the API server's limit for a ConfigMap is 1 MiB. */
#define CONFIG_BYTES_MAX (4u << 20)

/*
 * name is used in messages ("config.json:12: …"); default_prefix is the command line's
 * (--resource-prefix), NULL for that plugin's (intel.com). A pool that cannot be served is left
 * out, so is a key of ours or a variable that cannot be understood: errors say so, with file, line,
 * key and legal values, and the rest is served. -EINVAL with such a sentence when nothing is left
 * to serve, or the file is not a configuration; its other errors and its warnings are then added to
 * `also` (may be NULL), one a line.
 */
int config_parse(const char *text, size_t len, const char *name, const char *default_prefix,
		 struct config **ret, struct strbuf *also, struct err *err);
/* The configuration without a file: one pool rdma/vf of every VF that has an RDMA device. */
struct config *config_default(void);
/* No pool: the configuration when the file is refused. */
struct config *config_none(void);
/* Each line is an error. Before another thread or a node has cfg. */
void config_add_errors(struct config *cfg, const char *lines);
/* Sets the binding that auto means for this pool; why is copied. held: until containers hold
 * nothing of it. Before a node is made of cfg, and before its bindings are read. */
void config_bind(struct config *cfg, size_t pool, enum pool_binding binding, const char *why,
		 bool held);
/* All pools but the shared ones are served by DRA: their devices are bound late, and stand for any
 * NUMA node. Before cfg is shared. */
void config_by_claims(struct config *cfg);
/*
 * cfg without its retired pools, and behind them those of `before` that are marked (an array of
 * before->n_pools), retired: for a configuration that is replaced while containers hold VFs of
 * pools that the new one does not have. Both live on for as long as the result needs them.
 */
struct config *config_retire(const struct config *cfg, const struct config *before,
			     const bool *marked);
/*
 * cfg, in which pools, GPUs and rails that have an error are those of `before`: no pod is served
 * worse for a typo. A pool whose name cannot be read could be any that is missing: they all stay.
 */
struct config *config_keep(const struct config *cfg, const struct config *before);
/* Counted (atomic), and not changed once it is shared: any thread may read. One that a caller made
 * itself (arena NULL) is not counted and not freed. */
const struct pool_config *config_pool(const struct config *cfg,
				      const char *resource); /* NULL: none */
struct config *config_ref(const struct config *cfg);
void config_free(struct config *cfg); /* gives one reference back; NULL is fine */

/*
 * The operator's hints of facts that a virtual machine hides (topo/topo.h), a file of its own:
 *
 *   { "groups": [ { "gpus": ["0001:00:00.0"], "nics": ["0101:00:00.0"], "numa": 0 } ],
 *     "linkSpeed": 32, "linkWidth": 16 }
 *
 * Members of a group share a PCIe switch. Keys as above; an address stands there once.
 */

#define HINTS_BYTES_MAX (1u << 20)

/* Into cfg->hints; warnings are added to cfg's. -EINVAL with a sentence that names file, line, key
 * and legal values: cfg is as before, and `also` as of config_parse(). */
int config_parse_hints(const char *text, size_t len, const char *name, struct config *cfg,
		       struct strbuf *also, struct err *err);

/*
 * The configuration of k8s-rdma-shared-dev-plugin: HCAs that many containers share.
 *
 *   { "periodicUpdateInterval": 300,
 *     "configList": [ { "resourceName": "hca_shared_devices_a", "rdmaHcaMax": 1000,
 *                       "selectors": { "vendors": ["15b3"], "deviceIDs": ["1017"],
 *                                      "drivers": ["mlx5_core"], "ifNames": ["ib0"],
 *                                      "linkTypes": ["infiniband"] } } ] }
 *
 * Into cfg->shared, after its pools were read. As config_parse(): an entry that cannot be served is
 * left out, with an error in cfg.
 */
int config_parse_shared(const char *text, size_t len, const char *name, struct config *cfg,
			struct strbuf *also, struct err *err);

#endif
