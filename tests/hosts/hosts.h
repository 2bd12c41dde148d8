/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Hosts within this one: namespaces, each with all that tells one host from another: its
 * network, its boot id, its /dev/shm and its /etc/hosts.  Every network is a bridge, and
 * each host has a cable to each: ethN leads to network N.
 *
 * No host or network has a name outside, so that runs don't meet, and all are gone with the
 * last process inside, however that ends.  A user who is not root can make hosts where user
 * namespaces are allowed.
 *
 * A program with hosts calls hosts_arrive() first.  A host that can't be made is the reason
 * for a skip; a later failure ends the program with a sentence.
 *
 * Threads: one at a time, and only one before hosts_make().
 */
#ifndef HOSTS_H
#define HOSTS_H

#include <stdbool.h>
#include <stddef.h>

#define HOSTS_MAX 10
#define HOSTS_NETWORKS_MAX 3
#define HOSTS_REASON_BYTES 160

struct hosts_plan {
	unsigned count, networks;
	unsigned delay_ms; /* delay of all that a host sends, by relays; 0: plain cables */
	bool tampered;     /* relays can tamper with what goes by, see hosts_tamper() */
};

/*
 * Go to the other host on which this program was started (see below), if so.  With the
 * arguments --run PROGRAM... the process then becomes that program.
 */
void hosts_arrive(int argc, char **argv);

/* Make the hosts.  This process is on host 0 from then on.  False, and why in @reason. */
bool hosts_make(const struct hosts_plan *plan, char reason[HOSTS_REASON_BYTES]);

/* Count of the hosts; 0: they were not made. */
unsigned hosts_count(void);

/* Addresses of a host: 10.77.NETWORK.(HOST + 1), and fd77:NETWORK::(HOST + 1). */
const char *hosts_address(unsigned host, unsigned network);
const char *hosts_address6(unsigned host, unsigned network);

/* Run a shell's command on @host.  True: its status was 0. */
bool hosts_do(unsigned host, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* Move to @host, as a forked child with one thread. */
void hosts_enter(unsigned host);

/*
 * Let programs with hosts that are started from now on go to @host, by the environment.  With
 * @shared only the network is the host's: memory, and all that tells hosts apart, are ours.
 */
void hosts_start_on(unsigned host, bool shared);

/* A folder that is the host's /dev/shm, seen from here. */
const char *hosts_shm(unsigned host);

/*
 * Cut a cable, at the side of the network: the host's end is without a carrier, so the
 * kernel forgets all neighbours there, and libfabric does not offer that end.
 */
void hosts_cut(unsigned host, unsigned network);
/* Part a host from its network behind the cable, so that only silence tells. */
void hosts_part(unsigned host, unsigned network);
/* Mend a cable that was cut or parted. */
void hosts_mend(unsigned host, unsigned network);

/* Limit each way of a cable to @mbit from now on. */
void hosts_limit(unsigned host, unsigned network, unsigned mbit);

/* Let a host lose @percent of the packets that come to it.  False: @reason. */
bool hosts_lose(unsigned host, unsigned percent, char reason[HOSTS_REASON_BYTES]);

/* Let a host forward packets from network @from to @to as its own.  False: @reason. */
bool hosts_translate(unsigned host, unsigned from, unsigned to, char reason[HOSTS_REASON_BYTES]);

/*
 * Let relays change one segment of TCP in @one_in, by chance, of what any host sends from now on
 * (tamper.h); 0: none.  Returns how many they have changed so far.
 */
unsigned hosts_tamper(unsigned one_in);

/* Make cables whole again, without a limit or tampering, and all else as made but the relays. */
void hosts_restore(void);

#endif
