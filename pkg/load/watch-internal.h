/* The judgements of this room, as functions of the bytes read, for the tests. */
#ifndef RAILMATE_LOAD_WATCH_INTERNAL_H
#define RAILMATE_LOAD_WATCH_INTERNAL_H

#include <stdbool.h>
#include <stddef.h>

/* One uevent as the kernel sends it, "ACTION@DEVPATH\0KEY=VALUE\0...": is it of a subsystem that is
 * watched? */
bool uevent_matters(const char *buf, size_t len);
/* Is a file of this name in the plugin directory worth a look? */
bool dir_name_matters(const char *name);

#endif
