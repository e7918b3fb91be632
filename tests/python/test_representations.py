# SPDX-License-Identifier: MIT
"""Arrays whose memory does not have the values that the program sees: each way
into the library takes the values or refuses the array."""

import unittest

import support
from support import plain

torch = support.library() if support.ARRAYS == "torch" else None


def kinds_of_numpy():
    """Pairs of an array and of the same elements in a plain one."""
    import numpy

    line = numpy.arange(1, 5, dtype="float32")
    bytes = numpy.zeros(17, dtype="uint8")
    unaligned = bytes[1:].view("float32")
    unaligned[:] = line
    rows = numpy.zeros(4, dtype=[("a", "float32"), ("b", "uint8")])
    rows["a"] = line
    readonly = line.copy()
    readonly.flags.writeable = False
    foreign = (line * (1 + 2j)).astype(">c8")
    return {
        "plain": (line, line),
        "big-endian": (line.astype(">f4"), line),
        "big-endian complex": (foreign, foreign.astype("complex64")),
        "big-endian integers": (line.astype(">i8"), line.astype("int64")),
        "unaligned": (unaligned, line),
        "a field": (rows["a"], line),
        "a matrix": (numpy.matrix(line), line[None]),
        "read-only": (readonly, line),
        "no elements": (line[:0].astype(">f4"), line[:0]),
        "no dimensions": (numpy.array(7, ">f4"), numpy.array(7, "float32")),
    }


def kinds_of_torch():
    """The same of torch."""
    line = torch.arange(1.0, 5)
    numbers = line * torch.tensor(1 + 2j)
    bytes = torch.zeros(17, dtype=torch.uint8).numpy()
    unaligned = torch.frombuffer(bytes, dtype=torch.float32, offset=1)
    unaligned.copy_(line)
    return {
        "plain": (line, line),
        "conjugate": (numbers.conj(), numbers.conj().resolve_conj()),
        "negative": (torch._neg_view(line), line * -1),
        "unaligned": (unaligned, line),
        "a parameter": (torch.nn.Parameter(line.clone()), line),
        "in autograd's graph": ((line.clone().requires_grad_() * 1), line),
        "no elements": (numbers[:0].conj(), numbers[:0]),
        "no dimensions": (numbers[0].conj(), numbers[0].conj().resolve_conj()),
    }


KINDS = kinds_of_torch() if torch else kinds_of_numpy()

#: The dtype of flags.
FLAG = torch.int64 if torch else "int64"

#: Those that the library may not write, but read.
RESOLVED = (
    "big-endian", "big-endian complex", "big-endian integers", "unaligned",
    "a field", "conjugate", "negative", "no dimensions",
)


def clone(array):
    """A plain array of the same dtype and shape."""
    return array.clone() if torch else array.copy()


def zeros(shape, like):
    if torch:
        return torch.zeros(shape, dtype=like.dtype)
    return support.library().zeros(shape, dtype=like.dtype)


class Foreign:
    """An array of another library, on a GPU that the job has not."""

    __cuda_array_interface__ = {"shape": (2,), "typestr": "<f4", "data": (8, False), "version": 3}

    def __dlpack_device__(self):
        return 2, 7

    def __dlpack__(self, **options):
        raise AssertionError("asked for its memory")


class Representations(support.TestCase):
    def each(self, names=None):
        """A subtest for each kind: an array, and its elements in a plain one."""
        for name, (array, wanted) in KINDS.items():
            if names is None or name in names:
                with self.subTest(kind=name):
                    yield array, wanted

    def on_heap(self, wanted):
        return self.ctx.zeros(tuple(wanted.shape), dtype=wanted.dtype)

    def check(self, array, wanted):
        self.assertEqual(tuple(array.shape), tuple(wanted.shape))
        self.assertEqual(plain(array), plain(wanted))

    def test_tensors_of_the_heap_get_the_values(self):
        for array, wanted in self.each():
            made = self.ctx.as_symmetric(array)
            self.check(made, wanted)
            self.assertEqual(made.dtype, wanted.dtype)
            self.check(self.ctx.zeros_like(array), wanted * 0)

    def test_copies_have_the_values(self):
        for array, wanted in self.each():
            out = self.on_heap(wanted)
            self.ctx.copy(out, array)
            self.check(out, wanted)
            out = self.on_heap(wanted)
            self.ctx.put(array, self.rank, out)
            self.check(out, wanted)
            if len(wanted.shape) == 1:
                out = self.on_heap(wanted)
                self.ctx.put_tile(array, self.rank, out, len(wanted))
                self.check(out, wanted)

    def test_broadcasts_have_the_values(self):
        for array, wanted in self.each():
            got = self.ctx.broadcast(array, src=self.ranks - 1)
            self.assertEqual(got.tolist(), plain(wanted))

    @staticmethod
    def whole(array):
        """Contiguous: collectives refuse other strides themselves."""
        kept = array.contiguous() if torch else array
        return kept if torch or array.flags.c_contiguous else array.copy()

    def test_collectives_read_the_values(self):
        ccl, last = self.ctx.ccl, self.ranks - 1
        here = self.rank == last
        for array, wanted in self.each():
            array = self.whole(array)
            count = wanted.numel() if torch else wanted.size
            shape = (self.ranks, *wanted.shape)
            out = zeros(wanted.shape, wanted)
            ccl.all_reduce(out, array)
            self.check(out, wanted * self.ranks)
            ccl.broadcast(out, array, last)
            self.check(out, wanted)
            out = zeros(wanted.shape, wanted)
            ccl.reduce(out if here else None, array, last)
            self.check(out, wanted * (self.ranks if here else 0))
            out = zeros(shape, wanted)
            ccl.gather(out if here else None, array, last)
            for part in out:
                self.check(part, wanted * int(here))
            out = zeros((self.ranks * count,), wanted)
            ccl.all_gatherv(out, array, [count] * self.ranks)
            for part in out.reshape(shape):
                self.check(part, wanted)
            ahead = (self.rank + 1) % self.ranks
            behind = (self.rank - 1) % self.ranks
            out = zeros(wanted.shape, wanted)
            ccl.send_recv(out, array, ahead, behind)
            self.check(out, wanted)

    def test_products_read_the_values(self):
        for array, wanted in self.each(
            ("big-endian", "unaligned", "negative", "a field")
        ):
            ones = zeros((4, 4), wanted) + 1
            a, out = array.reshape(1, 4), self.ctx.zeros(1, 4)
            self.ctx.ops.matmul_all_reduce(out, a, ones)
            total = float(wanted.sum())
            self.check(out, zeros((1, 4), wanted) + total * self.ranks)
            self.ctx.ops.matmul_all_reduce(
                out, ones[:1] * 0, ones, array, bias_by_row=False
            )
            self.check(out[0], wanted)

    def test_outputs_are_refused(self):
        for array, wanted in self.each(RESOLVED):
            value, ccl = clone(wanted), self.ctx.ccl
            calls = (
                lambda: self.ctx.copy(array, value),
                lambda: ccl.all_reduce(array, value),
                lambda: ccl.recv(array, self.rank),
                lambda: ccl.broadcast(array, value),
                lambda: self.ctx.put(array, self.rank),
                lambda: self.ctx.get(array, self.rank),
                lambda: self.ctx.as_remote(array, self.rank),
                lambda: self.ctx.address_map(array),
                lambda: self.ctx.zeros(*wanted.shape, out=array),
            )
            for number, refused in enumerate(calls):
                with self.subTest(call=number):
                    with self.assertRaisesRegex(ValueError, "in place|aligned"):
                        refused()

    def test_outputs_that_are_read_only_or_overlap_are_refused(self):
        if torch:
            arrays = [torch.ones(1).expand(4)]
            arrays.append(torch.ones(5).as_strided((2, 2), (1, 1)))
        else:
            numpy = support.library()
            step = numpy.lib.stride_tricks.as_strided
            arrays = [KINDS["read-only"][0]]
            arrays.append(step(numpy.ones(1, "float32"), (4,), (0,)))
        for array in arrays:
            value = zeros(array.shape, array)
            for refused in (
                lambda: self.ctx.copy(array, value),
                lambda: self.ctx.ccl.all_reduce(array, value),
                lambda: self.ctx.zeros(*array.shape, out=array),
                lambda: self.ctx.get(self.on_heap(value), self.rank, array),
            ):
                with self.assertRaisesRegex(
                    ValueError, "read-only|overlap|not contiguous"
                ):
                    refused()

    def test_what_has_no_such_memory_is_refused(self):
        if torch:
            eye = torch.eye(2)
            arrays = [
                eye.to_sparse(),
                torch.empty(2, device="meta"),
                torch.quantize_per_tensor(eye, 0.1, 0, torch.qint8),
                torch.zeros(2, dtype=torch.complex32),
                torch.nested.nested_tensor([eye[0], eye[0, :1]]),
                [1.0],
                Foreign(),
            ]
        else:
            numpy = support.library()
            arrays = [
                numpy.ma.masked_array([1.0, 2.0], [0, 1]),
                numpy.array([None]),
                numpy.array(["a"]),
                numpy.array(["2020-01-01"], "datetime64[s]"),
                numpy.zeros(2, dtype=[("a", "f4")]),
                numpy.zeros(2, "longdouble"),
                [1.0],
                Foreign(),
            ]
        value = self.ctx.zeros(2)
        for array in arrays:
            for refused in (
                lambda: self.ctx.as_symmetric(array),
                lambda: self.ctx.copy(value, array),
                lambda: self.ctx.put(array, self.rank, value),
                lambda: self.ctx.ccl.all_reduce(value, array),
                lambda: self.ctx.ccl.all_reduce(array, value),
                lambda: self.ctx.ops.matmul_all_reduce(value, array, value),
            ):
                with self.assertRaisesRegex(
                    (TypeError, RuntimeError),
                    "not a type|layout|Device mismatch|masked|is needed",
                ):
                    refused()

    def test_a_value_that_cannot_be_sent_fails_on_all_ranks(self):
        with self.assertRaisesRegex(TypeError, "rank 0 cannot send"):
            self.ctx.broadcast(lambda: None, src=0)

    def test_dtypes_of_another_byte_order_are_refused(self):
        if not torch:
            with self.assertRaisesRegex(TypeError, "byte order"):
                self.ctx.zeros(2, dtype=support.library().dtype(">f4"))

    @support.needs_torch
    def test_a_wrapper_of_another_tensor_is_refused(self):
        class Wrapper(torch.Tensor):
            @staticmethod
            def __new__(cls):
                return torch.Tensor._make_wrapper_subclass(cls, (2,))

            @classmethod
            def __torch_dispatch__(cls, function, types, args=(), named=None):
                raise NotImplementedError

        with self.assertRaisesRegex(TypeError, "no memory of its own"):
            self.ctx.as_symmetric(Wrapper())

    def test_copies_of_reversed_and_spread_arrays_have_the_values(self):
        line = zeros((6,), KINDS["plain"][0])
        line[:] = self.ctx.arange(6, dtype=line.dtype)
        if not torch:
            self.check(self.ctx.as_symmetric(line[::-1]), line[::-1].copy())
        out = self.on_heap(line[::2])
        self.ctx.copy(out, line[::2])
        self.check(out, line[::2])


class Empty(support.TestCase):
    """Tensors without elements: valid, in all calls, and compared."""

    def test_copies_of_nothing_are_valid(self):
        own, full = zeros((0, 4), KINDS["plain"][0]), self.ctx.ones(4, 4)
        for none in (self.ctx.zeros(0, 4), full[2:2], full[4:], full[:, 1:1]):
            self.ctx.put(none, self.rank)
            self.ctx.get(none, self.rank)
            if tuple(none.shape) == (0, 4):
                self.ctx.put(own, self.rank, none)
                self.ctx.get(none, self.rank, own)
            self.ctx.as_remote(none, self.rank)
            self.ctx.address_map(none)
            self.assertTrue(self.ctx.is_symmetric(none))
        self.assertEqual(plain(full), [[1.0] * 4] * 4)

    def test_a_put_of_nothing_signals(self):
        flag = self.ctx.zeros(1, dtype=FLAG)
        none = self.ctx.zeros(0)
        self.ctx.put(none, self.rank, none, signal_flag=flag, signal_value=3)
        self.ctx.wait(flag, 3)
        with self.assertRaisesRegex(ValueError, "no element"):
            self.ctx.signal(self.ctx.zeros(0, dtype=FLAG), self.rank)

    def test_collectives_of_nothing_are_valid(self):
        ccl, none = self.ctx.ccl, zeros((0,), KINDS["plain"][0])
        counts = [0] * self.ranks
        for call in (
            lambda: ccl.all_reduce(none, none),
            lambda: ccl.all_gather(none, none),
            lambda: ccl.reduce_scatter(none, none),
            lambda: ccl.all_to_all(none, none),
            lambda: ccl.broadcast(none, none),
            lambda: ccl.reduce(none, none),
            lambda: ccl.reduce(none if self.rank == 0 else None, none),
            lambda: ccl.gather(none, none),
            lambda: ccl.scatter(none, none),
            lambda: ccl.all_gatherv(none, none, counts),
            lambda: ccl.all_to_allv(none, none, counts, counts),
            lambda: ccl.send_recv(none, none, self.rank, self.rank),
        ):
            call()

    def test_one_member_without_elements_takes_part(self):
        count = 0 if self.rank == 0 else 2
        given = zeros((count,), KINDS["plain"][0]) + self.rank
        out = zeros((2 * self.ranks - 2,), given)
        counts = [0] + [2] * (self.ranks - 1)
        self.ctx.ccl.all_gatherv(out, given, counts)
        wanted = [float(rank) for rank in range(1, self.ranks)]
        self.assertEqual(plain(out), sorted(wanted * 2))


if __name__ == "__main__":
    unittest.main()
