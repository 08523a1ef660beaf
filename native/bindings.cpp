// The Python bindings of the core. No other file uses Python.
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/unique_ptr.h>

#include <algorithm>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <vector>

#include "agreement.h"
#include "hull.h"
#include "machine.h"
#include "margin.h"
#include "step.h"
#include "svmlight.h"

namespace nb = nanobind;
using namespace nb::literals;
using slim::Index;

namespace {

using Doubles = nb::ndarray<const double, nb::c_contig, nb::device::cpu>;
using Indices = nb::ndarray<const Index, nb::c_contig, nb::device::cpu>;
using Columns = nb::ndarray<const std::int32_t, nb::c_contig, nb::device::cpu>;
using Data = nb::ndarray<nb::ro, nb::c_contig, nb::device::cpu>;
using Output = nb::ndarray<nb::c_contig, nb::device::cpu>;

constexpr Index kShortWork = 20000;  // multiplications that take less time than releasing and acquiring the lock

void require(bool condition, const char* sentence) {
    if (!condition) throw std::invalid_argument(sentence);
}

bool is_float(const nb::dlpack::dtype& type) {
    if (type == nb::dtype<float>()) return true;
    require(type == nb::dtype<double>(), "X must be float32 or float64.");
    return false;
}

class Plan {
public:
    Plan(const std::string& kernel, bool in_float, bool sparse_rows, Index m, Index p, std::optional<Doubles> points,
         std::optional<Doubles> values, std::optional<Indices> columns, std::optional<Indices> starts,
         const Doubles& gammas, double coef0, double degree, std::optional<Doubles> coef, std::optional<Doubles> start, const Indices& block_sizes,
         std::optional<Indices> site_points, std::optional<Doubles> site_scales, std::optional<Doubles> site_squares,
         std::optional<Doubles> shift, std::optional<Doubles> scale, std::optional<Doubles> offset,
         std::optional<Indices> stage_sizes, std::optional<Doubles> stage_coef, std::optional<Doubles> stage_intercept,
         std::optional<Doubles> upper, std::optional<Doubles> lower, bool counts, std::optional<Doubles> table)
        : d_(p) {
        slim::Description machine{};
        machine.kernel = kernel;
        machine.coef0 = coef0;
        machine.degree = degree;
        machine.m = m;
        machine.p = p;
        machine.sparse_rows = sparse_rows;
        require(p >= 1 && m >= 0 && static_cast<Index>(gammas.size()) == m, "gammas must have one number per point.");
        machine.gammas = gammas.data();
        if (points) {
            require(points->ndim() == 2 && static_cast<Index>(points->shape(0)) == m &&
                        static_cast<Index>(points->shape(1)) == p, "points must be (m, p).");
            machine.points = points->data();
        } else {
            check_sparse_points(machine, values, columns, starts);
        }
        if (site_points) check_sites(machine, site_points, site_scales, site_squares);
        if (coef) {
            const Index rows = machine.sites > 0 ? machine.sites : m;
            require(coef->ndim() == 2 && static_cast<Index>(coef->shape(0)) == rows, "coef must be (m, q).");
            machine.coef = coef->data();
            machine.q = static_cast<Index>(coef->shape(1));
            require(machine.q >= 1, "coef must have a column.");
            machine.blocks = static_cast<Index>(block_sizes.size());
            machine.block_sizes = block_sizes.data();
            Index sum = 0;
            for (Index g = 0; g < machine.blocks; ++g) {
                require(block_sizes.data()[g] >= 0, "blocks must not be negative.");
                sum += block_sizes.data()[g];
            }
            require(machine.blocks >= 1 && sum == m, "blocks must sum to the number of points.");
        }
        require(machine.sites == 0 || (machine.q > 0 && machine.blocks == 1), "sites need coefficients in one block.");
        machine.d = p;
        machine.diagonal = true;
        if (shift) {
            require(scale.has_value() && offset.has_value(), "a map needs shift, scale and offset.");
            machine.d = static_cast<Index>(shift->size());
            machine.diagonal = scale->ndim() == 1;
            require(static_cast<Index>(scale->size()) == (machine.diagonal ? machine.d : machine.d * p) &&
                        static_cast<Index>(offset->size()) == p && (!machine.diagonal || machine.d == p),
                    "the map's shift, scale and offset must be (d,), (d,) or (p, d), and (p,).");
            machine.shift = shift->data();
            machine.scale = scale->data();
            machine.offset = offset->data();
        }
        d_ = machine.d;
        row_work_ = m * (p + 8) + (machine.diagonal ? machine.d : machine.d * p);
        width_ = machine.q > 0 ? machine.blocks * machine.q : m;
        if (stage_sizes) {
            add_stages(machine, *stage_sizes, stage_coef, stage_intercept, upper, lower, counts);
            width_ = counts ? 1 : machine.stages.q;
        }
        if (start) {
            require(static_cast<Index>(start->size()) == width_, "start must have one number per output.");
            machine.start = start->data();
        }
        if (table) {
            require(machine.points && machine.sites == 0 && !stage_sizes && table->ndim() == 2 &&
                        static_cast<Index>(table->shape(1)) == m, "table must be (rows, m), for dense points.");
            machine.table = table->data();
            machine.table_rows = table_rows_ = static_cast<Index>(table->shape(0));
        }
        machine_ = slim::make_machine(machine, in_float);
    }

    Index run(const Data& x, const Output& out, int threads) const {
        const slim::DenseRows rows = dense(x);
        double* to = output<double>(out, rows.n);
        if (rows.n * row_work_ < kShortWork) return machine_->run(rows, to, 1);
        const nb::gil_scoped_release release;
        return machine_->run(rows, to, threads);
    }

    // `run` with rows of the table, [n][lookups], whose shares are added.
    Index run_with_rows(const Data& x, const Columns& codes, const Output& out, int threads) const {
        slim::DenseRows rows = dense(x);
        require(codes.ndim() == 2 && static_cast<Index>(codes.shape(0)) == rows.n && codes.shape(1) >= 1,
                "rows must be (n, lookups).");
        rows.codes = codes.data();
        rows.lookups = static_cast<Index>(codes.shape(1));
        for (Index i = 0; i < rows.n * rows.lookups; ++i)
            require(rows.codes[i] >= 0 && rows.codes[i] < table_rows_, "a row of the table is out of range.");
        double* to = output<double>(out, rows.n);
        if (rows.n * row_work_ < kShortWork) return machine_->run(rows, to, 1);
        const nb::gil_scoped_release release;
        return machine_->run(rows, to, threads);
    }

    Index run_csr(const Data& data, const Columns& columns, const Indices& starts, const Output& out,
                  int threads) const {
        require(starts.size() >= 1 && data.size() == columns.size(), "X is a malformed CSR matrix: sizes disagree.");
        const slim::CsrRows rows{data.data(), is_float(data.dtype()), columns.data(), starts.data(),
                                 static_cast<Index>(starts.size()) - 1, static_cast<Index>(data.size())};
        double* to = output<double>(out, rows.n);
        const nb::gil_scoped_release release;
        return machine_->run(rows, to, threads);
    }

    Index values(const Data& x, const Output& out, int threads) const {
        const slim::DenseRows rows = dense(x);
        void* to = machine_->is_float() ? static_cast<void*>(output<float>(out, rows.n))
                                        : static_cast<void*>(output<double>(out, rows.n));
        const nb::gil_scoped_release release;
        return machine_->values(rows, to, threads);
    }

    std::shared_ptr<const slim::Machine> machine() const { return machine_; }
    Index n_features() const { return d_; }
    Index width() const { return width_; }

private:
    static void check_sparse_points(slim::Description& machine, const std::optional<Doubles>& values,
                                    const std::optional<Indices>& columns, const std::optional<Indices>& starts) {
        require(values && columns && starts, "points, or values, columns and starts, must be given.");
        require(static_cast<Index>(starts->size()) == machine.m + 1 && values->size() == columns->size(),
                "sparse points must have m + 1 starts and as many columns as values.");
        machine.values = values->data();
        machine.columns = columns->data();
        machine.starts = starts->data();
        const Index stored = static_cast<Index>(values->size());
        require(machine.starts[0] == 0 && machine.starts[machine.m] == stored, "sparse points: starts must end at the values.");
        for (Index j = 0; j < machine.m; ++j)
            require(machine.starts[j] <= machine.starts[j + 1], "sparse points: starts must rise.");
        for (Index i = 0; i < stored; ++i)
            require(machine.columns[i] >= 0 && machine.columns[i] < machine.p, "sparse points: a column is out of range.");
    }

    static void check_sites(slim::Description& machine, const std::optional<Indices>& points,
                            const std::optional<Doubles>& scales, const std::optional<Doubles>& squares) {
        require(scales && squares && scales->size() == points->size() && squares->size() == points->size(),
                "sites must have a scale and a square each.");
        require(machine.points && points->size() >= 1, "sites need dense points, and there must be one.");
        machine.sites = static_cast<Index>(points->size());
        machine.site_points = points->data();
        machine.site_scales = scales->data();
        machine.site_squares = squares->data();
        for (Index s = 0; s < machine.sites; ++s)
            require(machine.site_points[s] >= 0 && machine.site_points[s] < machine.m, "a site is at no point.");
    }

    static void add_stages(slim::Description& machine, const Indices& sizes, const std::optional<Doubles>& coef,
                           const std::optional<Doubles>& intercept, const std::optional<Doubles>& upper,
                           const std::optional<Doubles>& lower, bool counts) {
        const Index n = static_cast<Index>(sizes.size());
        require(machine.q == 0 && n >= 1 && coef && intercept && upper, "stages need coef, intercept and upper, alone.");
        const Index columns = static_cast<Index>(intercept->size()), q = columns / n;
        require(q >= 1 && q * n == columns && static_cast<Index>(coef->size()) == machine.m * columns,
                "stages need coef (m, n q) and intercept (n q,).");
        require(static_cast<Index>(upper->size()) == n - 1 && lower.has_value() == (q == 1) &&
                    (!lower || lower->size() == upper->size()), "stages need a threshold for each but the last.");
        for (Index s = 0; s < n; ++s)
            require(sizes.data()[s] >= (s > 0 ? sizes.data()[s - 1] : 0), "the sizes of stages must rise.");
        require(sizes.data()[n - 1] == machine.m, "the last stage must have all points.");
        machine.stages = {n, q, sizes.data(), coef->data(), intercept->data(), upper->data(),
                          lower ? lower->data() : nullptr, counts};
    }

    slim::DenseRows dense(const Data& x) const {
        const std::size_t axes = x.ndim();
        require((axes == 1 || axes == 2) && static_cast<Index>(x.shape(axes - 1)) == d_,
                "X has the wrong number of columns.");
        return {x.data(), is_float(x.dtype()), axes == 1 ? 1 : static_cast<Index>(x.shape(0))};
    }

    template <class T>
    T* output(const Output& out, Index n) const {
        require(out.dtype() == nb::dtype<T>() && static_cast<Index>(out.size()) == n * width_,
                "out has the wrong type or size.");
        return static_cast<T*>(out.data());
    }

    std::shared_ptr<const slim::Machine> machine_;
    Index d_, width_, row_work_, table_rows_ = 0;
};

// The rows of the kernel matrix of the plan's points. X holds these points, dense or as the three parts of a CSR matrix.
std::shared_ptr<slim::HullRows> hull_rows(const Plan& plan, const Data& x, std::optional<Columns> columns,
                                          std::optional<Indices> starts, const Doubles& ridge, Index cache_bytes) {
    const Index n = static_cast<Index>(ridge.size());
    const bool in_float = is_float(x.dtype());
    require(plan.width() == n, "ridge must have one number per point of the plan, which has no coefficients.");
    if (columns) {
        require(starts && static_cast<Index>(starts->size()) == n + 1 && columns->size() == x.size(),
                "X is a malformed CSR matrix: sizes disagree.");
        return std::make_shared<slim::HullRows>(n, ridge.data(), cache_bytes,
            [machine = plan.machine(), x, columns = *columns, starts = *starts, in_float, n](
                const Index* rows, Index count, double* out) {
                Index bad = 0;
                for (Index r = 0; r < count; ++r) {
                    const slim::CsrRows row{x.data(), in_float, columns.data(), starts.data() + rows[r], 1,
                                            static_cast<Index>(x.size())};
                    bad += machine->run(row, out + r * n, 1);
                }
                return bad;
            });
    }
    const Index d = plan.n_features();
    require(x.ndim() == 2 && static_cast<Index>(x.shape(0)) == n && static_cast<Index>(x.shape(1)) == d,
            "X must be (n, d), the points of the plan.");
    require(!in_float, "X must be float64.");
    return std::make_shared<slim::HullRows>(n, ridge.data(), cache_bytes,
        [machine = plan.machine(), x, d, together = std::vector<double>(static_cast<std::size_t>(
             d * slim::HullRows::kTogether))](const Index* rows, Index count, double* out) mutable {
            for (Index r = 0; r < count; ++r)
                std::copy_n(static_cast<const double*>(x.data()) + rows[r] * d, d, together.data() + r * d);
            return machine->run(slim::DenseRows{together.data(), false, count}, out, 1);
        });
}

void copy_row(slim::HullRows& rows, Index i, const Output& out) {
    require(i >= 0 && i < rows.size(), "the row is out of range.");
    require(out.dtype() == nb::dtype<double>() && static_cast<Index>(out.size()) == rows.size(), "out must be (n,).");
    std::copy_n(rows.row(i), rows.size(), static_cast<double*>(out.data()));
}

std::unique_ptr<slim::Hull> make_hull(std::shared_ptr<slim::HullRows> rows, const Doubles& signs,
                                      const Doubles& alpha) {
    const Index n = rows->size();
    require(n >= 1 && static_cast<Index>(signs.size()) == n && static_cast<Index>(alpha.size()) == n,
            "signs and alpha must be (n,).");
    bool any = false;
    for (Index i = 0; i < n; ++i) {
        require(alpha.data()[i] >= 0.0 && alpha.data()[i] <= 1e300, "alpha must be finite and not negative.");
        any = any || alpha.data()[i] > 0.0;
    }
    require(any, "alpha must not be zero.");
    const nb::gil_scoped_release release;
    return std::make_unique<slim::Hull>(std::move(rows), signs.data(), alpha.data());
}

void copy_state(const slim::Hull& hull, const Output& alpha, const Output& margins) {
    for (const Output* out : {&alpha, &margins})
        require(out->dtype() == nb::dtype<double>() && static_cast<Index>(out->size()) == hull.size(),
                "alpha and margins must be (n,).");
    hull.write_alpha(static_cast<double*>(alpha.data()));
    std::copy_n(hull.margins(), hull.size(), static_cast<double*>(margins.data()));
}

using Floats = nb::ndarray<const float, nb::ndim<2>, nb::c_contig, nb::device::cpu>;
using Weights = nb::ndarray<const float, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
using Counts = nb::ndarray<double, nb::ndim<2>, nb::c_contig, nb::device::cpu>;

void agreement(const Floats& a, const Floats& b, const std::optional<Weights>& weights, const Counts& counts,
               int threads) {
    const std::size_t n = a.shape(1);
    require(b.shape(1) == n && (!weights || weights->shape(0) == n), "a, b and weights must be of one width.");
    require(counts.shape(0) == a.shape(0) && counts.shape(1) == b.shape(0), "counts must be (rows of a, rows of b).");
    const nb::gil_scoped_release release;
    slim::agreement(a.data(), static_cast<Index>(a.shape(0)), b.data(), static_cast<Index>(b.shape(0)),
                    static_cast<Index>(n), weights ? weights->data() : nullptr, counts.data(), threads);
}

using Labels = nb::ndarray<double, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
using Starts = nb::ndarray<Index, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
using Places = nb::ndarray<std::int32_t, nb::ndim<1>, nb::c_contig, nb::device::cpu>;

nb::tuple read_svmlight(const nb::bytes& text, Index first, Index widest, const Labels& labels, const Starts& starts,
                        const Places& indices, const Labels& values) {
    require(starts.shape(0) == labels.shape(0) + 1, "starts must have one number more than labels.");
    require(indices.shape(0) == values.shape(0), "indices and values must be of one size.");
    require(first >= 0 && first <= 1 && widest >= 0 && widest <= INT32_MAX, "first or widest is out of range.");
    const slim::SvmlightRoom room{labels.data(), starts.data(), indices.data(), values.data(),
                                  static_cast<Index>(labels.shape(0)), static_cast<Index>(values.shape(0))};
    const char* data = text.c_str();
    const std::size_t size = text.size();
    slim::SvmlightFound found{};
    {
        const nb::gil_scoped_release release;
        found = slim::read_svmlight(data, size, first, widest, room);
    }
    return nb::make_tuple(found.rows, found.entries, found.width, found.good);
}

using Table = nb::ndarray<const double, nb::ndim<2>, nb::c_contig, nb::device::cpu>;
using Row = nb::ndarray<const double, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
using NewTable = nb::ndarray<double, nb::ndim<2>, nb::c_contig, nb::device::cpu>;
using NewRow = nb::ndarray<double, nb::ndim<1>, nb::c_contig, nb::device::cpu>;

Index solve_margin(const Table& phi, const Table& sign, const Table& offset, const Table& cost, const Row& ridge,
                   const Row& tilt, const Row& least, const NewTable& w, const NewRow& b, const NewTable& f,
                   const NewTable& alpha, const NewTable& s, const NewTable& t, const NewRow& value, const NewRow& gap,
                   bool squared, double tolerance, Index most) {
    const std::size_t n = phi.shape(0), r = phi.shape(1), all = sign.shape(0), q = sign.shape(1);
    require(n > 0 && all > 0 && all % n == 0, "sign must have a number of copies of the rows of phi.");
    for (const auto* each : {&offset, &cost})
        require(each->shape(0) == all && each->shape(1) == q, "offset and cost must have the shape of sign.");
    for (const auto* each : {&f, &alpha, &s, &t})
        require(each->shape(0) == all && each->shape(1) == q, "f, alpha, s and t must have the shape of sign.");
    require(w.shape(0) == r && w.shape(1) == q, "w must be (features, outputs).");
    for (const auto* each : {&ridge, &tilt, &least})
        require(each->shape(0) == q, "ridge, tilt and least must have a number for each output.");
    for (const auto* each : {&b, &value, &gap})
        require(each->shape(0) == q, "b, value and gap must have a number for each output.");
    const slim::MarginProblem problem{phi.data(), static_cast<Index>(n), static_cast<Index>(r),
                                      static_cast<Index>(all / n), static_cast<Index>(q), sign.data(), offset.data(),
                                      cost.data(), ridge.data(), tilt.data(), least.data()};
    const slim::MarginState state{w.data(), b.data(), f.data(), alpha.data(), s.data(), t.data(), value.data(),
                                  gap.data()};
    const nb::gil_scoped_release release;
    return slim::solve_margin(problem, squared, tolerance, most, state);
}

using FloatRow = nb::ndarray<const float, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
using FloatTable = nb::ndarray<const float, nb::c_contig, nb::device::cpu>;
using NewDoubles = nb::ndarray<double, nb::c_contig, nb::device::cpu>;
using NewFloats = nb::ndarray<float, nb::c_contig, nb::device::cpu>;
using Order = nb::ndarray<const Index, nb::ndim<1>, nb::c_contig, nb::device::cpu>;

// The steps of mini-batches; arrays have the shapes that step.h states.
class Steps {
public:
    Steps(const std::string& map, Index d, Index p, Index m, Index copies, int power, double gamma, const FloatRow& ridge,
          const FloatRow& tilt, float vectors_unit, float vectors_rate, float map_rate, float newton_rate,
          const std::optional<FloatRow>& map_unit, const std::optional<FloatTable>& pull_start,
          const std::optional<FloatRow>& pull_weights, float pull_scale) {
        const Index q = static_cast<Index>(ridge.size());
        slim::StepShape shape{d, p, m, q, copies, slim::StepMap::none, power, gamma, 0};
        if (map == "diagonal") shape.map = slim::StepMap::diagonal;
        if (map == "projection") shape.map = slim::StepMap::projection;
        require(d >= 1 && p >= 1 && m >= 1 && q >= 1 && copies >= 1, "a step needs rows, vectors and outputs.");
        require(shape.map == slim::StepMap::projection || d == p, "only a projection changes the number of features.");
        require(static_cast<Index>(tilt.size()) == q, "tilt must have a number for each output.");
        map_size_ = shape.map == slim::StepMap::none ? 0 : shape.map == slim::StepMap::diagonal ? d : d * p;
        require(map_size_ == 0 || (map_unit && static_cast<Index>(map_unit->size()) == d), "map_unit must be (d,).");
        require(!pull_start || (static_cast<Index>(pull_start->size()) == map_size_ && pull_weights &&
                                static_cast<Index>(pull_weights->size()) == d),
                "a pull needs a start like the map, and weights (d,).");
        const slim::StepScales scales{vectors_unit, vectors_rate, map_rate, newton_rate,
                                      map_unit ? map_unit->data() : nullptr, ridge.data(), tilt.data(),
                                      pull_start ? pull_start->data() : nullptr,
                                      pull_weights ? pull_weights->data() : nullptr, pull_scale};
        steps_ = std::make_unique<slim::Steps>(shape, scales);
    }

    void write(const FloatTable& z, const FloatTable& z_mean, const FloatTable& z_square, const FloatTable& a,
               const FloatTable& a_mean, const FloatTable& a_square, const FloatTable& w, const FloatTable& w_mean) {
        const FloatTable* all[8] = {&z, &z_mean, &z_square, &a, &a_mean, &a_square, &w, &w_mean};
        for (int i = 0; i < 8; ++i) require(static_cast<Index>(all[i]->size()) == size(i), "an array has the wrong size.");
        steps_->write_vectors(z.data(), z_mean.data(), z_square.data());
        if (map_size_ > 0) steps_->write_map(a.data(), a_mean.data(), a_square.data());
        steps_->write_coefficients(w.data(), w_mean.data());
    }

    void read(const NewFloats& z, const NewFloats& z_mean, const NewFloats& z_square, const NewFloats& a,
              const NewFloats& a_mean, const NewFloats& a_square, const NewFloats& w, const NewFloats& w_mean) const {
        const NewFloats* all[8] = {&z, &z_mean, &z_square, &a, &a_mean, &a_square, &w, &w_mean};
        for (int i = 0; i < 8; ++i) require(static_cast<Index>(all[i]->size()) == size(i), "an array has the wrong size.");
        steps_->read_vectors(z.data(), z_mean.data(), z_square.data());
        if (map_size_ > 0) steps_->read_map(a.data(), a_mean.data(), a_square.data());
        steps_->read_coefficients(w.data(), w_mean.data());
    }

    void write_inverse(const FloatTable& inverse) {
        const Index n = steps_->shape().m + 1;
        require(static_cast<Index>(inverse.size()) == n * n, "inverse must be (m + 1, m + 1).");
        steps_->write_inverse(inverse.data());
    }

    bool is_finite() const { return steps_->is_finite(); }

    double run(const Data& x, const std::optional<Columns>& columns, const std::optional<Indices>& starts,
               const std::optional<Doubles>& centre, const FloatTable& sign, const FloatTable& offset,
               const FloatTable& cost, const Order& order, Index batch, Index own, Index done, const Doubles& calm,
               const Doubles& warm, int threads) {
        const slim::StepShape& shape = steps_->shape();
        const Index count = static_cast<Index>(calm.size());
        require(batch >= 1 && own >= 0 && own <= shape.m && done >= 0 && threads >= 1, "a size is out of range.");
        require(static_cast<Index>(order.size()) == batch * count && warm.size() == calm.size(),
                "order must have a batch of rows for each step, and calm and warm one number.");
        const slim::StepRows rows = given(x, columns, starts, centre, sign, offset, cost);
        const nb::gil_scoped_release release;
        for (std::size_t k = 0; k < order.size(); ++k) check_row(rows, order.data()[k], static_cast<Index>(x.size()));
        return steps_->run(rows, order.data(), batch, count, own, done, calm.data(), warm.data(), threads);
    }

    double evaluate(const Data& x, const std::optional<Columns>& columns, const std::optional<Indices>& starts,
                    const std::optional<Doubles>& centre, const FloatTable& sign, const FloatTable& offset,
                    const FloatTable& cost, const NewTable& gradient, float smooth, int threads) {
        const slim::StepRows rows = given(x, columns, starts, centre, sign, offset, cost);
        require(static_cast<Index>(gradient.size()) == size(6), "gradient must be (m + 1, q).");
        const nb::gil_scoped_release release;
        for (Index i = 0; rows.columns && i < rows.n; ++i) check_row(rows, i, static_cast<Index>(x.size()));
        return steps_->evaluate(rows, gradient.data(), smooth, threads);
    }

    void curvature(const Data& x, const std::optional<Columns>& columns, const std::optional<Indices>& starts,
                   const std::optional<Doubles>& centre, const FloatTable& sign, const FloatTable& offset,
                   const FloatTable& cost, double damping, const NewFloats& out, int threads) {
        const slim::StepRows rows = given(x, columns, starts, centre, sign, offset, cost);
        const Index n = steps_->shape().m + 1;
        require(static_cast<Index>(out.size()) == n * n, "out must be (m + 1, m + 1).");
        const nb::gil_scoped_release release;
        for (Index i = 0; rows.columns && i < rows.n; ++i) check_row(rows, i, static_cast<Index>(x.size()));
        steps_->curvature(rows, damping, out.data(), threads);
    }

    double gradients(const Data& x, const std::optional<Columns>& columns, const std::optional<Indices>& starts,
                     const std::optional<Doubles>& centre, const FloatTable& sign, const FloatTable& offset,
                     const FloatTable& cost, const NewDoubles& by_coef, const NewDoubles& by_z, const NewDoubles& by_a,
                     float smooth, int threads) {
        const slim::StepRows rows = given(x, columns, starts, centre, sign, offset, cost);
        require(static_cast<Index>(by_coef.size()) == size(6) && static_cast<Index>(by_z.size()) == size(0) &&
                    static_cast<Index>(by_a.size()) == size(3),
                "gradients must be (m + 1, q), (m, p) and like the map.");
        const nb::gil_scoped_release release;
        for (Index i = 0; rows.columns && i < rows.n; ++i) check_row(rows, i, static_cast<Index>(x.size()));
        return steps_->gradients(rows, by_coef.data(), by_z.data(), by_a.data(), smooth, threads);
    }

private:
    Index size(int which) const {
        const slim::StepShape& shape = steps_->shape();
        return which < 3 ? shape.m * shape.p : which < 6 ? map_size_ : (shape.m + 1) * shape.q;
    }

    slim::StepRows given(const Data& x, const std::optional<Columns>& columns, const std::optional<Indices>& starts,
                         const std::optional<Doubles>& centre, const FloatTable& sign, const FloatTable& offset,
                         const FloatTable& cost) const {
        const slim::StepShape& shape = steps_->shape();
        const Index many = shape.copies * shape.q, n = static_cast<Index>(sign.size()) / many;
        require(static_cast<Index>(sign.size()) == n * many && offset.size() == sign.size() && cost.size() == sign.size(),
                "sign, offset and cost must have a number for each copy, row and output.");
        require(!centre || static_cast<Index>(centre->size()) == shape.d, "centre must be (d,).");
        slim::StepRows rows{x.data(), is_float(x.dtype()), nullptr, nullptr, centre ? centre->data() : nullptr, n,
                            sign.data(), offset.data(), cost.data()};
        if (columns) {
            require(!centre && starts && static_cast<Index>(starts->size()) == n + 1 && columns->size() == x.size(),
                    "X is a malformed CSR matrix: sizes disagree.");
            rows.columns = columns->data();
            rows.starts = starts->data();
        } else {
            require(static_cast<Index>(x.size()) == n * shape.d, "X must be (n, d).");
        }
        return rows;
    }

    void check_row(const slim::StepRows& rows, Index i, Index stored) const {
        require(i >= 0 && i < rows.n, "order names a row that is not there.");
        if (!rows.columns) return;
        require(rows.starts[i] >= 0 && rows.starts[i] <= rows.starts[i + 1] && rows.starts[i + 1] <= stored,
                "X is a malformed CSR matrix: starts must rise.");
        for (Index e = rows.starts[i]; e < rows.starts[i + 1]; ++e)
            require(rows.columns[e] >= 0 && rows.columns[e] < steps_->shape().d, "a column of X is out of range.");
    }

    std::unique_ptr<slim::Steps> steps_;
    Index map_size_ = 0;
};

}  // namespace

NB_MODULE(_native, m) {
    nb::set_leak_warnings(false);  // machines may live until the interpreter ends
    m.doc() = "The compiled core of slimsvm; used through slimsvm._core only.";
    m.attr("instruction_set") = slim::best_instruction_set().name;
    m.def("exp2_seconds", &slim::exp2_seconds, "in_float"_a, "repeats"_a);
    m.def("agreement", &agreement, "a"_a, "b"_a, "weights"_a.none(), "counts"_a, "threads"_a);
    m.def("read_svmlight", &read_svmlight, "text"_a, "first"_a, "widest"_a, "labels"_a, "starts"_a, "indices"_a,
          "values"_a);
    m.def("solve_margin", &solve_margin);
    nb::class_<Plan>(m, "Plan")
        .def(nb::init<const std::string&, bool, bool, Index, Index, std::optional<Doubles>, std::optional<Doubles>,
                      std::optional<Indices>, std::optional<Indices>, const Doubles&, double, double,
                      std::optional<Doubles>, std::optional<Doubles>, const Indices&, std::optional<Indices>,
                      std::optional<Doubles>, std::optional<Doubles>, std::optional<Doubles>, std::optional<Doubles>,
                      std::optional<Doubles>, std::optional<Indices>, std::optional<Doubles>, std::optional<Doubles>,
                      std::optional<Doubles>, std::optional<Doubles>, bool, std::optional<Doubles>>(),
             nb::kw_only(), "kernel"_a, "in_float"_a, "sparse_rows"_a, "m"_a, "p"_a, "points"_a.none(),
             "values"_a.none(), "columns"_a.none(), "starts"_a.none(), "gammas"_a, "coef0"_a, "degree"_a,
             "coef"_a.none(), "start"_a.none(), "block_sizes"_a, "site_points"_a.none(),
             "site_scales"_a.none(), "site_squares"_a.none(), "shift"_a.none(), "scale"_a.none(), "offset"_a.none(),
             "stage_sizes"_a.none() = nb::none(), "stage_coef"_a.none() = nb::none(),
             "stage_intercept"_a.none() = nb::none(), "upper"_a.none() = nb::none(), "lower"_a.none() = nb::none(),
             "counts"_a = false, "table"_a.none() = nb::none())
        .def("run", &Plan::run)
        .def("run_with_rows", &Plan::run_with_rows)
        .def("run_csr", &Plan::run_csr)
        .def("values", &Plan::values);
    nb::class_<slim::HullRows>(m, "HullRows")
        .def("copy_row", &copy_row)
        .def_prop_ro("computed", &slim::HullRows::computed);
    m.def("hull_rows", &hull_rows, "plan"_a, "x"_a, "columns"_a.none(), "starts"_a.none(), "ridge"_a, "cache_bytes"_a);
    nb::class_<slim::Hull>(m, "Hull")
        .def("run", &slim::Hull::run, nb::call_guard<nb::gil_scoped_release>())
        .def("refresh", &slim::Hull::refresh, nb::call_guard<nb::gil_scoped_release>())
        .def("copy_state", &copy_state)
        .def_prop_ro("square", &slim::Hull::square)
        .def_prop_ro("gap", &slim::Hull::gap);
    nb::class_<Steps>(m, "Steps")
        .def(nb::init<const std::string&, Index, Index, Index, Index, int, double, const FloatRow&, const FloatRow&, float,
                      float, float, float, const std::optional<FloatRow>&, const std::optional<FloatTable>&,
                      const std::optional<FloatRow>&, float>(),
             nb::kw_only(), "map"_a, "d"_a, "p"_a, "m"_a, "copies"_a, "power"_a, "gamma"_a, "ridge"_a, "tilt"_a,
             "vectors_unit"_a, "vectors_rate"_a, "map_rate"_a, "newton_rate"_a, "map_unit"_a.none(),
             "pull_start"_a.none(), "pull_weights"_a.none(), "pull_scale"_a)
        .def("write", &Steps::write)
        .def("read", &Steps::read)
        .def("write_inverse", &Steps::write_inverse)
        .def("is_finite", &Steps::is_finite)
        .def("evaluate", &Steps::evaluate, "x"_a, "columns"_a.none(), "starts"_a.none(), "centre"_a.none(), "sign"_a,
             "offset"_a, "cost"_a, "gradient"_a, "smooth"_a, "threads"_a)
        .def("curvature", &Steps::curvature, "x"_a, "columns"_a.none(), "starts"_a.none(), "centre"_a.none(), "sign"_a,
             "offset"_a, "cost"_a, "damping"_a, "out"_a, "threads"_a)
        .def("gradients", &Steps::gradients, "x"_a, "columns"_a.none(), "starts"_a.none(), "centre"_a.none(), "sign"_a,
             "offset"_a, "cost"_a, "by_coef"_a, "by_z"_a, "by_a"_a, "smooth"_a, "threads"_a)
        .def("run", &Steps::run, "x"_a, "columns"_a.none(), "starts"_a.none(), "centre"_a.none(), "sign"_a, "offset"_a,
             "cost"_a, "order"_a, "batch"_a, "own"_a, "done"_a, "calm"_a, "warm"_a, "threads"_a);
    m.def("make_hull", &make_hull, "rows"_a, "signs"_a, "alpha"_a);
}
