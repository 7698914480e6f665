/* main.c: what libFuzzer calls. The program is named as its target is: links to one file. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "targets.h"

static const struct {
  const char *name;
  int (*run)(const uint8_t *, size_t);
} targets[] = {
    {"safetensors", fuzz_safetensors}, {"vocabulary", fuzz_vocabulary}, {"definition", fuzz_definition}, {"image", fuzz_image},
    {"encode", fuzz_encode},
};

static int (*target)(const uint8_t *, size_t);

int LLVMFuzzerInitialize(int *argc, char ***argv);
int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t count);

int LLVMFuzzerInitialize(int *argc, char ***argv) {
  const char *path = *argc > 0 ? (*argv)[0] : "", *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path;
  for (size_t i = 0; i < sizeof targets / sizeof *targets; i++)
    if (strcmp(targets[i].name, name) == 0)
      target = targets[i].run;
  if (!target) {
    fprintf(stderr, "'%s' is none of the targets that spec/fuzz/main.c lists\n", name);
    exit(1);
  }
  return 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t count) { return target(bytes, count); }
