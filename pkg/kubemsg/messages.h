/*
 * Messages of the kubelet and of container runtimes ↔ plain structs: DevicePlugin v1beta1,
 * PodResources v1, pluginregistration v1, Pods v1alpha1, CRI v1. The only user of protobuf-c.
 * Decoders return -EBADMSG with a sentence for bytes that do not parse, hold invalid UTF-8 or NUL
 * in an id (err->code is EILSEQ for these two), or exceed MESSAGE_IDS_MAX; results live in the
 * arena. A preference must not fail: kubemsg_preferred takes an id that is not text for an unknown
 * one ('?' for each bad byte). Encoders cannot fail: strings that are not UTF-8 are an assertion
 * (render and node guarantee it). Messages that only the kubelet or a runtime sends are in
 * tests/kubepeer.
 */
#ifndef RAILMATE_KUBEMSG_MESSAGES_H
#define RAILMATE_KUBEMSG_MESSAGES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/bytes.h"
#include "hw/edits.h"
#include "kubemsg/podspec.h"

struct arena;
struct err;

#define MESSAGE_IDS_MAX 65536

#define PATH_REGISTER	     "/v1beta1.Registration/Register"
#define PATH_OPTIONS	     "/v1beta1.DevicePlugin/GetDevicePluginOptions"
#define PATH_LIST_AND_WATCH  "/v1beta1.DevicePlugin/ListAndWatch"
#define PATH_PREFERRED	     "/v1beta1.DevicePlugin/GetPreferredAllocation"
#define PATH_ALLOCATE	     "/v1beta1.DevicePlugin/Allocate"
#define PATH_PRE_START	     "/v1beta1.DevicePlugin/PreStartContainer"
#define PATH_POD_LIST	     "/v1.PodResourcesLister/List"
#define PATH_POD_GET	     "/v1.PodResourcesLister/Get"
#define PATH_ALLOCATABLE     "/v1.PodResourcesLister/GetAllocatableResources"
#define PATH_PODS_LIST	     "/v1alpha1.Pods/ListPods"
#define PATH_RUNTIME_VERSION "/runtime.v1.RuntimeService/Version"
#define PATH_RUNTIME_STATUS  "/runtime.v1.RuntimeService/Status"
#define PATH_GET_INFO	     "/pluginregistration.Registration/GetInfo"
#define PATH_NOTIFY_STATUS   "/pluginregistration.Registration/NotifyRegistrationStatus"

struct ids {
	const char **v;
	size_t n;
};

struct plugin_options {
	bool pre_start_required, preferred_allocation;
};
struct register_request {
	const char *version, *endpoint, *resource;
	struct plugin_options options;
};
struct device {
	const char *id;
	bool healthy;
	const int64_t *nodes;
	size_t n_nodes; /* 0: no TopologyInfo */
};
struct device_list {
	struct device *v;
	size_t n;
};
struct preferred_container {
	struct ids available, must;
	int size;
};
struct preferred_request {
	struct preferred_container *v;
	size_t n;
};
struct id_lists {
	struct ids *v; /* one per container_request */
	size_t n;
};
struct plugin_info {
	const char *type, *name, *endpoint;
	struct ids versions;
};
struct registration_status {
	bool registered;
	const char *error;
};

/* PodResources. Entries of one resource are merged: 1.36 sends one ContainerDevices per id, 1.20
 * one per NUMA node. */
struct held {
	const char *resource;
	struct ids ids;
};
/*
 * One device that a DRA driver gave, and the ResourceClaim in the pod's namespace that it is of.
 * CDI names may be none. The kubelet (1.36) shows every container that has part of a claim all of
 * the claim's devices.
 */
struct dynamic {
	const char *driver, *pool, *device;
	struct ids cdi;
	const char *claim;
};
struct pod_container {
	const char *name;
	struct held *held;
	size_t n_held;
	struct dynamic *dynamic;
	size_t n_dynamic; /* of all its claims */
};
struct pod {
	const char *ns, *name;
	struct pod_container *containers;
	size_t n_containers;
};
struct pod_list {
	struct pod *v;
	size_t n;
};

/* The kubelet's answer about its pods: all (a List), or one (a Get; pods is empty: there is no such
 * pod). */
struct pods_said {
	bool all;
	const char *ns, *name; /* of the one */
	const struct pod_list *pods;
	int64_t asked_ms; /* monotonic: it is of that moment, or later */
	uint64_t kubelet; /* a number of the process that answered; 0: not known */
};

/* CRI: the runtime's name and version. */
struct runtime_version {
	const char *name, *version;
};
struct runtime_status {
	const char *config, *cni; /* JSON; NULL: not reported */
};

/* In the order of names, which kubemsg_pods_find() needs. */
void kubemsg_pods_sort(struct pod *pods, size_t n);
const struct pod *kubemsg_pods_find(const struct pod_list *pods, const char *ns,
				    const char *name); /* NULL: not in it */
/* The devices of a resource that a container holds; NULL none. */
const struct ids *kubemsg_held(const struct pod_container *c, const char *resource);

struct edits_list {
	struct edits *v; /* one per container_request */
	size_t n;
};
struct pod_name {
	const char *ns, *name;
};

/* A kind of message, and the struct that it becomes or is made of. */
struct kubemsg_type;
extern const struct kubemsg_type kubemsg_options;	  /* struct plugin_options */
extern const struct kubemsg_type kubemsg_preferred;	  /* struct preferred_request */
extern const struct kubemsg_type kubemsg_preferred_reply; /* struct id_lists */
/* To be read: */
extern const struct kubemsg_type kubemsg_allocate;	      /* struct id_lists */
extern const struct kubemsg_type kubemsg_pre_start;	      /* struct ids */
extern const struct kubemsg_type kubemsg_pod_list;	      /* struct pod_list */
extern const struct kubemsg_type kubemsg_pod_get_reply;	      /* struct pod */
extern const struct kubemsg_type kubemsg_allocatable;	      /* struct pod_container, name "" */
extern const struct kubemsg_type kubemsg_registration_status; /* struct registration_status */
extern const struct kubemsg_type kubemsg_pod_specs; /* struct spec_list: ListPods of the Pods API */
extern const struct kubemsg_type kubemsg_runtime_version; /* struct runtime_version */
extern const struct kubemsg_type kubemsg_runtime_status;  /* struct runtime_status */
/* To be written: */
extern const struct kubemsg_type kubemsg_register;		 /* struct register_request */
extern const struct kubemsg_type kubemsg_device_list;		 /* struct device_list */
extern const struct kubemsg_type kubemsg_allocate_reply;	 /* struct edits_list */
extern const struct kubemsg_type kubemsg_plugin_info;		 /* struct plugin_info */
extern const struct kubemsg_type kubemsg_pod_get_request;	 /* struct pod_name */
extern const struct kubemsg_type kubemsg_runtime_status_request; /* none, NULL: verbose */

/* ret, message: the struct of this type. */
int kubemsg_decode(const struct kubemsg_type *type, struct bytes in, struct arena *a, void *ret,
		   struct err *err);
struct bytes kubemsg_encode(const struct kubemsg_type *type, const void *message, struct arena *a);

#endif
