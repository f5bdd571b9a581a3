/* Shared by the files of the room: one parse in progress, and tables of keys. */
#ifndef RAILMATE_CONFIG_CONFIG_INTERNAL_H
#define RAILMATE_CONFIG_CONFIG_INTERNAL_H

#include <stdbool.h>
#include <stddef.h>

#include "base/mem.h"
#include "config/config.h"
#include "config/policy.h"
#include "document/document.h"

#define WARNINGS_MAX 64	  /* of either kind */
#define POOLS_MAX    1024 /* far above what a kubelet handles; keeps the comparison of names short */

struct sentences {
	const char *v[WARNINGS_MAX + 1];
	size_t n; /* also those that found no place */
};

struct parse {
	const char *name;	    /* of the file, for messages */
	const char *default_prefix; /* of pools that name none */
	struct arena *out;	    /* the config's */
	struct arena *scratch;	    /* dies with the parse */
	struct err *err;
	struct sentences warnings, errors;
	const char *refusal; /* of the first pool that was left out; NULL: none was */
	size_t refused_at;   /* its place among the errors */
	size_t n_refused;    /* pools */
};

struct key;
struct strbuf;
typedef int (*read_fn)(struct parse *p, const struct item *value, const struct key *key, void *out);
typedef int (*element_fn)(struct parse *p, const struct item *value, void *ret_element);

/* A key of an object, and how it goes into the struct that read_members() fills: a row. */
struct key {
	const char *name;
	enum item_type type; /* of the value; ITEM_NULL: read() looks at it */
	read_fn read;
	size_t at;		    /* offset of the member; of the readers below */
	const char *const *choices; /* read_choice(): the words, in the order of the enum */
	size_t n_choices;
	element_fn element; /* read_list() */
	size_t size;	    /* of one element */
	size_t count;	    /* offset of the number of elements, a size_t */
	int64_t min, max;   /* read_number(), of an int or an unsigned */
	bool hidden;	    /* legal, but not offered in messages */
	bool vital;	    /* of a lenient set: not left out */
};

/* offsetof(), but of a member that is of this type (`holder` is a struct) or does not compile. */
#define AT(holder, member, type)                                                                   \
	(offsetof(holder, member) + 0 * sizeof(&((holder *)0)->member == (type *)0))
#define SIZE_OF(holder, member) sizeof(((holder *)0)->member)

#define KEY_BOOL(key, holder, member)                                                              \
	{                                                                                          \
		.name = (key), .type = ITEM_BOOL, .read = read_bool,                               \
		.at = AT(holder, member, bool)                                                     \
	}

/* The member is an int or an unsigned. */
#define KEY_NUMBER(key, holder, member, least, most)                                               \
	{                                                                                          \
		.name = (key), .read = read_number, .min = (least), .max = (most),                 \
		.at = offsetof(holder, member) +                                                   \
		      0 * sizeof(char[SIZE_OF(holder, member) == sizeof(int) ? 1 : -1])            \
	}

/* The list `member` is a pointer, and n_<member> beside it its length. */
#define LIST_OF(holder, member, fn)                                                                \
	.element = (fn), .size = SIZE_OF(holder, member[0]), .at = offsetof(holder, member),       \
	.count = AT(holder, n_##member, size_t)
#define KEY_LIST(key, holder, member, fn)                                                          \
	{                                                                                          \
		.name = (key), .read = read_list, LIST_OF(holder, member, fn)                      \
	}

struct key_set {
	const struct key *keys;
	size_t n;
	/* Explains an unknown key better than the standard warning, or returns false. May be NULL.
	 */
	bool (*unknown)(struct parse *p, const struct item *member);
	bool lenient; /* a member that is refused is left out, and the others are read */
};
#define KEYS_PER_SET_MAX 24

int refuse(const struct parse *p, const struct item *at, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));
void config_warn(struct parse *p, const struct item *at, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));
/* A refusal becomes an error of the configuration, and the rest is read on. what: "the key". */
void leave_out(struct parse *p, const char *what);
/* Appends sentences to the n of the list, as many as are kept of a file; returns the new n. */
size_t append_sentences(struct arena *arena, const struct sentences *more, const char *const **list,
			size_t n);
const char *shown(const struct parse *p, const struct item *string);

/*
 * A file: its JSON goes through read() into out. p has all but err. Where it is refused, its other
 * errors and warnings go into also (may be NULL), one a line.
 */
int read_file_text(struct parse *p, const char *text, size_t len, size_t max, element_fn read,
		   void *out, struct strbuf *also, struct err *err);

int want(const struct parse *p, const struct item *value, enum item_type type);
/* A string that is one of these; the index goes to *ret. */
int want_choice(const struct parse *p, const struct item *value, const char *const *choices,
		size_t n, int *ret);
/* Exactly four hexadecimal digits. */
int want_hex4(const struct parse *p, const struct item *value, const char *what, uint16_t *ret);
const struct key *key_find(const struct key_set *set, const char *name); /* any case; NULL */

/* Every member of an object through its key; null members are absent. `out` goes to the readers. */
int read_members(struct parse *p, const struct item *object, const struct key_set *set, void *out);
/* Readers of rows: KEY_BOOL, KEY_NUMBER, KEY_CHOICE, KEY_STRING, KEY_LIST. */
int read_bool(struct parse *p, const struct item *value, const struct key *key, void *out);
int read_number(struct parse *p, const struct item *value, const struct key *key, void *out);
int read_choice(struct parse *p, const struct item *value, const struct key *key, void *out);
int read_text(struct parse *p, const struct item *value, const struct key *key, void *out);
int read_list(struct parse *p, const struct item *value, const struct key *key, void *out);

/* Elements of lists that more than one table has. */
int one_string(struct parse *p, const struct item *value, void *ret_string); /* not empty */
int one_vendor(struct parse *p, const struct item *value, void *ret_element);
int one_device(struct parse *p, const struct item *value, void *ret_element);
int one_link_type(struct parse *p, const struct item *value, void *ret_element);

/* A pool while it is read. `pool` comes first: the readers of selectors and of our own object know
 * only that. */
struct pool_entry {
	struct pool_config pool;
	const struct item *at, *name, *prefix; /* NULL while the key was not seen */
	bool misnamed;			       /* the prefix is refused */
};
int read_resource_name(struct parse *p, const struct item *value, const struct key *key, void *out);
int read_resource_prefix(struct parse *p, const struct item *value, const struct key *key,
			 void *out);
/* Gives it the names that its keys have. */
int name_pool(struct parse *p, struct pool_entry *e);

/* The list of pools of a file. */
struct pool_list {
	const struct config *other; /* has the pools of the other file; NULL: there is none yet */
	struct pool_entry *v;
	size_t n;
	struct pool_error *faults;
	size_t n_faults;
};
typedef int (*pool_fn)(struct parse *p, const struct item *value, struct pool_entry *ret);
/* A pool that `one` refuses, or whose name another one has, is left out with an error. */
int read_pools(struct parse *p, const struct item *value, pool_fn one, size_t max,
	       struct pool_list *ret);
/* No pool is left of the list of this name. */
int refuse_empty(const struct parse *p, const struct item *document, const char *list);
const struct pool_config *take_pools(struct parse *p, const struct pool_list *list);
const struct pool_error *take_faults(struct parse *p, const struct pool_list *list);

/* Our own objects: `railmate` of a pool (struct pool_config), and of the document (struct config).
 */
void railmate_pool_defaults(struct pool_config *pool); /* also of a pool without that object */
int read_railmate_pool(struct parse *p, const struct item *value, const struct key *key, void *out);
int read_railmate_top(struct parse *p, const struct item *value, const struct key *key, void *out);

/* Refuses keys of a pool that do not go together. */
void check_pool(struct parse *p, const struct item *at, struct pool_config *pool);

/* The number of letters that make one word of the other, without regard to case; above 64 for
 * longer words. */
size_t word_distance(const char *a, const char *b);

/* All that policy.h knows, for the table in docs/nccl-variables.md. */
extern const struct policy_var policy_vars[];
extern const size_t n_policy_vars;

#endif
