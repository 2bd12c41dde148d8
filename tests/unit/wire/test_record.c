/* SPDX-License-Identifier: BSD-2-Clause */
#include "wire/access.h"
#include "wire/parcel.h"
#include "wire/record.h"
#include "wire/record_call.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <cmocka.h>

#include "tests/fuzz/any_record.h"
#include "tests/fuzz/mutate.h"

#define ROUNDS 40000
#define ROOM 256
#define PARCEL_ID_AT 38 /* in a body */

#define TEXT(text) ((const uint8_t *)(text))

/* The token of a window, and its bytes in a record. */
#define TOKEN { TOKEN_BYTES }
#define TOKEN_BYTES 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16

static const uint8_t shape_2_3[] = { 2, 0, 0, 0, 0, 0, 0, 0, 3, 0, 0, 0, 0, 0, 0, 0 };
static const uint8_t shape_5[] = { 5, 0, 0, 0, 0, 0, 0, 0 };
static const uint8_t shape_0[] = { 0, 0, 0, 0, 0, 0, 0, 0 };
static const uint8_t k_is_vw[] = { 1, 0, 2, 0, 0, 0, 'k', 'v', 'w' }; /* metadata */

/* Every record is this table's way: the struct, and its bytes with the eager body. */
static const struct row {
	const char *name;
	uint8_t type;
	size_t count;
	union any_record any;
	uint8_t bytes[128];
} rows[] = {
	{
		"a tensor that is pulled", WF_RECORD_TENSOR, 16 + 46 + 16 + 3,
		{ .tensor = { .step = 0x1817161514131211, .dtype = { WEFT_FLOAT, 32, 2 },
			      .rank = 2, .key_bytes = 3, .key = TEXT("a;b"), .shape = shape_2_3,
			      .body = { WF_BODY_PULL, 48, 0x2827262524232221, 0x34333231,
					0x4847464544434241, 0x5857565554535251,
					WF_BODY_SUM_XXH3, 0x6867666564636261, .priority = 3 } } },
		{
			0x11, 0x12, 0x13, 0x14, 0x15, 0x16, 0x17, 0x18,
			0, 2, 32, 2,
			2, 0, 3, 0,
			2, 48, 0, 0, 0, 0, 0, 0, 0, 0x31,
			0x21, 0x22, 0x23, 0x24, 0x25, 0x26, 0x27, 0x28,
			0x31, 0x32, 0x33, 0x34,
			0x41, 0x42, 0x43, 0x44, 0x45, 0x46, 0x47, 0x48,
			0x51, 0x52, 0x53, 0x54, 0x55, 0x56, 0x57, 0x58,
			0x61, 0x62, 0x63, 0x64, 0x65, 0x66, 0x67, 0x68,
			2, 0, 0, 0, 0, 0, 0, 0,
			3, 0, 0, 0, 0, 0, 0, 0,
			'a', ';', 'b',
		},
	},
	{
		"a tensor that may be looked at", WF_RECORD_TENSOR, 16 + 66 + 8,
		{ .tensor = { .dtype = { WEFT_UINT, 8, 1 }, .rank = 1, .shape = shape_5,
			      .body = { WF_BODY_VIEW, 5, 9, 4, 6, 7, WF_BODY_SUM_XXH3,
					0x6867666564636261, 0x7877767574737271,
					0x8887868584838281, 0x24232221 } } },
		{
			0, 0, 0, 0, 0, 0, 0, 0,
			0, 1, 8, 1,
			1, 0, 0, 0,
			3, 5, 0, 0, 0, 0, 0, 0, 0, 1,
			9, 0, 0, 0, 0, 0, 0, 0,
			4, 0, 0, 0,
			6, 0, 0, 0, 0, 0, 0, 0,
			7, 0, 0, 0, 0, 0, 0, 0,
			0x71, 0x72, 0x73, 0x74, 0x75, 0x76, 0x77, 0x78,
			0x81, 0x82, 0x83, 0x84, 0x85, 0x86, 0x87, 0x88,
			0x21, 0x22, 0x23, 0x24,
			0x61, 0x62, 0x63, 0x64, 0x65, 0x66, 0x67, 0x68,
			5, 0, 0, 0, 0, 0, 0, 0,
		},
	},
	{
		"a tensor that is staged", WF_RECORD_TENSOR, 16 + 46 + 8,
		{ .tensor = { .dtype = { WEFT_UINT, 8, 1 }, .rank = 1, .shape = shape_5,
			      .body = { WF_BODY_STAGED, 5, 9, 4, 6, 7, WF_BODY_SUM_XXH3,
					.bounce_bytes = 3 } } },
		{
			0, 0, 0, 0, 0, 0, 0, 0,
			0, 1, 8, 1,
			1, 0, 0, 0,
			4, 5, 0, 0, 0, 0, 0, 0, 0, 1,
			9, 0, 0, 0, 0, 0, 0, 0,
			4, 0, 0, 0,
			6, 0, 0, 0, 0, 0, 0, 0,
			7, 0, 0, 0, 0, 0, 0, 0,
			3, 0, 0, 0, 0, 0, 0, 0,
			5, 0, 0, 0, 0, 0, 0, 0,
		},
	},
	{
		"an opaque tensor, eager", WF_RECORD_TENSOR, 16 + 10 + 8 + 1 + 5,
		{ .tensor = { .step = 1, .flags = WEFT_OPAQUE, .dtype = { WEFT_UINT, 8, 1 },
			      .rank = 1, .key_bytes = 1, .key = TEXT("k"), .shape = shape_5,
			      .body = { .way = WF_BODY_EAGER, .bytes = 5 },
			      .eager = TEXT("hello") } },
		{
			1, 0, 0, 0, 0, 0, 0, 0,
			2, 1, 8, 1,
			1, 0, 1, 0,
			1, 5, 0, 0, 0, 0, 0, 0, 0, 0,
			5, 0, 0, 0, 0, 0, 0, 0,
			'k',
			'h', 'e', 'l', 'l', 'o',
		},
	},
	{
		"a tensor of a broadcast", WF_RECORD_TENSOR, 16 + 38 + 8 + 1,
		{ .tensor = { .step = 1, .flags = WEFT_OPAQUE | WF_TENSOR_RELAYED,
			      .dtype = { WEFT_UINT, 8, 1 }, .rank = 1, .key_bytes = 1,
			      .key = TEXT("w"), .shape = shape_5,
			      .body = { WF_BODY_PULL, 5, 9, 4, 6, 7 } } },
		{
			1, 0, 0, 0, 0, 0, 0, 0,
			66, 1, 8, 1,
			1, 0, 1, 0,
			2, 5, 0, 0, 0, 0, 0, 0, 0, 0,
			9, 0, 0, 0, 0, 0, 0, 0,
			4, 0, 0, 0,
			6, 0, 0, 0, 0, 0, 0, 0,
			7, 0, 0, 0, 0, 0, 0, 0,
			5, 0, 0, 0, 0, 0, 0, 0,
			'w',
		},
	},
	{
		"a dead tensor", WF_RECORD_TENSOR, 16 + 10 + 16,
		{ .tensor = { .flags = WEFT_DEAD, .dtype = { WEFT_BFLOAT, 16, 1 }, .rank = 2,
			      .shape = shape_2_3 } },
		{
			0, 0, 0, 0, 0, 0, 0, 0,
			1, 4, 16, 2,
			1, 0, 0, 0,
			0, 0, 0, 0, 0, 0, 0, 0, 0, 0,
			2, 0, 0, 0, 0, 0, 0, 0,
			3, 0, 0, 0, 0, 0, 0, 0,
		},
	},
	{
		"a tensor of no elements", WF_RECORD_TENSOR, 16 + 10 + 8,
		{ .tensor = { .dtype = { WEFT_INT, 64, 1 }, .rank = 1, .shape = shape_0 } },
		{ [9] = 0, [10] = 64, [11] = 1, [12] = 1 },
	},
	{
		"a scalar", WF_RECORD_TENSOR, 16 + 10 + 1,
		{ .tensor = { .dtype = { WEFT_BOOL, 8, 1 },
			      .body = { .way = WF_BODY_EAGER, .bytes = 1 }, .eager = TEXT("\1") } },
		{ [9] = 6, [10] = 8, [12] = 1, [16] = 1, [17] = 1, [26] = 1 },
	},
	{
		"a call", WF_RECORD_CALL, 28 + 18 + 4 + 3 + 9 + 2,
		{ .call = { .call = 0x1817161514131211, .left_ns = UINT64_MAX,
			    .service_bytes = 4, .method_bytes = 3, .attachments = 2,
			    .service = TEXT("a.Ps"), .method = TEXT("Get"), .metadata_bytes = 9, .metadata = k_is_vw,
			    .body = { .way = WF_BODY_EAGER, .bytes = 2,
				      .sum_kind = WF_BODY_SUM_XXH3, .sum = 0x2827262524232221 },
			    .eager = TEXT("\x08\x01") } },
		{
			0x11, 0x12, 0x13, 0x14, 0x15, 0x16, 0x17, 0x18,
			0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff,
			0, 0, 4, 0, 3, 0, 2, 0, 9, 0, 0, 0,
			1, 2, 0, 0, 0, 0, 0, 0, 0, 1,
			0x21, 0x22, 0x23, 0x24, 0x25, 0x26, 0x27, 0x28,
			'a', '.', 'P', 's', 'G', 'e', 't',
			1, 0, 2, 0, 0, 0, 'k', 'v', 'w',
			0x08, 0x01,
		},
	},
	{
		"a call without a body, whose reply is to have a sum", WF_RECORD_CALL, 28 + 10,
		{ .call = { .call = 7, .body = { .sum_kind = WF_BODY_SUM_XXH3 } } },
		{ 7, [37] = 1 },
	},
	{
		"a call without a body, whose reply is to have a priority", WF_RECORD_CALL, 28 + 10,
		{ .call = { .call = 7, .body = { .priority = 2 } } },
		{ 7, [37] = 0x20 },
	},
	{
		"a call that may be made again", WF_RECORD_CALL, 28 + 8 + 10 + 1 + 1,
		{ .call = { .call = 7, .left_ns = 9, .flags = WF_CALL_REQUEST,
			    .request = 0x3837363534333231, .service_bytes = 1, .method_bytes = 1,
			    .service = TEXT("S"), .method = TEXT("M") } },
		{
			7, 0, 0, 0, 0, 0, 0, 0,
			9, 0, 0, 0, 0, 0, 0, 0,
			2, 0, 1, 0, 1, 0, 0, 0, 0, 0, 0, 0,
			0x31, 0x32, 0x33, 0x34, 0x35, 0x36, 0x37, 0x38,
			0, 0, 0, 0, 0, 0, 0, 0, 0, 0,
			'S', 'M',
		},
	},
	{
		"a call that is made again", WF_RECORD_CALL, 28 + 24 + 10 + 1 + 1 + 2,
		{ .call = { .call = 8, .flags = WF_CALL_REQUEST | WF_CALL_AGAIN, .request = 1,
			    .incarnation = TEXT("0123456789abcdef"), .service_bytes = 1,
			    .method_bytes = 1, .service = TEXT("S"), .method = TEXT("M"),
			    .body = { .way = WF_BODY_EAGER, .bytes = 2 }, .eager = TEXT("\x08\x01") } },
		{
			8, 0, 0, 0, 0, 0, 0, 0,
			0, 0, 0, 0, 0, 0, 0, 0,
			6, 0, 1, 0, 1, 0, 0, 0, 0, 0, 0, 0,
			1, 0, 0, 0, 0, 0, 0, 0,
			'0', '1', '2', '3', '4', '5', '6', '7', '8', '9', 'a', 'b', 'c', 'd', 'e', 'f',
			1, 2, 0, 0, 0, 0, 0, 0, 0, 0,
			'S', 'M', 0x08, 0x01,
		},
	},
	{
		"a call with a stream", WF_RECORD_CALL, 28 + 10 + 1 + 1 + 9,
		{ .call = { .call = 7, .left_ns = 0x2827262524232221, .flags = WF_CALL_STREAM,
			    .service_bytes = 1, .method_bytes = 1, .service = TEXT("S"),
			    .method = TEXT("M"), .metadata_bytes = 9, .metadata = k_is_vw } },
		{
			7, 0, 0, 0, 0, 0, 0, 0,
			0x21, 0x22, 0x23, 0x24, 0x25, 0x26, 0x27, 0x28,
			1, 0, 1, 0, 1, 0, 0, 0, 9, 0, 0, 0,
			0, 0, 0, 0, 0, 0, 0, 0, 0, 0,
			'S', 'M',
			1, 0, 2, 0, 0, 0, 'k', 'v', 'w',
		},
	},
	{
		"a reply", WF_RECORD_REPLY, 28 + 38 + 2,
		{ .reply = { .call = 2, .status = WEFT_UNAUTHENTICATED,
			     .executed = WEFT_EXECUTED_YES, .text_bytes = 2, .text = TEXT("no"),
			     .body = { WF_BODY_PULL, 1, 3, 4, UINT64_MAX - 1, 6 } } },
		{
			2, 0, 0, 0, 0, 0, 0, 0,
			16, 2, 0, 0, 2, 0, 0, 0,
			0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0,
			2, 1, 0, 0, 0, 0, 0, 0, 0, 0,
			3, 0, 0, 0, 0, 0, 0, 0,
			4, 0, 0, 0,
			0xfe, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff,
			6, 0, 0, 0, 0, 0, 0, 0,
			'n', 'o',
		},
	},
	{
		"a reply with all that it may have", WF_RECORD_REPLY, 28 + 18 + 2 + 9 + 7 + 3 + 1,
		{ .reply = { .call = 0x1817161514131211, .status = WEFT_ABORTED,
			     .executed = WEFT_EXECUTED_MAYBE, .flags = WF_REPLY_COMPRESSED,
			     .text_bytes = 2, .text = TEXT("no"),
			     .initial_bytes = 9, .initial = k_is_vw,
			     .trailing_bytes = 7, .trailing = TEXT("\1\0\0\0\0\0t"),
			     .details_bytes = 3, .details = TEXT("\0\xff\n"),
			     .body = { .way = WF_BODY_EAGER, .bytes = 1,
				       .sum_kind = WF_BODY_SUM_XXH3, .sum = 0x2827262524232221 },
			     .eager = TEXT("e") } },
		{
			0x11, 0x12, 0x13, 0x14, 0x15, 0x16, 0x17, 0x18,
			10, 1, 1, 0, 2, 0, 0, 0,
			9, 0, 0, 0, 7, 0, 0, 0, 3, 0, 0, 0,
			1, 1, 0, 0, 0, 0, 0, 0, 0, 1,
			0x21, 0x22, 0x23, 0x24, 0x25, 0x26, 0x27, 0x28,
			'n', 'o',
			1, 0, 2, 0, 0, 0, 'k', 'v', 'w',
			1, 0, 0, 0, 0, 0, 't',
			0, 0xff, '\n',
			'e',
		},
	},
	{
		"the first message of a server", WF_RECORD_RESPONSE, 16 + 18 + 9 + 2,
		{ .message = { .call = 0x1817161514131211, .flags = WF_MESSAGE_INITIAL,
			       .metadata_bytes = 9, .metadata = k_is_vw,
			       .body = { .way = WF_BODY_EAGER, .bytes = 2,
					 .sum_kind = WF_BODY_SUM_XXH3,
					 .sum = 0x2827262524232221 },
			       .eager = TEXT("\x08\x01") } },
		{
			0x11, 0x12, 0x13, 0x14, 0x15, 0x16, 0x17, 0x18,
			4, 0, 0, 0, 9, 0, 0, 0,
			1, 2, 0, 0, 0, 0, 0, 0, 0, 1,
			0x21, 0x22, 0x23, 0x24, 0x25, 0x26, 0x27, 0x28,
			1, 0, 2, 0, 0, 0, 'k', 'v', 'w',
			0x08, 0x01,
		},
	},
	{
		"initial metadata before any message", WF_RECORD_RESPONSE, 16 + 10 + 9,
		{ .message = { .call = 7, .flags = WF_MESSAGE_NONE | WF_MESSAGE_INITIAL,
			       .metadata_bytes = 9, .metadata = k_is_vw } },
		{
			7, 0, 0, 0, 0, 0, 0, 0,
			5, 0, 0, 0, 9, 0, 0, 0,
			0, 0, 0, 0, 0, 0, 0, 0, 0, 0,
			1, 0, 2, 0, 0, 0, 'k', 'v', 'w',
		},
	},
	{
		"the last message of a caller, which is pulled", WF_RECORD_REQUEST, 16 + 46,
		{ .message = { .call = 7, .flags = WF_MESSAGE_LAST, .attachments = 0x0102,
			       .body = { WF_BODY_PULL, 48, 0x2827262524232221, 0x34333231,
					 0x4847464544434241, 0x5857565554535251,
					 WF_BODY_SUM_XXH3, 0x6867666564636261 } } },
		{
			7, 0, 0, 0, 0, 0, 0, 0,
			2, 0, 2, 1, 0, 0, 0, 0,
			2, 48, 0, 0, 0, 0, 0, 0, 0, 1,
			0x21, 0x22, 0x23, 0x24, 0x25, 0x26, 0x27, 0x28,
			0x31, 0x32, 0x33, 0x34,
			0x41, 0x42, 0x43, 0x44, 0x45, 0x46, 0x47, 0x48,
			0x51, 0x52, 0x53, 0x54, 0x55, 0x56, 0x57, 0x58,
			0x61, 0x62, 0x63, 0x64, 0x65, 0x66, 0x67, 0x68,
		},
	},
	{
		"a reply that attachments follow", WF_RECORD_REPLY, 28 + 10,
		{ .reply = { .call = 2, .executed = WEFT_EXECUTED_YES, .attachments = 0x0203 } },
		{ 2, [9] = WEFT_EXECUTED_YES, [14] = 3, [15] = 2 },
	},
	{
		"an attachment that can't be sent", WF_RECORD_ATTACHMENT, 16 + 10 + 13,
		{ .tensor = { .step = 7, .flags = WEFT_DEAD | WF_TENSOR_LOST,
			      .dtype = { WEFT_FLOAT, 32, 1 }, .key_bytes = 13,
			      .key = TEXT("\1\2\0\0\0\0\0\0\0\3\0\0\0") } },
		{
			7, 0, 0, 0, 0, 0, 0, 0,
			129, WEFT_FLOAT, 32, 0, 1, 0, 13, 0,
			0, 0, 0, 0, 0, 0, 0, 0, 0, 0,
			1, 2, 0, 0, 0, 0, 0, 0, 0, 3, 0, 0, 0,
		},
	},
	{
		"an empty message", WF_RECORD_REQUEST, 16 + 10,
		{ .message = { .call = 7 } },
		{ 7 },
	},
	{
		"a half-close", WF_RECORD_REQUEST, 16 + 10,
		{ .message = { .call = 7, .flags = WF_MESSAGE_NONE | WF_MESSAGE_LAST } },
		{ 7, [8] = 3 },
	},
	{
		"an offer made again", WF_RECORD_OFFER, 8 + 46,
		{ .offer = { .pull = 0x1817161514131211,
			     .body = { WF_BODY_PULL, MIB, 3, 4, 5, 6, WF_BODY_SUM_XXH3, 7 } } },
		{
			0x11, 0x12, 0x13, 0x14, 0x15, 0x16, 0x17, 0x18,
			2, 0, 0, 0x10, 0, 0, 0, 0, 0, 1,
			3, 0, 0, 0, 0, 0, 0, 0,
			4, 0, 0, 0,
			5, 0, 0, 0, 0, 0, 0, 0,
			6, 0, 0, 0, 0, 0, 0, 0,
			7, 0, 0, 0, 0, 0, 0, 0,
		},
	},
	{
		"a message whose first bytes are in a parcel", WF_RECORD_REQUEST, 16 + 106,
		{ .message = { .call = 7,
			       .body = { WF_BODY_PULL, MIB, 3, 4, 5, 6, WF_BODY_SUM_XXH3, 7,
					 .parcel = { 0x4847464544434241, 0x3231,
						     { [0] = 8, [31] = 9 },
						     { [0] = 10, [15] = 11 } } } } },
		{
			7, 0, 0, 0, 0, 0, 0, 0,
			0, 0, 0, 0, 0, 0, 0, 0,
			6, 0, 0, 0x10, 0, 0, 0, 0, 0, 1,
			3, 0, 0, 0, 0, 0, 0, 0,
			4, 0, 0, 0,
			5, 0, 0, 0, 0, 0, 0, 0,
			6, 0, 0, 0, 0, 0, 0, 0,
			0x41, 0x42, 0x43, 0x44, 0x45, 0x46, 0x47, 0x48,
			0x31, 0x32, 0, 0,
			8, [97] = 9, 10, [113] = 11,
			7, 0, 0, 0, 0, 0, 0, 0,
		},
	},
	{
		"an offer of two pieces, whose sums are asked for", WF_RECORD_OFFER, 8 + 38,
		{ .offer = { .pull = 1,
			     .body = { WF_BODY_PULL, MIB + 1, 3, 4, 5, 6, WF_BODY_SUM_XXH3 } } },
		{
			1, 0, 0, 0, 0, 0, 0, 0,
			2, 1, 0, 0x10, 0, 0, 0, 0, 0, 1,
			3, 0, 0, 0, 0, 0, 0, 0,
			4, 0, 0, 0,
			5, 0, 0, 0, 0, 0, 0, 0,
			6, 0, 0, 0, 0, 0, 0, 0,
		},
	},
	{
		"an offer that is gone", WF_RECORD_OFFER, 8 + 10,
		{ .offer = { .pull = 1 } },
		{ 1 },
	},
	{
		"a step aborted", WF_RECORD_ABORT, 8 + 1 + 2 + 3,
		{ .abort = { .step = 0x1817161514131211, .status = WEFT_DATA_LOSS,
			     .text_bytes = 3, .text = TEXT("nan") } },
		{
			0x11, 0x12, 0x13, 0x14, 0x15, 0x16, 0x17, 0x18,
			15, 3, 0,
			'n', 'a', 'n',
		},
	},
	{
		"a step aborted without a word", WF_RECORD_ABORT, 8 + 1 + 2,
		{ .abort = { .status = WEFT_CANCELLED } },
		{ [8] = 1 },
	},
	{
		/* With any other it could be some more, or some less. */
		"the sum of the last piece there may be", WF_RECORD_SUMS, 12 + 8,
		{ .sums = { .pull = 0x1817161514131211, .first = WF_BODY_PIECES_MAX - 1, .count = 1,
			    .sums = { 0x2827262524232221 } } },
		{
			0x11, 0x12, 0x13, 0x14, 0x15, 0x16, 0x17, 0x18,
			0xff, 3, 0, 0,
			0x21, 0x22, 0x23, 0x24, 0x25, 0x26, 0x27, 0x28,
		},
	},
	{
		"a body on another lane", WF_RECORD_LANE, WF_RECORD_LANE_BYTES,
		{ .lane = { 0x1817161514131211, 0x24232221, 0x3837363534333231,
			    0x4847464544434241 } },
		{
			0x11, 0x12, 0x13, 0x14, 0x15, 0x16, 0x17, 0x18,
			0x21, 0x22, 0x23, 0x24,
			0x31, 0x32, 0x33, 0x34, 0x35, 0x36, 0x37, 0x38,
			0x41, 0x42, 0x43, 0x44, 0x45, 0x46, 0x47, 0x48,
		},
	},
	{
		"a put's body with a note", WF_RECORD_PUSH, 39 + 3 + 38,
		{ .push = { .window = { 0x1817161514131211, TOKEN }, .at = 0x2827262524232221,
			    .flags = WF_ACCESS_PUSH_LAST | WF_ACCESS_PUSH_NOTED,
			    .number = 0x34333231, .note_bytes = 3, .note = TEXT("kv!"),
			    .body = { WF_BODY_PULL, 5, 9, 4, 6, 7 } } },
		{
			0x11, 0x12, 0x13, 0x14, 0x15, 0x16, 0x17, 0x18,
			TOKEN_BYTES,
			0x21, 0x22, 0x23, 0x24, 0x25, 0x26, 0x27, 0x28,
			3,
			0x31, 0x32, 0x33, 0x34,
			3, 0,
			'k', 'v', '!',
			2, 5, 0, 0, 0, 0, 0, 0, 0, 0,
			9, 0, 0, 0, 0, 0, 0, 0,
			4, 0, 0, 0,
			6, 0, 0, 0, 0, 0, 0, 0,
			7, 0, 0, 0, 0, 0, 0, 0,
		},
	},
	{
		"a put's body that is staged", WF_RECORD_PUSH, 39 + 46,
		{ .push = { .window = { 1, TOKEN },
			    .body = { WF_BODY_STAGED, 5, 9, 4, 6, 7, .bounce_bytes = 3 } } },
		{
			1, 0, 0, 0, 0, 0, 0, 0,
			TOKEN_BYTES,
			[39] = 4, 5, [49] = 9, [57] = 4, [61] = 6, [69] = 7, [77] = 3,
		},
	},
	{
		"the note of a get", WF_RECORD_PUSH, 39 + 10,
		{ .push = { .window = { 1, TOKEN },
			    .flags = WF_ACCESS_PUSH_NOTED | WF_ACCESS_PUSH_GOT,
			    .number = UINT32_MAX } },
		{
			1, 0, 0, 0, 0, 0, 0, 0,
			TOKEN_BYTES,
			[32] = 6, 0xff, 0xff, 0xff, 0xff,
		},
	},
	{
		"a range of a window that is asked for", WF_RECORD_ASK, WF_ACCESS_ASK_BYTES,
		{ .ask = { .id = 0x1817161514131211, .window = { 0x2827262524232221, TOKEN },
			   .at = 0x3837363534333231, .bytes = 0x4847464544434241,
			   .flags = WF_ACCESS_ASK_STAY | WF_ACCESS_ASK_SUM } },
		{
			0x11, 0x12, 0x13, 0x14, 0x15, 0x16, 0x17, 0x18,
			0x21, 0x22, 0x23, 0x24, 0x25, 0x26, 0x27, 0x28,
			TOKEN_BYTES,
			0x31, 0x32, 0x33, 0x34, 0x35, 0x36, 0x37, 0x38,
			0x41, 0x42, 0x43, 0x44, 0x45, 0x46, 0x47, 0x48,
			3,
		},
	},
	{
		"a range that is lent", WF_RECORD_LEND, 9 + 46,
		{ .lend = { .id = 0x1817161514131211,
			    .body = { WF_BODY_PULL, 5, 9, 4, 6, 7, WF_BODY_SUM_XXH3,
				      0x6867666564636261 } } },
		{
			0x11, 0x12, 0x13, 0x14, 0x15, 0x16, 0x17, 0x18,
			0,
			2, 5, 0, 0, 0, 0, 0, 0, 0, 1,
			9, 0, 0, 0, 0, 0, 0, 0,
			4, 0, 0, 0,
			6, 0, 0, 0, 0, 0, 0, 0,
			7, 0, 0, 0, 0, 0, 0, 0,
			0x61, 0x62, 0x63, 0x64, 0x65, 0x66, 0x67, 0x68,
		},
	},
	{
		"a range that is refused", WF_RECORD_LEND, 9 + 10,
		{ .lend = { .id = 1, .status = WEFT_NOT_FOUND } },
		{ 1, [8] = WEFT_NOT_FOUND },
	},
	{
		"bytes of a body that are to be sealed", WF_RECORD_SEAL, 34 + 16,
		{ .seal = { .offer = 0x1817161514131211, .pull = 0x2827262524232221,
			    .read = 0x34333231, .round = 0x44434241, .opened = 0x5857565554535251,
			    .priority = 2, .count = 1,
			    .ranges = { { 0x6867666564636261, 0x030201 } } } },
		{
			0x11, 0x12, 0x13, 0x14, 0x15, 0x16, 0x17, 0x18,
			0x21, 0x22, 0x23, 0x24, 0x25, 0x26, 0x27, 0x28,
			0x31, 0x32, 0x33, 0x34,
			0x41, 0x42, 0x43, 0x44,
			0x51, 0x52, 0x53, 0x54, 0x55, 0x56, 0x57, 0x58,
			2, 1,
			0x61, 0x62, 0x63, 0x64, 0x65, 0x66, 0x67, 0x68, 1, 2, 3, 0, 0, 0, 0, 0,
		},
	},
	{
		"as many ranges and bytes as a parcel may have", WF_RECORD_SEAL,
		WF_PARCEL_ASK_BYTES_MAX,
		{ .seal = { .offer = 9, .pull = 8, .read = UINT32_MAX,
			    .priority = WEFT_PRIORITY_MAX, .count = WF_PARCEL_RANGES_MAX,
			    .ranges = { { 0x18, 1 }, { 0, 0x80000 }, { UINT64_MAX - 15, 15 },
					{ 0x17, 0x7fff0 } } } },
		{
			9, 0, 0, 0, 0, 0, 0, 0,
			8, 0, 0, 0, 0, 0, 0, 0,
			0xff, 0xff, 0xff, 0xff,
			0, 0, 0, 0,
			0, 0, 0, 0, 0, 0, 0, 0,
			3, 4,
			0x18, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0,
			0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 8, 0, 0, 0, 0, 0,
			0xf0, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 15, 0, 0, 0, 0, 0, 0, 0,
			0x17, 0, 0, 0, 0, 0, 0, 0, 0xf0, 0xff, 7, 0, 0, 0, 0, 0,
		},
	},
	{
		"a parcel that can be read", WF_RECORD_SEALED, WF_PARCEL_ANSWER_BYTES,
		{ .sealed = { .pull = 0x1817161514131211, .read = 0x24232221, .round = 0x34333231,
			      .parcel = 0x4847464544434241, .epoch = 0x54535251,
			      .address = 0x6867666564636261, .key = 0x7877767574737271,
			      .secret = { TOKEN_BYTES, 0x81, 0x82, [31] = 0x83 },
			      .tag = { TOKEN_BYTES } } },
		{
			0x11, 0x12, 0x13, 0x14, 0x15, 0x16, 0x17, 0x18,
			0x21, 0x22, 0x23, 0x24,
			0x31, 0x32, 0x33, 0x34,
			0,
			0x41, 0x42, 0x43, 0x44, 0x45, 0x46, 0x47, 0x48,
			0x51, 0x52, 0x53, 0x54,
			0x61, 0x62, 0x63, 0x64, 0x65, 0x66, 0x67, 0x68,
			0x71, 0x72, 0x73, 0x74, 0x75, 0x76, 0x77, 0x78,
			TOKEN_BYTES,
			0x81, 0x82, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0x83,
			TOKEN_BYTES,
		},
	},
	{
		"a parcel that can't be had", WF_RECORD_SEALED, WF_PARCEL_ANSWER_BYTES,
		{ .sealed = { .pull = 1, .read = 2, .round = 3,
			      .status = WEFT_RESOURCE_EXHAUSTED } },
		{ 1, [8] = 2, [12] = 3, [16] = WEFT_RESOURCE_EXHAUSTED },
	},
	{
		"a parcel opened", WF_RECORD_OPENED, WF_RECORD_SMALL_BYTES,
		{ .small = { 0x1817161514131211, 0x2827262524232221, WEFT_OK } },
		{
			0x11, 0x12, 0x13, 0x14, 0x15, 0x16, 0x17, 0x18,
			0x21, 0x22, 0x23, 0x24, 0x25, 0x26, 0x27, 0x28,
		},
	},
	{
		"a view released", WF_RECORD_RELEASED, WF_RECORD_SMALL_BYTES,
		{ .small = { 1, 1022, WEFT_OK } },
		{ 1, [8] = 0xfe, 3 },
	},
	{
		"no more calls", WF_RECORD_DRAIN, WF_RECORD_SMALL_BYTES, { .small = { 0 } }, { 0 },
	},
	{
		"messages granted", WF_RECORD_GRANT_REQUESTS, WF_RECORD_SMALL_BYTES,
		{ .small = { 7, 0x2827262524232221, WEFT_OK } },
		{ 7, [8] = 0x21, 0x22, 0x23, 0x24, 0x25, 0x26, 0x27, 0x28 },
	},
	{
		"a pull done", WF_RECORD_PULLED, WF_RECORD_SMALL_BYTES,
		{ .small = { 0x1817161514131211, 0x2827262524232221, WEFT_CANCELLED } },
		{
			0x11, 0x12, 0x13, 0x14, 0x15, 0x16, 0x17, 0x18,
			0x21, 0x22, 0x23, 0x24, 0x25, 0x26, 0x27, 0x28,
			1,
		},
	},
};

/* On a heap block of exactly its size, so that a sanitizer sees the first byte too many. */
static int get(uint8_t type, const uint8_t *bytes, size_t count)
{
	uint8_t *exact = test_malloc(count + !count);
	union any_record any;
	int rc;

	memcpy(exact, bytes, count);
	rc = any_record_get(type, exact, count, &any);
	if (!rc)
		assert_true(any_record_inside(type, &any, exact, count));
	test_free(exact);
	return rc;
}

static void a_record_is_the_same_bytes_both_ways(void **state)
{
	(void)state;
	for (size_t i = 0; i < WF_COUNT(rows); i++) {
		const struct row *row = &rows[i];
		uint8_t bytes[ROOM];
		union any_record any;

		if (any_record_put(row->type, &row->any, bytes, sizeof(bytes)) != row->count)
			fail_msg("%s: another length", row->name);
		assert_memory_equal(bytes, row->bytes, row->count);
		if (any_record_get(row->type, row->bytes, row->count, &any))
			fail_msg("%s: refused", row->name);
		/* All of the struct came back: it makes the same bytes again. */
		memset(bytes, 0xee, sizeof(bytes));
		assert_int_equal(any_record_put(row->type, &any, bytes, sizeof(bytes)), row->count);
		assert_memory_equal(bytes, row->bytes, row->count);
	}
}

static void a_head_is_as_long_as_it_says(void **state)
{
	(void)state;
	for (size_t i = 0; i < WF_COUNT(rows); i++) {
		const union any_record *any = &rows[i].any;

		if (rows[i].type == WF_RECORD_TENSOR || rows[i].type == WF_RECORD_ATTACHMENT)
			assert_int_equal(wf_record_tensor_bytes(&any->tensor) +
						 (any->tensor.eager ? any->tensor.body.bytes : 0),
					 rows[i].count);
		if (rows[i].type == WF_RECORD_CALL)
			assert_int_equal(wf_record_call_bytes(&any->call) +
						 (any->call.eager ? any->call.body.bytes : 0),
					 rows[i].count);
		if (rows[i].type == WF_RECORD_REPLY)
			assert_int_equal(wf_record_reply_bytes(&any->reply) +
						 (any->reply.eager ? any->reply.body.bytes : 0),
					 rows[i].count);
		if (rows[i].type == WF_RECORD_REQUEST || rows[i].type == WF_RECORD_RESPONSE)
			assert_int_equal(wf_record_message_bytes(&any->message) +
						 (any->message.eager ? any->message.body.bytes : 0),
					 rows[i].count);
		if (rows[i].type == WF_RECORD_ABORT)
			assert_int_equal(wf_record_abort_bytes(&any->abort), rows[i].count);
		if (rows[i].type == WF_RECORD_PUSH)
			assert_int_equal(wf_access_push_bytes(&any->push), rows[i].count);
		if (rows[i].type == WF_RECORD_LEND)
			assert_int_equal(wf_access_lend_bytes(&any->lend), rows[i].count);
	}
}

static void every_other_length_is_refused(void **state)
{
	(void)state;
	for (size_t i = 0; i < WF_COUNT(rows); i++) {
		for (size_t count = 0; count <= sizeof(rows[i].bytes); count++)
			if (count != rows[i].count &&
			    get(rows[i].type, rows[i].bytes, count) != -EBADMSG)
				fail_msg("%s: accepted with %zu bytes", rows[i].name, count);
	}
}

static void a_refused_record_changes_nothing(void **state)
{
	union any_record any, before;

	(void)state;
	for (size_t i = 0; i < WF_COUNT(rows); i++) {
		memset(&any, 0x5a, sizeof(any));
		before = any;
		assert_int_equal(any_record_get(rows[i].type, rows[i].bytes, rows[i].count - 1,
						&any), -EBADMSG);
		assert_memory_equal(&any, &before, sizeof(any));
	}
}

static void no_damaged_record_yields_bytes_beyond_its_end(void **state)
{
	unsigned accepted = 0;
	uint64_t seed = 1;

	(void)state;
	for (unsigned i = 0; i < ROUNDS; i++) {
		const struct row *row = &rows[i % WF_COUNT(rows)];
		uint8_t bytes[ROOM];
		size_t count;

		memcpy(bytes, row->bytes, row->count);
		count = mutate(&seed, bytes, row->count, sizeof(bytes));
		accepted += !get(row->type, bytes, count);
	}
	/* Else the damage was never light enough to test anything. */
	assert_in_range(accepted, ROUNDS / 20, ROUNDS - ROUNDS / 20);
}

/* A tensor record with @body, put and got again; its eager bytes are zeros. */
static int travel(const struct wf_record_tensor *t, const int64_t *shape)
{
	size_t eager = t->body.way == WF_BODY_EAGER ? t->body.bytes : 0;
	size_t count = wf_record_tensor_bytes(t) + eager;
	uint8_t *bytes = test_calloc(1, count);
	struct wf_bytes_writer w = wf_bytes_writer(bytes, count);
	int rc;

	wf_record_tensor_put(&w, t, shape);
	assert_false(w.bad);
	assert_int_equal(wf_bytes_writer_left(&w), eager);
	rc = get(WF_RECORD_TENSOR, bytes, count);
	test_free(bytes);
	return rc;
}

static void the_body_must_be_as_long_as_the_shape_says(void **state)
{
	static const struct {
		struct weft_dtype dtype;
		uint8_t rank;
		int64_t shape[3];
		uint64_t bytes;
	} right[] = {
		{ { WEFT_FLOAT, 32, 1 }, 0, { 0 }, 4 },
		{ { WEFT_FLOAT, 32, 1 }, 1, { 7 }, 28 },
		{ { WEFT_FLOAT, 16, 1 }, 3, { 2, 3, 5 }, 60 },
		/* An element has whole bytes, as DLPack counts. */
		{ { WEFT_INT, 4, 1 }, 1, { 3 }, 3 },
		{ { WEFT_INT, 4, 2 }, 1, { 3 }, 3 },
		{ { WEFT_INT, 4, 3 }, 1, { 3 }, 6 },
		{ { WEFT_UINT, 1, 65535 }, 1, { 1 }, 8192 },
		{ { 255, 255, 65535 }, 1, { 1 }, 2088929 },
	};

	(void)state;
	for (size_t i = 0; i < WF_COUNT(right); i++) {
		struct wf_record_tensor t = { .dtype = right[i].dtype, .rank = right[i].rank };

		for (uint8_t way = WF_BODY_EAGER; way <= WF_BODY_STAGED; way++) {
			t.body = (struct wf_body){ .way = way, .bytes = right[i].bytes };
			assert_int_equal(travel(&t, right[i].shape), 0);
			t.body.bytes++;
			assert_int_equal(travel(&t, right[i].shape), -EBADMSG);
			t.body.bytes -= 2;
			assert_int_equal(travel(&t, right[i].shape), -EBADMSG);
		}
		t.body = (struct wf_body){ .way = WF_BODY_NONE };
		assert_int_equal(travel(&t, right[i].shape), -EBADMSG);
	}
}

static void a_shape_of_too_many_bytes_is_refused(void **state)
{
	/* To who does not look, 2^32 times 2^32 is 0. */
	static const int64_t too_big[][3] = {
		{ INT64_C(1) << 32, INT64_C(1) << 32, 1 },
		{ INT64_C(1) << 62, 1, 16 },
		{ INT64_MAX, INT64_MAX, 1 },
		{ INT64_MAX, 1, 3 },
		{ INT64_C(1) << 62, 2, 1 },
		/* Empty, but its strides would not fit. */
		{ INT64_MAX, INT64_MAX, 0 },
		{ 0, INT64_MAX, INT64_MAX },
	};
	struct wf_record_tensor t = { .dtype = { WEFT_UINT, 8, 1 }, .rank = 3 };

	(void)state;
	for (size_t i = 0; i < WF_COUNT(too_big); i++) {
		uint64_t product = (uint64_t)too_big[i][0] * (uint64_t)too_big[i][1] *
				   (uint64_t)too_big[i][2];

		t.body = (struct wf_body){ .way = product ? WF_BODY_PULL : WF_BODY_NONE,
					   .bytes = product };
		assert_int_equal(travel(&t, too_big[i]), -EBADMSG);
	}
	/* The element counts too. */
	t.dtype.bits = 32;
	t.rank = 1;
	t.body = (struct wf_body){ .way = WF_BODY_NONE };
	assert_int_equal(travel(&t, (const int64_t[]){ INT64_C(1) << 62 }), -EBADMSG);
}

static void the_largest_shape_that_fits_is_taken(void **state)
{
	struct wf_record_tensor t = { .dtype = { WEFT_UINT, 8, 1 }, .rank = 1,
				      .body = { .way = WF_BODY_PULL, .bytes = INT64_MAX } };

	(void)state;
	assert_int_equal(travel(&t, (const int64_t[]){ INT64_MAX }), 0);
}

static void one_zero_empties_a_shape_wherever_it_stands(void **state)
{
	static const int64_t empty[][3] = {
		{ 0, INT32_MAX, 2 },
		{ INT32_MAX, 2, 0 },
		{ 4, 0, 4 },
	};
	struct wf_record_tensor t = { .dtype = { WEFT_FLOAT, 64, 1 }, .rank = 3 };

	(void)state;
	for (size_t i = 0; i < WF_COUNT(empty); i++)
		assert_int_equal(travel(&t, empty[i]), 0);
}

static void a_negative_dimension_is_refused(void **state)
{
	static const int64_t negative[][2] = { { -1, 0 }, { 0, -1 }, { INT64_MIN, 0 }, { -1, -1 } };
	struct wf_record_tensor t = { .dtype = { WEFT_UINT, 8, 1 }, .rank = 2 };

	(void)state;
	for (size_t i = 0; i < WF_COUNT(negative); i++) {
		assert_int_equal(travel(&t, negative[i]), -EBADMSG);
		t.flags = WEFT_DEAD;
		assert_int_equal(travel(&t, negative[i]), -EBADMSG);
		t.flags = 0;
	}
	t.body = (struct wf_body){ .way = WF_BODY_EAGER, .bytes = 1 };
	assert_int_equal(travel(&t, negative[3]), -EBADMSG);
}

static void a_dimension_is_read_as_it_was_written(void **state)
{
	static const int64_t shape[] = { 0, 1, INT64_C(0x0102030405060708), 3 };
	struct wf_record_tensor t = { .dtype = { WEFT_UINT, 8, 1 }, .rank = 4 }, got;
	uint8_t bytes[ROOM];
	struct wf_bytes_writer w = wf_bytes_writer(bytes, sizeof(bytes));

	(void)state;
	wf_record_tensor_put(&w, &t, shape);
	assert_int_equal(wf_record_tensor_get(bytes, (size_t)(w.at - bytes), &got), 0);
	for (unsigned i = 0; i < 4; i++)
		assert_int_equal(wf_record_tensor_dim(&got, i), shape[i]);
}

static void the_highest_rank_and_the_longest_key_travel(void **state)
{
	static uint8_t key[WEFT_KEY_BYTES_MAX];
	int64_t shape[WEFT_RANK_MAX + 1];
	struct wf_record_tensor t = { .dtype = { WEFT_UINT, 8, 1 }, .rank = WEFT_RANK_MAX,
				      .key = key, .key_bytes = WEFT_KEY_BYTES_MAX,
				      .body = { .way = WF_BODY_EAGER, .bytes = 1 } };

	(void)state;
	for (size_t i = 0; i < WF_COUNT(shape); i++)
		shape[i] = 1;
	assert_int_equal(travel(&t, shape), 0);
	t.rank++;
	assert_int_equal(travel(&t, shape), -EBADMSG);
}

static void a_dtype_without_bits_or_lanes_is_refused(void **state)
{
	struct wf_record_tensor t = { .flags = WEFT_DEAD, .dtype = { WEFT_INT, 0, 1 } };

	(void)state;
	assert_int_equal(travel(&t, NULL), -EBADMSG);
	t.dtype = (struct weft_dtype){ WEFT_INT, 8, 0 };
	assert_int_equal(travel(&t, NULL), -EBADMSG);
	t.dtype.lanes = 1;
	assert_int_equal(travel(&t, NULL), 0);
}

static void a_dead_tensor_has_no_body(void **state)
{
	struct wf_record_tensor t = { .flags = WEFT_DEAD, .dtype = { WEFT_INT, 8, 1 },
				      .body = { .way = WF_BODY_EAGER, .bytes = 1 } };

	(void)state;
	assert_int_equal(travel(&t, NULL), -EBADMSG);
	t.body = (struct wf_body){ .way = WF_BODY_EAGER };
	assert_int_equal(travel(&t, NULL), -EBADMSG);
}

static void an_opaque_tensor_is_a_row_of_bytes(void **state)
{
	static const int64_t shape[] = { 2, 1 };
	static const struct {
		struct weft_dtype dtype;
		uint8_t rank;
		int expected;
	} cases[] = {
		{ { WEFT_UINT, 8, 1 }, 1, 0 },
		{ { WEFT_UINT, 8, 1 }, 2, -EBADMSG },
		{ { WEFT_INT, 8, 1 }, 1, -EBADMSG },
		{ { WEFT_UINT, 4, 1 }, 1, -EBADMSG },
		{ { WEFT_UINT, 4, 2 }, 1, -EBADMSG },
	};

	(void)state;
	for (size_t i = 0; i < WF_COUNT(cases); i++) {
		struct wf_record_tensor t = { .flags = WEFT_OPAQUE, .dtype = cases[i].dtype,
					      .rank = cases[i].rank,
					      .body = { .way = WF_BODY_EAGER, .bytes = 2 } };

		assert_int_equal(travel(&t, shape), cases[i].expected);
	}
}

static void a_flag_that_does_not_travel_is_refused(void **state)
{
	(void)state;
	for (unsigned bit = 0; bit < 8; bit++) {
		struct wf_record_tensor t = { .flags = (uint8_t)(1 << bit),
					      .dtype = { WEFT_UINT, 8, 1 }, .rank = 1 };

		assert_int_equal(travel(&t, (const int64_t[]){ 0 }),
				 1 << bit & (WEFT_DEAD | WEFT_OPAQUE | WF_TENSOR_RELAYED)
					 ? 0
					 : -EBADMSG);
	}
}

static const uint8_t handle[WF_BODY_HANDLE_BYTES] = { 7, [WF_BODY_HANDLE_BYTES - 1] = 8 };

static int travel_body(struct wf_body body)
{
	uint8_t bytes[WF_BODY_BYTES_MAX];
	struct wf_bytes_writer w = wf_bytes_writer(bytes, sizeof(bytes));
	struct wf_body got = { .way = 99 };
	struct wf_bytes_reader r;
	int rc;

	wf_body_put(&w, &body);
	assert_false(w.bad);
	assert_int_equal(w.at - bytes, wf_body_bytes(&body));
	r = wf_bytes_reader(bytes, (size_t)(w.at - bytes));
	rc = wf_body_get(&r, &got);
	if (rc)
		assert_int_equal(got.way, 99);
	return rc;
}

static void a_body_makes_sense_by_itself(void **state)
{
	(void)state;
	assert_int_equal(travel_body((struct wf_body){ .way = WF_BODY_NONE }), 0);
	assert_int_equal(travel_body((struct wf_body){ .way = WF_BODY_NONE, .bytes = 1 }), -EBADMSG);
	assert_int_equal(travel_body((struct wf_body){ .way = WF_BODY_EAGER, .bytes = 0 }), 0);
	assert_int_equal(travel_body((struct wf_body){ .way = WF_BODY_PULL, .bytes = 0 }), -EBADMSG);
	assert_int_equal(travel_body((struct wf_body){ .way = WF_BODY_PULL, .bytes = UINT64_MAX }),
			 0);
	assert_int_equal(travel_body((struct wf_body){ .way = WF_BODY_PULL, .bytes = UINT64_MAX,
						       .address = 1 }), -EBADMSG);
	assert_int_equal(travel_body((struct wf_body){ .way = WF_BODY_VIEW, .bytes = 0 }), -EBADMSG);
	assert_int_equal(travel_body((struct wf_body){ .way = WF_BODY_VIEW, .bytes = 1,
						       .offset = UINT64_MAX }), -EBADMSG);
	assert_int_equal(travel_body((struct wf_body){ .way = WF_BODY_VIEW, .bytes = 1,
						       .address = UINT64_MAX }), -EBADMSG);
	assert_int_equal(travel_body((struct wf_body){ .way = WF_BODY_STAGED, .bytes = 0 }), -EBADMSG);
	assert_int_equal(travel_body((struct wf_body){ .way = WF_BODY_STAGED, .bytes = 9,
						       .bounce_bytes = 9 }), 0);
	assert_int_equal(travel_body((struct wf_body){ .way = WF_BODY_STAGED, .bytes = 9,
						       .bounce_bytes = 10 }), -EBADMSG);
	assert_int_equal(travel_body((struct wf_body){ .way = WF_BODY_HANDLE, .bytes = 9,
						       .handle = handle }), 0);
	assert_int_equal(travel_body((struct wf_body){ .way = WF_BODY_HANDLE, .bytes = 0,
						       .handle = handle }), -EBADMSG);
	assert_int_equal(travel_body((struct wf_body){ .way = 7, .bytes = 1 }), -EBADMSG);
}

static const struct wf_body good_parcel = {
	.way = WF_BODY_PULL, .bytes = 2 * WF_PARCEL_BYTES_MAX,
	.parcel = { .id = 1, .bytes = WF_PARCEL_BYTES_MAX, .tag = { 9 } },
};

static void a_parcel_of_an_offer_has_the_first_bytes_of_a_body(void **state)
{
	struct wf_body body = good_parcel;

	(void)state;
	assert_int_equal(travel_body(body), 0);
	body.parcel.bytes = WF_PARCEL_BYTES_MAX + 1;
	assert_int_equal(travel_body(body), -EBADMSG);
	body.parcel.bytes = 0;
	assert_int_equal(travel_body(body), -EBADMSG);
	body.parcel.bytes = 9;
	body.bytes = 9;
	assert_int_equal(travel_body(body), 0);
	body.bytes = 8;
	assert_int_equal(travel_body(body), -EBADMSG);
	body.bytes = 9;
	body.address = UINT64_MAX - 8;
	assert_int_equal(travel_body(body), -EBADMSG);
}

/* The number of a parcel is what tells that there is one. */
static void a_parcel_of_an_offer_has_a_number(void **state)
{
	uint8_t bytes[WF_BODY_BYTES_MAX];
	struct wf_bytes_writer w = wf_bytes_writer(bytes, sizeof(bytes));
	struct wf_bytes_reader r;
	struct wf_body got;

	(void)state;
	wf_body_put(&w, &good_parcel);
	r = wf_bytes_reader(bytes, (size_t)(w.at - bytes));
	assert_int_equal(wf_body_get(&r, &got), 0);
	assert_int_equal(got.parcel.id, 1);
	bytes[PARCEL_ID_AT] = 0;
	r = wf_bytes_reader(bytes, (size_t)(w.at - bytes));
	assert_int_equal(wf_body_get(&r, &got), -EBADMSG);
}

static void only_tensors_are_looked_at(void **state)
{
	struct wf_body view = { .way = WF_BODY_VIEW, .bytes = 1 };
	union any_record any;
	uint8_t bytes[ROOM];
	size_t count;

	(void)state;
	any.call = (struct wf_record_call){ .body = view };
	count = any_record_put(WF_RECORD_CALL, &any, bytes, ROOM);
	assert_int_equal(any_record_get(WF_RECORD_CALL, bytes, count, &any), -EBADMSG);
	any.reply = (struct wf_record_reply){ .body = view };
	count = any_record_put(WF_RECORD_REPLY, &any, bytes, ROOM);
	assert_int_equal(any_record_get(WF_RECORD_REPLY, bytes, count, &any), -EBADMSG);
	any.message = (struct wf_record_message){ .body = view };
	count = any_record_put(WF_RECORD_REQUEST, &any, bytes, ROOM);
	assert_int_equal(any_record_get(WF_RECORD_REQUEST, bytes, count, &any), -EBADMSG);
	any.offer = (struct wf_record_offer){ .body = view };
	count = any_record_put(WF_RECORD_OFFER, &any, bytes, ROOM);
	assert_int_equal(any_record_get(WF_RECORD_OFFER, bytes, count, &any), -EBADMSG);
}

static void only_an_offer_made_again_has_a_handle(void **state)
{
	const struct wf_body body = { .way = WF_BODY_HANDLE, .bytes = 5, .handle = handle };
	union any_record any;
	uint8_t bytes[ROOM];
	size_t count;

	(void)state;
	any.tensor = (struct wf_record_tensor){ .dtype = { WEFT_UINT, 8, 1 }, .rank = 1,
						.shape = shape_5, .body = body };
	count = any_record_put(WF_RECORD_TENSOR, &any, bytes, ROOM);
	assert_int_equal(any_record_get(WF_RECORD_TENSOR, bytes, count, &any), -EBADMSG);
	any.offer = (struct wf_record_offer){ .body = body };
	count = any_record_put(WF_RECORD_OFFER, &any, bytes, ROOM);
	assert_int_equal(any_record_get(WF_RECORD_OFFER, bytes, count, &any), 0);
	assert_memory_equal(any.offer.body.handle, handle, sizeof(handle));
}

/* The two share a byte. */
static void a_sum_is_of_a_known_kind_and_a_priority_within_its_bound(void **state)
{
	(void)state;
	for (unsigned byte = 0; byte <= UINT8_MAX; byte++)
		for (uint8_t way = WF_BODY_NONE; way <= WF_BODY_STAGED; way++)
			assert_int_equal(travel_body((struct wf_body){
						 .way = way, .bytes = way, .sum_kind = byte & 15,
						 .priority = (uint8_t)(byte >> 4),
					 }), (byte & 15) <= WF_BODY_SUM_XXH3 &&
					 byte >> 4 <= WEFT_PRIORITY_MAX ? 0 : -EBADMSG);
}

static void a_body_has_at_most_so_many_pieces(void **state)
{
	(void)state;
	assert_int_equal(wf_body_piece_count(0), 0);
	assert_int_equal(wf_body_piece_count(1), 1);
	assert_int_equal(wf_body_piece_count(MIB), 1);
	assert_int_equal(wf_body_piece_count(MIB + 1), 2);
	assert_int_equal(wf_body_piece_count(GIB), 1024);
	assert_int_equal(wf_body_piece_bytes(GIB), MIB);
	assert_int_equal(wf_body_piece_bytes(GIB + 1), 2 * MIB);
	assert_int_equal(wf_body_piece_count(GIB + 1), 513);
	assert_int_equal(wf_body_piece_count(UINT64_MAX), 1024);
	assert_int_equal(wf_body_piece_bytes(UINT64_MAX), UINT64_C(1) << 54);
}

static void sums_of_pieces_that_cant_be_are_refused(void **state)
{
	uint8_t bytes[WF_RECORD_SUMS_BYTES_MAX + 8] = { 0 };

	(void)state;
	assert_int_equal(get(WF_RECORD_SUMS, bytes, 12), -EBADMSG);
	assert_int_equal(get(WF_RECORD_SUMS, bytes, WF_RECORD_SUMS_BYTES_MAX), 0);
	assert_int_equal(get(WF_RECORD_SUMS, bytes, WF_RECORD_SUMS_BYTES_MAX + 8), -EBADMSG);
	bytes[8] = 0xff; /* the last piece there may be */
	bytes[9] = 3;
	assert_int_equal(get(WF_RECORD_SUMS, bytes, 12 + 8), 0);
	assert_int_equal(get(WF_RECORD_SUMS, bytes, 12 + 16), -EBADMSG);
	bytes[11] = 0xff;
	assert_int_equal(get(WF_RECORD_SUMS, bytes, 12 + 8), -EBADMSG);
}

static void a_lane_without_a_number_is_refused(void **state)
{
	uint8_t bytes[WF_RECORD_LANE_BYTES + 1] = { [8] = 1 };

	(void)state;
	assert_int_equal(get(WF_RECORD_LANE, bytes, WF_RECORD_LANE_BYTES), 0);
	assert_int_equal(get(WF_RECORD_LANE, bytes, WF_RECORD_LANE_BYTES - 1), -EBADMSG);
	assert_int_equal(get(WF_RECORD_LANE, bytes, WF_RECORD_LANE_BYTES + 1), -EBADMSG);
	bytes[8] = 0;
	assert_int_equal(get(WF_RECORD_LANE, bytes, WF_RECORD_LANE_BYTES), -EBADMSG);
}

static void an_offer_is_never_eager(void **state)
{
	static const uint8_t eager[18] = { 1, [8] = WF_BODY_EAGER };

	(void)state;
	assert_int_equal(get(WF_RECORD_OFFER, eager, sizeof(eager)), -EBADMSG);
}

static void a_status_that_nobody_knows_is_refused(void **state)
{
	uint8_t reply[28 + 10] = { 0 }, small[WF_RECORD_SMALL_BYTES] = { 0 };

	(void)state;
	for (unsigned value = 0; value <= UINT8_MAX; value++) {
		int expected = value <= WEFT_UNAUTHENTICATED ? 0 : -EBADMSG;

		reply[8] = small[16] = (uint8_t)value;
		assert_int_equal(get(WF_RECORD_REPLY, reply, sizeof(reply)), expected);
		assert_int_equal(get(WF_RECORD_PULLED, small, sizeof(small)), expected);
	}
	reply[8] = 0;
	for (unsigned value = 0; value <= UINT8_MAX; value++) {
		reply[9] = (uint8_t)value;
		assert_int_equal(get(WF_RECORD_REPLY, reply, sizeof(reply)),
				 value <= WEFT_EXECUTED_YES ? 0 : -EBADMSG);
	}
}

/* A record without eager bytes, put and got again. */
static int travel_any(uint8_t type, const union any_record *any)
{
	uint8_t bytes[ROOM];
	size_t count = any_record_put(type, any, bytes, sizeof(bytes));

	assert_true(count > 0);
	return get(type, bytes, count);
}

static void flags_of_a_call_that_make_no_sense_are_refused(void **state)
{
	(void)state;
	for (unsigned flags = 0; flags <= UINT16_MAX; flags++) {
		union any_record any = { .call = { .flags = (uint16_t)flags, .request = 1,
						   .incarnation = TEXT("0123456789abcdef") } };
		unsigned rest = flags & ~(unsigned)WF_CALL_COMPRESSED;
		bool makes_sense = !rest || flags == WF_CALL_STREAM || rest == WF_CALL_REQUEST ||
				   rest == (WF_CALL_REQUEST | WF_CALL_AGAIN);

		assert_int_equal(travel_any(WF_RECORD_CALL, &any), makes_sense ? 0 : -EBADMSG);
	}
}

static void a_request_has_an_id(void **state)
{
	union any_record any = { .call = { .flags = WF_CALL_REQUEST } };

	(void)state;
	assert_int_equal(travel_any(WF_RECORD_CALL, &any), -EBADMSG);
}

static void a_call_with_a_stream_has_no_body(void **state)
{
	union any_record any = { .call = { .body = { .way = WF_BODY_PULL, .bytes = 1 } } };

	(void)state;
	assert_int_equal(travel_any(WF_RECORD_CALL, &any), 0);
	any.call.flags = WF_CALL_STREAM;
	assert_int_equal(travel_any(WF_RECORD_CALL, &any), -EBADMSG);
	any.call.body = (struct wf_body){ .way = WF_BODY_EAGER };
	assert_int_equal(travel_any(WF_RECORD_CALL, &any), -EBADMSG);
	any.call.body = (struct wf_body){ .way = WF_BODY_NONE };
	assert_int_equal(travel_any(WF_RECORD_CALL, &any), 0);
}

static void attachments_follow_what_can_have_them(void **state)
{
	union any_record any = { .call = { .attachments = WF_RECORD_ATTACHMENTS_MAX } };

	(void)state;
	assert_int_equal(travel_any(WF_RECORD_CALL, &any), 0);
	any.call.attachments++;
	assert_int_equal(travel_any(WF_RECORD_CALL, &any), -EBADMSG);
	any.call = (struct wf_record_call){ .attachments = 1, .flags = WF_CALL_STREAM };
	assert_int_equal(travel_any(WF_RECORD_CALL, &any), -EBADMSG);

	any.reply = (struct wf_record_reply){ .attachments = WF_RECORD_ATTACHMENTS_MAX };
	assert_int_equal(travel_any(WF_RECORD_REPLY, &any), 0);
	any.reply.attachments++;
	assert_int_equal(travel_any(WF_RECORD_REPLY, &any), -EBADMSG);
	any.reply = (struct wf_record_reply){ .attachments = 1, .status = WEFT_ABORTED };
	assert_int_equal(travel_any(WF_RECORD_REPLY, &any), -EBADMSG);

	any.message = (struct wf_record_message){ .attachments = WF_RECORD_ATTACHMENTS_MAX };
	assert_int_equal(travel_any(WF_RECORD_REQUEST, &any), 0);
	any.message.attachments++;
	assert_int_equal(travel_any(WF_RECORD_REQUEST, &any), -EBADMSG);
	any.message = (struct wf_record_message){ .attachments = 1, .flags = WF_MESSAGE_NONE };
	assert_int_equal(travel_any(WF_RECORD_RESPONSE, &any), -EBADMSG);
}

static void only_what_is_dead_can_be_lost(void **state)
{
	union any_record any = { .tensor = { .dtype = { WEFT_INT, 8, 1 }, .rank = 0,
					     .flags = WEFT_DEAD | WF_TENSOR_LOST } };

	(void)state;
	assert_int_equal(travel_any(WF_RECORD_ATTACHMENT, &any), 0);
	any.tensor.flags = WF_TENSOR_LOST;
	any.tensor.body = (struct wf_body){ .way = WF_BODY_PULL, .bytes = 1 };
	assert_int_equal(travel_any(WF_RECORD_ATTACHMENT, &any), -EBADMSG);
	any.tensor.flags = 0;
	assert_int_equal(travel_any(WF_RECORD_ATTACHMENT, &any), 0);
}

static void the_key_of_an_attachment_says_which_it_is(void **state)
{
	struct wf_record_attachment_key got,
		key = { 1, 0x0807060504030201, WF_RECORD_ATTACHMENTS_MAX - 1 };
	uint8_t bytes[WF_RECORD_ATTACHMENT_KEY_BYTES + 1] = { 0 };
	const uint8_t expected[] = { 1, 1, 2, 3, 4, 5, 6, 7, 8, 0xff, 0x0f, 0, 0 };

	(void)state;
	wf_record_attachment_key_put(bytes, &key);
	assert_memory_equal(bytes, expected, sizeof(expected));
	assert_int_equal(wf_record_attachment_key_get(bytes, sizeof(expected), &got), 0);
	assert_int_equal(got.reply, 1);
	assert_int_equal(got.message, key.message);
	assert_int_equal(got.index, key.index);
	assert_int_equal(wf_record_attachment_key_get(bytes, sizeof(expected) - 1, &got), -EBADMSG);
	assert_int_equal(wf_record_attachment_key_get(bytes, sizeof(expected) + 1, &got), -EBADMSG);
	bytes[0] = 2;
	assert_int_equal(wf_record_attachment_key_get(bytes, sizeof(expected), &got), -EBADMSG);
	key.index++;
	wf_record_attachment_key_put(bytes, &key);
	assert_int_equal(wf_record_attachment_key_get(bytes, sizeof(expected), &got), -EBADMSG);
}

static void a_flag_of_a_message_that_nobody_knows_is_refused(void **state)
{
	(void)state;
	for (unsigned bit = 0; bit < 16; bit++) {
		union any_record any = { .message = { .flags = (uint16_t)(1 << bit) } };
		int expected = 1 << bit & (WF_MESSAGE_NONE | WF_MESSAGE_LAST | WF_MESSAGE_INITIAL |
					   WF_MESSAGE_COMPRESSED)
				       ? 0 : -EBADMSG;

		assert_int_equal(travel_any(WF_RECORD_REQUEST, &any), expected);
		assert_int_equal(travel_any(WF_RECORD_RESPONSE, &any), expected);
	}
}

static void where_there_is_no_message_there_is_no_body(void **state)
{
	union any_record any = { .message = { .body = { .way = WF_BODY_PULL, .bytes = 1 } } };

	(void)state;
	assert_int_equal(travel_any(WF_RECORD_REQUEST, &any), 0);
	any.message.flags = WF_MESSAGE_NONE;
	assert_int_equal(travel_any(WF_RECORD_REQUEST, &any), -EBADMSG);
	any.message.flags = WF_MESSAGE_NONE | WF_MESSAGE_LAST;
	assert_int_equal(travel_any(WF_RECORD_REQUEST, &any), -EBADMSG);
	any.message.body = (struct wf_body){ .way = WF_BODY_EAGER };
	assert_int_equal(travel_any(WF_RECORD_REQUEST, &any), -EBADMSG);
	any.message.body = (struct wf_body){ .way = WF_BODY_NONE };
	assert_int_equal(travel_any(WF_RECORD_REQUEST, &any), 0);
}

static void a_message_with_metadata_says_that_it_is_initial(void **state)
{
	union any_record any = { .message = { .metadata_bytes = sizeof(k_is_vw),
					      .metadata = k_is_vw } };

	(void)state;
	for (uint16_t flags = 0; flags < 2 * WF_MESSAGE_INITIAL; flags++) {
		any.message.flags = flags;
		assert_int_equal(travel_any(WF_RECORD_RESPONSE, &any),
				 flags & WF_MESSAGE_INITIAL ? 0 : -EBADMSG);
	}
	any.message = (struct wf_record_message){ .flags = WF_MESSAGE_INITIAL };
	assert_int_equal(travel_any(WF_RECORD_RESPONSE, &any), 0);
}

/* To who adds them in 32 bits, two of 2^31 are 0. */
static void blocks_longer_than_their_record_are_refused(void **state)
{
	static const struct {
		uint8_t type;
		size_t count, at; /* of the record, and of the lengths in it */
		uint8_t lengths[16];
	} cases[] = {
		{ WF_RECORD_CALL, 28 + 10, 18, { 0xff, 0xff } },
		{ WF_RECORD_CALL, 28 + 10, 20, { 0xff, 0xff } },
		{ WF_RECORD_CALL, 28 + 10, 24, { 1 } },
		{ WF_RECORD_CALL, 28 + 10, 24, { 0xff, 0xff, 0xff, 0xff } },
		{ WF_RECORD_CALL, 28 + 10, 18, { 1, 0, 0, 0, 0, 0, 0xff, 0xff, 0xff, 0xff } },
		{ WF_RECORD_REPLY, 28 + 10, 12, { 0xff, 0xff } },
		{ WF_RECORD_REPLY, 28 + 10, 16, { 1 } },
		{ WF_RECORD_REPLY, 28 + 10, 20, { 1 } },
		{ WF_RECORD_REPLY, 28 + 10, 24, { 1 } },
		{ WF_RECORD_REPLY, 28 + 10, 16, { 0xff, 0xff, 0xff, 0xff, 1 } },
		{ WF_RECORD_REPLY, 28 + 10, 16, { [3] = 0x80, [7] = 0x80 } },
		{ WF_RECORD_REPLY, 28 + 10, 20, { [3] = 0x80, [7] = 0x80 } },
		{ WF_RECORD_RESPONSE, 16 + 10, 8, { WF_MESSAGE_INITIAL, 0, 0, 0, 1 } },
		{ WF_RECORD_RESPONSE, 16 + 10, 8,
		  { WF_MESSAGE_INITIAL, 0, 0, 0, 0xff, 0xff, 0xff, 0xff } },
	};

	(void)state;
	for (size_t i = 0; i < WF_COUNT(cases); i++) {
		uint8_t bytes[ROOM] = { 0 };

		assert_int_equal(get(cases[i].type, bytes, cases[i].count), 0);
		memcpy(bytes + cases[i].at, cases[i].lengths, sizeof(cases[i].lengths));
		memset(bytes + cases[i].count - 10, 0, 10); /* the body: none */
		assert_int_equal(get(cases[i].type, bytes, cases[i].count), -EBADMSG);
		/* Eager, and of as many bytes as are left behind a block that is 1 too long. */
		bytes[cases[i].count - 10] = WF_BODY_EAGER;
		memset(bytes + cases[i].count - 9, 0xff, sizeof(uint64_t));
		assert_int_equal(get(cases[i].type, bytes, cases[i].count), -EBADMSG);
	}
}

static void no_abort_is_a_success(void **state)
{
	uint8_t bytes[8 + 1 + 2] = { 0 };

	(void)state;
	for (unsigned value = 0; value <= UINT8_MAX; value++) {
		bytes[8] = (uint8_t)value;
		assert_int_equal(get(WF_RECORD_ABORT, bytes, sizeof(bytes)),
				 value && value <= WEFT_UNAUTHENTICATED ? 0 : -EBADMSG);
	}
}

static void the_text_of_an_abort_has_a_limit(void **state)
{
	static uint8_t bytes[8 + 1 + 2 + WF_ABORT_TEXT_BYTES_MAX + 1] = { [8] = WEFT_ABORTED };

	(void)state;
	bytes[9] = WF_ABORT_TEXT_BYTES_MAX % 256;
	bytes[10] = WF_ABORT_TEXT_BYTES_MAX / 256;
	assert_int_equal(get(WF_RECORD_ABORT, bytes, sizeof(bytes) - 1), 0);
	bytes[9]++;
	assert_int_equal(get(WF_RECORD_ABORT, bytes, sizeof(bytes)), -EBADMSG);
}

static const struct wf_body body_to_pull = { .way = WF_BODY_PULL, .bytes = 5 };

static void a_flag_of_a_push_or_an_ask_that_nobody_knows_is_refused(void **state)
{
	(void)state;
	for (unsigned bit = 0; bit < 8; bit++) {
		union any_record push = { .push = { .flags = (uint8_t)(1 << bit) } };
		union any_record ask = { .ask = { .bytes = 1, .flags = (uint8_t)(1 << bit) } };

		/* A list is more than its flag: see below. */
		assert_int_equal(travel_any(WF_RECORD_PUSH, &push),
				 1 << bit & (WF_ACCESS_PUSH_LAST | WF_ACCESS_PUSH_NOTED |
					     WF_ACCESS_PUSH_GOT) ? 0 : -EBADMSG);
		assert_int_equal(travel_any(WF_RECORD_ASK, &ask),
				 1 << bit & (WF_ACCESS_ASK_STAY | WF_ACCESS_ASK_SUM) ? 0 : -EBADMSG);
	}
}

static void a_note_without_its_flag_is_refused(void **state)
{
	union any_record any = { .push = { .number = 1 } };

	(void)state;
	assert_int_equal(travel_any(WF_RECORD_PUSH, &any), -EBADMSG);
	any.push.flags = WF_ACCESS_PUSH_NOTED;
	assert_int_equal(travel_any(WF_RECORD_PUSH, &any), 0);
	any.push = (struct wf_access_push){ .note_bytes = 1, .note = TEXT("n") };
	assert_int_equal(travel_any(WF_RECORD_PUSH, &any), -EBADMSG);
	any.push.flags = WF_ACCESS_PUSH_NOTED;
	assert_int_equal(travel_any(WF_RECORD_PUSH, &any), 0);
}

static void the_end_of_a_get_writes_and_counts_nothing(void **state)
{
	union any_record any = { .push = { .flags = WF_ACCESS_PUSH_GOT | WF_ACCESS_PUSH_NOTED } };

	(void)state;
	assert_int_equal(travel_any(WF_RECORD_PUSH, &any), 0);
	any.push.flags |= WF_ACCESS_PUSH_LAST;
	assert_int_equal(travel_any(WF_RECORD_PUSH, &any), -EBADMSG);
	any.push = (struct wf_access_push){ .flags = WF_ACCESS_PUSH_GOT, .body = body_to_pull };
	assert_int_equal(travel_any(WF_RECORD_PUSH, &any), -EBADMSG);
}

static void a_note_has_a_limit(void **state)
{
	static uint8_t bytes[39 + WF_ACCESS_NOTE_BYTES_MAX + 1 + 10] = { [32] = WF_ACCESS_PUSH_NOTED };

	(void)state;
	bytes[37] = WF_ACCESS_NOTE_BYTES_MAX % 256;
	bytes[38] = WF_ACCESS_NOTE_BYTES_MAX / 256;
	assert_int_equal(get(WF_RECORD_PUSH, bytes, sizeof(bytes) - 1), 0);
	bytes[37]++;
	assert_int_equal(get(WF_RECORD_PUSH, bytes, sizeof(bytes)), -EBADMSG);
}

static void a_push_and_a_loan_are_pulled_or_staged(void **state)
{
	(void)state;
	for (uint8_t way = WF_BODY_NONE; way <= WF_BODY_HANDLE; way++) {
		const struct wf_body body = { .way = way, .bytes = way, .handle = handle };
		union any_record push = { .push = { .body = body } };
		union any_record lend = { .lend = { .body = body } };
		union any_record refusal = { .lend = { .status = WEFT_NOT_FOUND, .body = body } };
		bool is_read = way == WF_BODY_PULL || way == WF_BODY_STAGED;

		if (way == WF_BODY_EAGER) /* of no bytes, so that the record has its own length */
			push.push.body.bytes = lend.lend.body.bytes = refusal.lend.body.bytes = 0;
		assert_int_equal(travel_any(WF_RECORD_PUSH, &push),
				 way == WF_BODY_NONE || is_read ? 0 : -EBADMSG);
		assert_int_equal(travel_any(WF_RECORD_LEND, &lend), is_read ? 0 : -EBADMSG);
		assert_int_equal(travel_any(WF_RECORD_LEND, &refusal),
				 way == WF_BODY_NONE ? 0 : -EBADMSG);
	}
}

static void parcels_come_with_tensors_and_messages_alone(void **state)
{
	union any_record offer = { .offer = { .pull = 1, .body = good_parcel } };
	union any_record push = { .push = { .body = good_parcel } };
	union any_record lend = { .lend = { .body = good_parcel } };
	union any_record message = { .message = { .body = good_parcel } };

	(void)state;
	assert_int_equal(travel_any(WF_RECORD_REQUEST, &message), 0);
	assert_int_equal(travel_any(WF_RECORD_OFFER, &offer), -EBADMSG);
	assert_int_equal(travel_any(WF_RECORD_PUSH, &push), -EBADMSG);
	assert_int_equal(travel_any(WF_RECORD_LEND, &lend), -EBADMSG);
}

static void a_loan_is_refused_with_a_known_status(void **state)
{
	(void)state;
	for (unsigned status = 1; status <= UINT8_MAX; status++) {
		union any_record any = { .lend = { .status = (uint8_t)status } };

		assert_int_equal(travel_any(WF_RECORD_LEND, &any),
				 status <= WEFT_UNAUTHENTICATED ? 0 : -EBADMSG);
	}
}

static void an_ask_for_no_bytes_is_refused(void **state)
{
	union any_record any = { .ask = { .at = 1 } };

	(void)state;
	assert_int_equal(travel_any(WF_RECORD_ASK, &any), -EBADMSG);
	any.ask.bytes = 1;
	assert_int_equal(travel_any(WF_RECORD_ASK, &any), 0);
}

static void a_list_of_blocks_goes_with_one_pulled_body(void **state)
{
	static const struct wf_access_push good = {
		.flags = WF_ACCESS_PUSH_LIST, .body = { .way = WF_BODY_PULL, .bytes = 5 },
		.block_count = WF_ACCESS_BLOCKS_MAX, .block_bytes = 1,
		.list = TEXT("\1\0\0"), .list_bytes = 3,
	};
	union any_record any = { .push = good };

	(void)state;
	assert_int_equal(travel_any(WF_RECORD_PUSH, &any), 0);
	any.push.list_bytes = 0; /* all blocks follow in other records */
	assert_int_equal(travel_any(WF_RECORD_PUSH, &any), 0);
	any.push.block_count++;
	assert_int_equal(travel_any(WF_RECORD_PUSH, &any), -EBADMSG);
	any.push.block_count = 0;
	assert_int_equal(travel_any(WF_RECORD_PUSH, &any), -EBADMSG);
	any.push = good;
	any.push.block_bytes = 0;
	assert_int_equal(travel_any(WF_RECORD_PUSH, &any), -EBADMSG);
	any.push = good;
	any.push.at = 1;
	assert_int_equal(travel_any(WF_RECORD_PUSH, &any), -EBADMSG);
	any.push = good;
	any.push.body.sum_kind = WF_BODY_SUM_XXH3;
	assert_int_equal(travel_any(WF_RECORD_PUSH, &any), -EBADMSG);
	any.push = good;
	any.push.body.way = WF_BODY_STAGED;
	assert_int_equal(travel_any(WF_RECORD_PUSH, &any), -EBADMSG);
	any.push.body = (struct wf_body){ .way = WF_BODY_NONE };
	assert_int_equal(travel_any(WF_RECORD_PUSH, &any), -EBADMSG);
	any.push = (struct wf_access_push){ .body = body_to_pull, .list = TEXT("\1\0\0"),
					    .list_bytes = 3 };
	assert_int_equal(travel_any(WF_RECORD_PUSH, &any), -EBADMSG);
}

/* Each block follows the one of the row before. */
static const struct {
	struct wf_access_block block;
	size_t count;
	uint8_t bytes[WF_ACCESS_BLOCK_BYTES_MAX];
} blocks[] = {
	{ { .to = 0, .from = 0, .bytes = 1 }, 3, { 1, 0, 0 } },
	/* This block has the same length, follows the last one in the window, and lies 1 apart in the body. */
	{ { .to = 1, .from = 2, .bytes = 1 }, 3, { 0, 0, 2 } },
	/* Backwards by 2 and by 3. */
	{ { .to = 0, .from = 0, .bytes = 300 }, 4, { 0xac, 2, 3, 5 } },
	/* The largest numbers that there are. */
	{ { .to = 1ull << 63 | 300, .from = 300, .bytes = UINT64_MAX }, 10 + 10 + 1,
	  { 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 1,
	    0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 1, 0 } },
};

static void a_block_of_a_list_is_the_same_bytes_both_ways(void **state)
{
	struct wf_access_block last = { 0 }, got = { 0 };

	(void)state;
	for (size_t i = 0; i < WF_COUNT(blocks); i++) {
		uint8_t bytes[WF_ACCESS_BLOCK_BYTES_MAX];
		struct wf_bytes_writer w = wf_bytes_writer(bytes, sizeof(bytes));
		struct wf_bytes_reader r = wf_bytes_reader(blocks[i].bytes, blocks[i].count);

		wf_access_block_put(&w, &last, &blocks[i].block);
		assert_int_equal(w.at - bytes, blocks[i].count);
		assert_memory_equal(bytes, blocks[i].bytes, blocks[i].count);
		for (size_t less = 0; less < blocks[i].count; less++) {
			struct wf_bytes_reader cut = wf_bytes_reader(blocks[i].bytes, less);
			struct wf_access_block before = got;

			assert_int_equal(wf_access_block_get(&cut, &got), -EBADMSG);
			assert_memory_equal(&got, &before, sizeof(got));
		}
		assert_int_equal(wf_access_block_get(&r, &got), 0);
		assert_int_equal(wf_bytes_reader_left(&r), 0);
		assert_memory_equal(&got, &blocks[i].block, sizeof(got));
	}
}

static void a_block_of_no_bytes_is_refused(void **state)
{
	static const uint8_t none[] = { 0, 0, 0 };
	struct wf_bytes_reader r = wf_bytes_reader(none, sizeof(none));
	struct wf_access_block block = { 0 };

	(void)state;
	assert_int_equal(wf_access_block_get(&r, &block), -EBADMSG);
}

static void a_number_of_a_list_has_at_most_ten_units(void **state)
{
	uint8_t endless[3 * 11];
	struct wf_bytes_reader r = wf_bytes_reader(endless, sizeof(endless));
	struct wf_access_block block = { 0 };

	(void)state;
	memset(endless, 0x81, sizeof(endless));
	assert_int_equal(wf_access_block_get(&r, &block), -EBADMSG);
}

/* The descriptor of a window, which comes from the program and may be anything. */
static const uint8_t descriptor_bytes[WF_ACCESS_DESCRIPTOR_BYTES] = {
	't', 'w', 'w', 1,
	0x11, 0x12, 0x13, 0x14, 0x15, 0x16, 0x17, 0x18,
	TOKEN_BYTES,
	0x21, 0x22, 0x23, 0x24, 0x25, 0x26, 0x27, 0x28,
	3,
};

static int get_descriptor(const uint8_t *bytes, size_t count, struct wf_access_descriptor *d)
{
	uint8_t *exact = test_malloc(count + !count);
	int rc;

	memcpy(exact, bytes, count);
	rc = wf_access_descriptor_get(exact, count, d);
	test_free(exact);
	return rc;
}

static void a_descriptor_is_the_same_bytes_both_ways(void **state)
{
	const struct wf_access_descriptor d = {
		.window = { 0x1817161514131211, TOKEN }, .bytes = 0x2827262524232221,
		.rights = WF_ACCESS_RIGHTS,
	};
	uint8_t bytes[WF_ACCESS_DESCRIPTOR_BYTES];
	struct wf_bytes_writer w = wf_bytes_writer(bytes, sizeof(bytes));
	struct wf_access_descriptor got;

	(void)state;
	wf_access_descriptor_put(&w, &d);
	assert_false(w.bad);
	assert_int_equal(wf_bytes_writer_left(&w), 0);
	assert_memory_equal(bytes, descriptor_bytes, sizeof(bytes));
	assert_int_equal(get_descriptor(bytes, sizeof(bytes), &got), 0);
	assert_int_equal(got.window.id, d.window.id);
	assert_memory_equal(got.window.token, d.window.token, WF_ACCESS_TOKEN_BYTES);
	assert_int_equal(got.bytes, d.bytes);
	assert_int_equal(got.rights, d.rights);
}

static void a_descriptor_of_another_length_is_refused(void **state)
{
	uint8_t bytes[WF_ACCESS_DESCRIPTOR_BYTES + 1] = { 0 };
	struct wf_access_descriptor got, before;

	(void)state;
	memcpy(bytes, descriptor_bytes, sizeof(descriptor_bytes));
	memset(&got, 0x5a, sizeof(got));
	before = got;
	for (size_t count = 0; count <= sizeof(bytes); count++)
		if (count != WF_ACCESS_DESCRIPTOR_BYTES)
			assert_int_equal(get_descriptor(bytes, count, &got), -EBADMSG);
	assert_memory_equal(&got, &before, sizeof(got));
}

static void a_descriptor_of_a_later_version_is_known_as_one(void **state)
{
	uint8_t bytes[WF_ACCESS_DESCRIPTOR_BYTES + 1] = { 0 };
	struct wf_access_descriptor got;

	(void)state;
	memcpy(bytes, descriptor_bytes, sizeof(descriptor_bytes));
	bytes[3] = 2;
	assert_int_equal(get_descriptor(bytes, WF_ACCESS_DESCRIPTOR_BYTES, &got), -EPROTONOSUPPORT);
	/* Later ones may be longer, and have other rights. */
	bytes[WF_ACCESS_DESCRIPTOR_BYTES - 1] = 0xff;
	assert_int_equal(get_descriptor(bytes, sizeof(bytes), &got), -EPROTONOSUPPORT);
	bytes[3] = 0;
	assert_int_equal(get_descriptor(bytes, WF_ACCESS_DESCRIPTOR_BYTES, &got), -EBADMSG);
}

static void a_descriptor_that_makes_no_sense_is_refused(void **state)
{
	uint8_t bytes[WF_ACCESS_DESCRIPTOR_BYTES];
	struct wf_access_descriptor got;

	(void)state;
	for (size_t i = 0; i < 3; i++) {
		memcpy(bytes, descriptor_bytes, sizeof(bytes));
		bytes[i] ^= 1;
		assert_int_equal(get_descriptor(bytes, sizeof(bytes), &got), -EBADMSG);
	}
	memcpy(bytes, descriptor_bytes, sizeof(bytes));
	for (unsigned rights = 0; rights <= UINT8_MAX; rights++) {
		bytes[WF_ACCESS_DESCRIPTOR_BYTES - 1] = (uint8_t)rights;
		assert_int_equal(get_descriptor(bytes, sizeof(bytes), &got),
				 rights && rights <= WF_ACCESS_LANDING ? 0 : -EBADMSG);
	}
	memcpy(bytes, descriptor_bytes, sizeof(bytes));
	memset(bytes + 4 + 8 + WF_ACCESS_TOKEN_BYTES, 0, 8);
	assert_int_equal(get_descriptor(bytes, sizeof(bytes), &got), -EBADMSG);
}

/* An ask of one byte, which is taken. */
static const struct wf_parcel_ask good_ask = { .offer = 1, .pull = 2, .count = 1,
					       .ranges = { { .bytes = 1 } } };

static void a_parcel_has_some_ranges_and_not_too_many(void **state)
{
	uint8_t bytes[WF_PARCEL_ASK_BYTES_MAX + 16] = { 0 };

	(void)state;
	for (unsigned i = 0; i <= WF_PARCEL_RANGES_MAX; i++)
		bytes[34 + 16 * i + 8] = 1;
	for (unsigned said = 0; said <= UINT8_MAX; said++) {
		bytes[33] = (uint8_t)said;
		for (unsigned ranges = 0; ranges <= WF_PARCEL_RANGES_MAX + 1; ranges++)
			assert_int_equal(get(WF_RECORD_SEAL, bytes, 34 + 16 * ranges),
					 said && said == ranges && said <= WF_PARCEL_RANGES_MAX
						 ? 0 : -EBADMSG);
	}
}

static void no_range_of_a_parcel_is_empty(void **state)
{
	(void)state;
	for (uint8_t count = 1; count <= WF_PARCEL_RANGES_MAX; count++) {
		union any_record any = { .seal = good_ask };

		any.seal.count = count;
		for (unsigned i = 0; i < count; i++)
			any.seal.ranges[i] = (struct wf_parcel_range){ 0, 1 };
		assert_int_equal(travel_any(WF_RECORD_SEAL, &any), 0);
		for (unsigned i = 0; i < count; i++) {
			any.seal.ranges[i] = (struct wf_parcel_range){ 1, 0 };
			assert_int_equal(travel_any(WF_RECORD_SEAL, &any), -EBADMSG);
			any.seal.ranges[i] = (struct wf_parcel_range){ 0, 1 };
		}
	}
}

/* Lengths that together are too many for a parcel; who adds them in 64 bits may find few. */
static void a_parcel_of_too_many_bytes_is_refused(void **state)
{
	static const uint64_t most = WF_PARCEL_BYTES_MAX, half = UINT64_C(1) << 63;
	const struct {
		uint8_t count;
		uint64_t bytes[WF_PARCEL_RANGES_MAX];
		int expected;
	} cases[] = {
		{ 1, { most }, 0 },
		{ 1, { most + 1 }, -EBADMSG },
		{ 1, { UINT64_MAX }, -EBADMSG },
		{ 1, { UINT64_C(1) << 32 | 1 }, -EBADMSG },
		{ 2, { most - 1, 1 }, 0 },
		{ 2, { most, 1 }, -EBADMSG },
		{ 2, { 1, most }, -EBADMSG },
		{ 2, { half, half + 1 }, -EBADMSG },
		{ 2, { UINT64_MAX, 2 }, -EBADMSG },
		{ 2, { 2, UINT64_MAX }, -EBADMSG },
		{ 4, { most / 4, most / 4, most / 4, most / 4 }, 0 },
		{ 4, { most / 4, most / 4, most / 4, most / 4 + 1 }, -EBADMSG },
		{ 4, { most / 4 + 1, most / 4, most / 4, most / 4 }, -EBADMSG },
		{ 4, { half / 2, half / 2, half, 1 }, -EBADMSG },
		{ 4, { half / 2, half / 2, half / 2, half / 2 }, -EBADMSG },
	};

	(void)state;
	for (size_t i = 0; i < WF_COUNT(cases); i++) {
		union any_record any = { .seal = good_ask };

		any.seal.count = cases[i].count;
		for (unsigned k = 0; k < cases[i].count; k++)
			any.seal.ranges[k].bytes = cases[i].bytes[k];
		assert_int_equal(travel_any(WF_RECORD_SEAL, &any), cases[i].expected);
	}
}

static void a_range_of_a_parcel_that_wraps_is_refused(void **state)
{
	union any_record any = { .seal = good_ask };

	(void)state;
	any.seal.count = WF_PARCEL_RANGES_MAX;
	for (unsigned i = 0; i < WF_PARCEL_RANGES_MAX; i++)
		any.seal.ranges[i] = (struct wf_parcel_range){ UINT64_MAX - 5, 5 };
	assert_int_equal(travel_any(WF_RECORD_SEAL, &any), 0);
	for (unsigned i = 0; i < WF_PARCEL_RANGES_MAX; i++) {
		any.seal.ranges[i].bytes = 6;
		assert_int_equal(travel_any(WF_RECORD_SEAL, &any), -EBADMSG);
		any.seal.ranges[i].bytes = 7;
		assert_int_equal(travel_any(WF_RECORD_SEAL, &any), -EBADMSG);
		any.seal.ranges[i].bytes = 5;
		any.seal.ranges[i].at = UINT64_MAX;
		assert_int_equal(travel_any(WF_RECORD_SEAL, &any), -EBADMSG);
		any.seal.ranges[i].at = UINT64_MAX - 5;
	}
	assert_int_equal(travel_any(WF_RECORD_SEAL, &any), 0);
}

static void a_parcel_has_no_priority_beyond_the_highest(void **state)
{
	(void)state;
	for (unsigned priority = 0; priority <= UINT8_MAX; priority++) {
		union any_record any = { .seal = good_ask };

		any.seal.priority = (uint8_t)priority;
		assert_int_equal(travel_any(WF_RECORD_SEAL, &any),
				 priority <= WEFT_PRIORITY_MAX ? 0 : -EBADMSG);
	}
}

static void a_parcel_is_as_long_as_its_ranges_together(void **state)
{
	struct wf_parcel_ask ask = { .ranges = { { 7, 1 }, { 0, 20 }, { 0, 300 }, { 9, 4000 } } };
	static const uint64_t sums[] = { 0, 1, 21, 321, 4321 };

	(void)state;
	for (ask.count = 0; ask.count <= WF_PARCEL_RANGES_MAX; ask.count++)
		assert_int_equal(wf_parcel_ask_bytes(&ask), sums[ask.count]);
}

static void a_parcel_of_another_length_is_refused(void **state)
{
	uint8_t ask[WF_PARCEL_ASK_BYTES_MAX + 1] = { 0 };
	uint8_t answer[WF_PARCEL_ANSWER_BYTES + 1] = { [17] = 1 };

	(void)state;
	for (ask[33] = 1; ask[33] <= WF_PARCEL_RANGES_MAX; ask[33]++) {
		size_t count = 34 + 16 * (size_t)ask[33];

		ask[count - 8] = 1;
		assert_int_equal(get(WF_RECORD_SEAL, ask, count), 0);
		assert_int_equal(get(WF_RECORD_SEAL, ask, count - 1), -EBADMSG);
		assert_int_equal(get(WF_RECORD_SEAL, ask, count + 1), -EBADMSG);
	}
	assert_int_equal(get(WF_RECORD_SEALED, answer, WF_PARCEL_ANSWER_BYTES), 0);
	assert_int_equal(get(WF_RECORD_SEALED, answer, WF_PARCEL_ANSWER_BYTES - 1), -EBADMSG);
	assert_int_equal(get(WF_RECORD_SEALED, answer, WF_PARCEL_ANSWER_BYTES + 1), -EBADMSG);
}

static void there_is_a_parcel_or_a_known_status_that_says_why_not(void **state)
{
	(void)state;
	for (unsigned status = 0; status <= UINT8_MAX; status++) {
		union any_record without = { .sealed = { .pull = 1, .status = (uint8_t)status } };
		union any_record with = without;

		with.sealed.parcel = UINT64_C(1) << 63;
		assert_int_equal(travel_any(WF_RECORD_SEALED, &without),
				 status && status <= WEFT_UNAUTHENTICATED ? 0 : -EBADMSG);
		assert_int_equal(travel_any(WF_RECORD_SEALED, &with), status ? -EBADMSG : 0);
	}
}

static void all_that_is_said_of_a_parcel_is_zero_without_one(void **state)
{
	uint8_t bytes[WF_PARCEL_ANSWER_BYTES] = { [16] = WEFT_NOT_FOUND };

	(void)state;
	assert_int_equal(get(WF_RECORD_SEALED, bytes, sizeof(bytes)), 0);
	for (size_t i = 17; i < sizeof(bytes); i++) {
		bytes[i] = 0x80;
		assert_int_equal(get(WF_RECORD_SEALED, bytes, sizeof(bytes)), -EBADMSG);
		bytes[i] = 0;
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_record_is_the_same_bytes_both_ways),
		cmocka_unit_test(a_head_is_as_long_as_it_says),
		cmocka_unit_test(every_other_length_is_refused),
		cmocka_unit_test(a_refused_record_changes_nothing),
		cmocka_unit_test(no_damaged_record_yields_bytes_beyond_its_end),
		cmocka_unit_test(the_body_must_be_as_long_as_the_shape_says),
		cmocka_unit_test(a_shape_of_too_many_bytes_is_refused),
		cmocka_unit_test(the_largest_shape_that_fits_is_taken),
		cmocka_unit_test(one_zero_empties_a_shape_wherever_it_stands),
		cmocka_unit_test(a_negative_dimension_is_refused),
		cmocka_unit_test(a_dimension_is_read_as_it_was_written),
		cmocka_unit_test(the_highest_rank_and_the_longest_key_travel),
		cmocka_unit_test(a_dtype_without_bits_or_lanes_is_refused),
		cmocka_unit_test(a_dead_tensor_has_no_body),
		cmocka_unit_test(an_opaque_tensor_is_a_row_of_bytes),
		cmocka_unit_test(a_flag_that_does_not_travel_is_refused),
		cmocka_unit_test(a_body_makes_sense_by_itself),
		cmocka_unit_test(a_parcel_of_an_offer_has_the_first_bytes_of_a_body),
		cmocka_unit_test(a_parcel_of_an_offer_has_a_number),
		cmocka_unit_test(parcels_come_with_tensors_and_messages_alone),
		cmocka_unit_test(only_tensors_are_looked_at),
		cmocka_unit_test(only_an_offer_made_again_has_a_handle),
		cmocka_unit_test(a_sum_is_of_a_known_kind_and_a_priority_within_its_bound),
		cmocka_unit_test(a_body_has_at_most_so_many_pieces),
		cmocka_unit_test(sums_of_pieces_that_cant_be_are_refused),
		cmocka_unit_test(a_lane_without_a_number_is_refused),
		cmocka_unit_test(an_offer_is_never_eager),
		cmocka_unit_test(a_status_that_nobody_knows_is_refused),
		cmocka_unit_test(flags_of_a_call_that_make_no_sense_are_refused),
		cmocka_unit_test(a_request_has_an_id),
		cmocka_unit_test(a_call_with_a_stream_has_no_body),
		cmocka_unit_test(attachments_follow_what_can_have_them),
		cmocka_unit_test(only_what_is_dead_can_be_lost),
		cmocka_unit_test(the_key_of_an_attachment_says_which_it_is),
		cmocka_unit_test(a_flag_of_a_message_that_nobody_knows_is_refused),
		cmocka_unit_test(where_there_is_no_message_there_is_no_body),
		cmocka_unit_test(a_message_with_metadata_says_that_it_is_initial),
		cmocka_unit_test(blocks_longer_than_their_record_are_refused),
		cmocka_unit_test(no_abort_is_a_success),
		cmocka_unit_test(the_text_of_an_abort_has_a_limit),
		cmocka_unit_test(a_flag_of_a_push_or_an_ask_that_nobody_knows_is_refused),
		cmocka_unit_test(a_note_without_its_flag_is_refused),
		cmocka_unit_test(the_end_of_a_get_writes_and_counts_nothing),
		cmocka_unit_test(a_note_has_a_limit),
		cmocka_unit_test(a_push_and_a_loan_are_pulled_or_staged),
		cmocka_unit_test(a_loan_is_refused_with_a_known_status),
		cmocka_unit_test(an_ask_for_no_bytes_is_refused),
		cmocka_unit_test(a_list_of_blocks_goes_with_one_pulled_body),
		cmocka_unit_test(a_block_of_a_list_is_the_same_bytes_both_ways),
		cmocka_unit_test(a_block_of_no_bytes_is_refused),
		cmocka_unit_test(a_number_of_a_list_has_at_most_ten_units),
		cmocka_unit_test(a_descriptor_is_the_same_bytes_both_ways),
		cmocka_unit_test(a_descriptor_of_another_length_is_refused),
		cmocka_unit_test(a_descriptor_of_a_later_version_is_known_as_one),
		cmocka_unit_test(a_descriptor_that_makes_no_sense_is_refused),
		cmocka_unit_test(a_parcel_has_some_ranges_and_not_too_many),
		cmocka_unit_test(no_range_of_a_parcel_is_empty),
		cmocka_unit_test(a_parcel_of_too_many_bytes_is_refused),
		cmocka_unit_test(a_range_of_a_parcel_that_wraps_is_refused),
		cmocka_unit_test(a_parcel_has_no_priority_beyond_the_highest),
		cmocka_unit_test(a_parcel_is_as_long_as_its_ranges_together),
		cmocka_unit_test(a_parcel_of_another_length_is_refused),
		cmocka_unit_test(there_is_a_parcel_or_a_known_status_that_says_why_not),
		cmocka_unit_test(all_that_is_said_of_a_parcel_is_zero_without_one),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
