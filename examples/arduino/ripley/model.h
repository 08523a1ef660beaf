/* model.h: a kernel machine in C99, made by slimsvm 0+unknown, not to be edited

     machine    Rbf(gamma=1.0), 3 vectors, 2 features, 2 classes
     tables     int16, 22 bytes: points 12, coef 6, intercept 4
     cost       3 kernel values and 9 multiplications with additions per sample
     loss       scores differ by at most 0.0013 on 1000 rows, 0.00% of the answers; accuracy 88.60% instead of 88.60%
     record     996c056502fa1525202e61fe9e30193362a0801c2f9c1753f656643d13a10cf7
*/

#ifndef MODEL_H
#define MODEL_H

#include <stddef.h>
#include <stdint.h>

/* tables stay in flash, which small AVR boards read by instructions of their own */
#ifdef __AVR__
#include <avr/pgmspace.h>
#define MODEL_FLASH PROGMEM
#define MODEL_READ_INT16(a) ((int16_t)pgm_read_word(a))
#define MODEL_READ_INT32(a) ((int32_t)pgm_read_dword(a))
#else
#define MODEL_FLASH
#define MODEL_READ_INT16(a) (*(a))
#define MODEL_READ_INT32(a) (*(a))
#endif

typedef int16_t model_input;      /* a feature, with its binary digits: model_quantise makes one of a real number */
typedef int32_t model_score;      /* MODEL_SCORE_BITS binary digits: model_real makes a real number of it */
typedef int64_t model_fraction;   /* 28 binary digits */
typedef int16_t model_coordinate; /* as the points have them */
typedef int32_t model_value;      /* a kernel value, 30 binary digits */
typedef int64_t model_sum;

#define MODEL_N_FEATURES 2
#define MODEL_N_COORDINATES 2
#define MODEL_N_POINTS 3
#define MODEL_N_SCORES 1
#define MODEL_N_CLASSES 2
#define MODEL_RANGE 16383
#define MODEL_SCORE_BITS 22
#define MODEL_GAMMA_SHIFT 24
#define MODEL_SUM_SHIFT 17
#define MODEL_GAMMA(j) 1549082005
#define MODEL_INPUT_BITS(i) 13

static const int16_t model_points_table[6] MODEL_FLASH = {
  1391, 6085, 3893, 4392, 5783, 4705
};
#define MODEL_POINTS(i) MODEL_READ_INT16(model_points_table + (i))

static const int16_t model_coef_table[3] MODEL_FLASH = {
  -10787, 23298, -16959
};
#define MODEL_COEF(i) MODEL_READ_INT16(model_coef_table + (i))

static const int32_t model_intercept_table[1] MODEL_FLASH = {
  12672507
};
#define MODEL_INTERCEPT(i) MODEL_READ_INT32(model_intercept_table + (i))

/* v / 2^n, rounded */
static inline int64_t model_round(int64_t v, int n) {
  const int64_t half = ((int64_t)1 << n) >> 1;
  return v < 0 ? -((half - v) >> n) : (v + half) >> n;
}

static inline int64_t model_clamp(int64_t v, int64_t most) {
  return v > most ? most : v < -most ? -most : v;
}

/* 2^-y of y with 32 binary digits, with 30 */
static inline int32_t model_exp2(uint64_t y) {
  const uint64_t f = y & 0xFFFFFFFFu;
  const int n = y >> 37 ? 32 : (int)(y >> 32);
  uint64_t q = 48570u;
  if (n > 30) return 0;
  q = 639548u - (q * f >> 32);
  q = 5712116u - (q * f >> 32);
  q = 41304524u - (q * f >> 32);
  q = 238387503u - (q * f >> 32);
  q = 1031764940u - (q * f >> 32);
  q = 2977044471u - (q * f >> 32);
  q = ((uint64_t)1 << 32) - (q * f >> 32);
  return (int32_t)((q + ((uint64_t)2 << n)) >> (n + 2));
}

static inline void model_map(const model_input *x, model_coordinate *u) {
  size_t i;
  for (i = 0; i < MODEL_N_COORDINATES; ++i) u[i] = (model_coordinate)model_clamp(x[i], MODEL_RANGE);
}

/* |x - z|^2 */
static inline uint32_t model_quantity(const model_coordinate *u, size_t j) {
  uint32_t t = 0;
  size_t i;
  for (i = 0; i < MODEL_N_COORDINATES; ++i) {
    const int32_t z = MODEL_POINTS(j * MODEL_N_COORDINATES + i);
    const int32_t a = (int32_t)u[i] - z;
    t += (uint32_t)(a * a);
  }
  return t;
}

/* e^-(gamma t) */
static inline model_value model_profile(uint32_t t, size_t j) {
  (void)j;
  return model_exp2((uint64_t)t * (uint32_t)MODEL_GAMMA(j) >> MODEL_GAMMA_SHIFT);
}

static inline model_value model_kernel(const model_coordinate *u, size_t j) {
  const uint32_t t = model_quantity(u, j);
  return model_profile(t, j);
}

static inline model_score model_finish(model_sum sum, size_t c) {
  return (model_score)model_clamp(model_round(sum, MODEL_SUM_SHIFT) + MODEL_INTERCEPT(c), 0x7FFFFFFF);
}

/* fills in the scores and returns the number of kernel values that this took */
static inline int model_scores(const model_input x[MODEL_N_FEATURES], model_score scores[MODEL_N_SCORES]) {
  model_sum sums[MODEL_N_SCORES] = {0};
  size_t j, c;
  model_coordinate u[MODEL_N_COORDINATES];
  model_map(x, u);
  for (j = 0; j < MODEL_N_POINTS; ++j) {
    const model_value k = model_kernel(u, j);
    for (c = 0; c < MODEL_N_SCORES; ++c) sums[c] += (model_sum)k * MODEL_COEF(j * MODEL_N_SCORES + c);
  }
  for (c = 0; c < MODEL_N_SCORES; ++c) scores[c] = model_finish(sums[c], c);
  return MODEL_N_POINTS;
}

/* the class of scores, a place among the labels */
static inline int model_class(const model_score *scores) {
  return scores[0] >= 0 ? 1 : scores[0] < 0 ? 0 : -1;
}

/* the class, a place among the labels */
static inline int model_predict(const model_input x[MODEL_N_FEATURES]) {
  model_score scores[MODEL_N_SCORES];
  model_scores(x, scores);
  return model_class(scores);
}

/* the label of a class */
static inline const char *model_label(int place) {
  static const char *const labels[] = {
    "above",
    "below"
  };
  return labels[place];
}

/* a real number as the machine reads it; beyond the range, the end of the range */
static inline model_input model_quantise(double value, size_t feature) {
  int n = MODEL_INPUT_BITS(feature);
  (void)feature;
  for (; n > 0; --n) value *= 2;
  for (; n < 0; ++n) value /= 2;
  if (!(value > -32767)) return -32767;
  if (value > 32767) return 32767;
  return (model_input)(value < 0 ? value - 0.5 : value + 0.5);
}

/* a score as a real number */
static inline double model_real(model_score score) {
  return (double)score * 2.384185791015625e-07;
}

#ifdef SLIMSVM_SELF_TEST
/* the number of results that are not as they were when this file was made */
static int model_self_test(void) {
  static const model_input rows[4][MODEL_N_FEATURES] = {
    {2315, 3128},
    {-6020, 2361},
    {-3653, 5826},
    {-1269, 7863}
  };
  static const model_score expected[4][MODEL_N_SCORES] = {
    {3751208},
    {6413758},
    {-4697820},
    {-13038086}
  };
  static const int answers[4] = {1, 1, 0, 0};
  int wrong = 0;
  size_t i, c;
  for (i = 0; i < 4; ++i) {
    model_score scores[MODEL_N_SCORES];
    model_scores(rows[i], scores);
    for (c = 0; c < MODEL_N_SCORES; ++c) {
      const model_score off = scores[c] - expected[i][c];
      wrong += !(off <= 0 && off >= -0);
    }
    wrong += model_predict(rows[i]) != answers[i];
  }
  return wrong;
}
#ifndef SLIMSVM_NO_MAIN
int main(void) { return model_self_test() != 0; }
#endif
#endif

#endif
