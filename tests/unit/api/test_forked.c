/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What every function of the public headers does in a forked child: none
 * blocks, none touches the parent's node, and all that return a code say why.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <ctype.h>
#include <errno.h>
#include <glob.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <weft/weft.h>
#include "tests/fabric/calls.pb-c.h"

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))
#define LIMIT_NS 20000000000ull /* for what takes milliseconds on an idle machine */
#define KEY "key", 3

/* What the parent has when it forks: some of everything, at rest. */
static struct weft_node *node, *manual, *server;
static struct weft_peer *peer;
static struct weft_queue *queue;
static struct weft_op *running, *received, *unmade, *answered;
static struct weft_op *set; /* of receives that nothing is sent for */
static struct weft_op *broadcast; /* to the server, which receives it after the fork */
static struct weft_op *stream_call, *was_read, *reading;
static struct weft_stub *stub, *stream_stub;
static struct weft_stream *stream;
static ProtobufCService *unmade_service;
static _Atomic(void *) served;
static struct weft_stream *_Atomic served_stream;
static void *memory, *near;
static struct weft_window *window; /* of the server, and known to the node */
static struct weft_remote *remote;
static struct weft_group *group;     /* of the node, which is all of it */
static struct weft_landing *landing; /* of the server, and the node has pushed into it */
static struct weft_remote *pushed_into;
static struct weft_op *landed;
static char slots[2][16];
static struct weft_region *region;
static struct weft_op *noted;
static char windowed[64];

static float number = 1;
static int64_t one = 1;
static struct weft_tensor tensor = { .data = &number, .device = { WEFT_CPU, 0 }, .ndim = 1,
				     .dtype = { WEFT_FLOAT, 32, 1 }, .shape = &one };
static const struct weft_metadata pair = { "k", "value", 5 };

static void keep_it(Calls__Test_Service *service, const Calls__Nothing *request,
		    Calls__Nothing_Closure closure, void *closure_data)
{
	(void)service;
	(void)request;
	(void)closure;
	weft_served_defer(closure_data);
	atomic_store(&served, closure_data);
}

static bool is_the_pair(const struct weft_metadata *pairs, size_t count)
{
	return count == 1 && !strcmp(pairs->key, "k") && pairs->bytes == 5 &&
	       !strcmp(pairs->value, "value");
}

/* All that may go with a reply goes with this one. */
static void refuse_it(Calls__Test_Service *service, const Calls__Nothing *request,
		      Calls__Nothing_Closure closure, void *closure_data)
{
	(void)service;
	(void)request;
	(void)closure;
	weft_served_set_initial(closure_data, &pair, 1);
	weft_served_set_trailing(closure_data, &pair, 1);
	weft_served_set_details(closure_data, "why", 3);
	weft_served_fail(closure_data, WEFT_ABORTED, "as it should");
}

static void keep_stream(struct weft_stream *s, void *arg)
{
	const Calls__Response empty = CALLS__RESPONSE__INIT;

	(void)arg;
	atomic_store(&served_stream, s);
	weft_stream_write(s, &empty.base, NULL, NULL);
}

static Calls__Test_Service service, other_service, stream_service;
static ProtobufCServiceDescriptor other_descriptor, stream_descriptor;
static const struct weft_stream_method stream_method = { .name = "Unary", .handle = keep_stream };

/* In the child: is it refused, with a sentence? */

static bool refused(int err)
{
	return err == -EOWNERDEAD && strstr(weft_error(), "forked");
}

static unsigned told;
static enum weft_status told_status;

static void tell(const Calls__Nothing *reply, void *arg)
{
	const char *message;

	(void)arg;
	told += !reply;
	told_status = weft_reply_status(&message);
	told_status = strstr(message, "forked") ? told_status : WEFT_OK;
}

/* The closure comes inside the call, and says it. */
static bool call_is_refused(ProtobufCService *by)
{
	const Calls__Nothing nothing = CALLS__NOTHING__INIT;
	unsigned before = told;

	calls__test__empty(by, &nothing, tell, NULL);
	return told == before + 1 && told_status == WEFT_FAILED_PRECONDITION;
}

static bool try_alloc(void)
{
	void *m;

	return refused(weft_alloc(node, 1, &m));
}

static bool try_alloc_near(void)
{
	void *m;

	return refused(weft_alloc_near(node, 1, NULL, &m));
}

/* What the child writes there is its own; see use_and_close_everything(). */
static bool try_memory_place(void)
{
	struct weft_placement place = { .size = sizeof(place) };

	memset(near, 'c', 100);
	return refused(weft_memory_place(node, near, &place));
}

static bool try_retain(void)
{
	return refused(weft_retain(node, memory));
}

static bool try_free(void)
{
	weft_free(node, memory);
	weft_free(node, near);
	return true;
}

static bool try_node_close(void)
{
	return refused(weft_node_close(node)) && refused(weft_node_close(manual));
}

static bool try_node_drain(void)
{
	return refused(weft_node_drain(node, 0)) && refused(weft_node_drain(manual, WEFT_FOREVER));
}

static bool try_node_address(void)
{
	return strchr(weft_node_address(node), ':') != NULL;
}

static bool try_peer_open(void)
{
	struct weft_peer *p;

	return refused(weft_peer_open(node, "a:1", &p));
}

static bool try_peer_close(void)
{
	weft_peer_close(peer);
	return true;
}

static bool try_peer_on_change(void)
{
	return refused(weft_peer_on_change(peer, NULL, NULL));
}

static bool try_peer_identity(void)
{
	char identity[WEFT_IDENTITY_BYTES];

	return refused(weft_peer_identity(peer, identity, sizeof(identity)));
}

static bool try_node_rekey(void)
{
	return refused(weft_node_rekey(node)) && refused(weft_node_rekey(manual));
}

static bool try_peer_name(void)
{
	return *weft_peer_name(peer);
}

static bool try_ping(void)
{
	struct weft_op *o;

	return refused(weft_ping(peer, NULL, &o));
}

static bool try_wait(void)
{
	return refused(weft_wait(running, 0)) && refused(weft_wait(received, WEFT_FOREVER));
}

static bool try_waits(void)
{
	enum weft_status status;
	size_t index;

	return refused(weft_wait_any(&running, 1, 0, &index)) &&
	       refused(weft_wait_all(&running, 1, 0)) && refused(weft_finish(running, &status));
}

static bool try_queues(void)
{
	struct weft_queue *q;
	struct weft_op *op;

	return refused(weft_queue_open(node, &q)) && refused(weft_queue_next(queue, &op, 1, 0)) &&
	       refused(weft_queue_fd(queue));
}

static bool try_queue_close(void)
{
	weft_queue_close(queue);
	return true;
}

static bool try_windows(void)
{
	uint8_t descriptor[WEFT_DESCRIPTOR_BYTES_MAX];
	size_t bytes = sizeof(descriptor);
	struct weft_window *w;
	struct weft_op *op;

	return refused(weft_window_open(node, windowed, 1, WEFT_WINDOW_READ, &w)) &&
	       refused(weft_window_describe(window, descriptor, &bytes)) &&
	       refused(weft_window_publish(window, "k", 1)) &&
	       refused(weft_window_wait(window, 2, WEFT_FOREVER)) &&
	       refused(weft_window_next(window, NULL, &op)) && weft_window_puts(window) == 1;
}

static bool try_window_close(void)
{
	return refused(weft_window_close(window));
}

static bool try_remotes(void)
{
	const struct weft_block block = { windowed, 0, 1 };
	struct weft_remote *r;
	struct weft_op *op;

	return refused(weft_window_import(peer, windowed, sizeof(windowed), &r)) &&
	       refused(weft_window_find(peer, "k", 1, NULL, &op)) &&
	       refused(weft_op_remote(received, &r)) &&
	       refused(weft_get(remote, &block, 1, NULL, &op)) &&
	       refused(weft_put(remote, &block, 1, NULL, &op)) &&
	       weft_remote_bytes(remote) == sizeof(windowed) &&
	       weft_remote_rights(remote) == (WEFT_WINDOW_READ | WEFT_WINDOW_WRITE);
}

static bool try_remote_close(void)
{
	weft_remote_close(remote);
	return true;
}

static bool try_landings(void)
{
	uint8_t descriptor[WEFT_DESCRIPTOR_BYTES_MAX];
	size_t bytes = sizeof(descriptor);
	struct weft_landing *l;
	uint64_t said;
	struct weft_op *op;

	return refused(weft_landing_open(node, slots, 16, 2, &l)) &&
	       refused(weft_landing_describe(landing, descriptor, &bytes)) &&
	       refused(weft_landing_publish(landing, "k", 1)) &&
	       refused(weft_landing_next(landing, NULL, &op)) &&
	       refused(weft_push(pushed_into, &tensor, NULL, &op)) &&
	       !weft_op_landed(landed, &said) && said == 5 && weft_op_tensor(landed, NULL);
}

static bool try_landing_close(void)
{
	return refused(weft_landing_close(landing));
}

static bool try_groups(void)
{
	const char *address = "127.0.0.1:1";
	struct weft_peer *self;
	struct weft_group *g;

	return refused(weft_join(node, NULL, &g)) && refused(weft_group_peer(group, 0, &self)) &&
	       refused(weft_group_open(node, 0, 1, &address, 1, &g)) &&
	       !weft_group_rank(group) && weft_group_size(group) == 1 &&
	       !weft_group_local_rank(group) && weft_group_local_size(group) == 1 &&
	       !strcmp(weft_group_launcher(group), "none") && weft_group_address(group, 0);
}

static bool try_collectives(void)
{
	struct weft_op *op;

	return refused(weft_all_reduce(group, &tensor, &tensor, WEFT_SUM, NULL, &op)) &&
	       refused(weft_reduce(group, 0, &tensor, &tensor, WEFT_SUM, NULL, &op)) &&
	       refused(weft_reduce_scatter(group, &tensor, &tensor, WEFT_SUM, NULL, &op)) &&
	       refused(weft_all_gather(group, &tensor, &tensor, NULL, &op)) &&
	       refused(weft_gather(group, 0, &tensor, &tensor, NULL, &op)) &&
	       refused(weft_scatter(group, 0, &tensor, &tensor, NULL, &op)) &&
	       refused(weft_all_to_all(group, &tensor, &tensor, NULL, &op)) &&
	       refused(weft_group_broadcast(group, 0, &tensor, NULL, &op)) &&
	       refused(weft_barrier(group, NULL, &op));
}

static bool try_group_close(void)
{
	return refused(weft_group_close(group));
}

static bool try_op_note(void)
{
	return weft_op_note(noted)->number == 7 && !weft_op_note(received);
}

static bool try_register(void)
{
	struct weft_region *r;

	return refused(weft_register(node, windowed, sizeof(windowed), &r));
}

static bool try_unregister(void)
{
	return refused(weft_unregister(region));
}

static bool try_broadcasts(void)
{
	enum weft_status status;
	struct weft_op *op;

	return refused(weft_broadcast(&peer, 1, 4, KEY, &tensor, NULL, &op)) &&
	       refused(weft_broadcast_add(broadcast, peer)) &&
	       refused(weft_broadcast_outcome(broadcast, 0, &status, NULL));
}

static bool try_recv_set(void)
{
	const struct weft_recv_item item = { KEY, NULL };
	struct weft_op *op;

	return refused(weft_recv_set(node, peer, 5, &item, 1, NULL, &op)) &&
	       weft_op_status(weft_recv_set_item(set, 0)) == WEFT_UNKNOWN;
}

static bool try_op_ended(void)
{
	return !weft_op_ended(running) && weft_op_ended(received);
}

static bool try_op_arg(void)
{
	return !weft_op_arg(running);
}

static bool try_op_status(void)
{
	return weft_op_status(running) == WEFT_UNKNOWN &&
	       weft_op_status(received) == WEFT_OK;
}

static bool try_op_message(void)
{
	return !*weft_op_message(running);
}

static bool try_op_executed(void)
{
	return weft_op_executed(running) == WEFT_EXECUTED_MAYBE;
}

static bool try_cancel(void)
{
	weft_cancel(running);
	return true;
}

static bool try_op_free(void)
{
	weft_op_free(running);
	return true;
}

static bool try_op_path(void)
{
	struct weft_path p = { .size = sizeof(p) };

	return refused(weft_op_path(received, &p));
}

static bool try_poll(void)
{
	return refused(weft_poll(manual, 0)) && refused(weft_poll(node, 0));
}

static bool try_fd(void)
{
	return refused(weft_fd(manual));
}

static bool try_arm(void)
{
	uint64_t ns;

	return refused(weft_arm(manual, &ns));
}

static bool try_counters(void)
{
	struct weft_counters c = { .size = sizeof(c) };

	return refused(weft_node_counters(node, &c));
}

static bool try_dump(void)
{
	return refused(weft_dump(node, stderr));
}

static bool try_step_abort(void)
{
	return refused(weft_step_abort(node, 1, WEFT_ABORTED, "no"));
}

static bool try_step_end(void)
{
	return refused(weft_step_end(node, 1));
}

static bool try_stub_open(void)
{
	struct weft_stub *s;

	return refused(weft_stub_open(peer, &calls__test__descriptor, &s));
}

static bool try_stub_service(void)
{
	return call_is_refused(weft_stub_service(stub)) && call_is_refused(unmade_service);
}

static bool try_call_open(void)
{
	ProtobufCService *s;
	struct weft_op *o;

	return refused(weft_call_open(stub, NULL, &s, &o));
}

static bool try_stub_close(void)
{
	weft_stub_close(stub);
	return true;
}

static bool try_serve(void)
{
	return refused(weft_serve(node, &other_service.base));
}

static bool try_call_reply(void)
{
	return !weft_call_reply(answered);
}

static bool try_call_peer(void)
{
	return !weft_served_peer(weft_served(served));
}

static bool try_call_metadata(void)
{
	size_t count;
	const struct weft_metadata *pairs = weft_served_metadata(served, &count);

	return is_the_pair(pairs, count);
}

static bool try_call_set_initial(void)
{
	return refused(weft_served_set_initial(served, &pair, 1));
}

static bool try_call_set_trailing(void)
{
	return refused(weft_served_set_trailing(served, &pair, 1));
}

static bool try_call_set_details(void)
{
	return refused(weft_served_set_details(served, "why", 3));
}

static void told_of_cancel(void *arg)
{
	(void)arg;
	told++;
}

static bool try_call_on_cancel(void)
{
	unsigned before = told;

	weft_served_on_cancel(served, told_of_cancel, NULL);
	return told == before;
}

static bool try_call_left(void)
{
	return weft_served_left_ns(served) > 0;
}

static bool try_call_cancelled(void)
{
	return !weft_served_cancelled(served);
}

static bool try_call_defer(void)
{
	weft_served_defer(served);
	return true;
}

static bool try_call_fail(void)
{
	weft_served_fail(served, WEFT_ABORTED, "by a child");
	return true;
}

/* What came with a reply lies in the child's copy of the memory, too. */

static bool try_call_add_metadata(void)
{
	return refused(weft_call_add_metadata(answered, &pair, 1));
}

static bool try_call_initial(void)
{
	size_t count;
	const struct weft_metadata *pairs = weft_call_initial(answered, &count);

	return is_the_pair(pairs, count);
}

static bool try_call_trailing(void)
{
	size_t count;
	const struct weft_metadata *pairs = weft_call_trailing(answered, &count);

	return is_the_pair(pairs, count);
}

static bool try_call_details(void)
{
	size_t bytes;
	const char *details = weft_call_details(answered, &bytes);

	return bytes == 3 && !memcmp(details, "why", 3);
}

static bool try_stream_open(void)
{
	struct weft_stream *s;
	struct weft_op *o;

	return refused(weft_stream_open(stream_stub, "Unary", NULL, &s, &o));
}

static bool try_stream_write(void)
{
	const Calls__Request request = CALLS__REQUEST__INIT;
	const Calls__Response response = CALLS__RESPONSE__INIT;
	struct weft_op *o;

	return refused(weft_stream_write(stream, &request.base, NULL, &o)) &&
	       refused(weft_stream_write(stream, &request.base, NULL, NULL)) &&
	       refused(weft_stream_write(served_stream, &response.base, NULL, &o));
}

static bool try_stream_read(void)
{
	struct weft_op *o;

	return refused(weft_stream_read(stream, NULL, &o)) &&
	       refused(weft_stream_read(served_stream, NULL, &o));
}

static bool try_stream_message(void)
{
	return weft_stream_message(was_read) && !weft_stream_message(reading);
}

static bool try_stream_half_close(void)
{
	return refused(weft_stream_half_close(stream));
}

static bool try_stream_call(void)
{
	return weft_stream_served(served_stream) &&
	       !weft_served_peer(weft_stream_served(served_stream));
}

static bool try_attach(void)
{
	struct weft_op *o;

	return refused(weft_call_attach(was_read, &tensor, NULL, &o)) &&
	       refused(weft_served_attach(served, &tensor, NULL, &o)) &&
	       refused(weft_stream_attach(stream, &tensor, NULL, &o)) &&
	       refused(weft_stream_attach(served_stream, &tensor, NULL, NULL));
}

static bool try_receive(void)
{
	struct weft_op *o;

	return refused(weft_served_receive(served, 0, NULL, NULL, &o)) &&
	       refused(weft_op_receive(was_read, 0, NULL, NULL, &o));
}

static bool try_attachments(void)
{
	return !weft_served_attachments(served) && !weft_served_attachment(served, 0, NULL) &&
	       !weft_op_attachments(was_read) && !weft_op_attachment(was_read, 0, NULL);
}

static bool try_compress(void)
{
	return refused(weft_served_compress(served, WEFT_ZSTD)) &&
	       refused(weft_stream_compress(stream, WEFT_ZSTD)) &&
	       !weft_served_compressed(served) && !weft_op_compressed(was_read);
}

static bool try_serve_reflection(void)
{
	return refused(weft_serve_reflection(node));
}

static bool try_serve_streams(void)
{
	return refused(weft_serve_streams(node, &other_service.base, &stream_method, 1));
}

static bool try_serve_with(void)
{
	return refused(weft_serve_with(node, &other_service.base, NULL));
}

static bool try_serve_health(void)
{
	return refused(weft_serve_health(node));
}

static bool try_health_set(void)
{
	return refused(weft_health_set(node, "", WEFT_HEALTH_SERVING));
}

static bool try_stream_finish(void)
{
	weft_stream_finish(served_stream, WEFT_ABORTED, "by a child");
	return true;
}

static bool try_stream_close(void)
{
	weft_stream_close(stream);
	return true;
}

static bool try_send(void)
{
	struct weft_op *o;

	return refused(weft_send(peer, 1, KEY, &tensor, NULL, &o));
}

static bool try_recv(void)
{
	struct weft_op *o;

	return refused(weft_recv(node, NULL, 1, KEY, NULL, NULL, &o));
}

static bool try_op_key(void)
{
	size_t bytes;

	return weft_op_key(received, &bytes) && bytes == strlen("key");
}

static bool try_probe(void)
{
	return refused(weft_probe(node, NULL, 1, KEY, NULL));
}

/* What was received lies in the child's copy of the memory, too. */
static bool try_op_tensor(void)
{
	return *(float *)weft_op_tensor(received, NULL)->data == 1;
}

static bool try_op_peer(void)
{
	return weft_op_peer(received) != NULL;
}

static bool try_op_take(void)
{
	return !weft_op_take(received);
}


/* Nothing of these belongs to a node: they work as ever. */

static bool try_info(void)
{
	struct weft_fabric fabric = { .size = sizeof(fabric) };
	struct weft_info_secure secure = { .size = sizeof(secure) };
	struct weft_cuda cuda = { .size = sizeof(cuda) };
	struct weft_cuda_device device = { .size = sizeof(device) };
	struct weft_info *info;
	char text[200];
	bool good = !weft_info_open(NULL, &info);

	good = good && weft_info_count(info) && !weft_info_get(info, 0, &fabric) &&
	       !weft_info_plan(info, 0, 1, WEFT_PLACE_USER, WEFT_PLACE_USER, text, sizeof(text)) &&
	       *weft_info_libfabric() && !weft_info_security(info, &secure) && *secure.mode &&
	       !weft_info_cuda(info, &cuda) && *cuda.sentence &&
	       !weft_info_cuda_device(info, 0, &device) == (cuda.device_count > 0);
	if (good)
		weft_info_close(info);
	good = good && !weft_info_look(NULL, &info);
	if (good)
		weft_info_close(info);
	return good;
}

static bool try_own_node(void)
{
	const struct weft_node_options options = { .size = sizeof(options), .provider = "tcp" };
	struct weft_node *own;

	return !weft_node_open(&options, &own) && !weft_node_close(own);
}

static bool try_key(void)
{
	return weft_key_new("/nowhere/key") == -ENOENT;
}

/* It belongs to no node. */
static bool try_topology(void)
{
	struct weft_publisher publisher = { .size = sizeof(publisher) };
	struct weft_client client = { .size = sizeof(client) };
	struct weft_pair pairing = { .size = sizeof(pairing) };
	struct weft_topology *t;
	bool good = !weft_topology_open(NULL, &t);

	good = good && weft_topology_publishers(t) &&
	       !weft_topology_publisher(t, 0, &publisher) &&
	       (!weft_topology_clients(t) || (!weft_topology_client(t, 0, &client) &&
					      !weft_topology_pair(t, 0, 0, &pairing)));
	if (good)
		weft_topology_close(t);
	return good;
}

static bool try_texts(void)
{
	struct weft_option option = WEFT_OPTION_INIT;

	return *weft_version() && *weft_status_name(WEFT_OK) && *weft_strerror(-EINVAL) &&
	       weft_option_count() && !weft_option_get(0, &option) &&
	       weft_reply_status(NULL) == WEFT_UNKNOWN;
}

static bool try_tensor_bytes(void)
{
	uint64_t bytes;

	return !weft_tensor_bytes(&tensor, &bytes) && bytes == 4;
}

/* In this order: what lets go of an object comes after the others. */
static const struct {
	const char *name;
	bool (*as_it_should)(void);
} functions[] = {
	{ "weft_alloc", try_alloc },
	{ "weft_alloc_near", try_alloc_near },
	{ "weft_arm", try_arm },
	{ "weft_broadcast", try_broadcasts },
	{ "weft_broadcast_add", try_broadcasts },
	{ "weft_broadcast_outcome", try_broadcasts },
	{ "weft_call_add_metadata", try_call_add_metadata },
	{ "weft_call_attach", try_attach },
	{ "weft_served", try_call_peer },
	{ "weft_served_attachment", try_attachments },
	{ "weft_served_attachments", try_attachments },
	{ "weft_served_cancelled", try_call_cancelled },
	{ "weft_served_compress", try_compress },
	{ "weft_served_compressed", try_compress },
	{ "weft_served_defer", try_call_defer },
	{ "weft_call_details", try_call_details },
	{ "weft_call_initial", try_call_initial },
	{ "weft_served_left_ns", try_call_left },
	{ "weft_served_metadata", try_call_metadata },
	{ "weft_served_on_cancel", try_call_on_cancel },
	{ "weft_call_open", try_call_open },
	{ "weft_served_peer", try_call_peer },
	{ "weft_served_set_details", try_call_set_details },
	{ "weft_served_set_initial", try_call_set_initial },
	{ "weft_served_set_trailing", try_call_set_trailing },
	{ "weft_call_reply", try_call_reply },
	{ "weft_call_trailing", try_call_trailing },
	{ "weft_dump", try_dump },
	{ "weft_error", try_alloc },
	{ "weft_fd", try_fd },
	{ "weft_finish", try_waits },
	{ "weft_get", try_remotes },
	{ "weft_all_gather", try_collectives },
	{ "weft_all_reduce", try_collectives },
	{ "weft_all_to_all", try_collectives },
	{ "weft_barrier", try_collectives },
	{ "weft_gather", try_collectives },
	{ "weft_group_broadcast", try_collectives },
	{ "weft_reduce", try_collectives },
	{ "weft_reduce_scatter", try_collectives },
	{ "weft_scatter", try_collectives },
	{ "weft_group_address", try_groups },
	{ "weft_group_launcher", try_groups },
	{ "weft_group_local_rank", try_groups },
	{ "weft_group_local_size", try_groups },
	{ "weft_group_open", try_groups },
	{ "weft_group_peer", try_groups },
	{ "weft_group_rank", try_groups },
	{ "weft_group_size", try_groups },
	{ "weft_health_set", try_health_set },
	{ "weft_join", try_groups },
	{ "weft_info_close", try_info },
	{ "weft_info_count", try_info },
	{ "weft_info_security", try_info },
	{ "weft_info_cuda", try_info },
	{ "weft_info_cuda_device", try_info },
	{ "weft_info_get", try_info },
	{ "weft_info_libfabric", try_info },
	{ "weft_info_look", try_info },
	{ "weft_info_open", try_info },
	{ "weft_info_plan", try_info },
	{ "weft_key_new", try_key },
	{ "weft_landing_describe", try_landings },
	{ "weft_landing_next", try_landings },
	{ "weft_landing_open", try_landings },
	{ "weft_landing_publish", try_landings },
	{ "weft_memory_place", try_memory_place },
	{ "weft_node_address", try_node_address },
	{ "weft_node_counters", try_counters },
	{ "weft_node_drain", try_node_drain },
	{ "weft_node_open", try_own_node },
	{ "weft_node_rekey", try_node_rekey },
	{ "weft_served_receive", try_receive },
	{ "weft_op_arg", try_op_arg },
	{ "weft_op_attachment", try_attachments },
	{ "weft_op_attachments", try_attachments },
	{ "weft_op_compressed", try_compress },
	{ "weft_op_ended", try_op_ended },
	{ "weft_op_executed", try_op_executed },
	{ "weft_op_key", try_op_key },
	{ "weft_op_landed", try_landings },
	{ "weft_op_message", try_op_message },
	{ "weft_op_note", try_op_note },
	{ "weft_op_path", try_op_path },
	{ "weft_op_peer", try_op_peer },
	{ "weft_op_remote", try_remotes },
	{ "weft_op_receive", try_receive },
	{ "weft_op_status", try_op_status },
	{ "weft_op_take", try_op_take },
	{ "weft_op_tensor", try_op_tensor },
	{ "weft_option_count", try_texts },
	{ "weft_option_get", try_texts },
	{ "weft_peer_identity", try_peer_identity },
	{ "weft_peer_name", try_peer_name },
	{ "weft_peer_on_change", try_peer_on_change },
	{ "weft_peer_open", try_peer_open },
	{ "weft_ping", try_ping },
	{ "weft_poll", try_poll },
	{ "weft_probe", try_probe },
	{ "weft_push", try_landings },
	{ "weft_put", try_remotes },
	{ "weft_queue_fd", try_queues },
	{ "weft_queue_next", try_queues },
	{ "weft_queue_open", try_queues },
	{ "weft_recv", try_recv },
	{ "weft_recv_set", try_recv_set },
	{ "weft_recv_set_item", try_recv_set },
	{ "weft_register", try_register },
	{ "weft_remote_bytes", try_remotes },
	{ "weft_remote_rights", try_remotes },
	{ "weft_served_attach", try_attach },
	{ "weft_reply_status", try_texts },
	{ "weft_retain", try_retain },
	{ "weft_send", try_send },
	{ "weft_serve", try_serve },
	{ "weft_serve_health", try_serve_health },
	{ "weft_serve_reflection", try_serve_reflection },
	{ "weft_serve_streams", try_serve_streams },
	{ "weft_serve_with", try_serve_with },
	{ "weft_status_name", try_texts },
	{ "weft_step_abort", try_step_abort },
	{ "weft_step_end", try_step_end },
	{ "weft_stream_attach", try_attach },
	{ "weft_stream_served", try_stream_call },
	{ "weft_stream_compress", try_compress },
	{ "weft_stream_half_close", try_stream_half_close },
	{ "weft_stream_message", try_stream_message },
	{ "weft_stream_open", try_stream_open },
	{ "weft_stream_read", try_stream_read },
	{ "weft_stream_write", try_stream_write },
	{ "weft_strerror", try_texts },
	{ "weft_stub_open", try_stub_open },
	{ "weft_stub_service", try_stub_service },
	{ "weft_tensor_bytes", try_tensor_bytes },
	{ "weft_topology_client", try_topology },
	{ "weft_topology_clients", try_topology },
	{ "weft_topology_close", try_topology },
	{ "weft_topology_open", try_topology },
	{ "weft_topology_pair", try_topology },
	{ "weft_topology_publisher", try_topology },
	{ "weft_topology_publishers", try_topology },
	{ "weft_version", try_texts },
	{ "weft_wait", try_wait },
	{ "weft_wait_all", try_waits },
	{ "weft_wait_any", try_waits },
	{ "weft_window_describe", try_windows },
	{ "weft_window_find", try_remotes },
	{ "weft_window_import", try_remotes },
	{ "weft_window_next", try_windows },
	{ "weft_window_open", try_windows },
	{ "weft_window_publish", try_windows },
	{ "weft_window_puts", try_windows },
	{ "weft_window_wait", try_windows },
	{ "weft_served_fail", try_call_fail },
	{ "weft_stream_finish", try_stream_finish },
	{ "weft_stream_close", try_stream_close },
	{ "weft_cancel", try_cancel },
	{ "weft_free", try_free },
	{ "weft_op_free", try_op_free },
	{ "weft_landing_close", try_landing_close },
	{ "weft_group_close", try_group_close },
	{ "weft_peer_close", try_peer_close },
	{ "weft_queue_close", try_queue_close },
	{ "weft_remote_close", try_remote_close },
	{ "weft_stub_close", try_stub_close },
	{ "weft_unregister", try_unregister },
	{ "weft_window_close", try_window_close },
	{ "weft_node_close", try_node_close },
};

static bool is_tried(const char *name)
{
	for (size_t i = 0; i < COUNT(functions); i++)
		if (!strcmp(functions[i].name, name))
			return true;
	return false;
}

/* The functions that the header at @path promises; how many. */
static size_t check_header(const char *path)
{
	static char text[65536];
	FILE *file = fopen(path, "r");
	size_t count = 0, bytes;

	assert_non_null(file);
	bytes = fread(text, 1, sizeof(text) - 1, file);
	assert_true(bytes < sizeof(text) - 1);
	text[bytes] = '\0';
	fclose(file);
	for (char *at = text; (at = strstr(at, "\nWEFT_API ")); at++) {
		/* Before the bracket; types have the stem, too. */
		char *end = strchr(at, '('), *name = end;

		assert_non_null(end);
		while (name[-1] == '_' || islower((unsigned char)name[-1]))
			name--;
		*end = '\0';
		if (!is_tried(name))
			fail_msg("%s: %s is not in this test's table", path, name);
		*end = '(';
		count++;
	}
	return count;
}

static void no_public_function_is_forgotten(void **state)
{
	const char *top = getenv("top_srcdir");
	char pattern[512];
	size_t count = 0;
	glob_t headers;

	(void)state;
	snprintf(pattern, sizeof(pattern), "%s/include/weft/*.h", top ? top : ".");
	if (glob(pattern, 0, NULL, &headers)) {
		print_message("skip: no %s: set top_srcdir\n", pattern);
		skip();
	}
	for (size_t i = 0; i < headers.gl_pathc; i++)
		count += check_header(headers.gl_pathv[i]);
	globfree(&headers);
	assert_int_equal(count, COUNT(functions));
}

static void end_with(struct weft_op *op, enum weft_status status)
{
	assert_int_equal(weft_wait(op, LIMIT_NS), 0);
	assert_int_equal(weft_op_status(op), status);
}

static void end_well(struct weft_op *op)
{
	end_with(op, WEFT_OK);
}

/* The server has written one message, which was read, and the next read waits. */
static void open_a_stream(void)
{
	stream_descriptor = calls__test__descriptor;
	stream_descriptor.name = "calls.Streams";
	stream_service = service;
	stream_service.base.descriptor = &stream_descriptor;
	assert_int_equal(weft_serve_streams(server, &stream_service.base, &stream_method, 1), 0);
	assert_int_equal(weft_stub_open(peer, &stream_descriptor, &stream_stub), 0);
	assert_int_equal(weft_stream_open(stream_stub, "Unary", NULL, &stream, &stream_call), 0);
	assert_int_equal(weft_stream_read(stream, NULL, &was_read), 0);
	end_well(was_read);
	assert_int_equal(weft_stream_read(stream, NULL, &reading), 0);
}

static void use_and_close_the_stream(void)
{
	const Calls__Request request = CALLS__REQUEST__INIT;
	const Calls__Response response = CALLS__RESPONSE__INIT;
	struct weft_op *asked;

	assert_int_equal(weft_stream_read(served_stream, NULL, &asked), 0);
	assert_int_equal(weft_stream_write(stream, &request.base, NULL, NULL), 0);
	end_well(asked);
	assert_non_null(weft_stream_message(asked));
	weft_op_free(asked);
	assert_false(weft_op_ended(reading));
	assert_int_equal(weft_stream_write(served_stream, &response.base, NULL, NULL), 0);
	end_well(reading);
	assert_non_null(weft_stream_message(reading));
	assert_int_equal(weft_stream_half_close(stream), 0);
	weft_stream_finish(served_stream, WEFT_OK, NULL);
	end_well(stream_call);
	weft_stream_close(stream);
	weft_op_free(was_read);
	weft_op_free(reading);
	weft_op_free(stream_call);
	weft_stub_close(stream_stub);
}

/* The node has put into the window of the server, with a note. */
static void open_a_window(void)
{
	struct weft_access_options options = WEFT_ACCESS_OPTIONS_INIT;
	const struct weft_block block = { windowed + 32, 0, 32 };
	uint8_t descriptor[WEFT_DESCRIPTOR_BYTES_MAX];
	size_t bytes = sizeof(descriptor);
	struct weft_op *op;

	assert_int_equal(weft_window_open(server, windowed, sizeof(windowed),
					  WEFT_WINDOW_READ | WEFT_WINDOW_WRITE, &window), 0);
	assert_int_equal(weft_window_describe(window, descriptor, &bytes), 0);
	assert_int_equal(weft_window_import(peer, descriptor, bytes, &remote), 0);
	memset(windowed + 32, 'w', 32);
	options.flags = WEFT_NOTE;
	options.number = 7;
	assert_int_equal(weft_put(remote, &block, 1, &options, &op), 0);
	end_well(op);
	weft_op_free(op);
	assert_int_equal(weft_window_next(window, NULL, &noted), 0);
	end_well(noted);
	assert_int_equal(weft_register(node, windowed, sizeof(windowed), &region), 0);
}

/* The node has pushed a tensor into a slot of the server, which holds it. */
static void open_a_landing(void)
{
	struct weft_push_options options = WEFT_PUSH_OPTIONS_INIT;
	uint8_t descriptor[WEFT_DESCRIPTOR_BYTES_MAX];
	size_t bytes = sizeof(descriptor);
	struct weft_op *op;

	assert_int_equal(weft_landing_open(server, slots, sizeof(slots[0]), 2, &landing), 0);
	assert_int_equal(weft_landing_describe(landing, descriptor, &bytes), 0);
	assert_int_equal(weft_window_import(peer, descriptor, bytes, &pushed_into), 0);
	options.number = 5;
	assert_int_equal(weft_push(pushed_into, &tensor, &options, &op), 0);
	end_well(op);
	weft_op_free(op);
	assert_int_equal(weft_landing_next(landing, NULL, &landed), 0);
	end_well(landed);
}

static void join_alone(void)
{
	struct weft_join_options options = WEFT_JOIN_OPTIONS_INIT;

	options.bootstrap = "none";
	assert_int_equal(weft_join(node, &options, &group), 0);
}

static void use_and_close_the_landing(void)
{
	struct weft_op *op;

	assert_int_equal(weft_push(pushed_into, &tensor, NULL, &op), 0);
	end_well(op);
	weft_op_free(op);
	weft_op_free(landed);
	weft_remote_close(pushed_into);
	assert_int_equal(weft_landing_close(landing), 0);
}

static void use_and_close_the_window(void)
{
	const struct weft_block block = { windowed + 32, 31, 2 };
	struct weft_op *op;

	assert_int_equal(weft_window_puts(window), 1);
	assert_int_equal(weft_get(remote, &block, 1, NULL, &op), 0);
	end_well(op);
	weft_op_free(op);
	for (unsigned i = 0; i < sizeof(windowed); i++)
		assert_int_equal(windowed[i], 'w');
	weft_op_free(noted);
	weft_remote_close(remote);
	assert_int_equal(weft_unregister(region), 0);
	assert_int_equal(weft_window_close(window), 0);
}

static void open_some_of_everything(void)
{
	struct weft_node_options options = { .size = sizeof(options), .provider = "tcp" };
	struct weft_op *op, *call;
	ProtobufCService *one_call;
	const Calls__Nothing nothing = CALLS__NOTHING__INIT;
	const struct weft_call_options with_metadata = { .size = sizeof(with_metadata),
							 .metadata = &pair, .metadata_count = 1 };

	assert_int_equal(weft_node_open(&options, &node), 0);
	assert_int_equal(weft_node_open(&options, &server), 0);
	options.mode = WEFT_MANUAL;
	assert_int_equal(weft_node_open(&options, &manual), 0);
	assert_int_equal(weft_peer_open(node, weft_node_address(server), &peer), 0);
	assert_int_equal(weft_recv(server, NULL, 1, KEY, NULL, NULL, &received), 0);
	assert_int_equal(weft_send(peer, 1, KEY, &tensor, NULL, &op), 0);
	end_well(op);
	weft_op_free(op);
	end_well(received);
	assert_int_equal(weft_recv(node, peer, 2, KEY, NULL, NULL, &running), 0);
	assert_int_equal(weft_recv_set(node, peer, 2, &(struct weft_recv_item){ KEY, NULL }, 1, NULL, &set),
			 0);
	assert_int_equal(weft_broadcast(&peer, 1, 3, KEY, &tensor, NULL, &broadcast), 0);
	calls__test__init(&service, NULL);
	service.empty = keep_it;
	service.bounce = refuse_it;
	assert_int_equal(weft_serve(server, &service.base), 0);
	other_descriptor = calls__test__descriptor;
	other_descriptor.name = "calls.Other";
	other_service = service;
	other_service.base.descriptor = &other_descriptor;
	assert_int_equal(weft_stub_open(peer, &calls__test__descriptor, &stub), 0);
	assert_int_equal(weft_call_open(stub, NULL, &unmade_service, &unmade), 0);
	assert_int_equal(weft_call_open(stub, NULL, &one_call, &answered), 0);
	calls__test__bounce(one_call, &nothing, tell, NULL);
	end_with(answered, WEFT_ABORTED);
	assert_int_equal(weft_call_open(stub, &with_metadata, &one_call, &call), 0);
	calls__test__empty(one_call, &nothing, tell, NULL);
	weft_op_free(call);
	for (unsigned ms = 0; !atomic_load(&served); ms++) {
		assert_true(ms < LIMIT_NS / 1000000);
		usleep(1000);
	}
	open_a_stream();
	open_a_window();
	open_a_landing();
	join_alone();
	assert_int_equal(weft_queue_open(node, &queue), 0);
	assert_int_equal(weft_alloc(node, 100, &memory), 0);
	assert_int_equal(weft_alloc_near(node, 100, NULL, &near), 0);
	memset(near, 'p', 100);
}

static void end_the_broadcast(void)
{
	enum weft_status status;
	struct weft_op *op;

	assert_int_equal(weft_recv(server, NULL, 3, KEY, NULL, NULL, &op), 0);
	end_well(op);
	weft_op_free(op);
	end_well(broadcast);
	assert_int_equal(weft_broadcast_outcome(broadcast, 0, &status, NULL), 0);
	assert_int_equal(status, WEFT_OK);
	weft_op_free(broadcast);
}

/* As if no child had been. */
static void use_and_close_everything(void)
{
	struct weft_op *op;

	assert_false(weft_op_ended(running));
	weft_cancel(running);
	assert_int_equal(weft_wait(running, LIMIT_NS), 0);
	assert_int_equal(weft_op_status(running), WEFT_CANCELLED);
	weft_cancel(set);
	assert_int_equal(weft_wait(set, LIMIT_NS), 0);
	assert_int_equal(weft_op_status(set), WEFT_CANCELLED);
	assert_int_equal(weft_ping(peer, NULL, &op), 0);
	end_well(op);
	assert_int_equal(weft_served_cancelled(served), 0);
	weft_served_fail(served, WEFT_ABORTED, "by the parent");
	use_and_close_the_stream();
	use_and_close_the_window();
	assert_int_equal(weft_group_close(group), 0);
	use_and_close_the_landing();
	end_the_broadcast();
	weft_free(node, memory);
	for (unsigned i = 0; i < 100; i++)
		assert_int_equal(((char *)near)[i], 'p');
	weft_free(node, near);
	weft_op_free(op);
	weft_op_free(running);
	weft_op_free(set);
	weft_op_free(received);
	weft_op_free(unmade);
	weft_op_free(answered);
	weft_stub_close(stub);
	weft_queue_close(queue);
	weft_peer_close(peer);
	assert_int_equal(weft_node_close(manual), 0);
	assert_int_equal(weft_node_close(node), 0);
	assert_int_equal(weft_node_close(server), 0);
}

/* The first function that does something else, counted from 1. */
static int be_the_child(void)
{
	alarm((unsigned)(LIMIT_NS / 1000000000)); /* none may block */
	for (size_t i = 0; i < COUNT(functions); i++)
		if (!functions[i].as_it_should())
			return (int)i + 1;
	return 0;
}

static void no_function_touches_the_parents_node(void **state)
{
	int status;
	pid_t child;

	(void)state;
	open_some_of_everything();
	child = fork();
	assert_true(child >= 0);
	if (!child)
		_exit(be_the_child());
	assert_int_equal(waitpid(child, &status, 0), child);
	if (WIFEXITED(status) && WEXITSTATUS(status))
		fail_msg("%s, in a forked child", functions[WEXITSTATUS(status) - 1].name);
	assert_int_equal(status, 0);
	use_and_close_everything();
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(no_public_function_is_forgotten),
		cmocka_unit_test(no_function_touches_the_parents_node),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
