/* SPDX-License-Identifier: BSD-2-Clause */
#include "weather.h"

#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "crew.h"
#include "round.h"
#include "tests/hosts/hosts.h"

#define CUT_LEAST_NS (50 * MS)
/* TCP asks again after 0.2 and 0.6 s: this leaves time in half of the shortest limit of silence. */
#define CUT_MOST_NS (400 * MS)

static atomic_uint *cuts; /* shared with the child */

/* Never the same host twice in a row, nor in step with TCP, which dials again after 1 s. */
static void rain(uint64_t every_ns, uint64_t random)
{
	unsigned host = 0;

	for (uint64_t at = now_ns();;) {
		uint64_t ns = CUT_LEAST_NS + round_draw(&random, CUT_MOST_NS - CUT_LEAST_NS);

		at += every_ns / 2 + round_draw(&random, every_ns);
		host += 1 + (unsigned)round_draw(&random, hosts_count() - 1);
		host %= hosts_count();
		crew_sleep_until(at);
		hosts_part(host, 0);
		crew_sleep_until(now_ns() + ns);
		hosts_mend(host, 0);
		if (getenv("CHAOS_LOG"))
			fprintf(stderr, "%.3f host %u was cut off until then for %.0f ms\n",
				(double)now_ns() / SECOND, host, (double)ns / MS);
		atomic_fetch_add(cuts, 1);
	}
}

void weather_begin(unsigned every_ms, uint64_t seed)
{
	pid_t pid;

	cuts = mmap(NULL, sizeof(*cuts), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (cuts == MAP_FAILED)
		crew_give_up("no memory for the weather");
	pid = fork();
	if (pid < 0)
		crew_give_up("no process for the weather");
	if (pid)
		return;
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	rain(every_ms * MS, round_random(seed));
}

unsigned weather_cuts(void)
{
	return atomic_load(cuts);
}
