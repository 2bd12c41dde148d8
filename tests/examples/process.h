/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Runs programs from a test and reads what they say.  No program outlives the
 * test, not even when the test is killed.
 *
 * Any trouble with a process itself fails the test that runs.
 * Threads: the one that runs the tests.
 */
#ifndef PROCESS_H
#define PROCESS_H

#include <stdbool.h>
#include <sys/types.h>

#define PROCESS_LIMIT_MS 60000 /* limit of what takes well under a second on a machine at rest */
#define PROCESS_TEXT_BYTES 16384

struct process {
	pid_t pid;
	int out, err; /* files that the process writes to */
	bool ended;
	int status;   /* exit status, or minus the signal that ended the process */
	char text[PROCESS_TEXT_BYTES];
};

/*
 * Start argv[0] with @variables ("NAME=value"; NULL: none) added to the
 * environment.  Both lists end with NULL.
 */
void process_start(struct process *p, const char *const *variables,
		   const char *const *argv);

/* Send a signal. */
void process_signal(struct process *p, int signal);

/* Wait for the end of @p.  False: @p still runs after @limit_ms. */
bool process_wait(struct process *p, unsigned limit_ms);

/* Wait until @p has written @text to stdout.  False: @p ended without, or time is up. */
bool process_says(struct process *p, const char *text, unsigned limit_ms);

/* Wait for a server's address, the first word that it writes to stdout. */
void process_address(struct process *p, char address[128]);

/* All that @p has written so far; valid until the next call for @p. */
const char *process_out(struct process *p);
const char *process_err(struct process *p);

/* Kill and forget @p, which may have ended, too.  Accepts one never started. */
void process_stop(struct process *p);

/* The path of a program of the build tree. */
const char *process_path(const char *program, char path[512]);

/*
 * Would a program that is started with FI_PROVIDER=@provider find it?  Asks as a user does, and
 * says so if not.
 */
bool process_finds(const char *provider);

/* Ports of 127.0.0.1 that nobody listened at just now. */
void process_ports(unsigned short *ports, unsigned count);

/* Milliseconds of a clock that only goes forward. */
unsigned long process_now_ms(void);

#endif
