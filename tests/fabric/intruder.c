/* SPDX-License-Identifier: BSD-2-Clause */
/* A library that a stranger names in the environment: whoever loads it can see that. */
#include <stdlib.h>

static __attribute__((constructor)) void come_in(void)
{
	setenv("INTRUDED", "yes", 1);
}
