/* SPDX-License-Identifier: BSD-2-Clause */
#include "tests/fake/internal.h"

static int av_insert(struct fid_av *fid, const void *bytes, size_t count, fi_addr_t *out,
		     uint64_t flags, void *context)
{
	struct fake_av *av = WF_CONTAINER(fid, struct fake_av, fid);
	struct id_address address;
	size_t i;
	int err = fake_veto("fi_av_insert");

	(void)flags, (void)context;
	if (err)
		return err;
	MUST(count == 1);
	memcpy(&address, bytes, sizeof(address));
	if (memcmp(address.tag, "fakefab", 8))
		return 0;
	for (i = 0; i < av->count && av->ids[i]; i++)
		;
	if (i == av->count) {
		av->ids = realloc(av->ids, (av->count + 1) * sizeof(*av->ids));
		MUST(av->ids);
		av->count++;
	}
	av->ids[i] = address.id;
	*out = i;
	return 1;
}

static int av_remove(struct fid_av *fid, fi_addr_t *addrs, size_t count, uint64_t flags)
{
	struct fake_av *av = WF_CONTAINER(fid, struct fake_av, fid);
	int err = fake_veto("fi_av_remove");

	(void)flags;
	if (err)
		return err;
	MUST(count == 1 && addrs[0] < av->count && av->ids[addrs[0]]);
	av->ids[addrs[0]] = 0;
	return 0;
}

static int av_close(struct fid *fid)
{
	struct fake_av *av = WF_CONTAINER(fid, struct fake_av, fid.fid);

	MUST(!av->users);
	av->domain->users--;
	fake_net.objects--;
	free(av->ids);
	free(av);
	return fake_veto("fi_close");
}

static struct fi_ops av_fid_ops = {
	.size = sizeof(struct fi_ops), .close = av_close, .bind = fake_no_bind,
	.control = fake_no_control,
};
static struct fi_ops_av av_ops = {
	.size = sizeof(struct fi_ops_av), .insert = av_insert, .remove = av_remove,
};

int fake_av_open(struct fid_domain *fid, struct fi_av_attr *attr, struct fid_av **out,
		 void *context)
{
	struct fake_av *av;
	int err = fake_veto("fi_av_open");

	if (err)
		return err;
	av = fake_make(sizeof(*av));
	MUST(attr->type == FI_AV_TABLE);
	av->domain = WF_CONTAINER(fid, struct fake_domain, fid);
	av->domain->users++;
	av->fid = (struct fid_av){ { FI_CLASS_AV, context, &av_fid_ops }, &av_ops };
	fake_net.objects++;
	*out = &av->fid;
	return 0;
}
