# SPDX-License-Identifier: MIT
"""Tensors: values, dtypes and errors as PyTorch's, on the heap, not copied."""

import copy
import hashlib
import math
import pickle
import unittest

import support
from support import plain

DTYPES = "int8 int16 int32 int64 float16 float32 float64 bool".split()
SHAPES = [(1,), (5,), (2, 3), (3, 4, 5), (1, 1, 1), (10, 20), (0,), (), (2, 0)]
LINES = [(-math.pi, 9, 101), (19, -62, 895), (0, 120, 47), (5, -3, 21)]
# digest_of() what torch.linspace() of PyTorch 2.9.1 makes of the four, on a CPU
# with FMA.
LINSPACES = {
    "int8": "4663a1b5c6964469",
    "int16": "391bf3363971df0e",
    "int32": "ac6f6123c54f6717",
    "int64": "0c251e760dbc6338",
    "float16": "67f03b411712adbf",
    "bfloat16": "9a9fc68c892974ca",
    "float32": "1b3fb381ce4eef5c",
    "float64": "b6eb529dd0d5f116",
    "complex64": "ae2d8a4972716d8b",
    "complex128": "e82e472f56e35447",
}


def dtype(name):
    """A dtype of numpy's or torch's."""
    if support.ARRAYS == "torch":
        return getattr(support.library(), name)
    return support.library().dtype(name)


def digest_of(tensors):
    """Of the bytes of torch's tensors."""
    import torch

    whole = hashlib.sha256()
    for tensor in tensors:
        whole.update(bytes(tensor.view(torch.uint8).tolist()))
    return whole.hexdigest()[:16]


class Creation(support.TestCase):
    def test_zeros_and_ones_have_the_shape_and_dtype_asked_for(self):
        for name in DTYPES:
            for shape in SHAPES:
                zeros = self.ctx.zeros(*shape, dtype=dtype(name))
                ones = self.ctx.ones(shape, dtype=dtype(name))
                for array, value in ((zeros, 0), (ones, 1)):
                    self.assertEqual(tuple(array.shape), shape)
                    self.assertEqual(support.dtype_name(array), name)
                    self.assertTrue((array == value).all())
                    self.assertTrue(self.ctx.is_symmetric(array))

    def test_sizes_may_be_nested(self):
        for array in (
            self.ctx.zeros(2, 3),
            self.ctx.zeros([2, 3]),
            self.ctx.zeros(((2, 3),)),
            self.ctx.empty([[2, 3]]),
        ):
            self.assertEqual(tuple(array.shape), (2, 3))

    def test_without_a_dtype_the_numbers_decide(self):
        for array, name in (
            (self.ctx.zeros(2), "float32"),
            (self.ctx.full((2,), 2.5), "float32"),
            (self.ctx.full((2,), 7), "int64"),
            (self.ctx.full((2,), 1j), "complex64"),
            (self.ctx.arange(3), "int64"),
            (self.ctx.arange(3.0), "float32"),
            (self.ctx.linspace(0, 1, 3), "float32"),
            (self.ctx.randint(5, (2,)), "int64"),
            (self.ctx.rand(2), "float32"),
        ):
            self.assertEqual(support.dtype_name(array), name)

    def test_full_cuts_off_what_an_integer_cannot_have(self):
        array = self.ctx.full((3,), 2.5, dtype=dtype("int32"))
        self.assertEqual(plain(array), [2, 2, 2])

    def test_a_size_that_is_not_whole_is_an_error(self):
        for make in (
            lambda: self.ctx.zeros(2.5),
            lambda: self.ctx.full((2.5,), 1),
            lambda: self.ctx.linspace(0, 1, 2.5),
            lambda: self.ctx.zeros("2"),
            lambda: self.ctx.randint(2.5, (2,)),
        ):
            with self.assertRaisesRegex(TypeError, "'?2.*not a whole number"):
                make()

    def test_a_dtype_may_be_a_name_or_a_type_of_pythons(self):
        for dtype, name in (
            ("float32", "float32"),
            ("int16", "int16"),
            (float, "float64"),
            (bool, "bool"),
        ):
            made = self.ctx.zeros(3, dtype=dtype)
            self.assertEqual(support.dtype_name(made), name)
        with self.assertRaisesRegex(TypeError, "flat32"):
            self.ctx.zeros(3, dtype="flat32")

    def test_a_full_heap_names_pythons_argument(self):
        with self.assertRaisesRegex(
            MemoryError, r"raise heap_size= \(IRIS_HEAP_SIZE\)"
        ):
            self.ctx.zeros(1 << 40)

    def test_memory_that_should_be_pinned_is_refused(self):
        for make in (self.ctx.empty, self.ctx.rand, self.ctx.randn):
            with self.assertRaisesRegex(ValueError, "pin_memory=True"):
                make(2, pin_memory=True)
            self.assertEqual(len(make(2, pin_memory=False)), 2)

    def test_copies_and_pickles_are_not_on_the_heap(self):
        made = self.ctx.full((3,), 7)
        for copied in (copy.deepcopy(made), pickle.loads(pickle.dumps(made))):
            self.assertEqual(plain(copied), [7, 7, 7])
            self.assertFalse(self.ctx.is_symmetric(copied))

    def test_arange_counts_as_python_does(self):
        for numbers in ((5,), (0, 10, 2), (2, 9), (10, 0, -3), (-5, 5, 3)):
            self.assertEqual(
                plain(self.ctx.arange(*numbers)), list(range(*numbers))
            )
        quarter = self.ctx.arange(0, 1, 0.25)
        self.assertEqual(plain(quarter), [0, 0.25, 0.5, 0.75])

    def test_arange_without_elements_is_an_error(self):
        for numbers in ((0, 10, 0), (0, 10, -1), (10, 0), (5, 5)):
            with self.assertRaises(ValueError):
                self.ctx.arange(*numbers)

    def test_linspace_has_both_ends(self):
        for steps in (5, (5,), [[5]]):
            array = self.ctx.linspace(-1, 3, steps)
            self.assertEqual(plain(array), [-1, 0, 1, 2, 3])
        array = self.ctx.linspace(0, 1 + 1j, 3)
        self.assertEqual(plain(array), [0, 0.5 + 0.5j, 1 + 1j])

    def test_random_numbers_are_in_range(self):
        numbers = self.ctx.rand(1000)
        self.assertTrue(((numbers >= 0) & (numbers < 1)).all())
        self.assertTrue(0.4 < float(numbers.mean()) < 0.6)
        numbers = self.ctx.randn(2000)
        self.assertTrue(abs(float(numbers.mean())) < 0.2)
        self.assertTrue(0.8 < float(numbers.std()) < 1.2)
        for arguments, low, high in (
            ((10, (500,)), 0, 10),
            ((-5, 5, (500,)), -5, 5),
        ):
            numbers = self.ctx.randint(*arguments)
            self.assertEqual(set(plain(numbers)), set(range(low, high)))

    def test_randint_says_how_many_arguments_it_takes(self):
        with self.assertRaisesRegex(ValueError, "2 or 3 positional arguments"):
            self.ctx.randint(5)

    def test_the_same_generator_gives_the_same_numbers_again(self):
        import iris_c

        first = self.ctx.rand(10, generator=iris_c.Generator(7))
        generator = iris_c.Generator(7)
        self.assertEqual(
            plain(first), plain(self.ctx.rand(10, generator=generator))
        )
        self.assertNotEqual(
            plain(first), plain(self.ctx.rand(10, generator=generator))
        )
        generator.manual_seed(7)
        self.assertEqual(
            plain(first), plain(self.ctx.rand(10, generator=generator))
        )

    def test_ranks_draw_numbers_of_their_own_from_the_contexts(self):
        generator = self.ctx.default_generator
        self.assertEqual(generator.sequence, self.rank)
        generator.manual_seed(4)
        mine = self.ctx.rand(6, generator=generator)
        first = self.ctx.broadcast(mine, src=0)
        self.assertEqual(plain(mine) == plain(first), self.rank == 0)
        self.assertEqual(generator.offset, 2)

    def test_a_library_generator_decides_too(self):
        if support.ARRAYS == "torch":
            import torch

            def made():
                return torch.Generator().manual_seed(5)

        else:
            import numpy

            def made():
                return numpy.random.default_rng(5)

        self.assertEqual(
            plain(self.ctx.randn(9, generator=made())),
            plain(self.ctx.randn(9, generator=made())),
        )

    def test_zeros_like_takes_shape_and_dtype_from_anywhere(self):
        outside = support.library().ones((2, 3), dtype=dtype("int16"))
        array = self.ctx.zeros_like(outside)
        self.assertEqual(plain(array), [[0, 0, 0], [0, 0, 0]])
        self.assertEqual(support.dtype_name(array), "int16")
        array = self.ctx.zeros_like(array, dtype=dtype("float64"))
        self.assertEqual(support.dtype_name(array), "float64")

    def test_a_device_or_a_layout_that_is_not_this_is_an_error(self):
        own = self.ctx.get_device()
        self.ctx.zeros(1, device=own)
        other = "cuda:0" if str(own) == "cpu" else "cpu"
        with self.assertRaisesRegex(
            RuntimeError, "Device mismatch: requested"
        ):
            self.ctx.zeros(1, device=other)
        layout = "sparse"
        if support.ARRAYS == "torch":
            layout = support.library().sparse_coo
        with self.assertRaisesRegex(ValueError, "Layout .* not supported"):
            self.ctx.zeros(1, layout=layout)


class Out(support.TestCase):
    def test_out_of_the_same_shape_is_what_comes_back(self):
        out = self.ctx.zeros(2, 3)
        self.assertIs(self.ctx.ones(2, 3, out=out), out)
        self.assertTrue((out == 1).all())
        self.assertIs(self.ctx.full((2, 3), 4, out=out, dtype=out.dtype), out)
        self.assertTrue((out == 4).all())
        self.ctx.randn(2, 3, out=out)
        self.assertFalse((out == 4).any())

    def test_out_of_another_shape_is_the_same_memory(self):
        out = self.ctx.zeros(6)
        array = self.ctx.ones(2, 3, out=out)
        self.assertEqual(tuple(array.shape), (2, 3))
        self.assertEqual(support.address(array), support.address(out))
        self.assertEqual(plain(out), [1] * 6)

    def test_an_out_that_does_not_do_is_an_error(self):
        out = self.ctx.zeros(6)
        elsewhere = support.library().zeros(6, dtype=dtype("float32"))
        with self.assertRaisesRegex(RuntimeError, "6.*7"):
            self.ctx.zeros(7, out=out)
        with self.assertRaisesRegex(RuntimeError, "f32.*i32"):
            self.ctx.zeros(6, out=out, dtype=dtype("int32"))
        with self.assertRaisesRegex(RuntimeError, "heap"):
            self.ctx.zeros(6, out=elsewhere)


class Symmetric(support.TestCase):
    def test_tensors_have_the_same_place_on_every_rank(self):
        array = self.ctx.zeros(100)
        base = self.ctx.heap_bases_list()[self.rank]
        offset = support.address(array) - base
        self.assertEqual(self.ctx.broadcast(offset), offset)

    def test_only_what_is_on_the_heap_is_symmetric(self):
        array = self.ctx.zeros(4, 6)
        self.assertTrue(self.ctx.is_symmetric(array[1:, ::2]))
        outside = support.library().zeros(4)
        self.assertFalse(self.ctx.is_symmetric(outside))

    def test_what_is_written_to_a_peers_memory_arrives(self):
        array = self.ctx.full((4, 3), -1, dtype=dtype("int32"))
        self.ctx.barrier()
        peer = (self.rank + 1) % self.ranks
        view = self.ctx.as_remote(array[1:, ::2], peer)
        bases = self.ctx.heap_bases_list()
        self.assertEqual(
            support.address(view) - bases[peer],
            support.address(array[1:, ::2]) - bases[self.rank],
        )
        view[:] = self.rank
        self.ctx.barrier()
        left = (self.rank - 1) % self.ranks
        self.assertEqual(plain(array[0]), [-1] * 3)
        self.assertEqual(plain(array[1:]), [[left, -1, left]] * 3)

    def test_as_remote_refuses_a_wrong_rank_and_a_wrong_tensor(self):
        array = self.ctx.zeros(4)
        for rank in (-1, self.ranks):
            with self.assertRaisesRegex(ValueError, str(rank)):
                self.ctx.as_remote(array, rank)
        with self.assertRaisesRegex(ValueError, "heap"):
            self.ctx.as_remote(support.library().zeros(4), 0)

    def test_as_symmetric_brings_the_contents(self):
        outside = support.library().arange(12).reshape(3, 4) + self.rank
        array = self.ctx.as_symmetric(outside)
        self.assertTrue(self.ctx.is_symmetric(array))
        self.assertEqual(plain(array), plain(outside))
        view = self.ctx.as_remote(array, 0)
        self.assertEqual(int(view[0][0]), 0)
        self.ctx.barrier()


@support.needs_torch
class Torch(support.TestCase):
    def test_memory_formats_are_torchs(self):
        import torch

        for shape, format in (
            ((2, 3, 4, 5), torch.channels_last),
            ((2, 3, 4, 5, 6), torch.channels_last_3d),
        ):
            like = torch.empty(shape, memory_format=format)
            for array in (
                self.ctx.zeros_like(like),
                self.ctx.empty(shape, memory_format=format),
            ):
                self.assertEqual(array.stride(), like.stride())
            array = self.ctx.zeros_like(
                like, memory_format=torch.contiguous_format
            )
            self.assertTrue(array.is_contiguous())

    def test_empty_is_filled_where_torch_is_deterministic(self):
        import torch

        kinds = "int8 uint8 int16 int32 int64 uint16 uint32 uint64".split()
        kinds = [getattr(torch, name, None) for name in kinds]
        cases = [(kind, torch.iinfo(kind).max) for kind in kinds if kind]
        cases.append((torch.bool, True))
        for name in "float16 bfloat16 float32 float64 complex64".split():
            cases.append((getattr(torch, name), math.nan))
        torch.use_deterministic_algorithms(True)
        self.addCleanup(torch.use_deterministic_algorithms, False)
        for kind, value in cases:
            wanted = torch.full((3, 5), value, dtype=kind).tolist()
            out = self.ctx.zeros(15, dtype=kind)
            for array in (
                self.ctx.empty(3, 5, dtype=kind),
                self.ctx.empty(3, 5, dtype=kind, out=out),
                self.ctx.allocate_symmetric(3, 5, dtype=kind)[0],
            ):
                with self.subTest(kind=kind):
                    self.assertEqual(str(array.tolist()), str(wanted))

    def test_empty_leaves_memory_alone_where_the_flags_say_so(self):
        import torch

        out = self.ctx.full((4,), 7.0)
        self.assertEqual(plain(self.ctx.empty(4, out=out)), [7.0] * 4)
        if not hasattr(torch.utils, "deterministic"):
            return  # Torch 1 has one flag only.
        torch.use_deterministic_algorithms(True)
        self.addCleanup(torch.use_deterministic_algorithms, False)
        flags = torch.utils.deterministic
        self.addCleanup(setattr, flags, "fill_uninitialized_memory", True)
        flags.fill_uninitialized_memory = False
        self.assertEqual(plain(self.ctx.empty(4, out=out)), [7.0] * 4)
        flags.fill_uninitialized_memory = True
        self.assertTrue(self.ctx.empty(4, out=out).isnan().all())

    def test_gradients_are_recorded(self):
        array = self.ctx.full((3,), 2.0, requires_grad=True)
        (array * array).sum().backward()
        self.assertEqual(plain(array.grad), [4, 4, 4])

    def test_every_function_takes_torchs_arguments(self):
        import torch

        common = {"layout": torch.strided, "device": self.ctx.get_device()}
        for name, given in (
            ("empty", (2,)), ("zeros", (2,)), ("ones", (2,)), ("rand", (2,)),
            ("randn", (2,)), ("full", ((2,), 1.0)), ("arange", (0.0, 2.0)),
            ("linspace", (0, 1, 2)), ("zeros_like", (torch.ones(2),)),
        ):
            make = getattr(self.ctx, name)
            made = make(*given, requires_grad=True, **common)
            self.assertTrue(made.requires_grad and made.is_leaf, name)
            self.assertFalse(make(*given, **common).requires_grad, name)
            with self.assertRaisesRegex(ValueError, "Layout torch.sparse_coo"):
                make(*given, layout=torch.sparse_coo)
        for name, given in ("rand", (9,)), ("randint", (1000, (9,))):
            twice = [
                plain(
                    getattr(self.ctx, name)(
                        *given, generator=torch.Generator().manual_seed(5)
                    )
                )
                for _ in range(2)
            ]
            self.assertEqual(*twice)

    def test_bfloat16_and_complex_are_there(self):
        import torch

        array = self.ctx.full((3,), 1.5, dtype=torch.bfloat16)
        self.assertEqual(array.dtype, torch.bfloat16)
        self.assertEqual(plain(array), [1.5] * 3)
        array = self.ctx.full((2,), 1 + 2j, dtype=torch.complex128)
        self.assertEqual(plain(array), [1 + 2j] * 2)

    def test_torchs_default_dtype_is_the_default(self):
        import torch

        torch.set_default_dtype(torch.float64)
        try:
            for array, kind in (
                (self.ctx.zeros(2), torch.float64),
                (self.ctx.arange(2.0), torch.float64),
                (self.ctx.full((1,), 1j), torch.complex128),
            ):
                self.assertEqual(array.dtype, kind)
        finally:
            torch.set_default_dtype(torch.float32)

    def test_torchs_seed_decides_random_numbers(self):
        import torch

        torch.manual_seed(3)
        first = plain(self.ctx.rand(8))
        second = plain(self.ctx.rand(8))
        torch.manual_seed(3)
        self.assertEqual(plain(self.ctx.rand(8)), first)
        self.assertNotEqual(first, second)

    def test_values_are_torchs(self):
        import torch

        for name in ("int32", "int64", "float16", "float32", "float64"):
            kind = getattr(torch, name)
            for numbers in ((0, 17, 3), (5, -6, -2)):
                self.assertTrue(
                    torch.equal(
                        self.ctx.arange(*numbers, dtype=kind).cpu(),
                        torch.arange(*numbers, dtype=kind),
                    )
                )

    def test_linspace_is_torchs_bit_for_bit(self):
        import torch

        for name, digest in LINSPACES.items():
            kind = getattr(torch, name)
            ours = [self.ctx.linspace(*line, dtype=kind).cpu() for line in LINES]
            self.assertEqual(digest_of(ours), digest, name)

    def test_linspace_is_this_torchs(self):
        import torch

        # Older ones compute otherwise, and so does any without FMA.
        version = tuple(map(int, torch.__version__.split(".")[:2]))
        if version < (2, 9):
            self.skipTest("torch before 2.9 computes otherwise")
        with open("/proc/cpuinfo", encoding="utf-8") as file:
            if "FMA" not in file.read().upper():
                self.skipTest("torch does not fuse on this CPU")
        for name in LINSPACES:
            kind = getattr(torch, name)
            if kind in (torch.float16, torch.bfloat16) and version > (2, 9):
                continue  # 2.15 has the step of these in float32
            for line in LINES:
                ours = self.ctx.linspace(*line, dtype=kind).cpu()
                self.assertTrue(
                    torch.equal(ours, torch.linspace(*line, dtype=kind)),
                    f"{name} {line}",
                )


if __name__ == "__main__":
    unittest.main()
