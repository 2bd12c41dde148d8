/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Bad weather on the networks of hosts: one after the other, as the seed draws, a cable
 * is cut and mended before anybody may take anybody for dead.
 */
#ifndef WEATHER_H
#define WEATHER_H

#include <stdint.h>

/* Cut a cable every @every_ms on average from now on, until this process ends. */
void weather_begin(unsigned every_ms, uint64_t seed);

/* Cuts that were made so far. */
unsigned weather_cuts(void);

#endif
