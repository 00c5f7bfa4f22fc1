/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * kshark-names FILE [EVENT] - what KernelShark's library makes of a trace.dat: loads all entries of
 * all its ring buffers and asks for event, task and text of each, as the window does for its table.
 * Prints how many there are, and before that the text of each EVENT; status 1 if one has no name or
 * no text.
 */
#include <err.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wignored-qualifiers"
#pragma GCC diagnostic ignored "-Wstrict-prototypes"
#include <libkshark-tepdata.h>
#include <libkshark.h>
#pragma GCC diagnostic pop

/* The library's own leak of two bytes, for LeakSanitizer */
const char *__lsan_default_suppressions(void);
const char *__lsan_default_suppressions(void)
{
	return "leak:kshark_add_stream";
}

struct tally {
	size_t entries, nameless, textless;
};

static bool says_nothing(const char *text)
{
	return !text || !*text || strcmp(text, "(null)") == 0 || strncmp(text, "[UNKNOWN", 8) == 0;
}

static void look(const struct kshark_entry *entry, const char *wanted, struct tally *tally)
{
	char *event = kshark_get_event_name(entry), *task = kshark_get_task(entry);
	char *info = kshark_get_info(entry);

	if (says_nothing(event) || says_nothing(task))
		if (tally->nameless++ == 0)
			printf("event %d, stream %d: event \"%s\", task \"%s\", text \"%s\"\n",
			       entry->event_id, entry->stream_id, event ? event : "(null)",
			       task ? task : "(null)", info ? info : "(null)");
	if (wanted && event && info && strcmp(event, wanted) == 0)
		puts(info);
	tally->textless += !info;
	tally->entries++;
	free(event);
	free(task);
	free(info);
}

int main(int argc, char **argv)
{
	struct kshark_context *ctx = NULL;
	struct tally tally = {};
	int sd, *streams;

	if (argc != 2 && argc != 3)
		errx(2, "usage: kshark-names FILE [EVENT]");
	if (!kshark_instance(&ctx))
		errx(1, "no context");
	sd = kshark_open(ctx, argv[1]);
	if (sd < 0)
		errx(1, "%s: cannot open", argv[1]);
	(void)kshark_tep_init_all_buffers(ctx, sd);
	streams = kshark_all_streams(ctx);
	for (int i = 0; i < ctx->n_streams; i++) {
		struct kshark_entry **entries = NULL;
		ssize_t n = kshark_load_entries(ctx, streams[i], &entries);

		if (n < 0)
			errx(1, "%s: stream %d: cannot load", argv[1], streams[i]);
		for (ssize_t k = 0; k < n; k++) {
			look(entries[k], argv[2], &tally);
			free(entries[k]);
		}
		free(entries);
	}
	printf("%zu entries, %zu without a name, %zu without a text\n", tally.entries,
	       tally.nameless, tally.textless);
	free(streams);
	kshark_free(ctx);
	return tally.nameless || tally.textless;
}
