// One vector of numbers, as wide as the instruction set's registers, and what we do with it.
//
// GCC's and Clang's vector types let us write `a * b + c` for a whole register; the compiler flags
// of each kernel_*.cpp decide which instructions that becomes. Every name lives in a namespace of
// its instruction set (MVENET_ISA), so that the same code compiled for two sets never mixes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>

#if defined(__x86_64__)
#include <immintrin.h>
#endif

#define MVENET_INLINE inline __attribute__((always_inline))

namespace mvenet::MVENET_ISA {

constexpr int vector_bytes = MVENET_VECTOR_BYTES;

template <class T> struct Number;

template <> struct Number<float> {
    using Int = std::int32_t;
    static constexpr int mantissa_bits = 23;
    static constexpr float exp_low = -87.0f, exp_high = 88.0f;
    static constexpr float round_magic = 12582912.0f;  // 1.5 * 2^23: adding it rounds to an integer
    static constexpr float ln2_high = 0.693359375f, ln2_low = -2.12194440e-4f;
    static constexpr int log_terms = 5;
    // minimax for exp(r), relative error 2e-8; the first is exactly 1, so exp(0) is too
    static constexpr float exp_polynomial[] = {1.0f,      1.0f,         0.49999994f,  0.16666432f,
                                               0.041668f, 0.008374171f, 0.0013843635f};
    static constexpr Int sqrt_half_bits = 0x3f3504f3, one_bits = 0x3f800000;
};

template <> struct Number<double> {
    using Int = std::int64_t;
    static constexpr int mantissa_bits = 52;
    static constexpr double exp_low = -708.0, exp_high = 709.0;
    static constexpr double round_magic = 6755399441055744.0;  // 1.5 * 2^52
    static constexpr double ln2_high = 6.93145751953125e-1, ln2_low = 1.42860682030941723212e-6;
    static constexpr int log_terms = 12;
    static constexpr double exp_polynomial[] = {1.0,
                                                1.0,
                                                1.0 / 2,
                                                1.0 / 6,
                                                1.0 / 24,
                                                1.0 / 120,
                                                1.0 / 720,
                                                1.0 / 5040,
                                                1.0 / 40320,
                                                1.0 / 362880,
                                                1.0 / 3628800,
                                                1.0 / 39916800,
                                                1.0 / 479001600,
                                                1.0 / 6227020800};
    static constexpr Int sqrt_half_bits = 0x3fe6a09e667f3bcd, one_bits = 0x3ff0000000000000;
};

template <class T> struct VectorOf {
    typedef T Real __attribute__((vector_size(vector_bytes)));
    typedef typename Number<T>::Int Int __attribute__((vector_size(vector_bytes)));
};
template <class T> using Vec = typename VectorOf<T>::Real;
template <class T> using IntVec = typename VectorOf<T>::Int;
template <class T> constexpr int lanes = vector_bytes / int(sizeof(T));

template <class T, class N> constexpr N padded(N n) {
    return (n + lanes<T> - 1) / lanes<T> * lanes<T>;
}

// Half a vector, for the end of a row: 40 numbers are two vectors and a half. Only of the longest
// vectors, of which a half is a register as well and spares work; of others it is the whole.
constexpr bool has_halves = vector_bytes == 64;
template <class T> struct HalfOf {
    typedef T Real __attribute__((vector_size(has_halves ? vector_bytes / 2 : vector_bytes)));
};
template <class T> using HalfVec = typename HalfOf<T>::Real;
template <class T> constexpr int half_lanes = int(sizeof(HalfVec<T>) / sizeof(T));

template <class T> constexpr int half_padded(int n) {
    return (n + half_lanes<T> - 1) / half_lanes<T> * half_lanes<T>;
}

template <class T> MVENET_INLINE Vec<T> load(const T* p) {
    Vec<T> v;
    __builtin_memcpy(&v, p, sizeof v);
    return v;
}
template <class T> MVENET_INLINE void store(T* p, Vec<T> v) {
    __builtin_memcpy(p, &v, sizeof v);
}
template <class T> MVENET_INLINE HalfVec<T> load_half(const T* p) {
    HalfVec<T> v;
    __builtin_memcpy(&v, p, sizeof v);
    return v;
}
template <class T> MVENET_INLINE void store_half(T* p, HalfVec<T> v) {
    __builtin_memcpy(p, &v, sizeof v);
}
// Half a vector, and zeros behind it.
template <class T> MVENET_INLINE Vec<T> load_first_half(const T* p) {
    Vec<T> v{};
    __builtin_memcpy(&v, p, sizeof(HalfVec<T>));
    return v;
}
template <class T> MVENET_INLINE HalfVec<T> half(Vec<T> v, bool second) {
    HalfVec<T> h[2];
    __builtin_memcpy(h, &v, sizeof v);
    return h[second];
}
// Bring a line into the second-level cache. The empty statement is for the compiler: it takes a
// function that does nothing but this for one without effect, and leaves out its calls.
MVENET_INLINE void prefetch(const void* p) {
    __builtin_prefetch(p, 0, 2);
    __asm__ volatile("");
}

template <class T> MVENET_INLINE Vec<T> splat(T x) {
    return x - Vec<T>{};
}

// The smaller (larger) of two, and b if either is NaN. Compilers make two instructions of the
// comparison where x86 has one that does just this.
template <class T> MVENET_INLINE Vec<T> smaller(Vec<T> a, Vec<T> b) {
    return a < b ? a : b;
}
template <class T> MVENET_INLINE Vec<T> larger(Vec<T> a, Vec<T> b) {
    return a > b ? a : b;
}
#if defined(__x86_64__) && (MVENET_VECTOR_BYTES < 64 || defined(__AVX512F__))
#if MVENET_VECTOR_BYTES == 64
#define MVENET_INTRINSIC(name, type) _mm512_##name##_##type
#elif MVENET_VECTOR_BYTES == 32
#define MVENET_INTRINSIC(name, type) _mm256_##name##_##type
#else
#define MVENET_INTRINSIC(name, type) _mm_##name##_##type
#endif
template <> MVENET_INLINE Vec<float> smaller<float>(Vec<float> a, Vec<float> b) {
    return MVENET_INTRINSIC(min, ps)(a, b);
}
template <> MVENET_INLINE Vec<float> larger<float>(Vec<float> a, Vec<float> b) {
    return MVENET_INTRINSIC(max, ps)(a, b);
}
#endif

// Limits that a NaN passes through.
template <class T> MVENET_INLINE Vec<T> at_most(Vec<T> v, T limit) {
    return smaller<T>(splat<T>(limit), v);
}
template <class T> MVENET_INLINE Vec<T> at_least(Vec<T> v, T limit) {
    return larger<T>(splat<T>(limit), v);
}

template <class T> MVENET_INLINE Vec<T> square_root(Vec<T> v) {
    Vec<T> r;
    for (int i = 0; i < lanes<T>; ++i)
        r[i] = sizeof(T) == 4 ? T(__builtin_sqrtf(float(v[i]))) : T(__builtin_sqrt(double(v[i])));
    return r;
}

template <class T> MVENET_INLINE T sum(Vec<T> v) {
    T s = 0;
    for (int i = 0; i < lanes<T>; ++i) s += v[i];
    return s;
}

// what(0), what(1), ... written out.
template <int Count, class What> MVENET_INLINE void each(What what) {
#pragma GCC unroll 16
    for (int j = 0; j < Count; ++j) what(j);
}

// exp(x) = 2^k exp(r), |r| <= ln(2)/2, and a polynomial for exp(r): error below two units in the
// last place. Results saturate at both ends instead of becoming 0 or infinity.
//
// Of several vectors, step by step: every step waits for the one before it, and what the next
// vector needs is further ahead than a processor looks.
template <class T, int Count, bool NeverPositive = false>
MVENET_INLINE void exponentials(Vec<T>* x) {
    using N = Number<T>;
    constexpr int degree = int(sizeof N::exp_polynomial / sizeof(T)) - 1;
    Vec<T> shifted[Count], p[Count];
    each<Count>([&](int j) {
        x[j] = at_least<T>(x[j], N::exp_low);
        if (!NeverPositive) x[j] = at_most<T>(x[j], N::exp_high);
    });
    each<Count>([&](int j) { shifted[j] = x[j] * T(1.44269504088896340736) + N::round_magic; });
    each<Count>([&](int j) {
        const Vec<T> k = shifted[j] - N::round_magic;
#ifdef __FP_FAST_FMA
        x[j] = x[j] - k * T(0.69314718055994530942);  // the product is not rounded
#else
        x[j] = (x[j] - k * N::ln2_high) - k * N::ln2_low;
#endif
        p[j] = splat<T>(N::exp_polynomial[degree]);
    });
#pragma GCC unroll 16
    for (int i = degree - 1; i >= 0; --i)
        each<Count>([&](int j) { p[j] = p[j] * x[j] + N::exp_polynomial[i]; });
    // the low bits of `shifted` hold k: added to the exponent they multiply by 2^k
    each<Count>([&](int j) {
        x[j] = (Vec<T>)((IntVec<T>)p[j] + ((IntVec<T>)shifted[j] << N::mantissa_bits));
    });
}
template <class T, bool NeverPositive = false> MVENET_INLINE Vec<T> exponential(Vec<T> x) {
    exponentials<T, 1, NeverPositive>(&x);
    return x;
}

// log(x) for positive, normal x: x = 2^k (1 + f), log(1 + f) = 2 atanh(f / (2 + f)).
template <class T> MVENET_INLINE Vec<T> logarithm(Vec<T> x) {
    using N = Number<T>;
    const auto bits = (IntVec<T>)x - N::sqrt_half_bits;
    const auto k = bits >> N::mantissa_bits;
    const auto mantissa = (IntVec<T>)x - (k << N::mantissa_bits);
    const Vec<T> f = (Vec<T>)mantissa - T(1);
    const Vec<T> s = f / (f + T(2));
    const Vec<T> z = s * s;
    Vec<T> p = splat<T>(T(1.0 / (2 * N::log_terms + 1)));
#pragma GCC unroll 16
    for (int i = N::log_terms - 1; i >= 0; --i) p = p * z + T(1.0 / (2 * i + 1));
    const Vec<T> exponent = __builtin_convertvector(k, Vec<T>);
    return exponent * N::ln2_high + (exponent * N::ln2_low + T(2) * s * p);
}

template <int... I, class V> MVENET_INLINE V shuffled(V a, V b) {
    return __builtin_shufflevector(a, b, I...);
}

// Exchange blocks of S lanes between a and b: a = [a0 b0 a2 b2 ...], b = [a1 b1 a3 b3 ...].
template <int S, class V, int... I>
MVENET_INLINE void exchange(V& a, V& b, std::integer_sequence<int, I...>) {
    constexpr int n = sizeof...(I);
    const V low = shuffled<((I & S) ? n + I - S : I)...>(a, b);
    const V high = shuffled<((I & S) ? n + I : I + S)...>(a, b);
    a = low;
    b = high;
}

// Interleave a and b within each 128 bits (L lanes), which is what one instruction can do.
template <int L, class V, int... I>
MVENET_INLINE void zip(V& a, V& b, std::integer_sequence<int, I...>) {
    constexpr int n = sizeof...(I);
    const V low = shuffled<(I / L * L + I % L / 2 + (I & 1) * n)...>(a, b);
    const V high = shuffled<(I / L * L + L / 2 + I % L / 2 + (I & 1) * n)...>(a, b);
    a = low;
    b = high;
}

template <class T, int Count, int S> MVENET_INLINE void exchange_blocks(Vec<T>* v) {
    if constexpr (S >= 16 / int(sizeof(T))) {
#pragma GCC unroll 16
        for (int i = 0; i < Count; ++i)
            if (!(i & S)) exchange<S>(v[i], v[i + S], std::make_integer_sequence<int, lanes<T>>{});
        exchange_blocks<T, Count, S / 2>(v);
    }
}

// Transpose, in registers, each square of `Count` lanes that stands in `Count` vectors: one square
// as large as a vector, or two side by side of half that size.
template <class T, int Count = lanes<T>> MVENET_INLINE void transpose(Vec<T>* v) {
    constexpr int group = 16 / int(sizeof(T));
    constexpr auto index = std::make_integer_sequence<int, lanes<T>>{};
    exchange_blocks<T, Count, Count / 2>(v);
#pragma GCC unroll 16
    for (int g = 0; g < Count; g += group) {
        if constexpr (group == 2) {
            zip<2>(v[g], v[g + 1], index);
        } else {
            zip<4>(v[g], v[g + 2], index);  // 0 and 2, 1 and 3, then neighbours
            zip<4>(v[g + 1], v[g + 3], index);
            zip<4>(v[g], v[g + 1], index);
            zip<4>(v[g + 2], v[g + 3], index);
        }
    }
}

template <class T, int S> MVENET_INLINE void add_blocks(Vec<T>* v) {
    if constexpr (S >= 16 / int(sizeof(T))) {
#pragma GCC unroll 16
        for (int i = 0; i < S; ++i) {
            exchange<S>(v[i], v[i + S], std::make_integer_sequence<int, lanes<T>>{});
            v[i] += v[i + S];
        }
        add_blocks<T, S / 2>(v);
    }
}

// Lane j is the sum of v[j]'s lanes: transposed and added up in one, which takes a third of the
// exchanges. With half as many vectors as lanes they are two sums, half a vector apart.
template <class T, int Count> MVENET_INLINE Vec<T> lane_sums(Vec<T>* v) {
    constexpr auto index = std::make_integer_sequence<int, lanes<T>>{};
    add_blocks<T, Count / 2>(v);
    if constexpr (sizeof(T) == 4) {
        zip<4>(v[0], v[2], index);
        zip<4>(v[1], v[3], index);
        v[0] += v[2];
        v[1] += v[3];
        zip<4>(v[0], v[1], index);
    } else {
        zip<2>(v[0], v[1], index);
    }
    return v[0] + v[1];
}

}  // namespace mvenet::MVENET_ISA
