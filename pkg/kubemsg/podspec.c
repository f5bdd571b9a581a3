#include "kubemsg/podspec.h"

#include <errno.h>
#include <string.h>

#include "base/mem.h"
#include "base/str.h"

bool kubemsg_podspec_is_extended(const char *resource)
{
	return strchr(resource, '/') && !strstr(resource, "kubernetes.io/") &&
	       !str_starts(resource, "requests.");
}

bool kubemsg_podspec_is_over(const char *phase)
{
	return str_eq(phase, "Succeeded") || str_eq(phase, "Failed");
}

enum spec_kind kubemsg_podspec_kind(bool init, const char *restart_policy)
{
	if (!init)
		return SPEC_APP;
	return str_eq(restart_policy, "Always") ? SPEC_SIDECAR : SPEC_INIT;
}

static int scale(int64_t *v, int64_t base, uint64_t exponent)
{
	while (exponent--) {
		if (__builtin_mul_overflow(*v, base, v))
			return -EINVAL;
	}
	return 0;
}

/* What may follow the digits; "e3" and "E3" are powers of ten, "E" alone is one of the names. */
static int apply_suffix(const char *suffix, int64_t *v)
{
	static const struct {
		const char *name;
		int64_t base;
		unsigned exponent;
	} suffixes[] = {
		{ "", 1, 0 },	   { "k", 1000, 1 },  { "M", 1000, 2 },	 { "G", 1000, 3 },
		{ "T", 1000, 4 },  { "P", 1000, 5 },  { "E", 1000, 6 },	 { "Ki", 1024, 1 },
		{ "Mi", 1024, 2 }, { "Gi", 1024, 3 }, { "Ti", 1024, 4 }, { "Pi", 1024, 5 },
		{ "Ei", 1024, 6 },
	};
	uint64_t exponent;

	for (size_t i = 0; i < ARRAY_LEN(suffixes); i++) {
		if (!strcmp(suffix, suffixes[i].name))
			return scale(v, suffixes[i].base, suffixes[i].exponent);
	}
	if ((*suffix == 'e' || *suffix == 'E') && str_to_u64(suffix + 1, 10, 18, &exponent) == 0)
		return scale(v, 10, exponent);
	return -EINVAL;
}

int kubemsg_podspec_count(const char *quantity, int64_t *ret)
{
	char digits[20] = "";
	size_t n = strspn(quantity, "0123456789");
	uint64_t u;
	int64_t v;

	if (!n || n >= sizeof(digits))
		return -EINVAL;
	memcpy(digits, quantity, n);
	if (str_to_u64(digits, 10, INT64_MAX, &u) < 0)
		return -EINVAL;
	v = (int64_t)u;
	if (apply_suffix(quantity + n, &v) < 0)
		return -EINVAL;
	*ret = v;
	return 0;
}
