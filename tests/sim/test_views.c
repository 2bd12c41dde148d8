/* SPDX-License-Identifier: BSD-2-Clause */
/* Tensors that a peer of the same host looks at where they are, whoever dies or closes meanwhile. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "core/op.h"
#include "core/worker.h"
#include "link/lease.h"
#include "tests/sim/world.h"
#include "util/clock.h"

#define MS WF_NS_PER_MS
#define S WF_NS_PER_S
#define BYTES (64 * KIB)
#define LONG (3 * MIB + 17) /* four pieces of a checksum */
#define BACK_NS (1100 * MS) /* until a chunk is back of which nobody can tell */

static uint8_t buffer[LONG];

static void open_world(unsigned count)
{
	wf_world_open(WF_WORLD_SAME_HOST, count, NULL);
	for (unsigned i = 1; i < count; i++)
		wf_world_connect(0, i);
}

/* Memory of node 0, filled. */
static void *fresh(size_t bytes)
{
	void *memory;

	assert_int_equal(weft_alloc(wf_world_node(0), bytes, &memory), 0);
	wf_world_fill(memory, bytes, 5);
	return memory;
}

/* Into no memory of its own. */
static void receive(struct wf_flight *f, unsigned at, uint64_t step, uint32_t flags)
{
	struct weft_recv_options options = { .size = sizeof(options), .op = wf_flight_begin(f, 0) };

	options.op.flags = flags;
	assert_int_equal(weft_recv(wf_world_node(at), wf_world_peer(at, 0), step, "", 0, NULL,
				   &options, &f->op), 0);
}

static struct weft_path path_of(const struct wf_flight *f)
{
	struct weft_path path = { .size = sizeof(path) };

	assert_int_equal(weft_op_path(f->op, &path), 0);
	return path;
}

static const void *seen(const struct wf_flight *f, bool view)
{
	unsigned flags = 99;
	const struct weft_tensor *t = weft_op_tensor(f->op, &flags);

	assert_non_null(t);
	assert_int_equal(flags, view ? WEFT_READONLY : 0);
	return t->data;
}

static bool is_back(void *ctx)
{
	(void)ctx;
	return !wf_world_count(0).pool_bytes_used;
}

/* f[0] is the receive of node 1, which looks at memory that node 0 has given up. */
static const void *look(struct wf_flight f[2], size_t bytes, uint32_t flags)
{
	void *memory = fresh(bytes);

	receive(&f[0], 1, 7, flags);
	wf_flight_share(&f[1], 0, 1, 7, memory, bytes);
	weft_free(wf_world_node(0), memory);
	wf_flight_land(f, 2, 2 * S);
	assert_int_equal(f[0].status, WEFT_OK);
	assert_int_equal(f[1].status, WEFT_OK);
	return seen(&f[0], true);
}

static void a_shared_body_is_looked_at_until_it_is_freed(void **state)
{
	struct weft_path in, out;
	struct wf_flight f[2];

	(void)state;
	open_world(2);
	assert_true(wf_world_is_filled(look(f, BYTES, 0), BYTES, 5));
	in = path_of(&f[0]);
	out = path_of(&f[1]);
	assert_string_equal(in.way, "view");
	assert_string_equal(in.provider, "shm");
	assert_int_equal(in.bytes, BYTES);
	assert_int_equal(in.copies, 0);
	assert_int_equal(in.chunks, 0);
	assert_in_range(in.first_byte_ns, in.matched_ns, in.done_ns);
	assert_string_equal(out.way, "view");
	assert_int_equal(out.copies, 0);
	assert_int_equal(wf_world_count(1).bytes_viewed, BYTES);
	assert_int_equal(wf_world_count(1).bytes_pulled, 0);
	assert_int_equal(wf_world_count(1).pool_bytes_used, 0);

	wf_world_pass(5 * S);
	assert_true(wf_world_is_filled(seen(&f[0], true), BYTES, 5));
	assert_false(is_back(NULL));
	wf_flight_free(f, 2);
	assert_true(wf_world_run(is_back, NULL, 20 * MS));
	assert_int_equal(wf_world_close(), 0);
}

static void a_view_outlives_its_operation(void **state)
{
	struct wf_flight f[2];
	const void *view;

	(void)state;
	open_world(2);
	view = look(f, BYTES, 0);
	assert_ptr_equal(weft_op_take(f[0].op), view);
	assert_null(weft_op_take(f[0].op));
	wf_flight_free(f, 2);
	wf_world_pass(2 * S);
	assert_true(wf_world_is_filled(view, BYTES, 5));
	assert_false(is_back(NULL));
	weft_free(wf_world_node(1), (void *)(uintptr_t)view);
	assert_true(wf_world_run(is_back, NULL, 20 * MS));
	assert_int_equal(wf_world_close(), 0);
}

static void many_may_look_at_the_same_and_at_parts_of_it(void **state)
{
	struct wf_flight f[6];
	uint8_t *memory;

	(void)state;
	open_world(3);
	memory = fresh(BYTES);
	for (unsigned i = 0; i < 3; i++) {
		receive(&f[2 * i], 1 + i / 2, 7 + i, 0);
		wf_flight_share(&f[2 * i + 1], 0, 1 + i / 2, 7 + i, memory, BYTES - 8 * i);
	}
	wf_flight_land(f, 6, 2 * S);
	for (unsigned i = 0; i < 3; i++)
		assert_true(wf_world_is_filled(seen(&f[2 * i], true), BYTES - 8 * i, 5));
	wf_flight_free(f, 4);
	wf_world_pass(2 * S);
	assert_true(wf_world_is_filled(seen(&f[4], true), BYTES - 16, 5));
	wf_flight_free(&f[4], 2);
	wf_world_pass(2 * S);
	/* Its owner can read it still. */
	assert_false(is_back(NULL));
	assert_true(wf_world_is_filled(memory, BYTES, 5));
	weft_free(wf_world_node(0), memory);
	assert_true(is_back(NULL));
	assert_int_equal(wf_world_close(), 0);
}

static void *alloc(void *arg, const struct weft_tensor *want, uint64_t bytes)
{
	(void)arg;
	(void)want;
	return bytes <= sizeof(buffer) ? buffer : NULL;
}

static void a_receive_that_brings_memory_gets_a_copy(void **state)
{
	struct weft_recv_options options = { .size = sizeof(options), .alloc = alloc };
	struct wf_flight f[4];
	void *memory;

	(void)state;
	open_world(2);
	memory = fresh(BYTES);
	wf_flight_receive(&f[0], 1, 0, 7, buffer, BYTES, 0);
	wf_flight_share(&f[1], 0, 1, 7, memory, BYTES);
	wf_flight_land(f, 2, 2 * S);
	assert_string_equal(path_of(&f[0]).way, "pull");
	assert_string_equal(path_of(&f[1]).way, "pull");
	assert_true(wf_world_is_filled(buffer, BYTES, 5));

	memset(buffer, 0, BYTES);
	options.op = wf_flight_begin(&f[2], 0);
	assert_int_equal(weft_recv(wf_world_node(1), wf_world_peer(1, 0), 8, "", 0, NULL, &options,
				   &f[2].op), 0);
	wf_flight_share(&f[3], 0, 1, 8, memory, BYTES);
	weft_free(wf_world_node(0), memory);
	wf_flight_land(f, 4, 2 * S);
	assert_string_equal(path_of(&f[2]).way, "pull");
	assert_ptr_equal(seen(&f[2], false), buffer);
	assert_true(wf_world_is_filled(buffer, BYTES, 5));
	wf_flight_free(f, 4);
	assert_true(wf_world_run(is_back, NULL, 20 * MS));
	assert_int_equal(wf_world_close(), 0);
}

static void peers_of_other_hosts_get_a_copy(void **state)
{
	struct wf_flight f[2];
	void *memory;

	(void)state;
	wf_world_open(WF_WORLD_CONNECTED, 2, NULL);
	memory = fresh(LONG);
	receive(&f[0], 1, 7, 0);
	wf_flight_share(&f[1], 0, 1, 7, memory, LONG);
	weft_free(wf_world_node(0), memory);
	wf_flight_land(f, 2, 5 * S);
	assert_true(wf_world_is_filled(seen(&f[0], false), LONG, 5));
	assert_string_equal(path_of(&f[1]).way, "pull");
	assert_int_equal(path_of(&f[1]).copies, 0);
	assert_true(is_back(NULL));
	wf_flight_free(f, 2);
	assert_int_equal(wf_world_close(), 0);
}

static void a_checksum_is_made_of_what_is_seen(void **state)
{
	static const size_t sizes[] = { BYTES, LONG };
	struct wf_flight f[2];
	uint8_t *memory;

	(void)state;
	for (size_t i = 0; i < WF_COUNT(sizes); i++) {
		assert_int_equal(setenv("WEFT_CHECKSUM", "yes", 1), 0);
		open_world(2);
		assert_true(wf_world_is_filled(look(f, sizes[i], 0), sizes[i], 5));
		assert_string_equal(path_of(&f[0]).checksum, "xxh3");
		assert_string_equal(path_of(&f[0]).way, "view");
		wf_flight_free(f, 2);
		assert_true(wf_world_run(is_back, NULL, 20 * MS));

		/* Its owner breaks his promise. */
		memory = fresh(sizes[i]);
		wf_flight_share(&f[1], 0, 1, 7, memory, sizes[i]);
		wf_world_pass(20 * MS);
		if (sizes[i] == BYTES)
			memory[BYTES - 1] ^= 1;
		receive(&f[0], 1, 7, 0);
		wf_flight_land(f, 2, 2 * S);
		assert_int_equal(f[0].status, sizes[i] == BYTES ? WEFT_DATA_LOSS : WEFT_OK);
		if (sizes[i] == BYTES)
			assert_non_null(strstr(weft_op_message(f[0].op), "(view over shm"));
		assert_int_equal(f[1].status, f[0].status);
		wf_flight_free(f, 2);
		weft_free(wf_world_node(0), memory);
		assert_true(wf_world_run(is_back, NULL, 20 * MS));
		assert_int_equal(wf_world_close(), 0);
	}
}

/* Its sums can't come: it is given up in time, by whoever wants that. */
static void a_body_that_is_not_verified_is_not_seen(void **state)
{
	struct weft_recv_options brief = { .size = sizeof(brief), .flags = WEFT_DROP };
	struct wf_flight f[2];
	void *memory;

	(void)state;
	for (unsigned who = 0; who < 4; who++) {
		assert_int_equal(setenv("WEFT_CHECKSUM", "yes", 1), 0);
		open_world(2);
		memory = fresh(LONG);
		wf_flight_share(&f[1], 0, 1, 7, memory, LONG);
		weft_free(wf_world_node(0), memory);
		wf_world_pass(20 * MS);
		wf_world_hold_way(0, 1, true);
		brief.op = wf_flight_begin(&f[0], who ? 0 : 100 * MS);
		assert_int_equal(weft_recv(wf_world_node(1), NULL, 7, "", 0, NULL, &brief,
					   &f[0].op), 0);
		wf_world_pass(20 * MS);
		assert_int_equal(f[0].outcomes, 0);
		if (who == 1)
			weft_cancel(f[0].op);
		else if (who == 2)
			weft_cancel(f[1].op);
		else if (who == 3)
			assert_int_equal(weft_step_abort(wf_world_node(1), 7, WEFT_ABORTED, ""), 0);
		wf_world_pass(200 * MS);
		wf_world_hold_way(0, 1, false);
		wf_flight_land(f, 2, 2 * S);
		assert_int_equal(f[0].status, who == 0 ? WEFT_DEADLINE_EXCEEDED :
					      who == 3 ? WEFT_ABORTED : WEFT_CANCELLED);
		assert_int_equal(f[1].status, who < 2 ? WEFT_OK :
					      who == 3 ? WEFT_ABORTED : WEFT_CANCELLED);
		assert_null(weft_op_tensor(f[0].op, NULL));
		assert_true(wf_world_run(is_back, NULL, BACK_NS));
		wf_flight_free(f, 2);
		assert_int_equal(wf_world_close(), 0);
	}
}

static void a_view_is_not_harmed_by_the_owners_death(void **state)
{
	struct wf_flight f[2];
	const void *view;

	(void)state;
	open_world(2);
	view = look(f, BYTES, 0);
	wf_world_kill(0);
	wf_world_pass(5 * S);
	assert_true(wf_world_is_filled(view, BYTES, 5));
	wf_flight_free(f, 2);
	wf_world_pass(100 * MS);
	assert_int_equal(wf_world_close(), 0);
}

static void nor_when_the_owner_closes(void **state)
{
	struct wf_flight f[2];
	const void *view;

	(void)state;
	open_world(2);
	view = look(f, BYTES, 0);
	wf_flight_free(&f[1], 1);
	wf_world_leave(0);
	wf_world_pass(2 * S);
	assert_true(wf_world_is_filled(view, BYTES, 5));
	wf_flight_free(f, 1);
	assert_int_equal(wf_world_close(), 0);
}

static void a_chunk_that_the_dead_looked_at_comes_back(void **state)
{
	struct wf_flight f[2];

	(void)state;
	open_world(2);
	(void)look(f, BYTES, 0);
	wf_world_kill(1);
	assert_true(wf_world_run(is_back, NULL, BACK_NS));
	wf_flight_free(f, 2);
	assert_int_equal(wf_world_close(), 0);
}

static void and_what_they_looked_at_who_close(void **state)
{
	struct wf_flight f[2];

	(void)state;
	open_world(2);
	(void)look(f, BYTES, 0);
	wf_flight_free(&f[1], 1);
	wf_world_leave(1);
	weft_op_free(f[0].op);
	assert_true(wf_world_run(is_back, NULL, BACK_NS));
	assert_int_equal(wf_world_close(), 0);
}

static void a_peer_taken_for_dead_keeps_its_view_in_peace(void **state)
{
	struct wf_flight f[2], ping;
	const void *view;
	void *other;

	(void)state;
	wf_world_lose_soon();
	open_world(2);
	view = look(f, BYTES, 0);
	wf_flight_free(&f[1], 1);
	wf_world_freeze(1, true);
	wf_flight_ping(&ping, 0, 1, 5 * S);
	wf_flight_land(&ping, 1, 5 * S);
	assert_int_equal(ping.status, WEFT_UNAVAILABLE);
	wf_flight_free(&ping, 1);
	wf_world_pass(3 * S);
	/* It is nobody else's. */
	other = fresh(BYTES);
	memset(other, 0, BYTES);
	wf_world_freeze(1, false);
	wf_world_pass(3 * S);
	assert_true(wf_world_is_filled(view, BYTES, 5));
	weft_free(wf_world_node(0), other);
	assert_false(is_back(NULL));
	wf_flight_free(f, 1);
	assert_true(wf_world_run(is_back, NULL, BACK_NS));
	assert_int_equal(wf_world_close(), 0);
}

static void an_offer_that_is_taken_back_is_not_looked_at(void **state)
{
	struct wf_flight f[2];
	void *memory;

	(void)state;
	open_world(2);
	memory = fresh(BYTES);
	wf_flight_share(&f[1], 0, 1, 7, memory, BYTES);
	weft_free(wf_world_node(0), memory);
	wf_world_pass(20 * MS);
	weft_cancel(f[1].op);
	wf_flight_land(&f[1], 1, S);
	assert_int_equal(f[1].status, WEFT_CANCELLED);
	assert_true(is_back(NULL));
	assert_int_equal(wf_shm_export_held(wf_world_node(0)->workers[0].engine.shm_export), 0);
	wf_flight_free(&f[1], 1);
	assert_int_equal(wf_world_close(), 0);
}

static struct wf_outgoing *offered(struct weft_node *owner)
{
	uint32_t at = 0;

	return wf_table_next(&owner->workers[0].transfer.outgoing, &at);
}

static void a_body_not_lent_any_more_is_offered_anew(void **state)
{
	struct weft_node *owner;
	struct wf_outgoing *outgoing;
	struct wf_flight f[2];
	void *memory;

	(void)state;
	open_world(2);
	owner = wf_world_node(0);
	memory = fresh(BYTES);
	wf_flight_share(&f[1], 0, 1, 7, memory, BYTES);
	wf_world_pass(20 * MS);
	outgoing = offered(owner);
	wf_shm_export_end(owner->workers[0].engine.shm_export, outgoing->offer.place);
	outgoing->offer.lent = false;
	receive(&f[0], 1, 7, 0);
	wf_flight_land(f, 2, S);
	assert_int_equal(f[0].status, WEFT_OK);
	assert_int_equal(f[1].status, WEFT_OK);
	assert_true(wf_world_is_filled(seen(&f[0], false), BYTES, 5));
	assert_string_equal(path_of(&f[0]).way, "pull");
	wf_flight_free(f, 2);
	weft_free(owner, memory);
	assert_int_equal(wf_world_close(), 0);
}

/* The owner gave it up with the peer; then it is the peer's loss, and nobody has cancelled. */
static void an_offer_over_without_a_word_ends_as_its_link_does(void **state)
{
	struct wf_flight f[2];
	struct wf_error e;
	void *memory;

	(void)state;
	open_world(2);
	wf_world_connect(1, 0);
	memory = fresh(BYTES);
	wf_flight_share(&f[1], 0, 1, 7, memory, BYTES);
	wf_world_pass(20 * MS);
	wf_error_set(&e, -ENOTCONN, "taken for dead");
	wf_outgoing_fail(offered(wf_world_node(0)), &e);
	wf_world_freeze(0, true);
	receive(&f[0], 1, 7, 0);
	wf_flight_land(&f[0], 1, 10 * S);
	assert_int_equal(f[0].status, WEFT_UNAVAILABLE);
	wf_world_freeze(0, false);
	wf_flight_land(&f[1], 1, 10 * S);
	assert_int_equal(f[1].status, WEFT_UNAVAILABLE);
	wf_flight_free(f, 2);
	weft_free(wf_world_node(0), memory);
	assert_int_equal(wf_world_close(), 0);
}

static void a_body_lent_beyond_the_limit_is_copied(void **state)
{
	static struct wf_flight out[WF_LEASES_MAX + 3], in[WF_LEASES_MAX + 3];
	unsigned views = 0;
	void *memory;

	(void)state;
	open_world(2);
	memory = fresh(16 * KIB);
	for (unsigned i = 0; i < WF_COUNT(out); i++)
		wf_flight_share(&out[i], 0, 1, i, memory, 16 * KIB);
	for (unsigned i = 0; i < WF_COUNT(in); i++)
		receive(&in[i], 1, i, 0);
	wf_flight_land(out, WF_COUNT(out), 60 * S);
	wf_flight_land(in, WF_COUNT(in), 5 * S);
	for (unsigned i = 0; i < WF_COUNT(in); i++) {
		bool view = !strcmp(path_of(&in[i]).way, "view");

		assert_true(wf_world_is_filled(seen(&in[i], view), 16 * KIB, 5));
		views += view;
	}
	assert_int_equal(views, WF_LEASES_MAX);
	assert_int_equal(wf_shm_export_held(wf_world_node(0)->workers[0].engine.shm_export),
			 WF_LEASES_MAX);
	wf_flight_free(out, WF_COUNT(out));
	wf_flight_free(in, WF_COUNT(in));
	weft_free(wf_world_node(0), memory);
	assert_true(wf_world_run(is_back, NULL, BACK_NS));
	assert_int_equal(wf_shm_export_held(wf_world_node(0)->workers[0].engine.shm_export), 0);
	assert_int_equal(wf_world_close(), 0);
}

static unsigned mapped(void)
{
	FILE *maps = fopen("/proc/self/maps", "r");
	unsigned count = 0;
	char line[512];

	assert_non_null(maps);
	while (fgets(line, sizeof(line), maps))
		count += strstr(line, "weft-pool") && strstr(line, "r--s");
	(void)fclose(maps);
	return count;
}

static void a_slab_that_its_owner_gives_up_is_unmapped_by_its_readers(void **state)
{
	struct wf_flight f[2];
	void *memory;

	(void)state;
	assert_int_equal(setenv("WEFT_POOL_BYTES", "8M", 1), 0);
	open_world(2);
	(void)look(f, LONG, 0);
	wf_flight_free(f, 2);
	assert_true(wf_world_run(is_back, NULL, 20 * MS));
	wf_world_pass(3 * S);
	assert_int_equal(mapped(), 1);
	/* Known, and not mapped again. */
	(void)look(f, LONG, 0);
	assert_int_equal(mapped(), 1);
	wf_flight_free(f, 2);
	assert_true(wf_world_run(is_back, NULL, 20 * MS));
	memory = fresh(8 * MIB);
	wf_world_pass(1100 * MS);
	assert_int_equal(mapped(), 0);
	weft_free(wf_world_node(0), memory);
	assert_int_equal(wf_world_close(), 0);
}

static void only_memory_of_the_pool_is_shared(void **state)
{
	struct weft_send_options options = { .size = sizeof(options), .flags = WEFT_SHARE };
	int64_t shape[2] = { 4, 100 }, strides[2] = { 200, 1 };
	struct weft_tensor t = { .data = buffer, .device = { WEFT_CPU, 0 }, .ndim = 2,
				 .dtype = { WEFT_UINT, 8, 1 }, .shape = shape };
	struct weft_op *op;
	void *memory;

	(void)state;
	open_world(2);
	assert_int_equal(weft_send(wf_world_peer(0, 1), 7, "", 0, &t, &options, &op), -EINVAL);
	t.data = memory = fresh(BYTES);
	t.byte_offset = BYTES - 100;
	assert_int_equal(weft_send(wf_world_peer(0, 1), 7, "", 0, &t, &options, &op), -EINVAL);
	t.byte_offset = 0;
	t.strides = strides;
	assert_int_equal(weft_send(wf_world_peer(0, 1), 7, "", 0, &t, &options, &op), -EINVAL);
	options.flags = WEFT_SHARE | WEFT_SNAPSHOT;
	t.strides = NULL;
	assert_int_equal(weft_send(wf_world_peer(0, 1), 7, "", 0, &t, &options, &op), -EINVAL);
	weft_free(wf_world_node(0), memory);
	assert_true(is_back(NULL));
	assert_int_equal(wf_world_close(), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_shared_body_is_looked_at_until_it_is_freed),
		cmocka_unit_test(a_view_outlives_its_operation),
		cmocka_unit_test(many_may_look_at_the_same_and_at_parts_of_it),
		cmocka_unit_test(a_receive_that_brings_memory_gets_a_copy),
		cmocka_unit_test(peers_of_other_hosts_get_a_copy),
		cmocka_unit_test(a_checksum_is_made_of_what_is_seen),
		cmocka_unit_test(a_body_that_is_not_verified_is_not_seen),
		cmocka_unit_test(a_view_is_not_harmed_by_the_owners_death),
		cmocka_unit_test(nor_when_the_owner_closes),
		cmocka_unit_test(a_chunk_that_the_dead_looked_at_comes_back),
		cmocka_unit_test(and_what_they_looked_at_who_close),
		cmocka_unit_test(a_peer_taken_for_dead_keeps_its_view_in_peace),
		cmocka_unit_test(an_offer_that_is_taken_back_is_not_looked_at),
		cmocka_unit_test(a_body_not_lent_any_more_is_offered_anew),
		cmocka_unit_test(an_offer_over_without_a_word_ends_as_its_link_does),
		cmocka_unit_test(a_body_lent_beyond_the_limit_is_copied),
		cmocka_unit_test(a_slab_that_its_owner_gives_up_is_unmapped_by_its_readers),
		cmocka_unit_test(only_memory_of_the_pool_is_shared),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
