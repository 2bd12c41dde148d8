/* SPDX-License-Identifier: BSD-2-Clause */
/* weft services: what does that node serve? */
#include "tool/remote.h"
#include "tool/text.h"

#include <getopt.h>
#include <stdio.h>
#include <string.h>

static const char *const types[] = { "int32",  "sint32",   "sfixed32", "int64",   "sint64", "sfixed64",
				     "uint32", "fixed32",  "uint64",   "fixed64", "float",  "double",
				     "bool",   "enum",     "string",   "bytes",   "message" };

/* Print the node's own words escaped: each %s of @format is one of @names, which end with NULL. */
static void print_names(const char *format, const char *const *names)
{
	const char *mark;

	while ((mark = strstr(format, "%s"))) {
		fwrite(format, 1, (size_t)(mark - format), stdout);
		if (*names)
			text_print(stdout, *names++);
		format = mark + 2;
	}
	fputs(format, stdout);
}

#define PRINT_NAMES(format, ...) \
	print_names(format, (const char *const[]){ __VA_ARGS__, NULL })

static void print_field(const Weft__Reflect__Field *f)
{
	const char *type = f->type < sizeof(types) / sizeof(types[0]) ? types[f->type] : "unknown";

	PRINT_NAMES("        %s%s %s",
		    f->label == PROTOBUF_C_LABEL_REPEATED   ? "repeated "
		    : f->label == PROTOBUF_C_LABEL_OPTIONAL ? "optional "
							    : "",
		    f->type_name[0] ? f->type_name : type, f->name);
	printf(" = %u%s\n", f->number, f->oneof ? ", of several one" : "");
}

static void print_types(const Weft__Reflect__Description *said)
{
	for (size_t i = 0; i < said->n_types; i++) {
		const Weft__Reflect__Type *t = said->types[i];

		PRINT_NAMES("    %s %s\n", t->is_enum ? "enum" : "message", t->name);
		for (size_t k = 0; k < t->n_fields; k++)
			print_field(t->fields[k]);
		for (size_t k = 0; k < t->n_values; k++) {
			PRINT_NAMES("        %s", t->values[k]->name);
			printf(" = %d\n", t->values[k]->number);
		}
	}
}

static int print_service(struct remote *r, const char *name, bool with_types)
{
	Weft__Reflect__Description *said;
	int status = remote_describe(r, name, &said);

	if (status)
		return status;
	PRINT_NAMES("%s\n", name);
	for (size_t i = 0; i < said->n_methods; i++)
		PRINT_NAMES("    %s (%s) returns (%s)%s\n", said->methods[i]->name,
			    said->methods[i]->input, said->methods[i]->output,
			    said->methods[i]->streams ? ", by stream" : "");
	if (with_types)
		print_types(said);
	weft__reflect__description__free_unpacked(said, NULL);
	return TOOL_OK;
}

static int print_all(struct remote *r)
{
	Weft__Reflect__Names *names;
	int status = remote_names(r, &names);

	for (size_t i = 0; !status && i < names->n_names; i++)
		status = print_service(r, names->names[i], false);
	if (names)
		weft__reflect__names__free_unpacked(names, NULL);
	return status;
}

static int run(const struct tool_command *self, int argc, char **argv)
{
	static const struct option names[] = { { 0 } };
	struct remote r;
	int c, status;

	opterr = 0;
	if ((c = getopt_long(argc, argv, ":", names, NULL)) != -1)
		return tool_bad_option(self, c, argv);
	if (argc - optind < 1 || argc - optind > 2)
		return tool_misused(self, "an address is needed, as host:port, and perhaps a service");
	status = remote_open(&r, self, argv[optind], TOOL_ANSWER_NS);
	if (status)
		return status;
	status = argc - optind == 2 ? print_service(&r, argv[optind + 1], true) : print_all(&r);
	remote_close(&r);
	return status ? status : tool_flush(self) ? TOOL_FAILED : TOOL_OK;
}

const struct tool_command services_command = {
	.name = "services",
	.arguments = "ADDRESS [SERVICE]",
	.does = "what does that node serve?",
	.options = "  ADDRESS          host:port of the node's door\n"
		   "  SERVICE          this one alone, with the types that it needs\n",
	.run = run,
};
