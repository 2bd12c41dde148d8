/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What the owner of a machine says about its memory: rules, in order, as text.
 *
 *   allow WHO [for CLIENT] [where class OP CLASS]     deny: likewise
 *   prefer WHO [for CLIENT]
 *   limit WHO BYTES
 *   reserve WHO BYTES|PERCENT%
 *   publish software:ADDRESS BYTES
 *
 * Rules end at a new line or a semicolon, and what follows a # is for people.
 * WHO is a comma list of kinds ("host"), publishers ("p2pmem:0000:3b:00.0") or
 * "any"; OP one of < <= = >= >; CLASS one of wf_topology_classes.
 *
 * Of allow and deny the first that matches decides, as does the first prefer;
 * every limit and every reserve holds.
 *
 * No I/O but for the file.  Threads: any.
 */
#ifndef WF_RULES_H
#define WF_RULES_H

#include "util/error.h"
#include "util/topology.h"

#define WF_RULE_TEXT_BYTES 160       /* of one rule */
#define WF_RULES_FILE_BYTES (64 * KIB)
#define WF_RULE_NAME_BYTES 64        /* "software:00010000:3b:00.0", or a client's name */
#define WF_RULE_WHO_MAX 8

enum wf_rule_verb {
	WF_RULE_ALLOW,
	WF_RULE_DENY,
	WF_RULE_PREFER,
	WF_RULE_LIMIT,
	WF_RULE_RESERVE,
	WF_RULE_PUBLISH
};

/* Publishers: "any", a kind, or one of them. */
struct wf_rule_who {
	char names[WF_RULE_WHO_MAX][WF_RULE_NAME_BYTES];
	unsigned count;
};

struct wf_rule {
	enum wf_rule_verb verb;
	struct wf_rule_who who;
	char client[WF_RULE_NAME_BYTES]; /* "": every one */
	enum wf_near class;              /* the condition holds: */
	bool below, at, above;           /* nearer than that, there, and further away */
	uint64_t bytes;
	unsigned percent;                /* of what there is; 0: @bytes says it */
	char text[WF_RULE_TEXT_BYTES];   /* as it was written */
};

struct wf_rules {
	struct wf_rule *all;
	size_t count;
};

/*
 * Read @text, or the file that it names, if it begins with a slash.  -EINVAL:
 * the sentence gives line and word.  -ENOMEM, -EFBIG, or why there is no such file.
 */
int wf_rules_open(struct wf_rules *rules, const char *text, struct wf_error *e);

/* Accepts a zeroed one. */
void wf_rules_close(struct wf_rules *rules);

/* Read a comma list of publishers.  -EINVAL with a sentence. */
int wf_rules_who(const char *text, struct wf_rule_who *who, struct wf_error *e);

/* Where in @who is the publisher @name, of kind @kind?  -1: nowhere. */
int wf_rules_place(const struct wf_rule_who *who, const char *kind, const char *name);

/* Does a rule allow publishers of @kind, by that name or by one of theirs? */
bool wf_rules_allow(const struct wf_rules *rules, const char *kind);

/* The first that says whether @name may serve @client, which is so near to it; NULL: none does. */
const struct wf_rule *wf_rules_access(const struct wf_rules *rules, const char *kind,
				      const char *name, const struct wf_place *client,
				      enum wf_near class);

/* The first that says in which order publishers serve @client; NULL: none does. */
const struct wf_rule *wf_rules_order(const struct wf_rules *rules, const struct wf_place *client);

#endif
