# SPDX-License-Identifier: MIT
"""The calls of the library, and their errors as exceptions."""

import os
import re
import unittest

import iris_c
import support
from iris_c import _lib, _prototypes

MAP = os.path.join(os.path.dirname(__file__), "../../src/libiris.map")


class Library(support.TestCase):
    def test_every_public_call_is_declared_or_said_not_to_be_called(self):
        with open(MAP) as file:
            exported = set(re.findall(r"^ +(iris_\w+);", file.read(), re.M))
        declared = set(_prototypes.ROWS)
        self.assertEqual(exported, declared | set(_prototypes.NOT_CALLED))
        self.assertFalse(declared & set(_prototypes.NOT_CALLED))

    def test_the_package_has_the_version_of_the_library(self):
        project = os.path.join(os.path.dirname(MAP), "../python")
        with open(os.path.join(project, "pyproject.toml")) as file:
            (version,) = re.findall(r'^version = "(.*)"', file.read(), re.M)
        self.assertEqual(version, iris_c.__version__)

    def test_every_status_has_an_exception_of_its_own(self):
        for status in range(-15, 0):
            error = _lib.error_of(status)
            self.assertIn(
                error.status, _lib.call.iris_status_string(status).decode()
            )
            self.assertIsNot(type(error), iris_c.IrisError)
            self.assertTrue(str(error))

    def test_an_error_is_what_python_calls_it_with_the_librarys_text(self):
        with self.assertRaisesRegex(ValueError, "an allocation of 0 bytes"):
            self.ctx.malloc(0)
        with self.assertRaisesRegex(MemoryError, "raise heap_size="):
            self.ctx.malloc(1 << 40)
        with self.assertRaisesRegex(RuntimeError, "raise heap_size="):
            self.ctx.malloc(1 << 40)

    def test_a_setting_that_is_none_is_named_with_those_that_are(self):
        with self.assertRaisesRegex(ValueError, "heap_bytes allocator"):
            iris_c.iris(1 << 20, nosuch=1)
        with self.assertRaisesRegex(ValueError, 'allocator="bogus"'):
            iris_c.iris(1 << 20, "bogus")


if __name__ == "__main__":
    unittest.main()
