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
// A is the distance between rows of a, if it is known when compiling; zero: it is a_m.
template <class T, int A = 0> struct Product {
    int rows, vectors;
    int k, pieces = 1, last_k = 0;  // last_k: of the last piece, if there are several
    const T* a;
    std::ptrdiff_t a_m = A, a_k, a_piece = 0;
    const T* b;
    std::ptrdiff_t b_k, b_piece = 0;
    T* c;
    std::ptrdiff_t c_m;
    const T* bias = nullptr;     // start from bias[m]
    const T* slope = nullptr;    // multiply the sum by slope, which lies as c
    bool add = false;            // start from what c holds
    bool columns_first = false;  // which factor stays in the cache: the vectors, else the rows
};

// As many rows of a tile as fill the registers with sums: 16 registers, 32 with AVX-512 and NEON.
constexpr int tile_rows(int vectors) {
    constexpr int sums = MVENET_REGISTERS == 32 ? 24 : 12;
    return sums / vectors < 12 ? sums / vectors : 12;
}

template <class T, int A, int MR, int NV> void tile(const Product<T, A>& p, int m0, int n0) {
    const std::ptrdiff_t a_m = A ? A : p.a_m;
    Vec<T> sum[MR][NV];
    T* c = p.c + m0 * p.c_m + n0 * lanes<T>;
    if (p.add) {
#pragma GCC unroll 16
        for (int m = 0; m < MR; ++m)
#pragma GCC unroll 4
            for (int n = 0; n < NV; ++n) sum[m][n] = load<T>(c + m * p.c_m + n * lanes<T>);
    } else {
#pragma GCC unroll 16
        for (int m = 0; m < MR; ++m) {
            const Vec<T> first = p.bias ? splat<T>(p.bias[m0 + m]) : Vec<T>{};
#pragma GCC unroll 4
            for (int n = 0; n < NV; ++n) sum[m][n] = first;
        }
    }
    const T* a_start = p.a + m0 * a_m;
    const T* b_start = p.b + n0 * lanes<T>;
    for (int piece = p.pieces; piece > 0; --piece, a_start += p.a_piece, b_start += p.b_piece) {
        const int k = piece == 1 && p.pieces > 1 ? p.last_k : p.k;
        const T* a = a_start;
        const T* b = b_start;
#pragma GCC unroll 2
        for (int i = 0; i < k; ++i) {
            Vec<T> column[NV];
#pragma GCC unroll 4
            for (int n = 0; n < NV; ++n) column[n] = load<T>(b + n * lanes<T>);
#pragma GCC unroll 16
            for (int m = 0; m < MR; ++m) {
                const Vec<T> value = splat<T>(a[m * a_m]);
#pragma GCC unroll 4
                for (int n = 0; n < NV; ++n) sum[m][n] += value * column[n];
            }
            a += p.a_k;
            b += p.b_k;
        }
    }
    if (p.slope) {
        const T* slope = p.slope + m0 * p.c_m + n0 * lanes<T>;
#pragma GCC unroll 16
        for (int m = 0; m < MR; ++m)
#pragma GCC unroll 4
            for (int n = 0; n < NV; ++n) sum[m][n] *= load<T>(slope + m * p.c_m + n * lanes<T>);
    }
#pragma GCC unroll 16
    for (int m = 0; m < MR; ++m)
#pragma GCC unroll 4
        for (int n = 0; n < NV; ++n) store<T>(c + m * p.c_m + n * lanes<T>, sum[m][n]);
}

// The tile of a given size, which must be known when compiling.
template <class T, int A, int NV, int... M>
MVENET_INLINE void tile_of(int rows, const Product<T, A>& p, int m0, int n0,
                           std::integer_sequence<int, M...>) {
    using Tile = void (*)(const Product<T, A>&, int, int);
    static constexpr Tile tiles[] = {tile<T, A, M + 1, NV>...};
    tiles[rows - 1](p, m0, n0);
}
template <class T, int A>
MVENET_INLINE void tile_of(int rows, int vectors, const Product<T, A>& p, int m0, int n0) {
    if (vectors == 2)
        tile_of<T, A, 2>(rows, p, m0, n0, std::make_integer_sequence<int, tile_rows(2)>{});
    else if (vectors == 3)
        tile_of<T, A, 3>(rows, p, m0, n0, std::make_integer_sequence<int, tile_rows(3)>{});
    else
        tile_of<T, A, 1>(rows, p, m0, n0, std::make_integer_sequence<int, tile_rows(1)>{});
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

template <class T, int A> void multiply_at_once(const Product<T, A>& p) {
    if (p.columns_first) {
        for (int n = 0, nv; n < p.vectors; n += nv) {
            nv = tile_vectors(p.vectors - n);
            for (int m = 0, mr; m < p.rows; m += mr) {
                mr = next_rows(p.rows - m, tile_rows(nv));
                tile_of<T, A>(mr, nv, p, m, n);
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
                tile_of<T, A>(take, nv, p, at, n);
                at += take;
                left -= take;
            }
        }
    }
}

// Long sums are cut, so that what a tile reads stays in the first-level cache for the next one.
template <class T, int A> void multiply(Product<T, A> p) {
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
