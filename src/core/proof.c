/* SPDX-License-Identifier: BSD-2-Clause */
#include "core/proof.h"

#include <errno.h>
#include <string.h>

#include "core/last.h"
#include "core/node.h"
#include "core/turn.h"
#include "link/reprove.h"
#include "util/clock.h"

#define TAKEN_NS (5 * WF_NS_PER_S) /* longest wait for workers, which callbacks may keep busy */

/* Places in wf_proof.files. */
enum { KEY_FILE, CERT, KEY, CA, ALLOW };
_Static_assert(ALLOW + 1 == WF_PROOF_FILES, "every file has a place");

/* Look at the files.  Which have changed since the last look?  Bits, by their places. */
static unsigned look(struct wf_proof *p)
{
	const struct wf_options *o = &p->options;
	const char *const paths[WF_PROOF_FILES] = {
		[KEY_FILE] = o->key_file, [CERT] = o->cert, [KEY] = o->key, [CA] = o->ca,
		[ALLOW] = o->allow,
	};
	unsigned changed = 0;

	for (unsigned i = 0; i < WF_PROOF_FILES; i++) {
		struct stat now, *before = &p->files[i];

		if (!*paths[i] || stat(paths[i], &now))
			now = (struct stat){ 0 };
		if (now.st_dev != before->st_dev || now.st_ino != before->st_ino ||
		    now.st_size != before->st_size ||
		    memcmp(&now.st_mtim, &before->st_mtim, sizeof(now.st_mtim)) ||
		    memcmp(&now.st_ctim, &before->st_ctim, sizeof(now.st_ctim)))
			changed |= 1u << i;
		*before = now;
	}
	return changed;
}

static int read_credentials(const struct wf_options *o, struct wf_credentials **credentials,
			    struct wf_error *e)
{
	const struct wf_credentials_files files = {
		.key_file = o->key_file, .cert = o->cert, .key = o->key, .ca = o->ca,
		.peers = o->peer_ids,
	};

	return wf_credentials_open(&files, credentials, e);
}

int wf_proof_open(struct wf_proof *p, const struct wf_options *o)
{
	const char *mode = wf_options_security(o);
	bool named = wf_options_has_credentials(o);
	struct wf_error e;
	int err;

	if (!strcmp(mode, "open") && named)
		return wf_last_set(-EINVAL, "security is open, and a key or certificate is "
				   "named: one of the two must go");
	if (!strcmp(mode, "open") && o->peer_ids[0])
		return wf_last_set(-EINVAL, "WEFT_PEER_IDS needs certificates: WEFT_CERT, WEFT_KEY "
				   "and WEFT_CA");
	if (!strcmp(mode, "open"))
		return o->allow[0] ? wf_last_set(-EINVAL, "WEFT_ALLOW needs a key or certificates: "
						 "nobody has an identity without") : 0;
	if (!named)
		return wf_last_set(-EINVAL, "WEFT_SECURITY=%s needs WEFT_KEY_FILE, or WEFT_CERT, "
				   "WEFT_KEY and WEFT_CA", mode);
	p->options = *o;
	(void)look(p);
	err = read_credentials(o, &p->credentials, &e);
	if (!err && o->allow[0])
		err = wf_acl_read(o->allow, &p->acl, &e);
	if (!err && pthread_mutex_init(&p->lock, NULL))
		err = wf_error_set(&e, -ENOMEM, "no lock for a node's credentials");
	if (!err) {
		p->named = true;
		return 0;
	}
	wf_credentials_put(p->credentials);
	wf_acl_put(p->acl);
	p->credentials = NULL;
	p->acl = NULL;
	return wf_last_copy(&e);
}

void wf_proof_close(struct wf_proof *p)
{
	if (!p->named)
		return;
	wf_credentials_put(p->credentials);
	wf_acl_put(p->acl);
	pthread_mutex_destroy(&p->lock);
}

/* Let a worker take what is new.  Runs there. */
static void take(struct wf_loop_task *task)
{
	struct wf_worker *worker = WF_CONTAINER(task, struct wf_worker, proof_task);
	struct weft_node *node = worker->node;
	struct wf_credentials *credentials;
	struct wf_acl *acl;
	uint64_t reading;
	bool is_list_new;

	atomic_store(&worker->proof_due, false);
	pthread_mutex_lock(&node->lock);
	reading = node->proof.reading;
	credentials = wf_credentials_get(node->proof.credentials);
	acl = node->proof.acl ? wf_acl_get(node->proof.acl) : NULL;
	pthread_mutex_unlock(&node->lock);
	is_list_new = acl != worker->engine.acl;
	wf_reprove(&worker->engine, credentials, acl, atomic_exchange(&worker->proof_again, false));
	/* Peers read what is lent to them without a question. */
	if (is_list_new)
		wf_window_recall(&worker->windows);
	wf_credentials_put(credentials);
	wf_acl_put(acl);
	pthread_mutex_lock(&node->lock);
	worker->proof_taken = reading;
	pthread_cond_broadcast(&node->ended);
	pthread_mutex_unlock(&node->lock);
}

/* Let all workers take what is new.  @again: peers that are met prove themselves again. */
static void tell_workers(struct weft_node *node, bool again)
{
	for (unsigned i = 0; i < node->worker_count; i++) {
		struct wf_worker *worker = &node->workers[i];

		if (again)
			atomic_store(&worker->proof_again, true);
		if (atomic_exchange(&worker->proof_due, true))
			continue;
		worker->proof_task.run = take;
		wf_turn_run(worker, &worker->proof_task, wf_clock_now());
	}
}

/* Put what was read in the place of what there was.  Takes both; NULL: what there was stays. */
static void replace(struct weft_node *node, struct wf_credentials *credentials, struct wf_acl *acl)
{
	struct wf_credentials *credentials_before = NULL;
	struct wf_acl *acl_before = NULL;

	pthread_mutex_lock(&node->lock);
	node->proof.reading++;
	if (credentials) {
		credentials_before = node->proof.credentials;
		node->proof.credentials = credentials;
	}
	if (acl) {
		acl_before = node->proof.acl;
		node->proof.acl = acl;
	}
	pthread_mutex_unlock(&node->lock);
	wf_credentials_put(credentials_before);
	wf_acl_put(acl_before);
}

/* News of a reading: what it has put in the place of what there was. */
struct news {
	bool credentials, acl;
};

/* Log @news.  Without the lock, for the log is the program's and may block. */
static void say(const struct weft_node *node, const struct news *news)
{
	if (news->credentials || news->acl)
		wf_log(&node->workers[0].engine.log, WF_LOG_INFO,
		       "%s%s%s changed, and hold from now on",
		       news->credentials ? "the node's credentials" : "",
		       news->credentials && news->acl ? " and " : "",
		       news->acl ? "the rights of its peers" : "");
}

/*
 * Read the files that are due, which stay so if they can't be used: credentials, and the list of
 * rights.  @together: neither holds unless both can be read.  Under the lock.
 */
static int read_anew(struct weft_node *node, bool together, struct news *news, struct wf_error *e)
{
	struct wf_proof *p = &node->proof;
	const struct wf_options *o = &p->options;
	struct wf_credentials *credentials = NULL;
	struct wf_acl *acl = NULL;
	uint64_t until_ns = wf_clock_now() + o->key_grace_ns;
	unsigned list = p->due & 1u << ALLOW, others = p->due & ~list;
	int err = others ? read_credentials(o, &credentials, e) : 0, list_err = 0;
	struct wf_error list_e;

	if (list && o->allow[0])
		list_err = wf_acl_read(o->allow, &acl, &list_e);
	if (list_err && !err)
		*e = list_e;
	if (together && (err || list_err)) {
		wf_credentials_put(credentials);
		wf_acl_put(acl);
		return err ? err : list_err;
	}
	p->due = (err ? others : 0) | (list_err ? list : 0);
	if (credentials && wf_credentials_succeed(credentials, p->credentials, until_ns))
		p->grace_until_ns = until_ns;
	if (credentials || acl || !p->due) {
		replace(node, credentials, acl);
		tell_workers(node, credentials && !o->key_file[0]);
		*news = (struct news){ .credentials = credentials, .acl = acl };
	}
	return err ? err : list_err;
}

static void watch(struct wf_timer *timer)
{
	struct weft_node *node = WF_CONTAINER(timer, struct weft_node, proof.timer);
	struct wf_engine *engine = &node->workers[0].engine;
	struct wf_proof *p = &node->proof;
	struct news news = { 0 };
	unsigned changed, due;
	struct wf_error e;
	int err;

	pthread_mutex_lock(&p->lock);
	changed = look(p);
	p->due |= changed;
	err = p->due ? read_anew(node, false, &news, &e) : 0;
	due = p->due;
	if (p->grace_until_ns && engine->loop.now_ns >= p->grace_until_ns) {
		p->grace_until_ns = 0;
		wf_credentials_forget_older(p->credentials);
		tell_workers(node, true);
	}
	pthread_mutex_unlock(&p->lock);
	say(node, &news);
	if (err && changed)
		wf_log(&engine->log, WF_LOG_WARN, "%s stay as they were: %s",
		       due & 1u << ALLOW && due & ~(1u << ALLOW) ?
		       "what this node proves itself by, and its peers' rights," :
		       due & 1u << ALLOW ? "the rights of this node's peers" :
		       "this node's credentials", e.text);
	wf_proof_watch(node);
}

void wf_proof_watch(struct weft_node *node)
{
	struct wf_loop *loop = &node->workers[0].engine.loop;

	if (node->proof.named)
		wf_loop_timer(loop, &node->proof.timer, loop->now_ns + WF_REPROVE_LOOK_NS, watch);
}

/* Do all workers have the last reading?  Under the node's lock. */
static bool is_taken(const struct weft_node *node)
{
	for (unsigned i = 0; i < node->worker_count; i++)
		if (node->workers[i].proof_taken != node->proof.reading)
			return false;
	return true;
}

static int wait_until_taken(struct weft_node *node)
{
	struct timespec at = wf_clock_timespec(wf_clock_after(wf_clock_now(), TAKEN_NS));
	int err = 0;

	/* The thread of a manual node has taken it, unless it is inside a turn. */
	if (node->manual || wf_node_inside(node))
		return 0;
	pthread_mutex_lock(&node->lock);
	while (!is_taken(node) && err != ETIMEDOUT)
		err = pthread_cond_timedwait(&node->ended, &node->lock, &at);
	err = is_taken(node) ? 0 : -ETIMEDOUT;
	pthread_mutex_unlock(&node->lock);
	return err ? wf_last_set(err, "a worker is busy, and takes what is new later") : 0;
}

int wf_proof_renew(struct weft_node *node)
{
	struct wf_proof *p = &node->proof;
	struct news news = { 0 };
	struct wf_error e;
	unsigned due;
	int err;

	if (!p->named)
		return wf_last_set(-ENOENT, "the node has neither a key nor certificates");
	pthread_mutex_lock(&p->lock);
	due = p->due | look(p);
	p->due = (1u << WF_PROOF_FILES) - 1;
	err = read_anew(node, true, &news, &e);
	/* Nothing was done; the node goes on to look at what has changed. */
	if (err)
		p->due = due;
	pthread_mutex_unlock(&p->lock);
	say(node, &news);
	return err ? wf_last_copy(&e) : wait_until_taken(node);
}
