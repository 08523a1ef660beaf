#include "hull.h"

#include <algorithm>
#include <stdexcept>

namespace slim {
namespace {

constexpr double kSmallestScale = 1e-100;
constexpr Index kSlabBytes = 8 << 20;

}  // namespace

// --- rows -------------------------------------------------------------------------------------------------------------

HullRows::HullRows(Index n, const double* ridge, Index cache_bytes, Fill fill)
    : n_(n), ridge_(ridge, ridge + n), fill_(std::move(fill)), fresh_(n * kTogether), slot_of_(static_cast<std::size_t>(n), -1) {
    const Index row_bytes = std::max<Index>(1, n) * static_cast<Index>(sizeof(double));
    capacity_ = std::min(std::max<Index>(3, cache_bytes / row_bytes), std::max<Index>(3, n));
    slab_rows_ = std::max<Index>(1, kSlabBytes / (row_bytes * kTogether)) * kTogether;
}

const double* HullRows::row(Index i) {
    if (holds(i)) to_front(slot_of_[i]);
    else compute(&i, 1);
    return at(slot_of_[i]);
}

void HullRows::compute(const Index* rows, Index count) {
    const Index next = static_cast<Index>(owner_.size());
    const bool in_place = next + count <= capacity_ && next % slab_rows_ + count <= slab_rows_;
    double* const fresh = in_place ? at(next) : fresh_.get();
    computed_ += count;
    if (fill_(rows, count, fresh) > 0)
        throw std::domain_error("Kernel values of the samples are not finite: scale the data, or lower the degree.");
    for (Index r = 0; r < count; ++r) {
        double* const to = at(slot_for(rows[r]));
        if (!in_place) std::copy_n(fresh + r * n_, n_, to);
        to[rows[r]] += ridge_[rows[r]];
    }
}

// The row of a slot. Slots are used in order at first.
double* HullRows::at(Index slot) {
    if (slot == static_cast<Index>(slabs_.size()) * slab_rows_)
        slabs_.emplace_back(std::min(slab_rows_, capacity_ - slot) * n_, false, true);
    return slabs_[slot / slab_rows_].get() + slot % slab_rows_ * n_;
}

// Assigns a slot to row i, at the front of the list.
Index HullRows::slot_for(Index i) {
    Index slot = static_cast<Index>(owner_.size());
    if (slot < capacity_) {
        owner_.push_back(-1);
        before_.push_back(-1);
        after_.push_back(latest_);
        if (latest_ >= 0) before_[latest_] = slot;
        latest_ = slot;
        if (oldest_ < 0) oldest_ = slot;
    } else {
        slot = oldest_;
        if (owner_[slot] >= 0) slot_of_[owner_[slot]] = -1;
        to_front(slot);
    }
    owner_[slot] = i;
    slot_of_[i] = slot;
    return slot;
}

void HullRows::to_front(Index slot) {
    if (slot == latest_) return;
    after_[before_[slot]] = after_[slot];
    if (after_[slot] >= 0) before_[after_[slot]] = before_[slot];
    else oldest_ = before_[slot];
    before_[slot] = -1;
    after_[slot] = latest_;
    before_[latest_] = slot;
    latest_ = slot;
}

// --- the hull ---------------------------------------------------------------------------------------------------------

Hull::Hull(std::shared_ptr<HullRows> rows, const double* signs, const double* alpha)
    : rows_(std::move(rows)), signs_(signs, signs + rows_->size()), alpha_(alpha, alpha + rows_->size()),
      margins_(rows_->size()) {
    for (Index begin = 0, end = 0; begin < size(); begin = end) {
        while (end < size() && signs_[end] == signs_[begin]) ++end;
        runs_.push_back({begin, end, signs_[begin]});
    }
    double sum = 0.0;
    for (const double a : alpha_) sum += a;
    for (double& a : alpha_) a /= sum;
    refresh();
}

Index Hull::run(Index updates, double tolerance, bool pairs) {
    rescale();
    find_support();
    for (Index made = 0; made < updates; ++made) {
        if (gap() <= tolerance * square_) return made;
        if (!(pairs ? exchange() : toward())) return made;
    }
    return updates;
}

bool Hull::toward() {
    const Index l = lowest_;
    const double* row = fetch(l);
    const double margin = margins_[l], own = row[l];
    const double apart = square_ - 2.0 * margin + own;  // ‖W − y_l X_l‖²
    if (!(apart > 0.0) || !(square_ > margin)) return false;
    const double part = std::min(1.0, (square_ - margin) / apart), keep = 1.0 - part;
    square_ = keep * keep * square_ + 2.0 * keep * part * margin + part * part * own;
    if (keep > 0.0) {
        scale_ *= keep;
        alpha_[l] += part / scale_;
        if (scale_ < kSmallestScale) rescale();
    } else {
        std::fill(alpha_.begin(), alpha_.end(), 0.0);
        scale_ = alpha_[l] = 1.0;
    }
    move({keep, part * signs_[l], row, 0.0, row});
    return true;
}

bool Hull::exchange() {
    const Index l = lowest_;
    Index place = 0;
    for (Index s = 1; s < static_cast<Index>(support_.size()); ++s)
        if (margins_[support_[s]] > margins_[support_[place]]) place = s;
    const Index u = support_[place];
    const double apart = margins_[u] - margins_[l];
    if (!(apart > 0.0)) return false;
    const double* row_l = fetch(l);
    const double* row_u = rows_->row(u);
    const double curvature = row_l[l] + row_u[u] - 2.0 * signs_[l] * signs_[u] * row_l[u];
    const bool whole = !(apart < alpha_[u] * curvature);
    const double part = whole ? alpha_[u] : apart / curvature;
    square_ += part * (part * curvature - 2.0 * apart);
    if (alpha_[l] == 0.0) support_.push_back(l);
    alpha_[l] += part;
    alpha_[u] -= part;
    if (whole) {
        alpha_[u] = 0.0;
        support_[place] = support_.back();
        support_.pop_back();
    }
    move({1.0, part * signs_[l], row_l, -part * signs_[u], row_u});
    return true;
}

void Hull::refresh() {
    rescale();
    std::fill(margins_.get(), margins_.get() + size(), 0.0);
    for (Index i = 0; i < size(); ++i) {
        if (alpha_[i] == 0.0) continue;
        const double* row = rows_->row(i);
        move({1.0, alpha_[i] * signs_[i], row, 0.0, row});
    }
    square_ = 0.0;
    for (Index i = 0; i < size(); ++i) square_ += alpha_[i] * margins_[i];
}

void Hull::move(Move step) {
    const double first = step.first, second = step.second;
    const double *row = step.row, *other = step.other;
    for (const Run& run : runs_) {
        step.first = run.sign * first;
        step.second = run.sign * second;
        step.row = row + run.begin;
        step.other = other + run.begin;
        const Index low =
            run.begin + best_instruction_set().move(step, margins_.get() + run.begin, run.end - run.begin);
        if (run.begin == 0 || margins_[low] < margins_[lowest_]) lowest_ = low;
    }
}

// Row l. If it must be computed, the rows of the next smallest margins are computed too: they will be needed soon.
const double* Hull::fetch(Index l) {
    if (rows_->holds(l) || !rows_->is_roomy()) return rows_->row(l);
    Index wanted[HullRows::kTogether] = {l};
    Index count = 1;
    for (Index i = 0; i < size(); ++i) {
        if (count == HullRows::kTogether && !(margins_[i] < margins_[wanted[count - 1]])) continue;
        if (i == l || rows_->holds(i)) continue;
        Index place = count < HullRows::kTogether ? count++ : count - 1;
        for (; place > 1 && margins_[i] < margins_[wanted[place - 1]]; --place) wanted[place] = wanted[place - 1];
        wanted[place] = i;
    }
    rows_->compute(wanted, count);
    return rows_->row(l);
}

void Hull::rescale() {
    for (double& a : alpha_) a *= scale_;
    scale_ = 1.0;
}

void Hull::find_support() {
    support_.clear();
    for (Index i = 0; i < size(); ++i)
        if (alpha_[i] > 0.0) support_.push_back(i);
}

void Hull::write_alpha(double* out) const {
    for (Index i = 0; i < size(); ++i) out[i] = alpha_[i] * scale_;
}

}  // namespace slim
