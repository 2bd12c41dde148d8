/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Bytes that really went, by provider and way, added up over operations.
 */
#ifndef TRAFFIC_H
#define TRAFFIC_H

#include <weft/weft.h>

#define TRAFFIC_ROWS 8 /* ways of providers; one node uses very few */
#define TRAFFIC_TEXT_BYTES (TRAFFIC_ROWS * 104)

struct traffic {
	struct {
		char provider[64];
		char way[16];
		uint64_t bytes;
	} rows[TRAFFIC_ROWS];
	unsigned count;
};

/* Add what @op moved; calls and failed operations move nothing. */
void traffic_add(struct traffic *t, const struct weft_op *op);

uint64_t traffic_bytes(const struct traffic *t);

/* Write a text like "tcp/pull:191.2MB,tcp/eager:2.7MB"; "nothing" if nothing moved. */
void traffic_text(const struct traffic *t, char text[TRAFFIC_TEXT_BYTES]);

#endif
