/*
 * nccl.conf in the words of NCCL's own reader (src/misc/param.cc): "NAME=value" up to the end of
 * the line, no quotes, no blanks around '=', '#' in the first column begins a comment (of old
 * versions: a line without '='), and 1023 characters of a value are read, the rest is dropped
 * silently. Variables that the environment has already stay.
 */
#include <string.h>

#include "base/arena.h"
#include "base/str.h"
#include "render/render-internal.h"

#define VALUE_MAX 1023

/* The part of a value that can be read: all, or whole entries of a list of devices. */
static void put_line(struct strbuf *b, const struct kv *kv)
{
	size_t len = strlen(kv->value);
	bool list = !strcmp(kv->key, "NCCL_IB_HCA");

	if (strcspn(kv->value, "\r\n") < len || (len > VALUE_MAX && !list))
		len = 0;
	if (len > VALUE_MAX) {
		for (len = VALUE_MAX; len > 0 && kv->value[len] != ',';)
			len--;
	}
	if (!len && *kv->value) {
		strbuf_printf(b, "# %s is left out: NCCL could not read its value here.\n",
			      kv->key);
		return;
	}
	strbuf_printf(b, "%s=%.*s\n", kv->key, (int)len, kv->value);
}

const char *render_nccl_conf(const struct edits *env, struct arena *arena)
{
	_cleanup_strbuf_ struct strbuf b = STRBUF_INIT;

	strbuf_puts(
		&b,
		"# Written by railmate when the container started, for its VFs. Variables of the environment win.\n");
	for (size_t i = 0; i < env->n_envs; i++) {
		const char *key = env->envs[i].key;

		if ((str_starts(key, "NCCL_") || str_starts(key, "RCCL_")) &&
		    strcmp(key, "NCCL_CONF_FILE") != 0)
			put_line(&b, &env->envs[i]);
	}
	return arena_strdup(arena, strbuf_str(&b));
}
