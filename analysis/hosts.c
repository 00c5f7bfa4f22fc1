/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <errno.h>
#include <string.h>

#include "analysis/hosts.h"
#include "basic/strv.h"
#include "formats/own-hosts.h"
#include "formats/own-section.h"
#include "formats/own-text.h"

void host_sources_done(struct host_sources *hosts)
{
	free(hosts->list);
	strv_free(hosts->names);
	strv_free(hosts->texts);
	*hosts = (struct host_sources){};
}

/* A copy that lasts; NULL without memory */
static const char *keep(char ***list, const char *text)
{
	STRV_FOREACH (old, *list)
		if (strcmp(*old, text) == 0)
			return *old;
	return strv_append(list, text) < 0 ? NULL : (*list)[strv_length(*list) - 1];
}

static int add(struct host_sources *hosts, const struct source *source, const char *host)
{
	struct source copy = *source;

	copy.host = keep(&hosts->names, host);
	if (!copy.host || array_grow(&hosts->list, hosts->n, sizeof(*hosts->list)) < 0)
		return -ENOMEM;
	hosts->list[hosts->n++] = copy;
	return 0;
}

static int add_file(struct host_sources *hosts, const struct source *source,
		    const struct trace_dat *dat, struct fault *why)
{
	_cleanup_free_ char *host = NULL, *plain = NULL;
	int r = trace_dat_host(dat, &host, why);

	if (r < 0)
		return r;
	plain = own_text_column(host, strlen(host));
	return plain ? add(hosts, source, plain) : -ENOMEM;
}

static int add_frames(struct host_sources *hosts, const struct source *source, char *text,
		      size_t size)
{
	_cleanup_own_hosts_ struct own_hosts of = {};
	int r = own_hosts_take(text, size, &of);

	for (size_t i = 0; i < of.n && r >= 0; i++) {
		_cleanup_free_ char *name =
			strf("%s (%s:%s)", source->name, of.list[i].host, of.list[i].name);
		struct source frame = *source;

		frame.frame = of.list[i].frame;
		frame.error = of.list[i].error;
		frame.name = name ? keep(&hosts->texts, name) : NULL;
		frame.session = keep(&hosts->texts, of.list[i].name);
		r = frame.name && frame.session ? add(hosts, &frame, of.list[i].host) : -ENOMEM;
	}
	return r < 0 ? r : (int)of.n;
}

static int look_into(struct host_sources *hosts, const struct source *source, struct fault *why)
{
	_cleanup_trace_dat_ struct trace_dat *dat = NULL;
	_cleanup_free_ uint8_t *text = NULL;
	struct fault damage;
	size_t size;
	int r = trace_dat_open_fd(source->fd, source->name, &dat, why);

	if (r < 0)
		return r;
	r = own_section_read(dat, OWN_HOSTS, &text, &size, &damage);
	if (r >= 0)
		r = add_frames(hosts, source, (char *)text, size);
	/* to take them for one host would mix up their tasks */
	if (r == -EBADMSG && text)
		return fault_set(why, r, "%s: flyrec's own section: its hosts make no sense",
				 source->name);
	return r > 0 || r == -ENOMEM ? MIN(r, 0) : add_file(hosts, source, dat, why);
}

int host_sources_find(const struct source *sources, size_t n, struct host_sources *ret,
		      struct fault *why)
{
	struct host_sources hosts = {};
	int r = 0;

	for (size_t i = 0; i < n && r >= 0; i++)
		r = look_into(&hosts, &sources[i], why);
	if (r < 0) {
		host_sources_done(&hosts);
		return r == -ENOMEM ? fault_errno(why, r, "cannot analyze") : r;
	}
	*ret = hosts;
	return 0;
}
