# The CUDA kernels, with -DENG_CUDA=ON and nvcc: an object of each source for sm_90a, and PTX for later chips,
# in eng_kernels. Without it kernels/cuda/no_device.c stands in their place.
option(ENG_CUDA "Build the CUDA kernels" OFF)
set(ENG_NVCC_FLAGS -lineinfo CACHE STRING "More flags for nvcc")
if(NOT ENG_CUDA)
    return()
endif()
if(NOT ENG_NVCC)
    message(FATAL_ERROR "ENG_CUDA: nvcc not found")
endif()
get_filename_component(cuda_root ${ENG_NVCC} DIRECTORY)
find_library(ENG_CUDART cudart_static REQUIRED PATHS ${cuda_root}/.. PATH_SUFFIXES lib64 lib)
find_library(ENG_CUBLASLT cublasLt REQUIRED PATHS ${cuda_root}/.. PATH_SUFFIXES lib64 lib)
file(GLOB cuda_sources CONFIGURE_DEPENDS kernels/cuda/*.cu)
set(cuda_options -std=c++17 -O3 ${ENG_NVCC_FLAGS} -Xcompiler=-fPIC,-fno-threadsafe-statics,-fno-exceptions
    -gencode arch=compute_90a,code=sm_90a -gencode arch=compute_90,code=compute_90)
foreach(source ${cuda_sources})
    get_filename_component(name ${source} NAME)
    set(object ${CMAKE_BINARY_DIR}/cuda/${name}.o)
    add_custom_command(OUTPUT ${object}
        COMMAND ${ENG_NVCC} ${cuda_options} -I${CMAKE_SOURCE_DIR} -I${CMAKE_SOURCE_DIR}/include
                -MD -MF ${object}.d -c ${source} -o ${object}
        DEPENDS ${source} DEPFILE ${object}.d VERBATIM)
    set_source_files_properties(${object} PROPERTIES EXTERNAL_OBJECT ON GENERATED ON)
    list(APPEND cuda_objects ${object})
    target_sources(eng_kernels PRIVATE ${object})
endforeach()
file(MAKE_DIRECTORY ${CMAKE_BINARY_DIR}/cuda)
target_compile_definitions(eng_kernels PRIVATE ENG_HAVE_CUDA=1)
target_link_libraries(eng_kernels PUBLIC ${ENG_CUBLASLT} ${ENG_CUDART} ${CMAKE_DL_LIBS} rt)
