#include "step.h"

#include <algorithm>
#include <cmath>

#include "team.h"

namespace slim {
namespace {

constexpr Index kEvaluated = 1024;  // rows at a time without moves
constexpr Index kBent = 512;        // rows at a time for the curvature
constexpr Index kBlock = 16;        // rows and columns of a block that is transposed

Index up_to(Index n, Index step) { return (n + step - 1) / step * step; }

// Where the columns of a matrix [rows][columns] in panels are.
struct Panels {
    Index rows, vectors, lanes, panel;

    Index size() const { return rows * vectors * lanes; }
    Index width(Index column) const { return std::min(panel, vectors - column / (panel * lanes) * panel) * lanes; }
    Index at(Index row, Index column) const {
        const Index wide = panel * lanes, which = column / wide;
        return which * wide * rows + row * width(column) + column - which * wide;
    }
};

}  // namespace

Steps::Steps(const StepShape& shape, const StepScales& scales) : kernels_(*best_instruction_set().step) {
    const Index W = kernels_.lanes, R = kernels_.tile, m = shape.m, p = shape.p, q = shape.q;
    step_.shape = shape;
    step_.vectors = (m + 1 + W - 1) / W;
    step_.p_vectors = (p + W - 1) / W;
    const Index slots = step_.vectors * W, p_slots = step_.p_vectors * W;
    const auto copy = [this](const float* from, Index n) {
        float* to = numbers(n);
        if (from) std::copy_n(from, n, to);
        return to;
    };
    step_.scales = scales;
    step_.scales.ridge = copy(scales.ridge, q);
    step_.scales.tilt = copy(scales.tilt, q);
    step_.z = numbers(p * slots);
    step_.z_mean = numbers(p * slots);
    step_.z_square = numbers(p * slots);
    step_.coef = numbers(slots * q);
    step_.coef_mean = numbers((m + 1) * up_to(q, R));
    step_.inverse = numbers((m + 1) * slots);
    step_.gain = numbers(slots);
    step_.bias = numbers(slots);
    step_.slope = numbers(slots);
    const float width = static_cast<float>(-1.4426950408889634 * shape.gamma);
    for (Index u = 0; u < slots; ++u) {
        step_.gain[u] = u < m ? width : 0.0f;
        step_.slope[u] = u < m ? static_cast<float>(-shape.gamma) : 0.0f;
        step_.bias[u] = u <= m ? 0.0f : kNever;
    }
    if (shape.map == StepMap::none) return;
    const Index size = shape.map == StepMap::diagonal ? shape.d : shape.d * p_slots;
    step_.z_rows = numbers(slots * p_slots);
    step_.a = numbers(size);
    step_.a_mean = numbers(size);
    step_.a_square = numbers(size);
    step_.scales.map_unit = copy(scales.map_unit, shape.d);
    step_.scales.pull_weights = copy(scales.pull_weights, shape.d);
    if (!scales.pull_start) return;
    step_.pull_start = numbers(size);
    const Panels map{shape.d, step_.p_vectors, W, kernels_.panel};
    for (Index j = 0; j < shape.d; ++j)
        for (Index k = 0; k < (shape.map == StepMap::diagonal ? 1 : p); ++k)
            step_.pull_start[shape.map == StepMap::diagonal ? j : map.at(j, k)] = scales.pull_start[k * shape.d + j];
}

float* Steps::numbers(Index n) {
    held_.emplace_back(n + 16, true, true);
    return held_.back().get();
}

void Steps::write_vectors(const float* z, const float* mean, const float* square) {
    const Index m = step_.shape.m, p = step_.shape.p;
    const Panels panels{p, step_.vectors, kernels_.lanes, kernels_.panel};
    const Panels rows{step_.vectors * kernels_.lanes, step_.p_vectors, kernels_.lanes, kernels_.panel};
    for (Index u = 0; u < m; ++u) {
        const Index first = panels.at(0, u), stride = panels.width(u);
        for (Index k = 0; k < p; ++k) {
            const Index at = first + k * stride, from = u * p + k;
            step_.z[at] = z[from];
            step_.z_mean[at] = mean[from];
            step_.z_square[at] = square[from];
            if (step_.z_rows) step_.z_rows[rows.at(u, k)] = z[from];
        }
    }
    for (Index panel = 0; panel * kernels_.panel < step_.vectors; ++panel) kernels_.measure(step_, panel);
}

void Steps::read_vectors(float* z, float* mean, float* square) const {
    const Index m = step_.shape.m, p = step_.shape.p;
    const Panels panels{p, step_.vectors, kernels_.lanes, kernels_.panel};
    for (Index u = 0; u < m; ++u) {
        const Index first = panels.at(0, u), stride = panels.width(u);
        for (Index k = 0; k < p; ++k) {
            const Index at = first + k * stride;
            z[u * p + k] = step_.z[at];
            mean[u * p + k] = step_.z_mean[at];
            square[u * p + k] = step_.z_square[at];
        }
    }
}

void Steps::write_map(const float* a, const float* mean, const float* square) {
    const StepShape& shape = step_.shape;
    const Panels panels{shape.d, step_.p_vectors, kernels_.lanes, kernels_.panel};
    const bool diagonal = shape.map == StepMap::diagonal;
    for (Index j = 0; j < shape.d; ++j)
        for (Index k = 0; k < (diagonal ? 1 : shape.p); ++k) {
            const Index at = diagonal ? j : panels.at(j, k), from = k * shape.d + j;
            step_.a[at] = a[from];
            step_.a_mean[at] = mean[from];
            step_.a_square[at] = square[from];
        }
}

void Steps::read_map(float* a, float* mean, float* square) const {
    const StepShape& shape = step_.shape;
    const Panels panels{shape.d, step_.p_vectors, kernels_.lanes, kernels_.panel};
    const bool diagonal = shape.map == StepMap::diagonal;
    for (Index j = 0; j < shape.d; ++j)
        for (Index k = 0; k < (diagonal ? 1 : shape.p); ++k) {
            const Index at = diagonal ? j : panels.at(j, k), to = k * shape.d + j;
            a[to] = step_.a[at];
            mean[to] = step_.a_mean[at];
            square[to] = step_.a_square[at];
        }
}

void Steps::write_coefficients(const float* w, const float* mean) {
    const Index n = step_.shape.m + 1, q = step_.shape.q, W = kernels_.lanes, R = kernels_.tile;
    for (Index u = 0; u < n; ++u)
        for (Index c = 0; c < q; ++c) {
            step_.coef[(u / W * q + c) * W + u % W] = w[u * q + c];
            step_.coef_mean[c / R * R * n + u * R + c % R] = mean[u * q + c];
        }
}

void Steps::read_coefficients(float* w, float* mean) const {
    const Index n = step_.shape.m + 1, q = step_.shape.q, W = kernels_.lanes, R = kernels_.tile;
    for (Index u = 0; u < n; ++u)
        for (Index c = 0; c < q; ++c) {
            w[u * q + c] = step_.coef[(u / W * q + c) * W + u % W];
            mean[u * q + c] = step_.coef_mean[c / R * R * n + u * R + c % R];
        }
}

void Steps::write_inverse(const float* inverse) {
    const Index n = step_.shape.m + 1;
    const Panels panels{n, step_.vectors, kernels_.lanes, kernels_.panel};
    for (Index u = 0; u < n; ++u) {  // the inverse is symmetric: its rows are its columns
        const Index first = panels.at(0, u), stride = panels.width(u);
        for (Index v = 0; v < n; ++v) step_.inverse[first + v * stride] = inverse[u * n + v];
    }
}

bool Steps::is_finite() const {
    const Index slots = step_.vectors * kernels_.lanes;
    const StepShape& shape = step_.shape;
    const Index size = shape.map == StepMap::none       ? 0
                       : shape.map == StepMap::diagonal ? shape.d
                                                        : shape.d * step_.p_vectors * kernels_.lanes;
    double sum = 0;  // biases are made of the norms of vectors
    for (Index u = 0; u < shape.m; ++u) sum += static_cast<double>(step_.bias[u]);
    for (Index i = 0; i < slots * shape.q; ++i) sum += static_cast<double>(step_.coef[i]);
    for (Index i = 0; i < size; ++i) sum += static_cast<double>(step_.a[i]);
    return std::isfinite(sum);
}

void Steps::make_room(Index batch, Index own, int threads) {
    const StepShape& shape = step_.shape;
    if (batch != batch_ || own != own_) {
        const Index R = kernels_.tile, W = kernels_.lanes, p_up = up_to(shape.p, R);
        step_.rows = batch;
        step_.own = own;
        step_.rows_up = up_to(batch, R);
        step_.all = step_.rows_up + up_to(own, R);
        blocks_ = (batch + kStepRows - 1) / kStepRows + (own + kStepRows - 1) / kStepRows;
        working_.clear();
        const auto make = [this](Index n) {
            working_.emplace_back(n + 16, true, true);
            return working_.back().get();
        };
        step_.s = make(step_.all * step_.vectors * W);
        step_.p_tiles = make(step_.all * p_up);
        step_.by_coef = make(blocks_ * step_.vectors * W * shape.q);
        if (shape.map == StepMap::projection) {
            step_.x_tiles = make(step_.rows_up * up_to(shape.d, R));
            step_.by_p = make(step_.rows_up * step_.p_vectors * W);
        }
        if (shape.map == StepMap::diagonal) step_.by_scale = make(blocks_ * shape.d);
        losses_ = Buffer<double>(blocks_, true);
        step_.loss = losses_.get();
        batch_ = batch;
        own_ = own;
    }
    room_ = kernels_.room(step_);
    if (threads > threads_) {
        rooms_ = Buffer<float>(threads * room_, true);
        threads_ = threads;
    }
}

double Steps::run(const StepRows& rows, const Index* order, Index batch, Index count, Index own, Index done,
                  const double* calm, const double* warm, int threads) {
    make_room(batch, own, threads);
    step_.moves = true;
    step_.bends = false;
    const StepShape& shape = step_.shape;
    const Index batch_blocks = (batch + kStepRows - 1) / kStepRows;
    const Index panels = (step_.vectors + kernels_.panel - 1) / kernels_.panel;
    const Index tiles = shape.map == StepMap::projection ? (shape.d + kernels_.tile - 1) / kernels_.tile : 0;
    double value = 0;
    step_.given = &rows;
    Team::run(threads, [&](Team& team) {
        const Team::Task first = [&](int who, Index i) {
            const bool is_own = i >= batch_blocks;
            const Index begin = is_own ? step_.rows_up + (i - batch_blocks) * kStepRows : i * kStepRows;
            const Index end = std::min(begin + kStepRows, is_own ? step_.rows_up + own : batch);
            kernels_.rows(step_, begin, end, i, kernels_.place(step_, rooms_.get() + who * room_));
        };
        const Team::Task second = [&](int, Index i) {
            if (i < panels) kernels_.vectors(step_, i);
            else if (i < 2 * panels) kernels_.coefficients(step_, i - panels);
            else kernels_.map(step_, i - 2 * panels);
        };
        for (Index k = 0; k < count; ++k) {
            const double n = static_cast<double>(done + k + 1);
            step_.order = order + k * batch;
            step_.first_own = (done + k) * own % shape.m;
            step_.calm = static_cast<float>(calm[k]);
            step_.share = static_cast<float>(calm[k] * warm[k]);
            step_.mean_part = static_cast<float>(1.0 / (1.0 - std::pow(1.0 - static_cast<double>(kMomentum), n)));
            step_.square_part = static_cast<float>(1.0 / (1.0 - std::pow(1.0 - static_cast<double>(kSquares), n)));
            team.each(blocks_, first);
            value += finish_rows();
            team.each(2 * panels + tiles, second);
        }
    });
    return value;
}

double Steps::evaluate(const StepRows& rows, double* gradient, float smooth, int threads) {
    return gradients(rows, gradient, nullptr, nullptr, smooth, threads);
}

double Steps::gradients(const StepRows& rows, double* by_coef, double* by_z, double* by_a, float smooth, int threads) {
    const StepShape& shape = step_.shape;
    const bool projected = shape.map == StepMap::projection;
    const Index map_size = shape.map == StepMap::none ? 0 : projected ? shape.d * shape.p : shape.d;
    const Index panels = by_z ? (step_.vectors + kernels_.panel - 1) / kernels_.panel : 0;
    const Index tiles = by_z && projected ? (shape.d + kernels_.tile - 1) / kernels_.tile : 0;
    Buffer<float> z_sums(by_z ? shape.p * step_.vectors * kernels_.lanes + 16 : 0, true, true);
    Buffer<float> a_sums(tiles > 0 ? shape.d * step_.p_vectors * kernels_.lanes + 16 : 0, true, true);
    std::vector<Index> order(static_cast<std::size_t>(rows.n));
    for (Index i = 0; i < rows.n; ++i) order[static_cast<std::size_t>(i)] = i;
    std::fill_n(by_coef, (shape.m + 1) * shape.q, 0.0);
    if (by_z) std::fill_n(by_z, shape.m * shape.p, 0.0);
    if (by_z) std::fill_n(by_a, map_size, 0.0);
    double value = 0;
    step_.given = &rows;
    step_.shape.smooth = smooth;
    step_.by_z = by_z ? z_sums.get() : nullptr;
    step_.by_a = tiles > 0 ? a_sums.get() : nullptr;
    Team::run(threads, [&](Team& team) {
        const Team::Task first = [&](int who, Index i) {
            const Index begin = i * kStepRows, end = std::min(begin + kStepRows, step_.rows);
            kernels_.rows(step_, begin, end, i, kernels_.place(step_, rooms_.get() + who * room_));
        };
        const Team::Task second = [&](int, Index i) {
            if (i < panels) kernels_.vectors(step_, i);
            else kernels_.map(step_, i - panels);
        };
        for (Index done = 0; done < rows.n; done += kEvaluated) {
            make_room(std::min(kEvaluated, rows.n - done), 0, threads);
            step_.moves = by_z != nullptr;
            step_.bends = false;
            step_.order = order.data() + done;
            team.each(blocks_, first);
            value += add_rows(by_coef);
            if (!by_z) continue;
            team.each(panels + tiles, second);
            add_vectors(by_z);
            add_map(by_a);
        }
    });
    step_.by_z = step_.by_a = nullptr;
    step_.shape.smooth = 0;
    return value;
}

void Steps::curvature(const StepRows& rows, double damping, float* out, int threads) {
    const Index n = step_.shape.m + 1, slots = step_.vectors * kernels_.lanes;
    const Index panels = (step_.vectors + kernels_.panel - 1) / kernels_.panel;
    std::vector<Index> order(static_cast<std::size_t>(rows.n));
    for (Index i = 0; i < rows.n; ++i) order[static_cast<std::size_t>(i)] = i;
    Buffer<float> tiles(std::min(kBent, up_to(rows.n, kernels_.tile)) * up_to(slots, kernels_.tile) + 16, true);
    Buffer<float> sums((n + kernels_.tile) * slots + 16, true, true);
    step_.f_tiles = tiles.get();
    step_.bend = sums.get();
    step_.damping = static_cast<float>(damping);
    step_.given = &rows;
    step_.moves = false;
    step_.bends = true;
    Team::run(threads, [&](Team& team) {
        const Team::Task first = [&](int who, Index i) {
            const Index begin = i * kStepRows, end = std::min(begin + kStepRows, step_.rows);
            kernels_.rows(step_, begin, end, i, kernels_.place(step_, rooms_.get() + who * room_));
        };
        const Team::Task second = [&](int, Index panel) { kernels_.bend(step_, panel); };
        for (Index start = 0; start < rows.n; start += kBent) {
            make_room(std::min(kBent, rows.n - start), 0, threads);
            step_.order = order.data() + start;
            team.each(blocks_, first);
            team.each(panels, second);
        }
    });
    const float part = 2.0f / static_cast<float>(rows.n);
    for (Index i = 0; i < n; i += kBlock)
        for (Index j = i; j < n; j += kBlock)
            for (Index u = i; u < std::min(i + kBlock, n); ++u)
                for (Index v = std::max(u, j); v < std::min(j + kBlock, n); ++v)
                    out[u * n + v] = out[v * n + u] = part * step_.bend[u * slots + v];
}

// The losses of a batch, whose gradient by the coefficients is added.
double Steps::add_rows(double* by_coef) const {
    const Index n = step_.shape.m + 1, q = step_.shape.q, W = kernels_.lanes, size = step_.vectors * q * W;
    const double many = static_cast<double>(step_.rows);
    double value = 0;
    for (Index block = 0; block < blocks_; ++block) {
        const float* sums = step_.by_coef + block * size;
        value += many * step_.loss[block];
        for (Index u = 0; u < n; ++u)
            for (Index c = 0; c < q; ++c)
                by_coef[u * q + c] += many * static_cast<double>(sums[(u / W * q + c) * W + u % W]);
    }
    return value;
}

// Adds the gradient of a batch by the vectors.
void Steps::add_vectors(double* by_z) const {
    const Index m = step_.shape.m, p = step_.shape.p;
    const Panels panels{p, step_.vectors, kernels_.lanes, kernels_.panel};
    const double many = static_cast<double>(step_.rows);
    for (Index u = 0; u < m; ++u) {
        const Index first = panels.at(0, u), stride = panels.width(u);
        for (Index k = 0; k < p; ++k) by_z[u * p + k] += many * static_cast<double>(step_.by_z[first + k * stride]);
    }
}

// Adds the gradient of a batch by the map.
void Steps::add_map(double* by_a) const {
    const StepShape& shape = step_.shape;
    const double many = static_cast<double>(step_.rows);
    if (shape.map == StepMap::diagonal) {
        for (Index block = 0; block < blocks_; ++block)
            for (Index j = 0; j < shape.d; ++j)
                by_a[j] += many * static_cast<double>(step_.by_scale[block * shape.d + j]);
    } else if (shape.map == StepMap::projection) {
        const Panels panels{shape.d, step_.p_vectors, kernels_.lanes, kernels_.panel};
        for (Index j = 0; j < shape.d; ++j)
            for (Index k = 0; k < shape.p; ++k)
                by_a[k * shape.d + j] += many * static_cast<double>(step_.by_a[panels.at(j, k)]);
    }
}

// Between the phases: the objective, the mean gradient by the coefficients, and the pull on the map.
double Steps::finish_rows() {
    const StepShape& shape = step_.shape;
    const Index n = shape.m + 1, q = shape.q, W = kernels_.lanes, R = kernels_.tile, size = step_.vectors * q * W;
    float* sums = step_.by_coef;
    for (Index block = 1; block < blocks_; ++block)
        for (Index i = 0; i < size; ++i) sums[i] += sums[block * size + i];
    double value = pull();
    for (Index block = 0; block < blocks_; ++block) value += step_.loss[block];
    for (Index c = 0; c < q; ++c) {
        const Index b = (shape.m / W * q + c) * W + shape.m % W;
        sums[b] += step_.scales.tilt[c];
        value += static_cast<double>(step_.scales.tilt[c]) * static_cast<double>(step_.coef[b]);
    }
    for (Index c = 0; c < q; ++c) {
        float* mean = step_.coef_mean + c / R * R * n + c % R;
        for (Index u = 0; u < n; ++u) mean[u * R] += kMomentum * (sums[(u / W * q + c) * W + u % W] - mean[u * R]);
    }
    if (shape.map == StepMap::diagonal) move_scales();
    return value;
}

// The penalty on the map, and t of the multiple of its start that is nearest.
double Steps::pull() {
    if (!step_.pull_start) return 0.0;
    const StepShape& shape = step_.shape;
    const bool diagonal = shape.map == StepMap::diagonal;
    const Index wide = kernels_.panel * kernels_.lanes, columns = diagonal ? 1 : step_.p_vectors * kernels_.lanes;
    double toward = 0, size = 0, square = 0;  // Σ v A⁰A, Σ v A⁰², Σ v A²
    for (Index first = 0; first < columns; first += wide) {
        const Index width = std::min(wide, columns - first);
        for (Index j = 0; j < shape.d; ++j) {
            const float *a = step_.a + first * shape.d + j * width, *start = step_.pull_start + first * shape.d + j * width;
            float both = 0, own = 0, moved = 0;
            for (Index k = 0; k < width; ++k) {
                both += a[k] * start[k];
                own += start[k] * start[k];
                moved += a[k] * a[k];
            }
            const double weight = static_cast<double>(step_.scales.pull_weights[j]);
            toward += weight * static_cast<double>(both);
            size += weight * static_cast<double>(own);
            square += weight * static_cast<double>(moved);
        }
    }
    const double t = size > 0 ? toward / size : 1.0;
    step_.pull_t = static_cast<float>(t);
    return static_cast<double>(step_.scales.pull_scale) * std::max(0.0, square - 2.0 * t * toward + t * t * size);
}

// A step of Adam on a diagonal map.
void Steps::move_scales() {
    const StepShape& shape = step_.shape;
    const StepScales& scales = step_.scales;
    for (Index j = 0; j < shape.d; ++j) {
        float gradient = 0;
        for (Index block = 0; block < blocks_; ++block) gradient += step_.by_scale[block * shape.d + j];
        if (step_.pull_start)
            gradient += 2.0f * scales.pull_scale * scales.pull_weights[j] * (step_.a[j] - step_.pull_t * step_.pull_start[j]);
        gradient *= scales.map_unit[j];
        float &mean = step_.a_mean[j], &square = step_.a_square[j];
        mean += kMomentum * (gradient - mean);
        square += kSquares * (gradient * gradient - square);
        const float root = std::sqrt(square * step_.square_part) + kLeastRoot;
        step_.a[j] -= mean / root * scales.map_unit[j] * scales.map_rate * step_.share * step_.mean_part;
    }
}

}  // namespace slim
