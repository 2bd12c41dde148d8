/* SPDX-License-Identifier: BSD-2-Clause */
#include "digits.h"

#include <errno.h>
#include <math.h>

#include "rng.h"

#define STROKES_MAX 3   /* the most any digit needs */
#define ARC_SEGMENTS 10 /* a full circle of 20 pixels then looks round */

/*
 * A stroke is a line from (a, b) to (c, d), or an arc of an ellipse around
 * (a, b) with the radii c and d.  The unit is the height of the digit, y grows
 * downwards, and angles go clockwise from three o'clock, in degrees.
 */
struct stroke {
	enum { END, LINE, ARC } kind;
	float a, b, c, d;
	float from, to;
};

static const struct stroke digits[IMAGE_LABELS][STROKES_MAX + 1] = {
	{ { ARC, .5f, .5f, .31f, .47f, 0, 360 } },
	{ { LINE, .5f, .02f, .5f, .98f, 0, 0 },
	  { LINE, .3f, .22f, .5f, .02f, 0, 0 } },
	{ { ARC, .5f, .28f, .3f, .26f, 180, 390 },
	  { LINE, .76f, .41f, .2f, .97f, 0, 0 },
	  { LINE, .2f, .97f, .82f, .97f, 0, 0 } },
	{ { ARC, .47f, .26f, .28f, .24f, 200, 450 },
	  { ARC, .47f, .74f, .32f, .24f, 270, 520 } },
	{ { LINE, .62f, .02f, .18f, .66f, 0, 0 },
	  { LINE, .18f, .66f, .86f, .66f, 0, 0 },
	  { LINE, .62f, .02f, .62f, .98f, 0, 0 } },
	{ { LINE, .78f, .03f, .28f, .03f, 0, 0 },
	  { LINE, .28f, .03f, .26f, .47f, 0, 0 },
	  { ARC, .47f, .68f, .31f, .29f, 225, 510 } },
	{ { ARC, .5f, .7f, .29f, .27f, 0, 360 },
	  { ARC, .75f, .62f, .54f, .6f, 180, 255 } },
	{ { LINE, .2f, .04f, .8f, .04f, 0, 0 },
	  { LINE, .8f, .04f, .42f, .98f, 0, 0 } },
	{ { ARC, .5f, .27f, .25f, .25f, 0, 360 },
	  { ARC, .5f, .75f, .3f, .24f, 0, 360 } },
	{ { ARC, .5f, .3f, .28f, .28f, 0, 360 },
	  { LINE, .78f, .3f, .7f, .98f, 0, 0 } },
};

struct point {
	float x, y;
};

/* Where and how one image shows its digit. */
struct hand {
	float xx, xy, yx, yy; /* turn and scale, in pixels */
	float x, y;           /* centre, in pixels */
	float radius;         /* of the pen, in pixels */
	float ink;            /* brightest value, up to 255 */
};

static struct hand choose_hand(struct rng *r)
{
	float angle = rng_between(r, -.2f, .2f);
	float width = rng_between(r, 16, 22);
	float height = rng_between(r, 17, 22);

	/* Evaluated one by one: the order of initialisers is not defined. */
	struct hand h = {
		.xx = cosf(angle) * width,
		.xy = -sinf(angle) * height,
		.yx = sinf(angle) * width,
		.yy = cosf(angle) * height,
	};

	h.x = rng_between(r, 11.5f, 15.5f);
	h.y = rng_between(r, 11.5f, 15.5f);
	h.radius = rng_between(r, .6f, 1.6f);
	h.ink = rng_between(r, 140, 255);
	return h;
}

static struct point on_paper(const struct hand *h, float x, float y)
{
	x -= .5f;
	y -= .5f;
	return (struct point){ h->x + h->xx * x + h->xy * y,
			       h->y + h->yx * x + h->yy * y };
}

static float distance(struct point p, struct point a, struct point b)
{
	float dx = b.x - a.x, dy = b.y - a.y;
	float along = ((p.x - a.x) * dx + (p.y - a.y) * dy) /
		      (dx * dx + dy * dy + 1e-9f);

	along = fminf(fmaxf(along, 0), 1);
	dx = p.x - a.x - along * dx;
	dy = p.y - a.y - along * dy;
	return sqrtf(dx * dx + dy * dy);
}

static int pixel_near(float x)
{
	if (x < 0)
		return 0;
	return x < IMAGE_SIDE - 1 ? (int)x : IMAGE_SIDE - 1;
}

/* Visits only the pixels that the pen can reach: drawing is 10 times faster. */
static void draw_segment(const struct hand *h, struct point a, struct point b,
			 uint8_t *pixels)
{
	float reach = h->radius + .5f;
	int left = pixel_near(fminf(a.x, b.x) - reach);
	int right = pixel_near(fmaxf(a.x, b.x) + reach);
	int top = pixel_near(fminf(a.y, b.y) - reach);
	int bottom = pixel_near(fmaxf(a.y, b.y) + reach);

	for (int y = top; y <= bottom; y++) {
		for (int x = left; x <= right; x++) {
			struct point p = { (float)x, (float)y };
			float cover = reach - distance(p, a, b);
			uint8_t *pixel = pixels + y * IMAGE_SIDE + x;
			float ink = h->ink * fminf(fmaxf(cover, 0), 1);

			if (ink > *pixel)
				*pixel = (uint8_t)ink;
		}
	}
}

static void draw_stroke(const struct hand *h, const struct stroke *s,
			uint8_t *pixels)
{
	struct point last, next;

	if (s->kind == LINE) {
		draw_segment(h, on_paper(h, s->a, s->b), on_paper(h, s->c, s->d),
			     pixels);
		return;
	}
	for (int i = 0; i <= ARC_SEGMENTS; i++) {
		float angle = s->from + (s->to - s->from) * i / ARC_SEGMENTS;

		angle *= 3.14159265f / 180;
		next = on_paper(h, s->a + s->c * cosf(angle),
				s->b + s->d * sinf(angle));
		if (i > 0)
			draw_segment(h, last, next, pixels);
		last = next;
	}
}

/* One pixel in 16 shows a random grey, so that no pixel tells everything. */
static void add_noise(struct rng *r, uint8_t *pixels)
{
	for (int i = 0; i < IMAGE_PIXELS; i++) {
		uint64_t dice = rng_next(r);

		if (dice % 16 == 0)
			pixels[i] = (uint8_t)(dice >> 32);
	}
}

int digits_draw(uint64_t seed, uint32_t count, struct images *set)
{
	struct images drawn = { .count = count };
	struct rng r = { seed };

	drawn.pixels = calloc(count, IMAGE_PIXELS);
	drawn.labels = calloc(count, 1);
	if (!drawn.pixels || !drawn.labels) {
		images_fini(&drawn);
		return -ENOMEM;
	}

	for (uint32_t i = 0; i < count; i++) {
		uint8_t *pixels = drawn.pixels + (size_t)i * IMAGE_PIXELS;
		uint8_t label = (uint8_t)(rng_next(&r) % IMAGE_LABELS);
		struct hand h = choose_hand(&r);

		for (const struct stroke *s = digits[label]; s->kind; s++)
			draw_stroke(&h, s, pixels);
		add_noise(&r, pixels);
		drawn.labels[i] = label;
	}

	*set = drawn;
	return 0;
}
