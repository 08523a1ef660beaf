#include "svmlight.h"

#include <algorithm>
#include <cfloat>
#include <charconv>
#include <cstring>
#include <limits>
#include <string>

#ifndef __cpp_lib_to_chars  // older standard libraries have no from_chars for double
#include <clocale>
#include <cstdlib>
#if defined(__APPLE__)
#include <xlocale.h>
#endif
#endif

namespace slim {
namespace {

constexpr bool is_digit(char c) { return c >= '0' && c <= '9'; }
constexpr bool is_space(char c) { return c == ' ' || (c >= '\t' && c <= '\r'); }

// The double that is nearest to a decimal number without a sign, in any locale. `magnitude` is positive if the number
// is large, which tells an overflow from an underflow.
double nearest(const char* begin, const char* end, Index magnitude) {
#ifdef __cpp_lib_to_chars
    double value = 0;
    if (std::from_chars(begin, end, value).ec != std::errc::result_out_of_range) return value;
    return magnitude > 0 ? std::numeric_limits<double>::infinity() : 0.0;
#else
    static const locale_t plain = newlocale(LC_ALL_MASK, "C", nullptr);
    (void)magnitude;
    return strtod_l(std::string(begin, end).c_str(), nullptr, plain);
#endif
}

// Whole numbers up to 2^53 and 10^0 to 10^22 are doubles, so a product or quotient of them is rounded once.
constexpr std::uint64_t kLargestWhole = std::uint64_t(1) << 53;
constexpr Index kLargestPower = 22;
constexpr double kPowers[] = {1e0,  1e1,  1e2,  1e3,  1e4,  1e5,  1e6,  1e7,  1e8,  1e9,  1e10, 1e11,
                              1e12, 1e13, 1e14, 1e15, 1e16, 1e17, 1e18, 1e19, 1e20, 1e21, 1e22};
constexpr Index kMostDigits = 19;              // that fit into 64 bits
constexpr Index kFarExponent = Index(1) << 40;  // more than the number of digits of any number

// A decimal number as it is read: its digits as a whole number, times 10^-after.
struct Digits {
    std::uint64_t whole = 0;
    Index significant = 0;  // digits from the first that is not zero; `whole` holds them if they are few
    Index count = 0, after = 0;

    void add(char c) {
        if (significant > 0 || c != '0') ++significant;
        if (significant <= kMostDigits) whole = 10 * whole + static_cast<std::uint64_t>(c - '0');
        ++count;
    }
};

// The fields of a line. What is read must have the right form; what follows it is left.
class Line {
public:
    Line(const char* at, const char* end) : at_(at), end_(end) {}

    // Moves to the next field, past queries; false at the end of the line.
    bool next_field() {
        for (;; skip_field()) {
            for (; at_ != end_ && is_space(*at_); ++at_) {
                if (*at_ == '\r') returns_ = true;
                else if (*at_ != ' ' && *at_ != '\t') odd_ = true;
            }
            if (at_ == end_) return false;
            if (*at_ != 'q' || end_ - at_ < 5 || std::memcmp(at_, "qid:", 4) != 0 || is_space(at_[4])) return true;
        }
    }

    // Whether only spaces and tabs were before this field, and whether the spaces at the end may be there.
    bool may_start() const { return !returns_ && !odd_; }
    bool may_end() const { return !odd_; }

    bool number(double& value) {
        const bool negative = at_ != end_ && *at_ == '-';
        if (negative || (at_ != end_ && *at_ == '+')) ++at_;
        if (!decimal(value) && !word(value)) return false;
        if (negative) value = -value;
        return at_ == end_ || is_space(*at_);
    }

    // Digits and a colon. An index above `most` becomes `most` + 1.
    bool index(Index most, Index& value) {
        const char* begin = at_;
        value = 0;
        for (; at_ != end_ && is_digit(*at_); ++at_) value = std::min(10 * value + (*at_ - '0'), most + 1);
        return at_ != begin && at_ != end_ && *at_++ == ':';
    }

private:
    void skip_field() {
        while (at_ != end_ && !is_space(*at_)) ++at_;
    }

    bool decimal(double& value) {
        const char* begin = at_;
        Digits digits;
        for (; at_ != end_ && is_digit(*at_); ++at_) digits.add(*at_);
        if (at_ != end_ && *at_ == '.') {
            digits.after = -digits.count;
            for (++at_; at_ != end_ && is_digit(*at_); ++at_) digits.add(*at_);
            digits.after += digits.count;
        }
        Index power = 0;
        if (digits.count == 0 || !exponent(power)) {
            at_ = begin;
            return false;
        }
        const Index scale = power - digits.after;
        if (FLT_EVAL_METHOD == 0 && digits.significant <= kMostDigits && digits.whole <= kLargestWhole &&
            scale >= -kLargestPower && scale <= kLargestPower) {
            const double whole = static_cast<double>(digits.whole);
            value = scale < 0 ? whole / kPowers[-scale] : whole * kPowers[scale];
        } else if (digits.significant == 0) {
            value = 0.0;
        } else {
            value = nearest(begin, at_, digits.significant + scale);
        }
        return true;
    }

    // e and a whole number, if it is there; false if there is an e alone.
    bool exponent(Index& power) {
        if (at_ == end_ || (*at_ != 'e' && *at_ != 'E')) return true;
        ++at_;
        const bool negative = at_ != end_ && *at_ == '-';
        if (negative || (at_ != end_ && *at_ == '+')) ++at_;
        const char* begin = at_;
        for (; at_ != end_ && is_digit(*at_); ++at_) power = std::min(10 * power + (*at_ - '0'), kFarExponent);
        if (negative) power = -power;
        return at_ != begin;
    }

    bool word(double& value) {
        value = std::numeric_limits<double>::quiet_NaN();
        if (takes("nan")) return true;
        value = std::numeric_limits<double>::infinity();
        return takes("infinity") || takes("inf");
    }

    // Moves past a word in small letters, whatever the case of the text.
    bool takes(const char* expected) {
        const char* at = at_;
        for (; *expected; ++expected, ++at)
            if (at == end_ || (*at | 0x20) != *expected) return false;
        at_ = at;
        return true;
    }

    const char* at_;
    const char* end_;
    bool returns_ = false, odd_ = false;  // whether spaces had a carriage return, a form feed or a vertical tab
};

// Appends a line; false if it is not svmlight text.
bool add(Line line, Index first, Index widest, const SvmlightRoom& room, SvmlightFound& found) {
    if (!line.next_field()) return true;
    if (found.rows == room.rows || !line.may_start() || !line.number(room.labels[found.rows])) return false;
    Index last = -1;
    while (line.next_field()) {
        Index index = 0;
        if (found.entries == room.entries || !line.may_start() || !line.index(first + widest, index)) return false;
        index -= first;
        if (index <= last || index >= widest || !line.number(room.values[found.entries])) return false;
        room.indices[found.entries++] = static_cast<std::int32_t>(last = index);
    }
    room.starts[++found.rows] = found.entries;
    found.width = std::max(found.width, last + 1);
    return line.may_end();
}

}  // namespace

SvmlightFound read_svmlight(const char* text, std::size_t size, Index first, Index widest, const SvmlightRoom& room) {
    SvmlightFound found{0, 0, 0, true};
    const char* const end = text + size;
    const bool has_comments = std::memchr(text, '#', size) != nullptr;
    room.starts[0] = 0;
    while (found.good && text != end) {
        const auto find = [&](char c, const char* to) {
            const void* at = std::memchr(text, c, static_cast<std::size_t>(to - text));
            return at ? static_cast<const char*>(at) : to;
        };
        const char* const line_end = find('\n', end);
        found.good = add({text, has_comments ? find('#', line_end) : line_end}, first, widest, room, found);
        text = line_end == end ? end : line_end + 1;
    }
    return found;
}

}  // namespace slim
