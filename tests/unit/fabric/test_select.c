/* SPDX-License-Identifier: BSD-2-Clause */
/* Which offers are used, and what is said of the others. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include <rdma/fi_errno.h>

#include "fabric/select.h"
#include "tests/fake/fabric.h"
#include "tests/unit/machine.h"

/* As on a host with everything; libfabric puts eth0 before lo. */
static void offer_all(void)
{
	wf_fake_open(&(struct wf_fake){ .seed = 1 });
	wf_fake_offer_nothing();
	wf_fake_offer(FI_EP_MSG, "tcp", "eth0", "10.0.0.1");
	wf_fake_offer(FI_EP_MSG, "tcp", "eth0", "fe80::1");
	wf_fake_offer(FI_EP_MSG, "tcp", "eth0", "fd00::1");
	wf_fake_offer(FI_EP_MSG, "tcp", "lo", "127.0.0.1");
	wf_fake_offer(FI_EP_MSG, "net", "lo", "127.0.0.1");
	wf_fake_offer(FI_EP_MSG, "sockets", "lo", "127.0.0.1");
	wf_fake_offer(FI_EP_MSG, "verbs", "mlx5_0", "10.1.0.1");
	wf_fake_offer(FI_EP_RDM, "tcp;ofi_rxm", "lo", "127.0.0.1");
	wf_fake_offer(FI_EP_RDM, "sockets", "lo", "127.0.0.1");
	wf_fake_offer(FI_EP_RDM, "udp;ofi_rxd", "lo", "127.0.0.1");
	wf_fake_offer(FI_EP_RDM, "shm", "shm", NULL);
	wf_fake_offer(FI_EP_RDM, "efa", "rdmap0", NULL);
	wf_fake_offer(FI_EP_RDM, "warp", "warp0", NULL);
}

static struct wf_options options(const char *listen)
{
	struct wf_options o = { .rdma = true, .shm = true };

	strcpy(o.listen, listen);
	return o;
}

static int set_up(void **state)
{
	(void)state;
	offer_all();
	unsetenv("FI_PROVIDER"); /* the fake has named its own offers */
	return 0;
}

static int tear_down(void **state)
{
	(void)state;
	unsetenv("FI_PROVIDER");
	return wf_fake_close() ? -1 : 0;
}

static const struct wf_select_candidate *find(const struct wf_select *s, const char *provider,
					      const char *domain)
{
	size_t i;

	for (i = 0; i < s->count; i++)
		if (!strcmp(s->all[i].caps.provider, provider) &&
		    (!domain || !strcmp(s->all[i].caps.domain, domain)))
			return &s->all[i];
	return NULL;
}

static bool is_used(const struct wf_select *s, const char *provider, const char *domain)
{
	const struct wf_select_candidate *c = find(s, provider, domain);

	assert_non_null(c);
	assert_true(c->reason[0]);
	return c->used;
}

static void used_come_in_order_of_rank(void **state)
{
	static const char *const expected[] = { "shm", "verbs", "tcp" };
	struct wf_options o = options("10.0.0.1:0");
	struct wf_select s;
	size_t i, n = 0;

	(void)state;
	assert_int_equal(wf_select_open(&o, &s, NULL), 0);
	for (i = 0; i < s.count; i++) {
		if (!s.all[i].used)
			continue;
		assert_true(n < WF_COUNT(expected));
		assert_string_equal(s.all[i].caps.provider, expected[n]);
		n++;
	}
	assert_int_equal(n, WF_COUNT(expected));
	for (i = 1; i < s.count; i++)
		assert_true(s.all[i - 1].row->rank <= s.all[i].row->rank);
	wf_select_close(&s);
}

static void an_adapter_that_reaches_devices_is_asked_for_it(void **state)
{
	static const struct {
		const char *cuda;
		bool offered, device;
	} rows[] = {
		{ "", false, false },
		{ "", true, true },
		{ "no", true, false },
	};
	struct wf_select s;

	(void)state;
	for (size_t i = 0; i < WF_COUNT(rows); i++) {
		struct wf_options o = options("10.0.0.1:0");

		strcpy(o.cuda, rows[i].cuda);
		wf_fake_offer_nothing();
		wf_fake_offer(FI_EP_MSG, "tcp", "eth0", "10.0.0.1");
		wf_fake_offer(FI_EP_MSG, "verbs", "mlx5_0", "10.1.0.1");
		if (rows[i].offered)
			wf_fake_offer_device();
		assert_int_equal(wf_select_open(&o, &s, NULL), 0);
		assert_int_equal(s.count, 2);
		assert_true(is_used(&s, "verbs", "mlx5_0"));
		assert_int_equal(find(&s, "verbs", NULL)->caps.memory.device, rows[i].device);
		assert_false(find(&s, "tcp", NULL)->caps.memory.device);
		wf_select_close(&s);
	}
}

static void the_domain_that_has_our_address_serves(void **state)
{
	static const struct {
		const char *listen;
		bool lo, eth0;
	} rows[] = {
		{ "127.0.0.1:0", true, false },
		{ ":7000", true, false },
		{ "127.0.0.9:0", true, false },
		{ "10.0.0.1:0", false, true },
		{ "[fd00::1]:0", false, true },
		{ "0.0.0.0:0", false, true }, /* loopback reaches no other host */
		{ "[::]:0", false, true },
	};
	size_t i;

	(void)state;
	for (i = 0; i < WF_COUNT(rows); i++) {
		struct wf_options o = options(rows[i].listen);
		struct wf_select s;

		assert_int_equal(wf_select_open(&o, &s, NULL), 0);
		assert_int_equal(is_used(&s, "tcp", "lo"), rows[i].lo);
		assert_int_equal(is_used(&s, "tcp", "eth0"), rows[i].eth0);
		wf_select_close(&s);
	}
}

static void an_adapter_stays_silent_while_we_keep_to_loopback(void **state)
{
	struct wf_options o = options("127.0.0.1:0");
	struct wf_select s;

	(void)state;
	assert_int_equal(wf_select_open(&o, &s, NULL), 0);
	assert_false(is_used(&s, "verbs", NULL));
	wf_select_close(&s);
}

static void formats_of_one_domain_are_one_candidate(void **state)
{
	struct wf_options o = options("[fd00::1]:0");
	struct wf_select s;
	size_t i, n = 0;

	(void)state;
	assert_int_equal(wf_select_open(&o, &s, NULL), 0);
	for (i = 0; i < s.count; i++)
		n += !strcmp(s.all[i].caps.provider, "tcp") &&
		     !strcmp(s.all[i].caps.domain, "eth0");
	assert_int_equal(n, 1);
	assert_int_equal(find(&s, "tcp", "eth0")->info->addr_format, FI_SOCKADDR_IN6);
	wf_select_close(&s);
}

static void some_providers_serve_only_when_named(void **state)
{
	static const char *const names[] = { "net", "sockets", "tcp;ofi_rxm", "warp" };
	struct wf_options o = options("127.0.0.1:0");
	struct wf_select s;
	size_t i;

	(void)state;
	assert_int_equal(wf_select_open(&o, &s, NULL), 0);
	for (i = 0; i < WF_COUNT(names); i++) {
		assert_false(is_used(&s, names[i], NULL));
		assert_non_null(strstr(find(&s, names[i], NULL)->reason, "names it"));
	}
	wf_select_close(&s);

	for (i = 0; i < WF_COUNT(names); i++) {
		strcpy(o.provider, names[i]);
		assert_int_equal(wf_select_open(&o, &s, NULL), 0);
		assert_true(is_used(&s, names[i], NULL));
		assert_false(is_used(&s, "tcp", "lo"));
		wf_select_close(&s);

		o.provider[0] = 0;
		setenv("FI_PROVIDER", names[i], 1);
		assert_int_equal(wf_select_open(&o, &s, NULL), 0);
		assert_true(is_used(&s, names[i], NULL));
		assert_null(find(&s, "shm", NULL));
		wf_select_close(&s);
		unsetenv("FI_PROVIDER");
	}
}

static void several_may_be_named(void **state)
{
	struct wf_options o = options("127.0.0.1:0");
	struct wf_select s;

	(void)state;
	strcpy(o.provider, "sockets,TCP");
	assert_int_equal(wf_select_open(&o, &s, NULL), 0);
	assert_true(is_used(&s, "sockets", NULL));
	assert_true(is_used(&s, "tcp", "lo"));
	assert_false(is_used(&s, "shm", NULL));
	wf_select_close(&s);
}

static void naming_one_shows_no_layers_over_it(void **state)
{
	struct wf_options o = options("127.0.0.1:0");
	struct wf_select s;
	size_t i;

	(void)state;
	setenv("FI_PROVIDER", "tcp", 1);
	assert_int_equal(wf_select_open(&o, &s, NULL), 0);
	assert_true(s.count > 0);
	for (i = 0; i < s.count; i++)
		assert_string_equal(s.all[i].caps.provider, "tcp");
	wf_select_close(&s);
}

static void excluding_one_names_nobody(void **state)
{
	struct wf_options o = options("127.0.0.1:0");
	struct wf_select s;

	(void)state;
	setenv("FI_PROVIDER", "^tcp", 1);
	assert_int_equal(wf_select_open(&o, &s, NULL), 0);
	assert_null(find(&s, "tcp", NULL));
	assert_false(is_used(&s, "net", NULL));
	wf_select_close(&s);
}

static void an_empty_choice_gets_a_sentence(void **state)
{
	static const struct {
		const char *variable, *provider, *device, *says;
	} rows[] = {
		{ "", "", "", "FI_PROVIDER is set but empty" },
		{ "nosuch", "", "", "FI_PROVIDER=nosuch" },
		{ NULL, "nosuch", "", "WEFT_PROVIDER=nosuch" },
		{ NULL, "", "eth9", "WEFT_DEVICE=eth9" },
		{ NULL, "", "eth9", "the devices here are mlx5_0, rdmap0, lo, eth0, warp0, and" },
		{ NULL, "", "eth0", "WEFT_DEVICE=eth0: eth0 does not have 127.0.0.1, where this node "
				    "listens; set WEFT_LISTEN to an address of that device" },
		{ "tcp", "shm", "", "WEFT_PROVIDER=shm" },
	};
	size_t i;

	(void)state;
	for (i = 0; i < WF_COUNT(rows); i++) {
		struct wf_options o = options("127.0.0.1:0");
		struct wf_select s = { 0 };
		struct wf_error e = { 0 };

		strcpy(o.provider, rows[i].provider);
		strcpy(o.device, rows[i].device);
		if (rows[i].variable)
			setenv("FI_PROVIDER", rows[i].variable, 1);
		assert_int_equal(wf_select_open(&o, &s, &e), -ENODATA);
		if (!strstr(e.text, rows[i].says))
			fail_msg("%s, which does not say: %s", e.text, rows[i].says);
		assert_null(s.all);
		unsetenv("FI_PROVIDER");
	}
}

static void a_refused_provider_says_why(void **state)
{
	struct wf_options o = options("127.0.0.1:0");
	struct wf_select s;
	struct wf_error e = { 0 };

	(void)state;
	assert_int_equal(wf_select_open(&o, &s, NULL), 0);
	assert_false(is_used(&s, "udp;ofi_rxd", NULL));
	wf_select_close(&s);

	strcpy(o.provider, "udp;ofi_rxd");
	assert_int_equal(wf_select_open(&o, &s, &e), -EINVAL);
	assert_non_null(strstr(e.text, "restart"));
	o.provider[0] = 0;
	setenv("FI_PROVIDER", "udp", 1);
	assert_int_equal(wf_select_open(&o, &s, &e), -EINVAL);
	unsetenv("FI_PROVIDER");

	wf_fake_offer(FI_EP_RDM, "tcp;ofi_rxm;ofi_mrail", "ofi_mrail_domain", NULL);
	strcpy(o.provider, "tcp;ofi_rxm;ofi_mrail");
	assert_int_equal(wf_select_open(&o, &s, &e), -EINVAL);
	assert_non_null(strstr(e.text, "name the NICs in WEFT_DEVICE"));
}

static int open_named(const char *provider, struct wf_error *e)
{
	struct wf_options o = options("10.0.0.1:0");
	struct wf_select s;
	int err;

	snprintf(o.provider, sizeof(o.provider), "%s", provider);
	err = wf_select_open(&o, &s, e);
	if (!err)
		wf_select_close(&s);
	return err;
}

static void a_forked_child_is_refused_what_it_cannot_use(void **state)
{
	struct wf_error e = { 0 };
	int status;
	pid_t child;

	(void)state;
	wf_fake_offer(FI_EP_RDM, "verbs;ofi_rxm", "mlx5_0", "10.0.0.1");
	assert_int_equal(open_named("", NULL), 0);
	assert_int_equal(open_named("verbs", NULL), 0);
	child = fork();
	if (child == 0) {
		if (open_named("", NULL) || open_named("tcp", NULL))
			_exit(1);
		if (open_named("verbs", &e) != -EINVAL || !strstr(e.text, "exec"))
			_exit(2);
		_exit(open_named("verbs;ofi_rxm", &e) == -EINVAL && strstr(e.text, "exec") ? 0 : 3);
	}
	assert_true(child > 0);
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_int_equal(status, 0);
}

static void an_untested_provider_is_not_chosen_unasked(void **state)
{
	struct wf_options o = options("10.0.0.1:0");
	struct wf_select s;

	(void)state;
	assert_int_equal(wf_select_open(&o, &s, NULL), 0);
	for (size_t i = 0; i < s.count; i++)
		assert_true(s.all[i].caps.tested || !s.all[i].used);
	assert_string_equal(find(&s, "efa", NULL)->reason,
			    "serves only when FI_PROVIDER or WEFT_PROVIDER names it");
	wf_select_close(&s);
	strcpy(o.provider, "efa");
	assert_int_equal(wf_select_open(&o, &s, NULL), 0);
	assert_true(is_used(&s, "efa", NULL));
	wf_select_close(&s);
}

static void switches_keep_kinds_out(void **state)
{
	struct wf_options o = options("10.0.0.1:0");
	struct wf_select s;

	(void)state;
	o.rdma = false;
	o.shm = false;
	assert_int_equal(wf_select_open(&o, &s, NULL), 0);
	assert_false(is_used(&s, "verbs", NULL));
	assert_false(is_used(&s, "efa", NULL));
	assert_false(is_used(&s, "shm", NULL));
	assert_true(is_used(&s, "tcp", "eth0"));
	wf_select_close(&s);
}

static void a_device_is_named_by_name_or_address(void **state)
{
	static const char *const names[] = { "mlx5_0", "10.1.0.1", "mlx5_3,mlx5_0" };
	size_t i;

	(void)state;
	for (i = 0; i < WF_COUNT(names); i++) {
		struct wf_options o = options("10.0.0.1:0");
		struct wf_select s;

		strcpy(o.device, names[i]);
		assert_int_equal(wf_select_open(&o, &s, NULL), 0);
		assert_true(is_used(&s, "verbs", NULL));
		assert_false(is_used(&s, "tcp", "eth0"));
		assert_true(is_used(&s, "shm", NULL)); /* it is no device */
		wf_select_close(&s);
	}
}

static void a_device_that_does_not_serve_is_not_said_to_be_missing(void **state)
{
	struct wf_options o = options("127.0.0.1:0");
	struct wf_select s;

	(void)state;
	strcpy(o.device, "eth0");
	assert_int_equal(wf_select_look(&o, &s, NULL), 0);
	assert_false(is_used(&s, "shm", NULL));
	assert_string_equal(find(&s, "shm", NULL)->reason,
			    "WEFT_DEVICE names a device that does not serve");
	assert_string_equal(find(&s, "tcp", "eth0")->reason,
			    "does not have 127.0.0.1, where this node listens");
	wf_select_close(&s);

	strcpy(o.device, "eth9");
	assert_int_equal(wf_select_look(&o, &s, NULL), 0);
	assert_string_equal(find(&s, "shm", NULL)->reason,
			    "WEFT_DEVICE names a device that is not here");
	wf_select_close(&s);
}

static void a_name_that_no_offer_has_is_told(void **state)
{
	static const struct {
		const char *provider, *absent;
	} rows[] = {
		{ "", "" }, { "TCP", "" }, { "tcp,foo", "foo" }, { "bar,tcp,foo", "bar,foo" },
		{ "tcp,tc", "tc" }, { ",tcp,", "" },
	};
	char names[WF_OPTION_TEXT_BYTES];

	(void)state;
	for (size_t i = 0; i < WF_COUNT(rows); i++) {
		struct wf_options o = options("127.0.0.1:0");
		struct wf_select s;

		strcpy(o.provider, rows[i].provider);
		assert_int_equal(wf_select_open(&o, &s, NULL), 0);
		assert_int_equal(wf_select_absent(&s, &o, names), rows[i].absent[0] != '\0');
		assert_string_equal(names, rows[i].absent);
		wf_select_close(&s);
	}
}

static void devices_that_are_named_together_serve_together(void **state)
{
	struct wf_options o = options("10.0.2.1:0");
	struct wf_select s;

	(void)state;
	wf_fake_offer(FI_EP_MSG, "tcp", "eth1", "10.0.1.1");
	wf_fake_offer(FI_EP_MSG, "tcp", "eth2", "10.0.2.1");
	wf_fake_offer(FI_EP_RDM, "efa", "rdmap1", NULL);
	strcpy(o.device, "eth1,eth2,rdmap0,rdmap1");
	strcpy(o.provider, "tcp,efa");
	assert_int_equal(wf_select_open(&o, &s, NULL), 0);
	assert_true(is_used(&s, "tcp", "eth1"));
	assert_true(is_used(&s, "tcp", "eth2"));
	assert_false(is_used(&s, "tcp", "eth0"));
	/* What has no endpoint for each peer is not spread. */
	assert_true(is_used(&s, "efa", "rdmap0"));
	assert_false(is_used(&s, "efa", "rdmap1"));
	/* The one that we listen at goes first, and the other is for bodies. */
	assert_true(find(&s, "tcp", "eth2") < find(&s, "tcp", "eth1"));
	assert_string_equal(find(&s, "tcp", "eth1")->reason, "for bodies, beside eth2");
	wf_select_close(&s);

	strcpy(o.device, "");
	assert_int_equal(wf_select_open(&o, &s, NULL), 0);
	assert_false(is_used(&s, "tcp", "eth1"));
	wf_select_close(&s);

	strcpy(o.listen, "127.0.0.1:0");
	strcpy(o.device, "lo,eth1");
	assert_int_equal(wf_select_open(&o, &s, NULL), 0);
	assert_true(is_used(&s, "tcp", "lo"));
	assert_false(is_used(&s, "tcp", "eth1"));
	wf_select_close(&s);
}

static void a_host_that_means_nothing_is_refused(void **state)
{
	struct wf_options o = options("300.1.2.3.4:0");
	struct wf_select s;
	struct wf_error e = { 0 };

	(void)state;
	assert_int_equal(wf_select_open(&o, &s, &e), -EINVAL);
	assert_non_null(strstr(e.text, "300.1.2.3.4"));
}

static void options_win_over_the_row(void **state)
{
	struct wf_options o = options("127.0.0.1:0");
	struct wf_select s;
	const struct wf_select_candidate *c;

	(void)state;
	assert_int_equal(wf_select_open(&o, &s, NULL), 0);
	c = find(&s, "tcp", "lo");
	assert_int_equal(c->caps.chunk_bytes, c->row->chunk_bytes);
	assert_int_equal(c->caps.depth, c->row->depth);
	assert_int_equal(c->caps.eager_bytes, c->row->eager_bytes);
	assert_int_equal(c->caps.frame_bytes, c->row->frame_bytes);
	wf_select_close(&s);

	o.chunk_bytes = 1 * GIB; /* more than libfabric says a read may have */
	o.depth = 9;
	o.eager_bytes = 100;
	o.frame_bytes = 2 * KIB;
	assert_int_equal(wf_select_open(&o, &s, NULL), 0);
	c = find(&s, "tcp", "lo");
	assert_int_equal(c->caps.chunk_bytes, c->caps.read_bytes_max);
	assert_int_equal(c->caps.depth, 9);
	assert_int_equal(c->caps.eager_bytes, 100);
	assert_int_equal(c->caps.frame_bytes, 2 * KIB);
	wf_select_close(&s);

	o.frame_bytes = 1 * MIB; /* longer than the provider is safe with */
	assert_int_equal(wf_select_open(&o, &s, NULL), 0);
	c = find(&s, "tcp", "lo");
	assert_int_equal(c->caps.frame_bytes, c->row->frame_bytes);
	wf_select_close(&s);
}

static void an_unknown_provider_gets_the_generic_row(void **state)
{
	(void)state;
	assert_null(wf_provider_find("warp")->name);
	assert_null(wf_provider_find("warp;ofi_hook")->name);
	assert_null(wf_provider_find("tcpx")->name);
	assert_null(wf_provider_find("")->name);
	assert_string_equal(wf_provider_find("verbs;ofi_rxm")->label, "rxm");
	assert_string_equal(wf_provider_find("udp;ofi_rxd")->label, "udp");
	assert_string_equal(wf_provider_find("tcp;ofi_rxm;ofi_mrail")->label, "mrail");
}

static void rows_hold_together(void **state)
{
	const char *top = getenv("top_srcdir");
	char path[512];
	size_t i;

	(void)state;
	for (i = 0; wf_providers[i]; i++) {
		const struct wf_provider *row = wf_providers[i];
		const struct wf_provider_quirk *q;

		assert_true(row->label && row->label[0]);
		assert_true(i == 0 || wf_providers[i - 1]->rank < row->rank);
		assert_true(!row->name == !wf_providers[i + 1]); /* the generic one is last */
		assert_true(row->frame_bytes >= 1 * KIB && row->frame_bytes <= 65 * KIB);
		assert_true(row->eager_bytes + KIB >= row->frame_bytes); /* with its head */
		assert_true(row->chunk_bytes >= 64 * KIB && row->depth >= 1);
		for (q = row->quirks; q->kind != WF_QUIRK_NONE; q++) {
			assert_non_null(q->why);
			assert_non_null(q->test);
			snprintf(path, sizeof(path), "%s/%s", top ? top : ".", q->test);
			assert_int_equal(access(path, R_OK), 0);
		}
	}
}

static void a_quirk_ends_with_the_version_that_cured_it(void **state)
{
	const struct wf_provider *tcp = wf_provider_find("tcp");

	(void)state;
	assert_true(wf_provider_has(tcp, WF_QUIRK_CQ_PER_EP, FI_VERSION(1, 17)));
	assert_false(wf_provider_has(tcp, WF_QUIRK_CQ_PER_EP, FI_VERSION(1, 18)));
	assert_true(wf_provider_has(tcp, WF_QUIRK_LOCAL_NICS, FI_VERSION(2, 6)));
	assert_false(wf_provider_has(tcp, WF_QUIRK_SYNC_READ, FI_VERSION(1, 17)));
}

static void the_library_is_never_asked_for_more_than_it_is(void **state)
{
	struct wf_options o = options("127.0.0.1:0");
	struct wf_select s;

	(void)state;
	/* The fake stops the test if a later version is asked for. */
	wf_fake_knobs()->version = FI_VERSION(1, 15);
	assert_int_equal(wf_select_open(&o, &s, NULL), 0);
	assert_string_equal(wf_select_libfabric_text(), "1.15");
	wf_select_close(&s);
	wf_fake_knobs()->version = FI_VERSION(2, 6);
	assert_int_equal(wf_select_open(&o, &s, NULL), 0);
	assert_int_equal(s.all[0].caps.libfabric, FI_VERSION(2, 6));
	wf_select_close(&s);
}

/* Several NICs of each kind, and the process on NUMA node @home; -1: on both. */
static struct wf_options on_machine(int home)
{
	struct wf_options o = options("0.0.0.0:0");

	wf_fake_offer_nothing();
	wf_fake_offer(FI_EP_MSG, "tcp", "lo", "127.0.0.1");
	wf_fake_offer(FI_EP_MSG, "tcp", "eth0", "10.0.0.1");
	wf_fake_offer(FI_EP_MSG, "tcp", "dummy0", "10.0.9.1");
	wf_fake_offer(FI_EP_MSG, "tcp", "eth3", "10.0.3.1");
	wf_fake_offer(FI_EP_MSG, "verbs", "mlx5_0", "10.1.0.1");
	wf_fake_offer(FI_EP_MSG, "verbs", "rdma1", "10.1.1.1");
	wf_fake_offer_at(0x81, 0); /* it is mlx5_1 of the kernel's */
	strcpy(o.sysfs, machine_make(MACHINE_DUAL));
	machine_bind(home);
	return o;
}

static void the_nic_of_our_numa_node_serves(void **state)
{
	static const struct {
		const char *tcp, *verbs, *far, *says;
	} rows[] = {
		{ "eth0", "mlx5_0", "eth3", "eth0 serves, nearest to NUMA node 0 (PHB)" },
		{ "eth3", "rdma1", "eth0", "eth3 serves, nearest to NUMA node 1 (PHB)" },
	};

	(void)state;
	for (int home = 0; home < 2; home++) {
		struct wf_options o = on_machine(home);
		struct wf_select s;

		assert_int_equal(wf_select_open(&o, &s, NULL), 0);
		assert_true(is_used(&s, "tcp", rows[home].tcp));
		assert_non_null(strstr(find(&s, "tcp", rows[home].tcp)->reason, "nearest to NUMA node"));
		assert_true(is_used(&s, "verbs", rows[home].verbs));
		assert_false(is_used(&s, "tcp", rows[home].far));
		assert_string_equal(find(&s, "tcp", rows[home].far)->reason, rows[home].says);
		assert_false(is_used(&s, "tcp", "dummy0"));
		assert_string_equal(find(&s, "tcp", "lo")->reason, "reaches no other host");
		wf_select_close(&s);
		machine_remove();
	}
}

static void a_process_bound_to_no_node_gets_the_first(void **state)
{
	struct wf_options o = on_machine(-1);
	struct wf_select s;

	(void)state;
	assert_int_equal(wf_select_open(&o, &s, NULL), 0);
	assert_true(is_used(&s, "tcp", "eth0"));
	assert_string_equal(find(&s, "tcp", "eth3")->reason, "eth0 serves");
	assert_null(strstr(find(&s, "tcp", "eth0")->reason, "NUMA"));
	wf_select_close(&s);
	machine_remove();
}

static void an_address_or_a_name_goes_before_what_is_near(void **state)
{
	struct wf_options o = on_machine(0);
	struct wf_select s;

	(void)state;
	strcpy(o.device, "eth3");
	assert_int_equal(wf_select_open(&o, &s, NULL), 0);
	assert_true(is_used(&s, "tcp", "eth3"));
	assert_null(strstr(find(&s, "tcp", "eth3")->reason, "NUMA"));
	wf_select_close(&s);

	o.device[0] = '\0';
	strcpy(o.listen, "10.0.3.1:0");
	assert_int_equal(wf_select_open(&o, &s, NULL), 0);
	assert_true(is_used(&s, "tcp", "eth3"));
	assert_true(is_used(&s, "verbs", "mlx5_0"));
	wf_select_close(&s);
	machine_remove();
}

/* What the first node of a process, which names @provider, leaves in @variable, "" before and after: nothing. */
static bool is_set(const char *provider, const char *variable, const char *before,
		   const char *after)
{
	int status;
	pid_t child = fork();

	if (child == 0) {
		struct wf_options o = options("127.0.0.1:0");
		struct wf_select s;
		const char *is;

		snprintf(o.provider, sizeof(o.provider), "%s", provider);
		unsetenv(variable);
		if (*before)
			setenv(variable, before, 1);
		if (wf_select_open(&o, &s, NULL))
			_exit(2);
		is = getenv(variable);
		_exit(strcmp(is ? is : "", after) != 0);
	}
	assert_true(child > 0);
	assert_int_equal(waitpid(child, &status, 0), child);
	return WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

/* First of all, because it is done once in a process. */
static void variables_of_a_provider_are_set_where_it_is_named(void **state)
{
	(void)state;
	assert_true(is_set("tcp;ofi_rxm", "FI_OFI_RXM_BUFFER_SIZE", "", "1024"));
	assert_true(is_set("tcp;ofi_rxm", "FI_OFI_RXM_BUFFER_SIZE", "8192", "8192"));
	assert_true(is_set("", "FI_OFI_RXM_BUFFER_SIZE", "", ""));
	assert_true(is_set("", "FI_SOCKETS_CONN_TIMEOUT", "", "20"));
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(variables_of_a_provider_are_set_where_it_is_named),
		TEST(an_adapter_that_reaches_devices_is_asked_for_it),
		TEST(used_come_in_order_of_rank),
		TEST(the_domain_that_has_our_address_serves),
		TEST(an_adapter_stays_silent_while_we_keep_to_loopback),
		TEST(formats_of_one_domain_are_one_candidate),
		TEST(some_providers_serve_only_when_named),
		TEST(several_may_be_named),
		TEST(naming_one_shows_no_layers_over_it),
		TEST(excluding_one_names_nobody),
		TEST(an_empty_choice_gets_a_sentence),
		TEST(a_refused_provider_says_why),
		TEST(a_forked_child_is_refused_what_it_cannot_use),
		TEST(an_untested_provider_is_not_chosen_unasked),
		TEST(switches_keep_kinds_out),
		TEST(a_device_is_named_by_name_or_address),
		TEST(a_device_that_does_not_serve_is_not_said_to_be_missing),
		TEST(a_name_that_no_offer_has_is_told),
		TEST(devices_that_are_named_together_serve_together),
		TEST(a_host_that_means_nothing_is_refused),
		TEST(the_nic_of_our_numa_node_serves),
		TEST(a_process_bound_to_no_node_gets_the_first),
		TEST(an_address_or_a_name_goes_before_what_is_near),
		TEST(options_win_over_the_row),
		TEST(an_unknown_provider_gets_the_generic_row),
		TEST(rows_hold_together),
		TEST(a_quirk_ends_with_the_version_that_cured_it),
		TEST(the_library_is_never_asked_for_more_than_it_is),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
