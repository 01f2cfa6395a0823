/* A reader of the scheme zstd-cross-kernel, written from docs/format.md alone: prints each kernel's bytes to stdout,
 * in ordinal order, each after a line "ORDINAL SIZE". Build: cc cross_kernel_reader.c toc_fields.c -lzstd */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <zstd.h>
#include "toc_fields.h"

#define NONE UINT32_MAX
#define DEPTH_LIMIT 8

typedef struct {
  uint64_t offset;
  uint32_t stored_size, content_size, dictionary[2];
  uint8_t *content; /* once decoded */
} frame;

static const uint8_t *file_bytes;
static uint64_t file_size, toc_offset;
static frame *frames;
static uint32_t frame_count;
static const uint8_t *numbers, *numbers_end; /* of the table that is being read */

static void fail(const char *what) {
  fprintf(stderr, "cross_kernel_reader: %s\n", what);
  exit(1);
}

static uint32_t u32(const uint8_t *p) {
  return (uint32_t)p[0] | (uint32_t)p[1] << 8 | (uint32_t)p[2] << 16 | (uint32_t)p[3] << 24;
}

static uint64_t u64(const uint8_t *p) { return (uint64_t)u32(p) | (uint64_t)u32(p + 4) << 32; }

/* Unsigned LEB128, below 2^32. */
static uint32_t number(void) {
  uint64_t value = 0;
  for (int shift = 0; shift < 35; shift += 7) {
    if (numbers >= numbers_end) fail("a table is cut");
    uint8_t byte = *numbers++;
    value |= (uint64_t)(byte & 0x7f) << shift;
    if (byte < 0x80 && value <= UINT32_MAX) return (uint32_t)value;
  }
  fail("a number is too large");
  return 0;
}

/* How many frames have to be decoded for this one; more than the limit is reported as just that. */
static uint32_t closure(uint32_t index, uint32_t *seen, uint32_t count) {
  for (uint32_t i = 0; i < count; i++)
    if (seen[i] == index) return count;
  if (count > DEPTH_LIMIT) return count;
  seen[count++] = index;
  for (int i = 0; i < 2; i++)
    if (frames[index].dictionary[i] != NONE) count = closure(frames[index].dictionary[i], seen, count);
  return count;
}

static const uint8_t *decode(uint32_t index) {
  frame *f = &frames[index];
  if (f->content) return f->content;
  if (f->offset < 16 || f->offset > toc_offset || f->stored_size > toc_offset - f->offset) fail("frame out of bounds");
  const uint8_t *stored = file_bytes + f->offset;
  if (ZSTD_findFrameCompressedSize(stored, f->stored_size) != f->stored_size) fail("not exactly one frame");
  if (ZSTD_getFrameContentSize(stored, f->stored_size) != f->content_size) fail("content size differs");
  /* The dictionary: the contents of the frames that this one names, one after the other. */
  size_t size = 0;
  for (int i = 0; i < 2; i++)
    if (f->dictionary[i] != NONE) size += frames[f->dictionary[i]].content_size;
  uint8_t *dictionary = malloc(size + 1), *end = dictionary;
  if (!dictionary) fail("not enough memory");
  for (int i = 0; i < 2; i++) {
    if (f->dictionary[i] == NONE) continue;
    frame *d = &frames[f->dictionary[i]];
    memcpy(end, decode(f->dictionary[i]), d->content_size);
    end += d->content_size;
  }
  if (size >= 4 && u32(dictionary) == 0xec30a437) fail("a dictionary looks like a trained one");
  ZSTD_DCtx *context = ZSTD_createDCtx();
  ZSTD_DCtx_setParameter(context, ZSTD_d_windowLogMax, 31);
  ZSTD_DCtx_refPrefix(context, dictionary, size); /* raw content, for the next frame only */
  if (!(f->content = malloc((size_t)f->content_size + 1))) fail("not enough memory");
  size_t done = ZSTD_decompressDCtx(context, f->content, f->content_size, stored, f->stored_size);
  if (ZSTD_isError(done)) fail(ZSTD_getErrorName(done)); /* also a wrong content checksum */
  if (done != f->content_size) fail("decoded to another size");
  ZSTD_freeDCtx(context);
  free(dictionary);
  return f->content;
}

int main(int argc, char **argv) {
  if (argc != 2) fail("usage: cross_kernel_reader ARCHIVE");
  FILE *in = fopen(argv[1], "rb");
  if (!in || fseek(in, 0, SEEK_END)) fail("cannot open the archive");
  file_size = (uint64_t)ftell(in);
  rewind(in);
  uint8_t *bytes = malloc(file_size + 1);
  if (fread(bytes, 1, file_size, in) != file_size) fail("cannot read the archive");
  file_bytes = bytes;
  if (file_size < 16 || memcmp(bytes, "KPAK", 4) || u32(bytes + 4) != 1) fail("no archive");
  toc_offset = u64(bytes + 8);
  if (toc_offset < 16 || toc_offset >= file_size) fail("TOC out of bounds");

  const uint8_t *toc = bytes + toc_offset;
  toc_field table = toc_find(toc, file_size - toc_offset, "cross_frames");
  toc_field kernels = toc_find(toc, file_size - toc_offset, "cross_kernels");
  if (!table.bytes || !kernels.bytes) fail("a table is missing");
  toc_field scheme = toc_find(toc, file_size - toc_offset, "compression_scheme");
  if (scheme.size != 17 || memcmp(scheme.bytes, "zstd-cross-kernel", 17)) fail("another scheme");
  uint64_t offset = toc_integer(toc, file_size - toc_offset, "cross_offset");
  uint64_t depth = toc_integer(toc, file_size - toc_offset, "cross_depth");
  if (depth > DEPTH_LIMIT) fail("the archive states too many frames");
  numbers = table.bytes;
  numbers_end = table.bytes + table.size;
  frames = calloc(table.size / 4 + 1, sizeof(frame)); /* a frame takes four bytes at least */
  for (; numbers < numbers_end; frame_count++) {
    frame *f = &frames[frame_count];
    f->offset = offset;
    offset += f->stored_size = number();
    f->content_size = number();
    for (int d = 0; d < 2; d++) f->dictionary[d] = number() - 1; /* 0, none, becomes NONE */
  }
  for (uint32_t i = 0; i < frame_count; i++)
    for (int d = 0; d < 2; d++) /* a dictionary stands behind what needs it, so there are no cycles */
      if (frames[i].dictionary[d] != NONE && (frames[i].dictionary[d] <= i || frames[i].dictionary[d] >= frame_count))
        fail("no such dictionary");

  numbers = kernels.bytes;
  numbers_end = kernels.bytes + kernels.size;
  for (uint32_t kernel = 0; numbers < numbers_end; kernel++) {
    uint32_t slices = number(), seen[DEPTH_LIMIT + 2], count = 0;
    const uint8_t *first = numbers;
    uint64_t size = 0;
    for (uint32_t i = 0; i < slices; i++) {
      uint32_t index = number(), start = number(), length = number();
      if (index >= frame_count || (uint64_t)start + length > frames[index].content_size) fail("a slice reaches past its frame");
      if ((count = closure(index, seen, count)) > depth) fail("a kernel needs too many frames");
      size += length;
    }
    printf("%u %llu\n", kernel, (unsigned long long)size);
    numbers = first;
    for (uint32_t i = 0; i < slices; i++) {
      uint32_t index = number(), start = number(), length = number();
      fwrite(decode(index) + start, 1, length, stdout);
    }
  }
  return 0;
}
