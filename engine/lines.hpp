// Lines of text: counted, and those of two texts put side by side, what a table holds and what is
// added to it.
#pragma once

#include <algorithm>
#include <cstring>
#include <stdexcept>
#include <string_view>

namespace mvenet {

inline std::size_t count_lines(std::string_view text) {
    return std::count(text.begin(), text.end(), '\n') + (!text.empty() && text.back() != '\n');
}

// A separator takes the place of each line end on the left, where the last one may be missing.
inline std::size_t size_side_by_side(std::string_view left, std::string_view right) {
    return left.size() + right.size() + (!left.empty() && left.back() != '\n');
}

inline void put_side_by_side(std::string_view left, std::string_view right, char separator,
                             char* out) {
    const auto take = [&out](std::string_view& text, char last) {
        const std::size_t length = std::min(text.find('\n'), text.size());
        std::memcpy(out, text.data(), length);
        out += length;
        *out++ = last;
        text.remove_prefix(std::min(length + 1, text.size()));
    };
    while (!left.empty() && right.find('\n') != right.npos) {
        take(left, separator);
        take(right, '\n');
    }
    if (!left.empty() || !right.empty())
        throw std::invalid_argument("as many lines are needed on either side");
}

}  // namespace mvenet
