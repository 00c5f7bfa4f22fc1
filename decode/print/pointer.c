/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <arpa/inet.h>
#include <netinet/in.h>
#include <string.h>

#include "decode/print/string.h"

enum pointer_kind {
	POINTER_NUMBER,
	POINTER_FUNCTION,
	POINTER_FUNCTION_OFFSET,
	POINTER_CONSTANT, /* what libtraceevent says of an argument that does not fit */
	POINTER_MAC,
	POINTER_IP4,
	POINTER_IP6,
	POINTER_SOCKADDR,
	POINTER_UUID,
	POINTER_BYTES,
};

struct pointer_arg {
	enum pointer_kind kind;
	struct expr *value;
	struct decode_place place;
	bool dynamic, reverse, little, upper, compressed, port;
	char letter;	 /* i or I */
	char between[2]; /* what goes between bytes */
	char constant[64];
	unsigned long_size;
};

static size_t one_of(const char *set, char c)
{
	return c && strchr(set, c) ? 1 : 0;
}

size_t pointer_extension(const char *f)
{
	size_t n = 2;

	switch (f[0]) {
	case 'F':
	case 'S':
	case 'f':
	case 's':
		return 1;
	case 'M':
	case 'm':
		return 1 + one_of("RF", f[1]);
	case 'U':
		return 1 + one_of("LlBb", f[1]);
	case 'h':
		return 1 + one_of("CDN", f[1]);
	case 'I':
	case 'i':
		if (f[1] == '6')
			return 2 + one_of("c", f[2]);
		if (f[1] == '4')
			return 2 + one_of("hnlb", f[2]);
		if (f[1] != 'S')
			return 1;
		while (one_of("pfs", f[n]))
			n++;
		n += one_of("hnlb", f[n]);
		return n + one_of("c", f[n]);
	default:
		return 0;
	}
}

/* The field behind casts, of @size bytes */
static bool compile_place(struct pointer_arg *p, const struct tep_print_arg *arg,
			  struct tep_event *event, int size, const char *misfit)
{
	const struct tep_format_field *field;

	while (arg->type == TEP_PRINT_TYPE)
		arg = arg->typecast.item;
	if (arg->type != TEP_PRINT_FIELD) {
		p->kind = POINTER_CONSTANT;
		(void)snprintf(p->constant, sizeof(p->constant), "ARG TYPE NOT FIELD BUT %d",
			       arg->type);
		return arg->type != TEP_PRINT_FUNC;
	}
	field = arg->field.field ? arg->field.field : tep_find_any_field(event, arg->field.name);
	if (!field || !decode_place(field, &p->place))
		return false;
	if (field->size != size) {
		p->kind = POINTER_CONSTANT;
		(void)snprintf(p->constant, sizeof(p->constant), "%s", misfit);
	}
	return true;
}

static bool compile_sockaddr(struct pointer_arg *p, const struct tep_print_arg *arg,
			     struct tep_event *event)
{
	const struct tep_format_field *field = NULL;

	while (arg->type == TEP_PRINT_TYPE)
		arg = arg->typecast.item;
	if (arg->type == TEP_PRINT_FIELD) {
		field = arg->field.field ? arg->field.field
					 : tep_find_any_field(event, arg->field.name);
	} else if (arg->type == TEP_PRINT_DYNAMIC_ARRAY) {
		field = arg->dynarray.field;
		p->dynamic = true;
	}
	return field && decode_place(field, &p->place);
}

static void compile_order(struct pointer_arg *p, char c, bool big_endian)
{
	p->reverse = c == 'l' || (c == 'h' && !big_endian);
}

static bool compile_ip(struct pointer_arg *p, const struct tep_print_arg *arg, const char *f,
		       struct tep_event *event)
{
	bool big_endian = tep_is_file_bigendian(event->tep);

	p->letter = f[0];
	switch (f[1]) {
	case '4':
		p->kind = POINTER_IP4;
		compile_order(p, f[2], big_endian);
		return compile_place(p, arg, event, 4, "INVALIDIPv4");
	case '6':
		p->kind = POINTER_IP6;
		p->compressed = f[0] == 'I' && f[2] == 'c';
		return compile_place(p, arg, event, 16, "INVALIDIPv6");
	case 'S':
		p->kind = POINTER_SOCKADDR;
		f += 2;
		if (p->letter == 'I' && *f == 'p') {
			p->port = true;
			f++;
		}
		if (p->letter == 'I' && *f == 'c') {
			p->compressed = true;
			f++;
		}
		compile_order(p, *f, big_endian);
		return compile_sockaddr(p, arg, event);
	default:
		p->kind = POINTER_CONSTANT;
		return true;
	}
}

static bool compile_bytes(struct pointer_arg *p, const struct tep_print_arg *arg, char order,
			  struct tep_event *event)
{
	p->between[0] = ' ';
	if (order == 'C')
		p->between[0] = ':';
	else if (order == 'D')
		p->between[0] = '-';
	else if (order == 'N')
		p->between[0] = '\0';
	if (arg->type == TEP_PRINT_FUNC)
		return false;
	if (arg->type != TEP_PRINT_DYNAMIC_ARRAY) {
		p->kind = POINTER_CONSTANT;
		(void)snprintf(p->constant, sizeof(p->constant), "ARG TYPE NOT FIELD BUT %d",
			       arg->type);
		return true;
	}
	p->kind = POINTER_BYTES;
	return arg->dynarray.field && decode_place(arg->dynarray.field, &p->place);
}

static bool compile(struct pointer_arg *p, const struct tep_print_arg *arg, const char *f,
		    struct tep_event *event, const struct kallsyms *symbols)
{
	switch (f[0]) {
	case 'M':
	case 'm':
		p->kind = POINTER_MAC;
		p->between[0] = ':';
		if (f[0] == 'm')
			p->between[0] = '\0';
		else if (f[1] == 'F')
			p->between[0] = '-';
		p->reverse = f[1] == 'R';
		return compile_place(p, arg, event, 6, "INVALIDMAC");
	case 'I':
	case 'i':
		return compile_ip(p, arg, f, event);
	case 'U':
		p->kind = POINTER_UUID;
		p->little = f[1] == 'L' || f[1] == 'l';
		p->upper = f[1] == 'L' || f[1] == 'B';
		return compile_place(p, arg, event, 16, "INVALIDUUID");
	case 'h':
		return compile_bytes(p, arg, f[1], event);
	case 'F':
	case 'S':
		p->kind = POINTER_FUNCTION_OFFSET;
		break;
	case 'f':
	case 's':
		p->kind = POINTER_FUNCTION;
		break;
	default:
		break;
	}
	if (arg->type == TEP_PRINT_BSTRING)
		return false;
	p->value = expr_compile(arg, event, symbols);
	return p->value;
}

struct pointer_arg *pointer_arg_compile(const struct tep_print_arg *arg, const char *extension,
					struct tep_event *event, const struct kallsyms *symbols)
{
	struct pointer_arg *p;

	if (!arg)
		return NULL;
	p = calloc(1, sizeof(*p));
	if (!p)
		return NULL;
	p->long_size = (unsigned)tep_get_long_size(event->tep);
	if (!compile(p, arg, extension, event, symbols))
		return pointer_arg_free(p);
	return p;
}

struct pointer_arg *pointer_arg_free(struct pointer_arg *arg)
{
	if (!arg)
		return NULL;
	expr_free(arg->value);
	free(arg);
	return NULL;
}

static void print_function(const struct pointer_arg *arg, uint64_t address,
			   struct decode_tools *tools, struct text *out)
{
	uint64_t start;
	const char *name = kallsyms_cache_find(&tools->symbols, address, &start);

	if (!name) {
		text_string(out, "0x");
		text_hex(out, arg->long_size == 4 ? (unsigned long)address : address);
		return;
	}
	text_string(out, name);
	if (arg->kind == POINTER_FUNCTION_OFFSET) {
		text_string(out, "+0x");
		text_hex(out, address - start);
	}
}

static void print_ip4(const struct pointer_arg *arg, const uint8_t *p, bool reverse, char letter,
		      struct text *out)
{
	for (unsigned i = 0; i < 4; i++) {
		if (i)
			text_char(out, '.');
		text_u64_wide(out, p[reverse ? 3 - i : i], letter == 'i' ? 3 : 1, '0');
	}
}

/* As the kernel's ip6_compressed_string(): the longest run of zeros becomes "::" */
static void print_ip6_compressed(const uint8_t *p, struct text *out)
{
	static const uint8_t mapped[12] = {[10] = 0xff, [11] = 0xff};
	bool ip4 = memcmp(p, mapped, sizeof(mapped)) == 0 ||
		   ((p[8] | 2) == 2 && p[9] == 0 && p[10] == 0x5e && p[11] == 0xfe);
	unsigned range = ip4 ? 6 : 8, longest = 1, at = 8;
	bool colon = false;

	for (unsigned i = 0; i < range; i++) {
		unsigned n = 0;

		while (i + n < range && p[2 * (i + n)] == 0 && p[2 * (i + n) + 1] == 0)
			n++;
		if (n > longest) {
			longest = n;
			at = i;
		}
	}
	for (unsigned i = 0; i < range; i++) {
		if (i == at) {
			text_string(out, colon || i == 0 ? "::" : ":");
			colon = false;
			i += longest - 1;
			continue;
		}
		if (colon)
			text_char(out, ':');
		text_hex(out, (unsigned)p[2 * i] << 8 | p[2 * i + 1]);
		colon = true;
	}
	if (ip4) {
		if (colon)
			text_char(out, ':');
		print_ip4(NULL, p + 12, false, 'I', out);
	}
}

static void print_ip6(const struct pointer_arg *arg, const uint8_t *p, struct text *out)
{
	if (arg->compressed) {
		print_ip6_compressed(p, out);
		return;
	}
	for (unsigned i = 0; i < 16; i += 2) {
		text_printf(out, "%02x%02x", p[i], p[i + 1]);
		if (arg->letter == 'I' && i < 14)
			text_char(out, ':');
	}
}

static void print_sockaddr(const struct pointer_arg *arg, const struct decode_record *record,
			   struct text *out)
{
	uint32_t size = arg->place.size, offset = MIN(arg->place.offset, record->size);
	const uint8_t *p = record->data + offset;
	uint16_t family;

	if (arg->dynamic)
		p = decode_dynamic(record, &arg->place, &size);
	size = MIN(size, (uint32_t)(record->data + record->size - p));
	if (size < sizeof(family))
		return;
	memcpy(&family, p, sizeof(family));
	if (family == AF_INET) {
		if (size < sizeof(struct sockaddr_in)) {
			text_string(out, "INVALIDIPv4");
			return;
		}
		print_ip4(arg, p + offsetof(struct sockaddr_in, sin_addr), arg->reverse,
			  arg->letter, out);
		if (arg->port)
			text_printf(out, ":%d", p[2] << 8 | p[3]);
	} else if (family == AF_INET6) {
		if (size < sizeof(struct sockaddr_in6)) {
			text_string(out, "INVALIDIPv6");
			return;
		}
		if (arg->port)
			text_char(out, '[');
		print_ip6(arg, p + offsetof(struct sockaddr_in6, sin6_addr), out);
		if (arg->port)
			text_printf(out, "]:%d", p[2] << 8 | p[3]);
	}
}

static void print_uuid(const struct pointer_arg *arg, const uint8_t *p, struct text *out)
{
	static const uint8_t order[2][16] = {
		{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15},
		{3, 2, 1, 0, 5, 4, 7, 6, 8, 9, 10, 11, 12, 13, 14, 15},
	};

	for (unsigned i = 0; i < 16; i++) {
		text_printf(out, arg->upper ? "%02X" : "%02x", p[order[arg->little][i]]);
		if (i == 3 || i == 5 || i == 7 || i == 9)
			text_char(out, '-');
	}
}

static void print_dynamic_bytes(const struct pointer_arg *arg, const struct decode_record *record,
				int star, struct text *out)
{
	uint32_t size;
	const uint8_t *p = decode_dynamic(record, &arg->place, &size);

	for (uint32_t i = 0; i < size && (int)i < star; i++) {
		if (i && arg->between[0])
			text_char(out, arg->between[0]);
		text_printf(out, "%02x", p[i]);
	}
}

static void print_mac(const struct pointer_arg *arg, const uint8_t *p, struct text *out)
{
	for (unsigned i = 0; i < 6; i++) {
		if (i && arg->between[0])
			text_char(out, arg->between[0]);
		text_printf(out, "%.2x", p[arg->reverse ? 5 - i : i]);
	}
}

void pointer_arg_print(const struct pointer_arg *arg, const struct decode_record *record,
		       struct decode_tools *tools, int star, struct text *out)
{
	const uint8_t *p = record->data + arg->place.offset;
	uint64_t value;

	if (arg->place.offset > record->size || arg->place.size > record->size - arg->place.offset)
		return;
	switch (arg->kind) {
	case POINTER_NUMBER:
		value = expr_eval(arg->value, record);
		text_string(out, value ? "0x" : "(nil)");
		if (value)
			text_hex(out, value);
		break;
	case POINTER_FUNCTION:
	case POINTER_FUNCTION_OFFSET:
		print_function(arg, expr_eval(arg->value, record), tools, out);
		break;
	case POINTER_CONSTANT:
		text_string(out, arg->constant);
		break;
	case POINTER_MAC:
		print_mac(arg, p, out);
		break;
	case POINTER_IP4:
		print_ip4(arg, p, arg->reverse, arg->letter, out);
		break;
	case POINTER_IP6:
		print_ip6(arg, p, out);
		break;
	case POINTER_SOCKADDR:
		print_sockaddr(arg, record, out);
		break;
	case POINTER_UUID:
		print_uuid(arg, p, out);
		break;
	case POINTER_BYTES:
		print_dynamic_bytes(arg, record, star, out);
		break;
	}
}
