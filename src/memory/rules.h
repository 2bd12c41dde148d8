/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Rules: what the owner of a machine says about its memory, in order, as text.
 *
 *   allow WHO [for CLIENT] [where class OP CLASS]     deny: the same form
 *   prefer WHO [for CLIENT]
 *   limit WHO BYTES
 *   reserve WHO BYTES|PERCENT%
 *   publish software:ADDRESS BYTES
 *
 * Rules end at a new line or a semicolon, and text behind a # is for people.
 * WHO is a comma list of kinds ("host"), publishers ("p2pmem:0000:3b:00.0") or
 * "any"; OP one of < <= = >= >; CLASS one of wf_topology_classes.
 *
 * The first allow or deny that matches decides, as does the first prefer;
 * every limit and every reserve holds.
 *
 * No I/O but for the file.  Threads: any.
 */
#ifndef WF_RULES_H
#define WF_RULES_H

#include "util/error.h"
#include "util/topology.h"

#define WF_RULE_TEXT_BYTES 160       /* bytes of a rule */
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
	char client[WF_RULE_NAME_BYTES]; /* "": all clients */
	enum wf_topology_near class;     /* class in the condition, which holds */
	bool below, at, above;           /* nearer than @class, at @class, and further away */
	uint64_t bytes;
	unsigned percent;                /* percent of the publisher's memory; 0: @bytes says it */
	char text[WF_RULE_TEXT_BYTES];   /* the rule as it was written */
};

struct wf_rules {
	struct wf_rule *all;
	size_t count;
};

/*
 * Read the rules in @text, or in the file that it names, if @text begins with a slash.
 * -EINVAL: the sentence gives line and word.  -ENOMEM, -EFBIG, or why there is no such file.
 */
int wf_rules_open(struct wf_rules *rules, const char *text, struct wf_error *e);

/* Free @rules.  Accepts a zeroed struct. */
void wf_rules_close(struct wf_rules *rules);

/* Read a comma list of publishers.  -EINVAL with a sentence. */
int wf_rules_who(const char *text, struct wf_rule_who *who, struct wf_error *e);

/* Return the place in @who of the publisher @name, of kind @kind; -1: it is not in it. */
int wf_rules_place(const struct wf_rule_who *who, const char *kind, const char *name);

/* Return whether a rule allows publishers of @kind, by that name or by one of theirs. */
bool wf_rules_allow(const struct wf_rules *rules, const char *kind);

/*
 * Return the first rule that says whether @name may serve @client, at the distance @class;
 * NULL: none does.
 */
const struct wf_rule *wf_rules_access(const struct wf_rules *rules, const char *kind,
				      const char *name, const struct wf_topology_place *client,
				      enum wf_topology_near class);

/* Return the first rule that says in which order publishers serve @client; NULL: none does. */
const struct wf_rule *wf_rules_order(const struct wf_rules *rules,
				     const struct wf_topology_place *client);

#endif
