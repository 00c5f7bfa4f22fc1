/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <errno.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "formats/own-hosts.h"
#include "formats/own-text.h"

enum {
	COLUMN_FRAME,
	COLUMN_MOVED,
	COLUMN_ERROR,
	COLUMN_HOST,
	COLUMN_NAME,
	_COLUMN_MAX,
};

void own_hosts_done(struct own_hosts *hosts)
{
	for (size_t i = 0; i < hosts->n; i++) {
		free(hosts->list[i].host);
		free(hosts->list[i].name);
	}
	free(hosts->list);
	*hosts = (struct own_hosts){};
}

int own_hosts_add(struct own_hosts *hosts, const struct own_host *host)
{
	struct own_host copy = *host;
	int r;

	copy.host = own_text_column(host->host, strlen(host->host));
	copy.name = own_text_column(host->name, strlen(host->name));
	r = copy.host && copy.name ? array_grow(&hosts->list, hosts->n, sizeof(*hosts->list))
				   : -ENOMEM;
	if (r < 0) {
		free(copy.host);
		free(copy.name);
		return r;
	}
	hosts->list[hosts->n++] = copy;
	return 0;
}

int own_hosts_put(const struct own_hosts *hosts, char **ret, size_t *ret_size)
{
	char *text = NULL;
	size_t size;
	FILE *out = open_memstream(&text, &size);

	if (!out)
		return -ENOMEM;
	for (size_t i = 0; i < hosts->n; i++) {
		const struct own_host *h = &hosts->list[i];

		(void)fprintf(out, "%016" PRIx64 "\t%" PRIu64 "\t", h->frame, h->moved);
		if (h->error == OWN_HOST_ERROR_UNKNOWN)
			(void)fputc('?', out);
		else
			(void)fprintf(out, "%" PRIu64, h->error);
		(void)fprintf(out, "\t%s\t%s\n", h->host, h->name);
	}
	if (fclose(out) != 0) {
		free(text);
		return -ENOMEM;
	}
	*ret = text;
	*ret_size = size;
	return 0;
}

static bool take_number(const char *text, int base, uint64_t *ret)
{
	char *end;

	errno = 0;
	*ret = strtoull(text, &end, base);
	return *text >= '0' && *text != '\0' && end != text && *end == '\0' && errno == 0;
}

int own_hosts_take(char *bytes, size_t size, struct own_hosts *ret)
{
	struct own_hosts hosts = {};
	char *columns[_COLUMN_MAX];
	size_t at = 0;
	int r;

	while ((r = own_text_take(bytes, size, &at, columns, _COLUMN_MAX)) > 0) {
		struct own_host host = {
			.host = columns[COLUMN_HOST],
			.name = columns[COLUMN_NAME],
			.error = OWN_HOST_ERROR_UNKNOWN,
		};

		r = hosts.n < OWN_HOSTS_MAX &&
				    take_number(columns[COLUMN_FRAME], 16, &host.frame) &&
				    take_number(columns[COLUMN_MOVED], 10, &host.moved) &&
				    (strcmp(columns[COLUMN_ERROR], "?") == 0 ||
				     take_number(columns[COLUMN_ERROR], 10, &host.error))
			    ? own_hosts_add(&hosts, &host)
			    : -EBADMSG;
		if (r < 0)
			break;
	}
	if (r < 0) {
		own_hosts_done(&hosts);
		return r;
	}
	*ret = hosts;
	return 0;
}
