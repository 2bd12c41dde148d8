/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Machines for tests: a folder that looks like the /sys of a machine, made when
 * needed.  Any failure stops the test.
 */
#ifndef MACHINE_H
#define MACHINE_H

#include <stddef.h>

/*
 * Two sockets, each with NICs of its own:
 *
 *   node0  01:00.0 mlx5_0, eth0   02:00.0 eth1   41:00.0 nvme0, on another host bridge
 *   node1  81:00.0 mlx5_1, eth2   82:00.0 eth3
 */
#define MACHINE_DUAL 0

/*
 * A switch with another below it, and a second socket:
 *
 *   node0  1a:00.0 gpu0   1b:00.0 mlx5_0   and below the other switch
 *          1e:00.0 gpu1   1f:00.0 nvme0, which publishes 64 MiB
 *   node1  b2:00.0 mlx5_1
 */
#define MACHINE_SWITCH 1
#define MACHINE_P2PMEM "devices/pci0000:17/0000:17:00.0/0000:18:00.0/0000:19:02.0/" \
		       "0000:1c:00.0/0000:1d:01.0/0000:1f:00.0/p2pmem/" /* folder of nvme0 */

/*
 * Two sockets, each with a GPU of the software driver's (tests/cuda/fake) and a NIC below
 * one switch:
 *
 *   node0  3b:00.0 gpu0   3c:00.0 mlx5_0
 *   node1  af:00.0 gpu1   b0:00.0 mlx5_1
 */
#define MACHINE_GPUS 2

/* Make a machine.  Returns its root, which lives until machine_remove. */
const char *machine_make(int which);
void machine_remove(void);

/* Change the content of a file below the root, or make the file with its folders. */
__attribute__((format(printf, 2, 3)))
void machine_say(const char *path, const char *format, ...);

/* Take a file away. */
void machine_drop(const char *path);

/* Give all processors that there may be to this NUMA node; -1: to each. */
void machine_bind(int number);

#endif
