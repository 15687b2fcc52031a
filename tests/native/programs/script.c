/* SPDX-License-Identifier: MIT */
/* Scripts as models, one way of use a mode: script MODE SCRIPT... */
#include <pthread.h>
#include <signal.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "raw.h"

enum { ROWS = 4, WIDTH = 3, SIZE = ROWS * WIDTH };

static const int64_t shape[2] = {ROWS, WIDTH};
static tspan_model* model;

static tspan_array array_of(float* data) {
  tspan_array array = {data, {1, 0}, 2, {TSPAN_FLOAT, 32, 1}, shape, NULL, 0};
  return array;
}

static void require(tspan_status status) {
  if (status != TSPAN_OK) stop(tspan_last_error());
}

static tspan_model* load(const char* path) {
  tspan_model* opened;
  require(tspan_model_load(path, "cpu", &opened));
  return opened;
}

static tspan_status run(tspan_model* opened, float* x, float* y) {
  const tspan_array in = array_of(x), out = array_of(y);
  return tspan_model_run(opened, &in, 1, &out, 1);
}

static tspan_status train(tspan_model* opened, float* x, float* target, double* loss, int* done) {
  const tspan_array in = array_of(x), wanted = array_of(target);
  return tspan_model_train(opened, &in, 1, &wanted, 1, loss, done);
}

/* One line an error: its newlines are written as \n. */
static void report(const char* path, const char* what, tspan_status status) {
  const char* name = strrchr(path, '/');
  printf("%s|%s|%d|", name ? name + 1 : path, what, status);
  for (const char* at = status == TSPAN_OK ? "" : tspan_last_error(); *at; at++) {
    if (*at == '\n') printf("\\n");
    if (*at != '\n') putchar(*at);
  }
  putchar('\n');
}

/* Do everything with a script that may go wrong anywhere. */
static void attempt(const char* path, const char* devices) {
  float x[SIZE], y[SIZE];
  double loss;
  int done;
  tspan_model* opened;
  for (int i = 0; i < SIZE; i++) x[i] = 1;
  const tspan_status loaded = tspan_model_load(path, devices, &opened);
  report(path, "load", loaded);
  if (loaded != TSPAN_OK) return;
  report(path, "run", run(opened, x, y));
  report(path, "train", train(opened, x, y, &loss, &done));
  report(path, "save", tspan_model_save(opened, "/no/such/folder/file"));
  require(tspan_model_close(opened));
}

/* Train a script until it says that it is done, and save it. */
static void learn(const char* path, const char* target) {
  float x[SIZE], y[SIZE];
  double loss = 0;
  int done = 0, steps = 0;
  model = load(path);
  for (int i = 0; i < SIZE; i++) x[i] = (float)i / SIZE, y[i] = 2 * x[i];
  while (!done) {
    require(train(model, x, y, &loss, &done));
    steps++;
  }
  require(tspan_model_save(model, target));
  require(run(model, x, y));
  printf("%d %g %.2f\n", steps, loss, y[6]);
  require(train(model, x, y, NULL, NULL));
}

static long resident(void) {
  long whole, pages;
  FILE* file = fopen("/proc/self/statm", "r");
  if (!file || fscanf(file, "%ld %ld", &whole, &pages) != 2) stop("no statm");
  fclose(file);
  return pages * sysconf(_SC_PAGESIZE);
}

static double now(void) {
  struct timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  return (double)time.tv_sec + 1e-9 * (double)time.tv_nsec;
}

/* Print the bytes that many calls take for good, errors among them, and the microseconds a call. */
static void call_often(const char* good, const char* bad, int calls) {
  float x[SIZE] = {0}, y[SIZE];
  tspan_model* raising = load(bad);
  model = load(good);
  for (int i = 0; i < 2000; i++) run(i % 2 ? model : raising, x, y);
  const long before = resident();
  for (int i = 0; i < calls; i++) {
    require(run(model, x, y));
    if (i % 10 == 0 && run(raising, x, y) != TSPAN_ERROR_MODEL) stop("no error");
  }
  const long after = resident();
  const double begin = now();
  for (int i = 0; i < calls; i++) require(run(model, x, y));
  printf("%ld %.2f\n", after - before, 1e6 * (now() - begin) / calls);
}

static void* work(void* argument) {
  float x[SIZE], y[SIZE];
  char message[256];
  for (int call = 0; call < 100; call++) {
    const float mine = (float)(intptr_t)argument + 100 * (float)call;
    for (int i = 0; i < SIZE; i++) x[i] = mine;
    if (run(model, x, y) != TSPAN_OK) return "a run failed";
    for (int i = 0; i < SIZE; i++)
      if (y[i] != 2 * mine) return "a result is wrong";
    x[0] = -1 - mine;
    if (run(model, x, y) != TSPAN_ERROR_MODEL) return "no error";
    snprintf(message, sizeof message, "ValueError: %d is below 0", (int)x[0]);
    if (!strstr(tspan_last_error(), message)) return "another thread's message";
  }
  return NULL;
}

static void from_ten_threads(const char* path) {
  pthread_t threads[10];
  void* said;
  model = load(path);
  for (intptr_t i = 0; i < 10; i++)
    if (pthread_create(&threads[i], NULL, work, (void*)i)) stop("no thread");
  for (int i = 0; i < 10; i++) {
    pthread_join(threads[i], &said);
    if (said) stop(said);
  }
  printf("right\n");
}

/* The script keeps the input of each call and gives the one before. */
static void keep(const char* path) {
  float *x = malloc(SIZE * sizeof *x), y[SIZE];
  model = load(path);
  for (int call = 0; call < 3; call++) {
    for (int i = 0; i < SIZE; i++) x[i] = (float)call;
    require(run(model, x, y));
    printf("%g %g\n", y[0], x[0]);
  }
  for (int i = 0; i < SIZE; i++) x[i] = -9;
  free(x);
  x = calloc(SIZE, sizeof *x);
  require(run(model, x, y));
  printf("%g\n", y[SIZE - 1]);
  free(x);
}

static volatile sig_atomic_t caught;

static void on_interrupt(int number) { caught = number; }

static void interrupt(const char* path) {
  float x[SIZE] = {0}, y[SIZE];
  struct sigaction mine = {0}, pipe, after;
  mine.sa_handler = on_interrupt;
  sigaction(SIGINT, &mine, NULL);
  sigaction(SIGPIPE, NULL, &pipe);
  model = load(path);
  raise(SIGINT);
  require(run(model, x, y));
  sigaction(SIGPIPE, NULL, &after);
  printf("%d %d\n", caught == SIGINT, pipe.sa_handler == after.sa_handler);
}

static void fork_after(const char* path) {
  float x[SIZE] = {0}, y[SIZE];
  int status;
  model = load(path);
  fflush(stdout);
  if (fork() == 0) {
    tspan_model* second;
    report(path, "run", run(model, x, y));
    report(path, "load", tspan_model_load(path, "cpu", &second));
    report(path, "close", tspan_model_close(model));
    exit(0);
  }
  wait(&status);
  require(run(model, x, y));
  printf("%d\n", status);
}

static void* stay(void* path) {
  float x[SIZE] = {0}, y[SIZE];
  (void)path;
  run(model, x, y);
  return NULL;
}

/* End the program while another thread is in the script. */
static void leave(const char* path) {
  pthread_t thread;
  model = load(path);
  if (pthread_create(&thread, NULL, stay, NULL)) stop("no thread");
  nanosleep(&(struct timespec){0, 300000000}, NULL);
  printf("left\n");
}

int main(int count, char** given) {
  const char* mode = count > 2 ? given[1] : "";
  if (strcmp(mode, "attempt") == 0)
    for (int i = 3; i < count; i++) attempt(given[i], given[2]);
  else if (strcmp(mode, "learn") == 0)
    learn(given[2], given[3]);
  else if (strcmp(mode, "calls") == 0)
    call_often(given[2], given[3], atoi(given[4]));
  else if (strcmp(mode, "threads") == 0)
    from_ten_threads(given[2]);
  else if (strcmp(mode, "keep") == 0)
    keep(given[2]);
  else if (strcmp(mode, "interrupt") == 0)
    interrupt(given[2]);
  else if (strcmp(mode, "fork") == 0)
    fork_after(given[2]);
  else if (strcmp(mode, "leave") == 0)
    leave(given[2]);
  else
    stop("script attempt|learn|calls|threads|keep|interrupt|fork|leave SCRIPT...");
  return 0;
}
