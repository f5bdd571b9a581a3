/*
 * A streaming JSON writer: correct commas and escapes, nothing else. Values are written in the
 * order of the calls; balanced begin/end calls are the caller's duty (asserted). Strings that are
 * not UTF-8 come out with U+FFFD in place of each bad byte, so the text is always valid; characters
 * that a terminal may not be shown are escaped. Reading JSON is the business of pkg/document
 * (jansson).
 */
#ifndef RAILMATE_BASE_JSON_H
#define RAILMATE_BASE_JSON_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct strbuf;

struct json {
	struct strbuf *out;
	int depth, indent; /* indent 0: compact */
	uint64_t comma;	   /* bit per depth: a value stands before */
	bool after_key;
};

void json_init(struct json *j, struct strbuf *out, int indent);
void json_begin_object(struct json *j);
void json_end_object(struct json *j);
void json_begin_array(struct json *j);
void json_end_array(struct json *j);
void json_key(struct json *j, const char *key);
void json_put_string(struct json *j, const char *s); /* NULL writes null */
void json_put_int(struct json *j, int64_t v);
void json_put_bool(struct json *j, bool v);
void json_put_null(struct json *j);
void json_put_raw(struct json *j, const char *text, size_t len); /* a value that is JSON already */
/* key + value in one call; of an object and an array its begin */
void json_kv_object(struct json *j, const char *key);
void json_kv_array(struct json *j, const char *key);
void json_kv_strings(struct json *j, const char *key, const char *const *v, size_t n);
void json_kv_string(struct json *j, const char *key, const char *s);
void json_kv_int(struct json *j, const char *key, int64_t v);
void json_kv_int_if(struct json *j, const char *key, int64_t v, bool known); /* else null */
void json_kv_bool(struct json *j, const char *key, bool v);

#endif
