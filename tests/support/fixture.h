/*
 * A machine in a temporary folder, from host.tree text. A fixture that cannot be made fails the
 *running test.
 *
 *	struct sysroot *root = fixture_text("f sys/… = 1\\n\n");
 *	…
 *	fixture_close(root);
 */
#ifndef RAILMATE_TESTS_SUPPORT_FIXTURE_H
#define RAILMATE_TESTS_SUPPORT_FIXTURE_H

#include <stddef.h>

struct hw_inventory;
struct sysroot;

struct sysroot *fixture_open(const char *host_tree_file);
struct sysroot *fixture_text(const char *text);
struct sysroot *fixture_text_n(const char *text, size_t len);
void fixture_close(struct sysroot *root); /* closes it and removes the folder */

/* The machine's inventory with the built-in GPU table; free it with hw_inventory_free(). */
struct hw_inventory *fixture_discover(const struct sysroot *root);

char *fixture_folder(void);		    /* an empty one ($TMPDIR or /tmp), as a heap string */
void fixture_remove_tree(const char *path); /* a folder and all in it */

#endif
