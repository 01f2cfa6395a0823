#include "toc_fields.h"
#include <stdlib.h>
#include <string.h>

static const uint8_t *at, *end;

static uint64_t take(int width) {
  if (end - at < width) exit(2);
  uint64_t value = 0;
  while (width-- > 0) value = value << 8 | *at++;
  return value;
}

/* Reads one value's head: how many bytes of data follow, or how many values are nested in it. */
static void head(uint64_t *data, uint64_t *nested) {
  uint8_t tag = (uint8_t)take(1);
  *data = *nested = 0;
  if (tag <= 0x7f || tag >= 0xe0 || tag == 0xc0 || tag == 0xc2 || tag == 0xc3) return;
  if (tag <= 0x8f) *nested = 2u * (tag & 0x0f);
  else if (tag <= 0x9f) *nested = tag & 0x0f;
  else if (tag <= 0xbf) *data = tag & 0x1f;
  else if (tag == 0xc1) exit(2); /* never used */
  else if (tag <= 0xc6) *data = take(1 << (tag - 0xc4));
  else if (tag <= 0xc9) *data = take(1 << (tag - 0xc7)) + 1;
  else if (tag == 0xca) *data = 4;
  else if (tag == 0xcb) *data = 8;
  else if (tag <= 0xcf) *data = 1u << (tag - 0xcc);
  else if (tag <= 0xd3) *data = 1u << (tag - 0xd0);
  else if (tag <= 0xd8) *data = (1u << (tag - 0xd4)) + 1;
  else if (tag <= 0xdb) *data = take(1 << (tag - 0xd9));
  else if (tag <= 0xdd) *nested = take(tag == 0xdc ? 2 : 4);
  else *nested = 2 * take(tag == 0xde ? 2 : 4);
  if ((uint64_t)(end - at) < *data) exit(2);
}

static void skip(void) {
  for (uint64_t open = 1; open > 0; open--) {
    uint64_t data, nested;
    head(&data, &nested);
    at += data;
    open += nested;
  }
}

/* Moves to the value of a key of the outer map; 0 when there is none. */
static int find(const uint8_t *toc, uint64_t size, const char *key) {
  uint64_t data, pairs, none;
  at = toc;
  end = toc + size;
  head(&data, &pairs);
  for (pairs /= 2; pairs > 0; pairs--) {
    head(&data, &none);
    int wanted = data == strlen(key) && memcmp(at, key, data) == 0;
    at += data;
    if (wanted) return 1;
    skip();
  }
  return 0;
}

toc_field toc_find(const uint8_t *toc, uint64_t size, const char *key) {
  uint64_t data, none;
  if (!find(toc, size, key)) return (toc_field){NULL, 0};
  uint8_t tag = at < end ? *at : 0;
  if (!((tag >= 0xc4 && tag <= 0xc6) || (tag >= 0xa0 && tag <= 0xbf) || (tag >= 0xd9 && tag <= 0xdb))) exit(2);
  head(&data, &none);
  return (toc_field){at, (size_t)data};
}

uint64_t toc_integer(const uint8_t *toc, uint64_t size, const char *key) {
  if (!find(toc, size, key)) exit(2);
  uint8_t tag = (uint8_t)take(1);
  if (tag <= 0x7f) return tag;
  if (tag < 0xcc || tag > 0xcf) exit(2);
  return take(1 << (tag - 0xcc));
}
