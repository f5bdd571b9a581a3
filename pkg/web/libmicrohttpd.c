#include "web/libmicrohttpd-internal.h"

#include <dlfcn.h>
#include <errno.h>
#include <stddef.h>
#include <string.h>

#include "base/err.h"
#include "base/mem.h"

#define SONAME "libmicrohttpd.so.12"
#define SYMBOL(field)                                                                              \
	{                                                                                          \
		"MHD_" #field, offsetof(struct libmicrohttpd, field)                               \
	}

static const struct {
	const char *name;
	size_t at;
} symbols[] = {
	SYMBOL(start_daemon),
	SYMBOL(stop_daemon),
	SYMBOL(create_response_from_buffer),
	SYMBOL(add_response_header),
	SYMBOL(queue_response),
	SYMBOL(destroy_response),
	SYMBOL(lookup_connection_value),
	SYMBOL(get_connection_values),
	SYMBOL(get_connection_info),
};

int web_load_libmicrohttpd(struct libmicrohttpd *ret, struct err *err)
{
	void *library = dlopen(SONAME, RTLD_NOW | RTLD_LOCAL);
	struct libmicrohttpd m;

	if (!library)
		return err_set(err, ELIBACC, "libmicrohttpd cannot be loaded: %s", dlerror());
	for (size_t i = 0; i < ARRAY_LEN(symbols); i++) {
		void *p = dlsym(library, symbols[i].name);

		if (!p)
			return err_set(err, ELIBACC, SONAME ": there is no %s in it",
				       symbols[i].name);
		memcpy((char *)&m + symbols[i].at, &p, sizeof(p));
	}
	*ret = m;
	return 0;
}
