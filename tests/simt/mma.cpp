/* mma.sync as a collective of a whole warp, with the fragments as the PTX ISA lays them out. */
#include "simt.cuh"

#include <cmath>

namespace simt
{
namespace
{
struct MmaLane {
    float *sums;
    const uint32_t *a, *b;
};

double bf16(uint32_t bits)
{
    uint32_t wide = bits << 16;
    float value;
    memcpy(&value, &wide, sizeof value);
    return value;
}

/* Towards zero: what the hardware does with bits that do not fit is not written down. */
float truncated(double value)
{
    float near = (float)value;
    return std::fabs((double)near) > std::fabs(value) ? std::nextafterf(near, 0) : near;
}

/* Register r of lane (g, t) holds, of a: rows g, g + 8, g, g + 8, columns 2t and 2t + 1, from 8 on
 * in the last two; of b: rows 2t and 2t + 1, from 8 on in the last, of column g. */
void do_mma(unsigned, void *const lanes[32])
{
    double a[16][16], b[16][8];
    for (int lane = 0; lane < 32; lane++) {
        const MmaLane &own = *static_cast<MmaLane *>(lanes[lane]);
        int g = lane / 4, t = lane % 4;
        for (int i = 0; i < 8; i++)
            a[g + 8 * (i / 2 % 2)][2 * t + i % 2 + 8 * (i / 4)] =
                bf16(own.a[i / 2] >> 16 * (i % 2) & 0xffff);
        for (int i = 0; i < 4; i++)
            b[2 * t + i % 2 + 8 * (i / 2)][g] = bf16(own.b[i / 2] >> 16 * (i % 2) & 0xffff);
    }
    double sums[16][8] = {};
    for (int row = 0; row < 16; row++)
        for (int k = 0; k < 16; k++)
            for (int column = 0; column < 8; column++)
                sums[row][column] += a[row][k] * b[k][column];
    for (int lane = 0; lane < 32; lane++) {
        const MmaLane &own = *static_cast<MmaLane *>(lanes[lane]);
        for (int i = 0; i < 4; i++)
            own.sums[i] =
                truncated(own.sums[i] + sums[lane / 4 + 8 * (i / 2)][2 * (lane % 4) + i % 2]);
    }
}
} // namespace

void mma_bf16(float sums[4], const uint32_t a[4], const uint32_t b[2], const char *file, int line)
{
    MmaLane lane = {sums, a, b};
    collective(0xffffffffu, do_mma, &lane, "mma.sync", file, line);
}
} // namespace simt
