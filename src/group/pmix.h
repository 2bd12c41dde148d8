/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * PMIx, loaded when a process that it has started joins its job: the part of its interface that
 * weft calls.
 *
 * weft is built without PMIx's headers and library.  The prototypes here are weft's own, of what
 * has been the same from PMIx 2 to 6; a test compares them with pmix.h where that is installed.
 */
#ifndef WF_GROUP_PMIX_H
#define WF_GROUP_PMIX_H

#include <stddef.h>
#include <stdint.h>

#define WF_PMIX_NAME_BYTES 256 /* room of a namespace */
#define WF_PMIX_JOB_SIZE "pmix.job.size"

enum {
	WF_PMIX_SUCCESS = 0,
	WF_PMIX_STRING = 3,	     /* types of values */
	WF_PMIX_UINT32 = 14,
	WF_PMIX_GLOBAL = 3,	     /* whom a value is for: all */
	WF_PMIX_NO_RANK = UINT32_MAX - 1, /* the job itself, not one of its processes */
};

struct wf_pmix_process {
	char name[WF_PMIX_NAME_BYTES];
	uint32_t rank;
};

struct wf_pmix_value {
	uint16_t type;
	union {
		char *string;
		uint32_t number;
		void *widest[3]; /* as many bytes as PMIx's widest has */
	} data;
};

struct wf_pmix_functions {
	int (*PMIx_Init)(struct wf_pmix_process *self, void *info, size_t info_count);
	int (*PMIx_Finalize)(const void *info, size_t info_count);
	const char *(*PMIx_Error_string)(int status);
	int (*PMIx_Put)(uint8_t scope, const char *key, struct wf_pmix_value *value);
	int (*PMIx_Commit)(void);
	int (*PMIx_Get)(const struct wf_pmix_process *process, const char *key, const void *info,
			size_t info_count, struct wf_pmix_value **value);
	int (*PMIx_Get_nb)(const struct wf_pmix_process *process, const char *key, const void *info,
			   size_t info_count,
			   void (*come)(int status, struct wf_pmix_value *value, void *arg),
			   void *arg);
};

#endif
