// The Python face of the core: arrays in, arrays out. The only file that knows Python.
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>

#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <vector>

#include "machine.h"

namespace nb = nanobind;
using namespace nb::literals;
using slim::Index;

namespace {

using Doubles = nb::ndarray<const double, nb::c_contig, nb::device::cpu>;
using Indices = nb::ndarray<const Index, nb::c_contig, nb::device::cpu>;
using Columns = nb::ndarray<const std::int32_t, nb::c_contig, nb::device::cpu>;
using Data = nb::ndarray<nb::ro, nb::c_contig, nb::device::cpu>;
using Output = nb::ndarray<nb::c_contig, nb::device::cpu>;

constexpr Index kShortWork = 20000;  // multiplications that take less time than giving up the lock and taking it back

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
         std::optional<Doubles> shift, std::optional<Doubles> scale, std::optional<Doubles> offset)
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
        if (coef) {
            require(coef->ndim() == 2 && static_cast<Index>(coef->shape(0)) == m, "coef must be (m, q).");
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
        if (start) {
            require(static_cast<Index>(start->size()) == width_, "start must have one number per output.");
            machine.start = start->data();
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

    std::unique_ptr<slim::Machine> machine_;
    Index d_, width_, row_work_;
};

}  // namespace

NB_MODULE(_native, m) {
    nb::set_leak_warnings(false);  // machines that live until the interpreter ends are no mistake
    m.doc() = "The compiled core of slimsvm; used through slimsvm._core only.";
    m.attr("instruction_set") = slim::best_instruction_set().name;
    m.def("exp2_seconds", &slim::exp2_seconds, "in_float"_a, "repeats"_a);
    nb::class_<Plan>(m, "Plan")
        .def(nb::init<const std::string&, bool, bool, Index, Index, std::optional<Doubles>, std::optional<Doubles>,
                      std::optional<Indices>, std::optional<Indices>, const Doubles&, double, double,
                      std::optional<Doubles>, std::optional<Doubles>, const Indices&, std::optional<Doubles>,
                      std::optional<Doubles>, std::optional<Doubles>>(),
             nb::kw_only(), "kernel"_a, "in_float"_a, "sparse_rows"_a, "m"_a, "p"_a, "points"_a.none(),
             "values"_a.none(), "columns"_a.none(), "starts"_a.none(), "gammas"_a, "coef0"_a, "degree"_a,
             "coef"_a.none(), "start"_a.none(), "block_sizes"_a, "shift"_a.none(), "scale"_a.none(), "offset"_a.none())
        .def("run", &Plan::run)
        .def("run_csr", &Plan::run_csr)
        .def("values", &Plan::values);
}
