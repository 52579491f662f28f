/* Row-wise parts of training and their gradients. Internal to bench/backbone. */
#ifndef ENG_BENCH_BACKBONE_GRAD_POINTWISE_H
#define ENG_BENCH_BACKBONE_GRAD_POINTWISE_H

#include <stddef.h>
#include <stdint.h>
#include "bench/backbone/real.h"

EngReal eng_dot(const EngReal *a, const EngReal *b, int64_t n);
/* out = a + b */
void eng_add(const EngReal *a, const EngReal *b, EngReal *out, size_t n);

/* out [rows, n] = x * rstd * weight; rstd [rows] = 1 / sqrt(mean(x^2) + eps). */
void eng_norm_forward(const EngReal *x, const EngReal *weight, EngReal eps, int64_t rows, int64_t n,
                      EngReal *rstd, EngReal *out);
/* d_x [rows, n] written (may be d_out); d_weight [n] added to. */
void eng_norm_backward(const EngReal *x, const EngReal *weight, const EngReal *rstd,
                       const EngReal *d_out, int64_t rows, int64_t n, EngReal *d_x,
                       EngReal *d_weight);

/* Backward of eng_swiglu: x [rows, 2 w] becomes its own gradient, act [rows, w] the forward's
 * result; d_act may be act2. With row_scale (NULL: 1) the network's output was scaled by row:
 * d_act is the gradient without the scale, act and the gradient have it, and d_scale [rows] gets
 * the sum of act times d_act. */
void eng_swiglu_backward(EngReal *x, const EngReal *d_act, const EngReal *row_scale, int64_t rows,
                         int64_t w, EngReal *act, EngReal *d_scale);

/* Rotates back: the gradient of eng_rope. */
void eng_rope_backward(EngReal *heads, int n_heads, int head_dim, const EngReal *cos,
                       const EngReal *sin);

/* Softmax over the first n of a row, the rest up to `size` becomes 0; gives log of the sum of
 * exponentials. */
EngReal eng_softmax_lse(EngReal *row, int64_t n, int64_t size);
/* Softmax times `scale` over n; the same log. */
EngReal eng_softmax_scaled(EngReal *row, EngReal scale, int64_t n);
/* The same rounded to bf16 into out; row is used up. */
EngReal eng_softmax_rounded(EngReal *row, EngReal scale, int64_t n, uint16_t *out);
/* row = exp(row - lse) over the first n, 0 beyond. */
void eng_softmax_again(EngReal *row, EngReal lse, int64_t n, int64_t size);
/* d = p * (d - shift) * scale over n */
void eng_softmax_backward(const EngReal *p, EngReal *d, EngReal shift, EngReal scale, int64_t n);
void eng_scale(EngReal *row, EngReal scale, int64_t n);

#endif
