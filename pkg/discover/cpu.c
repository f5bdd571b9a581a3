/* The model of the first processor of /proc/cpuinfo. The whole file is long and slow to make on a
 * large machine. */
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "base/arena.h"
#include "base/mem.h"
#include "base/str.h"
#include "discover/scan-internal.h"
#include "sysroot/sysroot.h"

/* The line's value if it is "key <tabs>: value", else NULL. */
static const char *value_of(const char *line, const char *key)
{
	if (!str_starts(line, key))
		return NULL;
	line += strlen(key);
	line += strspn(line, " \t");
	return *line == ':' ? line + 1 + (line[1] == ' ') : NULL; /* "  Shanghai  " is a vendor */
}

static bool has_word(const char *list, const char *word)
{
	size_t len;

	for (; *list; list += len) {
		list += strspn(list, " \t");
		len = strcspn(list, " \t");
		if (len == strlen(word) && !strncmp(list, word, len))
			return true;
	}
	return false;
}

struct hw_cpu scan_cpu(struct scan *s)
{
	_cleanup_close_ int fd = sysroot_openat(s->root, O_RDONLY | O_NONBLOCK, "proc/cpuinfo");
	struct hw_cpu cpu = { .family = -1, .model = -1 };
	char text[8192], *save = NULL;
	ssize_t n = fd < 0 ? -1 : read(fd, text, sizeof(text) - 1);

	if (n <= 0)
		return cpu;
	text[n] = '\0';
	if (strstr(text, "\n\n"))
		strstr(text, "\n\n")[0] = '\0';
	for (char *line = strtok_r(text, "\n", &save); line; line = strtok_r(NULL, "\n", &save)) {
		const char *value = value_of(line, "vendor_id");

		if (value && *value) {
			cpu.arch = "x86_64";
			cpu.vendor = arena_strdup(s->arena, value);
		}
		if (value_of(line, "CPU implementer"))
			cpu.arch = "arm64";
		value = value_of(line, "cpu family");
		if (value && str_to_int(value, &cpu.family) < 0)
			cpu.family = -1;
		value = value_of(line, "model");
		if (value && str_to_int(value, &cpu.model) < 0)
			cpu.model = -1;
		value = value_of(line, "flags");
		if (value && has_word(value, "hypervisor"))
			s->is_virtual = true;
	}
	return cpu;
}
