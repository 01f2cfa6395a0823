/* Finds a MessagePack bin or str in the outer map of a table of contents. */
#include <stddef.h>
#include <stdint.h>

typedef struct {
  const uint8_t *bytes; /* NULL: there is no such key; exits when it is of another type */
  size_t size;
} toc_field;

toc_field toc_find(const uint8_t *toc, uint64_t size, const char *key);

/* A number from 0 on in the outer map; exits when there is none. */
uint64_t toc_integer(const uint8_t *toc, uint64_t size, const char *key);
