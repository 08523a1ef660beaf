// svmlight and LIBSVM text: `label index:value index:value …`, line by line.
#pragma once

#include <cstddef>
#include <cstdint>

namespace slim {

using Index = std::int64_t;

// Where the numbers go: `rows` labels, rows + 1 starts, `entries` indices (from 0) and values.
struct SvmlightRoom {
    double* labels;
    Index* starts;
    std::int32_t* indices;
    double* values;
    Index rows, entries;
};

// What was read before the end, or before the first line that is not svmlight text.
struct SvmlightFound {
    Index rows, entries;
    Index width;  // one more than the largest index, from 0
    bool good;    // whether all lines are svmlight text
};

// Reads whole lines, the last of which ends in a line feed. A line has a number, then pairs of an index and a number
// after spaces or tabs; indices increase, from `first` to less than `first` + `widest`. Numbers are decimal, or nan, inf
// or infinity, and become the nearest double. Comments (from # to the end of the line), fields qid:… and lines without
// fields are left out. The room must be enough for a row per line feed and an entry per colon.
SvmlightFound read_svmlight(const char* text, std::size_t size, Index first, Index widest, const SvmlightRoom& room);

}  // namespace slim
