/*
 * The files of the configuration: their names, their text, and the configuration that they make.
 * They are read once at the start and again whenever they changed (reload.h); nothing else of the
 * command line changes while we run.
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
	const char *shared; /* config/config.h; NULL: none */
	const char *hints;  /* config/config.h; NULL: none */
	const char *prefix; /* of pools that name none */
	bool strict;	    /* a change with any error is refused */
	bool by_claims;	    /* config_by_claims() */
	bool once;	    /* they are not read again, so a pipe will do */
};

struct config_file {
	char *text; /* NULL: there is none, or it cannot be read */
	size_t len;
	/* Why nothing of it is used: the reason and the other faults, one a line; NULL: it is */
	char *fault;
};

/* The files' text at one moment. Zero-initialise, end with configfiles_done(). */
struct config_text {
	char *path; /* of the file of pools; NULL: the built-in pool */
	struct config_file config, shared, hints;
};

/* The path of the pools' file, which may come and go; a heap string. NULL: the built-in pool. */
char *configfiles_path(const struct config_files *files);
/* A file that cannot be read has a fault. [any thread] */
void configfiles_read(const struct config_files *files, struct config_text *ret);
/* config_parse() of all files together. A file that is refused gets a fault, which is among the
 * errors of *ret. -EINVAL with its reason when no file has a pool that can be served; also:
 * everything else that is wrong, one a line. */
int configfiles_parse(const struct config_files *files, struct config_text *text,
		      struct config **ret, struct strbuf *also, struct err *err);
/* The text of a file that has a fault becomes the one in `good`, if that has none; the faults, one
 * a line, go to `faults`. */
void configfiles_stand_in(struct config_text *text, const struct config_text *good,
			  struct strbuf *faults);
struct config_text configfiles_copy(const struct config_text *text);
bool configfiles_same(const struct config_text *a, const struct config_text *b);
void configfiles_done(struct config_text *text);

#endif
