/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Unexpected tensors: tensors that came and wait, for a receive or for memory.
 *
 * The bytes of an eager tensor are kept in memory that the sender knows about (the link's eager
 * credit); an offered one stays where it is, at the sender, until it is pulled.
 *
 * Threads: owner; what waits may be looked at by any thread that has the lock.
 */
#ifndef WF_UNEXPECTED_H
#define WF_UNEXPECTED_H

#include <pthread.h>
#include "tensor/part.h"
#include "transfer/answer.h"
#include "transfer/path.h"
#include "transfer/transfer.h"
#include "util/freelist.h"
#include "wire/record.h"

struct wf_receiving_relay;

/* Unexpected tensors of a worker. */
struct wf_unexpected_queue {
	struct wf_engine *engine;
	struct wf_transfer *transfer;
	size_t count;
	struct wf_freelist pulls; /* freelist of struct wf_pull, for receives */
	uint64_t came; /* unexpected tensors ever; the number of the next one */
	const struct wf_receiving_relay *relay; /* set by the owner; NULL: bodies are not passed on */
	/*
	 * Held for a few instructions while a tensor begins or ends to wait, or is looked at from
	 * another thread.  @firsts: the first tensor of each channel, by the channel's hash.
	 */
	pthread_mutex_t lock;
	struct wf_map firsts;
};

struct wf_unexpected {
	/* set by the keeper */
	void *keeper;
	/* The sender's body can't be had any more: free @a, and say @e to a receive that has it. */
	void (*lost)(struct wf_unexpected *a, const struct wf_error *e);
	struct wf_list node;      /* in @queue */
	struct wf_list *queue;    /* list of the keeper; valid while @part is not NULL */
	struct wf_map_node first; /* in unexpected_queue->firsts, if first of @queue */
	struct wf_list kept_node; /* in channels->kept */
	struct wf_list link_node; /* in link->account.kept, or in channels->leftovers */
	struct wf_list part_node; /* in part->kept, by number */
	struct wf_list use_node;  /* in the kept of the part's step, by number */
	struct wf_part *part;     /* a reference, while @part_node is in a list; or NULL */

	/* read by the keeper */
	struct wf_unexpected_queue *unexpected_queue;
	uint64_t number;           /* order of its coming */
	uint64_t since_ns;         /* when the tensor came, or was given back */
	uint64_t charged_bytes;    /* bytes charged to the sender's account; 0: not charged here */
	struct wf_link *link;
	struct wf_answer *answer;       /* answer to the offer; NULL: there is no offer */
	struct wf_path path;            /* path so far */
	struct wf_record_tensor record; /* pointers lie in bytes[]; the key is gone */
	uint8_t bytes[]; /* shape, then the eager body */
};

void wf_unexpected_init(struct wf_unexpected_queue *unexpected_queue, struct wf_engine *engine,
			struct wf_transfer *t);
/* Tear @unexpected_queue down, when no receive runs any more. */
void wf_unexpected_fini(struct wf_unexpected_queue *unexpected_queue);

/* Set up the @tensor of @t, without its bytes; its shape is put in @shape. */
void wf_unexpected_describe(const struct wf_record_tensor *t, int64_t *shape,
			    struct weft_tensor *tensor);

/* Keep the record @t of a tensor that has @came.  Takes @answer.  -ENOMEM. */
int wf_unexpected_keep(struct wf_unexpected_queue *unexpected_queue, struct wf_link *link,
		       const struct wf_record_tensor *t, const struct wf_path *came,
		       struct wf_answer *answer, struct wf_unexpected **unexpected);
void wf_unexpected_free(struct wf_unexpected *a);

/*
 * Charge @a, with @more bytes that its keeper has for it, to its sender's account until it is
 * freed.
 */
void wf_unexpected_charge(struct wf_unexpected *a, uint64_t more);
/*
 * Let @a wait in @queue, of the channel with that @hash, for a receive of the step of @part.  Its
 * place is that of its number.
 */
void wf_unexpected_wait(struct wf_unexpected *a, struct wf_list *queue, uint64_t hash,
			struct wf_part *part);

/* End the wait of @a, and take it out of all lists; harmless before. */
void wf_unexpected_unwait(struct wf_unexpected *a);

/* Take the answer of @a, which no longer keeps it. */
struct wf_answer *wf_unexpected_take_answer(struct wf_unexpected *a);

/* Let @a keep @answer, which it takes. */
void wf_unexpected_give_answer(struct wf_unexpected *a, struct wf_answer *answer);

/* Refuse an unexpected tensor as wf_answer_refuse() does, count it, and free it. */
void wf_unexpected_drop(struct wf_unexpected *a, enum weft_status status);

#endif
