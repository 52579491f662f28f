/* The functions that -fsanitize=thread calls for every load and store of kernels and tests: in
 * place of the sanitizer's library, which is not linked. */
#include "internal.hpp"
#include "simt.cuh"

extern "C" const char __executable_start[], _end[];

namespace simt
{
namespace
{
bool in_image(uintptr_t address)
{
    return address - (uintptr_t)__executable_start < (uintptr_t)(_end - __executable_start);
}

void kernel_access(uintptr_t address, size_t n, Access access, size_t alignment)
{
    if (shared_holds(address)) return shared_access(address, n, access, alignment, current_stamp());
    if (own_stack_holds(address)) return;
    /* Constants and the thread indices; a kernel's own arguments. */
    if (access == Access::read && (in_image(address) || arguments_hold(address))) return;
    memory_access(address, n, access, alignment, current_stamp(), false);
}

void touch(const void *pointer, size_t n, Access access, size_t alignment)
{
    uintptr_t address = (uintptr_t)pointer;
    Kind kind;
    if (in_kernel())
        kernel_access(address, n, access, alignment);
    else if (memory_known(pointer, &kind))
        memory_access(address, n, access, 1, host_stamp(), true);
}
} // namespace

void check_wide(const void *address, size_t bytes, bool write)
{
    touch(address, bytes, write ? Access::write : Access::read, bytes);
}

void atomic_access(const void *address, size_t bytes)
{
    touch(address, bytes, Access::atomic, bytes);
}
} // namespace simt

#define HOOKS(n)                                                                                   \
    void __tsan_read##n(void *at)                                                                  \
    {                                                                                              \
        simt::touch(at, n, simt::Access::read, n);                                                 \
    }                                                                                              \
    void __tsan_write##n(void *at)                                                                 \
    {                                                                                              \
        simt::touch(at, n, simt::Access::write, n);                                                \
    }                                                                                              \
    void __tsan_unaligned_read##n(void *at)                                                        \
    {                                                                                              \
        simt::touch(at, n, simt::Access::read, 1);                                                 \
    }                                                                                              \
    void __tsan_unaligned_write##n(void *at)                                                       \
    {                                                                                              \
        simt::touch(at, n, simt::Access::write, 1);                                                \
    }                                                                                              \
    void __tsan_volatile_read##n(void *at)                                                         \
    {                                                                                              \
        simt::touch(at, n, simt::Access::read, n);                                                 \
    }                                                                                              \
    void __tsan_volatile_write##n(void *at)                                                        \
    {                                                                                              \
        simt::touch(at, n, simt::Access::write, n);                                                \
    }

extern "C" {
HOOKS(1)
HOOKS(2)
HOOKS(4)
HOOKS(8)
HOOKS(16)
void __tsan_read_range(void *at, size_t n)
{
    simt::touch(at, n, simt::Access::read, 1);
}
void __tsan_write_range(void *at, size_t n)
{
    simt::touch(at, n, simt::Access::write, 1);
}
/* Host code of tests alone has atomics (reference counts of jansson); kernels use simt.cuh's. */
uint64_t __tsan_atomic64_fetch_add(volatile uint64_t *at, uint64_t value, int)
{
    return __atomic_fetch_add(at, value, __ATOMIC_SEQ_CST);
}
uint64_t __tsan_atomic64_fetch_sub(volatile uint64_t *at, uint64_t value, int)
{
    return __atomic_fetch_sub(at, value, __ATOMIC_SEQ_CST);
}
void __tsan_init(void) {}
void __tsan_func_entry(void *) {}
void __tsan_func_exit(void) {}
void __tsan_vptr_update(void **, void *) {}
void __tsan_vptr_read(void **) {}
}
