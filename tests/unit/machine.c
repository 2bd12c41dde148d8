/* SPDX-License-Identifier: BSD-2-Clause */
#include "tests/unit/machine.h"

#include <errno.h>
#include <ftw.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define P2PMEM_BYTES (64 << 20)

struct device {
	const char *path; /* below devices/ */
	int node;
	const char *class, *vendor;
	const char *rdma, *net, *nvme; /* its names, or NULL */
	long p2pmem_bytes;
};

struct node {
	const char *cpus, *distances;
};

#define NIC .class = "0x020000", .vendor = "0x15b3"
#define GPU .class = "0x030200", .vendor = "0x10de"
#define NVME .class = "0x010802", .vendor = "0x1b36"
#define BRIDGE .class = "0x060400", .vendor = "0x8086"

static const struct device dual[] = {
	{ "pci0000:00/0000:00:01.0", 0, BRIDGE },
	{ "pci0000:00/0000:00:01.0/0000:01:00.0", 0, NIC, .rdma = "mlx5_0", .net = "eth0" },
	{ "pci0000:00/0000:00:02.0/0000:02:00.0", 0, NIC, .net = "eth1" },
	{ "pci0000:00/0000:00:1f.0", 0, .class = "0x030000", .vendor = "0x1a03" }, /* a console */
	{ "pci0000:40/0000:40:01.0/0000:41:00.0", 0, NVME, .nvme = "nvme0" },
	{ "pci0000:80/0000:80:01.0/0000:81:00.0", 1, NIC, .rdma = "mlx5_1", .net = "eth2" },
	{ "pci0000:80/0000:80:02.0/0000:82:00.0", 1, NIC, .net = "eth3" },
	{ 0 },
};

#define SWITCH "pci0000:17/0000:17:00.0/0000:18:00.0/"
#define BELOW SWITCH "0000:19:02.0/0000:1c:00.0/"

static const struct device tree[] = {
	{ SWITCH "0000:19:00.0/0000:1a:00.0", 0, GPU },
	{ SWITCH "0000:19:01.0/0000:1b:00.0", 0, NIC, .rdma = "mlx5_0" },
	{ BELOW "0000:1d:00.0/0000:1e:00.0", 0, GPU },
	{ BELOW "0000:1d:01.0/0000:1f:00.0", 0, NVME, .nvme = "nvme0", .p2pmem_bytes = P2PMEM_BYTES },
	{ "pci0000:b1/0000:b1:00.0/0000:b2:00.0", 1, NIC, .rdma = "mlx5_1" },
	{ 0 },
};

static const struct device gpus[] = {
	{ "pci0000:3a/0000:3a:00.0/0000:3b:00.0", 0, GPU },
	{ "pci0000:3a/0000:3a:00.0/0000:3c:00.0", 0, NIC, .rdma = "mlx5_0" },
	{ "pci0000:ae/0000:ae:00.0/0000:af:00.0", 1, GPU },
	{ "pci0000:ae/0000:ae:00.0/0000:b0:00.0", 1, NIC, .rdma = "mlx5_1" },
	{ 0 },
};

static const struct device *const machines[] = {
	[MACHINE_DUAL] = dual, [MACHINE_SWITCH] = tree, [MACHINE_GPUS] = gpus,
};

static const struct node nodes[] = { { "0-3", "10 21" }, { "4-7", "21 10" } };

static char root[64];

static void must(int holds, const char *what)
{
	if (holds)
		return;
	perror(what);
	abort();
}

/* The folders above the last part of @path. */
static void make_folders(char *path)
{
	for (char *at = path + strlen(root) + 1; (at = strchr(at, '/')); at++) {
		*at = '\0';
		must(!mkdir(path, 0700) || errno == EEXIST, path);
		*at = '/';
	}
}

void machine_say(const char *path, const char *format, ...)
{
	char at[1024];
	va_list args;
	FILE *file;

	snprintf(at, sizeof(at), "%s/%s", root, path);
	make_folders(at);
	file = fopen(at, "w");
	must(file != NULL, at);
	va_start(args, format);
	vfprintf(file, format, args);
	va_end(args);
	must(fputc('\n', file) == '\n' && !fclose(file), at);
}

void machine_drop(const char *path)
{
	char at[1024];

	snprintf(at, sizeof(at), "%s/%s", root, path);
	must(!unlink(at), at);
}

/* A link in @folder to @to, which is below devices/. */
static void link_to(const char *folder, const char *name, const char *to)
{
	char at[1024], target[1024];

	snprintf(at, sizeof(at), "%s/%s/%s", root, folder, name);
	snprintf(target, sizeof(target), "%s/devices/%s", root, to);
	make_folders(at);
	must(!symlink(target, at), at);
}

/* As the kernel has it: /sys/class/net/eth0 leads below the device, and "device" back to it. */
static void name_device(const struct device *d, const char *class, const char *name)
{
	char folder[64], below[600];

	if (!name)
		return;
	snprintf(folder, sizeof(folder), "class/%s", class);
	snprintf(below, sizeof(below), "%s/%s/%s", d->path, class, name);
	link_to(folder, name, below);
	snprintf(below, sizeof(below), "devices/%s/%s/%s", d->path, class, name);
	link_to(below, "device", d->path);
}

/* A file of a folder. */
__attribute__((format(printf, 3, 4)))
static void say(const char *folder, const char *name, const char *format, ...)
{
	char path[1024], text[512];
	va_list args;

	va_start(args, format);
	vsnprintf(text, sizeof(text), format, args);
	va_end(args);
	snprintf(path, sizeof(path), "%s/%s", folder, name);
	machine_say(path, "%s", text);
}

static void make_p2pmem(const char *folder, long bytes)
{
	char path[1024];

	say(folder, "p2pmem/size", "%ld", bytes);
	say(folder, "p2pmem/available", "%ld", bytes);
	say(folder, "p2pmem/published", "1");
	say(folder, "p2pmem/allocate", "%s", "");
	snprintf(path, sizeof(path), "%s/%s/p2pmem/allocate", root, folder);
	must(!truncate(path, bytes), path);
}

static void make_device(const struct device *d)
{
	char folder[600];

	snprintf(folder, sizeof(folder), "devices/%s", d->path);
	say(folder, "class", "%s", d->class);
	say(folder, "vendor", "%s", d->vendor);
	say(folder, "numa_node", "%d", d->node);
	if (d->p2pmem_bytes)
		make_p2pmem(folder, d->p2pmem_bytes);
	link_to("bus/pci/devices", strrchr(d->path, '/') + 1, d->path);
	name_device(d, "infiniband", d->rdma);
	name_device(d, "net", d->net);
	name_device(d, "nvme", d->nvme);
}

static void make_node(int number)
{
	char folder[64];

	snprintf(folder, sizeof(folder), "devices/system/node/node%d", number);
	say(folder, "cpulist", "%s", nodes[number].cpus);
	say(folder, "distance", "%s", nodes[number].distances);
	say(folder, "meminfo",
	    "Node %d MemTotal:       8388608 kB\nNode %d MemFree:        4194304 kB\n"
	    "Node %d Active(file):   1048576 kB\nNode %d Inactive(file):  524288 kB\n"
	    "Node %d SReclaimable:    524288 kB",
	    number, number, number, number, number);
	say(folder, "hugepages/hugepages-2048kB/nr_hugepages", "%d", number ? 512 : 0);
	say(folder, "hugepages/hugepages-2048kB/free_hugepages", "%d", number ? 256 : 0);
}

const char *machine_make(int which)
{
	snprintf(root, sizeof(root), "/tmp/weft-machine-XXXXXX");
	must(mkdtemp(root) != NULL, root);
	for (const struct device *d = machines[which]; d->path; d++)
		make_device(d);
	for (int i = 0; i < 2; i++)
		make_node(i);
	return root;
}

static int remove_one(const char *path, const struct stat *st, int type, struct FTW *at)
{
	(void)st;
	(void)type;
	(void)at;
	return remove(path);
}

void machine_remove(void)
{
	must(!nftw(root, remove_one, 16, FTW_DEPTH | FTW_PHYS), root);
}

void machine_bind(int number)
{
	machine_say("devices/system/node/node0/cpulist", "%s", number == 1 ? "" : "0-1023");
	machine_say("devices/system/node/node1/cpulist", "%s", number == 0 ? "" : "0-1023");
}
