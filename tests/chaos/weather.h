/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Bad weather on the networks of hosts: one after the other, as the seed draws, a cable
 * is cut and mended before anybody may take anybody for dead.
 */
#ifndef WEATHER_H
#define WEATHER_H

#include <stdint.h>

/* From now on, each @every_ms on average, until this process ends. */
void weather_begin(unsigned every_ms, uint64_t seed);

/* How many there were. */
unsigned weather_cuts(void);

#endif
