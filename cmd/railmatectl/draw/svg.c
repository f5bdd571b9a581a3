/* The little of SVG that a picture takes: a style sheet, and text that keeps to its place. */
#include <string.h>

#include "base/mem.h"
#include "base/str.h"
#include "draw/draw-internal.h"

static const struct {
	const char *class;
	int size;
	bool bold;
} styles[] = {
	[STYLE_TITLE] = { "title", 19, true }, [STYLE_HEAD] = { "head", 13, true },
	[STYLE_TEXT] = { "text", 12, false },  [STYLE_SMALL] = { "small", 11, false },
	[STYLE_CELL] = { "cell", 10, true },   [STYLE_CELL_2] = { "cell2", 8, true },
};

static const char sheet[] =
	"text{font-family:Helvetica,Arial,'Liberation Sans',sans-serif;fill:#1f2933}"
	".title{font-size:19px;font-weight:bold}.head{font-size:13px;font-weight:bold}"
	".text{font-size:12px}.small{font-size:11px;fill:#52606d}"
	".cell,.cell2{font-size:10px;font-weight:bold;fill:#fff}.cell2{font-size:8px}"
	".numa{fill:#f3f5f8;stroke:#cbd2d9}.host{fill:none;stroke:#9aa5b1;stroke-dasharray:4 3}"
	".port{fill:#fff;stroke:#cbd2d9}.switch{fill:#fff;stroke:#7b8794;stroke-width:1.5}"
	".gpu{fill:#e3f4e1;stroke:#4c9a2a}.nic{fill:#e6effb;stroke:#3b73b9}"
	".idle{fill:#f5f7fa;stroke:#9aa5b1}"
	".free{fill:#fff;stroke:#3b73b9}.none{fill:#e4e7eb;stroke:#9aa5b1}"
	".wire{fill:none;stroke:#7b8794;stroke-width:1.5}"
	".pix{fill:#2b7a0b;font-weight:bold}.pxb,.phb{fill:#8a5a00;font-weight:bold}"
	".node,.sys,.bad{fill:#b42318;font-weight:bold}"
	".p0{fill:#b33a00}.p1{fill:#1f5fb0}.p2{fill:#7b3fa0}.p3{fill:#00695c}"
	".p4{fill:#a31554}.p5{fill:#5f5a00}.p6{fill:#37474f}.p7{fill:#7a4419}";

/* Names are ASCII by custom: the font decides the width of others. */
static bool is_plain(char c)
{
	return c >= ' ' && c <= '~';
}

/* Of the font's size, as in DejaVu Sans: Helvetica and its like are narrower. */
static int hundredths(enum style style, const char *text, size_t len)
{
	int sum = 0;

	for (size_t i = 0; i < len; i++) {
		char c = is_plain(text[i]) ? text[i] : '?';

		if (strchr("ijlI.,:;'|!()[]/ -tfr", c))
			sum += 42;
		else if (strchr("mMW@%", c))
			sum += 100;
		else if ((c >= 'a' && c <= 'z' && c != 'w') || (c >= '0' && c <= '9') || c == '_')
			sum += 64;
		else
			sum += 84;
	}
	return sum * styles[style].size * (styles[style].bold ? 110 : 100) / 100;
}

int svg_width(enum style style, const char *text)
{
	return hundredths(style, text, strlen(text)) / 100 + 1;
}

static void escape(struct strbuf *out, const char *text, size_t len)
{
	static const struct {
		char c;
		const char *entity;
	} entities[] = {
		{ '<', "&lt;" },   { '>', "&gt;" },   { '&', "&amp;" },
		{ '"', "&quot;" }, { '\'', "&#39;" },
	};

	for (size_t i = 0; i < len; i++) {
		const char *entity = NULL;

		for (size_t k = 0; k < ARRAY_LEN(entities); k++)
			entity = text[i] == entities[k].c ? entities[k].entity : entity;
		if (entity)
			strbuf_puts(out, entity);
		else
			strbuf_putc(out, is_plain(text[i]) ? text[i] : '?');
	}
}

void svg_escape(struct strbuf *out, const char *text)
{
	escape(out, text, strlen(text));
}

void svg_text(struct strbuf *out, int x, int y, enum style style, enum anchor anchor, int max,
	      const char *classes, const char *text)
{
	static const char *const anchors[] = { "", " text-anchor=\"middle\"",
					       " text-anchor=\"end\"" };
	size_t n = strlen(text);
	bool fits = svg_width(style, text) <= max;

	/* Else as many bytes as leave room for the dots. */
	while (!fits && n > 0 &&
	       hundredths(style, text, n) + hundredths(style, "...", 3) > max * 100)
		n--;
	strbuf_printf(out, "<text x=\"%d\" y=\"%d\" class=\"%s%s%s\"%s>", x, y, styles[style].class,
		      classes ? " " : "", classes ? classes : "", anchors[anchor]);
	escape(out, text, n);
	strbuf_puts(out, fits ? "</text>\n" : "...</text>\n");
}

void svg_rect(struct strbuf *out, const char *class, int x, int y, int w, int h, int round)
{
	strbuf_printf(
		out,
		"<rect x=\"%d\" y=\"%d\" width=\"%d\" height=\"%d\" rx=\"%d\" class=\"%s\"/>\n", x,
		y, w, h, round, class);
}

void svg_begin(struct strbuf *out, int width, int height, const char *label)
{
	strbuf_printf(
		out,
		"<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%d\" height=\"%d\" viewBox=\"0 0 %d %d\" role=\"img\">\n<title>",
		width, height, width, height);
	svg_escape(out, label);
	strbuf_printf(
		out,
		"</title>\n<style>%s</style>\n<rect width=\"%d\" height=\"%d\" fill=\"#fff\"/>\n",
		sheet, width, height);
}

void svg_end(struct strbuf *out)
{
	strbuf_puts(out, "</svg>\n");
}
