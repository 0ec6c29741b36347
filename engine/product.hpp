// Products of matrices, as register tiles.
//
// One factor is broadcast, number by number; the other comes in vectors, whose lanes never mix. A
// result is one chain of fused multiply-adds in the order of k, whatever tile it falls into: so how
// a product is cut into tiles, or over threads, never changes a bit of it.
#pragma once

#include "simd.hpp"

namespace mvenet::MVENET_ISA {

// c[m][n] = start + sum over k of a[m][k] * b[k][n], for `rows` of m and `vectors` of n. The sum
// may run over several pieces of k, each `k` long but the last, which lie a fixed distance apart.
// Distances that are known when compiling spare a tile its registers; zero: not known.
struct Known {
    int a_m = 0, a_k = 0, b_k = 0, c_m = 0;
};

template <class T, Known K> struct Product {
    int rows, vectors;
    int k, pieces = 1, last_k = 0;  // last_k: of the last piece, if there are several
    const T* a;
    std::ptrdiff_t a_m = K.a_m, a_k = K.a_k, a_piece = 0;
    const T* b;
    std::ptrdiff_t b_k = K.b_k, b_piece = 0;
    T* c;
    std::ptrdiff_t c_m = K.c_m;
    const T* bias = nullptr;     // start from bias[m]
    const T* slope = nullptr;    // multiply the sum by slope, which lies as c
    bool add = false;            // start from what c holds
    bool half = false;           // of the last vector only the first half is written
    bool columns_first = false;  // which factor stays in the cache: the vectors, else the rows
};

// As many rows of a tile as fill the registers with sums: 16 registers, 32 with AVX-512 and NEON.
constexpr int tile_rows(int vectors) {
    constexpr int sums = MVENET_REGISTERS == 32 ? 24 : 12;
    return sums / vectors < 12 ? sums / vectors : 12;
}

// A tile of MR rows and NV vectors; with Half, only half of the last is written. Its sums are whole
// vectors all the same: halves among them cost a sixth more time than they spare.
template <class T, Known K, int MR, int NV, bool Half>
void tile(const Product<T, K>& p, int m0, int n0) {
    constexpr int w = lanes<T>;
    const std::ptrdiff_t a_m = K.a_m ? K.a_m : p.a_m, a_k = K.a_k ? K.a_k : p.a_k;
    const std::ptrdiff_t b_k = K.b_k ? K.b_k : p.b_k, c_m = K.c_m ? K.c_m : p.c_m;
    Vec<T> sum[MR][NV];
    T* c = p.c + m0 * c_m + n0 * w;
    if (p.add) {
#pragma GCC unroll 16
        for (int m = 0; m < MR; ++m) {
#pragma GCC unroll 4
            for (int n = 0; n < NV - Half; ++n) sum[m][n] = load<T>(c + m * c_m + n * w);
            if (Half) sum[m][NV - 1] = load_first_half<T>(c + m * c_m + (NV - 1) * w);
        }
    } else {
#pragma GCC unroll 16
        for (int m = 0; m < MR; ++m) {
            const T first = p.bias ? p.bias[m0 + m] : T(0);
#pragma GCC unroll 4
            for (int n = 0; n < NV; ++n) sum[m][n] = splat<T>(first);
        }
    }
    const T* a_start = p.a + m0 * a_m;
    const T* b_start = p.b + n0 * w;
    for (int piece = p.pieces; piece > 0; --piece, a_start += p.a_piece, b_start += p.b_piece) {
        const int k = piece == 1 && p.pieces > 1 ? p.last_k : p.k;
        const T* a = a_start;
        const T* b = b_start;
#pragma GCC unroll 2
        for (int i = 0; i < k; ++i) {
            Vec<T> column[NV];
#pragma GCC unroll 4
            for (int n = 0; n < NV; ++n) column[n] = load<T>(b + n * w);
#pragma GCC unroll 16
            for (int m = 0; m < MR; ++m) {
                const T value = a[m * a_m];
#pragma GCC unroll 4
                for (int n = 0; n < NV; ++n) sum[m][n] += value * column[n];
            }
            a += a_k;
            b += b_k;
        }
    }
    if (p.slope) {
        const T* slope = p.slope + m0 * c_m + n0 * w;
#pragma GCC unroll 16
        for (int m = 0; m < MR; ++m)
#pragma GCC unroll 4
            for (int n = 0; n < NV; ++n) sum[m][n] *= load<T>(slope + m * c_m + n * w);
    }
#pragma GCC unroll 16
    for (int m = 0; m < MR; ++m) {
#pragma GCC unroll 4
        for (int n = 0; n < NV - Half; ++n) store<T>(c + m * c_m + n * w, sum[m][n]);
        if (Half) store_half<T>(c + m * c_m + (NV - 1) * w, half<T>(sum[m][NV - 1], false));
    }
}

// The tile of a given size, which must be known when compiling.
template <class T, Known K, int NV, bool Half, int... M>
MVENET_INLINE void tile_of(int rows, const Product<T, K>& p, int m0, int n0,
                           std::integer_sequence<int, M...>) {
    using Tile = void (*)(const Product<T, K>&, int, int);
    static constexpr Tile tiles[] = {tile<T, K, M + 1, NV, Half>...};
    tiles[rows - 1](p, m0, n0);
}
template <class T, Known K, int NV>
MVENET_INLINE void tile_of(int rows, const Product<T, K>& p, int m0, int n0) {
    constexpr auto sizes = std::make_integer_sequence<int, tile_rows(NV)>{};
    if constexpr (has_halves && !K.c_m)
        if (p.half && n0 + NV == p.vectors) return tile_of<T, K, NV, true>(rows, p, m0, n0, sizes);
    tile_of<T, K, NV, false>(rows, p, m0, n0, sizes);
}
template <class T, Known K>
MVENET_INLINE void tile_of(int rows, int vectors, const Product<T, K>& p, int m0, int n0) {
    if (vectors == 2)
        tile_of<T, K, 2>(rows, p, m0, n0);
    else if (vectors == 3)
        tile_of<T, K, 3>(rows, p, m0, n0);
    else
        tile_of<T, K, 1>(rows, p, m0, n0);
}

// Vectors that the next tile takes of those left: two, or three where one would be left over.
constexpr int tile_vectors(int left) {
    return left == 1 || left == 2 ? left : left == 3 || left == 5 ? 3 : 2;
}

// Even shares of the rows: a thin last tile would stall.
constexpr int next_rows(int left, int most) {
    const int tiles = (left + most - 1) / most;
    return (left + tiles - 1) / tiles;
}

template <class T, Known K> void multiply_at_once(const Product<T, K>& p) {
    if (p.columns_first) {
        for (int n = 0, nv; n < p.vectors; n += nv) {
            nv = tile_vectors(p.vectors - n);
            for (int m = 0, mr; m < p.rows; m += mr) {
                mr = next_rows(p.rows - m, tile_rows(nv));
                tile_of<T, K>(mr, nv, p, m, n);
            }
        }
        return;
    }
    const int most = tile_rows(tile_vectors(p.vectors));
    for (int m = 0, mr; m < p.rows; m += mr) {
        mr = next_rows(p.rows - m, most);
        for (int n = 0, nv; n < p.vectors; n += nv) {
            nv = tile_vectors(p.vectors - n);
            int left = mr;  // the last strip may be wider and take fewer rows at once
            for (int at = m; left > 0;) {
                const int take = next_rows(left, tile_rows(nv));
                tile_of<T, K>(take, nv, p, at, n);
                at += take;
                left -= take;
            }
        }
    }
}

// Long sums are cut, so that what a tile reads stays in the first-level cache for the next one.
template <class T, Known K> void multiply(Product<T, K> p) {
    constexpr int longest = 512 / int(sizeof(T));
    if (p.pieces > 1 || p.k <= longest + longest / 2) return multiply_at_once(p);
    const T* const slope = p.slope;
    p.slope = nullptr;
    for (int left = p.k; left > 0;) {
        const int cuts = (left + longest - 1) / longest;
        p.k = (left + cuts - 1) / cuts;
        left -= p.k;
        if (left == 0) p.slope = slope;
        multiply_at_once(p);
        p.a += p.k * p.a_k;
        p.b += p.k * p.b_k;
        p.add = true;
    }
}

}  // namespace mvenet::MVENET_ISA
