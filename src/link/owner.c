/* SPDX-License-Identifier: BSD-2-Clause */
#include "link/owner.h"

#include <arpa/inet.h>
#include <errno.h>
#include <linux/inet_diag.h>
#include <linux/netlink.h>
#include <linux/sock_diag.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

/* Numbers of two TCP states in the kernel, as in /proc/net/tcp. */
#define ESTABLISHED 1
#define LISTENING 10
#define HEX_BYTES 33 /* bytes of an address in /proc/net/tcp6 */

union address {
	struct sockaddr any;
	struct sockaddr_in v4;
	struct sockaddr_in6 v6;
	struct sockaddr_storage room;
};

/* An end of a TCP connection on this host. */
struct end {
	int family;
	in_port_t port; /* port in network order, as the rest */
	uint32_t words[4];
};

struct answer {
	unsigned state;
	uint32_t uid;
	bool held; /* a process has the socket: accepted, and not left */
};

bool wf_owner_is_loopback(const struct sockaddr *a)
{
	union address u = { 0 };

	if (a->sa_family == AF_INET) {
		memcpy(&u.v4, a, sizeof(u.v4));
		return ntohl(u.v4.sin_addr.s_addr) >> 24 == IN_LOOPBACKNET;
	}
	if (a->sa_family == AF_INET6) {
		memcpy(&u.v6, a, sizeof(u.v6));
		return IN6_IS_ADDR_LOOPBACK(&u.v6.sin6_addr) ||
		       (IN6_IS_ADDR_V4MAPPED(&u.v6.sin6_addr) &&
			u.v6.sin6_addr.s6_addr[12] == IN_LOOPBACKNET);
	}
	return false;
}

/* Returns the end at @a.  An IPv4 address in the form of IPv6 counts as IPv4. */
static struct end end_of(const union address *a)
{
	struct end end = { .family = a->any.sa_family };

	if (a->any.sa_family == AF_INET) {
		end.port = a->v4.sin_port;
		end.words[0] = a->v4.sin_addr.s_addr;
		return end;
	}
	end.port = a->v6.sin6_port;
	memcpy(end.words, &a->v6.sin6_addr, sizeof(end.words));
	if (!IN6_IS_ADDR_V4MAPPED(&a->v6.sin6_addr))
		return end;
	return (struct end){ .family = AF_INET, .port = end.port, .words = { end.words[3] } };
}

int wf_owner_open(void)
{
	return socket(AF_NETLINK, SOCK_RAW | SOCK_NONBLOCK | SOCK_CLOEXEC, NETLINK_SOCK_DIAG);
}

static int send_question(int asker, const struct end *there, const struct end *here)
{
	struct {
		struct nlmsghdr head;
		struct inet_diag_req_v2 body;
	} question = {
		.head = { .nlmsg_len = sizeof(question), .nlmsg_type = SOCK_DIAG_BY_FAMILY,
			  .nlmsg_flags = NLM_F_REQUEST },
		.body = { .sdiag_family = (uint8_t)there->family, .sdiag_protocol = IPPROTO_TCP,
			  .idiag_states = UINT32_MAX,
			  .id = { .idiag_sport = there->port, .idiag_dport = here->port,
				  .idiag_cookie = { INET_DIAG_NOCOOKIE, INET_DIAG_NOCOOKIE } } },
	};
	struct sockaddr_nl kernel = { .nl_family = AF_NETLINK };

	memcpy(question.body.id.idiag_src, there->words, sizeof(there->words));
	memcpy(question.body.id.idiag_dst, here->words, sizeof(here->words));
	return sendto(asker, &question, sizeof(question), 0, (struct sockaddr *)&kernel,
		      sizeof(kernel)) < 0 ? -errno : 0;
}

/*
 * Ask the kernel, which answers within the question's system call.  -ENOENT: it has no such
 * socket.
 */
static int ask_kernel(int asker, const struct end *there, const struct end *here,
		      struct answer *answer)
{
	struct {
		struct nlmsghdr head;
		struct inet_diag_msg body;
		char more[1024];
	} reply;
	struct sockaddr_nl from = { 0 };
	socklen_t from_bytes = sizeof(from);
	ssize_t got;
	int err;

	if (asker < 0)
		return -ENOENT;
	err = send_question(asker, there, here);
	if (err)
		return err;
	got = recvfrom(asker, &reply, sizeof(reply), 0, (struct sockaddr *)&from, &from_bytes);
	if (got < (ssize_t)(sizeof(reply.head) + sizeof(reply.body)) || from.nl_pid ||
	    reply.head.nlmsg_type != SOCK_DIAG_BY_FAMILY)
		return -ENOENT;
	*answer = (struct answer){ reply.body.idiag_state, reply.body.idiag_uid,
				   reply.body.idiag_inode != 0 };
	return 0;
}

static void put_hex(char text[HEX_BYTES], const struct end *end, int family)
{
	struct end at = *end;

	if (family == AF_INET) {
		(void)snprintf(text, HEX_BYTES, "%08X", at.words[0]);
		return;
	}
	if (at.family == AF_INET) {
		at.words[3] = at.words[0];
		at.words[2] = htonl(0xffff);
		at.words[0] = at.words[1] = 0;
	}
	(void)snprintf(text, HEX_BYTES, "%08X%08X%08X%08X", at.words[0], at.words[1], at.words[2],
		       at.words[3]);
}

/* Look for the socket from @there to @here among those of @family; an end with port 0 is any. */
static int search_list(int family, const struct end *there, const struct end *here,
		       struct answer *answer)
{
	FILE *list = fopen(family == AF_INET ? "/proc/net/tcp" : "/proc/net/tcp6", "re");
	char line[512], from[HEX_BYTES], to[HEX_BYTES], src[HEX_BYTES], dst[HEX_BYTES];
	unsigned sport, dport, state, uid;
	unsigned long inode;
	int err = -ENOENT;

	if (!list)
		return -errno;
	put_hex(from, there, family);
	put_hex(to, here, family);
	while (err && fgets(line, sizeof(line), list)) {
		if (sscanf(line, "%*u: %32[0-9A-F]:%4X %32[0-9A-F]:%4X %2X %*s %*s %*s %u %*u %lu",
			   src, &sport, dst, &dport, &state, &uid, &inode) != 7)
			continue;
		if (sport != ntohs(there->port) || dport != ntohs(here->port) || strcmp(src, from) ||
		    strcmp(dst, to))
			continue;
		*answer = (struct answer){ state, uid, inode != 0 };
		err = 0;
	}
	(void)fclose(list);
	return err;
}

static int ask(int asker, const struct end *there, const struct end *here, struct answer *answer)
{
	if (!ask_kernel(asker, there, here, answer))
		return 0;
	if (there->family == AF_INET && !search_list(AF_INET, there, here, answer))
		return 0;
	return search_list(AF_INET6, there, here, answer);
}

/* Find the user of the end @there.  -ENOENT: the kernel does not tell. */
static int find(int asker, const struct end *there, const struct end *here, enum wf_owner_end end,
		uint32_t *uid)
{
	struct end any = { .family = there->family };
	struct answer answer;

	/* A connection that its process has left is said to be root's. */
	if (!ask(asker, there, here, &answer) && answer.held && answer.state == ESTABLISHED) {
		*uid = answer.uid;
		return 0;
	}
	if (end == WF_OWNER_ACCEPTED || ask(asker, there, &any, &answer) ||
	    answer.state != LISTENING)
		return -ENOENT;
	*uid = answer.uid;
	return 0;
}

/* Has the connection @fd ended?  Then what was dialled has closed, and is nobody's any more. */
static bool has_ended(int fd)
{
	char byte;
	ssize_t count = recv(fd, &byte, 1, MSG_PEEK | MSG_DONTWAIT);

	return !count || (count < 0 && errno != EAGAIN && errno != EINTR);
}

int wf_owner_check(int asker, int fd, enum wf_owner_end end, struct wf_error *e)
{
	static const char rule[] = "on loopback nodes of one user meet, unless WEFT_SECURITY=open";
	union address here = { 0 }, there = { 0 };
	socklen_t here_bytes = sizeof(here), there_bytes = sizeof(there);
	struct end from, to;
	uint32_t uid;
	int err;

	if (getsockname(fd, &here.any, &here_bytes) || getpeername(fd, &there.any, &there_bytes))
		return wf_error_set(e, -ENOTCONN, "the connection has ended: %s",
				    wf_error_name(-errno));
	if (!wf_owner_is_loopback(&here.any) && !wf_owner_is_loopback(&there.any))
		return 0;
	from = end_of(&there);
	to = end_of(&here);
	err = find(asker, &from, &to, end, &uid);
	if (err && end == WF_OWNER_DIALLED && has_ended(fd))
		return wf_error_set(e, -ENOTCONN, "the connection has ended");
	if (err)
		return wf_error_set(e, -EACCES, "the kernel does not tell whose the other end is: "
				    "%s", rule);
	if (uid == geteuid())
		return 0;
	return wf_error_set(e, -EACCES, "the other end is of uid %u, this node of uid %u: %s", uid,
			    geteuid(), rule);
}
