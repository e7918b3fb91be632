/* SPDX-License-Identifier: MIT
 *
 * HIP's NVIDIA platform, as far as this library needs it: exactly the HIP calls
 * that it makes, on the CUDA runtime and, if that has no such call, the driver.
 * (HIP's own headers do not compile with CUDA 13.)
 */
#ifndef IRIS_SRC_BACKEND_HIP_HIP_NVIDIA_H
#define IRIS_SRC_BACKEND_HIP_HIP_NVIDIA_H

#include <cuda.h>
#include <cuda_runtime_api.h>

#include <stdint.h>
#include <stdlib.h>

/* ---- Errors ---- */

/* The types of the runtime and the driver differ, but their numbers are the
 * same. */
#define hipError_t unsigned
#define hipSuccess 0U
#define hipErrorNotReady cudaErrorNotReady
#define hipErrorUnknown cudaErrorUnknown
#define hipErrorOutOfMemory cudaErrorMemoryAllocation
#define hipErrorPeerAccessAlreadyEnabled cudaErrorPeerAccessAlreadyEnabled
#define hipErrorNotFound cudaErrorSymbolNotFound
#define hipErrorInvalidImage cudaErrorInvalidKernelImage
#define hipErrorNoBinaryForGpu cudaErrorNoKernelImageForDevice
#define hipErrorNotSupported cudaErrorNotSupported
#define hipErrorInvalidDevice cudaErrorInvalidDevice
#define hipErrorInvalidValue cudaErrorInvalidValue
#define hipErrorStreamCaptureUnsupported cudaErrorStreamCaptureUnsupported
#define hipErrorStreamCaptureImplicit cudaErrorStreamCaptureImplicit
#define hipGetErrorName cudaGetErrorName
#define hipGetErrorString cudaGetErrorString
#define hipGetLastError cudaGetLastError
#define hipPeekAtLastError cudaPeekAtLastError

/* ---- Devices ---- */

#define hipGetDeviceCount cudaGetDeviceCount
#define hipDeviceGetPCIBusId cudaDeviceGetPCIBusId
#define hipDeviceCanAccessPeer cudaDeviceCanAccessPeer
#define hipDeviceEnablePeerAccess cudaDeviceEnablePeerAccess
#define hipRuntimeGetVersion cudaRuntimeGetVersion
#define hipDriverGetVersion cudaDriverGetVersion
#define hipDeviceGetP2PAttribute cudaDeviceGetP2PAttribute
#define hipDevP2PAttrNativeAtomicSupported cudaDevP2PAttrNativeAtomicSupported
#define hipDeviceTotalMem cuDeviceTotalMem
#define hipDeviceGetAttribute cudaDeviceGetAttribute
#define hipDeviceAttribute_t enum cudaDeviceAttr
#define hipDeviceAttributeMultiprocessorCount cudaDevAttrMultiProcessorCount
#define hipDeviceAttributeWarpSize cudaDevAttrWarpSize
#define hipDeviceAttributePageableMemoryAccess cudaDevAttrPageableMemoryAccess
#define hipCtx_t CUcontext
#define hipDevicePrimaryCtxRetain cuDevicePrimaryCtxRetain
#define hipCtxPushCurrent cuCtxPushCurrent
#define hipCtxPopCurrent cuCtxPopCurrent
#define hipDeviceGetName cuDeviceGetName

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
#define hipMemcpy2DAsync cudaMemcpy2DAsync
#define hipMemcpyDefault cudaMemcpyDefault
#define hipMemsetAsync cudaMemsetAsync
#define hipPointerAttribute_t struct cudaPointerAttributes
#define hipPointerGetAttributes cudaPointerGetAttributes
#define hipMemoryTypeDevice cudaMemoryTypeDevice
#define hipMemoryTypeUnregistered cudaMemoryTypeUnregistered
#define hipIpcMemHandle_t cudaIpcMemHandle_t
#define hipIpcGetMemHandle cudaIpcGetMemHandle
#define hipIpcOpenMemHandle cudaIpcOpenMemHandle
#define hipIpcCloseMemHandle cudaIpcCloseMemHandle
#define hipIpcMemLazyEnablePeerAccess cudaIpcMemLazyEnablePeerAccess

/* All memory of an NVIDIA GPU is fine-grained. */
#define hipDeviceMallocFinegrained 0
#define hipExtMallocWithFlags(ptr, bytes, flags) \
    ((void)(flags), cudaMalloc(ptr, bytes))

typedef void *hipDeviceptr_t;
static inline hipError_t
hipMemGetAddressRange(hipDeviceptr_t *base, size_t *bytes, hipDeviceptr_t ptr)
{
    CUdeviceptr start;
    CUresult ret = cuMemGetAddressRange(&start, bytes, (CUdeviceptr)ptr);

    *base = (void *)start;
    return ret;
}

/* ---- Virtual memory ---- */

#define hipMemGenericAllocationHandle_t CUmemGenericAllocationHandle
#define hipMemAllocationProp CUmemAllocationProp
#define requestedHandleType requestedHandleTypes
#define hipMemAllocationType CUmemAllocationType
#define hipMemAllocationTypePinned CU_MEM_ALLOCATION_TYPE_PINNED
#define hipMemLocationTypeDevice CU_MEM_LOCATION_TYPE_DEVICE
#define hipMemHandleTypePosixFileDescriptor \
    CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR
#define hipMemAllocationGranularityRecommended \
    CU_MEM_ALLOC_GRANULARITY_RECOMMENDED
#define hipMemAccessDesc CUmemAccessDesc
#define hipMemAccessFlagsProtReadWrite CU_MEM_ACCESS_FLAGS_PROT_READWRITE
#define hipMemGetAllocationGranularity cuMemGetAllocationGranularity

static inline hipError_t hipMemAddressReserve(void **ptr, size_t bytes,
                                              size_t alignment, void *hint,
                                              unsigned long long flags)
{
    CUdeviceptr start = 0;
    CUresult ret =
        cuMemAddressReserve(&start, bytes, alignment, (CUdeviceptr)hint, flags);

    *ptr = (void *)start;
    return ret;
}

#define hipMemAddressFree(ptr, bytes) \
    cuMemAddressFree((CUdeviceptr)(ptr), bytes)
#define hipMemCreate cuMemCreate
#define hipMemRelease cuMemRelease
#define hipMemMap(ptr, bytes, offset, handle, flags) \
    cuMemMap((CUdeviceptr)(ptr), bytes, offset, handle, flags)
#define hipMemUnmap(ptr, bytes) cuMemUnmap((CUdeviceptr)(ptr), bytes)
#define hipMemSetAccess(ptr, bytes, access, count) \
    cuMemSetAccess((CUdeviceptr)(ptr), bytes, access, count)
#define hipMemExportToShareableHandle cuMemExportToShareableHandle
#define hipMemImportFromShareableHandle cuMemImportFromShareableHandle
#define hipMemRetainAllocationHandle cuMemRetainAllocationHandle
#define hipMemGetAllocationPropertiesFromHandle \
    cuMemGetAllocationPropertiesFromHandle

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
#define hipStreamWaitEvent cudaStreamWaitEvent
#define hipStreamAddCallback cudaStreamAddCallback
#define hipStreamIsCapturing cudaStreamIsCapturing
#define hipStreamCaptureStatus enum cudaStreamCaptureStatus
#define hipStreamCaptureStatusNone cudaStreamCaptureStatusNone
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

/* A default stream belongs to the current device. (The runtime has this call
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
    return ret;
}

#define hipStreamWriteValue64(stream, ptr, value, flags) \
    cuStreamWriteValue64(stream, (CUdeviceptr)(ptr), value, flags)
#define hipStreamWaitValueGte CU_STREAM_WAIT_VALUE_GEQ
#define hipStreamWaitValueEq CU_STREAM_WAIT_VALUE_EQ
#define hipStreamWaitValue64(stream, ptr, value, flags, mask) \
    cuStreamWaitValue64(stream, (CUdeviceptr)(ptr), value, flags)

/* ---- Code ---- */

#define hipModule_t CUmodule
#define hipFunction_t CUfunction
#define HIP_LAUNCH_PARAM_BUFFER_POINTER CU_LAUNCH_PARAM_BUFFER_POINTER
#define HIP_LAUNCH_PARAM_BUFFER_SIZE CU_LAUNCH_PARAM_BUFFER_SIZE
#define HIP_LAUNCH_PARAM_END CU_LAUNCH_PARAM_END
#define hipModuleLoadData cuModuleLoadData
#define hipModuleGetFunction cuModuleGetFunction
#define hipModuleLaunchKernel cuLaunchKernel
#define hipLaunchKernel cudaLaunchKernel

#endif /* IRIS_SRC_BACKEND_HIP_HIP_NVIDIA_H */
