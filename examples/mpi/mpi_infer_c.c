/* SPDX-License-Identifier: MIT */
/* Run the saved SimpleNet on every rank, each with an input and, where there are many, a device. */
#include <mpi.h>
#include <stdio.h>
#include <torchspan.h>

static void check(tspan_status status) {
  if (status == TSPAN_OK) return;
  fprintf(stderr, "%s\n", tspan_last_error());
  MPI_Abort(MPI_COMM_WORLD, 1);
}

static void show(const char* what, int rank, const float* v) {
  printf("%s on rank %d: [%5.1f,%5.1f,%5.1f,%5.1f,%5.1f]\n", what, rank, v[0], v[1], v[2], v[3],
         v[4]);
}

int main(int argc, char** argv) {
  float x[5], y[5];
  const int64_t shape[2] = {1, 5};
  tspan_array input = {.data = x,
                       .device = {.type = 1},
                       .ndim = 2,
                       .dtype = {.kind = TSPAN_FLOAT, .bits = 32, .lanes = 1},
                       .shape = shape};
  tspan_array output = input;
  output.data = y;
  int rank;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  if (argc != 2) {
    fprintf(stderr, "usage: mpi_infer_c MODEL\n");
    MPI_Abort(MPI_COMM_WORLD, 2);
  }

  for (int j = 0; j < 5; j++) x[j] = (float)(rank + j);
  show("input", rank, x);
  tspan_model* net;
  check(tspan_model_load(argv[1], "rank", &net));
  check(tspan_model_run(net, &input, 1, &output, 1));
  show("output", rank, y);
  check(tspan_model_close(net));
  MPI_Finalize();
  return 0;
}
