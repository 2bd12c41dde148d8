/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Hosts within this one: namespaces, each with what tells one host from another, which
 * is its network, its boot id, its /dev/shm and its /etc/hosts.  Every network is a
 * bridge, and each host has a cable to each: ethN leads to network N.
 *
 * None of it has a name outside, so that runs don't meet, and all is gone with the
 * last process that is in it, however that ends.  Who is not root makes them where
 * user namespaces are allowed.
 *
 * A program that uses this calls hosts_arrive() first.  What can't be made is the reason
 * for a skip; what fails later ends the program with a sentence.
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
	unsigned delay_ms; /* of what a host sends, by a relay in every cable; 0: plain cables */
};

/*
 * If this program was started on another host (see below), go there.  With the arguments
 * --run PROGRAM... it then becomes that program.
 */
void hosts_arrive(int argc, char **argv);

/* Make them.  This process is on host 0 from then on.  False: why not is in @reason. */
bool hosts_make(const struct hosts_plan *plan, char reason[HOSTS_REASON_BYTES]);

/* How many there are; 0: they were not made. */
unsigned hosts_count(void);

/* 10.77.NETWORK.(HOST + 1), and fd77:NETWORK::(HOST + 1). */
const char *hosts_address(unsigned host, unsigned network);
const char *hosts_address6(unsigned host, unsigned network);

/* Run a shell's command there.  True: its status was 0. */
bool hosts_do(unsigned host, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* A child that was forked and has one thread moves to @host. */
void hosts_enter(unsigned host);

/*
 * Programs of this kind that are started from now on go there, by the environment.  With
 * @shared only the network is the host's: memory, and what tells hosts apart, are ours.
 */
void hosts_start_on(unsigned host, bool shared);

/* A folder that is the host's /dev/shm, seen from here. */
const char *hosts_shm(unsigned host);

/*
 * Cut a cable, at the side of the network: the host's end is without a carrier, so the
 * kernel forgets who is where and libfabric does not offer it.  Or part the host from its
 * network behind the cable, so that only silence tells.  And mend either.
 */
void hosts_cut(unsigned host, unsigned network);
void hosts_part(unsigned host, unsigned network);
void hosts_mend(unsigned host, unsigned network);

/* Each way of a cable carries so much from now on. */
void hosts_limit(unsigned host, unsigned network, unsigned mbit);

/* A host loses so many packets of a hundred of those that come to it.  False: @reason. */
bool hosts_lose(unsigned host, unsigned percent, char reason[HOSTS_REASON_BYTES]);

/* A host forwards what comes by network @from to @to as if it were its own.  False: @reason. */
bool hosts_translate(unsigned host, unsigned from, unsigned to, char reason[HOSTS_REASON_BYTES]);

/* Whole cables again, that carry what they can, and all else as it was made but the relays. */
void hosts_restore(void);

#endif
