/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <dlfcn.h>
#include <string.h>
#include <traceevent/event-parse.h>

#include "basic/strv.h"
#include "decode/plugins.h"

#define MAX_PLUGINS 64U

static struct {
	bool opened;
	struct {
		tep_plugin_load_func load;
		tep_plugin_unload_func unload;
	} list[MAX_PLUGINS];
	size_t n;
} plugins;

static void keep(struct tep_handle *tep, const char *path, const char *name, void *userdata)
{
	_cleanup_free_ char *file = strf("%s/%s", path, name);
	void *handle, *load, *unload;

	handle = file && plugins.n < MAX_PLUGINS ? dlopen(file, RTLD_NOW | RTLD_GLOBAL) : NULL;
	load = handle ? dlsym(handle, TEP_PLUGIN_LOADER_NAME) : NULL;
	if (!load) {
		if (handle)
			dlclose(handle);
		return;
	}
	unload = dlsym(handle, TEP_PLUGIN_UNLOADER_NAME);
	/* a function pointer out of dlsym(), as POSIX has it */
	memcpy(&plugins.list[plugins.n].load, &load, sizeof(load));
	memcpy(&plugins.list[plugins.n].unload, &unload, sizeof(unload));
	plugins.n++;
}

bool plugins_open(void)
{
	struct tep_handle *tep = plugins.opened ? NULL : tep_alloc();

	if (tep) {
		plugins.opened = true;
		tep_load_plugins_hook(tep, ".so", keep, NULL);
		tep_free(tep);
	}
	return plugins.n > 0;
}

bool plugins_add(struct tep_handle *tep)
{
	(void)plugins_open();
	for (size_t i = 0; i < plugins.n; i++)
		(void)plugins.list[i].load(tep);
	return plugins.n > 0;
}

bool plugins_is(const struct tep_event *event, const char *plugin)
{
	const char *slash;
	Dl_info info;

	if (!event->handler || !dladdr((void *)(uintptr_t)event->handler, &info) || !info.dli_fname)
		return false;
	slash = strrchr(info.dli_fname, '/');
	return strcmp(slash ? slash + 1 : info.dli_fname, plugin) == 0;
}

void plugins_remove(struct tep_handle *tep)
{
	for (size_t i = 0; i < plugins.n; i++)
		if (plugins.list[i].unload)
			plugins.list[i].unload(tep);
}
