/* SPDX-License-Identifier: BSD-2-Clause */
#include "tool/matrix_svg.h"

#include <inttypes.h>
#include <math.h>

#include "tool/text.h"

/* Sizes in pixels.  A map is about 640 wide, whatever it shows; not tuned. */
#define MAP_SIDE 640
#define CELL_MOST 64
#define CELL_LEAST 4
#define CELL_TEXT 40 /* the least cell with its value inside */
#define MARGIN 48    /* room for numbers of ranks, at the left and above a map */
#define TITLE 24
#define LINE 16
#define WORDS 340 /* room for the words above a map */

struct picture {
	const struct matrix *m;
	struct matrix_marks marks;
	enum matrix_value value;
	int cell;           /* side of a cell */
	int x, y;           /* corner of the map */
	double least, most; /* limits of the value */
	FILE *out;
};

static int map_side(const struct picture *p)
{
	return p->cell * (int)p->m->size;
}

/* Returns the width of a map with what is around it. */
static int map_room(const struct picture *p)
{
	int room = map_side(p) + 2 * MARGIN;

	return room < WORDS ? WORDS : room;
}

/* Find the least and the most of a value, which are 0 where nothing was measured. */
static void find_limits(struct picture *p)
{
	p->least = p->most = 0;
	for (uint32_t from = 0; from < p->m->size; from++)
		for (uint32_t to = 0; to < p->m->size; to++) {
			const struct matrix_cell *cell = matrix_at(p->m, from, to);
			double v = matrix_value(cell, p->value);

			if (from == to || !matrix_measured(cell))
				continue;
			p->least = p->least == 0 || v < p->least ? v : p->least;
			p->most = v > p->most ? v : p->most;
		}
}

/* Returns how bad a value is: 0 is the best pair of the map, 1 the worst. */
static double badness(const struct picture *p, double v)
{
	double part;

	if (!(p->least > 0) || !(p->most > p->least) || !(v > 0))
		return 0;
	part = log(v / p->least) / log(p->most / p->least);
	return p->value == MATRIX_LATENCY ? part : 1 - part;
}

/* Set the colour of a cell: from pale yellow to dark blue, with text that can be read on it. */
static void put_colour(const struct picture *p, double bad, bool is_text)
{
	static const int good[] = { 255, 247, 204 }, poor[] = { 37, 52, 120 };

	if (is_text) {
		fputs(bad > 0.55 ? "#fff" : "#000", p->out);
		return;
	}
	fputc('#', p->out);
	for (int i = 0; i < 3; i++)
		fprintf(p->out, "%02x", (unsigned)(good[i] + (int)((poor[i] - good[i]) * bad)));
}

/* Write all of a pair, shown where the pointer rests. */
static void put_title(const struct picture *p, uint32_t from, uint32_t to)
{
	const struct matrix_cell *cell = matrix_at(p->m, from, to);
	char path[192];

	fprintf(p->out, "<title>%" PRIu32 " to %" PRIu32 ": ", from, to);
	if (matrix_measured(cell)) {
		matrix_path(cell, path);
		fprintf(p->out, "%.1f us, %.1f MB/s, ", matrix_value(cell, MATRIX_LATENCY),
			matrix_value(cell, MATRIX_BANDWIDTH));
		text_print_xml(p->out, path);
	} else {
		fputs("failed: ", p->out);
		text_print_xml(p->out, cell->failed);
	}
	fputs("</title>", p->out);
}

static void put_square(const struct picture *p, int x, int y)
{
	fprintf(p->out, "<rect x=\"%d\" y=\"%d\" width=\"%d\" height=\"%d\" fill=\"", x, y, p->cell,
		p->cell);
}

static void put_failed(const struct picture *p, int x, int y)
{
	put_square(p, x, y);
	fprintf(p->out, "#d62728\"/><path d=\"M%d %dl%d %dm0 -%dl-%d %d\" stroke=\"#fff\"/>", x, y,
		p->cell, p->cell, p->cell, p->cell, p->cell);
}

static void put_measured(const struct picture *p, const struct matrix_cell *cell, int x, int y)
{
	double v = matrix_value(cell, p->value), bad = badness(p, v);

	put_square(p, x, y);
	put_colour(p, bad, false);
	fputs("\"/>", p->out);
	if (p->cell < CELL_TEXT)
		return;
	fprintf(p->out, "<text x=\"%d\" y=\"%d\" text-anchor=\"middle\" fill=\"", x + p->cell / 2,
		y + p->cell / 2);
	put_colour(p, bad, true);
	fprintf(p->out, "\">%.*f<tspan x=\"%d\" dy=\"14\">%c</tspan></text>", v < 1000 ? 1 : 0, v,
		x + p->cell / 2, matrix_mark(&p->marks, cell));
}

static void put_cell(const struct picture *p, uint32_t from, uint32_t to)
{
	const struct matrix_cell *cell = matrix_at(p->m, from, to);
	int x = p->x + p->cell * (int)to, y = p->y + p->cell * (int)from;

	if (from == to)
		return;
	fputs("<g>", p->out);
	put_title(p, from, to);
	if (matrix_measured(cell))
		put_measured(p, cell, x, y);
	else
		put_failed(p, x, y);
	fputs("</g>\n", p->out);
}

/* Write the number of each rank at its row and column, or of every so many where cells are small. */
static void put_numbers(const struct picture *p)
{
	uint32_t step = p->cell >= LINE ? 1 : (uint32_t)(2 * LINE / p->cell);

	for (uint32_t rank = 0; rank < p->m->size; rank += step) {
		int middle = p->cell * (int)rank + p->cell / 2;

		fprintf(p->out, "<text x=\"%d\" y=\"%d\" text-anchor=\"end\">%" PRIu32 "</text>",
			p->x - 4, p->y + middle + 4, rank);
		fprintf(p->out,
			"<text x=\"%d\" y=\"%d\" text-anchor=\"middle\">%" PRIu32 "</text>\n",
			p->x + middle, p->y - 4, rank);
	}
}

static void put_map(struct picture *p, enum matrix_value value)
{
	p->value = value;
	p->x = MARGIN + value * map_room(p);
	p->y = 2 * TITLE + MARGIN;
	find_limits(p);
	fprintf(p->out, "<text x=\"%d\" y=\"%d\">", p->x, 2 * TITLE);
	text_print_xml(p->out, matrix_title(p->m, value));
	fprintf(p->out,
		"</text><text x=\"%d\" y=\"%d\">%.1f to %.1f; rows send, columns receive</text>\n",
		p->x, 2 * TITLE + LINE, p->least, p->most);
	put_numbers(p);
	for (uint32_t from = 0; from < p->m->size; from++)
		for (uint32_t to = 0; to < p->m->size; to++)
			put_cell(p, from, to);
}

static void put_legend(const struct picture *p, int y)
{
	char path[192];

	for (uint32_t i = 0; i < p->marks.count; i++) {
		matrix_path(p->marks.firsts[i], path);
		fprintf(p->out, "<text x=\"%d\" y=\"%d\">%c: ", MARGIN, y + LINE * (int)i,
			(char)('a' + i));
		text_print_xml(p->out, path);
		fputs("</text>\n", p->out);
	}
}

void matrix_svg(const struct matrix *m, FILE *out)
{
	struct picture p = { .m = m, .marks = matrix_marks(m), .out = out };
	int width, height;

	p.cell = MAP_SIDE / (int)(m->size ? m->size : 1);
	p.cell = p.cell > CELL_MOST ? CELL_MOST : p.cell < CELL_LEAST ? CELL_LEAST : p.cell;
	width = MATRIX_VALUES * map_room(&p);
	height = 2 * TITLE + MARGIN + map_side(&p) + LINE * ((int)p.marks.count + 2);
	fprintf(out,
		"<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<svg xmlns=\"http://www.w3.org/2000/svg\" "
		"width=\"%d\" height=\"%d\" viewBox=\"0 0 %d %d\" font-family=\"sans-serif\" "
		"font-size=\"11\">\n<rect width=\"100%%\" height=\"100%%\" fill=\"#fff\"/>\n",
		width, height, width, height);
	fprintf(out,
		"<text x=\"%d\" y=\"%d\" font-size=\"14\">weft perf --all-pairs: %" PRIu32
		" processes, by ",
		MARGIN, TITLE, m->size);
	text_print_xml(out, m->launcher);
	fputs("</text>\n", out);
	for (int value = 0; value < MATRIX_VALUES; value++)
		put_map(&p, value);
	put_legend(&p, height - LINE * (int)p.marks.count);
	fputs("</svg>\n", out);
}
