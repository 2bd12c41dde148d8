/* SPDX-License-Identifier: BSD-2-Clause */
#include "link/rights.h"

#include <errno.h>
#include <string.h>

#define NAME_BYTES_MAX 1024  /* a method with its service; a longer one has no name */
#define SHOWN_BYTES_MAX 120  /* bytes of a name in a sentence */

static const char *const acts[WF_ACL_ACTS] = {
	[WF_ACL_CALL] = "call",
	[WF_ACL_TENSOR] = "send a tensor of key",
	[WF_ACL_WINDOW] = "use windows by",
	[WF_ACL_ABORT] = "abort a step",
	[WF_ACL_DRAIN] = "say that it drains",
};

/* Copy the name into @text, with a dot for what can't be shown. */
static void show(const char *name, size_t bytes, char text[SHOWN_BYTES_MAX + 1])
{
	size_t count = WF_MIN(bytes, (size_t)SHOWN_BYTES_MAX);

	for (size_t i = 0; i < count; i++)
		text[i] = name[i] > ' ' && name[i] <= '~' ? name[i] : '.';
	text[count] = '\0';
}

bool wf_rights_hold(const struct wf_link *link, enum wf_acl_act act, const void *name,
		    size_t bytes)
{
	const struct wf_acl *acl = link->engine->acl;
	const char *identity = wf_link_real((struct wf_link *)link)->seals.identity;

	return !acl || (*identity && wf_acl_allows(acl, identity, act, name, bytes));
}

int wf_rights_look_up(const struct wf_link *link, enum wf_acl_act act, const void *name,
		      size_t bytes, struct wf_error *e)
{
	const struct wf_link *real = wf_link_real((struct wf_link *)link);
	struct wf_engine *engine = link->engine;
	const char *identity = real->seals.identity;
	char shown[SHOWN_BYTES_MAX + 1];
	int err = *identity ? -EACCES : -EKEYREJECTED;

	if (wf_rights_hold(link, act, name, bytes))
		return 0;
	show(name, bytes, shown);
	wf_error_set(e, err, "%s, %s, may not %s%s%s: WEFT_ALLOW has no line for it",
		     wf_link_label(real), *identity ? identity : "whose certificate has no name",
		     acts[act], bytes ? " " : "", shown);
	wf_counters_add(&engine->counters.rights_refused, 1);
	if (engine->loop.now_ns >= engine->refused_ns) {
		engine->refused_ns = engine->loop.now_ns + WF_NS_PER_S;
		wf_log(&engine->log, WF_LOG_WARN, "%s", e->text);
	}
	return err;
}

int wf_rights_check_call(const struct wf_link *link, const void *service, size_t service_bytes,
			 const void *method, size_t method_bytes, struct wf_error *e)
{
	char name[NAME_BYTES_MAX];

	if (!link->engine->acl)
		return 0;
	/* Part of a name could match what the whole does not. */
	if (service_bytes + 1 + method_bytes > sizeof(name))
		return wf_rights_look_up(link, WF_ACL_CALL, "", 0, e);
	memcpy(name, service, service_bytes);
	name[service_bytes] = '/';
	memcpy(name + service_bytes + 1, method, method_bytes);
	return wf_rights_look_up(link, WF_ACL_CALL, name, service_bytes + 1 + method_bytes, e);
}
