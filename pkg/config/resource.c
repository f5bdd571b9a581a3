/* Names that the kubelet takes as an extended resource: k8s.io/kubernetes pkg/apis/core/v1/helper
 * IsExtendedResourceName. */
#include "config/config-internal.h"

#include <string.h>

#define ALNUM_LOWER "abcdefghijklmnopqrstuvwxyz0123456789"
#define ALNUM	    ALNUM_LOWER "ABCDEFGHIJKLMNOPQRSTUVWXYZ"

#define NAME_MAX_LEN   63
#define PREFIX_MAX_LEN (253 - 9) /* the kubelet checks "requests." + prefix as a DNS subdomain */

/* Labels of lower-case letters, digits and inner hyphens, with dots between them. */
static bool is_dns_subdomain(const char *s)
{
	for (;;) {
		size_t n = strspn(s, ALNUM_LOWER "-");

		if (!n || s[0] == '-' || s[n - 1] == '-')
			return false;
		if (!s[n])
			return true;
		if (s[n] != '.')
			return false;
		s += n + 1;
	}
}

static bool ends_with(const char *s, const char *end)
{
	size_t n = strlen(s), m = strlen(end);

	return n >= m && !strcmp(s + n - m, end);
}

const char *resource_prefix_fault(const char *prefix)
{
	if (strlen(prefix) > PREFIX_MAX_LEN || !is_dns_subdomain(prefix))
		return "must be a DNS subdomain: lower-case letters, digits, inner '-' and '.', at most 244 characters";
	if (ends_with(prefix, "kubernetes.io"))
		return "lies in kubernetes.io, which the kubelet refuses";
	if (!strncmp(prefix, "requests.", strlen("requests.")))
		return "begins with 'requests.', which the kubelet refuses";
	return NULL;
}

const char *resource_name_fault(const char *name)
{
	size_t len = strlen(name);

	if (!len || len > NAME_MAX_LEN || strspn(name, ALNUM "-_") != len)
		return "must be 1 to 63 of a-z, A-Z, 0-9, '-' and '_'";
	if (!strchr(ALNUM, name[0]) || !strchr(ALNUM, name[len - 1]))
		return "must begin and end with a letter or digit, or the kubelet refuses it";
	return NULL;
}
