/* files.c: targets that read what files hold: safetensors and vocabularies. */
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "targets.h"

/* A file in memory, written anew for each input. */
static const char *file_of(const uint8_t *bytes, size_t count) {
  static char path[64];
  static int fd = -1;
  if (fd < 0)
    fd = memfd_create("fuzz", 0);
  snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
  PROMISED(fd >= 0 && ftruncate(fd, 0) == 0 && pwrite(fd, bytes, count, 0) == (ssize_t)count);
  return path;
}

/* Reads every byte. */
static unsigned sum(const pgee_tensor *t) {
  const uint8_t *data = pgee_tensor_data(t);
  int64_t rows = pgee_tensor_dim(t, 0), width = 1, size = pgee_dtype_bytes(pgee_tensor_dtype(t));
  unsigned all = 0;
  for (int i = 1; i < pgee_tensor_ndim(t); i++)
    width *= pgee_tensor_dim(t, i);
  for (int64_t r = 0; r < rows && width > 0; r++)
    for (int64_t i = 0; i < width * size; i++)
      all += data[r * pgee_tensor_stride(t) * size + i];
  return all;
}

static void use_tensor(const pgee_safetensors *f, const char *name) {
  pgee_tensor *t = NULL, *wide = NULL, *row = NULL;
  uint32_t stored;
  pgee_safetensors_checksum(f, name, &stored);
  if (pgee_safetensors_tensor(&t, f, name) != PGEE_OK)
    return;
  volatile unsigned kept = sum(t);
  (void)kept;
  PROMISED(pgee_tensor_nonfinite(t) >= -1);
  PROMISED(pgee_tensor_equal(t, t));
  if (pgee_tensor_f32(&wide, t) == PGEE_OK)
    kept = sum(wide);
  if (pgee_tensor_row(&row, t, 0) == PGEE_OK)
    kept = sum(row);
  pgee_tensor_free(row);
  pgee_tensor_free(wide);
  pgee_tensor_free(t);
}

int fuzz_safetensors(const uint8_t *bytes, size_t count) {
  for (int copy = 0; copy < 2; copy++) {
    pgee_safetensors *f = NULL;
    const char *path = file_of(bytes, count);
    int status = copy ? pgee_safetensors_read(&f, path) : pgee_safetensors_open(&f, path);
    PROMISED((status == PGEE_OK) == (f != NULL));
    if (!f) {
      PROMISED(pgee_message()[0]);
      continue;
    }
    PROMISED(pgee_safetensors_bytes(f) == (int64_t)count);
    pgee_safetensors_verify(f, -1);
    pgee_safetensors_verify(f, 64);
    pgee_safetensors_metadata(f, "perigee.format");
    for (int64_t i = 0; i < pgee_safetensors_count(f); i++)
      use_tensor(f, pgee_safetensors_name(f, i));
    PROMISED(!pgee_safetensors_name(f, pgee_safetensors_count(f)));
    pgee_safetensors_free(f);
  }
  return 0;
}

int fuzz_vocabulary(const uint8_t *bytes, size_t count) {
  input in = {.at = bytes, .end = bytes + count};
  char *text = take_block(&in, (int64_t)count);
  memcpy(text, bytes, count);
  pgee_vocabulary *v = NULL;
  unsigned all = 0;
  int status = pgee_vocabulary_json(&v, "fuzz", text, (int64_t)count);
  PROMISED(status == PGEE_OK || !v);
  if (v) {
    PROMISED(v->begin >= 0 && v->begin <= v->end && v->end <= (int64_t)count);
    for (int64_t i = 0, begin = 0; i < v->count; begin = v->ends[i++]) {
      PROMISED(v->ends[i] >= begin);
      for (int64_t at = begin; at < v->ends[i]; at++)
        all += (uint8_t)v->bytes[at];
      PROMISED(v->scores[i] - v->scores[i] == 0); /* finite */
    }
    PROMISED(all < UINT32_MAX); /* every byte was read */
  }
  pgee_vocabulary_free(v);
  input_free(&in);
  return 0;
}
