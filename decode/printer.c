/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <errno.h>

#include "decode/json-printer.h"
#include "decode/printer.h"
#include "decode/text-printer.h"

/* One of them is there */
struct printer {
	struct text_printer *text;
	struct json_printer *json;
};

int printer_new(const struct decoder *decoder, const struct printer_config *config,
		struct printer **ret)
{
	struct printer *printer = calloc(1, sizeof(*printer));
	int r = -ENOMEM;

	if (printer)
		r = config->form == PRINTER_JSON
			    ? json_printer_new(decoder, &printer->json)
			    : text_printer_new(decoder, config, &printer->text);
	if (r < 0) {
		free(printer);
		return r;
	}
	*ret = printer;
	return 0;
}

struct printer *printer_free(struct printer *printer)
{
	if (!printer)
		return NULL;
	text_printer_free(printer->text);
	json_printer_free(printer->json);
	free(printer);
	return NULL;
}

int printer_put(struct printer *printer, const struct decode_event *event, bool ordered,
		struct text *out)
{
	if (printer->json)
		return json_printer_put(printer->json, event, out);
	return text_printer_put(printer->text, event, ordered, out);
}
