/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The members of a crew as their conductor sees them: processes to start, to
 * command and to do harm to, and the harms with their times.
 *
 * Trouble with a member that is not part of the plan ends the program with a
 * sentence; the members end with it.
 */
#ifndef CREW_H
#define CREW_H

#include <stdbool.h>
#include <sys/types.h>

#include "traffic.h"

#define CREW_MAX TRAFFIC_PEERS_MAX
#define CREW_HARMS_MAX 32
#define CREW_FILES_MAX 64

enum harm_kind { HARM_KILL, HARM_STOP, HARM_RESET, HARM_CUT };

struct harm {
	enum harm_kind kind;
	unsigned member, other;    /* other: the far end of a reset */
	uint64_t from_ns, until_ns; /* until the member runs again; UINT64_MAX: never */
};

struct member {
	pid_t pid; /* 0: the member does not run */
	int to, from;
	char address[64];
	bool stopped;
	uint64_t heap_bytes; /* heap in use after the first round, to see a leak by */
	unsigned rounds;     /* rounds since the start of the process */
};

/* Names in /dev/shm. */
struct files {
	char names[CREW_FILES_MAX][96];
	size_t count;
};

struct crew {
	struct member members[CREW_MAX];
	unsigned count;
	const char *provider;
	unsigned beat_ms, lost_ms;
	/* Receivers get so little of the processors that thousands of tensors may wait for them. */
	bool is_starved;
	int reports_fd;
	struct harm harms[CREW_HARMS_MAX];
	unsigned harm_count;
	struct {
		uint64_t resets, resumed; /* doors that were reset, links that went on */
		uint64_t ended, bytes;
		uint64_t baseless, corrupted; /* failures without a reason, and wrong bytes */
	} all; /* sums over all rounds */
};

/* Print the reason, and end the program. */
void crew_give_up(const char *format, ...) __attribute__((format(printf, 1, 2), noreturn));

/*
 * Make @count members that do not run yet.  Each has an address of its own at loopback, or is
 * to live on a host of its own if there are hosts (tests/hosts/hosts.h).
 */
void crew_init(struct crew *crew, unsigned count);
void crew_fini(struct crew *crew);

/* Start the process of member @i. */
void crew_start(struct crew *crew, unsigned i);

/* Give a command, and wait for its end.  The reply is valid until the next. */
void crew_say(struct crew *crew, unsigned i, const char *format, ...)
	__attribute__((format(printf, 3, 4)));
const char *crew_hear(struct crew *crew, unsigned i);

/* Tell member @i to open its node.  Traffic begins by the command "go". */
void crew_open(struct crew *crew, unsigned i, bool manual, uint64_t seed, unsigned gap_us);

/* The report of a member that has closed its node, after the command "close". */
struct closing {
	uint64_t ended, failed, bytes; /* operations, and bytes that tensors brought */
	uint64_t lost, resumed;        /* as weft counts them */
	uint64_t pool_bytes, heap_bytes;
	int fds; /* more than before the node was opened */
};
void crew_hear_closing(struct crew *crew, unsigned i, struct closing *c);

/* Give a command to all members that run, at once. */
void crew_tell_all(struct crew *crew, const char *command);

/* Do harm, and write it down. */
void crew_kill(struct crew *crew, unsigned i);
void crew_stop(struct crew *crew, unsigned i);
void crew_thaw(struct crew *crew, unsigned i);
/* Reset the connections between two members.  False: there was none just then. */
bool crew_reset(struct crew *crew, unsigned i, unsigned other);
/* Note that a member that was killed runs again. */
void crew_is_back(struct crew *crew, unsigned i);
void crew_forget_harms(struct crew *crew);

/* Add the files that member @i has in /dev/shm. */
void crew_files(const struct crew *crew, unsigned i, struct files *files);
/* Count the @files that are still there; the first is in @name. */
size_t crew_files_left(const struct files *files, char name[96]);

void crew_sleep_until(uint64_t ns);

#endif
