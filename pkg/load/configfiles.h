/*
 * The files of the configuration: which, what stands in them, and what that comes to. They are read
 * once at the start and again whenever they changed (reload.h); nothing else of the command line
 * changes while we run.
 */
#ifndef RAILMATE_LOAD_CONFIGFILES_H
#define RAILMATE_LOAD_CONFIGFILES_H

#include <stdbool.h>
#include <stddef.h>

struct config;
struct err;
struct strbuf;

#define CONFIG_DIR	    "/etc/pcidp" /* of sriov-network-device-plugin */
#define CONFIG_NAME_DEFAULT "config.json"

struct config_files {
	/* NULL: dir/NODE, as sriov-network-operator names it, else dir/config.json, else the
	 * built-in pool */
	const char *config;
	const char *dir;    /* CONFIG_DIR */
	const char *node;   /* its name, a legal one; NULL: not known */
	const char *shared; /* config/shared.h; NULL: none */
	const char *hints;  /* config/hints.h; NULL: none */
	const char *prefix; /* of pools that name none */
};

/* What they had at one moment. Zero-initialise, end with configfiles_done(). */
struct config_text {
	char *path; /* of the file that was read; NULL: the built-in pool */
	char *config, *shared, *hints;
	size_t config_len, shared_len, hints_len;
};

/* A sentence that names the file that cannot be read; ret is then as before. [any thread] */
int configfiles_read(const struct config_files *files, struct config_text *ret, struct err *err);
/* As config_parse() of all of them together; also: everything else that is wrong, one a line. */
int configfiles_parse(const struct config_files *files, const struct config_text *text,
		      struct config **ret, struct strbuf *also, struct err *err);
bool configfiles_same(const struct config_text *a, const struct config_text *b);
void configfiles_done(struct config_text *text);

#endif
