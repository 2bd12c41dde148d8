/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Input: a text that a user gives as the body of a call.  A message that is
 * read from it and shown is text of which the same message is read.
 */
#include "tests/fuzz/fuzz.h"

#include <string.h>

#include "tests/fuzz/any_message.h"
#include "tests/unit/tool/kinds.pb-c.h"
#include "tool/json.h"

static ProtobufCMessage *read_text(const ProtobufCMessageDescriptor *type, const char *text)
{
	cJSON *json = cJSON_Parse(text);
	char wrong[JSON_WRONG_BYTES];
	ProtobufCMessage *m;

	if (!json)
		return NULL;
	m = json_read(type, json, wrong);
	must(m || wrong[0]);
	cJSON_Delete(json);
	return m;
}

static ProtobufCMessage *there_and_back(const ProtobufCMessage *message)
{
	cJSON *json = json_of(message);
	ProtobufCMessage *copy;
	char *text;

	must(json != NULL);
	text = cJSON_Print(json);
	must(text != NULL);
	copy = read_text(message->descriptor, text);
	cJSON_Delete(json);
	free(text);
	return copy;
}

static void check(const ProtobufCMessage *message, const ProtobufCMessage *copy)
{
	size_t count, copy_count;
	uint8_t *bytes = any_message_pack(message, &count);
	uint8_t *copied = any_message_pack(copy, &copy_count);

	must(count == copy_count && !memcmp(bytes, copied, count));
	free(copied);
	free(bytes);
}

static void take(const ProtobufCMessageDescriptor *type, const char *text)
{
	ProtobufCMessage *message = read_text(type, text), *copy;

	if (!message)
		return;
	copy = there_and_back(message);
	must(copy != NULL);
	check(message, copy);
	protobuf_c_message_free_unpacked(copy, NULL);
	protobuf_c_message_free_unpacked(message, NULL);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t count)
{
	char *text = fuzz_text(bytes, count);

	take(&kinds__kinds__descriptor, text);
	take(&old__old__descriptor, text);
	free(text);
	return 0;
}

size_t fuzz_seed(unsigned index, uint8_t *bytes)
{
	static const char *const texts[] = {
		"{\"i32\":-7,\"u64\":\"18446744073709551615\",\"real\":0.1,\"single\":\"NaN\","
		"\"flag\":true,\"color\":\"DARK\",\"text\":\"t\\u00e9\\n\",\"data\":\"AAH/\","
		"\"child\":{\"color\":9,\"one_real\":\"-Infinity\"},\"other_number\":1}",
		"{\"i64s\":[1,\"-2\"],\"reals\":[1e300,\"Infinity\"],\"texts\":[\"\",\"a\"],"
		"\"datas\":[\"\",\"_-8\"],\"children\":[{},{\"one_data\":\"AA==\"}],\"colors\":[\"RED\",-3]}",
		"{\"id\":1,\"name\":\"n\",\"count\":null,\"level\":\"HIGH\",\"ready\":false,"
		"\"inner\":{\"id\":2,\"name\":\"\"},\"dense\":[1,2]}",
		NULL,
	};

	return fuzz_seed_of(texts, index, bytes);
}
