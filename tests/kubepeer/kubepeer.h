/* The other side of kubemsg/messages.h and kubemsg/dra.h: what the kubelet and a runtime send and
 * read. */
#ifndef RAILMATE_TESTS_KUBEPEER_KUBEPEER_H
#define RAILMATE_TESTS_KUBEPEER_KUBEPEER_H

#include "kubemsg/dra.h"
#include "kubemsg/messages.h"

int peer_decode_device_list(struct bytes in, struct arena *a, struct device_list *ret,
			    struct err *err);
struct bytes peer_encode_allocate(const struct id_lists *m, struct arena *a);
int peer_decode_allocate_reply(struct bytes in, struct arena *a, struct edits **ret, size_t *ret_n,
			       struct err *err);
struct bytes peer_encode_pre_start(const struct ids *m, struct arena *a);
int peer_decode_register(struct bytes in, struct arena *a, struct register_request *ret,
			 struct err *err);
int peer_decode_plugin_info(struct bytes in, struct arena *a, struct plugin_info *ret,
			    struct err *err);
struct bytes peer_encode_registration_status(const struct registration_status *m, struct arena *a);
int peer_decode_pod_get_request(struct bytes in, struct arena *a, const char **ns,
				const char **name, struct err *err);
/* one_entry_per_id: as kubelet 1.36, else as 1.20 */
struct bytes peer_encode_pod_list(const struct pod_list *m, bool one_entry_per_id, struct arena *a);
struct bytes peer_encode_pod_get_reply(const struct pod *m, bool one_entry_per_id, struct arena *a);
struct bytes peer_encode_allocatable(const struct pod_container *m, bool one_entry_per_id,
				     struct arena *a);
struct bytes peer_encode_pod_specs(const struct spec_list *m, struct arena *a);
struct bytes peer_encode_runtime_version(const struct runtime_version *m, struct arena *a);
struct bytes peer_encode_runtime_status(const struct runtime_status *m, struct arena *a);

struct bytes peer_encode_dra_claims(const struct dra_claim_refs *refs, struct arena *a);
int peer_decode_dra_prepare_reply(struct bytes in, struct arena *a, struct dra_results *ret,
				  struct err *err);
int peer_decode_dra_unprepare_reply(struct bytes in, struct arena *a, struct dra_results *ret,
				    struct err *err);
int peer_decode_dra_health(struct bytes in, struct arena *a, struct dra_health_list *ret,
			   struct err *err);

#endif
