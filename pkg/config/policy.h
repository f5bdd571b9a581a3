/*
 * The variables that railmate knows: those that an operator may set for a pool ("env"), with the
 * legal values and their risks, and those that railmate sets itself, which no operator may. Pure
 * data, and the check of one value. docs/nccl-variables.md is compared with this table.
 */
#ifndef RAILMATE_CONFIG_POLICY_H
#define RAILMATE_CONFIG_POLICY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct arena;

enum policy_class {
	POLICY_FREE,  /* the operator's choice: taken */
	POLICY_RISKY, /* better left out; taken with a warning that has the reason */
	POLICY_OURS,  /* railmate sets it, from `key` or from the machine: refused */
	POLICY_GONE,  /* no library reads it any more: taken with a warning */
};

enum policy_kind {
	POLICY_NUMBER, /* min … max, or one of the words */
	POLICY_WORD,   /* one of the words */
	POLICY_LIST,   /* words with commas between them, each with a '^' before it or not */
	POLICY_TEXT,   /* matches the pattern; NULL: any printable ASCII without blanks */
};
#define POLICY_BYTES_MAX 500

struct policy_legal {
	enum policy_kind kind;
	int64_t min, max;
	const char *words;   /* with blanks between them; NULL: none */
	const char *pattern; /* POSIX extended regular expression */
	const char *shape;   /* the pattern in words */
};

struct policy_var {
	const char *name;
	unsigned profiles; /* whose libraries read it: bits of enum profile */
	enum policy_class class;
	struct policy_legal legal; /* not of POLICY_OURS */
	const char *otherwise;	   /* the newest library's behaviour without it */
	const char
		*since; /* first release that reads it; NULL: all since NCCL 2.18, or not known */
	const char *removed; /* POLICY_GONE: since that release it does nothing */
	const char *key; /* POLICY_OURS: the key of a pool that decides; NULL: the machine does */
	const char *meaning;
	const char *risk; /* of setting it; NULL: none to speak of. Always there for POLICY_RISKY */
};

const struct policy_var *policy_find(const char *name); /* exact case; NULL */
/* The known name that an unknown one probably means: it differs in case or in a few letters. NULL:
 * nothing is near. */
const struct policy_var *policy_nearest(const char *name);
bool policy_accepts(const struct policy_var *var, const char *value);
/* The risk of a legal value of a variable that is fine otherwise; NULL: none. */
const char *policy_value_risk(const char *name, const char *value);
/* "0 to 255", "AF_INET or AF_INET6": for people. */
const char *policy_legal_text(const struct policy_var *var, struct arena *arena);

#endif
