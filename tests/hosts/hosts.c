/* SPDX-License-Identifier: BSD-2-Clause */
#include "hosts.h"
#include "namespaces.h"
#include "relay.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#define PLACE "HOSTS_PLACE" /* in the environment: files of the namespaces to go to */
#define COMMAND_BYTES 1024
#define BOOT_ID "/proc/sys/kernel/random/boot_id"
#define SHM "/dev/shm"

/* Descriptors of a namespace stay as long as one is open, or a process is in it. */
static struct host {
	int net, mount, shm;
	char shm_path[32];
	bool touched; /* it may not be as it was made */
} hosts[HOSTS_MAX];
static int room = -1; /* the namespace with the bridges, where no host is */
static struct hosts_plan plan;
static unsigned made;
static struct tamper *tamper; /* memory that all relays share; NULL: they don't */

static void give_up(const char *what, const char *which)
{
	fprintf(stderr, "hosts: %s: %s: %s\n", what, which, strerror(errno));
	exit(1);
}

/* Commands. */

/* Namespaces of mounts take the current folder along. */
static bool go(int net, int mount)
{
	char *folder = get_current_dir_name();
	bool gone = folder && (net < 0 || !setns(net, CLONE_NEWNET)) &&
		    (mount < 0 || (!setns(mount, CLONE_NEWNS) && !chdir(folder)));

	free(folder);
	return gone;
}

static bool run(int net, int mount, const char *command)
{
	int status = -1;
	pid_t pid;

	fflush(NULL);
	pid = fork();
	if (!pid) {
		if (go(net, mount))
			execl("/bin/sh", "sh", "-c", command, (char *)NULL);
		_exit(127);
	}
	while (pid > 0 && waitpid(pid, &status, 0) < 0 && errno == EINTR)
		;
	return status == 0;
}

static bool run_in_room(const char *format, ...) __attribute__((format(printf, 1, 2)));

static bool run_in_room(const char *format, ...)
{
	char command[COMMAND_BYTES];
	va_list arguments;

	va_start(arguments, format);
	vsnprintf(command, sizeof(command), format, arguments);
	va_end(arguments);
	return run(room, -1, command);
}

bool hosts_do(unsigned host, const char *format, ...)
{
	char command[COMMAND_BYTES];
	va_list arguments;

	hosts[host].touched = true;
	va_start(arguments, format);
	vsnprintf(command, sizeof(command), format, arguments);
	va_end(arguments);
	return run(hosts[host].net, hosts[host].mount, command);
}

/* Places. */

unsigned hosts_count(void)
{
	return made;
}

void hosts_enter(unsigned host)
{
	if (!go(hosts[host].net, hosts[host].mount))
		give_up("can't go to a host", hosts_address(host, 0));
}

void hosts_start_on(unsigned host, bool shared)
{
	char place[96];

	snprintf(place, sizeof(place), "/proc/%d/fd/%d /proc/%d/fd/%d", getpid(), hosts[host].net,
		 getpid(), hosts[shared ? 0 : host].mount);
	setenv(PLACE, place, 1);
}

void hosts_arrive(int argc, char **argv)
{
	const char *place = getenv(PLACE);
	char paths[2][48];
	int net, mount;

	if (!place)
		return;
	if (sscanf(place, "%47s %47s", paths[0], paths[1]) != 2)
		give_up("can't read where to go", place);
	net = open(paths[0], O_RDONLY | O_CLOEXEC);
	mount = open(paths[1], O_RDONLY | O_CLOEXEC);
	if (net < 0 || mount < 0 || !go(net, mount))
		give_up("can't go", place);
	close(net);
	close(mount);
	unsetenv(PLACE);
	if (argc < 3 || strcmp(argv[1], "--run"))
		return;
	execv(argv[2], argv + 2);
	give_up("can't run", argv[2]);
}

const char *hosts_address(unsigned host, unsigned network)
{
	static char texts[HOSTS_MAX][HOSTS_NETWORKS_MAX][16];

	snprintf(texts[host][network], sizeof(texts[0][0]), "10.77.%u.%u", network % 256,
		 (host + 1) % 256);
	return texts[host][network];
}

const char *hosts_address6(unsigned host, unsigned network)
{
	static char texts[HOSTS_MAX][HOSTS_NETWORKS_MAX][16];

	snprintf(texts[host][network], sizeof(texts[0][0]), "fd77:%x::%x", network % 256,
		 (host + 1) % 256);
	return texts[host][network];
}

const char *hosts_shm(unsigned host)
{
	return hosts[host].shm_path;
}

/* Make. */

/* This host's own @path: a file with @text. */
static bool cover(const char *path, const char *text)
{
	static const char file[] = SHM "/file";

	return namespaces_write(file, text) && !mount(file, path, NULL, MS_BIND, NULL) && !unlink(file);
}

/* In the new host. */
static bool furnish(unsigned host)
{
	char boot_id[64], names[64];

	snprintf(boot_id, sizeof(boot_id), "%08x-0077-4077-8077-%012x\n", (unsigned)getpid(), host);
	snprintf(names, sizeof(names), "127.0.0.1 localhost\n%s host%u\n", hosts_address(host, 0),
		 host);
	return !mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) &&
	       !mount("sysfs", "/sys", "sysfs", 0, NULL) &&
	       !mount("tmpfs", SHM, "tmpfs", 0, "mode=1777") && cover(BOOT_ID, boot_id) &&
	       cover("/etc/hosts", names);
}

/* A child in new namespaces, until it is killed: then somebody else holds them. */
static pid_t hold(unsigned host)
{
	int ready[2];
	int error = 0;
	pid_t pid;

	if (pipe2(ready, O_CLOEXEC))
		return -1;
	pid = fork();
	if (!pid) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		if (unshare(CLONE_NEWNET | CLONE_NEWNS) || !furnish(host))
			error = errno;
		if (write(ready[1], &error, sizeof(error)) != sizeof(error) || error)
			_exit(1);
		for (;;)
			pause();
	}
	close(ready[1]);
	if (pid > 0 && (read(ready[0], &error, sizeof(error)) != sizeof(error) || error)) {
		waitpid(pid, NULL, 0);
		pid = -1;
		errno = error;
	}
	close(ready[0]);
	return pid;
}

static int open_of(pid_t pid, const char *what)
{
	char path[64];

	snprintf(path, sizeof(path), "/proc/%d/%s", pid, what);
	return open(path, O_RDONLY | O_CLOEXEC);
}

static bool make_host(unsigned i)
{
	struct host *h = &hosts[i];
	pid_t holder = hold(i);

	if (holder < 0)
		return false;
	h->net = open_of(holder, "ns/net");
	h->mount = open_of(holder, "ns/mnt");
	h->shm = open_of(holder, "root" SHM);
	kill(holder, SIGKILL);
	waitpid(holder, NULL, 0);
	snprintf(h->shm_path, sizeof(h->shm_path), "/proc/self/fd/%d", h->shm);
	return h->net >= 0 && h->mount >= 0 && h->shm >= 0;
}

/* A cable of two interfaces, hN.M in the room and ethM at host N. */
static bool lay_plain(unsigned host, unsigned network)
{
	return run_in_room("ip link add h%u.%u type veth peer name eth%u netns /proc/%d/fd/%d",
			   host, network, network, getpid(), hosts[host].net);
}

/* The same with a relay in it. */
static bool lay_relay(unsigned host, unsigned network)
{
	char far_name[16], near_name[16], byte = 1;
	int ready[2], near, far;
	pid_t parent = getpid(), pid;

	snprintf(far_name, sizeof(far_name), "h%u.%u", host % 100, network % 100);
	snprintf(near_name, sizeof(near_name), "eth%u", network % 100);
	if (pipe2(ready, O_CLOEXEC))
		return false;
	pid = fork();
	if (!pid) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		far = relay_end(far_name);
		near = go(hosts[host].net, -1) ? relay_end(near_name) : -1;
		if (getppid() != parent || far < 0 || near < 0 || write(ready[1], &byte, 1) != 1)
			_exit(1);
		relay_run(near, far, plan.delay_ms, tamper);
	}
	close(ready[1]);
	byte = 0;
	if (pid < 0 || read(ready[0], &byte, 1) != 1)
		byte = 0;
	close(ready[0]);
	return byte;
}

/* Taking an interface down takes its IPv6 address. */
static bool set_up(unsigned host, unsigned network)
{
	return hosts_do(host,
			"tc qdisc del dev eth%u root 2>/dev/null; "
			"ip address replace %s/24 dev eth%u && "
			"ip address replace %s/64 dev eth%u nodad && ip link set eth%u up",
			network, hosts_address(host, network), network,
			hosts_address6(host, network), network, network);
}

static bool by_relays(void)
{
	return plan.delay_ms || plan.tampered;
}

static bool lay_cable(unsigned host, unsigned network)
{
	return (by_relays() ? lay_relay(host, network) : lay_plain(host, network)) &&
	       run_in_room("ip link set h%u.%u master net%u up", host, network, network) &&
	       set_up(host, network);
}

/* Providers overlook an interface that has no carrier yet, and it comes a moment later. */
static bool wait_for_carriers(unsigned host)
{
	return hosts_do(host,
			"for i in $(seq 500); do "
			"[ $(ip -br link | grep -c '^eth.*LOWER_UP') -eq %u ] && exit; "
			"sleep 0.02; done; exit 1",
			plan.networks);
}

static bool fail(char reason[HOSTS_REASON_BYTES], const char *what)
{
	snprintf(reason, HOSTS_REASON_BYTES, "%s: %s", what,
		 errno ? strerror(errno) : "the command fails");
	return false;
}

bool hosts_make(const struct hosts_plan *wanted, char reason[HOSTS_REASON_BYTES])
{
	plan = *wanted;
	errno = 0;
	if (!run(-1, -1, "ip -V >/dev/null 2>&1"))
		return fail(reason, "the ip command (Debian: iproute2)");
	if (by_relays() && access("/dev/net/tun", R_OK | W_OK))
		return fail(reason, "relays by /dev/net/tun");
	if (!namespaces_enter(0))
		return fail(reason, "a network namespace");
	if (plan.tampered) {
		tamper = mmap(NULL, sizeof(*tamper), PROT_READ | PROT_WRITE,
			    MAP_SHARED | MAP_ANONYMOUS, -1, 0);
		if (tamper == MAP_FAILED)
			return fail(reason, "memory that relays share");
	}
	room = open("/proc/self/ns/net", O_RDONLY | O_CLOEXEC);
	for (unsigned i = 0; i < plan.count; i++)
		if (!make_host(i))
			return fail(reason, "namespaces of a host");
	errno = 0;
	for (unsigned n = 0; n < plan.networks; n++)
		if (!run_in_room("ip link add net%u type bridge && ip link set net%u up", n, n))
			return fail(reason, "a bridge");
	for (unsigned i = 0; i < plan.count; i++) {
		for (unsigned n = 0; n < plan.networks; n++)
			if (!lay_cable(i, n))
				return fail(reason, by_relays() ? "a cable by TAP" :
								  "a cable by veth");
		if (!hosts_do(i, "ip link set lo up") || !wait_for_carriers(i))
			return fail(reason, "a carrier on the cables");
	}
	for (unsigned i = 0; i < plan.count; i++)
		hosts[i].touched = false;
	hosts_enter(0);
	made = plan.count;
	return true;
}

/* Harm. */

void hosts_cut(unsigned host, unsigned network)
{
	hosts[host].touched = true;
	if (!run_in_room("ip link set h%u.%u down", host, network))
		give_up("can't cut the cable of", hosts_address(host, network));
}

void hosts_part(unsigned host, unsigned network)
{
	hosts[host].touched = true;
	if (!run_in_room("ip link set h%u.%u nomaster", host, network))
		give_up("can't part from its network", hosts_address(host, network));
}

void hosts_mend(unsigned host, unsigned network)
{
	if (!run_in_room("ip link set h%u.%u master net%u up", host, network, network))
		give_up("can't mend the cable of", hosts_address(host, network));
}

void hosts_limit(unsigned host, unsigned network, unsigned mbit)
{
	/* A bucket for 2 ms, and never less than a large packet; a queue of 20 ms. */
	unsigned burst_kib = mbit / 4 > 128 ? mbit / 4 : 128;
	char limit[128];

	snprintf(limit, sizeof(limit), "root tbf rate %umbit burst %ukb latency 20ms", mbit,
		 burst_kib);
	if (!run_in_room("tc qdisc replace dev h%u.%u %s", host, network, limit) ||
	    !hosts_do(host, "tc qdisc replace dev eth%u %s", network, limit))
		give_up("can't limit the cable of", hosts_address(host, network));
}

bool hosts_lose(unsigned host, unsigned percent, char reason[HOSTS_REASON_BYTES])
{
	/* What is lost is one packet of the wire's, so none leaves larger than that. */
	for (unsigned n = 0; n < plan.networks; n++)
		if (!hosts_do(host, "ip link set eth%u gso_max_segs 1", n))
			give_up("can't have small packets at", hosts_address(host, n));
	errno = 0;
	return hosts_do(host,
			"nft 'add table inet loss; "
			"add chain inet loss in { type filter hook input priority 0; }; "
			"add rule inet loss in iifname \"eth*\" numgen random mod 100 < %u drop' "
			"2>/dev/null",
			percent) ||
	       fail(reason, "loss by nft (Debian: nftables)");
}

bool hosts_translate(unsigned host, unsigned from, unsigned to, char reason[HOSTS_REASON_BYTES])
{
	errno = 0;
	return hosts_do(host,
			"echo 1 >/proc/sys/net/ipv4/ip_forward && nft 'add table ip nat; "
			"add chain ip nat out { type nat hook postrouting priority 100; }; "
			"add rule ip nat out iifname \"eth%u\" oifname \"eth%u\" masquerade' "
			"2>/dev/null",
			from, to) ||
	       fail(reason, "address translation by nft (Debian: nftables)");
}

unsigned hosts_tamper(unsigned one_in)
{
	tamper->one_in = one_in;
	return tamper->flipped + tamper->replaced;
}

void hosts_restore(void)
{
	if (tamper)
		tamper->one_in = 0;
	for (unsigned i = 0; i < plan.count; i++) {
		if (!hosts[i].touched)
			continue;
		if (!hosts_do(i, "nft flush ruleset 2>/dev/null; ip route flush scope global"))
			give_up("can't restore", hosts_address(i, 0));
		for (unsigned n = 0; n < plan.networks; n++) {
			hosts_mend(i, n);
			(void)run_in_room("tc qdisc del dev h%u.%u root 2>/dev/null", i, n);
			if (!set_up(i, n))
				give_up("can't restore", hosts_address(i, n));
		}
		hosts[i].touched = false;
	}
}
