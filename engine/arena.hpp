// Zeroed memory that starts at a cache line and is given back all at once.
#pragma once

#include <cstddef>
#include <cstring>
#include <new>

namespace mvenet::MVENET_ISA {

class Arena {
public:
    Arena() = default;
    Arena(const Arena&) = delete;
    Arena& operator=(const Arena&) = delete;
    ~Arena() {
        while (last_) {
            void* previous = *static_cast<void**>(last_);
            ::operator delete(last_, std::align_val_t{line});
            last_ = previous;
        }
    }

    void* take(std::size_t bytes) {
        // a header that links to the previous piece, the bytes, and room for one vector past the
        // end
        const std::size_t whole = line + (bytes + 2 * line - 1) / line * line;
        void* piece = ::operator new(whole, std::align_val_t{line});
        std::memset(piece, 0, whole);
        *static_cast<void**>(piece) = last_;
        last_ = piece;
        return static_cast<char*>(piece) + line;
    }
    template <class T> T* array(std::ptrdiff_t n) {
        return static_cast<T*>(take(sizeof(T) * std::size_t(n)));
    }

private:
    static constexpr std::size_t line = 64;
    void* last_ = nullptr;
};

}  // namespace mvenet::MVENET_ISA
