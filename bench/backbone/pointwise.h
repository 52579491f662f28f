/* Elementwise and row-wise parts of the backbone, in f32 (real.h). Internal to bench/backbone. */
#ifndef ENG_BENCH_BACKBONE_POINTWISE_H
#define ENG_BENCH_BACKBONE_POINTWISE_H

#include <stddef.h>
#include <stdint.h>

#include "bench/backbone/real.h"

/* Rounds to nearest, ties to even; NaN stays NaN. */
void eng_to_bf16(const EngReal *from, uint16_t *to, size_t n);
void eng_from_bf16(const uint16_t *from, float *to, size_t n);

/* out[r] = x[r] / sqrt(mean(x[r]^2) + eps) * weight; out may be x. */
void eng_rms_norm(const EngReal *x, const EngReal *weight, EngReal eps, int64_t rows, int64_t n,
                  EngReal *out);
/* 1 / sqrt(mean(x^2) + eps) */
EngReal eng_reciprocal_rms(const EngReal *x, int64_t n, EngReal eps);

/* Rotates the pairs (i, i + head_dim / 2) of each head by the angles of one position. */
void eng_rope(EngReal *heads, int n_heads, int head_dim, const EngReal *cos, const EngReal *sin);

/* out [rows, w] = silu(first w of x) * last w of x, x [rows, 2 w]. */
void eng_swiglu(const EngReal *x, int64_t rows, int64_t w, EngReal *out);
/* x = x / 2 (1 + tanh(sqrt(2 / pi) (x + 0.044715 x^3))) */
void eng_gelu(EngReal *x, size_t n);
void eng_sigmoid(EngReal *x, size_t n);

/* Softmax over the first n of a row, the rest up to `size` becomes 0. */
void eng_softmax(EngReal *row, int64_t n, int64_t size);

/* to += scale * from */
void eng_add_scaled(EngReal *to, const EngReal *from, EngReal scale, size_t n);

#endif
