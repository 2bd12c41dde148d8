/* SPDX-License-Identifier: BSD-2-Clause */
#include "util/options.h"
#include "util/environment.h"
#include "util/fork.h"

#include <errno.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

#define PREFIX "WEFT_" /* begins the name of every setting */
#define STREAM "stderr:"

/* A setting and its place in struct wf_options: text if unit is "text", else uint64_t. */
struct row {
	struct weft_option option;
	size_t offset;
	const char *words; /* comma list of the words allowed; NULL: any text */
	bool several;	   /* a comma list of those words is allowed, not one alone */
	bool file;	   /* a path is allowed, too */
	bool stream;	   /* STREAM may stand before the value */
};

#define FIELD(name) .offset = offsetof(struct wf_options, name)

/*
 * Limits keep a slip of the pen from looking like a hang or a leak; they are not tuned.
 * TF_RDMA_CHUNK_SIZE was 4 MB, TF_RDMA_ACC_SIZE 8 KB and TF_RDMA_BUF_SIZE 1 GB where those
 * names came from, so the limits admit these values.
 */
static const struct row rows[] = {
	{ { .name = "WEFT_PROVIDER", .alias = "", .unit = "text",
	    .preset = "", .least = "", .most = "",
	    .when = "another fabric is wanted than weft chooses, or one it never chooses itself" },
	  FIELD(provider) },
	{ { .name = "WEFT_DEVICE", .alias = "TF_RDMA_DEV_NAME", .unit = "text",
	    .preset = "", .least = "", .most = "",
	    .when = "the host has several NICs and traffic should stay on one" },
	  FIELD(device) },
	{ { .name = "WEFT_RDMA", .alias = "TF_RDMA_ENABLED", .unit = "yes/no",
	    .preset = "yes", .least = "", .most = "",
	    .when = "no, to keep off RDMA hardware while looking for a fault in it" },
	  FIELD(rdma) },
	{ { .name = "WEFT_SHM", .alias = "", .unit = "yes/no",
	    .preset = "yes", .least = "", .most = "",
	    .when = "no, to make processes of one host use the network, as for a measurement" },
	  FIELD(shm) },
	{ { .name = "WEFT_LISTEN", .alias = "", .unit = "text",
	    .preset = "", .least = "", .most = "",
	    .when = "other hosts must reach this node: host:port of the interface to listen on" },
	  FIELD(listen) },
	{ { .name = "WEFT_ADVERTISE", .alias = "", .unit = "text",
	    .preset = "", .least = "", .most = "",
	    .when = "others reach this node by another address than it listens on, as through NAT" },
	  FIELD(advertise) },
	{ { .name = "WEFT_PORTS", .alias = "", .unit = "text",
	    .preset = "", .least = "", .most = "",
	    .when = "a firewall lets only some ports through: first-last, one port for each rail of each worker" },
	  FIELD(ports) },
	{ { .name = "WEFT_SECURITY", .alias = "", .unit = "text",
	    .preset = "", .least = "", .most = "",
	    .when = "keyed, where tensors may cross the network in clear; open, to go without keys on a network where every host is trusted" },
	  FIELD(security), .words = "open,keyed,sealed" },
	{ { .name = "WEFT_KEY_FILE", .alias = "", .unit = "text",
	    .preset = "", .least = "", .most = "",
	    .when = "the nodes of a cluster share a secret key: the file, as weft key new makes one" },
	  FIELD(key_file) },
	{ { .name = "WEFT_CERT", .alias = "", .unit = "text",
	    .preset = "", .least = "", .most = "",
	    .when = "nodes prove themselves by certificates: the file of this node's, in PEM" },
	  FIELD(cert) },
	{ { .name = "WEFT_KEY", .alias = "", .unit = "text",
	    .preset = "", .least = "", .most = "",
	    .when = "together with WEFT_CERT: the file of the certificate's private key" },
	  FIELD(key) },
	{ { .name = "WEFT_CA", .alias = "", .unit = "text",
	    .preset = "", .least = "", .most = "",
	    .when = "together with WEFT_CERT: the file of the authorities of peers, and their revocation lists" },
	  FIELD(ca) },
	{ { .name = "WEFT_PEER_IDS", .alias = "", .unit = "text",
	    .preset = "", .least = "", .most = "",
	    .when = "peers' certificates name no hosts, as SPIFFE's: the identities that are let in, with * for any text" },
	  FIELD(peer_ids) },
	{ { .name = "WEFT_ALLOW", .alias = "", .unit = "text",
	    .preset = "", .least = "", .most = "",
	    .when = "not every peer may do everything: the file that says what each identity may" },
	  FIELD(allow) },
	{ { .name = "WEFT_KEY_GRACE", .alias = "", .unit = "ns",
	    .preset = "60s", .least = "0", .most = "86400s",
	    .when = "a new key file takes longer to reach every node: until then the key before does as well" },
	  FIELD(key_grace_ns) },
	{ { .name = "WEFT_CUDA", .alias = "", .unit = "text",
	    .preset = "", .least = "", .most = "",
	    .when = "no, to keep off GPUs; or the driver's file, where the system does not find it by its name" },
	  FIELD(cuda), .words = "yes,no", .file = true },
	{ { .name = "WEFT_POOL_BYTES", .alias = "TF_RDMA_BUF_SIZE", .unit = "bytes",
	    .preset = "1G", .least = "1M", .most = "1024G",
	    .when = "raise it when operations wait for memory, lower it where little may be pinned" },
	  FIELD(pool_bytes) },
	{ { .name = "WEFT_POOL_NUMA", .alias = "", .unit = "text",
	    .preset = "", .least = "", .most = "",
	    .when = "the pool should lie on the NUMA node of a NIC or GPU, wherever the program's threads run" },
	  FIELD(pool_numa) },
	{ { .name = "WEFT_POOL_HUGE", .alias = "", .unit = "yes/no",
	    .preset = "no", .least = "", .most = "",
	    .when = "yes, where huge pages of 2 MiB were set aside for the pool, as for cards with few translations" },
	  FIELD(pool_huge) },
	{ { .name = "WEFT_CACHED_BYTES", .alias = "", .unit = "bytes",
	    .preset = "256M", .least = "0", .most = "1024G",
	    .when = "more of the program's memory comes again and again; lower it where little may be pinned" },
	  FIELD(cached_bytes) },
	{ { .name = "WEFT_CACHED_KEYS", .alias = "", .unit = "yes/no",
	    .preset = "no", .least = "", .most = "",
	    .when = "yes, where the same memory is sent again and a peer may go on reading what it was sent" },
	  FIELD(cached_keys) },
	{ { .name = "WEFT_CHUNK_BYTES", .alias = "TF_RDMA_CHUNK_SIZE", .unit = "bytes",
	    .preset = "0", .least = "64K", .most = "64M",
	    .when = "weft perf --tune shows a better step for large bodies than the provider's own (0)" },
	  FIELD(chunk_bytes) },
	{ { .name = "WEFT_DEPTH", .alias = "", .unit = "count",
	    .preset = "0", .least = "1", .most = "16", /* reads that a pull has room for */
	    .when = "to have always as many; 0 begins with the provider's own" },
	  FIELD(depth) },
	{ { .name = "WEFT_HELPER", .alias = "", .unit = "yes/no",
	    .preset = "yes", .least = "", .most = "",
	    .when = "no, where a second thread that reads and sums up large bodies takes a core from other work" },
	  FIELD(helper) },
	{ { .name = "WEFT_PACK_BYTES", .alias = "TF_RDMA_ACC_SIZE", .unit = "bytes",
	    .preset = "0", .least = "1", .most = "1M",
	    .when = "lower it when small records should not wait behind longer ones; 0 packs what fits" },
	  FIELD(pack_bytes) },
	{ { .name = "WEFT_FRAME_BYTES", .alias = "", .unit = "bytes",
	    .preset = "0", .least = "1K", .most = "1M",
	    .when = "lower it where urgent messages should wait for less of a longer one on a slow network; 0 is the provider's own" },
	  FIELD(frame_bytes) },
	{ { .name = "WEFT_EAGER_BYTES", .alias = "", .unit = "bytes",
	    .preset = "0", .least = "1", .most = "1M",
	    .when = "weft perf --tune shows a better end of the eager way than the provider's own (0)" },
	  FIELD(eager_bytes) },
	{ { .name = "WEFT_UNEXPECTED_BYTES", .alias = "", .unit = "bytes",
	    .preset = "4M", .least = "64K", .most = "1G",
	    .when = "raise it when peers send many small tensors long before they are received" },
	  FIELD(unexpected_bytes) },
	{ { .name = "WEFT_PEER_BYTES", .alias = "", .unit = "bytes",
	    .preset = "64M", .least = "1M", .most = "1024G",
	    .when = "a peer has very many tensors or calls under way, and waits or is refused for it" },
	  FIELD(peer_bytes) },
	{ { .name = "WEFT_STRANGERS_BYTES", .alias = "", .unit = "bytes",
	    .preset = "512M", .least = "1M", .most = "1024G",
	    .when = "hundreds of clients keep much here at once; lower it where memory is scarce" },
	  FIELD(strangers_bytes) },
	{ { .name = "WEFT_SLOTS", .alias = "", .unit = "count",
	    .preset = "4096", .least = "16", .most = "65536",
	    .when = "raise it for thousands of peers, lower it where hundreds may take less memory" },
	  FIELD(slots) },
	{ { .name = "WEFT_WINDOW", .alias = "", .unit = "count",
	    .preset = "64", .least = "2", .most = "1024",
	    .when = "raise it when small messages to one peer stall on a long path" },
	  FIELD(window) },
	{ { .name = "WEFT_WORKERS", .alias = "", .unit = "count",
	    .preset = "1", .least = "1", .most = "16", /* WF_WORKERS_MAX */
	    .when = "one thread of the library's is busy all the time, and there are peers to share and cores to spare" },
	  FIELD(workers) },
	{ { .name = "WEFT_CHECKSUM", .alias = "", .unit = "yes/no",
	    .preset = "no", .least = "", .most = "",
	    .when = "yes, to find bytes that memory, cards or drivers spoil; it costs bandwidth" },
	  FIELD(checksum) },
	{ { .name = "WEFT_STRICT", .alias = "", .unit = "text",
	    .preset = "", .least = "", .most = "",
	    .when = "no-staging, no-fallback or both, to fail where bodies would go a slower way" },
	  FIELD(strict), .words = "no-staging,no-fallback", .several = true },
	{ { .name = "WEFT_COMPRESSION", .alias = "", .unit = "text",
	    .preset = "", .least = "", .most = "",
	    .when = "zstd, where messages of calls are long, shrink well, and the network is what is slow" },
	  FIELD(compression), .words = "zstd" },
	{ { .name = "WEFT_TIMEOUT", .alias = "", .unit = "ns",
	    .preset = "60s", .least = "1ms", .most = "86400s",
	    .when = "operations that name no deadline should end sooner, or may take longer" },
	  FIELD(timeout_ns) },
	{ { .name = "WEFT_CONNECT_TIMEOUT", .alias = "", .unit = "ns",
	    .preset = "30s", .least = "1ms", .most = "86400s",
	    .when = "processes of a job start further apart than this" },
	  FIELD(connect_ns) },
	{ { .name = "WEFT_HEARTBEAT", .alias = "", .unit = "ns",
	    .preset = "1s", .least = "10ms", .most = "60s",
	    .when = "together with WEFT_LOST; shorter costs a little traffic for each peer" },
	  FIELD(heartbeat_ns) },
	{ { .name = "WEFT_LOST", .alias = "", .unit = "ns",
	    .preset = "3s", .least = "20ms", .most = "600s",
	    .when = "raise it when busy peers are declared lost; at least twice WEFT_HEARTBEAT" },
	  FIELD(lost_ns) },
	{ { .name = "WEFT_STALL", .alias = "", .unit = "ns",
	    .preset = "10s", .least = "0", .most = "86400s",
	    .when = "operations may well wait longer before it is worth a line in the log; 0: none" },
	  FIELD(stall_ns) },
	{ { .name = "WEFT_STEP_TIMEOUT", .alias = "", .unit = "ns",
	    .preset = "600s", .least = "0", .most = "86400s",
	    .when = "tensors may wait longer for their receive, or should be dropped sooner when none comes; 0 keeps them" },
	  FIELD(step_ns) },
	{ { .name = "WEFT_ABORT_ANY", .alias = "", .unit = "yes/no",
	    .preset = "no", .least = "", .most = "",
	    .when = "yes, where a node that exchanges no tensors may abort steps, and every peer is trusted to" },
	  FIELD(abort_any) },
	{ { .name = "WEFT_SPIN", .alias = "", .unit = "ns",
	    .preset = "50us", .least = "0", .most = "1s",
	    .when = "raise it for latency where cores are idle, 0 where processes share a core" },
	  FIELD(spin_ns) },
	{ { .name = "WEFT_RULES", .alias = "", .unit = "text",
	    .preset = "", .least = "", .most = "",
	    .when = "devices publish memory, or NUMA nodes have little: who may give how much of it to whom" },
	  FIELD(rules) },
	{ { .name = "WEFT_SYSFS", .alias = "", .unit = "text",
	    .preset = "", .least = "", .most = "",
	    .when = "a machine is to be looked at as a copy of its /sys describes it" },
	  FIELD(sysfs) },
	{ { .name = "WEFT_BOOTSTRAP", .alias = "", .unit = "text",
	    .preset = "", .least = "", .most = "",
	    .when = "weft_join() should believe another launcher than it finds, or rank 0 is at host:port or named in file:PATH" },
	  FIELD(bootstrap) },
	{ { .name = "WEFT_RANK", .alias = "", .unit = "count",
	    .preset = "0", .least = "0", .most = "1048575",
	    .when = "no launcher numbers the processes of a job: the number of each, from 0" },
	  FIELD(job_rank) },
	{ { .name = "WEFT_SIZE", .alias = "", .unit = "count",
	    .preset = "0", .least = "1", .most = "1048576", /* WF_JOB_SIZE_MAX */
	    .when = "no launcher says how many processes the job has, as Kubernetes does not" },
	  FIELD(job_size) },
	{ { .name = "WEFT_JOIN_TIMEOUT", .alias = "", .unit = "ns",
	    .preset = "300s", .least = "1ms", .most = "86400s",
	    .when = "processes of a job start further apart, or those that lack one should hear of it sooner" },
	  FIELD(join_ns) },
	{ { .name = "WEFT_LOG", .alias = "", .unit = "count",
	    .preset = "1", .least = "0", .most = "3",
	    .when = "looking for a fault: 1 warnings, 2 notes, 3 steps of connecting; stderr:2, say, prints them where the program does not" },
	  FIELD(log_level), .stream = true },
};

_Static_assert(WF_COUNT(rows) <= 64, "each row has a bit of by_alias");

static const struct {
	const char *unit, *suffix;
	uint64_t factor;
} suffixes[] = {
	{ "count", "", 1 },
	{ "bytes", "", 1 },
	{ "bytes", "K", KIB },
	{ "bytes", "M", MIB },
	{ "bytes", "G", GIB },
	{ "ns", "ns", 1 },
	{ "ns", "us", WF_NS_PER_US },
	{ "ns", "ms", WF_NS_PER_MS },
	{ "ns", "s", WF_NS_PER_S },
};

/* The form of a unit's values, for error sentences. */
static const struct {
	const char *unit, *form;
} forms[] = {
	{ "count", "a whole number" },
	{ "bytes", "a number of bytes, or one with K, M or G," },
	{ "ns", "a number with ns, us, ms or s" },
};

/* Words for yes and no; TensorFlow's users write true and false. */
static const struct {
	const char *text;
	uint64_t value;
} answers[] = {
	{ "yes", 1 }, { "true", 1 }, { "on", 1 }, { "1", 1 },
	{ "no", 0 }, { "false", 0 }, { "off", 0 }, { "0", 0 },
};

static int parse_answer(const char *text, uint64_t *value)
{
	for (size_t i = 0; i < WF_COUNT(answers); i++) {
		if (!strcasecmp(text, answers[i].text)) {
			*value = answers[i].value;
			return 0;
		}
	}
	return -EINVAL;
}

/* Parse by hand, because strtoull() accepts signs and spaces. */
static int parse_number(const char *unit, const char *text, uint64_t *value)
{
	const char *at = text;
	uint64_t n = 0;
	bool fits = true;

	for (; *at >= '0' && *at <= '9'; at++) {
		if (__builtin_mul_overflow(n, (uint64_t)10, &n) ||
		    __builtin_add_overflow(n, (uint64_t)(*at - '0'), &n))
			fits = false;
	}
	if (at == text)
		return -EINVAL;

	for (size_t i = 0; i < WF_COUNT(suffixes); i++) {
		if (strcmp(unit, suffixes[i].unit) || strcasecmp(at, suffixes[i].suffix))
			continue;
		if (!fits || __builtin_mul_overflow(n, suffixes[i].factor, &n))
			return -ERANGE;
		*value = n;
		return 0;
	}
	/* A time without a unit is refused, for 60 could mean seconds; 0 is clear. */
	if (!strcmp(unit, "ns") && !strcmp(text, "0")) {
		*value = 0;
		return 0;
	}
	return -EINVAL;
}

int wf_options_parse(const char *unit, const char *text, uint64_t *value)
{
	if (!strcmp(unit, "yes/no"))
		return parse_answer(text, value);
	return parse_number(unit, text, value);
}

bool wf_options_has_credentials(const struct wf_options *o)
{
	return o->key_file[0] || o->cert[0] || o->key[0] || o->ca[0];
}

const char *wf_options_security(const struct wf_options *o)
{
	if (o->security[0])
		return o->security;
	return wf_options_has_credentials(o) ? "sealed" : "open";
}

static const char *form_of(const char *unit)
{
	for (size_t i = 0; i < WF_COUNT(forms); i++)
		if (!strcmp(unit, forms[i].unit))
			return forms[i].form;
	return "a value";
}

/* Is @value the default or within the limits, which are in the row's own unit? */
static bool is_allowed(const struct weft_option *option, uint64_t value)
{
	uint64_t preset = 0, least = 0, most = 0;

	(void)wf_options_parse(option->unit, option->preset, &preset);
	(void)wf_options_parse(option->unit, option->least, &least);
	(void)wf_options_parse(option->unit, option->most, &most);
	return value == preset || (value >= least && value <= most);
}

static int set_answer(uint64_t *field, const char *name, const char *text, struct wf_error *e)
{
	if (parse_answer(text, field))
		return wf_error_set(e, -EINVAL, "%s=%.100s: expected yes or no", name, text);
	return 0;
}

/* Set @field from @number, which is all of @text, or what follows STREAM there. */
static int set_number(const struct row *row, uint64_t *field, const char *name, const char *text,
		      const char *number, struct wf_error *e)
{
	const struct weft_option *option = &row->option;
	uint64_t value;

	if (wf_options_parse(option->unit, number, &value) || !is_allowed(option, value))
		return wf_error_set(e, -EINVAL,
				    "%s=%.100s: expected %s from %s to %s (default %s)%s", name, text,
				    form_of(option->unit), option->least, option->most,
				    option->preset, row->stream ? ", or " STREAM " before it" : "");
	*field = value;
	return 0;
}

/* Is the word of @bytes bytes at @word in the comma list @list? */
static bool names(const char *list, const char *word, size_t bytes,
		  int (*compare)(const char *, const char *, size_t))
{
	for (;;) {
		size_t item = strcspn(list, ",");

		if (item == bytes && !compare(list, word, bytes))
			return true;
		if (!list[item])
			return false;
		list += item + 1;
	}
}

bool wf_options_lists(const char *list, const char *word)
{
	return names(list, word, strlen(word), strncasecmp);
}

bool wf_options_lists_exactly(const char *list, const char *word)
{
	return names(list, word, strlen(word), strncmp);
}

/* Is @text one word of @row's, or a list of them where several may be said? */
static bool is_known(const struct row *row, const char *text)
{
	for (;;) {
		size_t item = row->several ? strcspn(text, ",") : strlen(text);

		if (!names(row->words, text, item, strncmp))
			return false;
		if (!text[item])
			return true;
		text += item + 1;
	}
}

static int set_text(const struct row *row, char *field, const char *name, const char *text,
		    struct wf_error *e)
{
	size_t length = strlen(text);

	if (length >= WF_OPTION_TEXT_BYTES)
		return wf_error_set(e, -EINVAL, "%s=%.40s... is %zu bytes long: expected at most %d",
				    name, text, length, WF_OPTION_TEXT_BYTES - 1);
	/* An unknown word is refused, so that it can't pass for a weaker setting. */
	if (row->words && length && !(row->file && strchr(text, '/')) &&
	    !is_known(row, text))
		return wf_error_set(e, -EINVAL, "%s=%.100s: expected %s%s or nothing", name, text,
				    row->words, row->file ? ", a path" : "");
	memcpy(field, text, length + 1);
	return 0;
}

/* The value of variable @name, or NULL; an empty text counts as not set. */
static const char *look_up(const struct weft_option *option, const char *name)
{
	const char *text = *name ? wf_environment_get(name) : NULL;

	return text && !*text && !strcmp(option->unit, "text") ? NULL : text;
}

/* The last value that @settings, maybe NULL, have for @option, or NULL; an empty text is its default. */
static const char *said(const char *const *settings, const struct weft_option *option)
{
	size_t length = strlen(option->name);
	const char *text = NULL;

	for (; settings && *settings; settings++)
		if (!strncmp(*settings, option->name, length) && (*settings)[length] == '=')
			text = *settings + length + 1;
	return text && !*text && !strcmp(option->unit, "text") ? option->preset : text;
}

/* Set the field of @row in @o from @settings, else from the environment, else from its default. */
static int load_row(const struct row *row, const char *const *settings, struct wf_options *o,
		    struct wf_error *e)
{
	const struct weft_option *option = &row->option;
	void *field = (char *)o + row->offset;
	const char *name = option->name;
	const char *text = said(settings, option), *value;

	if (text)
		o->by_program |= UINT64_C(1) << (row - rows);
	else
		text = look_up(option, name);
	if (!text) {
		text = look_up(option, option->alias);
		name = text ? option->alias : name;
		if (text)
			o->by_alias |= UINT64_C(1) << (row - rows);
	}
	if (!text)
		text = option->preset;
	value = text;
	if (row->stream && !strncmp(text, STREAM, strlen(STREAM))) {
		o->log_stderr = 1;
		value += strlen(STREAM);
	}

	if (!strcmp(option->unit, "text"))
		return set_text(row, field, name, text, e);
	if (!strcmp(option->unit, "yes/no"))
		return set_answer(field, name, text, e);
	return set_number(row, field, name, text, value, e);
}

static const struct row *find(const char *name, size_t length)
{
	for (size_t i = 0; i < WF_COUNT(rows); i++)
		if (strlen(rows[i].option.name) == length &&
		    !memcmp(rows[i].option.name, name, length))
			return &rows[i];
	return NULL;
}

const char *wf_options_name(const struct wf_options *o, const char *name)
{
	const struct row *row = find(name, strlen(name));

	return row && o->by_alias >> (row - rows) & 1 ? row->option.alias : name;
}

void wf_options_overrule(struct wf_options *o, const char *name)
{
	const struct row *row = find(name, strlen(name));

	if (!row)
		return;
	o->by_alias &= ~(UINT64_C(1) << (row - rows));
	o->by_program |= UINT64_C(1) << (row - rows);
}

const char *wf_options_origin(const struct wf_options *o, const char *name)
{
	const struct row *row = find(name, strlen(name));

	return row && o->by_program >> (row - rows) & 1 ? " (set by the program)" : "";
}

size_t wf_options_unknown(char *text, size_t bytes)
{
	size_t count = 0, used = 0;

	text[0] = '\0';
	wf_fork_hold();
	for (char **at = environ; at && *at && wf_environment_trusted(); at++) {
		size_t length = strcspn(*at, "=");

		if (strncmp(*at, PREFIX, strlen(PREFIX)) || find(*at, length))
			continue;
		count++;
		if (used < bytes)
			used += (size_t)snprintf(text + used, bytes - used, "%s%.*s",
						 used ? ", " : "", (int)length, *at);
	}
	wf_fork_let();
	return count;
}

static int check_settings(const char *const *settings, struct wf_error *e)
{
	for (; settings && *settings; settings++) {
		size_t length = strcspn(*settings, "=");

		if (!(*settings)[length] || !find(*settings, length))
			return wf_error_set(e, -EINVAL, "settings have \"%.100s\": expected a name of "
					    "weft_options(7), = and a value", *settings);
	}
	return 0;
}

int wf_options_load(struct wf_options *o, const char *const *settings, struct wf_error *e)
{
	const char *device = "WEFT_DEVICE";
	struct wf_options fresh = { 0 };
	int err = check_settings(settings, e);

	for (size_t i = 0; i < WF_COUNT(rows) && !err; i++)
		err = load_row(&rows[i], settings, &fresh, e);
	if (err)
		return err;
	/* Ignore the adapter that TensorFlow's users leave named where RDMA is off. */
	if (!fresh.rdma && wf_options_name(&fresh, device) != device)
		fresh.device[0] = '\0';
	/* A single late heartbeat must not end a link. */
	if (fresh.lost_ns / 2 < fresh.heartbeat_ns)
		return wf_error_set(e, -EINVAL,
				    "WEFT_LOST is %" PRIu64 " ms: expected at least twice "
				    "WEFT_HEARTBEAT, which is %" PRIu64 " ms",
				    fresh.lost_ns / WF_NS_PER_MS,
				    fresh.heartbeat_ns / WF_NS_PER_MS);
	*o = fresh;
	return 0;
}

static struct weft_option published[WF_COUNT(rows)];

/* Copy the public part of every row to an array of its own. */
static void publish(void)
{
	for (size_t i = 0; i < WF_COUNT(rows); i++)
		published[i] = rows[i].option;
}

const struct weft_option *wf_options_rows(size_t *count)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;

	(void)pthread_once(&once, publish);
	*count = WF_COUNT(rows);
	return published;
}
