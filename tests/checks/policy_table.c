/* The table of config/policy.h as JSON on standard output: docs/nccl-variables.md is compared with
 * it. */
#include <stdio.h>

#include "base/arena.h"
#include "base/json.h"
#include "base/mem.h"
#include "base/str.h"
#include "config/config.h"
#include "config/config-internal.h"
#include "config/policy.h"

static const struct {
	unsigned profile;
	const char *name;
} profiles[] = {
	{ PROFILE_NCCL, "nccl" },	{ PROFILE_RCCL, "rccl" },	{ PROFILE_UCX, "ucx" },
	{ PROFILE_NVSHMEM, "nvshmem" }, { PROFILE_MSCCLPP, "mscclpp" }, { PROFILE_OFI, "ofi" },
	{ PROFILE_ONECCL, "oneccl" },
};

static const char *const classes[] = {
	[POLICY_FREE] = "free",
	[POLICY_RISKY] = "risky",
	[POLICY_OURS] = "ours",
	[POLICY_GONE] = "gone",
};

static void put_var(struct json *j, const struct policy_var *var, struct arena *arena)
{
	json_begin_object(j);
	json_kv_string(j, "name", var->name);
	json_kv_string(j, "class", classes[var->class]);
	json_key(j, "profiles");
	json_begin_array(j);
	for (size_t i = 0; i < ARRAY_LEN(profiles); i++) {
		if (var->profiles & profiles[i].profile)
			json_put_string(j, profiles[i].name);
	}
	json_end_array(j);
	json_kv_string(j, "legal",
		       var->class == POLICY_OURS ? NULL : policy_legal_text(var, arena));
	json_kv_string(j, "otherwise", var->otherwise);
	json_kv_string(j, "since", var->since);
	json_kv_string(j, "removed", var->removed);
	json_kv_string(j, "key", var->key);
	json_kv_string(j, "meaning", var->meaning);
	json_kv_string(j, "risk", var->risk);
	json_end_object(j);
}

int main(void)
{
	_cleanup_arena_ struct arena *arena = arena_new(4096);
	_cleanup_strbuf_ struct strbuf out = STRBUF_INIT;
	struct json j;

	json_init(&j, &out, 0);
	json_begin_array(&j);
	for (size_t i = 0; i < n_policy_vars; i++)
		put_var(&j, &policy_vars[i], arena);
	json_end_array(&j);
	return puts(strbuf_str(&out)) < 0;
}
