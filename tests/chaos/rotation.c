/* SPDX-License-Identifier: BSD-2-Clause */
#include "rotation.h"

#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <weft/weft.h>

#include "crew.h"
#include "tests/unit/secure/certificates.h"

#define GRACE "2s" /* members look every second */
#define KEY_BYTES 32
#define PATH_BYTES 512
#define REFUSED_NS (5 * SECOND)
#define PING_NS (4 * SECOND)
#define AUTHORITY_STEPS 3
#define NAMES "URI:spiffe://chaos/member"
#define PEERS "spiffe://chaos/*"

static struct {
	void (*step)(unsigned number); /* NULL: nothing is replaced */
	unsigned steps, every_ms;      /* steps of a whole rotation */
	atomic_uint count;
	atomic_bool ends;
	pthread_t thread;
	char key[PATH_BYTES], first_key[PATH_BYTES]; /* "": members have certificates */
	struct certificate authority, next;
} rotation;

static void put_in_place(const char *fresh, const char *path)
{
	if (rename(fresh, path))
		crew_give_up("%s can't be renamed", fresh);
}

static void *rotate(void *arg)
{
	uint64_t due_ns = now_ns();

	(void)arg;
	for (;;) {
		due_ns += (uint64_t)rotation.every_ms * (SECOND / 1000);
		while (now_ns() < due_ns && !rotation.ends)
			crew_sleep_until(now_ns() + SECOND / 100);
		if (rotation.ends)
			return NULL;
		rotation.step(rotation.count);
		rotation.count++;
	}
}

static void begin(void (*step)(unsigned number), unsigned steps, unsigned every_ms)
{
	rotation.step = step;
	rotation.steps = steps;
	rotation.every_ms = every_ms;
	if (pthread_create(&rotation.thread, NULL, rotate, NULL))
		crew_give_up("no thread for a rotation");
}

/* Keys */

static void replace_key(unsigned number)
{
	char fresh[PATH_BYTES + 4];

	(void)number;
	snprintf(fresh, sizeof(fresh), "%s.new", rotation.key);
	unlink(fresh);
	if (weft_key_new(fresh))
		crew_give_up("%s", weft_error());
	put_in_place(fresh, rotation.key);
}

static void copy_key(const char *from, const char *to)
{
	char bytes[KEY_BYTES];
	int in = open(from, O_RDONLY | O_CLOEXEC), out;
	bool good;

	unlink(to);
	out = open(to, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0400);
	good = in >= 0 && out >= 0 && read(in, bytes, KEY_BYTES) == KEY_BYTES &&
	       write(out, bytes, KEY_BYTES) == KEY_BYTES;
	if (!good || close(in) || close(out))
		crew_give_up("%s can't be copied to %s", from, to);
}

void rotation_of_key(const char *path, unsigned every_ms)
{
	snprintf(rotation.key, sizeof(rotation.key), "%s", path);
	snprintf(rotation.first_key, sizeof(rotation.first_key), "%.500s.first", path);
	copy_key(path, rotation.first_key);
	setenv("WEFT_KEY_GRACE", GRACE, 1);
	begin(replace_key, 1, every_ms);
}

/* Certificates */

/* The file @name of the folder is written beside, and put in place as a whole. */
static void put_file(const char *name)
{
	char fresh[CERTIFICATES_PATH_BYTES], path[CERTIFICATES_PATH_BYTES];

	certificates_path(fresh, "new");
	certificates_path(path, name);
	put_in_place(fresh, path);
}

static void make_authority(struct certificate *authority)
{
	*authority = certificates_make(NULL, &(struct certificates_wish){ .is_authority = true });
}

/* Write a certificate for all members, and its key, to files of these names. */
static void give(const struct certificate *authority, const char *cert, const char *key)
{
	struct certificate c =
		certificates_make(authority, &(struct certificates_wish){ .names = NAMES });

	certificates_save("new", c.cert);
	put_file(cert);
	certificates_save_key("new", c.key, NULL);
	put_file(key);
	certificates_free(&c);
}

static void replace_authority(unsigned number)
{
	switch (number % AUTHORITY_STEPS) {
	case 0:
		make_authority(&rotation.next);
		certificates_save("new", rotation.authority.cert);
		certificates_append("new", rotation.next.cert);
		put_file("ca");
		break;
	case 1:
		give(&rotation.next, "cert", "key");
		break;
	default:
		certificates_save("new", rotation.next.cert);
		put_file("ca");
		certificates_free(&rotation.authority);
		rotation.authority = rotation.next;
		rotation.next = (struct certificate){ 0 };
		break;
	}
}

/* Name files of the folder in the environment, of a certificate and its key. */
static void name_files(const char *cert, const char *key)
{
	const char *const files[][2] = {
		{ "WEFT_CERT", cert }, { "WEFT_KEY", key }, { "WEFT_CA", "ca" },
	};
	char path[CERTIFICATES_PATH_BYTES];

	for (size_t i = 0; i < sizeof(files) / sizeof(files[0]); i++) {
		certificates_path(path, files[i][1]);
		setenv(files[i][0], path, 1);
	}
}

void rotation_of_certificates(unsigned every_ms)
{
	certificates_begin(NULL);
	make_authority(&rotation.authority);
	certificates_save("ca", rotation.authority.cert);
	give(&rotation.authority, "first-cert", "first-key");
	give(&rotation.authority, "cert", "key");
	name_files("cert", "key");
	setenv("WEFT_PEER_IDS", PEERS, 1);
	begin(replace_authority, AUTHORITY_STEPS, every_ms);
}

/* The key or certificate that members began with */

static void prove_by_the_first(bool first)
{
	if (rotation.key[0])
		setenv("WEFT_KEY_FILE", first ? rotation.first_key : rotation.key, 1);
	else
		name_files(first ? "first-cert" : "cert", first ? "first-key" : "key");
}

/* Ping @address from a new node.  Returns how that ends. */
static enum weft_status ping(const char *provider, const char *address)
{
	struct weft_node_options options = { .size = sizeof(options), .provider = provider,
					     .timeout_ns = PING_NS };
	enum weft_status status;
	struct weft_node *node;
	struct weft_peer *peer;
	struct weft_op *op;

	prove_by_the_first(true);
	if (weft_node_open(&options, &node) || weft_peer_open(node, address, &peer) ||
	    weft_ping(peer, NULL, &op) || weft_wait(op, 2 * PING_NS))
		crew_give_up("a node with what members began with: %s", weft_error());
	prove_by_the_first(false);
	status = weft_op_status(op);
	weft_op_free(op);
	weft_peer_close(peer);
	weft_node_close(node);
	return status;
}

bool rotation_ends_the_first(const char *provider, const char *address)
{
	uint64_t from_ns = now_ns();
	enum weft_status status;

	if (!rotation.step || rotation.count < rotation.steps)
		return true;
	do
		status = ping(provider, address);
	while (status != WEFT_UNAUTHENTICATED && now_ns() - from_ns < REFUSED_NS);
	printf("%-8s a node with the first %s: %s\n", provider,
	       rotation.key[0] ? "key" : "certificate", weft_status_name(status));
	return status == WEFT_UNAUTHENTICATED;
}

void rotation_end(void)
{
	if (!rotation.step)
		return;
	rotation.ends = true;
	pthread_join(rotation.thread, NULL);
	if (rotation.key[0]) {
		unlink(rotation.first_key);
		printf("%u new keys\n", rotation.count);
		return;
	}
	certificates_free(&rotation.authority);
	certificates_free(&rotation.next);
	certificates_end(NULL);
	printf("%u new certificates, %u new authorities\n",
	       (rotation.count + 1) / AUTHORITY_STEPS, rotation.count / AUTHORITY_STEPS);
}
