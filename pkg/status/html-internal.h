/* The subset of HTML that the page takes: text that cannot end its element, tables. */
#ifndef RAILMATE_STATUS_HTML_INTERNAL_H
#define RAILMATE_STATUS_HTML_INTERNAL_H

#include <stddef.h>
#include <stdint.h>

struct strbuf;

void status_html_text(struct strbuf *out, const char *s); /* NULL is "" */
/* Title and columns are constants, written without escapes. '>' before a column: of numbers. */
void status_html_table(struct strbuf *out, const char *title, const char *const *columns, size_t n);
void status_html_cell(struct strbuf *out, const char *s);
void status_html_number(struct strbuf *out, uint64_t n);
void status_html_end(struct strbuf *out);

/* page_doctor.c */
struct status_doctor;
void status_html_verdict(const struct status_doctor *d, struct strbuf *out); /* a link to #doctor */
void status_html_doctor(const struct status_doctor *d, struct strbuf *out);

#endif
