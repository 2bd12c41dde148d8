/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Two network namespaces with a cable between them that can be cut.  This
 * process moves into the first one for good.
 */
#ifndef CABLE_H
#define CABLE_H

#include <stdbool.h>

#define CABLE_NEAR "10.77.0.1" /* this end */
#define CABLE_FAR "10.77.0.2"

/* A descriptor of the far namespace.  -1: why not is in @reason. */
int cable_lay(char reason[128]);

void cable_cut(void);
void cable_mend(void);

#endif
