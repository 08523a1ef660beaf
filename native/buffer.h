// An array aligned to a cache line; large arrays can ask for huge pages.
#pragma once

#include <cstddef>
#include <cstdlib>
#include <limits>
#include <new>

#if defined(_MSC_VER)
#include <malloc.h>
#elif defined(__linux__)
#include <sys/mman.h>
#endif

namespace slim {

template <class T>
class Buffer {
public:
    Buffer() = default;
    // `huge` asks for huge pages, if the system has them: touching one is faster than touching many small pages.
    explicit Buffer(std::ptrdiff_t n, bool zero = false, bool huge = false) {
        if (n == 0) return;
        constexpr std::size_t page = 2 << 20;
        const std::size_t line = huge && static_cast<std::size_t>(n) >= 2 * page / sizeof(T) ? page : 64;
        const std::size_t count = static_cast<std::size_t>(n);
        if (count > (std::numeric_limits<std::size_t>::max() - 2 * line) / sizeof(T)) throw std::bad_alloc();
        const std::size_t bytes = (count * sizeof(T) + line) / line * line;
#if defined(_MSC_VER)
        data_ = static_cast<T*>(_aligned_malloc(bytes, line));
#else
        data_ = static_cast<T*>(std::aligned_alloc(line, bytes));
#endif
        if (!data_) throw std::bad_alloc();
#if defined(__linux__) && defined(MADV_HUGEPAGE)
        if (line == page) madvise(data_, bytes, MADV_HUGEPAGE);  // only advice: if it fails, pages are small
#endif
        if (zero)
            for (std::ptrdiff_t i = 0; i < n; ++i) data_[i] = T(0);
    }
    Buffer(Buffer&& other) noexcept : data_(other.data_) { other.data_ = nullptr; }
    Buffer& operator=(Buffer&& other) noexcept {
        T* mine = data_;
        data_ = other.data_;
        other.data_ = mine;
        return *this;
    }
    Buffer(const Buffer&) = delete;
    Buffer& operator=(const Buffer&) = delete;
    ~Buffer() {
#if defined(_MSC_VER)
        _aligned_free(data_);
#else
        std::free(data_);
#endif
    }
    T* get() const { return data_; }
    T& operator[](std::ptrdiff_t i) const { return data_[i]; }

private:
    T* data_ = nullptr;
};

}  // namespace slim
