/* An address of the command line → a listening socket. */
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <string.h>
#include <strings.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/err.h"
#include "base/mem.h"
#include "base/str.h"
#include "web/web.h"

#define BACKLOG	       64
#define HOST_SIZE      64
#define HOST_NAME_SIZE 256

union address {
	struct sockaddr any;
	struct sockaddr_in ip4;
	struct sockaddr_in6 ip6;
};

static int refuse(const char *text, struct err *err)
{
	return err_set(err, EINVAL,
		       "'%s' is not an IP address and a port, as in 127.0.0.1:9835 or [::1]:9835",
		       text);
}

/* The last colon begins the port, so that an IPv6 address need not have brackets: $(NODE_IP):9835.
 */
static int parse(const char *text, union address *ret, socklen_t *ret_len, struct err *err)
{
	const char *colon = strrchr(text, ':');
	size_t len = colon ? (size_t)(colon - text) : 0;
	char host[HOST_SIZE];
	uint64_t port;

	if (!len || len >= sizeof(host) || str_to_u64(colon + 1, 10, 65535, &port) < 0)
		return refuse(text, err);
	if (*text == '[' && text[len - 1] == ']') {
		text++;
		len -= 2;
	}
	memcpy(host, text, len);
	host[len] = '\0';
	memset(ret, 0, sizeof(*ret));
	if (inet_pton(AF_INET, host, &ret->ip4.sin_addr) == 1) {
		ret->ip4.sin_family = AF_INET;
		ret->ip4.sin_port = htons((uint16_t)port);
		*ret_len = sizeof(ret->ip4);
		return 0;
	}
	if (inet_pton(AF_INET6, host, &ret->ip6.sin6_addr) != 1)
		return refuse(text, err);
	ret->ip6.sin6_family = AF_INET6;
	ret->ip6.sin6_port = htons((uint16_t)port);
	*ret_len = sizeof(ret->ip6);
	return 0;
}

/* The port ends it, and a dot where it is a name that is whole. */
static bool cut_host(const char *host, char *ret)
{
	size_t len = *host == '[' ? strcspn(host, "]") : strcspn(host, ":");
	bool brackets = *host == '[' && host[len] == ']';
	const char *port = host + len + brackets;

	if (*host == '[' && !brackets)
		return false;
	if (*port && (*port != ':' || port[1 + strspn(port + 1, "0123456789")]))
		return false;
	host += brackets;
	len -= brackets;
	len -= !brackets && len > 1 && host[len - 1] == '.';
	if (!len || len >= HOST_NAME_SIZE)
		return false;
	memcpy(ret, host, len);
	ret[len] = '\0';
	return true;
}

bool web_is_host(const char *host, const char *const *names, size_t n)
{
	char name[HOST_NAME_SIZE];
	struct in6_addr any;

	if (!cut_host(host, name))
		return false;
	if (*host == '[')
		return inet_pton(AF_INET6, name, &any) == 1;
	for (size_t i = 0; i < n; i++) {
		if (names[i] && *names[i] && !strcasecmp(name, names[i]))
			return true;
	}
	return !strcasecmp(name, "localhost") || inet_pton(AF_INET, name, &any) == 1;
}

int web_check_address(const char *address, struct err *err)
{
	union address a;
	socklen_t len;

	return parse(address, &a, &len, err);
}

int web_listen(const char *address, int *ret_fd, struct err *err)
{
	_cleanup_close_ int fd = -1;
	const int on = 1;
	union address a;
	socklen_t len;
	int r;

	r = parse(address, &a, &len, err);
	if (r < 0)
		return r;
	fd = socket(a.any.sa_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (fd < 0)
		return err_sys(err, "socket for %s", address);
	/* Connections of a server that has ended do not keep the port. */
	setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
	if (bind(fd, &a.any, len) < 0)
		return err_sys(err, "bind %s", address);
	if (listen(fd, BACKLOG) < 0)
		return err_sys(err, "listen at %s", address);
	*ret_fd = fd;
	fd = -1;
	return 0;
}
