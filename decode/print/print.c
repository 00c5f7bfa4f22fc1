/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <ctype.h>
#include <string.h>

#include "decode/print/print-internal.h"

#define MAX_WIDTH 1024 /* wider than anything sane */
#define MAX_TEXT  MIB  /* longer than that of any record: a format of the kernel's ends before */
#define MAX_SPEC  31   /* characters of a conversion, as libtraceevent keeps them */

enum part_kind {
	PART_TEXT,
	PART_NUMBER,
	PART_STRING,
	PART_POINTER,
	PART_FUNCTION,
	PART_FUNCTION_OFFSET,
	PART_UUID,
};

struct part {
	enum part_kind kind;
	struct text text;
	struct text_spec number;
	int longs; /* number of l's, less that of h's: the width of the argument */
	struct string_spec string_spec;
	struct expr *value, *star;
	bool star_width; /* the star is the width, else the precision */
	struct string_arg *string;
	struct field place; /* of a UUID */
	bool little, upper;
};

struct print {
	struct native *native; /* or NULL */
	struct part *parts;    /* behind that */
	size_t n;
};

struct compiler {
	struct print *print;
	struct compiling with;
	const struct tep_print_arg *args;
};

/* A conversion as it is written */
struct conversion {
	bool minus, zero, alternate, dot, star, star_width;
	bool odd; /* not in printf's order, or too wide */
	int longs, width, precision;
	char letter, extension, order; /* of a pointer: "%pUL"; else 0 */
	const struct tep_print_arg *star_arg;
};

struct print *print_free(struct print *print)
{
	if (!print)
		return NULL;
	for (size_t i = 0; i < print->n; i++) {
		struct part *p = &print->parts[i];

		text_done(&p->text);
		expr_free(p->value);
		expr_free(p->star);
		string_arg_free(p->string);
	}
	free(print->parts);
	native_free(print->native);
	free(print);
	return NULL;
}

static struct part *add_part(struct compiler *c, enum part_kind kind)
{
	struct print *b = c->print;

	if (array_grow(&b->parts, b->n, sizeof(*b->parts)) < 0)
		return NULL;
	b->parts[b->n] = (struct part){.kind = kind};
	return &b->parts[b->n++];
}

/* Text up to the next conversion, with its escapes; returns where that is, NULL without memory */
static const char *compile_text(struct compiler *c, const char *f)
{
	struct part *p = add_part(c, PART_TEXT);

	if (!p)
		return NULL;
	for (; *f; f++) {
		if (*f == '\\') {
			f++;
			if (!*f)
				break;
			text_char(&p->text, *f == 'n'	? '\n'
					    : *f == 't' ? '\t'
					    : *f == 'r' ? '\r'
							: *f);
		} else if (*f == '%') {
			if (f[1] != '%')
				break;
			f++;
			text_char(&p->text, '%');
		} else {
			text_char(&p->text, *f);
		}
	}
	return p->text.no_memory ? NULL : f;
}

static const struct tep_print_arg *take_arg(struct compiler *c)
{
	const struct tep_print_arg *arg = c->args;

	if (arg)
		c->args = arg->next;
	return arg;
}

/* A digit, which is a flag, or begins a width or precision; returns the last character used */
static const char *scan_digits(struct conversion *v, const char *f)
{
	char *end;
	long n;

	if (*f == '0' && !v->dot && v->width < 0) {
		v->zero = true;
		return f;
	}
	n = strtol(f, &end, 10);
	v->odd |= n > MAX_WIDTH || v->longs || v->star;
	if (v->dot)
		v->precision = (int)n;
	else
		v->width = (int)n;
	return end - 1;
}

static bool scan_star(struct compiler *c, struct conversion *v)
{
	if (v->star)
		return false;
	v->star = true;
	v->star_width = !v->dot;
	v->star_arg = take_arg(c);
	return v->star_arg;
}

/*
 * One conversion: flags, widths and lengths may come in any order, as for libtraceevent. "%c"
 * and a plus sign are left to it: its versions differ there. Returns what follows it, NULL if it
 * cannot be compiled.
 */
static const char *scan(struct compiler *c, const char *start, struct conversion *v)
{
	const char *f;

	*v = (struct conversion){.width = -1, .precision = -1};
	for (f = start + 1; *f && strchr("#hlLzZ.0123456789-*", *f); f++) {
		if (isdigit((unsigned char)*f)) {
			f = scan_digits(v, f);
			continue;
		}
		v->alternate |= *f == '#';
		v->minus |= *f == '-';
		v->odd |= *f == '.' ? v->dot || v->longs
				    : strchr("-#", *f) && (v->longs || v->dot || v->width >= 0);
		if (*f == '.') {
			v->dot = true;
			v->precision = 0;
		}
		v->longs += *f == 'l' ? 1 : *f == 'h' ? -1 : 0;
		if (*f == 'L')
			v->longs = 2;
		if (*f == 'z' || *f == 'Z')
			v->longs = 1;
		if (*f == '*' && !scan_star(c, v))
			return NULL;
	}
	if (!*f || !strchr("duixXosp", *f) || v->longs < -2 || v->longs > 2)
		return NULL;
	v->letter = *f;
	if (*f == 'p') {
		/* addresses of networks, and buffers: few formats have them */
		if (f[1] && strchr("MmIih", f[1]))
			return NULL;
		if (f[1] && strchr("FSfsU", f[1]))
			v->extension = *++f;
		if (v->extension == 'U' && f[1] && strchr("LlBb", f[1]))
			v->order = *++f;
	}
	return f + 1 - start <= MAX_SPEC ? f + 1 : NULL;
}

/* The precision is that of libtraceevent where it is 0 or comes as an argument */
static bool compile_number(struct compiler *c, const struct conversion *v,
			   const struct tep_print_arg *arg)
{
	struct part *p = add_part(c, PART_NUMBER);

	if (!p || v->odd || (v->dot && v->precision <= 0) || (v->alternate && v->letter == 'o'))
		return false;
	p->longs = v->longs;
	p->number = (struct text_spec){
		.conversion = v->letter,
		.left = v->minus,
		.zero = v->zero && !v->minus && !v->dot,
		.alternate = v->alternate,
		.width = v->width > 0 ? (unsigned)v->width : 0,
		.digits = v->dot ? (unsigned)v->precision : 0,
	};
	p->value = expr_compile(&c->with, arg);
	return p->value;
}

static bool compile_string(struct compiler *c, const struct conversion *v,
			   const struct tep_print_arg *arg)
{
	struct part *p;

	if (v->odd || v->longs || v->alternate || v->zero)
		return false;
	p = add_part(c, PART_STRING);
	if (!p)
		return false;
	p->string_spec = (struct string_spec){v->minus, v->width, v->precision};
	p->string = string_arg_compile(&c->with, arg);
	return p->string;
}

/* The field behind casts */
static bool compile_uuid(struct compiler *c, struct part *p, const struct conversion *v,
			 const struct tep_print_arg *arg)
{
	const struct tep_format_field *field;

	p->kind = PART_UUID;
	p->little = v->order == 'L' || v->order == 'l';
	p->upper = v->order == 'L' || v->order == 'B';
	while (arg->type == TEP_PRINT_TYPE)
		arg = arg->typecast.item;
	if (arg->type != TEP_PRINT_FIELD)
		return false;
	field = expr_field(&c->with, arg->field.field, arg->field.name);
	return field && field->size == 16 && field_place(field, &p->place);
}

static bool compile_pointer(struct compiler *c, const struct conversion *v,
			    const struct tep_print_arg *arg)
{
	struct part *p = add_part(c, PART_POINTER);

	if (!p)
		return false;
	if (v->extension == 'U')
		return compile_uuid(c, p, v, arg);
	if (v->extension)
		p->kind = strchr("FS", v->extension) ? PART_FUNCTION_OFFSET : PART_FUNCTION;
	p->value = arg->type != TEP_PRINT_BSTRING ? expr_compile(&c->with, arg) : NULL;
	return p->value;
}

static const char *compile_conversion(struct compiler *c, const char *f)
{
	const struct tep_print_arg *arg;
	struct conversion v;
	bool ok;

	f = scan(c, f, &v);
	if (!f)
		return NULL;
	arg = take_arg(c);
	if (!arg)
		return NULL;
	if (v.letter == 's')
		ok = compile_string(c, &v, arg);
	else if (v.letter == 'p')
		ok = compile_pointer(c, &v, arg);
	else
		ok = compile_number(c, &v, arg);
	if (ok && v.star) {
		struct part *p = &c->print->parts[c->print->n - 1];

		p->star = expr_compile(&c->with, v.star_arg);
		p->star_width = v.star_width;
		ok = p->star;
	}
	return ok ? f : NULL;
}

/* false: it has parts that are not compiled */
static bool compile_parts(struct print *print, struct tep_event *event,
			  const struct file_symbols *symbols)
{
	struct compiler c = {print, {event, symbols}, event->print_fmt.args};
	const char *f = event->print_fmt.format;

	if (!f || event->flags & (int)(TEP_EVENT_FL_FAILED | TEP_EVENT_FL_PRINTRAW) ||
	    event->flags & TEP_EVENT_FL_ISBPRINT)
		return false;
	while (f && *f) {
		if (*f == '%' && f[1] != '%')
			f = compile_conversion(&c, f);
		else
			f = compile_text(&c, f);
	}
	return f;
}

struct print *print_compile(struct tep_event *event, const struct decoder *decoder, bool plugins)
{
	struct print *print = calloc(1, sizeof(*print));
	int r;

	if (!print)
		return NULL;
	r = native_compile(event, decoder, plugins, &print->native);
	if (r == NATIVE_ALL)
		return print;
	/* what another plugin prints is none of ours */
	if (r < 0 || (event->handler && r != NATIVE_BEFORE) ||
	    !compile_parts(print, event, decoder_symbols(decoder)))
		return print_free(print);
	return print;
}

/* The number as printf takes it from an argument of that length */
static uint64_t cut(uint64_t value, int longs, bool is_signed)
{
	switch (longs) {
	case -2:
		return is_signed ? (uint64_t)(int8_t)value : (uint8_t)value;
	case -1:
		return is_signed ? (uint64_t)(int16_t)value : (uint16_t)value;
	case 0:
		return is_signed ? (uint64_t)(int32_t)value : (uint32_t)value;
	default:
		return value;
	}
}

static void print_number(const struct part *p, uint64_t value, int star, struct text *out)
{
	bool is_signed = p->number.conversion == 'd' || p->number.conversion == 'i';
	struct text_spec spec = p->number;

	if (p->star) {
		spec.left |= star < 0;
		spec.zero &= star >= 0;
		spec.width = (unsigned)abs(star);
	}
	text_number(out, &spec, cut(value, p->longs, is_signed));
}

static void print_string(const struct part *p, int star, const struct decode_event *event,
			 struct symbols_cache *symbols, struct text *out)
{
	struct string_spec spec = p->string_spec;

	if (p->star)
		*(p->star_width ? &spec.width : &spec.precision) = star;
	string_arg_print(p->string, event, symbols, &spec, out);
}

static void print_function(const struct part *p, uint64_t address, struct symbols_cache *symbols,
			   struct text *out)
{
	uint64_t start;
	const char *name = symbols_find(symbols, address, &start);

	text_string(out, name ? name : "0x");
	if (name && p->kind == PART_FUNCTION_OFFSET)
		text_string(out, "+0x");
	if (!name || p->kind == PART_FUNCTION_OFFSET)
		text_hex(out, name ? address - start : address);
}

static void print_uuid(const struct part *part, const struct decode_event *event, struct text *out)
{
	static const uint8_t order[2][16] = {
		{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15},
		{3, 2, 1, 0, 5, 4, 7, 6, 8, 9, 10, 11, 12, 13, 14, 15},
	};
	uint32_t size;
	const uint8_t *p = field_bytes(&part->place, event, &size);

	for (unsigned i = 0; size == 16 && i < 16; i++) {
		text_printf(out, part->upper ? "%02X" : "%02x", p[order[part->little][i]]);
		if (i == 3 || i == 5 || i == 7 || i == 9)
			text_char(out, '-');
	}
}

static void print_part(const struct part *p, const struct decode_event *event,
		       struct symbols_cache *symbols, struct text *out)
{
	int star = p->star ? (int)expr_eval(p->star, event) : 0;
	uint64_t value = p->value ? expr_eval(p->value, event) : 0;

	star = MAX(MIN(star, MAX_WIDTH), -MAX_WIDTH);
	switch (p->kind) {
	case PART_TEXT:
		text_bytes(out, p->text.bytes, p->text.size);
		break;
	case PART_NUMBER:
		print_number(p, value, star, out);
		break;
	case PART_STRING:
		print_string(p, star, event, symbols, out);
		break;
	case PART_POINTER:
		text_string(out, value ? "0x" : "(nil)");
		if (value)
			text_hex(out, value);
		break;
	case PART_FUNCTION:
	case PART_FUNCTION_OFFSET:
		print_function(p, value, symbols, out);
		break;
	case PART_UUID:
		print_uuid(p, event, out);
		break;
	}
}

void print_put(const struct print *print, const struct decode_event *event,
	       struct symbols_cache *symbols, struct text *out)
{
	const size_t begin = out->size;

	if (print->native)
		native_print(print->native, event, symbols, out);
	for (size_t i = 0; i < print->n && out->size - begin <= MAX_TEXT; i++)
		print_part(&print->parts[i], event, symbols, out);
}
