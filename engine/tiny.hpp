// Numbers so small that they have fewer digits than others ("subnormal", below 1e-38 in single
// precision) take processors a hundred times as long. Training leaves many: the moments of weights
// that a penalty has driven to nothing. They change no result that anybody could see.
#pragma once

#include <cstdint>

#if defined(__SSE2__)
#include <immintrin.h>
#endif

namespace mvenet {

// While one of these lives such numbers are zero, in all that its thread computes.
class TinyIsZero {
public:
    TinyIsZero() : before_(mode()) { set(before_ | flush); }
    ~TinyIsZero() { set(before_); }
    TinyIsZero(const TinyIsZero&) = delete;
    TinyIsZero& operator=(const TinyIsZero&) = delete;

private:
#if defined(__SSE2__)
    using Mode = unsigned;
    static constexpr Mode flush = 0x8040;  // as results, and as what is read
    static Mode mode() { return _mm_getcsr(); }
    static void set(Mode mode) { _mm_setcsr(mode); }
#elif defined(__aarch64__)
    using Mode = std::uint64_t;
    static constexpr Mode flush = Mode(1) << 24;
    static Mode mode() {
        Mode now;
        __asm__ __volatile__("mrs %0, fpcr" : "=r"(now));
        return now;
    }
    static void set(Mode mode) { __asm__ __volatile__("msr fpcr, %0" : : "r"(mode)); }
#else
    using Mode = unsigned;
    static constexpr Mode flush = 0;
    static Mode mode() { return 0; }
    static void set(Mode) {}
#endif
    const Mode before_;
};

}  // namespace mvenet
