/* SPDX-License-Identifier: BSD-2-Clause */
#include "tool/json.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "tests/unit/tool/kinds.pb-c.h"

#define TEXT_BYTES 4096

static const ProtobufCMessageDescriptor *const kinds = &kinds__kinds__descriptor;
static const ProtobufCMessageDescriptor *const old = &old__old__descriptor;

/* JSON, message, bytes, message, JSON; NULL: @wrong says why not. */
static cJSON *there_and_back(const ProtobufCMessageDescriptor *d, const char *text,
			     char wrong[JSON_WRONG_BYTES])
{
	cJSON *json = cJSON_Parse(text);
	ProtobufCMessage *message;
	uint8_t *packed;
	size_t bytes;

	if (!json)
		fail_msg("%s is no JSON", text);
	message = json_read(d, json, wrong);
	cJSON_Delete(json);
	if (!message)
		return NULL;
	bytes = protobuf_c_message_get_packed_size(message);
	packed = test_malloc(bytes + !bytes);
	assert_int_equal(protobuf_c_message_pack(message, packed), bytes);
	protobuf_c_message_free_unpacked(message, NULL);
	message = protobuf_c_message_unpack(d, NULL, bytes, packed);
	test_free(packed);
	assert_non_null(message);
	json = json_of(message);
	protobuf_c_message_free_unpacked(message, NULL);
	assert_non_null(json);
	return json;
}

/* Does the field @name of @d that is given @in come out as @out?  NULL: not at all. */
static void assert_field(const ProtobufCMessageDescriptor *d, const char *name, const char *in,
			 const char *out)
{
	char text[TEXT_BYTES], wrong[JSON_WRONG_BYTES] = "";
	cJSON *json, *value;
	char *got;

	snprintf(text, sizeof(text), "{%s\"%s\":%s}", d == old ? "\"id\":1,\"name\":\"n\"," : "",
		 name, in);
	json = there_and_back(d, text, wrong);
	if (!json)
		fail_msg("%s: %s", text, wrong);
	value = cJSON_GetObjectItemCaseSensitive(json, name);
	got = value ? cJSON_PrintUnformatted(value) : NULL;
	if (!got != !out || (out && strcmp(got, out)))
		fail_msg("%s: %s came out, not %s", text, got ? got : "nothing", out);
	free(got);
	cJSON_Delete(json);
}

static void assert_refused(const ProtobufCMessageDescriptor *d, const char *text, const char *why)
{
	char wrong[JSON_WRONG_BYTES] = "";
	cJSON *json = there_and_back(d, text, wrong);

	if (json || !strstr(wrong, why))
		fail_msg("%s: %s, not: %s", text, json ? "was taken" : wrong, why);
}

struct row {
	const char *name, *in, *out;
};

static void every_kind_of_field_comes_out_as_it_went_in(void **state)
{
	static const struct row rows[] = {
		{ "i32", "-5", "-5" },
		{ "s32", "-5", "-5" },
		{ "sf32", "-5", "-5" },
		{ "i64", "\"-5\"", "\"-5\"" },
		{ "s64", "\"-5\"", "\"-5\"" },
		{ "sf64", "\"-5\"", "\"-5\"" },
		{ "u32", "5", "5" },
		{ "f32", "5", "5" },
		{ "u64", "\"5\"", "\"5\"" },
		{ "f64", "\"5\"", "\"5\"" },
		{ "single", "-0.5", "-0.5" },
		{ "real", "0.1", "0.1" },
		{ "flag", "true", "true" },
		{ "flag", "false", "false" },
		{ "color", "\"BLUE\"", "\"BLUE\"" },
		{ "text", "\"a \\\"b\\\"\\n\xc3\xa9\"", "\"a \\\"b\\\"\\n\xc3\xa9\"" },
		{ "data", "\"AP+A\"", "\"AP+A\"" },
		{ "i32s", "[1,-2,3]", "[1,-2,3]" },
		{ "s32s", "[1,-2,3]", "[1,-2,3]" },
		{ "sf32s", "[1,-2,3]", "[1,-2,3]" },
		{ "i64s", "[\"1\",\"-2\"]", "[\"1\",\"-2\"]" },
		{ "s64s", "[\"1\",\"-2\"]", "[\"1\",\"-2\"]" },
		{ "sf64s", "[\"1\",\"-2\"]", "[\"1\",\"-2\"]" },
		{ "u32s", "[1,2]", "[1,2]" },
		{ "f32s", "[1,2]", "[1,2]" },
		{ "u64s", "[\"1\",\"2\"]", "[\"1\",\"2\"]" },
		{ "f64s", "[\"1\",\"2\"]", "[\"1\",\"2\"]" },
		{ "singles", "[0.5,\"NaN\"]", "[0.5,\"NaN\"]" },
		{ "reals", "[0.1,\"-Infinity\"]", "[0.1,\"-Infinity\"]" },
		{ "flags", "[true,false]", "[true,false]" },
		{ "colors", "[\"GREEN\",\"DARK\",9]", "[\"GREEN\",\"DARK\",9]" },
		{ "texts", "[\"\",\"a\"]", "[\"\",\"a\"]" },
		{ "datas", "[\"\",\"AA==\"]", "[\"\",\"AA==\"]" },
		{ "loose", "[1,2]", "[1,2]" },
		{ "one_number", "\"-1\"", "\"-1\"" },
		{ "one_number", "0", "\"0\"" },
		{ "one_flag", "false", "false" },
		{ "one_real", "0", "0" },
		{ "one_color", "\"DARK\"", "\"DARK\"" },
		{ "one_text", "\"\"", "\"\"" },
		{ "one_data", "\"AA==\"", "\"AA==\"" },
		{ "other_text", "\"o\"", "\"o\"" },
		{ "other_number", "4294967295", "4294967295" },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++)
		assert_field(kinds, rows[i].name, rows[i].in, rows[i].out);
}

static void whole_numbers_reach_to_their_limits_and_no_further(void **state)
{
	static const struct row rows[] = {
		{ "i32", "2147483647", "2147483647" },
		{ "i32", "-2147483648", "-2147483648" },
		{ "s32", "\"-2147483648\"", "-2147483648" },
		{ "i32", "1e3", "1000" },
		{ "i32", "1.0", "1" },
		{ "u32", "4294967295", "4294967295" },
		{ "u32", "-0", "0" },
		{ "i64", "\"9223372036854775807\"", "\"9223372036854775807\"" },
		{ "s64", "\"-9223372036854775808\"", "\"-9223372036854775808\"" },
		{ "i64", "-9007199254740991", "\"-9007199254740991\"" },
		{ "u64", "9007199254740991", "\"9007199254740991\"" },
		{ "u64", "\"18446744073709551615\"", "\"18446744073709551615\"" },
	};
	static const char *const refused[] = {
		"{\"i32\":2147483648}",
		"{\"i32\":-2147483649}",
		"{\"i32\":\"2147483648\"}",
		"{\"i32\":1.5}",
		"{\"i32\":\"1.0\"}",
		"{\"i32\":\"\"}",
		"{\"i32\":\"-\"}",
		"{\"i32\":\"--1\"}",
		"{\"i32\":\" 1\"}",
		"{\"i32\":\"1 \"}",
		"{\"i32\":\"+1\"}",
		"{\"i32\":\"0x1\"}",
		"{\"i32\":true}",
		"{\"i32\":[1]}",
		"{\"i32\":{}}",
		"{\"u32\":-1}",
		"{\"u32\":\"-1\"}",
		"{\"u32\":\" -1\"}",
		"{\"u32\":4294967296}",
		"{\"u32\":\"4294967296\"}",
		"{\"i64\":\"9223372036854775808\"}",
		"{\"i64\":\"-9223372036854775809\"}",
		"{\"i64\":9007199254740993}", /* a double has no place for its last digit */
		"{\"i64\":1e300}",
		"{\"u64\":\"-1\"}",
		"{\"u64\":\" -1\"}",
		"{\"u64\":\"18446744073709551616\"}",
		"{\"u64\":1e999}",
	};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++)
		assert_field(kinds, rows[i].name, rows[i].in, rows[i].out);
	for (size_t i = 0; i < sizeof(refused) / sizeof(*refused); i++)
		assert_refused(kinds, refused[i], " is not a whole number that fits");
}

static void real_numbers_may_be_infinite_only_by_name(void **state)
{
	static const struct row rows[] = {
		{ "real", "\"NaN\"", "\"NaN\"" },
		{ "real", "\"Infinity\"", "\"Infinity\"" },
		{ "single", "\"-Infinity\"", "\"-Infinity\"" },
		{ "real", "1.7976931348623157e308", "1.7976931348623157e+308" },
		{ "real", "0.30000000000000004", "0.30000000000000004" },
		{ "real", "-5e-324", "-4.94065645841247e-324" },
		{ "single", "3.4028235e38", "3.4028235e+38" },
		{ "single", "0.1", "0.1" },
		{ "single", "16777216", "16777216" },
	};
	static const char *const refused[] = {
		"{\"real\":1e999}",	  "{\"real\":-1e999}", "{\"single\":3.5e38}",
		"{\"single\":-1e300}",	  "{\"real\":\"1\"}",  "{\"real\":\"inf\"}",
		"{\"real\":\"-Infinit\"}", "{\"real\":\"\"}",  "{\"real\":true}",
	};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++)
		assert_field(kinds, rows[i].name, rows[i].in, rows[i].out);
	for (size_t i = 0; i < sizeof(refused) / sizeof(*refused); i++)
		assert_refused(kinds, refused[i], " is not a number that fits");
}

static void bytes_are_base64_of_either_alphabet(void **state)
{
	static const struct row rows[] = {
		{ "data", "\"\"", "\"\"" },
		{ "data", "\"AQ==\"", "\"AQ==\"" },
		{ "data", "\"AQI=\"", "\"AQI=\"" },
		{ "data", "\"AQID\"", "\"AQID\"" },
		{ "data", "\"AQIDBA==\"", "\"AQIDBA==\"" },
		{ "data", "\"AQIDBAU=\"", "\"AQIDBAU=\"" },
		{ "data", "\"AQ\"", "\"AQ==\"" },
		{ "data", "\"AQI\"", "\"AQI=\"" },
		{ "data", "\"+/8=\"", "\"+/8=\"" },
		{ "data", "\"-_8=\"", "\"+/8=\"" },
	};
	static const char *const refused[] = {
		"{\"data\":\"A\"}",    "{\"data\":\"AAAAA\"}", "{\"data\":\"A===\"}",
		"{\"data\":\"AA=\"}",  "{\"data\":\"AA=A\"}",  "{\"data\":\"AAAA=\"}",
		"{\"data\":\"====\"}", "{\"data\":\"=\"}",     "{\"data\":\"AA A\"}",
		"{\"data\":\"AA\\n\"}", "{\"data\":\"\xc3\xa9\xc3\xa9\"}", "{\"data\":7}",
		"{\"datas\":[\"AAAA\",\"A\"]}",
	};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++)
		assert_field(kinds, rows[i].name, rows[i].in, rows[i].out);
	for (size_t i = 0; i < sizeof(refused) / sizeof(*refused); i++)
		assert_refused(kinds, refused[i], " is not bytes in base64");
}

static void values_of_enumerations_have_names_or_numbers(void **state)
{
	(void)state;
	assert_field(kinds, "color", "\"DARK\"", "\"DARK\"");
	assert_field(kinds, "color", "2", "\"BLUE\"");
	assert_field(kinds, "color", "-3", "\"DARK\"");
	assert_field(kinds, "color", "77", "77"); /* of a later version, perhaps */

	assert_refused(kinds, "{\"color\":\"PINK\"}", "color is not a value of its enumeration");
	assert_refused(kinds, "{\"color\":\"2\"}", "color is not a value of its enumeration");
	assert_refused(kinds, "{\"color\":1.5}", "color is not a value of its enumeration");
	assert_refused(kinds, "{\"color\":2147483648}", "color is not a value of its enumeration");
	assert_refused(kinds, "{\"colors\":[\"RED\",\"\"]}", "colors is not a value");
}

static void a_oneof_has_one_member_set(void **state)
{
	static const char second[] = "one_text is not the only one of its kind";
	char wrong[JSON_WRONG_BYTES];
	cJSON *json;

	(void)state;
	assert_refused(kinds, "{\"one_number\":1,\"one_text\":\"a\"}", second);
	assert_refused(kinds, "{\"one_data\":\"AAAA\",\"one_text\":\"a\"}", second);
	assert_refused(kinds, "{\"one_child\":{\"text\":\"t\"},\"one_text\":\"a\"}", second);
	assert_field(kinds, "one_text", "\"a\",\"one_number\":null", "\"a\"");

	json = there_and_back(kinds, "{\"one_text\":\"a\",\"other_number\":0}", wrong);
	assert_non_null(cJSON_GetObjectItem(json, "one_text"));
	assert_non_null(cJSON_GetObjectItem(json, "other_number"));
	assert_null(cJSON_GetObjectItem(json, "one_number"));
	assert_null(cJSON_GetObjectItem(json, "other_text"));
	cJSON_Delete(json);
}

static void messages_lie_in_messages(void **state)
{
	static const char text[] = "{\"child\":{\"i32\":1,\"children\":[{},{\"i32\":2}]},"
				   "\"one_child\":{\"one_child\":{\"text\":\"t\"}}}";
	char wrong[JSON_WRONG_BYTES];
	cJSON *json, *at;

	(void)state;
	json = there_and_back(kinds, text, wrong);
	at = cJSON_GetObjectItem(json, "child");
	assert_int_equal(cJSON_GetObjectItem(at, "i32")->valueint, 1);
	assert_null(cJSON_GetObjectItem(at, "child"));
	at = cJSON_GetObjectItem(at, "children");
	assert_int_equal(cJSON_GetArraySize(at), 2);
	assert_int_equal(cJSON_GetObjectItem(cJSON_GetArrayItem(at, 1), "i32")->valueint, 2);
	at = cJSON_GetObjectItem(cJSON_GetObjectItem(json, "one_child"), "one_child");
	assert_string_equal(cJSON_GetObjectItem(at, "text")->valuestring, "t");
	cJSON_Delete(json);
}

static void null_is_as_if_it_were_not_there(void **state)
{
	(void)state;
	assert_field(kinds, "i32", "null", "0");
	assert_field(kinds, "text", "null", "\"\"");
	assert_field(kinds, "child", "null", NULL);
	assert_field(kinds, "texts", "null", NULL);
	assert_field(kinds, "texts", "[]", NULL);
	assert_field(kinds, "one_text", "null", NULL);
	assert_field(old, "count", "null", NULL);

	assert_refused(kinds, "{\"i32s\":[1,null]}", "i32s is not a whole number");
	assert_refused(kinds, "{\"texts\":[\"a\",null]}", "texts is not a string");
	assert_refused(kinds, "{\"children\":[{\"text\":\"t\"},null]}", "an object in braces");
}

static void a_value_of_another_type_is_refused(void **state)
{
	(void)state;
	assert_refused(kinds, "[]", "a kinds.Kinds is an object in braces");
	assert_refused(kinds, "1", "a kinds.Kinds is an object in braces");
	assert_refused(kinds, "null", "a kinds.Kinds is an object in braces");
	assert_refused(kinds, "{\"flag\":1}", "flag is not true or false");
	assert_refused(kinds, "{\"flag\":\"true\"}", "flag is not true or false");
	assert_refused(kinds, "{\"text\":1}", "text is not a string");
	assert_refused(kinds, "{\"text\":{}}", "text is not a string");
	assert_refused(kinds, "{\"child\":\"c\"}", "a kinds.Kinds is an object in braces");
	assert_refused(kinds, "{\"child\":[]}", "a kinds.Kinds is an object in braces");
	assert_refused(kinds, "{\"i32s\":1}", "i32s is not a list");
	assert_refused(kinds, "{\"texts\":{\"a\":1}}", "texts is not a list");
	assert_refused(kinds, "{\"text\":\"t\",\"texts\":[\"a\",1]}", "texts is not a string");
}

static void a_field_that_is_not_known_is_refused(void **state)
{
	(void)state;
	assert_refused(kinds, "{\"text\":\"t\",\"nosuch\":1}", "a kinds.Kinds has no field nosuch");
	assert_refused(kinds, "{\"child\":{\"I32\":1}}", "a kinds.Kinds has no field I32");
	assert_refused(kinds, "{\"\":null}", "a kinds.Kinds has no field ");
}

/* What came first would be lost without a word. */
static void a_field_that_comes_twice_is_refused(void **state)
{
	(void)state;
	assert_refused(kinds, "{\"i32\":1,\"i32\":1}", "i32 is not there only once");
	assert_refused(kinds, "{\"text\":\"a\",\"i32\":1,\"text\":\"b\"}", "text is not there only once");
	assert_refused(kinds, "{\"data\":\"AAAA\",\"data\":null}", "data is not there only once");
	assert_refused(kinds, "{\"child\":{\"text\":\"t\"},\"child\":{}}", "child is not there only once");
	assert_refused(kinds, "{\"texts\":[\"a\"],\"texts\":[]}", "texts is not there only once");
	assert_refused(kinds, "{\"one_text\":\"a\",\"one_text\":\"a\"}", "one_text is not there only once");
}

static void messages_are_not_read_deeper_than_a_hundred(void **state)
{
	char text[TEXT_BYTES], wrong[JSON_WRONG_BYTES];
	cJSON *json;

	(void)state;
	for (int deep = 100; deep <= 101; deep++) {
		text[0] = '\0';
		for (int i = 1; i < deep; i++)
			strcat(text, "{\"child\":");
		strcat(text, "{");
		for (int i = 0; i < deep; i++)
			strcat(text, "}");
		if (deep > 100) {
			assert_refused(kinds, text, "not so deep in others");
			continue;
		}
		json = there_and_back(kinds, text, wrong);
		assert_non_null(json);
		cJSON_Delete(json);
	}
}

static void a_required_field_is_asked_for(void **state)
{
	(void)state;
	assert_refused(old, "{}", "id is not there, and must be");
	assert_refused(old, "{\"id\":1}", "name is not there, and must be");
	assert_refused(old, "{\"id\":1,\"name\":null}", "name is not there, and must be");
	assert_refused(old, "{\"id\":1,\"name\":\"n\",\"inner\":{\"id\":1}}",
		       "name is not there, and must be");
}

static void an_optional_field_is_shown_if_it_is_there(void **state)
{
	static const struct row rows[] = {
		{ "count", "0", "0" },
		{ "title", "\"\"", "\"\"" },
		{ "data", "\"\"", "\"\"" },
		{ "ready", "false", "false" },
		{ "level", "\"LOW\"", "\"LOW\"" },
		{ "real", "0", "0" },
		{ "loose", "[1,2]", "[1,2]" },
		{ "dense", "[1,-2]", "[1,-2]" },
		{ "inner", "{\"id\":2,\"name\":\"\"}",
		  "{\"id\":2,\"name\":\"\",\"title\":\"untitled\"}" },
		{ "ready", "null", NULL },
		{ "level", "null", NULL },
		{ "title", "null", "\"untitled\"" },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++)
		assert_field(old, rows[i].name, rows[i].in, rows[i].out);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_kind_of_field_comes_out_as_it_went_in),
		cmocka_unit_test(whole_numbers_reach_to_their_limits_and_no_further),
		cmocka_unit_test(real_numbers_may_be_infinite_only_by_name),
		cmocka_unit_test(bytes_are_base64_of_either_alphabet),
		cmocka_unit_test(values_of_enumerations_have_names_or_numbers),
		cmocka_unit_test(a_oneof_has_one_member_set),
		cmocka_unit_test(messages_lie_in_messages),
		cmocka_unit_test(null_is_as_if_it_were_not_there),
		cmocka_unit_test(a_value_of_another_type_is_refused),
		cmocka_unit_test(a_field_that_is_not_known_is_refused),
		cmocka_unit_test(a_field_that_comes_twice_is_refused),
		cmocka_unit_test(messages_are_not_read_deeper_than_a_hundred),
		cmocka_unit_test(a_required_field_is_asked_for),
		cmocka_unit_test(an_optional_field_is_shown_if_it_is_there),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
