# SPDX-License-Identifier: MIT
"""Recipe for Spack: copy the folder to packages/iris-c of a repository."""

from spack.package import *


class IrisC(AutotoolsPackage, CudaPackage, ROCmPackage):
    """Remote memory access for GPU kernels: kernels of one rank load, store, put
    and get in the heaps of the others. The same programs run on CPUs."""

    homepage = "https://github.com/ROCm/iris"  # whose model the library follows
    url = "file:///tmp/iris-0.1.0.tar.gz"  # no release has been published yet

    license("MIT")

    version("0.1.0")

    variant("mpi", default=True, description="Ranks started by mpirun")

    depends_on("c", type="build")
    depends_on("pkgconfig", type="build")
    depends_on("random123")
    depends_on("zlib-api")
    depends_on("openmpi", when="+mpi")
    depends_on("cuda@12.8:", when="+cuda")
    depends_on("hip", when="+rocm")
    depends_on("cmocka", type="test")

    conflicts("+cuda", when="+rocm", msg="one GPU platform for each build")

    def configure_args(self):
        spec = self.spec
        args = [
            "--with-random123=" + spec["random123"].prefix,
            "--with-zlib=" + spec["zlib-api"].prefix,
            "--without-blas",
        ]
        args += self.with_or_without("mpi")
        if "+cuda" in spec:
            archs = ",".join("sm_" + arch for arch in spec.variants["cuda_arch"].value)
            args += ["--with-backend=hip", "--with-hip-platform=nvidia",
                     "--with-cuda=" + spec["cuda"].prefix, "--with-gpu-arch=" + archs]
        elif "+rocm" in spec:
            archs = ",".join(spec.variants["amdgpu_target"].value)
            args += ["--with-backend=hip", "--with-hip-platform=amd",
                     "--with-rocm=" + spec["hip"].prefix, "--with-gpu-arch=" + archs]
        else:
            args.append("--with-backend=sim")
        return args
