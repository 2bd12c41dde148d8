/* SPDX-License-Identifier: BSD-2-Clause */
#include "util/topology.h"

#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "util/options.h"

/* PCI classes, as the first digits of a device's class register. */
#define CLASS_NETWORK 0x02
#define CLASS_NVME 0x010802
#define CLASS_VGA 0x0300     /* adapters that draw a server's console have it, too */
#define CLASS_3D 0x0302
#define CLASS_DISPLAY 0x0380 /* some adapters without a connector have this */
#define CLASS_ACCELERATOR 0x1200

/* Vendors of GPUs that compute and have the class of VGA. */
static const uint64_t gpu_vendors[] = { 0x10de, 0x1002, 0x8086 };

#define CLASS_WEIGHT 100
#define STEPS_MAX (CLASS_WEIGHT - 1) /* keeps classes in order; PCI's own limit is 255 buses */
#define DISTANCE_LOCAL 10            /* ACPI's distance of a node to itself */

const char *const wf_topology_classes[] = { "X", "PIX", "PXB", "PHB", "NODE", "SYS" };

/* Are the @count bytes at @part, a part of a path, a PCI address? */
static bool is_address(const char *part, size_t count)
{
	unsigned domain, bus, slot, function;
	char text[WF_TOPOLOGY_ADDRESS_BYTES];
	int used = 0;

	if (count >= sizeof(text))
		return false;
	memcpy(text, part, count);
	text[count] = '\0';
	return sscanf(text, "%x:%2x:%2x.%1u%n", &domain, &bus, &slot, &function, &used) == 4 &&
	       used == (int)count;
}

/* Is @part, of a path, a host bridge, as "pci0000:00"? */
static bool is_host_bridge(const char *part)
{
	unsigned domain, bus;

	return sscanf(part, "pci%x:%2x", &domain, &bus) == 2;
}

/* Cut @path behind the last PCI device in it: a virtio NIC, say, has a folder of its own below. */
static bool cut_at_device(char *path)
{
	char *end = path + strlen(path);

	for (char *at = end; at > path; end = at) {
		do
			at--;
		while (at > path && *at != '/');
		if (*at == '/' && is_address(at + 1, (size_t)(end - at - 1))) {
			*end = '\0';
			return true;
		}
	}
	return false;
}

static uint64_t number_at(const char *path, const char *file, uint64_t otherwise)
{
	char at[WF_SYSFS_PATH_BYTES];
	uint64_t value;

	if (!wf_sysfs_path(at, path, "%s", file) || wf_sysfs_number(at, &value))
		return otherwise;
	return value;
}

static enum wf_topology_device_kind kind_of(const char *path)
{
	uint64_t class = number_at(path, "class", 0), vendor = number_at(path, "vendor", 0);

	if (class >> 16 == CLASS_NETWORK)
		return WF_DEVICE_NIC;
	if (class == CLASS_NVME)
		return WF_DEVICE_NVME;
	if (class >> 8 == CLASS_3D || class >> 8 == CLASS_DISPLAY ||
	    class >> 8 == CLASS_ACCELERATOR)
		return WF_DEVICE_GPU;
	for (size_t i = 0; class >> 8 == CLASS_VGA && i < WF_COUNT(gpu_vendors); i++)
		if (vendor == gpu_vendors[i])
			return WF_DEVICE_GPU;
	return WF_DEVICE_OTHER;
}

/* Resolve the link @entry in @folder, with @rest behind it, to a real path. */
static bool resolve(const char *folder, const char *entry, const char *rest,
		    char real[WF_SYSFS_PATH_BYTES])
{
	char path[WF_SYSFS_PATH_BYTES], found[PATH_MAX];

	if (!wf_sysfs_path(path, folder, "%s%s", entry, rest) || !realpath(path, found) ||
	    strlen(found) >= WF_SYSFS_PATH_BYTES)
		return false;
	strcpy(real, found);
	return true;
}

static int add_device(struct wf_topology *t, const char *address, const char *path)
{
	struct wf_topology_device *more =
		realloc(t->devices, (t->device_count + 1) * sizeof(*more));
	struct wf_topology_device fresh = { .kind = kind_of(path) };
	char p2pmem[WF_SYSFS_PATH_BYTES];

	if (!more)
		return -ENOMEM;
	t->devices = more;
	fresh.path = strdup(path);
	if (!fresh.path)
		return -ENOMEM;
	snprintf(fresh.address, sizeof(fresh.address), "%s", address);
	fresh.node = wf_sysfs_node(path);
	fresh.p2pmem = wf_sysfs_path(p2pmem, path, "p2pmem/size") && !access(p2pmem, R_OK);
	t->devices[t->device_count++] = fresh;
	return 0;
}

/* Names of a folder's entries. */
struct names {
	char **all;
	size_t count;
};

static int add_name(struct names *names, const char *name)
{
	char **more = realloc(names->all, (names->count + 1) * sizeof(*more));

	if (!more)
		return -ENOMEM;
	names->all = more;
	more[names->count] = strdup(name);
	return more[names->count++] ? 0 : -ENOMEM;
}

/* List the folder at @path; a folder that is missing, or not for us to see, is empty. */
static int list_folder(const char *path, struct names *names)
{
	DIR *dir = opendir(path);
	struct dirent *entry;
	int err = 0;

	if (!dir)
		return errno == ENOENT || errno == ENOTDIR || errno == EACCES ? 0 : -errno;
	while (!err && (entry = readdir(dir)))
		if (entry->d_name[0] != '.')
			err = add_name(names, entry->d_name);
	(void)closedir(dir);
	return err;
}

/* Compare names by number: node2 stands before node10. */
static int by_number(const void *a, const void *b)
{
	return strverscmp(*(char *const *)a, *(char *const *)b);
}

/* Call @take for each entry of @folder, in the order of by_number(). */
static int each(struct wf_topology *t, const char *folder,
		int (*take)(struct wf_topology *t, const char *folder, const char *entry))
{
	char path[WF_SYSFS_PATH_BYTES];
	struct names names = { 0 };
	int err = 0;

	if (wf_sysfs_path(path, t->root, "%s", folder))
		err = list_folder(path, &names);
	if (!err && names.count)
		qsort(names.all, names.count, sizeof(*names.all), by_number);
	for (size_t i = 0; i < names.count; i++) {
		if (!err)
			err = take(t, path, names.all[i]);
		free(names.all[i]);
	}
	free(names.all);
	return err;
}

static int take_device(struct wf_topology *t, const char *folder, const char *entry)
{
	char path[WF_SYSFS_PATH_BYTES];

	if (!is_address(entry, strlen(entry)) || !resolve(folder, entry, "", path))
		return 0;
	return add_device(t, entry, path);
}

/*
 * Add the name of an entry of a device class, as of a netdev, to the PCI device below it, if
 * any.
 */
static int take_name(struct wf_topology *t, const char *folder, const char *entry)
{
	char path[WF_SYSFS_PATH_BYTES];

	if (!resolve(folder, entry, "/device", path) || !cut_at_device(path))
		return 0;
	for (size_t i = 0; i < t->device_count; i++) {
		struct wf_topology_device *d = &t->devices[i];
		size_t used = strlen(d->names);

		if (strcmp(d->path, path) || used + strlen(entry) + 2 > sizeof(d->names))
			continue;
		snprintf(d->names + used, sizeof(d->names) - used, "%s%s", used ? "," : "", entry);
	}
	return 0;
}

/* Choose the name of each device, once all its names are known. */
static void name_devices(struct wf_topology *t)
{
	unsigned gpus = 0;

	for (size_t i = 0; i < t->device_count; i++) {
		struct wf_topology_device *d = &t->devices[i];

		if (d->kind == WF_DEVICE_GPU)
			snprintf(d->names, sizeof(d->names), "gpu%u", gpus++);
		strcpy(d->name, d->names[0] ? d->names : d->address);
		d->name[strcspn(d->name, ",")] = '\0';
	}
}

static int take_node(struct wf_topology *t, const char *folder, const char *entry)
{
	struct wf_topology_numa *n = &t->nodes[t->node_count];
	char path[WF_SYSFS_PATH_BYTES], text[WF_SYSFS_TEXT_BYTES], *at = text, *end;
	int used = 0;

	if (t->node_count == WF_TOPOLOGY_NODES_MAX ||
	    sscanf(entry, "node%d%n", &n->number, &used) != 1 || entry[used])
		return 0;
	if (wf_sysfs_path(path, folder, "%s/cpulist", entry) &&
	    !wf_sysfs_text(path, text, sizeof(text))) {
		n->cpus = strdup(text);
		if (!n->cpus)
			return -ENOMEM;
	}
	for (size_t i = 0; i < WF_TOPOLOGY_NODES_MAX; i++)
		n->distances[i] = DISTANCE_LOCAL;
	if (wf_sysfs_path(path, folder, "%s/distance", entry) &&
	    !wf_sysfs_text(path, text, sizeof(text)))
		for (size_t i = 0; i < WF_TOPOLOGY_NODES_MAX; i++) {
			unsigned long far = strtoul(at, &end, 10);

			if (end == at)
				break;
			n->distances[i] = (unsigned)WF_MIN(far, 255UL); /* ACPI has bytes */
			at = end;
		}
	t->node_count++;
	return 0;
}

int wf_topology_open(struct wf_topology *t, const char *root)
{
	static const char *const names[] = { "class/infiniband", "class/net", "class/nvme" };
	int err;

	*t = (struct wf_topology){ 0 };
	if (!root || !*root)
		root = WF_SYSFS_ROOT;
	if (strlen(root) >= sizeof(t->root))
		return -ENAMETOOLONG;
	strcpy(t->root, root);
	err = each(t, "bus/pci/devices", take_device);
	for (size_t i = 0; !err && i < WF_COUNT(names); i++)
		err = each(t, names[i], take_name);
	if (!err)
		err = each(t, "devices/system/node", take_node);
	if (err) {
		wf_topology_close(t);
		return err;
	}
	name_devices(t);
	/* A kernel without NUMA lists no node: the machine has one. */
	if (!t->node_count)
		t->nodes[t->node_count++] =
			(struct wf_topology_numa){ .distances = { DISTANCE_LOCAL } };
	for (size_t i = 0; t->node_count == 1 && i < t->device_count; i++)
		t->devices[i].node = t->nodes[0].number;
	return 0;
}

void wf_topology_close(struct wf_topology *t)
{
	for (size_t i = 0; i < t->device_count; i++)
		free(t->devices[i].path);
	free(t->devices);
	for (size_t i = 0; i < t->node_count; i++)
		free(t->nodes[i].cpus);
	*t = (struct wf_topology){ 0 };
}

bool wf_topology_is(const struct wf_topology_place *place, const char *name)
{
	const struct wf_topology_device *d = place->device;
	int number, used = 0;

	if (!d)
		return sscanf(name, "node%d%n", &number, &used) == 1 && !name[used] &&
		       number == place->node;
	return *name && (wf_options_lists_exactly(d->names, name) || !strcasecmp(d->address, name) ||
			 (!strncmp(d->address, "0000:", 5) && !strcasecmp(d->address + 5, name)));
}

int wf_topology_find(const struct wf_topology *t, const char *name, struct wf_topology_place *place)
{
	struct wf_topology_place at;

	for (size_t i = 0; i < t->device_count + t->node_count; i++) {
		if (i < t->device_count)
			at = (struct wf_topology_place){ &t->devices[i], t->devices[i].node };
		else
			at = (struct wf_topology_place){ NULL,
							 t->nodes[i - t->device_count].number };
		if (wf_topology_is(&at, name)) {
			*place = at;
			return 0;
		}
	}
	return -ENODEV;
}

/* The firmware's distance between two nodes, beyond that of a node to itself. */
static unsigned apart(const struct wf_topology *t, int from, int to)
{
	for (size_t i = 0; i < t->node_count; i++)
		for (size_t j = 0; j < t->node_count; j++)
			if (t->nodes[i].number == from && t->nodes[j].number == to &&
			    t->nodes[i].distances[j] > DISTANCE_LOCAL)
				return t->nodes[i].distances[j] - DISTANCE_LOCAL;
	return 0;
}

/* The number of slashes in @path, one before each part. */
static unsigned parts_of(const char *path)
{
	unsigned count = 0;

	for (; *path; path++)
		count += *path == '/';
	return count;
}

static unsigned below_host_bridge(const struct wf_topology_device *d)
{
	const char *at = d->path;

	while ((at = strchr(at, '/')) && !is_host_bridge(++at))
		;
	return at ? parts_of(at) : 0;
}

/*
 * Classify two devices by their paths.  A switch is an upstream port with downstream ports
 * below it, so devices of one switch are two steps below its upstream port.
 */
static enum wf_topology_near class_of(const struct wf_topology_device *a,
				      const struct wf_topology_device *b, unsigned *steps)
{
	size_t same = 0, last = 0, part;
	unsigned up, down;

	for (; a->path[same] && a->path[same] == b->path[same]; same++)
		if (a->path[same] == '/')
			last = same;
	/* A device may be a bridge above the other: all of its path is shared. */
	if ((!a->path[same] || a->path[same] == '/') && (!b->path[same] || b->path[same] == '/'))
		last = same;
	up = parts_of(a->path + last);
	down = parts_of(b->path + last);
	*steps = up + down;
	for (part = last; part && a->path[part - 1] != '/'; part--)
		;
	if (is_address(a->path + part, last - part))
		return up <= 2 && down <= 2 ? WF_NEAR_PIX : WF_NEAR_PXB;
	if (is_host_bridge(a->path + part))
		return WF_NEAR_PHB;
	return a->node == b->node && a->node >= 0 ? WF_NEAR_NODE : WF_NEAR_SYS;
}

unsigned wf_topology_distance(const struct wf_topology *t, const struct wf_topology_place *a,
			      const struct wf_topology_place *b, enum wf_topology_near *class)
{
	const struct wf_topology_device *device = a->device ? a->device : b->device;
	enum wf_topology_near near;
	unsigned steps = 0;

	if (a->device == b->device && (device || a->node == b->node))
		near = WF_NEAR_SAME;
	else if (a->device && b->device)
		near = class_of(a->device, b->device, &steps);
	else
		near = device && a->node == b->node && a->node >= 0 ? WF_NEAR_PHB : WF_NEAR_SYS;
	if (device && !(a->device && b->device))
		steps = below_host_bridge(device);
	if (class)
		*class = near;
	return (unsigned)near * CLASS_WEIGHT + WF_MIN(steps, (unsigned)STEPS_MAX) +
	       (near == WF_NEAR_SYS ? apart(t, a->node, b->node) : 0);
}

static bool has_cpu(const struct wf_topology_numa *node, unsigned cpu)
{
	return node->cpus && wf_sysfs_lists(node->cpus, cpu);
}

/* The NUMA node of the CPUs that this thread may run on; -1: several, or not known. */
static int node_of_cpus(const struct wf_topology *t)
{
	cpu_set_t mask;
	int home = -1;

	if (sched_getaffinity(0, sizeof(mask), &mask))
		return -1;
	for (size_t i = 0; i < t->node_count; i++) {
		bool any = false;

		for (unsigned cpu = 0; cpu < CPU_SETSIZE && !any; cpu++)
			any = CPU_ISSET(cpu, &mask) && has_cpu(&t->nodes[i], cpu);
		if (any && home >= 0)
			return -1;
		if (any)
			home = t->nodes[i].number;
	}
	return home;
}

/*
 * The NUMA node that set_mempolicy(2) names; -1: none or several.  The C library has no call
 * for it.
 */
static int node_of_memory(void)
{
	unsigned long mask[1024 / (8 * sizeof(unsigned long))] = { 0 };
	int mode = 0, home = -1;

	if (syscall(SYS_get_mempolicy, &mode, mask, 8 * sizeof(mask), NULL, 0) || !mode)
		return -1;
	for (unsigned i = 0; i < 8 * sizeof(mask); i++) {
		if (!(mask[i / (8 * sizeof(*mask))] >> i % (8 * sizeof(*mask)) & 1))
			continue;
		if (home >= 0)
			return -1;
		home = (int)i;
	}
	return home;
}

int wf_topology_home(const struct wf_topology *t)
{
	int home;

	if (t->node_count < 2)
		return -1;
	home = node_of_cpus(t);
	return home >= 0 ? home : node_of_memory();
}

int wf_topology_here(const struct wf_topology *t)
{
	int cpu = sched_getcpu();

	for (size_t i = 0; cpu >= 0 && i < t->node_count; i++)
		if (has_cpu(&t->nodes[i], (unsigned)cpu))
			return t->nodes[i].number;
	return t->nodes[0].number;
}
