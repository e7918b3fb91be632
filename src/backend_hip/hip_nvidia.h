/* SPDX-License-Identifier: MIT
 *
 * HIP's NVIDIA platform, as far as this library goes: exactly the HIP calls it
 * makes, on the CUDA runtime and, where that has no such call, the driver.
 * (HIP's own headers do not compile against CUDA 13.)
 */
#ifndef IRIS_SRC_BACKEND_HIP_HIP_NVIDIA_H
#define IRIS_SRC_BACKEND_HIP_HIP_NVIDIA_H

#include <cuda.h>
#include <cuda_runtime_api.h>

#include <stdint.h>
#include <stdlib.h>

/* ---- Errors; the driver's numbers are the runtime's ---- */

#define hipError_t cudaError_t
#define hipSuccess cudaSuccess
#define hipErrorNotReady cudaErrorNotReady
#define hipErrorOutOfMemory cudaErrorMemoryAllocation
#define hipErrorPeerAccessAlreadyEnabled cudaErrorPeerAccessAlreadyEnabled
#define hipErrorNotFound cudaErrorSymbolNotFound
#define hipErrorInvalidImage cudaErrorInvalidKernelImage
#define hipErrorNoBinaryForGpu cudaErrorNoKernelImageForDevice
#define hipErrorNotSupported cudaErrorNotSupported
#define hipErrorInvalidValue cudaErrorInvalidValue
#define hipErrorStreamCaptureUnsupported cudaErrorStreamCaptureUnsupported
#define hipErrorStreamCaptureInvalidated cudaErrorStreamCaptureInvalidated
#define hipErrorStreamCaptureImplicit cudaErrorStreamCaptureImplicit
#define hipGetErrorName cudaGetErrorName
#define hipGetErrorString cudaGetErrorString
#define hipGetLastError cudaGetLastError

/* ---- Devices ---- */

#define hipGetDeviceCount cudaGetDeviceCount
#define hipDeviceGetPCIBusId cudaDeviceGetPCIBusId
#define hipDeviceGetByPCIBusId cudaDeviceGetByPCIBusId
#define hipDeviceCanAccessPeer cudaDeviceCanAccessPeer
#define hipDeviceEnablePeerAccess cudaDeviceEnablePeerAccess
#define hipRuntimeGetVersion cudaRuntimeGetVersion
#define hipDriverGetVersion cudaDriverGetVersion
#define hipDeviceGetP2PAttribute cudaDeviceGetP2PAttribute
#define hipDevP2PAttrNativeAtomicSupported cudaDevP2PAttrNativeAtomicSupported
static inline cudaError_t hipDeviceTotalMem(size_t *bytes_p, int device)
{
    struct cudaDeviceProp prop;
    cudaError_t error = cudaGetDeviceProperties(&prop, device);

    *bytes_p = error == cudaSuccess ? prop.totalGlobalMem : 0;
    return error;
}
#define hipDeviceGetAttribute cudaDeviceGetAttribute
#define hipDeviceAttribute_t enum cudaDeviceAttr
#define hipDeviceAttributeMultiprocessorCount cudaDevAttrMultiProcessorCount
#define hipDeviceAttributeWarpSize cudaDevAttrWarpSize

#define hipCtx_t CUcontext

static inline hipError_t hipDevicePrimaryCtxRetain(hipCtx_t *ctx, int device)
{
    return (hipError_t)cuDevicePrimaryCtxRetain(ctx, device);
}

static inline hipError_t hipCtxPushCurrent(hipCtx_t ctx)
{
    return (hipError_t)cuCtxPushCurrent(ctx);
}

static inline hipError_t hipCtxPopCurrent(hipCtx_t *ctx)
{
    return (hipError_t)cuCtxPopCurrent(ctx);
}

static inline hipError_t hipDeviceGetName(char *name, int bytes, int device)
{
    return (hipError_t)cuDeviceGetName(name, bytes, device);
}

/* ---- Memory ---- */

#define hipFree cudaFree
#define hipHostFree cudaFreeHost
#define hipHostMalloc cudaHostAlloc
#define hipHostMallocMapped cudaHostAllocMapped
#define hipHostMallocPortable cudaHostAllocPortable
#define hipHostMallocCoherent 0
#define hipHostGetDevicePointer cudaHostGetDevicePointer
#define hipMemGetInfo cudaMemGetInfo
#define hipMemcpyAsync cudaMemcpyAsync
#define hipMemcpyDefault cudaMemcpyDefault
#define hipMemsetAsync cudaMemsetAsync
#define hipPointerAttribute_t struct cudaPointerAttributes
#define hipPointerGetAttributes cudaPointerGetAttributes
#define hipMemoryTypeUnregistered cudaMemoryTypeUnregistered
#define hipIpcMemHandle_t cudaIpcMemHandle_t
#define hipIpcGetMemHandle cudaIpcGetMemHandle
#define hipIpcOpenMemHandle cudaIpcOpenMemHandle
#define hipIpcCloseMemHandle cudaIpcCloseMemHandle
#define hipIpcMemLazyEnablePeerAccess cudaIpcMemLazyEnablePeerAccess

/* All memory of an NVIDIA GPU is fine-grained. */
#define hipDeviceMallocFinegrained 0
#define hipExtMallocWithFlags(ptr, bytes, flags) cudaMalloc(ptr, bytes)

typedef void *hipDeviceptr_t;
static inline hipError_t
hipMemGetAddressRange(hipDeviceptr_t *base, size_t *bytes, hipDeviceptr_t ptr)
{
    CUdeviceptr start;
    CUresult ret = cuMemGetAddressRange(&start, bytes, (CUdeviceptr)ptr);

    *base = (void *)start;
    return (hipError_t)ret;
}

/* ---- Memory by request ---- */

#define hipMemGenericAllocationHandle_t CUmemGenericAllocationHandle
#define hipMemAllocationProp CUmemAllocationProp
#define requestedHandleType requestedHandleTypes
#define hipMemAllocationTypePinned CU_MEM_ALLOCATION_TYPE_PINNED
#define hipMemLocationTypeDevice CU_MEM_LOCATION_TYPE_DEVICE
#define hipMemHandleTypePosixFileDescriptor \
    CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR
#define hipMemAllocationHandleType CUmemAllocationHandleType
#define hipMemAllocationGranularityRecommended \
    CU_MEM_ALLOC_GRANULARITY_RECOMMENDED
#define hipMemAllocationGranularity_flags CUmemAllocationGranularity_flags
#define hipMemAccessDesc CUmemAccessDesc
#define hipMemAccessFlagsProtReadWrite CU_MEM_ACCESS_FLAGS_PROT_READWRITE

static inline hipError_t
hipMemGetAllocationGranularity(size_t *bytes, const hipMemAllocationProp *prop,
                               hipMemAllocationGranularity_flags option)
{
    return (hipError_t)cuMemGetAllocationGranularity(bytes, prop, option);
}

static inline hipError_t hipMemAddressReserve(void **ptr, size_t bytes,
                                              size_t alignment, void *hint,
                                              unsigned long long flags)
{
    CUdeviceptr start = 0;
    CUresult ret =
        cuMemAddressReserve(&start, bytes, alignment, (CUdeviceptr)hint, flags);

    *ptr = (void *)start;
    return (hipError_t)ret;
}

static inline hipError_t hipMemAddressFree(void *ptr, size_t bytes)
{
    return (hipError_t)cuMemAddressFree((CUdeviceptr)ptr, bytes);
}

static inline hipError_t hipMemCreate(hipMemGenericAllocationHandle_t *handle,
                                      size_t bytes,
                                      const hipMemAllocationProp *prop,
                                      unsigned long long flags)
{
    return (hipError_t)cuMemCreate(handle, bytes, prop, flags);
}

static inline hipError_t hipMemRelease(hipMemGenericAllocationHandle_t handle)
{
    return (hipError_t)cuMemRelease(handle);
}

static inline hipError_t hipMemMap(void *ptr, size_t bytes, size_t offset,
                                   hipMemGenericAllocationHandle_t handle,
                                   unsigned long long flags)
{
    return (hipError_t)cuMemMap((CUdeviceptr)ptr, bytes, offset, handle, flags);
}

static inline hipError_t hipMemUnmap(void *ptr, size_t bytes)
{
    return (hipError_t)cuMemUnmap((CUdeviceptr)ptr, bytes);
}

static inline hipError_t hipMemSetAccess(void *ptr, size_t bytes,
                                         const hipMemAccessDesc *access,
                                         size_t count)
{
    return (hipError_t)cuMemSetAccess((CUdeviceptr)ptr, bytes, access, count);
}

static inline hipError_t hipMemExportToShareableHandle(
    void *shareable, hipMemGenericAllocationHandle_t handle,
    hipMemAllocationHandleType type, unsigned long long flags)
{
    return (hipError_t)cuMemExportToShareableHandle(shareable, handle, type,
                                                    flags);
}

static inline hipError_t
hipMemImportFromShareableHandle(hipMemGenericAllocationHandle_t *handle,
                                void *shareable,
                                hipMemAllocationHandleType type)
{
    return (hipError_t)cuMemImportFromShareableHandle(handle, shareable, type);
}

static inline hipError_t
hipMemRetainAllocationHandle(hipMemGenericAllocationHandle_t *handle, void *ptr)
{
    return (hipError_t)cuMemRetainAllocationHandle(handle, ptr);
}

static inline hipError_t
hipMemGetAllocationPropertiesFromHandle(hipMemAllocationProp *prop,
                                        hipMemGenericAllocationHandle_t handle)
{
    return (hipError_t)cuMemGetAllocationPropertiesFromHandle(prop, handle);
}

/* ---- Streams and graphs ---- */

#define hipStream_t cudaStream_t
#define hipStreamNonBlocking cudaStreamNonBlocking
#define hipStreamCreateWithFlags cudaStreamCreateWithFlags
#define hipStreamDestroy cudaStreamDestroy
#define hipStreamSynchronize cudaStreamSynchronize
#define hipStreamQuery cudaStreamQuery
#define hipEvent_t cudaEvent_t
#define hipEventDisableTiming cudaEventDisableTiming
#define hipEventCreateWithFlags cudaEventCreateWithFlags
#define hipEventDestroy cudaEventDestroy
#define hipEventRecord cudaEventRecord
#define hipEventQuery cudaEventQuery
#define hipStreamAddCallback cudaStreamAddCallback
#define hipStreamIsCapturing cudaStreamIsCapturing
#define hipStreamCaptureStatus enum cudaStreamCaptureStatus
#define hipStreamCaptureStatusNone cudaStreamCaptureStatusNone
#define hipStreamCaptureStatusActive cudaStreamCaptureStatusActive
#define hipStreamCaptureMode enum cudaStreamCaptureMode
#define hipStreamCaptureModeRelaxed cudaStreamCaptureModeRelaxed
#define hipThreadExchangeStreamCaptureMode cudaThreadExchangeStreamCaptureMode
#define hipStreamBeginCapture cudaStreamBeginCapture
#define hipStreamEndCapture cudaStreamEndCapture
#define hipGraph_t cudaGraph_t
#define hipGraphGetNodes cudaGraphGetNodes
#define hipGraphExec_t cudaGraphExec_t
#define hipGraphInstantiate(exec, graph, node, log, bytes) \
    cudaGraphInstantiate(exec, graph, 0)
#define hipGraphLaunch cudaGraphLaunch
#define hipGraphDestroy cudaGraphDestroy
#define hipGraphExecDestroy cudaGraphExecDestroy

/* A default stream is one of the current device. (The runtime has this call
 * since 12.8.) */
static inline hipError_t hipStreamGetDevice(hipStream_t stream, int *device)
{
    CUcontext context;
    CUresult ret = cuStreamGetCtx(stream, &context);

    if (ret == CUDA_SUCCESS) {
        ret = cuCtxPushCurrent(context);
    }
    if (ret == CUDA_SUCCESS) {
        ret = cuCtxGetDevice(device);
        (void)cuCtxPopCurrent(&context);
    }
    return (hipError_t)ret;
}

static inline hipError_t hipStreamWriteValue64(hipStream_t stream, void *ptr,
                                               uint64_t value, unsigned flags)
{
    return (hipError_t)cuStreamWriteValue64(stream, (CUdeviceptr)ptr, value,
                                            flags);
}

#define hipStreamWaitValueGte CU_STREAM_WAIT_VALUE_GEQ
#define hipStreamWaitValueEq CU_STREAM_WAIT_VALUE_EQ
static inline hipError_t hipStreamWaitValue64(hipStream_t stream, void *ptr,
                                              uint64_t value, unsigned flags,
                                              uint64_t mask)
{
    (void)mask;
    return (hipError_t)cuStreamWaitValue64(stream, (CUdeviceptr)ptr, value,
                                           flags);
}

/* ---- Code ---- */

#define hipModule_t CUmodule
#define hipFunction_t CUfunction
#define HIP_LAUNCH_PARAM_BUFFER_POINTER CU_LAUNCH_PARAM_BUFFER_POINTER
#define HIP_LAUNCH_PARAM_BUFFER_SIZE CU_LAUNCH_PARAM_BUFFER_SIZE
#define HIP_LAUNCH_PARAM_END CU_LAUNCH_PARAM_END

static inline hipError_t hipModuleLoadData(hipModule_t *module,
                                           const void *image)
{
    return (hipError_t)cuModuleLoadData(module, image);
}

/* Where the program has begun to use CUDA before this library could ask for
 * eager loading, a kernel is loaded when it is launched first, and that waits
 * for kernels that wait. HIP has no such call. Drivers before 12.4 have not
 * either: there the environment must say so (CUDA_MODULE_LOADING=EAGER). */
#if CUDA_VERSION >= 12040
extern __typeof__(cuModuleGetFunctionCount) cuModuleGetFunctionCount
    __attribute__((weak));
extern __typeof__(cuModuleEnumerateFunctions) cuModuleEnumerateFunctions
    __attribute__((weak));
extern __typeof__(cuFuncLoad) cuFuncLoad __attribute__((weak));
#endif

/* Bytes of its own that a lane may have at first. */
#define HIP_FIRST_LOCAL 1024

/* Takes memory for lanes' own, so many bytes each, now. Else the first launch
 * of a kernel that needs it does, and waits for kernels that wait. What there
 * is at first comes on top, for tools that change kernels, such as memcheck. */
static inline void hip_set_aside_local(size_t bytes)
{
    size_t has = 0;

    if (cudaDeviceGetLimit(&has, cudaLimitStackSize) == cudaSuccess &&
        has < bytes) {
        (void)cudaDeviceSetLimit(cudaLimitStackSize, bytes + HIP_FIRST_LOCAL);
    }
    (void)cudaGetLastError();
}

/* Loads all of a module's functions now, and takes what they need. One that
 * cannot be loaded says so when it is launched. The device is current. */
static inline void hip_load_functions(hipModule_t module)
{
#if CUDA_VERSION >= 12040
    CUfunction *functions;
    unsigned count = 0;
    int most = 0;

    if (cuModuleGetFunctionCount == NULL ||
        cuModuleEnumerateFunctions == NULL || cuFuncLoad == NULL ||
        cuModuleGetFunctionCount(&count, module) != CUDA_SUCCESS) {
        return;
    }
    functions = calloc(count, sizeof functions[0]);
    if (functions != NULL &&
        cuModuleEnumerateFunctions(functions, count, module) == CUDA_SUCCESS) {
        for (unsigned i = 0; i < count; i++) {
            int bytes = 0;

            (void)cuFuncLoad(functions[i]);
            (void)cuFuncGetAttribute(&bytes, CU_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES,
                                     functions[i]);
            most = bytes > most ? bytes : most;
        }
    }
    free(functions);
    hip_set_aside_local((size_t)most);
#else
    (void)module;
#endif
}

static inline hipError_t hipModuleGetFunction(hipFunction_t *function,
                                              hipModule_t module,
                                              const char *name)
{
    return (hipError_t)cuModuleGetFunction(function, module, name);
}

#define hipModuleLaunchKernel(...) (hipError_t) cuLaunchKernel(__VA_ARGS__)

#define hipLaunchKernel(entry, grid, block, args, lds_bytes, stream) \
    cudaLaunchKernel(entry, grid, block, args, lds_bytes, stream)

#endif /* IRIS_SRC_BACKEND_HIP_HIP_NVIDIA_H */
