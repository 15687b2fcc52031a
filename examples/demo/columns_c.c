/* SPDX-License-Identifier: MIT */
/* The saved network on all devices, called from C: columns.bin to heating.bin. */
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <torchspan.h>

static void check(tspan_status status) {
  if (status == TSPAN_OK) return;
  fprintf(stderr, "%s\n", tspan_last_error());
  exit(1);
}

static double now(void) {
  struct timespec time;
  timespec_get(&time, TIME_UTC);
  return (double)time.tv_sec * 1e3 + (double)time.tv_nsec * 1e-6;
}

static tspan_array describe(float* data, const int64_t* shape) {
  return (tspan_array){.data = data,
                       .device = {.type = 1},
                       .ndim = 2,
                       .dtype = {.kind = TSPAN_FLOAT, .bits = 32, .lanes = 1},
                       .shape = shape};
}

int main(int argc, char** argv) {
  if (argc != 4) return fprintf(stderr, "usage: columns_c DEVICES LEVELS BATCH\n"), 2;
  const int64_t levels = atoll(argv[2]), batch = atoll(argv[3]);
  const int64_t from[2] = {batch, 2 * levels}, to[2] = {batch, levels};
  const size_t count = (size_t)(batch * levels);
  float *columns = calloc(2 * count, sizeof(float)), *heating = calloc(count, sizeof(float));
  const tspan_array input = describe(columns, from), output = describe(heating, to);

  FILE* file = fopen("columns.bin", "rb");
  if (!file || fread(columns, sizeof(float), 2 * count, file) != 2 * count) return 1;
  fclose(file);

  tspan_model* net;
  check(tspan_model_load("net.pt2", argv[1], &net));
  double best = 1e30;
  for (int i = 0; i < 6; ++i) {
    const double start = now();
    check(tspan_model_run(net, &input, 1, &output, 1));
    if (now() - start < best) best = now() - start;
  }
  printf("ran on %s in %.1f ms\n", argv[1], best);
  check(tspan_model_close(net));

  file = fopen("heating.bin", "wb");
  if (!file || fwrite(heating, sizeof(float), count, file) != count || fclose(file)) return 1;
  free(columns);
  free(heating);
  return 0;
}
