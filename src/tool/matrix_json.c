/* SPDX-License-Identifier: BSD-2-Clause */
#include "tool/matrix_json.h"

#include "tool/out.h"

static void put_ranks(const struct matrix *m)
{
	out_array("ranks");
	for (uint32_t rank = 0; rank < m->size; rank++) {
		out_object(NULL);
		out_count("rank", rank);
		out_text("address", m->addresses[rank]);
		out_object_end();
	}
	out_array_end();
}

static void put_pair(const struct matrix *m, uint32_t from, uint32_t to)
{
	const struct matrix_cell *cell = matrix_at(m, from, to);

	out_object(NULL);
	out_count("from", from);
	out_count("to", to);
	if (!matrix_measured(cell)) {
		out_text("failed", cell->failed);
	} else {
		out_object("latency_us");
		out_number("p50", (double)cell->p50_ns / 1e3, 2);
		out_number("p99", (double)cell->p99_ns / 1e3, 2);
		out_object_end();
		out_count("bytes_per_s", cell->bytes_per_s);
		out_object("path");
		out_text("provider", cell->provider);
		out_text("device", cell->device);
		out_text("way", cell->way);
		out_count("rails", cell->rails);
		out_object_end();
	}
	out_object_end();
}

void matrix_json(const struct matrix *m, FILE *out)
{
	out_to(out);
	out_object(NULL);
	out_count("processes", m->size);
	out_text("launcher", m->launcher);
	out_count("bytes", m->bytes);
	out_number("seconds", (double)m->time_ns / 1e9, 3);
	put_ranks(m);
	out_array("pairs");
	for (uint32_t from = 0; from < m->size; from++)
		for (uint32_t to = 0; to < m->size; to++)
			if (from != to)
				put_pair(m, from, to);
	out_array_end();
	out_object_end();
	out_to(stdout);
}
