/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A libfabric that offers nothing and takes every signal, when it is loaded and
 * when it is asked.  tests/unit/fabric/test_libfabric.c compiles it, with the
 * versions of its functions that a test wants.
 *
 * A function of the test whose address is in MEANWHILE runs while it is asked.
 * With LATER there is another fi_getinfo beside, of a version to come.
 */
#include <rdma/fabric.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_errno.h>

#include <signal.h>
#include <stdlib.h>

static void at_load(int number)
{
	(void)number;
}

static void at_first_use(int number)
{
	(void)number;
}

static void take_all(void (*handler)(int))
{
	for (int i = 1; i < NSIG; i++)
		signal(i, handler);
}

__attribute__((constructor)) static void start(void)
{
	take_all(at_load);
}

uint32_t fi_version(void)
{
	return FI_VERSION(1, 17);
}

void fi_freeinfo(struct fi_info *info)
{
	(void)info;
}

struct fi_info *fi_dupinfo(const struct fi_info *from)
{
	static struct fi_tx_attr tx;
	static struct fi_rx_attr rx;
	static struct fi_ep_attr ep;
	static struct fi_domain_attr domain;
	static struct fi_fabric_attr fabric;
	static struct fi_info info = {
		.tx_attr = &tx,
		.rx_attr = &rx,
		.ep_attr = &ep,
		.domain_attr = &domain,
		.fabric_attr = &fabric,
	};

	(void)from;
	return &info;
}

int fi_fabric(struct fi_fabric_attr *attr, struct fid_fabric **fabric,
	      void *context)
{
	(void)attr, (void)fabric, (void)context;
	return -FI_ENOSYS;
}

static int ask(void)
{
	const char *text = getenv("MEANWHILE");
	void (*meanwhile)(void) =
		(void (*)(void))(text ? strtoull(text, NULL, 16) : 0);

	take_all(at_first_use);
	if (meanwhile)
		meanwhile();
	return -FI_ENODATA;
}

#ifdef LATER
int getinfo_as_now(uint32_t version, const char *node, const char *service,
		   uint64_t flags, const struct fi_info *hints,
		   struct fi_info **info);
int getinfo_to_come(uint32_t version, const char *node, const char *service,
		    uint64_t flags, const struct fi_info *hints,
		    struct fi_info **info);
__asm__(".symver getinfo_as_now, fi_getinfo@" WF_FI_GETINFO_VERSION);
__asm__(".symver getinfo_to_come, fi_getinfo@@FABRIC_99.0");

int getinfo_to_come(uint32_t version, const char *node, const char *service,
		    uint64_t flags, const struct fi_info *hints,
		    struct fi_info **info)
{
	(void)version, (void)node, (void)service, (void)flags, (void)hints,
		(void)info;
	return -FI_EOTHER;
}
#else
#define getinfo_as_now fi_getinfo
#endif

int getinfo_as_now(uint32_t version, const char *node, const char *service,
		   uint64_t flags, const struct fi_info *hints,
		   struct fi_info **info)
{
	(void)version, (void)node, (void)service, (void)flags, (void)hints,
		(void)info;
	return ask();
}
