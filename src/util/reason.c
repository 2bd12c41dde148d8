/* SPDX-License-Identifier: BSD-2-Clause */
#include "util/reason.h"

#include <stdlib.h>
#include <string.h>

void wf_reason_keep(struct wf_reason *r, const struct wf_error *e)
{
	char *text = strdup(e->text);

	free(r->text);
	*r = (struct wf_reason){ .code = e->code, .text = text };
}

void wf_reason_drop(struct wf_reason *r)
{
	free(r->text);
	*r = (struct wf_reason){ 0 };
}

const char *wf_reason_text(const struct wf_reason *r)
{
	if (!r->code)
		return "";
	return r->text ? r->text : wf_error_name(r->code);
}

const struct wf_error *wf_reason_get(const struct wf_reason *r, struct wf_error *e)
{
	if (!r->code)
		return NULL;
	wf_error_set(e, r->code, "%s", wf_reason_text(r));
	return e;
}
