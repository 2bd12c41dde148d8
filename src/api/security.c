/* SPDX-License-Identifier: BSD-2-Clause */
#include <weft/security.h>

#include <errno.h>

#include "core/check.h"
#include "core/last.h"
#include "core/node.h"
#include "core/peer.h"
#include "core/proof.h"
#include "secure/key_file.h"

int weft_key_new(const char *path)
{
	struct wf_error e;

	if (!path)
		return wf_last_set(-EINVAL, "path is NULL");
	return wf_key_file_make(path, &e) ? wf_last_copy(&e) : 0;
}

int weft_peer_identity(struct weft_peer *peer, char *identity, size_t bytes)
{
	int err;

	if (WF_NEED(peer) || WF_NEED(identity))
		return -EINVAL;
	/* In a forked child the lock may be held for ever. */
	err = wf_check_node(peer->owner);
	return err ? err : wf_peer_identity(peer, identity, bytes);
}

int weft_node_rekey(struct weft_node *node)
{
	int err;

	if (WF_NEED(node))
		return -EINVAL;
	err = wf_check_node(node);
	return err ? err : wf_proof_renew(node);
}
