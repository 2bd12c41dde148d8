/* SPDX-License-Identifier: BSD-2-Clause */
#include "core/proof.h"

#include <errno.h>
#include <string.h>

#include "core/last.h"

int wf_proof_open(const struct wf_options *o, struct wf_credentials **credentials)
{
	const struct wf_credentials_files files = {
		.key_file = o->key_file, .cert = o->cert, .key = o->key, .ca = o->ca,
		.peers = o->peer_ids,
	};
	const char *mode = wf_options_security(o);
	bool named = wf_options_has_credentials(o);
	struct wf_error e;

	*credentials = NULL;
	if (!strcmp(mode, "open"))
		return named ? wf_last_set(-EINVAL, "security is open, and a key or certificate is "
					   "named: one of the two must go") : 0;
	if (!named)
		return wf_last_set(-EINVAL, "WEFT_SECURITY=%s needs WEFT_KEY_FILE, or WEFT_CERT, "
				   "WEFT_KEY and WEFT_CA", mode);
	return wf_credentials_open(&files, credentials, &e) ? wf_last_copy(&e) : 0;
}
