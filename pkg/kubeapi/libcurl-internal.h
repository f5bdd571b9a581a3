/*
 * libcurl, loaded when a source is opened: it and its TLS library cost 8 MB of memory, which a
 * daemon without a source shall not pay. The types come from its headers, the functions from the
 * library that is there.
 */
#ifndef RAILMATE_KUBEAPI_LIBCURL_INTERNAL_H
#define RAILMATE_KUBEAPI_LIBCURL_INTERNAL_H

#include <curl/curl.h>
#include <stddef.h>

struct err;

struct libcurl {
	__typeof__(curl_global_init) *global_init;
	__typeof__(curl_easy_init) *easy_init;
	__typeof__(curl_easy_setopt) *easy_setopt;
	__typeof__(curl_easy_getinfo) *easy_getinfo;
	__typeof__(curl_easy_strerror) *easy_strerror;
	__typeof__(curl_easy_cleanup) *easy_cleanup;
	__typeof__(curl_slist_append) *slist_append;
	__typeof__(curl_slist_free_all) *slist_free_all;
	__typeof__(curl_multi_init) *multi_init;
	__typeof__(curl_multi_add_handle) *multi_add_handle;
	__typeof__(curl_multi_remove_handle) *multi_remove_handle;
	__typeof__(curl_multi_perform) *multi_perform;
	__typeof__(curl_multi_poll) *multi_poll;
	__typeof__(curl_multi_wakeup) *multi_wakeup;
	__typeof__(curl_multi_info_read) *multi_info_read;
	__typeof__(curl_multi_cleanup) *multi_cleanup;
};

/* The first of these files that is there and whole; it stays loaded. */
int kubeapi_libcurl_load(const char *const *sonames, size_t n, struct libcurl *ret,
			 struct err *err);
/* The one of this process, loaded by the first call; it stays for good. Any thread. */
int kubeapi_libcurl_get(const struct libcurl **ret, struct err *err);

#endif
