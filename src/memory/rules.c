/* SPDX-License-Identifier: BSD-2-Clause */
#include "memory/rules.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

#include "util/options.h"

/* The verbs, and what each wants behind its publishers. */
static const struct {
	const char *word;
	bool conditions, bytes, percent;
} verbs[] = {
	[WF_RULE_ALLOW] = { "allow", .conditions = true },
	[WF_RULE_DENY] = { "deny", .conditions = true },
	[WF_RULE_PREFER] = { "prefer", .conditions = true },
	[WF_RULE_LIMIT] = { "limit", .bytes = true },
	[WF_RULE_RESERVE] = { "reserve", .bytes = true, .percent = true },
	[WF_RULE_PUBLISH] = { "publish", .bytes = true },
};

/* Kinds of publishers; those of CUDA are there only with a driver. */
static const char *const kinds[] = { "any", "host", "huge", "pinned", "cuda", "p2pmem", "software" };

/* A rule's text, word by word. */
struct parser {
	const char *at;
	unsigned line;
	char word[WF_RULE_NAME_BYTES]; /* "": the rule ends */
};

/* Read the next word: an operator, or what stands before the next blank or operator. */
static int next(struct parser *p, struct wf_error *e)
{
	static const char operators[] = "<=>";
	size_t count;

	p->at += strspn(p->at, " \t\r");
	count = strspn(p->at, operators);
	if (!count)
		count = strcspn(p->at, " \t\r<=>");
	if (count >= sizeof(p->word))
		return wf_error_set(e, -EINVAL, "rules, line %u: '%.20s...' is longer than %zu bytes",
				    p->line, p->at, sizeof(p->word) - 1);
	memcpy(p->word, p->at, count);
	p->word[count] = '\0';
	p->at += count;
	return 0;
}

static int expected(const struct parser *p, const char *what, struct wf_error *e)
{
	if (!p->word[0])
		return wf_error_set(e, -EINVAL, "rules, line %u: it ends where %s is expected",
				    p->line, what);
	return wf_error_set(e, -EINVAL, "rules, line %u: '%s' stands where %s is expected", p->line,
			    p->word, what);
}

/* Is @name a kind, perhaps with a place behind it?  Printable, so that a sentence can name it. */
static bool is_publisher(const char *name)
{
	size_t count = strcspn(name, ":");

	for (const char *at = name; *at; at++)
		if (*at < '!' || *at > '~')
			return false;
	for (size_t i = 0; i < WF_COUNT(kinds); i++)
		if (strlen(kinds[i]) == count && !memcmp(name, kinds[i], count))
			return !name[count] || (name[count + 1] && i > 0);
	return false;
}

int wf_rules_who(const char *text, struct wf_rule_who *who, struct wf_error *e)
{
	struct wf_rule_who fresh = { .count = 0 };

	for (;;) {
		size_t count = strcspn(text, ",");
		char *name = fresh.names[fresh.count];

		if (count >= WF_RULE_NAME_BYTES)
			return wf_error_set(e, -EINVAL, "'%.20s...' is no publisher", text);
		memcpy(name, text, count);
		name[count] = '\0';
		if (!is_publisher(name))
			return wf_error_set(e, -EINVAL, "'%s' is no publisher: any, host, huge, "
					    "pinned, cuda, p2pmem or software, or as host:0", name);
		fresh.count++;
		if (!text[count])
			break;
		if (fresh.count == WF_RULE_WHO_MAX)
			return wf_error_set(e, -EINVAL, "more than %d publishers", WF_RULE_WHO_MAX);
		text += count + 1;
	}
	*who = fresh;
	return 0;
}

/* Parse a comma list of publishers; a comma may have blanks around it. */
static int parse_who(struct parser *p, struct wf_rule *rule, struct wf_error *e)
{
	char list[WF_RULE_TEXT_BYTES] = "";
	int err;

	do {
		err = next(p, e);
		if (err)
			return err;
		if (!p->word[0])
			return expected(p, "a publisher", e);
		strcat(list, p->word); /* @list has room for all words of a rule */
		p->at += strspn(p->at, " \t\r");
	} while (list[strlen(list) - 1] == ',' || *p->at == ',');
	if (!wf_rules_who(list, &rule->who, e))
		return 0;
	return e ? wf_error_within(e, "rules, line %u", p->line) : -EINVAL;
}

/* Parse "class", an operator and a class. */
static int parse_class(struct parser *p, struct wf_rule *rule, struct wf_error *e)
{
	static const struct {
		const char *word;
		bool below, at, above;
	} operators[] = {
		{ "<", true, false, false }, { "<=", true, true, false }, { "=", false, true, false },
		{ ">=", false, true, true }, { ">", false, false, true },
	};
	size_t which = 0, class = 0;
	int err = next(p, e);

	if (!err && strcmp(p->word, "class"))
		return expected(p, "'class'", e);
	if (!err)
		err = next(p, e);
	if (err)
		return err;
	while (which < WF_COUNT(operators) && strcmp(p->word, operators[which].word))
		which++;
	if (which == WF_COUNT(operators))
		return expected(p, "one of < <= = >= >", e);
	err = next(p, e);
	if (err)
		return err;
	while (class <= WF_NEAR_SYS && strcasecmp(p->word, wf_topology_classes[class]))
		class++;
	if (class > WF_NEAR_SYS)
		return expected(p, "one of X PIX PXB PHB NODE SYS", e);
	rule->class = (enum wf_topology_near)class;
	rule->below = operators[which].below;
	rule->at = operators[which].at;
	rule->above = operators[which].above;
	return 0;
}

/* Parse "for" a client and "where" with a class: each at most once, in this order. */
static int parse_conditions(struct parser *p, struct wf_rule *rule, struct wf_error *e)
{
	int err = 0;

	if (!strcmp(p->word, "for")) {
		err = next(p, e);
		if (!err && !p->word[0])
			err = expected(p, "a client", e);
		if (!err) {
			strcpy(rule->client, p->word);
			err = next(p, e);
		}
	}
	if (!err && rule->verb != WF_RULE_PREFER && !strcmp(p->word, "where")) {
		err = parse_class(p, rule, e);
		if (!err)
			err = next(p, e);
	}
	if (err || !p->word[0])
		return err;
	return expected(p, rule->verb == WF_RULE_PREFER ? "'for' or its end"
							: "'for', 'where' or its end", e);
}

static int parse_bytes(struct parser *p, struct wf_rule *rule, struct wf_error *e)
{
	const char *what = verbs[rule->verb].percent ? "a number of bytes, as 64M, or 25%" :
						       "a number of bytes, as 64M,";
	size_t count = strlen(p->word);
	uint64_t percent;
	int err;

	if (verbs[rule->verb].percent && count && p->word[count - 1] == '%') {
		p->word[count - 1] = '\0';
		err = wf_options_parse("count", p->word, &percent);
		p->word[count - 1] = '%';
		if (err || percent < 1 || percent > 100)
			return expected(p, what, e);
		rule->percent = (unsigned)percent;
	} else if (wf_options_parse("bytes", p->word, &rule->bytes)) {
		return expected(p, what, e);
	}
	err = next(p, e);
	if (err || !p->word[0])
		return err;
	return expected(p, "its end", e);
}

/* A rule can publish only memory of our own, where none was. */
static bool is_publishable(const struct wf_rule_who *who)
{
	return who->count == 1 && !strncmp(who->names[0], "software:", 9);
}

/* Parse the rule in line @line.  -ENOENT: there is none. */
static int parse_rule(struct wf_rule *rule, unsigned line, struct wf_error *e)
{
	struct parser p = { .at = rule->text, .line = line };
	size_t verb = 0;
	int err = next(&p, e);

	if (err)
		return err;
	if (!p.word[0])
		return -ENOENT;
	while (verb < WF_COUNT(verbs) && strcmp(p.word, verbs[verb].word))
		verb++;
	if (verb == WF_COUNT(verbs))
		return expected(&p, "allow, deny, prefer, limit, reserve or publish", e);
	rule->verb = (enum wf_rule_verb)verb;
	rule->below = rule->at = rule->above = true;
	err = parse_who(&p, rule, e);
	if (err)
		return err;
	if (rule->verb == WF_RULE_PUBLISH && !is_publishable(&rule->who))
		return expected(&p, "software:ADDRESS", e);
	err = next(&p, e);
	if (err)
		return err;
	return verbs[verb].conditions ? parse_conditions(&p, rule, e) : parse_bytes(&p, rule, e);
}

/* Copy @text to the rule without the blanks at both ends. */
static int take_text(struct wf_rule *rule, const char *text, size_t count, unsigned line,
		     struct wf_error *e)
{
	while (count && strchr(" \t\r", *text)) {
		text++;
		count--;
	}
	while (count && strchr(" \t\r", text[count - 1]))
		count--;
	if (count >= sizeof(rule->text))
		return wf_error_set(e, -EINVAL, "rules, line %u: it is longer than %zu bytes", line,
				    sizeof(rule->text) - 1);
	memcpy(rule->text, text, count);
	rule->text[count] = '\0';
	return 0;
}

static int add(struct wf_rules *rules, const struct wf_rule *rule, struct wf_error *e)
{
	struct wf_rule *more = realloc(rules->all, (rules->count + 1) * sizeof(*more));

	if (!more)
		return wf_error_set(e, -ENOMEM, "no memory for rules");
	more[rules->count++] = *rule;
	rules->all = more;
	return 0;
}

static int parse(struct wf_rules *rules, const char *text, struct wf_error *e)
{
	unsigned line = 1;

	for (;;) {
		struct wf_rule rule = { .percent = 0 };
		size_t count = strcspn(text, ";\n#");
		int err = take_text(&rule, text, count, line, e);

		if (!err)
			err = parse_rule(&rule, line, e);
		if (!err)
			err = add(rules, &rule, e);
		if (err && err != -ENOENT)
			return err;
		text += count;
		if (*text == '#')
			text += strcspn(text, "\n");
		if (!*text)
			return 0;
		line += *text++ == '\n';
	}
}

/* Read the file @path; the caller frees *@text. */
static int read_file(const char *path, char **text, struct wf_error *e)
{
	char *fresh = malloc(WF_RULES_FILE_BYTES + 1);
	int fd = open(path, O_RDONLY | O_CLOEXEC), err = 0;
	size_t count = 0;
	ssize_t more = fd < 0 ? -1 : 1;

	while (fresh && more > 0 && count <= WF_RULES_FILE_BYTES) {
		more = read(fd, fresh + count, WF_RULES_FILE_BYTES + 1 - count);
		count += more > 0 ? (size_t)more : 0;
	}
	if (!fresh)
		err = wf_error_set(e, -ENOMEM, "no memory for rules");
	else if (more < 0)
		err = wf_error_set(e, -errno, "the rules in %.200s can't be read: %s", path,
				   wf_error_name(-errno));
	else if (count > WF_RULES_FILE_BYTES)
		err = wf_error_set(e, -EFBIG, "the rules in %.200s are longer than %zu bytes", path,
				   WF_RULES_FILE_BYTES);
	if (fd >= 0)
		(void)close(fd);
	if (err) {
		free(fresh);
		return err;
	}
	fresh[count] = '\0';
	*text = fresh;
	return 0;
}

int wf_rules_open(struct wf_rules *rules, const char *text, struct wf_error *e)
{
	struct wf_rules fresh = { 0 };
	char *file = NULL;
	int err = *text == '/' ? read_file(text, &file, e) : 0;

	if (err)
		return err;
	err = parse(&fresh, file ? file : text, e);
	free(file);
	if (err) {
		wf_rules_close(&fresh);
		return err;
	}
	*rules = fresh;
	return 0;
}

void wf_rules_close(struct wf_rules *rules)
{
	free(rules->all);
	*rules = (struct wf_rules){ 0 };
}

int wf_rules_place(const struct wf_rule_who *who, const char *kind, const char *name)
{
	for (unsigned i = 0; i < who->count; i++)
		if (!strcmp(who->names[i], "any") || !strcmp(who->names[i], kind) ||
		    !strcasecmp(who->names[i], name))
			return (int)i;
	return -1;
}

bool wf_rules_allow(const struct wf_rules *rules, const char *kind)
{
	size_t count = strlen(kind);

	for (size_t i = 0; i < rules->count; i++) {
		const struct wf_rule *r = &rules->all[i];

		for (unsigned n = 0; r->verb == WF_RULE_ALLOW && n < r->who.count; n++)
			if (strcspn(r->who.names[n], ":") == count &&
			    !strncmp(r->who.names[n], kind, count))
				return true;
	}
	return false;
}

static bool is_for(const struct wf_rule *rule, const struct wf_topology_place *client)
{
	return !rule->client[0] || wf_topology_is(client, rule->client);
}

const struct wf_rule *wf_rules_access(const struct wf_rules *rules, const char *kind,
				      const char *name, const struct wf_topology_place *client,
				      enum wf_topology_near class)
{
	for (size_t i = 0; i < rules->count; i++) {
		const struct wf_rule *r = &rules->all[i];

		if ((r->verb == WF_RULE_ALLOW || r->verb == WF_RULE_DENY) &&
		    wf_rules_place(&r->who, kind, name) >= 0 && is_for(r, client) &&
		    (class < r->class ? r->below : class > r->class ? r->above : r->at))
			return r;
	}
	return NULL;
}

const struct wf_rule *wf_rules_order(const struct wf_rules *rules,
				     const struct wf_topology_place *client)
{
	for (size_t i = 0; i < rules->count; i++)
		if (rules->all[i].verb == WF_RULE_PREFER && is_for(&rules->all[i], client))
			return &rules->all[i];
	return NULL;
}
