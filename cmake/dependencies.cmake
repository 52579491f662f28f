# Libraries, all from Debian packages (scripts/setup installs them), as imported targets ENG::<name>; the
# table printed at the end of configuring says what was found.
find_package(PkgConfig REQUIRED)
find_package(Threads REQUIRED)
find_package(OpenMP REQUIRED COMPONENTS C)
set_property(GLOBAL PROPERTY ENG_FOUND "")

function(eng_note name version use)
    set_property(GLOBAL APPEND PROPERTY ENG_FOUND "${name}|${version}|${use}")
endfunction()

# eng_pkg(name module use): a required library through pkg-config.
macro(eng_pkg name module use)
    pkg_check_modules(PC_${name} REQUIRED IMPORTED_TARGET ${module})
    add_library(ENG::${name} ALIAS PkgConfig::PC_${name})
    eng_note(${name} "${PC_${name}_VERSION}" "${use}")
endmacro()

eng_pkg(jansson jansson "JSON")
eng_pkg(inih inih "sweep files")
eng_pkg(utf8proc libutf8proc "Unicode normalisation of the token map")
eng_pkg(crypto libcrypto "sha256")
eng_pkg(sqlite sqlite3 "results database")
eng_pkg(hwloc hwloc "machine topology")
eng_pkg(uring liburing "asynchronous reads of row stores")
eng_pkg(numa numa "placement of row stores")
eng_pkg(cmark libcmark "report pages")
if(ENG_TESTS)
    eng_pkg(cmocka cmocka "tests")
endif()

# Not through oneDNN's own CMake package: Debian's asks for OpenCL headers, which nothing here uses.
find_library(ENG_DNNL_LIBRARY dnnl REQUIRED)
find_path(ENG_DNNL_INCLUDE dnnl.h REQUIRED)
add_library(ENG::dnnl UNKNOWN IMPORTED)
set_target_properties(ENG::dnnl PROPERTIES IMPORTED_LOCATION ${ENG_DNNL_LIBRARY}
    INTERFACE_INCLUDE_DIRECTORIES ${ENG_DNNL_INCLUDE})
file(STRINGS ${ENG_DNNL_INCLUDE}/oneapi/dnnl/dnnl_version.h dnnl_version
    REGEX "define DNNL_VERSION_(MAJOR|MINOR|PATCH) ")
string(REGEX MATCHALL "[0-9]+" dnnl_version "${dnnl_version}")
list(JOIN dnnl_version "." dnnl_version)
eng_note(onednn "${dnnl_version}" "matrix products")

find_program(ENG_GNUPLOT gnuplot)
eng_note(gnuplot "${ENG_GNUPLOT}" "plots")
# CUDA is looked for and never required: the CPU backend is complete without it.
find_program(ENG_NVCC nvcc PATHS /usr/local/cuda/bin)
if(ENG_NVCC)
    execute_process(COMMAND ${ENG_NVCC} --version OUTPUT_VARIABLE nvcc_text ERROR_QUIET)
    string(REGEX MATCH "V([0-9.]+)" unused "${nvcc_text}")
    eng_note(cuda "${CMAKE_MATCH_1}" "kernels of a device, built with -DENG_CUDA=ON")
else()
    eng_note(cuda "not found" "optional")
endif()

# The CUPTI decoder is built from the toolkit's headers alone; libcupti itself is found when a trace starts
# (bench/trace/cupti_load.h). ENG::cupti always exists; without headers it only says why.
option(ENG_CUPTI "Build the CUPTI decoder when its headers are found" ON)
add_library(eng_cupti INTERFACE)
add_library(ENG::cupti ALIAS eng_cupti)
function(eng_find_cupti)
    set(reason "left out by -DENG_CUPTI=OFF")
    if(ENG_CUPTI)
        get_filename_component(root "${ENG_NVCC}" DIRECTORY)
        set(roots "${root}/.." $ENV{CUDA_HOME} $ENV{CUDA_PATH} /usr/local/cuda /opt/cuda)
        find_path(ENG_CUPTI_INCLUDE cupti_activity.h PATHS ${roots}
                  PATH_SUFFIXES include extras/CUPTI/include)
        find_path(ENG_CUDA_INCLUDE cuda.h PATHS ${roots} PATH_SUFFIXES include)
        set(reason "no CUPTI headers")
        if(ENG_CUPTI_INCLUDE AND ENG_CUDA_INCLUDE)
            file(STRINGS ${ENG_CUPTI_INCLUDE}/cupti_version.h line REGEX "define CUPTI_API_VERSION")
            string(REGEX MATCH "[0-9]+$" version "${line}")
            set(reason "CUPTI headers of version ${version}, older than those of CUDA 13")
            if(version GREATER_EQUAL 130000)
                get_filename_component(libraries ${ENG_CUDA_INCLUDE}/../lib64 REALPATH)
                if(NOT EXISTS ${libraries}) # as in the wheels of PyPI
                    get_filename_component(libraries ${ENG_CUDA_INCLUDE}/../lib REALPATH)
                endif()
                target_include_directories(eng_cupti SYSTEM INTERFACE ${ENG_CUPTI_INCLUDE} ${ENG_CUDA_INCLUDE})
                target_compile_definitions(eng_cupti INTERFACE ENG_HAVE_CUPTI=1
                    ENG_CUPTI_LIBRARY_DIR="${libraries}")
                set(ENG_HAVE_CUPTI ON PARENT_SCOPE)
                eng_note(cupti ${version} "headers of the decoder of GPU traces")
                return()
            endif()
        endif()
    endif()
    target_compile_definitions(eng_cupti INTERFACE ENG_NO_CUPTI="${reason}")
    eng_note(cupti "not found" "${reason}")
endfunction()
eng_find_cupti()

# NVTX3 is headers only: from the CUDA toolkit, else from the wheel that scripts/setup unpacks. Without them
# the program is built without ranges.
find_path(ENG_NVTX_INCLUDE nvtx3/nvToolsExtPayload.h
    HINTS /usr/local/cuda/include PATHS ${CMAKE_SOURCE_DIR}/data/cache/nvtx/include)
add_library(ENG::nvtx INTERFACE IMPORTED)
if(ENG_NVTX_INCLUDE)
    set_target_properties(ENG::nvtx PROPERTIES INTERFACE_INCLUDE_DIRECTORIES ${ENG_NVTX_INCLUDE}
        INTERFACE_COMPILE_DEFINITIONS ENG_HAVE_NVTX=1 INTERFACE_LINK_LIBRARIES ${CMAKE_DL_LIBS})
endif()
eng_note(nvtx3 "${ENG_NVTX_INCLUDE}" "ranges of traces")

function(eng_print_found)
    get_property(rows GLOBAL PROPERTY ENG_FOUND)
    message(STATUS "")
    message(STATUS "Engram workbench ${PROJECT_VERSION}, ${CMAKE_BUILD_TYPE}, ${CMAKE_C_COMPILER_ID} ${CMAKE_C_COMPILER_VERSION}")
    foreach(row ${rows})
        string(REPLACE "|" ";" cells "${row}")
        list(GET cells 0 name)
        list(GET cells 1 version)
        list(GET cells 2 use)
        string(LENGTH "${name}" n)
        math(EXPR pad "10 - ${n}")
        string(REPEAT " " ${pad} pad)
        if(NOT version OR version MATCHES "NOTFOUND")
            set(version "not found")
        endif()
        message(STATUS "  ${name}${pad}${version}  (${use})")
    endforeach()
    message(STATUS "")
endfunction()
