/* The subset of HTML that the page takes. */
#include "status/html-internal.h"

#include <string.h>

#include "base/str.h"

void status_html_text(struct strbuf *out, const char *s)
{
	for (size_t left = s ? strlen(s) : 0, n; left; s += n, left -= n) {
		n = str_printable_sequence(s, left);
		if (!n)
			strbuf_putc(out, '?');
		else if (*s == '&')
			strbuf_puts(out, "&amp;");
		else if (*s == '<')
			strbuf_puts(out, "&lt;");
		else if (*s == '>')
			strbuf_puts(out, "&gt;");
		else if (*s == '"')
			strbuf_puts(out, "&quot;");
		else
			strbuf_add(out, s, n);
		n += !n;
	}
}

void status_html_table(struct strbuf *out, const char *title, const char *const *columns, size_t n)
{
	strbuf_printf(out, "<section><h2>%s</h2><div class=\"wide\"><table><thead><tr>", title);
	for (size_t i = 0; i < n; i++)
		strbuf_printf(out, "<th%s>%s</th>", *columns[i] == '>' ? " class=\"number\"" : "",
			      columns[i] + (*columns[i] == '>'));
	strbuf_puts(out, "</tr></thead><tbody>\n");
}

void status_html_cell(struct strbuf *out, const char *s)
{
	strbuf_puts(out, "<td>");
	status_html_text(out, s);
	strbuf_puts(out, "</td>");
}

void status_html_number(struct strbuf *out, uint64_t n)
{
	strbuf_puts(out, "<td class=\"number\">");
	strbuf_put_int(out, (int64_t)n);
	strbuf_puts(out, "</td>");
}

void status_html_end(struct strbuf *out)
{
	strbuf_puts(out, "</tbody></table></div></section>\n");
}
