#include "kubeapi/libcurl-internal.h"

#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <string.h>

#include "base/err.h"
#include "base/mem.h"

#define SYMBOL(field)                                                                              \
	{                                                                                          \
		"curl_" #field, offsetof(struct libcurl, field)                                    \
	}

static const struct {
	const char *name;
	size_t at;
} symbols[] = {
	SYMBOL(global_init),	  SYMBOL(easy_init),	       SYMBOL(easy_setopt),
	SYMBOL(easy_getinfo),	  SYMBOL(easy_strerror),       SYMBOL(easy_cleanup),
	SYMBOL(slist_append),	  SYMBOL(slist_free_all),      SYMBOL(multi_init),
	SYMBOL(multi_add_handle), SYMBOL(multi_remove_handle), SYMBOL(multi_perform),
	SYMBOL(multi_poll),	  SYMBOL(multi_wakeup),	       SYMBOL(multi_info_read),
	SYMBOL(multi_cleanup),
};

int kubeapi_libcurl_load(const char *const *sonames, size_t n, struct libcurl *ret, struct err *err)
{
	struct libcurl c;
	void *library = NULL;
	size_t i;

	for (i = 0; i < n && !library; i++)
		library = dlopen(sonames[i], RTLD_NOW | RTLD_LOCAL);
	if (!library)
		return err_set(err, ELIBACC, "libcurl cannot be loaded: %s", dlerror());
	for (size_t k = 0; k < ARRAY_LEN(symbols); k++) {
		void *p = dlsym(library, symbols[k].name);

		if (!p) {
			dlclose(library);
			return err_set(err, ELIBBAD, "%s: there is no %s in it", sonames[i - 1],
				       symbols[k].name);
		}
		memcpy((char *)&c + symbols[k].at, &p, sizeof(p));
	}
	if (c.global_init(CURL_GLOBAL_DEFAULT) != CURLE_OK)
		return err_set(err, ELIBBAD, "%s cannot be initialised", sonames[i - 1]);
	*ret = c;
	return 0;
}

int kubeapi_libcurl_get(const struct libcurl **ret, struct err *err)
{
	/* Debian's two builds that have a usable TLS library. The first one is smaller and loads
	 * faster. */
	static const char *const sonames[] = { "libcurl-gnutls.so.4", "libcurl.so.4" };
	static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
	static struct libcurl loaded;
	int r = 0;

	pthread_mutex_lock(&lock);
	if (!loaded.global_init)
		r = kubeapi_libcurl_load(sonames, ARRAY_LEN(sonames), &loaded, err);
	pthread_mutex_unlock(&lock);
	if (r == 0)
		*ret = &loaded;
	return r;
}
