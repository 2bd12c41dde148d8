/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The settings of a node: one table of rows gives names, aliases, defaults and limits, and is
 * what `weft info --options` prints.
 *
 * The environment is read once, when a node opens; weft's own name wins over an alias, and what
 * the program says by that name over both.  An empty text counts as not set, an empty number is an
 * error.  A program with more rights than its caller gets the defaults: see environment.h.
 *
 * Threads: any.
 */
#ifndef WF_OPTIONS_H
#define WF_OPTIONS_H

#include <weft/info.h>
#include "util/error.h"

#define WF_OPTION_TEXT_BYTES 256

struct wf_options {
	char provider[WF_OPTION_TEXT_BYTES];  /* WEFT_PROVIDER; "": any */
	char device[WF_OPTION_TEXT_BYTES];    /* WEFT_DEVICE, alias TF_RDMA_DEV_NAME */
	char listen[WF_OPTION_TEXT_BYTES];    /* WEFT_LISTEN: host:port */
	char advertise[WF_OPTION_TEXT_BYTES]; /* WEFT_ADVERTISE */
	char ports[WF_OPTION_TEXT_BYTES];     /* WEFT_PORTS: first-last, for rails */
	char security[WF_OPTION_TEXT_BYTES];  /* WEFT_SECURITY: "", open, keyed or sealed */
	char key_file[WF_OPTION_TEXT_BYTES];  /* WEFT_KEY_FILE; this and the next: "": none */
	char cert[WF_OPTION_TEXT_BYTES];      /* WEFT_CERT */
	char key[WF_OPTION_TEXT_BYTES];       /* WEFT_KEY */
	char ca[WF_OPTION_TEXT_BYTES];        /* WEFT_CA */
	char peer_ids[WF_OPTION_TEXT_BYTES];  /* WEFT_PEER_IDS: comma list of patterns */
	char allow[WF_OPTION_TEXT_BYTES];     /* WEFT_ALLOW: file of peers' rights; "": all have all */
	uint64_t key_grace_ns;    /* WEFT_KEY_GRACE: how long the key before still does; default 60 s */
	uint64_t rdma;            /* WEFT_RDMA, alias TF_RDMA_ENABLED: yes/no, default yes */
	uint64_t pool_bytes;      /* WEFT_POOL_BYTES, alias TF_RDMA_BUF_SIZE */
	char pool_numa[WF_OPTION_TEXT_BYTES]; /* WEFT_POOL_NUMA: number of a NUMA node; "": any */
	uint64_t pool_huge;       /* WEFT_POOL_HUGE: yes/no: the pool in huge pages; default no */
	uint64_t cached_bytes;    /* WEFT_CACHED_BYTES: other memory that stays registered where that
				   * is dear; default 256 MiB */
	uint64_t cached_keys;     /* WEFT_CACHED_KEYS: yes/no: for peers to read, too; default no */
	uint64_t chunk_bytes;     /* WEFT_CHUNK_BYTES, alias TF_RDMA_CHUNK_SIZE; 0: provider's */
	uint64_t depth;           /* WEFT_DEPTH: chunks in flight; 0: the provider's */
	uint64_t helper;          /* WEFT_HELPER: yes/no: a helper for large bodies; default yes */
	uint64_t pack_bytes;      /* WEFT_PACK_BYTES, alias TF_RDMA_ACC_SIZE: the longest record
				   * that is packed with others; 0: as fits */
	uint64_t frame_bytes;     /* WEFT_FRAME_BYTES; 0: the provider's */
	uint64_t eager_bytes;     /* WEFT_EAGER_BYTES; 0: the provider's */
	uint64_t timeout_ns;      /* WEFT_TIMEOUT, default 60 s */
	uint64_t connect_ns;      /* WEFT_CONNECT_TIMEOUT: how long to dial a peer that is not
				   * there yet; default 30 s */
	uint64_t heartbeat_ns;    /* WEFT_HEARTBEAT, default 1 s */
	uint64_t lost_ns;         /* WEFT_LOST, default 3 s */
	uint64_t stall_ns;        /* WEFT_STALL, default 10 s; 0: no line in the log */
	uint64_t step_ns;         /* WEFT_STEP_TIMEOUT: how long unreceived tensors are kept;
				   * default 600 s, 0: for ever */
	uint64_t abort_any;       /* WEFT_ABORT_ANY: yes/no: a peer may abort steps in which it
				   * takes no part; default no */
	uint64_t spin_ns;         /* WEFT_SPIN, default 50 us */
	uint64_t slots;           /* WEFT_SLOTS: the most receive slots of a rail, default 4096 */
	uint64_t workers;         /* WEFT_WORKERS: threads of a threaded node, default 1 */
	uint64_t window;          /* WEFT_WINDOW: frames of a link under way, default 64 */
	uint64_t peer_bytes;      /* WEFT_PEER_BYTES: kept on behalf of a peer, beside pool
				   * memory; default 64 MiB */
	uint64_t strangers_bytes; /* WEFT_STRANGERS_BYTES: kept on behalf of all peers that
				   * dialled us, default 512 MiB */
	uint64_t unexpected_bytes; /* WEFT_UNEXPECTED_BYTES: unmatched eager bytes kept per link,
				   * default 4 MiB */
	uint64_t shm;             /* WEFT_SHM: yes/no: the shm rail for local peers; default yes */
	char strict[WF_OPTION_TEXT_BYTES];    /* WEFT_STRICT: list of no-staging, no-fallback */
	char cuda[WF_OPTION_TEXT_BYTES];      /* WEFT_CUDA: "", yes, no, or the driver's file */
	uint64_t checksum;        /* WEFT_CHECKSUM: yes/no: of every body; default no */
	char compression[WF_OPTION_TEXT_BYTES]; /* WEFT_COMPRESSION: "" or zstd, for calls */
	char rules[WF_OPTION_TEXT_BYTES];     /* WEFT_RULES: rules for memory, or their file */
	char sysfs[WF_OPTION_TEXT_BYTES];     /* WEFT_SYSFS: sysfs to read; "": /sys */
	char bootstrap[WF_OPTION_TEXT_BYTES]; /* WEFT_BOOTSTRAP: who has started the job's processes,
				   * or where rank 0 is; "": see group/job.h */
	uint64_t job_rank;        /* WEFT_RANK */
	uint64_t job_size;        /* WEFT_SIZE; 0: not set */
	uint64_t join_ns;         /* WEFT_JOIN_TIMEOUT, default 300 s */
	uint64_t log_level;       /* WEFT_LOG: 0..3, default 1 */
	uint64_t log_stderr;      /* WEFT_LOG began with "stderr:": lines go there if the program
				   * takes none */
	uint64_t by_alias;        /* bits of the rows whose values came by their aliases */
	uint64_t by_program;      /* bits of the rows whose values the program has set */
};

/*
 * Set @o from @settings ("NAME=value", ended by NULL; NULL: none), else from the environment, else
 * from the defaults.  -EINVAL: a setting has no such name, a value can't be read or is out of its
 * limits, or WEFT_LOST is too short for WEFT_HEARTBEAT; the sentence names variable, value and
 * limits.
 */
int wf_options_load(struct wf_options *o, const char *const *settings, struct wf_error *e);

/* Return whether a key file or a certificate is named, or a part of what goes with one. */
bool wf_options_has_credentials(const struct wf_options *o);

/* Return the mode of security, in one word: as it was named, else as there are credentials. */
const char *wf_options_security(const struct wf_options *o);

/*
 * Parse a value of @unit ("bytes", "ns", "count", "yes/no").  Sizes take K, M, G (powers of
 * 1024) or nothing; times need ns, us, ms or s, unless they are 0.  -EINVAL: @text can't be
 * read.  -ERANGE: the value does not fit 64 bits.
 */
int wf_options_parse(const char *unit, const char *text, uint64_t *value);

/* Return the variable that set @name: itself, or its alias. */
const char *wf_options_name(const struct wf_options *o, const char *name);

/* Note that the program has set @name: the environment no longer counts. */
void wf_options_overrule(struct wf_options *o, const char *name);

/* Return words that follow the value of @name in a sentence: "" unless the program has set it. */
const char *wf_options_origin(const struct wf_options *o, const char *name);

/*
 * Write to @text, comma-separated, the variables of the environment that look like weft's and
 * are not; names that do not fit are left out.  Returns how many there are.
 */
size_t wf_options_unknown(char *text, size_t bytes);

/* Return whether the comma list @list names @word, ignoring case; or in the same case. */
bool wf_options_lists(const char *list, const char *word);
bool wf_options_lists_exactly(const char *list, const char *word);

/* Return the table, as public rows. */
const struct weft_option *wf_options_rows(size_t *count);

#endif
