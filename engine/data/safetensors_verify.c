/* safetensors_verify.c: checks what safetensors_write.c adds to a file: checksums, and tensors that begin at multiples of 64. */
#include <stdlib.h>
#include <string.h>

#include "engine/base/checksum.h"
#include "engine/base/memory.h"
#include "engine/base/status.h"
#include "safetensors.h"

static int is_filler(const char *name) {
  size_t length = strlen(name), tail = sizeof SAFETENSORS_FILLER - 1;
  return length >= tail && strcmp(name + length - tail, SAFETENSORS_FILLER) == 0;
}

/* The tensors by offset, which is the order of the checksums. The last tensor is the checksums themselves. */
typedef struct sums {
  const safetensors_entry **order;
  int64_t count; /* of the tensors that have one */
  const char *stored;
} sums;

static uint32_t sum_at(const sums *s, int64_t i) {
  uint32_t sum;
  memcpy(&sum, s->stored + 4 * i, sizeof sum);
  return sum;
}

static uint32_t sum_of(const pgee_safetensors *f, const safetensors_entry *e) {
  return checksum(0, f->data + e->begin, e->end - e->begin);
}

/* Checks the tensor of checksums, and the checksum of the header. */
static int check_sums(const pgee_safetensors *f, sums *s) {
  const safetensors_entry *own = f->tensors.count ? s->order[f->tensors.count - 1] : NULL;
  const char *path = f->file->path;
  if (!own || strcmp(own->name, SAFETENSORS_CHECKSUMS) != 0)
    return fail(PGEE_FORMAT, "'%s' has no checksums: it is no file that pgee_safetensors_write made", path);
  s->count = f->tensors.count - 1;
  int64_t words = safetensors_checksum_words(s->count);
  if (own->type->dtype != PGEE_S32 || own->count != words)
    return fail(PGEE_FORMAT, "'%s': its checksums are %lld of %s, expected %lld of I32", path, (long long)own->count,
                own->type->name, (long long)words);
  s->stored = f->data + own->begin;
  if (sum_at(s, words - 1) != checksum(0, s->stored, 4 * (words - 1)))
    return fail(PGEE_FORMAT, "'%s': the checksum of its checksums is wrong: the file is damaged", path);
  if (sum_at(s, 0) != checksum(0, f->file->data, f->data - f->file->data))
    return fail(PGEE_FORMAT, "'%s': the checksum of the header is wrong: the file is damaged", path);
  return PGEE_OK;
}

/* Checks that the file and every tensor begin and end at multiples of 64, because the kernels read whole lines. */
static int check_lines(const pgee_safetensors *f) {
  const char *path = f->file->path;
  if (f->file->bytes % SAFETENSORS_LINE != 0 || (f->data - f->file->data) % SAFETENSORS_LINE != 0)
    return fail(PGEE_FORMAT, "'%s': its data is %lld bytes at %lld, expected multiples of 64", path, (long long)f->data_bytes,
                (long long)(f->data - f->file->data));
  for (int64_t i = 0; i < f->tensors.count; i++) {
    const safetensors_entry *e = &f->tensors.list[i];
    if (is_filler(e->name) && (e->type->dtype != PGEE_U8 || e->count >= SAFETENSORS_LINE))
      return fail(PGEE_FORMAT, "'%s': the filler '%s' is %lld of %s, expected fewer than %d of U8", path, e->name,
                  (long long)e->count, e->type->name, SAFETENSORS_LINE);
    if (e->begin % SAFETENSORS_LINE != 0 && !is_filler(e->name))
      return fail(PGEE_FORMAT, "'%s': tensor '%s' begins at %lld, expected a multiple of 64", path, e->name, (long long)e->begin);
  }
  return PGEE_OK;
}

static int sums_open(sums *s, const pgee_safetensors *f) {
  s->order = mem_array(f->tensors.count, sizeof *s->order);
  if (!s->order)
    return PGEE_MEMORY;
  for (int64_t i = 0; i < f->tensors.count; i++)
    s->order[i] = &f->tensors.list[i];
  qsort(s->order, (size_t)f->tensors.count, sizeof *s->order, safetensors_by_begin);
  return check_sums(f, s);
}

int pgee_safetensors_verify(const pgee_safetensors *f, int64_t bytes) {
  NEED(f);
  sums s = {0};
  int status = sums_open(&s, f);
  if (status == PGEE_OK)
    status = check_lines(f);
  for (int64_t i = 0; i < s.count && status == PGEE_OK; i++) {
    const safetensors_entry *e = s.order[i];
    if ((bytes < 0 || e->end - e->begin <= bytes) && sum_of(f, e) != sum_at(&s, i + 1))
      status = fail(PGEE_FORMAT, "'%s': the checksum of tensor '%s' is wrong: the file is damaged", f->file->path, e->name);
  }
  mem_free(s.order);
  return status;
}

int pgee_safetensors_checksum(const pgee_safetensors *f, const char *name, uint32_t *stored) {
  NEED(f, stored);
  sums s = {0};
  int status = sums_open(&s, f);
  int64_t at = 0;
  while (status == PGEE_OK && name && at < s.count && strcmp(s.order[at]->name, name) != 0)
    at++;
  if (status == PGEE_OK && name && at == s.count)
    status = fail(PGEE_ARGUMENT, "'%s' has no checksum of a tensor '%s'", f->file->path, name);
  if (status == PGEE_OK)
    *stored = sum_at(&s, name ? at + 1 : 0);
  mem_free(s.order);
  return status;
}
