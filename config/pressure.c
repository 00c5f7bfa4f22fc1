/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <errno.h>
#include <string.h>

#include "basic/parse.h"
#include "config/pressure.h"

#define WINDOW_MIN_USEC (500 * 1000ULL)	    /* WINDOW_MIN_US of kernel/sched/psi.c */
#define WINDOW_MAX_USEC (10 * USEC_PER_SEC) /* WINDOW_MAX_US */

#define UNIT "unit="

static int refuse(struct fault *why, const char *text)
{
	return fault_set(why, -EINVAL, "%s", text);
}

/* @word: NULL: there is none */
static int take_unit(const char *word, struct pressure *p, struct fault *why)
{
	if (!word)
		return 0;
	if (strncmp(word, UNIT, strlen(UNIT)) != 0)
		return fault_set(why, -EINVAL,
				 "after the window can only come unit=NAME, then post=TIME, not %s",
				 word);
	word += strlen(UNIT);
	if (!*word || strlen(word) >= sizeof(p->unit))
		return refuse(why, "not the name of a unit after unit=");
	(void)snprintf(p->unit, sizeof(p->unit), "%s", word);
	return 0;
}

/* What the kernel takes and can ever see */
static int check(const struct pressure *p, struct fault *why)
{
	if (strcmp(p->resource, "cpu") == 0 && p->full && !p->unit[0])
		return refuse(why, "cpu full never happens to a whole machine, use cpu some");
	if (p->window_usec < WINDOW_MIN_USEC || p->window_usec > WINDOW_MAX_USEC)
		return refuse(why, "the window must be 500ms to 10s");
	if (p->stall_usec == 0 || p->stall_usec > p->window_usec)
		return refuse(why, "the stall time must be more than 0 and at most the window");
	return 0;
}

int pressure_parse(const char *text, struct pressure *ret, struct fault *why)
{
	static const char *const resources[] = {"memory", "cpu", "io"};
	_cleanup_free_ char *copy = strdup(text);
	char *state = NULL, *word[6] = {};
	struct pressure p = {};
	int r;

	if (!copy)
		return -ENOMEM;
	for (size_t i = 0; i < ARRAY_SIZE(word); i++)
		word[i] = strtok_r(i == 0 ? copy : NULL, " ", &state);
	if (!word[3] || word[5])
		return refuse(why, "must be RESOURCE some|full STALL WINDOW [unit=NAME] "
				   "[post=TIME], as in memory some 150ms 1s");
	for (size_t i = 0; i < ARRAY_SIZE(resources); i++)
		if (strcmp(word[0], resources[i]) == 0)
			p.resource = resources[i];
	if (!p.resource)
		return refuse(why, "the resource must be one of memory, cpu, io");
	p.full = strcmp(word[1], "full") == 0;
	if (!p.full && strcmp(word[1], "some") != 0)
		return refuse(why, "after the resource must come some or full");
	if (parse_time(word[2], &p.stall_usec) < 0 || parse_time(word[3], &p.window_usec) < 0)
		return refuse(why, "STALL and WINDOW must be time spans, as in 150ms 1s");
	r = take_unit(word[4], &p, why);
	if (r >= 0)
		r = check(&p, why);
	if (r >= 0)
		*ret = p;
	return r;
}
