/*
 * libmicrohttpd, loaded when a server starts, at the first connection: it needs GnuTLS, which costs
 * a daemon that serves nothing 3 MB of memory and some milliseconds at its start. Its header gives
 * the types.
 */
#ifndef RAILMATE_WEB_LIBMICROHTTPD_INTERNAL_H
#define RAILMATE_WEB_LIBMICROHTTPD_INTERNAL_H

#include <microhttpd.h>

struct err;

struct libmicrohttpd {
	__typeof__(&MHD_start_daemon) start_daemon;
	__typeof__(&MHD_stop_daemon) stop_daemon;
	__typeof__(&MHD_create_response_from_buffer) create_response_from_buffer;
	__typeof__(&MHD_add_response_header) add_response_header;
	__typeof__(&MHD_queue_response) queue_response;
	__typeof__(&MHD_destroy_response) destroy_response;
	__typeof__(&MHD_lookup_connection_value) lookup_connection_value;
	__typeof__(&MHD_get_connection_values) get_connection_values;
	__typeof__(&MHD_get_connection_info) get_connection_info;
};

/* Of the first library that is there; it stays. -ELIBACC with a sentence. */
int web_load_libmicrohttpd(struct libmicrohttpd *ret, struct err *err);

#endif
