/* Seeded table content; see content.h. */
#include "kernels/store/content.h"

#include <math.h>
#include <stdbool.h>
#include <string.h>

#include "base/mem.h"
#include "base/rng.h"

#define DEVIATION  0.1
#define QUANTILES  (ENG_CONTENT_QUANTILES - 1)
#define SCALE_ROWS 4096 /* rows whose inner scales come from one random stream */

/* Any byte but a NaN code: 0x7f and 0xff become 0x7e and 0xfe. */
static void fill_codes(EngRng *rng, uint8_t *out, size_t n)
{
    for (size_t i = 0; i < n; i += 8) {
        uint64_t x = eng_rng_u64(rng);
        uint64_t nan = (x & 0x7f7f7f7f7f7f7f7fu) + 0x0101010101010101u;
        x ^= (nan & 0x8080808080808080u) >> 7;
        memcpy(out + i, &x, n - i < 8 ? n - i : 8);
    }
}

/* 0x70 + uniform 0..11. */
static void fill_scales(EngRng *rng, uint8_t *out, size_t n)
{
    for (size_t i = 0; i < n; i += 8) {
        uint64_t x = eng_rng_u64(rng);
        uint64_t even = (x & 0x00ff00ff00ff00ffu) * 12 >> 8 & 0x00ff00ff00ff00ffu;
        uint64_t odd = (x >> 8 & 0x00ff00ff00ff00ffu) * 12 & 0xff00ff00ff00ff00u;
        x = (even | odd) + 0x7070707070707070u;
        memcpy(out + i, &x, n - i < 8 ? n - i : 8);
    }
}

static void fill_bf16(EngRng *rng, const float *quantiles, uint8_t *out, size_t n)
{
    for (size_t i = 0; i < n; i += 8) {
        uint64_t x = eng_rng_u64(rng);
        uint16_t four[4];
        for (int j = 0; j < 4; j++, x >>= 16) {
            uint32_t bits;
            memcpy(&bits, &quantiles[x & 0xffff], sizeof bits);
            four[j] = (uint16_t)((bits + 0x7fffu + (bits >> 16 & 1u)) >> 16);
        }
        memcpy(out + i, four, n - i < 8 ? n - i : 8);
    }
}

/* Between two quantiles, straight. */
static void fill_f32(EngRng *rng, const float *quantiles, uint8_t *out, size_t n)
{
    for (size_t i = 0; i < n; i += 8) {
        uint64_t x = eng_rng_u64(rng);
        float two[2];
        for (int j = 0; j < 2; j++, x >>= 32) {
            const float *q = &quantiles[x & 0xffff];
            two[j] = q[0] + (q[1] - q[0]) * ((float)(x >> 16 & 0xffff) * 0x1p-16f);
        }
        memcpy(out + i, two, n - i < 8 ? n - i : 8);
    }
}

/* The stream of a chunk, or of SCALE_ROWS rows' scales. */
static void seed_stream(EngRng *rng, const EngContent *content, uint64_t index, bool is_scale)
{
    eng_rng_seed_at(rng, content->seed, 2 * index + is_scale);
}

void eng_content_values(const EngContent *content, uint64_t at, size_t n, uint8_t *out)
{
    EngRng rng;
    for (size_t done = 0, part; done < n; done += part) {
        part = n - done < ENG_CONTENT_CHUNK_BYTES ? n - done : ENG_CONTENT_CHUNK_BYTES;
        seed_stream(&rng, content, (at + done) / ENG_CONTENT_CHUNK_BYTES, false);
        if (content->format == ENG_ROW_BF16)
            fill_bf16(&rng, content->quantiles, out + done, part);
        else if (content->format == ENG_ROW_F32)
            fill_f32(&rng, content->quantiles, out + done, part);
        else /* nibbles too: any byte is good */
            fill_codes(&rng, out + done, part);
    }
}

void eng_content_scales(const EngContent *content, uint64_t at, size_t n, uint8_t *out)
{
    EngRng rng;
    for (size_t done = 0, part; done < n; done += part) {
        part = n - done < ENG_CONTENT_CHUNK_BYTES ? n - done : ENG_CONTENT_CHUNK_BYTES;
        seed_stream(&rng, content, (at + done) / ENG_CONTENT_CHUNK_BYTES, true);
        fill_scales(&rng, out + done, part);
    }
}

/* bf16 scales of int4: 2^-7 to 2^-6. */
static void fill_bf16_scales(EngRng *rng, uint8_t *out, size_t n)
{
    for (size_t i = 0; i < n; i += 2) {
        uint16_t bits = (uint16_t)(0x3c00 + eng_rng_below(rng, 128));
        memcpy(out + i, &bits, sizeof bits);
    }
}

/* Copies what [at, at + n) and a row's scales at `from` have in common. */
static void overlay(const uint8_t *scales, uint64_t from, size_t bytes, uint64_t at, size_t n,
                    uint8_t *out)
{
    uint64_t first = from > at ? from : at, end = from + bytes < at + n ? from + bytes : at + n;
    if (first < end) memcpy(out + (first - at), scales + (first - from), end - first);
}

void eng_content_row_scales(const EngContent *content, int row_dims, uint64_t at, size_t n,
                            uint8_t *out)
{
    enum { PIECE = 256 }; /* rows with more scale bytes than that are written through a piece */
    size_t offset = eng_row_scale_offset(content->format, row_dims);
    if (!offset || !n) return;
    size_t stride = eng_row_stride_bytes(content->format, row_dims);
    size_t bytes = eng_row_value_bytes(content->format, row_dims) - offset;
    uint64_t end = (at + n + stride - 1) / stride; /* rows touched */
    for (uint64_t row = at / stride / SCALE_ROWS * SCALE_ROWS; row < end;) {
        EngRng rng;
        seed_stream(&rng, content, row / SCALE_ROWS, true);
        for (uint64_t last = row + SCALE_ROWS; row < last && row < end; row++)
            for (size_t done = 0, part; done < bytes; done += part) {
                uint8_t piece[PIECE];
                part = bytes - done < PIECE ? bytes - done : PIECE;
                if (content->format == ENG_ROW_INT4)
                    fill_bf16_scales(&rng, piece, part);
                else
                    fill_scales(&rng, piece, part);
                overlay(piece, row * stride + offset + done, part, at, n, out);
            }
    }
}

/* Where the normal distribution passes (i + 1/2) / (QUANTILES + 1): Newton's method from the
 * neighbour towards the middle, mirrored. */
static void compute_quantiles(float *quantiles)
{
    double z = 0;
    for (int i = QUANTILES / 2; i <= QUANTILES; i++) {
        double above = (QUANTILES - i + 0.5) / (QUANTILES + 1); /* probability beyond z */
        for (int step = 0; step < 6; step++) {
            double density = exp(-z * z / 2) / sqrt(2 * M_PI);
            z += (0.5 * erfc(z / M_SQRT2) - above) / density;
        }
        quantiles[i] = (float)(DEVIATION * z);
        quantiles[QUANTILES - i] = -quantiles[i];
    }
}

EngStatus eng_content_create(EngContent *content, EngRowFormat format, uint64_t seed, EngErr *err)
{
    *content = (EngContent){.format = format, .seed = seed};
    if (format != ENG_ROW_BF16 && format != ENG_ROW_F32) return ENG_OK;
    EngStatus status = eng_alloc_or((void **)&content->quantiles, QUANTILES + 1,
                                    sizeof *content->quantiles, "quantiles", err);
    if (!status) compute_quantiles(content->quantiles);
    return status;
}

void eng_content_destroy(EngContent *content)
{
    eng_free(content->quantiles);
    content->quantiles = NULL;
}
