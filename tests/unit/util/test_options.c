/* SPDX-License-Identifier: BSD-2-Clause */
#include "util/options.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "group/job.h"
#include "link/depth.h"
#include "link/directory.h"

static struct wf_options o;
static struct wf_error e;

/* No setting of the outside world reaches a test, nor one test's the next. */
static int clear(void **state)
{
	size_t count;
	const struct weft_option *rows = wf_options_rows(&count);

	(void)state;
	for (size_t i = 0; i < count; i++) {
		unsetenv(rows[i].name);
		if (*rows[i].alias)
			unsetenv(rows[i].alias);
	}
	memset(&o, 0xee, sizeof(o));
	memset(&e, 0, sizeof(e));
	return 0;
}

static void nothing_set_gives_the_defaults(void **state)
{
	(void)state;
	assert_int_equal(wf_options_load(&o, NULL, &e), 0);
	assert_string_equal(o.provider, "");
	assert_string_equal(o.security, "");
	assert_string_equal(o.strict, "");
	assert_int_equal(o.rdma, 1);
	assert_int_equal(o.shm, 1);
	assert_int_equal(o.checksum, 0);
	assert_int_equal(o.pool_bytes, GIB);
	assert_int_equal(o.chunk_bytes, 0);
	assert_int_equal(o.depth, 0);
	assert_int_equal(o.pack_bytes, 0);
	assert_int_equal(o.frame_bytes, 0);
	assert_int_equal(o.eager_bytes, 0);
	assert_int_equal(o.unexpected_bytes, 4 * MIB);
	assert_int_equal(o.slots, 4096);
	assert_int_equal(o.window, 64);
	assert_int_equal(o.timeout_ns, 60 * WF_NS_PER_S);
	assert_int_equal(o.connect_ns, 30 * WF_NS_PER_S);
	assert_int_equal(o.heartbeat_ns, WF_NS_PER_S);
	assert_int_equal(o.lost_ns, 3 * WF_NS_PER_S);
	assert_int_equal(o.spin_ns, 50 * WF_NS_PER_US);
	assert_int_equal(o.log_level, 1);
}

/* A value that @row allows and that is not its default. */
static const char *other_value(const struct weft_option *row)
{
	if (!strcmp(row->name, "WEFT_STRICT"))
		return "no-staging,no-fallback";
	if (!strcmp(row->name, "WEFT_COMPRESSION"))
		return "zstd";
	if (!strcmp(row->name, "WEFT_CUDA"))
		return "/opt/libcuda.so.1";
	if (!strcmp(row->unit, "text"))
		return "open";
	if (!strcmp(row->unit, "yes/no"))
		return strcmp(row->preset, "yes") ? "yes" : "no";
	/* With the upper limit WEFT_LOST would have to follow. */
	return strcmp(row->name, "WEFT_HEARTBEAT") ? row->most : row->least;
}

/*
 * A setting that weft can measure is none: whoever adds one drops one, or says here why not.  How
 * much memory may stay pinned (WEFT_CACHED_BYTES), whether peers may read on what they were sent
 * (WEFT_CACHED_KEYS), and where the pool lies in which pages (WEFT_POOL_NUMA, WEFT_POOL_HUGE) are for
 * the machine's owner to say; how a job was started (WEFT_BOOTSTRAP, WEFT_RANK, WEFT_SIZE), and how
 * long its processes may take to come (WEFT_JOIN_TIMEOUT), for whoever starts it; what peers may do
 * (WEFT_ALLOW), and how long a key does that has been replaced (WEFT_KEY_GRACE), for whoever hands out
 * the keys; for how long a frame has the wire (WEFT_FRAME_BYTES), for whoever has a slow one.
 */
static void there_are_no_more_than_51(void **state)
{
	size_t count;

	(void)state;
	(void)wf_options_rows(&count);
	assert_in_range(count, 1, 51);
}

/*
 * Each row changes a place that no other row changes, or as many as its text is
 * long, and together the rows are as big as the struct: so no field is without a row.
 */
static void every_field_has_a_row_of_its_own(void **state)
{
	enum { PLACE_BYTES = sizeof(uint64_t), PLACES = sizeof(o) / PLACE_BYTES };
	size_t count, bytes = 0;
	const struct weft_option *rows = wf_options_rows(&count);
	bool owned[PLACES] = { false };
	struct wf_options preset;

	assert_int_equal(wf_options_load(&preset, NULL, &e), 0);
	for (size_t i = 0; i < count; i++) {
		const char *value = other_value(&rows[i]);
		size_t changed = 0, places = 1;

		clear(state);
		setenv(rows[i].name, value, 1);
		assert_int_equal(wf_options_load(&o, NULL, &e), 0);

		for (size_t place = 0; place < PLACES; place++) {
			size_t at = place * PLACE_BYTES;

			if (!memcmp((char *)&preset + at, (char *)&o + at, PLACE_BYTES))
				continue;
			assert_false(owned[place]);
			owned[place] = true;
			changed++;
		}
		if (!strcmp(rows[i].unit, "text"))
			places = (strlen(value) + PLACE_BYTES - 1) / PLACE_BYTES;
		assert_int_equal(changed, places);
		bytes += strcmp(rows[i].unit, "text") ? sizeof(uint64_t) : WF_OPTION_TEXT_BYTES;
	}
	assert_int_equal(bytes + sizeof(o.log_stderr) + sizeof(o.by_alias) + sizeof(o.by_program),
			 sizeof(o));
}

static void every_row_says_when_to_change_it(void **state)
{
	size_t count;
	const struct weft_option *rows = wf_options_rows(&count);

	(void)state;
	for (size_t i = 0; i < count; i++) {
		bool is_number = strcmp(rows[i].unit, "text") && strcmp(rows[i].unit, "yes/no");

		assert_int_equal(strncmp(rows[i].name, "WEFT_", 5), 0);
		assert_true(strlen(rows[i].when) > 20);
		assert_int_equal(*rows[i].least != '\0', is_number);
		assert_int_equal(*rows[i].most != '\0', is_number);
	}
}

/* Settings of numbers for which higher floors have arrays, or bounds of their own. */
static void limits_are_those_of_the_floors_that_use_the_settings(void **state)
{
	static const struct {
		const char *name;
		unsigned long most;
	} limits[] = {
		{ "WEFT_DEPTH", WF_DEPTH_MAX },
		{ "WEFT_WORKERS", WF_WORKERS_MAX },
		{ "WEFT_RANK", WF_JOB_SIZE_MAX - 1 },
		{ "WEFT_SIZE", WF_JOB_SIZE_MAX },
	};
	size_t count, found = 0;
	const struct weft_option *rows = wf_options_rows(&count);

	(void)state;
	for (size_t i = 0; i < count; i++)
		for (size_t k = 0; k < WF_COUNT(limits); k++)
			if (!strcmp(rows[i].name, limits[k].name)) {
				assert_int_equal(strtoul(rows[i].most, NULL, 10), limits[k].most);
				found++;
			}
	assert_int_equal(found, WF_COUNT(limits));
}

static void limits_are_allowed_and_one_step_beyond_is_not(void **state)
{
	static const struct {
		const char *name, *inside, *outside;
	} rows[] = {
		{ "WEFT_POOL_BYTES", "1M", "1048575" },
		{ "WEFT_POOL_BYTES", "1024G", "1025G" },
		{ "WEFT_CHUNK_BYTES", "64K", "65535" },
		{ "WEFT_CHUNK_BYTES", "64M", "65M" },
		{ "WEFT_CHUNK_BYTES", "0", "1" }, /* the default is below the limits */
		{ "WEFT_WINDOW", "2", "1" },
		{ "WEFT_WINDOW", "1024", "1025" },
		{ "WEFT_SLOTS", "16", "15" },
		{ "WEFT_TIMEOUT", "1ms", "999us" },
		{ "WEFT_SPIN", "0", "1001ms" },
		{ "WEFT_LOG", "3", "4" },
	};

	for (size_t i = 0; i < WF_COUNT(rows); i++) {
		clear(state);
		setenv(rows[i].name, rows[i].inside, 1);
		assert_int_equal(wf_options_load(&o, NULL, &e), 0);
		setenv(rows[i].name, rows[i].outside, 1);
		assert_int_equal(wf_options_load(&o, NULL, &e), -EINVAL);
	}
}

static void a_refusal_names_variable_value_and_limits(void **state)
{
	static const struct {
		const char *name, *value, *sentence;
	} rows[] = {
		{ "WEFT_WINDOW", "1",
		  "WEFT_WINDOW=1: expected a whole number from 2 to 1024 (default 64)" },
		{ "WEFT_WINDOW", "",
		  "WEFT_WINDOW=: expected a whole number from 2 to 1024 (default 64)" },
		{ "WEFT_TIMEOUT", "60",
		  "WEFT_TIMEOUT=60: expected a number with ns, us, ms or s "
		  "from 1ms to 86400s (default 60s)" },
		{ "TF_RDMA_CHUNK_SIZE", "4MB",
		  "TF_RDMA_CHUNK_SIZE=4MB: expected a number of bytes, or one with K, M or G, "
		  "from 64K to 64M (default 0)" },
		{ "TF_RDMA_ENABLED", "maybe", "TF_RDMA_ENABLED=maybe: expected yes or no" },
		{ "WEFT_RDMA", "", "WEFT_RDMA=: expected yes or no" },
		{ "WEFT_SECURITY", "opne", "WEFT_SECURITY=opne: expected open,keyed,sealed or nothing" },
		/* A list would be no mode, and the weakest of all to what looks for one. */
		{ "WEFT_SECURITY", "sealed,keyed",
		  "WEFT_SECURITY=sealed,keyed: expected open,keyed,sealed or nothing" },
		{ "WEFT_SECURITY", "sealed,",
		  "WEFT_SECURITY=sealed,: expected open,keyed,sealed or nothing" },
		{ "WEFT_CUDA", "yes,no", "WEFT_CUDA=yes,no: expected yes,no, a path or nothing" },
		{ "WEFT_STRICT", "no-staging,",
		  "WEFT_STRICT=no-staging,: expected no-staging,no-fallback or nothing" },
		{ "WEFT_LOG", "stderr:5", "WEFT_LOG=stderr:5: expected a whole number from 0 to 3 "
		  "(default 1), or stderr: before it" },
		{ "WEFT_LOG", "stderr", "WEFT_LOG=stderr: expected a whole number from 0 to 3 "
		  "(default 1), or stderr: before it" },
		{ "WEFT_LOST", "1999ms",
		  "WEFT_LOST is 1999 ms: expected at least twice WEFT_HEARTBEAT, which is 1000 ms" },
	};

	for (size_t i = 0; i < WF_COUNT(rows); i++) {
		struct wf_options before;

		clear(state);
		before = o;
		setenv(rows[i].name, rows[i].value, 1);
		assert_int_equal(wf_options_load(&o, NULL, &e), -EINVAL);
		assert_string_equal(e.text, rows[i].sentence);
		assert_memory_equal(&o, &before, sizeof(o));
	}
}

static void an_alias_counts_until_wefts_own_name_is_set(void **state)
{
	(void)state;
	setenv("TF_RDMA_ENABLED", "False", 1);
	setenv("TF_RDMA_DEV_NAME", "mlx5_0", 1);
	setenv("TF_RDMA_CHUNK_SIZE", "4194304", 1);
	setenv("TF_RDMA_ACC_SIZE", "8192", 1);
	setenv("TF_RDMA_BUF_SIZE", "1073741824", 1);
	assert_int_equal(wf_options_load(&o, NULL, &e), 0);
	assert_int_equal(o.rdma, 0);
	assert_string_equal(o.device, ""); /* an adapter, and there is to be none */
	assert_int_equal(o.chunk_bytes, 4 * MIB);
	assert_int_equal(o.pack_bytes, 8 * KIB);
	assert_int_equal(o.pool_bytes, GIB);
	setenv("WEFT_RDMA", "yes", 1);
	assert_int_equal(wf_options_load(&o, NULL, &e), 0);
	assert_string_equal(o.device, "mlx5_0");
	unsetenv("WEFT_RDMA");
	setenv("WEFT_DEVICE", "eth0", 1);
	assert_int_equal(wf_options_load(&o, NULL, &e), 0);
	assert_string_equal(o.device, "eth0");
	unsetenv("WEFT_DEVICE");
	assert_int_equal(wf_options_load(&o, NULL, &e), 0);
	assert_string_equal(wf_options_name(&o, "WEFT_DEVICE"), "TF_RDMA_DEV_NAME");
	wf_options_overrule(&o, "WEFT_DEVICE");
	assert_string_equal(wf_options_name(&o, "WEFT_DEVICE"), "WEFT_DEVICE");
	assert_string_equal(wf_options_name(&o, "WEFT_RDMA"), "TF_RDMA_ENABLED");

	setenv("WEFT_RDMA", "yes", 1);
	setenv("WEFT_DEVICE", "eth0", 1);
	setenv("WEFT_CHUNK_BYTES", "1M", 1);
	setenv("TF_RDMA_CHUNK_SIZE", "nonsense", 1); /* is not even read */
	assert_int_equal(wf_options_load(&o, NULL, &e), 0);
	assert_int_equal(o.rdma, 1);
	assert_string_equal(o.device, "eth0");
	assert_string_equal(wf_options_name(&o, "WEFT_DEVICE"), "WEFT_DEVICE");
	assert_int_equal(o.chunk_bytes, MIB);
}

static void an_empty_text_counts_as_not_set(void **state)
{
	(void)state;
	setenv("WEFT_LISTEN", "", 1);
	setenv("WEFT_DEVICE", "", 1);
	setenv("TF_RDMA_DEV_NAME", "mlx5_0", 1);
	assert_int_equal(wf_options_load(&o, NULL, &e), 0);
	assert_string_equal(o.listen, "");
	assert_string_equal(o.device, "mlx5_0");
}

static void a_text_that_does_not_fit_is_refused_whole(void **state)
{
	char text[WF_OPTION_TEXT_BYTES + 1];

	(void)state;
	memset(text, 'h', sizeof(text));
	text[WF_OPTION_TEXT_BYTES - 1] = '\0';
	setenv("WEFT_LISTEN", text, 1);
	assert_int_equal(wf_options_load(&o, NULL, &e), 0);
	assert_string_equal(o.listen, text);

	text[WF_OPTION_TEXT_BYTES - 1] = 'h';
	text[WF_OPTION_TEXT_BYTES] = '\0';
	setenv("WEFT_LISTEN", text, 1);
	assert_int_equal(wf_options_load(&o, NULL, &e), -EINVAL);
	assert_non_null(strstr(e.text, "WEFT_LISTEN="));
	assert_non_null(strstr(e.text, "is 256 bytes long: expected at most 255"));
}

static void a_path_may_stand_for_words_where_a_file_is_meant(void **state)
{
	(void)state;
	setenv("WEFT_CUDA", "/usr/lib/wsl/lib/libcuda.so.1", 1);
	assert_int_equal(wf_options_load(&o, NULL, &e), 0);
	assert_string_equal(o.cuda, "/usr/lib/wsl/lib/libcuda.so.1");
	setenv("WEFT_CUDA", "libcuda.so.1", 1);
	assert_int_equal(wf_options_load(&o, NULL, &e), -EINVAL);
	assert_string_equal(e.text, "WEFT_CUDA=libcuda.so.1: expected yes,no, a path or nothing");
}

static void settings_of_the_program_go_before_the_environment(void **state)
{
	static const char *const settings[] = {
		"WEFT_LOST=4s", "WEFT_LOST=5s", "WEFT_PROVIDER=", "WEFT_PACK_BYTES=2K", NULL
	};

	(void)state;
	setenv("WEFT_LOST", "6s", 1);
	setenv("WEFT_PROVIDER", "tcp", 1);
	setenv("WEFT_DEPTH", "3", 1);
	setenv("TF_RDMA_ACC_SIZE", "1K", 1);
	assert_int_equal(wf_options_load(&o, settings, &e), 0);
	assert_int_equal(o.lost_ns, 5 * WF_NS_PER_S);
	assert_string_equal(o.provider, "");
	assert_int_equal(o.pack_bytes, 2 * KIB);
	assert_int_equal(o.by_alias, 0);
	assert_int_equal(o.depth, 3);
}

static void a_setting_that_is_none_is_refused_by_its_text(void **state)
{
	static const char *const wrong[] = {
		"WEFT_LOSST=4s", "WEFT_LOST", "TF_RDMA_ACC_SIZE=1K", "", "FI_PROVIDER=tcp"
	};
	const char *settings[] = { NULL, NULL };

	(void)state;
	for (size_t i = 0; i < WF_COUNT(wrong); i++) {
		settings[0] = wrong[i];
		assert_int_equal(wf_options_load(&o, settings, &e), -EINVAL);
		assert_non_null(strstr(e.text, wrong[i]));
	}
	settings[0] = "WEFT_LOST=4";
	assert_int_equal(wf_options_load(&o, settings, &e), -EINVAL);
	assert_non_null(strstr(e.text, "WEFT_LOST=4: expected a number with"));
}

static void the_log_may_be_asked_for_on_standard_error(void **state)
{
	(void)state;
	setenv("WEFT_LOG", "2", 1);
	assert_int_equal(wf_options_load(&o, NULL, &e), 0);
	assert_int_equal(o.log_level, 2);
	assert_int_equal(o.log_stderr, 0);
	setenv("WEFT_LOG", "stderr:3", 1);
	assert_int_equal(wf_options_load(&o, NULL, &e), 0);
	assert_int_equal(o.log_level, 3);
	assert_int_equal(o.log_stderr, 1);
	setenv("WEFT_LOG", "stderr:4", 1);
	assert_int_equal(wf_options_load(&o, NULL, &e), -EINVAL);
	setenv("WEFT_LOG", "stderr", 1);
	assert_int_equal(wf_options_load(&o, NULL, &e), -EINVAL);
	unsetenv("WEFT_LOG");
}

static void units_are_read_exactly(void **state)
{
	static const struct {
		const char *unit, *text;
		int err;
		uint64_t value;
	} rows[] = {
		{ "bytes", "0", 0, 0 },
		{ "bytes", "4194304", 0, 4 * MIB },
		{ "bytes", "64K", 0, 64 * KIB },
		{ "bytes", "64k", 0, 64 * KIB },
		{ "bytes", "3M", 0, 3 * MIB },
		{ "bytes", "2G", 0, 2 * GIB },
		{ "bytes", "18446744073709551615", 0, UINT64_MAX },
		{ "bytes", "18446744073709551616", -ERANGE, 0 },
		{ "bytes", "17179869184G", -ERANGE, 0 },
		{ "bytes", "-1", -EINVAL, 0 },
		{ "bytes", "+1", -EINVAL, 0 },
		{ "bytes", " 1", -EINVAL, 0 },
		{ "bytes", "1 K", -EINVAL, 0 },
		{ "bytes", "1.5G", -EINVAL, 0 },
		{ "bytes", "0x10", -EINVAL, 0 },
		{ "bytes", "K", -EINVAL, 0 },
		{ "bytes", "", -EINVAL, 0 },
		{ "bytes", "1s", -EINVAL, 0 },
		{ "ns", "7ns", 0, 7 },
		{ "ns", "50us", 0, 50000 },
		{ "ns", "500ms", 0, 500000000 },
		{ "ns", "60s", 0, 60000000000 },
		{ "ns", "0", 0, 0 },
		{ "ns", "60", -EINVAL, 0 },
		{ "ns", "1m", -EINVAL, 0 },
		{ "ns", "18446744074s", -ERANGE, 0 },
		{ "count", "512", 0, 512 },
		{ "count", "1K", -EINVAL, 0 },
		{ "yes/no", "true", 0, 1 },
		{ "yes/no", "YES", 0, 1 },
		{ "yes/no", "1", 0, 1 },
		{ "yes/no", "off", 0, 0 },
		{ "yes/no", "0", 0, 0 },
		{ "yes/no", "2", -EINVAL, 0 },
		{ "text", "1", -EINVAL, 0 },
	};

	(void)state;
	for (size_t i = 0; i < WF_COUNT(rows); i++) {
		uint64_t value = 77;

		assert_int_equal(wf_options_parse(rows[i].unit, rows[i].text, &value), rows[i].err);
		assert_int_equal(value, rows[i].err ? 77 : rows[i].value);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(nothing_set_gives_the_defaults, clear),
		cmocka_unit_test_setup(there_are_no_more_than_51, clear),
		cmocka_unit_test_setup(every_field_has_a_row_of_its_own, clear),
		cmocka_unit_test_setup(every_row_says_when_to_change_it, clear),
		cmocka_unit_test(limits_are_those_of_the_floors_that_use_the_settings),
		cmocka_unit_test_setup(limits_are_allowed_and_one_step_beyond_is_not, clear),
		cmocka_unit_test_setup(a_refusal_names_variable_value_and_limits, clear),
		cmocka_unit_test_setup(an_alias_counts_until_wefts_own_name_is_set, clear),
		cmocka_unit_test_setup(an_empty_text_counts_as_not_set, clear),
		cmocka_unit_test_setup(a_text_that_does_not_fit_is_refused_whole, clear),
		cmocka_unit_test_setup(a_path_may_stand_for_words_where_a_file_is_meant, clear),
		cmocka_unit_test_setup(settings_of_the_program_go_before_the_environment, clear),
		cmocka_unit_test_setup(a_setting_that_is_none_is_refused_by_its_text, clear),
		cmocka_unit_test_setup(the_log_may_be_asked_for_on_standard_error, clear),
		cmocka_unit_test(units_are_read_exactly),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
