/* room: load */
/*
 * Any bytes as a uevent, as a datagram of rtnetlink, and as the names of files in the plugin
 * directory: each is judged within its bytes, and a uevent by the first SUBSYSTEM that it names.
 */
#include <assert.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "base/mem.h"
#include "base/str.h"
#include "netlink/netlink.h"
#include "load/watch-internal.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* The same judgement once more, key by key from the front; a key without its NUL is none. */
static bool expected(const char *buf, size_t len)
{
	static const char *const ours[] = { "SUBSYSTEM=pci", "SUBSYSTEM=net",
					    "SUBSYSTEM=infiniband", "SUBSYSTEM=infiniband_verbs" };
	size_t at = 0, n;

	for (n = strnlen(buf, len); at + n < len; at += n + 1, n = strnlen(buf + at, len - at)) {
		if (at == 0 && !strchr(buf, '@'))
			return false;
		if (n < 10 || memcmp(buf + at, "SUBSYSTEM=", 10) != 0)
			continue;
		for (size_t i = 0; i < ARRAY_LEN(ours); i++) {
			if (!strcmp(buf + at, ours[i]))
				return true;
		}
		return false;
	}
	return false;
}

static void check_names(const char *buf, size_t len)
{
	for (size_t at = 0, n; at < len; at += n + 1) {
		n = strnlen(buf + at, len - at);
		if (at + n == len)
			return;
		assert(dir_name_matters(buf + at) || !n || buf[at] == '.' || buf[at] == 'k');
	}
}

/* A sanitizer would see a name that does not end. */
static void read_name(void *ctx, const char *netdev)
{
	*(size_t *)ctx = strlen(netdev);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const char *buf = (const char *)data;
	size_t length = 0;

	if (!size)
		return 0;
	assert(uevent_matters(buf, size) == expected(buf, size));
	check_names(buf, size);
	netlink_reports_link(buf, size, read_name, &length);
	assert(length <= size);
	return 0;
}
