/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A member of a crew: a process with one node at a time, which obeys the
 * conductor's commands, one line each, and says "ok" when one is done.
 *
 *   open PROVIDER MODE BEAT_MS LOST_MS SEED GAP_US SELF ADDRESS...
 *                      open the node and serve; MODE: threaded, manual
 *   go                 begin traffic with all others
 *   reset ADDRESS      reset the connection to the door there; says how many it had
 *   burn COUNT         keep as many threads busy, until the process ends
 *   drain              send no more; done when all that was sent has ended
 *   hush               cancel what is left; done when it has ended
 *   close              close the node; says what it has done
 */
#ifndef MEMBER_H
#define MEMBER_H

#define MEMBER_REPORTS_FD 3 /* where a member finds the file for its reports */

/* Be a member until the input ends.  Returns the exit status. */
int member_run(void);

#endif
